// cpu_scatter.c: SCATTER kernels: table[index[i]] += update[i] over all i in order; or the larger of both.
//
//   scatter_add index[12,64], update[12,64,128] -> [65,128]
//     each task owns rows of the table: it clears them, then walks all indices, in pieces of 256, lists those
//     that name its rows, and adds their updates. In a table of few rows it owns a range of columns.
// Every element of the table is thus summed by one task in index order, whatever the threads do.
//
// Ranges of columns would be equal work whatever the indices are. But what a processor fetches ahead in a row is what
// another one writes: two threads that share rows took longer than one alone. The list is made without a branch:
// whether a row is the task's own is a guess, which a processor gets wrong for every other index. It is made in two
// loops, of which the first is one of vectors.
//
// An update that is a gather, and a member (ir/row_update.h), is read where it lies in the gather's table. Rows are
// added by vectors, said in so many words: a compiler does not know that the table lies apart from the updates.
// Kernels that go on to compute with the sums are made by cpu_row_update.c.
#include <string.h>

#include "codegen/cpu_element.h"
#include "ir/row_update.h"

enum {
  COLUMNS = 32, // at least so many per task: two cache lines of floats
  MOST_TASKS = 8,
  READING = 4, // elements are added in the time that it takes a task to read an index
  PIECE = 256  // indices that are listed at a time
};

typedef struct scatter_plan {
  int64_t indices;
  cpu_rows own;
  bool by_columns; // tasks own columns instead
} scatter_plan;

void cpu_scatter_schedule(cg_kernel *k) {
  if (ir_is_row_update(k->k)) {
    cpu_row_update_schedule(k);
    return;
  }
  const ir_node *n = k->k->anchor;
  scatter_plan *p = IR_NEW(k->arena, scatter_plan);
  p->indices = ir_elements(&n->in[0]->type);
  int64_t elements = ir_elements(&n->in[1]->type) + ir_elements(&n->type);
  bool is_reading = elements < READING * p->indices; // each task reads all indices
  p->own = cpu_rows_of(&n->type, is_reading ? 1 : cpu_move_tasks(elements, MOST_TASKS));
  p->by_columns = p->own.columns >= 2 * COLUMNS && p->own.rows < MOST_TASKS;
  k->num_phases = 1;
  k->tasks[0] = p->by_columns ? cpu_move_tasks(elements, p->own.columns / COLUMNS) : p->own.tasks;
  k->keeps = true; // each call reads all indices
  k->schedule = p;
}

// --- text ----------------------------------------------------------------------------------------
typedef struct scatter_emit {
  const cg_kernel *k;
  const scatter_plan *p;
  ir_buf *out;
  int indent;
  const char *table, *ctype;
} scatter_emit;

static void line(scatter_emit *s, const char *fmt, ...) IR_PRINTF(2, 3);
static void line(scatter_emit *s, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  cg_vline(s->out, s->indent, fmt, ap);
  va_end(ap);
}

static void clear_part(scatter_emit *s) {
  ir_arena *a = s->k->arena;
  const ir_node *n = s->k->k->anchor;
  const char *start = cpu_literal(a, n->type.dtype, ir_start_value(n->op, n->type.dtype));
  int64_t rows = s->p->own.rows, columns = s->p->own.columns, tasks = s->k->tasks[0];
  if (s->p->by_columns) {
    line(s, "const int64_t first = %s, last = %s;", cpu_share(a, "begin", columns, tasks),
         cpu_share(a, "end", columns, tasks));
    line(s, "for (int64_t row = 0; row < %lld; row++)", (long long)rows);
    line(s, "  for (int64_t c = first; c < last; c++)");
    line(s, "    %s[row * %lld + c] = %s;", s->table, (long long)columns, start);
  } else {
    int indent = cpu_rows_open(s->out, s->indent, &s->p->own);
    cg_line(s->out, indent, "%s[i] = %s;", s->table, start);
  }
}

// Loop variables for the dimensions of the indices; "i0", "i1", ...
static void index_loops(scatter_emit *s, const ir_type *t, const char **index) {
  for (int i = 0; i < t->rank; i++) {
    index[i] = ir_format(s->k->arena, "i%d", i);
    line(s, "for (int64_t %s = 0; %s < %lld; %s++) {", index[i], index[i], (long long)t->dims[i],
         index[i]);
    s->indent += 2;
  }
}

static void close_loops(scatter_emit *s, int num) {
  for (int i = 0; i < num; i++) {
    s->indent -= 2;
    line(s, "}");
  }
}

// The row that an index names.
static const char *row_text(const scatter_emit *s, const cpu_element *x, const char *const *index,
                            int64_t rows) {
  return ir_format(s->k->arena, "k_clamp_row((int64_t)%s, %lld)", cpu_element_text(s->k, x, index),
                   (long long)rows);
}

