// cuda_attention_values.c: text: what happens to a tile's scores between products.
//
//   for (int i = 0; i < 4; i++) {                        // rows of a thread
//     const int64_t i2 = line;
//     for (int j = 0; j < 2; j++) {                      // vectors of a row
//       const int64_t i3 = column;
//       const vf scores = (s0[i][j] * k_f32(0.125f));
//       ...
//       weights.store4(row * 68 + ..., w);
//     }
//   }
// Values are those of the expression emitter, along the streamed axis. Kernels over columns have
// the loops the other way round: what they load varies with the streamed row only, and is loaded
// once.
#include "codegen/cuda_attention.h"

// --- the expression emitter's view ---------------------------------------------------------------
static const char *axis_index(void *data, int axis) {
  return ((catt_text *)data)->axis[axis];
}

static const char *have_online(const catt_text *x, const ir_node *n) {
  const catt_online *o = &x->t->online;
  if (n == o->max)
    return "k_f32(most[i])";
  if (n == o->sum)
    return x->in_tile ? "k_f32(whole[i])" : "k_f32(total[i])";
  return n == o->x && x->have_x ? "x[i][j]" : NULL;
}

// Products in, and reductions of sweeps that are over.
static const char *have(void *data, const ir_node *n) {
  const catt_text *x = data;
  for (int i = 0; i < x->t->num_in; i++)
    if (x->t->in[i].n == n)
      return ir_format(x->arena, "s%d[i][j]", i);
  if (x->all_seen && catt_is_mask(x->t, n))
    return "k_bool(1)";
  if (x->t->online.found)
    return have_online(x, n);
  int member = cpu_member(&x->t->inner, n);
  return member >= 0 && ir_ops[n->op].cls == IR_CLASS_REDUCE ? ir_format(x->arena, "r%d[i]", member)
                                                             : NULL;
}

// Weights of a row stand beside each other: what counts of them are digits of the largest.
static const char *spell(void *data, const ir_node *n) {
  (void)data;
  return catt_is_row_exp(n) ? "k_exp_of_row($0)" : NULL;
}

// Vectors begin at multiples of VL: tiles do, and rows of several axes have whole vectors.
static int multiple_of(const catt *t) {
  int last = t->first_y + t->num_y - 1;
  return t->num_y == 1 || t->dom->dom->axis[last].size % CATT_VL == 0 ? CATT_VL : 0;
}

static cg_expr expr_of(catt_text *x, int indent) {
  return (cg_expr){.k = &x->t->inner,
                   .multiple = multiple_of(x->t),
                   .out = x->out,
                   .indent = indent,
                   .names = cg_scope_copy(x->arena, x->names),
                   .vector_axis = x->t->first_y + x->t->num_y - 1,
                   .index = axis_index,
                   .data = x,
                   .have = have,
                   .spell = spell};
}

// --- the loops over a thread's vectors -----------------------------------------------------------
static bool cut_x(const catt *t) {
  return t->x % t->bx != 0;
}

static bool cut_y(const catt *t) {
  return t->y % t->by != 0;
}

// A vector may end inside: then loads have a count of lanes.
static bool cut_lanes(const catt *t) {
  return t->y % CATT_VL != 0;
}

static void put_indices(catt_text *x, int indent, int first, int num, const char *flat) {
  int64_t size[DOM_MAX_AXES];
  for (int i = 0; i < num; i++)
    size[i] = x->t->dom->dom->axis[first + i].size;
  cg_emit_indices(x->out, indent, flat, num, size, x->axis + first);
}

static void open_loop(const catt_text *x, int indent, const char *i, int num) {
  ir_buf_printf(x->out, "%*s#pragma unroll\n%*sfor (int %s = 0; %s < %d; %s++) {\n", indent, "",
                indent, "", i, i, num, i);
}

// Rows beyond the last one are computed as that one, and not stored.
static void put_line(catt_text *x, int indent) {
  const catt *t = x->t;
  ir_buf_printf(x->out, "%*sconst int row = ty + i * %d;\n", indent, "", t->row_step);
  if (cut_x(t))
    ir_buf_printf(x->out, "%*sconst %s line = x0 + row < %lld ? x0 + row : %lld;\n", indent, "",
                  x->index, ll(t->x), ll(t->x - 1));
  else
    ir_buf_printf(x->out, "%*sconst %s line = x0 + row;\n", indent, "", x->index);
  put_indices(x, indent, t->first_x, t->num_x, "line");
}

