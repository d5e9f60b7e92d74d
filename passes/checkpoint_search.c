// checkpoint_search.c: policies that choose value by value.
//
// `selective` drops what is cheap for the bytes it takes. `auto` begins with many choices that keep
// little (parts of the network, and what is cheap), and keeps of each what need not be dropped
// within the budget, the dearest for its bytes first: whole ranges while that goes, else their
// halves. What takes the least time wins, if its temporaries fit once they are really packed.
//
// Where the forward pass is a chain of stages, the sequence of checkpoint_chain.c is weighed against that. Where
// neither fits, steps that run again are moved forwards (replay_hoist.c), for all choices from the beginning.
//
// The other way around, dropping values one by one, was left: dropping one alone often saves
// nothing, as what it is made from must be kept instead; what can be dropped together is only seen
// from the side where all is dropped.
#include "passes/checkpoint.h"

#include <stdlib.h>
#include <string.h>

enum {
  SPLITS = 256,            // a list of values is cut into no more pieces than this,
  SPLITS_OF_ALL = 1 << 19, // nor than there are kernels in so many,
  LEAST_SPLITS = 64,       // but into so many always
  RETRIES = 4,             // of packing
  WORK = 1 << 21,
  WORK_BY_KERNEL = 128, // steps that auto goes over
  SHAKES = 16,
  HOIST_WORK = 1 << 23,
  HOIST_TRIES = 6,
  PRUNE_WORK = 1 << 21,
  SQUEEZE_WORK = 1 << 24, // to make a choice smaller
};

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
  replay *r;
  const candidate *at;
  size_t finest; // so many values are kept together or not at all
  int64_t bytes;
  int64_t until; // steps are hoisted while r->tried is less; 0: they are not
  unsigned char *drop, *was;
} trimmer;

static bool fits(const trimmer *t) {
  if (!t->until)
    return replay_fits(t->r, t->drop, t->bytes);
  ir_arena *a = ir_arena_new();
  replay_steps steps = replay_make_steps(t->r, a, t->drop);
  bool fits = steps.num && replay_hoist(t->r, t->bytes, t->until, &steps) <= t->bytes;
  ir_arena_free(a);
  return fits;
}

// Values that are dropped more than `most` are dropped only so much; how they were goes to `was`.
static void limit_range(const trimmer *t, size_t from, size_t to, unsigned char most) {
  for (size_t i = from; i < to; i++) {
    unsigned char *drop = &t->drop[t->at[i].value];
    t->was[i] = *drop;
    *drop = *drop < most ? *drop : most;
  }
}

static void trim_range(const trimmer *t, size_t from, size_t to, unsigned char most) {
  limit_range(t, from, to, most);
  if (fits(t))
    return;
  for (size_t i = from; i < to; i++)
    t->drop[t->at[i].value] = t->was[i];
  if (to - from <= t->finest)
    return;
  size_t middle = from + (to - from) / 2;
  trim_range(t, from, middle, most);
  trim_range(t, middle, to, most);
}

// 0.5 .. 1.5, by seed and kernel (a mixing function of Murmur's kind).
static double shake(uint32_t seed, uint32_t kernel) {
  uint32_t x = seed * 0x9e3779b9u ^ kernel * 0x85ebca6bu;
  x = (x ^ x >> 15) * 0xc2b2ae35u;
  return seed ? 0.5 + (double)((x ^ x >> 13) & 0xffff) / 65536 : 1;
}

// Each piece is tried alone and with its neighbours, and each try goes over all kernels.
static size_t most_splits(const replay *r) {
  int64_t splits = SPLITS_OF_ALL / (r->s->num_kernels + 1);
  return splits < LEAST_SPLITS ? LEAST_SPLITS : splits > SPLITS ? SPLITS : (size_t)splits;
}

