// plan_text.h: what the table and the JSON form of a plan share.
#ifndef PASSES_PLAN_TEXT_H
#define PASSES_PLAN_TEXT_H

#include "passes/plan_parts.h"

extern const char *const plan_kind_names[]; // "state", "staging", ...
// The kernel of `f` at which most temporary bytes are live; -1: no kernels. `*bytes`: how many.
int plan_peak(ir_arena *a, const plan *p, const ir_func *f, int64_t *bytes);
// Temporaries of `f` that hold memory at kernel `k`, largest first; a buffer
// that takes over memory at `k` is left out. Indices into p->buffers.
typedef IR_VEC(int) plan_list;
plan_list plan_live_at(ir_arena *a, const plan *p, const ir_func *f, int k);
// True for temporaries, workspaces and results of `f`.
bool plan_is_temp_of(const plan_buffer *b, const ir_func *f);
// The state whose place in memory begins at `offset`, or NULL.
const ir_state *plan_state_at(const plan *p, int64_t offset);
// The ops of a kernel: "matmul+add+max".
const char *plan_kernel_ops(ir_arena *a, const ir_kernel *k);

#endif
