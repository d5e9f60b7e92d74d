// plan_parts.h: what the files of the planner share; nobody else includes it.
#ifndef PASSES_PLAN_PARTS_H
#define PASSES_PLAN_PARTS_H

#include "passes/domain.h"
#include "passes/plan.h"
#include "passes/schedule.h"

// The buffers of one function before they have offsets, and workspaces names.
typedef struct plan_live {
  ir_func *f;
  IR_VEC(plan_buffer) buffers;    // TEMP, RESULT, WORKSPACE, by first kernel; `reuses` is local
  IR_VEC(plan_buffer) host;       // HOST, likewise
  int *buffer_of;                 // [node id] index into buffers, -1
  const ir_state **in_place;      // [node id] the state that the node is computed into, or NULL
  IR_VEC(const ir_node *) copied; // WRITE nodes that need a copy
} plan_live;
plan_live plan_live_func(ir_arena *a, ir_func *f);
// The same when kernels run in these steps; `buffer_of` is what a node's kernel made last.
plan_live plan_live_steps(ir_arena *a, sched *s, const int *steps, size_t num);

// What is packed: buffers that take over each other's memory are one interval.
typedef struct plan_joined {
  plan_interval *at;
  size_t num;
  int *of; // [buffer] its interval
} plan_joined;
plan_joined plan_join_reused(ir_arena *a, const plan_live *l);

// Bytes of temporaries of `f` among these buffers that are live at each of its kernels: `live` has two
// elements more than there are kernels. What takes memory over counts from the next kernel on. Returns
// the most.
int64_t plan_live_bytes(const plan_buffer *at, size_t num, const ir_func *f, int64_t *live);

// False: plan_may_overwrite is for no operand of the kernel.
bool plan_overwrites_any(const ir_kernel *k);
// plan_may_overwrite for many operands and outputs of one kernel.
typedef struct plan_overwrites plan_overwrites;
plan_overwrites *plan_overwrites_new(ir_arena *a, const ir_kernel *k);
bool plan_overwrites_ask(plan_overwrites *o, const ir_node *in, const ir_node *out);

// Several READ nodes may stand for one state.
bool plan_same_memory(const ir_node *a, const ir_node *b);
// What the sweeps of a kernel with reductions read (plan_sweeps.c). Members' marks are 0, before and after.
typedef struct plan_sweeps plan_sweeps;
plan_sweeps *plan_sweeps_new(ir_arena *a, const ir_kernel *k, const domain *d);
// Whether member `output` is stored when nothing is left that reads operand `in`; both walk the same elements.
bool plan_is_read_last(plan_sweeps *s, const ir_node *in, const ir_node *output);

// `l`, where values that wishes name do not lie over operands, or under what is computed over them,
// as far as there is room for both.
plan_live plan_part_wished(ir_arena *a, const plan_live *l, const plan_wishes *w);
// Widens the intervals of `j` by what is wished, where no more than `most` bytes are live then. The
// result: `l` with the buffers' lives as they are now.
plan_live plan_grant_wishes(ir_arena *a, const plan_live *l, const plan_wishes *w, int64_t most,
                            const plan_joined *j);

static inline int64_t plan_align(int64_t bytes) {
  return (bytes + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
}

// Memory as regions with an owner each: coordinates are compressed, so all boundaries that will
// be asked for are given first. Owners are positive; 0: nobody.
typedef struct plan_regions plan_regions;
plan_regions *plan_regions_new(ir_arena *a, int64_t *bounds, size_t n); // sorts `bounds`
void plan_regions_set(plan_regions *r, int64_t begin, int64_t end, int owner);
enum { PLAN_MIXED = -1 };
// The owner of all of [begin, end), or PLAN_MIXED.
int plan_regions_get(const plan_regions *r, int64_t begin, int64_t end);

#endif
