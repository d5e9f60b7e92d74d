// verify_trainer.c: rules about what a trainer does with a module beside running its functions: it fills
// inputs from batches, writes states into checkpoints and reads settings. What broke one of them
// would train on other numbers than the text says, without a word.
#include "ir/settings.h"
#include "ir/verify.h"

#include <math.h>
#include <string.h>

// --- inputs -------------------------------------------------------------------------------------
static ir_map *inputs_of(ir_arena *a, const ir_func *f) {
  ir_map *inputs = ir_map_new(a);
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_INPUT && f->nodes.at[i]->name)
      ir_map_put(inputs, f->nodes.at[i]->name, f->nodes.at[i]);
  return inputs;
}

static void check_input(ir_checker *c, const ir_node *n, const ir_func *from, const ir_map *there) {
  const ir_node *same = n->name ? ir_map_get(there, n->name) : NULL;
  if (!same)
    ir_fault_add(c, n, "no batch fills this input: '%s' has none of that name", from->name);
  else if (!ir_same_type(&same->type, &n->type))
    ir_fault_add(c, n, "a batch fills this input with %s, as '%s' has it",
                 ir_type_str(c->faults->arena, &same->type), from->name);
}

static void refuse_inputs(ir_checker *c) {
  for (size_t i = 0; i < c->f->nodes.num; i++)
    if (c->f->nodes.at[i]->op == IR_INPUT)
      ir_fault_add(c, c->f->nodes.at[i], "'init' runs before there is a batch: it has no inputs");
}

void verify_inputs(ir_checker *c) {
  if (!strcmp(c->f->name, "init")) {
    refuse_inputs(c);
    return;
  }
  const ir_func *from = ir_batch_func(c->m);
  if (!from || from == c->f || !ir_is_run(c->f))
    return;
  const ir_map *there = inputs_of(c->faults->arena, from);
  for (size_t i = 0; i < c->f->nodes.num; i++)
    if (c->f->nodes.at[i]->op == IR_INPUT)
      check_input(c, c->f->nodes.at[i], from, there);
}

// --- results ------------------------------------------------------------------------------------
void verify_result_name(ir_checker *c, const ir_result *r) {
  if (ir_is_run(c->f) && ir_is_in_metrics(r->name))
    ir_fault_add(c, r->node, "a result named '%s': the name has a meaning of its own in --metrics",
                 r->name);
}

// --- states -------------------------------------------------------------------------------------
void verify_checkpointed(ir_checker *c, const ir_state *s) {
  if (!strcmp(s->name, IR_METADATA_NAME))
    ir_fault_add(c, NULL, "a checkpoint keeps what is no tensor under '%s': no state has that name",
                 s->name);
}

// --- settings -----------------------------------------------------------------------------------
// The value of a flag that does not exist would be 0.
static void check_flag(ir_checker *c, const char *where, const char *name, const ir_setting *s) {
  const ir_state *flag = s->kind == IR_SET_FLAG ? ir_find_state(c->m, s->str) : NULL;
  if (s->kind == IR_SET_FLAG && (!flag || flag->role != IR_ROLE_FLAG))
    ir_fault_add(c, NULL, "%s%s: there is no flag '%s' for '%s'", where, name, s->str, s->key);
}

static void check_number(ir_checker *c, const ir_setting *s) {
  const ir_setting_rule *r = ir_find_setting_rule(s->key);
  if (!r || r->low == r->high)
    return;
  if (s->kind == IR_SET_STR)
    ir_fault_add(c, NULL, "config %s must be a number or a flag, and is the text '%s'", s->key,
                 s->str);
  else if (s->kind == IR_SET_NUM &&
           (!(s->num >= r->low && s->num <= r->high) || (r->whole && s->num != floor(s->num))))
    ir_fault_add(c, NULL, "config %s must be a %s from %.0f to %.0f, and is %s", s->key,
                 r->whole ? "whole number" : "number", r->low, r->high,
                 ir_setting_text(c->faults->arena, s));
}

static bool has_data(const ir_module *m, const char *name) {
  for (size_t i = 0; i < m->data.num; i++)
    if (!strcmp(m->data.at[i]->name, name))
      return true;
  return false;
}

static void check_setting(ir_checker *c, const ir_setting *s) {
  check_flag(c, "config", "", s);
  check_number(c, s);
  if (!strcmp(s->key, "eval") && (s->kind != IR_SET_STR || !has_data(c->m, s->str)))
    ir_fault_add(c, NULL, "config eval must be the name of a data line, in quotes");
}

void verify_settings(ir_checker *c) {
  for (size_t i = 0; i < c->m->config.num; i++)
    check_setting(c, &c->m->config.at[i]);
  for (size_t i = 0; i < c->m->data.num; i++)
    for (size_t k = 0; k < c->m->data.at[i]->settings.num; k++)
      check_flag(c, "data ", c->m->data.at[i]->name, &c->m->data.at[i]->settings.at[k]);
  if (ir_find_config(c->m, "eval") && ir_find_func(c->m, "step") && !ir_find_func(c->m, "eval"))
    ir_fault_add(c, NULL, "config eval names data, and no function 'eval' evaluates on them");
  if (ir_config_count(c->m, "accumulate") > 1 && ir_find_func(c->m, "step") &&
      !ir_find_func(c->m, "accum"))
    ir_fault_add(c, NULL,
                 "config accumulate is more than 1, and no function 'accum' adds gradients up");
}
