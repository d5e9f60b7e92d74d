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
    uint64_t seed = strtoull(argv[1], NULL, 10);
    test_random_graphs(seed, seed, &targets[argc > 2 ? atoi(argv[2]) : 0], true);
    return test_report("cpu_graphs");
  }
  for (int i = 0; i < num; i++)
    test_random_graphs((uint64_t)(1 + SEEDS * i / num), (uint64_t)(SEEDS * (i + 1) / num),
                       &targets[i], false);
  return test_report("cpu_graphs");
}
