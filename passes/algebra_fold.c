// algebra_fold.c: constants are computed now, and what is the same for many elements is
// computed once.
//
//   mul (const 2), (const 3)                    -> const 6
//   sum (const 2 : f32[8]) {axes=[0]}           -> const 16
//   reshape (const 2)                           -> const 2
//   mul (broadcast %s), (broadcast %t)          -> broadcast (mul %s, %t)
//
// Folding asks the oracle (ir/interp.c), so a folded value cannot differ from the defined one.
// Constants are splats, so one element stands for all.
#include "passes/algebra.h"

#include "ir/interp.h"

static bool all_const(const ir_node *n) {
  for (int i = 0; i < n->num_in; i++)
    if (n->in[i]->op != IR_CONST)
      return false;
  return n->num_in > 0;
}

static double value_of(const ir_node *n) {
  return ir_attr_num(n, IR_ATTR_VALUE);
}

// --- pointwise -----------------------------------------------------------------------------
// One element of n, computed by the interpreter in a function made for it.
static double evaluate(ir_builder *b, const ir_node *n) {
  ir_module *m = ir_module_new(alg_arena(b), "fold");
  ir_func *f = ir_func_new(m, "fold");
  ir_builder fold = ir_build_at_end(f);
  ir_node *in[3] = {NULL};
  for (int i = 0; i < n->num_in; i++)
    in[i] = ir_const(&fold, ir_scalar(n->in[i]->type.dtype), value_of(n->in[i]));
  ir_type type = ir_scalar(n->type.dtype);
  ir_node *r = ir_build(&fold, n->op, NULL, n->num_in, in, n->num_attrs, n->attrs, &type);
  return ir_interp(ir_world_new(m->arena, m), f, NULL)[r->id].at[0];
}

// Copies stay: they give an output a buffer. Random numbers differ by element.
static bool is_plain_pointwise(const ir_node *n) {
  return n->op != IR_COPY && !ir_is_random(n) && n->num_in <= 3;
}

ir_node *alg_fold_pointwise(ir_builder *b, ir_node *n) {
  if (!is_plain_pointwise(n) || !all_const(n))
    return NULL;
  double v = evaluate(b, n);
  return alg_fits(n->type.dtype, v) ? ir_const(b, n->type, v) : NULL;
}

// --- the rest of the classes -------------------------------------------------------------------
ir_node *alg_fold_reduce(ir_builder *b, ir_node *n) {
  if (!all_const(n) || n->op == IR_ARGMAX || n->op == IR_ARGMIN)
    return NULL;
  double v = value_of(n->in[0]);
  if (n->op == IR_SUM)
    v *= (double)(ir_elements(&n->in[0]->type) / ir_elements(&n->type));
  return alg_fits(n->type.dtype, v) ? ir_const(b, n->type, v) : NULL;
}

// Views, pad and concat of one value are that value.
ir_node *alg_fold_move(ir_builder *b, ir_node *n) {
  if (!all_const(n))
    return NULL;
  double v = value_of(n->in[0]);
  for (int i = 1; i < n->num_in; i++)
    if (!ir_is_const(n->in[i], v))
      return NULL;
  if (n->op == IR_PAD && value_of(n) != v)
    return NULL;
  return ir_const(b, n->type, v);
}

// --- less work -----------------------------------------------------------------------------------
// The same op on other operands.
static ir_node *rebuild(ir_builder *b, const ir_node *n, ir_node *const *in, const ir_type *type) {
  return ir_build(b, n->op, NULL, n->num_in, in, n->num_attrs, n->attrs, type);
}

// The smallest shape that all operands (broadcasts, and constants beside them) fit in.
static bool common_source(const ir_node *n, ir_type *small) {
  if (all_const(n))
    return false;
  *small = n->type;
  for (int i = 0; i < small->rank; i++)
    small->dims[i] = 1;
  for (int k = 0; k < n->num_in; k++) {
    if (n->in[k]->op == IR_CONST)
      continue;
    if (n->in[k]->op != IR_BROADCAST)
      return false;
    const ir_type *source = &n->in[k]->in[0]->type;
    for (int i = 0; i < small->rank; i++)
      if (source->dims[i] > small->dims[i])
        small->dims[i] = source->dims[i];
  }
  return ir_elements(small) < ir_elements(&n->type);
}

static ir_node *shrink(ir_builder *b, ir_node *x, const ir_type *small) {
  if (x->op == IR_CONST)
    return ir_const(b, ir_tensor(x->type.dtype, small->rank, small->dims), value_of(x));
  return ir_broadcast(b, x->in[0], small->rank, small->dims);
}

// f(broadcast s, broadcast t) -> broadcast f(s, t), when that is fewer elements
ir_node *alg_pointwise_of_broadcasts(ir_builder *b, ir_node *n) {
  ir_type small;
  if (!is_plain_pointwise(n) || !common_source(n, &small))
    return NULL;
  ir_node *in[3] = {NULL};
  for (int i = 0; i < n->num_in; i++)
    in[i] = shrink(b, n->in[i], &small);
  return ir_broadcast(b, rebuild(b, n, in, &small), n->type.rank, n->type.dims);
}

// One element in a tensor of higher rank: compute the scalar, so that all ranks share it.
//   mul (reshape %s : f32[1,1]), (reshape %t : f32[1,1]) -> reshape (mul %s, %t)
ir_node *alg_pointwise_of_scalars(ir_builder *b, ir_node *n) {
  if (n->type.rank == 0 || ir_elements(&n->type) != 1 || !is_plain_pointwise(n) || all_const(n))
    return NULL;
  for (int i = 0; i < n->num_in; i++)
    if (n->in[i]->op != IR_CONST && n->in[i]->op != IR_RESHAPE)
      return NULL;
  ir_node *in[3] = {NULL};
  for (int i = 0; i < n->num_in; i++) {
    ir_node *x = n->in[i];
    in[i] = x->op == IR_CONST ? ir_const(b, ir_scalar(x->type.dtype), value_of(x))
                              : ir_reshape(b, x->in[0], 0, NULL);
  }
  ir_type scalar = ir_scalar(n->type.dtype);
  return ir_reshape(b, rebuild(b, n, in, &scalar), n->type.rank, n->type.dims);
}
