// cpu_matmul_winograd_plan.c: which products are those of 3 x 3 windows, how Winograd's algorithm
// (cpu_matmul_winograd.c) takes them: patches of a block, register tiles, tasks; and the cycles by which this is decided,
// and by which it is compared with a product of all windows.
#include "codegen/cpu_matmul.h"

enum {
  SIDE = 3,          // of a window
  LEAST_PATCHES = 6, // of a block: each reads all filters again
  MOST_PATCHES = 96,
  MOST_VECTORS = 4, // of a register tile
  MOST_GROUPS = 48,
};
// Cycles: of a patch, for a vector of its channels and for a vector of its results; of a filter's vector; for a byte of
// filters that a block reads; of a register tile's beginning and end; of a task.
static const double PATCH_CYCLES = 24, RESULT_CYCLES = 24, FILTER_CYCLES = 60, BYTE_CYCLES = 0.03,
                    ENTER_CYCLES = 8, TASK_CYCLES = 60;
// So much faster it must be: as estimated, and where filters in their other form, four times three quarters of what
// they are in memory, are more than the second cache holds.
static const double GAIN = 1.1, LARGE_GAIN = 1.4;

static int lanes_of(const mm_problem *p) {
  return p->target->vector_bytes / p->elem_bytes;
}

// k: lines of a window; its places and their channels, in one where channels are all that a place has.
static bool find_channels(const mm_axes *k, mm_windows *w) {
  if (k->num == 2 && k->size[0] == SIDE && k->size[1] % SIDE == 0 && k->stride[1] == 1) {
    w->channels = k->size[1] / SIDE;
    w->place = w->channels;
  } else if (k->num == 3 && k->size[0] == SIDE && k->size[1] == SIDE && k->stride[2] == 1) {
    w->channels = k->size[2];
    w->place = k->stride[1];
  } else {
    return false;
  }
  w->line = k->stride[0];
  return true;
}

bool mm_find_windows(const mm_axes *x, const mm_axes *k, mm_windows *w) {
  int last = x->num - 1;
  *w = (mm_windows){.images = 1};
  if (x->num < 2 || x->num > 3 || !find_channels(k, w))
    return false;
  w->width = x->size[last], w->height = x->size[last - 1];
  if (x->num == 3)
    w->images = x->size[0], w->image = x->stride[0];
  return x->stride[last] == w->place && x->stride[last - 1] == w->line;
}

bool mm_suits_winograd(const mm_problem *p) {
  mm_windows w;
  return p->elem_bytes == 4 && !p->pairs && !p->a.convert && !p->b.convert && !p->bands.limited &&
         p->target->vector_bytes >= 16 && mm_find_windows(&p->a.x, &p->a.k, &w) &&
         w.channels >= lanes_of(p) && p->n >= lanes_of(p);
}

// --- a block --------------------------------------------------------------------------------------
// Places of its results, at most: all lines of patches have two of them, but for the last of an odd height.
static int64_t rows_of_block(const mm_windows *w, const mm_plan *g) {
  int64_t wide = 2 * g->patch_wide < w->width ? 2 * g->patch_wide : w->width;
  bool images = w->height % 2 && !g->patch_within;
  return images ? g->patch_lines / mm_patch_lines(w) * w->height * wide : 2 * g->patch_lines * wide;
}

double mm_rows_cycles(int64_t all, int rows, int vectors) {
  int rest = (int)(all % rows);
  double cycles = (double)(all / rows) * mm_tile_cycles(rows, vectors);
  return cycles + (rest ? mm_tile_cycles(rest, vectors) : 0);
}

int mm_best_rows(const mm_problem *p, int64_t all, int vectors) {
  int most = (p->target->vector_registers - vectors - 1) / vectors, best = 1;
  for (int rows = 2; rows <= most && rows <= all; rows++)
    if (mm_rows_cycles(all, rows, vectors) < mm_rows_cycles(all, best, vectors))
      best = rows;
  return best;
}

static int64_t stack_bytes(const mm_problem *p, const mm_windows *w, const mm_plan *g) {
  return (MM_PLANES * (mm_patch_pitch(g, w->channels) + mm_patch_pitch(g, g->nr)) +
          g->mr * g->nr * g->block_cols + g->lanes) *
         p->elem_bytes;
}

static void set_block(const mm_problem *p, const mm_windows *w, mm_plan *g, int64_t lines,
                      int64_t wide) {
  mm_patch_kind kinds[MM_PATCH_KINDS];
  g->patch_lines = lines, g->patch_wide = wide;
  g->patch_within =
      wide < mm_patches_of_line(w) || (w->height % 2 && lines % mm_patch_lines(w) > 0);
  g->patches = lines * wide;
  g->patch_rows = mm_best_rows(p, g->patches, g->nv);
  g->mr = (int)rows_of_block(w, g);
  g->row_tiles = 0;
  for (int i = mm_patch_kinds(w, g, kinds) - 1; i >= 0; i--)
    g->row_tiles += kinds[i].num;
}

// --- cycles ---------------------------------------------------------------------------------------
// A tile of columns.
static double columns_cycles(const mm_windows *w, const mm_plan *g, int64_t patches, int vectors) {
  double tiles = mm_rows_cycles(patches, g->patch_rows, vectors) * (double)w->channels +
                 (double)ir_ceil_div(patches, g->patch_rows) * ENTER_CYCLES;
  double filters =
      (double)(w->channels * vectors * g->lanes * (int64_t)sizeof(float)) * BYTE_CYCLES;
  return MM_PLANES * (tiles + filters) + (double)patches * vectors * RESULT_CYCLES;
}

