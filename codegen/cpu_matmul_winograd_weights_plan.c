// cpu_matmul_winograd_weights_plan.c: which products are gradients of 3 x 3 filters, and how
// cpu_matmul_winograd_weights.c takes them: patches of a block, register tiles, pieces of all patches; and the cycles by
// which this is decided, and by which it is compared with a product of all windows.
#include "codegen/cpu_matmul_patch.h"

enum { MOST_PIECES = 16 };
// Cycles: of a patch, for a vector of its gradients; of a vector of sums that is loaded and stored.
static const double GRADIENT_CYCLES = 22, SUM_CYCLES = 1.5;

bool mm_suits_winograd_weights(const mm_problem *p) {
  mm_places x;
  int64_t n;
  return mm_is_flat(&p->b.x, &n) && n == 1 && mm_find_places(p, &x) &&
         mm_takes_patches(p, &x.windows);
}

static int64_t all_lines(const mm_windows *w) {
  return w->images * mm_patch_lines(w);
}

static int64_t sums_bytes(const mm_problem *p, const mm_plan *g) {
  return p->batch * g->k_blocks * g->col_tiles * g->b_panel * p->elem_bytes;
}

// --- cycles ---------------------------------------------------------------------------------------
// A tile of columns.
static double columns_cycles(const mm_windows *w, const mm_plan *g, double patches, int vectors) {
  double tiles = patches * mm_rows_cycles(w->channels, g->patch_rows, vectors) +
                 (double)ir_ceil_div(w->channels, g->patch_rows) * MM_PATCH_ENTER_CYCLES +
                 (double)(w->channels * vectors) * SUM_CYCLES;
  return MM_PLANES * tiles + patches * vectors * GRADIENT_CYCLES;
}

static double block_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g,
                           double patches, int64_t cols) {
  return mm_patch_cycles(p, w, g, patches, cols, columns_cycles(w, g, patches, g->nv),
                         columns_cycles(w, g, patches, g->tail_nv));
}

// Of a thread that has so many tasks, each of so many tiles of columns.
static double tasks_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g,
                           int64_t tasks, int64_t cols) {
  int64_t lines = ir_ceil_div(all_lines(w), g->k_blocks);
  double blocks = (double)(ir_ceil_div(lines, g->patch_lines) *
                           ir_ceil_div(mm_patches_of_line(w), g->patch_wide));
  double patches = (double)(lines * mm_patches_of_line(w)) / blocks;
  return (double)tasks * (blocks * block_cycles(p, w, g, patches, cols) + MM_PATCH_TASK_CYCLES);
}

static double sums_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g) {
  double vectors = (double)(p->batch * w->channels * g->col_tiles * g->nv);
  return vectors * (MM_PATCH_FILTER_CYCLES + (double)(MM_PLANES * g->k_blocks) * SUM_CYCLES);
}

static double team_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g, int team) {
  int64_t tasks = ir_ceil_div(p->batch * g->group_cols * g->k_blocks, team);
  return tasks_cycles(p, w, g, tasks, g->block_cols) + sums_cycles(p, w, g) / team +
         MM_BARRIER_CYCLES;
}

static double plan_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g) {
  int64_t pieces =
      p->batch * g->k_blocks; // of which each group of columns makes the patches' numbers again
  double alone = tasks_cycles(p, w, g, pieces, g->col_tiles) +
                 tasks_cycles(p, w, g, pieces * (g->group_cols - 1), 0) + sums_cycles(p, w, g);
  return mm_weigh_teams(p, g, alone, team_cycles(p, w, g, 2), team_cycles(p, w, g, 8));
}

// --- the plan -------------------------------------------------------------------------------------
// The sums of all pieces are at most half of what a and b are in memory: as of others (pieces_of_long_k); those of a
// single piece are at most as much.
static bool have_room(const mm_patch_choice *c, const mm_plan *g) {
  const mm_windows *w = c->w;
  int64_t places = c->p->batch * w->images * w->height * w->width;
  int64_t memory = places * (w->channels + c->p->n) * c->p->elem_bytes;
  return sums_bytes(c->p, g) <= (g->k_blocks > 1 ? memory / 2 : memory);
}

static void try_block(mm_patch_choice *c, mm_plan *g) {
  g->patch_rows = mm_best_rows(c->p, c->w->channels, g->nv);
  if (mm_patch_bytes(c->w, g) > mm_patch_room(c->p))
    return;
  for (int64_t pieces = 1; pieces <= MOST_PIECES && pieces <= all_lines(c->w); pieces++) {
    g->k_blocks = pieces;
    if (have_room(c, g))
      mm_patch_take(c, g, plan_cycles(c->p, c->w, g));
  }
}

static void set_phases(const mm_problem *p, const mm_windows *w, mm_plan *g) {
  g->workspace = sums_bytes(p, g);
  g->num_phases = 2;
  g->tasks[0] = p->batch * g->group_cols * g->k_blocks;
  g->tasks[1] = p->batch * g->col_tiles * ir_ceil_div(w->channels, MM_SUM_CHANNELS);
}

double mm_plan_winograd_weights(const mm_problem *p, mm_plan *plan) {
  mm_places x;
  mm_find_places(p, &x);
  mm_plan g = {.winograd = true, .split_k = true, .a = MM_DIRECT, .b = MM_DIRECT, .k_block = p->k};
  g.mr = (int)p->m, g.row_tiles = g.group_rows = g.block_rows = 1;
  mm_patch_choice c = {p, &x.windows, plan, -1};
  mm_try_patches(&c, &g, try_block);
  if (c.cycles < 0)
    return -1;
  set_phases(p, &x.windows, plan);
  return c.cycles * MM_PATCH_GAIN;
}
