// test_data_batches.c: batches come in the right order whoever fills them, stop and go on exactly,
// share their slots with evaluation, and report bad data.
#include "runtime/prefetch.h"
#include "tests/runtime/support_data.h"

#include <sys/mman.h>
#include <time.h>

enum { N = 23, BATCH = 5 };

// Sample i is the number i.
static void counting_fixture(fixture *f) {
  bytes b = idx_header(8, 1, (uint32_t[]){N});
  for (int i = 0; i < N; i++)
    put(&b, &(unsigned char){(unsigned char)i}, 1);
  fixture_init(f, "idx", 1, 1);
  set_file(f, 0, b);
  set_input(f, 0, MLRT_I32, 1, BATCH, 0, 0);
  f->inputs[0].offset = 64;
  f->program.staging_slot_bytes = 128;
}

// Who fills a batch: next(), the thread, or whoever works on what ahead() hands out.
typedef enum filler { BY_NEXT, BY_THREAD, BY_AHEAD, NUM_FILLERS } filler;

typedef struct run {
  filler filler;
  fixture f;
  char arena[512];
  mlrt_dataset *data;
  mlrt_batches *b;
  mlrt_order order;
} run;

static void run_init(run *r, filler filler, mlrt_use use, bool shuffle) {
  r->filler = filler;
  memset(r->arena, 0x77, sizeof r->arena);
  counting_fixture(&r->f);
  r->data = must_open(&r->f, use, "counting");
  r->b = mlrt_batches_open(&r->f.program, r->arena, filler == BY_THREAD, &r->f.error);
  CHECK(r->b, "%s", r->f.error.text);
  r->order = (mlrt_order){.data = r->data, .use = use, .shuffle = shuffle, .seed = 42};
}

static void run_close(run *r) {
  mlrt_batches_close(r->b);
  mlrt_data_close(r->data);
}

static void begin(run *r) {
  CHECK(mlrt_batches_begin(r->b, &r->order, &r->f.error), "%s", r->f.error.text);
}

// As threads do that wait in a run on the present batch.
static void work_ahead(run *r) {
  mlrt_spare s = mlrt_batches_ahead(r->b);
  CHECK(r->filler == BY_AHEAD || s.num == 0, "the thread's work is handed out");
  for (int64_t i = s.num - 1; i >= 0; i--)
    s.piece(s.data, i);
}

// The following batch; its samples are written to `out`. False at the end.
static bool next(run *r, mlrt_batch *batch, int32_t out[BATCH]) {
  mlrt_next status = mlrt_batches_next(r->b, batch, &r->f.error);
  CHECK(status != MLRT_BAD, "%s", r->f.error.text);
  if (status == MLRT_BATCH && r->filler != BY_NEXT)
    work_ahead(r); // must leave the batch itself alone
  if (status == MLRT_BATCH)
    memcpy(out, r->arena + 64 + batch->slot * 128, BATCH * sizeof *out);
  return status == MLRT_BATCH;
}

static void test_eval(filler filler) {
  run r;
  mlrt_batch batch;
  int32_t x[BATCH];
  run_init(&r, filler, MLRT_USE_EVAL, true); // evaluation ignores `shuffle`
  // Four of 5, and what is left, one by one, as nothing else divides 5.
  CHECK(mlrt_batches_per_epoch(&r.f.program, r.data, MLRT_USE_EVAL) == 7, "23 = 4 * 5 + 3 * 1");
  for (int pass = 0; pass < 2; pass++) {
    begin(&r);
    for (int k = 0; k < 7; k++) {
      CHECK(next(&r, &batch, x), "batch %d is missing", k);
      CHECK(batch.valid == (k >= 4 ? 1 : 5) && batch.last_of_epoch == (k == 6), "batch %d: %d", k,
            (int)batch.valid);
      for (int j = 0; j < BATCH; j++)
        CHECK(x[j] == (k < 4 ? k * BATCH + j : 16 + k), "batch %d: x[%d] = %d", k, j, x[j]);
    }
    CHECK(!next(&r, &batch, x) && !next(&r, &batch, x), "the pass must end");
  }
  CHECK(r.arena[0] == 0x77 && r.arena[63] == 0x77 && r.arena[64 + 20] == 0x77 &&
            r.arena[192 + 20] == 0x77,
        "bytes beside the slots were written");
  run_close(&r);
}

