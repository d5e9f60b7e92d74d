// plan_sort.h: what several files of the planner look at in order: times, and sizes.
#ifndef PASSES_PLAN_SORT_H
#define PASSES_PLAN_SORT_H

#include "passes/plan.h"

// An interval begins or ends.
typedef struct plan_event {
  int64_t time;
  int32_t interval; // index
  bool start;
} plan_event;
typedef struct plan_events {
  plan_event *at;
  size_t num;
} plan_events;
// Of all intervals that take memory at some time: by time, ends before starts (an interval is not live
// at `upper`), then by index.
plan_events plan_sort_events(ir_arena *a, const plan_interval *iv, size_t n);

typedef struct plan_sized {
  int64_t bytes;
  int index;
} plan_sized;
// The largest first; of equal ones that with the lower index.
void plan_sort_sizes(plan_sized *at, size_t num);

#endif
