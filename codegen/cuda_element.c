// cuda_element.c: see cuda_element.h.
#include "codegen/cuda_element.h"

void cuda_line(cuda_text *t, const char *fmt, ...) {
  ir_buf_printf(t->out, "%*s", t->indent, "");
  va_list ap;
  va_start(ap, fmt);
  ir_buf_vprintf(t->out, fmt, ap);
  va_end(ap);
  ir_buf_puts(t->out, "\n");
}

const char *cuda_element_text(const cg_kernel *k, const cpu_element *x, const char *const *index) {
  if (x->base->op == IR_CONST || x->base->op == IR_IOTA)
    return cpu_element_text(k, x, index);
  int arg = cg_arg_index(k, x->base);
  BUG_IF(arg < 0, "'%s' is no argument of kernel '%s'", x->base->name, k->k->name);
  return ir_format(k->arena, "k_take(%s + %s)", cg_arg_name(k, arg),
                   cpu_affine(k->arena, x->seen->type.rank, index, x->stride, x->offset));
}

void cuda_decode(cuda_text *t, const char *unit, const ir_type *type, int first,
                 const char **index) {
  ir_arena *a = t->k->arena;
  int64_t inner = 1;
  for (int i = first; i < type->rank; i++)
    inner *= type->dims[i];
  bool outermost = true;
  for (int i = first; i < type->rank; i++) {
    int64_t size = type->dims[i];
    index[i] = NULL;
    if (size <= 1)
      continue;
    inner /= size;
    index[i] = ir_format(a, "i%d", i);
    cuda_line(t, "const int64_t i%d = %s%s%s;", i, unit,
              inner > 1 ? ir_format(a, " / %lld", (long long)inner) : "",
              outermost ? "" : ir_format(a, " %% %lld", (long long)size));
    outermost = false;
  }
}
