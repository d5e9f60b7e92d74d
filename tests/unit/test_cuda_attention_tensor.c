// test_cuda_attention_tensor.c: attention of narrow operands by the tensor cores: what
// --precision=bf16 makes of it, and casts to f16 in the graph. The kernels run on the emulator
// against the oracle, which narrows the same values: weights after their division. `-v [NAME]`
// prints the text.
#include "codegen/program.h"
#include "tests/unit/support_attention_cases.h"
#include "tests/unit/support_kernels.h"

#include <string.h>

enum { NUM_RANDOM = 4 };

// A GPU of one SM has enough to do with few blocks: their tiles become as large as they can.
static const cg_target *gpu_with(ir_arena *a, const cg_target *target, int sms, int64_t shared) {
  cg_cuda chip = *target->cuda;
  chip.sms = sms;
  chip.shared_per_block = shared;
  return cg_cuda_with(a, target, chip);
}

static void add_case(test_suite *s, ir_arena *a, const cg_target *target, const attention_case *c,
                     const char *precision) {
  ir_module *m = test_module(a, NULL, attention_text(a, c));
  pass_set_precision(m, precision);
  if (!attention_compile(m, target, c))
    return;
  int kernels = test_suite_add(s, c->what, m, "f", 1e-5, 7);
  if (kernels != (c->forward ? 1 : 3))
    test_fail("%s: %d attention kernels", c->what, kernels);
}

// --- conversions of the graph's own --------------------------------------------------------------
#define SHAPE  "[2,64,40]"
#define SCORES "[2,64,64]"
#define CAST(x, type)                                                                              \
  "%" x "0 = input : f32" SHAPE "\n%" x "1 = cast %" x "0 : " type SHAPE "\n%" x " = cast %" x     \
  "1 : f32" SHAPE "\n"
#define SOFTMAX                                                                                    \
  "%s = matmul %q, %k {ta=false, tb=true} : f32" SCORES "\n"                                       \
  "%m = reduce_max %s {axes=[2]} : f32[2,64,1]\n%mb = broadcast %m : f32" SCORES "\n"              \
  "%d = sub %s, %mb : f32" SCORES "\n%e = exp %d : f32" SCORES "\n"                                \
  "%z = sum %e {axes=[2]} : f32[2,64,1]\n%zb = broadcast %z : f32" SCORES "\n"                     \
  "%p = div %e, %zb : f32" SCORES "\n"
#define WEIGHTS(type) "%p1 = cast %p : " type SCORES "\n%w = cast %p1 : f32" SCORES "\n"
#define OUT(w)        "%y = matmul %" w ", %v {ta=false, tb=false} : f32" SHAPE "\nresult output y = %y\n"

static const struct {
  const char *what, *body, *products;
} by_hand[] = {
    {"f16", CAST("q", "f16") CAST("k", "f16") CAST("v", "f16") SOFTMAX WEIGHTS("f16") OUT("w"),
     "products in f16"},
    {"weights are not narrow", CAST("q", "f16") CAST("k", "f16") CAST("v", "f16") SOFTMAX OUT("p"),
     " 2 times, in tiles"},
    {"two types",
     CAST("q", "bf16") CAST("k", "bf16") CAST("v", "f16") SOFTMAX WEIGHTS("f16") OUT("w"),
     "products in tf32"},
    {"one operand is used elsewhere",
     CAST("q", "f16") CAST("k", "f16") CAST("v", "f16") SOFTMAX WEIGHTS("f16")
         OUT("w") "%t = sin %q : f32" SHAPE "\nresult output t = %t\n",
     "products in f16"},
};

static void check_by_hand(ir_arena *a, const cg_target *target) {
  test_suite *s = test_suite_new(a, target, 1u << IR_FAMILY_ATTENTION);
  pass_options o = {.families = cg_families(target)};
  for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++) {
    ir_module *m = test_module(a, NULL, by_hand[i].body);
    if (!pass_run_pipeline(m, diag_new(a), &o) ||
        test_suite_add(s, by_hand[i].what, m, "f", 1e-5, 7) != 1)
      test_fail("%s: not one attention kernel", by_hand[i].what);
  }
  const char *text = test_suite_run(s);
  for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++) {
    const char *at = strstr(text, ir_format(a, "// ---- %s\n", by_hand[i].what));
    const char *head = at ? strchr(at, '\n') + 1 : "";
    size_t length = strcspn(head, "\n");
    if (!strstr(ir_strndup(a, head, length), by_hand[i].products))
      test_fail("%s: no '%s' in '%.*s'", by_hand[i].what, by_hand[i].products, (int)length, head);
  }
}

// Every `step`th case; on a GPU of one SM the largest tiles are seen.
static void check_cases(ir_arena *a, const cg_target *target, const char *precision, size_t first,
                        size_t step, const char *only, bool show) {
  test_suite *s = test_suite_new(a, target, 1u << IR_FAMILY_ATTENTION);
  for (size_t i = 0; i < NUM_ATTENTION_CASES; i++)
    if (only ? strcmp(only, attention_cases[i].what) == 0 : i % step == first)
      add_case(s, a, target, &attention_cases[i], precision);
  for (uint64_t seed = 1; seed <= NUM_RANDOM; seed++) {
    const attention_case *c = attention_random(a, seed);
    if (only ? strcmp(only, c->what) == 0 : seed % step == first)
      add_case(s, a, target, c, precision);
  }
  const char *text = test_suite_run(s);
  if (show)
    puts(text);
  int kernels = test_occurrences(text, "K_KERNEL_ROOM(k");
  int tensor = test_occurrences(text, ir_format(a, "products in %s", precision));
  if (tensor != kernels)
    test_fail("%d of %d kernels by the tensor cores", tensor, kernels);
  if (!only && target->cuda->sms == 1 && !strstr(text, "4 x 8 of a thread"))
    test_fail("%s: no large tiles", precision);
}

// Where no tile fits into shared memory, f32 operands are left to FMAs; one slot is tried before.
static void check_little_memory(ir_arena *a, const cg_target *target) {
  const cg_target *gpu = gpu_with(a, target, target->cuda->sms, 30 * 1024);
  test_suite *s = test_suite_new(a, gpu, 1u << IR_FAMILY_ATTENTION);
  const attention_case c = {"wide", 1, 2, 64, 64, 128, 128, .mask = CAUSAL};
  add_case(s, a, gpu, &c, "tf32");
  const char *text = test_suite_run(s),
             *one_slot = "k_async_wait<0>();\n    __syncthreads();\n    vf s0";
  int tensor = test_occurrences(text, "products in tf32");
  if (tensor == 0 || tensor == test_occurrences(text, "K_KERNEL_ROOM(k") || !strstr(text, one_slot))
    test_fail("%d kernels by the tensor cores in little memory", tensor);
}

int main(int argc, char **argv) {
  const char *only = argc > 2 ? argv[2] : NULL;
  ir_arena *a = ir_arena_new();
  const cg_target *target = cg_target_find(a, "cuda:sm_80,sm_90a"),
                  *small = gpu_with(a, target, 1, target->cuda->shared_per_block);
  check_cases(a, target, "bf16", 0, 2, only, argc > 1);
  check_cases(a, small, "bf16", 1, 2, only, argc > 1);
  check_cases(a, target, "tf32", 1, 7, only, argc > 1);
  check_cases(a, small, "tf32", 4, 7, only, argc > 1);
  if (!only) {
    check_by_hand(a, target);
    check_little_memory(a, target);
  }
  ir_arena_free(a);
  return test_report("cuda_attention_tensor");
}
