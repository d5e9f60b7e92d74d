// random_ops.c: the generator's moves that add one op, or a few, of any kind.
#include "tests/random/random_parts.h"

#include <math.h>

enum { MAX_ELEMENTS = 4096 };

// --- pointwise ---------------------------------------------------------------------------------
typedef struct unary_choice {
  ir_op op;
  double slope, mag; // bounds of slope and result; mag 0: as the operand
  bool positive;     // wants x*x + 1/2
} unary_choice;

static const unary_choice unary_choices[] = {
    {IR_NEG, 1, 0, false},  {IR_ABS, 1, 0, false},        {IR_COPY, 1, 0, false},
    {IR_TANH, 1, 1, false}, {IR_ERF, 1.2, 1, false},      {IR_SIN, 1, 1, false},
    {IR_COS, 1, 1, false},  {IR_SQRT, 1, 0, true},        {IR_RSQRT, 1.5, 1.5, true},
    {IR_LOG, 2, 0, true},   {IR_LOG1P, 1, 0, true},       {IR_STOP, 1, 0, false},
    {IR_EXP, 1, 0, false},  {IR_SIGMOID, 0.25, 1, false}, {IR_EXPM1, 1, 0, false},
};

static void move_unary(rand_gen *g) {
  const int num = sizeof unary_choices / sizeof *unary_choices;
  const unary_choice *c = &unary_choices[rand_below(g, num)];
  rand_val v = rand_float(g);
  if (c->positive)
    v = rand_positive(g, v);
  bool grows = c->op == IR_EXP || c->op == IR_EXPM1;
  if (grows && v.mag > 2)
    v = rand_scaled(g, v, 2 / v.mag);
  double mag = grows ? exp(v.mag) : c->mag != 0 ? c->mag : v.mag;
  double slope = grows ? mag : c->slope;
  bool moves = c->op == IR_NEG || c->op == IR_COPY || c->op == IR_STOP;
  rand_push(g, ir_unary(&g->b, c->op, v.n), mag, slope * v.noise,
            v.exact && (moves || c->op == IR_ABS),
            v.distinct && (moves || c->op == IR_TANH || c->op == IR_SIGMOID || grows));
}

// Ops that jump: on values that f32 holds exactly, and no divisor but powers of two.
static void move_jump(rand_gen *g) {
  rand_val v = rand_exact(g);
  int kind = rand_below(g, 3);
  if (kind == 2) {
    ir_node *n = ir_binary_const(&g->b, IR_MOD, v.n, 0.5);
    rand_push(g, n, 0.5, v.noise, false, false);
    return;
  }
  ir_node *n = ir_unary(&g->b, kind ? IR_FLOOR : IR_SIGN, v.n);
  rand_push(g, n, v.mag + 1, 0, true, false);
}

static void move_add_mul(rand_gen *g) {
  rand_val a = rand_float(g), b = rand_fit(g, rand_float(g), a.n->type.rank, a.n->type.dims);
  static const ir_op ops[] = {IR_ADD, IR_ADD, IR_SUB, IR_MUL, IR_MUL};
  ir_op op = ops[rand_below(g, 5)];
  bool mul = op == IR_MUL;
  double mag = mul ? a.mag * b.mag : a.mag + b.mag;
  double noise = mul ? a.mag * b.noise + b.mag * a.noise : a.noise + b.noise;
  if (rand_chance(g, 50)) {
    rand_val t = a;
    a = b;
    b = t;
  }
  rand_push(g, ir_binary(&g->b, op, a.n, b.n), mag, noise, false, false);
}

static void move_div(rand_gen *g) {
  rand_val a = rand_float(g);
  rand_val b = rand_positive(g, rand_fit(g, rand_float(g), a.n->type.rank, a.n->type.dims));
  rand_push(g, ir_binary(&g->b, IR_DIV, a.n, b.n), a.mag * 2, 2 * a.noise + 4 * a.mag * b.noise,
            false, false);
}

static void move_pow(rand_gen *g) {
  rand_val a = rand_float(g);
  if (a.mag > 1)
    a = rand_scaled(g, a, 1 / a.mag);
  a = rand_positive(g, a); // 1/2 .. 3/2
  ir_node *b = ir_const(&g->b, a.n->type, 0.5 * (rand_below(g, 7) - 3));
  rand_push(g, ir_binary(&g->b, IR_POW, a.n, b), 3, 5 * a.noise, false, false);
}

