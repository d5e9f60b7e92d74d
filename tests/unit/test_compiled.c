// test_compiled.c: whole programs against the oracle. Random modules go through all passes, code
// generation and the memory plan; their kernels run in an arena laid out as planned (poisoned
// first), in two ways: whole ranges of tasks, and task by task backwards. Both must give the
// same bits, and the results and states must be the interpreter's within f32 rounding.
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/program.h"
#include "passes/plan.h"
#include "tests/unit/support_ir.h"
#include "tests/unit/support_kernels.h"

#ifdef MLTC_SLOW_BUILD
enum { NUM_BATCHES = 2 };
#else
enum { NUM_BATCHES = 12 };
#endif
enum { BATCH = 20, ALIGN = 64 };
static const double TOLERANCE = 2e-4; // relative to the largest element of a tensor

typedef void (*task_fn)(int64_t begin, int64_t end, char *const *args);

typedef struct sample {
  uint64_t seed;
  ir_module *before, *after; // the passes
  cg_program *program;
  plan *plan;
  size_t step; // index of the function
} sample;

// --- making programs -------------------------------------------------------------------------
static void quit_on_errors(ir_diags *d, uint64_t seed) {
  if (diag_num_errors(d) == 0)
    return;
  diag_print(d, stderr, false);
  fprintf(stderr, "seed %llu: a valid module was refused\n", (unsigned long long)seed);
  exit(1);
}

static sample make_sample(ir_arena *a, uint64_t seed, const cg_target *t) {
  ir_random_options o = {.seed = seed,
                         .num_nodes = 8 + (int)(seed % 7) * 8,
                         .differentiable = seed % 2 == 0,
                         .networks = seed % 3 == 0};
  sample s = {.seed = seed, .after = ir_random_module(a, o)};
  ir_diags *d = diag_new(a);
  s.before = ir_clone(s.after);
  pass_autodiff(s.before, d);
  pass_run_pipeline(s.after, d, NULL);
  quit_on_errors(d, seed);
  s.program = cg_program_new(a, s.after, t);
  s.program->prefix = ir_format(a, "g%llu_", (unsigned long long)seed);
  cg_share(s.program);
  s.plan = plan_build(s.after);
  ir_buf wrong = ir_buf_new(a);
  CHECK(plan_check(s.plan, s.after, &wrong) == 0, "seed %llu: %s", (unsigned long long)seed,
        ir_buf_str(&wrong));
  while (strcmp(s.after->funcs.at[s.step]->name, "step"))
    s.step++;
  return s;
}

static void *load_all(ir_arena *a, const sample *s, int n, const cg_target *t) {
  ir_buf text = ir_buf_new(a);
  ir_buf_puts(&text, cg_cpu_prelude(a, t));
  for (int i = 0; i < n; i++)
    for (size_t j = 0; j < s[i].program->distinct.num; j++)
      ir_buf_puts(&text, s[i].program->distinct.at[j]->text);
  return test_load(a, ir_buf_str(&text), t);
}

// --- running ---------------------------------------------------------------------------------
static void run_phase(task_fn f, int64_t tasks, char *const *args, bool whole) {
  if (whole) {
    f(0, tasks, args);
    return;
  }
  for (int64_t i = tasks; i-- > 0;)
    f(i, i + 1, args);
}

static int64_t workspace_of(const plan *p, const ir_kernel *k) {
  for (size_t i = 0; i < p->buffers.num; i++)
    if (p->buffers.at[i].kind == PLAN_WORKSPACE && p->buffers.at[i].kernel == k)
      return p->buffers.at[i].offset;
  return 0;
}

static void run_kernel(const sample *s, const cg_kernel *c, const char *name, void *lib,
                       char *arena, bool whole) {
  char *args[64];
  int n = 0;
  for (size_t i = 0; i < c->in.num; i++)
    args[n++] = arena + plan_offset(s->plan, c->func, c->in.at[i]);
  for (size_t i = 0; i < c->out.num; i++)
    args[n++] = arena + plan_offset(s->plan, c->func, c->out.at[i]);
  if (c->workspace > 0)
    args[n++] = arena + workspace_of(s->plan, c->k);
  for (size_t i = 0; i < c->numbers.num; i++)
    args[n++] = (char *)(uintptr_t)c->numbers.at[i];
  for (int p = 0; p < c->num_phases; p++) {
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%s_%d", name, p);
    task_fn f = (task_fn)(uintptr_t)dlsym(lib, symbol);
    CHECK(f != NULL, "no function %s", symbol);
    if (f)
      run_phase(f, c->tasks[p], args, whole);
  }
}

