// cg_prelude.c: the text before the kernels of a generated CPU file: the vector length of the
// target, then cpu_prelude.h and cpu_math_prelude.h.
#include "codegen/codegen.h"
#include "text_cpu_math_prelude_h.h"
#include "text_cpu_prelude_h.h"

const char *cg_cpu_prelude(ir_arena *a, const cg_target *t) {
  return ir_format(a, "#define MLTC_VL %d // floats in a vector of %s\n%s\n%s\n#undef K\n",
                   t->vector_bytes / 4, t->name, text_cpu_prelude_h, text_cpu_math_prelude_h);
}
