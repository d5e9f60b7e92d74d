// support_program.h: whole functions as a program runs them: their kernels one after the other, in
// an arena laid out as planned. On a CPU, or for a GPU on the emulator (tests/emulator).
#ifndef TESTS_SUPPORT_PROGRAM_H
#define TESTS_SUPPORT_PROGRAM_H

#include "codegen/program.h"
#include "ir/interp.h"
#include "passes/plan.h"

// A function of a module with all that compiling it gives.
typedef struct test_program {
  ir_arena *a;
  const char *what; // for messages
  ir_module *module;
  const ir_func *func;
  size_t index; // of the function
  cg_program *program;
  plan *plan; // has been checked
} test_program;

// `m` has been through all passes. `prefix` tells the names of its kernels from those of other
// programs that are loaded with it.
test_program test_program_new(ir_arena *a, const char *what, const char *prefix, ir_module *m,
                              const char *func, const cg_target *target);

// The kernels of several programs for one target, compiled at once. `lib` is NULL, counted as a
// failure, when they do not compile. `level` of optimisation: 0 to 2 (test_load).
typedef struct test_library {
  void *lib;
  struct emu_machine *gpu; // NULL: a CPU
} test_library;
test_library test_library_new(ir_arena *a, const test_program *p, size_t num, int level);
void test_library_free(test_library *l);

// How the tasks of each kernel are run. On a GPU: the orders of its blocks and threads.
typedef enum test_split { TEST_WHOLE, TEST_BACKWARDS } test_split;
// States as `w` has them and inputs as given, everything else in the arena NaN patterns; then the
// function. Returns the arena: values are at their offsets in p->plan.
char *test_program_run(const test_program *p, const test_library *l, const ir_world *w,
                       const ir_tensor_value *inputs, test_split split);

#endif
