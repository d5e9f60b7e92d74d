// cpu_expr_load.c: addresses, loads, leaves and stores of generated vector code.
//
//   stride along the lanes   load                              store
//   1                        k_load_f32(p_x + i0 * 128 + j)    k_store_f32
//   0 (or scalar code)       k_load_f32_one(p_x + i0)          k_store_f32_one
//   other                    k_load_f32_step(p_x + j, 64, 16)  k_store_f32_step
//   1, at multiples of VL    k_load_f32_aligned(p_x + j)       k_store_f32_aligned
//   1, in groups of 2        k_load_f32_each(p_x + j / 2, 2, VL)   k_store_f32_each
// A partial vector has a count of lanes and touches nothing beyond them.
#include "codegen/cpu_expr.h"

#include "ir/narrow.h"

#include <math.h>
#include <string.h>

const char *cpu_register(ir_dtype t) {
  switch (ir_dtypes[t].kind) {
  case IR_KIND_FLOAT:
    return ir_dtypes[t].bytes == 8 ? "vd" : "vf";
  case IR_KIND_UINT:
    return ir_dtypes[t].bytes == 4 ? "vu" : "vi";
  default:
    return ir_dtypes[t].bytes == 8 ? "vl" : "vi";
  }
}

// Integer constants wrap to their type, as the interpreter does.
static const char *integer_constant(ir_arena *a, ir_dtype t, double value) {
  int bits = ir_dtypes[t].bytes * 8;
  if (bits == 64) {
    int64_t v = value >= 9223372036854775808.0 ? INT64_MAX : (int64_t)value;
    return v == INT64_MIN ? "(-9223372036854775807 - 1)" : ir_format(a, "%lld", (long long)v);
  }
  double range = ldexp(1.0, bits);
  double v = value - floor(value / range) * range;
  if (ir_dtypes[t].kind == IR_KIND_SINT && v >= range / 2)
    v -= range;
  return ir_format(a, "%lld%s", (long long)v, t == IR_U32 ? "u" : "");
}

// What an f32 cannot hold is infinite in it.
static const char *float_constant(ir_arena *a, ir_dtype t, double value) {
  const char *suffix = t == IR_F32 ? "f" : "";
  value = t == IR_F32 ? (double)(float)value : value;
  if (isnan(value))
    return ir_format(a, "__builtin_nan%s(\"\")", suffix);
  if (isinf(value))
    return ir_format(a, "%s__builtin_inf%s()", value < 0 ? "-" : "", suffix);
  ir_buf b = ir_buf_new(a);
  char text[40];
  snprintf(text, sizeof text, t == IR_F32 ? "%.9g" : "%.17g", value);
  ir_buf_puts(&b, text);
  if (!strpbrk(text, ".e"))
    ir_buf_puts(&b, ".0");
  ir_buf_puts(&b, suffix);
  return ir_buf_str(&b);
}

const char *cpu_literal(ir_arena *a, ir_dtype t, double value) {
  if (t == IR_BOOL)
    return value != 0 ? "1" : "0";
  if (ir_is_narrow(t)) // as it lies in memory
    return ir_format(a, "%u", ir_narrow_to_bits(t, value));
  return ir_is_float(t) ? float_constant(a, t, value) : integer_constant(a, t, value);
}

// Narrow floats are f32 in registers.
const char *cpu_constant(ir_arena *a, ir_dtype t, double value) {
  if (ir_is_narrow(t))
    return cpu_constant(a, IR_F32, ir_narrow(t, value));
  return ir_format(a, "k_%s(%s)", ir_dtypes[t].name, cpu_literal(a, t, value));
}

// --- addresses --------------------------------------------------------------------------------
static bool is_simple(const char *s) {
  return strpbrk(s, " +-*/%") == NULL;
}

static void add_term(ir_buf *b, const char *index, int64_t stride) {
  if (strcmp(index, "0") == 0)
    return;
  const char *plus = b->len ? " + " : "";
  if (stride == 1)
    ir_buf_printf(b, "%s%s", plus, index);
  else
    ir_buf_printf(b, is_simple(index) ? "%s%s * %lld" : "%s(%s) * %lld", plus, index,
                  (long long)stride);
}

static const char *index_of(const cg_expr *e, const dom_access *at, int axis) {
  const char *index = e->index(e->data, axis);
  bool grouped = at->group && axis == e->vector_axis && strcmp(index, "0") != 0;
  return grouped ? ir_format(e->k->arena, "%s / %lld", index, (long long)at->group) : index;
}

