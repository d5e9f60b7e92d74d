// test_emulator_wrappers.c: host bodies of the wrapped instructions against the tables of the PTX
// ISA, written out anew here: which lane holds which element of mma's operands, what ldmatrix hands
// to whom, how small floats round. The kernels fill and read registers by those tables, so that the
// same text gives the same numbers on a GPU.
#include "tests/emulator/support_emulator.h"
#include "tests/unit/support_passes.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 4096, WORDS = 4096 };

typedef struct bench {
  emu_machine *m;
  void *handle;
  _Alignas(64) float x[FLOATS]; // read 16 bytes at a time
  _Alignas(64) uint32_t y[WORDS];
} bench;

static void run(bench *b, const char *name) {
  char *args[2] = {(char *)b->x, (char *)b->y};
  const emu_entry *e = emu_find(b->handle, name);
  emu_forget_all(b->m);
  emu_buffer(b->m, b->x, sizeof b->x, false);
  emu_buffer(b->m, b->y, sizeof b->y, true);
  emu_report r;
  if (!e || !emu_launch(b->m, e, 1, args, sizeof args, NULL, &r))
    test_fail("%s: %s", name, e ? r.text : "no such kernel");
}

static float as_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// --- mma: small multiples of 1/8, exact in every format ------------------------------------------
static void run_on_eighths(bench *b, const char *name) {
  uint64_t seed = 3;
  for (int i = 0; i < FLOATS; i++)
    b->x[i] = (float)floor(test_random(&seed, -40, 40)) / 8;
  run(b, name);
}

static void check_product(bench *b, const char *name, int k) {
  run_on_eighths(b, name);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) {
      double sum = (double)b->x[384 + i * 8 + j];
      for (int p = 0; p < k; p++)
        sum += (double)b->x[i * k + p] * (double)b->x[256 + p * 8 + j];
      if (as_float(b->y[i * 8 + j]) != (float)sum)
        test_fail("%s: c[%d,%d] = %g, not %g", name, i, j, (double)as_float(b->y[i * 8 + j]), sum);
    }
}

// The same; sums of 64 columns side by side are folded into one.
static void check_wide_product(bench *b, const char *name, int columns) {
  run_on_eighths(b, name);
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 64; j++) {
      double want = 0;
      for (int n = j; n < columns; n += 64) {
        double sum = (double)b->x[i * 3 + n];
        for (int k = 0; k < 16; k++)
          sum += (double)b->x[i * 16 + k] * (double)b->x[1024 + (k * columns + n) % 3000];
        want += sum * (1 + n / 64);
      }
      double got = (double)as_float(b->y[i * 64 + j]);
      if (got != want)
        test_fail("%s: c[%d,%d] = %g, not %g", name, i, j, got, want);
    }
}

static void check_wide_products(bench *b) {
  check_wide_product(b, "wgmma_64", 64);
  check_wide_product(b, "wgmma_128", 128);
  check_wide_product(b, "wgmma_192", 192);
  check_wide_product(b, "wgmma_256", 256);
}

// --- ldmatrix ---------------------------------------------------------------------------------
// The value that element (row, col) of matrix m has: which row of the array lane 8 m + row gave.
static uint32_t element(int m, int row, int col, int wide) {
  return (uint32_t)(((8 * m + row) * 5 % 32 * wide + col) * 3 + 1);
}

static void check_ldmatrix(bench *b) {
  static const char *const names[] = {"ldmatrix", "ldmatrix_trans", "ldmatrix_32"};
  for (int kind = 0; kind < 3; kind++) {
    run(b, names[kind]);
    for (int lane = 0; lane < 32; lane++)
      for (int m = 0; m < 4; m++) {
        int g = lane / 4, t = lane % 4;
        uint32_t want = kind == 0   ? element(m, g, 2 * t, 24) | element(m, g, 2 * t + 1, 24) << 16
                        : kind == 1 ? element(m, 2 * t, g, 24) | element(m, 2 * t + 1, g, 24) << 16
                                    : element(m, g, t, 12);
        if (b->y[lane * 4 + m] != want)
          test_fail("%s: lane %d, r[%d] is %x, not %x", names[kind], lane, m, b->y[lane * 4 + m],
                    want);
      }
  }
}

