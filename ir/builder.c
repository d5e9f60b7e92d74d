// builder.c: the way to make nodes. See builder.h.
#include "ir/builder.h"
#include "ir/internal.h"

#include <string.h>

ir_builder ir_build_at_end(ir_func *f) {
  return (ir_builder){.func = f};
}

static ir_arena *arena_of(const ir_builder *b) {
  return b->func->module->arena;
}

// --- making one node -----------------------------------------------------------------------
typedef struct node_parts {
  ir_op op;
  int num_in;
  ir_node *const *in;
  int num_attrs;
  const ir_attr *attrs;
  const ir_type *given;
  ir_state *state;
} node_parts;

static ir_type infer_or_bug(ir_arena *a, const node_parts *p) {
  ir_type few[8], *in = p->num_in <= 8 ? few : IR_NEW_ARRAY(a, ir_type, p->num_in);
  for (int i = 0; i < p->num_in; i++)
    in[i] = p->in[i]->type;
  ir_type type;
  const char *why = NULL;
  if (!ir_infer(a, p->op, p->num_in, in, p->num_attrs, p->attrs, p->given, &type, &why))
    BUG("cannot build '%s': %s", ir_ops[p->op].name, why);
  return type;
}

static void *copy_array(ir_arena *a, const void *from, size_t bytes) {
  void *p = bytes ? ir_alloc(a, bytes) : NULL;
  if (bytes)
    memcpy(p, from, bytes);
  return p;
}

// `name` NULL: a write.
static ir_node *append(ir_builder *b, const char *name, const node_parts *p) {
  ir_arena *a = arena_of(b);
  ir_node *n = IR_NEW(a, ir_node);
  n->op = p->op;
  n->type = infer_or_bug(a, p);
  n->id = b->func->next_id++;
  n->in = copy_array(a, p->in, sizeof *p->in * (size_t)p->num_in);
  n->num_in = p->num_in;
  ir_attr *attrs = copy_array(a, p->attrs, sizeof *p->attrs * (size_t)p->num_attrs);
  ir_sort_attrs(attrs, p->num_attrs);
  n->attrs = attrs;
  n->num_attrs = p->num_attrs;
  n->state = p->state;
  n->loc = b->loc;
  if (name)
    ir_name_node(b->func, n, name);
  else
    n->name = ir_write_name(a, p->state);
  IR_PUSH(a, b->func->nodes, n);
  return n;
}

static const char *scoped(const ir_builder *b, const char *hint) {
  return b->scope && *b->scope ? ir_format(arena_of(b), "%s.%s", b->scope, hint) : hint;
}

ir_node *ir_build(ir_builder *b, ir_op op, const char *name, int num_in, ir_node *const *in,
                  int num_attrs, const ir_attr *attrs, const ir_type *type) {
  BUG_IF(op == IR_READ || op == IR_WRITE, "use ir_read and ir_write");
  node_parts p = {op, num_in, in, num_attrs, attrs, type, NULL};
  return append(b, scoped(b, name ? name : ir_ops[op].name), &p);
}

ir_node *ir_build_like(ir_builder *b, const ir_node *n, ir_node *const *in) {
  b->loc = n->loc;
  return ir_build(b, n->op, n->name, n->num_in, in, n->num_attrs, n->attrs, &n->type);
}

// --- attribute literals -----------------------------------------------------------------------
ir_attr ir_a_int(ir_attr_key key, int64_t v) {
  return (ir_attr){.key = key, .as.i = v};
}

ir_attr ir_a_num(ir_attr_key key, double v) {
  return (ir_attr){.key = key, .as.num = v};
}

ir_attr ir_a_bool(ir_attr_key key, bool v) {
  return (ir_attr){.key = key, .as.i = v};
}

ir_attr ir_a_ints(ir_arena *a, ir_attr_key key, const int64_t *v, int num) {
  ir_attr attr = {.key = key};
  attr.as.ints.at = copy_array(a, v, sizeof *v * (size_t)num);
  attr.as.ints.num = num;
  return attr;
}

// --- leaves --------------------------------------------------------------------------------------
ir_node *ir_input(ir_builder *b, const char *name, ir_type type) {
  node_parts p = {.op = IR_INPUT, .given = &type};
  return append(b, name, &p);
}

ir_node *ir_read(ir_builder *b, ir_state *s) {
  node_parts p = {.op = IR_READ, .given = &s->type, .state = s};
  return append(b, s->name, &p);
}

ir_node *ir_const(ir_builder *b, ir_type type, double value) {
  ir_attr attr = ir_a_num(IR_ATTR_VALUE, value);
  return ir_build(b, IR_CONST, NULL, 0, NULL, 1, &attr, &type);
}

ir_node *ir_iota(ir_builder *b, ir_type type, int axis) {
  ir_attr attr = ir_a_int(IR_ATTR_AXIS, axis);
  return ir_build(b, IR_IOTA, NULL, 0, NULL, 1, &attr, &type);
}

