// plan_live.c: which values of a function need memory, and from which kernel to which, in the order
// that stands: the lives of schedule.h as buffers of the plan.
//
// A view outside kernels has no memory: its readers reach through it.
#include <string.h>

#include "passes/plan_text.h"

static plan_buffer as_buffer(const sched *s, const sched_life *l) {
  const ir_kernel *k = s->kernels[l->kernel].k;
  plan_buffer b = {.kind = l->kind,
                   .func = s->f,
                   .bytes = l->bytes,
                   .first = l->first,
                   .last = l->last,
                   .reuses = l->reuses};
  if (l->value < 0) {
    b.kernel = k;
  } else {
    b.node = s->values[l->value].node;
    b.name = b.node->name;
  }
  return b;
}

plan_live plan_live_steps(ir_arena *a, sched *s, const int *steps, size_t num) {
  size_t ids = s->f->next_id + 1;
  plan_live out = {.f = s->f, .buffer_of = IR_NEW_ARRAY(a, int, ids)};
  out.in_place = IR_NEW_ARRAY(a, const ir_state *, ids);
  memset(out.buffer_of, -1, sizeof(int) * ids);
  sched_lives l = sched_find_lives(s, a, steps, num);
  for (size_t i = 0; i < l.at.num; i++) {
    if (l.at.at[i].value >= 0)
      out.buffer_of[s->values[l.at.at[i].value].node->id] = (int)i;
    IR_PUSH(a, out.buffers, as_buffer(s, &l.at.at[i]));
  }
  for (size_t i = 0; i < l.host.num; i++)
    IR_PUSH(a, out.host, as_buffer(s, &l.host.at[i]));
  for (int v = 0; v < s->num_values; v++)
    out.in_place[s->values[v].node->id] = l.in_place[v];
  for (size_t i = 0; i < l.copied.num; i++)
    IR_PUSH(a, out.copied, l.copied.at[i]);
  return out;
}

plan_live plan_live_func(ir_arena *a, ir_func *f) {
  sched *s = sched_new(a, f);
  return plan_live_steps(a, s, sched_order_as_it_is(s, a), f->kernels.num);
}

plan_joined plan_join_reused(ir_arena *a, const plan_live *l) {
  plan_joined j = {.at = IR_NEW_ARRAY(a, plan_interval, l->buffers.num + 1),
                   .of = IR_NEW_ARRAY(a, int, l->buffers.num + 1)};
  for (size_t i = 0; i < l->buffers.num; i++) {
    const plan_buffer *b = &l->buffers.at[i];
    j.of[i] = b->reuses < 0 ? (int)j.num : j.of[b->reuses];
    if (b->reuses < 0)
      j.at[j.num++] = (plan_interval){.lower = b->first, .size = plan_align(b->bytes)};
    plan_interval *x = &j.at[j.of[i]];
    if (b->last + 1 > x->upper)
      x->upper = b->last + 1;
  }
  return j;
}

int64_t plan_live_bytes(const plan_buffer *at, size_t num, const ir_func *f, int64_t *live) {
  int64_t now = 0, most = 0;
  for (size_t i = 0; i < num; i++)
    if (plan_is_temp_of(&at[i], f)) {
      live[at[i].first + (at[i].reuses >= 0)] += plan_align(at[i].bytes);
      live[at[i].last + 1] -= plan_align(at[i].bytes);
    }
  for (size_t k = 0; k < f->kernels.num; k++) {
    live[k] = now += live[k];
    most = now > most ? now : most;
  }
  return most;
}
