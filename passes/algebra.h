// algebra.h: the rules of pass_algebra, by file, and what they share.
//
// A rule looks at one node, whose operands are simplified already, and returns what can stand
// for it (an operand, something deeper, or new nodes), or NULL. Rules must make progress:
// no rule may undo another. `mark` of an operand that was there before the walk: its uses.
//
// What a rule may do to floating-point numbers: change them by rounding (an overflow on the way
// may go), and the sign of a zero. It must not hide a NaN or an infinity of an operand: x * 0,
// x - x and x / x stay, and so does x / c, which is not x * (1/c).
#ifndef PASSES_ALGEBRA_H
#define PASSES_ALGEBRA_H

#include "ir/builder.h"

typedef ir_node *(*alg_rule)(ir_builder *b, ir_node *n);

// algebra_fold.c: constants, and work done on the smaller side of a broadcast
ir_node *alg_fold_pointwise(ir_builder *b, ir_node *n);
ir_node *alg_fold_reduce(ir_builder *b, ir_node *n);
ir_node *alg_fold_move(ir_builder *b, ir_node *n);
ir_node *alg_pointwise_of_broadcasts(ir_builder *b, ir_node *n);
ir_node *alg_pointwise_of_scalars(ir_builder *b, ir_node *n);

// algebra_pointwise.c
ir_node *alg_add_zero(ir_builder *b, ir_node *n);
ir_node *alg_add_neg(ir_builder *b, ir_node *n);
ir_node *alg_sub(ir_builder *b, ir_node *n);
ir_node *alg_neg(ir_builder *b, ir_node *n);
ir_node *alg_mul_const(ir_builder *b, ir_node *n);
ir_node *alg_mul_neg(ir_builder *b, ir_node *n);
ir_node *alg_div(ir_builder *b, ir_node *n);
ir_node *alg_pow(ir_builder *b, ir_node *n);
ir_node *alg_same_operands(ir_builder *b, ir_node *n);
ir_node *alg_logic_const(ir_builder *b, ir_node *n);
ir_node *alg_not(ir_builder *b, ir_node *n);
ir_node *alg_abs(ir_builder *b, ir_node *n);
ir_node *alg_select(ir_builder *b, ir_node *n);
ir_node *alg_cast(ir_builder *b, ir_node *n);
ir_node *alg_tf32(ir_builder *b, ir_node *n);

// algebra_reduce.c: reductions and contractions
ir_node *alg_reduce_unit_axes(ir_builder *b, ir_node *n);
ir_node *alg_reduce_of_reduce(ir_builder *b, ir_node *n);
ir_node *alg_reduce_of_broadcast(ir_builder *b, ir_node *n);
ir_node *alg_reduce_all_of_reshape(ir_builder *b, ir_node *n);
ir_node *alg_sum_of_neg(ir_builder *b, ir_node *n);
ir_node *alg_sum_of_scaled(ir_builder *b, ir_node *n);
ir_node *alg_arg_of_one(ir_builder *b, ir_node *n);
ir_node *alg_matmul_of_transpose(ir_builder *b, ir_node *n);
ir_node *alg_transpose_of_matmul(ir_builder *b, ir_node *n);

// algebra_views.c
ir_node *alg_reshape(ir_builder *b, ir_node *n);
ir_node *alg_transpose(ir_builder *b, ir_node *n);
ir_node *alg_broadcast(ir_builder *b, ir_node *n);
ir_node *alg_slice(ir_builder *b, ir_node *n);

// algebra_move.c: pad, concat, and slices of them
ir_node *alg_pad(ir_builder *b, ir_node *n);
ir_node *alg_concat(ir_builder *b, ir_node *n);
ir_node *alg_concat_of_slices(ir_builder *b, ir_node *n);
ir_node *alg_slice_of_pad(ir_builder *b, ir_node *n);
ir_node *alg_slice_of_concat(ir_builder *b, ir_node *n);
ir_node *alg_add_pads(ir_builder *b, ir_node *n);
ir_node *alg_add_pad_to_sum(ir_builder *b, ir_node *n);

// --- shared (algebra.c) ------------------------------------------------------------------
static inline ir_arena *alg_arena(const ir_builder *b) {
  return b->func->module->arena;
}

// n == op(x, splat constant): fills both. For commutative ops the constant may come first.
bool alg_match_const(const ir_node *n, ir_op op, ir_node **x, double *value);
// True when a splat constant of type `t` can hold `v` without turning into something else.
bool alg_fits(ir_dtype t, double v);
// The node is the same with its operands exchanged. max and min of floats are not: they give the second one where
// either is NaN.
bool alg_commutes(const ir_node *n);

#endif
