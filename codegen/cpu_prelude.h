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
// clang-format off: one-line functions, side by side, read as tables
#include <stdint.h>

#define VL MLTC_VL
#define K static inline __attribute__((overloadable, always_inline, unused))
#ifdef __OPTIMIZE__
#pragma clang fp contract(fast)
#else // contracts here and there only: the body of a loop and its tail would differ
#pragma clang fp contract(off)
#endif

typedef float vf __attribute__((vector_size(VL * 4)));
typedef int32_t vi __attribute__((vector_size(VL * 4)));
typedef uint32_t vu __attribute__((vector_size(VL * 4)));
typedef int64_t vl __attribute__((vector_size(VL * 8)));
typedef uint64_t vlu __attribute__((vector_size(VL * 8)));
typedef double vd __attribute__((vector_size(VL * 8)));

#define K_ALL(M) M(vf) M(vi) M(vu) M(vl) M(vd)
#define K_TO(x, v) __builtin_convertvector((x), v)

// --- splats and lane numbers ------------------------------------------------------------------
K vf k_f32(float x) { return x - (vf){0}; } // 0 + x would lose the sign of -0
K vd k_f64(double x) { return x - (vd){0}; }
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
#if defined(__AVX512F__) && VL == 16 // lane by lane makes a branch for each
#define K_ANY(m) (__builtin_ia32_cmpd512_mask((m), (vi){0}, 4, (uint16_t)-1) != 0)
#elif defined(__AVX__) && VL == 8
#define K_ANY(m) (__builtin_ia32_movmskps256((vf)(m)) != 0)
#elif defined(__SSE__) && VL == 4
#define K_ANY(m) (__builtin_ia32_movmskps((vf)(m)) != 0)
#else
#define K_ANY(m)                                                                                   \
  ({                                                                                               \
    vi any_ = (m);                                                                                 \
    int32_t bits_ = 0;                                                                             \
    for (int i_ = 0; i_ < VL; i_++)                                                                \
      bits_ |= any_[i_];                                                                           \
    bits_ != 0;                                                                                    \
  })
#endif

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

K float k_of_bits(uint32_t x) { union { float f; uint32_t u; } w; w.u = x; return w.f; }

// --- narrow floats: f32 with fewer digits in registers, 16 bits in memory ------------------------
// In integers, so that every instruction set gives the same bits; NaN becomes quiet. Rounding is to
// nearest; ties go to even, those of tf32 away from 0.
K vf k_tf32(vf x) {
  vu u = (vu)x;
  return (vf)k_select((u & 0x7f800000) == 0x7f800000, u, (u + 0x1000) & 0xffffe000);
}
// The 16 bits of x, and what 16 bits stand for, in the low halves of lanes.
K vu k_bits_bf16(vf x) {
  vu u = (vu)x;
  return k_select(x == x, u + 0x7fff + (u >> 16 & 1), u | 0x400000) >> 16;
}
K vf k_of_bits_bf16(vu h) { return (vf)(h << 16); }
// Normal numbers: the exponent is moved, and half a unit less one added, one more where that is
// odd. Below them the sum with 0.5 has units of 2^-24, what f16 has there, and rounds by itself.
K vu k_bits_f16(vf x) {
  vu u = (vu)x, sign = u & 0x80000000, m = u ^ sign;
  vu normal = (m - 0x38000000 + 0xfff + (m >> 13 & 1)) >> 13;
  vu small = (vu)((vf)m + 0.5f) - 0x3f000000;
  vu r = k_select(m < 0x38800000, small, k_select(m >= 0x47800000, k_u32(0x7c00), normal));
  return k_select(x == x, r, 0x7e00 | (m >> 13 & 0x3ff)) | sign >> 16;
}
K vf k_of_bits_f16(vu h) {
  vu m = (h & 0x7fff) << 13, normal = m + 0x38000000;
  vf small = (vf)(m + 0x38800000) - 0x1p-14f;
  vu r = k_select(m < 0x00800000, (vu)small, k_select(m >= 0x0f800000, m + 0x70000000, normal));
  return (vf)(k_select(m > 0x0f800000, r | 0x400000, r) | (h & 0x8000) << 16);
}
K vf k_to_bf16(vf x) { return k_of_bits_bf16(k_bits_bf16(x)); }
K vf k_to_f16(vf x) { return k_of_bits_f16(k_bits_f16(x)); }
#define K_NARROW(v)                                                                                \
  K vf k_to_bf16(v x) { return k_to_bf16(k_to_f32(x)); }                                           \
  K vf k_to_f16(v x) { return k_to_f16(k_to_f32(x)); }
