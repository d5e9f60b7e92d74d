// recompute.c: values that are cheaper to compute again than to keep.
//
// After fusion, a forward kernel often stores several versions of one tensor for the backward:
//
//   before   kernel gelu matmul { h = ..; a = 0.5*h; e = 1+erf(h/r); y = a*e }    stores a, e, y
//            kernel d matmul { g = ..; d = g*a + .. e .. }                        loads a, e
//   after    kernel gelu matmul { h = ..; a = ..; e = ..; y = a*e }               stores h, y
//            kernel d matmul { a2 = 0.5*h; e2 = 1+erf(h/r); g = ..; d = .. }      loads h
//
// For each kernel, one member (the stem: h above, the mean of a norm's rows, or none) is chosen
// such that storing it instead of what can be computed from it saves the most bytes. A value counts
// only when all its users can take the computation in (pointwise code and reductions, not the
// operands of a matmul), when that costs few FLOPs per element (very few where many rows share
// it and each would compute it), and what it is computed from costs its own bytes when it would
// have to live longer for it.
//
// The rule never makes memory worse by its own count, always saves a store, and moves no more
// bytes. Choosing by a byte budget is another pass's matter.
//
// Needs: pass_fuse. Keeps: kernels, their domains (each change is tried with dom_try first).
#include "passes/again.h"

enum {
  MAX_FLOPS = 32,     // per element of a value that is computed again
  REPEATED_FLOPS = 4, // the same where it is computed for each row, head, sample that shares it
  SMALL_BYTES = 4096, // what is not worth a thought
  SMALL_PART = 16,    // where a kernel goes through so many times as much
  MASK_DEPTH = 4,     // operations from positions to a mask of them
  MAX_CHAIN = 24,
  MAX_ROUNDS = 8, // what one round leaves is seldom worth more than two others
};

typedef IR_VEC(ir_kernel *) kernel_list;

typedef struct recompute {
  again g;
  ir_arena *arena;   // scratch
  int64_t *largest;  // [kernel id] bytes of the largest value that it computes or sums
  kernel_list users; // of the value that was asked for last
  uint32_t *seen;    // [kernel id] == stamp: it is among those at hand
  uint32_t stamp;
} recompute;

static int64_t largest_of(const ir_kernel *k) {
  int64_t most = 0;
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    bool sums = ir_ops[n->op].cls == IR_CLASS_REDUCE;
    int64_t bytes = ir_bytes(sums ? &n->in[0]->type : &n->type);
    most = bytes > most ? bytes : most;
  }
  return most;
}

// A step of a recurrence, or a small batch, has small values only.
static bool is_small(const recompute *r, const ir_node *v, const ir_kernel *in) {
  int64_t bytes = ir_bytes(&v->type);
  return bytes < SMALL_BYTES && bytes < r->largest[in->id] / SMALL_PART;
}

static bool is_small_for_users(const recompute *r, const ir_node *v) {
  for (size_t i = 0; i < r->g.users[v->id].num; i++)
    if (is_small(r, v, r->g.users[v->id].at[i].user->kernel))
      return true;
  return false;
}

static bool can_take_in(const again_use *u) {
  const ir_kernel *k = u->user->kernel;
  ir_op_class c = ir_ops[u->user->op].cls;
  bool random = ir_is_random(u->user);
  return (k->family == IR_FAMILY_LOOP || k->family == IR_FAMILY_MATMUL) && !random &&
         (c == IR_CLASS_POINTWISE || c == IR_CLASS_REDUCE);
}

// A mask of positions: where it is used it takes no load at all.
static bool is_of_positions(const ir_node *v, int depth) {
  if (ir_is_generated(v))
    return true;
  bool all = depth > 0 && again_is_pointwise(v);
  for (int i = 0; all && i < v->num_in; i++)
    all = is_of_positions(dom_base(v->in[i]), depth - 1);
  return all;
}

