// cpu_expr.c: one C statement per member of a kernel, shared by LOOP kernels and MATMUL epilogues.
//
//   %y = add %x, %b      ->      const vf y = (x + b);
// ops.def says how most ops are spelled; here are the few that depend on dtypes: casts,
// comparisons, random numbers and gathers. Every value is a vector (a splat when it does not vary
// along the lanes), so that scalar, vector and tail code give the same bits.
#include "codegen/cpu_expr.h"

#include <string.h>

const char *cpu_gather_text(cg_expr *e, const ir_node *n);

void cpu_line(cg_expr *e, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  cg_vline(e->out, e->indent, fmt, ap);
  va_end(ap);
}

int cpu_member(const cg_kernel *k, const ir_node *n) {
  return dom_member_index(k->k, n);
}

bool cpu_varies(const cg_kernel *k, const ir_node *member, int axis) {
  int i = cpu_member(k, member);
  BUG_IF(i < 0, "'%s' is no member of kernel '%s'", member->name, k->k->name);
  return k->dom->varies[(size_t)i * DOM_MAX_AXES + (size_t)axis];
}

const char *cpu_spell(ir_arena *a, const char *spell, const char *const *operands) {
  ir_buf b = ir_buf_new(a);
  for (const char *s = spell; *s; s++) {
    if (*s == '$')
      ir_buf_puts(&b, operands[*++s - '0']);
    else
      ir_buf_write(&b, s, 1);
  }
  return ir_buf_str(&b);
}

const char *cpu_wrap(ir_arena *a, ir_dtype t, const char *x) {
  bool small = t != IR_BOOL && !ir_is_float(t) && ir_dtypes[t].bytes < 4;
  return small ? ir_format(a, "k_wrap_%s(%s)", ir_dtypes[t].name, x) : x;
}

const char *cpu_emit_operand(cg_expr *e, const ir_node *user, int operand) {
  const dom_load *l = dom_find_load(e->k->dom, user, operand);
  return l ? cpu_emit_load(e, l) : cg_emit_value(e, dom_base(user->in[operand]));
}

// --- ops whose text depends on dtypes --------------------------------------------------------
// A mask as the number that bool stands for.
static const char *truth_as_number(ir_arena *a, const char *mask) {
  return ir_format(a, "(-%s)", mask);
}

static const char *cast_text(ir_arena *a, ir_dtype from, ir_dtype to, const char *x) {
  if (from == to)
    return x;
  if (from == IR_BOOL)
    x = truth_as_number(a, x);
  return ir_format(a, "k_to_%s(%s)", ir_dtypes[to].name, x);
}

static const char *comparison_text(ir_arena *a, const ir_node *n, const char **x) {
  ir_dtype t = n->in[0]->type.dtype;
  if (t == IR_BOOL)
    for (int i = 0; i < 2; i++)
      x[i] = truth_as_number(a, x[i]);
  const char *text = cpu_spell(a, ir_ops[n->op].spell, x);
  return ir_dtypes[t].bytes == 8 ? ir_format(a, "k_mask%s", text) : text;
}

static const char *stream_key(ir_arena *a, const ir_node *n) {
  return ir_format(a, "stream of %u", n->id);
}

void cpu_bind_stream(cg_expr *e, const ir_node *n, const char *name) {
  ir_map_put(e->names, stream_key(e->k->arena, n), (void *)(uintptr_t)name);
}

static const char *stream_text(const cg_expr *e, const ir_node *n) {
  ir_arena *a = e->k->arena;
  const char *name = ir_map_get(e->names, stream_key(a, n));
  return name ? name : ir_format(a, "%uu", (unsigned)(uint32_t)ir_attr_int(n, IR_ATTR_STREAM));
}

