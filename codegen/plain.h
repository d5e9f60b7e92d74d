// plain.h: plain versions of kernels, for `check`.
#ifndef CODEGEN_PLAIN_H
#define CODEGEN_PLAIN_H

#include "codegen/program.h"

// The text before plain versions.
const char *cg_plain_prelude(void);
// void NAME(char *const *args): the kernel in scalar double precision; args as for the fast one.
void cg_plain_emit(ir_arena *a, const cg_kernel *c, const char *name, ir_buf *out);

#endif
