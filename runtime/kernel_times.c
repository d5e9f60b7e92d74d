// kernel_times.c: see kernel_times.h.
//
// Generated code names a kernel by the function of its phase; a table of addresses says whose that is. The first run
// of each function is not counted: code and data are not where they will be.
#include "runtime/kernel_times.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/times_file.h"
#include "runtime/trainer.h"

enum { LINE = 128 };

typedef struct share { // of a kernel in a thread's time
  int64_t launches, calls;
  double seconds, waited; // waited: before it
} share;

typedef struct place {
  mlrt_phase_fn fast; // NULL: free
  int kernel, phase;
} place;

struct mlrt_watch { // other threads' watches are on other lines
  _Alignas(LINE) const mlrt_kernel_times *times;
  share *shares;   // by kernel, of the function that runs
  const place *at; // what runs
  double since;    // when the function began or the last kernel ended, then when this one began
};

typedef struct func_times {
  share *shares; // [thread][kernel]; NULL: it has not run
  int64_t runs;
  double seconds, begun, ending; // ending: behind a thread's last kernel, of all threads together
} func_times;

struct mlrt_kernel_times {
  const mlrt_program *program;
  const char *path;
  place *places; // open addressing
  size_t num_places;
  int threads, func; // of the run that is under way
  mlrt_watch **watches;
  func_times funcs[MLRT_NUM_FUNCS];
};

static void *zeroed(size_t num, size_t bytes) {
  void *p = calloc(num + 1, bytes);
  if (!p)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  return p;
}

// --- which kernel a function is

// Its place, or the free one where it would be.
static place *find_place(const mlrt_kernel_times *t, mlrt_phase_fn fast) {
  size_t at = (size_t)(((uintptr_t)fast >> 4) * 0x9e3779b97f4a7c15u);
  for (;; at++) {
    place *p = &t->places[at & (t->num_places - 1)];
    if (!p->fast || p->fast == fast)
      return p;
  }
}

static void fill_places(mlrt_kernel_times *t) {
  const mlrt_program *p = t->program;
  size_t phases = 0;
  for (int i = 0; i < p->num_kernels; i++)
    phases += (size_t)p->kernels[i].num_phases;
  for (t->num_places = 16; t->num_places < 4 * phases;)
    t->num_places *= 2;
  t->places = zeroed(t->num_places, sizeof *t->places);
  for (int i = 0; i < p->num_kernels; i++)
    for (int j = 0; j < p->kernels[i].num_phases; j++)
      *find_place(t, p->kernels[i].phases[j].fast) = (place){p->kernels[i].phases[j].fast, i, j};
}

// --- while it runs

void mlrt_watch_begin(mlrt_watch *w, mlrt_phase_fn fast) {
  w->at = find_place(w->times, fast);
  double now = mlrt_seconds();
  w->shares[w->at->kernel].waited += now - w->since;
  w->since = now;
}

void mlrt_watch_end(mlrt_watch *w, int calls) {
  share *s = &w->shares[w->at->kernel];
  double now = mlrt_seconds();
  s->seconds += now - w->since;
  s->launches += w->at->phase == 0;
  s->calls += w->at->phase == 0 ? calls : 0;
  w->since = now;
}

static void make_watches(mlrt_kernel_times *t, mlrt_team *team) {
  t->threads = mlrt_team_size(team);
  t->watches = zeroed((size_t)t->threads, sizeof *t->watches);
  for (int i = 0; i < t->threads; i++)
    if (!(t->watches[i] = aligned_alloc(LINE, sizeof(mlrt_watch))))
      mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  mlrt_team_watched(team, t->watches);
}

void mlrt_kernel_times_begin(mlrt_kernel_times *t, mlrt_team *team, int func) {
  if (!t)
    return;
  if (!t->watches)
    make_watches(t, team);
  size_t kernels = (size_t)t->program->num_kernels;
  func_times *f = &t->funcs[func];
  if (!f->shares)
    f->shares = zeroed((size_t)t->threads * kernels, sizeof *f->shares);
  t->func = func;
  f->begun = mlrt_seconds();
  for (int i = 0; i < t->threads; i++)
    *t->watches[i] =
        (mlrt_watch){.times = t, .shares = f->shares + (size_t)i * kernels, .since = f->begun};
}

void mlrt_kernel_times_end(mlrt_kernel_times *t) {
  if (!t)
    return;
  func_times *f = &t->funcs[t->func];
  double now = mlrt_seconds();
  f->seconds += now - f->begun;
  for (int i = 0; i < t->threads; i++)
    f->ending += now - t->watches[i]->since;
  if (f->runs++ > 0)
    return;
  f->seconds = f->ending = 0;
  memset(f->shares, 0, (size_t)t->threads * (size_t)t->program->num_kernels * sizeof *f->shares);
}

// --- the file

static void put_kernel(FILE *f, const mlrt_kernel_times *t, const share *shares, int kernel) {
  const mlrt_kernel *k = &t->program->kernels[kernel];
  double seconds = 0, slowest = 0, waited = 0;
  for (int i = 0; i < t->threads; i++) {
    const share *s = &shares[i * t->program->num_kernels + kernel];
    seconds += s->seconds / t->threads;
    waited += s->waited / t->threads;
    slowest = s->seconds > slowest ? s->seconds : slowest;
  }
  const share *first = &shares[kernel];
  double calls = (double)first->calls / (double)first->launches;
  mlrt_times_kernel(f, k->name, k->ops, k->where, first->launches, seconds);
  fprintf(f, ",\"slowest_us\":%.3f,\"waiting_us\":%.3f,\"flops\":%.0f,\"bytes\":%.0f",
          slowest * 1e6, waited * 1e6, calls * (double)k->flops, calls * (double)k->bytes);
}

static void put_func(FILE *f, const mlrt_kernel_times *t, int func) {
  const func_times *x = &t->funcs[func];
  fprintf(
      f, "{\"name\":\"%s\",\"runs\":%" PRId64 ",\"total_us\":%.3f,\"ending_us\":%.3f,\"kernels\":[",
      mlrt_func_name(func), x->runs - 1, x->seconds * 1e6, x->ending / t->threads * 1e6);
  const char *before = "\n{";
  for (int i = 0; i < t->program->num_kernels; i++) {
    if (!x->shares[i].launches)
      continue;
    fputs(before, f);
    put_kernel(f, t, x->shares, i);
    fputc('}', f);
    before = ",\n{";
  }
  fputs("]}", f);
}

mlrt_kernel_times *mlrt_kernel_times_open(const mlrt_program *p, const char *path) {
  if (!path)
    return NULL;
  mlrt_times_check(path);
  mlrt_kernel_times *t = zeroed(1, sizeof *t);
  t->program = p;
  t->path = path;
  fill_places(t);
  return t;
}

void mlrt_kernel_times_close(mlrt_kernel_times *t) {
  if (!t)
    return;
  FILE *f = mlrt_times_begin(t->path);
  fprintf(f, "{\"version\":1,\"device\":\"cpu\",\"threads\":%d,\"functions\":[", t->threads);
  const char *before = "\n";
  for (int i = 0; i < MLRT_NUM_FUNCS; i++) {
    if (t->funcs[i].runs < 2)
      continue;
    fputs(before, f);
    put_func(f, t, i);
    before = ",\n";
  }
  fputs("]}\n", f);
  mlrt_times_finish(f, t->path);
  for (int i = 0; i < MLRT_NUM_FUNCS; i++)
    free(t->funcs[i].shares);
  for (int i = 0; i < t->threads; i++)
    free(t->watches[i]);
  free(t->watches);
  free(t->places);
  free(t);
}
