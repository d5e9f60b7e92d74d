// versions.h: kernels whose operands become other versions of the same values: made again, or fetched.
//
//   %b2 stands for %b from here on:   reshape %b   becomes   reshape.2 = reshape %b2
#ifndef PASSES_VERSIONS_H
#define PASSES_VERSIONS_H

#include "ir/builder.h"

typedef struct versions {
  ir_func *f;
  ir_arena *arena;   // scratch
  uint32_t num_ids;  // of nodes that were there before
  ir_node **current; // [old node id] the version that whoever comes next reads; NULL: itself
  ir_node **rebuilt; // [old id of a view] the view of a version
  ir_node ***was; // [old node id] operands before versions_redirect; NULL: they are what they were
  ir_map *names;  // of kernels
  ir_builder b;
} versions;

versions versions_new(ir_func *f, ir_arena *scratch);
// The same op on other operands, with what passes know of it.
ir_node *versions_copy(versions *x, const ir_node *n, ir_node *const *in);
// The same for operand j of a member, whatever it is now.
ir_node *versions_of_operand(versions *x, const ir_node *n, int j);
// Operands of the kernel's members become what stands for them now.
void versions_redirect(versions *x, const ir_kernel *k);
// A name that no kernel of the function has, new ones among them: `base`, or base.2, base.3, ... Users name
// kernels, too: a variable `again` of a block that is used `as h` makes the kernel h.again.
const char *versions_kernel_name(versions *x, const char *base);
// Gives the function these kernels, in this order: ids, nodes and outputs are made anew.
typedef struct versions_kernels {
  ir_kernel **at;
  size_t num, cap;
} versions_kernels; // an IR_VEC
void versions_finish(versions *x, const versions_kernels *kernels);

#endif
