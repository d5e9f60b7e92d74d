// losses.h: what a function is trained for.
#ifndef PASSES_LOSSES_H
#define PASSES_LOSSES_H

#include "ir/ir.h"

// The loss, or several, each trained for by itself. A function that only accumulates has none among its results: its loss
// goes to the accumulator that the step's is added to. Where there is no such step it is not known which of the numbers
// that are added up is the loss (*together).
typedef struct losses {
  ir_node_list at;
  bool together;
} losses;
losses losses_find(ir_arena *a, const ir_func *f);

#endif
