// plan.h: where every byte lives. One arena per memory space; offsets are final.
//
//   [0 .. states) [staging: two batches] [max over functions of temporaries]
//
// A buffer is one materialised node, one state, one staging slot or one kernel's
// workspace. Live intervals are in kernel indices of their function, inclusive.
#ifndef PASSES_PLAN_H
#define PASSES_PLAN_H

#include "ir/ir.h"

enum { PLAN_ALIGN = 64 };

typedef enum plan_kind {
  PLAN_STATE,     // whole run
  PLAN_STAGING,   // whole run: one of the two batches that `data` fills in turn
  PLAN_TEMP,      // kernel output inside a function
  PLAN_WORKSPACE, // scratch of one kernel
  PLAN_RESULT,    // loss, metrics, outputs: live to the end of the function
} plan_kind;

typedef struct plan_buffer {
  const char *name;
  plan_kind kind;
  const ir_func *func;     // NULL: whole run
  const ir_node *node;     // TEMP, RESULT, STAGING (the input of `func`)
  const ir_state *state;   // STATE
  const ir_kernel *kernel; // WORKSPACE
  int64_t bytes, offset;   // offset is a multiple of PLAN_ALIGN
  int first, last;         // kernel indices; whole run: 0 .. INT_MAX
} plan_buffer;

typedef struct plan {
  IR_VEC(plan_buffer) buffers;
  int64_t arena_bytes;
  int64_t state_bytes, staging_bytes, temp_bytes; // parts of arena_bytes
  int64_t bound_bytes; // max live bytes for this order (lower bound for any arena of it)
  int64_t staging_slot_bytes; // input i of slot s is at its staging offset + s * staging_slot_bytes
  int64_t *node_offset[8];    // [function index][node id]: arena offset, or -1 when it has none
} plan;

// After pass_order and kernel scheduling (ir_kernel.workspace). Never fails: there is no budget yet.
plan *plan_build(ir_module *m);
// Offset of a materialised node (INPUT: slot 0; READ: its state; a written node: its state's
// when it is computed in place).
int64_t plan_offset(const plan *p, const ir_func *f, const ir_node *n);
// Violations of "no two live buffers overlap" and of order; one line each. Returns their number.
int plan_check(const plan *p, const ir_module *m, ir_buf *out);
void plan_print(const plan *p, const ir_module *m, ir_buf *out);      // a table for people
void plan_print_json(const plan *p, const ir_module *m, ir_buf *out); // schema: docs/passes.md

#endif
