// plain.c: the plain version of a kernel, for `./trainer check` (plain_prelude.h).
//
// Each member becomes one array of doubles. Pointwise members of one shape share a loop nest when
// they read each other at the very element that is computed; any other member has its own:
//
//   double *const v0_h = all + 0, *const v1_s = all + 8192;
//   for (int64_t i0 = 0; i0 < 64; i0++)
//     for (int64_t i1 = 0; i1 < 128; i1++) {
//       const int64_t at = i0 * 128 + i1;
//       v0_h[at] = (((const double *)args[0])[at] + ((const double *)args[2])[i1]); // add
//     }
//
// Views are index arithmetic (dom_layout), so a plain version shares nothing with the fast one but
// the layouts. Buffers of both float types hold doubles: plain versions called one after the other
// (plain_step.h) are then double precision from the first to the last.
//
// A tap is a member whose values the caller wants. A gradient is given away: what the optimiser's
// kernel computes and keeps to itself can be compared with finite differences. A value that has no
// gradient by rule (a comparison, floor, stop) is kept by one run and used again by the next, which
// therefore computes the smooth function that gradients are gradients of:
//
//   v1_gt[at] = k_hold(taps, hold, 0, at, (v0_y[at] > 0)); // gt
#include "codegen/plain.h"

#include <inttypes.h>
#include <string.h>

#include "ir/builder.h"
#include "text_plain_prelude_h.h"

typedef struct plain {
  ir_arena *a;
  const cg_kernel *c;
  const cg_taps *taps;
  bool named; // variables have names of the graph, too
  ir_buf *out;
  ir_map *names;
  const char **var; // by position in the kernel: the array of a member
  size_t nest;      // the first member of the open loop nest
  const char *at;   // its element, as text over the loop variables, is `at`; NULL: no such nest
} plain;

const char *cg_plain_prelude(void) {
  return text_plain_prelude_h;
}

// --- index arithmetic ------------------------------------------------------------------------
typedef struct indices {
  const char *at[IR_MAX_RANK]; // C expression per dimension
} indices;

static indices loop_indices(const plain *p, int rank) {
  indices x = {{0}};
  for (int d = 0; d < rank; d++)
    x.at[d] = ir_format(p->a, "i%d", d);
  return x;
}

// " + i0 * 128"; nothing for an index that is always 0.
static void add_term(ir_buf *b, const char *index, int64_t inner, int64_t size, int64_t stride) {
  if (stride == 0 || strcmp(index, "0") == 0)
    return;
  bool simple = !strpbrk(index, " ");
  ir_buf_printf(b, simple ? "%s%s" : "%s(%s)", b->len ? " + " : "", index);
  if (inner > 1)
    ir_buf_printf(b, " / %" PRId64, inner);
  if (size > 0)
    ir_buf_printf(b, " %% %" PRId64, size);
  if (stride > 1 || stride < 0)
    ir_buf_printf(b, " * %" PRId64, stride);
}

static const char *row_major(const plain *p, const ir_type *t, const indices *x) {
  ir_buf b = ir_buf_new(p->a);
  int64_t stride = ir_elements(t);
  for (int d = 0; d < t->rank; d++) {
    stride /= t->dims[d] > 0 ? t->dims[d] : 1;
    add_term(&b, t->dims[d] == 1 ? "0" : x->at[d], 1, 0, stride);
  }
  return b.len ? ir_buf_str(&b) : "0";
}

// Element of the buffer under `n` for index expressions of n's own dimensions.
static const char *through_views(const plain *p, const dom_layout *l, const indices *x) {
  ir_buf b = ir_buf_new(p->a);
  for (int m = 0; m < l->num; m++) {
    int64_t inner = 1;
    for (int k = m + 1; k < l->num && l->dim[k] == l->dim[m]; k++)
      inner *= l->size[k];
    bool outermost = m == 0 || l->dim[m - 1] != l->dim[m];
    add_term(&b, x->at[l->dim[m]], inner, outermost ? 0 : l->size[m], l->stride[m]);
  }
  if (l->offset || !b.len)
    ir_buf_printf(&b, "%s%" PRId64, b.len ? " + " : "", l->offset);
  return ir_buf_str(&b);
}

