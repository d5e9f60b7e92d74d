// cpu_matmul_plan.c: the decisions of the matmul generator, all made at compile time.
//
// Register tile: as many accumulators as registers allow, shaped so that edges waste little.
// Task grid: the split of row and column tiles with the least estimated time on small and
// medium teams; never a function of the team's size, so that sums are the same on all.
// Packing: an operand is copied when tiles could not read it with vector loads (b), when they would cross the ends of
// an image's rows (a), or when its stride would let the lines of one tile evict each other from the caches. What is
// large is copied by each task, as much as its stack holds.
#include "codegen/cpu_matmul.h"

enum {
  MAX_VECTORS = 6,  // widest tile
  ALL_GROUPS = 48,  // of one axis of the task grid: each number of them is tried
  MAX_GROUPS = 768, // and some up to this one, which leave a task few enough rows to pack by itself
  FEW_TILES = 64,
  FEW_TO_SPLIT = 4,
  LEAST_PIECES = 8, // of a long k: work for all threads of most teams
  MOST_PIECES = 16,
  GAIN_BYTES = 1 << 26, // of a workspace that need not be: packed operands, sums of pieces
  LOCAL_BYTES = 196608, // all stack buffers of a task
  LISTS_BYTES = 98304,  // lists, and what is packed by them: others need the rest of LOCAL_BYTES
  MAX_SLICES = 32,      // of k, when a team packs an operand
  WALKED_STEPS = 16,    // rows that a processor's prefetchers follow at a time
  LEAST_WALKED = 8,     // tiles side by side
  WALKED_OF_B = 32,  // steps of b: more than a prefetcher follows, but the sums wait half as often
  LEAST_OF_B = 8,    // where strides leave no room for more in the second cache
  MOST_WALKING = 32, // tiles of rows that share what it costs to read b where it lies
  FEW_WALKING = 16,  // or to pack it
  FAR_STEP = 4096,   // bytes from a step of k to the next: another page
  PIECE_STEPS = 128, // of k, packed at a time
  PIECE_PAD = 16,    // elements between rows of it: a line, so that they fall on different sets
  MOST_APART = 1024, // elements between panels, but for a line
  LEAST_APART = 32,
  FEW_COLUMNS = 4, // tiles of columns: each block of so many packs a again
};
// Tiles this much worse than the best are considered for what their grid may gain: when operands
// fit the second cache, and when there are few.
static const double NEARLY = 1.02, NEARLY_FEW = 1.15;
// Those that need no copy of a, or of b, where the best needs one.
static const double NEARLY_IN_PLACE = 1.6;
// Those whose lists may take less time.
static const double NEARLY_LISTED = 1.3;
// So much faster a kernel must be for a workspace, which may be what holds the peak of a step: for one of more than
// LOCAL_BYTES, of more than GAIN_BYTES, and, if there is a tile that needs none, for one that the second cache does
// not hold, and for one of several GAIN_BYTES.
static const double WORKSPACE_GAIN = 1.05, LARGE_GAIN = 1.5, TILE_GAIN = 1.15,
                    LARGE_TILE_GAIN = 1.4;
// So much faster it must be to pack all windows than pieces of them: estimates of the two are near each other, measured
// times, too, and which one is less changes from one size to the next.
static const double WINDOWS_GAIN = 1.3;
// A run of k must last so long that finding the next one does not count.
static const double RUN_CYCLES = 8;

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

// Part of all steps that tiles of this shape take, but for lists.
static double step_share(const mm_problem *p, int64_t mr, int64_t nr) {
  return mm_band_share(p, mr, nr) * mm_border_share(&p->border, p->k, mr);
}

static void set_tile(const mm_problem *p, mm_plan *plan, int rows, int vectors) {
  plan->mr = rows;
  plan->nv = vectors;
  plan->nr = (int64_t)vectors * plan->lanes;
  plan->share = step_share(p, rows, plan->nr);
  plan->row_tiles = ir_ceil_div(p->m, rows);
  plan->col_tiles = ir_ceil_div(p->n, plan->nr);
  plan->tail_rows = (int)(p->m % rows);
  plan->tail_cols = p->n % plan->nr;
  plan->tail_nv = (int)ir_ceil_div(plan->tail_cols, plan->lanes);
}

typedef struct tile_choice {
  int rows, vectors;
  double cycles; // of the whole problem, per step of k
} tile_choice;
typedef struct tile_choices {
  int num;
  tile_choice at[MAX_VECTORS * 40];
  int best;
} tile_choices;

