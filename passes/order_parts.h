// order_parts.h: what the files of the pass `order` share; nobody else but its test includes it.
//
//   order.c        the pass: which orders are tried, which one is taken
//   order_graph.c  what must come before what; how many bytes which value takes
//   order_walk.c   a prefix of an order: what is live after it, what one more kernel would change
//   order_lists.c  orders made in one go, from the first kernel on or from the last one back
//   order_beam.c   orders made by a search that follows several prefixes at a time
//   order_moves.c  an order made better by moving single kernels away from its peak
//
// All of them count what the plan will count (schedule.h), and steps instead of time.
#ifndef PASSES_ORDER_PARTS_H
#define PASSES_ORDER_PARTS_H

#include "passes/plan_parts.h"
#include "passes/schedule.h"

// Lists of numbers: those of i are of[at[i]] .. of[at[i + 1] - 1].
typedef struct order_sets {
  int *at, *of;
} order_sets;

typedef struct order_graph {
  ir_arena *arena;
  ir_arena *scratch; // of one measurement
  sched *s;
  int n;              // kernels
  order_sets after;   // [kernel] kernels that come after it
  order_sets before;  // [kernel] kernels that come before it
  order_sets reads;   // [kernel] values, each once
  order_sets readers; // [value] kernels, each once
  int64_t *bytes;     // [value] as the plan rounds them; 0: it is computed in a state
  bool *kept;         // [value] needed after the last kernel
  int64_t least;      // no order has a lower peak
} order_graph;

// Of `s`, which it reads, and which has to stay as long as it does.
order_graph *order_graph_new(ir_arena *a, sched *s);
void order_graph_free(order_graph *g); // its scratch; the rest is of `a`

// How many numbers the list of i has.
static inline int order_count(const order_sets *s, int i) {
  return s->at[i + 1] - s->at[i];
}

// An operand's memory goes to an output that may lie over it (sched_find_under), if it dies there.
bool order_may_take_over(const order_graph *g, int value);

// --- a prefix of an order ------------------------------------------------------------------------
typedef struct order_walk {
  const order_graph *g;
  int *waits; // [kernel] kernels that it still waits for
  int *left;  // [value] kernels that will still read it
  int64_t live, peak;
} order_walk;

// What kernel `k` would change: bytes while it runs and after it, beside those that are live.
typedef struct order_cost {
  int64_t during, after;
} order_cost;

order_walk order_walk_new(ir_arena *a, const order_graph *g); // the empty prefix
// `to` is another walk of the same graph.
void order_walk_copy(order_walk *to, const order_walk *from);
// Of a kernel that waits for none. It is not run yet: order_walk_step does that.
order_cost order_cost_of(const order_walk *w, int k);
void order_walk_step(order_walk *w, int k);

// --- whole orders --------------------------------------------------------------------------------
typedef enum order_rule {
  ORDER_EARLY,  // that of the source, but what sets much memory free comes as soon as it may
  ORDER_SOURCE, // that of the source, as far as states allow it
  ORDER_NET,    // what leaves the fewest bytes first
  ORDER_DEPTH,  // what sets memory free first, then what has become possible last
} order_rule;

// They fill steps[0..n) with the graph's kernels.
void order_forwards(const order_graph *g, order_rule rule, int *steps);
// From the last kernel back: the one before takes the fewest bytes.
void order_backwards(const order_graph *g, int *steps);
// False: too many kernels may run at a time, and there is no order.
bool order_beam(const order_graph *g, int *steps);
// The peak of an order by the rules of the plan; `step`: where it is first reached (may be NULL).
int64_t order_peak(const order_graph *g, const int *steps, int *step);
// Changes `steps`, of the given peak, into an order with a lower one, if it finds one. Returns the peak that it has
// then (bytes).
int64_t order_move_kernels(const order_graph *g, int *steps, int64_t peak);

#endif
