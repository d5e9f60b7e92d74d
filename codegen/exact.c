// exact.c: values that must come out the same bits wherever they are computed.
//
//   %s = add %p, %q            # products
//   %m = reduce_max %s
//   %h = eq %s, %m             # where the gradient of the maximum goes
//
// Kernels compute %s anew where that is cheap: in each sweep over a row, in the backward pass. A compiler
// may make one rounding of a product and the sum that it is a term of, and does so by who else reads the
// product: then %s here is not %s there, %h is false everywhere, and a gradient is lost without a word.
// So no sum that such a value is made of is fused with a product, and no quotient in it is a product with
// the inverse.
//
// The other way, no fused sums in expressions at all, would cost all others speed and digits. What is compared
// with a constant needs none of this: a relu's mask, computed twice, may differ where both sides are 0
// to rounding, and nothing is lost.
//
// Marks come from who reads a value. A kernel that runs again has readers of its own, and is the same function
// all the same (cg_share holds it to that): its runs share their marks.
#include "codegen/codegen.h"

static bool compares_values(const ir_node *n) {
  return ir_is_comparison(n->op) && ir_is_float(n->in[0]->type.dtype) &&
         dom_base(n->in[0])->op != IR_CONST && dom_base(n->in[1])->op != IR_CONST;
}

// Elements of its operands come out as they are, or are computed one by one.
static bool is_made_of_elements(const ir_node *n) {
  switch (ir_ops[n->op].cls) {
  case IR_CLASS_POINTWISE:
  case IR_CLASS_VIEW:
    return true;
  default:
    return n->op == IR_REDUCE_MAX || n->op == IR_REDUCE_MIN || n->op == IR_PAD ||
           n->op == IR_CONCAT || n->op == IR_INSERT || n->op == IR_GATHER;
  }
}

static void mark_operands(const ir_func *f) {
  for (size_t j = f->nodes.num; j-- > 0;) { // users first
    const ir_node *n = f->nodes.at[j];
    bool passes_on = n->exact && is_made_of_elements(n);
    for (int k = 0; k < n->num_in && (passes_on || compares_values(n)); k++)
      n->in[k]->exact |= ir_is_float(n->in[k]->type.dtype);
  }
}

// True: a run of a kernel has marks from another.
static bool share_marks(const ir_func *f) {
  bool changed = false;
  for (size_t i = 0; i < f->kernels.num; i++) {
    const ir_kernel *k = f->kernels.at[i];
    for (size_t j = 0; k->clone_of && j < k->nodes.num; j++) {
      ir_node *a = k->nodes.at[j], *b = k->clone_of->nodes.at[j];
      changed |= a->exact != b->exact;
      a->exact = b->exact = a->exact || b->exact;
    }
  }
  return changed;
}

void cg_find_exact(ir_module *m) {
  for (size_t i = 0; i < m->funcs.num; i++) {
    const ir_func *f = m->funcs.at[i];
    for (size_t j = 0; j < f->nodes.num; j++)
      f->nodes.at[j]->exact = false;
    do
      mark_operands(f);
    while (share_marks(f));
  }
}
