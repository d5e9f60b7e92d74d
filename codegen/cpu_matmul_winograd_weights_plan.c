// cpu_matmul_winograd_weights_plan.c: which products are gradients of 3 x 3 filters, and how
// cpu_matmul_winograd_weights.c takes them: patches of a block, register tiles, pieces of all patches; and the cycles by
// which this is decided, and by which it is compared with a product of all windows.
#include "codegen/cpu_matmul.h"

enum {
  LEAST_PATCHES = 6, // of a part of a line
  MOST_PATCHES = 96, // of a block
  MOST_VECTORS = 4,  // of a register tile
  MOST_PIECES = 16,
};
// Cycles: of a patch, for a vector of its channels and for one of its gradients; of a register tile's beginning; of a vector
// of sums that is loaded and stored; to make a vector of nine sums of 16; of a task.
static const double PATCH_CYCLES = 24, GRADIENT_CYCLES = 22, ENTER_CYCLES = 8, SUM_CYCLES = 1.5,
                    FILTER_CYCLES = 60, TASK_CYCLES = 60;
// So much faster it must be.
static const double GAIN = 1.1;

static int lanes_of(const mm_problem *p) {
  return p->target->vector_bytes / p->elem_bytes;
}

// Elements from a place to the one that is `places` places further on; 0: there is none, or no such step in its axes.
static int64_t step_of(const mm_axes *k, int64_t places) {
  int64_t below = 1;
  for (int i = k->num - 1; i >= 0; i--) {
    if (places >= below && places < below * k->size[i])
      return places % below ? 0 : k->stride[i] * (places / below);
    below *= k->size[i];
  }
  return 0;
}

bool mm_find_places(const mm_problem *p, mm_places *x) {
  if (!mm_find_windows(&p->a.k, &p->a.x, &x->windows))
    return false;
  const mm_windows *w = &x->windows;
  x->place = step_of(&p->b.k, 1);
  x->line = step_of(&p->b.k, w->width);
  x->image = step_of(&p->b.k, w->width * w->height);
  return x->place > 0 && x->line > 0 && (w->images == 1 || x->image > 0);
}

bool mm_suits_winograd_weights(const mm_problem *p) {
  mm_places x;
  int64_t n;
  return p->elem_bytes == 4 && !p->pairs && !p->a.convert && !p->b.convert && !p->bands.limited &&
         p->target->vector_bytes >= 16 && mm_is_flat(&p->b.x, &n) && n == 1 &&
         mm_find_places(p, &x) && x.windows.channels >= lanes_of(p) && p->n >= lanes_of(p);
}

static int64_t all_lines(const mm_windows *w) {
  return w->images * mm_patch_lines(w);
}

static int64_t stack_bytes(const mm_problem *p, const mm_windows *w, const mm_plan *g) {
  return MM_PLANES * (mm_patch_pitch(g, w->channels) + mm_patch_pitch(g, g->nr)) * p->elem_bytes;
}

static int64_t sums_bytes(const mm_problem *p, const mm_plan *g) {
  return p->batch * g->k_blocks * g->col_tiles * g->b_panel * p->elem_bytes;
}

// --- cycles ---------------------------------------------------------------------------------------
// A tile of columns.
static double columns_cycles(const mm_windows *w, const mm_plan *g, double patches, int vectors) {
  double tiles = patches * mm_rows_cycles(w->channels, g->patch_rows, vectors) +
                 (double)ir_ceil_div(w->channels, g->patch_rows) * ENTER_CYCLES +
                 (double)(w->channels * vectors) * SUM_CYCLES;
  return MM_PLANES * tiles + patches * vectors * GRADIENT_CYCLES;
}

static double block_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g,
                           double patches, int64_t cols) {
  double channels = (double)ir_ceil_div(w->channels, g->lanes);
  int64_t full = p->n / g->nr < cols ? p->n / g->nr : cols;
  return patches * channels * PATCH_CYCLES + (double)full * columns_cycles(w, g, patches, g->nv) +
         (full < cols ? columns_cycles(w, g, patches, g->tail_nv) : 0);
}

// Of a thread that has so many tasks, each of so many tiles of columns.
static double tasks_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g,
                           int64_t tasks, int64_t cols) {
  int64_t lines = ir_ceil_div(all_lines(w), g->k_blocks);
  double blocks = (double)(ir_ceil_div(lines, g->patch_lines) *
                           ir_ceil_div(mm_patches_of_line(w), g->patch_wide));
  double patches = (double)(lines * mm_patches_of_line(w)) / blocks;
  return (double)tasks * (blocks * block_cycles(p, w, g, patches, cols) + TASK_CYCLES);
}