K_NARROW(vi) K_NARROW(vu) K_NARROW(vl) K_NARROW(vd)

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
// Sums whose terms are rounded before, whatever they are products of, and whoever else reads those.
#if defined(__AVX512F__)
#define K_ROUNDED(x) __asm__("" : "+v"(x))
#elif defined(__x86_64__)
#define K_ROUNDED(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define K_ROUNDED(x) __asm__("" : "+w"(x))
#else
#define K_ROUNDED(x) __asm__("" : "+m"(x))
#endif
K vf k_add_rounded(vf a, vf b) { K_ROUNDED(a); K_ROUNDED(b); return a + b; }
K vf k_sub_rounded(vf a, vf b) { K_ROUNDED(a); K_ROUNDED(b); return a - b; }
// VL doubles are no register.
K vd k_add_rounded(vd a, vd b) { __asm__("" : "+m"(a), "+m"(b)); return a + b; }
K vd k_sub_rounded(vd a, vd b) { __asm__("" : "+m"(a), "+m"(b)); return a - b; }
K vf k_mod(vf a, vf b) { return k_sub_rounded(a, k_floor(a / b) * b); }
K vd k_mod(vd a, vd b) { return k_sub_rounded(a, k_floor(a / b) * b); }
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
K_INT_DIV(vl, int64_t)
// Quotients of doubles, which have no division of integers' latency: they differ from a whole number by 1 / b or more,
// which is more than they are rounded by. -2^31 / -1 is -2^31.
K vi k_div(vi a, vi b) {
  vi apart = (b == 0) | (b == -1);
  vd q = k_floor(K_TO(a, vd) / K_TO(k_select(apart, (vi){0} + 1, b), vd));
  return k_select(b == 0, (vi){0}, k_select(apart, (vi)(0 - (vu)a), K_TO(q, vi)));
}
K vi k_mod(vi a, vi b) { return k_select(b != 0, (vi)((vu)a - (vu)k_div(a, b) * (vu)b), (vi){0}); }
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
#if defined(__AVX512F__) && VL == 16
#define K_FMA(a, b, c) ((vf)__builtin_ia32_vfmaddps512_mask((a), (b), (c), (uint16_t)-1, 4))
// The divider takes ten cycles or twenty for a root, and a division behind it (as in Adam) waits for it: this one
// comes from multipliers. An estimate of 14 bits, one step of Goldschmidt's, and a step with the remainder, which is
// exact: rounded correctly (Markstein, IBM Journal of Research and Development 34, 1990), as a test of all floats
// has shown. Remainders of numbers below 2^-100 would not be exact: the divider takes those, and what is negative or
// not finite.
K vf k_sqrt(vf x) {
  const vu from_least = (vu)x - 0x0d800000u;
  const uint16_t usual =
      (uint16_t)__builtin_ia32_ucmpd512_mask((vi)from_least, k_i32(0x72000000), 1, (uint16_t)-1);
  const uint16_t zero = (uint16_t)__builtin_ia32_cmpd512_mask((vi)x, (vi){0}, 0, (uint16_t)-1);
  if ((uint16_t)(usual | zero) != (uint16_t)-1)
    return (vf)__builtin_ia32_sqrtps512(x, 4);
  const vf estimate = (vf)__builtin_ia32_rsqrt14ps512_mask(x, (vf){0}, (uint16_t)-1);
  const vf g = x * estimate, h = k_f32(0.5f) * estimate, error = K_FMA(-h, g, k_f32(0.5f));
  const vf root = K_FMA(g, error, g), half = K_FMA(h, error, h);
  const vf rounded = K_FMA(K_FMA(-root, root, x), half, root);
  return (vf)__builtin_ia32_selectps_512(zero, x, rounded);
}
#else
K vf k_sqrt(vf x) {
#if __has_builtin(__builtin_elementwise_sqrt) // from clang 18 on; clang 22 no longer has those below
  return __builtin_elementwise_sqrt(x);
#elif defined(__AVX__) && VL == 8
  return (vf)__builtin_ia32_sqrtps256(x);
#elif defined(__SSE__) && VL == 4
  return (vf)__builtin_ia32_sqrtps(x);
#else
  K_EACH(x, __builtin_sqrtf)
  return x;
#endif
}
#endif
K vd k_sqrt(vd x) { K_EACH(x, __builtin_sqrt) return x; }
K vf k_rsqrt(vf x) { return 1.0f / k_sqrt(x); }
K vd k_rsqrt(vd x) { return 1.0 / k_sqrt(x); }

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

