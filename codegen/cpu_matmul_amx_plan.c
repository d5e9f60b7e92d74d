// cpu_matmul_amx_plan.c: how a matrix unit takes a product: groups of tiles, blocks of those, pieces of k; and the
// cycles by which this is decided, and by which it is compared with what vectors take.
#include "codegen/cpu_matmul_amx.h"

enum {
  STACK_SHARE = 640 << 10, // of a thread's stack (runtime/team.c), for panels and sums
  MOST_STEPS = 512,        // packed at a time
  MOST_BLOCK = 16,         // columns of tiles taken together
  MOST_GROUPS = 48,
  MOST_PIECES = 16,      // of k, as tasks
  MOST_SPLIT_TILES = 64, // whose sums, of all pieces, stay small
};
// Cycles: of an instruction, with its load, as between a core alone and a shared one; of a tile, until its first sums
// are ready and its last are stored; of sums that wait; of sums to be added to others; of a task.
static const double MULTIPLY_CYCLES = 40, TILE_CYCLES = 100, WAIT_CYCLES = 200, ADD_CYCLES = 250,
                    TASK_CYCLES = 400;

bool mm_suits_amx(const mm_problem *p) {
  amx_side s;
  return p->target->amx && p->elem_bytes == 4 && !p->pairs && p->m > 1 && p->n > 1 && p->k > 1 &&
         !(p->zeros == ZEROS_DATA && mm_may_list(p)) && mm_amx_find_side(&p->a, &s) &&
         mm_amx_find_side(&p->b, &s);
}

static int64_t stack_bytes(const mm_plan *g) {
  int64_t sums = mm_amx_sums_wait(g) ? g->block_rows * g->block_cols : 1;
  return (g->block_rows + g->block_cols) * mm_amx_panel_words(g) * 4 +
         sums * MM_AMX_TILE * MM_AMX_TILE * 4;
}

// As many tiles at a time as the stack holds, of a task that has so many: about as many rows as columns, each of which
// is packed again for each block of the others.
static void set_blocks(mm_plan *g, int64_t rows, int64_t cols) {
  g->block_cols = cols < MOST_BLOCK ? cols : MOST_BLOCK;
  g->block_rows = rows;
  while (stack_bytes(g) > STACK_SHARE) {
    bool narrow = g->block_cols > g->block_rows && g->block_cols > 1;
    *(narrow ? &g->block_cols : &g->block_rows) -= 1;
  }
}

// Tiles along a side, of which the last may be half as large.
static double tiles_of(int64_t size) {
  int64_t tail = size % MM_AMX_TILE;
  return (double)(size / MM_AMX_TILE) + (tail == 0 ? 0 : tail <= MM_AMX_TILE / 2 ? 0.5 : 1);
}

// A task that has so many of an item's tiles, and a piece of k.
static double task_cycles(const mm_problem *p, const mm_plan *g, int64_t rows, int64_t cols) {
  double share = (double)(rows * cols) / (double)(g->row_tiles * g->col_tiles);
  double blocks = (double)ir_ceil_div(g->k_block, MM_AMX_TILE);
  double multiply =
      tiles_of(p->m) * tiles_of(p->n) * share * blocks * 4 * MULTIPLY_CYCLES * g->share;
  double waits = (double)(ir_ceil_div(g->k_block, g->amx_steps) - 1) * WAIT_CYCLES;
  double pack_a =
      (double)(rows * ir_ceil_div(cols, g->block_cols)) * mm_amx_pack_cycles(&p->a, false);
  double pack_b =
      (double)(cols * ir_ceil_div(rows, g->block_rows)) * mm_amx_pack_cycles(&p->b, true);
  return multiply + (double)(rows * cols) * (TILE_CYCLES + waits) +
         (pack_a + pack_b) * blocks * MM_AMX_TILE * MM_AMX_TILE + TASK_CYCLES;
}

static int64_t pieces_of(const mm_plan *g) {
  return g->split_k ? g->k_blocks : 1;
}

