// losses.c: see losses.h.
//
//   result loss loss = %l                         %l
//   %s = add %sum, %l      write @sum, %s         %l, what is added: the sum may come after the backward pass
#include "passes/losses.h"

#include "passes/domain.h"

static ir_node *what_is_added(const ir_node *write) {
  ir_node *sum = write->in[0];
  while (sum->op == IR_COPY || ir_ops[sum->op].cls == IR_CLASS_VIEW)
    sum = sum->in[0];
  if (sum->op != IR_ADD)
    return write->in[0];
  return sum->in[dom_base(sum->in[0])->op == IR_READ];
}

losses losses_find(ir_arena *a, const ir_func *f) {
  losses l = {.together = true};
  for (size_t i = 0; i < f->results.num; i++)
    if (f->results.at[i].kind == IR_RESULT_LOSS) {
      IR_PUSH(a, l.at, f->results.at[i].node);
      l.together = false;
    }
  for (size_t i = 0; l.together && i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->op == IR_WRITE && n->state->role == IR_ROLE_ACCUM && n->state->type.rank == 0)
      IR_PUSH(a, l.at, what_is_added(n));
  }
  return l;
}
