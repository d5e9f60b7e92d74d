// Plain versions of kernels: scalar, in double precision, one node after the other. They are what
// `check` compares the fast versions with on the machine at hand. Nothing here is meant to be fast.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline double k_abs(double x) { return fabs(x); }
static inline double k_sign(double x) { return (x > 0) - (x < 0); }
static inline double k_floor(double x) { return floor(x); }
static inline double k_sqrt(double x) { return sqrt(x); }
static inline double k_rsqrt(double x) { return 1 / sqrt(x); }
static inline double k_exp(double x) { return exp(x); }
static inline double k_log(double x) { return log(x); }
static inline double k_log1p(double x) { return log1p(x); }
static inline double k_sin(double x) { return sin(x); }
static inline double k_cos(double x) { return cos(x); }
static inline double k_tanh(double x) { return tanh(x); }
static inline double k_erf(double x) { return erf(x); }
static inline double k_not(double x) { return x == 0; }
static inline double k_div(double x, double y) { return x / y; }
static inline double k_mod(double x, double y) { return x - y * floor(x / y); }
static inline double k_int_div(double x, double y) { return y == 0 ? 0 : floor(x / y); }
static inline double k_int_mod(double x, double y) { return y == 0 ? 0 : x - y * floor(x / y); }
static inline double k_pow(double x, double y) { return pow(x, y); }
static inline double k_max(double x, double y) { return x > y ? x : y; }
static inline double k_min(double x, double y) { return x < y ? x : y; }
static inline double k_select(double c, double x, double y) { return c != 0 ? x : y; }

// n zeros; there is nothing that a check without memory could say.
static double *k_take(int64_t n) {
  double *p = calloc(n ? (size_t)n : 1, sizeof(double));
  if (!p)
    abort();
  return p;
}

#define K_PUT(name, type)                                                                          \
  static void k_put_##name(void *to, const double *from, int64_t n) {                              \
    for (int64_t i = 0; i < n; i++)                                                                \
      ((type *)to)[i] = (type)from[i];                                                             \
  }
K_PUT(bool, uint8_t)
K_PUT(u8, uint8_t)
K_PUT(i8, int8_t)
K_PUT(u16, uint16_t)
K_PUT(i32, int32_t)
K_PUT(u32, uint32_t)
K_PUT(i64, int64_t)
K_PUT(f32, float)
K_PUT(f64, double)

static inline int64_t k_clamp(double index, int64_t rows) {
  return index < 0 ? 0 : index >= (double)rows ? rows - 1 : (int64_t)index;
}

// Philox4x32-10 (Salmon et al., SC 2011); what the words mean is in docs/ir.md.
static inline void k_philox(uint32_t key[2], uint32_t c[4]) {
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t n[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ key[0], (uint32_t)p1,
                     (uint32_t)(p0 >> 32) ^ c[3] ^ key[1], (uint32_t)p0};
    for (int i = 0; i < 4; i++)
      c[i] = n[i];
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
}

static inline void k_words(double seed, double step, uint32_t stream, uint64_t block,
                           uint32_t c[4]) {
  uint64_t s = (uint64_t)(int64_t)seed;
  uint32_t key[2] = {(uint32_t)s, (uint32_t)(s >> 32)};
  c[0] = (uint32_t)block;
  c[1] = (uint32_t)(block >> 32);
  c[2] = stream;
  c[3] = (uint32_t)(int64_t)step;
  k_philox(key, c);
}

static inline double k_uniform(double seed, double step, uint32_t stream, int64_t i) {
  uint32_t c[4];
  k_words(seed, step, stream, (uint64_t)i / 4, c);
  return (c[i % 4] >> 8) * 0x1p-24;
}

static inline double k_normal(double seed, double step, uint32_t stream, int64_t i) {
  uint32_t c[4];
  k_words(seed, step, stream, (uint64_t)i / 2, c);
  const uint32_t *w = c + 2 * (i % 2);
  double u1 = ((w[0] >> 8) + 1) * 0x1p-24, u2 = (w[1] >> 8) * 0x1p-24;
  return sqrt(-2 * log(u1)) * cos(6.283185307179586 * u2);
}
