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

// The two numbers of a register.
static void of_bf16s(uint32_t pair, double *out) {
  out[0] = (double)emu_from_bf16((uint16_t)pair);
  out[1] = (double)emu_from_bf16((uint16_t)(pair >> 16));
}

static void of_f16s(uint32_t pair, double *out) {
  out[0] = (double)emu_from_f16((uint16_t)pair);
  out[1] = (double)emu_from_f16((uint16_t)(pair >> 16));
}

// What four lanes hold of a row or column: in a register of each the numbers of one half of K, in another those of
// the other.
static void take(emu_collective what, const emu_payload *lanes, int lower, int upper, double *out) {
  for (int i = 0; i < 4; i++) {
    uint32_t low = lanes[i].word[lower], high = lanes[i].word[upper];
    if (what == EMU_MMA_TF32) {
      out[i] = (double)of_tf32(low);
      out[i + 4] = (double)of_tf32(high);
    } else if (what == EMU_MMA_BF16) {
      of_bf16s(low, &out[2 * i]);
      of_bf16s(high, &out[2 * i + 8]);
    } else {
      of_f16s(low, &out[2 * i]);
      of_f16s(high, &out[2 * i + 8]);
    }
  }
}

void emu_mma(emu_launch_state *l, emu_collective what, const emu_fragments *mine, float *c) {
  const emu_payload *all = emu_meet(l, what, 0, mine, sizeof *mine, __builtin_return_address(0));
  int lane = l->running % EMU_WARP, num = what == EMU_MMA_TF32 ? 8 : MOST_K;
  double row[2][MOST_K], column[2][MOST_K];
  for (int i = 0; i < 2; i++) {
    take(what, &all[lane / 4 * 4], i, i + 2, row[i]);          // of a[16,K]
    take(what, &all[(lane % 4 * 2 + i) * 4], 4, 5, column[i]); // of b[K,8]
  }
  double sum[4] = {
      0}; // side by side: each is added up in the order of k, and waits for itself alone
  for (int k = 0; k < num; k++)
    for (int i = 0; i < 4; i++)
      sum[i] += row[i / 2][k] * column[i % 2][k];
  for (int i = 0; i < 4; i++)
    c[i] = (float)((double)c[i] + sum[i]);
}
