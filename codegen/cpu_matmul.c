// cpu_matmul.c: the MATMUL family's functions, and the epilogue that consumes finished tiles.
// (From a kernel's domain to a described product: matmul_problem.c.)
//
// The epilogue is one function per kernel, a loop over the rows and vectors of a tile in the first
// cache:
//   static void mm_finish(args, tile, pitch, batch, m, rows, n, cols) {
//     for rows of the tile: indices of the domain's axes
//       for vectors of the row, never across the end of the innermost axis:
//         const vf product = k_load_f32(...);  ...members...  k_store_f32(...);
#include "codegen/cpu_matmul.h"
#include "passes/plan.h"

#include <string.h>

typedef struct matmul_state {
  mm_problem problem;
  mm_plan plan;
  mm_sides sides;
  const cg_kernel *kernel;
} matmul_state;

// Nothing but the product is stored, in rows: tiles can do it.
static void consider_plain(matmul_state *s) {
  const domain *d = s->kernel->dom;
  mm_problem *p = &s->problem;
  if (d->stores.num != 1 || d->stores.at[0].node != s->kernel->k->anchor)
    return;
  const dom_store *store = &d->stores.at[0];
  int64_t stride;
  mm_axes row = mm_axes_between(d, &store->access, s->sides.first_row, s->sides.num_rows);
  mm_axes col = mm_axes_between(d, &store->access, s->sides.first_col, s->sides.num_cols);
  p->plain = mm_is_flat(&row, &stride) && mm_is_flat(&col, &stride) && (stride == 1 || p->n == 1);
  p->c = (mm_operand){.arg = cg_arg_index(s->kernel, store->buffer),
                      .ctype = p->ctype,
                      .elem_bytes = p->elem_bytes,
                      .offset = store->access.offset,
                      .batch = mm_axes_between(d, &store->access, 0, s->sides.mm->num_batch_axes),
                      .x = row};
}

// Whether a result may take the place of a parameter, whose elements the epilogue reads one by one.
static bool updates_a_parameter(const cg_kernel *k) {
  for (size_t i = 0; i < k->in.num; i++) {
    const ir_node *in = k->in.at[i];
    if (in->op != IR_READ || in->state->role != IR_ROLE_PARAM)
      continue;
    for (size_t j = 0; j < k->out.num; j++)
      if (ir_same_type(&in->type, &k->out.at[j]->type) &&
          plan_may_overwrite(k->arena, k->k, in, k->out.at[j]))
        return true;
  }
  return false;
}

// --- the epilogue --------------------------------------------------------------------------------
// Members and stores for one vector; `lanes`: NULL when it is full.
static void emit_vector(const cg_expr *outer, const char *lanes) {
  cg_expr e = *outer;
  const ir_node *anchor = e.k->k->anchor;
  const char *type = ir_dtypes[anchor->type.dtype].name;
  e.names = cg_scope_copy(e.k->arena, outer->names);
  e.lanes = lanes;
  ir_buf_printf(e.out, "%*sconst %s product = k_load_%s(sums + at);\n", e.indent, "",
                anchor->type.dtype == IR_F64 ? "vd" : "vf", type);
  cg_emit_stores(&e);
}

// Whether every vector of a tile is full and inside one run of the innermost axis.
static bool always_full(const matmul_state *s, int64_t run) {
  int64_t vl = s->problem.target->vector_bytes / 4;
  return s->problem.n % vl == 0 && s->plan.nr % vl == 0 && run % vl == 0;
}

