// attention_kernels.c: the kernels of a site (attention.c): which, from what, in which order.
//
// A kernel takes in all that its products out need of the site: down to products in, and to row
// values that an earlier kernel owns, which it loads. Values that come from nothing but indices,
// constants and random streams (causal masks, dropout) are taken in as well: they may have the size
// of scores. The first kernel takes the nodes themselves, others clones.
#include "passes/attention.h"

enum { MAX_MEMBERS = 64, MAX_COLUMNS_WIDTH = 256, MAX_FREE = 8 };

static bool is_member(const att_kernel *k, const ir_node *n) {
  return ir_has_node(&k->scores, n) || ir_has_node(&k->outs, n);
}

// --- members -------------------------------------------------------------------------------------
// Pointwise, of indices and constants or at random places of a stream.
static bool is_free(const ir_node *n, int depth) {
  if (ir_is_random(n))
    return true;
  if (ir_ops[n->op].cls != IR_CLASS_POINTWISE || depth == MAX_FREE)
    return false;
  for (int i = 0; i < n->num_in; i++) {
    const ir_node *base = dom_base(n->in[i]);
    if (!ir_is_generated(base) && !is_free(base, depth + 1))
      return false;
  }
  return true;
}

// Whether n becomes a member; *fails when there can be no such kernel.
static bool takes_in(att_pass *p, att_kernel *k, const ir_node *n, bool *fails) {
  switch (p->kind[n->id]) {
  case ATT_IN:
  case ATT_SCORE:
    return true;
  case ATT_ROW:
    if (p->owner[n->id] && p->owner[n->id] != k)
      return false;
    *fails |= k->columns && ir_ops[n->op].cls == IR_CLASS_REDUCE;
    if (!k->columns)
      p->owner[n->id] = k;
    return true;
  default:
    return !ir_is_generated(n) && is_free(n, 0);
  }
}

static bool collect(att_pass *p, att_kernel *k, ir_node *n, int depth) {
  bool fails = false;
  if (ir_has_node(&k->scores, n) || !takes_in(p, k, n, &fails))
    return true;
  if (fails || depth == MAX_MEMBERS || k->scores.num == MAX_MEMBERS)
    return false;
  for (int i = 0; p->kind[n->id] != ATT_IN && !ir_is_random(n) && i < n->num_in; i++)
    if (!collect(p, k, dom_base(n->in[i]), depth + 1))
      return false;
  IR_PUSH(p->arena, k->scores, n);
  return true;
}

static bool fits_alone(const att_pass *p, ir_node *matmul) {
  return dom_try(p->arena, &matmul, 1, matmul) != NULL;
}

static bool fits(const att_pass *p, const att_kernel *k, const att_site *s) {
  int ins = 0;
  bool fine = dom_try_attention(p->arena, k->scores.at, k->scores.num, s->type);
  for (size_t i = 0; fine && i < k->scores.num; i++)
    if (p->kind[k->scores.at[i]->id] == ATT_IN)
      fine = ++ins <= DOM_MAX_PRODUCTS && fits_alone(p, k->scores.at[i]);
  for (size_t i = 0; fine && i < k->outs.num; i++)
    fine = i < DOM_MAX_PRODUCTS && fits_alone(p, k->outs.at[i]);
  return fine && ins > 0;
}

// --- order: no kernel may need, by a way around, what itself computes ----------------------------
static size_t first_result(const att_pass *p, const att_kernel *k, size_t end) {
  size_t from = end;
  for (size_t i = 0; i < k->scores.num + k->outs.num; i++) {
    const ir_node *n = i < k->scores.num ? k->scores.at[i] : k->outs.at[i - k->scores.num];
    bool result = i >= k->scores.num || p->owner[n->id] == k;
    if (result && p->position[n->id] < from)
      from = p->position[n->id];
  }
  return from;
}

// Marks what depends on the results of k, through nodes that are no members of it.
static void taint(att_pass *p, const att_kernel *k, size_t from, size_t end) {
  for (size_t i = from; i < end; i++) {
    const ir_node *n = p->f->nodes.at[i];
    for (int j = 0; j < n->num_in && !is_member(k, n); j++) {
      const ir_node *x = n->in[j];
      p->tainted[n->id] |= p->tainted[x->id] || ir_has_node(&k->outs, x) || p->owner[x->id] == k;
    }
  }
}

static bool needs_tainted(const att_pass *p, const att_kernel *k) {
  for (size_t i = 0; i < k->scores.num + k->outs.num; i++) {
    const ir_node *n = i < k->scores.num ? k->scores.at[i] : k->outs.at[i - k->scores.num];
    for (int j = 0; j < n->num_in; j++) {
      const ir_node *x = n->in[j], *base = dom_base(x);
      if (is_member(k, base))
        continue;
      const att_kernel *other = p->owner[base->id];
      if (p->tainted[x->id] || (other && other != k && needs_tainted(p, other)))
        return true;
    }
  }
  return false;
}