static void test_epochs(filler filler) {
  run r;
  mlrt_batch batch;
  int32_t x[BATCH];
  int orders_equal = 0;
  int32_t first_epoch[4 * BATCH];
  run_init(&r, filler, MLRT_USE_TRAIN, true);
  CHECK(mlrt_batches_per_epoch(&r.f.program, r.data, MLRT_USE_TRAIN) == 4, "23 / 5");
  begin(&r);
  for (int epoch = 0; epoch < 3; epoch++) {
    int seen[N] = {0};
    for (int k = 0; k < 4; k++) {
      CHECK(next(&r, &batch, x), "training goes on");
      CHECK(batch.at.epoch == epoch && batch.at.index == k * BATCH && batch.valid == BATCH &&
                batch.last_of_epoch == (k == 3),
            "epoch %d, batch %d: %d, %d", epoch, k, (int)batch.at.epoch, (int)batch.at.index);
      for (int j = 0; j < BATCH; j++) {
        seen[x[j]]++;
        if (epoch == 0)
          first_epoch[k * BATCH + j] = x[j];
        else
          orders_equal += first_epoch[k * BATCH + j] == x[j];
      }
    }
    for (int i = 0; i < N; i++)
      CHECK(seen[i] <= 1, "epoch %d: sample %d came %d times", epoch, i, seen[i]);
  }
  CHECK(orders_equal < 20, "epochs have the same order (%d of 40)", orders_equal);
  run_close(&r);
}

// Stopping after any number of batches, evaluating in between, and going on from the position
// gives the batches of an uninterrupted run.
static void test_resume(filler filler) {
  run whole, parts;
  mlrt_batch batch;
  int32_t x[BATCH], y[BATCH];
  run_init(&whole, (filler + 1) % NUM_FILLERS, MLRT_USE_TRAIN, true);
  run_init(&parts, filler, MLRT_USE_TRAIN, true);
  mlrt_dataset *eval = must_open(&parts.f, MLRT_USE_EVAL, "eval");
  begin(&whole);
  for (int k = 0; k < 30; k++) {
    if (k % 3 == 0) { // also before the first: the position is kept when nothing was taken
      mlrt_order other = {.data = eval, .use = MLRT_USE_EVAL};
      CHECK(mlrt_batches_begin(parts.b, &other, &parts.f.error), "%s", parts.f.error.text);
      next(&parts, &batch, y);
      begin(&parts);
    }
    mlrt_position before = mlrt_batches_position(parts.b);
    CHECK(next(&whole, &batch, x) && next(&parts, &batch, y), "batch %d", k);
    CHECK(memcmp(x, y, sizeof x) == 0, "batch %d differs after a break", k);
    CHECK(before.epoch == batch.at.epoch && before.index == batch.at.index, "position %d", k);
    parts.order.from = mlrt_batches_position(parts.b);
  }
  mlrt_data_close(eval);
  run_close(&whole);
  run_close(&parts);
}

// While the caller holds a batch nothing writes to it, however long it takes.
static void test_held_batch(void) {
  run r;
  mlrt_batch batch;
  int32_t x[BATCH];
  run_init(&r, BY_THREAD, MLRT_USE_TRAIN, true);
  begin(&r);
  for (int k = 0; k < 5; k++) {
    next(&r, &batch, x);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    CHECK(memcmp(x, r.arena + 64 + batch.slot * 128, sizeof x) == 0, "batch %d was overwritten", k);
  }
  run_close(&r);
}

