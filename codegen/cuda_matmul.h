// cuda_matmul.h: what the parts of the matmul generator for GPUs share.
//
//   cuda_matmul.c         the family's two functions; the epilogue
//   matmul_problem.c      a kernel as a product, the indices of its epilogue (cpu_matmul.h)
//   cuda_matmul_plan.c    decisions: tiles, layouts in shared memory, pieces of k; the cost model
//   cuda_matmul_turn.c    operands that lie along k, turned before the product
//   cuda_matmul_copy.c    text: operands from global to shared memory
//   cuda_matmul_tile.c    text: inner products of a thread (f32, f64)
//   cuda_matmul_tensor.c  text: those of a warp (tf32, bf16, f16)
//   cuda_matmul_wgmma.c   text: those of four warps (bf16, f16 on sm_90a)
//   cuda_matmul_core.c    text: the kernels around them
//
// c[batch,m,n] = sum over k of a[batch,m,k] * b[batch,k,n]. A block of threads computes a tile of c
// of bm x bn sums. It goes through k in steps of bk: copies of later steps to shared memory are
// under way while a step is multiplied. A warp is 8 x 4 threads (ty = lane / 4, tx = lane % 4),
// which is how mma.sync deals out its fragments; each thread holds tm rows of tv vectors of 4
// columns, wherever the products come from, so that one epilogue serves all.
//
// Two designs were considered for the operands in shared memory.
//   1. One layout, [k][x] (x: m of a, n of b), as SGEMM kernels have had since Volkov: a thread
//      reads its rows and columns of one k by 16-byte loads. Operands that lie along k in memory
//      (a of NN, both of NT) must be turned on the way: 4-byte copies, or loads to registers and
//      scattered stores.
//   2. The layout follows memory: [k][x] when neighbours in memory are neighbours along x, [x][k]
//      when along k. Both are filled by 16-byte asynchronous copies, in all of NN, NT, TN and TT.
//      From [x][k] a thread reads four k of a row at once: as many 16-byte loads per product, and
//      more registers for a while.
// We took 2: copies cost a fourth of the instructions and no registers, and [x][k] rows are what
// ldmatrix reads, for tf32 now and for 16-bit types later (of which [k][x] is read by
// ldmatrix.trans). FMAs in f32 run best from [k][x], both: there operands along k that 16-byte copies cannot
// bring are turned by their copies, as in 1, and others by a kernel in front, where that pays
// (cuda_matmul_turn.c).
//
// Banks. [x][k] rows are bk elements and 16 bytes long, and every 8 rows there are 16 bytes more:
// row x begins at 16-byte unit x * odd + x / 8, so that 8 rows side by side (rows of a, ldmatrix),
// and rows 0, 2, .. 14 (columns of b: see cuda_matmul_tile.c) and 0, 4, 8, 12, are on different
// banks. [k][x] rows have 8 words more under mma.sync, where the four tx read different k, and 16
// bytes more where ldmatrix.trans reads 8 of them at a time.
#ifndef CODEGEN_CUDA_MATMUL_H
#define CODEGEN_CUDA_MATMUL_H

#include "codegen/cpu_matmul.h"

// How products are made: MM_F32 in the operands' own type (f64, too); the others by the tensor
// cores, summed in f32: MM_TF32 from f32 in memory, of which 8 + 10 bits are multiplied; MM_BF16
// and MM_F16 from 16 bits in memory.
typedef enum mm_math { MM_F32, MM_TF32, MM_BF16, MM_F16 } mm_math;

static inline bool cmm_is_half(mm_math math) {
  return math == MM_BF16 || math == MM_F16;
}

enum {
  CMM_VL = 4,
  CMM_WARP_ROWS = 8,
  CMM_WARP_COLS = 4,
  CMM_SPREAD = 32,
  CMM_ROW = 64,             // wgmma: elements of a row of a tile, 128 bytes
  CMM_TURN_ALIGN = 256,     // bytes: of operands that are turned, in the workspace
  CMM_LAUNCH_CYCLES = 7000, // that one more phase takes
};

