// cuda_copy.c: COPY kernels for GPUs: pad, concat and insert, a thread per element of the result, or per vector.
//
//   pad x[4,6] -> [6,9] {lo=[1,2]}               concat a[4,6], b[4,3] -> [4,9]
//     float x = 0.0f;                              float x;
//     if (i0 >= 1 && i0 < 5 && i1 >= 2 && ...)     if (i1 < 6) x = k_take(p0_a + i0 * 6 + i1);
//       x = k_take(p0_x + i0 * 6 + i1 - 8);         else x = k_take(p1_b + i0 * 3 + i1 - 6);
//     k_put(p1_y + unit, x);                       k_put(p2_y + unit, x);
// insert: as pad, with x where the other operand is not; where the result lies over x, threads there have nothing to do.
// Threads that are neighbours read and write neighbours. Memory is the limit as long as divisions are few, and of 32
// bits: axes that all parts walk as one are one,
//
//   pad x[8,32,16] -> [8,34,16] {lo=[0,1,0]}     is pad x[8,512] -> [8,544] {lo=[0,16]}
//
// and where all parts begin, end and lie at multiples of a vector, what is moved are vectors.
#include "codegen/cuda_element.h"

enum { THREADS = 256, REGISTERS = 40, LANES = 4 };

// Where of the result the elements of an input come to lie.
typedef struct copy_part {
  cpu_element x;
  int64_t lo[IR_MAX_RANK], size[IR_MAX_RANK];
} copy_part;

typedef struct copy_plan {
  ir_type result; // joined axes have 1 element, but for the last one of them; in units of `lanes`
  IR_VEC(copy_part) parts;
  int axis; // of a concat
  int lanes;
} copy_plan;

// --- decisions -------------------------------------------------------------------------------
static void add_part(ir_arena *a, copy_plan *p, const ir_node *from) {
  copy_part part = {.x = cpu_element_of(from)};
  for (int i = 0; i < from->type.rank; i++)
    part.size[i] = from->type.dims[i];
  IR_PUSH(a, p->parts, part);
}

// The first part is what lies inside; the second, of an insert, what is around it.
static void add_parts(ir_arena *a, copy_plan *p, const ir_node *n) {
  if (n->op != IR_CONCAT) {
    int num;
    const int64_t *lo = ir_attr_ints(n, IR_ATTR_LO, &num);
    add_part(a, p, n->in[n->op == IR_INSERT]);
    for (int i = 0; i < num; i++)
      p->parts.at[0].lo[i] = lo[i];
    if (n->op == IR_INSERT)
      add_part(a, p, n->in[0]);
    return;
  }
  int64_t at = 0;
  p->axis = (int)ir_attr_int(n, IR_ATTR_AXIS);
  for (int i = 0; i < n->num_in; i++) {
    int64_t size = n->in[i]->type.dims[p->axis];
    if (size == 0)
      continue;
    add_part(a, p, n->in[i]);
    p->parts.at[p->parts.num - 1].lo[p->axis] = at;
    at += size;
  }
}

// Nothing of `inner` is left out, so that the next one of `outer` follows its last element.
static bool are_one(const copy_plan *p, int outer, int inner) {
  for (size_t i = 0; i < p->parts.num; i++) {
    const copy_part *x = &p->parts.at[i];
    if (ir_is_generated(x->x.base) || x->size[inner] != p->result.dims[inner] ||
        x->x.stride[outer] != x->x.stride[inner] * x->size[inner])
      return false;
  }
  return true;
}

static void join(copy_plan *p, int outer, int inner) {
  for (size_t i = 0; i < p->parts.num; i++) {
    copy_part *x = &p->parts.at[i];
    x->lo[inner] = x->lo[outer] * p->result.dims[inner];
    x->size[inner] *= x->size[outer];
    x->lo[outer] = 0;
    x->size[outer] = 1;
  }
  p->result.dims[inner] *= p->result.dims[outer];
  p->result.dims[outer] = 1;
  if (p->axis == outer)
    p->axis = inner;
}

