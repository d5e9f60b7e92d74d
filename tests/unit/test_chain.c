// test_chain.c: the dynamic programme for chains (passes/chain.h).
//
// Against a search over all schedules in which what is kept stays until it is read, and no stage runs
// again while its output is there, for chains of up to 10 stages and every memory limit that matters; against the closed form for equal stages (A. Griewank,
// A. Walther, "Algorithm 799: revolve", 2000); and against bounds by counting. Every sequence is run by a
// simulator that knows nothing of the programme, and checks what is there, the memory and the time.
#include <math.h>
#include <string.h>
#include <time.h>

#include "passes/chain.h"
#include "tests/support_campaign.h"
#include "tests/support_check.h"
#include "tests/unit/support_passes.h"

enum { MOST = 10, SMALL = 7, LIMITS = 400 };

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// --- the simulator -------------------------------------------------------------------------------
// What is there between two operations. Output -1 is the input of the chain, which is not counted.
typedef struct machine {
  const chain_stage *s;
  int num;
  int next;      // stage whose backward is next
  bool out[256]; // [stage] its output, by itself
  bool all[256]; // [stage] its output and what its backward reads
  int64_t most;  // bytes at any time
  double seconds;
  const char *wrong;
} machine;

static bool has_input(const machine *m, int stage) {
  return stage == 0 || m->out[stage - 1] || m->all[stage - 1];
}

// Of a stage that kept everything, the output goes with the backward of the next one.
static int64_t bytes_there(const machine *m) {
  int64_t bytes = m->s[m->next].gradients;
  for (int i = 0; i <= m->next; i++)
    if (m->all[i])
      bytes += i == m->next ? m->s[i].kept : m->s[i].both;
    else if (m->out[i])
      bytes += m->s[i].out;
  return bytes;
}

static void run_forward(machine *m, chain_op op) {
  const chain_stage *x = &m->s[op.stage];
  if (!has_input(m, op.stage) || op.stage > m->next)
    m->wrong = "a stage runs forward without its input, or too late";
  bool all = op.kind == CHAIN_FORWARD_ALL, first = m->next == op.stage;
  m->most = larger(m->most, bytes_there(m) + (all ? x->forward_all_peak : x->forward_peak));
  m->seconds += first ? x->again : x->forward;
  if (op.kind == CHAIN_FORWARD && op.stage > 0)
    m->out[op.stage - 1] = false;
  m->all[op.stage] |= all;
  m->out[op.stage] = !all;
}

static void run_backward(machine *m, int stage) {
  const chain_stage *x = &m->s[stage];
  if (stage != m->next || !has_input(m, stage) || (x->kept && !m->all[stage]))
    m->wrong = "a backward stage runs without what it reads";
  int64_t own = x->gradients + (m->all[stage] ? x->kept : 0);
  m->most = larger(m->most, bytes_there(m) - own + x->backward_peak);
  m->seconds += x->backward;
  m->out[stage] = m->all[stage] = false;
  m->next--;
  if (m->next >= 0)
    m->out[m->next] = false;
}

static machine simulate(const chain_stage *s, int num, const chain_ops *ops) {
  machine m = {.s = s, .num = num, .next = num - 1};
  for (size_t i = 0; i < ops->num && !m.wrong; i++)
    if (ops->at[i].kind == CHAIN_BACKWARD)
      run_backward(&m, ops->at[i].stage);
    else
      run_forward(&m, ops->at[i]);
  if (!m.wrong && m.next >= 0)
    m.wrong = "not all backward stages run";
  return m;
}

static void check_sequence(const chain_stage *s, int num, const chain_table *t, int slots) {
  ir_arena *a = ir_arena_new();
  chain_ops ops = chain_sequence(t, a, slots);
  double want = chain_seconds(t, slots);
  CHECK((ops.num > 0) == (want < INFINITY), "%d stages in %d slots", num, slots);
  if (ops.num) {
    machine m = simulate(s, num, &ops);
    CHECK(!m.wrong, "%d stages in %d slots: %s", num, slots, m.wrong);
    CHECK(m.most <= slots, "%d stages take %d, not %d", num, (int)m.most, slots);
    CHECK(m.seconds == want, "%d stages in %d: %g, not %g", num, slots, m.seconds, want);
  }
  ir_arena_free(a);
}

// --- the search ----------------------------------------------------------------------------------
// All orders of operations. State: the next backward stage; for each stage below it nothing, its output
// or everything; and `head`, the last output that was made, which may still be thrown away. Nothing comes back
// to a state, so each is looked at once.
typedef struct searcher {
  const chain_stage *s;
  int num;
  int64_t limit;
  double *known; // [state] -1: not yet
  IR_VEC(size_t) touched;
  ir_arena *arena;
} searcher;

typedef struct state {
  int next, head; // head -1: none may be thrown away
  char has[MOST]; // 0, 'o' or 'a'
} state;

