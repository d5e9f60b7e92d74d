// cpu_matmul_patch_plan.c: which products are of 3 x 3 windows, how their patches are taken, block by block, and what plans for
// both of Winograd's kernels (cpu_matmul_patch.h) have in common.
#include "codegen/cpu_matmul_patch.h"

enum {
  SIDE = 3,          // of a window
  LEAST_PATCHES = 6, // of a block, which reads all filters again, or of a part of a line
  MOST_PATCHES = 96,
  MOST_VECTORS = 4, // of a register tile
  MOST_GROUPS = 48, // of columns
};
// Cycles of a patch, for a vector of its channels.
static const double PATCH_CYCLES = 24;

// --- windows --------------------------------------------------------------------------------------
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

static int lanes_of(const mm_problem *p) {
  return p->target->vector_bytes / p->elem_bytes;
}

bool mm_takes_patches(const mm_problem *p, const mm_windows *w) {
  return p->elem_bytes == 4 && !p->pairs && !p->a.convert && !p->b.convert && !p->bands.limited &&
         p->target->vector_bytes >= 16 && w->channels >= lanes_of(p) && p->n >= lanes_of(p);
}

// --- patches --------------------------------------------------------------------------------------
int64_t mm_patch_lines(const mm_windows *w) {
  return ir_ceil_div(w->height, 2);
}

int64_t mm_patches_of_line(const mm_windows *w) {
  return ir_ceil_div(w->width, 2);
}

int64_t mm_patch_pitch(const mm_plan *g, int64_t of) {
  enum { LINE = 16 }; // so that the same patch's numbers fall on different sets of the first cache
  return g->patches * of + LINE;
}

int64_t mm_patch_bytes(const mm_windows *w, const mm_plan *g) {
  return MM_PLANES * (mm_patch_pitch(g, w->channels) + mm_patch_pitch(g, g->nr)) *
         (int64_t)sizeof(float);
}

int mm_patch_kinds(const mm_windows *w, const mm_plan *g, mm_patch_kind *kinds) {
  int64_t images = g->patch_within ? w->images : 1, high = mm_patch_lines(w),
          wide = mm_patches_of_line(w);
  high = g->patch_within ? high : w->images * high;
  const int64_t lines[] = {g->patch_lines, high % g->patch_lines},
                of_lines[] = {high / g->patch_lines, 1},
                across[] = {g->patch_wide, wide % g->patch_wide},
                of_line[] = {wide / g->patch_wide, 1};
  int num = 0;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      if (lines[i] * across[j] * of_lines[i] > 0)
        kinds[num++] = (mm_patch_kind){lines[i] * across[j], images * of_lines[i] * of_line[j]};
  return num;
}

int64_t mm_patch_room(const mm_problem *p) {
  enum { STACK_BYTES = 360448, SHARE = 16, OF_CACHE = 9 }; // with ten of them: twice as long
  int64_t near = p->target->l2_bytes / SHARE * OF_CACHE;
  return near < STACK_BYTES ? near : STACK_BYTES;
}

// --- cycles ---------------------------------------------------------------------------------------
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

double mm_patch_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g, double patches,
                       int64_t cols, double full, double last) {
  double channels = (double)ir_ceil_div(w->channels, g->lanes);
  int64_t whole = p->n / g->nr < cols ? p->n / g->nr : cols;
  return patches * channels * PATCH_CYCLES + (double)whole * full + (whole < cols ? last : 0);
}

// --- the best plan --------------------------------------------------------------------------------
void mm_patch_take(mm_patch_choice *c, const mm_plan *g, double cycles) {
  if (c->cycles >= 0 && cycles >= c->cycles)
    return;
  c->cycles = cycles;
  *c->plan = *g;
}

static void try_block(mm_patch_choice *c, mm_plan *g, mm_patch_try_fn try_it, int64_t lines,
                      int64_t wide) {
  g->patch_lines = lines, g->patch_wide = wide;
  g->patches = lines * wide;
  if (g->patches >= LEAST_PATCHES && g->patches <= MOST_PATCHES)
    try_it(c, g);
}

static void try_blocks(mm_patch_choice *c, mm_plan *g, mm_patch_try_fn try_it) {
  int64_t wide = mm_patches_of_line(c->w), all = c->w->images * mm_patch_lines(c->w);
  for (int64_t lines = 1; lines <= all && lines * wide <= MOST_PATCHES; lines++)
    try_block(c, g, try_it, lines, wide);
  for (int64_t parts = 2; wide / parts >= LEAST_PATCHES; parts++)
    try_block(c, g, try_it, 1, ir_ceil_div(wide, parts));
}

static void set_vectors(const mm_patch_choice *c, mm_plan *g, int vectors) {
  g->nv = vectors;
  g->nr = (int64_t)vectors * g->lanes;
  g->col_tiles = ir_ceil_div(c->p->n, g->nr);
  g->tail_cols = c->p->n % g->nr;
  g->tail_nv = (int)ir_ceil_div(g->tail_cols, g->lanes);
  g->b_panel = MM_PLANES * c->w->channels * g->nr;
}

void mm_try_patches(mm_patch_choice *c, mm_plan *g, mm_patch_try_fn try_it) {
  const mm_problem *p = c->p;
  g->lanes = lanes_of(p);
  for (int vectors = 1; vectors <= MOST_VECTORS; vectors++) {
    if ((p->want_nv && p->want_nv != vectors) || (int64_t)(vectors - 1) * g->lanes >= p->n)
      continue;
    set_vectors(c, g, vectors);
    for (int64_t cols = 1; cols <= g->col_tiles && cols <= MOST_GROUPS; cols++) {
      g->group_cols = cols;
      g->block_cols = ir_ceil_div(g->col_tiles, cols);
      try_blocks(c, g, try_it);
    }
  }
}