typedef struct cmm_problem cmm_problem;
struct cmm_problem {
  mm_problem p; // sizes, operands, bands, target, workspace_arg, want_*; no callbacks
  mm_math math;
  int width;       // args of the kernel without workspace
  int touched;     // bytes that emit_finish reads and writes for a result; 0: an element
  int worked;      // operations of emit_finish for a result (ops.def: flops)
  bool may_spread; // emit_finish can take vectors whose elements are CMM_SPREAD columns apart
  // 0: the model chooses.
  int want_tm, want_tv, want_warps_m, want_warps_n, want_bk, want_stages, want_pieces;
  int want_turned; // 1 + (a is) + 2 * (b is)
  int want_wgmma;  // 1: not by wgmma; 2: by wgmma
  // Statements at the begin of a kernel that finishes tiles, and for one vector: `product` holds
  // sums of row `line` and columns column, column + 1, ... of item `batch`; those from n on are no
  // results. With plan.spread they are columns column, column + CMM_SPREAD, ...
  void (*emit_args)(const cmm_problem *p, ir_buf *out);
  void (*emit_finish)(const cmm_problem *p, ir_buf *out, int indent);
  void *data;
};

typedef enum cmm_layout { CMM_KX, CMM_XK } cmm_layout;

// An operand in shared memory: `x` rows or columns, one step of k.
typedef struct cmm_side {
  cmm_layout layout;
  bool turned; // CMM_KX, but neighbours in memory are neighbours along k
  int x;       // bm or bn
  int vec;     // elements per copy: 16 bytes of them, or 1
  int pitch;   // elements from row to row
  int skew;    // CMM_XK: more of them, every 8 rows
  int elems;   // of one stage
} cmm_side;

typedef struct cmm_plan {
  mm_math math;
  bool wgmma; // by four warps: warps_m is a multiple of four, warps_n is 1
  int tm, tv; // of a thread: rows, vectors of columns
  int warps_m, warps_n, threads;
  int bm, bn, bk; // of a block
  int stages;     // steps of k in shared memory at a time
  cmm_side a, b;
  int64_t row_tiles, col_tiles;
  int64_t k_tiles;             // steps of k
  int64_t pieces, piece_tiles; // pieces > 1: of that many steps; a second phase adds them
  int registers;               // of a thread, estimated
  int resident;                // blocks that an SM is to have room for
  int64_t shared;      // bytes of a block: given by the launch, if more than a kernel may have
  int64_t b_shared;    // where those of b begin
  bool spread;         // rows of results begin at any address: see put_spread_finish
  int64_t rows_shared; // then: where the rows begin that go from threads to threads
  bool turned[2];      // a, b: by phases of their own, in front
  int64_t turned_at;   // where they begin in the workspace, bytes
  double cycles;       // of the whole problem, estimated
  int64_t workspace;   // bytes
  int num_phases;
  int64_t tasks[CG_MAX_PHASES];
  int phase_threads[CG_MAX_PHASES];
} cmm_plan;

void cmm_make_plan(const cmm_problem *p, cmm_plan *plan);
// The phase that multiplies: behind those that turn operands.
static inline int cmm_product_phase(const cmm_plan *plan) {
  return plan->turned[0] + plan->turned[1];
}
// Bytes of shared memory that a launch of the product gives each block; 0: its arrays are the kernel's own.
int cmm_given_shared(const cmm_problem *p, const cmm_plan *plan);
// Of plan.spread: 8 rows of each row of warps, in shared memory, and elements from one to the next.
int cmm_rows_elems(const cmm_plan *plan);
static inline int cmm_rows_pitch(const cmm_plan *plan) {
  return plan->bn + CMM_VL;
}
// Threads exchange halves of their sums at the end (cmm_emit_exchange).
static inline bool cmm_exchanges(const cmm_plan *plan) {
  return cmm_is_half(plan->math) && (plan->wgmma || plan->b.layout == CMM_KX);
}
// FMAs of f32 are written in the order that takes fewest reads of registers (cg_kernel.in_order).
bool cmm_in_order(const cmm_problem *p, const cmm_plan *plan);
// Prints the kernels NAME_0, NAME_1, ...: those that turn operands, the product and, with pieces of k, their sum.
void cmm_emit(const cmm_problem *p, const cmm_plan *plan, const char *name, ir_buf *out);

