// plan_live.c: which values of a function need memory, and from which kernel to which, in the order
// that stands: the lives of schedule.h as buffers of the plan.
//
// A view outside kernels has no memory: its readers reach through it.
#include <string.h>

#include "passes/plan_parts.h"
#include "passes/schedule.h"

static plan_buffer as_buffer(ir_arena *a, const sched *s, const sched_life *l) {
  const ir_kernel *k = s->kernels[l->kernel].k;
  plan_buffer b = {.kind = l->kind,
                   .func = s->f,
                   .bytes = l->bytes,
                   .first = l->first,
                   .last = l->last,
                   .reuses = l->reuses};
  if (l->value < 0) {
    b.kernel = k;
    b.name = ir_format(a, "%s.workspace", k->name);
  } else {
    b.node = s->values[l->value].node;
    b.name = b.node->name;
  }
  return b;
}

plan_live plan_live_func(ir_arena *a, ir_func *f) {
  size_t ids = f->next_id + 1;
  plan_live out = {.f = f, .buffer_of = IR_NEW_ARRAY(a, int, ids)};
  out.in_place = IR_NEW_ARRAY(a, const ir_state *, ids);
  memset(out.buffer_of, -1, sizeof(int) * ids);
  sched *s = sched_new(a, f);
  int *steps = IR_NEW_ARRAY(a, int, s->num_kernels + 1);
  for (int k = 0; k < s->num_kernels; k++)
    steps[k] = k;
  sched_lives l = sched_find_lives(s, a, steps, (size_t)s->num_kernels);
  for (size_t i = 0; i < l.at.num; i++) {
    if (l.at.at[i].value >= 0)
      out.buffer_of[s->values[l.at.at[i].value].node->id] = (int)i;
    IR_PUSH(a, out.buffers, as_buffer(a, s, &l.at.at[i]));
  }
  for (int v = 0; v < s->num_values; v++)
    out.in_place[s->values[v].node->id] = l.in_place[v];
  for (size_t i = 0; i < l.copied.num; i++)
    IR_PUSH(a, out.copied, l.copied.at[i]);
  return out;
}