// Indices of the update's trailing dimensions from the column c.
static void decode_column(scatter_emit *s, const ir_type *t, int lead, const char **index) {
  ir_arena *a = s->k->arena;
  int64_t inner = s->p->own.columns;
  int wide = 0;
  for (int i = lead; i < t->rank; i++)
    wide += t->dims[i] > 1;
  for (int i = lead; i < t->rank; i++) {
    inner /= t->dims[i];
    index[i] = t->dims[i] == 1 ? NULL
               : wide == 1
                   ? "c"
                   : ir_format(a, "(c / %lld %% %lld)", (long long)inner, (long long)t->dims[i]);
  }
}

// One trailing dimension when memory allows it, so that c needs no division.
static bool columns_are_plain(const cpu_element *u, const ir_type *t, int lead) {
  int64_t next = 1;
  for (int i = t->rank - 1; i >= lead; i--) {
    if (t->dims[i] > 1 && u->stride[i] != next)
      return false;
    next *= t->dims[i];
  }
  return true;
}

// An update: elements of a tensor. Its first `lead` dimensions choose the row, by `index`.
typedef struct update {
  cpu_element u;
  int lead;
  const char *index[IR_MAX_RANK];
} update;

// `index`: of the dimensions of the indices; NULL: "at" counts through all of them.
static update update_at(scatter_emit *s, const char *const *index) {
  ir_arena *a = s->k->arena;
  const ir_node *n = s->k->k->anchor, *gather = ir_fetched_update(s->k->k);
  int rank = n->in[0]->type.rank;
  update x = {.u = cpu_element_of(gather ? gather->in[1] : n->in[1]), .lead = rank};
  if (index)
    memcpy(x.index, index, (size_t)rank * sizeof *index);
  else
    cpu_element_at(a, &x.u, rank, x.index);
  if (!gather)
    return x;
  line(s, "const int64_t source = %s;", row_text(s, &x.u, x.index, gather->in[0]->type.dims[0]));
  return (update){.u = cpu_element_of(gather->in[0]), .lead = 1, .index = {"source"}};
}

static void put_step(scatter_emit *s, const char *at, const char *x) {
  if (s->k->k->anchor->op == IR_SCATTER_ADD) {
    line(s, "%s[%s] += %s;", s->table, at, x);
    return;
  }
  line(s, "const %s x = %s, best = %s[%s];", s->ctype, x, s->table, at);
  line(s, "%s[%s] = best > x ? best : x;", s->table, at);
}

// Elements [c, c + lanes) of a row; NULL: a vector's.
static void put_vector(scatter_emit *s, const update *x, const char *lanes) {
  ir_arena *a = s->k->arena;
  const ir_node *n = s->k->k->anchor;
  const char *dtype = ir_dtypes[n->type.dtype].name;
  const char *part = lanes ? "_part" : "", *count = lanes ? ir_format(a, ", %s", lanes) : "";
  const char *to = ir_format(a, "%s + row * %lld + c", s->table, (long long)s->p->own.columns);
  const char *from = cpu_affine(a, x->u.seen->type.rank, x->index, x->u.stride, x->u.offset);
  line(s, "const %s sum = k_load_%s%s(%s%s);", cpu_register(n->type.dtype), dtype, part, to, count);
  line(s, "const %s x = k_load_%s%s(%s + %s%s);", cpu_register(n->type.dtype), dtype, part,
       cg_arg_name(s->k, cg_arg_index(s->k, x->u.base)), from, count);
  line(s, "k_store_%s%s(%s, %s%s);", dtype, part, to,
       n->op == IR_SCATTER_ADD ? "(sum + x)" : "k_max(sum, x)", count);
}

// A row whose elements lie side by side.
static void add_by_vectors(scatter_emit *s, const update *x) {
  ir_arena *a = s->k->arena;
  int64_t columns = s->p->own.columns, vl = s->k->target->vector_bytes / 4;
  bool some = s->p->by_columns;
  int64_t left = columns % vl;
  if (some || columns >= vl) {
    if (some)
      line(s, "int64_t c = first;");
    line(s, "for (%s; c + VL <= %s; c += VL) {", some ? "" : "int64_t c = 0",
         some ? "last" : ir_format(a, "%lld", (long long)columns));
    s->indent += 2;
    put_vector(s, x, NULL);
    close_loops(s, 1);
  }
  if (!some && left == 0)
    return;
  line(s, some ? "if (c < last) {" : "{");
  s->indent += 2;
  if (!some)
    line(s, "const int64_t c = %lld;", (long long)(columns - left));
  put_vector(s, x, some ? "(int)(last - c)" : ir_format(a, "%lld", (long long)left));
  close_loops(s, 1);
}

