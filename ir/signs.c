// signs.c: see signs.h.
#include "ir/signs.h"

#include <math.h>

// Two claims about each node, by the same rules. -0 is not below 0, but 1 / -0 is.
typedef struct signs {
  bool *known; // no element is below 0
  bool *plus;  // nor is any -0
} signs;

static bool operands_are(const bool *known, const ir_node *n, int first) {
  for (int i = first; i < n->num_in; i++)
    if (!known[n->in[i]->id])
      return false;
  return n->num_in > first;
}

// x * x: the same elements, seen the same way.
static bool is_square(const ir_node *n) {
  const ir_node *x = n->in[0], *y = n->in[1];
  while (x != y && ir_ops[x->op].cls == IR_CLASS_VIEW && ir_same_work(x, y)) {
    x = x->in[0];
    y = y->in[0];
  }
  return x == y;
}

// A sum is -0 only where both operands are.
static bool is_never_minus_zero(const signs *s, const ir_node *n) {
  bool plus = s->plus[n->id];
  for (int i = 0; n->op == IR_ADD && i < n->num_in; i++)
    plus = plus || s->plus[n->in[i]->id];
  return plus;
}

static bool is_number_above(const ir_node *n, const bool *known, bool strict) {
  n = ir_below_views(n);
  return n->op == IR_CONST && known[n->id] && (!strict || ir_attr_num(n, IR_ATTR_VALUE) > 0);
}

// One of the two claims; `strict`: that of `plus`.
static bool holds(const signs *s, bool strict, const ir_node *n) {
  const bool *known = strict ? s->plus : s->known; // of operands
  double value;
  switch (n->op) {
  case IR_CONST:
  case IR_PAD:
    value = ir_attr_num(n, IR_ATTR_VALUE);
    return value >= 0 && !(strict && signbit(value)) && (n->op == IR_CONST || known[n->in[0]->id]);
  case IR_ABS:
  case IR_EXP:
  case IR_SIGMOID:
  case IR_UNIFORM:
    return true;
  case IR_SQRT:
    return !strict || is_never_minus_zero(s, n->in[0]);
  case IR_RSQRT:
    return is_never_minus_zero(s, n->in[0]);
  case IR_MUL:
    return is_square(n) || operands_are(known, n, 0);
  case IR_MAX: // the second operand, unless the first is greater: it may be NaN, or 0 and the second -0
    return known[n->in[1]->id] || is_number_above(n->in[0], known, strict);
  case IR_CAST: {
    ir_dtype_kind from = ir_dtypes[n->in[0]->type.dtype].kind;
    return known[n->in[0]->id] || from == IR_KIND_BOOL || from == IR_KIND_UINT;
  }
  case IR_SELECT:
    return operands_are(known, n, 1);
  case IR_GATHER:
    return known[n->in[0]->id];
  case IR_INSERT:
    return operands_are(known, n, 0);
  case IR_POW:
    return s->plus[n->in[0]->id];
  case IR_SCATTER_ADD:
    return known[n->in[1]->id];
  case IR_DIV:
    return known[n->in[0]->id] && s->plus[n->in[1]->id];
  case IR_ADD:
  case IR_MIN:
  case IR_EXPM1:
  case IR_LOG1P:
  case IR_TANH:
  case IR_ERF:
  case IR_FLOOR:
  case IR_SIGN:
  case IR_TF32:
  case IR_COPY:
  case IR_STOP:
  case IR_CONCAT:
  case IR_SUM:
  case IR_REDUCE_MAX:
  case IR_REDUCE_MIN:
  case IR_MATMUL:
  case IR_RESHAPE:
  case IR_TRANSPOSE:
  case IR_BROADCAST:
  case IR_SLICE:
  case IR_WINDOWS:
    return operands_are(known, n, 0);
  default:
    return false;
  }
}

bool *ir_find_never_negative(ir_arena *a, const ir_func *f) {
  signs s = {IR_NEW_ARRAY(a, bool, f->next_id), IR_NEW_ARRAY(a, bool, f->next_id)};
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    bool is_float = ir_is_float(n->type.dtype);
    s.plus[n->id] = is_float && holds(&s, true, n);
    s.known[n->id] = is_float && (s.plus[n->id] || holds(&s, false, n));
  }
  return s.known;
}
