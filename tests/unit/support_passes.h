// support_passes.h: what the tests of passes share: modules from text, comparison by text, and
// comparison by value with the oracle.
#ifndef TESTS_SUPPORT_PASSES_H
#define TESTS_SUPPORT_PASSES_H

#include "ir/interp.h"
#include "passes/pass.h"

// A module with one function `f` around `body`, one statement per line. `states`: lines before the
// function, or NULL. Stops the test when the text has errors.
ir_module *test_module(ir_arena *a, const char *states, const char *body);
ir_module *test_parse(ir_arena *a, const char *text);
const char *test_print(ir_arena *a, const ir_module *m);

// Counts and prints a failed check; test_report prints the sum and gives the exit code.
void test_fail(const char *fmt, ...) IR_PRINTF(1, 2);
int test_report(const char *what);

// True when the texts are equal; else shows both under `what` and counts a failure.
bool test_same_text(const char *what, const char *got, const char *want);

// Results of `f` and states after it, on random inputs and random states drawn from `seed`.
typedef struct test_values {
  const ir_module *module;
  IR_VEC(const char *) names; // "result loss", "state w"
  IR_VEC(ir_tensor_value) values;
} test_values;
test_values test_run(ir_arena *a, const ir_module *m, const char *func, uint64_t seed);
// Largest difference relative to max(1, |value|), NaN equal to NaN. Names must match.
double test_difference(const test_values *x, const test_values *y, const char **where);
// Uniform in [lo, hi), the same for the same seed; advances it.
double test_random(uint64_t *seed, double lo, double hi);
// 0 .. n-1, in the same way, by other numbers.
int test_below(uint64_t *seed, int n);
// How often `word` is in a text.
int test_occurrences(const char *text, const char *word);
// Sensible values for inputs and states of any dtype.
ir_tensor_value test_random_tensor(ir_arena *a, ir_type type, uint64_t *seed);
// Of all states but flags, seeds and counters; and of all inputs, in order.
void test_random_states(ir_world *w, uint64_t *seed);
ir_tensor_value *test_random_inputs(ir_arena *a, const ir_func *f, uint64_t *seed);

// What a pass makes of a text, which is valid and has the values and gradients that it had.
typedef struct test_pass_case {
  const char *what;
  pass_fn pass;
  const char *states;
  const char *before;
  const char *after; // NULL: the pass must say that it changed nothing, and change nothing
} test_pass_case;
void test_check_pass(const test_pass_case *c);
#define TEST_PASS_CASES(cases)                                                                     \
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases)[0]; i++)                                    \
  test_check_pass(&(cases)[i])

#endif
