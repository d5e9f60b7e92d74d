// cpu_matmul_cost.c: what a plan of the matmul generator takes, in estimated cycles: how decisions
// (cpu_matmul_plan.c) are compared. Figures are those of cores with two FMA units, measured on a few.
#include "codegen/cpu_matmul.h"

#include <math.h>

enum { LINE = 64, SCRAP = 16 };
static const double TASK_CYCLES = 60;
// Cycles per byte of operands that fit the second cache: those that a thread reads for the first
// time come from beyond it (another thread wrote them, or they were driven out), and looking ahead
// hides but part of the way; then tasks find them again.
static const double FIRST_COST = 0.08, AGAIN_COST = 0.02;
// Cycles per byte of what a thread writes and another has read since the last step: a core takes a line away from
// the other before it may write there.
static const double TAKE_COST = 0.4;
// Cycles per step of k of a tile that reads panels in place, line after line far apart, where they do not
// stay in the first cache: no prefetcher of the processor sees what comes next. It does where steps are so near
// that lines are hardly left out.
enum { NEAR_BYTES = 256 };
static const double APART_A = 2.0, APART_B = 0.35; // of b: each vector
// Of others: rows of a arrive while tiles are computed; the first tile of a panel of b waits.
static const double STREAM_COST = 0.02, FAR_COST = 0.2;
// To convert an element of a piece, which is read from end to end and stays near.
static const double PIECES_COST = 0.25;
// Of rows that are walked: until a task's part of a row arrives.
static const double NEW_RUN_CYCLES = 150;
// Of lists: for a step of a row of tiles, which vectors share where it lies along k; to pack an element; to look at
// a vector of b; for a line of b that a tile waits for; and for its last step.
static const double LIST_COST = 1.4, ALONG_COST = 10, LISTED_COST = 1, FINITE_COST = 1,
                    LINE_COST = 2, LAST_COST = 20;

static double max2(double a, double b) {
  return a > b ? a : b;
}

// Cycles per step of k of a tile: two FMAs and two loads per cycle; four cycles until a sum can
// be added to again. The small terms prefer tiles that read less: lines of panels from the second
// cache (a vector of b is a line, 16 elements of a are one), and loads.
double mm_tile_cycles(int rows, int vectors) {
  double fma = rows * vectors / 2.0, loads = rows + vectors;
  return max2(max2(fma, loads / 2), 4.0) + 0.2 * (vectors + rows / 16.0) + 0.03 * loads;
}

// Of this problem: steps of lists are not where prefetchers look, so that what the first cache does not hold of b is
// waited for.
static double step_cycles(const mm_problem *p, int rows, int vectors) {
  int bytes = vectors * p->target->vector_bytes;
  bool waits = mm_may_list(p) && p->k * bytes > p->target->l1_bytes;
  double cycles = mm_tile_cycles(rows, vectors);
  return waits ? max2(cycles, LINE_COST * bytes / LINE) : cycles;
}

// Call, first and last lines of a tile, spread over its steps. Lists leave it a share of them, and no processor foresees
// the end of one.
static double enter_cycles(const mm_problem *p, int rows, int vectors, double share) {
  double cycles = 10.0 + rows * vectors;
  return (mm_may_list(p) ? (cycles + LAST_COST) / share : cycles) / (double)p->k;
}

double mm_tiling_cycles(const mm_problem *p, int lanes, int rows, int vectors, double share) {
  int64_t nr = (int64_t)vectors * lanes;
  int64_t full_rows = p->m / rows, full_cols = p->n / nr;
  int tail_rows = (int)(p->m % rows), tail_vectors = (int)ir_ceil_div(p->n % nr, lanes);
  double enter = enter_cycles(p, rows, vectors, share);
  double total = (double)(full_rows * full_cols) * (step_cycles(p, rows, vectors) + enter);
  if (tail_rows)
    total += (double)full_cols * (step_cycles(p, tail_rows, vectors) + enter);
  if (tail_vectors)
    total += (double)full_rows * (step_cycles(p, rows, tail_vectors) + enter);
  if (tail_rows && tail_vectors)
    total += step_cycles(p, tail_rows, tail_vectors) + enter;
  return total * share;
}

// Steps of k that lie side by side in a line: all of it, or the lines of a window.
static int64_t steps_of_line(const mm_problem *p, const mm_axes *k) {
  int last = k->num - 1;
  int64_t most = LINE / p->elem_bytes;
  if (last < 0 || k->stride[last] != 1)
    return 1;
  return k->size[last] < most ? k->size[last] : most;
}

// What reading operands where they lie costs a step: steps of k that are no neighbours.
double mm_apart_a_cycles(const mm_problem *p, const mm_plan *g) {
  int64_t stride, side_by_side = steps_of_line(p, &p->a.k);
  if (g->walks || (mm_is_flat(&p->a.k, &stride) && stride * p->elem_bytes <= NEAR_BYTES))
    return 0;
  int64_t step = LINE + (g->mr - 1) * p->elem_bytes; // bytes of the lines that a step touches
  if (g->k_block / side_by_side * step <= p->target->l1_bytes)
    return 0;
  return APART_A / (double)side_by_side;
}

