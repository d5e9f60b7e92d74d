// weights_load.c: see weights_load.h. All of the file is checked before any of it is used.
#include "runtime/weights_load.h"
#include "runtime/files.h"
#include "runtime/number_io.h"
#include "runtime/weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 64 << 10 };

typedef struct source { // of one tensor
  int fd;
  int64_t at; // in the file
  mlrt_dtype from, to;
  char *chunk;
  mlrt_error *error;
} source;

// Pieces are whole elements: states are aligned, and so are the pieces that devices ask for.
static bool give_piece(void *data, char *to, size_t bytes) {
  source *s = data;
  int from_bytes = mlrt_dtype_bytes(s->from), to_bytes = mlrt_dtype_bytes(s->to);
  int64_t left = (int64_t)bytes / to_bytes, most = CHUNK / from_bytes;
  while (left) {
    int64_t num = left < most ? left : most;
    if (!mlrt_st_read_at(s->fd, s->chunk, num * from_bytes, s->at, s->error))
      return false;
    if (!mlrt_weights_convert(to, s->to, s->chunk, s->from, num))
      return mlrt_error_set(s->error, "a number is beyond the range of %s", mlrt_st_dtype(s->to));
    s->at += num * from_bytes;
    to += num * to_bytes;
    left -= num;
  }
  return true;
}

static bool read_states(mlrt_trainer *t, const mlrt_weights *w, source *s) {
  for (int i = 0; i < t->program->num_states; i++) {
    const mlrt_tensor *state = &t->program->states[i];
    const mlrt_st_tensor *x = mlrt_weights_find(w, state);
    if (!x)
      continue;
    s->at = w->header.data_start + x->begin;
    s->to = state->dtype;
    mlrt_st_dtype_of(x->dtype, &s->from);
    if (!t->device.calls->write(&t->device, state->offset, state->bytes, give_piece, s))
      return mlrt_error_prefix(s->error, "reading '%s'", state->name);
  }
  return true;
}

// A trainer's checkpoint has a checksum; what others write has none.
static bool is_intact(const mlrt_weights *w, int fd, mlrt_error *e) {
  return !mlrt_st_value(&w->header, "checksum") || mlrt_checkpoint_intact(&w->header, fd, e);
}

static bool load(mlrt_trainer *t, mlrt_weights *w, int fd, mlrt_error *e) {
  if (!mlrt_st_read(&w->header, fd, e)) {
    mlrt_error_add(e, "\nhelp: safetensors.torch.save_file and safetensors.numpy.save_file write "
                      "files that can be used");
    return false;
  }
  if (!mlrt_weights_match(w, t->program, e) ||
      !mlrt_weights_suit(w, t->options->allow_missing, e) || !is_intact(w, fd, e))
    return false;
  source s = {.fd = fd, .chunk = malloc(CHUNK), .error = e};
  if (!s.chunk)
    return mlrt_error_memory(e, "out of memory");
  bool fine = read_states(t, w, &s);
  free(s.chunk);
  return fine;
}

static void say(const mlrt_weights *w, const char *path) {
  printf("weights: %s: %d loaded", path, w->loaded);
  if (w->converted)
    printf(" (%d converted)", w->converted);
  printf(", %d missing, %d not used%s\n", w->missing, w->unused, w->report.text);
}

static _Noreturn void cannot_use(const char *path, const mlrt_error *e) {
  mlrt_fail(e->exit_code, "cannot use the weights '%s': %s", path, e->text);
}

void mlrt_weights_begin(mlrt_trainer *t, uint64_t seed) {
  const char *path = t->options->weights;
  int fd = mlrt_open_input(path);
  if (fd < 0)
    mlrt_fail(MLRT_EXIT_INPUT, "cannot open the weights '%s': %s", path, strerror(errno));
  mlrt_weights w = {.loaded = 0};
  mlrt_error e;
  mlrt_trainer_init(t, seed);
  if (!load(t, &w, fd, &e))
    cannot_use(path, &e);
  close(fd);
  if (!t->options->quiet)
    say(&w, path);
  mlrt_st_free(&w.header);
}

void mlrt_weights_characters(mlrt_options *o) {
  mlrt_st_header header;
  mlrt_error e;
  int fd = mlrt_open_input(o->weights);
  if (fd < 0)
    return;
  if (mlrt_st_read(&header, fd, &e)) {
    mlrt_characters there;
    if (!mlrt_metadata_intact(&header, &e) || !mlrt_metadata_characters(&header, &there, &e))
      cannot_use(o->weights, &e);
    if (there.num)
      o->known = (mlrt_known_characters){there, o->weights, o->command == MLRT_CMD_TRAIN};
    mlrt_st_free(&header);
  }
  close(fd);
}
