// fuse.c: groups nodes into kernels.
//
//   before   %h = matmul %x, %w          after   kernel r matmul anchor=%h {
//            %a = add %h, %bias                    %h = matmul %x, %w
//            %r = max %a, %zero                    %a = add %h, %bias
//                                                  %r = max %a, %zero
//                                                }
//
// Nodes are visited in order; each joins the kernel of one of its operands or starts its own. What
// may share a kernel is decided by two rules only:
//   - the members fit one domain (dom_try): this covers pointwise chains, softmax and norms with
//     all their phases, cross-entropy with its backward, the epilogue of a matmul;
//   - the kernel graph stays acyclic. Each group has a level above those of all groups it reads.
//     A group that nobody reads yet is open: its level may rise. Joining is allowed when the other
//     operands' levels are below the group's, so no search for paths is needed.
//
// A concat whose operands are members of one kernel, or of loops that may become one, is the last member of
// it: they are stored where they lie in the whole, instead of each for itself and then copied.
//
//   before   kernel { di; df }   kernel { z = concat di, df }      after   kernel { di; df; z }
//
// A scatter takes the gather that makes its update, if nobody else uses that: rows are added as they are fetched.
//
//   before   kernel { u = gather x, j }   kernel { s = scatter_add i, u }      after   kernel { u; s }
//
// Kernels that are there already (pass_attention) stay as they are: nothing joins them.
//
// A candidate considered and left: exhaustive or cost-driven grouping (min-cut over edges). The
// greedy rule gives the groups an engineer would write by hand on the networks at hand, in linear
// time.
//
// Needs: no grad nodes; writes and results own their operand (pass_own_outputs).
// Breaks: nothing. Later passes must keep members of a kernel together.
#include "ir/row_update.h"
#include "passes/fuse.h"
#include "passes/users.h"

enum {
  MAX_MEMBERS = 64,
  MAX_PARTS = 8,          // of a concat that is a member
  MIN_PARALLEL = 64,      // rows that a reduction should leave for the threads to share,
  SMALL_WORK = 32 * 1024, // unless the whole kernel has no more elements than this
};

typedef struct group {
  IR_VEC(ir_node *) nodes; // operands first
  ir_family family;
  ir_node *anchor;  // MATMUL, and a SCATTER that fetches
  int level;        // above the levels of all groups it reads
  bool open;        // no other group reads it yet
  int64_t elements; // of its domain
  int64_t reduced;  // elements per result of its reductions; 1 when it has none
  uint32_t first;   // position of its first node
  bool made;        // has become a kernel
  ir_kernel *ready; // was one before
  size_t seen;      // members whose operands are known to have kernels
} group;

typedef struct fuser {
  ir_func *f;
  ir_arena *arena, *scratch;
  group **of; // by node id
  pass_users users;
  IR_VEC(group *) groups;
} fuser;

static int64_t own_elements(const ir_node *n) {
  bool reduce = ir_ops[n->op].cls == IR_CLASS_REDUCE;
  return ir_elements(reduce ? &n->in[0]->type : &n->type);
}

static int64_t reduced_extent(const ir_node *n) {
  return own_elements(n) / ir_elements(&n->type);
}

static bool is_loop_op(const ir_node *n) {
  ir_op_class c = ir_ops[n->op].cls;
  return c == IR_CLASS_POINTWISE || c == IR_CLASS_REDUCE || n->op == IR_GATHER;
}

static bool needs_kernel(const ir_node *n) {
  ir_op_class c = ir_ops[n->op].cls;
  return !n->folded &&
         (is_loop_op(n) || c == IR_CLASS_MOVE || c == IR_CLASS_INDEX || c == IR_CLASS_CONTRACT);
}

static ir_family family_of(const ir_node *n) {
  switch (ir_ops[n->op].cls) {
  case IR_CLASS_CONTRACT:
    return IR_FAMILY_MATMUL;
  case IR_CLASS_MOVE:
    return IR_FAMILY_COPY;
  case IR_CLASS_INDEX:
    return n->op == IR_GATHER ? IR_FAMILY_LOOP : IR_FAMILY_SCATTER;
  default:
    return IR_FAMILY_LOOP;
  }
}

