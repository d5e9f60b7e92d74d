// builtins_math.c: built-in functions that compute: pointwise functions, casts, reductions,
// where, max and min, gradients.
#include "frontend/builtins.h"

#include <math.h>

#include "ir/narrow.h"

// A double would not hold all digits beyond 2^53.
static const fe_value *whole_math(fe *c, ir_loc at, ir_op op, int64_t x) {
  if (op == IR_ABS && x == INT64_MIN)
    return FE_FAIL(c, at, "E0210", "the number does not fit in 64 bits");
  return fe_int(c, op == IR_SIGN ? (x > 0) - (x < 0) : op == IR_ABS && x < 0 ? -x : x);
}

BUILTIN(math) {
  const fe_value *x = a->v[0];
  ir_op op = (ir_op)a->variant;
  double num;
  if (x->kind == FE_TENSOR)
    return fe_tensor_named(c, fe_emit_unary(c, a->call->loc, op, x->node), x->dim_names);
  if (!fe_want_num(c, x, a->at[0], ir_format(c->arena, "the argument of '%s'", a->call->text),
                   &num))
    return &fe_bad;
  if (x->is_int && (op == IR_ABS || op == IR_SIGN || op == IR_FLOOR))
    return whole_math(c, a->call->loc, op, x->i);
  return fe_const_math(c, a->call->loc, op, num);
}

static const fe_value *cast_number_to_float(fe *c, const builtin_args *a, ir_dtype t, double num) {
  double result = ir_narrow(t, num);
  return isfinite(result) || fe_check_fits(c, a->at[0], a->v[0], t) ? fe_float(c, result) : &fe_bad;
}

// A number keeps being a number: i32(2.7) is 2, f32(2) is 2. So what a tensor would wrap or cut off at the end of the
// range is refused: u8(300) would go on as 300.
static const fe_value *cast_number(fe *c, const builtin_args *a, ir_dtype t, double num) {
  if (t == IR_BOOL)
    return fe_bool(c, num != 0);
  if (ir_is_float(t))
    return cast_number_to_float(c, a, t, num);
  if (!(fabs(num) < 0x1p63))
    return FE_FAIL(c, a->at[0], "E0210", "the number does not fit in 64 bits");
  const fe_value *whole = a->v[0]->is_int ? a->v[0] : fe_int(c, (int64_t)num);
  return t == IR_I64 || fe_check_fits(c, a->at[0], whole, t) ? whole : &fe_bad;
}

BUILTIN(cast) {
  const fe_value *x = a->v[0];
  ir_dtype t = (ir_dtype)a->variant;
  double num;
  if (x->kind == FE_TENSOR)
    return fe_tensor_named(c, fe_emit_cast(c, a->call->loc, x->node, t), x->dim_names);
  if (x->kind == FE_BOOL)
    return cast_number(c, a, t, (double)x->i);
  return fe_want_num(c, x, a->at[0], "the argument of a cast", &num) ? cast_number(c, a, t, num)
                                                                     : &fe_bad;
}

// In the element type of another tensor; of `none` f32. Nothing changes where it has that type: std calls it with what
// mostly is f32 already.
BUILTIN(convert) {
  const fe_value *x = a->v[0], *like = a->v[1];
  if (!fe_want_tensor(c, x, a->at[0], "what convert() converts") ||
      (like->kind != FE_NONE &&
       !fe_want_tensor(c, like, a->at[1], "the second argument of convert()")))
    return &fe_bad;
  ir_dtype t = like->kind == FE_NONE ? IR_F32 : like->node->type.dtype;
  if (x->node->type.dtype == t)
    return x;
  return fe_tensor_named(c, fe_emit_cast(c, a->call->loc, x->node, t), x->dim_names);
}

// --- reductions ----------------------------------------------------------------------------------
bool builtin_axis(fe *c, const fe_value *v, ir_loc at, int rank, int *out) {
  int64_t axis;
  if (!fe_want_int(c, v, at, "an axis", &axis))
    return false;
  if (axis < -rank || axis >= rank) {
    ir_diag *d = fe_error(c, at, "E0213", "axis %lld is out of range", (long long)axis);
    diag_label(d, "the value has %d dimension%s", rank, rank == 1 ? "" : "s");
    return false;
  }
  *out = (int)(axis < 0 ? axis + rank : axis);
  return true;
}

typedef struct reduction {
  int64_t axes[IR_MAX_RANK];
  int num;
  bool reduced[IR_MAX_RANK];
  bool keep;
} reduction;

