// What kernels are written in: vectors of VL floats and the functions on them. This text stands
// before the kernels of every generated CPU file; MLTC_VL is defined before it.
//
//   vf vi vu vl vd   VL lanes of float, int32, uint32, int64, double
//   masks            vi with lanes 0 or -1 (also how bool is held; in memory it is a byte 0 or 1)
//   k_*              overloaded on those types; a value that is equal in all lanes is a splat
//
// Every function gives a lane the same bits whatever the other lanes hold, so that full vectors
// and the partial vector at the end of a row agree. Errors of the float functions stay within 2 ulp.
#include <stddef.h>
#include <stdint.h>

#define VL MLTC_VL
#define K static inline __attribute__((overloadable, always_inline, unused))
#pragma clang fp contract(fast)

typedef float vf __attribute__((vector_size(VL * 4)));
typedef int32_t vi __attribute__((vector_size(VL * 4)));
typedef uint32_t vu __attribute__((vector_size(VL * 4)));
typedef int64_t vl __attribute__((vector_size(VL * 8)));
typedef uint64_t vlu __attribute__((vector_size(VL * 8)));
typedef double vd __attribute__((vector_size(VL * 8)));

#define K_ALL(M) M(vf) M(vi) M(vu) M(vl) M(vd)
#define K_TO(x, v) __builtin_convertvector((x), v)

// --- splats and lane numbers ------------------------------------------------------------------
K vf k_f32(float x) { return (vf){0} + x; }
K vd k_f64(double x) { return (vd){0} + x; }
K vi k_i32(int32_t x) { return (vi){0} + x; }
K vi k_u8(int32_t x) { return (vi){0} + x; }
K vi k_i8(int32_t x) { return (vi){0} + x; }
K vi k_u16(int32_t x) { return (vi){0} + x; }
K vu k_u32(uint32_t x) { return (vu){0} + x; }
K vl k_i64(int64_t x) { return (vl){0} + x; }
K vi k_bool(int32_t x) { return (vi){0} - (x != 0); }
K vi k_lane(void) {
  vi r;
  for (int i = 0; i < VL; i++)
    r[i] = i;
  return r;
}
K vi k_lane_mask(int lanes) { return k_lane() < lanes; }
// first, first + step, first + 2 step, ...
K vi k_count_i32(int64_t first, int64_t step) { return (int32_t)first + k_lane() * (int32_t)step; }
K vl k_count_i64(int64_t first, int64_t step) { return first + K_TO(k_lane(), vl) * step; }

// --- choosing, comparing ----------------------------------------------------------------------
K vf k_select(vi m, vf a, vf b) { return (vf)((m & (vi)a) | (~m & (vi)b)); }
K vi k_select(vi m, vi a, vi b) { return (m & a) | (~m & b); }
K vu k_select(vi m, vu a, vu b) { return ((vu)m & a) | (~(vu)m & b); }
K vl k_select(vl m, vl a, vl b) { return (m & a) | (~m & b); }
K vd k_select(vl m, vd a, vd b) { return (vd)((m & (vl)a) | (~m & (vl)b)); }
K vl k_select(vi m, vl a, vl b) { return k_select(K_TO(m, vl), a, b); }
K vd k_select(vi m, vd a, vd b) { return k_select(K_TO(m, vl), a, b); }
K vi k_mask(vi m) { return m; }
K vi k_mask(vl m) { return K_TO(m, vi); }
K vi k_not(vi m) { return ~m; }
// k_max and k_min give b when either is NaN, as the vector instructions do.
#define K_ORDER(v)                                                                                 \
  K v k_max(v a, v b) { return k_select(a > b, a, b); }                                            \
  K v k_min(v a, v b) { return k_select(a < b, a, b); }
K_ALL(K_ORDER)
#define K_ANY(m)                                                                                   \
  ({                                                                                               \
    vi any_ = (m);                                                                                 \
    int32_t bits_ = 0;                                                                             \
    for (int i_ = 0; i_ < VL; i_++)                                                                \
      bits_ |= any_[i_];                                                                           \
    bits_ != 0;                                                                                    \
  })

