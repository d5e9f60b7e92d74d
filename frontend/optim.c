// optim.c: what a training step does once it has a loss: gradients, accumulation, clipping, the
// schedule and the optimiser. Optimisers and schedules are written in the language
// (std/optim.graph) and expanded here for each parameter of the goal (losses.c).
#include "frontend/check.h"

#include <string.h>

typedef struct optimizing {
  const fe_goal *goal;
  const ast_expr *call; // adamw(lr, ...)
  const ast_fn *fn;
  bool is_std;
  const ast_arg **args;    // by parameter of fn
  IR_VEC(ir_node *) grads; // by trained parameter
  const fe_value *lr;      // from the schedule; NULL: as given
} optimizing;

enum { IMPLICIT_OPTIMIZER = 2, IMPLICIT_SCHEDULE = 1 }; // (w, g, ...) and (lr, ...)

// --- finding -------------------------------------------------------------------------------------
static const ast_fn *find_fn(fe *c, const ast_expr *call, const ir_map *own, const ir_map *std,
                             bool *is_std, const char *what) {
  const ast_fn *fn = ir_map_get(own, call->text);
  *is_std = !fn;
  fn = fn ? fn : ir_map_get(std, call->text);
  if (fn)
    return fn;
  ir_diag *d = fe_error(c, call->op_loc, "E0305", "unknown %s '%s'", what, call->text);
  fe_suggest(c, d, call->text, (const ir_map *const[]){own, std}, 2, NULL, 0);
  return NULL;
}

// --- expanding -----------------------------------------------------------------------------------
static void tell_of_parameter(fe *c, const char *param, int rank) {
  fe_set(c, "rank", fe_int(c, rank));
  fe_set(c, "name", fe_str(c, param));
}

void fe_enter_optim(fe *c, ir_loc at, const char *param, int rank) {
  fe_enter(c, c->model, at, fe_naming_new(c, NULL, NULL, ""), false);
  if (param)
    tell_of_parameter(c, param, rank);
}

// "grad_norm"; "d_loss.grad_norm" where there is more than one of them.
static const char *own_name(fe *c, const fe_goal *g, const char *name) {
  return g->name ? ir_format(c->arena, "%s.%s", g->name, name) : name;
}

// --- gradients -----------------------------------------------------------------------------------
static ir_node *scaled(fe *c, ir_node *n) {
  return c->accumulate > 1 ? ir_binary_const(&c->pass->b, IR_MUL, n, 1 / (double)c->accumulate) : n;
}

static void take_grads(fe *c, optimizing *o) {
  fe_pass *p = c->pass;
  for (size_t i = 0; i < o->goal->trained.num; i++) {
    ir_state *param = o->goal->trained.at[i];
    p->b.loc = param->loc;
    ir_node *g = ir_grad(&p->b, o->goal->loss, fe_read(c, param)->node);
    IR_PUSH(c->arena, o->grads, g);
  }
}

// --- accumulation --------------------------------------------------------------------------------
// Adds `n`/k to the accumulator `name`. In accum the sum is stored; in step, which is the last
// micro-batch, it is the result and the accumulator starts again at zero.
//
// A parameter may be called `loss`, too: one accumulator serves one value only.
static ir_node *accumulate(fe *c, const char *name, ir_node *n, bool last) {
  const char *path = ir_format(c->arena, "%s.acc", name);
  while (ir_map_get(c->pass->declared, path))
    path = ir_format(c->arena, "%s_2", path);
  ir_map_put(c->pass->declared, path, &n->loc);
  ir_state *acc = fe_declare_state(c, path, n->type, IR_ROLE_ACCUM,
                                   (fe_init){.kind = FE_INIT_CONSTANT}, n->loc);
  if (!acc)
    return n;
  ir_builder *b = &c->pass->b;
  ir_node *before = fe_read(c, acc)->node;
  ir_node *sum = ir_binary(b, IR_ADD, before, scaled(c, n));
  ir_rename(b->func, sum, ir_format(c->arena, "%s.%s", name, last ? "mean" : "sum"));
  fe_store(c, acc, last ? ir_const(b, n->type, 0) : sum, n->loc);
  return sum;
}

