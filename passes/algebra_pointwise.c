// algebra_pointwise.c: identities of arithmetic, logic, select and cast. Policy: algebra.h.
#include "passes/algebra.h"

#include <math.h>

#include "ir/narrow.h"

static ir_node *neg(ir_builder *b, ir_node *x) {
  return ir_unary(b, IR_NEG, x);
}

// --- add, sub, neg -------------------------------------------------------------------------
// x + 0 -> x
ir_node *alg_add_zero(ir_builder *b, ir_node *n) {
  (void)b;
  ir_node *x;
  double v;
  return alg_match_const(n, IR_ADD, &x, &v) && v == 0 ? x : NULL;
}

// x + (-y) -> x - y;  (-x) + y -> y - x
ir_node *alg_add_neg(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0], *y = n->in[1];
  if (y->op == IR_NEG)
    return ir_binary(b, IR_SUB, x, y->in[0]);
  if (x->op == IR_NEG)
    return ir_binary(b, IR_SUB, y, x->in[0]);
  return NULL;
}

// x - 0 -> x;  0 - x -> -x;  x - (-y) -> x + y;  integers: x - x -> 0
ir_node *alg_sub(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0], *y = n->in[1];
  if (ir_is_const(y, 0))
    return x;
  if (ir_is_const(x, 0))
    return neg(b, y);
  if (y->op == IR_NEG)
    return ir_binary(b, IR_ADD, x, y->in[0]);
  if (x == y && !ir_is_float(n->type.dtype))
    return ir_const(b, n->type, 0);
  return NULL;
}

// -(-x) -> x;  -(x - y) -> y - x;  -(x * c) -> x * -c
ir_node *alg_neg(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0], *y;
  double c;
  if (x->op == IR_NEG)
    return x->in[0];
  if (x->op == IR_SUB)
    return ir_binary(b, IR_SUB, x->in[1], x->in[0]);
  if (alg_match_const(x, IR_MUL, &y, &c) && alg_fits(n->type.dtype, -c))
    return ir_binary_const(b, IR_MUL, y, -c);
  return NULL;
}

// --- mul, div, pow ---------------------------------------------------------------------------
// Whether one factor can stand for both: a product that over- or underflows while they do not would change results.
static bool are_one_factor(ir_dtype t, double c, double d) {
  bool numbers = isfinite(c) && isfinite(d), zero = c == 0 || d == 0;
  return !numbers || zero || (isfinite(c * d) && c * d != 0 && alg_fits(t, c * d));
}

// x * 1 -> x;  x * -1 -> -x;  (x * c) * d -> x * cd;  (-x) * c -> x * -c;  integers: x * 0 -> 0
ir_node *alg_mul_const(ir_builder *b, ir_node *n) {
  ir_node *x, *y;
  double c, d;
  if (!alg_match_const(n, IR_MUL, &x, &c))
    return NULL;
  bool is_float = ir_is_float(n->type.dtype);
  if (c == 1)
    return x;
  if (c == -1)
    return neg(b, x);
  if (c == 0 && !is_float)
    return ir_const(b, n->type, 0);
  if (alg_match_const(x, IR_MUL, &y, &d) && are_one_factor(n->type.dtype, c, d))
    return ir_binary_const(b, IR_MUL, y, c * d);
  if (x->op == IR_NEG && alg_fits(n->type.dtype, -c))
    return ir_binary_const(b, IR_MUL, x->in[0], -c);
  return NULL;
}

// (-x) * (-y) -> x * y
ir_node *alg_mul_neg(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0], *y = n->in[1];
  return x->op == IR_NEG && y->op == IR_NEG ? ir_binary(b, IR_MUL, x->in[0], y->in[0]) : NULL;
}

// 1/c is exact for powers of two, and for no other c.
static bool has_exact_inverse(ir_dtype t, double c) {
  int exponent;
  return isfinite(c) && isfinite(1 / c) && fabs(frexp(c, &exponent)) == 0.5 && alg_fits(t, c) &&
         alg_fits(t, 1 / c);
}

// x / 1 -> x;  x / 2^k -> x * 2^-k. Other divisions stay: x * (1/c) is not x / c.
ir_node *alg_div(ir_builder *b, ir_node *n) {
  ir_node *x;
  double c;
  if (!alg_match_const(n, IR_DIV, &x, &c))
    return NULL;
  if (c == 1)
    return x;
  if (ir_is_float(n->type.dtype) && has_exact_inverse(n->type.dtype, c))
    return ir_binary_const(b, IR_MUL, x, 1 / c);
  return NULL;
}

