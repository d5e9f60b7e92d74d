// test_cpu_math.c: the prelude's functions against libm in double precision over the whole range
// of floats (errors in units of the last place), their special values and symmetries, the same bits
// in every lane and in partial vectors, and Philox against the oracle's.
//
// MLTC_TEST_VERBOSE=1 prints the largest errors; with MLTC_TEST_ALL=1 they are those over all
// floats, which takes about an hour (the figures in codegen/cpu_math_prelude.h are from there).
#include "tests/unit/support_kernels.h"

#include <float.h>

#define REAL      float
#define REAL_NAME "f32"
#define REAL_NEXT nextafterf
enum { MANY = 1 << 17 };
#include "tests/unit/support_functions.h"

static const char exports[] = FUNCTION_EXPORTS
    "ONE(exp) ONE(expm1) ONE(log) ONE(log1p) ONE(sin) ONE(cos) ONE(tanh) ONE(sigmoid) ONE(erf) "
    "ONE(sqrt) "
    "ONE(rsqrt)\n"
    "ONE(floor) ONE(abs) ONE(sign)\n"
    "void t_philox(int64_t seed, int64_t step, uint32_t stream, int64_t block, uint32_t *w) {\n"
    "  k_words r = k_philox(k_i64(seed), k_i64(step), stream, (vlu)k_i64(block));\n"
    "  for (int i = 0; i < 4; i++) w[i] = r.w[i][VL - 1]; }\n"
    "void t_lanes(const float *x, float *y) {\n"
    "  k_store_f32_one(y, k_sum_lanes(k_load_f32(x)));\n"
    "  k_store_f32_one(y + 1, k_max_lanes(k_load_f32(x)));\n"
    "  k_store_f32_one(y + 2, k_min_lanes(k_load_f32(x))); }\n"
    "int t_vl(void) { return VL; }\n";

// Distance in units of the last place of `want` rounded to float; denormals count in steps of
// 2^-149.
static double ulps(float got, double want) {
  float w = (float)want;
  if (isnan(want) || isnan(got))
    return isnan(want) && isnan(got) ? 0 : INFINITY;
  if (w == 0 && got == 0)
    return signbit(w) == signbit(got) ? 0 : INFINITY;
  if (isinf(w) || isinf(got) || w == 0)
    return got == w ? 0 : fabs((double)got - want) / 0x1p-149 > 2 ? INFINITY : 1;
  double unit = nextafterf(fabsf(w), INFINITY) - (double)fabsf(w);
  return fabs((double)got - want) / unit;
}

