// grad.c: the gradient rules, side by side.
//
// Column `grad` of ops.def names them. Each gives every operand its share of the
// adjoint g = dloss/dn, written with ordinary nodes:
//
//   n = mul x, y          d.x += g * y
//                         d.y += g * x
//
// A call has one argument at most that builds nodes: in which order arguments are worked out is the
// compiler's choice, and so would be the order and the names of nodes.
//
// windows and conv are in grad_windows.c.
//
// Adding an op: name the rule in ops.def and write it here, in a few lines.
#include "passes/grad.h"

static ir_node *add(grad_ctx *c, ir_node *x, ir_node *y) {
  return ir_binary(&c->b, IR_ADD, x, y);
}

static ir_node *mul(grad_ctx *c, ir_node *x, ir_node *y) {
  return ir_binary(&c->b, IR_MUL, x, y);
}

static ir_node *divide(grad_ctx *c, ir_node *x, ir_node *y) {
  return ir_binary(&c->b, IR_DIV, x, y);
}

static ir_node *neg(grad_ctx *c, ir_node *x) {
  return ir_unary(&c->b, IR_NEG, x);
}

static ir_node *scale(grad_ctx *c, ir_node *x, double k) {
  return ir_binary_const(&c->b, IR_MUL, x, k);
}

static ir_node *number(grad_ctx *c, const ir_node *like, double v) {
  return ir_const(&c->b, like->type, v);
}

// g where cond holds, 0 elsewhere; and the other way round.
static ir_node *where(grad_ctx *c, ir_node *cond, ir_node *g) {
  return ir_select(&c->b, cond, g, number(c, g, 0));
}

static ir_node *unless(grad_ctx *c, ir_node *cond, ir_node *g) {
  return ir_select(&c->b, cond, number(c, g, 0), g);
}

static ir_node *broadcast_like(grad_ctx *c, ir_node *x, const ir_node *like) {
  return ir_broadcast(&c->b, x, like->type.rank, like->type.dims);
}

static ir_node *reshape_like(grad_ctx *c, ir_node *x, const ir_node *like) {
  return ir_reshape(&c->b, x, like->type.rank, like->type.dims);
}

// --- not on any path, or nothing to give -------------------------------------------
void grad_zero(grad_ctx *c, ir_node *n, ir_node *g) {
  (void)c, (void)n, (void)g;
}

void grad_none(grad_ctx *c, ir_node *n, ir_node *g) {
  (void)c, (void)g;
  BUG("'%s' has no gradient rule; autodiff reports that before it runs rules", ir_ops[n->op].name);
}

// --- pointwise, one operand ----------------------------------------------------------
void grad_copy(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, g);
}

// From integers nothing is wanted: autodiff only wants floating-point nodes.
void grad_cast(grad_ctx *c, ir_node *n, ir_node *g) {
  ir_dtype t = n->in[0]->type.dtype;
  GIVE(0, ir_cast(&c->b, g, ir_is_narrow(t) ? IR_F32 : t));
}

void grad_neg(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, neg(c, g));
}

void grad_abs(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, mul(c, g, ir_unary(&c->b, IR_SIGN, n->in[0])));
}

// 1 / (2 sqrt(x)); infinite at 0, as it is.
void grad_sqrt(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, divide(c, scale(c, g, 0.5), n));
}

// -1/2 x^(-3/2) = -1/2 n^3
void grad_rsqrt(grad_ctx *c, ir_node *n, ir_node *g) {
  ir_node *cube = mul(c, mul(c, n, n), n);
  GIVE(0, mul(c, scale(c, g, -0.5), cube));
}

void grad_exp(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, mul(c, g, n));
}

// Of x, not n + 1, in which little is left of a small e^x.
void grad_expm1(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, mul(c, g, ir_unary(&c->b, IR_EXP, n->in[0])));
}

void grad_log(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, divide(c, g, n->in[0]));
}

void grad_log1p(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, divide(c, g, ir_binary_const(&c->b, IR_ADD, n->in[0], 1)));
}

void grad_sin(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, mul(c, g, ir_unary(&c->b, IR_COS, n->in[0])));
}

void grad_cos(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, neg(c, mul(c, g, ir_unary(&c->b, IR_SIN, n->in[0]))));
}

