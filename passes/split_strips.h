// split_strips.h: which sums of columns are better taken of some rows at a time (split_reductions.c).
#ifndef PASSES_SPLIT_STRIPS_H
#define PASSES_SPLIT_STRIPS_H

#include "ir/ir.h"

// By node id: elements of the largest broadcast of what is computed of the node, element by element; 0: there is none.
const int64_t *split_find_spread(ir_arena *a, const ir_func *f);

// Whether the reduction n, of columns, is worth a first stage on a processor.
bool split_is_strip(const ir_node *n, int64_t spread);

#endif
