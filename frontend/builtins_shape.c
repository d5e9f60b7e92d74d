// builtins_shape.c: built-in functions that arrange: views, joins, indices, fills, random values,
// initialisers, and questions about values.
#include "frontend/builtins.h"

#include <string.h>

static bool want_x(fe *c, const builtin_args *a) {
  return fe_want_tensor(c, a->v[0], a->at[0],
                        ir_format(c->arena, "the argument of '%s'", a->call->text));
}

// --- views ---------------------------------------------------------------------------------------
static bool product(const int64_t *dims, int rank, int64_t *out) {
  *out = 1;
  for (int i = 0; i < rank; i++)
    if (dims[i] != -1 && __builtin_mul_overflow(*out, dims[i], out))
      return false;
  return true;
}

// Replaces a -1 by what the other dimensions leave.
static bool fill_wild(int64_t *dims, int rank, int64_t have, int64_t known) {
  for (int i = 0; i < rank; i++)
    if (dims[i] == -1) {
      dims[i] = have / known;
      return have % known == 0;
    }
  return have == known;
}

BUILTIN(reshape) {
  int64_t dims[IR_MAX_RANK], known;
  int rank;
  if (!want_x(c, a) || !fe_want_shape(c, a->v[1], a->at[1], true, dims, &rank))
    return &fe_bad;
  int64_t have = ir_elements(&a->v[0]->node->type);
  if (!product(dims, rank, &known) || !fill_wild(dims, rank, have, known)) {
    ir_diag *d = fe_error(c, a->at[1], "E0203", "the shape does not hold as many elements");
    diag_label(d, "the value is %s, %lld elements", fe_shape_text(c, a->v[0]), (long long)have);
    return &fe_bad;
  }
  return fe_tensor(c, fe_emit_reshape(c, a->call->loc, a->v[0]->node, rank, dims));
}

BUILTIN(transpose) {
  int64_t perm[IR_MAX_RANK];
  bool seen[IR_MAX_RANK] = {false};
  int num;
  if (!want_x(c, a) || !fe_want_ints(c, a->v[1], a->at[1], "axes", IR_MAX_RANK, perm, &num))
    return &fe_bad;
  ir_node *x = a->v[0]->node;
  bool ok = num == x->type.rank;
  for (int i = 0; ok && i < num; i++) {
    perm[i] += perm[i] < 0 ? num : 0;
    ok = perm[i] >= 0 && perm[i] < num && !seen[perm[i]];
    if (ok)
      seen[perm[i]] = true;
  }
  if (!ok) {
    ir_diag *d = fe_error(c, a->at[1], "E0213", "the axes must be each axis of the value once");
    diag_label(d, "the value is %s", fe_shape_text(c, a->v[0]));
    return &fe_bad;
  }
  const char **names = IR_NEW_ARRAY(c->arena, const char *, IR_MAX_RANK);
  for (int i = 0; a->v[0]->dim_names && i < num; i++)
    names[i] = a->v[0]->dim_names[perm[i]];
  ir_attr attr = ir_a_ints(c->arena, IR_ATTR_PERM, perm, num);
  return fe_tensor_named(c, fe_emit(c, a->call->loc, IR_TRANSPOSE, 1, &x, 1, &attr, NULL), names);
}

BUILTIN(broadcast) {
  int64_t dims[IR_MAX_RANK];
  int rank;
  if (!want_x(c, a) || !fe_want_shape(c, a->v[1], a->at[1], false, dims, &rank))
    return &fe_bad;
  const ir_type *t = &a->v[0]->node->type;
  bool ok = rank >= t->rank;
  for (int i = 0; ok && i < t->rank; i++)
    ok = t->dims[i] == 1 || t->dims[i] == dims[rank - t->rank + i];
  if (!ok) {
    ir_diag *d = fe_error(c, a->at[1], "E0203", "the value cannot be broadcast to this shape");
    diag_label(d, "the value is %s", fe_shape_text(c, a->v[0]));
    return &fe_bad;
  }
  ir_type wide = ir_tensor(t->dtype, rank, dims);
  if (!fe_check_size(c, a->at[1], &wide))
    return &fe_bad;
  return fe_tensor(c, fe_emit_broadcast(c, a->call->loc, a->v[0]->node, rank, dims));
}

