// verify_row_update.c: what a SCATTER kernel of several members (ir/row_update.h) must keep to. Of a row update,
//   - the first member, its anchor, is a scatter_add, the others are computed from it row by row;
//   - nobody else uses a member but writes, and what they write to a state is, in rows that no
//     index names, what the state holds there. Or its table is a value: then anybody may use it.
// Where the anchor is not the first member, the only other one is a gather, which nobody else uses. Any anchor of the
// family is a scatter.
#include "ir/row_update.h"
#include "ir/verify.h"

static void check_members(ir_checker *c, const ir_kernel *k, ir_row_value *by_id) {
  ir_row_value *values = IR_NEW_ARRAY(c->faults->arena, ir_row_value, k->nodes.num);
  const ir_node *fault = k->nodes.at[0];
  const char *why = fault->op == IR_SCATTER_ADD
                        ? ir_row_values(k->nodes.at, k->nodes.num, values, &fault)
                        : "a row update begins with its anchor, a scatter_add";
  if (why)
    ir_fault_add(c, fault, "%s", why);
  for (size_t i = 0; i < k->nodes.num; i++)
    by_id[k->nodes.at[i]->id] = values[i];
}

static void check_use(ir_checker *c, const ir_node *user, const ir_node *x,
                      const ir_row_value *value) {
  bool of_value = value->kind == IR_ROW_KEPT && value->table->op != IR_READ;
  if (user->op != IR_WRITE && of_value)
    return;
  if (user->op != IR_WRITE)
    ir_fault_add(c, user, "operand %%%s is not stored: it is inside a row update", x->name);
  else if (!of_value && !(value->kind == IR_ROW_KEPT && value->table->state == user->state))
    ir_fault_add(c, user, "a row update does not leave the other rows of @%s alone",
                 user->state->name);
}

static void check_fetch(ir_checker *c, const ir_kernel *k) {
  const ir_node *gather = ir_fetched_update(k);
  if (k->nodes.num != 2 || !ir_can_fetch(gather, k->anchor))
    ir_fault_add(c, gather,
                 "a scatter begins with its anchor, or with the one gather that makes its update");
  if (gather->stored)
    ir_fault_add(c, gather, "%%%s cannot be stored: a scatter fetches it", gather->name);
}

static void check_kernel(ir_checker *c, const ir_kernel *k, ir_row_value *by_id) {
  if (k->family != IR_FAMILY_SCATTER)
    return;
  if (!ir_is_scatter(k->anchor))
    ir_fault_add(c, k->anchor, "the anchor of a scatter is a scatter_add or a scatter_max");
  else if (ir_is_row_update(k))
    check_members(c, k, by_id);
  else if (ir_fetched_update(k))
    check_fetch(c, k);
}

// Is `n` fetched by a kernel that is not the user's?
static bool is_inside_fetch(const ir_node *n, const ir_kernel *user) {
  return n->kernel && n->kernel != user && ir_fetched_update(n->kernel) == n;
}

void verify_row_updates(ir_checker *c) {
  ir_row_value *by_id = IR_NEW_ARRAY(c->faults->arena, ir_row_value, c->f->next_id + 1);
  for (size_t i = 0; i < c->f->kernels.num; i++)
    check_kernel(c, c->f->kernels.at[i], by_id);
  for (size_t i = 0; i < c->f->nodes.num; i++) {
    const ir_node *n = c->f->nodes.at[i];
    for (int j = 0; j < n->num_in; j++) {
      const ir_kernel *k = n->in[j]->kernel;
      if (k && k != n->kernel && ir_is_row_update(k))
        check_use(c, n, n->in[j], &by_id[n->in[j]->id]);
      if (is_inside_fetch(n->in[j], n->kernel))
        ir_fault_add(c, n, "operand %%%s is not stored: a scatter fetches it", n->in[j]->name);
    }
  }
  for (size_t i = 0; i < c->f->results.num; i++) {
    const ir_kernel *k = c->f->results.at[i].node->kernel;
    if (is_inside_fetch(c->f->results.at[i].node, NULL))
      ir_fault_add(c, c->f->results.at[i].node,
                   "the result '%s' is not stored: a scatter fetches it", c->f->results.at[i].name);
    if (k && ir_is_row_update(k))
      ir_fault_add(c, c->f->results.at[i].node, "the result '%s' is inside a row update",
                   c->f->results.at[i].name);
  }
}
