// target_cuda.c: what is known of NVIDIA's architectures, and what holds for several at once.
//
// Limits are those of the CUDA C++ programming guide's table "technical specifications per compute
// capability"; SMs are those of a chip that many people have. They steer how work is cut, so they
// come from this table and never from the machine that mltc runs on: equal input, equal output.
// Rates are those of the chip's data sheet, at its boost clock; reports use them, and what decides whether
// values wait in memory of the host. To the host that is PCIe, 4.0 or 5.0, with 16 lanes.
#include "codegen/program.h"

#include <string.h>

enum { KIB = 1024 };
static const char HAS_WGMMA[] = "sm_90a";

const char *const cg_cuda_names[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", NULL};

static const cg_chip chips[CG_MAX_ARCHS] = {
    {"A100 SXM", 80, 2048, 32, 164, 99, 108, 40, 19.5, 9.7, 156, 312, 2.039, 24},
    {"RTX A6000", 86, 1536, 16, 100, 99, 84, 6, 38.7, 0.604, 77.4, 154.8, 0.768, 24},
    {"RTX 4090", 89, 1536, 24, 100, 99, 128, 72, 82.6, 1.29, 82.6, 165.2, 1.008, 24},
    {"H100 SXM", 90, 2048, 32, 228, 227, 132, 50, 66.9, 33.5, 494.7, 989.4, 3.35, 50},
    {"B200", 100, 2048, 32, 228, 227, 148, 126, 74.5, 37.2, 1125, 2250, 8.0, 50},
};

static int find(const char *word, size_t len) {
  for (int i = 0; i < CG_MAX_ARCHS; i++)
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

// What all have in common stands in `least`.
static void take(cg_chip *least, const cg_chip *x) {
  least->compute = least_of(least->compute, x->compute);
  least->threads = least_of(least->threads, x->threads);
  least->blocks = least_of(least->blocks, x->blocks);
  least->shared_sm = least_of(least->shared_sm, x->shared_sm);
  least->shared_block = least_of(least->shared_block, x->shared_block);
  least->sms = least_of(least->sms, x->sms);
  least->l2 = least_of(least->l2, x->l2);
}

// What a program for several has for itself alone on this one.
static const cg_cuda *own_of(ir_arena *a, const char *const *names, int num) {
  const char *wrong;
  for (int i = 0; num > 1 && i < num; i++)
    if (!strcmp(names[i], HAS_WGMMA))
      return cg_cuda_find(a, HAS_WGMMA, &wrong);
  return NULL;
}

const cg_cuda *cg_cuda_find(ir_arena *a, const char *list, const char **wrong) {
  bool has[CG_MAX_ARCHS] = {0};
  if (!read_list(a, list, has, wrong))
    return NULL;
  const char **names = IR_NEW_ARRAY(a, const char *, CG_MAX_ARCHS);
  int num = 0;
  cg_chip least = {0};
  for (int i = 0; i < CG_MAX_ARCHS; i++) {
    if (!has[i])
      continue;
    if (num == 0)
      least = chips[i];
    take(&least, &chips[i]);
    names[num++] = cg_cuda_names[i];
  }
  cg_cuda *c = IR_NEW(a, cg_cuda);
  *c = (cg_cuda){.archs = names,
                 .num_archs = num,
                 .compute = least.compute,
                 .warp = 32,
                 .threads_per_sm = least.threads,
                 .blocks_per_sm = least.blocks,
                 .registers_per_sm = 64 * KIB,
                 .registers_per_thread = 255,
                 .shared_per_block = 48 * KIB,
                 .shared_asked_for = least.shared_block * KIB,
                 .shared_per_sm = least.shared_sm * KIB,
                 .sms = least.sms,
                 .l2_bytes = (int64_t)least.l2 * KIB * KIB,
                 .wgmma = num == 1 && !strcmp(names[0], HAS_WGMMA),
                 .own = own_of(a, names, num)};
  return c;
}

// A warp takes registers in lots of 256, a block its shared memory and 1 KiB (CUDA programming
// guide, "compute capabilities").
int cg_resident_blocks(const cg_cuda *chip, int threads, int registers, int64_t shared) {
  enum { LOT = 256, SHARED_OF_EACH_BLOCK = KIB };
  int warps = (threads + chip->warp - 1) / chip->warp;
  int lots = (registers * chip->warp + LOT - 1) / LOT;
  int blocks = least_of(chip->blocks_per_sm, chip->threads_per_sm / (warps * chip->warp));
  if (lots)
    blocks = least_of(blocks, chip->registers_per_sm / (lots * LOT) / warps);
  return least_of(blocks, (int)(chip->shared_per_sm / (shared + SHARED_OF_EACH_BLOCK)));
}

bool cg_hides_latencies(const cg_cuda *chip, int64_t warps) {
  enum { WARPS = 8 }; // of an SM: two of each scheduler
  return warps >= WARPS * (int64_t)chip->sms;
}

const cg_chip *cg_cuda_chip(const char *arch) {
  int i = find(arch, strlen(arch));
  BUG_IF(i < 0, "no architecture '%s'", arch);
  return &chips[i];
}

const cg_target *cg_cuda_with(ir_arena *a, const cg_target *t, cg_cuda chip) {
  cg_target *x = IR_NEW(a, cg_target);
  cg_cuda *own = IR_NEW(a, cg_cuda);
  *own = chip;
  *x = *t;
  x->cuda = own;
  return x;
}

const cg_target *cg_cuda_by_clang(ir_arena *a, const cg_target *t) {
  cg_cuda chip = *t->cuda;
  chip.wgmma = false;
  chip.own = NULL;
  return cg_cuda_with(a, t, chip);
}

static double products_of(const cg_chip *x, const char *precision) {
  if (!strcmp(precision, "f32"))
    return x->f32;
  return strcmp(precision, "tf32") ? x->half : x->tf32;
}

// Settings of a module are whole numbers here: no digits that are not in the table.
static double whole(double x) {
  return (double)(int64_t)(x + 0.5);
}

static double more_of(double a, double b) {
  return a > b ? a : b;
}

cg_rates cg_rates_of(const cg_target *t, const char *precision) {
  cg_rates r = {0};
  for (int i = 0; t->cuda && i < t->cuda->num_archs; i++) {
    const cg_chip *x = cg_cuda_chip(t->cuda->archs[i]);
    r.products = more_of(r.products, whole(1e12 * products_of(x, precision)));
    r.flops = more_of(r.flops, whole(1e12 * x->f32));
    r.bandwidth = more_of(r.bandwidth, whole(1e12 * x->bandwidth));
    if (i == 0 || 1e9 * x->host < r.host_bandwidth)
      r.host_bandwidth = 1e9 * x->host;
  }
  return r;
}
