// order_walk.c: what is live after a prefix of an order, and what one more kernel would change.
//
//   live 100   kernel { y = f(x) }   x: 30, read by nobody else; y: 20
//              during +20, after -10; if y may lie over an x of 20: during 0, after 0
//
// The rules are those of schedule.c as far as a prefix can tell: a value that the graph says is
// computed in a state takes nothing. Orders are judged by order_peak, which asks schedule.c.
#include <string.h>

#include "passes/order_parts.h"

bool order_may_take_over(const order_graph *g, int value) {
  return g->bytes[value] > 0 && !g->kept[value];
}

order_walk order_walk_new(ir_arena *a, const order_graph *g) {
  order_walk w = {.g = g};
  w.waits = IR_NEW_ARRAY(a, int, g->n + 1);
  w.left = IR_NEW_ARRAY(a, int, g->s->num_values + 1);
  for (int k = 0; k < g->n; k++)
    w.waits[k] = order_count(&g->before, k);
  for (int v = 0; v < g->s->num_values; v++)
    w.left[v] = order_count(&g->readers, v);
  return w;
}

void order_walk_copy(order_walk *to, const order_walk *from) {
  memcpy(to->waits, from->waits, sizeof(int) * (size_t)from->g->n);
  memcpy(to->left, from->left, sizeof(int) * (size_t)from->g->s->num_values);
  to->live = from->live;
  to->peak = from->peak;
}

static bool dies_with_next(const order_walk *w, int value) {
  return w->left[value] == 1 && !w->g->kept[value];
}

// Bytes of outputs that lie over dying operands.
static int64_t taken_over(const order_walk *w, int k) {
  const sched_kernel *x = &w->g->s->kernels[k];
  uint64_t taken = 0;
  int64_t bytes = 0;
  for (int out = 0; out < x->num_values; out++) {
    int v = x->first_value + out;
    sched_ins under = sched_find_under(w->g->s, k, out);
    for (int i = 0; w->g->bytes[v] && i < under.num && under.at[i] < 64; i++) {
      int in = under.at[i], value = x->in[in].value;
      if (!(taken >> in & 1) && dies_with_next(w, value) && order_may_take_over(w->g, value)) {
        taken |= UINT64_C(1) << in;
        bytes += w->g->bytes[v];
        break;
      }
    }
  }
  return bytes;
}

order_cost order_cost_of(const order_walk *w, int k) {
  const order_graph *g = w->g;
  const sched_kernel *x = &g->s->kernels[k];
  int64_t made = 0, ended = 0;
  for (int v = x->first_value; v < x->first_value + x->num_values; v++) {
    made += g->bytes[v];
    ended += w->left[v] == 0 && !g->kept[v] ? g->bytes[v] : 0;
  }
  for (int i = g->reads.at[k]; i < g->reads.at[k + 1]; i++)
    ended += dies_with_next(w, g->reads.of[i]) ? g->bytes[g->reads.of[i]] : 0;
  int64_t over = made && ended ? taken_over(w, k) : 0;
  return (order_cost){made - over + plan_align(x->k->workspace), made - ended};
}

void order_walk_step(order_walk *w, int k) {
  const order_graph *g = w->g;
  order_cost c = order_cost_of(w, k);
  w->peak = w->live + c.during > w->peak ? w->live + c.during : w->peak;
  w->live += c.after;
  for (int i = g->reads.at[k]; i < g->reads.at[k + 1]; i++)
    w->left[g->reads.of[i]]--;
  for (int i = g->after.at[k]; i < g->after.at[k + 1]; i++)
    w->waits[g->after.of[i]]--;
}

int64_t order_peak(const order_graph *g, const int *steps, int *step) {
  ir_arena *a = g->scratch;
  size_t n = (size_t)g->n;
  int64_t *live = IR_NEW_ARRAY(a, int64_t, n + 1);
  sched_lives l = sched_find_lives(g->s, a, steps, n);
  int64_t peak = sched_live_bytes(&l, n, live);
  if (step)
    *step = (int)sched_find_peak(live, peak);
  ir_arena_clear(a);
  return peak;
}
