// constants.c: arithmetic on compile-time numbers, with every fault reported: overflow, division
// by zero, logarithms of nothing. Whole results of `/` are whole numbers, so that c/4 can be a
// dimension.
#include "frontend/check.h"
#include "ir/interp.h"

#include <math.h>
#include <string.h>

static const fe_value *overflow(fe *c, ir_loc at) {
  return FE_FAIL(c, at, "E0210", "the number does not fit in 64 bits");
}

static const fe_value *by_zero(fe *c, ir_loc at) {
  return FE_FAIL(c, at, "E0211", "division by zero");
}

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

static const fe_value *int_power(fe *c, ir_loc at, int64_t base, int64_t exponent) {
  int64_t r = 1;
  if (exponent < 0)
    return base ? fe_float(c, pow((double)base, (double)exponent)) : by_zero(c, at);
  if (base == 1 || base == 0)
    return fe_int(c, exponent ? base : 1);
  if (base == -1)
    return fe_int(c, exponent % 2 ? -1 : 1);
  for (int64_t i = 0; i < exponent; i++)
    if (__builtin_mul_overflow(r, base, &r))
      return overflow(c, at);
  return fe_int(c, r);
}

static const fe_value *int_divide(fe *c, ast_op op, ir_loc at, int64_t x, int64_t y) {
  if (y == 0)
    return by_zero(c, at);
  if (y == -1 && x == INT64_MIN)
    return overflow(c, at);
  if (op == AST_OP_MOD)
    return fe_int(c, x - floor_div(x, y) * y);
  if (op == AST_OP_FLOORDIV || x % y == 0)
    return fe_int(c, floor_div(x, y));
  return fe_float(c, (double)x / (double)y);
}

static const fe_value *int_arith(fe *c, ast_op op, ir_loc at, int64_t x, int64_t y) {
  int64_t r;
  bool over = false;
  switch (op) {
  case AST_OP_ADD:
    over = __builtin_add_overflow(x, y, &r);
    break;
  case AST_OP_SUB:
    over = __builtin_sub_overflow(x, y, &r);
    break;
  case AST_OP_MUL:
    over = __builtin_mul_overflow(x, y, &r);
    break;
  case AST_OP_POW:
    return int_power(c, at, x, y);
  default:
    return int_divide(c, op, at, x, y);
  }
  return over ? overflow(c, at) : fe_int(c, r);
}

static double float_result(ast_op op, double x, double y) {
  switch (op) {
  case AST_OP_ADD:
    return x + y;
  case AST_OP_SUB:
    return x - y;
  case AST_OP_MUL:
    return x * y;
  case AST_OP_DIV:
    return x / y;
  case AST_OP_FLOORDIV:
    return floor(x / y);
  case AST_OP_MOD:
    return x - floor(x / y) * y;
  default:
    return pow(x, y);
  }
}

static const fe_value *float_arith(fe *c, ast_op op, ir_loc at, double x, double y) {
  bool divides = op == AST_OP_DIV || op == AST_OP_FLOORDIV || op == AST_OP_MOD;
  if (divides && y == 0)
    return by_zero(c, at);
  double r = float_result(op, x, y);
  if (!isfinite(r))
    return FE_FAIL(c, at, "E0211", "the result is not a finite number");
  return fe_float(c, r);
}

static bool compare(ast_op op, double x, double y) {
  switch (op) {
  case AST_OP_EQ:
    return x == y;
  case AST_OP_NE:
    return x != y;
  case AST_OP_LT:
    return x < y;
  case AST_OP_LE:
    return x <= y;
  case AST_OP_GT:
    return x > y;
  default:
    return x >= y;
  }
}

static bool is_compare(ast_op op) {
  return op >= AST_OP_EQ && op <= AST_OP_GE;
}

static const fe_value *numbers(fe *c, const ast_expr *e, const fe_value *a, const fe_value *b) {
  if (a->is_int && b->is_int && is_compare(e->op)) // exact, also beyond 2^53
    return fe_bool(c, compare(e->op, (double)((a->i > b->i) - (a->i < b->i)), 0));
  if (is_compare(e->op))
    return fe_bool(c, compare(e->op, a->num, b->num));
  if (a->is_int && b->is_int)
    return int_arith(c, e->op, e->op_loc, a->i, b->i);
  return float_arith(c, e->op, e->op_loc, a->num, b->num);
}

// Texts, truth values and `none` can only be compared for equality.
static bool same_value(const fe_value *a, const fe_value *b) {
  if (a->kind != b->kind)
    return false;
  return a->kind == FE_STR    ? strcmp(a->str, b->str) == 0
         : a->kind == FE_BOOL ? a->i == b->i
                              : a->kind == FE_NONE;
}

const fe_value *fe_const_binary(fe *c, const ast_expr *e, const fe_value *a, const fe_value *b) {
  if (a->kind == FE_NUM && b->kind == FE_NUM && e->op != AST_OP_MATMUL)
    return numbers(c, e, a, b);
  if (a->kind == FE_LIST && b->kind == FE_LIST && e->op == AST_OP_ADD)
    return fe_join_lists(c, e->op_loc, a, b);
  bool simple =
      a->kind != FE_LIST && a->kind != FE_INIT && b->kind != FE_LIST && b->kind != FE_INIT;
  if (simple && (e->op == AST_OP_EQ || e->op == AST_OP_NE))
    return fe_bool(c, same_value(a, b) == (e->op == AST_OP_EQ));
  ir_diag *d =
      fe_error(c, e->op_loc, "E0202", "'%s' does not take these values", ast_op_text(e->op));
  diag_label(d, "between %s and %s", fe_describe(c, a), fe_describe(c, b));
  return &fe_bad;
}

const fe_value *fe_const_math(fe *c, ir_loc at, ir_op op, double x) {
  double r = ir_interp_unary(op, x); // the same function as the oracle of tensors
  if (!isfinite(r))
    return FE_FAIL(c, at, "E0211", "%s(%g) is not a finite number", ir_ops[op].name, x);
  return fe_num(c, r);
}
