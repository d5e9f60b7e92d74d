// draft.c: see draft.h.
#include "driver/draft.h"

#include <stdlib.h>
#include <string.h>

#include "passes/checkpoint.h"
#include "passes/pass.h"

draft draft_new(void) {
  draft t = {.arena = ir_arena_new()};
  t.diags = diag_new(t.arena);
  return t;
}

void draft_free(draft *t) {
  ir_arena_free(t->arena);
}

static bool keep_if(draft *t, bool ok) {
  t->module = ok && !diag_num_errors(t->diags) ? t->module : NULL;
  return t->module != NULL;
}

// --- reading ---------------------------------------------------------------------------------
static ir_module *read_graph(const draft_subject *s, draft *t, const char *define, fe_vary *vary) {
  option_list defines = {0};
  for (size_t i = 0; i < s->o->defines.num; i++)
    IR_PUSH(t->arena, defines, s->o->defines.at[i]);
  if (define)
    IR_PUSH(t->arena, defines, define);
  fe_options fo = {.defines = defines.at,
                   .num_defines = defines.num,
                   .include_dirs = s->o->include_dirs.at,
                   .num_include_dirs = s->o->include_dirs.num,
                   .files = &t->files,
                   .vary = vary,
                   .split = s->split};
  return fe_compile(t->arena, s->source, &fo, t->diags);
}

bool draft_load(const draft_subject *s, draft *t, const char *define, fe_vary *vary) {
  t->module = options_is_ir(s->o) ? ir_parse(t->arena, s->source, t->diags)
                                  : read_graph(s, t, define, vary);
  return keep_if(t, t->module != NULL);
}

// --- kernels ---------------------------------------------------------------------------------
// The pass leaves IR alone that has kernels already.
static void set_precision(const draft_subject *s, draft *t) {
  const options *o = s->o;
  bool has_kernels = false;
  if (!o->precision)
    return;
  for (size_t i = 0; i < t->module->funcs.num; i++)
    has_kernels |= t->module->funcs.at[i]->kernels.num > 0;
  if (has_kernels && strcmp(pass_precision_of(t->module), o->precision) != 0)
    diag_error(t->diags, (ir_loc){0}, "E0506",
               "--precision=%s comes too late: '%s' has kernels already, with operands of %s",
               o->precision, o->input, pass_precision_of(t->module));
  pass_set_precision(t->module, o->precision);
}

// Values may wait in memory of the host; or they do already, in IR text or a plan file.
static bool may_wait(const draft_subject *s, const ir_module *m) {
  bool may = ir_config_count(m, "memory_budget") != 0 && !options_disables(s->o, "offload");
  for (size_t i = 0; i < m->funcs.num; i++)
    may |= ir_has_transfers(m->funcs.at[i]);
  return may;
}

// What passes should know of a device with memory of its own; nothing where it has none, or where
// nothing may wait beside it.
static void set_device(const draft_subject *s, ir_module *m) {
  cg_rates r = cg_rates_of(s->target, pass_precision_of(m));
  bool apart = r.host_bandwidth > 0 && may_wait(s, m);
  if (!apart && !ir_find_config(m, "host_bandwidth"))
    return;
  ir_set_config(m, (ir_setting){"device_products", IR_SET_NUM, apart ? r.products : 0, NULL});
  ir_set_config(m, (ir_setting){"device_flops", IR_SET_NUM, apart ? r.flops : 0, NULL});
  ir_set_config(m, (ir_setting){"device_bandwidth", IR_SET_NUM, apart ? r.bandwidth : 0, NULL});
  ir_set_config(m, (ir_setting){"host_bandwidth", IR_SET_NUM, apart ? r.host_bandwidth : 0, NULL});
}

static void set_memory(const draft_subject *s, ir_module *m, const char *policy, int64_t budget) {
  if (policy)
    ir_set_config(m, (ir_setting){"checkpoint", IR_SET_STR, 0, policy});
  if (budget)
    ir_set_config(m, (ir_setting){"memory_budget", IR_SET_NUM, (double)budget, NULL});
  set_device(s, m); // seconds before and behind draft_arrange are of one device
}

static bool converts_operands(const draft_subject *s, draft *t) {
  const ir_node *n = cg_find_foreign_operand(s->target, t->module);
  if (!n)
    return true;
  const ir_node *c = dom_conversion(n->in[0]);
  c = c && ir_is_integer_conversion(c) ? c : dom_conversion(n->in[1]);
  ir_diag *e = diag_error(t->diags, n->loc, "E0903",
                          "kernel '%s' converts '%s' from %s, which %s does not", n->kernel->name,
                          c->in[0]->name, ir_dtypes[c->in[0]->type.dtype].name, s->target->name);
  diag_help(e, "compile the graph for this target, or IR text from before the pass "
               "'integer_operands'");
  return false;
}

static bool has_generators(const draft_subject *s, draft *t) {
  const ir_kernel *k = cg_find_foreign(s->target, t->module);
  if (!k)
    return converts_operands(s, t);
  ir_diag *e = diag_error(t->diags, k->anchor->loc, "E0903",
                          "kernel '%s' is of family '%s', which %s does not have", k->name,
                          ir_family_names[k->family], s->target->name);
  diag_help(e, "compile the graph for this target, or IR text from before the pass 'attention'");
  return false;
}

