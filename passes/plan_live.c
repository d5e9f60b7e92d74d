// plan_live.c: which values of a function need memory, and from which kernel to which.
//
//   kernel 0 matmul { %p }            p   [0, 1]
//   kernel 1 loop   { %h }            h   [1, 3]   in place of p: h[i] needs p[i] only, p dies
//   kernel 2 matmul { %dw }
//   kernel 3 loop   { %w.new }        no buffer: computed in @w, which nobody reads later
//
// A view outside kernels has no memory: its readers reach through it.
#include <string.h>

#include "passes/plan_parts.h"

typedef struct live {
  ir_arena *arena;
  plan_live *out;
  dom_io *io;     // [kernel]
  int *last_read; // [state id] last kernel that reads it, -1
  bool *kept;     // [node id] needed after the last kernel
} live;

static plan_buffer *buffer_of(const plan_live *l, const ir_node *n) {
  int i = l->buffer_of[n->id];
  return i < 0 ? NULL : &l->buffers.at[i];
}

// --- writes --------------------------------------------------------------------------------------
static void find_last_reads(live *v) {
  for (size_t k = 0; k < v->out->f->kernels.num; k++)
    for (size_t i = 0; i < v->io[k].in.num; i++)
      if (v->io[k].in.at[i]->op == IR_READ)
        v->last_read[v->io[k].in.at[i]->state->id] = (int)k;
}

static const ir_node *read_by(const dom_io *io, const ir_state *s) {
  for (size_t i = 0; i < io->in.num; i++)
    if (io->in.at[i]->op == IR_READ && io->in.at[i]->state == s)
      return io->in.at[i];
  return NULL;
}

// All readers are before the writer, or are the writer itself at the same elements. A value that
// already went to another state stays there.
static bool can_be_in_place(const live *v, const ir_node *write) {
  const ir_node *value = write->in[0];
  int k = (int)value->kernel->id;
  if (v->out->in_place[value->id] || v->last_read[write->state->id] > k)
    return false;
  const ir_node *own = read_by(&v->io[k], write->state);
  return !own || plan_may_overwrite(v->arena, value->kernel, own, value);
}

static void decide_writes(live *v) {
  ir_func *f = v->out->f;
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    if (n->op != IR_WRITE)
      continue;
    BUG_IF(!n->in[0]->kernel, "write @%s of a value without memory: %s (pass_own_outputs)",
           n->state->name, n->in[0]->name);
    if (can_be_in_place(v, n))
      v->out->in_place[n->in[0]->id] = n->state;
    else
      IR_PUSH(v->arena, v->out->copied, n);
  }
}

// --- buffers -------------------------------------------------------------------------------------
static void add_buffer(live *v, plan_buffer b) {
  if (b.node)
    v->out->buffer_of[b.node->id] = (int)v->out->buffers.num;
  IR_PUSH(v->arena, v->out->buffers, b);
}

static void add_outputs(live *v, const ir_kernel *k) {
  const dom_io *io = &v->io[k->id];
  for (size_t i = 0; i < io->out.num; i++) {
    ir_node *n = io->out.at[i];
    if (!v->out->in_place[n->id])
      add_buffer(v, (plan_buffer){.name = n->name,
                                  .kind = PLAN_TEMP,
                                  .func = v->out->f,
                                  .node = n,
                                  .bytes = ir_bytes(&n->type),
                                  .first = (int)k->id,
                                  .last = (int)k->id,
                                  .reuses = -1});
  }
  if (k->workspace > 0)
    add_buffer(v, (plan_buffer){.name = ir_format(v->arena, "%s.workspace", k->name),
                                .kind = PLAN_WORKSPACE,
                                .func = v->out->f,
                                .kernel = k,
                                .bytes = k->workspace,
                                .first = (int)k->id,
                                .last = (int)k->id,
                                .reuses = -1});
}

static void extend_to_readers(live *v) {
  for (size_t k = 0; k < v->out->f->kernels.num; k++)
    for (size_t i = 0; i < v->io[k].in.num; i++) {
      const ir_node *n = dom_owner(v->io[k].in.at[i]);
      plan_buffer *b = n->kernel ? buffer_of(v->out, n) : NULL;
      BUG_IF(n->kernel && !b && !v->out->in_place[n->id], "%s reads %s, which has no memory",
             v->out->f->kernels.at[k]->name, n->name);
      BUG_IF(n->kernel && n->kernel->id >= k, "%s reads %s before it is computed",
             v->out->f->kernels.at[k]->name, n->name);
      if (b)
        b->last = (int)k;
    }
}

