// losses.c: the statement `loss`: what is made small, over which parameters, and from where on
// their new values count.
//
// Two designs were weighed for programs of several networks (a discriminator and a generator).
//
// Blocks as values:
//
//   disc = new discriminator
//   d_loss = f(disc(x), disc(y))
//   update disc by adam(grad(d_loss, disc))
//
// Names:
//
//   a = discriminator(x) as disc
//   b = discriminator(y) with disc
//   loss d_loss = f(a, b) over disc
//
// Names were taken: uses of blocks have had them since `as`, and checkpoints have the same ones.
// Blocks as values are a new kind of value whose shapes are unknown until its first use, and
// gradients and updates in the model would be beside the recipe in optim { }.
//
// `loss name = value over disc` trains the parameters under `disc`: gradients, clipping and
// optimiser follow at that place, and as with `s <- value` all that comes later sees the new
// values:
//
//   %d.disc.w   = grad %d_loss, %disc.w
//   %disc.w.new = sub %disc.w, ...
//   %now        = stop %disc.w.new            # no later loss looks into an earlier update
//   ...         = matmul %h, %now             # discriminator(fake) with disc
//   write @disc.w, %now
//
// `loss value` is the case of one: all parameters, and the update at the end (fe_optimize).
#include "frontend/check.h"

#include <string.h>

// Settings of optim { } are evaluated outside of the model: errors in them name no block.
static fe_frame *step_out(fe *c) {
  fe_frame *here = c->frame;
  c->frame = NULL;
  return here;
}

static void step_in(fe *c, fe_frame *here) {
  c->frame = here;
  c->pass->b.scope = here->names->prefix;
}

// --- what does not train -------------------------------------------------------------------------
bool fe_is_frozen(fe *c, const char *path, const ir_type *type) {
  const ast_setting *s = fe_optim_setting(c, NULL, "freeze");
  bool frozen = false;
  if (!s || !s->value || c->pass->optimizing)
    return false;
  fe_frame *here = step_out(c);
  fe_enter_optim(c, s->value->loc, path, type->rank);
  if (!fe_want_bool(c, fe_eval(c, s->value), s->value->loc, "'freeze'", &frozen))
    frozen = false;
  fe_leave(c);
  step_in(c, here);
  c->froze = c->froze || frozen;
  return frozen;
}

// True only by what a name contains. Beside other conditions it may be meant to be false: R > 0 and contains(...).
static bool asks_for_names(const ast_expr *e) {
  if (e->kind == AST_BINARY && e->op == AST_OP_OR)
    return asks_for_names(e->a) && asks_for_names(e->b);
  return e->kind == AST_CALL &&
         (strcmp(e->text, "contains") == 0 || strcmp(e->text, "starts_with") == 0 ||
          strcmp(e->text, "ends_with") == 0);
}

void fe_warn_of_freeze(fe *c) {
  const ast_setting *s = fe_optim_setting(c, NULL, "freeze");
  if (c->froze || !s || !s->value || !asks_for_names(s->value))
    return;
  const ir_state *some = NULL;
  for (size_t i = 0; i < c->module->states.num && !some; i++)
    some = c->module->states.at[i]->role == IR_ROLE_PARAM ? c->module->states.at[i] : NULL;
  if (!some)
    return;
  ir_diag *d = fe_warn(c, s->value->loc, "W0230", "'freeze' is true of no parameter");
  diag_help(d, "names are paths such as '%s'", some->name);
}

// --- the parameters of a goal --------------------------------------------------------------------
// "disc" of "disc.linear.w"
static const char *first_part(fe *c, const char *path) {
  return ir_format(c->arena, "%.*s", (int)strcspn(path, "."), path);
}

static bool has_below(const fe *c, const ast_name *name, ir_role role) {
  for (size_t i = 0; i < c->module->states.num; i++) {
    const ir_state *s = c->module->states.at[i];
    if (s->role == role && fe_below(s->name, name->text))
      return true;
  }
  return false;
}