// 1 - tanh(x)^2
void grad_tanh(grad_ctx *c, ir_node *n, ir_node *g) {
  ir_node *square = mul(c, n, n);
  GIVE(0, mul(c, g, ir_binary(&c->b, IR_SUB, number(c, n, 1), square)));
}

// y (1 - y)
void grad_sigmoid(grad_ctx *c, ir_node *n, ir_node *g) {
  ir_node *rest = ir_binary(&c->b, IR_SUB, number(c, n, 1), n);
  GIVE(0, mul(c, g, mul(c, n, rest)));
}

// 2/sqrt(pi) exp(-x^2)
void grad_erf(grad_ctx *c, ir_node *n, ir_node *g) {
  const double two_over_sqrt_pi = 1.1283791670955126;
  ir_node *x = n->in[0];
  ir_node *bell = ir_unary(&c->b, IR_EXP, neg(c, mul(c, x, x)));
  GIVE(0, mul(c, scale(c, g, two_over_sqrt_pi), bell));
}

// --- pointwise, two operands -----------------------------------------------------------
void grad_add(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, g);
  GIVE(1, g);
}

void grad_sub(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, g);
  GIVE(1, neg(c, g));
}

void grad_mul(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, mul(c, g, n->in[1]));
  GIVE(1, mul(c, g, n->in[0]));
}

// d(x/y)/dx = 1/y; d(x/y)/dy = -(x/y)/y
void grad_div(grad_ctx *c, ir_node *n, ir_node *g) {
  ir_node *share = divide(c, g, n->in[1]);
  GIVE(0, share);
  GIVE(1, neg(c, mul(c, share, n)));
}

// x - floor(x/y) y, where floor(x/y) is flat: 1 and -floor(x/y)
void grad_mod(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, g);
  GIVE(1, neg(c, mul(c, g, ir_unary(&c->b, IR_FLOOR, divide(c, n->in[0], n->in[1])))));
}

// y x^(y-1), but 0 for y = 0, also at x = 0 where x^-1 is infinite.
static ir_node *pow_base(grad_ctx *c, ir_node *x, ir_node *y) {
  ir_node *slope = mul(c, y, ir_binary(&c->b, IR_POW, x, ir_binary_const(&c->b, IR_SUB, y, 1)));
  return unless(c, ir_binary_const(&c->b, IR_EQ, y, 0), slope);
}

// x^y log(x), and 0 where x <= 0. The logarithm never sees such an x, so that gradients of
// this gradient stay finite too.
static ir_node *pow_exponent(grad_ctx *c, ir_node *x, ir_node *n) {
  ir_node *positive = ir_binary_const(&c->b, IR_GT, x, 0);
  ir_node *safe = ir_select(&c->b, positive, x, number(c, x, 1));
  return where(c, positive, mul(c, n, ir_unary(&c->b, IR_LOG, safe)));
}

void grad_pow(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, mul(c, g, pow_base(c, n->in[0], n->in[1])));
  GIVE(1, mul(c, g, pow_exponent(c, n->in[0], n)));
}

// Ties go to the first operand.
static void grad_pick(grad_ctx *c, ir_node *n, ir_node *g, ir_op first_wins) {
  ir_node *first = ir_binary(&c->b, first_wins, n->in[0], n->in[1]);
  GIVE(0, where(c, first, g));
  GIVE(1, unless(c, first, g));
}

void grad_max(grad_ctx *c, ir_node *n, ir_node *g) {
  grad_pick(c, n, g, IR_GE);
}

void grad_min(grad_ctx *c, ir_node *n, ir_node *g) {
  grad_pick(c, n, g, IR_LE);
}

void grad_select(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(1, where(c, n->in[0], g));
  GIVE(2, unless(c, n->in[0], g));
}

// --- reductions ----------------------------------------------------------------------------
void grad_sum(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, broadcast_like(c, g, n->in[0]));
}

// reduce_max, reduce_min: equal shares to all elements that reach the extreme.
void grad_extreme(grad_ctx *c, ir_node *n, ir_node *g) {
  ir_node *x = n->in[0];
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  ir_node *hit = ir_binary(&c->b, IR_EQ, x, broadcast_like(c, n, x));
  ir_node *ties = ir_reduce(&c->b, IR_SUM, ir_cast(&c->b, hit, x->type.dtype), axes, num);
  GIVE(0, where(c, hit, broadcast_like(c, divide(c, g, ties), x)));
}

