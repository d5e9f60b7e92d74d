// test_replay.c: whatever is computed again, and for whatever budget: the step gives the same
// numbers, the IR verifies, the plan holds, its temporaries are those that the search has counted, and
// take no more memory than keeping everything (or than the budget, where it is met).
#include "passes/checkpoint.h"
#include "passes/plan.h"
#include "support_frontend.h"
#include "support_passes.h"
#include "tests/support_campaign.h"
#include "tests/unit/support_plan.h"

#include <string.h>

typedef struct subject {
  ir_arena *a;
  const ir_module *kept; // all kernels, nothing computed again
  plan *plan;
  test_values values;
  const char *what;
} subject;

static void check_plan_holds(const subject *s, ir_module *m, const plan *p, const char *how) {
  ir_buf faults = ir_buf_new(s->a);
  CHECK(plan_check(p, m, &faults) == 0, "%s, %s: %s", s->what, how, ir_buf_str(&faults));
}

static int count_clones(const ir_module *m) {
  int num = 0;
  for (size_t i = 0; i < m->funcs.num; i++)
    for (size_t k = 0; k < m->funcs.at[i]->kernels.num; k++)
      num += m->funcs.at[i]->kernels.at[k]->clone_of != NULL;
  return num;
}

// Applies the policy that `m` is configured for. Returns the plan.
static plan *apply(const subject *s, ir_module *m, const char *how) {
  ir_diags *d = diag_new(s->a);
  pass_run_memory_pipeline(m, d, NULL);
  CHECK(diag_num_errors(d) == 0, "%s, %s: errors", s->what, how);
  support_verifies(m, s->what);
  plan *p = test_plan(m);
  check_plan_holds(s, m, p, how);
  const char *where = "";
  test_values v = test_run(s->a, m, "step", 7);
  double off = test_difference(&s->values, &v, &where);
  CHECK(off == 0, "%s, %s: %s differs by %g", s->what, how, where, off);
  return p;
}

static int check_policy(const subject *s, checkpoint_policy policy) {
  ir_module *m = ir_clone(s->kept);
  ir_set_config(m, (ir_setting){"checkpoint", IR_SET_STR, 0, checkpoint_names[policy]});
  plan *p = apply(s, m, checkpoint_names[policy]);
  CHECK(p->bound_bytes <= s->plan->bound_bytes, "%s, %s: %lld bytes live, %lld with all kept",
        s->what, checkpoint_names[policy], (long long)p->bound_bytes,
        (long long)s->plan->bound_bytes);
  return count_clones(m);
}

// True: it is met.
static bool check_budget(const subject *s, int percent) {
  ir_module *m = ir_clone(s->kept);
  int64_t budget = s->plan->arena_bytes * percent / 100;
  ir_set_config(m, (ir_setting){"memory_budget", IR_SET_NUM, (double)budget, NULL});
  plan *p = apply(s, m, ir_format(s->a, "%d%%", percent));
  CHECK(p->arena_bytes <= s->plan->arena_bytes, "%s, %d%%: more than with all kept", s->what,
        percent);
  return p->arena_bytes <= budget;
}

// Kernels that were computed again; budgets that were met.
typedef struct tally {
  int clones, met;
} tally;

// What searches ask for, in one walk, is what lives that are written down amount to: nothing dropped, and values at random.
static void check_weighing(ir_arena *a, ir_module *m, const char *what) {
  replay *r = replay_new(a, sched_new(a, ir_find_func(m, "step")));
  unsigned char *drop = IR_NEW_ARRAY(a, unsigned char, r->s->num_values + 1);
  uint64_t seed = 1;
  for (int i = 0; i < 12; i++) {
    replay_steps steps = replay_make_steps(r, a, drop);
    sched_lives l = sched_find_lives(r->s, a, steps.at, steps.num);
    int64_t *live = IR_NEW_ARRAY(a, int64_t, steps.num + 1);
    int64_t most = sched_live_bytes(&l, steps.num, live);
    size_t peak = 0;
    CHECK(!sched_fits(r->s, steps.at, steps.num, most - 1) &&
              sched_fits(r->s, steps.at, steps.num, most),
          "%s, drop %d: %lld bytes live, which are not the least that they fit", what, i,
          (long long)most);
    int64_t weighed = sched_weigh(r->s, steps.at, steps.num, &peak);
    CHECK(most == weighed && peak == sched_find_peak(live, most),
          "%s, drop %d: %lld bytes live at step %zu, weighed %lld at %zu", what, i, (long long)most,
          sched_find_peak(live, most), (long long)weighed, peak);
    for (int v = 0; v < r->s->num_values; v++)
      drop[v] =
          (unsigned char)(r->turn[r->s->values[v].kernel] >= 0 ? test_random(&seed, 0, 3) : 0);
  }
}

static bool has_operand(sched_ins under, int in) {
  for (int i = 0; i < under.num; i++)
    if (under.at[i] == in)
      return true;
  return false;
}

