// Third text before CUDA kernels: float functions and random numbers on vectors. Errors stay within
// 2 ulp, as on the CPU (tests/unit/test_cuda_prelude.c measures them). On a GPU they are the
// compiler's functions in full precision, in the emulator libm's; sin, cos and pow are written out
// where the compiler's take local memory (sinf of large arguments) or err by more (powf: 4 ulp).
// clang-format off: one-line functions, side by side, read as tables

// --- float functions --------------------------------------------------------------------------
#define K_FUNCTION(name)                                                                           \
  K vf k_##name(vf x) { K_EACH(x, name##f) return x; }                                             \
  K vd k_##name(vd x) { K_EACH(x, name) return x; }
K_FUNCTION(exp) K_FUNCTION(expm1) K_FUNCTION(log) K_FUNCTION(log1p) K_FUNCTION(tanh) K_FUNCTION(erf)
// Of -|x| alone: no overflow, and all digits far below 0.
K float k_sigmoidf(float x) { const float e = expf(-fabsf(x)); return (x < 0.0f ? e : 1.0f) / (e + 1.0f); }
K double k_sigmoid(double x) { const double e = exp(-fabs(x)); return (x < 0.0 ? e : 1.0) / (e + 1.0); }
K vf k_sigmoid(vf x) { K_EACH(x, k_sigmoidf) return x; }
K vd k_sigmoid(vd x) { K_EACH(x, k_sigmoid) return x; }

