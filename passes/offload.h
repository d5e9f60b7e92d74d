// offload.h: values that wait for the backward pass in memory of the host instead of the device's, and
// the copies there and back, beside the kernels.
//
//   kernel        0 h = f(x)   1 y = g(h)   2 ...    ...   8 ...   9 d.h = g'(h, d.y)
//   send h                     [begin ......... done]
//   fetch h                                                [begin  done]
//   h on device   [===========================]            [============]
//
// One engine copies each way, one value after the other, at a fixed rate; kernels take what
// cost.h says. A copy has its memory from where it begins to where it is done, so the more time copies
// may take, the less is saved: places are chosen such that nothing waits. Where that is not enough,
// they are chosen for a machine whose kernels are slower by a factor, the least one that fits; then
// kernels will wait.
#ifndef PASSES_OFFLOAD_H
#define PASSES_OFFLOAD_H

#include "passes/replay.h"

// One value of a schedule, made by one step.
typedef struct offload_move {
  int value;
  int made;   // the step that makes it; the send begins behind it
  int sent;   // the send is done before this step: nothing before it and behind `made` writes there
  int begin;  // the fetch begins before this step ...
  int needed; // ... and is done before this one, which reads the value; sent <= begin <= needed
} offload_move;

typedef struct offload_choice {
  IR_VEC(offload_move) moves; // by `made`
  bool fits;
  double waiting;      // seconds that kernels wait for copies
  int64_t arena_bytes; // of temporaries once they are packed
} offload_choice;

// Bytes that cross between device and host in a second, each way: `config host_bandwidth`. 0: the target
// has one memory.
double offload_bandwidth(const ir_module *m);
// What to send for temporaries of at most `budget` bytes when the kernels of `s` run in these steps, which take more
// without. seconds: [kernel]. Where the budget cannot be reached, as much as helps.
offload_choice offload_choose(ir_arena *a, sched *s, const replay_steps *steps,
                              const double *seconds, int64_t budget, double bandwidth);
// Seconds that kernels of `f`, in their order, wait for its transfers.
double offload_waiting(ir_arena *a, const ir_func *f, const double *seconds, double bandwidth);
// Puts sends and fetches between the kernels of a function, whose order is that of the moves' steps.
// `s` is of no more use then.
void offload_apply(const sched *s, const offload_choice *c);

#endif
