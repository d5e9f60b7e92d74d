// plan_pack.c: puts intervals of time into memory, one above the other, with few holes.
//
//   in   [0, 4) 64 bytes    [1, 3) 128 bytes    [4, 6) 192 bytes
//   out  offset 0           offset 64           offset 0             height 192, the bound
//
// Intervals become items of parts that share no time. Each part is swept and placed in ten orders; what
// is above its goal then gets turns, of the exact search or of shaken orders, until all parts are low
// enough or the steps are spent. No part need be lower than the highest must be. docs/memory.md has the
// methods. Limits are counts of steps: the same input gives the same offsets, but for a caller's clock.
#include <string.h>

#include "passes/plan_pack_parts.h"

enum {
  COMPILE_STEPS = 60000000,     // where the bound is out of reach: about a tenth of a second,
  COMPILE_STEPS_OF_ONE = 10000, // and for each interval as much more: two seconds for 60,000
  TIMES_FOR_BUDGET = 5,
  QUICK_PART = 8,
  EXACT_MOST = 3000,  // items: the search looks at all that is left for each that it places
  LOOK_EVERY = 100000 // steps from one look at the clock to the next
};

bool pack_spend(pack_effort *e, int64_t steps) {
  const plan_pack_limits *l = e->limits;
  e->steps += steps;
  e->over |= e->steps >= e->most_steps;
  if (e->steps >= e->next_look) {
    e->over |= l->is_late && l->is_late(l->clock);
    e->next_look = e->steps + LOOK_EVERY;
  }
  return e->over;
}

bool pack_is_done(const pack_part *p) {
  return p->height < INT64_MAX && (p->height <= p->goal || p->effort->over);
}

void pack_keep(pack_part *p, const int64_t *offset, int64_t height) {
  if (height >= p->height)
    return;
  p->height = height;
  memcpy(p->offset, offset, sizeof *offset * p->n);
}

// What all parts must come down to: none need be lower than the highest must be.
static int64_t set_goals(pack_parts *s, int64_t capacity) {
  int64_t goal = capacity;
  for (size_t i = 0; i < s->num; i++)
    goal = s->at[i].bound > goal ? s->at[i].bound : goal;
  for (size_t i = 0; i < s->num; i++)
    s->at[i].goal = goal;
  return goal;
}

static int64_t highest(const pack_parts *s) {
  int64_t height = 0;
  for (size_t i = 0; i < s->num; i++)
    height = s->at[i].height > height ? s->at[i].height : height;
  return height;
}

typedef struct methods {
  pack_greedy *greedy;
  pack_repair *repair;
  pack_exact *exact;
} methods;

// Item by item only when the first turn was in vain: it costs as much as that, and seldom does better.
static void improve_part(pack_part *p, methods *m, int turn) {
  if (turn == 1)
    pack_greedy_place(m->greedy);
  if (p->n > EXACT_MOST) {
    pack_repair_round(m->repair);
    pack_greedy_round(m->greedy);
    return;
  }
  if (!m->exact)
    m->exact = pack_exact_new(p);
  pack_exact_round(m->exact);
}

// All parts get their turns: the highest sets the height.
static void pack_parts_within(pack_parts *s, int64_t capacity, const pack_effort *e) {
  methods *m = IR_NEW_ARRAY(s->arena, methods, s->num);
  set_goals(s, capacity);
  for (size_t i = 0; i < s->num; i++) {
    m[i].greedy = pack_greedy_new(&s->at[i]);
    m[i].repair = pack_repair_new(&s->at[i]);
    pack_greedy_sweep(m[i].greedy);
  }
  for (int turn = 0; highest(s) > set_goals(s, capacity) && !e->over; turn++)
    for (size_t i = 0; i < s->num; i++)
      if (!pack_is_done(&s->at[i]))
        improve_part(&s->at[i], &m[i], turn);
}

static int64_t compile_steps(size_t n) {
  return COMPILE_STEPS + COMPILE_STEPS_OF_ONE * (int64_t)n;
}

plan_packing plan_pack_within(plan_interval *iv, size_t n, const plan_pack_limits *limits) {
  ir_arena *own = ir_arena_new();
  pack_effort effort = {.limits = limits, .most_steps = limits->steps};
  if (effort.most_steps == 0)
    effort.most_steps = compile_steps(n);
  pack_parts s = pack_split(own, iv, n, &effort);
  int64_t bound = set_goals(&s, 0);
  pack_parts_within(&s, limits->capacity, &effort);
  for (size_t i = 0; i < n; i++)
    iv[i].offset = s.part_of[i] < 0 ? 0 : s.at[s.part_of[i]].offset[s.item_of[i]];
  plan_packing r = {highest(&s), bound, set_goals(&s, 0), effort.steps};
  ir_arena_free(own);
  return r;
}

int64_t plan_pack(plan_interval *iv, size_t n) {
  return plan_pack_for(iv, n, 0);
}

int64_t plan_pack_down_to(plan_interval *iv, size_t n, int64_t enough, plan_effort effort) {
  int64_t steps = compile_steps(n);
  if (effort == PLAN_QUICK)
    steps /= QUICK_PART;
  else if (effort == PLAN_HARD)
    steps *= TIMES_FOR_BUDGET;
  return plan_pack_within(iv, n, &(plan_pack_limits){.capacity = enough, .steps = steps}).height;
}

int64_t plan_pack_for(plan_interval *iv, size_t n, int64_t enough) {
  plan_packing p = plan_pack_within(iv, n, &(plan_pack_limits){0});
  if (p.height <= enough || p.proved > enough)
    return p.height;
  ir_arena *a = ir_arena_new();
  plan_interval *first = IR_NEW_ARRAY(a, plan_interval, n);
  memcpy(first, iv, n * sizeof *iv);
  int64_t height = plan_pack_down_to(iv, n, enough, PLAN_HARD);
  if (height > p.height) {
    memcpy(iv, first, n * sizeof *iv);
    height = p.height;
  }
  ir_arena_free(a);
  return height;
}
