// test_cuda_files.c: kernels whose order ptxas shall keep, and those that only one chip has, stand in files of their own,
// behind the others; no file is empty.
#include "codegen/program.h"
#include "passes/pass.h"
#include "tests/unit/support_kernels.h"

#include <string.h>

// Chips of one SM, which has to make the most of it.
static const cg_target *small(ir_arena *a, const char *name) {
  const cg_target *t = cg_target_find(a, name);
  cg_cuda chip = *t->cuda, *own = IR_NEW(a, cg_cuda);
  chip.sms = 1;
  if (chip.own) {
    *own = *chip.own;
    own->sms = 1;
    chip.own = own;
  }
  return cg_cuda_with(a, t, chip);
}

// 1: FMAs, in order; 2: by wgmma.
static int kind_of(const char *text, const char *end) {
  const char *by = strstr(text, "k_wgmma_"), *fma = strstr(text, "] += x[i] * y[");
  return by && (!end || by < end) ? 2 : fma && (!end || fma < end) ? 1 : 0;
}

// Files of each kind, one kind behind the other, each with some kernels.
static void check_files(ir_arena *a, const char *target, const char *what, const char *body,
                        const size_t want[3]) {
  static const cg_origin origin = {.path = "m.graph", .compiler = "test", .options = ""};
  ir_module *m = test_module(a, NULL, body);
  if (!pass_run_pipeline(m, diag_new(a), NULL)) {
    test_fail("%s: no kernels", what);
    return;
  }
  cg_program *p = cg_program_new(a, m, small(a, target));
  const plan *plan = cg_plan(p, NULL, NULL);
  cg_share(p);
  cg_sources s = cg_program_emit(p, plan, &origin);
  size_t num[3] = {0, 0, 0}, prelude = strlen(cg_cuda_prelude(a));
  for (size_t i = 0; i < s.num; i++) {
    const cg_source *one = &s.at[i];
    if (one->kind != CG_SOURCE_CUDA)
      continue;
    const char *text = strstr(one->text, cg_cuda_prelude(a)) + prelude;
    int kind = one->one_chip ? 2 : one->in_order;
    num[kind]++;
    bool right = strstr(text, "K_KERNEL") != NULL;
    for (const char *k = strstr(text, "K_KERNEL"), *next; k; k = next) {
      next = strstr(k + 1, "K_KERNEL");
      right &= kind_of(k, next) == kind;
    }
    if (!right)
      test_fail("%s: %s has no kernels, or others", what, one->name);
    for (int later = kind + 1; later < 3; later++)
      if (num[later])
        test_fail("%s: %s behind those of kind %d", what, one->name, later);
  }
  for (int kind = 0; kind < 3; kind++)
    if (num[kind] != want[kind])
      test_fail("%s: %zu files of kind %d, not %zu", what, num[kind], kind, want[kind]);
}

// Text for two files, all of which one joint entry puts beside it.
static void check_joint(ir_arena *a) {
  static const cg_origin origin = {.path = "m.graph", .compiler = "test", .options = ""};
  ir_buf body = ir_buf_new(a);
  for (int i = 0; i < 60; i++) {
    ir_buf_printf(&body, "%%y%d.0 = input : f32[%d]\n", i, 100 + i);
    for (int j = 0; j < 14; j++)
      ir_buf_printf(&body, "%%y%d.%d = %s %%y%d.%d : f32[%d]\n", i, j + 1,
                    j < 6 && i >> j & 1 ? "tanh" : "sin", i, j, 100 + i);
    ir_buf_printf(&body, "result output r%d = %%y%d.14\n", i, i);
  }
  ir_module *m = test_module(a, NULL, ir_buf_str(&body));
  if (!pass_run_pipeline(m, diag_new(a), NULL)) {
    test_fail("a joint: no kernels");
    return;
  }
  cg_program *p = cg_program_new(a, m, cg_target_find(a, "cuda:sm_80"));
  const plan *plan = cg_plan(p, NULL, NULL);
  cg_share(p);
  cg_sources s = cg_program_emit(p, plan, &origin);
  size_t num = 0, bytes = 0;
  for (size_t i = 0; i < s.num; i++)
    num += s.at[i].kind == CG_SOURCE_CUDA;
  for (size_t i = 0; i < p->distinct.num; i++)
    bytes += strlen(p->distinct.at[i]->text);
  if (p->joints.num != 1 || bytes < 65536 || num != 1)
    test_fail("%zu joints, %zu bytes of kernels in %zu files", p->joints.num, bytes, num);
}

#define PRODUCT                                                                                    \
  "%x = input : bf16[64,96]\n%w = input : bf16[96,128]\n%xf = cast %x : f32[64,96]\n%wf = cast "   \
  "%w : f32[96,128]\n%p = matmul %xf, %wf {ta=false, tb=false} : f32[64,128]\nresult output p = "  \
  "%p\n"

#define FMAS                                                                                       \
  "%e = input : f32[64,96]\n%d = input : f32[96,128]\n%g = matmul %e, %d {ta=false, tb=false} : "  \
  "f32[64,128]\nresult output g = %g\n"
#define SUM(name)                                                                                  \
  "%y" name " = input : f32[64,96]\n%" name " = sum %y" name " {axes=[0]} : f32[1,96]\n"           \
  "result output " name " = %" name "\n"

int main(void) {
  ir_arena *a = ir_arena_new();
  static const size_t usual[] = {1, 0, 0}, fmas[] = {0, 1, 0}, chip[] = {0, 0, 1},
                      two[] = {1, 0, 1}, all[] = {1, 1, 1};
  check_files(a, "cuda:sm_90a", "a product", PRODUCT, chip);
  check_files(a, "cuda:sm_90a", "FMAs", FMAS, fmas);
  check_files(a, "cuda:sm_90a", "both", PRODUCT FMAS SUM("f"), all);
  check_files(a, "cuda:sm_80", "a product of all chips", PRODUCT, usual);
  check_files(a, "cuda:sm_80,sm_90a", "a product of each", PRODUCT, two);
  check_files(a, "cuda:sm_90a,sm_100", "a product of each", PRODUCT, two);
  check_files(a, "cuda:sm_90a", "a sum",
              "%x = input : f32[64,96]\n%y = sum %x {axes=[0]} : f32[1,96]\nresult output y = %y",
              usual);
  check_files(a, "cuda:sm_90a", "a product and a sum", PRODUCT SUM("s"), two);
  ir_buf many = ir_buf_new(a); // one after the other: they share no launch
  ir_buf_puts(&many, PRODUCT "%q0 = sum %p {axes=[0]} : f32[1,128]\n");
  for (int i = 1; i <= 20; i++)
    ir_buf_printf(
        &many,
        "%%y%d = input : f32[%d,128]\n%%b%d = broadcast %%q%d : f32[%d,128]\n"
        "%%z%d = mul %%y%d, %%b%d : f32[%d,128]\n%%q%d = sum %%z%d {axes=[0]} : f32[1,128]\n",
        i, i + 9, i, i - 1, i + 9, i, i, i, i + 9, i, i);
  ir_buf_puts(&many, "result output q = %q20\n");
  check_files(a, "cuda:sm_90a", "a product among sums", ir_buf_str(&many), two);
  check_joint(a);
  ir_arena_free(a);
  return test_report("files");
}
