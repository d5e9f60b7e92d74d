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
// Before that, a convolution of which only some places are used (the gradient of an input that has
// been padded: the padding's own gradient is cut off) computes no others:
//
//   before   %y = conv %x, %k {step=[1,1],...} : f32[32,34,34,16]
//            %z = slice %y {start=[0,1,1,0],stop=[32,33,33,16],...} : f32[32,32,32,16]
//   after    %s = slice %x {start=[0,1,1,0],stop=[32,35,35,16],...}
//            %z = conv %s, %k {step=[1,1],...} : f32[32,32,32,16]
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

// --- places that nobody uses ---------------------------------------------------------------
// A slice that takes all samples and channels, of a convolution that nothing else uses.
static bool takes_places(const ir_node *n) {
  if (n->op != IR_SLICE || n->in[0]->op != IR_CONV || n->in[0]->mark != 1)
    return false;
  int last = n->type.rank - 1;
  return n->type.dims[0] == n->in[0]->type.dims[0] &&
         n->type.dims[last] == n->in[0]->type.dims[last];
}

static ir_node *conv_of_slice(ir_builder *b, ir_node *slice) {
  ir_node *conv = slice->in[0], *x = conv->in[0];
  const int64_t *first = ir_attr_ints(slice, IR_ATTR_START, NULL);
  const int64_t *by = ir_attr_ints(slice, IR_ATTR_STEP, NULL);
  const int64_t *conv_step = ir_attr_ints(conv, IR_ATTR_STEP, NULL);
  const int64_t *dilate = ir_attr_ints(conv, IR_ATTR_DILATE, NULL);
  int64_t start[IR_MAX_RANK] = {0}, stop[IR_MAX_RANK], one[IR_MAX_RANK], step[IR_MAX_RANK];
  for (int i = 0; i < x->type.rank; i++) {
    stop[i] = x->type.dims[i];
    one[i] = 1;
  }
  for (int i = 0; i < x->type.rank - 2; i++) {
    int64_t window = (conv->in[1]->type.dims[i] - 1) * dilate[i] + 1;
    step[i] = conv_step[i] * by[1 + i];
    start[1 + i] = first[1 + i] * conv_step[i];
    stop[1 + i] = start[1 + i] + (slice->type.dims[1 + i] - 1) * step[i] + window;
  }
  ir_node *part = ir_slice(b, x, start, stop, one);
  return ir_conv(b, part, conv->in[1], step, dilate);
}

static bool leave_places_out(ir_func *f) {
  pass_count_uses(f);
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    bool some = takes_places(n);
    if (some)
      rw.b.scope = n->in[0]->name;
    ir_rewrite_done(&rw, i, some ? conv_of_slice(&rw.b, n) : n);
  }
  return ir_rewrite_end(&rw);
}

// --- products --------------------------------------------------------------------------------
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
  bool fewer = pass_each_func(m, leave_places_out);
  return pass_each_func(m, write_out) || fewer;
}
