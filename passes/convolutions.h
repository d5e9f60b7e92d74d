// convolutions.h: convolutions as products of matrices, for the pass and for gradients.
#ifndef PASSES_CONVOLUTIONS_H
#define PASSES_CONVOLUTIONS_H

#include "ir/builder.h"

// What `conv` multiplies with its kernel: a view of x with a row for each result place and, in it,
// what its window sees. [b * positions..., k... * c]
ir_node *conv_columns(ir_builder *b, const ir_node *conv);

#endif
