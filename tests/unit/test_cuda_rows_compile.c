// test_cuda_rows_compile.c: LOOP and SCATTER kernels of GPT-2's sizes, compiled by NVRTC for sm_80
// and sm_90a: nothing spills, no thread has local memory, ptxas has nothing to say. `-v` prints
// what each kernel takes. Skipped where there is no NVRTC.
#include "codegen/cuda_resources.h"
#include "codegen/program.h"
#include "tests/unit/support_cuda.h"
#include "tests/unit/support_kernels.h"

#include <string.h>

static const test_case cases[] = {
    {"gpt-2 embedding backward", NULL,
     "%i = input : u16[512,1024]\n%u = input : f32[512,1024,768]\n"
     "%s = scatter_add %i, %u : f32[50257,768]\nresult output s = %s",
     0},
    {"positions backward", NULL,
     "%i = iota {axis=1} : i32[512,1024]\n%u = input : f32[512,1024,768]\n"
     "%s = scatter_add %i, %u : f32[1024,768]\nresult output s = %s",
     0},
    {"odd columns, doubles", NULL,
     "%i = input : i64[70000]\n%u = input : f64[70000,333]\n"
     "%s = scatter_add %i, %u : f64[900,333]\nresult output s = %s",
     0},
    {"many rows of one element", NULL,
     "%i = input : i32[1000000]\n%u = input : f32[1000000]\n"
     "%s = scatter_add %i, %u : f32[16000000]\nresult output s = %s",
     0},
    {"bytes", NULL,
     "%i = input : i32[4000,3]\n%u = input : u8[4000,3,5,7]\n"
     "%s = scatter_add %i, %u : u8[300,5,7]\nresult output s = %s",
     0},
};

static void compile(ir_arena *a, const cg_nvrtc *nvrtc, const char *text, const char *arch,
                    bool verbose) {
  const char *options[] = {ir_format(a, "-arch=%s", arch), "-std=c++17", "-default-device",
                           "--diag-suppress=177", "--ptxas-options=--warn-on-spills"};
  cg_nvrtc_code code;
  const char *why = "";
  cg_resource_list list = {0};
  bool ok = cg_nvrtc_compile(nvrtc, a, "rows.cu", text, options, 5, &code);
  if (!ok || code.log[0])
    test_fail("%s: %s", arch, code.log);
  if (ok && (!cg_cubin_resources(a, code.cubin, code.cubin_len, &list, &why) || list.num == 0))
    test_fail("%s: no kernels: %s", arch, why);
  for (size_t i = 0; i < list.num; i++) {
    const cg_resources *r = &list.at[i];
    if (r->frame || r->stack)
      test_fail("%s for %s: %lld bytes of local memory", r->kernel, arch,
                (long long)(r->frame + r->stack));
    if (verbose)
      printf("%-7s %-8s %3d registers, %6lld bytes shared\n", arch, r->kernel, r->registers,
             (long long)r->shared);
  }
}

int main(int argc, char **argv) {
  ir_arena *a = ir_arena_new();
  bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
  const cg_nvrtc *nvrtc = support_nvrtc(a);
  if (!nvrtc)
    return 77;
  const cg_target *target = cg_target_find(a, "cuda:sm_80,sm_90a");
  const char *text = test_cases_text(a, cases, sizeof cases / sizeof *cases, target);
  if (verbose)
    puts(strstr(text, "// ---- "));
  compile(a, nvrtc, text, "sm_80", verbose);
  compile(a, nvrtc, text, "sm_90a", verbose);
  ir_arena_free(a);
  return test_report("cuda_rows_compile");
}
