// domain_spread.c: maps for all members. One member (the widest) seeds the axes, one per dimension;
// then maps travel along all edges, round after round, until a round is quiet.
//
//   member      dims          map
//   e           [64,10]       [a] [b]         the seed
//   s = sum(e)  [64,1]        [a] []          b is reduced
//   e / bc(s)   [64,10]       [a] [b]
//
// Downwards (user to operand) every edge is checked, too: two maps for one member are a conflict.
// Upwards, a map is only taken where there is none; what a broadcast hides is guessed. A reduction
// of which only the result is known gets its reduced axes when nothing else moves; after that, members
// that no edge leads to get the map of the seed.
#include "passes/domain_parts.h"

// --- reductions --------------------------------------------------------------------------------
static bool reduces_dim(const ir_node *n, int dim) {
  if (n->op == IR_ARGMAX || n->op == IR_ARGMIN)
    return ir_attr_int(n, IR_ATTR_AXIS) == dim;
  int num;
  const int64_t *ax = ir_attr_ints(n, IR_ATTR_AXES, &num);
  for (int i = 0; i < num; i++)
    if (ax[i] == dim)
      return true;
  return false;
}

// Known `in`: the result lacks the reduced dimensions; the kernel's reduced axes are theirs.
static bool settle_reduce(dom_work *w, dom_member *m) {
  dom_axes reduced = {0};
  dom_map out = m->in;
  for (int d = 0; d < m->n->type.rank; d++) {
    if (!reduces_dim(m->n, d))
      continue;
    for (int i = 0; i < m->in.dim[d].num; i++)
      dom_push(&reduced, m->in.dim[d].at[i]);
    out.dim[d].num = 0;
  }
  if (m->out.known && !dom_same_map(&m->out, &out, m->n->type.rank))
    return false;
  m->out = out;
  if (!w->has_reduced) {
    w->has_reduced = true;
    w->reduced_axes = reduced;
    for (int i = 0; i < reduced.num; i++)
      w->reduced[reduced.at[i]] = true;
    return true;
  }
  if (reduced.num != w->reduced_axes.num)
    return false;
  for (int i = 0; i < reduced.num; i++)
    if (!w->reduced[reduced.at[i]])
      return false;
  return true;
}

// Axes for the reduced dimensions of m, whose result map is known: the kernel's reduced axes, or
// the axes that the result lacks; with `create`, new ones.
static bool guess_reduced(dom_work *w, dom_member *m, bool create) {
  ir_node *n = m->n;
  const ir_type *t = &n->in[0]->type;
  dom_axes pool = {0};
  for (int i = 0; i < w->order.num; i++) {
    int a = w->order.at[i];
    if (!dom_uses_axis(&m->out, n->type.rank, a) && (!w->has_reduced || w->reduced[a]))
      dom_push(&pool, a);
  }
  int64_t need = 1;
  for (int d = 0; d < t->rank; d++)
    if (reduces_dim(n, d))
      need *= t->dims[d];
  if (dom_list_size(w, &pool) != need) {
    if (!create || w->has_reduced)
      return false;
    pool.num = 0;
  }
  dom_map in = m->out;
  int next = 0;
  for (int d = 0; d < t->rank; d++) {
    if (!reduces_dim(n, d) || t->dims[d] == 1)
      continue;
    if (pool.num == 0) {
      int a = dom_new_axis(w, t->dims[d]);
      dom_push(&in.dim[d], a);
      dom_push(&w->order, a);
      continue;
    }
    int64_t have = 1;
    for (; have < t->dims[d] && next < pool.num; next++) {
      have *= w->size[pool.at[next]];
      dom_push(&in.dim[d], pool.at[next]);
    }
    if (have != t->dims[d])
      return false; // would need a split inside the pool: rare, refuse
  }
  if (w->too_many)
    return false;
  m->in = in;
  m->in.known = settle_reduce(w, m); // or else another guess would find it settled
  return m->in.known;
}

// --- all members -------------------------------------------------------------------------------
dom_map dom_gather_index_map(const ir_node *n, const dom_map *out) {
  dom_map map = {.known = true};
  for (int d = 0; d < n->in[1]->type.rank; d++)
    map.dim[d] = out->dim[d];
  return map;
}

