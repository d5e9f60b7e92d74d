// support_prelude.c: see support_prelude.h.
#include "tests/unit/support_prelude.h"
#include "tests/unit/support_passes.h"

#include <math.h>
#include <string.h>

// --- the text ---------------------------------------------------------------------------------
static const char functions[] =
    "#ifdef __cplusplus\n"
    "#ifdef __CUDACC__\n"
    "#define EXPORT extern \"C\" __global__\n"
    "#else\n"
    "#define EXPORT extern \"C\" __attribute__((visibility(\"default\")))\n"
    "#endif\n"
    "#define HELPER K_IN\n"
    "#else\n"
    "#define EXPORT\n"
    "#define HELPER static inline __attribute__((overloadable))\n"
    "#endif\n"
    "#define EACH(name, T, R, step, room, body) \\\n"
    "  EXPORT void name(const T##_t *a, const T##_t *b, const uint8_t *c, R##_t *r, int n) { \\\n"
    "    (void)b; (void)c; \\\n"
    "    for (int64_t i = 0; i + room < n; i += step) { body } \\\n"
    "  }\n";
static const char kernels[] =
    "#define HELPER K_IN\n"
    "#define EACH(name, T, R, step, room, body) \\\n"
    "  K_KERNEL(name, THREADS, 4) { \\\n"
    "    const T##_t *const a = (const T##_t *)args[0], *const b = (const T##_t *)args[1]; \\\n"
    "    const uint8_t *const c = (const uint8_t *)args[2]; (void)b; (void)c; \\\n"
    "    R##_t *const r = (R##_t *)args[3]; \\\n"
    "    const int64_t i = (task * THREADS + threadIdx.x) * step; \\\n"
    "    if (i + room < COUNT) { body } \\\n"
    "  }\n";
static const char head[] =
    "typedef float f32_t; typedef double f64_t; typedef int32_t i32_t; typedef uint32_t u32_t;\n"
    "typedef int64_t i64_t; typedef uint8_t u8_t; typedef int8_t i8_t; typedef uint16_t u16_t;\n"
    "typedef uint8_t bool_t;\n"
    "typedef vf f32_v; typedef vd f64_v; typedef vi i32_v; typedef vu u32_v; typedef vl i64_v;\n"
    "#define MAP(name, T, R, E) EACH(name, T, R, VL, 0, \\\n"
    "  const T##_v x = k_load_##T(a + i); const T##_v y = k_load_##T(b + i); \\\n"
    "  const vi m = k_load_bool(c + i); (void)x; (void)y; (void)m; \\\n"
    "  k_store_##R(r + i, E);)\n"
    "#define ARG(T) \\\n"
    "  HELPER vi argmax_steps(T##_v x, T##_v y, int64_t i) { \\\n"
    "    T##_v best = x; vi at = k_count_i32(i, 2); \\\n"
    "    k_argmax_step(&best, &at, y, k_count_i32(i + 5, -1)); \\\n"
    "    return at + k_argmax_lanes(best, at) * 16384; \\\n"
    "  } \\\n"
    "  HELPER vi argmin_steps(T##_v x, T##_v y, int64_t i) { \\\n"
    "    T##_v best = x; vi at = k_count_i32(i, 2); \\\n"
    "    k_argmin_step(&best, &at, y, k_count_i32(i + 5, -1)); \\\n"
    "    return at + k_argmin_lanes(best, at) * 16384; \\\n"
    "  }\n"
    "ARG(f32) ARG(f64) ARG(i32) ARG(u32) ARG(i64)\n"
    // loads and stores of a type: whole, part, with steps, one, gathered; at addresses that are and
    // are not multiples of 16
    "#define MEMORY(T) EACH(memory_##T, T, T, 40, 40, \\\n"
    "  k_store_##T(r + i, k_load_##T(a + i)); \\\n"
    "  k_store_##T(r + i + 5, k_load_##T(a + i + 3)); \\\n"
    "  k_store_##T##_part(r + i + 10, k_load_##T##_part(a + i + 1, (int)(i % 3) + 1), 3); \\\n"
    "  k_store_##T##_step(r + i + 14, k_load_##T##_step(a + i, 7, 3), 2, 4); \\\n"
    "  k_store_##T##_one(r + i + 13, k_load_##T##_one(a + i + 9)); \\\n"
    "  k_store_##T(r + i + 24, k_splat_##T(a[i + 2])); \\\n"
    "  k_store_##T(r + i + 28, k_load_##T##_one(a + i + 11)); \\\n"
    "  k_store_##T(r + i + 32, k_gather_##T(a + i, k_row(k_lane() * 5 - 3, 8), 3, 2, (int)(i % "
    "5)));)\n"
    "MEMORY(bool) MEMORY(u8) MEMORY(i8) MEMORY(u16) MEMORY(i32) MEMORY(u32) MEMORY(i64) "
    "MEMORY(f32)\n"
    "MEMORY(f64)\n";

