// test_cpu_precision.c: matmuls of narrow operands, and kernels that narrow, for every instruction
// set of this machine, against the oracle. `-v [NAME]` prints the generated C of the widest one.
#include <string.h>

#include "tests/unit/support_precision_cases.h"

int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  ir_arena *a = ir_arena_new();
  for (const cg_target *t = test_targets(); t->name; t++) {
    const char *text = run_precision_cases(a, t, argc > 2 ? argv[2] : NULL);
    if (show && t == test_targets())
      fputs(text, stdout);
  }
  ir_arena_free(a);
  return test_report("cpu_precision");
}
