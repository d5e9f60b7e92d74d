// signs.c: see signs.h.
#include "ir/signs.h"

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

static bool is_never_negative(const bool *known, const ir_node *n) {
  switch (n->op) {
  case IR_CONST:
    return ir_attr_num(n, IR_ATTR_VALUE) >= 0;
  case IR_PAD:
    return known[n->in[0]->id] && ir_attr_num(n, IR_ATTR_VALUE) >= 0;
  case IR_ABS:
  case IR_EXP:
  case IR_SIGMOID:
  case IR_SQRT:
  case IR_RSQRT:
  case IR_UNIFORM:
    return true;
  case IR_MUL:
    return is_square(n) || operands_are(known, n, 0);
  case IR_MAX:
    return known[n->in[0]->id] || known[n->in[1]->id];
  case IR_CAST: {
    ir_dtype_kind from = ir_dtypes[n->in[0]->type.dtype].kind;
    return known[n->in[0]->id] || from == IR_KIND_BOOL || from == IR_KIND_UINT;
  }
  case IR_SELECT:
    return operands_are(known, n, 1);
  case IR_GATHER:
  case IR_POW:
    return known[n->in[0]->id];
  case IR_SCATTER_ADD:
    return known[n->in[1]->id];
  case IR_ADD:
  case IR_DIV:
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
  bool *known = IR_NEW_ARRAY(a, bool, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    known[n->id] = ir_is_float(n->type.dtype) && is_never_negative(known, n);
  }
  return known;
}
