// table_products.c: what multiplies rows that are picked of a small table picks rows of the table's product.
//
//   before   %x = gather %table, %ids            # %table : f32[65,64], %ids : i32[32,64]
//            %t = transpose %x {perm=[1,0,2]} : f32[64,32,64]
//            %r = reshape %t : f32[2048,64]
//            %y = matmul %r, %w                  # %w : f32[64,1024]
//   after    %y.table = matmul %table, %w : f32[65,1024]
//            %t = transpose %ids {perm=[1,0]} : i32[64,32]
//            %r = reshape %t : i32[2048]
//            %y = gather %y.table, %r : f32[2048,1024]
//
// The first product of a network that reads characters or categories has a row for each token of a batch, of which
// no more differ than there are words. Every number is the same sum as before. Autodiff, which comes next, adds up
// the gradient of %y word by word, and the products that make the gradients of %table and %w of it have the table's
// rows, too. Nor does %x wait for the backward pass.
//
// A bias behind the product goes to the table as well, so that its gradient is a sum over words, not tokens:
//
//   before   %z = add %y, %b                     # %b : broadcast of f32[1,1024]
//   after    %z.table = add %y.table, %b.2
//            %z = gather %z.table, %r
//
// What is on the way from the rows to their product may arrange, leave out and repeat rows, which is done to the
// indices, and convert numbers, which is done to the table. An index out of range still means the first or the last
// row. Other users of %x keep it. Rows that nothing picks are multiplied, too: should one of them hold a NaN or an
// infinity, so does the gradient of %w.
//
// A node by which something is differentiated (%x, where a loss asks for the gradient of its inputs; %b, repeated for
// each row) stays on the way to the loss: nothing is done across it. Nor where no `grad` is left in the module: such a
// text comes from behind autodiff, and has been here or was not to be changed; its backward pass reads what the forward
// pass has made.
//
// The other way, products of the backward pass that scatters and gathers are moved across, would find more: gradients
// of sums over the edges of a graph. It needs a rule for each product of the three, and all of them at once to save
// the memory of %x.
//
// The bars are those of processors, which run it: with two picks for each row, or with 8 numbers in a row, a step of an
// LSTM is as fast either way and needs less memory. On a GPU products cost less beside what they read and write; nobody
// has measured it there.
//
// Needs: `grad` nodes (before autodiff). Breaks: nothing.
#include "ir/builder.h"
#include "passes/pass.h"

enum {
  MOST_STEPS = 16,      // on the way from a gather to a product
  LEAST_REPETITION = 2, // rows picked for each of the table: a product of fewer saves little
  LEAST_WIDTH = 8, // numbers in a row: with fewer, to pick a product costs as much as to compute it
};

// From the operand of a product to the rows that it shows.
typedef struct way {
  ir_node *steps[MOST_STEPS]; // last one first
  int num;
  ir_node *gather;
} way;

// --- what is on the way ----------------------------------------------------------------------------
static int64_t last_dim(const ir_node *n) {
  return n->type.rank ? n->type.dims[n->type.rank - 1] : 0;
}

static bool cuts_rows(const ir_node *slice) {
  return last_dim(slice) != last_dim(slice->in[0]);
}

static bool turns_rows(const ir_node *transpose) {
  int rank;
  const int64_t *perm = ir_attr_ints(transpose, IR_ATTR_PERM, &rank);
  return perm[rank - 1] != rank - 1;
}

// Row by row the same numbers, but for conversions.
static bool keeps_rows_whole(const ir_node *n) {
  switch (n->op) {
  case IR_CAST:
    return true;
  case IR_RESHAPE:
  case IR_BROADCAST:
  case IR_SLICE:
    return !cuts_rows(n);
  case IR_TRANSPOSE:
    return !turns_rows(n);
  default:
    return false;
  }
}

// `mark`: something is differentiated by the node.
static bool find_way(ir_node *operand, way *w) {
  *w = (way){.gather = operand};
  while (w->num < MOST_STEPS && !w->gather->mark && keeps_rows_whole(w->gather)) {
    w->steps[w->num++] = w->gather;
    w->gather = w->gather->in[0];
  }
  return w->gather->op == IR_GATHER && !w->gather->mark && w->gather->in[0]->type.rank == 2;
}

// --- what to look for ------------------------------------------------------------------------------
static bool is_picked_often(const ir_node *n, const way *w) {
  int64_t picked = ir_elements(&n->type) / last_dim(n), rows = w->gather->in[0]->type.dims[0];
  return rows <= picked / LEAST_REPETITION;
}

static bool is_product_of_picked(const ir_node *n, way *w) {
  return n->op == IR_MATMUL && n->type.rank == 2 && !ir_attr_bool(n, IR_ATTR_TRANS_A) &&
         ir_matmul_steps(n) >= LEAST_WIDTH && find_way(n->in[0], w) && is_picked_often(n, w);
}

