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

// A second cache that some of a case's items fill: blocks of the others come later.
static const cg_target *small_gpu(ir_arena *a, const cg_target *target) {
  cg_cuda chip = *target->cuda;
  chip.l2_bytes = 96 * 1024;
  return cg_cuda_with(a, target, chip);
}

static void add_case(test_suite *s, ir_arena *a, const cg_target *target, const attention_case *c) {
  ir_module *m = test_module(a, NULL, attention_text(a, c));
  ir_module *before = ir_clone(m);
  pass_autodiff(before, diag_new(a));
  if (!attention_compile(m, target, c))
    return;
  check_same(c, a, before, m);
  check_kernels(c, m->funcs.at[0]);
  test_suite_add(s, c->what, m, "f", 1e-5, 7);
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
    {"a reduction that no product needs",
     SOFTMAX OUT("y", "false", "v") "%ps = mul %p, %s : f32[2,64,64]\n"
                                    "%h = sum %ps {axes=[2]} : f32[2,64,1]\n"
                                    "result output h = %h\n",
     0},
    {"a reduction comes back by another shape",
     SOFTMAX "%c = cos %s : f32[2,64,64]\n%h = sum %c {axes=[2]} : f32[2,64,1]\n"
             "%r = reshape %h : f32[2,64]\n%t = sin %r : f32[2,64]\n"
             "%tr = reshape %t : f32[2,64,1]\n%tb = broadcast %tr : f32[2,64,64]\n"
             "%w = mul %p, %tb : f32[2,64,64]\n"
             "%y = matmul %w, %v {ta=false, tb=false} : f32[2,64,32]\nresult output y = %y\n",
     0},
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
  const cg_target *target = small_gpu(a, cg_target_find(a, "cuda:sm_80,sm_90a"));
  test_suite *s = test_suite_new(a, target, 1u << IR_FAMILY_ATTENTION);
  for (size_t i = 0; i < NUM_ATTENTION_CASES; i++)
    if (!only || strcmp(only, attention_cases[i].what) == 0)
      add_case(s, a, target, &attention_cases[i]);
  for (uint64_t seed = 1; seed <= NUM_RANDOM; seed++) {
    const attention_case *c = attention_random(a, seed);
    if (!only || strcmp(only, c->what) == 0)
      add_case(s, a, target, c);
  }
  if (!only)
    check_sites(s, a, target);
  const char *text = test_suite_run(s);
  if (argc > 1)
    puts(text);
  // 3 - task / 2 % 4: of two items at a time the last tile, which walks most columns, comes first
  if (argc == 1 && !strstr(text, " - task / "))
    test_fail("no kernel of causal attention begins with its longest blocks");
  ir_arena_free(a);
  return test_report("cuda_attention");
}
