// emu_mma.c: products of the tensor cores, m16n8k8 of tf32 and m16n8k16 of bf16 and f16, in the layouts of the
// PTX ISA ("Matrix multiply-accumulate operation using mma instruction").
//
// Each thread of a warp works out the four elements of c that it holds, from what all 32 have brought.
// Products and their sum in double, one rounding at the end: closer than the hardware, whose order is its
// own; tests allow for both.
#include "tests/emulator/emu_floats.h"
#include "tests/emulator/emu_state.h"

enum { MOST_K = 16 };

static float of_tf32(uint32_t x) {
  return emu_float(x & 0xffffe000); // the multiplier does not look at the rest
}

// Number k of the registers of a thread, two to each.
static float of_half(emu_collective what, uint32_t pair, int k) {
  uint16_t x = (uint16_t)(k % 2 ? pair >> 16 : pair);
  return what == EMU_MMA_F16 ? emu_from_f16(x) : emu_from_bf16(x);
}

// Row `row` of a[16,K]; an element is where its lane and register are.
static void take_row(emu_collective what, const emu_payload *all, int row, double *out) {
  const emu_payload *lanes = &all[row % 8 * 4];
  for (int k = 0; what == EMU_MMA_TF32 && k < 8; k++)
    out[k] = (double)of_tf32(lanes[k % 4].word[row / 8 + k / 4 * 2]);
  for (int k = 0; what != EMU_MMA_TF32 && k < 16; k++)
    out[k] = (double)of_half(what, lanes[k % 8 / 2].word[row / 8 + k / 8 * 2], k);
}

// Column `col` of b[K,8].
static void take_column(emu_collective what, const emu_payload *all, int col, double *out) {
  const emu_payload *lanes = &all[col * 4];
  for (int k = 0; what == EMU_MMA_TF32 && k < 8; k++)
    out[k] = (double)of_tf32(lanes[k % 4].word[4 + k / 4]);
  for (int k = 0; what != EMU_MMA_TF32 && k < 16; k++)
    out[k] = (double)of_half(what, lanes[k % 8 / 2].word[4 + k / 8], k);
}

void emu_mma(emu_launch_state *l, emu_collective what, const emu_fragments *mine, float *c) {
  const emu_payload *all = emu_meet(l, what, 0, mine, sizeof *mine, __builtin_return_address(0));
  int lane = l->running % EMU_WARP, num = what == EMU_MMA_TF32 ? 8 : MOST_K;
  double row[2][MOST_K], column[2][MOST_K];
  for (int i = 0; i < 2; i++) {
    take_row(what, all, lane / 4 + 8 * i, row[i]);
    take_column(what, all, lane % 4 * 2 + i, column[i]);
  }
  for (int i = 0; i < 4; i++) {
    double sum = 0;
    for (int k = 0; k < num; k++)
      sum += row[i / 2][k] * column[i % 2][k];
    c[i] = (float)((double)c[i] + sum);
  }
}
