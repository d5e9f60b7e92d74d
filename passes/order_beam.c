// order_beam.c: orders by a search that keeps the best prefixes of each length.
//
//   2 kernels done    {a, b} peak 40, live 30      {a, c} peak 40, live 50
//   3 kernels done    {a, b, c} from either: one of them is kept, the one with the lower peak
//
// What is live after a set of kernels does not depend on their order, so that of two prefixes of
// one set the better one will do; a function whose sets of equal size all fit has its best order
// found. Where a kernel leaves no more bytes than there were, and takes no more than the prefix has
// taken before, nothing is lost by running it at once: such prefixes have one successor.
//
// How many prefixes are kept goes down with the size of the function, so that the work stays
// bounded. Where thousands of kernels may run at any time, even one prefix looks at all of them for
// each that is run: then the search ends without an order.
#include <stdlib.h>
#include <string.h>

#include "passes/order_parts.h"

enum { MOST_PREFIXES = 256 };
static const int64_t most_work = INT64_C(1) << 22;  // numbers copied
static const int64_t most_looks = INT64_C(1) << 24; // at kernels that may run

typedef struct prefix {
  order_walk w;
  int *ready, num_ready;
  uint64_t set; // a hash of the kernels in it
  int last;     // of `trail`, -1
} prefix;

// The kernels of a prefix, from the last one back.
typedef struct footstep {
  int kernel, before;
} footstep;

typedef struct choice {
  int64_t peak, live;
  uint64_t set;
  int from, kernel; // prefix
} choice;

typedef struct beam {
  const order_graph *g;
  ir_arena *arena;
  size_t width;
  prefix **now, **next, **spare;
  size_t num_now, num_next, num_spare;
  IR_VEC(choice) choices;
  IR_VEC(footstep) trail;
  int64_t looks;
} beam;

