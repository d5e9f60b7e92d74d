// extra_time.c: `mltc FILE --extra-time=10%`: the least memory that a tenth more time buys.
//
//   default               39.2 MiB
//   budget of 0.6         34.3 MiB   +3.5%      tenths, two at a time, downwards
//             0.4         23.6 MiB   +9.5%
//             0.2         14.6 MiB  +250.4%     too much: once nothing of a pair will do, between these
//             0.39 ..
//
// --memory-budget asks for the least time within so many bytes; here it is asked the other way around, and answered by
// the same search: each trial is a whole plan for a budget, and what it takes is what the cost model says.
//
// Halving from the beginning was left: the plans that cost most to look for are those of budgets that are hardly met, and
// going downwards none is far below the answer.
#include "driver/extra_time.h"

#include <string.h>

#include "driver/probe.h"
#include "passes/checkpoint.h"

enum {
  ABREAST = 2, // plans at the same time
  TENTHS = 10,
  NARROWINGS = 3, // each leaves a third of the gap
};

typedef struct search {
  const draft_subject *s;
  draft *t;
  int64_t always, most; // bytes: what lives for the whole run, and all with nothing made again
  probe best;           // the default, or the least that is fast enough
  double low, high;     // of most - always: shares that were too slow or not met, and that were not
} search;

static bool is_good(const search *x, const probe *p) {
  return p->bytes <= p->budget && p->slower <= x->s->o->extra_time;
}

static void look_at(search *x, double share, const probe *p) {
  bool good = is_good(x, p);
  if (x->s->o->verbose)
    fprintf(stderr, "budget of %lld: %lld bytes, %.1f%% longer\n", (long long)p->budget,
            (long long)p->bytes, 100 * p->slower);
  if (good && p->bytes < x->best.bytes)
    x->best = *p;
  if (good)
    x->high = share;
  else if (share < x->high && share > x->low)
    x->low = share;
}

// Tries shares of what is not there for the whole run, smaller ones first: where one is good, it does not
// matter that a larger one is not. False: a process failed.
static bool try_shares(search *x, const double *share, int num) {
  probe at[ABREAST];
  for (int i = 0; i < num; i++) {
    int64_t budget = x->always + (int64_t)(share[i] * (double)(x->most - x->always));
    at[i] = (probe){.policy = checkpoint_names[CHECKPOINT_AUTO], .budget = budget, .limit = budget};
  }
  if (!probe_plans(x->s, x->t, at, num))
    return false;
  for (int i = 0; i < num; i++)
    if (share[i] < x->high)
      look_at(x, share[i], &at[i]);
  return true;
}

static bool go_down(search *x) {
  for (int i = 1; i < TENTHS && x->low == 0; i += ABREAST) {
    double share[ABREAST];
    int num = 0;
    for (int k = i + ABREAST - 1; k >= i; k--)
      if (k < TENTHS)
        share[num++] = 1 - (double)k / TENTHS;
    if (!try_shares(x, share, num))
      return false;
  }
  return true;
}

static bool narrow(search *x) {
  for (int i = 0; i < NARROWINGS; i++) {
    double third = (x->high - x->low) / 3, share[ABREAST] = {x->low + third, x->high - third};
    if (!try_shares(x, share, ABREAST))
      return false;
  }
  return true;
}

// In bytes where less than a tenth of a MiB, say, is the difference.
static const char *saving(ir_arena *a, int64_t less, int64_t usual) {
  const char *left = ir_bytes_text(a, less, usual), *before = ir_bytes_text(a, usual, usual);
  if (strcmp(left, before) != 0)
    return ir_format(a, "%s instead of %s", left, before);
  return ir_format(a, "%s instead of %s bytes", ir_grouped(a, less), ir_grouped(a, usual));
}

static const char *answer(const search *x, const probe *usual) {
  ir_arena *a = x->t->arena;
  if (x->best.bytes == usual->bytes)
    return ir_format(a, "%s: no less in so much time",
                     ir_bytes_text(a, usual->bytes, usual->bytes));
  const char *policy = // IR text says so
      ir_find_config(x->t->module, "checkpoint") ? "--checkpoint=auto " : "";
  return ir_format(a, "%s; steps are predicted to take %.1f%% longer: %s--memory-budget=%lld",
                   saving(a, x->best.bytes, usual->bytes), 100 * x->best.slower, policy,
                   (long long)x->best.budget);
}

int64_t extra_time_find(const draft_subject *subject, draft *t) {
  draft_subject s = *subject;
  s.open = false; // it is the plan that is taken which is looked into
  probe first[] = {{.policy = checkpoint_names[CHECKPOINT_NONE]}, {0}};
  if (!probe_plans(&s, t, first, 2))
    return -1;
  search x = {.s = &s, .t = t, .always = first[0].always, .most = first[0].bytes, .high = 1};
  x.best = first[1];
  if (!go_down(&x) || !narrow(&x))
    return -1;
  options_answer(s.o, answer(&x, &first[1]));
  return x.best.budget;
}
