// test_cuda_matmul_compile.c: products of usual shapes and all layouts, compiled by NVRTC for sm_80
// and sm_90a: nothing spills, no thread has local memory, ptxas has nothing to say, and what the
// plan counted on (shared memory, registers to within a half) is so. `-v` prints a table: what a
// kernel takes, how many blocks of it an SM holds, and which part of the chip's peak the cost model
// expects. Skipped where there is no NVRTC.
#include "codegen/cuda_matmul.h"
#include "codegen/cuda_resources.h"
#include "codegen/program.h"
#include "tests/unit/support_cuda.h"
#include "tests/unit/support_passes.h"

#include <string.h>

enum { SKIPPED = 77, MAX_SHAPES = 100 };

typedef struct shape {
  const char *what;
  const char *layout; // "NT": b is transposed
  int64_t batch, m, n, k;
} shape;

static const shape shapes[] = {
    {"square", "NN", 1, 512, 512, 512},
    {"square", "NN", 1, 1024, 1024, 1024},
    {"square", "NN", 1, 4096, 4096, 4096},
    {"square", "NT", 1, 4096, 4096, 4096},
    {"square", "TN", 1, 4096, 4096, 4096},
    {"square", "TT", 1, 4096, 4096, 4096},
    {"gpt2 qkv", "NN", 1, 4096, 2304, 768},
    {"gpt2 projection", "NN", 1, 4096, 768, 768},
    {"gpt2 mlp down", "NN", 1, 4096, 768, 3072},
    {"gpt2 logits", "NT", 1, 4096, 50257, 768},
    {"gpt2 mlp gradient of x", "NT", 1, 4096, 768, 3072},
    {"gpt2 mlp gradient of w", "TN", 1, 768, 3072, 4096},
    {"gpt2 scores", "NT", 48, 1024, 1024, 64},
    {"gpt2 weighted values", "NN", 48, 1024, 64, 1024},
    {"char gpt mlp", "NN", 1, 768, 512, 128},
    {"char gpt logits", "NT", 1, 768, 65, 128},
    {"mnist hidden", "NN", 1, 64, 128, 784},
    {"mnist logits", "NN", 1, 64, 10, 128},
    {"mnist gradient of w", "TN", 1, 784, 128, 64},
    {"one row", "NN", 1, 1, 768, 3072},
};
enum { NUM_SHAPES = sizeof shapes / sizeof *shapes, NUM_KINDS = 5 };
static const char *const kinds[NUM_KINDS] = {"f32", "tf32", "f64", "bf16", "f16"};

typedef struct kernel {
  cmm_problem p;
  cmm_plan plan;
  const shape *s;
  const char *kind;
} kernel;

static void emit_args(const cmm_problem *p, ir_buf *out) {
  for (int i = 2; i < 5; i++)
    ir_buf_printf(out, "  %s *const p%d = (%s *)args[%d];\n", p->p.ctype, i, p->p.ctype, i);
}

// Bias, tanh and a residual.
static void emit_finish(const cmm_problem *p, ir_buf *out, int indent) {
  const char *type = p->p.elem_bytes == 8 ? "f64" : "f32";
  const char *part = p->p.n % 4 ? "_part" : "", *lanes = "";
  if (p->p.n % 4)
    lanes = ir_format(p->p.arena, ", (%lld - column < VL ? (int)(%lld - column) : VL)",
                      (long long)p->p.n, (long long)p->p.n);
  ir_buf_printf(out,
                "%*sconst int64_t at = ((int64_t)batch * %lld + line) * %lld + column;\n"
                "%*sconst auto bias = k_load_%s%s(p2 + column%s), x = k_load_%s%s(p3 + at%s);\n"
                "%*sk_store_%s%s(p4 + at, k_tanh(product + bias) + x%s);\n",
                indent, "", (long long)p->p.m, (long long)p->p.n, indent, "", type, part, lanes,
                type, part, lanes, indent, "", type, part, lanes);
}

static mm_math math_of(const char *kind) {
  return !strcmp(kind, "tf32")   ? MM_TF32
         : !strcmp(kind, "bf16") ? MM_BF16
         : !strcmp(kind, "f16")  ? MM_F16
                                 : MM_F32;
}

static mm_operand operand(int arg, const shape *s, const char *kind, int64_t x, bool along_x) {
  bool half = cmm_is_half(math_of(kind)), wide = !strcmp(kind, "f64");
  return (mm_operand){.arg = arg,
                      .ctype = half   ? "uint16_t"
                               : wide ? "double"
                                      : "float",
                      .elem_bytes = half   ? 2
                                    : wide ? 8
                                           : 4,
                      .batch = {s->batch > 1, {s->batch}, {x * s->k}},
                      .x = {1, {x}, {along_x ? 1 : s->k}},
                      .k = {1, {s->k}, {along_x ? x : 1}}};
}

static kernel make(const shape *s, const char *kind, const cg_target *target, ir_arena *arena) {
  bool wide = strcmp(kind, "f64") == 0;
  kernel k = {.s = s, .kind = kind};
  k.p = (cmm_problem){.p = {.target = target,
                            .arena = arena,
                            .ctype = wide ? "double" : "float",
                            .elem_bytes = wide ? 8 : 4,
                            .batch = s->batch,
                            .m = s->m,
                            .n = s->n,
                            .k = s->k,
                            .a = operand(0, s, kind, s->m, s->layout[0] == 'T'),
                            .b = operand(1, s, kind, s->n, s->layout[1] == 'N'),
                            .workspace_arg = 5},
                      .math = math_of(kind),
                      .width = 5,
                      .emit_args = emit_args,
                      .emit_finish = emit_finish};
  cmm_make_plan(&k.p, &k.plan);
  return k;
}

