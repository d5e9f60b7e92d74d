// cmd_memory.c: `mltc memory FILE [-D NAME=VALUE] [--gpu=SIZE] [--json]`: what a trainer would need,
// and whether it fits, before anything is built.
//
//   gpt2 for cpu:native: 1557611200 parameters
//
//   checkpoint     weights   optimiser   gradients activations       other       total  again   of 24.0 GiB
//   none           5.8 GiB    11.6 GiB     0.0 GiB     9.6 GiB     0.5 GiB    27.5 GiB   0.0%   3.5 GiB too much
//   sqrt           5.8 GiB    11.6 GiB     6.0 GiB     0.0 GiB     0.2 GiB    23.7 GiB  25.4%   fits
//
//   At the peak. Gradients take up to 6.1 GiB of the same memory at another time.
//
// There is no formula here: each row is the plan that a compilation would make. The graph is read, and
// its kernels are made, once.
#include "driver/cmd_memory.h"

#include <errno.h>
#include <string.h>

#include "driver/budgets.h"
#include "driver/probe.h"
#include "ir/json.h"
#include "passes/checkpoint.h"
#include "passes/plan_text.h"

typedef struct memory {
  const draft_subject *s;
  draft *t;
  int64_t limit; // 0: none was given
  int num;       // policies: auto is one where there is a limit
  probe rows[CHECKPOINT_NUM_POLICIES];
} memory;

// --- text ------------------------------------------------------------------------------------
static bool fits(const memory *x, const probe *r) {
  return !x->limit || r->bytes <= x->limit;
}

static int64_t most_bytes(const memory *x) {
  int64_t most = 0;
  for (int i = 0; i < x->num; i++)
    most = x->rows[i].bytes > most ? x->rows[i].bytes : most;
  return most;
}

enum { NUM_KINDS = 4 };
static const struct {
  const char *name;
  plan_share share;
} kinds[NUM_KINDS] = {{"weights", PLAN_SHARE_PARAMETER},
                      {"optimiser", PLAN_SHARE_MOMENT},
                      {"gradients", PLAN_SHARE_GRADIENT},
                      {"activations", PLAN_SHARE_ACTIVATION}};

// What is none of these kinds.
static int64_t other_bytes(const probe *r) {
  int64_t bytes = r->bytes;
  for (int i = 0; i < NUM_KINDS; i++)
    bytes -= r->shares[kinds[i].share];
  return bytes;
}

static void put_row(const memory *x, const char *policy, const probe *r, int64_t like,
                    ir_buf *out) {
  ir_arena *a = x->t->arena;
  ir_buf_printf(out, "%-10s", policy);
  for (int i = 0; i < NUM_KINDS; i++)
    ir_buf_printf(out, " %11s", ir_bytes_text(a, r->shares[kinds[i].share], like));
  ir_buf_printf(out, " %11s %11s %5.1f%%", ir_bytes_text(a, other_bytes(r), like),
                ir_bytes_text(a, r->bytes, like), 100 * r->again);
  if (x->limit && fits(x, r))
    ir_buf_puts(out, "   fits");
  else if (x->limit)
    ir_buf_printf(out, "   %s too much", ir_bytes_text(a, r->bytes - x->limit, like));
  ir_buf_puts(out, "\n");
}

static void put_head(const memory *x, ir_buf *out) {
  ir_buf_printf(out, "%s for %s: %lld parameters\n\n%-10s", x->t->module->name, x->s->target->name,
                (long long)x->rows[0].parameters, "checkpoint");
  for (int i = 0; i < NUM_KINDS; i++)
    ir_buf_printf(out, " %11s", kinds[i].name);
  ir_buf_printf(out, " %11s %11s %6s", "other", "total", "again");
  if (x->limit)
    ir_buf_printf(out, "   of %s", ir_bytes_text(x->t->arena, x->limit, x->limit));
  ir_buf_puts(out, "\n");
}

static void put_table(const memory *x, ir_buf *out) {
  int64_t like = most_bytes(x), most = x->rows[0].most_gradients;
  put_head(x, out);
  for (int i = 0; i < x->num; i++)
    put_row(x, checkpoint_names[i], &x->rows[i], like, out);
  if (most > x->rows[0].shares[PLAN_SHARE_GRADIENT])
    ir_buf_printf(out,
                  "\nAt the peak. Gradients take up to %s of the same memory at another time.\n",
                  ir_bytes_text(x->t->arena, most, most));
}

static void add_int(json_object *o, const char *key, int64_t v) {
  json_object_object_add(o, key, json_object_new_int64(v));
}

