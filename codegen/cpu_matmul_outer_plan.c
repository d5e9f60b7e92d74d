// cpu_matmul_outer_plan.c: how steps that go through lists of rows (cpu_matmul_outer.c) are taken: so many at a time, rows
// whose sums wait, tasks; and the cycles by which this is decided, and by which it is compared with tiles that keep
// sums in registers.
#include "codegen/cpu_matmul.h"

enum {
  MOST_VECTORS = 4, // of a row's sums
  MOST_TOGETHER = 4,
  ROWS = 16, // that tasks are made of
  MOST_GROUPS = 48,
};
// Cycles: of a step, before its columns are looked at; to copy a vector of them; to find what is not 0 in a vector of
// elements, for each line of it, and, where no instruction puts the numbers together, for each element; of a row on
// the list, and to convert an element of it; of a vector of sums, from beginning to end; of a task.
static const double PIECE_CYCLES = 12, COPY_CYCLES = 1.5, LINE_CYCLES = 1, CHOICE_CYCLES = 6,
                    ELEM_CYCLES = 0.75, ROW_CYCLES = 2, CONVERT_CYCLES = 1.5, SUM_CYCLES = 2.5,
                    TASK_CYCLES = 60;

static int lanes_of(const mm_problem *p) {
  return p->target->vector_bytes / p->elem_bytes;
}

bool mm_suits_outer(const mm_problem *p) {
  int64_t row, k, col, b_k;
  bool samples = mm_is_flat(&p->a.x, &row) && mm_is_flat(&p->a.k, &k) && row == 1 && p->m > 1;
  bool in_rows = mm_is_flat(&p->b.x, &col) && mm_is_flat(&p->b.k, &b_k) && (col == 1 || p->n == 1);
  return p->zeros == ZEROS_DATA && mm_may_list(p) && samples && in_rows && !p->b.convert &&
         !p->pairs && p->target->vector_bytes >= 32 && p->n <= MOST_VECTORS * lanes_of(p);
}

static void set_tile(const mm_problem *p, mm_plan *g, int together) {
  g->mr = ROWS;
  g->nv = (int)ir_ceil_div(p->n, g->lanes);
  g->nr = (int64_t)g->nv * g->lanes;
  g->together = together;
  g->row_tiles = ir_ceil_div(p->m, g->mr), g->col_tiles = 1;
  g->tail_rows = (int)(p->m % g->mr), g->tail_cols = p->n % g->nr;
  g->tail_nv = g->tail_cols ? g->nv : 0;
  g->group_cols = g->block_cols = 1;
  g->k_block = p->k, g->k_blocks = 1;
}

// Tiles of rows whose sums wait, of all that a task has.
static void set_block(const mm_problem *p, mm_plan *g) {
  int64_t rows = ir_ceil_div(g->row_tiles, g->group_rows);
  int64_t most = MM_SUMS_BYTES / (g->mr * g->nr * p->elem_bytes);
  g->block_rows = rows < most ? rows : most;
}

// Of so many rows, for a few steps.
static double steps_cycles(const mm_problem *p, const mm_plan *g, double rows) {
  int s = g->together, lanes = p->target->vector_bytes / p->a.elem_bytes;
  double choice = p->target->vector_bytes == 64 ? CHOICE_CYCLES / 16 : ELEM_CYCLES;
  double list = s * LINE_CYCLES / lanes + choice;
  double products = s * g->nv / 2.0, loads = (s + g->nv) / 2.0, stores = g->nv;
  double row = products > loads ? products : loads;
  row = (stores > row ? stores : row) + ROW_CYCLES + (p->a.convert ? s * CONVERT_CYCLES : 0);
  return s * (PIECE_CYCLES + COPY_CYCLES * g->nv) + rows * (list + mm_samples_share(s) * row);
}

// A thread that has so many tasks, each of so many tiles of rows.
static double thread_cycles(const mm_problem *p, const mm_plan *g, int64_t tasks, int64_t rows) {
  int64_t blocks = ir_ceil_div(rows, g->block_rows);
  double block = (double)(rows * g->mr) / (double)blocks;
  double steps = (double)p->k / g->together * steps_cycles(p, g, block);
  double sums = block * g->nv * SUM_CYCLES;
  return (double)tasks * ((double)blocks * (steps + sums) + TASK_CYCLES);
}

static double team_cycles(const mm_problem *p, const mm_plan *g, int team) {
  int64_t tasks = p->batch * g->group_rows;
  return thread_cycles(p, g, ir_ceil_div(tasks, team), ir_ceil_div(g->row_tiles, g->group_rows));
}

static double plan_cycles(const mm_problem *p, const mm_plan *g) {
  double alone = thread_cycles(p, g, p->batch, g->row_tiles);
  return mm_weigh_teams(p, g, alone, team_cycles(p, g, 2), team_cycles(p, g, 8));
}

static void try_groups(const mm_problem *p, mm_plan *g, mm_plan *plan, double *best) {
  for (int64_t rows = 1; rows <= g->row_tiles && rows <= MOST_GROUPS; rows++) {
    g->group_rows = rows;
    set_block(p, g);
    double cycles = plan_cycles(p, g);
    if (*best >= 0 && cycles >= *best)
      continue;
    *best = cycles;
    *plan = *g;
  }
}

// Registers for all steps of b, a row's sums, and an element of a.
static bool fits(const mm_problem *p, const mm_plan *g) {
  return g->nv * (g->together + 1) + 1 <= p->target->vector_registers;
}

double mm_plan_outer(const mm_problem *p, mm_plan *plan) {
  mm_plan g = {.outer = true, .a = MM_DIRECT, .b = MM_PIECES};
  g.lanes = lanes_of(p);
  double best = -1;
  for (int together = 1; together <= MOST_TOGETHER; together *= 2) {
    set_tile(p, &g, together);
    if (fits(p, &g))
      try_groups(p, &g, plan, &best);
  }
  plan->num_phases = 1;
  plan->tasks[0] = p->batch * plan->group_rows;
  return best;
}
