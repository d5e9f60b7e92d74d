// test_cuda_prelude.c: the CUDA prelude has what the CPU's has, and means the same by it.
//
// One text of small functions, each an expression over vectors, stands behind either prelude: as C
// with 4 lanes and as C++ through the emulator's headers. On odd values of every type both give the
// same bits (NaN is as good as NaN, and where lanes meet, -0 as good as 0); float functions stay
// within 2 ulp of libm in double precision. Where there is NVRTC the same text compiles for GPUs
// without a warning, the float functions without local memory.
#include "codegen/cuda_resources.h"
#include "tests/emulator/emulator.h"
#include "tests/unit/support_cuda.h"
#include "tests/unit/support_kernels.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 4096, BYTES = COUNT * 8 + 4096 };

// --- the text ---------------------------------------------------------------------------------
static const char head[] =
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
    "typedef float f32_t; typedef double f64_t; typedef int32_t i32_t; typedef uint32_t u32_t;\n"
    "typedef int64_t i64_t; typedef uint8_t u8_t; typedef int8_t i8_t; typedef uint16_t u16_t;\n"
    "typedef uint8_t bool_t;\n"
    "typedef vf f32_v; typedef vd f64_v; typedef vi i32_v; typedef vu u32_v; typedef vl i64_v;\n"
    "#define MAP(name, T, R, E) \\\n"
    "  EXPORT void name(const T##_t *a, const T##_t *b, const uint8_t *c, R##_t *r, int n) { \\\n"
    "    for (int64_t i = 0; i < n; i += VL) { \\\n"
    "      const T##_v x = k_load_##T(a + i), y = k_load_##T(b + i); const vi m = k_load_bool(c + "
    "i); \\\n"
    "      (void)x; (void)y; (void)m; \\\n"
    "      k_store_##R(r + i, E); \\\n"
    "    } \\\n"
    "  }\n"
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
    "#define MEMORY(T) \\\n"
    "  EXPORT void memory_##T(const T##_t *a, const T##_t *b, const uint8_t *c, T##_t *r, int n) { "
    "\\\n"
    "    (void)b; (void)c; \\\n"
    "    for (int64_t i = 0; i + 40 < n; i += 40) { \\\n"
    "      k_store_##T(r + i, k_load_##T(a + i)); \\\n"
    "      k_store_##T(r + i + 5, k_load_##T(a + i + 3)); \\\n"
    "      k_store_##T##_part(r + i + 10, k_load_##T##_part(a + i + 1, (int)(i % 3) + 1), 3); \\\n"
    "      k_store_##T##_step(r + i + 14, k_load_##T##_step(a + i, 7, 3), 2, 4); \\\n"
    "      k_store_##T##_one(r + i + 13, k_load_##T##_one(a + i + 9)); \\\n"
    "      k_store_##T(r + i + 24, k_splat_##T(a[i + 2])); \\\n"
    "      k_store_##T(r + i + 28, k_load_##T##_one(a + i + 11)); \\\n"
    "      k_store_##T(r + i + 32, k_gather_##T(a + i, k_row(k_lane() * 5 - 3, 8), 3, 2, (int)(i % "
    "5))); \\\n"
    "    } \\\n"
    "  }\n"
    "MEMORY(bool) MEMORY(u8) MEMORY(i8) MEMORY(u16) MEMORY(i32) MEMORY(u32) MEMORY(i64) "
    "MEMORY(f32)\n"
    "MEMORY(f64)\n";

typedef enum compare { BITS, NUMBERS, CLOSE } compare;

typedef struct row {
  const char *types;  // each of them is x's and y's type, by first letters: "f d i u l"
  const char *expr;   // $ is the name of the type
  const char *result; // NULL: the same type
  compare how;
} row;

