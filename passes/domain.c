// domain.c: one set of loop axes for a group of nodes (domain.h).
//
// Every member gets a map: for each of its dimensions the axes whose mixed-radix
// number is the coordinate. One member (the widest) seeds the axes, one per
// dimension; maps then travel along operand edges in both directions, through
// views as layouts. Where two tensors cut an axis differently the axis is split
// for all. A conflict (x + transpose(x) with x in the group) means: no domain.
//
//   member      dims          map
//   e           [64,10]       [a] [b]
//   s = sum(e)  [64,1]        [a] []        b is reduced
//   e / bc(s)   [64,10]       [a] [b]
#include "passes/domain.h"

#include <string.h>

enum { MAX_AXES = DOM_MAX_AXES };

typedef struct axes {
  uint8_t num;
  uint8_t at[MAX_AXES]; // most significant first
} axes;

typedef struct node_map {
  bool known;
  axes dim[IR_MAX_RANK];
} node_map;

typedef struct member {
  ir_node *n;
  node_map out; // of the value
  node_map in;  // REDUCE: of the operand; others: unused (same as out)
} member;

typedef struct work {
  ir_arena *arena;
  member *m;
  size_t num;
  ir_node *anchor;
  int num_axes;
  int64_t size[MAX_AXES];
  bool reduced[MAX_AXES];
  bool has_reduced;
  axes reduced_axes; // in order, once known
  axes order;        // all axes, outermost first
  bool too_many;
  axes k_axes;    // MATMUL: the summed axes; they are in no map and not in `order`
  node_map *temp; // a map being worked on that belongs to no member: splits must reach it too
} work;

static bool is_reduce(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_REDUCE;
}

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

// Members are found by node->mark = index + 1 while a domain is built.
static member *member_of(const work *w, const ir_node *n) {
  if (n->mark == 0 || n->mark > w->num || w->m[n->mark - 1].n != n)
    return NULL;
  return &w->m[n->mark - 1];
}

// --- axes ------------------------------------------------------------------------------
static int new_axis(work *w, int64_t size) {
  if (w->num_axes == MAX_AXES) {
    w->too_many = true;
    return -1;
  }
  w->size[w->num_axes] = size;
  return w->num_axes++;
}

static void list_push(axes *l, int a) {
  if (a >= 0 && l->num < MAX_AXES)
    l->at[l->num++] = (uint8_t)a;
}

static void list_split(axes *l, int hi, int lo) {
  for (int i = 0; i < l->num; i++) {
    if (l->at[i] != hi)
      continue;
    memmove(&l->at[i + 2], &l->at[i + 1], (size_t)(l->num - i - 1));
    l->at[i + 1] = (uint8_t)lo;
    l->num++;
    return;
  }
}

static void map_split(node_map *m, int rank, int hi, int lo) {
  for (int d = 0; m->known && d < rank; d++)
    list_split(&m->dim[d], hi, lo);
}

// Axis a of size s becomes (a: s/inner, new: inner), everywhere. The new axis, or -1.
static int split_axis(work *w, int a, int64_t inner) {
  if (w->num_axes == MAX_AXES) {
    w->too_many = true;
    return -1;
  }
  int lo = new_axis(w, inner);
  w->size[a] /= inner;
  w->reduced[lo] = w->reduced[a];
  for (size_t i = 0; i < w->num; i++) {
    map_split(&w->m[i].out, w->m[i].n->type.rank, a, lo);
    map_split(&w->m[i].in, w->m[i].n->type.rank, a, lo);
  }
  if (w->temp)
    map_split(w->temp, IR_MAX_RANK, a, lo);
  list_split(&w->order, a, lo);
  list_split(&w->reduced_axes, a, lo);
  list_split(&w->k_axes, a, lo);
  return lo;
}

// Cuts `list` (of some map; passed by address so that splits are seen) and the sizes given so that
// both have the same boundaries. sizes are refined in place with their strides. False: uneven.
typedef struct modes {
  int num;
  int64_t size[MAX_AXES], stride[MAX_AXES];
} modes;

