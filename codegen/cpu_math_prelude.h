// The second half of the prelude: float functions and random numbers on vectors (cpu_prelude.h has
// the types). Errors stay within 2 ulp over the whole range (tests/unit/test_cpu_math.c).
// clang-format off: one-line functions, side by side, read as tables

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

// --- random numbers: Philox4x32-10, one block of four words per lane ----------------------------
// State words sit in 64-bit lanes, whose upper halves are ignored by the next multiplication.
#define K_LOW(x) ((x) & 0xffffffffu)
#define K_PHILOX(name, words, v, wide)                                                             \
  typedef struct words {                                                                           \
    v w[4];                                                                                        \
  } words;                                                                                         \
  K words name(vl seed, vl step, uint32_t stream, wide block) {                                    \
    wide c0 = block, c1 = block >> 32, c2 = (wide){0} + stream;                                    \
    wide c3 = (wide){0} + (uint32_t)step[0];                                                       \
    uint32_t k0 = (uint32_t)seed[0], k1 = (uint32_t)((uint64_t)seed[0] >> 32);                     \
    for (int i = 0; i < 10; i++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {                           \
      wide p0 = K_LOW(c0) * 0xD2511F53u, p1 = K_LOW(c2) * 0xCD9E8D57u;                             \
      c0 = (p1 >> 32) ^ c1 ^ k0;                                                                   \
      c1 = p1;                                                                                     \
      c2 = (p0 >> 32) ^ c3 ^ k1;                                                                   \
      c3 = p0;                                                                                     \
    }                                                                                              \
    return (words){{K_TO(c0, v), K_TO(c1, v), K_TO(c2, v), K_TO(c3, v)}};                          \
  }
typedef uint32_t vu_half __attribute__((vector_size(VL * 2)));
typedef uint64_t vlu_half __attribute__((vector_size(VL * 4)));
typedef uint32_t vu_two __attribute__((vector_size(VL * 8)));
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
#if VL == 16
#define K_JOIN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define K_WEAVE(a, b)                                                                              \
  __builtin_shufflevector(a, b, 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27, 4, 12,   \
                          20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31)
#elif VL == 8
#define K_JOIN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#define K_WEAVE(a, b)                                                                              \
  __builtin_shufflevector(a, b, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
#else
#define K_JOIN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3)
#define K_WEAVE(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 1, 3, 5, 7)
#endif
// The same for elements first, first + 1, ...: they lie in at most VL / 4 + 1 blocks, so that half
// a vector of blocks will do.
K vf k_uniform_run(vl seed, vl step, uint32_t stream, int64_t first) {
  vlu_half lane;
  for (int i = 0; i < VL / 2; i++)
    lane[i] = (uint64_t)i;
  k_words_half r = k_philox_half(seed, step, stream, lane + (uint64_t)(first >> 2));
  vu_two words = K_WEAVE(K_JOIN(r.w[0], r.w[1]), K_JOIN(r.w[2], r.w[3]));
  uint32_t memory[VL * 2];
  __builtin_memcpy(memory, &words, sizeof words);
  vu word;
  __builtin_memcpy(&word, memory + (first & 3), sizeof word);
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
