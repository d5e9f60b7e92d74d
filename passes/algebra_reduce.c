// algebra_reduce.c: reductions that do less, and transposes that matmul does for free.
#include "passes/algebra.h"

// The axes of n for which `keep` says yes.
static int pick_axes(const ir_node *n, bool (*keep)(const ir_node *n, int64_t axis),
                     int64_t *picked) {
  int num, count = 0;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  for (int i = 0; i < num; i++)
    if (keep(n, axes[i]))
      picked[count++] = axes[i];
  return count;
}

static bool is_long(const ir_node *n, int64_t axis) {
  return n->in[0]->type.dims[axis] > 1;
}

// Axes of size 1 need no reducing: sum %x : f32[8,1] {axes=[1]} -> %x
ir_node *alg_reduce_unit_axes(ir_builder *b, ir_node *n) {
  int64_t axes[IR_MAX_RANK];
  int num, kept = pick_axes(n, is_long, axes);
  ir_attr_ints(n, IR_ATTR_AXES, &num);
  return kept < num ? ir_reduce(b, n->op, n->in[0], axes, kept) : NULL;
}

enum { LOOK = 64 }; // nodes

// Whether `n` is computed, element by element, from something that `is` says yes to.
static bool is_made_of(const ir_node *n, bool (*is)(const ir_node *n, const ir_type *of),
                       const ir_type *of, int *left) {
  if ((*left)-- <= 0)
    return false;
  ir_op_class cls = ir_ops[n->op].cls;
  bool found = is(n, of), through = cls == IR_CLASS_POINTWISE || cls == IR_CLASS_VIEW;
  for (int i = 0; !found && through && i < n->num_in; i++)
    found = is_made_of(n->in[i], is, of, left);
  return found;
}

static bool is_reduction(const ir_node *n, const ir_type *of) {
  (void)of;
  return ir_ops[n->op].cls == IR_CLASS_REDUCE;
}

// What rows of the shape `rows` come to, for each of their elements.
static bool is_of_rows(const ir_node *n, const ir_type *rows) {
  int left = LOOK;
  return n->op == IR_BROADCAST && ir_same_shape(&n->in[0]->type, rows) &&
         is_made_of(n->in[0], is_reduction, rows, &left);
}

// sum (sum x {axes=[0]}) {axes=[1]} -> sum x {axes=[0, 1]}, when nothing else needs the inner sum: of one that is there
// anyway the rest is little, and all of x would be read, or computed, once more. Nor when x is made of what else its rows
// come to, as the logarithm of a softmax: one kernel makes both sums of a row, and would have to store x instead.
ir_node *alg_reduce_of_reduce(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0];
  int left = LOOK;
  if (x->op != n->op || x->mark != 1 || is_made_of(x->in[0], is_of_rows, &x->type, &left))
    return NULL;
  bool reduced[IR_MAX_RANK] = {false};
  const ir_node *both[] = {n, x};
  for (int k = 0; k < 2; k++) {
    int num;
    const int64_t *axes = ir_attr_ints(both[k], IR_ATTR_AXES, &num);
    for (int i = 0; i < num; i++)
      reduced[axes[i]] = true;
  }
  int64_t axes[IR_MAX_RANK];
  int num = 0;
  for (int i = 0; i < n->type.rank; i++)
    if (reduced[i])
      axes[num++] = i;
  return ir_reduce(b, n->op, x->in[0], axes, num);
}

static bool is_not_repeated(const ir_node *n, int64_t axis) {
  return n->in[0]->in[0]->type.dims[axis] == n->in[0]->type.dims[axis];
}

// Over axes that only repeat: sum (broadcast %x) -> %x * count; reduce_max (broadcast %x) -> %x.
ir_node *alg_reduce_of_broadcast(ir_builder *b, ir_node *n) {
  ir_node *wide = n->in[0];
  if (wide->op != IR_BROADCAST)
    return NULL;
  int64_t axes[IR_MAX_RANK];
  int num, kept = pick_axes(n, is_not_repeated, axes);
  const int64_t *all = ir_attr_ints(n, IR_ATTR_AXES, &num);
  if (kept == num)
    return NULL;
  int64_t count = 1;
  for (int i = 0; i < num; i++)
    if (!is_not_repeated(n, all[i]))
      count *= wide->type.dims[all[i]];
  if (n->op == IR_SUM && !alg_fits(n->type.dtype, (double)count))
    return NULL;
  ir_node *r = ir_reduce(b, n->op, wide->in[0], axes, kept);
  if (n->op == IR_SUM)
    r = ir_binary_const(b, IR_MUL, r, (double)count);
  return ir_broadcast(b, r, n->type.rank, n->type.dims);
}

