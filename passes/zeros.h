// zeros.h: values that are likely to hold many zeros, as far as a graph can tell: it cannot say how many.
//
// Black pixels, words that a text has not, one of many kinds: data are full of zeros, and a graph says where a zero
// stays one. Places that no token has taken, steps behind the end of a sentence: rows of zeros are what a
// mask of rows leaves, and a sum of rows by index.
#ifndef PASSES_ZEROS_H
#define PASSES_ZEROS_H

#include "ir/ir.h"

typedef enum zeros_kind {
  ZEROS_NONE,
  ZEROS_DATA, // scattered, more of them near each other
  ZEROS_ROWS, // all of a row (of the last axis), or nothing of it
} zeros_kind;

zeros_kind zeros_expected(const ir_node *n);

#endif
