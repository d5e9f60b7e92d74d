// fuse.h: the parts of pass_fuse (viewable.c, fold_conversions.c, fuse.c, relist.c, fuse_check.c).
#ifndef PASSES_FUSE_H
#define PASSES_FUSE_H

#include "ir/builder.h"
#include "passes/domain.h"
#include "passes/pass.h"

// Inserts copies so that every operand can be walked by strides. True when any was needed.
bool fuse_make_viewable(ir_func *f);
// Whether a kernel with `n` can read this operand where it lies, as far as that depends on `n` alone: copies,
// scatters, matmuls and gathers walk memory by strides.
bool fuse_can_read(const ir_node *n, int operand);
// The same of both operands of a gather inside a scatter's kernel, which has no loops to find its way by.
bool fuse_can_fetch(const ir_node *gather);
// Decides which conversions matmuls compute on their operands (node->folded).
void fuse_fold_conversions(ir_func *f);
// Rebuilds func->nodes from func->kernels: for each kernel the leaves and views that it needs
// first, then its members; last the writes and what results need.
void fuse_relist(ir_func *f);

// An error (E0509) for each kernel of `f` that pass_fuse cannot have made, and (E0510) for each result and write
// of what no kernel stores for it. f: read with its kernels.
void fuse_check_kernels(const ir_func *f, ir_diags *d);

#endif
