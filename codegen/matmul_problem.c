// cuda_matmul_problem.c: from a kernel's domain to a described product.
//
//   q: f32[2,4,64,32] as view of [2,64,384]       batch (2, 4), m 64, k 32
//   ->  a = {offset, batch {2, 4; 24576, 32}, x {64; 384}, k {32; 1}}
//
// Vectors run along n. Where results lie side by side along m instead (n == 1, or an epilogue that
// transposes), the operands change places: c^T = b^T a^T.
#include "codegen/cuda_matmul.h"

#include <string.h>

static mm_axes axes_between(const domain *d, const dom_access *at, int first, int num) {
  mm_axes axes = {.num = num};
  for (int i = 0; i < num; i++) {
    axes.size[i] = d->axis[first + i].size;
    axes.stride[i] = at->stride[first + i];
  }
  return mm_simplify(&axes);
}

typedef struct source {
  const ir_node *buffer;
  const dom_access *at;
  const int64_t *k_stride;
} source;

static mm_operand operand_of(const cg_kernel *k, const dom_matmul *mm, const source *s, int first,
                             int num) {
  mm_operand o = {.arg = cg_arg_index(k, s->buffer), .offset = s->at->offset};
  BUG_IF(o.arg < 0, "matmul '%s' reads '%s', which is in no memory", k->k->anchor->name,
         s->buffer->name);
  o.batch = axes_between(k->dom, s->at, 0, mm->num_batch_axes);
  o.x = axes_between(k->dom, s->at, first, num);
  mm_axes ks = {.num = mm->num_k_axes};
  memcpy(ks.size, mm->k_size, sizeof ks.size);
  memcpy(ks.stride, s->k_stride, sizeof ks.stride);
  o.k = mm_simplify(&ks);
  return o;
}

// Stores whose neighbours in memory are neighbours along the last of these axes.
static int unit_stores(const domain *d, int first, int num) {
  int count = 0;
  for (size_t i = 0; num > 0 && i < d->stores.num; i++)
    count += d->stores.at[i].access.stride[first + num - 1] == 1;
  return count;
}

mm_problem cmm_describe(const cg_kernel *k, cmm_axes *axes) {
  const dom_matmul *mm = dom_build_matmul(k->arena, k->k, k->dom);
  const ir_dtype_info *type = &ir_dtypes[k->k->anchor->type.dtype];
  int m0 = mm->num_batch_axes, n0 = m0 + mm->num_m_axes;
  bool swap = unit_stores(k->dom, m0, mm->num_m_axes) > unit_stores(k->dom, n0, mm->num_n_axes);
  axes->mm = mm;
  axes->first_row = swap ? n0 : m0;
  axes->num_rows = swap ? mm->num_n_axes : mm->num_m_axes;
  axes->first_col = swap ? m0 : n0;
  axes->num_cols = swap ? mm->num_m_axes : mm->num_n_axes;
  source a = {mm->a, &mm->a_access, mm->a_k}, b = {mm->b, &mm->b_access, mm->b_k};
  band_product bands = band_of_matmul(k->k->anchor);
  return (mm_problem){
      .target = k->target,
      .arena = k->arena,
      .ctype = type->ctype,
      .elem_bytes = type->bytes,
      .batch = mm->batch,
      .m = swap ? mm->n : mm->m,
      .n = swap ? mm->m : mm->n,
      .k = mm->k,
      .a = operand_of(k, mm, swap ? &b : &a, axes->first_row, axes->num_rows),
      .b = operand_of(k, mm, swap ? &a : &b, axes->first_col, axes->num_cols),
      .bands = swap ? mm_turn_bands(&bands) : bands,
      .workspace_arg = (int)(k->in.num + k->out.num),
  };
}
