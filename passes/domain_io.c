// domain_io.c: which buffers a kernel reads and writes. Views are passed over: what counts is the
// node below them.
//
//   kernel r { h = matmul x, w; r = max h, zero }     in x, w    out r    (h is needed inside only)
//   kernel s { s = sum (transpose r) }                in r       out s
#include "passes/domain.h"

// A kernel that runs again is the function that ran before: it stores what that one stores.
static void share_outputs(const ir_func *f, bool *out) {
  for (int back = 0; back < 2; back++)
    for (size_t i = 0; i < f->kernels.num; i++) {
      const ir_kernel *k = f->kernels.at[i];
      for (size_t j = 0; k->clone_of && j < k->nodes.num; j++) {
        uint32_t a = k->nodes.at[j]->id, b = k->clone_of->nodes.at[j]->id;
        out[back ? a : b] |= out[back ? b : a];
      }
    }
}

void dom_find_outputs(ir_func *f) {
  bool *out = IR_NEW_ARRAY(f->module->arena, bool, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    out[n->id] |= n->stored;
    if (ir_is_seen_through(n))
      continue; // its users are asked instead
    for (int j = 0; j < n->num_in; j++) {
      ir_node *base = dom_base(n->in[j]);
      out[base->id] |= base->kernel && base->kernel != n->kernel;
    }
  }
  for (size_t i = 0; i < f->results.num; i++)
    out[dom_base(f->results.at[i].node)->id] = true;
  share_outputs(f, out);
  for (size_t i = 0; i < f->kernels.num; i++) {
    ir_kernel *k = f->kernels.at[i];
    k->outputs.num = 0;
    for (size_t j = 0; j < k->nodes.num; j++)
      if (out[k->nodes.at[j]->id])
        IR_PUSH(f->module->arena, k->outputs, k->nodes.at[j]);
  }
}

dom_io dom_kernel_io(ir_arena *a, const ir_kernel *k) {
  dom_io io = {0};
  for (size_t i = 0; i < k->nodes.num; i++) {
    ir_node *n = k->nodes.at[i];
    for (int j = 0; j < n->num_in; j++) {
      ir_node *base = dom_base(n->in[j]);
      bool leaf = ir_is_generated(base);
      if (leaf || base->kernel == k || base->mark)
        continue;
      base->mark = 1;
      IR_PUSH(a, io.in, base);
    }
  }
  for (size_t i = 0; i < io.in.num; i++)
    io.in.at[i]->mark = 0;
  for (size_t i = 0; i < k->outputs.num; i++)
    IR_PUSH(a, io.out, k->outputs.at[i]);
  return io;
}
