// predict.c: `./trainer predict`: a checkpoint's outputs for a data set, one .npy file per output.
#include "runtime/commands.h"
#include "runtime/files.h"
#include "runtime/number_io.h"
#include "runtime/outputs.h"
#include "runtime/recipe.h"
#include "runtime/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct npy { // one output
  const mlrt_result *result;
  mlrt_place place;
  FILE *file;
  size_t row_bytes;
} npy;

// numpy has no bf16: two bytes, as they are.
static const char *npy_type(mlrt_dtype t) {
  static const char *const names[MLRT_NUM_DTYPES] = {"|b1", "|u1", "|i1", "<u2", "<i4", "<u4",
                                                     "<i8", "<V2", "<f2", "<f4", "<f8"};
  return names[t];
}

// Magic, version 1.0, length, then a Python literal padded with spaces to a multiple of 64.
static void write_header(FILE *f, const mlrt_result *r, int64_t samples) {
  char text[512];
  int n =
      snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRId64 ",",
               npy_type(r->dtype), samples);
  for (int i = 1; i < r->rank; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, " %" PRId64 ",", r->dims[i]);
  n += snprintf(text + n, sizeof text - (size_t)n, "), }");
  int padded = (10 + n + 1 + 63) / 64 * 64 - 10;
  fwrite("\x93NUMPY\x01\x00", 1, 8, f);
  fputc(padded & 255, f);
  fputc(padded >> 8, f);
  fprintf(f, "%-*s\n", padded - 1, text);
}

static void cannot(const char *path) {
  if (errno == EWOULDBLOCK)
    mlrt_fail(MLRT_EXIT_INPUT,
              "cannot write '%s': another program is writing it; give each its own with --out",
              path);
  mlrt_fail(MLRT_EXIT_INPUT, "cannot write '%s': %s", path, strerror(errno));
}

static void name_output(npy *x, const mlrt_program *p, const mlrt_options *o,
                        const mlrt_result *r) {
  *x = (npy){.result = r, .row_bytes = (size_t)mlrt_dtype_bytes(r->dtype)};
  for (int i = 1; i < r->rank; i++)
    x->row_bytes *= (size_t)r->dims[i];
  char *named = NULL;
  if (asprintf(&named, "%s-%s.npy", o->out ? o->out : p->model, r->name) < 0 ||
      !mlrt_place_open(&x->place, named))
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  free(named);
  mlrt_check_output(p, o, "out", x->place.path);
  mlrt_check_output(p, o, "out", x->place.temp);
  if (!mlrt_is_replaceable(x->place.path) || !mlrt_is_replaceable(x->place.temp))
    mlrt_fail(MLRT_EXIT_INPUT, "cannot write '%s': it, or its '.tmp', is there and no file",
              x->place.path);
  if (!mlrt_may_be_replaced(x->place.path, x->place.folder))
    mlrt_fail(MLRT_EXIT_INPUT, "cannot write '%s': %s", x->place.path, strerror(errno));
}

// Whether all that was written is in the file, and on disk. False with errno.
static bool is_whole(FILE *f) {
  return !ferror(f) && fflush(f) == 0 && fsync(fileno(f)) == 0;
}

// False with errno: it could not be written. Then, and when it is not to be kept, nothing is left.
static bool close_output(npy *x, bool keep) {
  bool kept = keep && is_whole(x->file) && mlrt_place_take(&x->place, fileno(x->file));
  int why = errno;
  if (!kept)
    unlink(x->place.temp);
  else
    printf("wrote %s\n", x->place.path);
  fclose(x->file);
  errno = why;
  return kept || !keep;
}

static bool has_rows(const mlrt_result *r, int64_t batch) {
  return r->kind == MLRT_OUTPUT && r->rank > 0 && r->dims[0] == batch;
}

// All of them or, where one cannot be opened, none.
static void open_files(npy *files, int num, int64_t samples) {
  for (int i = 0; i < num; i++) {
    npy *x = &files[i];
    int fd = mlrt_place_begin(&x->place, 0);
    x->file = fd < 0 ? NULL : fdopen(fd, "w");
    if (x->file) {
      write_header(x->file, x->result, samples);
      continue;
    }
    int why = errno;
    for (int k = 0; k < i; k++)
      close_output(&files[k], false);
    errno = why;
    cannot(x->place.path);
  }
}

