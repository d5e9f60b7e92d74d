// output.h: what comes of a draft: what --emit asks for, or a trainer.
//
// All return an exit code, and have said what is wrong when it is not 0.
#ifndef DRIVER_OUTPUT_H
#define DRIVER_OUTPUT_H

#include "driver/draft.h"

// Where what is written goes: --output, or a trainer's own name. NULL: to standard output.
const char *output_path(const draft_subject *s, ir_arena *a);
// The make rule of -MD for it.
const char *output_rule_path(ir_arena *a, const char *out);
// A file of data as the graph names it, beside the graph.
const char *output_beside_graph(const draft_subject *s, ir_arena *a, const char *name);

// --emit=ast: of the source, which draft_load need not have read.
int output_ast(const draft_subject *s, draft *t);
// --emit=ir, dot: after draft_arrange.
int output_ir(const draft_subject *s, draft *t);
// --emit=plan, plan.json, report: after draft_plan.
int output_plan(const draft_subject *s, draft *t);
// --emit=kernels, c, ..., or the trainer: after draft_plan.
int output_program(const draft_subject *s, draft *t);

#endif
