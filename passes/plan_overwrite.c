// plan_overwrite.c: may a kernel compute an output in the memory of one of its inputs?
//
//   kernel k loop {
//     %m.new = add %m, %g        m.new[i] reads m[i] only: yes
//   }
//   kernel k loop {
//     %t = transpose %m          y[i,j] reads m[j,i], which another
//     %y = add %t, %g            iteration may have overwritten: no
//   }
//
// The proof is by access functions: every load of the input and the one store of the output
// walk the same elements in every iteration, and no two iterations touch the same element. A kernel
// with reductions walks them several times: plan_sweeps.c.
#include "ir/row_update.h"
#include "passes/plan_parts.h"

bool plan_same_memory(const ir_node *a, const ir_node *b) {
  return a == b || (a->op == IR_READ && b->op == IR_READ && a->state == b->state);
}

static bool same_access(const domain *d, const dom_access *a, const dom_access *b) {
  for (int i = 0; i < d->num_axes; i++)
    if (d->axis[i].size > 1 && a->stride[i] != b->stride[i])
      return false;
  return a->offset == b->offset;
}

// One iteration per element. A store that skips an axis is made (or recomputed from loads) once
// per index of that axis, so that later iterations would read what earlier ones stored.
static bool one_iteration_per_element(const domain *d, const dom_store *s) {
  int64_t iterations = 1;
  for (int i = 0; i < d->num_axes; i++) {
    if (d->axis[i].size > 1 && s->access.stride[i] == 0)
      return false;
    iterations *= d->axis[i].size;
  }
  return iterations == ir_elements(&s->buffer->type);
}

static const dom_store *find_store(const domain *d, const ir_node *out) {
  for (size_t i = 0; i < d->stores.num; i++)
    if (d->stores.at[i].buffer == out)
      return &d->stores.at[i];
  return NULL;
}

// Gather reads its table at addresses that only the data knows.
static bool loads_match(const domain *d, const ir_node *in, const dom_store *s) {
  for (size_t i = 0; i < d->loads.num; i++) {
    const dom_load *l = &d->loads.at[i];
    if (l->buffer->stretch_of && plan_same_memory(l->buffer->stretch_of, in))
      return false; // other elements than those at its own indices
    if (!plan_same_memory(l->buffer, in))
      continue;
    if ((l->user->op == IR_GATHER && l->operand == 0) || !same_access(d, &l->access, &s->access))
      return false;
  }
  return true;
}

// The operands of a matmul are read by every tile, those of a scatter_add by every row.
static bool is_operand_of_anchor(const ir_kernel *k, const ir_node *in) {
  if (k->family != IR_FAMILY_SCATTER && k->family != IR_FAMILY_MATMUL)
    return false;
  return plan_same_memory(dom_owner(dom_base(k->anchor->in[0])), in) ||
         plan_same_memory(dom_owner(dom_base(k->anchor->in[1])), in);
}

static bool same_element_size(const ir_node *in, const ir_node *out) {
  return ir_dtypes[in->type.dtype].bytes == ir_dtypes[out->type.dtype].bytes;
}

// A row update leaves the other rows as they are: they must be those of its table.
static bool keeps_other_rows(ir_arena *a, const ir_kernel *k, const ir_node *in,
                             const ir_node *out) {
  return !ir_is_row_update(k) || ir_is_same_table(ir_row_table(a, k, out), in);
}

struct plan_overwrites {
  ir_arena *arena;
  const ir_kernel *k;
  const domain *d;     // NULL: it has none
  plan_sweeps *sweeps; // NULL: it has no reductions
};

plan_overwrites *plan_overwrites_new(ir_arena *a, const ir_kernel *k) {
  plan_overwrites *o = IR_NEW(a, plan_overwrites);
  *o = (plan_overwrites){.arena = a, .k = k, .d = dom_has_domain(k) ? dom_build(a, k) : NULL};
  if (o->d && dom_has_reduced(o->d))
    o->sweeps = plan_sweeps_new(a, k, o->d);
  return o;
}

static bool is_insert(const ir_kernel *k) {
  return k->family == IR_FAMILY_COPY && k->anchor->op == IR_INSERT;
}

bool plan_overwrites_any(const ir_kernel *k) {
  return dom_has_domain(k) || is_insert(k);
}

// The part goes to its place in what is there already.
static bool inserts_into(const ir_kernel *k, const ir_node *in) {
  const ir_node *n = k->anchor;
  return is_insert(k) && dom_contiguous(n->in[0]) &&
         ir_elements(&n->type) == ir_elements(&in->type) &&
         plan_same_memory(dom_base(n->in[0]), in) &&
         !plan_same_memory(dom_owner(dom_base(n->in[1])), in);
}

bool plan_overwrites_ask(plan_overwrites *o, const ir_node *in, const ir_node *out) {
  if (inserts_into(o->k, in))
    return true;
  const dom_store *s = o->d ? find_store(o->d, out) : NULL;
  return s && same_element_size(in, out) && one_iteration_per_element(o->d, s) &&
         loads_match(o->d, in, s) && !is_operand_of_anchor(o->k, in) &&
         keeps_other_rows(o->arena, o->k, in, out) &&
         (!o->sweeps || plan_is_read_last(o->sweeps, in, s->node));
}

bool plan_may_overwrite(ir_arena *a, const ir_kernel *k, const ir_node *in, const ir_node *out) {
  ir_arena_mark here = ir_arena_here(a);
  bool may = plan_overwrites_ask(plan_overwrites_new(a, k), in, out);
  ir_arena_back(a, here);
  return may;
}