// Waiting must sleep: a thread with nothing to do takes no processor time.
static char *slot_of(run *r, int slot) {
  return r->arena + 64 + slot * 128;
}

// With one batch in an epoch, and no shuffling, each slot is filled once: what is written there meanwhile
// stays, until the caller says so, or other data come.
static void test_kept_rows(filler filler) {
  run r;
  mlrt_batch batch;
  int32_t x[BATCH];
  run_init(&r, filler, MLRT_USE_TRAIN, false);
  r.f.inputs[0].dims[0] = N; // rows of 4 bytes: 92 of a slot's 128
  mlrt_batches_close(r.b);
  r.b = mlrt_batches_open(&r.f.program, r.arena, filler == BY_THREAD, &r.f.error);
  begin(&r);
  for (int i = 0; i < 4; i++)
    CHECK(next(&r, &batch, x) && x[4] == 4, "batch %d holds %d", i, x[4]);
  begin(&r); // nothing is under way: the thread may fill what comes after
  for (int i = 0; i < 2; i++) {
    CHECK(next(&r, &batch, x), "no batch");
    memset(slot_of(&r, batch.slot), 0x55, 4);
  }
  for (int i = 0; i < 2; i++)
    CHECK(next(&r, &batch, x) && x[0] == 0x55555555, "a row is copied again");
  mlrt_batches_overwritten(r.b, batch.slot);
  for (int i = 0; i < 2; i++)
    CHECK(next(&r, &batch, x) && x[0] == (i ? 0 : 0x55555555), "batch %d holds %d", i, x[0]);
  mlrt_dataset *other = must_open(&r.f, MLRT_USE_TRAIN, "other");
  mlrt_order order = r.order;
  order.data = other;
  CHECK(mlrt_batches_begin(r.b, &order, &r.f.error), "%s", r.f.error.text);
  for (int i = 0; i < 2; i++)
    CHECK(next(&r, &batch, x) && x[0] == 0, "what other data left: %d", x[0]);
  mlrt_batches_close(r.b), r.b = NULL;
  mlrt_data_close(other);
  run_close(&r);
}

static void test_idle(void) {
  run r;
  mlrt_batch batch;
  int32_t x[BATCH];
  run_init(&r, BY_THREAD, MLRT_USE_TRAIN, true);
  begin(&r);
  next(&r, &batch, x);
  clock_t before = clock();
  nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  double used = (double)(clock() - before) / CLOCKS_PER_SEC;
  CHECK(used < 0.03, "%.3f s of processor time in 0.1 s of waiting", used);
  run_close(&r);
}