static double one_over_sqrt(double x) {
  return 1 / sqrt(x);
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static double sign_of(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : x;
}

typedef struct function {
  const char *name;
  double (*want)(double);
  double limit; // ulps
  float lo, hi; // largest arguments that must be accurate
  enum { ANY, ODD, RISING, ODD_RISING } shape;
  bool flushes; // a subnormal result may be 0
} function;

static const function functions[] = {
    {"exp", exp, 1, -INFINITY, INFINITY, RISING, true},
    {"expm1", expm1, 2, -INFINITY, INFINITY, RISING, false},
    {"log", log, 2, -INFINITY, INFINITY, RISING, false},
    {"log1p", log1p, 2, -INFINITY, INFINITY, RISING, false},
    {"sin", sin, 2, -1e9f, 1e9f, ODD, false},
    {"cos", cos, 2, -1e9f, 1e9f, ANY, false},
    {"tanh", tanh, 1.7, -INFINITY, INFINITY, ODD_RISING, false},
    {"sigmoid", sigmoid, 2.6, -INFINITY, INFINITY, RISING, true},
    {"erf", erf, 1.95, -INFINITY, INFINITY, ODD_RISING, false},
    {"sqrt", sqrt, 0.5000001, 0, INFINITY, RISING, false},
    {"rsqrt", one_over_sqrt, 1.5, 0, INFINITY, ANY, false},
    {"floor", floor, 0, -INFINITY, INFINITY, RISING, false},
    {"abs", fabs, 0, -INFINITY, INFINITY, ANY, false},
    {"sign", sign_of, 0, -INFINITY, INFINITY, ODD_RISING, false},
};

enum { SATURATED = 20 };

// `step` float patterns apart, from `first` on.
static void fill_patterns(float *x, uint32_t first, uint32_t step) {
  for (uint32_t i = 0; i < MANY; i++) {
    uint32_t bits = first + i * step;
    memcpy(&x[i], &bits, sizeof bits);
  }
}

static void fill_special(float *x) {
  static const float special[] = {0.0f,   -0.0f,       INFINITY,   -INFINITY, NAN,     1.0f,
                                  -1.0f,  0x1p-149f,   -0x1p-149f, 88.7f,     -103.9f, 710.0f,
                                  1e-30f, 3.14159265f, 6366.1977f, 9999.5f,   3.93f,   9.1f,
                                  -3.93f, -9.1f,       88.722839f, 88.72283f, -87.33f, -88.1f};
  memcpy(x, special, sizeof special);
  uint32_t nans[] = {0x7f800001, 0xffc12345, 0x7fffffff}; // payloads that reach the exponent
  memcpy(x + sizeof special / sizeof *special, nans, sizeof nans);
}

static void fill_evenly(float *x, double lo, double hi) {
  for (int i = 0; i < MANY; i++)
    x[i] = (float)(lo + (hi - lo) * i / MANY);
}

typedef struct sweep {
  const cg_target *t;
  const function *f;
  unary_fn fn;
  double worst;
  float at;
} sweep;

static void check_accuracy(sweep *s, const float *x, const float *y) {
  double limit = s->worst > s->f->limit ? s->worst : s->f->limit;
  for (int i = 0; i < MANY; i++) {
    if (x[i] < s->f->lo || x[i] > s->f->hi)
      continue;
    double want = s->f->want((double)x[i]), e = ulps(y[i], want);
    if (s->f->flushes && fabs(want) < FLT_MIN && y[i] == 0)
      continue;
    if (fabsf(x[i]) >= SATURATED && fabs(want) == 1 &&
        y[i] != (float)want) // 1 - tanh(x) is 0 there
      test_fail("%s: %s(%.9g) is %.9g", s->t->name, s->f->name, (double)x[i], (double)y[i]);
    if (e > s->worst) {
      s->worst = e;
      s->at = x[i];
    }
    if (e > limit) {
      test_fail("%s: %s is off by %.2f ulp: %s(%.9g) = %.9g, not %.9g", s->t->name, s->f->name, e,
                s->f->name, (double)x[i], (double)y[i], want);
      limit = INFINITY;
    }
  }
}

static void check_at(sweep *s, const float *x) {
  static float y[MANY];
  s->fn(x, y, MANY);
  check_accuracy(s, x, y);
  const applied a = {s->t->name, s->f->name, s->fn, x, y};
  if (s->f->shape & ODD)
    check_symmetry(&a);
  if (s->f->shape & RISING)
    check_rising(&a);
  check_parts(&a);
}

static void check_function(const cg_target *t, void *lib, const function *f) {
  static float x[MANY];
  sweep s = {.t = t, .f = f, .fn = unary_symbol(lib, f->name)};
  fill_patterns(x, 0, 32749); // all exponents, both signs
  fill_special(x);
  check_at(&s, x);
  fill_evenly(x, -12, 12);
  check_at(&s, x);
  fill_patterns(x, 0x38000000, 941); // from 2^-15 to 32
  check_at(&s, x);
  for (float edge = 0.03125f; edge < 10; edge += 0.25f) { // neighbours, through cells' ends
    uint32_t bits;
    memcpy(&bits, &edge, sizeof bits);
    fill_patterns(x, bits, 7);
    check_at(&s, x);
  }
  for (uint64_t i = 0; getenv("MLTC_TEST_ALL") && i >> 32 == 0; i += MANY) {
    fill_patterns(x, (uint32_t)i, 1);
    check_at(&s, x);
  }
  if (getenv("MLTC_TEST_VERBOSE"))
    printf("%s %s: %.3f ulp at %.9g\n", t->name, f->name, s.worst, (double)s.at);
}

// MANY floats from `first` on, every seventh of them 0 if `gaps`.
static void check_roots_from(const cg_target *t, unary_fn root, uint32_t first, bool gaps) {
  static float x[MANY], y[MANY];
  fill_patterns(x, first, 1);
  for (int i = 0; gaps && i < MANY; i += 7)
    x[i] = 0;
  root(x, y, MANY);
  for (int i = 0; i < MANY; i++) {
    float want = sqrtf(x[i]);
    if (memcmp(&want, &y[i], sizeof want) != 0 && !(isnan(want) && isnan(y[i]))) {
      test_fail("%s: sqrt(%a) is %a, not %a", t->name, (double)x[i], (double)y[i], (double)want);
      return;
    }
  }
}

// Roots are rounded correctly: for all floats from 1 to 4, which stand for those of other exponents, and where vectors
// of a width may go another way.
static void check_roots(const cg_target *t, void *lib) {
  unary_fn root = unary_symbol(lib, "sqrt");
  for (uint32_t first = 0x3f800000; first < 0x40800000; first += MANY)
    check_roots_from(t, root, first, false);
  static const float edges[] = {0, 0x1p-126f, 0x1p-100f, 0x1p-99f, 0x1p-98f, 1, 0x1p127f, INFINITY};
  for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
    uint32_t bits;
    memcpy(&bits, &edges[i], sizeof bits);
    check_roots_from(t, root, bits - MANY / 2, false);
    check_roots_from(t, root, bits - MANY / 2, true);
  }
}

static void check_pow(const cg_target *t, void *lib) {
  static float x[MANY], y[MANY], z[MANY];
  binary_fn fn = binary_symbol(lib, "t_pow");
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
  for (const cg_target *t = test_targets(); t->name; t++) {
    ir_arena *a = ir_arena_new();
    void *lib =
        test_load_optimised(a, ir_format(a, "%s%s", cg_cpu_prelude(a, t, false), exports), t);
    for (size_t i = 0; lib && i < sizeof functions / sizeof *functions; i++)
      check_function(t, lib, &functions[i]);
    if (lib) {
      check_roots(t, lib);
      check_pow(t, lib);
      check_philox(t, lib);
      check_lanes(t, lib);
      dlclose(lib);
    }
    ir_arena_free(a);
  }
  return test_report("cpu_math");
}