static ir_node *random_node(ir_builder *b, ir_op op, ir_type type, ir_node *seed, ir_node *step,
                            int64_t stream) {
  ir_attr attr = ir_a_int(IR_ATTR_STREAM, stream);
  return ir_build(b, op, NULL, 2, (ir_node *[]){seed, step}, 1, &attr, &type);
}

ir_node *ir_uniform(ir_builder *b, ir_type type, ir_node *seed, ir_node *step, int64_t stream) {
  return random_node(b, IR_UNIFORM, type, seed, step, stream);
}

ir_node *ir_normal(ir_builder *b, ir_type type, ir_node *seed, ir_node *step, int64_t stream) {
  return random_node(b, IR_NORMAL, type, seed, step, stream);
}

// --- pointwise -----------------------------------------------------------------------------------
ir_node *ir_unary(ir_builder *b, ir_op op, ir_node *x) {
  return ir_build(b, op, NULL, 1, &x, 0, NULL, NULL);
}

ir_node *ir_binary(ir_builder *b, ir_op op, ir_node *x, ir_node *y) {
  return ir_build(b, op, NULL, 2, (ir_node *[]){x, y}, 0, NULL, NULL);
}

ir_node *ir_select(ir_builder *b, ir_node *cond, ir_node *x, ir_node *y) {
  return ir_build(b, IR_SELECT, NULL, 3, (ir_node *[]){cond, x, y}, 0, NULL, NULL);
}

ir_node *ir_cast(ir_builder *b, ir_node *x, ir_dtype t) {
  if (x->type.dtype == t)
    return x;
  ir_type type = x->type;
  type.dtype = t;
  return ir_build(b, IR_CAST, NULL, 1, &x, 0, NULL, &type);
}

ir_node *ir_binary_const(ir_builder *b, ir_op op, ir_node *x, double y) {
  return ir_binary(b, op, x, ir_const(b, x->type, y));
}

// --- reductions ----------------------------------------------------------------------------------
ir_node *ir_reduce(ir_builder *b, ir_op op, ir_node *x, const int64_t *axes, int num_axes) {
  if (num_axes == 0)
    return x;
  ir_attr attr = ir_a_ints(arena_of(b), IR_ATTR_AXES, axes, num_axes);
  return ir_build(b, op, NULL, 1, &x, 1, &attr, NULL);
}

ir_node *ir_arg(ir_builder *b, ir_op op, ir_node *x, int axis) {
  ir_attr attr = ir_a_int(IR_ATTR_AXIS, axis);
  return ir_build(b, op, NULL, 1, &x, 1, &attr, NULL);
}

// --- views ---------------------------------------------------------------------------------------
static ir_node *view_to(ir_builder *b, ir_op op, ir_node *x, int rank, const int64_t *dims) {
  ir_type type = ir_tensor(x->type.dtype, rank, dims);
  return ir_same_shape(&type, &x->type) ? x : ir_build(b, op, NULL, 1, &x, 0, NULL, &type);
}

ir_node *ir_reshape(ir_builder *b, ir_node *x, int rank, const int64_t *dims) {
  return view_to(b, IR_RESHAPE, x, rank, dims);
}

ir_node *ir_broadcast(ir_builder *b, ir_node *x, int rank, const int64_t *dims) {
  return view_to(b, IR_BROADCAST, x, rank, dims);
}

ir_node *ir_transpose(ir_builder *b, ir_node *x, const int64_t *perm) {
  bool same = true;
  for (int i = 0; i < x->type.rank; i++)
    same = same && perm[i] == i;
  if (same)
    return x;
  ir_attr attr = ir_a_ints(arena_of(b), IR_ATTR_PERM, perm, x->type.rank);
  return ir_build(b, IR_TRANSPOSE, NULL, 1, &x, 1, &attr, NULL);
}

ir_node *ir_slice(ir_builder *b, ir_node *x, const int64_t *start, const int64_t *stop,
                  const int64_t *step) {
  int64_t end[IR_MAX_RANK], by[IR_MAX_RANK];
  bool all = true;
  int rank = x->type.rank;
  for (int i = 0; i < rank; i++) {
    bool one = stop[i] - start[i] <= step[i]; // a step may be long, but it is not taken
    end[i] = one ? start[i] + 1 : stop[i];
    by[i] = one ? 1 : step[i];
    all = all && start[i] == 0 && end[i] == x->type.dims[i] && by[i] == 1;
  }
  if (all)
    return x;
  ir_arena *a = arena_of(b);
  ir_attr attrs[] = {ir_a_ints(a, IR_ATTR_START, start, rank),
                     ir_a_ints(a, IR_ATTR_STOP, end, rank), ir_a_ints(a, IR_ATTR_STEP, by, rank)};
  return ir_build(b, IR_SLICE, NULL, 1, &x, 3, attrs, NULL);
}

ir_node *ir_windows(ir_builder *b, ir_node *x, int num_axes, const int64_t *axes,
                    const int64_t *size, const int64_t *step, const int64_t *dilate) {
  ir_arena *a = arena_of(b);
  ir_attr attrs[] = {
      ir_a_ints(a, IR_ATTR_AXES, axes, num_axes), ir_a_ints(a, IR_ATTR_SIZE, size, num_axes),
      ir_a_ints(a, IR_ATTR_STEP, step, num_axes), ir_a_ints(a, IR_ATTR_DILATE, dilate, num_axes)};
  return ir_build(b, IR_WINDOWS, NULL, 1, &x, 4, attrs, NULL);
}

