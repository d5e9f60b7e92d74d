// builder.h: the way to make nodes. Types are inferred by the op's shape rule
// (ops.def); a violated rule is a BUG here, because user-facing code checks with
// ir_infer first.
#ifndef IR_BUILDER_H
#define IR_BUILDER_H

#include "ir/ir.h"

// Appends to `func->nodes`. `loc` and `scope` are given to each node made.
typedef struct ir_builder {
  ir_func *func;
  ir_loc loc;
  const char *scope; // "layer.0.attn" or NULL: prefix of names
} ir_builder;

ir_builder ir_build_at_end(ir_func *f);

// The general constructor. `name` is a hint ("q", "logits"; NULL: the op's text): prefixed with
// the scope and made unique. `type` is used by ops whose type is given (input, const, iota,
// uniform, normal, cast, reshape, broadcast, scatter_add); NULL otherwise.
ir_node *ir_build(ir_builder *b, ir_op op, const char *name, int num_in, ir_node *const *in,
                  int num_attrs, const ir_attr *attrs, const ir_type *type);
// What `n` is, of these operands, at its place in the source.
ir_node *ir_build_like(ir_builder *b, const ir_node *n, ir_node *const *in);
// The type that ir_build would give: false, with a reason in words, when the rule is violated.
bool ir_infer(ir_arena *a, ir_op op, int num_in, const ir_type *in, int num_attrs,
              const ir_attr *attrs, const ir_type *given, ir_type *out, const char **why);
void ir_rename(ir_func *f, ir_node *n, const char *hint); // unique again

// Attribute literals for ir_build.
ir_attr ir_a_int(ir_attr_key key, int64_t v);
ir_attr ir_a_num(ir_attr_key key, double v);
ir_attr ir_a_bool(ir_attr_key key, bool v);
ir_attr ir_a_ints(ir_arena *a, ir_attr_key key, const int64_t *v, int num); // copied

// --- leaves
ir_node *ir_input(ir_builder *b, const char *name, ir_type type);
ir_node *ir_read(ir_builder *b, ir_state *s);
ir_node *ir_const(ir_builder *b, ir_type type, double value); // splat
ir_node *ir_iota(ir_builder *b, ir_type type, int axis);
ir_node *ir_uniform(ir_builder *b, ir_type type, ir_node *seed, ir_node *step, int64_t stream);
ir_node *ir_normal(ir_builder *b, ir_type type, ir_node *seed, ir_node *step, int64_t stream);
// --- pointwise: operands of equal type (equal shape for select)
ir_node *ir_unary(ir_builder *b, ir_op op, ir_node *x);
ir_node *ir_binary(ir_builder *b, ir_op op, ir_node *x, ir_node *y);
ir_node *ir_select(ir_builder *b, ir_node *cond, ir_node *x, ir_node *y);
ir_node *ir_cast(ir_builder *b, ir_node *x, ir_dtype t); // x itself when already t
// op(x, splat constant of x's type)
ir_node *ir_binary_const(ir_builder *b, ir_op op, ir_node *x, double y);
// --- reductions: dimensions stay with size 1
ir_node *ir_reduce(ir_builder *b, ir_op op, ir_node *x, const int64_t *axes, int num_axes);
ir_node *ir_arg(ir_builder *b, ir_op op, ir_node *x, int axis); // i32
// --- views (x itself when nothing changes)
ir_node *ir_reshape(ir_builder *b, ir_node *x, int rank, const int64_t *dims);
ir_node *ir_transpose(ir_builder *b, ir_node *x, const int64_t *perm);
ir_node *ir_broadcast(ir_builder *b, ir_node *x, int rank, const int64_t *dims); // equal rank
ir_node *ir_slice(ir_builder *b, ir_node *x, const int64_t *start, const int64_t *stop,
                  const int64_t *step);
// num_axes of x become positions of windows; what is in them comes last.
ir_node *ir_windows(ir_builder *b, ir_node *x, int num_axes, const int64_t *axes,
                    const int64_t *size, const int64_t *step, const int64_t *dilate);
// Numpy's rule in one call: adds leading dimensions, then broadcasts.
ir_node *ir_broadcast_to(ir_builder *b, ir_node *x, int rank, const int64_t *dims);
// --- the rest
ir_node *ir_pad(ir_builder *b, ir_node *x, const int64_t *lo, const int64_t *hi, double value);
ir_node *ir_concat(ir_builder *b, int num, ir_node *const *xs, int axis);
// `x`, but the elements from lo[axis] on are those of `part`.
ir_node *ir_insert(ir_builder *b, ir_node *x, ir_node *part, const int64_t *lo);
ir_node *ir_gather(ir_builder *b, ir_node *table, ir_node *index);
ir_node *ir_scatter_add(ir_builder *b, ir_node *index, ir_node *update, int64_t rows);
ir_node *ir_scatter_max(ir_builder *b, ir_node *index, ir_node *update, int64_t rows);
ir_node *ir_matmul(ir_builder *b, ir_node *x, ir_node *y, bool ta, bool tb);
// step, dilate: for each axis of x but the first and the last
ir_node *ir_conv(ir_builder *b, ir_node *x, ir_node *kernel, const int64_t *step,
                 const int64_t *dilate);
ir_node *ir_write(ir_builder *b, ir_state *s, ir_node *x);
ir_node *ir_grad(ir_builder *b, ir_node *loss, ir_node *wrt);

void ir_result_add(ir_func *f, const char *name, ir_result_kind kind, ir_node *n);

// --- rewriting -----------------------------------------------------------------------------
// Passes rebuild a function's node list: start, then for each old node in order either
// keep it or map it to something built, then finish. Operands of kept nodes and results are
// redirected; nodes that nothing needs any more are dropped.
//   ir_rewrite rw = ir_rewrite_begin(f);
//   for (size_t i = 0; i < rw.num_old; i++) {
//     ir_node *n = ir_rewrite_next(&rw, i);       // operands already redirected
//     ir_node *r = improve(&rw.b, n);             // may build nodes; NULL: keep n
//     ir_rewrite_done(&rw, i, r ? r : n);
//   }
//   changed = ir_rewrite_end(&rw);
typedef struct ir_rewrite {
  ir_builder b;
  ir_node **old;
  size_t num_old;
  ir_node **map; // by old node id
  uint32_t map_size;
  size_t first_new; // where the nodes built for the old node at hand begin
  bool changed;
} ir_rewrite;
ir_rewrite ir_rewrite_begin(ir_func *f);
ir_node *ir_rewrite_next(ir_rewrite *rw, size_t i);
void ir_rewrite_done(ir_rewrite *rw, size_t i, ir_node *replacement);
// What stands for an old node that has been done.
ir_node *ir_rewrite_now(const ir_rewrite *rw, ir_node *n);
bool ir_rewrite_end(ir_rewrite *rw);
// "d.fc.w", "d.fc.w.2": whether it is the gradient of a state by its name, by which people and `check` look for it. Rewrites
// keep it.
bool ir_names_gradient(const ir_func *f, const ir_node *n);
// Bytes of a name that a number follows: of "linear.w.2" those of "linear.w". All of them where none does.
size_t ir_before_number(const char *name);
// All of that, for what needs to know nothing but the node. Whether anything has changed.
bool ir_rewrite_each(ir_func *f, ir_node *(*improve)(ir_builder *b, ir_node *n));
// [id] whether a result, write or effect needs the node, or it is an input.
bool *ir_find_live(ir_arena *a, const ir_func *f);
// Drops nodes that no result, write or effect needs. True when any went.
bool ir_drop_dead(ir_func *f);

#endif
