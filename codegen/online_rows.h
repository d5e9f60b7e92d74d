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

typedef struct online_rows {
  const ir_node *max; // reduce_max; its operand is x
  const ir_node *exp; // the operand of the sum
} online_rows;

// Whether member `sum` of a kernel with domain d is such an s: then *r says of what.
bool online_rows_find(const domain *d, const ir_node *sum, online_rows *r);

#endif
