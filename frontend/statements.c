// statements.c: executing the statements of blocks and models.
#include "frontend/check.h"

#include <string.h>

// --- naming values -------------------------------------------------------------------------------
void fe_name_node(fe *c, const fe_value *v, const char *name, const ast_expr *from) {
  if (v->kind != FE_TENSOR || from->kind == AST_NAME || v->node->op == IR_INPUT ||
      v->node->op == IR_READ)
    return;
  const char *prefix = c->frame->names->prefix;
  ir_rename(c->pass->b.func, v->node, prefix ? ir_format(c->arena, "%s.%s", prefix, name) : name);
}

static const fe_value *plain(fe *c, const fe_value *v) {
  if (!v->state && !v->param && !v->from)
    return v;
  fe_value *copy = IR_NEW(c->arena, fe_value);
  *copy = *v;
  copy->state = copy->param = NULL;
  copy->from = NULL;
  return copy;
}

void fe_assign(fe *c, const char *name, const fe_value *v, const ast_expr *from) {
  fe_set(c, name, plain(c, v));
  fe_name_node(c, v, name, from);
}

// The name of a metric or an output is one of a value, too, unless it is one already: metric d = mean(d).
static void assign_result(fe *c, const char *name, const fe_value *v, const ast_expr *from) {
  if (ir_map_get(c->frame->vars, name) || fe_is_reserved(name))
    fe_name_node(c, v, name, from);
  else
    fe_assign(c, name, v, from);
}

// A parameter of the block may have such a name, and be assigned again.
static void assign_one(fe *c, const ast_name *name, const fe_value *v, const ast_expr *from) {
  bool fine = ir_map_get(c->frame->vars, name->text) || fe_check_free(c, name);
  fe_assign(c, name->text, fine ? v : &fe_bad, from);
}

static void run_assign(fe *c, const ast_stmt *s) {
  const fe_value *v = fe_eval(c, s->value);
  size_t n = s->names.num;
  if (n == 1 || fe_is_bad(v)) {
    for (size_t i = 0; i < n; i++)
      assign_one(c, &s->names.at[i], v, s->value);
    return;
  }
  size_t have = v->kind == FE_LIST ? v->num_items : 1;
  if (have != n) {
    ir_diag *d = fe_error(c, s->value->loc, "E0214", "%zu names for %zu value%s", n, have,
                          have == 1 ? "" : "s");
    if (v->kind == FE_TENSOR)
      diag_help(d, "split(x, %zu, axis) cuts a tensor into parts, and x[0], x[1] take some out", n);
  }
  for (size_t i = 0; i < n; i++)
    assign_one(c, &s->names.at[i], have == n ? v->items[i] : &fe_bad, s->value);
}

// --- parameters and states -----------------------------------------------------------------------
bool fe_declare_once(fe *c, const ast_name *name, const char *path) {
  if (c->pass->starting) {
    fe_error(c, name->loc, "E0215", "an initializer cannot have parameters and states of its own");
    return false;
  }
  bool there = ir_map_get(c->pass->declared, path) != NULL;
  if (c->frame->again && !there)
    fe_error(c, name->loc, "E0222", "there is no parameter or state '%s' to use again", path);
  if (c->frame->again)
    return there;
  bool reserved = strcmp(path, IR_METADATA_NAME) == 0;
  if (there || reserved) {
    ir_diag *d = fe_error(
        c, name->loc, "E0206", "'%s' %s", path,
        there ? "is already defined"
              : "has a meaning of its own in checkpoints, which keep there what is no tensor");
    fe_say_first(d, ir_map_get(c->pass->declared, path));
    diag_help(d, "give the parameter or state another name");
    return false;
  }
  ir_map_put(c->pass->declared, path, (void *)&name->loc);
  return true;
}

