// plain_step.h: the loss and the gradients of `step` as calls of plain versions, for the finite
// differences of `check` (runtime/check_gradients.c).
#ifndef CODEGEN_PLAIN_STEP_H
#define CODEGEN_PLAIN_STEP_H

#include "codegen/plain.h"

typedef struct cg_plain_call {
  const cg_kernel *c;
  const char *name; // of its plain version
  cg_taps taps;
  bool needed;   // for the loss or for a gradient
  bool for_loss; // for the loss
} cg_plain_call;

typedef struct cg_plain_step {
  const ir_func *func;
  IR_VEC(const ir_node *) losses;
  IR_VEC(cg_plain_call) calls; // kernels of `func` in order; then gradients that no kernel computes
} cg_plain_step;

// Picks calls and taps. NULL when there is nothing to differentiate: no step, no loss that
// a kernel computes.
cg_plain_step *cg_plain_step_new(const cg_program *p);
// Emits every plain version that calls and `check` of single kernels need, equal ones once; names
// them in the calls and in cg_distinct.plain.
void cg_plain_emit_all(cg_program *p, cg_plain_step *s, ir_buf *out);
// The table `plain_step` (mlrt_plain_step), and declarations of the functions in it.
void cg_plain_step_table(const cg_program *p, const cg_plain_step *s, ir_buf *out);

#endif
