// plan_wishes.c: longer lives for some values, as far as they cost nothing.
//
//   live bytes   |        peak                  a wish: c from kernel 2 on, not only from 6 on;
//                |      .------.                granted where the bytes that live stay below a
//                limit |   .--'      '--.  .--.       at every kernel that it adds
//                |---'            '--'  '---
//
// Launches that run kernels side by side want values to have memory before or after their lives
// (codegen/cuda_launches.h). Wishes are granted in their order; what shares memory with an operand
// that it overwrites keeps its life. So those that wishes name are parted first, where there is
// room for both. The packed height may grow nevertheless: plan.c then lowers the limit, or leaves
// them together.
#include "passes/plan_parts.h"

// --- parting -------------------------------------------------------------------------------------
typedef struct parter {
  plan_live l;
  int *heir;      // [buffer] the one that takes over its memory, -1
  int64_t *bytes; // [kernel] live
  int64_t most;
} parter;

static plan_live copy_lives(ir_arena *a, const plan_live *l) {
  plan_live c = *l;
  c.buffers.at = IR_NEW_ARRAY(a, plan_buffer, l->buffers.num + 1);
  for (size_t i = 0; i < l->buffers.num; i++)
    c.buffers.at[i] = l->buffers.at[i];
  return c;
}

static parter parter_new(ir_arena *a, const plan_live *l) {
  enum { SIXTEENTHS = 15 }; // of the peak
  parter p = {.l = copy_lives(a, l), .heir = IR_NEW_ARRAY(a, int, l->buffers.num + 1)};
  p.bytes = IR_NEW_ARRAY(a, int64_t, l->f->kernels.num + 2);
  for (size_t i = 0; i < l->buffers.num; i++)
    p.heir[i] = -1;
  for (size_t i = 0; i < l->buffers.num; i++)
    if (l->buffers.at[i].reuses >= 0)
      p.heir[l->buffers.at[i].reuses] = (int)i;
  p.most = plan_live_bytes(l->buffers.at, l->buffers.num, l->f, p.bytes) / 16 * SIXTEENTHS;
  return p;
}

// Buffer `at` gets memory of its own, beside that of the operand that it would be computed over.
static void part(parter *p, int at) {
  plan_buffer *b = at < 0 ? NULL : &p->l.buffers.at[at];
  if (!b || b->reuses < 0 || p->bytes[b->first] + plan_align(b->bytes) > p->most)
    return;
  p->bytes[b->first] += plan_align(b->bytes);
  p->heir[b->reuses] = -1;
  b->reuses = -1;
}

plan_live plan_part_wished(ir_arena *a, const plan_live *l, const plan_wishes *w) {
  parter p = parter_new(a, l);
  for (size_t i = 0; i < w->num; i++) {
    int at = w->at[i].func == l->f ? l->buffer_of[w->at[i].node->id] : -1;
    if (at < 0)
      continue;
    part(&p, at);
    part(&p, p.heir[at]);
  }
  return p.l;
}

// --- granting ------------------------------------------------------------------------------------
typedef struct granter {
  plan_live l;
  const plan_joined *joined;
  int *sharers;   // [interval] buffers
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
  if (at < 0 || g->sharers[g->joined->of[at]] > 1)
    return;
  plan_buffer *b = &g->l.buffers.at[at];
  plan_interval *x = &g->joined->at[g->joined->of[at]];
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

plan_live plan_grant_wishes(ir_arena *a, const plan_live *l, const plan_wishes *w, int64_t most,
                            const plan_joined *j) {
  granter g = {.joined = j, .most = most, .sharers = IR_NEW_ARRAY(a, int, j->num + 1)};
  g.l = copy_lives(a, l);
  for (size_t i = 0; i < l->buffers.num; i++)
    g.sharers[j->of[i]]++;
  g.bytes = IR_NEW_ARRAY(a, int64_t, l->f->kernels.num + 1);
  for (size_t i = 0; i < j->num; i++)
    add_life(&g, j->at[i].lower, j->at[i].upper, j->at[i].size);
  for (size_t i = 0; i < w->num; i++)
    if (w->at[i].func == l->f)
      grant(&g, &w->at[i]);
  return g.l;
}