// Returns the last axis that has more than one element; -1: there is none.
static int join_axes(copy_plan *p) {
  int last = -1, inner = -1;
  for (int i = p->result.rank - 1; i >= 0; i--) {
    if (p->result.dims[i] == 1)
      continue;
    if (inner >= 0 && are_one(p, i, inner))
      join(p, i, inner);
    else
      inner = i;
    last = last < 0 ? i : last;
  }
  return last;
}

static bool is_of_vectors(const copy_plan *p, int last) {
  bool all = last >= 0 && p->result.dims[last] % LANES == 0;
  for (size_t i = 0; all && i < p->parts.num; i++) {
    const copy_part *x = &p->parts.at[i];
    all = !ir_is_generated(x->x.base) && x->x.stride[last] == 1 && x->x.offset % LANES == 0 &&
          x->lo[last] % LANES == 0 && x->size[last] % LANES == 0;
    for (int j = 0; j < last; j++)
      all &= p->result.dims[j] == 1 || x->x.stride[j] % LANES == 0;
  }
  return all;
}

static void go_by_vectors(copy_plan *p, int last) {
  p->lanes = LANES;
  p->result.dims[last] /= LANES;
  for (size_t i = 0; i < p->parts.num; i++) {
    copy_part *x = &p->parts.at[i];
    x->lo[last] /= LANES;
    x->size[last] /= LANES;
    x->x.stride[last] = LANES;
  }
}

void cuda_copy_schedule(cg_kernel *k) {
  const ir_node *n = k->k->anchor;
  BUG_IF(ir_ops[n->op].cls != IR_CLASS_MOVE, "'%s' is no copy", n->name);
  copy_plan *p = IR_NEW(k->arena, copy_plan);
  *p = (copy_plan){.result = n->type, .lanes = 1};
  add_parts(k->arena, p, n);
  int last = join_axes(p);
  if (is_of_vectors(p, last))
    go_by_vectors(p, last);
  int64_t units = ir_elements(&p->result);
  k->num_phases = 1;
  k->tasks[0] = units > THREADS ? ir_ceil_div(units, THREADS) : 1;
  k->threads[0] = THREADS;
  k->registers = REGISTERS;
  k->schedule = p;
}

// --- text ------------------------------------------------------------------------------------
// x = ..., what the part has for this thread.
static void take(cuda_text *t, const char *before, const copy_part *part,
                 const char *const *index) {
  const copy_plan *p = t->k->schedule;
  cpu_element x = part->x;
  for (int i = 0; i < p->result.rank; i++)
    x.offset -= part->lo[i] * x.stride[i];
  if (p->lanes == 1)
    cuda_line(t, "%sx = %s;", before, cuda_element_text(t->k, &x, index));
  else
    cuda_line(t, "%sk_take_aligned(%s, x);", before, cuda_place_text(t->k, &x, index));
}

static const char *inside_test(const cuda_text *t, const char *const *index) {
  const copy_plan *p = t->k->schedule;
  const copy_part *x = &p->parts.at[0];
  ir_buf b = ir_buf_new(t->k->arena);
  for (int i = 0; i < p->result.rank; i++) {
    int64_t end = x->lo[i] + x->size[i];
    const char *at = index[i] ? index[i] : "0";
    if (x->lo[i] > 0)
      ir_buf_printf(&b, "%s%s >= %lld", b.len ? " && " : "", at, (long long)x->lo[i]);
    if (end < p->result.dims[i])
      ir_buf_printf(&b, "%s%s < %lld", b.len ? " && " : "", at, (long long)end);
  }
  return b.len ? ir_buf_str(&b) : NULL;
}