ir_state *fe_declare_state(fe *c, const char *path, ir_type type, ir_role role, fe_init init,
                           ir_loc at) {
  ir_state *s = ir_find_state(c->module, path);
  bool copied = c->frame && c->frame->copied;
  if (s && ((s->role != role && !copied) || !ir_same_type(&s->type, &type))) {
    bool shape = s->role == role || copied;
    ir_diag *d = fe_error(c, at, "E0206", "'%s' is already defined as a %s of type %s, not %s",
                          path, ir_role_names[s->role], ir_type_str(c->arena, &s->type),
                          shape ? ir_type_str(c->arena, &type) : ir_role_names[role]);
    if (shape && c->frame && c->frame->fn != c->model)
      diag_help(d,
                "uses that share parameters (`with`, `repeat ... shared`) have them of one shape");
    return NULL;
  }
  if (s)
    return s;
  s = ir_state_new(c->module, path, type, role, fe_node_loc(c, at));
  fe_param p = {.state = s, .init = init};
  IR_PUSH(c->arena, c->params, p);
  return s;
}

bool fe_want_init(fe *c, const ast_stmt *s, fe_init *out, const fe_value **number) {
  const fe_value *v = fe_eval(c, s->value);
  *number = NULL;
  bool scalar = v->kind == FE_NUM || v->kind == FE_BOOL;
  if (scalar)
    *out = (fe_init){.kind = FE_INIT_CONSTANT, .a = v->kind == FE_BOOL ? (double)v->i : v->num};
  else if (v->kind == FE_INIT)
    *out = v->init;
  else if (!fe_is_bad(v)) {
    ir_diag *d = fe_error(c, s->value->loc, "E0218", "expected an initialiser");
    diag_label(d, "this is %s", fe_describe(c, v));
    if (c->pass->optimizing && v->kind == FE_TENSOR)
      diag_help(d, "begin with zeros; %s <- where(step == 0, w, %s) takes the first value of w",
                s->names.at[0].text, s->names.at[0].text);
    else
      diag_help(d,
                "zeros, ones, constant(v), uniform(a), uniform(lo, hi), normal(std), xavier, he, "
                "truncated_normal(std) or orthogonal");
  }
  bool good = scalar || v->kind == FE_INIT;
  if (good && out->kind == FE_INIT_CONSTANT)
    *number = scalar ? v : fe_num(c, out->a);
  return good;
}

// Bounds, the width between them, or a deviation, of which numbers of the element type are multiples.
static bool check_drawn(fe *c, const ast_stmt *s, const fe_init *i, ir_dtype t) {
  double nums[] = {i->a, i->b, i->kind == FE_INIT_UNIFORM ? i->b - i->a : 0};
  for (size_t k = 0; k < sizeof nums / sizeof *nums; k++)
    if (!fe_check_fits(c, s->value->loc, fe_float(c, nums[k]), t))
      return false;
  return true;
}

bool fe_check_init(fe *c, const ast_stmt *s, const ir_type *t, const fe_init *init,
                   const fe_value *number) {
  if (number)
    return fe_check_fits(c, s->value->loc, number, t->dtype);
  if (t->dtype == IR_F32 || t->dtype == IR_F64)
    return check_drawn(c, s, init, t->dtype);
  fe_error(c, s->value->loc, "E0218", "random initial values need element type f32 or f64, not %s",
           ir_dtypes[t->dtype].name);
  return false;
}

static void remember_trained(fe *c, ir_state *state) {
  if (state->role == IR_ROLE_PARAM && !c->pass->optimizing && !c->frame->again)
    IR_PUSH(c->arena, c->pass->trained, state);
}

static ir_role role_of(fe *c, const ast_stmt *s, const char *path, const ir_type *type) {
  if (s->kind != AST_PARAM)
    return c->pass->optimizing ? IR_ROLE_MOMENT : IR_ROLE_BUFFER;
  bool by_setting = fe_is_frozen(c, path, type), frozen = strcmp(s->word, "frozen") == 0;
  return frozen || by_setting ? IR_ROLE_FROZEN : IR_ROLE_PARAM;
}

