// plan_diff.h: what differs between two plans.
#ifndef DRIVER_PLAN_DIFF_H
#define DRIVER_PLAN_DIFF_H

#include "driver/plan_file.h"

// One name in both lists, or in one of them.
typedef struct plan_change {
  const plan_item *a, *b; // NULL: it is not there
} plan_change;

// The changes of a list: of size first, the greatest difference first.
typedef struct plan_changes {
  IR_VEC(plan_change) list; // sizes that differ; names that only one has
  size_t others;            // of equal size, but otherwise not the same
  bool reordered;           // what both have comes in another order
} plan_changes;

typedef struct plan_func_diff {
  const char *name;
  bool in_a, in_b;
  plan_changes figures, shares, kernels, buffers, host, copies;
} plan_func_diff;

typedef struct plan_diff {
  const plan_file *a, *b;
  bool same;
  plan_changes figures, shares, buffers; // buffers: of the whole run
  IR_VEC(plan_func_diff) funcs;          // that differ, or are in one plan only
} plan_diff;

plan_diff plan_diff_find(ir_arena *a, const plan_file *x, const plan_file *y);
// What changed, for people: at most PLAN_DIFF_SHOWN names of each kind, and how many more there are.
enum { PLAN_DIFF_SHOWN = 12 };
void plan_diff_print(const plan_diff *d, ir_buf *out);
void plan_diff_print_json(const plan_diff *d, ir_buf *out); // all of it; docs/memory.md

#endif
