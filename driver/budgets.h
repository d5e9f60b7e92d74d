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

// How a plan is asked for.
typedef struct budgets_asked {
  const char *define; // as of draft_load
  const char *policy; // as of draft_arrange
  int64_t budget;     // likewise
} budgets_asked;

// The plan of kernels that have the same bits and make less again by themselves than those of `than` (draft_subject.
// remakes_little), when it takes fewer than `bytes`: then *other is that draft, and `s` says so from then on.
// False: it does not, and neither is touched.
bool budgets_other_kernels(draft_subject *s, const budgets_asked *x, const ir_module *than,
                           int64_t bytes, draft *other);

// draft_arrange and draft_plan of `t`, which is scheduled. Where its plan takes more than `limit` bytes, and there is any hope,
// and less of other kernels: `t` is that draft then, and `s` says so. limit 0: none. False: it has errors.
bool budgets_plan(draft_subject *s, const budgets_asked *x, int64_t limit, draft *t);

// Whether the plan is within the budget with --checkpoint=auto, where something else has been asked for.
bool budgets_fit_with_auto(const draft_subject *s, const draft *refused, int64_t budget);

// Whether the plan without an optional pass that makes other kernels is within the budget.
bool budgets_fit_without(const draft_subject *s, const draft *refused, const char *pass,
                         int64_t budget);

#endif
