// algebra_move.c: pad and concat, and slices that look through them.
//
// The gradient of `q, k, v = split(x)` arrives as pads that are added. They do not overlap, so
// the sum is one concat:
//
//   before:  %p = pad %dq {lo=[0,0], hi=[0,16]}        after:  %d = concat %dq, %dk, %dv {axis=1}
//            %r = pad %dk {lo=[0,8], hi=[0,8]}
//            %s = pad %dv {lo=[0,16], hi=[0,0]}
//            %t = add %p, %r
//            %d = add %t, %s
#include "passes/algebra.h"

#include <string.h>

// --- boxes -------------------------------------------------------------------------------------
// Slice with step 1 from `start`, in the shape of `like`.
static ir_node *take(ir_builder *b, ir_node *x, const int64_t *start, const ir_type *like) {
  int64_t stop[IR_MAX_RANK], step[IR_MAX_RANK];
  for (int i = 0; i < like->rank; i++) {
    stop[i] = start[i] + like->dims[i];
    step[i] = 1;
  }
  return ir_slice(b, x, start, stop, step);
}

static bool all_ones(const int64_t *v, int num) {
  for (int i = 0; i < num; i++)
    if (v[i] != 1)
      return false;
  return true;
}

// Start of a slice with step 1, or NULL.
static const int64_t *plain_start(const ir_node *n) {
  int rank;
  if (n->op != IR_SLICE || !all_ones(ir_attr_ints(n, IR_ATTR_STEP, &rank), n->type.rank))
    return NULL;
  return ir_attr_ints(n, IR_ATTR_START, &rank);
}

// --- pad -----------------------------------------------------------------------------------------
// pad by nothing -> x;  pad (pad x) with the same value -> pad x
ir_node *alg_pad(ir_builder *b, ir_node *n) {
  ir_node *x = n->in[0];
  if (ir_same_shape(&n->type, &x->type))
    return x;
  double value = ir_attr_num(n, IR_ATTR_VALUE);
  if (x->op != IR_PAD || ir_attr_num(x, IR_ATTR_VALUE) != value)
    return NULL;
  int rank;
  const int64_t *lo = ir_attr_ints(n, IR_ATTR_LO, &rank), *hi = ir_attr_ints(n, IR_ATTR_HI, &rank);
  const int64_t *xlo = ir_attr_ints(x, IR_ATTR_LO, &rank),
                *xhi = ir_attr_ints(x, IR_ATTR_HI, &rank);
  int64_t new_lo[IR_MAX_RANK], new_hi[IR_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    new_lo[i] = lo[i] + xlo[i];
    new_hi[i] = hi[i] + xhi[i];
  }
  return ir_pad(b, x->in[0], new_lo, new_hi, value);
}

// slice (pad x) without steps -> pad (slice x) with less, when nothing else uses the pad
static ir_node *pad_of_slice(ir_builder *b, ir_node *n) {
  ir_node *padded = n->in[0], *x = padded->in[0];
  const int64_t *at = plain_start(n), *lo = ir_attr_ints(padded, IR_ATTR_LO, NULL);
  int64_t start[IR_MAX_RANK], new_lo[IR_MAX_RANK], new_hi[IR_MAX_RANK];
  if (!at || padded->mark != 1)
    return NULL;
  ir_type part = x->type;
  for (int i = 0; i < n->type.rank; i++) {
    int64_t first = at[i] - lo[i], end = first + n->type.dims[i];
    start[i] = first > 0 ? first : 0;
    int64_t stop = end < x->type.dims[i] ? end : x->type.dims[i];
    if (start[i] >= stop)
      return NULL;
    part.dims[i] = stop - start[i];
    new_lo[i] = start[i] - first;
    new_hi[i] = end - stop;
  }
  return ir_pad(b, take(b, x, start, &part), new_lo, new_hi, ir_attr_num(padded, IR_ATTR_VALUE));
}

// slice (pad x) -> slice x, when only elements of x are taken
ir_node *alg_slice_of_pad(ir_builder *b, ir_node *n) {
  ir_node *padded = n->in[0];
  if (padded->op != IR_PAD)
    return NULL;
  int rank;
  const int64_t *lo = ir_attr_ints(padded, IR_ATTR_LO, &rank);
  const int64_t *start = ir_attr_ints(n, IR_ATTR_START, &rank);
  const int64_t *step = ir_attr_ints(n, IR_ATTR_STEP, &rank);
  const ir_type *inner = &padded->in[0]->type;
  int64_t new_start[IR_MAX_RANK], new_stop[IR_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    new_start[i] = start[i] - lo[i];
    new_stop[i] = new_start[i] + (n->type.dims[i] - 1) * step[i] + 1;
    if (new_start[i] < 0 || new_stop[i] > inner->dims[i])
      return pad_of_slice(b, n);
  }
  return ir_slice(b, padded->in[0], new_start, new_stop, step);
}

