// cuda_scatter.c: SCATTER kernels for GPUs: table[index[i]] += update[i] over all i; or the larger of both.
//
//   phase 0   clears the table; of a row update (ir/row_update.h), nothing. A block more sorts, if it has all indices
//   phase 1   few indices: block i owns the row of index[i], if no earlier i names it: it walks the
//             indices from i on, and adds the updates of that row, a thread per column
//   phase 1.. many indices: sorted, then summed in pieces (cuda_scatter_sort.c)
//
// cuda_scatter.h has the two ways side by side.
#include "codegen/cuda_scatter.h"

// --- decisions -------------------------------------------------------------------------------
// The tensor whose rows are added, and how many of its dimensions choose one.
static const ir_node *updates_of(const ir_kernel *k, int *lead) {
  const ir_node *gather = ir_fetched_update(k);
  *lead = gather ? 1 : k->anchor->in[0]->type.rank;
  return gather ? gather->in[0] : k->anchor->in[1];
}

// Vectors of updates lie side by side in memory, and no row begins inside one.
static bool goes_by_vectors(const ir_kernel *k, int64_t columns) {
  int lead;
  const ir_node *update = updates_of(k, &lead);
  cpu_element x = cpu_element_of(update);
  int64_t step;
  return columns % SCATTER_LANES == 0 && !ir_is_generated(x.base) &&
         cpu_is_as_one(&x, lead, update->type.rank, &step) && step == 1;
}

static void schedule_sort(cg_kernel *k, const cuda_scatter *p) {
  for (int i = 0; i < p->sort_launches; i++) {
    k->tasks[k->num_phases] = p->chunks;
    k->threads[k->num_phases++] = SCATTER_SORT_THREADS;
  }
  k->tasks[k->num_phases] = ir_ceil_div(p->pieces * p->sum_parts, p->sum_threads / p->group);
  k->threads[k->num_phases++] = p->sum_threads;
  k->tasks[k->num_phases] = p->pieces * p->join_parts;
  k->threads[k->num_phases++] = SCATTER_JOIN_THREADS;
  k->workspace = p->workspace;
}

void cuda_scatter_schedule(cg_kernel *k) {
  const ir_node *n = k->k->anchor;
  cuda_scatter *p = IR_NEW(k->arena, cuda_scatter);
  p->table_rows = n->type.dims[0];
  p->columns = ir_elements(&n->type) / p->table_rows;
  p->indices = ir_elements(&n->in[0]->type);
  bool named_only = ir_is_row_update(k->k) && p->indices < p->table_rows;
  p->stored_rows = named_only ? p->indices : p->table_rows;
  p->element_bytes = ir_dtypes[n->type.dtype].bytes;
  p->wide = goes_by_vectors(k->k, p->columns);
  cuda_scatter_plan(p, k->target->cuda);
  k->num_phases = 1;
  k->tasks[0] = ir_ceil_div(ir_elements(&n->type), SCATTER_CLEAR_THREADS * SCATTER_LANES);
  if (ir_is_row_update(k->k) && k->tasks[0] > k->target->cuda->sms)
    k->tasks[0] = k->target->cuda->sms;
  k->tasks[0] += p->sort && p->alone;
  k->threads[0] = SCATTER_CLEAR_THREADS;
  k->schedule = p;
  if (p->sort) {
    schedule_sort(k, p);
    return;
  }
  k->tasks[k->num_phases] = p->indices * p->walk_parts;
  k->threads[k->num_phases++] = p->walk_threads;
}

// --- text ------------------------------------------------------------------------------------
const char *cuda_scatter_start(const cg_kernel *k, bool vectors) {
  const ir_node *n = k->k->anchor;
  double start = ir_start_value(n->op, n->type.dtype);
  return (vectors ? cpu_constant : cpu_literal)(k->arena, n->type.dtype, start);
}

const char *cuda_scatter_step(const cg_kernel *k, bool vectors, const char *sum, const char *x) {
  if (k->k->anchor->op == IR_SCATTER_ADD)
    return ir_format(k->arena, "%s + %s", sum, x);
  const char *one = ir_format(k->arena, "k_max_one<%s>", ir_dtypes[k->k->anchor->type.dtype].ctype);
  return ir_format(k->arena, "%s(%s, %s)", vectors ? "k_max" : one, sum, x);
}

void cuda_scatter_open(cuda_text *t, const char *name, int phase, int threads) {
  const cg_kernel *k = t->k;
  ir_buf_printf(t->out, "%sK_KERNEL(%s_%d, %d, %zu) {\n", phase ? "\n" : "", name, phase, threads,
                k->in.num + k->out.num + (k->workspace > 0));
  cg_emit_args(k, t->out, t->indent);
}

