// checkpoint_chain.c: the steps of a function whose forward pass is a chain of stages, by the dynamic
// programme of chain.h.
//
//   kernels   a b | c d | e loss     d.e | d.d d.c | d.b d.a      |: one value goes on
//   stages      0     1        2       2         1         0
//
// A stage is the kernels between two cuts (checkpoint_blocks.c). Its backward begins with the first kernel
// that reads what the stages behind it need not have: what it made, or its input. So the output of a stage
// belongs to the next one's backward, and where that reads inputs only, nothing is run again for it.
//
// Numbers of a stage leave out what only the whole function shows (operands that die in place, values
// that are read late, what is beside the loss). So the programme's memory is searched for: the most for
// which the steps fit the budget once they are packed. All memories are in one table.
#include "passes/checkpoint.h"

#include <math.h>
#include <string.h>

#include "passes/chain.h"
#include "passes/plan_parts.h"

enum {
  SLOTS = 500,
  MOST_STAGES = 160, // more are joined
  PROBES = 6,        // memories beyond the one that was found, as bytes need not grow evenly
};

typedef struct stages {
  replay *r;
  ir_arena *arena;
  int num;
  int *begin;      // [stage] its first kernel; [num]: the first behind the forward pass
  int *backward;   // [stage] the first kernel of its backward; [-1] stands for the end
  int *out;        // [stage] the value that goes on, -1
  int *stage;      // [kernel] of the forward pass
  bool *kept;      // [value] its stage's backward reads it
  bool *makes_out; // [kernel] runs again where the output of its stage is made; where `kept` is
  bool *makes_kept;
  chain_stage *at;
} stages;

// --- where stages begin --------------------------------------------------------------------------
static void find_begins(stages *x) {
  ir_arena *a = x->arena;
  checkpoint_cuts cuts = checkpoint_find_cuts(x->r, a);
  int most = (int)cuts.num < MOST_STAGES ? (int)cuts.num : MOST_STAGES - 1;
  x->begin = IR_NEW_ARRAY(a, int, most + 2);
  x->out = IR_NEW_ARRAY(a, int, most + 1);
  for (int i = 0; i < most; i++) {
    checkpoint_cut c = cuts.at[(int)cuts.num * i / most];
    if (x->num > 0 && x->out[x->num - 1] == c.value)
      continue;
    x->out[x->num++] = c.value;
    x->begin[x->num] = c.kernel + 1;
  }
  x->out[x->num++] = -1;
  x->begin[x->num] = x->r->forward + 1;
  x->stage = IR_NEW_ARRAY(a, int, x->r->s->num_kernels + 1);
  for (int i = 0; i < x->num; i++)
    for (int k = x->begin[i]; k < x->begin[i + 1]; k++)
      x->stage[k] = i;
}

// True for what may be made again, with the stage that made it.
static bool is_made(const stages *x, int value, int *stage) {
  int k = value < 0 ? x->r->s->num_kernels : x->r->s->values[value].kernel;
  bool made = k <= x->r->forward && replay_in_loss(x->r, k);
  *stage = made ? x->stage[k] : -1;
  return made;
}

// The first stage that must not have run its backward when kernel k runs.
static int level_of(const stages *x, int k) {
  const sched_kernel *kernel = &x->r->s->kernels[k];
  int level = x->num - 1, stage;
  for (int i = 0; i < kernel->num_in; i++)
    if (is_made(x, kernel->in[i].value, &stage)) {
      stage += x->out[stage] == kernel->in[i].value;
      level = stage < level ? stage : level;
    }
  return level;
}

// Where the backward of each stage begins, and what it reads of its own stage.
static void find_backward(stages *x) {
  const sched *s = x->r->s;
  int at = x->num - 1, stage;
  x->backward = IR_NEW_ARRAY(x->arena, int, x->num + 1);
  x->backward++;
  x->backward[at] = x->r->forward + 1;
  for (int k = x->r->forward + 1; k < s->num_kernels; k++) {
    for (int level = level_of(x, k); at > level;)
      x->backward[--at] = k;
    for (int i = 0; i < s->kernels[k].num_in; i++)
      if (is_made(x, s->kernels[k].in[i].value, &stage) && at <= stage)
        x->kept[s->kernels[k].in[i].value] = true;
  }
  while (at >= 0)
    x->backward[--at] = s->num_kernels;
}

