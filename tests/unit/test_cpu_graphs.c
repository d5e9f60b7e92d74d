// test_cpu_graphs.c: random graphs through the whole pipeline; every LOOP, COPY and SCATTER kernel
// that comes out is compiled and compared with the oracle. Seeds are fixed; an argument runs one
// (a second one chooses the target), and prints it.
#include "tests/unit/support_kernels.h"

#include <stdlib.h>

int main(int argc, char **argv) {
  enum { SEEDS = 60 };
  const cg_target *targets = test_targets();
  if (argc > 1) {
    test_random_graph(strtoull(argv[1], NULL, 10), &targets[argc > 2 ? atoi(argv[2]) : 0]);
    return test_report("cpu_graphs");
  }
  uint64_t num = 0;
  while (targets[num].name)
    num++;
  for (uint64_t t = 0; t < num; t++)
    test_random_graphs(&targets[t], t + 1, SEEDS, num);
  return test_report("cpu_graphs");
}
