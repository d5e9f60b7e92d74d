// thin_products.c: products of which an axis has size 1 are no matmuls.
//
//   one column   %y = matmul %a, %b : f32[128,1]       %t = reshape %b : f32[1,256]
//                # %a : f32[128,256]                   %w = broadcast %t : f32[128,256]
//                                                      %p = mul %a, %w : f32[128,256]
//                                                      %y = sum %p {axes=[1]} : f32[128,1]
//   one step     %y = matmul %a, %b : f32[128,256]     %v = broadcast %a : f32[128,256]
//                # %a : f32[128,1]                     %w = broadcast %b : f32[128,256]
//                                                      %y = mul %v, %w : f32[128,256]
//
// and so for one row. A matmul packs operands, to use them again and again, and has tiles of rows and columns: here each
// element of the larger operand is used once, and all but one column of a tile would be empty. As a reduction the
// product takes part in fusion like any other; an outer product is computed where it is used.
//
// Such are the last layer of a network that gives one number, its gradients, and scores of attention over nodes. Where
// the larger one has fewer rows or columns than a tile, as with a 1x1 convolution of few channels to one, it stays a
// matmul: one tile reads all of it once, and there are microseconds to gain.
//
// Needs: the gradients are there (rules for matmuls are simpler than for what comes of this), and products that become
// one are one (join_products). Breaks: nothing.
#include "ir/builder.h"
#include "passes/pass.h"

enum { TILE = 16 };

// x as seen with rows or columns of size 1 in other places: no numbers move.
static ir_node *reshape_as(ir_builder *b, ir_node *x, const ir_type *like, int axis) {
  int64_t dims[IR_MAX_RANK];
  for (int i = 0; i < like->rank; i++)
    dims[i] = like->dims[i];
  dims[2 * like->rank - 3 - axis] = 1; // the other one of the last two axes
  return ir_reshape(b, x, like->rank, dims);
}

// `wide` has k along `axis`; `thin` is a vector of k.
static ir_node *sum_of_products(ir_builder *b, ir_node *wide, ir_node *thin, int axis,
                                const ir_type *type) {
  ir_node *lying = reshape_as(b, thin, &wide->type, axis);
  ir_node *all = ir_broadcast(b, lying, wide->type.rank, wide->type.dims);
  int64_t axes[] = {axis};
  ir_node *sum = ir_reduce(b, IR_SUM, ir_binary(b, IR_MUL, wide, all), axes, 1);
  return ir_reshape(b, sum, type->rank, type->dims);
}

static ir_node *outer_product(ir_builder *b, ir_node *x, ir_node *y, const ir_type *type) {
  int rank = type->rank;
  ir_node *rows = reshape_as(b, x, type, rank - 2), *columns = reshape_as(b, y, type, rank - 1);
  return ir_binary(b, IR_MUL, ir_broadcast(b, rows, rank, type->dims),
                   ir_broadcast(b, columns, rank, type->dims));
}

static bool is_large(const ir_type *t) {
  return t->dims[t->rank - 1] >= TILE && t->dims[t->rank - 2] >= TILE;
}

static ir_node *widen(ir_builder *b, ir_node *n) {
  if (n->op != IR_MATMUL)
    return NULL;
  ir_node *x = n->in[0], *y = n->in[1];
  const ir_type *t = &n->type;
  int last = t->rank - 1;
  int xk = ir_attr_bool(n, IR_ATTR_TRANS_A) ? last - 1 : last,
      yk = ir_attr_bool(n, IR_ATTR_TRANS_B) ? last : last - 1;
  if (x->type.dims[xk] == 1 && is_large(t))
    return outer_product(b, x, y, t);
  if (t->dims[last] == 1 && is_large(&x->type))
    return sum_of_products(b, x, y, xk, t);
  if (t->dims[last - 1] == 1 && is_large(&y->type))
    return sum_of_products(b, y, x, yk, t);
  return NULL;
}

static bool widen_func(ir_func *f) {
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    rw.b.scope = n->name; // "y.sum"
    ir_node *r = widen(&rw.b, n);
    ir_rewrite_done(&rw, i, r ? r : n);
  }
  return ir_rewrite_end(&rw);
}

bool pass_thin_products(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, widen_func);
}
