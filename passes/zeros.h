// zeros.h: values that are likely to hold many zeros: what data are read as, and what keeps their zeros.
//
// Black pixels, words that a text has not, one of many kinds: data are full of zeros, by rows and columns.
// A graph cannot say how many; but it says where a zero stays one.
#ifndef PASSES_ZEROS_H
#define PASSES_ZEROS_H

#include "ir/ir.h"

// `n` is an input of its function, or 0 wherever an element of one is 0 (of finite operands).
bool zeros_are_those_of_data(const ir_node *n);

#endif
