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
  if (t->module && s->o->precision)
    pass_set_precision(t->module, s->o->precision);
  if (!keep_if(t, t->module && pass_run_pipeline(t->module, t->diags, &po)))
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
