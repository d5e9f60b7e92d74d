// matmul_problem.c: from a kernel's domain to a described product, for both targets, the indices that
// epilogues need, and which steps bands leave.
//
//   q: f32[2,4,64,32] as view of [2,64,384]       batch (2, 4), m 64, k 32
//   ->  a = {offset, batch {2, 4; 24576, 32}, x {64; 384}, k {32; 1}}
//
// Vectors run along n. Where results lie side by side along m instead (n == 1, or an epilogue that
// transposes), the operands change places: c^T = b^T a^T.
#include "codegen/cpu_matmul.h"

#include <string.h>

mm_axes mm_simplify(const mm_axes *axes) {
  mm_axes r = {0};
  for (int i = 0; i < axes->num; i++) {
    if (axes->size[i] == 1)
      continue;
    int last = r.num - 1;
    if (r.num && r.stride[last] == axes->size[i] * axes->stride[i]) {
      r.size[last] *= axes->size[i];
      r.stride[last] = axes->stride[i];
      continue;
    }
    r.size[r.num] = axes->size[i];
    r.stride[r.num++] = axes->stride[i];
  }
  return r;
}

bool mm_is_flat(const mm_axes *axes, int64_t *stride) {
  *stride = axes->num ? axes->stride[axes->num - 1] : 0;
  return axes->num <= 1;
}

bool mm_all_multiples(const mm_axes *axes, int num, int64_t of) {
  for (int i = 0; i < num; i++)
    if (axes->stride[i] % of)
      return false;
  return true;
}

const char *mm_offset(ir_arena *arena, const mm_axes *axes, const char *index) {
  if (axes->num == 0)
    return "0";
  ir_buf text = ir_buf_new(arena);
  int64_t below = 1; // elements of the parts after this one
  for (int i = axes->num - 1; i >= 0; i--) {
    ir_buf part = ir_buf_new(arena);
    ir_buf_puts(&part, index);
    if (below > 1)
      ir_buf_printf(&part, " / %lld", (long long)below);
    if (i > 0)
      ir_buf_printf(&part, " %% %lld", (long long)axes->size[i]);
    ir_buf_printf(&text, "%s%s * %lld", text.len ? " + " : "", ir_buf_str(&part),
                  (long long)axes->stride[i]);
    below *= axes->size[i];
  }
  return ir_buf_str(&text);
}

mm_axes mm_axes_between(const domain *d, const dom_access *at, int first, int num) {
  mm_axes axes = {.num = num};
  for (int i = 0; i < num; i++) {
    axes.size[i] = d->axis[first + i].size;
    axes.stride[i] = at->stride[first + i];
  }
  return mm_simplify(&axes);
}

typedef struct source {
  const ir_node *buffer, *conversion;
  const dom_access *at;
  const int64_t *k_stride;
} source;

// tf32 rounds; a cast widens what the buffer holds.
static const char *conversion_name(const source *s) {
  if (!s->conversion)
    return NULL;
  return s->conversion->op == IR_TF32 ? "tf32" : ir_dtypes[s->buffer->type.dtype].name;
}

static mm_axes steps_of(const dom_matmul *mm, const int64_t *stride) {
  mm_axes k = {.num = mm->num_k_axes};
  memcpy(k.size, mm->k_size, sizeof k.size);
  memcpy(k.stride, stride, sizeof k.stride);
  return mm_simplify(&k);
}

static mm_operand operand_of(const cg_kernel *k, const dom_matmul *mm, const source *s, int first,
                             int num) {
  const ir_dtype_info *type = &ir_dtypes[s->buffer->type.dtype];
  mm_operand o = {.arg = cg_arg_index(k, s->buffer),
                  .ctype = type->ctype,
                  .elem_bytes = type->bytes,
                  .convert = conversion_name(s),
                  .offset = s->at->offset};
  BUG_IF(o.arg < 0, "matmul '%s' reads '%s', which is in no memory", k->k->anchor->name,
         s->buffer->name);
  o.batch = mm_axes_between(k->dom, s->at, 0, mm->num_batch_axes);
  o.x = mm_axes_between(k->dom, s->at, first, num);
  o.k = steps_of(mm, s->k_stride);
  return o;
}

