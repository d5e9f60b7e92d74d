// narrow_sums.c: sums of a few columns take several rows side by side.
//
//   before:  %s = sum %x {axes=[0]} : f32[1,3]              # %x : f32[100000,3]
//   after:   %r = reshape %x : f32[6250,16,3]
//            %t = sum %r {axes=[0]} : f32[1,16,3]            # 48 columns that lie side by side
//            %u = sum %t {axes=[1]} : f32[1,1,3]
//            %s = reshape %u : f32[1,3]
//
// A row of 3 is a part of a vector, and each addition waits for the one before it. 16 rows are three whole vectors, of
// which each is summed by itself. So for gradients of a bias, for means of the channels of an image.
//
// Only of what can be read along such a line: memory as it lies, and what is computed of it element by element. A
// factor for each row or each column would have to be found again for each vector.
//
// Needs: no later algebra (it would merge the stages again). Comes before split_reductions, which cuts the first stage
// into tasks: it has as many results as are few there.
#include "ir/builder.h"
#include "passes/pass.h"

enum {
  MAX_COLUMNS = 8,       // of more, additions that wait take no longer than memory
  MAX_LINE = 64,         // columns side by side: MAX_RESULTS of split_reductions.c
  WHOLE = 16,            // columns of whole vectors
  LEAST_ROWS = 16,       // of the first stage
  LEAST_ALL = 16 * 1024, // elements: fewer take less time than a kernel more
  LOOK = 6,              // operations up to what lies in memory
};

static bool is_in_memory(const ir_node *x) {
  switch (ir_ops[x->op].cls) {
  case IR_CLASS_LEAF:
    return x->op != IR_IOTA;
  case IR_CLASS_REDUCE:
  case IR_CLASS_CONTRACT:
  case IR_CLASS_MOVE:
    return true;
  default:
    return false;
  }
}

// Whether x can be read along lines of several rows.
static bool lies_in_lines(const ir_node *x, int depth) {
  if (x->op == IR_RESHAPE)
    return is_in_memory(x->in[0]);
  if (x->op == IR_BROADCAST)
    return ir_elements(&x->in[0]->type) == 1;
  if (ir_ops[x->op].cls != IR_CLASS_POINTWISE)
    return is_in_memory(x);
  bool all = depth > 0 && !ir_is_random(x);
  for (int i = 0; all && i < x->num_in; i++)
    all = lies_in_lines(x->in[i], depth - 1);
  return all;
}

// Of the axes that are reduced the last; -1: others that stay lie between them, or behind them none.
static int last_reduced(const ir_node *n, int64_t *columns) {
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  for (int i = 1; i < num; i++)
    if (axes[i] != axes[i - 1] + 1)
      return -1;
  *columns = 1;
  for (int i = num ? (int)axes[num - 1] + 1 : 0; i < n->type.rank; i++)
    *columns *= n->type.dims[i];
  return num ? (int)axes[num - 1] : -1;
}

// How many rows lie side by side: as many as fit, in whole vectors if there is such a number. 1: none divides.
static int64_t rows_in_line(int64_t rows, int64_t columns) {
  int64_t best = 1;
  bool best_is_whole = false;
  for (int64_t q = 2; q * columns <= MAX_LINE; q++) {
    bool whole = q * columns % WHOLE == 0;
    if (rows % q != 0 || (best_is_whole && !whole))
      continue;
    best = q;
    best_is_whole = whole;
  }
  return best;
}

static ir_node *sum_in_lines(ir_builder *b, ir_node *n, int axis, int64_t line) {
  const ir_type *x = &n->in[0]->type;
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  int64_t dims[IR_MAX_RANK], side[] = {axis + 1};
  for (int i = 0; i < x->rank; i++)
    dims[i + (i > axis)] = x->dims[i];
  dims[axis] = x->dims[axis] / line;
  dims[axis + 1] = line;
  b->scope = n->name;
  ir_node *lines = ir_reshape(b, n->in[0], x->rank + 1, dims);
  ir_node *sums = ir_reduce(b, n->op, lines, axes, num);
  return ir_reshape(b, ir_reduce(b, n->op, sums, side, 1), n->type.rank, n->type.dims);
}

// NULL when n is fine as it is.
static ir_node *widen(ir_builder *b, ir_node *n) {
  int64_t columns;
  if (!ir_is_fold(n) || n->type.rank == 0 || n->in[0]->type.rank == IR_MAX_RANK)
    return NULL;
  int axis = last_reduced(n, &columns);
  const ir_node *x = n->in[0];
  if (axis < 0 || columns < 2 || columns > MAX_COLUMNS || ir_elements(&x->type) < LEAST_ALL)
    return NULL;
  int64_t line = rows_in_line(x->type.dims[axis], columns);
  int64_t rows = ir_elements(&x->type) / ir_elements(&n->type) / line;
  if (line == 1 || rows < LEAST_ROWS || !lies_in_lines(x, LOOK))
    return NULL;
  return sum_in_lines(b, n, axis, line);
}

static bool widen_func(ir_func *f) {
  return ir_rewrite_each(f, widen);
}

bool pass_narrow_sums(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, widen_func);
}
