// cuda_loop.c: LOOP kernels for GPUs: which threads work on what, and the frame of the kernel.
//
//   kernel softmax loop { m = reduce_max x; e = exp(x - m); s = sum e; y = e / s }   x: f32[768,64]
//   ->
//   K_KERNEL(loop_softmax_0, 256, 2) {                        // 32 rows of 8 threads
//     const float *const p0_x = (const float *)args[0];
//     const int thread = (int)task * 256 + (int)threadIdx.x;
//     const int row = thread / 8, lane = thread % 8;
//     vf e_row[2];                                            // between phases: in registers
//     ... phase 0, 1, 2: for (t...) over the vectors lane, lane + 8 ...
//   }
#include "codegen/cuda_loop.h"

enum {
  THREADS = 256,
  MOST_TURNS = 8,   // vectors of a scratch row that a thread keeps in registers
  TURNS_ACROSS = 2, // vectors of a row per thread before more threads share it
  TURNS_ALONG = 8,  // iterations of R per thread, likewise
  MOST_SLICES = 32, // of R: with more, neighbours in a block would be too few to read whole lines
};

static int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static bool is_random(const ir_node *n) {
  return n->op == IR_UNIFORM || n->op == IR_NORMAL;
}

// --- decisions -------------------------------------------------------------------------------
static void plan_units(cuda_loop *c) {
  loop_plan *p = &c->p;
  int64_t per_row = ceil_div(p->extent, p->lanes);
  if (p->vector_axis < 0)
    per_row = 1;
  p->chunk = p->lanes;
  p->chunks = p->across ? 1 : per_row;
  p->units = p->rows * p->chunks;
  c->vectors = p->across ? p->red_rows * per_row : p->red_rows;
}

// Threads are added to a group until each has a few turns, as long as the chip has room for them.
static void plan_group(cuda_loop *c, const cg_cuda *chip) {
  const loop_plan *p = &c->p;
  int most = p->across ? THREADS : MOST_SLICES;
  int64_t turns = p->across ? TURNS_ACROSS : TURNS_ALONG;
  int64_t room = (int64_t)chip->sms * chip->threads_per_sm;
  c->group = 1;
  while (p->has_reduce && c->group < most && c->vectors > turns * c->group &&
         (p->across || p->units * c->group < room))
    c->group *= 2;
}

// Small kernels have small blocks, but whole warps.
static void plan_threads(cuda_loop *c) {
  int64_t all = c->p.units * c->group;
  c->threads = THREADS;
  while (c->threads > CUDA_WARP && c->threads / 2 >= all && c->threads / 2 >= c->group)
    c->threads /= 2;
}

static void plan_turns(cuda_loop *c, const cg_kernel *k) {
  int64_t turns = ceil_div(c->vectors, c->group);
  bool keeps = false;
  for (size_t i = 0; i < k->k->nodes.num; i++) {
    c->p.member[i].cached &= turns <= MOST_TURNS;
    keeps |= c->p.member[i].cached;
  }
  c->turns = keeps ? (int)turns : 0;
}

void cuda_loop_schedule(cg_kernel *k) {
  cuda_loop *c = IR_NEW(k->arena, cuda_loop);
  k->dom = loop_simplify(k->arena, k->k, k->dom);
  loop_plan_axes(&c->p, k);
  loop_plan_members(&c->p, k);
  plan_units(c);
  plan_group(c, k->target->cuda);
  plan_threads(c);
  plan_turns(c, k);
  k->num_phases = 1;
  k->tasks[0] = ceil_div(c->p.units * c->group, c->threads);
  k->tasks[0] = k->tasks[0] < 1 ? 1 : k->tasks[0];
  k->threads[0] = c->threads;
  k->workspace = 0;
  k->schedule = c;
  if (c->p.flat)
    IR_PUSH(k->arena, k->numbers, c->p.extent);
  for (size_t i = 0; i < k->k->nodes.num; i++)
    if (is_random(k->k->nodes.at[i]))
      IR_PUSH(k->arena, k->numbers, ir_attr_int(k->k->nodes.at[i], IR_ATTR_STREAM));
}

// --- the frame -------------------------------------------------------------------------------
static const char *index_of(void *data, int axis) {
  return ((loop_emit *)data)->index[axis];
}