// --- concat --------------------------------------------------------------------------------------

// concat x -> x;  concat (concat x, y), z along one axis -> concat x, y, z where nobody else uses
// the inner one: else it is there anyway, and a chain of n concats would have n * n operands.
ir_node *alg_concat(ir_builder *b, ir_node *n) {
  if (n->num_in == 1)
    return n->in[0];
  int64_t axis = ir_attr_int(n, IR_ATTR_AXIS);
  IR_VEC(ir_node *) flat = {0};
  for (int i = 0; i < n->num_in; i++) {
    ir_node *x = n->in[i];
    bool nested = x->op == IR_CONCAT && x->mark <= 1 && ir_attr_int(x, IR_ATTR_AXIS) == axis;
    for (int k = 0; nested && k < x->num_in; k++)
      IR_PUSH(alg_arena(b), flat, x->in[k]);
    if (!nested)
      IR_PUSH(alg_arena(b), flat, x);
  }
  if (flat.num == (size_t)n->num_in)
    return NULL;
  return ir_concat(b, (int)flat.num, flat.at, (int)axis);
}

// y continues the slice x along `axis`: same source, same place in all other axes.
static bool continues(const ir_node *x, const ir_node *y, int64_t axis) {
  const int64_t *sx = plain_start(x), *sy = plain_start(y);
  if (!sx || !sy || x->in[0] != y->in[0])
    return false;
  for (int i = 0; i < x->type.rank; i++)
    if (sy[i] != (i == axis ? sx[i] + x->type.dims[i] : sx[i]))
      return false;
  return true;
}

// concat of slices that lie side by side in one tensor -> slice of it (all of it: the tensor)
ir_node *alg_concat_of_slices(ir_builder *b, ir_node *n) {
  int64_t axis = ir_attr_int(n, IR_ATTR_AXIS);
  for (int i = 1; i < n->num_in; i++)
    if (!continues(n->in[i - 1], n->in[i], axis))
      return NULL;
  return take(b, n->in[0]->in[0], plain_start(n->in[0]), &n->type);
}

// slice (concat ...) that stays inside one operand -> slice of that operand (at its seams: itself)
ir_node *alg_slice_of_concat(ir_builder *b, ir_node *n) {
  ir_node *joined = n->in[0];
  if (joined->op != IR_CONCAT)
    return NULL;
  int rank;
  int64_t axis = ir_attr_int(joined, IR_ATTR_AXIS), seam = 0;
  const int64_t *start = ir_attr_ints(n, IR_ATTR_START, &rank);
  const int64_t *stop = ir_attr_ints(n, IR_ATTR_STOP, &rank);
  int k = 0;
  while (seam + joined->in[k]->type.dims[axis] <= start[axis])
    seam += joined->in[k++]->type.dims[axis];
  const int64_t *step = ir_attr_ints(n, IR_ATTR_STEP, &rank);
  int64_t last = start[axis] + (n->type.dims[axis] - 1) * step[axis];
  if (last >= seam + joined->in[k]->type.dims[axis])
    return NULL;
  int64_t new_start[IR_MAX_RANK], new_stop[IR_MAX_RANK];
  memcpy(new_start, start, sizeof(int64_t) * (size_t)rank);
  memcpy(new_stop, stop, sizeof(int64_t) * (size_t)rank);
  new_start[axis] -= seam;
  new_stop[axis] = last - seam + 1;
  return ir_slice(b, joined->in[k], new_start, new_stop, step);
}

// --- sums of pads --------------------------------------------------------------------------------
enum { MAX_PARTS = 64, MAX_APART = 4 };

// Operands of a tree of adds that are all zero pads, and differ in one axis only.
typedef struct parts {
  int axis; // -1: not known yet, there is one part at most
  int num;
  int adds;                // looked at
  ir_node *pad[MAX_PARTS]; // by ascending position
} parts;

static int64_t pad_lo(const ir_node *pad, int axis) {
  int rank;
  return ir_attr_ints(pad, IR_ATTR_LO, &rank)[axis];
}

// The one axis in which what two pads hold is of another size or at another place; -1 when there are more, or none.
static int differing_axis(const ir_node *x, const ir_node *y) {
  int axis = -1;
  for (int i = 0; i < x->type.rank; i++) {
    if (pad_lo(x, i) == pad_lo(y, i) && x->in[0]->type.dims[i] == y->in[0]->type.dims[i])
      continue;
    if (axis >= 0)
      return -1;
    axis = i;
  }
  return axis;
}

