// zeros.c: see zeros.h.
//
//   %image                       an input: data
//   %x = cast %image             data, as are views of it
//   %y = div %x, 255             data: 0 / 255 is 0
//   %z = sub %y, 0.13            none: black is -0.13 now
//   %d = mul %y, %mask           data, whatever the mask is
//   %r = max %y, 0               data
//   %m = broadcast %used         of [8,320,1]
//   %s = select %m, %h, 0        rows
//   %g = scatter_add %i, %u      rows: those that no index names
#include "passes/zeros.h"

// Nodes looked at: products of products could be many paths.
enum { MOST_NODES = 64 };

static zeros_kind find(const ir_node *n, int *left);

static bool is_zero(const ir_node *n) {
  return ir_is_const(n, 0);
}

// The same for all of a row.
static bool is_of_rows(const ir_node *n) {
  int last = n->type.rank - 1;
  return n->op == IR_BROADCAST && last >= 0 && n->type.dims[last] > 1 &&
         n->in[0]->type.dims[last] == 1;
}

// 0 where either is.
static zeros_kind either(const ir_node *x, const ir_node *y, int *left) {
  zeros_kind k = find(x, left);
  return k ? k : find(y, left);
}

// 0 where both are; constants of 0 are so everywhere.
static zeros_kind both(const ir_node *x, const ir_node *y, int *left) {
  if (is_zero(x))
    return find(y, left);
  if (is_zero(y))
    return find(x, left);
  zeros_kind k = find(x, left);
  return k && find(y, left) == k ? k : ZEROS_NONE;
}

static zeros_kind of_select(const ir_node *n, int *left) {
  bool cuts = is_zero(n->in[1]) != is_zero(n->in[2]);
  return cuts && is_of_rows(n->in[0]) ? ZEROS_ROWS : both(n->in[1], n->in[2], left);
}

static zeros_kind find(const ir_node *n, int *left) {
  if ((*left)-- <= 0)
    return ZEROS_NONE;
  if (ir_keeps_zero(n->op) || ir_ops[n->op].cls == IR_CLASS_VIEW)
    return find(n->in[0], left);
  switch (n->op) {
  case IR_INPUT:
    return ZEROS_DATA;
  case IR_SCATTER_ADD:
    return ZEROS_ROWS;
  case IR_DIV:
    return find(n->in[0], left);
  case IR_MUL:
    return either(n->in[0], n->in[1], left);
  case IR_ADD:
  case IR_SUB:
  case IR_MAX:
  case IR_MIN:
    return both(n->in[0], n->in[1], left);
  case IR_SELECT:
    return of_select(n, left);
  default:
    return ZEROS_NONE;
  }
}

zeros_kind zeros_expected(const ir_node *n) {
  int left = MOST_NODES;
  return find(n, &left);
}
