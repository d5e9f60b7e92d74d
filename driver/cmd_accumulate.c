// cmd_accumulate.c: see cmd_accumulate.h.
//
//   let B = 64                      batches of 64, 32, 16, ... : all divisors, fewest parts first
//     1: does not fit               (also with all that the policy of --checkpoint computes again)
//     2: fits, kernels run again
//     4: fits, nothing runs again   more parts only load parameters more often: the search ends
//
// Every trial is a whole plan, but where one kernel needs more than the budget (plan_least_bytes): that cannot
// fit. Of what fits, the least predicted time of an optimiser step wins, and of equals the fewest parts.
#include "driver/cmd_accumulate.h"

#include <string.h>

#include "driver/budgets.h"
#include "passes/cost.h"
#include "passes/offload.h"
#include "passes/plan_facts.h"

typedef struct attempt {
  int64_t parts;  // 0: none
  bool hopeless;  // not planned: it needs more than the budget
  int64_t bytes;  // of the plan; or no plan takes less
  double seconds; // of an optimiser step
  bool again;     // kernels run again
} attempt;

typedef struct division {
  ir_arena *a;
  draft_subject s;
  int64_t budget;
  fe_vary batch;       // no name: there is none
  draft whole, broken; // as the file has it; the first that has errors besides, or no batch
  attempt best;        // that fits
  attempt one, least;  // the whole; of several parts that of the fewest bytes, planned ones first
  double undivided;    // seconds of a step that is whole and keeps all
} division;

// --- one trial -------------------------------------------------------------------------------
static double seconds_of(draft *t, const char *name) {
  const ir_func *f = ir_find_func(t->module, name);
  if (!f)
    return 0;
  const double *seconds = cost_of_kernels(t->arena, f);
  double sum =
      ir_has_transfers(f) ? offload_waiting(t->arena, f, seconds, offload_bandwidth(t->module)) : 0;
  for (size_t i = 0; i < f->kernels.num; i++)
    sum += seconds[i];
  return sum;
}

static double seconds_of_step(draft *t) {
  const ir_setting *k = ir_find_config(t->module, "accumulate");
  return seconds_of(t, "step") + ((k ? k->num : 1) - 1) * seconds_of(t, "accum");
}

static bool runs_again(const ir_module *m) {
  for (size_t i = 0; i < m->funcs.num; i++)
    if (ir_has_clones(m->funcs.at[i]) || ir_has_transfers(m->funcs.at[i]))
      return true;
  return false;
}

static int64_t batch_of(const division *x) {
  return x->batch.value;
}

// A state must not depend on how many samples run at a time: not one row for each.
static bool has_same_states(const division *x, draft *t) {
  for (size_t i = 0; i < x->whole.module->states.num; i++) {
    const ir_state *s = x->whole.module->states.at[i];
    const ir_state *part = ir_find_state(t->module, s->name);
    if (part && ir_same_type(&s->type, &part->type))
      continue;
    diag_error(t->diags, s->loc, "E0225",
               "state '%s' depends on the batch '%s': it cannot be run in parts", s->name,
               x->batch.name);
    return false;
  }
  return true;
}

static const ir_node *find_input(const ir_func *f, const char *name) {
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_INPUT && strcmp(f->nodes.at[i]->name, name) == 0)
      return f->nodes.at[i];
  return NULL;
}

// Samples are what they were: the batch stands in the first dimension only. Passes may have dropped
// inputs of the whole.
static bool has_same_samples(const division *x, draft *t) {
  const ir_func *f = ir_find_func(t->module, "step");
  for (size_t i = 0; i < f->nodes.num && f->nodes.at[i]->op == IR_INPUT; i++) {
    const ir_node *part = f->nodes.at[i];
    const ir_node *whole = find_input(ir_find_func(x->whole.module, "step"), part->name);
    ir_type type = part->type;
    type.dims[0] = x->batch.value;
    if (!whole || ir_same_type(&whole->type, &type))
      continue;
    diag_error(t->diags, part->loc, "E0225",
               "the batch '%s' is in more than the first dimension of '%s': it cannot be run in "
               "parts",
               x->batch.name, part->name);
    return false;
  }
  return true;
}

static draft_subject subject_of(const division *x, int64_t parts) {
  draft_subject s = x->s;
  if (parts > 1)
    s.split = (fe_split){x->batch.name, parts};
  return s;
}

