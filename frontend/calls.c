// calls.c: calls of blocks: placing arguments, binding parameters, expanding the body.
#include "frontend/check.h"

#include <string.h>

// --- placing arguments ---------------------------------------------------------------------------
static void help_params(fe *c, ir_diag *d, const char *name, const char *const *params,
                        size_t num) {
  ir_buf b = ir_buf_new(c->arena);
  for (size_t i = 0; i < num; i++)
    ir_buf_printf(&b, "%s%s", i ? ", " : "", params[i]);
  diag_help(d, "%s takes %s", name, num ? ir_buf_str(&b) : "nothing");
}

static void unknown_argument(fe *c, const ast_expr *call, const ast_arg *arg,
                             const char *const *params, size_t first, size_t num) {
  ir_diag *d = fe_error(c, arg->loc, "E0205", "'%s' has no parameter '%s'", call->text, arg->name);
  const char *near = diag_nearest(arg->name, params + first, num - first);
  if (near)
    diag_help(d, "did you mean '%s'?", near);
  else
    help_params(c, d, call->text, params + first, num - first);
}

static void misplaced_argument(fe *c, const ast_expr *call, const ast_arg *arg, bool named,
                               const char *const *params, size_t num) {
  ir_diag *d = fe_error(c, arg->value->loc, "E0205",
                        named ? "an argument by position after one by name, in the call of '%s'"
                              : "too many arguments for '%s'",
                        call->text);
  if (!named)
    help_params(c, d, call->text, params, num);
}

static bool place_named(fe *c, const ast_expr *call, const ast_arg *arg, const char *const *params,
                        size_t num, size_t first, const ast_arg **out) {
  for (size_t i = first; i < num; i++) {
    if (strcmp(params[i], arg->name) != 0)
      continue;
    if (out[i]) {
      ir_diag *d = fe_error(c, arg->loc, "E0205", "'%s' is given twice in the call of '%s'",
                            arg->name, call->text);
      if (strcmp(call->text, "concat") == 0 || strcmp(call->text, "stack") == 0)
        diag_help(d, "what is joined is a list: %s([x, y], %s=...)", call->text, arg->name);
      return false;
    }
    out[i] = arg;
    return true;
  }
  unknown_argument(c, call, arg, params, first, num);
  return false;
}

bool fe_place_args(fe *c, const ast_expr *call, const char *const *params, size_t num_params,
                   size_t first, const ast_arg **out) {
  bool ok = true, named = false;
  size_t next = first;
  for (size_t i = 0; i < call->args.num; i++) {
    const ast_arg *arg = &call->args.at[i];
    named = named || arg->name;
    if (arg->name) {
      ok = place_named(c, call, arg, params, num_params, first, out) && ok;
    } else if (named || next >= num_params) {
      misplaced_argument(c, call, arg, named, params + first, num_params - first);
      ok = false;
    } else {
      out[next++] = arg;
    }
  }
  return ok;
}

// --- binding -------------------------------------------------------------------------------------
typedef struct binding {
  const ast_fn *fn;
  const ast_expr *call;
  const fe_value **values; // in the caller's terms; NULL: not given
  const ast_arg **args;
} binding;

static bool missing_args(fe *c, const binding *b) {
  bool missing = false;
  for (size_t i = 0; i < b->fn->params.num; i++) {
    const ast_param *p = &b->fn->params.at[i];
    if (b->values[i] || p->value)
      continue;
    ir_diag *d = fe_error(c, b->call->op_loc, "E0205", "'%s' needs a value for '%s'",
                          b->fn->name.text, p->name.text);
    diag_note(d, p->name.loc, "declared here");
    missing = true;
  }
  return missing;
}

static bool eval_args(fe *c, binding *b) {
  size_t n = b->fn->params.num;
  const char **names = IR_NEW_ARRAY(c->arena, const char *, n + 1);
  for (size_t i = 0; i < n; i++)
    names[i] = b->fn->params.at[i].name.text;
  b->values = IR_NEW_ARRAY(c->arena, const fe_value *, n + 1);
  b->args = IR_NEW_ARRAY(c->arena, const ast_arg *, n + 1);
  bool ok = fe_place_args(c, b->call, names, n, 0, b->args);
  for (size_t i = 0; i < n; i++) {
    if (!b->args[i])
      continue;
    b->values[i] = fe_eval(c, b->args[i]->value);
    ok = ok && !fe_is_bad(b->values[i]);
  }
  return ok && !missing_args(c, b);
}

