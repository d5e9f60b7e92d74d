// plan_edit.h: a plan that somebody has edited by hand: which kernels run, in which order, some of them
// again; and where buffers lie. The names are those of plan.json.
#ifndef PASSES_PLAN_EDIT_H
#define PASSES_PLAN_EDIT_H

#include "ir/ir.h"

typedef struct plan_edit_names {
  const char **at;
  size_t num, cap;
} plan_edit_names; // an IR_VEC

typedef enum plan_edit_transfer {
  PLAN_EDIT_NONE,
  PLAN_EDIT_SEND,
  PLAN_EDIT_FETCH
} plan_edit_transfer;

typedef struct plan_edit_kernel {
  const char *name;
  const char *again; // the kernel that runs again here; NULL: this one runs for the first time
  plan_edit_transfer transfer; // it is a copy to memory of the host, or back
  const char *begin;           // of a transfer: it begins before this kernel; NULL: where it stands
  plan_edit_names reads, writes; // buffers: asked for where there are transfers
} plan_edit_kernel;

typedef struct plan_edit_place {
  const char *buffer;
  int64_t offset;
} plan_edit_place;

typedef struct plan_edit_func {
  const char *name;
  IR_VEC(plan_edit_kernel) kernels;
  IR_VEC(plan_edit_place) places; // of temporaries; others are packed as ever
} plan_edit_func;

typedef struct plan_edit {
  const char *path;
  IR_VEC(plan_edit_func) funcs;
  bool remakes_little; // it is of such kernels (passes/pass.h)
} plan_edit;

// Gives the kernels of each function the order of the file, with clones of those that run again, and
// with its sends and fetches. A send begins right behind the kernel that makes its value.
// Needs: kernels in their own order, none of them a clone. Errors (E0508) name the place in the file.
bool plan_edit_order(ir_module *m, const plan_edit *e, ir_diags *d);

// The places that the file gives to buffers of `f`; NULL: none.
const plan_edit_func *plan_edit_find(const plan_edit *e, const ir_func *f);

#endif
