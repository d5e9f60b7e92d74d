// support_program.c: see support_program.h.
#include "tests/unit/support_program.h"
#include "tests/emulator/emulator.h"
#include "tests/unit/support_kernels.h"

#include <dlfcn.h>
#include <string.h>

enum { ALIGN = 64, MAX_ARGS = 64 };

typedef void (*task_fn)(int64_t begin, int64_t end, char *const *args);

test_program test_program_new(ir_arena *a, const char *what, const char *prefix, ir_module *m,
                              const char *func, const cg_target *target) {
  test_program p = {.a = a, .what = what, .module = m};
  p.program = cg_program_new(a, m, target);
  p.program->prefix = prefix;
  cg_share(p.program);
  p.plan = cg_plan(p.program, NULL, NULL);
  ir_buf wrong = ir_buf_new(a);
  if (plan_check(p.plan, m, &wrong) != 0)
    test_fail("%s: %s", what, ir_buf_str(&wrong));
  while (strcmp(m->funcs.at[p.index]->name, func))
    p.index++;
  p.func = m->funcs.at[p.index];
  return p;
}

// --- libraries -------------------------------------------------------------------------------
// Only what the function that is run calls: kernels of `init` would be a third of the compiler's time.
static bool calls(const test_program *p, const cg_distinct *d) {
  for (size_t i = 0; i < d->uses.num; i++)
    if (d->uses.at[i]->func == p->func)
      return true;
  return false;
}

test_library test_library_new(ir_arena *a, const test_program *p, size_t num, int level) {
  const cg_target *t = p[0].program->target;
  ir_buf text = ir_buf_new(a);
  ir_buf_puts(&text, t->cuda ? cg_cuda_prelude(a) : cg_cpu_prelude(a, t, true));
  for (size_t i = 0; i < num; i++)
    for (size_t j = 0; j < p[i].program->distinct.num; j++)
      if (calls(&p[i], p[i].program->distinct.at[j]))
        ir_buf_puts(&text, p[i].program->distinct.at[j]->text);
  if (!t->cuda)
    return (test_library){.lib = test_load(a, ir_buf_str(&text), t, level)};
  test_library l = {.lib = emu_build(test_without_unrolling(a, ir_buf_str(&text)), NULL)};
  if (!l.lib)
    test_fail("kernels for %s do not compile", t->name);
  l.gpu = emu_new();
  return l;
}

void test_library_free(test_library *l) {
  if (l->lib)
    dlclose(l->lib);
  if (l->gpu)
    emu_free(l->gpu);
  *l = (test_library){0};
}

// --- running ---------------------------------------------------------------------------------
// A kernel in the arena.
typedef struct call {
  const test_program *p;
  const test_library *l;
  const cg_kernel *c;
  const char *name; // of its first phase's function, without "_0"
  char *arena, *args[MAX_ARGS];
  size_t num_args;
  test_split split;
} call;

static void run_phase(const call *k, const char *symbol, int64_t tasks) {
  void *found = dlsym(k->l->lib, symbol);
  task_fn f;
  memcpy(&f, &found, sizeof f);
  if (!f)
    test_fail("%s: no function %s", k->p->what, symbol);
  if (f && k->split == TEST_WHOLE)
    f(0, tasks, k->args);
  for (int64_t i = tasks; f && k->split == TEST_BACKWARDS && i-- > 0;)
    f(i, i + 1, k->args);
}

static void launch_phase(const call *k, const char *symbol, int64_t blocks) {
  emu_options o = {.order = k->split == TEST_WHOLE ? 0 : 1};
  emu_report r;
  const emu_entry *e = emu_find(k->l->lib, symbol);
  if (!e)
    test_fail("%s: no kernel %s", k->p->what, symbol);
  else if (!emu_launch(k->l->gpu, e, blocks, k->args, k->num_args * sizeof *k->args, &o, &r))
    test_fail("%s: %s: %s", k->p->what, symbol, r.text);
}