static bool mode_split(modes *s, int j, int64_t inner) {
  if (s->num == MAX_AXES)
    return false;
  memmove(&s->size[j + 1], &s->size[j], sizeof(int64_t) * (size_t)(s->num - j));
  memmove(&s->stride[j + 1], &s->stride[j], sizeof(int64_t) * (size_t)(s->num - j));
  s->num++;
  s->size[j + 1] = inner;
  s->size[j] /= inner;
  s->stride[j] *= inner;
  return true;
}

static bool align(work *w, const axes *list, modes *s) {
  int i = list->num - 1, j = s->num - 1;
  while (i >= 0 && j >= 0) {
    int64_t a = w->size[list->at[i]], m = s->size[j];
    if (a > m) {
      if (a % m || split_axis(w, list->at[i], m) < 0)
        return false;
      i++; // the list grew at i: its inner part is now at i + 1
    } else if (a < m) {
      if (m % a || !mode_split(s, j, a))
        return false;
      j++;
    }
    i--;
    j--;
  }
  return i < 0 && j < 0;
}

// The modes of dimension `dim`, with neighbours joined where memory allows it.
static modes modes_of(const dom_layout *l, int dim) {
  modes s = {0};
  for (int m = 0; m < l->num; m++) {
    if (l->dim[m] != dim)
      continue;
    int last = s.num - 1;
    if (last >= 0 && s.stride[last] == l->stride[m] * l->size[m]) {
      s.size[last] *= l->size[m];
      s.stride[last] = l->stride[m];
    } else {
      s.size[s.num] = l->size[m];
      s.stride[s.num++] = l->stride[m];
    }
  }
  return s;
}

static void row_strides(const ir_type *t, int64_t *stride) {
  int64_t next = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    stride[i] = next;
    next *= t->dims[i];
  }
}

// The dimension of `t` that an element stride belongs to, or -1.
static int dim_of_stride(const ir_type *t, const int64_t *row, int64_t stride) {
  for (int d = 0; d < t->rank; d++)
    if (t->dims[d] > 1 && stride >= row[d] && stride < row[d] * t->dims[d] && stride % row[d] == 0)
      return d;
  return -1;
}

static bool same_axes(const axes *a, const axes *b) {
  return a->num == b->num && memcmp(a->at, b->at, a->num) == 0;
}

// --- along an operand edge, user known --------------------------------------------------------
// `use` is the map of the operand position (the shape that the user sees). Every axis of it gets
// its stride in the operand's base; then the base's coordinates are read off the strides.
typedef struct stride_of_axis {
  int num;
  int axis[MAX_AXES];
  int64_t stride[MAX_AXES];
} stride_of_axis;

static bool strides_for(work *w, const ir_type *seen, const node_map *use, const dom_layout *l,
                        stride_of_axis *out) {
  out->num = 0;
  for (int d = 0; d < seen->rank; d++) {
    modes s = modes_of(l, d);
    if (seen->dims[d] > 1 && s.num == 0) // nothing below varies here (cannot happen: broadcasts
      return false;                      // give a mode of stride 0)
    if (!align(w, &use->dim[d], &s))
      return false;
    for (int i = 0; i < s.num; i++) {
      if (out->num == MAX_AXES)
        return false;
      out->axis[out->num] = use->dim[d].at[i];
      out->stride[out->num++] = s.stride[i];
    }
  }
  return true;
}

// A split makes earlier entries stale: asks again until nothing splits.
static bool stable_strides(work *w, const ir_type *seen, const node_map *use, const dom_layout *l,
                           stride_of_axis *out) {
  node_map mine = *use; // `use` may be a copy that splits do not reach
  mine.known = true;
  w->temp = &mine;
  int before;
  bool ok;
  do {
    before = w->num_axes;
    ok = strides_for(w, seen, &mine, l, out);
  } while (ok && w->num_axes != before);
  w->temp = NULL;
  return ok;
}

