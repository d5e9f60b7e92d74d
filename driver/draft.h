// draft.h: a compilation up to its memory plan: the real passes, the real schedules and the real plan.
// mltc makes one and goes on from it; commands that ask before they build, or build nothing, make one
// for each thing that they try. The stages, in their order:
//
//   draft_load -> draft_schedule -> draft_arrange -> draft_plan
#ifndef DRIVER_DRAFT_H
#define DRIVER_DRAFT_H

#include "codegen/program.h"
#include "driver/options.h"
#include "frontend/frontend.h"
#include "passes/plan_edit.h"

// What is compiled.
typedef struct draft_subject {
  const options *o;
  const cg_target *target;
  const ir_source *source;
  fe_split split;        // of the batch, in graph files
  const plan_edit *edit; // --plan; NULL: none
  const char *without; // an optional pass that is left out besides those of the options; NULL: none
  bool remakes_little; // kernels that leave more for a budget to choose from (passes/pass.h)
  bool open;           // what options say of looking into passes is for this one: they print, keep
                       // files, take their times, are verified and leave reproducers
} draft_subject;

typedef struct draft {
  ir_arena *arena;
  ir_diags *diags;
  fe_files files; // read besides the source
  ir_module *module;
  cg_program *program; // after draft_schedule
  plan *plan;          // after draft_plan
} draft;

// With an arena of its own, which draft_free frees.
draft draft_new(void);
void draft_free(draft *t);
// Each stage returns false after errors; `module` is NULL then, and no other stage may follow.
//
// Reads the graph, or IR text. `define` ("B=32") counts besides -D and may be NULL, as may `vary`.
bool draft_load(const draft_subject *s, draft *t, const char *define, fe_vary *vary);
// Runs the passes that make kernels, and schedules these.
bool draft_schedule(const draft_subject *s, draft *t);
// Puts kernels in order, and runs some again where memory is to be saved. `policy` of
// passes/checkpoint.h; NULL: what the options and the graph say. `budget` in bytes; 0: likewise.
bool draft_arrange(const draft_subject *s, draft *t, const char *policy, int64_t budget);
bool draft_plan(const draft_subject *s, draft *t);

#endif