// Vectors beyond the last column are computed as the first one; `in` says which lanes count.
static void put_column(catt_text *x, int indent) {
  const catt *t = x->t;
  ir_buf_printf(x->out, "%*sconst int place = (tx + j * %d) * %d;\n", indent, "", t->group,
                CATT_VL);
  if (!cut_y(t)) {
    ir_buf_printf(x->out, "%*sconst %s column = y0 + place;\n", indent, "", x->index);
  } else {
    ir_buf_printf(x->out, "%*sconst %s column = y0 + place < %lld ? y0 + place : 0;\n", indent, "",
                  x->index, ll(t->y));
    if (cut_lanes(t))
      ir_buf_printf(x->out,
                    "%*sconst int lanes = %lld - column < VL ? (int)(%lld - column) : VL;\n",
                    indent, "", ll(t->y), ll(t->y));
    ir_buf_printf(x->out, "%*sconst vi in = k_lane_mask((int)(%lld - y0 - place));\n", indent, "",
                  ll(t->y));
  }
  put_indices(x, indent, t->first_y, t->num_y, "column");
}

static bool varies(const dom_load *l, int first, int num) {
  for (int i = first; i < first + num; i++)
    if (l->access.stride[i])
      return true;
  return false;
}

// The inner loop does not change it.
static bool is_outer_load(const catt *t, const dom_load *l) {
  bool columns = t->dom->columns, table = l->user->op == IR_GATHER && l->operand == 0;
  return !table && dom_is_in_memory(l) &&
         !varies(l, columns ? t->first_x : t->first_y, columns ? t->num_x : t->num_y);
}

// Such loads of f32 are under way while products are made: those of a row once for all tiles, those of streamed
// rows before the products of their tile. FMAs leave no registers for that.
static bool is_held(const catt *t, const dom_load *l) {
  return t->mma && is_outer_load(t, l) && l->buffer->type.dtype == IR_F32;
}

void catt_emit_held_loads(catt_text *x) {
  const catt *t = x->t;
  const domain *d = t->dom->dom;
  bool columns = t->dom->columns, any = false;
  int indent = columns ? 4 : 2;
  for (size_t i = 0; i < d->loads.num; i++) {
    if (is_held(t, &d->loads.at[i]))
      ir_buf_printf(x->out, "%*svf held%zu[%d];\n", indent, "", i, columns ? t->ry : t->rx);
    any |= is_held(t, &d->loads.at[i]);
  }
  if (!any)
    return;
  open_loop(x, indent, columns ? "j" : "i", columns ? t->ry : t->rx);
  cg_expr e = expr_of(x, indent + 2);
  (columns ? put_column : put_line)(x, indent + 2);
  if (columns && cut_lanes(t))
    e.lanes = "lanes";
  for (size_t i = 0; i < d->loads.num; i++)
    if (is_held(t, &d->loads.at[i])) {
      const char *value = cpu_emit_load(&e, &d->loads.at[i]);
      cpu_line(&e, "held%zu[%s] = %s;", i, columns ? "j" : "i", value);
    }
  ir_buf_printf(x->out, "%*s}\n", indent, "");
}

static const char *take_held(cg_expr *e, const catt *t, size_t i) {
  const dom_load *l = &t->dom->dom->loads.at[i];
  const char *name = cg_local_name(e->k->arena, e->names, l->buffer);
  cpu_line(e, "const vf %s = held%zu[%s];", name, i, t->dom->columns ? "j" : "i");
  cpu_bind_load(e, l, name);
  return name;
}

static void bind_inverse(cg_expr *e, const char *of, const char *name) {
  cpu_line(e, "const vf %s = k_inverse_of_row(%s);", name, of);
  ir_map_put(e->names, ir_format(e->k->arena, "1/%s", of), (void *)(uintptr_t)name);
}

// A divisor among outer loads is divided by once. FMAs over columns have all registers in use: divisions are steps
// that ptxas does not make for all columns at once, as it would these inverses, and spill.
static void put_outer_loads(cg_expr *e, const catt *t) {
  const domain *d = t->dom->dom;
  for (size_t i = 0; i < d->loads.num; i++) {
    const dom_load *l = &d->loads.at[i];
    if (!is_outer_load(t, l))
      continue;
    const char *x = is_held(t, l) ? take_held(e, t, i) : cpu_emit_load(e, l);
    if (l->user->op != IR_DIV || l->operand != 1 || l->user->type.dtype != IR_F32)
      continue;
    if (catt_is_row_sum(l->user->in[1]) && (t->mma || !t->dom->columns))
      bind_inverse(e, x,
                   cg_scope_name(e->k->arena, e->names, ir_format(e->k->arena, "%s_inverse", x)));
    else
      cpu_emit_inverse_of(e, IR_F32, x);
  }
}

