// cpu_loop_reduce.c: accumulators of LOOP kernels.
//
//   across (lanes are elements of the row)        along (lanes are results)
//     vf s_sum[4] = {0, ...};                       vf s_sum[4]
//     loop: s_sum[u] = s_sum[u] + x;                loop: s_sum[u] = s_sum[u] + x;
//     s = k_sum_lanes((s0 + s1) + (s2 + s3));       s = s_sum[u];
// argmax and argmin carry a second accumulator, the index. A maximum and the sum of exponentials
// that is taken with it (loop_member.max) change together: k_online_step(&m_max, &s_sum, x).
#include "codegen/cpu_loop.h"

#include <math.h>

static bool is_arg(const ir_node *n) {
  return n->op == IR_ARGMAX || n->op == IR_ARGMIN;
}

static bool takes_max(const ir_node *n) {
  return n->op == IR_REDUCE_MAX || n->op == IR_ARGMAX;
}

static ir_dtype sum_type(const ir_node *n) {
  return n->in[0]->type.dtype;
}

static const char *identity(ir_arena *a, const ir_node *n) {
  return cpu_constant(a, sum_type(n), ir_start_value(n->op, sum_type(n)));
}

// "s_sum", "s_at": named once per phase, found again through the scope.
static const char *accumulator(loop_emit *m, const ir_node *n, const char *suffix) {
  ir_arena *a = m->k->arena;
  const char *key = ir_format(a, "+%u%s", n->id, suffix);
  const char *name = ir_map_get(m->e.names, key);
  if (!name) {
    const char *base = cg_local_name(a, ir_map_new(a), n);
    name = cg_scope_name(a, m->e.names, ir_format(a, "%s_%s", base, suffix));
    ir_map_put(m->e.names, key, (void *)(uintptr_t)name);
  }
  return name;
}

static const char *value_suffix(const ir_node *n) {
  return n->op == IR_SUM ? "sum" : takes_max(n) ? "max" : "min";
}

const char *loop_accumulator(loop_emit *m, const ir_node *n) {
  return accumulator(m, n, value_suffix(n));
}

typedef void (*each_fn)(loop_emit *m, const ir_node *n, const char *slot, int block);

static void each_reduction(loop_emit *m, each_fn fn, const char *slot, int block) {
  for (size_t i = 0; i < m->k->k->nodes.num; i++)
    if (m->p->member[i].reduces && m->p->member[i].depth == m->phase)
      fn(m, m->k->k->nodes.at[i], slot, block);
}

static void declare(loop_emit *m, const char *type, const char *name, const char *start,
                    int block) {
  if (block == 1) {
    cpu_line(&m->e, "%s %s = %s;", type, name, start);
    return;
  }
  cpu_line(&m->e, "%s %s[%d];", type, name, block);
  cpu_line(&m->e, "for (int u = 0; u < %d; u++)", block);
  cpu_line(&m->e, "  %s[u] = %s;", name, start);
}

static void declare_one(loop_emit *m, const ir_node *n, const char *slot, int block) {
  (void)slot;
  declare(m, cpu_register(sum_type(n)), accumulator(m, n, value_suffix(n)),
          identity(m->k->arena, n), block);
  if (is_arg(n))
    declare(m, "vi", accumulator(m, n, "at"), "k_i32(0)", block);
}

void loop_declare_sums(loop_emit *m, int block) {
  each_reduction(m, declare_one, "", block);
}

// Row-major number of the present element among the reduced axes.
const char *loop_red_index(const loop_emit *m, bool with_vector_axis) {
  const domain *d = m->k->dom;
  dom_access flat = {0};
  int64_t next = 1;
  for (int i = d->num_axes - 1; i >= 0; i--) {
    bool skip = !d->axis[i].reduced || (i == m->p->vector_axis && !with_vector_axis);
    flat.stride[i] = skip ? 0 : next;
    next *= skip ? 1 : d->axis[i].size;
  }
  return cpu_address(&m->e, NULL, &flat);
}

static int64_t red_lane_stride(const loop_emit *m) {
  int64_t stride = m->e.lane_step ? m->e.lane_step : 1;
  for (int i = m->p->vector_axis + 1; i < m->k->dom->num_axes; i++)
    if (m->k->dom->axis[i].reduced)
      stride *= m->k->dom->axis[i].size;
  return m->p->across ? stride : 0;
}

static const ir_node *max_of(const loop_emit *m, const ir_node *sum) {
  return m->p->member[cpu_member(m->k, sum)].max;
}

static bool has_online_sum(const loop_emit *m, const ir_node *max) {
  for (size_t i = 0; i < m->k->k->nodes.num; i++)
    if (m->p->member[i].max == max)
      return true;
  return false;
}