// What is left at the end: each sample counts once, and is in its batch equally often; the eighth of the small
// batches takes all that is left then.
static void test_parts(void) {
  static const struct {
    int rows, samples, batches, last; // how many samples the last has
  } cases[] = {{8, 8, 1, 8},   {8, 15, 4, 1},  {64, 16, 1, 16}, {64, 63, 6, 1},
               {12, 35, 5, 1}, {7, 6, 6, 1},   {12, 11, 3, 1},  {1, 3, 3, 1},
               {11, 10, 8, 3}, {26, 25, 7, 2}, {100, 99, 4, 4}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    int rows = cases[c].rows, samples = cases[c].samples, times[100] = {0}, num = 0;
    fixture f;
    bytes b = idx_header(8, 1, (uint32_t[]){(uint32_t)samples});
    for (int i = 0; i < samples; i++)
      put(&b, &(unsigned char){(unsigned char)i}, 1);
    fixture_init(&f, "idx", 1, 1);
    set_file(&f, 0, b);
    set_input(&f, 0, MLRT_U8, 1, rows, 0, 0);
    f.inputs[0].offset = 0;
    f.program.staging_slot_bytes = rows;
    unsigned char arena[200];
    mlrt_dataset *d = must_open(&f, MLRT_USE_EVAL, "parts");
    mlrt_batches *batches = mlrt_batches_open(&f.program, (char *)arena, false, &f.error);
    mlrt_order order = {.data = d, .use = MLRT_USE_EVAL};
    CHECK(mlrt_batches_begin(batches, &order, &f.error), "%s", f.error.text);
    mlrt_batch batch = {0};
    for (; mlrt_batches_next(batches, &batch, &f.error) == MLRT_BATCH; num++) {
      const unsigned char *x = arena + batch.slot * rows;
      int seen[100] = {0};
      for (int j = 0; j < rows; j++)
        seen[x[j]]++;
      for (int64_t i = batch.at.index; i < batch.at.index + batch.valid; i++) {
        times[i]++;
        CHECK(rows % batch.valid ? seen[i] > 0 : seen[i] == rows / batch.valid,
              "%d of %d: sample %d is %d times in a batch of %d", samples, rows, (int)i, seen[i],
              (int)batch.valid);
      }
    }
    for (int i = 0; i < samples; i++)
      CHECK(times[i] == 1, "%d of %d: sample %d counts %d times", samples, rows, i, times[i]);
    CHECK(num == cases[c].batches && batch.valid == cases[c].last &&
              mlrt_batches_per_epoch(&f.program, d, MLRT_USE_EVAL) == num,
          "%d of %d: %d batches, the last of %d", samples, rows, num, (int)batch.valid);
    mlrt_batches_close(batches);
    mlrt_data_close(d);
  }
}

