// Fourth text before CUDA kernels: what several threads do together. Reductions over groups of
// threads; thin wrappers around the instructions that C++ has no spelling for: each has its PTX
// here and its host body in the emulator (tests/emulator/emu_instructions.h), which follows the
// same layouts.
// clang-format off: one-line functions, side by side, read as tables
#if defined(K_GPU) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800)
#define K_PTX 1 // PTX of sm_80 and newer
#endif

// --- shuffles ---------------------------------------------------------------------------------
// The value of lane `lane ^ distance` of the warp. All 32 threads call it. Orders no memory.
K uint32_t k_shuffle_xor(uint32_t x, int distance) {
#if defined(K_GPU)
  uint32_t r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(x), "r"(distance));
  return r;
#else
  return emu_shuffle_xor(x, distance);
#endif
}
template <typename T> K_IN T k_shuffle_xor(T x, int distance) {
  union { T value; uint32_t word[sizeof(T) / 4]; } w;
  w.value = x;
  _Pragma("unroll") for (int i = 0; i < (int)sizeof(T) / 4; i++)
    w.word[i] = k_shuffle_xor(w.word[i], distance);
  return w.value;
}

// --- votes ------------------------------------------------------------------------------------
// Bit i: lane i of the warp gives the same x. All 32 threads call it. Orders no memory.
K uint32_t k_match_any(uint32_t x) {
#if defined(K_PTX)
  uint32_t r;
  asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(x));
  return r;
#else
  return emu_match_any(x);
#endif
}

// --- one instruction of one operand -------------------------------------------------------------
#if defined(K_GPU)
#define K_UNARY(R, name, T, reg, ptx, host)                                                        \
  K R name(T x) { R r; asm(ptx " %0, %1;" : "=" reg(r) : reg(x)); return r; }
#else
#define K_UNARY(R, name, T, reg, ptx, host) K R name(T x) { return host; }
#endif
K_UNARY(int, k_ones, uint32_t, "r", "popc.b32", __builtin_popcount(x)) // how many
K_UNARY(float, k_near_exp2, float, "f", "ex2.approx.ftz.f32", exp2f(x)) // 2 ulp; 0 below 2^-126
K_UNARY(float, k_near_inverse, float, "f", "rcp.approx.ftz.f32", 1.0f / x) // 1 ulp

// --- reductions over groups of threads --------------------------------------------------------
// k_group_sum<G>(x, scratch) and the like work over groups of G consecutive threads of the block,
// G a power of two up to 1024: first the lanes of each thread's vector, then threads by a fixed
// tree. The result is in all lanes of all threads of the group, the same bits in each. All threads
// of the block call them, also those whose values do not count (which pass a neutral value).
// k_group_argmax<G>(best, at, scratch) gives the index; of equal values the lower index wins.
//
// Up to G = 32 these are shuffles, and scratch is not touched (a form without it is there, too, of
// which sums, maxima and minima have k_group_sum<G, APART>: over threads that are so far apart).
// Larger groups go through a k_group_scratch (512 bytes of shared memory: two slots per warp) and two
// __syncthreads; one scratch serves any number of calls, one after the other. Kernels have k_group_room():
// one for all bodies of a joint launch, whose shared memory is all that they declare.
typedef k_array<uint64_t, 64> k_group_scratch;
K k_group_scratch &k_group_room() {
  __shared__ k_group_scratch room;
  return room;
}

struct k_take_sum { template <typename T> static K_IN T of(T a, T b) { return (T)(a + b); } };
struct k_take_max { template <typename T> static K_IN T of(T a, T b) { return k_max_one(a, b); } };
// The larger one, and NaN if either is: one instruction.
K float k_top_one(float a, float b) {
#if defined(K_PTX)
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a > b || a != a ? a : b;
#endif
}
K vf k_top(vf a, vf b) { K_LANES a.lane[i] = k_top_one(a.lane[i], b.lane[i]); return a; }
K vf k_top_lanes(vf x) { return vf::splat(k_top_one(k_top_one(x[0], x[2]), k_top_one(x[1], x[3]))); }
struct k_take_top { template <typename T> static K_IN T of(T a, T b) { return k_top_one(a, b); } };
struct k_take_min { template <typename T> static K_IN T of(T a, T b) { return k_min_one(a, b); } };
template <typename T> struct k_best { T value; int32_t at; };
struct k_take_argmax {
  template <typename T> static K_IN k_best<T> of(k_best<T> a, k_best<T> b) {
    return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
  }
};
struct k_take_argmin {
  template <typename T> static K_IN k_best<T> of(k_best<T> a, k_best<T> b) {
    return b.value < a.value || (b.value == a.value && b.at < a.at) ? b : a;
  }
};

