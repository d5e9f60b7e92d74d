// checkpoint_load.c: the reading half of checkpoint.h: verify all, then read.
#include "runtime/checkpoint.h"
#include "runtime/files.h"
#include "runtime/hash.h"
#include "runtime/numbers.h"
#include "runtime/state_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 64 << 10 };

// --- does the file have exactly the program's states?

static void compare_states(mlrt_report *r, mlrt_finding *missing, mlrt_finding *wrong,
                           const mlrt_st_header *h, const mlrt_program *p) {
  for (int i = 0; i < p->num_states; i++) {
    const mlrt_tensor *t = &p->states[i];
    if (t->role == MLRT_FLAG)
      continue;
    const mlrt_st_tensor *x = mlrt_st_find(h, t->name);
    if (!x)
      mlrt_report_add(r, missing, t->name);
    else if (!mlrt_same_type(x, t) && mlrt_report_add(r, wrong, t->name))
      mlrt_report_types(r, x, t);
  }
  mlrt_report_more(r, missing);
  mlrt_report_more(r, wrong);
}

static bool is_state(const mlrt_program *p, const char *name) {
  for (int i = 0; i < p->num_states; i++)
    if (p->states[i].role != MLRT_FLAG && !strcmp(p->states[i].name, name))
      return true;
  return false;
}

// Only when the counts differ: a file with all our states and no more tensors has no others.
static void find_extra(mlrt_report *r, mlrt_finding *extra, const mlrt_st_header *h,
                       const mlrt_program *p) {
  for (int i = 0; i < h->num_tensors; i++)
    if (!is_state(p, h->tensors[i].name))
      mlrt_report_add(r, extra, h->tensors[i].name);
  mlrt_report_more(r, extra);
}

static bool check_states(const mlrt_checkpoint *c, const mlrt_program *p, mlrt_error *e) {
  mlrt_report r = {.len = 0};
  mlrt_finding missing = {"missing in the file", 0}, wrong = {"different", 0},
               extra = {"unknown to the program", 0};
  compare_states(&r, &missing, &wrong, &c->header, p);
  int states = 0;
  for (int i = 0; i < p->num_states; i++)
    states += p->states[i].role != MLRT_FLAG;
  if (missing.num || wrong.num || states != c->header.num_tensors)
    find_extra(&r, &extra, &c->header, p);
  if (!missing.num && !wrong.num && !extra.num)
    return true;
  const char *model = mlrt_st_value(&c->header, "model");
  mlrt_error_set(e, "it does not fit this program (model '%s'; the file: model '%.40s')%s",
                 p->model, model ? model : "unknown", r.text);
  return false;
}

// --- metadata

static bool number(const mlrt_checkpoint *c, const char *key, int64_t *out, mlrt_error *e) {
  const char *text = mlrt_st_value(&c->header, key);
  if (!text)
    return mlrt_error_set(e, "it has no '%s' in its metadata: not a checkpoint of a trainer", key);
  if (!mlrt_parse_int(text, out))
    return mlrt_error_set(e, "its metadata say %s = '%.40s', which is no number", key, text);
  return true;
}

// A sum may be nan or infinite, which mlrt_parse_double refuses.
static void read_window(mlrt_checkpoint *c, const mlrt_func *step) {
  for (int i = 0; i < step->num_results && i < MLRT_MAX_RESULTS; i++) {
    const char *text = mlrt_st_value_of(&c->header, "window.", step->results[i].name);
    c->at.window[i] = text ? strtod(text, NULL) : 0;
  }
}

static const char *said_checksum(const mlrt_st_header *h) {
  return mlrt_st_value(h, "metadata_checksum");
}

bool mlrt_metadata_intact(const mlrt_st_header *h, mlrt_error *e) {
  const char *wanted = said_checksum(h);
  char found[17];
  snprintf(found, sizeof found, "%016" PRIx64, mlrt_metadata_hash(h->pairs, h->num_pairs));
  return !wanted || !strcmp(found, wanted) ||
         mlrt_error_set(e, "its metadata are damaged: checksum %s, expected %.16s", found, wanted);
}

static bool check_metadata(const mlrt_st_header *h, mlrt_error *e) {
  if (!said_checksum(h))
    return mlrt_error_set(e, "it has no metadata checksum: not a checkpoint of a trainer");
  return mlrt_metadata_intact(h, e);
}

bool mlrt_metadata_characters(const mlrt_st_header *h, mlrt_characters *out, mlrt_error *e) {
  const char *said = mlrt_st_value(h, "characters");
  out->num = 0;
  return !said || mlrt_characters_read(out, said) ||
         mlrt_error_set(e, "its metadata say characters = '%.40s', which are none", said);
}

static bool says_hash(const mlrt_checkpoint *c, const char *key, uint64_t hash) {
  char text[17];
  snprintf(text, sizeof text, "%016" PRIx64, hash);
  const char *said = mlrt_st_value(&c->header, key);
  return said && !strcmp(said, text);
}

