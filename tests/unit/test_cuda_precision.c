// test_cuda_precision.c: matmuls of narrow operands, and kernels that narrow, on the emulator,
// against the oracle; and that the tensor cores are used for all that they are exact for.
// `-v [NAME]` prints the CUDA text.
#include <string.h>

#include "codegen/program.h"
#include "tests/unit/support_precision_cases.h"

// A Hopper of one SM: of many blocks, as large products have, those of four warps together are the fastest.
static const cg_target *small_hopper(ir_arena *a) {
  const cg_target *hopper = cg_target_find(a, "cuda:sm_90a");
  cg_cuda chip = *hopper->cuda;
  chip.sms = 1;
  return cg_cuda_with(a, hopper, chip);
}

static void check_hopper(ir_arena *a, const char *only, bool show) {
  const char *which = only ? only : "whole units of 16 bytes"; // the others are too narrow
  const char *text = run_precision_cases(a, small_hopper(a), which);
  if (show)
    fputs(text, stdout);
  static const char *const used[] = {"k_wgmma_bf16<false, true>(c", "k_wgmma_bf16<false, false>(c",
                                     "k_wgmma_bf16<true, true>(c", "k_wgmma_bf16<true, false>(c",
                                     "k_wgmma_hold(c[i]);"}; // which the emulator has no use for
  for (size_t i = 0; !only && i < sizeof used / sizeof *used; i++)
    if (!strstr(text, used[i]))
      test_fail("no kernel for Hoppers has %s", used[i]);
}

int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  ir_arena *a = ir_arena_new();
  const char *text =
      run_precision_cases(a, cg_target_find(a, "cuda:sm_80,sm_90a"), argc > 2 ? argv[2] : NULL);
  if (show)
    fputs(text, stdout);
  static const char *const used[] = {"k_mma_tf32",         "k_mma_bf16",
                                     "k_mma_f16",          "k_ldmatrix_x4_trans",
                                     "k_async_16(a_begin", "b_next[s] = in ? k_take(b_from +"};
  for (size_t i = 0; argc == 1 && i < sizeof used / sizeof *used; i++)
    if (!strstr(text, used[i]))
      test_fail("no kernel has %s", used[i]);
  // of the cases, one product is left to f32: of a bf16 with an f32 by hand
  int products = test_occurrences(text, "\n// c["), mma = test_occurrences(text, ", products in ");
  if (argc == 1 && mma != products - 1)
    test_fail("%d of %d products by the tensor cores", mma, products);
  check_hopper(a, argc > 2 ? argv[2] : NULL, show);
  ir_arena_free(a);
  return test_report("cuda_precision");
}
