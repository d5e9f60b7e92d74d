// thin_products.c: products of a matrix and a vector, along the matrix's rows, are no matmuls.
//
//   before   %y = matmul %a, %b : f32[128,1]       after   %t = reshape %b : f32[1,256]
//            # %a : f32[128,256]                           %w = broadcast %t : f32[128,256]
//                                                          %p = mul %a, %w : f32[128,256]
//                                                          %y = sum %p {axes=[1]} : f32[128,1]
//
// and so for one row by a matrix with `tb`. A matmul turns the matrix into panels, to use them again and again: here each
// element is used once, and turning takes most of the time. A reduction reads it as it lies. Such are the last layer of a
// network that gives one number, and products with a state in every step of a sequence.
//
// Sums over columns stay: a matmul's vectors lie along them, and the sum gains little. As they are what gradients of
// weights consist of, fusion would add several of them up in one kernel, which keeps all that they read until the last
// one can run. So do products that sum over one step (but for a vector by a number): where they are computed in each
// kernel that uses them, what they are made of is kept for longer.
//
// Needs: the gradients are there (the rule for matmuls is simpler than for what comes of this), and products that
// become one are one (join_products). Breaks: nothing.
#include "ir/builder.h"
#include "passes/pass.h"

// The matrix has the steps of the sum along its last axis. `thin` has as many elements, in whatever shape.
static ir_node *sum_along_rows(ir_builder *b, ir_node *matrix, ir_node *thin, const ir_type *type) {
  int last = type->rank - 1;
  ir_type row = matrix->type;
  row.dims[last - 1] = 1;
  ir_node *lying = ir_reshape(b, thin, row.rank, row.dims);
  ir_node *all = ir_broadcast(b, lying, row.rank, matrix->type.dims);
  ir_node *products = ir_binary(b, IR_MUL, matrix, all);
  int64_t axes[] = {last};
  if (row.dims[last] > 1) // a row of one element: a vector by a number
    products = ir_reduce(b, IR_SUM, products, axes, 1);
  return ir_reshape(b, products, type->rank, type->dims);
}

static ir_node *widen(ir_builder *b, ir_node *n) {
  if (n->op != IR_MATMUL)
    return NULL;
  b->scope = n->name; // "y.sum"
  const ir_type *t = &n->type;
  if (t->dims[t->rank - 1] == 1 && !ir_attr_bool(n, IR_ATTR_TRANS_A))
    return sum_along_rows(b, n->in[0], n->in[1], t);
  if (t->dims[t->rank - 2] == 1 && ir_attr_bool(n, IR_ATTR_TRANS_B))
    return sum_along_rows(b, n->in[1], n->in[0], t);
  return NULL;
}

static bool widen_func(ir_func *f) {
  return ir_rewrite_each(f, widen);
}

bool pass_thin_products(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, widen_func);
}
