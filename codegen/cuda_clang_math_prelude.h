// Float functions for --cuda-compiler=clang: what NVRTC and nvcc take from libdevice, in plain C that
// reads as CUDA C++, too (tests/unit/test_cuda_clang_math.c measures it on the host: at most 2 ulp).
// Before it: MLTC_D, what stands before a function; MLTC_TABLE, before a table; MLTC_F(name), its name.
// floor, sqrt, fma and the like are single instructions. The float ones are those of
// cpu_math_prelude.h for any machine, one lane of them; the others are series after an exact
// reduction of the argument, written out in the comments.
// clang-format off: one-line functions, side by side, read as tables
#if defined(__clang__)
#pragma clang fp contract(off) // error-free sums stay so; fused where it says fma
#define MLTC_UNROLL _Pragma("unroll") // for GPUs: tables become constants
#else
#define MLTC_UNROLL
#endif

MLTC_D float mltc_float(int bits) { union { int i; float f; } w; w.i = bits; return w.f; }
MLTC_D int mltc_int(float x) { union { int i; float f; } w; w.f = x; return w.i; }
MLTC_D double mltc_double(long long bits) { union { long long i; double f; } w; w.i = bits; return w.f; }
MLTC_D long long mltc_long(double x) { union { long long i; double f; } w; w.f = x; return w.i; }