// x = quarter * pi / 2 + rest, |rest| <= pi / 4, quarter modulo 4.
struct k_angle { float rest; int32_t quarter; };
// 2 / pi in overlapping words of 32 bits, a byte apart.
#if defined(K_GPU)
static __device__ const uint32_t k_two_over_pi[24] = {
#else
static const uint32_t k_two_over_pi[24] = {
#endif
    0xa2,       0xa2f9,     0xa2f983,   0xa2f9836e, 0xf9836e4e, 0x836e4e44, 0x6e4e4415, 0x4e441529,
    0x441529fc, 0x1529fc27, 0x29fc2757, 0xfc2757d1, 0x2757d1f5, 0x57d1f534, 0xd1f534dd, 0xf534ddc0,
    0x34ddc0db, 0xddc0db62, 0xc0db6295, 0xdb629599, 0x6295993c, 0x95993c43, 0x993c4390, 0x3c439041};
K uint32_t k_bits_of(float x) { union { float f; uint32_t u; } w; w.f = x; return w.u; }
K float k_of_bits(uint32_t x) { union { float f; uint32_t u; } w; w.u = x; return w.f; }
// Large arguments: the mantissa times those 96 bits of 2 / pi that matter (Payne and Hanek; this
// form from ARM's optimized-routines).
K k_angle k_reduce_far(float x) {
  const uint32_t bits = k_bits_of(x);
  const uint32_t *const from = &k_two_over_pi[(bits >> 26) & 15];
  const uint32_t m = ((bits & 0xffffff) | 0x800000) << ((bits >> 23) & 7);
  uint64_t p = (uint64_t)m * from[8] >> 32 | (uint64_t)(m * from[0]) << 32;
  p += (uint64_t)m * from[4];
  const uint64_t n = (p + (1ull << 61)) >> 62;
  const double rest = (double)(int64_t)(p - (n << 62)) * 3.4061215800304146e-19; // pi / 2 / 2^62
  k_angle a;
  a.rest = (float)(bits >> 31 ? -rest : rest);
  a.quarter = bits >> 31 ? -(int32_t)n : (int32_t)n;
  return a;
}
K k_angle k_reduce(float x) {
  if (!(fabsf(x) < 71476.0f))
    return k_reduce_far(x);
  k_angle a;
  const float n = rintf(x * 0.636619747f);
  a.rest = fmaf(n, -1.5707962512969971f, x);
  a.rest = fmaf(n, -7.5497894158615964e-8f, a.rest);
  a.rest = fmaf(n, -5.3903025299577648e-15f, a.rest);
  a.quarter = (int32_t)n;
  return a;
}
// sin for shift 0, cos for shift 1. Infinity gives NaN.
K float k_sin_cos(float x, int shift) {
  if (!(fabsf(x) < __builtin_inff()))
    return x - x;
  const k_angle a = k_reduce(x);
  const int32_t quarter = a.quarter + shift;
  const float z = a.rest * a.rest;
  float s = fmaf(2.86567956e-6f, z, -1.98559923e-4f), c = fmaf(2.44677067e-5f, z, -1.38877297e-3f);
  s = fmaf(s, z, 8.33338592e-3f);
  s = fmaf(s, z, -1.66666672e-1f);
  s = fmaf(s, a.rest * z, a.rest);
  c = fmaf(c, z, 4.16666567e-2f);
  c = fmaf(c, z, -0.5f);
  c = fmaf(c, z, 1.0f);
  const float y = quarter & 1 ? c : s;
  return quarter & 2 ? -y : y;
}
K vf k_sin(vf x) { K_LANES x.lane[i] = x.lane[i] == 0 ? x.lane[i] : k_sin_cos(x.lane[i], 0); return x; }
K vf k_cos(vf x) { K_LANES x.lane[i] = k_sin_cos(x.lane[i], 1); return x; }
K vd k_sin(vd x) { K_EACH(x, sin) return x; }
K vd k_cos(vd x) { K_EACH(x, cos) return x; }
K vf k_pow(vf x, vf y) {
  K_LANES x.lane[i] = (float)pow((double)x.lane[i], (double)y.lane[i]);
  return x;
}
K vd k_pow(vd x, vd y) { K_LANES x.lane[i] = pow(x.lane[i], y.lane[i]); return x; }

// --- random numbers: Philox4x32-10, one block of four words per lane ----------------------------
struct k_block_words { uint32_t w[4]; };
K k_block_words k_philox_one(int64_t seed, int64_t step, uint32_t stream, uint64_t block) {
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = stream, c3 = (uint32_t)step;
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)((uint64_t)seed >> 32);
  _Pragma("unroll") for (int i = 0; i < 10; i++) {
    const uint64_t p0 = (uint64_t)c0 * 0xD2511F53u, p1 = (uint64_t)c2 * 0xCD9E8D57u;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  k_block_words r = {{c0, c1, c2, c3}};
  return r;
}
struct k_words { vu w[4]; };
K k_words k_philox(vl seed, vl step, uint32_t stream, vlu block) {
  k_words r;
  K_LANES {
    const k_block_words b = k_philox_one(seed[0], step[0], stream, block.lane[i]);
    _Pragma("unroll") for (int j = 0; j < 4; j++) r.w[j].lane[i] = b.w[j];
  }
  return r;
}
// One of four, without an index that would put them into memory.
K uint32_t k_word(const k_block_words &b, int which) {
  const uint32_t low = which & 1 ? b.w[1] : b.w[0], high = which & 1 ? b.w[3] : b.w[2];
  return which & 2 ? high : low;
}
// Uniform in [0, 1): element e has word e % 4 of block e / 4.
K float k_unit(uint32_t word) { return (float)(int32_t)(word >> 8) * 5.9604644775390625e-8f; }
K vf k_uniform(vl seed, vl step, uint32_t stream, vl element) {
  vf r;
  K_LANES {
    const int64_t e = element.lane[i];
    r.lane[i] = k_unit(k_word(k_philox_one(seed[0], step[0], stream, (uint64_t)(e >> 2)), (int)(e & 3)));
  }
  return r;
}
// The same for elements first, first + 1, ...: they lie in one block or in two.
K vf k_uniform_run(vl seed, vl step, uint32_t stream, int64_t first) {
  const int skip = (int)(first & 3);
  const uint64_t block = (uint64_t)(first >> 2);
  const k_block_words a = k_philox_one(seed[0], step[0], stream, block);
  k_block_words b = a;
  if (skip != 0)
    b = k_philox_one(seed[0], step[0], stream, block + 1);
  vf r;
  K_LANES r.lane[i] = k_unit(i + skip < 4 ? k_word(a, i + skip) : k_word(b, i + skip - 4));
  return r;
}
// Normal by Box-Muller: element e has words 2 (e % 2) and 2 (e % 2) + 1 of block e / 2.
K vf k_normal(vl seed, vl step, uint32_t stream, vl element) {
  vf u1, u2;
  K_LANES {
    const int64_t e = element.lane[i];
    const k_block_words b = k_philox_one(seed[0], step[0], stream, (uint64_t)(e >> 1));
    const uint32_t w1 = e & 1 ? b.w[2] : b.w[0], w2 = e & 1 ? b.w[3] : b.w[1];
    u1.lane[i] = (float)(int32_t)((w1 >> 8) + 1) * 5.9604644775390625e-8f;
    u2.lane[i] = (float)(int32_t)(w2 >> 8) * 5.9604644775390625e-8f;
  }
  return k_sqrt(-2.0f * k_log(u1)) * k_cos(u2 * 6.28318530717958647692f);
}
