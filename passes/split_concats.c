// split_concats.c: what is put together of very many parts is put together in steps, for GPUs.
//
//   before   %y = concat %a0, %a1, .., %a599 {axis=1}       after   %p = concat %a0, .., %a511 {axis=1}
//                                                                   %q = concat %a512, .., %a599 {axis=1}
//                                                                   %y = concat %p, %q {axis=1}
//
// A kernel's arguments take 4,352 bytes at most in PTX before 8.1 (which clang writes), 32,764 from there on: 544 arrays, or
// 4,095. The states of a recurrent network after each of a thousand steps are more than that.
//
// Needs: algebra, which makes one concat of two, has run. Breaks: nothing.
#include "ir/builder.h"
#include "passes/pass.h"

enum { MOST_PARTS = 512 };

static ir_node *join_some(ir_builder *b, const ir_node *n, int first, int axis) {
  int num = n->num_in - first < MOST_PARTS ? n->num_in - first : MOST_PARTS;
  return num == 1 ? n->in[first] : ir_concat(b, num, n->in + first, axis);
}

// The result may have too many parts again.
static ir_node *split(ir_builder *b, ir_node *n) {
  b->scope = n->name; // "y.concat"
  while (n->op == IR_CONCAT && n->num_in > MOST_PARTS) {
    int axis = (int)ir_attr_int(n, IR_ATTR_AXIS), num = (n->num_in - 1) / MOST_PARTS + 1;
    ir_node **parts = IR_NEW_ARRAY(b->func->module->arena, ir_node *, (size_t)num);
    for (int i = 0; i < num; i++)
      parts[i] = join_some(b, n, i * MOST_PARTS, axis);
    n = ir_concat(b, num, parts, axis);
  }
  return n;
}

static bool split_func(ir_func *f) {
  return ir_rewrite_each(f, split);
}

bool pass_split_concats(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, split_func);
}
