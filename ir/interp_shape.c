// interp_shape.c: reductions, views, pad and concat of the interpreter.
#include "ir/interp_ops.h"

#include <string.h>

// --- reductions ---------------------------------------------------------------------------------
// Strides of the result over the operand's axes: 0 along reduced ones.
static interp_walk over_operand(const interp_ctx *c) {
  const ir_type *in = &c->n->in[0]->type, *out = &c->n->type;
  int64_t stride[IR_MAX_RANK];
  ir_row_major(out, stride);
  for (int i = 0; i < in->rank; i++)
    if (out->dims[i] == 1)
      stride[i] = 0;
  return interp_walk_new(in, 0, stride);
}

static void reduce_sum(interp_ctx *c) {
  interp_walk w = over_operand(c);
  for (int64_t i = 0; i < ir_elements(&c->n->in[0]->type); i++, interp_walk_next(&w)) {
    c->out[w.at] = interp_wrap(c->out[w.at] + c->in[0][i], c->n->type.dtype);
    if (c->dout)
      c->dout[w.at] += c->din[0][i];
  }
}

// The tangent of an extreme: the mean of its operands' tangents where several are extreme.
static void reduce_extreme_tangent(interp_ctx *c) {
  int64_t num = ir_elements(&c->n->type);
  double *count = IR_NEW_ARRAY(c->arena, double, num);
  interp_walk w = over_operand(c);
  for (int64_t i = 0; i < ir_elements(&c->n->in[0]->type); i++, interp_walk_next(&w))
    if (c->in[0][i] == c->out[w.at]) {
      c->dout[w.at] += c->din[0][i];
      count[w.at]++;
    }
  for (int64_t i = 0; i < num; i++)
    if (count[i] > 0)
      c->dout[i] /= count[i];
}

static void reduce_extreme(interp_ctx *c) {
  bool *seen = IR_NEW_ARRAY(c->arena, bool, ir_elements(&c->n->type));
  bool max = c->n->op == IR_REDUCE_MAX;
  interp_walk w = over_operand(c);
  for (int64_t i = 0; i < ir_elements(&c->n->in[0]->type); i++, interp_walk_next(&w)) {
    double x = c->in[0][i], *best = &c->out[w.at];
    // `best` is the first operand of the comparison, as in max and min.
    *best = !seen[w.at] ? x : (max ? *best > x : *best < x) ? *best : x;
    seen[w.at] = true;
  }
  if (c->dout)
    reduce_extreme_tangent(c);
}

void interp_reduce(interp_ctx *c) {
  if (c->n->op == IR_SUM)
    reduce_sum(c);
  else
    reduce_extreme(c);
}

void interp_arg(interp_ctx *c) {
  int64_t axis = ir_attr_int(c->n, IR_ATTR_AXIS), num = ir_elements(&c->n->type);
  double *best = IR_NEW_ARRAY(c->arena, double, num);
  bool *seen = IR_NEW_ARRAY(c->arena, bool, num), max = c->n->op == IR_ARGMAX;
  interp_walk w = over_operand(c);
  for (int64_t i = 0; i < ir_elements(&c->n->in[0]->type); i++, interp_walk_next(&w)) {
    double x = c->in[0][i];
    if (seen[w.at] && !(max ? x > best[w.at] : x < best[w.at]))
      continue;
    seen[w.at] = true;
    best[w.at] = x;
    c->out[w.at] = (double)w.index[axis];
  }
}

// --- views ---------------------------------------------------------------------------------------
// out[i] = in[offset + sum of index * stride]
static void copy_from(interp_ctx *c, int64_t offset, const int64_t *stride) {
  interp_walk w = interp_walk_new(&c->n->type, offset, stride);
  for (int64_t i = 0; i < ir_elements(&c->n->type); i++, interp_walk_next(&w)) {
    c->out[i] = c->in[0][w.at];
    if (c->dout)
      c->dout[i] = c->din[0][w.at];
  }
}