// Gradients are taken before optimisers and schedules run: nothing would train a parameter of theirs.
static bool check_trainable(fe *c, const ast_stmt *s, const ir_type *type) {
  if (c->pass->optimizing) {
    ir_diag *d = fe_error(c, s->names.at[0].loc, "E0215",
                          "a parameter of an optimizer or schedule would not be trained");
    diag_help(d, "`state` declares a value that changes, `frozen` one that stays");
    return false;
  }
  if (ir_is_float(type->dtype) && !ir_is_narrow(type->dtype))
    return true;
  fe_error(c, s->type->loc, "E0204", "a trained parameter must be %s",
           ir_is_narrow(type->dtype) ? "f32 or f64; train { precision = bf16 } narrows what "
                                       "matmuls read"
                                     : "a float tensor");
  return false;
}

// `state t: like foo = foo`: what is wrong with the one foo was said of the other. Of `= use` nothing is wrong.
static bool begins_as_like(const fe *c, const ast_stmt *s) {
  return s->type->like && s->value->kind == AST_NAME &&
         (!strcmp(s->value->text, s->type->like) || fe_find_use(c, s->value->text));
}

static void run_declare(fe *c, const ast_stmt *s) {
  if (s->kind == AST_STATE && fe_is_copy(c, s)) {
    fe_declare_copy(c, s);
    return;
  }
  const ast_name *name = &s->names.at[0];
  const char *path = fe_path(c, name->text);
  const char *const *dim_names;
  ir_type type;
  fe_init init;
  const fe_value *number;
  bool typed = fe_eval_type(c, s->type, &type, &dim_names);
  fe_set(c, name->text, &fe_bad);
  if (!typed && begins_as_like(c, s))
    return;
  ir_state *state = NULL;
  ir_role role = typed ? role_of(c, s, path, &type) : IR_ROLE_PARAM;
  if (fe_want_init(c, s, &init, &number) && typed && fe_check_init(c, s, &type, &init, number) &&
      fe_declare_once(c, name, path) && (role != IR_ROLE_PARAM || check_trainable(c, s, &type)))
    state = fe_declare_state(c, path, type, role, init, name->loc);
  if (!state)
    return;
  remember_trained(c, state);
  c->pass->b.loc = fe_node_loc(c, name->loc);
  fe_value *v = IR_NEW(c->arena, fe_value);
  *v = *fe_present(c, state);
  v->dim_names = dim_names;
  v->state = s->kind == AST_STATE ? state : NULL;
  v->param = s->kind == AST_PARAM ? state : NULL;
  fe_set(c, name->text, v);
}

static bool check_store(fe *c, const ast_stmt *s, const fe_value *to, const fe_value *v) {
  const ir_type *want = &to->state->type, *have = &v->node->type;
  if (ir_same_type(want, have))
    return true;
  bool dtype = ir_same_shape(want, have);
  ir_diag *d =
      fe_error(c, s->value->loc, dtype ? "E0204" : "E0203", "'%s' is %s and cannot hold this value",
               to->state->name, fe_shape_text(c, to));
  diag_label(d, "this is %s", fe_shape_text(c, v));
  return false;
}

// The state itself changes when the function ends.
ir_node *fe_store_value(fe *c, const ast_stmt *s, const fe_value *to, const fe_value *v) {
  if (v->kind == FE_NUM || v->kind == FE_BOOL) // it takes the type and shape of the state
    v = fe_number_to_tensor(c, s->value->loc, v, to->state->type.dtype, &to->state->type);
  if (!fe_want_tensor(c, v, s->value->loc, "the new value") || !check_store(c, s, to, v))
    return NULL;
  fe_store(c, to->state, v->node, s->loc);
  if (s->value->kind != AST_NAME && v->node->op != IR_INPUT && v->node->op != IR_READ)
    ir_rename(c->pass->b.func, v->node, ir_format(c->arena, "%s.new", to->state->name));
  return v->node;
}