static bool is_candidate(const recompute *r, const ir_node *v) {
  if (!again_is_pointwise(v) || r->g.pinned[v->id])
    return false;
  if (is_small_for_users(r, v) && !is_of_positions(v, MASK_DEPTH))
    return false;
  for (size_t i = 0; i < r->g.users[v->id].num; i++)
    if (!can_take_in(&r->g.users[v->id].at[i]))
      return false;
  return r->g.users[v->id].num > 0;
}

// --- chains -------------------------------------------------------------------------------------
// What computing v again takes: members of its kernel, operands first, and the values they start
// from.
typedef struct chain {
  const ir_kernel *k;
  const ir_node *stem;
  bool *kept; // [id] outputs that stay in memory
  ir_node_list nodes, bases;
  int flops;
  bool ok;
} chain;

static void follow(recompute *r, chain *c, ir_node *n, bool top) {
  if (!c->ok || ir_has_node(&c->nodes, n) || ir_has_node(&c->bases, n))
    return;
  bool base = n->kernel != c->k || n == c->stem || (!top && c->kept[n->id]) ||
              (!again_is_pointwise(n) && ir_bytes(&n->type) < SMALL_BYTES);
  if (base) {
    if (!ir_is_generated(n))
      IR_PUSH(r->arena, c->bases, n);
    return;
  }
  c->ok = again_is_pointwise(n) && c->nodes.num < MAX_CHAIN;
  for (int i = 0; c->ok && i < n->num_in; i++)
    follow(r, c, dom_base(n->in[i]), false);
  c->flops += ir_ops[n->op].flops;
  IR_PUSH(r->arena, c->nodes, n);
  c->ok = c->ok && c->flops <= MAX_FLOPS;
}

static chain chain_of(recompute *r, ir_node *v, const ir_node *stem, bool *kept) {
  chain c = {.k = v->kernel, .stem = stem, .kept = kept, .ok = true};
  follow(r, &c, v, true);
  return c;
}

// Bytes that must live longer so that `v` can be computed where it is used: bases that nothing
// reads that late, and members that are not stored today.
static int64_t price(const recompute *r, const chain *c, const ir_node *v, ir_node_list *paid) {
  int64_t bytes = 0;
  int needed = 0;
  for (size_t i = 0; i < r->g.users[v->id].num; i++) {
    int at = (int)r->g.users[v->id].at[i].user->kernel->id;
    needed = at > needed ? at : needed;
  }
  for (size_t i = 0; i < c->bases.num; i++) {
    ir_node *b = c->bases.at[i];
    if (b->op == IR_READ || b->op == IR_INPUT || ir_has_node(paid, b))
      continue;
    bool stored = b->kernel == c->k ? c->kept[b->id] : r->g.last_use[b->id] >= needed;
    if (!stored) {
      bytes += ir_bytes(&b->type);
      IR_PUSH(r->arena, *paid, b);
    }
  }
  return bytes;
}

// Whether loops over other rows lie outside those over v: a table of angles [t, c] that all samples and
// heads share. What a row has in common, [b, t, 1], is computed once for the row.
static bool is_repeated(const ir_node *operand) {
  for (const ir_node *n = operand; ir_ops[n->op].cls == IR_CLASS_VIEW; n = n->in[0]) {
    const ir_type *from = &n->in[0]->type, *to = &n->type;
    bool outside = false;
    for (int i = 0; n->op == IR_BROADCAST && i < to->rank; i++) {
      if (outside && from->dims[i] > 1)
        return true;
      outside |= to->dims[i] > from->dims[i];
    }
  }
  return false;
}

// More work than a load from a cache.
static bool repeats_work(const recompute *r, const chain *c, const ir_node *v) {
  const again_uses *list = &r->g.users[v->id];
  for (size_t i = 0; i < list->num && c->flops > REPEATED_FLOPS; i++)
    if (is_repeated(list->at[i].user->in[list->at[i].operand]))
      return true;
  return false;
}

