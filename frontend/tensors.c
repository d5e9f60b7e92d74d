// tensors.c: operators on tensors: element types, broadcasting (made explicit, as the IR wants
// it) and matrix products. Every rule that a user can break is a diagnostic here; ir_infer
// is asked before a node is built, so that the builder's BUG() is never reached from a file.
#include "frontend/check.h"

#include <float.h>
#include <math.h>
#include <string.h>

// --- checked construction ------------------------------------------------------------------------
// What a file calls it: "max", of which the IR has two.
static const char *word_of(ir_op op) {
  return op == IR_REDUCE_MAX ? "max" : op == IR_REDUCE_MIN ? "min" : ir_ops[op].name;
}

static bool check_infer(fe *c, ir_loc at, ir_op op, int num_in, ir_node *const *in, int num_attrs,
                        const ir_attr *attrs, const ir_type *type) {
  ir_type few[8] = {0}, *types = num_in <= 8 ? few : IR_NEW_ARRAY(c->arena, ir_type, num_in), out;
  for (int i = 0; i < num_in; i++)
    types[i] = in[i]->type;
  if (type && !fe_check_size(c, at, type)) // first: the IR has another limit and another word
    return false;
  const char *why = NULL;
  if (!ir_infer(c->arena, op, num_in, types, num_attrs, attrs, type, &out, &why)) {
    ir_diag *d = fe_error(c, at, "E0203", "'%s' does not fit: %s", word_of(op), why);
    for (int i = 0; i < num_in && i < 3; i++)
      diag_help(d, "operand %d is %s", i + 1, ir_type_str(c->arena, &types[i]));
    return false;
  }
  return fe_check_size(c, at, &out);
}

static bool check_budget(fe *c, ir_loc at) {
  if (!c->pass) {
    fe_error(c, at, "E0207", "a tensor cannot stand here");
    return false;
  }
  if (c->pass->b.func->nodes.num < FE_MAX_NODES)
    return true;
  fe_error(c, at, "E0210", "the model expands to more than %d operations", FE_MAX_NODES);
  return false;
}

ir_node *fe_emit(fe *c, ir_loc at, ir_op op, int num_in, ir_node *const *in, int num_attrs,
                 const ir_attr *attrs, const ir_type *type) {
  for (int i = 0; i < num_in; i++)
    if (!in[i])
      return NULL;
  if (!check_budget(c, at) || !check_infer(c, at, op, num_in, in, num_attrs, attrs, type))
    return NULL;
  c->pass->b.loc = fe_node_loc(c, at);
  return ir_build(&c->pass->b, op, NULL, num_in, in, num_attrs, attrs, type);
}

ir_node *fe_emit_const(fe *c, ir_loc at, ir_dtype t, double v) {
  ir_attr value = ir_a_num(IR_ATTR_VALUE, v);
  ir_type type = ir_scalar(t);
  return fe_emit(c, at, IR_CONST, 0, NULL, 1, &value, &type);
}

ir_node *fe_emit_cast(fe *c, ir_loc at, ir_node *x, ir_dtype t) {
  if (!x || x->type.dtype == t)
    return x;
  ir_type type = x->type;
  type.dtype = t;
  return fe_emit(c, at, IR_CAST, 1, &x, 0, NULL, &type);
}

// Ops whose type rule is `float`: column `shape` of ops.def.
static bool needs_float(ir_op op) {
  static const char *const rules[IR_NUM_OPS] = {
#define OP(NAME, text, arity, cls, attrs, shape, grad, interp, flops, spell) #shape,
#include "ir/ops.def"
#undef OP
  };
  return !strcmp(rules[op], "float");
}

ir_node *fe_emit_unary(fe *c, ir_loc at, ir_op op, ir_node *x) {
  if (!x)
    return NULL;
  if (needs_float(op) && !ir_is_float(x->type.dtype)) {
    ir_diag *d = fe_error(c, at, "E0204", "'%s' needs a float tensor", ir_ops[op].name);
    diag_label(d, "this is %s", ir_type_str(c->arena, &x->type));
    diag_help(d, "convert it with f32(...)");
    return NULL;
  }
  return fe_emit(c, at, op, 1, &x, 0, NULL, NULL);
}

static bool same_dims(const ir_type *t, int rank, const int64_t *dims) {
  return t->rank == rank && memcmp(t->dims, dims, sizeof *dims * (size_t)rank) == 0;
}

