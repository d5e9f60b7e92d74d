// What CUDA kernels are written in, first of the texts that stand before the kernels of every
// generated .cu file: vectors of VL = 4 elements of one thread, with the names and meanings that
// cpu_prelude.h gives to the vectors of a CPU, so that one expression emitter serves both.
// After it: cuda_memory_prelude.h (loads, stores, shared arrays, kernels), cuda_math_prelude.h
// (float functions, random numbers), cuda_device_prelude.h (work of several threads together),
// cuda_wgmma_prelude.h (products of four warps), cuda_slice_prelude.h (slices of a block), cuda_sort_prelude.h (sorting, sums of segments).
//
//   vf vi vu vl vd   4 lanes of float, int32, uint32, int64, double
//   masks            vi with lanes 0 or -1 (vl for comparisons of vl and vd)
//   k_*              overloaded on those types; a value that is equal in all lanes is a splat
//
// Read by NVRTC (which has no headers), by nvcc, and by clang++ as C++17, where mltc_emulator.h
// stands for the GPU (tests/emulator). Lanes are arrays with constant indices everywhere: whatever
// else the compiler would put into local memory.
// clang-format off: one-line functions, side by side, read as tables
#if defined(__CUDACC__)
#define K_GPU 1
#else
#include "mltc_emulator.h"
#pragma clang fp contract(fast)
#endif

#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MAX 9223372036854775807ll
#define INT64_MIN (-INT64_MAX - 1)
#define UINT32_MAX 4294967295u
#else
#include <stdint.h>
#endif
#if defined(__CUDACC_RTC__) || defined(__NVCC__)
// Constants of generated code, for a compiler that lacks these builtins.
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_nanf(text) __int_as_float(0x7fc00000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)
#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000ll)
#endif

#define VL 4
#define K_IN __device__ __forceinline__
#if defined(K_GPU)
#define K K_IN
#else
#define K static K_IN
#endif
#define K_LANES _Pragma("unroll") for (int i = 0; i < VL; i++)

// --- vectors ----------------------------------------------------------------------------------
// sum: the type to add and multiply in (integers wrap); mask: of comparisons.
template <typename T> struct k_kind;
template <> struct k_kind<float> { typedef float sum; typedef int32_t mask; };
template <> struct k_kind<double> { typedef double sum; typedef int64_t mask; };
template <> struct k_kind<int8_t> { typedef uint32_t sum; typedef int32_t mask; };
template <> struct k_kind<uint8_t> { typedef uint32_t sum; typedef int32_t mask; };
template <> struct k_kind<uint16_t> { typedef uint32_t sum; typedef int32_t mask; };
template <> struct k_kind<int32_t> { typedef uint32_t sum; typedef int32_t mask; };
template <> struct k_kind<uint32_t> { typedef uint32_t sum; typedef int32_t mask; };
template <> struct k_kind<int64_t> { typedef uint64_t sum; typedef int64_t mask; };
template <> struct k_kind<uint64_t> { typedef uint64_t sum; typedef int64_t mask; };