static void accumulate_all(fe *c, optimizing *o, fe_goal *g, bool last) {
  fe_pass *p = c->pass;
  if (c->accumulate <= 1)
    return;
  for (size_t i = 0; i < o->grads.num; i++)
    o->grads.at[i] = accumulate(c, g->trained.at[i]->name, o->grads.at[i], last);
  g->loss = accumulate(c, "loss", g->loss, last);
  for (size_t i = 0; i < p->metrics.num; i++) {
    const char *name = ir_format(c->arena, "metric.%s", p->metrics.at[i].name);
    p->metrics.at[i].node = accumulate(c, name, p->metrics.at[i].node, last);
  }
  ir_state *micro = ir_find_state(c->module, "micro");
  ir_node *next = last ? ir_const(&p->b, micro->type, 0)
                       : ir_binary_const(&p->b, IR_ADD, fe_read(c, micro)->node, 1);
  fe_store(c, micro, next, (ir_loc){0});
}

void fe_build_accum(fe *c) {
  if (c->accumulate <= 1)
    return;
  fe_pass *p = fe_pass_new(c, "accum", true);
  fe_run_model(c);
  if (diag_num_errors(c->diags))
    return;
  p->b.scope = NULL;
  optimizing o = {.goal = p->goals.at[0]};
  take_grads(c, &o);
  accumulate_all(c, &o, p->goals.at[0], false);
  fe_flush_writes(c);
}

// --- clipping ------------------------------------------------------------------------------------
static ir_node *sum_of_squares(ir_builder *b, ir_node *g) {
  int64_t axes[IR_MAX_RANK];
  for (int i = 0; i < g->type.rank; i++)
    axes[i] = i;
  ir_node *sq = ir_binary(b, IR_MUL, g, g);
  ir_node *sum = ir_reshape(b, ir_reduce(b, IR_SUM, sq, axes, g->type.rank), 0, NULL);
  return g->type.dtype == IR_F32 ? sum : ir_cast(b, sum, IR_F32); // one norm over f32 and f64
}

static ir_node *global_norm(fe *c, const optimizing *o) {
  ir_builder *b = &c->pass->b;
  ir_node *total = NULL;
  for (size_t i = 0; i < o->grads.num; i++) {
    ir_node *s = sum_of_squares(b, o->grads.at[i]);
    total = total ? ir_binary(b, IR_ADD, total, s) : s;
  }
  ir_node *norm = ir_unary(b, IR_SQRT, total);
  ir_rename(b->func, norm, own_name(c, o->goal, "grad_norm"));
  return norm;
}

static void add_metric(fe *c, const char *name, ir_node *n) {
  ir_result r = {name, IR_RESULT_METRIC, n};
  IR_PUSH(c->arena, c->pass->metrics, r);
}

// clip = max_norm: every gradient times min(1, max_norm / (norm + 1e-6)), as torch does it.
static void clip(fe *c, optimizing *o) {
  const ast_setting *s = fe_optim_setting(c, o->goal->name, "clip");
  ir_builder *b = &c->pass->b;
  if (!s || !s->value || o->grads.num == 0)
    return;
  fe_enter_optim(c, s->value->loc, NULL, 0);
  const fe_value *max_norm = fe_eval(c, s->value);
  fe_leave(c);
  bool number = max_norm->kind == FE_NUM;
  if (fe_is_bad(max_norm))
    return;
  if ((!number && max_norm->kind != FE_TENSOR) || (number && max_norm->num <= 0)) {
    ir_diag *d = fe_error(c, s->value->loc, "E0303", "clip must be a number above 0");
    diag_label(d, "this is %s", fe_describe(c, max_norm));
    return;
  }
  if (!fe_check_setting(c, s->value->loc, "clip", max_norm, IR_F32))
    return;
  b->loc = fe_node_loc(c, s->key.loc);
  b->scope = "clip";
  ir_node *norm = global_norm(c, o);
  ir_node *safe = ir_binary_const(b, IR_ADD, norm, 1e-6);
  const fe_value *ratio = fe_binary(c, AST_OP_DIV, s->value->loc, max_norm, fe_tensor(c, safe));
  if (fe_is_bad(ratio))
    return;
  ir_node *scale = ir_binary(b, IR_MIN, ratio->node, ir_const(b, ir_scalar(IR_F32), 1));
  ir_rename(b->func, scale, "clip_scale");
  for (size_t i = 0; i < o->grads.num; i++) {
    ir_node *g = o->grads.at[i];
    ir_node *own = g->type.dtype == IR_F32 ? scale : ir_cast(b, scale, g->type.dtype);
    ir_node *wide = ir_broadcast_to(b, own, g->type.rank, g->type.dims);
    o->grads.at[i] = ir_binary(b, IR_MUL, g, wide);
    ir_rename(b->func, o->grads.at[i], ir_format(c->arena, "%s.clipped", g->name));
  }
  b->scope = NULL;
  add_metric(c, own_name(c, o->goal, "grad_norm"), norm);
}