static const fe_value *without_state(fe *c, const fe_value *v) {
  if (!v->state)
    return v;
  fe_value *copy = IR_NEW(c->arena, fe_value);
  *copy = *v;
  copy->state = NULL;
  return copy;
}

static const fe_value *bind_typed(fe *c, const ast_param *p, const fe_value *v, ir_loc at) {
  const fe_value *matched = fe_match_param(c, p->type, v, p->name.text, at);
  fe_set(c, p->name.text, matched);
  return matched;
}

// Options first, because shapes may use them; then tensors, whose shapes bind dimensions; then
// defaults, which may use both.
static bool bind_params(fe *c, const binding *b) {
  bool ok = true;
  const ast_fn *fn = b->fn;
  for (size_t i = 0; i < fn->params.num; i++)
    if (b->values[i] && !fn->params.at[i].type)
      fe_set(c, fn->params.at[i].name.text, without_state(c, b->values[i]));
  for (size_t i = 0; i < fn->params.num; i++)
    if (b->values[i] && fn->params.at[i].type)
      fe_bind_names(c, fn->params.at[i].type, b->values[i], fn->params.at[i].name.text);
  for (size_t i = 0; i < fn->params.num; i++) {
    const ast_param *p = &fn->params.at[i];
    if (b->values[i] && p->type)
      ok = !fe_is_bad(bind_typed(c, p, b->values[i], b->args[i]->value->loc)) && ok;
  }
  for (size_t i = 0; ok && i < fn->params.num; i++) {
    const ast_param *p = &fn->params.at[i];
    bool is_dim = !p->type && ir_map_get(c->frame->dims, p->name.text); // x: f[n], n=4
    if (b->values[i] || is_dim)
      continue;
    const fe_value *v = fe_eval(c, p->value);
    fe_set(c, p->name.text, v);
    v = p->type && v->kind == FE_TENSOR ? bind_typed(c, p, v, p->value->loc) : v;
    ok = !fe_is_bad(v);
  }
  return ok;
}

// --- optimisers, schedules and initialisers ------------------------------------------------------
const ast_arg **fe_place_rest(fe *c, const ast_expr *call, const ast_fn *fn, size_t implicit) {
  size_t n = fn->params.num;
  const char **names = IR_NEW_ARRAY(c->arena, const char *, n + 1);
  const ast_arg **out = IR_NEW_ARRAY(c->arena, const ast_arg *, n + 1);
  for (size_t i = 0; i < n; i++)
    names[i] = fn->params.at[i].name.text;
  if (!fe_place_args(c, call, names, n, implicit, out))
    return NULL;
  for (size_t i = implicit; i < n; i++)
    if (!out[i] && !fn->params.at[i].value) {
      fe_error(c, call->op_loc, "E0205", "'%s' needs a value for '%s'", call->text, names[i]);
      return NULL;
    }
  return out;
}

bool fe_bind_values(fe *c, const ast_fn *fn, const fe_value *const *values) {
  bool ok = true;
  for (size_t i = 0; i < fn->params.num; i++) {
    const ast_param *p = &fn->params.at[i];
    const fe_value *v = values[i] ? values[i] : fe_eval(c, p->value);
    ok = ok && !fe_is_bad(v);
    fe_set(c, p->name.text, v);
  }
  return ok;
}

const fe_value *fe_run_fn(fe *c, const ast_fn *fn, bool is_std, ir_loc used, const char *prefix,
                          const fe_value *const *values) {
  fe_enter(c, fn, used, fe_naming_new(c, NULL, prefix, ""), is_std);
  const fe_value *r = &fe_bad;
  if (fe_bind_values(c, fn, values)) {
    fe_run_body(c, &fn->body);
    r = c->frame->result ? c->frame->result
                         : FE_FAIL(c, fn->name.loc, "E0214", "'%s' returns nothing", fn->name.text);
  }
  fe_leave(c);
  return r;
}

