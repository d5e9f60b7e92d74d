// Functions of doubles on vectors: the part of the prelude that only files with kernels of f64 have, after
// cpu_math_prelude.h. Errors stay within 2 ulp over the whole range, subnormal arguments and results included, with
// fused multiply-adds or without; special values are libm's (tests/unit/test_cpu_double.c).
// clang-format off: one-line functions, side by side, read as tables

// One formula for all arguments, or two and a choice, on any machine. Whatever a formula takes to be exact (products
// with short constants, sums of Dekker's kind) is exact before it is rounded, so that results do not hang on what a
// compiler fuses; what it may fuse are polynomials. AVX2 and AVX-512 give the same bits.
//   reductions    by Cody and Waite (Software Manual for the Elementary Functions, 1980): n ln 2 in two parts, n pi / 2
//                 in four. Beyond 2^20, sin and cos are libm's, lane by lane.
//   sums of two   Dekker, A floating-point technique for extending the available precision (Numerische Mathematik 18,
//                 1971)
//   polynomials   least largest errors (Remez's exchanges, in 240 bits), relative to the result; tanh's quotient by
//                 least squares, weighted again and again (Lawson). Digits are kept by even and odd terms apart.
// Largest errors of ten million arguments each, one million of pow, in ulp:
//               exp    expm1  log    log1p  sin    cos    tanh   sigmoid  erf    pow
//   fused       1.00   1.05   0.80   0.88   0.86   0.88   1.22   1.35     1.27   0.84
//   not fused   0.98   1.15   0.82   0.88   0.92   0.92   1.22   1.44     1.55   0.84

#define K_CALLED __attribute__((noinline, unused)) static
#define K_HALF 6755399441055744.0 // 1.5 * 2^52: what is added to it is rounded to a whole number
K vd k_copysign(vd x, vd sign) { return (vd)(((vl)x & INT64_MAX) | ((vl)sign & INT64_MIN)); }

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2
K vd k_exp_tail(vd r) {
  vd z = r * r;
  vd even = 0x1.1f9582a061918p-29 * z + 0x1.27e4c58a13434p-22;
  vd odd = 0x1.af5ebf7d0c6d2p-26 * z + 0x1.71ddf85375c40p-19;
  even = even * z + 0x1.a01a01b0c3b34p-16;
  odd = odd * z + 0x1.a01a01afe52a1p-13;
  even = even * z + 0x1.6c16c16c1441bp-10;
  odd = odd * z + 0x1.111111110f6afp-7;
  even = even * z + 0x1.555555555555ap-5;
  odd = odd * z + 0x1.5555555555559p-3;
  even = even * z + 0.5;
  return odd * r + even;
}
// x = n ln 2 + r; the last bits of `sum` are n + bias.
#define K_EXP_DOUBLE(x, bias, sum, n, head, r)                                                     \
  vd sum = (x) * 1.4426950408889634 + (K_HALF + (bias));                                           \
  vd n = sum - (K_HALF + (bias));                                                                  \
  vd head = (x) - n * 0x1.62e42fefa3800p-1;                                                        \
  vd r = head - n * 0x1.ef35793c76730p-45;
