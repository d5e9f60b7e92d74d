// schedule.h: a function as the planner sees it: kernels, the values that they make and read, and
// how long each value lives when the kernels run in some order, some of them more than once.
//
//   kernels   0 { %h = relu(x @ w) }  1 { %y = sum(h) }  2 { %d = .. y }  3 { %dw = .. h, d }
//   steps     0 1 2 3                 h lives from step 0 to step 3
//   steps     0 1 2 0 3               h lives from 0 to 1, and again from 3 to 4
//
// One set of rules for whoever asks: the plan of the order that stands (plan_live.c), and all who
// look for a better one. Needs: pass_fuse, and workspaces where they are to count.
#ifndef PASSES_SCHEDULE_H
#define PASSES_SCHEDULE_H

#include "passes/domain.h"
#include "passes/plan.h"

// What a kernel reads: a buffer, a stretch of one, a state or an input.
typedef struct sched_in {
  ir_node *node;
  int value;    // -1: a state or an input of the function
  int state;    // id of the state; -1: it is none
  bool stretch; // a part of the value
} sched_in;

typedef struct sched_kernel {
  ir_kernel *k;
  const sched_in *in; // in order of dom_kernel_io; those of all kernels lie side by side
  int num_in;
  int first_value, num_values;     // its outputs: sched.values[first_value ..]
  const struct sched_under *under; // schedule_under.c's answers, when first asked for; NULL before
} sched_kernel;

// Operands of a kernel: elements of sched_kernel.in.
typedef struct sched_ins {
  const int *at;
  int num;
} sched_ins;

// `write @s, v`.
typedef struct sched_write {
  const ir_node *node;
  int value;
  bool over_own;      // its kernel reads @s, if at all, at the elements that it writes
  const int *readers; // kernels that read @s
  int num_readers;
} sched_write;

static inline bool sched_reads(const sched_kernel *k, int value) {
  for (int i = 0; i < k->num_in; i++)
    if (k->in[i].value == value)
      return true;
  return false;
}

typedef struct sched_value {
  ir_node *node;
  int kernel;
  int64_t bytes;
  bool written, result; // to a state; it is needed at the end
  bool host;            // in memory of the host: what a SEND makes
} sched_value;

typedef struct sched {
  ir_arena *arena;
  ir_func *f;
  int num_kernels, num_values;
  int most_in;                   // operands of one kernel
  bool has_transfers;            // to the host or back
  struct sched_scratch *scratch; // of sched_weigh; NULL until it is called
  struct sched_forms *forms;     // of kernels that were asked about; NULL: none was
  sched_kernel *kernels;         // by ir_kernel.id
  sched_value *values;           // by kernel
  int *value_of;                 // [node id] -1: no kernel's output
  int *written_to;               // [state id] the value that goes there, -1
  IR_VEC(sched_write) writes;    // in order of the function
} sched;

// Lives as long as `a`. kernel->id must be positions in f->kernels.
sched *sched_new(ir_arena *a, ir_func *f);
// The operands that kernel `k` may compute its output `out` (0 ..) over: whole values of as many bytes, of which it
// reads no element after it has written it. In order.
sched_ins sched_find_under(sched *s, int k, int out);

// Memory of one value, made by one step, or the workspace of a step.
typedef struct sched_life {
  int value; // -1: workspace
  int kernel;
  plan_kind kind;
  int64_t bytes;
  int first, last; // steps, inclusive
  int reuses;      // life whose memory step `first` takes over in place; -1: none
} sched_life;

typedef struct sched_lives {
  IR_VEC(sched_life) at;          // by first step
  IR_VEC(sched_life) host;        // in memory of the host, likewise
  const ir_state **in_place;      // [value] the state that it is computed into; NULL: it has a life
  IR_VEC(const ir_node *) copied; // WRITE nodes whose value has memory of its own
} sched_lives;

// Steps are kernel indices. Each operand must have been made by an earlier step: the last such
// step is the one that is read. Results and states take what a kernel makes the first time. What a
// transfer makes has memory from the first step of the kernel on before which it begins.
sched_lives sched_find_lives(sched *s, ir_arena *a, const int *steps, size_t num);
// The steps of each kernel once, in the order that stands; allocated in `a`.
int64_t sched_bytes_made(const sched *s, int k); // by kernel `k`
int *sched_order_as_it_is(const sched *s, ir_arena *a);
// Bytes that are live at each step: `live` has `num` elements. Returns the most.
int64_t sched_live_bytes(const sched_lives *l, size_t num, int64_t *live);
// The same most, of steps that are only weighed: in a fraction of the time. *at, unless NULL: the first step at which
// it is live, where there are any.
int64_t sched_weigh(sched *s, const int *steps, size_t num, size_t *at);
// Whether that is at most `most`: where it is not, the steps in front of the last one that takes more are not looked at.
bool sched_fits(sched *s, const int *steps, size_t num, int64_t most);
// The first step at which `most`, the most of all steps, are live.
size_t sched_find_peak(const int64_t *live, int64_t most);

#endif