static tile_choices tiles_for(const mm_problem *p, int lanes) {
  tile_choices c = {0};
  int64_t direct = most_direct_rows(p);
  bool lists = mm_may_list(p);
  for (int vectors = 1; vectors <= MAX_VECTORS; vectors++) {
    // sums, a row of b, and one element of a; NEON loads several of those ahead
    int others = vectors + (p->target->vector_bytes == 16 ? 5 : 1);
    int most = (p->target->vector_registers - others) / vectors;
    bool unwanted = p->want_nv && vectors != p->want_nv;
    if (unwanted || (int64_t)(vectors - 1) * lanes >= p->n)
      continue;
    for (int rows = 1; rows <= most && rows <= p->m && rows <= direct; rows++) {
      if (p->want_mr && rows != p->want_mr)
        continue;
      double share = step_share(p, rows, (int64_t)vectors * lanes);
      share *= lists ? mm_list_share(p, rows) : 1;
      tile_choice t = {rows, vectors, mm_tiling_cycles(p, lanes, rows, vectors, share)};
      c.at[c.num] = t;
      c.best = t.cycles < c.at[c.best].cycles ? c.num : c.best;
      c.num++;
    }
  }
  BUG_IF(c.num == 0, "no register tile of %dx%d", p->want_mr, p->want_nv);
  return c;
}

// The length of equal pieces of `steps` of k, of whole runs where a has shorter ones.
static int64_t piece_length(const mm_problem *p, int64_t steps, int64_t pieces) {
  const mm_axes *k = &p->a.k;
  int64_t run = k->num > 1 ? k->size[k->num - 1] : 1, length = ir_ceil_div(steps, pieces);
  return run < length ? ir_ceil_div(length, run) * run : length;
}

static void set_pieces(const mm_problem *p, mm_plan *plan, int64_t pieces) {
  plan->k_block = piece_length(p, p->k, pieces);
  plan->k_blocks = ir_ceil_div(p->k, plan->k_block);
}

// The steps of k that an operand may be walked in place when each begins a line `stride` bytes
// further on. Strides with a large power of two share few sets of the second cache, and tiles
// want the lines again: measured, half of what the sets hold goes well for b; a quarter for a,
// whose lines are used for a few elements only.
static int64_t most_direct_steps(const cg_target *t, int64_t stride, int share) {
  int64_t power = stride & -stride;
  return t->l2_bytes / (power < 64 ? 64 : power) / share;
}

// From the first element of an axis to the last.
static int64_t reach_of(const mm_axes *axes) {
  int64_t reach = 0;
  for (int i = 0; i < axes->num; i++)
    reach += (axes->size[i] - 1) * (axes->stride[i] < 0 ? -axes->stride[i] : axes->stride[i]);
  return reach;
}

// Rows of a, or steps of k, overlap: packed they are more than what they are of.
static bool has_windows(const mm_problem *p) {
  return reach_of(&p->a.x) + reach_of(&p->a.k) < p->m * p->k / 2;
}

// Of an operand whose lines tiles want again together with the other's. Measured, an eighth of what the sets of the second
// cache hold goes well; twice as much takes up to a third longer.
static int64_t most_steps_beside(const mm_problem *p, int64_t step) {
  enum { SHARE = 8, NEAR_BYTES = 256 }; // nearer steps leave hardly a set out
  int64_t bytes = step * p->elem_bytes;
  return bytes <= NEAR_BYTES ? p->k : most_direct_steps(p->target, bytes, SHARE);
}

// Windows in place whose places are the steps of k, as in the gradient of a convolution's weights: each step is lines of both
// operands. But no more pieces than may be tasks, which leave each the sums of all tiles.
static int64_t most_steps_of_windows(const mm_problem *p) {
  enum { LEAST = 128 };
  const mm_axes *k = &p->a.k;
  int64_t b, a = k->num > 1 ? k->stride[k->num - 1] : 1;
  if (a == 1 || !has_windows(p) || !mm_is_flat(&p->b.k, &b))
    return p->k;
  int64_t of_a = most_steps_beside(p, a), of_b = most_steps_beside(p, b);
  int64_t most = of_a < of_b ? of_a : of_b, least = ir_ceil_div(p->k, MOST_PIECES);
  least = least < LEAST ? LEAST : least;
  return most < least ? least : most;
}

