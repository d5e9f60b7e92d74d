// interp_pointwise.c: ops that compute each element from the elements at its place, with
// their derivatives for forward mode. One row per op in the two tables.
//
// Where a derivative jumps (abs, max, ...) forward mode takes: 0 at a kink of one
// operand, half to each of two equal operands.
#include "ir/interp_ops.h"

#include <math.h>

#include "ir/narrow.h"

// --- one operand ------------------------------------------------------------------------------
// value(x) and slope(x, y) with y = value(x)
static double v_copy(double x) {
  return x;
}
static double v_neg(double x) {
  return -x;
}
static double v_sign(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : x;
} // NaN stays
static double v_rsqrt(double x) {
  return 1 / sqrt(x);
}
static double v_not(double x) {
  return x == 0;
}

static double s_one(double x, double y) {
  return (void)x, (void)y, 1;
}
static double s_zero(double x, double y) {
  return (void)x, (void)y, 0;
}
static double s_neg(double x, double y) {
  return (void)x, (void)y, -1;
}
static double s_abs(double x, double y) {
  return (void)y, v_sign(x);
}
static double s_sqrt(double x, double y) {
  return (void)x, 0.5 / y;
}
static double s_rsqrt(double x, double y) {
  return -0.5 * y / x;
}
static double s_exp(double x, double y) {
  return (void)x, y;
}
static double s_expm1(double x, double y) {
  return (void)y, exp(x);
}
static double s_log(double x, double y) {
  return (void)y, 1 / x;
}
static double s_log1p(double x, double y) {
  return (void)y, 1 / (1 + x);
}
static double s_sin(double x, double y) {
  return (void)y, cos(x);
}
static double s_cos(double x, double y) {
  return (void)y, -sin(x);
}
static double s_tanh(double x, double y) {
  return (void)x, 1 - y * y;
}
static double v_sigmoid(double x) {
  double e = exp(-fabs(x)); // no overflow, and all digits far below 0
  return (x < 0 ? e : 1) / (1 + e);
}
static double s_sigmoid(double x, double y) {
  return (void)x, y * (1 - y);
}
static double s_erf(double x, double y) {
  return (void)y, M_2_SQRTPI * exp(-x * x);
}

typedef struct unary_rule {
  double (*value)(double x);
  double (*slope)(double x, double y);
} unary_rule;

static const unary_rule unary_rules[IR_NUM_OPS] = {
    [IR_COPY] = {v_copy, s_one},
    [IR_STOP] = {v_copy, s_zero},
    [IR_NEG] = {v_neg, s_neg},
    [IR_ABS] = {fabs, s_abs},
    [IR_SIGN] = {v_sign, s_zero},
    [IR_FLOOR] = {floor, s_zero},
    [IR_SQRT] = {sqrt, s_sqrt},
    [IR_RSQRT] = {v_rsqrt, s_rsqrt},
    [IR_EXP] = {exp, s_exp},
    [IR_EXPM1] = {expm1, s_expm1},
    [IR_LOG] = {log, s_log},
    [IR_LOG1P] = {log1p, s_log1p},
    [IR_SIN] = {sin, s_sin},
    [IR_COS] = {cos, s_cos},
    [IR_TANH] = {tanh, s_tanh},
    [IR_ERF] = {erf, s_erf},
    [IR_NOT] = {v_not, s_zero},
    [IR_TF32] = {ir_narrow_tf32, s_one},
    [IR_SIGMOID] = {v_sigmoid, s_sigmoid},
};

static const unary_rule *unary_rule_of(ir_op op) {
  BUG_IF(!unary_rules[op].value, "no rule for '%s'", ir_ops[op].name);
  return &unary_rules[op];
}

double ir_interp_unary(ir_op op, double x) {
  return unary_rule_of(op)->value(x);
}

void interp_unary(interp_ctx *c) {
  const unary_rule *rule = unary_rule_of(c->n->op);
  for (int64_t i = 0; i < ir_elements(&c->n->type); i++) {
    double x = c->in[0][i], y = rule->value(x);
    c->out[i] = interp_wrap(y, c->n->type.dtype);
    // A zero tangent stays zero where the slope is infinite: sqrt at 0.
    if (c->dout && c->din[0][i] != 0)
      c->dout[i] = rule->slope(x, y) * c->din[0][i];
  }
}

// A float outside the range of an integer type becomes its nearest end; NaN becomes 0.
static double saturate(double v, ir_dtype t) {
  ir_dtype_kind kind = ir_dtypes[t].kind;
  if (kind != IR_KIND_SINT && kind != IR_KIND_UINT)
    return interp_wrap(v, t);
  double span = ldexp(1, 8 * ir_dtypes[t].bytes);
  double hi = kind == IR_KIND_SINT ? span / 2 - 1 : span - 1,
         lo = kind == IR_KIND_SINT ? -span / 2 : 0;
  return isnan(v) ? 0 : v < lo ? lo : v > hi ? hi : trunc(v);
}

void interp_cast(interp_ctx *c) {
  ir_dtype from = c->n->in[0]->type.dtype, to = c->n->type.dtype;
  bool keeps = ir_is_float(from) && ir_is_float(to);
  for (int64_t i = 0; i < ir_elements(&c->n->type); i++) {
    c->out[i] = ir_is_float(from) ? saturate(c->in[0][i], to) : interp_wrap(c->in[0][i], to);
    if (c->dout && keeps)
      c->dout[i] = c->din[0][i];
  }
}

