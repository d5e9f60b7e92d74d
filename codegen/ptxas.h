// ptxas.h: NVIDIA's assembler, which makes the cubin of a second architecture out of the PTX of the first.
//
// NVRTC does two things: an optimiser makes PTX of C++, an assembler code of PTX. The optimiser takes
// the longer, and gives one architecture the same PTX as another where a text asks for nothing that only
// one has. The assembler inside NVRTC cannot be called alone; the program ptxas is the same one.
#ifndef CODEGEN_PTXAS_H
#define CODEGEN_PTXAS_H

#include "codegen/toolchain.h"

// Leaves FMAs about in the order of the PTX: more of them then find an operand where the one before has left it, which
// the full optimiser, moving loads up and results between registers, undoes. An H100 makes products of f32 2 to 7%
// faster so, and attention 4 to 10%. What hides latencies of its own (softmax of long rows: 17% slower), and long
// epilogues (GELU's gradient: 4%), are left to the full one.
#define CG_PTXAS_IN_ORDER "-O1"

typedef struct cg_ptxas {
  const char *path;
  const char *identity; // tells builds of the same version apart
} cg_ptxas;

// The ptxas of the toolkit, or of the vendor's wheels, in which the library NVRTC `nvrtc` lies. NULL: there is
// none, or it is not of NVRTC's version ("13.0"), whose PTX another might not take.
const cg_ptxas *cg_ptxas_find(const cg_tools *x, const char *nvrtc, const char *version);
// PTX from file `from` to a cubin of `arch` ("sm_90a") in file `to`, in_order: of cg_source. What spills says so, as
// with NVRTC.
cg_command cg_ptxas_command(const cg_ptxas *p, ir_arena *a, const char *arch, const char *from,
                            const char *to, bool in_order);

#endif
