// cpu_matmul_plan.c: the decisions of the matmul generator, all made at compile time.
//
// Register tile: as many accumulators as registers allow, shaped so that edges waste little.
// Task grid: the split of row and column tiles with the least estimated time on small and
// medium teams; never a function of the team's size, so that sums are the same on all.
// Packing: an operand is copied when tiles could not read it with vector loads (b) or when its
// stride would let the lines of one tile evict each other from the caches.
#include "codegen/cpu_matmul.h"

enum {
  MAX_VECTORS = 6,      // widest tile
  MAX_GROUPS = 64,      // of one axis of the task grid
  LOCAL_BYTES = 196608, // all stack buffers of a task
  SUMS_BYTES = 131072,  // sums that wait for the next piece of k
  MAX_SLICES = 32,      // of k, when a team packs an operand
  BARRIER_CYCLES = 3000,
  TASK_CYCLES = 60,
};

mm_axes mm_simplify(const mm_axes *axes) {
  mm_axes r = {0};
  for (int i = 0; i < axes->num; i++) {
    if (axes->size[i] == 1)
      continue;
    int last = r.num - 1;
    if (r.num && r.stride[last] == axes->size[i] * axes->stride[i]) {
      r.size[last] *= axes->size[i];
      r.stride[last] = axes->stride[i];
      continue;
    }
    r.size[r.num] = axes->size[i];
    r.stride[r.num++] = axes->stride[i];
  }
  return r;
}

bool mm_is_flat(const mm_axes *axes, int64_t *stride) {
  *stride = axes->num ? axes->stride[axes->num - 1] : 0;
  return axes->num <= 1;
}

const char *mm_offset(ir_arena *arena, const mm_axes *axes, const char *index) {
  if (axes->num == 0)
    return "0";
  ir_buf text = ir_buf_new(arena);
  int64_t below = 1; // elements of the parts after this one
  for (int i = axes->num - 1; i >= 0; i--) {
    ir_buf part = ir_buf_new(arena);
    ir_buf_puts(&part, index);
    if (below > 1)
      ir_buf_printf(&part, " / %lld", (long long)below);
    if (i > 0)
      ir_buf_printf(&part, " %% %lld", (long long)axes->size[i]);
    ir_buf_printf(&text, "%s%s * %lld", text.len ? " + " : "", ir_buf_str(&part),
                  (long long)axes->stride[i]);
    below *= axes->size[i];
  }
  return ir_buf_str(&text);
}

static int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static double max2(double a, double b) {
  return a > b ? a : b;
}

// Cycles per step of k of a tile: two FMAs and two loads per cycle; four cycles until a sum can
// be added to again. The small term prefers tiles that read less from the caches.
static double tile_cycles(int rows, int vectors) {
  double fma = rows * vectors / 2.0, loads = (rows + vectors) / 2.0;
  return max2(max2(fma, loads), 4.0) + 0.06 * (rows + 4.0 * vectors);
}

// The whole problem in tiles of rows x vectors, per step of k.
static double tiling_cycles(const mm_problem *p, int lanes, int rows, int vectors) {
  int64_t nr = (int64_t)vectors * lanes;
  int64_t full_rows = p->m / rows, full_cols = p->n / nr;
  int tail_rows = (int)(p->m % rows), tail_vectors = (int)ceil_div(p->n % nr, lanes);
  double enter = (10.0 + rows * vectors) / (double)p->k; // call, first and last lines of a tile
  double total = (double)(full_rows * full_cols) * (tile_cycles(rows, vectors) + enter);
  if (tail_rows)
    total += (double)full_cols * (tile_cycles(tail_rows, vectors) + enter);
  if (tail_vectors)
    total += (double)full_rows * (tile_cycles(rows, tail_vectors) + enter);
  if (tail_rows && tail_vectors)
    total += tile_cycles(tail_rows, tail_vectors) + enter;
  return total;
}

static int64_t ways_of(const cg_target *t) { // a way of the first cache is a page
  return t->l1_bytes / 4096 < 4 ? 4 : t->l1_bytes / 4096;
}