// k in one piece while a panel of each operand fits a quarter of the second cache: streaming
// panels from there costs less than keeping sums in memory. Else equal pieces.
static void choose_k_blocks(const mm_problem *p, mm_plan *plan) {
  int64_t row = (plan->mr + plan->nr) * p->elem_bytes;
  int64_t most = p->target->l2_bytes / 4 / row, of_windows = most_steps_of_windows(p);
  if (most < 256)
    most = 256;
  if (most > of_windows)
    most = of_windows;
  set_pieces(p, plan, ir_ceil_div(p->k, most));
}

// A few tiles, which take so many cycles each: as many pieces as leave each task enough to do.
static int64_t pieces_of_few(int64_t tiles, double cycles) {
  return tiles > FEW_TO_SPLIT ? 0 : (int64_t)(cycles / (2.0 * MM_BARRIER_CYCLES));
}

// Elements of an operand that are in memory: windows overlap.
static int64_t elems_in_memory(const mm_operand *o, int64_t x, int64_t k) {
  int64_t reach = reach_of(&o->x) + reach_of(&o->k) + 1;
  return reach < x * k ? reach : x * k;
}

// A k much longer than rows and columns, as in the gradients of weights, where k is all samples and
// places: pieces of it read each operand once, and by the thread that has made its rows. The sums
// of all pieces must stay small beside what tiles read, beside what of it is in memory, and beside a
// step's memory.
static int64_t pieces_of_long_k(const mm_problem *p) {
  int64_t sums = p->m * p->n;
  int64_t memory = elems_in_memory(&p->a, p->m, p->k) + elems_in_memory(&p->b, p->n, p->k);
  int64_t bounds[] = {p->k * (p->m + p->n) / (8 * sums), memory / (2 * sums),
                      GAIN_BYTES / (sums * p->elem_bytes)};
  int64_t most = MOST_PIECES;
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    most = bounds[i] < most ? bounds[i] : most;
  return p->batch == 1 && p->k >= 4 * (p->m + p->n) && most >= LEAST_PIECES ? most : 0;
}

// Pieces of k become tasks.
static void consider_split_k(const mm_problem *p, mm_plan *plan) {
  int64_t tiles = p->batch * plan->row_tiles * plan->col_tiles;
  double tile = (double)p->k * mm_tile_cycles(plan->mr, plan->nv);
  int64_t few = pieces_of_few(tiles, tile), pieces = few ? few : pieces_of_long_k(p);
  bool large_sums = !few && plan->k_blocks > 2 * pieces; // panels do not fit in so few
  if (pieces == 0 || large_sums || tile * (double)(few ? 1 : tiles) < 8.0 * MM_BARRIER_CYCLES)
    return;
  pieces = pieces > MOST_PIECES ? MOST_PIECES : pieces;
  if (pieces < plan->k_blocks)
    pieces = plan->k_blocks;
  plan->split_k = true;
  set_pieces(p, plan, pieces);
}

// One column of tiles takes each element of a once. Where a comes from memory and its rows are steps of
// k, a tile that went through all of k would take a scrap of each row; so all tiles of a task take a few
// rows, then the next few, and the rows are read from end to end. Sums wait meanwhile. A few columns of tiles find the
// rows again where they are, which they would not behind all of k where its lines drive each other out.
static void consider_walking(const mm_problem *p, mm_plan *plan) {
  int64_t x, k, bytes = p->batch * p->m * p->k * p->a.elem_bytes;
  bool rows = mm_is_flat(&p->a.x, &x) && x == 1 && mm_is_flat(&p->a.k, &k) && !p->a.convert;
  if (!rows)
    return;
  bool apart = plan->k_block > most_direct_steps(p->target, k * p->elem_bytes, 4);
  plan->walks = !plan->lists && plan->col_tiles <= (apart ? FEW_COLUMNS : 1) &&
                plan->row_tiles >= LEAST_WALKED && !plan->split_k && bytes > p->target->l2_bytes &&
                p->k >= 4 * WALKED_STEPS;
  if (plan->walks)
    set_pieces(p, plan, ir_ceil_div(p->k, WALKED_STEPS));
}

// Lines of `steps` steps of k share so few sets that tiles would not find them again.
static bool drives_out(const mm_problem *p, const mm_plan *plan, int64_t stride, int64_t steps) {
  return stride != 1 && p->n > 2 * plan->nr &&
         steps > most_direct_steps(p->target, stride * p->elem_bytes, 4);
}

