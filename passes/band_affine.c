// band_affine.c: comparisons of index arithmetic, as bands.
//
//   le (iota axis=1), (iota axis=0)           column <= row:            true in [-rows, 0]
//   lt (sub (iota 0), (iota 1)), 8            row - column < 8:         true in [-7, columns]
//
// Each side is brought to the form  offset + sum over axes of coef * index; their difference must
// be p * (column - row) + rest. Numbers stay below 2^24, which every type here holds exactly, so
// that what is computed is what the form says.
#include "passes/band.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 1 << 24, MAX_DEPTH = 8 };

typedef struct affine {
  int64_t offset, coef[IR_MAX_RANK]; // by axis of the value
} affine;

static bool affine_of(const ir_node *n, int depth, affine *out);

static bool is_exact_type(ir_dtype t) {
  return t == IR_I32 || t == IR_I64 || t == IR_F32 || t == IR_F64;
}

static bool in_range(const affine *x, const ir_type *t) {
  int64_t size = llabs(x->offset);
  for (int d = 0; d < t->rank && size < MOST; d++) {
    if (llabs(x->coef[d]) >= MOST || t->dims[d] >= MOST)
      return false;
    size += llabs(x->coef[d]) * (t->dims[d] - 1);
  }
  return size < MOST;
}

static bool is_constant(const affine *x) {
  for (int d = 0; d < IR_MAX_RANK; d++)
    if (x->coef[d])
      return false;
  return true;
}

static affine scaled(const affine *x, int64_t by) {
  affine r = {.offset = x->offset * by};
  for (int d = 0; d < IR_MAX_RANK; d++)
    r.coef[d] = x->coef[d] * by;
  return r;
}

static affine sum(const affine *x, const affine *y, int64_t sign) {
  affine r = {.offset = x->offset + sign * y->offset};
  for (int d = 0; d < IR_MAX_RANK; d++)
    r.coef[d] = x->coef[d] + sign * y->coef[d];
  return r;
}

static bool affine_const(const ir_node *n, affine *out) {
  double v = ir_attr_num(n, IR_ATTR_VALUE);
  if (!(fabs(v) < MOST) || v != rint(v))
    return false;
  *out = (affine){.offset = (int64_t)v};
  return true;
}

static bool affine_binary(const ir_node *n, int depth, affine *out) {
  affine x, y;
  if (!affine_of(n->in[0], depth, &x) || !affine_of(n->in[1], depth, &y))
    return false;
  if (n->op != IR_MUL) {
    *out = sum(&x, &y, n->op == IR_SUB ? -1 : 1);
    return true;
  }
  if (!is_constant(&x) && !is_constant(&y))
    return false;
  *out = is_constant(&x) ? scaled(&y, x.offset) : scaled(&x, y.offset);
  return true;
}

// Dimensions match from the last one on, those of size 1 left aside; what lies before them must
// not count.
static bool affine_reshape(const ir_node *n, const affine *x, affine *out) {
  const ir_type *from = &n->in[0]->type, *to = &n->type;
  int i = from->rank - 1;
  *out = (affine){.offset = x->offset};
  for (int d = to->rank - 1; d >= 0; d--) {
    if (to->dims[d] == 1)
      continue;
    while (i >= 0 && from->dims[i] == 1)
      i--;
    if (i < 0 || from->dims[i] != to->dims[d])
      break;
    out->coef[d] = x->coef[i--];
  }
  for (; i >= 0; i--)
    if (x->coef[i] && from->dims[i] != 1)
      return false;
  return true;
}

static void affine_transpose(const ir_node *n, const affine *x, affine *out) {
  int rank;
  const int64_t *perm = ir_attr_ints(n, IR_ATTR_PERM, &rank);
  *out = (affine){.offset = x->offset};
  for (int d = 0; d < rank; d++)
    out->coef[d] = x->coef[perm[d]];
}

static void affine_broadcast(const ir_node *n, const affine *x, affine *out) {
  *out = *x;
  for (int d = 0; d < n->type.rank; d++)
    if (n->in[0]->type.dims[d] != n->type.dims[d])
      out->coef[d] = 0; // the index was always 0
}

static void affine_slice(const ir_node *n, const affine *x, affine *out) {
  int rank;
  const int64_t *start = ir_attr_ints(n, IR_ATTR_START, &rank);
  const int64_t *step = ir_attr_ints(n, IR_ATTR_STEP, &rank);
  *out = *x;
  for (int d = 0; d < rank; d++) {
    out->offset += x->coef[d] * start[d];
    out->coef[d] *= step[d];
  }
}