// The update, to the row "row".
static void add_row(scatter_emit *s, update x) {
  ir_arena *a = s->k->arena;
  const ir_type *t = &x.u.seen->type;
  if (s->p->own.columns > 1 && columns_are_plain(&x.u, t, x.lead)) {
    x.index[t->rank - 1] = "c";
    x.u.stride[t->rank - 1] = 1;
    add_by_vectors(s, &x);
    return;
  }
  decode_column(s, t, x.lead, x.index);
  if (s->p->own.columns == 1) {
    put_step(s, "row", cpu_element_text(s->k, &x.u, x.index));
    return;
  }
  const char *from = s->p->by_columns ? "first" : "0";
  const char *to = s->p->by_columns ? "last" : ir_format(a, "%lld", (long long)s->p->own.columns);
  line(s, "for (int64_t c = %s; c < %s; c++) {", from, to);
  s->indent += 2;
  put_step(s, ir_format(a, "row * %lld + c", (long long)s->p->own.columns),
           cpu_element_text(s->k, &x.u, x.index));
  close_loops(s, 1);
}

static void add_all(scatter_emit *s) {
  const ir_node *n = s->k->k->anchor;
  const char *index[IR_MAX_RANK] = {0};
  cpu_element x = cpu_element_of(n->in[0]);
  index_loops(s, &n->in[0]->type, index);
  line(s, "const int64_t row = %s;", row_text(s, &x, index, s->p->own.rows));
  add_row(s, update_at(s, index));
  close_loops(s, n->in[0]->type.rank);
}

// mine[i]: whether index from + i names a row of these tasks. In vectors, of as many as numbers of 32 bits make where
// those are enough.
static void mark_rows(scatter_emit *s, const cpu_element *x, const char *const *index) {
  ir_dtype type = x->base->type.dtype;
  int64_t rows = s->p->own.rows;
  bool small = ir_dtypes[type].bytes <= 4 && type != IR_U32 && rows <= INT32_MAX;
  int bits = small ? 32 : 64;
  line(s, "uint8_t mine[%d];", PIECE);
  line(s, "for (int64_t at = from; at < to; at++) {");
  if (small)
    line(s, "  const int32_t row = k_clamp_row_32(%s, %lld);", cpu_element_text(s->k, x, index),
         (long long)rows);
  else
    line(s, "  const int64_t row = %s;", row_text(s, x, index, rows));
  line(s, "  const int%d_t task = %s;", bits, cpu_rows_task(s->k->arena, &s->p->own));
  line(s, "  mine[at - from] = task >= (int%d_t)begin & task < (int%d_t)end;", bits, bits);
  line(s, "}");
}

static void add_listed(scatter_emit *s) {
  const ir_node *n = s->k->k->anchor;
  long long indices = (long long)s->p->indices;
  const char *index[IR_MAX_RANK] = {0};
  cpu_element x = cpu_element_of(n->in[0]);
  cpu_element_at(s->k->arena, &x, n->in[0]->type.rank, index);
  const char *row = row_text(s, &x, index, s->p->own.rows);
  line(s, "for (int64_t from = 0; from < %lld; from += %d) {", indices, PIECE);
  s->indent += 2;
  line(s, "const int64_t to = from + %d < %lld ? from + %d : %lld;", PIECE, indices, PIECE,
       indices);
  mark_rows(s, &x, index);
  line(s, "int64_t own[%d], num = 0;", PIECE);
  line(s, "for (int64_t at = from; at < to; at++) {");
  line(s, "  own[num] = at;");
  line(s, "  num += mine[at - from];");
  line(s, "}");
  line(s, "for (int64_t i = 0; i < num; i++) {");
  s->indent += 2;
  line(s, "const int64_t at = own[i], row = %s;", row);
  add_row(s, update_at(s, NULL));
  close_loops(s, 2);
}

void cpu_scatter_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  if (ir_is_row_update(k->k)) {
    cpu_row_update_emit(k, name, out);
    return;
  }
  const ir_node *n = k->k->anchor;
  scatter_emit s = {.k = k, .p = k->schedule, .out = out, .indent = 2};
  s.ctype = ir_dtypes[n->type.dtype].ctype;
  s.table = cg_arg_name(k, cg_arg_index(k, n));
  ir_buf_printf(out, "void %s_0(int64_t begin, int64_t end, char *const *args) {\n", name);
  cg_emit_args(k, out, 2);
  clear_part(&s);
  if (!s.p->by_columns && s.p->own.tasks > 1)
    add_listed(&s);
  else
    add_all(&s);
  ir_buf_puts(out, "}\n");
}