// --- rounding ---------------------------------------------------------------------------------
static double of_f16(uint32_t h) {
  int exponent = h >> 10 & 31, fraction = h & 1023;
  double m = exponent == 31  ? (fraction ? NAN : INFINITY)
             : exponent == 0 ? ldexp(fraction, -24)
                             : ldexp(1024 + fraction, exponent - 25);
  return h & 0x8000 ? -m : m;
}
static double of_bf16(uint32_t h) {
  return (double)as_float(h << 16);
}
static double of_tf32(uint32_t w) {
  return (double)as_float(w << 13);
}

// h is the nearest to x of its neighbours h - 1, h, h + 1 (as magnitudes); of two as near, the even
// one, or the larger. Above the largest number the next power of two counts as its neighbour.
static bool is_nearest(float x, uint32_t h, double (*of)(uint32_t), uint32_t infinity, bool even) {
  double v = fabs((double)x), top = of(infinity - 1) + (of(infinity - 1) - of(infinity - 2));
  uint32_t m = h & (infinity | (infinity - 1));
  double here = m == infinity ? top : of(m);
  double below = m == 0 ? here : of(m - 1), above = m + 1 == infinity ? top : of(m + 1);
  if (m == infinity)
    above = INFINITY;
  double d = fabs(v - here), down = m == 0 ? INFINITY : fabs(v - below), up = fabs(v - above);
  if (isinf(v))
    return m == infinity;
  if (d > down || d > up)
    return false;
  bool tie = d == down || d == up;
  return !tie || (even ? m % 2 == 0 : here > v);
}

static void check_rounding(bench *b) {
  static const float odd[] = {
      0.0f,     -0.0f,          1.0f,           1.00390625f,     1.01171875f,
      65504.0f, 65519.9f,       65520.0f,       1e-8f,           5.9604645e-8f,
      2.98e-8f, 6.1e-5f,        6.0976e-5f,     INFINITY,        -INFINITY,
      3.4e38f,  1.00048828125f, 1.00146484375f, 2049.0f,         2051.0f,
      1e-40f,   8.94e-8f,       -1.00390625f,   1.000244140625f, 1.000732421875f};
  uint64_t seed = 11;
  for (int i = 0; i < FLOATS; i++)
    b->x[i] = (float)(ldexp(test_random(&seed, -2, 2), (int)test_random(&seed, -26, 18)));
  memcpy(b->x, odd, sizeof odd);
  b->x[999] = NAN;
  run(b, "rounding");
  for (int i = 0; i < 999; i++) {
    const uint32_t *y = b->y + 4 * i;
    float x = b->x[i];
    if (!is_nearest(x, y[0], of_bf16, 0x7f80, true) || (y[0] >> 15 != 0) != signbit(x))
      test_fail("bf16 of %.9g is %x", (double)x, y[0]);
    if (!is_nearest(x, y[1], of_f16, 0x7c00, true) || (y[1] >> 15 != 0) != signbit(x))
      test_fail("f16 of %.9g is %x", (double)x, y[1]);
    if (y[2] & 0x1fff || !is_nearest(x, y[2] >> 13, of_tf32, 0x3fc00, false) ||
        (y[2] >> 31 != 0) != signbit(x))
      test_fail("tf32 of %.9g is %x", (double)x, y[2]);
    if ((y[3] & 0xffffe000) != y[2] && fabsf(x) >= FLT_MIN)
      test_fail("tf32 of %.9g as an operand is %x", (double)x, y[3]);
    if (!(y[3] & 1))
      test_fail("two in a word differ from one by one for %.9g", (double)x);
  }
  const uint32_t *y = b->y + 4 * 999;
  if (y[0] != 0x7fff || y[1] != 0x7fff || y[2] != 0x7fffffff)
    test_fail("NaN becomes %x %x %x", y[0], y[1], y[2]);
  if (!isnan(as_float(y[3] & 0xffffe000)))
    test_fail("NaN as an operand is %x", y[3]);
}

