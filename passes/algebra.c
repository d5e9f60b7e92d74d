// algebra.c: simplification by local rules.
//
//   before:  %one = const {value=1.0} : f32[8]     after:  %z = sub %b, %a : f32[8]
//            %x = mul %a, %one : f32[8]
//            %y = neg %x : f32[8]
//            %z = add %b, %y : f32[8]
//
// One walk in order; each node is offered to the rules of its op until none applies. What rules
// build is simplified by the next round (the pipeline repeats algebra, cse and dce until nothing
// changes). The rules, and what they may do to numbers: algebra.h.
//
// Needs: no `grad` node (a function that has one is left alone: its `wrt` nodes must stay).
#include "passes/algebra.h"
#include "passes/pass.h"

#include <float.h>
#include <math.h>

enum { MAX_RULES = 6, MAX_REWRITES = 16 };

static const alg_rule by_op[IR_NUM_OPS][MAX_RULES] = {
    [IR_CAST] = {alg_cast},
    [IR_TF32] = {alg_tf32},
    [IR_NEG] = {alg_neg},
    [IR_ABS] = {alg_abs},
    [IR_NOT] = {alg_not},
    [IR_ADD] = {alg_add_zero, alg_add_neg, alg_add_pads, alg_add_pad_to_sum},
    [IR_SUB] = {alg_sub},
    [IR_MUL] = {alg_mul_const, alg_mul_neg},
    [IR_DIV] = {alg_div},
    [IR_POW] = {alg_pow},
    [IR_MAX] = {alg_same_operands},
    [IR_MIN] = {alg_same_operands},
    [IR_AND] = {alg_same_operands, alg_logic_const},
    [IR_OR] = {alg_same_operands, alg_logic_const},
    [IR_SELECT] = {alg_select},
    [IR_ARGMAX] = {alg_arg_of_one},
    [IR_ARGMIN] = {alg_arg_of_one},
    [IR_RESHAPE] = {alg_reshape},
    [IR_TRANSPOSE] = {alg_transpose, alg_transpose_of_matmul},
    [IR_BROADCAST] = {alg_broadcast},
    [IR_SLICE] = {alg_slice, alg_slice_of_pad, alg_slice_of_concat},
    [IR_PAD] = {alg_pad},
    [IR_CONCAT] = {alg_concat, alg_concat_of_slices},
    [IR_MATMUL] = {alg_matmul_of_transpose},
    [IR_SUM] = {alg_reduce_unit_axes, alg_reduce_of_reduce, alg_reduce_of_broadcast,
                alg_reduce_all_of_reshape, alg_sum_of_neg, alg_sum_of_scaled},
    [IR_REDUCE_MAX] = {alg_reduce_unit_axes, alg_reduce_of_reduce, alg_reduce_of_broadcast,
                       alg_reduce_all_of_reshape},
    [IR_REDUCE_MIN] = {alg_reduce_unit_axes, alg_reduce_of_reduce, alg_reduce_of_broadcast,
                       alg_reduce_all_of_reshape},
};

// Tried before those of the op.
static const alg_rule by_class[IR_CLASS_SYMBOLIC + 1][MAX_RULES] = {
    [IR_CLASS_POINTWISE] = {alg_fold_pointwise, alg_pointwise_of_broadcasts,
                            alg_pointwise_of_scalars},
    [IR_CLASS_REDUCE] = {alg_fold_reduce},
    [IR_CLASS_VIEW] = {alg_fold_move},
    [IR_CLASS_MOVE] = {alg_fold_move},
};

// --- shared by the rules ----------------------------------------------------------------------
bool alg_commutes(const ir_node *n) {
  static const bool commutes[IR_NUM_OPS] = {
      [IR_ADD] = true, [IR_MUL] = true, [IR_AND] = true,
      [IR_OR] = true,  [IR_EQ] = true,  [IR_NE] = true,
  };
  bool picks = n->op == IR_MAX || n->op == IR_MIN;
  return picks ? !ir_is_float(n->type.dtype) : commutes[n->op];
}

