// random_networks.c: the generator's moves that add what networks are made of, out of
// primitive ops as the layers of frontend/std do.
#include "tests/random/random_parts.h"

#include <math.h>
#include <string.h>

enum { BATCH = 3, TIME = 5, WIDTH = 16, HEADS = 4 };

// --- values of networks ---------------------------------------------------------------------
// Blocks work on [BATCH, TIME, WIDTH].
static const int64_t shape[] = {BATCH, TIME, WIDTH};

static rand_val activation(rand_gen *g) {
  return rand_fit(g, rand_float(g), 3, shape);
}

static rand_val block_param(rand_gen *g, const char *what, int rank, const int64_t *dims) {
  return rand_param(g, ir_format(g->arena, "block.%d.%s", g->num_blocks, what), rank, dims);
}

static ir_node *spread(rand_gen *g, ir_node *x, const ir_node *like) {
  return ir_broadcast_to(&g->b, x, like->type.rank, like->type.dims);
}

// Results of blocks are of moderate size by design: norms and scaled weights.
static rand_val push_block(rand_gen *g, ir_node *n) {
  return rand_push(g, n, 4, 40, false, false);
}

// --- linear -----------------------------------------------------------------------------------
static ir_node *linear(rand_gen *g, ir_node *x, const char *name, int64_t out) {
  int64_t in = x->type.dims[x->type.rank - 1], rows = ir_elements(&x->type) / in;
  ir_type t = x->type;
  ir_node *w = block_param(g, ir_format(g->arena, "%s.w", name), 2, (int64_t[]){in, out}).n;
  ir_node *bias = block_param(g, ir_format(g->arena, "%s.b", name), 1, &out).n;
  ir_node *y = ir_reshape(&g->b, x, 2, (int64_t[]){rows, in});
  y = ir_matmul(&g->b, y, w, false, false);
  t.dims[t.rank - 1] = out;
  y = ir_reshape(&g->b, y, t.rank, t.dims);
  return ir_binary(&g->b, IR_ADD, y, spread(g, bias, y));
}

static ir_node *gelu(rand_gen *g, ir_node *x) {
  ir_node *e = ir_unary(&g->b, IR_ERF, ir_binary_const(&g->b, IR_MUL, x, M_SQRT1_2));
  ir_node *half = ir_binary_const(&g->b, IR_MUL, ir_binary_const(&g->b, IR_ADD, e, 1), 0.5);
  return ir_binary(&g->b, IR_MUL, x, half);
}

static ir_node *act(rand_gen *g, ir_node *x) {
  switch (rand_below(g, 3)) {
  case 0:
    return gelu(g, x);
  case 1:
    return ir_binary_const(&g->b, IR_MAX, x, 0);
  default:
    return ir_unary(&g->b, IR_TANH, x);
  }
}

static void block_mlp(rand_gen *g) {
  static const int64_t widths[] = {7, 16, 17, 33};
  g->num_blocks++;
  rand_val x = activation(g);
  ir_node *h = act(g, linear(g, x.n, "up", widths[rand_below(g, 4)]));
  ir_node *y = linear(g, h, "down", WIDTH);
  push_block(g, ir_binary(&g->b, IR_ADD, x.n, y)); // residual
}

// --- norms and softmax ---------------------------------------------------------------------------
static ir_node *mean_last(rand_gen *g, ir_node *x) {
  int64_t axis = x->type.rank - 1;
  ir_node *sum = ir_reduce(&g->b, IR_SUM, x, &axis, 1);
  return ir_binary_const(&g->b, IR_MUL, sum, 1 / (double)x->type.dims[axis]);
}

static ir_node *layernorm(rand_gen *g, ir_node *x) {
  int64_t width = x->type.dims[x->type.rank - 1];
  ir_node *gamma = block_param(g, "gamma", 1, &width).n,
          *beta = block_param(g, "beta", 1, &width).n;
  ir_node *d = ir_binary(&g->b, IR_SUB, x, spread(g, mean_last(g, x), x));
  ir_node *var = mean_last(g, ir_binary(&g->b, IR_MUL, d, d));
  ir_node *inv = ir_unary(&g->b, IR_RSQRT, ir_binary_const(&g->b, IR_ADD, var, 0.03125));
  ir_node *y = ir_binary(&g->b, IR_MUL, d, spread(g, inv, x));
  y = ir_binary(&g->b, IR_MUL, y, spread(g, gamma, x));
  return ir_binary(&g->b, IR_ADD, y, spread(g, beta, x));
}

static void block_norm(rand_gen *g) {
  g->num_blocks++;
  push_block(g, layernorm(g, activation(g).n));
}

