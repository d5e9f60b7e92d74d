// cuda_matmul_plan.c: the decisions of the matmul generator for GPUs, all made at compile time.
//
// Candidates are tiles (rows and vectors of a thread, warps of a block), lengths of a step of k,
// and numbers of pieces of k. The one with the least estimated time is taken. The estimate, in
// cycles:
//
//   step of a block     the largest of: issuing its products and loads from shared memory on four
//                       schedulers; those loads at 128 bytes a cycle; copies from the second cache.
//                       Small tiles load more per product; tiles beyond the edge do work for
//                       nothing.
//   blocks on one SM    as many as fit share its cycles; few warps leave schedulers idle and
//                       latencies in sight; no step is shorter than a copy takes, divided by the
//                       copies under way.
//   waves               an SM has blocks / SMs of them, rounded up. Too few blocks leave SMs empty:
//                       then smaller tiles win, or pieces of k, which pay for writing and reading
//                       partial sums and for one more launch.
//
// The numbers are fitted to what products of GPT-2 took on an H100 (docs/cuda.md); what matters is their
// proportion. A plan depends on the
// problem and on the architectures it is made for, never on the device that runs it: sums have one order
// wherever the program runs (within it, tensor cores of two architectures may round apart), but for products that
// one chip of several has by wgmma (cg_kernel.own).
#include "codegen/cuda_matmul.h"

enum {
  MAX_THREADS = 256,
  MAX_SUMS = 128,    // registers of a thread that hold sums
  MAX_FMA_SUMS = 64, // so, that an SM has 16 warps: with 8, FMAs of twice the sums were slower
  MAX_TILE = 256,    // rows, columns of a block
  MAX_STAGES = 4,
  WGMMA_K = CMM_ROW,    // of a step
  WGMMA_STAGES = 3,     // at least: copies, products, and those before
  WGMMA_REGISTERS = 56, // beside sums
  WGMMA_SUMS = 192,     // of a block that has the SM for itself
  MAX_PIECES = 32,
  OTHER_REGISTERS = 32, // places, counters
  FEWER_REGISTERS = 24, // of FMAs whose operands both lie along rows and columns
};
static const double COPY_LATENCY =
    900; // cycles until a copy from the second cache or beyond is there
static const double BLOCK_CYCLES = 1500; // begin of a block, first copy, epilogue's memory
static const double STEP_CYCLES = 60;    // barrier, addresses
static const double LONE_CYCLES = 300;   // of a step of a block that has an SM for itself: all wait
static const double TOGETHER_CYCLES = 1200; // by FMAs: what warps of a block wait for each other
static const double SPLIT_WORSE = 1.03;     // a small gain is not worth a second kernel
static const double TURN_WORSE = 1.01;      // nor memory for another copy of an operand
static const double L2_BYTES = 32;          // per cycle of an SM, when all of them read
static const double STORED_BYTES = 20;      // per cycle of an SM
static const double FINISHING_WARPS = 8;    // that have as much of their time to wait as to go on
static const double WORKING_WARPS =
    24; // the same for arithmetic, of which each step waits for the one before
static const double WORK_INSTRUCTIONS = 2; // of an operation, about
static const double MOVE_INSTRUCTIONS = 4; // of a thread for one copy
static const double HELD_INSTRUCTIONS = 8; // and for one that passes through a register
static const double TENSOR_PRODUCTS = 512; // tf32, per cycle of an SM
static const double WGMMA_PRODUCTS = 2048; // of 16 bits
static const double WGMMA_LATENCY =
    2600; // of a copy, and of products that wait for it and are waited for
static const double WGMMA_FINISHING_WARPS = 3; // as FINISHING_WARPS
static const double WGMMA_WORSE = 1.05;        // of steps, what is not counted
static const double NOT_FREE = 0.15;
static const double FMA_COPIES_NOT_FREE = 0.05;
static const double TF32_NOT_FREE = 0.6; // operands are rounded between their loads and products
static const double IDLE_WARPS = 2;      // as much as so many warps would do is not done
static const double TF32_IDLE_WARPS = 0.5;
static const double ALONG_K = 0.075; // of FMAs' time: more, for an operand as [x][k]
static const double BOTH_ALONG_K = 0.06;
static const double LOAD_CYCLES = 2; // of shared memory, for 16 bytes per thread of a warp

