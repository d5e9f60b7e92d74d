// cuda_resources.h: what each kernel of a compiled image takes of an SM, read out of the cubin: for
// reports, and for tests that no kernel spills.
//
// A cubin is an ELF file. Of a kernel NAME it has the symbol NAME, the sections .nv.shared.NAME and
// .nv.constant0.NAME (whose sizes count), and in .nv.info a list of attributes of symbols:
// registers, stack frame, and the stack of what it calls. The numbers are those of `ptxas -v`;
// tests/unit/test_cuda_*_compile.c hold plans against them.
#ifndef CODEGEN_CUDA_RESOURCES_H
#define CODEGEN_CUDA_RESOURCES_H

#include "ir/base.h"

typedef struct cg_resources {
  const char *kernel;
  int registers;    // of a thread
  int64_t frame;    // bytes of local memory of a thread: spills, and arrays with varying indices
  int64_t stack;    // bytes, with all that it calls; -1: unknown (recursion)
  int64_t shared;   // bytes of a block, declared (not dynamic)
  int64_t constant; // bytes of all banks, with the parameters
} cg_resources;
typedef IR_VEC(cg_resources) cg_resource_list;

// In the order of the file's symbols. False with a message in *why when this is no cubin, or a
// damaged one.
bool cg_cubin_resources(ir_arena *a, const char *cubin, size_t len, cg_resource_list *out,
                        const char **why);

#endif