static double team_cycles(const mm_problem *p, const mm_plan *g, int team) {
  int64_t tasks = p->batch * g->group_rows * g->group_cols * pieces_of(g),
          sums = p->batch * g->row_tiles * g->col_tiles;
  int64_t rows = ir_ceil_div(g->row_tiles, g->group_rows),
          cols = ir_ceil_div(g->col_tiles, g->group_cols);
  double cycles = (double)ir_ceil_div(tasks, team) * task_cycles(p, g, rows, cols);
  if (g->split_k)
    cycles += (double)(ir_ceil_div(sums, team) * g->k_blocks) * ADD_CYCLES + MM_BARRIER_CYCLES;
  return cycles;
}

static double plan_cycles(const mm_problem *p, const mm_plan *g) {
  double alone = (double)(p->batch * pieces_of(g)) * task_cycles(p, g, g->row_tiles, g->col_tiles);
  return mm_weigh_teams(p, g, alone, team_cycles(p, g, 2), team_cycles(p, g, 8));
}

static void lay_out_phases(const mm_problem *p, mm_plan *g) {
  int64_t tiles = p->batch * g->row_tiles * g->col_tiles;
  g->num_phases = g->split_k ? 2 : 1;
  g->tasks[0] = p->batch * g->group_rows * g->group_cols * pieces_of(g);
  g->tasks[1] = g->split_k ? tiles : 0;
  g->workspace = g->split_k ? g->k_blocks * tiles * MM_AMX_TILE * MM_AMX_TILE * 4 : 0;
}

// All of k, or pieces that are tasks of their own; what is packed of it at a time.
static void set_pieces(const mm_problem *p, mm_plan *g, int64_t pieces) {
  g->k_block = ir_ceil_div(ir_ceil_div(p->k, pieces), MM_AMX_TILE) * MM_AMX_TILE;
  g->k_blocks = ir_ceil_div(p->k, g->k_block);
  g->split_k = g->k_blocks > 1;
  int64_t times = ir_ceil_div(g->k_block, MOST_STEPS);
  g->amx_steps = ir_ceil_div(ir_ceil_div(g->k_block, times), MM_AMX_TILE) * MM_AMX_TILE;
}

static void try_groups(const mm_problem *p, mm_plan *g, mm_plan *plan, double *best) {
  for (int64_t rows = 1; rows <= g->row_tiles && rows <= MOST_GROUPS; rows++)
    for (int64_t cols = 1; cols <= g->col_tiles && cols <= MOST_GROUPS; cols++) {
      g->group_rows = rows, g->group_cols = cols;
      set_blocks(g, ir_ceil_div(g->row_tiles, rows), ir_ceil_div(g->col_tiles, cols));
      double cycles = plan_cycles(p, g);
      if (*best >= 0 && cycles >= *best)
        continue;
      *best = cycles;
      *plan = *g;
    }
}

double mm_plan_amx(const mm_problem *p, mm_plan *plan) {
  mm_plan g = {.amx = true, .mr = MM_AMX_TILE, .nr = MM_AMX_TILE, .a = MM_LOCAL, .b = MM_LOCAL};
  g.lanes = p->target->vector_bytes / p->elem_bytes;
  g.nv = MM_AMX_TILE / g.lanes;
  g.share = mm_band_share(p, MM_AMX_TILE, MM_AMX_TILE);
  g.row_tiles = ir_ceil_div(p->m, MM_AMX_TILE), g.col_tiles = ir_ceil_div(p->n, MM_AMX_TILE);
  g.tail_rows = (int)(p->m % MM_AMX_TILE), g.tail_cols = p->n % MM_AMX_TILE;
  bool may_split = p->batch * g.row_tiles * g.col_tiles <= MOST_SPLIT_TILES && !mm_limits_steps(p);
  double best = -1;
  for (int64_t pieces = 1;
       pieces == 1 || (may_split && pieces <= MOST_PIECES && p->k >= pieces * MOST_STEPS);
       pieces *= 2) {
    set_pieces(p, &g, pieces);
    try_groups(p, &g, plan, &best);
  }
  lay_out_phases(p, plan);
  return best;
}