static bool mark_axis(fe *c, const fe_value *v, ir_loc at, int rank, reduction *r) {
  int axis;
  if (!builtin_axis(c, v, at, rank, &axis))
    return false;
  if (r->reduced[axis]) {
    fe_error(c, at, "E0213", "axis %d is given twice", axis);
    return false;
  }
  r->reduced[axis] = true;
  return true;
}

// `axis`: one, a list, or all when it is not given.
static bool read_axes(fe *c, const fe_value *axis, ir_loc at, int rank, reduction *r) {
  if (axis && axis->kind == FE_LIST) {
    for (size_t i = 0; i < axis->num_items; i++)
      if (!mark_axis(c, axis->items[i], at, rank, r))
        return false;
  } else if (axis && !mark_axis(c, axis, at, rank, r)) {
    return false;
  }
  for (int i = 0; i < rank; i++) {
    r->reduced[i] = r->reduced[i] || !axis;
    if (r->reduced[i])
      r->axes[r->num++] = i;
  }
  return true;
}

static ir_node *drop_axes(fe *c, ir_loc at, ir_node *n, const reduction *r) {
  int64_t dims[IR_MAX_RANK];
  int rank = 0;
  for (int i = 0; n && i < n->type.rank; i++)
    if (!r->reduced[i])
      dims[rank++] = n->type.dims[i];
  return n && !r->keep ? fe_emit_reshape(c, at, n, rank, dims) : n;
}

static const char *const *left_names(fe *c, const fe_value *x, const reduction *r) {
  if (!x->dim_names)
    return NULL;
  const char **names = IR_NEW_ARRAY(c->arena, const char *, IR_MAX_RANK);
  for (int i = 0, k = 0; i < x->node->type.rank; i++)
    if (r->keep || !r->reduced[i])
      names[k++] = r->reduced[i] ? NULL : x->dim_names[i];
  return names;
}

static bool start_reduction(fe *c, const builtin_args *a, int axis, reduction *r) {
  const fe_value *x = a->v[0], *keep = a->v[axis + 1];
  if (!fe_want_tensor(c, x, a->at[0], ir_format(c->arena, "the argument of '%s'", a->call->text)))
    return false;
  if (keep && !fe_want_bool(c, keep, a->at[axis + 1], "'keep'", &r->keep))
    return false;
  return read_axes(c, a->v[axis], a->at[axis], x->node->type.rank, r);
}

static const fe_value *reduce(fe *c, const builtin_args *a, ir_op op, ir_node *n,
                              const reduction *r, double scale) {
  ir_loc at = a->call->loc;
  if (n && r->num) {
    ir_attr axes = ir_a_ints(c->arena, IR_ATTR_AXES, r->axes, r->num);
    n = fe_emit(c, at, op, 1, &n, 1, &axes, NULL);
  }
  n = drop_axes(c, at, n, r);
  const fe_value *v = fe_tensor_named(c, n, left_names(c, a->v[0], r));
  if (scale == 1 || fe_is_bad(v))
    return v;
  return fe_binary(c, AST_OP_MUL, at, v, fe_float(c, scale));
}

// sum and mean. Truth values count as 1; a mean is always a float.
BUILTIN(sum) {
  reduction r = {0};
  bool mean = a->variant == 1;
  if (!start_reduction(c, a, 1, &r))
    return &fe_bad;
  ir_node *n = a->v[0]->node;
  double count = 1;
  for (int i = 0; i < r.num; i++)
    count *= (double)n->type.dims[r.axes[i]];
  if (n->type.dtype == IR_BOOL || (mean && !ir_is_float(n->type.dtype)))
    n = fe_emit_cast(c, a->call->loc, n, IR_F32);
  return reduce(c, a, IR_SUM, n, &r, mean ? 1 / count : 1);
}

static const fe_value *extreme_of_numbers(const builtin_args *a) {
  const fe_value *x = a->v[0], *y = a->v[1];
  bool whole = x->is_int && y->is_int; // exact, also beyond 2^53
  bool less = whole ? x->i < y->i : x->num < y->num, more = whole ? x->i > y->i : x->num > y->num;
  return (a->variant == IR_MAX ? less : more) ? y : x;
}