// Where elements of a must be converted, or would drive each other out of the caches, all of it packed at once
// (MM_SHARED) would go to memory and come back, in four times the bytes if they are converted, and be a workspace
// as large as scores of attention. Panels of a long k (MM_LOCAL) leave a task's caches, and read scraps of rows. So a
// task packs a piece of k for its rows, which stays in its second cache until all its tiles have taken it. Sums wait.
static bool consider_pieces(const mm_problem *p, mm_plan *plan) {
  int64_t x, k, tiles = p->batch * plan->row_tiles * plan->col_tiles;
  bool flat = mm_is_flat(&p->a.x, &x) && mm_is_flat(&p->a.k, &k) && (x == 1 || k == 1) &&
              p->a.apart != 1; // neighbours along k, which a piece does not look for
  bool packed = p->a.convert || (flat && x == 1 && drives_out(p, plan, k, plan->k_block));
  plan->by_pieces = flat && packed && tiles > FEW_TO_SPLIT && plan->col_tiles <= FEW_COLUMNS &&
                    !mm_limits_steps(p) && p->m * p->k * p->elem_bytes > p->target->l2_bytes / 2 &&
                    p->k >= 2 * PIECE_STEPS;
  if (plan->by_pieces)
    set_pieces(p, plan, ir_ceil_div(p->k, PIECE_STEPS));
  plan->piece = plan->k_block;
  return plan->by_pieces;
}

// Windows of images that no good tile goes through in place, as rows or, in the gradients of weights, as steps of k: what
// a task packs of them for all of k, or all of them in the workspace, grows with the window. A piece of k does not. Where
// parts of k are tasks of their own, each takes its pieces.
static bool consider_window_pieces(const mm_problem *p, mm_plan *plan) {
  int64_t x, k;
  bool flat = mm_is_flat(&p->a.x, &x) && mm_is_flat(&p->a.k, &k);
  int64_t steps = plan->split_k ? plan->k_block : p->k;
  plan->piece = piece_length(p, steps, ir_ceil_div(steps, PIECE_STEPS));
  if (!plan->split_k)
    set_pieces(p, plan, ir_ceil_div(p->k, PIECE_STEPS));
  plan->by_pieces = has_windows(p) && !flat && !plan->lists && plan->k_blocks > 1;
  return plan->by_pieces;
}

// Where few tiles of rows share a b that comes from memory and whose steps of k lie far apart, as in the gradient of a layer
// with many results, a tile that goes through all of k waits for a scrap of each step; and packed for the team, all of b is
// a workspace as large as scores of all words. So a task takes a few steps, from end to end of a block of columns,
// then the next few. Sums wait meanwhile. `in_place` is the plan without this.
static bool consider_walking_b(const mm_problem *p, const mm_plan *in_place, mm_plan *plan) {
  int64_t x, k, bytes = p->batch * p->n * p->k * p->b.elem_bytes;
  bool flat = mm_is_flat(&p->b.x, &x) && x == 1 && mm_is_flat(&p->b.k, &k) && !p->b.convert;
  if (!flat || k * p->elem_bytes < FAR_STEP)
    return false;
  int64_t stay = most_direct_steps(p->target, k * p->elem_bytes, 2);
  int64_t steps = stay < WALKED_OF_B ? stay : WALKED_OF_B;
  bool other = in_place->lists || in_place->split_k || in_place->walks || in_place->by_pieces;
  int64_t most = in_place->b == MM_DIRECT ? MOST_WALKING : FEW_WALKING;
  plan->walks_b = steps >= LEAST_OF_B && !other && !mm_limits_steps(p) &&
                  plan->col_tiles >= LEAST_WALKED && plan->row_tiles <= most &&
                  bytes > p->target->l2_bytes && p->k >= 4 * WALKED_OF_B;
  if (plan->walks_b)
    set_pieces(p, plan, ir_ceil_div(p->k, steps));
  return plan->walks_b;
}

// Rows of a tile lie evenly where tiles do not cross the last part of m, or of n.
static bool is_even(const mm_operand *o, int64_t size) {
  return o->x.num <= 1 || o->x.size[o->x.num - 1] % size == 0;
}

// k of windows, or of merged heads, in runs of its last part, which tiles go through one by one: pieces of k are some
// of them, or end within them.
static bool runs_fit(const mm_problem *p, const mm_plan *plan) {
  int64_t run = p->a.k.size[p->a.k.num - 1];
  bool even = plan->k_block % run == 0 || mm_cuts_runs(p, plan);
  int64_t steps = plan->k_block < run ? plan->k_block : run;
  return !p->bands.limited && even &&
         (double)steps * mm_tile_cycles(plan->mr, plan->nv) >= RUN_CYCLES;
}