static int64_t workspace_of(const plan *p, const ir_kernel *k) {
  for (size_t i = 0; i < p->buffers.num; i++)
    if (p->buffers.at[i].kind == PLAN_WORKSPACE && p->buffers.at[i].kernel == k)
      return p->buffers.at[i].offset;
  return 0;
}

static void put_args(call *k) {
  const cg_kernel *c = k->c;
  BUG_IF(c->in.num + c->out.num + 1 + c->numbers.num > MAX_ARGS, "a kernel of many arguments");
  size_t n = 0;
  for (size_t i = 0; i < c->in.num; i++)
    k->args[n++] = k->arena + plan_offset(k->p->plan, c->func, c->in.at[i]);
  for (size_t i = 0; i < c->out.num; i++)
    k->args[n++] = k->arena + plan_offset(k->p->plan, c->func, c->out.at[i]);
  if (c->workspace > 0)
    k->args[n++] = k->arena + workspace_of(k->p->plan, c->k);
  for (size_t i = 0; i < c->numbers.num; i++)
    k->args[n++] = (char *)(uintptr_t)c->numbers.at[i];
  k->num_args = n;
}

// An output may lie in the memory of a larger input.
static size_t bytes_at(const call *k, const char *at) {
  const cg_kernel *c = k->c;
  int64_t bytes = 0;
  for (size_t i = 0; i < c->in.num + c->out.num; i++) {
    const ir_node *n = i < c->in.num ? c->in.at[i] : c->out.at[i - c->in.num];
    if (k->args[i] == at && dom_bytes(n) > bytes)
      bytes = dom_bytes(n);
  }
  return (size_t)bytes;
}

// The emulator allows what the plan gives the kernel, and nothing else.
static void give_buffers(const call *k) {
  size_t num_in = k->c->in.num, num = num_in + k->c->out.num;
  emu_forget_all(k->l->gpu);
  for (size_t i = 0; i < num; i++)
    emu_buffer(k->l->gpu, k->args[i], bytes_at(k, k->args[i]), i >= num_in);
  if (k->c->workspace > 0)
    emu_buffer(k->l->gpu, k->args[num], (size_t)k->c->workspace, true);
}

static void run_kernel(call *k) {
  put_args(k);
  if (k->l->gpu)
    give_buffers(k);
  for (int p = 0; p < k->c->num_phases; p++) {
    const char *symbol = ir_format(k->p->a, "%s_%d", k->name, p);
    (k->l->gpu ? launch_phase : run_phase)(k, symbol, k->c->tasks[p]);
  }
}

static void put_given(const test_program *p, char *arena, const ir_world *w,
                      const ir_tensor_value *inputs) {
  for (size_t i = 0; i < p->plan->buffers.num; i++) {
    const plan_buffer *b = &p->plan->buffers.at[i];
    if (b->kind == PLAN_STATE)
      test_put_tensor(arena + b->offset, &w->states[b->state->id]);
  }
  for (size_t i = 0; i < p->func->nodes.num; i++)
    if (p->func->nodes.at[i]->op == IR_INPUT)
      test_put_tensor(arena + plan_offset(p->plan, p->func, p->func->nodes.at[i]), inputs++);
}

char *test_program_run(const test_program *p, const test_library *l, const ir_world *w,
                       const ir_tensor_value *inputs, test_split split) {
  char *arena = ir_alloc(p->a, (size_t)p->plan->arena_bytes + 2 * ALIGN);
  arena += ALIGN - (uintptr_t)arena % ALIGN;
  memset(arena, 0xFF, (size_t)p->plan->arena_bytes);
  put_given(p, arena, w, inputs);
  for (size_t i = 0; i < p->func->kernels.num; i++) {
    call k = {.p = p, .l = l, .arena = arena, .split = split};
    k.c = p->program->kernels[p->index][i];
    k.name = p->program->shared[p->index][i]->name;
    run_kernel(&k);
  }
  for (size_t i = 0; i < p->plan->copies.num; i++) {
    const plan_copy *c = &p->plan->copies.at[i];
    if (c->func == p->func)
      memcpy(arena + c->to, arena + c->from, (size_t)c->bytes);
  }
  return arena;
}
