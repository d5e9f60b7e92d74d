// split_windows.h: the cut of a sum over windows that reads what no cache holds (split_reductions.c).
#ifndef PASSES_SPLIT_WINDOWS_H
#define PASSES_SPLIT_WINDOWS_H

#include "ir/ir.h"

// How many of the leading reduced axes of n are an outer stage, so that what each chunk reads stays near; 0: none.
int split_windows_at(const ir_node *n);

#endif