// --- joins and parts -----------------------------------------------------------------------------
static const fe_value *want_list(fe *c, const builtin_args *a, const char *name) {
  ir_diag *d = fe_error(c, a->at[0], "E0202", "%s needs a list of tensors", name);
  diag_help(d, "%s([x, y], axis=0)", name);
  return &fe_bad;
}

BUILTIN(concat) {
  const fe_value *list = a->v[0];
  int axis;
  if (list->kind != FE_LIST || list->num_items == 0)
    return want_list(c, a, "concat");
  ir_node **in = IR_NEW_ARRAY(c->arena, ir_node *, list->num_items);
  for (size_t i = 0; i < list->num_items; i++) {
    if (!fe_want_tensor(c, list->items[i], a->at[0], "each value of concat"))
      return &fe_bad;
    in[i] = list->items[i]->node;
  }
  if (!builtin_axis(c, a->v[1], a->at[1], in[0]->type.rank, &axis))
    return &fe_bad;
  if (list->num_items == 1)
    return list->items[0];
  ir_attr attr = ir_a_int(IR_ATTR_AXIS, axis);
  return fe_tensor(c,
                   fe_emit(c, a->call->loc, IR_CONCAT, (int)list->num_items, in, 1, &attr, NULL));
}

// A number beside tensors is like the first of them; a list of numbers is a table.
static const fe_value *stacked_number(fe *c, const builtin_args *a, const fe_value *v) {
  const fe_value *list = a->v[0];
  ir_type type = ir_tensor(v->kind == FE_BOOL ? IR_BOOL : IR_F32, 0, NULL);
  for (size_t i = list->num_items; i-- > 0;)
    if (list->items[i]->kind == FE_TENSOR)
      type = list->items[i]->node->type;
  return fe_number_to_tensor(c, a->at[0], v, type.dtype, &type);
}

static bool may_be_stacked(fe *c, const builtin_args *a, const fe_value *first,
                           const fe_value *one) {
  if (!fe_want_tensor(c, one, a->at[0], "each value of stack"))
    return false;
  if (!ir_same_shape(&one->node->type, &first->node->type)) {
    ir_diag *d = fe_error(c, a->at[0], "E0203", "what is stacked has one shape");
    diag_label(d, "the first is %s, another %s", fe_shape_text(c, first), fe_shape_text(c, one));
    return false;
  }
  if (one->node->type.rank < IR_MAX_RANK)
    return true;
  fe_error(c, a->at[0], "E0220", "this has more than %d axes", IR_MAX_RANK);
  return false;
}

static ir_node *with_new_axis(fe *c, ir_loc at, ir_node *x, int axis) {
  int64_t dims[IR_MAX_RANK];
  for (int i = 0; i < x->type.rank + 1; i++)
    dims[i] = i == axis ? 1 : x->type.dims[i - (i > axis)];
  return fe_emit_reshape(c, at, x, x->type.rank + 1, dims);
}

BUILTIN(stack) {
  const fe_value *list = a->v[0];
  int axis = 0;
  if (list->kind != FE_LIST || list->num_items == 0)
    return want_list(c, a, "stack");
  const fe_value **items = IR_NEW_ARRAY(c->arena, const fe_value *, list->num_items);
  for (size_t i = 0; i < list->num_items; i++) {
    const fe_value *v = list->items[i];
    items[i] = v->kind == FE_NUM || v->kind == FE_BOOL ? stacked_number(c, a, v) : v;
    if (!may_be_stacked(c, a, items[0], items[i]))
      return &fe_bad;
  }
  int rank = items[0]->node->type.rank + 1;
  if (a->v[1] && !builtin_axis(c, a->v[1], a->at[1], rank, &axis))
    return &fe_bad;
  ir_node **in = IR_NEW_ARRAY(c->arena, ir_node *, list->num_items);
  for (size_t i = 0; i < list->num_items; i++)
    in[i] = with_new_axis(c, a->call->loc, items[i]->node, axis);
  if (list->num_items == 1)
    return fe_tensor(c, in[0]);
  ir_attr attr = ir_a_int(IR_ATTR_AXIS, axis);
  return fe_tensor(c,
                   fe_emit(c, a->call->loc, IR_CONCAT, (int)list->num_items, in, 1, &attr, NULL));
}

