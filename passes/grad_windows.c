// grad_windows.c: the gradient rules of windows and conv.
//
// Both need the same turn-about. Place i of a window axis saw the elements i*step + k*dilate; now
// element h gathers what all windows say of it:  d.x[h] = sum of g[i, k] over i*step + k*dilate =
// h. For step > 1 (and dilate 1) the elements are sorted by phase, h = a*step + r and k = t*step +
// r:
//
//   d.x[a, r] = sum over t of g[a - t, t, r]
//
// a sum over neighbouring places for each phase, without the zeros that a stretched g would have.
// With dilate > 1 as well, g is stretched.
#include "passes/convolutions.h"
#include "passes/grad.h"

ir_node *grad_resized(grad_ctx *c, ir_node *g, const int64_t *dims) {
  int64_t least[IR_MAX_RANK] = {0}, none[IR_MAX_RANK] = {0}, more[IR_MAX_RANK];
  bool grows = false;
  for (int i = 0; i < g->type.rank; i++) {
    least[i] = g->type.dims[i] < dims[i] ? g->type.dims[i] : dims[i];
    more[i] = dims[i] - least[i];
    grows |= more[i] > 0;
  }
  ir_node *part = grad_crop(c, g, least);
  return grows ? ir_pad(&c->b, part, none, more, 0) : part;
}

// step - 1 zeros between the elements along `axis`, none behind the last.
static ir_node *stretched(grad_ctx *c, ir_node *g, int axis, int64_t step) {
  ir_node *s = grad_interleave(c, g, axis, step);
  int64_t size[IR_MAX_RANK];
  for (int i = 0; i < s->type.rank; i++)
    size[i] = s->type.dims[i];
  size[axis] -= step - 1;
  return grad_crop(c, s, size);
}

// --- windows ---------------------------------------------------------------------------------
// sum over t of g[l, t, a - t*dilate, rest]: [l, t, i, rest] -> [l, i + (t-1)*dilate, rest]. Line t
// has to move t*dilate places on: padded to i + 2*(t-1)*dilate and laid end to end, lines cut
// `dilate` shorter do so by themselves. g is in memory afterwards, once.
static ir_node *slanted_sum(grad_ctx *c, ir_node *g, int64_t dilate) {
  const int64_t *d = g->type.dims, l = d[0], t = d[1], i = d[2], rest = d[3];
  int64_t room = (t - 1) * dilate, line = i + 2 * room, cut = line - dilate;
  if (t == 1)
    return ir_reshape(&c->b, g, 3, (int64_t[]){l, i, rest});
  ir_node *x = ir_pad(&c->b, g, (int64_t[]){0, 0, room, 0}, (int64_t[]){0, 0, room, 0}, 0);
  x = ir_reshape(&c->b, x, 3, (int64_t[]){l, t * line, rest});
  x = ir_slice(&c->b, x, (int64_t[]){0, room, 0}, (int64_t[]){l, room + t * cut, rest},
               (int64_t[]){1, 1, 1});
  x = ir_reshape(&c->b, x, 4, (int64_t[]){l, t, cut, rest});
  x = grad_crop(c, x, (int64_t[]){l, t, i + room, rest});
  x = ir_reduce(&c->b, IR_SUM, x, (int64_t[]){1}, 1);
  return ir_reshape(&c->b, x, 3, (int64_t[]){l, i + room, rest});
}

// The last axis of g holds what windows along `axis` say of `extent` elements. The result has those of them that windows
// with whole steps reach, which may be fewer.
static ir_node *folded(grad_ctx *c, ir_node *g, int axis, int64_t extent, int64_t step,
                       int64_t dilate) {
  if (step > 1 && dilate > 1) {
    g = stretched(c, g, axis, step);
    step = 1;
  }
  ir_type to = g->type;
  int64_t lead = 1, rest = 1, places = to.dims[axis], size = to.dims[--to.rank];
  int64_t turns = (size + step - 1) / step;
  for (int i = 0; i < to.rank; i++)
    if (i != axis)
      *(i < axis ? &lead : &rest) *= to.dims[i];
  ir_node *x = ir_reshape(&c->b, g, 4, (int64_t[]){lead, places, rest, size});
  x = grad_resized(c, x, (int64_t[]){lead, places, rest, turns * step});
  x = ir_reshape(&c->b, x, 5, (int64_t[]){lead, places, rest, turns, step});
  x = ir_transpose(&c->b, x, (int64_t[]){0, 3, 1, 4, 2}); // [lead, t, i, r, rest]
  x = ir_reshape(&c->b, x, 4, (int64_t[]){lead, turns, places, step * rest});
  x = slanted_sum(c, x, dilate);
  int64_t reached = x->type.dims[1] * step;
  x = ir_reshape(&c->b, x, 3, (int64_t[]){lead, reached, rest});
  to.dims[axis] = reached < extent ? reached : extent;
  x = grad_crop(c, x, (int64_t[]){lead, to.dims[axis], rest});
  return ir_reshape(&c->b, x, to.rank, to.dims);
}

// Elements behind the last window, along whichever axes, are zeros that are added at once: each time all of g is copied.
static ir_node *folded_all(grad_ctx *c, const ir_node *n, ir_node *g) {
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  const int64_t *step = ir_attr_ints(n, IR_ATTR_STEP, NULL);
  const int64_t *dilate = ir_attr_ints(n, IR_ATTR_DILATE, NULL);
  for (int i = num - 1; i >= 0; i--)
    g = folded(c, g, (int)axes[i], n->in[0]->type.dims[axes[i]], step[i], dilate[i]);
  return grad_resized(c, g, n->in[0]->type.dims);
}

