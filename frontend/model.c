// model.c: the functions of the module. The model is walked once for each: step (training, with
// gradients and updates), accum (a micro-batch that only adds up), eval and predict.
#include "frontend/check.h"

#include <string.h>

enum { MOST_RESULTS = 256 }; // MLRT_MAX_RESULTS of the runtime

fe_pass *fe_pass_new(fe *c, const char *name, bool training) {
  fe_pass *p = IR_NEW(c->arena, fe_pass);
  p->b = ir_build_at_end(ir_func_new(c->module, name));
  p->training = p->writes = training;
  p->written = ir_map_new(c->arena);
  p->declared = ir_map_new(c->arena);
  p->results = ir_map_new(c->arena);
  p->goal_of = ir_map_new(c->arena);
  c->pass = p;
  return p;
}

// --- states --------------------------------------------------------------------------------------
void fe_store(fe *c, ir_state *s, ir_node *n, ir_loc at) {
  fe_pass *p = c->pass;
  size_t at_pending = (size_t)(uintptr_t)ir_map_get(p->written, s->name);
  if (at_pending) {
    p->pending.at[at_pending - 1].node = n;
    return;
  }
  fe_write w = {s, n, fe_node_loc(c, at)};
  IR_PUSH(c->arena, p->pending, w);
  ir_map_put(p->written, s->name, (void *)(uintptr_t)p->pending.num);
}

void fe_flush_writes(fe *c) {
  fe_pass *p = c->pass;
  p->b.scope = NULL;
  for (size_t i = 0; i < p->pending.num; i++) {
    p->b.loc = p->pending.at[i].loc;
    ir_write(&p->b, p->pending.at[i].state, p->pending.at[i].node);
  }
}

ir_node *fe_read_named(fe *c, const char *name) {
  ir_state *s = ir_find_state(c->module, name);
  BUG_IF(!s, "no state '%s'", name);
  return fe_read(c, s)->node;
}

// --- random values -------------------------------------------------------------------------------
// Micro-batches
// of one step draw different values: the key counts them all.
static ir_node *random_step(fe *c) {
  fe_pass *p = c->pass;
  if (!p->random_step) {
    p->random_step = fe_read_named(c, "step");
    if (c->accumulate > 1) {
      ir_node *before = ir_binary_const(&p->b, IR_MUL, p->random_step, (double)c->accumulate);
      p->random_step = ir_binary(&p->b, IR_ADD, before, fe_read_named(c, "micro"));
    }
  }
  return p->random_step;
}

uint32_t fe_stream(const char *name) {
  uint32_t h = 2166136261u;
  for (; *name; name++)
    h = (h ^ (unsigned char)*name) * 16777619u;
  return h & 0x7fffffffu;
}

ir_node *fe_emit_random(fe *c, ir_loc at, ir_op op, const ir_type *type) {
  if (!c->pass) {
    fe_error(c, at, "E0207", "random values cannot stand here");
    return NULL;
  }
  const char *name = fe_instance(c, ir_ops[op].name);
  if (c->frame->again) // parameters are shared, what is drawn is not
    name = ir_format(c->arena, "%s%s", name, c->frame->again);
  ir_attr stream = ir_a_int(IR_ATTR_STREAM, fe_stream(name));
  ir_node *in[] = {fe_read_named(c, "seed"), random_step(c)};
  return fe_emit(c, at, op, 2, in, 1, &stream, type);
}

// --- the model -----------------------------------------------------------------------------------
static void bind_input(fe *c, const ast_param *p) {
  const char *const *names = NULL;
  ir_type type;
  fe_set(c, p->name.text, &fe_bad);
  if (!p->type || p->value) {
    ir_diag *d = fe_error(c, p->name.loc, "E0205", "an input of a model needs a type and no value");
    diag_help(d, "write %s: f32[B,64]", p->name.text);
    return;
  }
  if (!fe_eval_type(c, p->type, &type, &names))
    return;
  if (type.rank == 0) {
    fe_error(c, p->type->loc, "E0203", "the first dimension of an input is the batch");
    return;
  }
  c->pass->b.loc = fe_node_loc(c, p->name.loc);
  if (ir_map_get(c->pass->declared, p->name.text)) {
    ir_diag *d =
        fe_error(c, p->name.loc, "E0206", "there is already an input named '%s'", p->name.text);
    fe_say_first(d, ir_map_get(c->pass->declared, p->name.text));
    return;
  }
  ir_map_put(c->pass->declared, p->name.text, (void *)&p->name.loc);
  fe_set(c, p->name.text, fe_tensor_named(c, ir_input(&c->pass->b, p->name.text, type), names));
}

// All inputs of one batch have the same number of rows.
static bool check_batch(fe *c) {
  const ir_func *f = c->pass->b.func;
  const ir_node *a = NULL;
  for (size_t i = 0, input = 0; i < f->nodes.num; i++) {
    const ir_node *b = f->nodes.at[i];
    if (b->op != IR_INPUT) // of a dimension: shape(zeros([4]))[0]
      continue;
    const ast_param *param = &c->model->params.at[input++];
    a = a ? a : b;
    if (a->type.dims[0] == b->type.dims[0])
      continue;
    ir_diag *d = fe_error(c, param->name.loc, "E0208", "the batch is %lld in '%s' but %lld in '%s'",
                          (long long)b->type.dims[0], b->name, (long long)a->type.dims[0], a->name);
    diag_label(d, "this is %s", ir_type_str(c->arena, &b->type));
    return false;
  }
  return true;
}