// --- conversions: float to integer truncates and saturates (NaN gives 0), integers wrap --------
#define K_BOUND(x, v, lo, hi)                                                                      \
  ({                                                                                               \
    v b_ = k_select((x) == (x), (x), (v){0});                                                      \
    k_min((v){0} + (hi), k_max((v){0} + (lo), b_));                                                \
  })
K vf k_to_f32(vf x) { return x; }
K vf k_to_f32(vi x) { return K_TO(x, vf); }
K vf k_to_f32(vu x) { return K_TO(x, vf); }
K vf k_to_f32(vl x) { return K_TO(x, vf); }
K vf k_to_f32(vd x) { return K_TO(x, vf); }
K vd k_to_f64(vf x) { return K_TO(x, vd); }
K vd k_to_f64(vi x) { return K_TO(x, vd); }
K vd k_to_f64(vu x) { return K_TO(x, vd); }
K vd k_to_f64(vl x) { return K_TO(x, vd); }
K vd k_to_f64(vd x) { return x; }
K vi k_to_i32(vi x) { return x; }
K vi k_to_i32(vu x) { return (vi)x; }
K vi k_to_i32(vl x) { return K_TO(x, vi); }
K vi k_to_i32(vd x) { return K_TO(K_BOUND(x, vd, -2147483648.0, 2147483647.0), vi); }
K vi k_to_i32(vf x) {
  vi r = K_TO(K_BOUND(x, vf, -2147483648.0f, 2147483520.0f), vi);
  return k_select(x >= 2147483648.0f, k_i32(INT32_MAX), r);
}
K vl k_to_i64(vi x) { return K_TO(x, vl); }
K vl k_to_i64(vu x) { return K_TO(x, vl); }
K vl k_to_i64(vl x) { return x; }
K vl k_to_i64(vd x) {
  vl r = K_TO(K_BOUND(x, vd, -9223372036854775808.0, 9223372036854774784.0), vl);
  return k_select(x >= 9223372036854775808.0, k_i64(INT64_MAX), r);
}
K vl k_to_i64(vf x) { return k_to_i64(K_TO(x, vd)); }
K vu k_to_u32(vi x) { return (vu)x; }
K vu k_to_u32(vu x) { return x; }
K vu k_to_u32(vl x) { return K_TO(x, vu); }
K vu k_to_u32(vd x) { return K_TO(K_BOUND(x, vd, 0.0, 4294967295.0), vu); }
K vu k_to_u32(vf x) { return k_to_u32(K_TO(x, vd)); }
K vi k_wrap_u8(vi x) { return x & 0xff; }
K vi k_wrap_i8(vi x) { return (vi)((vu)x << 24) >> 24; }
K vi k_wrap_u16(vi x) { return x & 0xffff; }
#define K_SMALL(name, lo, hi)                                                                      \
  K vi k_to_##name(vi x) { return k_wrap_##name(x); }                                              \
  K vi k_to_##name(vu x) { return k_wrap_##name((vi)x); }                                          \
  K vi k_to_##name(vl x) { return k_wrap_##name(K_TO(x, vi)); }                                    \
  K vi k_to_##name(vf x) { return k_min(k_i32(hi), k_max(k_i32(lo), k_to_i32(x))); }               \
  K vi k_to_##name(vd x) { return k_min(k_i32(hi), k_max(k_i32(lo), k_to_i32(x))); }
K_SMALL(u8, 0, 255)
K_SMALL(i8, -128, 127)
K_SMALL(u16, 0, 65535)
#define K_TRUTH(v)                                                                                 \
  K vi k_to_bool(v x) { return k_mask(x != 0); }
K_ALL(K_TRUTH)

// --- simple arithmetic ------------------------------------------------------------------------
K vf k_abs(vf x) { return (vf)((vi)x & 0x7fffffff); }
K vd k_abs(vd x) { return (vd)((vl)x & INT64_MAX); }
K vi k_abs(vi x) { return k_max(x, -x); }
K vu k_abs(vu x) { return x; }
K vl k_abs(vl x) { return k_max(x, -x); }
K vf k_copysign(vf x, vf sign) { return (vf)(((vi)x & 0x7fffffff) | ((vi)sign & INT32_MIN)); }
#define K_SIGN(v)                                                                                  \
  K v k_sign(v x) { return k_select(x > 0, (v){0} + 1, k_select(x < 0, (v){0} - 1, x)); }
