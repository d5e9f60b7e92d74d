// cpu_matmul_single_plan.c: how rows that each go through a list of their own (cpu_matmul_single.c) are taken: columns of
// a tile, steps of a piece, rows whose sums wait, tasks; and the cycles by which this is decided, and by which it is
// compared with tiles of several rows.
#include "codegen/cpu_matmul.h"

enum {
  MOST_VECTORS = 8, // of a row: as many sums as hide an FMA behind the next ones
  LEAST_VECTORS = 4,
  MOST_GROUPS = 48,
};
// Of the first cache, a piece of b: some of its steps are no row's.
static const double CACHE_SHARE = 1.25;
// Cycles: to find a vector's steps that are not 0; to copy a vector of b; of a row's piece, until its first sum goes on and
// behind its last step, which no processor foresees; of a task.
static const double LIST_CYCLES = 5, COPY_CYCLES = 1.5, ENTER_CYCLES = 30, TASK_CYCLES = 60;

bool mm_suits_single(const mm_problem *p) {
  int64_t row, k, col, b_k;
  bool samples = mm_is_flat(&p->a.x, &row) && mm_is_flat(&p->a.k, &k) && k == 1;
  bool in_rows = mm_is_flat(&p->b.x, &col) && mm_is_flat(&p->b.k, &b_k) && col == 1;
  int64_t lanes = p->target->vector_bytes / p->elem_bytes;
  return p->zeros == ZEROS_DATA && mm_may_list(p) && samples && in_rows && !p->b.convert &&
         !p->pairs && p->target->vector_bytes >= 32 && p->n >= LEAST_VECTORS * lanes;
}

static void set_tile(const mm_problem *p, mm_plan *g, int vectors) {
  int most_rows = p->target->vector_registers >= 32 ? 4 : 3; // whose sums are four vectors each
  g->mr = p->m < most_rows ? 1 : most_rows;
  g->nv = vectors;
  g->nr = (int64_t)vectors * g->lanes;
  g->row_tiles = ir_ceil_div(p->m, g->mr), g->col_tiles = ir_ceil_div(p->n, g->nr);
  g->tail_rows = (int)(p->m % g->mr), g->tail_cols = p->n % g->nr;
  g->tail_nv = (int)ir_ceil_div(g->tail_cols, g->lanes);
  g->share = mm_list_share(p, 1);
  int64_t step;
  bool in_rows = mm_is_flat(&p->b.k, &step) && step == g->nr && p->n == g->nr;
  g->b = in_rows ? MM_DIRECT : MM_PIECES; // a tile of all columns is a panel as it lies
  int64_t most = (int64_t)(CACHE_SHARE * (double)p->target->l1_bytes) / (g->nr * p->elem_bytes);
  int64_t pieces = ir_ceil_div(p->k, most), of_list = p->target->vector_bytes / p->a.elem_bytes;
  g->k_block = ir_ceil_div(ir_ceil_div(p->k, pieces), of_list) * of_list;
  g->k_blocks = ir_ceil_div(p->k, g->k_block);
}

bool mm_joins_tasks(const mm_plan *plan) {
  return plan->single && plan->by_columns;
}

// Groups of rows whose sums wait, of all that a thread may have.
static void set_block(const mm_problem *p, mm_plan *g) {
  int64_t rows = g->by_columns ? g->row_tiles : ir_ceil_div(g->row_tiles, g->group_rows);
  int64_t most = MM_SUMS_BYTES / (g->mr * g->nr * p->elem_bytes);
  g->block_rows = rows < most ? rows : most;
  g->block_cols = 1;
}

static double row_cycles(const mm_problem *p, const mm_plan *g) {
  return (double)p->k * (g->share * mm_tile_cycles(1, g->nv) + LIST_CYCLES / g->lanes) +
         (double)g->k_blocks * (ENTER_CYCLES + 2.0 * g->nv);
}

// A thread that has so many tasks, each of so many groups of rows and tiles of columns.
static double thread_cycles(const mm_problem *p, const mm_plan *g, int64_t tasks, int64_t rows,
                            int64_t cols) {
  int64_t joint = !mm_joins_tasks(g) ? 1 : tasks < g->group_rows ? tasks : g->group_rows;
  int64_t pieces = ir_ceil_div(tasks, joint) * ir_ceil_div(joint * rows, g->block_rows) * cols;
  return (double)(tasks * rows * g->mr * cols) * row_cycles(p, g) +
         (double)(pieces * p->k * g->nv) * COPY_CYCLES + (double)tasks * TASK_CYCLES;
}

static double team_cycles(const mm_problem *p, const mm_plan *g, int team) {
  int64_t tasks = p->batch * g->group_rows * g->group_cols;
  return thread_cycles(p, g, ir_ceil_div(tasks, team), ir_ceil_div(g->row_tiles, g->group_rows),
                       ir_ceil_div(g->col_tiles, g->group_cols));
}

static double plan_cycles(const mm_problem *p, const mm_plan *g) {
  double alone = thread_cycles(p, g, p->batch, g->row_tiles, g->col_tiles);
  return mm_weigh_teams(p, g, alone, team_cycles(p, g, 2), team_cycles(p, g, 8));
}

static void try_groups(const mm_problem *p, mm_plan *g, mm_plan *plan, double *best) {
  for (int64_t rows = 1; rows <= g->row_tiles && rows <= MOST_GROUPS; rows++)
    for (int64_t cols = 1; cols <= g->col_tiles && cols <= MOST_GROUPS; cols++) {
      g->group_rows = rows, g->group_cols = cols;
      g->by_columns = rows > 1 && p->batch == 1;
      set_block(p, g);
      double cycles = plan_cycles(p, g);
      if (*best >= 0 && cycles >= *best)
        continue;
      *best = cycles;
      *plan = *g;
    }
}

double mm_plan_single(const mm_problem *p, mm_plan *plan) {
  mm_plan g = {.single = true, .a = MM_DIRECT};
  g.lanes = p->target->vector_bytes / p->elem_bytes;
  double best = -1;
  for (int vectors = LEAST_VECTORS; vectors <= MOST_VECTORS; vectors++)
    if ((int64_t)(vectors - 1) * g.lanes < p->n) {
      set_tile(p, &g, vectors);
      try_groups(p, &g, plan, &best);
    }
  plan->num_phases = 1;
  plan->tasks[0] = p->batch * plan->group_rows * plan->group_cols;
  return best;
}
