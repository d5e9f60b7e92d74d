// ptxas.h: NVIDIA's assembler, which makes the cubin of a second architecture out of the PTX of the first.
//
// NVRTC does two things: an optimiser makes PTX of C++, an assembler code of PTX. The optimiser takes
// the longer, and gives one architecture the same PTX as another where a text asks for nothing that only
// one has. The assembler inside NVRTC cannot be called alone; the program ptxas is the same one.
#ifndef CODEGEN_PTXAS_H
#define CODEGEN_PTXAS_H

#include "codegen/toolchain.h"

typedef struct cg_ptxas {
  const char *path;
  const char *identity; // tells builds of the same version apart
} cg_ptxas;

// The ptxas of the toolkit, or of the vendor's wheels, in which the library NVRTC `nvrtc` lies. NULL: there is
// none, or it is not of NVRTC's version ("13.0"), whose PTX another might not take.
const cg_ptxas *cg_ptxas_find(const cg_tools *x, const char *nvrtc, const char *version);
// PTX from file `from` to a cubin of `arch` ("sm_90a") in file `to`. What spills says so, as with NVRTC.
cg_command cg_ptxas_command(const cg_ptxas *p, ir_arena *a, const char *arch, const char *from,
                            const char *to);

#endif
