// prefetch.h: batches in order, the next one prepared while a step runs: by a thread of its own, or
// by the threads of the step while they wait for each other.
//
//   mlrt_batches *b = mlrt_batches_open(program, staging, threaded, &e);   // one per trainer
//   mlrt_batches_begin(b, &train_order, &e);
//   while (mlrt_batches_next(b, &batch, &e) == MLRT_BATCH) {
//     mlrt_spare ahead = mlrt_batches_ahead(b);              // where no thread does it: optional
//     mlrt_team_run_beside(team, fn, arena, batch.slot, &ahead);
//   }
//   mlrt_position here = mlrt_batches_position(b);           // a checkpoint stores this ...
//   mlrt_batches_begin(b, &eval_order, &e); ...              // evaluate with the same two slots
//   train_order.from = here; mlrt_batches_begin(b, &train_order, &e);  // ... and training goes on
//   mlrt_batches_close(b);
//
// The batch that next() gave stays untouched until the following next(), begin() or close(). What
// it holds is the same however it was prepared. Rows that hold their samples already, from two batches
// before, are not copied again: nobody else may write to the slots, or must say so.
// No memory is allocated after open. Waiting sleeps. All calls come from one thread.
#ifndef RUNTIME_PREFETCH_H
#define RUNTIME_PREFETCH_H

#include "runtime/data.h"
#include "runtime/team.h"

typedef struct mlrt_batches mlrt_batches;

// Where the next batch starts: `index` samples into `epoch` (a multiple of the batch size).
typedef struct mlrt_position {
  int64_t epoch, index;
} mlrt_position;

typedef struct mlrt_order {
  const mlrt_dataset *data; // must outlive the next begin() or close()
  // Training: goes on for ever, epoch after epoch, and drops the samples that do not fill a batch.
  // Evaluation: one pass in file order from `from.index`. What is left at the end are batches of fewer
  // samples, each in it equally often; or, where the batch size has few divisors, after several of
  // these one that is filled up with copies of its last sample.
  mlrt_use use;
  bool shuffle; // training: a new permutation per epoch, from `seed`; evaluation ignores it
  uint64_t seed;
  mlrt_position from; // {0, 0}: from the start
} mlrt_order;

typedef struct mlrt_batch {
  int slot;         // staging slot that holds it: 0 or 1
  int64_t valid;    // samples that count; fewer than rows only at the end of evaluation
  mlrt_position at; // of its first sample
  bool last_of_epoch;
} mlrt_batch;

typedef enum mlrt_next { MLRT_BATCH, MLRT_END, MLRT_BAD } mlrt_next;

// The batch size is dims[0] of the program's inputs. Input i of slot s is made at `staging` +
// its offset - state_bytes + s * staging_slot_bytes. `threaded` = false: next() fills the batch
// itself where ahead() did not (for steps so short that waking a thread costs more).
mlrt_batches *mlrt_batches_open(const mlrt_program *p, char *staging, bool threaded, mlrt_error *e);
void mlrt_batches_close(mlrt_batches *b); // NULL is fine

// Samples per batch, and batches in one pass over `d`.
int64_t mlrt_batch_size(const mlrt_program *p);
int64_t mlrt_batches_per_epoch(const mlrt_program *p, const mlrt_dataset *d, mlrt_use use);

// Drops what was prepared and starts anew. False: fewer samples than one training batch, or a
// position that this data does not have.
bool mlrt_batches_begin(mlrt_batches *b, const mlrt_order *order, mlrt_error *e);
mlrt_next mlrt_batches_next(mlrt_batches *b, mlrt_batch *out, mlrt_error *e);
// After next(): the batch that follows, as work beside a run on this one. All of it must be done
// before the next call. No pieces: there is nothing to prepare, or not in small pieces.
mlrt_spare mlrt_batches_ahead(mlrt_batches *b);
// The caller has written to the slot of the batch that next() gave, which need not hold its samples any more.
void mlrt_batches_overwritten(mlrt_batches *b, int slot);
// Of the batch that the following next() will give.
mlrt_position mlrt_batches_position(const mlrt_batches *b);

#endif
