// chain.c: see chain.h. best(s, t, m) is the least time for the stages s .. t, forward and backward, when
// the input of s is there and beside it m slots may be used. It is the least of
//
//   alone   s = t: what its backward reads is made, and its backward runs
//   all     s keeps everything; best(s + 1, t, m - both of s); the backward of s
//   split   s .. k - 1 run forward and only the input of k is kept; best(k, t, m - that); then
//           best(s, k - 1, m), which begins with running forward again
//
// Rows of all m stand next to each other: the inner loop goes along them, two reads and a minimum. Which
// choice was best is not stored, but found again for the few (s, t, m) of a sequence.
#include "passes/chain.h"

#include <math.h>

// Sizes of a stage, in slots.
typedef struct slot_stage {
  float forward, again, backward;
  int out, kept, both, forward_peak, forward_all_peak, backward_peak, gradients;
} slot_stage;

struct chain_table {
  int num, slots;
  slot_stage *stages;
  float *best; // [s][t][m]
};

static float *row(const chain_table *t, int first, int last) {
  size_t at = (size_t)first * (size_t)t->num + (size_t)last;
  return t->best + at * ((size_t)t->slots + 1);
}

static int most(int a, int b) {
  return a > b ? a : b;
}

// Sizes beyond all slots are all the same.
static int to_slots(int64_t bytes, int64_t unit, int slots) {
  int64_t n = (bytes + unit - 1) / unit;
  return n > slots ? slots + 1 : (int)n;
}

static slot_stage round_up(const chain_stage *x, int64_t unit, int slots) {
  return (slot_stage){.forward = (float)x->forward,
                      .again = x->kept > 0 ? (float)x->again : 0,
                      .backward = (float)x->backward,
                      .out = to_slots(x->out, unit, slots),
                      .kept = to_slots(x->kept, unit, slots),
                      .both = to_slots(x->both, unit, slots),
                      .forward_peak = to_slots(x->forward_peak, unit, slots),
                      .forward_all_peak = to_slots(x->forward_all_peak, unit, slots),
                      .backward_peak = to_slots(x->backward_peak, unit, slots),
                      .gradients = to_slots(x->gradients, unit, slots)};
}

// --- choices -------------------------------------------------------------------------------------
// One of the choices for s .. t: it takes `seconds` + a[m - less] + b[m] for m >= least.
typedef struct choice {
  float seconds;
  const float *a, *b;
  int less, least;
} choice;

static int alone_least(const slot_stage *x) {
  return x->kept ? most(x->backward_peak, x->gradients + x->forward_all_peak) : x->backward_peak;
}

static choice keep_all(const chain_table *t, int first, int last) {
  const slot_stage *x = &t->stages[first];
  int forward = t->stages[last].gradients + x->forward_all_peak;
  int least = most(most(forward, x->backward_peak), x->both);
  return (choice){.seconds = x->forward + x->backward,
                  .a = row(t, first + 1, last),
                  .less = x->both,
                  .least = least};
}

// What running first .. k - 1 forward takes, for k that goes up by one.
typedef struct sweep {
  float seconds;
  int least;
} sweep;

static void sweep_on(sweep *w, const chain_table *t, int first, int last, int stage) {
  const slot_stage *x = &t->stages[stage];
  int input = stage > first ? t->stages[stage - 1].out : 0;
  w->seconds += x->forward;
  w->least = most(w->least, t->stages[last].gradients + input + x->forward_peak);
}

static choice split(const chain_table *t, const sweep *w, int first, int k, int last) {
  int kept = t->stages[k - 1].out;
  return (choice){.seconds = w->seconds,
                  .a = row(t, k, last),
                  .b = row(t, first, k - 1),
                  .less = kept,
                  .least = most(w->least, kept)};
}

static float seconds_of(const choice *c, int m) {
  return m < c->least ? INFINITY : c->seconds + c->a[m - c->less] + (c->b ? c->b[m] : 0);
}

