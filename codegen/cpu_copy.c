// cpu_copy.c: COPY kernels: pad, concat and insert, in one pass over the rows of the output.
//
//   pad x[4,6] -> [6,9] {lo=[1,2]}            concat a[4,6], b[4,3] -> [4,9]
//     row i0 outside [1,5): fill 9               row i0: copy 6 from a, copy 3 from b
//     else fill 2, copy 6, fill 1
//   insert x[6,9], y[4,6] {lo=[1,2]}: as pad, but x is what it is filled with; nothing is where the output lies over x
//
// A row is what lies inside the last axis that has a seam. Rows are split into tasks; a single row
// has its segments split instead. Many equal parts (the steps of a sequence) are a loop over args.
#include "codegen/cpu_element.h"

// Part of a row: elements [at, at + size) of the seam axis.
typedef struct segment {
  const ir_node *from; // NULL: fill
  int64_t at, size;
} segment;

typedef struct copy_plan {
  int axis; // of the seams
  int64_t rows;
  IR_VEC(segment) segments;
  double fill;
  const ir_node *around; // of INSERT: what it is filled with
  const ir_node *inside; // of PAD and INSERT; CONCAT: NULL
  const int64_t *lo;     // elements before it, per axis
} copy_plan;

static int last_padded(const ir_node *n, const ir_node *inside) {
  for (int i = n->type.rank - 1; i > 0; i--)
    if (inside->type.dims[i] < n->type.dims[i])
      return i;
  return 0;
}

static void add_segment(ir_arena *a, copy_plan *p, const ir_node *from, int64_t *at, int64_t size) {
  segment s = {from, *at, size};
  if (size > 0)
    IR_PUSH(a, p->segments, s);
  *at += size;
}

static void plan_room(const cg_kernel *k, copy_plan *p) {
  const ir_node *n = k->k->anchor;
  int num;
  p->lo = ir_attr_ints(n, IR_ATTR_LO, &num);
  p->inside = n->in[n->op == IR_INSERT];
  p->around = n->op == IR_INSERT ? n->in[0] : NULL;
  p->fill = p->around ? 0 : ir_attr_num(n, IR_ATTR_VALUE);
  p->axis = last_padded(n, p->inside);
  if (n->type.rank == 0)
    return;
  int64_t at = 0;
  add_segment(k->arena, p, NULL, &at, p->lo[p->axis]);
  add_segment(k->arena, p, p->inside, &at, p->inside->type.dims[p->axis]);
  add_segment(k->arena, p, NULL, &at, n->type.dims[p->axis] - at);
}

static void plan_concat(const cg_kernel *k, copy_plan *p) {
  const ir_node *n = k->k->anchor;
  int64_t at = 0;
  p->axis = (int)ir_attr_int(n, IR_ATTR_AXIS);
  for (int i = 0; i < n->num_in; i++)
    add_segment(k->arena, p, n->in[i], &at, n->in[i]->type.dims[p->axis]);
}

void cpu_copy_schedule(cg_kernel *k) {
  const ir_node *n = k->k->anchor;
  BUG_IF(ir_ops[n->op].cls != IR_CLASS_MOVE, "'%s' is no copy", n->name);
  copy_plan *p = IR_NEW(k->arena, copy_plan);
  if (n->op == IR_CONCAT)
    plan_concat(k, p);
  else
    plan_room(k, p);
  p->rows = 1;
  for (int i = 0; i < p->axis; i++)
    p->rows *= n->type.dims[i];
  int64_t units = p->rows > 1 || n->type.rank == 0 ? p->rows : n->type.dims[p->axis];
  k->num_phases = 1;
  k->tasks[0] = cpu_move_tasks(ir_elements(&n->type), units);
  k->schedule = p;
}

// Rows of the output, and of parts that are joined row by row.
cg_bytes cpu_copy_touches(const cg_kernel *k, int phase, int arg, int64_t begin, int64_t end) {
  (void)phase;
  const copy_plan *p = k->schedule;
  int64_t all = cg_arg_bytes(k, arg), tasks = k->tasks[0];
  int64_t row = begin * p->rows / tasks, row_end = end * p->rows / tasks;
  bool parts = !p->inside;
  for (size_t i = 0; parts && i < p->segments.num; i++)
    parts = dom_contiguous(p->segments.at[i].from);
  if (p->rows <= 1 || ((size_t)arg < k->in.num && !parts))
    return (cg_bytes){0, all};
  return (cg_bytes){all / p->rows * row, all / p->rows * row_end};
}