// The text of a kernel while it is printed.
typedef struct cmm_text {
  const cmm_problem *p;
  const cmm_plan *plan;
  const char *name;
  ir_buf *out;
  const char *index; // "int", or "int64_t" when an operand is too large for that
  const char *step;  // of numbers of steps: likewise, when k is
} cmm_text;
// cuda_matmul_turn.c: whether these operands can be turned (bit 0 of `which`: a, bit 1: b); what that takes; the
// problem with them where they will lie, from byte `at` of the workspace on; phases and workspace added to those
// of a plan; the kernels.
bool cmm_try_turn(const cmm_problem *p, int which, bool turned[2]);
double cmm_turn_cycles(const cmm_problem *p, const bool turned[2]);
cmm_problem cmm_turn(const cmm_problem *p, const bool turned[2], int64_t at);
void cmm_set_turn_phases(const cmm_problem *p, cmm_plan *plan);
void cmm_emit_turns(const cmm_text *t, const cmm_problem *as_it_is);
// In front of the loop over steps: what copies of this thread have in common.
void cmm_emit_copy_places(const cmm_text *t, bool is_b);
// In it: begins copying step `next` of the operand to place `put`, or to registers
// (a_next, b_next: cmm_held of a thread, 0 if none), which cmm_emit_arrival stores to it.
void cmm_emit_copy(const cmm_text *t, bool is_b);
void cmm_emit_arrival(const cmm_text *t, bool is_b);
int cmm_held(const cmm_text *t, bool is_b);
// Copies of a thread in one step; whether they pass through registers, for which there is no asynchronous copy.
int cmm_rounds(const cmm_plan *plan, const cmm_side *s);
bool cmm_is_held(const cmm_problem *p, const cmm_side *s);
// Places of this thread in the tiles; where it reads them (a_read, b_read: in place 0); its sums, all 0;
// one step from place `slot`; and what they are called.
void cmm_emit_places(const cmm_text *t);
void cmm_emit_read_places(const cmm_text *t);
void cmm_emit_sums(const cmm_text *t);
void cmm_emit_step(const cmm_text *t);
// After the last step: moves sums between threads until each has whole vectors, where products
// leave them otherwise.
void cmm_emit_exchange(const cmm_text *t);
// cuda_matmul_tensor.c: the same by mma.sync.
void cmm_emit_tensor_read_places(const cmm_text *t);
void cmm_emit_tensor_step(const cmm_text *t);
// cuda_matmul_wgmma.c: the same by wgmma; after the last step: sums may be read; a place in a tile.
void cmm_emit_wgmma_read_places(const cmm_text *t);
void cmm_emit_wgmma_step(const cmm_text *t);
void cmm_emit_wgmma_end(const cmm_text *t);
const char *cmm_wgmma_place(const cmm_text *t, const cmm_side *s, const char *x, const char *k);
const char *cmm_sums(const cmm_text *t);               // "{{c[i][4 * j], ...}}": vector j of row i
const char *cmm_row(const cmm_text *t, const char *i); // row of the tile, of a thread's row i
// "warp / 2 * 64 + ty * 4" for warp row "warp / 2" and "ty": a_row of a thread that has them.
const char *cmm_first_row(const cmm_text *t, const char *warp_row, const char *ty);
const char *cmm_column(const cmm_text *t, const char *j); // column of the tile, of vector j
// What a product is made of.
const char *cmm_scalar(const cmm_text *t);  // "float"
const char *cmm_element(const cmm_text *t); // in memory, and in the tiles: "float", "uint16_t"
int cmm_element_bytes(const cmm_problem *p);
int cmm_eight_rows(const cmm_side *s);     // elements of 8 rows of [x][k]
const char *cmm_vector(const cmm_text *t); // "vf"

#endif
