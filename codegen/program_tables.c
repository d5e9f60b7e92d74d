// program_tables.c: the constant tables of a trainer (mlrt_program and what it points to).
#include "codegen/cuda_launches.h"
#include "ir/json.h"
#include "codegen/plain_step.h"

#include "ir/narrow.h"
#include "ir/signs.h"
#include "passes/zeros.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

typedef struct tables {
  const cg_program *p;
  const plan *plan;
  const ir_module *m;
  ir_buf *out;
  int64_t *limits[IR_MAX_FUNCS]; // cg_integer_limits of each function
  bool *positive[IR_MAX_FUNCS];  // ir_find_never_negative of each
  size_t plan_len, packed_len;
} tables;

// --- small pieces ----------------------------------------------------------------------------
const char *cg_dtype_constant(ir_dtype t) {
  static const char *const names[] = {
#define DTYPE(NAME, text, bytes, ctype, kind) "MLRT_" #NAME,
#include "ir/dtypes.def"
#undef DTYPE
  };
  return names[t];
}

static const char *role_constant(ir_role r) {
  static const char *const names[IR_NUM_ROLES] = {
      [IR_ROLE_PARAM] = "MLRT_PARAM",     [IR_ROLE_FROZEN] = "MLRT_FROZEN",
      [IR_ROLE_BUFFER] = "MLRT_BUFFER",   [IR_ROLE_MOMENT] = "MLRT_MOMENT",
      [IR_ROLE_COUNTER] = "MLRT_COUNTER", [IR_ROLE_SEED] = "MLRT_SEED",
      [IR_ROLE_FLAG] = "MLRT_FLAG",       [IR_ROLE_ACCUM] = "MLRT_ACCUM"};
  return names[r];
}

static void put_type(ir_buf *b, const ir_type *t) {
  ir_buf_printf(b, "%s, %d, {", cg_dtype_constant(t->dtype), t->rank);
  for (int i = 0; i < t->rank; i++)
    ir_buf_printf(b, "%s%" PRId64, i ? ", " : "", t->dims[i]);
  ir_buf_puts(b, t->rank ? "}" : "0}");
}

// The trainer writes them into JSON (--kernel-times).
static void put_loc(ir_buf *b, const ir_loc *loc, ir_arena *a) {
  const char *place = ir_place(a, *loc);
  cg_put_string(b, place ? ir_utf8(a, place) : "");
}

static void put_number(ir_buf *b, double v) {
  if (v != v || v - v != 0) // nan or infinite: no literal in C
    ir_buf_puts(b, v != v ? "(0.0 / 0.0)" : v > 0 ? "1e9999" : "-1e9999");
  else
    ir_buf_double(b, v);
}

// C has no empty arrays: tables always end with one row that is not counted.
static void end_table(ir_buf *b) {
  ir_buf_puts(b, "    {0}};\n");
}

// --- states and inputs -----------------------------------------------------------------------
static void put_states(const tables *t) {
  ir_buf_puts(t->out, "\nstatic const mlrt_tensor states[] = {\n");
  for (size_t i = 0; i < t->m->states.num; i++) {
    const ir_state *s = t->m->states.at[i];
    ir_buf_puts(t->out, "    {");
    cg_put_string(t->out, s->name);
    ir_buf_puts(t->out, ", ");
    put_type(t->out, &s->type);
    ir_buf_printf(t->out, ", %" PRId64 ", %" PRId64 ", %s, ", plan_state_offset(t->plan, s),
                  ir_bytes(&s->type), role_constant(s->role));
    put_number(t->out, s->value);
    ir_buf_puts(t->out, ", ");
    put_loc(t->out, &s->loc, t->p->arena);
    if (s->as) {
      ir_buf_puts(t->out, ", ");
      cg_put_string(t->out, s->as->name);
    }
    ir_buf_puts(t->out, "},\n");
  }
  end_table(t->out);
}

