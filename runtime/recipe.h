// recipe.h: the training loop's settings, resolved: graph, flags and command line become numbers.
#ifndef RUNTIME_RECIPE_H
#define RUNTIME_RECIPE_H

#include "runtime/args.h"
#include "runtime/data.h"

typedef struct mlrt_recipe {
  int64_t steps;             // in all
  int64_t accumulate;        // batches per step
  int64_t batches_per_epoch; // of the training data
  int64_t eval_every;        // steps; 0: at the end of each epoch
  int64_t save_every;        // steps; 0: at the end of each epoch; -1: at the end only
  int64_t log_every;         // steps; 0: at the end of each epoch
  bool shuffle;
} mlrt_recipe;

// Needs the data's size for `epochs`. False after setting `e` (wrong usage).
bool mlrt_recipe_make(mlrt_recipe *r, const mlrt_program *p, const mlrt_options *o,
                      int64_t batches_per_epoch, mlrt_error *e);
// A setting of the graph: its number, the value of its flag, or `fallback` where there is none.
double mlrt_recipe_number(const mlrt_program *p, const mlrt_options *o, const char *key,
                          double fallback);
// Parts that a batch of the graph is run in (1: it is whole). They lie in one batch of the data each.
int64_t mlrt_micro_batches(const mlrt_program *p);
// The flag that says the graph's seed; NULL: none does.
const mlrt_flag *mlrt_recipe_seed_flag(const mlrt_program *p, const mlrt_options *o);
// The seed of a new run: --seed, or the graph's. False after setting `e` (wrong usage).
bool mlrt_recipe_seed(uint64_t *out, const mlrt_program *p, const mlrt_options *o, mlrt_error *e);
// Whether something that happens `every` so many steps (0: each epoch) is due after `step` steps.
bool mlrt_recipe_due(const mlrt_recipe *r, int64_t every, int64_t step);
// Passes over the training data that so many batches make. (An earlier part of a run may have accumulated more or fewer of
// them in a step.)
double mlrt_recipe_epoch(const mlrt_recipe *r, int64_t batches);

// Entries of the program's data: the training set ("train", or the first), the one to evaluate
// during training (NULL: none), one by name (NULL: none).
const mlrt_data *mlrt_train_data(const mlrt_program *p);
const mlrt_data *mlrt_eval_data(const mlrt_program *p);
const mlrt_data *mlrt_find_data(const mlrt_program *p, const char *name);
// Flag values for the settings of data. `o` must outlive it.
mlrt_flag_values mlrt_data_flags(const mlrt_options *o);

#endif
