// listing.h: tables for people.
#ifndef CODEGEN_LISTING_H
#define CODEGEN_LISTING_H

#include "codegen/program.h"

// --emit=kernels: every kernel with family, ops, shape, FLOPs, bytes, tasks and the function that
// it shares with others.
void cg_list_kernels(const cg_program *p, ir_buf *out);

#endif
