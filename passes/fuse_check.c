// fuse_check.c: kernels that were read from IR text, which somebody may have edited: whether each is one that
// fuse.c could have made. Who reads a kernel later asks for its domain and has no answer to "none".
//
//   kernel r loop {
//     %s = sum %x {axes=[1]}          rows of %x; %r has its columns in another order:
//     %r = add %s, %y                 no loop computes both
//   }
#include "passes/fuse.h"

static bool is_pointwise(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_POINTWISE;
}

static bool may_be_in_loop(const ir_node *n) {
  return is_pointwise(n) || ir_ops[n->op].cls == IR_CLASS_REDUCE || n->op == IR_GATHER ||
         dom_is_joint(n);
}

// What is wrong with the kernel; NULL: nothing.
static const char *fault_of(ir_arena *a, const ir_kernel *k) {
  bool is_matmul = k->family == IR_FAMILY_MATMUL;
  if (k->family == IR_FAMILY_COPY)
    return k->nodes.num == 1 && ir_ops[k->anchor->op].cls == IR_CLASS_MOVE
               ? NULL
               : "a copy is one pad or one concat";
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
  return dom_try(a, k->nodes.at, k->nodes.num, is_matmul ? k->anchor : NULL)
             ? NULL
             : "its members do not fit one set of loops";
}

void fuse_check_kernels(const ir_func *f, ir_diags *d) {
  ir_arena *scratch = ir_arena_new();
  for (size_t i = 0; i < f->kernels.num; i++) {
    const ir_kernel *k = f->kernels.at[i];
    ir_arena_mark here = ir_arena_here(scratch);
    const char *fault = fault_of(scratch, k);
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
