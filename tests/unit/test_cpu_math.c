// test_cpu_math.c: the prelude's functions against libm in double precision over the whole range
// of floats (errors in units of the last place), their special values, the same bits in every
// lane and in partial vectors, and Philox against the oracle's.
#include "tests/unit/support_kernels.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char exports[] =
    "#define ONE(name) void t_##name(const float *x, float *y, int n) {\\\n"
    "  int i = 0;\\\n"
    "  for (; i + VL <= n; i += VL) k_store_f32(y + i, k_##name(k_load_f32(x + i)));\\\n"
    "  if (i < n) k_store_f32_part(y + i, k_##name(k_load_f32_part(x + i, n - i)), n - i); }\n"
    "ONE(exp) ONE(log) ONE(log1p) ONE(sin) ONE(cos) ONE(tanh) ONE(erf) ONE(sqrt) ONE(rsqrt)\n"
    "ONE(floor) ONE(abs) ONE(sign)\n"
    "void t_pow(const float *x, const float *y, float *z, int n) {\n"
    "  int i = 0;\n"
    "  for (; i + VL <= n; i += VL)\n"
    "    k_store_f32(z + i, k_pow(k_load_f32(x + i), k_load_f32(y + i)));\n"
    "  if (i < n) k_store_f32_part(z + i, k_pow(k_load_f32_part(x + i, n - i),\n"
    "                                           k_load_f32_part(y + i, n - i)), n - i); }\n"
    "void t_philox(int64_t seed, int64_t step, uint32_t stream, int64_t block, uint32_t *w) {\n"
    "  k_words r = k_philox(k_i64(seed), k_i64(step), stream, (vlu)k_i64(block));\n"
    "  for (int i = 0; i < 4; i++) w[i] = r.w[i][VL - 1]; }\n"
    "void t_lanes(const float *x, float *y) {\n"
    "  k_store_f32_one(y, k_sum_lanes(k_load_f32(x)));\n"
    "  k_store_f32_one(y + 1, k_max_lanes(k_load_f32(x)));\n"
    "  k_store_f32_one(y + 2, k_min_lanes(k_load_f32(x))); }\n"
    "int t_vl(void) { return VL; }\n";

typedef void (*unary_fn)(const float *x, float *y, int n);
typedef void (*binary_fn)(const float *x, const float *y, float *z, int n);

static void *symbol(void *lib, const char *name) {
  void *p = dlsym(lib, name);
  if (!p) {
    printf("no symbol %s\n", name);
    exit(1);
  }
  return p;
}

// Distance in units of the last place of `want` rounded to float; denormals count in steps of
// 2^-149.
static double ulps(float got, double want) {
  float w = (float)want;
  if (isnan(want) || isnan(got))
    return isnan(want) && isnan(got) ? 0 : INFINITY;
  if (isinf(w) || isinf(got) || w == 0)
    return got == w ? 0 : fabs((double)got - want) / 0x1p-149 > 2 ? INFINITY : 1;
  double unit = nextafterf(fabsf(w), INFINITY) - (double)fabsf(w);
  return fabs((double)got - want) / unit;
}

static double one_over_sqrt(double x) {
  return 1 / sqrt(x);
}

static double sign_of(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : x;
}

typedef struct function {
  const char *name;
  double (*want)(double);
  double limit; // ulps
  float lo, hi; // largest arguments that must be accurate
} function;

static const function functions[] = {
    {"exp", exp, 2, -INFINITY, INFINITY},
    {"log", log, 2, -INFINITY, INFINITY},
    {"log1p", log1p, 2, -INFINITY, INFINITY},
    {"sin", sin, 2, -1e9f, 1e9f},
    {"cos", cos, 2, -1e9f, 1e9f},
    {"tanh", tanh, 2, -INFINITY, INFINITY},
    {"erf", erf, 2, -INFINITY, INFINITY},
    {"sqrt", sqrt, 0.5000001, 0, INFINITY},
    {"rsqrt", one_over_sqrt, 1.5, 0, INFINITY},
    {"floor", floor, 0, -INFINITY, INFINITY},
    {"abs", fabs, 0, -INFINITY, INFINITY},
    {"sign", sign_of, 0, -INFINITY, INFINITY},
};

enum { MANY = 1 << 16, ODD = 37 };

// Every 65,531st float pattern, so all exponents and signs; then a dense sweep of [-12, 12].
static void fill_arguments(float *x, bool dense) {
  for (int i = 0; i < MANY; i++) {
    uint32_t bits = (uint32_t)i * 65531u;
    memcpy(&x[i], &bits, sizeof bits);
    if (dense)
      x[i] = (float)(-12 + 24.0 * i / (double)MANY);
  }
  static const float special[] = {0.0f,   -0.0f,       INFINITY,   -INFINITY, NAN,     1.0f,
                                  -1.0f,  0x1p-149f,   -0x1p-149f, 88.7f,     -103.9f, 710.0f,
                                  1e-30f, 3.14159265f, 6366.1977f, 9999.5f};
  for (size_t i = 0; !dense && i < sizeof special / sizeof *special; i++)
    x[i] = special[i];
}

