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

typedef struct operand {
  int member;               // that it is; -1: it comes from memory, or is a constant
  const ir_node *in_memory; // the buffer that it is loaded from; NULL: it is not
} operand;

typedef struct member {
  bool reads;  // the operand is loaded in its own sweep, for it or for what it is made of
  bool before; // the output is computed from it
  int least, most;
} member;

struct plan_sweeps {
  const ir_kernel *k;
  operand *operands; // of all members, one after the other
  size_t *first;     // [member] into operands
  bool *has_sweep;   // [member] it is stored, or reduces
  member *all;
};

static bool reduces(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_REDUCE;
}

static void add_members(plan_sweeps *s) {
  size_t num = 0;
  for (size_t i = 0; i < s->k->nodes.num; i++) {
    ir_node *n = s->k->nodes.at[i];
    s->first[i] = num;
    s->has_sweep[i] = reduces(n);
    n->mark = (uint32_t)i + 1;
    num += (size_t)n->num_in;
  }
  s->first[s->k->nodes.num] = num;
}

static void add_operands(plan_sweeps *s, const domain *d) {
  for (size_t i = 0; i < s->k->nodes.num; i++)
    for (int j = 0; j < s->k->nodes.at[i]->num_in; j++)
      s->operands[s->first[i] + (size_t)j].member =
          (int)dom_base(s->k->nodes.at[i]->in[j])->mark - 1;
  for (size_t i = 0; i < d->loads.num; i++) {
    const dom_load *l = &d->loads.at[i];
    if (l->operand >= 0)
      s->operands[s->first[l->user->mark - 1] + (size_t)l->operand] = (operand){-1, l->buffer};
  }
}

// Members are marked by their places while this runs: a large kernel has too many pairs of members and loads to look
// for each other.
plan_sweeps *plan_sweeps_new(ir_arena *a, const ir_kernel *k, const domain *d) {
  plan_sweeps *s = IR_NEW(a, plan_sweeps);
  size_t num = k->nodes.num;
  *s = (plan_sweeps){.k = k, .first = IR_NEW_ARRAY(a, size_t, num + 1)};
  s->has_sweep = IR_NEW_ARRAY(a, bool, num + 1);
  s->all = IR_NEW_ARRAY(a, member, num + 1);
  add_members(s);
  s->operands = IR_NEW_ARRAY(a, operand, s->first[num] + 1);
  add_operands(s, d);
  for (size_t i = 0; i < d->stores.num; i++)
    s->has_sweep[d->stores.at[i].node->mark - 1] = true;
  for (size_t i = 0; i < num; i++)
    k->nodes.at[i]->mark = 0;
  return s;
}

static void describe(plan_sweeps *s, const ir_node *in, size_t i) {
  const ir_node *n = s->k->nodes.at[i];
  member *m = &s->all[i];
  *m = (member){0};
  for (int j = 0; j < n->num_in; j++) {
    const operand *o = &s->operands[s->first[i] + (size_t)j];
    m->reads |= o->in_memory && plan_same_memory(o->in_memory, in);
    if (o->member < 0)
      continue;
    const member *from = &s->all[o->member];
    int own = reduces(s->k->nodes.at[o->member]);
    m->reads |= from->reads && !own;
    m->most = from->most + own > m->most ? from->most + own : m->most;
    m->least = from->least + own > m->least ? from->least + own : m->least;
  }
  if (n->op == IR_SUM && m->least > 0)
    m->least--;
}

static void mark_before(plan_sweeps *s, size_t output) {
  s->all[output].before = true;
  for (size_t i = output + 1; i-- > 0;)
    for (int j = 0; s->all[i].before && j < s->k->nodes.at[i]->num_in; j++) {
      int at = s->operands[s->first[i] + (size_t)j].member;
      if (at >= 0)
        s->all[at].before = true;
    }
}

bool plan_is_read_last(plan_sweeps *s, const ir_node *in, const ir_node *output) {
  size_t at = (size_t)dom_member_index(s->k, output);
  for (size_t i = 0; i < s->k->nodes.num; i++)
    describe(s, in, i);
  mark_before(s, at);
  for (size_t i = 0; i < s->k->nodes.num; i++) {
    const member *m = &s->all[i];
    if (s->has_sweep[i] && m->reads && !m->before && m->most > s->all[at].least)
      return false;
  }
  return true;
}