static draft load(const division *x, int64_t parts) {
  draft_subject s = subject_of(x, parts);
  draft t = draft_new();
  if (draft_load(&s, &t, NULL, NULL) && parts > 1 &&
      !(has_same_states(x, &t) && has_same_samples(x, &t)))
    t.module = NULL;
  return t;
}

static void keep_if_first(draft *kept, draft t) {
  if (kept->arena)
    draft_free(&t);
  else
    *kept = t;
}

static bool is_less(const attempt *r, const attempt *than) {
  if (!than->parts || r->hopeless != than->hopeless)
    return !than->parts || than->hopeless;
  return r->bytes < than->bytes;
}

static void compare(division *x, attempt r) {
  if (r.bytes <= x->budget && (!x->best.parts || r.seconds < x->best.seconds))
    x->best = r;
  if (r.parts == 1)
    x->one = r;
  else if (is_less(&r, &x->least))
    x->least = r;
}

static void say_attempt(const division *x, const attempt *r) {
  if (r->hopeless)
    fprintf(stderr, "micro-batches: %lld, bytes: at least %lld\n", (long long)r->parts,
            (long long)r->bytes);
  else
    fprintf(stderr, "micro-batches: %lld, bytes: %lld, time: %.6f\n", (long long)r->parts,
            (long long)r->bytes, r->seconds / x->undivided);
}

// False: it has errors.
static bool schedule(division *x, draft *t, int64_t parts) {
  if (!t->module || !draft_schedule(&x->s, t))
    return false;
  if (parts == 1)
    x->undivided = seconds_of_step(t);
  return true;
}

static void take_plan(draft *t, attempt *r) {
  r->bytes = t->plan->arena_bytes;
  r->seconds = seconds_of_step(t);
  r->again = runs_again(t->module);
}

// A whole batch that a compilation fits by the plan for another budget is not divided.
static bool fits_otherwise(const division *x, const draft_subject *s, const draft *refused,
                           attempt *r) {
  draft instead = {0};
  budgets_find(s, NULL, refused, x->budget, &instead);
  if (!instead.arena)
    return false;
  take_plan(&instead, r);
  draft_free(&instead);
  return true;
}

// False: it has errors.
static bool plan_attempt(const division *x, draft *t, attempt *r) {
  draft_subject s = subject_of(x, r->parts);
  budgets_asked asked = {.budget = x->budget};
  if (!budgets_plan(&s, &asked, x->budget, t))
    return false;
  bool whole = r->parts == 1 && !x->s.edit;
  if (t->plan->arena_bytes <= x->budget || !whole || !fits_otherwise(x, &s, t, r))
    take_plan(t, r);
  return true;
}

// False: it has errors. Nothing is planned that takes longer than what fits even if all of it is kept.
static bool try_parts(division *x, draft *t, int64_t parts) {
  if (!schedule(x, t, parts))
    return false;
  if (x->best.parts && seconds_of_step(t) >= x->best.seconds)
    return true;
  attempt r = {.parts = parts, .bytes = plan_least_bytes(t->module)};
  r.hopeless = r.bytes > x->budget;
  if (!r.hopeless && !plan_attempt(x, t, &r))
    return false;
  compare(x, r);
  if (x->s.o->verbose)
    say_attempt(x, &r);
  return true;
}

// --- the search ------------------------------------------------------------------------------
static void find_batch(division *x) {
  fe_vary v = {.divide = true};
  draft t = draft_new();
  if (!draft_load(&x->s, &t, NULL, &v)) {
    keep_if_first(&x->broken, t);
    return;
  }
  x->batch = (fe_vary){ir_strdup(x->a, v.name), v.value, true};
  draft_free(&t);
}

static bool try_division(division *x, int64_t parts) {
  draft t = load(x, parts);
  bool ok = try_parts(x, &t, parts);
  if (ok)
    draft_free(&t);
  else
    keep_if_first(&x->broken, t);
  return ok;
}

typedef IR_VEC(int64_t) numbers;

static numbers find_divisors(const division *x) {
  numbers all = {0};
  for (int64_t parts = 2; parts <= batch_of(x); parts++)
    if (batch_of(x) % parts == 0)
      IR_PUSH(x->a, all, parts);
  return all;
}

