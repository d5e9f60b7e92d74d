// test_nvrtc.c: a small kernel becomes cubins and PTX for each architecture, the same bytes each
// time; errors come with the compiler's words; where there is no NVRTC, the message says what to
// do; and the resources read from cubins are those that ptxas tells.
#include "codegen/cuda_resources.h"
#include "codegen/cuda_toolchain.h"
#include "support_cuda.h"
#include "support_ir.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

// Shared memory, a barrier, an array in local memory, constants, two kernels.
static const char text[] =
    "__device__ float table[4] = {1, 2, 3, 4};\n"
    "extern \"C\" __global__ void __launch_bounds__(128) turn(float *p) {\n"
    "  __shared__ float tile[128];\n"
    "  tile[threadIdx.x] = p[threadIdx.x] * 3.14159274f;\n"
    "  __syncthreads();\n"
    "  p[threadIdx.x] = expf(tile[127 - threadIdx.x]) + table[threadIdx.x & 3];\n"
    "}\n"
    "extern \"C\" __global__ void pick(double *p, int n) {\n"
    "  double local[50];\n"
    "  for (int i = 0; i < n; i++) local[i] = p[i] * 1e-300;\n"
    "  for (int i = 0; i < n; i++) p[i] = local[i * i % n];\n"
    "}\n";

static bool compile(const cg_nvrtc *n, ir_arena *a, const char *source, const char *arch,
                    cg_nvrtc_code *code) {
  const char *options[] = {"-std=c++17", "-default-device", "--ptxas-options=-v",
                           ir_format(a, "--gpu-architecture=%s", arch)};
  return cg_nvrtc_compile(n, a, "unit.cu", source, options, 4, code);
}

// --- what ptxas says -----------------------------------------------------------------------------
// The number before `words` in one line: 352 of "... 352 bytes cmem[0]"; 0 when it is not there.
static long before(const char *line, const char *words) {
  const char *end = strchr(line, '\n'), *at = strstr(line, words);
  if (!at || (end && at > end))
    return 0;
  while (at > line && strchr("0123456789", at[-1]))
    at--;
  return strtol(at, NULL, 10);
}

// Log lines of one kernel: "Compiling entry function 'turn' ...", then "Used 12 registers, ...".
static void check_resources(const char *log, const cg_resources *r, const char *arch) {
  char name[100];
  snprintf(name, sizeof name, "entry function '%s'", r->kernel);
  const char *from = strstr(log, name), *used = from ? strstr(from, "Used ") : NULL;
  CHECK(used != NULL, "%s: ptxas says nothing about %s:\n%s", arch, r->kernel, log);
  if (!used)
    return;
  const char *frame = strstr(from, " bytes stack frame");
  long frame_bytes = 0;
  if (frame && frame < used) {
    while (strchr("0123456789", frame[-1]))
      frame--;
    frame_bytes = strtol(frame, NULL, 10);
  }
  CHECK(r->registers == before(used, " registers"), "%s %s: %d registers", arch, r->kernel,
        r->registers);
  CHECK(r->frame == frame_bytes, "%s %s: %lld bytes of frame, not %ld", arch, r->kernel,
        (long long)r->frame, frame_bytes);
  CHECK(r->stack == before(used, " bytes cumulative stack size"), "%s %s: %lld bytes of stack",
        arch, r->kernel, (long long)r->stack);
  CHECK(r->shared == before(used, " bytes smem"), "%s %s: %lld bytes shared", arch, r->kernel,
        (long long)r->shared);
  long constant = before(used, " bytes cmem[0]") + before(used, " bytes cmem[2]");
  if (constant) // for newer architectures ptxas does not say
    CHECK(r->constant == constant, "%s %s: %lld bytes constant, not %ld", arch, r->kernel,
          (long long)r->constant, constant);
}

static void check_cubin(ir_arena *a, const cg_nvrtc_code *code, const char *arch) {
  cg_resource_list all = {0};
  const char *why = "";
  bool ok = cg_cubin_resources(a, code->cubin, code->cubin_len, &all, &why);
  CHECK(ok && all.num == 2, "%s: %zu kernels, %s", arch, all.num, why);
  int64_t shared = 0, frame = 0;
  for (size_t i = 0; i < all.num; i++) {
    check_resources(code->log, &all.at[i], arch);
    shared += all.at[i].shared;
    frame += all.at[i].frame;
  }
  CHECK(shared == 512 && frame == 400, "%s: %lld bytes shared, %lld local", arch, (long long)shared,
        (long long)frame);
}

// Nothing that is not there is read, whatever the file says (run under AddressSanitizer, too).
static void check_damaged(ir_arena *a, const cg_nvrtc_code *code) {
  cg_resource_list all;
  const char *why;
  Elf64_Ehdr header;
  memcpy(&header, code->cubin, sizeof header);
  size_t needed = header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr); // more may follow
  for (size_t len = 0; len < needed; len += 97) {
    char *part = malloc(len + 1); // exactly as long as it is: reading beyond shows
    memcpy(part, code->cubin, len);
    CHECK(!cg_cubin_resources(a, part, len, &all, &why), "%zu bytes are no cubin", len);
    free(part);
  }
  char *copy = malloc(code->cubin_len);
  for (size_t i = 0; i < code->cubin_len; i += 3) {
    memcpy(copy, code->cubin, code->cubin_len);
    copy[i] = (char)(copy[i] ^ 0xff);
    cg_cubin_resources(a, copy, code->cubin_len, &all, &why);
  }
  free(copy);
}