static const char *table_name(const cg_kernel *k) {
  return cg_arg_name(k, cg_arg_index(k, k->k->anchor));
}

// A row update leaves other rows alone: nothing to do but where the outputs have places of their
// own. A fixed number of blocks, so that looking costs the same for any table.
static void put_copies(cuda_text *t, const char *block, int64_t blocks) {
  const cg_kernel *k = t->k;
  for (size_t i = 0; i < k->out.num; i++) {
    const char *to = cg_arg_name(k, (int)(k->in.num + i));
    const char *from = cg_arg_name(k, row_update_base(k, i));
    cuda_line(t, "for (int64_t j = %s * %d + threadIdx.x; %s != %s && j < %lld; j += %lld)", block,
              SCATTER_CLEAR_THREADS, to, from, (long long)ir_elements(&k->out.at[i]->type),
              (long long)blocks * SCATTER_CLEAR_THREADS);
    cuda_line(t, "  k_put(%s + j, k_take(%s + j));", to, from);
  }
}

static void put_clear(cuda_text *t, const char *block) {
  const ir_node *n = t->k->k->anchor;
  ir_dtype type = n->type.dtype;
  long long elements = (long long)ir_elements(&n->type);
  const char *table = table_name(t->k), *start = cuda_scatter_start(t->k, true);
  cuda_line(t, "const int64_t j = (%s * %d + threadIdx.x) * VL;", block, SCATTER_CLEAR_THREADS);
  cuda_line(t, "if (j + VL <= %lld)", elements);
  cuda_line(t, "  k_store_%s(%s + j, %s);", ir_dtypes[type].name, table, start);
  if (elements % SCATTER_LANES) {
    cuda_line(t, "else if (j < %lld)", elements);
    cuda_line(t, "  k_store_%s_part(%s + j, %s, (int)(%lld - j));", ir_dtypes[type].name, table,
              start, elements);
  }
}

// Sorting has nothing to do with the table, and needs no launch of its own where it is one block's work.
static void emit_begin(cuda_text *t, const char *name) {
  const cg_kernel *k = t->k;
  const cuda_scatter *p = k->schedule;
  bool sorts = p->sort && p->alone;
  const char *block = sorts ? "(task - 1)" : "task";
  cuda_scatter_open(t, name, 0, SCATTER_CLEAR_THREADS);
  if (sorts) {
    cuda_line(t, "if (task == 0) {");
    t->indent += 2;
    cuda_scatter_put_sort(t);
    cuda_line(t, "return;");
    t->indent -= 2;
    cuda_line(t, "}");
  }
  if (ir_is_row_update(k->k))
    put_copies(t, block, k->tasks[0] - sorts);
  else
    put_clear(t, block);
  ir_buf_puts(t->out, "}\n");
}

// Indices of dimensions [first, end) of x from their number `flat`; without divisions where they
// are walked as one: then it stands for the last of them.
static void place(cuda_text *t, const char *flat, cpu_element *x, int first, int end,
                  const char **index) {
  int64_t step;
  if (end > first && cpu_is_as_one(x, first, end, &step)) {
    x->stride[end - 1] = step;
    index[end - 1] = flat;
    return;
  }
  ir_type type = x->seen->type;
  type.rank = end;
  cuda_decode(t, flat, &type, first, index);
}

// "const auto NAME = [&](int64_t at) -> int64_t { ... };": the row, of so many, that number `at` of `indices` names.
static void put_row_at(cuda_text *t, const char *name, const ir_node *indices, int64_t of) {
  long long rows = (long long)of;
  const char *index[IR_MAX_RANK] = {0};
  cpu_element x = cpu_element_of(indices);
  cuda_line(t, "const auto %s = [&](int64_t at) -> int64_t {", name);
  t->indent += 2;
  place(t, "at", &x, 0, indices->type.rank, index);
  cuda_line(t, "const int64_t row = (int64_t)%s;", cuda_element_text(t->k, &x, index));
  cuda_line(t, "return row < 0 ? 0 : row >= %lld ? %lld : row;", rows, rows - 1);
  t->indent -= 2;
  cuda_line(t, "};");
}

void cuda_scatter_put_row_at(cuda_text *t) {
  const ir_node *n = t->k->k->anchor;
  put_row_at(t, "row_at", n->in[0], n->type.dims[0]);
}

static const char *update_text(const cg_kernel *k, const cpu_element *x, const char *const *index) {
  const cuda_scatter *p = k->schedule;
  if (!p->wide || !p->sort)
    return cuda_element_text(k, x, index);
  return ir_format(k->arena, "k_load_%s(%s + %s)", ir_dtypes[x->base->type.dtype].name,
                   cg_arg_name(k, cg_arg_index(k, x->base)),
                   cpu_affine(k->arena, x->seen->type.rank, index, x->stride, x->offset));
}