// Without ties: gradients at a tie are a matter of convention.
static void move_max(rand_gen *g) {
  ir_op op = rand_chance(g, 50) ? IR_MAX : IR_MIN;
  rand_val a = g->o.differentiable ? rand_distinct(g) : rand_float(g);
  if (g->o.differentiable) {
    ir_node *n = ir_binary_const(&g->b, op, a.n, 0.25 * rand_below(g, 3));
    rand_push(g, n, fmax(a.mag, 0.5), a.noise, a.exact, false);
    return;
  }
  rand_val b = rand_fit(g, rand_float(g), a.n->type.rank, a.n->type.dims);
  rand_push(g, ir_binary(&g->b, op, a.n, b.n), fmax(a.mag, b.mag), fmax(a.noise, b.noise),
            a.exact && b.exact, false);
}

// --- bool ----------------------------------------------------------------------------------------
static ir_node *random_bool(rand_gen *g, int rank, const int64_t *dims) {
  static const ir_op ops[] = {IR_EQ, IR_NE, IR_LT, IR_LE, IR_GT, IR_GE};
  bool ints = rand_chance(g, 40);
  rand_val a = rand_fit(g, ints ? rand_int(g) : rand_exact(g), rank, dims);
  rand_val b = rand_fit(g, ints ? rand_int(g) : rand_exact(g), rank, dims);
  ir_node *n = ir_binary(&g->b, ops[rand_below(g, 6)], a.n, b.n);
  if (rand_chance(g, 20))
    n = ir_unary(&g->b, IR_NOT, n);
  if (rand_chance(g, 20)) {
    ir_node *c = ir_binary_const(&g->b, IR_LT, a.n, 1);
    n = ir_binary(&g->b, rand_chance(g, 50) ? IR_AND : IR_OR, n, c);
  }
  return n;
}

static void move_select(rand_gen *g) {
  rand_val a = rand_float(g), b = rand_fit(g, rand_float(g), a.n->type.rank, a.n->type.dims);
  ir_node *c = random_bool(g, a.n->type.rank, a.n->type.dims);
  rand_push(g, ir_select(&g->b, c, a.n, b.n), fmax(a.mag, b.mag), fmax(a.noise, b.noise),
            a.exact && b.exact, false);
}

// --- reductions ----------------------------------------------------------------------------------
static int random_axes(rand_gen *g, int rank, int64_t *axes) {
  int num = 0;
  for (int i = 0; i < rank; i++)
    if (rand_chance(g, 50))
      axes[num++] = i;
  if (num == 0)
    axes[num++] = rand_below(g, rank);
  return num;
}

static void move_reduce(rand_gen *g) {
  bool sum = rand_chance(g, 60);
  rand_val v = sum || !g->o.differentiable ? rand_float(g) : rand_distinct(g);
  int64_t axes[IR_MAX_RANK];
  if (v.n->type.rank == 0)
    return;
  int num = random_axes(g, v.n->type.rank, axes);
  ir_op op = sum ? IR_SUM : rand_chance(g, 50) ? IR_REDUCE_MAX : IR_REDUCE_MIN;
  ir_node *n = ir_reduce(&g->b, op, v.n, axes, num);
  if (!sum) {
    rand_push(g, n, v.mag, v.noise, v.exact, false);
    return;
  }
  double count = (double)(ir_elements(&v.n->type) / ir_elements(&n->type));
  rand_val s = {n, v.mag * count, v.noise * count + v.mag * count, false, false};
  s = rand_scaled(g, s, 1 / count);
  s = rand_push(g, s.n, s.mag, s.noise, false, false);
  if (rand_chance(g, 40)) // as in norms: back to the shape it came from
    rand_like(g, (rand_val){s.n, s.mag, s.noise, false, false},
              ir_broadcast(&g->b, s.n, v.n->type.rank, v.n->type.dims));
}

static void move_arg(rand_gen *g) {
  rand_val v = rand_exact(g);
  if (v.n->type.rank == 0)
    return;
  int axis = rand_below(g, v.n->type.rank);
  ir_op op = rand_chance(g, 50) ? IR_ARGMAX : IR_ARGMIN;
  rand_push_int(g, ir_arg(&g->b, op, v.n, axis), (double)v.n->type.dims[axis]);
}

