// handles.c: the objects that the driver gives out. None is ever freed while the process lives, so
// that a dead one is told from a wrong one.
#include "tests/standin/standin.h"

#include <stdlib.h>

typedef struct object {
  _Alignas(16) standin_kind kind;
  bool live;
  struct object *next;
} object;

static object *all;

static const char *const names[STANDIN_NUM_KINDS] = {"stream",   "event", "module",
                                                     "function", "graph", "executable graph"};

void *standin_new(standin_kind kind, size_t bytes) {
  object *o = calloc(1, sizeof *o + bytes);
  if (!o)
    standin_report("out of memory");
  *o = (object){.kind = kind, .live = true, .next = all};
  all = o;
  return o + 1;
}

static object *find(const void *handle) {
  for (object *o = all; o; o = o->next)
    if (o + 1 == handle)
      return o;
  return NULL;
}

void *standin_live(standin_kind kind, const void *handle, const char *call) {
  object *o = find(handle);
  if (!o)
    standin_report("%s: %p is no %s", call, handle, names[kind]);
  if (o->kind != kind)
    standin_report("%s: %s given, %s wanted", call, names[o->kind], names[kind]);
  if (!o->live)
    standin_report("%s: the %s has been destroyed before", call, names[kind]);
  return o + 1;
}

void standin_end(void *handle) {
  find(handle)->live = false;
}

void standin_check_handles_gone(void) {
  for (object *o = all; o; o = o->next)
    if (o->live && o->kind != STANDIN_FUNCTION)
      standin_report("the context is released, and not destroyed: %s", names[o->kind]);
}
