// test_cuda_attention.c: attention and its gradients as the pipeline for GPUs makes them. Each case
// is compared with itself before the passes (by the interpreter), its kernels are run on the
// emulator against the oracle, and no value of the scores' size may be in memory. `-v [NAME]`
// prints the text.
#include "codegen/program.h"
#include "tests/unit/support_attention_cases.h"
#include "tests/unit/support_kernels.h"

#include <math.h>
#include <string.h>

enum { NUM_RANDOM = 6 };

static const attention_case cases[] = {
    {"causal", 1, 2, 64, 64, 32, 32, .mask = CAUSAL},
    {"no mask", 1, 2, 64, 96, 64, 64, .mask = NO_MASK},
    {"tails of everything", 2, 2, 45, 70, 40, 24, .mask = NO_MASK},
    {"tails of single columns", 1, 3, 50, 67, 33, 35, .mask = CAUSAL},
    {"wide heads", 1, 4, 70, 40, 128, 128, .mask = CAUSAL},
    {"wider values", 1, 4, 40, 64, 64, 128, .mask = NO_MASK},
    {"window", 1, 2, 150, 150, 32, 32, .mask = WINDOW},
    {"window of -inf", 1, 2, 150, 150, 32, 32, .mask = WINDOW, .far = "-inf"},
    {"causal, longer rows", 1, 2, 96, 200, 32, 32, .mask = CAUSAL},
    {"rows that see nothing", 1, 2, 80, 80, 32, 32, .mask = FROM_ROW_8},
    {"rows of -inf", 1, 2, 80, 80, 32, 32, .mask = FROM_ROW_8, .far = "-inf"},
    {"causal by scores only", 1, 2, 80, 80, 32, 32, .mask = CAUSAL, .unmasked = true},
    {"mask in memory", 1, 2, 64, 66, 32, 32, .mask = FROM_MEMORY},
    {"mask of -inf in memory", 1, 2, 64, 66, 32, 32, .mask = FROM_MEMORY, .far = "-inf"},
    {"bias", 2, 2, 64, 72, 32, 32, .bias = true},
    {"bias, causal, tails", 2, 2, 50, 51, 32, 32, .mask = CAUSAL, .bias = true},
    {"dropout", 1, 2, 64, 64, 32, 32, .dropout = true},
    {"dropout, causal", 1, 2, 70, 70, 32, 32, .mask = CAUSAL, .dropout = true},
    {"grouped heads", 2, 4, 64, 64, 32, 32, .mask = CAUSAL, .groups = 2},
    {"merged heads", 2, 2, 64, 64, 32, 32, .mask = CAUSAL, .merged = true},
    {"merged heads of 20", 2, 2, 66, 66, 20, 20, .mask = CAUSAL, .merged = true},
    {"steep", 1, 4, 64, 130, 64, 64, .steep = true},
    {"no maximum", 1, 4, 64, 80, 32, 32, .plain = true},
    {"no maximum, causal", 1, 4, 70, 70, 32, 32, .mask = CAUSAL, .plain = true},
    {"row sums over scores", 1, 2, 64, 80, 32, 32, .mask = CAUSAL, .keep_sums = true},
    {"forward only", 2, 2, 64, 100, 48, 40, .mask = CAUSAL, .forward = true},
};

static void check_same(const attention_case *c, ir_arena *a, const ir_module *before,
                       const ir_module *after) {
  test_values x = test_run(a, before, "f", 3), y = test_run(a, after, "f", 3);
  const char *where = "";
  double d = test_difference(&x, &y, &where);
  if (!(d <= 1e-9))
    test_fail("%s: %s differs by %g after the passes", c->what, where, d);
}

// Kernels of the family; each buffer is smaller than the scores.
static void check_kernels(const attention_case *c, const ir_func *f) {
  int64_t scores = (int64_t)c->batch * c->heads * c->m * c->n;
  int found = 0;
  for (size_t i = 0; i < f->kernels.num; i++) {
    const ir_kernel *k = f->kernels.at[i];
    found += k->family == IR_FAMILY_ATTENTION;
    for (size_t j = 0; j < k->outputs.num; j++) {
      const ir_type *t = &k->outputs.at[j]->type;
      if (t->rank > 0 && t->dims[t->rank - 1] == c->n && ir_elements(t) == scores && c->n != c->d &&
          c->n != c->e)
        test_fail("%s: %s is in memory", c->what, k->outputs.at[j]->name);
    }
  }
  if (found != (c->forward ? 1 : 3))
    test_fail("%s: %d attention kernels", c->what, found);
}

static void add_case(test_suite *s, ir_arena *a, const cg_target *target, const attention_case *c) {
  ir_module *m = test_module(a, NULL, attention_text(a, c));
  ir_module *before = ir_clone(m);
  ir_diags *d = diag_new(a);
  pass_autodiff(before, d);
  static const char *const sums[] = {"row_sums"};
  pass_options o = {
      .families = cg_families(target), .disabled = sums, .num_disabled = c->keep_sums};
  if (!pass_run_pipeline(m, d, &o)) {
    test_fail("%s: the pipeline fails", c->what);
    return;
  }
  check_same(c, a, before, m);
  check_kernels(c, m->funcs.at[0]);
  test_suite_add(s, c->what, m, "f", 1e-5, 7);
}

static int draw(uint64_t *seed, int low, int high) {
  return (int)test_random(seed, low, high + 1);
}

