// module.c: modules, functions and states, and the deep copy of a module.
#include "ir/ir.h"

#include <math.h>
#include <string.h>

ir_module *ir_module_new(ir_arena *a, const char *name) {
  ir_module *m = IR_NEW(a, ir_module);
  m->arena = a;
  m->name = ir_strdup(a, name);
  m->state_names = ir_map_new(a);
  return m;
}

ir_func *ir_func_new(ir_module *m, const char *name) {
  ir_func *f = IR_NEW(m->arena, ir_func);
  f->name = ir_strdup(m->arena, name);
  f->module = m;
  f->names = ir_map_new_lent(m->arena, 0);
  f->name_counts = ir_map_new(m->arena);
  IR_PUSH(m->arena, m->funcs, f);
  return f;
}

ir_func *ir_find_func(const ir_module *m, const char *name) {
  for (size_t i = 0; i < m->funcs.num; i++)
    if (strcmp(m->funcs.at[i]->name, name) == 0)
      return m->funcs.at[i];
  return NULL;
}

ir_func *ir_batch_func(const ir_module *m) {
  ir_func *step = ir_find_func(m, "step");
  return step ? step : ir_find_func(m, "eval");
}

int64_t ir_batch_size(const ir_func *f) {
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_INPUT)
      return f->nodes.at[i]->type.rank > 0 ? f->nodes.at[i]->type.dims[0] : 0;
  return 0;
}

bool ir_has_rows(const ir_type *t, int64_t samples) {
  return t->rank > 0 && t->dims[0] == samples;
}

static bool is_listed(const char *name, const char *const *names, size_t num) {
  for (size_t i = 0; i < num; i++)
    if (strcmp(name, names[i]) == 0)
      return true;
  return false;
}

bool ir_is_run(const ir_func *f) {
  static const char *const names[] = {"init", "step", "eval", "predict", "accum"};
  return is_listed(f->name, names, sizeof names / sizeof *names);
}

bool ir_is_in_metrics(const char *name) {
  static const char *const names[] = {"step", "epoch", "time", "eval"};
  return is_listed(name, names, sizeof names / sizeof *names);
}

ir_state *ir_state_new(ir_module *m, const char *name, ir_type type, ir_role role, ir_loc loc) {
  BUG_IF(ir_map_get(m->state_names, name), "state '%s' is made twice", name);
  ir_state *s = IR_NEW(m->arena, ir_state);
  s->name = ir_strdup(m->arena, name);
  s->type = type;
  s->role = role;
  s->loc = loc;
  s->id = (uint32_t)m->states.num;
  IR_PUSH(m->arena, m->states, s);
  ir_map_put(m->state_names, name, s);
  return s;
}

ir_state *ir_find_state(const ir_module *m, const char *name) {
  return ir_map_get(m->state_names, name);
}

// --- copying -----------------------------------------------------------------------------
// Names, attribute lists and settings never change once made, so copies share their text.
typedef struct cloner {
  ir_module *to;
  ir_node **nodes; // by old node id, of the function at hand
} cloner;

static ir_node *clone_node(cloner *c, const ir_node *n) {
  ir_node *copy = IR_NEW(c->to->arena, ir_node);
  *copy = *n;
  copy->in = IR_NEW_ARRAY(c->to->arena, ir_node *, n->num_in ? n->num_in : 1);
  for (int i = 0; i < n->num_in; i++)
    copy->in[i] = c->nodes[n->in[i]->id];
  if (n->state)
    copy->state = c->to->states.at[n->state->id];
  copy->kernel = NULL;
  c->nodes[n->id] = copy;
  return copy;
}

static void clone_kernel(cloner *c, ir_func *f, const ir_kernel *k) {
  ir_arena *a = c->to->arena;
  ir_kernel *copy = IR_NEW(a, ir_kernel);
  *copy = *k;
  copy->anchor = k->anchor ? c->nodes[k->anchor->id] : NULL;
  memset(&copy->nodes, 0, sizeof copy->nodes);
  memset(&copy->outputs, 0, sizeof copy->outputs);
  copy->clone_of = k->clone_of ? f->kernels.at[k->clone_of->id] : NULL;
  copy->begin = k->begin ? f->kernels.at[k->begin->id] : NULL;
  for (size_t i = 0; i < k->nodes.num; i++) {
    ir_node *member = c->nodes[k->nodes.at[i]->id];
    member->kernel = copy;
    IR_PUSH(a, copy->nodes, member);
  }
  for (size_t i = 0; i < k->outputs.num; i++)
    IR_PUSH(a, copy->outputs, c->nodes[k->outputs.at[i]->id]);
  IR_PUSH(a, f->kernels, copy);
}

static void clone_func(cloner *c, const ir_func *f) {
  ir_arena *a = c->to->arena;
  ir_func *copy = ir_func_new(c->to, f->name);
  copy->next_id = f->next_id;
  copy->ordered = f->ordered;
  c->nodes = IR_NEW_ARRAY(a, ir_node *, f->next_id + 1);
  copy->names = ir_map_new_lent(a, f->nodes.num);
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = clone_node(c, f->nodes.at[i]);
    IR_PUSH(a, copy->nodes, n);
    if (n->op != IR_WRITE)
      ir_map_put(copy->names, n->name, n);
  }
  for (size_t i = 0; i < f->results.num; i++) {
    ir_result r = f->results.at[i];
    r.node = c->nodes[r.node->id];
    IR_PUSH(a, copy->results, r);
  }
  for (size_t i = 0; i < f->kernels.num; i++)
    clone_kernel(c, copy, f->kernels.at[i]);
  for (size_t i = 0; i < ir_map_count(f->name_counts); i++)
    ir_map_put(copy->name_counts, ir_map_key(f->name_counts, i), ir_map_value(f->name_counts, i));
}

const ir_setting *ir_find_config(const ir_module *m, const char *key) {
  for (size_t i = 0; i < m->config.num; i++)
    if (!strcmp(m->config.at[i].key, key))
      return &m->config.at[i];
  return NULL;
}

int64_t ir_config_count(const ir_module *m, const char *key) {
  const ir_setting *s = ir_find_config(m, key);
  if (!s || s->kind != IR_SET_NUM || !(s->num >= 1) || s->num != floor(s->num))
    return 0;
  return s->num < 0x1p63 ? (int64_t)s->num : INT64_MAX;
}

void ir_set_config(ir_module *m, ir_setting s) {
  const ir_setting *old = ir_find_config(m, s.key);
  if (old)
    m->config.at[old - m->config.at] = s;
  else
    IR_PUSH(m->arena, m->config, s);
}

ir_module *ir_clone(const ir_module *m) {
  cloner c = {.to = ir_module_new(m->arena, m->name)};
  for (size_t i = 0; i < m->states.num; i++) {
    const ir_state *s = m->states.at[i];
    ir_state *copy = ir_state_new(c.to, s->name, s->type, s->role, s->loc);
    copy->value = s->value;
    copy->as = s->as ? c.to->states.at[s->as->id] : NULL;
  }
  for (size_t i = 0; i < m->data.num; i++) {
    ir_data *d = IR_NEW(m->arena, ir_data);
    *d = *m->data.at[i];
    d->files.cap = d->files.num; // the next push moves to memory of its own
    d->settings.cap = d->settings.num;
    IR_PUSH(m->arena, c.to->data, d);
  }
  for (size_t i = 0; i < m->config.num; i++)
    IR_PUSH(m->arena, c.to->config, m->config.at[i]);
  for (size_t i = 0; i < m->funcs.num; i++)
    clone_func(&c, m->funcs.at[i]);
  return c.to;
}