static size_t code_of(const state *x) {
  size_t code = (size_t)(x->head + 1);
  for (int i = 0; i <= x->next; i++)
    code = code * 3 + (x->has[i] == 'o' ? 1 : x->has[i] == 'a' ? 2 : 0);
  return code * MOST + (size_t)x->next;
}

static size_t num_codes(int num) {
  return (size_t)(pow(3, num) + 0.5) * (MOST + 1) * MOST + MOST;
}

static double search(searcher *z, state x);

// Of the stages below the next one.
static int64_t rest_of(const searcher *z, const state *x) {
  int64_t bytes = 0;
  for (int i = 0; i < x->next; i++)
    bytes += x->has[i] == 'a' ? z->s[i].both : x->has[i] == 'o' ? z->s[i].out : 0;
  return bytes;
}

static double try_backward(searcher *z, state x) {
  const chain_stage *s = &z->s[x.next];
  bool input = x.next == 0 || x.has[x.next - 1];
  if (!input || (s->kept && x.has[x.next] != 'a') || rest_of(z, &x) + s->backward_peak > z->limit)
    return INFINITY;
  if (x.next == 0)
    return s->backward;
  x.next--;
  x.has[x.next] = x.has[x.next] == 'a' ? 'a' : 0;
  x.head = -1;
  return s->backward + search(z, x);
}

// keep: what becomes of the input, where it may go.
static double try_forward(searcher *z, state x, int i, char what, bool keep) {
  const chain_stage *s = &z->s[i];
  int64_t peak = what == 'a' ? s->forward_all_peak : s->forward_peak;
  int64_t own = x.has[x.next] == 'a' ? z->s[x.next].kept : 0;
  if (rest_of(z, &x) + own + z->s[x.next].gradients + peak > z->limit)
    return INFINITY;
  double seconds = i == x.next ? s->again : s->forward;
  if (!keep)
    x.has[i - 1] = 0;
  x.has[i] = what;
  x.head = what == 'o' ? i : -1;
  return seconds + search(z, x);
}

static double try_all(searcher *z, const state *x) {
  double best = try_backward(z, *x);
  for (int i = 0; i <= x->next; i++) {
    if (x->has[i] || (i > 0 && !x->has[i - 1]))
      continue;
    best = fmin(best, try_forward(z, *x, i, 'a', true));
    if (i == x->next)
      continue;
    best = fmin(best, try_forward(z, *x, i, 'o', true));
    if (i > 0 && x->head == i - 1)
      best = fmin(best, try_forward(z, *x, i, 'o', false));
  }
  return best;
}

static double search(searcher *z, state x) {
  size_t code = code_of(&x);
  if (z->known[code] < 0) {
    z->known[code] = try_all(z, &x);
    IR_PUSH(z->arena, z->touched, code);
  }
  return z->known[code];
}

static double best_of_all(searcher *z, int64_t limit) {
  for (size_t i = 0; i < z->touched.num; i++)
    z->known[z->touched.at[i]] = -1;
  z->touched.num = 0;
  z->limit = limit;
  return search(z, (state){.next = z->num - 1, .head = -1});
}

static searcher new_searcher(ir_arena *a, const chain_stage *s, int num) {
  searcher z = {.s = s, .num = num, .arena = a, .known = IR_NEW_ARRAY(a, double, num_codes(num))};
  for (size_t i = 0; i < num_codes(num); i++)
    z.known[i] = -1;
  return z;
}

// --- random chains -------------------------------------------------------------------------------
static chain_stage random_stage(uint64_t *seed) {
  chain_stage s = {.forward = 1 + test_below(seed, 9), .backward = 1 + test_below(seed, 9)};
  s.out = 1 + test_below(seed, 5);
  s.kept = test_below(seed, 3) ? 1 + test_below(seed, 9) : 0;
  s.again = s.kept ? test_below(seed, 1 + (int)s.forward) : 0;
  s.both = larger(s.out, s.kept) + test_below(seed, 1 + (int)(s.out < s.kept ? s.out : s.kept));
  s.forward_peak = s.out + test_below(seed, 3);
  s.forward_all_peak = larger(s.both, s.forward_peak) + test_below(seed, 2);
  s.backward_peak = s.kept / 2 + 1 + test_below(seed, 8);
  return s;
}

static void random_chain(chain_stage *s, int num, uint64_t *seed) {
  for (int i = 0; i < num; i++)
    s[i] = random_stage(seed);
  for (int i = 0; i + 1 < num;
       i++) { // what goes from one backward stage to the next is part of both
    int64_t most =
        s[i].backward_peak < s[i + 1].backward_peak ? s[i].backward_peak : s[i + 1].backward_peak;
    s[i].gradients = test_below(seed, 1 + (int)most);
  }
}

