// test_cuda_prelude.c: the CUDA prelude has what the CPU's has, and means the same by it.
//
// One text of small functions, each an expression over vectors, stands behind either prelude: as C
// with 4 lanes and as C++ through the emulator's headers. On odd values of every type both give the
// same bits (NaN is as good as NaN, and where lanes meet, -0 as good as 0); float functions stay
// within 2 ulp of libm in double precision. Where there is NVRTC the same text compiles for GPUs
// without a warning, the float functions without local memory.
#include "codegen/cuda_resources.h"
#include "tests/emulator/emulator.h"
#include "tests/support_campaign.h"
#include "tests/unit/support_cuda.h"
#include "tests/unit/support_kernels.h"
#include "tests/unit/support_prelude.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = PRELUDE_COUNT, BYTES = PRELUDE_BYTES };

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

static bool agree(const char *x, const char *y, const char *type, int i, prelude_compare how) {
  int bytes = prelude_type_bytes(type);
  if (memcmp(x + i * bytes, y + i * bytes, (size_t)bytes) == 0)
    return true;
  if (type[0] != 'f')
    return false;
  double a = value_at(x, type, i), b = value_at(y, type, i);
  if (isnan(a) || isnan(b))
    return isnan(a) && isnan(b);
  double close = bytes == 4 ? 1e-6 : 1e-15, tiny = bytes == 4 ? 2e-38 : 1e-300;
  return (how == PRELUDE_NUMBERS && a == b) ||
         (how == PRELUDE_CLOSE && fabs(a - b) <= close * fmax(fabs(a), fabs(b)) + tiny);
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
    prelude_put_value(all.a, type, i, 0, &seed);
    prelude_put_value(all.b, type, i, 1, &seed);
    all.c[i] = test_random(&seed, 0, 1) < 0.5;
  }
  memset(all.cpu, 0x77, BYTES);
  memset(all.cuda, 0x77, BYTES);
}

static void compare_one(void *cpu, void *cuda, const char *name, const char *type,
                        const char *result, const char *what, prelude_compare how) {
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
  for (int i = 0; i < prelude_num_rows; i++)
    for (const char *l = prelude_rows[i].types; *l; l++) {
      const char *t = prelude_type_name(*l);
      compare_one(cpu, cuda, ir_format(a, "row_%d_%s", i, t), t,
                  prelude_rows[i].result ? prelude_rows[i].result : t, prelude_rows[i].expr,
                  prelude_rows[i].how);
    }
  for (int i = 0; i < PRELUDE_NUM_TYPES; i++)
    compare_one(cpu, cuda, ir_format(a, "memory_%s", prelude_types[i]), prelude_types[i],
                prelude_types[i], "memory", PRELUDE_BITS);
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
  for (uint32_t first = 0; first < (uint32_t)test_share(40) * 32749u; first += 32749u) {
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

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static void measure_functions(ir_arena *a, void *cuda) {
  static const function functions[] = {
      {"k_exp(x)", exp},   {"k_expm1(x)", expm1},     {"k_log(x)", log}, {"k_log1p(x)", log1p},
      {"k_tanh(x)", tanh}, {"k_erf(x)", erf},         {"k_sin(x)", sin}, {"k_cos(x)", cos},
      {"k_sqrt(x)", sqrt}, {"k_sigmoid(x)", sigmoid},
  };
  for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
    for (int i = 0; i < prelude_num_rows; i++)
      if (!strcmp(prelude_rows[i].expr, functions[f].expr) && strchr(prelude_rows[i].types, 'f'))
        measure(find(cuda, ir_format(a, "row_%d_f32", i)), &functions[f]);
}

// Of softmax: e^x for x <= 0, to 2 ulp of 1, and nothing but 0 at the end of the range; 1 / x for sums.
static void measure_row_functions(ir_arena *a) {
  void *library = emu_build(
      ir_format(
          a, "%s%s", cg_cuda_prelude(a),
          "extern \"C\" __attribute__((visibility(\"default\")))\n"
          "void row_functions(const float *x, float *e, float *r, int n) {\n"
          "  for (int i = 0; i < n; i++)\n"
          "    e[i] = k_exp_of_row(k_f32(-x[i]))[0], r[i] = k_inverse_of_row(k_f32(x[i]))[0];\n"
          "}\n"),
      NULL);
  void *p = library ? dlsym(library, "row_functions") : NULL;
  void (*fn)(const float *, float *, float *, int) = NULL;
  memcpy(&fn, &p, sizeof fn);
  if (!fn) {
    test_fail("no function row_functions");
    return;
  }
  enum { NUM = 20000 };
  static float x[NUM], e[NUM], r[NUM];
  for (int i = 0; i < NUM; i++)
    x[i] = (float)i * (i < NUM / 2 ? 1.0F / 1024 : 1.0F / 64);
  x[NUM - 1] = INFINITY;
  fn(x, e, r, NUM);
  for (int i = 0; i < NUM; i++) {
    if (fabs((double)e[i] - exp(-(double)x[i])) > 2 * 0x1p-24)
      test_fail("k_exp_of_row(-%g) is %g", (double)x[i], (double)e[i]);
    if (i > 0 && ulps(r[i], 1 / (double)x[i]) > 1)
      test_fail("k_inverse_of_row(%g) is %g", (double)x[i], (double)r[i]);
  }
  x[0] = NAN;
  fn(x, e, r, 1);
  if (!isnan(e[0]) || !isnan(r[0]))
    test_fail("row functions of NaN are %g, %g", (double)e[0], (double)r[0]);
}

// --- for GPUs ---------------------------------------------------------------------------------
// For one architecture: test_emulator_device.c has the instructions that differ between them.
// Double sin and cos of large arguments may take local memory in NVIDIA's library.
static void compile_for_gpus(ir_arena *a, const char *text) {
  const cg_nvrtc *n = support_nvrtc(a);
  if (n)
    support_cubin(a, n, text, "sm_80", false, "f64");
}

static const cg_target *four_lanes(void) {
  const cg_target *t = test_targets();
  while (t->vector_bytes != 16)
    t++;
  return t;
}

int main(void) {
  ir_arena *a = ir_arena_new();
  const char *text = prelude_functions(a),
             *cuda_text = ir_format(a, "%s%s", cg_cuda_prelude(a), text);
  const cg_target *t = four_lanes();
  void *cpu = test_load(a, ir_format(a, "%s%s", cg_cpu_prelude(a, t, true), text), t, 2);
  void *cuda = emu_build(cuda_text, NULL);
  if (!cuda)
    test_fail("the CUDA prelude does not compile as C++");
  if (cpu && cuda) {
    compare_rows(a, cpu, cuda);
    measure_functions(a, cuda);
    measure_row_functions(a);
  }
  compile_for_gpus(a, cuda_text);
  ir_arena_free(a);
  return test_report("cuda_prelude");
}
