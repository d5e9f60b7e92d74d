// verify_kernels.c: the rules about kernels, which hold once pass_fuse has run:
//   - a member's `kernel` field names its kernel, each node is in one kernel at most;
//   - members stand operands first, next to each other but for nodes outside all kernels;
//   - what a member uses is computed in the same kernel before it, or in an earlier kernel,
//     directly or through leaves and views outside kernels (a view of one member that another
//     uses stands between them and is no member);
//   - leaves, views and writes are outside of kernels, all other nodes in one; but for conversions
//     of operands that only matmuls use (node->folded): those matmuls compute them; and while there
//     are only kernels of the family attention and row updates, fusion is still to come, and other
//     nodes have none;
//   - members of attention kernels and of row updates are what they compute.
#include "ir/narrow.h"
#include "ir/row_update.h"
#include "ir/verify.h"

static bool computed_outside(const ir_node *n) {
  return !ir_is_computed(n) || n->folded;
}

static bool is_node(const ir_checker *c, const ir_node *n) {
  return n && n->id < c->f->next_id && c->by_id[n->id] == n;
}

static void check_members(ir_checker *c, const ir_kernel *k) {
  size_t last = 0;
  bool has_anchor = false;
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    if (!is_node(c, n)) {
      ir_fault_add(c, NULL, "kernel '%s' has a member that is not in the function", k->name);
      continue;
    }
    if (n->kernel != k)
      ir_fault_add(c, n, "%%%s is listed in kernel '%s' and belongs to %s", n->name, k->name,
                   n->kernel ? n->kernel->name : "none");
    if (i && c->position[n->id] <= last)
      ir_fault_add(c, n, "members of kernel '%s' are not in the function's order", k->name);
    if (computed_outside(n))
      ir_fault_add(c, n, "%s cannot be in a kernel", ir_ops[n->op].name);
    last = c->position[n->id];
    has_anchor = has_anchor || n == k->anchor;
  }
  if (k->nodes.num && !has_anchor)
    ir_fault_add(c, NULL, "the anchor of kernel '%s' is not a member", k->name);
}

static const ir_kernel *first_time(const ir_kernel *k) {
  while (k->clone_of && k->clone_of->id < k->id)
    k = k->clone_of;
  return k;
}

// Members at one place of a kernel and of one that runs it again.
static bool same_place(const ir_node *a, const ir_node *b) {
  if (first_time(a->kernel) != first_time(b->kernel))
    return false;
  for (size_t i = 0; i < a->kernel->nodes.num && i < b->kernel->nodes.num; i++)
    if (a->kernel->nodes.at[i] == a || b->kernel->nodes.at[i] == b)
      return a->kernel->nodes.at[i] == a && b->kernel->nodes.at[i] == b;
  return false;
}

// What was sent of a fetch's result; else the node itself.
static const ir_node *before_transfer(const ir_node *n) {
  for (int i = 0; i < 2 && n->kernel && ir_is_transfer(n->kernel) && n->num_in == 1; i++)
    n = n->in[0];
  return n;
}

// The operand of a kernel that runs again is that of the first time, or another version of it, made
// by another kernel that runs again, or fetched; or the same view of one.
static bool corresponds(const ir_node *a, const ir_node *b) {
  a = before_transfer(a), b = before_transfer(b);
  if (a == b || (a->kernel && b->kernel))
    return a == b || same_place(a, b);
  bool same = !a->kernel && !b->kernel && a->num_in > 0 && ir_same_work(a, b);
  for (int i = 0; same && i < a->num_in; i++)
    same = corresponds(a->in[i], b->in[i]);
  return same;
}

static bool same_member(const ir_node *a, const ir_node *b) {
  bool same = ir_same_work(a, b);
  for (int i = 0; same && i < a->num_in; i++)
    same = corresponds(a->in[i], b->in[i]);
  return same;
}

static void check_clone(ir_checker *c, const ir_kernel *k) {
  const ir_kernel *first = k->clone_of;
  bool same = first->id < k->id && first->family == k->family && first->nodes.num == k->nodes.num;
  for (size_t i = 0; same && i < k->nodes.num; i++) {
    same = same_member(first->nodes.at[i], k->nodes.at[i]);
    same &= (first->nodes.at[i] == first->anchor) == (k->nodes.at[i] == k->anchor);
  }
  if (!same)
    ir_fault_add(c, k->anchor, "kernel '%s' does not compute what kernel '%s' has computed",
                 k->name, first->name);
}

