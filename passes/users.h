// users.h: who uses what in a function, as it is when pass_find_users looks.
#ifndef PASSES_USERS_H
#define PASSES_USERS_H

#include "ir/ir.h"

// By node id.
typedef struct pass_users {
  ir_node_list *of;   // nodes that it is an operand of, in order; once for each operand
  uint32_t *position; // its own, in the function
  bool *is_result;
} pass_users;

pass_users pass_find_users(ir_arena *a, const ir_func *f);
// By node id: it is a result, or an operand of a node that `takes` is false of; through views, which take nothing.
bool *pass_find_other_uses(ir_arena *a, const ir_func *f, bool (*takes)(const ir_node *));

#endif
