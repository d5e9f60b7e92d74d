// target.c: the machines that code is made for. What is known of GPUs: target_cuda.c.
#include "codegen/program.h"
#include "codegen/toolchain.h"

#include <string.h>
#include <unistd.h>
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

#include "ir/diag.h"

enum { KIB = 1024 };

static const char *const names[] = {"cpu", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64", "cuda"};
enum { NUM_NAMES = sizeof names / sizeof *names };
static const char all_cuda[] = "sm_80,sm_90a"; // what "cuda" alone stands for

static int64_t cache_bytes(int name, int64_t fallback) {
  long n = sysconf(name);
  return n > 0 ? n : fallback;
}

// Whether this process may use the tiles of AMX-BF16: the processor has them, and the kernel, once asked, lets it.
static bool has_amx(void) {
#if defined(__x86_64__) && defined(__linux__)
  enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };      // of EDX
  enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; // ARCH_REQ_XCOMP_PERM
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_BF16) && (d & AMX_TILE) &&
         syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
  return false;
#endif
}

static void describe_native(cg_target *t) {
  t->march = "native";
#if defined(__x86_64__)
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  bool avx2 = __builtin_cpu_supports("avx2");
  t->vector_bytes = avx512 ? 64 : avx2 ? 32 : 16;
  t->vector_registers = avx512 ? 32 : 16;
  t->fma = __builtin_cpu_supports("fma");
  t->dots_bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  t->amx = avx512 && has_amx();
#else
  t->vector_bytes = 16;
  t->vector_registers = 32;
  t->fma = true;
#endif
  t->l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 * KIB);
  t->l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1024 * KIB);
}

// "sm_80" of "cuda:sm_80"; what "cuda" stands for; NULL: a CPU.
static const char *cuda_list(const char *name) {
  if (!strcmp(name, "cuda"))
    return all_cuda;
  return strncmp(name, "cuda:", 5) == 0 ? name + 5 : NULL;
}

// A thread's vector is four floats. The host's part of the program has little to do, so that it is
// made for any machine with the host's instruction set.
static bool describe_cuda(ir_arena *a, cg_target *t, const char *list) {
  const char *wrong;
  t->cuda = cg_cuda_find(a, list, &wrong);
  if (!t->cuda)
    return false;
  ir_buf b = ir_buf_new(a);
  for (int i = 0; i < t->cuda->num_archs; i++)
    ir_buf_printf(&b, "%s%s", i ? "," : "cuda:", t->cuda->archs[i]);
  t->name = ir_buf_str(&b);
  t->vector_bytes = 16;
  t->vector_registers = t->cuda->registers_per_thread * 4 / t->vector_bytes;
  t->l1_bytes = t->cuda->shared_per_sm;
  return true;
}

// Runtimes of other machines lie in folders beside this one's (CMakeLists.txt).
static void describe_aarch64(ir_arena *a, cg_target *t) {
  const char *lib = cg_find_library(a);
  t->triple = "aarch64-linux-gnu";
  t->vector_bytes = 16;
  t->vector_registers = 32;
  t->bare = !lib || access(ir_format(a, "%s/%s/mlrt.o", lib, t->triple), R_OK) != 0;
}

const cg_target *cg_target_find(ir_arena *a, const char *name) {
  cg_target *t = IR_NEW(a, cg_target);
  *t = (cg_target){.name = name, .fma = true, .l1_bytes = 32 * KIB, .l2_bytes = 512 * KIB};
  t->memo = IR_NEW(a, cg_memo);
  *t->memo = (cg_memo){a, ir_map_new(a)};
  if (!strcmp(name, "cpu") || !strcmp(name, "cpu:native")) {
    t->name = "cpu:native";
    describe_native(t);
  } else if (!strcmp(name, "cpu:x86-64-v3")) {
    t->march = "x86-64-v3";
    t->vector_bytes = 32;
    t->vector_registers = 16;
  } else if (!strcmp(name, "cpu:x86-64-v4")) {
    t->march = "x86-64-v4";
    t->vector_bytes = 64;
    t->vector_registers = 32;
    t->l2_bytes = 1024 * KIB;
  } else if (!strcmp(name, "cpu:aarch64")) {
    describe_aarch64(a, t);
  } else if (!cuda_list(name) || !describe_cuda(a, t, cuda_list(name))) {
    return NULL;
  }
  return t;
}

// "sm_90a" for "sm_90", though "sm_80" is as near by letters.
static const char *nearest(const char *wrong, const char *const *known, size_t num) {
  size_t len = strlen(wrong);
  for (size_t i = 0; len >= 4 && i < num; i++)
    if (!strncmp(known[i], wrong, len))
      return known[i];
  return diag_nearest(wrong, known, num);
}

static const char *why_not(ir_arena *a, const char *wrong, const char *const *known, size_t num) {
  const char *near = nearest(wrong, known, num);
  ir_buf b = ir_buf_new(a);
  if (near)
    ir_buf_printf(&b, "did you mean '%s'? ", near);
  ir_buf_puts(&b, "it can be ");
  for (size_t i = 0; i < num; i++)
    ir_buf_printf(&b, "%s%s", i ? ", " : "", known[i]);
  return ir_buf_str(&b);
}

const char *cg_target_why_not(ir_arena *a, const char *name) {
  const char *wrong = "";
  if (!cuda_list(name))
    return why_not(a, name, names, NUM_NAMES);
  cg_cuda_find(a, cuda_list(name), &wrong);
  size_t num = 0;
  while (cg_cuda_names[num])
    num++;
  return ir_format(a, "architecture '%s': %s", wrong, why_not(a, wrong, cg_cuda_names, num));
}