static bool makes_any(const sched_kernel *k, const bool *wanted, int out) {
  for (int v = k->first_value; v < k->first_value + k->num_values; v++)
    if (wanted[v] || v == out)
      return true;
  return false;
}

// Kernels from which the values of `wanted` (and the outputs of stages) are made.
static void find_makers(stages *x, bool *wanted, bool outs, bool *makes) {
  const sched *s = x->r->s;
  int stage;
  for (int k = x->r->forward; k >= 0; k--) {
    const sched_kernel *kernel = &s->kernels[k];
    makes[k] =
        replay_in_loss(x->r, k) && makes_any(kernel, wanted, outs ? x->out[x->stage[k]] : -1);
    for (int i = 0; makes[k] && i < kernel->num_in; i++)
      if (is_made(x, kernel->in[i].value, &stage) && stage == x->stage[k])
        wanted[kernel->in[i].value] = true;
  }
}

static void find_kernels(stages *x) {
  size_t values = (size_t)x->r->s->num_values + 1;
  bool *wanted = IR_NEW_ARRAY(x->arena, bool, values);
  x->makes_out = IR_NEW_ARRAY(x->arena, bool, x->r->s->num_kernels + 1);
  x->makes_kept = IR_NEW_ARRAY(x->arena, bool, x->r->s->num_kernels + 1);
  find_makers(x, wanted, true, x->makes_out);
  memcpy(wanted, x->kept, values * sizeof *wanted);
  find_makers(x, wanted, false, x->makes_kept);
}

// --- what they take ------------------------------------------------------------------------------
static int64_t bytes_of(const stages *x, int value) {
  return value < 0 ? 0 : plan_align(x->r->s->values[value].bytes);
}

// The bytes of `value` if it goes with kernel k, its last reader.
static int64_t let_go(const stages *x, int stage, int value, int k, bool all) {
  bool stays = value == x->out[stage] || (all && x->kept[value]);
  return x->r->early_end[value] == k && !stays ? bytes_of(x, value) : 0;
}

static int64_t freed_by(const stages *x, int k, bool all) {
  const sched_kernel *kernel = &x->r->s->kernels[k];
  int64_t bytes = 0;
  int stage;
  for (int v = kernel->first_value; v < kernel->first_value + kernel->num_values; v++)
    bytes += let_go(x, x->stage[k], v, k, all);
  for (int i = 0; i < kernel->num_in; i++)
    if (is_made(x, kernel->in[i].value, &stage) && stage == x->stage[k])
      bytes += let_go(x, stage, kernel->in[i].value, k, all);
  return bytes;
}

// Most bytes of what stage i makes while it runs; all: what its backward reads, too.
static int64_t forward_peak(const stages *x, int i, bool all) {
  int64_t at = 0, most = 0;
  for (int k = x->begin[i]; k < x->begin[i + 1]; k++) {
    const sched_kernel *kernel = &x->r->s->kernels[k];
    if (!x->makes_out[k] && !(all && x->makes_kept[k]))
      continue;
    for (int v = kernel->first_value; v < kernel->first_value + kernel->num_values; v++)
      at += bytes_of(x, v);
    int64_t now = at + plan_align(kernel->k->workspace);
    most = now > most ? now : most;
    at -= freed_by(x, k, all);
  }
  return most;
}