// Those of inputs whose elements have different ones: input_NUMBER_limits.
static void put_element_limits(const tables *t, const ir_func *f, bool *has) {
  int num = 0;
  for (size_t i = 0; f && i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->op != IR_INPUT)
      continue;
    const int64_t *limits = cg_element_limits(t->p->arena, f, n);
    int64_t size = ir_elements(&n->type) / n->type.dims[0];
    has[i] = limits != NULL;
    if (limits)
      ir_buf_printf(t->out, "\nstatic const int64_t input_%d_limits[] = {", num);
    for (int64_t k = 0; limits && k < size; k++)
      ir_buf_printf(t->out, "%s%" PRId64, k ? ", " : "", limits[k]);
    if (limits)
      ir_buf_puts(t->out, "};\n");
    num++;
  }
}

static int put_inputs(const tables *t) {
  const ir_func *f = ir_batch_func(t->m);
  int num = 0;
  const int64_t *limits = f ? t->limits[plan_func_index(f)] : NULL;
  bool *apart = IR_NEW_ARRAY(t->p->arena, bool, f ? f->nodes.num : 1);
  put_element_limits(t, f, apart);
  ir_buf_puts(t->out, "\nstatic const mlrt_input inputs[] = {\n");
  for (size_t i = 0; f && i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->op != IR_INPUT)
      continue;
    ir_buf_puts(t->out, "    {");
    cg_put_string(t->out, n->name);
    ir_buf_puts(t->out, ", ");
    put_type(t->out, &n->type);
    ir_buf_printf(t->out, ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64,
                  plan_offset(t->plan, f, n), ir_bytes(&n->type), limits[n->id],
                  cg_integer_besides(f, n, limits[n->id]));
    ir_buf_puts(t->out, apart[i] ? ir_format(t->p->arena, ", input_%d_limits},\n", num) : "},\n");
    num++;
  }
  end_table(t->out);
  return num;
}

// --- data and configuration ------------------------------------------------------------------
static void put_settings(ir_buf *b, const char *name, const ir_setting *s, size_t num) {
  static const char *const kinds[] = {"MLRT_SET_NUM", "MLRT_SET_STR", "MLRT_SET_FLAG"};
  ir_buf_printf(b, "\nstatic const mlrt_setting %s[] = {\n", name);
  for (size_t i = 0; i < num; i++) {
    ir_buf_puts(b, "    {");
    cg_put_string(b, s[i].key);
    ir_buf_printf(b, ", %s, ", kinds[s[i].kind]);
    put_number(b, s[i].kind == IR_SET_NUM ? s[i].num : 0);
    ir_buf_puts(b, ", ");
    cg_put_string(b, s[i].kind == IR_SET_NUM ? "" : s[i].str);
    ir_buf_puts(b, "},\n");
  }
  end_table(b);
}

static void put_data(const tables *t) {
  ir_buf *b = t->out;
  for (size_t i = 0; i < t->m->data.num; i++) {
    const ir_data *d = t->m->data.at[i];
    put_settings(b, ir_format(t->p->arena, "data_%zu_settings", i), d->settings.at,
                 d->settings.num);
    ir_buf_printf(b, "static const char *const data_%zu_files[] = {", i);
    for (size_t j = 0; j < d->files.num; j++) {
      cg_put_string(b, d->files.at[j]);
      ir_buf_puts(b, ", ");
    }
    ir_buf_puts(b, "0};\n");
  }
  ir_buf_puts(b, "\nstatic const mlrt_data data[] = {\n");
  for (size_t i = 0; i < t->m->data.num; i++) {
    const ir_data *d = t->m->data.at[i];
    ir_buf_puts(b, "    {");
    cg_put_string(b, d->name);
    ir_buf_puts(b, ", ");
    cg_put_string(b, d->format);
    ir_buf_printf(b, ", data_%zu_files, %zu, data_%zu_settings, %zu},\n", i, d->files.num, i,
                  d->settings.num);
  }
  end_table(b);
}

// As octal escapes: compilers read a long string much faster than a long list of numbers.
static void put_bytes(ir_buf *b, const unsigned char *data, size_t len) {
  for (size_t i = 0; i < len; i++) {
    if (i % 32 == 0)
      ir_buf_puts(b, i ? "\"\n    \"" : "    \"");
    ir_buf_printf(b, "\\%03o", data[i]);
  }
  ir_buf_puts(b, len ? "\"" : "\"\"");
}

