// checkpoint_search.c: policies that choose value by value.
//
// `selective` drops what is cheap for the bytes it takes. `auto` begins with many choices that keep
// little (parts of the network, and what is cheap), and keeps of each what need not be dropped
// within the budget, the dearest for its bytes first: whole ranges while that goes, else their
// halves. What takes the least time wins, if its temporaries fit once they are really packed.
//
// The other way around, dropping values one by one, was left: dropping one alone often saves
// nothing, as what it is made from must be kept instead; what can be dropped together is only seen
// from the side where all is dropped.
#include "passes/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "passes/cost.h"

enum {
  CHEAP = 64,   // FLOPs per byte made: norms, activations, casts, the products of narrow heads
  SPLITS = 256, // a list of values is cut into no more pieces than this
  RETRIES = 4,  // of packing
};

static int64_t bytes_made(const sched *s, int k) {
  int64_t bytes = 0;
  for (int v = s->kernels[k].first_value; v < s->kernels[k].first_value + s->kernels[k].num_values;
       v++)
    bytes += s->values[v].bytes;
  return bytes;
}

// --- keeping what need not be dropped ------------------------------------------------------------
typedef struct candidate {
  int value;
  double score; // least first
} candidate;

static int compare_candidates(const void *pa, const void *pb) {
  const candidate *a = pa, *b = pb;
  if (a->score != b->score)
    return a->score < b->score ? -1 : 1;
  return a->value - b->value;
}

typedef struct trimmer {
  const replay *r;
  const candidate *at;
  size_t finest; // so many values are kept together or not at all
  int64_t bytes;
  bool *drop;
} trimmer;

static void set_range(const trimmer *t, size_t from, size_t to, bool dropped) {
  for (size_t i = from; i < to; i++)
    t->drop[t->at[i].value] = dropped;
}

static void trim_range(const trimmer *t, size_t from, size_t to) {
  set_range(t, from, to, false);
  if (replay_try(t->r, t->drop).live_bytes <= t->bytes)
    return;
  set_range(t, from, to, true);
  if (to - from <= t->finest)
    return;
  size_t middle = from + (to - from) / 2;
  trim_range(t, from, middle);
  trim_range(t, middle, to);
}

void checkpoint_trim(const replay *r, int64_t bytes, bool *drop) {
  ir_arena *a = ir_arena_new();
  size_t num = 0;
  candidate *c = IR_NEW_ARRAY(a, candidate, r->s->num_values + 1);
  for (int v = 0; v < r->s->num_values; v++)
    if (drop[v]) {
      int k = r->s->values[v].kernel;
      c[num++] = (candidate){v, -r->seconds[k] / (double)(bytes_made(r->s, k) + 1)};
    }
  qsort(c, num, sizeof *c, compare_candidates);
  trimmer t = {r, c, (num + SPLITS - 1) / SPLITS, bytes, drop};
  if (num)
    trim_range(&t, 0, num);
  ir_arena_free(a);
}

// --- selective -----------------------------------------------------------------------------------
static void drop_cheap(const replay *r, bool *drop) {
  ir_arena *a = ir_arena_new();
  for (int k = 0; k <= r->forward; k++) {
    const sched_kernel *x = &r->s->kernels[k];
    bool cheap = cost_kernel(a, x->k).flops <= CHEAP * bytes_made(r->s, k);
    for (int v = x->first_value; v < x->first_value + x->num_values; v++)
      drop[v] = cheap;
  }
  ir_arena_free(a);
}

void checkpoint_selective(const replay *r, bool *drop) {
  drop_cheap(r, drop);
  checkpoint_trim(r, replay_try(r, drop).live_bytes, drop);
}

// --- auto ----------------------------------------------------------------------------------------
typedef struct search {
  const replay *r;
  ir_arena *arena;
  int64_t budget;
  bool *start, *x;    // the choice at hand, as it began and as it is
  bool *best, *least; // the fastest within the budget; the one that takes the fewest bytes
  replay_outcome best_outcome, least_outcome;
  bool found;
} search;

static void copy_choice(const search *s, bool *to, const bool *from) {
  memcpy(to, from, sizeof(bool) * (size_t)s->r->s->num_values);
}

static int64_t packed_bytes(const search *s) {
  replay_steps steps = replay_make_steps(s->r, s->arena, s->x);
  return replay_arena_bytes(s->r, &steps);
}

// Keeps in x what need not be dropped. Where packing adds to the live bytes, they must be fewer.
static bool trim_to_budget(search *s) {
  int64_t target = s->budget;
  for (int i = 0; i < RETRIES && target > 0; i++) {
    copy_choice(s, s->x, s->start);
    checkpoint_trim(s->r, target, s->x);
    replay_outcome o = replay_try(s->r, s->x);
    if (o.live_bytes > target || (s->found && o.seconds >= s->best_outcome.seconds))
      return false;
    int64_t over = packed_bytes(s) - s->budget;
    if (over <= 0)
      return true;
    target -= over;
  }
  return false;
}

static void weigh(search *s) {
  replay_outcome o = replay_try(s->r, s->start);
  if (o.live_bytes < s->least_outcome.live_bytes) {
    s->least_outcome = o;
    copy_choice(s, s->least, s->start);
  }
  if (o.live_bytes > s->budget || !trim_to_budget(s))
    return;
  s->found = true;
  s->best_outcome = replay_try(s->r, s->x);
  copy_choice(s, s->best, s->x);
}

static void weigh_all(search *s) {
  weigh(s); // nothing is dropped
  if (s->found)
    return;
  drop_cheap(s->r, s->start);
  weigh(s);
  checkpoint_all(s->r, s->start);
  weigh(s);
  int places = checkpoint_num_places(s->r);
  for (int parts = 1; parts <= places; parts += 1 + parts / 4)
    for (int last = 0; last < 2; last++) {
      checkpoint_parts(s->r, parts, last, s->start);
      weigh(s);
    }
}

bool checkpoint_auto(const replay *r, int64_t budget, bool *drop) {
  size_t n = (size_t)r->s->num_values + 1;
  search s = {.r = r, .arena = r->arena, .budget = budget};
  s.start = IR_NEW_ARRAY(r->arena, bool, n);
  s.x = IR_NEW_ARRAY(r->arena, bool, n);
  s.best = IR_NEW_ARRAY(r->arena, bool, n);
  s.least = IR_NEW_ARRAY(r->arena, bool, n);
  s.least_outcome.live_bytes = INT64_MAX;
  weigh_all(&s);
  copy_choice(&s, drop, s.found ? s.best : s.least);
  return s.found;
}
