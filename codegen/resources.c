// resources.c: see resources.h.
//
//   step: 412 launches, 1,093,218,304 flops, 92,553,216 bytes
//                                                                       A100 SXM (sm_80)
//     kernel        calls threads blocks      flops     bytes    registers shared occupancy     us
//     matmul_relu       1     128     96  113246208    786432           90   33 K       25%    5.8
//     joint_new        52     256    819        ...
//       loop_new        1                       ...
//       loop_new_2     51
//
// A kernel of several phases has a row for each; its FLOPs, bytes and time stand in the first one.
// What shares launches (cuda_launches.h) has one row together, and rows for each function's part.
// The time is the longer of what its arithmetic takes at the chip's peak and what its bytes take at
// the peak of its memory: no launch, no latency, no cache is in it. So it is a bound, and a kernel
// that runs much longer has something to gain.
#include "codegen/resources.h"
#include "codegen/cuda_launches.h"

#include <string.h>

#include "passes/cost.h"

enum { KIB = 1024, NAME_WIDTH = 28 };

// What computes at rates of their own.
typedef enum unit { UNIT_F32, UNIT_F64, UNIT_TF32, UNIT_HALF, NUM_UNITS } unit;

typedef struct row {
  const cg_joint *j;      // its calls share launches; NULL: they do not
  const cg_distinct *d;   // NULL: all that is in `j`
  const cg_distinct *own; // what one chip runs in place of `d`; NULL: the same
  int64_t blocks;         // of the first launch
  int64_t calls, launches, flops, bytes;
  double work[NUM_UNITS]; // flops of each unit
} row;

typedef struct table {
  const cg_program *p;
  const cg_arch_resources *r;
  const cg_cuda *cuda;                // NULL: a CPU
  const cg_cuda *alone[CG_MAX_ARCHS]; // limits of each architecture
  ir_buf *out;
  IR_VEC(row) rows; // of a function
} table;

// --- what the chip makes of it ---------------------------------------------------------------
// Warps that an SM holds at a time, of those that it could.
static double occupancy(const table *x, int arch, const cg_resources *r, int threads,
                        int64_t shared) {
  const cg_cuda *chip = x->alone[arch];
  int warps = (threads + chip->warp - 1) / chip->warp;
  int blocks = cg_resident_blocks(chip, threads, r->registers, shared);
  return (double)(blocks * warps * chip->warp) / chip->threads_per_sm;
}

static double seconds(const cg_chip *chip, const row *x) {
  double arithmetic = (x->work[UNIT_F32] / chip->f32 + x->work[UNIT_F64] / chip->f64 +
                       x->work[UNIT_TF32] / chip->tf32 + x->work[UNIT_HALF] / chip->half) *
                      1e-12;
  double memory = (double)x->bytes / (chip->bandwidth * 1e12);
  return arithmetic > memory ? arithmetic : memory;
}

// --- the rows of a function ------------------------------------------------------------------
static row *row_of(table *x, const cg_joint *j, const cg_distinct *d, int64_t blocks) {
  for (size_t i = 0; i < x->rows.num; i++)
    if (x->rows.at[i].d == d && x->rows.at[i].j == j)
      return &x->rows.at[i];
  IR_PUSH(x->p->arena, x->rows, ((row){.j = j, .d = d, .blocks = blocks}));
  return &x->rows.at[x->rows.num - 1];
}

static unit unit_of(const cg_kernel *c, const ir_node *n) {
  if (n->op == IR_MATMUL && c->products != CG_BY_FMA)
    return c->products == CG_BY_HALF ? UNIT_HALF : UNIT_TF32;
  return n->type.dtype == IR_F64 ? UNIT_F64 : UNIT_F32;
}

static void add_call(row *r, const cg_kernel *c, const cost *x) {
  r->calls++;
  r->flops = cost_plus(r->flops, x->flops);
  r->bytes = cost_plus(r->bytes, cost_plus(x->bytes_read, x->bytes_written));
  for (size_t i = 0; i < c->k->nodes.num; i++) {
    const ir_node *n = c->k->nodes.at[i];
    r->work[unit_of(c, n)] += (double)cost_flops(n);
  }
}

// To the row of its function, to that of the joint that calls it, if one does, and to `all`.
static void add_kernel(table *x, size_t func, const cg_kernel *c, const cg_joint *j, row *all) {
  cost spent = cost_kernel(x->p->arena, c->k);
  row *r = row_of(x, j, x->p->shared[func][c->k->id], c->tasks[0]);
  r->own = x->p->own_shared[func][c->k->id];
  add_call(r, c, &spent);
  if (j)
    add_call(row_of(x, j, NULL, 0), c, &spent);
  add_call(all, c, &spent);
}

