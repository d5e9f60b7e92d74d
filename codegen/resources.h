// resources.h: --emit=resources: what the kernels of a program take, and how long they should.
#ifndef CODEGEN_RESOURCES_H
#define CODEGEN_RESOURCES_H

#include "codegen/program.h"

// Per function of the program a table with one row for each generated kernel that it calls: calls,
// FLOPs and bytes of all of them. For GPUs also threads and blocks, and of each architecture
// registers of a thread, shared memory of a block, occupancy, and the time that the chip of
// target_cuda.c needs at least (roofline: Williams, Waterman, Patterson, "Roofline: an insightful
// visual performance model", CACM 52(4), 2009). `r`: cg_find_resources; NULL for a CPU.
void cg_print_resources(const cg_program *p, const plan *pl, const cg_arch_resources *r,
                        ir_buf *out);

#endif