static void try_divisors(division *x, const numbers *divisors) {
  for (size_t i = 0; i < divisors->num && !(x->best.parts && !x->best.again); i++)
    try_division(x, divisors->at[i]);
}

// Tries the most parts that have no errors. Returns how many of the divisors are no more; 0: all have errors.
static size_t try_most(division *x, const numbers *divisors) {
  size_t num = divisors->num;
  while (num > 0 && !try_division(x, divisors->at[num - 1]))
    num--;
  return num;
}

// The fewest parts that fit, if the most that have no errors do: by halves, as more parts take less.
static void halve_divisors(division *x) {
  numbers divisors = find_divisors(x);
  size_t low = 0, last = try_most(x, &divisors) - 1;
  attempt fits = x->best; // as divisors.at[last]
  while (fits.parts && low < last) {
    size_t middle = low + (last - low) / 2;
    x->best = (attempt){0};
    try_division(x, divisors.at[middle]);
    if (x->best.parts) {
      fits = x->best;
      last = middle;
    } else {
      low = middle + 1;
    }
  }
  x->best = fits;
}

static bool has_room_for_states(const division *x) {
  int64_t bytes = 0;
  for (size_t i = 0; i < x->whole.module->states.num; i++)
    bytes += ir_bytes(&x->whole.module->states.at[i]->type);
  return bytes <= x->budget;
}

// Parts have no fewer states: where these are too much, it is only said how near the most parts come.
static void divide(division *x) {
  numbers divisors = find_divisors(x);
  if (has_room_for_states(x))
    try_divisors(x, &divisors);
  else
    try_most(x, &divisors);
}

// `any`: the fewest parts that fit will do; the whole is known not to. The file itself may have errors:
// nothing is found then, and whoever compiles it reports them.
static division search(ir_arena *a, const draft_subject *s, int64_t budget, bool any) {
  division x = {.a = a, .s = *s, .budget = budget, .whole = draft_new()};
  draft_load(s, &x.whole, NULL, NULL);
  if (!(any ? schedule : try_parts)(&x, &x.whole, 1))
    return x;
  if (x.best.parts && !x.best.again)
    return x;
  find_batch(&x);
  if (any)
    halve_divisors(&x);
  else
    divide(&x);
  return x;
}

static void end(division *x) {
  draft_free(&x->whole);
  if (x->broken.arena)
    draft_free(&x->broken);
}

// --- messages --------------------------------------------------------------------------------
// Of the step's nodes: those that data reach.
static bool *reached_by_data(ir_arena *a, const ir_func *f) {
  bool *of_data = IR_NEW_ARRAY(a, bool, f->next_id + 1);
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    of_data[n->id] = n->op == IR_INPUT;
    for (int k = 0; k < n->num_in; k++)
      of_data[n->id] |= of_data[n->in[k]->id];
  }
  return of_data;
}

// States of the model's own that a step changes: the first that data reach, and the first that only parameters and states
// do, such as an average of weights. NULL: there is none.
typedef struct changed_states {
  const ir_state *by_data, *by_states;
} changed_states;

static changed_states find_changed(const division *x) {
  const ir_module *m = x->whole.module;
  const ir_func *f = ir_find_func(m, "step");
  changed_states found = {NULL, NULL};
  const bool *of_data = reached_by_data(x->a, f);
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->op != IR_WRITE || n->state->role != IR_ROLE_BUFFER)
      continue;
    const ir_state **first = of_data[n->id] ? &found.by_data : &found.by_states;
    *first = *first ? *first : n->state;
  }
  return found;
}

static void warn_of_states(const division *x, ir_diags *d) {
  changed_states changed = find_changed(x);
  const ir_state *s = changed.by_data;
  if (s) {
    ir_diag *w =
        diag_warning(d, (ir_loc){0}, "W0225",
                     "'%s' is changed by each micro-batch: statistics are those of %lld "
                     "samples, not of %lld",
                     s->name, (long long)(batch_of(x) / x->best.parts), (long long)batch_of(x));
    diag_help(w, "group or layer norm do not depend on the batch");
  }
  s = changed.by_states;
  if (s) {
    ir_diag *w = diag_warning(d, (ir_loc){0}, "W0225",
                              "'%s' is changed by each micro-batch: %lld times a step, not once",
                              s->name, (long long)x->best.parts);
    diag_help(w, "an average that keeps 0.9 a step keeps 0.9 ** (1 / %lld) of it each time",
              (long long)x->best.parts);
  }
}