// --- text ----------------------------------------------------------------------------------------
typedef struct copy_emit {
  const cg_kernel *k;
  const copy_plan *p;
  ir_buf *out;
  int indent;
  const char *dest;            // pointer to the output
  int64_t stride[IR_MAX_RANK]; // of the output
  const char *i[IR_MAX_RANK];  // loop variables by axis
} copy_emit;

static void line(copy_emit *c, const char *fmt, ...) IR_PRINTF(2, 3);
static void line(copy_emit *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  cg_vline(c->out, c->indent, fmt, ap);
  va_end(ap);
}

static void open_loop(copy_emit *c, const char *var, const char *from, const char *to) {
  line(c, "for (int64_t %s = %s; %s < %s; %s++)", var, from, var, to, var);
  c->indent += 2;
}

// A single row: places of the seam axis in a segment, or parts, are shared out to tasks.
static void open_shared_loop(copy_emit *c, const char *i, int64_t size) {
  ir_arena *a = c->k->arena;
  const char *from = "0", *to = ir_format(a, "%lld", (long long)size);
  if (c->p->rows == 1) {
    from = cpu_share(a, "begin", size, c->k->tasks[0]);
    to = cpu_share(a, "end", size, c->k->tasks[0]);
  }
  open_loop(c, i, from, to);
}

// `x` counts its elements of the seam axis from 0 on.
static void copy_elements(copy_emit *c, cpu_element x, int64_t at, int64_t size) {
  ir_arena *a = c->k->arena;
  const ir_node *n = c->k->k->anchor;
  int rank = n->type.rank, axis = c->p->axis;
  int before = c->indent;
  open_shared_loop(c, c->i[axis], size);
  for (int i = axis + 1; i < rank; i++)
    if (n->type.dims[i] > 1)
      open_loop(c, c->i[i], "0", ir_format(a, "%lld", (long long)n->type.dims[i]));
  const char *index[IR_MAX_RANK];
  for (int i = 0; i < rank; i++)
    index[i] = i <= axis || n->type.dims[i] > 1 ? c->i[i] : NULL;
  line(c, "%s[%s] = %s;", c->dest, cpu_affine(a, rank, index, c->stride, at * c->stride[axis]),
       cpu_element_text(c->k, &x, index));
  c->indent = before;
}

static void copy_segment(copy_emit *c, const segment *s) {
  cpu_element x = cpu_element_of(s->from);
  for (int i = 0; c->p->inside && i < c->p->axis; i++)
    x.offset -= c->p->lo[i] * x.stride[i];
  copy_elements(c, x, s->at, s->size);
}

static void copy_around(copy_emit *c, int64_t at, int64_t size) {
  cpu_element x = cpu_element_of(c->p->around);
  x.offset += at * x.stride[c->p->axis];
  line(c, "if (apart) {");
  c->indent += 2;
  copy_elements(c, x, at, size);
  c->indent -= 2;
  line(c, "}");
}

static void fill_segment(copy_emit *c, int64_t at, int64_t size) {
  ir_arena *a = c->k->arena;
  const ir_node *n = c->k->k->anchor;
  int axis = c->p->axis, before = c->indent;
  int64_t inner = c->stride[axis];
  open_shared_loop(c, c->i[axis], size);
  if (inner > 1)
    open_loop(c, "t", "0", ir_format(a, "%lld", (long long)inner));
  line(c, "%s[%s%s] = %s;", c->dest, cpu_affine(a, axis + 1, c->i, c->stride, at * inner),
       inner > 1 ? " + t" : "", cpu_literal(a, n->type.dtype, c->p->fill));
  c->indent = before;
}

static void fill_around(copy_emit *c, int64_t at, int64_t size) {
  if (c->p->around)
    copy_around(c, at, size);
  else
    fill_segment(c, at, size);
}

// --- many equal parts

enum { LEAST_RUN = 8 };

static bool goes_on(const copy_emit *c, const segment *first, size_t num) {
  const segment *s = first + num;
  return s->from && s->size == first->size && cg_follows(c->k, first->from, s->from, (int)num);
}

// Segments of one size that are whole buffers, whose arguments follow each other.
static size_t run_length(const copy_emit *c, size_t at) {
  const segment *first = &c->p->segments.at[at];
  size_t num = 0;
  while (first->from && at + num < c->p->segments.num && goes_on(c, first, num))
    num++;
  return num;
}