static ir_node *slice_axis(fe *c, ir_loc at, ir_node *x, int axis, int64_t lo, int64_t hi) {
  int64_t start[IR_MAX_RANK] = {0}, step[IR_MAX_RANK], stop[IR_MAX_RANK];
  int rank = x->type.rank;
  for (int i = 0; i < rank; i++)
    stop[i] = x->type.dims[i], step[i] = 1;
  start[axis] = lo, stop[axis] = hi;
  ir_attr attrs[] = {ir_a_ints(c->arena, IR_ATTR_START, start, rank),
                     ir_a_ints(c->arena, IR_ATTR_STOP, stop, rank),
                     ir_a_ints(c->arena, IR_ATTR_STEP, step, rank)};
  return fe_emit(c, at, IR_SLICE, 1, &x, 3, attrs, NULL);
}

// The sizes of the parts: n equal ones, or a list.
static int64_t *part_sizes(fe *c, const builtin_args *a, int64_t size, size_t *num) {
  const fe_value *v = a->v[1];
  bool list = v->kind == FE_LIST;
  int64_t parts = list ? (int64_t)v->num_items : 0, total = 0;
  if (!list && !fe_want_int(c, v, a->at[1], "the number of parts", &parts))
    return NULL;
  if (parts < 1 || parts > size || (!list && size % parts)) {
    fe_error(c, a->at[1], "E0203", "cannot split %lld into %lld equal parts", (long long)size,
             (long long)parts);
    return NULL;
  }
  if (parts > FE_MAX_NODES) {
    fe_error(c, a->at[1], "E0210", "%lld parts; at most %d are possible", (long long)parts,
             FE_MAX_NODES);
    return NULL;
  }
  int64_t *sizes = IR_NEW_ARRAY(c->arena, int64_t, parts);
  for (int64_t i = 0; i < parts; i++) {
    sizes[i] = size / parts;
    if (list && !fe_want_int(c, v->items[i], a->at[1], "the size of a part", &sizes[i]))
      return NULL;
    if (sizes[i] < 1) {
      fe_error(c, a->at[1], "E0203", "a part of size %lld; each has 1 or more",
               (long long)sizes[i]);
      return NULL;
    }
    if (sizes[i] > size - total) {
      fe_error(c, a->at[1], "E0203", "the parts do not add up to %lld", (long long)size);
      return NULL;
    }
    total += sizes[i];
  }
  *num = (size_t)parts;
  if (total == size)
    return sizes;
  fe_error(c, a->at[1], "E0203", "the parts add up to %lld, not %lld", (long long)total,
           (long long)size);
  return NULL;
}

BUILTIN(split) {
  int axis;
  size_t num;
  if (!want_x(c, a) || !builtin_axis(c, a->v[2], a->at[2], a->v[0]->node->type.rank, &axis))
    return &fe_bad;
  ir_node *x = a->v[0]->node;
  int64_t *sizes = part_sizes(c, a, x->type.dims[axis], &num);
  if (!sizes)
    return &fe_bad;
  const fe_value **parts = IR_NEW_ARRAY(c->arena, const fe_value *, num);
  for (size_t i = 0, at = 0; i < num; at += (size_t)sizes[i++]) {
    ir_node *n =
        num == 1 ? x : slice_axis(c, a->call->loc, x, axis, (int64_t)at, (int64_t)at + sizes[i]);
    parts[i] = fe_tensor(c, n);
    if (fe_is_bad(parts[i]))
      return &fe_bad;
  }
  return fe_list(c, parts, num);
}

