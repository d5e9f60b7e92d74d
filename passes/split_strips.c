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
// strips are long.
#include "passes/split_strips.h"

#include "ir/builder.h"

enum {
  MANY = 64 * 1024, // elements in all
  LONG = 1024,      // rows,
  NORM_LONG = 128,  // and where they wait for the sum
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

// All reduced axes come before the others, whose elements are then neighbours.
static bool is_of_columns(const ir_node *n) {
  int num, at = 0;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  const ir_type *x = &n->in[0]->type;
  for (int i = 0; at < num; i++) {
    bool reduced = axes[at] == i;
    if (!reduced && x->dims[i] > 1)
      return false;
    at += reduced;
  }
  return num > 0 && axes[num - 1] < x->rank - 1;
}

bool split_is_strip(const ir_node *n, int64_t spread) {
  int64_t all = ir_elements(&n->in[0]->type), results = ir_elements(&n->type);
  int64_t rows = all / (results > 0 ? results : 1);
  return is_of_columns(n) && all > MANY && rows >= (spread >= all ? NORM_LONG : LONG);
}
