// random.h: numbers for `check`: a function of (seed, index), so that any element can be asked for.
#ifndef RUNTIME_RANDOM_H
#define RUNTIME_RANDOM_H

#include "runtime/mlrt.h"

typedef struct mlrt_random {
  uint64_t seed;
  bool positive; // floats of both signs, or positive only (roots and logarithms stay finite)
  bool small;    // floats of a quarter of the size
} mlrt_random;

uint64_t mlrt_random_bits(uint64_t seed, uint64_t index);
// Fills `bytes` bytes. Floats have magnitudes in [0.25, 1.25): sums and quotients stay tame.
// Integers lie in [0, limit), or in [1, 100] when limit is 0; bool is 0 or 1.
void mlrt_random_fill(const mlrt_random *r, char *to, int64_t bytes, mlrt_dtype t, int64_t limit);

#endif