// Kernels that use `v`, each once; until the next call.
static const kernel_list *user_kernels(recompute *r, const ir_node *v) {
  const again_uses *list = &r->g.users[v->id];
  r->stamp++;
  r->users.num = 0;
  for (size_t i = 0; i < list->num; i++) {
    ir_kernel *k = list->at[i].user->kernel;
    if (r->seen[k->id] != r->stamp)
      IR_PUSH(r->arena, r->users, k);
    r->seen[k->id] = r->stamp;
  }
  return &r->users;
}

// Of these kernels, those that do not load `n` anyway.
static int64_t count_new_loads(const recompute *r, const kernel_list *kernels, const ir_node *n) {
  int64_t num = 0;
  for (size_t i = 0; i < kernels->num; i++)
    num += !again_has_read(&r->g, n, kernels->at[i]);
  return num;
}

// Bytes moved more (less, when negative) when all users of `v` load its bases and compute it. A
// residual stream must not become the sum of all layers in each of its users.
static int64_t traffic(recompute *r, const chain *c, const ir_node *v) {
  const kernel_list *kernels = user_kernels(r, v);
  int64_t bytes = -ir_bytes(&v->type) * (1 + (int64_t)kernels->num); // the store and the loads
  for (size_t i = 0; i < c->bases.num; i++)
    bytes += ir_bytes(&c->bases.at[i]->type) * count_new_loads(r, kernels, c->bases.at[i]);
  return bytes;
}

// --- choosing the stem ---------------------------------------------------------------------------
typedef struct choice {
  const ir_node *stem;
  ir_node_list removed;
  int64_t gain;
} choice;

// Everything stays that is no candidate.
static void mark_kept(recompute *r, const ir_kernel *k, bool *kept, const ir_node *stem) {
  for (size_t i = 0; i < k->nodes.num; i++)
    kept[k->nodes.at[i]->id] = false;
  for (size_t i = 0; i < k->outputs.num; i++) {
    ir_node *v = k->outputs.at[i];
    kept[v->id] = v == stem || !is_candidate(r, v);
  }
}

static bool is_output(const ir_kernel *k, const ir_node *n) {
  for (size_t i = 0; i < k->outputs.num; i++)
    if (k->outputs.at[i] == n)
      return true;
  return false;
}

static choice try_stem(recompute *r, const ir_kernel *k, const ir_node *stem, bool *kept) {
  choice x = {.stem = stem};
  ir_node_list paid = {0};
  mark_kept(r, k, kept, stem);
  if (stem && !is_output(k, stem)) {
    x.gain -= ir_bytes(&stem->type);
    IR_PUSH(r->arena, paid, (ir_node *)(uintptr_t)stem);
  }
  for (size_t i = 0; i < k->outputs.num; i++) {
    ir_node *v = k->outputs.at[i];
    if (kept[v->id] || v == stem)
      continue;
    chain c = chain_of(r, v, stem, kept);
    if (!c.ok || traffic(r, &c, v) > 0 || repeats_work(r, &c, v))
      continue; // stays; later chains cannot lean on it, which is only cautious
    x.gain += ir_bytes(&v->type) - price(r, &c, v, &paid);
    IR_PUSH(r->arena, x.removed, v);
  }
  return x;
}

// What saves more bytes; where that is about the same, fewer stores, and of those the latest member:
// the least is computed again.
static bool is_better(const choice *x, const choice *best) {
  int64_t near = (x->gain > best->gain ? x->gain : best->gain) / 16;
  if (x->removed.num >= best->removed.num)
    return x->gain >= best->gain - near;
  return x->gain > best->gain + near;
}

static choice best_choice(recompute *r, const ir_kernel *k, bool *kept) {
  choice best = try_stem(r, k, NULL, kept);
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *s = k->nodes.at[i];
    if (is_small(r, s, k))
      continue;
    choice x = try_stem(r, k, s, kept);
    if (is_better(&x, &best))
      best = x;
  }
  return best;
}

