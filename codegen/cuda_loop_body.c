// cuda_loop_body.c: what the threads of a block do with their units (cuda_loop.h).
//
//   across: softmax of a row by 8 threads             along: column sums, R in 4 slices
//     const int row = thread / 8, lane = ...            const int unit = ... % 64, lane = ... / 64;
//     vf s_sum = k_f32(0);                              vf s_sum = k_f32(0);
//     for (s = lane; s < 16; s += 8) {                  for (s = lane; s < 768; s += 4)
//       const int64_t j = s * VL; ... }                   s_sum = s_sum + x;
//     s = k_group_sum<8>(s_sum);                        s = k_slice_sum<4, 256>(s_sum);
//
// Threads beyond the last unit leave: to do the last one again would be to read what its own thread
// may be overwriting in place. Where threads sum together, which needs all, they have no turns and
// store nothing.
#include "codegen/cuda_loop.h"

enum { FEW_TURNS = 2 }; // a loop of their own for complete vectors is not worth its text

// --- sums over threads -----------------------------------------------------------------------
static const char *group_op(const ir_node *n) {
  switch (n->op) {
  case IR_SUM:
    return "sum";
  case IR_REDUCE_MAX:
    return "max";
  case IR_REDUCE_MIN:
    return "min";
  default:
    return ir_ops[n->op].name;
  }
}

static const char *gather_sum(loop_emit *m, const ir_node *n, const char *sum, const char *at) {
  ir_arena *a = m->k->arena;
  const cuda_loop *c = cuda_loop_of(m);
  const char *x = at ? ir_format(a, "%s, %s", sum, at) : sum;
  if (m->p->across)
    return ir_format(a, "k_group_%s<%d>(%s%s)", group_op(n), c->group, x,
                     c->group > CUDA_WARP ? ", scratch" : "");
  if (c->group > 1)
    return ir_format(a, "k_slice_%s<%d, %d>(%s)", group_op(n), c->group, c->threads, x);
  return at ? at : sum;
}

// --- the turns of a thread -------------------------------------------------------------------
// Index j of lane 0 of a row's vector `at`, and how many lanes there are. Spread: a warp has 128
// neighbours, 32 for each lane.
static void place_lanes(loop_emit *m, const char *at, bool complete) {
  const loop_plan *p = m->p;
  m->index[p->vector_axis] = "j";
  if (cuda_loop_of(m)->spread) {
    long long extent = (long long)p->extent;
    cpu_line(&m->e, "const int64_t j = (int64_t)(%s / 32) * 128 + %s %% 32;", at, at);
    if (complete)
      return;
    cpu_line(&m->e, "const int lanes = %lld - j <= 96 ? (int)((%lld - j + 31) / 32) : VL;", extent,
             extent);
    m->e.lanes = "lanes";
    return;
  }
  cpu_line(&m->e, "const int64_t j = (int64_t)%s * VL;", at);
  if (!complete && (p->flat || p->extent % p->lanes)) {
    const char *extent = p->flat ? "count" : loop_number(m, p->extent);
    cpu_line(&m->e, "const int lanes = %s - j < VL ? (int)(%s - j) : VL;", extent, extent);
    m->e.lanes = "lanes";
  }
}

// The vector of turn s: which iteration of R, which part of the row.
static void place_vector(loop_emit *m, bool complete) {
  const loop_plan *p = m->p;
  const char *r = "s";
  if (p->across) {
    int64_t per_row = cuda_loop_vectors_of_row(cuda_loop_of(m));
    bool one = p->red_rows == 1;
    r = ir_format(m->k->arena, "s / %lld", (long long)per_row);
    place_lanes(m, one ? "s" : ir_format(m->k->arena, "(s %% %lld)", (long long)per_row), complete);
    if (p->num_red > 0 && !one)
      cpu_line(&m->e, "const int r = %s;", r);
    r = "r";
  }
  if (p->red_rows > 1)
    loop_decode(m, r, p->red_axis, p->num_red);
  else
    for (int i = 0; i < p->num_red; i++)
      m->index[p->red_axis[i]] = "0";
}

static void one_turn(loop_emit *m, bool complete) {
  const char *lanes = m->e.lanes;
  place_vector(m, complete);
  if (m->turn) {
    cuda_loop_bind_kept(m);
    cuda_loop_fill_kept(m);
  }
  loop_inner_work(m, "");
  if (m->p->across)
    m->e.lanes = lanes;
}

// How many vectors from the first on have all their lanes.
static int64_t complete_vectors(const cuda_loop *c) {
  const loop_plan *p = &c->p;
  int64_t all = c->spread ? (int64_t)CUDA_WARP * p->lanes : p->lanes;
  if (!p->across || (p->extent % all == 0 && !p->flat))
    return c->vectors;
  return p->red_rows > 1 || p->flat ? 0 : p->extent / all * all / p->lanes;
}

