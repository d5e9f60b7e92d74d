// cuda_scatter.c: SCATTER kernels for GPUs: table[index[i]] += update[i] over all i in order.
//
//   phase 0   clears the table
//   phase 1   block i owns the row of index[i], if no earlier i names it: it walks the indices from
//   i
//             on, and adds the updates of that row, a thread per column
//
// Two designs: sort positions by row and sum segments; or let the first occurrence of a row own it,
// as here. Sorting is n log n, this is n * n comparisons; but a comparison is a hundredth of an
// addition of rows, blocks that are not first end after a short look, tiles of indices without a
// hit cost one load and one barrier, and there is no workspace and no order to restore: sums run in
// index order, to the bit as on the CPU. For up to some 100,000 indices that is less than what
// moving the updates costs.
#include "codegen/cuda_element.h"

enum { CLEAR_THREADS = 256, WARP = 32, MOST_THREADS = 256 };

typedef struct scatter_plan {
  int64_t table_rows, columns, indices;
  int64_t parts; // blocks side by side that share the columns of a row
  int threads;
} scatter_plan;

static int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

void cuda_scatter_schedule(cg_kernel *k) {
  const ir_node *n = k->k->anchor;
  scatter_plan *p = IR_NEW(k->arena, scatter_plan);
  p->table_rows = n->type.dims[0];
  p->columns = p->table_rows ? ir_elements(&n->type) / p->table_rows : 0;
  p->indices = ir_elements(&n->in[0]->type);
  p->threads = WARP;
  while (p->threads < MOST_THREADS && p->threads < p->columns)
    p->threads *= 2;
  p->parts = p->columns > 0 ? ceil_div(p->columns, p->threads) : 1;
  int64_t table = ceil_div(ir_elements(&n->type), CLEAR_THREADS);
  k->num_phases = 2;
  k->tasks[0] = table > 0 ? table : 1;
  k->threads[0] = CLEAR_THREADS;
  k->tasks[1] = p->indices * p->parts > 0 ? p->indices * p->parts : 1;
  k->threads[1] = p->threads;
  k->schedule = p;
}

// --- text ------------------------------------------------------------------------------------
static void emit_clear(const cg_kernel *k, const char *name, ir_buf *out) {
  const ir_node *n = k->k->anchor;
  cuda_text t = {.k = k, .out = out, .indent = 2};
  const char *table = cg_arg_name(k, cg_arg_index(k, n));
  ir_buf_printf(out, "K_KERNEL(%s_0, %d, %zu) {\n", name, CLEAR_THREADS, k->in.num + k->out.num);
  cg_emit_args(k, out, 2);
  cuda_line(&t, "const int64_t unit = task * %d + threadIdx.x;", CLEAR_THREADS);
  cuda_line(&t, "if (unit < %lld)", (long long)ir_elements(&n->type));
  cuda_line(&t, "  k_put(%s + unit, (%s)0);", table, ir_dtypes[n->type.dtype].ctype);
  ir_buf_puts(out, "}\n\n");
}

// "row_at(i)": a function of the kernel, as indices may be seen through views.
static void emit_row_at(const cg_kernel *k, cuda_text *t) {
  const ir_node *n = k->k->anchor;
  const scatter_plan *p = k->schedule;
  const char *index[IR_MAX_RANK] = {0};
  cuda_line(t, "const auto row_at = [&](int64_t at) -> int64_t {");
  t->indent += 2;
  cuda_decode(t, "at", &n->in[0]->type, 0, index);
  cpu_element x = cpu_element_of(n->in[0]);
  cuda_line(t, "const int64_t row = (int64_t)%s;", cuda_element_text(k, &x, index));
  cuda_line(t, "return row < 0 ? 0 : row >= %lld ? %lld : row;", (long long)p->table_rows,
            (long long)p->table_rows - 1);
  t->indent -= 2;
  cuda_line(t, "};");
}

static void emit_update_at(const cg_kernel *k, cuda_text *t) {
  const ir_node *n = k->k->anchor, *update = n->in[1];
  const ir_type *type = &update->type;
  int lead = n->in[0]->type.rank;
  const char *index[IR_MAX_RANK] = {0};
  cuda_line(t, "const auto update_at = [&](int64_t at, int64_t column) {");
  t->indent += 2;
  ir_type leading = *type;
  leading.rank = lead;
  cuda_decode(t, "at", &leading, 0, index);
  cuda_decode(t, "column", type, lead, index);
  cpu_element x = cpu_element_of(update);
  cuda_line(t, "return %s;", cuda_element_text(k, &x, index));
  t->indent -= 2;
  cuda_line(t, "};");
}

// All threads take part in barriers: those without a column only look for rows.
static void emit_sum(const cg_kernel *k, const char *name, ir_buf *out) {
  const ir_node *n = k->k->anchor;
  const scatter_plan *p = k->schedule;
  cuda_text t = {.k = k, .out = out, .indent = 2};
  const char *ctype = ir_dtypes[n->type.dtype].ctype;
  long long indices = (long long)p->indices, columns = (long long)p->columns;
  ir_buf_printf(out, "K_KERNEL(%s_1, %d, %zu) {\n", name, p->threads, k->in.num + k->out.num);
  cg_emit_args(k, out, 2);
  cuda_line(&t, "__shared__ k_array<int, %d> same;", p->threads);
  emit_row_at(k, &t);
  emit_update_at(k, &t);
  cuda_line(&t, "const int64_t first = task / %lld;", (long long)p->parts);
  cuda_line(&t, "const int64_t column = task %% %lld * %d + threadIdx.x;", (long long)p->parts,
            p->threads);
  cuda_line(&t, "const int64_t row = row_at(first);");
  cuda_line(&t, "for (int64_t tile = 0; tile < first; tile += %d) {", p->threads);
  cuda_line(&t, "  const int64_t at = tile + threadIdx.x;");
  cuda_line(&t, "  if (k_any_thread<%d>(at < first && row_at(at) == row))", p->threads);
  cuda_line(&t, "    return; // an earlier block has this row");
  cuda_line(&t, "}");
  cuda_line(&t, "%s sum = 0;", ctype);
  cuda_line(&t, "for (int64_t tile = first; tile < %lld; tile += %d) {", indices, p->threads);
  cuda_line(&t, "  const int64_t at = tile + threadIdx.x;");
  cuda_line(&t, "  const bool hit = at < %lld && row_at(at) == row;", indices);
  cuda_line(&t, "  if (!k_any_thread<%d>(hit))", p->threads);
  cuda_line(&t, "    continue;");
  cuda_line(&t, "  same[threadIdx.x] = hit;");
  cuda_line(&t, "  __syncthreads();");
  cuda_line(&t, "  for (int i = 0; i < %d && column < %lld; i++)", p->threads, columns);
  cuda_line(&t, "    if (same[i])");
  cuda_line(&t, "      sum += update_at(tile + i, column);");
  cuda_line(&t, "  __syncthreads();");
  cuda_line(&t, "}");
  cuda_line(&t, "if (column < %lld)", columns);
  cuda_line(&t, "  k_put(%s + row * %lld + column, sum);", cg_arg_name(k, cg_arg_index(k, n)),
            columns);
  ir_buf_puts(out, "}\n");
}

void cuda_scatter_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const scatter_plan *p = k->schedule;
  emit_clear(k, name, out);
  if (p->indices > 0 && p->columns > 0) {
    emit_sum(k, name, out);
    return;
  }
  ir_buf_printf(out, "K_KERNEL(%s_1, %d, %zu) {\n  (void)task, (void)args;\n}\n", name, p->threads,
                k->in.num + k->out.num);
}