// Both threads of a pair put the lower one's value first, so that they agree even on NaN.
template <typename F, typename T> K_IN T k_pair(T mine, int distance) {
  const T other = k_shuffle_xor(mine, distance);
  return threadIdx.x & (unsigned)distance ? F::of(other, mine) : F::of(mine, other);
}
template <typename F, int G, int APART = 1, typename T> K_IN T k_over_warp(T x) {
  _Pragma("unroll") for (int distance = (G < 32 ? G : 32) / 2; distance > 0; distance /= 2)
    x = k_pair<F>(x, distance * APART);
  return x;
}
template <typename T> union k_slots { T value; uint64_t slot[(sizeof(T) + 7) / 8]; };
// Warps meet through slots: every thread reads the value of one warp of its group, and a second
// tree of shuffles joins them.
template <typename F, int G, typename T> K_IN T k_over_group(T x, k_group_scratch &scratch) {
  x = k_over_warp<F, G>(x);
  if (G <= 32)
    return x;
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = G > 32 ? G / 32 : 1;
  k_slots<T> w;
  w.value = x;
  _Pragma("unroll") for (int i = 0; i < (int)(sizeof w / 8); i++)
    if (lane == 0) scratch[i * 32 + warp] = w.slot[i];
  __syncthreads();
  _Pragma("unroll") for (int i = 0; i < (int)(sizeof w / 8); i++)
    w.slot[i] = scratch[i * 32 + warp / warps * warps + lane % warps];
  __syncthreads();
  return k_over_warp<F, G / 32>(w.value);
}
#define K_GROUP_OF(G)                                                                              \
  static_assert(G >= 1 && G <= 1024 && (G & (G - 1)) == 0, "a group is a power of two up to 1024")
#define K_GROUP_WARP(G)                                                                            \
  static_assert(G >= 1 && G <= 32 && (G & (G - 1)) == 0, "larger groups need a k_group_scratch")
#define K_GROUP_VALUE(name, v)                                                                     \
  template <int G> K_IN v k_group_##name(v x, k_group_scratch &scratch) {                          \
    K_GROUP_OF(G);                                                                                 \
    return v::splat(k_over_group<k_take_##name, G>(k_##name##_lanes(x)[0], scratch));              \
  }                                                                                                \
  template <int G, int APART = 1> K_IN v k_group_##name(v x) {                                     \
    K_GROUP_WARP(G * APART);                                                                       \
    return v::splat(k_over_warp<k_take_##name, G, APART>(k_##name##_lanes(x)[0]));                 \
  }