static void emit_row(const matmul_state *s, cg_expr *e) {
  int64_t run = mm_run_of_columns(e->data);
  ir_buf *out = e->out;
  if (always_full(s, run)) {
    ir_buf_puts(out, "    for (int64_t at = 0; at < cols; at += VL) {\n"
                     "      const int64_t column = n + at;\n");
    mm_emit_indices(e, s->sides.first_col, s->sides.num_cols, "column");
    emit_vector(e, NULL);
    ir_buf_puts(out, "    }\n");
    return;
  }
  ir_buf_puts(out, "    for (int64_t at = 0, lanes; at < cols; at += lanes) {\n"
                   "      const int64_t column = n + at;\n"
                   "      lanes = cols - at < VL ? cols - at : VL;\n"
                   "      (void)column;\n");
  mm_emit_indices(e, s->sides.first_col, s->sides.num_cols, "column");
  if (s->sides.num_cols > 0 && run < s->problem.n) {
    const char *last = mm_index(e->data, s->sides.first_col + s->sides.num_cols - 1);
    ir_buf_printf(out, "      lanes = %lld - %s < lanes ? %lld - %s : lanes;\n", (long long)run,
                  last, (long long)run, last);
  }
  e->indent += 2;
  ir_buf_puts(out, "      if (lanes == VL) {\n");
  emit_vector(e, NULL);
  ir_buf_puts(out, "      } else {\n");
  emit_vector(e, "(int)lanes");
  ir_buf_puts(out, "      }\n    }\n");
}

static void emit_finish(const mm_problem *p, void *data, const char *name, ir_buf *out) {
  const matmul_state *s = data;
  static const char *const taken[] = {"tile",  "pitch", "batch", "m",      "rows",
                                      "n",     "cols",  "i",     "at",     "sums",
                                      "lanes", "item",  "line",  "column", "product"};
  mm_scope scope = {.kernel = s->kernel, .sides = &s->sides};
  cg_expr e = mm_expr(&scope, out, 2, taken, sizeof taken / sizeof *taken);
  ir_buf_printf(
      out,
      "// What happens to finished sums: rows [m, m + rows), columns [n, n + cols).\n"
      "static void %s_finish(char *const *args, const %s *tile, int64_t pitch, int64_t batch,\n"
      "    int64_t m, int64_t rows, int64_t n, int64_t cols) {\n",
      name, p->ctype);
  cg_emit_args(s->kernel, out, 2);
  ir_buf_puts(out, "  (void)batch, (void)n;\n");
  mm_emit_indices(&e, 0, s->sides.mm->num_batch_axes, "batch");
  ir_buf_printf(out,
                "  for (int64_t i = 0; i < rows; i++) {\n"
                "    const %s *const sums = tile + i * pitch;\n"
                "    const int64_t line = m + i;\n"
                "    (void)line;\n",
                p->ctype);
  e.indent = 4;
  mm_emit_indices(&e, s->sides.first_row, s->sides.num_rows, "line");
  e.indent = 6;
  emit_row(s, &e);
  ir_buf_puts(out, "  }\n}\n\n");
}

// --- fetching ahead ------------------------------------------------------------------------------
// Rows of a tile are far apart in memory, a few lines each: no hardware prefetcher follows that,
// and an epilogue with several operands would wait for each line. So the lines are asked for before
// the tile's sums.
static bool worth_fetching(const matmul_state *s, const dom_access *x) {
  if (s->sides.num_cols != 1 || s->sides.num_rows == 0 || x->stride[s->sides.first_col] != 1)
    return false;
  for (int i = 0; i < s->sides.num_rows; i++)
    if (x->stride[s->sides.first_row + i] == 0)
      return false;
  return true;
}

// What a tile's epilogue touches of a buffer.
typedef struct fetch {
  const ir_node *buffer;
  const dom_access *at;
  bool write;
} fetch;

// Returns how many buffers it asks for: 1, or 0 where it is none or not worth it.
static int put_fetch(const mm_scope *x, const fetch *f, int64_t cols, ir_buf *out) {
  enum { LINE = 64 };
  const matmul_state *s = x->kernel->schedule;
  int arg = cg_arg_index(s->kernel, f->buffer), elem_bytes = ir_dtypes[f->buffer->type.dtype].bytes;
  if (arg < 0 || !worth_fetching(s, f->at))
    return 0;
  for (int64_t at = 0; at < cols * elem_bytes; at += LINE) {
    ir_buf_printf(out, "    __builtin_prefetch(%s + %lld", cg_arg_name(s->kernel, arg),
                  (long long)(f->at->offset - cg_begin(s->kernel, arg) + at / elem_bytes));
    for (int i = 0; i < s->kernel->dom->num_axes; i++)
      if (f->at->stride[i] && strcmp(mm_index(x, i), "0") != 0)
        ir_buf_printf(out, " + %s * %lld", mm_index(x, i), (long long)f->at->stride[i]);
    ir_buf_printf(out, ", %d);\n", f->write);
  }
  return 1;
}

