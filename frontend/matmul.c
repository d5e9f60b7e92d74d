// matmul.c: a @ b and a^T. A product of a stack [..., m, k] with one matrix [k, n] becomes one
// large product [prod * m, k] @ [k, n], which is what kernels like best; stacks on both sides
// become a batched product with equal batch dimensions.
#include "frontend/check.h"

#include <string.h>

const fe_value *fe_swap_last(fe *c, ir_loc at, const fe_value *a) {
  int rank = a->node->type.rank;
  if (rank < 2) {
    ir_diag *d = fe_error(c, at, "E0203", "^T needs at least 2 dimensions");
    diag_label(d, "this is %s", fe_shape_text(c, a));
    return &fe_bad;
  }
  int64_t perm[IR_MAX_RANK];
  const char **names = IR_NEW_ARRAY(c->arena, const char *, IR_MAX_RANK);
  for (int i = 0; i < rank; i++)
    perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
  for (int i = 0; a->dim_names && i < rank; i++)
    names[i] = a->dim_names[perm[i]];
  ir_attr attr = ir_a_ints(c->arena, IR_ATTR_PERM, perm, rank);
  return fe_tensor_named(c, fe_emit(c, at, IR_TRANSPOSE, 1, &a->node, 1, &attr, NULL), names);
}

// One side of a product: the matrix in its last two axes and what stands before.
typedef struct side {
  const fe_value *value;
  ir_node *node;
  bool trans;
  bool vector; // was [k]
} side;

static int64_t matrix_dim(const side *s, int i) { // 0: rows, 1: columns, as multiplied
  const ir_type *t = &s->node->type;
  return t->dims[t->rank - 2 + (s->trans ? 1 - i : i)];
}

static const char *dim_name(const side *s, int i) {
  int rank = s->value->node->type.rank;
  if (!s->value->dim_names || s->vector)
    return s->value->dim_names && s->vector ? s->value->dim_names[0] : NULL;
  return s->value->dim_names[rank - 2 + (s->trans ? 1 - i : i)];
}

// [k] stands for one row on the left and one column on the right.
static bool open_side(fe *c, ir_loc at, side *s, bool left) {
  s->node = s->value->node;
  if (s->node->type.rank == 0) {
    ir_diag *d = fe_error(c, at, "E0203", "'@' needs at least one dimension on each side");
    diag_label(d, "the %s side is a scalar", left ? "left" : "right");
    return false;
  }
  s->vector = s->node->type.rank == 1;
  if (!s->vector)
    return true;
  int64_t k = s->node->type.dims[0], dims[2] = {left ? 1 : k, left ? k : 1};
  s->node = fe_emit_reshape(c, at, s->node, 2, dims);
  return s->node != NULL;
}

static bool check_inner(fe *c, ir_loc at, const side *a, const side *b) {
  int64_t ka = matrix_dim(a, 1), kb = matrix_dim(b, 0);
  if (ka == kb)
    return true;
  const char *name = dim_name(a, 1) ? dim_name(a, 1) : dim_name(b, 0);
  ir_diag *d;
  if (name)
    d = fe_error(c, at, "E0203",
                 "shapes do not match in '@': dimension %s is %lld here but %lld "
                 "there",
                 name, (long long)(dim_name(a, 1) ? ka : kb),
                 (long long)(dim_name(a, 1) ? kb : ka));
  else
    d = fe_error(c, at, "E0203", "shapes do not match in '@': %lld columns meet %lld rows",
                 (long long)ka, (long long)kb);
  diag_label(d, "%s%s @ %s%s", fe_shape_text(c, a->value), a->trans ? "^T" : "",
             fe_shape_text(c, b->value), b->trans ? "^T" : "");
  return false;
}

static ir_node *product(fe *c, ir_loc at, const side *a, const side *b) {
  ir_attr attrs[] = {ir_a_bool(IR_ATTR_TRANS_A, a->trans), ir_a_bool(IR_ATTR_TRANS_B, b->trans)};
  return fe_emit(c, at, IR_MATMUL, 2, (ir_node *[]){a->node, b->node}, 2, attrs, NULL);
}

// [..., m, k] @ [k, n] as one product of [prod * m, k].
static ir_node *flat_product(fe *c, ir_loc at, side *a, const side *b) {
  ir_type t = a->node->type;
  int64_t k = t.dims[t.rank - 1];
  a->node = fe_emit_reshape(c, at, a->node, 2, (int64_t[]){ir_elements(&t) / k, k});
  ir_node *flat = a->node ? product(c, at, a, b) : NULL;
  t.dims[t.rank - 1] = matrix_dim(b, 1);
  return flat ? fe_emit_reshape(c, at, flat, t.rank, t.dims) : NULL;
}

