// support_plan.h: what the tests of memory plans share.
#ifndef TESTS_SUPPORT_PLAN_H
#define TESTS_SUPPORT_PLAN_H

#include "passes/plan.h"

// A function in which b is computed over a, and d over c or b, as they die there; c is beside b.
extern const char test_chain_text[];

// A module of these states and functions, whose kernels, made where there are none, are in order.
ir_module *test_ordered(ir_arena *a, const char *text);
// The plan of a module in order, without wishes or places of a file.
plan *test_plan(ir_module *m);
// Stops the test when there is none.
plan_buffer *test_find_buffer(plan *p, const char *name);

#endif