// States as `w` has them and inputs as given, everything else NaN patterns; then the step.
static char *run_step(ir_arena *a, const sample *s, void *lib, const ir_world *w,
                      const ir_tensor_value *inputs, bool whole) {
  char *arena = ir_alloc(a, (size_t)s->plan->arena_bytes + 2 * ALIGN);
  arena += ALIGN - (uintptr_t)arena % ALIGN;
  memset(arena, 0xFF, (size_t)s->plan->arena_bytes);
  const ir_func *f = s->after->funcs.at[s->step];
  for (size_t i = 0; i < s->plan->buffers.num; i++) {
    const plan_buffer *b = &s->plan->buffers.at[i];
    if (b->kind == PLAN_STATE)
      test_put_tensor(arena + b->offset, &w->states[b->state->id]);
  }
  int next = 0;
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_INPUT)
      test_put_tensor(arena + plan_offset(s->plan, f, f->nodes.at[i]), &inputs[next++]);
  for (size_t i = 0; i < f->kernels.num; i++)
    run_kernel(s, s->program->kernels[s->step][i], s->program->shared[s->step][i]->name, lib, arena,
               whole);
  for (size_t i = 0; i < s->plan->copies.num; i++) {
    const plan_copy *c = &s->plan->copies.at[i];
    if (c->func == f)
      memcpy(arena + c->to, arena + c->from, (size_t)c->bytes);
  }
  return arena;
}

static void compare(const sample *s, const char *x, const char *y, const char *what, int64_t offset,
                    const ir_tensor_value *want) {
  unsigned long long seed = s->seed;
  CHECK(memcmp(x + offset, y + offset, (size_t)ir_bytes(&want->type)) == 0,
        "seed %llu: %s depends on how tasks are split", seed, what);
  double d = test_distance(x + offset, want);
  CHECK(d <= TOLERANCE, "seed %llu: %s differs from the oracle by %g", seed, what, d);
}

static void test_sample(ir_arena *a, const sample *s, void *lib) {
  ir_func *f0 = ir_find_func(s->before, "step"), *f1 = s->after->funcs.at[s->step];
  ir_world *w = support_world(a, s->before);
  ir_tensor_value *inputs = ir_random_inputs(a, f0, s->seed + 1000);
  char *x = run_step(a, s, lib, w, inputs, true), *y = run_step(a, s, lib, w, inputs, false);
  ir_tensor_value *values = ir_interp(w, f0, inputs);
  for (size_t i = 0; i < f1->results.num; i++)
    compare(s, x, y, f1->results.at[i].name, plan_offset(s->plan, f1, f1->results.at[i].node),
            &values[f0->results.at[i].node->id]);
  for (size_t i = 0; i < s->plan->buffers.num; i++) {
    const plan_buffer *b = &s->plan->buffers.at[i];
    if (b->kind == PLAN_STATE)
      compare(s, x, y, b->state->name, b->offset, &w->states[b->state->id]);
  }
}

int main(int argc, char **argv) {
  // By hand: test_compiled FIRST COUNT
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
  int total = argc > 2 ? atoi(argv[2]) : BATCH * NUM_BATCHES;
  const cg_target *targets = test_targets();
  int num_targets = 0;
  while (targets[num_targets].name)
    num_targets++;
  for (int done = 0; done < total; done += BATCH) {
    ir_arena *a = ir_arena_new();
    const cg_target *t = &targets[(done / BATCH) % num_targets];
    sample s[BATCH];
    int n = total - done < BATCH ? total - done : BATCH;
    for (int i = 0; i < n; i++)
      s[i] = make_sample(a, first + (uint64_t)(done + i), t);
    void *lib = load_all(a, s, n, t);
    CHECK(lib != NULL, "seeds %llu and on do not compile",
          (unsigned long long)(first + (uint64_t)done));
    for (int i = 0; lib && i < n; i++)
      test_sample(a, &s[i], lib);
    ir_arena_free(a);
  }
  return support_finish("test_compiled");
}
