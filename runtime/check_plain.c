// check_plain.c: see check_plain.h.
//
// The calls of mlrt_plain_step in order. Every tensor has a buffer of its own, so that a probe,
// which moves one parameter, takes what lies before that parameter from the point and computes the
// rest: for the last layer of a network that is little.
#include "runtime/check_plain.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/number_io.h"

static void *take(int64_t bytes) {
  void *p = calloc(bytes > 0 ? (size_t)bytes : 1, 1);
  if (!p)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory in check");
  return p;
}

int64_t mlrt_plain_bytes(mlrt_dtype t) {
  return mlrt_is_float(t) ? (int64_t)sizeof(double) : mlrt_dtype_bytes(t);
}

void mlrt_plain_widen(char *to, const char *from, mlrt_dtype t, int64_t elements) {
  if (!mlrt_is_float(t)) {
    memcpy(to, from, (size_t)(elements * mlrt_dtype_bytes(t)));
    return;
  }
  for (int64_t i = 0; i < elements; i++)
    mlrt_store(to + i * (int64_t)sizeof(double), MLRT_F64,
               mlrt_load(from + i * mlrt_dtype_bytes(t), t));
}

static int64_t bytes_of(const mlrt_plain_step *s, int buffer) {
  return s->buffers[buffer].elements * mlrt_plain_bytes(s->buffers[buffer].dtype);
}

static bool is_stretch(const mlrt_plain_step *s, int64_t buffer) {
  return s->buffers[buffer].source == MLRT_FROM_BUFFER;
}

// The buffer whose memory it is.
static int64_t owner_of(const mlrt_plain_step *s, int64_t buffer) {
  return is_stretch(s, buffer) ? s->buffers[buffer].index : buffer;
}

static int64_t bytes_before(const mlrt_plain_step *s, int64_t buffer) {
  return s->buffers[buffer].first * mlrt_plain_bytes(s->buffers[buffer].dtype);
}

// --- calls -------------------------------------------------------------------------------------
static char **take_args(const mlrt_plain_step *s) {
  int most = 0;
  for (int i = 0; i < s->num_calls; i++)
    most = s->calls[i].num_args > most ? s->calls[i].num_args : most;
  return take((most + 1) * (int64_t)sizeof(char *));
}

static bool is_buffer(const mlrt_plain_call *c, int arg) {
  return arg < c->num_in + c->num_out;
}

// --- points ------------------------------------------------------------------------------------
static void load(mlrt_plain_point *x, const mlrt_program *p, const char *arena, int i) {
  const mlrt_plain_buffer *b = &x->step->buffers[i];
  if (is_stretch(x->step, i)) {
    x->buffer[i] = x->buffer[b->index] + bytes_before(x->step, i);
    return;
  }
  x->buffer[i] = take(bytes_of(x->step, i));
  if (b->source == MLRT_FROM_STATE)
    mlrt_plain_widen(x->buffer[i], arena + p->states[b->index].offset, b->dtype, b->elements);
  else if (b->source == MLRT_FROM_BATCH)
    mlrt_plain_widen(x->buffer[i], arena + p->inputs[b->index].offset, b->dtype, b->elements);
}

// `held`: the point whose choices are kept, or NULL. A kernel records its gradients or keeps its choices: then it runs
// for the ones first, and for what others read once more.
static void evaluate(mlrt_plain_point *x, const mlrt_plain_point *held) {
  const mlrt_plain_step *s = x->step;
  char **args = take_args(s);
  for (int i = 0; i < s->num_calls; i++) {
    const mlrt_plain_call *c = &s->calls[i];
    for (int k = 0; k < c->num_args; k++) {
      int64_t arg = s->args[c->first_arg + k];
      args[k] = is_buffer(c, k) ? x->buffer[arg] : (char *)(uintptr_t)arg;
    }
    c->run(args, x->tap + c->first_tap, MLRT_HOLD_RECORD);
    if (held && c->num_taps)
      c->run(args, held->tap + c->first_tap, MLRT_HOLD_REPLAY);
  }
  free(args);
  for (int i = 0; i < s->num_losses; i++)
    x->loss[i] = mlrt_load(x->buffer[s->losses[i]], MLRT_F64);
}

static mlrt_plain_point new_point(const mlrt_plain_step *s) {
  mlrt_plain_point x = {.step = s};
  x.buffer = take(s->num_buffers * (int64_t)sizeof(char *));
  x.tap = take(s->num_taps * (int64_t)sizeof(double *));
  x.loss = take(s->num_losses * (int64_t)sizeof(double));
  for (int i = 0; i < s->num_taps; i++)
    x.tap[i] = take(s->taps[i].elements * (int64_t)sizeof(double));
  return x;
}

mlrt_plain_point mlrt_plain_open(const mlrt_program *p, const char *arena) {
  mlrt_plain_point x = new_point(p->plain_step);
  for (int i = 0; i < x.step->num_buffers; i++)
    load(&x, p, arena, i);
  evaluate(&x, NULL);
  return x;
}

