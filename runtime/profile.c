// profile.c: see profile.h.
#include "runtime/profile.h"
#include "runtime/files.h"
#include "runtime/trainer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_EVENTS = 1 << 17 };

static const char *const names[MLRT_NUM_PHASES] = {"data", "step", "eval", "save", "log"};

bool mlrt_profile_open(mlrt_profile *p, const char *path, mlrt_error *e) {
  *p = (mlrt_profile){.path = path, .opened = mlrt_seconds()};
  if (!path)
    return true;
  if (!mlrt_may_be_written(path)) // now, not after hours of training
    return mlrt_error_set(e, "cannot write the profile '%s': %s", path, strerror(errno));
  if (mlrt_has_other_text(path, "{\"version\":"))
    return mlrt_error_other_file(e, path, "profile, which begins with '{\"version\":'",
                                 "--profile");
  p->events = calloc(MAX_EVENTS, sizeof *p->events);
  return p->events || mlrt_error_memory(e, "out of memory");
}

double mlrt_profile_begin(const mlrt_profile *p) {
  return p->path ? mlrt_seconds() : 0;
}

void mlrt_profile_end(mlrt_profile *p, mlrt_phase phase, double begun) {
  if (!p->path)
    return;
  double duration = mlrt_seconds() - begun;
  p->total[phase] += duration;
  p->count[phase]++;
  if (duration > p->longest[phase])
    p->longest[phase] = duration;
  if (p->num_events == MAX_EVENTS) {
    p->dropped++;
    return;
  }
  p->events[p->num_events++] = (mlrt_event){(float)duration, (int)phase, begun - p->opened};
}

static void write_totals(const mlrt_profile *p, FILE *f) {
  double wall = mlrt_seconds() - p->opened;
  fprintf(f, "{\"version\":1,\"seconds\":%.6f,\"phases\":{", wall);
  for (int i = 0; i < MLRT_NUM_PHASES; i++)
    fprintf(f,
            "%s\n\"%s\":{\"count\":%" PRId64 ",\"seconds\":%.6f,\"mean_us\":%.3f,\"max_us\":%.3f}",
            i ? "," : "", names[i], p->count[i], p->total[i],
            p->count[i] ? p->total[i] / (double)p->count[i] * 1e6 : 0, p->longest[i] * 1e6);
  fprintf(f, "},\n\"dropped_events\":%" PRId64 ",\n\"traceEvents\":[", p->dropped);
}

bool mlrt_profile_close(mlrt_profile *p, mlrt_error *e) {
  if (!p->path)
    return true;
  FILE *f = mlrt_open_output(p->path);
  if (f) {
    write_totals(p, f);
    for (int64_t i = 0; i < p->num_events; i++) {
      const mlrt_event *v = &p->events[i];
      fprintf(f, "%s\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f}",
              i ? "," : "", names[v->phase], v->start * 1e6, (double)v->duration * 1e6);
    }
    fprintf(f, "\n]}\n");
  }
  free(p->events);
  p->events = NULL;
  if (!f || ferror(f) | fclose(f))
    return mlrt_error_set(e, "cannot write the profile '%s': %s", p->path, strerror(errno));
  return true;
}
