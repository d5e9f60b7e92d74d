// fuse_check.c: kernels that were read from IR text, which somebody may have edited: whether each is one that
// fuse.c could have made. Who reads a kernel later asks for its domain and has no answer to "none".
//
//   kernel r loop {
//     %s = sum %x {axes=[1]}          rows of %x; %r has its columns in another order:
//     %r = add %s, %y                 no loop computes both
//   }
#include "ir/row_update.h"
#include "passes/fuse.h"

static bool is_pointwise(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_POINTWISE;
}

static bool may_be_in_loop(const ir_node *n) {
  return is_pointwise(n) || ir_ops[n->op].cls == IR_CLASS_REDUCE || n->op == IR_GATHER ||
         dom_is_joint(n);
}

// What the anchor of a copy, scatter or matmul reads lies in memory before the kernel begins.
static const char *fault_of_operands(ir_arena *a, const ir_kernel *k) {
  const ir_node *n = k->anchor, *gather = ir_fetched_update(k);
  if (gather && !fuse_can_fetch(gather))
    return ir_format(a, "%s cannot fetch by '%s' where its operands lie; it can read a copy",
                     ir_ops[n->op].name, gather->name);
  for (int i = 0; i < n->num_in; i++) {
    if (n->in[i] == gather)
      continue; // the verifier knows what that is
    if (dom_base(n->in[i])->kernel == k)
      return ir_format(a, "%s reads '%s', which the kernel itself computes", ir_ops[n->op].name,
                       n->in[i]->name);
    if (!fuse_can_read(n, i))
      return ir_format(a, "%s cannot read '%s' where it lies; it can read a copy",
                       ir_ops[n->op].name, n->in[i]->name);
  }
  return NULL;
}

// Members that nothing uses are left out later on: what remains must be a kernel, too. One that runs again computes what its first
// run did, used or not.
static const char *fault_without_dead(ir_arena *a, const ir_kernel *k, const bool *live) {
  ir_node_list left = {0};
  const ir_node *dead = NULL;
  for (size_t i = 0; i < k->nodes.num; i++) {
    ir_node *n = k->nodes.at[i];
    if (live[n->id])
      IR_PUSH(a, left, n);
    else
      dead = n;
  }
  if (!dead || !left.num || k->clone_of)
    return NULL;
  bool is_matmul = k->family == IR_FAMILY_MATMUL;
  if (is_matmul && !live[k->anchor->id])
    return "nothing uses its product";
  return dom_try(a, left.at, left.num, is_matmul ? k->anchor : NULL)
             ? NULL
             : ir_format(
                   a, "nothing uses '%s', and without it the members do not fit one set of loops",
                   dead->name);
}

// What is wrong with the kernel; NULL: nothing.
static const char *fault_of(ir_arena *a, const ir_kernel *k, const bool *live) {
  bool is_matmul = k->family == IR_FAMILY_MATMUL;
  if (k->family == IR_FAMILY_COPY &&
      (k->nodes.num != 1 || ir_ops[k->anchor->op].cls != IR_CLASS_MOVE))
    return "a copy is one pad, one concat or one insert";
  if (k->family == IR_FAMILY_COPY || k->family == IR_FAMILY_SCATTER)
    return fault_of_operands(a, k);
  if (k->family != IR_FAMILY_LOOP && !is_matmul)
    return NULL; // the verifier knows what these are
  if (is_matmul && k->anchor->op != IR_MATMUL)
    return "its anchor is no matmul";
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    bool fits =
        is_matmul ? n == k->anchor || is_pointwise(n) || dom_is_joint(n) : may_be_in_loop(n);
    if (!fits)
      return ir_format(a, "%s cannot be a member of this family", ir_ops[n->op].name);
  }
  const char *fault = is_matmul ? fault_of_operands(a, k) : NULL;
  if (!fault && !dom_try(a, k->nodes.at, k->nodes.num, is_matmul ? k->anchor : NULL))
    fault = "its members do not fit one set of loops";
  return fault ? fault : fault_without_dead(a, k, live);
}

// pass_own_outputs has seen to it where mltc made the text.
static void check_outputs(const ir_func *f, ir_arena *a, ir_diags *d) {
  const ir_node **write_of = IR_NEW_ARRAY(a, const ir_node *, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i], *other = n->op == IR_WRITE ? write_of[n->in[0]->id] : NULL;
    if (n->op != IR_WRITE)
      continue;
    if (!n->in[0]->kernel)
      diag_error(d, n->loc, "E0510", "@%s is written '%s', which no kernel stores", n->state->name,
                 n->in[0]->name);
    if (other)
      diag_error(d, n->loc, "E0510", "'%s' is written to @%s and to @%s", n->in[0]->name,
                 other->state->name, n->state->name);
    write_of[n->in[0]->id] = n;
  }
  for (size_t i = 0; i < f->results.num; i++) {
    const ir_result *r = &f->results.at[i];
    if (!r->node->kernel)
      diag_error(d, r->node->loc, "E0510", "result '%s' is '%s', which no kernel stores", r->name,
                 r->node->name);
  }
}

void fuse_check_kernels(const ir_func *f, ir_diags *d) {
  ir_arena *scratch = ir_arena_new();
  const bool *live = ir_find_live(scratch, f);
  check_outputs(f, scratch, d);
  for (size_t i = 0; i < f->kernels.num; i++) {
    const ir_kernel *k = f->kernels.at[i];
    ir_arena_mark here = ir_arena_here(scratch);
    const char *fault = fault_of(scratch, k, live);
    if (!fault) {
      ir_arena_back(scratch, here);
      continue;
    }
    ir_diag *e = diag_error(d, k->anchor->loc, "E0509", "kernel '%s' of family '%s': %s", k->name,
                            ir_family_names[k->family], fault);
    diag_help(
        e,
        "edit IR text from before the pass 'fuse' (--print-after=dce), which makes kernels of it");
  }
  ir_arena_free(scratch);
}