// --- the table -----------------------------------------------------------------------------------
static void fill_alone(const chain_table *t, int stage) {
  const slot_stage *x = &t->stages[stage];
  float *out = row(t, stage, stage);
  for (int m = 0; m <= t->slots; m++)
    out[m] = m < alone_least(x) ? INFINITY : x->again + x->backward;
}

static void take_less(float *restrict out, const choice *c, int slots) {
  const float *a = c->a - c->less, *b = c->b;
  for (int m = c->least; m <= slots; m++) {
    float x = c->seconds + a[m] + b[m];
    out[m] = x < out[m] ? x : out[m];
  }
}

static void fill(const chain_table *t, int first, int last) {
  float *out = row(t, first, last);
  choice all = keep_all(t, first, last);
  for (int m = 0; m <= t->slots; m++)
    out[m] = seconds_of(&all, m);
  sweep w = {0};
  for (int k = first + 1; k <= last; k++) {
    sweep_on(&w, t, first, last, k - 1);
    choice c = split(t, &w, first, k, last);
    take_less(out, &c, t->slots);
  }
}

chain_table *chain_solve(ir_arena *a, const chain_stage *stages, int num, int64_t unit, int slots) {
  chain_table *t = IR_NEW(a, chain_table);
  *t = (chain_table){.num = num, .slots = slots};
  t->stages = IR_NEW_ARRAY(a, slot_stage, num);
  for (int i = 0; i < num; i++)
    t->stages[i] = round_up(&stages[i], unit, slots);
  t->best = IR_NEW_ARRAY(a, float, (size_t)num *(size_t)num *((size_t)slots + 1));
  for (int i = 0; i < num; i++)
    fill_alone(t, i);
  for (int length = 1; length < num; length++)
    for (int first = 0; first + length < num; first++)
      fill(t, first, first + length);
  return t;
}

double chain_seconds(const chain_table *t, int slots) {
  return row(t, 0, t->num - 1)[slots];
}

// --- sequences -----------------------------------------------------------------------------------
// The k at which s .. t is best split; s where s had best keep everything.
static int best_split(const chain_table *t, int first, int last, int m) {
  choice all = keep_all(t, first, last);
  float least = seconds_of(&all, m);
  int best = first;
  sweep w = {0};
  for (int k = first + 1; k <= last; k++) {
    sweep_on(&w, t, first, last, k - 1);
    choice c = split(t, &w, first, k, last);
    float x = seconds_of(&c, m);
    if (x < least) {
      least = x;
      best = k;
    }
  }
  return best;
}

typedef struct lister {
  const chain_table *t;
  ir_arena *arena;
  chain_ops out;
} lister;

static void list_op(lister *l, chain_op_kind kind, int stage) {
  chain_op op = {kind, stage};
  IR_PUSH(l->arena, l->out, op);
}

// Each call within a call is for fewer stages.
static void list(lister *l, int first, int last, int m) {
  while (first < last) {
    int k = best_split(l->t, first, last, m);
    if (k == first) {
      list_op(l, CHAIN_FORWARD_ALL, first);
      list(l, first + 1, last, m - l->t->stages[first].both);
      list_op(l, CHAIN_BACKWARD, first);
      return;
    }
    list_op(l, CHAIN_FORWARD_INPUT, first);
    for (int i = first + 1; i < k; i++)
      list_op(l, CHAIN_FORWARD, i);
    list(l, k, last, m - l->t->stages[k - 1].out);
    last = k - 1;
  }
  if (l->t->stages[first].kept)
    list_op(l, CHAIN_FORWARD_ALL, first);
  list_op(l, CHAIN_BACKWARD, first);
}

chain_ops chain_sequence(const chain_table *t, ir_arena *a, int slots) {
  lister l = {.t = t, .arena = a};
  if (chain_seconds(t, slots) < INFINITY)
    list(&l, 0, t->num - 1, slots);
  return l.out;
}
