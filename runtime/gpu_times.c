// gpu_times.c: see gpu_times.h.
#include "runtime/gpu_times.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/times_file.h"

gpu_times *gpu_times_open(const mlrt_gpu *g, const char *path) {
  if (!path)
    return NULL;
  mlrt_times_check(path);
  gpu_times *t = calloc(1, sizeof *t);
  for (int i = 0; t && i < MLRT_NUM_FUNCS; i++)
    t->sums[i] = calloc((size_t)g->program->gpu->num_entries + 1, sizeof *t->sums[i]);
  for (int i = 0; i < MLRT_NUM_FUNCS; i++)
    if (!t || !t->sums[i])
      mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  t->path = path;
  return t;
}

// --- marks

static void make_events(mlrt_gpu *g, gpu_line *l) {
  gpu_mark *more = realloc(l->marks, (size_t)l->wanted * sizeof *more);
  if (!more)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  l->marks = more;
  for (; l->made < l->wanted; l->made++)
    GPU_DO(&g->driver, cuEventCreate, &l->marks[l->made].event, GPU_EVENT_WITH_TIME);
}

void gpu_times_begin(mlrt_gpu *g, int func, int slot) {
  if (!g->times)
    return;
  gpu_line *l = g->times->now = &g->times->lines[func][slot];
  l->used = l->wanted = 0;
  gpu_times_mark(g, -1);
}

void gpu_times_mark(mlrt_gpu *g, int entry) {
  gpu_line *l = g->times ? g->times->now : NULL;
  if (!l || l->wanted++ >= l->made)
    return;
  gpu_mark *m = &l->marks[l->used++];
  m->entry = entry;
  GPU_DO(&g->driver, cuEventRecordWithFlags, m->event, g->compute,
         g->use_graphs ? GPU_EVENT_IN_GRAPH : 0);
}

bool gpu_times_end(mlrt_gpu *g) {
  gpu_line *l = g->times ? g->times->now : NULL;
  if (!l)
    return true;
  g->times->now = NULL;
  bool complete = l->used == l->wanted;
  if (!complete)
    make_events(g, l);
  return complete;
}

// --- times

static void add(gpu_sum *s, double ms) {
  s->least = s->launches == 0 || ms < s->least ? ms : s->least;
  s->total += ms;
  s->launches++;
}

// The first run of a line is not counted: code and data are not where they will be.
void gpu_times_take(mlrt_gpu *g, int func, int slot) {
  gpu_times *t = g->times;
  gpu_line *l = t ? &t->lines[func][slot] : NULL;
  if (!l || l->runs++ < 2) // nothing has run; the first run
    return;
  gpu_wait_event(g, g->slot[slot].done, mlrt_func_name(func));
  for (int i = 1; i < l->used; i++) {
    float ms = 0;
    GPU_DO(&g->driver, cuEventElapsedTime, &ms, l->marks[i - 1].event, l->marks[i].event);
    if (l->marks[i].entry >= 0)
      add(&t->sums[func][l->marks[i].entry], (double)ms);
  }
  t->runs[func]++;
}

// --- the file

static void put_kernel(FILE *f, const mlrt_gpu_entry *e, const gpu_sum *s, bool first) {
  fputs(first ? "\n{" : ",\n{", f);
  mlrt_times_kernel(f, e->symbol, e->ops, e->where, s->launches, s->total * 1e-3);
  fprintf(f, ",\"min_us\":%.3f}", s->least * 1e3);
}

static void put_func(FILE *f, const mlrt_gpu *g, int func) {
  const gpu_sum *sums = g->times->sums[func];
  bool first = true;
  fprintf(f, "{\"name\":\"%s\",\"runs\":%" PRId64 ",\"kernels\":[", mlrt_func_name(func),
          g->times->runs[func]);
  for (int i = 0; i < g->program->gpu->num_entries; i++) {
    if (!sums[i].launches)
      continue;
    put_kernel(f, &g->program->gpu->entries[i], &sums[i], first);
    first = false;
  }
  fputs("]}", f);
}

static void write_all(const mlrt_gpu *g) {
  FILE *f = mlrt_times_begin(g->times->path);
  fputs("{\"version\":1,", f);
  mlrt_times_text(f, "device", g->label);
  fprintf(f, ",\"cuda_graph\":%s,\"functions\":[", g->use_graphs ? "true" : "false");
  bool first = true;
  for (int i = 0; i < MLRT_NUM_FUNCS; i++) {
    if (!g->times->runs[i])
      continue;
    fputs(first ? "\n" : ",\n", f);
    put_func(f, g, i);
    first = false;
  }
  fputs("]}\n", f);
  mlrt_times_finish(f, g->times->path);
}

static void free_line(mlrt_gpu *g, gpu_line *l) {
  for (int i = 0; i < l->made; i++)
    GPU_DO(&g->driver, cuEventDestroy_v2, l->marks[i].event);
  free(l->marks);
}

void gpu_times_close(mlrt_gpu *g) {
  gpu_times *t = g->times;
  if (!t)
    return;
  for (int func = 0; func < MLRT_NUM_FUNCS; func++)
    for (int slot = 0; slot < GPU_SLOTS; slot++)
      gpu_times_take(g, func, slot);
  write_all(g);
  for (int func = 0; func < MLRT_NUM_FUNCS; func++) {
    for (int slot = 0; slot < GPU_SLOTS; slot++)
      free_line(g, &t->lines[func][slot]);
    free(t->sums[func]);
  }
  free(t);
  g->times = NULL;
}