// max(x, y) compares element by element; max(x, axis=i) reduces.
BUILTIN(extreme) {
  const fe_value *x = a->v[0], *y = a->v[1];
  if (y && (a->v[2] || a->v[3]))
    return FE_FAIL(c, a->at[1], "E0205", "'%s' takes a second value or an axis, not both",
                   a->call->text);
  if (y && x->kind == FE_NUM && y->kind == FE_NUM)
    return extreme_of_numbers(a);
  if (y && x->kind != FE_TENSOR && y->kind != FE_TENSOR)
    return FE_FAIL(c, a->at[0], "E0202", "'%s' needs numbers or tensors", a->call->text);
  if (y)
    return fe_pointwise(c, (ir_op)a->variant, a->call->loc, x, y);
  reduction r = {0};
  if (!start_reduction(c, a, 2, &r))
    return &fe_bad;
  return reduce(c, a, a->variant == IR_MAX ? IR_REDUCE_MAX : IR_REDUCE_MIN, x->node, &r, 1);
}

BUILTIN(arg) {
  reduction r = {0};
  int axis;
  const fe_value *x = a->v[0];
  if (!fe_want_tensor(c, x, a->at[0], "the argument of argmax") ||
      !builtin_axis(c, a->v[1], a->at[1], x->node->type.rank, &axis))
    return &fe_bad;
  r.reduced[axis] = true;
  ir_attr attr = ir_a_int(IR_ATTR_AXIS, axis);
  ir_node *n = fe_emit(c, a->call->loc, (ir_op)a->variant, 1, &x->node, 1, &attr, NULL);
  return fe_tensor_named(c, drop_axes(c, a->call->loc, n, &r), left_names(c, x, &r));
}

// --- others --------------------------------------------------------------------------------------
BUILTIN(where) {
  const fe_value *cond = a->v[0];
  if (cond->kind == FE_BOOL)
    return cond->i ? a->v[1] : a->v[2];
  for (int i = 1; i < 3; i++)
    if (a->v[i]->kind != FE_NUM && !fe_want_tensor(c, a->v[i], a->at[i], "a branch of where()"))
      return &fe_bad;
  return fe_want_tensor(c, cond, a->at[0], "the condition of where()")
             ? fe_select(c, a->call->loc, cond, a->v[1], a->v[2])
             : &fe_bad;
}

BUILTIN(stop) {
  const fe_value *x = a->v[0];
  if (x->kind == FE_NUM)
    return x;
  return fe_want_tensor(c, x, a->at[0], "the argument of stop()")
             ? fe_tensor_named(c, fe_emit_unary(c, a->call->loc, IR_STOP, x->node), x->dim_names)
             : &fe_bad;
}

// --- gradients -----------------------------------------------------------------------------------
// Is `y` computed from `x`? Operands stand before what uses them.
static bool comes_from(const fe *c, const ir_node *y, const ir_node *x) {
  const ir_func *f = c->pass->b.func;
  bool *needed = IR_NEW_ARRAY(c->arena, bool, f->next_id);
  needed[y->id] = true;
  for (size_t i = f->nodes.num; i-- > 0;) {
    const ir_node *n = f->nodes.at[i];
    for (int k = 0; needed[n->id] && k < n->num_in; k++)
      needed[n->in[k]->id] = true;
  }
  return needed[x->id];
}

// A node that pass `autodiff` expands; gradients of what is computed from it see the expansion.
BUILTIN(grad) {
  const fe_value *y = a->v[0], *x = a->v[1];
  ir_node *of = fe_want_scalar(c, y, a->at[0], "what grad() differentiates");
  if (!of || !fe_want_tensor(c, x, a->at[1], "what grad() differentiates for"))
    return &fe_bad;
  ir_dtype t = x->node->type.dtype;
  if (!ir_is_float(t) || ir_is_narrow(t)) {
    ir_diag *d = fe_error(c, a->at[1], "E0204", "grad() differentiates for floating-point tensors");
    diag_label(d, "this is %s", fe_shape_text(c, x));
    if (ir_is_narrow(t))
      diag_help(
          d, "bf16 and f16 are for storing: convert it with f32(...), and compute both from that");
    return &fe_bad;
  }
  if (!comes_from(c, of, x->node)) {
    ir_diag *d =
        fe_error(c, a->at[1], "E0227", "the first argument of grad() is not computed from this");
    diag_help(d, "name the value first, and compute both from it: z = 2 * x; y = f(z); grad(y, z)");
    return &fe_bad;
  }
  c->pass->b.loc = fe_node_loc(c, a->call->loc);
  return fe_tensor_named(c, ir_grad(&c->pass->b, of, x->node), x->dim_names);
}