static void put_embedded(const tables *t) {
  ir_buf *b = t->out;
  for (size_t i = 0; i < t->p->embedded.num; i++) {
    const cg_embedded *e = &t->p->embedded.at[i];
    ir_buf_printf(b, "\nstatic const unsigned char embedded_%zu[] =\n", i);
    put_bytes(b, e->data, e->len);
    ir_buf_puts(b, ";\n");
  }
  ir_buf_puts(b, "\nstatic const mlrt_embedded embedded[] = {\n");
  for (size_t i = 0; i < t->p->embedded.num; i++) {
    ir_buf_puts(b, "    {");
    cg_put_string(b, t->p->embedded.at[i].name);
    ir_buf_printf(b, ", embedded_%zu, %zu},\n", i, t->p->embedded.at[i].len);
  }
  end_table(b);
}

// --- functions -------------------------------------------------------------------------------
static void put_results(const tables *t, size_t func) {
  const ir_func *f = t->m->funcs.at[func];
  static const char *const kinds[] = {"MLRT_LOSS", "MLRT_METRIC", "MLRT_OUTPUT"};
  ir_buf_printf(t->out, "\nstatic const mlrt_result results_%s[] = {\n",
                cg_function_name(t->p, func));
  for (size_t i = 0; i < f->results.num; i++) {
    const ir_result *r = &f->results.at[i];
    ir_buf_puts(t->out, "    {");
    cg_put_string(t->out, r->name);
    ir_buf_printf(t->out, ", %s, ", kinds[r->kind]);
    put_type(t->out, &r->node->type);
    ir_buf_printf(t->out, ", %" PRId64 "},\n", plan_offset(t->plan, f, r->node));
  }
  end_table(t->out);
}

static void put_func_row(const tables *t, const char *slot, const char *name) {
  const ir_func *f = ir_find_func(t->m, name);
  if (f)
    ir_buf_printf(t->out, "        [%s] = {.%s = run_%s, .results = results_%s, %zu},\n", slot,
                  t->p->target->cuda ? "launch" : "run", name, name, f->results.num);
}

// --- kernels, for `check` --------------------------------------------------------------------
// What the program guarantees of an input, what it asks of an output.
static void put_band(ir_buf *b, const ir_type *t, const ir_band *band) {
  if (band)
    ir_buf_printf(
        b, ", .band = &(const mlrt_band){%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "}",
        t->dims[t->rank - 2], t->dims[t->rank - 1], band->lower, band->upper);
}

// What a pad has put around an input.
static void put_borders(ir_buf *b, const ir_node *n) {
  if (!ir_is_zero_pad(n))
    return;
  const int64_t *lo = ir_attr_ints(n, IR_ATTR_LO, NULL), *hi = ir_attr_ints(n, IR_ATTR_HI, NULL);
  int64_t stride[IR_MAX_RANK];
  ir_row_major(&n->type, stride);
  ir_buf_puts(b, ", .borders = (const mlrt_border[]){");
  for (int i = 0; i < n->type.rank; i++)
    if (lo[i] || hi[i])
      ir_buf_printf(b, "{%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "}, ", stride[i],
                    n->type.dims[i], lo[i], n->type.dims[i] - hi[i]);
  ir_buf_puts(b, "{0}}");
}

// The digits that a kernel narrows an output to, or that an input in f32 has left; 0: nothing was narrowed.
static int digits_of(const cg_kernel *c, const ir_node *n, bool out) {
  if (!ir_is_float(n->type.dtype) || (!out && n->type.dtype != IR_F32))
    return 0;
  int digits = out ? ir_digits_inside(c->k, n) : ir_known_digits(n);
  return digits < (out ? 53 : ir_digits(IR_F32)) ? digits : 0;
}