// Row `row` of each part is one piece, as is its place in the output.
static void copy_run(copy_emit *c, const segment *first, size_t num) {
  const ir_node *n = c->k->k->anchor;
  const char *type = ir_dtypes[n->type.dtype].ctype, *row = c->p->rows == 1 ? "0" : "row";
  long long piece = (long long)(first->size * c->stride[c->p->axis]);
  long long whole = (long long)(n->type.dims[c->p->axis] * c->stride[c->p->axis]);
  open_shared_loop(c, "part", (int64_t)num);
  line(c, "{");
  c->indent += 2;
  line(c, "const %s *const from = (const %s *)args[%d + part] + %s * %lld;", type, type,
       cg_arg_index(c->k, dom_base(first->from)), row, piece);
  line(c, "%s *const to = %s + %s * %lld + part * %lld + %lld;", type, c->dest, row, whole, piece,
       (long long)(first->at * c->stride[c->p->axis]));
  line(c, "for (int64_t i = 0; i < %lld; i++)", piece);
  line(c, "  to[i] = from[i];");
  c->indent -= 2;
  line(c, "}");
  c->indent -= 2;
}

static void emit_segments(copy_emit *c) {
  for (size_t i = 0; i < c->p->segments.num; i++) {
    const segment *s = &c->p->segments.at[i];
    size_t run = run_length(c, i);
    if (run >= LEAST_RUN) {
      copy_run(c, s, run);
      i += run - 1;
    } else if (s->from)
      copy_segment(c, s);
    else
      fill_around(c, s->at, s->size);
  }
}

// "i0 >= 1 && i0 < 5" for each outer axis that is padded; NULL when none is.
static const char *inside_test(copy_emit *c) {
  const ir_node *n = c->k->k->anchor;
  ir_buf b = ir_buf_new(c->k->arena);
  for (int i = 0; c->p->inside && i < c->p->axis; i++) {
    int64_t lo = c->p->lo[i], hi = lo + c->p->inside->type.dims[i];
    if (lo > 0)
      ir_buf_printf(&b, "%s%s >= %lld", b.len ? " && " : "", c->i[i], (long long)lo);
    if (hi < n->type.dims[i])
      ir_buf_printf(&b, "%s%s < %lld", b.len ? " && " : "", c->i[i], (long long)hi);
  }
  return b.len ? ir_buf_str(&b) : NULL;
}

static void decode_row(copy_emit *c) {
  const ir_type *t = &c->k->k->anchor->type;
  int64_t inner = c->p->rows;
  for (int i = 0; i < c->p->axis; i++) {
    inner /= t->dims[i];
    const char *outer = inner == 1 ? "row" : ir_format(c->k->arena, "row / %lld", (long long)inner);
    if (i == 0)
      line(c, "const int64_t %s = %s;", c->i[i], outer);
    else
      line(c, "const int64_t %s = %s %% %lld;", c->i[i], outer, (long long)t->dims[i]);
  }
}

static void emit_rows(copy_emit *c) {
  ir_arena *a = c->k->arena;
  int64_t tasks = c->k->tasks[0];
  line(c, "for (int64_t row = %s; row < %s; row++) {", cpu_share(a, "begin", c->p->rows, tasks),
       cpu_share(a, "end", c->p->rows, tasks));
  c->indent += 2;
  decode_row(c);
  const char *inside = inside_test(c);
  if (inside) {
    line(c, "if (!(%s)) {", inside);
    c->indent += 2;
    fill_around(c, 0, c->k->k->anchor->type.dims[c->p->axis]);
    line(c, "continue;");
    c->indent -= 2;
    line(c, "}");
  }
  emit_segments(c);
  c->indent -= 2;
  line(c, "}");
}

void cpu_copy_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const ir_node *n = k->k->anchor;
  copy_emit c = {.k = k, .p = k->schedule, .out = out, .indent = 2};
  ir_row_major(&n->type, c.stride);
  for (int i = 0; i < n->type.rank; i++)
    c.i[i] = ir_format(k->arena, "i%d", i);
  c.dest = cg_arg_name(k, cg_arg_index(k, n));
  ir_buf_printf(out, "void %s_0(int64_t begin, int64_t end, char *const *args) {\n", name);
  cg_emit_args(k, out, 2);
  if (c.p->around)
    line(&c, "const int apart = (const void *)%s != (const void *)%s;", c.dest,
         cg_arg_name(k, cg_arg_index(k, dom_base(c.p->around))));
  if (n->type.rank == 0) {
    cpu_element x = cpu_element_of(n->op == IR_CONCAT ? n->in[0] : c.p->inside);
    line(&c, "if (begin < end)");
    line(&c, "  %s[0] = %s;", c.dest, cpu_element_text(k, &x, NULL));
  } else if (c.p->rows == 1) {
    if (c.p->axis > 0) // outer axes of size 1
      for (int i = 0; i < c.p->axis; i++)
        line(&c, "const int64_t %s = 0;", c.i[i]);
    emit_segments(&c);
  } else {
    emit_rows(&c);
  }
  ir_buf_puts(out, "}\n");
}