#define K_GROUP_INDEX(name, order, v)                                                              \
  template <int G> K_IN vi k_group_##name(v best, vi at, k_group_scratch &scratch) {               \
    K_GROUP_OF(G);                                                                                 \
    const k_best<v::type> b = {k_##order##_lanes(best)[0], k_##name##_lanes(best, at)[0]};         \
    return vi::splat(k_over_group<k_take_##name, G>(b, scratch).at);                               \
  }                                                                                                \
  template <int G> K_IN vi k_group_##name(v best, vi at) {                                         \
    K_GROUP_WARP(G);                                                                               \
    const k_best<v::type> b = {k_##order##_lanes(best)[0], k_##name##_lanes(best, at)[0]};         \
    return vi::splat(k_over_warp<k_take_##name, G>(b).at);                                         \
  }
#define K_GROUPS(v)                                                                                \
  K_GROUP_VALUE(sum, v) K_GROUP_VALUE(max, v) K_GROUP_VALUE(min, v)                                \
  K_GROUP_INDEX(argmax, max, v) K_GROUP_INDEX(argmin, min, v)
K_ALL(K_GROUPS)
K_GROUP_VALUE(top, vf)

// --- softmax of attention ------------------------------------------------------------------------
// exp of x <= 0, beside a 1: off by 2 ulp of that 1 at most, since x 1.44 is rounded once. Two instructions;
// eight of them are expf.
K vf k_exp_of_row(vf x) { K_LANES x.lane[i] = k_near_exp2(x.lane[i] * 1.44269504f); return x; }
// 1 / x of a sum of such, which needs no test for numbers below 2^-126.
K vf k_inverse_of_row(vf x) { K_EACH(x, k_near_inverse) return x; }

// --- a maximum and a sum of exponentials in one sweep -------------------------------------------
// *s is the sum of exp(x - *m) over the x so far (online_rows.h). One exponential per element: of
// the smaller one, either the element or the sum is scaled. Equal infinities differ by 0 here:
// a sum that began with them is scaled by 0 later, or k_online_result makes it NaN.
#define K_ONLINE(v)                                                                                \
  K void k_online_step(v *m, v *s, v x) {                                                          \
    const v t = k_exp(-k_abs(k_select(x == *m, v::splat(0), x - *m)));                             \
    *s = k_select(x > *m, *s * t + 1, *s + t);                                                     \
    *m = k_max(*m, x);                                                                             \
  }                                                                                                \
  K v k_online_sum(v m, v s, v top) { /* s for top, that was for m */                              \
    return s * k_exp(k_select(m == top, v::splat(0), m - top));                                    \
  }                                                                                                \
  K v k_online_result(v s, v top) { return s + (top - top); }
K_ONLINE(vf)
K_ONLINE(vd)

// --- loads from shared memory ------------------------------------------------------------------
// VL elements (k_load4), one (k_load1) of shared memory at a place.
#if defined(K_PTX)
K vf k_load4(k_place<float> p) {
  vf r;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r.lane[0]), "=f"(r.lane[1]), "=f"(r.lane[2]), "=f"(r.lane[3])
               : "r"(p.address) : "memory");
  return r;
}
K vd k_load4(k_place<double> p) {
  vd r;
  _Pragma("unroll") for (int i = 0; i < 4; i += 2)
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(r.lane[i]), "=d"(r.lane[i + 1])
                 : "r"((p + i).address) : "memory");
  return r;
}
K float k_load1(k_place<float> p) {
  float r;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(r) : "r"(p.address) : "memory");
  return r;
}
K double k_load1(k_place<double> p) {
  double r;
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(r) : "r"(p.address) : "memory");
  return r;
}
#else
template <typename T> K_IN k_vec<T> k_load4(k_place<T> p) {
  k_vec<T> r;
  p.take(VL, VL, r.lane);
  return r;
}
template <typename T> K_IN T k_load1(k_place<T> p) {
  T r;
  p.take(1, 1, &r);
  return r;
}
#endif

// --- asynchronous copies from global to shared memory (cp.async) --------------------------------
// 16 bytes, or 4, to a place whose address is a multiple of that, as is the source's. valid false:
// zeros, and nothing is read. Between this and the wait nobody may touch the destination; after
// the wait it is there for this thread, after the next barrier for others.
template <typename T> K_IN void k_async_16(k_place<T> to, const T *from, bool valid) {
#if defined(K_PTX)
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(to.address), "l"(from), "r"(valid ? 16 : 0) : "memory");
#else
  emu_async(to, valid ? from : (const T *)0, 16);
#endif
}
template <typename T> K_IN void k_async_4(k_place<T> to, const T *from, bool valid) {
#if defined(K_PTX)
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :: "r"(to.address), "l"(from), "r"(valid ? 4 : 0) : "memory");
#else
  emu_async(to, valid ? from : (const T *)0, 4);
#endif
}
// This thread's copies since the last commit become a group.
K void k_async_commit() {
#if defined(K_PTX)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  emu_async_commit();
#endif
}
// Waits for all groups of this thread but the `newer` youngest.
template <int newer> K_IN void k_async_wait() {
#if defined(K_PTX)
  asm volatile("cp.async.wait_group %0;" :: "n"(newer) : "memory");
#else
  emu_async_wait(newer);
#endif
}

// --- matrices in the registers of a warp --------------------------------------------------------
// g = lane / 4, t = lane % 4. Four 8x8 matrices of 16-bit elements: the place of lane 8 m + i is row
// i of matrix m (16 bytes, aligned); r[m] gets elements (g, 2t), (g, 2t + 1) of matrix m, low half
// first; _trans: (2t, g), (2t + 1, g). 32-bit elements go as pairs: r[m] is element (g, t).
template <typename T> K_IN void k_ldmatrix_x4(uint32_t (&r)[4], k_place<T> row) {
#if defined(K_PTX)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row.address) : "memory");
#else
  emu_ldmatrix(r, row, false);
#endif
}
template <typename T> K_IN void k_ldmatrix_x4_trans(uint32_t (&r)[4], k_place<T> row) {
#if defined(K_PTX)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row.address) : "memory");
#else
  emu_ldmatrix(r, row, true);
#endif
}
// c[16,8] += a[16,K] b[K,8]. Of c a lane holds (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
//   tf32, K = 8          a: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)   b: (t, g), (t + 4, g)
//   bf16, f16, K = 16    pairs along K, low half first; a: (g, 2t), (g + 8, 2t), (g, 2t + 8),
//                        (g + 8, 2t + 8); b: (2t, g), (2t + 8, g)
#if defined(K_PTX)
#define K_MMA(name, shape, type)                                                                   \
  K void k_mma_##name(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {           \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "                   \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                 \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                  \
  }
