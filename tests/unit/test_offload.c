// test_offload.c: whatever waits in memory of the host, and for whatever budget and however slow the copies:
// the step gives the same numbers, the IR verifies and reads back, the plan holds, and takes what was counted.
// Where copies have all the time that they want, kernels do not wait; where they have none, they do.
#include "passes/offload.h"
#include "passes/cost.h"
#include "passes/plan.h"
#include "support_frontend.h"
#include "support_passes.h"
#include "tests/support_campaign.h"
#include "tests/unit/support_plan.h"

#include <string.h>

enum { FAMILIES = ~0u };

typedef struct subject {
  ir_arena *a;
  const ir_module *kept; // all kernels, in their final order, nothing sent
  plan *plan;
  test_values values;
  const char *what;
} subject;

static int count_family(const ir_module *m, ir_family family) {
  int num = 0;
  for (size_t i = 0; i < m->funcs.num; i++)
    for (size_t k = 0; k < m->funcs.at[i]->kernels.num; k++)
      num += m->funcs.at[i]->kernels.at[k]->family == family;
  return num;
}

// As text and back, which leaves out what passes find anew.
static const char *text_of(const subject *s, const char *text, const char *how) {
  ir_buf out = ir_buf_new(s->a);
  const char *why;
  ir_module *m = support_parse(s->a, text, &why);
  if (CHECK(m, "%s, %s: %s", s->what, how, m ? "" : why))
    ir_print(m, &out);
  return ir_buf_str(&out);
}

static void check_text(const subject *s, const ir_module *m, const char *how) {
  ir_buf text = ir_buf_new(s->a);
  ir_print(m, &text);
  const char *once = text_of(s, ir_buf_str(&text), how), *twice = text_of(s, once, how);
  CHECK(!strcmp(once, twice), "%s, %s: the text reads back as another", s->what, how);
}

static plan *check_module(const subject *s, ir_module *m, const char *how) {
  support_verifies(m, s->what);
  check_text(s, m, how);
  plan *p = test_plan(m);
  ir_buf faults = ir_buf_new(s->a);
  CHECK(plan_check(p, m, &faults) == 0, "%s, %s: %s", s->what, how, ir_buf_str(&faults));
  const char *where = "";
  test_values v = test_run(s->a, m, "step", 7);
  double off = test_difference(&s->values, &v, &where);
  CHECK(off == 0, "%s, %s: %s differs by %g", s->what, how, where, off);
  return p;
}

// --- the choice alone ----------------------------------------------------------------------------
typedef struct tally {
  int sent, fitting, free, waiting;
} tally;

// What kernels took before there were transfers between them: what reads a view of a copy may be said to take some
// bytes more than what read one of the buffer itself.
static double *seconds_beside(ir_arena *a, const ir_func *f, const double *before) {
  double *seconds = IR_NEW_ARRAY(a, double, f->kernels.num + 1);
  for (size_t i = 0; i < f->kernels.num; i++)
    if (!ir_is_transfer(f->kernels.at[i]))
      seconds[i] = *before++;
  return seconds;
}

static void check_choice(const subject *s, int percent, double bandwidth, tally *t) {
  ir_module *m = ir_clone(s->kept);
  const char *how = ir_format(s->a, "%d%%, %g bytes in a second", percent, bandwidth);
  ir_func *f = ir_find_func(m, "step");
  dom_find_stretches(m);
  sched *x = sched_new(s->a, f);
  replay_steps steps = {sched_order_as_it_is(x, s->a), f->kernels.num, f->kernels.num};
  int64_t budget = s->plan->temp_bytes * percent / 100;
  const double *seconds = cost_of_kernels(s->a, f);
  offload_choice c = offload_choose(s->a, x, &steps, seconds, budget, bandwidth);
  offload_apply(x, &c);
  double waiting = offload_waiting(s->a, f, seconds_beside(s->a, f, seconds), bandwidth);
  dom_forget_stretches(m);
  plan *p = check_module(s, m, how);
  CHECK(p->temp_bytes <= c.arena_bytes, "%s, %s: %lld bytes, counted %lld", s->what, how,
        (long long)p->temp_bytes, (long long)c.arena_bytes);
  CHECK(!c.fits || c.arena_bytes <= budget, "%s, %s: does not fit", s->what, how);
  CHECK(percent < 100 || c.moves.num == 0, "%s, %s: sent what fits", s->what, how);
  CHECK((c.moves.num > 0) == (p->host_bytes > 0), "%s, %s: nothing on the host", s->what, how);
  CHECK(waiting >= 0.999 * c.waiting && waiting <= 1.001 * c.waiting,
        "%s, %s: waits %g, counted %g", s->what, how, waiting, c.waiting);
  t->sent += (int)c.moves.num;
  t->fitting += c.fits;
  t->free += c.fits && c.moves.num && c.waiting == 0;
  t->waiting += c.waiting > 0;
}