static const char *number(const plain *p, double v) {
  ir_buf b = ir_buf_new(p->a);
  if (v != v)
    return "NAN";
  if (v - v != 0)
    return v > 0 ? "INFINITY" : "(-INFINITY)";
  ir_buf_puts(&b, "(");
  ir_buf_double(&b, v);
  ir_buf_puts(&b, ")");
  return ir_buf_str(&b);
}

static int member_of(const plain *p, const ir_node *n) {
  for (size_t i = 0; i < p->c->k->nodes.num; i++)
    if (p->c->k->nodes.at[i] == n)
      return (int)i;
  return -1;
}

static const char *member_var(const plain *p, const ir_node *n) {
  int i = member_of(p, n);
  return i < 0 ? NULL : p->var[i];
}

static const char *stored_type(ir_dtype t) {
  return ir_is_float(t) ? "double" : ir_dtypes[t].ctype;
}

// Value of tensor `n` at the given indices, as a C expression.
static const char *element(const plain *p, const ir_node *n, const indices *x) {
  dom_layout l;
  BUG_IF(!dom_layout_of(n, &l), "%s has no layout", n->name);
  if (l.buffer->op == IR_CONST)
    return number(p, ir_attr_num(l.buffer, IR_ATTR_VALUE));
  const char *at = through_views(p, &l, x);
  if (l.buffer->op == IR_IOTA)
    return ir_format(p->a, "(double)(%s)", at);
  if (p->at && strcmp(at, p->at) == 0)
    at = "at";
  const char *var = member_var(p, l.buffer);
  if (var)
    return ir_format(p->a, "%s[%s]", var, at);
  const char *form = ir_is_float(l.buffer->type.dtype) ? "((const %s *)args[%d])[%s]"
                                                       : "(double)((const %s *)args[%d])[%s]";
  return ir_format(p->a, form, stored_type(l.buffer->type.dtype), cg_arg_index(p->c, l.buffer), at);
}

// --- loops -----------------------------------------------------------------------------------
static void open_loops(const plain *p, const char *var, const ir_type *t) {
  for (int d = 0; d < t->rank; d++)
    ir_buf_printf(p->out, "%*sfor (int64_t %s%d = 0; %s%d < %" PRId64 "; %s%d++)%s\n", 2 + 2 * d,
                  "", var, d, var, d, t->dims[d], var, d, d + 1 == t->rank ? " {" : "");
  if (!t->rank)
    ir_buf_puts(p->out, "  {\n");
}

// Position of a held member among the taps; -1: it is not held.
static int held(const plain *p, const ir_node *n) {
  for (size_t i = 0; i < p->taps->num; i++)
    if (p->taps->at[i].node == n && !p->taps->at[i].param)
      return (int)i;
  return -1;
}

static void put_assign(const plain *p, const ir_node *n, const char *value) {
  indices x = loop_indices(p, n->type.rank);
  const char *at = p->at ? "at" : row_major(p, &n->type, &x);
  if (held(p, n) >= 0)
    value = ir_format(p->a, "k_hold(taps, hold, %d, %s, %s)", held(p, n), at, value);
  ir_buf_printf(p->out, "    %s[%s] = %s; // %s\n", member_var(p, n), at, value,
                ir_ops[n->op].name);
}

// A gradient may be a view of a member: the caller gets its elements in their own order.
static void put_gradients(const plain *p) {
  for (size_t i = 0; i < p->taps->num; i++) {
    const ir_node *n = p->taps->at[i].node;
    if (!p->taps->at[i].param)
      continue;
    indices x = loop_indices(p, n->type.rank);
    ir_buf_puts(p->out, "  if (hold == K_RECORD)\n");
    open_loops(p, "i", &n->type);
    ir_buf_printf(p->out, "    taps[%zu][%s] = %s;\n  }\n", i, row_major(p, &n->type, &x),
                  element(p, n, &x));
  }
}