// To one element, in whatever shape: sum (reshape x) -> reshape (sum x over all axes).
ir_node *alg_reduce_all_of_reshape(ir_builder *b, ir_node *n) {
  static const int64_t all[IR_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  ir_node *x = n->in[0];
  if (x->op != IR_RESHAPE || ir_elements(&n->type) != 1 || x->in[0]->type.rank == 0)
    return NULL;
  ir_node *r = ir_reduce(b, n->op, x->in[0], all, x->in[0]->type.rank);
  return ir_reshape(b, r, n->type.rank, n->type.dims);
}

// sum (-x) -> -(sum x): fewer negations, and the outer one may meet an add.
ir_node *alg_sum_of_neg(ir_builder *b, ir_node *n) {
  if (n->in[0]->op != IR_NEG)
    return NULL;
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  return ir_unary(b, IR_NEG, ir_reduce(b, IR_SUM, n->in[0]->in[0], axes, num));
}

// One value for all that is added up together.
static bool is_factor(const ir_node *x, const int64_t *axes, int num) {
  if (x->op != IR_BROADCAST)
    return false;
  for (int i = 0; i < num; i++)
    if (x->in[0]->type.dims[axes[i]] != 1)
      return false;
  return true;
}

// sum (x * broadcast y) -> (sum x) * y: the sum of x alone is often there already, as the gradient
// of a bias beside that of a gain.
ir_node *alg_sum_of_scaled(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0];
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  if (x->op != IR_MUL || ir_dtypes[n->type.dtype].kind != IR_KIND_FLOAT)
    return NULL;
  int side = is_factor(x->in[1], axes, num) ? 1 : 0;
  if (!is_factor(x->in[side], axes, num))
    return NULL;
  ir_node *sum = ir_reduce(b, IR_SUM, x->in[1 - side], axes, num);
  ir_node *factor = ir_broadcast(b, x->in[side]->in[0], n->type.rank, n->type.dims);
  return ir_binary(b, IR_MUL, sum, factor);
}

// The position of the extreme of one element is 0.
ir_node *alg_arg_of_one(ir_builder *b, ir_node *n) {
  int64_t axis = ir_attr_int(n, IR_ATTR_AXIS);
  return n->in[0]->type.dims[axis] == 1 ? ir_const(b, n->type, 0) : NULL;
}

// --- matmul ----------------------------------------------------------------------------------
// A transpose of exactly the last two axes.
static bool swaps_last_two(const ir_node *x) {
  if (x->op != IR_TRANSPOSE)
    return false;
  int rank;
  const int64_t *perm = ir_attr_ints(x, IR_ATTR_PERM, &rank);
  for (int i = 0; i < rank - 2; i++)
    if (perm[i] != i)
      return false;
  return perm[rank - 1] == rank - 2;
}

// matmul %x, (transpose %w) -> matmul %x, %w {tb=true}
ir_node *alg_matmul_of_transpose(ir_builder *b, ir_node *n) {
  bool flip_a = swaps_last_two(n->in[0]), flip_b = swaps_last_two(n->in[1]);
  if (!flip_a && !flip_b)
    return NULL;
  return ir_matmul(b, flip_a ? n->in[0]->in[0] : n->in[0], flip_b ? n->in[1]->in[0] : n->in[1],
                   ir_attr_bool(n, IR_ATTR_TRANS_A) != flip_a,
                   ir_attr_bool(n, IR_ATTR_TRANS_B) != flip_b);
}

// transpose (matmul a, b) -> matmul b, a, both transposed, when nothing else needs the product:
// (A B)' = B' A'. That is how the gradient of a transposed operand arrives.
ir_node *alg_transpose_of_matmul(ir_builder *b, ir_node *n) {
  ir_node *product = n->in[0];
  if (product->op != IR_MATMUL || product->mark != 1 || !swaps_last_two(n))
    return NULL;
  return ir_matmul(b, product->in[1], product->in[0], !ir_attr_bool(product, IR_ATTR_TRANS_B),
                   !ir_attr_bool(product, IR_ATTR_TRANS_A));
}
