// offload_choose.c: which values are sent (offload.h).
//
// A value can wait in the longest stretch of time in which nobody reads it. While too much is live, the
// value that waits longest across the peak is moved, if the copies of all that has been chosen still
// have room: each way they run one after the other, sends as early as they can, fetches as late.
#include "passes/offload.h"

#include <stdlib.h>
#include <string.h>

#include "passes/plan_parts.h"

// What copies may take: as if kernels took so many times as long.
static const double slower[] = {1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 1e9};
enum {
  NUM_SLOWER = sizeof slower / sizeof *slower,
  SMALLEST = 4096,      // of the bytes that are too many: what is less is not worth a copy
  MOST_PACKED = 8,      // times that packing may miss what was counted
  PART_AT_ONCE = 64,    // of those that are moved: so many more between two counts
  PACK_STEPS = 1000000, // of the packer, each time: the plan has more
};

// A value that could wait.
typedef struct candidate {
  int life;         // of `lives`
  int made, needed; // steps of offload_move
  int after;        // the last step before `needed` that has anything to do with it
  int64_t bytes;
  bool moved, tried;
} candidate;

typedef struct chooser {
  ir_arena *arena;
  sched *s;
  const replay_steps *steps;
  double *at; // [step] seconds when it begins, and when the last one ends
  double bandwidth;
  int64_t budget;
  sched_lives lives;
  IR_VEC(candidate) all;
  size_t num_moved;
  int *there, *back; // [num_moved] the candidates that are moved, by `made` and by `needed`
  int *sent, *begin; // [candidate] steps of its move
  int *move_of;      // [life] its candidate if that is moved, or -1
  int64_t *live;     // [step]
  plan_joined joined;
} chooser;

// --- candidates ------------------------------------------------------------------------------------
// The longest stretch of each life in which no step reads it.
static void take_stretch(chooser *x, int life, int from, int to) {
  int last = (int)x->all.num - 1;
  candidate c = {.life = life,
                 .made = x->lives.at.at[life].first,
                 .needed = to,
                 .after = from,
                 .bytes = x->lives.at.at[life].bytes};
  if (last < 0 || x->all.at[last].life != life)
    IR_PUSH(x->arena, x->all, c);
  else if (x->at[to] - x->at[from] > x->at[x->all.at[last].needed] - x->at[x->all.at[last].after])
    x->all.at[last] = c;
}

typedef IR_VEC(int) step_list;

static void find_readers(const chooser *x, step_list *readers) {
  int *current = IR_NEW_ARRAY(x->arena, int, x->s->num_values + 1);
  size_t next = 0;
  memset(current, -1, sizeof(int) * ((size_t)x->s->num_values + 1));
  for (size_t t = 0; t < x->steps->num; t++) {
    const sched_kernel *k = &x->s->kernels[x->steps->at[t]];
    for (int i = 0; i < k->num_in; i++)
      if (k->in[i].value >= 0 && current[k->in[i].value] >= 0)
        IR_PUSH(x->arena, readers[current[k->in[i].value]], (int)t);
    for (; next < x->lives.at.num && x->lives.at.at[next].first == (int)t; next++)
      if (x->lives.at.at[next].value >= 0)
        current[x->lives.at.at[next].value] = (int)next;
  }
}

static void find_candidates(chooser *x) {
  step_list *readers = IR_NEW_ARRAY(x->arena, step_list, x->lives.at.num + 1);
  find_readers(x, readers);
  for (size_t i = 0; i < x->lives.at.num; i++) {
    const sched_life *l = &x->lives.at.at[i];
    int from = l->first;
    bool stays = l->kind != PLAN_TEMP || x->s->values[l->value].written;
    for (size_t j = 0; !stays && j < readers[i].num; from = readers[i].at[j++])
      if (readers[i].at[j] > from + 1)
        take_stretch(x, (int)i, from, readers[i].at[j]);
  }
  x->sent = IR_NEW_ARRAY(x->arena, int, x->all.num + 1);
  x->begin = IR_NEW_ARRAY(x->arena, int, x->all.num + 1);
  x->there = IR_NEW_ARRAY(x->arena, int, x->all.num + 1);
  x->back = IR_NEW_ARRAY(x->arena, int, x->all.num + 1);
}

// --- copies ----------------------------------------------------------------------------------------
static double copy_seconds(double bandwidth, int64_t bytes) {
  static const double start = 10e-6;
  return start + (double)bytes / bandwidth;
}

// Of a list of copies each is looked for from where the last one was found: seldom far, in tens of thousands of steps. So
// the way there is doubled until it is past, and only that much is halved.

