// cmd_solve.c: `mltc FILE --max-batch --memory-budget=SIZE`: the largest batch, or value of a `let`,
// whose plan fits.
//
//   B = 64: 82.3 MiB                       the file's own value
//   B = 128: 163.9 MiB                     doubled until it does not fit
//   B = 100: 128.2 MiB                     where a straight line meets the budget, or in the middle
//   B = 99: 127.0 MiB ...
//   B = 99: 127.0 of 128.0 MiB             printed: 99 fits, 100 does not
//
// Every trial is a whole plan. Not every value compiles (heads that do not divide a width, say), so the
// search goes in steps: the smallest divisor of the file's own value that can be added to it. Values on
// the way that have errors all the same count as too large. Nor need bytes grow with the value, as
// kernels change with it: a few values above the answer are tried, too, and the search goes on from one
// that fits. The value behind the answer is tried as a compilation would (budgets.h).
#include "driver/cmd_solve.h"

#include <string.h>

#include "driver/budgets.h"

enum {
  MOST_VALUE = 1 << 30,
  LOOK_ABOVE = 4, // values that must not fit
  SAME_BYTES =
      8, // doublings that change nothing, were a row a byte: memory does not depend on the value
};

typedef enum outcome { FITS, TOO_MUCH, HAS_ERRORS } outcome;

typedef struct attempt {
  int64_t value;
  outcome found;
  int64_t bytes; // 0: it has errors
} attempt;

typedef struct solver {
  ir_arena *a;
  const draft_subject *s;
  const char *name;
  int64_t budget, step;
  bool independent; // larger values need no more
  IR_VEC(attempt) tried;
} solver;

// --- one value -------------------------------------------------------------------------------
static const char *define_of(const solver *x, int64_t value) {
  return ir_format(x->a, "%s=%lld", x->name, (long long)value);
}

static bool has_no_errors(const solver *x, int64_t value) {
  draft t = draft_new();
  bool ok = draft_load(x->s, &t, define_of(x, value), NULL);
  draft_free(&t);
  return ok;
}

// Bytes of a plan for another budget that is within this one, as a compilation would find it; or of the refused one.
static int64_t look_further(const solver *x, const draft_subject *s, int64_t value,
                            const draft *refused) {
  draft instead = {0};
  if (!s->edit)
    budgets_find(s, define_of(x, value), refused, x->budget, &instead);
  if (!instead.arena)
    return refused->plan->arena_bytes;
  int64_t bytes = instead.plan->arena_bytes;
  draft_free(&instead);
  return bytes;
}

static attempt plan_value(const solver *x, int64_t value, bool further) {
  attempt r = {value, HAS_ERRORS, 0};
  draft_subject s = *x->s;
  draft t = draft_new();
  budgets_asked asked = {.define = define_of(x, value), .budget = x->budget};
  if (draft_load(&s, &t, asked.define, NULL) && draft_schedule(&s, &t) &&
      budgets_plan(&s, &asked, x->budget, &t)) {
    bool too_much = t.plan->arena_bytes > x->budget;
    r.bytes = further && too_much ? look_further(x, &s, value, &t) : t.plan->arena_bytes;
    r.found = r.bytes <= x->budget ? FITS : TOO_MUCH;
  } else if (x->tried.num == 0) { // the file's own value
    options_report(x->s->o, t.diags);
  }
  draft_free(&t);
  return r;
}

static void say_attempt(const solver *x, const attempt *r) {
  if (x->s->o->verbose)
    fprintf(stderr, "%s = %lld: %s\n", x->name, (long long)r->value,
            r->found == HAS_ERRORS ? "has errors" : ir_bytes_text(x->a, r->bytes, r->bytes));
}

static attempt try_value(solver *x, int64_t value) {
  for (size_t i = 0; i < x->tried.num; i++)
    if (x->tried.at[i].value == value)
      return x->tried.at[i];
  attempt r = plan_value(x, value, false);
  IR_PUSH(x->a, x->tried, r);
  say_attempt(x, &r);
  return r;
}