static void nothing_under(fe *c, const ast_name *name) {
  bool frozen = has_below(c, name, IR_ROLE_FROZEN);
  if (frozen || has_below(c, name, IR_ROLE_BUFFER)) {
    fe_error(c, name->loc, "E0222", "nothing of '%s' is trained: %s", name->text,
             frozen ? "its parameters are frozen" : "it has states only");
    return;
  }
  ir_map *parts = ir_map_new(c->arena);
  for (size_t i = 0; i < c->pass->trained.num; i++)
    ir_map_put(parts, first_part(c, c->pass->trained.at[i]->name), c);
  ir_diag *d = fe_error(c, name->loc, "E0222", "no parameter above belongs to '%s'", name->text);
  const fe_use *use = fe_find_use(c, name->text);
  if (use && use->fn)
    diag_help(d,
              "it is the use of '%s', which has none; those of a block in its arguments have "
              "another name",
              use->fn->name.text);
  else
    fe_suggest(c, d, name->text, (const ir_map *const[]){parts}, 1, NULL, 0);
}

static bool claim(fe *c, fe_goal *g, ir_state *param, const ast_name *name) {
  const fe_goal *other = ir_map_get(c->pass->goal_of, param->name);
  if (!other) {
    ir_map_put(c->pass->goal_of, param->name, g);
    IR_PUSH(c->arena, g->trained, param);
    return true;
  }
  ir_diag *d = fe_error(c, name->loc, "E0222", "'%s' is already trained by %s '%s'", param->name,
                        other == g ? "this loss," : "loss", other->name);
  if (other != g)
    diag_note(d, other->loc, "it stands here");
  return false;
}

static bool claim_all(fe *c, fe_goal *g, const ast_name *name) {
  size_t found = 0;
  for (size_t i = 0; i < c->pass->trained.num; i++) {
    ir_state *param = c->pass->trained.at[i];
    if (!fe_below(param->name, name->text))
      continue;
    found++;
    if (!claim(c, g, param, name)) // one error says it for all of them
      return false;
  }
  if (!found)
    nothing_under(c, name);
  return found > 0;
}

// --- from here on --------------------------------------------------------------------------------
// Variables of the model that are its parameters stand for their new values.
static void rebind(fe *c, const fe_goal *g) {
  ir_map *vars = c->frame->vars;
  for (size_t i = 0; i < ir_map_count(vars); i++) {
    const fe_value *v = ir_map_value(vars, i);
    if (v->kind != FE_TENSOR || !v->param || ir_map_get(c->pass->goal_of, v->param->name) != g)
      continue;
    fe_value *now = IR_NEW(c->arena, fe_value);
    *now = *v;
    now->node = fe_present(c, v->param)->node;
    fe_set(c, ir_map_key(vars, i), now);
  }
}

static void step_on(fe *c, const fe_goal *g) {
  for (size_t i = 0; i < g->trained.num; i++) {
    ir_state *param = g->trained.at[i];
    ir_node *now = ir_unary(&c->pass->b, IR_STOP, fe_present(c, param)->node);
    ir_rename(c->pass->b.func, now, ir_format(c->arena, "%s.now", param->name));
    fe_store(c, param, now, g->loc);
  }
  rebind(c, g);
}

// --- the statement -------------------------------------------------------------------------------
// What a call gives for the first parameter, where it gives something.
static const ast_expr *first_argument(const ast_expr *call, const ast_fn *fn) {
  for (size_t i = 0; i < call->args.num; i++) {
    const char *name = call->args.at[i].name;
    if (name ? !strcmp(name, fn->params.at[0].name.text) : i == 0)
      return call->args.at[i].value;
  }
  return NULL;
}

// Without `output`, predict gives what the first loss is computed from: its first argument.
static void remember_output(fe *c, const ast_expr *loss) {
  bool is_std;
  const ast_fn *fn = loss->kind == AST_CALL ? fe_find_block(c, loss->text, &is_std) : NULL;
  if (c->pass->output || !fn || !c->first_arg || c->first_arg->kind != FE_TENSOR)
    return;
  const ast_expr *arg = first_argument(loss, fn);
  c->pass->output = c->first_arg->node;
  c->pass->output_name = arg && arg->kind == AST_NAME ? arg->text : "output";
  c->pass->output_loc = arg ? arg->loc : loss->loc;
}

// One without a name is the only one.
static bool is_welcome(fe *c, const ast_stmt *s) {
  const fe_goal *first = c->pass->goals.num ? c->pass->goals.at[0] : NULL;
  if (!first || (first->name && s->names.num))
    return true;
  ir_diag *d = fe_error(c, s->loc, "E0216", "a model has one loss, or several with names");
  diag_note(d, first->loc, "the first one is here");
  diag_help(d, "loss a = ... over disc; loss b = ... over gen");
  return false;
}