void fe_run_model(fe *c) {
  fe_enter(c, c->model, c->model->name.loc, fe_naming_new(c, NULL, NULL, ""), false);
  size_t before = diag_num_errors(c->diags);
  for (size_t i = 0; i < c->model->params.num; i++)
    bind_input(c, &c->model->params.at[i]);
  if (c->model->params.num == 0)
    fe_error(c, c->model->name.loc, "E0216", "model '%s' has no inputs", c->model->name.text);
  // What meets in the model is then of different sizes, too.
  if (before < diag_num_errors(c->diags) || check_batch(c)) {
    fe_run_body(c, &c->model->body);
    fe_check_goals(c);
  }
  fe_leave(c);
}

// --- functions -----------------------------------------------------------------------------------
static void add_results(fe *c) {
  fe_pass *p = c->pass;
  for (size_t i = 0; i < p->goals.num; i++) {
    const fe_goal *g = p->goals.at[i];
    ir_result_add(p->b.func, g->name ? g->name : "loss", IR_RESULT_LOSS, g->loss);
  }
  for (size_t i = 0; i < p->metrics.num; i++)
    ir_result_add(p->b.func, p->metrics.at[i].name, IR_RESULT_METRIC, p->metrics.at[i].node);
  const ir_func *f = p->b.func;
  if (f->results.num > MOST_RESULTS)
    fe_error(c, f->results.at[MOST_RESULTS].node->loc, "E0226",
             "%zu losses and metrics: a trainer logs at most %d", f->results.num,
             (int)MOST_RESULTS);
}

static void build_step(fe *c) {
  fe_pass *p = fe_pass_new(c, "step", true);
  fe_run_model(c);
  if (diag_num_errors(c->diags)) {
    fe_check_optimizers(c);
    return;
  }
  if (!p->goals.at[0]->name) // the others were trained where they stand
    fe_optimize(c, p->goals.at[0]);
  if (diag_num_errors(c->diags))
    return;
  add_results(c);
  ir_state *step = ir_find_state(c->module, "step");
  p->b.scope = NULL;
  p->b.loc = (ir_loc){0};
  ir_node *next = ir_binary_const(&p->b, IR_ADD, fe_read(c, step)->node, 1);
  ir_rename(p->b.func, next, "next_step");
  fe_store(c, step, next, (ir_loc){0});
  fe_flush_writes(c);
}

static void build_eval(fe *c) {
  fe_pass_new(c, "eval", false);
  fe_run_model(c);
  if (!diag_num_errors(c->diags))
    add_results(c);
}

// --- predict -------------------------------------------------------------------------------------
static void mark(ir_node *n, bool *live, ir_node **stack) {
  size_t top = 0;
  stack[top++] = n;
  while (top) {
    ir_node *x = stack[--top];
    if (live[x->id])
      continue;
    live[x->id] = true;
    for (int i = 0; i < x->num_in; i++)
      if (!live[x->in[i]->id])
        stack[top++] = x->in[i];
  }
}

// Keeps what the results need, and all inputs: a batch has the same form in every function.
static void keep_live(fe *c, ir_func *f) {
  size_t edges = f->nodes.num + 1, kept = 0;
  for (size_t i = 0; i < f->nodes.num; i++)
    edges += (size_t)f->nodes.at[i]->num_in;
  bool *live = IR_NEW_ARRAY(c->arena, bool, f->next_id + 1);
  ir_node **stack = IR_NEW_ARRAY(c->arena, ir_node *, edges);
  for (size_t i = 0; i < f->results.num; i++)
    mark(f->results.at[i].node, live, stack);
  for (size_t i = 0; i < f->nodes.num; i++)
    if (live[f->nodes.at[i]->id] || f->nodes.at[i]->op == IR_INPUT)
      f->nodes.at[kept++] = f->nodes.at[i];
  f->nodes.num = kept;
}

static void drop_last_func(fe *c) {
  c->module->funcs.num--;
}

static void build_predict(fe *c) {
  fe_pass *p = fe_pass_new(c, "predict", false);
  fe_run_model(c);
  if (diag_num_errors(c->diags))
    return;
  for (size_t i = 0; i < p->outputs.num; i++)
    ir_result_add(p->b.func, p->outputs.at[i].name, IR_RESULT_OUTPUT, p->outputs.at[i].node);
  if (p->outputs.num == 0 && p->output) {
    ir_result_add(p->b.func, p->output_name, IR_RESULT_OUTPUT, p->output);
    fe_check_rows(c, p->output_loc, p->output_name, fe_tensor(c, p->output),
                  "predict leaves out what the loss begins with; `output name = value` names what "
                  "it is to give");
  }
  if (p->b.func->results.num == 0)
    drop_last_func(c); // nothing to predict
  else
    keep_live(c, p->b.func);
}

static void init_first(fe *c) {
  ir_module *m = c->module;
  ir_func *init = m->funcs.at[m->funcs.num - 1];
  memmove(m->funcs.at + 1, m->funcs.at, (m->funcs.num - 1) * sizeof *m->funcs.at);
  m->funcs.at[0] = init;
}

void fe_build_functions(fe *c) {
  static void (*const steps[])(fe *) = {build_step, fe_build_accum, build_eval, build_predict,
                                        fe_build_init};
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    c->frame = NULL;
    steps[i](c);
    c->pass = NULL;
    if (diag_num_errors(c->diags))
      return;
  }
  init_first(c);
}
