// split_windows.c: sums over the places of windows, whose results are what lies inside.
//
//   before:  %w = windows %x : f32[8,28,28,96,3,3]           # %x : f32[8,30,30,96], 2.8 MB
//            %p = mul %g, %w
//            %d = sum %p {axes=[0,1,2]} : f32[1,1,1,96,3,3]
//   after:   %t = sum %p {axes=[1,2]} : f32[8,1,1,96,3,3]
//            %d = sum %t {axes=[0]} : f32[1,1,1,96,3,3]
//
// The gradient of the kernel of a convolution of each channel: each of the nine places inside reads nearly all of %x and
// %g, and by the time that the next one does, none of it is in a cache any more. Of one image it is.
#include "passes/split_windows.h"

#include "ir/builder.h"

enum {
  FAR_BYTES = 1 << 20, // more than a thread has near it
  NEAR_BYTES = 512 << 10,
  READ_AGAIN = 4, // times that an element is read
  LEAST_SUM = 64, // elements of a sum of the first stage
  FEWER = 16,     // times fewer of these sums than elements read
  LOOK = 6,       // operations up to the windows
};

static const ir_node *windows_in(const ir_node *x, int depth) {
  ir_op_class c = ir_ops[x->op].cls;
  const ir_node *found = x->op == IR_WINDOWS ? x : NULL;
  bool through = depth > 0 && (c == IR_CLASS_POINTWISE || c == IR_CLASS_VIEW);
  for (int i = 0; !found && through && i < x->num_in; i++)
    found = windows_in(x->in[i], depth - 1);
  return found;
}

int split_windows_at(const ir_node *n) {
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  const ir_node *windows = windows_in(n->in[0], LOOK);
  int64_t read = ir_elements(&n->in[0]->type), sums = ir_elements(&n->type);
  int64_t bytes = windows ? ir_bytes(&windows->in[0]->type) : 0;
  if (bytes < FAR_BYTES || read / READ_AGAIN < ir_elements(&windows->in[0]->type))
    return 0;
  int64_t chunks = 1;
  for (int at = 0; at + 1 < num; at++) {
    chunks *= n->in[0]->type.dims[axes[at]];
    if (bytes / chunks > NEAR_BYTES)
      continue;
    bool worth = read / sums / chunks >= LEAST_SUM && sums * chunks <= read / FEWER;
    return worth && chunks > 1 ? at + 1 : 0;
  }
  return 0;
}
