// trainer.h: a program in memory: its device, its team, its states.
//
// These calls end the process through mlrt_fail when something is missing: they run before or
// between steps, on the main thread.
#ifndef RUNTIME_TRAINER_H
#define RUNTIME_TRAINER_H

#include "runtime/checkpoint.h"
#include "runtime/device.h"

typedef struct mlrt_trainer {
  const mlrt_program *program;
  mlrt_options *options;
  mlrt_device device;
  mlrt_team *team;
  double started; // seconds
} mlrt_trainer;

// Takes the device and its arena, starts the team, writes the flags.
void mlrt_trainer_open(mlrt_trainer *t, const mlrt_program *p, mlrt_options *o);
void mlrt_trainer_close(mlrt_trainer *t);

// Initial states: seeds, counters, then the program's init function.
void mlrt_trainer_init(mlrt_trainer *t, uint64_t seed);
// Runs f, one of the program's functions, on the batch in `slot`. On a GPU it is under way when
// these return, and mlrt_trainer_result waits for it.
void mlrt_trainer_run(mlrt_trainer *t, const mlrt_func *f, int slot);
// On the batch that mlrt_trainer_next gave, preparing the one after it.
void mlrt_trainer_run_batch(mlrt_trainer *t, const mlrt_func *f, mlrt_batches *b,
                            const mlrt_batch *batch);

// A scalar result as the last run on `slot` left it; r: in the table of that run's function.
double mlrt_trainer_result(mlrt_trainer *t, int slot, const mlrt_result *r);
// Whether results of one run may (and should) be taken when the next one has been started on the
// other slot.
bool mlrt_trainer_lags(const mlrt_trainer *t);

// mlrt_batches_open, _begin and _next for this trainer: batches are made where its device takes
// them from, and only when it has taken those before. Large ones are made by a thread of their own.
mlrt_batches *mlrt_trainer_batches(mlrt_trainer *t, mlrt_error *e);
bool mlrt_trainer_begin(mlrt_trainer *t, mlrt_batches *b, const mlrt_order *order, mlrt_error *e);
mlrt_next mlrt_trainer_next(mlrt_trainer *t, mlrt_batches *b, mlrt_batch *out, mlrt_error *e);
// Loss or metric: one number. (Outputs are tensors.)
bool mlrt_result_is_scalar(const mlrt_result *r);

// Opens the checkpoint that the options name (FILE, or the save file): verified, not yet read.
// Flags not given on the command line take the values of the run that wrote it, and texts its characters.
mlrt_checkpoint mlrt_trainer_checkpoint(const mlrt_program *p, mlrt_options *o);
// The file that this run saves to: --save, or MODEL.safetensors.
const char *mlrt_save_path(const mlrt_options *o);

// NULL: `e` says why. Any thread may call it. The other one ends the process through mlrt_fail.
mlrt_dataset *mlrt_trainer_open_data(const mlrt_program *p, const mlrt_options *o,
                                     const mlrt_data *d, mlrt_use use, mlrt_error *e);
mlrt_dataset *mlrt_trainer_data(const mlrt_program *p, const mlrt_options *o, const mlrt_data *d,
                                mlrt_use use);
double mlrt_seconds(void); // monotonic
// "memory: 1234 bytes (...)", the plan's promise.
void mlrt_print_memory(const mlrt_trainer *t);

#endif