// --- views ---------------------------------------------------------------------------------------
// Splits one axis in two, or merges two neighbours.
static void move_reshape(rand_gen *g) {
  rand_val v = rand_float(g);
  ir_type t = v.n->type;
  int at = t.rank ? rand_below(g, t.rank) : 0;
  int64_t dims[IR_MAX_RANK + 1];
  int rank = 0;
  bool merge = rand_chance(g, 50) && at + 1 < t.rank;
  for (int i = 0; i < t.rank; i++) {
    int64_t d = t.dims[i], by = d % 3 == 0 ? 3 : d % 2 == 0 ? 2 : 1;
    if (merge && i == at)
      dims[rank++] = d * t.dims[++i];
    else if (!merge && i == at && t.rank < 5)
      dims[rank++] = d / by, dims[rank++] = by;
    else
      dims[rank++] = d;
  }
  rand_like(g, v, ir_reshape(&g->b, v.n, rank, dims));
}

static void move_transpose(rand_gen *g) {
  rand_val v = rand_float(g);
  int64_t perm[IR_MAX_RANK];
  int rank = v.n->type.rank;
  for (int i = 0; i < rank; i++)
    perm[i] = i;
  for (int i = rank - 1; i > 0; i--) {
    int k = rand_below(g, i + 1);
    int64_t t = perm[i];
    perm[i] = perm[k];
    perm[k] = t;
  }
  rand_like(g, v, ir_transpose(&g->b, v.n, perm));
}

static void move_broadcast(rand_gen *g) {
  rand_val v = rand_float(g);
  ir_type t = v.n->type;
  for (int i = 0; i < t.rank; i++)
    if (t.dims[i] == 1 && ir_elements(&t) <= MAX_ELEMENTS / 7)
      t.dims[i] = 1 + rand_below(g, 7);
  ir_node *n = ir_broadcast(&g->b, v.n, t.rank, t.dims);
  rand_push(g, n, v.mag, v.noise, v.exact, v.distinct && n == v.n);
}

static void move_slice(rand_gen *g) {
  rand_val v = rand_float(g);
  int64_t start[IR_MAX_RANK], stop[IR_MAX_RANK], step[IR_MAX_RANK];
  for (int i = 0; i < v.n->type.rank; i++) {
    int d = (int)v.n->type.dims[i];
    start[i] = rand_chance(g, 50) ? 0 : rand_below(g, d);
    stop[i] = rand_chance(g, 50) ? d : start[i] + 1 + rand_below(g, d - (int)start[i]);
    step[i] = 1 + (rand_chance(g, 25) ? rand_below(g, 3) : 0);
  }
  rand_like(g, v, ir_slice(&g->b, v.n, start, stop, step));
}

// A size, step and dilation with which a window fits into n elements.
static void random_window(rand_gen *g, int64_t n, int64_t *size, int64_t *step, int64_t *dilate) {
  *size = 1 + rand_below(g, n < 3 ? (int)n : 3);
  *step = 1 + (rand_chance(g, 40) ? rand_below(g, 3) : 0);
  *dilate = 1;
  if (*size > 1 && rand_chance(g, 25))
    *dilate += rand_below(g, (int)((n - 1) / (*size - 1)));
}

static void move_windows(rand_gen *g) {
  rand_val v = rand_float(g);
  int64_t axes[2], size[2], step[2], dilate[2];
  int rank = v.n->type.rank, num = 0;
  if (rank == 0 || rank > 4 || ir_elements(&v.n->type) > MAX_ELEMENTS / 9)
    return;
  for (int i = rand_below(g, rank); i < rank && num < 2; i++, num++) {
    axes[num] = i;
    random_window(g, v.n->type.dims[i], &size[num], &step[num], &dilate[num]);
  }
  ir_node *n = ir_windows(&g->b, v.n, num, axes, size, step, dilate);
  rand_push(g, n, v.mag, v.noise, v.exact, false);
}

