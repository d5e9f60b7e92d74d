// hash.c: see hash.h. Four lanes of multiply and rotate: some 10 GB/s, so that checking a
// checkpoint costs less than reading it.
#include "runtime/hash.h"

#include <string.h>

#define P1 UINT64_C(0x9E3779B185EBCA87)
#define P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define P3 UINT64_C(0x165667B19E3779F9)
#define P4 UINT64_C(0x85EBCA77C2B2AE63)
#define P5 UINT64_C(0x27D4EB2F165667C5)

static uint64_t rotate(uint64_t x, int bits) {
  return x << bits | x >> (64 - bits);
}

static uint64_t mix(uint64_t lane, uint64_t input) {
  return rotate(lane + input * P2, 31) * P1;
}

static uint64_t load64(const unsigned char *p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

static void add_block(mlrt_hash *h, const unsigned char *p) {
  for (int i = 0; i < 4; i++)
    h->lane[i] = mix(h->lane[i], load64(p + 8 * i));
}

void mlrt_hash_begin(mlrt_hash *h) {
  *h = (mlrt_hash){.lane = {P1 + P2, P2, 0, 0 - P1}};
}

void mlrt_hash_add(mlrt_hash *h, const void *data, size_t len) {
  const unsigned char *p = data;
  size_t have = h->total % 32;
  h->total += len;
  if (have) {
    size_t take = len < 32 - have ? len : 32 - have;
    memcpy(h->rest + have, p, take);
    p += take;
    len -= take;
    if (have + take < 32)
      return;
    add_block(h, h->rest);
  }
  for (; len >= 32; p += 32, len -= 32)
    add_block(h, p);
  memcpy(h->rest, p, len);
}

static uint64_t join_lanes(const mlrt_hash *h) {
  uint64_t x = rotate(h->lane[0], 1) + rotate(h->lane[1], 7) + rotate(h->lane[2], 12) +
               rotate(h->lane[3], 18);
  for (int i = 0; i < 4; i++)
    x = (x ^ mix(0, h->lane[i])) * P1 + P4;
  return x;
}

uint64_t mlrt_hash_end(const mlrt_hash *h) {
  uint64_t x = (h->total >= 32 ? join_lanes(h) : P5) + h->total;
  const unsigned char *p = h->rest;
  size_t left = h->total % 32;
  for (; left >= 8; p += 8, left -= 8)
    x = rotate(x ^ mix(0, load64(p)), 27) * P1 + P4;
  if (left >= 4) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    x = rotate(x ^ word * P1, 23) * P2 + P3;
    p += 4;
    left -= 4;
  }
  for (; left; p++, left--)
    x = rotate(x ^ *p * P5, 11) * P1;
  x = (x ^ x >> 33) * P2;
  x = (x ^ x >> 29) * P3;
  return x ^ x >> 32;
}
