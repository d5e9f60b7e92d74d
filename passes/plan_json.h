// plan_json.h: the plan for programs. Schema "mltc-plan", version 1, described in docs/memory.md;
// fields are only ever added within a version.
#ifndef PASSES_PLAN_JSON_H
#define PASSES_PLAN_JSON_H

#include "passes/plan.h"

struct json_object;
// What plan_print_json prints; the caller gives it back (json_object_put). Functions and their
// kernels are in the order of the module.
struct json_object *plan_to_json(const plan *p, const ir_module *m);

#endif