// --- the groups that a node reads -----------------------------------------------------------
typedef struct sources {
  group *at[MAX_PARTS]; // more operands than this only concat has, and that joins nothing then
  int num;
} sources;

static void add_source(sources *s, group *g) {
  for (int i = 0; i < s->num; i++)
    if (s->at[i] == g)
      return;
  if (g && s->num < MAX_PARTS)
    s->at[s->num++] = g;
}

static sources sources_of(const fuser *fu, const ir_node *n) {
  sources s = {0};
  for (int i = 0; i < n->num_in; i++)
    add_source(&s, fu->of[dom_base(n->in[i])->id]);
  return s;
}

// Best first: open matmuls (their tile is in registers), then loops, then matmuls that others
// already read; among equals the highest level, which the others can be below.
static int preference(const group *g) {
  if (g->family == IR_FAMILY_MATMUL)
    return g->open ? 0 : 2;
  return g->family == IR_FAMILY_LOOP ? 1 : 3;
}

static bool before(const group *a, const group *b) {
  int pa = preference(a), pb = preference(b);
  return pa != pb ? pa < pb : a->level != b->level ? a->level > b->level : a->first > b->first;
}

static void sort_sources(sources *s) {
  for (int i = 1; i < s->num; i++)
    for (int j = i; j > 0 && before(s->at[j], s->at[j - 1]); j--) {
      group *t = s->at[j];
      s->at[j] = s->at[j - 1];
      s->at[j - 1] = t;
    }
}

// --- may they share a kernel? ------------------------------------------------------------------
static bool sizes_fit(const group *g, const ir_node *n) {
  int64_t e = own_elements(n);
  if (g->family == IR_FAMILY_MATMUL)
    return ir_ops[n->op].cls == IR_CLASS_POINTWISE && e == g->elements;
  if (ir_ops[n->op].cls == IR_CLASS_REDUCE) {
    int64_t r = reduced_extent(n), rows = g->elements / r;
    return e == g->elements && (g->reduced == 1 || g->reduced == r) &&
           (rows >= MIN_PARALLEL || g->elements <= SMALL_WORK);
  }
  return e == g->elements || (g->reduced > 1 && e * g->reduced == g->elements);
}

static bool reads(const group *g, const ir_node *value) {
  for (size_t i = 0; i < g->nodes.num; i++)
    for (int j = 0; j < g->nodes.at[i]->num_in; j++)
      if (dom_base(g->nodes.at[i]->in[j]) == value)
        return true;
  return false;
}

// Few rows are swept by few threads. What takes no more than a row's sum from the group is better off with others
// that read its operands: of all gradients that the clipping of their norm scales, each with its update.
static bool is_worth_few_threads(const fuser *fu, const group *g, const ir_node *n) {
  int64_t rows = g->elements / g->reduced;
  if (g->reduced == 1 || rows >= MIN_PARALLEL || own_elements(n) < g->elements ||
      ir_ops[n->op].cls != IR_CLASS_POINTWISE)
    return true;
  for (int i = 0; i < n->num_in; i++) {
    const ir_node *value = dom_base(n->in[i]); // of which n may read a part
    if (ir_elements(&value->type) > rows && (fu->of[value->id] == g || reads(g, value)))
      return true;
  }
  return false;
}

static bool only_pointwise(const group *g) {
  for (size_t i = 0; i < g->nodes.num; i++)
    if (ir_ops[g->nodes.at[i]->op].cls != IR_CLASS_POINTWISE)
      return false;
  return true;
}

