// budgets.h: what else may be said of a budget that a plan has not met.
#ifndef DRIVER_BUDGETS_H
#define DRIVER_BUDGETS_H

#include "driver/draft.h"

// Plans for other budgets than `budget`, which `refused` does not meet. Returns the least seen that is met; 0:
// none. A plan for one of them may fit `budget`: then *instead is that draft, whose module says `budget`,
// and the search ends; else it has no arena. Each try is a whole draft: of graphs with many kernels fewer
// are made. `define` is draft_load's.
int64_t budgets_find(const draft_subject *s, const char *define, const draft *refused,
                     int64_t budget, draft *instead);

// Whether the plan without an optional pass that makes other kernels, or has them store other values, is within the budget.
bool budgets_fit_without(const draft_subject *s, const draft *refused, const char *pass,
                         int64_t budget);

#endif
