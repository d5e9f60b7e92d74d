// plan_text.c: facts about a plan that both of its printed forms show.
#include "passes/plan_text.h"

#include "passes/plan_sort.h"

const char *const plan_kind_names[] = {"state",     "staging", "temporary",
                                       "workspace", "result",  "host"};

bool plan_is_temp_of(const plan_buffer *b, const ir_func *f) {
  return b->func == f && b->kind != PLAN_STAGING && b->kind != PLAN_HOST;
}

// States are the first buffers, by offset.
const ir_state *plan_state_at(const plan *p, int64_t offset) {
  size_t lo = 0, hi = p->buffers.num;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (p->buffers.at[mid].kind == PLAN_STATE && p->buffers.at[mid].offset < offset)
      lo = mid + 1;
    else
      hi = mid;
  }
  const plan_buffer *b = lo < p->buffers.num ? &p->buffers.at[lo] : NULL;
  return b && b->kind == PLAN_STATE && b->offset == offset ? b->state : NULL;
}

int plan_peak(ir_arena *a, const plan *p, const ir_func *f, int64_t *bytes) {
  int64_t *live = IR_NEW_ARRAY(a, int64_t, f->kernels.num + 2);
  *bytes = plan_live_bytes(p->buffers.at, p->buffers.num, f, live);
  return f->kernels.num ? (int)sched_find_peak(live, *bytes) : -1;
}

plan_list plan_live_at(ir_arena *a, const plan *p, const ir_func *f, int k) {
  IR_VEC(plan_sized) v = {0};
  for (size_t i = 0; i < p->buffers.num; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    bool later = b->reuses >= 0 && b->first == k; // still the memory of the one before
    if (plan_is_temp_of(b, f) && b->first <= k && k <= b->last && !later) {
      plan_sized s = {b->bytes, (int)i};
      IR_PUSH(a, v, s);
    }
  }
  plan_list out = {0};
  plan_sort_sizes(v.at, v.num);
  for (size_t i = 0; i < v.num; i++)
    IR_PUSH(a, out, v.at[i].index);
  return out;
}

const char *plan_kernel_ops(ir_arena *a, const ir_kernel *k) {
  ir_buf b = ir_buf_new(a);
  for (size_t i = 0; i < k->nodes.num; i++)
    ir_buf_printf(&b, "%s%s", i ? "+" : "", ir_ops[k->nodes.at[i]->op].name);
  return ir_buf_str(&b);
}
