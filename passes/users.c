// users.c: see users.h.
#include "passes/users.h"

// Each list is as long as it will be, in memory of all: one that grows would begin with room for eight.
static void make_room(ir_arena *a, const ir_func *f, ir_node_list *of) {
  size_t all = 0;
  for (size_t i = 0; i < f->nodes.num; i++)
    for (int j = 0; j < f->nodes.at[i]->num_in; j++, all++)
      of[f->nodes.at[i]->in[j]->id].cap++;
  ir_node **at = IR_NEW_ARRAY(a, ir_node *, all + 1);
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node_list *users = &of[f->nodes.at[i]->id];
    users->at = at;
    at += users->cap;
  }
}

pass_users pass_find_users(ir_arena *a, const ir_func *f) {
  pass_users u = {.of = IR_NEW_ARRAY(a, ir_node_list, f->next_id),
                  .position = IR_NEW_ARRAY(a, uint32_t, f->next_id),
                  .is_result = IR_NEW_ARRAY(a, bool, f->next_id)};
  make_room(a, f, u.of);
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

bool *pass_find_other_uses(ir_arena *a, const ir_func *f, bool (*takes)(const ir_node *)) {
  bool *used = IR_NEW_ARRAY(a, bool, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    for (int j = 0; ir_ops[n->op].cls != IR_CLASS_VIEW && !takes(n) && j < n->num_in; j++)
      used[ir_below_views(n->in[j])->id] = true;
  }
  for (size_t i = 0; i < f->results.num; i++)
    used[ir_below_views(f->results.at[i].node)->id] = true;
  return used;
}