// Looking after each pass takes an eighth of a large compile. Tests set MLTC_VERIFY_EACH: what a later pass mends is a
// fault, too.
static pass_verify when_to_verify(const draft_subject *s) {
  if (!s->open)
    return PASS_VERIFY_NEVER;
  return getenv("MLTC_VERIFY_EACH") ? PASS_VERIFY_EACH : PASS_VERIFY_AT_END;
}

static pass_options options_of_passes(const draft_subject *s, const draft *t) {
  const options *o = s->o;
  option_list disabled = {0};
  for (size_t i = 0; i < o->disabled.num; i++)
    IR_PUSH(t->arena, disabled, o->disabled.at[i]);
  if (s->without)
    IR_PUSH(t->arena, disabled, s->without);
  pass_options po = {.disabled = disabled.at,
                     .num_disabled = disabled.num,
                     .families = cg_families(s->target),
                     .processor = !s->target->cuda,
                     .pairs = s->target->dots_bf16,
                     .verify = when_to_verify(s),
                     .no_reproducer = !s->open,
                     .rerun = ir_format(t->arena, " --target=%s", s->target->name)};
  if (s->open) {
    po.print_after = o->print_after.at;
    po.num_print_after = o->print_after.num;
    po.keep_dir = o->keep_dir;
    po.time_passes = o->time_passes;
  }
  return po;
}

// What asks which kernels run again; NULL: nothing does, or for what the text has.
static const char *asks_for_policy(const draft_subject *s, const draft *t) {
  const options *o = s->o;
  const ir_setting *has = ir_find_config(t->module, "checkpoint");
  bool same = has && has->kind == IR_SET_STR && o->checkpoint && !strcmp(has->str, o->checkpoint);
  return o->command == COMMAND_MEMORY ? "`mltc memory`"
         : o->extra_time >= 0         ? "--extra-time"
         : o->checkpoint && !same     ? ir_format(t->arena, "--checkpoint=%s", o->checkpoint)
                                      : NULL;
}

// The pass leaves functions alone in which kernels run again already: all policies would be one, that of the text.
static void refuse_late_policy(const draft_subject *s, draft *t) {
  const char *asks = asks_for_policy(s, t);
  for (size_t i = 0; asks && i < t->module->funcs.num; i++)
    if (ir_has_clones(t->module->funcs.at[i])) {
      ir_diag *e =
          diag_error(t->diags, (ir_loc){0}, "E0507",
                     "%s comes too late: kernels of '%s' run again already", asks, s->o->input);
      diag_help(e, "take the graph, or IR text from --checkpoint=none");
      return;
    }
}

// What the options say. IR text has `free` where nobody had said anything: a budget of the command line then asks for
// `auto`, as it does of the graph.
static const char *policy_of_options(const draft_subject *s, const ir_module *m) {
  const options *o = s->o;
  const ir_setting *has = ir_find_config(m, "checkpoint");
  bool by_default = has && has->kind == IR_SET_STR &&
                    !strcmp(has->str, checkpoint_names[CHECKPOINT_FREE]) &&
                    !ir_find_config(m, "memory_budget");
  for (size_t i = 0; i < m->funcs.num; i++)
    by_default = by_default && !ir_has_clones(m->funcs.at[i]);
  return !o->checkpoint && o->memory_budget && by_default ? checkpoint_names[CHECKPOINT_AUTO]
                                                          : o->checkpoint;
}

bool draft_schedule(const draft_subject *s, draft *t) {
  pass_options po = options_of_passes(s, t);
  set_precision(s, t);
  refuse_late_policy(s, t);
  // IR of all passes says it
  if (s->remakes_little)
    ir_set_config(t->module, (ir_setting){"remake", IR_SET_STR, 0, PASS_REMAKE_LITTLE});
  set_memory(s, t->module, policy_of_options(s, t->module), s->o->memory_budget);
  if (!keep_if(t, !diag_num_errors(t->diags) && pass_run_pipeline(t->module, t->diags, &po) &&
                      has_generators(s, t)))
    return false;
  t->program = cg_program_new(t->arena, t->module, s->target);
  return true;
}

// --- memory ----------------------------------------------------------------------------------
// Functions that the file leaves out are ordered, too.
static bool edit_order(const draft_subject *s, draft *t) {
  pass_final_order(t->module, t->diags);
  if (!plan_edit_order(t->module, s->edit, t->diags) || !has_generators(s, t))
    return false;
  set_device(s, t->module); // now that it has transfers
  return true;
}

// What nobody has said anything about. Of a GPU it has not been measured that making copies again costs
// nothing there.
static const char *policy_or_default(const draft_subject *s, const ir_module *m, const char *policy,
                                     int64_t budget) {
  bool said = policy || budget || s->edit || ir_find_config(m, "checkpoint") ||
              ir_config_count(m, "memory_budget") || s->target->cuda;
  return said ? policy : checkpoint_names[CHECKPOINT_FREE];
}

bool draft_arrange(const draft_subject *s, draft *t, const char *policy, int64_t budget) {
  pass_options po = options_of_passes(s, t);
  policy = policy_or_default(s, t->module, policy, budget);
  set_memory(s, t->module, policy, budget);
  if (!keep_if(t, s->edit ? edit_order(s, t) : pass_run_memory_pipeline(t->module, t->diags, &po)))
    return false;
  cg_program_update(t->program);
  return true;
}

bool draft_plan(const draft_subject *s, draft *t) {
  t->plan = cg_plan(t->program, s->edit, t->diags);
  return keep_if(t, t->plan != NULL);
}