static bool must_pack_a(const mm_problem *p, const mm_plan *plan) {
  const mm_axes *k = &p->a.k;
  if (p->a.convert || !is_even(&p->a, plan->mr))
    return true;
  if (k->num > 1)
    return !runs_fit(p, plan) || drives_out(p, plan, k->stride[k->num - 1], k->size[k->num - 1]);
  return k->num == 1 && drives_out(p, plan, k->stride[0], plan->k_block);
}

// Lists, and what is packed by them, are on a task's stack: a longer k is taken in pieces.
static void choose_lists(const mm_problem *p, mm_plan *plan) {
  _Static_assert(LISTS_BYTES / MM_LIST_BYTES <= 1 << 8 * MM_LIST_BYTES,
                 "steps are numbered in MM_LIST_BYTES");
  bool packed = must_pack_a(p, plan); // that takes as long as rows of zeros save
  plan->lists = mm_may_list(p) && (p->zeros == ZEROS_DATA || !packed);
  if (!plan->lists)
    return;
  plan->share *= mm_list_share(p, plan->mr);
  plan->list_tiles = mm_list_tiles(p, plan);
  int64_t of_step = plan->list_tiles * MM_LIST_BYTES + (packed ? plan->mr * p->elem_bytes : 0);
  int64_t most = LISTS_BYTES / of_step;
  if (plan->k_block > most)
    set_pieces(p, plan, ir_ceil_div(p->k, most));
}

static bool must_pack_b(const mm_problem *p, const mm_plan *plan) {
  int64_t col = p->b.x.num ? p->b.x.stride[p->b.x.num - 1] : 1, k;
  if (p->b.convert || !is_even(&p->b, plan->nr) || !mm_is_flat(&p->b.k, &k) || col != 1)
    return true;
  // The end of a row that is no whole vector is packed by each task: only if that is small.
  bool ragged = p->n % plan->lanes != 0 && !plan->masks;
  if (ragged && (plan->k_blocks > 1 || p->k * plan->lanes * plan->nv * p->elem_bytes > 65536))
    return true;
  return p->m > 2 * plan->mr && plan->k_block > most_direct_steps(p->target, k * p->elem_bytes, 2);
}

// Panels start one line further on than a multiple of a large power of two: a slice of k of all of
// them is written in one go and must not fall on one set of the caches. Small panels, which lie near each other anyway, of a
// smaller one, that all of them are not many times what is in them; an odd number of lines in any case.
static int64_t panel_elems(int64_t elems) {
  int64_t power = MOST_APART;
  while (power > LEAST_APART && power > elems / 16)
    power /= 2;
  return ir_ceil_div(elems, power) * power + 16;
}

// Elements of a tile's rows of one piece of k.
static int64_t piece_elems(const mm_plan *g) {
  return g->mr * (g->piece + PIECE_PAD);
}

// Tiles of rows whose piece of k is packed at a time: where rows are read along k, what stays in the first
// cache; else neighbours share lines, and more of them are better.
static int64_t rows_of_pieces(const mm_problem *p, const mm_plan *g, int64_t rows) {
  int64_t room = mm_k_in_runs(&p->a) ? p->target->l1_bytes * 3 / 4 : LOCAL_BYTES / 2;
  int64_t most = room / (piece_elems(g) * p->elem_bytes);
  return most < 1 ? 1 : most < rows ? most : rows;
}

// Columns of tiles whose panels of b stay in the second cache while rows pass.
static int64_t columns_that_stay(const mm_problem *p, const mm_plan *g) {
  int64_t fit = p->target->l2_bytes * 3 / 8 / (g->k_block * g->nr * p->elem_bytes);
  return fit < 1 ? 1 : fit;
}

// At most; panel_elems has the figure.
static int64_t local_panel_elems(const mm_problem *p, const mm_plan *g) {
  return g->mr * (p->k + 48) + 1040;
}

// Tiles of rows that a task packs at a time: all of them; or, of what would be large if it were packed at once
// (windows of images: nine times the image), as many as half of its room holds. All of its columns must take them before
// the next ones come.
static int64_t local_rows(const mm_problem *p, const mm_plan *g) {
  int64_t rows = ir_ceil_div(g->row_tiles, g->group_rows);
  int64_t cols = ir_ceil_div(g->col_tiles, g->group_cols);
  int64_t panel = local_panel_elems(p, g) * p->elem_bytes, most = LOCAL_BYTES / 2 / panel;
  bool all = rows * panel <= LOCAL_BYTES || cols > columns_that_stay(p, g) || g->b == MM_LOCAL ||
             p->batch * p->m * p->k * p->elem_bytes <= p->target->l2_bytes;
  return all ? rows : most < 1 ? 1 : most;
}

