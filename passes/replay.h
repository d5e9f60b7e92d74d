// replay.h: the steps of a function that drops values of the forward pass and makes them again when the
// backward pass needs them, by running their kernels again.
//
//   kernels   0 a  1 b(a)  2 c(b)  3 loss(c)  4 d.c(c, b)  5 d.b(b, a)
//   drop      b                                       it has no memory after step 2
//   steps     0 1 2 3 1 4 5                           and is made again before step 4
//
// What is not dropped lives until the last step that needs it, be it to make something else again. So
// does what has been made again; but a value that is dropped *always* goes again if it was made only
// on the way to another one. Parts of parts of a network can be run again like that, for less memory
// and more time.
#ifndef PASSES_REPLAY_H
#define PASSES_REPLAY_H

#include "passes/schedule.h"

typedef IR_VEC(int) replay_steps; // kernel indices

typedef enum replay_drop { REPLAY_KEEP, REPLAY_DROP, REPLAY_DROP_ALWAYS } replay_drop;

typedef struct replay_packed replay_packed; // what replay_arena_bytes has packed

typedef struct replay {
  sched *s;
  ir_arena *arena;
  int forward;     // the last kernel of the forward pass; -1: no loss
  int *turn;       // [kernel] the last one before the backward pass of the loss it is for; -1: none
  int *early_end;  // [value] the last kernel that reads it up to the turn, or its own
  double *seconds; // [kernel] cost_of_kernels
  double *again;   // [kernel] cost_of_again
  int64_t tried;   // steps of all that replay_try has gone over: what searches are limited by
  replay_packed *packed;
  int missed[PLAN_NUM_EFFORTS]; // packings that did not come down to what was enough, by their size
} replay;

replay *replay_new(ir_arena *a, sched *s);
// Kernel `k` is behind the turn of the kernel that makes the value, so that a dropped one has been made again.
static inline bool replay_is_late(const replay *r, int value, int k) {
  int turn = r->turn[r->s->values[value].kernel];
  return k > (turn < 0 ? r->forward : turn);
}
static inline bool replay_in_loss(const replay *r, int k) {
  return r->turn[k] >= 0;
}

// What steps, or a choice of values, lead to.
typedef struct replay_outcome {
  double seconds;     // that running kernels again takes
  int num_again;      // steps that run a kernel again
  int64_t live_bytes; // most bytes of temporaries live at one step
} replay_outcome;

// drop: [value] what becomes of it (a replay_drop); KEEP for values of kernels behind `forward`. Steps
// are allocated in `a`; there are none when they would be more than REPLAY_MAX_TIMES those of one run.
enum { REPLAY_MAX_TIMES = 8 };
replay_steps replay_make_steps(const replay *r, ir_arena *a, const unsigned char *drop);
replay_outcome replay_weigh(replay *r, const replay_steps *steps);
replay_outcome replay_try(replay *r, const unsigned char *drop); // of the steps it leads to
// Whether at most `bytes` are live then: in less time than to find out how many.
bool replay_fits(replay *r, const unsigned char *drop, int64_t bytes);
// The bytes that these steps' temporaries take once they are packed: as few as `enough`, or whatever comes out
// (plan_pack_down_to); 0 or less: as few as can be. Where an effort has missed REPLAY_MOST_MISSED times, less is made;
// a miss of many temporaries, which takes long, counts once more for each REPLAY_MANY.
enum { REPLAY_MOST_MISSED = 4, REPLAY_MANY = 4096 }; // of so many, one more or less packs alike
int64_t replay_arena_bytes(replay *r, const replay_steps *steps, int64_t enough,
                           plan_effort effort);

// Moves steps that run again forwards until at most `budget` bytes are live at any, no move helps, or r->tried
// has come to `until`. Returns the most that are live.
int64_t replay_hoist(replay *r, int64_t budget, int64_t until, replay_steps *steps);
// Leaves out steps that run again, the dearest first, as long as at most `budget` bytes are live and r->tried is
// less than `until`.
void replay_prune(replay *r, int64_t budget, int64_t until, replay_steps *steps);

// Clones kernels and puts them in this order. `s`, which describes the function as it was, is of no
// more use then.
void replay_apply(const sched *s, const replay_steps *steps);

#endif
