// budgets.c: see budgets.h.
//
//   budget 71,680   its plan takes 72,000        refused, unless
//          72,000   its plan takes 71,104        this plan fits: it is taken
//          72,000   its plan takes 71,900        "this would work": 72,000, and less where halving finds it
//
// Searches for what runs again end at different plans for different budgets, and what they count is not to
// the byte what packing makes of it: neither is a larger budget always met, nor is a smaller one always missed.
#include "driver/budgets.h"

#include <inttypes.h>
#include <string.h>

#include "driver/probe.h"
#include "passes/checkpoint.h"
#include "passes/pass.h"

enum {
  FIRST_TRIES = 4, // upwards, for one that is met
  MOST_HALVINGS = 6,
  KERNELS_HALVED = 6000, // kernels of all halvings together
  SMALLEST = 64,         // buffers begin at multiples of it
};

typedef struct search {
  const draft_subject *s;
  draft *scheduled; // what all tries begin with
  int64_t budget, works;
  draft *instead;
} search;

// The plan for another budget than asked for is within that.
static void take_instead(search *x, int64_t tried) {
  draft *t = x->scheduled;
  if (!draft_arrange(x->s, t, NULL, tried) || !draft_plan(x->s, t))
    return;
  ir_set_config(t->module, (ir_setting){"memory_budget", IR_SET_NUM, (double)x->budget, NULL});
  *x->instead = *t;
  x->scheduled = NULL;
}

// Bytes of the plan for a budget; 0: it has errors.
static int64_t try_budget(search *x, int64_t tried) {
  probe p = {.budget = tried};
  if (!probe_plans(x->s, x->scheduled, &p, 1))
    return 0;
  if (p.bytes <= tried && (!x->works || tried < x->works))
    x->works = tried;
  if (p.bytes <= x->budget)
    take_instead(x, tried);
  return p.bytes;
}

static int num_halvings(const ir_module *m) {
  size_t kernels = 1;
  for (size_t i = 0; i < m->funcs.num; i++)
    kernels += m->funcs.at[i]->kernels.num;
  size_t num = KERNELS_HALVED / kernels;
  return num < MOST_HALVINGS ? (int)num : MOST_HALVINGS;
}

static void halve(search *x, const draft *refused) {
  ir_arena *a = ir_arena_new();
  int64_t proven = plan_find_facts(a, refused->plan, refused->module).bound_ws;
  ir_arena_free(a);
  bool hopeless = proven > x->budget;
  int64_t low = hopeless ? proven : x->budget; // nothing below it works
  // An answer within 1/64 is good enough; but where the budget itself may yet be met, that deserves some tries.
  int64_t near = x->works / 64, some = (x->works - low) / 8;
  near = !hopeless && some < near ? some : near;
  near = near > SMALLEST ? near : SMALLEST;
  for (int i = num_halvings(refused->module); i > 0 && x->works - low > near; i--) {
    int64_t middle = low + (x->works - low) / 2;
    try_budget(x, middle);
    if (x->instead->arena)
      return;
    low = x->works > middle ? middle : low;
  }
}

static void search_budgets(search *x, const draft *refused) {
  int64_t arena = refused->plan->arena_bytes;
  for (int i = 0; i < FIRST_TRIES && arena && !x->works && !x->instead->arena; i++)
    arena = try_budget(x, arena);
  if (x->works && !x->instead->arena)
    halve(x, refused);
}

int64_t budgets_find(const draft_subject *s, const char *define, const draft *refused,
                     int64_t budget, draft *instead) {
  draft scheduled = draft_new();
  search x = {.s = s, .scheduled = &scheduled, .budget = budget, .instead = instead};
  *instead = (draft){0};
  if (draft_load(s, &scheduled, define, NULL) && draft_schedule(s, &scheduled))
    search_budgets(&x, refused);
  if (x.scheduled)
    draft_free(x.scheduled);
  return x.works;
}

// What a pass that makes other kernels changes: how many there are, or what they store.
typedef struct kernels_facts {
  size_t num;
  int64_t stored; // bytes
} kernels_facts;

