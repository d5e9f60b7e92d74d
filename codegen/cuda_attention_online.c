// cuda_attention_online.c: softmax and the product with the values in one sweep, or in two.
//
//   max = reduce_max x;  e = exp(x - max);  sum = sum e;  w = L(e / sum);  y = w @ v
//
// One sweep, if L is linear in e: masks (a select of it or 0), factors and divisors that depend on
// no row value. The running maximum, sum and product of the tiles so far are kept; a tile with a
// larger maximum scales what there is by exp(old - new); the division by the sum comes last
// (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022, 2023,
// FlashAttention 1 and 2).
//
// Exceptions are the IR's. As long as the maximum is -inf, e is NaN, as it is in the IR; when a
// tile then brings a larger one, all before it counts 0 and is dropped, not scaled. In a row that
// is -inf throughout, what is left are those NaN and the zeros of L's masks: they are not divided.
//
// Two sweeps, for any other use (weights that are narrowed before the product): maximum and sum in
// the same way, without a product; then the weights, of both.
//
// Tiles that masks leave out are not walked. There x is one constant; they count as a first tile:
// its maximum is the constant, its sum the number of columns, its product 0.
#include "codegen/cuda_attention.h"

static bool is_inside(const catt *t, const ir_node *n) {
  return cpu_member(&t->inner, n) >= 0;
}

static const ir_node *through_copies(const ir_node *n) {
  n = dom_base(n);
  while (n->op == IR_COPY || n->op == IR_STOP)
    n = dom_base(n->in[0]);
  return n;
}

// Also in gradients, which load what the forward pass has kept.
bool catt_is_row_exp(const ir_node *n) {
  const ir_node *d = n->op == IR_EXP && n->type.dtype == IR_F32 ? n->in[0] : NULL;
  return d && d->op == IR_SUB && through_copies(d->in[1])->op == IR_REDUCE_MAX;
}

// At least 1, or NaN.
bool catt_is_row_sum(const ir_node *n) {
  n = through_copies(n);
  return n->op == IR_SUM && catt_is_row_exp(through_copies(n->in[0]));
}

static bool uses_rows(const catt *t, const ir_node *n) {
  n = dom_base(n);
  if (!is_inside(t, n) || n->op == IR_MATMUL)
    return false;
  bool uses = ir_ops[n->op].cls == IR_CLASS_REDUCE;
  for (int i = 0; !uses && i < n->num_in; i++)
    uses = uses_rows(t, n->in[i]);
  return uses;
}

static bool find_reductions(const catt *t, catt_online *o) {
  for (size_t i = 0; i < t->dom->scores.nodes.num; i++) {
    const ir_node *n = t->dom->scores.nodes.at[i];
    if (ir_ops[n->op].cls != IR_CLASS_REDUCE)
      continue;
    const ir_node **slot = n->op == IR_REDUCE_MAX ? &o->max : n->op == IR_SUM ? &o->sum : NULL;
    if (!slot || *slot)
      return false;
    *slot = n;
  }
  return o->max && o->sum && !uses_rows(t, o->max->in[0]);
}

static bool find_exp(catt_online *o) {
  o->x = o->max->in[0];
  o->e = o->sum->in[0];
  const ir_node *d = o->e->op == IR_EXP ? o->e->in[0] : NULL;
  return d && d->op == IR_SUB && d->in[0] == o->x && through_copies(d->in[1]) == o->max;
}

static bool is_zero(const ir_node *n) {
  return ir_is_const(dom_base(n), 0);
}

// Weights as L(e) or L(e / sum).
static bool is_linear(const catt *t, catt_online *o, const ir_node *n) {
  if (n == o->e)
    return true;
  switch (n->op) {
  case IR_DIV:
    if (n->in[0] == o->e && through_copies(n->in[1]) == o->sum) {
      o->quotient = n;
      return true;
    }
    return !uses_rows(t, n->in[1]) && is_linear(t, o, n->in[0]);
  case IR_MUL:
    return (!uses_rows(t, n->in[1]) && is_linear(t, o, n->in[0])) ||
           (!uses_rows(t, n->in[0]) && is_linear(t, o, n->in[1]));
  case IR_SELECT:
    return !uses_rows(t, n->in[0]) && is_zero(n->in[2]) && is_linear(t, o, n->in[1]);
  case IR_COPY:
  case IR_STOP:
    return is_linear(t, o, n->in[0]);
  default:
    return false;
  }
}

static void find_constant(catt_online *o) {
  const ir_node *n = o->x;
  if (n->op != IR_SELECT || dom_base(n->in[2])->op != IR_CONST)
    return;
  o->masked = n->in[1];
  o->constant = ir_attr_num(dom_base(n->in[2]), IR_ATTR_VALUE);
}

catt_online catt_find_online(const catt *t) {
  catt_online o = {0};
  o.found = !t->dom->columns && t->num_out == 1 && find_reductions(t, &o) && find_exp(&o);
  o.whole = o.found && is_linear(t, &o, t->out[0].n->in[0]);
  if (o.found)
    find_constant(&o);
  return o;
}