const char *cpu_address(const cg_expr *e, const char *pointer, const dom_access *at) {
  ir_buf b = ir_buf_new(e->k->arena);
  if (pointer)
    ir_buf_puts(&b, pointer);
  for (int i = 0; i < e->k->dom->num_axes; i++)
    if (at->stride[i] != 0)
      add_term(&b, index_of(e, at, i), at->stride[i]);
  if (at->offset != 0)
    ir_buf_printf(&b, "%s%lld", b.len ? " + " : "", (long long)at->offset);
  return b.len ? ir_buf_str(&b) : "0";
}

int64_t cpu_lane_stride(const cg_expr *e, const dom_access *at) {
  return e->vector_axis < 0 ? 0 : at->stride[e->vector_axis] * (e->lane_step ? e->lane_step : 1);
}

// Whether all vectors of this access begin at multiples of e->multiple elements of the buffer.
static bool is_aligned(const cg_expr *e, const dom_access *at) {
  if (e->multiple == 0 || at->offset % e->multiple != 0)
    return false;
  for (int i = 0; i < e->k->dom->num_axes; i++)
    if (i != e->vector_axis && at->stride[i] % e->multiple != 0)
      return false;
  return true;
}

static const char *lane_count(const cg_expr *e) {
  return e->lanes ? e->lanes : "VL";
}

// --- loads ------------------------------------------------------------------------------------
static const char *place_in(const cg_expr *e, const ir_node *buffer, const dom_access *at) {
  int arg = cg_arg_index(e->k, buffer);
  BUG_IF(arg < 0, "'%s' is no argument of kernel '%s'", buffer->name, e->k->k->name);
  dom_access from = *at;
  from.offset -= cg_begin(e->k, arg);
  return cpu_address(e, cg_arg_name(e->k, arg), &from);
}

// The text of a load from `address`.
static const char *load_text(const cg_expr *e, ir_dtype t, const char *address, int64_t stride,
                             int64_t group, bool aligned) {
  ir_arena *a = e->k->arena;
  const char *type = ir_dtypes[t].name;
  if (group)
    return ir_format(a, "k_load_%s_each(%s, %lld, %s)", type, address, (long long)group,
                     lane_count(e));
  if (stride == 0)
    return ir_format(a, "k_load_%s_one(%s)", type, address);
  if (stride != 1)
    return ir_format(a, "k_load_%s_step(%s, %lld, %s)", type, address, (long long)stride,
                     lane_count(e));
  if (e->lanes)
    return ir_format(a, "k_load_%s_part(%s, %s)", type, address, e->lanes);
  return ir_format(a, "k_load_%s%s(%s)", type, aligned ? "_aligned" : "", address);
}

static const char *iota_text(const cg_expr *e, const dom_load *l) {
  ir_arena *a = e->k->arena;
  ir_dtype t = l->buffer->type.dtype;
  const char *first = cpu_address(e, NULL, &l->access);
  const char *count = ir_format(a, "k_count_%s(%s, %lld)", ir_dtypes[t].bytes == 8 ? "i64" : "i32",
                                first, (long long)cpu_lane_stride(e, &l->access));
  if (t == IR_I32 || t == IR_I64)
    return count;
  return ir_format(a, "k_to_%s(%s)", ir_dtypes[t].name, count);
}

static const char *load_key(const cg_expr *e, const dom_load *l) {
  ir_buf b = ir_buf_new(e->k->arena);
  ir_buf_printf(&b, "@%u:%lld/%lld", l->buffer->id, (long long)l->access.offset,
                (long long)l->access.group);
  for (int i = 0; i < e->k->dom->num_axes; i++)
    ir_buf_printf(&b, ",%lld", (long long)l->access.stride[i]);
  return ir_buf_str(&b);
}

void cpu_bind_load(cg_expr *e, const dom_load *l, const char *expr) {
  ir_map_put(e->names, load_key(e, l), (void *)(uintptr_t)expr);
}

static const char *leaf_or_load(const cg_expr *e, const dom_load *l) {
  if (l->buffer->op == IR_IOTA)
    return iota_text(e, l);
  return load_text(e, l->buffer->type.dtype, place_in(e, l->buffer, &l->access),
                   cpu_lane_stride(e, &l->access), l->access.group, is_aligned(e, &l->access));
}