ir_node *fe_emit_reshape(fe *c, ir_loc at, ir_node *x, int rank, const int64_t *dims) {
  if (!x || same_dims(&x->type, rank, dims))
    return x;
  ir_type type = ir_tensor(x->type.dtype, rank, dims);
  return fe_emit(c, at, IR_RESHAPE, 1, &x, 0, NULL, &type);
}

// The caller has checked that numpy's rule allows it. Constants, too, are seen this way and not made again: grad() may be
// asked for one.
ir_node *fe_emit_broadcast(fe *c, ir_loc at, ir_node *x, int rank, const int64_t *dims) {
  if (!x || same_dims(&x->type, rank, dims))
    return x;
  int64_t lead[IR_MAX_RANK];
  int more = rank - x->type.rank;
  for (int i = 0; i < rank; i++)
    lead[i] = i < more ? 1 : x->type.dims[i - more];
  x = fe_emit_reshape(c, at, x, rank, lead);
  if (!x || same_dims(&x->type, rank, dims))
    return x;
  ir_type type = ir_tensor(x->type.dtype, rank, dims);
  return fe_emit(c, at, IR_BROADCAST, 1, &x, 0, NULL, &type);
}

// --- numpy's rule --------------------------------------------------------------------------------
typedef struct shape {
  int rank;
  int64_t dims[IR_MAX_RANK];
  const char *names[IR_MAX_RANK];
} shape;

static int64_t dim_from_end(const ir_type *t, int i) {
  return i < t->rank ? t->dims[t->rank - 1 - i] : 1;
}

static const char *name_from_end(const fe_value *v, int i) {
  int rank = v->node->type.rank;
  return v->dim_names && i < rank ? v->dim_names[rank - 1 - i] : NULL;
}

static const fe_value *shape_error(fe *c, ir_loc at, const fe_value *a, const fe_value *b,
                                   int axis_from_end) {
  const char *na = name_from_end(a, axis_from_end), *nb = name_from_end(b, axis_from_end);
  int64_t da = dim_from_end(&a->node->type, axis_from_end);
  int64_t db = dim_from_end(&b->node->type, axis_from_end);
  const char *name = na ? na : nb;
  ir_diag *d;
  if (name)
    d = fe_error(c, at, "E0203", "shapes do not match: dimension %s is %lld here but %lld there",
                 name, (long long)(na ? da : db), (long long)(na ? db : da));
  else
    d = fe_error(c, at, "E0203", "shapes do not match: %lld here but %lld there", (long long)da,
                 (long long)db);
  diag_label(d, "between %s and %s", fe_shape_text(c, a), fe_shape_text(c, b));
  return &fe_bad;
}

static bool join_shapes(fe *c, ir_loc at, const fe_value *a, const fe_value *b, shape *out) {
  const ir_type *ta = &a->node->type, *tb = &b->node->type;
  out->rank = ta->rank > tb->rank ? ta->rank : tb->rank;
  for (int i = 0; i < out->rank; i++) {
    int64_t da = dim_from_end(ta, i), db = dim_from_end(tb, i);
    if (da != db && da != 1 && db != 1) {
      shape_error(c, at, a, b, i);
      return false;
    }
    int axis = out->rank - 1 - i;
    const char *na = name_from_end(a, i), *nb = name_from_end(b, i);
    out->dims[axis] = da == 1 ? db : da;
    out->names[axis] = da == 1 && db != 1 ? nb : na ? na : db == da ? nb : NULL;
  }
  ir_type t = ir_tensor(ta->dtype, out->rank, out->dims);
  return fe_check_size(c, at, &t);
}

static const char *const *keep_names(fe *c, const shape *s) {
  bool any = false;
  for (int i = 0; i < s->rank; i++)
    any = any || s->names[i];
  if (!any)
    return NULL;
  const char **names = IR_NEW_ARRAY(c->arena, const char *, IR_MAX_RANK);
  memcpy(names, s->names, sizeof s->names);
  return names;
}

// --- element types -------------------------------------------------------------------------------
// What a constant of an element type can be. The IR writes it as a double, which is exact to 2^53.
typedef struct number_range {
  double low, high;
} number_range;

