// test_cpu_matmul_epilogue.c: MATMUL kernels as fusion makes them, for every instruction set of
// this machine, against the oracle. `-v [NAME]` prints the generated C of the widest one.
#include "tests/unit/support_epilogue_cases.h"

int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  const char *only = argc > 2 ? argv[2] : NULL;
  ir_arena *a = ir_arena_new();
  for (const cg_target *t = test_targets(); t->name; t++) {
    const char *text = run_epilogue_cases(a, t, only, NULL);
    if (show && t == test_targets())
      fputs(text, stdout);
    if (!only && !strstr(text, "groups of tiles, column by column"))
      test_fail("%s: no case has tasks that go down columns", t->name);
    ir_arena_clear(a);
  }
  ir_arena_free(a);
  return test_report("cpu_matmul_epilogue");
}
