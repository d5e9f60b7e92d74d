// cuda_transfer.c: SEND and FETCH kernels. Nothing is generated for them: copy engines do the work,
// beside the kernels, and generated functions say where a copy begins and where it is waited for
// (cuda_launches.c, cuda_calls.c).
#include "codegen/codegen.h"

void cuda_transfer_schedule(cg_kernel *k) {
  k->num_phases = 0;
  k->tasks[0] = 0;
}

void cuda_transfer_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  (void)name;
  (void)out;
  BUG("kernel '%s' is a copy, which has no function", k->k->name);
}
