// cuda_clang.c: see cuda_clang.h.
#include "codegen/cuda_clang.h"

#include <stdlib.h>
#include <string.h>

#include "text_cuda_clang_math_prelude_h.h"
#include "text_cuda_clang_prelude_h.h"

static const char header_name[] = "cuda_clang_prelude.h";

// As for NVRTC: fused products in sums (by the pragma at the end of the header: the option "fast"
// would override the pragma at its beginning), no fast math. Clang's own optimiser works for the
// instruction counts of a CPU; the driver's compiler does the scheduling.
static const char *const options[] = {
    "-std=c++17",      "-O3", "--cuda-device-only",   "-nocudainc",
    "-nocudalib",      "-S",  "-ffp-contract=on",     "-Wno-unknown-cuda-version",
    "-fno-exceptions", "-w",  "-fno-strict-aliasing",
};
enum { NUM_OPTIONS = sizeof options / sizeof *options };

// From which clang on an architecture is known, and the PTX that it is said in: no newer than
// needed, so that older drivers take it.
static const struct {
  int compute, clang;
  const char *ptx;
} known[] = {
    {80, 11, "+ptx70"}, {86, 13, "+ptx71"},  {89, 16, "+ptx78"},
    {90, 16, "+ptx78"}, {100, 20, "+ptx86"},
};
enum { NUM_KNOWN = sizeof known / sizeof *known };

static int find_known(int compute) {
  for (int i = 0; i < NUM_KNOWN; i++)
    if (known[i].compute == compute)
      return i;
  BUG("compute capability %d", compute);
}

// "Debian clang version 14.0.6 ..." -> 14; 0: no clang.
static int major_of(const char *said) {
  const char *v = strstr(said, "clang version ");
  return v ? atoi(v + strlen("clang version ")) : 0;
}

static void put_header(ir_buf *b) {
  ir_buf_puts(b, text_cuda_clang_prelude_h);
  ir_buf_puts(b, text_cuda_clang_math_prelude_h);
}

const cg_cuda_clang *cg_cuda_clang_open(const cg_tools *x) {
  const char *said = cg_compiler_version(x);
  ir_buf header = ir_buf_new(x->a);
  put_header(&header);
  if (!said || !cg_write(x, header_name, ir_buf_str(&header), header.len))
    return NULL;
  cg_cuda_clang *c = IR_NEW(x->a, cg_cuda_clang);
  *c = (cg_cuda_clang){major_of(said), said};
  int needs = known[find_known(x->t->cuda->compute)].clang;
  if (c->major >= needs)
    return c;
  cg_fail(x,
          ir_format(x->a,
                    "--cuda-compiler=clang: clang %d makes no code for %s, which takes clang %d; "
                    "--target=cuda:sm_80 makes PTX for all newer GPUs, too",
                    c->major, x->t->cuda->archs[0], needs));
  return NULL;
}

cg_command cg_cuda_clang_command(const cg_tools *x, const char *name, const char *arch,
                                 const char *out) {
  const char *compute = arch + strlen("compute_");
  cg_command c = {0};
  cg_command_add(&c, x->cc);
  for (int i = 0; i < NUM_OPTIONS; i++)
    cg_command_add(&c, options[i]);
  cg_command_add(&c, ir_format(x->a, "--cuda-gpu-arch=sm_%s", compute));
  cg_command_add(&c, "-Xclang");
  cg_command_add(&c, "-target-feature");
  cg_command_add(&c, "-Xclang");
  cg_command_add(&c, known[find_known(atoi(compute))].ptx);
  cg_command_add(&c, "-include");
  cg_command_add(&c, ir_format(x->a, "%s/%s", x->dir, header_name));
  cg_command_add(&c, "-x");
  cg_command_add(&c, "cuda");
  cg_command_add(&c, ir_format(x->a, "%s/%s", x->dir, name));
  cg_command_add(&c, "-o");
  cg_command_add(&c, out);
  return c;
}

void cg_cuda_clang_put_key(ir_buf *key) {
  for (int i = 0; i < NUM_OPTIONS; i++)
    ir_buf_printf(key, "%s ", options[i]);
  for (int i = 0; i < NUM_KNOWN; i++)
    ir_buf_printf(key, "%s ", known[i].ptx);
  put_header(key);
}
