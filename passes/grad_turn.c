// grad_turn.c: the gradient of windows without the windows.
//
//   y = sum over k of x[i*step + k*dilate] * w[k]                 the adjoint of the windows: g[i, k] = d.y[i] * w[k]
//   before   d.x[h] = sum of g[i, k] over i*step + k*dilate = h   g in memory, K times as large as x
//   after    d.x[h] = sum over t of d.y[h - t*dilate] * w[t]      windows of d.y: one kernel, as in the forward pass
//
// What windows say of an element is mostly computed, element by element, from what depends on the place of a window
// only (d.y, a maximum), on what is inside only (weights), and the windows themselves (x == maximum). Each of them
// can be turned about as a view, and the same is computed of the turned ones:
//
//   place    d.y[i - t*dilate]      windows of d.y with zeros around it; the turns t run backwards in it
//   inside   w[t*step + r]          cut into turns and phases, backwards: a copy of something small
//   windows  x[i*step + r]          x itself, the same in all turns
//
// With step > 1 (and dilate 1) an element h = a*step + r has a place a and a phase r, as in grad_windows.c. Turned
// tensors are [x's axes, those of windows with their places a; turns, for each of these; phases, where step > 1].
// Where a turn leads beside the places, or beside what a window has, the sum must get zeros: it does if what is
// padded with zeros is a factor; else they are selected. A quotient, a root or a logarithm gets other operands there: of
// zeros it might be no number, nor its gradient, whatever that is multiplied by.
//
// A candidate considered and left: a rewrite of the materialised form after autodiff. It would have to find the same
// expression again behind pads, reshapes and slices.
#include "passes/grad.h"

#include <string.h>

enum { MOST_NODES = 32 };

typedef struct turned {
  ir_node *n;     // NULL: it cannot be turned
  bool zero_side; // 0 where a turn leads beside the places,
  bool zero_rest; // and beside the window
  bool tame;      // finite there, if the tensors are
} turned;

typedef struct turner {
  grad_ctx *c;
  const ir_node *windows;
  int rank, num; // of x; axes with windows
  int64_t axes[IR_MAX_RANK], size[IR_MAX_RANK], step[IR_MAX_RANK], dilate[IR_MAX_RANK];
  int64_t turns[IR_MAX_RANK], places[IR_MAX_RANK];
  int full_rank;
  int64_t full[IR_MAX_RANK]; // dims of turned tensors
  bool has_rest;             // some window is no whole number of turns
  const ir_node *from[MOST_NODES];
  turned to[MOST_NODES];
  int known, depth;
} turner;

// False: no more than a view is to be gained, or there are too many axes.
static bool set_up(turner *t, grad_ctx *c, const ir_node *n) {
  *t = (turner){.c = c, .windows = n, .rank = n->in[0]->type.rank};
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &t->num);
  bool overlaps = false;
  int phases = 0;
  memcpy(t->full, n->in[0]->type.dims, sizeof t->full);
  for (int a = 0; a < t->num; a++) {
    t->axes[a] = axes[a];
    t->size[a] = ir_attr_ints(n, IR_ATTR_SIZE, NULL)[a];
    t->step[a] = ir_attr_ints(n, IR_ATTR_STEP, NULL)[a];
    t->dilate[a] = ir_attr_ints(n, IR_ATTR_DILATE, NULL)[a];
    t->turns[a] = (t->size[a] + t->step[a] - 1) / t->step[a];
    t->places[a] = (n->in[0]->type.dims[axes[a]] + t->step[a] - 1) / t->step[a];
    overlaps |= t->turns[a] > 1;
    phases += t->step[a] > 1;
    t->has_rest |= t->size[a] % t->step[a] != 0;
    if (t->step[a] > 1 && t->dilate[a] > 1)
      return false;
  }
  t->full_rank = t->rank + t->num + phases;
  if (!overlaps || t->full_rank > IR_MAX_RANK)
    return false;
  int at = t->rank;
  for (int a = 0; a < t->num; a++) {
    t->full[t->axes[a]] = t->places[a];
    t->full[at++] = t->turns[a];
  }
  for (int a = 0; a < t->num; a++)
    if (t->step[a] > 1)
      t->full[at++] = t->step[a];
  return true;
}

// --- leaves --------------------------------------------------------------------------------------
static ir_node *spread(turner *t, ir_node *x, const int64_t *dims) {
  ir_node *all = ir_reshape(&t->c->b, x, t->full_rank, dims);
  return ir_broadcast(&t->c->b, all, t->full_rank, t->full);
}

