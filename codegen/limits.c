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

static void limit_by_iota(int64_t *limits, const ir_node *a, const ir_node *b) {
  const ir_node *base = dom_base(a);
  if (base->op == IR_CAST)
    base = dom_base(base->in[0]);
  if (base->op == IR_IOTA)
    limit(limits, b, base->type.dims[ir_attr_int(base, IR_ATTR_AXIS)]);
}

int64_t *cg_integer_limits(ir_arena *a, const ir_func *f) {
  int64_t *limits = IR_NEW_ARRAY(a, int64_t, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->op == IR_GATHER)
      limit(limits, n->in[1], n->in[0]->type.dims[0]);
    else if (ir_is_scatter(n))
      limit(limits, n->in[0], n->type.dims[0]);
    else if (n->op == IR_EQ) {
      limit_by_iota(limits, n->in[0], n->in[1]);
      limit_by_iota(limits, n->in[1], n->in[0]);
    }
  }
  return limits;
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
