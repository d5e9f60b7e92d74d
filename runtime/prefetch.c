// prefetch.c: batches for the loop, filled one step ahead (see prefetch.h).
//
// Batches are numbered from 0 at every begin(); batch k lies in slot k % 2. Under the lock:
//   filled   batches 0 .. filled-1 are complete
//   released batches 0 .. released-1 may be overwritten (the caller has gone on)
// so the thread may fill batch `filled` while filled < released + 2, and next() waits for
// filled > taken. What a batch holds depends on its number alone, never on timing.
//
// Without the thread, batch `filled` is handed out by ahead() in pieces of a few samples; next()
// then finds it filled. When a sample is refused, next() fills the batch once more, from its
// beginning, so that the error is always that of the first such sample.
//
// A row that holds the sample it is to hold is left as it is. Where all data are one sample (a graph), or
// make no more batches than there are slots, nothing is copied after the first steps, and what a step
// reads stays in the caches of those who read it.
#include "runtime/prefetch.h"
#include "runtime/recipe.h"
#include "runtime/shuffle.h"
#include "runtime/signals.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
  SLOTS = 2,
  // Of a batch that is handed out: enough for the processor to wait for several samples at a time,
  // and short enough (a microsecond) for threads that wait for the one that copies them.
  PIECE_BYTES = 8 << 10,
  LARGEST_SAMPLE = 16 << 10,
  MOST_PARTS = 8, // batches for what is left at the end of evaluation
};

struct mlrt_batches {
  const mlrt_program *program;
  int64_t batch_size;
  char **input_ptrs[SLOTS];
  int64_t *samples; // indices of the batch being filled

  // What the slots hold: samples of this data by row; -1: nothing to go by.
  const mlrt_dataset *held_of;
  int64_t *held[SLOTS];

  // Set by begin(), read by whoever fills.
  mlrt_order order;
  int64_t per_epoch; // batches
  mlrt_shuffle shuffle;
  int64_t shuffle_epoch; // the epoch that `shuffle` is for; -1: none

  pthread_mutex_t lock;
  pthread_cond_t work, done; // for the thread; for the caller
  pthread_t thread;
  bool threaded, quit, active, filling;
  int64_t filled, released, taken;
  mlrt_batch ready[SLOTS];
  bool failed; // batch `filled` could not be made: `error` says why
  mlrt_error error;

  // The batch that ahead() handed out, if any, and how many samples a piece of it has.
  bool handed_out;
  atomic_bool refused; // a sample of it does not fit
  mlrt_batch ahead;
  int64_t rows;
};

// --- which samples ---------------------------------------------------------------------------
int64_t mlrt_batch_size(const mlrt_program *p) {
  return p->num_inputs > 0 && p->inputs[0].rank > 0 ? p->inputs[0].dims[0] : 0;
}

// Samples of a batch where fewer are left, and `parts` batches may still be made of these: a divisor of the
// batch size, so that each is in it equally often, unless that would take too many batches. One of a divisor and what it
// is to be multiplied with is below the root: a batch of a million samples has a million numbers that may divide it.
static int64_t part_of(int64_t batch, int64_t left, int parts) {
  if (parts <= 1)
    return left;
  int64_t times = (batch + left - 1) / left;
  for (; times <= batch / times; times++)
    if (batch % times == 0)
      return batch / times;
  int64_t size = batch / times < left ? batch / times : left;
  while (batch % size != 0)
    size--;
  return size;
}

// The first sample of batch `at` of evaluation; *valid: of how many it is made, 0 behind the last.
static int64_t first_of_eval(int64_t batch, int64_t size, int64_t at, int64_t *valid) {
  int64_t full = size / batch, index = full * batch;
  *valid = batch;
  if (at < full)
    return at * batch;
  for (int k = 0; index < size; k++) {
    *valid = part_of(batch, size - index, MOST_PARTS - k);
    if (full + k == at)
      return index;
    index += *valid;
  }
  *valid = 0;
  return size;
}

int64_t mlrt_batches_per_epoch(const mlrt_program *p, const mlrt_dataset *d, mlrt_use use) {
  int64_t size = mlrt_data_size(d), batch = mlrt_batch_size(p), num = size / batch, valid = 0;
  if (use != MLRT_USE_TRAIN) {
    while (first_of_eval(batch, size, num, &valid) < size)
      num++;
    return num;
  }
  int64_t parts = mlrt_micro_batches(p); // what an epoch leaves out is the rest of whole batches
  return num / parts * parts;
}