// v[.., places, .., 1..]: windows of it, turns backwards.
static turned turn_place(turner *t, ir_node *v) {
  int64_t front[IR_MAX_RANK] = {0}, back[IR_MAX_RANK] = {0}, one[IR_MAX_RANK], dims[IR_MAX_RANK];
  ir_node *x = ir_reshape(&t->c->b, v, t->rank, v->type.dims);
  for (int a = 0; a < t->num; a++) {
    one[a] = 1;
    front[t->axes[a]] = (t->turns[a] - 1) * t->dilate[a];
    back[t->axes[a]] = t->places[a] - x->type.dims[t->axes[a]];
  }
  x = ir_pad(&t->c->b, x, front, back, 0);
  x = ir_windows(&t->c->b, x, t->num, t->axes, t->turns, one, t->dilate);
  for (int i = 0; i < t->full_rank; i++)
    dims[i] = i < x->type.rank ? x->type.dims[i] : 1;
  return (turned){spread(t, x, dims), true, !t->has_rest, true};
}

// Axis at[a] has `count * step` elements: the steps of all such axes come last.
static ir_node *phases_last(turner *t, ir_node *x, const int64_t *at) {
  int64_t dims[IR_MAX_RANK], perm[IR_MAX_RANK], phases[IR_MAX_RANK];
  int rank = 0, kept = 0, num = 0;
  for (int i = 0, a = 0; i < x->type.rank; i++) {
    int64_t step = a < t->num && at[a] == i ? t->step[a++] : 1;
    dims[rank] = x->type.dims[i] / step;
    perm[kept++] = rank++;
    if (step > 1) {
      dims[rank] = step;
      phases[num++] = rank++;
    }
  }
  for (int i = 0; i < num; i++)
    perm[kept++] = phases[i];
  return ir_transpose(&t->c->b, ir_reshape(&t->c->b, x, rank, dims), perm);
}

// Each element is in some window. Of one that is in none nothing is known: it may be infinite, or its square.
static bool sees_all(const turner *t) {
  for (int a = 0; a < t->num; a++) {
    const ir_node *x = t->windows->in[0];
    int64_t num = t->windows->type.dims[t->axes[a]], end = x->type.dims[t->axes[a]];
    bool no_gap = t->step[a] <= t->size[a] && (t->size[a] == 1 || t->dilate[a] <= num);
    int64_t reach = (num - 1) * t->step[a] + (t->size[a] - 1) * t->dilate[a] + 1;
    if (!no_gap || reach < end)
      return false;
  }
  return true;
}

// The windows themselves, or others like them: what an element is, is the same in all turns. Others may be of a longer
// tensor, the end of which is in none of them.
static turned turn_windows(turner *t, ir_node *x) {
  int64_t dims[IR_MAX_RANK];
  memcpy(dims, x->type.dims, sizeof dims);
  for (int a = 0; a < t->num; a++)
    dims[t->axes[a]] = t->places[a] * t->step[a];
  ir_node *cut = phases_last(t, grad_resized(t->c, x, dims), t->axes);
  for (int i = 0; i < t->full_rank; i++)
    dims[i] = i < t->rank            ? cut->type.dims[i]
              : i < t->rank + t->num ? 1
                                     : cut->type.dims[i - t->num];
  return (turned){spread(t, cut, dims), false, false, sees_all(t)};
}

// The last turn first, along all axes of turns.
static ir_node *turns_backwards(turner *t, ir_node *x) {
  int64_t perm[IR_MAX_RANK], inverse[IR_MAX_RANK] = {0}, rows = 1;
  int at = 0;
  for (int a = 0; a < t->num; a++, at++)
    perm[at] = t->rank + a;
  for (int i = 0; i < x->type.rank; i++)
    if (i < t->rank || i >= t->rank + t->num)
      perm[at++] = i;
  for (int i = 0; i < x->type.rank; i++)
    inverse[perm[i]] = i;
  ir_node *first = ir_transpose(&t->c->b, x, perm);
  for (int a = 0; a < t->num; a++)
    rows *= t->turns[a];
  int64_t columns = ir_elements(&x->type) / rows;
  ir_node *table = ir_reshape(&t->c->b, first, 2, (int64_t[]){rows, columns});
  table = ir_reshape(&t->c->b, grad_reversed(t->c, table), first->type.rank, first->type.dims);
  return ir_transpose(&t->c->b, table, inverse);
}

// v[1.., inside..]: the same at all places.
static turned turn_inside(turner *t, ir_node *v) {
  int64_t dims[IR_MAX_RANK], at[IR_MAX_RANK];
  memcpy(dims, v->type.dims, sizeof dims);
  for (int a = 0; a < t->num; a++) {
    at[a] = t->rank + a;
    dims[at[a]] = t->turns[a] * t->step[a];
  }
  ir_node *x = turns_backwards(t, phases_last(t, grad_resized(t->c, v, dims), at));
  return (turned){spread(t, x, x->type.dims), false, true, true};
}