static chain_stage measure_forward(const stages *x, int i) {
  const sched *s = x->r->s;
  chain_stage c = {.out = bytes_of(x, x->out[i])};
  for (int k = x->begin[i]; k < x->begin[i + 1]; k++) {
    c.forward += x->makes_out[k] || x->makes_kept[k] ? x->r->seconds[k] : 0;
    c.again += x->makes_kept[k] ? x->r->seconds[k] : 0;
    for (int v = s->kernels[k].first_value;
         v < s->kernels[k].first_value + s->kernels[k].num_values; v++)
      c.kept += x->kept[v] ? bytes_of(x, v) : 0;
  }
  c.both = c.kept + (x->out[i] >= 0 && !x->kept[x->out[i]] ? c.out : 0);
  c.forward_peak = forward_peak(x, i, false);
  c.forward_all_peak = forward_peak(x, i, true);
  c.forward_all_peak = c.both > c.forward_all_peak ? c.both : c.forward_all_peak;
  return c;
}

// Bytes that are live at each kernel behind the forward pass: made there, and, of what the forward
// pass made, what the stage has kept whose backward runs; and those made there that are live since before.
typedef struct gradients {
  int64_t *live, *before; // [kernel]
} gradients;

static void add_kept(const stages *x, const sched_life *life, const gradients *g) {
  if (life->value < 0 || !x->kept[life->value])
    return;
  int stage = x->stage[life->kernel], end = x->backward[stage - 1];
  if (life->last < x->backward[stage])
    return;
  g->live[x->backward[stage]] += plan_align(life->bytes);
  g->live[life->last < end ? life->last + 1 : end] -= plan_align(life->bytes);
}

static gradients find_gradients(const stages *x) {
  size_t n = (size_t)x->r->s->num_kernels;
  gradients g = {IR_NEW_ARRAY(x->arena, int64_t, n + 2), IR_NEW_ARRAY(x->arena, int64_t, n + 2)};
  sched_lives l = sched_find_lives(x->r->s, x->arena, sched_order_as_it_is(x->r->s, x->arena), n);
  for (size_t i = 0; i < l.at.num; i++) {
    const sched_life *life = &l.at.at[i];
    if (life->kernel <= x->r->forward) {
      add_kept(x, life, &g);
      continue;
    }
    int64_t bytes = plan_align(life->bytes);
    if (life->reuses < 0 || life->last > life->first) {
      g.live[life->first + (life->reuses >= 0)] += bytes;
      g.live[life->last + 1] -= bytes;
    }
    g.before[life->first + 1] += bytes;
    g.before[life->last + 1] -= bytes;
  }
  for (size_t k = 1; k <= n; k++) {
    g.live[k] += g.live[k - 1];
    g.before[k] += g.before[k - 1];
  }
  return g;
}

static void measure(stages *x) {
  gradients g = find_gradients(x);
  x->at = IR_NEW_ARRAY(x->arena, chain_stage, x->num);
  for (int i = 0; i < x->num; i++) {
    chain_stage *c = &x->at[i];
    *c = measure_forward(x, i);
    c->backward_peak = c->gradients = g.before[x->backward[i]];
    for (int k = x->backward[i]; k < x->backward[i - 1]; k++) {
      c->backward += x->r->seconds[k];
      c->backward_peak = g.live[k] > c->backward_peak ? g.live[k] : c->backward_peak;
    }
  }
}

// --- steps ---------------------------------------------------------------------------------------
static void push_range(const stages *x, int from, int to, replay_steps *out) {
  for (int k = from; k < to; k++)
    IR_PUSH(x->r->arena, *out, k);
}

static void push_again(const stages *x, int i, bool makes_out, bool makes_kept, replay_steps *out) {
  for (int k = x->begin[i]; k < x->begin[i + 1]; k++)
    if ((makes_out && x->makes_out[k]) || (makes_kept && x->makes_kept[k]))
      IR_PUSH(x->r->arena, *out, k);
}

static bool is_backward_next(const chain_ops *ops, size_t i) {
  return i + 1 < ops->num && ops->at[i + 1].kind == CHAIN_BACKWARD &&
         ops->at[i + 1].stage == ops->at[i].stage;
}