static ir_node *softmax(rand_gen *g, ir_node *x) {
  int64_t axis = x->type.rank - 1;
  ir_node *top = ir_unary(&g->b, IR_STOP, ir_reduce(&g->b, IR_REDUCE_MAX, x, &axis, 1));
  ir_node *e = ir_unary(&g->b, IR_EXP, ir_binary(&g->b, IR_SUB, x, spread(g, top, x)));
  ir_node *sum = ir_reduce(&g->b, IR_SUM, e, &axis, 1);
  return ir_binary(&g->b, IR_DIV, e, spread(g, sum, x));
}

static void block_softmax(rand_gen *g) {
  rand_push(g, softmax(g, activation(g).n), 1, 20, false, false);
}

// -mean over rows of log softmax at the label
static void block_cross_entropy(rand_gen *g) {
  g->num_blocks++;
  enum { CLASSES = 11 };
  ir_node *logits = linear(g, activation(g).n, "head", CLASSES);
  int64_t axis = 2, rows[] = {BATCH, TIME, 1};
  ir_node *label = rand_fit(g, rand_int(g), 3, rows).n;
  ir_node *top = ir_unary(&g->b, IR_STOP, ir_reduce(&g->b, IR_REDUCE_MAX, logits, &axis, 1));
  ir_node *z = ir_binary(&g->b, IR_SUB, logits, spread(g, top, logits));
  ir_node *sum = ir_reduce(&g->b, IR_SUM, ir_unary(&g->b, IR_EXP, z), &axis, 1);
  ir_node *lse = ir_unary(&g->b, IR_LOG, sum);
  ir_type t = logits->type;
  t.dtype = IR_I32;
  ir_node *hot = ir_binary(&g->b, IR_EQ, ir_iota(&g->b, t, 2), spread(g, label, logits));
  ir_node *zero = ir_const(&g->b, logits->type, 0);
  ir_node *at = ir_reduce(&g->b, IR_SUM, ir_select(&g->b, hot, z, zero), &axis, 1);
  push_block(g, ir_binary(&g->b, IR_SUB, lse, at));
}

// --- attention -----------------------------------------------------------------------------------
// [b,t,c] -> [b,h,t,c/h]
static ir_node *heads(rand_gen *g, ir_node *x) {
  const int64_t split[] = {BATCH, TIME, HEADS, WIDTH / HEADS}, perm[] = {0, 2, 1, 3};
  return ir_transpose(&g->b, ir_reshape(&g->b, x, 4, split), perm);
}

static ir_node *third(rand_gen *g, ir_node *qkv, int i) {
  const int64_t start[] = {0, 0, i * WIDTH}, stop[] = {BATCH, TIME, (i + 1) * WIDTH};
  return ir_slice(&g->b, qkv, start, stop, (int64_t[]){1, 1, 1});
}

static ir_node *causal(rand_gen *g, ir_node *x, double fill) {
  const int64_t square[] = {TIME, TIME};
  ir_type t = ir_tensor(IR_I32, 2, square);
  ir_node *row = ir_iota(&g->b, t, 0);
  ir_node *see = spread(g, ir_binary(&g->b, IR_LE, ir_iota(&g->b, t, 1), row), x);
  return ir_select(&g->b, see, x, ir_const(&g->b, x->type, fill));
}

static void block_attention(rand_gen *g) {
  g->num_blocks++;
  rand_val x = activation(g);
  ir_node *qkv = linear(g, layernorm(g, x.n), "qkv", 3 * WIDTH);
  ir_node *q = heads(g, third(g, qkv, 0)), *k = heads(g, third(g, qkv, 1));
  ir_node *v = heads(g, third(g, qkv, 2));
  ir_node *scores = ir_matmul(&g->b, q, k, false, true);
  scores = ir_binary_const(&g->b, IR_MUL, scores, 1 / sqrt((double)WIDTH / (double)HEADS));
  ir_node *weights = softmax(g, causal(g, scores, -1e9));
  weights = rand_chance(g, 50) ? causal(g, weights, 0) : weights;
  ir_node *y = ir_matmul(&g->b, weights, v, false, false);
  y = ir_transpose(&g->b, y, (const int64_t[]){0, 2, 1, 3});
  y = linear(g, ir_reshape(&g->b, y, 3, shape), "out", WIDTH);
  push_block(g, ir_binary(&g->b, IR_ADD, x.n, y));
}