// Rows of a that a tile may read in place. Rows that lie a multiple of a large power of two apart
// share sets of the first cache: they must leave room there for the passing lines of b.
static int64_t most_direct_rows(const mm_problem *p) {
  int64_t row, k;
  if (!mm_is_flat(&p->a.x, &row) || !mm_is_flat(&p->a.k, &k) || k != 1 || p->k < 256)
    return p->m;
  int64_t bytes = row * p->elem_bytes, power = bytes & -bytes;
  int64_t sets = power >= 4096 ? 1 : 4096 / (power < 64 ? 64 : power);
  return sets * (ways_of(p->target) * 2 / 3);
}

static void choose_tile(const mm_problem *p, mm_plan *plan) {
  int registers = p->target->vector_registers;
  int64_t direct = most_direct_rows(p);
  double best = 0;
  for (int vectors = 1; vectors <= MAX_VECTORS; vectors++) {
    if ((int64_t)(vectors - 1) * plan->lanes >= p->n)
      break;
    if (p->want_nv && vectors != p->want_nv)
      continue;
    // accumulators, a row of b, and one broadcast element of a
    int most = (registers - vectors - 1) / vectors;
    for (int rows = 1; rows <= most && rows <= p->m && rows <= direct; rows++) {
      if (p->want_mr && rows != p->want_mr)
        continue;
      double cycles = tiling_cycles(p, plan->lanes, rows, vectors);
      if (plan->mr && cycles >= best)
        continue;
      best = cycles;
      plan->mr = rows;
      plan->nv = vectors;
    }
  }
  plan->nr = (int64_t)plan->nv * plan->lanes;
  plan->row_tiles = ceil_div(p->m, plan->mr);
  plan->col_tiles = ceil_div(p->n, plan->nr);
  plan->tail_rows = (int)(p->m % plan->mr);
  plan->tail_cols = p->n % plan->nr;
  plan->tail_nv = (int)ceil_div(plan->tail_cols, plan->lanes);
}

// k in one piece while a panel of each operand fits a quarter of the second cache: streaming
// panels from there costs less than keeping sums in memory. Else equal pieces.
static void choose_k_blocks(const mm_problem *p, mm_plan *plan) {
  int64_t row = (plan->mr + plan->nr) * p->elem_bytes;
  int64_t most = p->target->l2_bytes / 4 / row;
  if (most < 256)
    most = 256;
  plan->k_blocks = ceil_div(p->k, most);
  plan->k_block = ceil_div(p->k, plan->k_blocks);
  plan->k_blocks = ceil_div(p->k, plan->k_block);
}

// Few tiles and a long k: pieces of k become tasks.
static void consider_split_k(const mm_problem *p, mm_plan *plan) {
  int64_t tiles = p->batch * plan->row_tiles * plan->col_tiles;
  double cycles = (double)p->k * tile_cycles(plan->mr, plan->nv);
  if (tiles > 4 || cycles < 8.0 * BARRIER_CYCLES)
    return;
  int64_t pieces = (int64_t)(cycles / (2.0 * BARRIER_CYCLES));
  pieces = pieces > 16 ? 16 : pieces;
  if (pieces < plan->k_blocks)
    pieces = plan->k_blocks;
  plan->split_k = true;
  plan->k_block = ceil_div(p->k, pieces);
  plan->k_blocks = ceil_div(p->k, plan->k_block);
}

// Lines that lie `stride` bytes apart fall on few sets of a cache when the stride is a multiple
// of a large power of two: `steps` of them then evict each other.
static bool conflicts(const cg_target *t, int64_t stride, int64_t steps) {
  int64_t power = stride & -stride;
  if (stride == 0 || power <= 64)
    return false;
  int64_t sets = 4096 / power;
  return steps > (sets < 1 ? 1 : sets) * ways_of(t);
}

// One step of k touches a new line of the operand, which other tiles of the task want again: the
// lines must stay in the first two caches, and their pages in the TLB.
static bool k_walk_hurts(const mm_problem *p, int64_t k_stride) {
  int64_t bytes = k_stride * p->elem_bytes;
  if (bytes < 1024)
    return false;
  return p->k * bytes > p->target->l2_bytes / 4 ||
         (conflicts(p->target, bytes, p->k) && p->k > 128);
}

static bool must_pack_a(const mm_problem *p, const mm_plan *plan) {
  int64_t row, k;
  if (!mm_is_flat(&p->a.x, &row) || !mm_is_flat(&p->a.k, &k))
    return true;
  return k != 1 && k_walk_hurts(p, k) && p->n > 2 * plan->nr;
}