// Missing lanes must change nothing.
static const char *present_operand(loop_emit *m, const ir_node *n) {
  ir_arena *a = m->k->arena;
  const char *x = cpu_emit_operand(&m->e, n, 0);
  if (!m->p->across || !m->e.lanes)
    return x;
  return ir_format(a, "k_select(k_lane_mask(%s), %s, %s)", m->e.lanes, x, identity(a, n));
}

static void take_online(loop_emit *m, const ir_node *max, const ir_node *sum, const char *slot) {
  const char *x = present_operand(m, max);
  cpu_line(&m->e, "k_online_step(&%s%s, &%s%s, %s);", accumulator(m, max, value_suffix(max)), slot,
           accumulator(m, sum, value_suffix(sum)), slot, x);
}

static void take_one(loop_emit *m, const ir_node *n, const char *slot, int block) {
  (void)block;
  ir_arena *a = m->k->arena;
  if (max_of(m, n)) {
    take_online(m, max_of(m, n), n, slot);
    return;
  }
  if (has_online_sum(m, n))
    return;
  const char *x = present_operand(m, n);
  const char *sum = ir_format(a, "%s%s", accumulator(m, n, value_suffix(n)), slot);
  if (!is_arg(n)) {
    cpu_line(&m->e, "%s = %s;", sum, cpu_spell(a, ir_ops[n->op].spell, (const char *[]){sum, x}));
    return;
  }
  cpu_line(&m->e, "k_%s_step(&%s, &%s%s, %s, k_count_i32(%s, %lld));", ir_ops[n->op].name, sum,
           accumulator(m, n, "at"), slot, x, loop_red_index(m, true),
           (long long)red_lane_stride(m));
}

void loop_take_sums(loop_emit *m, const char *slot) {
  each_reduction(m, take_one, slot, 1);
}

// ((s0 + s1) + (s2 + s3)): all accumulators as one, in a fixed order.
static const char *join(ir_arena *a, const ir_node *n, const char *name, int from, int count) {
  if (count == 1)
    return ir_format(a, "%s[%d]", name, from);
  const char *halves[2] = {join(a, n, name, from, count / 2),
                           join(a, n, name, from + count / 2, count / 2)};
  return cpu_spell(a, ir_ops[n->op].spell, halves);
}

static const char *arg_value(loop_emit *m, const ir_node *n, const char *slot, int block) {
  ir_arena *a = m->k->arena;
  const char *sum = accumulator(m, n, value_suffix(n)), *at = accumulator(m, n, "at");
  if (m->gather)
    return m->gather(m, n, sum, at);
  if (!m->p->across)
    return ir_format(a, "%s%s", at, slot);
  const char *op = ir_ops[n->op].name;
  if (block == 1)
    return ir_format(a, "k_%s_lanes(%s, %s)", op, sum, at);
  cpu_line(&m->e, "for (int u = 1; u < %d; u++)", block);
  cpu_line(&m->e, "  k_%s_step(&%s[0], &%s[0], %s[u], %s[u]);", op, sum, at, sum, at);
  return ir_format(a, "k_%s_lanes(%s[0], %s[0])", op, sum, at);
}

static const char *sum_value(loop_emit *m, const ir_node *n, const char *slot, int block) {
  ir_arena *a = m->k->arena;
  const char *name = accumulator(m, n, value_suffix(n));
  const ir_node *max = max_of(m, n);
  if (max)
    name = ir_format(a, "k_online_sum(%s%s, %s%s, %s)", accumulator(m, max, value_suffix(max)),
                     slot, name, slot, cg_scope_value(a, m->e.names, max));
  if (m->gather)
    return m->gather(m, n, name, NULL);
  if (!m->p->across && m->p->fold)
    return ir_format(a, "k_%s_groups(%s%s, %d)", value_suffix(n), name, slot, m->p->fold);
  if (!m->p->across)
    return ir_format(a, "%s%s", name, slot);
  return ir_format(a, "k_%s_lanes(%s)", value_suffix(n),
                   block == 1 ? name : join(a, n, name, 0, block));
}

static void finish_one(loop_emit *m, const ir_node *n, const char *slot, int block) {
  ir_arena *a = m->k->arena;
  const char *x = is_arg(n) ? arg_value(m, n, slot, block)
                            : cpu_wrap(a, n->type.dtype, sum_value(m, n, slot, block));
  const ir_node *max = max_of(m, n);
  if (max) // exp(x - m) is NaN where m is infinite
    x = ir_format(a, "k_online_result(%s, %s)", x, cg_scope_value(a, m->e.names, max));
  const char *name = cg_local_name(a, m->e.names, n);
  cpu_line(&m->e, "const %s %s = %s;", cpu_register(n->type.dtype), name, x);
  cg_scope_bind(a, m->e.names, n, name);
}

void loop_finish_sums(loop_emit *m, const char *slot, int block) {
  each_reduction(m, finish_one, slot, block);
}
