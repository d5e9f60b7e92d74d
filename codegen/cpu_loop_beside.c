// cpu_loop_beside.c: the text of rows of which only a band is walked (cpu_loop_band.c).
//
//   int64_t from = 0, to = (i1 + 0) / 64 * 64 + 64;    // the steps with columns of the band
//   { // the rest of the row
//     const vf e = k_exp((k_f32(-1e+30f) - m));
//     if (e[0] != 0)
//       from = 0, to = 512;
//   }
//   for (int64_t b = from; b < to; b += 64) ...
//   for (int64_t j = to; j < 512; j += 16)
//     k_store_f32(p_y + i1 * 512 + j, k_f32(0.0f));
#include "codegen/cpu_loop.h"
#include "passes/band.h"

#include <stdlib.h>

bool loop_in_band(const loop_emit *m) {
  return m->p->band.phases & 1u << m->phase;
}

static int64_t step_of(const loop_plan *p) {
  return (int64_t)p->block * p->lanes;
}

// --- which columns -----------------------------------------------------------------------------
// "(line - 2)"
static const char *plus(ir_arena *a, const char *x, int64_t number) {
  return number == 0
             ? x
             : ir_format(a, "(%s %c %lld)", x, number < 0 ? '-' : '+', (long long)llabs(number));
}

static bool begins_later(const loop_plan *p) {
  return p->band.diagonals.lower > 1 - p->band.rows;
}

static bool ends_earlier(const loop_plan *p) {
  return p->band.diagonals.upper < p->extent - 1;
}

// The end of the last step.
static int64_t end_of_steps(const loop_plan *p) {
  return ir_ceil_div(p->extent, step_of(p)) * step_of(p);
}

// Where the step with column `line + diagonal` begins, or so many steps later; 0 where that lies in front of the row.
static const char *step_with(loop_emit *m, const char *line, int64_t diagonal, int later) {
  const loop_plan *p = m->p;
  ir_arena *a = m->k->arena;
  long long step = step_of(p), all = end_of_steps(p);
  const char *column = plus(a, line, diagonal);
  const char *text = ir_format(a, "%s / %lld * %lld", column, step, step);
  if (later)
    text = ir_format(a, "%s + %lld", text, step);
  if (p->band.rows - 1 + diagonal >= all)
    text = ir_format(a, "%s >= %lld ? %lld : %s", column, all, all, text);
  return diagonal < 0 ? ir_format(a, "%s < 0 ? 0 : %s", column, text) : text;
}

// `from` and `to` are ends of steps; from > to where the band has no column of the row.
void loop_emit_band(loop_emit *m) {
  const loop_plan *p = m->p;
  if (!p->band.phases)
    return;
  const char *line = m->index[p->band.row_axis],
             *type = p->band.widened ? "int64_t" : "const int64_t";
  if (m->k->dom->axis[p->band.row_axis].size > p->band.rows) {
    cpu_line(&m->e, "const int64_t line = %s %% %lld;", line, (long long)p->band.rows);
    line = "line";
  }
  const char *begin = begins_later(p) ? step_with(m, line, p->band.diagonals.lower, 0) : "0";
  const char *end = ends_earlier(p) ? step_with(m, line, p->band.diagonals.upper, 1)
                                    : loop_number(m, end_of_steps(p));
  cpu_line(&m->e, "%s from = %s;", type, begin);
  cpu_line(&m->e, "%s to = %s; // columns that the mask has left", type, end);
}

void loop_band_steps(loop_emit *m, loop_step body) {
  const loop_plan *p = m->p;
  int64_t steps_end = p->extent / step_of(p) * step_of(p),
          full_end = p->extent / p->lanes * p->lanes;
  const char *end = loop_number(m, steps_end);
  bool rest = steps_end < p->extent;
  if (steps_end > 0)
    loop_steps(m, p->block, "from",
               rest ? ir_format(m->k->arena, "(to < %s ? to : %s)", end, end) : "to", body);
  if (!rest)
    return;
  cpu_line(&m->e, "if (to > %s) {", end);
  ir_map *outer = loop_open(m);
  if (full_end > steps_end)
    loop_steps(m, 1, end, loop_number(m, full_end), body);
  if (p->extent > full_end)
    loop_partial_step(m, full_end, "", body);
  loop_close(m, outer);
}

// --- values beside the band --------------------------------------------------------------------
static const char *value_beside(loop_emit *m, const ir_node *n);

// Makes an operand known by what it is beside the band.
static const char *operand_beside(loop_emit *m, const ir_node *n, int i) {
  const dom_load *l = dom_find_load(m->k->dom, n, i);
  const ir_node *x = dom_base(n->in[i]);
  if (!l)
    return value_beside(m, x);
  if (l->access.stride[m->p->vector_axis] != 0) // nothing but zeros
    cpu_bind_load(&m->e, l, cpu_constant(m->k->arena, l->buffer->type.dtype, 0));
  return cpu_emit_load(&m->e, l);
}