// --- two operands -------------------------------------------------------------------------------
static double b_add(double a, double b) {
  return a + b;
}
static double b_sub(double a, double b) {
  return a - b;
}
static double b_mul(double a, double b) {
  return a * b;
}
static double b_div(double a, double b) {
  return a / b;
}
static double b_mod(double a, double b) {
  return a - floor(a / b) * b;
}
static double b_max(double a, double b) {
  return a > b ? a : b;
}
static double b_min(double a, double b) {
  return a < b ? a : b;
}
static double b_and(double a, double b) {
  return a != 0 && b != 0;
}
static double b_or(double a, double b) {
  return a != 0 || b != 0;
}
static double b_eq(double a, double b) {
  return a == b;
}
static double b_ne(double a, double b) {
  return a != b;
}
static double b_lt(double a, double b) {
  return a < b;
}
static double b_le(double a, double b) {
  return a <= b;
}
static double b_gt(double a, double b) {
  return a > b;
}
static double b_ge(double a, double b) {
  return a >= b;
}

// Integers: floor like Python's //, and nothing traps: x / 0 = 0, x mod 0 = 0.
static double i_div(double a, double b, ir_dtype t) {
  (void)t;
  return b == 0 ? 0 : floor(a / b);
}
static double i_mod(double a, double b, ir_dtype t) {
  (void)t;
  return b == 0 ? 0 : b_mod(a, b);
}
// A double that holds the product has lost its low digits above 2^53: those that wrapping leaves.
static double i_mul(double a, double b, ir_dtype t) {
  uint64_t product = (uint64_t)(int64_t)a * (uint64_t)(int64_t)b;
  return ir_dtypes[t].bytes < 8 ? (double)(product & UINT32_MAX) : (double)(int64_t)product;
}

typedef struct pair {
  double a, b;
} pair;
static pair p_none(double a, double b) {
  return (void)a, (void)b, (pair){0, 0};
}
static pair p_add(double a, double b) {
  return (void)a, (void)b, (pair){1, 1};
}
static pair p_sub(double a, double b) {
  return (void)a, (void)b, (pair){1, -1};
}
static pair p_mul(double a, double b) {
  return (pair){b, a};
}
static pair p_div(double a, double b) {
  return (pair){1 / b, -a / (b * b)};
}
static pair p_mod(double a, double b) {
  return (pair){1, -floor(a / b)};
}
static pair p_pow(double a, double b) {
  return (pair){b == 0 ? 0 : b * pow(a, b - 1), a > 0 ? pow(a, b) * log(a) : 0};
}
// Of equal ones the first, as their gradient does.
static pair p_max(double a, double b) {
  return a >= b ? (pair){1, 0} : (pair){0, 1};
}
static pair p_min(double a, double b) {
  return a <= b ? (pair){1, 0} : (pair){0, 1};
}

typedef struct binary_rule {
  double (*value)(double a, double b);
  pair (*slopes)(double a, double b);
  double (*on_integers)(double a, double b, ir_dtype t); // NULL: as for floats, wrapped
} binary_rule;

static const binary_rule binary_rules[IR_NUM_OPS] = {
    [IR_ADD] = {b_add, p_add, NULL},  [IR_SUB] = {b_sub, p_sub, NULL},
    [IR_MUL] = {b_mul, p_mul, i_mul}, [IR_DIV] = {b_div, p_div, i_div},
    [IR_MOD] = {b_mod, p_mod, i_mod}, [IR_POW] = {pow, p_pow, NULL},
    [IR_MAX] = {b_max, p_max, NULL},  [IR_MIN] = {b_min, p_min, NULL},
    [IR_AND] = {b_and, p_none, NULL}, [IR_OR] = {b_or, p_none, NULL},
    [IR_EQ] = {b_eq, p_none, NULL},   [IR_NE] = {b_ne, p_none, NULL},
    [IR_LT] = {b_lt, p_none, NULL},   [IR_LE] = {b_le, p_none, NULL},
    [IR_GT] = {b_gt, p_none, NULL},   [IR_GE] = {b_ge, p_none, NULL},
};

void interp_binary(interp_ctx *c) {
  const binary_rule *rule = &binary_rules[c->n->op];
  BUG_IF(!rule->value, "no rule for '%s'", ir_ops[c->n->op].name);
  ir_dtype type = c->n->in[0]->type.dtype;
  bool integers = !ir_is_float(type) && rule->on_integers;
  for (int64_t i = 0; i < ir_elements(&c->n->type); i++) {
    double a = c->in[0][i], b = c->in[1][i];
    double y = integers ? rule->on_integers(a, b, type) : rule->value(a, b);
    c->out[i] = interp_wrap(y, c->n->type.dtype);
    if (!c->dout)
      continue;
    pair s = rule->slopes(a, b);
    c->dout[i] =
        (c->din[0][i] != 0 ? s.a * c->din[0][i] : 0) + (c->din[1][i] != 0 ? s.b * c->din[1][i] : 0);
  }
}

// --- three operands ------------------------------------------------------------------------------
void interp_select(interp_ctx *c) {
  for (int64_t i = 0; i < ir_elements(&c->n->type); i++) {
    int from = c->in[0][i] != 0 ? 1 : 2;
    c->out[i] = c->in[from][i];
    if (c->dout)
      c->dout[i] = c->din[from][i];
  }
}