// Stores whose neighbours in memory are neighbours along the last of these axes.
static int unit_stores(const domain *d, int first, int num) {
  int count = 0;
  for (size_t i = 0; num > 0 && i < d->stores.num; i++)
    count += d->stores.at[i].access.stride[first + num - 1] == 1;
  return count;
}

// Rows and columns change places where that makes stores of neighbours. On a CPU not the windows of a convolution with
// one output channel: as b they would be packed whole, which takes longer, and more memory, than all the rest.
static bool swaps(const cg_kernel *k, const dom_matmul *mm, int m0, int n0) {
  if (unit_stores(k->dom, m0, mm->num_m_axes) <= unit_stores(k->dom, n0, mm->num_n_axes))
    return false;
  return k->target->cuda || mm->n > 1 || steps_of(mm, mm->a_k).num <= 1;
}

static mm_problem describe(const cg_kernel *k, const dom_matmul *mm, bool swap, mm_sides *sides) {
  const ir_dtype_info *type = &ir_dtypes[k->k->anchor->type.dtype];
  int m0 = mm->num_batch_axes, n0 = m0 + mm->num_m_axes;
  sides->mm = mm;
  sides->first_row = swap ? n0 : m0;
  sides->num_rows = swap ? mm->num_n_axes : mm->num_m_axes;
  sides->first_col = swap ? m0 : n0;
  sides->num_cols = swap ? mm->num_m_axes : mm->num_n_axes;
  source a = {mm->a, mm->a_conversion, &mm->a_access, mm->a_k};
  source b = {mm->b, mm->b_conversion, &mm->b_access, mm->b_k};
  band_product bands = band_of_matmul(k->k->anchor);
  mm_operand left = operand_of(k, mm, swap ? &b : &a, sides->first_row, sides->num_rows);
  return (mm_problem){
      .target = k->target,
      .arena = k->arena,
      .ctype = type->ctype,
      .elem_bytes = type->bytes,
      .batch = mm->batch,
      .m = swap ? mm->n : mm->m,
      .n = swap ? mm->m : mm->n,
      .k = mm->k,
      .a = left,
      .b = operand_of(k, mm, swap ? &a : &b, sides->first_col, sides->num_cols),
      .bands = swap ? mm_turn_bands(&bands) : bands,
      .border = mm_border_of(swap ? b.buffer : a.buffer, &left, mm->k),
      .zeros = zeros_expected(swap ? b.buffer : a.buffer),
      .workspace_arg = (int)(k->in.num + k->out.num),
  };
}

// Windows whose sums have other bits as rows than as columns are rows whatever an epilogue stores (choose_winograd).
mm_problem mm_describe(const cg_kernel *k, mm_sides *sides) {
  const dom_matmul *mm = dom_build_matmul(k->arena, k->k, k->dom);
  mm_problem p = describe(k, mm, false, sides);
  bool windows = !k->target->cuda && (mm_suits_winograd(&p) || mm_suits_winograd_weights(&p));
  int m0 = mm->num_batch_axes, n0 = m0 + mm->num_m_axes;
  return !windows && swaps(k, mm, m0, n0) ? describe(k, mm, true, sides) : p;
}

// --- equal problems ------------------------------------------------------------------------------
static void put_axes(ir_buf *key, const mm_axes *axes) {
  for (int i = 0; i < axes->num; i++)
    ir_buf_printf(key, "%llx*%llx,", (long long)axes->size[i], (long long)axes->stride[i]);
  ir_buf_puts(key, ";");
}

static void put_operand(ir_buf *key, const mm_operand *o) {
  ir_buf_printf(key, "%s %d %llx ", o->convert ? o->convert : "", o->elem_bytes,
                (long long)o->apart);
  put_axes(key, &o->batch);
  put_axes(key, &o->x);
  put_axes(key, &o->k);
}