void grad_windows(grad_ctx *c, ir_node *n, ir_node *g) {
  if (!grad_wants(c, n, 0))
    return;
  ir_node *turned = grad_turned(c, n, g);
  grad_give(c, n, 0, turned ? turned : folded_all(c, n, g));
}

// --- conv ------------------------------------------------------------------------------------
ir_node *grad_reversed(grad_ctx *c, ir_node *table) {
  int64_t rows = table->type.dims[0];
  if (rows == 1)
    return table;
  ir_type index = ir_tensor(IR_I32, 1, &rows);
  ir_node *last = ir_const(&c->b, index, (double)(rows - 1));
  ir_node *place = ir_iota(&c->b, index, 0);
  return ir_gather(&c->b, table, ir_binary(&c->b, IR_SUB, last, place));
}

// The kernel that takes g to the phases of d.x: [k..., c, m] -> [t..., m, r... * c], t backwards.
static ir_node *turned_kernel(grad_ctx *c, ir_node *k, const int64_t *phases) {
  int num = k->type.rank - 2;
  int64_t dims[IR_MAX_RANK], split[IR_MAX_RANK], perm[IR_MAX_RANK] = {0}, turns[IR_MAX_RANK];
  int64_t rows = 1, columns = k->type.dims[num];
  for (int i = 0; i < num; i++) {
    turns[i] = (k->type.dims[i] + phases[i] - 1) / phases[i];
    dims[i] = turns[i] * phases[i];
    split[2 * i] = turns[i], split[2 * i + 1] = phases[i];
    perm[i] = 2 * i, perm[num + 1 + i] = 2 * i + 1;
    rows *= turns[i], columns *= phases[i];
  }
  split[2 * num] = dims[num] = k->type.dims[num];
  split[2 * num + 1] = dims[num + 1] = turns[num] = k->type.dims[num + 1];
  perm[num] = 2 * num + 1, perm[2 * num + 1] = 2 * num;
  turns[num + 1] = columns;
  ir_node *x = grad_resized(c, k, dims);
  x = ir_transpose(&c->b, ir_reshape(&c->b, x, 2 * num + 2, split), perm);
  x = grad_reversed(c, ir_reshape(&c->b, x, 2, (int64_t[]){rows, turns[num] * columns}));
  return ir_reshape(&c->b, x, num + 2, turns);
}

// [b, a..., r... * c] -> [b, a * r..., c]
static ir_node *phases_apart(grad_ctx *c, ir_node *x, const int64_t *phases, int64_t channels) {
  int num = x->type.rank - 2;
  int64_t split[IR_MAX_RANK], perm[IR_MAX_RANK] = {0}, dims[IR_MAX_RANK];
  if (x->type.dims[num + 1] == channels) // one phase: `convolutions` wants to see the conv
    return x;
  split[0] = dims[0] = x->type.dims[0];
  for (int i = 0; i < num; i++) {
    split[1 + i] = x->type.dims[1 + i];
    split[1 + num + i] = phases[i];
    perm[1 + 2 * i] = 1 + i, perm[2 + 2 * i] = 1 + num + i;
    dims[1 + i] = split[1 + i] * phases[i];
  }
  split[1 + 2 * num] = dims[1 + num] = channels;
  perm[1 + 2 * num] = 1 + 2 * num;
  ir_node *apart = ir_transpose(&c->b, ir_reshape(&c->b, x, 2 * num + 2, split), perm);
  return ir_reshape(&c->b, apart, num + 2, dims);
}

// A convolution of g, padded, with the turned kernel: step 1 for every phase at once.
static ir_node *input_share(grad_ctx *c, const ir_node *n, ir_node *g) {
  const ir_node *x = n->in[0];
  int num = n->type.rank - 2;
  const int64_t *dilate = ir_attr_ints(n, IR_ATTR_DILATE, NULL);
  int64_t phases[IR_MAX_RANK], one[IR_MAX_RANK], room[IR_MAX_RANK] = {0};
  for (int i = 0; i < num; i++) {
    phases[i] = ir_attr_ints(n, IR_ATTR_STEP, NULL)[i];
    if (phases[i] > 1 && dilate[i] > 1) {
      g = stretched(c, g, 1 + i, phases[i]);
      phases[i] = 1;
    }
    one[i] = 1;
  }
  ir_node *kernel = turned_kernel(c, n->in[1], phases);
  for (int i = 0; i < num; i++)
    room[1 + i] = (kernel->type.dims[i] - 1) * dilate[i];
  ir_node *padded = ir_pad(&c->b, g, room, room, 0);
  ir_node *share = ir_conv(&c->b, padded, kernel, one, dilate);
  share = phases_apart(c, share, phases, x->type.dims[num + 1]);
  return grad_resized(c, share, x->type.dims);
}

static ir_node *kernel_share(grad_ctx *c, const ir_node *n, ir_node *g) {
  ir_node *columns = conv_columns(&c->b, n);
  int64_t m = n->type.dims[n->type.rank - 1];
  ir_node *rows = ir_reshape(&c->b, g, 2, (int64_t[]){columns->type.dims[0], m});
  ir_node *share = ir_matmul(&c->b, columns, rows, true, false);
  return ir_reshape(&c->b, share, n->type.rank, n->in[1]->type.dims);
}

void grad_conv(grad_ctx *c, ir_node *n, ir_node *g) {
  GIVE(0, input_share(c, n, g));
  GIVE(1, kernel_share(c, n, g));
}