// --- pointwise -------------------------------------------------------------------------------
static const char *fill_spelling(const plain *p, const char *spell, const char *const *operand) {
  ir_buf b = ir_buf_new(p->a);
  for (; *spell; spell++) {
    if (*spell == '$' && spell[1] >= '0' && spell[1] <= '2')
      ir_buf_puts(&b, operand[*++spell - '0']);
    else
      ir_buf_write(&b, spell, 1);
  }
  return ir_buf_str(&b);
}

// Narrowing is a step function with the gradient of what it narrows: where gradients are checked
// (hold), values keep their digits.
static const char *narrowed(const plain *p, ir_dtype t, const char *x) {
  return ir_format(p->a, "k_narrow_%s(hold, %s)", ir_dtypes[t].name, x);
}

static const char *narrowed_tf32(const plain *p, const char *x) {
  return ir_format(p->a, "k_narrow_tf32(hold, %s)", x);
}

static const char *cast_value(const plain *p, const ir_node *n, const char *x) {
  if (n->type.dtype == IR_BOOL)
    return ir_format(p->a, "((%s) != 0)", x);
  if (ir_is_narrow(n->type.dtype))
    return narrowed(p, n->type.dtype, x);
  if (ir_is_float(n->type.dtype))
    return x;
  if (ir_is_float(n->in[0]->type.dtype))
    return ir_format(p->a, "trunc(%s)", x);
  return ir_format(p->a, "(double)(%s)(int64_t)(%s)", ir_dtypes[n->type.dtype].ctype, x);
}

// Streams are the last of a kernel's numbers, where it has any.
static const char *stream_of(const plain *p, const ir_node *n) {
  const cg_kernel *c = p->c;
  size_t after = 0;
  if (!c->numbers.num)
    return ir_format(p->a, "%" PRId64 "u", ir_attr_int(n, IR_ATTR_STREAM));
  for (size_t i = c->k->nodes.num; i-- > 0 && c->k->nodes.at[i] != n;)
    after += ir_is_random(c->k->nodes.at[i]);
  size_t at = c->in.num + c->out.num + (c->workspace > 0) + c->numbers.num - 1 - after;
  return ir_format(p->a, "(uint32_t)(uintptr_t)args[%zu]", at);
}

static const char *random_value(const plain *p, const ir_node *n, const indices *x) {
  static const indices none = {{0}};
  return ir_format(p->a, "k_%s(%s, %s, %s, %s)", ir_ops[n->op].name, element(p, n->in[0], &none),
                   element(p, n->in[1], &none), stream_of(p, n), row_major(p, &n->type, x));
}

static const char *pointwise_value(const plain *p, const ir_node *n) {
  indices x = loop_indices(p, n->type.rank);
  if (ir_is_random(n))
    return random_value(p, n, &x);
  const char *operand[3] = {"", "", ""};
  for (int i = 0; i < n->num_in; i++) {
    operand[i] = element(p, n->in[i], &x);
    if (n->in[i]->type.dtype == IR_BOOL)
      operand[i] = ir_format(p->a, "(int)(%s)", operand[i]);
  }
  if (n->op == IR_CAST)
    return cast_value(p, n, operand[0]);
  if (n->op == IR_TF32)
    return narrowed_tf32(p, operand[0]);
  if (!ir_is_float(n->type.dtype) && (n->op == IR_DIV || n->op == IR_MOD))
    return ir_format(p->a, "k_int_%s(%s, %s)", ir_ops[n->op].name, operand[0], operand[1]);
  return fill_spelling(p, ir_ops[n->op].spell, operand);
}

// --- reductions ------------------------------------------------------------------------------
static bool is_reduced(const ir_node *n, int d) {
  return n->in[0]->type.dims[d] != n->type.dims[d];
}

