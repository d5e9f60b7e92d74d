// cpu_loop.c: LOOP kernels as C: pointwise chains with gathers, random numbers and at most one set
// of reduced axes (softmax, norms, losses, optimisers, column sums, copies through strides).
//
//   kernel softmax loop { m = reduce_max x; e = exp(x - m); s = sum e; y = e / s }
//   ->
//   static void softmax_0(int64_t begin, int64_t end, char *const *args) {
//     const float *const p_x = ...;
//     vf e_row[8];                                  // scratch between phases
//     for (int64_t i0 = begin * ...) {              // rows of this task
//       ... phase 0, 1, 2 ...
//     }
//   }
// The file list is in cpu_loop.h.
#include "codegen/cpu_loop.h"

void cpu_loop_schedule(cg_kernel *k) {
  loop_plan *p = IR_NEW(k->arena, loop_plan);
  k->dom = loop_simplify(k->arena, k->k, k->dom);
  loop_group_lanes(p, k);
  loop_plan_axes(p, k);
  loop_plan_members(p, k);
  loop_plan_tasks(p, k);
  loop_plan_band(p, k);
  k->num_phases = 1;
  k->tasks[0] = p->tasks;
  k->workspace = 0;
  k->schedule = p;
  loop_push_numbers(p, k);
}

static void reserve(loop_emit *m) {
  static const char *const used[] = {"b", "first", "last", "count", "full", "steps", "lanes"};
  loop_reserve(m, used, m->p->flat ? sizeof used / sizeof *used : 3);
  static const char *const of_band[] = {"line", "from", "to"};
  for (size_t i = 0; m->p->band.phases && i < sizeof of_band / sizeof *of_band; i++)
    cg_scope_name(m->k->arena, m->e.names, of_band[i]);
}

// "unit" -> row and chunk -> one index per row axis.
static void decode_unit(loop_emit *m) {
  const loop_plan *p = m->p;
  if (p->chunks > 1 && p->rows > 1)
    cpu_line(&m->e, "const int64_t row = unit / %lld, chunk = unit %% %lld;", (long long)p->chunks,
             (long long)p->chunks);
  if (p->num_rows > 1)
    loop_decode(m, "row", p->row_axis, p->num_rows);
}

// The loop variable is as close to what it means as can be: an axis, a row, a chunk, a unit.
static const char *unit_variable(loop_emit *m) {
  const loop_plan *p = m->p;
  if (p->rows == 1)
    return p->chunks > 1 ? "chunk" : NULL;
  if (p->chunks > 1) {
    if (p->num_rows == 1)
      m->index[p->row_axis[0]] = "row";
    return "unit";
  }
  return p->num_rows == 1 ? m->index[p->row_axis[0]] : "row";
}

static void emit_units(loop_emit *m) {
  const loop_plan *p = m->p;
  const char *var = m->p->flat ? NULL : unit_variable(m);
  if (!var) {
    loop_emit_unit(m);
    return;
  }
  const char *scale = p->units == p->tasks ? ""
                                           : ir_format(m->k->arena, " * %lld / %lld",
                                                       (long long)p->units, (long long)p->tasks);
  cpu_line(&m->e, "for (int64_t %s = begin%s; %s < end%s; %s++) {", var, scale, var, scale, var);
  ir_map *outer = loop_open(m);
  decode_unit(m);
  loop_emit_unit(m);
  loop_close(m, outer);
}

// Values without axes are stored after all work, by whoever has task 0.
static void emit_func_stores(loop_emit *m) {
  if (!loop_stores_at(m, LEVEL_FUNC))
    return;
  m->e.vector_axis = -1;
  cpu_line(&m->e, "if (begin == 0) {");
  ir_map *outer = loop_open(m);
  loop_emit_stores(m, LEVEL_FUNC);
  loop_close(m, outer);
}

void cpu_loop_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const loop_plan *p = k->schedule;
  loop_emit m;
  loop_begin(&m, k, p, out);
  reserve(&m);
  ir_buf_printf(out, "void %s_0(int64_t begin, int64_t end, char *const *args) {\n", name);
  m.e.indent = 2;
  cpu_line(&m.e, "if (begin >= end)");
  cpu_line(&m.e, "  return;");
  cg_emit_args(k, out, 2);
  loop_declare_numbers(&m);
  if (p->flat)
    loop_emit_flat_bounds(&m);
  loop_declare_caches(&m, loop_cache_vectors(p));
  loop_emit_level(&m, LEVEL_FUNC);
  emit_units(&m);
  emit_func_stores(&m);
  ir_buf_puts(out, "}\n");
}