// Batch `number` after the start of the order; *valid: its samples that count.
static mlrt_position position_of(const mlrt_batches *b, int64_t number, int64_t *valid) {
  int64_t at = b->order.from.index / b->batch_size + number;
  *valid = b->batch_size;
  if (b->order.use == MLRT_USE_EVAL)
    return (mlrt_position){b->order.from.epoch,
                           first_of_eval(b->batch_size, mlrt_data_size(b->order.data), at, valid)};
  return (mlrt_position){b->order.from.epoch + at / b->per_epoch,
                         at % b->per_epoch * b->batch_size};
}

static bool at_end(const mlrt_batches *b, int64_t number) {
  int64_t valid = 0;
  return b->order.use == MLRT_USE_EVAL &&
         position_of(b, number, &valid).index >= mlrt_data_size(b->order.data);
}

// Batch `number`, without its bytes. The permutation of its epoch is at hand afterwards.
static mlrt_batch describe(mlrt_batches *b, int64_t number) {
  const mlrt_order *o = &b->order;
  int64_t valid = 0;
  mlrt_position at = position_of(b, number, &valid);
  int64_t size = mlrt_data_size(o->data), next = at.index + valid;
  if (o->use == MLRT_USE_TRAIN && o->shuffle && b->shuffle_epoch != at.epoch) {
    b->shuffle = mlrt_shuffle_make(o->seed, at.epoch, size);
    b->shuffle_epoch = at.epoch;
  }
  return (mlrt_batch){.slot = (int)(number % SLOTS),
                      .valid = valid,
                      .at = at,
                      .last_of_epoch =
                          next >= (o->use == MLRT_USE_TRAIN ? b->per_epoch * b->batch_size : size)};
}

// The sample in row `row` of a batch.
static int64_t sample_of(const mlrt_batches *b, const mlrt_batch *batch, int64_t row) {
  if (row >= batch->valid)
    row = b->batch_size % batch->valid == 0 ? row % batch->valid : batch->valid - 1;
  int64_t i = batch->at.index + row;
  bool shuffled = b->order.use == MLRT_USE_TRAIN && b->order.shuffle;
  return shuffled ? mlrt_shuffle_at(&b->shuffle, i) : i;
}

static void forget(mlrt_batches *b, int slot) {
  for (int64_t row = 0; row < b->batch_size; row++)
    b->held[slot][row] = -1;
}

// Everything that `number` says about a batch, its bytes included. Runs without the lock.
static bool fill_batch(mlrt_batches *b, int64_t number, mlrt_batch *out, mlrt_error *e) {
  *out = describe(b, number);
  int64_t *held = b->held[out->slot], other = 0;
  for (int64_t row = 0; row < b->batch_size; row++) {
    b->samples[row] = sample_of(b, out, row);
    other += b->samples[row] != held[row];
  }
  if (other == 0)
    return true;
  forget(b, out->slot);
  if (!mlrt_data_fill(b->order.data, b->samples, b->batch_size, b->input_ptrs[out->slot], e))
    return false;
  memcpy(held, b->samples, (size_t)b->batch_size * sizeof *held);
  return true;
}

// --- the thread ------------------------------------------------------------------------------
static bool has_work(const mlrt_batches *b) {
  return b->active && !b->failed && b->filled < b->released + SLOTS && !at_end(b, b->filled);
}

// With the lock held on both sides; begin() and close() wait until `filling` is over.
static void fill_one(mlrt_batches *b) {
  int64_t number = b->filled;
  mlrt_batch made;
  b->filling = true;
  pthread_mutex_unlock(&b->lock);
  bool ok = fill_batch(b, number, &made, &b->error);
  pthread_mutex_lock(&b->lock);
  b->filling = false;
  b->ready[made.slot] = made;
  b->failed = !ok;
  b->filled += ok;
}

static void *prefetch_main(void *data) {
  mlrt_batches *b = data;
  pthread_mutex_lock(&b->lock);
  while (!b->quit) {
    if (has_work(b)) {
      fill_one(b);
      pthread_cond_signal(&b->done);
    } else
      pthread_cond_wait(&b->work, &b->lock);
  }
  pthread_mutex_unlock(&b->lock);
  return NULL;
}

