// index.c: x[:, 0:3, ::2, -1, ..., none] as a slice and, where single indices drop axes and `none` adds some, a
// reshape.
#include "frontend/check.h"

#include <string.h>

enum { NEW_AXIS = -1, MOST_AXES = 2 * IR_MAX_RANK };

typedef struct indexer {
  fe *c;
  const fe_value *of;
  int64_t start[IR_MAX_RANK], stop[IR_MAX_RANK], step[IR_MAX_RANK];
  int axes[MOST_AXES]; // of the result: axes of the value, or NEW_AXIS
  int num_axes;
} indexer;

static void put_axis(indexer *x, int axis) {
  if (x->num_axes < MOST_AXES)
    x->axes[x->num_axes++] = axis;
}

static bool is_new_axis(const ast_expr *e) {
  return e->kind == AST_NAME && strcmp(e->text, "none") == 0;
}

static bool part(indexer *x, const ast_expr *e, int64_t *out) {
  return !e || fe_want_int(x->c, fe_eval(x->c, e), e->loc, "a slice bound", out);
}

// Negative ones count from the end. Python cuts off what lies outside; here sizes are known, and a part of another size
// than was asked for would be found out far from this place, or not at all.
static bool take_bound(indexer *x, const ast_expr *e, int64_t size, int64_t *at) {
  if (!part(x, e, at))
    return false;
  if (e && (*at < -size || *at > size)) {
    fe_error(x->c, e->loc, "E0220", "slice bound %lld of a dimension of %lld", (long long)*at,
             (long long)size);
    return false;
  }
  *at = *at < 0 ? *at + size : *at;
  return true;
}

static bool take_slice(indexer *x, const ast_expr *e, int axis) {
  int64_t size = x->stop[axis], lo = 0, hi = size, step = 1;
  if (!take_bound(x, e->a, size, &lo) || !take_bound(x, e->b, size, &hi) || !part(x, e->c, &step))
    return false;
  if (step < 1 || hi <= lo) {
    ir_diag *d = step < 1
                     ? fe_error(x->c, e->loc, "E0220",
                                "a slice step must be at least 1, this is %lld", (long long)step)
                     : fe_error(x->c, e->loc, "E0220", "the slice is empty");
    diag_label(d, "of a dimension of %lld", (long long)size);
    if (step < 0)
      diag_help(d, "flip(x, axis) has the last row first");
    return false;
  }
  x->start[axis] = lo, x->stop[axis] = hi;
  x->step[axis] = step < hi - lo ? step : 1, x->stop[axis] = step < hi - lo ? hi : lo + 1;
  put_axis(x, axis);
  return true;
}

static bool take_index(indexer *x, const ast_expr *e, int axis) {
  const fe_value *v = fe_eval(x->c, e);
  int64_t i, size = x->stop[axis];
  if (v->kind == FE_TENSOR && !v->flag) {
    ir_diag *d = fe_error(x->c, e->loc, "E0207", "an index must be known at compile time");
    diag_label(d, "this is %s", fe_describe(x->c, v));
    diag_help(d, "gather(table, index) takes rows by a tensor of indices");
    return false;
  }
  if (!fe_want_int(x->c, v, e->loc, "an index", &i))
    return false;
  if (i < -size || i >= size) {
    fe_error(x->c, e->loc, "E0220", "index %lld of a dimension of %lld", (long long)i,
             (long long)size);
    return false;
  }
  x->start[axis] = i < 0 ? i + size : i;
  x->stop[axis] = x->start[axis] + 1;
  return true;
}

static bool check_rank(indexer *x, const ast_expr *e) {
  if (x->num_axes <= IR_MAX_RANK)
    return true;
  fe_error(x->c, e->loc, "E0220", "this has more than %d axes", IR_MAX_RANK);
  return false;
}

static bool take_items(indexer *x, const ast_expr *e) {
  int rank = x->of->node->type.rank, axis = 0;
  size_t num = e->items.num, dots = 0, taken = 0;
  for (size_t i = 0; i < num; i++) {
    dots += e->items.at[i]->kind == AST_ELLIPSIS;
    taken += e->items.at[i]->kind != AST_ELLIPSIS && !is_new_axis(e->items.at[i]);
  }
  if (dots > 1 || taken > (size_t)rank) {
    ir_diag *d = fe_error(x->c, e->loc, "E0220",
                          dots > 1 ? "only one '...' in an index" : "too many indices");
    diag_label(d, "the value is %s", fe_shape_text(x->c, x->of));
    return false;
  }
  for (size_t i = 0; i < num; i++) {
    const ast_expr *item = e->items.at[i];
    if (is_new_axis(item))
      put_axis(x, NEW_AXIS);
    else if (item->kind == AST_ELLIPSIS)
      for (size_t left = (size_t)rank - taken; left > 0; left--)
        put_axis(x, axis++);
    else if (!(item->kind == AST_SLICE ? take_slice : take_index)(x, item, axis++))
      return false;
  }
  while (axis < rank)
    put_axis(x, axis++);
  return check_rank(x, e);
}

static bool takes_all(const indexer *x, const ir_type *t) {
  for (int i = 0; i < t->rank; i++)
    if (x->start[i] != 0 || x->stop[i] != t->dims[i] || x->step[i] != 1)
      return false;
  return true;
}

const fe_value *fe_index(fe *c, const ast_expr *e, const fe_value *of) {
  indexer x = {.c = c, .of = of};
  ir_node *n = of->node;
  int rank = n->type.rank;
  for (int i = 0; i < rank; i++)
    x.stop[i] = n->type.dims[i], x.step[i] = 1;
  if (!take_items(&x, e))
    return &fe_bad;
  if (!takes_all(&x, &n->type)) {
    ir_attr attrs[] = {ir_a_ints(c->arena, IR_ATTR_START, x.start, rank),
                       ir_a_ints(c->arena, IR_ATTR_STOP, x.stop, rank),
                       ir_a_ints(c->arena, IR_ATTR_STEP, x.step, rank)};
    n = fe_emit(c, e->loc, IR_SLICE, 1, &n, 3, attrs, NULL);
  }
  int64_t dims[IR_MAX_RANK];
  for (int i = 0; n && i < x.num_axes; i++)
    dims[i] = x.axes[i] == NEW_AXIS ? 1 : n->type.dims[x.axes[i]];
  return fe_tensor(c, n ? fe_emit_reshape(c, e->loc, n, x.num_axes, dims) : NULL);
}