// The forward pass as it is, once; then what the operations name. No steps: they are too many.
static replay_steps steps_of(const stages *x, const chain_ops *ops) {
  replay_steps out = {0};
  int ran = 0; // stages
  for (size_t i = 0; i < ops->num; i++) {
    chain_op op = ops->at[i];
    bool first = op.stage == ran;
    if (first) {
      push_range(x, x->begin[ran], x->begin[ran + 1], &out);
      ran++;
    }
    if (op.kind == CHAIN_BACKWARD)
      push_range(x, x->backward[op.stage], x->backward[op.stage - 1], &out);
    else if (!first)
      push_again(x, op.stage, !is_backward_next(ops, i), op.kind == CHAIN_FORWARD_ALL, &out);
    if (out.num > (size_t)x->r->s->num_kernels * REPLAY_MAX_TIMES)
      return (replay_steps){0};
  }
  return out;
}

// --- the search for a memory ---------------------------------------------------------------------
typedef struct search {
  const stages *x;
  const chain_table *table;
  int64_t budget;
  replay_steps best;
  replay_outcome outcome;
  bool found;
} search;

static void keep(search *s, const replay_steps *steps, replay_outcome o, bool fits) {
  bool better = fits ? !s->found || o.seconds < s->outcome.seconds
                     : !s->found && o.live_bytes < s->outcome.live_bytes;
  if (!better)
    return;
  s->best = *steps;
  s->outcome = o;
  s->found = fits;
}

static bool fits(search *s, int slots) {
  chain_ops ops = chain_sequence(s->table, s->x->arena, slots);
  replay_steps steps = steps_of(s->x, &ops);
  replay_outcome o = replay_weigh(s->x->r, &steps);
  bool ok = o.live_bytes <= s->budget &&
            replay_arena_bytes(s->x->r, &steps, s->budget, PLAN_COMPILE) <= s->budget;
  keep(s, &steps, o, ok);
  return ok;
}

// The next memory in which less time is taken.
static int next_faster(const chain_table *t, int slots) {
  double seconds = chain_seconds(t, slots);
  while (slots <= SLOTS && chain_seconds(t, slots) == seconds)
    slots++;
  return slots;
}

static void search_memory(search *s) {
  int low = 0, high = SLOTS + 1;
  while (low < SLOTS && chain_seconds(s->table, low) == INFINITY)
    low++;
  while (low < high) { // all below `low` fit, or there is no sequence; `high` does not
    int middle = low + (high - low) / 2;
    if (fits(s, middle))
      low = middle + 1;
    else
      high = middle;
  }
  for (int i = 0; i < PROBES && low <= SLOTS; i++) {
    fits(s, low);
    low = next_faster(s->table, low);
  }
}

// What is live at most when all is kept; the budget, which the programme's bytes need not match.
static int64_t find_limit(const stages *x, int64_t budget) {
  int64_t all = 0, most = 0;
  for (int i = 0; i < x->num; i++) {
    const chain_stage *c = &x->at[i];
    int64_t work = c->backward_peak + c->forward_all_peak;
    all += c->both;
    most = work > most ? work : most;
  }
  int64_t near = budget + budget / 2;
  return all + most < near ? all + most : near;
}

bool checkpoint_chain(replay *r, int64_t budget, replay_steps *out) {
  stages x = {.r = r, .arena = ir_arena_new()};
  search s = {.x = &x, .budget = budget, .outcome = {.live_bytes = INT64_MAX}};
  x.kept = IR_NEW_ARRAY(x.arena, bool, r->s->num_values + 1);
  if (r->forward >= 0 && budget > 0)
    find_begins(&x);
  if (x.num > 2) {
    find_backward(&x);
    find_kernels(&x);
    measure(&x);
    // Each kept size may be rounded up by a slot.
    int64_t unit = find_limit(&x, budget) / (SLOTS - x.num) + 1;
    s.table = chain_solve(x.arena, x.at, x.num, unit, SLOTS);
    search_memory(&s);
  }
  ir_arena_free(x.arena);
  *out = s.best;
  return s.found;
}