K_SIGN(vf) K_SIGN(vd) K_SIGN(vi) K_SIGN(vl)
K vu k_sign(vu x) { return k_min(x, k_u32(1)); }
K vf k_floor(vf x) { return __builtin_elementwise_floor(x); }
K vd k_floor(vd x) { return __builtin_elementwise_floor(x); }
K vf k_div(vf a, vf b) { return a / b; }
K vd k_div(vd a, vd b) { return a / b; }
K vf k_mod(vf a, vf b) { return a - k_floor(a / b) * b; }
K vd k_mod(vd a, vd b) { return a - k_floor(a / b) * b; }
// Integers divide towards minus infinity; x / 0 = x mod 0 = 0.
#define K_INT_DIV(v, s)                                                                            \
  K s k_div_one(s a, s b) {                                                                        \
    if (b == 0 || b == (s)-1)                                                                      \
      return b == 0 ? 0 : (s)(0 - (uint64_t)a);                                                    \
    return (s)(a / b - (a % b != 0 && (a % b < 0) != (b < 0)));                                    \
  }                                                                                                \
  K v k_div(v a, v b) {                                                                            \
    v r = a;                                                                                       \
    for (int i = 0; i < VL; i++)                                                                   \
      r[i] = k_div_one(a[i], b[i]);                                                                \
    return r;                                                                                      \
  }                                                                                                \
  K v k_mod(v a, v b) { return k_select(b != 0, a - k_div(a, b) * b, (v){0}); }
K_INT_DIV(vi, int32_t)
K_INT_DIV(vl, int64_t)
K vu k_div(vu a, vu b) {
  vu r = a;
  for (int i = 0; i < VL; i++)
    r[i] = b[i] ? a[i] / b[i] : 0;
  return r;
}
K vu k_mod(vu a, vu b) { return k_select(b != 0, a - k_div(a, b) * b, (vu){0}); }

#define K_EACH(v, f)                                                                               \
  for (int i = 0; i < VL; i++)                                                                     \
    v[i] = f(v[i]);
K vf k_sqrt(vf x) {
#if defined(__AVX512F__) && VL == 16
  return (vf)__builtin_ia32_sqrtps512(x, 4);
#elif defined(__AVX__) && VL == 8
  return (vf)__builtin_ia32_sqrtps256(x);
#elif defined(__SSE__) && VL == 4
  return (vf)__builtin_ia32_sqrtps(x);
#else
  K_EACH(x, __builtin_sqrtf)
  return x;
#endif
}
K vd k_sqrt(vd x) { K_EACH(x, __builtin_sqrt) return x; }
K vf k_rsqrt(vf x) { return 1.0f / k_sqrt(x); }
K vd k_rsqrt(vd x) { return 1.0 / k_sqrt(x); }