static void collect_launch(table *x, size_t func, const cuda_launch *l, row *all) {
  if (l->transfer)
    return; // a copy: it takes nothing of what is shown here
  const cg_kernel *first = l->calls.at[0];
  all->launches += l->joint ? 1 : first->num_phases;
  if (l->joint)
    row_of(x, l->joint, NULL, l->blocks);
  for (size_t i = 0; i < l->calls.num; i++)
    add_kernel(x, func, l->calls.at[i], l->joint, all);
}

static row collect(table *x, size_t func) {
  const ir_func *f = x->p->module->funcs.at[func];
  row all = {0};
  x->rows.num = 0;
  for (size_t i = 0; x->cuda && i < x->p->launches[func].num; i++)
    collect_launch(x, func, &x->p->launches[func].at[i], &all);
  for (size_t i = 0; !x->cuda && i < f->kernels.num; i++)
    add_kernel(x, func, x->p->kernels[func][i], NULL, &all);
  return all;
}

// --- text ------------------------------------------------------------------------------------
static const cg_resources *find(const table *x, int arch, const char *kernel) {
  const cg_resource_list *list = &x->r->of[arch];
  for (size_t i = 0; i < list->num; i++)
    if (!strcmp(list->at[i].kernel, kernel))
      return &list->at[i];
  return NULL;
}

static int threads_of(const row *r, int phase) {
  return r->d ? r->d->uses.at[0]->threads[phase] : r->j->threads;
}

// Of a block: what the kernel has of its own, and what launches give it.
static int64_t shared_of(const row *r, int phase, const cg_resources *k) {
  return k->shared + (r->d ? r->d->uses.at[0]->shared[phase] : 0);
}

static void put_arch(const table *x, int arch, const row *r, int phase, bool time) {
  const cg_chip *chip = cg_cuda_chip(x->cuda->archs[arch]);
  const char *name = r->d ? ir_format(x->p->arena, "%s_%d", r->d->name, phase) : r->j->name;
  const cg_resources *k = find(x, arch, name);
  if (k)
    ir_buf_printf(x->out, "  %4d%s %7.1f %4.0f%%", k->registers, k->frame ? "!" : " ",
                  (double)shared_of(r, phase, k) / KIB,
                  100 * occupancy(x, arch, k, threads_of(r, phase), shared_of(r, phase, k)));
  else
    ir_buf_printf(x->out, "  %5s %7s %5s", "", "", "");
  if (time)
    ir_buf_printf(x->out, " %9.2f", 1e6 * seconds(chip, r));
  else
    ir_buf_printf(x->out, " %9s", "");
}

static void trim_line(ir_buf *b) {
  while (b->len && b->text[b->len - 1] == ' ')
    b->len--;
  ir_buf_puts(b, "\n");
}

static void put_counts(const table *x, const row *r, int phase) {
  if (phase == 0)
    ir_buf_printf(x->out, " %6lld %15lld %13lld", (long long)r->calls, (long long)r->flops,
                  (long long)r->bytes);
  else
    ir_buf_printf(x->out, " %6s %15s %13s", "", "", "");
}

// `counts`: calls, FLOPs and bytes are shown, in the first phase's row.
static void put_row(const table *x, const row *r, int phase, bool counts) {
  bool phases = r->d && r->d->uses.at[0]->num_phases > 1;
  const char *name = r->d ? r->d->name : r->j->name;
  int64_t blocks = phases ? r->d->uses.at[0]->tasks[phase] : r->blocks;
  ir_buf_printf(x->out, "  %-*s", NAME_WIDTH,
                phases ? ir_format(x->p->arena, "%s_%d", name, phase) : name);
  put_counts(x, r, counts ? phase : 1);
  if (x->cuda)
    ir_buf_printf(x->out, " %8lld %7d", (long long)blocks, threads_of(r, phase));
  for (int i = 0; x->cuda && i < x->cuda->num_archs; i++)
    put_arch(x, i, r, phase, counts && phase == 0);
  trim_line(x->out);
}

static void put_parts(const table *x, const cg_joint *j) {
  for (size_t i = 0; i < x->rows.num; i++) {
    const row *r = &x->rows.at[i];
    if (r->j != j || !r->d)
      continue;
    ir_buf_printf(x->out, "    %-*s", NAME_WIDTH - 2, r->d->name);
    put_counts(x, r, 0);
    trim_line(x->out);
  }
}