// x 2^n for x in [1/2, 2), which may be subnormal, or infinite, and is rounded once; n, and the sum that it is from, of
// K_EXP_DOUBLE with the bias 2046.
#if defined(__AVX512F__) && VL == 16
typedef double k_register __attribute__((vector_size(64)));
K vd k_scale(vd x, vd n, vd sum) {
  union { vd all; k_register half[2]; } r = {x}, by = {n};
  for (int i = 0; i < 2; i++)
    r.half[i] = (k_register)__builtin_ia32_scalefpd512_mask(r.half[i], by.half[i], r.half[i], (uint8_t)-1, 4);
  return r.all;
}
#else
K vd k_scale(vd x, vd n, vd sum) {
  vlu b = (vlu)sum, half = (b >> 1) << 52;
  return x * (vd)half * (vd)((b << 52) - half);
}
#endif
// e^x, and what it lost when it was rounded.
K vd k_exp_pair(vd x, vd *low) {
  vd z = k_min(k_f64(710.0), k_max(k_f64(-746.0), x));
  K_EXP_DOUBLE(z, 2046, sum, n, head, r)
  vd p = r * r * k_exp_tail(r) + r, y = p + 1.0;
  *low = k_scale(p - (y - 1.0), n, sum);
  return k_scale(y, n, sum);
}
K vd k_exp(vd x) {
  vd low;
  return k_exp_pair(x, &low);
}
// 2 (u r + u - 1/2 + u (e^r - 1 - r)), u = 2^(n - 1), which is a number for the largest n, too.
K vd k_expm1(vd x) {
  vd z = k_min(k_f64(710.0), k_max(k_f64(-60.0), x));
  K_EXP_DOUBLE(z, 1022, sum, n, head, r)
  vd low = (head - r) - n * 0x1.ef35793c76730p-45;
  vd t = r * r * k_exp_tail(r) + (low * r + low);
  vd u = (vd)((vlu)sum << 52);
  vd base = u - 0.5, high = base + u * r, rest = (base - high) + u * r;
  vd y = high + (u * t + rest);
  return k_select(k_abs(x) < 1e-17, x, y + y);
}
// a + a^3 p / q near 0, 1 - 2 / (e^2a + 1) elsewhere: one division.
K vd k_tanh(vd x) {
  vd a = k_abs(x), s = x * x, z = k_min(k_f64(44.0), a + a);
  vl near = a < 0.625;
  K_EXP_DOUBLE(z, 1023, sum, n, head, r)
  vd e = (vd)((vlu)sum << 52);
  vd far = (r * r * k_exp_tail(r) + r) * e + (e + 1.0);
  vd p = -0x1.a1868978d5752p-13 * s - 0x1.4fd203f118d81p-6;
  p = p * s - 0x1.5555555555554p-2;
  vd q = 0x1.b0f04ea3ecb42p-13 * s + 0x1.7d90056e357c1p-6;
  q = q * s + 0x1.d890fa56ce31ap-2;
  q = q * s + 1.0;
  vd y = k_select(near, p * (s * a), k_f64(-2.0)) / k_select(near, q, far);
  return k_copysign(y + k_select(near, a, k_f64(1.0)), x);
}
// e / (1 + e) or 1 / (1 + e), e = e^-|x|, plus what the digits lost in e and 1 + e are to the quotient.
K vd k_sigmoid(vd x) {
  vd low, e = k_exp_pair(-k_abs(x), &low), below = 1.0 + e, lost = (e - (below - 1.0)) + low;
  vl negative = x < 0.0;
  vd y = k_select(negative, e, k_f64(1.0)) / below, inverse = k_select(negative, 1.0 - y, y);
  return (k_select(negative, low, (vd){0}) - y * lost) * inverse + y;
}
// log(1 + f + low) + k ln 2 for f in [sqrt(1/2) - 1, sqrt 2 - 1]: with s = f / (2 + f) it is 2 s + s R, and
// 2 s = f - s f, so that f is a term by itself.
K vd k_log_sum(vd f, vd low, vd k) {
  vd s = f / (f + 2.0), z = s * s, y = z * z;
  vd even = 0x1.2f064e8b6d473p-3 * y + 0x1.74663fafd3829p-3;
  vd odd = 0x1.39a1a4e9341e5p-3 * y + 0x1.c71c5205ef52fp-3;
  even = even * y + 0x1.24924941f4d6bp-2;
  odd = odd * y + 0x1.999999997fd80p-2;
  even = even * y + 0x1.5555555555592p-1;
  vd rest = (odd * z + even) * z, half = 0.5 * f * f;
  vd small = half - (s * (half + rest) + (k * 0x1.ef35793c76730p-45 + low));
  return k * 0x1.62e42fefa3800p-1 - (small - f);
}
// u = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt 2: bits from 52 on are k + 1023, those below say f.
K vlu k_log_split(vd u) { return (vlu)u + 0x00095f619980c433; }
K vd k_log_fraction(vlu b) { return (vd)((b & 0xfffffffffffff) + 0x3fe6a09e667f3bcd) - 1.0; }
K vd k_log_power(vlu b, vd bias) { return (vd)(b >> 52 | 0x4330000000000000) - bias; }
K vd k_log_limits(vd x, vd one_plus, vd r) {
  r = k_select(one_plus > 0.0, r, k_select(one_plus == 0.0, k_f64(-__builtin_inf()),
                                           k_f64(__builtin_nan(""))));
  return k_select(x < __builtin_inf(), r, x); // inf and NaN
}
K vd k_log(vd x) {
  vl tiny = x < 0x1p-1022; // denormals are scaled up by 2^54
  vlu b = k_log_split(k_select(tiny, x * 0x1p54, x));
  vd k = k_log_power(b, k_select(tiny, k_f64(0x1p52 + 1077), k_f64(0x1p52 + 1023)));
  return k_log_limits(x, x, k_log_sum(k_log_fraction(b), (vd){0}, k));
}
K vd k_log1p(vd x) {
  vd u = x + 1.0, part = u - 1.0;
  vd c = (1.0 - (u - part)) + (x - part); // what rounding took from u
  vlu b = k_log_split(u);
  vd down = (vd)((2046 - (b >> 52)) << 52); // 2^-k
  vd low = k_select(u < 0x1p60, c * down, (vd){0}), m = k_log_fraction(b), f = m + low;
  vd r = k_log_sum(f, low - (f - m), k_log_power(b, k_f64(0x1p52 + 1023)));
  return k_log_limits(x, u, k_select(k_abs(x) < 1e-17, x, r));
}
// erf x = x + x g(x^2) up to 1, and beyond 1 - exp(-x^2) h(1 / (x + 2)).
K vd k_erf(vd x) {
  vd a = k_min(k_f64(6.0), k_abs(x)), s = a * a, y = s * s, t = 1.0 / (a + 2.0), w = t * t;
  vd g = 0x1.057a0196ffdf9p-34 * y + 0x1.f7a41d09c8217p-27;
  vd g_odd = -0x1.386ae19cf1136p-30 * y - 0x1.5f1d37c9fba8fp-23;
  g = g * y + 0x1.b9def1bda8f10p-20;
  g_odd = g_odd * y - 0x1.f4d1df3bcfc2dp-17;
  g = g * y + 0x1.f9a321a13ff56p-14;
  g_odd = g_odd * y - 0x1.c02db3d8ee55ep-11;
  g = g * y + 0x1.565bcd0db0351p-8;
  g_odd = g_odd * y - 0x1.b82ce3128499fp-6;
  g = g * y + 0x1.ce2f21a042b20p-4;
  g_odd = g_odd * y - 0x1.812746b0379e6p-2;
  g = g * y + 0x1.06eba8214db69p-3;
  vd near = (g_odd * s + g) * a + a;
  vd h = -0x1.a845260bef3e2p+7 * w - 0x1.2042921501cd3p+10;
  vd h_odd = 0x1.7602e4fc62b77p+9 * w + 0x1.f1662d7e16155p+9;
  h = h * w - 0x1.fed4894f77869p+8;
  h_odd = h_odd * w + 0x1.4275142fa2504p+7;
  h = h * w - 0x1.48f3242aab535p+5;
  h_odd = h_odd * w + 0x1.3c6b3606fe9c5p+3;
  h = h * w + 0x1.e5be765919fc9p+0;
  h_odd = h_odd * w + 0x1.077ce821ac5f9p+1;
  h = h * w + 0x1.1f8e4920f5544p+0;
  h_odd = h_odd * w + 0x1.20f6140c7ad2bp-1;
  h = h * w - 0x1.a43a8950d387bp-19;
  h = h_odd * t + h;
  K_EXP_DOUBLE(-s, 1023, sum, n, head, r)
  vd e = (vd)((vlu)sum << 52), p = r * r * k_exp_tail(r) + r;
  vd far = 1.0 - (p * e + e) * h;
  return k_copysign(k_select(a > 1.0, far, near), x);
}
// y, but where `far` says so by libm. Called: what is rare takes no registers of the rest.
K_CALLED vd k_sin_cos_far(vd x, vd y, vl far, int cosine) {
  for (int i = 0; i < VL; i++)
    if (far[i])
      y[i] = cosine ? __builtin_cos(x[i]) : __builtin_sin(x[i]);
  return y;
}
// sin (quarter = 0) and cos (quarter = 1). Three parts of pi / 2 have 33 bits, and their products with n, which has 20,
// are exact. So is the first difference, and what the next two lose, as what p and q are taken from is a multiple
// of their last places. r + low is the remainder.
K vd k_sin_cos(vd x, uint64_t quarter) {
  vl far = ~(k_abs(x) < 0x1p20);
  vd d = k_select(far, (vd){0}, x);
  vd sum = d * 0.63661977236758134308 + K_HALF, n = sum - K_HALF;
  vd first = d - n * 0x1.921fb544p+0;
  vd p = n * 0x1.0b4611a6p-34, second = first - p;
  vd q = n * 0x1.3198a2ep-69, third = second - q;
  vd error = ((first - second) - p) + (((second - third) - q) - n * 0x1.b839a252049c1p-104);
  vd r = third + error, low = (third - r) + error, z = r * r, y = z * z;
  vlu turn = (vlu)sum + quarter;
  vd s = 0x1.5d8fa0a00aa5ep-33 * y + 0x1.71de35670eb00p-19;
  vd s_even = -0x1.ae5e59ef28f4dp-26 * y - 0x1.a01a019bfd1c4p-13;
  s = s * y + 0x1.111111110f7cap-7;
  s_even = s_even * y - 0x1.5555555555548p-3;
  vd sine = r + ((s * z + s_even) * (z * r) + low);
  vd c = -0x1.8faea2f6a0ec6p-37 * y - 0x1.27e4f80a02eebp-22;
  vd c_even = 0x1.1ee9ebf5ae72cp-29 * y + 0x1.a01a019cb1d71p-16;
  c = c * y - 0x1.6c16c16c1517fp-10;
  c_even = c_even * y + 0x1.555555555554cp-5;
  vd half = 0.5 * z, top = 1.0 - half;
  vd cosine = top + (((1.0 - top) - half) + ((c * z + c_even) * y - r * low));
  vd v = k_select((vl)(turn & 1) != 0, cosine, sine);
  v = (vd)((vlu)v ^ ((turn & 2) << 62));
  return K_ANY(k_mask(far)) ? k_sin_cos_far(x, v, far, quarter != 0) : v;
}
K vd k_sin(vd x) { return k_select(x == 0.0, x, k_sin_cos(x, 0)); }
K vd k_cos(vd x) { return k_sin_cos(x, 1); }
// x^y = e^(y log |x|) with log |x| as a sum of two, of which the first has 26 digits, so that its products are exact:
// with s = f / (2 + f), log (1 + f) = 2/3 s (3 + s^2 + s^4 w(s^2)). Zeros, infinities, NaN and the largest y go to
// libm, lane by lane.
K vd k_short(vd x) { return (vd)((vlu)x & 0xfffffffff8000000); }
K vd k_log_pair(vd f, vd k, vd *low) {
  vd below = f + 2.0, inverse = 1.0 / below, b = k_short(below);
  vd s = f * inverse, sh = k_short(s);
  vd sl = ((f - sh * b) - sh * (f - (b - 2.0))) * inverse;
  vd z = s * s, w = 0x1.95643a99ebc3fp-3 * z + 0x1.973fd9c3b82c6p-3;
  w = w * z + 0x1.d8ae6234a66f6p-3;
  w = w * z + 0x1.1745af6a43dedp-2;
  w = w * z + 0x1.555555a20d43cp-2;
  w = w * z + 0x1.b6db6db683bffp-2;
  w = w * z + 0x1.3333333333464p-1;
  vd square = sh * sh, rest = z * z * w + sl * (sh + s);
  vd q = k_short(3.0 + square + rest), ql = rest - ((q - 3.0) - square);
  vd first = sh * q, second = sl * q + s * ql;
  vd p = k_short(first + second), pl = second - (p - first);
  vd whole = k * 0x1.62e42fefa3800p-1, part = p * 0x1.555555p-1, sum = whole + part;
  *low = ((whole - sum) + part) + (p * 0x1.5555555555555p-27 + pl * 0x1.5555555555555p-1 + k * 0x1.ef35793c76730p-45);
  return sum;
}
// Called: the powers of Adam's corrections, of which there are two, are compiled once.
K_CALLED vd k_pow_usual(vd x, vd y) {
  vl tiny = x < 0x1p-1022;
  vlu b = k_log_split(k_select(tiny, x * 0x1p54, x));
  vd k = k_log_power(b, k_select(tiny, k_f64(0x1p52 + 1077), k_f64(0x1p52 + 1023))), rest;
  vd sum = k_log_pair(k_log_fraction(b), k, &rest);
  vd log = k_short(sum + rest), log_low = rest - (log - sum), yh = k_short(y);
  vd t = yh * log, tl = (y - yh) * log + y * log_low;
  vl within = (t > -746.0) & (t < 710.0);
  tl = k_select(within, tl, (vd){0});
  t = k_min(k_f64(710.0), k_max(k_f64(-746.0), t));
  K_EXP_DOUBLE(t, 2046, power, n, head, near)
  vd add = tl - n * 0x1.ef35793c76730p-45, r = head + add, low = (head - r) + add;
  vd p = r * r * k_exp_tail(r) + (low * r + low) + r;
  return k_scale(p + 1.0, n, power);
}
K_CALLED vd k_pow_rare(vd x, vd y, vd r, vl rare) {
  for (int i = 0; i < VL; i++)
    if (rare[i])
      r[i] = __builtin_pow(x[i], y[i]);
  return r;
}
K vd k_pow(vd x, vd y) {
  vd a = k_abs(x);
  vl rare = ~((a > 0.0) & (a < __builtin_inf()) & (k_abs(y) < 1e30));
  vd r = k_pow_usual(k_select(rare, k_f64(1.0), a), k_select(rare, (vd){0}, y));
  vl odd = k_floor(y * 0.5) * 2.0 != y;
  vd below_0 = k_select(k_floor(y) == y, k_select(odd, -r, r), k_f64(__builtin_nan("")));
  r = k_select(x < 0.0, below_0, r);
  return K_ANY(k_mask(rare)) ? k_pow_rare(x, y, r, rare) : r;
}
