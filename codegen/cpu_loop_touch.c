// cpu_loop_touch.c: which bytes of its buffers a share of a LOOP kernel's tasks touches.
#include "codegen/cpu_loop.h"

// A share of the units: whole rows, or chunks of the vector axis of one row.
typedef struct share {
  int64_t row, row_end;
  int64_t at, at_end; // along the vector axis
} share;

static share share_of(const loop_plan *p, int64_t begin, int64_t end) {
  share s = {0, p->rows, 0, p->extent};
  if (p->flat && !p->across) {
    s.at = begin * p->task_elements;
    s.at_end = end * p->task_elements < p->extent ? end * p->task_elements : p->extent;
  }
  if (p->flat)
    return s;
  int64_t unit = begin * p->units / p->tasks, unit_end = end * p->units / p->tasks;
  s.row = unit / p->chunks;
  s.row_end = (unit_end + p->chunks - 1) / p->chunks;
  if (s.row_end - s.row == 1 && p->chunks > 1) {
    s.at = (unit - s.row * p->chunks) * p->chunk;
    s.at_end = (unit_end - s.row * p->chunks) * p->chunk;
    s.at_end = s.at_end < p->extent ? s.at_end : p->extent;
  }
  return s;
}

static cg_bytes bytes_of(const cg_kernel *k, const dom_access *x, const share *s, int elem_bytes) {
  const loop_plan *p = k->schedule;
  const dom_axis *axis = k->dom->axis;
  if (s->row >= s->row_end || s->at >= s->at_end)
    return (cg_bytes){0, 0};
  cg_walk rows = {0}, vectors = {0}, rest = {0};
  for (int i = 0; i < p->num_rows; i++)
    cg_walk_add(&rows, axis[p->row_axis[i]].size, x->stride[p->row_axis[i]]);
  int64_t group = x->group ? x->group : 1;
  if (p->vector_axis >= 0)
    cg_walk_add(&vectors, p->extent / group, x->stride[p->vector_axis]);
  for (int i = 0; i < p->num_red; i++)
    cg_walk_add(&rest, axis[p->red_axis[i]].size, x->stride[p->red_axis[i]]);
  int64_t least = x->offset, most = x->offset;
  cg_walk_reach(&rows, s->row, s->row_end, &least, &most);
  cg_walk_reach(&vectors, s->at / group, s->at_end / group, &least, &most);
  if (p->red_rows > 0)
    cg_walk_reach(&rest, 0, p->red_rows, &least, &most);
  return (cg_bytes){least * elem_bytes, (most + 1) * elem_bytes};
}

cg_bytes cpu_loop_touches(const cg_kernel *k, int phase, int arg, int64_t begin, int64_t end) {
  (void)phase;
  share s = share_of(k->schedule, begin, end);
  cg_bytes all = {0, cg_arg_bytes(k, arg)}, touched = {0, 0};
  for (size_t i = 0; i < k->dom->loads.num; i++) {
    const dom_load *l = &k->dom->loads.at[i];
    if (l->operand < 0 || cg_arg_index(k, l->buffer) != arg)
      continue;
    if (l->user->op == IR_GATHER && l->operand == 0) // any row
      return all;
    int elem_bytes = ir_dtypes[l->buffer->type.dtype].bytes;
    touched = cg_join(touched, bytes_of(k, &l->access, &s, elem_bytes));
  }
  for (size_t i = 0; i < k->dom->stores.num; i++) {
    const dom_store *x = &k->dom->stores.at[i];
    int elem_bytes = ir_dtypes[x->buffer->type.dtype].bytes;
    if (cg_arg_index(k, x->buffer) == arg)
      touched = cg_join(touched, bytes_of(k, &x->access, &s, elem_bytes));
  }
  return touched;
}
