// cuda_element.h: kernels for GPUs that treat single elements: COPY and SCATTER.
#ifndef CODEGEN_CUDA_ELEMENT_H
#define CODEGEN_CUDA_ELEMENT_H

#include "codegen/cpu_element.h"

typedef struct cuda_text {
  const cg_kernel *k;
  ir_buf *out;
  int indent;
} cuda_text;

void cuda_line(cuda_text *t, const char *fmt, ...) IR_PRINTF(2, 3);
// "p0_x + i0 * 6 + i1": where the element lies; its base is an argument.
const char *cuda_place_text(const cg_kernel *k, const cpu_element *x, const char *const *index);
// Like cpu_element_text: "k_take(p0_x + i0 * 6 + i1)".
const char *cuda_element_text(const cg_kernel *k, const cpu_element *x, const char *const *index);
// "const int64_t i0 = unit / 12, i1 = unit / 4 % 3, ..." one line each, for dimensions [first,
// rank) of more than one element; index[i] is then "i0", or NULL.
void cuda_decode(cuda_text *t, const char *unit, const ir_type *type, int first,
                 const char **index);

#endif
