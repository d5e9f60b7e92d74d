// budgets.h: what else may be said of a budget that a plan has not met.
#ifndef DRIVER_BUDGETS_H
#define DRIVER_BUDGETS_H

#include "driver/draft.h"

// Bytes; 0: none was found.
typedef struct budgets {
  int64_t works;   // the least budget seen that is met
  int64_t instead; // arranged for this one, the plan fits the budget that was not met
} budgets;

// Plans for other budgets than `budget`, for which the plan took `arena` bytes. Each is a whole draft:
// of graphs with many kernels fewer are made.
budgets budgets_find(const draft_subject *s, int64_t budget, int64_t arena, size_t kernels);

// Makes the draft for budget `instead`; its module says `budget`. False: it does not fit after all.
bool budgets_arrange(const draft_subject *s, draft *t, int64_t budget, int64_t instead);

#endif