int mlrt_round_otherwise(int number) {
  static const int modes[MLRT_ROUNDINGS] = {FE_UPWARD, FE_DOWNWARD};
  int before = fegetround();
  fesetround(modes[number]);
  return before;
}

mlrt_plain_point mlrt_plain_again(const mlrt_plain_point *at) {
  const mlrt_plain_step *s = at->step;
  mlrt_plain_point x = new_point(s);
  for (int i = 0; i < s->num_buffers; i++) {
    if (is_stretch(s, i)) {
      x.buffer[i] = x.buffer[s->buffers[i].index] + bytes_before(s, i);
      continue;
    }
    x.buffer[i] = take(bytes_of(s, i));
    if (s->buffers[i].source != MLRT_FROM_CALL)
      memcpy(x.buffer[i], at->buffer[i], (size_t)bytes_of(s, i));
  }
  evaluate(&x, at);
  return x;
}

void mlrt_plain_close(mlrt_plain_point *x) {
  for (int i = 0; i < x->step->num_buffers; i++)
    if (!is_stretch(x->step, i))
      free(x->buffer[i]);
  for (int i = 0; i < x->step->num_taps; i++)
    free(x->tap[i]);
  free(x->buffer);
  free(x->tap);
  free(x->loss);
}

int mlrt_plain_state(const mlrt_plain_step *s, int state) {
  for (int i = 0; i < s->num_buffers; i++)
    if (s->buffers[i].source == MLRT_FROM_STATE && s->buffers[i].index == state)
      return i;
  return -1;
}

// --- probes ------------------------------------------------------------------------------------
mlrt_plain_probe mlrt_plain_probe_open(const mlrt_plain_point *at) {
  mlrt_plain_probe x = {.at = at};
  x.buffer = take(at->step->num_buffers * (int64_t)sizeof(char *));
  x.moved = take(at->step->num_buffers * (int64_t)sizeof(bool));
  return x;
}

void mlrt_plain_probe_close(mlrt_plain_probe *x) {
  for (int i = 0; i < x->at->step->num_buffers; i++)
    free(x->buffer[i]);
  free(x->buffer);
  free(x->moved);
}

static bool reads_moved(const mlrt_plain_step *s, const mlrt_plain_call *c, const bool *moved) {
  for (int k = 0; k < c->num_in; k++)
    if (moved[owner_of(s, s->args[c->first_arg + k])])
      return true;
  return false;
}

static char *own_buffer(mlrt_plain_probe *x, int64_t i) {
  if (!x->buffer[i])
    x->buffer[i] = take(bytes_of(x->at->step, (int)i));
  return x->buffer[i];
}

static char *probe_arg(mlrt_plain_probe *x, const mlrt_plain_call *c, int k) {
  int64_t arg = x->at->step->args[c->first_arg + k];
  if (!is_buffer(c, k))
    return (char *)(uintptr_t)arg;
  const mlrt_plain_step *s = x->at->step;
  int64_t owner = owner_of(s, arg);
  if (k < c->num_in)
    return x->moved[owner] ? own_buffer(x, owner) + bytes_before(s, arg) : x->at->buffer[arg];
  x->moved[arg] = true;
  return own_buffer(x, arg);
}

double mlrt_plain_loss(mlrt_plain_probe *x, int loss, int moved, const double *value) {
  const mlrt_plain_step *s = x->at->step;
  char **args = take_args(s);
  memset(x->moved, 0, (size_t)s->num_buffers * sizeof(bool));
  x->moved[moved] = true;
  memcpy(own_buffer(x, moved), value, (size_t)bytes_of(s, moved));
  for (int i = 0; i < s->num_calls; i++) {
    const mlrt_plain_call *c = &s->calls[i];
    if (!c->for_loss || !reads_moved(s, c, x->moved))
      continue;
    for (int k = 0; k < c->num_args; k++)
      args[k] = probe_arg(x, c, k);
    c->run(args, x->at->tap + c->first_tap, MLRT_HOLD_REPLAY);
  }
  free(args);
  int at = s->losses[loss];
  return mlrt_load(x->moved[at] ? x->buffer[at] : x->at->buffer[at], MLRT_F64);
}

int64_t mlrt_plain_flops(const mlrt_plain_step *s, int moved) {
  bool *touched = take(s->num_buffers * (int64_t)sizeof(bool));
  int64_t flops = 0;
  touched[moved] = true;
  for (int i = 0; i < s->num_calls; i++) {
    const mlrt_plain_call *c = &s->calls[i];
    if (!c->for_loss || !reads_moved(s, c, touched))
      continue;
    flops += c->flops;
    for (int k = 0; k < c->num_out; k++)
      touched[s->args[c->first_arg + c->num_in + k]] = true;
  }
  free(touched);
  return flops;
}
