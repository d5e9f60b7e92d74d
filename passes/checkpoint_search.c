// checkpoint_search.c: policies that choose kernel by kernel.
//
// `selective` lets run again what is cheap for the bytes it makes. `auto` begins with many choices that
// keep little (parts of the network, and what is cheap), and takes out of each what need not run
// again within the budget, the dearest for its bytes first: whole ranges while that goes, else
// their halves. What takes the least time wins, if its temporaries fit once they are really packed.
//
// The other way around, adding kernels one by one to a choice that keeps everything, was tried on
// paper and left: dropping one value alone often saves nothing, as what it is made from must be kept
// instead; what is kept together is only seen from the side where all is dropped.
#include "passes/checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/cost.h"

enum {
  CHEAP = 64,   // FLOPs per byte made: norms, activations, casts, the products of narrow heads
  SPLITS = 256, // a list of kernels is cut into no more pieces than this
  RETRIES = 8,  // of packing
};

static int64_t bytes_made(const sched *s, int k) {
  int64_t bytes = 0;
  for (int v = s->kernels[k].first_value; v < s->kernels[k].first_value + s->kernels[k].num_values;
       v++)
    bytes += s->values[v].bytes;
  return bytes;
}

// --- taking kernels out --------------------------------------------------------------------------
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

typedef struct trimmer {
  const replay *r;
  const candidate *at;
  size_t finest; // kernels that are taken out together or not at all
  int64_t bytes;
  bool *again;
} trimmer;

static void set_range(const trimmer *t, size_t from, size_t to, bool value) {
  for (size_t i = from; i < to; i++)
    t->again[t->at[i].kernel] = value;
}

static void trim_range(const trimmer *t, size_t from, size_t to) {
  set_range(t, from, to, false);
  if (replay_try(t->r, t->again).live_bytes <= t->bytes)
    return;
  set_range(t, from, to, true);
  if (to - from <= t->finest)
    return;
  size_t middle = from + (to - from) / 2;
  trim_range(t, from, middle);
  trim_range(t, middle, to);
}

void checkpoint_trim(const replay *r, int64_t bytes, bool *again) {
  ir_arena *a = ir_arena_new();
  size_t num = 0;
  candidate *c = IR_NEW_ARRAY(a, candidate, r->s->num_kernels + 1);
  for (int k = 0; k < r->s->num_kernels; k++)
    if (again[k])
      c[num++] = (candidate){k, -r->seconds[k] / (double)(bytes_made(r->s, k) + 1)};
  qsort(c, num, sizeof *c, compare_candidates);
  trimmer t = {r, c, (num + SPLITS - 1) / SPLITS, bytes, again};
  if (num)
    trim_range(&t, 0, num);
  ir_arena_free(a);
}

// --- selective -----------------------------------------------------------------------------------
static void add_cheap(const replay *r, bool *again) {
  ir_arena *a = ir_arena_new();
  for (int k = 0; k <= r->forward; k++)
    again[k] |=
        r->may_again[k] && cost_kernel(a, r->s->kernels[k].k).flops <= CHEAP * bytes_made(r->s, k);
  ir_arena_free(a);
}

void checkpoint_selective(const replay *r, bool *again) {
  add_cheap(r, again);
  checkpoint_trim(r, replay_try(r, again).live_bytes, again);
}

// --- auto ----------------------------------------------------------------------------------------
typedef struct search {
  const replay *r;
  int64_t target; // live bytes
  bool *x, *best; // the choice at hand; the fastest that meets the target
  bool *least;    // the one with the fewest live bytes
  replay_outcome best_outcome, least_outcome;
  bool found;
} search;

static void keep(bool *to, const search *s) {
  memcpy(to, s->x, sizeof(bool) * (size_t)s->r->s->num_kernels);
}

// Weighs the choice in x, and what is left of it when all that need not run again is taken out.
static void weigh(search *s) {
  replay_outcome o = replay_try(s->r, s->x);
  if (o.live_bytes < s->least_outcome.live_bytes) {
    s->least_outcome = o;
    keep(s->least, s);
  }
  if (o.live_bytes > s->target)
    return;
  checkpoint_trim(s->r, s->target, s->x);
  o = replay_try(s->r, s->x);
  if (s->found && o.seconds >= s->best_outcome.seconds)
    return;
  s->found = true;
  s->best_outcome = o;
  keep(s->best, s);
}

// Numbers of parts 2, 3, 4, 6, 8, 12, ...
static void weigh_all(search *s) {
  size_t n = (size_t)s->r->s->num_kernels;
  memset(s->x, 0, n);
  weigh(s);
  if (s->found) // everything can be kept
    return;
  memset(s->x, 0, n);
  add_cheap(s->r, s->x);
  weigh(s);
  checkpoint_all(s->r, s->x);
  weigh(s);
  int places = checkpoint_num_places(s->r);
  for (int parts = 2; parts <= places; parts = parts * 3 / 2 + (parts == 2 ? 0 : parts & 1)) {
    checkpoint_parts(s->r, parts, s->x);
    weigh(s);
  }
}

bool checkpoint_auto(const replay *r, int64_t budget, bool *again) {
  size_t n = (size_t)r->s->num_kernels;
  search s = {.r = r, .target = budget};
  s.x = IR_NEW_ARRAY(r->arena, bool, n + 1);
  s.best = IR_NEW_ARRAY(r->arena, bool, n + 1);
  s.least = IR_NEW_ARRAY(r->arena, bool, n + 1);
  s.least_outcome.live_bytes = INT64_MAX;
  for (int i = 0; i < RETRIES; i++) {
    s.found = false;
    weigh_all(&s);
    memcpy(again, s.found ? s.best : s.least, n);
    replay_steps steps = replay_make_steps(r, r->arena, again);
    int64_t bytes = replay_arena_bytes(r, &steps);
    if (!s.found || bytes <= budget)
      return s.found;
    s.target -= bytes - budget; // what packing adds
  }
  return false;
}
