// cpu_element.c: see cpu_element.h.
#include "codegen/cpu_element.h"

cpu_element cpu_element_of(const ir_node *n) {
  cpu_element x = {.seen = n};
  BUG_IF(!dom_view(n, &x.base, &x.offset, x.stride), "'%s' cannot be walked by strides", n->name);
  return x;
}

const char *cpu_affine(ir_arena *a, int rank, const char *const *index, const int64_t *stride,
                       int64_t offset) {
  ir_buf b = ir_buf_new(a);
  for (int i = 0; i < rank; i++) {
    if (!index[i] || stride[i] == 0)
      continue;
    ir_buf_printf(&b, "%s%s", b.len ? " + " : "", index[i]);
    if (stride[i] != 1)
      ir_buf_printf(&b, " * %lld", (long long)stride[i]);
  }
  if (offset != 0 || b.len == 0)
    ir_buf_printf(&b, "%s%lld",
                  b.len == 0   ? ""
                  : offset < 0 ? " - "
                               : " + ",
                  (long long)(b.len && offset < 0 ? -offset : offset));
  return ir_buf_str(&b);
}

const char *cpu_element_text(const cg_kernel *k, const cpu_element *x, const char *const *index) {
  ir_arena *a = k->arena;
  const ir_type *t = &x->base->type;
  if (x->base->op == IR_CONST)
    return cpu_literal(a, t->dtype, ir_attr_num(x->base, IR_ATTR_VALUE));
  const char *at = cpu_affine(a, x->seen->type.rank, index, x->stride, x->offset);
  if (x->base->op == IR_IOTA)
    return ir_format(a, "(%s)(%s)", ir_dtypes[t->dtype].ctype, at);
  int arg = cg_arg_index(k, x->base);
  BUG_IF(k->begin, "'%s' is walked from 0 in kernel '%s', which is not", x->base->name, k->k->name);
  BUG_IF(arg < 0, "'%s' is no argument of kernel '%s'", x->base->name, k->k->name);
  return ir_format(a, "%s[%s]", cg_arg_name(k, arg), at);
}

bool cpu_is_as_one(const cpu_element *x, int first, int end, int64_t *step) {
  const ir_type *t = &x->seen->type;
  int64_t next = 0;
  *step = 0;
  for (int i = end - 1; i >= first; i--) {
    if (t->dims[i] == 1)
      continue;
    if (next != 0 && x->stride[i] != next)
      return false;
    if (next == 0)
      *step = x->stride[i];
    next = x->stride[i] * t->dims[i];
    if (next == 0) // repeated: only a single dimension can be
      next = -1;
  }
  return true;
}

void cpu_element_at(ir_arena *a, cpu_element *x, int end, const char **index) {
  const ir_type *t = &x->seen->type;
  int64_t step, inner = 1;
  if (end > 0 && cpu_is_as_one(x, 0, end, &step)) {
    x->stride[end - 1] = step;
    index[end - 1] = "at";
    return;
  }
  for (int i = end - 1; i >= 0; i--) {
    if (t->dims[i] > 1)
      index[i] = ir_format(a, "(at / %lld %% %lld)", (long long)inner, (long long)t->dims[i]);
    inner *= t->dims[i];
  }
}

const char *cpu_share(ir_arena *a, const char *which, int64_t units, int64_t tasks) {
  if (units == tasks)
    return which;
  if (tasks == 1)
    return ir_format(a, "%s * %lld", which, (long long)units);
  return ir_format(a, "%s * %lld / %lld", which, (long long)units, (long long)tasks);
}

int64_t cpu_move_tasks(int64_t elements, int64_t units) {
  enum { MAX_TASKS = 64, ELEMENTS_PER_TASK = 8192 };
  int64_t tasks = elements / ELEMENTS_PER_TASK;
  tasks = tasks > MAX_TASKS ? MAX_TASKS : tasks;
  tasks = tasks > units ? units : tasks;
  return tasks < 1 ? 1 : tasks;
}

// What a processor fetches ahead is in the page that it reads, and in a small table at least in pairs of lines.
enum { PAGE_BYTES = 4096, LEAST_BYTES = 256 };

static int rows_shift(int64_t row_bytes, int64_t bytes) {
  int shift = 0;
  while (row_bytes && row_bytes << shift < bytes)
    shift++;
  return shift;
}

cpu_rows cpu_rows_of(const ir_type *table, int64_t most_tasks) {
  int64_t rows = table->dims[0], row_bytes = rows ? ir_bytes(table) / rows : 0;
  cpu_rows r = {.rows = rows, .columns = rows ? ir_elements(table) / rows : 0, .tasks = 1};
  r.shift = rows_shift(row_bytes, PAGE_BYTES);
  while (most_tasks << r.shift > rows && r.shift > rows_shift(row_bytes, LEAST_BYTES))
    r.shift--;
  while (r.tasks * 2 <= most_tasks && (r.tasks * 2) << r.shift <= rows)
    r.tasks *= 2;
  return r;
}

const char *cpu_rows_task(ir_arena *a, const cpu_rows *r) {
  if (r->tasks == 1)
    return "0";
  return ir_format(a, "(row >> %d & %lld)", r->shift, (long long)r->tasks - 1);
}

int cpu_rows_open(ir_buf *out, int indent, const cpu_rows *r) {
  long long rows = (long long)r->rows, columns = (long long)r->columns;
  long long group = columns << r->shift, all = rows * columns;
  if (r->tasks == 1) {
    cg_line(out, indent, "for (int64_t i = 0; i < %lld; i++)", all);
    return indent + 2;
  }
  cg_line(out, indent, "for (int64_t turn = 0; turn < %lld; turn += %lld)", all,
          (long long)r->tasks * group);
  cg_line(out, indent + 2,
          "for (int64_t i = turn + begin * %lld, to = turn + end * %lld, last = to < %lld ? to : "
          "%lld; i < last; i++)",
          group, group, all, all);
  return indent + 4;
}
