// plain_index.c: elements of tensors as C expressions, through views (plain.c).
#include "codegen/plain_parts.h"

#include <inttypes.h>
#include <string.h>

indices plain_indices(const plain *p, int rank) {
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

const char *plain_row_major(const plain *p, const ir_type *t, const indices *x) {
  ir_buf b = ir_buf_new(p->a);
  int64_t stride = ir_elements(t);
  for (int d = 0; d < t->rank; d++) {
    stride /= t->dims[d] > 0 ? t->dims[d] : 1;
    add_term(&b, t->dims[d] == 1 ? "0" : x->at[d], 1, 0, stride);
  }
  return b.len ? ir_buf_str(&b) : "0";
}

// Element of the buffer under `n` for index expressions of n's own dimensions.
const char *plain_through_views(const plain *p, const dom_layout *l, const indices *x) {
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

const char *plain_type(ir_dtype t) {
  return t == IR_I64 ? "int64_t" : "double";
}

const char *plain_constant(const plain *p, ir_dtype t, double v) {
  if (t != IR_I64)
    return number(p, v);
  return v >= 0x1p63    ? "INT64_MAX"
         : v <= -0x1p63 ? "INT64_MIN"
                        : ir_format(p->a, "INT64_C(%" PRId64 ")", (int64_t)v);
}

int plain_member(const plain *p, const ir_node *n) {
  return dom_member_index(p->c->k, n);
}

const char *plain_var(const plain *p, const ir_node *n) {
  int i = plain_member(p, n);
  return i < 0 ? NULL : p->var[i];
}

static const char *stored_type(ir_dtype t) {
  return ir_is_float(t) ? "double" : ir_dtypes[t].ctype;
}

// Value of tensor `n` at the given indices, as a C expression.
const char *plain_element_of(const plain *p, ir_dtype t, const char *arg, const char *begin,
                             const char *at) {
  const char *form = ir_is_float(t) || t == IR_I64 ? "((const %s *)args[%s]%s)[%s]"
                                                   : "(double)((const %s *)args[%s]%s)[%s]";
  return ir_format(p->a, form, stored_type(t), arg, begin, at);
}

const char *plain_element(const plain *p, const ir_node *n, const indices *x) {
  dom_layout l;
  BUG_IF(!dom_layout_of(n, &l), "%s has no layout", n->name);
  if (l.buffer->op == IR_CONST)
    return plain_constant_node(p, l.buffer);
  int arg = plain_var(p, l.buffer) ? -1 : cg_arg_index(p->c, l.buffer);
  if (arg >= 0)
    l.offset -= cg_begin(p->c, arg);
  const char *at = plain_through_views(p, &l, x);
  if (l.buffer->op == IR_IOTA)
    return ir_format(p->a, "(%s)(%s)", plain_type(l.buffer->type.dtype), at);
  if (p->at && strcmp(at, p->at) == 0)
    at = "at";
  const char *var = plain_var(p, l.buffer);
  if (var)
    return ir_format(p->a, "%s[%s]", var, at);
  BUG_IF(arg < 0, "%s is no argument", l.buffer->name);
  return plain_element_of(p, l.buffer->type.dtype, ir_format(p->a, "%d", arg),
                          cg_begin_text(p->c, arg), at);
}
