// test_cuda_graphs.c: random graphs through the whole pipeline for a GPU; every kernel that comes
// out runs on the emulator and is compared with the oracle. Seeds are fixed; an argument runs one.
#include "codegen/program.h"
#include "tests/unit/support_kernels.h"

#include <stdlib.h>

int main(int argc, char **argv) {
  enum { SEEDS = 24, TOGETHER = 8 };
  ir_arena *a = ir_arena_new();
  const cg_target *target = cg_target_find(a, "cuda:sm_80");
  if (argc > 1) {
    uint64_t seed = strtoull(argv[1], NULL, 10);
    test_random_graphs(seed, seed, target, true);
    return test_report("cuda_graphs");
  }
  for (uint64_t seed = 1; seed <= SEEDS; seed += TOGETHER)
    test_random_graphs(seed, seed + TOGETHER - 1, target, false);
  return test_report("cuda_graphs");
}
