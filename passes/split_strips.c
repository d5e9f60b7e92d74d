// split_strips.c: sums of columns that would be read as strips, from top to bottom.
//
//   %m = sum %x {axes=[0,1,2]} : f32[1,1,1,128]              # %x : f32[8,16,16,128], a mean of batch norm
//   %b = broadcast %m : f32[8,16,16,128]
//   %c = sub %x, %b
//   %v = sum (%c * %c) {axes=[0,1,2]}
//
// One kernel can compute all of a norm, column by column: for each of its sums it goes down a strip as wide as a vector, a cache
// line of each row, over memory whose next lines are fetched for nothing. Cut into chunks of rows, each sum reads rows from
// end to end, and there are tasks for as many threads as there are chunks, not strips.
//
// A sum that nothing is computed of for the rows is a kernel of one sweep, which walks wider strips: it is worth it where
// strips are long. So are two stages of a softmax down columns, whose exponentials are computed twice then. Columns of several
// matrices (norms of each image) are cut where each row has more of them than a strip, which else is all that is read.
#include "passes/split_strips.h"

#include "ir/builder.h"

enum {
  MANY = 64 * 1024, // elements in all
  LONG = 1024,      // rows,
  NORM_LONG = 128,  // and where they wait for the sum
  STRIP = 16,       // columns that are one strip
  DEAR_FLOPS = 8,   // as much as a load and a store
  LOOK = 6,         // operations up to that
};

const int64_t *split_find_spread(ir_arena *a, const ir_func *f) {
  int64_t *spread = IR_NEW_ARRAY(a, int64_t, f->next_id);
  for (size_t i = f->nodes.num; i-- > 0;) {
    const ir_node *n = f->nodes.at[i];
    ir_op_class c = ir_ops[n->op].cls;
    int64_t here = n->op == IR_BROADCAST ? ir_elements(&n->type) : spread[n->id];
    bool passes_on = c == IR_CLASS_POINTWISE || c == IR_CLASS_VIEW;
    for (int j = 0; passes_on && j < n->num_in; j++) {
      int64_t *x = &spread[n->in[j]->id];
      *x = here > *x ? here : *x;
    }
  }
  return spread;
}

// Elements of a row of columns that are reduced: of the axes behind all reduced ones, where these are side by side.
static int64_t columns_of(const ir_node *n) {
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  const ir_type *x = &n->in[0]->type;
  int64_t columns = 1;
  for (int i = num > 0 ? (int)axes[num - 1] + 1 : x->rank; i < x->rank; i++)
    columns *= x->dims[i];
  return num > 0 && axes[num - 1] - axes[0] == num - 1 ? columns : 1;
}

// More than is computed twice for nothing.
static bool is_dear(const ir_node *x, int depth) {
  ir_op_class c = ir_ops[x->op].cls;
  bool pointwise = c == IR_CLASS_POINTWISE, dear = pointwise && ir_ops[x->op].flops >= DEAR_FLOPS;
  for (int i = 0; !dear && depth > 0 && (pointwise || c == IR_CLASS_VIEW) && i < x->num_in; i++)
    dear = is_dear(x->in[i], depth - 1);
  return dear;
}

bool split_is_strip(const ir_node *n, int64_t spread) {
  int64_t all = ir_elements(&n->in[0]->type), results = ir_elements(&n->type);
  int64_t columns = columns_of(n), rows = results > 0 ? all / results : 0;
  bool norm = spread >= all;
  if (all <= MANY || columns == 1 || (columns < results && (!norm || columns <= STRIP)))
    return false;
  bool cheap =
      n->op == IR_SUM && !is_dear(n->in[0], LOOK); // unlike a softmax's maximum and exponentials
  return rows >= (norm && cheap ? NORM_LONG : LONG);
}
