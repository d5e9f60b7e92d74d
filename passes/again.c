// again.c: see again.h.
#include "passes/again.h"

#include <string.h>

enum { MAX_MEMBERS = 96 };

// --- who uses what ------------------------------------------------------------------------------
// How many of the readers come before the kernel.
static size_t find_reader(const again_readers *r, uint32_t kernel) {
  size_t low = 0, high = r->num;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (r->at[middle] < kernel)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool again_has_read(const again *g, const ir_node *n, const ir_kernel *k) {
  const again_readers *r = &g->readers[n->id];
  size_t at = find_reader(r, k->id);
  return at < r->num && r->at[at] == k->id;
}

static void add_use(again *g, const ir_node *base, again_use u) {
  again_readers *r = &g->readers[base->id];
  IR_PUSH(g->arena, g->users[base->id], u);
  if (again_has_read(g, base, u.user->kernel))
    return;
  size_t at = find_reader(r, u.user->kernel->id);
  IR_PUSH(g->arena, *r, 0);
  memmove(&r->at[at + 1], &r->at[at], sizeof *r->at * (r->num - 1 - at));
  r->at[at] = u.user->kernel->id;
}

static void find_uses(again *g) {
  for (size_t i = 0; i < g->f->nodes.num; i++) {
    ir_node *n = g->f->nodes.at[i];
    if (ir_ops[n->op].cls == IR_CLASS_VIEW)
      continue;
    for (int j = 0; j < n->num_in; j++) {
      ir_node *base = dom_base(n->in[j]);
      if (n->op == IR_WRITE)
        g->pinned[base->id] = true;
      if (!n->kernel)
        continue;
      if ((int)n->kernel->id > g->last_use[base->id])
        g->last_use[base->id] = (int)n->kernel->id;
      again_use u = {n, j};
      if (base->kernel != n->kernel)
        add_use(g, base, u);
    }
  }
  for (size_t i = 0; i < g->f->results.num; i++)
    g->pinned[dom_base(g->f->results.at[i].node)->id] = true;
}

again again_look_at(ir_func *f, ir_arena *scratch) {
  again g = {.f = f, .arena = scratch, .num_ids = f->next_id};
  g.users = IR_NEW_ARRAY(scratch, again_uses, f->next_id);
  g.readers = IR_NEW_ARRAY(scratch, again_readers, f->next_id);
  g.pinned = IR_NEW_ARRAY(scratch, bool, f->next_id);
  g.last_use = IR_NEW_ARRAY(scratch, int, f->next_id);
  for (uint32_t i = 0; i < f->next_id; i++)
    g.last_use[i] = -1;
  find_uses(&g);
  return g;
}

// --- uses ---------------------------------------------------------------------------------------
void again_redirect(again *g, again_use use, ir_node *to) {
  ir_node **in = &use.user->in[use.operand];
  if (*in == to)
    return;
  again_redirected r = {use, *in};
  IR_PUSH(g->arena, g->redirected, r);
  *in = to;
}

static void take_back(again_redirected *r) {
  if (r->before)
    r->use.user->in[r->use.operand] = r->before;
  r->before = NULL;
}

void again_take_back(again *g, size_t from) {
  while (g->redirected.num > from)
    take_back(&g->redirected.at[--g->redirected.num]);
}

// --- what computes the same ------------------------------------------------------------------------
static bool is_same_value(const ir_node *a, const ir_node *b) {
  while (a != b && ir_ops[a->op].cls == IR_CLASS_VIEW && ir_same_work(a, b)) {
    a = a->in[0];
    b = b->in[0];
  }
  return a == b;
}

// Whether `m` computes what `n` does, of these operands.
static bool computes(const ir_node *m, const ir_node *n, ir_node *const *in) {
  bool same = ir_same_work(m, n);
  for (int j = 0; same && j < n->num_in; j++)
    same = is_same_value(m->in[j], in[j]);
  return same;
}

// Clones of several values for one kernel begin with the same steps, each with its own:
//
//   before   kernel { e = exp(x); a = sin(e); e2 = exp(x); b = cos(e2); .. }
//   after    kernel { e = exp(x); a = sin(e); b = cos(e); .. }
//
// Members are in order here, so that what takes a later one finds the earlier one above it.
typedef struct again_merge {
  again *g;
  again_uses *takers; // [id] of members beside clones, through no view; views are takers themselves
} again_merge;

static bool has_clones(const again *g, const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++)
    if (k->nodes.at[i]->id >= g->num_ids)
      return true;
  return false;
}

