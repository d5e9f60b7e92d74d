// Plain versions of kernels: in double precision, one node after the other. They are what `check`
// compares the fast versions with on the machine at hand, and what it takes finite differences of.
// All float types are doubles in their arguments; integers of 64 bits stay what they are. taps and hold: runtime/mlrt.h.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline double k_abs_f64(double x) { return fabs(x); }
static inline double k_sign_f64(double x) { return (x > 0) - (x < 0); }
static inline double k_floor(double x) { return floor(x); }
static inline double k_sqrt(double x) { return sqrt(x); }
static inline double k_rsqrt(double x) { return 1 / sqrt(x); }
static inline double k_exp(double x) { return exp(x); }
static inline double k_expm1(double x) { return expm1(x); }
static inline double k_log(double x) { return log(x); }
static inline double k_log1p(double x) { return log1p(x); }
static inline double k_sin(double x) { return sin(x); }
static inline double k_cos(double x) { return cos(x); }
static inline double k_tanh(double x) { return tanh(x); }
static inline double k_sigmoid(double x) {
  const double e = exp(-fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
static inline double k_erf(double x) { return erf(x); }
static inline double k_not(double x) { return x == 0; }
static inline double k_div(double x, double y) { return x / y; }
static inline double k_mod(double x, double y) { return x - y * floor(x / y); }
static inline double k_int_div_f64(double x, double y) { return y == 0 ? 0 : floor(x / y); }
static inline double k_int_mod_f64(double x, double y) {
  return y == 0 ? 0 : x - y * floor(x / y);
}
static inline double k_pow(double x, double y) { return pow(x, y); }
static inline double k_max_f64(double x, double y) { return x > y ? x : y; }
static inline double k_min_f64(double x, double y) { return x < y ? x : y; }
static inline double k_saturate(double x, double least, double most) {
  return x != x ? 0 : x < least ? least : x > most ? most : trunc(x);
}
static inline double k_select_f64(double c, double x, double y) { return c != 0 ? x : y; }

// Of 64 bits, which no double has.
static inline int64_t k_abs_i64(int64_t x) { return x < 0 ? (int64_t)(0 - (uint64_t)x) : x; }
static inline int64_t k_sign_i64(int64_t x) { return (x > 0) - (x < 0); }
static inline int64_t k_int_div_i64(int64_t x, int64_t y) {
  if (y == 0 || y == -1)
    return y == 0 ? 0 : (int64_t)(0 - (uint64_t)x);
  return x / y - (x % y != 0 && (x % y < 0) != (y < 0));
}
static inline int64_t k_int_mod_i64(int64_t x, int64_t y) {
  const int64_t rest = y == 0 || y == -1 ? 0 : x % y;
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
static inline int64_t k_max_i64(int64_t x, int64_t y) { return x > y ? x : y; }
static inline int64_t k_min_i64(int64_t x, int64_t y) { return x < y ? x : y; }
static inline int64_t k_select_i64(double c, int64_t x, int64_t y) { return c != 0 ? x : y; }
#define K_FOR(name, x) _Generic((x), int64_t: name##_i64, default: name##_f64)
#define k_abs(x) K_FOR(k_abs, x)(x)
#define k_sign(x) K_FOR(k_sign, x)(x)
#define k_int_div(x, y) K_FOR(k_int_div, x)(x, y)
#define k_int_mod(x, y) K_FOR(k_int_mod, x)(x, y)
#define k_max(x, y) K_FOR(k_max, x)(x, y)
#define k_min(x, y) K_FOR(k_min, x)(x, y)
#define k_select(c, x, y) K_FOR(k_select, x)(c, x, y)

// Fewer digits: tf32 to nearest, ties away from 0; bf16 and f16 to nearest, ties to even. While
// gradients are checked numbers keep all of theirs (plain.c).
static inline uint32_t k_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}
static inline double k_of_bits(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}
static inline double k_narrow_tf32(int hold, double x) {
  const float f = (float)x;
  return hold || f - f != 0 ? x : k_of_bits((k_bits(f) + 0x1000u) & 0xffffe000u);
}
static inline double k_narrow_bf16(int hold, double x) {
  const uint32_t u = k_bits((float)x);
  return hold || x != x ? x : k_of_bits((u + 0x7fffu + (u >> 16 & 1)) & 0xffff0000u);
}
static inline double k_narrow_f16(int hold, double x) {
  const double m = fabs((double)(float)x);
  if (hold || x != x || m >= 65520)
    return hold || x != x ? x : copysign(INFINITY, x);
  const int digit = (m < 0x1p-14 ? -14 : ilogb(m)) - 10; // of the last place
  return copysign(ldexp(rint(ldexp(m, -digit)), digit), x);
}

// n zeros; there is nothing that a check without memory could say.
static double *k_take(int64_t n) {
  double *p = calloc(n ? (size_t)n : 1, sizeof(double));
  if (!p)
    abort();
  return p;
}

enum { K_RECORD = 1, K_REPLAY = 2 }; // mlrt_hold

// Element `at` of a value that has no gradient: as computed, or as the run that recorded it had it.
static inline double k_hold(double *const *taps, int hold, int tap, int64_t at, double value) {
  if (hold == K_RECORD)
    taps[tap][at] = value;
  return hold == K_REPLAY ? taps[tap][at] : value;
}

// Matmuls are what check spends its time on, and this file is compiled for size: hence the vectors.
// The right operand, [depth, n], is brought into blocks of columns: element k, j is at k_block.
enum { K_LANES = 8, K_COLUMNS = 32 };
typedef double k_vector __attribute__((vector_size(64), aligned(8), may_alias));
static inline int64_t k_block(int64_t depth, int64_t k, int64_t j) {
  return (j / K_COLUMNS * depth + k) * K_COLUMNS + j % K_COLUMNS;
}
static double *k_take_blocks(int64_t depth, int64_t n) {
  return k_take((n + K_COLUMNS - 1) / K_COLUMNS * K_COLUMNS * depth);
}

// y[j] = sum over k of left[k] * right[k, j], in the order of k.
static void k_row(double *y, int64_t n, const double *left, const double *right, int64_t depth) {
  for (int64_t j = 0; j < n; j += K_COLUMNS) {
    k_vector s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (int64_t k = 0; k < depth; k++, right += K_COLUMNS) {
      s0 += left[k] * *(const k_vector *)right;
      s1 += left[k] * *(const k_vector *)(right + K_LANES);
      s2 += left[k] * *(const k_vector *)(right + 2 * K_LANES);
      s3 += left[k] * *(const k_vector *)(right + 3 * K_LANES);
    }
    k_vector sums[] = {s0, s1, s2, s3};
    memcpy(y + j, sums, sizeof(double) * (size_t)(n - j < K_COLUMNS ? n - j : K_COLUMNS));
  }
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
K_PUT(bf16, double)
K_PUT(f16, double)
K_PUT(f32, double)
K_PUT(f64, double)

static void k_put_i64(void *to, const int64_t *from, int64_t n) {
  memcpy(to, from, (size_t)n * sizeof *from);
}

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
