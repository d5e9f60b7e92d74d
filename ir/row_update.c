// row_update.c: see row_update.h.
#include "ir/row_update.h"

#include <string.h>

#include "ir/interp.h"

typedef struct group {
  ir_node *const *members;
  const ir_row_value *values;
  size_t num; // so far
} group;

static int member_at(const group *g, const ir_node *n) {
  for (size_t i = 0; i < g->num; i++)
    if (g->members[i] == n)
      return (int)i;
  return -1;
}

// One number for all elements, or the same rows of a table.
static bool is_table(const ir_node *n, const ir_type *type) {
  bool stored = n->op == IR_READ || (ir_is_computed(n) && n->type.dtype == type->dtype);
  return stored && ir_same_shape(&n->type, type);
}

static bool may_be_read(const ir_node *operand, const ir_type *type) {
  const ir_node *base = ir_below_views(operand);
  if (base->op == IR_CONST || (base->op != IR_IOTA && ir_elements(&base->type) == 1))
    return true;
  return is_table(operand, type);
}

static ir_row_value value_of_operand(const group *g, const ir_node *n) {
  int at = member_at(g, n);
  if (at >= 0)
    return g->values[at];
  if (is_table(n, &g->members[0]->type))
    return (ir_row_value){IR_ROW_KEPT, n};
  return (ir_row_value){ir_is_const(n, 0) ? IR_ROW_ZERO : IR_ROW_ANY, NULL};
}

static ir_row_value value_of(const group *g, const ir_node *n) {
  static const ir_row_value any = {IR_ROW_ANY, NULL}, zero = {IR_ROW_ZERO, NULL};
  ir_row_value x[3] = {any, any, any};
  for (int i = 0; i < n->num_in; i++)
    x[i] = value_of_operand(g, n->in[i]);
  bool z0 = x[0].kind == IR_ROW_ZERO, z1 = x[1].kind == IR_ROW_ZERO, z2 = x[2].kind == IR_ROW_ZERO;
  switch (n->op) {
  case IR_COPY:
  case IR_STOP:
    return x[0];
  case IR_ADD:
    return z0 ? x[1] : z1 ? x[0] : any;
  case IR_SUB:
    return z1 ? x[0] : any;
  case IR_MUL:
    return z0 || z1 ? zero : any;
  case IR_DIV:
  case IR_CAST:
    return z0 ? zero : any;
  case IR_SELECT:
    return x[1].kind == x[2].kind && (z2 || ir_is_same_table(x[1].table, x[2].table)) ? x[1] : any;
  default:
    return n->num_in == 1 && z0 && ir_interp_unary(n->op, 0) == 0 ? zero : any;
  }
}

static const char *fault_of_table(const ir_node *sum) {
  int wide = 0;
  for (int i = 1; i < sum->type.rank; i++)
    wide += sum->type.dims[i] > 1;
  if (sum->type.dtype != IR_F32 && sum->type.dtype != IR_F64)
    return "a row update sums f32 or f64";
  return wide > 1 ? "rows of a row update have one axis" : NULL;
}

static const char *fault_of_member(const group *g, const ir_node *n) {
  if (ir_ops[n->op].cls != IR_CLASS_POINTWISE || ir_is_random(n))
    return "a row update cannot compute this";
  if (!ir_same_shape(&n->type, &g->members[0]->type))
    return "members of a row update have one shape";
  for (int i = 0; i < n->num_in; i++)
    if (member_at(g, n->in[i]) < 0 && !may_be_read(n->in[i], &g->members[0]->type))
      return "a row update reads single numbers and tables of its shape";
  return NULL;
}

const char *ir_row_values(ir_node *const *members, size_t num, ir_row_value *values,
                          const ir_node **fault) {
  group g = {members, values, 1};
  *fault = members[0];
  const char *why = fault_of_table(members[0]);
  values[0] = (ir_row_value){IR_ROW_ZERO, NULL};
  for (; !why && g.num < num; g.num++) {
    *fault = members[g.num];
    why = fault_of_member(&g, members[g.num]);
    if (!why)
      values[g.num] = value_of(&g, members[g.num]);
  }
  return why;
}

const ir_node *ir_row_table(ir_arena *a, const ir_kernel *k, const ir_node *out) {
  ir_row_value *values = IR_NEW_ARRAY(a, ir_row_value, k->nodes.num);
  const ir_node *fault;
  const char *why = ir_row_values(k->nodes.at, k->nodes.num, values, &fault);
  BUG_IF(why, "kernel '%s': %s", k->name, why);
  for (size_t i = 0; i < k->nodes.num; i++)
    if (k->nodes.at[i] == out)
      return values[i].table;
  return NULL;
}
