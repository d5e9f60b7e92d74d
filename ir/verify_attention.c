// verify_attention.c: what may be a member of an ATTENTION kernel (ir.h):
//   - products are f32;
//   - products in: matmuls of what other kernels compute, all of one type [b..., m, n];
//   - pointwise ops, and reductions over the last axis;
//   - products out: matmuls whose first operand is a member, itself and no view; all of them sum
//     over n, or all over m. Nobody uses them inside, and the anchor is one of them;
//   - kernels that sum over m have no reductions: a row is spread over blocks.
#include "ir/verify.h"

static const ir_node *base_of(const ir_node *n) {
  while (ir_ops[n->op].cls == IR_CLASS_VIEW && n->num_in == 1)
    n = n->in[0];
  return n;
}

static bool is_inside(const ir_kernel *k, const ir_node *n) {
  return base_of(n)->kernel == k;
}

static bool is_out(const ir_kernel *k, const ir_node *n) {
  return n->op == IR_MATMUL && n->in[0]->kernel == k;
}

static void check_out(ir_checker *c, const ir_kernel *k, const ir_node *n) {
  if (is_inside(k, n->in[1]))
    ir_fault_add(c, n, "both operands of a product out are members");
  if (!is_out(k, k->anchor) ||
      ir_attr_bool(n, IR_ATTR_TRANS_A) != ir_attr_bool(k->anchor, IR_ATTR_TRANS_A))
    ir_fault_add(c, n, "%%%s and the anchor do not sum over the same axis", n->name);
  for (size_t i = 0; i < k->nodes.num; i++)
    for (int j = 0; j < k->nodes.at[i]->num_in; j++)
      if (base_of(k->nodes.at[i]->in[j]) == n)
        ir_fault_add(c, k->nodes.at[i], "product out %%%s is used inside", n->name);
}

static void check_member(ir_checker *c, const ir_kernel *k, const ir_node *n,
                         const ir_node **scores) {
  if (n->op == IR_MATMUL && n->type.dtype != IR_F32)
    ir_fault_add(c, n, "products of attention kernels are f32");
  if (is_out(k, n)) {
    check_out(c, k, n);
  } else if (n->op == IR_MATMUL) {
    if (is_inside(k, n->in[0]) || is_inside(k, n->in[1]))
      ir_fault_add(c, n, "a product of members");
    if (*scores && !ir_same_type(&(*scores)->type, &n->type))
      ir_fault_add(c, n, "%%%s and %%%s have different types", n->name, (*scores)->name);
    *scores = n;
  } else if (ir_ops[n->op].cls == IR_CLASS_REDUCE) {
    if (!ir_is_row_reduction(n) || ir_attr_bool(k->anchor, IR_ATTR_TRANS_A))
      ir_fault_add(c, n, "an attention kernel cannot reduce this");
  } else if (ir_ops[n->op].cls != IR_CLASS_POINTWISE) {
    ir_fault_add(c, n, "%s cannot be in an attention kernel", ir_ops[n->op].name);
  }
}

void verify_attention(ir_checker *c, const ir_kernel *k) {
  const ir_node *scores = NULL;
  if (k->nodes.num == 0)
    return;
  if (!k->anchor || k->anchor->op != IR_MATMUL || !is_out(k, k->anchor)) {
    ir_fault_add(c, k->anchor, "the anchor of kernel '%s' is no product out", k->name);
    return;
  }
  for (size_t i = 0; i < k->nodes.num; i++)
    check_member(c, k, k->nodes.at[i], &scores);
  if (!scores)
    ir_fault_add(c, k->anchor, "kernel '%s' has no product in", k->name);
}