static void trim(replay *r, int64_t bytes, uint32_t seed, int64_t until, unsigned char *drop) {
  ir_arena *a = ir_arena_new();
  size_t num = 0, splits = most_splits(r);
  candidate *c = IR_NEW_ARRAY(a, candidate, r->s->num_values + 1);
  for (int v = 0; v < r->s->num_values; v++)
    if (drop[v]) {
      int k = r->s->values[v].kernel;
      double score = r->again[k] / (double)(sched_bytes_made(r->s, k) + 1);
      c[num++] = (candidate){v, -score * shake(seed, (uint32_t)k)};
    }
  qsort(c, num, sizeof *c, compare_candidates);
  trimmer t = {.r = r, .at = c, .finest = (num + splits - 1) / splits, .bytes = bytes};
  t.until = until;
  t.drop = drop;
  t.was = IR_NEW_ARRAY(a, unsigned char, num + 1);
  bool always = false;
  for (size_t i = 0; i < num; i++)
    always |= drop[c[i].value] == REPLAY_DROP_ALWAYS;
  if (num)
    trim_range(&t, 0, num, REPLAY_KEEP);
  if (always)
    trim_range(&t, 0, num, REPLAY_DROP);
  ir_arena_free(a);
}

// Keeps what need not be dropped for at most `bytes` to be live, the dearest for its bytes first.
// seed: 0, or a number that changes the order somewhat.
static void trim_wholly(replay *r, int64_t bytes, uint32_t seed, unsigned char *drop) {
  trim(r, bytes, seed, 0, drop);
}

// --- selective -----------------------------------------------------------------------------------
void checkpoint_selective(replay *r, unsigned char *drop) {
  checkpoint_cheap(r, CHECKPOINT_DROP_STREAMS, drop);
  int64_t without = replay_try(r, drop).live_bytes;
  checkpoint_cheap(r, CHECKPOINT_KEEP_STREAMS, drop);
  int64_t with = replay_try(r, drop).live_bytes;
  if (without < with)
    checkpoint_cheap(r, CHECKPOINT_DROP_STREAMS, drop);
  trim_wholly(r, without < with ? without : with, 0, drop);
}

// --- auto ----------------------------------------------------------------------------------------
typedef struct search {
  replay *r;
  ir_arena *arena;
  checkpoint_starts *starts;
  int64_t budget;
  unsigned char *start, *x;         // the choice at hand, as it began and as it is
  unsigned char *best, *best_start; // the fastest within the budget, and what it was trimmed from
  unsigned char *least;             // the one that takes the fewest bytes
  replay_outcome best_outcome, least_outcome;
  replay_steps hoisted; // where no choice fits as it stands; none: one does
  int64_t work;         // it ends when r->tried is this
  bool found;
} search;

static void copy_choice(const search *s, unsigned char *to, const unsigned char *from) {
  memcpy(to, from, (size_t)s->r->s->num_values);
}

static int64_t packed_bytes(const search *s, const unsigned char *choice) {
  replay_steps steps = replay_make_steps(s->r, s->arena, choice);
  return replay_arena_bytes(s->r, &steps, s->budget, PLAN_COMPILE);
}

static bool has_work(const search *s) {
  return s->r->tried < s->work;
}

// Keeps in x what need not be dropped. Where packing adds to the live bytes, they must be fewer: the least that makes
// another choice, then as many as it adds; at once as many where one value more or less packs alike.
static bool trim_to_budget(search *s, uint32_t seed) {
  int64_t target = s->budget;
  for (int i = 0; i < RETRIES && target > 0 && has_work(s); i++) {
    copy_choice(s, s->x, s->start);
    trim_wholly(s->r, target, seed, s->x);
    replay_outcome o = replay_try(s->r, s->x);
    if (o.live_bytes > target || (s->found && o.seconds >= s->best_outcome.seconds))
      return false;
    int64_t over = packed_bytes(s, s->x) - s->budget;
    if (over <= 0)
      return true;
    target = i == 0 && s->r->s->num_values < REPLAY_MANY ? o.live_bytes - 1 : target - over;
  }
  return false;
}

// `choice` is the start, or what it was trimmed to.
static void keep_choice(search *s, const unsigned char *choice) {
  s->found = true;
  s->best_outcome = replay_try(s->r, choice);
  copy_choice(s, s->best, choice);
  copy_choice(s, s->best_start, s->start);
}

static void trim_start(search *s, uint32_t seed) {
  if (trim_to_budget(s, seed))
    keep_choice(s, s->x);
}