static void check_widening(bench *b) {
  run(b, "widen");
  for (int i = 0; i < 2048; i++) {
    uint32_t h = (uint16_t)(i * 32 + i % 31);
    double want = of_f16(h), got = (double)as_float(b->y[2 * i]);
    if (!(isnan(want) ? isnan(got) : got == want && signbit(got) == signbit(want)))
      test_fail("f16 %x is %g, not %g", h, got, want);
    if (b->y[2 * i + 1] != h << 16)
      test_fail("bf16 %x is %x", h, b->y[2 * i + 1]);
  }
}

// match.any: bit i for each lane of the warp with the same value. popc: ones.
static void check_match(bench *b) {
  for (int i = 0; i < 64; i++)
    b->x[i] = (float)(i * i % 7);
  run(b, "match");
  for (int t = 0; t < 64; t++) {
    uint32_t want = 0, bits;
    for (int i = 0; i < 32; i++)
      if (b->x[t / 32 * 32 + i] == b->x[t])
        want |= 1u << i;
    memcpy(&bits, &b->x[t], sizeof bits);
    uint32_t ones = 0;
    for (; bits; bits >>= 1)
      ones += bits & 1;
    if (b->y[t] != want || b->y[64 + t] != ones)
      test_fail("match: thread %d has %x, not %x; ones %u, not %u", t, b->y[t], want, b->y[64 + t],
                ones);
  }
}

static void check_async(bench *b) {
  for (int i = 0; i < FLOATS; i++)
    b->x[i] = (float)i + 0.5f;
  run(b, "async");
  for (int i = 0; i < 256; i++) {
    int t = i / 4, k = i % 4;
    float sixteen = t % 3 != 0 ? b->x[i] : 0;
    float four = (t + k) % 5 != 0 ? b->x[512 + t * 4 + k * 7 % 4] : 0;
    if (as_float(b->y[i]) != sixteen || as_float(b->y[256 + i]) != four)
      test_fail("async: element %d is %g and %g, not %g and %g", i, (double)as_float(b->y[i]),
                (double)as_float(b->y[256 + i]), (double)sixteen, (double)four);
  }
}

static void check_places(bench *b) {
  for (int i = 0; i < FLOATS; i++)
    b->x[i] = (float)i + 0.25f;
  run(b, "places");
  for (int t = 0; t < 64; t++) {
    int from = t * 7 % 32 * 4, wide = 128 + 4 + t * 5 % 31 * 4;
    const uint32_t *y = b->y + t * 10;
    bool ok = as_float(y[8]) == b->x[from + 3] && as_float(y[9]) == b->x[wide + 1] * 3;
    for (int i = 0; i < 4; i++)
      ok &= as_float(y[i]) == b->x[from + i] && as_float(y[4 + i]) == b->x[wide + i] * 3;
    if (!ok)
      test_fail("places: thread %d has other elements", t);
  }
}

static void check_shuffle(bench *b) {
  run(b, "shuffle");
  for (uint32_t t = 0; t < 64; t++)
    if (b->y[t] != (t ^ 5) * 4 + 1 || b->y[64 + t] != (t ^ 16))
      test_fail("shuffle: thread %u has %u and %u", t, b->y[t], b->y[64 + t]);
}

// wgmma as GPUs have it that have no wgmma: by ldmatrix and mma.sync.
static void check_without_wgmma(bench *b, ir_arena *a) {
  bench other = {.m = b->m};
  const char *text = test_kernel_text(a, "wrappers.cu");
  other.handle = emu_build(ir_format(a, "#define K_WGMMA_BY_MMA 1\n%s", text), NULL);
  if (!other.handle) {
    test_fail("kernels without wgmma do not compile");
    return;
  }
  check_wide_products(&other);
}

int main(void) {
  ir_arena *a = ir_arena_new();
  static bench b;
  b.handle = emu_build(test_kernel_text(a, "wrappers.cu"), NULL);
  b.m = emu_new();
  if (b.handle) {
    check_product(&b, "bf16", 16);
    check_product(&b, "f16", 16);
    check_product(&b, "tf32", 8);
    check_wide_products(&b);
    check_without_wgmma(&b, a);
    check_ldmatrix(&b);
    check_rounding(&b);
    check_widening(&b);
    check_match(&b);
    check_async(&b);
    check_places(&b);
    check_shuffle(&b);
  } else {
    test_fail("kernels do not compile");
  }
  emu_free(b.m);
  ir_arena_free(a);
  return test_report("emulator_wrappers");
}
