// cuda_clang.h: clang as a compiler of CUDA sources to PTX, where NVRTC is not at hand
// (--cuda-compiler=clang). It needs no CUDA installation: codegen/cuda_clang_prelude.h stands in
// for the toolkit's headers, and has the functions that clang would take from libdevice.
#ifndef CODEGEN_CUDA_CLANG_H
#define CODEGEN_CUDA_CLANG_H

#include "codegen/toolchain.h"

typedef struct cg_cuda_clang {
  int major;
  const char *identity; // what it says to --version
} cg_cuda_clang;

// NULL with a message in *x->why when this clang does not know the oldest architecture of the
// target. Writes the header that the commands below include.
const cg_cuda_clang *cg_cuda_clang_open(const cg_tools *x);
// Compiles source `name` for "compute_80" to `out`.
cg_command cg_cuda_clang_command(const cg_tools *x, const char *name, const char *arch,
                                 const char *out);
// What its output depends on besides the source and the architecture.
void cg_cuda_clang_put_key(ir_buf *key);

#endif