// The same, where it would be too much, with all that a compilation tries: plans for other budgets, which take their
// time. So it is for values next to what fits.
static attempt try_further(solver *x, int64_t value) {
  attempt r = try_value(x, value);
  if (r.found != TOO_MUCH)
    return r;
  attempt other = plan_value(x, value, true);
  if (other.found == FITS) {
    for (size_t i = 0; i < x->tried.num; i++)
      if (x->tried.at[i].value == value)
        x->tried.at[i] = other;
    say_attempt(x, &other);
  }
  return other;
}

// --- the search ------------------------------------------------------------------------------
// 1 for a batch; where only multiples of 64 compile, 64 or a multiple of it.
static int64_t find_step(const solver *x, int64_t value) {
  for (int64_t step = 1; step < value; step++)
    if (value % step == 0 && has_no_errors(x, value + step))
      return step;
  return value;
}

// The largest value known to fit, by doubling; *above is the first that does not.
static attempt grow(solver *x, attempt low, attempt *above) {
  for (int same = 0; same < SAME_BYTES; same++) {
    attempt next = try_value(x, 2 * low.value);
    if (next.found != FITS) {
      *above = next;
      return low;
    }
    if (next.value >= MOST_VALUE) // larger ones are not looked at
      return next;
    if (next.bytes != low.bytes)
      same = -1;
    low = next;
  }
  x->independent = true;
  return low;
}

// The same by halving. `low.found` is not FITS when nothing does.
static attempt shrink(solver *x, attempt high, attempt *above) {
  attempt low = high;
  while (low.found != FITS && low.value > x->step) {
    *above = low.found == TOO_MUCH ? low : *above;
    int64_t half = low.value / 2 / x->step * x->step;
    low = try_value(x, half < x->step ? x->step : half);
  }
  return low;
}

// A value between two, where bytes would be the budget if they grew evenly; or the middle.
static int64_t between(const solver *x, const attempt *low, const attempt *high, bool evenly) {
  int64_t steps = (high->value - low->value) / x->step, at = steps / 2;
  if (evenly && high->bytes > low->bytes)
    at = (int64_t)((double)(x->budget - low->bytes) / (double)(high->bytes - low->bytes) *
                   (double)steps);
  at = at < 1 ? 1 : at >= steps ? steps - 1 : at;
  return low->value + at * x->step;
}

static attempt narrow(solver *x, attempt low, attempt high) {
  for (int i = 0; high.value - low.value > x->step; i++) {
    attempt r = try_value(x, between(x, &low, &high, i % 2 == 0));
    *(r.found == FITS ? &low : &high) = r;
  }
  return low;
}

// From one that fits, by leaps of 1, 3, 9, .. steps, then between the last two: thousands may fit one after the other.
// Leaps that double would go from behind one multiple of 512, of which kernels may take more, to the next.
static attempt leap(solver *x, attempt low) {
  for (int64_t by = x->step; low.value < MOST_VALUE; by *= 3) {
    attempt next = try_value(x, low.value + by);
    if (next.found != FITS)
      return narrow(x, low, next);
    low = next;
  }
  return low;
}

// Goes on upward while one of the next values fits.
static attempt look_above(solver *x, attempt low) {
  for (int i = 1; i <= LOOK_ABOVE; i++) {
    attempt r = try_value(x, low.value + i * x->step);
    if (r.found == FITS) {
      low = leap(x, r);
      i = 0;
    }
  }
  return low;
}

// The value behind the answer is one that a compilation refuses.
static attempt look_further_above(solver *x, attempt low) {
  attempt next = {0};
  while ((next = try_further(x, low.value + x->step)).found == FITS)
    low = look_above(x, next);
  return low;
}

static attempt search(solver *x, int64_t value) {
  attempt low = try_value(x, value), above = low;
  if (low.found == HAS_ERRORS)
    return low;
  x->step = find_step(x, value);
  low = low.found == FITS ? grow(x, low, &above) : shrink(x, low, &above);
  if (low.found != FITS) // nothing, or what a compilation finds
    low = try_further(x, low.value);
  if (low.found != FITS || above.found == FITS) // nothing fits, or everything
    return low;
  if (above.value > low.value + x->step)
    low = narrow(x, low, above);
  return look_further_above(x, look_above(x, low));
}

