// remake.c: what the backward pass multiplies by is made again there, where that takes next to nothing.
//
//   before   kernel y matmul { %h = matmul %x, %w;  %y = gelu %h }      stores h, y
//            kernel d.h matmul { %g = matmul %d, %v;  %d.h = .. %h .. }  loads h
//            kernel d.v matmul { %d.v = matmul %y, %d }                  loads y
//   after    kernel y matmul { %h = ..;  %y = .. }                       y has no memory from here ..
//            kernel d.h matmul { %y.2 = gelu %h;  %g = ..;  %d.h = .. }  .. to here
//            kernel d.v matmul { %d.v = matmul %y.2, %d }
//
// recompute.c takes computations into those that use them; operands of matmuls, of copies and of other
// kernels must be in memory, and wait there for the whole way from the forward pass to the backward pass.
// Such a value is made again if it is computed, element by element, from what is in memory that late
// anyway: states, inputs, values that the backward pass reads, and what is small beside it. A kernel
// that reads one of these does it besides, if its domain allows; else a kernel of its own does, if that
// takes little time beside those that read it.
//
// What it is made from may be made again, too, and then earlier: of a residual stream, h + f(h), each value from the one before.
// None is made far ahead of the first that needs it for something else. Else all of the stream would be made
// where the backward pass begins, when it is in memory as if it had waited, and no policy could drop any of it.
//
// More bytes are moved than before: one store. Those that wait are fewer where the most wait, at the end
// of the forward pass.
//
// All that waits for this is in the way of a policy that would drop it. With `config remake = "little"` only kernels that sum up do
// it, whose sums could come out in another order without: either way the numbers are the same, to the bit.
//
// Needs: pass_recompute. Keeps: kernels, their domains (each change is tried with dom_try first).
#include "passes/again.h"
#include "passes/losses.h"
#include "passes/cost.h"

#include <stdlib.h>
#include <string.h>

enum {
  MAX_FLOPS = 48, // per element
  MAX_NODES = 24,
  LEAST_BYTES = 16384, // what is not worth a thought
  NEAR = 12,           // kernels between where a value is made and the first that needs it
  SHARE_OF_TIME = 8,   // of the kernels that read it, for a kernel of its own
};

typedef IR_VEC(ir_kernel *) kernel_list;
typedef struct remake {
  again g;
  ir_arena *arena; // scratch
  int forward;     // the last kernel of the forward pass
  bool *needs;     // [id] of nodes before the first clone: used for more than to make values again
  bool little;     // nothing is made but where kernels sum up
  kernel_list *before; // [kernel] those that are new and run before it, last ones first
} remake;

// What is to be made again.
typedef struct waiting {
  ir_node *v;
  ir_node_list nodes, bases; // computed, operands first; in memory
  int first, early;          // the first kernel that reads v late; the last that does early
  int needed;                // the first late one that does not read it to make another value again
  int until;                 // so long bases are in memory anyway
  int flops;
  bool ok;
} waiting;

static int find_forward(ir_arena *a, const ir_func *f) {
  losses l = losses_find(a, f);
  int last = -1;
  for (size_t i = 0; i < l.at.num; i++) {
    const ir_kernel *k = dom_base(l.at.at[i])->kernel;
    if (k && (int)k->id > last)
      last = (int)k->id;
  }
  return last;
}

// --- what is needed ------------------------------------------------------------------------------
// Kernels behind the forward pass compute some of its values again: members are needed for the rest. So it is of IR text
// that went through here, too.
static bool *find_needs(ir_arena *a, const ir_func *f, int forward) {
  const uint64_t *hash = ir_value_hashes(a, f);
  uint64_t *made = IR_NEW_ARRAY(a, uint64_t, f->nodes.num + 1);
  bool *needs = IR_NEW_ARRAY(a, bool, f->next_id + 1);
  size_t num = 0;
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->kernel && (int)f->nodes.at[i]->kernel->id <= forward)
      made[num++] = hash[f->nodes.at[i]->id];
  qsort(made, num, sizeof *made, ir_compare_hashes);
  for (size_t i = f->nodes.num; i-- > 0;) { // users first
    const ir_node *n = f->nodes.at[i];
    bool again = bsearch(&hash[n->id], made, num, sizeof *made, ir_compare_hashes);
    needs[n->id] |= n->kernel && !again;
    for (int k = 0; needs[n->id] && k < n->num_in; k++) {
      const ir_node *in = dom_base(n->in[k]);
      needs[in->id] |= in->kernel && in->kernel == n->kernel;
    }
  }
  return needs;
}