static void add_takers(const again_merge *m, ir_node *n, const bool *cloned) {
  for (int j = 0; j < n->num_in; j++) {
    again_use u = {n, j};
    if (n->in[j]->kernel && cloned[n->in[j]->kernel->id])
      IR_PUSH(m->g->arena, m->takers[n->in[j]->id], u);
  }
}

static again_merge merge_begin(again *g, const bool *cloned) {
  again_merge m = {g, IR_NEW_ARRAY(g->arena, again_uses, g->f->next_id)};
  for (size_t i = 0; i < g->f->nodes.num; i++)
    add_takers(&m, g->f->nodes.at[i], cloned);
  return m;
}

static ir_node *find_earlier(const ir_node_list *members, const ir_node *n) {
  for (size_t i = 0; i < members->num; i++)
    if (computes(members->at[i], n, n->in))
      return members->at[i];
  return NULL;
}

// Not where the kernel has no domain then: what computes the same may do so along other axes.
static void merge_in(again_merge *m, const ir_kernel *k) {
  again *g = m->g;
  size_t before = g->redirected.num;
  ir_node_list left = {0};
  for (size_t i = 0; i < k->nodes.num; i++) {
    ir_node *n = k->nodes.at[i];
    bool stays = n == k->anchor || (n->id < g->num_ids && g->pinned[n->id]);
    ir_node *first = stays ? NULL : find_earlier(&left, n);
    n->mark = 0;
    if (!first)
      IR_PUSH(g->arena, left, n);
    for (size_t j = 0; first && j < m->takers[n->id].num; j++)
      again_redirect(g, m->takers[n->id].at[j], first);
  }
  ir_node *anchor = k->family == IR_FAMILY_MATMUL ? k->anchor : NULL;
  if (left.num < k->nodes.num && !dom_try(g->arena, left.at, left.num, anchor))
    again_take_back(g, before);
}

static void merge_clones(again *g) {
  bool *cloned = IR_NEW_ARRAY(g->arena, bool, g->f->kernels.num + 1);
  for (size_t i = 0; i < g->f->kernels.num; i++)
    cloned[g->f->kernels.at[i]->id] = has_clones(g, g->f->kernels.at[i]);
  again_merge m = merge_begin(g, cloned);
  for (size_t i = 0; i < g->f->kernels.num; i++)
    if (cloned[g->f->kernels.at[i]->id])
      merge_in(&m, g->f->kernels.at[i]);
}

// --- what is left ---------------------------------------------------------------------------------
static bool fits_without_dead(const again *g, const ir_kernel *k, const bool *live) {
  ir_node_list left = {0};
  bool has_anchor = false;
  for (size_t i = 0; i < k->nodes.num; i++) {
    ir_node *n = k->nodes.at[i];
    n->mark = 0;
    if (!live[n->id])
      continue;
    has_anchor |= n == k->anchor;
    IR_PUSH(g->arena, left, n);
  }
  if (left.num == 0 || left.num == k->nodes.num)
    return true;
  bool is_matmul = k->family == IR_FAMILY_MATMUL;
  return (has_anchor || !is_matmul) &&
         dom_try(g->arena, left.at, left.num, is_matmul ? k->anchor : NULL) != NULL;
}

// Its members are those that it had at first, and its users take them. False: they were already.
static bool undo(again *g, const ir_kernel *k) {
  bool undone = false;
  for (size_t i = g->redirected.num; i-- > 0;) {
    again_redirected *r = &g->redirected.at[i];
    if (!r->before || (dom_base(r->before)->kernel != k && r->use.user->kernel != k))
      continue;
    take_back(r);
    undone = true;
  }
  return undone;
}

static bool undo_misfits(again *g) {
  ir_arena_mark here = ir_arena_here(g->arena);
  const bool *live = ir_find_live(g->arena, g->f);
  bool undone = false;
  for (size_t i = 0; i < g->f->kernels.num; i++) {
    const ir_kernel *k = g->f->kernels.at[i];
    if ((k->family == IR_FAMILY_LOOP || k->family == IR_FAMILY_MATMUL) &&
        !fits_without_dead(g, k, live))
      undone |= undo(g, k);
  }
  ir_arena_back(g->arena, here);
  return undone;
}

