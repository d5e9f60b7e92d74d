// cuda_scatter_plan.c: how a SCATTER kernel goes about its work on a GPU (cuda_scatter.h).
//
//   GPT-2's embedding: 524,288 indices into 50,257 rows of 768 floats
//   -> two passes by 8 bits over 128 chunks of 4,096 positions; 2,300 pieces of 228
#include "codegen/cuda_scatter.h"

enum {
  WARP = 32,
  MOST_WALK_THREADS = 256,
  DIGIT_BITS = 8,                    // a counter per thread
  CHUNK_STEP = SCATTER_SORT_THREADS, // whole steps of all warps
  LEAST_CHUNK = 4 * CHUNK_STEP,
  MOST_CHUNKS = 128,           // each block reads the counters of all chunks
  MOST_ALONE = 8 * CHUNK_STEP, // one block walks them in less time than more launches take
  LEAST_PIECE = 32,            // so that few rows need joining
  PIECE_STEP = 4,              // positions that are loaded at a time
  MOST_GROUP = 256,
  ALIGN = 64,
};

// What the ways cost, in microseconds; from the literature, not measured.
static const double LAUNCH = 2.5, // of a kernel in a graph, with its ramp
    LOAD = 0.5,                   // until a load from memory is there
    TILE = 0.3,                   // a block compares a tile of indices, and meets at a barrier
    STEP = 0.15,                  // a warp counts or places 32 positions
    SM_BYTES = 15e3;              // memory bandwidth of an SM, bytes per microsecond

static int64_t round_up(int64_t a, int64_t step) {
  return ir_ceil_div(a, step) * step;
}

static int64_t least_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t most_of(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static int power_of_two(int64_t least, int most) {
  int p = 1;
  while (p < most && p < least)
    p *= 2;
  return p;
}

// --- walking ---------------------------------------------------------------------------------
static void plan_walk(cuda_scatter *p) {
  int threads = power_of_two(p->columns, MOST_WALK_THREADS);
  p->walk_threads = threads < WARP ? WARP : threads;
  p->walk_parts = ir_ceil_div(p->columns, p->walk_threads);
}

// --- sorting ---------------------------------------------------------------------------------
static void plan_passes(cuda_scatter *p) {
  int bits = ir_bits_below(p->table_rows);
  p->passes = (int)ir_ceil_div(bits, DIGIT_BITS);
  p->bits = (int)ir_ceil_div(bits, p->passes);
  bool narrow = p->indices <= INT32_MAX && p->table_rows <= INT32_MAX;
  p->place = narrow ? "int32_t" : "int64_t";
  p->place_bytes = narrow ? 4 : 8;
  p->alone = p->indices <= MOST_ALONE;
  p->chunk = round_up(ir_ceil_div(p->indices, p->alone ? 1 : MOST_CHUNKS), CHUNK_STEP);
  p->chunk = p->alone ? p->chunk : most_of(p->chunk, LEAST_CHUNK);
  p->chunks = ir_ceil_div(p->indices, p->chunk);
  p->sort_launches = p->alone ? 0 : 2 * p->passes;
}

// Narrow rows: several groups in a block; wide ones: whole warps, so that few are idle.
static void plan_groups(cuda_scatter *p) {
  p->units = p->wide ? p->columns / SCATTER_LANES : p->columns;
  if (p->units <= WARP) {
    p->group = power_of_two(p->units, WARP);
    p->sum_threads = MOST_GROUP;
  } else {
    p->sum_parts = ir_ceil_div(p->units, MOST_GROUP);
    p->group = (int)round_up(ir_ceil_div(p->units, p->sum_parts), WARP);
    p->sum_threads = p->group;
  }
  p->sum_parts = ir_ceil_div(p->units, p->group);
}

// As many pieces as fill the chip twice.
static void plan_pieces(cuda_scatter *p, const cg_cuda *chip) {
  int64_t room = 2 * (int64_t)chip->sms * chip->threads_per_sm;
  int64_t want = most_of(1, room / (p->group * p->sum_parts));
  p->piece = round_up(most_of(LEAST_PIECE, ir_ceil_div(p->indices, want)), PIECE_STEP);
  p->pieces = ir_ceil_div(p->indices, p->piece);
  int64_t vectors = ir_ceil_div(p->columns, SCATTER_LANES);
  p->join_side = power_of_two(vectors, WARP);
  p->join_parts = ir_ceil_div(vectors, p->join_side);
  p->pitch = vectors * SCATTER_LANES;
}

static int64_t reserve(cuda_scatter *p, int64_t bytes) {
  int64_t at = p->workspace;
  p->workspace = round_up(at + bytes, ALIGN);
  return at;
}

// Sorted rows and, behind them, their positions: two lists of each, from one to the other.
static void plan_workspace(cuda_scatter *p) {
  int64_t list = round_up(p->indices * p->place_bytes, ALIGN);
  p->workspace = 0;
  for (int i = 0; i < 2; i++)
    p->sorted[i] = i < p->passes ? reserve(p, 2 * list) : p->sorted[0];
  p->counts = reserve(p, p->alone ? 0 : (p->chunks << p->bits) * p->place_bytes);
  p->partial = reserve(p, 2 * p->pieces * p->pitch * p->element_bytes);
}

// --- costs -----------------------------------------------------------------------------------
static double table_us(const cuda_scatter *p, const cg_cuda *chip) {
  double bytes = (double)(p->stored_rows + p->indices) * (double)p->columns * p->element_bytes;
  return bytes / (SM_BYTES * chip->sms);
}

// What a row is named by at most is for the data to say. In text, the commonest symbol is about a
// sixth of all.
static double commonest(const cuda_scatter *p) {
  double even = (double)p->indices / (double)p->table_rows, sixth = (double)p->indices / 6;
  return even > sixth ? even : sixth;
}

static double walk_us(const cuda_scatter *p, const cg_cuda *chip) {
  double side_by_side = (double)chip->sms * (chip->threads_per_sm / p->walk_threads);
  double owners = (double)(least_of(p->indices, p->table_rows) * p->walk_parts);
  double turns = owners > side_by_side ? owners / side_by_side : 1;
  double tiles = (double)ir_ceil_div(p->indices, p->walk_threads);
  return 2 * LAUNCH + turns * tiles * TILE + commonest(p) * LOAD + table_us(p, chip);
}

static double sort_us(const cuda_scatter *p, const cg_cuda *chip) {
  double steps = (double)p->chunk / SCATTER_SORT_THREADS;
  double counters = (double)p->chunks / 8 * LOAD; // eight loads under way
  double lists = (double)p->indices * p->place_bytes * 6 / (SM_BYTES * chip->sms);
  double pass = (p->alone ? 2 * steps * STEP : 3 * steps * STEP + counters) + lists;
  double sums = (double)p->piece / PIECE_STEP * LOAD;
  double table = table_us(p, chip);
  return p->passes * pass + (3 + p->sort_launches) * LAUNCH + (sums > table ? sums : table);
}

void cuda_scatter_plan(cuda_scatter *p, const cg_cuda *chip) {
  plan_walk(p);
  plan_passes(p);
  plan_groups(p);
  plan_pieces(p, chip);
  plan_workspace(p);
  p->walk_us = walk_us(p, chip);
  p->sort_us = sort_us(p, chip);
  p->sort = p->sort_us < p->walk_us;
}
