// test_cuda_attention_tensor.c: attention of narrow operands by the tensor cores: what
// --precision=bf16 makes of it, and casts to f16 in the graph. The kernels run on the emulator
// against the oracle, which narrows the same values: weights after their division. `-v [NAME]`
// prints the text.
#include "codegen/program.h"
#include "tests/unit/support_attention_cases.h"
#include "tests/unit/support_kernels.h"

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
    {"bias, causal, tails", 2, 2, 50, 51, 32, 32, .mask = CAUSAL, .bias = true},
    {"dropout, causal", 1, 2, 70, 70, 32, 32, .mask = CAUSAL, .dropout = true},
    {"grouped heads", 2, 4, 64, 64, 32, 32, .mask = CAUSAL, .groups = 2},
    {"merged heads", 2, 2, 64, 64, 32, 32, .mask = CAUSAL, .merged = true},
    {"merged heads of 20", 2, 2, 66, 66, 20, 20, .mask = CAUSAL, .merged = true},
    {"many blocks", 9, 16, 64, 64, 32, 32, .mask = CAUSAL, .forward = true},
    {"steep", 1, 4, 64, 130, 64, 64, .steep = true},
    {"no maximum, causal", 1, 4, 70, 70, 32, 32, .mask = CAUSAL, .plain = true},
    {"row sums over scores", 1, 2, 64, 80, 32, 32, .mask = CAUSAL, .keep_sums = true},
    {"forward only", 2, 2, 64, 100, 48, 40, .mask = CAUSAL, .forward = true},
};

static void add_case(test_suite *s, ir_arena *a, const cg_target *target, const attention_case *c) {
  ir_module *m = test_module(a, NULL, attention_text(a, c));
  pass_set_precision(m, "bf16");
  static const char *const sums[] = {"row_sums"};
  pass_options o = {
      .families = cg_families(target), .disabled = sums, .num_disabled = c->keep_sums};
  if (!pass_run_pipeline(m, diag_new(a), &o)) {
    test_fail("%s: the pipeline fails", c->what);
    return;
  }
  int kernels = test_suite_add(s, c->what, m, "f", 1e-5, 7);
  if (kernels != (c->forward ? 1 : 3))
    test_fail("%s: %d attention kernels", c->what, kernels);
}

int main(int argc, char **argv) {
  const char *only = argc > 2 ? argv[2] : NULL;
  ir_arena *a = ir_arena_new();
  const cg_target *target = cg_target_find(a, "cuda:sm_80,sm_90a");
  test_suite *s = test_suite_new(a, target, 1u << IR_FAMILY_ATTENTION);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (!only || strcmp(only, cases[i].what) == 0)
      add_case(s, a, target, &cases[i]);
  const char *text = test_suite_run(s);
  if (argc > 1)
    puts(text);
  ir_arena_free(a);
  return test_report("cuda_attention_tensor");
}
