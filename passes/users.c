// users.c: see users.h.
#include "passes/users.h"

pass_users pass_find_users(ir_arena *a, const ir_func *f) {
  pass_users u = {.of = IR_NEW_ARRAY(a, ir_node_list, f->next_id),
                  .position = IR_NEW_ARRAY(a, uint32_t, f->next_id),
                  .is_result = IR_NEW_ARRAY(a, bool, f->next_id)};
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    u.position[n->id] = (uint32_t)i;
    for (int j = 0; j < n->num_in; j++)
      IR_PUSH(a, u.of[n->in[j]->id], n);
  }
  for (size_t i = 0; i < f->results.num; i++)
    u.is_result[f->results.at[i].node->id] = true;
  return u;
}