// --- masks ---------------------------------------------------------------------------------------
// by * (column - row) + from, compared with 0
static ir_node *diagonals(rand_gen *g, int64_t size) {
  static const ir_op compare[] = {IR_LT, IR_LE, IR_GT, IR_GE, IR_LE, IR_GE, IR_EQ, IR_NE};
  const int64_t square[] = {size, size};
  ir_type t = ir_tensor(IR_I32, 2, square);
  ir_node *row = ir_iota(&g->b, t, 0);
  ir_node *d = ir_binary(&g->b, IR_SUB, ir_iota(&g->b, t, 1), row);
  d = ir_binary_const(&g->b, IR_MUL, d, rand_below(g, 5) - 2);
  int from = rand_below(g, 2 * (int)size) - (int)size;
  ir_op op = compare[rand_below(g, 8)];
  return ir_binary(&g->b, op, d, ir_const(&g->b, t, from));
}

// Attention to itself without softmax, over a band (or all but a band) of the pairs.
static void block_band(rand_gen *g) {
  static const int64_t sizes[] = {5, 16, 24, 40};
  int64_t size = sizes[rand_below(g, 4)], dims[] = {2, size, 8};
  rand_val x = rand_fit(g, rand_float(g), 3, dims);
  ir_node *mask = diagonals(g, size);
  if (rand_chance(g, 60))
    mask = ir_binary(&g->b, rand_chance(g, 80) ? IR_AND : IR_OR, mask, diagonals(g, size));
  if (rand_chance(g, 20))
    mask = ir_unary(&g->b, IR_NOT, mask);
  ir_node *s = ir_matmul(&g->b, x.n, x.n, false, true);
  s = ir_binary_const(&g->b, IR_MUL, s, 0.125 / (x.mag * x.mag + 1));
  s = ir_select(&g->b, spread(g, mask, s), s, ir_const(&g->b, s->type, 0));
  bool turned = rand_chance(g, 50);
  ir_node *y = rand_chance(g, 30) ? ir_matmul(&g->b, s, s, turned, rand_chance(g, 50))
                                  : ir_matmul(&g->b, s, x.n, turned, false);
  y = ir_binary_const(&g->b, IR_MUL, y, 1 / (double)size);
  rand_push(g, y, x.mag + 1, 4 * x.noise + 40, false, false);
}

// --- embedding, dropout --------------------------------------------------------------------------
static void block_embedding(rand_gen *g) {
  g->num_blocks++;
  const int64_t table[] = {7, WIDTH},
                place[] = {TIME, WIDTH}; // picked twice, so that table_products has work
  ir_node *index = rand_fit(g, rand_int(g), 2, shape).n;
  ir_node *tokens = ir_gather(&g->b, block_param(g, "wte", 2, table).n, index);
  tokens = linear(g, tokens, "in", WIDTH);
  ir_node *places = block_param(g, "wpe", 2, place).n;
  push_block(g, ir_binary(&g->b, IR_ADD, tokens, spread(g, places, tokens)));
}

// Sums of rows of one table, by two lists: SGD changes no other rows of it.
static void block_bags(rand_gen *g) {
  enum { BAG = 4 };
  g->num_blocks++;
  rand_val x = activation(g);
  const int64_t dims[] = {60, WIDTH}, bags[] = {BATCH, BAG, TIME}, one = 1;
  ir_node *table = block_param(g, "table", 2, dims).n;
  ir_node *many = ir_gather(&g->b, table, rand_fit(g, rand_int(g), 3, bags).n);
  ir_node *sum = ir_reduce(&g->b, IR_SUM, many, &one, 1);
  ir_node *single = ir_gather(&g->b, table, rand_fit(g, rand_int(g), 2, shape).n);
  ir_node *y = ir_reshape(&g->b, sum, 3, shape);
  y = rand_chance(g, 70) ? ir_binary(&g->b, IR_ADD, y, single) : y;
  push_block(g, ir_binary(&g->b, IR_ADD, x.n, ir_binary_const(&g->b, IR_MUL, y, 0.5)));
}

static void block_dropout(rand_gen *g) {
  rand_val x = activation(g);
  ir_node *u = ir_uniform(&g->b, x.n->type, g->seed, g->step, g->stream++);
  ir_node *keep = ir_binary_const(&g->b, IR_LT, u, 0.75);
  ir_node *zero = ir_const(&g->b, x.n->type, 0);
  ir_node *y = ir_select(&g->b, keep, ir_binary_const(&g->b, IR_MUL, x.n, 1 / 0.75), zero);
  rand_push(g, y, x.mag * 4 / 3, x.noise * 4 / 3, false, false);
}

const rand_choice rand_network_moves[] = {{block_mlp, 5},       {block_norm, 2},
                                          {block_softmax, 1},   {block_cross_entropy, 2},
                                          {block_attention, 4}, {block_band, 3},
                                          {block_embedding, 2}, {block_bags, 2},
                                          {block_dropout, 1},   {0}};