static number_range range_of(ir_dtype t) {
  static const number_range ranges[IR_NUM_DTYPES] = {
      [IR_BOOL] = {0, 1},
      [IR_U8] = {0, 255},
      [IR_I8] = {-128, 127},
      [IR_U16] = {0, 65535},
      [IR_I32] = {-0x1p31, 0x1p31 - 1},
      [IR_U32] = {0, 0x1p32 - 1},
      [IR_I64] = {-0x1p53, 0x1p53},
      [IR_BF16] = {-0x1.fep127, 0x1.fep127},
      [IR_F16] = {-65504, 65504},
      [IR_F32] = {-FLT_MAX, FLT_MAX},
      [IR_F64] = {-DBL_MAX, DBL_MAX},
  };
  return ranges[t];
}

bool fe_check_fits(fe *c, ir_loc at, const fe_value *v, ir_dtype t) {
  number_range r = range_of(t);
  double num = v->kind == FE_BOOL ? (double)v->i : v->num;
  bool inside = num >= r.low && num <= r.high;
  if (inside && (ir_is_float(t) || (num == floor(num) && (!v->is_int || v->i == (int64_t)num))))
    return true;
  ir_diag *d = fe_error(c, at, "E0204", "%s does not fit in element type %s", fe_describe(c, v),
                        ir_dtypes[t].name);
  diag_help(d, "constants of %s are %s from %.17g to %.17g", ir_dtypes[t].name,
            ir_is_float(t) ? "numbers" : "whole numbers", r.low, r.high);
  return false;
}

bool fe_check_setting(fe *c, ir_loc at, const char *what, const fe_value *v, ir_dtype t) {
  bool fine = true;
  for (size_t i = 0; v->kind == FE_LIST && i < v->num_items; i++)
    fine = fine && fe_check_setting(c, at, what, v->items[i], t);
  if (v->kind != FE_NUM)
    return fine;
  if (fabs(v->num) > range_of(t).high) {
    ir_diag *d = fe_error(c, at, "E0303", "%s is %s, which is infinite in %s", what, fe_text(c, v),
                          ir_dtypes[t].name);
    diag_help(d, "the largest number of %s is %.9g", ir_dtypes[t].name, range_of(t).high);
    return false;
  }
  if (v->num == 0 || t != IR_F32 || (float)v->num != 0)
    return true;
  ir_diag *d = fe_error(c, at, "E0303", "%s is %s, which is 0 in f32", what, fe_text(c, v));
  diag_help(d, "the smallest number of f32 above 0 is 1.4e-45, with all its digits 1.2e-38");
  return false;
}

// The element type in which a number meets a tensor of type t.
static ir_dtype number_type(const fe_value *v, ir_dtype t) {
  if (ir_is_float(t))
    return t;
  if (v->kind == FE_BOOL)
    return IR_BOOL;
  if (t == IR_BOOL || !v->is_int)
    return IR_F32;
  return t;
}

static ir_dtype wider(ir_dtype a, ir_dtype b) {
  // u8 with i8, u32 with i32: the next signed type holds both.
  if (a == b)
    return a;
  bool mixed = ir_dtypes[a].kind != ir_dtypes[b].kind;
  int bytes = ir_dtypes[a].bytes > ir_dtypes[b].bytes ? ir_dtypes[a].bytes : ir_dtypes[b].bytes;
  if (!mixed)
    return ir_dtypes[a].bytes > ir_dtypes[b].bytes ? a : b;
  ir_dtype s = ir_dtypes[a].kind == IR_KIND_SINT ? a : b, u = s == a ? b : a;
  if (ir_dtypes[s].bytes > ir_dtypes[u].bytes)
    return s;
  return bytes >= 4 ? IR_I64 : IR_I32;
}

// The common element type of two tensors, or false. Mixed types are errors except where nothing
// can be lost or misread: truth values, scalars (flags, counters) and comparisons of integers.
static bool join_dtypes(const ir_type *a, const ir_type *b, bool compares, ir_dtype *out) {
  ir_dtype x = a->dtype, y = b->dtype;
  *out = x;
  if (x == y)
    return true;
  if (x == IR_BOOL || y == IR_BOOL) {
    *out = x == IR_BOOL ? y : x;
    return true;
  }
  if (ir_is_integer(x) && ir_is_integer(y)) {
    // Not to the type of the tensor when it is compared: u8(300), of a flag, would be 44.
    bool one = !compares && (a->rank == 0) != (b->rank == 0);
    *out = !one ? wider(x, y) : a->rank == 0 ? y : x;
    return compares || a->rank == 0 || b->rank == 0;
  }
  if (ir_is_integer(x) != ir_is_integer(y)) {
    *out = ir_is_integer(x) ? y : x;
    return ir_is_integer(x) ? a->rank == 0 : b->rank == 0;
  }
  *out = a->rank == 0 && b->rank ? y : b->rank == 0 && a->rank ? x : IR_F64;
  return a->rank == 0 || b->rank == 0; // f32 with f64
}