static void check_kernel(ir_checker *c, const ir_kernel *k, size_t place, ir_map *names) {
  if (!k->name || !ir_valid_name(k->name))
    ir_fault_add(c, NULL, "kernel '%s' is not a name", k->name ? k->name : "");
  else if (ir_map_get(names, k->name))
    ir_fault_add(c, NULL, "two kernels are called '%s'", k->name);
  if (k->name)
    ir_map_put(names, k->name, (void *)k);
  if (k->id != place)
    ir_fault_add(c, NULL, "kernel '%s' has the id %u at place %zu", k->name, k->id, place);
  if (k->nodes.num == 0)
    ir_fault_add(c, NULL, "kernel '%s' is empty", k->name);
  check_members(c, k);
  if (k->clone_of)
    check_clone(c, k);
}

// Members of different kernels do not interleave in node order.
static void check_contiguous(ir_checker *c) {
  bool *closed = IR_NEW_ARRAY(c->faults->arena, bool, c->f->kernels.num + 1);
  const ir_kernel *open = NULL;
  for (size_t i = 0; i < c->f->nodes.num; i++) {
    const ir_node *n = c->f->nodes.at[i];
    if (!n->kernel || n->kernel == open || n->kernel->id >= c->f->kernels.num)
      continue;
    if (open)
      closed[open->id] = true;
    open = n->kernel;
    if (closed[open->id])
      ir_fault_add(c, n, "the members of kernel '%s' do not stand together", open->name);
  }
}

static const ir_kernel *kernel_below(const ir_node *n) {
  while (ir_is_seen_through(n) && n->num_in == 1)
    n = n->in[0];
  return n->kernel;
}

// The place of the last kernel whose result `n` needs, + 1; through views outside kernels.
// Linear: each node looks at its operands' marks.
static void check_order(ir_checker *c) {
  size_t *needs = IR_NEW_ARRAY(c->faults->arena, size_t, c->f->next_id + 1);
  for (size_t i = 0; i < c->f->nodes.num; i++) {
    const ir_node *n = c->f->nodes.at[i];
    for (int j = 0; j < n->num_in; j++) {
      const ir_node *x = n->in[j];
      if (!is_node(c, x))
        continue;
      if (n->kernel && kernel_below(x) != n->kernel && needs[x->id] > n->kernel->id)
        ir_fault_add(c, n, "operand %%%s is not computed before kernel '%s'", x->name,
                     n->kernel->name);
      if (needs[x->id] > needs[n->id])
        needs[n->id] = needs[x->id];
    }
    if (n->kernel)
      needs[n->id] = n->kernel->id + 1;
  }
}

// The conversion that a matmul computes on an operand, or NULL.
static const ir_node *conversion_of(const ir_node *n) {
  while (ir_ops[n->op].cls == IR_CLASS_VIEW && n->num_in == 1)
    n = n->in[0];
  return n->folded && n->num_in == 1 ? n : NULL;
}

static ir_dtype read_as(const ir_node *conversion) {
  bool narrow = conversion && conversion->op == IR_CAST && ir_is_narrow_conversion(conversion);
  return narrow ? conversion->in[0]->type.dtype : IR_F32;
}

// Products of an attention kernel take in all of one 16-bit type, or nothing.
static void check_products(ir_checker *c, const ir_kernel *k) {
  int folded = 0, outside = 0;
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    for (int j = 0; n->op == IR_MATMUL && j < n->num_in; j++) {
      folded += conversion_of(n->in[j]) != NULL;
      outside += n->in[j]->kernel != k;
    }
  }
  if (folded > 0 && (folded < outside || ir_products_from(k) == IR_F32))
    ir_fault_add(c, k->anchor,
                 "the products of kernel '%s' convert some operands themselves, not all", k->name);
}

