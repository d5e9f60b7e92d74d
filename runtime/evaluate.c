// evaluate.c: exact means over data that is no whole number of batches.
//
// Shapes are static. Of what is left at the end, batches are made in which each sample is equally often
// (prefetch.h): a mean over such a batch is that over its samples, and counts as many times as there
// are. So do values that are no means over samples, as a mean over those of them that have a label: such
// a value of few samples may be far from that of many, but never out of its range.
//
// Where that would take too many batches, the last is filled up with copies of its last sample. With B rows
// of which r are real, the function gives m = (S + (B - r) f) / B: S is the wanted sum over the real
// rows, f the value of the last sample alone. A second run on a batch of B copies of that sample
// gives f; S = B m - (B - r) f. This holds for every loss and metric that is a mean over samples.
#include "runtime/evaluate.h"
#include "runtime/signals.h"

#include <string.h>

// A run whose results are still to be added.
typedef struct untaken {
  bool any;
  int slot;
  double weight;
} untaken;

// Adds weight * result of the last run on `slot` to each sum.
static void add_results(mlrt_trainer *t, double *sums, int slot, double weight) {
  const mlrt_func *f = &t->program->funcs[MLRT_EVAL];
  for (int i = 0; i < f->num_results && i < MLRT_MAX_RESULTS; i++)
    if (mlrt_result_is_scalar(&f->results[i]))
      sums[i] += weight * mlrt_trainer_result(t, slot, &f->results[i]);
}

// Overwrites every row of the batch with the last one.
static void repeat_last_sample(const mlrt_trainer *t, int slot) {
  const mlrt_program *p = t->program;
  for (int i = 0; i < p->num_inputs; i++) {
    const mlrt_input *in = &p->inputs[i];
    size_t row = (size_t)(in->bytes / in->dims[0]);
    char *first = mlrt_staged_input(&t->device, i, slot);
    const char *last = first + row * (size_t)(in->dims[0] - 1);
    for (char *at = first; at < last; at += row)
      memcpy(at, last, row);
  }
}

static void settle(mlrt_trainer *t, untaken *u, double *sums) {
  if (u->any)
    add_results(t, sums, u->slot, u->weight);
  u->any = false;
}

// Takes the results of the batch before this one when the device has this one to do (`u`).
static void run_batch(mlrt_trainer *t, mlrt_batches *batches, const mlrt_batch *b, untaken *u,
                      double *sums) {
  const mlrt_func *f = &t->program->funcs[MLRT_EVAL];
  int64_t rows = mlrt_batch_size(t->program);
  mlrt_trainer_run_batch(t, f, batches, b);
  settle(t, u, sums);
  bool even = rows % b->valid == 0;
  *u = (untaken){true, b->slot, (double)(even ? b->valid : rows)};
  if (!mlrt_trainer_lags(t))
    settle(t, u, sums);
  if (even)
    return;
  settle(t, u, sums);
  t->device.calls->staged(&t->device);
  repeat_last_sample(t, b->slot);
  mlrt_batches_overwritten(batches, b->slot);
  mlrt_trainer_run(t, f, b->slot);
  add_results(t, sums, b->slot, -(double)(rows - b->valid));
}

mlrt_evaluated mlrt_evaluate(mlrt_trainer *t, mlrt_batches *b, const mlrt_dataset *data,
                             mlrt_means *out, mlrt_error *e) {
  *out = (mlrt_means){.samples = mlrt_data_size(data)};
  mlrt_order order = {.data = data, .use = MLRT_USE_EVAL};
  if (!mlrt_trainer_begin(t, b, &order, e))
    return MLRT_EVAL_BAD;
  mlrt_batch batch;
  mlrt_next next;
  untaken last = {.any = false};
  while ((next = mlrt_trainer_next(t, b, &batch, e)) == MLRT_BATCH) {
    if (mlrt_signals_pending())
      return MLRT_EVAL_STOPPED;
    run_batch(t, b, &batch, &last, out->value);
  }
  settle(t, &last, out->value);
  if (next == MLRT_BAD)
    return MLRT_EVAL_BAD;
  for (int i = 0; i < MLRT_MAX_RESULTS; i++)
    out->value[i] /= (double)out->samples;
  return MLRT_EVAL_WHOLE;
}
