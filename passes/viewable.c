// viewable.c: first step of fusion. Inserts `copy` where an operand cannot be walked by strides.
//
//   before   %t = transpose %x {perm=[1,0]} : f32[4,6]
//            %r = reshape %t : f32[24]              cuts through [4,6] strided: no layout
//            %y = neg %r
//   after    %c = copy %t : f32[4,6]
//            %r = reshape %c : f32[24]
//            %y = neg %r
//
// Afterwards dom_layout_of holds for every view, dom_try for every node on its own, and the
// operands of copies and scatters are plain enough for their emitters (pass_fuse relies on it).
#include "passes/fuse.h"

typedef struct viewable {
  ir_rewrite rw;
  ir_node **copies; // by id of the copied node: one copy serves all users
  uint32_t num_ids;
  ir_arena *scratch;
} viewable;

static ir_node *copy_of(viewable *v, ir_node *n) {
  ir_node **slot = n->id < v->num_ids ? &v->copies[n->id] : NULL;
  if (slot && *slot)
    return *slot;
  ir_node *c = ir_unary(&v->rw.b, IR_COPY, n);
  if (slot)
    *slot = c;
  return c;
}

static bool wrap(viewable *v, ir_node *n, int operand) {
  n->in[operand] = copy_of(v, n->in[operand]);
  return true;
}

static bool is_generated(const ir_node *n) {
  return ir_is_generated(dom_base(n));
}

static bool plain_strides(const ir_node *n) {
  ir_node *buffer;
  int64_t offset, strides[IR_MAX_RANK];
  return !is_generated(n) && dom_view(n, &buffer, &offset, strides);
}

// From dimension `lead` on, elements lie side by side: an update is added row by row.
static bool has_plain_rows(const ir_node *n, int lead) {
  ir_node *buffer;
  int64_t offset, strides[IR_MAX_RANK], next = 1;
  if (is_generated(n) || !dom_view(n, &buffer, &offset, strides))
    return false;
  for (int i = n->type.rank - 1; i >= lead; i--) {
    if (n->type.dims[i] > 1 && strides[i] != next)
      return false;
    next *= n->type.dims[i];
  }
  return true;
}

static bool fits_alone(viewable *v, ir_node *n) {
  ir_node *anchor = ir_ops[n->op].cls == IR_CLASS_CONTRACT ? n : NULL;
  for (int i = 0; i < n->num_in; i++)
    if (ir_ops[n->in[i]->op].cls == IR_CLASS_VIEW)
      return dom_try(v->scratch, &n, 1, anchor) != NULL;
  return true; // row-major operands always do
}

// Rows of a table that are taken once at most need not be put side by side first.
static bool has_rows_in_place(const ir_node *table, const ir_node *gather) {
  return has_plain_rows(table, 1) ||
         (plain_strides(table) && ir_elements(&gather->type) <= ir_elements(&table->type));
}

bool fuse_can_read(const ir_node *n, int operand) {
  const ir_node *x = n->in[operand];
  switch (ir_ops[n->op].cls) {
  case IR_CLASS_MOVE:
    return plain_strides(x);
  case IR_CLASS_CONTRACT:
    return !is_generated(x);
  case IR_CLASS_INDEX:
    if (ir_is_scatter(n))
      return operand == 0 ? plain_strides(x) : has_plain_rows(x, n->in[0]->type.rank);
    return operand != 0 || has_rows_in_place(x, n);
  default:
    return true;
  }
}

bool fuse_can_fetch(const ir_node *gather) {
  return plain_strides(gather->in[0]) && plain_strides(gather->in[1]);
}

// It has loops, which may be others than those that its operands lie in.
static bool has_loops(const ir_node *n) {
  ir_op_class cls = ir_ops[n->op].cls;
  return cls == IR_CLASS_POINTWISE || cls == IR_CLASS_REDUCE || cls == IR_CLASS_CONTRACT ||
         n->op == IR_GATHER;
}

static bool fix_operands(viewable *v, ir_node *n) {
  bool changed = false;
  if (ir_ops[n->op].cls == IR_CLASS_VIEW) {
    dom_layout l;
    return !dom_layout_of(n, &l) && wrap(v, n, 0);
  }
  for (int i = 0; i < n->num_in; i++)
    changed |= !fuse_can_read(n, i) && wrap(v, n, i);
  if (!has_loops(n) || fits_alone(v, n))
    return changed;
  for (int i = 0; i < n->num_in; i++)
    changed |= !dom_contiguous(n->in[i]) && wrap(v, n, i);
  return changed;
}

bool fuse_make_viewable(ir_func *f) {
  viewable v = {.rw = ir_rewrite_begin(f), .num_ids = f->next_id, .scratch = ir_arena_new()};
  v.copies = IR_NEW_ARRAY(v.scratch, ir_node *, v.num_ids);
  bool changed = false;
  for (size_t i = 0; i < v.rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&v.rw, i);
    changed |= fix_operands(&v, n);
    ir_rewrite_done(&v.rw, i, n);
  }
  ir_rewrite_end(&v.rw);
  ir_arena_free(v.scratch);
  return changed;
}