// It takes in both of one 16-bit type; or tf32 with another operand of few digits.
static void check_pair(ir_checker *c, const ir_node *n) {
  const ir_node *pair[2] = {conversion_of(n->in[0]), conversion_of(n->in[1])};
  ir_dtype a = read_as(pair[0]), b = read_as(pair[1]);
  if (a != b)
    ir_fault_add(c, n, "a matmul does not convert operands of %s and %s itself", ir_dtypes[a].name,
                 ir_dtypes[b].name);
  for (int i = 0; i < 2; i++)
    if (pair[i] && pair[i]->op == IR_TF32 && ir_known_digits(n->in[1 - i]) > 11)
      ir_fault_add(c, n, "a matmul computes %%%s itself only when both operands have few digits",
                   pair[i]->name);
}

static bool is_attention(const ir_kernel *k) {
  return k && k->family == IR_FAMILY_ATTENTION;
}

// Conversions outside of kernels are computed by matmuls: nobody else may use them. seen[id]: the
// node is one, or a view of one.
static void check_conversions(ir_checker *c) {
  bool *seen = IR_NEW_ARRAY(c->faults->arena, bool, c->f->next_id + 1);
  for (size_t i = 0; i < c->f->nodes.num; i++) {
    const ir_node *n = c->f->nodes.at[i];
    bool view = ir_ops[n->op].cls == IR_CLASS_VIEW;
    for (int j = 0; j < n->num_in; j++)
      if (is_node(c, n->in[j]) && seen[n->in[j]->id]) {
        seen[n->id] |= view;
        if (!view && n->op != IR_MATMUL)
          ir_fault_add(c, n, "operand %%%s is in no kernel: only matmuls compute conversions",
                       n->in[j]->name);
      }
    if (n->folded && !ir_is_conversion(n))
      ir_fault_add(c, n, "%s is no conversion that a matmul computes", ir_ops[n->op].name);
    else if (n->op == IR_MATMUL && !is_attention(n->kernel) && n->num_in == 2 &&
             is_node(c, n->in[0]) && is_node(c, n->in[1]))
      check_pair(c, n);
    seen[n->id] |= n->folded;
  }
  for (size_t i = 0; i < c->f->results.num; i++) {
    const ir_node *n = c->f->results.at[i].node;
    if (is_node(c, n) && seen[n->id])
      ir_fault_add(c, n, "the result '%s' is in no kernel", c->f->results.at[i].name);
  }
}

static bool is_before_fusion(const ir_func *f) {
  for (size_t i = 0; i < f->kernels.num; i++)
    if (!is_attention(f->kernels.at[i]) && !ir_is_row_update(f->kernels.at[i]))
      return false;
  return true;
}

static void check_outside(ir_checker *c) {
  bool all = !is_before_fusion(c->f);
  for (size_t i = 0; i < c->f->nodes.num; i++) {
    const ir_node *n = c->f->nodes.at[i];
    const ir_kernel *k = n->kernel;
    if (!k && all && !computed_outside(n))
      ir_fault_add(c, n, "%s is in no kernel", ir_ops[n->op].name);
    if (k && (k->id >= c->f->kernels.num || c->f->kernels.at[k->id] != k))
      ir_fault_add(c, n, "%%%s is in a kernel that the function does not have", n->name);
  }
}

void verify_kernels(ir_checker *c) {
  size_t before = c->faults->list.num;
  ir_map *names = ir_map_new(c->faults->arena);
  for (size_t i = 0; i < c->f->kernels.num; i++)
    check_kernel(c, c->f->kernels.at[i], i, names);
  for (size_t i = 0; c->f->kernels.num == 0 && i < c->f->nodes.num; i++)
    if (c->f->nodes.at[i]->kernel)
      ir_fault_add(c, c->f->nodes.at[i], "the node is in a kernel, the function has none");
  if (c->f->kernels.num == 0)
    return;
  check_outside(c);
  check_conversions(c);
  if (c->faults->list.num > before)
    return; // the rules below take the above for granted
  check_contiguous(c);
  check_order(c);
  for (size_t i = 0; i < c->f->kernels.num; i++)
    if (is_attention(c->f->kernels.at[i])) {
      verify_attention(c, c->f->kernels.at[i]);
      check_products(c, c->f->kernels.at[i]);
    }
  verify_row_updates(c);
  verify_transfers(c);
}
