// online_rows.c: see online_rows.h.
#include "codegen/online_rows.h"

#include <string.h>

// The member that gives operand i of user, through views and copies; NULL: it comes from memory.
static const ir_node *member_of(const domain *d, const ir_node *user, int operand) {
  if (dom_find_load(d, user, operand))
    return NULL;
  const ir_node *n = dom_base(user->in[operand]);
  bool passes_on = n->op == IR_STOP || n->op == IR_COPY;
  return passes_on && !dom_find_load(d, n, 0) ? member_of(d, n, 0) : n;
}

// Operand 0 of both users is the same value at the same place of the domain.
static bool same_operand(const domain *d, const ir_node *a, const ir_node *b) {
  const dom_load *x = dom_find_load(d, a, 0), *y = dom_find_load(d, b, 0);
  if (x && y)
    return x->buffer == y->buffer && memcmp(&x->access, &y->access, sizeof x->access) == 0;
  return !x && !y && member_of(d, a, 0) == member_of(d, b, 0);
}

const ir_node *online_rows_find(const domain *d, const ir_node *sum) {
  if (sum->op != IR_SUM || !ir_is_float(sum->type.dtype))
    return NULL;
  const ir_node *e = member_of(d, sum, 0);
  if (!e || e->op != IR_EXP)
    return NULL;
  const ir_node *z = member_of(d, e, 0);
  const ir_node *max = z && z->op == IR_SUB ? member_of(d, z, 1) : NULL;
  return max && max->op == IR_REDUCE_MAX && same_operand(d, max, z) ? max : NULL;
}
