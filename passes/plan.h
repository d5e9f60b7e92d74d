// plan.h: where every byte lives. One arena per memory space; offsets are final.
//
//   [0 .. states) [staging: two batches] [max over functions of temporaries]
//
// What SEND kernels make lies in memory of the host, which has offsets of its own from 0.
//
// A buffer is one materialised node, one state, one staging slot or one kernel's
// workspace. Live intervals are in kernel indices of their function, inclusive.
//
// Writes: `write @s, x` is in place when x is computed straight into @s (plan_is_in_place).
// Otherwise x has a temporary that lives to the end and plan.copies says where it goes then.
//
// What in-place asks of emitters: an iteration of a kernel loads all its operands before it
// stores anything, and nothing but final values is stored to an output (a matmul that sums
// over blocks of K keeps partial sums elsewhere when an output is also an input).
#ifndef PASSES_PLAN_H
#define PASSES_PLAN_H

#include "ir/ir.h"
#include "passes/plan_edit.h"

enum { PLAN_ALIGN = 64 };

typedef enum plan_kind {
  PLAN_STATE,     // whole run
  PLAN_STAGING,   // whole run: one of the two batches that `data` fills in turn
  PLAN_TEMP,      // kernel output inside a function
  PLAN_WORKSPACE, // scratch of one kernel
  PLAN_RESULT,    // loss, metrics, outputs: live to the end of the function
  PLAN_HOST,      // in memory of the host: what a SEND kernel makes
} plan_kind;

typedef struct plan_buffer {
  const char *name;
  plan_kind kind;
  const ir_func *func;     // NULL: STATE. STAGING: the first function with that input
  const ir_node *node;     // TEMP, RESULT, HOST, STAGING (the input of `func`)
  const ir_state *state;   // STATE
  const ir_kernel *kernel; // WORKSPACE
  int64_t bytes, offset;   // offset is a multiple of PLAN_ALIGN; HOST: in memory of the host
  int first, last;         // kernel indices; whole run: 0 .. INT_MAX
  int reuses;              // buffer whose memory kernel `first` takes over in place; -1: none
} plan_buffer;

// At the end of `func`, `bytes` at `from` go to state `state` at `to`.
typedef struct plan_copy {
  const ir_func *func;
  const ir_state *state;
  const ir_node *node; // the value
  int64_t from, to, bytes;
} plan_copy;

typedef struct plan {
  IR_VEC(plan_buffer) buffers;
  IR_VEC(plan_copy) copies; // writes that are not in place, by function
  int64_t arena_bytes;
  int64_t state_bytes, staging_bytes, temp_bytes; // parts of arena_bytes
  int64_t bound_bytes;        // max live bytes for this order (lower bound for any arena of it)
  int64_t host_bytes;         // of memory of the host, for what waits there
  int64_t staging_slot_bytes; // input i of slot s is at its staging offset + s * staging_slot_bytes
  int64_t
      *node_offset[IR_MAX_FUNCS]; // [function index][node id]: arena offset, or -1 when it has none
} plan;

// Memory that a value should have from kernel `from` to kernel `to`, besides its life.
typedef struct plan_wish {
  const ir_func *func;
  const ir_node *node;
  int from, to;
} plan_wish;
typedef struct plan_wishes {
  plan_wish *at;
  size_t num, cap;
} plan_wishes; // an IR_VEC