// --- pad, concat, insert ----------------------------------------------------------------------
static void move_pad(rand_gen *g) {
  rand_val v = rand_float(g);
  int64_t lo[IR_MAX_RANK], hi[IR_MAX_RANK];
  if (v.n->type.rank == 0 || ir_elements(&v.n->type) > MAX_ELEMENTS / 8)
    return;
  for (int i = 0; i < v.n->type.rank; i++) {
    lo[i] = rand_chance(g, 60) ? 0 : rand_below(g, 3);
    hi[i] = rand_chance(g, 60) ? 0 : rand_below(g, 3);
  }
  double value = rand_chance(g, 70) ? 0 : 0.5;
  rand_push(g, ir_pad(&g->b, v.n, lo, hi, value), fmax(v.mag, value), v.noise, v.exact, false);
}

static void move_insert(rand_gen *g) {
  rand_val v = rand_float(g);
  int64_t lo[IR_MAX_RANK], dims[IR_MAX_RANK];
  if (v.n->type.rank == 0 || ir_elements(&v.n->type) > MAX_ELEMENTS / 4)
    return;
  for (int i = 0; i < v.n->type.rank; i++) {
    dims[i] = rand_chance(g, 40) ? v.n->type.dims[i] : 1 + rand_below(g, (int)v.n->type.dims[i]);
    lo[i] = rand_below(g, (int)(v.n->type.dims[i] - dims[i]) + 1);
  }
  rand_val part = rand_fit(g, rand_float(g), v.n->type.rank, dims);
  if (part.n->type.dtype != v.n->type.dtype)
    return;
  rand_push(g, ir_insert(&g->b, v.n, part.n, lo), fmax(v.mag, part.mag), fmax(v.noise, part.noise),
            v.exact && part.exact, false);
}

static void move_concat(rand_gen *g) {
  rand_val a = rand_float(g);
  ir_type t = a.n->type;
  if (t.rank == 0 || ir_elements(&t) > MAX_ELEMENTS / 4)
    return;
  int axis = rand_below(g, t.rank), num = 1 + rand_below(g, 3);
  ir_node *parts[3] = {a.n};
  for (int i = 1; i < num; i++) {
    t.dims[axis] = 1 + rand_below(g, (int)a.n->type.dims[axis]);
    rand_val b = rand_fit(g, rand_float(g), t.rank, t.dims);
    a.mag = fmax(a.mag, b.mag);
    a.noise = fmax(a.noise, b.noise);
    a.exact = a.exact && b.exact;
    parts[i] = b.n;
  }
  rand_push(g, ir_concat(&g->b, num, parts, axis), a.mag, a.noise, a.exact, false);
}

// --- data-dependent addresses --------------------------------------------------------------------
static void move_gather(rand_gen *g) {
  rand_val v = rand_float(g), index = rand_int(g);
  if (v.n->type.rank == 0)
    return;
  int64_t row = ir_elements(&v.n->type) / v.n->type.dims[0];
  if (row * ir_elements(&index.n->type) > MAX_ELEMENTS ||
      v.n->type.rank - 1 + index.n->type.rank > 6)
    return;
  rand_push(g, ir_gather(&g->b, v.n, index.n), v.mag, v.noise, v.exact, false);
}

static void move_scatter(rand_gen *g) {
  rand_val index = rand_int(g);
  int64_t num = ir_elements(&index.n->type), dims[2] = {num, rand_dim(g)};
  if (num * dims[1] > MAX_ELEMENTS)
    return;
  rand_val v = rand_fit(g, rand_float(g), 2, dims);
  v = rand_scaled(g, v, 1 / (double)num);
  ir_node *rows = ir_reshape(&g->b, index.n, 1, dims);
  ir_node *n = ir_scatter_add(&g->b, rows, v.n, 1 + rand_below(g, 12));
  rand_push(g, n, v.mag * (double)num, v.noise * (double)num, false, false);
}

// The largest of rows by any index; 0 in rows that it does not name.
static void move_scatter_max(rand_gen *g) {
  rand_val v = g->o.differentiable ? rand_distinct(g) : rand_float(g);
  if (v.n->type.rank == 0)
    return;
  rand_val index = rand_fit(g, rand_int(g), 1, v.n->type.dims);
  ir_node *n = ir_scatter_max(&g->b, index.n, v.n, 1 + rand_below(g, 12));
  ir_node *none = ir_const(&g->b, n->type, -INFINITY), *zero = ir_const(&g->b, n->type, 0);
  n = ir_select(&g->b, ir_binary(&g->b, IR_EQ, n, none), zero, n);
  rand_push(g, n, v.mag, v.noise, v.exact, false);
}

