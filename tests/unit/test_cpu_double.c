// test_cpu_double.c: the prelude's functions of doubles against libm in long double over the whole range (errors in
// units of the last place), their special values and symmetries, and the same bits in every lane and in partial vectors.
//
// MLTC_TEST_VERBOSE=1 prints the largest errors; MLTC_TEST_ROUNDS=N draws N times as many arguments.
#include "tests/unit/support_kernels.h"

#include <float.h>

#define REAL      double
#define REAL_NAME "f64"
#define REAL_NEXT nextafter
enum { MANY = 1 << 15 };
#include "tests/unit/support_functions.h"

static const char exports[] = FUNCTION_EXPORTS
    "ONE(exp) ONE(expm1) ONE(log) ONE(log1p) ONE(sin) ONE(cos) ONE(tanh) ONE(sigmoid) ONE(erf)\n";

// Distance in units of the last place of `want` rounded to double; denormals count in steps of 2^-1074.
static double ulps(double got, long double want) {
  double w = (double)want;
  if (isnan(w) || isnan(got))
    return isnan(w) && isnan(got) ? 0 : INFINITY;
  if (w == 0 && got == 0)
    return signbit(w) == signbit(got) ? 0 : INFINITY;
  if (isinf(w) || isinf(got))
    return got == w ? 0 : INFINITY;
  double unit = nextafter(fabs(w), INFINITY) - fabs(w);
  return (double)(fabsl((long double)got - want) / (long double)unit);
}

static long double sigmoid(long double x) {
  return 1 / (1 + expl(-x));
}

typedef struct function {
  const char *name;
  long double (*want)(long double);
  double limit; // ulps
  enum { ANY, ODD, RISING, ODD_RISING } shape;
  double (*beyond)(double); // not NULL: the same bits from FAR on
} function;

static const function functions[] = {
    {"exp", expl, 1.05, RISING, NULL},
    {"expm1", expm1l, 1.2, RISING, NULL},
    {"log", logl, 1, RISING, NULL},
    {"log1p", log1pl, 1, RISING, NULL},
    {"sin", sinl, 1, ODD, sin},
    {"cos", cosl, 1, ANY, cos},
    {"tanh", tanhl, 1.3, ODD_RISING, NULL},
    {"sigmoid", sigmoid, 1.6, RISING, NULL},
    {"erf", erfl, 1.7, ODD_RISING, NULL},
};

static const double FAR = 0x1p20;

static const double special[] = {
    0.0, INFINITY, NAN, 1.0, 0.5, 2.0, 0x1p-1074, 0x1.fffffffffffffp-1023, 0x1p-1022, 0x1p-54,
    0x1p-53, 0x1p-30, DBL_MAX,
    709.782712893384, // e^x: the last that is finite, and the first that is not
    709.7827128933841,
    745.1332191019411, // the last of e^-x that is not 0
    745.1332191019412,
    708.3964185322641, // the first of e^-x that is subnormal
    746.5, 1e300, 36.7368005696771, 0.6931471805599453, 0.34657359027997264, 0.625,
    19.0615474653984, 5.921587195794507, 6.0, 1.5707963267948966, 3.141592653589793,
    1048575.9999999999, 1048576.0, 1e22,
    // close to multiples of pi / 2
    355, 710, 52174.0 * 1.5707963267948966, 573204.0, 0x1.6ac5b262ca1ffp+849, 0.7071067811865475,
    0.7071067811865476, 1.414213562373095, 1.4142135623730951, 0.9999999999999999,
    1.0000000000000002};
enum { SPECIAL = sizeof special / sizeof *special };

static void fill_special(double *x) {
  memset(x, 0, sizeof *x * MANY);
  for (int i = 0; i < SPECIAL; i++) {
    x[2 * i] = special[i];
    x[2 * i + 1] = -special[i];
  }
  uint64_t nans[] = {0x7ff0000000000001, 0xfff8123456789abc, INT64_MAX};
  memcpy(x + 2 * SPECIAL, nans, sizeof nans);
}

// All exponents, both signs, ascending with the pattern.
static void fill_patterns(double *x, uint64_t *seed) {
  for (int i = 0; i < MANY; i++) {
    uint64_t bits = (uint64_t)i << 49 | (uint64_t)(test_random(seed, 0, 1) * 0x1p49);
    memcpy(&x[i], &bits, sizeof bits);
  }
}

static void fill_evenly(double *x, double lo, double hi, uint64_t *seed) {
  for (int i = 0; i < MANY; i++)
    x[i] = lo + (hi - lo) * (i + test_random(seed, 0, 1)) / MANY;
}

// Neighbours of `x0`.
static void fill_around(double *x, double x0) {
  int64_t bits;
  memcpy(&bits, &x0, sizeof bits);
  for (int i = 0; i < MANY; i++) {
    int64_t b = bits + i - MANY / 2;
    memcpy(&x[i], &b, sizeof b);
  }
}

typedef struct sweep {
  const cg_target *t;
  const function *f;
  unary_fn fn;
  double worst, at;
  uint64_t bits; // of all results
} sweep;

