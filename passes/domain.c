// domain.c: one set of loop axes for a group of nodes (domain.h).
//
// domain_spread.c gives every member a map over common axes; here the loads from outside and the
// stores are written as strides over those axes. A conflict (x + transpose(x) with x in the group)
// means: no domain.
//
//   y = x + bc(bias)    [64,10], bias [10]    axes a 64, b 10
//   load x              a 10, b 1
//   load bias           a 0,  b 1
//   store y             a 10, b 1
#include "ir/row_update.h"
#include "passes/domain_parts.h"

// --- loads ------------------------------------------------------------------------------------
typedef struct pending {
  ir_node *user;
  int operand;
  dom_layout layout;
  dom_strides s;
} pending;
typedef IR_VEC(pending) pendings;

static bool load_of(dom_work *w, dom_member *m, int i, const dom_map *use, pendings *out) {
  ir_node *seen = m->n->in[i];
  if (dom_member_of(w, dom_base(seen)))
    return true;
  pending p = {.user = m->n, .operand = i};
  if (!dom_layout_of(seen, &p.layout) || !dom_strides_of(w, &seen->type, use, &p.layout, &p.s))
    return false;
  IR_PUSH(w->arena, *out, p);
  return true;
}

// The table is walked by its trailing dimensions only; the row comes from the index.
static bool gather_table_load(dom_work *w, dom_member *m, pendings *out) {
  ir_node *table = m->n->in[0];
  int lead = m->n->in[1]->type.rank;
  pending p = {.user = m->n, .operand = 0};
  int64_t strides[IR_MAX_RANK];
  if (dom_member_of(w, dom_base(table)) ||
      !dom_view(table, &p.layout.buffer, &p.layout.offset, strides))
    return false;
  for (int d = m->n->type.rank - 1; d >= lead; d--) {
    const dom_axes *l = &m->out.dim[d];
    int64_t stride = strides[d - lead + 1];
    for (int i = l->num - 1; i >= 0; i--) {
      p.s.axis[p.s.num] = l->at[i];
      p.s.stride[p.s.num++] = stride;
      stride *= w->size[l->at[i]];
    }
  }
  IR_PUSH(w->arena, *out, p);
  return true;
}

static bool member_loads(dom_work *w, dom_member *m, pendings *out) {
  ir_node *n = m->n;
  if (dom_is_made_apart(n) || dom_is_joint(n))
    return true;
  if (n->op == IR_GATHER) {
    dom_map index = dom_gather_index_map(n, &m->out);
    return gather_table_load(w, m, out) && load_of(w, m, 1, &index, out);
  }
  static const dom_map scalar = {.known = true};
  for (int i = 0; i < n->num_in; i++) {
    const dom_map *use = ir_is_random(n) ? &scalar : dom_is_reduce(n) ? &m->in : &m->out;
    if (!load_of(w, m, i, use, out))
      return false;
  }
  return true;
}

// Loads may split axes, which makes earlier strides stale: repeat until a whole round is quiet.
static bool all_loads(dom_work *w, pendings *out) {
  for (;;) {
    int before = w->num_axes;
    out->num = 0;
    for (size_t i = 0; i < w->num; i++)
      if (!member_loads(w, &w->m[i], out))
        return false;
    if (w->num_axes == before)
      return !w->too_many;
  }
}

// --- result -----------------------------------------------------------------------------------
static void number_axes(const dom_work *w, domain *d, int *position) {
  d->num_axes = w->order.num;
  for (int i = 0; i < w->order.num; i++) {
    position[w->order.at[i]] = i;
    d->axis[i] = (dom_axis){w->size[w->order.at[i]], w->reduced[w->order.at[i]]};
  }
}