static int put_fetches(const mm_scope *x, int64_t cols, ir_buf *out) {
  const domain *d = x->kernel->dom;
  int num = 0;
  for (size_t i = 0; i < d->loads.num; i++)
    num += put_fetch(x, &(fetch){d->loads.at[i].buffer, &d->loads.at[i].access, false}, cols, out);
  for (size_t i = 0; i < d->stores.num; i++)
    num += put_fetch(x, &(fetch){d->stores.at[i].buffer, &d->stores.at[i].access, true}, cols, out);
  return num;
}

static bool emit_fetch(const mm_problem *p, void *data, const char *name, int64_t cols,
                       ir_buf *out) {
  const matmul_state *s = data;
  mm_scope scope = {.kernel = s->kernel, .sides = &s->sides};
  ir_buf body = ir_buf_new(p->arena);
  if (put_fetches(&scope, cols, &body) == 0)
    return false;
  ir_buf_printf(out,
                "// Asks for the memory that the finish of these rows and columns will touch.\n"
                "static void %s_fetch(char *const *args, int64_t batch, int64_t m, int64_t rows, "
                "int64_t n) {\n",
                name);
  cg_emit_args(s->kernel, out, 2);
  cg_expr e = {.k = s->kernel, .out = out, .indent = 2, .data = &scope};
  ir_buf_puts(out, "  (void)batch;\n");
  mm_emit_indices(&e, 0, s->sides.mm->num_batch_axes, "batch");
  mm_emit_indices(&e, s->sides.first_col, s->sides.num_cols, "n");
  ir_buf_puts(out, "  for (int64_t line = m; line < m + rows; line++) {\n");
  e.indent = 4;
  mm_emit_indices(&e, s->sides.first_row, s->sides.num_rows, "line");
  ir_buf_puts(out, ir_buf_str(&body));
  ir_buf_puts(out, "  }\n}\n\n");
  return true;
}

// --- bytes that tasks touch ----------------------------------------------------------------------
// Rows (of all batch items, one after the other) and columns of a share of the tasks of the phase
// that computes.
typedef struct share {
  int64_t row, row_end, col, col_end;
} share;

// One side of the task grid: so many groups of its tiles, for each item of a batch.
typedef struct grid_side {
  int64_t groups, tiles, tile, size;
} grid_side;

// Where a group begins; that of the next item where there are no more.
static int64_t group_at(const grid_side *s, int64_t group) {
  int64_t at = group % s->groups * s->tiles / s->groups * s->tile;
  return group / s->groups * s->size + (at < s->size ? at : s->size);
}

// Tasks go along the inner side, then to the next group of the outer one. Some of more than one such line: all
// that these have.
static share share_of(const matmul_state *s, int64_t begin, int64_t end) {
  const mm_plan *g = &s->plan;
  const mm_problem *p = &s->problem;
  grid_side rows = {g->group_rows, g->row_tiles, g->mr, p->m};
  grid_side cols = {g->group_cols, g->col_tiles, g->nr, p->n};
  const grid_side *outer = g->by_columns ? &cols : &rows, *inner = g->by_columns ? &rows : &cols;
  int64_t pieces = g->split_k ? g->k_blocks : 1;
  int64_t unit = begin / pieces, unit_end = ir_ceil_div(end, pieces);
  int64_t line = unit / inner->groups, line_end = ir_ceil_div(unit_end, inner->groups);
  int64_t out = group_at(outer, line), out_end = group_at(outer, line_end);
  int64_t in = 0, in_end = inner->size;
  if (line_end - line == 1) {
    in = group_at(inner, unit - line * inner->groups);
    in_end = group_at(inner, unit_end - line * inner->groups);
  }
  return g->by_columns ? (share){in, in_end, out, out_end} : (share){out, out_end, in, in_end};
}

static void add_axes(cg_walk *w, const mm_axes *axes) {
  for (int i = 0; i < axes->num; i++)
    cg_walk_add(w, axes->size[i], axes->stride[i]);
}