// --- float functions --------------------------------------------------------------------------
// 2^n for integral n that is held in a float; p * 2^n in steps that stay exact near the limits.
K vf k_scale(vf p, vf n) {
#if defined(__AVX512F__) && VL == 16
  return (vf)__builtin_ia32_scalefps512_mask(p, n, p, (uint16_t)-1, 4);
#else
  vi i = K_TO(n, vi), half = i >> 1;
  return p * (vf)((half + 127) << 23) * (vf)((i - half + 127) << 23);
#endif
}
#define K_ROUND 12582912.0f // adding and subtracting it rounds a small float to an integer
// x = n ln 2 + r; gives n and e^r - 1
#define K_EXP_CORE(x, n, p)                                                                        \
  vf n = ((x) * 1.44269504f + K_ROUND) - K_ROUND;                                                  \
  vf r_##n = (x) - n * 0.693359375f;                                                               \
  r_##n = r_##n + n * 2.12194440e-4f;                                                              \
  vf p = 1.98756915e-4f * r_##n + 1.39819995e-3f;                                                  \
  p = p * r_##n + 8.33345191e-3f;                                                                  \
  p = p * r_##n + 4.16657959e-2f;                                                                  \
  p = p * r_##n + 1.66666655e-1f;                                                                  \
  p = p * r_##n + 5.00000012e-1f;                                                                  \
  p = p * (r_##n * r_##n) + r_##n;
K vf k_exp(vf x) {
  vf z = k_min(k_f32(89.0f), k_max(k_f32(-105.0f), x)); // NaN stays
  K_EXP_CORE(z, n, p)
  return k_scale(p + 1.0f, n);
}
K vf k_tanh(vf x) { // an odd polynomial near 0, 1 - 2 / (exp(2|x|) + 1) elsewhere
  vf t = k_abs(x), s = x * x;
  vf far = 1.0f - 2.0f / (k_exp(t * 2.0f) + 1.0f);
  vf near = -5.70498873e-3f * s + 2.06390888e-2f;
  near = near * s - 5.37397155e-2f;
  near = near * s + 1.33314422e-1f;
  near = near * s - 3.33332819e-1f;
  return k_select(t < 0.625f, near * (s * x) + x, k_copysign(far, x));
}
// The exponent of u > 0, still shifted, for a mantissa in [2/3, 4/3).
K vi k_exponent(vf u) { return ((vi)u - 0x3f2aaaab) & (int32_t)0xff800000; }
// log((1 + f) 2^e) with e from k_exponent, plus bias times log 2
K vf k_log_core(vf f, vi e, vf bias) {
  vf i = K_TO(e, vf) * 1.19209290e-7f + bias;
  vf s = f * f;
  vf r = -0.130310059f * s - 0.121483512f;
  vf t = 0.140869141f * s + 0.139814854f;
  r = r * s - 0.166846126f;
  t = t * s + 0.200120345f;
  r = r * s - 0.249996200f;
  r = t * f + r;
  r = r * f + 0.333331972f;
  r = r * f - 0.5f;
  r = r * s + f;
  return i * 0.693147182f + r;
}
K vf k_log_limits(vf x, vf one_plus, vf r) {
  r = k_select(one_plus > 0.0f, r, k_select(one_plus == 0.0f, k_f32(-__builtin_inff()),
                                            k_f32(__builtin_nanf(""))));
  return k_select(x < __builtin_inff(), r, x); // inf and NaN
}
K vf k_log(vf x) {
  vi tiny = x < 1.17549435e-38f; // denormals are scaled up by 2^23
  vf u = k_select(tiny, x * 8388608.0f, x);
  vi e = k_exponent(u);
  vf r = k_log_core((vf)((vi)u - e) - 1.0f, e, k_select(tiny, k_f32(-23.0f), k_f32(0.0f)));
  return k_log_limits(x, x, r);
}
K vf k_log1p(vf x) {
  vf u = x + 1.0f;
  vf c = x - (u - 1.0f); // what rounding took from u
  vi e = k_exponent(u);
  vf down = (vf)(0x3f800000 - k_min(e, k_i32(127 << 23))); // 2^-e; 0 where c no longer matters
  vf f = ((vf)((vi)u - e) - 1.0f) + c * down;
  return k_log_limits(x, u, k_select(k_abs(x) < 1e-8f, x, k_log_core(f, e, k_f32(0.0f))));
}
K vf k_erf(vf x) {
  vf t = k_abs(x), s = x * x;
  vf a = -1.72853470e-5f * t + 3.83197126e-4f;
  vf b = -3.88396438e-3f * t + 2.42546219e-2f;
  a = a * s + b;
  a = a * t - 1.06777877e-1f;
  a = a * t - 6.34846687e-1f;
  a = a * t - 1.28717512e-1f;
  a = a * t - t;
  vf far = k_copysign(1.0f - k_exp(k_select(t < 4.0f, a, k_f32(-105.0f))), x);
  vf near = -5.96761703e-4f * s + 4.99119423e-3f;
  near = near * s - 2.67681349e-2f;
  near = near * s + 1.12819925e-1f;
  near = near * s - 3.76125336e-1f;
  near = near * s + 1.28379166e-1f;
  near = near * x + x;
  return k_select(t > 0.927734375f, far, k_select(t == 0.0f, x, near));
}
// sin (quarter = 0) and cos (quarter = 1): the argument is reduced in double precision; beyond
// 2^20 lane by lane in libm.
K vf k_sin_cos(vf x, int quarter) {
  vi far = k_not(k_abs(x) < 1048576.0f);
  vd d = K_TO(k_select(far, (vf){0}, x), vd);
  vd turns = d * 0.63661977236758134308 + 6755399441055744.0;
  vd n = turns - 6755399441055744.0;
  vf r = K_TO((d - n * 0x1.921FB544p0) - n * 0x1.0B4611A626331p-34, vf);
  vi q = K_TO((vl)turns, vi) + quarter;
  vf z = r * r;
  vf s = -1.95152959e-4f * z + 8.33216087e-3f;
  s = (s * z - 1.66666546e-1f) * (z * r) + r;
  vf c = 2.44331571e-5f * z - 1.38873163e-3f;
  c = (c * z + 4.16666457e-2f) * (z * z) + (1.0f - 0.5f * z);
  vf y = k_select((q & 1) != 0, c, s);
  y = (vf)((vi)y ^ ((q & 2) << 30));
  if (K_ANY(far))
    for (int i = 0; i < VL; i++)
      if (far[i])
        y[i] = quarter ? __builtin_cosf(x[i]) : __builtin_sinf(x[i]);
  return y;
}
K vf k_sin(vf x) {
  return k_select(x == 0.0f, x, k_sin_cos(x, 0));
}
K vf k_cos(vf x) { return k_sin_cos(x, 1); }
// x^y = 2^(y log2 x) in double precision for positive finite x; the rest lane by lane in libm.
K vf k_pow(vf x, vf y) {
  vi usual = (x > 0.0f) & (x < __builtin_inff()) & (k_abs(y) < 1e30f);
  vd d = K_TO(k_select(usual, x, k_f32(1.0f)), vd);
  vl e = ((vl)d - 0x3fe6a09e667f3bcd) >> 52; // mantissa in [sqrt(1/2), sqrt(2))
  vd m = (vd)((vl)d - (vl)((vlu)e << 52));
  vd s = (m - 1.0) / (m + 1.0), z = s * s;
  vd p = z * (1.0 / 15) + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  vd log2 = K_TO(K_TO(e, vi), vd) + (p * z * s + s) * 2.88539008177792681472;
  vd t = log2 * K_TO(k_select(usual, y, k_f32(0.0f)), vd);
  t = k_min(k_f64(200.0), k_max(k_f64(-200.0), t));
  vd round = t + 6755399441055744.0;
  vd f = (t - (round - 6755399441055744.0)) * 0.69314718055994530942;
  vd g = f * (1.0 / 3628800) + 1.0 / 362880;
  g = g * f + 1.0 / 40320;
  g = g * f + 1.0 / 5040;
  g = g * f + 1.0 / 720;
  g = g * f + 1.0 / 120;
  g = g * f + 1.0 / 24;
  g = g * f + 1.0 / 6;
  g = g * f + 0.5;
  g = g * (f * f) + f + 1.0;
  vf r = K_TO((vd)((vl)g + (vl)((vlu)(vl)round << 52)), vf);
  if (K_ANY(~usual))
    for (int i = 0; i < VL; i++)
      if (!usual[i])
        r[i] = __builtin_powf(x[i], y[i]);
  return r;
}
#define K_LIBM(name)                                                                               \
  K vd k_##name(vd x) { K_EACH(x, __builtin_##name) return x; }
K_LIBM(exp) K_LIBM(log) K_LIBM(log1p) K_LIBM(sin) K_LIBM(cos) K_LIBM(tanh) K_LIBM(erf)
K vd k_pow(vd x, vd y) {
  for (int i = 0; i < VL; i++)
    x[i] = __builtin_pow(x[i], y[i]);
  return x;
}

// --- over the lanes of one vector: a fixed tree, the result in all lanes ------------------------
#if VL == 16
#define K_SWAP8(x) __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define K_SWAP4(x) __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define K_SWAP2(x) __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define K_SWAP1(x) __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#define K_TREE(STEP) STEP(K_SWAP8) STEP(K_SWAP4) STEP(K_SWAP2) STEP(K_SWAP1)
#elif VL == 8
#define K_SWAP4(x) __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3)
#define K_SWAP2(x) __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5)
#define K_SWAP1(x) __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6)
#define K_TREE(STEP) STEP(K_SWAP4) STEP(K_SWAP2) STEP(K_SWAP1)
#else
#define K_SWAP2(x) __builtin_shufflevector(x, x, 2, 3, 0, 1)
#define K_SWAP1(x) __builtin_shufflevector(x, x, 1, 0, 3, 2)
#define K_TREE(STEP) STEP(K_SWAP2) STEP(K_SWAP1)
#endif
#define K_ADD_STEP(swap) x = x + swap(x);
#define K_MAX_STEP(swap) x = k_max(x, swap(x));
#define K_MIN_STEP(swap) x = k_min(x, swap(x));
#define K_OVER_LANES(v)                                                                            \
  K v k_sum_lanes(v x) { K_TREE(K_ADD_STEP) return x; }                                            \
  K v k_max_lanes(v x) { K_TREE(K_MAX_STEP) return x; }                                            \
  K v k_min_lanes(v x) { K_TREE(K_MIN_STEP) return x; }
K_ALL(K_OVER_LANES)

// argmax and argmin: *best and *at are the value and its index so far; of equal values the lower
// index wins.
#define K_ARG(v)                                                                                   \
  K void k_arg_take(v *best, vi *at, vi wins, v x, vi index) {                                     \
    *best = k_select(wins, x, *best);                                                              \
    *at = k_select(wins, index, *at);                                                              \
  }                                                                                                \
  K void k_argmax_step(v *best, vi *at, v x, vi index) {                                           \
    vi wins = k_mask(x > *best) | (k_mask(x == *best) & (index < *at));                            \
    k_arg_take(best, at, wins, x, index);                                                          \
  }                                                                                                \
  K void k_argmin_step(v *best, vi *at, v x, vi index) {                                           \
    vi wins = k_mask(x < *best) | (k_mask(x == *best) & (index < *at));                            \
    k_arg_take(best, at, wins, x, index);                                                          \
  }                                                                                                \
  K vi k_argmax_lanes(v best, vi at) {                                                             \
    vi top = k_mask(best == k_max_lanes(best));                                                    \
    return k_min_lanes(k_select(top, at, k_i32(INT32_MAX)));                                       \
  }                                                                                                \
  K vi k_argmin_lanes(v best, vi at) {                                                             \
    vi top = k_mask(best == k_min_lanes(best));                                                    \
    return k_min_lanes(k_select(top, at, k_i32(INT32_MAX)));                                       \
  }
K_ALL(K_ARG)

// --- memory -----------------------------------------------------------------------------------
// For each element type T: k_load_T, k_store_T (VL elements side by side), _part (the first
// `lanes` of them; nothing beyond is touched, missing lanes are 0), _step (elements `step` apart),
// k_splat_T (one element in all lanes), k_store_T_one (lane 0), k_gather_T (lane i: row[i] rows on).
#define K_MEMORY(T, m, v, DECODE, ENCODE)                                                          \
  typedef m T##_mem __attribute__((vector_size(VL * sizeof(m)), aligned(sizeof(m)), may_alias));   \
  K v k_load_##T(const m *p) { return DECODE(*(const T##_mem *)p, v); }                            \
  K v k_splat_##T(m x) { return DECODE(((T##_mem){0} + x), v); }                                   \
  K v k_gather_##T(const m *p, vi row, int64_t row_step, int64_t step, int lanes) {                \
    T##_mem r = {0};                                                                               \
    for (int i = 0; i < VL; i++)                                                                   \
      if (i < lanes)                                                                               \
        r[i] = p[row[i] * row_step + i * step];                                                    \
    return DECODE(r, v);                                                                           \
  }                                                                                                \
  K void k_store_##T(m *p, v x) { *(T##_mem *)p = ENCODE(x, T##_mem); }                            \
  K void k_store_##T##_one(m *p, v x) { *p = ENCODE(x, T##_mem)[0]; }                              \
  K void k_store_##T##_step(m *p, v x, int64_t step, int lanes) {                                  \
    T##_mem t = ENCODE(x, T##_mem);                                                                \
    for (int i = 0; i < VL; i++)                                                                   \
      if (i < lanes)                                                                               \
        p[i * step] = t[i];                                                                        \
  }
