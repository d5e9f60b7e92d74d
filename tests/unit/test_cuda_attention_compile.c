// test_cuda_attention_compile.c: attention of usual sizes and its gradients, in f32, bf16 and tf32,
// compiled by NVRTC for sm_80 and sm_90a: nothing spills, no thread has local memory, ptxas has
// nothing to say, and as many blocks fit on an SM as was counted on. `-v` prints a table. Skipped
// where there is no NVRTC.
#include "codegen/cuda_attention.h"
#include "codegen/cuda_resources.h"
#include "codegen/program.h"
#include "passes/cost.h"
#include "tests/unit/support_attention_cases.h"
#include "tests/unit/support_cuda.h"

#include <string.h>

enum { SKIPPED = 77, MAX_KERNELS = 80 };

static const attention_case cases[] = {
    {"char gpt", 12, 4, 64, 64, 32, 32, .mask = CAUSAL, .merged = true},
    {"gpt2", 4, 12, 1024, 1024, 64, 64, .mask = CAUSAL, .merged = true},
    {"width 128", 4, 8, 1024, 1024, 128, 128, .mask = CAUSAL},
    {"width 96", 4, 8, 1024, 1024, 96, 96, .mask = CAUSAL},
    {"width 40, tails", 2, 8, 500, 333, 40, 40, .mask = WINDOW},
    {"everything", 2, 8, 501, 333, 128, 120, .mask = CAUSAL, .bias = true, .dropout = true},
    {"no mask, no maximum", 2, 8, 512, 512, 64, 64, .plain = true},
};

typedef struct kernel {
  const char *what;
  const ir_kernel *k;
  const cg_kernel *g;
} kernel;

typedef struct kernels {
  ir_arena *a;
  const cg_target *target;
  kernel at[MAX_KERNELS];
  int num;
  ir_buf text[2]; // of kernels in order, and others
} kernels;

static void add_kernel(kernels *all, const char *what, const ir_func *f, ir_kernel *k) {
  cg_kernel *g = IR_NEW(all->a, cg_kernel);
  *g = (cg_kernel){.k = k, .func = f, .target = all->target, .arena = all->a};
  dom_io io = dom_kernel_io(all->a, k);
  for (size_t i = 0; i < io.in.num; i++)
    IR_PUSH(all->a, g->in, io.in.at[i]);
  for (size_t i = 0; i < io.out.num; i++)
    IR_PUSH(all->a, g->out, io.out.at[i]);
  const cg_generator *family = cg_generator_for(all->target, k->family);
  family->schedule(g);
  family->emit(g, ir_format(all->a, "k%d", all->num), &all->text[g->in_order]);
  all->at[all->num++] = (kernel){what, k, g};
}

static void add_case(kernels *all, const attention_case *c, const char *precision) {
  ir_module *m = test_module(all->a, NULL, attention_text(all->a, c));
  pass_set_precision(m, precision);
  pass_options o = {.families = cg_families(all->target)};
  if (!pass_run_pipeline(m, diag_new(all->a), &o))
    test_fail("%s: the pipeline fails", c->what);
  const ir_func *f = m->funcs.at[0];
  for (size_t i = 0; i < f->kernels.num; i++)
    if (f->kernels.at[i]->family == IR_FAMILY_ATTENTION)
      add_kernel(all, c->what, f, f->kernels.at[i]);
}

static void check(const kernel *k, const cg_resources *r, const char *arch, const cg_cuda *chip,
                  bool verbose) {
  const catt *t = k->g->schedule;
  int blocks = cg_resident_blocks(chip, t->threads, r->registers, r->shared);
  if (blocks < t->resident)
    test_fail("%s, %s, %s: %d registers leave room for %d blocks, not %d", k->what, k->k->name,
              arch, r->registers, blocks, t->resident);
  if (verbose)
    printf("%-20s %-4s %-4s %-7s tile %3dx%2d, %3d threads, thread %dx%2d: %3d registers (planned "
           "%3d), %5lld bytes "
           "shared, %d blocks an SM (planned %d)\n",
           k->what, k->k->name, t->mma ? t->mma : "f32", arch, t->bx, t->by, t->threads, t->rx,
           t->ry * CATT_VL, r->registers, t->registers, (long long)r->shared, blocks, t->resident);
}

static void compile(kernels *all, const cg_nvrtc *nvrtc, const char *arch, bool in_order,
                    bool verbose) {
  const char *text = ir_buf_str(&all->text[in_order]);
  cg_resource_list list = support_cubin(all->a, nvrtc, text, arch, in_order, NULL);
  for (int i = 0; i < all->num; i++) {
    if (all->at[i].g->in_order != in_order)
      continue;
    const cg_resources *r = support_find_kernel(&list, ir_format(all->a, "k%d_0", i));
    if (r)
      check(&all->at[i], r, arch, all->target->cuda, verbose);
  }
}

int main(int argc, char **argv) {
  static kernels all;
  bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
  all.a = ir_arena_new();
  const cg_nvrtc *nvrtc = support_nvrtc(all.a);
  if (!nvrtc)
    return SKIPPED;
  all.target = cg_target_find(all.a, "cuda:sm_80,sm_90a");
  for (int in_order = 0; in_order < 2; in_order++) {
    all.text[in_order] = ir_buf_new(all.a);
    ir_buf_puts(&all.text[in_order], cg_cuda_prelude(all.a));
  }
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    add_case(&all, &cases[i], "f32");
    add_case(&all, &cases[i], "bf16");
    add_case(&all, &cases[i], "tf32");
  }
  for (int in_order = 0; in_order < 2; in_order++) {
    compile(&all, nvrtc, "sm_80", in_order, verbose);
    compile(&all, nvrtc, "sm_90a", in_order, verbose);
  }
  ir_arena_free(all.a);
  return test_report("cuda_attention_compile");
}
