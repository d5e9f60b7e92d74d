// shuffle.c: a keyed permutation of [0, n) by a Feistel network (see shuffle.h).
//
// The network permutes the smallest domain of 2^(2h) >= n elements; results outside [0, n) are fed
// back until one falls inside (cycle walking: still a permutation, since the walk follows a cycle
// of one). The domain is below 4n, so a walk takes four steps in the mean at worst; only for fewer
// than 64 samples it is larger, as networks of a few bits do not reach all orders equally often.
#include "runtime/shuffle.h"

// The finaliser of MurmurHash3 with Stafford's constants: every input bit reaches every output bit.
static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static int half_bits_for(uint64_t n) {
  int half = 4;
  while (half < 32 && (uint64_t)1 << (2 * half) < n)
    half++;
  return half;
}

mlrt_shuffle mlrt_shuffle_make(uint64_t seed, int64_t epoch, int64_t n) {
  mlrt_shuffle s = {.n = (uint64_t)n, .half_bits = half_bits_for((uint64_t)n)};
  // Mixed one after the other: (seed, epoch) and (epoch, seed) must not meet.
  uint64_t state = mix(mix(seed + 0x9e3779b97f4a7c15u) + (uint64_t)epoch);
  for (int i = 0; i < MLRT_SHUFFLE_ROUNDS; i++) {
    state += 0x9e3779b97f4a7c15u;
    s.keys[i] = mix(state);
  }
  return s;
}

static uint64_t permute_domain(const mlrt_shuffle *s, uint64_t x) {
  uint64_t mask = ((uint64_t)1 << s->half_bits) - 1;
  uint64_t left = x >> s->half_bits, right = x & mask;
  for (int i = 0; i < MLRT_SHUFFLE_ROUNDS; i++) {
    uint64_t next = left ^ (mix(right + s->keys[i]) & mask);
    left = right;
    right = next;
  }
  return left << s->half_bits | right;
}

int64_t mlrt_shuffle_at(const mlrt_shuffle *s, int64_t i) {
  uint64_t x = (uint64_t)i;
  do
    x = permute_domain(s, x);
  while (x >= s->n);
  return (int64_t)x;
}
