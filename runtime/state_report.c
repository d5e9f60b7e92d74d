// state_report.c: see state_report.h.
#include "runtime/state_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void mlrt_report_say(mlrt_report *r, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  mlrt_append(r->text, sizeof r->text, &r->len, fmt, args);
  va_end(args);
}

static void report_type(mlrt_report *r, const char *dtype, int rank, const int64_t *dims) {
  mlrt_report_say(r, "%s[", dtype);
  for (int i = 0; i < rank; i++)
    mlrt_report_say(r, "%s%" PRId64, i ? "," : "", dims[i]);
  mlrt_report_say(r, "]");
}

void mlrt_report_types(mlrt_report *r, const mlrt_st_tensor *x, const mlrt_tensor *t) {
  mlrt_report_say(r, " is ");
  report_type(r, x->dtype, x->rank, x->dims);
  mlrt_report_say(r, " in the file and ");
  report_type(r, mlrt_st_dtype(t->dtype), t->rank, t->dims);
  mlrt_report_say(r, " in the program");
}

bool mlrt_report_add(mlrt_report *r, mlrt_finding *f, const char *name) {
  if (++f->num > MLRT_LISTED)
    return false;
  mlrt_report_say(r, "\n  %s: %.80s", f->what, name);
  return true;
}

void mlrt_report_more(mlrt_report *r, const mlrt_finding *f) {
  if (f->num > MLRT_LISTED)
    mlrt_report_say(r, "\n  %s: %d more", f->what, f->num - MLRT_LISTED);
}

bool mlrt_same_shape(const mlrt_st_tensor *x, const mlrt_tensor *t) {
  return x->rank == t->rank && !memcmp(x->dims, t->dims, (size_t)x->rank * sizeof x->dims[0]);
}

bool mlrt_same_type(const mlrt_st_tensor *x, const mlrt_tensor *t) {
  return !strcmp(x->dtype, mlrt_st_dtype(t->dtype)) && mlrt_same_shape(x, t);
}