static bool read_metadata(mlrt_checkpoint *c, const mlrt_program *p, mlrt_error *e) {
  int64_t seed;
  mlrt_run_point *at = &c->at;
  if (!number(c, "step", &at->step, e) || !number(c, "epoch", &at->position.epoch, e) ||
      !number(c, "position", &at->position.index, e) || !number(c, "samples", &at->samples, e) ||
      !number(c, "evaluated", &at->evaluated, e) || !number(c, "seed", &seed, e) ||
      !number(c, "window", &at->window_steps, e))
    return false;
  if (mlrt_st_value(&c->header, "parts") && !number(c, "parts", &at->parts, e))
    return false;
  if (mlrt_st_value(&c->header, "parts_of") && !number(c, "parts_of", &at->parts_of, e))
    return false;
  if (!mlrt_metadata_characters(&c->header, &at->characters, e))
    return false;
  read_window(c, &p->funcs[MLRT_STEP]);
  if (at->step < 0 || at->parts < 0 || at->window_steps < 0 || at->position.epoch < 0 ||
      at->position.index < 0)
    return mlrt_error_set(e, "its metadata hold a negative step or position");
  at->seed = (uint64_t)seed;
  c->other_plan = !says_hash(c, "plan_hash", p->plan_hash);
  c->other_source = !says_hash(c, "source_hash", p->source_hash);
  return true;
}

bool mlrt_checkpoint_flag(const mlrt_checkpoint *c, const char *name, double *value) {
  const char *text = mlrt_st_value_of(&c->header, "flag.", name);
  return text && mlrt_parse_double(text, value);
}

bool mlrt_checkpoint_intact(const mlrt_st_header *header, int fd, mlrt_error *e) {
  const char *wanted = mlrt_st_value(header, "checksum");
  if (!wanted)
    return mlrt_error_set(e, "it has no checksum: not a checkpoint of a trainer");
  char *chunk = malloc(CHUNK);
  if (!chunk)
    return mlrt_error_memory(e, "out of memory");
  mlrt_hash h;
  mlrt_hash_begin(&h);
  bool ok = true;
  for (int64_t at = 0; ok && at < header->data_bytes; at += CHUNK) {
    int64_t left = header->data_bytes - at, take = left < CHUNK ? left : CHUNK;
    ok = mlrt_st_read_at(fd, chunk, take, header->data_start + at, e);
    mlrt_hash_add(&h, chunk, ok ? (size_t)take : 0);
  }
  free(chunk);
  char found[17];
  snprintf(found, sizeof found, "%016" PRIx64, mlrt_hash_end(&h));
  if (ok && strcmp(found, wanted))
    return mlrt_error_set(e, "its data are damaged: checksum %s, expected %.16s", found, wanted);
  return ok;
}

static bool verify(mlrt_checkpoint *c, const mlrt_program *p, mlrt_error *e) {
  return mlrt_st_read(&c->header, c->fd, e) && check_states(c, p, e) &&
         check_metadata(&c->header, e) && read_metadata(c, p, e) &&
         mlrt_checkpoint_intact(&c->header, c->fd, e);
}

bool mlrt_checkpoint_open(mlrt_checkpoint *c, const mlrt_program *p, const char *path,
                          mlrt_error *e) {
  *c = (mlrt_checkpoint){.fd = mlrt_open_input(path)};
  if (c->fd < 0)
    return mlrt_error_set(e, "cannot open the checkpoint '%s': %s", path, strerror(errno));
  if (verify(c, p, e))
    return true;
  mlrt_checkpoint_close(c);
  return mlrt_error_prefix(e, "cannot use the checkpoint '%s'", path);
}

typedef struct place { // in the file
  int fd;
  int64_t at;
  mlrt_error *error;
} place;

static bool read_piece(void *data, char *to, size_t bytes) {
  place *from = data;
  if (!mlrt_st_read_at(from->fd, to, (int64_t)bytes, from->at, from->error))
    return false;
  from->at += (int64_t)bytes;
  return true;
}

bool mlrt_checkpoint_read(const mlrt_checkpoint *c, const mlrt_program *p, mlrt_device *to,
                          mlrt_error *e) {
  for (int i = 0; i < p->num_states; i++) {
    const mlrt_tensor *t = &p->states[i];
    if (t->role == MLRT_FLAG)
      continue;
    const mlrt_st_tensor *x = mlrt_st_find(&c->header, t->name);
    place from = {c->fd, c->header.data_start + x->begin, e};
    if (!to->calls->write(to, t->offset, t->bytes, read_piece, &from))
      return mlrt_error_prefix(e, "reading '%s' from the checkpoint", t->name);
  }
  return true;
}

void mlrt_checkpoint_close(mlrt_checkpoint *c) {
  if (c->fd >= 0)
    close(c->fd);
  c->fd = -1;
  mlrt_st_free(&c->header);
}