static bool needs_itself(att_pass *p, const att_kernel *k, size_t end) {
  size_t from = first_result(p, k, end);
  taint(p, k, from, end);
  bool needs = needs_tainted(p, k);
  for (size_t i = from; i < end; i++)
    p->tainted[p->f->nodes.at[i]->id] = false;
  return needs;
}

// --- planning ------------------------------------------------------------------------------------
static void forget(att_pass *p, const att_kernel *k) {
  for (uint32_t i = 0; i < p->num_ids; i++)
    if (p->owner[i] == k)
      p->owner[i] = NULL;
}

static bool plan_kernel(att_pass *p, const att_site *s, const ir_node_list *outs) {
  att_kernel *k = IR_NEW(p->arena, att_kernel);
  k->outs = *outs;
  k->columns = ir_attr_bool(outs->at[0], IR_ATTR_TRANS_A);
  bool fine = true;
  for (size_t i = 0; fine && i < outs->num; i++)
    fine = collect(p, k, outs->at[i]->in[0], 0);
  // Kernels over n load rows of kernels before them, the others of any of the site.
  const ir_node_list *last = k->columns ? &s->outs : outs;
  size_t end = p->position[last->at[last->num - 1]->id] + 1;
  fine = fine && fits(p, k, s) && !needs_itself(p, k, end);
  if (fine)
    IR_PUSH(p->arena, p->kernels, k);
  else
    forget(p, k);
  return fine;
}

static bool plan_each(att_pass *p, const att_site *s, const ir_node_list *outs) {
  bool fine = true;
  for (size_t i = 0; fine && i < outs->num; i++) {
    ir_node_list one = {.at = &outs->at[i], .num = 1, .cap = 1};
    fine = plan_kernel(p, s, &one);
  }
  return fine;
}

static bool plan_columns(att_pass *p, const att_site *s, const ir_node_list *outs) {
  int64_t width = 0;
  for (size_t i = 0; i < outs->num; i++)
    width += outs->at[i]->type.dims[outs->at[i]->type.rank - 1];
  return outs->num == 0 || (width <= MAX_COLUMNS_WIDTH && plan_kernel(p, s, outs)) ||
         plan_each(p, s, outs);
}

// A reduction that no product out needs would be left to an ordinary kernel, with scores as its operands.
static bool own_all_rows(const att_pass *p, const att_site *s) {
  for (size_t i = 0; i < s->rows.num; i++)
    if (!p->owner[s->rows.at[i]->id])
      return false;
  return true;
}

// Those over n first: they have the row values that the others load.
void att_plan_kernels(att_pass *p, att_site *s) {
  ir_node_list over_n = {0}, over_m = {0};
  for (size_t i = 0; i < s->outs.num; i++) {
    bool columns = ir_attr_bool(s->outs.at[i], IR_ATTR_TRANS_A);
    IR_PUSH(p->arena, *(columns ? &over_m : &over_n), s->outs.at[i]);
  }
  size_t before = p->kernels.num;
  if (plan_each(p, s, &over_n) && plan_columns(p, s, &over_m) && own_all_rows(p, s))
    return;
  for (size_t i = before; i < p->kernels.num; i++)
    forget(p, p->kernels.at[i]);
  p->kernels.num = before;
}

// --- making --------------------------------------------------------------------------------------
typedef struct maker {
  att_pass *p;
  ir_builder b;
  ir_node ***taken;      // by id: operands as they were, once some kernel has the node itself
  ir_node **clone;       // by id: what stands for the node in the kernel at hand
  ir_node_list replaced; // that have a clone now
} maker;

static ir_node *replace(maker *x, ir_node *n, ir_node *const *in) {
  IR_PUSH(x->p->arena, x->replaced, n);
  return x->clone[n->id] = ir_build_like(&x->b, n, in);
}

static ir_node *now(maker *x, ir_node *n) {
  if (n->id >= x->p->num_ids)
    return n;
  if (x->clone[n->id] || ir_ops[n->op].cls != IR_CLASS_VIEW)
    return x->clone[n->id] ? x->clone[n->id] : n;
  ir_node *below = now(x, n->in[0]);
  return below == n->in[0] ? n : replace(x, n, &below);
}

static ir_node *take(maker *x, const att_kernel *k, ir_node *n) {
  att_kind kind = x->p->kind[n->id];
  bool own = kind == ATT_ROW ? x->p->owner[n->id] == k : kind != ATT_NONE && !x->taken[n->id];
  ir_node **before = x->taken[n->id] ? x->taken[n->id] : n->in;
  ir_node **in = IR_NEW_ARRAY(x->p->f->module->arena, ir_node *, n->num_in);
  for (int i = 0; i < n->num_in; i++)
    in[i] = now(x, before[i]);
  if (!own)
    return replace(x, n, in);
  x->taken[n->id] = before;
  n->in = in;
  return n;
}