static void affine_windows(const ir_node *n, const affine *x, affine *out) {
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  const int64_t *step = ir_attr_ints(n, IR_ATTR_STEP, NULL);
  const int64_t *dilate = ir_attr_ints(n, IR_ATTR_DILATE, NULL);
  *out = *x;
  for (int i = 0; i < num; i++) {
    out->coef[axes[i]] *= step[i];
    out->coef[n->in[0]->type.rank + i] = x->coef[axes[i]] * dilate[i];
  }
}

static bool affine_view(const ir_node *n, int depth, affine *out) {
  affine x;
  if (!affine_of(n->in[0], depth, &x))
    return false;
  if (n->op == IR_RESHAPE)
    return affine_reshape(n, &x, out);
  if (n->op == IR_TRANSPOSE)
    affine_transpose(n, &x, out);
  else if (n->op == IR_BROADCAST)
    affine_broadcast(n, &x, out);
  else if (n->op == IR_WINDOWS)
    affine_windows(n, &x, out);
  else
    affine_slice(n, &x, out);
  return true;
}

static bool affine_unary(const ir_node *n, int depth, affine *out) {
  affine x;
  if (!affine_of(n->in[0], depth, &x))
    return false;
  *out = n->op == IR_NEG ? scaled(&x, -1) : x;
  return true;
}

static bool affine_iota(const ir_node *n, affine *out) {
  *out = (affine){0};
  out->coef[ir_attr_int(n, IR_ATTR_AXIS)] = 1;
  return true;
}

static bool affine_of_op(const ir_node *n, int depth, affine *out) {
  switch (n->op) {
  case IR_CONST:
    return affine_const(n, out);
  case IR_IOTA:
    return affine_iota(n, out);
  case IR_NEG:
  case IR_COPY:
  case IR_CAST:
    return affine_unary(n, depth, out);
  case IR_ADD:
  case IR_SUB:
  case IR_MUL:
    return affine_binary(n, depth, out);
  default:
    return ir_ops[n->op].cls == IR_CLASS_VIEW && affine_view(n, depth, out);
  }
}

static bool affine_of(const ir_node *n, int depth, affine *out) {
  return depth < MAX_DEPTH && is_exact_type(n->type.dtype) && affine_of_op(n, depth + 1, out) &&
         in_range(out, &n->type);
}

// --- comparisons ---------------------------------------------------------------------------------
static int64_t floor_div(int64_t a, int64_t b) { // b > 0
  return a / b - (a % b < 0);
}

// p * d <= bound, for diagonals d of a matrix.
static band_truth at_most(int64_t p, int64_t bound, ir_band all) {
  if (p == 0)
    return bound >= 0 ? (band_truth){all, band_none()} : (band_truth){band_none(), all};
  int64_t last = floor_div(bound, llabs(p)); // of d, or of -d
  ir_band yes = {all.lower, p > 0 ? last : all.upper},
          no = {p > 0 ? last + 1 : all.lower, all.upper};
  if (p < 0) {
    yes.lower = -last;
    no.upper = -last - 1;
  }
  return (band_truth){band_meet(yes, all), band_meet(no, all)};
}

static band_truth equal(int64_t p, int64_t rest, ir_band all) {
  if (p == 0)
    return rest == 0 ? (band_truth){all, band_none()} : (band_truth){band_none(), all};
  if (rest % p)
    return (band_truth){band_none(), all};
  int64_t d = -rest / p;
  ir_band others = {all.lower + (d == all.lower), all.upper - (d == all.upper)};
  return (band_truth){band_meet((ir_band){d, d}, all), others};
}

static band_truth opposite(band_truth t) {
  return (band_truth){t.no, t.yes};
}

// p * (column - row) + rest, compared with 0.
band_truth band_of_difference(ir_op op, int64_t p, int64_t rest, ir_band all) {
  switch (op) {
  case IR_LE:
    return at_most(p, -rest, all);
  case IR_LT:
    return at_most(p, -rest - 1, all);
  case IR_GT:
    return opposite(at_most(p, -rest, all));
  case IR_GE:
    return opposite(at_most(p, -rest - 1, all));
  case IR_EQ:
    return equal(p, rest, all);
  case IR_NE:
    return opposite(equal(p, rest, all));
  default:
    return (band_truth){all, all};
  }
}

band_truth band_of_comparison(const ir_node *n) {
  ir_band all = band_all(&n->type);
  band_truth anything = {all, all};
  affine x, y;
  int rank = n->type.rank;
  if (rank < 2 || n->num_in != 2 || !affine_of(n->in[0], 0, &x) || !affine_of(n->in[1], 0, &y))
    return anything;
  affine d = sum(&x, &y, -1);
  for (int i = 0; i < rank - 2; i++)
    if (d.coef[i] && n->type.dims[i] > 1)
      return anything;
  if (d.coef[rank - 2] != -d.coef[rank - 1])
    return anything;
  return band_of_difference(n->op, d.coef[rank - 1], d.offset, all);
}