static void put_band(ir_buf *key, ir_band b) {
  ir_buf_printf(key, "%lld:%lld;", (long long)b.lower, (long long)b.upper);
}

const char *mm_key(const mm_problem *p) {
  ir_buf key = ir_buf_new(p->arena);
  ir_buf_printf(&key, "%d %llx %llx %llx %llx %d %d %d %d %d %d ", p->elem_bytes,
                (long long)p->batch, (long long)p->m, (long long)p->n, (long long)p->k, p->plain,
                p->updates, p->want_mr, p->want_nv, p->zeros, p->pairs);
  put_operand(&key, &p->a);
  put_operand(&key, &p->b);
  if (p->bands.limited) {
    put_band(&key, p->bands.a);
    put_band(&key, p->bands.b);
    put_band(&key, p->bands.c);
  }
  const mm_border *b = &p->border;
  if (b->limited)
    ir_buf_printf(&key, "%llx %llx %llx %llx %llx %llx %llx", (long long)b->below,
                  (long long)b->lines, (long long)b->step, (long long)b->run, (long long)b->apart,
                  (long long)b->low, (long long)b->high);
  return ir_buf_str(&key);
}

// --- indices of the epilogue -----------------------------------------------------------------
static const char *axis_index(void *data, int axis) {
  return ((mm_scope *)data)->index[axis];
}

static const char *have_product(void *data, const ir_node *n) {
  return n == ((mm_scope *)data)->kernel->k->anchor ? "product" : NULL;
}

cg_expr mm_expr(mm_scope *x, ir_buf *out, int indent, const char *const *taken, size_t num) {
  ir_arena *a = x->kernel->arena;
  const mm_sides *s = x->sides;
  cg_expr e = {.k = x->kernel,
               .out = out,
               .indent = indent,
               .names = ir_map_new(a),
               .vector_axis = s->num_cols ? s->first_col + s->num_cols - 1 : -1,
               .index = axis_index,
               .data = x,
               .have = have_product};
  for (size_t i = 0; i < num; i++)
    cg_scope_name(a, e.names, taken[i]);
  for (int i = 0; i < DOM_MAX_AXES; i++)
    cg_scope_name(a, e.names, ir_format(a, "i%d", i));
  return e;
}

// One step along an axis of all of them is as far as all steps of the next one, of the same side.
static bool goes_on(const domain *d, const dom_access *x, int axis) {
  return x->stride[axis] == x->stride[axis + 1] * d->axis[axis + 1].size;
}

static bool is_walked_as_one(const mm_scope *x, int axis) {
  const domain *d = x->kernel->dom;
  const dom_matmul *mm = x->sides->mm;
  int m0 = mm->num_batch_axes, n0 = m0 + mm->num_m_axes;
  if (axis + 1 == m0 || axis + 1 == n0 || axis + 1 >= d->num_axes)
    return false;
  for (size_t i = 0; i < d->loads.num; i++)
    if (!goes_on(d, &d->loads.at[i].access, axis))
      return false;
  for (size_t i = 0; i < d->stores.num; i++)
    if (!goes_on(d, &d->stores.at[i].access, axis))
      return false;
  return true;
}

const char *mm_index(const mm_scope *x, int axis) {
  int number = 0;
  if (is_walked_as_one(x, axis))
    return "0";
  for (int i = 0; i < axis; i++)
    number += !is_walked_as_one(x, i);
  return ir_format(x->kernel->arena, "i%d", number);
}

int64_t mm_run_of_columns(const mm_scope *x) {
  int first = x->sides->first_col, last = first + x->sides->num_cols - 1;
  int64_t run = x->sides->num_cols ? x->kernel->dom->axis[last].size : 1;
  while (last > first && is_walked_as_one(x, last - 1))
    run *= x->kernel->dom->axis[--last].size;
  return run;
}

