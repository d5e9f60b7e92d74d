// checkpoint.h: which values of the forward pass are kept for the backward pass, and which kernels run
// again instead: the policies of pass_checkpoint.
//
// A policy is a choice of kernels (`again`, by kernel of the schedule) that are run again when the
// backward pass needs what they made (replay.h). All policies are compared by what a choice really
// leads to: lives as the plan sees them, and seconds of cost.h.
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

// Each fills `again` ([kernel], all false before).
void checkpoint_selective(const replay *r, bool *again);
void checkpoint_sqrt(const replay *r, bool *again);
void checkpoint_all(const replay *r, bool *again);
// The choice that takes the least time of those found whose temporaries take at most `budget` bytes
// once they are packed. False: none was found, and `again` is the one that takes the fewest bytes.
bool checkpoint_auto(const replay *r, int64_t budget, bool *again);

// `sqrt` with a number of parts, and the number of places where cuts may be.
void checkpoint_parts(const replay *r, int parts, bool *again);
int checkpoint_num_places(const replay *r);

// Takes kernels out of `again`, the slowest first, as long as no more than `bytes` are live.
void checkpoint_trim(const replay *r, int64_t bytes, bool *again);

#endif