// --- the call ------------------------------------------------------------------------------------
static bool check_recursion(fe *c, const ast_fn *fn, const ast_expr *call) {
  for (const fe_frame *f = c->frame; f; f = f->caller)
    if (f->fn == fn) {
      ir_diag *d = fe_error(c, call->op_loc, "E0209", "block '%s' uses itself", fn->name.text);
      diag_note(d, fn->name.loc, "the block is defined here");
      diag_help(d, "use `repeat N { ... }` for a stack of layers");
      return false;
    }
  if (c->frame && c->frame->depth < FE_MAX_CALLS)
    return true;
  fe_error(c, call->op_loc, "E0005", "more than %d blocks inside each other", FE_MAX_CALLS);
  return false;
}

static bool check_one_result(fe *c, const ast_fn *fn, size_t i, const fe_value *v) {
  ir_loc at = c->frame->result_loc.file ? c->frame->result_loc : fn->name.loc;
  return fe_is_bad(v) || fe_match_result(c, fn->results.at[i], v, at);
}

// The signature speaks of its own names: the body may have given them another meaning since.
static void restore(fe *c, const ir_map *params) {
  for (size_t i = 0; params && i < ir_map_count(params); i++)
    fe_set(c, ir_map_key(params, i), ir_map_value(params, i));
}

// What a signature with results has bound; NULL where it has none.
static ir_map *keep_params(fe *c, const ast_fn *fn) {
  ir_map *params = fn->results.num ? ir_map_new(c->arena) : NULL;
  const ir_map *vars = c->frame->vars;
  for (size_t i = 0; params && i < ir_map_count(vars); i++)
    ir_map_put(params, ir_map_key(vars, i), ir_map_value(vars, i));
  return params;
}

static const fe_value *check_results(fe *c, const ast_fn *fn) {
  const fe_value *r = c->frame->result;
  ir_loc at = c->frame->result_loc.file ? c->frame->result_loc : fn->name.loc;
  if (!r)
    return FE_FAIL(c, fn->name.loc, "E0214", "block '%s' returns nothing", fn->name.text);
  if (fn->results.num == 0 || fe_is_bad(r))
    return r;
  size_t have = r->kind == FE_LIST ? r->num_items : 1;
  if (have != fn->results.num)
    return FE_FAIL(c, at, "E0214", "block '%s' returns %zu value%s, its signature says %zu",
                   fn->name.text, have, have == 1 ? "" : "s", fn->results.num);
  bool ok = true;
  for (size_t i = 0; i < have; i++)
    ok = check_one_result(c, fn, i, r->kind == FE_LIST ? r->items[i] : r) && ok;
  return ok ? r : &fe_bad;
}

// What `with` names is an earlier use of the same block.
static bool check_use(fe *c, const binding *b, const fe_use *use) {
  if (use && use->fn == b->fn)
    return true;
  const char *name = b->call->again;
  if (use) {
    fe_error(c, b->call->loc, "E0222", "'%s' is a '%s', and its parameters are not those of '%s'",
             name, use->fn->name.text, b->fn->name.text);
    return false;
  }
  ir_diag *d =
      fe_error(c, b->call->loc, "E0222", "there is no use of a block named '%s' here", name);
  const ir_map *uses[] = {c->frame->names->uses,
                          c->frame->names->outer ? c->frame->names->outer->uses : NULL};
  fe_suggest(c, d, name, uses, 2, NULL, 0);
  const ir_map *ended = c->frame->names->gone;
  bool gone = ended && ir_map_get(ended, name);
  if (!gone)
    diag_help(d, "the first use gets its name by %s(...) as %s", b->fn->name.text, name);
  if (gone || *c->frame->names->suffix)
    diag_help(d, "a name given inside `repeat` is known in that iteration only; in `repeat ... "
                 "shared { }` all "
                 "iterations have the parameters of the first");
  return false;
}

// The path tells a use inside of a use apart from the one around it.
static const char *again_name(fe *c, fe_use *use) {
  const char *outer = c->frame->again;
  return ir_format(c->arena, "%s with %s %d", outer ? outer : "", use->path, ++use->again);
}

// `f(x) as target` beside `state target: like online` would have parameters of its own, target_2.
static bool is_no_copy(fe *c, const binding *b) {
  const char *name = b->call->label;
  const fe_use *use = name ? fe_find_use(c, name) : NULL;
  if (!use || !use->copy)
    return true;
  ir_diag *d = fe_error(c, b->call->loc, "E0206", "'%s' is a copy of the states of a use of '%s'",
                        name, use->fn->name.text);
  diag_help(d, "%s(...) with %s uses it; what is new needs another name", b->fn->name.text, name);
  return false;
}