// --- the schedule --------------------------------------------------------------------------------
static int find_param(const ast_fn *fn, const char *name) {
  for (size_t i = 0; i < fn->params.num; i++)
    if (strcmp(fn->params.at[i].name.text, name) == 0)
      return (int)i;
  return -1;
}

static const fe_value *base_rate(fe *c, const optimizing *o, int at) {
  const ast_param *p = &o->fn->params.at[at];
  const ast_arg *arg = o->args[at];
  const fe_value *v = fe_eval(c, arg ? arg->value : p->value);
  bool fine = !arg || fe_check_setting(c, arg->value->loc, "'lr'", v, IR_F32);
  return fine ? v : &fe_bad;
}

// An argument of an optimiser or schedule that computes in element type t; NULL: it is not given.
static const fe_value *argument(fe *c, const ast_fn *fn, const ast_arg **args, size_t i,
                                ir_dtype t) {
  if (!args[i])
    return NULL;
  const fe_value *v = fe_eval(c, args[i]->value);
  const char *what = ir_format(c->arena, "'%s'", fn->params.at[i].name.text);
  return fe_check_setting(c, args[i]->value->loc, what, v, t) ? v : &fe_bad;
}

static const fe_value *as_rate(fe *c, ir_loc at, const fe_value *v) {
  if (v->kind == FE_NUM)
    v = fe_tensor(c, fe_emit_const(c, at, IR_F32, v->num));
  if (!fe_want_tensor(c, v, at, "a learning rate"))
    return &fe_bad;
  if (v->node->type.rank != 0)
    return FE_FAIL(c, at, "E0203", "a learning rate must be a scalar");
  return fe_tensor(c, fe_emit_cast(c, at, v->node, IR_F32));
}

static const fe_value *run_schedule(fe *c, const optimizing *o, const ast_expr *call) {
  bool is_std;
  const ast_fn *fn = find_fn(c, call, c->schedules, c->std_schedules, &is_std, "schedule");
  int lr = find_param(o->fn, "lr");
  if (!fn)
    return &fe_bad;
  const ast_arg **args = fe_place_rest(c, call, fn, IMPLICIT_SCHEDULE);
  if (lr < 0 || fn->params.num == 0)
    return FE_FAIL(c, call->loc, "E0305", "optimiser '%s' has no 'lr' to schedule",
                   o->fn->name.text);
  if (!args)
    return &fe_bad;
  const fe_value **values = IR_NEW_ARRAY(c->arena, const fe_value *, fn->params.num);
  values[0] = base_rate(c, o, lr);
  bool ok = !fe_is_bad(values[0]);
  for (size_t i = IMPLICIT_SCHEDULE; i < fn->params.num; i++) {
    values[i] = argument(c, fn, args, i, IR_F32);
    ok = ok && (!values[i] || !fe_is_bad(values[i]));
  }
  if (!ok)
    return &fe_bad;
  return as_rate(c, call->loc,
                 fe_run_fn(c, fn, is_std, call->loc, own_name(c, o->goal, "schedule"), values));
}

static void schedule(fe *c, optimizing *o) {
  const ast_setting *s = fe_optim_setting(c, o->goal->name, "schedule");
  if (!s || !s->value)
    return;
  if (s->value->kind != AST_CALL) {
    ir_diag *d = fe_error(c, s->value->loc, "E0303", "expected a schedule");
    diag_help(d, "for example cosine(warmup=100, total=2000)");
    return;
  }
  fe_enter_optim(c, s->value->loc, NULL, 0);
  o->lr = run_schedule(c, o, s->value);
  fe_leave(c);
  if (fe_is_bad(o->lr))
    return;
  ir_rename(c->pass->b.func, o->lr->node, own_name(c, o->goal, "lr.now"));
  add_metric(c, own_name(c, o->goal, "lr"), o->lr->node);
}

