// support_ir.h: what tests of the compiler layers share: counted checks, modules from text,
// text from modules, values from lists.
#ifndef SUPPORT_IR_H
#define SUPPORT_IR_H

#include "ir/builder.h"
#include "ir/interp.h"
#include "tests/random/random_graph.h"

// CHECK(cond, "what was wrong: %d", x): prints and counts a failure, and goes on.
#define CHECK(cond, ...) support_check((cond), __FILE__, __LINE__, #cond, __VA_ARGS__)
bool support_check(bool ok, const char *file, int line, const char *cond, const char *fmt, ...)
    IR_PRINTF(5, 6);
// A failure that the caller has printed.
void support_count_failure(void);
// The exit status of a test: says how many checks there were.
int support_finish(const char *test);

// A module from text. NULL, with the diagnostics in *why, when it has errors.
ir_module *support_parse(ir_arena *a, const char *text, const char **why);
// The same, for texts that must be right: exits otherwise.
ir_module *support_module(ir_arena *a, const char *text);
// A module with one function `step` of these lines.
ir_module *support_step(ir_arena *a, const char *body);
const char *support_text(ir_arena *a, const ir_module *m);
// Checks that the module verifies; prints the faults when not.
bool support_verifies(const ir_module *m, const char *what);

ir_tensor_value support_value(ir_arena *a, ir_type t, const double *v);
// Largest |a - b| / max(1, |a|, |b|); infinity for NaN on one side only or unequal infinities.
double support_distance(const ir_tensor_value *a, const ir_tensor_value *b);
// A world after `init` has run, when there is one.
ir_world *support_world(ir_arena *a, const ir_module *m);

#endif