#define K_PART(T, m, v)                                                                            \
  K v k_load_##T##_part(const m *p, int lanes) { return k_load_##T##_step(p, 1, lanes); }          \
  K void k_store_##T##_part(m *p, v x, int lanes) { k_store_##T##_step(p, x, 1, lanes); }
#define K_STEP(T, m, v, DECODE)                                                                    \
  K v k_load_##T##_step(const m *p, int64_t step, int lanes) {                                     \
    T##_mem r = {0};                                                                               \
    for (int i = 0; i < VL; i++)                                                                   \
      if (i < lanes)                                                                               \
        r[i] = p[i * step];                                                                        \
    return DECODE(r, v);                                                                           \
  }
#define K_SMALL_PART(T, m, v, DECODE) K_STEP(T, m, v, DECODE) K_PART(T, m, v)
// With masked instructions a part costs the same as a whole.
#if defined(__AVX512F__) && VL == 16
#define K_PART_4(T, m, v)                                                                          \
  K v k_load_##T##_step(const m *p, int64_t step, int lanes) {                                     \
    if (step > 1 << 24 || step < -(1 << 24)) {                                                     \
      v r = {0};                                                                                   \
      for (int i = 0; i < VL; i++)                                                                 \
        if (i < lanes)                                                                             \
          r[i] = p[i * step];                                                                      \
      return r;                                                                                    \
    }                                                                                              \
    return (v)__builtin_ia32_gathersiv16sf((vf){0}, p, k_lane() * (int32_t)step,                   \
                                           (uint16_t)((1u << lanes) - 1), 4);                      \
  }                                                                                                \
  K v k_load_##T##_part(const m *p, int lanes) {                                                   \
    return (v)__builtin_ia32_loadups512_mask((const float *)p, (vf){0},                            \
                                             (uint16_t)((1u << lanes) - 1));                       \
  }                                                                                                \
  K void k_store_##T##_part(m *p, v x, int lanes) {                                                \
    __builtin_ia32_storeups512_mask((float *)p, (vf)x, (uint16_t)((1u << lanes) - 1));             \
  }
