// loop_start.h: everything a training run has, and how it comes to be: new, or from a checkpoint.
#ifndef RUNTIME_LOOP_START_H
#define RUNTIME_LOOP_START_H

#include "runtime/metrics.h"
#include "runtime/profile.h"
#include "runtime/progress.h"
#include "runtime/recipe.h"
#include "runtime/trainer.h"

// A run of the step's or the accumulation's function whose results the loop has still to take.
typedef struct mlrt_untaken {
  const mlrt_func *func; // NULL: none
  int slot;
  int64_t step; // that it belongs to
} mlrt_untaken;

typedef struct mlrt_loop {
  mlrt_trainer trainer;
  mlrt_recipe recipe;
  mlrt_dataset *train, *eval; // eval NULL: no evaluation
  mlrt_batches *batches;
  mlrt_saver saver; // path NULL: --no-save
  mlrt_metrics metrics;
  mlrt_profile profile;
  mlrt_progress progress;
  mlrt_run_point at;
  int64_t saved; // step of the last checkpoint; -1: none
  bool warned;   // about a loss that is not finite
  bool crowded;  // it has been said that another program saves to the same file
  mlrt_untaken untaken;
  double loss; // of the step in the making: of its batches so far
  // By result of the accumulation's function: that of the step's with its name; -1: none.
  int same_of_step[MLRT_MAX_RESULTS];
  bool step_only
      [MLRT_MAX_RESULTS]; // by result of the step's: the accumulation's has none of its name
  bool ran;               // a batch, since the start
  bool bad_data;          // the run ends, because a sample cannot be used:
  mlrt_error error;       // why
} mlrt_loop;

// Ends the process through mlrt_fail when something is wrong.
void mlrt_loop_open(mlrt_loop *l, const mlrt_program *p, mlrt_options *o);
// Whether the evaluation after the present step is still to be made.
bool mlrt_loop_eval_due(const mlrt_loop *l);
// False when the metrics or the profile could not be written.
bool mlrt_loop_close(mlrt_loop *l);

#endif
