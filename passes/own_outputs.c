// own_outputs.c: every write and every result gets a node that one kernel stores for it alone.
//
//   before:  %w = read @w                      after:  %w = read @w
//            write @ema, %w                            %c = copy %w
//            write @a, %x                              write @ema, %c
//            write @b, %x                              write @a, %x
//            result output x = %x                      %d = copy %x
//                                                      write @b, %d
//                                                      %e = copy %x
//                                                      result output x = %e
//
// A buffer is copied for an output when it has none of its own (a leaf or a view) or when an
// earlier output has it. Writes choose first, in order, then results.
//
// Needs: no later algebra or cse. After it, node -> output is one to one.
#include "ir/builder.h"
#include "passes/pass.h"

// owned[id]: some output already lives in this node's buffer.
static bool needs_copy(const ir_node *n, const bool *owned) {
  ir_op_class cls = ir_ops[n->op].cls;
  return cls == IR_CLASS_LEAF || cls == IR_CLASS_VIEW || owned[n->id];
}

static bool own_writes(ir_func *f, bool *owned) {
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    if (n->op == IR_WRITE) {
      rw.b.scope = n->state->name;
      if (needs_copy(n->in[0], owned))
        n->in[0] = ir_unary(&rw.b, IR_COPY, n->in[0]);
      else
        owned[n->in[0]->id] = true;
    }
    ir_rewrite_done(&rw, i, n);
  }
  return ir_rewrite_end(&rw);
}

static bool own_results(ir_func *f, bool *owned) {
  ir_builder b = ir_build_at_end(f);
  size_t before = f->nodes.num;
  for (size_t i = 0; i < f->results.num; i++) {
    ir_result *r = &f->results.at[i];
    b.loc = r->node->loc;
    b.scope = r->name;
    if (needs_copy(r->node, owned))
      r->node = ir_unary(&b, IR_COPY, r->node);
    else
      owned[r->node->id] = true;
  }
  return f->nodes.num != before;
}

bool pass_own_outputs(ir_module *m, ir_diags *d) {
  (void)d;
  bool changed = false;
  for (size_t i = 0; i < m->funcs.num; i++) {
    ir_func *f = m->funcs.at[i];
    bool *owned = IR_NEW_ARRAY(m->arena, bool, f->next_id); // copies made here are not asked about
    changed |= own_writes(f, owned);
    changed |= own_results(f, owned);
  }
  return changed;
}