// Elements with this map, which lie as a part of `whole` does, from its first element on.
static dom_access access_of_map(const dom_work *w, const ir_type *whole, const dom_map *m,
                                const int *position) {
  dom_access acc = {0};
  int64_t row = 1;
  for (int d = whole->rank - 1; d >= 0; d--) {
    int64_t stride = row;
    for (int i = m->dim[d].num - 1; i >= 0; i--) {
      acc.stride[position[m->dim[d].at[i]]] = stride;
      stride *= w->size[m->dim[d].at[i]];
    }
    row *= whole->dims[d];
  }
  return acc;
}

static void put_store(dom_work *w, domain *d, ir_node *part, ir_node *whole, int64_t offset,
                      const int *position) {
  dom_store s = {.node = part, .buffer = whole};
  s.access = access_of_map(w, &whole->type, &dom_member_of(w, part)->out, position);
  s.access.offset = offset;
  IR_PUSH(w->arena, d->stores, s);
}

static void put_stores(dom_work *w, domain *d, ir_node *n, const int *position) {
  if (!dom_is_joint(n)) {
    put_store(w, d, n, n, 0, position);
    return;
  }
  int axis = (int)ir_attr_int(n, IR_ATTR_AXIS);
  int64_t row = 1, at = 0;
  for (int i = axis + 1; i < n->type.rank; i++)
    row *= n->type.dims[i];
  for (int i = 0; i < n->num_in; i++) {
    put_store(w, d, n->in[i], n, at * row, position);
    at += n->in[i]->type.dims[axis];
  }
}

// What a joint varies along: what any part does.
static bool varies_along(const dom_work *w, const ir_node *n, int axis) {
  if (!dom_is_joint(n))
    return dom_uses_axis(&dom_member_of(w, n)->out, n->type.rank, axis);
  for (int i = 0; i < n->num_in; i++)
    if (varies_along(w, n->in[i], axis))
      return true;
  return false;
}

// The axis that a dimension counted from the last one is, when it is one.
static int axis_of_dimension(const dom_member *m, int from_last, const int *position) {
  int d = m->n->type.rank - 1 - from_last;
  return d >= 0 && m->out.dim[d].num == 1 ? position[m->out.dim[d].at[0]] : -1;
}

static void find_matrices(dom_work *w, domain *d, const int *position) {
  d->matrix = IR_NEW_ARRAY(w->arena, struct dom_matrix, w->num);
  for (size_t i = 0; i < w->num; i++)
    d->matrix[i] = (struct dom_matrix){.row = axis_of_dimension(&w->m[i], 1, position),
                                       .column = axis_of_dimension(&w->m[i], 0, position)};
}

static void finish(dom_work *w, const pendings *loads, const ir_kernel *k, domain *d) {
  int position[DOM_MAX_AXES] = {0};
  number_axes(w, d, position);
  d->varies = IR_NEW_ARRAY(w->arena, bool, w->num *DOM_MAX_AXES);
  for (size_t i = 0; i < w->num; i++)
    for (int a = 0; a < w->order.num; a++)
      d->varies[i * DOM_MAX_AXES + (size_t)a] = varies_along(w, w->m[i].n, w->order.at[a]);
  find_matrices(w, d, position);
  for (size_t i = 0; i < loads->num; i++) {
    const pending *p = &loads->at[i];
    dom_load l = {.user = p->user, .operand = p->operand, .buffer = p->layout.buffer};
    l.access.offset = p->layout.offset;
    for (int j = 0; j < p->s.num; j++)
      l.access.stride[position[p->s.axis[j]]] = p->s.stride[j];
    IR_PUSH(w->arena, d->loads, l);
  }
  for (size_t i = 0; i < w->num; i++) {
    ir_node *n = w->m[i].n;
    if (!ir_is_random(n))
      continue; // (random numbers are counted by element: domain.h)
    dom_load l = {.user = n, .operand = -1, .buffer = n};
    l.access = access_of_map(w, &n->type, &w->m[i].out, position);
    IR_PUSH(w->arena, d->loads, l);
  }
  for (size_t i = 0; k && i < k->outputs.num; i++)
    put_stores(w, d, k->outputs.at[i], position);
}