// The first step from `from` on that begins at `time` or later; behind the last one if none does.
static int step_from(const chooser *x, int from, double time, double slow) {
  int all = (int)x->steps->num, to = from;
  for (int far = 1; to < all && slow * x->at[to] < time; far *= 2) {
    from = to + 1;
    to = far < all - to ? to + far : all;
  }
  while (from < to) {
    int middle = from + (to - from) / 2;
    if (slow * x->at[middle] < time)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

// The last step up to `to` that begins at `time` or earlier; the first one if none does.
static int step_until(const chooser *x, int to, double time, double slow) {
  int from = to;
  for (int far = 1; from > 0 && slow * x->at[from] > time; far *= 2) {
    to = from - 1;
    from = far < from ? from - far : 0;
  }
  while (from < to) {
    int middle = to - (to - from) / 2;
    if (slow * x->at[middle] > time)
      to = middle - 1;
    else
      from = middle;
  }
  return from;
}

static int later(int a, int b) {
  return a > b ? a : b;
}

// Sends begin in the order in which their values are made.
static void place_sends(chooser *x, double slow) {
  double free = 0;
  int step = 0;
  for (size_t i = 0; i < x->num_moved; i++) {
    const candidate *c = &x->all.at[x->there[i]];
    double from = slow * x->at[c->made + 1];
    free = (from > free ? from : free) + copy_seconds(x->bandwidth, c->bytes);
    step = step_from(x, step, free, slow);
    x->sent[x->there[i]] = later(step, c->after + 1);
  }
}

// From the last one back. A time may be so long that a copy's is lost in it: a fetch is begun before `needed` all the same.
static void place_fetches(chooser *x, double slow) {
  double end = slow * x->at[x->steps->num];
  int step = (int)x->steps->num;
  for (size_t i = x->num_moved; i-- > 0;) {
    const candidate *c = &x->all.at[x->back[i]];
    double due = slow * x->at[c->needed];
    end = (due < end ? due : end) - copy_seconds(x->bandwidth, c->bytes);
    step = step_until(x, step, end, slow);
    x->begin[x->back[i]] = later(step < c->needed ? step : c->needed, c->after);
  }
}

static bool have_room(const chooser *x) {
  for (size_t i = 0; i < x->num_moved; i++)
    if (x->sent[x->there[i]] > x->begin[x->there[i]])
      return false;
  return true;
}

static bool place_copies(chooser *x, double slow) {
  place_sends(x, slow);
  place_fetches(x, slow);
  return have_room(x);
}

static int made_at(const candidate *c) {
  return c->made;
}

static int needed_at(const candidate *c) {
  return c->needed;
}

// Behind all that `step` does not put behind it. The list has room for all candidates.
static void insert(const chooser *x, int *list, int c, int (*step)(const candidate *)) {
  size_t i = x->num_moved;
  for (; i > 0 && step(&x->all.at[list[i - 1]]) > step(&x->all.at[c]); i--)
    list[i] = list[i - 1];
  list[i] = c;
}

static void add_move(chooser *x, int c) {
  insert(x, x->there, c, made_at);
  insert(x, x->back, c, needed_at);
  x->num_moved++;
  x->all.at[c].moved = true;
}

static void take_out(const chooser *x, int *list, int c) {
  size_t kept = 0;
  for (size_t i = 0; i < x->num_moved; i++)
    if (list[i] != c)
      list[kept++] = list[i];
}

static void drop_move(chooser *x, int c) {
  take_out(x, x->there, c);
  take_out(x, x->back, c);
  x->num_moved--;
  x->all.at[c].moved = false;
}

// --- memory ----------------------------------------------------------------------------------------
// What is packed: lives that take over each other's memory are one interval, up to where a value leaves.
static void join_lives(chooser *x) {
  plan_joined *j = &x->joined;
  memset(x->move_of, -1, sizeof(int) * (x->lives.at.num + 1));
  for (size_t i = 0; i < x->num_moved; i++)
    x->move_of[x->all.at[x->there[i]].life] = x->there[i];
  j->num = 0;
  for (size_t i = 0; i < x->lives.at.num; i++) {
    const sched_life *l = &x->lives.at.at[i];
    int of = l->reuses < 0 ? (int)j->num : j->of[l->reuses], move = x->move_of[i];
    if (l->reuses < 0)
      j->at[j->num++] = (plan_interval){.lower = l->first, .size = plan_align(l->bytes)};
    int64_t end = move < 0 ? l->last + 1 : x->sent[move];
    j->at[of].upper = end > j->at[of].upper ? end : j->at[of].upper;
    if (move >= 0) {
      j->at[j->num] = (plan_interval){x->begin[move], l->last + 1, plan_align(l->bytes), 0};
      of = (int)j->num++;
    }
    j->of[i] = of;
  }
}

static int64_t count_live(chooser *x) {
  size_t num = x->steps->num;
  memset(x->live, 0, sizeof(int64_t) * (num + 2));
  join_lives(x);
  for (size_t i = 0; i < x->joined.num; i++) {
    x->live[x->joined.at[i].lower] += x->joined.at[i].size;
    x->live[x->joined.at[i].upper] -= x->joined.at[i].size;
  }
  int64_t now = 0, most = 0;
  for (size_t t = 0; t < num; t++) {
    x->live[t] = now += x->live[t];
    most = now > most ? now : most;
  }
  return most;
}

// --- choosing --------------------------------------------------------------------------------------
// The value that would wait longest of those that are not needed at the peak; -1: none.
static int find_best(const chooser *x, int peak, int64_t too_much) {
  int best = -1;
  double longest = 0;
  for (size_t i = 0; i < x->all.num; i++) {
    const candidate *c = &x->all.at[i];
    double waits = x->at[c->needed] - x->at[c->after];
    if (!c->moved && !c->tried && c->after < peak && peak < c->needed && waits > longest &&
        c->bytes >= too_much / SMALLEST) {
      longest = waits;
      best = (int)i;
    }
  }
  return best;
}

static bool is_off(const chooser *x, int c, int step) {
  return x->sent[c] <= step && step < x->begin[c];
}

// The bytes of a value that is away at the peak from now on; 0: there is none.
static int64_t move_one(chooser *x, int peak, int64_t too_much, double slow) {
  for (int c; (c = find_best(x, peak, too_much)) >= 0;) {
    x->all.at[c].tried = true;
    add_move(x, c);
    if (place_copies(x, slow) && is_off(x, c, peak))
      return x->all.at[c].bytes;
    drop_move(x, c);
  }
  return 0;
}

// Moves values until at most `target` bytes are live; several before it counts again where there are many.
// False: it cannot be with such copies.
static bool reach(chooser *x, int64_t target, double slow) {
  for (size_t i = 0; i < x->all.num; i++)
    x->all.at[i].tried = false;
  for (int64_t most; (most = count_live(x)) > target;) {
    int peak = (int)sched_find_peak(x->live, most);
    size_t before = x->num_moved, until = before + 1 + before / PART_AT_ONCE;
    int64_t left = most - target, less = 1;
    for (; less && left > 0 && x->num_moved < until; left -= less)
      less = move_one(x, peak, most - target, slow);
    place_copies(x, slow);
    if (x->num_moved == before)
      return false;
  }
  return true;
}

static void start_over(chooser *x) {
  while (x->num_moved)
    drop_move(x, x->there[x->num_moved - 1]);
}

static int64_t pack_lives(chooser *x) {
  plan_pack_limits limits = {.capacity = x->budget > 0 ? x->budget : 0, .steps = PACK_STEPS};
  return plan_pack_within(x->joined.at, x->joined.num, &limits).height;
}

// Packing may need more than what is live: then less may be.
static bool reach_packed(chooser *x, double slow, int64_t *bytes) {
  int64_t target = x->budget;
  start_over(x);
  for (int i = 0; i < MOST_PACKED; i++) {
    bool reached = reach(x, target, slow);
    int64_t live = count_live(x);
    if (live > x->budget)
      return false;
    *bytes = pack_lives(x);
    if (*bytes <= x->budget || !reached)
      return *bytes <= x->budget;
    target = (live < target ? live : target) - (*bytes - x->budget);
  }
  return false;
}

// The least factor that fits, and its moves. Where 1 does not and none can, the last one's are left; else
// the list is halved: what fits goes on fitting when copies may take longer.
static bool reach_soonest(chooser *x, int64_t *bytes) {
  int fails = 0, fits = NUM_SLOWER - 1, last = NUM_SLOWER - 1;
  if (reach_packed(x, slower[0], bytes))
    return true;
  if (!reach_packed(x, slower[fits], bytes))
    return false;
  while (fits > fails + 1) {
    last = (fails + fits) / 2;
    if (reach_packed(x, slower[last], bytes))
      fits = last;
    else
      fails = last;
  }
  return last == fits || reach_packed(x, slower[fits], bytes);
}

// --- time ------------------------------------------------------------------------------------------
// A copy as it will be issued and waited for. Times are twice the step: what is done before a step is
// waited for before anything begins there, but for what begins where it is done.
typedef struct issued {
  int begin, done, number;
  double seconds, end;
  bool back;
} issued;

static issued issue(int number, int begin, int done, double seconds, bool back) {
  return (issued){2 * begin + (begin < done), 2 * done, number, seconds, 0, back};
}

static int by_begin(const void *pa, const void *pb) {
  const issued *a = pa, *b = pb;
  int order = a->begin != b->begin ? a->begin - b->begin : a->done - b->done;
  return order ? order : a->number - b->number;
}

// Kernels and two queues of copies, all as early as they can: seconds that kernels wait. at: [step].
static double wait_for(issued *copies, size_t num, const double *at, size_t steps) {
  double waited = 0, free[2] = {0, 0};
  size_t next = 0, oldest = 0;
  qsort(copies, num, sizeof *copies, by_begin);
  for (int t = 0; t < 2 * (int)steps; t++) {
    for (; next < num && copies[next].begin <= t; next++) {
      issued *c = &copies[next];
      double now = at[t / 2] + waited;
      c->end = free[c->back] = (now > free[c->back] ? now : free[c->back]) + c->seconds;
    }
    while (oldest < next && copies[oldest].done < t)
      oldest++;
    for (size_t i = oldest; i < next; i++)
      if (copies[i].done == t && copies[i].end > at[t / 2] + waited)
        waited = copies[i].end - at[t / 2];
  }
  return waited;
}

static double waiting_of(const chooser *x) {
  issued *copies = IR_NEW_ARRAY(x->arena, issued, 2 * x->num_moved + 1);
  int num = 0;
  for (size_t i = 0; i < x->num_moved; i++) {
    int c = x->there[i];
    const candidate *of = &x->all.at[c];
    double seconds = copy_seconds(x->bandwidth, of->bytes);
    copies[num] = issue(num, of->made + 1, x->sent[c], seconds, false);
    num++;
    copies[num] = issue(num, x->begin[c], of->needed, seconds, true);
    num++;
  }
  return wait_for(copies, (size_t)num, x->at, x->steps->num);
}

double offload_waiting(ir_arena *a, const ir_func *f, const double *seconds, double bandwidth) {
  size_t num = f->kernels.num;
  int count = 0;
  double *at = IR_NEW_ARRAY(a, double, num + 1);
  issued *copies = IR_NEW_ARRAY(a, issued, num + 1);
  for (size_t i = 0; i < num; i++) {
    const ir_kernel *k = f->kernels.at[i];
    at[i + 1] = at[i] + seconds[i];
    if (!ir_is_transfer(k))
      continue;
    int begin = (int)(k->begin ? k->begin->id : k->id);
    copies[count] =
        issue(count, begin, (int)i, copy_seconds(bandwidth, ir_bytes(&k->nodes.at[0]->type)),
              k->family == IR_FAMILY_FETCH);
    count++;
  }
  return wait_for(copies, (size_t)count, at, num);
}

// --- the whole -------------------------------------------------------------------------------------
static chooser chooser_new(ir_arena *a, sched *s, const replay_steps *steps,
                           const double *seconds) {
  chooser x = {.arena = a, .s = s, .steps = steps};
  x.at = IR_NEW_ARRAY(a, double, steps->num + 2);
  for (size_t t = 0; t < steps->num; t++)
    x.at[t + 1] = x.at[t] + seconds[steps->at[t]];
  x.lives = sched_find_lives(s, a, steps->at, steps->num);
  x.live = IR_NEW_ARRAY(a, int64_t, steps->num + 2);
  x.move_of = IR_NEW_ARRAY(a, int, x.lives.at.num + 1);
  x.joined.at = IR_NEW_ARRAY(a, plan_interval, 2 * x.lives.at.num + 1);
  x.joined.of = IR_NEW_ARRAY(a, int, x.lives.at.num + 1);
  return x;
}

static void take_moves(const chooser *x, offload_choice *out) {
  for (size_t i = 0; i < x->num_moved; i++) {
    int c = x->there[i];
    const candidate *of = &x->all.at[c];
    offload_move m = {.value = x->lives.at.at[of->life].value,
                      .made = of->made,
                      .sent = x->sent[c],
                      .begin = x->begin[c],
                      .needed = of->needed};
    IR_PUSH(x->arena, out->moves, m);
  }
}

offload_choice offload_choose(ir_arena *a, sched *s, const replay_steps *steps,
                              const double *seconds, int64_t budget, double bandwidth) {
  chooser x = chooser_new(a, s, steps, seconds);
  offload_choice out = {0};
  x.budget = budget;
  x.bandwidth = bandwidth;
  find_candidates(&x);
  out.fits = reach_soonest(&x, &out.arena_bytes);
  if (!out.fits)
    out.arena_bytes = pack_lives(&x);
  take_moves(&x, &out);
  out.waiting = waiting_of(&x);
  return out;
}