template <typename T> struct k_vec {
  typedef T type;
  typedef typename k_kind<T>::sum sum;
  typedef k_vec<typename k_kind<T>::mask> mask;
  T lane[VL];

  K_IN T operator[](int i) const { return lane[i]; }
  K_IN T &operator[](int i) { return lane[i]; }

  static K_IN k_vec splat(T x) { k_vec r; K_LANES r.lane[i] = x; return r; }
  friend K_IN k_vec operator-(k_vec a) { K_LANES a.lane[i] = (T)-(sum)a.lane[i]; return a; }
  friend K_IN k_vec operator+(k_vec a) { return a; }
  friend K_IN k_vec operator~(k_vec a) { K_LANES a.lane[i] = (T)~a.lane[i]; return a; }
#define K_OPERATOR(result, op, value)                                                              \
  friend K_IN result operator op(k_vec a, k_vec b) {                                               \
    result r;                                                                                      \
    K_LANES { const T x = a.lane[i], y = b.lane[i]; r.lane[i] = value; }                           \
    return r;                                                                                      \
  }                                                                                                \
  friend K_IN result operator op(k_vec a, T b) { return a op splat(b); }                           \
  friend K_IN result operator op(T a, k_vec b) { return splat(a) op b; }
#define K_CHANGE(op, value)                                                                        \
  K_OPERATOR(k_vec, op, value)                                                                     \
  K_IN k_vec &operator op##=(k_vec b) { return *this = *this op b; }                               \
  K_IN k_vec &operator op##=(T b) { return *this = *this op b; }
#define K_COMPARE(op) K_OPERATOR(mask, op, x op y ? -1 : 0)
  K_CHANGE(+, (T)((sum)x + (sum)y)) K_CHANGE(-, (T)((sum)x - (sum)y))
  K_CHANGE(*, (T)((sum)x * (sum)y)) K_CHANGE(/, (T)(x / y))
  K_CHANGE(&, (T)(x & y)) K_CHANGE(|, (T)(x | y)) K_CHANGE(^, (T)(x ^ y))
  K_CHANGE(<<, (T)((sum)x << y)) K_CHANGE(>>, (T)(x >> y))
  K_COMPARE(==) K_COMPARE(!=) K_COMPARE(<) K_COMPARE(<=) K_COMPARE(>) K_COMPARE(>=)
#undef K_COMPARE
#undef K_CHANGE
#undef K_OPERATOR
};
typedef k_vec<float> vf;
typedef k_vec<int32_t> vi;
typedef k_vec<uint32_t> vu;
typedef k_vec<int64_t> vl;
typedef k_vec<uint64_t> vlu;
typedef k_vec<double> vd;

#define K_ALL(M) M(vf) M(vi) M(vu) M(vl) M(vd)
template <typename V, typename T> K_IN V k_convert(k_vec<T> x) {
  V r;
  K_LANES r.lane[i] = (typename V::type)x.lane[i];
  return r;
}
#define K_TO(x, v) k_convert<v>(x)

// --- splats and lane numbers ------------------------------------------------------------------
K vf k_f32(float x) { return vf::splat(x); }
K vd k_f64(double x) { return vd::splat(x); }
K vi k_i32(int32_t x) { return vi::splat(x); }
K vi k_u8(int32_t x) { return vi::splat(x); }
K vi k_i8(int32_t x) { return vi::splat(x); }
K vi k_u16(int32_t x) { return vi::splat(x); }
K vu k_u32(uint32_t x) { return vu::splat(x); }
K vl k_i64(int64_t x) { return vl::splat(x); }
K vi k_bool(int32_t x) { return vi::splat(x != 0 ? -1 : 0); }
K vi k_lane(void) { vi r; K_LANES r.lane[i] = i; return r; }
K vi k_lane_mask(int lanes) { return k_lane() < lanes; }
// first, first + step, first + 2 step, ...
K vi k_count_i32(int64_t first, int64_t step) { return (int32_t)first + k_lane() * (int32_t)step; }
K vl k_count_i64(int64_t first, int64_t step) { return first + K_TO(k_lane(), vl) * step; }

// --- choosing, comparing ----------------------------------------------------------------------
template <typename M, typename V> K_IN V k_choose(M m, V a, V b) {
  K_LANES a.lane[i] = m.lane[i] ? a.lane[i] : b.lane[i];
  return a;
}
#define K_SELECT(m, v) K v k_select(m c, v a, v b) { return k_choose(c, a, b); }
K_SELECT(vi, vf) K_SELECT(vi, vi) K_SELECT(vi, vu) K_SELECT(vi, vl) K_SELECT(vi, vd)
K_SELECT(vl, vl) K_SELECT(vl, vd)
K vi k_mask(vi m) { return m; }
K vi k_mask(vl m) { return K_TO(m, vi); }
K vi k_not(vi m) { return ~m; }
// k_max and k_min give b when either is NaN.
#define K_ORDER(v)                                                                                 \
  K v k_max(v a, v b) { return k_select(a > b, a, b); }                                            \
  K v k_min(v a, v b) { return k_select(a < b, a, b); }
K_ALL(K_ORDER)

