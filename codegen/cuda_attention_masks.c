// cuda_attention_masks.c: tiles in which masks of indices let everything through.
//
//   le (column, row)   is true where streamed - own <= 0: in causal attention in all tiles that are walked
//                      but those on the diagonal
//
// There the text has a second copy of what happens to scores, in which such a mask is the constant true:
// its comparison and its selects are gone, a fifth of the instructions between two products. Which copy is
// taken is one question per tile, the same for all threads of a block.
//
// Sides of a comparison are sums and differences of indices and constants, as the kernel's domain has
// them: an iota's load is an affine form of the axes (passes/domain.h).
#include "codegen/cuda_attention.h"
#include "passes/band.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 1 << 24 }; // what the types of indices that are looked at hold exactly

typedef struct form { // offset + own * (index of own rows) + streamed * (that of streamed ones)
  int64_t offset, own, streamed;
} form;

static form sum(form x, form y, int64_t sign) {
  return (form){x.offset + sign * y.offset, x.own + sign * y.own, x.streamed + sign * y.streamed};
}

static bool in_range(form f, const catt *t) {
  return llabs(f.offset) < MOST && llabs(f.own) < MOST && llabs(f.streamed) < MOST &&
         llabs(f.offset) + llabs(f.own) * t->x + llabs(f.streamed) * t->y < MOST;
}

static bool of_constant(const ir_node *n, form *out) {
  double v = ir_attr_num(n, IR_ATTR_VALUE);
  *out = (form){.offset = fabs(v) < MOST ? (int64_t)v : 0};
  return v == (double)out->offset;
}

static bool of_iota(const catt *t, const dom_load *l, form *out) {
  *out = (form){.offset = l->access.offset};
  for (int i = 0; i < t->dom->dom->num_axes; i++) {
    int64_t stride = l->access.stride[i];
    if (i == t->first_x)
      out->own = stride;
    else if (i == t->first_y)
      out->streamed = stride;
    else if (stride)
      return false;
  }
  return true;
}

static bool of_operand(const catt *t, const ir_node *user, int operand, int depth, form *out) {
  enum { MAX_DEPTH = 8 };
  const dom_load *l = dom_find_load(t->dom->dom, user, operand);
  if (l)
    return (l->buffer->op == IR_IOTA    ? of_iota(t, l, out)
            : l->buffer->op == IR_CONST ? of_constant(l->buffer, out)
                                        : false) &&
           in_range(*out, t);
  const ir_node *n = dom_base(user->in[operand]);
  form x, y;
  if ((n->op != IR_ADD && n->op != IR_SUB) || depth == MAX_DEPTH ||
      !of_operand(t, n, 0, depth + 1, &x) || !of_operand(t, n, 1, depth + 1, &y))
    return false;
  *out = sum(x, y, n->op == IR_SUB ? -1 : 1);
  return in_range(*out, t);
}

static bool is_exact_type(ir_dtype t) {
  return t == IR_I32 || t == IR_I64 || t == IR_F32;
}

// Where it is false, as diagonals streamed - own: fills `no`, unless that may be anywhere.
static bool is_false_in_band(const catt *t, const ir_node *n, ir_band *no) {
  form x, y;
  if (!ir_is_comparison(n->op) || !is_exact_type(n->in[0]->type.dtype) ||
      !of_operand(t, n, 0, 0, &x) || !of_operand(t, n, 1, 0, &y))
    return false;
  form d = sum(x, y, -1);
  ir_band all = {1 - t->x, t->y - 1};
  if (d.own != -d.streamed)
    return false;
  *no = band_of_difference(n->op, d.streamed, d.offset, all).no;
  return no->lower > all.lower || no->upper < all.upper;
}

void catt_find_masks(catt *t) {
  for (size_t i = 0; t->num_x == 1 && t->num_y == 1 && i < t->inner.k->nodes.num; i++) {
    const ir_node *n = t->inner.k->nodes.at[i];
    ir_band no;
    if (t->num_masks < CATT_MASKS && is_false_in_band(t, n, &no))
      t->mask[t->num_masks++] = (catt_mask){n, no};
  }
}

bool catt_is_mask(const catt *t, const ir_node *n) {
  bool is = false;
  for (int i = 0; i < t->num_masks; i++)
    is |= t->mask[i].n == n;
  return is;
}

// The whole tile lies on one side of the band.
const char *catt_all_seen(const catt_text *x) {
  const catt *t = x->t;
  const char *all = NULL;
  for (int i = 0; i < t->num_masks; i++) {
    ir_band no = t->mask[i].no;
    const char *below = ir_format(x->arena, "y0 - x0 < %lld", ll(no.lower - t->by + 1));
    const char *above = ir_format(x->arena, "y0 - x0 > %lld", ll(no.upper + t->bx - 1));
    const char *one = band_is_empty(no)      ? "true"
                      : no.upper >= t->y - 1 ? below
                      : no.lower <= 1 - t->x ? above
                                             : ir_format(x->arena, "(%s || %s)", below, above);
    all = all ? ir_format(x->arena, "%s && %s", all, one) : one;
  }
  return all;
}
