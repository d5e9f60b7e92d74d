// random.c: see random.h.
#include "runtime/random.h"
#include "runtime/number_io.h"
#include "runtime/safetensors.h"

// The finaliser of SplitMix64 over a Weyl sequence.
uint64_t mlrt_random_bits(uint64_t seed, uint64_t index) {
  uint64_t x = seed * UINT64_C(0xD1342543DE82EF95) + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

static double draw_float(const mlrt_random *r, uint64_t bits) {
  double v = 0.25 + (double)(bits >> 11) * 0x1p-53;
  v = r->small ? v / 4 : v;
  return !r->positive && (bits & 1) ? -v : v;
}

static double draw_integer(mlrt_dtype t, int64_t limit, uint64_t bits) {
  if (t == MLRT_BOOL)
    return (double)(bits >> 63);
  uint64_t range = limit > 0 ? (uint64_t)limit : 100;
  return (double)((bits >> 1) % range + (limit <= 0));
}

void mlrt_random_fill(const mlrt_random *r, char *to, int64_t bytes, mlrt_dtype t, int64_t limit) {
  int size = mlrt_dtype_bytes(t);
  bool is_float = mlrt_is_float(t);
  for (int64_t i = 0; i < bytes / size; i++) {
    uint64_t bits = mlrt_random_bits(r->seed, (uint64_t)i);
    mlrt_store(to + i * size, t, is_float ? draw_float(r, bits) : draw_integer(t, limit, bits));
  }
}
