// plan_shares.h: the bytes of a plan by what they are for.
#ifndef PASSES_PLAN_SHARES_H
#define PASSES_PLAN_SHARES_H

#include "passes/plan.h"

// Their sum is plan.arena_bytes. States are what they are; of the temporaries, which lie over each
// other, those count that hold memory at the peak of the function that needs most.
typedef struct plan_shares {
  int64_t weights;     // parameters, trained and frozen, and buffers such as running statistics
  int64_t optimizer;   // moments
  int64_t gradients;   // of parameters, also accumulated ones, and what updates are made of
  int64_t activations; // what the loss is computed from, kept for the backward pass or made again
  int64_t other;       // batches, gradients of activations, workspaces, counters, gaps
  // Besides: gradients at the time when they are most, which is after the peak as a rule, in the same
  // memory; and the number of parameters, trained and frozen.
  int64_t most_gradients, parameters;
} plan_shares;
plan_shares plan_find_shares(const plan *p, const ir_module *m);

#endif
