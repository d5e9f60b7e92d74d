// plan_wishes.c: longer lives for some values, as far as they cost nothing.
//
//   live bytes   |        peak                  a wish: c from kernel 2 on, not only from 6 on;
//                |      .------.                granted where the bytes that live stay below a
//                limit |   .--'      '--.  .--.       at every kernel that it adds
//                |---'            '--'  '---
//
// Launches that run kernels side by side want values to have memory before or after their lives
// (codegen/cuda_launches.h). Wishes are granted in their order; what shares memory with an operand
// that it overwrites keeps its life. The packed height may grow nevertheless: plan.c then lowers
// the limit.
#include "passes/plan_parts.h"

typedef struct granter {
  plan_live l;
  const int *unit;
  int *sharers; // [interval] buffers
  plan_interval *iv;
  int64_t *bytes; // [kernel] live
  int64_t most;
} granter;

static void add_life(granter *g, int64_t from, int64_t to, int64_t bytes) {
  for (int64_t k = from; k < to; k++)
    g->bytes[k] += bytes;
}

static bool fits(const granter *g, int64_t from, int64_t to, int64_t bytes) {
  for (int64_t k = from; k < to; k++)
    if (g->bytes[k] + bytes > g->most)
      return false;
  return true;
}

static void grant(granter *g, const plan_wish *w) {
  int at = g->l.buffer_of[w->node->id];
  if (at < 0 || g->sharers[g->unit[at]] > 1)
    return;
  plan_buffer *b = &g->l.buffers.at[at];
  plan_interval *x = &g->iv[g->unit[at]];
  int64_t lower = w->from < x->lower ? w->from : x->lower;
  int64_t upper = w->to + 1 > x->upper ? w->to + 1 : x->upper;
  if (!fits(g, lower, x->lower, x->size) || !fits(g, x->upper, upper, x->size))
    return;
  add_life(g, lower, x->lower, x->size);
  add_life(g, x->upper, upper, x->size);
  x->lower = lower;
  x->upper = upper;
  b->first = (int)lower;
  b->last = (int)upper - 1;
}

static void copy_buffers(ir_arena *a, granter *g, const plan_live *l) {
  g->l = *l;
  g->l.buffers.at = IR_NEW_ARRAY(a, plan_buffer, l->buffers.num + 1);
  for (size_t i = 0; i < l->buffers.num; i++) {
    g->l.buffers.at[i] = l->buffers.at[i];
    g->sharers[g->unit[i]]++;
  }
}

plan_live plan_grant_wishes(ir_arena *a, const plan_live *l, const plan_wishes *w, int64_t most,
                            const int *unit, plan_interval *iv, size_t num) {
  granter g = {.unit = unit, .iv = iv, .most = most, .sharers = IR_NEW_ARRAY(a, int, num + 1)};
  copy_buffers(a, &g, l);
  g.bytes = IR_NEW_ARRAY(a, int64_t, l->f->kernels.num + 1);
  for (size_t i = 0; i < num; i++)
    add_life(&g, iv[i].lower, iv[i].upper, iv[i].size);
  for (size_t i = 0; i < w->num; i++)
    if (w->at[i].func == l->f)
      grant(&g, &w->at[i]);
  return g.l;
}
