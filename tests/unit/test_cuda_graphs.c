// test_cuda_graphs.c: random graphs through the whole pipeline for a GPU; every kernel that comes
// out runs on the emulator and is compared with the oracle. Seeds are fixed; an argument runs one.
#include "codegen/program.h"
#include "ir/random_graph.h"
#include "tests/unit/support_kernels.h"

#include <stdlib.h>

static void run_seed(uint64_t seed, bool show) {
  ir_arena *a = ir_arena_new();
  const cg_target *target = cg_target_find(a, "cuda:sm_80");
  ir_random_options o = {.seed = seed, .num_nodes = 12 + (int)(seed % 5) * 6};
  o.networks = seed % 2;
  o.differentiable = seed % 3 == 1;
  ir_module *m = ir_random_module(a, o);
  const char *what = ir_format(a, "seed %llu", (unsigned long long)seed);
  if (!pass_run_pipeline(m, diag_new(a), NULL)) {
    test_fail("%s: passes failed", what);
    return;
  }
  const char *text = test_kernels(a, what, m, "step", target, 1e-4, seed);
  if (show)
    printf("%s\n%s", test_print(a, m), text);
  ir_arena_free(a);
}

int main(int argc, char **argv) {
  enum { SEEDS = 24 };
  if (argc > 1) {
    run_seed(strtoull(argv[1], NULL, 10), true);
    return test_report("cuda_graphs");
  }
  for (uint64_t seed = 1; seed <= SEEDS; seed++)
    run_seed(seed, false);
  return test_report("cuda_graphs");
}
