// loop_members.c: the members of a LOOP kernel as text, wherever the loops come from: what a level
// loads and computes, scratch rows between phases, stores. Both targets' loops stand on it.
//
//   phase 1 of softmax   const vf e = k_exp((x - m)); e_row[t] = e; e_sum = (e_sum + e);
#include "codegen/cpu_loop.h"
#include "ir/narrow.h"

ir_map *loop_open(loop_emit *m) {
  ir_map *outer = m->e.names;
  m->e.names = cg_scope_copy(m->k->arena, outer);
  m->e.indent += 2;
  return outer;
}

void loop_close(loop_emit *m, ir_map *outer) {
  m->e.names = outer;
  m->e.indent -= 2;
  cpu_line(&m->e, "}");
}

// --- scratch rows ------------------------------------------------------------------------------
void loop_declare_caches(loop_emit *m, int64_t vectors) {
  ir_arena *a = m->k->arena;
  for (size_t i = 0; i < m->k->k->nodes.num; i++) {
    const ir_node *n = m->k->k->nodes.at[i];
    if (!m->p->member[i].cached)
      continue;
    const char *base = cg_local_name(a, ir_map_new(a), n);
    const char *name = cg_scope_name(a, m->e.names, ir_format(a, "%s_row", base));
    ir_map_put(m->e.names, ir_format(a, "~%zu", i), (void *)(uintptr_t)name);
    cpu_line(&m->e, "%s %s[%lld];", cpu_register(n->type.dtype), name, (long long)vectors);
  }
}

// Index of the present vector in a scratch row.
static const char *cache_index(const loop_emit *m) {
  ir_arena *a = m->k->arena;
  const loop_plan *p = m->p;
  if (m->turn)
    return m->turn;
  const char *row = loop_red_index(m, false);
  if (!p->across)
    return row;
  const char *vector = ir_format(a, "%s / %d", m->index[p->vector_axis], p->lanes);
  if (p->num_red == 0)
    return vector;
  return ir_format(a, "(%s) * %lld + %s", row, (long long)((p->extent + p->lanes - 1) / p->lanes),
                   vector);
}

static const char *cache_name(const loop_emit *m, size_t member) {
  ir_arena *a = m->k->arena;
  return ir_map_get(m->e.names, ir_format(a, "~%zu", member));
}

static void fill_caches(loop_emit *m) {
  for (size_t i = 0; i < m->k->k->nodes.num; i++) {
    const loop_member *member = &m->p->member[i];
    if (!member->cached || member->depth != m->phase)
      continue;
    const char *x = cg_emit_value(&m->e, m->k->k->nodes.at[i]);
    cpu_line(&m->e, "%s[%s] = %s;", cache_name(m, i), cache_index(m), x);
  }
}

// Cached members.
static const char *have_member(void *data, const ir_node *n) {
  loop_emit *m = data;
  int i = cpu_member(m->k, n);
  if (i < 0 || !m->p->member[i].cached || m->p->member[i].depth >= m->phase)
    return NULL;
  return ir_format(m->k->arena, "%s[%s]", cache_name(m, (size_t)i), cache_index(m));
}

const char *loop_number(const loop_emit *m, int64_t v) {
  return ir_format(m->k->arena, "%lld", (long long)v);
}

// --- the frame -------------------------------------------------------------------------------
static const char *index_of(void *data, int axis) {
  return ((loop_emit *)data)->index[axis];
}

void loop_begin(loop_emit *m, const cg_kernel *k, const loop_plan *p, ir_buf *out) {
  *m = (loop_emit){.k = k, .p = p};
  m->e =
      (cg_expr){.k = k, .out = out, .names = ir_map_new(k->arena), .vector_axis = p->vector_axis};
  m->e.lane_step = p->lane_step;
  m->e.index = index_of;
  m->e.have = have_member;
  m->e.data = m;
}

void loop_reserve(loop_emit *m, const char *const *used, size_t num) {
  for (size_t i = 0; i < num; i++)
    cg_scope_name(m->k->arena, m->e.names, used[i]);
  for (int i = 0; i < m->k->dom->num_axes; i++) {
    m->index[i] = ir_format(m->k->arena, "i%d", i);
    cg_scope_name(m->k->arena, m->e.names, m->index[i]);
  }
}

void loop_push_numbers(const loop_plan *p, cg_kernel *k) {
  if (p->flat)
    IR_PUSH(k->arena, k->numbers, p->extent);
  ir_node_list constants = cg_numbered_constants(k);
  for (size_t i = 0; i < constants.num; i++)
    IR_PUSH(k->arena, k->numbers,
            ir_bits_of_float((float)ir_attr_num(constants.at[i], IR_ATTR_VALUE)));
  for (size_t i = 0; i < k->k->nodes.num; i++)
    if (ir_is_random(k->k->nodes.at[i]))
      IR_PUSH(k->arena, k->numbers, ir_attr_int(k->k->nodes.at[i], IR_ATTR_STREAM));
  cg_note_domain_begins(k);
  cg_settle_begins(k, 1);
}

void loop_declare_numbers(loop_emit *m) {
  ir_arena *a = m->k->arena;
  int at = 0;
  if (m->p->flat)
    cg_emit_number(m->k, at++, "int64_t", "count", m->e.out, m->e.indent);
  ir_node_list constants = cg_numbered_constants(m->k);
  for (size_t i = 0; i < constants.num; i++) {
    const char *name = cg_scope_name(a, m->e.names, "bits");
    cg_emit_number(m->k, at++, "uint32_t", name, m->e.out, m->e.indent);
    cg_scope_bind(a, m->e.names, constants.at[i], ir_format(a, "k_f32(k_of_bits(%s))", name));
  }
  for (size_t i = 0; i < m->k->k->nodes.num; i++) {
    const ir_node *n = m->k->k->nodes.at[i];
    if (!ir_is_random(n))
      continue;
    const char *name = cg_scope_name(a, m->e.names, "stream");
    cg_emit_number(m->k, at++, "uint32_t", name, m->e.out, m->e.indent);
    cpu_bind_stream(&m->e, n, name);
  }
}

