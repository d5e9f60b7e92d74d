// gpu_results.c: scalar results on their way to the host.
//
// Losses and metrics of a function lie here and there among the temporaries. Those that are close
// to each other go in one copy, with what is between them: a copy of some hundred bytes takes no
// longer than one of four, and each costs a step two microseconds.
#include "runtime/gpu.h"
#include "runtime/number_io.h"

#include <stdlib.h>

enum { CLOSE_BYTES = 1024, ALIGN = 64 };

static bool is_scalar(const mlrt_result *r) {
  return r->kind != MLRT_OUTPUT;
}

static int by_place(const void *a, const void *b) {
  const gpu_span *x = a, *y = b;
  return x->from < y->from ? -1 : x->from > y->from;
}

// Joins what is close; gives each span its place. Returns the bytes of all.
static int64_t join(gpu_results *x) {
  int last = -1;
  int64_t at = 0;
  for (int i = 0; i < x->num_spans; i++) {
    if (last >= 0 && x->spans[i].from - x->spans[last].to <= CLOSE_BYTES) {
      if (x->spans[i].to > x->spans[last].to)
        x->spans[last].to = x->spans[i].to;
    } else
      x->spans[++last] = x->spans[i];
  }
  x->num_spans = last + 1;
  for (int i = 0; i < x->num_spans; i++) {
    x->spans[i].at = at;
    at += (x->spans[i].to - x->spans[i].from + ALIGN - 1) / ALIGN * ALIGN;
  }
  return at;
}

static int64_t plan_function(gpu_results *x, const mlrt_func *f) {
  x->spans = calloc((size_t)f->num_results + 1, sizeof *x->spans);
  if (!x->spans)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  for (int i = 0; i < f->num_results; i++) {
    const mlrt_result *r = &f->results[i];
    if (is_scalar(r))
      x->spans[x->num_spans++] = (gpu_span){r->offset, r->offset + mlrt_dtype_bytes(r->dtype), 0};
  }
  qsort(x->spans, (size_t)x->num_spans, sizeof *x->spans, by_place);
  return join(x);
}

void gpu_plan_results(mlrt_gpu *g) {
  int64_t most = 0;
  for (int i = 0; i < MLRT_NUM_FUNCS; i++) {
    int64_t bytes = plan_function(&g->results[i], &g->program->funcs[i]);
    most = bytes > most ? bytes : most;
  }
  g->host.result_bytes = most;
}

void gpu_free_results(mlrt_gpu *g) {
  for (int i = 0; i < MLRT_NUM_FUNCS; i++)
    free(g->results[i].spans);
}

static char *results_of(const mlrt_gpu *g, int slot) {
  return g->host.base + g->host.results_at + slot * g->host.result_bytes;
}

void gpu_send_results(mlrt_gpu *g, int func, int slot) {
  const gpu_results *x = &g->results[func];
  for (int i = 0; i < x->num_spans; i++) {
    const gpu_span *s = &x->spans[i];
    GPU_DO(&g->driver, cuMemcpyDtoHAsync_v2, results_of(g, slot) + s->at,
           g->arena + (CUdeviceptr)s->from, (size_t)(s->to - s->from), g->compute);
  }
}

const char *gpu_find_result(const mlrt_gpu *g, int slot, const mlrt_result *r) {
  const gpu_results *x = &g->results[g->slot[slot].func];
  for (int i = 0; i < x->num_spans; i++)
    if (x->spans[i].from <= r->offset && r->offset < x->spans[i].to)
      return results_of(g, slot) + x->spans[i].at + (r->offset - x->spans[i].from);
  mlrt_fail(MLRT_EXIT_INTERNAL, "'%s' is no result of the function that ran", r->name);
}