static void emit_pad(cuda_text *t, const char *const *index) {
  const copy_plan *p = t->k->schedule;
  const ir_node *n = t->k->k->anchor;
  const char *type = ir_dtypes[n->type.dtype].ctype;
  const char *fill = cpu_literal(t->k->arena, n->type.dtype, ir_attr_num(n, IR_ATTR_VALUE));
  if (p->lanes == 1) {
    cuda_line(t, "%s x = %s;", type, fill);
  } else {
    cuda_line(t, "%s x[VL];", type);
    cuda_line(t, "K_LANES x[i] = %s;", fill);
  }
  const char *inside = inside_test(t, index);
  if (inside)
    cuda_line(t, "if (%s)", inside);
  take(t, inside ? "  " : "", &p->parts.at[0], index);
}

static void declare(cuda_text *t) {
  const copy_plan *p = t->k->schedule;
  cuda_line(t, "%s x%s;", ir_dtypes[t->k->k->anchor->type.dtype].ctype, p->lanes > 1 ? "[VL]" : "");
}

static void emit_insert(cuda_text *t, const char *const *index) {
  const copy_plan *p = t->k->schedule;
  const cg_kernel *k = t->k;
  const char *inside = inside_test(t, index), *to = cg_arg_name(k, cg_arg_index(k, k->k->anchor));
  const char *around = cg_arg_name(k, cg_arg_index(k, p->parts.at[1].x.base));
  declare(t);
  if (!inside) {
    take(t, "", &p->parts.at[0], index);
    return;
  }
  cuda_line(t, "if (%s)", inside);
  take(t, "  ", &p->parts.at[0], index);
  cuda_line(t, "else if ((const void *)%s == (const void *)%s)", to, around);
  cuda_line(t, "  return;");
  cuda_line(t, "else");
  take(t, "  ", &p->parts.at[1], index);
}

static void emit_concat(cuda_text *t, const char *const *index) {
  const copy_plan *p = t->k->schedule;
  size_t num = p->parts.num;
  declare(t);

  for (size_t i = 0; i < num; i++) {
    const copy_part *part = &p->parts.at[i];
    const char *otherwise = i > 0 ? "else " : "";
    if (i + 1 < num)
      cuda_line(t, "%sif (%s < %lld)", otherwise, index[p->axis],
                (long long)(part->lo[p->axis] + part->size[p->axis]));
    else if (i > 0)
      cuda_line(t, "else");
    take(t, num > 1 ? "  " : "", part, index);
  }
}

// Numbers of 64 bits take some twenty instructions for a division.
static void place_thread(cuda_text *t) {
  const copy_plan *p = t->k->schedule;
  long long units = (long long)ir_elements(&p->result);
  if ((units + THREADS) * p->lanes <= INT32_MAX)
    cuda_line(t, "const int unit = (int)task * %d + (int)threadIdx.x;", THREADS);
  else
    cuda_line(t, "const int64_t unit = task * %d + threadIdx.x;", THREADS);
  cuda_line(t, "if (unit >= %lld)", units);
  cuda_line(t, "  return;");
}

void cuda_copy_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const copy_plan *p = k->schedule;
  const ir_node *n = k->k->anchor;
  cuda_text t = {.k = k, .out = out, .indent = 2};
  const char *index[IR_MAX_RANK] = {0};
  ir_buf_printf(out, "K_KERNEL(%s_0, %d, %zu) {\n", name, THREADS, k->in.num + k->out.num);
  cg_emit_args(k, out, 2);
  place_thread(&t);
  cuda_decode(&t, "unit", &p->result, 0, index);
  if (n->op == IR_PAD)
    emit_pad(&t, index);
  else if (n->op == IR_INSERT)
    emit_insert(&t, index);
  else
    emit_concat(&t, index);
  const char *to = cg_arg_name(k, cg_arg_index(k, n));
  if (p->lanes == 1)
    cuda_line(&t, "k_put(%s + unit, x);", to);
  else
    cuda_line(&t, "k_put_aligned(%s + unit * VL, x);", to);
  ir_buf_puts(out, "}\n");
}