// `panels` of b are packed at a time.
static int64_t local_bytes(const mm_problem *p, const mm_plan *g, int64_t panels) {
  int64_t rows = ir_ceil_div(g->row_tiles, g->group_rows);
  int64_t elems = g->mr * g->nr;
  if (g->a == MM_PIECES)
    elems += rows_of_pieces(p, g, rows) * piece_elems(g);
  if (g->a == MM_LISTED)
    elems += g->k_block * g->mr;
  if (g->a == MM_LOCAL)
    elems += local_rows(p, g) * local_panel_elems(p, g);
  if (g->b == MM_LOCAL || mm_packs_tail(g))
    elems += panels * panel_elems(g->nr * p->k);
  int64_t lists = g->lists ? g->k_block * g->list_tiles * MM_LIST_BYTES : 0;
  return elems * p->elem_bytes + lists;
}

// Ways to read the operands: in place where that is possible, packed where it may gain.
typedef struct mm_ways {
  int num_a, num_b;
  mm_access a[3], b[3];
} mm_ways;

// elems: of the operand. What only may gain is not worth a copy that would be the peak of a step.
static int list_ways(const mm_problem *p, int64_t elems, bool must_pack, bool may_gain,
                     mm_access *ways) {
  int num = 0;
  bool small = p->batch * elems * p->elem_bytes <= GAIN_BYTES;
  if (!must_pack)
    ways[num++] = MM_DIRECT;
  if (must_pack || may_gain)
    ways[num++] = MM_LOCAL;
  if (must_pack || (may_gain && small))
    ways[num++] = MM_SHARED;
  return num;
}

static int64_t packed_bytes(const mm_problem *p, const mm_plan *g) {
  int64_t elems = (g->a == MM_SHARED ? p->m * p->k : 0) + (g->b == MM_SHARED ? p->n * p->k : 0);
  return p->batch * elems * p->elem_bytes;
}

// Between ways to read the operands of a tile.
static double workspace_price(const mm_problem *p, const mm_plan *g) {
  int64_t bytes = packed_bytes(p, g);
  return bytes > GAIN_BYTES ? LARGE_GAIN : bytes > LOCAL_BYTES ? WORKSPACE_GAIN : 1;
}

// Between tiles: some can do without.
static double tile_price(const mm_problem *p, const mm_plan *g) {
  int64_t bytes = packed_bytes(p, g);
  return bytes > 4 * GAIN_BYTES ? LARGE_TILE_GAIN : bytes > p->target->l2_bytes ? TILE_GAIN : 1;
}

// The panels of b of one block of columns stay in the second cache while rows pass.
static void set_block_cols(const mm_problem *p, mm_plan *plan) {
  int64_t cols = ir_ceil_div(plan->col_tiles, plan->group_cols), fit = columns_that_stay(p, plan);
  plan->block_cols = fit < cols ? fit : cols;
  while (plan->b == MM_LOCAL && plan->block_cols > 1 &&
         local_bytes(p, plan, plan->block_cols) > LOCAL_BYTES)
    plan->block_cols--;
}

static void try_grid(const mm_problem *p, const mm_plan *base, const mm_ways *ways, mm_plan *best,
                     double *best_score) {
  bool pieces = base->k_blocks > 1;
  for (int a = 0; a < ways->num_a; a++)
    for (int b = 0; b < ways->num_b; b++) {
      mm_plan g = *base;
      g.a = ways->a[a];
      g.b = ways->b[b];
      if (pieces && (g.a == MM_LOCAL || g.b == MM_LOCAL))
        continue;
      if (local_bytes(p, &g, 1) > LOCAL_BYTES) // never when both are shared: one tile remains
        continue;
      set_block_cols(p, &g);
      double s = mm_plan_cycles(p, &g) * workspace_price(p, &g);
      if (*best_score < 0 || s < *best_score) {
        *best = g;
        *best_score = s;
      }
    }
}

// The next number of groups to try.
static int64_t next_groups(int64_t groups) {
  return groups < ALL_GROUPS ? groups + 1 : groups + groups / 4;
}

// Where operands stay in a thread's caches, so that it matters which thread has what.
static bool may_go_by_columns(const mm_problem *p, const mm_plan *g) {
  return g->group_rows > 1 && g->group_cols > 1 && p->batch == 1 && !g->split_k && mm_fits_cache(p);
}