// Over groups of 2, 4 or 8 lanes: the result in all lanes of the group.
#if VL > 4
#define K_GROUP_TREE(STEP) if (each > 4) STEP(K_SWAP4) if (each > 2) STEP(K_SWAP2) STEP(K_SWAP1)
#else
#define K_GROUP_TREE(STEP) STEP(K_SWAP1)
#endif
#define K_OVER_GROUPS(v)                                                                           \
  K v k_sum_groups(v x, int each) { K_GROUP_TREE(K_ADD_STEP) return x; }                           \
  K v k_max_groups(v x, int each) { K_GROUP_TREE(K_MAX_STEP) return x; }                           \
  K v k_min_groups(v x, int each) { K_GROUP_TREE(K_MIN_STEP) return x; }
K_ALL(K_OVER_GROUPS)

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
// k_load_T_one (one element in all lanes), k_splat_T (the same of a value), k_store_T_one (lane 0),
// k_gather_T (lane i: row[i] rows on).
#define K_MEMORY(T, m, v, DECODE, ENCODE)                                                          \
  typedef m T##_mem __attribute__((vector_size(VL * sizeof(m)), aligned(sizeof(m)), may_alias));   \
  K v k_load_##T(const m *p) { return DECODE(*(const T##_mem *)p, v); }                            \
  K v k_splat_##T(m x) { return DECODE((x - (T##_mem){0}), v); }                                   \
  K v k_load_##T##_one(const m *p) { return k_splat_##T(*p); }                                     \
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
// A count that is known, as that of a short row, makes one or two moves.
#define K_PART(T, m, v, DECODE, ENCODE)                                                            \
  K v k_load_##T##_part(const m *p, int lanes) {                                                   \
    if (!__builtin_constant_p(lanes))                                                              \
      return k_load_##T##_step(p, 1, lanes);                                                       \
    T##_mem r = {0};                                                                               \
    __builtin_memcpy(&r, p, (size_t)lanes * sizeof(m));                                            \
    return DECODE(r, v);                                                                           \
  }                                                                                                \
  K void k_store_##T##_part(m *p, v x, int lanes) {                                                \
    T##_mem t = ENCODE(x, T##_mem);                                                                \
    if (__builtin_constant_p(lanes))                                                               \
      __builtin_memcpy(p, &t, (size_t)lanes * sizeof(m));                                          \
    else                                                                                           \
      k_store_##T##_step(p, x, 1, lanes);                                                          \
  }