static void reserve(loop_emit *m) {
  static const char *const used[] = {"task",  "args",  "thread", "unit",   "row",
                                     "chunk", "lane",  "t",      "s",      "r",
                                     "j",     "lanes", "count",  "active", "scratch"};
  for (size_t i = 0; i < sizeof used / sizeof *used; i++)
    cg_scope_name(m->k->arena, m->e.names, used[i]);
  for (int i = 0; i < m->k->dom->num_axes; i++) {
    m->index[i] = ir_format(m->k->arena, "i%d", i);
    cg_scope_name(m->k->arena, m->e.names, m->index[i]);
  }
}

static void declare_numbers(loop_emit *m) {
  ir_arena *a = m->k->arena;
  int at = 0;
  if (m->p->flat)
    cg_emit_number(m->k, at++, "int64_t", "count", m->e.out, m->e.indent);
  for (size_t i = 0; i < m->k->k->nodes.num; i++) {
    const ir_node *n = m->k->k->nodes.at[i];
    if (!is_random(n))
      continue;
    const char *name = cg_scope_name(a, m->e.names, "stream");
    cg_emit_number(m->k, at++, "uint32_t", name, m->e.out, m->e.indent);
    cpu_bind_stream(&m->e, n, name);
  }
}

static void declare_caches(loop_emit *m) {
  ir_arena *a = m->k->arena;
  for (size_t i = 0; i < m->k->k->nodes.num; i++) {
    const ir_node *n = m->k->k->nodes.at[i];
    if (!m->p->member[i].cached)
      continue;
    const char *base = cg_local_name(a, ir_map_new(a), n);
    const char *name = cg_scope_name(a, m->e.names, ir_format(a, "%s_row", base));
    ir_map_put(m->e.names, ir_format(a, "~%zu", i), (void *)(uintptr_t)name);
    cpu_line(&m->e, "%s %s[%d];", cpu_register(n->type.dtype), name, cuda_loop_of(m)->turns);
  }
}

static bool stores_at_func(const loop_emit *m) {
  for (size_t i = 0; i < m->k->dom->stores.num; i++)
    if (m->p->member[cpu_member(m->k, m->k->dom->stores.at[i].node)].level == LEVEL_FUNC)
      return true;
  return false;
}

// Values without axes: by one thread of all.
static void emit_func_stores(loop_emit *m) {
  if (!stores_at_func(m))
    return;
  m->e.vector_axis = -1;
  m->only = NULL;
  cpu_line(&m->e, "if (task == 0 && threadIdx.x == 0) {");
  ir_map *outer = loop_open(m);
  loop_emit_stores(m, LEVEL_FUNC);
  loop_close(m, outer);
}

// One thread does it all: a number may be stored where it was read (step = step + 1), so that no
// other thread may read it.
static void emit_scalars(loop_emit *m) {
  cpu_line(&m->e, "if (threadIdx.x == 0) {");
  ir_map *outer = loop_open(m);
  loop_emit_level(m, LEVEL_FUNC);
  cuda_loop_emit_unit(m);
  loop_emit_stores(m, LEVEL_FUNC);
  loop_close(m, outer);
}

static void emit_vectors(loop_emit *m) {
  const cuda_loop *c = cuda_loop_of(m);
  loop_emit_level(m, LEVEL_FUNC);
  declare_caches(m);
  if (c->p.has_reduce && c->p.across && c->group > CUDA_WARP)
    cpu_line(&m->e, "__shared__ k_group_scratch scratch;");
  cuda_loop_emit_unit(m);
  emit_func_stores(m);
}

void cuda_loop_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const cuda_loop *c = k->schedule;
  loop_emit m = {.k = k, .p = &c->p};
  m.e =
      (cg_expr){.k = k, .out = out, .names = ir_map_new(k->arena), .vector_axis = c->p.vector_axis};
  m.e.index = index_of;
  m.e.have = loop_have;
  m.e.data = &m;
  reserve(&m);
  size_t width = k->in.num + k->out.num + k->numbers.num;
  ir_buf_printf(out, "K_KERNEL(%s_0, %d, %zu) {\n", name, c->threads, width);
  m.e.indent = 2;
  cg_emit_args(k, out, 2);
  declare_numbers(&m);
  if (c->p.vector_axis < 0)
    emit_scalars(&m);
  else
    emit_vectors(&m);
  ir_buf_puts(out, "}\n");
}