// A sum that is known by now is divided by once a row, too.
static void put_inverse(const catt_text *x, cg_expr *e) {
  if (x->t->online.found && (x->sweep > 0 || x->in_tile))
    bind_inverse(e, have_online(x, x->t->online.sum), "inverse");
}

typedef void (*vector_fn)(catt_text *x, cg_expr *e);

static void put_vectors(catt_text *x, int indent, vector_fn fn) {
  const catt *t = x->t;
  bool columns = t->dom->columns;
  open_loop(x, indent, columns ? "j" : "i", columns ? t->ry : t->rx);
  cg_expr e = expr_of(x, indent + 2);
  (columns ? put_column : put_line)(x, indent + 2);
  if (columns && cut_lanes(t))
    e.lanes = "lanes";
  put_outer_loads(&e, t);
  put_inverse(x, &e);
  open_loop(x, indent + 2, columns ? "i" : "j", columns ? t->rx : t->ry);
  (columns ? put_line : put_column)(x, indent + 4);
  e.indent = indent + 4;
  if (cut_lanes(t))
    e.lanes = "lanes";
  fn(x, &e);
  ir_buf_printf(x->out, "%*s}\n%*s}\n", indent + 2, "", indent, "");
}

static void each_vector(catt_text *x, vector_fn fn) {
  const char *seen = catt_all_seen(x);
  if (!seen) {
    put_vectors(x, 4, fn);
    return;
  }
  ir_buf_printf(x->out, "    if (%s) { // no mask in this tile\n", seen);
  x->all_seen = true;
  put_vectors(x, 6, fn);
  x->all_seen = false;
  ir_buf_puts(x->out, "    } else {\n");
  put_vectors(x, 6, fn);
  ir_buf_puts(x->out, "    }\n");
}

// --- reductions ----------------------------------------------------------------------------------
static const char *how(const ir_node *n) {
  return n->op == IR_SUM ? "sum" : n->op == IR_REDUCE_MAX ? "max" : "min";
}

static const char *neutral(const ir_node *n) {
  return n->op == IR_SUM          ? "k_f32(0.0f)"
         : n->op == IR_REDUCE_MAX ? "k_f32(-__builtin_inff())"
                                  : "k_f32(__builtin_inff())";
}

static const char *combined(const catt_text *x, const ir_node *n, const char *a, const char *b) {
  return n->op == IR_SUM ? ir_format(x->arena, "%s + %s", a, b)
                         : ir_format(x->arena, "k_%s(%s, %s)", how(n), a, b);
}

// `value` where the lane is a column, and what changes nothing elsewhere.
static const char *inside(const catt_text *x, const char *value, const char *otherwise) {
  return cut_y(x->t) ? ir_format(x->arena, "k_select(in, %s, %s)", value, otherwise) : value;
}

static void take_reductions(catt_text *x, cg_expr *e) {
  for (size_t i = 0; i < e->k->k->nodes.num; i++) {
    const ir_node *n = e->k->k->nodes.at[i];
    if (ir_ops[n->op].cls != IR_CLASS_REDUCE || catt_sweep_of(x->t, n) != x->sweep)
      continue;
    const char *r = ir_format(x->arena, "r%zu[i]", i);
    const char *value = inside(x, cg_emit_value(e, n->in[0]), neutral(n));
    cpu_line(e, "%s = %s;", r, combined(x, n, r, value));
  }
}

void catt_emit_row_values(catt_text *x) {
  const catt *t = x->t;
  for (size_t i = 0; !t->online.found && i < t->inner.k->nodes.num; i++) {
    const ir_node *n = t->inner.k->nodes.at[i];
    if (ir_ops[n->op].cls == IR_CLASS_REDUCE) {
      ir_buf_printf(x->out, "  vf r%zu[%d]; // %s\n", i, t->rx, ir_ops[n->op].name);
      open_loop(x, 2, "i", t->rx);
      ir_buf_printf(x->out, "    r%zu[i] = %s;\n  }\n", i, neutral(n));
    }
  }
}

