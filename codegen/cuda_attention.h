// cuda_attention.h: what the parts of the attention generator for GPUs share.
//
//   cuda_attention.c         the family's two functions; a kernel described
//   cuda_attention_plan.c    decisions: tiles, places in shared memory; the cost model
//   cuda_attention_online.c  is it a softmax whose maximum and sum take one sweep, or all of it?
//   cuda_attention_masks.c   tiles in which masks let everything through
//   cuda_attention_tile.c    text: operands to shared memory, products of tiles in f32
//   cuda_attention_tensor.c  text: the same of 16-bit operands, by the tensor cores
//   cuda_attention_values.c  text: scores, weights, row values
//   cuda_attention_core.c    text: the kernel around them
//
// A block of threads owns bx rows of the scores (or bx columns, in kernels whose products out sum
// over m: then everything below is of the transposed scores, and that is the only difference). It
// walks over the other axis, the streamed one, in tiles of `by`:
//
//   for each tile that the masks leave:
//     scores  = own . streamed        per product in, 16 steps of the width at a time
//     weights = pointwise of scores   in registers
//     out    += weights . values      per product out, 16 streamed rows at a time
//
// A block owns what it writes and walks in order, so sums have a fixed order. Row reductions run
// over the threads that share a row; a kernel whose weights need them takes one sweep over the
// tiles per depth of reductions, but softmax takes one or two (cuda_attention_online.c).
//
// Products in f32. Threads are 16 (ty) x 8 (tx): a thread has rows ty, ty + 16, ... of the tile and
// vectors tx, tx + 8, ... of 4 streamed columns; of products out the same rows, and vectors
// likewise. Operands come by asynchronous copies, one step ahead of the products; weights go
// through shared memory. Neighbours in a warp are two rows of one tx, so that loads of 16 bytes of both operands
// take half the cycles (cuda_matmul_tile.c). Two designs were considered for the own operand: kept in shared memory for
// the whole kernel (as FlashAttention does), or copied again with each tile like the streamed one.
// We took the second: shared memory is then the same for all widths and stays under the 48 KiB that
// need no asking, and at 16 FLOPs per byte the second cache is not what f32 products wait for.
//
// Products by the tensor cores, where products of operands are exact in f32: the IR casts all from
// one 16-bit type and the kernel has taken the conversions in (passes/fold_conversions.c); or all
// hold at most 11 digits, in f32 (ir_known_digits; then mma multiplies them as tf32). A warp has
// 8 rx rows; a thread (ty, tx), as mma.sync deals out its sums, rows ty, ty + 8, ... and 4
// neighbours of each 16 streamed columns. Here there were two candidates, too:
//   1. The steps of f32, with narrower elements: 16 of the width at a time, copied one step ahead,
//      weights through shared memory. Little new text; but with the tensor cores a step is some 100
//      cycles of products, and pays a barrier and the latency of its first loads each time. Both
//      operands are copied for each tile, and a matrix that is streamed for one product and holds
//      the values of another (k in the gradient of q; q and dy in those of k and v) twice.
//   2. Whole tiles: own operands lie in shared memory for the whole kernel, streamed ones come one
//      tile at a time into one of two slots (or the only one, where two have no room), once for all
//      products of the tile; one barrier per tile. Weights go from the registers where the scores
//      were to those where mma wants its left operand (Dao 2023, FlashAttention-2).
// We took 2: half the copies, a tenth of the barriers, no shared memory for weights. Tiles of 16
// bits are small enough for 48 KiB: 128 x 32 with a width of 64; wider ones, and those of tf32,
// have fewer rows and columns. What a tile has beyond an operand is 0, so that sizes need no FMAs;
// what does not fit (more than two products in of tf32, 128 wide) is left to them by the plan.
//
// Rounding is the IR's. Softmax's weights are narrowed after the division by their sum, so that sum
// must be known: maximum and sum take a sweep of their own, of scores only, unless one tile has the
// whole row. (FlashAttention narrows exp(x - maximum so far) and divides at the end: other numbers
// than the IR's, up to 2^-8 away. The gradients reckon with the weights as they are here.)
#ifndef CODEGEN_CUDA_ATTENTION_H
#define CODEGEN_CUDA_ATTENTION_H

#include "codegen/cpu_expr.h"
#include "codegen/cpu_matmul.h"

enum {
  CATT_VL = 4,
  CATT_MMA = 16, // of the width, or of streamed rows, at a time; rows and columns of two products
  // in f32
  CATT_THREADS = 128,
  CATT_TY = 16,                // groups of threads with rows of their own
  CATT_TX = 8,                 // threads of a group
  CATT_STEP = 16,              // of the width, or of streamed rows
  CATT_PITCH = CATT_STEP + 4,  // of a row in a step; 4 more every 8 rows: no two of a half of a
                               // warp meet in a bank
  CATT_MAX = DOM_MAX_PRODUCTS, // products in, products out
  CATT_MASKS = 4,
};

// s[x,y] = sum over k of own[x,k] streamed[y,k]
typedef struct catt_in {
  const ir_node *n;
  mm_operand own, streamed;
  int64_t width;
  int own_at, at, pitch; // tensor cores: in shared memory; at: within a slot
} catt_in;

// out[x,e] = sum over y of weights[x,y] values[y,e]
typedef struct catt_out {
  const ir_node *n;
  const ir_node *weights; // member: its value is what is multiplied, or narrowed for that
  mm_operand values;      // x: e; k: streamed
  int64_t width;
  int vectors; // of a thread
  int arg;
  int at, pitch; // tensor cores: in shared memory, within a slot
  bool copied;   // not streamed for a product in
} catt_out;

