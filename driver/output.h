// output.h: what comes of a draft: what --emit asks for, or a trainer.
//
// All return an exit code, and have said what is wrong when it is not 0.
#ifndef DRIVER_OUTPUT_H
#define DRIVER_OUTPUT_H

#include "driver/draft.h"

// --emit=ast: of the source, which draft_load need not have read.
int output_ast(const draft_subject *s, draft *t);
// --emit=ir, dot: after draft_arrange.
int output_ir(const draft_subject *s, draft *t);
// --emit=plan, plan.json, report: after draft_plan.
int output_plan(const draft_subject *s, draft *t);
// --emit=kernels, c, ..., or the trainer: after draft_plan.
int output_program(const draft_subject *s, draft *t);

#endif
