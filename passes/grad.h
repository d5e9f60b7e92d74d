// grad.h: what a gradient rule sees (passes/grad.c) and what runs it (passes/autodiff.c).
#ifndef PASSES_GRAD_H
#define PASSES_GRAD_H

#include "ir/builder.h"

// One reverse sweep. Arrays are indexed by the ids that existed before it began.
typedef struct grad_ctx {
  ir_builder b;
  ir_node **adjoint;  // dloss/dnode so far; NULL: nothing yet
  const bool *wanted; // on a path from a `wrt` node: its adjoint is of use
} grad_ctx;

// A rule for `n`, whose adjoint is `g` (same type as n): gives each operand its share with GIVE.
typedef void (*grad_rule)(grad_ctx *c, ir_node *n, ir_node *g);
#define OP(NAME, text, arity, cls, attrs, shape, grad, interp, flops, spell)                       \
  void grad_##grad(grad_ctx *c, ir_node *n, ir_node *g);
#include "ir/ops.def"
#undef OP

bool grad_wants(const grad_ctx *c, const ir_node *n, int operand);
// Adds `share` to the adjoint of n->in[operand].
void grad_give(grad_ctx *c, const ir_node *n, int operand, ir_node *share);

// The share is an expression that builds nodes: it is evaluated only when it is wanted.
#define GIVE(operand, share)                                                                       \
  do {                                                                                             \
    if (grad_wants(c, n, operand))                                                                 \
      grad_give(c, n, operand, share);                                                             \
  } while (0)

// --- shared by rules (grad.c) ------------------------------------------------------------------
// Puts step - 1 zeros behind every element along `axis`.
ir_node *grad_interleave(grad_ctx *c, ir_node *g, int axis, int64_t step);
// The part of g from the origin to `size`; g itself when that is all of it.
ir_node *grad_crop(grad_ctx *c, ir_node *g, const int64_t *size);
// g with axis sizes `dims`: cut off behind, or zeros added there.
ir_node *grad_resized(grad_ctx *c, ir_node *g, const int64_t *dims);
// The rows of a table, last one first.
ir_node *grad_reversed(grad_ctx *c, ir_node *table);
// What the adjoint g of `windows` says of its operand, if all that g is computed from can be turned about
// (grad_turn.c); NULL: it cannot, or there is nothing to gain.
ir_node *grad_turned(grad_ctx *c, const ir_node *windows, const ir_node *g);

#endif
