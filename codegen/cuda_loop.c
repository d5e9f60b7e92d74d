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
  LONG_ROW_THREADS = 512,
  MOST_REGISTERS = 32, // kept by a thread: with more, ptxas has too few for the unrolled turns
  TURNS_ACROSS = 2,    // vectors of a row per thread before more threads share it
  TURNS_ALONG = 8,     // iterations of R per thread, likewise
  MOST_SLICES = 32, // of R: with more, neighbours in a block would be too few to read whole lines
};

static int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
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

// Registers that a thread keeps with so many threads to a row.
static int64_t kept_by_thread(const cuda_loop *c, int group) {
  return ceil_div(c->vectors, group) * c->kept;
}

// Threads are added to a group until each has a few turns, as long as the chip has room for them.
static void plan_group(cuda_loop *c, const cg_cuda *chip) {
  const loop_plan *p = &c->p;
  bool long_row = p->across && kept_by_thread(c, THREADS) > MOST_REGISTERS;
  int most = long_row ? LONG_ROW_THREADS : p->across ? THREADS : MOST_SLICES;
  int64_t turns = p->across ? TURNS_ACROSS : TURNS_ALONG;
  int64_t room = (int64_t)chip->sms * chip->threads_per_sm;
  c->group = 1;
  while (p->has_reduce && c->group < most && c->vectors > turns * c->group &&
         (p->across || p->units * c->group < room))
    c->group *= 2;
}

// Small kernels have small blocks, but whole warps. Flat ones are for any number of elements: of
// one text, whatever their size, so that the updates of all parameters share a launch.
static void plan_threads(cuda_loop *c) {
  int64_t all = c->p.units * c->group;
  c->threads = c->group > THREADS ? c->group : THREADS;
  while (!c->p.flat && c->threads > CUDA_WARP && c->threads / 2 >= all &&
         c->threads / 2 >= c->group)
    c->threads /= 2;
}

// What is not kept is read and worked out again, so that rows need not end somewhere.
static void plan_keep(cuda_loop *c, const cg_kernel *k) {
  c->kept = c->p.flat ? 0 : cuda_loop_keep(&c->p, k);
  plan_group(c, k->target->cuda);
  if (kept_by_thread(c, c->group) > MOST_REGISTERS || c->kept == 0) {
    c->kept = 0;
    cuda_loop_keep_nothing(&c->p, k);
    plan_group(c, k->target->cuda);
  }
  c->turns = c->kept ? (int)ceil_div(c->vectors, c->group) : 0;
}

void cuda_loop_schedule(cg_kernel *k) {
  cuda_loop *c = IR_NEW(k->arena, cuda_loop);
  k->dom = loop_simplify(k->arena, k->k, k->dom);
  loop_plan_axes(&c->p, k);
  loop_plan_members(&c->p, k);
  plan_units(c);
  plan_keep(c, k);
  plan_threads(c);
  k->num_phases = 1;
  k->tasks[0] = ceil_div(c->p.units * c->group, c->threads);
  k->tasks[0] = k->tasks[0] < 1 ? 1 : k->tasks[0];
  k->threads[0] = c->threads;
  k->workspace = 0;
  k->schedule = c;
  loop_push_numbers(&c->p, k);
}

// --- the frame -------------------------------------------------------------------------------
static void reserve(loop_emit *m) {
  static const char *const used[] = {"task",  "args",  "thread", "unit",   "row",
                                     "chunk", "lane",  "t",      "s",      "r",
                                     "j",     "lanes", "count",  "active", "scratch"};
  loop_reserve(m, used, sizeof used / sizeof *used);
}

// Values without axes: by one thread of all.
static void emit_func_stores(loop_emit *m) {
  if (!loop_stores_at(m, LEVEL_FUNC))
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
  loop_declare_caches(m, c->turns);
  cuda_loop_declare_kept(m, c->turns);
  if (c->p.has_reduce && c->p.across && c->group > CUDA_WARP)
    cpu_line(&m->e, "__shared__ k_group_scratch scratch;");
  cuda_loop_emit_unit(m);
  emit_func_stores(m);
}

void cuda_loop_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const cuda_loop *c = k->schedule;
  loop_emit m;
  loop_begin(&m, k, &c->p, out);
  reserve(&m);
  size_t width = k->in.num + k->out.num + k->numbers.num;
  ir_buf_printf(out, "K_KERNEL(%s_0, %d, %zu) {\n", name, c->threads, width);
  m.e.indent = 2;
  cg_emit_args(k, out, 2);
  loop_declare_numbers(&m);
  if (c->p.vector_axis < 0)
    emit_scalars(&m);
  else
    emit_vectors(&m);
  ir_buf_puts(out, "}\n");
}
