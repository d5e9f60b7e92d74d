// losses.c: see losses.h.
//
//   result loss loss = %l                         %l
//   %s = add %sum, %l      write @sum, %s         %l, what is added: the sum may come after the backward pass
#include "passes/losses.h"

#include "passes/domain.h"

static ir_node *what_is_added(const ir_node *write) {
  const ir_node *sum = dom_below_copies(write->in[0]);
  if (sum->op != IR_ADD)
    return write->in[0];
  return sum->in[dom_base(sum->in[0])->op == IR_READ];
}

// The accumulator to which `n` is added; NULL: none.
static const ir_state *accumulator_of(const ir_node *n) {
  n = dom_below_copies(n);
  for (int i = 0; n->op == IR_ADD && i < n->num_in; i++) {
    const ir_node *x = dom_base(n->in[i]);
    if (x->op == IR_READ && x->state->role == IR_ROLE_ACCUM)
      return x->state;
  }
  return NULL;
}

// What the step, the last of several batches, reports as its loss is the sum in an accumulator. Not all numbers that are
// added up are losses: the gradient of a parameter that is one number comes at the end of the backward pass.
static bool is_sum_of_losses(const ir_func *step, const ir_state *s) {
  bool known = false;
  for (size_t i = 0; step && i < step->results.num; i++) {
    const ir_result *r = &step->results.at[i];
    const ir_state *to = r->kind == IR_RESULT_LOSS ? accumulator_of(r->node) : NULL;
    if (to && to == s)
      return true;
    known |= to != NULL;
  }
  return !known && s->type.rank == 0;
}

losses losses_find(ir_arena *a, const ir_func *f) {
  losses l = {.together = true};
  for (size_t i = 0; i < f->results.num; i++)
    if (f->results.at[i].kind == IR_RESULT_LOSS) {
      IR_PUSH(a, l.at, f->results.at[i].node);
      l.together = false;
    }
  const ir_func *step = ir_find_func(f->module, "step");
  for (size_t i = 0; l.together && i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->op == IR_WRITE && n->state->role == IR_ROLE_ACCUM && is_sum_of_losses(step, n->state))
      IR_PUSH(a, l.at, what_is_added(n));
  }
  return l;
}
