// checkpoint_save.c: the writing half of checkpoint.h.
//
// Equal runs write equal bytes: no time, no path, no thread count goes into the file.
#include "runtime/checkpoint.h"
#include "runtime/number_io.h"
#include "runtime/hash.h"
#include "runtime/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors are little-endian");

static char *join(const char *a, const char *b) {
  char *s = malloc(strlen(a) + strlen(b) + 1);
  if (s)
    strcat(strcpy(s, a), b);
  return s;
}

// Wide types first keeps every tensor aligned in the file; otherwise in the program's order.
static void order_states(mlrt_saver *s) {
  const mlrt_program *p = s->program;
  int64_t at = 0;
  for (int bytes = 8; bytes >= 1; bytes /= 2)
    for (int i = 0; i < p->num_states; i++) {
      const mlrt_tensor *t = &p->states[i];
      if (t->role == MLRT_FLAG || mlrt_dtype_bytes(t->dtype) != bytes)
        continue;
      mlrt_st_tensor *out = &s->tensors[s->num_states];
      *out = (mlrt_st_tensor){.name = t->name, .dtype = mlrt_st_dtype(t->dtype), .rank = t->rank};
      memcpy(out->dims, t->dims, sizeof out->dims);
      out->begin = at;
      out->end = at += t->bytes;
      s->states[s->num_states++] = t;
    }
}

static char *add_pair(mlrt_saver *s, const char *key) {
  s->pairs[s->num_pairs] = (mlrt_st_pair){key, s->values[s->num_pairs]};
  return s->values[s->num_pairs++];
}

static void add_number(mlrt_saver *s, const char *key, int64_t value) {
  snprintf(add_pair(s, key), sizeof s->values[0], "%" PRId64, value);
}

static void add_hex(mlrt_saver *s, const char *key, uint64_t value) {
  snprintf(add_pair(s, key), sizeof s->values[0], "%016" PRIx64, value);
}

static void add_text(mlrt_saver *s, const char *key, const char *value) {
  s->pairs[s->num_pairs++] = (mlrt_st_pair){key, value};
}

static void add_double(mlrt_saver *s, const char *key, double value) {
  snprintf(add_pair(s, key), sizeof s->values[0], "%.17g", value); // exact
}

enum { FIXED_PAIRS = 17 };

// A sum, so that the order of keys, which other tools may change, does not count.
uint64_t mlrt_metadata_hash(const mlrt_st_pair *pairs, int num) {
  uint64_t sum = 0;
  for (int i = 0; i < num; i++) {
    if (!strcmp(pairs[i].key, "metadata_checksum"))
      continue;
    mlrt_hash h;
    mlrt_hash_begin(&h);
    mlrt_hash_add(&h, pairs[i].key, strlen(pairs[i].key) + 1);
    mlrt_hash_add(&h, pairs[i].value, strlen(pairs[i].value));
    sum += mlrt_hash_end(&h);
  }
  return sum;
}

static void fill_metadata(mlrt_saver *s, const mlrt_run_point *at, uint64_t checksum) {
  const mlrt_program *p = s->program;
  s->num_pairs = 0;
  add_text(s, "format", "mltc");
  add_text(s, "model", p->model);
  add_number(s, "step", at->step);
  add_number(s, "epoch", at->position.epoch);
  add_number(s, "position", at->position.index);
  add_number(s, "samples", at->samples);
  add_number(s, "evaluated", at->evaluated);
  add_number(s, "seed", (int64_t)at->seed);
  add_text(s, "rng", "philox4x32-10");
  add_hex(s, "source_hash", p->source_hash);
  add_hex(s, "plan_hash", p->plan_hash);
  add_hex(s, "checksum", checksum);
  add_number(s, "window", at->window_steps);
  if (at->parts) { // only bad data end a run in the middle of a step
    add_number(s, "parts", at->parts);
    add_number(s, "parts_of", at->parts_of);
  }
  if (at->characters.num) {
    mlrt_characters_write(&at->characters, s->characters);
    add_text(s, "characters", s->characters);
  }
  int flags = s->options->num_flags;
  for (int i = 0; i < flags; i++)
    add_double(s, s->keys[i], s->options->flags[i].value);
  for (int i = flags; i < s->num_keys; i++)
    add_double(s, s->keys[i], at->window[i - flags]);
  add_hex(s, "metadata_checksum", mlrt_metadata_hash(s->pairs, s->num_pairs));
}

static bool add_key(mlrt_saver *s, const char *prefix, const char *name) {
  s->keys[s->num_keys] = join(prefix, name);
  return s->keys[s->num_keys++];
}

// The metadata keys that depend on the program.
static bool make_keys(mlrt_saver *s) {
  const mlrt_func *step = &s->program->funcs[MLRT_STEP];
  for (int i = 0; i < s->options->num_flags; i++)
    if (!add_key(s, "flag.", s->options->flags[i].state->name))
      return false;
  for (int i = 0; i < step->num_results && i < MLRT_MAX_RESULTS; i++)
    if (!add_key(s, "window.", step->results[i].name))
      return false;
  return true;
}

