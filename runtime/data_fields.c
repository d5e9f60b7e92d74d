// data_fields.c: from what a file holds to fields of inputs, with the checks that formats share:
// shapes, numbers of samples, ranges, windows.
#include "runtime/data_reader.h"

#include <stdio.h>
#include <string.h>

// --- arrays: idx, npy ------------------------------------------------------------------------
static bool files_match_inputs(const mlrt_reading *r) {
  int files = r->set->num_files, inputs = r->program->num_inputs;
  return files == inputs ||
         mlrt_error_set(r->error, "%d file%s for %d input%s of the model: %s takes one per input",
                        files, files == 1 ? "" : "s", inputs, inputs == 1 ? "" : "s",
                        r->spec->format);
}

// Of the numbers; -1 when that overflows.
static int64_t array_bytes(const mlrt_array *a) {
  int64_t total = mlrt_stored_bytes(a->stored);
  for (int i = 0; i < a->rank; i++)
    if (__builtin_mul_overflow(total, a->dims[i], &total))
      return -1;
  return total;
}

int64_t mlrt_array_end(const mlrt_array *a) {
  int64_t bytes = array_bytes(a), end;
  return bytes < 0 || __builtin_add_overflow(bytes, a->offset, &end) ? INT64_MAX : end;
}

// "28 x 28"; "one number" for rank 0.
static const char *shape_text(const int64_t *dims, int rank, char *buf, size_t size) {
  size_t used = 0;
  snprintf(buf, size, "one number");
  for (int i = 0; i < rank && used < size; i++)
    used += (size_t)snprintf(buf + used, size - used, "%s%lld", i ? " x " : "", (long long)dims[i]);
  return buf;
}

// The sizes of a sample, without those of 1.
typedef struct sizes {
  int num;
  int64_t of[MLRT_MAX_RANK];
} sizes;

static sizes sizes_of(const int64_t *dims, int rank) {
  sizes s = {0};
  for (int i = 1; i < rank; i++)
    if (dims[i] != 1)
      s.of[s.num++] = dims[i];
  return s;
}

static int times(const sizes *s, int64_t size) {
  int n = 0;
  for (int i = 0; i < s->num; i++)
    n += s->of[i] == size;
  return n;
}

// As channels last are of channels first: it fits, and nothing would be where the model takes it to be.
static bool is_transposed(const sizes *x, const sizes *y) {
  for (int i = 0; i < x->num; i++)
    if (times(x, x->of[i]) != times(y, x->of[i]))
      return false;
  return x->num == y->num && memcmp(x->of, y->of, sizeof x->of) != 0;
}

static bool shapes_match(mlrt_reading *r, int i, const mlrt_array *a, int64_t elements) {
  const mlrt_input *in = &r->program->inputs[i];
  sizes has = sizes_of(a->dims, a->rank), takes = sizes_of(in->dims, in->rank);
  bool fits = elements == mlrt_input_elements(in), transposed = is_transposed(&has, &takes);
  if (fits && !transposed)
    return true;
  char have[180], want[180];
  return mlrt_error_set(r->error, "%s: a sample is %s, but input `%s` takes %s%s",
                        r->set->files[i].name,
                        shape_text(a->dims + 1, a->rank - 1, have, sizeof have), in->name,
                        shape_text(in->dims + 1, in->rank - 1, want, sizeof want),
                        transposed ? "\nhelp: give the input the file's order, and transpose it in "
                                     "the model"
                                   : "");
}

// The file must hold exactly what its header says.
static bool size_matches(mlrt_reading *r, const mlrt_file *file, const mlrt_array *a) {
  int64_t bytes = array_bytes(a), rest = file->len - a->offset;
  char shape[180];
  if (a->dims[0] < 1)
    return mlrt_error_set(r->error, "%s: holds no samples", file->name);
  if (bytes < 0 || bytes > rest)
    return mlrt_error_set(r->error,
                          "%s: is cut off: its header asks for %s numbers of %d bytes, but only "
                          "%lld bytes follow it",
                          file->name, shape_text(a->dims, a->rank, shape, sizeof shape),
                          mlrt_stored_bytes(a->stored), (long long)rest);
  if (bytes < rest)
    return mlrt_error_set(r->error, "%s: %lld bytes follow the last sample (at byte %lld)",
                          file->name, (long long)(rest - bytes), (long long)(a->offset + bytes));
  return true;
}

