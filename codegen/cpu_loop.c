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

static bool is_random(const ir_node *n) {
  return n->op == IR_UNIFORM || n->op == IR_NORMAL;
}

void cpu_loop_schedule(cg_kernel *k) {
  loop_plan *p = IR_NEW(k->arena, loop_plan);
  k->dom = loop_simplify(k->arena, k->k, k->dom);
  loop_plan_axes(p, k);
  loop_plan_members(p, k);
  loop_plan_tasks(p, k);
  k->num_phases = 1;
  k->tasks[0] = p->tasks;
  k->workspace = 0;
  k->schedule = p;
  if (p->flat)
    IR_PUSH(k->arena, k->numbers, p->extent);
  for (size_t i = 0; i < k->k->nodes.num; i++)
    if (is_random(k->k->nodes.at[i]))
      IR_PUSH(k->arena, k->numbers, ir_attr_int(k->k->nodes.at[i], IR_ATTR_STREAM));
}

static const char *index_of(void *data, int axis) {
  return ((loop_emit *)data)->index[axis];
}

static void name_axes(loop_emit *m) {
  for (int i = 0; i < m->k->dom->num_axes; i++) {
    m->index[i] = ir_format(m->k->arena, "i%d", i);
    cg_scope_name(m->k->arena, m->e.names, m->index[i]);
  }
}

static void reserve(loop_emit *m) {
  static const char *const used[] = {"b", "first", "last", "count", "full", "steps", "lanes"};
  size_t num = m->p->flat ? sizeof used / sizeof *used : 3;
  for (size_t i = 0; i < num; i++)
    cg_scope_name(m->k->arena, m->e.names, used[i]);
}

static void declare_numbers(loop_emit *m) {
  ir_arena *a = m->k->arena;
  int at = 0;
  if (m->p->flat)
    cg_emit_number(m->k, at++, "int64_t", "count", m->e.out, m->e.indent);
  for (size_t i = 0; i < m->k->k->nodes.num; i++) {
    const ir_node *n = m->k->k->nodes.at[i];
    if (!is_random(n))
      continue;
    const char *name = cg_scope_name(a, m->e.names, "stream");
    cg_emit_number(m->k, at++, "uint32_t", name, m->e.out, m->e.indent);
    cpu_bind_stream(&m->e, n, name);
  }
}

static void declare_caches(loop_emit *m) {
  ir_arena *a = m->k->arena;
  for (size_t i = 0; i < m->k->k->nodes.num; i++) {
    const ir_node *n = m->k->k->nodes.at[i];
    if (!m->p->member[i].cached)
      continue;
    const char *base = cg_local_name(a, ir_map_new(a), n);
    const char *name = cg_scope_name(a, m->e.names, ir_format(a, "%s_row", base));
    ir_map_put(m->e.names, ir_format(a, "~%zu", i), (void *)(uintptr_t)name);
    cpu_line(&m->e, "%s %s[%lld];", cpu_register(n->type.dtype), name,
             (long long)loop_cache_vectors(m->p));
  }
}

// "unit" -> row and chunk -> one index per row axis.
static void decode_unit(loop_emit *m) {
  const loop_plan *p = m->p;
  int64_t inner = p->rows;
  if (p->chunks > 1 && p->rows > 1) {
    cpu_line(&m->e, "const int64_t row = unit / %lld, chunk = unit %% %lld;", (long long)p->chunks,
             (long long)p->chunks);
  }
  for (int i = 0; i < p->num_rows && p->num_rows > 1; i++) {
    int axis = p->row_axis[i];
    int64_t size = m->k->dom->axis[axis].size;
    inner /= size;
    ir_buf b = ir_buf_new(m->k->arena);
    ir_buf_puts(&b, "row");
    if (inner > 1)
      ir_buf_printf(&b, " / %lld", (long long)inner);
    if (i > 0)
      ir_buf_printf(&b, " %% %lld", (long long)size);
    cpu_line(&m->e, "const int64_t %s = %s;", m->index[axis], ir_buf_str(&b));
  }
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

static bool stores_at(const loop_emit *m, loop_level level) {
  for (size_t i = 0; i < m->k->dom->stores.num; i++) {
    int member = cpu_member(m->k, m->k->dom->stores.at[i].node);
    if (m->p->member[member].level == level)
      return true;
  }
  return false;
}

// Values without axes are stored after all work, by whoever has task 0.
static void emit_func_stores(loop_emit *m) {
  if (!stores_at(m, LEVEL_FUNC))
    return;
  m->e.vector_axis = -1;
  cpu_line(&m->e, "if (begin == 0) {");
  ir_map *outer = loop_open(m);
  loop_emit_stores(m, LEVEL_FUNC);
  loop_close(m, outer);
}

void cpu_loop_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const loop_plan *p = k->schedule;
  loop_emit m = {.k = k, .p = p};
  m.e = (cg_expr){.k = k, .out = out, .names = ir_map_new(k->arena), .vector_axis = p->vector_axis};
  m.e.index = index_of;
  m.e.have = loop_have;
  m.e.data = &m;
  reserve(&m);
  name_axes(&m);
  ir_buf_printf(out, "void %s_0(int64_t begin, int64_t end, char *const *args) {\n", name);
  m.e.indent = 2;
  cpu_line(&m.e, "if (begin >= end)");
  cpu_line(&m.e, "  return;");
  cg_emit_args(k, out, 2);
  declare_numbers(&m);
  if (p->flat)
    loop_emit_flat_bounds(&m);
  declare_caches(&m);
  loop_emit_level(&m, LEVEL_FUNC);
  emit_units(&m);
  emit_func_stores(&m);
  ir_buf_puts(out, "}\n");
}
