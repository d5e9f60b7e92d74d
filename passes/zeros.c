// zeros.c: see zeros.h.
//
//   %image                    an input: yes
//   %x = cast %image          yes, as are views of it
//   %y = div %x, 255          yes: 0 / 255 is 0
//   %z = sub %y, 0.13         no: black is -0.13 now
//   %d = mul %y, %mask        yes, whatever the mask is
//   %r = max %y, 0            yes
#include "passes/zeros.h"

// Nodes looked at: products of products could be many paths.
enum { MOST_NODES = 64 };

static bool keeps_zeros(const ir_node *n, int *left);

static bool is_zero(const ir_node *n) {
  return ir_is_const(n, 0);
}

// Both of them are 0 where data are, and one is not a constant only.
static bool both(const ir_node *x, const ir_node *y, int *left) {
  if (is_zero(x))
    return keeps_zeros(y, left);
  return keeps_zeros(x, left) && (is_zero(y) || keeps_zeros(y, left));
}

static bool keeps_zeros(const ir_node *n, int *left) {
  if ((*left)-- <= 0)
    return false;
  switch (n->op) {
  case IR_INPUT:
    return true;
  case IR_COPY:
  case IR_STOP:
  case IR_CAST:
  case IR_TF32:
  case IR_NEG:
  case IR_ABS:
  case IR_SIGN:
  case IR_SQRT:
  case IR_RESHAPE:
  case IR_TRANSPOSE:
  case IR_BROADCAST:
  case IR_SLICE:
  case IR_DIV:
    return keeps_zeros(n->in[0], left);
  case IR_MUL:
    return keeps_zeros(n->in[0], left) || keeps_zeros(n->in[1], left);
  case IR_ADD:
  case IR_SUB:
  case IR_MAX:
  case IR_MIN:
    return both(n->in[0], n->in[1], left);
  case IR_SELECT:
    return both(n->in[1], n->in[2], left);
  default:
    return false;
  }
}

bool zeros_are_those_of_data(const ir_node *n) {
  int left = MOST_NODES;
  return keeps_zeros(n, &left);
}