// Looks at a choice, and keeps it if it takes the fewest bytes so far. True: it is within the budget.
static bool look_at_start(search *s, replay_outcome o) {
  if (o.live_bytes < s->least_outcome.live_bytes) {
    s->least_outcome = o;
    copy_choice(s, s->least, s->start);
  }
  return o.live_bytes <= s->budget;
}

static bool may_matter(const search *s, const checkpoint_start *x) {
  return !x->known || x->outcome.live_bytes < s->least_outcome.live_bytes ||
         x->outcome.live_bytes <= s->budget;
}

static void look_and_trim(search *s, checkpoint_start *x) {
  if (!may_matter(s, x))
    return;
  checkpoint_choose_start(s->r, x, s->start);
  if (!x->known)
    x->outcome = replay_try(s->r, s->start);
  x->known = true;
  if (look_at_start(s, x->outcome) && x->depth < CHECKPOINT_ALWAYS)
    trim_start(s, 0);
}

static void look_at_all(search *s) {
  if (look_at_start(s, replay_try(s->r, s->start))) // nothing is dropped
    trim_start(s, 0);
  if (s->found)
    return;
  for (size_t i = 0; i < s->starts->num; i++)
    look_and_trim(s, &s->starts->at[i]);
}

// The best start again, with other orders.
static void shake_best(search *s) {
  copy_choice(s, s->start, s->best_start);
  for (uint32_t seed = 1; s->best_outcome.num_again > 0 && seed <= SHAKES && has_work(s); seed++)
    trim_start(s, seed);
}

// --- squeezing -----------------------------------------------------------------------------------

// Values that only wait at the step where most bytes are live.
static size_t find_waiting(const search *s, ir_arena *a, int *waiting) {
  sched *f = s->r->s;
  replay_steps steps = replay_make_steps(s->r, a, s->start);
  sched_lives l = sched_find_lives(f, a, steps.at, steps.num);
  int64_t *live = IR_NEW_ARRAY(a, int64_t, steps.num + 1);
  int peak = (int)sched_find_peak(live, sched_live_bytes(&l, steps.num, live));
  size_t num = 0;
  for (size_t i = 0; i < l.at.num; i++) {
    const sched_life *x = &l.at.at[i];
    if (x->value >= 0 && x->first < peak && x->last > peak && x->kernel <= s->r->forward &&
        s->start[x->value] < REPLAY_DROP_ALWAYS &&
        !sched_reads(&f->kernels[steps.at[peak]], x->value))
      waiting[num++] = x->value;
  }
  return num;
}

// A value that waits at the peak, and what dropping more of it alone leads to.
typedef struct waiting_value {
  int value;
  replay_outcome o;
} waiting_value;

static int compare_waiting(const void *pa, const void *pb) {
  const waiting_value *a = pa, *b = pb;
  if (a->o.live_bytes != b->o.live_bytes)
    return a->o.live_bytes < b->o.live_bytes ? -1 : 1;
  if (a->o.seconds != b->o.seconds)
    return a->o.seconds < b->o.seconds ? -1 : 1;
  return a->value - b->value;
}

// Drops more of a value. False: no fewer bytes are live then than in the best choice so far; it is as it was.
static bool drop_more(search *s, int value) {
  s->start[value]++;
  replay_outcome o = replay_try(s->r, s->start);
  if (o.live_bytes >= s->least_outcome.live_bytes) {
    s->start[value]--;
    return false;
  }
  s->least_outcome = o;
  return true;
}

// Drops more of the value among those that wait at the peak which lowers it most; where many wait, of the next ones in
// that order, too: the steps of a sequence lower it alike, and one at a time each would be weighed as often as there are
// others. False: none lowers it.
static bool squeeze_once(search *s, int64_t target) {
  enum { WAITING_FOR_ONE = 16 };
  ir_arena *a = ir_arena_new();
  int *waiting = IR_NEW_ARRAY(a, int, s->r->s->num_values + 1);
  size_t num = find_waiting(s, a, waiting), dropped = 0;
  waiting_value *w = IR_NEW_ARRAY(a, waiting_value, num + 1);
  for (size_t i = 0; i < num; i++) {
    s->start[waiting[i]]++;
    w[i] = (waiting_value){waiting[i], replay_try(s->r, s->start)};
    s->start[waiting[i]]--;
  }
  qsort(w, num, sizeof *w, compare_waiting);
  int64_t before = s->least_outcome.live_bytes;
  size_t most = num / WAITING_FOR_ONE + 1;
  for (size_t i = 0; i < num && dropped < most; i++) {
    if (w[i].o.live_bytes >= before || s->least_outcome.live_bytes <= target)
      break;
    dropped += drop_more(s, w[i].value);
  }
  ir_arena_free(a);
  return dropped > 0;
}

