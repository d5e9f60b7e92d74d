// test_cpu_matmul_epilogue.c: MATMUL kernels as fusion makes them, for every instruction set of
// this machine, against the oracle. `-v [NAME]` prints the generated C of the widest one.
#include "tests/unit/support_epilogue_cases.h"

int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  for (const cg_target *t = test_targets(); t->name; t++)
    run_epilogue_cases(t, argc > 2 ? argv[2] : NULL, show && t == test_targets());
  return test_report("cpu_matmul_epilogue");
}