// The same row everywhere. What is picked instead does not see the broadcast, by which nothing may be differentiated.
static bool is_row(const ir_node *n) {
  return n->op == IR_BROADCAST && !n->mark && n->type.rank && last_dim(n->in[0]) == last_dim(n) &&
         ir_elements(&n->in[0]->type) == last_dim(n);
}

static bool is_picked_product_and_bias(const ir_node *n, way *w) {
  if (n->op != IR_ADD)
    return false;
  int row = is_row(n->in[1]);
  return is_row(n->in[row]) && find_way(n->in[!row], w) && w->gather->in[0]->op == IR_MATMUL &&
         is_picked_often(n, w);
}

// --- rewriting -------------------------------------------------------------------------------------
// The index of each row that `step` shows; `index`: of those it sees. All but the last axis are theirs.
static ir_node *arranged(ir_builder *b, const ir_node *step, ir_node *index) {
  int rank, axes = step->type.rank - 1;
  switch (step->op) {
  case IR_RESHAPE:
    return ir_reshape(b, index, axes, step->type.dims);
  case IR_BROADCAST:
    return ir_broadcast(b, index, axes, step->type.dims);
  case IR_TRANSPOSE:
    return ir_transpose(b, index, ir_attr_ints(step, IR_ATTR_PERM, &rank));
  case IR_SLICE:
    return ir_slice(b, index, ir_attr_ints(step, IR_ATTR_START, &rank),
                    ir_attr_ints(step, IR_ATTR_STOP, &rank),
                    ir_attr_ints(step, IR_ATTR_STEP, &rank));
  default:
    return index;
  }
}

// What is picked at the end of the way, and by which indices.
typedef struct picked {
  ir_node *table, *index;
} picked;

static picked go(ir_builder *b, const way *w) {
  picked p = {w->gather->in[0], w->gather->in[1]}, from = p;
  for (int i = w->num; i-- > 0;) {
    const ir_node *step = w->steps[i];
    b->scope = step->op == IR_CAST ? from.table->name : from.index->name;
    if (step->op == IR_CAST)
      p.table = ir_cast(b, p.table, step->type.dtype);
    else
      p.index = arranged(b, step, p.index);
  }
  b->scope = NULL;
  return p;
}

// Instead of `n`.
static ir_node *pick(ir_builder *b, const ir_node *n, picked p) {
  ir_rename(b->func, p.table, ir_format(b->func->module->arena, "%s.table", n->name));
  ir_node *y = ir_gather(b, p.table, p.index);
  y->mark = n->mark;
  return y;
}

static ir_node *pick_product(ir_builder *b, const ir_node *n, const way *w) {
  picked p = go(b, w);
  p.table = ir_matmul(b, p.table, n->in[1], false, ir_attr_bool(n, IR_ATTR_TRANS_B));
  return pick(b, n, p);
}

static ir_node *pick_sum(ir_builder *b, const ir_node *n, const way *w) {
  picked p = go(b, w);
  const ir_node *row = n->in[is_row(n->in[1])];
  b->scope = n->name;
  ir_node *bias = ir_reshape(b, row->in[0], 1, &n->type.dims[n->type.rank - 1]);
  bias = ir_broadcast_to(b, bias, 2, p.table->type.dims);
  p.table = ir_binary(b, IR_ADD, p.table, bias);
  b->scope = NULL;
  return pick(b, n, p);
}

static ir_node *pick_instead(ir_builder *b, ir_node *n) {
  way w;
  if (is_product_of_picked(n, &w))
    return pick_product(b, n, &w);
  return is_picked_product_and_bias(n, &w) ? pick_sum(b, n, &w) : NULL;
}

static void mark_differentiated(const ir_func *f) {
  for (size_t i = 0; i < f->nodes.num; i++)
    f->nodes.at[i]->mark = 0;
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_GRAD)
      f->nodes.at[i]->in[1]->mark = 1;
}

// Where nothing is to be done, nodes that nobody uses stay, too: autodiff reports what is wrong with them.
static bool has_work(const ir_func *f) {
  way w;
  for (size_t i = 0; i < f->nodes.num; i++)
    if (is_product_of_picked(f->nodes.at[i], &w) || is_picked_product_and_bias(f->nodes.at[i], &w))
      return true;
  return false;
}

static bool multiply_tables(ir_func *f) {
  mark_differentiated(f);
  if (!has_work(f))
    return false;
  return ir_rewrite_each(f, pick_instead);
}

static bool is_differentiated_later(const ir_module *m) {
  for (size_t i = 0; i < m->funcs.num; i++)
    if (ir_has_op(m->funcs.at[i], IR_GRAD))
      return true;
  return false;
}

bool pass_table_products(ir_module *m, ir_diags *d) {
  (void)d;
  return is_differentiated_later(m) && pass_each_func(m, multiply_tables);
}