static double max2(double a, double b) {
  return a > b ? a : b;
}

// --- operands in shared memory ------------------------------------------------------------------
int cmm_element_bytes(const cmm_problem *p) {
  return p->p.a.elem_bytes;
}

static int64_t unit_of(const mm_operand *o) { // elements of 16 bytes
  return 16 / o->elem_bytes;
}

// Memory is whole groups of 16 bytes along `in`, each of which begins at a multiple.
static bool has_units(const mm_operand *o, const mm_axes *in, const mm_axes *other) {
  int64_t unit = unit_of(o);
  int last = in->num - 1;
  return last >= 0 && in->stride[last] == 1 && in->size[last] % unit == 0 &&
         o->offset % unit == 0 && mm_all_multiples(in, last, unit) &&
         mm_all_multiples(other, other->num, unit) &&
         mm_all_multiples(&o->batch, o->batch.num, unit);
}

static int64_t last_stride(const mm_axes *axes) {
  return axes->num ? axes->stride[axes->num - 1] : INT64_MAX;
}

static cmm_layout layout_of(const mm_operand *o) {
  return last_stride(&o->k) < last_stride(&o->x) ? CMM_XK : CMM_KX;
}

// Elements of f32 along k that can be copied by 4 bytes only are turned on the way: rows that begin anywhere.
static bool is_turned(const cmm_problem *p, const mm_operand *o) {
  return p->math == MM_F32 && o->elem_bytes == 4 && layout_of(o) == CMM_XK && o->x.num <= 1 &&
         o->k.num <= 1 && !has_units(o, &o->k, &o->x);
}

static void set_side(const cmm_problem *p, const mm_operand *o, int x, int bk, bool wgmma,
                     cmm_side *s) {
  int unit = (int)unit_of(o), more = cmm_is_half(p->math) ? unit : CMM_VL;
  if (is_turned(p, o)) {
    int pitch = x + CMM_VL;
    *s = (cmm_side){
        .layout = CMM_KX, .turned = true, .x = x, .vec = 1, .pitch = pitch, .elems = bk * pitch};
    return;
  }
  bool along_k = layout_of(o) == CMM_XK;
  bool units = has_units(o, along_k ? &o->k : &o->x, along_k ? &o->x : &o->k);
  if (wgmma) {
    *s = (cmm_side){
        .layout = layout_of(o), .x = x, .vec = units ? unit : 1, .pitch = CMM_ROW, .elems = x * bk};
    return;
  }
  *s = (cmm_side){.layout = layout_of(o), .x = x};
  s->vec = units && (along_k || x % unit == 0) ? unit : 1;
  s->pitch = along_k ? bk + more : x + (p->math == MM_F32 ? 0 : 8);
  s->skew = along_k ? more : 0;
  s->elems = along_k ? x * s->pitch + (x + 7) / 8 * s->skew : bk * s->pitch;
}

static int64_t array_bytes(const cmm_problem *p, const cmm_side *s, int stages) {
  return ir_ceil_div((int64_t)s->elems * stages * cmm_element_bytes(p), 128) * 128;
}

int cmm_rows_elems(const cmm_plan *g) {
  return CMM_WARP_ROWS * g->warps_m * cmm_rows_pitch(g);
}

static void set_shared(const cmm_problem *p, cmm_plan *g) {
  g->b_shared = array_bytes(p, &g->a, g->stages);
  g->rows_shared = g->b_shared + array_bytes(p, &g->b, g->stages);
  int64_t rows = g->spread ? 4 * (int64_t)cmm_rows_elems(g) : 0;
  g->shared = g->rows_shared + rows;
  if (g->wgmma) { // there is no room beside the tiles, which nobody reads by then
    g->shared = g->rows_shared > rows ? g->rows_shared : rows;
    g->rows_shared = 0;
  }
}

int cmm_given_shared(const cmm_problem *p, const cmm_plan *plan) {
  // By wgmma tiles begin at multiples of 1024 bytes, as that memory does.
  bool given = plan->wgmma || plan->shared > p->p.target->cuda->shared_per_block;
  return given ? (int)plan->shared : 0;
}

