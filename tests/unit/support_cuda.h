// support_cuda.h: what tests of the way from CUDA text to images share: folders that go away, small
// kernels, NVRTC where there is one.
#ifndef SUPPORT_CUDA_H
#define SUPPORT_CUDA_H

#include "codegen/nvrtc.h"
#include "ir/base.h"

// A new folder under $TMPDIR.
const char *support_new_folder(ir_arena *a);
void support_remove_folder(ir_arena *a, const char *folder);
// Files in a folder whose names end so.
int support_count_files(const char *folder, const char *suffix);
// NULL, and a line that says so, where there is no NVRTC.
const cg_nvrtc *support_nvrtc(ir_arena *a);

#endif
