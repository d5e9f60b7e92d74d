// cpu_matmul_winograd_plan.c: which products are those of 3 x 3 windows, how Winograd's algorithm
// (cpu_matmul_winograd.c) takes them: patches of a block, register tiles, tasks; and the cycles by which this is decided,
// and by which it is compared with a product of all windows.
#include "codegen/cpu_matmul_patch.h"

enum { MOST_GROUPS = 48 }; // of rows
// Cycles: of a patch, for a vector of its results; for a byte of filters that a block reads.
static const double RESULT_CYCLES = 24, BYTE_CYCLES = 0.03;
// So much faster it must be where filters in their other form, 16 numbers for nine, are more than the second cache holds.
static const double LARGE_GAIN = 1.4;

bool mm_suits_winograd(const mm_problem *p) {
  mm_windows w;
  return mm_find_windows(&p->a.x, &p->a.k, &w) && mm_takes_patches(p, &w);
}

// --- a block --------------------------------------------------------------------------------------
// Places of its results, at most: all lines of patches have two of them, but for the last of an odd height.
static int64_t rows_of_block(const mm_windows *w, const mm_plan *g) {
  int64_t wide = 2 * g->patch_wide < w->width ? 2 * g->patch_wide : w->width;
  bool images = w->height % 2 && !g->patch_within;
  return images ? g->patch_lines / mm_patch_lines(w) * w->height * wide : 2 * g->patch_lines * wide;
}

static int64_t stack_bytes(const mm_windows *w, const mm_plan *g) {
  int64_t sums = g->mr * g->nr * g->block_cols + g->lanes;
  return mm_patch_bytes(w, g) + sums * (int64_t)sizeof(float);
}

static void set_block(const mm_problem *p, const mm_windows *w, mm_plan *g) {
  mm_patch_kind kinds[MM_PATCH_KINDS];
  g->patch_within = g->patch_wide < mm_patches_of_line(w) ||
                    (w->height % 2 && g->patch_lines % mm_patch_lines(w) > 0);
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
                 (double)ir_ceil_div(patches, g->patch_rows) * MM_PATCH_ENTER_CYCLES;
  double filters =
      (double)(w->channels * vectors * g->lanes * (int64_t)sizeof(float)) * BYTE_CYCLES;
  return MM_PLANES * (tiles + filters) + (double)patches * vectors * RESULT_CYCLES;
}

static double block_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g,
                           int64_t patches, int64_t cols) {
  return mm_patch_cycles(p, w, g, (double)patches, cols, columns_cycles(w, g, patches, g->nv),
                         columns_cycles(w, g, patches, g->tail_nv));
}

static double filters_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g) {
  return (double)(p->batch * w->channels * g->col_tiles * g->nv) * MM_PATCH_FILTER_CYCLES;
}

static double team_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g, int team) {
  int64_t tasks = p->batch * g->group_rows * g->group_cols;
  double rows = (double)ir_ceil_div(g->row_tiles, g->group_rows);
  double task = rows * block_cycles(p, w, g, g->patches, g->block_cols) + MM_PATCH_TASK_CYCLES;
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
// An odd height goes on in the next image only after whole images.
static void try_block(mm_patch_choice *c, mm_plan *g) {
  int64_t high = mm_patch_lines(c->w);
  if (c->w->height % 2 && g->patch_lines > high && g->patch_lines % high)
    return;
  set_block(c->p, c->w, g);
  if (stack_bytes(c->w, g) > mm_patch_room(c->p))
    return;
  for (int64_t rows = 1; rows <= g->row_tiles && rows <= MOST_GROUPS; rows++) {
    g->group_rows = rows;
    mm_patch_take(c, g, plan_cycles(c->p, c->w, g));
  }
}

static void set_phases(const mm_problem *p, const mm_windows *w, mm_plan *g) {
  g->b_pack_tasks = g->col_tiles * ir_ceil_div(w->channels, MM_FILTER_CHANNELS);
  g->workspace = p->batch * g->col_tiles * g->b_panel * p->elem_bytes;
  g->num_phases = 2;
  g->tasks[0] = p->batch * g->b_pack_tasks;
  g->tasks[1] = p->batch * g->group_rows * g->group_cols;
}

double mm_plan_winograd(const mm_problem *p, mm_plan *plan) {
  mm_windows w;
  mm_find_windows(&p->a.x, &p->a.k, &w);
  mm_plan g = {.winograd = true, .a = MM_DIRECT, .b = MM_SHARED, .k_block = p->k, .k_blocks = 1};
  mm_patch_choice c = {p, &w, plan, -1};
  mm_try_patches(&c, &g, try_block);
  if (c.cycles < 0) // no block has room
    return -1;
  set_phases(p, &w, plan);
  return c.cycles * (plan->workspace > p->target->l2_bytes ? LARGE_GAIN : MM_PATCH_GAIN);
}