// --- the model --------------------------------------------------------------------------------
// Elements on their way.
static int held_registers(const cmm_problem *p, const cmm_plan *g, const cmm_side *s) {
  return cmm_is_held(p, s) ? cmm_rounds(g, s) : 0;
}

// Where to copy from, and to, more by FMAs where that is worked out each time; and those.
static int copy_registers(const cmm_problem *p, const cmm_plan *g, const cmm_side *s) {
  // EACH_HELD: 16-bit elements that come from places of their own, worked out one by one.
  enum { USUAL = 4, IN_F32 = 8, EACH_HELD = 5 };
  const mm_operand *o = s == &g->a ? &p->p.a : &p->p.b;
  bool worked_out = o->x.num > 1 || o->k.num > 1;
  int places = worked_out && g->math == MM_F32 ? IN_F32 : USUAL;
  if (worked_out && cmm_is_half(g->math))
    places += EACH_HELD * held_registers(p, g, s);
  return places + held_registers(p, g, s);
}

// About what ptxas has been seen to give them: sums, operands of one turn, and addresses.
static int registers_of(const cmm_problem *p, const cmm_plan *g) {
  if (g->wgmma)
    return g->tm * g->tv * CMM_VL + WGMMA_REGISTERS + held_registers(p, g, &g->a) +
           held_registers(p, g, &g->b);
  bool a_along = g->a.layout == CMM_XK && g->math == MM_F32;
  bool b_along = g->b.layout == CMM_XK && g->math == MM_F32;
  int columns = g->tv * CMM_VL, words = p->p.elem_bytes / 4;
  int operands = g->math == MM_F32 ? g->tm * (a_along ? 4 : 2) + columns * (b_along ? 4 : 2)
                                   : 2 * g->tm + columns; // of mma
  int copies = copy_registers(p, g, &g->a) + copy_registers(p, g, &g->b);
  int turned = a_along && b_along ? 8 : 0; // both sides are picked apart
  int other = g->math == MM_F32 && !a_along && !b_along ? FEWER_REGISTERS : OTHER_REGISTERS;
  return (g->tm * columns + operands) * words + copies + turned + other;
}

static int resident_blocks(const cmm_plan *g, const cg_cuda *chip) {
  int blocks = cg_resident_blocks(chip, g->threads, g->registers, g->shared);
  return blocks < 1 ? 1 : blocks;
}

// Instructions of all threads that bring one element of k of an operand, beside the products. Those of
// elements that pass through registers are waited for: cycles of the block's own.
static double held_per_k(const cmm_problem *p, const cmm_plan *g) {
  enum { SCHEDULERS = 4 };
  double elements = (cmm_is_held(p, &g->a) ? g->bm : 0) + (cmm_is_held(p, &g->b) ? g->bn : 0);
  return elements * HELD_INSTRUCTIONS / p->p.target->cuda->warp / SCHEDULERS;
}

static double moves_per_k(const cmm_problem *p, const cmm_plan *g, const cmm_side *s) {
  return cmm_is_held(p, s) ? 0 : (double)(&g->a == s ? g->bm : g->bn) / s->vec * MOVE_INSTRUCTIONS;
}

// Of one FMA of a warp. Operands of four k at a time leave fewer of them where FMAs read them for nothing
// (cuda_matmul_tile.c).
static double fma_cycles(const cmm_plan *g) {
  bool a = g->a.layout == CMM_XK, b = g->b.layout == CMM_XK;
  return 1 + ALONG_K * (a + b) + BOTH_ALONG_K * (a && b);
}

// Instructions of a warp for one element of k, in cycles of its scheduler.
static double issue_per_k(const cmm_problem *p, const cmm_plan *g) {
  double words = p->p.elem_bytes / 4.0, products = g->tm * g->tv * CMM_VL;
  double loads = (g->tm < 4 && g->a.layout == CMM_KX ? g->tm : g->tm / 4.0) + g->tv;
  double copying = (moves_per_k(p, g, &g->a) + moves_per_k(p, g, &g->b)) / g->threads;
  if (g->math == MM_F32)
    return (products * fma_cycles(g) + loads) * words + copying;
  if (cmm_is_half(g->math)) // 16 k by each instruction
    return products / 64 + (g->tm / 2.0 + g->tv) / 16 + 0.3 + copying;
  double rounded = (2 * g->tm + 4 * g->tv) / 8.0; // operands of mma that a thread holds
  return products / 32 + 2 * rounded + 0.5 + copying;
}