static void put_buffer_arg(const tables *t, const cg_kernel *c, const ir_node *n, const char *kind,
                           const ir_band *band) {
  int f = plan_func_index(c->func);
  int64_t limit = t->limits[f][n->id];
  ir_buf_printf(t->out, " {MLRT_ARG_%s, %s, .size = %" PRId64, kind,
                cg_dtype_constant(n->type.dtype), dom_bytes(n));
  if (limit)
    ir_buf_printf(t->out, ", .limit = %" PRId64, limit < INT32_MAX ? limit : INT32_MAX);
  put_band(t->out, &n->type, band);
  int digits = digits_of(c, n, strcmp(kind, "OUT") == 0);
  if (digits)
    ir_buf_printf(t->out, ", .digits = %d", digits);
  if (strcmp(kind, "IN") == 0 && t->positive[f][n->id])
    ir_buf_puts(t->out, ", .positive = 1");
  if (strcmp(kind, "IN") == 0 && c->k->family == IR_FAMILY_MATMUL && zeros_expected(n))
    ir_buf_puts(t->out, ", .zeros = 1");
  if (strcmp(kind, "IN") == 0)
    put_borders(t->out, n);
  ir_buf_puts(t->out, "},");
}

// One line per kernel; gives the number of its arguments.
static size_t put_kernel_args(const tables *t, const cg_kernel *c) {
  ir_buf_puts(t->out, "   ");
  for (size_t i = 0; i < c->in.num; i++)
    put_buffer_arg(t, c, c->in.at[i], "IN", c->in.at[i]->nonzero);
  for (size_t i = 0; i < c->out.num; i++)
    put_buffer_arg(t, c, c->out.at[i], "OUT", c->out.at[i]->needed);
  if (c->workspace > 0)
    ir_buf_printf(t->out, " {MLRT_ARG_WORKSPACE, MLRT_U8, .size = %" PRId64 "},", c->workspace);
  for (size_t i = 0; i < c->numbers.num; i++)
    ir_buf_printf(t->out, " {MLRT_ARG_NUMBER, MLRT_I64, .size = %" PRId64 "},", c->numbers.at[i]);
  ir_buf_puts(t->out, "\n");
  return c->in.num + c->out.num + (c->workspace > 0) + c->numbers.num;
}

// Functions and tasks of the phases; on a GPU the first of their entry points, or the one that calls it.
static void put_phases(const tables *t, const cg_distinct *d) {
  const cg_kernel *c = d->uses.at[0];
  ir_buf_puts(t->out, ", (const mlrt_kernel_phase[]){");
  for (int i = 0; i < c->num_phases; i++) {
    const char *fast = t->p->target->cuda ? "0" : ir_format(t->p->arena, "%s_%d", d->name, i);
    ir_buf_printf(t->out, "%s{%s, %" PRId64 "}", i ? ", " : "", fast, c->tasks[i]);
  }
  ir_buf_puts(t->out, "}, ");
  if (d->only_in)
    ir_buf_puts(t->out, d->only_in->name);
  else if (t->p->target->cuda)
    ir_buf_printf(t->out, "%s_0", d->name);
  else
    ir_buf_puts(t->out, "0");
}

static void put_kernel_row(const tables *t, const cg_distinct *d, size_t first, size_t num) {
  const cg_kernel *c = d->uses.at[0];
  ir_buf *b = t->out;
  const ir_node *last = c->k->nodes.at[c->k->nodes.num - 1];
  ir_buf_puts(b, "    {");
  cg_put_string(b, d->name);
  ir_buf_puts(b, ", ");
  cg_put_string(b, cg_describe_ops(t->p->arena, c->k));
  ir_buf_puts(b, ", ");
  put_loc(b, &last->loc, t->p->arena);
  put_phases(t, d);
  ir_buf_printf(b, ",\n     %s, kernel_args + %zu, %zu, %d, %" PRId64 ", %" PRId64,
                d->plain ? d->plain : "0", first, num, c->num_phases, d->flops, d->bytes);
  if (d->only_in)
    ir_buf_printf(b, ", .part = %zu", d->part + 1);
  ir_buf_puts(b, "},\n");
}