void mm_emit_indices(const cg_expr *e, int first, int num, const char *flat) {
  mm_scope *x = e->data;
  const char *name[DOM_MAX_AXES];
  int64_t size[DOM_MAX_AXES], inner = 1;
  int count = 0;
  for (int i = first; i < first + num; i++) {
    x->index[i] = mm_index(x, i);
    inner *= e->k->dom->axis[i].size;
    if (is_walked_as_one(x, i))
      continue;
    name[count] = x->index[i];
    size[count++] = inner;
    inner = 1;
  }
  cg_emit_indices(e->out, e->indent, flat, count, size, name);
}

// --- which steps ----------------------------------------------------------------------------
// "  if (first < m0 - 3)\n    first = m0 - 3; // a is 0 before\n"; nothing when it limits nothing.
static void put_limit(ir_buf *out, bool limits, const char *what, char than, const char *from,
                      int64_t by, const char *why) {
  const char *edge = by ? ir_format(out->arena, "%s %c %lld", from, by < 0 ? '-' : '+',
                                    (long long)(by < 0 ? -by : by))
                        : from;
  if (limits)
    ir_buf_printf(out, "  if (%s %c %s)\n    %s = %s; // %s\n", what, than, edge, what, edge, why);
}

void mm_emit_bands(const mm_problem *p, const char *first, ir_buf *out) {
  const ir_band a = p->bands.a, b = p->bands.b, c = p->bands.c;
  int64_t k = mm_numbers_of_k(p);
  put_limit(out, a.lower > 1 - p->m, first, '<', "m0", a.lower, "a is 0 before");
  put_limit(out, b.upper < p->n - 1, first, '<', "n0", -b.upper, "b is 0 before");
  put_limit(out, a.upper < k - 1, "stop", '>', "m1", a.upper + 1, "a is 0 from there on");
  put_limit(out, b.lower > 1 - k, "stop", '>', "n1", 1 - b.lower, "b is 0 from there on");
  if (band_is_empty(a) || band_is_empty(b) || band_is_empty(c))
    ir_buf_printf(out, "  stop = %s; // nothing but zeros, or nothing needed\n", first);
  else if (c.lower > 1 - p->m || c.upper < p->n - 1)
    ir_buf_printf(out,
                  "  if (n1 - m0 < %lld || n0 - m1 > %lld)\n"
                  "    stop = %s; // nobody needs this tile\n",
                  (long long)c.lower, (long long)c.upper, first);
}

// Elements of its buffer in one of its own: pairs that lie in place are walked as elements of twice the size.
static int64_t parts_of(const mm_problem *p, const mm_operand *o) {
  return p->pairs && o->apart == 0 ? 2 : 1;
}

static void set_begin(const cg_kernel *k, mm_operand *o, int64_t parts) {
  o->begin = cg_begin(k, o->arg) / parts;
  o->begin_text = cg_begin_text(k, o->arg);
  if (o->begin && parts > 1)
    o->begin_text = ir_format(k->arena, "%s / %lld", o->begin_text, (long long)parts);
}

void mm_set_begins(cg_kernel *k, mm_problem *p) {
  cg_note_domain_begins(k);
  int64_t parts[2] = {parts_of(p, &p->a), parts_of(p, &p->b)};
  cg_note_begin(k, p->a.arg, p->a.offset * parts[0]);
  cg_note_begin(k, p->b.arg, p->b.offset * parts[1]);
  cg_settle_begins(k, p->pairs ? 2 : 1);
  set_begin(k, &p->a, parts[0]);
  set_begin(k, &p->b, parts[1]);
  if (p->plain)
    set_begin(k, &p->c, 1);
}

const char *mm_offset_text(ir_arena *a, const mm_operand *o) {
  const char *begin = o->begin_text ? o->begin_text : "";
  int64_t rest = o->offset - o->begin;
  return rest ? ir_format(a, "%s + %lld", begin, (long long)rest) : begin;
}