// --- views ---------------------------------------------------------------------------------
void grad_reshape(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, reshape_like(c, g, n->in[0]));
}

void grad_transpose(grad_ctx *c, ir_node *n, ir_node *g) {
  int rank;
  const int64_t *perm = ir_attr_ints(n, IR_ATTR_PERM, &rank);
  int64_t inverse[IR_MAX_RANK] = {0};
  for (int i = 0; i < rank; i++)
    inverse[perm[i]] = i;
  GIVE(0, ir_transpose(&c->b, g, inverse));
}

// Every element was used as often as it was repeated: sum over the repeats.
void grad_broadcast(grad_ctx *c, ir_node *n, ir_node *g) {
  int64_t axes[IR_MAX_RANK];
  int num = 0;
  for (int i = 0; i < n->type.rank; i++)
    if (n->in[0]->type.dims[i] != n->type.dims[i])
      axes[num++] = i;
  GIVE(0, num ? ir_reduce(&c->b, IR_SUM, g, axes, num) : g);
}

//   [outer, m, inner] -> [outer*m, 1, inner] -> pad -> [outer*m, step, inner] -> [outer, m*step,
//   inner]
ir_node *grad_interleave(grad_ctx *c, ir_node *g, int axis, int64_t step) {
  ir_type t = g->type;
  int64_t rows = 1, inner = 1;
  for (int i = 0; i < t.rank; i++)
    *(i <= axis ? &rows : &inner) *= t.dims[i];
  ir_node *one = ir_reshape(&c->b, g, 3, (int64_t[]){rows, 1, inner});
  ir_node *padded = ir_pad(&c->b, one, (int64_t[]){0, 0, 0}, (int64_t[]){0, step - 1, 0}, 0);
  t.dims[axis] *= step;
  return ir_reshape(&c->b, padded, t.rank, t.dims);
}

ir_node *grad_crop(grad_ctx *c, ir_node *g, const int64_t *size) {
  int64_t zero[IR_MAX_RANK] = {0}, one[IR_MAX_RANK];
  bool all = true;
  for (int i = 0; i < g->type.rank; i++) {
    one[i] = 1;
    all = all && size[i] == g->type.dims[i];
  }
  return all ? g : ir_slice(&c->b, g, zero, size, one);
}

// The inverse of slice: zeros between the elements taken (steps), then zeros around them.
static ir_node *unslice(grad_ctx *c, ir_node *g, const ir_type *to, const int64_t *start,
                        const int64_t *step) {
  int64_t size[IR_MAX_RANK], hi[IR_MAX_RANK];
  for (int i = 0; i < to->rank; i++)
    if (step[i] > 1)
      g = grad_interleave(c, g, i, step[i]);
  for (int i = 0; i < to->rank; i++) { // the zeros behind the last element may stick out
    int64_t room = to->dims[i] - start[i];
    size[i] = g->type.dims[i] < room ? g->type.dims[i] : room;
    hi[i] = room - size[i];
  }
  return ir_pad(&c->b, grad_crop(c, g, size), start, hi, 0);
}

void grad_slice(grad_ctx *c, ir_node *n, ir_node *g) {
  int rank;
  const int64_t *start = ir_attr_ints(n, IR_ATTR_START, &rank);
  const int64_t *step = ir_attr_ints(n, IR_ATTR_STEP, &rank);
  GIVE(0, unslice(c, g, &n->in[0]->type, start, step));
}

// --- copies with holes or seams ----------------------------------------------------------------
// The box of g that begins at `start` and has the shape of `like`.
static ir_node *box(grad_ctx *c, ir_node *g, const int64_t *start, const ir_node *like) {
  int64_t stop[IR_MAX_RANK], step[IR_MAX_RANK];
  for (int i = 0; i < g->type.rank; i++) {
    stop[i] = start[i] + like->type.dims[i];
    step[i] = 1;
  }
  return ir_slice(&c->b, g, start, stop, step);
}

void grad_pad(grad_ctx *c, ir_node *n, ir_node *g) {
  int rank;
  const int64_t *lo = ir_attr_ints(n, IR_ATTR_LO, &rank);
  GIVE(0, box(c, g, lo, n->in[0]));
}