static double block_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g,
                           int64_t patches, int64_t cols) {
  double channels = (double)ir_ceil_div(w->channels, g->lanes);
  int64_t full = p->n / g->nr < cols ? p->n / g->nr : cols;
  return (double)patches * channels * PATCH_CYCLES +
         (double)full * columns_cycles(w, g, patches, g->nv) +
         (full < cols ? columns_cycles(w, g, patches, g->tail_nv) : 0);
}

static double filters_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g) {
  return (double)(p->batch * w->channels * g->col_tiles * g->nv) * FILTER_CYCLES;
}

static double team_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g, int team) {
  int64_t tasks = p->batch * g->group_rows * g->group_cols;
  double rows = (double)ir_ceil_div(g->row_tiles, g->group_rows);
  double task = rows * block_cycles(p, w, g, g->patches, g->block_cols) + TASK_CYCLES;
  double filters = filters_cycles(p, w, g);
  return (double)ir_ceil_div(tasks, team) * task + filters / team + MM_BARRIER_CYCLES;
}

static double plan_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g) {
  mm_patch_kind kinds[MM_PATCH_KINDS];
  double all = 0;
  for (int i = mm_patch_kinds(w, g, kinds) - 1; i >= 0; i--)
    all += (double)kinds[i].num * block_cycles(p, w, g, kinds[i].patches, g->col_tiles);
  double alone = (double)p->batch * all + filters_cycles(p, w, g);
  return mm_weigh_teams(p, g, alone, team_cycles(p, w, g, 2), team_cycles(p, w, g, 8));
}

// --- the plan -------------------------------------------------------------------------------------
typedef struct choice {
  const mm_problem *p;
  const mm_windows *w;
  mm_plan *plan;
  double cycles; // -1: there is none yet
} choice;

static void try_groups(choice *c, mm_plan *g) {
  for (int64_t rows = 1; rows <= g->row_tiles && rows <= MOST_GROUPS; rows++) {
    g->group_rows = rows;
    double cycles = plan_cycles(c->p, c->w, g);
    if (c->cycles >= 0 && cycles >= c->cycles)
      continue;
    c->cycles = cycles;
    *c->plan = *g;
  }
}

static void try_block(choice *c, mm_plan *g, int64_t lines, int64_t wide) {
  if (lines * wide < LEAST_PATCHES || lines * wide > MOST_PATCHES)
    return;
  set_block(c->p, c->w, g, lines, wide);
  if (stack_bytes(c->p, c->w, g) <= mm_patch_room(c->p))
    try_groups(c, g);
}

// Some lines; of an odd height, where they go beyond an image's, whole images. Or a part of a line.
static void try_blocks(choice *c, mm_plan *g) {
  int64_t high = mm_patch_lines(c->w), wide = mm_patches_of_line(c->w), all = c->w->images * high;
  for (int64_t lines = 1; lines <= all && lines * wide <= MOST_PATCHES; lines++)
    if (c->w->height % 2 == 0 || lines < high || lines % high == 0)
      try_block(c, g, lines, wide);
  for (int64_t parts = 2; wide / parts >= LEAST_PATCHES; parts++)
    try_block(c, g, 1, ir_ceil_div(wide, parts));
}

static void try_columns(choice *c, mm_plan *g) {
  for (int64_t cols = 1; cols <= g->col_tiles && cols <= MOST_GROUPS; cols++) {
    g->group_cols = cols;
    g->block_cols = ir_ceil_div(g->col_tiles, cols);
    try_blocks(c, g);
  }
}

static void set_vectors(const mm_problem *p, mm_plan *g, int vectors) {
  g->nv = vectors;
  g->nr = (int64_t)vectors * g->lanes;
  g->col_tiles = ir_ceil_div(p->n, g->nr);
  g->tail_cols = p->n % g->nr;
  g->tail_nv = (int)ir_ceil_div(g->tail_cols, g->lanes);
}

static void set_phases(const mm_problem *p, const mm_windows *w, mm_plan *g) {
  g->b_panel = MM_PLANES * w->channels * g->nr;
  g->b_pack_tasks = g->col_tiles * ir_ceil_div(w->channels, MM_FILTER_CHANNELS);
  g->workspace = p->batch * g->col_tiles * g->b_panel * p->elem_bytes;
  g->num_phases = 2;
  g->tasks[0] = p->batch * g->b_pack_tasks;
  g->tasks[1] = p->batch * g->group_rows * g->group_cols;
}

double mm_plan_winograd(const mm_problem *p, mm_plan *plan) {
  mm_windows w;
  mm_find_windows(&p->a.x, &p->a.k, &w);
  mm_plan g = {.winograd = true, .a = MM_DIRECT, .b = MM_SHARED};
  g.lanes = lanes_of(p);
  g.k_block = p->k, g.k_blocks = 1;
  choice c = {p, &w, plan, -1};
  for (int vectors = 1; vectors <= MOST_VECTORS; vectors++)
    if ((p->want_nv == 0 || p->want_nv == vectors) && (int64_t)(vectors - 1) * g.lanes < p->n) {
      set_vectors(p, &g, vectors);
      try_columns(&c, &g);
    }
  if (c.cycles < 0) // no block has room
    return -1;
  set_phases(p, &w, plan);
  return c.cycles * (plan->workspace > p->target->l2_bytes ? LARGE_GAIN : GAIN);
}