// The threads that share a row, for k_group_*: so many of them, so far apart.
static const char *group_of(const catt_text *x) {
  return ir_format(x->arena, x->t->mma ? "%d" : "%d, 2", x->t->group);
}

static void finish_reductions(catt_text *x) {
  const catt *t = x->t;
  for (size_t i = 0; i < t->inner.k->nodes.num; i++) {
    const ir_node *n = t->inner.k->nodes.at[i];
    if (ir_ops[n->op].cls != IR_CLASS_REDUCE || catt_sweep_of(t, n) != x->sweep)
      continue;
    open_loop(x, 2, "i", t->rx);
    ir_buf_printf(x->out, "    r%zu[i] = k_group_%s<%s>(r%zu[i]);\n  }\n", i, how(n), group_of(x),
                  i);
  }
}

// --- weights -------------------------------------------------------------------------------------
static void put_weights(catt_text *x, cg_expr *e, int out, const char *value) {
  value = inside(x, value, "k_f32(0.0f)");
  if (out == 0 && !x->t->mma)
    cpu_line(e, "weights.store4(row * %d + place, %s);", x->t->weights_pitch, value);
  else
    cpu_line(e, "w%d[i][j] = %s;", out, value);
}

static void take_weights(catt_text *x, cg_expr *e) {
  for (int i = 0; i < x->t->num_out; i++)
    put_weights(x, e, i, cg_emit_value(e, x->t->out[i].weights));
}

void catt_emit_weights(const catt_text *x, int out) {
  const catt *t = x->t;
  open_loop(x, 4, "i", t->rx);
  open_loop(x, 6, "j", t->ry);
  ir_buf_printf(x->out,
                "        weights.store4((ty + i * %d) * %d + (tx + j * %d) * %d, w%d[i][j]);\n"
                "      }\n    }\n",
                CATT_TY, t->weights_pitch, CATT_TX, CATT_VL, out);
}

// --- softmax in one sweep ------------------------------------------------------------------------
static void take_most(catt_text *x, cg_expr *e) {
  const char *value = cg_emit_value(e, x->t->online.x);
  cpu_line(e, "x[i][j] = %s;", value);
  cpu_line(e, "top[i] = k_top(top[i], %s);", inside(x, "x[i][j]", "k_f32(-__builtin_inff())"));
}

// Most tiles bring no larger maximum: then nothing is scaled, by 1.
static void rescale(const catt_text *x) {
  const catt *t = x->t;
  ir_buf_printf(x->out, "    float larger[%d];\n    bool changes = false;\n", t->rx);
  open_loop(x, 4, "i", t->rx);
  ir_buf_printf(x->out,
                "      larger[i] = k_top_one(most[i], k_group_top<%s>(top[i])[0]);\n"
                "      changes |= larger[i] != most[i] || most[i] == -__builtin_inff();\n"
                "    }\n"
                "    if (changes) {\n",
                group_of(x));
  open_loop(x, 6, "i", t->rx);
  ir_buf_puts(x->out, "        const bool fresh = most[i] == -__builtin_inff(); // nothing before "
                      "this tile counts\n"
                      "        const float scale = k_exp_of_row(k_f32(most[i] - larger[i]))[0];\n"
                      "        most[i] = larger[i];\n"
                      "        total[i] = fresh ? 0.0f : total[i] * scale;\n");
  if (t->online.whole) {
    open_loop(x, 8, "j", t->out[0].vectors);
    ir_buf_puts(x->out, "          out0[i][j] = fresh ? k_f32(0.0f) : out0[i][j] * scale;\n"
                        "        }\n");
  }
  ir_buf_puts(x->out, "      }\n    }\n");
}

static void take_online(catt_text *x, cg_expr *e) {
  const catt_online *o = &x->t->online;
  const char *value = cg_emit_value(e, o->e);
  cpu_line(e, "total[i] += k_sum_lanes(%s)[0];", inside(x, value, "k_f32(0.0f)"));
  if (!o->whole)
    return;
  if (o->quotient) // the division comes last
    cg_scope_bind(x->arena, e->names, o->quotient, value);
  take_weights(x, e);
}

// The only tile there is: its sums are those of rows.
static void put_at_once(catt_text *x) {
  const catt *t = x->t;
  ir_buf_printf(x->out, "    float whole[%d];\n", t->rx);
  open_loop(x, 4, "i", t->rx);
  ir_buf_printf(x->out, "      whole[i] = k_over_warp<k_take_sum, %s>(total[i]);\n    }\n",
                group_of(x));
  x->in_tile = true;
  each_vector(x, take_weights);
  x->in_tile = false;
}

