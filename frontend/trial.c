// trial.c: see trial.h.
#include "frontend/trial.h"

#include <string.h>

#include "passes/pass.h"

static ir_module *read_graph(const trial_subject *s, trial *t, const char *define, fe_vary *vary) {
  option_list defines = {0};
  for (size_t i = 0; i < s->o->defines.num; i++)
    IR_PUSH(t->arena, defines, s->o->defines.at[i]);
  if (define)
    IR_PUSH(t->arena, defines, define);
  fe_options fo = {.defines = defines.at,
                   .num_defines = defines.num,
                   .include_dirs = s->o->include_dirs.at,
                   .num_include_dirs = s->o->include_dirs.num,
                   .vary = vary,
                   .split = s->split};
  return fe_compile(t->arena, s->source, &fo, t->diags);
}

trial trial_load(const trial_subject *s, const char *define, fe_vary *vary) {
  trial t = {.arena = ir_arena_new()};
  t.diags = diag_new(t.arena);
  t.module =
      options_is_ir(s->o) ? ir_parse(t.arena, s->source, t.diags) : read_graph(s, &t, define, vary);
  return t;
}

// The pass leaves IR alone that has kernels already.
void trial_set_precision(const options *o, ir_module *m, ir_diags *d) {
  bool has_kernels = false;
  if (!o->precision)
    return;
  for (size_t i = 0; i < m->funcs.num; i++)
    has_kernels |= m->funcs.at[i]->kernels.num > 0;
  if (has_kernels && strcmp(pass_precision_of(m), o->precision) != 0)
    diag_error(d, (ir_loc){0}, "E0506",
               "--precision=%s comes too late: '%s' has kernels already, with operands of %s",
               o->precision, o->input, pass_precision_of(m));
  pass_set_precision(m, o->precision);
}

bool trial_has_generators(const cg_target *target, const ir_module *m, ir_diags *d) {
  const ir_kernel *k = cg_find_foreign(target, m);
  if (!k)
    return true;
  ir_diag *e = diag_error(d, k->anchor->loc, "E0903",
                          "kernel '%s' is of family '%s', which %s does not have", k->name,
                          ir_family_names[k->family], target->name);
  diag_help(e, "compile the graph for this target, or IR text from before the pass 'attention'");
  return false;
}

// Faults of passes are for whoever compiles what is tried here: to find, and to leave a reproducer of.
static pass_options options_of_passes(const trial_subject *s) {
  return (pass_options){.disabled = s->o->disabled.at,
                        .num_disabled = s->o->disabled.num,
                        .families = cg_families(s->target),
                        .no_verify = true,
                        .no_reproducer = true};
}

static bool keep_if(trial *t, bool ok) {
  t->module = ok ? t->module : NULL;
  return ok;
}

bool trial_schedule(const trial_subject *s, trial *t) {
  pass_options po = options_of_passes(s);
  if (t->module)
    trial_set_precision(s->o, t->module, t->diags);
  if (!keep_if(t, t->module && !diag_num_errors(t->diags) &&
                      pass_run_pipeline(t->module, t->diags, &po) &&
                      trial_has_generators(s->target, t->module, t->diags)))
    return false;
  cg_program_new(t->arena, t->module, s->target);
  return true;
}

bool trial_plan(const trial_subject *s, trial *t, const char *policy, int64_t budget) {
  pass_options po = options_of_passes(s);
  const char *said = policy ? policy : s->o->checkpoint;
  if (said)
    ir_set_config(t->module, (ir_setting){"checkpoint", IR_SET_STR, 0, said});
  if (budget)
    ir_set_config(t->module, (ir_setting){"memory_budget", IR_SET_NUM, (double)budget, NULL});
  if (!keep_if(t, pass_run_memory_pipeline(t->module, t->diags, &po)))
    return false;
  t->plan = cg_plan(cg_program_new(t->arena, t->module, s->target));
  return true;
}

void trial_free(trial *t) {
  ir_arena_free(t->arena);
}
