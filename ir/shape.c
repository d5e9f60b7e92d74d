// shape.c: the type rule of every op (column `shape` of ops.def), behind ir_infer.
//
// A rule either fills ctx->out or says in words why it cannot: the frontend, the
// IR parser and the verifier all show that sentence to the user.
#include "ir/builder.h"
#include "ir/narrow.h"

#include <math.h>
#include <string.h>

// Sizes beyond this cannot be held by any machine; the limit keeps products of dims exact.
static const int64_t MAX_ELEMENTS = (int64_t)1 << 48;

typedef struct shape_ctx {
  ir_arena *arena;
  ir_op op;
  int num_in;
  const ir_type *in;
  int num_attrs;
  const ir_attr *attrs;
  const ir_type *given;
  ir_type *out;
  const char **why;
} shape_ctx;

// Says why; always false.
IR_PRINTF(2, 3) static bool fail(shape_ctx *c, const char *fmt, ...) {
  ir_buf b = ir_buf_new(c->arena);
  va_list ap;
  va_start(ap, fmt);
  ir_buf_vprintf(&b, fmt, ap);
  va_end(ap);
  *c->why = ir_buf_str(&b);
  return false;
}

static const char *text(shape_ctx *c, const ir_type *t) {
  return ir_type_str(c->arena, t);
}

static const char *dims_text(shape_ctx *c, const ir_type *t) {
  const char *s = ir_type_str(c->arena, t);
  return strchr(s, '[');
}

static const ir_attr *attr(shape_ctx *c, ir_attr_key key) {
  for (int i = 0; i < c->num_attrs; i++)
    if (c->attrs[i].key == key)
      return &c->attrs[i];
  return NULL; // cannot happen: infer checks the attributes before it calls a rule
}

static bool need_dtype(shape_ctx *c, bool ok, const ir_type *t, const char *wanted) {
  return ok || fail(c, "the operand must be %s, and is %s", wanted, text(c, t));
}

// Narrow floats are for memory.
static bool need_wide(shape_ctx *c, const ir_type *t) {
  return !ir_is_narrow(t->dtype) ||
         fail(c, "%s is for storing: cast to f32 to compute with it", ir_dtypes[t->dtype].name);
}

static bool need_number(shape_ctx *c, const ir_type *t) {
  return need_dtype(c, t->dtype != IR_BOOL, t, "a number") && need_wide(c, t);
}

static bool need_float(shape_ctx *c, const ir_type *t) {
  return need_dtype(c, ir_is_float(t->dtype), t, "floating point") && need_wide(c, t);
}

static bool need_given(shape_ctx *c) {
  if (!c->given)
    return fail(c, "the result type must be given");
  *c->out = *c->given;
  return true;
}

// All operands from `first` on have one type.
static bool need_equal(shape_ctx *c, int first) {
  for (int i = first + 1; i < c->num_in; i++) {
    const ir_type *x = &c->in[first], *y = &c->in[i];
    if (!ir_same_shape(x, y))
      return fail(c, "operands have shapes %s and %s", dims_text(c, x), dims_text(c, y));
    if (x->dtype != y->dtype)
      return fail(c, "operands have element types %s and %s", ir_dtypes[x->dtype].name,
                  ir_dtypes[y->dtype].name);
  }
  return true;
}

static bool need_axis(shape_ctx *c, int64_t axis, const ir_type *t) {
  if (axis >= 0 && axis < t->rank)
    return true;
  return fail(c, "axis %lld does not exist in %s", (long long)axis, dims_text(c, t));
}

// A list attribute with one entry per axis of the operand.
static const int64_t *per_axis(shape_ctx *c, ir_attr_key key) {
  const ir_attr *a = attr(c, key);
  if (a->as.ints.num == c->in[0].rank)
    return a->as.ints.at ? a->as.ints.at : c->in[0].dims;
  fail(c, "'%s' has %d entries, the operand %s has rank %d", ir_attr_infos[key].name,
       a->as.ints.num, dims_text(c, &c->in[0]), c->in[0].rank);
  return NULL;
}

// --- leaves and random numbers -----------------------------------------------------------
static bool shape_given(shape_ctx *c) {
  return need_given(c);
}