static bool dtype_error(fe *c, ir_loc at, const fe_value *a, const fe_value *b) {
  ir_diag *d = fe_error(c, at, "E0204", "element types do not match: %s and %s",
                        ir_dtypes[a->node->type.dtype].name, ir_dtypes[b->node->type.dtype].name);
  diag_label(d, "between %s and %s", fe_shape_text(c, a), fe_shape_text(c, b));
  bool mixed = ir_is_float(a->node->type.dtype) != ir_is_float(b->node->type.dtype);
  bool narrow = ir_is_narrow(a->node->type.dtype) || ir_is_narrow(b->node->type.dtype);
  bool floats = ir_is_float(a->node->type.dtype);
  diag_help(d, mixed    ? "convert the integers with f32(...)"
               : narrow ? "convert with f32(...): bf16 and f16 are for storing"
               : floats ? "convert one of them, with f64(...) or f32(...)"
                        : "convert one of them, for example i32(...)");
  return false;
}

// A number takes the shape of what it meets.
const fe_value *fe_number_to_tensor(fe *c, ir_loc at, const fe_value *v, ir_dtype t,
                                    const ir_type *other) {
  double num = v->kind == FE_BOOL ? (double)v->i : v->num;
  ir_attr value = ir_a_num(IR_ATTR_VALUE, num);
  ir_type type = ir_tensor(t, other->rank, other->dims);
  return fe_check_fits(c, at, v, t)
             ? fe_tensor(c, fe_emit(c, at, IR_CONST, 0, NULL, 1, &value, &type))
             : &fe_bad;
}

// Both as tensors of one element type. `compares`: the result is bool.
static bool unify(fe *c, ir_loc at, bool compares, const fe_value **a, const fe_value **b) {
  const fe_value **side[2] = {a, b};
  for (int i = 0; i < 2; i++) {
    const fe_value *v = *side[i], *other = *side[1 - i];
    if (v->kind == FE_TENSOR)
      continue;
    if (v->kind != FE_NUM && v->kind != FE_BOOL) {
      ir_diag *d = fe_error(c, at, "E0202", "cannot combine a tensor with %s", fe_describe(c, v));
      diag_label(d, "the other operand is %s", fe_describe(c, other));
      return false;
    }
    *side[i] =
        fe_number_to_tensor(c, at, v, number_type(v, other->node->type.dtype), &other->node->type);
    if (fe_is_bad(*side[i]))
      return false;
  }
  ir_dtype t;
  if (!join_dtypes(&(*a)->node->type, &(*b)->node->type, compares, &t))
    return dtype_error(c, at, *a, *b);
  for (int i = 0; i < 2; i++)
    if ((*side[i])->node->type.dtype != t)
      *side[i] =
          fe_tensor_named(c, fe_emit_cast(c, at, (*side[i])->node, t), (*side[i])->dim_names);
  return !fe_is_bad(*a) && !fe_is_bad(*b);
}

// --- pointwise -----------------------------------------------------------------------------------
const fe_value *fe_pointwise(fe *c, ir_op op, ir_loc at, const fe_value *a, const fe_value *b) {
  bool compares = op >= IR_EQ && op <= IR_GE;
  shape s = {0};
  if (!unify(c, at, compares, &a, &b) || !join_shapes(c, at, a, b, &s))
    return &fe_bad;
  bool logic = op == IR_AND || op == IR_OR;
  if (logic != (a->node->type.dtype == IR_BOOL) && (logic || !compares)) {
    if (logic)
      return FE_FAIL(c, at, "E0204", "'%s' needs bool tensors", ir_ops[op].name);
    a = fe_tensor(c, fe_emit_cast(c, at, a->node, IR_F32)); // counting truth values
    b = fe_tensor(c, fe_emit_cast(c, at, b->node, IR_F32));
    if (fe_is_bad(a) || fe_is_bad(b))
      return &fe_bad;
  }
  ir_node *in[] = {fe_emit_broadcast(c, at, a->node, s.rank, s.dims),
                   fe_emit_broadcast(c, at, b->node, s.rank, s.dims)};
  return fe_tensor_named(c, fe_emit(c, at, op, 2, in, 0, NULL, NULL), keep_names(c, &s));
}