#define CLEAN "k_select(k_mask(x == x), x, k_$(1))"
static const row rows[] = {
    {"fdiul", "x + y", NULL, BITS},
    {"fdiul", "x - y", NULL, BITS},
    {"fdiul", "x * y", NULL, BITS},
    {"fd", "x / y", NULL, BITS},
    {"fdiul", "-x", NULL, BITS},
    {"fdiul", "1 - x", NULL, BITS},
    {"fdiul", "x * 3 + 2 * y", NULL, BITS},
    {"iul", "x & y", NULL, BITS},
    {"iul", "x | y", NULL, BITS},
    {"iul", "~x", NULL, BITS},
    {"iul", "(x << 3) + (x >> 5)", NULL, BITS},
    {"fdiul", "k_mask(x == y)", "bool", BITS},
    {"fdiul", "k_mask(x != y)", "bool", BITS},
    {"fdiul", "k_mask(x < y)", "bool", BITS},
    {"fdiul", "k_mask(x <= y)", "bool", BITS},
    {"fdiul", "k_mask(x > y)", "bool", BITS},
    {"fdiul", "k_mask(x >= y)", "bool", BITS},
    {"fdiul", "k_mask(x >= 1)", "bool", BITS},
    {"fdiul", "k_not(m) | (m & k_mask(x < y))", "bool", BITS},
    {"fdiul", "k_to_bool(x)", "bool", BITS},
    {"fdiul", "k_select(m, x, y)", NULL, BITS},
    {"dl", "k_select(x < y, x, y)", NULL, BITS},
    {"fdiul", "k_max(x, y)", NULL, BITS},
    {"fdiul", "k_min(x, y)", NULL, BITS},
    {"fdiul", "k_abs(x)", NULL, BITS},
    {"fdiul", "k_sign(x)", NULL, BITS},
    {"fdiul", "k_div(x, y)", NULL, BITS},
    {"fdiul", "k_mod(x, y)", NULL, BITS},
    {"fd", "k_floor(x)", NULL, BITS},
    {"fd", "k_sqrt(x)", NULL, BITS},
    {"fd", "k_rsqrt(x)", NULL, BITS},
    {"f", "k_copysign(x, y)", NULL, BITS},
    {"fdiul", "k_to_f32(x)", "f32", BITS},
    {"fdiul", "k_to_f64(x)", "f64", BITS},
    {"fdiul", "k_to_i32(x)", "i32", BITS},
    {"fdiul", "k_to_u32(x)", "u32", BITS},
    {"fdiul", "k_to_i64(x)", "i64", BITS},
    {"fdiul", "k_to_u8(x)", "u8", BITS},
    {"fdiul", "k_to_i8(x)", "i8", BITS},
    {"fdiul", "k_to_u16(x)", "u16", BITS},
    {"i", "k_wrap_u8(x)", "i32", BITS},
    {"i", "k_wrap_i8(x)", "i32", BITS},
    {"i", "k_wrap_u16(x)", "i32", BITS},
    {"fdiul", "k_$(3) + x", NULL, BITS},
    {"i", "k_u8(7) + k_i8(-3) + k_u16(5) + k_bool(1) + k_bool(0)", NULL, BITS},
    {"i", "k_lane() + k_lane_mask((int)(i % 5)) * 16", NULL, BITS},
    {"i", "k_count_i32(i * 1000000, -3)", NULL, BITS},
    {"l", "k_count_i64(i * 10000000000, 1 - i)", NULL, BITS},
    {"iul", "k_row(x, 100)", "i32", BITS},
    {"fdiul", "k_sum_lanes(" CLEAN ")", NULL, NUMBERS},
    {"fdiul", "k_max_lanes(" CLEAN ")", NULL, NUMBERS},
    {"fdiul", "k_min_lanes(" CLEAN ")", NULL, NUMBERS},
    {"fdiul", "argmax_steps(" CLEAN ", y, i)", "i32", BITS},
    {"fdiul", "argmin_steps(" CLEAN ", y, i)", "i32", BITS},
    {"l", "k_uniform(x - x + i, y - y + 7, 3u, x)", "f32", BITS},
    {"l", "k_uniform_run(x - x + i * 77777777777, y - y + i, 9u, i * 5 + (i & 4) / 4)", "f32",
     BITS},
    {"l", "k_uniform_run(x - x + 1, y - y + 2, 4000000000u, (i << 30) - 1)", "f32", BITS},
    {"l", "k_normal(x - x + i, y - y + 3, 5u, y)", "f32", CLOSE},
    {"d", "k_exp(x)", NULL, CLOSE},
    {"d", "k_log(x)", NULL, CLOSE},
    {"d", "k_log1p(x)", NULL, CLOSE},
    {"d", "k_tanh(x)", NULL, CLOSE},
    {"d", "k_erf(x)", NULL, CLOSE},
    {"d", "k_sin(x)", NULL, CLOSE},
    {"d", "k_cos(x)", NULL, CLOSE},
    {"d", "k_pow(x, y)", NULL, CLOSE},
    // the float functions are measured against libm below
    {"f", "k_exp(x)", NULL, CLOSE},
    {"f", "k_log(x)", NULL, CLOSE},
    {"f", "k_log1p(x)", NULL, CLOSE},
    {"f", "k_tanh(x)", NULL, CLOSE},
    {"f", "k_erf(x)", NULL, CLOSE},
    {"f", "k_sin(x)", NULL, CLOSE},
    {"f", "k_cos(x)", NULL, CLOSE},
    {"f", "k_pow(x, y)", NULL, CLOSE},
};
enum { NUM_ROWS = sizeof rows / sizeof *rows };

