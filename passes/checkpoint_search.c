// checkpoint_search.c: policies that choose kernel by kernel.
#include "passes/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "passes/cost.h"

enum {
  CHEAP = 64
}; // FLOPs per byte made: norms, activations, casts, the products of narrow attention heads

static int64_t bytes_made(const sched *s, int k) {
  int64_t bytes = 0;
  for (int v = s->kernels[k].first_value; v < s->kernels[k].first_value + s->kernels[k].num_values;
       v++)
    bytes += s->values[v].bytes;
  return bytes;
}

typedef struct candidate {
  int kernel;
  double score; // least first
} candidate;

static int compare_candidates(const void *pa, const void *pb) {
  const candidate *a = pa, *b = pb;
  if (a->score != b->score)
    return a->score < b->score ? -1 : 1;
  return a->kernel - b->kernel;
}

void checkpoint_trim(const replay *r, int64_t bytes, bool *again) {
  ir_arena *a = ir_arena_new();
  size_t num = 0;
  candidate *c = IR_NEW_ARRAY(a, candidate, r->s->num_kernels + 1);
  for (int k = 0; k < r->s->num_kernels; k++)
    if (again[k])
      c[num++] = (candidate){k, -r->seconds[k]};
  qsort(c, num, sizeof *c, compare_candidates);
  for (size_t i = 0; i < num; i++) {
    again[c[i].kernel] = false;
    if (replay_try(r, again).live_bytes > bytes)
      again[c[i].kernel] = true;
  }
  ir_arena_free(a);
}

void checkpoint_selective(const replay *r, bool *again) {
  ir_arena *a = ir_arena_new();
  for (int k = 0; k <= r->forward; k++)
    again[k] =
        r->may_again[k] && cost_kernel(a, r->s->kernels[k].k).flops <= CHEAP * bytes_made(r->s, k);
  ir_arena_free(a);
  checkpoint_trim(r, replay_try(r, again).live_bytes, again);
}
bool checkpoint_auto(const replay *r, int64_t budget, bool *again) {
  checkpoint_sqrt(r, again);
  (void)budget;
  return true;
}
