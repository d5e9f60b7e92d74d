// listing.c: see listing.h.
#include "codegen/listing.h"

#include "passes/cost.h"

void cg_list_kernels(const cg_program *p, ir_buf *out) {
  for (size_t i = 0; i < p->module->funcs.num; i++) {
    const ir_func *f = p->module->funcs.at[i];
    ir_buf_printf(out, "%s: %zu kernels\n", f->name, f->kernels.num);
    ir_buf_printf(out, "  %-24s %-24s %12s %12s %6s  %s\n", "kernel", "function", "flops", "bytes",
                  "tasks", "ops");
    for (size_t j = 0; j < f->kernels.num; j++) {
      const ir_kernel *k = f->kernels.at[j];
      cost c = cost_kernel(p->arena, k);
      ir_buf_printf(out, "  %-24s %-24s %12lld %12lld %6lld  %s\n", k->name,
                    p->shared[i][j] ? p->shared[i][j]->name : "-", (long long)c.flops,
                    (long long)(c.bytes_read + c.bytes_written),
                    (long long)p->kernels[i][j]->tasks[0], cg_describe(p->arena, k));
    }
  }
  ir_buf_printf(out, "%zu distinct functions\n", p->distinct.num);
}