static const char *reduce_start(const ir_node *n) {
  return n->op == IR_SUM                                ? "0"
         : n->op == IR_REDUCE_MAX || n->op == IR_ARGMAX ? "-INFINITY"
                                                        : "INFINITY";
}

static void put_reduce(const plain *p, const ir_node *n) {
  bool arg = n->op == IR_ARGMAX || n->op == IR_ARGMIN;
  indices x = loop_indices(p, n->type.rank);
  ir_buf_printf(p->out, "    double sum = %s;\n%s", reduce_start(n),
                arg ? "    double best = 0;\n" : "");
  const char *position = "0";
  for (int d = 0; d < n->type.rank; d++)
    if (is_reduced(n, d)) {
      x.at[d] = ir_format(p->a, "r%d", d);
      position = x.at[d];
      ir_buf_printf(p->out, "    for (int64_t r%d = 0; r%d < %" PRId64 "; r%d++)\n", d, d,
                    n->in[0]->type.dims[d], d);
    }
  const char *value = element(p, n->in[0], &x);
  if (arg) {
    ir_buf_printf(
        p->out, "      if (%s %s sum) {\n        sum = %s;\n        best = (double)%s;\n      }\n",
        value, n->op == IR_ARGMAX ? ">" : "<", value, position);
  } else {
    const char *operand[] = {"sum", value, ""};
    ir_buf_printf(p->out, "      sum = %s;\n", fill_spelling(p, ir_ops[n->op].spell, operand));
  }
  put_assign(p, n, arg ? "best" : "sum");
}

// --- the rest --------------------------------------------------------------------------------
// An operand of a matmul, converted as the matmul does: widening changes nothing.
static const char *multiplied(const plain *p, const ir_node *n, const indices *x) {
  const ir_node *conversion = dom_conversion(n);
  const char *value = element(p, n, x);
  return conversion && conversion->op == IR_TF32 ? narrowed_tf32(p, value) : value;
}

// Operands are brought together first, whatever their layouts are: all of the right one, and a row
// of the left one at a time (k_row).
static void put_matmul(const plain *p, const ir_node *n) {
  int r = n->type.rank;
  bool ta = ir_attr_bool(n, IR_ATTR_TRANS_A), tb = ir_attr_bool(n, IR_ATTR_TRANS_B);
  int64_t columns = n->type.dims[r - 1], depth = n->in[0]->type.dims[ta ? r - 2 : r - 1];
  ir_type batch = n->type;
  batch.rank = r - 2;
  indices a = loop_indices(p, r), b = a, row = a;
  a.at[ta ? r - 1 : r - 2] = ir_format(p->a, "i%d", r - 2);
  a.at[ta ? r - 2 : r - 1] = "k";
  b.at[tb ? r - 1 : r - 2] = "k";
  b.at[tb ? r - 2 : r - 1] = "j";
  row.at[r - 1] = "0";
  ir_buf_printf(p->out,
                "  double *const right = k_take_blocks(%" PRId64 ", %" PRId64 ");\n"
                "  double *const left = k_take(%" PRId64 ");\n",
                depth, columns, depth);
  open_loops(p, "i", &batch);
  ir_buf_printf(p->out,
                "    for (int64_t k = 0; k < %" PRId64 "; k++)\n"
                "      for (int64_t j = 0; j < %" PRId64 "; j++)\n"
                "        right[k_block(%" PRId64 ", k, j)] = %s;\n",
                depth, columns, depth, multiplied(p, n->in[1], &b));
  ir_buf_printf(p->out,
                "    for (int64_t i%d = 0; i%d < %" PRId64 "; i%d++) {\n"
                "      for (int64_t k = 0; k < %" PRId64 "; k++)\n"
                "        left[k] = %s;\n"
                "      k_row(%s + %s, %" PRId64 ", left, right, %" PRId64 "); // matmul\n"
                "    }\n  }\n  free(left);\n  free(right);\n",
                r - 2, r - 2, n->type.dims[r - 2], r - 2, depth, multiplied(p, n->in[0], &a),
                member_var(p, n), row_major(p, &n->type, &row), columns, depth);
}

