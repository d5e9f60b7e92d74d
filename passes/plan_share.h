// plan_share.h: what the bytes of a plan are for.
#ifndef PASSES_PLAN_SHARE_H
#define PASSES_PLAN_SHARE_H

#include "passes/plan.h"

// docs/memory.md says which buffer is what.
typedef enum plan_share {
  PLAN_SHARE_PARAMETER,
  PLAN_SHARE_GRADIENT,
  PLAN_SHARE_MOMENT,
  PLAN_SHARE_ACTIVATION,
  PLAN_SHARE_STATE, // counters, the seed, flags, running statistics
  PLAN_SHARE_STAGING,
  PLAN_SHARE_WORKSPACE,
  PLAN_SHARE_RESULT,
  PLAN_SHARE_TEMPORARY,
  PLAN_NUM_SHARES
} plan_share;
extern const char *const plan_share_names[PLAN_NUM_SHARES]; // "parameter", "gradient", ...

// The share of each buffer, by its index in p->buffers.
plan_share *plan_share_buffers(ir_arena *a, const plan *p);

#endif
