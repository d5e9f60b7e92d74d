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

// --- small floats -----------------------------------------------------------------------------
static __forceinline__ uint32_t emu_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}
static __forceinline__ float emu_float(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}
// cvt.rna.tf32.f32: to nearest, ties away from zero. Infinities stay.
static __forceinline__ uint32_t emu_tf32(float x) {
  uint32_t u = emu_bits(x);
  if (x != x)
    return 0x7fffffff;
  return (u & 0x7fffffff) == 0x7f800000 ? u : (u + 0x1000) & 0xffffe000;
}
// cvt.rn.bf16.f32
static __forceinline__ uint16_t emu_bf16(float x) {
  uint32_t u = emu_bits(x);
  if (x != x)
    return 0x7fff;
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
// cvt.rn.f16.f32: the magnitude in units of its last place, rounded to even by rintf.
static __forceinline__ uint16_t emu_f16(float x) {
  const uint16_t sign = (uint16_t)(emu_bits(x) >> 16 & 0x8000);
  const float m = fabsf(x);
  if (x != x)
    return 0x7fff;
  if (m >= 65520.0f)
    return sign | 0x7c00;
  int exponent = m < 0x1p-14f ? -14 : ilogbf(m);
  // 1024 units for the implicit bit are what carries into the exponent field
  const int units = (int)rintf(ldexpf(m, 10 - exponent));
  return (uint16_t)(sign | (((exponent + 14) << 10) + units));
}
static __forceinline__ float emu_from_f16(uint16_t x) {
  const int exponent = x >> 10 & 31, fraction = x & 1023;
  float m = exponent == 0 ? ldexpf((float)fraction, -24)
                          : ldexpf((float)(1024 + fraction), exponent - 25);
  if (exponent == 31)
    m = fraction ? emu_float(0x7fc00000) : emu_float(0x7f800000);
  return x & 0x8000 ? -m : m;
}
static __forceinline__ float emu_from_bf16(uint16_t x) {
  return emu_float((uint32_t)x << 16);
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

// --- mma --------------------------------------------------------------------------------------
struct emu_fragments {
  uint32_t a[4], b[2];
};
// An element of a[16,K] or b[K,8] from the lane and register that hold it.
struct emu_tf32_layout {
  enum { K = 8 };
  static float of(uint32_t x) {
    return emu_float(x & 0xffffe000); // the multiplier does not look at the rest
  }
  static float a(const emu_payload *all, int row, int k) {
    return of(all[row % 8 * 4 + k % 4].word[row / 8 + k / 4 * 2]);
  }
  static float b(const emu_payload *all, int k, int col) {
    return of(all[col * 4 + k % 4].word[4 + k / 4]);
  }
};
template <float (*of)(uint16_t)> struct emu_half_layout {
  enum { K = 16 };
  static float pick(uint32_t pair, int k) {
    return of((uint16_t)(k % 2 ? pair >> 16 : pair));
  }
  static float a(const emu_payload *all, int row, int k) {
    return pick(all[row % 8 * 4 + k % 8 / 2].word[row / 8 + k / 8 * 2], k);
  }
  static float b(const emu_payload *all, int k, int col) {
    return pick(all[col * 4 + k % 8 / 2].word[4 + k / 8], k);
  }
};
// Products and their sum in double, one rounding at the end: closer than the hardware, whose order
// is its own; tests allow for both.
template <typename L>
static __forceinline__ void emu_mma(emu_collective what, float (&c)[4], const uint32_t (&a)[4],
                                    uint32_t b0, uint32_t b1) {
  const emu_fragments mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  const emu_payload *all = emu_collect(what, 0, &mine, sizeof mine);
  const int g = emu_lane() / 4, t = emu_lane() % 4;
  for (int i = 0; i < 4; i++) {
    const int row = g + i / 2 * 8, col = 2 * t + i % 2;
    double sum = 0;
    for (int k = 0; k < L::K; k++)
      sum += (double)L::a(all, row, k) * (double)L::b(all, k, col);
    c[i] = (float)((double)c[i] + sum);
  }
}
static __forceinline__ void emu_mma_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  emu_mma<emu_tf32_layout>(EMU_MMA_TF32, c, a, b0, b1);
}
static __forceinline__ void emu_mma_bf16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  emu_mma<emu_half_layout<emu_from_bf16>>(EMU_MMA_BF16, c, a, b0, b1);
}
static __forceinline__ void emu_mma_f16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                        uint32_t b1) {
  emu_mma<emu_half_layout<emu_from_f16>>(EMU_MMA_F16, c, a, b0, b1);
}

#endif