// Afterwards the name stands for the new value.
static void run_store(fe *c, const ast_stmt *s) {
  const ast_name *name = &s->names.at[0];
  if (fe_store_copy(c, s))
    return;
  const fe_value *to = fe_lookup(c, name->text, name->loc);
  if (fe_is_bad(to)) // perhaps a copy of a use, of which others may stand on the right
    return;
  const fe_value *v = fe_eval(c, s->value);
  if (fe_is_bad(v))
    return;
  if (to->kind != FE_TENSOR || !to->state) {
    ir_diag *d = fe_error(c, name->loc, "E0215", "'%s' is not a state", name->text);
    diag_help(d, "declare it with `state %s: f32[...] = zeros`, or assign with '='", name->text);
    return;
  }
  ir_node *n = fe_store_value(c, s, to, v);
  if (!n)
    return;
  fe_value *now = IR_NEW(c->arena, fe_value);
  *now = *to;
  now->node = n;
  fe_set(c, name->text, now);
}

// --- control -------------------------------------------------------------------------------------
static bool repeat_count(fe *c, const ast_stmt *s, int64_t *count) {
  if (!fe_want_int(c, fe_eval(c, s->value), s->value->loc, "the number of repetitions", count))
    return false;
  if (*count >= 0 && *count <= FE_MAX_REPEAT)
    return true;
  fe_error(c, s->value->loc, "E0210", "cannot repeat %lld times; between 0 and %d are possible",
           (long long)*count, FE_MAX_REPEAT);
  return false;
}

static size_t errors(const fe *c) {
  return diag_num_errors(c->diags) + diag_num_errors(c->silent);
}

// Instance numbers used inside count on after the loop, so that later uses get new names.
static void keep_counts(fe_naming *outer, const fe_naming *inner) {
  for (size_t i = 0; i < ir_map_count(inner->counts); i++) {
    const char *key = ir_map_key(inner->counts, i);
    uintptr_t uses = (uintptr_t)ir_map_value(inner->counts, i);
    ir_map_put(outer->counts, key, (void *)((uintptr_t)ir_map_get(outer->counts, key) + uses));
  }
}

// They stay known after the iteration.
static void keep_uses(fe_naming *outer, const fe_naming *inner) {
  for (size_t k = 0; inner && k < ir_map_count(inner->uses); k++)
    ir_map_put(outer->uses, ir_map_key(inner->uses, k), ir_map_value(inner->uses, k));
}

// Names without the iteration's number, so that each has those of the first; they stay known after the loop. What is
// drawn at random differs, as in a use `with` another's parameters, also from all of a loop around this one.
static fe_naming *shared_names(fe *c, fe_naming *outer, const fe_naming *last, ir_loc loop,
                               int64_t i, const char *again) {
  keep_uses(outer, last);
  if (i > 0 || again)
    c->frame->again = ir_format(c->arena, "%s iteration %lld of %u:%u", again ? again : "",
                                (long long)i, loop.line, loop.col);
  return fe_naming_new(c, outer, outer->prefix, outer->suffix);
}

static fe_naming *own_names(fe *c, fe_naming *outer, int64_t i) {
  return fe_naming_new(c, outer, outer->prefix,
                       ir_format(c->arena, "%s.%lld", outer->suffix, (long long)i));
}

// Of what an error keeps from being run: the names that it gives values stand for something that has been reported.
static void lose_names(fe *c, const ast_body *body) {
  for (size_t i = 0; i < body->list.num; i++) {
    const ast_stmt *s = body->list.at[i];
    bool gives = s->kind == AST_ASSIGN || s->kind == AST_PARAM || s->kind == AST_STATE;
    for (size_t k = 0; gives && k < s->names.num; k++)
      fe_set(c, s->names.at[k].text, &fe_bad);
    lose_names(c, &s->body);
    lose_names(c, &s->other);
  }
}