static double choose_grid(const mm_problem *p, mm_plan *plan) {
  int64_t most_rows = plan->row_tiles < MAX_GROUPS ? plan->row_tiles : MAX_GROUPS;
  int64_t most_cols = plan->col_tiles < ALL_GROUPS ? plan->col_tiles : ALL_GROUPS;
  mm_ways ways;
  ways.num_a =
      list_ways(p, p->m * p->k, must_pack_a(p, plan), mm_apart_a_cycles(p, plan) > 0, ways.a);
  ways.num_b =
      list_ways(p, p->n * p->k, must_pack_b(p, plan), mm_apart_b_cycles(p, plan) > 0, ways.b);
  if (plan->by_pieces || plan->lists)
    ways.num_a = 1;
  if (plan->by_pieces)
    ways.a[0] = MM_PIECES;
  else if (plan->lists) // packed anyway, or where they are
    ways.a[0] = must_pack_a(p, plan) ? MM_LISTED : MM_DIRECT;
  mm_plan base = *plan;
  double best_score = -1;
  for (int64_t rows = 1; rows <= most_rows; rows = next_groups(rows))
    for (int64_t cols = 1; cols <= most_cols; cols++) {
      base.group_rows = rows;
      base.group_cols = cols;
      base.by_columns = false;
      try_grid(p, &base, &ways, plan, &best_score);
      base.by_columns = may_go_by_columns(p, &base);
      if (base.by_columns)
        try_grid(p, &base, &ways, plan, &best_score);
    }
  BUG_IF(best_score < 0, "no task grid for a matmul of %lld x %lld x %lld", (long long)p->m,
         (long long)p->n, (long long)p->k);
  return best_score;
}

// Inside a task, tiles are visited in blocks of columns (set_block_cols) and rows; with k in pieces, the sums of a block
// wait on the stack.
static void choose_blocks(const mm_problem *p, mm_plan *plan) {
  int64_t rows = ir_ceil_div(plan->row_tiles, plan->group_rows);
  plan->block_rows = plan->by_pieces       ? rows_of_pieces(p, plan, rows)
                     : plan->a == MM_LOCAL ? local_rows(p, plan)
                                           : rows;
  int64_t tiles = MM_SUMS_BYTES / (plan->mr * plan->nr * p->elem_bytes);
  if (plan->walks_b && plan->block_cols > tiles / rows) // from end to end
    plan->block_cols = tiles < rows ? 1 : tiles / rows;
  if (plan->k_blocks == 1 || plan->split_k || (p->plain && p->n % plan->lanes == 0))
    return; // sums wait in registers, in the workspace, in the output
  if (!plan->walks_b)
    plan->block_cols = plan->block_cols > 4 ? 4 : plan->block_cols;
  int64_t waiting = tiles / plan->block_cols;
  rows = plan->block_rows;
  plan->block_rows = waiting < 1 ? 1 : waiting < rows ? waiting : rows;
}

static int64_t pack_tasks(const mm_problem *p, const mm_operand *o, int64_t panels) {
  if (!mm_packs_slices(o))
    return panels;
  return p->k < MAX_SLICES ? p->k : MAX_SLICES;
}

static void lay_out_phases(const mm_problem *p, mm_plan *plan) {
  int64_t pack = 0, elems = 0;
  // 64 bytes more than a multiple of 128: rows start on different sets
  if (plan->by_pieces)
    plan->a_pitch = mm_k_in_runs(&p->a) ? plan->piece + PIECE_PAD : 0;
  else if ((plan->a == MM_LOCAL || plan->a == MM_SHARED) && mm_k_in_runs(&p->a))
    plan->a_pitch = ir_ceil_div(p->k, 32) * 32 + 16;
  plan->a_panel = plan->by_pieces ? piece_elems(plan)
                                  : panel_elems(plan->mr * (plan->a_pitch ? plan->a_pitch : p->k));
  plan->b_panel = panel_elems(plan->nr * p->k);
  if (plan->a == MM_SHARED) {
    plan->a_pack_tasks = pack_tasks(p, &p->a, plan->row_tiles);
    elems += p->batch * plan->row_tiles * plan->a_panel;
  }
  plan->b_offset = elems;
  if (plan->b == MM_SHARED)
    plan->b_pack_tasks = pack_tasks(p, &p->b, plan->col_tiles);
  if (plan->b == MM_SHARED)
    elems += p->batch * plan->col_tiles * plan->b_panel;
  pack = p->batch * (plan->a_pack_tasks + plan->b_pack_tasks);
  plan->partial_offset = elems * p->elem_bytes;
  int64_t tiles = p->batch * plan->row_tiles * plan->col_tiles;
  if (plan->split_k)
    elems += plan->k_blocks * tiles * plan->mr * plan->nr;
  plan->workspace = elems * p->elem_bytes;
  plan->a_stays = mm_fits_cache(p) && p->batch == 1 && plan->group_rows == 1;
  plan->b_stays = mm_fits_cache(p) && p->batch == 1 && plan->group_cols == 1;
  plan->num_phases = 0;
  if (pack)
    plan->tasks[plan->num_phases++] = pack;
  plan->tasks[plan->num_phases++] =
      p->batch * plan->group_rows * plan->group_cols * (plan->split_k ? plan->k_blocks : 1);
  if (plan->split_k)
    plan->tasks[plan->num_phases++] = tiles;
}