// --- with what runs again ------------------------------------------------------------------------
static void check_pipeline(const subject *s, int percent, tally *t) {
  ir_module *m = ir_clone(s->kept);
  const char *how = ir_format(s->a, "budget of %d%%", percent);
  int64_t budget = s->plan->arena_bytes * percent / 100;
  ir_set_config(m, (ir_setting){"memory_budget", IR_SET_NUM, (double)budget, NULL});
  ir_set_config(m, (ir_setting){"host_bandwidth", IR_SET_NUM, 1e9, NULL});
  pass_options o = {.families = FAMILIES};
  CHECK(pass_run_memory_pipeline(m, diag_new(s->a), &o), "%s, %s: errors", s->what, how);
  plan *p = check_module(s, m, how);
  CHECK(percent < 100 || count_family(m, IR_FAMILY_SEND) == 0, "%s, %s: sent what fits", s->what,
        how);
  CHECK(count_family(m, IR_FAMILY_SEND) == count_family(m, IR_FAMILY_FETCH),
        "%s, %s: other fetches than sends", s->what, how);
  t->sent += count_family(m, IR_FAMILY_SEND);
  t->fitting += p->arena_bytes <= budget;
}

static void check(ir_arena *a, ir_module *m, const char *what, tally *choice, tally *both) {
  CHECK(pass_run_pipeline(m, diag_new(a), NULL), "%s: the passes report errors", what);
  CHECK(pass_run_memory_pipeline(m, diag_new(a), NULL), "%s: the passes report errors", what);
  subject s = {.a = a, .kept = m, .what = what};
  s.plan = test_plan(ir_clone(m));
  s.values = test_run(a, m, "step", 7);
  static const int percents[] = {100, 90, 60, 30};
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
    check_choice(&s, percents[i], 1e12, choice);
    check_choice(&s, percents[i], 2e9, choice);
    check_choice(&s, percents[i], 1e6, choice);
    check_pipeline(&s, percents[i], both);
  }
}

static void check_networks(void) {
  for (int i = 0; i < test_part(SUPPORT_NUM_LAYERS); i++) {
    const char *layer = support_layers[i];
    ir_arena *a = ir_arena_new();
    tally choice = {0}, both = {0};
    check(a, support_deep(a, layer, 256, 10), layer, &choice, &both);
    CHECK(choice.sent > 20 && choice.fitting >= 8 && choice.free >= 2 && choice.waiting >= 2,
          "%s: %d values sent, %d budgets met, %d without and %d with waiting", layer, choice.sent,
          choice.fitting, choice.free, choice.waiting);
    CHECK(both.sent > 0 && both.fitting >= 3, "%s: %d values sent, %d budgets met", layer,
          both.sent, both.fitting);
    ir_arena_free(a);
  }
}

static void check_random(void) {
  tally choice = {0}, both = {0};
  int num = test_campaign(12);
  for (uint64_t seed = 0; seed < (uint64_t)num; seed++) {
    ir_arena *a = ir_arena_new();
    ir_random_options o = {
        .seed = seed, .num_nodes = 60, .differentiable = true, .networks = seed % 2 == 0};
    check(a, ir_random_module(a, o), ir_format(a, "random module %d", (int)seed), &choice, &both);
    ir_arena_free(a);
  }
  CHECK(choice.sent > 25 * num / 12, "only %d values of random modules were sent", choice.sent);
}

int main(void) {
  check_networks();
  check_random();
  return support_finish("test_offload");
}