// Redirects the uses of v inside kernel `into`. False, with everything as it was, when the kernel
// has no domain then. Without `adopt` it is as it was in any case.
static bool move_into(recompute *r, const chain *c, ir_node *v, ir_kernel *into, bool adopt) {
  again_clones x = again_clone_in_front(&r->g, &c->nodes, into);
  again_uses *list = &r->g.users[v->id];
  size_t before = r->g.redirected.num;
  for (size_t i = 0; i < list->num; i++) {
    again_use u = list->at[i];
    if (u.user->kernel == into)
      again_redirect(&r->g, u, again_with_clones(&x, u.user->in[u.operand]));
  }
  bool fits = again_fits(&x);
  if (fits && adopt)
    again_adopt(&x);
  else
    again_take_back(&r->g, before);
  return fits;
}

// While one user loads v it is stored, and what the others load instead comes on top. Of a single one moving tells.
static bool all_can_take(recompute *r, const chain *c, ir_node *v, const kernel_list *kernels) {
  for (size_t i = 0; i < kernels->num && kernels->num > 1; i++)
    if (!move_into(r, c, v, kernels->at[i], false))
      return false;
  return true;
}

static void remove_value(recompute *r, const choice *x, ir_node *v, bool *kept) {
  chain c = chain_of(r, v, x->stem, kept);
  const kernel_list *kernels = user_kernels(r, v);
  kept[v->id] = !all_can_take(r, &c, v, kernels);
  for (size_t i = 0; i < kernels->num && !kept[v->id]; i++) {
    ir_kernel *into = kernels->at[i];
    kept[v->id] = !move_into(r, &c, v, into, true);
    for (size_t j = 0; j < c.bases.num; j++)
      if ((int)into->id > r->g.last_use[c.bases.at[j]->id])
        r->g.last_use[c.bases.at[j]->id] = (int)into->id;
  }
}

static void visit(recompute *r, ir_kernel *k, bool *kept) {
  size_t candidates = 0;
  if (k->family == IR_FAMILY_ATTENTION)
    return; // its inner values are never to be stored
  for (size_t i = 0; i < k->outputs.num; i++)
    candidates += is_candidate(r, k->outputs.at[i]);
  if (candidates == 0)
    return;
  choice x = best_choice(r, k, kept);
  if (x.gain < 0 || x.removed.num == 0)
    return;
  mark_kept(r, k, kept, x.stem);
  for (size_t i = 0; i < x.removed.num; i++)
    remove_value(r, &x, x.removed.at[i], kept);
}

static bool recompute_func(ir_func *f) {
  if (f->kernels.num == 0 || f->ordered)
    return false;
  ir_arena *a = ir_arena_new();
  recompute r = {.g = again_look_at(f, a), .arena = a};
  bool *kept = IR_NEW_ARRAY(a, bool, f->next_id);
  r.largest = IR_NEW_ARRAY(a, int64_t, f->kernels.num);
  r.seen = IR_NEW_ARRAY(a, uint32_t, f->kernels.num);
  for (size_t i = 0; i < f->kernels.num; i++)
    r.largest[f->kernels.at[i]->id] = largest_of(f->kernels.at[i]);
  // Last kernel first: what it takes in then counts as a use of the bases.
  for (size_t i = f->kernels.num; i-- > 0;)
    visit(&r, f->kernels.at[i], kept);
  bool changed = again_finish(&r.g);
  ir_arena_free(a);
  return changed;
}

// Until nothing changes, so that IR that went through here once is left as it is.
bool pass_recompute(ir_module *m, ir_diags *d) {
  (void)d;
  bool changed = false;
  for (size_t i = 0; i < m->funcs.num; i++)
    for (int round = 0; round < MAX_ROUNDS && recompute_func(m->funcs.at[i]); round++)
      changed = true;
  return changed;
}