// --- what came out --------------------------------------------------------------------------
static int blocks_of_sm(const kernel *k, const cg_resources *r) {
  return cg_resident_blocks(k->p.p.target->cuda, k->plan.threads, r->registers,
                            r->shared + cmm_given_shared(&k->p, &k->plan));
}

// Of what the SMs can multiply in f32 (f64: half; tf32: four times; 16 bits: eight times) if they
// all do.
static double part_of_peak(const kernel *k) {
  const shape *s = k->s;
  double rate = 128.0 * k->p.p.target->cuda->sms;
  rate *= k->p.p.elem_bytes == 8 ? 0.5 : k->p.math == MM_TF32 ? 4 : cmm_is_half(k->p.math) ? 8 : 1;
  return (double)(s->batch * s->m * s->n) * (double)s->k / rate / k->plan.cycles;
}

static void show(const kernel *k, const cg_resources *r, const char *arch) {
  const cmm_plan *g = &k->plan;
  printf("%-24s %s %-4s %-7s tile %3dx%3dx%2d, thread %dx%d, %3d threads, %d stages, %2lld pieces: "
         "%3d registers (planned %d), %5lld bytes shared, %2d blocks an SM, %2.0f%% of peak\n",
         k->s->what, k->s->layout, k->kind, arch, g->bm, g->bn, g->bk, g->tm, g->tv * CMM_VL,
         g->threads, g->stages, (long long)g->pieces, r->registers, g->registers,
         (long long)r->shared, blocks_of_sm(k, r), 100 * part_of_peak(k));
}

static void check(const kernel *k, const cg_resources *r, const char *arch) {
  const char *name =
      ir_format(k->p.p.arena, "%s, %s %s for %s", k->s->what, k->s->layout, k->kind, arch);
  int64_t own = cmm_given_shared(&k->p, &k->plan) ? 0 : k->plan.shared;
  if (r->shared != own)
    test_fail("%s: %lld bytes of shared memory, planned %lld", name, (long long)r->shared,
              (long long)own);
  int blocks = blocks_of_sm(k, r);
  if (blocks < k->plan.resident)
    test_fail("%s: %d registers (planned %d) leave room for %d blocks on an SM, not %d", name,
              r->registers, k->plan.registers, blocks, k->plan.resident);
}

static void compile(ir_arena *a, const cg_nvrtc *nvrtc, const kernel *kernels, int num,
                    const char *text, const char *arch, bool in_order, bool verbose) {
  cg_resource_list list = support_cubin(a, nvrtc, text, arch, in_order, NULL);
  for (int i = 0; i < num; i++) {
    if (cmm_in_order(&kernels[i].p, &kernels[i].plan) != in_order)
      continue;
    const cg_resources *r =
        support_find_kernel(&list, ir_format(a, "mm%d_%d", i, cmm_product_phase(&kernels[i].plan)));
    if (!r)
      continue;
    check(&kernels[i], r, arch);
    if (verbose)
      show(&kernels[i], r, arch);
  }
}

// Those that the pair of architectures shares no instruction for: four warps together.
static void check_hopper(ir_arena *a, const cg_nvrtc *nvrtc, bool verbose) {
  const cg_target *target = cg_target_find(a, "cuda:sm_90a");
  static kernel kernels[MAX_SHAPES];
  int num = 0, seen = 0;
  ir_buf text = ir_buf_new(a);
  ir_buf_puts(&text, cg_cuda_prelude(a));
  for (int i = 0; i < NUM_SHAPES; i++) {
    kernel k = make(&shapes[i], "bf16", target, a);
    if (!k.plan.wgmma || seen++ % 2) // of them half
      continue;
    kernels[num] = k;
    cmm_emit(&k.p, &k.plan, ir_format(a, "mm%d", num), &text);
    num++;
  }
  if (num < 3)
    test_fail("%d products by wgmma", num);
  compile(a, nvrtc, kernels, num, ir_buf_str(&text), "sm_90a", false, verbose);
}

int main(int argc, char **argv) {
  ir_arena *a = ir_arena_new();
  bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
  const cg_nvrtc *nvrtc = support_nvrtc(a);
  if (!nvrtc)
    return SKIPPED;
  const cg_target *target = cg_target_find(a, "cuda:sm_80,sm_90a");
  static kernel kernels[MAX_SHAPES];
  int num = 0;
  ir_buf text[2]; // of kernels in order, and others
  for (int in_order = 0; in_order < 2; in_order++) {
    text[in_order] = ir_buf_new(a);
    ir_buf_puts(&text[in_order], cg_cuda_prelude(a));
  }
  for (int kind = 0; kind < NUM_KINDS; kind++)
    for (int i = 0; i < NUM_SHAPES; i++) {
      static const int each[NUM_KINDS] = {1, 4, 8, 1, 5}; // of the others some
      if (i % each[kind] != each[kind] / 2)
        continue;
      kernels[num] = make(&shapes[i], kinds[kind], target, a);
      const kernel *k = &kernels[num];
      cmm_emit(&k->p, &k->plan, ir_format(a, "mm%d", num++), &text[cmm_in_order(&k->p, &k->plan)]);
    }
  for (int in_order = 0; in_order < 2; in_order++) {
    compile(a, nvrtc, kernels, num, ir_buf_str(&text[in_order]), "sm_80", in_order, verbose);
    compile(a, nvrtc, kernels, num, ir_buf_str(&text[in_order]), "sm_90a", in_order, verbose);
  }
  check_hopper(a, nvrtc, verbose);
  ir_arena_free(a);
  return test_report("cuda_matmul_compile");
}
