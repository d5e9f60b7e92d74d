// test_cpu_graphs.c: random graphs through the whole pipeline; every LOOP, COPY and SCATTER kernel
// that comes out is compiled and compared with the oracle. Seeds are fixed; an argument runs one.
#include "tests/unit/support_kernels.h"

#include <stdlib.h>

int main(int argc, char **argv) {
  enum { SEEDS = 60 };
  const cg_target *targets = test_targets();
  int num = 0;
  while (targets[num].name)
    num++;
  if (argc > 1) {
    test_random_graph(strtoull(argv[1], NULL, 10), &targets[argc > 2 ? atoi(argv[2]) : 0], true);
    return test_report("cpu_graphs");
  }
  for (uint64_t seed = 1; seed <= SEEDS; seed++)
    test_random_graph(seed, &targets[seed % (uint64_t)num], false);
  return test_report("cpu_graphs");
}
