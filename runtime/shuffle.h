// shuffle.h: the order of samples in an epoch, without a table.
//
// A seeded permutation of [0, n) computed one element at a time: (seed, epoch, position) alone say
// which sample comes, so a checkpoint stores a position and nothing else.
#ifndef RUNTIME_SHUFFLE_H
#define RUNTIME_SHUFFLE_H

#include <stdint.h>

enum { MLRT_SHUFFLE_ROUNDS = 6 };

typedef struct mlrt_shuffle {
  uint64_t n;
  int half_bits; // the domain has 2 * half_bits bits
  uint64_t keys[MLRT_SHUFFLE_ROUNDS];
} mlrt_shuffle;

mlrt_shuffle mlrt_shuffle_make(uint64_t seed, int64_t epoch, int64_t n);
// The sample at position i of the epoch; i in [0, n). Each sample comes exactly once.
int64_t mlrt_shuffle_at(const mlrt_shuffle *s, int64_t i);

#endif
