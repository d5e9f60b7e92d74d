// queue.c: streams of work, done late and in an order that the seed chooses.
//
// A stream's first operation can be done when it waits for nothing, or for a mark that has been
// reached. Among the streams that can go on one is drawn. Nothing is done by another thread: a run
// with one seed is the same every time.
#include "tests/standin/standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static standin_stream *streams;
static CUresult device_error;
static int64_t ticks; // operations done: the device's clock

// --- lists

void standin_append(standin_list *l, const standin_op *op) {
  standin_op *own = malloc(sizeof *own);
  if (!own)
    standin_report("out of memory");
  *own = *op;
  own->next = NULL;
  if (l->last)
    l->last->next = own;
  else
    l->first = own;
  l->last = own;
}

void standin_copy_list(standin_list *to, const standin_list *from) {
  for (const standin_op *op = from->first; op; op = op->next) {
    standin_op copy = *op;
    if (op->parameter) {
      copy.parameter = malloc(op->bytes + 1);
      if (!copy.parameter)
        standin_report("out of memory");
      memcpy(copy.parameter, op->parameter, op->bytes);
    }
    standin_append(to, &copy);
  }
}

static standin_op take_first(standin_list *l) {
  standin_op *op = l->first, copy = *op;
  l->first = op->next;
  if (!l->first)
    l->last = NULL;
  free(op);
  return copy;
}

void standin_free_list(standin_list *l) {
  while (l->first)
    free(take_first(l).parameter);
}

// --- streams

standin_list *standin_work_of(standin_stream *s) {
  return s->capture ? &s->capture->ops[s->lane] : &s->queue;
}

void standin_add_stream(standin_stream *s) {
  s->next = streams;
  streams = s;
}

void standin_remove_stream(standin_stream *s) {
  standin_stream **at = &streams;
  while (*at != s)
    at = &(*at)->next;
  *at = s->next;
}

bool standin_is_idle(void) {
  for (const standin_stream *s = streams; s; s = s->next)
    if (s->queue.first)
      return false;
  return true;
}

bool standin_is_capturing(void) {
  for (const standin_stream *s = streams; s; s = s->next)
    if (s->capture)
      return true;
  return false;
}

CUresult standin_device_error(void) {
  return device_error;
}

// --- doing it

static void run_kernel(const standin_op *op) {
  char why[1024];
  CUresult fault = standin_fault("kernel");
  if (fault != GPU_OK)
    device_error = fault;
  else if (!standin_run_kernel(op->function, op->blocks, op->parameter, why, sizeof why))
    standin_report("%s", why);
}

static void execute(const standin_op *op) {
  ticks++;
  bool to_device = op->kind != STANDIN_TO_HOST, from_device = op->kind != STANDIN_TO_DEVICE;
  switch (op->kind) {
  case STANDIN_TO_DEVICE:
  case STANDIN_TO_HOST:
  case STANDIN_ON_DEVICE: // again: a block may have been freed since it was queued
    standin_check_range(to_device, op->to, op->bytes, "a queued copy");
    standin_check_range(from_device, op->from, op->bytes, "a queued copy");
    memmove(op->to, op->from, op->bytes);
    break;
  case STANDIN_FILL:
    standin_check_range(true, op->to, op->bytes, "a queued cuMemsetD8Async");
    memset(op->to, op->value, op->bytes);
    break;
  case STANDIN_KERNEL:
    run_kernel(op);
    break;
  case STANDIN_RECORD:
    op->mark->reached = true;
    op->mark->tick = ticks;
    break;
  case STANDIN_WAIT:
    break;
  }
}

static bool can_go_on(const standin_stream *s) {
  const standin_op *op = s->queue.first;
  return op && (op->kind != STANDIN_WAIT || op->mark->reached);
}

// False: no stream can go on.
static bool do_one(void) {
  uint64_t num = 0, chosen;
  for (const standin_stream *s = streams; s; s = s->next)
    num += can_go_on(s);
  if (num == 0)
    return false;
  chosen = standin_random() % num;
  for (standin_stream *s = streams; s; s = s->next) {
    if (!can_go_on(s) || chosen-- > 0)
      continue;
    standin_op op = take_first(&s->queue);
    if (device_error == GPU_OK) // a device in error does nothing any more
      execute(&op);
    free(op.parameter);
    break;
  }
  return true;
}

static bool is_finished(const standin_stream *s, const standin_mark *m) {
  return device_error != GPU_OK || (m ? m->reached : s ? !s->queue.first : standin_is_idle());
}

static void finish(const standin_stream *s, const standin_mark *m) {
  if (is_finished(s, m))
    return;
  standin_open_device(true);
  while (!is_finished(s, m))
    if (!do_one())
      standin_report("the streams wait for each other for ever");
  standin_open_device(false);
}

void standin_finish_stream(const standin_stream *s) {
  finish(s, NULL);
}

void standin_finish_mark(const standin_mark *m) {
  if (m)
    finish(NULL, m);
}

void standin_do_some(void) {
  int64_t seed = standin_setting("MLTC_STANDIN_SEED", 0);
  if (seed == 0 || device_error != GPU_OK || standin_is_idle())
    return;
  uint64_t drawn = standin_random(); // mostly nothing: late work shows more
  uint64_t most = seed == 1 ? UINT64_MAX : drawn % 4 ? 0 : 1 + drawn / 4 % 3;
  if (most == 0)
    return;
  standin_open_device(true);
  for (uint64_t i = 0; i < most && do_one(); i++)
    continue;
  standin_open_device(false);
}