// What kernels of one form may be computed over, found out for one of them, is so for each.
static void check_forms(ir_arena *a, ir_module *m, const char *what) {
  sched *s = sched_new(a, ir_find_func(m, "step"));
  for (int k = 0; k < s->num_kernels; k++)
    for (int at = 0; at < s->kernels[k].num_in * s->kernels[k].num_values; at++) {
      const sched_kernel *x = &s->kernels[k];
      const sched_in *in = &x->in[at % x->num_in];
      int out = at / x->num_in;
      const sched_value *to = &s->values[x->first_value + out];
      bool may = in->value >= 0 && !in->stretch && s->values[in->value].bytes == to->bytes &&
                 plan_may_overwrite(a, x->k, in->node, to->node);
      CHECK(may == has_operand(sched_find_under(s, k, out), at % x->num_in),
            "%s: whether %s may lie over %s is another form's answer", what, to->node->name,
            in->node->name);
    }
}

// Pairs of kernels that differ in one thing, on which the answer hangs: which operand is read a second time, turned; how
// an operand is turned; to which state an output goes.
static void check_forms_differ(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = test_parse(
      a,
      "mltc-ir 1\nmodule forms\nstate s : f32[8,8] role=param\nstate t : f32[8,8] role=param\n"
      "state v : f32[8,8] role=param\nstate w : f32[8,8] role=param\n"
      "func step ordered {\n"
      "  %x = input : f32[8,8]\n"
      "  kernel a loop {\n    %a = exp %x : f32[8,8]\n  }\n"
      "  kernel b loop {\n    %b = exp %x : f32[8,8]\n  }\n"
      "  %at = transpose %a {perm=[1,0]} : f32[8,8]\n"
      "  %bt = transpose %b {perm=[1,0]} : f32[8,8]\n"
      "  kernel c loop {\n    %ab = mul %a, %b : f32[8,8]\n    %c = add %ab, %at : f32[8,8]\n  }\n"
      "  kernel d loop {\n    %ab.2 = mul %a, %b : f32[8,8]\n    %d = add %ab.2, %bt : f32[8,8]\n  "
      "}\n"
      "  %ar = reshape %a : f32[4,4,4]\n"
      "  %ar.0 = transpose %ar {perm=[0,1,2]} : f32[4,4,4]\n"
      "  %ar.1 = transpose %ar {perm=[2,1,0]} : f32[4,4,4]\n"
      "  kernel e loop {\n    %e = exp %ar.0 : f32[4,4,4]\n  }\n"
      "  kernel f loop {\n    %f = exp %ar.1 : f32[4,4,4]\n  }\n"
      "  %s = read @s : f32[8,8]\n  %t = read @t : f32[8,8]\n"
      "  %tt = transpose %t {perm=[1,0]} : f32[8,8]\n"
      "  %v = read @v : f32[8,8]\n  %w = read @w : f32[8,8]\n"
      "  %wt = transpose %w {perm=[1,0]} : f32[8,8]\n"
      "  kernel g loop {\n    %g = sub %s, %tt : f32[8,8]\n  }\n"
      "  kernel h loop {\n    %h = sub %v, %wt : f32[8,8]\n  }\n"
      "  write @t, %g\n  write @v, %h\n  result output c = %c\n"
      "  result output d = %d\n  result output e = %e\n  result output f = %f\n}\n");
  CHECK(pass_run_pipeline(m, diag_new(a), NULL), "the passes report errors");
  ir_func *f = ir_find_func(m, "step");
  CHECK(f->kernels.num == 8, "%zu kernels", f->kernels.num);
  check_forms(a, m, "kernels of other forms");
  const sched *s = sched_new(a, f);
  CHECK(!s->writes.at[0].over_own && s->writes.at[1].over_own,
        "only the state that is read as it lies is written in place");
  ir_arena_free(a);
}

static void check_module(ir_arena *a, ir_module *m, const char *what, tally *t) {
  CHECK(pass_run_pipeline(m, diag_new(a), NULL), "%s: the passes report errors", what);
  check_weighing(a, m, what);
  check_forms(a, m, what);
  subject s = {.a = a, .kept = m, .what = what};
  s.plan = test_plan(ir_clone(m));
  s.values = test_run(a, m, "step", 7);
  for (checkpoint_policy p = CHECKPOINT_NONE; p < CHECKPOINT_AUTO; p++)
    t->clones += check_policy(&s, p);
  CHECK(check_policy(&s, CHECKPOINT_AUTO) == 0, "%s: auto computes again without a budget", what);
  static const int percents[] = {100, 90, 70, 50, 30};
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++)
    t->met += check_budget(&s, percents[i]);
}

static void check_networks(void) {
  for (int i = 0; i < test_part(SUPPORT_NUM_LAYERS); i++) {
    const char *layer = support_layers[i];
    ir_arena *a = ir_arena_new();
    tally t = {0};
    check_module(a, support_deep(a, layer, 96, 12), layer, &t);
    CHECK(t.clones > 0 && t.met >= 2, "%s: %d kernels computed again, %d budgets met", layer,
          t.clones, t.met);
    ir_arena_free(a);
  }
}

