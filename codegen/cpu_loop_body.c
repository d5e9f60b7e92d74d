// cpu_loop_body.c: what a LOOP kernel does inside one unit of work: vector loops, phases, stores.
//
//   across: softmax of a row                          along: column sums
//     vf s_sum[4] = ...                                 for (j ...) {            // 4 vectors
//     for (b ...) for (u ...) { e; row[..] = e; }         vf s_sum[4] = ...
//     s = k_sum_lanes(...)                                for (i0 ...) for (u ...) s_sum[u] += x
//     for (j ...) store(e / s)                            for (u ...) store(s_sum[u])
#include "codegen/cpu_loop.h"

// --- the vector loop -------------------------------------------------------------------------
void loop_steps(loop_emit *m, int block, const char *from, const char *to, loop_step body) {
  const char *var = block > 1 ? "b" : "j";
  cpu_line(&m->e, "for (int64_t %s = %s; %s < %s; %s += %d) {", var, from, var, to, var,
           block * m->p->lanes);
  ir_map *outer = loop_open(m);
  m->index[m->p->vector_axis] = block > 1 ? "(b + u * VL)" : "j";
  body(m, block);
  loop_close(m, outer);
}

void loop_partial_step(loop_emit *m, int64_t from, const char *open, loop_step body) {
  ir_arena *a = m->k->arena;
  cpu_line(&m->e, "%s{ // the last %lld", open, (long long)(m->p->extent - from));
  ir_map *outer = loop_open(m);
  m->index[m->p->vector_axis] = ir_format(a, "%lld", (long long)from);
  m->e.lanes = ir_format(a, "%lld", (long long)(m->p->extent - from));
  body(m, 1);
  m->e.lanes = NULL;
  loop_close(m, outer);
}

// Of a flat kernel: this call's elements are [first, last), and first is the start of a vector.
void loop_emit_flat_bounds(loop_emit *m) {
  const loop_plan *p = m->p;
  if (p->across) {
    cpu_line(&m->e, "const int64_t first = 0, last = count;");
  } else {
    long long per_task = (long long)p->task_elements;
    cpu_line(&m->e, "const int64_t first = begin * %lld;", per_task);
    cpu_line(&m->e, "const int64_t last = end * %lld < count ? end * %lld : count;", per_task,
             per_task);
  }
  cpu_line(&m->e, "const int64_t full = last / VL * VL; // where the partial vector begins");
  if (p->block > 1)
    cpu_line(&m->e, "const int64_t steps = last / %d * %d;", p->block * p->lanes,
             p->block * p->lanes);
}

static void flat_steps(loop_emit *m, loop_step body) {
  const loop_plan *p = m->p;
  if (p->block > 1)
    loop_steps(m, p->block, "first", "steps", body);
  loop_steps(m, 1, p->block > 1 ? "steps" : "first", "full", body);
  cpu_line(&m->e, "if (full < last) {");
  ir_map *outer = loop_open(m);
  cpu_line(&m->e, "const int lanes = (int)(last - full);");
  m->index[p->vector_axis] = "full";
  m->e.lanes = "lanes";
  body(m, 1);
  m->e.lanes = NULL;
  loop_close(m, outer);
}

// Steps of `block` vectors, then single vectors, then the partial one.
static void vector_steps(loop_emit *m, loop_step body) {
  const loop_plan *p = m->p;
  if (p->flat) {
    flat_steps(m, body);
    return;
  }
  if (loop_in_band(m)) {
    loop_band_steps(m, body);
    return;
  }
  int64_t step = (int64_t)p->lanes * p->block;
  int64_t steps_end = p->extent / step * step, full_end = p->extent / p->lanes * p->lanes;
  bool chunked = p->chunks > 1;
  if (chunked) {
    cpu_line(&m->e, "const int64_t first = chunk * %lld;", (long long)p->chunk);
    cpu_line(&m->e, "const int64_t last = chunk < %lld ? first + %lld : %lld;",
             (long long)p->chunks - 1, (long long)p->chunk, (long long)steps_end);
  }
  if (steps_end > 0)
    loop_steps(m, p->block, chunked ? "first" : "0", chunked ? "last" : loop_number(m, steps_end),
               body);
  if (steps_end == p->extent)
    return;
  const char *last_chunk = ir_format(m->k->arena, "if (chunk == %lld) ", (long long)p->chunks - 1);
  if (full_end == steps_end) {
    loop_partial_step(m, full_end, chunked ? last_chunk : "", body);
    return;
  }
  ir_map *outer = NULL;
  if (chunked) {
    cpu_line(&m->e, "%s{", last_chunk);
    outer = loop_open(m);
  }
  loop_steps(m, 1, loop_number(m, steps_end), loop_number(m, full_end), body);
  if (p->extent > full_end)
    loop_partial_step(m, full_end, "", body);
  if (outer)
    loop_close(m, outer);
}

