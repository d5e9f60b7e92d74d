// test_cuda_clang_math.c: the functions that --cuda-compiler=clang puts in place of libdevice
// (codegen/cuda_clang_math_prelude.h), as C on the host: at most 2 ulp from libm in a higher
// precision, over the whole range, and the values of the C standard at zeros, infinities and NaN.
#include "support_ir.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MLTC_D       __attribute__((unused)) static inline
#define MLTC_TABLE   static const
#define MLTC_F(name) mltc_##name
#include "codegen/cuda_clang_math_prelude.h"

static const double bound = 2.0;

static uint64_t state = 88172645463325252u;
static uint64_t draw(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

// --- float: against double -----------------------------------------------------------------------
// Subnormal results may be 0, as on the CPU.
static double float_error(float got, double want) {
  float near = (float)want;
  if (isnan(want) || isinf(near) || near == 0)
    return (isnan(want) ? isnan(got) : got == near) ? 0 : INFINITY;
  if (fabsf(near) < 1.17549435e-38f)
    return fabsf(got) < 1.2e-38f ? 0 : INFINITY;
  int e;
  frexp(want, &e);
  return fabs((double)got - want) / ldexp(1, e - 24);
}

static void check_float(const char *name, float (*f)(float), double (*want)(double)) {
  double worst = 0;
  float at = 0;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 1021) {
    union {
      uint32_t u;
      float f;
    } x = {.u = (uint32_t)bits};
    double e = float_error(f(x.f), want((double)x.f));
    if (!(e <= worst)) {
      worst = e;
      at = x.f;
    }
  }
  CHECK(worst <= bound, "%s(%a): %.3f ulp", name, (double)at, worst);
  printf("%-6s %.2f ulp\n", name, worst);
}

// --- double: against long double -----------------------------------------------------------------
static double double_error(double got, long double want) {
  double near = (double)want;
  if (isnan(near) || isinf(near))
    return (isnan(near) ? isnan(got) : got == near) ? 0 : INFINITY;
  int e;
  frexpl(want, &e);
  if (e < -1021 || near == 0)
    e = -1021;
  return (double)(fabsl((long double)got - want) / ldexpl(1, e - 53));
}

// Any bits; numbers of a usual size; numbers near 0 and near 1.
static double draw_double(int kind) {
  union {
    uint64_t u;
    double f;
  } x = {.u = draw()};
  double unit = (double)(int64_t)draw() * 0x1p-63;
  switch (kind % 5) {
  case 0:
    return x.f;
  case 1:
    return unit * 40;
  case 2:
    return unit * 800;
  case 3:
    return 1 + unit * 0.5;
  default: // also where sin and cos change their way (2^50)
    return ldexp(unit, 60 - (int)(draw() % 100));
  }
}

static void check_double(const char *name, double (*f)(double), long double (*want)(long double)) {
  double worst = 0, at = 0;
  for (int i = 0; i < 400000; i++) {
    double x = draw_double(i), e = double_error(f(x), want((long double)x));
    if (!(e <= worst)) {
      worst = e;
      at = x;
    }
  }
  CHECK(worst <= bound, "%s(%a): %.3f ulp", name, at, worst);
  printf("%-6s %.2f ulp\n", name, worst);
}

static const double odd[] = {0.0,
                             1.0,
                             -1.0,
                             2.0,
                             -2.0,
                             3.0,
                             -3.0,
                             0.5,
                             -0.5,
                             1e308,
                             -1e308,
                             1e-320,
                             -1e-320,
                             709.7,
                             710,
                             -745,
                             -746,
                             9007199254740993.0,
                             INFINITY,
                             -INFINITY,
                             NAN,
                             -0.0,
                             18014398509481984.0};
enum { NUM_ODD = sizeof odd / sizeof *odd };

static bool equal_to_the_sign(double got, double want) {
  if (isnan(want))
    return isnan(got);
  return got == want && signbit(got) == signbit(want);
}

static void check_odd(const char *name, double (*f)(double), double (*want)(double)) {
  for (int i = 0; i < NUM_ODD; i++) {
    double x = odd[i], y = want(x);
    if (isnan(y) || isinf(y) || y == 0)
      CHECK(equal_to_the_sign(f(x), y), "%s(%g) = %g, not %g", name, x, f(x), y);
    else
      CHECK(double_error(f(x), (long double)y) <= bound + 1, "%s(%g) = %g, not %g", name, x, f(x),
            y);
  }
}

static void check_pow(void) {
  double worst = 0, at_x = 0, at_y = 0;
  for (int i = 0; i < 400000; i++) {
    double x = draw_double(i), y = draw_double(i / 5);
    double e = double_error(mltc_pow(x, y), powl((long double)x, (long double)y));
    if (!(e <= worst)) {
      worst = e;
      at_x = x;
      at_y = y;
    }
  }
  CHECK(worst <= bound, "pow(%a, %a): %.3f ulp", at_x, at_y, worst);
  printf("pow    %.2f ulp\n", worst);
  for (int i = 0; i < NUM_ODD; i++)
    for (int j = 0; j < NUM_ODD; j++) {
      double want = pow(odd[i], odd[j]), got = mltc_pow(odd[i], odd[j]);
      bool special = isnan(want) || isinf(want) || want == 0;
      CHECK(special ? equal_to_the_sign(got, want)
                    : double_error(got, (long double)want) <= bound + 1,
            "pow(%g, %g) = %g, not %g", odd[i], odd[j], got, want);
    }
}

int main(void) {
  check_float("expf", mltc_expf, exp);
  check_float("expm1f", mltc_expm1f, expm1);
  check_float("logf", mltc_logf, log);
  check_float("log1pf", mltc_log1pf, log1p);
  check_float("tanhf", mltc_tanhf, tanh);
  check_float("erff", mltc_erff, erf);
#define DOUBLE(name)                                                                               \
  check_double(#name, mltc_##name, name##l);                                                       \
  check_odd(#name, mltc_##name, name);
  DOUBLE(exp)
  DOUBLE(expm1)
  DOUBLE(log) DOUBLE(log1p) DOUBLE(tanh) DOUBLE(erf) DOUBLE(sin) DOUBLE(cos) check_pow();
  return support_finish("test_cuda_clang_math");
}