static bool take_memory(mlrt_saver *s) {
  size_t states = (size_t)s->program->num_states + 1;
  size_t pairs = FIXED_PAIRS + (size_t)s->options->num_flags + MLRT_MAX_RESULTS;
  s->tensors = calloc(states, sizeof *s->tensors);
  s->states = calloc(states, sizeof *s->states);
  s->pairs = calloc(pairs, sizeof *s->pairs);
  s->values = calloc(pairs, sizeof *s->values);
  s->keys = calloc(pairs, sizeof *s->keys);
  bool keeps = mlrt_keeper_open(&s->keeper, s->place.path);
  if (!keeps || !s->tensors || !s->states || !s->pairs || !s->values || !s->keys || !make_keys(s))
    return false;
  order_states(s);
  fill_metadata(s, &(mlrt_run_point){.parts = 1, .characters.num = 1}, 0); // all pairs there are
  // No value grows beyond its field.
  s->header_cap = (size_t)s->num_pairs * sizeof s->values[0] + sizeof s->characters;
  s->header_cap += mlrt_st_write(NULL, 0, s->tensors, s->num_states, s->pairs, s->num_pairs);
  s->header = malloc(s->header_cap);
  return s->header;
}

static bool cannot(const mlrt_saver *s, mlrt_error *e) {
  return mlrt_error_set(e, "cannot write the checkpoint '%s': %s%s%s%s", s->place.path,
                        strerror(errno), s->whole ? "; it is whole in '" : "",
                        s->whole ? s->place.temp : "",
                        s->whole ? "', which a later run may remove: move it" : "");
}

static bool is_free(const mlrt_saver *s, const char *beside, mlrt_error *e) {
  if (!mlrt_is_replaceable(beside))
    return mlrt_error_set(e, "cannot write the checkpoint '%s': '%s' is in the way, and no file",
                          s->place.path, beside);
  return mlrt_may_be_replaced(beside, s->place.folder) ||
         mlrt_error_set(e, "cannot write the checkpoint '%s': '%s': %s", s->place.path, beside,
                        strerror(errno));
}

// A file that does not begin as safetensors do, whole or not: eight bytes that say how long the header is, and the header's
// first. It is the graph, or the data, for a slip of the keyboard; two runs would push it out of FILE.old.
static bool is_of_other_kind(const char *path) {
  enum { LENGTH_BYTES = 8, LARGE_BYTE = 3, LARGE = 0x40 }; // headers have less than 1 GiB
  uint8_t begin[LENGTH_BYTES + 1] = {0};
  int fd = mlrt_open_input(path);
  ssize_t got = fd >= 0 ? pread(fd, begin, sizeof begin, 0) : 0;
  if (fd >= 0)
    close(fd);
  bool other = begin[LARGE_BYTE] >= LARGE;
  for (int i = LARGE_BYTE + 1; i < LENGTH_BYTES; i++)
    other |= begin[i] != 0;
  return other || (got == sizeof begin && !strchr("{ \t\r\n", begin[LENGTH_BYTES]));
}

// The rename at the end would take the place of a device, and fail on a folder, or on a file that must not be replaced,
// after hours; a pipe in the place of the temporary file would never open. A run that goes on with its file has nothing to
// keep.
static bool can_be_replaced(const mlrt_saver *s, mlrt_error *e) {
  if (!mlrt_is_replaceable(s->place.path))
    return mlrt_error_set(
        e, "cannot write the checkpoint '%s': it is no file; --no-save writes none", s->place.path);
  if (is_of_other_kind(s->place.path))
    return mlrt_error_other_file(e, s->place.path, "checkpoint", "--save");
  if (!mlrt_may_be_replaced(s->place.path, s->place.folder))
    return cannot(s, e);
  bool keeps = !s->options->resume && mlrt_keeper_has_other(&s->keeper);
  return is_free(s, s->place.temp, e) && (!keeps || is_free(s, s->keeper.old, e));
}

static void remove_temps(const mlrt_saver *s) {
  unlink(s->place.temp);
  unlink(s->keeper.link);
}

// A checkpoint of this model.
static bool is_whole(const mlrt_saver *s, int fd) {
  mlrt_st_header h;
  mlrt_error e;
  const char *model = mlrt_st_read(&h, fd, &e) ? mlrt_st_value(&h, "model") : NULL;
  bool whole = model && !strcmp(model, s->program->model) && mlrt_checkpoint_intact(&h, fd, &e);
  mlrt_st_free(&h);
  return whole;
}

// What a save has left that was killed before it gave its file the name, or somebody's checkpoint that is called so. Where
// nothing has the name, it gets it, and is kept as that of an earlier run.
static void take_up_temp(const mlrt_saver *s) {
  if (access(s->place.path, F_OK) == 0 || errno != ENOENT)
    return;
  int fd = mlrt_open_input(s->place.temp);
  if (fd >= 0 && mlrt_lock(fd) && mlrt_is_at(fd, s->place.temp) && is_whole(s, fd))
    rename(s->place.temp, s->place.path);
  if (fd >= 0)
    close(fd);
}