// --- rows -------------------------------------------------------------------------------------
#define CLEAN "k_select(k_mask(x == x), x, k_$(1))"
const prelude_row prelude_rows[] = {
    {"fdiul", "x + y", NULL, PRELUDE_BITS},
    {"fdiul", "x - y", NULL, PRELUDE_BITS},
    {"fdiul", "x * y", NULL, PRELUDE_BITS},
    {"fd", "x / y", NULL, PRELUDE_BITS},
    {"fdiul", "-x", NULL, PRELUDE_BITS},
    {"fdiul", "1 - x", NULL, PRELUDE_BITS},
    {"iul", "x * 3 + 2 * y", NULL, PRELUDE_BITS},
    {"fd", "x * 3 + 2 * y", NULL, PRELUDE_FUSED},
    {"iul", "x & y", NULL, PRELUDE_BITS},
    {"iul", "x | y", NULL, PRELUDE_BITS},
    {"iul", "~x", NULL, PRELUDE_BITS},
    {"iul", "(x << 3) + (x >> 5)", NULL, PRELUDE_BITS},
    {"fdiul", "k_mask(x == y)", "bool", PRELUDE_BITS},
    {"fdiul", "k_mask(x != y)", "bool", PRELUDE_BITS},
    {"fdiul", "k_mask(x < y)", "bool", PRELUDE_BITS},
    {"fdiul", "k_mask(x <= y)", "bool", PRELUDE_BITS},
    {"fdiul", "k_mask(x > y)", "bool", PRELUDE_BITS},
    {"fdiul", "k_mask(x >= y)", "bool", PRELUDE_BITS},
    {"fdiul", "k_mask(x >= 1)", "bool", PRELUDE_BITS},
    {"fdiul", "k_not(m) | (m & k_mask(x < y))", "bool", PRELUDE_BITS},
    {"fdiul", "k_to_bool(x)", "bool", PRELUDE_BITS},
    {"fdiul", "k_select(m, x, y)", NULL, PRELUDE_BITS},
    {"dl", "k_select(x < y, x, y)", NULL, PRELUDE_BITS},
    {"fdiul", "k_max(x, y)", NULL, PRELUDE_BITS},
    {"fdiul", "k_min(x, y)", NULL, PRELUDE_BITS},
    {"fdiul", "k_abs(x)", NULL, PRELUDE_BITS},
    {"fdiul", "k_sign(x)", NULL, PRELUDE_BITS},
    {"fdiul", "k_div(x, y)", NULL, PRELUDE_BITS},
    {"fdiul", "k_mod(x, y)", NULL, PRELUDE_BITS},
    {"fd", "k_floor(x)", NULL, PRELUDE_BITS},
    {"fd", "k_sqrt(x)", NULL, PRELUDE_BITS},
    {"fd", "k_rsqrt(x)", NULL, PRELUDE_BITS},
    {"f", "k_copysign(x, y)", NULL, PRELUDE_BITS},
    {"fdiul", "k_to_f32(x)", "f32", PRELUDE_BITS},
    {"fdiul", "k_to_f64(x)", "f64", PRELUDE_BITS},
    {"fdiul", "k_to_i32(x)", "i32", PRELUDE_BITS},
    {"fdiul", "k_to_u32(x)", "u32", PRELUDE_BITS},
    {"fdiul", "k_to_i64(x)", "i64", PRELUDE_BITS},
    {"fdiul", "k_to_u8(x)", "u8", PRELUDE_BITS},
    {"fdiul", "k_to_i8(x)", "i8", PRELUDE_BITS},
    {"fdiul", "k_to_u16(x)", "u16", PRELUDE_BITS},
    {"i", "k_wrap_u8(x)", "i32", PRELUDE_BITS},
    {"i", "k_wrap_i8(x)", "i32", PRELUDE_BITS},
    {"i", "k_wrap_u16(x)", "i32", PRELUDE_BITS},
    {"fdiul", "k_$(3) + x", NULL, PRELUDE_BITS},
    {"i", "k_u8(7) + k_i8(-3) + k_u16(5) + k_bool(1) + k_bool(0)", NULL, PRELUDE_BITS},
    {"i", "k_lane() + k_lane_mask((int)(i % 5)) * 16", NULL, PRELUDE_BITS},
    {"i", "k_count_i32(i * 1000000, -3)", NULL, PRELUDE_BITS},
    {"l", "k_count_i64(i * 10000000000, 1 - i)", NULL, PRELUDE_BITS},
    {"iul", "k_row(x, 100)", "i32", PRELUDE_BITS},
    {"fdiul", "k_sum_lanes(" CLEAN ")", NULL, PRELUDE_NUMBERS},
    {"fdiul", "k_max_lanes(" CLEAN ")", NULL, PRELUDE_NUMBERS},
    {"fdiul", "k_min_lanes(" CLEAN ")", NULL, PRELUDE_NUMBERS},
    {"fdiul", "argmax_steps(" CLEAN ", y, i)", "i32", PRELUDE_BITS},
    {"fdiul", "argmin_steps(" CLEAN ", y, i)", "i32", PRELUDE_BITS},
    {"l", "k_uniform(x - x + i, y - y + 7, 3u, x)", "f32", PRELUDE_BITS},
    {"l", "k_uniform_run(x - x + i * 77777777777, y - y + i, 9u, i * 5 + (i & 4) / 4)", "f32",
     PRELUDE_BITS},
    {"l", "k_uniform_run(x - x + 1, y - y + 2, 4000000000u, (i << 30) - 1)", "f32", PRELUDE_BITS},
    {"l", "k_normal(x - x + i, y - y + 3, 5u, y)", "f32", PRELUDE_CLOSE},
    {"d", "k_exp(x)", NULL, PRELUDE_CLOSE},
    {"d", "k_expm1(x)", NULL, PRELUDE_CLOSE},
    {"d", "k_log(x)", NULL, PRELUDE_CLOSE},
    {"d", "k_log1p(x)", NULL, PRELUDE_CLOSE},
    {"d", "k_tanh(x)", NULL, PRELUDE_CLOSE},
    {"d", "k_sigmoid(x)", NULL, PRELUDE_CLOSE},
    {"d", "k_erf(x)", NULL, PRELUDE_CLOSE},
    {"d", "k_sin(x)", NULL, PRELUDE_CLOSE},
    {"d", "k_cos(x)", NULL, PRELUDE_CLOSE},
    {"d", "k_pow(x, y)", NULL, PRELUDE_CLOSE},
    // the float functions are measured against libm below
    {"f", "k_exp(x)", NULL, PRELUDE_CLOSE},
    {"f", "k_expm1(x)", NULL, PRELUDE_CLOSE},
    {"f", "k_log(x)", NULL, PRELUDE_CLOSE},
    {"f", "k_log1p(x)", NULL, PRELUDE_CLOSE},
    {"f", "k_tanh(x)", NULL, PRELUDE_CLOSE},
    {"f", "k_sigmoid(x)", NULL, PRELUDE_CLOSE},
    {"f", "k_erf(x)", NULL, PRELUDE_CLOSE},
    {"f", "k_sin(x)", NULL, PRELUDE_CLOSE},
    {"f", "k_cos(x)", NULL, PRELUDE_CLOSE},
    {"f", "k_pow(x, y)", NULL, PRELUDE_CLOSE},
};
const int prelude_num_rows = sizeof prelude_rows / sizeof *prelude_rows;
const char *const prelude_types[PRELUDE_NUM_TYPES] = {"bool", "u8",  "i8",  "u16", "i32",
                                                      "u32",  "i64", "f32", "f64"};

