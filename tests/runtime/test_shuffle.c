// test_shuffle.c: the order of an epoch is a permutation, differs between epochs and seeds, and
// looks uniform.
#include "runtime/shuffle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;

static void check_bijective(uint64_t seed, int64_t epoch, int64_t n) {
  mlrt_shuffle s = mlrt_shuffle_make(seed, epoch, n);
  char *seen = calloc((size_t)n, 1);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = mlrt_shuffle_at(&s, i);
    if (at < 0 || at >= n || seen[at]) {
      fprintf(stderr, "seed %llu, epoch %lld, n %lld: position %lld gives %lld%s\n",
              (unsigned long long)seed, (long long)epoch, (long long)n, (long long)i, (long long)at,
              at >= 0 && at < n ? " again" : "");
      failures++;
      break;
    }
    seen[at] = 1;
  }
  free(seen);
}

// How many positions hold the same sample in both orders; about 1 in a random pair.
static int64_t fixed_points(mlrt_shuffle a, mlrt_shuffle b, int64_t n) {
  int64_t same = 0;
  for (int64_t i = 0; i < n; i++)
    same += mlrt_shuffle_at(&a, i) == mlrt_shuffle_at(&b, i);
  return same;
}

static void check_different(void) {
  int64_t n = 60000;
  for (int64_t epoch = 0; epoch < 5; epoch++) {
    mlrt_shuffle here = mlrt_shuffle_make(7, epoch, n);
    int64_t next = fixed_points(here, mlrt_shuffle_make(7, epoch + 1, n), n);
    int64_t seed = fixed_points(here, mlrt_shuffle_make(8, epoch, n), n);
    int64_t swapped = fixed_points(mlrt_shuffle_make(2, 3, n), mlrt_shuffle_make(3, 2, n), n);
    if (next > 12 || seed > 12 || swapped > 12) {
      fprintf(stderr,
              "epoch %lld: orders agree in %lld (next epoch), %lld (other seed), %lld places\n",
              (long long)epoch, (long long)next, (long long)seed, (long long)swapped);
      failures++;
    }
  }
}

// Chi-square of `cells` counts with equal expectation, in standard deviations from its mean.
static double chi_square_sigmas(const int64_t *counts, int cells, double expected) {
  double chi = 0;
  for (int i = 0; i < cells; i++)
    chi += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
  return (chi - (cells - 1)) / sqrt(2.0 * (cells - 1));
}

static void expect_uniform(const char *what, const int64_t *counts, int cells, double expected) {
  double sigmas = chi_square_sigmas(counts, cells, expected);
  if (fabs(sigmas) > 5) {
    fprintf(stderr, "%s: chi-square is %.1f standard deviations off\n", what, sigmas);
    failures++;
  }
}

// Where sample pairs land: (order of i, order of i + 1) in a 16 x 16 grid, over many epochs.
static void check_pairs(int64_t n, int64_t epochs) {
  int64_t grid[256] = {0}, total = 0;
  for (int64_t epoch = 0; epoch < epochs; epoch++) {
    mlrt_shuffle s = mlrt_shuffle_make(1337, epoch, n);
    for (int64_t i = 0; i + 1 < n; i += 2, total++)
      grid[mlrt_shuffle_at(&s, i) * 16 / n * 16 + mlrt_shuffle_at(&s, i + 1) * 16 / n]++;
  }
  char what[64];
  snprintf(what, sizeof what, "pairs of n = %lld", (long long)n);
  expect_uniform(what, grid, 256, (double)total / 256);
}

// All 6 orders of 3 samples, all 24 of 4, must come equally often over epochs.
static void check_small(int n, int orders) {
  int64_t counts[256] = {0};
  int64_t epochs = 24000;
  for (int64_t epoch = 0; epoch < epochs; epoch++) {
    mlrt_shuffle s = mlrt_shuffle_make(5, epoch, n);
    int code = 0;
    for (int i = 0; i < n; i++)
      code = code * n + (int)mlrt_shuffle_at(&s, i);
    counts[code]++;
  }
  int64_t seen[32];
  int num = 0;
  for (int i = 0; i < 256; i++)
    if (counts[i] && num < 32)
      seen[num++] = counts[i];
  if (num != orders) {
    fprintf(stderr, "n = %d: %d of %d orders came\n", n, num, orders);
    failures++;
  } else
    expect_uniform("orders", seen, orders, (double)epochs / orders);
}

int main(void) {
  static const int64_t sizes[] = {1,  2,  3,   4,   5,   7,    15,   16,   17,   63,    64,
                                  65, 99, 255, 256, 257, 1000, 1797, 4096, 4097, 60000, 65537};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (uint64_t seed = 0; seed < 3; seed++)
      check_bijective(seed, (int64_t)seed * 2, sizes[i]);
  for (int64_t n = 1; n <= 300; n++)
    check_bijective(UINT64_MAX, n, n);
  check_different();
  check_pairs(1000, 400);
  check_pairs(60000, 8);
  check_small(3, 6);
  check_small(4, 24);
  mlrt_shuffle large = mlrt_shuffle_make(1, 1, INT64_MAX); // the largest domain must not hang
  int64_t at = mlrt_shuffle_at(&large, INT64_MAX - 1);
  if (at < 0) {
    fprintf(stderr, "n = 2^63 - 1: position beyond the end\n");
    failures++;
  }
  return failures != 0;
}