static bool must_pack_b(const mm_problem *p, const mm_plan *plan) {
  int64_t col, k;
  if (!mm_is_flat(&p->b.x, &col) || !mm_is_flat(&p->b.k, &k) || (col != 1 && p->n > 1))
    return true;
  // The end of a row that is no whole vector is packed by each task: only if that is small.
  bool ragged = p->n % plan->lanes != 0;
  if (ragged && (plan->k_blocks > 1 || p->k * plan->lanes * plan->nv * p->elem_bytes > 65536))
    return true;
  return k_walk_hurts(p, k) && p->m > 2 * plan->mr;
}

// Cycles to copy one element into a panel.
static double pack_cost(const mm_axes *x, const mm_axes *k) {
  int64_t xs, ks;
  bool x_flat = mm_is_flat(x, &xs), flat = mm_is_flat(k, &ks) && x_flat;
  if (xs == 1 || (flat && ks == 1 && x->num == 0))
    return 0.15;
  return flat && ks == 1 ? 0.4 : 2.0;
}

typedef struct grid_cost {
  double score;
  int64_t workspace;
} grid_cost;

// Estimated cycles on a team: shared packing, a barrier, then the longest thread's tasks.
static double team_cycles(const mm_problem *p, const mm_plan *g, int team) {
  double tile = tile_cycles(g->mr, g->nv) * (double)p->k;
  int64_t tasks = p->batch * g->group_rows * g->group_cols;
  double rows = (double)ceil_div(g->row_tiles, g->group_rows);
  double cols = (double)ceil_div(g->col_tiles, g->group_cols);
  double a_panel = pack_cost(&p->a.x, &p->a.k) * g->mr * (double)p->k;
  double b_panel = pack_cost(&p->b.x, &p->b.k) * (double)(g->nr * p->k);
  double task = rows * cols * tile + TASK_CYCLES, phase0 = 0;
  if (g->a == MM_LOCAL)
    task += rows * a_panel;
  if (g->b == MM_LOCAL)
    task += cols * b_panel;
  if (g->a == MM_SHARED)
    phase0 += (double)(p->batch * g->row_tiles) * a_panel;
  if (g->b == MM_SHARED)
    phase0 += (double)(p->batch * g->col_tiles) * b_panel;
  double shared = phase0 > 0 ? phase0 / team + BARRIER_CYCLES : 0;
  return shared + (double)ceil_div(tasks, team) * task;
}

static int64_t local_bytes(const mm_problem *p, const mm_plan *g) {
  int64_t rows = ceil_div(g->row_tiles, g->group_rows);
  int64_t elems = g->mr * g->nr;
  if (g->a == MM_LOCAL)
    elems += rows * g->mr * (p->k + 16);
  bool ragged = g->b == MM_DIRECT && g->tail_cols % g->lanes != 0;
  if ((g->b == MM_LOCAL && !g->b_in_workspace) || ragged)
    elems += g->nr * p->k;
  return elems * p->elem_bytes;
}

// Small teams are what we tune for; the rest keeps larger ones busy.
static double score(const mm_problem *p, const mm_plan *g) {
  return team_cycles(p, g, 2) + team_cycles(p, g, 1) * 0.25 + team_cycles(p, g, 8) * 0.5;
}

static void try_grid(const mm_problem *p, const mm_plan *base, mm_plan *best, double *best_score) {
  bool pieces = base->k_blocks > 1;
  for (int a = 0; a < 2; a++)
    for (int b = 0; b < 2; b++) {
      mm_plan g = *base;
      g.a = base->a == MM_DIRECT ? MM_DIRECT : a ? MM_SHARED : MM_LOCAL;
      g.b = base->b == MM_DIRECT ? MM_DIRECT : b ? MM_SHARED : MM_LOCAL;
      g.b_in_workspace =
          g.b == MM_LOCAL && g.group_rows == 1 && g.nr * p->k * p->elem_bytes > LOCAL_BYTES / 4;
      if (pieces && (g.a == MM_LOCAL || g.b == MM_LOCAL))
        continue;
      if (local_bytes(p, &g) > LOCAL_BYTES) // never when both are shared: one tile remains
        continue;
      double s = score(p, &g);
      if (*best_score < 0 || s < *best_score) {
        *best = g;
        *best_score = s;
      }
    }
}

