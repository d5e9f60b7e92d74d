// test_cuda_files.c: kernels that only one chip has stand in files of their own, behind those that all have; no file is
// empty.
#include "codegen/program.h"
#include "passes/pass.h"
#include "tests/unit/support_kernels.h"

#include <string.h>

static const cg_target *small_hopper(ir_arena *a) {
  const cg_target *hopper = cg_target_find(a, "cuda:sm_90a");
  cg_cuda chip = *hopper->cuda;
  chip.sms = 1;
  return cg_cuda_with(a, hopper, chip);
}

// Files of kernels that all chips have, then those of kernels by wgmma, each with some.
static void check_files(ir_arena *a, const char *what, const char *body, size_t common,
                        size_t chip) {
  static const cg_origin origin = {.path = "m.graph", .compiler = "test", .options = ""};
  ir_module *m = test_module(a, NULL, body);
  pass_set_precision(m, "bf16");
  if (!pass_run_pipeline(m, diag_new(a), NULL)) {
    test_fail("%s: no kernels", what);
    return;
  }
  cg_program *p = cg_program_new(a, m, small_hopper(a));
  const plan *plan = cg_plan(p, NULL, NULL);
  cg_share(p);
  cg_sources s = cg_program_emit(p, plan, &origin);
  size_t num[2] = {0, 0}, prelude = strlen(cg_cuda_prelude(a));
  for (size_t i = 0; i < s.num; i++) {
    const cg_source *one = &s.at[i];
    if (one->kind != CG_SOURCE_CUDA)
      continue;
    const char *text = strstr(one->text, cg_cuda_prelude(a)) + prelude;
    num[one->one_chip]++;
    bool right = strstr(text, "K_KERNEL") != NULL;
    for (const char *k = strstr(text, "K_KERNEL"), *next; k; k = next) {
      next = strstr(k + 1, "K_KERNEL");
      const char *by = strstr(k, "k_wgmma_");
      right &= (by && (!next || by < next)) == one->one_chip;
    }
    if (!right)
      test_fail("%s: %s has no kernels, or others", what, one->name);
    if (num[1] && !one->one_chip)
      test_fail("%s: %s behind those of one chip", what, one->name);
  }
  if (num[0] != common || num[1] != chip)
    test_fail("%s: %zu files for all chips, %zu for one", what, num[0], num[1]);
}

#define PRODUCT                                                                                    \
  "%x = input : bf16[64,96]\n%w = input : bf16[96,128]\n%xf = cast %x : f32[64,96]\n%wf = cast "   \
  "%w : f32[96,128]\n%p = matmul %xf, %wf {ta=false, tb=false} : f32[64,128]\nresult output p = "  \
  "%p\n"

int main(void) {
  ir_arena *a = ir_arena_new();
  check_files(a, "a product", PRODUCT, 0, 1);
  check_files(a, "a sum",
              "%x = input : f32[64,96]\n%y = sum %x {axes=[0]} : f32[1,96]\nresult output y = %y",
              1, 0);
  check_files(a, "a product and a sum",
              PRODUCT
              "%y = input : f32[64,96]\n%s = sum %y {axes=[0]} : f32[1,96]\nresult output s = %s\n",
              1, 1);
  ir_buf many = ir_buf_new(a); // one after the other: they share no launch
  ir_buf_puts(&many, PRODUCT "%q0 = sum %p {axes=[0]} : f32[1,128]\n");
  for (int i = 1; i <= 20; i++)
    ir_buf_printf(
        &many,
        "%%y%d = input : f32[%d,128]\n%%b%d = broadcast %%q%d : f32[%d,128]\n"
        "%%z%d = mul %%y%d, %%b%d : f32[%d,128]\n%%q%d = sum %%z%d {axes=[0]} : f32[1,128]\n",
        i, i + 9, i, i - 1, i + 9, i, i, i, i + 9, i, i);
  ir_buf_puts(&many, "result output q = %q20\n");
  check_files(a, "a product among sums", ir_buf_str(&many), 1, 1);
  ir_arena_free(a);
  return test_report("files");
}
