// test_emulator_device.c: the kernels that the emulator's tests run compile for GPUs, too: without
// a word of warning, and without local memory, for the oldest architecture and for Hopper. Skipped
// where there is no NVRTC.
#include "codegen/cuda_resources.h"
#include "tests/emulator/support_emulator.h"
#include "tests/unit/support_cuda.h"
#include "tests/unit/support_passes.h"

#include <string.h>

static void check_resources(ir_arena *a, const char *file, const char *arch,
                            const cg_nvrtc_code *code) {
  cg_resource_list all = {0};
  const char *why = "";
  if (!cg_cubin_resources(a, code->cubin, code->cubin_len, &all, &why) || all.num == 0)
    test_fail("%s for %s: no kernels: %s", file, arch, why);
  for (size_t i = 0; i < all.num; i++)
    if (all.at[i].frame != 0)
      test_fail("%s for %s: %s takes %lld bytes of local memory", file, arch, all.at[i].kernel,
                (long long)all.at[i].frame);
}

static void check_file(const cg_nvrtc *n, ir_arena *a, const char *file, const char *arch) {
  const char *options[] = {"-std=c++17", ir_format(a, "-arch=%s", arch)};
  cg_nvrtc_code code = {0};
  if (!cg_nvrtc_compile(n, a, file, test_kernel_text(a, file), options, 2, &code))
    test_fail("%s for %s:\n%s", file, arch, code.log);
  else if (code.log[0])
    test_fail("%s for %s: warnings:\n%s", file, arch, code.log);
  else
    check_resources(a, file, arch, &code);
}

int main(void) {
  static const char *const files[] = {"clean.cu", "wrappers.cu"}, *const archs[] = {"sm_80",
                                                                                    "sm_90a"};
  ir_arena *a = ir_arena_new();
  const cg_nvrtc *n = support_nvrtc(a);
  if (!n)
    return 77;
  for (int i = 0; i < 4; i++)
    check_file(n, a, files[i / 2], archs[i % 2]);
  ir_arena_free(a);
  return test_report("emulator_device");
}
