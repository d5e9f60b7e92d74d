// checkpoint.h: which values of the forward pass are kept for the backward pass, and which kernels run
// again instead: the policies of pass_checkpoint.
//
// A policy is a choice of values (`drop`, by value of the schedule) that are made again when the
// backward pass needs them (replay.h). All policies are compared by what a choice really leads to: lives
// as the plan sees them, and seconds of cost.h.
#ifndef PASSES_CHECKPOINT_H
#define PASSES_CHECKPOINT_H

#include "passes/pass.h"
#include "passes/replay.h"

typedef enum checkpoint_policy {
  CHECKPOINT_NONE,      // everything is kept
  CHECKPOINT_SELECTIVE, // what is cheap to make again is not kept
  CHECKPOINT_SQRT,      // about sqrt(L) of L places in the network are kept (Chen et al., 2016)
  CHECKPOINT_ALL,       // only what goes from block to block is kept
  CHECKPOINT_AUTO,      // the least time that meets the budget
  CHECKPOINT_NUM_POLICIES
} checkpoint_policy;
extern const char *const checkpoint_names[CHECKPOINT_NUM_POLICIES];

// Each fills `drop` ([value], all false before).
void checkpoint_selective(const replay *r, bool *drop);
void checkpoint_sqrt(const replay *r, bool *drop);
void checkpoint_all(const replay *r, bool *drop);
// The choice that takes the least time of those found whose temporaries take at most `budget` bytes
// once they are packed. False: none was found, and `drop` is the one that takes the fewest bytes.
bool checkpoint_auto(const replay *r, int64_t budget, bool *drop);

// `sqrt` with a number of parts (`last`: the last part runs again, too, which is for networks with a
// peak in the loss), and the number of places where cuts may be.
void checkpoint_parts(const replay *r, int parts, bool last, bool *drop);
int checkpoint_num_places(const replay *r);

// Keeps what need not be dropped for at most `bytes` to be live, the dearest for its bytes first.
void checkpoint_trim(const replay *r, int64_t bytes, bool *drop);

#endif
