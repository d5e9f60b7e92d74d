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
// Where a processor multiplies pairs of bf16 (pass_pair_panels, before the other), a narrowed matrix lies in pairs:
//
//   before   %z1 = matmul %h0_f32, %w_f32      # casts of %h0_bf16 and %w_bf16 : bf16[256,1024]
//   after    %r = reshape %w_bf16 : bf16[128,2,32,32]
//            %t = transpose %r {perm=[2,0,3,1]} : bf16[32,128,32,2]
//            %p = copy %t : bf16[32,128,32,2]                     a panel: pairs of 32 columns, two rows at a time
//            .. cast to f32, transposed and reshaped to f32[256,1024] again
//
// Needs: equal operands are one node (cse); narrowed ones are not f32 any more (precision). Before fuse.
// Breaks: nothing; the same sums in the same order. (Of a narrowed matrix that is not put into pairs, f32 is copied, and
// multiplied by FMAs.) Runs for processors: a GPU stages its operands anyway.
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
  bool pairs;
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

static bool is_narrowed(const ir_node *x) {
  return x->op == IR_CAST && x->in[0]->type.dtype == IR_BF16;
}

// Pairs need both operands, and whole pairs of k.
static bool may_be_pairs(const ir_node *n) {
  const ir_node *x = n->in[1];
  return is_narrowed(x) && is_narrowed(ir_below_views(n->in[0])) &&
         x->type.dims[x->type.rank - (is_turned(n) ? 1 : 2)] % 2 == 0;
}

// What view_of_panels makes.
static bool reads_panels(const ir_node *n) {
  const ir_node *x = n->in[1];
  if (x->op != IR_RESHAPE || x->in[0]->op != IR_TRANSPOSE)
    return false;
  const ir_node *p = x->in[0]->in[0];
  return p->op == IR_COPY || (is_narrowed(p) && p->in[0]->op == IR_COPY);
}

static bool may_read_panels(const panels *p, const ir_node *n) {
  if (n->op != IR_MATMUL || (p->pairs && !may_be_pairs(n)) || reads_panels(n))
    return false;
  const ir_node *x = n->in[1];
  int64_t columns = x->type.dims[column_axis(x, is_turned(n))], width = width_of(columns);
  return width > 0 && columns > width && x->type.rank + 1 + p->pairs <= IR_MAX_RANK &&
         x->type.dtype == IR_F32 && x->op != IR_TF32 && ir_bytes(&x->type) >= LEAST_BYTES &&
         n->type.dims[n->type.rank - 2] <= MOST_ROWS;
}

static panels panels_of(const ir_func *f, bool pairs) {
  panels p = {.scratch = ir_arena_new(), .pairs = pairs, .num_ids = f->next_id};
  for (int turned = 0; turned < 2; turned++) {
    p.products[turned] = IR_NEW_ARRAY(p.scratch, int, p.num_ids);
    p.view[turned] = IR_NEW_ARRAY(p.scratch, ir_node *, p.num_ids);
  }
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (may_read_panels(&p, n))
      p.products[is_turned(n)][n->in[1]->id]++;
  }
  return p;
}

// The columns become panels and columns of one, k perhaps pairs; then they change places: [.., panel, k, column], or
// [.., panel, pair of k, column, 2]. `place`: where each of those four is found in what is split.
static void split_axes(const ir_node *x, bool turned, bool pairs, int64_t *split, int64_t *perm) {
  int lead = x->type.rank - 2, k = turned ? lead + 2 : lead,
      panel = turned ? lead : lead + 1 + pairs;
  int place[] = {panel, k, panel + 1, k + 1};
  int64_t steps = x->type.dims[turned ? lead + 1 : lead];
  int64_t columns = x->type.dims[column_axis(x, turned)];
  for (int i = 0; i < lead; i++) {
    split[i] = x->type.dims[i];
    perm[i] = i;
  }
  split[panel + 1] = width_of(columns);
  split[panel] = columns / split[panel + 1];
  split[k] = pairs ? steps / 2 : steps;
  if (pairs)
    split[k + 1] = 2;
  for (int i = 0; i < 3 + pairs; i++)
    perm[lead + i] = place[i];
}

// The panels, and the views that lead back to what `x` is.
static ir_node *view_of_panels(ir_builder *b, ir_node *x, bool turned, bool pairs) {
  int rank = x->type.rank + 1 + pairs;
  int64_t split[IR_MAX_RANK], perm[IR_MAX_RANK], back[IR_MAX_RANK];
  split_axes(x, turned, pairs, split, perm);
  for (int i = 0; i < rank; i++)
    back[perm[i]] = i;
  ir_node *from = pairs ? x->in[0] : x;
  ir_node *p = ir_unary(b, IR_COPY, ir_transpose(b, ir_reshape(b, from, rank, split), perm));
  ir_rename(b->func, p, ir_format(b->func->module->arena, "%s.panels", from->name));
  if (pairs)
    p = ir_cast(b, p, IR_F32);
  return ir_reshape(b, ir_transpose(b, p, back), x->type.rank, x->type.dims);
}

static void read_panels(panels *p, ir_builder *b, ir_node *n) {
  ir_node *x = n->in[1];
  if (x->id >= p->num_ids || p->products[is_turned(n)][x->id] < LEAST_PRODUCTS)
    return;
  ir_node **view = &p->view[is_turned(n)][x->id];
  if (!*view) {
    b->scope = x->name;
    b->loc = x->loc;
    *view = view_of_panels(b, x, is_turned(n), p->pairs);
  }
  n->in[1] = *view;
}

static bool make_panels(ir_func *f, bool pairs) {
  panels p = panels_of(f, pairs);
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    if (may_read_panels(&p, n))
      read_panels(&p, &rw.b, n);
    ir_rewrite_done(&rw, i, n);
  }
  ir_arena_free(p.scratch);
  return ir_rewrite_end(&rw);
}

static bool make_pair_panels(ir_func *f) {
  return make_panels(f, true);
}

static bool make_number_panels(ir_func *f) {
  return make_panels(f, false);
}

bool pass_pair_panels(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, make_pair_panels);
}

bool pass_panels(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, make_number_panels);
}
