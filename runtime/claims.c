// claims.c: see claims.h.
#include "runtime/claims.h"

static uint64_t word_of(uint32_t launch, mlrt_share left) {
  return (uint64_t)launch << 32 | (uint64_t)left.begin << 16 | (uint64_t)left.end;
}

// Words of later launches are those of threads that have found nothing left of this one.
static mlrt_share left_of(uint64_t word, uint32_t launch, mlrt_share all) {
  const mlrt_share none = {0, 0};
  int32_t behind = (int32_t)(launch - (uint32_t)(word >> 32));
  if (behind != 0)
    return behind > 0 ? all : none;
  return (mlrt_share){(int64_t)(word >> 16 & 0xffff), (int64_t)(word & 0xffff)};
}

// Only the word itself is shared: what tasks read and write is ordered by the barriers around the launch.
mlrt_share mlrt_claim_some(mlrt_claim *c, uint32_t launch, mlrt_share all, int own) {
  uint64_t word = atomic_load_explicit(&c->word, memory_order_relaxed);
  for (;;) {
    mlrt_share left = left_of(word, launch, all), mine = left;
    if (left.begin >= left.end)
      return left;
    int64_t num = (left.end - left.begin + 1) / 2;
    if (own)
      left.begin = mine.end = left.begin + num;
    else
      left.end = mine.begin = left.end - num;
    if (atomic_compare_exchange_weak_explicit(&c->word, &word, word_of(launch, left),
                                              memory_order_relaxed, memory_order_relaxed))
      return mine;
  }
}