// The first value of data that has a number for each pair of samples, and so parts * parts times as many of a whole batch as
// of a micro-batch; NULL: there is none.
static const ir_node *find_pairs(ir_arena *a, const draft *whole, const draft *part,
                                 int64_t parts) {
  const ir_func *f = ir_find_func(whole->module, "step"), *g = ir_find_func(part->module, "step");
  const bool *of_data = reached_by_data(a, f);
  ir_map *elements = ir_map_new(a); // by name, of a micro-batch
  for (size_t i = 0; i < g->nodes.num; i++)
    ir_map_put(elements, g->nodes.at[i]->name,
               (void *)(uintptr_t)ir_elements(&g->nodes.at[i]->type));
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    int64_t of_part = (int64_t)(uintptr_t)ir_map_get(elements, n->name);
    if (of_data[n->id] && of_part && ir_elements(&n->type) / of_part >= parts * parts)
      return n;
  }
  return NULL;
}

static void warn_of_pairs(const division *x, ir_diags *d) {
  draft whole = load(x, 1), part = load(x, x->best.parts);
  const ir_node *n =
      whole.module && part.module ? find_pairs(x->a, &whole, &part, x->best.parts) : NULL;
  if (n) {
    // Other files that a draft reads are gone with it.
    ir_loc at = n->loc.file == x->s.source ? n->loc : (ir_loc){0};
    ir_diag *w =
        diag_warning(d, at, "W0225",
                     "'%s' has a number for each pair of a batch's samples; micro-batches "
                     "have fewer: %lld samples, not %lld, are compared with each other",
                     n->name, (long long)(batch_of(x) / x->best.parts), (long long)batch_of(x));
    diag_help(w, "a loss that is made of it is that of smaller batches");
  }
  draft_free(&whole);
  draft_free(&part);
}

// Of a search that has found nothing that fits.
static void say_not_enough(const division *x) {
  const attempt *one = &x->one, *least = &x->least;
  if (!one->parts) // the file itself has errors
    return;
  bool planned = !one->hopeless && !least->hopeless, cannot = !least->parts && x->broken.arena;
  if (!x->batch.name || cannot)
    options_say(x->s.o, OPTIONS_NOTE, "--allow=accumulate cannot divide the batch:");
  else if (!least->parts || (planned && least->bytes >= one->bytes))
    options_say(x->s.o, OPTIONS_NOTE,
                "--allow=accumulate does not help: no part of the batch of %lld takes less",
                (long long)batch_of(x));
  else
    options_say(x->s.o, OPTIONS_NOTE,
                "--allow=accumulate is not enough: as %lld micro-batches of %lld it takes %s%s",
                (long long)least->parts, (long long)(batch_of(x) / least->parts),
                least->hopeless ? "at least " : "",
                ir_bytes_text(x->a, least->bytes, least->bytes));
  if (cannot)
    options_report(x->s.o, x->broken.diags);
}

fe_split cmd_divide_batch(ir_arena *a, const draft_subject *s, ir_diags *d) {
  division x = search(a, s, s->o->memory_budget, false);
  fe_split split = {0};
  if (x.best.parts > 1) {
    split = (fe_split){x.batch.name, x.best.parts};
    options_say(s->o, OPTIONS_NOTE,
                "the batch of %lld is run as %lld micro-batches of %lld, whose gradients are added "
                "(--allow=accumulate)",
                (long long)batch_of(&x), (long long)split.parts,
                (long long)(batch_of(&x) / split.parts));
    warn_of_states(&x, d);
    warn_of_pairs(&x, d);
  } else if (!x.best.parts) {
    say_not_enough(&x);
  }
  end(&x);
  return split;
}

void cmd_suggest_division(const draft_subject *s, int64_t budget) {
  ir_arena *a = ir_arena_new();
  division x = search(a, s, budget, true);
  if (x.best.parts > 1)
    options_say(s->o, OPTIONS_HELP,
                "with --allow=accumulate it fits as %lld micro-batches of %lld%s",
                (long long)x.best.parts, (long long)(batch_of(&x) / x.best.parts),
                x.best.again ? ", or as more where that is faster" : "");
  end(&x);
  ir_arena_free(a);
}