static bool shape_read(shape_ctx *c) {
  return need_given(c); // the caller passes the state's type
}

// Integers must hold what is counted: a number beyond them would begin again from the least. Floats round.
static bool shape_iota(shape_ctx *c) {
  int64_t axis = attr(c, IR_ATTR_AXIS)->as.i;
  if (!need_given(c) || !need_number(c, c->out) || !need_axis(c, axis, c->out))
    return false;
  int digits = ir_digits(c->out->dtype);
  int64_t last = c->out->dims[axis] - 1;
  if (!ir_is_integer(c->out->dtype) || digits >= 63 || last >> digits == 0)
    return true;
  return fail(c, "it counts to %lld, and %s ends at %lld", (long long)last,
              ir_dtypes[c->out->dtype].name, (long long)(((int64_t)1 << digits) - 1));
}

static bool shape_random(shape_ctx *c) {
  for (int i = 0; i < 2; i++)
    if (c->in[i].dtype != IR_I64 || c->in[i].rank != 0)
      return fail(c, "the %s must be i64[], and is %s", i ? "step" : "seed", text(c, &c->in[i]));
  int64_t stream = attr(c, IR_ATTR_STREAM)->as.i;
  if (stream < 0 || stream > UINT32_MAX)
    return fail(c, "stream %lld is not in 0 .. 2^32-1", (long long)stream);
  return need_given(c) && need_float(c, c->out);
}

// --- pointwise ------------------------------------------------------------------------------
static bool shape_same(shape_ctx *c) {
  *c->out = c->in[0];
  return need_equal(c, 0);
}

static bool shape_arith(shape_ctx *c) {
  return shape_same(c) && need_number(c, c->out);
}

static bool shape_float(shape_ctx *c) {
  return shape_same(c) && need_float(c, c->out);
}

static bool shape_tf32(shape_ctx *c) {
  return shape_same(c) && need_dtype(c, c->out->dtype == IR_F32, c->out, "f32");
}

static bool shape_logic(shape_ctx *c) {
  return shape_same(c) && need_dtype(c, c->out->dtype == IR_BOOL, c->out, "bool");
}

static bool shape_compare(shape_ctx *c) {
  if (!shape_same(c) || !need_wide(c, c->out))
    return false;
  c->out->dtype = IR_BOOL;
  return true;
}

static bool shape_cast(shape_ctx *c) {
  if (!need_given(c))
    return false;
  return ir_same_shape(&c->in[0], c->out) ||
         fail(c, "a cast keeps the shape: the operand is %s, the result %s",
              dims_text(c, &c->in[0]), dims_text(c, c->out));
}

static bool shape_select(shape_ctx *c) {
  if (c->in[0].dtype != IR_BOOL)
    return fail(c, "the condition must be bool, and is %s", text(c, &c->in[0]));
  if (!ir_same_shape(&c->in[0], &c->in[1]))
    return fail(c, "the condition has shape %s, the values %s", dims_text(c, &c->in[0]),
                dims_text(c, &c->in[1]));
  *c->out = c->in[1];
  return need_equal(c, 1) && need_wide(c, c->out);
}

// --- reductions --------------------------------------------------------------------------------
static bool need_axes(shape_ctx *c, const ir_attr *a) {
  if (a->as.ints.num == 0)
    return fail(c, "'axes' names no axis");
  for (int i = 0; i < a->as.ints.num; i++) {
    if (!need_axis(c, a->as.ints.at[i], &c->in[0]))
      return false;
    if (i && a->as.ints.at[i - 1] >= a->as.ints.at[i])
      return fail(c, "'axes' must be ascending, each axis once");
  }
  return true;
}

static bool shape_reduce(shape_ctx *c) {
  const ir_attr *a = attr(c, IR_ATTR_AXES);
  *c->out = c->in[0];
  if (!need_number(c, c->out) || !need_axes(c, a))
    return false;
  for (int i = 0; i < a->as.ints.num; i++)
    c->out->dims[a->as.ints.at[i]] = 1;
  return true;
}

