// split_uneven.h: the cut of a reduction whose lines no number divides well (split_reductions.c).
#ifndef PASSES_SPLIT_UNEVEN_H
#define PASSES_SPLIT_UNEVEN_H

#include "ir/builder.h"

// By node id, in the function as it was: how many nodes use it (a node counts once); whether one is a reduction of
// reductions of the same kind; whether one has to have it in memory, itself or a view of it; for
// processors, how far it is spread (split_strips.h).
typedef struct split_uses {
  const uint32_t *num;
  const bool *is_stage, *is_stored;
  const int64_t *spread; // NULL: nobody asks
  uint32_t ids;
} split_uses;
split_uses split_find_uses(ir_arena *a, const ir_func *f);

// The reduction n in about `wanted` chunks; NULL: there are too few lines.
ir_node *split_unevenly(ir_builder *b, const split_uses *uses, ir_node *n, double wanted);

#endif