static bool groups_fit(const group *g, const group *other) {
  if (other->family != IR_FAMILY_LOOP || !other->open)
    return false;
  if (other->elements != g->elements || g->nodes.num + other->nodes.num >= MAX_MEMBERS)
    return false;
  if (g->family == IR_FAMILY_MATMUL && !only_pointwise(other))
    return false;
  if (g->reduced > 1 && other->reduced > 1 && g->reduced != other->reduced)
    return false;
  // A path from g to `other` would close a cycle: there is none when nobody reads g, or when the
  // other's level is not above.
  return g->open || other->level <= g->level;
}

static bool levels_fit(const group *g, const sources *s, const group *absorbed) {
  for (int i = 0; i < s->num; i++)
    if (s->at[i] != g && s->at[i] != absorbed && s->at[i]->level >= g->level && !g->open)
      return false;
  return true;
}

// Members of a, b (may be NULL) and n in function order.
static ir_node_list merged_members(fuser *fu, ir_arena *arena, const group *a, const group *b,
                                   ir_node *n) {
  ir_node_list out = {0};
  size_t i = 0, j = 0, num_b = b ? b->nodes.num : 0;
  while (i < a->nodes.num || j < num_b) {
    bool take_a = j == num_b || (i < a->nodes.num && fu->users.position[a->nodes.at[i]->id] <
                                                         fu->users.position[b->nodes.at[j]->id]);
    ir_node *next = take_a ? a->nodes.at[i++] : b->nodes.at[j++];
    IR_PUSH(arena, out, next);
  }
  if (n)
    IR_PUSH(arena, out, n);
  return out;
}

static bool domain_fits(fuser *fu, const group *a, const group *b, ir_node *n) {
  ir_arena_mark here = ir_arena_here(fu->scratch);
  ir_node_list all = merged_members(fu, fu->scratch, a, b, n);
  bool fits = dom_try(fu->scratch, all.at, all.num, a->anchor) != NULL;
  ir_arena_back(fu->scratch, here);
  return fits;
}

// --- joining ------------------------------------------------------------------------------------
static void raise_level(group *g, const sources *s) {
  for (int i = 0; i < s->num; i++)
    if (s->at[i] != g && s->at[i]->level >= g->level)
      g->level = s->at[i]->level + 1;
}

static void add_node(fuser *fu, group *g, ir_node *n) {
  IR_PUSH(fu->arena, g->nodes, n);
  fu->of[n->id] = g;
  bool joint = dom_is_joint(n) && g->family != IR_FAMILY_COPY; // lies over what parts have
  if (own_elements(n) > g->elements && !joint)
    g->elements = own_elements(n);
  if (ir_ops[n->op].cls == IR_CLASS_REDUCE && reduced_extent(n) > g->reduced)
    g->reduced = reduced_extent(n);
}

static void absorb(fuser *fu, group *g, group *other) {
  ir_node_list all = merged_members(fu, fu->arena, g, other, NULL);
  for (size_t i = 0; i < other->nodes.num; i++)
    fu->of[other->nodes.at[i]->id] = g;
  g->nodes.num = 0;
  for (size_t i = 0; i < all.num; i++)
    IR_PUSH(fu->arena, g->nodes, all.at[i]);
  if (other->level > g->level)
    g->level = other->level;
  if (other->first < g->first)
    g->first = other->first;
  if (other->reduced > g->reduced)
    g->reduced = other->reduced;
  other->nodes.num = 0; // gone
}

static bool join(fuser *fu, group *g, ir_node *n, sources *s) {
  if ((g->family != IR_FAMILY_LOOP && g->family != IR_FAMILY_MATMUL) ||
      g->nodes.num + 1 >= MAX_MEMBERS || !sizes_fit(g, n) || !is_worth_few_threads(fu, g, n) ||
      !levels_fit(g, s, NULL) || !domain_fits(fu, g, NULL, n))
    return false;
  for (int i = 0; i < s->num; i++) {
    group *other = s->at[i];
    if (other != g && groups_fit(g, other) && domain_fits(fu, g, other, n)) {
      absorb(fu, g, other);
      s->at[i] = g;
    }
  }
  add_node(fu, g, n);
  raise_level(g, s);
  return true;
}