// What is left of a batch that has no divisors: looked for among all numbers, they take minutes.
static void test_parts_of_many(void) {
  enum { SAMPLES = 1000000000 };
  fixture f;
  void *text = mmap(NULL, SAMPLES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(text != MAP_FAILED, "no address space");
  fixture_init(&f, "text", 1, 1);
  set_file(&f, 0, (bytes){text, SAMPLES});
  set_str(&f, "vocab", "bytes");
  set_input(&f, 0, MLRT_U8, 2, INT32_MAX, 1, 0); // a prime number
  mlrt_dataset *d = must_open(&f, MLRT_USE_EVAL, "many samples");
  time_t begun = time(NULL);
  int64_t batches = mlrt_batches_per_epoch(&f.program, d, MLRT_USE_EVAL);
  CHECK(batches == 8, "%d batches", (int)batches);
  CHECK(time(NULL) - begun < 3, "that takes %d s", (int)(time(NULL) - begun));
  mlrt_data_close(d);
  munmap(text, SAMPLES);
}

static void refuse_begin(run *r, const char *words) {
  CHECK(!mlrt_batches_begin(r->b, &r->order, &r->f.error), "must be refused: %s", words);
  CHECK(strstr(r->f.error.text, words), "%s", r->f.error.text);
}

// Samples of 20 KB are not handed out: who copies one would keep the others waiting. Those of 3 KB
// are, a few at a time, and all of their bytes arrive.
static void test_large_samples(void) {
  for (uint32_t bytes_each = 3000; bytes_each <= 20000; bytes_each += 17000) {
    enum { SAMPLES = 2 * BATCH };
    fixture f;
    bytes b = idx_header(8, 2, (uint32_t[]){SAMPLES, bytes_each});
    for (uint32_t i = 0; i < SAMPLES * bytes_each; i++)
      put(&b, &(unsigned char){(unsigned char)(i % 251)}, 1);
    fixture_init(&f, "idx", 1, 1);
    set_file(&f, 0, b);
    set_input(&f, 0, MLRT_U8, 2, BATCH, bytes_each, 0);
    f.inputs[0].offset = 0;
    f.program.staging_slot_bytes = BATCH * bytes_each;
    char *arena = calloc(2, (size_t)f.program.staging_slot_bytes);
    mlrt_dataset *d = must_open(&f, MLRT_USE_EVAL, "large samples");
    mlrt_batches *batches = mlrt_batches_open(&f.program, arena, false, &f.error);
    mlrt_order order = {.data = d, .use = MLRT_USE_EVAL};
    mlrt_batch batch;
    CHECK(mlrt_batches_begin(batches, &order, &f.error), "%s", f.error.text);
    CHECK(mlrt_batches_next(batches, &batch, &f.error) == MLRT_BATCH, "%s", f.error.text);
    mlrt_spare s = mlrt_batches_ahead(batches);
    CHECK(s.num == (bytes_each == 3000 ? 3 : 0), "%u bytes: %d pieces", bytes_each, (int)s.num);
    for (int64_t i = 0; i < s.num; i++)
      s.piece(s.data, i);
    CHECK(mlrt_batches_next(batches, &batch, &f.error) == MLRT_BATCH, "%s", f.error.text);
    CHECK(batch.valid == SAMPLES - BATCH && batch.slot == 1, "the second batch");
    CHECK(!memcmp(arena + f.program.staging_slot_bytes, b.at + 12 + BATCH * bytes_each,
                  (size_t)batch.valid * bytes_each),
          "%u bytes: other samples", bytes_each);
    CHECK(mlrt_batches_ahead(batches).num == 0, "nothing follows the last batch");
    mlrt_batches_close(batches);
    mlrt_data_close(d);
    free(arena);
  }
}

static void test_refusals(void) {
  run r;
  run_init(&r, BY_THREAD, MLRT_USE_TRAIN, false);
  r.order.from = (mlrt_position){0, 20};
  refuse_begin(&r, "no batch at epoch 0, sample 20 (4 batches of 5");
  r.order.from = (mlrt_position){0, 3};
  refuse_begin(&r, "no batch at epoch 0, sample 3");
  r.order.from = (mlrt_position){-1, 0};
  refuse_begin(&r, "no batch at epoch -1");
  mlrt_batches_close(r.b);
  r.f.inputs[0].dims[0] = 24;
  r.b = mlrt_batches_open(&r.f.program, r.arena, true, &r.f.error);
  r.order.from = (mlrt_position){0, 0};
  refuse_begin(&r, "data `train` has 23 samples, fewer than one batch of 24");
  run_close(&r);
  set_input(&r.f, 1, MLRT_U8, 1, 6, 0, 0);
  r.f.program.num_inputs = 2;
  CHECK(!mlrt_batches_open(&r.f.program, r.arena, true, &r.f.error), "unequal batches");
  CHECK(strstr(r.f.error.text, "different batch sizes"), "%s", r.f.error.text);
}

// A value that does not fit: the batches before it come, then the error, again and again.
static void test_bad_value(filler filler) {
  run r;
  mlrt_batch batch;
  int32_t x[BATCH];
  run_init(&r, filler, MLRT_USE_TRAIN, false);
  r.f.inputs[0].limit = 12;
  begin(&r);
  CHECK(next(&r, &batch, x) && next(&r, &batch, x), "two good batches");
  for (int i = 0; i < 2; i++) {
    CHECK(mlrt_batches_next(r.b, &batch, &r.f.error) == MLRT_BAD, "the third must fail");
    CHECK(strstr(r.f.error.text, "a: sample 12, element 0: 12 does not fit"), "%s", r.f.error.text);
  }
  begin(&r); // and starting anew works
  CHECK(next(&r, &batch, x) && x[0] == 0, "a new start");
  run_close(&r);
}

int main(void) {
  for (filler filler = BY_NEXT; filler < NUM_FILLERS; filler++) {
    test_eval(filler);
    test_epochs(filler);
    test_resume(filler);
    test_bad_value(filler);
    test_kept_rows(filler);
  }
  test_held_batch();
  test_idle();
  test_refusals();
  test_large_samples();
  test_parts();
  test_parts_of_many();
  return failures != 0;
}
