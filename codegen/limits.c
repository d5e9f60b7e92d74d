// limits.c: what values an integer tensor may have, read off its uses: rows of the table that it
// indexes, classes that it is compared with; and beside those one that it is asked for, which is
// how a loss leaves out labels. The trainer checks its data against them.
#include "codegen/program.h"

static void limit(int64_t *limits, const ir_node *n, int64_t bound) {
  while (ir_ops[n->op].cls == IR_CLASS_VIEW || n->op == IR_CAST || n->op == IR_COPY) {
    if (ir_is_float(n->type.dtype))
      return;
    if (limits[n->id] == 0 || bound < limits[n->id])
      limits[n->id] = bound;
    n = n->in[0];
  }
  if (ir_is_float(n->type.dtype) || n->type.dtype == IR_BOOL)
    return;
  if (limits[n->id] == 0 || bound < limits[n->id])
    limits[n->id] = bound;
}

// --- what asks for a limit -----------------------------------------------------------------------
typedef struct bounded {
  const ir_node *n;
  int64_t by;
} bounded;
typedef IR_VEC(bounded) bounds;

static void bound_by_iota(ir_arena *a, bounds *all, const ir_node *counts, const ir_node *n) {
  const ir_node *base = dom_base(counts);
  if (base->op == IR_CAST)
    base = dom_base(base->in[0]);
  bounded b = {n, base->op == IR_IOTA ? base->type.dims[ir_attr_int(base, IR_ATTR_AXIS)] : 0};
  if (b.by)
    IR_PUSH(a, *all, b);
}

static bounds find_bounds(ir_arena *a, const ir_func *f) {
  bounds all = {0};
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->op == IR_GATHER)
      IR_PUSH(a, all, ((bounded){n->in[1], n->in[0]->type.dims[0]}));
    else if (ir_is_scatter(n))
      IR_PUSH(a, all, ((bounded){n->in[0], n->type.dims[0]}));
    else if (n->op == IR_EQ) {
      bound_by_iota(a, &all, n->in[0], n->in[1]);
      bound_by_iota(a, &all, n->in[1], n->in[0]);
    }
  }
  return all;
}

int64_t *cg_integer_limits(ir_arena *a, const ir_func *f) {
  int64_t *limits = IR_NEW_ARRAY(a, int64_t, f->next_id);
  bounds all = find_bounds(a, f);
  for (size_t i = 0; i < all.num; i++)
    limit(limits, all.at[i].n, all.at[i].by);
  return limits;
}

// --- element by element --------------------------------------------------------------------------
enum { MOST_LOOKED_AT = 1 << 24 };

static bool is_view(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_VIEW;
}

// Which elements below views make up those of `n` that are used; NULL: not known.
static bool *used_below(ir_arena *a, const ir_node *n, const bool *used, const ir_node **below) {
  ir_node whole = *n;
  whole.stretch_of = NULL; // as a slice of what it lies in
  dom_layout l;
  if (!dom_layout_of(&whole, &l))
    return NULL;
  bool *out = IR_NEW_ARRAY(a, bool, ir_elements(&l.buffer->type));
  int64_t num = ir_elements(&n->type);
  for (int64_t i = 0; i < num; i++) {
    int64_t at = l.offset, rest = i;
    for (int m = l.num - 1; m >= 0; rest /= l.size[m--])
      at += rest % l.size[m] * l.stride[m];
    out[at] |= used[i];
  }
  *below = l.buffer;
  return out;
}

static bool *all_of(ir_arena *a, const ir_node *n) {
  int64_t num = ir_elements(&n->type);
  bool *all = IR_NEW_ARRAY(a, bool, num);
  for (int64_t i = 0; i < num; i++)
    all[i] = true;
  return all;
}

// All elements of what it is of are in it: of a broadcast to classes there are more than can be looked at one by one.
static bool has_all(const ir_node *n) {
  return n->op == IR_BROADCAST || n->op == IR_RESHAPE || n->op == IR_TRANSPOSE ||
         n->op == IR_CAST || n->op == IR_COPY;
}

// The elements of `input` that `n` is made of, or more where that would take long to say; NULL: none.
static const bool *used_of(ir_arena *a, const ir_node *n, const ir_node *input) {
  const ir_node *from = n;
  while (is_view(from) || from->op == IR_CAST || from->op == IR_COPY)
    from = from->in[0];
  if (from != input)
    return NULL;
  const bool *used = NULL; // all
  while (n != input) {
    if (ir_is_float(n->type.dtype))
      return NULL;
    if (!is_view(n) || (!used && has_all(n))) {
      n = n->in[0];
      continue;
    }
    if (!used)
      used = ir_elements(&n->type) <= MOST_LOOKED_AT ? all_of(a, n) : NULL;
    used = used ? used_below(a, n, used, &n) : NULL;
    if (!used)
      break;
  }
  return used ? used : all_of(a, input);
}

int64_t *cg_element_limits(ir_arena *a, const ir_func *f, const ir_node *input) {
  enum { MOST = 4096 }; // a table for longer samples would be most of a small program
  int64_t num = ir_elements(&input->type), size = num / input->type.dims[0];
  if (ir_is_float(input->type.dtype) || input->type.dtype == IR_BOOL || size < 2 || size > MOST ||
      num > MOST_LOOKED_AT)
    return NULL;
  int64_t *limits = IR_NEW_ARRAY(a, int64_t, size);
  bounds all = find_bounds(a, f);
  for (size_t k = 0; k < all.num; k++) {
    const bool *used = used_of(a, all.at[k].n, input);
    for (int64_t i = 0; used && i < num; i++)
      if (used[i] && (!limits[i % size] || all.at[k].by < limits[i % size]))
        limits[i % size] = all.at[k].by;
  }
  for (int64_t i = 1; i < size; i++)
    if (limits[i] != limits[0])
      return limits;
  return NULL;
}

// dom_base, and what was cast.
static const ir_node *number_base(const ir_node *n) {
  n = dom_base(n);
  while (n->op == IR_CAST && !ir_is_float(n->in[0]->type.dtype))
    n = dom_base(n->in[0]);
  return n;
}

static bool holds(ir_op op, double a, double b) {
  return op == IR_LT ? a < b : op == IR_LE ? a <= b : op == IR_GT ? a > b : a >= b;
}

// input >= 0, -1 < input, ..: numbers below 0 are told from the others.
static bool tells_negative(const ir_node *n, const ir_node *input) {
  if (n->op != IR_LT && n->op != IR_LE && n->op != IR_GT && n->op != IR_GE)
    return false;
  bool right = number_base(n->in[1]) == input;
  const ir_node *other = number_base(n->in[!right]);
  if (number_base(n->in[right]) != input || other->op != IR_CONST)
    return false;
  double c = ir_attr_num(other, IR_ATTR_VALUE);
  return right ? holds(n->op, c, -1) != holds(n->op, c, 0)
               : holds(n->op, -1, c) != holds(n->op, 0, c);
}

int64_t cg_integer_besides(const ir_func *f, const ir_node *input, int64_t limit) {
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    for (int k = 0; (n->op == IR_EQ || n->op == IR_NE) && k < 2; k++) {
      const ir_node *value = number_base(n->in[k]), *other = number_base(n->in[1 - k]);
      if (value != input || other->op != IR_CONST)
        continue;
      double asked = ir_attr_num(other, IR_ATTR_VALUE);
      if (asked < 0 || asked >= (double)limit) // others are among its values anyway
        return (int64_t)asked;
    }
  }
  for (size_t i = 0; i < f->nodes.num; i++)
    if (tells_negative(f->nodes.at[i], input))
      return -1;
  return 0;
}