static const fe_value *expand(fe *c, const binding *b, bool is_std) {
  const char *base = b->call->label ? b->call->label : b->fn->name.text;
  if (!is_no_copy(c, b))
    return &fe_bad;
  fe_use *use =
      b->call->again ? fe_find_use(c, b->call->again) : fe_use_new(c, b->fn, b->call, base);
  if (!check_use(c, b, use))
    return &fe_bad;
  fe_enter(c, b->fn, b->call->loc, fe_naming_new(c, NULL, use->path, ""), is_std);
  c->frame->site = use->site;
  if (b->call->again) {
    c->frame->again = again_name(c, use);
    c->frame->copied |= use->copy;
  }
  const fe_value *r = &fe_bad;
  if (bind_params(c, b)) {
    size_t before = diag_num_errors(c->diags) + diag_num_errors(c->silent);
    const ir_map *params = keep_params(c, b->fn);
    fe_run_body(c, &b->fn->body);
    restore(c, params);
    bool clean = before == diag_num_errors(c->diags) + diag_num_errors(c->silent);
    r = clean ? check_results(c, b->fn) : &fe_bad;
  }
  fe_leave(c);
  return r;
}

static const fe_value *unknown_function(fe *c, const ast_expr *call) {
  ir_diag *d = fe_error(c, call->op_loc, "E0201", "unknown function '%s'", call->text);
  const char *here = fe_name_here(call->text), *type = fe_word_here(call->text);
  if (here || type) {
    diag_help(d, here ? "here it is written %s" : "here it is written %s(x)", here ? here : type);
    return &fe_bad;
  }
  const char *const *words;
  size_t num;
  fe_builtin_names(c, &words, &num);
  const ir_map *maps[] = {c->fns, c->std_fns, c->initializers, c->std_initializers};
  fe_suggest(c, d, call->text, maps, 4, words, num);
  return &fe_bad;
}

// `tanh(f(x)) as name` would give the name to nothing, and the parameters of f another one.
static const fe_value *not_named(fe *c, const ast_expr *call) {
  if (call->again)
    return FE_FAIL(c, call->loc, "E0222", "'%s' is no block: it has no parameters to use again",
                   call->text);
  ir_diag *d =
      fe_error(c, call->loc, "E0222", "'%s' is no block: it has no parameters to be named '%s'",
               call->text, call->label);
  diag_help(d, "`as` stands right behind the call of the block that has them");
  return &fe_bad;
}

// `relu(f(x)) as name`, where f has parameters: theirs have the name of f.
static void warn_idle_name(fe *c, const ast_expr *call) {
  ir_diag *d = fe_warn(c, call->loc, "W0232", "'%s' names the use of '%s', which has no parameters",
                       call->label, call->text);
  diag_help(
      d, "those of a block in its arguments have another name; `as` stands right behind the call "
         "that has them");
}

// Of what is no block.
static const fe_value *call_other(fe *c, const ast_expr *call) {
  bool is_std, initializer = fe_find_initializer(c, call->text, &is_std);
  if (!initializer && !fe_is_builtin(call->text))
    return unknown_function(c, call);
  if (call->again || call->label)
    return not_named(c, call);
  return initializer ? fe_call_initializer(c, call) : fe_call_builtin(c, call);
}

const fe_value *fe_call(fe *c, const ast_expr *call) {
  binding b = {.call = call};
  bool is_std;
  if (!fe_tick(c, call->loc))
    return &fe_bad;
  b.fn = fe_find_block(c, call->text, &is_std);
  if (!b.fn)
    return call_other(c, call);
  if (!c->pass)
    return FE_FAIL(c, call->loc, "E0207", "block '%s' cannot be used outside of a model",
                   call->text);
  size_t before = c->module->states.num;
  if (!check_recursion(c, b.fn, call) || !eval_args(c, &b))
    return &fe_bad;
  size_t with_arguments = c->module->states.num;
  const fe_value *r = expand(c, &b, is_std);
  if (!fe_is_bad(r) && call->label && with_arguments > before &&
      c->module->states.num == with_arguments)
    warn_idle_name(c, call);
  c->first_arg = b.fn->params.num ? b.values[0] : NULL;
  return r;
}
