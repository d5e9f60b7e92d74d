// plain_values.c: the value of a member of a plain version (plain.c), op by op.
#include "codegen/plain_parts.h"
#include "codegen/row_update.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ir/builder.h"

// --- loops -----------------------------------------------------------------------------------
void plain_open_loops(const plain *p, const char *var, const ir_type *t) {
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

// The element that is assigned, counted row-major.
static const char *place(const plain *p, const ir_node *n) {
  indices x = plain_indices(p, n->type.rank);
  return p->at ? "at" : plain_row_major(p, &n->type, &x);
}

static const char *kept_at(const plain *p, const ir_node *n, const char *at, const char *value) {
  if (held(p, n) < 0)
    return value;
  return ir_format(p->a, "k_hold(taps, hold, %d, %s, %s)", held(p, n), at, value);
}

static const char *kept(const plain *p, const ir_node *n, const char *value) {
  return kept_at(p, n, place(p, n), value);
}

static void put_assign(const plain *p, const ir_node *n, const char *value) {
  const char *at = place(p, n);
  if (!cg_plain_chooses(n))
    value = kept(p, n, value);
  ir_buf_printf(p->out, "    %s[%s] = %s; // %s\n", plain_var(p, n), at, value, ir_ops[n->op].name);
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

// The nearest integer towards 0 that the type has; 0 of NaN.
static const char *saturated(const plain *p, ir_dtype t, const char *x) {
  int bits = 8 * ir_dtypes[t].bytes;
  bool sign = ir_dtypes[t].kind == IR_KIND_SINT;
  double size = ldexp(1, sign ? bits - 1 : bits);
  // of 64 bits no double is the largest
  return ir_format(p->a, "k_saturate(%s, %.17g, %.17g)", x, sign ? -size : 0.0,
                   bits == 64 ? nextafter(size, 0) : size - 1);
}

static const char *cast_value(const plain *p, const ir_node *n, const char *x) {
  if (n->type.dtype == IR_BOOL)
    return ir_format(p->a, "((%s) != 0)", x);
  if (ir_is_narrow(n->type.dtype))
    return narrowed(p, n->type.dtype, x);
  if (ir_is_float(n->type.dtype))
    return x;
  if (ir_is_float(n->in[0]->type.dtype))
    return saturated(p, n->type.dtype, x);
  return ir_format(p->a, "(%s)(%s)(int64_t)(%s)", plain_type(n->type.dtype),
                   ir_dtypes[n->type.dtype].ctype, x);
}

// Sums and products of integers wrap: they are made of 64 bits, of which the type's own stay.
static bool wraps(const ir_node *n) {
  return ir_is_integer(n->type.dtype) &&
         (n->op == IR_ADD || n->op == IR_SUB || n->op == IR_MUL || n->op == IR_NEG ||
          n->op == IR_SUM || n->op == IR_SCATTER_ADD);
}

static const char *wrapped(const plain *p, const ir_node *n, const char *x, const char *y) {
  char op = n->op == IR_MUL ? '*' : n->op == IR_SUB || n->op == IR_NEG ? '-' : '+';
  if (n->op == IR_NEG) {
    y = x;
    x = "0";
  }
  return ir_format(p->a, "(%s)(%s)((uint64_t)(int64_t)(%s) %c (uint64_t)(int64_t)(%s))",
                   plain_type(n->type.dtype), ir_dtypes[n->type.dtype].ctype, x, op, y);
}

// Random members behind n; of all members if it is NULL.
static size_t streams_behind(const plain *p, const ir_node *n) {
  size_t num = 0;
  for (size_t i = p->c->k->nodes.num; i-- > 0 && p->c->k->nodes.at[i] != n;)
    num += ir_is_random(p->c->k->nodes.at[i]);
  return num;
}

// Where a kernel's own numbers end: begins come behind them.
static size_t end_of_own(const plain *p) {
  const cg_kernel *c = p->c;
  return c->in.num + c->out.num + (c->workspace > 0) + c->numbers.num - cg_num_begins(c);
}

// Streams are the last of them, where there are any.
static const char *stream_of(const plain *p, const ir_node *n) {
  if (p->c->numbers.num == cg_num_begins(p->c))
    return ir_format(p->a, "%" PRId64 "u", ir_attr_int(n, IR_ATTR_STREAM));
  return ir_format(p->a, "(uint32_t)(uintptr_t)args[%zu]",
                   end_of_own(p) - 1 - streams_behind(p, n));
}

// Numbered ones stand in front of the streams.
const char *plain_constant_node(const plain *p, const ir_node *n) {
  ir_node_list l = cg_numbered_constants(p->c);
  size_t i = 0;
  while (i < l.num && l.at[i] != n)
    i++;
  if (i == l.num)
    return plain_constant(p, n->type.dtype, ir_attr_num(n, IR_ATTR_VALUE));
  return ir_format(p->a, "k_of_bits((uint32_t)(uintptr_t)args[%zu])",
                   end_of_own(p) - streams_behind(p, NULL) - l.num + i);
}

static const char *random_value(const plain *p, const ir_node *n, const indices *x) {
  static const indices none = {{0}};
  return ir_format(p->a, "k_%s(%s, %s, %s, %s)", ir_ops[n->op].name,
                   plain_element(p, n->in[0], &none), plain_element(p, n->in[1], &none),
                   stream_of(p, n), plain_row_major(p, &n->type, x));
}

bool cg_plain_chooses(const ir_node *n) {
  return n->op == IR_MAX || n->op == IR_MIN || n->op == IR_ABS || n->op == IR_REDUCE_MAX ||
         n->op == IR_REDUCE_MIN || n->op == IR_SCATTER_MAX;
}

// max, min, abs: which operand, or which sign, is what is kept; of equal ones that which has the gradient.
static const char *chosen(const plain *p, const ir_node *n, const char *x, const char *y) {
  const char *first = n->op == IR_MAX ? ">=" : n->op == IR_MIN ? "<=" : "<";
  const char *which = ir_format(p->a, "%s %s %s", x, first, n->op == IR_ABS ? "0" : y);
  return ir_format(p->a, "(%s ? %s%s : %s)", kept(p, n, which), n->op == IR_ABS ? "-" : "", x,
                   n->op == IR_ABS ? x : y);
}

static const char *pointwise_value(const plain *p, const ir_node *n) {
  indices x = plain_indices(p, n->type.rank);
  if (ir_is_random(n))
    return random_value(p, n, &x);
  const char *operand[3] = {"", "", ""};
  for (int i = 0; i < n->num_in; i++) {
    operand[i] = plain_element(p, n->in[i], &x);
    if (n->in[i]->type.dtype == IR_BOOL)
      operand[i] = ir_format(p->a, "(int)(%s)", operand[i]);
  }
  if (n->op == IR_CAST)
    return cast_value(p, n, operand[0]);
  if (n->op == IR_TF32)
    return narrowed_tf32(p, operand[0]);
  if (!ir_is_float(n->type.dtype) && (n->op == IR_DIV || n->op == IR_MOD))
    return ir_format(p->a, "k_int_%s(%s, %s)", ir_ops[n->op].name, operand[0], operand[1]);
  if (wraps(n))
    return wrapped(p, n, operand[0], operand[1]);
  if (cg_plain_chooses(n) && held(p, n) >= 0)
    return chosen(p, n, operand[0], operand[1]);
  return fill_spelling(p, ir_ops[n->op].spell, operand);
}

// --- reductions ------------------------------------------------------------------------------
static bool is_reduced(const ir_node *n, int d) {
  return n->in[0]->type.dims[d] != n->type.dims[d];
}

static const char *start_value(const plain *p, const ir_node *n, const ir_node *operand) {
  return plain_constant(p, operand->type.dtype, ir_start_value(n->op, operand->type.dtype));
}

// Loops over what is reduced; their variables are in *x. Returns how many elements that is.
static int64_t open_reduced(const plain *p, const ir_node *n, indices *x) {
  int64_t count = 1;
  for (int d = 0; d < n->type.rank; d++)
    if (is_reduced(n, d)) {
      x->at[d] = ir_format(p->a, "r%d", d);
      ir_buf_printf(p->out, "    for (int64_t r%d = 0; r%d < %" PRId64 "; r%d++)\n", d, d,
                    n->in[0]->type.dims[d], d);
      count *= n->in[0]->type.dims[d];
    }
  return count;
}

// The position among what is reduced, as text over the loop variables.
static const char *position(const plain *p, const ir_node *n, int64_t count) {
  ir_buf b = ir_buf_new(p->a);
  for (int d = 0; d < n->type.rank; d++)
    if (is_reduced(n, d)) {
      count /= n->in[0]->type.dims[d];
      ir_buf_printf(&b, "%sr%d * %" PRId64, b.len ? " + " : "", d, count);
    }
  return b.len ? ir_buf_str(&b) : "0";
}

// reduce_max and reduce_min whose choice is kept: the element that a kept position names.
static void put_at_position(const plain *p, const ir_node *n, int64_t count) {
  indices x = plain_indices(p, n->type.rank);
  ir_buf_printf(p->out, "    const int64_t from = (int64_t)%s;\n", kept(p, n, "best"));
  for (int d = 0; d < n->type.rank; d++)
    if (is_reduced(n, d)) {
      count /= n->in[0]->type.dims[d];
      x.at[d] =
          ir_format(p->a, "(from / %" PRId64 " %% %" PRId64 ")", count, n->in[0]->type.dims[d]);
    }
  put_assign(p, n, plain_element(p, n->in[0], &x));
}

static void put_reduce(const plain *p, const ir_node *n) {
  bool arg = n->op == IR_ARGMAX || n->op == IR_ARGMIN;
  bool keeps = cg_plain_chooses(n) && held(p, n) >= 0;
  indices x = plain_indices(p, n->type.rank);
  ir_buf_printf(p->out, "    %s sum = %s;\n%s", plain_type(n->in[0]->type.dtype),
                start_value(p, n, n->in[0]), arg || keeps ? "    double best = 0;\n" : "");
  int64_t count = open_reduced(p, n, &x);
  const char *value = plain_element(p, n->in[0], &x);
  if (arg || keeps) {
    bool max = n->op == IR_ARGMAX || n->op == IR_REDUCE_MAX;
    ir_buf_printf(p->out,
                  "      if (%s %s sum) {\n        sum = %s;\n        best = (double)(%s);\n"
                  "      }\n",
                  value, max ? ">" : "<", value, position(p, n, count));
  } else {
    const char *operand[] = {"sum", value, ""};
    ir_buf_printf(p->out, "      sum = %s;\n",
                  wraps(n) ? wrapped(p, n, "sum", value)
                           : fill_spelling(p, ir_ops[n->op].spell, operand));
  }
  if (keeps)
    put_at_position(p, n, count);
  else
    put_assign(p, n, arg ? "best" : "sum");
}

// --- the rest --------------------------------------------------------------------------------
// An operand of a matmul, converted as the matmul does: widening changes nothing.
static const char *multiplied(const plain *p, const ir_node *n, const indices *x) {
  const ir_node *conversion = dom_conversion(n);
  const char *value = plain_element(p, n, x);
  return conversion && conversion->op == IR_TF32 ? narrowed_tf32(p, value) : value;
}

// Operands are brought together first, whatever their layouts are: all of the right one, and a row
// of the left one at a time (k_row).
void plain_put_matmul(const plain *p, const ir_node *n) {
  int r = n->type.rank;
  bool ta = ir_attr_bool(n, IR_ATTR_TRANS_A), tb = ir_attr_bool(n, IR_ATTR_TRANS_B);
  int64_t columns = n->type.dims[r - 1], depth = n->in[0]->type.dims[ta ? r - 2 : r - 1];
  ir_type batch = n->type;
  batch.rank = r - 2;
  indices a = plain_indices(p, r), b = a, row = a;
  a.at[ta ? r - 1 : r - 2] = ir_format(p->a, "i%d", r - 2);
  a.at[ta ? r - 2 : r - 1] = "k";
  b.at[tb ? r - 1 : r - 2] = "k";
  b.at[tb ? r - 2 : r - 1] = "j";
  row.at[r - 1] = "0";
  ir_buf_printf(p->out,
                "  double *const right = k_take_blocks(%" PRId64 ", %" PRId64 ");\n"
                "  double *const left = k_take(%" PRId64 ");\n",
                depth, columns, depth);
  plain_open_loops(p, "i", &batch);
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
                plain_var(p, n), plain_row_major(p, &n->type, &row), columns, depth);
}

static const char *row_of(const plain *p, const ir_node *index, const indices *x, int64_t rows) {
  return ir_format(p->a, "k_clamp(%s, %" PRId64 ")", plain_element(p, index, x), rows);
}

static void put_gather(const plain *p, const ir_node *n) {
  indices x = plain_indices(p, n->type.rank), row = {{0}};
  int lead = n->in[1]->type.rank;
  row.at[0] = row_of(p, n->in[1], &x, n->in[0]->type.dims[0]);
  for (int d = 1; d < n->in[0]->type.rank; d++)
    row.at[d] = x.at[lead + d - 1];
  put_assign(p, n, plain_element(p, n->in[0], &row));
}

// The element of the result that an element of the update goes to.
static const char *scatter_to(const plain *p, const ir_node *n) {
  indices x = plain_indices(p, n->in[1]->type.rank), row = {{0}};
  int lead = n->in[0]->type.rank;
  row.at[0] = row_of(p, n->in[0], &x, n->type.dims[0]);
  for (int d = 1; d < n->type.rank; d++)
    row.at[d] = x.at[lead + d - 1];
  return plain_row_major(p, &n->type, &row);
}

static void put_scatter_add(const plain *p, const ir_node *n) {
  const ir_type *u = &n->in[1]->type;
  indices x = plain_indices(p, u->rank);
  const char *value = plain_element(p, n->in[1], &x);
  plain_open_loops(p, "i", u);
  ir_buf_printf(p->out, "    %s *const sum = &%s[%s];\n    *sum = %s; // scatter_add\n  }\n",
                plain_type(n->type.dtype), plain_var(p, n), scatter_to(p, n),
                wraps(n) ? wrapped(p, n, "*sum", value) : ir_format(p->a, "*sum + %s", value));
}

// Element number `from` of a tensor.
static const char *element_at(const plain *p, const ir_node *n) {
  indices x = {{0}};
  int64_t inner = ir_elements(&n->type);
  for (int d = 0; d < n->type.rank; d++) {
    inner /= n->type.dims[d];
    x.at[d] = ir_format(p->a, "from / %" PRId64 " %% %" PRId64, inner, n->type.dims[d]);
  }
  return plain_element(p, n, &x);
}

// Which update is the largest, and then that one: the choice may be kept.
static void put_scatter_max(const plain *p, const ir_node *n) {
  const ir_node *update = n->in[1];
  const char *table = plain_var(p, n);
  indices x = plain_indices(p, update->type.rank);
  ir_buf_printf(p->out, "  double *const best = k_take(%" PRId64 "); // 1 + its number; 0: none\n",
                ir_elements(&n->type));
  plain_open_loops(p, "i", &update->type);
  ir_buf_printf(p->out, "    const int64_t to = %s, from = %s;\n    const %s x = %s;\n",
                scatter_to(p, n), plain_row_major(p, &update->type, &x),
                plain_type(update->type.dtype), plain_element(p, update, &x));
  ir_buf_printf(p->out,
                "    if (best[to] == 0 || !(%s[to] > x)) {\n      %s[to] = x;\n"
                "      best[to] = (double)from + 1;\n    }\n  }\n",
                table, table);
  ir_buf_printf(p->out, "  for (int64_t at = 0; at < %" PRId64 "; at++) {\n",
                ir_elements(&n->type));
  ir_buf_printf(p->out, "    const int64_t from = (int64_t)%s - 1;\n",
                kept_at(p, n, "at", "best[at]"));
  ir_buf_printf(p->out, "    %s[at] = from < 0 ? %s : %s; // scatter_max\n  }\n  free(best);\n",
                table, start_value(p, n, update), element_at(p, update));
}

void plain_put_scatter(const plain *p, const ir_node *n) {
  (n->op == IR_SCATTER_ADD ? put_scatter_add : put_scatter_max)(p, n);
}

void plain_put_kept_rows(const plain *p) {
  const ir_node *sum = p->c->k->anchor, *index = sum->in[0];
  indices at = plain_indices(p, index->type.rank), x = plain_indices(p, sum->type.rank);
  ir_buf_printf(p->out, "  double *const named = k_take(%" PRId64 ");\n", sum->type.dims[0]);
  plain_open_loops(p, "i", &index->type);
  ir_buf_printf(p->out, "    named[%s] = 1;\n  }\n", row_of(p, index, &at, sum->type.dims[0]));
  for (size_t i = 0; i < p->c->out.num; i++) {
    const ir_node *n = p->c->out.at[i], *old = p->c->in.at[row_update_base(p->c, i)];
    plain_open_loops(p, "i", &n->type);
    ir_buf_printf(p->out, "    if (named[i0] == 0)\n      %s[%s] = %s;\n  }\n", plain_var(p, n),
                  plain_row_major(p, &n->type, &x), plain_element(p, old, &x));
  }
  ir_buf_puts(p->out, "  free(named);\n");
}

// The elements of `part` from `lo` on, between those of `around`, a text.
static void put_room(const plain *p, const ir_node *n, const ir_node *part, const char *around) {
  int num;
  const int64_t *lo = ir_attr_ints(n, IR_ATTR_LO, &num);
  indices x = plain_indices(p, n->type.rank);
  ir_buf inside = ir_buf_new(p->a);
  ir_buf_puts(&inside, "1");
  for (int d = 0; d < n->type.rank; d++) {
    x.at[d] = ir_format(p->a, "i%d - %" PRId64, d, lo[d]);
    ir_buf_printf(&inside, " && %s >= 0 && %s < %" PRId64, x.at[d], x.at[d], part->type.dims[d]);
  }
  put_assign(
      p, n,
      ir_format(p->a, "%s ? %s : %s", ir_buf_str(&inside), plain_element(p, part, &x), around));
}

static void put_pad(const plain *p, const ir_node *n) {
  put_room(p, n, n->in[0], plain_constant(p, n->type.dtype, ir_attr_num(n, IR_ATTR_VALUE)));
}

static void put_insert(const plain *p, const ir_node *n) {
  indices x = plain_indices(p, n->type.rank);
  put_room(p, n, n->in[1], plain_element(p, n->in[0], &x));
}

// How many operands from the i-th on are whole buffers of one type, whose arguments follow each other.
static int equal_parts(const plain *p, const ir_node *n, int i) {
  const ir_node *first = n->in[i];
  int num = 0;
  while (i + num < n->num_in && ir_same_type(&n->in[i + num]->type, &first->type) &&
         !plain_var(p, dom_base(n->in[i + num])) && !ir_is_generated(dom_base(n->in[i + num])) &&
         cg_follows(p->c, first, n->in[i + num], num))
    num++;
  return num;
}

// Each operand goes to its place in a loop nest of its own; many equal ones, the steps of a sequence, in one.
// A choice between operands for each element would be as long as there are operands, and C compilers take
// the square of that.
void plain_put_concat(const plain *p, const ir_node *n) {
  enum { LEAST_PARTS = 4 };
  int axis = (int)ir_attr_int(n, IR_ATTR_AXIS);
  int64_t start = 0;
  for (int i = 0, num; i < n->num_in; i += num) {
    const ir_node *x = n->in[i];
    int64_t size = x->type.dims[axis];
    indices from = plain_indices(p, n->type.rank), to = from;
    num = equal_parts(p, n, i);
    const char *value, *part = "";
    if (num >= LEAST_PARTS) {
      ir_buf_printf(p->out, "  for (int64_t part = 0; part < %d; part++)\n", num);
      value = plain_element_of(p, dom_base(x)->type.dtype,
                               ir_format(p->a, "%d + part", cg_arg_index(p->c, dom_base(x))), "",
                               plain_row_major(p, &x->type, &from));
      part = ir_format(p->a, "part * %" PRId64 " + ", size);
    } else {
      num = 1;
      value = plain_element(p, x, &from);
    }
    to.at[axis] = ir_format(p->a, "(%s%" PRId64 " + i%d)", part, start, axis);
    const char *at = plain_row_major(p, &n->type, &to);
    plain_open_loops(p, "i", &x->type);
    ir_buf_printf(p->out, "    %s[%s] = %s; // concat\n  }\n", plain_var(p, n), at,
                  kept_at(p, n, at, value));
    start += num * size;
  }
}

void plain_put_value(const plain *p, const ir_node *n) {
  switch (ir_ops[n->op].cls) {
  case IR_CLASS_REDUCE:
    put_reduce(p, n);
    return;
  case IR_CLASS_MOVE:
    if (n->op == IR_INSERT)
      put_insert(p, n);
    else
      put_pad(p, n);
    return;
  case IR_CLASS_INDEX:
    put_gather(p, n);
    return;
  default:
    put_assign(p, n, pointwise_value(p, n));
  }
}
