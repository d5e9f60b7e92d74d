// cmd_accumulate.h: `--allow=accumulate`: a batch that does not fit is run as several micro-batches.
#ifndef FRONTEND_CMD_ACCUMULATE_H
#define FRONTEND_CMD_ACCUMULATE_H

#include "frontend/trial.h"

// How the batch is to be divided: the least predicted time of a step among all that fits the budget of
// the options. Says it, and warns in `d` of what training sees of it. Nothing is divided where that is
// no faster, or where nothing fits.
fe_split cmd_divide_batch(ir_arena *a, const trial_subject *s, ir_diags *d);
// After the refusal of a plan: what --allow=accumulate would do, or why it did not help.
void cmd_say_divided(const trial_subject *s, int64_t budget);

#endif
