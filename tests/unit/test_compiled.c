// test_compiled.c: whole programs against the oracle. Random modules go through all passes, code
// generation and the memory plan; their kernels run in an arena laid out as planned (poisoned
// first), in two ways: whole ranges of tasks, and task by task backwards. Both must give the
// same bits, and the results and states must be the interpreter's within f32 rounding.
#include <stdlib.h>
#include <string.h>

#include "tests/support_campaign.h"
#include "tests/unit/support_ir.h"
#include "tests/unit/support_kernels.h"
#include "tests/unit/support_program.h"

enum { NUM_BATCHES = 6, BATCH = 20 };
static const double TOLERANCE = 2e-4; // relative to the largest element of a tensor

typedef struct sample {
  uint64_t seed;
  ir_module *before; // the passes
  test_program *p;   // after them
} sample;

// --- making programs -------------------------------------------------------------------------
static void quit_on_errors(ir_diags *d, uint64_t seed) {
  if (diag_num_errors(d) == 0)
    return;
  diag_print(d, stderr, false);
  fprintf(stderr, "seed %llu: a valid module was refused\n", (unsigned long long)seed);
  exit(1);
}

static sample make_sample(test_program *p, ir_arena *a, uint64_t seed, const cg_target *t) {
  ir_random_options o = {.seed = seed,
                         .num_nodes = 8 + (int)(seed % 7) * 8,
                         .differentiable = seed % 2 == 0,
                         .penalised = seed % 8 == 6,
                         .networks = seed % 3 == 0};
  ir_module *m = ir_random_module(a, o);
  ir_diags *d = diag_new(a);
  sample s = {.seed = seed, .before = ir_clone(m), .p = p};
  pass_autodiff(s.before, d);
  pass_run_pipeline(m, d, NULL);
  quit_on_errors(d, seed);
  unsigned long long number = seed;
  *p = test_program_new(a, ir_format(a, "seed %llu", number), ir_format(a, "g%llu_", number), m,
                        "step", t);
  return s;
}

static void compare(const sample *s, const char *x, const char *y, const char *what, int64_t offset,
                    const ir_tensor_value *want) {
  unsigned long long seed = s->seed;
  CHECK(memcmp(x + offset, y + offset, (size_t)ir_bytes(&want->type)) == 0,
        "seed %llu: %s depends on how tasks are split", seed, what);
  double d = test_distance(x + offset, want);
  CHECK(d <= TOLERANCE, "seed %llu: %s differs from the oracle by %g", seed, what, d);
}

static void test_sample(ir_arena *a, const sample *s, const test_library *l) {
  const ir_func *f0 = ir_find_func(s->before, "step"), *f1 = s->p->func;
  const plan *plan = s->p->plan;
  ir_world *w = support_world(a, s->before);
  ir_tensor_value *inputs = ir_random_inputs(a, f0, s->seed + 1000);
  char *x = test_program_run(s->p, l, w, inputs, TEST_WHOLE);
  char *y = test_program_run(s->p, l, w, inputs, TEST_BACKWARDS);
  ir_tensor_value *values = ir_interp(w, f0, inputs);
  for (size_t i = 0; i < f1->results.num; i++)
    compare(s, x, y, f1->results.at[i].name, plan_offset(plan, f1, f1->results.at[i].node),
            &values[f0->results.at[i].node->id]);
  for (size_t i = 0; i < plan->buffers.num; i++) {
    const plan_buffer *b = &plan->buffers.at[i];
    if (b->kind == PLAN_STATE)
      compare(s, x, y, b->state->name, b->offset, &w->states[b->state->id]);
  }
}

int main(int argc, char **argv) {
  // By hand: test_compiled FIRST COUNT
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
  int total = argc > 2 ? atoi(argv[2]) : test_campaign(NUM_BATCHES * BATCH);
  const cg_target *targets = test_targets();
  int num_targets = 0;
  while (targets[num_targets].name)
    num_targets++;
  for (int done = 0; done < total; done += BATCH) {
    ir_arena *a = ir_arena_new();
    const cg_target *t = &targets[(done / BATCH) % num_targets];
    sample s[BATCH];
    test_program p[BATCH];
    int n = total - done < BATCH ? total - done : BATCH;
    for (int i = 0; i < n; i++)
      s[i] = make_sample(&p[i], a, first + (uint64_t)(done + i), t);
    test_library l = test_library_new(a, p, (size_t)n, test_level(t));
    for (int i = 0; l.lib && i < n; i++)
      test_sample(a, &s[i], &l);
    test_library_free(&l);
    ir_arena_free(a);
  }
  return support_finish("test_compiled") | test_report("programs of random modules");
}