double mm_apart_b_cycles(const mm_problem *p, const mm_plan *g) {
  bool some_stay = g->k_block * g->nr * p->elem_bytes <= 2 * p->target->l1_bytes;
  return some_stay || p->n <= g->nr ? 0 : APART_B * g->nv;
}

// Neighbours along k lie in runs worth a copy: heads that are merged by a view.
bool mm_k_in_runs(const mm_operand *o) {
  int last = o->k.num - 1;
  return last >= 0 && (o->k.stride[last] == 1 || o->apart == 1) && o->k.size[last] >= 8;
}

bool mm_fits_cache(const mm_problem *p) {
  return p->batch * p->k * (p->m + p->n) * p->elem_bytes <= p->target->l2_bytes;
}

// Of elements that lie side by side in each step of k: all of them, where a team packs slices (MM_SHARED); or
// as many bytes as a task packs, of lines that are read in full. One narrow panel of a wide matrix (a SCRAP of each
// step, as for b) costs more, by far where each piece comes from memory.
static double side_by_side_cost(bool near, int64_t bytes) {
  double cost = near ? 0.25 : 0.6, most = near ? 0.5 : 2.5;
  if (bytes == 0)
    return cost;
  cost *= (double)(bytes + LINE) / (double)bytes;
  return cost < most ? cost : most;
}

// Cycles to copy one element into a panel, of an operand in the second cache or beyond it, `bytes` of it
// side by side. What is packed for the team (MM_SHARED) goes to memory and back.
static double pack_cost(const mm_problem *p, const mm_operand *o, mm_access access, int64_t bytes) {
  int64_t x, k;
  bool x_flat = mm_is_flat(&o->x, &x), flat = mm_is_flat(&o->k, &k) && x_flat;
  bool shared = access == MM_SHARED, near = mm_fits_cache(p);
  if (flat && access == MM_PIECES)
    return PIECES_COST;
  if (flat && x == 1)
    return side_by_side_cost(near, shared ? 0 : bytes);
  double copy = flat && k == 1 ? 0.4 : mm_k_in_runs(o) ? 0.3 : 1.2;
  return copy + (shared && !near ? 0.2 : 0);
}

// A step's forward product reads a parameter by columns where the batch (here: k) is smaller than they are many
// (reading_cycles), and finds them in the caches of the thread that has updated them, if that one had them by
// columns, too. Else it finds a share of them, and the next update takes the others away again. What no cache holds
// comes from beyond all of them in any case.
static double updating_cycles(const mm_problem *p, const mm_plan *g, int team) {
  int64_t bytes = p->m * p->n * p->elem_bytes;
  bool columns = g->by_columns || g->group_rows == 1;
  if (!p->updates || p->k >= p->n || columns || bytes > p->target->l2_bytes)
    return 0;
  return TAKE_COST * (double)bytes / team * (1 - 1.0 / team);
}

// Cycles that a thread of a team waits for operands. Its tasks are neighbours: `n` of them lie in
// whole rows of groups, or columns.
static double reading_cycles(const mm_problem *p, const mm_plan *g, int64_t tasks, int team) {
  int64_t n = ir_ceil_div(tasks, team);
  double rows = (double)(ir_ceil_div(g->row_tiles, g->group_rows) * g->mr);
  double cols = (double)(ir_ceil_div(g->col_tiles, g->group_cols) * g->nr);
  double step = (double)(p->k * p->elem_bytes); // bytes of one row of a, one column of b
  if (g->walks)
    return (double)(n * p->k) * NEW_RUN_CYCLES;
  if (!mm_fits_cache(p)) {
    // Panels of b are read once for each item of the batch, where a thread's cache holds them till the next task.
    bool b_stays = p->k * p->n * p->elem_bytes <= p->target->l2_bytes / 4;
    int64_t items = ir_ceil_div(n, g->group_rows * g->group_cols), once = items * g->group_cols;
    double far = (double)(b_stays && once < n ? once : n);
    return step * (far * cols * FAR_COST + (double)n * rows * STREAM_COST +
                   (b_stays ? (double)n * cols * AGAIN_COST : 0));
  }
  int64_t line = g->by_columns ? g->group_rows : g->group_cols;
  int64_t lines = ir_ceil_div(n, line), of_line = n < line ? n : line;
  int64_t row_groups = g->by_columns ? of_line : lines,
          col_groups = g->by_columns ? lines : of_line;
  if (p->batch > 1) // each item has its own
    col_groups = n;
  double first = (double)row_groups * rows + (double)col_groups * cols;
  return step * (first * FIRST_COST + (double)n * (rows + cols) * AGAIN_COST);
}

double mm_samples_share(int samples) {
  return 0.19 + 0.1 * log2(samples);
}