const char *prelude_type_name(char letter) {
  return letter == 'f'   ? "f32"
         : letter == 'd' ? "f64"
         : letter == 'i' ? "i32"
         : letter == 'u' ? "u32"
                         : "i64";
}

int prelude_type_bytes(const char *t) {
  return !strcmp(t, "f64") || !strcmp(t, "i64")          ? 8
         : !strcmp(t, "u16")                             ? 2
         : t[strlen(t) - 1] == '8' || !strcmp(t, "bool") ? 1
                                                         : 4;
}

static void print_expr(ir_buf *b, const char *expr, const char *type) {
  for (const char *s = expr; *s; s++)
    if (*s == '$')
      ir_buf_puts(b, type);
    else
      ir_buf_write(b, s, 1);
}

static const char *text_with(ir_arena *a, const char *first) {
  ir_buf b = ir_buf_new(a);
  ir_buf_printf(&b, "%s%s", first, head);
  for (int i = 0; i < prelude_num_rows; i++)
    for (const char *l = prelude_rows[i].types; *l; l++) {
      const char *t = prelude_type_name(*l), *result = prelude_rows[i].result;
      ir_buf_printf(&b, "MAP(row_%d_%s, %s, %s, (", i, t, t, result ? result : t);
      print_expr(&b, prelude_rows[i].expr, t);
      ir_buf_puts(&b, "))\n");
    }
  return ir_buf_str(&b);
}