// Tiles that take part in the choice of a grid: so many times the steps of those that take fewest.
static double allowance(const mm_problem *p, const mm_plan *fewest, const mm_plan *g) {
  if (g->lists)
    return NEARLY_LISTED;
  if ((must_pack_a(p, fewest) && !must_pack_a(p, g)) ||
      (must_pack_b(p, fewest) && !must_pack_b(p, g)))
    return NEARLY_IN_PLACE;
  bool few = p->batch * g->row_tiles * g->col_tiles <= FEW_TILES;
  return few ? NEARLY_FEW : mm_fits_cache(p) ? NEARLY : 1.0;
}

static mm_plan plan_of_tile(const mm_problem *p, int lanes, const tile_choice *t) {
  mm_plan g = {.lanes = lanes, .masks = p->elem_bytes == 4 && p->target->vector_bytes >= 32};
  set_tile(p, &g, t->rows, t->vectors);
  choose_k_blocks(p, &g);
  choose_lists(p, &g);
  return g;
}

static double plan_grid(const mm_problem *p, mm_plan *g) {
  return choose_grid(p, g) * tile_price(p, g);
}

// Takes a plan that packs windows in pieces, unless one which packs all of them is much better; gives the cycles. `whole`
// has all of k. Where the plan has made parts of it tasks, whose sums take memory, that is the second choice.
static double complete_by_windows(const mm_problem *p, const mm_plan *whole, mm_plan *plan,
                                  double cycles) {
  if (plan->a != MM_SHARED || p->batch * p->m * p->k * p->elem_bytes <= p->target->l2_bytes)
    return cycles;
  mm_plan ways[] = {*whole, *plan};
  for (int i = 0; i < (plan->split_k ? 2 : 1); i++) {
    if (!consider_window_pieces(p, &ways[i]))
      continue;
    double other = plan_grid(p, &ways[i]);
    if (other >= cycles * WINDOWS_GAIN)
      continue;
    *plan = ways[i];
    return other;
  }
  return cycles;
}

// All that follows from a tile; gives its cycles.
static double complete_plan(const mm_problem *p, mm_plan *plan) {
  mm_plan tile = *plan, walking = *plan;
  if (plan->lists || !consider_pieces(p, plan)) {
    consider_split_k(p, plan);
    consider_walking(p, plan);
  }
  double cycles = complete_by_windows(p, &tile, plan, plan_grid(p, plan));
  if (!consider_walking_b(p, plan, &walking))
    return cycles;
  double other = plan_grid(p, &walking);
  if (walking.b != MM_DIRECT || packed_bytes(p, &walking) > packed_bytes(p, plan))
    return cycles;
  *plan = walking;
  return other;
}

// The tile that wastes least; where tiles are few, whichever of the good ones splits best among
// threads (three tiles on two threads would leave one idle a third of the time).
void mm_make_plan(const mm_problem *p, mm_plan *plan) {
  int lanes = p->target->vector_bytes / p->elem_bytes;
  tile_choices tiles = tiles_for(p, lanes);
  const tile_choice *least = &tiles.at[tiles.best];
  mm_plan fewest = plan_of_tile(p, lanes, least);
  double best = -1;
  for (int i = 0; i < tiles.num; i++) {
    const tile_choice *t = &tiles.at[i];
    mm_plan g = plan_of_tile(p, lanes, t);
    if (t->cycles > least->cycles * allowance(p, &fewest, &g))
      continue;
    double cycles = complete_plan(p, &g);
    if (best >= 0 && cycles >= best)
      continue;
    best = cycles;
    *plan = g;
  }
  choose_blocks(p, plan);
  plan->kept_lists = mm_kept_lists(p, plan);
  lay_out_phases(p, plan);
}