void loop_decode(loop_emit *m, const char *from, const int *axes, int num) {
  int64_t size[DOM_MAX_AXES];
  const char *name[DOM_MAX_AXES];
  for (int i = 0; i < num; i++) {
    size[i] = m->k->dom->axis[axes[i]].size;
    name[i] = m->index[axes[i]];
  }
  cg_emit_indices(m->e.out, m->e.indent, from, num, size, name);
}

// --- levels ------------------------------------------------------------------------------------
static loop_level load_level(const loop_emit *m, const dom_load *l) {
  const domain *d = m->k->dom;
  loop_level level = LEVEL_FUNC;
  for (int i = 0; i < d->num_axes; i++) {
    if (l->access.stride[i] == 0)
      continue;
    loop_level here = d->axis[i].reduced                                 ? LEVEL_INNER
                      : i == m->p->vector_axis || i == m->p->turned_axis ? LEVEL_LANES
                                                                         : LEVEL_ROW;
    level = here > level ? here : level;
  }
  return level;
}

// e / s with s the sum of a row: one division per row instead of one per element.
static void emit_inverses(loop_emit *m) {
  for (size_t i = 0; i < m->k->k->nodes.num; i++) {
    const ir_node *n = m->k->k->nodes.at[i];
    if (n->op != IR_DIV || !ir_is_float(n->type.dtype) || m->p->member[i].level != LEVEL_INNER)
      continue;
    const ir_node *divisor = dom_base(n->in[1]);
    if (divisor->op == IR_SUM && !dom_find_load(m->k->dom, n, 1))
      cpu_emit_inverse(&m->e, divisor);
  }
}

// Loads and members that can be had at this level already, before the loops inside it.
void loop_emit_level(loop_emit *m, loop_level level) {
  const domain *d = m->k->dom;
  for (size_t i = 0; i < d->loads.num; i++) {
    const dom_load *l = &d->loads.at[i];
    bool table = l->user->op == IR_GATHER && l->operand == 0;
    if (l->operand >= 0 && !table && load_level(m, l) == level)
      cpu_emit_load(&m->e, l);
  }
  for (size_t i = 0; i < m->k->k->nodes.num; i++) {
    const loop_member *member = &m->p->member[i];
    const ir_node *n = m->k->k->nodes.at[i];
    if (member->level == level && !member->reduces && member->depth <= m->phase && !dom_is_joint(n))
      cg_emit_value(&m->e, n);
  }
  emit_inverses(m);
}

// --- stores ----------------------------------------------------------------------------------
bool loop_stores_at(const loop_emit *m, loop_level level) {
  for (size_t i = 0; i < m->k->dom->stores.num; i++)
    if (m->p->member[cpu_member(m->k, m->k->dom->stores.at[i].node)].level == level)
      return true;
  return false;
}

static bool store_is_at(const loop_emit *m, const dom_store *s, loop_level level) {
  const loop_member *member = &m->p->member[cpu_member(m->k, s->node)];
  return member->level == level && (level != LEVEL_INNER || member->depth == m->phase);
}

// A value that lacks an axis is stored by that axis's first iteration only.
static const char *guard_of(const loop_emit *m, const dom_store *s, loop_level level) {
  ir_arena *a = m->k->arena;
  const domain *d = m->k->dom;
  ir_buf b = ir_buf_new(a);
  for (int i = 0; i < d->num_axes; i++) {
    if (s->access.stride[i] != 0 || (d->axis[i].reduced && level != LEVEL_INNER))
      continue;
    bool in_row = i == m->p->vector_axis && level < LEVEL_LANES; // outside the vector loop
    const char *index = in_row ? (m->p->chunks > 1 ? "chunk" : NULL) : m->index[i];
    if (index)
      ir_buf_printf(&b, "%s%s == 0", b.len ? " && " : "", index);
  }
  return b.len ? ir_buf_str(&b) : NULL;
}

static void store_one(loop_emit *m, const dom_store *s, loop_level level) {
  const char *guard = level == LEVEL_FUNC ? NULL : guard_of(m, s, level);
  if (m->only)
    guard = guard ? ir_format(m->k->arena, "%s && %s", m->only, guard) : m->only;
  if (!guard) {
    cg_emit_store(&m->e, s);
    return;
  }
  cpu_line(&m->e, "if (%s)", guard);
  m->e.indent += 2;
  cg_emit_store(&m->e, s);
  m->e.indent -= 2;
}

// All values before the first store: an output may lie in the memory of an input.
void loop_emit_stores(loop_emit *m, loop_level level) {
  const domain *d = m->k->dom;
  for (size_t i = 0; i < d->stores.num; i++)
    if (store_is_at(m, &d->stores.at[i], level))
      cg_emit_value(&m->e, d->stores.at[i].node);
  for (size_t i = 0; i < d->stores.num; i++)
    if (store_is_at(m, &d->stores.at[i], level))
      store_one(m, &d->stores.at[i], level);
}

void loop_inner_work(loop_emit *m, const char *slot) {
  loop_take_sums(m, slot);
  fill_caches(m);
  loop_emit_stores(m, LEVEL_INNER);
}