static bool shape_arg(shape_ctx *c) {
  int64_t axis = attr(c, IR_ATTR_AXIS)->as.i;
  *c->out = c->in[0];
  if (!need_number(c, c->out) || !need_axis(c, axis, &c->in[0]))
    return false;
  if (c->in[0].dims[axis] > INT32_MAX)
    return fail(c, "axis %lld is too long for an i32 index", (long long)axis);
  c->out->dtype = IR_I32;
  c->out->dims[axis] = 1;
  return true;
}

// --- views ---------------------------------------------------------------------------------------
// Views keep the element type: the given type may only change the shape.
static bool view_given(shape_ctx *c) {
  return need_given(c) && (c->out->dtype == c->in[0].dtype ||
                           fail(c, "the operand is %s, the result %s: use cast for that",
                                ir_dtypes[c->in[0].dtype].name, ir_dtypes[c->out->dtype].name));
}

static bool shape_reshape(shape_ctx *c) {
  if (!view_given(c))
    return false;
  int64_t from = ir_elements(&c->in[0]), to = ir_elements(c->out);
  return from == to || fail(c, "%s has %lld elements, %s has %lld", dims_text(c, &c->in[0]),
                            (long long)from, dims_text(c, c->out), (long long)to);
}

static bool shape_transpose(shape_ctx *c) {
  const int64_t *perm = per_axis(c, IR_ATTR_PERM);
  unsigned seen = 0;
  *c->out = c->in[0];
  for (int i = 0; perm && i < c->out->rank; i++) {
    if (!need_axis(c, perm[i], &c->in[0]))
      return false;
    if (seen >> perm[i] & 1)
      return fail(c, "'perm' has axis %lld twice", (long long)perm[i]);
    seen |= 1u << perm[i];
    c->out->dims[i] = c->in[0].dims[perm[i]];
  }
  return perm != NULL;
}

static bool shape_broadcast(shape_ctx *c) {
  if (!view_given(c))
    return false;
  bool ok = c->in[0].rank == c->out->rank;
  for (int i = 0; ok && i < c->out->rank; i++)
    ok = c->in[0].dims[i] == c->out->dims[i] || c->in[0].dims[i] == 1;
  return ok || fail(c, "%s cannot be repeated to %s: ranks must be equal, only size 1 repeats",
                    dims_text(c, &c->in[0]), dims_text(c, c->out));
}

static bool shape_slice(shape_ctx *c) {
  const int64_t *start = per_axis(c, IR_ATTR_START), *stop = start ? per_axis(c, IR_ATTR_STOP) : 0,
                *step = stop ? per_axis(c, IR_ATTR_STEP) : 0;
  *c->out = c->in[0];
  for (int i = 0; step && i < c->out->rank; i++) {
    if (start[i] < 0 || start[i] >= stop[i] || stop[i] > c->in[0].dims[i])
      return fail(c, "start %lld, stop %lld is no range in axis %d of %s", (long long)start[i],
                  (long long)stop[i], i, dims_text(c, &c->in[0]));
    if (step[i] < 1 || step[i] > c->in[0].dims[i])
      return fail(c, "step %lld of axis %d is not between 1 and %lld", (long long)step[i], i,
                  (long long)c->in[0].dims[i]);
    c->out->dims[i] = (stop[i] - start[i] - 1) / step[i] + 1;
  }
  return step != NULL;
}

// Where windows of `size` elements, `dilate` apart, fit into `n`; 0: nowhere.
static int64_t positions(int64_t n, int64_t size, int64_t step, int64_t dilate) {
  if ((size - 1) > (n - 1) / dilate)
    return 0;
  return (n - 1 - (size - 1) * dilate) / step + 1;
}

// The sizes of a window on each of `num` axes, their steps and dilations: at least 1 each.
static bool need_positive(shape_ctx *c, ir_attr_key key, int num) {
  const ir_attr *a = attr(c, key);
  if (a->as.ints.num != num)
    return fail(c, "'%s' has %d numbers, not one for each of %d axes", ir_attr_infos[key].name,
                a->as.ints.num, num);
  for (int i = 0; i < num; i++)
    if (a->as.ints.at[i] < 1 || a->as.ints.at[i] > MAX_ELEMENTS)
      return fail(c, "'%s' is %lld; at least 1 is needed", ir_attr_infos[key].name,
                  (long long)a->as.ints.at[i]);
  return true;
}

