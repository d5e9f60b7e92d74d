// cuda_attention.h: what the parts of the attention generator for GPUs share.
//
//   cuda_attention.c         the family's two functions; a kernel described; decisions
//   cuda_attention_online.c  is it a softmax that one sweep can do?
//   cuda_attention_tile.c    text: operands to shared memory, products of tiles
//   cuda_attention_values.c  text: scores, weights, row values
//   cuda_attention_core.c    text: the kernel around them
//
// A block of threads owns bx rows of the scores (or bx columns, in kernels whose products out sum
// over m: then everything below is of the transposed scores, and that is the only difference). It
// walks over the other axis, the streamed one, in tiles of `by`:
//
//   for each tile that the masks leave:
//     scores  = own . streamed        per product in, 16 steps of the width at a time
//     weights = pointwise of scores   in registers; then to shared memory
//     out    += weights . values      per product out, 16 streamed rows at a time
//
// Operands come by asynchronous copies, one step ahead of the products. A block owns what it writes
// and walks in order, so sums have a fixed order. Row reductions run over the 8 threads that share
// a row; a kernel whose weights need them takes one sweep over the tiles per depth of reductions,
// but softmax takes one only (cuda_attention_online.c).
//
// Threads are 16 (ty) x 8 (tx): a thread has rows ty, ty + 16, ... of the tile and vectors tx,
// tx + 8, ... of 4 streamed columns; of products out the same rows, and vectors likewise.
//
// Two designs were considered for the own operand: kept in shared memory for the whole kernel (as
// FlashAttention does), or copied again with each tile like the streamed one. We took the second:
// shared memory is then the same for all widths and stays under the 48 KiB that need no asking, and
// at 16 FLOPs per byte the second cache is not what f32 products wait for.
#ifndef CODEGEN_CUDA_ATTENTION_H
#define CODEGEN_CUDA_ATTENTION_H

#include "codegen/cpu_expr.h"
#include "codegen/cpu_matmul.h"

enum {
  CATT_THREADS = 128,
  CATT_TY = 16, // groups of threads with rows of their own
  CATT_TX = 8,  // threads of a group
  CATT_VL = 4,
  CATT_STEP = 16,              // of the width, or of streamed rows
  CATT_PITCH = CATT_STEP + 4,  // of a row in a step; 4 more every 8 rows: no two of a quarter of a
                               // warp meet in a bank
  CATT_MAX = DOM_MAX_PRODUCTS, // products in, products out
};

// s[x,y] = sum over k of own[x,k] streamed[y,k]
typedef struct catt_in {
  const ir_node *n;
  mm_operand own, streamed;
  int64_t width;
} catt_in;

// out[x,e] = sum over y of weights[x,y] values[y,e]
typedef struct catt_out {
  const ir_node *n;
  mm_operand values; // x: e; k: streamed
  int64_t width;
  int vectors; // of a thread
  int arg;
} catt_out;

// softmax in one sweep: weights = L(e / sum), e = exp(x - max), where L is linear: masks, factors.
typedef struct catt_online {
  bool found;
  const ir_node *x, *max, *e, *sum;
  const ir_node *quotient; // e / sum; NULL: the weights are not divided
  const ir_node
      *masked; // x is select(_, masked, constant): the constant where masked is not needed
  double constant;
} catt_online;

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
  // decisions
  int rx, ry;    // rows, vectors of a thread
  int bx, by;    // of a block
  int registers; // of a thread, estimated
  int resident;  // blocks that an SM is to have room for
  int step_elems, side_elems, weights_pitch;
  int64_t tiles; // blocks per item
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
  int sweep;   // values of reductions before it are there
  bool have_x; // online: x is in registers
} catt_text;

// The sweep in which n can be computed; for a reduction its result is there one later.
int catt_sweep_of(const catt *t, const ir_node *n);
catt_online catt_find_online(const catt *t);
// Functions before the kernel: NAME_copy_in0, NAME_copy_out0, NAME_scores, NAME_out0
void catt_emit_functions(const catt_text *x);
// The tile at y0: what is emitted between products in and products out; after the last tile;
// stores.
void catt_emit_row_values(catt_text *x);
void catt_emit_values(catt_text *x);
void catt_emit_finish(catt_text *x);
void catt_emit_weights(const catt_text *x, int out); // of products out but the first
void catt_emit_kernel(const catt *t, const char *name, ir_buf *out);

#endif