// Results, and values that are copied to states when the function ends.
static void extend_to_end(live *v, const ir_node *n, plan_kind kind) {
  plan_buffer *b = buffer_of(v->out, n);
  BUG_IF(!b && !v->out->in_place[n->id], "result %s has no memory (pass_own_outputs)", n->name);
  if (!b)
    return;
  b->kind = kind;
  v->kept[n->id] = true;
  b->last = (int)v->out->f->kernels.num - 1;
}

static void extend_outputs(live *v) {
  for (size_t i = 0; i < v->out->copied.num; i++)
    extend_to_end(v, v->out->copied.at[i]->in[0], PLAN_TEMP);
  for (size_t i = 0; i < v->out->f->results.num; i++)
    extend_to_end(v, v->out->f->results.at[i].node, PLAN_RESULT);
}

// --- in-place reuse ------------------------------------------------------------------------------
static bool dies_here(const live *v, const ir_node *in, const ir_kernel *k, const plan_buffer *b) {
  const plan_buffer *x = in->kernel ? buffer_of(v->out, in) : NULL;
  return x && !v->kept[in->id] && x->last == (int)k->id && x->bytes == b->bytes;
}

static bool is_taken(const live *v, const dom_io *io, int buffer) {
  for (size_t i = 0; i < io->out.num; i++) {
    const plan_buffer *b = buffer_of(v->out, io->out.at[i]);
    if (b && b->reuses == buffer)
      return true;
  }
  return false;
}

// The first dying input that output `n` may be computed over.
static void reuse_input(live *v, const ir_kernel *k, const domain *d, plan_buffer *b) {
  const dom_io *io = &v->io[k->id];
  for (size_t i = 0; i < io->in.num; i++) {
    const ir_node *in = io->in.at[i];
    int x = v->out->buffer_of[in->id];
    if (dies_here(v, in, k, b) && !is_taken(v, io, x) && plan_loop_may_overwrite(d, in, b->node)) {
      b->reuses = x;
      return;
    }
  }
}

static bool has_candidate(const live *v, const ir_kernel *k) {
  const dom_io *io = &v->io[k->id];
  for (size_t o = 0; o < io->out.num; o++) {
    const plan_buffer *b = buffer_of(v->out, io->out.at[o]);
    for (size_t i = 0; b && i < io->in.num; i++)
      if (dies_here(v, io->in.at[i], k, b))
        return true;
  }
  return false;
}

static void reuse_inputs(live *v, const ir_kernel *k) {
  if (k->family != IR_FAMILY_LOOP || !has_candidate(v, k))
    return;
  const domain *d = dom_build(v->arena, k);
  const dom_io *io = &v->io[k->id];
  for (size_t i = 0; i < io->out.num; i++) {
    plan_buffer *b = buffer_of(v->out, io->out.at[i]);
    if (b)
      reuse_input(v, k, d, b);
  }
}

plan_live plan_live_func(ir_arena *a, ir_func *f) {
  size_t n = f->kernels.num;
  plan_live out = {.f = f, .buffer_of = IR_NEW_ARRAY(a, int, f->next_id + 1)};
  memset(out.buffer_of, -1, sizeof(int) * (f->next_id + 1));
  out.in_place = IR_NEW_ARRAY(a, const ir_state *, f->next_id + 1);
  live v = {.arena = a, .out = &out, .io = IR_NEW_ARRAY(a, dom_io, n + 1)};
  v.last_read = IR_NEW_ARRAY(a, int, f->module->states.num + 1);
  v.kept = IR_NEW_ARRAY(a, bool, f->next_id + 1);
  memset(v.last_read, -1, sizeof(int) * (f->module->states.num + 1));
  for (size_t i = 0; i < n; i++)
    v.io[i] = dom_kernel_io(a, f->kernels.at[i]);
  find_last_reads(&v);
  decide_writes(&v);
  for (size_t i = 0; i < n; i++)
    add_outputs(&v, f->kernels.at[i]);
  extend_to_readers(&v);
  extend_outputs(&v);
  for (size_t i = 0; i < n; i++)
    reuse_inputs(&v, f->kernels.at[i]);
  return out;
}