#elif defined(__AVX2__) && VL == 8
#define K_PART_4(T, m, v)                                                                          \
  K_STEP(T, m, v, K_TO)                                                                            \
  K v k_load_##T##_part(const m *p, int lanes) {                                                   \
    return (v)__builtin_ia32_maskloadps256((const vf *)p, k_lane_mask(lanes));                     \
  }                                                                                                \
  K void k_store_##T##_part(m *p, v x, int lanes) {                                                \
    __builtin_ia32_maskstoreps256((vf *)p, k_lane_mask(lanes), (vf)x);                             \
  }
#else
#define K_PART_4(T, m, v) K_SMALL_PART(T, m, v, K_TO)
#endif
#define K_AS_MASK(x, v) K_TO((x) != 0, v)
#define K_AS_BYTE(x, v) K_TO(-(x), v)
K_MEMORY(bool, uint8_t, vi, K_AS_MASK, K_AS_BYTE) K_SMALL_PART(bool, uint8_t, vi, K_AS_MASK)
K_MEMORY(u8, uint8_t, vi, K_TO, K_TO) K_SMALL_PART(u8, uint8_t, vi, K_TO)
K_MEMORY(i8, int8_t, vi, K_TO, K_TO) K_SMALL_PART(i8, int8_t, vi, K_TO)
K_MEMORY(u16, uint16_t, vi, K_TO, K_TO) K_SMALL_PART(u16, uint16_t, vi, K_TO)
K_MEMORY(i32, int32_t, vi, K_TO, K_TO) K_PART_4(i32, int32_t, vi)
K_MEMORY(u32, uint32_t, vu, K_TO, K_TO) K_PART_4(u32, uint32_t, vu)
K_MEMORY(i64, int64_t, vl, K_TO, K_TO) K_SMALL_PART(i64, int64_t, vl, K_TO)
K_MEMORY(f32, float, vf, K_TO, K_TO) K_PART_4(f32, float, vf)
K_MEMORY(f64, double, vd, K_TO, K_TO) K_SMALL_PART(f64, double, vd, K_TO)

