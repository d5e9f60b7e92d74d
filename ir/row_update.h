// row_update.h: updates of a table that leave rows alone which no index names.
//
//   %g = scatter_add %i, %u           0 in rows that %i does not name
//   %s = mul %rate, %g                0 there, too
//   %t.new = sub %t, %s               what @t holds there: nothing to do
//   write @t, %t.new
//
// A SCATTER kernel of several members, a row update, computes its members only for rows that are
// named. This is which groups of nodes may be one, for the pass that makes them
// (passes/row_updates.c) and the verifier.
#ifndef IR_ROW_UPDATE_H
#define IR_ROW_UPDATE_H

#include "ir/ir.h"

// What a member is in the rows that no index names.
typedef enum ir_row_kind {
  IR_ROW_ANY,
  IR_ROW_ZERO,
  IR_ROW_KEPT, // what a state holds there
} ir_row_kind;

typedef struct ir_row_value {
  ir_row_kind kind;
  const ir_state *state; // KEPT
} ir_row_value;

// values[i]: what members[i] is there. members[0] is the sum of rows (or the sum of such sums, that
// will become one), the others are computed from it, operands first. NULL, or why they cannot be
// one kernel (`*fault`: the member). As in algebra, a product of 0 counts as 0, whatever the other
// factor.
const char *ir_row_values(ir_node *const *members, size_t num, ir_row_value *values,
                          const ir_node **fault);

static inline bool ir_is_row_update(const ir_kernel *k) {
  return k->family == IR_FAMILY_SCATTER && k->nodes.num > 1;
}

#endif