// Bytes that a warp loads from shared memory, as cycles of 128.
static double loads_per_k(const cmm_problem *p, const cmm_plan *g) {
  double loads = (g->tm < 4 && g->a.layout == CMM_KX ? g->tm : g->tm / 4.0) + g->tv;
  if (g->math == MM_F32)
    return loads * LOAD_CYCLES * p->p.elem_bytes / 4;
  return (2 * g->tm + 4 * g->tv) / (cmm_is_half(g->math) ? 16.0 : 8.0);
}

static double tensor_products(mm_math math) {
  return cmm_is_half(math) ? 2 * TENSOR_PRODUCTS : TENSOR_PRODUCTS;
}

// By wgmma the tensor cores and the copies go on by themselves: a step takes what the slower of the two does, which is
// the second cache for all tiles that registers have room for.
static double wgmma_cycles_per_k(const cmm_problem *p, const cmm_plan *g) {
  double copies = (g->bm + g->bn) * cmm_element_bytes(p) / L2_BYTES;
  return WGMMA_WORSE * max2((double)g->bm * g->bn / WGMMA_PRODUCTS, copies) + held_per_k(p, g);
}

// One element of k for a whole block that has the SM for itself. What is not the limit is not free:
// it takes turns with what is.
static double cycles_per_k(const cmm_problem *p, const cmm_plan *g) {
  if (g->wgmma)
    return wgmma_cycles_per_k(p, g);
  double warps = g->warps_m * g->warps_n;
  double issue = warps * issue_per_k(p, g) / 4, loads = warps * loads_per_k(p, g);
  double copies = (g->bm + g->bn) * cmm_element_bytes(p) / L2_BYTES;
  if (g->math != MM_F32)
    issue = max2(issue, (double)g->bm * g->bn / tensor_products(g->math));
  double not_free = g->math == MM_TF32 ? TF32_NOT_FREE : NOT_FREE;
  double copies_not_free = g->math == MM_F32 ? FMA_COPIES_NOT_FREE : not_free;
  return max2(max2(issue, loads), copies) + (issue + loads) * not_free + copies * copies_not_free +
         held_per_k(p, g);
}

// What is done with the sums of a block: warps wait for the memory that they touch.
static double finish_cycles(const cmm_problem *p, const cmm_plan *g) {
  double warps = g->warps_m * g->warps_n * resident_blocks(g, p->p.target->cuda);
  double finishing = g->wgmma ? WGMMA_FINISHING_WARPS : FINISHING_WARPS;
  double each = p->touched ? p->touched : p->p.elem_bytes;
  double cycles = g->bm * g->bn * each / STORED_BYTES * (warps + finishing) / warps;
  if (p->p.n % CMM_VL)
    cycles *= g->spread ? 1.5 : CMM_VL;
  if (p->p.target->cuda->wgmma &&
      cmm_is_half(g->math)) // other products take so long that it hardly matters
    cycles += g->bm * g->bn * p->worked * WORK_INSTRUCTIONS / 128 * (warps + WORKING_WARPS) / warps;
  return cycles;
}

