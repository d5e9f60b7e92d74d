// target_cuda.c: what is known of NVIDIA's architectures, and what holds for several at once.
//
// Limits are those of the CUDA C++ programming guide's table "technical specifications per compute
// capability"; SMs are those of a chip that many people have. They steer how work is cut, so they
// come from this table and never from the machine that mltc runs on: equal input, equal output.
#include "codegen/program.h"

#include <string.h>

enum { KIB = 1024, NUM_ARCHS = 5 };

const char *const cg_cuda_names[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", NULL};

// What all have in common stands in `least`.
typedef struct arch {
  int compute, threads, blocks; // resident on an SM
  int shared_sm, shared_block;  // KiB
  int sms;
} arch;

static const arch archs[NUM_ARCHS] = {
    {80, 2048, 32, 164, 163, 108},  // A100
    {86, 1536, 16, 100, 99, 84},    // A6000
    {89, 1536, 24, 100, 99, 128},   // RTX 4090
    {90, 2048, 32, 228, 227, 132},  // H100
    {100, 2048, 32, 228, 227, 148}, // B200
};

static int find(const char *word, size_t len) {
  for (int i = 0; i < NUM_ARCHS; i++)
    if (strlen(cg_cuda_names[i]) == len && !memcmp(cg_cuda_names[i], word, len))
      return i;
  return -1;
}

// Which are in the list; false with the first word that is unknown.
static bool read_list(ir_arena *a, const char *list, bool *has, const char **wrong) {
  for (const char *p = list;; p++) {
    size_t len = strcspn(p, ",");
    int i = find(p, len);
    if (i < 0) {
      *wrong = ir_strndup(a, p, len);
      return false;
    }
    has[i] = true;
    p += len;
    if (!*p)
      return true;
  }
}

static int least_of(int a, int b) {
  return a < b ? a : b;
}

static void take(arch *least, const arch *x) {
  least->compute = least_of(least->compute, x->compute);
  least->threads = least_of(least->threads, x->threads);
  least->blocks = least_of(least->blocks, x->blocks);
  least->shared_sm = least_of(least->shared_sm, x->shared_sm);
  least->shared_block = least_of(least->shared_block, x->shared_block);
  least->sms = least_of(least->sms, x->sms);
}

const cg_cuda *cg_cuda_find(ir_arena *a, const char *list, const char **wrong) {
  bool has[NUM_ARCHS] = {0};
  if (!read_list(a, list, has, wrong))
    return NULL;
  const char **names = IR_NEW_ARRAY(a, const char *, NUM_ARCHS);
  int num = 0;
  arch least = {0};
  for (int i = 0; i < NUM_ARCHS; i++) {
    if (!has[i])
      continue;
    if (num == 0)
      least = archs[i];
    take(&least, &archs[i]);
    names[num++] = cg_cuda_names[i];
  }
  cg_cuda *c = IR_NEW(a, cg_cuda);
  *c = (cg_cuda){.archs = names,
                 .num_archs = num,
                 .compute = least.compute,
                 .hopper = num == 1 && least.compute == 90,
                 .warp = 32,
                 .threads_per_sm = least.threads,
                 .blocks_per_sm = least.blocks,
                 .registers_per_sm = 64 * KIB,
                 .registers_per_thread = 255,
                 .shared_per_block = 48 * KIB,
                 .shared_most = least.shared_block * KIB,
                 .shared_per_sm = least.shared_sm * KIB,
                 .sms = least.sms};
  return c;
}
