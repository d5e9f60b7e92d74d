// panels.c: a matrix that many products are multiplied by is put into the order in which they read it, once.
//
//   before   %z1 = matmul %h0, %w        # %w : f32[256,1024]
//            %z2 = matmul %h1, %w
//            ..
//   after    %r = reshape %w : f32[256,32,32]
//            %t = transpose %r {perm=[1,0,2]} : f32[32,256,32]
//            %p = copy %t : f32[32,256,32]                        a panel: 32 columns, row by row
//            %v = transpose %p {perm=[1,0,2]}
//            %w.2 = reshape %v : f32[256,1024]                    the same matrix, for those that look
//            %z1 = matmul %h0, %w.2
//            ..
//
// The kernel of a product reads the columns of a tile for all of k. In a wide matrix these are scraps of
// rows that share few sets of the caches, in a transposed one no vectors at all; so it would copy them into
// such panels first, each kernel for itself, and a recurrent network as often as it has steps. With few
// rows that copy takes as long as the product. Panels that are there are read in place; the threads of a
// team take the same ones at every step and find them in their caches.
//
// The other way, a workspace that outlives its kernel, would be known to nobody between here and the
// plan: not to the order, nor to what runs kernels again where memory is short. A tensor is.
//
// Needs: equal operands are one node (cse); narrowed ones are not f32 any more (precision). Before fuse.
// Breaks: nothing; the same sums in the same order. Runs for processors: a GPU stages its operands anyway.
#include "ir/builder.h"
#include "passes/pass.h"

enum {
  LEAST_PRODUCTS = 4,  // it must be worth a kernel, and memory from the first of them to the last
  LEAST_BYTES = 65536, // smaller ones stay in a first cache however they lie
  MOST_ROWS = 256,     // beside products of more rows a copy is little
};
// Columns of a panel: whole tiles of every target. A matrix that neither divides is left as it is.
static const int64_t widths[] = {32, 16};

typedef struct panels {
  ir_arena *scratch;
  uint32_t num_ids;
  int *products[2]; // [tb][id of the second operand]
  ir_node **view[2];
} panels;

static bool is_turned(const ir_node *product) {
  return ir_attr_bool(product, IR_ATTR_TRANS_B);
}

// [.., k, columns], or turned [.., columns, k]
static int column_axis(const ir_node *x, bool turned) {
  return x->type.rank - (turned ? 2 : 1);
}

static int64_t width_of(int64_t columns) {
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    if (columns % widths[i] == 0)
      return widths[i];
  return 0;
}

static bool may_read_panels(const ir_node *n) {
  if (n->op != IR_MATMUL)
    return false;
  const ir_node *x = n->in[1];
  int64_t columns = x->type.dims[column_axis(x, is_turned(n))], width = width_of(columns);
  return width > 0 && columns > width && x->type.rank < IR_MAX_RANK && x->type.dtype == IR_F32 &&
         x->op != IR_TF32 && ir_bytes(&x->type) >= LEAST_BYTES &&
         n->type.dims[n->type.rank - 2] <= MOST_ROWS;
}

static panels panels_of(const ir_func *f) {
  panels p = {.scratch = ir_arena_new(), .num_ids = f->next_id};
  for (int turned = 0; turned < 2; turned++) {
    p.products[turned] = IR_NEW_ARRAY(p.scratch, int, p.num_ids);
    p.view[turned] = IR_NEW_ARRAY(p.scratch, ir_node *, p.num_ids);
  }
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (may_read_panels(n))
      p.products[is_turned(n)][n->in[1]->id]++;
  }
  return p;
}

// The columns become panels and columns of one; then panels and k, or these columns and k, change
// places: [.., panel, k, column]. The same again leads back to what `x` is.
static ir_node *view_of_panels(ir_builder *b, ir_node *x, bool turned) {
  int rank = x->type.rank, columns = column_axis(x, turned), first = turned ? rank - 1 : rank - 2;
  int64_t split[IR_MAX_RANK], swap[IR_MAX_RANK];
  for (int i = 0; i < rank; i++)
    split[i + (i > columns)] = x->type.dims[i];
  split[columns + 1] = width_of(split[columns]);
  split[columns] /= split[columns + 1];
  for (int i = 0; i <= rank; i++)
    swap[i] = i == first ? i + 1 : i == first + 1 ? i - 1 : i;
  ir_node *p = ir_unary(b, IR_COPY, ir_transpose(b, ir_reshape(b, x, rank + 1, split), swap));
  ir_rename(b->func, p, ir_format(b->func->module->arena, "%s.panels", x->name));
  return ir_reshape(b, ir_transpose(b, p, swap), rank, x->type.dims);
}

static void read_panels(panels *p, ir_builder *b, ir_node *n) {
  ir_node *x = n->in[1];
  if (x->id >= p->num_ids || p->products[is_turned(n)][x->id] < LEAST_PRODUCTS)
    return;
  ir_node **view = &p->view[is_turned(n)][x->id];
  if (!*view) {
    b->scope = x->name;
    b->loc = x->loc;
    *view = view_of_panels(b, x, is_turned(n));
  }
  n->in[1] = *view;
}

static bool make_panels(ir_func *f) {
  panels p = panels_of(f);
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    if (may_read_panels(n))
      read_panels(&p, &rw.b, n);
    ir_rewrite_done(&rw, i, n);
  }
  ir_arena_free(p.scratch);
  return ir_rewrite_end(&rw);
}

bool pass_panels(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, make_panels);
}