#else
#define K_MMA(name, shape, type)                                                                   \
  K void k_mma_##name(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {           \
    emu_mma_##name(c, a, b0, b1);                                                                  \
  }
#endif
K_MMA(tf32, "m16n8k8", "tf32")
K_MMA(bf16, "m16n8k16", "bf16")
K_MMA(f16, "m16n8k16", "f16")

// --- small floats -----------------------------------------------------------------------------
// To nearest; ties to even, those of tf32 (which has float's bits, the last 13 zero) away from
// zero: the one rounding that sm_80 has for it. x2: two in a word, `low` in the low half.
#if defined(K_PTX)
#define K_CVT(name, result, c, r)                                                                  \
  K result k_##name(float x) { result y; asm("cvt." r ".f32 %0, %1;" : "=" c(y) : "f"(x)); return y; }
#define K_CVT_X2(name, type)                                                                       \
  K uint32_t k_##name##x2(float low, float high) {                                                 \
    uint32_t y;                                                                                    \
    asm("cvt.rn." type ".f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));                        \
    return y;                                                                                      \
  }
K_CVT(tf32, uint32_t, "r", "rna.tf32")
K_CVT(bf16, uint16_t, "h", "rn.bf16")
K_CVT(f16, uint16_t, "h", "rn.f16")
K_CVT_X2(bf16, "bf16x2")
K_CVT_X2(f16, "f16x2")
K float k_from_f16(uint16_t x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; }
#else
K uint32_t k_tf32(float x) { return emu_tf32(x); }
K uint16_t k_bf16(float x) { return emu_bf16(x); }
K uint16_t k_f16(float x) { return emu_f16(x); }
K uint32_t k_bf16x2(float low, float high) { return emu_bf16(low) | (uint32_t)emu_bf16(high) << 16; }
K uint32_t k_f16x2(float low, float high) { return emu_f16(low) | (uint32_t)emu_f16(high) << 16; }
K float k_from_f16(uint16_t x) { return emu_from_f16(x); }
#endif
// For an operand of k_mma_tf32, which looks at the bits above the last 13 alone: those are k_tf32's (of
// numbers too small for f32's exponents, cut off). Half a last place is added away from 0, in two
// instructions; cvt.rna is made of five.
K uint32_t k_tf32_operand(float x) {
  return k_bits_of(fmaf(k_of_bits(k_bits_of(x) & 0xff800000u), 0x1p-11f, x));
}
K float k_from_bf16(uint16_t x) { return k_of_bits((uint32_t)x << 16); }

// In registers they are f32 with fewer digits; in memory 16 bits.
K vf k_tf32(vf x) { K_LANES x.lane[i] = k_of_bits(k_tf32(x.lane[i])); return x; }
// Whole vectors are converted in pairs, which takes as long as one.
#define K_PAIRS(name)                                                                              \
  K void k_encode_##name(uint16_t *e, vf x) {                                                      \
    _Pragma("unroll") for (int i = 0; i < VL; i += 2) {                                            \
      const uint32_t two = k_##name##x2(x.lane[i], x.lane[i + 1]);                                 \
      e[i] = (uint16_t)two;                                                                        \
      e[i + 1] = (uint16_t)(two >> 16);                                                            \
    }                                                                                              \
  }                                                                                                \
  K vf k_to_##name(vf x) {                                                                         \
    uint16_t e[VL];                                                                                \
    k_encode_##name(e, x);                                                                         \
    K_LANES x.lane[i] = k_from_##name(e[i]);                                                       \
    return x;                                                                                      \
  }
K_PAIRS(bf16) K_PAIRS(f16)
#define K_NARROW(v)                                                                                \
  K vf k_to_bf16(v x) { return k_to_bf16(k_to_f32(x)); }                                           \
  K vf k_to_f16(v x) { return k_to_f16(k_to_f32(x)); }
K_NARROW(vi) K_NARROW(vu) K_NARROW(vl) K_NARROW(vd)
#define K_OF_BF16(x, v) k_from_bf16(x)
#define K_AS_BF16(x, m) k_bf16(x)
#define K_OF_F16(x, v) k_from_f16(x)
#define K_AS_F16(x, m) k_f16(x)
K_MEMORY_ENCODED(bf16, uint16_t, vf, K_OF_BF16, K_AS_BF16)
K_MEMORY_ENCODED(f16, uint16_t, vf, K_OF_F16, K_AS_F16)