// From the choice that takes the fewest bytes to one that fits. Where packing adds to them, to fewer.
static void squeeze(search *s, int64_t until) {
  copy_choice(s, s->start, s->least);
  int64_t target = s->budget;
  while (!s->found && s->r->tried < until) {
    while (s->least_outcome.live_bytes > target && s->r->tried < until && squeeze_once(s, target))
      continue;
    copy_choice(s, s->least, s->start);
    if (s->least_outcome.live_bytes > target)
      return;
    trim_start(s, 0);
    int64_t over = s->found ? 0 : packed_bytes(s, s->start) - s->budget;
    if (!s->found && over <= 0)
      keep_choice(s, s->start); // and nothing of what it drops
    target = s->least_outcome.live_bytes - (over / 4 > 1 ? over / 4 : 1);
  }
}

// --- hoisting ------------------------------------------------------------------------------------
// Takes steps if they take less time than what was found and fit once they are packed.
static bool take_steps(search *s, replay_steps steps) {
  replay_outcome o = replay_weigh(s->r, &steps);
  if ((s->found && o.seconds >= s->best_outcome.seconds) ||
      replay_arena_bytes(s->r, &steps, s->budget, PLAN_HARD) > s->budget)
    return false;
  s->found = true;
  s->best_outcome = o;
  s->hoisted = steps;
  return true;
}

static replay_steps copy_steps(const search *s, const replay_steps *from) {
  replay_steps to = {0};
  for (size_t t = 0; t < from->num; t++)
    IR_PUSH(s->arena, to, from->at[t]);
  return to;
}

// The steps of a choice, those that run again moved forwards for at most `target` bytes to be live. False: more are.
static bool hoist_choice(search *s, const unsigned char *drop, int64_t target, replay_steps *out) {
  *out = replay_make_steps(s->r, s->arena, drop);
  int64_t live = out->num ? replay_hoist(s->r, target, s->work, out) : INT64_MAX;
  if (!s->found && live < s->least_outcome.live_bytes) {
    s->least_outcome.live_bytes = live;
    s->hoisted = *out;
  }
  return live <= target;
}

// Less is dropped, and fewer steps run again, as long as it fits. For fewer live bytes, too: packing adds to them, and
// where more is dropped to begin with, other steps are hoisted, of which more may turn out to be in vain.
static void hoist_start(search *s) {
  int64_t target = s->budget;
  for (uint32_t seed = 0; seed < HOIST_TRIES && has_work(s); seed++, target -= target / 32) {
    replay_steps steps;
    if (!hoist_choice(s, s->start, target, &steps))
      return;
    if (!s->found && take_steps(s, steps))
      s->work += HOIST_WORK; // to make it faster
    copy_choice(s, s->x, s->start);
    trim(s->r, target, seed, s->work, s->x);
    if (!hoist_choice(s, s->x, target, &steps))
      continue;
    replay_steps fewer = copy_steps(s, &steps);
    replay_prune(s->r, target, s->work, &fewer);
    take_steps(s, steps);
    take_steps(s, fewer);
  }
}

// What fits runs some kernels again that it need not.
static void prune_best(search *s, replay_steps *steps, replay_outcome *o) {
  replay_steps fewer = copy_steps(s, steps);
  replay_prune(s->r, s->budget, s->r->tried + PRUNE_WORK, &fewer);
  if (!take_steps(s, fewer))
    return;
  *steps = fewer;
  *o = s->best_outcome;
}

// No choice is within the budget as it stands. One that is far from it comes no nearer.
static void hoist(search *s) {
  if (s->least_outcome.live_bytes / 3 * 2 > s->budget)
    return;
  s->work = s->r->tried + HOIST_WORK;
  copy_choice(s, s->start, s->least);
  hoist_start(s);
  for (size_t i = 0; i < s->starts->num; i++) {
    checkpoint_choose_start(s->r, &s->starts->at[i], s->start);
    hoist_start(s);
  }
}