bool mlrt_saver_open(mlrt_saver *s, const mlrt_program *p, const mlrt_options *o, const char *path,
                     mlrt_error *e) {
  *s = (mlrt_saver){.program = p, .options = o};
  if (!mlrt_place_open(&s->place, path) || !take_memory(s)) {
    mlrt_saver_close(s);
    return mlrt_error_memory(e, "out of memory");
  }
  take_up_temp(s); // which is asked about next
  if (!can_be_replaced(s, e)) {
    mlrt_saver_close(s);
    return false;
  }
  int fd = open(s->place.temp, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  bool ok = fd >= 0 || cannot(s, e);
  if (!ok)
    mlrt_error_add(e, "\nhelp: --save=FILE names another place");
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && mlrt_is_at(fd, s->place.temp))
    remove_temps(s); // unless another run is writing it right now
  if (fd >= 0)
    close(fd);
  if (!ok)
    mlrt_saver_close(s);
  return ok;
}

void mlrt_saver_go_on(mlrt_saver *s, const mlrt_checkpoint *from) {
  mlrt_keeper_know_file(&s->keeper, from->fd, from->header.data_start);
}

void mlrt_saver_close(mlrt_saver *s) {
  for (int i = 0; i < s->num_keys; i++)
    free(s->keys[i]);
  free(s->keys);
  mlrt_keeper_close(&s->keeper);
  mlrt_place_close(&s->place);
  free(s->tensors);
  free(s->states);
  free(s->pairs);
  free(s->values);
  free(s->header);
  *s = (mlrt_saver){0};
}

static bool hash_piece(void *hash, const char *p, size_t len) {
  mlrt_hash_add(hash, p, len);
  return true;
}

static uint64_t checksum(const mlrt_saver *s, mlrt_device *from) {
  mlrt_hash h;
  mlrt_hash_begin(&h);
  for (int i = 0; i < s->num_states; i++)
    from->calls->read(from, s->states[i]->offset, s->states[i]->bytes, hash_piece, &h);
  return mlrt_hash_end(&h);
}

static bool write_piece(void *fd, const char *p, size_t len) {
  return mlrt_write_all(*(int *)fd, p, len);
}

static bool write_file(const mlrt_saver *s, int fd, size_t header_len, mlrt_device *from) {
  if (!mlrt_write_all(fd, s->header, header_len))
    return false;
  for (int i = 0; i < s->num_states; i++)
    if (!from->calls->read(from, s->states[i]->offset, s->states[i]->bytes, write_piece, &fd))
      return false;
  return true;
}

// What another run has left at the path is kept once all that may fail is written.
static bool replace(mlrt_saver *s, int fd) {
  bool kept = false;
  s->whole = fsync(fd) == 0;
  bool done = s->whole && mlrt_keeper_replace(&s->keeper, &s->place, fd, &kept);
  if (kept)
    s->kept = s->saved ? MLRT_KEPT_MEANWHILE : MLRT_KEPT_EARLIER;
  return done;
}

// After `replace`, whether or not it went well.
static void settle(mlrt_saver *s, int fd, size_t header_len) {
  int why = errno;
  if (mlrt_is_at(fd, s->place.path)) {
    mlrt_keeper_know(&s->keeper, s->header, header_len);
    s->saved = true;
    s->whole = false;
  } else {
    s->kept = MLRT_KEPT_NOTHING;               // or for nothing
    bool ours = mlrt_is_at(fd, s->place.temp); // and not what another run has put there since
    s->whole &= ours;
    if (ours && !s->whole) // else it is all that is left
      unlink(s->place.temp);
  }
  errno = why;
}

// Two runs that save to one path must not mix their bytes. -1 with *e.
static int open_temp(const mlrt_saver *s, mlrt_error *e) {
  int fd = mlrt_place_begin(&s->place, s->patience);
  if (fd < 0 && errno == EWOULDBLOCK)
    mlrt_error_set(e,
                   "cannot write the checkpoint '%s': another program is writing it; give each "
                   "run its own with --save",
                   s->place.path);
  else if (fd < 0)
    cannot(s, e);
  return fd;
}

bool mlrt_saver_save(mlrt_saver *s, mlrt_device *from, const mlrt_run_point *at, mlrt_error *e) {
  s->whole = false;
  fill_metadata(s, at, checksum(s, from));
  size_t len =
      mlrt_st_write(s->header, s->header_cap, s->tensors, s->num_states, s->pairs, s->num_pairs);
  int fd = open_temp(s, e);
  if (fd < 0)
    return false;
  s->kept = MLRT_KEPT_NOTHING;
  bool ok = write_file(s, fd, len, from) && replace(s, fd);
  settle(s, fd, len);
  int why = errno;
  close(fd); // the lock until here; what could fail has been synced
  errno = why;
  return ok || cannot(s, e);
}
