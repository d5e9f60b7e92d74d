// support_cuda.h: what tests of the way from CUDA text to images share: folders that go away, small
// kernels, NVRTC where there is one.
#ifndef SUPPORT_CUDA_H
#define SUPPORT_CUDA_H

#include "codegen/cuda_resources.h"
#include "codegen/nvrtc.h"
#include "ir/base.h"

// A new folder under $TMPDIR.
const char *support_new_folder(ir_arena *a);
void support_remove_folder(ir_arena *a, const char *folder);
// Files in a folder whose names end so.
int support_count_files(const char *folder, const char *suffix);
// NULL, and a line that says so, where there is no NVRTC.
const cg_nvrtc *support_nvrtc(ir_arena *a);
// Compiles `text` for an architecture with what mltc tells NVRTC: a word from the compiler is a
// failure, as is a kernel with local memory (spills, and arrays that it indexes) unless it has
// `but` in its name (NULL: none may). in_order: of cg_source. What the kernels take; empty when there are none.
cg_resource_list support_cubin(ir_arena *a, const cg_nvrtc *n, const char *text, const char *arch,
                               bool in_order, const char *but);
// NULL, counted as a failure, when there is no such kernel.
const cg_resources *support_find_kernel(const cg_resource_list *list, const char *name);

#endif