static bool insert_part(parts *p, ir_node *pad) {
  if (ir_attr_num(pad, IR_ATTR_VALUE) != 0 || p->num == MAX_PARTS)
    return false;
  if (p->num > 0) {
    int axis = differing_axis(p->pad[0], pad);
    if (axis < 0 || (p->axis >= 0 && axis != p->axis))
      return false;
    p->axis = axis;
  }
  int at = p->num++;
  for (; at > 0 && pad_lo(p->pad[at - 1], p->axis) > pad_lo(pad, p->axis); at--)
    p->pad[at] = p->pad[at - 1];
  p->pad[at] = pad;
  return true;
}

static bool is_part(const ir_node *n) {
  return n->op == IR_PAD || n->op == IR_ADD;
}

// In a chain of adds of other things (x = f(x) + x, again and again) the search ends at once; where
// it does not, its length is bounded: each node of such a chain begins one.
static bool collect_parts(parts *p, ir_node *n) {
  if (n->op == IR_PAD)
    return insert_part(p, n);
  return n->op == IR_ADD && p->adds++ < MAX_PARTS && is_part(n->in[0]) && is_part(n->in[1]) &&
         collect_parts(p, n->in[1]) && collect_parts(p, n->in[0]);
}

static bool side_by_side(const parts *p) {
  for (int i = 1; i < p->num; i++) {
    const ir_node *before = p->pad[i - 1];
    int64_t end = pad_lo(before, p->axis) + before->in[0]->type.dims[p->axis];
    if (pad_lo(p->pad[i], p->axis) != end)
      return false;
  }
  return true;
}

// pad (concat x, y) for what pad x and pad y add up to; without the pad where they fill everything
static ir_node *join_parts(ir_builder *b, const parts *p, const ir_type *type) {
  ir_node *x[MAX_PARTS];
  for (int i = 0; i < p->num; i++)
    x[i] = p->pad[i]->in[0];
  ir_node *joined = ir_concat(b, p->num, x, p->axis);
  if (ir_same_shape(&joined->type, type))
    return joined;
  int64_t lo[IR_MAX_RANK] = {0}, hi[IR_MAX_RANK] = {0};
  for (int i = 0; i < type->rank; i++) {
    lo[i] = pad_lo(p->pad[0], i);
    hi[i] = type->dims[i] - lo[i] - joined->type.dims[i];
  }
  return ir_pad(b, joined, lo, hi, 0);
}

// add (pad x), (pad y) that lie side by side -> pad (concat x, y)
ir_node *alg_add_pads(ir_builder *b, ir_node *n) {
  parts p = {.axis = -1};
  if (!collect_parts(&p, n) || !side_by_side(&p))
    return NULL;
  return join_parts(b, &p, &n->type);
}

// Sum of the pads x and y, which lie side by side; else NULL.
static ir_node *join_two(ir_builder *b, ir_node *x, ir_node *y) {
  parts p = {.axis = -1};
  if (x->op != IR_PAD || y->op != IR_PAD || !insert_part(&p, x) || !insert_part(&p, y) ||
      !side_by_side(&p))
    return NULL;
  return join_parts(b, &p, &x->type);
}

// sum + pad, where the pad is joined with one of the sum's, at most `depth` sums down; NULL where there is none.
static ir_node *join_into_sum(ir_builder *b, ir_node *sum, ir_node *pad, int depth) {
  if (depth == 0 || sum->op != IR_ADD || sum->mark > 1) // others read the sum
    return NULL;
  for (int k = 0; k < 2; k++) {
    ir_node *joined = join_two(b, sum->in[k], pad);
    if (joined)
      return ir_binary(b, IR_ADD, sum->in[1 - k], joined);
  }
  for (int k = 0; k < 2; k++) {
    ir_node *longer = join_into_sum(b, sum->in[k], pad, depth - 1);
    if (longer)
      return ir_binary(b, IR_ADD, longer, sum->in[1 - k]);
  }
  return NULL;
}

// add (add z, pad x), pad y where the pads lie side by side -> add z, (pad (concat x, y))
// The gradient of a sequence that is read in slices and whole is such a chain: a sum over its whole length for each
// slice. Where each step reads several slices, as many pads lie between those that belong together.
ir_node *alg_add_pad_to_sum(ir_builder *b, ir_node *n) {
  for (int k = 0; k < 2; k++) {
    ir_node *r =
        n->in[k]->op == IR_PAD ? join_into_sum(b, n->in[1 - k], n->in[k], MAX_APART) : NULL;
    if (r)
      return r;
  }
  return NULL;
}