static void kept_loop(loop_emit *m, int from, int to, bool complete) {
  const cuda_loop *c = cuda_loop_of(m);
  cpu_line(&m->e, "_Pragma(\"unroll\")");
  cpu_line(&m->e, "for (int t = %d; t < %d; t++) {", from, to);
  ir_map *outer = loop_open(m), *inner = NULL;
  cpu_line(&m->e, "const int s = %s%s;", c->group > 1 ? "lane + " : "",
           c->group > 1 ? ir_format(m->k->arena, "t * %d", c->group) : "t");
  if ((int64_t)to * c->group > c->vectors) {
    cpu_line(&m->e, "if (s < %lld) {", (long long)c->vectors);
    inner = loop_open(m);
  }
  m->turn = "t";
  one_turn(m, complete);
  m->turn = NULL;
  if (inner)
    loop_close(m, inner);
  loop_close(m, outer);
}

// Turns in which nothing is missing, when there are some; then the others.
static void kept_turns(loop_emit *m) {
  const cuda_loop *c = cuda_loop_of(m);
  int whole = (int)(complete_vectors(c) / c->group);
  if (whole < FEW_TURNS && whole < c->turns)
    whole = 0;
  if (whole > 0)
    kept_loop(m, 0, whole, true);
  if (whole < c->turns)
    kept_loop(m, whole, c->turns, complete_vectors(c) == c->vectors);
}

static void turn_inside(loop_emit *m, bool complete) {
  ir_map *outer = loop_open(m);
  one_turn(m, complete);
  loop_close(m, outer);
}

static void swept_loop(loop_emit *m, const char *vectors, bool complete) {
  if (cuda_loop_of(m)->side_by_side > 1)
    cpu_line(&m->e, "_Pragma(\"unroll %d\")", cuda_loop_of(m)->side_by_side);
  cpu_line(&m->e, "for (; s < %s; s += %d) {", vectors, cuda_loop_of(m)->group);
  turn_inside(m, complete);
}

// What complete vectors leave: fewer than a turn takes. No loop, of which the compiler would make several.
static void last_turn(loop_emit *m) {
  cpu_line(&m->e, "if (s < %s) {", loop_number(m, cuda_loop_of(m)->vectors));
  turn_inside(m, false);
}

static void turns(loop_emit *m) {
  const cuda_loop *c = cuda_loop_of(m);
  const loop_plan *p = m->p;
  if (c->turns) {
    kept_turns(m);
    return;
  }
  bool counted = p->flat && p->across;
  int64_t complete = complete_vectors(c);
  cpu_line(&m->e, "{");
  ir_map *outer = loop_open(m);
  cpu_line(&m->e, "%s s = %s;", counted ? "int64_t" : "int", c->group > 1 ? "lane" : "0");
  bool in_parts = complete < c->vectors && complete >= FEW_TURNS * c->group;
  if (in_parts)
    swept_loop(m, loop_number(m, complete), true);
  if (in_parts && c->vectors - complete <= c->group)
    last_turn(m);
  else
    swept_loop(m, counted ? "(count + VL - 1) / VL" : loop_number(m, c->vectors),
               complete == c->vectors);
  loop_close(m, outer);
}

// --- units -----------------------------------------------------------------------------------
static bool has_tail(const loop_emit *m) {
  const cuda_loop *c = cuda_loop_of(m);
  return m->p->units * c->group % c->threads != 0;
}

static bool sums_together(const loop_emit *m) {
  return m->p->has_reduce && (m->p->across || cuda_loop_of(m)->group > 1);
}

// Which threads store, where some have no unit and stay: "active".
static const char *if_active(const loop_emit *m) {
  return has_tail(m) && sums_together(m) ? "active" : NULL;
}

static const char *both(loop_emit *m, const char *x, const char *y) {
  return x && y ? ir_format(m->k->arena, "%s && %s", x, y) : x ? x : y;
}

// "unit" and "lane" of this thread; whether it has one at all.
static void place_thread(loop_emit *m) {
  const cuda_loop *c = cuda_loop_of(m);
  const char *wide = m->p->units * c->group > INT32_MAX - c->threads ? "int64_t" : "int";
  long long block_units = c->threads / c->group;
  if (c->group == 1)
    cpu_line(&m->e, "%s unit = (%s)task * %d + (%s)threadIdx.x;", wide, wide, c->threads, wide);
  else if (m->p->across)
    cpu_line(&m->e, "%s unit = (%s)task * %lld + (%s)threadIdx.x / %d;", wide, wide, block_units,
             wide, c->group);
  else
    cpu_line(&m->e, "%s unit = (%s)task * %lld + (%s)threadIdx.x %% %lld;", wide, wide, block_units,
             wide, block_units);
  if (c->group > 1)
    cpu_line(&m->e, "const int lane = (int)threadIdx.x %s %lld;", m->p->across ? "%" : "/",
             m->p->across ? (long long)c->group : block_units);
  if (!has_tail(m))
    return;
  if (!sums_together(m)) {
    cpu_line(&m->e, "if (unit >= %lld)", (long long)m->p->units);
    cpu_line(&m->e, "  return;");
    return;
  }
  cpu_line(&m->e, "const bool active = unit < %lld;", (long long)m->p->units);
  cpu_line(&m->e, "unit = active ? unit : %lld;", (long long)m->p->units - 1);
}