static const char *row_of(const plain *p, const ir_node *index, const indices *x, int64_t rows) {
  return ir_format(p->a, "k_clamp(%s, %" PRId64 ")", element(p, index, x), rows);
}

static void put_gather(const plain *p, const ir_node *n) {
  indices x = loop_indices(p, n->type.rank), row = {{0}};
  int lead = n->in[1]->type.rank;
  row.at[0] = row_of(p, n->in[1], &x, n->in[0]->type.dims[0]);
  for (int d = 1; d < n->in[0]->type.rank; d++)
    row.at[d] = x.at[lead + d - 1];
  put_assign(p, n, element(p, n->in[0], &row));
}

static void put_scatter(const plain *p, const ir_node *n) {
  const ir_type *u = &n->in[1]->type;
  indices x = loop_indices(p, u->rank), row = {{0}};
  int lead = n->in[0]->type.rank;
  row.at[0] = row_of(p, n->in[0], &x, n->type.dims[0]);
  for (int d = 1; d < n->type.rank; d++)
    row.at[d] = x.at[lead + d - 1];
  ir_buf_printf(p->out, "    %s[%s] += %s; // scatter_add\n", member_var(p, n),
                row_major(p, &n->type, &row), element(p, n->in[1], &x));
}

static void put_pad(const plain *p, const ir_node *n) {
  int num;
  const int64_t *lo = ir_attr_ints(n, IR_ATTR_LO, &num);
  indices x = loop_indices(p, n->type.rank);
  ir_buf inside = ir_buf_new(p->a);
  ir_buf_puts(&inside, "1");
  for (int d = 0; d < n->type.rank; d++) {
    x.at[d] = ir_format(p->a, "i%d - %" PRId64, d, lo[d]);
    ir_buf_printf(&inside, " && %s >= 0 && %s < %" PRId64, x.at[d], x.at[d],
                  n->in[0]->type.dims[d]);
  }
  put_assign(p, n,
             ir_format(p->a, "%s ? %s : %s", ir_buf_str(&inside), element(p, n->in[0], &x),
                       number(p, ir_attr_num(n, IR_ATTR_VALUE))));
}

static void put_concat(const plain *p, const ir_node *n) {
  int axis = (int)ir_attr_int(n, IR_ATTR_AXIS);
  int64_t at = 0;
  for (int i = 0; i < n->num_in; i++) {
    indices x = loop_indices(p, n->type.rank);
    x.at[axis] = ir_format(p->a, "i%d - %" PRId64, axis, at);
    at += n->in[i]->type.dims[axis];
    ir_buf_printf(p->out, "    %sif (i%d < %" PRId64 ")\n  ", i ? "else " : "", axis, at);
    put_assign(p, n, element(p, n->in[i], &x));
  }
}

static void put_value(const plain *p, const ir_node *n) {
  switch (ir_ops[n->op].cls) {
  case IR_CLASS_REDUCE:
    put_reduce(p, n);
    return;
  case IR_CLASS_MOVE:
    (n->op == IR_PAD ? put_pad : put_concat)(p, n);
    return;
  case IR_CLASS_INDEX:
    (n->op == IR_GATHER ? put_gather : put_scatter)(p, n);
    return;
  default:
    put_assign(p, n, pointwise_value(p, n));
  }
}

// --- loop nests that pointwise members share -------------------------------------------------
static bool same_dims(const ir_type *x, const ir_type *y) {
  return x->rank == y->rank && memcmp(x->dims, y->dims, sizeof *x->dims * (size_t)x->rank) == 0;
}

