// interp_index.c: gather, scatter_add, scatter_max, matmul and conv of the interpreter.
#include "ir/interp_ops.h"

// The contract of all targets: an index outside the table means its first or last row,
// so that no data whatever leads to an access out of bounds.
static int64_t clamp_row(double index, int64_t rows) {
  return index < 0 ? 0 : index >= (double)rows ? rows - 1 : (int64_t)index;
}

static int64_t row_elements(const ir_type *table) {
  return ir_elements(table) / table->dims[0];
}

void interp_gather(interp_ctx *c) {
  const ir_type *table = &c->n->in[0]->type;
  int64_t row = row_elements(table), num = ir_elements(&c->n->in[1]->type);
  for (int64_t i = 0; i < num; i++) {
    int64_t from = clamp_row(c->in[1][i], table->dims[0]) * row;
    for (int64_t k = 0; k < row; k++) {
      c->out[i * row + k] = c->in[0][from + k];
      if (c->dout)
        c->dout[i * row + k] = c->din[0][from + k];
    }
  }
}

// The element of the table that element i of the update goes to.
static int64_t scatter_to(const interp_ctx *c, int64_t i) {
  const ir_type *table = &c->n->type;
  int64_t row = row_elements(table);
  return clamp_row(c->in[0][i / row], table->dims[0]) * row + i % row;
}

void interp_scatter_add(interp_ctx *c) {
  for (int64_t i = 0; i < ir_elements(&c->n->in[1]->type); i++) {
    int64_t to = scatter_to(c, i);
    c->out[to] = interp_wrap(c->out[to] + c->in[1][i], c->n->type.dtype);
    if (c->dout)
      c->dout[to] += c->din[1][i];
  }
}

// The mean of the tangents of those that are largest, as of reduce_max.
static void scatter_max_tangent(interp_ctx *c) {
  double *count = IR_NEW_ARRAY(c->arena, double, ir_elements(&c->n->type));
  for (int64_t i = 0; i < ir_elements(&c->n->in[1]->type); i++) {
    int64_t to = scatter_to(c, i);
    if (c->in[1][i] == c->out[to])
      c->dout[to] += (c->din[1][i] - c->dout[to]) / ++count[to];
  }
}

void interp_scatter_max(interp_ctx *c) {
  double least = ir_start_value(IR_SCATTER_MAX, c->n->type.dtype);
  for (int64_t i = 0; i < ir_elements(&c->n->type); i++)
    c->out[i] = least;
  for (int64_t i = 0; i < ir_elements(&c->n->in[1]->type); i++) {
    double *best = &c->out[scatter_to(c, i)];
    *best = *best > c->in[1][i] ? *best : c->in[1][i]; // as in max
  }
  if (c->dout)
    scatter_max_tangent(c);
}

// --- matmul --------------------------------------------------------------------------------------
typedef struct matmul_sizes {
  int64_t batch, m, n, k;
  int64_t a_m, a_k, b_k, b_n; // strides inside one matrix
} matmul_sizes;

static matmul_sizes sizes_of(const ir_node *n) {
  int r = n->type.rank;
  const ir_type *a = &n->in[0]->type, *b = &n->in[1]->type;
  bool ta = ir_attr_bool(n, IR_ATTR_TRANS_A), tb = ir_attr_bool(n, IR_ATTR_TRANS_B);
  matmul_sizes s = {.m = n->type.dims[r - 2], .n = n->type.dims[r - 1]};
  s.k = a->dims[ta ? r - 2 : r - 1];
  s.batch = ir_elements(&n->type) / (s.m * s.n);
  s.a_m = ta ? 1 : a->dims[r - 1];
  s.a_k = ta ? a->dims[r - 1] : 1;
  s.b_k = tb ? 1 : b->dims[r - 1];
  s.b_n = tb ? b->dims[r - 1] : 1;
  return s;
}

// out += a b, one matrix
static void multiply(const matmul_sizes *s, const double *a, const double *b, double *out) {
  for (int64_t i = 0; i < s->m; i++)
    for (int64_t k = 0; k < s->k; k++) {
      double x = a[i * s->a_m + k * s->a_k];
      for (int64_t j = 0; j < s->n; j++)
        out[i * s->n + j] += x * b[k * s->b_k + j * s->b_n];
    }
}

void interp_matmul(interp_ctx *c) {
  matmul_sizes s = sizes_of(c->n);
  for (int64_t i = 0; i < s.batch; i++) {
    int64_t a = i * s.m * s.k, b = i * s.k * s.n, out = i * s.m * s.n;
    multiply(&s, c->in[0] + a, c->in[1] + b, c->out + out);
    if (!c->dout)
      continue;
    multiply(&s, c->din[0] + a, c->in[1] + b, c->dout + out);
    multiply(&s, c->in[0] + a, c->din[1] + b, c->dout + out);
  }
}

// --- convolution ------------------------------------------------------------------------------
// out[b, i..., m] += x[b, i * step + k * dilate..., c] * kernel[k..., c, m]: a walk through x in
// the order [b, i..., k..., c], with a row of `out` and one of the kernel for each element.
static void convolve(const ir_node *n, const double *x, const double *kernel, double *out) {
  int num = n->type.rank - 2;
  const int64_t *step = ir_attr_ints(n, IR_ATTR_STEP, NULL);
  const int64_t *dilate = ir_attr_ints(n, IR_ATTR_DILATE, NULL);
  const ir_type *image = &n->in[0]->type, *k = &n->in[1]->type;
  int64_t from[IR_MAX_RANK], stride[IR_MAX_RANK], m = n->type.dims[num + 1];
  ir_row_major(image, from);
  ir_type walked = *image;
  walked.rank = 2 * num + 2;
  stride[0] = from[0];
  for (int i = 0; i < num; i++) {
    walked.dims[1 + i] = n->type.dims[1 + i];
    stride[1 + i] = from[1 + i] * step[i];
    walked.dims[1 + num + i] = k->dims[i];
    stride[1 + num + i] = from[1 + i] * dilate[i];
  }
  walked.dims[1 + 2 * num] = image->dims[num + 1];
  stride[1 + 2 * num] = 1;
  int64_t rows = ir_elements(k) / m;
  interp_walk w = interp_walk_new(&walked, 0, stride);
  for (int64_t e = 0; e < ir_elements(&walked); e++, interp_walk_next(&w))
    for (int64_t j = 0; j < m; j++)
      out[e / rows * m + j] += x[w.at] * kernel[e % rows * m + j];
}

void interp_conv(interp_ctx *c) {
  convolve(c->n, c->in[0], c->in[1], c->out);
  if (!c->dout)
    return;
  convolve(c->n, c->din[0], c->in[1], c->dout);
  convolve(c->n, c->in[0], c->din[1], c->dout);
}
