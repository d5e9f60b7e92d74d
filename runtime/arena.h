// arena.h: the one block of memory that a training run uses.
//
// Exactly the plan's bytes, rounded up to a page, mapped once at start. Every state, batch and
// temporary lies at a fixed offset in it; nothing is allocated afterwards. A page on either side of
// it may not be touched, and what the last page has beyond the plan is known, so that whatever leaves
// the plan is seen.
#ifndef RUNTIME_ARENA_H
#define RUNTIME_ARENA_H

#include <stdint.h>

#include "runtime/error.h"

typedef struct mlrt_arena {
  char *base;
  int64_t bytes;  // as planned
  int64_t mapped; // rounded up to a page
} mlrt_arena;

// False after setting `e` when the memory is not there (exit code 3).
bool mlrt_arena_map(mlrt_arena *a, int64_t bytes, bool huge_pages, mlrt_error *e);
void mlrt_arena_unmap(mlrt_arena *a);
// Bytes that the system says are mapped there; -1: it does not say.
int64_t mlrt_arena_measure(const mlrt_arena *a);
// Nothing was stored behind the plan's last byte.
bool mlrt_arena_is_whole(const mlrt_arena *a);

#endif
