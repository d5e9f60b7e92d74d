// versions.c: see versions.h.
#include "passes/versions.h"

#include <string.h>

#include "passes/fuse.h"

versions versions_new(ir_func *f, ir_arena *scratch) {
  versions x = {.f = f, .arena = scratch, .num_ids = f->next_id, .b = ir_build_at_end(f)};
  x.current = IR_NEW_ARRAY(scratch, ir_node *, x.num_ids + 1);
  x.rebuilt = IR_NEW_ARRAY(scratch, ir_node *, x.num_ids + 1);
  x.was = IR_NEW_ARRAY(scratch, ir_node **, x.num_ids + 1);
  x.names = ir_map_new(scratch);
  for (size_t i = 0; i < f->kernels.num; i++)
    ir_map_put(x.names, f->kernels.at[i]->name, f);
  return x;
}

ir_node *versions_copy(versions *x, const ir_node *n, ir_node *const *in) {
  ir_node *c = ir_build_like(&x->b, n, in);
  c->folded = n->folded;
  c->nonzero = n->nonzero;
  c->needed = n->needed;
  return c;
}

// What stands for `n` now: a member's latest version, or a view of one.
static ir_node *versions_of(versions *x, ir_node *n) {
  if (n->id >= x->num_ids)
    return n;
  if (x->current[n->id])
    return x->current[n->id];
  if (n->kernel || n->num_in == 0)
    return n;
  ir_node **in = IR_NEW_ARRAY(x->arena, ir_node *, n->num_in);
  bool same = true;
  for (int i = 0; i < n->num_in; i++) {
    in[i] = versions_of(x, n->in[i]);
    same &= in[i] == n->in[i];
  }
  if (same)
    return n;
  ir_node *known = x->rebuilt[n->id];
  if (!known || memcmp(known->in, in, sizeof(ir_node *) * (size_t)n->num_in) != 0)
    x->rebuilt[n->id] = known = versions_copy(x, n, in);
  return known;
}

ir_node *versions_of_operand(versions *x, const ir_node *n, int j) {
  return versions_of(x, x->was[n->id] ? x->was[n->id][j] : n->in[j]);
}

void versions_redirect(versions *x, const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++) {
    ir_node *n = k->nodes.at[i], **was = IR_NEW_ARRAY(x->arena, ir_node *, n->num_in + 1);
    for (int j = 0; j < n->num_in; j++) {
      was[j] = n->in[j];
      n->in[j] = versions_of(x, n->in[j]);
    }
    x->was[n->id] = was;
  }
}

const char *versions_kernel_name(versions *x, const char *base) {
  return ir_map_new_name(x->names, x->f->module->arena, base, '.');
}

void versions_finish(versions *x, const versions_kernels *kernels) {
  ir_func *f = x->f;
  f->kernels.num = 0;
  for (size_t i = 0; i < kernels->num; i++) {
    kernels->at[i]->id = (uint32_t)i;
    IR_PUSH(f->module->arena, f->kernels, kernels->at[i]);
  }
  fuse_relist(f);
  dom_find_outputs(f);
}
