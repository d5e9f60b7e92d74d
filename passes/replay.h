// replay.h: the steps of a function of which some kernels of the forward pass run again when the
// backward pass needs what they have made.
//
//   kernels   0 a  1 b(a)  2 c(b)  3 loss(c)  4 d.c(c, b)  5 d.b(b, a)
//   again     1 b                                     b is dropped after step 2
//   steps     0 1 2 3 1 4 5                           and made again before step 4
//
// What an operand of such a kernel is made from lives until then, unless that is made again, too.
#ifndef PASSES_REPLAY_H
#define PASSES_REPLAY_H

#include "passes/schedule.h"

typedef IR_VEC(int) replay_steps; // kernel indices

typedef struct replay {
  sched *s;
  ir_arena *arena;
  int forward; // kernels 0 .. forward are the forward pass; -1: there is no backward pass
  bool
      *may_again; // [kernel] of the forward pass, and it can run again: no output of it is a result
                  // or goes to a state
  bool *in_loss;  // [kernel] the loss is made from it
  int *early_end; // [value] the last kernel of the forward pass that reads it, or its own
  double *seconds; // [kernel] cost_seconds
} replay;

replay *replay_new(ir_arena *a, sched *s);

// What a choice of kernels that run again leads to.
typedef struct replay_outcome {
  double seconds;     // that running kernels again takes
  int num_again;      // steps that run a kernel again
  int64_t live_bytes; // most bytes of temporaries live at one step
} replay_outcome;

// `again`: [kernel] true where may_again. Steps are allocated in `a`.
replay_steps replay_make_steps(const replay *r, ir_arena *a, const bool *again);
replay_outcome replay_try(const replay *r, const bool *again);
// The bytes that these steps' temporaries take once they are packed.
int64_t replay_arena_bytes(const replay *r, const replay_steps *steps);

// Clones kernels and puts them in this order. `s`, which describes the function as it was, is of no
// more use then.
void replay_apply(const sched *s, const replay_steps *steps);

#endif
