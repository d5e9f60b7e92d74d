// cg_prelude.c: the text before the kernels of a generated file. CPU: the vector length of the
// target, then cpu_prelude.h and cpu_math_prelude.h, cpu_double_prelude.h where kernels compute in f64, and
// cpu_amx_prelude.h where there is a matrix unit. GPU: the cuda_*_prelude.h in the order vectors, memory, float
// functions, several threads, warpgroups, slices of a block, sorting.
#include "codegen/codegen.h"
#include "text_cpu_amx_prelude_h.h"
#include "text_cpu_double_prelude_h.h"
#include "text_cpu_math_prelude_h.h"
#include "text_cpu_prelude_h.h"
#include "text_cuda_device_prelude_h.h"
#include "text_cuda_math_prelude_h.h"
#include "text_cuda_memory_prelude_h.h"
#include "text_cuda_prelude_h.h"
#include "text_cuda_slice_prelude_h.h"
#include "text_cuda_sort_prelude_h.h"
#include "text_cuda_wgmma_prelude_h.h"

const char *cg_cpu_prelude(ir_arena *a, const cg_target *t, bool doubles) {
  return ir_format(a, "#define MLTC_VL %d // floats in a vector of %s\n%s\n%s\n%s\n#undef K\n%s",
                   t->vector_bytes / 4, t->name, text_cpu_prelude_h, text_cpu_math_prelude_h,
                   doubles ? text_cpu_double_prelude_h : "", t->amx ? text_cpu_amx_prelude_h : "");
}

const char *cg_cuda_prelude(ir_arena *a) {
  return ir_format(a, "%s\n%s\n%s\n%s\n%s\n%s\n%s\n#undef K\n", text_cuda_prelude_h,
                   text_cuda_memory_prelude_h, text_cuda_math_prelude_h, text_cuda_device_prelude_h,
                   text_cuda_wgmma_prelude_h, text_cuda_slice_prelude_h, text_cuda_sort_prelude_h);
}