static kernels_facts facts_of(const ir_module *m) {
  kernels_facts x = {0, 0};
  for (size_t i = 0; i < m->funcs.num; i++)
    for (size_t k = 0; k < m->funcs.at[i]->kernels.num; k++) {
      const ir_kernel *kernel = m->funcs.at[i]->kernels.at[k];
      if (kernel->clone_of)
        continue;
      x.num++;
      for (size_t o = 0; o < kernel->outputs.num; o++)
        x.stored += ir_bytes(&kernel->outputs.at[o]->type);
    }
  return x;
}

static bool makes_others(const ir_module *m, const ir_module *than) {
  kernels_facts x = facts_of(m), y = facts_of(than);
  return x.num != y.num || x.stored != y.stored;
}

static bool have_same_bits(const ir_module *m, const ir_module *other) {
  ir_arena *a = ir_arena_new();
  bool same = cg_program_hash(a, m) == cg_program_hash(a, other);
  ir_arena_free(a);
  return same;
}

// A plan of other kernels of less than `limit` bytes, in `t`. False: there is none.
static bool plan_others(const draft_subject *s, const budgets_asked *x, const ir_module *than,
                        int64_t limit, draft *t) {
  return draft_load(s, t, x->define, NULL) && draft_schedule(s, t) &&
         makes_others(t->module, than) && // else nothing is gained
         plan_least_bytes(t->module) < limit && draft_arrange(s, t, x->policy, x->budget) &&
         draft_plan(s, t) && t->plan->arena_bytes < limit;
}

bool budgets_other_kernels(draft_subject *s, const budgets_asked *x, const ir_module *than,
                           int64_t bytes, draft *other) {
  draft_subject little = *s;
  little.remakes_little = true;
  if (s->edit || pass_remakes_little(than) || options_disables(s->o, "remake"))
    return false;
  draft t = draft_new();
  if (!plan_others(&little, x, than, bytes, &t) || !have_same_bits(t.module, than)) {
    draft_free(&t);
    return false;
  }
  if (s->o->verbose)
    options_say(s->o, OPTIONS_HELP, "kernels that make less again by themselves: %" PRId64 " bytes",
                t.plan->arena_bytes);
  s->remakes_little = true;
  *other = t;
  return true;
}

bool budgets_plan(draft_subject *s, const budgets_asked *x, int64_t limit, draft *t) {
  draft other;
  if (!draft_arrange(s, t, x->policy, x->budget) || !draft_plan(s, t))
    return false;
  if (!limit || t->plan->arena_bytes <= limit || plan_least_bytes(t->module) > limit ||
      !budgets_other_kernels(s, x, t->module, t->plan->arena_bytes, &other))
    return true;
  draft_free(t);
  *t = other;
  return true;
}

bool budgets_fit_with_auto(const draft_subject *s, const draft *refused, int64_t budget) {
  const char *best = checkpoint_names[CHECKPOINT_AUTO];
  const ir_setting *has = ir_find_config(refused->module, "checkpoint");
  if (!has || has->kind != IR_SET_STR || !strcmp(has->str, best))
    return false;
  options o = *s->o;
  o.checkpoint = best;
  draft_subject other = *s;
  other.o = &o;
  other.remakes_little = false; // they are tried anew
  budgets_asked x = {.policy = best, .budget = budget};
  draft t = draft_new();
  bool fits = draft_load(&other, &t, NULL, NULL) && draft_schedule(&other, &t) &&
              budgets_plan(&other, &x, budget, &t) && t.plan->arena_bytes <= budget;
  draft_free(&t);
  return fits;
}

bool budgets_fit_without(const draft_subject *s, const draft *refused, const char *pass,
                         int64_t budget) {
  draft_subject without = *s;
  without.without = pass;
  if (options_disables(s->o, pass))
    return false;
  draft t = draft_new();
  budgets_asked x = {.budget = budget};
  bool fits = plan_others(&without, &x, refused->module, budget + 1, &t);
  draft_free(&t);
  return fits;
}
