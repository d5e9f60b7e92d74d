// cuda_element.c: see cuda_element.h.
#include "codegen/cuda_element.h"

void cuda_line(cuda_text *t, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  cg_vline(t->out, t->indent, fmt, ap);
  va_end(ap);
}

const char *cuda_place_text(const cg_kernel *k, const cpu_element *x, const char *const *index) {
  int arg = cg_arg_index(k, x->base);
  BUG_IF(arg < 0, "'%s' is no argument of kernel '%s'", x->base->name, k->k->name);
  return ir_format(k->arena, "%s + %s", cg_arg_name(k, arg),
                   cpu_affine(k->arena, x->seen->type.rank, index, x->stride, x->offset));
}

const char *cuda_element_text(const cg_kernel *k, const cpu_element *x, const char *const *index) {
  if (ir_is_generated(x->base))
    return cpu_element_text(k, x, index);
  return ir_format(k->arena, "k_take(%s)", cuda_place_text(k, x, index));
}

void cuda_decode(cuda_text *t, const char *unit, const ir_type *type, int first,
                 const char **index) {
  int64_t size[IR_MAX_RANK];
  const char *name[IR_MAX_RANK];
  int num = 0;
  for (int i = first; i < type->rank; i++) {
    index[i] = type->dims[i] > 1 ? ir_format(t->k->arena, "i%d", i) : NULL;
    if (index[i]) {
      size[num] = type->dims[i];
      name[num++] = index[i];
    }
  }
  cg_emit_indices(t->out, t->indent, unit, num, size, name);
}