// --- single instructions ------------------------------------------------------------------------
#define MLTC_SAME(name, T, builtin) MLTC_D T MLTC_F(name)(T x) { return builtin(x); }
MLTC_SAME(fabsf, float, __builtin_fabsf) MLTC_SAME(fabs, double, __builtin_fabs)
MLTC_SAME(floorf, float, __builtin_floorf) MLTC_SAME(floor, double, __builtin_floor)
MLTC_SAME(ceilf, float, __builtin_ceilf) MLTC_SAME(ceil, double, __builtin_ceil)
MLTC_SAME(truncf, float, __builtin_truncf) MLTC_SAME(trunc, double, __builtin_trunc)
MLTC_SAME(rintf, float, __builtin_rintf) MLTC_SAME(rint, double, __builtin_rint)
MLTC_SAME(sqrtf, float, __builtin_sqrtf) MLTC_SAME(sqrt, double, __builtin_sqrt)
MLTC_D float MLTC_F(copysignf)(float x, float s) { return __builtin_copysignf(x, s); }
MLTC_D double MLTC_F(copysign)(double x, double s) { return __builtin_copysign(x, s); }
MLTC_D float MLTC_F(fmaf)(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
MLTC_D double MLTC_F(fma)(double x, double y, double z) { return __builtin_fma(x, y, z); }
MLTC_D float MLTC_F(fmaxf)(float x, float y) { return __builtin_fmaxf(x, y); }
MLTC_D double MLTC_F(fmax)(double x, double y) { return __builtin_fmax(x, y); }
MLTC_D float MLTC_F(fminf)(float x, float y) { return __builtin_fminf(x, y); }
MLTC_D double MLTC_F(fmin)(double x, double y) { return __builtin_fmin(x, y); }

// --- float --------------------------------------------------------------------------------------
// x = n ln 2 + r: *p = e^r - 1, and s = 2^n, for n in [-127, 127]; n = -127 gives 0.
MLTC_D float mltc_exp_core(float x, float *p) {
  const float sum = __builtin_fminf(__builtin_fmaf(x, 1.44269504f, 12583039.0f), 12583166.0f);
  const float n = sum - 12583039.0f;
  const float r = __builtin_fmaf(n, 2.12194440e-4f, __builtin_fmaf(n, -0.693359375f, x));
  float q = __builtin_fmaf(2.3280251e-4f, r, 1.3833507e-3f);
  q = __builtin_fmaf(q, r, 8.326932e-3f);
  q = __builtin_fmaf(q, r, 4.1668184e-2f);
  q = __builtin_fmaf(q, r, 1.6666697e-1f);
  q = __builtin_fmaf(q, r, 4.9999994e-1f);
  *p = __builtin_fmaf(q, r * r, r);
  return mltc_float((int)((unsigned)mltc_int(sum) << 23));
}
// The same of any x: beyond the limits s (p + 1) is 0 or infinite, of a NaN it is one.
MLTC_D float mltc_exp_parts(float x, float *p) {
  return mltc_exp_core(x < -88.0f ? -88.0f : x > 89.0f ? 89.0f : x, p);
}
MLTC_D float MLTC_F(expf)(float x) {
  float p;
  const float s = mltc_exp_parts(x, &p);
  return __builtin_fmaf(p, s, s);
}
MLTC_D float MLTC_F(expm1f)(float x) {
  float p;
  const float s = mltc_exp_parts(x, &p);
  return __builtin_copysignf(__builtin_fmaf(p, s, s - 1.0f), x);
}
MLTC_D float MLTC_F(tanhf)(float x) { // an odd polynomial near 0, 1 - 2 / (exp(2|x|) + 1) elsewhere
  const float t = __builtin_fabsf(x), s = x * x;
  if (t < 0.625f) {
    float y = __builtin_fmaf(-5.70498873e-3f, s, 2.06390888e-2f);
    y = __builtin_fmaf(y, s, -5.37397155e-2f);
    y = __builtin_fmaf(y, s, 1.33314422e-1f);
    y = __builtin_fmaf(y, s, -3.33332819e-1f);
    return __builtin_copysignf(__builtin_fmaf(y, s * t, t), x);
  }
  if (x != x)
    return x;
  float p;
  const float e = mltc_exp_core(t < 10.0f ? t + t : 20.0f, &p);
  return __builtin_copysignf(1.0f - 2.0f / __builtin_fmaf(p, e, e + 1.0f), x);
}
// log((1 + f) 2^e): e still shifted by 23, plus bias.
MLTC_D float mltc_log_core(float f, int e, float bias) {
  const float i = __builtin_fmaf((float)e, 1.19209290e-7f, bias), s = f * f;
  float r = __builtin_fmaf(-0.130310059f, s, -0.121483512f);
  float t = __builtin_fmaf(0.140869141f, s, 0.139814854f);
  r = __builtin_fmaf(r, s, -0.166846126f);
  t = __builtin_fmaf(t, s, 0.200120345f);
  r = __builtin_fmaf(r, s, -0.249996200f);
  r = __builtin_fmaf(t, f, r);
  r = __builtin_fmaf(r, f, 0.333331972f);
  r = __builtin_fmaf(r, f, -0.5f);
  r = __builtin_fmaf(r, s, f);
  return __builtin_fmaf(i, 0.693147182f, r);
}
MLTC_D int mltc_exponent(float u) { return (int)((unsigned)(mltc_int(u) - 0x3f2aaaab) & 0xff800000u); }
MLTC_D float MLTC_F(logf)(float x) {
  if (!(x > 0.0f))
    return x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
  if (!(x < __builtin_inff()))
    return x;
  const int tiny = x < 1.17549435e-38f; // denormals are scaled up by 2^23
  const float u = tiny ? x * 8388608.0f : x;
  const int e = mltc_exponent(u);
  return mltc_log_core(mltc_float(mltc_int(u) - e) - 1.0f, e, tiny ? -23.0f : 0.0f);
}
MLTC_D float MLTC_F(log1pf)(float x) {
  const float u = x + 1.0f, c = x - (u - 1.0f); // c: what rounding took from u
  if (__builtin_fabsf(x) < 1e-8f)
    return x;
  if (!(u > 0.0f))
    return u == 0.0f ? -__builtin_inff() : __builtin_nanf("");
  if (!(u < __builtin_inff()))
    return u;
  const int e = mltc_exponent(u);
  const float down = mltc_float(0x3f800000 - (e < 127 << 23 ? e : 127 << 23)); // 2^-e
  return mltc_log_core(__builtin_fmaf(c, down, mltc_float(mltc_int(u) - e) - 1.0f), e, 0.0f);
}
MLTC_D float MLTC_F(erff)(float x) { // 1 - exp(a polynomial), an odd polynomial near 0
  const float t = __builtin_fminf(4.0f, __builtin_fabsf(x)), s = x * x;
  if (x != x)
    return x;
  if (!(t > 0.927734375f)) {
    float y = __builtin_fmaf(-5.96761703e-4f, s, 4.99119423e-3f);
    y = __builtin_fmaf(y, s, -2.67681349e-2f);
    y = __builtin_fmaf(y, s, 1.12819925e-1f);
    y = __builtin_fmaf(y, s, -3.76125336e-1f);
    y = __builtin_fmaf(y, s, 1.28379166e-1f);
    return __builtin_fmaf(y, x, x);
  }
  float a = __builtin_fmaf(-1.72853470e-5f, t, 3.83197126e-4f), p;
  const float b = __builtin_fmaf(-3.88396438e-3f, t, 2.42546219e-2f);
  a = __builtin_fmaf(a, t * t, b);
  a = __builtin_fmaf(a, t, -1.06777877e-1f);
  a = __builtin_fmaf(a, t, -6.34846687e-1f);
  a = __builtin_fmaf(a, t, -1.28717512e-1f);
  a = __builtin_fmaf(a, t, -t);
  const float e = mltc_exp_core(a, &p);
  return __builtin_copysignf(__builtin_fmaf(-p, e, 1.0f - e), x);
}

// --- double -------------------------------------------------------------------------------------
// c[0] x^(n-1) + ... + c[n-1]
#define MLTC_HORNER(y, c, x)                                                                       \
  double y = 0;                                                                                    \
  MLTC_UNROLL for (int i_##y = 0; i_##y < (int)(sizeof c / sizeof *c); i_##y++)                    \
      y = __builtin_fma(y, x, c[i_##y]);

// High and low parts whose sum is a value: |low| is at most half an ulp of high.
struct mltc_pair { double high, low; };
typedef struct mltc_pair mltc_pair;
MLTC_D mltc_pair mltc_make(double high, double low) { mltc_pair p; p.high = high; p.low = low; return p; }
MLTC_D mltc_pair mltc_add(double a, double b) { // any a, b
  const double s = a + b, z = s - a;
  return mltc_make(s, (a - (s - z)) + (b - z));
}
MLTC_D mltc_pair mltc_add_ordered(double a, double b) { // |a| >= |b|
  const double s = a + b;
  return mltc_make(s, b - (s - a));
}
MLTC_D mltc_pair mltc_times(double a, double b) {
  const double p = a * b;
  return mltc_make(p, __builtin_fma(a, b, -p));
}
MLTC_D mltc_pair mltc_product(mltc_pair a, mltc_pair b) {
  const mltc_pair p = mltc_times(a.high, b.high);
  return mltc_add_ordered(p.high, __builtin_fma(a.high, b.low, __builtin_fma(a.low, b.high, p.low)));
}
MLTC_D mltc_pair mltc_sum(mltc_pair a, mltc_pair b) {
  const mltc_pair s = mltc_add(a.high, b.high);
  return mltc_add_ordered(s.high, s.low + a.low + b.low);
}

MLTC_D double mltc_power_of_two(int n) { return mltc_double((long long)(n + 1023) << 52); }

// (e^r - 1 - r) / r^2 = 1/2 + r/6 + ... for |r| <= ln 2 / 2
MLTC_TABLE double mltc_exp_series[] = {
    1.0 / 1307674368000, 1.0 / 87178291200, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800,
    1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5};
// x + low = n ln 2 + r; e^r - 1 as a pair.
MLTC_D mltc_pair mltc_exp_reduced(double x, double low, int *n) {
  const double k = __builtin_rint(x * 1.4426950408889634);
  const mltc_pair r = mltc_add_ordered(__builtin_fma(k, -0x1.62e42fefa3800p-1, x), // exact
                                       __builtin_fma(k, -0x1.ef35793c76730p-45, low));
  MLTC_HORNER(q, mltc_exp_series, r.high)
  *n = (int)k;
  return mltc_add_ordered(r.high, __builtin_fma(q, r.high * r.high, __builtin_fma(r.high, r.low, r.low)));
}
// e^(x + low), |low| much less than 1.
MLTC_D double mltc_exp_sum(double x, double low) {
  int n;
  if (x > 710.0)
    return __builtin_inf();
  if (x < -746.0)
    return 0.0;
  const mltc_pair e = mltc_exp_reduced(x, low, &n), y = mltc_add_ordered(1.0, e.high);
  const int half = n / 2; // 2^1024 is no double, and neither is 2^-1075
  return (y.high + (y.low + e.low)) * mltc_power_of_two(half) * mltc_power_of_two(n - half);
}
MLTC_D double MLTC_F(exp)(double x) { return x != x ? x : mltc_exp_sum(x, 0.0); }

// (2^n - 1) + 2^n (e^r - 1) as a pair, for n in [-1022, 1023]
MLTC_D mltc_pair mltc_expm1_pair(double x) {
  int n;
  const mltc_pair e = mltc_exp_reduced(x, 0.0, &n);
  const double s = mltc_power_of_two(n);
  return mltc_sum(mltc_add(s, -1.0), mltc_make(s * e.high, s * e.low));
}
MLTC_D double MLTC_F(expm1)(double x) {
  if (x != x || __builtin_fabs(x) < 1e-17)
    return x;
  if (x > 100.0)
    return mltc_exp_sum(x, 0.0);
  const mltc_pair y = mltc_expm1_pair(x > -100.0 ? x : -100.0);
  return y.high + y.low;
}

// tanh x = t / (t + 2) with t = e^(2x) - 1
MLTC_D double MLTC_F(tanh)(double x) {
  const double a = __builtin_fabs(x);
  if (x != x || a < 1e-9)
    return x;
  const mltc_pair t = mltc_expm1_pair(a < 20.0 ? 2.0 * a : 40.0);
  const mltc_pair below = mltc_add(t.high, 2.0);
  const double y = t.high / below.high;
  const double rest = __builtin_fma(-y, below.high, t.high) + t.low - y * (below.low + t.low);
  return __builtin_copysign(y + rest / below.high, x);
}

// log m = 2 s + 2 s^3 / 3 + 2 s^5 / 5 + ... with s = (m - 1) / (m + 1), |s| < 0.172, as a pair
MLTC_TABLE double mltc_log_series[] = {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15,
                                       2.0 / 13, 2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5};
// Of 1 + f, f = f.high + f.low, plus n ln 2.
MLTC_D mltc_pair mltc_log_pair(mltc_pair f, int n) {
  const mltc_pair below = mltc_add(2.0, f.high);
  const double q = f.high / below.high;
  const double rest = __builtin_fma(-q, below.high, f.high) + f.low - q * (below.low + f.low);
  const mltc_pair s = mltc_add_ordered(q, rest / below.high), z = mltc_product(s, s);
  MLTC_HORNER(tail, mltc_log_series, z.high)
  const mltc_pair third = mltc_make(0x1.5555555555555p-1, 0x1.5555555555555p-55);
  const mltc_pair series = mltc_sum(third, mltc_times(tail, z.high));
  const mltc_pair small = mltc_sum(mltc_make(2.0 * s.high, 2.0 * s.low), mltc_product(mltc_product(z, s), series));
  const double k = n; // ln 2 with 11 bits to spare: the product is exact
  return mltc_sum(mltc_make(k * 0x1.62e42fefa3800p-1, k * 0x1.ef35793c76730p-45), small);
}
// x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt 2), for positive finite x.
MLTC_D double mltc_split(double x, int *n) {
  const int tiny = x < 2.2250738585072014e-308;
  const long long bits = mltc_long(tiny ? x * 18014398509481984.0 : x); // 2^54
  const long long shift = (bits - 0x3fe6a09e667f3bcdll) >> 52;
  *n = (int)shift - (tiny ? 54 : 0);
  return mltc_double(bits - (long long)((unsigned long long)shift << 52)) - 1.0;
}
MLTC_D double MLTC_F(log)(double x) {
  if (!(x > 0.0))
    return x == 0.0 ? -__builtin_inf() : __builtin_nan("");
  if (!(x < __builtin_inf()))
    return x;
  int n;
  const double f = mltc_split(x, &n);
  const mltc_pair y = mltc_log_pair(mltc_make(f, 0.0), n);
  return y.high + y.low;
}
MLTC_D double MLTC_F(log1p)(double x) {
  if (__builtin_fabs(x) < 1e-17)
    return x;
  if (!(x > -1.0))
    return x == -1.0 ? -__builtin_inf() : __builtin_nan("");
  if (!(x < __builtin_inf()))
    return x;
  int n;
  const mltc_pair u = mltc_add(1.0, x);
  const double f = mltc_split(u.high, &n);
  const mltc_pair y = mltc_log_pair(mltc_add(f, n < 1000 ? u.low * mltc_power_of_two(-n) : 0.0), n);
  return y.high + y.low;
}

// x^y = e^(y log x), the product as a pair.
MLTC_D double MLTC_F(pow)(double x, double y) {
  if (y == 0.0 || x == 1.0)
    return 1.0;
  if (x != x || y != y)
    return x + y;
  const double a = __builtin_fabs(x), size = __builtin_fabs(y);
  const int whole = __builtin_floor(y) == y;
  const int odd = whole && size < 9007199254740992.0 && ((long long)size & 1);
  const double sign = odd && __builtin_copysign(1.0, x) < 0.0 ? -1.0 : 1.0;
  if (a == 0.0 || a == __builtin_inf())
    return sign * ((a == 0.0) == (y > 0.0) ? 0.0 : __builtin_inf());
  if (size == __builtin_inf())
    return a == 1.0 ? 1.0 : (a < 1.0) == (y > 0.0) ? 0.0 : __builtin_inf();
  if (x < 0.0 && !whole)
    return __builtin_nan("");
  int n;
  const double f = mltc_split(a, &n);
  const mltc_pair log = mltc_log_pair(mltc_make(f, 0.0), n);
  if (!(__builtin_fabs(log.high * y) < 800.0))
    return sign * (log.high * y > 0.0 ? __builtin_inf() : 0.0);
  const mltc_pair p = mltc_product(log, mltc_make(y, 0.0));
  return sign * mltc_exp_sum(p.high, p.low);
}

// erf x = x + x g(x^2) up to 1; beyond 1 - e^(-x^2) h(1 / (x + 2)): Chebyshev fits of g and h.
MLTC_TABLE double mltc_erf_near[] = {
    1.4543887079465116e-14, -3.8078824063194953e-13, 9.167619596865806e-12, -2.035228405815769e-10,
    4.115800583208149e-09, -7.511569286591727e-08, 1.223382738359897e-06, -1.7537169441124866e-05,
    0.00021751715604159932, -0.0022854855611441132, 0.019852496688983708, -0.1405360890227171,
    -0.03453126133013269};
MLTC_TABLE double mltc_erf_far[] = {
    -9.369456032869593e-13, 4.775776110782188e-13, 2.2135736614933752e-11, -7.468711818050684e-11,
    -2.68698518348558e-10, 2.625007492297143e-09, -5.886053299221601e-10, -7.005371793736792e-08,
    1.6349937383405805e-07, 1.9795619759276e-06, -7.340517938287998e-06, -8.07922042879663e-05,
    0.00019713917772795885, 0.005588816281841403, 0.038560570425182426, 0.16189356804102495,
    0.2214295402299318};
MLTC_D double MLTC_F(erf)(double x) {
  const double a = __builtin_fabs(x);
  if (a <= 1.0) {
    const double t = __builtin_fma(2.0 * x, x, -1.0);
    MLTC_HORNER(g, mltc_erf_near, t)
    return __builtin_fma(x, g, x);
  }
  if (x != x)
    return x;
  const double b = a < 6.0 ? a : 6.0, t = (1.0 / (b + 2.0) - 0.22916666666666666) * 9.6;
  MLTC_HORNER(h, mltc_erf_far, t)
  const mltc_pair square = mltc_times(b, b);
  return __builtin_copysign(1.0 - mltc_exp_sum(-square.high, -square.low) * h, x);
}

// --- sin, cos of doubles ------------------------------------------------------------------------
// 2 / pi, after 64 bits that are 0 and stand before the point.
MLTC_TABLE unsigned long long mltc_two_over_pi[] = {0,
    0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u,
    0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u,
    0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu,
    0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du, 0x7527bac7ebe5f17bu,
    0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu, 0xf0cfbc209af4361du};
// 64 bits of it from bit `from` on.
MLTC_D unsigned long long mltc_two_over_pi_from(int from) {
  const unsigned long long a = mltc_two_over_pi[from / 64], b = mltc_two_over_pi[from / 64 + 1];
  return from % 64 ? a << from % 64 | b >> (64 - from % 64) : a;
}
MLTC_D unsigned long long mltc_high_word(unsigned long long a, unsigned long long b) {
  const unsigned long long al = a & 0xffffffffu, ah = a >> 32, bl = b & 0xffffffffu, bh = b >> 32;
  const unsigned long long middle = ah * bl + (al * bl >> 32), other = al * bh + (middle & 0xffffffffu);
  return ah * bh + (middle >> 32) + (other >> 32);
}
// Beyond 2^50: those 192 bits of 2 / pi that make no multiples of 4 of x * 2 / pi, times x (Payne
// and Hanek). The fraction is a quarter's, in 64 + 64 bits with its sign apart.
MLTC_D mltc_pair mltc_reduce_far(double x, int *quarter) {
  const long long bits = mltc_long(x);
  const unsigned long long m = ((unsigned long long)bits & 0xfffffffffffffu) | 0x10000000000000u;
  const int from = (int)(bits >> 52 & 2047) - 1075 - 2 + 64;
  const unsigned long long w0 = mltc_two_over_pi_from(from), w1 = mltc_two_over_pi_from(from + 64);
  const unsigned long long w2 = mltc_two_over_pi_from(from + 128);
  unsigned long long low = m * w1, high = m * w0 + mltc_high_word(m, w1);
  const unsigned long long carry = mltc_high_word(m, w2);
  low += carry;
  high += low < carry;
  const unsigned long long n = (high + (1ull << 61)) >> 62;
  high -= n << 62;
  const int negative = high >> 63 != 0;
  if (negative) {
    high = ~high + (low == 0);
    low = 0 - low;
  }
  const mltc_pair part = mltc_add_ordered((double)high, // below 2^61: what rounding took is exact
      (double)((long long)high - (long long)(double)high) + (double)low * 0x1p-64);
  const mltc_pair unit = mltc_make(0x1.921fb54442d18p-62, 0x1.1a62633145c07p-116); // pi / 2 / 2^62
  const mltc_pair r = mltc_product(part, unit);
  *quarter = (int)n;
  return negative ? mltc_make(-r.high, -r.low) : r;
}
// Up to there: pi / 2 in three doubles.
MLTC_D mltc_pair mltc_reduce_near(double x, int *quarter) {
  const double n = __builtin_rint(x * 0.63661977236758134);
  const mltc_pair a = mltc_times(n, 0x1.921fb54442d18p+0), b = mltc_times(n, 0x1.1a62633145c07p-54);
  const mltc_pair first = mltc_sum(mltc_add(x, -a.high), mltc_make(-a.low, 0.0));
  const mltc_pair second = mltc_sum(first, mltc_make(-b.high, -b.low));
  *quarter = (int)((long long)n & 3);
  return mltc_sum(second, mltc_make(n * 0x1.f1976b7ed8fbcp-110, 0.0));
}
MLTC_TABLE double mltc_sin_series[] = {
    1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880,
    -1.0 / 5040, 1.0 / 120, -1.0 / 6};
MLTC_TABLE double mltc_cos_series[] = {
    -1.0 / 6402373705728000, 1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600,
    -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24};
MLTC_D double mltc_sin_cos(double x, int shift) {
  int quarter;
  const double a = __builtin_fabs(x);
  if (!(a < __builtin_inf()))
    return x - x;
  const mltc_pair r = a < 0x1p50 ? mltc_reduce_near(a, &quarter) : mltc_reduce_far(a, &quarter);
  const double z = r.high * r.high;
  // sin(-x) = -sin x is two quarters; cos(-x) = cos x
  quarter += shift ? 1 : __builtin_copysign(1.0, x) < 0.0 ? 2 : 0;
  double y;
  if (quarter & 1) {
    MLTC_HORNER(c, mltc_cos_series, z)
    const mltc_pair half = mltc_times(r.high, 0.5 * r.high), top = mltc_add_ordered(1.0, -half.high);
    y = top.high + (top.low - half.low - r.high * r.low + c * (z * z));
  } else {
    MLTC_HORNER(s, mltc_sin_series, z)
    y = r.high + (r.low + s * (z * r.high));
  }
  return quarter & 2 ? -y : y;
}
MLTC_D double MLTC_F(sin)(double x) { return x == 0.0 ? x : mltc_sin_cos(x, 0); }
MLTC_D double MLTC_F(cos)(double x) { return mltc_sin_cos(x, 1); }

#undef MLTC_HORNER
#undef MLTC_SAME
#undef MLTC_UNROLL
#if defined(__clang__)
#pragma clang fp contract(fast)
#endif