// --- conversions: float to integer truncates and saturates (NaN gives 0), integers wrap --------
#define K_SATURATE(to, v, from, below, above, least, most)                                         \
  K v k_to_##to(from x) {                                                                          \
    v r;                                                                                           \
    K_LANES {                                                                                      \
      const from::type e = x.lane[i];                                                              \
      r.lane[i] = e >= (above) ? (most) : e <= (below) ? (least) : e == e ? (v::type)e : 0;        \
    }                                                                                              \
    return r;                                                                                      \
  }
K_SATURATE(i32, vi, vf, -2147483648.0f, 2147483648.0f, INT32_MIN, INT32_MAX)
K_SATURATE(i32, vi, vd, -2147483648.0, 2147483647.0, INT32_MIN, INT32_MAX)
K_SATURATE(i64, vl, vf, -9223372036854775808.0f, 9223372036854775808.0f, INT64_MIN, INT64_MAX)
K_SATURATE(i64, vl, vd, -9223372036854775808.0, 9223372036854775808.0, INT64_MIN, INT64_MAX)
K_SATURATE(u32, vu, vf, 0.0f, 4294967296.0f, 0, UINT32_MAX)
K_SATURATE(u32, vu, vd, 0.0, 4294967295.0, 0, UINT32_MAX)
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
K vi k_to_i32(vu x) { return K_TO(x, vi); }
K vi k_to_i32(vl x) { return K_TO(x, vi); }
K vl k_to_i64(vi x) { return K_TO(x, vl); }
K vl k_to_i64(vu x) { return K_TO(x, vl); }
K vl k_to_i64(vl x) { return x; }
K vu k_to_u32(vi x) { return K_TO(x, vu); }
K vu k_to_u32(vu x) { return x; }
K vu k_to_u32(vl x) { return K_TO(x, vu); }
K vi k_wrap_u8(vi x) { return x & 0xff; }
K vi k_wrap_i8(vi x) { return (x << 24) >> 24; }
K vi k_wrap_u16(vi x) { return x & 0xffff; }
#define K_SMALL(name, lo, hi)                                                                      \
  K vi k_to_##name(vi x) { return k_wrap_##name(x); }                                              \
  K vi k_to_##name(vu x) { return k_wrap_##name(K_TO(x, vi)); }                                    \
  K vi k_to_##name(vl x) { return k_wrap_##name(K_TO(x, vi)); }                                    \
  K vi k_to_##name(vf x) { return k_min(k_i32(hi), k_max(k_i32(lo), k_to_i32(x))); }               \
  K vi k_to_##name(vd x) { return k_min(k_i32(hi), k_max(k_i32(lo), k_to_i32(x))); }
K_SMALL(u8, 0, 255)
K_SMALL(i8, -128, 127)
K_SMALL(u16, 0, 65535)
#define K_TRUTH(v)                                                                                 \
  K vi k_to_bool(v x) { return k_mask(x != (v::type)0); }
K_ALL(K_TRUTH)

// --- simple arithmetic ------------------------------------------------------------------------
#define K_EACH(x, f) K_LANES x.lane[i] = f(x.lane[i]);
K vf k_abs(vf x) { K_EACH(x, fabsf) return x; }
K vd k_abs(vd x) { K_EACH(x, fabs) return x; }
K vi k_abs(vi x) { return k_max(x, -x); }
K vu k_abs(vu x) { return x; }
K vl k_abs(vl x) { return k_max(x, -x); }
K vf k_copysign(vf x, vf sign) { K_LANES x.lane[i] = copysignf(x.lane[i], sign.lane[i]); return x; }
#define K_SIGN(v)                                                                                  \
  K v k_sign(v x) {                                                                                \
    const v::type zero = 0;                                                                        \
    return k_select(x > zero, v::splat(1), k_select(x < zero, v::splat(-1), x));                   \
  }