// False when operand i may be an element of this nest that is not the present one.
static bool is_settled(const plain *p, const ir_node *n, int i) {
  dom_layout l;
  BUG_IF(!dom_layout_of(n->in[i], &l), "%s has no layout", n->in[i]->name);
  if (member_of(p, l.buffer) < (int)p->nest)
    return true;
  indices x = loop_indices(p, n->in[i]->type.rank);
  return strcmp(through_views(p, &l, &x), p->at) == 0;
}

static bool joins(const plain *p, const ir_node *n) {
  if (!p->at || ir_ops[n->op].cls != IR_CLASS_POINTWISE ||
      !same_dims(&n->type, &p->c->k->nodes.at[p->nest]->type))
    return false;
  for (int i = 0; i < n->num_in; i++)
    if (!is_settled(p, n, i))
      return false;
  return true;
}

static void close_nest(plain *p) {
  if (p->at)
    ir_buf_puts(p->out, "  }\n");
  p->at = NULL;
}

static void open_nest(plain *p, size_t i) {
  const ir_node *n = p->c->k->nodes.at[i];
  indices x = loop_indices(p, n->type.rank);
  open_loops(p, "i", &n->type);
  p->nest = i;
  p->at = row_major(p, &n->type, &x);
  ir_buf_printf(p->out, "    const int64_t at = %s;\n", p->at);
}

static void put_member(plain *p, size_t i) {
  const ir_node *n = p->c->k->nodes.at[i];
  if (joins(p, n)) {
    put_value(p, n);
    return;
  }
  close_nest(p);
  if (ir_ops[n->op].cls == IR_CLASS_POINTWISE) {
    open_nest(p, i);
    put_value(p, n);
    return;
  }
  if (n->op == IR_MATMUL) {
    put_matmul(p, n);
    return;
  }
  open_loops(p, "i", n->op == IR_SCATTER_ADD ? &n->in[1]->type : &n->type);
  put_value(p, n);
  ir_buf_puts(p->out, "  }\n");
}

// One block of zeros for the arrays of all members.
static void put_arrays(plain *p) {
  ir_buf list = ir_buf_new(p->a);
  int64_t total = 0;
  for (size_t i = 0; i < p->c->k->nodes.num; i++) {
    const ir_node *n = p->c->k->nodes.at[i];
    p->var[i] = p->named ? ir_format(p->a, "v%zu_%s", i, cg_local_name(p->a, p->names, n))
                         : ir_format(p->a, "v%zu", i);
    ir_buf_printf(&list, "  double *const %s = all + %" PRId64 ";\n", p->var[i], total);
    total += ir_elements(&n->type);
  }
  ir_buf_printf(p->out, "  double *const all = k_take(%" PRId64 ");\n%s", total, ir_buf_str(&list));
}

static void put_output(const plain *p, const ir_node *n) {
  ir_buf_printf(p->out, "  k_put_%s(args[%d], %s, %" PRId64 ");\n", ir_dtypes[n->type.dtype].name,
                cg_arg_index(p->c, n), member_var(p, n), ir_elements(&n->type));
}

void cg_plain_emit(ir_arena *a, const cg_kernel *c, const cg_taps *taps, bool named,
                   const char *name, ir_buf *out) {
  plain p = {.a = a, .c = c, .taps = taps, .named = named, .out = out, .names = ir_map_new(a)};
  p.var = IR_NEW_ARRAY(a, const char *, c->k->nodes.num + 1);
  if (named)
    ir_buf_printf(out, "\n// %s%s%s\n", c->k->name, c->k->nodes.num ? " = " : "",
                  c->k->nodes.num ? cg_describe(a, c->k) : "");
  ir_buf_printf(out, "void %s(char *const *args, double *const *taps, int hold) {\n", name);
  put_arrays(&p);
  for (size_t i = 0; i < c->k->nodes.num; i++)
    put_member(&p, i);
  close_nest(&p);
  for (size_t i = 0; i < c->out.num; i++)
    put_output(&p, c->out.at[i]);
  put_gradients(&p);
  ir_buf_puts(out, "  free(all);\n}\n");
}