// softmax: e = exp(x - max), whose maximum and sum take one sweep.
typedef struct catt_online {
  bool found;
  bool whole; // as does all else: weights = L(e / sum), where L is linear: masks, factors
  const ir_node *x, *max, *e, *sum;
  const ir_node *quotient; // e / sum; NULL: the weights are not divided
  const ir_node
      *masked; // x is select(_, masked, constant): the constant where masked is not needed
  double constant;
} catt_online;

// A comparison of indices: false on some diagonals streamed - own only.
typedef struct catt_mask {
  const ir_node *n;
  ir_band no;
} catt_mask;

typedef struct catt {
  const cg_kernel *kernel;
  cg_kernel inner; // the same, with the scores as its members: for the expression emitter
  const dom_attention *dom;
  int num_in, num_out;
  catt_in in[CATT_MAX];
  catt_out out[CATT_MAX];
  int64_t batch, x, y; // sizes; x: own, y: streamed
  int first_x, num_x;  // domain axes
  int first_y, num_y;
  catt_online online;
  int sweeps;
  ir_band band; // streamed - own: outside, nothing is needed in the last sweep
  bool banded;
  int num_masks;
  catt_mask mask[CATT_MASKS];
  const char *mma; // "bf16", "f16", "tf32": by the tensor cores; NULL: FMAs
  int elem_bytes;  // of operands in memory
  // decisions
  int threads;
  int row_step;                              // a thread's rows are so far apart
  int group;                                 // threads that share a row
  int rx, ry;                                // rows, vectors of a thread
  int bx, by;                                // of a block
  int registers;                             // of a thread, estimated
  int resident;                              // blocks that an SM is to have room for
  int step_elems, side_elems, weights_pitch; // in f32
  int own_elems, slots, slot_elems;          // by the tensor cores
  int64_t tiles;                             // blocks per item
  int64_t together;                          // items whose blocks take turns
  bool last_first;                           // the last tile of an item comes first
} catt;

// The text of a kernel while it is printed.
typedef struct catt_text {
  const catt *t;
  const char *name;
  ir_buf *out;
  ir_arena *arena;
  const char *index; // "int", or "int64_t" when an operand is too large for that
  ir_map *names;     // scope of the function
  const char *axis[DOM_MAX_AXES];
  int sweep;     // values of reductions before it are there
  bool have_x;   // online: x is in registers
  bool in_tile;  // online: the sum is that of the tile at hand, the only one
  bool all_seen; // masks are true
} catt_text;

// Weights need the sum first, and a tile has all columns: both in the one sweep.
static inline bool catt_is_at_once(const catt *t) {
  return t->online.found && !t->online.whole && t->y <= t->by;
}
// The sweep in which n can be computed; for a reduction its result is there one later.
int catt_sweep_of(const catt *t, const ir_node *n);
catt_online catt_find_online(const catt *t);
void catt_find_masks(catt *t);
bool catt_is_mask(const catt *t, const ir_node *n);
// C expression: masks are true in the whole tile at y0; NULL: there are none.
const char *catt_all_seen(const catt_text *x);
// exp(x - maximum of the row), which is at most 1.
bool catt_is_row_exp(const ir_node *n);
// The sum of these over a row.
bool catt_is_row_sum(const ir_node *n);
void catt_make_plan(catt *t);
// Up to a whole number of what an mma takes.
int catt_padded(int64_t width);
// Elements of so many rows of a tile (a multiple of 8) that the tensor cores read: 16 bytes beyond
// the width make the pitch an odd number of 16 bytes; 32 more every 8 rows. So the rows that
// ldmatrix reads at a time are on different banks: 8 in a row, or 0, 1, 4, 5, 8, 9, 12, 13.
int catt_tile_elems(const catt *t, int rows, int pitch);

// A piece of an operand: `lines` by `length` elements, the latter side by side in shared memory.
typedef struct catt_piece {
  const char *from; // name of the pointer
  const mm_operand *o;
  const mm_axes *line, *inner;
  const char *line0, *inner0; // where it begins, in the operand
  int lines, length;
  int apart; // pieces are copied up to a multiple of so many lines, all of them; 0: of `lines`
  int64_t num_lines, num_inner; // of the operand
  const char *to, *place;       // name of the array; element of (line, inner)
} catt_piece;
// What lies outside the operand is 0.
void catt_emit_copies(const catt_text *x, const catt_piece *p);
// Functions before the kernel: NAME_copy_in0, NAME_copy_out0, NAME_scores, NAME_out0
void catt_emit_functions(const catt_text *x);
// By the tensor cores: NAME_copy_own, NAME_copy_in, NAME_copy_out, NAME_multiply, NAME_scores0,
// NAME_out0; the copies that a kernel begins with; those of the tile at y0; the products of a tile;
// the end.
void catt_emit_tensor_functions(const catt_text *x);
void catt_emit_tensor_own(const catt_text *x);
void catt_emit_tensor_copies(const catt_text *x, const char *indent, const char *y0,
                             const char *slot);
void catt_emit_tensor_in(const catt_text *x, int i);
void catt_emit_tensor_out(const catt_text *x, int i);
void catt_emit_tensor_exchange(const catt_text *x, int out);
// The tile at y0: what is emitted between products in and products out; after the last tile;
// stores.
void catt_emit_row_values(catt_text *x);
void catt_emit_held_loads(catt_text *x); // kernels over columns: of a tile; others: once
void catt_emit_values(catt_text *x);
void catt_emit_finish(catt_text *x);
void catt_emit_weights(const catt_text *x, int out); // of products out but the first
void catt_emit_kernel(const catt *t, const char *name, ir_buf *out);

#endif