void cuda_scatter_put_update_at(cuda_text *t) {
  const ir_node *gather = ir_fetched_update(t->k->k);
  int lead;
  const ir_node *update = updates_of(t->k->k, &lead);
  const char *index[IR_MAX_RANK] = {0};
  cpu_element x = cpu_element_of(update);
  if (gather)
    put_row_at(t, "source_of", gather->in[1], update->type.dims[0]);
  cuda_line(t, "const auto update_at = [&](int64_t at, int64_t column) {");
  t->indent += 2;
  if (gather)
    index[0] = "source_of(at)";
  else
    place(t, "at", &x, 0, lead, index);
  place(t, "column", &x, lead, update->type.rank, index);
  cuda_line(t, "return %s;", update_text(t->k, &x, index));
  t->indent -= 2;
  cuda_line(t, "};");
}

void cuda_scatter_put_row(cuda_text *t, bool vectors, const char *lanes) {
  const cg_kernel *k = t->k;
  const char *dtype = ir_dtypes[k->k->anchor->type.dtype].name;
  if (ir_is_row_update(k->k)) {
    const char *sum = vectors ? "sum" : ir_format(k->arena, "k_splat_%s(sum)", dtype);
    row_update_emit(k, t->out, t->indent, sum, vectors, lanes);
    return;
  }
  const cuda_scatter *p = k->schedule;
  const char *put =
      !vectors ? "k_put" : ir_format(k->arena, "k_store_%s%s", dtype, lanes ? "_part" : "");
  cuda_line(t, "%s(%s + row * %lld + column, sum%s);", put, table_name(k), (long long)p->columns,
            lanes ? ir_format(k->arena, ", %s", lanes) : "");
}

// All threads take part in barriers: those without a column only look for rows.
static void emit_walk(cuda_text *t, const char *name) {
  const ir_node *n = t->k->k->anchor;
  const cuda_scatter *p = t->k->schedule;
  const int threads = p->walk_threads;
  long long indices = (long long)p->indices, columns = (long long)p->columns;
  cuda_scatter_open(t, name, 1, threads);
  cuda_line(t, "__shared__ k_array<int, %d> same;", threads);
  cuda_scatter_put_row_at(t);
  cuda_scatter_put_update_at(t);
  cuda_line(t, "const int64_t first = task / %lld;", (long long)p->walk_parts);
  cuda_line(t, "const int64_t column = task %% %lld * %d + threadIdx.x;", (long long)p->walk_parts,
            threads);
  cuda_line(t, "const int64_t row = row_at(first);");
  cuda_line(t, "for (int64_t tile = 0; tile < first; tile += %d) {", threads);
  cuda_line(t, "  const int64_t at = tile + threadIdx.x;");
  cuda_line(t, "  if (k_any_thread<%d>(at < first && row_at(at) == row))", threads);
  cuda_line(t, "    return; // an earlier block has this row");
  cuda_line(t, "}");
  cuda_line(t, "%s sum = %s;", ir_dtypes[n->type.dtype].ctype, cuda_scatter_start(t->k, false));
  cuda_line(t, "for (int64_t tile = first; tile < %lld; tile += %d) {", indices, threads);
  cuda_line(t, "  const int64_t at = tile + threadIdx.x;");
  cuda_line(t, "  const bool hit = at < %lld && row_at(at) == row;", indices);
  cuda_line(t, "  if (!k_any_thread<%d>(hit))", threads);
  cuda_line(t, "    continue;");
  cuda_line(t, "  same[threadIdx.x] = hit;");
  cuda_line(t, "  __syncthreads();");
  cuda_line(t, "  for (int i = 0; i < %d && column < %lld; i++)", threads, columns);
  cuda_line(t, "    if (same[i])");
  cuda_line(t, "      sum = %s;",
            cuda_scatter_step(t->k, false, "sum", "update_at(tile + i, column)"));
  cuda_line(t, "  __syncthreads();");
  cuda_line(t, "}");
  cuda_line(t, "if (column < %lld) {", columns);
  t->indent += 2;
  cuda_scatter_put_row(t, false, NULL);
  t->indent -= 2;
  cuda_line(t, "}");
  ir_buf_puts(t->out, "}\n");
}

void cuda_scatter_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const cuda_scatter *p = k->schedule;
  cuda_text t = {.k = k, .out = out, .indent = 2};
  emit_begin(&t, name);
  if (p->sort)
    cuda_scatter_emit_sorted(&t, name);
  else
    emit_walk(&t, name);
}