// --- phases ----------------------------------------------------------------------------------
static void block_open(loop_emit *m, int block, ir_map **outer) {
  cpu_line(&m->e, "for (int u = 0; u < %d; u++) {", block);
  *outer = loop_open(m);
}

static void inner_step(loop_emit *m, int block) {
  ir_map *outer = NULL;
  if (block == 1) {
    loop_inner_work(m, m->p->across && m->p->block > 1 ? "[0]" : "");
    return;
  }
  block_open(m, block, &outer);
  loop_inner_work(m, "[u]");
  loop_close(m, outer);
}

// The loops inside the vector loop, or around it when that is across.
static void red_loops(loop_emit *m, ir_map **outer) {
  for (int i = 0; i < m->p->num_red; i++) {
    int axis = m->p->red_axis[i];
    const char *var = m->index[axis];
    cpu_line(&m->e, "for (int64_t %s = 0; %s < %lld; %s++) {", var, var,
             (long long)m->k->dom->axis[axis].size, var);
    outer[i] = loop_open(m);
  }
}

static void red_loops_end(loop_emit *m, ir_map **outer) {
  for (int i = m->p->num_red - 1; i >= 0; i--)
    loop_close(m, outer[i]);
}

// One row: phases with the vector loop innermost.
static void across_row(loop_emit *m) {
  ir_map *outer[DOM_MAX_AXES];
  loop_emit_band(m);
  for (m->phase = 0; m->phase < m->p->phases; m->phase++) {
    loop_emit_level(m, LEVEL_ROW);
    loop_declare_sums(m, m->p->block);
    loop_widen_band(m);
    red_loops(m, outer);
    vector_steps(m, inner_step);
    red_loops_end(m, outer);
    loop_take_beside(m);
    loop_finish_sums(m, "", m->p->block);
    loop_store_beside(m);
  }
  loop_emit_stores(m, LEVEL_ROW);
}

// One step along the vector axis, with the loops over R inside.
static void along_phases(loop_emit *m, int block) {
  ir_map *outer[DOM_MAX_AXES];
  for (m->phase = 0; m->phase < m->p->phases; m->phase++) {
    if (block == 1)
      loop_emit_level(m, LEVEL_LANES);
    loop_declare_sums(m, block);
    red_loops(m, outer);
    inner_step(m, block);
    red_loops_end(m, outer);
    if (block == 1)
      loop_finish_sums(m, "", 1);
  }
}

static void along_step(loop_emit *m, int block) {
  ir_map *outer = NULL, *turned[DOM_MAX_AXES];
  if (!m->p->has_reduce) {
    red_loops(m, turned);
    loop_emit_stores(m, LEVEL_LANES);
    red_loops_end(m, turned);
    return;
  }
  along_phases(m, block);
  if (block > 1) {
    block_open(m, block, &outer);
    m->phase = 0;
    loop_finish_sums(m, "[u]", block);
    m->phase = m->p->phases;
  }
  loop_emit_stores(m, LEVEL_LANES);
  if (outer)
    loop_close(m, outer);
}

// No axes at all: every value is a splat.
static void scalar_unit(loop_emit *m) {
  along_phases(m, 1);
  m->phase = m->p->phases;
  loop_emit_stores(m, LEVEL_ROW);
}

void loop_emit_unit(loop_emit *m) {
  if (m->p->vector_axis < 0) {
    scalar_unit(m);
  } else if (m->p->across) {
    across_row(m);
  } else {
    loop_emit_level(m, LEVEL_ROW);
    loop_emit_band(m);
    vector_steps(m, along_step);
    loop_store_beside(m);
    loop_emit_stores(m, LEVEL_ROW);
  }
}
