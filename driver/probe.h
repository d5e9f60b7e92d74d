// probe.h: plans of one draft, each as if it were arranged in another way.
#ifndef DRIVER_PROBE_H
#define DRIVER_PROBE_H

#include "driver/draft.h"
#include "passes/plan_facts.h"

typedef struct probe {
  // asked
  const char *policy; // of passes/checkpoint.h; NULL: what the options and the graph say
  int64_t budget;     // bytes; 0: likewise
  int64_t limit;      // bytes: where a plan takes more, other kernels are tried, too; 0: not
  // found
  int64_t bytes;                   // of the arena
  int64_t always;                  // of it, what lives for the whole run
  int64_t shares[PLAN_NUM_SHARES]; // at the peak
  int64_t most_gradients;          // at any time
  int64_t parameters;              // their number
  double again;                    // time of kernels that run again: of that of all others
  double slower;                   // the same with the time that copies to the host are waited for
} probe;

// What is found of a draft that has its plan.
probe probe_of(draft *t, probe asked);

// Fills in what is found. `t` is scheduled, or arranged already. Each plan is made by a process of its own, all at the
// same time, which has the module to itself: `t` is as it was. False, after a message: one of them failed.
bool probe_plans(const draft_subject *s, draft *t, probe *at, int num);

#endif