// Of data: what handwritten digits have, where rows are samples, and where they are neighbouring pixels. Others
// have fewer zeros, or none: then narrow tiles of many columns, which this prefers, take as long as others. Rows
// of zeros are as many whatever the tile is: a fifth of an expert's places, by default.
double mm_list_share(const mm_problem *p, int rows) {
  int64_t k;
  bool samples = mm_is_flat(&p->a.k, &k) && k == 1;
  double share = p->zeros == ZEROS_NONE   ? 1
                 : p->zeros == ZEROS_ROWS ? 0.8
                 : samples                ? mm_samples_share(rows)
                                          : 0.16 + 0.031 * rows;
  return share < 1 ? share : 1;
}

// Loads of so many bytes of a step, of 8, 4, 2 and 1.
static int loads_of(int64_t bytes) {
  return (int)(bytes / 8 + (bytes >> 2 & 1) + (bytes >> 1 & 1) + (bytes & 1));
}

// What lists cost a thread in `n` of its tasks, in cycles: to read a's rows for them, which no tile's sums hide, to pack
// what is on them, and to look at columns of b.
static double list_cycles(const mm_problem *p, const mm_plan *g, double rows, double cols,
                          int64_t n) {
  int64_t k;
  bool along = mm_is_flat(&p->a.k, &k) && k == 1;
  double far = mm_fits_cache(p) ? 0 : FIRST_COST * g->mr * p->a.elem_bytes;
  double step =
      along ? ALONG_COST / g->lanes + far : LIST_COST + 0.5 * loads_of(g->mr * p->a.elem_bytes);
  double packing = g->a == MM_LISTED ? LISTED_COST * g->mr * mm_list_share(p, g->mr) : 0;
  double made = step * (double)mm_list_rounds(p, g, n) + packing * (double)(n * mm_task_blocks(g));
  double seen = FINITE_COST * g->nv * (double)mm_column_rounds(g, n);
  return (made * rows + seen * cols) * (double)p->k;
}

// Estimated cycles on a team: shared packing, a barrier, then the longest thread's tasks.
static double team_cycles(const mm_problem *p, const mm_plan *g, int team) {
  double steps = (double)p->k * g->share;
  double step = step_cycles(p, g->mr, g->nv) + enter_cycles(p, g->mr, g->nv, g->share);
  step += (g->a == MM_DIRECT ? mm_apart_a_cycles(p, g) : 0) +
          (g->b == MM_DIRECT ? mm_apart_b_cycles(p, g) : 0);
  double tile = step * steps;
  int64_t pieces = g->split_k ? g->k_blocks : 1;
  int64_t tasks = p->batch * g->group_rows * g->group_cols * pieces;
  double rows = (double)ir_ceil_div(g->row_tiles, g->group_rows);
  double cols = (double)ir_ceil_div(g->col_tiles, g->group_cols);
  int64_t a_bytes = (int64_t)rows * g->mr * p->elem_bytes;
  double a_panel = pack_cost(p, &p->a, g->a, a_bytes) * g->mr * (double)p->k;
  double b_panel = pack_cost(p, &p->b, g->b, SCRAP) * (double)(g->nr * p->k);
  double task = rows * cols * tile / (double)pieces + TASK_CYCLES, phase0 = 0;
  if (g->a == MM_LOCAL || g->a == MM_PIECES)
    task += rows * a_panel / (double)pieces;
  if (g->b == MM_LOCAL)
    task += cols * b_panel;
  if (g->a == MM_SHARED)
    phase0 += (double)(p->batch * g->row_tiles) * a_panel;
  if (g->b == MM_SHARED)
    phase0 += (double)(p->batch * g->col_tiles) * b_panel;
  double shared = phase0 > 0 ? phase0 / team + MM_BARRIER_CYCLES : 0;
  int64_t n = ir_ceil_div(tasks, team);
  double lists = g->lists ? list_cycles(p, g, rows, cols, n) : 0;
  return shared + (double)n * task + (lists + reading_cycles(p, g, tasks, team)) / (double)pieces +
         updating_cycles(p, g, team);
}

// Groups of whole rows, all of one size: threads go on with rows that they have written themselves,
// without a barrier (program_sync.c), and find them in their own caches.
static bool keeps_rows_apart(const mm_problem *p, const mm_plan *g) {
  if (p->batch > 1)
    return g->group_rows == 1 && g->group_cols == 1;
  return g->group_cols == 1 && g->group_rows > 1 && !g->split_k && p->m % g->mr == 0 &&
         g->row_tiles % g->group_rows == 0;
}

static double waiting_cycles(const mm_problem *p, const mm_plan *g) {
  return keeps_rows_apart(p, g) ? 0 : 2 * MM_BARRIER_CYCLES;
}

// Small teams are what we tune for; the rest keeps larger ones busy.
double mm_weigh_teams(const mm_problem *p, const mm_plan *g, double one, double two, double eight) {
  return two + one * 0.25 + eight * 0.5 + waiting_cycles(p, g);
}

double mm_plan_cycles(const mm_problem *p, const mm_plan *g) {
  double alone = mm_tiling_cycles(p, g->lanes, g->mr, g->nv, g->share) * (double)(p->batch * p->k);
  return mm_weigh_teams(p, g, alone, team_cycles(p, g, 2), team_cycles(p, g, 8));
}
