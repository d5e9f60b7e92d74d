// cuda_loop.c: LOOP kernels for GPUs: which threads work on what, and the frame of the kernel.
//
//   kernel softmax loop { m = reduce_max x; e = exp(x - m); s = sum e; y = e / s }   x: f32[768,64]
//   ->
//   K_KERNEL(loop_softmax_0, 256, 2) {                        // 32 rows of 8 threads
//     const float *const p0_x = (const float *)args[0];
//     const int thread = (int)task * 256 + (int)threadIdx.x;
//     const int row = thread / 8, lane = thread % 8;
//     vf x_row[2], e_row[2];                                  // between phases: in registers
//     ... phase 0, 1, 2: for (t...) over the vectors lane, lane + 8 ...
//   }
#include "codegen/cuda_loop.h"

enum {
  THREADS = 256,
  LONG_ROW_THREADS = 512,
  MOST_REGISTERS = 32, // kept by a thread: with more, ptxas has too few for the unrolled turns
  SWEPT_ROW_THREADS = 1024,
  LEAST_SPREAD = 1024, // elements of a row
  TURNS_ACROSS = 2,    // vectors of a row per thread before more threads share it
  TURNS_ALONG = 8,     // iterations of R per thread, likewise
  SIDE_BY_SIDE = 4,
  MOST_SLICES = 32, // of R: with more, neighbours in a block would be too few to read whole lines
};

// --- decisions -------------------------------------------------------------------------------
int64_t cuda_loop_vectors_of_row(const cuda_loop *c) {
  const loop_plan *p = &c->p;
  if (p->vector_axis < 0)
    return 1;
  return c->spread ? ir_ceil_div(p->extent, CUDA_WARP * p->lanes) * CUDA_WARP
                   : ir_ceil_div(p->extent, p->lanes);
}

// Vectors along `axis` do not begin at multiples of a vector.
static bool is_misaligned(const dom_access *at, int axis, const loop_plan *p) {
  bool aligned = at->offset % p->lanes == 0;
  for (int i = 0; i < DOM_MAX_AXES; i++)
    aligned &= i == axis || at->stride[i] % p->lanes == 0;
  return at->stride[axis] == 1 && !aligned;
}

// Long rows at any address: with four neighbours to a thread, each access of a warp would take one
// element in four. (Short rows would leave much of their last 128 elements empty; the length of a
// single row may be a number of the kernel.)
static bool is_spread(const loop_plan *p, const cg_kernel *k) {
  bool misaligned = false;
  for (size_t i = 0; p->across && i < k->dom->loads.num; i++) {
    const dom_load *l = &k->dom->loads.at[i];
    bool memory = dom_is_in_memory(l);
    misaligned |= memory && is_misaligned(&l->access, p->vector_axis, p);
  }
  for (size_t i = 0; p->across && i < k->dom->stores.num; i++)
    misaligned |= is_misaligned(&k->dom->stores.at[i].access, p->vector_axis, p);
  return misaligned && p->extent >= LEAST_SPREAD && k->dom->num_axes > 1;
}

static void plan_units(cuda_loop *c, const cg_kernel *k) {
  loop_plan *p = &c->p;
  c->spread = is_spread(p, k);
  p->lane_step = c->spread ? CUDA_WARP : 1;
  int64_t per_row = cuda_loop_vectors_of_row(c);
  p->chunk = p->lanes;
  p->chunks = p->across ? 1 : per_row;
  p->units = p->rows * p->chunks;
  c->vectors = p->across ? p->red_rows * per_row : p->red_rows;
}

// Registers that a thread keeps with so many threads to a row.
static int64_t kept_by_thread(const cuda_loop *c, int group) {
  return ir_ceil_div(c->vectors, group) * c->kept;
}

// Rows that all blocks at once work on, when `group` threads share one, fit into the L2 cache: what
// is swept again need not come from memory again.
static bool fits_l2(const cuda_loop *c, const cg_cuda *chip, int group) {
  int64_t row = c->vectors * c->p.lanes * 4;
  int64_t rows = (int64_t)chip->sms * chip->threads_per_sm / group;
  return row * (rows < c->p.units ? rows : c->p.units) <= chip->l2_bytes;
}

static int most_across(const cuda_loop *c, const cg_kernel *k) {
  const cg_cuda *chip = k->target->cuda;
  if (c->kept > 0)
    return kept_by_thread(c, THREADS) > MOST_REGISTERS ? LONG_ROW_THREADS : THREADS;
  int most = THREADS, busy = cuda_loop_busy(&c->p, k);
  while (c->p.phases > 1 && most < SWEPT_ROW_THREADS && !fits_l2(c, chip, most) &&
         2 * most * busy <= chip->registers_per_sm)
    most *= 2;
  return most;
}