static const char *random_text(cg_expr *e, const ir_node *n, const char *const *x) {
  ir_arena *a = e->k->arena;
  const dom_load *element = dom_find_load(e->k->dom, n, -1);
  BUG_IF(!element, "'%s' has no element index", n->name);
  int64_t step = cpu_lane_stride(e, &element->access);
  const char *first = cpu_address(e, NULL, &element->access);
  const char *head = ir_format(a, "%s, %s, %s", x[0], x[1], stream_text(e, n));
  const char *text = n->op == IR_UNIFORM && step == 1
                         ? ir_format(a, "k_uniform_run(%s, %s)", head, first)
                         : ir_format(a, "k_%s(%s, k_count_i64(%s, %lld))", ir_ops[n->op].name, head,
                                     first, (long long)step);
  return cast_text(a, IR_F32, n->type.dtype, text);
}

// NULL: there is none
static const char *inverse_of(ir_arena *a, const ir_map *names, const char *x) {
  return ir_map_get(names, ir_format(a, "1/%s", x));
}

void cpu_emit_inverse_of(cg_expr *e, ir_dtype t, const char *x) {
  ir_arena *a = e->k->arena;
  if (inverse_of(a, e->names, x))
    return;
  const char *name = cg_scope_name(a, e->names, ir_format(a, "%s_inverse", x));
  cpu_line(e, "const %s %s = k_div(%s, %s);", cpu_register(t), name, cpu_constant(a, t, 1), x);
  ir_map_put(e->names, ir_format(a, "1/%s", x), (void *)(uintptr_t)name);
}

void cpu_emit_inverse(cg_expr *e, const ir_node *n) {
  const char *x = cg_scope_value(e->k->arena, e->names, n);
  if (x)
    cpu_emit_inverse_of(e, n->type.dtype, x);
}

static const char *value_text(cg_expr *e, const ir_node *n) {
  ir_arena *a = e->k->arena;
  if (n->op == IR_GATHER)
    return cpu_gather_text(e, n);
  const char *x[3] = {0};
  BUG_IF(n->num_in > 3 || ir_ops[n->op].cls != IR_CLASS_POINTWISE,
         "'%s' (%s) is not computed by expression", n->name, ir_ops[n->op].name);
  for (int i = 0; i < n->num_in; i++)
    x[i] = cpu_emit_operand(e, n, i);
  if (ir_is_random(n))
    return random_text(e, n, x);
  if (n->op == IR_CAST)
    return cast_text(a, n->in[0]->type.dtype, n->type.dtype, x[0]);
  if (ir_is_comparison(n->op))
    return comparison_text(a, n, x);
  if (n->exact && (n->op == IR_ADD || n->op == IR_SUB))
    return cpu_wrap(a, n->type.dtype,
                    ir_format(a, "k_%s_rounded(%s, %s)", ir_ops[n->op].name, x[0], x[1]));
  if (n->op == IR_DIV && !n->exact && inverse_of(a, e->names, x[1]))
    return ir_format(a, "(%s * %s)", x[0], inverse_of(a, e->names, x[1]));
  const char *other = e->spell ? e->spell(e->data, n) : NULL;
  const char *text = cpu_spell(a, other ? other : ir_ops[n->op].spell, x);
  bool moves = n->op == IR_COPY || n->op == IR_STOP || n->op == IR_SELECT;
  return moves ? text : cpu_wrap(a, n->type.dtype, text);
}

const char *cg_emit_value(cg_expr *e, const ir_node *n) {
  ir_arena *a = e->k->arena;
  const char *x = cg_scope_value(a, e->names, n);
  if (!x && e->have)
    x = e->have(e->data, n);
  if (x)
    return x;
  const char *text = value_text(e, n);
  if (n->op == IR_COPY || n->op == IR_STOP) {
    cg_scope_bind(a, e->names, n, text);
    return text;
  }
  const char *name = cg_local_name(a, e->names, n);
  cpu_line(e, "const %s %s = %s;", cpu_register(n->type.dtype), name, text);
  cg_scope_bind(a, e->names, n, name);
  return name;
}