static bool slide(shape_ctx *c, int axis, int64_t size, int i) {
  int64_t step = attr(c, IR_ATTR_STEP)->as.ints.at[i],
          dilate = attr(c, IR_ATTR_DILATE)->as.ints.at[i], n = c->in[0].dims[axis];
  c->out->dims[axis] = positions(n, size, step, dilate);
  return c->out->dims[axis] ||
         fail(c, "a window of %lld%s does not fit into axis %d of %s", (long long)size,
              dilate > 1 ? ir_format(c->arena, ", %lld apart,", (long long)dilate) : "", axis,
              dims_text(c, &c->in[0]));
}

static bool shape_windows(shape_ctx *c) {
  const ir_attr *axes = attr(c, IR_ATTR_AXES), *size = attr(c, IR_ATTR_SIZE);
  int num = axes->as.ints.num, rank = c->in[0].rank;
  *c->out = c->in[0];
  if (!need_axes(c, axes))
    return false;
  if (rank + num > IR_MAX_RANK)
    return fail(c, "the result would have rank %d; at most %d is allowed", rank + num, IR_MAX_RANK);
  if (!need_positive(c, IR_ATTR_SIZE, num) || !need_positive(c, IR_ATTR_STEP, num) ||
      !need_positive(c, IR_ATTR_DILATE, num))
    return false;
  for (int i = 0; i < num; i++) {
    if (!slide(c, (int)axes->as.ints.at[i], size->as.ints.at[i], i))
      return false;
    c->out->dims[c->out->rank++] = size->as.ints.at[i];
  }
  return true;
}

// --- pad, concat, insert ----------------------------------------------------------------------
static bool shape_pad(shape_ctx *c) {
  const int64_t *lo = per_axis(c, IR_ATTR_LO), *hi = lo ? per_axis(c, IR_ATTR_HI) : 0;
  *c->out = c->in[0];
  for (int i = 0; hi && i < c->out->rank; i++) {
    if (lo[i] < 0 || hi[i] < 0 || lo[i] > MAX_ELEMENTS || hi[i] > MAX_ELEMENTS)
      return fail(c, "padding %lld, %lld of axis %d is out of range", (long long)lo[i],
                  (long long)hi[i], i);
    c->out->dims[i] += lo[i] + hi[i];
  }
  return hi != NULL;
}

static bool shape_concat(shape_ctx *c) {
  int64_t axis = attr(c, IR_ATTR_AXIS)->as.i;
  if (c->num_in == 0)
    return fail(c, "concat needs at least one operand");
  *c->out = c->in[0];
  if (!need_axis(c, axis, c->out))
    return false;
  for (int i = 1; i < c->num_in; i++) {
    ir_type t = c->in[i];
    if (t.rank == c->out->rank)
      t.dims[axis] = c->in[0].dims[axis];
    if (!ir_same_type(&t, &c->in[0]))
      return fail(c, "operands %s and %s may only differ in axis %lld", text(c, &c->in[0]),
                  text(c, &c->in[i]), (long long)axis);
    // Else it is too large already, and more might not fit 64 bits.
    if (c->out->dims[axis] <= MAX_ELEMENTS)
      c->out->dims[axis] += c->in[i].dims[axis];
  }
  return true;
}

static bool shape_insert(shape_ctx *c) {
  const ir_type *to = &c->in[0], *part = &c->in[1];
  const int64_t *lo = per_axis(c, IR_ATTR_LO);
  if (!lo)
    return false;
  if (part->rank != to->rank || part->dtype != to->dtype)
    return fail(c, "%s cannot be a part of %s", text(c, part), text(c, to));
  for (int i = 0; i < to->rank; i++)
    if (lo[i] < 0 || lo[i] > to->dims[i] - part->dims[i])
      return fail(c, "%s from %lld of axis %d on is not within %s", text(c, part), (long long)lo[i],
                  i, text(c, to));
  *c->out = *to;
  return true;
}

