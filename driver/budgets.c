// budgets.c: see budgets.h.
//
//   budget 71,680   its plan takes 72,000        refused, unless
//          72,000   its plan takes 71,104        this plan fits: it is taken
//          72,000   its plan takes 71,900        "this would work": 72,000, and less where halving finds it
//
// Searches for what runs again end at different plans for different budgets, and what they count is not to
// the byte what packing makes of it: neither is a larger budget always met, nor is a smaller one always missed.
#include "driver/budgets.h"

enum {
  FIRST_TRIES = 4, // upwards, for one that is met
  MOST_HALVINGS = 6,
  KERNELS_HALVED = 6000, // kernels of all halvings together
  NEAR = 64,             // buffers begin at multiples of it
};

bool budgets_arrange(const draft_subject *s, draft *t, int64_t budget, int64_t instead) {
  bool ok = draft_load(s, t, NULL, NULL) && draft_schedule(s, t) &&
            draft_arrange(s, t, NULL, instead) && draft_plan(s, t);
  if (ok)
    ir_set_config(t->module, (ir_setting){"memory_budget", IR_SET_NUM, (double)budget, NULL});
  return ok && t->plan->arena_bytes <= budget;
}

typedef struct search {
  const draft_subject *s;
  int64_t budget;
  budgets found;
} search;

// Bytes of the plan for a budget; 0: it has errors.
static int64_t try_budget(search *x, int64_t tried) {
  draft t = draft_new();
  bool fits = budgets_arrange(x->s, &t, x->budget, tried);
  int64_t bytes = t.plan ? t.plan->arena_bytes : 0;
  draft_free(&t);
  if (fits)
    x->found.instead = tried;
  if (bytes && bytes <= tried && (!x->found.works || tried < x->found.works))
    x->found.works = tried;
  return bytes;
}

budgets budgets_find(const draft_subject *s, int64_t budget, int64_t arena, size_t kernels) {
  search x = {.s = s, .budget = budget};
  for (int i = 0; i < FIRST_TRIES && arena && !x.found.works; i++)
    arena = try_budget(&x, arena);
  size_t halvings = kernels ? KERNELS_HALVED / kernels : 0;
  if (halvings > MOST_HALVINGS)
    halvings = MOST_HALVINGS;
  int64_t low = budget;
  for (size_t i = 0; i < halvings && x.found.works - low > NEAR && !x.found.instead; i++) {
    int64_t middle = low + (x.found.works - low) / 2;
    try_budget(&x, middle);
    low = x.found.works > middle ? middle : low;
  }
  return x.found;
}
