// replay_hoist.c: steps of a replay that run again, moved and left out.
//
//   steps     .. g  a b c x ..      x reads g and c; a b c run again for it, and the peak is in b
//   hoisted   .. a b c  g x ..      g is not live in b; c is while g is made
//   pruned    .. a c  g x ..        b of the run before is still live, or may be
//
// replay_make_steps makes a value again right before the step that reads it: nothing lives shorter. But
// where the way to it is wide (a copy with room around it, of two tensors put together) and its end is
// narrow, it is better gone before other operands of that step are made. Tried at the peak: of the run of steps
// around it that run again, what comes after the maker of a value that is live, or its part that begins or ends at
// the peak, or ends where little is live, to before that maker; of the largest values first. A move stays if the peak
// falls, or is first reached later on: what runs again several times in one way has as many peaks.

// Everything read must have been made before, and nothing may run again before it has run.
//
// A step that runs again may always be left out: who reads its values finds those of the time before,
// which live longer then. The dearest are tried first, many at a time as long as that goes.
#include <string.h>

#include "passes/plan_sort.h"
#include "passes/replay.h"

enum { MOST_VALUES = 16, MOST_TRIES = 400 }; // of one peak; in all

typedef struct hoist {
  replay *r;
  ir_arena *scratch;
  int *steps, *tried; // kernels
  bool *made;         // [kernel] has run
  size_t num, at;     // of steps; the peak
  int64_t peak;
  int64_t left; // tries
} hoist;

typedef struct run {
  size_t first, end; // steps
} run;

static int64_t find_peak(const hoist *h, const int *steps, size_t *at) {
  h->r->tried += (int64_t)h->num;
  return sched_weigh(h->r->s, steps, h->num, at);
}

// Whether what step t reads has been made.
static bool can_run(const hoist *h, int kernel) {
  const sched_kernel *k = &h->r->s->kernels[kernel];
  for (int i = 0; i < k->num_in; i++)
    if (k->in[i].value >= 0 && !h->made[h->r->s->values[k->in[i].value].kernel])
      return false;
  return true;
}

static bool is_valid(const hoist *h, const run *x, size_t to) {
  memset(h->made, 0, sizeof *h->made * (size_t)h->r->s->num_kernels);
  for (size_t t = 0; t < to; t++)
    h->made[h->steps[t]] = true;
  for (size_t t = x->first; t < x->end; t++)
    if (!h->made[h->steps[t]] || !can_run(h, h->steps[t]))
      return false;
  return true;
}

static bool try_move(hoist *h, const run *x, size_t to) {
  if (x->first >= x->end || h->left <= 0 || !is_valid(h, x, to))
    return false;
  size_t length = x->end - x->first, at;
  h->left--;
  memcpy(h->tried, h->steps, sizeof(int) * h->num);
  memcpy(h->tried + to, h->steps + x->first, sizeof(int) * length);
  memcpy(h->tried + to + length, h->steps + to, sizeof(int) * (x->first - to));
  int64_t peak = find_peak(h, h->tried, &at);
  if (peak > h->peak || (peak == h->peak && at <= h->at))
    return false;
  memcpy(h->steps, h->tried, sizeof(int) * h->num);
  h->peak = peak;
  h->at = at;
  return true;
}

// [step] whether its kernel has run before.
static const bool *find_again(const hoist *h) {
  bool *again = IR_NEW_ARRAY(h->scratch, bool, h->num + 1);
  memset(h->made, 0, sizeof *h->made * (size_t)h->r->s->num_kernels);
  for (size_t t = 0; t < h->num; t++) {
    again[t] = h->made[h->steps[t]];
    h->made[h->steps[t]] = true;
  }
  return again;
}

// Steps around the peak, or before it, that run again.
static run find_run(const hoist *h) {
  const bool *again = find_again(h);
  run x = {h->at, h->at};
  while (x.first > 0 && again[x.first - 1])
    x.first--;
  while (x.end < h->num && again[x.end])
    x.end++;
  return x;
}

// What is live at the peak and was made before.
static size_t find_held(const hoist *h, const sched_lives *l, plan_sized *held) {
  size_t num = 0;
  for (size_t i = 0; i < l->at.num; i++) {
    const sched_life *x = &l->at.at[i];
    if ((size_t)x->first < h->at && (size_t)x->last >= h->at)
      held[num++] = (plan_sized){x->bytes, (int)i};
  }
  plan_sort_sizes(held, num);
  return num < MOST_VALUES ? num : MOST_VALUES;
}

