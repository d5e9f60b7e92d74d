// cpu_row_update.c: row updates: SCATTER kernels that go on to compute with the sums of rows
// (ir/row_update.h), and touch no other rows.
//
//   scatter_add index[512], update[512,16] -> [1000000,16]; mul; sub
//     each task owns rows of the table. It lists the positions of the indices that name them,
//     as row << 9 | position, sorts the list, and walks it: the updates of a row side by side
//     are summed in registers, in index order, and what is computed from the sum is stored.
//
// The work is that of the indices, whatever the size of the table. Lists of few indices are on the stack of each thread:
// so updates of several tables, of a task each, run side by side. Others share a workspace, in which the lists of all
// tasks together hold each index once: a task's begins behind those of tasks before it, which it counts. The list is
// made without a branch: whether a row is the task's own is a guess, which a processor gets wrong for every other index.
//
// A candidate considered and left: adding to the table in place, without sorting. It rounds once
// per update instead of once per row, and small updates of a row that is named often get lost.
#include "codegen/cpu_element.h"
#include "codegen/row_update.h"

enum {
  MOST_TASKS = 8, // each reads all indices
  DIGIT_BITS = 8,
  STACK_BYTES = 32768, // of lists, at most
};

typedef struct row_plan {
  int64_t indices;
  cpu_rows own;
  int place_bits, passes; // of sorting
} row_plan;

void cpu_row_update_schedule(cg_kernel *k) {
  const ir_node *n = k->k->anchor;
  row_plan *p = IR_NEW(k->arena, row_plan);
  p->indices = ir_elements(&n->in[0]->type);
  p->place_bits = ir_bits_below(p->indices);
  p->own = cpu_rows_of(&n->type, cpu_move_tasks(ir_elements(&n->in[1]->type), MOST_TASKS));
  p->passes = (int)ir_ceil_div(ir_bits_below(p->own.rows), DIGIT_BITS);
  k->num_phases = 1;
  k->tasks[0] = p->own.tasks;
  int64_t lists = 2 * p->indices * (int64_t)sizeof(int64_t);
  k->workspace = lists <= STACK_BYTES ? 0 : lists;
  k->keeps = true; // each call reads all indices
  k->schedule = p;
}

// --- text --------------------------------------------------------------------------------------
static const row_plan *plan_of(const cg_expr *e) {
  return e->k->schedule;
}

static void put_copies(cg_expr *e) {
  for (size_t i = 0; i < e->k->out.num; i++) {
    const char *to = cg_arg_name(e->k, (int)(e->k->in.num + i));
    const char *from = cg_arg_name(e->k, row_update_base(e->k, i));
    cpu_line(e, "if (%s != %s)", to, from);
    int indent = cpu_rows_open(e->out, e->indent + 2, &plan_of(e)->own);
    cg_line(e->out, indent, "%s[i] = %s[i];", to, from);
  }
}

static void put_row_at(cg_expr *e) {
  const ir_node *n = e->k->k->anchor;
  const char *index[IR_MAX_RANK] = {0};
  cpu_element x = cpu_element_of(n->in[0]);
  cpu_element_at(e->k->arena, &x, n->in[0]->type.rank, index);
  cpu_line(e, "  const int64_t row = k_clamp_row((int64_t)%s, %lld);",
           cpu_element_text(e->k, &x, index), (long long)plan_of(e)->own.rows);
  cpu_line(e, "  const int64_t task = %s;", cpu_rows_task(e->k->arena, &plan_of(e)->own));
}

// Where the list begins in the workspace, and how many are on it.
static void put_place(cg_expr *e) {
  long long indices = (long long)plan_of(e)->indices;
  cpu_line(e, "int64_t *const lists = (int64_t *)args[%zu];", e->k->in.num + e->k->out.num);
  cpu_line(e, "int64_t before = 0, own = 0;");
  cpu_line(e, "for (int64_t at = 0; at < %lld; at++) {", indices);
  put_row_at(e);
  cpu_line(e, "  before += task < begin;");
  cpu_line(e, "  own += task < end;");
  cpu_line(e, "}");
  cpu_line(e, "own -= before;");
  cpu_line(e, "int64_t *const list = lists + before, *const spare = list + %lld;", indices);
}

