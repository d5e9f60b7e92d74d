// cuda_copy.c: COPY kernels for GPUs: pad and concat, a thread per element of the result.
//
//   pad x[4,6] -> [6,9] {lo=[1,2]}               concat a[4,6], b[4,3] -> [4,9]
//     float x = 0.0f;                              float x;
//     if (i0 >= 1 && i0 < 5 && i1 >= 2 && ...)     if (i1 < 6) x = k_take(p0_a + i0 * 6 + i1);
//       x = k_take(p0_x + i0 * 6 + i1 - 8);         else x = k_take(p1_b + i0 * 3 + i1 - 6);
//     k_put(p1_y + unit, x);                       k_put(p2_y + unit, x);
// Threads that are neighbours read and write neighbours; memory is the limit, not the divisions.
#include "codegen/cuda_element.h"

enum { THREADS = 256, REGISTERS = 40 };

void cuda_copy_schedule(cg_kernel *k) {
  const ir_node *n = k->k->anchor;
  BUG_IF(n->op != IR_PAD && n->op != IR_CONCAT, "'%s' is no copy", n->name);
  int64_t elements = ir_elements(&n->type);
  k->num_phases = 1;
  k->tasks[0] = elements > THREADS ? (elements + THREADS - 1) / THREADS : 1;
  k->threads[0] = THREADS;
  k->registers = REGISTERS;
}

// --- pad -------------------------------------------------------------------------------------
static const char *inside_test(const cuda_text *t, const int64_t *lo, const char *const *index) {
  const ir_node *n = t->k->k->anchor;
  ir_buf b = ir_buf_new(t->k->arena);
  for (int i = 0; i < n->type.rank; i++) {
    int64_t end = lo[i] + n->in[0]->type.dims[i];
    const char *at = index[i] ? index[i] : "0";
    if (lo[i] > 0)
      ir_buf_printf(&b, "%s%s >= %lld", b.len ? " && " : "", at, (long long)lo[i]);
    if (end < n->type.dims[i])
      ir_buf_printf(&b, "%s%s < %lld", b.len ? " && " : "", at, (long long)end);
  }
  return b.len ? ir_buf_str(&b) : NULL;
}

static void emit_pad(cuda_text *t, const char *const *index) {
  const ir_node *n = t->k->k->anchor;
  int num;
  const int64_t *lo = ir_attr_ints(n, IR_ATTR_LO, &num);
  cpu_element x = cpu_element_of(n->in[0]);
  for (int i = 0; i < n->type.rank; i++)
    x.offset -= lo[i] * x.stride[i];
  cuda_line(t, "%s x = %s;", ir_dtypes[n->type.dtype].ctype,
            cpu_literal(t->k->arena, n->type.dtype, ir_attr_num(n, IR_ATTR_VALUE)));
  const char *inside = inside_test(t, lo, index);
  if (inside)
    cuda_line(t, "if (%s)", inside);
  cuda_line(t, "%sx = %s;", inside ? "  " : "", cuda_element_text(t->k, &x, index));
}

// --- concat ----------------------------------------------------------------------------------
static void emit_concat(cuda_text *t, const char *const *index) {
  const ir_node *n = t->k->k->anchor;
  int axis = (int)ir_attr_int(n, IR_ATTR_AXIS);
  int64_t at = 0, all = n->type.dims[axis];
  cuda_line(t, "%s x;", ir_dtypes[n->type.dtype].ctype);
  const char *otherwise = "";
  for (int i = 0; i < n->num_in; i++) {
    int64_t size = n->in[i]->type.dims[axis], end = at + size;
    if (size == 0)
      continue;
    cpu_element x = cpu_element_of(n->in[i]);
    x.offset -= at * x.stride[axis];
    if (end < all)
      cuda_line(t, "%sif (%s < %lld)", otherwise, index[axis], (long long)end);
    else if (*otherwise)
      cuda_line(t, "else");
    cuda_line(t, "%sx = %s;", size < all ? "  " : "", cuda_element_text(t->k, &x, index));
    otherwise = "else ";
    at = end;
  }
}

void cuda_copy_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const ir_node *n = k->k->anchor;
  cuda_text t = {.k = k, .out = out, .indent = 2};
  const char *index[IR_MAX_RANK] = {0};
  ir_buf_printf(out, "K_KERNEL(%s_0, %d, %zu) {\n", name, THREADS, k->in.num + k->out.num);
  cg_emit_args(k, out, 2);
  cuda_line(&t, "const int64_t unit = task * %d + threadIdx.x;", THREADS);
  cuda_line(&t, "if (unit >= %lld)", (long long)ir_elements(&n->type));
  cuda_line(&t, "  return;");
  cuda_decode(&t, "unit", &n->type, 0, index);
  if (n->op == IR_PAD)
    emit_pad(&t, index);
  else
    emit_concat(&t, index);
  cuda_line(&t, "k_put(%s + unit, x);", cg_arg_name(k, cg_arg_index(k, n)));
  ir_buf_puts(out, "}\n");
}
