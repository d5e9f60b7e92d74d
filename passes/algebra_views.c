// algebra_views.c: views of views become one view, and broadcasts move outward, to where they
// are used.
#include "passes/algebra.h"

// --- reshape ---------------------------------------------------------------------------------
// reshape (reshape x) -> reshape x;  reshape (broadcast x) -> broadcast (reshape x) for one element
ir_node *alg_reshape(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0];
  if (ir_same_shape(&n->type, &x->type))
    return x;
  if (x->op == IR_RESHAPE)
    return ir_reshape(b, x->in[0], n->type.rank, n->type.dims);
  if (x->op == IR_BROADCAST && ir_elements(&x->in[0]->type) == 1) {
    int64_t ones[IR_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    ir_node *one = ir_reshape(b, x->in[0], n->type.rank, ones);
    return ir_broadcast(b, one, n->type.rank, n->type.dims);
  }
  return NULL;
}

// --- transpose -------------------------------------------------------------------------------
// Only axes of size 1 change places: the elements stay in order.
static bool keeps_order(const ir_node *n, const int64_t *perm) {
  int64_t last = -1;
  for (int i = 0; i < n->type.rank; i++) {
    if (n->type.dims[i] == 1)
      continue;
    if (perm[i] < last)
      return false;
    last = perm[i];
  }
  return true;
}

static ir_node *transpose_of_transpose(ir_builder *b, const ir_node *n, const int64_t *perm) {
  int rank;
  const int64_t *inner = ir_attr_ints(n->in[0], IR_ATTR_PERM, &rank);
  int64_t both[IR_MAX_RANK] = {0};
  for (int i = 0; i < rank; i++)
    both[i] = inner[perm[i]];
  return ir_transpose(b, n->in[0]->in[0], both);
}

// transpose (transpose x) -> transpose x;  of unit axes only -> reshape;
// transpose (broadcast x) -> broadcast (transpose x)
ir_node *alg_transpose(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0];
  int rank;
  const int64_t *perm = ir_attr_ints(n, IR_ATTR_PERM, &rank);
  if (keeps_order(n, perm))
    return ir_reshape(b, x, rank, n->type.dims);
  if (x->op == IR_TRANSPOSE)
    return transpose_of_transpose(b, n, perm);
  if (x->op == IR_BROADCAST)
    return ir_broadcast(b, ir_transpose(b, x->in[0], perm), rank, n->type.dims);
  return NULL;
}

// --- broadcast -------------------------------------------------------------------------------
// broadcast to the shape it has -> x;  broadcast (broadcast x) -> broadcast x
ir_node *alg_broadcast(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0];
  if (ir_same_shape(&n->type, &x->type))
    return x;
  return x->op == IR_BROADCAST ? ir_broadcast(b, x->in[0], n->type.rank, n->type.dims) : NULL;
}

// --- slice -----------------------------------------------------------------------------------
typedef struct slice_of {
  const int64_t *start, *stop, *step;
} slice_of;

static slice_of slice_attrs(const ir_node *n) {
  int rank;
  return (slice_of){ir_attr_ints(n, IR_ATTR_START, &rank), ir_attr_ints(n, IR_ATTR_STOP, &rank),
                    ir_attr_ints(n, IR_ATTR_STEP, &rank)};
}

static ir_node *slice_of_slice(ir_builder *b, const ir_node *n) {
  slice_of outer = slice_attrs(n), inner = slice_attrs(n->in[0]);
  int64_t start[IR_MAX_RANK], stop[IR_MAX_RANK], step[IR_MAX_RANK];
  for (int i = 0; i < n->type.rank; i++) {
    start[i] = inner.start[i] + outer.start[i] * inner.step[i];
    step[i] = n->type.dims[i] > 1 ? inner.step[i] * outer.step[i] : 1; // it stays in the axis
    stop[i] = start[i] + (n->type.dims[i] - 1) * step[i] + 1;
  }
  return ir_slice(b, n->in[0]->in[0], start, stop, step);
}

// Repeated axes of x stay whole (they have size 1), the others are sliced as before.
static ir_node *slice_of_broadcast(ir_builder *b, const ir_node *n) {
  slice_of s = slice_attrs(n);
  const ir_node *wide = n->in[0];
  ir_node *x = wide->in[0];
  int64_t start[IR_MAX_RANK], stop[IR_MAX_RANK], step[IR_MAX_RANK];
  for (int i = 0; i < n->type.rank; i++) {
    bool repeated = x->type.dims[i] != wide->type.dims[i];
    start[i] = repeated ? 0 : s.start[i];
    stop[i] = repeated ? 1 : s.stop[i];
    step[i] = repeated ? 1 : s.step[i];
  }
  return ir_broadcast(b, ir_slice(b, x, start, stop, step), n->type.rank, n->type.dims);
}

// slice of everything -> x;  slice (slice x) -> slice x;  slice (broadcast x) -> broadcast (slice
// x)
ir_node *alg_slice(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0];
  if (ir_same_shape(&n->type, &x->type))
    return x;
  if (x->op == IR_SLICE)
    return slice_of_slice(b, n);
  return x->op == IR_BROADCAST ? slice_of_broadcast(b, n) : NULL;
}