void interp_reshape(interp_ctx *c) {
  size_t bytes = sizeof(double) * (size_t)ir_elements(&c->n->type);
  memcpy(c->out, c->in[0], bytes);
  if (c->dout)
    memcpy(c->dout, c->din[0], bytes);
}

void interp_transpose(interp_ctx *c) {
  int64_t from[IR_MAX_RANK], stride[IR_MAX_RANK];
  const int64_t *perm = ir_attr_ints(c->n, IR_ATTR_PERM, NULL);
  ir_row_major(&c->n->in[0]->type, from);
  for (int i = 0; i < c->n->type.rank; i++)
    stride[i] = from[perm[i]];
  copy_from(c, 0, stride);
}

void interp_broadcast(interp_ctx *c) {
  int64_t stride[IR_MAX_RANK];
  ir_row_major(&c->n->in[0]->type, stride);
  for (int i = 0; i < c->n->type.rank; i++)
    if (c->n->in[0]->type.dims[i] == 1)
      stride[i] = 0;
  copy_from(c, 0, stride);
}

void interp_slice(interp_ctx *c) {
  int64_t stride[IR_MAX_RANK], offset = 0;
  const int64_t *start = ir_attr_ints(c->n, IR_ATTR_START, NULL);
  const int64_t *step = ir_attr_ints(c->n, IR_ATTR_STEP, NULL);
  ir_row_major(&c->n->in[0]->type, stride);
  for (int i = 0; i < c->n->type.rank; i++) {
    offset += start[i] * stride[i];
    stride[i] *= step[i];
  }
  copy_from(c, offset, stride);
}

void interp_windows(interp_ctx *c) {
  int64_t stride[IR_MAX_RANK];
  int num;
  const int64_t *axes = ir_attr_ints(c->n, IR_ATTR_AXES, &num);
  const int64_t *step = ir_attr_ints(c->n, IR_ATTR_STEP, NULL);
  const int64_t *dilate = ir_attr_ints(c->n, IR_ATTR_DILATE, NULL);
  ir_row_major(&c->n->in[0]->type, stride);
  for (int i = 0; i < num; i++) {
    int64_t along = stride[axes[i]];
    stride[axes[i]] = along * step[i];
    stride[c->n->in[0]->type.rank + i] = along * dilate[i];
  }
  copy_from(c, 0, stride);
}

// --- pad, concat, insert ----------------------------------------------------------------------
// out[offset + sum of index * stride of out] = operand k
static void copy_into(interp_ctx *c, int k, const int64_t *at) {
  const ir_type *in = &c->n->in[k]->type;
  int64_t stride[IR_MAX_RANK], offset = 0;
  ir_row_major(&c->n->type, stride);
  for (int i = 0; i < in->rank; i++)
    offset += at[i] * stride[i];
  interp_walk w = interp_walk_new(in, offset, stride);
  for (int64_t i = 0; i < ir_elements(in); i++, interp_walk_next(&w)) {
    c->out[w.at] = c->in[k][i];
    if (c->dout)
      c->dout[w.at] = c->din[k][i];
  }
}

void interp_pad(interp_ctx *c) {
  double v = interp_wrap(ir_attr_num(c->n, IR_ATTR_VALUE), c->n->type.dtype);
  for (int64_t i = 0; i < ir_elements(&c->n->type); i++)
    c->out[i] = v;
  static const int64_t none[IR_MAX_RANK];
  const int64_t *lo = ir_attr_ints(c->n, IR_ATTR_LO, NULL);
  copy_into(c, 0, lo ? lo : none);
}

void interp_concat(interp_ctx *c) {
  int64_t axis = ir_attr_int(c->n, IR_ATTR_AXIS), at[IR_MAX_RANK] = {0};
  for (int k = 0; k < c->n->num_in; k++) {
    copy_into(c, k, at);
    at[axis] += c->n->in[k]->type.dims[axis];
  }
}

void interp_insert(interp_ctx *c) {
  static const int64_t none[IR_MAX_RANK];
  const int64_t *lo = ir_attr_ints(c->n, IR_ATTR_LO, NULL);
  copy_into(c, 0, none);
  copy_into(c, 1, lo ? lo : none);
}