// pad_lowest: what is never larger than an element, which is no number that a graph could say.
BUILTIN(pad) {
  int64_t lo[IR_MAX_RANK], hi[IR_MAX_RANK];
  int num_lo, num_hi;
  double value = 0;
  if (!want_x(c, a) || !fe_want_ints(c, a->v[1], a->at[1], "'lo'", IR_MAX_RANK, lo, &num_lo) ||
      !fe_want_ints(c, a->v[2], a->at[2], "'hi'", IR_MAX_RANK, hi, &num_hi) ||
      (a->v[3] && !fe_want_num(c, a->v[3], a->at[3], "'value'", &value)))
    return &fe_bad;
  ir_node *x = a->v[0]->node;
  if (a->v[3] && !fe_check_fits(c, a->at[3], a->v[3], x->type.dtype))
    return &fe_bad;
  if (a->variant)
    value = ir_start_value(IR_REDUCE_MAX, x->type.dtype);
  bool ok = num_lo == x->type.rank && num_hi == x->type.rank;
  for (int i = 0; ok && i < num_lo; i++)
    ok = lo[i] >= 0 && hi[i] >= 0 && lo[i] <= FE_MAX_ELEMENTS && hi[i] <= FE_MAX_ELEMENTS;
  if (!ok) {
    ir_diag *d = fe_error(c, a->at[1], "E0203", "'lo' and 'hi' need a number >= 0 per dimension");
    diag_label(d, "the value is %s", fe_shape_text(c, a->v[0]));
    return &fe_bad;
  }
  ir_attr attrs[] = {ir_a_ints(c->arena, IR_ATTR_LO, lo, num_lo),
                     ir_a_ints(c->arena, IR_ATTR_HI, hi, num_hi), ir_a_num(IR_ATTR_VALUE, value)};
  return fe_tensor(c, fe_emit(c, a->call->loc, IR_PAD, 1, &x, 3, attrs, NULL));
}

// --- indices -------------------------------------------------------------------------------------
static bool want_index(fe *c, const builtin_args *a) {
  if (!fe_want_tensor(c, a->v[1], a->at[1], ir_format(c->arena, "the index of %s", a->call->text)))
    return false;
  ir_dtype t = a->v[1]->node->type.dtype;
  if (!ir_is_float(t) && t != IR_BOOL)
    return true;
  ir_diag *d =
      fe_error(c, a->at[1], "E0204", "the index of %s must be an integer tensor", a->call->text);
  diag_label(d, "this is %s", fe_shape_text(c, a->v[1]));
  return false;
}

BUILTIN(gather) {
  if (!fe_want_tensor(c, a->v[0], a->at[0], "the table of gather") || !want_index(c, a))
    return &fe_bad;
  ir_node *in[] = {a->v[0]->node, a->v[1]->node};
  return fe_tensor(c, fe_emit(c, a->call->loc, IR_GATHER, 2, in, 0, NULL, NULL));
}

// (values[i..., rest...], index[i...], n) -> [n, rest...]; NULL after an error.
static ir_node *segments(fe *c, const builtin_args *a, ir_op op) {
  const char *name = a->call->text;
  int64_t n;
  if (!fe_want_tensor(c, a->v[0], a->at[0], ir_format(c->arena, "the values of %s", name)) ||
      !want_index(c, a) || !fe_want_int(c, a->v[2], a->at[2], "the number of segments", &n))
    return NULL;
  const ir_type *values = &a->v[0]->node->type, *index = &a->v[1]->node->type;
  bool fits = values->rank >= index->rank;
  for (int i = 0; fits && i < index->rank; i++)
    fits = values->dims[i] == index->dims[i];
  if (!fits) {
    ir_diag *d =
        fe_error(c, a->at[1], "E0203", "the index must have the first dimensions of the values");
    diag_label(d, "%s for values %s", fe_shape_text(c, a->v[1]), fe_shape_text(c, a->v[0]));
    return NULL;
  }
  int rest = values->rank - index->rank;
  if (n < 1 || n > FE_MAX_ELEMENTS) {
    fe_error(c, a->at[2], "E0203", "%s needs from 1 to 2^40 segments, not %lld", name,
             (long long)n);
    return NULL;
  }
  if (rest + 1 > IR_MAX_RANK) {
    fe_error(c, a->at[1], "E0203", "more than %d dimensions", IR_MAX_RANK);
    return NULL;
  }
  int64_t dims[IR_MAX_RANK] = {n};
  for (int i = 0; i < rest; i++)
    dims[i + 1] = values->dims[index->rank + i];
  ir_type type = ir_tensor(values->dtype, rest + 1, dims);
  ir_node *in[] = {a->v[1]->node, a->v[0]->node};
  return fe_emit(c, a->call->loc, op, 2, in, 0, NULL, &type);
}

BUILTIN(segment_sum) {
  ir_node *n = segments(c, a, IR_SCATTER_ADD);
  return n ? fe_tensor(c, n) : &fe_bad;
}