// What holds for all of both.
static turned turn_neither(turner *t, ir_node *v) {
  int64_t dims[IR_MAX_RANK];
  for (int i = 0; i < t->full_rank; i++)
    dims[i] = i < t->rank ? v->type.dims[i] : 1;
  return (turned){spread(t, v, dims), false, !t->has_rest, true};
}

// v as it is, but for sizes of 1 along some of the axes [first + ..] where others are of more than 1.
static ir_node *same_along(turner *t, ir_node *v, const int64_t *at) {
  ir_type to = v->type;
  for (int a = 0; a < t->num; a++)
    to.dims[at[a]] = t->windows->type.dims[at[a]];
  return ir_broadcast(&t->c->b, v, to.rank, to.dims);
}

static turned turn_leaf(turner *t, const ir_node *e) {
  ir_node *self = (ir_node *)(uintptr_t)e, *v = e->op == IR_BROADCAST ? e->in[0] : self;
  int64_t inside[IR_MAX_RANK];
  bool by_place = false, by_inside = false;
  for (int a = 0; a < t->num; a++) {
    inside[a] = t->rank + a;
    by_place |= v->type.dims[t->axes[a]] > 1;
    by_inside |= v->type.dims[inside[a]] > 1;
  }
  if (by_place && by_inside)
    return e->op == IR_WINDOWS && ir_same_work(e, t->windows) ? turn_windows(t, e->in[0])
                                                              : (turned){0};
  if (by_place)
    return turn_place(t, same_along(t, v, t->axes));
  return by_inside ? turn_inside(t, same_along(t, v, inside)) : turn_neither(t, v);
}

// --- what is beside the places and the windows ---------------------------------------------------
static ir_node *along(turner *t, int axis, int64_t times) {
  ir_type type = {.dtype = IR_I32, .rank = t->full_rank};
  memcpy(type.dims, t->full, sizeof type.dims);
  return ir_binary_const(&t->c->b, IR_MUL, ir_iota(&t->c->b, type, axis), (double)times);
}

static ir_node *both(turner *t, ir_node *x, ir_node *y) {
  return x ? ir_binary(&t->c->b, IR_AND, x, y) : y;
}

// Turn t' = turns - 1 - t of place a saw place a - t * dilate.
static ir_node *within_places(turner *t, ir_node *yes, int a) {
  int64_t front = (t->turns[a] - 1) * t->dilate[a];
  int64_t num = t->windows->type.dims[t->axes[a]];
  ir_node *place = along(t, (int)t->axes[a], 1), *by = along(t, t->rank + a, t->dilate[a]);
  ir_node *at = ir_binary(&t->c->b, IR_ADD, place, by);
  yes = both(t, yes, ir_binary_const(&t->c->b, IR_GE, at, (double)front));
  return both(t, yes, ir_binary_const(&t->c->b, IR_LT, at, (double)(front + num)));
}

// In a window it is element t * step + r.
static ir_node *within_window(turner *t, ir_node *yes, int a, int phase) {
  int64_t step = t->step[a], least = (t->turns[a] - 1) * step - t->size[a];
  ir_node *turn_at = along(t, t->rank + a, step), *r = along(t, phase, 1);
  ir_node *at = ir_binary(&t->c->b, IR_SUB, turn_at, r);
  return both(t, yes, ir_binary_const(&t->c->b, IR_GT, at, (double)least));
}

// NULL: nothing is beside the places, as far as that is asked, nor beside the windows.
static ir_node *within(turner *t, bool places, bool window) {
  ir_node *yes = NULL;
  for (int a = 0, phase = t->rank + t->num; a < t->num; a++) {
    bool beside = t->turns[a] > 1 || t->places[a] > t->windows->type.dims[t->axes[a]];
    if (places && beside)
      yes = within_places(t, yes, a);
    if (window && t->size[a] % t->step[a])
      yes = within_window(t, yes, a, phase);
    phase += t->step[a] > 1;
  }
  return yes;
}

// --- expressions ---------------------------------------------------------------------------------
// Where zeros of the operands make zeros. A factor that is no number there would spoil them.
static void find_zeros(ir_op op, const turned *in, int num, turned *out) {
  for (int i = 0; i < num; i++)
    out->tame &= in[i].tame;
  if (ir_keeps_zero(op)) {
    out->zero_side = in[0].zero_side;
    out->zero_rest = in[0].zero_rest;
    out->tame &= op != IR_SQRT;
    return;
  }
  switch (op) {
  case IR_MUL:
    out->zero_side = in[0].tame && in[1].tame && (in[0].zero_side || in[1].zero_side);
    out->zero_rest = in[0].tame && in[1].tame && (in[0].zero_rest || in[1].zero_rest);
    return;
  case IR_ADD:
  case IR_SUB:
  case IR_MAX:
  case IR_MIN:
  case IR_SELECT:
    out->zero_side = in[num - 2].zero_side && in[num - 1].zero_side;
    out->zero_rest = in[num - 2].zero_rest && in[num - 1].zero_rest;
    return;
  case IR_EQ:
  case IR_NE:
  case IR_LT:
  case IR_LE:
  case IR_GT:
  case IR_GE:
  case IR_AND:
  case IR_OR:
  case IR_NOT:
    out->tame = true; // whatever is compared
    return;
  default:
    out->tame = false;
  }
}

