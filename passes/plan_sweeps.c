// plan_sweeps.c: may a kernel with reductions compute an output over an operand?
//
//   kernel softmax loop {              sweep 0   m = max x          over each row of x
//     %m = reduce_max %x               sweep 1   s = sum e          reads x[i] for e
//     %e = exp (sub %x, %m)            sweep 2   p[i] = e / s       reads x[i], stores p[i]
//     %s = sum %e                      p may lie over x: nothing reads x after sweep 2, and in it
//     %p = div %e, %s                  the iteration that stores p[i] alone reads x[i]
//   }
//
// What emitters keep to (codegen/cpu_loop.h): rows are worked on one by one, each in sweeps over
// the same iterations; a value is stored in the sweep of its depth, the number of reductions on the
// longest way to it; a value may be computed anew in any sweep that needs it. A sum may share the
// sweep of a maximum below it (codegen/online_rows.h), so that depths are bounds here: `least` with
// all sums that may be taken early, `most` with none.
#include "passes/plan_parts.h"

typedef struct member {
  bool reads;  // the operand is loaded in its own sweep, for it or for what it is made of
  bool before; // the output is computed from it
  int least, most;
} member;

static bool reduces(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_REDUCE;
}

// The member that operand j of member i is; -1: it comes from memory, or is a constant.
static int operand_of(const ir_kernel *k, const domain *d, size_t i, int j) {
  const ir_node *n = k->nodes.at[i];
  return dom_find_load(d, n, j) ? -1 : dom_member_index(k, dom_base(n->in[j]));
}

static void describe(const ir_kernel *k, const domain *d, const ir_node *in, size_t i,
                     member *all) {
  const ir_node *n = k->nodes.at[i];
  member *m = &all[i];
  for (int j = 0; j < n->num_in; j++) {
    const dom_load *l = dom_find_load(d, n, j);
    m->reads |= l && plan_same_memory(l->buffer, in);
    int at = operand_of(k, d, i, j);
    if (at < 0)
      continue;
    int own = reduces(k->nodes.at[at]);
    m->reads |= all[at].reads && !own;
    m->most = all[at].most + own > m->most ? all[at].most + own : m->most;
    m->least = all[at].least + own > m->least ? all[at].least + own : m->least;
  }
  if (n->op == IR_SUM && m->least > 0)
    m->least--;
}

static void mark_before(const ir_kernel *k, const domain *d, size_t output, member *all) {
  all[output].before = true;
  for (size_t i = output + 1; i-- > 0;)
    for (int j = 0; all[i].before && j < k->nodes.at[i]->num_in; j++) {
      int at = operand_of(k, d, i, j);
      if (at >= 0)
        all[at].before = true;
    }
}

static bool is_stored(const domain *d, const ir_node *n) {
  for (size_t i = 0; i < d->stores.num; i++)
    if (d->stores.at[i].node == n)
      return true;
  return false;
}

bool plan_is_read_last(ir_arena *a, const ir_kernel *k, const domain *d, const ir_node *in,
                       const ir_node *output) {
  member *all = IR_NEW_ARRAY(a, member, k->nodes.num + 1);
  size_t at = (size_t)dom_member_index(k, output);
  for (size_t i = 0; i < k->nodes.num; i++)
    describe(k, d, in, i, all);
  mark_before(k, d, at, all);
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    bool has_sweep = reduces(n) || is_stored(d, n);
    if (has_sweep && all[i].reads && !all[i].before && all[i].most > all[at].least)
      return false;
  }
  return true;
}