// --- matmul --------------------------------------------------------------------------------------
// The shape with its last two axes swapped when it stands transposed.
static rand_val fit_matrix(rand_gen *g, rand_val v, int rank, const int64_t *dims, bool trans) {
  int64_t d[IR_MAX_RANK];
  for (int i = 0; i < rank; i++)
    d[i] = dims[i];
  if (trans) {
    d[rank - 1] = dims[rank - 2];
    d[rank - 2] = dims[rank - 1];
  }
  return rand_fit(g, v, rank, d);
}

static void move_matmul(rand_gen *g) {
  int rank = 2 + (rand_chance(g, 40) ? 1 + rand_below(g, 2) : 0);
  int64_t a[4] = {1 + rand_below(g, 3), 1 + rand_below(g, 3)}, b[4];
  int64_t m = rand_dim(g), n = rand_dim(g), k = rand_dim(g);
  if (rank == 3)
    a[0] *= a[1];
  for (int i = 0; i < rank - 2; i++)
    b[i] = a[i];
  a[rank - 2] = m, a[rank - 1] = k;
  b[rank - 2] = k, b[rank - 1] = n;
  bool ta = rand_chance(g, 30), tb = rand_chance(g, 30);
  rand_val x = fit_matrix(g, rand_float(g), rank, a, ta);
  rand_val y = fit_matrix(g, rand_float(g), rank, b, tb);
  double mag = x.mag * y.mag * (double)k;
  double noise = (double)k * (x.mag * y.noise + y.mag * x.noise) + mag;
  rand_push(g, ir_matmul(&g->b, x.n, y.n, ta, tb), mag, noise, false, false);
}

static void move_conv(rand_gen *g) {
  int num = 1 + rand_below(g, 2);
  int64_t x[4] = {1 + rand_below(g, 3)}, kernel[4], step[2], dilate[2];
  int64_t c = 1 + rand_below(g, 4), terms = c;
  for (int i = 0; i < num; i++) {
    x[1 + i] = 1 + rand_below(g, 8);
    random_window(g, x[1 + i], &kernel[i], &step[i], &dilate[i]);
    terms *= kernel[i];
  }
  x[1 + num] = kernel[num] = c;
  kernel[1 + num] = 1 + rand_below(g, 5);
  rand_val a = rand_fit(g, rand_float(g), num + 2, x);
  rand_val b = rand_fit(g, rand_float(g), num + 2, kernel);
  double mag = a.mag * b.mag * (double)terms;
  double noise = (double)terms * (a.mag * b.noise + b.mag * a.noise) + mag;
  rand_push(g, ir_conv(&g->b, a.n, b.n, step, dilate), mag, noise, false, false);
}

// A matmul of operands that hold few digits, which tensor cores take; narrowed from what f32 holds
// exactly, so that rounding has one answer. Not in graphs whose gradients are looked at: narrowing
// is a step function.
static rand_val narrowed(rand_gen *g, rand_val v, int kind) {
  if (!v.exact || kind == 3)
    return v;
  if (kind == 0) {
    v.n = ir_unary(&g->b, IR_TF32, v.n);
  } else {
    ir_dtype t = kind == 1 || v.mag > 60000 ? IR_BF16 : IR_F16;
    v.n = ir_cast(&g->b, ir_cast(&g->b, v.n, t), IR_F32);
  }
  v.mag *= 1.01;
  v.distinct = false;
  return rand_push(g, v.n, v.mag, v.noise, true, false);
}

static void move_narrow(rand_gen *g) {
  if (g->o.differentiable)
    return;
  int64_t m = rand_dim(g), n = rand_dim(g), k = rand_dim(g), a[] = {m, k}, b[] = {k, n};
  int kind = rand_below(g, 4), other = rand_chance(g, 70) ? kind : rand_below(g, 4);
  bool ta = rand_chance(g, 30), tb = rand_chance(g, 30);
  rand_val x = narrowed(g, fit_matrix(g, rand_exact(g), 2, a, ta), kind);
  rand_val y = narrowed(g, fit_matrix(g, rand_exact(g), 2, b, tb), other);
  double noise = (double)k * (x.mag * y.noise + y.mag * x.noise) + x.mag * y.mag * (double)k;
  rand_push(g, ir_matmul(&g->b, x.n, y.n, ta, tb), x.mag * y.mag * (double)k, noise, false, false);
}