// The batches before the last one of a step would see parameters from before the update.
static bool can_accumulate(fe *c, const ast_stmt *s) {
  if (c->accumulate <= 1)
    return true;
  const ast_setting *k = fe_find_setting(c, AST_TRAIN, "accumulate");
  ir_diag *d =
      fe_error(c, s->loc, "E0216", "a model that accumulates has one loss, without a name");
  if (k)
    diag_note(d, k->key.loc, "accumulate is given here");
  diag_help(d, "what comes after this loss sees its update, and that is made once per step");
  return false;
}

static void train_here(fe *c, const ast_stmt *s, fe_goal *g) {
  bool fine = can_accumulate(c, s);
  for (size_t i = 0; fine && i < s->over.num; i++)
    fine = claim_all(c, g, &s->over.at[i]);
  if (!fine || !c->pass->writes || diag_num_errors(c->diags))
    return;
  fe_frame *here = step_out(c);
  fe_optimize(c, g);
  step_in(c, here);
  if (!diag_num_errors(c->diags))
    step_on(c, g);
}

void fe_run_loss(fe *c, const ast_stmt *s) {
  c->first_arg = NULL;
  const fe_value *v = fe_eval(c, s->value);
  const ast_name *name = s->names.num ? &s->names.at[0] : NULL;
  if (name)
    fe_set(c, name->text, &fe_bad); // until it is in order
  if (!fe_in_model(c, s, "loss") || !is_welcome(c, s))
    return;
  ir_node *n = fe_want_scalar(c, v, s->value->loc, "the loss");
  if (!n || (name && !fe_take_result(c, name)))
    return;
  fe_goal *g = IR_NEW(c->arena, fe_goal);
  *g = (fe_goal){.name = name ? name->text : NULL, .loss = n, .loc = s->loc};
  IR_PUSH(c->arena, c->pass->goals, g);
  remember_output(c, s->value);
  if (!name) {
    fe_name_node(c, v, "loss", s->value);
    return;
  }
  fe_assign(c, name->text, v, s->value);
  train_here(c, s, g);
}

// --- at the end of a model -----------------------------------------------------------------------
static void check_all_trained(fe *c) {
  for (size_t i = 0; i < c->pass->trained.num; i++) {
    const ir_state *param = c->pass->trained.at[i];
    if (ir_map_get(c->pass->goal_of, param->name))
      continue;
    ir_diag *d =
        fe_error(c, param->loc, "E0222", "parameter '%s' is trained by no loss", param->name);
    diag_help(d, "name it behind `over`, above that loss, or make it `frozen`");
  }
}

// Those that evaluation alone has would stay what they began with.
static void check_in_training(fe *c) {
  for (size_t i = 0; i < c->pass->trained.num; i++) {
    const ir_state *param = c->pass->trained.at[i];
    if (c->pass->training)
      ir_map_put(c->trained, param->name, c);
    if (ir_map_get(c->trained, param->name))
      continue;
    ir_diag *d =
        fe_error(c, param->loc, "E0222", "parameter '%s' is trained by no loss", param->name);
    diag_help(d, "only evaluation has it: use it in training, too, or make it `frozen`");
  }
}

// All of them frozen: most likely by mistake.
static void check_freeze(fe *c) {
  const ast_setting *s = fe_optim_setting(c, NULL, "freeze");
  if (!s || c->pass->trained.num)
    return;
  ir_diag *d = fe_error(c, s->key.loc, "E0222", "no parameter is left to train");
  diag_help(d, "freeze = not contains(name, \"lora\") leaves those with lora in their names");
}

void fe_check_goals(fe *c) {
  if (diag_num_errors(c->diags))
    return;
  fe_pass *p = c->pass;
  if (!p->goals.num) {
    ir_diag *d = fe_error(c, c->model->name.loc, "E0216", "model '%s' has no loss%s",
                          c->model->name.text, p->training ? "" : " in evaluation");
    if (p->training)
      diag_help(d, "add a statement such as `loss cross_entropy(logits, label)`");
    else
      diag_help(d, "`loss` stands outside of `if training`: evaluation reports one, too");
    return;
  }
  check_freeze(c);
  check_in_training(c);
  fe_goal *only = p->goals.at[0];
  if (only->name)
    check_all_trained(c);
  else
    for (size_t i = 0; i < p->trained.num; i++)
      IR_PUSH(c->arena, only->trained, p->trained.at[i]);
}
