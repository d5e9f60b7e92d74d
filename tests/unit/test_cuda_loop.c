// test_cuda_loop.c: LOOP, COPY and SCATTER kernels of what networks do, for a GPU: on the emulator,
// in several orders of blocks and threads, compared with the oracle. `-v [NAME]` prints the CUDA
// text.
#include "codegen/program.h"
#include "tests/unit/support_loop_cases.h"

#include <string.h>

int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  const char *only = argc > 2 ? argv[2] : NULL;
  ir_arena *a = ir_arena_new();
  const cg_target *t = cg_target_find(a, "cuda:sm_80");
  test_run_cases(loop_cases, NUM_LOOP_CASES, t, only, show);
  if (!only)
    check_flat_sizes(t);
  ir_arena_free(a);
  return test_report("cuda_loop");
}