// --- the matmul's own operands -----------------------------------------------------------------
// Position of m, n and k in the operands: a is [batch, m, k] or [batch, k, m].
typedef struct contraction {
  int rank, a_m, a_k, b_k, b_n;
} contraction;

static contraction contraction_of(const ir_node *n) {
  int r = n->type.rank;
  bool ta = ir_attr_bool(n, IR_ATTR_TRANS_A), tb = ir_attr_bool(n, IR_ATTR_TRANS_B);
  return (contraction){r, ta ? r - 1 : r - 2, ta ? r - 2 : r - 1, tb ? r - 1 : r - 2,
                       tb ? r - 2 : r - 1};
}

static bool contraction_strides(dom_work *w, const ir_node *n, int operand, dom_strides *s,
                                dom_layout *l) {
  contraction c = contraction_of(n);
  const dom_map *out = &dom_member_of(w, n)->out;
  dom_map use = *out;
  if (operand == 0) {
    use.dim[c.a_m] = out->dim[c.rank - 2];
    use.dim[c.a_k] = w->k_axes;
  } else {
    use.dim[c.b_n] = out->dim[c.rank - 1];
    use.dim[c.b_k] = w->k_axes;
  }
  return dom_layout_of(n->in[operand], l) && dom_strides_of(w, &n->in[operand]->type, &use, l, s);
}

// A split by b makes a's strides stale: goes round until nothing splits.
static bool contraction_align(dom_work *w, dom_strides s[2], dom_layout l[2]) {
  for (;;) {
    int before = w->num_axes;
    for (int i = 0; i < 2; i++) {
      if (!contraction_strides(w, w->anchor, i, &s[i], &l[i]))
        return false;
    }
    if (w->num_axes == before)
      return true;
  }
}

static void seed_k(dom_work *w) {
  int64_t k = w->anchor->in[0]->type.dims[contraction_of(w->anchor).a_k];
  if (k > 1)
    dom_push(&w->k_axes, dom_new_axis(w, k));
}

// --- entry points --------------------------------------------------------------------------------
// The parts of a joint are members as they are, through no view; and no member reads a joint.
static bool joints_fit(const dom_work *w) {
  for (size_t i = 0; i < w->num; i++) {
    const ir_node *n = w->m[i].n;
    for (int j = 0; j < n->num_in; j++) {
      const dom_member *part = dom_member_of(w, dom_base(n->in[j]));
      if ((part && dom_is_joint(part->n)) || (dom_is_joint(n) && (!part || part->n != n->in[j])))
        return false;
    }
  }
  return true;
}

static domain *build(ir_arena *a, ir_node *const *members, size_t num, ir_node *anchor,
                     const ir_kernel *k, dom_work *w) {
  *w = (dom_work){.arena = a, .num = num, .anchor = anchor};
  w->m = IR_NEW_ARRAY(a, dom_member, num);
  for (size_t i = 0; i < num; i++) {
    w->m[i].n = members[i];
    members[i]->mark = (uint32_t)i + 1;
  }
  pendings loads = {0};
  dom_strides s[2];
  dom_layout l[2];
  bool ok = joints_fit(w);
  if (ok)
    dom_seed_axes(w);
  if (ok && anchor)
    seed_k(w);
  ok = ok && !w->too_many && (!anchor || contraction_align(w, s, l)) && dom_spread(w) &&
       all_loads(w, &loads) && (!anchor || contraction_align(w, s, l)) && !w->too_many;
  domain *d = NULL;
  if (ok) {
    d = IR_NEW(a, domain);
    finish(w, &loads, k, d);
  }
  for (size_t i = 0; i < num; i++)
    members[i]->mark = 0;
  return d;
}

domain *dom_try(ir_arena *a, ir_node *const *members, size_t num, ir_node *anchor) {
  dom_work w;
  return build(a, members, num, anchor, NULL, &w);
}

bool dom_can_walk_operands(ir_arena *a, ir_node *n) {
  dom_layout l;
  return dom_layout_of(n->in[0], &l) && dom_layout_of(n->in[1], &l) && dom_try(a, &n, 1, n) != NULL;
}