// --- messages --------------------------------------------------------------------------------
static int report_none(const solver *x) {
  const attempt *least = NULL;
  for (size_t i = 0; i < x->tried.num; i++)
    if (x->tried.at[i].found == TOO_MUCH && (!least || x->tried.at[i].bytes < least->bytes))
      least = &x->tried.at[i];
  options_say(x->s->o, OPTIONS_ERROR, "nothing fits %s: %s = %lld needs %s, %lld bytes too much",
              ir_bytes_text(x->a, x->budget, x->budget), x->name, (long long)least->value,
              ir_bytes_text(x->a, least->bytes, x->budget), (long long)(least->bytes - x->budget));
  return EXIT_BUDGET;
}

static int report_independent(const solver *x, const attempt *r) {
  options_say(x->s->o, OPTIONS_ERROR,
              "memory does not grow with '%s': %s = %lld needs no more than %lld does", x->name,
              x->name, (long long)r->value, (long long)x->tried.at[0].value);
  return EXIT_INPUT;
}

static void print_answer(const solver *x, const attempt *r) {
  const options *o = x->s->o;
  const char *bytes = ir_bytes_text(x->a, r->bytes, x->budget);
  ir_buf text = ir_buf_new(x->a);
  ir_buf_printf(&text, "%s = %lld: %.*s of %s", x->name, (long long)r->value,
                (int)strcspn(bytes, " "), bytes, ir_bytes_text(x->a, x->budget, x->budget));
  if (x->step > 1)
    ir_buf_printf(&text, ", in steps of %lld", (long long)x->step);
  if (r->value + x->step > MOST_VALUE)
    ir_buf_puts(&text, "; nothing larger is tried");
  options_answer(o, ir_buf_str(&text));
}

static bool is_defined(const options *o, const char *name) {
  size_t len = strlen(name);
  for (size_t i = 0; i < o->defines.num; i++)
    if (!strncmp(o->defines.at[i], name, len) && o->defines.at[i][len] == '=')
      return true;
  return false;
}

// What is searched for, and its value in the file.
static int find_varied(const draft_subject *s, ir_arena *a, fe_vary *v) {
  if (options_is_ir(s->o)) {
    options_say(s->o, OPTIONS_ERROR,
                "--max-batch and --max need a graph file: in IR text all sizes are numbers");
    return EXIT_USAGE;
  }
  draft t = draft_new();
  bool ok = draft_load(s, &t, NULL, v);
  if (!ok)
    options_report(s->o, t.diags);
  v->name = ok ? ir_strdup(a, v->name) : NULL;
  draft_free(&t);
  if (!ok || !is_defined(s->o, v->name))
    return ok ? 0 : EXIT_INPUT;
  options_say(s->o, OPTIONS_ERROR, "'%s' is searched for: -D cannot set it", v->name);
  return EXIT_USAGE;
}

int cmd_solve(ir_arena *a, const draft_subject *s, const char **define) {
  fe_vary v = {.name = s->o->max};
  int status = find_varied(s, a, &v);
  if (status)
    return status;
  if (v.value > MOST_VALUE) {
    options_say(s->o, OPTIONS_ERROR, "'%s' is %lld: the search ends at %d", v.name,
                (long long)v.value, (int)MOST_VALUE);
    return EXIT_USAGE;
  }
  solver x = {.a = a, .s = s, .name = v.name, .budget = s->o->memory_budget, .step = 1};
  attempt best = search(&x, v.value);
  if (x.tried.at[0].found == HAS_ERRORS)
    return EXIT_INPUT;
  if (best.found != FITS)
    return report_none(&x);
  if (x.independent)
    return report_independent(&x, &best);
  print_answer(&x, &best);
  *define = define_of(&x, best.value);
  return 0;
}