bool alg_match_const(const ir_node *n, ir_op op, ir_node **x, double *value) {
  if (n->op != op)
    return false;
  int k = n->in[1]->op == IR_CONST ? 1 : 0;
  if (n->in[k]->op != IR_CONST || (k == 0 && !alg_commutes(n)))
    return false;
  *x = n->in[1 - k];
  *value = ir_attr_num(n->in[k], IR_ATTR_VALUE);
  return true;
}

bool alg_fits(ir_dtype t, double v) {
  const ir_dtype_info *info = &ir_dtypes[t];
  bool wide = t == IR_F64;
  if (info->kind == IR_KIND_FLOAT) // no new overflow, and no loss of digits below the normal range
    return !isfinite(v) || v == 0 ||
           (fabs(v) <= (wide ? DBL_MAX : (double)FLT_MAX) &&
            fabs(v) >= (wide ? DBL_MIN : (double)FLT_MIN));
  double bits = info->kind == IR_KIND_BOOL ? 1 : info->bytes * 8;
  double low = info->kind == IR_KIND_SINT ? -ldexp(1, (int)bits - 1) : 0;
  double high = ldexp(1, info->kind == IR_KIND_SINT ? (int)bits - 1 : (int)bits) - 1;
  return v == floor(v) && fabs(v) <= 0x1p53 && v >= low && v <= high;
}

// --- the walk ------------------------------------------------------------------------------------
// Whether `r`, through nodes made since `first_new`, reads x, or is it.
static bool reads(const ir_node *r, const ir_node *x, uint32_t first_new) {
  if (r == x)
    return true;
  for (int k = 0; r->id >= first_new && k < r->num_in; k++)
    if (reads(r->in[k], x, first_new))
      return true;
  return false;
}

// A rule that takes what a parameter's gradient is made of in the place of the gradient, as in w - 0.1 * -x, would leave its
// name to nobody, and `check` finds gradients by their names. (That of a reshape goes to what is below.)
static bool keeps_gradients(const ir_func *f, const ir_node *n, const ir_node *r,
                            uint32_t first_new) {
  for (int k = 0; k < n->num_in; k++)
    if (n->in[k]->op != IR_RESHAPE && ir_names_gradient(f, n->in[k]) &&
        !reads(r, n->in[k], first_new))
      return false;
  return true;
}

static ir_node *apply_first(const alg_rule *rules, ir_builder *b, ir_node *n) {
  for (int i = 0; i < MAX_RULES && rules[i]; i++) {
    uint32_t first_new = b->func->next_id;
    ir_node *r = rules[i](b, n);
    if (r && keeps_gradients(b->func, n, r, first_new))
      return r;
  }
  return NULL;
}

static ir_node *apply_once(ir_builder *b, ir_node *n) {
  ir_node *r = apply_first(by_class[ir_ops[n->op].cls], b, n);
  return r ? r : apply_first(by_op[n->op], b, n);
}

// The bound only cuts off what rules would leave to the next round.
static ir_node *simplify(ir_builder *b, ir_node *n) {
  b->scope = n->name;
  for (int i = 0; i < MAX_REWRITES; i++) {
    ir_node *r = apply_once(b, n);
    if (!r)
      break;
    BUG_IF(!ir_same_type(&r->type, &n->type), "a rule for '%s' changed its type from %s to %s",
           ir_ops[n->op].name, ir_type_str(alg_arena(b), &n->type),
           ir_type_str(alg_arena(b), &r->type));
    n = r;
  }
  return n;
}

static bool simplify_func(ir_func *f) {
  if (ir_has_op(f, IR_GRAD))
    return false;
  // Nodes built during the walk have 0: rules that care leave them to the next round.
  pass_count_uses(f);
  return ir_rewrite_each(f, simplify);
}

bool pass_algebra(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, simplify_func);
}