static void check_random(void) {
  tally t = {0};
  int num = test_campaign(40);
  for (uint64_t seed = 0; seed < (uint64_t)num; seed++) {
    ir_arena *a = ir_arena_new();
    ir_random_options o = {
        .seed = seed, .num_nodes = 60, .differentiable = true, .networks = seed % 2 == 0};
    check_module(a, ir_random_module(a, o), ir_format(a, "random module %d", (int)seed), &t);
    ir_arena_free(a);
  }
  CHECK(t.clones > num, "only %d kernels of random modules were computed again", t.clones);
}

// What the search counts is what the plan has: bytes, and order.
static void check_counts(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_deep(a, "return x + linear(gelu(linear(layernorm(x), 2*d)), d)", 96, 12);
  CHECK(pass_run_pipeline(m, diag_new(a), NULL), "the passes report errors");
  ir_func *f = ir_find_func(m, "step");
  replay *r = replay_new(a, sched_new(a, f));
  unsigned char *drop = IR_NEW_ARRAY(a, unsigned char, r->s->num_values + 1);
  checkpoint_parts(r, 3, true, CHECKPOINT_ALWAYS, drop);
  replay_steps steps = replay_make_steps(r, a, drop);
  CHECK(steps.num > f->kernels.num, "nothing is computed again");
  int64_t live = replay_try(r, drop).live_bytes,
          packed = replay_arena_bytes(r, &steps, 0, PLAN_COMPILE);
  size_t num = steps.num;
  replay_apply(r->s, &steps);
  CHECK(f->kernels.num == num, "%zu kernels for %zu steps", f->kernels.num, num);
  plan *p = test_plan(m);
  int64_t whole_run = plan_whole_run_bytes(m);
  CHECK(p->bound_bytes == whole_run + live, "%lld bytes live in the plan, counted %lld",
        (long long)(p->bound_bytes - whole_run), (long long)live);
  CHECK(p->arena_bytes == whole_run + packed, "%lld bytes packed in the plan, counted %lld",
        (long long)(p->arena_bytes - whole_run), (long long)packed);
  ir_arena_free(a);
}

// What is always dropped goes again when it was made on the way: less memory, more time.
static void check_depths(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_deep(a, "return tanh(linear(x, d))", 96, 12);
  CHECK(pass_run_pipeline(m, diag_new(a), NULL), "the passes report errors");
  replay *r = replay_new(a, sched_new(a, ir_find_func(m, "step")));
  unsigned char *drop = IR_NEW_ARRAY(a, unsigned char, r->s->num_values + 1);
  replay_outcome keep = replay_try(r, drop), depth[CHECKPOINT_NUM_DEPTHS];
  for (int i = 0; i < CHECKPOINT_NUM_DEPTHS; i++) {
    checkpoint_parts(r, 2, true, (checkpoint_depth)i, drop);
    depth[i] = replay_try(r, drop);
  }
  const replay_outcome *once = &depth[CHECKPOINT_ONCE], *always = &depth[CHECKPOINT_ALWAYS];
  CHECK(once->live_bytes < keep.live_bytes && always->live_bytes < once->live_bytes,
        "%lld bytes live; dropped once %lld, always %lld", (long long)keep.live_bytes,
        (long long)once->live_bytes, (long long)always->live_bytes);
  CHECK(always->num_again > once->num_again && always->seconds > once->seconds,
        "%d kernels run again, and %d where all goes again", once->num_again, always->num_again);
  ir_arena_free(a);
}

// Its own kernels only, and in its place: another member, or an operand of another place, is a fault.
static void check_clones_are_verified(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_deep(a, "return x + linear(gelu(linear(layernorm(x), 2*d)), d)", 96, 12);
  CHECK(pass_run_pipeline(m, diag_new(a), NULL), "the passes report errors");
  ir_set_config(m, (ir_setting){"checkpoint", IR_SET_STR, 0, "sqrt"});
  CHECK(pass_run_memory_pipeline(m, diag_new(a), NULL), "the passes report errors");
  ir_func *f = ir_find_func(m, "step");
  ir_kernel *clone = NULL;
  for (size_t i = 0; i < f->kernels.num; i++)
    if (f->kernels.at[i]->clone_of)
      clone = f->kernels.at[i];
  CHECK(clone != NULL, "nothing is computed again");
  const ir_kernel *first = clone ? clone->clone_of : NULL;
  ir_buf faults = ir_buf_new(a);
  for (size_t i = 0; clone && i < f->kernels.num; i++)
    if (f->kernels.at[i] != first && !f->kernels.at[i]->clone_of &&
        f->kernels.at[i]->id < clone->id) {
      clone->clone_of = f->kernels.at[i];
      CHECK(ir_verify(m, &faults) > 0, "a clone of '%s' passes for one of '%s'", first->name,
            f->kernels.at[i]->name);
    }
  ir_arena_free(a);
}

int main(void) {
  check_networks();
  check_random();
  check_forms_differ();
  check_counts();
  check_depths();
  check_clones_are_verified();
  return support_finish("test_replay");
}
