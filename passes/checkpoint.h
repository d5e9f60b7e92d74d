// checkpoint.h: which values of the forward pass are kept for the backward pass, and which kernels run
// again instead: the policies of pass_checkpoint.
//
// A policy is a choice of values (`drop`, by value of the schedule) that are made again when the
// backward pass needs them (replay.h), or a list of steps. All policies are compared by what a choice
// really leads to: lives as the plan sees them, and seconds of cost.h.
#ifndef PASSES_CHECKPOINT_H
#define PASSES_CHECKPOINT_H

#include "passes/pass.h"
#include "passes/replay.h"

typedef enum checkpoint_policy {
  CHECKPOINT_NONE,      // everything is kept
  CHECKPOINT_FREE,      // what takes next to no time to make again is not: copies for convolutions
  CHECKPOINT_SELECTIVE, // what is cheap to make again is not kept
  CHECKPOINT_SQRT,      // about sqrt(L) of L places in the network are kept (Chen et al., 2016)
  CHECKPOINT_ALL,       // only what goes from block to block is kept
  CHECKPOINT_AUTO,      // the least time that meets the budget
  CHECKPOINT_NUM_POLICIES
} checkpoint_policy;
extern const char *const checkpoint_names[CHECKPOINT_NUM_POLICIES + 1]; // ends with NULL

// Whether what the text's `config checkpoint` says is a policy, or it says nothing. False: E0507 in `d`.
bool checkpoint_policy_is_known(const ir_module *m, ir_diags *d);

// Each fills `drop` ([value] a replay_drop, all REPLAY_KEEP before).
bool checkpoint_has_free(const ir_func *f); // there is something that `free` might drop
void checkpoint_free(replay *r, unsigned char *drop);
void checkpoint_selective(replay *r, unsigned char *drop);
void checkpoint_sqrt(replay *r, unsigned char *drop);
void checkpoint_all(const replay *r, unsigned char *drop);
// The steps that take the least time of those found whose temporaries take at most `budget` bytes
// once they are packed. False: none were found, and `out` are those that take the fewest bytes. The search
// may do 1/share of the work that one alone may.
bool checkpoint_auto(replay *r, int64_t budget, int share, replay_steps *out);
// The same where values may also wait in memory of the host (offload.h), which `bandwidth` bytes reach in
// a second: steps whose temporaries fit once pass_offload has moved some.
replay_steps checkpoint_with_host(replay *r, int64_t budget, double bandwidth);
// The same among sequences of a chain of stages (chain.h). No steps: the forward pass is no chain.
bool checkpoint_chain(replay *r, int64_t budget, replay_steps *out);

// Places for cuts behind which one value goes on.
typedef struct checkpoint_cut {
  int kernel, value; // the last kernel before it
} checkpoint_cut;
typedef IR_VEC(checkpoint_cut) checkpoint_cuts;
checkpoint_cuts checkpoint_find_cuts(const replay *r, ir_arena *a);

// What becomes of values inside parts.
typedef enum checkpoint_depth {
  CHECKPOINT_ONCE,   // each value is dropped once
  CHECKPOINT_PLACES, // what crosses a place for a cut once, all else always
  CHECKPOINT_ALWAYS, // each value always
  CHECKPOINT_NUM_DEPTHS
} checkpoint_depth;
// `sqrt` with a number of parts. last: the last part runs again, too, which is for networks with a peak
// in the loss.
void checkpoint_parts(const replay *r, int parts, bool last, checkpoint_depth depth,
                      unsigned char *drop);
int checkpoint_num_places(const replay *r); // where cuts may be

// A stream that goes from block to block is kept: else it would have to be made again from the
// beginning. That may be worth it: what is dear to make is kept beside it, and the sums are cheap.
typedef enum checkpoint_streams {
  CHECKPOINT_KEEP_STREAMS,
  CHECKPOINT_DROP_STREAMS
} checkpoint_streams;
void checkpoint_cheap(const replay *r, checkpoint_streams how, unsigned char *drop);

// A choice that keeps little: what is cheap for its bytes is dropped, or parts of the network.
typedef struct checkpoint_start {
  int parts;              // 0: what is cheap
  checkpoint_streams how; // then
  checkpoint_depth depth;
  bool known; // its outcome is: searches within other budgets begin with the same choices
  replay_outcome outcome;
} checkpoint_start;
typedef IR_VEC(checkpoint_start) checkpoint_starts;
checkpoint_starts *checkpoint_list_starts(const replay *r); // in the replay's arena
void checkpoint_choose_start(const replay *r, const checkpoint_start *x, unsigned char *drop);

#endif