// Whether the groups of all parts can be one, with the joint as its last member. They stand at one level: what
// an early one reads would otherwise wait for a late one, in place of its result.
static bool joint_fits(fuser *fu, const group *g, const sources *s, ir_node *n) {
  ir_arena_mark here = ir_arena_here(fu->scratch);
  group all = *g;
  bool fits = g->family == IR_FAMILY_LOOP || g->family == IR_FAMILY_MATMUL;
  for (int i = 0; i < s->num && fits; i++)
    if (s->at[i] != g) {
      fits = s->at[i]->level == g->level && groups_fit(&all, s->at[i]);
      ir_node_list both = merged_members(fu, fu->scratch, &all, s->at[i], NULL);
      all.nodes.at = both.at;
      all.nodes.num = both.num;
      all.reduced = s->at[i]->reduced > all.reduced ? s->at[i]->reduced : all.reduced;
    }
  fits = fits && all.nodes.num < MAX_MEMBERS && domain_fits(fu, &all, NULL, n);
  ir_arena_back(fu->scratch, here);
  return fits;
}

static bool parts_are_members(const fuser *fu, const ir_node *n) {
  for (int i = 0; i < n->num_in; i++)
    if (!fu->of[n->in[i]->id])
      return false;
  return n->num_in > 0;
}

static group *join_joint(fuser *fu, ir_node *n, const sources *s) {
  if (!dom_is_joint(n) || n->num_in > MAX_PARTS || !parts_are_members(fu, n) ||
      !joint_fits(fu, s->at[0], s, n))
    return NULL;
  group *g = s->at[0];
  for (int i = 1; i < s->num; i++)
    absorb(fu, g, s->at[i]);
  add_node(fu, g, n);
  return g;
}

static group *join_fetch(fuser *fu, ir_node *n, const sources *s) {
  if (!ir_is_scatter(n) || !ir_can_fetch(n->in[1], n) || !fuse_can_fetch(n->in[1]))
    return NULL;
  const ir_node *gather = n->in[1];
  group *g = fu->of[gather->id];
  if (!g || g->nodes.num > 1 || g->ready || !g->open || fu->users.of[gather->id].num > 1 ||
      fu->users.is_result[gather->id])
    return NULL;
  g->family = IR_FAMILY_SCATTER;
  g->anchor = n;
  add_node(fu, g, n);
  raise_level(g, s);
  return g;
}

static group *new_group(fuser *fu, ir_node *n) {
  group *g = IR_NEW(fu->arena, group);
  g->family = family_of(n);
  g->anchor = g->family == IR_FAMILY_MATMUL ? n : NULL;
  g->open = true;
  g->reduced = 1;
  g->first = fu->users.position[n->id];
  add_node(fu, g, n);
  IR_PUSH(fu->arena, fu->groups, g);
  return g;
}

// What `n`, of group `mine`, reads: below it, and closed from now on.
static void close_sources(fuser *fu, group *mine, const ir_node *n) {
  for (int i = 0; i < n->num_in; i++) {
    group *below = fu->of[dom_base(n->in[i])->id];
    if (below && below != mine) {
      below->open = false;
      if (below->level >= mine->level) // concat: more operands than `sources` holds
        mine->level = below->level + 1;
    }
  }
}

static void place(fuser *fu, ir_node *n) {
  sources s = sources_of(fu, n);
  sort_sources(&s);
  group *mine = NULL;
  for (int i = 0; is_loop_op(n) && i < s.num && !mine; i++)
    mine = join(fu, s.at[i], n, &s) ? fu->of[n->id] : NULL;
  if (!mine)
    mine = join_joint(fu, n, &s);
  if (!mine)
    mine = join_fetch(fu, n, &s);
  if (!mine) {
    mine = new_group(fu, n);
    raise_level(mine, &s);
  }
  close_sources(fu, mine, n);
}

