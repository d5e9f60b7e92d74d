// relist.c: puts func->nodes into the order of func->kernels (fuse.h).
#include "passes/fuse.h"

typedef struct relister {
  ir_arena *arena;
  IR_VEC(ir_node *) nodes;
} relister;

// Leaves and views appear right before their first user. mark: 1 = listed.
static void list_operands(relister *r, ir_node *n);

static void list_node(relister *r, ir_node *n) {
  if (n->mark)
    return;
  n->mark = 1;
  list_operands(r, n);
  IR_PUSH(r->arena, r->nodes, n);
}

static void list_operands(relister *r, ir_node *n) {
  for (int i = 0; i < n->num_in; i++)
    if (!n->in[i]->kernel)
      list_node(r, n->in[i]);
}

static void list_kernel(relister *r, const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++) {
    ir_node *n = k->nodes.at[i];
    for (int j = 0; j < n->num_in; j++)
      if (!n->in[j]->kernel && dom_base(n->in[j])->kernel != k)
        list_node(r, n->in[j]);
  }
  for (size_t i = 0; i < k->nodes.num; i++)
    list_node(r, k->nodes.at[i]);
}

void fuse_relist(ir_func *f) {
  relister r = {.arena = f->module->arena};
  for (size_t i = 0; i < f->nodes.num; i++)
    f->nodes.at[i]->mark = 0;
  for (size_t i = 0; i < f->nodes.num; i++) // inputs keep their order: it is the calling order
    if (f->nodes.at[i]->op == IR_INPUT)
      list_node(&r, f->nodes.at[i]);
  for (size_t i = 0; i < f->kernels.num; i++)
    list_kernel(&r, f->kernels.at[i]);
  for (size_t i = 0; i < f->nodes.num; i++)
    if (ir_ops[f->nodes.at[i]->op].cls == IR_CLASS_EFFECT)
      list_node(&r, f->nodes.at[i]);
  for (size_t i = 0; i < f->results.num; i++)
    list_node(&r, f->results.at[i].node);
  for (size_t i = 0; i < r.nodes.num; i++)
    r.nodes.at[i]->mark = 0;
  f->nodes.at = r.nodes.at;
  f->nodes.num = r.nodes.num;
  f->nodes.cap = r.nodes.cap;
}