ir_node *ir_broadcast_to(ir_builder *b, ir_node *x, int rank, const int64_t *dims) {
  BUG_IF(rank < x->type.rank || rank > IR_MAX_RANK, "broadcast of rank %d to rank %d", x->type.rank,
         rank);
  int64_t lead[IR_MAX_RANK];
  int more = rank - x->type.rank;
  for (int i = 0; i < rank; i++)
    lead[i] = i < more ? 1 : x->type.dims[i - more];
  return ir_broadcast(b, ir_reshape(b, x, rank, lead), rank, dims);
}

// --- the rest ------------------------------------------------------------------------------------
ir_node *ir_pad(ir_builder *b, ir_node *x, const int64_t *lo, const int64_t *hi, double value) {
  ir_arena *a = arena_of(b);
  ir_attr attrs[] = {ir_a_ints(a, IR_ATTR_LO, lo, x->type.rank),
                     ir_a_ints(a, IR_ATTR_HI, hi, x->type.rank), ir_a_num(IR_ATTR_VALUE, value)};
  return ir_build(b, IR_PAD, NULL, 1, &x, 3, attrs, NULL);
}

ir_node *ir_concat(ir_builder *b, int num, ir_node *const *xs, int axis) {
  ir_attr attr = ir_a_int(IR_ATTR_AXIS, axis);
  return ir_build(b, IR_CONCAT, NULL, num, xs, 1, &attr, NULL);
}

ir_node *ir_insert(ir_builder *b, ir_node *x, ir_node *part, const int64_t *lo) {
  ir_attr attr = ir_a_ints(arena_of(b), IR_ATTR_LO, lo, x->type.rank);
  return ir_build(b, IR_INSERT, NULL, 2, (ir_node *[]){x, part}, 1, &attr, NULL);
}

ir_node *ir_gather(ir_builder *b, ir_node *table, ir_node *index) {
  return ir_build(b, IR_GATHER, NULL, 2, (ir_node *[]){table, index}, 0, NULL, NULL);
}

static ir_node *scatter(ir_builder *b, ir_op op, ir_node *index, ir_node *update, int64_t rows) {
  int lead = index->type.rank, rest = update->type.rank - lead;
  BUG_IF(rest < 0 || rest >= IR_MAX_RANK, "%s of rank %d by an index of rank %d", ir_ops[op].name,
         update->type.rank, lead);
  ir_type type = {.dtype = update->type.dtype, .rank = rest + 1, .dims = {rows}};
  for (int i = 0; i < rest; i++)
    type.dims[i + 1] = update->type.dims[lead + i];
  return ir_build(b, op, NULL, 2, (ir_node *[]){index, update}, 0, NULL, &type);
}

ir_node *ir_scatter_add(ir_builder *b, ir_node *index, ir_node *update, int64_t rows) {
  return scatter(b, IR_SCATTER_ADD, index, update, rows);
}

ir_node *ir_scatter_max(ir_builder *b, ir_node *index, ir_node *update, int64_t rows) {
  return scatter(b, IR_SCATTER_MAX, index, update, rows);
}

ir_node *ir_matmul(ir_builder *b, ir_node *x, ir_node *y, bool ta, bool tb) {
  ir_attr attrs[] = {ir_a_bool(IR_ATTR_TRANS_A, ta), ir_a_bool(IR_ATTR_TRANS_B, tb)};
  return ir_build(b, IR_MATMUL, NULL, 2, (ir_node *[]){x, y}, 2, attrs, NULL);
}

ir_node *ir_conv(ir_builder *b, ir_node *x, ir_node *kernel, const int64_t *step,
                 const int64_t *dilate) {
  int num = x->type.rank - 2;
  ir_attr attrs[] = {ir_a_ints(arena_of(b), IR_ATTR_STEP, step, num),
                     ir_a_ints(arena_of(b), IR_ATTR_DILATE, dilate, num)};
  return ir_build(b, IR_CONV, NULL, 2, (ir_node *[]){x, kernel}, 2, attrs, NULL);
}

ir_node *ir_write(ir_builder *b, ir_state *s, ir_node *x) {
  node_parts p = {.op = IR_WRITE, .num_in = 1, .in = &x, .state = s};
  return append(b, NULL, &p);
}

ir_node *ir_grad(ir_builder *b, ir_node *loss, ir_node *wrt) {
  node_parts p = {.op = IR_GRAD, .num_in = 2, .in = (ir_node *[]){loss, wrt}};
  return append(b, ir_format(arena_of(b), "d.%s", wrt->name), &p);
}

void ir_result_add(ir_func *f, const char *name, ir_result_kind kind, ir_node *n) {
  ir_result r = {ir_strdup(f->module->arena, name), kind, n};
  IR_PUSH(f->module->arena, f->results, r);
}