// --- data-dependent addresses --------------------------------------------------------------------
// [lead..., rest from `from`...]
static bool join_dims(shape_ctx *c, const ir_type *lead, const ir_type *rest, int from) {
  int rank = lead->rank + rest->rank - from;
  if (rank > IR_MAX_RANK)
    return fail(c, "the result would have rank %d; at most %d is allowed", rank, IR_MAX_RANK);
  *c->out = (ir_type){.dtype = rest->dtype, .rank = rank};
  memcpy(c->out->dims, lead->dims, sizeof(int64_t) * (size_t)lead->rank);
  memcpy(c->out->dims + lead->rank, rest->dims + from,
         sizeof(int64_t) * (size_t)(rest->rank - from));
  return true;
}

static bool need_rows(shape_ctx *c, const ir_type *table) {
  return table->dims[0] <= INT32_MAX ||
         fail(c, "the table has %lld rows; it may have %d, as numbers of rows are i32",
              (long long)table->dims[0], INT32_MAX);
}

static bool shape_gather(shape_ctx *c) {
  if (c->in[0].rank == 0)
    return fail(c, "the table must have at least one axis, and is %s", text(c, &c->in[0]));
  if (!ir_is_integer(c->in[1].dtype))
    return fail(c, "the index must be an integer, and is %s", text(c, &c->in[1]));
  return need_rows(c, &c->in[0]) && join_dims(c, &c->in[1], &c->in[0], 1);
}

static bool shape_scatter(shape_ctx *c) {
  if (!ir_is_integer(c->in[0].dtype))
    return fail(c, "the index must be an integer, and is %s", text(c, &c->in[0]));
  if (!c->given || c->given->rank == 0)
    return fail(c, "the result type must be given, with at least one axis");
  if (c->given->dtype == IR_BOOL)
    return fail(c, "bool cannot be %s", c->op == IR_SCATTER_ADD ? "summed" : "compared");
  if (!need_wide(c, c->given) || !need_rows(c, c->given) || !join_dims(c, &c->in[0], c->given, 1))
    return false;
  ir_type want = *c->out;
  *c->out = *c->given;
  return ir_same_type(&want, &c->in[1]) ||
         fail(c, "the update is %s; index %s into %s needs %s", text(c, &c->in[1]),
              dims_text(c, &c->in[0]), text(c, c->given), text(c, &want));
}

// --- matmul --------------------------------------------------------------------------------------
static bool shape_matmul(shape_ctx *c) {
  const ir_type *a = &c->in[0], *b = &c->in[1];
  bool ta = attr(c, IR_ATTR_TRANS_A)->as.i, tb = attr(c, IR_ATTR_TRANS_B)->as.i;
  int r = a->rank;
  if (a->dtype != b->dtype || !ir_is_float(a->dtype))
    return fail(c, "operands must have one floating-point type, and are %s and %s", text(c, a),
                text(c, b));
  if (!need_wide(c, a))
    return false;
  if (r < 2 || b->rank != r)
    return fail(c, "operands need equal ranks of at least 2, and are %s and %s", text(c, a),
                text(c, b));
  *c->out = *a;
  for (int i = 0; i < r - 2; i++)
    if (a->dims[i] != b->dims[i])
      return fail(c, "batch axis %d differs: operands have shapes %s and %s", i, dims_text(c, a),
                  dims_text(c, b));
  int64_t ka = a->dims[ta ? r - 2 : r - 1], kb = b->dims[tb ? r - 1 : r - 2];
  if (ka != kb)
    return fail(c, "inner sizes are %lld and %lld: operands have shapes %s%s and %s%s",
                (long long)ka, (long long)kb, dims_text(c, a), ta ? " (transposed)" : "",
                dims_text(c, b), tb ? " (transposed)" : "");
  c->out->dims[r - 2] = a->dims[ta ? r - 1 : r - 2];
  c->out->dims[r - 1] = b->dims[tb ? r - 2 : r - 1];
  return true;
}