K_SIGN(vf) K_SIGN(vd) K_SIGN(vi) K_SIGN(vl)
K vu k_sign(vu x) { return k_min(x, k_u32(1)); }
K vf k_floor(vf x) { K_EACH(x, floorf) return x; }
K vd k_floor(vd x) { K_EACH(x, floor) return x; }
K vf k_div(vf a, vf b) { return a / b; }
K vd k_div(vd a, vd b) { return a / b; }
// Sums whose terms are rounded before, whatever they are products of, and whoever else reads those.
#if defined(K_GPU)
#define K_ROUNDED(name, T, type, reg, op)                                                          \
  K T name(T a, T b) { T r; asm(#op ".rn." #type " %0, %1, %2;" : "=" reg(r) : reg(a), reg(b)); return r; }
K_ROUNDED(k_add_one, float, f32, "f", add) K_ROUNDED(k_sub_one, float, f32, "f", sub)
K_ROUNDED(k_add_one, double, f64, "d", add) K_ROUNDED(k_sub_one, double, f64, "d", sub)
#else
template <typename T> K_IN T k_add_one(T a, T b) {
#pragma clang fp contract(off)
  return a + b;
}
template <typename T> K_IN T k_sub_one(T a, T b) {
#pragma clang fp contract(off)
  return a - b;
}
#endif
#define K_TERMS(v)                                                                                 \
  K v k_add_rounded(v a, v b) { K_LANES a.lane[i] = k_add_one(a.lane[i], b.lane[i]); return a; }   \
  K v k_sub_rounded(v a, v b) { K_LANES a.lane[i] = k_sub_one(a.lane[i], b.lane[i]); return a; }
K_TERMS(vf) K_TERMS(vd)
K vf k_mod(vf a, vf b) { return k_sub_rounded(a, k_floor(a / b) * b); }
K vd k_mod(vd a, vd b) { return k_sub_rounded(a, k_floor(a / b) * b); }
// Integers divide towards minus infinity; x / 0 = x mod 0 = 0.
#define K_INT_DIV(v, s)                                                                            \
  K s k_div_one(s a, s b) {                                                                        \
    if (b == 0 || b == (s)-1)                                                                      \
      return b == 0 ? 0 : (s)(0 - (uint64_t)a);                                                    \
    return (s)(a / b - (a % b != 0 && (a % b < 0) != (b < 0)));                                    \
  }                                                                                                \
  K v k_div(v a, v b) { K_LANES a.lane[i] = k_div_one(a.lane[i], b.lane[i]); return a; }           \
  K v k_mod(v a, v b) { return k_select(b != (s)0, a - k_div(a, b) * b, v::splat(0)); }
K_INT_DIV(vi, int32_t)
K_INT_DIV(vl, int64_t)
K vu k_div(vu a, vu b) {
  K_LANES a.lane[i] = b.lane[i] ? a.lane[i] / b.lane[i] : 0;
  return a;
}
K vu k_mod(vu a, vu b) { return k_select(b != 0u, a - k_div(a, b) * b, k_u32(0)); }
K vf k_sqrt(vf x) { K_EACH(x, sqrtf) return x; }
K vd k_sqrt(vd x) { K_EACH(x, sqrt) return x; }
K vf k_rsqrt(vf x) { return 1.0f / k_sqrt(x); }
K vd k_rsqrt(vd x) { return 1.0 / k_sqrt(x); }

// --- over the lanes of one vector: a fixed tree, the result in all lanes ------------------------
#define K_OVER_LANES(v)                                                                            \
  K v k_sum_lanes(v x) { return v::splat((x[0] + x[2]) + (x[1] + x[3])); }                         \
  K v k_max_lanes(v x) { return k_tree_max(x); }                                                   \
  K v k_min_lanes(v x) { return k_tree_min(x); }
template <typename T> K_IN T k_max_one(T a, T b) { return a > b ? a : b; }
template <typename T> K_IN T k_min_one(T a, T b) { return a < b ? a : b; }
template <typename T> K_IN k_vec<T> k_tree_max(k_vec<T> x) {
  return k_vec<T>::splat(k_max_one(k_max_one(x[0], x[2]), k_max_one(x[1], x[3])));
}
template <typename T> K_IN k_vec<T> k_tree_min(k_vec<T> x) {
  return k_vec<T>::splat(k_min_one(k_min_one(x[0], x[2]), k_min_one(x[1], x[3])));
}
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