static void put_online(catt_text *x) {
  const catt *t = x->t;
  ir_buf_printf(x->out, "    vf x[%d][%d], top[%d];\n", t->rx, t->ry, t->rx);
  open_loop(x, 4, "i", t->rx);
  ir_buf_puts(x->out, "      top[i] = k_f32(-__builtin_inff());\n    }\n");
  each_vector(x, take_most);
  rescale(x);
  x->have_x = true;
  each_vector(x, take_online);
  if (catt_is_at_once(t))
    put_at_once(x);
  x->have_x = false;
}

static void finish_online(const catt_text *x) {
  const catt *t = x->t;
  open_loop(x, 2, "i", t->rx);
  ir_buf_printf(x->out, "    total[i] = k_over_warp<k_take_sum, %s>(total[i]);\n", group_of(x));
  if (t->online.quotient) {
    ir_buf_puts(
        x->out,
        "    const float inverse = most[i] == -__builtin_inff() ? 1.0f : 1.0f / total[i];\n");
    open_loop(x, 4, "j", t->out[0].vectors);
    ir_buf_puts(x->out, "      out0[i][j] *= inverse;\n    }\n");
  }
  ir_buf_puts(x->out, "  }\n");
}

void catt_emit_values(catt_text *x) {
  const catt *t = x->t;
  bool last = x->sweep + 1 == t->sweeps;
  for (int i = t->mma ? 0 : 1; last && i < t->num_out; i++)
    ir_buf_printf(x->out, "    vf w%d[%d][%d];\n", i, t->rx, t->ry);
  if (t->online.found && x->sweep == 0)
    put_online(x);
  else
    each_vector(x, last ? take_weights : take_reductions);
}

// --- stores --------------------------------------------------------------------------------------
static void store_rows(catt_text *x) {
  const catt *t = x->t;
  const domain *d = t->dom->dom;
  if (d->stores.num == 0)
    return;
  open_loop(x, 2, "i", t->rx);
  put_line(x, 4);
  cg_expr e = expr_of(x, 6);
  e.vector_axis = -1;
  for (int i = 0; i < t->num_y; i++)
    x->axis[t->first_y + i] = "0";
  ir_buf_printf(x->out, "    if (tx == 0 && x0 + row < %lld) {\n", ll(t->x));
  for (size_t i = 0; i < d->stores.num; i++)
    cg_emit_store(&e, &d->stores.at[i]);
  ir_buf_puts(x->out, "    }\n  }\n");
}

static void store_out(const catt_text *x, int i) {
  const catt *t = x->t;
  const catt_out *out = &t->out[i];
  long long e = ll(out->width);
  const char *column = ir_format(x->arena, "(tx + j * %d) * %d", CATT_TX, CATT_VL);
  if (t->mma) {
    catt_emit_tensor_exchange(x, i);
    column = "j * 16 + tx % 2 * 8 + tx / 2 * 4";
  }
  open_loop(x, 2, "i", t->rx);
  open_loop(x, 4, "j", out->vectors);
  ir_buf_printf(x->out,
                "      const int row = ty + i * %d, column = %s;\n"
                "      float *const to = (float *)args[%d] + ((int64_t)batch * %lld + x0 + row) * "
                "%lld + column;\n"
                "      if (x0 + row < %lld && column < %lld)\n",
                t->row_step, column, out->arg, ll(t->x), e, ll(t->x), e);
  if (e % CATT_VL)
    ir_buf_printf(x->out,
                  "        k_store_f32_part(to, out%d[i][j], %lld - column < VL ? (int)(%lld - "
                  "column) : VL);\n",
                  i, e, e);
  else
    ir_buf_printf(x->out, "        k_store_f32(to, out%d[i][j]);\n", i);
  ir_buf_puts(x->out, "    }\n  }\n");
}

// After a sweep.
void catt_emit_finish(catt_text *x) {
  if (x->t->online.found && x->sweep == 0)
    finish_online(x);
  else if (!x->t->online.found)
    finish_reductions(x);
  if (x->sweep + 1 < x->t->sweeps)
    return;
  store_rows(x);
  for (int i = 0; i < x->t->num_out; i++)
    store_out(x, i);
}