// Opens a file per output, once all their names are known to be free; returns their number.
static int open_outputs(npy *files, const mlrt_program *p, const mlrt_options *o, int64_t samples) {
  const mlrt_func *f = &p->funcs[MLRT_PREDICT];
  int num = 0;
  for (int i = 0; i < f->num_results; i++) {
    const mlrt_result *r = &f->results[i];
    if (has_rows(r, mlrt_batch_size(p)))
      name_output(&files[num++], p, o, r);
    else
      fprintf(stderr, "warning: '%s' has no row per sample and is not written\n", r->name);
  }
  open_files(files, num, samples);
  return num;
}

static bool write_piece(void *file, const char *from, size_t bytes) {
  return fwrite(from, 1, bytes, file) == bytes;
}

static bool write_output(mlrt_trainer *t, const npy *x, int64_t rows) {
  int64_t bytes = rows * (int64_t)x->row_bytes;
  return t->device.calls->read(&t->device, x->result->offset, bytes, write_piece, x->file);
}

typedef enum outcome { WHOLE, STOPPED, BAD_DATA, NOT_WRITTEN } outcome;

// NOT_WRITTEN: errno says why, *at is the file. BAD_DATA: `e` says why.
static outcome write_rows(mlrt_trainer *t, mlrt_batches *b, const npy *files, int num, int *at,
                          mlrt_error *e) {
  mlrt_batch batch;
  mlrt_next next;
  while ((next = mlrt_trainer_next(t, b, &batch, e)) == MLRT_BATCH) {
    if (mlrt_signals_pending())
      return STOPPED;
    mlrt_trainer_run_batch(t, &t->program->funcs[MLRT_PREDICT], b, &batch);
    for (*at = 0; *at < num; ++*at)
      if (!write_output(t, &files[*at], batch.valid))
        return NOT_WRITTEN;
  }
  return next == MLRT_BAD ? BAD_DATA : WHOLE;
}

// All files or, where one cannot be written or the data end early, none.
static outcome write_files(mlrt_trainer *t, mlrt_batches *b, int64_t samples) {
  const mlrt_program *p = t->program;
  npy *files = calloc((size_t)p->funcs[MLRT_PREDICT].num_results + 1, sizeof *files);
  if (!files)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  int num = open_outputs(files, p, t->options, samples), at = 0;
  mlrt_error e;
  outcome how = write_rows(t, b, files, num, &at, &e);
  for (int i = 0; how == WHOLE && i < num; i++)
    if (!is_whole(files[at = i].file)) // before the first of them gets its name
      how = NOT_WRITTEN;
  int why = errno;
  for (int i = 0; i < num; i++)
    if (!close_output(&files[i], how == WHOLE)) {
      how = NOT_WRITTEN;
      why = errno;
      at = i;
    }
  errno = why;
  if (how == NOT_WRITTEN)
    cannot(files[at].place.path);
  if (how == BAD_DATA)
    mlrt_fail_with(&e);
  for (int i = 0; i < num; i++)
    mlrt_place_close(&files[i].place);
  free(files);
  return how;
}

static outcome predict(mlrt_trainer *t, const mlrt_data *d) {
  mlrt_dataset *data = mlrt_trainer_data(t->program, t->options, d, MLRT_USE_EVAL);
  mlrt_error e;
  mlrt_batches *b = mlrt_trainer_batches(t, &e);
  mlrt_order order = {.data = data, .use = MLRT_USE_EVAL};
  if (!b || !mlrt_trainer_begin(t, b, &order, &e))
    mlrt_fail_with(&e);
  outcome how = write_files(t, b, mlrt_data_size(data));
  mlrt_batches_close(b);
  mlrt_data_close(data);
  return how;
}

int mlrt_predict(const mlrt_program *p, mlrt_options *o) {
  if (!mlrt_has_func(p, MLRT_PREDICT))
    mlrt_fail(MLRT_EXIT_USAGE,
              "the program has no outputs to predict: add `output name = value` to the model");
  mlrt_check_split(p, o->split);
  const mlrt_data *d = o->split ? mlrt_find_data(p, o->split) : mlrt_eval_data(p);
  if (!d && p->num_data)
    d = &p->data[p->num_data - 1];
  if (!d)
    mlrt_fail(MLRT_EXIT_USAGE, "the program names no data");
  mlrt_signals_install();
  mlrt_trainer t;
  mlrt_open_trained(&t, p, o);
  outcome how = predict(&t, d);
  mlrt_trainer_close(&t);
  return how == WHOLE ? MLRT_EXIT_OK : 128 + mlrt_signals_pending();
}