static void put_list(cg_expr *e) {
  const row_plan *p = plan_of(e);
  long long indices = (long long)p->indices;
  if (e->k->workspace)
    put_place(e);
  else
    cpu_line(e, "int64_t list[%lld], spare[%lld];", indices, indices);
  cpu_line(e, "int64_t num = 0;");
  cpu_line(e, "for (int64_t at = 0; %s; at++) {",
           e->k->workspace ? "num < own" : ir_format(e->k->arena, "at < %lld", indices));
  put_row_at(e);
  cpu_line(e, "  list[num] = row << %d | at;", p->place_bits);
  cpu_line(e, "  num += task >= begin && task < end;");
  cpu_line(e, "}");
  cpu_line(e, "const int64_t *const sorted = k_sort_keys(list, spare, num, %d, %d);", p->place_bits,
           p->passes);
}

// The elements of one update from "column" on.
static const char *update_text(cg_expr *e, bool vectors, const char *lanes) {
  ir_arena *a = e->k->arena;
  const ir_node *n = e->k->k->anchor;
  int lead = n->in[0]->type.rank;
  const char *index[IR_MAX_RANK] = {0}, *type = ir_dtypes[n->type.dtype].name;
  cpu_element u = cpu_element_of(n->in[1]);
  cpu_element_at(a, &u, lead, index);
  if (vectors) {
    index[n->in[1]->type.rank - 1] = "column";
    u.stride[n->in[1]->type.rank - 1] = 1;
  }
  const char *at = cpu_affine(a, n->in[1]->type.rank, index, u.stride, u.offset);
  const char *from = ir_format(a, "%s + %s", cg_arg_name(e->k, cg_arg_index(e->k, u.base)), at);
  if (!vectors)
    return ir_format(a, "k_load_%s_one(%s)", type, from);
  return lanes ? ir_format(a, "k_load_%s_part(%s, %s)", type, from, lanes)
               : ir_format(a, "k_load_%s(%s)", type, from);
}

static void put_vector(cg_expr *e, bool vectors, const char *lanes) {
  ir_dtype type = e->k->k->anchor->type.dtype;
  cpu_line(e, "%s sum = %s;", cpu_register(type), cpu_constant(e->k->arena, type, 0));
  cpu_line(e, "for (int64_t j = i; j < next; j++) {");
  cpu_line(e, "  const int64_t at = sorted[j] & %lld;",
           ((long long)1 << plan_of(e)->place_bits) - 1);
  cpu_line(e, "  sum = sum + %s;", update_text(e, vectors, lanes));
  cpu_line(e, "}");
  row_update_emit(e->k, e->out, e->indent, "sum", vectors, lanes);
}

static void put_columns(cg_expr *e) {
  const row_plan *p = plan_of(e);
  int vl = e->k->target->vector_bytes / 4;
  int64_t whole = p->own.columns / vl * vl;
  if (p->own.columns == 1) {
    put_vector(e, false, NULL);
    return;
  }
  if (whole) {
    cpu_line(e, "for (int64_t column = 0; column < %lld; column += VL) {", (long long)whole);
    e->indent += 2;
    put_vector(e, true, NULL);
    e->indent -= 2;
    cpu_line(e, "}");
  }
  if (whole < p->own.columns) {
    cpu_line(e, "const int64_t column = %lld;", (long long)whole);
    put_vector(e, true, ir_format(e->k->arena, "%lld", (long long)(p->own.columns - whole)));
  }
}

static void put_rows(cg_expr *e) {
  int bits = plan_of(e)->place_bits;
  cpu_line(e, "for (int64_t i = 0, next; i < num; i = next) {");
  e->indent += 2;
  cpu_line(e, "const int64_t row = sorted[i] >> %d;", bits);
  cpu_line(e, "for (next = i + 1; next < num && sorted[next] >> %d == row; next++)", bits);
  cpu_line(e, "  ;");
  put_columns(e);
  e->indent -= 2;
  cpu_line(e, "}");
}

void cpu_row_update_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  cg_expr e = {.k = k, .out = out, .indent = 2};
  ir_buf_printf(out, "void %s_0(int64_t begin, int64_t end, char *const *args) {\n", name);
  cg_emit_args(k, out, 2);
  put_copies(&e);
  put_list(&e);
  put_rows(&e);
  ir_buf_puts(out, "}\n");
}