// After pass_order and kernel scheduling (ir_kernel.workspace). Wishes are granted that take no memory, those in front
// first, and the places of a file; either may be NULL, and `d` where there is no file: then it never fails, as there is
// no budget yet. Wishes are granted to functions whose buffers are where they would be without the file. Errors (E0508)
// say what cannot be anywhere; whether the places work together, plan_check knows.
plan *plan_build_for(ir_module *m, const plan_wishes *wishes, const plan_edit *e, ir_diags *d);
// Bytes of states and staging: what of an arena does not depend on kernels.
int64_t plan_whole_run_bytes(ir_module *m);
// Offset of a materialised node (INPUT: slot 0; READ: its state; a written node: its state's
// when it is computed in place).
int64_t plan_offset(const plan *p, const ir_func *f, const ir_node *n);
// Offset in memory of the host of what a SEND kernel of `f` makes.
int64_t plan_host_offset(const plan *p, const ir_func *f, const ir_node *n);
// True when `write` (a WRITE of `f`) needs no copy: its value is computed in the state's memory.
bool plan_is_in_place(const plan *p, const ir_func *f, const ir_node *write);
// Violations of "no two live buffers overlap" and of order; one line each. Returns their number.
int plan_check(const plan *p, const ir_module *m, ir_buf *out);
// The place of a function in its module, by which plans know it.
int plan_func_index(const ir_func *f);
int64_t plan_state_offset(const plan *p, const ir_state *s);

void plan_print(const plan *p, const ir_module *m, ir_buf *out);      // a table for people
void plan_print_json(const plan *p, const ir_module *m, ir_buf *out); // schema: docs/memory.md

// Why the plan does not fit `budget` bytes, for people: the proven bound, what holds the peak, and what
// would work: a budget of `works` bytes; 0: nobody knows. `divides`: what is said is of the
// whole batch, of which parts were tried, too. It goes on after "mltc: FILE "; no line end at the end.
void plan_print_shortfall(const plan *p, const ir_module *m, int64_t budget, int64_t works,
                          bool divides, ir_buf *out);

// --- what the planner is made of (passes/plan_*.c) ----------------------------------------------

// True when kernel `k` may compute member `out` into the memory of its input `in` (for a READ:
// of the state, through any of its reads): each iteration reads the elements it overwrites, and
// no other ones. `out` must be a buffer of dom_kernel_io.
bool plan_may_overwrite(ir_arena *a, const ir_kernel *k, const ir_node *in, const ir_node *out);

// Packing: intervals [lower, upper) of any integer time, sizes in bytes.
typedef struct plan_interval {
  int64_t lower, upper, size;
  int64_t offset; // set by plan_pack; where sizes are multiples of an alignment, so is it
} plan_interval;
// What packing may cost. Without `is_late` nothing depends on a clock: equal input, equal offsets.
typedef struct plan_pack_limits {
  int64_t capacity;             // a height that is good enough; 0: only the bound is
  int64_t steps;                // about one interval looked at each; 0: what compiles spend
  bool (*is_late)(void *clock); // asked now and then; true ends the search. NULL: never
  void *clock;
} plan_pack_limits;
typedef struct plan_packing {
  int64_t height;
  int64_t bound;  // most bytes live at one time
  int64_t proved; // no packing is lower: the bound, or what the search proved
  int64_t steps;  // spent
} plan_packing;
// Gives each interval an offset such that no two that overlap in time overlap in memory.
plan_packing plan_pack_within(plan_interval *iv, size_t n, const plan_pack_limits *limits);
// The same in a compile: as low as its steps allow. Returns the height.
int64_t plan_pack(plan_interval *iv, size_t n);
// The same where `enough` bytes are, 0: none. If they can be reached and a compile's steps do not, five times as many are
// spent: half a second, where otherwise a budget is missed.
int64_t plan_pack_for(plan_interval *iv, size_t n, int64_t enough);
// Whether `enough` bytes are, and no lower than that: of searches that ask nothing else. Whatever an effort comes down
// to, a greater one does, and plan_pack_for.
typedef enum plan_effort {
  PLAN_QUICK,   // an eighth of a compile's steps, which do for nine of ten that come down
  PLAN_COMPILE, // a compile's
  PLAN_HARD,    // those of plan_pack_for
  PLAN_NUM_EFFORTS,
} plan_effort;
int64_t plan_pack_down_to(plan_interval *iv, size_t n, int64_t enough, plan_effort effort);
// Lower bound of any packing: the most bytes that are live at one time.
int64_t plan_pack_bound(ir_arena *a, const plan_interval *iv, size_t n);
// Number of intervals whose memory is taken by another live interval when they start.
size_t plan_pack_check(ir_arena *a, const plan_interval *iv, size_t n);

#endif