#define K_STEP(T, m, v, DECODE)                                                                    \
  K v k_load_##T##_step(const m *p, int64_t step, int lanes) {                                     \
    T##_mem r = {0};                                                                               \
    for (int i = 0; i < VL; i++)                                                                   \
      if (i < lanes)                                                                               \
        r[i] = p[i * step];                                                                        \
    return DECODE(r, v);                                                                           \
  }
#define K_SMALL_PART(T, m, v, DECODE, ENCODE) K_STEP(T, m, v, DECODE) K_PART(T, m, v, DECODE, ENCODE)
// With masked instructions a part costs the same as a whole. Stores of a known count are moves all the same: what a
// masked one leaves out counts as written until it is done, and where a kernel writes over what it reads, the next
// short row waits for that.
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
    if (__builtin_constant_p(lanes))                                                               \
      __builtin_memcpy(p, &x, (size_t)lanes * sizeof(m));                                          \
    else                                                                                           \
      __builtin_ia32_storeups512_mask((float *)p, (vf)x, (uint16_t)((1u << lanes) - 1));           \
  }
#elif defined(__AVX2__) && VL == 8
#define K_PART_4(T, m, v)                                                                          \
  K_STEP(T, m, v, K_TO)                                                                            \
  K v k_load_##T##_part(const m *p, int lanes) {                                                   \
    return (v)__builtin_ia32_maskloadps256((const vf *)p, k_lane_mask(lanes));                     \
  }                                                                                                \
  K void k_store_##T##_part(m *p, v x, int lanes) {                                                \
    if (__builtin_constant_p(lanes))                                                               \
      __builtin_memcpy(p, &x, (size_t)lanes * sizeof(m));                                          \
    else                                                                                           \
      __builtin_ia32_maskstoreps256((vf *)p, k_lane_mask(lanes), (vf)x);                           \
  }
#else
#define K_PART_4(T, m, v) K_SMALL_PART(T, m, v, K_TO, K_TO)
#endif
// Bytes that compare are vectors of char to clang, which has no sign on some machines: ones would become 255.
typedef int8_t k_signs __attribute__((vector_size(VL)));
#define K_AS_MASK(x, v) K_TO((k_signs)((x) != 0), v)
#define K_AS_BYTE(x, v) K_TO(-(x), v)
K_MEMORY(bool, uint8_t, vi, K_AS_MASK, K_AS_BYTE) K_SMALL_PART(bool, uint8_t, vi, K_AS_MASK, K_AS_BYTE)
K_MEMORY(u8, uint8_t, vi, K_TO, K_TO) K_SMALL_PART(u8, uint8_t, vi, K_TO, K_TO)
K_MEMORY(i8, int8_t, vi, K_TO, K_TO) K_SMALL_PART(i8, int8_t, vi, K_TO, K_TO)
K_MEMORY(u16, uint16_t, vi, K_TO, K_TO) K_SMALL_PART(u16, uint16_t, vi, K_TO, K_TO)
K_MEMORY(i32, int32_t, vi, K_TO, K_TO) K_PART_4(i32, int32_t, vi)
K_MEMORY(u32, uint32_t, vu, K_TO, K_TO) K_PART_4(u32, uint32_t, vu)
K_MEMORY(i64, int64_t, vl, K_TO, K_TO) K_SMALL_PART(i64, int64_t, vl, K_TO, K_TO)
#define K_OF_BF16(x, v) k_of_bits_bf16(K_TO(x, vu))
#define K_AS_BF16(x, v) K_TO(k_bits_bf16(x), v)
#if defined(__F16C__) && VL == 16 && defined(__AVX512F__)
#define K_OF_F16(x, v)                                                                             \
  ((vf)__builtin_ia32_vcvtph2ps512_mask((k_v16hi)(x), (vf){0}, (uint16_t)-1, 4))