static int64_t batch_dim(const side *s, int axis, int batch) {
  int own = s->node->type.rank - 2, skip = batch - own;
  return axis < skip ? 1 : s->node->type.dims[axis - skip];
}

static bool widen(fe *c, ir_loc at, side *s, const int64_t *batch, int num_batch) {
  int64_t dims[IR_MAX_RANK];
  const ir_type *t = &s->node->type;
  memcpy(dims, batch, sizeof *dims * (size_t)num_batch);
  dims[num_batch] = t->dims[t->rank - 2];
  dims[num_batch + 1] = t->dims[t->rank - 1];
  ir_type wide = ir_tensor(t->dtype, num_batch + 2, dims);
  if (!fe_check_size(c, at, &wide))
    return false;
  s->node = fe_emit_broadcast(c, at, s->node, num_batch + 2, dims);
  return s->node != NULL;
}

static ir_node *batched_product(fe *c, ir_loc at, side *a, side *b) {
  int ra = a->node->type.rank - 2, rb = b->node->type.rank - 2, num = ra > rb ? ra : rb;
  int64_t batch[IR_MAX_RANK];
  for (int i = 0; i < num; i++) {
    int64_t x = batch_dim(a, i, num), y = batch_dim(b, i, num);
    if (x != y && x != 1 && y != 1) {
      ir_diag *d = fe_error(c, at, "E0203", "stacks of matrices do not match in '@': %lld and %lld",
                            (long long)x, (long long)y);
      diag_label(d, "%s @ %s", fe_shape_text(c, a->value), fe_shape_text(c, b->value));
      return NULL;
    }
    batch[i] = x == 1 ? y : x;
  }
  return widen(c, at, a, batch, num) && widen(c, at, b, batch, num) ? product(c, at, a, b) : NULL;
}

// Takes back the axes that vectors were given.
static ir_node *close_product(fe *c, ir_loc at, ir_node *n, bool drop_rows, bool drop_cols) {
  if (!n || (!drop_rows && !drop_cols))
    return n;
  int64_t dims[IR_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < n->type.rank; i++)
    if (!(drop_rows && i == n->type.rank - 2) && !(drop_cols && i == n->type.rank - 1))
      dims[rank++] = n->type.dims[i];
  return fe_emit_reshape(c, at, n, rank, dims);
}

// Names of the result's dimensions, where both sides are plain matrices or stacks.
static const char *const *result_names(fe *c, const side *a, const side *b, const ir_node *n) {
  if (!n || a->vector || b->vector)
    return NULL;
  const char **names = IR_NEW_ARRAY(c->arena, const char *, IR_MAX_RANK);
  int rank = n->type.rank;
  if (a->value->node->type.rank == rank && a->value->dim_names)
    memcpy(names, a->value->dim_names, sizeof *names * (size_t)(rank - 2));
  names[rank - 2] = dim_name(a, 0);
  names[rank - 1] = dim_name(b, 1);
  return names;
}

const fe_value *fe_matmul(fe *c, ir_loc at, const fe_value *x, bool ta, const fe_value *y,
                          bool tb) {
  if (x->node->type.dtype != y->node->type.dtype || !ir_is_float(x->node->type.dtype)) {
    ir_diag *d = fe_error(c, at, "E0204", "'@' needs two float tensors of one element type");
    diag_label(d, "%s @ %s", fe_shape_text(c, x), fe_shape_text(c, y));
    diag_help(d, "convert integers with f32(...)");
    return &fe_bad;
  }
  side a = {.value = x, .trans = ta}, b = {.value = y, .trans = tb};
  if (!open_side(c, at, &a, true) || !open_side(c, at, &b, false) || !check_inner(c, at, &a, &b))
    return &fe_bad;
  bool stack_a = a.node->type.rank > 2, stack_b = b.node->type.rank > 2;
  ir_node *n = stack_a && !stack_b && !a.trans ? flat_product(c, at, &a, &b)
               : stack_a || stack_b            ? batched_product(c, at, &a, &b)
                                               : product(c, at, &a, &b);
  return fe_tensor_named(c, close_product(c, at, n, a.vector, b.vector),
                         result_names(c, &a, &b, n));
}