// What any function is finite at, and its derivatives.
static void make_tame(turner *t, ir_node **operands, int num) {
  ir_node *yes = within(t, true, true);
  for (int i = 0; yes && i < num; i++) {
    ir_type type = operands[i]->type;
    double some = ir_is_float(type.dtype) ? 0.5 : 1;
    operands[i] = ir_select(&t->c->b, yes, operands[i], ir_const(&t->c->b, type, some));
  }
}

static turned turn(turner *t, const ir_node *e);

static turned turn_pointwise(turner *t, const ir_node *e) {
  turned in[3], out = {.tame = true, .zero_rest = !t->has_rest};
  ir_node *operands[3];
  for (int i = 0; i < e->num_in; i++) {
    in[i] = turn(t, e->in[i]);
    if (!in[i].n)
      return in[i];
    operands[i] = in[i].n;
  }
  ir_type type = e->type;
  type.rank = t->full_rank;
  memcpy(type.dims, t->full, sizeof type.dims);
  find_zeros(e->op, in, e->num_in, &out);
  if (!out.tame)
    make_tame(t, operands, e->num_in);
  out.tame = true;
  out.n = ir_build(&t->c->b, e->op, NULL, e->num_in, operands, e->num_attrs, e->attrs, &type);
  return out;
}

static turned turn_const(turner *t, const ir_node *e) {
  ir_type type = e->type;
  double value = ir_attr_num(e, IR_ATTR_VALUE);
  type.rank = t->full_rank;
  memcpy(type.dims, t->full, sizeof type.dims);
  return (turned){ir_const(&t->c->b, type, value), value == 0, value == 0 || !t->has_rest, true};
}

static turned turn(turner *t, const ir_node *e) {
  for (int i = 0; i < t->known; i++)
    if (t->from[i] == e)
      return t->to[i];
  if (t->depth == MOST_NODES) // so many there are at least
    return (turned){0};
  t->depth++;
  bool pointwise = ir_ops[e->op].cls == IR_CLASS_POINTWISE && !ir_is_random(e) && e->num_in > 0;
  turned x = e->op == IR_CONST ? turn_const(t, e)
             : pointwise       ? turn_pointwise(t, e)
                               : turn_leaf(t, e);
  t->depth--;
  if (t->known == MOST_NODES)
    return (turned){0};
  t->from[t->known] = e;
  t->to[t->known++] = x;
  return x;
}

static ir_node *without_others(turner *t, const turned *x) {
  ir_node *yes = within(t, !x->zero_side, !x->zero_rest);
  return yes ? ir_select(&t->c->b, yes, x->n, ir_const(&t->c->b, x->n->type, 0)) : x->n;
}

// --- the sum over turns --------------------------------------------------------------------------
// [axes.., turns.., phases..] -> x's dims
static ir_node *summed(turner *t, ir_node *x) {
  int64_t turns[IR_MAX_RANK], dims[IR_MAX_RANK], perm[IR_MAX_RANK];
  int rank = 0;
  for (int a = 0; a < t->num; a++)
    turns[a] = t->rank + a;
  x = ir_reduce(&t->c->b, IR_SUM, x, turns, t->num);
  for (int i = 0; i < t->full_rank; i++)
    if (i < t->rank || i >= t->rank + t->num)
      dims[rank++] = t->full[i];
  x = ir_reshape(&t->c->b, x, rank, dims);
  rank = 0;
  for (int i = 0, a = 0, phase = t->rank; i < t->rank; i++) {
    perm[rank++] = i;
    dims[i] = t->full[i];
    if (a < t->num && t->axes[a] == i) {
      if (t->step[a] > 1)
        perm[rank++] = phase++;
      dims[i] *= t->step[a++];
    }
  }
  x = ir_reshape(&t->c->b, ir_transpose(&t->c->b, x, perm), t->rank, dims);
  return grad_crop(t->c, x, t->windows->in[0]->type.dims);
}

ir_node *grad_turned(grad_ctx *c, const ir_node *windows, const ir_node *g) {
  turner t;
  if (!set_up(&t, c, windows))
    return NULL;
  turned x = turn(&t, g);
  return x.n ? summed(&t, without_others(&t, &x)) : NULL;
}