static void run_repeat(fe *c, const ast_stmt *s) {
  fe_naming *outer = c->frame->names, *inner = NULL;
  const char *again = c->frame->again;
  size_t before = errors(c);
  int64_t count;
  if (!repeat_count(c, s, &count) || (s->names.num && !fe_check_free(c, &s->names.at[0]))) {
    lose_names(c, &s->body);
    return;
  }
  for (int64_t i = 0; i < count && errors(c) == before && !c->frame->returned; i++) {
    if (!fe_tick(c, s->loc))
      break;
    inner = s->shared ? shared_names(c, outer, inner, s->loc, i, again) : own_names(c, outer, i);
    c->frame->names = inner;
    if (s->names.num)
      fe_set(c, s->names.at[0].text, fe_int(c, i));
    fe_run_body(c, &s->body);
  }
  c->frame->names = outer;
  c->frame->again = again;
  if (inner)
    keep_counts(outer, inner);
  if (s->shared)
    keep_uses(outer, inner);
  else if (inner)
    outer->gone = inner->uses;
}

static void run_when(fe *c, const ast_stmt *s) {
  bool cond;
  if (fe_want_condition(c, s->value, &cond)) {
    fe_run_body(c, cond ? &s->body : &s->other);
    return;
  }
  lose_names(c, &s->body);
  lose_names(c, &s->other);
}

static void run_return(fe *c, const ast_stmt *s) {
  if (c->frame->fn->kind == AST_MODEL || c->frame->fn->kind == AST_OPTIMIZER) {
    ir_diag *d =
        fe_error(c, s->loc, "E0215", "'return' only stands in blocks, schedules and initializers");
    diag_help(d, "`output name = value` makes a value a result of the model");
    return;
  }
  const fe_value **values = IR_NEW_ARRAY(c->arena, const fe_value *, s->values.num + 1);
  bool bad = false;
  for (size_t i = 0; i < s->values.num; i++) {
    values[i] = fe_eval(c, s->values.at[i]);
    bad = bad || fe_is_bad(values[i]);
  }
  c->frame->result = bad                  ? &fe_bad
                     : s->values.num == 1 ? plain(c, values[0])
                                          : fe_list(c, values, s->values.num);
  c->frame->result_loc = s->values.at[0]->loc;
  c->frame->returned = true;
}

// The block says so itself, and is not expanded further: what followed would only confuse.
static void give_up(fe *c) {
  c->frame->result = &fe_bad;
  c->frame->returned = true;
}

static void run_error(fe *c, const ast_stmt *s) {
  ir_buf text = ir_buf_new(c->arena);
  bool bad = false;
  for (size_t i = 0; i < s->values.num; i++) {
    const fe_value *v = fe_eval(c, s->values.at[i]);
    bad = bad || fe_is_bad(v);
    ir_buf_puts(&text, fe_text(c, v));
  }
  if (!bad)
    fe_error(c, s->loc, "E0223", "%s", ir_buf_str(&text));
  give_up(c);
}

// --- results -------------------------------------------------------------------------------------
bool fe_in_model(fe *c, const ast_stmt *s, const char *word) {
  if (c->frame->fn->kind == AST_MODEL)
    return true;
  fe_error(c, s->loc, "E0215", "'%s' only stands in a model", word);
  return false;
}

ir_node *fe_want_scalar(fe *c, const fe_value *v, ir_loc at, const char *what) {
  if (!fe_want_tensor(c, v, at, what))
    return NULL;
  if (v->node->type.rank != 0 || v->node->type.dtype != IR_F32) {
    ir_diag *d = fe_error(c, at, "E0203", "%s must be a scalar f32[]", what);
    diag_label(d, "this is %s", fe_shape_text(c, v));
    diag_help(d, v->node->type.rank == 0 ? "convert it with f32(...)"
                                         : "mean(...) or sum(...) make one number of a tensor");
    return NULL;
  }
  return v->node;
}

// Results that the front end adds by itself, too.
static bool is_in_metrics(const char *name) {
  static const char *const names[] = {"loss", "lr", "grad_norm"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(name, names[i]))
      return true;
  return ir_is_in_metrics(name);
}

