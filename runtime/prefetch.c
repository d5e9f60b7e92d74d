// prefetch.c: batches for the loop, filled by a thread one step ahead (see prefetch.h).
//
// Batches are numbered from 0 at every begin(); batch k lies in slot k % 2. Under the lock:
//   filled   batches 0 .. filled-1 are complete
//   released batches 0 .. released-1 may be overwritten (the caller has gone on)
// so the thread may fill batch `filled` while filled < released + 2, and next() waits for
// filled > taken. What a batch holds depends on its number alone, never on timing.
#include "runtime/prefetch.h"
#include "runtime/shuffle.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2 };

struct mlrt_batches {
  const mlrt_program *program;
  int64_t batch_size;
  char **input_ptrs[SLOTS];
  int64_t *samples; // indices of the batch being filled

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
};

// --- which samples ---------------------------------------------------------------------------
int64_t mlrt_batch_size(const mlrt_program *p) {
  return p->num_inputs > 0 && p->inputs[0].rank > 0 ? p->inputs[0].dims[0] : 0;
}

int64_t mlrt_batches_per_epoch(const mlrt_program *p, const mlrt_dataset *d, mlrt_use use) {
  int64_t size = mlrt_data_size(d), batch = mlrt_batch_size(p);
  return use == MLRT_USE_TRAIN ? size / batch : (size + batch - 1) / batch;
}

// Batch `number` after the start of the order.
static mlrt_position position_of(const mlrt_batches *b, int64_t number) {
  int64_t at = b->order.from.index / b->batch_size + number;
  if (b->order.use == MLRT_USE_EVAL)
    return (mlrt_position){b->order.from.epoch, at * b->batch_size};
  return (mlrt_position){b->order.from.epoch + at / b->per_epoch,
                         at % b->per_epoch * b->batch_size};
}

static bool at_end(const mlrt_batches *b, int64_t number) {
  return b->order.use == MLRT_USE_EVAL &&
         position_of(b, number).index >= mlrt_data_size(b->order.data);
}

// The samples of the batch at `at`; returns how many of them count.
static int64_t choose_samples(mlrt_batches *b, mlrt_position at) {
  bool shuffled = b->order.use == MLRT_USE_TRAIN && b->order.shuffle;
  int64_t size = mlrt_data_size(b->order.data);
  if (shuffled && b->shuffle_epoch != at.epoch) {
    b->shuffle = mlrt_shuffle_make(b->order.seed, at.epoch, size);
    b->shuffle_epoch = at.epoch;
  }
  int64_t valid = size - at.index < b->batch_size ? size - at.index : b->batch_size;
  for (int64_t j = 0; j < b->batch_size; j++) {
    int64_t i = at.index + (j < valid ? j : valid - 1);
    b->samples[j] = shuffled ? mlrt_shuffle_at(&b->shuffle, i) : i;
  }
  return valid;
}

// Everything that `number` says about a batch, its bytes included. Runs without the lock.
static bool fill_batch(mlrt_batches *b, int64_t number, mlrt_batch *out, mlrt_error *e) {
  int slot = (int)(number % SLOTS);
  mlrt_position at = position_of(b, number);
  int64_t valid = choose_samples(b, at);
  int64_t next = at.index + b->batch_size;
  *out = (mlrt_batch){.slot = slot,
                      .valid = valid,
                      .at = at,
                      .last_of_epoch = b->order.use == MLRT_USE_TRAIN
                                           ? next >= b->per_epoch * b->batch_size
                                           : next >= mlrt_data_size(b->order.data)};
  return mlrt_data_fill(b->order.data, b->samples, b->batch_size, b->input_ptrs[slot], e);
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

// The thread takes no signals: they are for the main thread.
static int start_thread(mlrt_batches *b) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int status = pthread_create(&b->thread, NULL, prefetch_main, b);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
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

static bool allocate(mlrt_batches *b, char *arena) {
  const mlrt_program *p = b->program;
  b->samples = calloc((size_t)b->batch_size, sizeof *b->samples);
  bool ok = b->samples != NULL;
  for (int slot = 0; slot < SLOTS; slot++) {
    b->input_ptrs[slot] = calloc((size_t)p->num_inputs, sizeof **b->input_ptrs);
    ok = ok && b->input_ptrs[slot];
    for (int i = 0; ok && i < p->num_inputs; i++)
      b->input_ptrs[slot][i] = arena + p->inputs[i].offset + slot * p->staging_slot_bytes;
  }
  return ok;
}

static void release_memory(mlrt_batches *b) {
  pthread_mutex_destroy(&b->lock);
  pthread_cond_destroy(&b->work);
  pthread_cond_destroy(&b->done);
  for (int slot = 0; slot < SLOTS; slot++)
    free(b->input_ptrs[slot]);
  free(b->samples);
  free(b);
}

mlrt_batches *mlrt_batches_open(const mlrt_program *p, char *arena, bool threaded, mlrt_error *e) {
  if (!same_batch_size(p, e))
    return NULL;
  mlrt_batches *b = calloc(1, sizeof *b);
  if (!b) {
    mlrt_error_set(e, "no memory for batches");
    return NULL;
  }
  b->program = p;
  b->batch_size = mlrt_batch_size(p);
  b->threaded = threaded;
  pthread_mutex_init(&b->lock, NULL);
  pthread_cond_init(&b->work, NULL);
  pthread_cond_init(&b->done, NULL);
  int status = 0;
  if (!allocate(b, arena))
    mlrt_error_set(e, "no memory for batches");
  else if (threaded && (status = start_thread(b)) != 0)
    mlrt_error_set(e, "the prefetch thread does not start: %s", strerror(status));
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
  b->order = *order;
  b->per_epoch = mlrt_batches_per_epoch(b->program, order->data, order->use);
  b->shuffle_epoch = -1;
  b->filled = b->released = b->taken = 0;
  b->failed = false;
  b->active = true;
  pthread_cond_signal(&b->work);
  pthread_mutex_unlock(&b->lock);
  return true;
}

mlrt_next mlrt_batches_next(mlrt_batches *b, mlrt_batch *out, mlrt_error *e) {
  pthread_mutex_lock(&b->lock);
  b->released = b->taken; // the batch before this one is done with
  if (at_end(b, b->taken)) {
    pthread_mutex_unlock(&b->lock);
    return MLRT_END;
  }
  if (!b->threaded && b->filled == b->taken && !b->failed)
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

mlrt_position mlrt_batches_position(const mlrt_batches *b) {
  return position_of(b, b->taken);
}