static double sums_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g) {
  double vectors = (double)(p->batch * w->channels * g->col_tiles * g->nv);
  return vectors * (FILTER_CYCLES + (double)(MM_PLANES * g->k_blocks) * SUM_CYCLES);
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
typedef struct choice {
  const mm_problem *p;
  const mm_windows *w;
  int64_t room; // bytes for the sums of all pieces
  mm_plan *plan;
  double cycles; // -1: there is none yet
} choice;

static void try_pieces(choice *c, mm_plan *g) {
  for (int64_t pieces = 1; pieces <= MOST_PIECES && pieces <= all_lines(c->w); pieces++) {
    g->k_blocks = pieces;
    if (sums_bytes(c->p, g) > (pieces > 1 ? c->room : 2 * c->room))
      return;
    double cycles = plan_cycles(c->p, c->w, g);
    if (c->cycles >= 0 && cycles >= c->cycles)
      continue;
    c->cycles = cycles;
    *c->plan = *g;
  }
}

static void try_block(choice *c, mm_plan *g, int64_t lines, int64_t wide) {
  g->patch_lines = lines, g->patch_wide = wide;
  g->patches = lines * wide;
  if (g->patches <= MOST_PATCHES && stack_bytes(c->p, c->w, g) <= mm_patch_room(c->p))
    try_pieces(c, g);
}

static void try_blocks(choice *c, mm_plan *g) {
  int64_t wide = mm_patches_of_line(c->w);
  for (int64_t lines = 1; lines <= all_lines(c->w) && lines * wide <= MOST_PATCHES; lines++)
    try_block(c, g, lines, wide);
  for (int64_t parts = 2; wide / parts >= LEAST_PATCHES; parts++)
    try_block(c, g, 1, ir_ceil_div(wide, parts));
}

static void try_columns(choice *c, mm_plan *g, int vectors) {
  const mm_problem *p = c->p;
  g->nv = vectors;
  g->nr = (int64_t)vectors * g->lanes;
  g->b_panel = MM_PLANES * c->w->channels * g->nr;
  g->patch_rows = mm_best_rows(p, c->w->channels, vectors);
  g->col_tiles = ir_ceil_div(p->n, g->nr);
  g->tail_cols = p->n % g->nr;
  g->tail_nv = (int)ir_ceil_div(g->tail_cols, g->lanes);
  for (int64_t cols = 1; cols <= g->col_tiles; cols++) {
    g->group_cols = cols;
    g->block_cols = ir_ceil_div(g->col_tiles, cols);
    try_blocks(c, g);
  }
}

static void set_phases(const mm_problem *p, const mm_windows *w, mm_plan *g) {
  g->workspace = sums_bytes(p, g);
  g->num_phases = 2;
  g->tasks[0] = p->batch * g->group_cols * g->k_blocks;
  g->tasks[1] = p->batch * g->col_tiles * ir_ceil_div(w->channels, MM_SUM_CHANNELS);
}

// The sums of all pieces are at most half of what a and b are in memory: as of others (pieces_of_long_k); those of a
// single piece are at most as much.
static int64_t room_for_sums(const mm_problem *p, const mm_windows *w) {
  int64_t places = w->images * w->height * w->width;
  return p->batch * places * (w->channels + p->n) * p->elem_bytes / 2;
}

double mm_plan_winograd_weights(const mm_problem *p, mm_plan *plan) {
  mm_places x;
  mm_find_places(p, &x);
  mm_plan g = {.winograd = true, .split_k = true, .a = MM_DIRECT, .b = MM_DIRECT};
  g.lanes = lanes_of(p);
  g.mr = (int)p->m, g.row_tiles = g.group_rows = g.block_rows = 1;
  g.k_block = p->k;
  choice c = {p, &x.windows, room_for_sums(p, &x.windows), plan, -1};
  for (int vectors = 1; vectors <= MOST_VECTORS; vectors++)
    if ((p->want_nv == 0 || p->want_nv == vectors) && (int64_t)(vectors - 1) * g.lanes < p->n)
      try_columns(&c, &g, vectors);
  if (c.cycles < 0)
    return -1;
  set_phases(p, &x.windows, plan);
  return c.cycles * GAIN;
}