static const char *type_name(char letter) {
  return letter == 'f'   ? "f32"
         : letter == 'd' ? "f64"
         : letter == 'i' ? "i32"
         : letter == 'u' ? "u32"
                         : "i64";
}

static int type_bytes(const char *t) {
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

static const char *text_of_rows(ir_arena *a) {
  ir_buf b = ir_buf_new(a);
  ir_buf_puts(&b, head);
  for (int i = 0; i < NUM_ROWS; i++)
    for (const char *l = rows[i].types; *l; l++) {
      const char *t = type_name(*l);
      ir_buf_printf(&b, "MAP(row_%d_%s, %s, %s, (", i, t, t, rows[i].result ? rows[i].result : t);
      print_expr(&b, rows[i].expr, t);
      ir_buf_puts(&b, "))\n");
    }
  return ir_buf_str(&b);
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

// Element i: all pairs of odd values first, then random ones.
static void put_value(char *p, const char *type, int i, int which, uint64_t *seed) {
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
    memcpy(p + i * type_bytes(type), &n, (size_t)type_bytes(type));
}

// --- comparing --------------------------------------------------------------------------------
static double value_at(const char *p, const char *type, int i) {
  float f;
  double d;
  memcpy(&f, p + i * 4, 4);
  if (!strcmp(type, "f32"))
    return (double)f;
  memcpy(&d, p + i * 8, 8);
  return d;
}

static bool agree(const char *x, const char *y, const char *type, int i, compare how) {
  int bytes = type_bytes(type);
  if (memcmp(x + i * bytes, y + i * bytes, (size_t)bytes) == 0)
    return true;
  if (type[0] != 'f')
    return false;
  double a = value_at(x, type, i), b = value_at(y, type, i);
  if (isnan(a) || isnan(b))
    return isnan(a) && isnan(b);
  double close = bytes == 4 ? 1e-6 : 1e-15, tiny = bytes == 4 ? 2e-38 : 1e-300;
  return (how == NUMBERS && a == b) ||
         (how == CLOSE && fabs(a - b) <= close * fmax(fabs(a), fabs(b)) + tiny);
}

typedef void (*map_fn)(const void *a, const void *b, const uint8_t *c, void *r, int n);

static map_fn find(void *library, const char *name) {
  map_fn fn = NULL;
  void *p = dlsym(library, name);
  if (!p)
    test_fail("no function %s", name);
  memcpy(&fn, &p, sizeof fn);
  return fn;
}

typedef struct memory {
  char a[BYTES], b[BYTES], cpu[BYTES], cuda[BYTES];
  uint8_t c[COUNT + 64];
} memory;
_Alignas(64) static memory all;

static void fill(const char *type) {
  uint64_t seed = 5;
  for (int i = 0; i < COUNT + 64; i++) {
    put_value(all.a, type, i, 0, &seed);
    put_value(all.b, type, i, 1, &seed);
    all.c[i] = test_random(&seed, 0, 1) < 0.5;
  }
  memset(all.cpu, 0x77, BYTES);
  memset(all.cuda, 0x77, BYTES);
}

static void compare_one(void *cpu, void *cuda, const char *name, const char *type,
                        const char *result, const char *what, compare how) {
  map_fn f = find(cpu, name), g = find(cuda, name);
  if (!f || !g)
    return;
  fill(type);
  f(all.a, all.b, all.c, all.cpu, COUNT);
  g(all.a, all.b, all.c, all.cuda, COUNT);
  for (int i = 0; i < COUNT; i++)
    if (!agree(all.cpu, all.cuda, result, i, how)) {
      test_fail("%s of %s differs from the CPU's at %d: %.17g, not %.17g", what, type, i,
                value_at(all.cuda, result, i), value_at(all.cpu, result, i));
      return;
    }
}

static void compare_rows(ir_arena *a, void *cpu, void *cuda) {
  static const char *const types[] = {"bool", "u8", "i8", "u16", "i32", "u32", "i64", "f32", "f64"};
  for (int i = 0; i < NUM_ROWS; i++)
    for (const char *l = rows[i].types; *l; l++) {
      const char *t = type_name(*l);
      compare_one(cpu, cuda, ir_format(a, "row_%d_%s", i, t), t,
                  rows[i].result ? rows[i].result : t, rows[i].expr, rows[i].how);
    }
  for (int i = 0; i < 9; i++)
    compare_one(cpu, cuda, ir_format(a, "memory_%s", types[i]), types[i], types[i], "memory", BITS);
}

// --- float functions against libm ---------------------------------------------------------------
typedef struct function {
  const char *expr;
  double (*want)(double);
} function;

static double ulps(float got, double want) {
  float w = (float)want;
  if (isnan(want) || isnan(got))
    return isnan(want) && isnan(got) ? 0 : INFINITY;
  if (got == w)
    return signbit(got) == signbit(w) ? 0 : INFINITY;
  if (isinf(w) || isinf(got))
    return INFINITY;
  double unit = nextafterf(fabsf(w), INFINITY) - (double)fabsf(w);
  return fabs((double)got - want) / unit;
}

static void measure(map_fn fn, const function *f) {
  double worst = 0, at = 0;
  for (uint32_t first = 0; first < 40 * 32749u; first += 32749u) {
    for (uint32_t i = 0; i < COUNT; i++) { // patterns of all exponents, both signs
      uint32_t bits = first + i * 1048573u;
      memcpy(all.a + i * 4, &bits, 4);
    }
    fn(all.a, all.a, all.c, all.cuda, COUNT);
    for (int i = 0; i < COUNT; i++) {
      double x = value_at(all.a, "f32", i);
      double e = ulps((float)value_at(all.cuda, "f32", i), f->want(x));
      at = e > worst ? x : at;
      worst = e > worst ? e : worst;
    }
  }
  if (worst > 2)
    test_fail("%s is off by %.3g ulp at %.9g", f->expr, worst, at);
  if (getenv("MLTC_TEST_VERBOSE"))
    printf("%s: %.3f ulp at %.9g\n", f->expr, worst, at);
}

static void measure_functions(ir_arena *a, void *cuda) {
  static const function functions[] = {
      {"k_exp(x)", exp}, {"k_log(x)", log}, {"k_log1p(x)", log1p}, {"k_tanh(x)", tanh},
      {"k_erf(x)", erf}, {"k_sin(x)", sin}, {"k_cos(x)", cos},     {"k_sqrt(x)", sqrt},
  };
  for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
    for (int i = 0; i < NUM_ROWS; i++)
      if (!strcmp(rows[i].expr, functions[f].expr) && strchr(rows[i].types, 'f'))
        measure(find(cuda, ir_format(a, "row_%d_f32", i)), &functions[f]);
}

// --- for GPUs ---------------------------------------------------------------------------------
// Double sin and cos of large arguments may take local memory in NVIDIA's library.
static void check_resources(ir_arena *a, const cg_nvrtc_code *code, const char *arch) {
  cg_resource_list list = {0};
  const char *why = "";
  if (!cg_cubin_resources(a, code->cubin, code->cubin_len, &list, &why))
    test_fail("%s: %s", arch, why);
  for (size_t i = 0; i < list.num; i++)
    if (list.at[i].frame != 0 && !strstr(list.at[i].kernel, "f64"))
      test_fail("%s: %s takes %lld bytes of local memory", arch, list.at[i].kernel,
                (long long)list.at[i].frame);
}

// For one architecture: test_emulator_device.c has the instructions that differ between them.
static void compile_for_gpus(ir_arena *a, const char *text) {
  const char *const arch = "sm_80", *const options[] = {"-std=c++17", "-arch=sm_80"};
  const cg_nvrtc *n = support_nvrtc(a);
  cg_nvrtc_code code = {0};
  if (!n)
    return;
  if (!cg_nvrtc_compile(n, a, "prelude.cu", text, options, 2, &code) || code.log[0])
    test_fail("%s:\n%s", arch, code.log);
  else
    check_resources(a, &code, arch);
}

static const cg_target *four_lanes(void) {
  const cg_target *t = test_targets();
  while (t->vector_bytes != 16)
    t++;
  return t;
}

int main(void) {
  ir_arena *a = ir_arena_new();
  const char *text = text_of_rows(a), *cuda_text = ir_format(a, "%s%s", cg_cuda_prelude(a), text);
  const cg_target *t = four_lanes();
  void *cpu = test_load(a, ir_format(a, "%s%s", cg_cpu_prelude(a, t), text), t);
  void *cuda = emu_build(cuda_text, NULL);
  if (!cuda)
    test_fail("the CUDA prelude does not compile as C++");
  if (cpu && cuda) {
    compare_rows(a, cpu, cuda);
    measure_functions(a, cuda);
  }
  compile_for_gpus(a, cuda_text);
  ir_arena_free(a);
  return test_report("cuda_prelude");
}