static const attention_case *random_case(ir_arena *a, uint64_t seed) {
  attention_case *c = IR_NEW(a, attention_case);
  *c = (attention_case){.what = ir_format(a, "random %llu", (unsigned long long)seed),
                        .batch = draw(&seed, 1, 2),
                        .m = draw(&seed, 32, 100),
                        .n = draw(&seed, 32, 140),
                        .d = draw(&seed, 3, 70),
                        .e = draw(&seed, 1, 70),
                        .mask = (attention_mask)draw(&seed, NO_MASK, FROM_MEMORY),
                        .far = draw(&seed, 0, 1) ? "-1e30" : "-inf",
                        .groups = draw(&seed, 0, 1) * 2,
                        .bias = draw(&seed, 0, 1),
                        .dropout = draw(&seed, 0, 2) == 0,
                        .merged = draw(&seed, 0, 3) == 0,
                        .keep_sums = draw(&seed, 0, 3) == 0};
  c->heads = 4;
  if (c->merged) {
    c->n = c->m;
    c->e = c->d;
    c->groups = 0;
  }
  return c;
}

// --- what is left to the ordinary kernels, and what cannot share one -----------------------------
#define SOFTMAX                                                                                    \
  "%q = input : f32[2,64,32]\n%k = input : f32[2,64,32]\n%v = input : f32[2,64,32]\n"              \
  "%s = matmul %q, %k {ta=false, tb=true} : f32[2,64,64]\n"                                        \
  "%m = reduce_max %s {axes=[2]} : f32[2,64,1]\n%mb = broadcast %m : f32[2,64,64]\n"               \
  "%d = sub %s, %mb : f32[2,64,64]\n%e = exp %d : f32[2,64,64]\n"                                  \
  "%z = sum %e {axes=[2]} : f32[2,64,1]\n%zb = broadcast %z : f32[2,64,64]\n"                      \
  "%p = div %e, %zb : f32[2,64,64]\n"
#define OUT(y, ta, v)                                                                              \
  "%" y " = matmul %p, %" v " {ta=" ta ", tb=false} : f32[2,64,32]\nresult output " y " = %" y "\n"

static const struct {
  const char *what, *body;
  int kernels;
} sites[] = {
    {"plain", SOFTMAX OUT("y", "false", "v"), 1},
    {"the weights are a result", SOFTMAX OUT("y", "false", "v") "result output p = %p\n", 0},
    {"a score is used",
     SOFTMAX OUT("y", "false", "v") "%n = neg %s : f32[2,64,64]\n"
                                    "%t = sum %n {axes=[1]} : f32[2,1,64]\n"
                                    "result output t = %t\n",
     0},
    {"a row value is a result",
     SOFTMAX OUT("y", "false", "v") "%l = log %z : f32[2,64,1]\n"
                                    "result output l = %l\n",
     1},
    {"values need the row sums",
     SOFTMAX "%zv = broadcast %z : f32[2,64,32]\n"
             "%w = mul %v, %zv : f32[2,64,32]\n" OUT("y", "false", "w"),
     0},
    {"two over columns", SOFTMAX OUT("y", "false", "v") OUT("a", "true", "v") OUT("b", "true", "q"),
     2},
    {"one over columns needs the other",
     SOFTMAX OUT("y", "false", "v")
         OUT("a", "true", "v") "%c = tanh %a : f32[2,64,32]\n" OUT("b", "true", "c"),
     3},
    {"over columns only", SOFTMAX OUT("a", "true", "v"), 0},
    {"no row reduction",
     "%q = input : f32[2,64,32]\n%k = input : f32[2,64,32]\n%v = input : f32[2,64,32]\n"
     "%s = matmul %q, %k {ta=false, tb=true} : f32[2,64,64]\n%p = tanh %s : f32[2,64,64]\n" OUT(
         "y", "false", "v"),
     0},
};

static void check_sites(test_suite *s, ir_arena *a, const cg_target *target) {
  for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
    ir_module *m = test_module(a, NULL, sites[i].body), *before = ir_clone(m);
    const attention_case c = {.what = sites[i].what};
    pass_options o = {.families = cg_families(target)};
    if (!pass_run_pipeline(m, diag_new(a), &o))
      test_fail("%s: the pipeline fails", c.what);
    check_same(&c, a, before, m);
    int found = test_suite_add(s, c.what, m, "f", 1e-5, 7);
    if (found != sites[i].kernels)
      test_fail("%s: %d attention kernels, not %d", c.what, found, sites[i].kernels);
  }
}

int main(int argc, char **argv) {
  const char *only = argc > 2 ? argv[2] : NULL;
  ir_arena *a = ir_arena_new();
  const cg_target *target = cg_target_find(a, "cuda:sm_80,sm_90a");
  test_suite *s = test_suite_new(a, target, 1u << IR_FAMILY_ATTENTION);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (!only || strcmp(only, cases[i].what) == 0)
      add_case(s, a, target, &cases[i]);
  for (uint64_t seed = 1; seed <= NUM_RANDOM; seed++) {
    const attention_case *c = random_case(a, seed);
    if (!only || strcmp(only, c->what) == 0)
      add_case(s, a, target, c);
  }
  if (!only)
    check_sites(s, a, target);
  const char *text = test_suite_run(s);
  if (argc > 1)
    puts(text);
  ir_arena_free(a);
  return test_report("cuda_attention");
}