// `blocks` at a time on one SM, each with `steps` steps of k. While one finishes, another multiplies;
// a block that is alone does one after the other.
static double wave_cycles(const cmm_problem *p, const cmm_plan *g, double step, double steps,
                          int64_t blocks) {
  if (blocks == 0)
    return 0;
  if (g->wgmma)
    return BLOCK_CYCLES + finish_cycles(p, g) * (blocks > 1 ? (double)blocks / 2 : 1) +
           steps * max2((double)blocks * step, WGMMA_LATENCY / (g->stages - 2));
  double warps = (double)(blocks * g->warps_m * g->warps_n);
  double busy = warps < 4 ? 4 / warps : 1; // schedulers without a warp
  double idle = g->math == MM_TF32 ? TF32_IDLE_WARPS : IDLE_WARPS;
  double work = (double)blocks * step * busy * (warps + idle) / warps; // and latencies in sight
  bool held =
      cmm_is_held(p, &g->a) || cmm_is_held(p, &g->b); // then copies are under way for one step
  double least = COPY_LATENCY / (held ? 1 : g->stages - 1);
  if (g->math == MM_F32)
    work += TOGETHER_CYCLES / (double)blocks;
  else
    work += blocks == 1 ? LONE_CYCLES : 0;
  return BLOCK_CYCLES + finish_cycles(p, g) * (blocks > 1 ? (double)blocks / 2 : 1) +
         steps * max2(work, least);
}

static double total_cycles(const cmm_problem *p, const cmm_plan *g, double share) {
  const cg_cuda *chip = p->p.target->cuda;
  int64_t tiles = p->p.batch * g->row_tiles * g->col_tiles;
  int64_t each = ir_ceil_div(tiles * g->pieces, chip->sms), room = resident_blocks(g, chip);
  double step = g->bk * cycles_per_k(p, g) + STEP_CYCLES;
  double steps = (double)g->piece_tiles * share;
  double cycles = (double)(each / room) * wave_cycles(p, g, step, steps, room) +
                  wave_cycles(p, g, step, steps, each % room);
  if (g->pieces > 1) {
    double bytes = 2 * (double)(tiles * g->bm * g->bn * g->pieces) * p->p.elem_bytes;
    cycles = cycles * SPLIT_WORSE + CMM_LAUNCH_CYCLES + bytes / STORED_BYTES / chip->sms;
  }
  return cycles;
}

// --- candidates ---------------------------------------------------------------------------------
static void set_pieces(const cmm_problem *p, cmm_plan *g, int64_t pieces) {
  g->k_tiles = ir_ceil_div(p->p.k, g->bk);
  g->piece_tiles = g->k_tiles < 1 ? 1 : ir_ceil_div(g->k_tiles, pieces);
  g->pieces = g->k_tiles < 1 ? 1 : ir_ceil_div(g->k_tiles, g->piece_tiles);
}

static void consider(const cmm_problem *p, const cmm_plan *g, double share, cmm_plan *best) {
  for (int64_t pieces = 1; pieces <= MAX_PIECES; pieces += pieces < 8 ? 1 : 4) {
    cmm_plan x = *g;
    set_pieces(p, &x, p->want_pieces ? p->want_pieces : pieces);
    if (x.spread && x.pieces > 1)
      return;
    x.cycles = total_cycles(p, &x, share);
    if (best->threads == 0 || x.cycles < best->cycles * 0.999) // first of equals: fewer pieces
      *best = x;
  }
}

// Rows of results that do not begin at multiples of a vector are stored by whole warps.
static bool is_spread(const cmm_problem *p, const cmm_plan *g) {
  return p->may_spread && p->p.elem_bytes == 4 && p->p.n % CMM_VL != 0 && p->p.n >= g->bn &&
         g->bn % (CMM_SPREAD * CMM_VL) == 0;
}

static bool is_wanted(int x, int want) {
  return want == 0 || x == want;
}

// Steps and stages of a tile.
static void consider_tile(const cmm_problem *p, cmm_plan g, cmm_plan *best) {
  const cg_cuda *chip = p->p.target->cuda;
  double share = mm_band_share(&p->p, g.bm, g.bn);
  int least = g.wgmma ? WGMMA_K : cmm_is_half(p->math) ? 16 : 8; // what an mma takes
  // By tensor cores, longer steps have been slower: fewer of them are under way.
  int most = g.wgmma ? WGMMA_K : p->math == MM_F32 || p->want_bk ? 4 * least : 2 * least;
  for (int bk = least; bk <= most; bk *= 2) {
    if (!is_wanted(bk, p->want_bk) && !g.wgmma)
      continue;
    g.bk = bk;
    set_side(p, &p->p.a, g.bm, bk, g.wgmma, &g.a);
    set_side(p, &p->p.b, g.bn, bk, g.wgmma, &g.b);
    g.registers = registers_of(p, &g);
    for (g.stages = g.wgmma ? WGMMA_STAGES : 2; g.stages <= MAX_STAGES; g.stages++) {
      set_shared(p, &g);
      if (is_wanted(g.stages, p->want_stages) && g.shared <= chip->shared_asked_for &&
          g.registers < chip->registers_per_thread)
        consider(p, &g, share, best);
    }
    if (bk >= p->p.k)
      break; // longer steps would be of zeros
  }
}