// What a search for a larger budget has squeezed need not be squeezed again: `before` may be NULL.
static bool search_once(search *s, const search *before) {
  size_t n = (size_t)s->r->s->num_values + 1;
  s->start = IR_NEW_ARRAY(s->arena, unsigned char, n);
  s->x = IR_NEW_ARRAY(s->arena, unsigned char, n);
  s->best = IR_NEW_ARRAY(s->arena, unsigned char, n);
  s->best_start = IR_NEW_ARRAY(s->arena, unsigned char, n);
  s->least = IR_NEW_ARRAY(s->arena, unsigned char, n);
  s->least_outcome.live_bytes = INT64_MAX;
  if (before) {
    s->least_outcome = before->least_outcome;
    copy_choice(s, s->least, before->least);
  }
  look_at_all(s);
  if (!s->found)
    squeeze(s, before ? s->work : s->r->tried + SQUEEZE_WORK);
  if (s->found)
    shake_best(s);
  return s->found;
}

static double step_seconds(const replay *r) {
  double all = 0;
  for (int k = 0; k < r->s->num_kernels; k++)
    all += r->seconds[k];
  return all;
}

// What is found within less is within the budget, too, and is faster now and then: what is kept is kept in ranges,
// which end elsewhere. So it competes with what is found within the next smaller shares of what all values take; the
// same shares for budgets near each other, of which a larger one should not lead to more time. Each has a part of the
// whole search's work, where there is anything to speak of to gain; also where choices have to be squeezed to be met: of a
// U-Net within .45 of its memory, 27 kernels run again instead of 37. *s is the fastest.
static bool search_values(search *s) {
  enum { PARTS = 64, TRIES = 4 };
  static const double LITTLE = 0.02; // of a step
  int64_t work = (s->work - s->r->tried) / TRIES;
  if (!search_once(s, NULL) || s->best_outcome.seconds < LITTLE * step_seconds(s->r))
    return s->found;
  memset(s->start, REPLAY_KEEP, (size_t)s->r->s->num_values);
  int64_t unit = replay_try(s->r, s->start).live_bytes / PARTS + 1;
  search last = *s;
  for (int i = 0; i < TRIES; i++) {
    search other = {.r = s->r, .arena = s->arena, .starts = s->starts};
    other.budget = (s->budget / unit - i) * unit;
    other.work = s->r->tried + work;
    bool found = search_once(&other, &last);
    last = other;
    if (found && other.best_outcome.seconds < s->best_outcome.seconds) {
      other.budget = s->budget;
      other.work = s->work;
      *s = other;
    }
  }
  return true;
}

// Neither a choice of values nor a sequence of a chain is within the budget: `out` is the one of them that takes
// fewer bytes.
static bool hoist_instead(search *s, replay_steps *out) {
  hoist(s);
  if (s->found || (s->hoisted.num && replay_arena_bytes(s->r, &s->hoisted, 0, PLAN_COMPILE) <
                                         replay_arena_bytes(s->r, out, 0, PLAN_COMPILE)))
    *out = s->hoisted;
  return s->found;
}

bool checkpoint_auto(replay *r, int64_t budget, int share, replay_steps *out) {
  search s = {.r = r, .arena = r->arena, .starts = checkpoint_list_starts(r), .budget = budget};
  s.work = r->tried + (WORK + (int64_t)r->s->num_kernels * WORK_BY_KERNEL) / share;
  bool found = search_values(&s);
  *out = replay_make_steps(r, r->arena, found ? s.best : s.least);
  replay_outcome values = replay_weigh(r, out);
  if (values.num_again == 0)
    return found;
  if (found)
    prune_best(&s, out, &values);
  replay_steps steps = {0};
  bool chain_found = checkpoint_chain(r, budget, &steps);
  replay_outcome chain = replay_weigh(r, &steps);
  if (chain_found ? !found || chain.seconds < values.seconds
                  : !found && chain.live_bytes < values.live_bytes)
    *out = steps;
  return found || chain_found || hoist_instead(&s, out);
}
