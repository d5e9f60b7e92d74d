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

// The plan of kernels that have the same bits and make less again by themselves (without `remake`) than those of
// `than`, when it takes fewer than `bytes`: then *other is that draft, and `s` leaves the pass out from then on.
// False: it does not, and neither is touched. `define` is draft_load's.
bool budgets_other_kernels(draft_subject *s, const char *define, const ir_module *than,
                           int64_t bytes, int64_t budget, draft *other);

// Whether the plan is within the budget with --checkpoint=auto, where something else has been asked for.
bool budgets_fit_with_auto(const draft_subject *s, const draft *refused, int64_t budget);

// Whether the plan without an optional pass that makes other kernels is within the budget.
bool budgets_fit_without(const draft_subject *s, const draft *refused, const char *pass,
                         int64_t budget);

#endif
