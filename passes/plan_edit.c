// plan_edit.c: see plan_edit.h. The order of a file becomes a list of steps (replay.h), which is looked at
// before anything is changed: each kernel runs, the first time under its own name, and behind all that
// makes its operands.
#include "passes/plan_edit_parts.h"

#include <string.h>

#include "passes/replay.h"

typedef struct editor {
  plan_edit_site at;
  ir_map *kernels; // name -> its index + 1
  bool *ran;       // [kernel]
  bool *made;      // [value]
  replay_steps steps;
} editor;

plan_edit_site plan_edit_open(ir_arena *scratch, ir_func *f, const plan_edit *e, size_t index,
                              ir_diags *d) {
  return (plan_edit_site){.arena = scratch,
                          .diags = d,
                          .edit = e,
                          .func = &e->funcs.at[index],
                          .index = index,
                          .s = sched_new(scratch, f)};
}

ir_diag *plan_edit_fault(const plan_edit_site *x, size_t kernel, const char *what) {
  return diag_error(x->diags, (ir_loc){0}, "E0508", "%s: functions[%zu].kernels[%zu]: %s",
                    x->edit->path, x->index, kernel, what);
}

static void unknown_kernel(const editor *x, size_t at, const char *name) {
  const char **names = IR_NEW_ARRAY(x->at.arena, const char *, x->at.s->num_kernels + 1);
  for (int i = 0; i < x->at.s->num_kernels; i++)
    names[i] = x->at.s->kernels[i].k->name;
  const char *near = diag_nearest(name, names, (size_t)x->at.s->num_kernels);
  ir_diag *d = plan_edit_fault(
      &x->at, at, ir_format(x->at.arena, "%s has no kernel '%s'", x->at.s->f->name, name));
  if (near)
    diag_help(d, "did you mean '%s'?", near);
}

// Whether the file has it at all, from `at` on.
static bool comes_later(const editor *x, size_t at, const char *name) {
  for (size_t i = at; i < x->at.func->kernels.num; i++) {
    const plan_edit_kernel *e = &x->at.func->kernels.at[i];
    if (e->transfer == PLAN_EDIT_NONE && !e->again && !strcmp(e->name, name))
      return true;
  }
  return false;
}

static bool operands_are_made(const editor *x, size_t at, int k) {
  const sched_kernel *kernel = &x->at.s->kernels[k];
  for (int i = 0; i < kernel->num_in; i++) {
    int v = kernel->in[i].value;
    if (v < 0 || x->made[v])
      continue;
    const char *maker = x->at.s->kernels[x->at.s->values[v].kernel].k->name;
    plan_edit_fault(&x->at, at,
                    ir_format(x->at.arena, "'%s' reads %%%s: '%s', which makes it, %s",
                              kernel->k->name, x->at.s->values[v].node->name, maker,
                              comes_later(x, at, maker) ? "must come before" : "is missing"));
    return false;
  }
  return true;
}

static bool add_step(editor *x, size_t at) {
  const plan_edit_kernel *e = &x->at.func->kernels.at[at];
  const char *name = e->again ? e->again : e->name;
  int k = (int)(intptr_t)ir_map_get(x->kernels, name) - 1;
  if (k < 0) {
    unknown_kernel(x, at, name);
    return false;
  }
  if (x->ran[k] != (e->again != NULL)) {
    plan_edit_fault(&x->at, at,
                    ir_format(x->at.arena,
                              e->again
                                  ? "'%s' runs again before it has run"
                                  : "'%s' has run already: \"clone_of\" says that it runs again",
                              name));
    return false;
  }
  if (!operands_are_made(x, at, k))
    return false;
  x->ran[k] = true;
  for (int i = 0; i < x->at.s->kernels[k].num_values; i++)
    x->made[x->at.s->kernels[k].first_value + i] = true;
  IR_PUSH(x->at.arena, x->steps, k);
  return true;
}

static bool make_steps(editor *x) {
  for (int k = 0; k < x->at.s->num_kernels; k++)
    ir_map_put(x->kernels, x->at.s->kernels[k].k->name, (void *)(intptr_t)(k + 1));
  for (size_t i = 0; i < x->at.func->kernels.num; i++)
    if (x->at.func->kernels.at[i].transfer == PLAN_EDIT_NONE && !add_step(x, i))
      return false;
  for (int k = 0; k < x->at.s->num_kernels; k++)
    if (!x->ran[k]) {
      plan_edit_fault(&x->at, x->at.func->kernels.num,
                      ir_format(x->at.arena, "'%s' is missing", x->at.s->kernels[k].k->name));
      return false;
    }
  return true;
}

static bool edit_func(ir_func *f, const plan_edit *e, size_t index, ir_diags *d) {
  ir_arena *a = ir_arena_new();
  editor x = {.at = plan_edit_open(a, f, e, index, d)};
  x.kernels = ir_map_new(a);
  x.ran = IR_NEW_ARRAY(a, bool, x.at.s->num_kernels + 1);
  x.made = IR_NEW_ARRAY(a, bool, x.at.s->num_values + 1);
  bool ok = make_steps(&x);
  if (ok)
    replay_apply(x.at.s, &x.steps);
  ir_arena_free(a);
  return ok;
}

// The function that entry `index` of the file is about; NULL, after an error, when there is none, or an
// entry before is about it, too.
static ir_func *func_of(const ir_module *m, const plan_edit *e, size_t index, ir_diags *d) {
  const char *name = e->funcs.at[index].name;
  ir_func *f = ir_find_func(m, name);
  bool again = f && plan_edit_find(e, f) != &e->funcs.at[index];
  if (f && !again)
    return f;
  diag_error(d, (ir_loc){0}, "E0508", "%s: functions[%zu]: %s '%s'", e->path, index,
             again ? "this is the second function" : "the module has no function", name);
  return NULL;
}

bool plan_edit_order(ir_module *m, const plan_edit *e, ir_diags *d) {
  bool ok = true;
  dom_find_stretches(m);
  for (size_t i = 0; i < e->funcs.num; i++) {
    ir_func *f = func_of(m, e, i, d);
    ok &= f && edit_func(f, e, i, d);
  }
  dom_forget_stretches(m);
  dom_find_stretches(m);
  for (size_t i = 0; ok && i < e->funcs.num; i++)
    ok = plan_edit_transfers(ir_find_func(m, e->funcs.at[i].name), e, i, d);
  dom_forget_stretches(m);
  return ok;
}

const plan_edit_func *plan_edit_find(const plan_edit *e, const ir_func *f) {
  for (size_t i = 0; e && i < e->funcs.num; i++)
    if (!strcmp(e->funcs.at[i].name, f->name))
      return &e->funcs.at[i];
  return NULL;
}