// mma.sync takes 16 rows, 8 columns; from [k][x] a thread reads four neighbours of tf32 at a time.
static bool fits_tensor(const cmm_problem *p, const cmm_plan *g) {
  if (cmm_is_half(g->math))
    return g->tm >= 2;
  return g->math != MM_TF32 || (g->tm >= (layout_of(&p->p.a) == CMM_KX ? 4 : 2) &&
                                g->tv % (layout_of(&p->p.b) == CMM_KX ? 2 : 1) == 0);
}

static bool tile_fits(const cmm_problem *p, const cmm_plan *g) {
  int words = p->p.elem_bytes / 4;
  return g->threads <= MAX_THREADS && g->bm <= MAX_TILE && g->bn <= MAX_TILE &&
         g->tm * g->tv * CMM_VL * words <=
             (p->math == MM_F32 && !p->want_tm ? MAX_FMA_SUMS : MAX_SUMS) &&
         fits_tensor(p, g) && is_wanted(g->tm, p->want_tm) && is_wanted(g->tv, p->want_tv) &&
         is_wanted(g->warps_m, p->want_warps_m) && is_wanted(g->warps_n, p->want_warps_n);
}

static void consider_warps(const cmm_problem *p, int tm, int tv, cmm_plan *best) {
  for (int wm = 1; wm <= 8; wm *= 2)
    for (int wn = 1; wn <= 8; wn *= 2) {
      cmm_plan g = {.math = p->math, .tm = tm, .tv = tv, .warps_m = wm, .warps_n = wn};
      g.threads = wm * wn * CMM_WARP_ROWS * CMM_WARP_COLS;
      g.bm = wm * CMM_WARP_ROWS * tm;
      g.bn = wn * CMM_WARP_COLS * CMM_VL * tv;
      g.row_tiles = p->p.m < 1 ? 1 : ir_ceil_div(p->p.m, g.bm);
      g.col_tiles = p->p.n < 1 ? 1 : ir_ceil_div(p->p.n, g.bn);
      g.spread = is_spread(p, &g);
      if (tile_fits(p, &g))
        consider_tile(p, g, best);
    }
}

// Operands come in units of 16 bytes, or element by element from rows that begin anywhere.
static bool may_wgmma(const cmm_problem *p) {
  const mm_operand *o[] = {&p->p.a, &p->p.b};
  if (!p->p.target->cuda->wgmma || !cmm_is_half(p->math) || p->want_wgmma == 1)
    return false;
  for (int i = 0; i < 2; i++) {
    const mm_axes *k = &o[i]->k, *x = &o[i]->x, *along = layout_of(o[i]) == CMM_XK ? k : x;
    bool rows = x->num == 1 && k->num == 1 && along->stride[0] == 1;
    if (!rows && !has_units(o[i], along, along == k ? x : k))
      return false;
  }
  return true;
}

// Blocks of 64 rows of a group of warps, and vectors of columns.
static void consider_wgmma(const cmm_problem *p, int blocks, int tv, cmm_plan *best) {
  for (int groups = 1; groups <= 2; groups++) {
    cmm_plan g = {.math = p->math,
                  .wgmma = true,
                  .tm = 2 * blocks,
                  .tv = tv,
                  .warps_m = 4 * groups,
                  .warps_n = 1};
    g.threads = 4 * CMM_WARP_ROWS * CMM_WARP_COLS * groups;
    g.bm = CMM_ROW * blocks * groups;
    g.bn = CMM_WARP_COLS * CMM_VL * tv;
    g.row_tiles = p->p.m < 1 ? 1 : ir_ceil_div(p->p.m, g.bm);
    g.col_tiles = p->p.n < 1 ? 1 : ir_ceil_div(p->p.n, g.bn);
    g.spread = is_spread(p, &g);
    bool fits = g.tm * g.tv * CMM_VL <= WGMMA_SUMS && is_wanted(g.tm, p->want_tm) &&
                is_wanted(g.tv, p->want_tv) && is_wanted(g.warps_m, p->want_warps_m);
    if (fits)
      consider_tile(p, g, best);
  }
}