#define K_AS_F16(x, v) ((v)__builtin_ia32_vcvtps2ph512_mask((x), 0, (k_v16hi){0}, (uint16_t)-1))
typedef short k_v16hi __attribute__((vector_size(32)));
#elif defined(__F16C__) && VL == 8
#if __has_builtin(__builtin_ia32_vcvtph2ps256)
#define K_OF_F16(x, v) ((vf)__builtin_ia32_vcvtph2ps256((k_v8hi)(x)))
#else // clang 22
#define K_OF_F16(x, v) K_TO((k_v8f16)(x), vf)
typedef __fp16 k_v8f16 __attribute__((vector_size(16)));
#endif
#define K_AS_F16(x, v) ((v)__builtin_ia32_vcvtps2ph256((x), 0))
typedef short k_v8hi __attribute__((vector_size(16)));
#else
#define K_OF_F16(x, v) k_of_bits_f16(K_TO(x, vu))
#define K_AS_F16(x, v) K_TO(k_bits_f16(x), v)
#endif
K_MEMORY(bf16, uint16_t, vf, K_OF_BF16, K_AS_BF16) K_SMALL_PART(bf16, uint16_t, vf, K_OF_BF16, K_AS_BF16)
K_MEMORY(f16, uint16_t, vf, K_OF_F16, K_AS_F16) K_SMALL_PART(f16, uint16_t, vf, K_OF_F16, K_AS_F16)
K_MEMORY(f32, float, vf, K_TO, K_TO) K_PART_4(f32, float, vf)
K_MEMORY(f64, double, vd, K_TO, K_TO) K_SMALL_PART(f64, double, vd, K_TO, K_TO)
// _each: an element for every group of 2, 4 or 8 lanes.
#define K_GROUPS(T, m, v)                                                                          \
  K v k_load_##T##_each(const m *p, int each, int lanes) {                                         \
    v x = k_load_##T##_part(p, lanes / each), r = x;                                               \
    for (int i = 0; i < VL; i++)                                                                   \
      r[i] = x[i / each];                                                                          \
    return r;                                                                                      \
  }                                                                                                \
  K void k_store_##T##_each(m *p, v x, int each, int lanes) {                                      \
    v r = x;                                                                                       \
    for (int i = 0; i < VL / each; i++)                                                            \
      r[i] = x[i * each];                                                                          \
    k_store_##T##_part(p, r, lanes / each);                                                        \
  }
K_GROUPS(bool, uint8_t, vi) K_GROUPS(u8, uint8_t, vi) K_GROUPS(i8, int8_t, vi) K_GROUPS(u16, uint16_t, vi)
K_GROUPS(i32, int32_t, vi) K_GROUPS(u32, uint32_t, vu) K_GROUPS(i64, int64_t, vl)
K_GROUPS(bf16, uint16_t, vf) K_GROUPS(f16, uint16_t, vf) K_GROUPS(f32, float, vf) K_GROUPS(f64, double, vd)

// Row numbers of a gather, kept inside the table.
K vi k_row(vi x, int32_t rows) { return k_min(k_max(x, k_i32(0)), k_i32(rows - 1)); }
K vi k_row(vu x, int32_t rows) { return (vi)k_min(x, k_u32((uint32_t)rows - 1)); }
K vi k_row(vl x, int32_t rows) { return K_TO(k_min(k_max(x, k_i64(0)), k_i64(rows - 1)), vi); }

// --- updates of rows --------------------------------------------------------------------------
K int64_t k_clamp_row(int64_t row, int64_t rows) { return row < 0 ? 0 : row >= rows ? rows - 1 : row; }
K int32_t k_clamp_row_32(int32_t row, int32_t rows) { return row < 0 ? 0 : row >= rows ? rows - 1 : row; }
// Sorts keys by the bits from `bit` on, 8 a pass; equal ones keep their order. Where they end up.
K const int64_t *k_sort_keys(int64_t *keys, int64_t *spare, int64_t num, int bit, int passes) {
  for (int pass = 0; pass < passes; pass++, bit += 8) {
    int64_t start[257] = {0}, *from = keys;
    for (int64_t i = 0; i < num; i++)
      start[(from[i] >> bit & 255) + 1]++;
    for (int digit = 1; digit < 256; digit++)
      start[digit] += start[digit - 1];
    for (int64_t i = 0; i < num; i++)
      spare[start[from[i] >> bit & 255]++] = from[i];
    keys = spare;
    spare = from;
  }
  return keys;
}