static void put_kernels(const tables *t) {
  size_t n = t->p->distinct.num, *num_args = IR_NEW_ARRAY(t->p->arena, size_t, n + 1);
  ir_buf_puts(t->out, "\nstatic const mlrt_arg kernel_args[] = {\n");
  for (size_t i = 0; i < n; i++)
    num_args[i] = put_kernel_args(t, t->p->distinct.at[i]->uses.at[0]);
  end_table(t->out);
  ir_buf_puts(t->out, "\nstatic const mlrt_kernel kernels[] = {\n");
  size_t first = 0;
  for (size_t i = 0; i < n; first += num_args[i++])
    put_kernel_row(t, t->p->distinct.at[i], first, num_args[i]);
  end_table(t->out);
}

static void put_entry(const tables *t, const cg_distinct *d, int phase) {
  const cg_kernel *c = d->uses.at[0];
  ir_buf_printf(t->out, "    {\"%s_%d\", %d, %d, %d, ", d->name, phase, d->unit, c->threads[phase],
                c->shared[phase]);
  cg_put_string(t->out, cg_describe_ops(t->p->arena, c->k));
  ir_buf_puts(t->out, ", ");
  put_loc(t->out, &c->k->nodes.at[c->k->nodes.num - 1]->loc, t->p->arena);
  ir_buf_puts(t->out, "},\n");
}

static void put_joint_entry(const tables *t, const cg_joint *j) {
  const cg_kernel *c = j->parts.at[0]->uses.at[0];
  ir_buf_printf(t->out, "    {\"%s\", %d, %d, 0, ", j->name, j->unit, j->threads);
  cg_put_string(t->out, cuda_describe_joint(t->p, j));
  ir_buf_puts(t->out, ", ");
  put_loc(t->out, &c->k->nodes.at[c->k->nodes.num - 1]->loc, t->p->arena);
  ir_buf_puts(t->out, "},\n");
}

static int num_units(const cg_program *p) {
  int last = 0;
  for (size_t i = 0; i < p->distinct.num; i++)
    last = p->distinct.at[i]->unit > last ? p->distinct.at[i]->unit : last;
  return last + 1;
}

// The order is the enum's (cuda_calls.c).
static void put_gpu_code(const tables *t) {
  ir_buf_puts(t->out, "\nstatic const mlrt_gpu_entry gpu_entries[] = {\n");
  for (size_t i = 0; i < t->p->distinct.num; i++) {
    const cg_distinct *d = t->p->distinct.at[i];
    for (int j = 0; !d->only_in && j < d->uses.at[0]->num_phases; j++)
      put_entry(t, d, j);
  }
  for (size_t i = 0; i < t->p->joints.num; i++)
    put_joint_entry(t, t->p->joints.at[i]);
  end_table(t->out);
  ir_buf_printf(t->out,
                "\nextern const mlrt_gpu_image mlrt_gpu_images[];\n"
                "extern const int mlrt_num_gpu_images;\n"
                "static const mlrt_gpu_code gpu_code = {\n"
                "    .calls = &mlrt_gpu_calls,\n"
                "    .images = mlrt_gpu_images,\n    .num_images = &mlrt_num_gpu_images,\n"
                "    .entries = gpu_entries,\n    .num_entries = sizeof gpu_entries / sizeof "
                "*gpu_entries - 1,\n    .num_units = %d,\n};\n",
                num_units(t->p));
}

static void put_plan(tables *t) {
  ir_buf text = ir_buf_new(t->p->arena);
  plan_print(t->plan, t->m, &text);
  uLongf len = compressBound(text.len);
  unsigned char *packed = IR_NEW_ARRAY(t->p->arena, unsigned char, len);
  int status = compress2(packed, &len, (const unsigned char *)ir_buf_str(&text), text.len,
                         Z_BEST_COMPRESSION);
  BUG_IF(status != Z_OK, "zlib says %d", status);
  ir_buf_puts(t->out, "\nstatic const unsigned char plan_packed[] =\n");
  put_bytes(t->out, packed, len);
  ir_buf_puts(t->out, ";\n");
  t->plan_len = text.len;
  t->packed_len = len;
}

// --- the program -----------------------------------------------------------------------------
static void put_field(ir_buf *b, const char *name, const char *text) {
  ir_buf_printf(b, "    .%s = ", name);
  cg_put_string(b, text);
  ir_buf_puts(b, ",\n");
}