// --- NVRTC ---------------------------------------------------------------------------------------
static void check_arch(const cg_nvrtc *n, ir_arena *a, const char *arch) {
  cg_nvrtc_code code, again;
  bool real = strncmp(arch, "sm_", 3) == 0;
  bool ok = compile(n, a, text, arch, &code) && compile(n, a, text, arch, &again);
  CHECK(ok, "%s: %s", arch, code.log);
  if (!ok)
    return;
  CHECK((code.cubin != NULL) == real, "%s: a cubin of a real architecture only", arch);
  const char *target = ir_format(a, ".target sm_%s", strchr(arch, '_') + 1);
  CHECK(code.ptx && strstr(code.ptx, target), "%s: no '%s' in the PTX", arch, target);
  CHECK(code.ptx_len == strlen(code.ptx) + 1, "the 0 byte counts");
  CHECK(code.ptx_len == again.ptx_len && !memcmp(code.ptx, again.ptx, code.ptx_len),
        "%s: other PTX the second time", arch);
  if (!real)
    return;
  CHECK(code.cubin_len == again.cubin_len && !memcmp(code.cubin, again.cubin, code.cubin_len),
        "%s: another cubin the second time", arch);
  check_cubin(a, &code, arch);
  check_damaged(a, &code);
}

static void check_error(const cg_nvrtc *n, ir_arena *a) {
  cg_nvrtc_code code;
  CHECK(!compile(n, a, "__global__ void k() {\n  wrong;\n}\n", "sm_80", &code), "this compiles");
  CHECK(strstr(code.log, "unit.cu(2): error") && strstr(code.log, "\"wrong\"") &&
            strstr(code.log, "NVRTC_ERROR_COMPILATION"),
        "the message: %s", code.log);
  CHECK(!compile(n, a, text, "sm_1", &code) && strstr(code.log, "gpu-architecture"),
        "an unknown architecture: %s", code.log);
}

static void check_absent(ir_arena *a, const char *place) {
  const char *why = NULL;
  setenv("MLTC_NVRTC", place, 1);
  CHECK(!cg_nvrtc_open(a, &why), "there is one in %s", place);
  CHECK(why && strstr(why, place) && strstr(why, "cuda-nvrtc-13-0") &&
            strstr(why, "nvidia-cuda-nvrtc") && strstr(why, "--cuda-compiler=clang"),
        "the message: %s", why ? why : "none");
  unsetenv("MLTC_NVRTC");
}

// A library of that name that is another one.
static void check_foreign(ir_arena *a) {
  const char *why = NULL;
  setenv("MLTC_NVRTC", "libm.so.6", 1);
  CHECK(!cg_nvrtc_open(a, &why) && strstr(why, "nvrtcVersion"), "the message: %s", why ? why : "");
  unsetenv("MLTC_NVRTC");
}

// Roots and quotients are rounded as IEEE says, products in sums fused, small numbers not 0.
static void check_exact(ir_arena *a, const cg_nvrtc *n) {
  static const char text[] = "extern \"C\" __global__ void k(float *p) {\n"
                             "  p[0] = sqrtf(p[1]) / p[2];\n  p[3] = p[4] * p[5] + p[6];\n}\n";
  static const char *const wanted[] = {"sqrt.rn.f32", "div.rn.f32", "fma.rn.f32"};
  int num;
  const char *const *told = cg_nvrtc_options(&num);
  const char *options[32];
  memcpy(options, told, (size_t)num * sizeof *told);
  options[num++] = "--gpu-architecture=compute_80";
  cg_nvrtc_code code = {0};
  bool ok = cg_nvrtc_compile(n, a, "kernels.cu", text, options, num, &code);
  CHECK(ok, "%s", code.log);
  for (int i = 0; ok && i < 3; i++)
    CHECK(strstr(code.ptx, wanted[i]), "no %s", wanted[i]);
  CHECK(!ok || !strstr(code.ptx, ".ftz"), "small numbers are 0");
}

int main(void) {
  ir_arena *a = ir_arena_new();
  const cg_nvrtc *n = support_nvrtc(a);
  if (n) {
    static const char *const archs[] = {"sm_80",  "sm_86",      "sm_89",
                                        "sm_90a", "compute_80", "compute_90"};
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
      check_arch(n, a, archs[i]);
    if (cg_nvrtc_knows(n, 100))
      check_arch(n, a, "sm_100");
    check_exact(a, n);
    check_error(n, a);
    CHECK(cg_nvrtc_knows(n, 80) && !cg_nvrtc_knows(n, 10), "it knows %s", cg_nvrtc_all(n, a));
  }
  check_absent(a, "/nonexistent/libnvrtc.so");
  const char *folder = support_new_folder(a);
  check_absent(a, folder);
  support_remove_folder(a, folder);
  check_foreign(a);
  int failed = support_finish("test_nvrtc");
  ir_arena_free(a);
  return failed || n ? failed : 77;
}