static const char *value_beside(loop_emit *m, const ir_node *n) {
  ir_arena *a = m->k->arena;
  const char *known = cg_scope_value(a, m->e.names, n);
  if (known || !cpu_varies(m->k, n, m->p->vector_axis))
    return known ? known : cg_emit_value(&m->e, n);
  const char *x = NULL;
  if (m->p->band.beside[cpu_member(m->k, n)] == BESIDE_ZERO)
    x = cpu_constant(a, n->type.dtype, 0);
  else if (n->op == IR_SELECT && loop_operand_beside(m->p, m->k, n, 0) == BESIDE_ZERO)
    x = operand_beside(m, n, 2);
  if (x) {
    cg_scope_bind(a, m->e.names, n, x);
    return x;
  }
  for (int i = 0; i < n->num_in; i++)
    operand_beside(m, n, i);
  return cg_emit_value(&m->e, n);
}

// Opens a C scope in which values are those beside the band: there are no columns, nor scratch rows.
static ir_map *open_beside(loop_emit *m) {
  cpu_line(&m->e, "{ // the rest of the row");
  return loop_open(m);
}

static const char *emit_beside(loop_emit *m, const ir_node *n, int operand) {
  const char *(*have)(void *, const ir_node *) = m->e.have;
  m->e.have = NULL;
  m->e.vector_axis = -1;
  const char *x = operand < 0 ? value_beside(m, n) : operand_beside(m, n, operand);
  m->e.have = have;
  m->e.vector_axis = m->p->vector_axis;
  return x;
}

static bool reduces_here(const loop_emit *m, size_t i) {
  return m->p->member[i].reduces && m->p->member[i].depth == m->phase;
}

// Sums of what is not 0 there take all columns, in the order that they always have.
void loop_widen_band(loop_emit *m) {
  const loop_plan *p = m->p;
  if (!(p->band.widened & 1u << m->phase))
    return;
  ir_map *outer = open_beside(m);
  for (size_t i = 0; i < m->k->k->nodes.num; i++) {
    const ir_node *n = m->k->k->nodes.at[i];
    if (!reduces_here(m, i) || n->op != IR_SUM || loop_operand_beside(p, m->k, n, 0) == BESIDE_ZERO)
      continue;
    const char *x = emit_beside(m, n, 0);
    cpu_line(&m->e, "if ((%s)[0] != 0)", x);
    cpu_line(&m->e, "  from = 0, to = %lld;", (long long)end_of_steps(p));
  }
  loop_close(m, outer);
}

static bool has_maximum(const loop_emit *m) {
  for (size_t i = 0; i < m->k->k->nodes.num; i++)
    if (reduces_here(m, i) && m->k->k->nodes.at[i]->op != IR_SUM)
      return true;
  return false;
}

// A maximum takes the number that is there once: more often would not change it.
void loop_take_beside(loop_emit *m) {
  ir_arena *a = m->k->arena;
  if (!loop_in_band(m) || !has_maximum(m))
    return;
  cpu_line(&m->e, "if (from > 0 || to < %lld) { // the rest of the row", (long long)m->p->extent);
  ir_map *outer = loop_open(m);
  for (size_t i = 0; i < m->k->k->nodes.num; i++) {
    const ir_node *n = m->k->k->nodes.at[i];
    if (!reduces_here(m, i) || n->op == IR_SUM)
      continue;
    const char *x = emit_beside(m, n, 0);
    const char *most = ir_format(a, "%s%s", loop_accumulator(m, n), m->p->block > 1 ? "[0]" : "");
    cpu_line(&m->e, "%s = %s;", most, cpu_spell(a, ir_ops[n->op].spell, (const char *[]){most, x}));
  }
  loop_close(m, outer);
}

// --- stores ------------------------------------------------------------------------------------
static bool is_stored_beside(const loop_emit *m, const dom_store *s) {
  const loop_member *member = &m->p->member[cpu_member(m->k, s->node)];
  bool here = m->p->across ? member->level == LEVEL_INNER && member->depth == m->phase
                           : member->level == LEVEL_LANES;
  return here && loop_needs_beside(m->p, m->k, s);
}

static void store_values(loop_emit *m, int block) {
  (void)block;
  for (size_t i = 0; i < m->k->dom->stores.num; i++)
    if (is_stored_beside(m, &m->k->dom->stores.at[i]))
      cg_emit_store(&m->e, &m->k->dom->stores.at[i]);
}

static bool stores_beside(const loop_emit *m) {
  for (size_t i = 0; i < m->k->dom->stores.num; i++)
    if (is_stored_beside(m, &m->k->dom->stores.at[i]))
      return true;
  return false;
}

void loop_store_beside(loop_emit *m) {
  const loop_plan *p = m->p;
  if (!loop_in_band(m) || !stores_beside(m))
    return;
  int64_t full_end = p->extent / p->lanes * p->lanes;
  const char *end = loop_number(m, full_end);
  ir_map *outer = open_beside(m);
  for (size_t i = 0; i < m->k->dom->stores.num; i++)
    if (is_stored_beside(m, &m->k->dom->stores.at[i]))
      emit_beside(m, m->k->dom->stores.at[i].node, -1);
  if (begins_later(p))
    loop_steps(m, 1, "0", ir_format(m->k->arena, "(from < %s ? from : %s)", end, end),
               store_values);
  if (ends_earlier(p) && full_end > 0)
    loop_steps(m, 1, "to", end, store_values);
  if (p->extent > full_end)
    loop_partial_step(m, full_end, ir_format(m->k->arena, "if (from > %s || to <= %s) ", end, end),
                      store_values);
  loop_close(m, outer);
}