// x^0 -> 1 (also for NaN: C's pow says so);  x^1 -> x;  x^2 -> x x;  x^3 -> x x x;  x^-1 -> 1/x
ir_node *alg_pow(ir_builder *b, ir_node *n) {
  ir_node *x;
  double c;
  if (!alg_match_const(n, IR_POW, &x, &c))
    return NULL;
  if (c == 0)
    return ir_const(b, n->type, 1);
  if (c == 1)
    return x;
  if (c == 2)
    return ir_binary(b, IR_MUL, x, x);
  if (c == 3)
    return ir_binary(b, IR_MUL, ir_binary(b, IR_MUL, x, x), x);
  if (c == -1)
    return ir_binary(b, IR_DIV, ir_const(b, n->type, 1), x);
  return NULL;
}

// --- max, min, logic -----------------------------------------------------------------------------
// f(x, x) -> x for max, min, and, or
ir_node *alg_same_operands(ir_builder *b, ir_node *n) {
  (void)b;
  return n->in[0] == n->in[1] ? n->in[0] : NULL;
}

// x and true -> x;  x and false -> false;  x or false -> x;  x or true -> true
ir_node *alg_logic_const(ir_builder *b, ir_node *n) {
  ir_node *x;
  double c;
  if (!alg_match_const(n, n->op, &x, &c))
    return NULL;
  bool absorbs = (c != 0) == (n->op == IR_OR);
  return absorbs ? ir_const(b, n->type, n->op == IR_OR) : x;
}

// not not x -> x;  not (x == y) -> x != y;  not (x != y) -> x == y. Orderings stay: with a NaN
// not (x < y) is true and x >= y is false.
ir_node *alg_not(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0];
  if (x->op == IR_NOT)
    return x->in[0];
  if (x->op == IR_EQ || x->op == IR_NE)
    return ir_binary(b, x->op == IR_EQ ? IR_NE : IR_EQ, x->in[0], x->in[1]);
  return NULL;
}

// | |x| | -> |x|;  |-x| -> |x|. (Unsigned neg wraps, so not for those.)
ir_node *alg_abs(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0];
  if (x->op == IR_ABS)
    return x;
  return x->op == IR_NEG && ir_is_float(n->type.dtype) ? ir_unary(b, IR_ABS, x->in[0]) : NULL;
}

// --- select, cast, stop --------------------------------------------------------------------------
// select(true, x, y) -> x
// select(false, x, y) -> y
// select(c, x, x) -> x
// select(not c, x, y) -> select(c, y, x)
// select(c, true, false) -> c
ir_node *alg_select(ir_builder *b, ir_node *n) {
  ir_node *c = n->in[0], *x = n->in[1], *y = n->in[2];
  if (c->op == IR_CONST)
    return ir_is_const(c, 0) ? y : x;
  if (x == y)
    return x;
  if (c->op == IR_NOT)
    return ir_select(b, c->in[0], y, x);
  if (n->type.dtype == IR_BOOL && ir_is_const(x, 1) && ir_is_const(y, 0))
    return c;
  return NULL;
}

// Every value of `from` is a value of `to`.
static bool holds_all(ir_dtype from, ir_dtype to) {
  ir_dtype_kind a = ir_dtypes[from].kind, z = ir_dtypes[to].kind;
  if (from == to)
    return true;
  if (a == IR_KIND_FLOAT && z != IR_KIND_FLOAT)
    return false;
  if (a == IR_KIND_SINT && (z == IR_KIND_UINT || z == IR_KIND_BOOL))
    return false;
  if (to == IR_F16 && a == IR_KIND_FLOAT) // bf16 has fewer digits, and more exponents
    return false;
  return ir_digits(from) <= ir_digits(to);
}

// cast to the type it has -> x;  cast (cast x : T) : U -> cast x : U when T holds all of x's
// values. To an integer only when it holds them too: floats and integers overflow differently.
ir_node *alg_cast(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0];
  if (x->type.dtype == n->type.dtype)
    return x;
  if (x->op != IR_CAST)
    return NULL;
  ir_dtype from = x->in[0]->type.dtype, to = n->type.dtype;
  bool same_overflow = ir_is_float(to) || !ir_is_float(x->type.dtype) || holds_all(from, to);
  return holds_all(from, x->type.dtype) && same_overflow ? ir_cast(b, x->in[0], to) : NULL;
}

// tf32 of what has so few digits already -> x
ir_node *alg_tf32(ir_builder *b, ir_node *n) {
  (void)b;
  return ir_known_digits(n->in[0]) <= 11 ? n->in[0] : NULL;
}
