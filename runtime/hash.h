// hash.h: XXH64, the checksum of a checkpoint's data (`xxhsum -H1` gives the same value).
#ifndef RUNTIME_HASH_H
#define RUNTIME_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct mlrt_hash {
  uint64_t lane[4];
  uint64_t total;
  unsigned char rest[32]; // bytes not yet in the lanes: total % 32 of them
} mlrt_hash;

void mlrt_hash_begin(mlrt_hash *h);
void mlrt_hash_add(mlrt_hash *h, const void *data, size_t len);
uint64_t mlrt_hash_end(const mlrt_hash *h);

#endif