// Row axes and the vector axis from "unit".
static void place_unit(loop_emit *m) {
  const loop_plan *p = m->p;
  const char *row = "unit";
  if (p->chunks > 1) {
    row = "row";
    if (p->rows > 1)
      cpu_line(&m->e, "const int64_t row = unit / %lld;", (long long)p->chunks);
    cpu_line(&m->e, "const int64_t chunk = unit%s;",
             p->rows > 1 ? ir_format(m->k->arena, " %% %lld", (long long)p->chunks) : "");
  }
  loop_decode(m, row, p->row_axis, p->rows > 1 ? p->num_rows : 0);
  for (int i = 0; i < p->num_rows && p->rows == 1; i++)
    m->index[p->row_axis[i]] = "0";
  if (p->across || p->vector_axis < 0)
    return;
  if (p->chunks > 1)
    cpu_line(&m->e, "const int64_t j = chunk * VL;");
  m->index[p->vector_axis] = p->chunks > 1 ? "j" : "0";
  if (p->extent % p->lanes == 0)
    return;
  if (p->chunks == 1) {
    m->e.lanes = loop_number(m, p->extent);
  } else {
    cpu_line(&m->e, "const int lanes = %lld - j < VL ? (int)(%lld - j) : VL;", (long long)p->extent,
             (long long)p->extent);
    m->e.lanes = "lanes";
  }
}

static void active_turns(loop_emit *m, const char *active) {
  if (!active) {
    turns(m);
    return;
  }
  cpu_line(&m->e, "if (%s) {", active);
  ir_map *outer = loop_open(m);
  turns(m);
  loop_close(m, outer);
}

// Phases over the vectors of a row, or over R; then what is left of all of them, by one thread.
static void reducing_unit(loop_emit *m, loop_level level) {
  const char *active = if_active(m);
  const char *first = cuda_loop_of(m)->group > 1 ? "lane == 0" : NULL;
  m->gather = gather_sum;
  for (m->phase = 0; m->phase < m->p->phases; m->phase++) {
    loop_emit_level(m, level);
    loop_declare_sums(m, 1);
    active_turns(m, active);
    loop_finish_sums(m, "", 1);
  }
  m->only = both(m, active, first);
  if (level == LEVEL_LANES)
    loop_emit_stores(m, LEVEL_LANES);
  loop_emit_stores(m, LEVEL_ROW);
}

// No sums: a vector per thread, and threads without one leave.
static void pointwise_unit(loop_emit *m) {
  loop_emit_level(m, LEVEL_LANES);
  loop_emit_stores(m, LEVEL_LANES);
  loop_emit_stores(m, LEVEL_ROW);
}

static void with_lanes(loop_emit *m, const char *lanes) {
  ir_map *outer = loop_open(m);
  cpu_line(&m->e, "const int lanes = %s;", lanes);
  m->e.lanes = "lanes";
  pointwise_unit(m);
  m->e.lanes = NULL;
  loop_close(m, outer);
}

// Complete vectors have a text of their own: but what runs once takes longer to compile than to run.
static void flat_pointwise(loop_emit *m) {
  const cuda_loop *c = cuda_loop_of(m);
  cpu_line(&m->e, "const int64_t j = (task * %d + threadIdx.x) * VL;", c->threads);
  m->index[m->p->vector_axis] = "j";
  if (cg_runs_once(m->k->func)) {
    cpu_line(&m->e, "if (j < count) {");
    with_lanes(m, "count - j < VL ? (int)(count - j) : VL");
    return;
  }
  cpu_line(&m->e, "if (j + VL <= count) {");
  ir_map *outer = loop_open(m);
  pointwise_unit(m);
  loop_close(m, outer);
  cpu_line(&m->e, "else if (j < count) {");
  with_lanes(m, "(int)(count - j)");
}

// No axes: numbers.
static void scalar_unit(loop_emit *m) {
  for (m->phase = 0; m->phase < m->p->phases; m->phase++) {
    loop_emit_level(m, LEVEL_LANES);
    loop_declare_sums(m, 1);
    loop_inner_work(m, "");
    loop_finish_sums(m, "", 1);
  }
  loop_emit_stores(m, LEVEL_ROW);
}

void cuda_loop_emit_unit(loop_emit *m) {
  const loop_plan *p = m->p;
  if (p->vector_axis < 0) {
    scalar_unit(m);
    return;
  }
  if (p->flat && !p->across && !p->has_reduce) {
    flat_pointwise(m);
    return;
  }
  place_thread(m);
  place_unit(m);
  loop_emit_level(m, LEVEL_ROW);
  if (p->has_reduce)
    reducing_unit(m, p->across ? LEVEL_ROW : LEVEL_LANES);
  else
    pointwise_unit(m);
}