static bool to_field(mlrt_reading *r, int i, const mlrt_array *a) {
  const mlrt_file *file = &r->set->files[i];
  if (!size_matches(r, file, a))
    return false;
  mlrt_field *f = &r->set->fields[i];
  f->base = file->data + a->offset;
  f->stride = array_bytes(a) / a->dims[0];
  f->elements = f->stride / mlrt_stored_bytes(a->stored);
  f->stored = a->stored;
  f->swap = a->swap;
  f->file = file->name;
  if (!shapes_match(r, i, a, f->elements))
    return false;
  if (i > 0 && a->dims[0] != r->set->size)
    return mlrt_error_set(r->error, "%s holds %lld samples, but %s holds %lld", file->name,
                          (long long)a->dims[0], r->set->files[0].name, (long long)r->set->size);
  r->set->size = a->dims[0];
  return true;
}

// All arrays are there: range_lo and range_hi.
static bool take_range(mlrt_reading *r) {
  mlrt_dataset *d = r->set;
  int64_t lo, hi;
  if (!mlrt_setting_range(r, d->size, &lo, &hi))
    return false;
  for (int i = 0; i < d->num_fields; i++) {
    mlrt_field *f = &d->fields[i];
    f->base += lo * f->stride;
    mlrt_file_keep(&d->files[i], f->base - d->files[i].data, (hi - lo) * f->stride);
  }
  d->size = hi - lo;
  return true;
}

static bool read_array(mlrt_reading *r, int i, mlrt_need_fn need, mlrt_header_fn parse) {
  if (!mlrt_reading_open(r, i, need))
    return false;
  const mlrt_file *f = &r->set->files[i];
  mlrt_array a = {0};
  const char *wrong = parse(f->data, f->len, &a);
  if (wrong)
    return mlrt_error_set(r->error, "%s: %s", f->name, wrong);
  return to_field(r, i, &a);
}

bool mlrt_read_arrays(mlrt_reading *r, mlrt_need_fn need, mlrt_header_fn parse) {
  static const char *const keys[] = {NULL};
  if (!mlrt_settings_check(r, keys) || !files_match_inputs(r))
    return false;
  for (int i = 0; i < r->set->num_fields; i++)
    if (!read_array(r, i, need, parse))
      return false;
  return take_range(r);
}

// --- rows of ids: text, tokens ---------------------------------------------------------------
static bool check_id_inputs(mlrt_reading *r, int64_t *window) {
  const mlrt_program *p = r->program;
  if (p->num_inputs > 2)
    return mlrt_error_set(r->error,
                          "%s fills two inputs (ids and the ids that follow), but the model has %d",
                          r->spec->format, p->num_inputs);
  *window = mlrt_input_elements(&p->inputs[0]);
  if (!mlrt_setting_int(r, "window", 1, INT32_MAX, window))
    return false;
  for (int i = 0; i < p->num_inputs; i++)
    if (mlrt_input_elements(&p->inputs[i]) != *window)
      return mlrt_error_set(r->error, "the window is %lld ids, but input `%s` takes %lld a sample",
                            (long long)*window, p->inputs[i].name,
                            (long long)mlrt_input_elements(&p->inputs[i]));
  return true;
}

// Where windows begin: in each of some lanes, one every `stride` ids. Behind the ids of the last one, `follow` must be
// there.
typedef struct windows {
  int64_t length, stride, lanes, follow;
} windows;

static bool take_windows(mlrt_reading *r, windows *w) {
  if (!check_id_inputs(r, &w->length) || !mlrt_setting_int(r, "lanes", 1, INT32_MAX, &w->lanes))
    return false;
  w->stride = r->use == MLRT_USE_TRAIN && w->lanes == 0 ? 1 : w->length;
  return mlrt_setting_int(r, "stride", 1, INT32_MAX, &w->stride);
}