// --- integers and casts --------------------------------------------------------------------------
static void move_int(rand_gen *g) {
  static const ir_op ops[] = {IR_ADD, IR_SUB, IR_MUL, IR_DIV, IR_MOD, IR_MAX, IR_MIN};
  rand_val a = rand_int(g), b = rand_fit(g, rand_int(g), a.n->type.rank, a.n->type.dims);
  ir_op op = ops[rand_below(g, 7)];
  double mag = op == IR_MUL ? a.mag * b.mag : a.mag + b.mag;
  rand_push_int(g, ir_binary(&g->b, op, a.n, b.n), mag);
}

static void move_int_unary(rand_gen *g) {
  static const ir_op ops[] = {IR_NEG, IR_ABS, IR_SIGN};
  rand_val a = rand_int(g);
  rand_push_int(g, ir_unary(&g->b, ops[rand_below(g, 3)], a.n), a.mag);
}

static void move_cast(rand_gen *g) {
  int kind = rand_below(g, 4);
  if (kind == 0) { // whole numbers, of all widths
    static const ir_dtype widths[] = {IR_I32, IR_U8, IR_I8, IR_U16, IR_I64, IR_U32};
    rand_val v = rand_int(g);
    ir_node *n = ir_cast(&g->b, v.n, widths[rand_below(g, 6)]);
    rand_push_int(g, ir_cast(&g->b, n, IR_I32), 70000); // narrow types wrap
  } else if (kind == 1) {
    rand_val v = rand_int(g);
    rand_push(g, ir_cast(&g->b, v.n, IR_F32), v.mag, 0, true, false);
  } else if (kind == 2) {
    rand_val v = rand_exact(g);
    rand_push_int(g, ir_cast(&g->b, v.n, IR_I32), v.mag);
  } else {
    int64_t dims[] = {rand_dim(g), rand_dim(g)};
    ir_node *c = random_bool(g, 2, dims);
    rand_push(g, ir_cast(&g->b, c, IR_F32), 1, 0, true, false);
  }
}

static void move_f64(rand_gen *g) {
  rand_val v = rand_float(g);
  ir_node *n = ir_cast(&g->b, v.n, IR_F64);
  n = ir_cast(&g->b, ir_binary_const(&g->b, IR_MUL, n, 0.75), IR_F32);
  rand_push(g, n, v.mag, v.noise, false, v.distinct);
}

// --- leaves --------------------------------------------------------------------------------------
static void move_leaf(rand_gen *g) {
  int64_t dims[] = {rand_dim(g), rand_dim(g)};
  ir_type t = ir_tensor(IR_F32, 2, dims);
  int kind = rand_below(g, 4);
  if (kind == 0) {
    rand_push(g, ir_uniform(&g->b, t, g->seed, g->step, g->stream++), 1, 0, true, false);
  } else if (kind == 1) {
    rand_push(g, ir_normal(&g->b, t, g->seed, g->step, g->stream++), 6, 6, false, false);
  } else if (kind == 2) {
    rand_push(g, ir_const(&g->b, t, 0.25 * (rand_below(g, 9) - 4)), 1, 0, true, false);
  } else {
    int axis = rand_below(g, 2);
    t.dtype = IR_I32;
    rand_push_int(g, ir_iota(&g->b, t, axis), (double)dims[axis]);
  }
}

const rand_choice rand_plain_moves[] = {{move_unary, 14},
                                        {move_jump, 2},
                                        {move_add_mul, 16},
                                        {move_div, 3},
                                        {move_pow, 2},
                                        {move_max, 4},
                                        {move_select, 5},
                                        {move_reduce, 9},
                                        {move_arg, 2},
                                        {move_reshape, 6},
                                        {move_transpose, 6},
                                        {move_broadcast, 4},
                                        {move_slice, 4},
                                        {move_windows, 3},
                                        {move_pad, 3},
                                        {move_concat, 3},
                                        {move_insert, 2},
                                        {move_gather, 4},
                                        {move_scatter, 3},
                                        {move_scatter_max, 3},
                                        {move_matmul, 7},
                                        {move_conv, 3},
                                        {move_int, 5},
                                        {move_int_unary, 2},
                                        {move_cast, 5},
                                        {move_narrow, 4},
                                        {move_f64, 1},
                                        {move_leaf, 4},
                                        {0}};