static bool map_from_strides(const work *w, const ir_node *base, const stride_of_axis *s,
                             node_map *out) {
  int64_t row[IR_MAX_RANK], covered[IR_MAX_RANK];
  row_strides(&base->type, row);
  memset(out, 0, sizeof *out);
  for (int d = 0; d < base->type.rank; d++)
    covered[d] = 1;
  // Smallest stride first, so that each dimension is built from its innermost axis outwards.
  bool used[MAX_AXES] = {false};
  for (int done = 0; done < s->num; done++) {
    int best = -1;
    for (int i = 0; i < s->num; i++)
      if (!used[i] && (best < 0 || s->stride[i] < s->stride[best]))
        best = i;
    used[best] = true;
    if (s->stride[best] == 0)
      continue;
    int d = dim_of_stride(&base->type, row, s->stride[best]);
    if (d < 0 || s->stride[best] != row[d] * covered[d])
      return false;
    axes *l = &out->dim[d];
    memmove(&l->at[1], &l->at[0], l->num);
    l->at[0] = (uint8_t)s->axis[best];
    l->num++;
    covered[d] *= w->size[s->axis[best]];
  }
  for (int d = 0; d < base->type.rank; d++)
    if (covered[d] != base->type.dims[d])
      return false;
  out->known = true;
  return true;
}

static bool same_map(const node_map *a, const node_map *b, int rank) {
  for (int d = 0; d < rank; d++)
    if (!same_axes(&a->dim[d], &b->dim[d]))
      return false;
  return true;
}

// What `user` knows of its operand position i, told to the member below (if it is one).
static bool tell_operand(work *w, const ir_node *user, int i, const node_map *use) {
  ir_node *seen = user->in[i], *base = dom_base(seen);
  member *below = member_of(w, base);
  if (!below)
    return true;
  dom_layout l;
  stride_of_axis s;
  node_map map;
  if (!dom_layout_of(seen, &l) || l.offset != 0 || !stable_strides(w, &seen->type, use, &l, &s) ||
      !map_from_strides(w, base, &s, &map))
    return false;
  if (below->out.known)
    return same_map(&below->out, &map, base->type.rank);
  below->out = map;
  return true;
}

// --- along an operand edge, operand known -------------------------------------------------------
// The axes of the base that make up mode (size, stride), as a list.
static bool axes_of_mode(work *w, const member *below, int64_t size, int64_t stride, axes *out) {
  const ir_type *t = &below->n->type;
  int64_t row[IR_MAX_RANK];
  row_strides(t, row);
  int d = dim_of_stride(t, row, stride);
  if (d < 0)
    return false;
  const axes *list = &below->out.dim[d];
  int64_t skip = stride / row[d], need = size;
  for (int i = list->num - 1; i >= 0 && need > 1; i--) {
    int64_t a = w->size[list->at[i]];
    if (skip > 1) {
      if (a <= skip && skip % a == 0) {
        skip /= a;
        continue;
      }
      if (a % skip || split_axis(w, list->at[i], skip) < 0)
        return false;
      skip = 1;
      i++; // look again at the outer part, now at i
      continue;
    }
    if (a > need) {
      if (a % need || split_axis(w, list->at[i], need) < 0)
        return false;
      i++;
      a = need;
      out->at[out->num++] = list->at[i];
      break;
    }
    if (need % a)
      return false;
    out->at[out->num++] = list->at[i];
    need /= a;
    if (need == 1)
      break;
  }
  for (int i = 0, j = out->num - 1; i < j; i++, j--) {
    uint8_t outer = out->at[j];
    out->at[j] = out->at[i];
    out->at[i] = outer;
  }
  int64_t total = 1;
  for (int i = 0; i < out->num; i++)
    total *= w->size[out->at[i]];
  return total == size;
}

static bool uses_axis(const node_map *m, int rank, int axis) {
  for (int d = 0; d < rank; d++)
    for (int i = 0; i < m->dim[d].num; i++)
      if (m->dim[d].at[i] == axis)
        return true;
  return false;
}

// Axes for a broadcast position of the given size: those of the domain, in order, that `map`
// does not use yet. A guess that the other operands confirm or refuse.
static bool axes_for_broadcast(const work *w, const node_map *map, int rank, int64_t size,
                               axes *out) {
  int64_t total = 1;
  for (int i = 0; i < w->order.num && total < size; i++) {
    int a = w->order.at[i];
    if (uses_axis(map, rank, a))
      continue;
    list_push(out, a);
    total *= w->size[a];
  }
  return total == size;
}

