// cuda_attention.c: the ATTENTION family on a GPU: a kernel described, the family's two functions.
#include "codegen/cuda_attention.h"

#include "ir/narrow.h"

// --- products ------------------------------------------------------------------------------------
// One matmul as a kernel of its own: where its operands lie.
static mm_problem describe_product(const cg_kernel *k, ir_node *n) {
  ir_kernel *alone = IR_NEW(k->arena, ir_kernel);
  *alone = (ir_kernel){.name = n->name, .family = IR_FAMILY_MATMUL, .anchor = n};
  IR_PUSH(k->arena, alone->nodes, n);
  cg_kernel *c = IR_NEW(k->arena, cg_kernel);
  *c = (cg_kernel){.k = alone, .func = k->func, .target = k->target, .arena = k->arena};
  for (size_t i = 0; i < k->in.num; i++)
    IR_PUSH(k->arena, c->in, k->in.at[i]);
  if (dom_is_product_out(n, k->k)) // in registers, but an operand
    IR_PUSH(k->arena, c->in, n->in[0]);
  c->dom = dom_build(k->arena, alone);
  mm_sides sides;
  return mm_describe(c, &sides);
}

// What products out multiply: what the tensor cores narrow on their own is left to them.
static const ir_node *weights_of(const catt *t, const ir_node *out) {
  const ir_node *w = out->in[0];
  bool half = t->mma && t->elem_bytes == 2;
  const ir_node *wide = half ? w->in[0]->in[0] : t->mma && w->op == IR_TF32 ? w->in[0] : w;
  return wide->type.dtype == IR_F32 && cpu_member(&t->inner, wide) >= 0 ? wide : w;
}

// Products of operands that hold at most 11 digits are exact in f32.
static bool has_few_digits(const ir_kernel *k) {
  bool few = true;
  for (size_t i = 0; i < k->nodes.num; i++)
    for (int j = 0; k->nodes.at[i]->op == IR_MATMUL && j < 2; j++)
      few &= ir_known_digits(k->nodes.at[i]->in[j]) <= 11;
  return few;
}

// Operands in 16 bits are those whose conversions have been taken in.
static const char *mma_of(const catt *t) {
  const ir_kernel *k = t->kernel->k;
  if (t->elem_bytes == 2)
    return ir_dtypes[ir_products_from(k)].name;
  return has_few_digits(k) ? "tf32" : NULL;
}

static void describe_products(catt *t) {
  const dom_attention *d = t->dom;
  for (size_t i = 0; i < d->in.num; i++) {
    mm_problem p = describe_product(t->kernel, d->in.at[i]);
    t->in[t->num_in++] = (catt_in){.n = d->in.at[i],
                                   .own = d->columns ? p.b : p.a,
                                   .streamed = d->columns ? p.a : p.b,
                                   .width = p.k};
  }
  t->elem_bytes = t->in[0].own.elem_bytes;
  t->mma = mma_of(t);
  for (size_t i = 0; i < d->out.num; i++) {
    ir_node *n = d->out.at[i];
    mm_problem p = describe_product(t->kernel, n);
    t->out[t->num_out++] =
        (catt_out){.n = n, .values = p.b, .width = p.n, .arg = cg_arg_index(t->kernel, n)};
  }
}

static void describe_axes(catt *t) {
  const dom_attention *d = t->dom;
  int m0 = d->num_batch_axes, n0 = m0 + d->num_m_axes;
  t->batch = d->batch;
  t->x = d->columns ? d->n : d->m;
  t->y = d->columns ? d->m : d->n;
  t->first_x = d->columns ? n0 : m0;
  t->num_x = d->columns ? d->num_n_axes : d->num_m_axes;
  t->first_y = d->columns ? m0 : n0;
  t->num_y = d->columns ? d->num_m_axes : d->num_n_axes;
}

// --- sweeps --------------------------------------------------------------------------------------
static bool is_reduction(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_REDUCE;
}

int catt_sweep_of(const catt *t, const ir_node *n) {
  int sweep = 0;
  if (cpu_member(&t->inner, n) < 0 || n->op == IR_MATMUL)
    return 0;
  for (int i = 0; i < n->num_in; i++) {
    const ir_node *x = dom_base(n->in[i]);
    int here = catt_sweep_of(t, x) + (is_reduction(x) && cpu_member(&t->inner, x) >= 0);
    sweep = here > sweep ? here : sweep;
  }
  return sweep;
}

static int count_sweeps(const catt *t) {
  int last = 0;
  for (int i = 0; i < t->num_out; i++) {
    int sweep = catt_sweep_of(t, t->out[i].weights);
    last = sweep > last ? sweep : last;
  }
  for (size_t i = 0; i < t->dom->scores.nodes.num; i++) {
    const ir_node *n = t->dom->scores.nodes.at[i];
    int sweep = is_reduction(n) ? catt_sweep_of(t, n) : 0;
    last = sweep > last ? sweep : last;
  }
  return last + 1;
}

// What the weights of all products out leave to do (passes/band.h), as diagonals streamed - own.
// Scores that the softmax drops count as its constant, if that is known.
static void describe_band(catt *t) {
  ir_band all = {1 - t->x, t->y - 1}, band = band_none();
  for (int i = 0; i < t->num_out; i++)
    band = band_join(band, band_of_matmul(t->out[i].n).a);
  if (t->online.found) {
    const ir_node *masked = t->online.masked;
    band = band_join(band, masked && masked->needed ? *masked->needed : all);
  }
  t->band = band;
  t->banded = band_is_empty(band) || band.lower > all.lower || band.upper < all.upper;
}

// --- the family's two functions ------------------------------------------------------------------
void cuda_attention_schedule(cg_kernel *k) {
  catt *t = IR_NEW(k->arena, catt);
  t->kernel = k;
  t->dom = dom_build_attention(k->arena, k->k);
  k->dom = t->dom->dom;
  t->inner = *k;
  t->inner.k = (ir_kernel *)(uintptr_t)&t->dom->scores;
  describe_products(t);
  describe_axes(t);
  t->online = catt_find_online(t);
  describe_band(t);
  catt_make_plan(t);
  catt_find_masks(t);
  for (int i = 0; i < t->num_out; i++)
    t->out[i].weights = weights_of(t, t->out[i].n);
  bool once = t->online.whole || catt_is_at_once(t);
  t->sweeps = once ? 1 : t->online.found ? 2 : count_sweeps(t);
  k->num_phases = 1;
  k->tasks[0] = t->batch * t->tiles;
  k->threads[0] = t->threads;
  k->products = !t->mma ? CG_BY_FMA : t->elem_bytes == 2 ? CG_BY_HALF : CG_BY_TF32;
  k->in_order = !t->mma && cg_hides_latencies(k->target->cuda, k->tasks[0] * t->threads / 32);
  k->schedule = t;
}

void cuda_attention_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  catt_emit_kernel(k->schedule, name, out);
}