// Row numbers of a gather, kept inside the table.
K vi k_row(vi x, int32_t rows) { return k_min(k_max(x, k_i32(0)), k_i32(rows - 1)); }
K vi k_row(vu x, int32_t rows) { return (vi)k_min(x, k_u32((uint32_t)rows - 1)); }
K vi k_row(vl x, int32_t rows) { return K_TO(k_min(k_max(x, k_i64(0)), k_i64(rows - 1)), vi); }

// --- random numbers: Philox4x32-10, one block of four words per lane ----------------------------
#define K_PHILOX(name, words, v, wide)                                                             \
  typedef struct words {                                                                           \
    v w[4];                                                                                        \
  } words;                                                                                         \
  K words name(vl seed, vl step, uint32_t stream, wide block) {                                    \
    v c0 = K_TO(block, v), c1 = K_TO(block >> 32, v), c2 = (v){0} + stream;                        \
    v c3 = (v){0} + (uint32_t)step[0];                                                             \
    uint32_t k0 = (uint32_t)seed[0], k1 = (uint32_t)((uint64_t)seed[0] >> 32);                     \
    for (int i = 0; i < 10; i++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {                           \
      wide p0 = K_TO(c0, wide) * 0xD2511F53u, p1 = K_TO(c2, wide) * 0xCD9E8D57u;                   \
      c0 = K_TO(p1 >> 32, v) ^ c1 ^ k0;                                                            \
      c1 = K_TO(p1, v);                                                                            \
      c2 = K_TO(p0 >> 32, v) ^ c3 ^ k1;                                                            \
      c3 = K_TO(p0, v);                                                                            \
    }                                                                                              \
    return (words){{c0, c1, c2, c3}};                                                              \
  }
typedef uint32_t vu_half __attribute__((vector_size(VL * 2)));
typedef uint64_t vlu_half __attribute__((vector_size(VL * 4)));
K_PHILOX(k_philox, k_words, vu, vlu)
K_PHILOX(k_philox_half, k_words_half, vu_half, vlu_half)
// Uniform in [0, 1): element e has word e % 4 of block e / 4.
K vf k_unit(vu word) { return K_TO((vi)(word >> 8), vf) * 5.9604644775390625e-8f; }
K vf k_uniform(vl seed, vl step, uint32_t stream, vl element) {
  k_words r = k_philox(seed, step, stream, (vlu)(element >> 2));
  vi which = K_TO(element & 3, vi), odd = (which & 1) != 0;
  return k_unit(k_select((which & 2) != 0, k_select(odd, r.w[3], r.w[2]),
                         k_select(odd, r.w[1], r.w[0])));
}
// The same for elements first, first + 1, ...: they lie in at most VL / 4 + 1 blocks.
K vf k_uniform_run(vl seed, vl step, uint32_t stream, int64_t first) {
  vlu_half block;
  for (int i = 0; i < VL / 2; i++)
    block[i] = (uint64_t)((first >> 2) + i);
  k_words_half r = k_philox_half(seed, step, stream, block);
  uint32_t words[VL * 2];
  for (int i = 0; i < VL * 2; i++)
    words[i] = r.w[i & 3][i >> 2];
  vu word;
  __builtin_memcpy(&word, words + (first & 3), sizeof word);
  return k_unit(word);
}
// Normal by Box-Muller: element e has words 2 (e % 2) and 2 (e % 2) + 1 of block e / 2.
K vf k_normal(vl seed, vl step, uint32_t stream, vl element) {
  k_words r = k_philox(seed, step, stream, (vlu)(element >> 1));
  vi odd = K_TO(element & 1, vi) != 0;
  vu w1 = k_select(odd, r.w[2], r.w[0]), w2 = k_select(odd, r.w[3], r.w[1]);
  vf u1 = K_TO((vi)(w1 >> 8) + 1, vf) * 5.9604644775390625e-8f;
  vf u2 = K_TO((vi)(w2 >> 8), vf) * 5.9604644775390625e-8f;
  return k_sqrt(-2.0f * k_log(u1)) * k_cos(u2 * 6.28318530717958647692f);
}