// The step of the run behind the peak, up to the one that reads the value, at which the fewest bytes are live: where the
// value is in nobody's way. The peak, if there is none.
static size_t find_quiet(const hoist *h, const run *x, int value, const int64_t *live) {
  size_t best = h->at;
  for (size_t t = h->at + 1; value >= 0 && t < x->end; t++) {
    if (best == h->at || live[t] < live[best])
      best = t;
    if (sched_reads(&h->r->s->kernels[h->steps[t]], value))
      break;
  }
  return best;
}

static bool move_once(hoist *h) {
  run x = find_run(h);
  if (x.first == x.end)
    return false;
  h->r->tried += (int64_t)h->num;
  sched_lives l = sched_find_lives(h->r->s, h->scratch, h->steps, h->num);
  int64_t *live = IR_NEW_ARRAY(h->scratch, int64_t, h->num + 1);
  sched_live_bytes(&l, h->num, live);
  plan_sized *held = IR_NEW_ARRAY(h->scratch, plan_sized, l.at.num + 1);
  size_t num = find_held(h, &l, held);
  for (size_t i = 0; i < num; i++) {
    const sched_life *life = &l.at.at[held[i].index];
    size_t to = (size_t)life->first, first = to < x.first ? x.first : to + 1;
    size_t quiet = find_quiet(h, &x, life->value, live);
    const run parts[] = {{first, x.end}, {first, h->at + 1}, {h->at, x.end}, {first, quiet}};
    for (size_t j = 0; j < sizeof parts / sizeof *parts; j++)
      if (try_move(h, &parts[j], to))
        return true;
  }
  return false;
}

static hoist begin(replay *r, ir_arena *scratch, const replay_steps *steps) {
  hoist h = {.r = r, .scratch = scratch, .steps = steps->at, .num = steps->num, .left = MOST_TRIES};
  h.tried = IR_NEW_ARRAY(scratch, int, h.num + 1);
  h.made = IR_NEW_ARRAY(scratch, bool, r->s->num_kernels + 1);
  h.peak = h.num ? find_peak(&h, h.steps, &h.at) : 0;
  return h;
}

int64_t replay_hoist(replay *r, int64_t budget, int64_t until, replay_steps *steps) {
  ir_arena *a = ir_arena_new();
  hoist h = begin(r, a, steps);
  bool moved = true;
  while (moved && h.peak > budget && r->tried < until) {
    ir_arena_mark here = ir_arena_here(a);
    moved = move_once(&h);
    ir_arena_back(a, here);
  }
  ir_arena_free(a);
  return h.peak;
}

// --- leaving out ---------------------------------------------------------------------------------
typedef struct pruner {
  hoist h;
  const plan_sized *order; // steps that run again, the dearest first
  bool *gone;              // [step]
  int64_t budget, until;
} pruner;

static bool fits_without(const pruner *p) {
  size_t left = 0;
  for (size_t t = 0; t < p->h.num; t++)
    if (!p->gone[t])
      p->h.tried[left++] = p->h.steps[t];
  p->h.r->tried += (int64_t)left;
  return sched_fits(p->h.r->s, p->h.tried, left, p->budget);
}

static void prune_range(pruner *p, size_t from, size_t to) {
  if (p->h.r->tried >= p->until)
    return;
  for (size_t i = from; i < to; i++)
    p->gone[p->order[i].index] = true;
  if (fits_without(p))
    return;
  for (size_t i = from; i < to; i++)
    p->gone[p->order[i].index] = false;
  if (to - from < 2)
    return;
  size_t middle = from + (to - from) / 2;
  prune_range(p, from, middle);
  prune_range(p, middle, to);
}

void replay_prune(replay *r, int64_t budget, int64_t until, replay_steps *steps) {
  ir_arena *a = ir_arena_new();
  pruner p = {.h = begin(r, a, steps), .budget = budget, .until = until};
  const bool *again = find_again(&p.h);
  plan_sized *order = IR_NEW_ARRAY(a, plan_sized, p.h.num + 1);
  size_t num = 0, left = 0;
  for (size_t t = 0; t < p.h.num; t++)
    if (again[t])
      order[num++] = (plan_sized){(int64_t)(r->again[p.h.steps[t]] * 1e12), (int)t};
  plan_sort_sizes(order, num);
  p.order = order;
  p.gone = IR_NEW_ARRAY(a, bool, p.h.num + 1);
  if (num && p.h.peak <= budget)
    prune_range(&p, 0, num);
  for (size_t t = 0; t < p.h.num; t++)
    if (!p.gone[t])
      steps->at[left++] = steps->at[t];
  steps->num = left;
  ir_arena_free(a);
}