// --- what it takes ------------------------------------------------------------------------------
static bool is_loop_or_matmul(const ir_kernel *k) {
  return k->family == IR_FAMILY_LOOP || k->family == IR_FAMILY_MATMUL;
}

static bool is_small(const waiting *w, const ir_node *n) {
  return ir_bytes(&n->type) * AGAIN_SMALL_SHARE <= ir_bytes(&w->v->type) &&
         is_loop_or_matmul(n->kernel);
}

static bool is_in_memory(const remake *r, const ir_node *n) {
  return !n->kernel || r->g.last_use[n->id] > r->forward;
}

static void add_base(remake *r, waiting *w, ir_node *n) {
  if (ir_is_generated(n))
    return;
  IR_PUSH(r->arena, w->bases, n);
  if (n->kernel && !is_small(w, n) && r->g.last_use[n->id] < w->until)
    w->until = r->g.last_use[n->id];
}

static void follow(remake *r, waiting *w, ir_node *n) {
  if (!w->ok || ir_has_node(&w->nodes, n) || ir_has_node(&w->bases, n))
    return;
  if (n != w->v && (is_in_memory(r, n) || is_small(w, n))) {
    add_base(r, w, n);
    return;
  }
  w->flops += ir_ops[n->op].flops;
  w->ok = again_is_pointwise(n) && is_loop_or_matmul(n->kernel) && w->nodes.num < MAX_NODES &&
          w->flops <= MAX_FLOPS;
  for (int i = 0; w->ok && i < n->num_in; i++)
    follow(r, w, dom_base(n->in[i]));
  IR_PUSH(r->arena, w->nodes, n);
}

static bool needs_it(const remake *r, const ir_node *user) {
  return user->id < r->g.num_ids && r->needs[user->id];
}

static void find_uses(const remake *r, waiting *w) {
  const again_uses *users = &r->g.users[w->v->id];
  w->first = w->needed = INT32_MAX;
  w->early = (int)w->v->kernel->id;
  for (size_t i = 0; i < users->num; i++) {
    int k = (int)users->at[i].user->kernel->id;
    if (k <= r->forward)
      w->early = k > w->early ? k : w->early;
    else
      w->first = k < w->first ? k : w->first;
    if (k > r->forward && k < w->needed && needs_it(r, users->at[i].user))
      w->needed = k;
  }
}

static waiting look_at(remake *r, ir_node *v) {
  waiting w = {.v = v, .ok = true};
  find_uses(r, &w);
  w.until = w.first;
  w.ok = again_is_pointwise(v) && !r->g.pinned[v->id] && w.first != INT32_MAX &&
         ir_bytes(&v->type) >= LEAST_BYTES;
  if (w.ok)
    follow(r, &w, v);
  return w;
}

// --- where it is made ---------------------------------------------------------------------------
static bool may_host(const remake *r, const waiting *w, const ir_kernel *k) {
  return is_loop_or_matmul(k) && (int)k->id > r->forward && (int)k->id < w->first &&
         (int)k->id <= w->until && (int)k->id + NEAR >= w->needed;
}

// The last kernel that reads a base and may compute v, too; NULL.
static ir_kernel *find_host(remake *r, const waiting *w) {
  ir_kernel *best = NULL;
  for (size_t i = 0; i < w->bases.num; i++) {
    const again_uses *users = &r->g.users[w->bases.at[i]->id];
    for (size_t j = 0; j < users->num; j++) {
      ir_kernel *k = users->at[j].user->kernel;
      if (!may_host(r, w, k) || (best && k->id <= best->id))
        continue;
      again_clones x = again_clone_behind(&r->g, &w->nodes, k);
      best = again_fits(&x) ? k : best;
    }
  }
  return best;
}

// The values of the backward pass take `made` instead of v. False: one sees v through what no view is.
static bool redirect(remake *r, const waiting *w, again_clones *x) {
  again_uses *users = &r->g.users[w->v->id];
  for (int check = 1; check >= 0; check--)
    for (size_t i = 0; i < users->num; i++) {
      again_use *u = &users->at[i];
      if ((int)u->user->kernel->id <= r->forward)
        continue;
      ir_node *in = again_with_clones(x, u->user->in[u->operand]);
      if (check && in == u->user->in[u->operand])
        return false;
      if (!check)
        again_redirect(&r->g, *u, in);
    }
  return true;
}