static void put_rows(const table *x, const row *r) {
  if (!r->d) {
    put_row(x, r, 0, true);
    put_parts(x, r->j);
    return;
  }
  if (r->j)
    return;
  for (int phase = 0; phase < r->d->uses.at[0]->num_phases; phase++)
    put_row(x, r, phase, true);
  row of_own = {.d = r->own, .blocks = r->own ? r->own->uses.at[0]->tasks[0] : 0};
  for (int phase = 0; r->own && phase < r->own->uses.at[0]->num_phases; phase++)
    put_row(x, &of_own, phase, false);
}

static void put_head(const table *x) {
  ir_arena *a = x->p->arena;
  int before = 2 + NAME_WIDTH + 7 + 16 + 14 + 9 + 8;
  for (int i = 0; x->cuda && i < x->cuda->num_archs; i++, before = 0)
    ir_buf_printf(x->out, "%*s  %-29s", before, "",
                  ir_format(a, "%s, %s", x->cuda->archs[i], cg_cuda_chip(x->cuda->archs[i])->name));
  if (x->cuda)
    trim_line(x->out);
  ir_buf_printf(x->out, "  %-*s %6s %15s %13s", NAME_WIDTH, "kernel", "calls", "flops", "bytes");
  if (x->cuda)
    ir_buf_printf(x->out, " %8s %7s", "blocks", "threads");
  for (int i = 0; x->cuda && i < x->cuda->num_archs; i++)
    ir_buf_printf(x->out, "  %5s %7s %5s %9s", "regs", "KiB", "occ", "us");
  ir_buf_puts(x->out, "\n");
}

static void put_totals(const table *x) {
  for (int i = 0; x->cuda && i < x->cuda->num_archs; i++) {
    const cg_chip *chip = cg_cuda_chip(x->cuda->archs[i]);
    double total = 0;
    for (size_t j = 0; j < x->rows.num; j++)
      if (!x->rows.at[j].d || !x->rows.at[j].j)
        total += seconds(chip, &x->rows.at[j]);
    ir_buf_printf(x->out, "  %s (%s): at least %.1f us\n", x->cuda->archs[i], chip->name,
                  1e6 * total);
  }
}

static void put_function(table *x, size_t func) {
  row all = collect(x, func);
  ir_buf_printf(x->out, "\n%s: %lld kernels, ", x->p->module->funcs.at[func]->name,
                (long long)all.calls);
  if (x->cuda)
    ir_buf_printf(x->out, "%lld launches, ", (long long)all.launches);
  ir_buf_printf(x->out, "%lld flops, %lld bytes\n", (long long)all.flops, (long long)all.bytes);
  put_head(x);
  for (size_t i = 0; i < x->rows.num; i++)
    put_rows(x, &x->rows.at[i]);
  put_totals(x);
}

static void put_chips(const table *x) {
  for (int i = 0; x->cuda && i < x->cuda->num_archs; i++) {
    const cg_chip *c = cg_cuda_chip(x->cuda->archs[i]);
    ir_buf_printf(x->out,
                  "  %-7s %s: %d SMs; %.1f TFLOP/s in f32, %.1f in f64, by tensor cores %.0f in "
                  "tf32, %.0f in bf16; %.2f TB/s\n",
                  x->cuda->archs[i], c->name, c->sms, c->f32, c->f64, c->tf32, c->half,
                  c->bandwidth);
  }
  if (x->cuda)
    ir_buf_puts(
        x->out,
        "regs: of a thread, ! where it spills; KiB: shared memory of a block; occ: warps on "
        "an SM, of its most;\nus: the longer of arithmetic and memory traffic at the "
        "chip's rates, a lower bound of all calls together\n");
}

void cg_print_resources(const cg_program *p, const plan *pl, const cg_arch_resources *r,
                        ir_buf *out) {
  table x = {.p = p, .r = r, .cuda = p->target->cuda, .out = out};
  ir_buf_printf(out, "resources of %s for %s: %lld bytes of memory, %zu generated kernels\n",
                p->module->name, p->target->name, (long long)pl->arena_bytes, p->distinct.num);
  const char *wrong;
  for (int i = 0; x.cuda && i < x.cuda->num_archs; i++)
    x.alone[i] = cg_cuda_find(p->arena, x.cuda->archs[i], &wrong);
  put_chips(&x);
  for (size_t i = 0; i < p->module->funcs.num; i++)
    if (p->module->funcs.at[i]->kernels.num)
      put_function(&x, i);
}