static void make(maker *x, att_kernel *k) {
  ir_arena *arena = x->p->f->module->arena;
  k->made = IR_NEW(arena, ir_kernel);
  k->made->family = IR_FAMILY_ATTENTION;
  for (size_t i = 0; i < k->scores.num; i++) {
    ir_node *n = take(x, k, k->scores.at[i]);
    IR_PUSH(arena, k->made->nodes, n);
  }
  for (size_t i = 0; i < k->outs.num; i++) {
    ir_node *n = k->outs.at[i];
    n->in[0] = now(x, n->in[0]);
    IR_PUSH(arena, k->made->nodes, n);
    k->made->anchor = n;
    k->made->name = n->name;
  }
  for (size_t i = 0; i < k->made->nodes.num; i++)
    k->made->nodes.at[i]->kernel = k->made;
  for (; x->replaced.num; x->replaced.num--)
    x->clone[x->replaced.at[x->replaced.num - 1]->id] = NULL;
}

// --- listing -------------------------------------------------------------------------------------
// Nodes in
// their old order, except that a kernel stands together, after all that it needs. mark: 1 what it
// needs is on the stack, 2 listed.
typedef struct lister {
  ir_func *f;
  ir_arena *arena;
  ir_node_list stack, nodes;
} lister;

static void list_view(lister *l, ir_node *n) {
  if (n->mark == 2 || ir_ops[n->op].cls != IR_CLASS_VIEW)
    return;
  list_view(l, n->in[0]);
  n->mark = 2;
  IR_PUSH(l->f->module->arena, l->nodes, n);
}

static void list_kernel(lister *l, ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++) {
    ir_node *n = k->nodes.at[i];
    for (int j = 0; j < n->num_in; j++)
      list_view(l, n->in[j]);
    n->mark = 2;
    IR_PUSH(l->f->module->arena, l->nodes, n);
  }
  k->id = (uint32_t)l->f->kernels.num;
  IR_PUSH(l->f->module->arena, l->f->kernels, k);
}

static void push_operands(lister *l, const ir_node *n, const ir_kernel *k) {
  for (int i = n->num_in; i-- > 0;)
    if (n->in[i]->mark != 2 && (!k || dom_base(n->in[i])->kernel != k))
      IR_PUSH(l->arena, l->stack, n->in[i]);
}

static void push_needs(lister *l, ir_node *n) {
  const ir_kernel *k = n->kernel;
  for (size_t i = k ? k->nodes.num : 0; i-- > 0;)
    push_operands(l, k->nodes.at[i], k);
  if (!k)
    push_operands(l, n, NULL);
}

static void list(lister *l, ir_node *root) {
  IR_PUSH(l->arena, l->stack, root);
  while (l->stack.num) {
    ir_node *n = l->stack.at[l->stack.num - 1];
    ir_node *first = n->kernel ? n->kernel->nodes.at[0] : n; // stands for its kernel
    if (first->mark == 0) {
      first->mark = 1;
      push_needs(l, n);
      continue;
    }
    l->stack.num--;
    if (first->mark == 2)
      continue;
    if (n->kernel) {
      list_kernel(l, n->kernel);
    } else {
      n->mark = 2;
      IR_PUSH(l->f->module->arena, l->nodes, n);
    }
  }
}

static void list_all(att_pass *p) {
  lister l = {.f = p->f, .arena = p->arena};
  for (size_t i = 0; i < p->f->nodes.num; i++)
    p->f->nodes.at[i]->mark = 0;
  for (size_t i = 0; i < p->f->nodes.num; i++) // inputs keep their order: it is the calling order
    if (p->f->nodes.at[i]->op == IR_INPUT)
      list(&l, p->f->nodes.at[i]);
  for (size_t i = 0; i < p->f->nodes.num; i++)
    if (p->f->nodes.at[i]->mark != 2)
      list(&l, p->f->nodes.at[i]);
  for (size_t i = 0; i < l.nodes.num; i++)
    l.nodes.at[i]->mark = 0;
  p->f->nodes.at = l.nodes.at;
  p->f->nodes.num = l.nodes.num;
  p->f->nodes.cap = l.nodes.cap;
}

void att_make_kernels(att_pass *p) {
  maker x = {.p = p,
             .b = ir_build_at_end(p->f),
             .taken = IR_NEW_ARRAY(p->arena, ir_node **, p->num_ids),
             .clone = IR_NEW_ARRAY(p->arena, ir_node *, p->num_ids)};
  for (size_t i = 0; i < p->kernels.num; i++)
    make(&x, p->kernels.at[i]);
  list_all(p);
  ir_drop_dead(p->f);
  dom_find_outputs(p->f);
}
