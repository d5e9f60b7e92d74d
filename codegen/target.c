// target.c: the machines that CPU code is made for.
#include "codegen/program.h"

#include <string.h>
#include <unistd.h>

const char *const cg_target_names[] = {"cpu",           "cpu:native",  "cpu:x86-64-v3",
                                       "cpu:x86-64-v4", "cpu:aarch64", NULL};

enum { KIB = 1024 };

static int64_t cache_bytes(int name, int64_t fallback) {
  long n = sysconf(name);
  return n > 0 ? n : fallback;
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
#else
  t->vector_bytes = 16;
  t->vector_registers = 32;
  t->fma = true;
#endif
  t->l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 * KIB);
  t->l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1024 * KIB);
}

const cg_target *cg_target_find(ir_arena *a, const char *name) {
  cg_target *t = IR_NEW(a, cg_target);
  *t = (cg_target){.name = name, .fma = true, .l1_bytes = 32 * KIB, .l2_bytes = 512 * KIB};
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
    t->triple = "aarch64-linux-gnu";
    t->vector_bytes = 16;
    t->vector_registers = 32;
  } else {
    return NULL;
  }
  return t;
}
