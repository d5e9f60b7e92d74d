// test_cuda_graphs.c: random graphs through the whole pipeline for a GPU; every kernel that comes
// out runs on the emulator and is compared with the oracle. Seeds are fixed; an argument runs one,
// and prints it.
#include "codegen/program.h"
#include "tests/unit/support_kernels.h"

#include <stdlib.h>

int main(int argc, char **argv) {
  enum { SEEDS = 24 };
  ir_arena *a = ir_arena_new();
  const cg_target *target = cg_target_find(a, "cuda:sm_80");
  if (argc > 1)
    test_random_graph(strtoull(argv[1], NULL, 10), target);
  else
    test_random_graphs(target, 1, SEEDS, 1);
  ir_arena_free(a);
  return test_report("cuda_graphs");
}
