// signs.h: floats that cannot be negative by the way they are made: squares, exponentials, their sums.
#ifndef IR_SIGNS_H
#define IR_SIGNS_H

#include "ir/ir.h"

// [id] whether no element of the node is below 0 (it may be -0, or no number). For nodes of floats; false where
// nothing is known, as of inputs and of what is read from states. In linear time. Lives in `a`.
bool *ir_find_never_negative(ir_arena *a, const ir_func *f);

#endif