static void put_count(ir_buf *b, const char *table, size_t num) {
  ir_buf_printf(b, "    .%s = %s,\n    .num_%s = %zu,\n", table, table, table, num);
}

// Of any function.
static int most_transfers(const ir_module *m) {
  int most = 0;
  for (size_t i = 0; i < m->funcs.num; i++) {
    int num = 0;
    for (size_t j = 0; j < m->funcs.at[i]->kernels.num; j++)
      num += ir_is_transfer(m->funcs.at[i]->kernels.at[j]);
    most = num > most ? num : most;
  }
  return most;
}

static void put_sizes(const tables *t) {
  const plan *p = t->plan;
  ir_buf_printf(t->out,
                "    .arena_bytes = %" PRId64 ",\n    .state_bytes = %" PRId64
                ",\n    .staging_bytes = %" PRId64 ",\n    .temp_bytes = %" PRId64
                ",\n    .staging_slot_bytes = %" PRId64 ",\n    .host_bytes = %" PRId64 ",\n",
                p->arena_bytes, p->state_bytes, p->staging_bytes, p->temp_bytes,
                p->staging_slot_bytes, p->host_bytes);
  ir_buf_printf(t->out, "    .num_transfers = %d,\n", most_transfers(t->m));
}

static void put_program(const tables *t, const cg_origin *o, int num_inputs) {
  ir_buf *b = t->out;
  ir_buf_puts(b, "\nconst mlrt_program mlrt_the_program = {\n    .abi = MLRT_ABI,\n");
  put_field(b, "model", t->m->name);
  put_field(b, "source_path", o->path);
  put_field(b, "compiler", o->compiler);
  put_field(b, "target", t->p->target->name);
  put_field(b, "options", o->options);
  ir_buf_printf(b, "    .source_hash = 0x%016" PRIx64 ",\n    .plan_hash = 0x%016" PRIx64 ",\n",
                o->source_hash, cg_program_hash(t->p->arena, t->m));
  put_sizes(t);
  put_count(b, "states", t->m->states.num);
  put_count(b, "inputs", (size_t)num_inputs);
  put_count(b, "data", t->m->data.num);
  put_count(b, "config", t->m->config.num);
  put_count(b, "kernels", t->p->distinct.num);
  if (t->p->target->cuda)
    ir_buf_puts(b, "    .gpu = &gpu_code,\n");
  if (t->p->target->amx)
    ir_buf_puts(b, "    .amx = 1,\n");
  put_count(b, "embedded", t->p->embedded.num);
  ir_buf_puts(b, "    .funcs = {\n");
  put_func_row(t, "MLRT_INIT", "init");
  put_func_row(t, "MLRT_STEP", "step");
  put_func_row(t, "MLRT_EVAL", "eval");
  put_func_row(t, "MLRT_PREDICT", "predict");
  put_func_row(t, "MLRT_ACCUMULATE", "accum");
  ir_buf_printf(b,
                "    },\n    .plain_step = %s,\n    .plan_packed = plan_packed,\n    "
                ".plan_packed_len = %zu,\n"
                "    .plan_len = %zu,\n};\n",
                t->p->plain_step ? "&plain_step" : "0", t->packed_len, t->plan_len);
}

void cg_emit_tables(const cg_program *p, const plan *plan, const cg_origin *o, ir_buf *out) {
  tables t = {.p = p, .plan = plan, .m = p->module, .out = out};
  for (size_t i = 0; i < t.m->funcs.num; i++) {
    t.limits[i] = cg_integer_limits(p->arena, t.m->funcs.at[i]);
    t.positive[i] = ir_find_never_negative(p->arena, t.m->funcs.at[i]);
  }
  put_states(&t);
  int num_inputs = put_inputs(&t);
  put_data(&t);
  put_settings(out, "config", p->module->config.at, p->module->config.num);
  put_embedded(&t);
  for (size_t i = 0; i < p->module->funcs.num; i++)
    put_results(&t, i);
  put_kernels(&t);
  if (p->plain_step)
    cg_plain_step_table(p, p->plain_step, out);
  if (p->target->cuda)
    put_gpu_code(&t);
  put_plan(&t);
  put_program(&t, o, num_inputs);
}