// --- operands of matmuls, which multiply f32 ------------------------------------------------------
// n neighbours, converted; one of them.
#define K_OPERAND(T, m, LOAD)                                                                      \
  K void k_take_##T(float *to, const m *from, int64_t n) {                                         \
    int64_t i = 0;                                                                                 \
    for (; i + VL <= n; i += VL)                                                                   \
      k_store_f32(to + i, LOAD(from + i));                                                         \
    if (i < n && n > VL) /* the last ones once more */                                             \
      k_store_f32(to + n - VL, LOAD(from + n - VL));                                               \
    for (; i < n && n < VL; i++)                                                                   \
      to[i] = LOAD##_one(from + i)[0];                                                             \
  }                                                                                                \
  K float k_one_##T(const m *from) { return LOAD##_one(from)[0]; }
K vf k_load_tf32(const float *p) { return k_tf32(k_load_f32(p)); }
K vf k_load_tf32_one(const float *p) { return k_tf32(k_load_f32_one(p)); }
K_OPERAND(bf16, uint16_t, k_load_bf16)
K_OPERAND(f16, uint16_t, k_load_f16)
K_OPERAND(tf32, float, k_load_tf32)
#if defined(__AVX512BF16__) && VL == 16
// Two bf16 as an element of 32 bits, the second one `apart` further on; 0: a zero. Moved as f32, never computed with as
// such: bits that would be a NaN stay what they are.
typedef uint16_t k_halves __attribute__((vector_size(32)));
K vu k_load_halves(const uint16_t *p, unsigned lanes) {
  return K_TO((k_halves)__builtin_ia32_loaddquhi256_mask((const void *)p, (k_halves){0}, lanes), vu);
}
K void k_take_pair(float *to, const uint16_t *from, int64_t n, int64_t apart) {
  for (int64_t i = 0; i < n; i += VL) {
    const unsigned lanes = n - i < VL ? (1u << (n - i)) - 1 : 0xffff;
    const vu second = apart ? k_load_halves(from + i + apart, lanes) << 16 : (vu){0};
    __builtin_ia32_storedqusi512_mask((void *)(to + i), (vi)(k_load_halves(from + i, lanes) | second), lanes);
  }
}
K float k_one_pair(const uint16_t *from, int64_t apart) {
  const uint32_t pair = *from | (apart ? (uint32_t)from[apart] << 16 : 0);
  float f;
  __builtin_memcpy(&f, &pair, sizeof f);
  return f;
}
// So many numbers that lie in pairs, and a zero after an odd number of them.
K void k_take_numbers(float *to, const uint16_t *from, int64_t n) {
  if (n % 2)
    to[n / 2] = k_one_pair(from + n - 1, 0);
  __builtin_memcpy(to, from, (size_t)(n / 2) * sizeof *to);
}
K vf k_spread(const float *p) {
  const vf x = {*p};
  return __builtin_shufflevector(x, x, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}
// Not by its builtin, whose types differ from clang to clang, and on which clang 16 ends in a fault of its own.
K vf k_dot(vf sum, vf a, vf b) {
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}
#endif
#define K_INTEGERS(T, m, SIGN)                                                                     \
  K vf k_float_##T(const m *p) { return K_TO(SIGN k_load_##T(p), vf); }                            \
  K vf k_float_##T##_one(const m *p) { return K_TO(SIGN k_load_##T##_one(p), vf); }                \
  K_OPERAND(T, m, k_float_##T)
K_INTEGERS(bool, uint8_t, -) K_INTEGERS(u8, uint8_t, ) K_INTEGERS(i8, int8_t, ) K_INTEGERS(u16, uint16_t, )
