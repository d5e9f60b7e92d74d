// online_rows.h: rows whose maximum and sum of exponentials can be had in one sweep.
//
//   m = reduce_max x;  e = exp(x - m);  s = sum e
//
// Two sweeps as it stands, as e needs m. In one (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018): s is kept for the largest element so far, and scaled when a
// larger one comes.
#ifndef CODEGEN_ONLINE_ROWS_H
#define CODEGEN_ONLINE_ROWS_H

#include "passes/domain.h"

// The maximum m, whose operand is x, if member `sum` of a kernel with domain d is such an s; else NULL.
const ir_node *online_rows_find(const domain *d, const ir_node *sum);

#endif