// Segments without values: 0, instead of what the maximum of no numbers is.
BUILTIN(segment_max) {
  ir_node *n = segments(c, a, IR_SCATTER_MAX);
  if (!n)
    return &fe_bad;
  ir_builder *b = &c->pass->b;
  ir_node *none = ir_const(b, n->type, ir_start_value(n->op, n->type.dtype));
  ir_node *zero = ir_const(b, n->type, 0);
  return fe_tensor(c, ir_select(b, ir_binary(b, IR_EQ, n, none), zero, n));
}

// 0, 1, 2, ... along one axis, i32.
BUILTIN(iota) {
  int64_t dims[IR_MAX_RANK];
  int rank, axis = 0;
  if (!fe_want_shape(c, a->v[0], a->at[0], false, dims, &rank))
    return &fe_bad;
  if (rank == 0)
    return FE_FAIL(c, a->at[0], "E0203", "iota needs at least one dimension");
  if (a->v[1] && !builtin_axis(c, a->v[1], a->at[1], rank, &axis))
    return &fe_bad;
  ir_type type = ir_tensor(IR_I32, rank, dims);
  ir_attr attr = ir_a_int(IR_ATTR_AXIS, axis);
  return fe_tensor(c, fe_emit(c, a->call->loc, IR_IOTA, 0, NULL, 1, &attr, &type));
}

// --- fills, random values, initialisers ----------------------------------------------------------
static const fe_value *fill(fe *c, const builtin_args *a, int shape_arg, double value) {
  int64_t dims[IR_MAX_RANK];
  int rank;
  if (!fe_want_shape(c, a->v[shape_arg], a->at[shape_arg], false, dims, &rank))
    return &fe_bad;
  ir_type type = ir_tensor(IR_F32, rank, dims);
  ir_attr attr = ir_a_num(IR_ATTR_VALUE, value);
  return fe_tensor(c, fe_emit(c, a->call->loc, IR_CONST, 0, NULL, 1, &attr, &type));
}

// zeros() is an initialiser, zeros([b, c]) a tensor.
BUILTIN(fill) {
  return a->v[0] ? fill(c, a, 0, a->variant) : fe_make_init(c, FE_INIT_CONSTANT, a->variant, 0);
}

BUILTIN(constant) {
  double value;
  if (!fe_want_num(c, a->v[0], a->at[0], "the value of constant()", &value))
    return &fe_bad;
  if (!a->v[1])
    return fe_make_init(c, FE_INIT_CONSTANT, value, 0);
  return fe_check_fits(c, a->at[0], a->v[0], IR_F32) ? fill(c, a, 1, value) : &fe_bad;
}

static const fe_value *random_tensor(fe *c, const builtin_args *a, ir_op op) {
  int64_t dims[IR_MAX_RANK];
  int rank;
  if (!fe_want_shape(c, a->v[0], a->at[0], false, dims, &rank))
    return &fe_bad;
  ir_type type = ir_tensor(IR_F32, rank, dims);
  return fe_tensor(c, fe_emit_random(c, a->call->loc, op, &type));
}

// uniform(a) and uniform(lo, hi) are initialisers; uniform([b, c]) draws values in [0, 1).
BUILTIN(uniform) {
  double x, y;
  if (a->v[0]->kind == FE_LIST && !a->v[1])
    return random_tensor(c, a, IR_UNIFORM);
  if (!fe_want_num(c, a->v[0], a->at[0], "the bound of uniform()", &x))
    return &fe_bad;
  if (a->v[1] && !fe_want_num(c, a->v[1], a->at[1], "the bound of uniform()", &y))
    return &fe_bad;
  double lo = a->v[1] ? x : -x, hi = a->v[1] ? y : x;
  if (lo > hi)
    return FE_FAIL(c, a->at[0], "E0218", "uniform() from %g to %g: bounds run upwards", lo, hi);
  return fe_make_init(c, FE_INIT_UNIFORM, lo, hi);
}

BUILTIN(normal) {
  double std;
  if (a->v[0]->kind == FE_LIST)
    return random_tensor(c, a, IR_NORMAL);
  if (!fe_want_num(c, a->v[0], a->at[0], "the deviation of normal()", &std))
    return &fe_bad;
  if (std < 0)
    return FE_FAIL(c, a->at[0], "E0218", "the deviation of normal() is %g; it is 0 or more", std);
  return fe_make_init(c, FE_INIT_NORMAL, std, 0);
}