bool fe_take_result(fe *c, const ast_name *name) {
  const char *text = name->text;
  if (is_in_metrics(text)) {
    fe_error(c, name->loc, "E0206",
             "a result named '%s': the name has a meaning of its own in --metrics", text);
    return false;
  }
  if (ir_map_get(c->pass->results, text)) {
    fe_say_first(fe_error(c, name->loc, "E0206", "there is already a result named '%s'", text),
                 ir_map_get(c->pass->results, text));
    return false;
  }
  ir_map_put(c->pass->results, text, (void *)&name->loc);
  return true;
}

static void add_result(fe *c, const ast_stmt *s, ir_result_kind kind, ir_node *n) {
  if (!fe_take_result(c, &s->names.at[0]))
    return;
  ir_result r = {s->names.at[0].text, kind, n};
  if (kind == IR_RESULT_METRIC)
    IR_PUSH(c->arena, c->pass->metrics, r);
  else
    IR_PUSH(c->arena, c->pass->outputs, r);
}

static void run_metric(fe *c, const ast_stmt *s) {
  const fe_value *v = fe_eval(c, s->value);
  ir_node *n = fe_in_model(c, s, "metric") ? fe_want_scalar(c, v, s->value->loc, "a metric") : NULL;
  if (!n)
    return;
  assign_result(c, s->names.at[0].text, v, s->value);
  add_result(c, s, IR_RESULT_METRIC, n);
}

void fe_check_rows(fe *c, ir_loc at, const char *name, const fe_value *v, const char *help) {
  int64_t samples = ir_batch_size(c->pass->b.func);
  if (!samples || ir_has_rows(&v->node->type, samples))
    return;
  ir_diag *d = fe_warn(c, at, "W0221", "output '%s' has no row for each sample", name);
  diag_label(d, "this is %s, and a batch has %lld samples", fe_shape_text(c, v),
             (long long)samples);
  diag_help(d, "%s", help);
}

static void run_output(fe *c, const ast_stmt *s) {
  const fe_value *v = fe_eval(c, s->value);
  if (!fe_in_model(c, s, "output") || !fe_want_tensor(c, v, s->value->loc, "an output"))
    return;
  fe_check_rows(c, s->names.at[0].loc, s->names.at[0].text, v,
                "predict leaves it out; a metric reports one number");
  assign_result(c, s->names.at[0].text, v, s->value);
  add_result(c, s, IR_RESULT_OUTPUT, v->node);
}

static void run_bare(fe *c, const ast_stmt *s) {
  const fe_value *v = fe_eval(c, s->value);
  if (fe_is_bad(v))
    return;
  ir_diag *d = fe_error(c, s->value->loc, "E0219", "the value is never used");
  diag_help(d, "assign it: name = ...");
}

static void run_stmt(fe *c, const ast_stmt *s) {
  switch (s->kind) {
  case AST_ASSIGN:
    run_assign(c, s);
    return;
  case AST_PARAM:
  case AST_STATE:
    run_declare(c, s);
    return;
  case AST_STORE:
    run_store(c, s);
    return;
  case AST_REPEAT:
    run_repeat(c, s);
    return;
  case AST_WHEN:
    run_when(c, s);
    return;
  case AST_LOSS:
    fe_run_loss(c, s);
    return;
  case AST_METRIC:
    run_metric(c, s);
    return;
  case AST_OUTPUT:
    run_output(c, s);
    return;
  case AST_RETURN:
    run_return(c, s);
    return;
  case AST_ERROR:
    run_error(c, s);
    return;
  case AST_EXPR:
    run_bare(c, s);
    return;
  }
}

// In a standard block the first mistake is the caller's, and what follows from it says nothing more.
void fe_run_body(fe *c, const ast_body *body) {
  size_t errors = diag_num_errors(c->diags);
  for (size_t i = 0; i < body->list.num && !c->frame->returned; i++) {
    if (!fe_tick(c, body->list.at[i]->loc))
      return;
    run_stmt(c, body->list.at[i]);
    if (c->frame->is_std && diag_num_errors(c->diags) > errors)
      give_up(c);
  }
}
