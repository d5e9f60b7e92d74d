// builtins.c: the functions that are part of the language. One table: name, parameters, how many of
// them are required, and what computes it. Layers are not here: they are blocks in std/*.graph.
#include "frontend/builtins.h"

#include <string.h>

// Versions of clang-format disagree on braces in macros.
// clang-format off
#define MATH(name, op) {name, {"x"}, 1, builtin_math, op}
#define CAST(name, type) {name, {"x"}, 1, builtin_cast, type}
// clang-format on

static const builtin_info builtins[] = {
    MATH("exp", IR_EXP),
    MATH("expm1", IR_EXPM1),
    MATH("log", IR_LOG),
    MATH("log1p", IR_LOG1P),
    MATH("tanh", IR_TANH),
    MATH("sigmoid", IR_SIGMOID),
    MATH("erf", IR_ERF),
    MATH("sqrt", IR_SQRT),
    MATH("rsqrt", IR_RSQRT),
    MATH("sin", IR_SIN),
    MATH("cos", IR_COS),
    MATH("abs", IR_ABS),
    MATH("sign", IR_SIGN),
    MATH("floor", IR_FLOOR),
    MATH("tf32", IR_TF32),
    CAST("bool", IR_BOOL),
    CAST("u8", IR_U8),
    CAST("i8", IR_I8),
    CAST("u16", IR_U16),
    CAST("i32", IR_I32),
    CAST("u32", IR_U32),
    CAST("i64", IR_I64),
    CAST("bf16", IR_BF16),
    CAST("f16", IR_F16),
    CAST("f32", IR_F32),
    CAST("f64", IR_F64),
    {"convert", {"x", "like"}, 2, builtin_convert, 0},
    {"sum", {"x", "axis", "keep"}, 1, builtin_sum, 0},
    {"mean", {"x", "axis", "keep"}, 1, builtin_sum, 1},
    {"max", {"x", "y", "axis", "keep"}, 1, builtin_extreme, IR_MAX},
    {"min", {"x", "y", "axis", "keep"}, 1, builtin_extreme, IR_MIN},
    {"argmax", {"x", "axis"}, 2, builtin_arg, IR_ARGMAX},
    {"argmin", {"x", "axis"}, 2, builtin_arg, IR_ARGMIN},
    {"where", {"condition", "a", "b"}, 3, builtin_where, 0},
    {"stop", {"x"}, 1, builtin_stop, 0},
    {"grad", {"y", "x"}, 2, builtin_grad, 0},
    {"reshape", {"x", "shape"}, 2, builtin_reshape, 0},
    {"transpose", {"x", "axes"}, 2, builtin_transpose, 0},
    {"broadcast", {"x", "shape"}, 2, builtin_broadcast, 0},
    {"concat", {"values", "axis"}, 2, builtin_concat, 0},
    {"stack", {"values", "axis"}, 1, builtin_stack, 0},
    {"split", {"x", "parts", "axis"}, 3, builtin_split, 0},
    {"pad", {"x", "lo", "hi", "value"}, 3, builtin_pad, 0},
    {"pad_lowest", {"x", "lo", "hi"}, 3, builtin_pad, 1},
    {"windows", {"x", "size", "axis", "step", "dilate"}, 3, builtin_windows, 0},
    {"conv", {"x", "kernel", "step", "dilate"}, 2, builtin_conv, 0},
    {"pair", {"size"}, 1, builtin_pair, 0},
    {"gather", {"table", "index"}, 2, builtin_gather, 0},
    {"segment_sum", {"values", "index", "n"}, 3, builtin_segment_sum, 0},
    {"segment_max", {"values", "index", "n"}, 3, builtin_segment_max, 0},
    {"iota", {"shape", "axis"}, 1, builtin_iota, 0},
    {"zeros", {"shape"}, 0, builtin_fill, 0},
    {"ones", {"shape"}, 0, builtin_fill, 1},
    {"constant", {"value", "shape"}, 1, builtin_constant, 0},
    {"uniform", {"a", "b"}, 1, builtin_uniform, 0},
    {"normal", {"std"}, 1, builtin_normal, 0},
    {"xavier", {NULL}, 0, builtin_fan, FE_INIT_XAVIER},
    {"he", {NULL}, 0, builtin_fan, FE_INIT_HE},
    {"shape", {"x"}, 1, builtin_shape, 0},
    {"rank", {"x"}, 1, builtin_rank, 0},
    {"is_none", {"x"}, 1, builtin_is_none, 0},
    {"is_zero", {"x"}, 1, builtin_is_zero, 0},
    {"is_number", {"x"}, 1, builtin_is_number, 0},
    {"parameter", {"name"}, 1, builtin_parameter, 0},
    {"contains", {"text", "part"}, 2, builtin_text, 0},
    {"starts_with", {"text", "part"}, 2, builtin_text, 1},
    {"ends_with", {"text", "part"}, 2, builtin_text, 2},
};
enum { NUM_BUILTINS = sizeof builtins / sizeof builtins[0] };

static const builtin_info *find(const char *name) {
  for (size_t i = 0; i < NUM_BUILTINS; i++)
    if (strcmp(builtins[i].name, name) == 0)
      return &builtins[i];
  return NULL;
}

bool fe_is_builtin(const char *name) {
  return find(name) != NULL;
}

void fe_builtin_names(fe *c, const char *const **names, size_t *num) {
  const char **list = IR_NEW_ARRAY(c->arena, const char *, NUM_BUILTINS);
  for (size_t i = 0; i < NUM_BUILTINS; i++)
    list[i] = builtins[i].name;
  *names = list;
  *num = NUM_BUILTINS;
}

static size_t count_params(const builtin_info *b) {
  size_t n = 0;
  while (n < BUILTIN_MAX_PARAMS && b->params[n])
    n++;
  return n;
}

static bool check_required(fe *c, const ast_expr *call, const builtin_info *b,
                           const builtin_args *args) {
  for (int i = 0; i < b->required; i++)
    if (!args->v[i]) {
      fe_error(c, call->op_loc, "E0205", "'%s' needs a value for '%s'", b->name, b->params[i]);
      return false;
    }
  return true;
}

const fe_value *fe_call_builtin(fe *c, const ast_expr *call) {
  const builtin_info *b = find(call->text);
  const ast_arg *placed[BUILTIN_MAX_PARAMS] = {0};
  builtin_args args = {.call = call, .variant = b->variant};
  bool ok = fe_place_args(c, call, b->params, count_params(b), 0, placed);
  for (size_t i = 0; i < BUILTIN_MAX_PARAMS; i++) {
    args.at[i] = placed[i] ? placed[i]->value->loc : call->loc;
    const fe_value *v = placed[i] ? fe_eval(c, placed[i]->value) : NULL;
    ok = ok && (!v || !fe_is_bad(v));
    // `none` stands for an argument that is not given, but for is_none it is the question.
    args.v[i] = v && v->kind == FE_NONE && i >= (size_t)b->required ? NULL : v;
  }
  return ok && check_required(c, call, b, &args) ? b->run(c, &args) : &fe_bad;
}