static uint64_t hash_of(int kernel) {
  uint64_t x = (uint64_t)kernel + UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static prefix *prefix_new(beam *b) {
  prefix *p = IR_NEW(b->arena, prefix);
  p->w = order_walk_new(b->arena, b->g);
  p->ready = IR_NEW_ARRAY(b->arena, int, b->g->n + 1);
  p->last = -1;
  for (int k = 0; k < b->g->n; k++)
    if (p->w.waits[k] == 0)
      p->ready[p->num_ready++] = k;
  return p;
}

static prefix *copy_of(beam *b, const prefix *from) {
  prefix *p = b->num_spare ? b->spare[--b->num_spare] : prefix_new(b);
  order_walk_copy(&p->w, &from->w);
  memcpy(p->ready, from->ready, sizeof(int) * (size_t)from->num_ready);
  p->num_ready = from->num_ready;
  p->set = from->set;
  p->last = from->last;
  return p;
}

// Kernels that may run stay in the order of the source, so that of equal ones its first is taken.
static void make_ready(prefix *p, int k) {
  int i = p->num_ready++;
  for (; i > 0 && p->ready[i - 1] > k; i--)
    p->ready[i] = p->ready[i - 1];
  p->ready[i] = k;
}

static void advance(beam *b, prefix *p, int k) {
  const order_sets *after = &b->g->after;
  int at = 0;
  order_walk_step(&p->w, k);
  while (p->ready[at] != k)
    at++;
  p->num_ready--;
  memmove(&p->ready[at], &p->ready[at + 1], sizeof(int) * (size_t)(p->num_ready - at));
  for (int i = after->at[k]; i < after->at[k + 1]; i++)
    if (p->w.waits[after->of[i]] == 0)
      make_ready(p, after->of[i]);
  footstep f = {k, p->last};
  p->last = (int)b->trail.num;
  IR_PUSH(b->arena, b->trail, f);
  p->set ^= hash_of(k);
}

static void add_choice(beam *b, int from, int k, const order_cost *c) {
  const prefix *p = b->now[from];
  int64_t peak = p->w.live + c->during;
  choice x = {peak > p->w.peak ? peak : p->w.peak, p->w.live + c->after, p->set ^ hash_of(k), from,
              k};
  IR_PUSH(b->arena, b->choices, x);
}

static void add_choices(beam *b, int from) {
  const prefix *p = b->now[from];
  size_t first = b->choices.num;
  b->looks += p->num_ready;
  for (int i = 0; i < p->num_ready; i++) {
    order_cost c = order_cost_of(&p->w, p->ready[i]);
    bool loses_nothing = c.after <= 0 && p->w.live + c.during <= p->w.peak;
    if (loses_nothing)
      b->choices.num = first;
    add_choice(b, from, p->ready[i], &c);
    if (loses_nothing)
      return;
  }
}

static int compare_choices(const void *pa, const void *pb) {
  const choice *a = pa, *b = pb;
  if (a->peak != b->peak)
    return a->peak < b->peak ? -1 : 1;
  if (a->live != b->live)
    return a->live < b->live ? -1 : 1;
  if (a->set != b->set)
    return a->set < b->set ? -1 : 1;
  return a->from != b->from ? a->from - b->from : a->kernel - b->kernel;
}

// Large functions have one prefix, and at times thousands of kernels that may run: no need to sort them.
static void keep_one(beam *b) {
  choice *best = &b->choices.at[0];
  for (size_t i = 1; i < b->choices.num; i++)
    if (compare_choices(&b->choices.at[i], best) < 0)
      best = &b->choices.at[i];
  b->choices.at[0] = *best;
  b->choices.num = 1;
}

// The `num` best come first, in no order (Hoare 1961, Find).
static void put_first(choice *at, int64_t all, int64_t num) {
  for (int64_t low = 0, high = all - 1; low < high;) {
    choice middle = at[low + (high - low) / 2];
    int64_t i = low - 1, j = high + 1;
    for (;;) {
      do
        i++;
      while (compare_choices(&at[i], &middle) < 0);
      do
        j--;
      while (compare_choices(&at[j], &middle) > 0);
      if (i >= j)
        break;
      choice other = at[i];
      at[i] = at[j];
      at[j] = other;
    }
    if (num <= j + 1)
      high = j;
    else
      low = j + 1;
  }
}

// Sorts the first `num`. Equal sets lie side by side: they have equal bytes live, and the better peak comes first, unless
// it differs, in which case the worse one may stay as long as there is room. Returns how many are kept, in front.
static size_t take_distinct(beam *b, size_t num) {
  size_t kept = 0;
  qsort(b->choices.at, num, sizeof *b->choices.at, compare_choices);
  for (size_t i = 0; i < num && kept < b->width; i++)
    if (kept == 0 || b->choices.at[i].set != b->choices.at[kept - 1].set)
      b->choices.at[kept++] = b->choices.at[i];
  return kept;
}

// As if all were sorted; but most of many choices come to nothing, and a set seldom comes from more than a few prefixes.
static void keep_best(beam *b) {
  enum { OF_ONE_SET = 4 };
  choice *at = b->choices.at;
  size_t all = b->choices.num, num = b->width * OF_ONE_SET < all ? b->width * OF_ONE_SET : all;
  put_first(at, (int64_t)all, (int64_t)num);
  size_t kept = take_distinct(b, num);
  if (kept < b->width && num < all) {
    memmove(&at[kept], &at[num], (all - num) * sizeof *at);
    kept = take_distinct(b, kept + all - num);
  }
  b->choices.num = kept;
}

static void follow(beam *b) {
  int *left = IR_NEW_ARRAY(b->arena, int, b->num_now + 1);
  for (size_t i = 0; i < b->choices.num; i++)
    left[b->choices.at[i].from]++;
  for (size_t i = 0; i < b->num_now; i++)
    if (left[i] == 0)
      b->spare[b->num_spare++] = b->now[i];
  b->num_next = 0;
  for (size_t i = 0; i < b->choices.num; i++) {
    int from = b->choices.at[i].from;
    prefix *p = --left[from] ? copy_of(b, b->now[from]) : b->now[from];
    b->next[b->num_next++] = p;
    b->choices.at[i].from = (int)i;
  }
  for (size_t i = 0; i < b->choices.num; i++)
    advance(b, b->next[i], b->choices.at[i].kernel);
  prefix **t = b->now;
  b->now = b->next;
  b->num_now = b->num_next;
  b->next = t;
}

static size_t width_for(const order_graph *g) {
  int64_t numbers = (int64_t)g->n * (2 * g->n + g->s->num_values);
  int64_t width = most_work / (numbers > 0 ? numbers : 1);
  return width < 1 ? 1 : width > MOST_PREFIXES ? MOST_PREFIXES : (size_t)width;
}

static void trace_back(const beam *b, int *steps) {
  int at = b->now[0]->last;
  for (int t = b->g->n - 1; t >= 0; t--, at = b->trail.at[at].before)
    steps[t] = b->trail.at[at].kernel;
}

bool order_beam(const order_graph *g, int *steps) {
  ir_arena *a = ir_arena_new();
  beam b = {.g = g, .arena = a, .width = width_for(g)};
  b.now = IR_NEW_ARRAY(a, prefix *, b.width + 1);
  b.next = IR_NEW_ARRAY(a, prefix *, b.width + 1);
  b.spare = IR_NEW_ARRAY(a, prefix *, 2 * b.width + 2);
  b.now[b.num_now++] = prefix_new(&b);
  for (int t = 0; t < g->n && b.looks <= most_looks; t++) {
    b.choices.num = 0;
    for (size_t i = 0; i < b.num_now; i++)
      add_choices(&b, (int)i);
    (b.width == 1 ? keep_one : keep_best)(&b);
    follow(&b);
  }
  bool whole = b.looks <= most_looks;
  if (whole)
    trace_back(&b, steps);
  ir_arena_free(a);
  return whole;
}