// --- the optimiser -------------------------------------------------------------------------------
static const fe_value *weight_value(fe *c, ir_state *param) {
  fe_value *v = IR_NEW(c->arena, fe_value);
  *v = *fe_read(c, param);
  v->state = param;
  return v;
}

static void update_one(fe *c, const optimizing *o, ir_state *param, ir_node *grad) {
  const ast_fn *fn = o->fn;
  const fe_value **values = IR_NEW_ARRAY(c->arena, const fe_value *, fn->params.num);
  bool ok = true;
  fe_enter_optim(c, o->call->loc, param->name, param->type.rank);
  c->pass->b.loc = fe_node_loc(c, o->call->loc);
  values[0] = weight_value(c, param);
  values[1] = fe_tensor(c, grad);
  int lr = find_param(fn, "lr");
  for (size_t i = IMPLICIT_OPTIMIZER; i < fn->params.num; i++) {
    if (o->lr && (int)i == lr)
      values[i] = o->lr;
    else
      values[i] = argument(c, fn, o->args, i, param->type.dtype);
    ok = ok && (!values[i] || !fe_is_bad(values[i]));
  }
  fe_naming *names = fe_naming_new(c, NULL, param->name, "");
  fe_enter(c, fn, o->call->loc, names, o->is_std);
  tell_of_parameter(c, param->name, param->type.rank); // what fn calls so itself comes after it
  if (ok && fe_bind_values(c, fn, values))
    fe_run_body(c, &fn->body);
  if (!diag_num_errors(c->diags) && !ir_map_get(c->pass->written, param->name))
    fe_error(c, fn->name.loc, "E0215", "optimizer '%s' never stores to '%s'", fn->name.text,
             fn->params.at[0].name.text);
  fe_leave(c);
  fe_leave(c);
}

// --- not in every step ---------------------------------------------------------------------------
// update_every = n: the step in which an update is made is the last of n. 1: each, also after an error.
static int64_t update_every(fe *c, const fe_goal *g) {
  const ast_setting *s = fe_optim_setting(c, g->name, "update_every");
  int64_t n = 1;
  if (!s || !s->value)
    return 1;
  fe_enter_optim(c, s->value->loc, NULL, 0);
  bool known = fe_want_int(c, fe_eval(c, s->value), s->value->loc, "'update_every'", &n);
  fe_leave(c);
  if (known && n < 1)
    fe_error(c, s->value->loc, "E0303", "update_every is %lld; it is 1 or more", (long long)n);
  return known && n > 1 ? n : 1;
}

// `now` where an update is due, else what the state holds. Narrow floats are for storing: they are
// chosen in f32, which keeps them.
static ir_node *when_due(fe *c, const fe_value *due, ir_loc at, ir_node *now, ir_state *s) {
  ir_builder *b = &c->pass->b;
  ir_dtype t = s->type.dtype, wide = ir_is_narrow(t) ? IR_F32 : t;
  const fe_value *next = fe_tensor(c, ir_cast(b, now, wide));
  const fe_value *held = fe_tensor(c, ir_cast(b, fe_read(c, s)->node, wide));
  return ir_cast(b, fe_select(c, at, due, next, held)->node, t);
}

// What pending.at[first] and the writes behind it store is stored in the last of n steps; before that states stay.
static void store_when_due(fe *c, const optimizing *o, int64_t n, size_t first) {
  fe_pass *p = c->pass;
  ir_loc at = o->call->loc;
  const fe_value *step = fe_tensor(c, fe_read_named(c, "step"));
  const fe_value *place = fe_binary(c, AST_OP_MOD, at, step, fe_int(c, n));
  const fe_value *due = fe_binary(c, AST_OP_EQ, at, place, fe_int(c, n - 1));
  for (size_t i = first; i < p->pending.num; i++) {
    ir_state *s = p->pending.at[i].state;
    p->pending.at[i].node = when_due(c, due, at, p->pending.at[i].node, s);
    ir_rename(p->b.func, p->pending.at[i].node, ir_format(c->arena, "%s.due", s->name));
  }
}

