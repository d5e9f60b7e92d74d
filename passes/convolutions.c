// convolutions.c: a convolution becomes a product of two matrices; nothing is copied.
//
//   before   %y = conv %x, %k {step=[1,1],dilate=[1,1]} : f32[64,26,26,32]   # x [64,28,28,1], k
//   [3,3,1,32] after    %w = windows %x {axes=[1,2],size=[3,3],...} : f32[64,26,26,1,3,3]
//            %t = transpose %w {perm=[0,1,2,4,5,3]} : f32[64,26,26,3,3,1]
//            %a = reshape %t : f32[43264,9]
//            %m = reshape %k : f32[9,32]
//            %p = matmul %a, %m : f32[43264,32]
//            %y = reshape %p : f32[64,26,26,32]
//
// All but the matmul are views, with overlapping rows of %a: matmul kernels copy the panels that
// they multiply from where %x lies, so the large matrix of windows is never in memory ("implicit
// GEMM": Chetlur et al. 2014, section 3). Tiles, tensor cores, narrow precision, epilogues and
// splits of long sums are those of every matmul. Channels come last, so that windows are runs of
// neighbours and a result row is what one place has computed.
//
// The other way is a kernel family of its own. It would need all of that again for two targets;
// what it could do better (Winograd's transform, blocked layouts) can be said as other nodes here,
// too.
//
// Needs: autodiff, whose rule for conv (grad_windows.c) is better than that of windows and matmul.
// Breaks: nothing; later passes know views and matmuls.
#include "passes/convolutions.h"
#include "passes/pass.h"

enum { MAX_AXES = IR_MAX_RANK / 2 - 1 };

static bool is_pointwise(const ir_type *kernel) {
  for (int i = 0; i < kernel->rank - 2; i++)
    if (kernel->dims[i] != 1)
      return false;
  return true;
}

// A kernel of one element: its windows are the elements at every step.
static ir_node *steps_of(ir_builder *b, const ir_node *conv, const int64_t *step) {
  ir_node *x = conv->in[0];
  int64_t start[IR_MAX_RANK] = {0}, by[IR_MAX_RANK], stop[IR_MAX_RANK];
  for (int i = 0; i < x->type.rank; i++) {
    by[i] = i > 0 && i < x->type.rank - 1 ? step[i - 1] : 1;
    stop[i] = x->type.dims[i];
  }
  return ir_slice(b, x, start, stop, by);
}

static ir_node *windows_of(ir_builder *b, const ir_node *conv, const int64_t *step) {
  int num = conv->type.rank - 2;
  const int64_t *dilate = ir_attr_ints(conv, IR_ATTR_DILATE, NULL);
  int64_t axes[MAX_AXES], perm[IR_MAX_RANK] = {0};
  for (int i = 0; i < num; i++) {
    axes[i] = 1 + i;
    perm[1 + i] = 1 + i;
    perm[1 + num + i] = 2 + num + i;
  }
  perm[1 + 2 * num] = 1 + num; // channels
  ir_node *w = ir_windows(b, conv->in[0], num, axes, conv->in[1]->type.dims, step, dilate);
  return ir_transpose(b, w, perm);
}

ir_node *conv_columns(ir_builder *b, const ir_node *conv) {
  const int64_t *step = ir_attr_ints(conv, IR_ATTR_STEP, NULL);
  const ir_type *kernel = &conv->in[1]->type;
  ir_node *seen = is_pointwise(kernel) ? steps_of(b, conv, step) : windows_of(b, conv, step);
  int64_t columns = ir_elements(kernel) / kernel->dims[kernel->rank - 1];
  return ir_reshape(b, seen, 2, (int64_t[]){ir_elements(&seen->type) / columns, columns});
}

static ir_node *as_matmul(ir_builder *b, ir_node *conv) {
  ir_node *columns = conv_columns(b, conv);
  int64_t m = conv->type.dims[conv->type.rank - 1];
  ir_node *kernel = ir_reshape(b, conv->in[1], 2, (int64_t[]){columns->type.dims[1], m});
  ir_node *product = ir_matmul(b, columns, kernel, false, false);
  return ir_reshape(b, product, conv->type.rank, conv->type.dims);
}

static bool write_out(ir_func *f) {
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    bool conv = n->op == IR_CONV;
    if (conv) {
      rw.b.loc = n->loc;
      rw.b.scope = NULL;
    }
    ir_rewrite_done(&rw, i, conv ? as_matmul(&rw.b, n) : n);
  }
  return ir_rewrite_end(&rw);
}

bool pass_convolutions(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, write_out);
}
