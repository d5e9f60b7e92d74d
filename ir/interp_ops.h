// interp_ops.h: what the interpreter's op rules share. For ir/ only.
//
// A rule computes all elements of one node, and their tangents when there are any
// (`dout` != NULL: forward mode). Buffers of results are zeroed beforehand.
#ifndef IR_INTERP_OPS_H
#define IR_INTERP_OPS_H

#include "ir/interp.h"

typedef struct interp_ctx {
  ir_arena *arena;
  const ir_node *n;
  const double *const *in;  // operand values
  const double *const *din; // operand tangents; NULL without tangents
  double *out;
  double *dout; // NULL without tangents
} interp_ctx;

typedef void (*interp_rule)(interp_ctx *c);

// The rules of ops.def's column `interp`.
void interp_leaf(interp_ctx *c);
void interp_const(interp_ctx *c);
void interp_iota(interp_ctx *c);
void interp_random(interp_ctx *c);
void interp_unary(interp_ctx *c);
void interp_cast(interp_ctx *c);
void interp_binary(interp_ctx *c);
void interp_select(interp_ctx *c);
void interp_reduce(interp_ctx *c);
void interp_arg(interp_ctx *c);
void interp_reshape(interp_ctx *c);
void interp_transpose(interp_ctx *c);
void interp_broadcast(interp_ctx *c);
void interp_slice(interp_ctx *c);
void interp_windows(interp_ctx *c);
void interp_pad(interp_ctx *c);
void interp_concat(interp_ctx *c);
void interp_insert(interp_ctx *c);
void interp_gather(interp_ctx *c);
void interp_scatter_add(interp_ctx *c);
void interp_scatter_max(interp_ctx *c);
void interp_matmul(interp_ctx *c);
void interp_conv(interp_ctx *c);
void interp_write(interp_ctx *c);
void interp_none(interp_ctx *c);

// What an element of type `t` holds after `v` is stored in it: integers wrap, bool is 0 or 1,
// floats keep all digits.
double interp_wrap(double v, ir_dtype t);

// Visits the elements of a shape in row-major order, and for each the element
// offset + sum over axes of index * stride of another tensor.
typedef struct interp_walk {
  int rank;
  int64_t dims[IR_MAX_RANK], stride[IR_MAX_RANK], index[IR_MAX_RANK];
  int64_t at; // the other tensor's element
} interp_walk;
interp_walk interp_walk_new(const ir_type *shape, int64_t offset, const int64_t *stride);
void interp_walk_next(interp_walk *w);

#endif