// --- convolution ---------------------------------------------------------------------------------
static bool shape_conv(shape_ctx *c) {
  const ir_type *x = &c->in[0], *k = &c->in[1];
  int rank = x->rank;
  if (x->dtype != k->dtype || !ir_is_float(x->dtype))
    return fail(c, "operands must have one floating-point type, and are %s and %s", text(c, x),
                text(c, k));
  if (!need_wide(c, x))
    return false;
  if (rank < 3 || 2 * rank - 2 > IR_MAX_RANK || k->rank != rank)
    return fail(c, "operands need equal ranks of 3 to %d, and are %s and %s", IR_MAX_RANK / 2 + 1,
                text(c, x), text(c, k));
  if (k->dims[rank - 2] != x->dims[rank - 1])
    return fail(c, "the input has %lld channels (its last axis), the kernel takes %lld: %s and %s",
                (long long)x->dims[rank - 1], (long long)k->dims[rank - 2], dims_text(c, x),
                dims_text(c, k));
  *c->out = *x;
  if (!need_positive(c, IR_ATTR_STEP, rank - 2) || !need_positive(c, IR_ATTR_DILATE, rank - 2))
    return false;
  for (int i = 0; i < rank - 2; i++)
    if (!slide(c, i + 1, k->dims[i], i))
      return false;
  c->out->dims[rank - 1] = k->dims[rank - 1];
  return true;
}

// --- effects and symbols -------------------------------------------------------------------------
static bool shape_write(shape_ctx *c) {
  *c->out = c->in[0];
  return true;
}

static bool shape_grad(shape_ctx *c) {
  if (c->in[0].rank != 0 || !ir_is_float(c->in[0].dtype))
    return fail(c, "the loss must be a floating-point scalar, and is %s", text(c, &c->in[0]));
  *c->out = c->in[1];
  return need_wide(c, &c->in[0]) && need_float(c, &c->in[1]);
}

// --- ir_infer ------------------------------------------------------------------------------------
static bool (*const shape_rules[IR_NUM_OPS])(shape_ctx *) = {
#define OP(NAME, text, arity, cls, attrs, shape, grad, interp, flops, spell) shape_##shape,
#include "ir/ops.def"
#undef OP
};

// The attributes of ops.def, each once, and nothing else.
static bool check_attrs(shape_ctx *c) {
  uint32_t have = 0, want = ir_ops[c->op].attrs;
  for (int i = 0; i < c->num_attrs; i++) {
    ir_attr_key key = c->attrs[i].key;
    if (have >> key & 1)
      return fail(c, "attribute '%s' is there twice", ir_attr_infos[key].name);
    if (!(want >> key & 1))
      return fail(c, "'%s' has no attribute '%s'", ir_ops[c->op].name, ir_attr_infos[key].name);
    have |= 1u << key;
  }
  for (int key = 0; key < IR_NUM_ATTRS; key++)
    if ((want & ~have) >> key & 1)
      return fail(c, "'%s' needs the attribute '%s'", ir_ops[c->op].name, ir_attr_infos[key].name);
  return true;
}

static bool check_arity(shape_ctx *c) {
  int arity = ir_ops[c->op].arity;
  return arity == IR_VARIADIC || arity == c->num_in ||
         fail(c, "'%s' takes %d operand%s, not %d", ir_ops[c->op].name, arity,
              arity == 1 ? "" : "s", c->num_in);
}

static bool check_size(shape_ctx *c) {
  int64_t n = 1;
  for (int i = 0; i < c->out->rank; i++) {
    if (c->out->dims[i] < 1)
      return fail(c, "%s has an empty axis", text(c, c->out));
    if (c->out->dims[i] > MAX_ELEMENTS / n)
      return fail(c, "%s has more than 2^48 elements", text(c, c->out));
    n *= c->out->dims[i];
  }
  return true;
}

bool ir_infer(ir_arena *a, ir_op op, int num_in, const ir_type *in, int num_attrs,
              const ir_attr *attrs, const ir_type *given, ir_type *out, const char **why) {
  ir_type result = {0};
  const char *reason = NULL;
  shape_ctx c = {a, op, num_in, in, num_attrs, attrs, given, &result, &reason};
  if (given) {
    result = *given;
    if (!check_size(&c))
      goto fail;
  }
  if (!check_arity(&c) || !check_attrs(&c) || !shape_rules[op](&c) || !check_size(&c))
    goto fail;
  *out = result;
  return true;
fail:
  *why = reason;
  return false;
}