bool again_finish(again *g) {
  if (g->f->next_id == g->num_ids && g->redirected.num == 0)
    return false; // also clones of moves that failed, which nothing uses, are clones
  do
    fuse_relist(g->f);
  while (undo_misfits(g));
  merge_clones(g);
  ir_drop_dead(g->f);
  dom_find_outputs(g->f);
  for (size_t i = 0; i < g->redirected.num; i++)
    if (g->redirected.at[i].before)
      return true;
  return false;
}

// --- clones -------------------------------------------------------------------------------------
static ir_node *find_clone(const again_clones *x, const ir_node *n) {
  for (size_t i = 0; i < x->from.num; i++)
    if (x->from.at[i] == n)
      return x->to.at[i];
  return NULL;
}

ir_node *again_with_clones(again_clones *x, ir_node *n) {
  if (ir_ops[n->op].cls != IR_CLASS_VIEW) {
    ir_node *clone = find_clone(x, n);
    return clone ? clone : n;
  }
  ir_node *below = again_with_clones(x, n->in[0]);
  return below == n->in[0] ? n : ir_build_like(&x->b, n, &below);
}

// A member that computes what `n` does, of these operands.
static ir_node *find_member(const again_clones *x, const ir_node *n, ir_node *const *in) {
  for (size_t i = 0; x->behind && i < x->into->nodes.num; i++)
    if (computes(x->into->nodes.at[i], n, in))
      return x->into->nodes.at[i];
  return NULL;
}

static void clone_nodes(again_clones *x, const ir_node_list *nodes) {
  for (size_t i = 0; i < nodes->num; i++) {
    ir_node *n = nodes->at[i], *in[3];
    for (int j = 0; j < n->num_in; j++)
      in[j] = again_with_clones(x, n->in[j]);
    ir_node *clone = find_member(x, n, in);
    if (!clone) {
      clone = ir_build_like(&x->b, n, in);
      IR_PUSH(x->g->arena, x->fresh, clone);
    }
    IR_PUSH(x->g->arena, x->from, n);
    IR_PUSH(x->g->arena, x->to, clone);
  }
}

again_clones again_clone_in_front(again *g, const ir_node_list *nodes, ir_kernel *into) {
  again_clones x = {.g = g, .into = into, .b = ir_build_at_end(g->f)};
  clone_nodes(&x, nodes);
  return x;
}

again_clones again_clone_behind(again *g, const ir_node_list *nodes, ir_kernel *into) {
  again_clones x = {.g = g, .into = into, .behind = true, .b = ir_build_at_end(g->f)};
  clone_nodes(&x, nodes);
  return x;
}

static ir_node_list all_members(const again_clones *x, ir_arena *a) {
  size_t num = x->into->nodes.num, fresh = x->fresh.num, in_front = x->behind ? num : fresh;
  ir_node_list all = {0};
  for (size_t i = 0; i < num + fresh; i++) {
    bool first = i < in_front;
    size_t at = first ? i : i - in_front;
    ir_node *n = first == x->behind ? x->into->nodes.at[at] : x->fresh.at[at];
    IR_PUSH(a, all, n);
  }
  return all;
}

bool again_fits(const again_clones *x) {
  ir_arena_mark here = ir_arena_here(x->g->arena);
  ir_node_list all = all_members(x, x->g->arena);
  for (size_t i = 0; i < all.num; i++)
    all.at[i]->mark = 0;
  ir_node *anchor = x->into->family == IR_FAMILY_MATMUL ? x->into->anchor : NULL;
  bool fits = all.num <= MAX_MEMBERS && dom_try(x->g->arena, all.at, all.num, anchor) != NULL;
  ir_arena_back(x->g->arena, here);
  return fits;
}

static void note_uses(again *g, ir_node *clone) {
  for (int i = 0; i < clone->num_in; i++) {
    ir_node *base = dom_base(clone->in[i]);
    again_use u = {clone, i};
    if (base->kernel != clone->kernel)
      add_use(g, base, u);
  }
}

void again_adopt(again_clones *x) {
  ir_node_list all = all_members(x, x->g->f->module->arena);
  for (size_t i = 0; i < x->fresh.num; i++)
    x->fresh.at[i]->kernel = x->into;
  for (size_t i = 0; i < x->fresh.num; i++)
    note_uses(x->g, x->fresh.at[i]);
  x->into->nodes = all;
}