// More stages where they keep no block away: latencies vary. It also keeps ptxas from squeezing
// registers for blocks that the model does not count on.
static void take_free_stages(const cmm_problem *p, cmm_plan *g) {
  const cg_cuda *chip = p->p.target->cuda;
  for (cmm_plan x = *g; x.stages < MAX_STAGES && x.stages < g->piece_tiles;) {
    x.stages++;
    set_shared(p, &x);
    if (p->want_stages || x.shared > chip->shared_asked_for ||
        resident_blocks(&x, chip) < resident_blocks(g, chip))
      return;
    *g = x;
  }
}

static void set_phases(const cmm_problem *p, cmm_plan *g) {
  int64_t tiles = p->p.batch * g->row_tiles * g->col_tiles;
  g->num_phases = 1;
  g->tasks[0] = tiles * g->pieces;
  g->phase_threads[0] = g->phase_threads[1] = g->threads;
  if (g->pieces > 1) { // one task of the second phase has one vector of each thread
    g->num_phases = 2;
    g->tasks[1] = tiles * g->tm * g->tv;
    g->workspace = tiles * g->bm * g->bn * g->pieces * p->p.elem_bytes;
  }
}

// What ptxas is told: left alone it may squeeze registers, and spill, for more blocks than the
// model counts on, or than there are.
static void set_room(const cmm_problem *p, cmm_plan *g) {
  const cg_cuda *chip = p->p.target->cuda;
  int64_t each = ir_ceil_div(g->tasks[0], chip->sms);
  g->resident = resident_blocks(g, chip);
  if (each < g->resident)
    g->resident = each < 1 ? 1 : (int)each;
}

static void plan_product(const cmm_problem *p, cmm_plan *plan) {
  BUG_IF(p->math != MM_F32 && p->p.elem_bytes != 4, "tensor products of %s", p->p.ctype);
  BUG_IF(p->p.a.elem_bytes != p->p.b.elem_bytes ||
             p->p.a.elem_bytes != (cmm_is_half(p->math) ? 2 : p->p.elem_bytes),
         "operands of %d and %d bytes", p->p.a.elem_bytes, p->p.b.elem_bytes);
  *plan = (cmm_plan){0};
  for (int tm = 1; tm <= 8 && p->want_wgmma != 2; tm *= 2)
    for (int tv = 1; tv <= 4; tv *= 2)
      consider_warps(p, tm, tv, plan);
  for (int blocks = 1; may_wgmma(p) && blocks <= 2; blocks++)
    for (int tv = 4; tv <= 16; tv += 4)
      consider_wgmma(p, blocks, tv, plan);
  BUG_IF(plan->threads == 0, "no tile of %d x %d rows and vectors, %d x %d warps", p->want_tm,
         p->want_tv, p->want_warps_m, p->want_warps_n);
  take_free_stages(p, plan);
  set_phases(p, plan);
  set_room(p, plan);
}

// The operands as they lie, or turned, whatever takes less in all.
void cmm_make_plan(const cmm_problem *p, cmm_plan *plan) {
  int only = p->want_turned - 1;
  plan_product(p, plan);
  for (int which = 1; which < 4; which++) {
    cmm_plan g;
    bool turned[2];
    if ((only >= 0 && which != only) || !cmm_try_turn(p, which, turned))
      continue;
    cmm_problem q = cmm_turn(p, turned, 0);
    plan_product(&q, &g);
    g.turned[0] = turned[0], g.turned[1] = turned[1];
    g.cycles += cmm_turn_cycles(p, turned);
    if (only >= 0 || g.cycles * TURN_WORSE < plan->cycles)
      *plan = g;
  }
  cmm_set_turn_phases(p, plan);
}
