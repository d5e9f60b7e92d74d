// trial.h: what a compilation would need: the real passes, the real schedules and the real plan, and
// no code. For commands that ask before they build, or build nothing.
#ifndef FRONTEND_TRIAL_H
#define FRONTEND_TRIAL_H

#include "codegen/program.h"
#include "frontend/frontend.h"
#include "frontend/options.h"

// What is tried.
typedef struct trial_subject {
  const options *o;
  const cg_target *target;
  const ir_source *source;
  fe_split split; // of the batch, in graph files
} trial_subject;

typedef struct trial {
  ir_arena *arena; // of this trial alone
  ir_diags *diags;
  ir_module *module; // NULL: there were errors
  plan *plan;        // after trial_plan
} trial;

// Reads the graph, or IR text. `define` ("B=32") counts besides -D and may be NULL, as may `vary`.
trial trial_load(const trial_subject *s, const char *define, fe_vary *vary);
// Runs the passes up to those for memory, and schedules the kernels. False: there were errors, and the
// module is NULL.
bool trial_schedule(const trial_subject *s, trial *t);
// Runs the passes for memory, and plans. `policy` of passes/checkpoint.h; NULL: what the options and the
// graph say. `budget` in bytes; 0: none.
bool trial_plan(const trial_subject *s, trial *t, const char *policy, int64_t budget);
void trial_free(trial *t);

// What every compilation checks. --precision changes what the module says of it; an error where its
// kernels are made already.
void trial_set_precision(const options *o, ir_module *m, ir_diags *d);
// False, with an error: IR text has kernels of families that the target has no generators for.
bool trial_has_generators(const cg_target *target, const ir_module *m, ir_diags *d);

#endif