static bool push_down(dom_work *w, dom_member *m) {
  ir_node *n = m->n;
  if (dom_is_made_apart(n) || dom_is_joint(n) || ir_is_random(n))
    return true; // seed and step are scalars
  if (dom_is_reduce(n))
    return !m->in.known || dom_tell_operand(w, n, 0, &m->in);
  if (!m->out.known)
    return true;
  if (n->op == IR_GATHER) {
    dom_map map = dom_gather_index_map(n, &m->out);
    return dom_tell_operand(w, n, 1, &map);
  }
  for (int i = 0; i < n->num_in; i++)
    if (!dom_tell_operand(w, n, i, &m->out))
      return false;
  return true;
}

static bool pull_up(dom_work *w, dom_member *m) {
  ir_node *n = m->n;
  if (dom_is_made_apart(n) || dom_is_joint(n) || ir_is_random(n) || n->op == IR_GATHER)
    return true;
  if (dom_is_reduce(n)) {
    dom_map in;
    if (m->in.known || !dom_map_seen(w, n, 0, &in))
      return true;
    m->in = in;
    return settle_reduce(w, m);
  }
  for (int i = 0; !m->out.known && i < n->num_in; i++) {
    dom_map out;
    if (dom_map_seen(w, n, i, &out))
      m->out = out;
  }
  return true;
}

static size_t num_known(const dom_work *w) {
  size_t known = 0;
  for (size_t i = 0; i < w->num; i++)
    known += (size_t)w->m[i].out.known + (dom_is_reduce(w->m[i].n) && w->m[i].in.known ? 1 : 0);
  return known;
}

static bool guess_one(dom_work *w, bool create) {
  for (size_t i = w->num; i-- > 0;) {
    dom_member *m = &w->m[i];
    if (dom_is_reduce(m->n) && m->out.known && !m->in.known)
      return guess_reduced(w, m, create);
  }
  return false;
}

static const ir_type *own_type(const ir_node *n) {
  return dom_is_reduce(n) ? &n->in[0]->type : &n->type;
}

// Members that no edge leads to, like the mask of a dropout whose other half another kernel has taken
// over: where they have the shape of the seed, they have its map.
static bool guess_apart(dom_work *w) {
  const dom_map *map = dom_is_reduce(w->seed->n) ? &w->seed->in : &w->seed->out;
  for (size_t i = w->num; i-- > 0;) {
    dom_member *m = &w->m[i];
    if (m->out.known || m->in.known || !ir_same_shape(own_type(m->n), own_type(w->seed->n)))
      continue;
    if (!dom_is_reduce(m->n)) {
      m->out = *map;
      return true;
    }
    m->in = *map;
    return settle_reduce(w, m);
  }
  return false;
}

bool dom_spread(dom_work *w) {
  size_t want = w->num, known = 0;
  for (size_t i = 0; i < w->num; i++) {
    want += dom_is_reduce(w->m[i].n);
    w->m[i].out.known |= dom_is_joint(w->m[i].n); // it has none
  }
  for (;;) {
    bool fits = true;
    for (size_t i = w->num; i-- > 0 && fits;)
      fits = push_down(w, &w->m[i]);
    for (size_t i = 0; i < w->num && fits; i++)
      fits = pull_up(w, &w->m[i]);
    if (!fits || w->too_many)
      return false;
    size_t now = num_known(w);
    if (now == want && now == known)
      return true; // one quiet round: every edge has been checked with final maps
    if (now == known && !guess_one(w, false) && !guess_one(w, true) && !guess_apart(w))
      return false;
    known = now;
  }
}

// --- the first axes ----------------------------------------------------------------------------
static int64_t own_elements(const ir_node *n) {
  return dom_is_joint(n) ? 0 : ir_elements(own_type(n));
}

void dom_seed_axes(dom_work *w) {
  dom_member *seed = &w->m[w->num - 1];
  while (dom_is_joint(seed->n)) // its parts are above it
    seed--;
  for (size_t i = w->num; i-- > 0;)
    if (own_elements(w->m[i].n) > own_elements(seed->n))
      seed = &w->m[i];
  if (w->anchor)
    seed = dom_member_of(w, w->anchor);
  const ir_type *t = own_type(seed->n);
  w->seed = seed;
  dom_map map = {.known = true};
  for (int d = 0; d < t->rank; d++) {
    if (t->dims[d] == 1)
      continue;
    int a = dom_new_axis(w, t->dims[d]);
    dom_push(&map.dim[d], a);
    dom_push(&w->order, a);
  }
  if (dom_is_reduce(seed->n)) {
    seed->in = map;
    settle_reduce(w, seed);
  } else {
    seed->out = map;
  }
}
