// plan_edit_parts.h: what the files of plan_edit share; nobody else includes it.
#ifndef PASSES_PLAN_EDIT_PARTS_H
#define PASSES_PLAN_EDIT_PARTS_H

#include "passes/plan_edit.h"
#include "passes/schedule.h"

// A function of the file beside that of the module.
typedef struct plan_edit_site {
  ir_arena *arena; // scratch
  ir_diags *diags;
  const plan_edit *edit;
  const plan_edit_func *func;
  size_t index; // of `func`
  sched *s;     // of the module's function, as it is
} plan_edit_site;

plan_edit_site plan_edit_open(ir_arena *scratch, ir_func *f, const plan_edit *e, size_t index,
                              ir_diags *d);
// E0508 at kernel `kernel` of the file's function.
ir_diag *plan_edit_fault(const plan_edit_site *x, size_t kernel, const char *what);

// The transfers of the file's function become kernels of the module's, which has all others already, in
// their order. False: there were errors.
bool plan_edit_transfers(ir_func *f, const plan_edit *e, size_t index, ir_diags *d);

#endif