static const fe_value *to_float(fe *c, ir_loc at, const fe_value *v) {
  if (v->kind != FE_TENSOR || ir_is_float(v->node->type.dtype))
    return v;
  return fe_tensor_named(c, fe_emit_cast(c, at, v->node, IR_F32), v->dim_names);
}

// x ** 2 and x ** 0.5 have better forms than pow.
static const fe_value *power(fe *c, ir_loc at, const fe_value *a, const fe_value *b) {
  if (b->kind == FE_NUM && b->num == 2)
    return fe_pointwise(c, IR_MUL, at, a, a);
  a = to_float(c, at, a);
  b = to_float(c, at, b);
  if (fe_is_bad(a) || fe_is_bad(b))
    return &fe_bad;
  if (b->kind == FE_NUM && b->num == 0.5 && a->kind == FE_TENSOR)
    return fe_tensor_named(c, fe_emit_unary(c, at, IR_SQRT, a->node), a->dim_names);
  return fe_pointwise(c, IR_POW, at, a, b);
}

static const fe_value *floor_divide(fe *c, ir_loc at, const fe_value *a, const fe_value *b) {
  const fe_value *q = fe_pointwise(c, IR_DIV, at, a, b);
  if (fe_is_bad(q) || !ir_is_float(q->node->type.dtype))
    return q;
  return fe_tensor_named(c, fe_emit_unary(c, at, IR_FLOOR, q->node), q->dim_names);
}

const fe_value *fe_binary(fe *c, ast_op op, ir_loc at, const fe_value *a, const fe_value *b) {
  static const ir_op plain[AST_NUM_OPS] = {
      [AST_OP_ADD] = IR_ADD, [AST_OP_SUB] = IR_SUB, [AST_OP_MUL] = IR_MUL, [AST_OP_MOD] = IR_MOD,
      [AST_OP_EQ] = IR_EQ,   [AST_OP_NE] = IR_NE,   [AST_OP_LT] = IR_LT,   [AST_OP_LE] = IR_LE,
      [AST_OP_GT] = IR_GT,   [AST_OP_GE] = IR_GE};
  if (op == AST_OP_DIV) {
    a = to_float(c, at, a);
    b = to_float(c, at, b);
    return fe_is_bad(a) || fe_is_bad(b) ? &fe_bad : fe_pointwise(c, IR_DIV, at, a, b);
  }
  bool by_zero = b->kind == FE_NUM && b->num == 0 && (op == AST_OP_FLOORDIV || op == AST_OP_MOD);
  if (by_zero)
    return FE_FAIL(c, at, "E0211", "division by zero");
  if (op == AST_OP_POW)
    return power(c, at, a, b);
  if (op == AST_OP_FLOORDIV)
    return floor_divide(c, at, a, b);
  return fe_pointwise(c, plain[op], at, a, b);
}

// --- where ---------------------------------------------------------------------------------------
const fe_value *fe_select(fe *c, ir_loc at, const fe_value *cond, const fe_value *a,
                          const fe_value *b) {
  if (cond->node->type.dtype != IR_BOOL) {
    ir_diag *d = fe_error(c, at, "E0204", "the condition of where() must be bool");
    diag_label(d, "this is %s", fe_shape_text(c, cond));
    return &fe_bad;
  }
  if (a->kind == FE_NUM && b->kind == FE_NUM)
    a = fe_tensor(c, fe_emit_const(c, at, IR_F32, a->num));
  shape s = {0}, ab = {0};
  if (fe_is_bad(a) || fe_is_bad(b) || !unify(c, at, false, &a, &b) ||
      !join_shapes(c, at, a, b, &ab))
    return &fe_bad;
  ir_node *wide = fe_emit_broadcast(c, at, a->node, ab.rank, ab.dims);
  const fe_value *joined = fe_tensor_named(c, wide, keep_names(c, &ab));
  if (fe_is_bad(joined) || !join_shapes(c, at, joined, cond, &s))
    return &fe_bad;
  ir_node *in[] = {fe_emit_broadcast(c, at, cond->node, s.rank, s.dims),
                   fe_emit_broadcast(c, at, wide, s.rank, s.dims),
                   fe_emit_broadcast(c, at, b->node, s.rank, s.dims)};
  return fe_tensor_named(c, fe_emit(c, at, IR_SELECT, 3, in, 0, NULL, NULL), keep_names(c, &s));
}
