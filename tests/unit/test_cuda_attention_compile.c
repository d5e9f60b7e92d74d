// test_cuda_attention_compile.c: attention of usual sizes and its gradients, compiled by NVRTC for
// sm_80 and sm_90a: nothing spills, no thread has local memory, ptxas has nothing to say, and as
// many blocks fit on an SM as was counted on. `-v` prints a table. Skipped where there is no NVRTC.
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
  ir_buf text;
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
  family->emit(g, ir_format(all->a, "k%d", all->num), &all->text);
  all->at[all->num++] = (kernel){what, k, g};
}

static void add_case(kernels *all, const attention_case *c) {
  ir_module *m = test_module(all->a, NULL, attention_text(all->a, c));
  pass_options o = {.families = cg_families(all->target)};
  if (!pass_run_pipeline(m, diag_new(all->a), &o))
    test_fail("%s: the pipeline fails", c->what);
  const ir_func *f = m->funcs.at[0];
  for (size_t i = 0; i < f->kernels.num; i++)
    if (f->kernels.at[i]->family == IR_FAMILY_ATTENTION)
      add_kernel(all, c->what, f, f->kernels.at[i]);
}

static int blocks_of_sm(const cg_resources *r, const cg_cuda *chip) {
  int registers = (r->registers + 7) / 8 * 8; // given out by eights
  int by_registers = chip->registers_per_sm / registers / CATT_THREADS;
  int by_shared = (int)(chip->shared_per_sm / (r->shared + 1024));
  return by_registers < by_shared ? by_registers : by_shared;
}

static void check(const kernel *k, const cg_resources *r, const char *arch, const cg_cuda *chip,
                  bool verbose) {
  const catt *t = k->g->schedule;
  if (r->frame || r->stack)
    test_fail("%s, %s, %s: %lld bytes of local memory", k->what, k->k->name, arch,
              (long long)(r->frame + r->stack));
  if (blocks_of_sm(r, chip) < t->resident)
    test_fail("%s, %s, %s: %d registers leave room for %d blocks, not %d", k->what, k->k->name,
              arch, r->registers, blocks_of_sm(r, chip), t->resident);
  if (verbose)
    printf("%-20s %-4s %-7s tile %2dx%2d, thread %dx%d: %3d registers (planned %3d), %5lld bytes "
           "shared, %d blocks an SM (planned %d)\n",
           k->what, k->k->name, arch, t->bx, t->by, t->rx, t->ry * CATT_VL, r->registers,
           t->registers, (long long)r->shared, blocks_of_sm(r, chip), t->resident);
}

static const cg_resources *find(const cg_resource_list *list, const char *name) {
  for (size_t i = 0; i < list->num; i++)
    if (strcmp(list->at[i].kernel, name) == 0)
      return &list->at[i];
  return NULL;
}

static void compile(kernels *all, const cg_nvrtc *nvrtc, const char *arch, bool verbose) {
  const char *options[] = {ir_format(all->a, "-arch=%s", arch), "-std=c++17", "-default-device",
                           "--diag-suppress=177", "--ptxas-options=--warn-on-spills"};
  cg_nvrtc_code code;
  const char *why = "";
  cg_resource_list list = {0};
  bool ok = cg_nvrtc_compile(nvrtc, all->a, "k.cu", ir_buf_str(&all->text), options, 5, &code);
  if (!ok || code.log[0])
    test_fail("%s: %s", arch, code.log);
  if (!ok)
    return;
  if (!cg_cubin_resources(all->a, code.cubin, code.cubin_len, &list, &why))
    test_fail("%s: %s", arch, why);
  for (int i = 0; i < all->num; i++) {
    const cg_resources *r = find(&list, ir_format(all->a, "k%d_0", i));
    if (r)
      check(&all->at[i], r, arch, all->target->cuda, verbose);
    else
      test_fail("%s: k%d_0 is not there", arch, i);
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
  all.text = ir_buf_new(all.a);
  ir_buf_puts(&all.text, cg_cuda_prelude(all.a));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    add_case(&all, &cases[i]);
  compile(&all, nvrtc, "sm_80", verbose);
  compile(&all, nvrtc, "sm_90a", verbose);
  ir_arena_free(all.a);
  return test_report("cuda_attention_compile");
}