void grad_concat(grad_ctx *c, ir_node *n, ir_node *g) {
  int64_t axis = ir_attr_int(n, IR_ATTR_AXIS), start[IR_MAX_RANK] = {0};
  for (int i = 0; i < n->num_in; i++) {
    GIVE(i, box(c, g, start, n->in[i]));
    start[axis] += n->in[i]->type.dims[axis];
  }
}

void grad_insert(grad_ctx *c, ir_node *n, ir_node *g) {
  int rank;
  const int64_t *lo = ir_attr_ints(n, IR_ATTR_LO, &rank);
  ir_type part = n->in[1]->type;
  part.dtype = g->type.dtype; // f32 for bf16 and f16
  GIVE(0, ir_insert(&c->b, g, ir_const(&c->b, part, 0), lo));
  GIVE(1, box(c, g, lo, n->in[1]));
}

// --- data-dependent addresses ------------------------------------------------------------------
// Whether an index names all rows of a table, the last one first.
static bool goes_backwards(const ir_node *index, int64_t rows) {
  return index->op == IR_SUB && index->type.rank == 1 && index->type.dims[0] == rows &&
         index->in[1]->op == IR_IOTA && ir_is_const(index->in[0], (double)(rows - 1));
}

// What comes back from rows that stand backwards is turned about once more: nothing has to be added up.
void grad_gather(grad_ctx *c, ir_node *n, ir_node *g) {
  int64_t rows = n->in[0]->type.dims[0];
  if (goes_backwards(n->in[1], rows))
    GIVE(0, ir_gather(&c->b, g, n->in[1]));
  else
    GIVE(0, ir_scatter_add(&c->b, n->in[1], g, rows));
}

void grad_scatter_add(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(1, ir_gather(&c->b, g, n->in[0]));
}

// Equal shares to all updates that are their row's largest. Rows without any have no share to give:
// but the derivative of g/0 would be no number, and one of zero times it.
void grad_scatter_max(grad_ctx *c, ir_node *n, ir_node *g) {
  ir_node *index = n->in[0], *x = n->in[1];
  ir_node *hit = ir_binary(&c->b, IR_EQ, x, ir_gather(&c->b, n, index));
  ir_node *ties = ir_scatter_add(&c->b, index, ir_cast(&c->b, hit, x->type.dtype), n->type.dims[0]);
  ir_node *share = divide(c, g, ir_binary(&c->b, IR_MAX, ties, number(c, ties, 1)));
  GIVE(1, where(c, hit, ir_gather(&c->b, share, index)));
}

// --- contractions ------------------------------------------------------------------------------
// n = A B:  d.A = g B',  d.B = A' g.  With operands stored transposed (ta, tb) the same products,
// written so that the result comes out in the operand's own layout and nothing is transposed:
//   ta: d.a = (g B')' = B g'        tb: d.b = (A' g)' = g' A
void grad_matmul(grad_ctx *c, ir_node *n, ir_node *g) {
  bool ta = ir_attr_bool(n, IR_ATTR_TRANS_A), tb = ir_attr_bool(n, IR_ATTR_TRANS_B);
  ir_node *a = n->in[0], *b = n->in[1];
  GIVE(0, ta ? ir_matmul(&c->b, b, g, tb, true) : ir_matmul(&c->b, g, b, false, !tb));
  GIVE(1, tb ? ir_matmul(&c->b, g, a, true, ta) : ir_matmul(&c->b, a, g, !ta, false));
}

// --- adjoints ----------------------------------------------------------------------------------
bool grad_wants(const grad_ctx *c, const ir_node *n, int operand) {
  return c->wanted[n->in[operand]->id];
}

void grad_give(grad_ctx *c, const ir_node *n, int operand, ir_node *share) {
  ir_node *x = n->in[operand], **sum = &c->adjoint[x->id];
  ir_type want = x->type; // adjoints of bf16 and f16 are f32: they are added up
  want.dtype = ir_is_narrow(want.dtype) ? IR_F32 : want.dtype;
  BUG_IF(!ir_same_type(&share->type, &want), "gradient rule of '%s' gives operand %d %s, not %s",
         ir_ops[n->op].name, operand, ir_type_str(c->b.func->module->arena, &share->type),
         ir_type_str(c->b.func->module->arena, &want));
  *sum = *sum ? add(c, *sum, share) : share;
}