// every: all limits; else those at which the optimum changes, and those below them. Returns how many.
static int compare_chain(const chain_stage *s, int num, bool every) {
  ir_arena *a = ir_arena_new();
  chain_table *t = chain_solve(a, s, num, 1, LIMITS);
  searcher z = new_searcher(a, s, num);
  int compared = 0;
  for (int m = 0; m < LIMITS; m++) {
    double got = chain_seconds(t, m);
    bool changes = got != chain_seconds(t, m + 1) || (m > 0 && got != chain_seconds(t, m - 1));
    bool past = m > 1 && got < INFINITY && got == chain_seconds(t, LIMITS) && !changes;
    if (past)
      break;
    if (!changes && !every)
      continue;
    double want = best_of_all(&z, m);
    CHECK(got == want, "%d stages in %d slots: %g, the best is %g", num, m, got, want);
    check_sequence(s, num, t, m);
    compared++;
  }
  ir_arena_free(a);
  return compared;
}

static void compare_with_search(void) {
  uint64_t seed = 7;
  chain_stage s[MOST];
  int limits = 0;
  for (int num = 1; num <= SMALL; num++)
    for (int i = 0; i < test_part(30); i++) {
      random_chain(s, num, &seed);
      limits += compare_chain(s, num, true);
    }
  for (int num = SMALL + 1; num <= MOST; num++)
    for (int i = 0; i < test_part(12 - num); i++) {
      random_chain(s, num, &seed);
      limits += compare_chain(s, num, false);
    }
  CHECK(limits > test_part(4500), "only %d limits", limits);
  printf("%d limits compared with all schedules\n", limits);
}

// --- equal stages --------------------------------------------------------------------------------
static double binomial(int n, int k) {
  double x = 1;
  for (int i = 1; i <= k; i++)
    x = x * (n - k + i) / i;
  return x;
}

// Forward steps that reverse `l` steps with `c` checkpoints, the start among them.
static double revolve(int l, int c) {
  int r = 0;
  while (binomial(c + r, c) < l)
    r++;
  return r == 0 ? 0 : r * l - binomial(c + r, c + 1);
}

// A backward step takes two slots (what is at work), and reads its input only.
static void check_revolve(void) {
  enum { STEPS = 60 };
  chain_stage s[STEPS];
  for (int i = 0; i < STEPS; i++)
    s[i] = (chain_stage){.forward = 1,
                         .out = 1,
                         .both = 1,
                         .forward_peak = 1,
                         .forward_all_peak = 1,
                         .backward_peak = 2};
  for (int l = 2; l <= STEPS; l++) {
    ir_arena *a = ir_arena_new();
    chain_table *t = chain_solve(a, s, l, 1, l + 2);
    for (int c = 1; c <= l; c++) {
      double got = chain_seconds(t, c + 2);
      CHECK(got == revolve(l, c), "%d steps, %d checkpoints: %g, not %g", l, c, got, revolve(l, c));
      check_sequence(s, l, t, c + 2);
    }
    ir_arena_free(a);
  }
}

// --- rounding and time ---------------------------------------------------------------------------
// Slots of some bytes: no sequence takes more than slots * unit, and finer slots are never slower
// where they divide the coarser.
static void check_rounding(void) {
  uint64_t seed = 3;
  chain_stage s[40];
  random_chain(s, 40, &seed);
  for (int i = 0; i < 40; i++)
    s[i].forward_all_peak += s[i].backward_peak += 2;
  ir_arena *a = ir_arena_new();
  chain_table *fine = chain_solve(a, s, 40, 1, 600), *coarse = chain_solve(a, s, 40, 4, 150);
  int fits = 0;
  for (int m = 0; m <= 150; m++) {
    chain_ops ops = chain_sequence(coarse, a, m);
    CHECK(chain_seconds(fine, 4 * m) <= chain_seconds(coarse, m), "%d slots", m);
    if (ops.num == 0)
      continue;
    machine x = simulate(s, 40, &ops);
    CHECK(!x.wrong && x.most <= 4 * m, "%d slots of 4: %d bytes", m, (int)x.most);
    fits++;
  }
  CHECK(fits > 50, "only %d", fits);
  ir_arena_free(a);
}

static void check_time(void) {
  enum { STAGES = 200 };
  static chain_stage s[STAGES];
  uint64_t seed = 5;
  random_chain(s, STAGES, &seed);
  ir_arena *a = ir_arena_new();
  clock_t start = clock();
  chain_table *t = chain_solve(a, s, STAGES, 4, 500);
  chain_ops ops = chain_sequence(t, a, 100);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  printf("200 stages, 500 slots: %.2f s, %zu operations in 100 slots\n", seconds, ops.num);
  CHECK(ops.num > 2 * STAGES, "%zu", ops.num);
  CHECK(seconds < 10, "%.2f s", seconds); // under sanitizers and load, too
  ir_arena_free(a);
}

int main(void) {
  compare_with_search();
  check_revolve();
  check_rounding();
  check_time();
  return failures != 0;
}