static uint64_t mix(uint64_t h, const double *y) {
  for (int i = 0; i < MANY; i++) {
    uint64_t bits;
    memcpy(&bits, &y[i], sizeof bits);
    h = (h ^ (isnan(y[i]) ? 0 : bits)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h;
}

static void check_accuracy(sweep *s, const double *x, const double *y) {
  for (int i = 0; i < MANY; i++) {
    bool far = s->f->beyond && fabs(x[i]) >= FAR;
    long double want = far ? (long double)s->f->beyond(x[i]) : s->f->want((long double)x[i]);
    double e = ulps(y[i], want);
    if (far && e > 0)
      test_fail("%s: %s(%a) = %a is not libm's", s->t->name, s->f->name, x[i], y[i]);
    if (e > s->f->limit && s->worst <= s->f->limit)
      test_fail("%s: %s is off by %.2f ulp: %s(%a) = %a, not %La", s->t->name, s->f->name, e,
                s->f->name, x[i], y[i], want);
    if (e > s->worst) {
      s->worst = e;
      s->at = x[i];
    }
  }
}

static void check_at(sweep *s, const double *x) {
  static double y[MANY];
  s->fn(x, y, MANY);
  s->bits = mix(s->bits, y);
  check_accuracy(s, x, y);
  const applied a = {s->t->name, s->f->name, s->fn, x, y};
  if (s->f->shape & ODD)
    check_symmetry(&a);
  if (s->f->shape & RISING)
    check_rising(&a);
  check_parts(&a);
}

static int rounds(void) {
  const char *text = getenv("MLTC_TEST_ROUNDS");
  return text ? atoi(text) : 1;
}

// Returns the bits of all results, mixed.
static uint64_t check_function(const cg_target *t, void *lib, const function *f) {
  static const double ranges[][2] = {{-1, 1},      {-12, 12}, {0, 6.5},        {-800, 800},
                                     {-750, -700}, {0.5, 2},  {-1.2e6, 1.2e6}, {-1e-3, 1e-3}};
  static double x[MANY];
  sweep s = {.t = t, .f = f, .fn = unary_symbol(lib, f->name)};
  uint64_t seed = 1;
  fill_special(x);
  check_at(&s, x);
  for (int round = rounds(); round > 0; round--) {
    fill_patterns(x, &seed);
    check_at(&s, x);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
      fill_evenly(x, ranges[i][0], ranges[i][1], &seed);
      check_at(&s, x);
    }
  }
  static const double edges[] = {0.34657359027997264, 0.625,  1,
                                 1.4142135623730951,  5.9216, 1048576};
  for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
    fill_around(x, edges[i]);
    check_at(&s, x);
  }
  if (getenv("MLTC_TEST_VERBOSE"))
    printf("%s %s: %.3f ulp at %a\n", t->name, f->name, s.worst, s.at);
  return s.bits;
}

static void fill_pow(double *x, double *y, uint64_t *seed) {
  for (int i = 0; i < MANY; i++) {
    x[i] = exp(test_random(seed, -700, 700));
    y[i] = test_random(seed, -3, 3);
    if (i % 3 == 0) { // near 1, and large results
      x[i] = test_random(seed, 0.9, 1.1);
      y[i] = test_random(seed, -7000, 7000);
    } else if (i % 3 == 1) {
      x[i] = test_random(seed, 0, 4);
      y[i] = floor(test_random(seed, -500, 500));
    }
  }
}

static uint64_t check_pow_at(const cg_target *t, binary_fn fn, const double *x, const double *y,
                             double *worst) {
  enum { PART = 37 };
  static double z[MANY], part[MANY];
  fn(x, y, z, MANY);
  for (int i = 0; i + PART <= MANY; i += PART)
    fn(x + i, y + i, part + i, PART);
  if (memcmp(part, z, sizeof *z * (MANY / PART * PART)))
    test_fail("%s: pow gives other bits in partial vectors", t->name);
  for (int i = 0; i < MANY; i++) {
    long double want = powl((long double)x[i], (long double)y[i]);
    double e = ulps(z[i], want);
    if (e > 1 && *worst <= 1)
      test_fail("%s: pow(%a, %a) = %a, not %La", t->name, x[i], y[i], z[i], want);
    *worst = e > *worst ? e : *worst;
  }
  return mix(0, z);
}

static uint64_t check_pow(const cg_target *t, void *lib) {
  static double x[MANY], y[MANY];
  binary_fn fn = binary_symbol(lib, "t_pow");
  double worst = 0;
  uint64_t seed = 1, bits = 0;
  for (int i = 0; i < 4 * SPECIAL * SPECIAL; i++) { // all pairs and signs
    x[i] = special[i / 4 % SPECIAL] * (i & 1 ? -1 : 1);
    y[i] = special[i / 4 / SPECIAL] * (i & 2 ? -1 : 1);
  }
  check_pow_at(t, fn, x, y, &worst);
  for (int round = rounds(); round > 0; round--) {
    fill_pow(x, y, &seed);
    bits ^= check_pow_at(t, fn, x, y, &worst);
  }
  if (getenv("MLTC_TEST_VERBOSE"))
    printf("%s pow: %.3f ulp\n", t->name, worst);
  return bits;
}

enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void check_target(const cg_target *t, uint64_t *bits) {
  ir_arena *a = ir_arena_new();
  void *lib = test_load_optimised(a, ir_format(a, "%s%s", cg_cpu_prelude(a, t, true), exports), t);
  if (lib) {
    for (size_t i = 0; i < FUNCTIONS; i++)
      bits[i] = check_function(t, lib, &functions[i]);
    bits[FUNCTIONS] = check_pow(t, lib);
    dlclose(lib);
  }
  ir_arena_free(a);
}

// The machines of this kind that fuse multiply-adds have the same bits, be their vectors as wide as they may.
int main(void) {
  uint64_t fused[FUNCTIONS + 1] = {0}, bits[FUNCTIONS + 1];
  for (const cg_target *t = test_targets(); t->name; t++) {
    check_target(t, bits);
    if (t->fma && fused[0] && memcmp(bits, fused, sizeof bits))
      test_fail("%s: other bits than those of the target before", t->name);
    if (t->fma)
      memcpy(fused, bits, sizeof bits);
  }
  return test_report("cpu_double");
}