// The ids of a lane.
static int64_t lane_of(const windows *w, int64_t ids) {
  return (ids - w->follow) / (w->lanes ? w->lanes : 1);
}

// How many windows there are in so many ids.
static int64_t count_windows(const windows *w, int64_t ids) {
  int64_t lane = lane_of(w, ids), lanes = w->lanes ? w->lanes : 1;
  return lane < w->length ? 0 : ((lane - w->length) / w->stride + 1) * lanes;
}

static int64_t within(int64_t at, int64_t most) {
  return at < 0 ? 0 : at > most ? most : at;
}

// Windows of file i, whose ids from `lo` to `hi` count; none, and its bytes are let go.
static void add_part(mlrt_reading *r, const mlrt_ids *ids, const windows *w, int i, int64_t lo,
                     int64_t hi) {
  mlrt_dataset *d = r->set;
  mlrt_file *file = &d->files[i];
  int64_t bytes = mlrt_stored_bytes(ids->stored), num = count_windows(w, hi - lo);
  int64_t at = ids->rows[i].offset + lo * bytes;
  if (num == 0) {
    mlrt_file_release(file);
    return;
  }
  mlrt_file_keep(file, at, (hi - lo) * bytes);
  for (int k = 0; k < d->num_fields; k++) {
    mlrt_field *f = &d->fields[k];
    mlrt_part *parts = d->parts + k * d->num_files;
    parts[f->num_parts++] = (mlrt_part){d->size, file->data + at + k * bytes, file->name};
    f->lanes = w->lanes;
    f->lane_bytes = lane_of(w, hi - lo) * bytes; // there is one part, then
    f->parts = parts;
  }
  d->size += num;
}

static void finish_field(mlrt_field *f, const mlrt_ids *ids, const windows *w) {
  f->base = f->parts[0].base;
  f->file = f->parts[0].file;
  f->stride = w->stride * mlrt_stored_bytes(ids->stored);
  f->elements = w->length;
  f->stored = ids->stored;
  f->swap = ids->swap;
  f->table = ids->table;
  if (f->num_parts == 1)
    f->num_parts = 0;
}

static bool too_few(mlrt_reading *r, const windows *w, int64_t ids) {
  const mlrt_dataset *d = r->set;
  bool lanes = w->lanes > 1;
  int64_t needed = lanes ? w->length : w->length + w->follow;
  if (d->num_files > 1)
    return mlrt_error_set(r->error, "%s and %d more: none has the %lld ids of a window%s",
                          d->files[0].name, d->num_files - 1, (long long)needed,
                          mlrt_setting_find(r, "range_lo") || mlrt_setting_find(r, "range_hi")
                              ? " in the range"
                              : "");
  return mlrt_error_set(r->error, "%s: %lld ids are too few for %s of %lld", d->files[0].name,
                        (long long)ids, lanes ? "a window in each lane" : "one window",
                        (long long)needed);
}

// A range is one of the ids of all files, one after the other; a window lies in one file.
bool mlrt_ids_to_fields(mlrt_reading *r, const mlrt_ids *ids) {
  int64_t lo, hi, before = 0, all = 0;
  windows w = {.follow = r->program->num_inputs - 1};
  mlrt_dataset *d = r->set;
  for (int i = 0; i < d->num_files; i++)
    all += ids->rows[i].count;
  if (!take_windows(r, &w) || !mlrt_setting_range(r, all, &lo, &hi))
    return false;
  if (w.lanes && d->num_files > 1)
    return mlrt_error_set(r->error, "lanes are parts of one file, and there are %d", d->num_files);
  for (int i = 0; i < d->num_files; i++) {
    int64_t count = ids->rows[i].count;
    add_part(r, ids, &w, i, within(lo - before, count), within(hi - before, count));
    before += count;
  }
  if (d->size == 0)
    return too_few(r, &w, hi - lo);
  for (int k = 0; k < d->num_fields; k++)
    finish_field(&d->fields[k], ids, &w);
  return true;
}
