// row_update.h: SCATTER kernels of several members. One kind fetches what it adds:
//
//   %u = gather %x, %j                rows of %x
//   %s = scatter_add %i, %u           each is read once: nothing need put them side by side first
//
// The other kind are updates of a table that leave rows alone which no index names.
//
//   %g = scatter_add %i, %u           0 in rows that %i does not name
//   %s = mul %rate, %g                0 there, too
//   %t.new = sub %t, %s               what @t holds there: nothing to do
//   write @t, %t.new
//
// The table may also be a value, such as the rest of its gradient:
//
//   %d.t = add %p, %g                 what %p holds there
//
// Such a kernel, a row update, computes its members only for rows that are named. This is which groups of nodes
// may be one kernel, for the passes that make them (passes/fuse.c, passes/row_updates.c) and the verifier.
#ifndef IR_ROW_UPDATE_H
#define IR_ROW_UPDATE_H

#include "ir/ir.h"

// What a member is in the rows that no index names.
typedef enum ir_row_kind {
  IR_ROW_ANY,
  IR_ROW_ZERO,
  IR_ROW_KEPT, // what a table holds there
} ir_row_kind;

typedef struct ir_row_value {
  ir_row_kind kind;
  const ir_node *table; // KEPT: reads a state, or is a value that another kernel has made
} ir_row_value;

// values[i]: what members[i] is there. members[0] is the sum of rows (or the sum of such sums, that
// will become one), the others are computed from it, operands first. NULL, or why they cannot be
// one kernel (`*fault`: the member). As in algebra, a product of 0 counts as 0, whatever the other
// factor; so does 0 divided by anything.
const char *ir_row_values(ir_node *const *members, size_t num, ir_row_value *values,
                          const ir_node **fault);

// Of member `out`; NULL: it has none.
const ir_node *ir_row_table(ir_arena *a, const ir_kernel *k, const ir_node *out);
// Values that read one state are one table.
static inline bool ir_is_same_table(const ir_node *a, const ir_node *b) {
  return a && b && (a == b || (a->op == IR_READ && b->op == IR_READ && a->state == b->state));
}

static inline bool ir_is_row_update(const ir_kernel *k) {
  return k->family == IR_FAMILY_SCATTER && k->nodes.num > 1 && k->nodes.at[0] == k->anchor;
}

// The member that fetches the rows which a SCATTER kernel's anchor adds; NULL: they lie in memory.
static inline ir_node *ir_fetched_update(const ir_kernel *k) {
  ir_node *first = k->nodes.at[0];
  return k->family == IR_FAMILY_SCATTER && first != k->anchor ? first : NULL;
}

// Whether a gather that only `scatter` uses, and which makes its update, may be a member of its kernel: row for row.
static inline bool ir_can_fetch(const ir_node *gather, const ir_node *scatter) {
  return gather->op == IR_GATHER && scatter->in[1] == gather &&
         ir_below_views(scatter->in[0]) != gather &&
         gather->in[1]->type.rank == scatter->in[0]->type.rank;
}

#endif
