// order.c: puts kernels in the order in which they run.
//
// Several orders are made (order_lists.c, order_beam.c), all of which let the readers of a state run
// before the kernel that overwrites it, where that closes no cycle (order_graph.c). The peak of
// each is measured by the rules of the plan (schedule.c), with that of the order as it stands. The
// first in this list is taken whose peak is within 1/128, or 1 KB, of the lowest, but none with a
// higher peak than the order that stands:
//
//   early     the order of the source, but a kernel that frees at least 4 KB more than it takes, or
//             only finishes states, runs as soon as it may: a weight's gradient right after the last
//             use of what it is made of; so do those that free as much together. Ends lives early, finds operands in caches, and leaves
//             small kernels of one kind side by side, where they become one launch
//   moved     the same with single kernels moved away from the peak (order_moves.c)
//   source    the order of the source
//   as it is  the same without regard to states
//   beam      prefixes with the lowest peaks, several at a time; the same with kernels moved
//   net, depth, backwards     list scheduling by other rules
//
// Needs: pass_fuse; for the final order ir_kernel.workspace, which scheduling finds out. Keeps: kernels
// and their members; nodes are listed anew in the order of kernels. Near-linear: all searches have
// bounds that shrink with the number of kernels.
#include <string.h>

#include "passes/fuse.h"
#include "passes/order_parts.h"

enum {
  // What a better peak must save to be worth an order that is worse for caches and launches: a part
  // of the peak, and bytes.
  WORTHWHILE = 128,
  WORTHWHILE_BYTES = 1024,
  ROUNDS = 3, // an order may be a better start than the one that it was made from
  MOST_ORDERS = 9,
};

typedef struct candidate {
  int *steps;
  int64_t peak;
} candidate;

typedef struct orders {
  order_graph *g;
  candidate at[MOST_ORDERS];
  int num, as_it_is;
} orders;

static int *add(orders *o) {
  candidate *c = &o->at[o->num++];
  c->steps = IR_NEW_ARRAY(o->g->arena, int, o->g->n + 1);
  return c->steps;
}

static void measure(orders *o) {
  candidate *c = &o->at[o->num - 1];
  c->peak = order_peak(o->g, c->steps, NULL);
}

static void add_as_it_is(orders *o) {
  int *steps = add(o);
  o->as_it_is = o->num - 1;
  for (int k = 0; k < o->g->n; k++)
    steps[k] = k;
  measure(o);
}

static void add_forwards(orders *o, order_rule rule) {
  order_forwards(o->g, rule, add(o));
  measure(o);
}

static int64_t lowest(const orders *o) {
  int64_t peak = o->at[0].peak;
  for (int i = 1; i < o->num; i++)
    peak = o->at[i].peak < peak ? o->at[i].peak : peak;
  return peak;
}

// Of two peaks this far apart, the lower one is no better.
static int64_t tolerance(int64_t peak) {
  return peak / WORTHWHILE > WORTHWHILE_BYTES ? peak / WORTHWHILE : WORTHWHILE_BYTES;
}

// No better order can be worth the search for it.
static bool is_enough(const orders *o) {
  return lowest(o) - tolerance(lowest(o)) <= o->g->least;
}

// Of the last order of the list.
static void add_moved(orders *o) {
  const candidate *from = &o->at[o->num - 1];
  int64_t peak = from->peak;
  int *steps = add(o);
  memcpy(steps, from->steps, sizeof(int) * (size_t)o->g->n);
  o->at[o->num - 1].peak = order_move_kernels(o->g, steps, peak);
}

static void add_orders(orders *o) {
  add_forwards(o, ORDER_EARLY);
  add_moved(o);
  add_forwards(o, ORDER_SOURCE);
  add_as_it_is(o);
  if (is_enough(o))
    return;
  if (order_beam(o->g, add(o))) {
    measure(o);
    add_moved(o);
  } else {
    o->num--;
  }
  add_forwards(o, ORDER_NET);
  add_forwards(o, ORDER_DEPTH);
  order_backwards(o->g, add(o));
  measure(o);
}

static const candidate *choose(const orders *o) {
  int64_t most = lowest(o) + tolerance(lowest(o));
  int i = 0;
  while (o->at[i].peak > most || o->at[i].peak > o->at[o->as_it_is].peak)
    i++;
  return &o->at[i];
}

static bool apply(ir_func *f, const int *steps, ir_arena *a) {
  size_t n = f->kernels.num;
  ir_kernel **was = IR_NEW_ARRAY(a, ir_kernel *, n);
  memcpy(was, f->kernels.at, sizeof *was * n);
  bool changed = false;
  for (size_t t = 0; t < n; t++) {
    changed |= steps[t] != (int)t;
    f->kernels.at[t] = was[steps[t]];
    f->kernels.at[t]->id = (uint32_t)t;
  }
  return changed;
}

static bool improve(ir_func *f) {
  ir_arena *a = ir_arena_new();
  orders o = {.g = order_graph_new(a, sched_new(a, f))};
  add_orders(&o);
  bool changed = apply(f, choose(&o)->steps, a);
  order_graph_free(o.g);
  ir_arena_free(a);
  return changed;
}

static bool order_func(ir_func *f) {
  bool changed = false;
  for (size_t k = 0; k < f->kernels.num; k++)
    f->kernels.at[k]->id = (uint32_t)k;
  if (f->kernels.num == 0 || f->ordered)
    return false;
  for (int round = 0; round < ROUNDS && improve(f); round++)
    changed = true;
  fuse_relist(f);
  return changed;
}

bool pass_order(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, order_func);
}

static bool order_finally(ir_func *f) {
  bool changed = order_func(f) || (f->kernels.num && !f->ordered);
  f->ordered = f->kernels.num > 0;
  return changed;
}

bool pass_final_order(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, order_finally);
}
