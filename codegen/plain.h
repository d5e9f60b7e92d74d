// plain.h: plain versions of kernels, for `check`.
#ifndef CODEGEN_PLAIN_H
#define CODEGEN_PLAIN_H

#include "codegen/program.h"

// A value inside a kernel that the caller of its plain version gets (plain.c).
typedef struct cg_tap {
  const ir_node *node;   // a member, or for gradients a view of one
  const ir_state *param; // whose gradient it is; NULL: held from one run to the next
  bool guess;            // param has no gradient of its name: perhaps this is it
} cg_tap;
typedef IR_VEC(cg_tap) cg_taps;

// The text before plain versions.
const char *cg_plain_prelude(void);
// void NAME(char *const *args, double *const *taps, int hold): the kernel in double precision; args
// as for the fast one, but that float buffers hold doubles; taps[i] holds the elements of tap i,
// and may be anything while hold is 0. Without names of the graph, texts of equal kernels are
// equal.
void cg_plain_emit(ir_arena *a, const cg_kernel *c, const cg_taps *taps, bool named,
                   const char *name, ir_buf *out);

// One of its operands' elements, or one with the other sign: what is kept of it is the choice.
bool cg_plain_chooses(const ir_node *n);

#endif