BUILTIN(fan) {
  return fe_make_init(c, (fe_init_kind)a->variant, 0, 0);
}

// --- questions -----------------------------------------------------------------------------------
// Of a list, too: how many there are, for blocks that take one.
BUILTIN(shape) {
  if (a->v[0]->kind == FE_LIST) {
    const fe_value **length = IR_NEW_ARRAY(c->arena, const fe_value *, 1);
    length[0] = fe_int(c, (int64_t)a->v[0]->num_items);
    return fe_list(c, length, 1);
  }
  if (!want_x(c, a))
    return &fe_bad;
  const ir_type *t = &a->v[0]->node->type;
  const fe_value **dims = IR_NEW_ARRAY(c->arena, const fe_value *, t->rank + 1);
  for (int i = 0; i < t->rank; i++)
    dims[i] = fe_int(c, t->dims[i]);
  return fe_list(c, dims, (size_t)t->rank);
}

BUILTIN(rank) {
  return want_x(c, a) ? fe_int(c, a->v[0]->node->type.rank) : &fe_bad;
}

BUILTIN(is_none) {
  return fe_bool(c, a->v[0]->kind == FE_NONE);
}

// True for nothing and for a number known to be 0; a flag may be anything.
BUILTIN(is_zero) {
  const fe_value *v = a->v[0];
  return fe_bool(c, v->kind == FE_NONE || (v->kind == FE_NUM && v->num == 0));
}

// True for what is known at compile time, so that blocks can say what is wrong with it; false for a flag.
BUILTIN(is_number) {
  return fe_bool(c, a->v[0]->kind == FE_NUM);
}

// --- parameters of uses --------------------------------------------------------------------------
// "embed.table": of the use that is called embed here, or as in checkpoints, below the block at hand.
static const char *find_parameter(fe *c, const char *name) {
  const char *dot = strchr(name, '.');
  const fe_use *u =
      dot ? fe_find_use(c, ir_format(c->arena, "%.*s", (int)(dot - name), name)) : NULL;
  if (u)
    return ir_format(c->arena, "%s%s", u->path, dot);
  const char *prefix = c->frame->names->prefix;
  return prefix ? ir_format(c->arena, "%s.%s", prefix, name) : name;
}

static const fe_value *no_parameter(fe *c, const builtin_args *a, const char *path) {
  ir_diag *d = fe_error(c, a->at[0], "E0222", "no block used above has a parameter or state '%s'",
                        a->v[0]->str);
  fe_suggest(c, d, path, (const ir_map *const[]){c->pass->declared}, 1, NULL, 0);
  return &fe_bad;
}

BUILTIN(parameter) {
  if (a->v[0]->kind != FE_STR)
    return FE_FAIL(c, a->at[0], "E0202", "parameter() needs a text, such as \"embed.table\"");
  if (!c->pass || !c->frame || c->pass->optimizing || c->pass->starting)
    return FE_FAIL(c, a->call->loc, "E0215", "'parameter' only stands in models and their blocks");
  const char *path = find_parameter(c, a->v[0]->str);
  ir_state *s = ir_map_get(c->pass->declared, path) ? ir_find_state(c->module, path) : NULL;
  if (!s)
    return no_parameter(c, a, path);
  fe_value *v = IR_NEW(c->arena, fe_value);
  *v = *fe_present(c, s);
  v->param = s->role == IR_ROLE_PARAM ? s : NULL;
  return v;
}

BUILTIN(text) {
  const fe_value *t = a->v[0], *p = a->v[1];
  if (t->kind != FE_STR || p->kind != FE_STR)
    return FE_FAIL(c, a->call->loc, "E0202", "'%s' needs two texts", a->call->text);
  size_t nt = strlen(t->str), np = strlen(p->str);
  if (a->variant == 0)
    return fe_bool(c, strstr(t->str, p->str) != NULL);
  if (np > nt)
    return fe_bool(c, false);
  return fe_bool(c, memcmp(a->variant == 1 ? t->str : t->str + nt - np, p->str, np) == 0);
}