// Map of what the user sees at operand i, from the member below it.
static bool map_seen(work *w, const ir_node *user, int i, node_map *out) {
  ir_node *seen = user->in[i];
  member *below = member_of(w, dom_base(seen));
  dom_layout l;
  if (!below || !below->out.known || !dom_layout_of(seen, &l) || l.offset != 0)
    return false;
  memset(out, 0, sizeof *out);
  int before = w->num_axes;
  for (int m = 0; m < l.num; m++) {
    axes part = {0};
    if (l.stride[m] == 0)
      continue;
    if (!axes_of_mode(w, below, l.size[m], l.stride[m], &part))
      return false;
    for (int k = 0; k < part.num; k++)
      list_push(&out->dim[l.dim[m]], part.at[k]);
  }
  if (w->num_axes != before) // lists above may miss the new inner axes: once more
    return map_seen(w, user, i, out);
  for (int m = 0; m < l.num; m++)
    if (l.stride[m] == 0 &&
        !axes_for_broadcast(w, out, seen->type.rank, l.size[m], &out->dim[l.dim[m]]))
      return false;
  out->known = true;
  return true;
}

// --- reductions ---------------------------------------------------------------------------------
// Known `in`: the result lacks the reduced dimensions; the kernel's reduced axes are theirs.
static bool settle_reduce(work *w, member *m) {
  axes reduced = {0};
  node_map out = m->in;
  for (int d = 0; d < m->n->type.rank; d++) {
    if (!reduces_dim(m->n, d))
      continue;
    for (int i = 0; i < m->in.dim[d].num; i++)
      list_push(&reduced, m->in.dim[d].at[i]);
    out.dim[d].num = 0;
  }
  if (m->out.known && !same_map(&m->out, &out, m->n->type.rank))
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

static int64_t list_size(const work *w, const axes *l) {
  int64_t total = 1;
  for (int i = 0; i < l->num; i++)
    total *= w->size[l->at[i]];
  return total;
}

// Axes for the reduced dimensions of m, whose result map is known: the kernel's reduced axes, or
// the axes that the result lacks; with `create`, new ones.
static bool guess_reduced(work *w, member *m, bool create) {
  ir_node *n = m->n;
  const ir_type *t = &n->in[0]->type;
  axes pool = {0};
  for (int i = 0; i < w->order.num; i++) {
    int a = w->order.at[i];
    if (!uses_axis(&m->out, n->type.rank, a) && (!w->has_reduced || w->reduced[a]))
      list_push(&pool, a);
  }
  int64_t need = 1;
  for (int d = 0; d < t->rank; d++)
    if (reduces_dim(n, d))
      need *= t->dims[d];
  if (list_size(w, &pool) != need) {
    if (!create || w->has_reduced)
      return false;
    pool.num = 0;
  }
  node_map in = m->out;
  int next = 0;
  for (int d = 0; d < t->rank; d++) {
    if (!reduces_dim(n, d) || t->dims[d] == 1)
      continue;
    if (pool.num == 0) {
      int a = new_axis(w, t->dims[d]);
      list_push(&in.dim[d], a);
      list_push(&w->order, a);
      continue;
    }
    int64_t have = 1;
    for (; have < t->dims[d] && next < pool.num; next++) {
      have *= w->size[pool.at[next]];
      list_push(&in.dim[d], pool.at[next]);
    }
    if (have != t->dims[d])
      return false; // would need a split inside the pool: rare, refuse
  }
  if (w->too_many)
    return false;
  m->in = in;
  m->in.known = true;
  return settle_reduce(w, m);
}

// --- maps for all members
// -------------------------------------------------------------------------- GATHER: result [i...,
// rest...]; index sees the leading dimensions.
static node_map gather_index_map(const ir_node *n, const node_map *out) {
  node_map map = {.known = true};
  for (int d = 0; d < n->in[1]->type.rank; d++)
    map.dim[d] = out->dim[d];
  return map;
}

static bool is_random(const ir_node *n) {
  return n->op == IR_UNIFORM || n->op == IR_NORMAL;
}

static bool push_down(work *w, member *m) {
  ir_node *n = m->n;
  if (n == w->anchor || is_random(n))
    return true; // operands of the contraction are not in the loop nest; seed and step are scalars
  if (is_reduce(n))
    return !m->in.known || tell_operand(w, n, 0, &m->in);
  if (!m->out.known)
    return true;
  if (n->op == IR_GATHER) {
    node_map map = gather_index_map(n, &m->out);
    return tell_operand(w, n, 1, &map);
  }
  for (int i = 0; i < n->num_in; i++)
    if (!tell_operand(w, n, i, &m->out))
      return false;
  return true;
}

// True when something new was learnt.
static bool pull_up(work *w, member *m, bool *failed) {
  ir_node *n = m->n;
  if (n == w->anchor || is_random(n) || n->op == IR_GATHER)
    return false;
  if (is_reduce(n)) {
    node_map in;
    if (m->in.known || !map_seen(w, n, 0, &in))
      return false;
    m->in = in;
    *failed = *failed || !settle_reduce(w, m);
    return true;
  }
  for (int i = 0; !m->out.known && i < n->num_in; i++) {
    node_map out;
    if (map_seen(w, n, i, &out)) {
      m->out = out;
      return true;
    }
  }
  return false;
}

static size_t num_known(const work *w) {
  size_t known = 0;
  for (size_t i = 0; i < w->num; i++)
    known += (size_t)w->m[i].out.known + (is_reduce(w->m[i].n) && w->m[i].in.known ? 1 : 0);
  return known;
}

static bool guess_one(work *w, bool create) {
  for (size_t i = w->num; i-- > 0;) {
    member *m = &w->m[i];
    if (is_reduce(m->n) && m->out.known && !m->in.known)
      return guess_reduced(w, m, create);
  }
  return false;
}

static bool spread(work *w) {
  size_t want = w->num, known = 0;
  for (size_t i = 0; i < w->num; i++)
    want += is_reduce(w->m[i].n);
  for (;;) {
    bool failed = false;
    for (size_t i = w->num; i-- > 0 && !failed;)
      failed = !push_down(w, &w->m[i]);
    for (size_t i = 0; i < w->num && !failed; i++)
      pull_up(w, &w->m[i], &failed);
    if (failed || w->too_many)
      return false;
    size_t now = num_known(w);
    if (now == want && now == known)
      return true; // one quiet round: every edge has been checked with final maps
    if (now == known && !guess_one(w, false) && !guess_one(w, true))
      return false;
    known = now;
  }
}

static int64_t own_elements(const ir_node *n) {
  return ir_elements(is_reduce(n) ? &n->in[0]->type : &n->type);
}

static void seed_axes(work *w) {
  member *seed = &w->m[w->num - 1];
  for (size_t i = w->num; i-- > 0;)
    if (own_elements(w->m[i].n) > own_elements(seed->n))
      seed = &w->m[i];
  if (w->anchor)
    seed = member_of(w, w->anchor);
  const ir_type *t = is_reduce(seed->n) ? &seed->n->in[0]->type : &seed->n->type;
  node_map map = {.known = true};
  for (int d = 0; d < t->rank; d++) {
    if (t->dims[d] == 1)
      continue;
    int a = new_axis(w, t->dims[d]);
    list_push(&map.dim[d], a);
    list_push(&w->order, a);
  }
  if (is_reduce(seed->n)) {
    seed->in = map;
    settle_reduce(w, seed);
  } else {
    seed->out = map;
  }
}

// --- loads ------------------------------------------------------------------------------------
typedef struct pending {
  ir_node *user;
  int operand;
  dom_layout layout;
  stride_of_axis s;
} pending;
typedef IR_VEC(pending) pendings;

static bool load_of(work *w, member *m, int i, const node_map *use, pendings *out) {
  ir_node *seen = m->n->in[i];
  if (member_of(w, dom_base(seen)))
    return true;
  pending p = {.user = m->n, .operand = i};
  if (!dom_layout_of(seen, &p.layout) || !stable_strides(w, &seen->type, use, &p.layout, &p.s))
    return false;
  IR_PUSH(w->arena, *out, p);
  return true;
}

// The table is walked by its trailing dimensions only; the row comes from the index.
static bool gather_table_load(work *w, member *m, pendings *out) {
  ir_node *table = m->n->in[0];
  int lead = m->n->in[1]->type.rank;
  if (member_of(w, dom_base(table)) || !dom_contiguous(table))
    return false;
  pending p = {.user = m->n, .operand = 0};
  p.layout.buffer = dom_base(table);
  int64_t stride = 1;
  for (int d = m->n->type.rank - 1; d >= lead; d--) {
    const axes *l = &m->out.dim[d];
    for (int i = l->num - 1; i >= 0; i--) {
      p.s.axis[p.s.num] = l->at[i];
      p.s.stride[p.s.num++] = stride;
      stride *= w->size[l->at[i]];
    }
  }
  IR_PUSH(w->arena, *out, p);
  return true;
}

static bool member_loads(work *w, member *m, pendings *out) {
  ir_node *n = m->n;
  if (n == w->anchor)
    return true;
  if (n->op == IR_GATHER) {
    node_map index = gather_index_map(n, &m->out);
    return gather_table_load(w, m, out) && load_of(w, m, 1, &index, out);
  }
  static const node_map scalar = {.known = true};
  for (int i = 0; i < n->num_in; i++) {
    const node_map *use = is_random(n) ? &scalar : is_reduce(n) ? &m->in : &m->out;
    if (!load_of(w, m, i, use, out))
      return false;
  }
  return true;
}

// Loads may split axes, which makes earlier strides stale: repeat until a whole round is quiet.
static bool all_loads(work *w, pendings *out) {
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
static void number_axes(const work *w, domain *d, int *position) {
  d->num_axes = w->order.num;
  for (int i = 0; i < w->order.num; i++) {
    position[w->order.at[i]] = i;
    d->axis[i] = (dom_axis){w->size[w->order.at[i]], w->reduced[w->order.at[i]]};
  }
}

static dom_access access_of_map(const work *w, const ir_node *n, const node_map *m,
                                const int *position) {
  dom_access acc = {0};
  int64_t stride = 1;
  for (int d = n->type.rank - 1; d >= 0; d--)
    for (int i = m->dim[d].num - 1; i >= 0; i--) {
      acc.stride[position[m->dim[d].at[i]]] = stride;
      stride *= w->size[m->dim[d].at[i]];
    }
  return acc;
}

static void finish(work *w, const pendings *loads, const ir_kernel *k, domain *d) {
  int position[MAX_AXES] = {0};
  number_axes(w, d, position);
  d->varies = IR_NEW_ARRAY(w->arena, bool, w->num *DOM_MAX_AXES);
  for (size_t i = 0; i < w->num; i++)
    for (int a = 0; a < w->order.num; a++)
      d->varies[i * DOM_MAX_AXES + (size_t)a] =
          uses_axis(&w->m[i].out, w->m[i].n->type.rank, w->order.at[a]);
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
    if (!is_random(n))
      continue; // (random numbers are counted by element: domain.h)
    dom_load l = {.user = n, .operand = -1, .buffer = n};
    l.access = access_of_map(w, n, &w->m[i].out, position);
    IR_PUSH(w->arena, d->loads, l);
  }
  for (size_t i = 0; k && i < k->outputs.num; i++) {
    ir_node *n = k->outputs.at[i];
    dom_store s = {.node = n, .buffer = n};
    s.access = access_of_map(w, n, &member_of(w, n)->out, position);
    IR_PUSH(w->arena, d->stores, s);
  }
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

static bool contraction_strides(work *w, const ir_node *n, int operand, stride_of_axis *s,
                                dom_layout *l) {
  contraction c = contraction_of(n);
  const node_map *out = &member_of(w, n)->out;
  node_map use = *out;
  if (operand == 0) {
    use.dim[c.a_m] = out->dim[c.rank - 2];
    use.dim[c.a_k] = w->k_axes;
  } else {
    use.dim[c.b_n] = out->dim[c.rank - 1];
    use.dim[c.b_k] = w->k_axes;
  }
  return dom_layout_of(n->in[operand], l) && stable_strides(w, &n->in[operand]->type, &use, l, s);
}

// A split by b makes a's strides stale: goes round until nothing splits.
static bool contraction_align(work *w, stride_of_axis s[2], dom_layout l[2]) {
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

static void seed_k(work *w) {
  int64_t k = w->anchor->in[0]->type.dims[contraction_of(w->anchor).a_k];
  if (k > 1)
    list_push(&w->k_axes, new_axis(w, k));
}

// --- entry points --------------------------------------------------------------------------------
static domain *build(ir_arena *a, ir_node *const *members, size_t num, ir_node *anchor,
                     const ir_kernel *k, work *w) {
  *w = (work){.arena = a, .num = num, .anchor = anchor};
  w->m = IR_NEW_ARRAY(a, member, num);
  for (size_t i = 0; i < num; i++) {
    w->m[i].n = members[i];
    members[i]->mark = (uint32_t)i + 1;
  }
  pendings loads = {0};
  stride_of_axis s[2];
  dom_layout l[2];
  seed_axes(w);
  if (anchor)
    seed_k(w);
  bool ok = !w->too_many && (!anchor || contraction_align(w, s, l)) && spread(w) &&
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
  work w;
  return build(a, members, num, anchor, NULL, &w);
}

static ir_node *matmul_anchor(const ir_kernel *k) {
  return k->family == IR_FAMILY_MATMUL ? k->anchor : NULL;
}

domain *dom_build(ir_arena *a, const ir_kernel *k) {
  work w;
  domain *d = build(a, k->nodes.at, k->nodes.num, matmul_anchor(k), k, &w);
  BUG_IF(!d, "kernel '%s' has no domain", k->name);
  return d;
}

static int count_axes(const node_map *m, int from, int to) {
  int n = 0;
  for (int d = from; d < to; d++)
    n += m->dim[d].num;
  return n;
}

static dom_access operand_access(const work *w, const dom_layout *l, const stride_of_axis *s,
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
  work w;
  domain *again = build(a, k->nodes.at, k->nodes.num, k->anchor, k, &w);
  BUG_IF(!again || again->num_axes != d->num_axes, "kernel '%s': domain changed", k->name);
  for (size_t i = 0; i < w.num; i++)
    w.m[i].n->mark = (uint32_t)i + 1;
  stride_of_axis s[2];
  dom_layout l[2];
  contraction_align(&w, s, l);
  int position[MAX_AXES] = {0};
  number_axes(&w, again, position);
  const node_map *out = &member_of(&w, k->anchor)->out;
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
  mm->num_k_axes = w.k_axes.num;
  for (int i = 0; i < w.k_axes.num; i++)
    mm->k_size[i] = w.size[w.k_axes.at[i]];
  mm->a_access = operand_access(&w, &l[0], &s[0], position, mm->a_k);
  mm->b_access = operand_access(&w, &l[1], &s[1], position, mm->b_k);
  for (size_t i = 0; i < w.num; i++)
    w.m[i].n->mark = 0;
  return mm;
}

// --- inputs and outputs -------------------------------------------------------------------------
void dom_find_outputs(ir_func *f) {
  bool *out = IR_NEW_ARRAY(f->module->arena, bool, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    if (ir_ops[n->op].cls == IR_CLASS_VIEW)
      continue; // a view's users are asked instead
    for (int j = 0; j < n->num_in; j++) {
      ir_node *base = dom_base(n->in[j]);
      out[base->id] |= base->kernel && base->kernel != n->kernel;
    }
  }
  for (size_t i = 0; i < f->results.num; i++)
    out[dom_base(f->results.at[i].node)->id] = true;
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
      bool leaf = base->op == IR_CONST || base->op == IR_IOTA;
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