// An operand: a share [first, end) of its rows or columns, all of k.
static cg_bytes operand_bytes(const matmul_state *s, const mm_operand *o, int64_t first,
                              int64_t end) {
  if (first >= end || s->problem.k == 0)
    return (cg_bytes){0, 0};
  cg_walk x = {0}, k = {0};
  add_axes(&x, &o->batch);
  add_axes(&x, &o->x);
  add_axes(&k, &o->k);
  int64_t least = o->offset, most = o->offset;
  cg_walk_reach(&x, first, end, &least, &most);
  cg_walk_reach(&k, 0, s->problem.k, &least, &most);
  int64_t second = o->odd ? 0 : o->apart; // the last pair's
  return (cg_bytes){least * o->elem_bytes, (most + second + 1) * o->elem_bytes};
}

// Columns of b: of one batch item, or all of several.
static cg_bytes b_bytes(const matmul_state *s, const share *x) {
  int64_t n = s->problem.n, item = x->row / s->problem.m, last = (x->row_end - 1) / s->problem.m;
  if (item != last)
    return operand_bytes(s, &s->problem.b, item * n, (last + 1) * n);
  return operand_bytes(s, &s->problem.b, item * n + x->col, item * n + x->col_end);
}

static cg_bytes finish_bytes(const matmul_state *s, const dom_access *at, const share *x,
                             int elem_bytes) {
  const dom_axis *axis = s->kernel->dom->axis;
  cg_walk rows = {0}, cols = {0};
  for (int i = 0; i < s->sides.mm->num_batch_axes; i++)
    cg_walk_add(&rows, axis[i].size, at->stride[i]);
  for (int i = s->sides.first_row; i < s->sides.first_row + s->sides.num_rows; i++)
    cg_walk_add(&rows, axis[i].size, at->stride[i]);
  for (int i = s->sides.first_col; i < s->sides.first_col + s->sides.num_cols; i++)
    cg_walk_add(&cols, axis[i].size, at->stride[i]);
  int64_t least = at->offset, most = at->offset;
  cg_walk_reach(&rows, x->row, x->row_end, &least, &most);
  cg_walk_reach(&cols, x->col, x->col_end, &least, &most);
  return (cg_bytes){least * elem_bytes, (most + 1) * elem_bytes};
}

static cg_bytes epilogue_bytes(const matmul_state *s, int arg, const share *x) {
  const cg_kernel *k = s->kernel;
  cg_bytes touched = {0, 0}, all = {0, cg_arg_bytes(k, arg)};
  for (size_t i = 0; i < k->dom->loads.num; i++) {
    const dom_load *l = &k->dom->loads.at[i];
    if (l->operand < 0 || l->user == k->k->anchor || cg_arg_index(k, l->buffer) != arg)
      continue;
    if (l->user->op == IR_GATHER && l->operand == 0)
      return all;
    touched =
        cg_join(touched, finish_bytes(s, &l->access, x, ir_dtypes[l->buffer->type.dtype].bytes));
  }
  for (size_t i = 0; i < k->dom->stores.num; i++) {
    const dom_store *o = &k->dom->stores.at[i];
    if (cg_arg_index(k, o->buffer) == arg)
      touched =
          cg_join(touched, finish_bytes(s, &o->access, x, ir_dtypes[o->buffer->type.dtype].bytes));
  }
  return touched;
}

cg_bytes cpu_matmul_touches(const cg_kernel *k, int phase, int arg, int64_t begin, int64_t end) {
  const matmul_state *s = k->schedule;
  const mm_problem *p = &s->problem;
  const mm_plan *g = &s->plan;
  cg_bytes all = {0, cg_arg_bytes(k, arg)}, touched = {0, 0};
  bool packs = g->a == MM_SHARED || g->b == MM_SHARED;
  if (arg == p->workspace_arg)
    return all;
  if (packs && phase == 0) {
    bool packed = (arg == p->a.arg && g->a == MM_SHARED) || (arg == p->b.arg && g->b == MM_SHARED);
    return packed ? all : touched;
  }
  if (p->batch == 0 || p->m == 0 || p->n == 0 || phase > packs) // adding up pieces of k: by tiles
    return all;
  if (g->patch_within) // rows of which not all groups have as many
    return all;
  share x = share_of(s, begin, end);
  if (x.row >= x.row_end || x.col >= x.col_end)
    return touched;
  if (arg == p->a.arg && g->a != MM_SHARED)
    touched = operand_bytes(s, &p->a, x.row, x.row_end);
  if (arg == p->b.arg && g->b != MM_SHARED)
    touched = cg_join(touched, b_bytes(s, &x));
  return g->split_k ? touched : cg_join(touched, epilogue_bytes(s, arg, &x));
}