// Signals are for the main thread, but for one that reading a data file raises: where a thread blocks SIGBUS, that ends
// the program without a word.
static int start_thread(mlrt_batches *b) {
  mlrt_signals_block();
  int status = pthread_create(&b->thread, NULL, prefetch_main, b);
  mlrt_signals_unblock();
  return status;
}

// --- opening and closing -----------------------------------------------------------------------
static bool same_batch_size(const mlrt_program *p, mlrt_error *e) {
  for (int i = 0; i < p->num_inputs; i++)
    if (p->inputs[i].rank < 1 || p->inputs[i].dims[0] != mlrt_batch_size(p) ||
        mlrt_batch_size(p) < 1)
      return mlrt_error_set(e, "inputs `%s` and `%s` have different batch sizes", p->inputs[0].name,
                            p->inputs[i].name);
  return p->num_inputs > 0 || mlrt_error_set(e, "the model has no inputs");
}

static bool allocate(mlrt_batches *b, char *staging) {
  const mlrt_program *p = b->program;
  b->samples = calloc((size_t)b->batch_size, sizeof *b->samples);
  bool ok = b->samples != NULL;
  for (int slot = 0; slot < SLOTS; slot++) {
    b->input_ptrs[slot] = calloc((size_t)p->num_inputs, sizeof **b->input_ptrs);
    b->held[slot] = calloc((size_t)b->batch_size, sizeof **b->held); // of no data so far
    ok = ok && b->input_ptrs[slot] && b->held[slot];
    for (int i = 0; ok && i < p->num_inputs; i++)
      b->input_ptrs[slot][i] =
          staging + (p->inputs[i].offset - p->state_bytes) + slot * p->staging_slot_bytes;
  }
  return ok;
}

static void release_memory(mlrt_batches *b) {
  pthread_mutex_destroy(&b->lock);
  pthread_cond_destroy(&b->work);
  pthread_cond_destroy(&b->done);
  for (int slot = 0; slot < SLOTS; slot++) {
    free(b->input_ptrs[slot]);
    free(b->held[slot]);
  }
  free(b->samples);
  free(b);
}

mlrt_batches *mlrt_batches_open(const mlrt_program *p, char *staging, bool threaded,
                                mlrt_error *e) {
  if (!same_batch_size(p, e))
    return NULL;
  mlrt_batches *b = calloc(1, sizeof *b);
  if (!b) {
    mlrt_error_memory(e, "no memory for batches");
    return NULL;
  }
  b->program = p;
  b->batch_size = mlrt_batch_size(p);
  b->threaded = threaded;
  pthread_mutex_init(&b->lock, NULL);
  pthread_cond_init(&b->work, NULL);
  pthread_cond_init(&b->done, NULL);
  int status = 0;
  if (!allocate(b, staging))
    mlrt_error_memory(e, "no memory for batches");
  else if (threaded && (status = start_thread(b)) != 0)
    mlrt_error_memory(e, "the prefetch thread does not start: %s", strerror(status));
  else
    return b;
  release_memory(b);
  return NULL;
}

void mlrt_batches_close(mlrt_batches *b) {
  if (!b)
    return;
  pthread_mutex_lock(&b->lock);
  b->quit = true;
  pthread_cond_signal(&b->work);
  pthread_mutex_unlock(&b->lock);
  if (b->threaded)
    pthread_join(b->thread, NULL);
  release_memory(b);
}

// --- beginning and going on ----------------------------------------------------------------------
static bool check_order(const mlrt_batches *b, const mlrt_order *o, mlrt_error *e) {
  int64_t size = mlrt_data_size(o->data);
  int64_t per_epoch = mlrt_batches_per_epoch(b->program, o->data, o->use);
  if (per_epoch < 1)
    return mlrt_error_set(e, "data `%s` has %lld samples, fewer than one batch of %lld",
                          mlrt_data_name(o->data), (long long)size, (long long)b->batch_size);
  if (o->from.epoch < 0 || o->from.index < 0 || o->from.index % b->batch_size != 0 ||
      o->from.index / b->batch_size >= per_epoch)
    return mlrt_error_set(
        e, "data `%s` has no batch at epoch %lld, sample %lld (%lld batches of %lld in an epoch)",
        mlrt_data_name(o->data), (long long)o->from.epoch, (long long)o->from.index,
        (long long)per_epoch, (long long)b->batch_size);
  return true;
}