static json_object *row_json(const memory *x, const char *policy, const probe *r) {
  json_object *o = json_object_new_object();
  json_object_object_add(o, "checkpoint", ir_json_text(policy));
  for (int i = 0; i < NUM_KINDS; i++)
    add_int(o, kinds[i].name, r->shares[kinds[i].share]);
  add_int(o, "most_gradients", r->most_gradients);
  add_int(o, "other", other_bytes(r));
  add_int(o, "total", r->bytes);
  json_object_object_add(o, "recomputed", json_object_new_double(r->again));
  json_object_object_add(o, "fits", x->limit ? json_object_new_boolean(fits(x, r)) : NULL);
  return o;
}

static void put_json(const memory *x, ir_buf *out) {
  json_object *o = json_object_new_object(), *list = json_object_new_array();
  json_object_object_add(o, "schema", json_object_new_string("mltc-memory"));
  add_int(o, "version", 1);
  json_object_object_add(o, "model", ir_json_text(x->t->module->name));
  json_object_object_add(o, "target", ir_json_text(x->s->target->name));
  add_int(o, "parameters", x->rows[0].parameters);
  json_object_object_add(o, "available", x->limit ? json_object_new_int64(x->limit) : NULL);
  for (int i = 0; i < x->num; i++)
    json_object_array_add(list, row_json(x, checkpoint_names[i], &x->rows[i]));
  json_object_object_add(o, "policies", list);
  ir_buf_puts(out, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE));
  ir_buf_puts(out, "\n");
  json_object_put(o);
}

static int print(const memory *x) {
  ir_buf out = ir_buf_new(x->t->arena);
  bool any = false;
  for (int i = 0; i < x->num; i++)
    any |= fits(x, &x->rows[i]);
  (x->s->o->json ? put_json : put_table)(x, &out);
  if (fwrite(out.text, 1, out.len, stdout) == out.len && fflush(stdout) == 0)
    return any ? 0 : EXIT_BUDGET;
  options_say(x->s->o, OPTIONS_ERROR, "cannot write standard output: %s", strerror(errno));
  return EXIT_INPUT;
}

// A plan that was searched for another budget may be within this one: a compilation takes it, and so says `auto`. Not
// sought for long: only where little is missing.
enum { LITTLE = 50 }; // the limit's fiftieth

static void look_further(const draft_subject *subject, int64_t limit, probe *found) {
  options o = *subject->o;
  o.memory_budget = limit;
  o.checkpoint = checkpoint_names[CHECKPOINT_AUTO];
  draft_subject s = *subject;
  s.o = &o;
  draft refused = draft_new(), instead = {0};
  budgets_asked asked = {.budget = limit};
  if (draft_load(&s, &refused, NULL, NULL) && draft_schedule(&s, &refused) &&
      budgets_plan(&s, &asked, limit, &refused))
    budgets_find(&s, NULL, &refused, limit, &instead);
  if (instead.arena) {
    *found = probe_of(&instead, *found);
    draft_free(&instead);
  }
  draft_free(&refused);
}

int cmd_memory(const draft_subject *subject) {
  draft t = draft_new();
  int64_t limit = subject->o->gpu_bytes ? subject->o->gpu_bytes : subject->o->memory_budget;
  options o = *subject->o;
  o.memory_budget = 0; // of `auto` alone: for the others nothing is sent to the host to meet it
  draft_subject without = *subject;
  without.o = &o;
  const draft_subject *s = &without;
  memory x = {.s = s, .t = &t, .limit = limit};
  x.num = x.limit ? CHECKPOINT_NUM_POLICIES : CHECKPOINT_AUTO;
  bool ok = draft_load(s, &t, NULL, NULL) && draft_schedule(s, &t) &&
            draft_arrange(s, &t, checkpoint_names[CHECKPOINT_NONE], 0); // in order once for all
  int status = options_report(s->o, t.diags) ? EXIT_INPUT : 0;
  for (int i = 0; i < x.num; i++)
    x.rows[i] = (probe){
        .policy = checkpoint_names[i], .budget = i == CHECKPOINT_AUTO ? limit : 0, .limit = limit};
  bool planned = ok && probe_plans(s, &t, x.rows, x.num);
  if (planned && limit && !fits(&x, &x.rows[CHECKPOINT_AUTO]) &&
      x.rows[CHECKPOINT_AUTO].bytes - limit <= limit / LITTLE)
    look_further(subject, limit, &x.rows[CHECKPOINT_AUTO]);
  if (ok)
    status = planned ? print(&x) : IR_EXIT_FAULT;
  draft_free(&t);
  return status;
}
