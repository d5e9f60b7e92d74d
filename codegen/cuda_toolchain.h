// cuda_toolchain.h: from CUDA sources to images, and from images to an object of the trainer.
//
//   kernels_0.cu --NVRTC--> kernels_0.sm_80.cubin      of the oldest architecture, and on the way to it
//                           kernels_0.compute_80.ptx   for GPUs that none of them is for
//                           --ptxas--> kernels_0.sm_90a.cubin   of each other architecture
//   all of them --images.c--> images.o: mlrt_gpu_images of runtime/mlrt.h
//
// PTX is of the oldest architecture: what the driver makes of compute_80 runs on every newer GPU, also
// on one between two that are named (sm_80,sm_100 on an H100), and the compiler has it anyhow. Where there is
// no ptxas (ptxas.h), NVRTC is called once more for each other architecture: longer, and to the same end.
// A text that uses nothing of one chip only is compiled for sm_90 where sm_90a is wanted: the same code,
// and PTX that newer GPUs take. Other texts (cg_source.one_chip) are compiled twice, for sm_90a and for
// compute_90; where other architectures are named, once: there they have kernels of their own (cg_cuda.own), and
// the table of images has empty places. With --cuda-compiler=clang there is PTX only.
#ifndef CODEGEN_CUDA_TOOLCHAIN_H
#define CODEGEN_CUDA_TOOLCHAIN_H

#include "codegen/ptxas.h"
#include "codegen/toolchain.h"

typedef struct cg_images cg_images;
typedef enum cg_image_kinds { CG_CUBINS = 1, CG_PTX = 2 } cg_image_kinds;

// What NVRTC is told beside the architecture, and beside these of a file that is in order (cg_source).
const char *const *cg_nvrtc_options(int *num);
#define CG_NVRTC_IN_ORDER "--ptxas-options=" CG_PTXAS_IN_ORDER

// Opens the compiler, and finds in the cache what it can. `kinds` to be made, or-ed; clang makes
// PTX only, whatever they are. NULL with a message in *x->why.
cg_images *cg_images_new(const cg_tools *x, const cg_sources *s, unsigned kinds);
// What remains to be compiled; writes what does not. False with a message in *x->why.
bool cg_images_add_jobs(cg_images *im, cg_jobs *jobs);
// After the jobs: reads what they wrote, and gives it to the cache.
bool cg_images_finish(cg_images *im);
// After that: packs them into files beside the sources. Then: the object's source, images.c.
bool cg_images_pack(cg_images *im);
cg_source cg_images_source(const cg_images *im);
// After that: all PTX, as one text.
void cg_images_print_ptx(const cg_images *im, ir_buf *out);
// After that: what each kernel of each cubin takes. False with a message in *x->why.
bool cg_images_resources(const cg_images *im, cg_arch_resources *out);

#endif