static void take_over(remake *r, const waiting *w, again_clones *x) {
  again_adopt(x);
  r->g.last_use[w->v->id] = w->early;
  for (size_t i = 0; i < w->bases.num; i++) {
    int *last = &r->g.last_use[w->bases.at[i]->id];
    *last = *last > (int)x->into->id ? *last : (int)x->into->id;
  }
}

static bool make_in_host(remake *r, const waiting *w) {
  ir_kernel *host = find_host(r, w);
  if (!host || (r->little && !ir_reduces(host)))
    return false;
  again_clones x = again_clone_behind(&r->g, &w->nodes, host);
  if (!redirect(r, w, &x))
    return false;
  take_over(r, w, &x);
  return true;
}

static ir_kernel *new_kernel(remake *r, int at) {
  ir_kernel *k = IR_NEW(r->g.f->module->arena, ir_kernel);
  *k = (ir_kernel){.family = IR_FAMILY_LOOP, .id = (uint32_t)at};
  return k;
}

// Little time beside that of the kernels that read v.
static bool is_cheap(const remake *r, const waiting *w) {
  const again_uses *users = &r->g.users[w->v->id];
  double readers = 0, own = cost_seconds_loop(w->nodes.at, w->nodes.num, w->bases.at, w->bases.num);
  for (size_t i = 0; i < users->num; i++)
    if ((int)users->at[i].user->kernel->id > r->forward)
      readers += cost_seconds(r->arena, users->at[i].user->kernel);
  return own * SHARE_OF_TIME <= readers;
}

static void make_alone(remake *r, const waiting *w) {
  int at = w->until < w->first ? w->until : w->first;
  if (at + NEAR < w->needed || !is_cheap(r, w))
    return;
  again_clones x = again_clone_behind(&r->g, &w->nodes, new_kernel(r, at));
  if (!again_fits(&x) || !redirect(r, w, &x))
    return;
  take_over(r, w, &x);
  x.into->anchor = x.to.at[x.to.num - 1];
  x.into->name = x.into->anchor->name;
  IR_PUSH(r->arena, r->before[at], x.into);
}

static void visit(remake *r, const ir_kernel *k) {
  for (size_t i = 0; i < k->outputs.num; i++) {
    waiting w = look_at(r, k->outputs.at[i]);
    if (w.ok && w.until > r->forward && !make_in_host(r, &w) && !r->little)
      make_alone(r, &w);
  }
}

// What was made later may be read by what was made earlier, before one kernel.
static void list_kernels(remake *r) {
  ir_func *f = r->g.f;
  kernel_list all = {0};
  for (size_t i = 0; i < f->kernels.num; i++) {
    for (size_t j = r->before[i].num; j-- > 0;)
      IR_PUSH(f->module->arena, all, r->before[i].at[j]);
    IR_PUSH(f->module->arena, all, f->kernels.at[i]);
  }
  f->kernels.num = 0;
  for (size_t i = 0; i < all.num; i++) {
    all.at[i]->id = (uint32_t)i;
    IR_PUSH(f->module->arena, f->kernels, all.at[i]);
  }
}

bool pass_remakes_little(const ir_module *m) {
  const ir_setting *s = ir_find_config(m, "remake");
  return s && s->kind == IR_SET_STR && !strcmp(s->str, PASS_REMAKE_LITTLE);
}

static bool remake_func(ir_func *f) {
  if (f->ordered)
    return false;
  ir_arena *a = ir_arena_new();
  int forward = find_forward(a, f);
  remake r = {.g = again_look_at(f, a), .arena = a, .forward = forward};
  r.needs = find_needs(a, f, forward);
  r.little = pass_remakes_little(f->module);
  r.before = IR_NEW_ARRAY(a, kernel_list, f->kernels.num);
  // Last kernel first: what is made again then counts as a use of what it is made from.
  for (int k = forward; k >= 0; k--)
    visit(&r, f->kernels.at[k]);
  list_kernels(&r);
  bool changed = again_finish(&r.g);
  ir_arena_free(a);
  return changed;
}

static bool is_known(const ir_module *m, ir_diags *d) {
  if (!ir_find_config(m, "remake") || pass_remakes_little(m))
    return true;
  diag_error(d, (ir_loc){0}, "E0507", "config remake is \"%s\", or is not there",
             PASS_REMAKE_LITTLE);
  return false;
}

bool pass_remake(ir_module *m, ir_diags *d) {
  if (!is_known(m, d))
    return false;
  return pass_each_func(m, remake_func);
}
