// test_cuda_matmul_epilogue.c: MATMUL kernels as fusion makes them, on the emulator, against the
// oracle. `-v [NAME]` prints the CUDA text.
#include "codegen/program.h"
#include "tests/unit/support_epilogue_cases.h"

int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  ir_arena *a = ir_arena_new();
  const cg_target *target = cg_target_find(a, "cuda:sm_80,sm_90a");
  int phases = 0;
  const char *text = run_epilogue_cases(a, target, argc > 2 ? argv[2] : NULL, &phases);
  if (show)
    fputs(text, stdout);
  if (argc == 1 && phases < 2)
    test_fail("no kernel has its k in pieces");
  ir_arena_free(a);
  return test_report("cuda_matmul_epilogue");
}