bool mlrt_batches_begin(mlrt_batches *b, const mlrt_order *order, mlrt_error *e) {
  if (!check_order(b, order, e))
    return false;
  pthread_mutex_lock(&b->lock);
  b->active = false; // no new batch is started
  while (b->filling)
    pthread_cond_wait(&b->done, &b->lock);
  for (int slot = 0; slot < SLOTS && b->held_of != order->data; slot++)
    forget(b, slot);
  b->held_of = order->data;
  b->order = *order;
  b->per_epoch = mlrt_batches_per_epoch(b->program, order->data, order->use);
  b->shuffle_epoch = -1;
  b->filled = b->released = b->taken = 0;
  b->failed = false;
  b->handed_out = false;
  b->active = true;
  pthread_cond_signal(&b->work);
  pthread_mutex_unlock(&b->lock);
  return true;
}

// --- ahead ---------------------------------------------------------------------------------------
// Samples lie all over the data: the piece that will be taken next is asked for before this one is
// copied.
static void fetch_piece(const mlrt_batches *b, int64_t number) {
  for (int64_t row = number * b->rows, end = row + b->rows; row < end; row++)
    mlrt_data_prefetch(b->order.data, sample_of(b, &b->ahead, row));
}

static void fill_piece(void *data, int64_t number) {
  mlrt_batches *b = data;
  int64_t row = number * b->rows, end = row + b->rows;
  end = end < b->batch_size ? end : b->batch_size;
  if (number > 0) // they are taken from the last to the first
    fetch_piece(b, number - 1);
  mlrt_error e; // of no use: see the head of this file
  for (; row < end; row++) {
    int64_t sample = sample_of(b, &b->ahead, row), *held = &b->held[b->ahead.slot][row];
    if (sample == *held)
      continue;
    bool ok = mlrt_data_copy(b->order.data, sample, row, b->input_ptrs[b->ahead.slot], &e);
    *held = ok ? sample : -1;
    if (!ok)
      atomic_store_explicit(&b->refused, true, memory_order_relaxed);
  }
}

mlrt_spare mlrt_batches_ahead(mlrt_batches *b) {
  mlrt_spare none = {NULL, NULL, 0};
  if (b->threaded || !b->active || b->failed || at_end(b, b->filled))
    return none;
  int64_t bytes = mlrt_data_sample_bytes(b->order.data);
  if (bytes > LARGEST_SAMPLE)
    return none;
  b->ahead = describe(b, b->filled);
  b->rows = bytes > PIECE_BYTES ? 1 : PIECE_BYTES / (bytes > 0 ? bytes : 1);
  atomic_store_explicit(&b->refused, false, memory_order_relaxed);
  b->handed_out = true;
  return (mlrt_spare){fill_piece, b, (b->batch_size + b->rows - 1) / b->rows};
}

// True when batch `filled` was handed out and is whole.
static bool take_ahead(mlrt_batches *b) {
  if (!b->handed_out)
    return false;
  b->handed_out = false;
  if (atomic_load_explicit(&b->refused, memory_order_relaxed))
    return false;
  b->ready[b->ahead.slot] = b->ahead;
  b->filled++;
  return true;
}

mlrt_next mlrt_batches_next(mlrt_batches *b, mlrt_batch *out, mlrt_error *e) {
  pthread_mutex_lock(&b->lock);
  b->released = b->taken; // the batch before this one is done with
  if (at_end(b, b->taken)) {
    pthread_mutex_unlock(&b->lock);
    return MLRT_END;
  }
  if (!b->threaded && b->filled == b->taken && !b->failed && !take_ahead(b))
    fill_one(b);
  pthread_cond_signal(&b->work);
  while (b->filled == b->taken && !b->failed)
    pthread_cond_wait(&b->done, &b->lock);
  bool ok = b->filled > b->taken;
  if (ok)
    *out = b->ready[b->taken++ % SLOTS];
  else
    *e = b->error;
  pthread_mutex_unlock(&b->lock);
  return ok ? MLRT_BATCH : MLRT_BAD;
}

void mlrt_batches_overwritten(mlrt_batches *b, int slot) {
  forget(b, slot); // the thread is at the other slot until this batch is released
}

mlrt_position mlrt_batches_position(const mlrt_batches *b) {
  int64_t valid = 0;
  return position_of(b, b->taken, &valid);
}