// All members of a kernel that is there already, when the last of them is reached.
static void place_kernel(fuser *fu, ir_kernel *k) {
  group *g = IR_NEW(fu->arena, group);
  g->family = k->family;
  g->anchor = k->anchor;
  g->ready = k;
  g->reduced = 1;
  g->first = fu->users.position[k->nodes.at[0]->id];
  for (size_t i = 0; i < k->nodes.num; i++)
    add_node(fu, g, k->nodes.at[i]);
  for (size_t i = 0; i < k->nodes.num; i++)
    close_sources(fu, g, k->nodes.at[i]);
  IR_PUSH(fu->arena, fu->groups, g);
}

// --- kernels -------------------------------------------------------------------------------------
static void make_kernel(fuser *fu, const group *g) {
  ir_arena *arena = fu->f->module->arena;
  if (g->ready) {
    g->ready->id = (uint32_t)fu->f->kernels.num;
    IR_PUSH(arena, fu->f->kernels, g->ready);
    return;
  }
  ir_kernel *k = IR_NEW(arena, ir_kernel);
  ir_node *last = g->nodes.at[g->nodes.num - 1];
  k->family = g->family;
  k->anchor = g->anchor ? g->anchor : last;
  k->name = last->name;
  k->id = (uint32_t)fu->f->kernels.num;
  for (size_t i = 0; i < g->nodes.num; i++) {
    IR_PUSH(arena, k->nodes, g->nodes.at[i]);
    g->nodes.at[i]->kernel = k;
  }
  IR_PUSH(arena, fu->f->kernels, k);
}

// The next group that g reads and that has no kernel yet.
static group *unmade_source(const fuser *fu, group *g) {
  for (; g->seen < g->nodes.num; g->seen++) {
    const ir_node *n = g->nodes.at[g->seen];
    for (int i = 0; i < n->num_in; i++) {
      group *from = fu->of[dom_base(n->in[i])->id];
      if (from && from != g && !from->made)
        return from;
    }
  }
  return NULL;
}

// Source order, except that what a kernel reads comes first (depth first, with a stack of its own:
// chains are as long as programs).
static void make_kernels(fuser *fu) {
  IR_VEC(group *) stack = {0};
  for (size_t i = 0; i < fu->groups.num; i++) {
    IR_PUSH(fu->arena, stack, fu->groups.at[i]);
    while (stack.num) {
      group *g = stack.at[stack.num - 1];
      group *from = g->made || !g->nodes.num ? NULL : unmade_source(fu, g);
      if (from) {
        IR_PUSH(fu->arena, stack, from);
        continue;
      }
      stack.num--;
      if (!g->made && g->nodes.num)
        make_kernel(fu, g);
      g->made = true;
    }
  }
}

static void fuse_func(ir_func *f) {
  fuse_make_viewable(f);
  fuse_fold_conversions(f);
  fuser fu = {.f = f, .arena = ir_arena_new(), .scratch = ir_arena_new()};
  fu.of = IR_NEW_ARRAY(fu.arena, group *, f->next_id);
  fu.users = pass_find_users(fu.arena, f);
  for (size_t i = 0; i < f->nodes.num; i++)
    f->nodes.at[i]->mark = 0;
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    if (n->kernel && n == n->kernel->nodes.at[n->kernel->nodes.num - 1])
      place_kernel(&fu, n->kernel);
    else if (needs_kernel(n) && !n->kernel)
      place(&fu, n);
  }
  f->kernels.num = 0;
  make_kernels(&fu);
  ir_arena_free(fu.scratch);
  ir_arena_free(fu.arena);
  fuse_relist(f);
  dom_find_outputs(f);
}

bool pass_fuse(ir_module *m, ir_diags *d) {
  bool changed = false;
  for (size_t i = 0; i < m->funcs.num; i++) {
    ir_func *f = m->funcs.at[i];
    if (ir_is_fused(f)) { // read from a text that was
      fuse_check_kernels(f, d);
      dom_find_outputs(f);
      continue;
    }
    fuse_func(f);
    changed = true;
  }
  return changed;
}