// --- the plan, once for equal problems ----------------------------------------------------------
static void take_better(mm_plan *plan, double *cycles, const mm_plan *other, double others) {
  if (others >= *cycles)
    return;
  *plan = *other;
  *cycles = others;
}

// Lists of elements that must be converted take tiles so many times what mm_plan_cycles says: measured, of digits, from as
// long to twice as long, and of bags of words four times.
static const double CONVERTED_LATE = 1.7;

// Fewer multiplications, of 3 x 3 windows. The sums have other bits, which may not depend on what else a kernel does
// (program_hash.c): what decides knows of the product only.
static bool choose_winograd(const mm_problem *p, mm_plan *plan) {
  mm_problem alone = *p;
  mm_plan direct;
  double cycles = mm_suits_winograd(p)           ? mm_plan_winograd(p, plan)
                  : mm_suits_winograd_weights(p) ? mm_plan_winograd_weights(p, plan)
                                                 : -1;
  if (cycles < 0)
    return false;
  alone.plain = alone.updates = false;
  mm_make_plan(&alone, &direct);
  return cycles < mm_plan_cycles(&alone, &direct);
}

// Of vectors, which may take pairs; or of a matrix unit, which takes the problem as it is, if that is faster.
// (Beside such a unit an instruction for pairs takes two cycles of an FMA's.)
static void choose_plan(const mm_problem *p, mm_plan *plan) {
  mm_problem pairs = *p;
  mm_plan other;
  if (choose_winograd(p, plan))
    return;
  mm_consider_pairs(&pairs);
  mm_make_plan(&pairs, plan);
  double cycles = mm_plan_cycles(&pairs, plan) * (pairs.pairs ? 2 : 1);
  if (mm_suits_amx(p))
    take_better(plan, &cycles, &other, mm_plan_amx(p, &other));
  if (mm_suits_single(p))
    take_better(plan, &cycles, &other, mm_plan_single(p, &other));
  if (mm_suits_outer(p)) {
    cycles *= plan->lists && p->a.convert ? CONVERTED_LATE : 1;
    take_better(plan, &cycles, &other, mm_plan_outer(p, &other));
  }
}

static void plan_once(cg_memo *memo, const mm_problem *p, mm_plan *plan) {
  const char *key = mm_key(p);
  if (cg_recall(memo, key, plan, sizeof *plan))
    return;
  choose_plan(p, plan);
  cg_remember(memo, key, plan, sizeof *plan);
}

// --- the family's two functions -----------------------------------------------------------------
void cpu_matmul_schedule(cg_kernel *k) {
  matmul_state *s = IR_NEW(k->arena, matmul_state);
  s->kernel = k;
  s->problem = mm_describe(k, &s->sides);
  s->problem.emit_finish = emit_finish;
  s->problem.emit_fetch = emit_fetch;
  s->problem.data = s;
  consider_plain(s);
  s->problem.updates = updates_a_parameter(k);
  if (k->target->memo)
    plan_once(k->target->memo, &s->problem, &s->plan);
  else
    choose_plan(&s->problem, &s->plan);
  if (!s->plan.amx)
    mm_consider_pairs(&s->problem);
  k->num_phases = s->plan.num_phases;
  memcpy(k->tasks, s->plan.tasks, sizeof k->tasks);
  k->workspace = s->plan.workspace;
  k->keeps = mm_remembers(&s->plan) || mm_joins_tasks(&s->plan);
  k->schedule = s;
  mm_set_begins(k, &s->problem);
}

void cpu_matmul_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const matmul_state *s = k->schedule;
  mm_emit(&s->problem, &s->plan, name, out);
}