static void check_accuracy(const cg_target *t, void *lib, const function *f, const float *x) {
  unary_fn fn;
  char name[32];
  snprintf(name, sizeof name, "t_%s", f->name);
  void *p = symbol(lib, name);
  memcpy(&fn, &p, sizeof p);
  static float y[MANY], tail[MANY];
  fn(x, y, MANY);
  double worst = 0;
  float at = 0, got = 0;
  for (int i = 0; i < MANY; i++) {
    if (x[i] < f->lo || x[i] > f->hi)
      continue;
    double e = ulps(y[i], f->want((double)x[i]));
    if (e > worst) {
      worst = e;
      at = x[i];
      got = y[i];
    }
  }
  if (getenv("MLTC_TEST_VERBOSE"))
    printf("%s %s: %.3f ulp at %.9g\n", t->name, f->name, worst, (double)at);
  if (worst > f->limit)
    test_fail("%s: %s is off by %.2f ulp: %s(%.9g) = %.9g, not %.9g", t->name, f->name, worst,
              f->name, (double)at, (double)got, f->want((double)at));
  for (int i = 0; i + ODD <= 4096; i += ODD) // other lanes, other neighbours, partial vectors
    fn(x + i, tail + i, ODD);
  if (memcmp(tail, y, sizeof *y * (4096 / ODD * ODD)))
    test_fail("%s: %s gives other bits in partial vectors", t->name, f->name);
}

static void check_pow(const cg_target *t, void *lib) {
  static float x[MANY], y[MANY], z[MANY];
  binary_fn fn;
  void *p = symbol(lib, "t_pow");
  memcpy(&fn, &p, sizeof p);
  static const float special[] = {0.0f,  -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN,    2.0f,
                                  -2.0f, 3.0f,  0.5f, -0.5f, 1e30f,    1e-40f,    127.0f, -149.0f};
  uint64_t seed = 1;
  for (int i = 0; i < MANY; i++) {
    x[i] = i < 256 ? special[i / 16] : (float)exp(test_random(&seed, -80, 80));
    y[i] = i < 256 ? special[i % 16] : (float)test_random(&seed, -3, 3);
    if (i % 3 == 0 && i >= 256) {
      x[i] = (float)test_random(&seed, 0.9, 1.0);
      y[i] = (float)test_random(&seed, 0, 5000);
    }
  }
  fn(x, y, z, MANY);
  double worst = 0;
  for (int i = 0; i < MANY; i++) {
    double want = pow((double)x[i], (double)y[i]), e = ulps(z[i], want);
    if (e > 2 && worst <= 2)
      test_fail("%s: pow(%.9g, %.9g) = %.9g, not %.9g", t->name, (double)x[i], (double)y[i],
                (double)z[i], want);
    worst = e > worst ? e : worst;
  }
  if (getenv("MLTC_TEST_VERBOSE"))
    printf("%s pow: %.3f ulp\n", t->name, worst);
}

static void check_philox(const cg_target *t, void *lib) {
  void (*fn)(int64_t, int64_t, uint32_t, int64_t, uint32_t *);
  void *p = symbol(lib, "t_philox");
  memcpy(&fn, &p, sizeof p);
  for (int i = 0; i < 100; i++) {
    int64_t seed = (int64_t)i * 0x123456789abcdef, step = i * 7, block = (int64_t)i << (i % 40);
    uint32_t got[4], want[4], key[2] = {(uint32_t)seed, (uint32_t)((uint64_t)seed >> 32)};
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)((uint64_t)block >> 32), (uint32_t)i,
                           (uint32_t)step};
    fn(seed, step, (uint32_t)i, block, got);
    ir_philox(key, counter, want);
    if (memcmp(got, want, sizeof got)) {
      test_fail("%s: philox differs from the oracle's (case %d)", t->name, i);
      return;
    }
  }
}

static void check_lanes(const cg_target *t, void *lib) {
  void (*fn)(const float *, float *);
  int (*vl)(void);
  void *p = symbol(lib, "t_lanes"), *q = symbol(lib, "t_vl");
  memcpy(&fn, &p, sizeof p);
  memcpy(&vl, &q, sizeof q);
  float x[16], y[3], sum = 0;
  for (int i = 0; i < vl(); i++)
    sum += x[i] = (float)((i * 7) % 16 - 5);
  fn(x, y);
  if (vl() != t->vector_bytes / 4 || y[0] != sum || y[1] < 7 || y[2] > -5)
    test_fail("%s: sums over lanes: %g %g %g", t->name, (double)y[0], (double)y[1], (double)y[2]);
}

int main(void) {
  static float x[MANY];
  for (const cg_target *t = test_targets(); t->name; t++) {
    ir_arena *a = ir_arena_new();
    void *lib = test_load(a, ir_format(a, "%s%s", cg_cpu_prelude(a, t), exports), t);
    for (int dense = 0; lib && dense < 2; dense++) {
      fill_arguments(x, dense);
      for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        check_accuracy(t, lib, &functions[i], x);
    }
    if (lib) {
      check_pow(t, lib);
      check_philox(t, lib);
      check_lanes(t, lib);
      dlclose(lib);
    }
    ir_arena_free(a);
  }
  return test_report("cpu_math");
}
