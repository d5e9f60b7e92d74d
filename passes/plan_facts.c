// plan_facts.c: see plan_facts.h.
//
// The bound L_ws of any order: while a kernel runs, its operands, results and workspace have memory,
// besides what has it for the whole run. An output may lie over an input of its size in some other
// order, and a value that is written to a state may be computed in it, so that neither counts. That is
// less than the least of order_graph.c, which asks what a kernel may really overwrite: a proof for people
// should not hang on the planner's own rules, and theirs ends a search of orders of one graph.
#include "passes/plan_facts.h"

#include "passes/offload.h"
#include "passes/plan_text.h"

#include <string.h>

typedef struct survey {
  ir_arena *arena;
  const ir_func *f;
  bool *stored;                 // [node id] written to a state
  IR_VEC(const ir_node *) read; // operands of the kernel at hand that have memory of their own
} survey;

double plan_ratio(double a, double b) {
  return b > 0 ? a / b : 1;
}

// --- what one kernel needs -------------------------------------------------------------------------
static survey survey_func(ir_arena *a, const ir_func *f) {
  survey s = {.arena = a, .f = f, .stored = IR_NEW_ARRAY(a, bool, f->next_id + 1)};
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_WRITE)
      s.stored[f->nodes.at[i]->in[0]->id] = true;
  return s;
}

// What a kernel makes; NULL: it takes no memory of its own on the device, or need not.
static const ir_node *buffer_of(const survey *s, const ir_node *n) {
  n = dom_owner(n);
  bool host = n->kernel && n->kernel->family == IR_FAMILY_SEND;
  return !n->kernel || host || s->stored[n->id] ? NULL : n;
}

static bool is_read(const survey *s, const ir_node *buffer) {
  for (size_t i = 0; i < s->read.num; i++)
    if (s->read.at[i] == buffer)
      return true;
  return false;
}

// Takes an operand of so many bytes from the list.
static bool take_place(survey *s, int64_t bytes) {
  for (size_t i = 0; i < s->read.num; i++)
    if (ir_bytes(&s->read.at[i]->type) == bytes) {
      s->read.at[i] = s->read.at[--s->read.num];
      return true;
    }
  return false;
}

static int64_t kernel_bytes(survey *s, const ir_kernel *k) {
  dom_io io = dom_kernel_io(s->arena, k);
  int64_t bytes = k->workspace > 0 ? plan_align(k->workspace) : 0;
  s->read.num = 0;
  for (size_t i = 0; i < io.in.num; i++) {
    const ir_node *b = buffer_of(s, io.in.at[i]);
    if (!b || is_read(s, b))
      continue;
    IR_PUSH(s->arena, s->read, b);
    bytes += plan_align(ir_bytes(&b->type));
  }
  for (size_t i = 0; i < io.out.num; i++) {
    const ir_node *b = buffer_of(s, io.out.at[i]);
    if (b && !take_place(s, ir_bytes(&b->type)))
      bytes += plan_align(ir_bytes(&b->type));
  }
  return bytes;
}

int64_t plan_least_bytes(ir_module *m) {
  ir_arena *a = ir_arena_new();
  int64_t most = 0;
  for (size_t i = 0; i < m->funcs.num; i++) {
    survey s = survey_func(a, m->funcs.at[i]);
    for (size_t k = 0; k < s.f->kernels.num; k++) {
      int64_t bytes = kernel_bytes(&s, s.f->kernels.at[k]);
      most = bytes > most ? bytes : most;
    }
  }
  ir_arena_free(a);
  return plan_whole_run_bytes(m) + most;
}

// --- functions -------------------------------------------------------------------------------------
static void take_kernel(survey *s, const ir_kernel *k, double seconds, plan_func_facts *out) {
  cost c = cost_kernel(s->arena, k);
  int64_t bytes = kernel_bytes(s, k);
  if (bytes > out->kernel_bytes)
    out->kernel_bytes = bytes;
  if (k->family == IR_FAMILY_SEND) {
    out->sends++;
    out->sent_bytes += c.bytes_written;
  }
  out->time += seconds;
  if (!k->clone_of)
    return;
  out->clones++;
  out->cloned_time += seconds;
  out->cloned.flops = cost_plus(out->cloned.flops, c.flops);
  out->cloned.bytes_read = cost_plus(out->cloned.bytes_read, c.bytes_read);
  out->cloned.bytes_written = cost_plus(out->cloned.bytes_written, c.bytes_written);
}

static plan_func_facts facts_of(ir_arena *a, const plan *p, const plan_share *share,
                                const ir_func *f) {
  plan_func_facts out = {0};
  survey s = survey_func(a, f);
  const double *seconds = cost_of_kernels(a, f);
  for (size_t k = 0; k < f->kernels.num; k++)
    take_kernel(&s, f->kernels.at[k], seconds[k], &out);
  if (out.sends)
    out.waiting = offload_waiting(a, f, seconds, offload_bandwidth(f->module));
  out.peak = plan_peak(a, p, f, &out.peak_bytes);
  plan_list live = {0};
  if (out.peak >= 0)
    live = plan_live_at(a, p, f, out.peak);
  for (size_t i = 0; i < live.num; i++)
    out.shares[share[live.at[i]]] += plan_align(p->buffers.at[live.at[i]].bytes);
  return out;
}

static void take_whole_run(const plan *p, plan_facts *x) {
  for (size_t i = 0; i < p->buffers.num; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    if (b->kind == PLAN_STATE || b->kind == PLAN_STAGING)
      x->shares[x->share[i]] += plan_align(b->bytes);
    if (x->share[i] == PLAN_SHARE_PARAMETER)
      x->parameters += ir_elements(&b->state->type);
  }
}

plan_facts plan_find_facts(ir_arena *a, const plan *p, const ir_module *m) {
  plan_facts x = {.share = plan_share_buffers(a, p), .recompute_time = 1};
  x.func = IR_NEW_ARRAY(a, plan_func_facts, m->funcs.num + 1);
  for (size_t i = 0; i < m->funcs.num; i++) {
    plan_func_facts *f = &x.func[i];
    *f = facts_of(a, p, x.share, m->funcs.at[i]);
    double again = plan_ratio(f->time, f->time - f->cloned_time);
    x.recompute_time = again > x.recompute_time ? again : x.recompute_time;
    x.bound_ws = f->kernel_bytes > x.bound_ws ? f->kernel_bytes : x.bound_ws;
    if (f->peak >= 0 && (!x.largest || f->peak_bytes > x.most.peak_bytes)) {
      x.largest = m->funcs.at[i];
      x.most = *f;
    }
  }
  x.bound_ws += p->state_bytes + p->staging_bytes;
  take_whole_run(p, &x);
  for (int s = 0; s < PLAN_NUM_SHARES; s++)
    x.shares[s] += x.most.shares[s];
  return x;
}
