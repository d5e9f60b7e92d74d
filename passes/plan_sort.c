// plan_sort.c: see plan_sort.h.
#include "passes/plan_sort.h"

#include <stdlib.h>

static int compare_events(const void *pa, const void *pb) {
  const plan_event *a = pa, *b = pb;
  if (a->time != b->time)
    return a->time < b->time ? -1 : 1;
  if (a->start != b->start)
    return a->start ? 1 : -1;
  return a->interval - b->interval;
}

// An interval that is never live, or takes nothing, can be anywhere.
static bool takes_memory(const plan_interval *x) {
  return x->lower < x->upper && x->size > 0;
}

plan_events plan_sort_events(ir_arena *a, const plan_interval *iv, size_t n) {
  plan_events e = {.at = IR_NEW_ARRAY(a, plan_event, 2 * n + 1)};
  for (size_t i = 0; i < n; i++)
    if (takes_memory(&iv[i])) {
      e.at[e.num++] = (plan_event){iv[i].lower, (int32_t)i, true};
      e.at[e.num++] = (plan_event){iv[i].upper, (int32_t)i, false};
    }
  qsort(e.at, e.num, sizeof *e.at, compare_events);
  return e;
}

static int compare_sizes(const void *pa, const void *pb) {
  const plan_sized *a = pa, *b = pb;
  if (a->bytes != b->bytes)
    return a->bytes > b->bytes ? -1 : 1;
  return a->index - b->index;
}

void plan_sort_sizes(plan_sized *at, size_t num) {
  if (num > 0) // an empty list may be NULL, which qsort must not get
    qsort(at, num, sizeof *at, compare_sizes);
}