// Threads are added to a group until each has a few turns, as long as the chip has room for them.
static void plan_group(cuda_loop *c, const cg_kernel *k) {
  const loop_plan *p = &c->p;
  const cg_cuda *chip = k->target->cuda;
  int most = p->across ? most_across(c, k) : MOST_SLICES;
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
  plan_group(c, k);
  if (kept_by_thread(c, c->group) > MOST_REGISTERS || c->kept == 0) {
    c->kept = 0;
    cuda_loop_keep_nothing(&c->p, k);
    plan_group(c, k);
  }
  c->turns = c->kept ? (int)ir_ceil_div(c->vectors, c->group) : 0;
}

// Rows that are swept again: loads of several turns are on their way at a time. It takes the registers of a second
// block, which is as well: rows of half as many blocks stay in the second cache until they are read again. (A
// softmax of 8,192 rows of 50,257 on an H100, in place: 1.97 ms as it was, 1.26 with two turns, 1.16 with four. Two
// blocks of 512 threads with four turns each: 1.98. Sweeping back the way that the first sweep came: 1.70.)
static int plan_side_by_side(const cuda_loop *c, const cg_kernel *k) {
  if (!c->p.across || c->p.flat || c->kept > 0 || c->p.phases < 2 || c->group < THREADS)
    return 1;
  int room = k->target->cuda->registers_per_sm / c->threads, turns = SIDE_BY_SIDE;
  int busy = cuda_loop_busy(&c->p, k), loaded = cuda_loop_loaded(&c->p, k);
  while (turns > 1 && busy + (turns - 1) * loaded > room)
    turns /= 2;
  return turns;
}

// Registers of a thread: what its turn has in hand, or a row that it keeps. Blocks of another size
// than most kernels have share no launch with them, but for the work of one thread.
static void say_what_it_takes(cg_kernel *k, const cuda_loop *c) {
  k->any_threads = c->p.vector_axis < 0;
  k->reduces = c->p.has_reduce;
  if (c->threads == THREADS || k->any_threads)
    k->registers = cuda_loop_takes(&c->p, k) + (int)kept_by_thread(c, c->group) +
                   (c->side_by_side - 1) * cuda_loop_loaded(&c->p, k);
}

void cuda_loop_schedule(cg_kernel *k) {
  cuda_loop *c = IR_NEW(k->arena, cuda_loop);
  k->dom = loop_simplify(k->arena, k->k, k->dom);
  loop_plan_axes(&c->p, k);
  loop_plan_members(&c->p, k);
  plan_units(c, k);
  plan_keep(c, k);
  plan_threads(c);
  c->side_by_side = plan_side_by_side(c, k);
  k->num_phases = 1;
  k->tasks[0] = ir_ceil_div(c->p.units * c->group, c->threads);
  k->tasks[0] = k->tasks[0] < 1 ? 1 : k->tasks[0];
  k->threads[0] = c->threads;
  k->workspace = 0;
  k->schedule = c;
  say_what_it_takes(k, c);
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
    cpu_line(&m->e, "k_group_scratch &scratch = k_group_room();");
  cuda_loop_emit_unit(m);
  emit_func_stores(m);
}

// Left to itself, ptxas spills rather than use more than 64 registers.
static void open_kernel(const cg_kernel *k, const char *name, ir_buf *out) {
  enum { TO_ITSELF = 64 };
  const cuda_loop *c = k->schedule;
  size_t width = k->in.num + k->out.num + k->numbers.num;
  if (c->p.has_reduce && c->threads > THREADS && cuda_loop_busy(&c->p, k) > TO_ITSELF)
    ir_buf_printf(out, "K_KERNEL_ROOM(%s_0, %d, 1, %zu) {\n", name, c->threads, width);
  else
    ir_buf_printf(out, "K_KERNEL(%s_0, %d, %zu) {\n", name, c->threads, width);
}

void cuda_loop_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const cuda_loop *c = k->schedule;
  loop_emit m;
  loop_begin(&m, k, &c->p, out);
  reserve(&m);
  open_kernel(k, name, out);
  m.e.indent = 2;
  m.e.multiple = c->p.lanes;
  cg_emit_args(k, out, 2);
  loop_declare_numbers(&m);
  if (c->p.vector_axis < 0)
    emit_scalars(&m);
  else
    emit_vectors(&m);
  ir_buf_puts(out, "}\n");
}
