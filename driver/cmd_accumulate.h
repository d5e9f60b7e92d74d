// cmd_accumulate.h: `--allow=accumulate`: a batch that does not fit is run as several micro-batches.
#ifndef DRIVER_CMD_ACCUMULATE_H
#define DRIVER_CMD_ACCUMULATE_H

#include "driver/draft.h"

// How the batch is to be divided: the least predicted time of a step among all that fits the budget of
// the options. Says it, and warns in `d` of what training sees of it. Nothing is divided where that is
// no faster, nor where nothing fits, of which it says why.
fe_split cmd_divide_batch(ir_arena *a, const draft_subject *s, ir_diags *d);
// After the refusal of a plan: whether --allow=accumulate would help.
void cmd_suggest_division(const draft_subject *s, int64_t budget);

#endif