static void choose_grid(const mm_problem *p, mm_plan *plan) {
  int64_t most_rows = plan->row_tiles < MAX_GROUPS ? plan->row_tiles : MAX_GROUPS;
  int64_t most_cols = plan->col_tiles < MAX_GROUPS ? plan->col_tiles : MAX_GROUPS;
  plan->a = must_pack_a(p, plan) ? MM_SHARED : MM_DIRECT;
  plan->b = must_pack_b(p, plan) ? MM_SHARED : MM_DIRECT;
  mm_plan base = *plan;
  double best_score = -1;
  for (int64_t rows = 1; rows <= most_rows; rows++)
    for (int64_t cols = 1; cols <= most_cols; cols++) {
      base.group_rows = rows;
      base.group_cols = cols;
      try_grid(p, &base, plan, &best_score);
    }
  BUG_IF(best_score < 0, "no task grid for a matmul of %lld x %lld x %lld", (long long)p->m,
         (long long)p->n, (long long)p->k);
}

// Inside a task, tiles are visited in blocks: the panels of b of one block stay in the second
// cache while rows pass; with k in pieces, the sums of a block wait on the stack.
static void choose_blocks(const mm_problem *p, mm_plan *plan) {
  int64_t rows = ceil_div(plan->row_tiles, plan->group_rows);
  int64_t cols = ceil_div(plan->col_tiles, plan->group_cols);
  int64_t fit = p->target->l2_bytes / 2 / (plan->k_block * plan->nr * p->elem_bytes);
  plan->block_cols = fit < 1 ? 1 : fit < cols ? fit : cols;
  if (plan->b == MM_LOCAL && !plan->b_in_workspace)
    plan->block_cols = 1;
  plan->block_rows = rows;
  if (plan->k_blocks == 1 || plan->split_k)
    return;
  int64_t tiles = SUMS_BYTES / (plan->mr * plan->nr * p->elem_bytes);
  plan->block_cols = plan->block_cols > 4 ? 4 : plan->block_cols;
  int64_t waiting = tiles / plan->block_cols;
  plan->block_rows = waiting < 1 ? 1 : waiting < rows ? waiting : rows;
}

static int64_t pack_tasks(const mm_problem *p, const mm_operand *o, int64_t panels) {
  if (!mm_packs_slices(o))
    return panels;
  return p->k < MAX_SLICES ? p->k : MAX_SLICES;
}

// Panels start one line further on than a multiple of a large power of two: a slice of k of all of
// them is written in one go and must not fall on one set of the caches.
static int64_t panel_elems(int64_t elems) {
  return ceil_div(elems, 1024) * 1024 + 16;
}

static void lay_out_phases(const mm_problem *p, mm_plan *plan) {
  int64_t pack = 0, elems = 0;
  plan->a_panel = panel_elems(plan->mr * p->k);
  plan->b_panel = panel_elems(plan->nr * p->k);
  if (plan->a == MM_SHARED) {
    plan->a_pack_tasks = pack_tasks(p, &p->a, plan->row_tiles);
    elems += p->batch * plan->row_tiles * plan->a_panel;
  }
  plan->b_offset = elems;
  if (plan->b == MM_SHARED)
    plan->b_pack_tasks = pack_tasks(p, &p->b, plan->col_tiles);
  if (plan->b == MM_SHARED || plan->b_in_workspace)
    elems += p->batch * plan->col_tiles * plan->b_panel;
  pack = p->batch * (plan->a_pack_tasks + plan->b_pack_tasks);
  plan->partial_offset = elems * p->elem_bytes;
  int64_t tiles = p->batch * plan->row_tiles * plan->col_tiles;
  if (plan->split_k)
    elems += plan->k_blocks * tiles * plan->mr * plan->nr;
  plan->workspace = elems * p->elem_bytes;
  plan->num_phases = 0;
  if (pack)
    plan->tasks[plan->num_phases++] = pack;
  plan->tasks[plan->num_phases++] =
      p->batch * plan->group_rows * plan->group_cols * (plan->split_k ? plan->k_blocks : 1);
  if (plan->split_k)
    plan->tasks[plan->num_phases++] = tiles;
}

void mm_make_plan(const mm_problem *p, mm_plan *plan) {
  *plan = (mm_plan){.lanes = p->target->vector_bytes / p->elem_bytes};
  choose_tile(p, plan);
  choose_k_blocks(p, plan);
  consider_split_k(p, plan);
  choose_grid(p, plan);
  choose_blocks(p, plan);
  lay_out_phases(p, plan);
}