const char *prelude_functions(ir_arena *a) {
  return text_with(a, functions);
}

const char *prelude_kernels(ir_arena *a) {
  return text_with(a, ir_format(a, "enum { COUNT = %d, THREADS = %d };\n%s", PRELUDE_COUNT,
                                PRELUDE_THREADS, kernels));
}

int prelude_blocks(bool memory) {
  int of_block = PRELUDE_THREADS * (memory ? 40 : 4);
  return (PRELUDE_COUNT + of_block - 1) / of_block;
}

// --- odd values -------------------------------------------------------------------------------
static const double specials[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  0.5,
                                  -0.5,
                                  2.5,
                                  -2.5,
                                  127.5,
                                  -128.9,
                                  255.9,
                                  256,
                                  -129,
                                  65535.5,
                                  65536,
                                  2147483520,
                                  2147483647,
                                  2147483648.0,
                                  -2147483648.0,
                                  -2147483904.0,
                                  4294967295.0,
                                  4294967296.0,
                                  9223372036854774784.0,
                                  9223372036854775808.0,
                                  -9223372036854775808.0,
                                  1e19,
                                  -1e30,
                                  1e-40,
                                  -1e-45,
                                  3.4e38,
                                  1e300,
                                  INFINITY,
                                  -INFINITY,
                                  NAN,
                                  7,
                                  -7};
static const int64_t special_integers[] = {
    0,   1,         -1,        2,          3,         -7,        100,       -128,        255,
    256, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN, 1ll << 40, -(1ll << 33)};
enum {
  NUM_SPECIAL = sizeof specials / sizeof *specials,
  NUM_INTEGER = sizeof special_integers / sizeof *special_integers
};

void prelude_put_value(char *p, const char *type, int i, int which, uint64_t *seed) {
  bool odd = i < NUM_SPECIAL * NUM_SPECIAL;
  int at = which == 0 ? i % NUM_SPECIAL : i / NUM_SPECIAL;
  double scale = ldexp(1, (int)test_random(seed, 0, 40) - 8);
  double d = odd ? specials[at % NUM_SPECIAL] : test_random(seed, -1, 1) * scale;
  int64_t n = odd ? special_integers[at % NUM_INTEGER] : (int64_t)(d * 1000);
  float f = (float)d;
  if (!strcmp(type, "f32"))
    memcpy(p + i * 4, &f, 4);
  else if (!strcmp(type, "f64"))
    memcpy(p + i * 8, &d, 8);
  else
    memcpy(p + i * prelude_type_bytes(type), &n, (size_t)prelude_type_bytes(type));
}
