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
// its kernels are made, once; then each policy is planned by a process of its own, which has the module
// to itself and may change it.
#include "driver/cmd_memory.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "passes/checkpoint.h"
#include "passes/plan_facts.h"
#include "passes/plan_parts.h"
#include "passes/plan_text.h"

typedef struct row {
  int64_t bytes;                   // of the arena
  int64_t shares[PLAN_NUM_SHARES]; // at the peak
  int64_t most_gradients;          // at any time
  int64_t parameters;              // their number
  double again;                    // time of kernels that run again: of that of all others
} row;

typedef struct memory {
  const draft_subject *s;
  draft *t;
  int64_t limit; // 0: none was given
  int num;       // policies: auto is one where there is a limit
  row rows[CHECKPOINT_NUM_POLICIES];
} memory;

// --- planning --------------------------------------------------------------------------------
// Of the function with the highest peak.
static int64_t most_gradients(const draft *t, const plan_facts *facts) {
  const plan *p = t->plan;
  const ir_func *f = facts->largest;
  if (!f)
    return 0;
  IR_VEC(plan_buffer) gradients = {0};
  for (size_t i = 0; i < p->buffers.num; i++)
    if (facts->share[i] == PLAN_SHARE_GRADIENT)
      IR_PUSH(t->arena, gradients, p->buffers.at[i]);
  int64_t *live = IR_NEW_ARRAY(t->arena, int64_t, f->kernels.num + 2);
  return plan_live_bytes(gradients.at, gradients.num, f, live);
}

static row plan_policy(const memory *x, int policy) {
  draft *t = x->t;
  int64_t budget = policy == CHECKPOINT_AUTO ? x->limit : 0;
  bool ok = draft_arrange(x->s, t, checkpoint_names[policy], budget) && draft_plan(x->s, t);
  BUG_IF(!ok, "policy '%s' has errors", checkpoint_names[policy]);
  plan_facts facts = plan_find_facts(t->arena, t->plan, t->module);
  row r = {.bytes = t->plan->arena_bytes,
           .most_gradients = most_gradients(t, &facts),
           .parameters = facts.parameters,
           .again = facts.recompute_time - 1};
  memcpy(r.shares, facts.shares, sizeof r.shares);
  return r;
}

// Begins the work on a policy. Returns where its row will come from; -1: no process could be made.
static int start_policy(const memory *x, int policy, pid_t *child) {
  int ends[2];
  if (pipe(ends) != 0)
    return -1;
  *child = fork();
  if (*child == 0) {
    row r = plan_policy(x, policy);
    _exit(write(ends[1], &r, sizeof r) == sizeof r ? 0 : IR_EXIT_FAULT);
  }
  close(ends[1]);
  if (*child > 0)
    return ends[0];
  close(ends[0]);
  return -1;
}

// False when the process failed, which has said why.
static bool take_row(int from, pid_t child, row *r) {
  bool whole = read(from, r, sizeof *r) == sizeof *r; // less than a pipe takes at once
  int status = 0;
  close(from);
  return waitpid(child, &status, 0) == child && status == 0 && whole;
}

static bool plan_all(memory *x) {
  int from[CHECKPOINT_NUM_POLICIES];
  pid_t child[CHECKPOINT_NUM_POLICIES];
  bool ok = true;
  for (int i = 0; i < x->num; i++)
    from[i] = start_policy(x, i, &child[i]);
  for (int i = 0; i < x->num; i++) {
    if (from[i] < 0)
      fprintf(stderr, "mltc: cannot start a process: %s\n", strerror(errno));
    ok = from[i] >= 0 && take_row(from[i], child[i], &x->rows[i]) && ok;
  }
  return ok;
}

// --- text ------------------------------------------------------------------------------------
static bool fits(const memory *x, const row *r) {
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
static int64_t other_bytes(const row *r) {
  int64_t bytes = r->bytes;
  for (int i = 0; i < NUM_KINDS; i++)
    bytes -= r->shares[kinds[i].share];
  return bytes;
}

static void put_row(const memory *x, const char *policy, const row *r, int64_t like, ir_buf *out) {
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

static json_object *row_json(const memory *x, const char *policy, const row *r) {
  json_object *o = json_object_new_object();
  json_object_object_add(o, "checkpoint", json_object_new_string(policy));
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
  json_object_object_add(o, "model", json_object_new_string(x->t->module->name));
  json_object_object_add(o, "target", json_object_new_string(x->s->target->name));
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
  fprintf(stderr, "mltc: cannot write standard output: %s\n", strerror(errno));
  return EXIT_INPUT;
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
  if (ok)
    status = plan_all(&x) ? print(&x) : IR_EXIT_FAULT;
  draft_free(&t);
  return status;
}