const char *cpu_emit_load(cg_expr *e, const dom_load *l) {
  ir_arena *a = e->k->arena;
  const ir_type *t = &l->buffer->type;
  if (l->buffer->op == IR_CONST) {
    const char *number = cg_scope_value(a, e->names, l->buffer);
    return number ? number : cpu_constant(a, t->dtype, ir_attr_num(l->buffer, IR_ATTR_VALUE));
  }
  const char *key = load_key(e, l);
  const char *known = ir_map_get(e->names, key);
  if (known)
    return known;
  const char *text = leaf_or_load(e, l);
  const char *name = cg_local_name(a, e->names, l->buffer);
  cpu_line(e, "const %s %s = %s;", cpu_register(t->dtype), name, text);
  ir_map_put(e->names, key, (void *)(uintptr_t)name);
  return name;
}

// --- gather: rows of a table by an index that the data gives -------------------------------------
static bool index_varies(const cg_expr *e, const ir_node *n) {
  if (e->vector_axis < 0)
    return false;
  const dom_load *l = dom_find_load(e->k->dom, n, 1);
  return l ? l->access.stride[e->vector_axis] != 0
           : cpu_varies(e->k, dom_base(n->in[1]), e->vector_axis);
}

// Elements from a row of a table to the next one.
static int64_t row_stride(const ir_node *table) {
  ir_node *buffer;
  int64_t offset, strides[IR_MAX_RANK];
  BUG_IF(!dom_view(table, &buffer, &offset, strides), "rows of '%s' do not lie evenly",
         table->name);
  return strides[0];
}

const char *cpu_gather_text(cg_expr *e, const ir_node *n) {
  ir_arena *a = e->k->arena;
  const dom_load *l = dom_find_load(e->k->dom, n, 0);
  BUG_IF(!l, "gather '%s' has no table", n->name);
  const ir_type *table = &n->in[0]->type;
  long long rows = (long long)table->dims[0], row_step = (long long)row_stride(n->in[0]);
  const char *at = place_in(e, l->buffer, &l->access);
  const char *row = ir_format(a, "k_row(%s, %lld)", cpu_emit_operand(e, n, 1), rows);
  int64_t step = cpu_lane_stride(e, &l->access);
  if (index_varies(e, n))
    return ir_format(a, "k_gather_%s(%s, %s, %lld, %lld, %s)", ir_dtypes[table->dtype].name, at,
                     row, row_step, (long long)step, lane_count(e));
  const char *name = cg_scope_name(a, e->names, "from");
  cpu_line(e, "const int64_t %s = (int64_t)%s[0] * %lld;", name, row, row_step);
  bool aligned = is_aligned(e, &l->access) && row_step % e->multiple == 0;
  return load_text(e, table->dtype, ir_format(a, "%s + %s", at, name), step, 0, aligned);
}

// --- stores -------------------------------------------------------------------------------------
void cg_emit_store(cg_expr *e, const dom_store *s) {
  const char *x = cg_emit_value(e, s->node);
  const char *type = ir_dtypes[s->buffer->type.dtype].name;
  const char *at = place_in(e, s->buffer, &s->access);
  int64_t stride = cpu_lane_stride(e, &s->access);
  if (s->access.group)
    cpu_line(e, "k_store_%s_each(%s, %s, %lld, %s);", type, at, x, (long long)s->access.group,
             lane_count(e));
  else if (stride == 0)
    cpu_line(e, "k_store_%s_one(%s, %s);", type, at, x);
  else if (stride != 1)
    cpu_line(e, "k_store_%s_step(%s, %s, %lld, %s);", type, at, x, (long long)stride,
             lane_count(e));
  else if (e->lanes)
    cpu_line(e, "k_store_%s_part(%s, %s, %s);", type, at, x, e->lanes);
  else
    cpu_line(e, "k_store_%s%s(%s, %s);", type, is_aligned(e, &s->access) ? "_aligned" : "", at, x);
}

void cg_emit_stores(cg_expr *e) {
  const domain *d = e->k->dom;
  for (size_t i = 0; i < d->stores.num; i++)
    cg_emit_value(e, d->stores.at[i].node);
  for (size_t i = 0; i < d->stores.num; i++)
    cg_emit_store(e, &d->stores.at[i]);
}