static ir_node *matmul_anchor(const ir_kernel *k) {
  return k->family == IR_FAMILY_MATMUL ? k->anchor : NULL;
}

bool dom_has_domain(const ir_kernel *k) {
  return k->family == IR_FAMILY_LOOP || k->family == IR_FAMILY_MATMUL || ir_is_row_update(k);
}

domain *dom_build(ir_arena *a, const ir_kernel *k) {
  dom_work w;
  domain *d = build(a, k->nodes.at, k->nodes.num, matmul_anchor(k), k, &w);
  BUG_IF(!d, "kernel '%s' has no domain", k->name);
  return d;
}

const dom_load *dom_find_load(const domain *d, const ir_node *user, int operand) {
  for (size_t i = 0; i < d->loads.num; i++)
    if (d->loads.at[i].user == user && d->loads.at[i].operand == operand)
      return &d->loads.at[i];
  return NULL;
}

int dom_member_index(const ir_kernel *k, const ir_node *n) {
  for (size_t i = 0; i < k->nodes.num; i++)
    if (k->nodes.at[i] == n)
      return (int)i;
  return -1;
}

static int count_axes(const dom_map *m, int from, int to) {
  int n = 0;
  for (int d = from; d < to; d++)
    n += m->dim[d].num;
  return n;
}

static dom_access operand_access(const dom_work *w, const dom_layout *l, const dom_strides *s,
                                 const int *position, int64_t *k_strides) {
  dom_access acc = {.offset = l->offset};
  for (int i = 0; i < s->num; i++) {
    bool is_k = false;
    for (int j = 0; j < w->k_axes.num; j++)
      if (w->k_axes.at[j] == s->axis[i]) {
        k_strides[j] = s->stride[i];
        is_k = true;
      }
    if (!is_k)
      acc.stride[position[s->axis[i]]] = s->stride[i];
  }
  return acc;
}

dom_matmul *dom_build_matmul(ir_arena *a, const ir_kernel *k, const domain *d) {
  dom_work w;
  domain *again = build(a, k->nodes.at, k->nodes.num, k->anchor, k, &w);
  BUG_IF(!again || again->num_axes != d->num_axes, "kernel '%s': domain changed", k->name);
  for (size_t i = 0; i < w.num; i++)
    w.m[i].n->mark = (uint32_t)i + 1;
  dom_strides s[2];
  dom_layout l[2];
  contraction_align(&w, s, l);
  int position[DOM_MAX_AXES] = {0};
  number_axes(&w, again, position);
  const dom_map *out = &dom_member_of(&w, k->anchor)->out;
  const ir_type *t = &k->anchor->type;
  dom_matmul *mm = IR_NEW(a, dom_matmul);
  mm->m = t->dims[t->rank - 2];
  mm->n = t->dims[t->rank - 1];
  mm->k = k->anchor->in[0]->type.dims[contraction_of(k->anchor).a_k];
  mm->batch = ir_elements(t) / (mm->m * mm->n);
  mm->num_batch_axes = count_axes(out, 0, t->rank - 2);
  mm->num_m_axes = out->dim[t->rank - 2].num;
  mm->num_n_axes = out->dim[t->rank - 1].num;
  mm->a = l[0].buffer;
  mm->b = l[1].buffer;
  mm->a_conversion = dom_conversion(k->anchor->in[0]);
  mm->b_conversion = dom_conversion(k->anchor->in[1]);
  mm->num_k_axes = w.k_axes.num;
  for (int i = 0; i < w.k_axes.num; i++)
    mm->k_size[i] = w.size[w.k_axes.at[i]];
  mm->a_access = operand_access(&w, &l[0], &s[0], position, mm->a_k);
  mm->b_access = operand_access(&w, &l[1], &s[1], position, mm->b_k);
  for (size_t i = 0; i < w.num; i++)
    w.m[i].n->mark = 0;
  return mm;
}
