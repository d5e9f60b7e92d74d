// emu_instructions.h: host bodies of the wrappers in codegen/cuda_device_prelude.h, one per
// instruction, in the layouts of the PTX ISA (sections "Matrix multiply-accumulate operation using
// mma instruction", "ldmatrix", "cp.async", "shfl.sync", "match.sync").
//
// A collective is an exchange: each of the 32 threads brings what it holds and is handed what all
// of them brought, then works out its own part of the result. Included by mltc_emulator.h.
#ifndef MLTC_EMU_INSTRUCTIONS_H
#define MLTC_EMU_INSTRUCTIONS_H

static __forceinline__ int emu_lane() {
  return (int)(emu_here.thread.x % EMU_WARP);
}
// --- shuffles ---------------------------------------------------------------------------------
static __forceinline__ uint32_t emu_shuffle_xor(uint32_t x, int distance) {
  const emu_payload *all = emu_collect(EMU_SHUFFLE_XOR, distance, &x, sizeof x);
  return all[emu_lane() ^ distance].word[0];
}

static inline uint32_t emu_match_any(uint32_t x) {
  const emu_payload *all = emu_collect(EMU_MATCH_ANY, 0, &x, sizeof x);
  uint32_t same = 0;
  for (int lane = 0; lane < EMU_WARP; lane++)
    same |= (uint32_t)(all[lane].word[0] == x) << lane;
  return same;
}

// --- asynchronous copies ----------------------------------------------------------------------
template <typename T>
static __forceinline__ void emu_async(emu_place<T> to, const T *from, size_t bytes) {
  EMU_HERE emu_here.engine->async_copy(emu_here.launch, to.array, to.index, from, bytes);
}
static __forceinline__ void emu_async_commit() {
  emu_here.engine->async_commit(emu_here.launch);
}
static __forceinline__ void emu_async_wait(int newer) {
  EMU_HERE emu_here.engine->async_wait(emu_here.launch, newer);
}

// --- ldmatrix ---------------------------------------------------------------------------------
// Each lane reads the row that it gives the place of, and brings it along.
template <typename T>
static __forceinline__ void emu_ldmatrix(uint32_t (&r)[4], emu_place<T> row, bool trans) {
  enum { ELEMENTS = 16 / sizeof(T) };
  T mine[ELEMENTS];
  row.take(ELEMENTS, ELEMENTS, mine);
  const emu_payload *all =
      emu_collect(trans ? EMU_LDMATRIX_TRANS : EMU_LDMATRIX, (int)sizeof(T), mine, sizeof mine);
  const int g = emu_lane() / 4, t = emu_lane() % 4;
  for (int m = 0; m < 4; m++) {
    uint16_t half[2];
    for (int i = 0; i < 2; i++) {
      const int at_row = trans ? 2 * t + i : g, at_col = trans ? g : 2 * t + i;
      memcpy(&half[i], (const char *)all[8 * m + at_row].word + 2 * at_col, sizeof half[i]);
    }
    r[m] = half[0] | (uint32_t)half[1] << 16;
  }
}

// --- wgmma ------------------------------------------------------------------------------------
static __forceinline__ void emu_wgmma_ready() {
  emu_here.engine->wgmma_ready(emu_here.launch);
}
static __forceinline__ void emu_wgmma_begin() {
  emu_here.engine->wgmma_begin(emu_here.launch);
}
static __forceinline__ void emu_wgmma_commit() {
  emu_here.engine->wgmma_commit(emu_here.launch);
}
static __forceinline__ void emu_wgmma_wait(int newer) {
  EMU_HERE emu_here.engine->wgmma_wait(emu_here.launch, newer);
}
static __forceinline__ void emu_wgmma(emu_collective what, float *c, int columns,
                                      const emu_operand &a, const emu_operand &b) {
  EMU_HERE emu_here.engine->wgmma(emu_here.launch, what, c, columns, &a, &b);
}

// --- mma --------------------------------------------------------------------------------------
// The sums are the emulator's (emu_mma.c), which is compiled for speed; this file is not.
static __forceinline__ void emu_mma(emu_collective what, float (&c)[4], const uint32_t (&a)[4],
                                    uint32_t b0, uint32_t b1) {
  const emu_fragments mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  emu_here.engine->mma(emu_here.launch, what, &mine, c);
}
static __forceinline__ void emu_mma_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  emu_mma(EMU_MMA_TF32, c, a, b0, b1);
}
static __forceinline__ void emu_mma_bf16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  emu_mma(EMU_MMA_BF16, c, a, b0, b1);
}
static __forceinline__ void emu_mma_f16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                        uint32_t b1) {
  emu_mma(EMU_MMA_F16, c, a, b0, b1);
}

#endif
