// vary.c: the constant that a search may change: the batch of a model, or a `let` by its name; and the
// batch that may be divided (split.c).
//
//   let B = 64                                     --max-batch: B is the first dimension of each
//   model m(x: f[B,32], label: u8[B]) { ... }      input; --max=B says so itself
//
// It is found in the text, not by its value: of `x: f[B,64]` with B = 64 only one dimension grows.
#include "frontend/check.h"

#include <string.h>

static const char *code(const fe_vary *v) {
  return v->divide ? "E0225" : "E0224";
}

static const char *help(const fe_vary *v) {
  return v->divide
             ? "--allow=accumulate divides the `let` that is the first dimension of every input"
             : "--max=NAME searches for the value of another `let`";
}

// The first dimension of an input, when it is a `let`; else NULL, and it is reported.
static const ast_expr *batch_of(fe *c, const fe_vary *v, const ast_param *input) {
  const ast_expr *e = input->type->dims.at[0];
  if (e->kind == AST_NAME && ir_map_get(c->lets, e->text))
    return e;
  ir_diag *d = fe_error(c, e->loc, code(v), "the batch is no `let` that could be changed");
  diag_help(d, "%s", help(v));
  return NULL;
}

// NULL after an error.
static const char *find_batch(fe *c, const fe_vary *v) {
  const ast_expr *first = batch_of(c, v, &c->model->params.at[0]);
  for (size_t i = 1; first && i < c->model->params.num; i++) {
    const ast_expr *e = batch_of(c, v, &c->model->params.at[i]);
    if (!e)
      return NULL;
    if (strcmp(e->text, first->text) == 0)
      continue;
    ir_diag *d = fe_error(c, e->loc, code(v), "the batch is '%s' in this input", e->text);
    diag_note(d, first->loc, "and '%s' in the first one", first->text);
    diag_help(d, "%s", help(v));
    return NULL;
  }
  return first ? first->text : NULL;
}

static void report_unknown(fe *c, const char *name) {
  ir_diag *d =
      fe_error(c, (ir_loc){0}, "E0224", "--max=%s: the file has no constant '%s'", name, name);
  if (ir_map_get(c->flags, name))
    diag_help(d, "'%s' is a flag: it changes when the trainer runs, and no memory with it", name);
  else
    fe_suggest(c, d, name, (const ir_map *const[]){c->lets}, 1, NULL, 0);
}

void fe_find_varied(fe *c, fe_vary *v) {
  const char *name = v->name ? v->name : find_batch(c, v);
  const fe_value *now = name ? ir_map_get(c->lets, name) : NULL;
  if (name && !now)
    report_unknown(c, name);
  if (!now || fe_is_bad(now))
    return;
  v->name = name;
  if (now->kind == FE_NUM && now->is_int && now->i >= 1)
    v->value = now->i;
  else
    fe_error(c, (ir_loc){0}, code(v), "'%s' is %s: only a whole number above 0 can be %s", name,
             fe_describe(c, now), v->divide ? "divided" : "searched for");
}