static void update_all(fe *c, const optimizing *o) {
  fe_pass *p = c->pass;
  size_t first = p->pending.num;
  int64_t n = update_every(c, o->goal);
  if (n > 1) {
    const fe_value *step = fe_tensor(c, fe_read_named(c, "step"));
    p->updates = fe_binary(c, AST_OP_FLOORDIV, o->call->loc, step, fe_int(c, n))->node;
  }
  for (size_t i = 0; i < o->goal->trained.num && !diag_num_errors(c->diags); i++)
    update_one(c, o, o->goal->trained.at[i], o->grads.at[i]);
  p->updates = NULL;
  if (n > 1 && !diag_num_errors(c->diags))
    store_when_due(c, o, n, first);
}

// `optim { adamw }`: its name alone.
static bool is_optimizer_name(const fe *c, const ast_expr *e) {
  return e->kind == AST_NAME &&
         (ir_map_get(c->optimizers, e->text) || ir_map_get(c->std_optimizers, e->text));
}

// `s`: something else stands in its place, or NULL.
static void no_optimizer(fe *c, const fe_goal *g, const ast_setting *s) {
  const ast_item *own = fe_own_optim(c, g->name);
  ir_loc at = s ? s->value->loc : own ? own->of.loc : g->name ? g->loc : c->model->name.loc;
  ir_diag *d = fe_error(c, at, "E0304", "there is no optimiser for %s '%s'",
                        g->name ? "loss" : "model", g->name ? g->name : c->model->name.text);
  if (own)
    diag_help(d, "add one to the section, such as `sgd(0.1)`");
  else
    diag_help(d, "add a section such as `optim { sgd(0.1) }`");
}

static bool find_optimizer(fe *c, optimizing *o) {
  const ast_setting *s = fe_optim_setting(c, o->goal->name, NULL);
  if (s && is_optimizer_name(c, s->value)) {
    ir_diag *d = fe_error(c, s->value->loc, "E0303", "an optimiser has arguments");
    diag_help(d, "call it: %s(lr)", s->value->text);
    return false;
  }
  if (!s || s->value->kind != AST_CALL) {
    no_optimizer(c, o->goal, s);
    return false;
  }
  o->call = s->value;
  o->fn = find_fn(c, o->call, c->optimizers, c->std_optimizers, &o->is_std, "optimiser");
  if (!o->fn)
    return false;
  if (o->fn->params.num < IMPLICIT_OPTIMIZER) {
    fe_error(c, o->fn->name.loc, "E0205", "an optimizer begins with two parameters: w, g");
    return false;
  }
  o->args = fe_place_rest(c, o->call, o->fn, IMPLICIT_OPTIMIZER);
  return o->args != NULL;
}

void fe_check_optimizers(fe *c) {
  fe_goal g = {.name = NULL};
  optimizing o = {.goal = &g};
  bool named = false;
  for (size_t i = 0; i < c->sections.num; i++) {
    const ast_item *item = c->sections.at[i];
    if (item->kind != AST_OPTIM || !item->of.text)
      continue;
    named = true;
    g.name = item->of.text;
    find_optimizer(c, &o);
  }
  g.name = NULL;
  if (!named || fe_optim_setting(c, NULL, NULL))
    find_optimizer(c, &o);
}

static void warn_of_nothing(fe *c, const optimizing *o) {
  const fe_goal *g = o->goal;
  ir_diag *d =
      fe_warn(c, o->call->loc, "W0229", "there is nothing to train: %s '%s' has no parameters",
              g->name ? "loss" : "model", g->name ? g->name : c->model->name.text);
  diag_help(d, "parameters are declared by `param`, or come with layers such as linear()");
}

static void optimize(fe *c, fe_goal *g) {
  fe_pass *p = c->pass;
  optimizing o = {.goal = g};
  if (!find_optimizer(c, &o))
    return;
  if (g->trained.num == 0)
    warn_of_nothing(c, &o);
  p->b.scope = NULL;
  take_grads(c, &o);
  accumulate_all(c, &o, g, true);
  p->optimizing = true;
  p->b.scope = NULL;
  clip(c, &o);
  schedule(c, &o);
  update_all(c, &o);
  p->optimizing = false;
}

void fe_optimize(fe *c, fe_goal *g) {
  ir_map *model = fe_use_file_lets(c);
  optimize(c, g);
  c->lets = model;
}
