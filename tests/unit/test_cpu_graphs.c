// test_cpu_graphs.c: random graphs through the whole pipeline; every LOOP, COPY and SCATTER kernel
// that comes out is compiled and compared with the oracle. Seeds are fixed; an argument runs one.
#include "ir/random_graph.h"
#include "tests/unit/support_kernels.h"

#include <stdlib.h>

static void run_seed(uint64_t seed, const cg_target *t, bool show) {
  ir_arena *a = ir_arena_new();
  ir_random_options o = {.seed = seed, .num_nodes = 12 + (int)(seed % 5) * 6};
  o.networks = seed % 2;
  o.differentiable = seed % 3 == 1;
  ir_module *m = ir_random_module(a, o);
  const char *what = ir_format(a, "seed %llu", (unsigned long long)seed);
  if (!pass_run_pipeline(m, diag_new(a), NULL)) {
    test_fail("%s: passes failed", what);
    return;
  }
  const char *text = test_kernels(a, what, m, "step", t, 1e-4, seed);
  if (show)
    printf("%s\n%s", test_print(a, m), text);
  ir_arena_free(a);
}

int main(int argc, char **argv) {
  enum { SEEDS = 60 };
  const cg_target *targets = test_targets();
  int num = 0;
  while (targets[num].name)
    num++;
  if (argc > 1) {
    run_seed(strtoull(argv[1], NULL, 10), &targets[argc > 2 ? atoi(argv[2]) : 0], true);
    return test_report("cpu_graphs");
  }
  for (uint64_t seed = 1; seed <= SEEDS; seed++)
    run_seed(seed, &targets[seed % (uint64_t)num], false);
  return test_report("cpu_graphs");
}
