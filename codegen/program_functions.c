// program_functions.c: each function of the module as straight-line calls.
//
// All threads of the team run the same text. A kernel's tasks are split statically over the
// threads. Calls are gathered into windows: a window ends before a call that touches bytes which
// one of its calls has written (or writes bytes that one has read). What is in one window is
// independent and may run in any order: there, calls of one function become one launch over a
// table, and the tasks of all its rows are split over the threads as one range:
//
//   { // loop_new: wte.new and 15 more                { // layer.0.q = matmul, add  f32[768,384]
//     static const int64_t calls[][13] = {              char *const args[] = {arena + 64, ...};
//         {64, ..., 8320, 3}, // wte.new                 run(matmul_q_0, 8, args, ...);
//         {33344, ..., 65536, 20}, // fc.w.new         }
//     };
//     launch(loop_new_0, &calls[0][0], 16, ...);
//   }
// Between windows stands a barrier, or one for some sizes of team only (program_sync.c):
//
//   wait_if(0xfffffee8u, team, tid, threads);         not for 2, 4 and 8 threads
#include "codegen/program.h"
#include "codegen/program_sync.h"

typedef struct span {
  int64_t from, to; // arena bytes [from, to)
} span;
typedef IR_VEC(span) spans;

typedef struct call {
  const cg_kernel *c;
  const cg_distinct *d;
  size_t merged; // calls of its launch; 1: a call of its own; 0: a row of an earlier one's launch
  int shift;     // thread that gets its first task
} call;

typedef struct writer {
  const cg_program *p;
  const plan *plan;
  ir_buf *out;
  const ir_func *f;
  int64_t *workspace;  // arena offset by kernel id, or -1
  spans read, written; // in this window
  IR_VEC(call) window;
  bool boundary; // the window begins with a call that touches what others have written
  sync_state *sync;
} writer;

static void put_window(writer *w);

// --- hazards ---------------------------------------------------------------------------------
static bool touches(const spans *s, span x) {
  for (size_t i = 0; i < s->num; i++)
    if (s->at[i].from < x.to && x.from < s->at[i].to)
      return true;
  return false;
}

static bool conflicts(const writer *w, const spans *reads, const spans *writes) {
  for (size_t i = 0; i < reads->num; i++)
    if (touches(&w->written, reads->at[i]))
      return true;
  for (size_t i = 0; i < writes->num; i++)
    if (touches(&w->written, writes->at[i]) || touches(&w->read, writes->at[i]))
      return true;
  return false;
}

static void end_window(writer *w, bool boundary) {
  put_window(w);
  w->read.num = w->written.num = 0;
  w->boundary = boundary;
}

static void note(writer *w, const spans *reads, const spans *writes) {
  if (conflicts(w, reads, writes))
    end_window(w, true);
  for (size_t i = 0; i < reads->num; i++)
    IR_PUSH(w->p->arena, w->read, reads->at[i]);
  for (size_t i = 0; i < writes->num; i++)
    IR_PUSH(w->p->arena, w->written, writes->at[i]);
}

// Before the calls whose uses were added.
static void put_barrier(writer *w) {
  uint32_t teams = sync_settle(w->sync, w->boundary);
  w->boundary = false;
  if (teams == SYNC_ALL)
    ir_buf_puts(w->out, "  mlrt_barrier(team, tid);\n");
  else if (teams)
    ir_buf_printf(w->out, "  wait_if(0x%xu, team, tid, threads);\n", (unsigned)teams);
}

// --- arguments -------------------------------------------------------------------------------
static span node_span(const writer *w, const ir_node *n) {
  int64_t at = plan_offset(w->plan, w->f, n);
  BUG_IF(at < 0, "%s has no place", n->name);
  return (span){at, at + ir_bytes(&n->type)};
}

static void put_arg(writer *w, const ir_node *n, bool first) {
  const char *base = n->op == IR_INPUT ? "batch" : "arena";
  ir_buf_printf(w->out, "%s%s + %lld", first ? "" : ", ", base,
                (long long)plan_offset(w->plan, w->f, n));
}

static void put_args(writer *w, const cg_kernel *c) {
  ir_buf_puts(w->out, "    char *const args[] = {");
  for (size_t i = 0; i < c->in.num; i++)
    put_arg(w, c->in.at[i], i == 0);
  for (size_t i = 0; i < c->out.num; i++)
    put_arg(w, c->out.at[i], i == 0 && c->in.num == 0);
  if (c->workspace)
    ir_buf_printf(w->out, ", arena + %lld", (long long)w->workspace[c->k->id]);
  for (size_t i = 0; i < c->numbers.num; i++)
    ir_buf_printf(w->out, ", (char *)%lldll", (long long)c->numbers.at[i]);
  ir_buf_puts(w->out, "};\n");
}

static void kernel_spans(const writer *w, const cg_kernel *c, spans *reads, spans *writes) {
  ir_arena *a = w->p->arena;
  for (size_t i = 0; i < c->in.num; i++)
    if (c->in.at[i]->op != IR_INPUT) // nothing in a step writes the batch
      IR_PUSH(a, *reads, node_span(w, c->in.at[i]));
  for (size_t i = 0; i < c->out.num; i++)
    IR_PUSH(a, *writes, node_span(w, c->out.at[i]));
  if (c->workspace) {
    int64_t at = w->workspace[c->k->id];
    span x = {at, at + c->workspace};
    IR_PUSH(a, *writes, x);
  }
}

// --- uses ------------------------------------------------------------------------------------
static void add_use(writer *w, const call *x, int phase, int arg, span bytes, bool write) {
  bool known = cg_generators[x->c->k->family].touches && x->merged == 1;
  sync_use use = {.bytes = {bytes.from, bytes.to},
                  .write = write,
                  .call = known ? x->c : NULL,
                  .phase = phase,
                  .arg = arg,
                  .shift = x->shift};
  sync_add(w->sync, use);
}

static void add_uses(writer *w, const call *x, int phase) {
  const cg_kernel *c = x->c;
  for (size_t i = 0; i < c->in.num; i++)
    if (c->in.at[i]->op != IR_INPUT)
      add_use(w, x, phase, (int)i, node_span(w, c->in.at[i]), false);
  for (size_t i = 0; i < c->out.num; i++)
    add_use(w, x, phase, (int)(c->in.num + i), node_span(w, c->out.at[i]), true);
  int64_t at = c->workspace ? w->workspace[c->k->id] : 0;
  if (c->workspace)
    add_use(w, x, phase, (int)(c->in.num + c->out.num), (span){at, at + c->workspace}, true);
}

// --- calls -----------------------------------------------------------------------------------
static void put_run(writer *w, const call *x, int phase) {
  ir_buf_printf(w->out, "    run(%s_%d, %lld, args, (tid + %d) %% threads, threads);\n", x->d->name,
                phase, (long long)x->c->tasks[phase], x->shift);
}

static void open_call(writer *w, const call *x) {
  ir_buf_printf(w->out, "  { // %s = %s\n", x->c->k->name, cg_describe(w->p->arena, x->c->k));
  put_args(w, x->c);
}

// Phases of one kernel depend on each other's tasks anyhow.
static void put_phases(writer *w, const call *x) {
  add_uses(w, x, 0);
  put_barrier(w);
  open_call(w, x);
  for (int i = 0; i < x->c->num_phases; i++) {
    if (i > 0) {
      ir_buf_puts(w->out, "    mlrt_barrier(team, tid);\n");
      sync_reset(w->sync);
      add_uses(w, x, i);
      sync_settle(w->sync, false);
    }
    put_run(w, x, i);
  }
  ir_buf_puts(w->out, "  }\n");
}

static void put_row(writer *w, const cg_kernel *c) {
  ir_buf_puts(w->out, "        {");
  for (size_t i = 0; i < c->in.num; i++)
    ir_buf_printf(w->out, "%lld, ", (long long)plan_offset(w->plan, w->f, c->in.at[i]));
  for (size_t i = 0; i < c->out.num; i++)
    ir_buf_printf(w->out, "%lld, ", (long long)plan_offset(w->plan, w->f, c->out.at[i]));
  if (c->workspace)
    ir_buf_printf(w->out, "%lld, ", (long long)w->workspace[c->k->id]);
  for (size_t i = 0; i < c->numbers.num; i++)
    ir_buf_printf(w->out, "%lld, ", (long long)c->numbers.at[i]);
  ir_buf_printf(w->out, "%lld}, // %s\n", (long long)c->tasks[0], c->k->name);
}

static void put_launch(writer *w, const call *first) {
  const cg_kernel *c = first->c;
  const cg_distinct *d = first->d;
  size_t buffers = c->in.num + c->out.num + (c->workspace > 0), numbers = c->numbers.num;
  ir_buf_printf(w->out, "  { // %s: %s and %zu more = %s\n", d->name, c->k->name, first->merged - 1,
                cg_describe_ops(w->p->arena, c->k));
  ir_buf_printf(w->out, "    static const int64_t calls[][%zu] = {\n", buffers + numbers + 1);
  for (size_t i = 0; i < w->window.num; i++)
    if (w->window.at[i].d == d && w->window.at[i].merged != 1)
      put_row(w, w->window.at[i].c);
  ir_buf_printf(
      w->out, "    };\n    launch(%s_0, &calls[0][0], %zu, %zu, %zu, arena, tid, threads);\n  }\n",
      d->name, first->merged, buffers, numbers);
}

// Rows of a table are offsets in the arena: a batch has another base.
static bool reads_batch(const cg_kernel *c) {
  for (size_t i = 0; i < c->in.num; i++)
    if (c->in.at[i]->op == IR_INPUT)
      return true;
  return false;
}

// Which calls become one launch, and where the others start: calls with few tasks leave threads
// idle, the next one starts at another thread.
static void arrange_window(writer *w) {
  int shift = 0;
  for (size_t i = 0; i < w->window.num; i++) {
    call *x = &w->window.at[i];
    bool alone = reads_batch(x->c), first = true;
    x->merged = 1;
    for (size_t j = 0; j < w->window.num && !alone; j++)
      if (j != i && w->window.at[j].d == x->d && !reads_batch(w->window.at[j].c)) {
        first = first && j > i;
        x->merged++;
      }
    x->merged = first ? x->merged : 0;
    if (x->merged != 1)
      continue;
    x->shift = shift;
    shift = (shift + (int)(x->c->tasks[0] < 4 ? x->c->tasks[0] : 0)) % 64;
  }
}

static void put_window(writer *w) {
  if (w->window.num == 0)
    return;
  arrange_window(w);
  for (size_t i = 0; i < w->window.num; i++)
    add_uses(w, &w->window.at[i], 0);
  put_barrier(w);
  for (size_t i = 0; i < w->window.num; i++) {
    const call *x = &w->window.at[i];
    if (x->merged > 1)
      put_launch(w, x);
    if (x->merged != 1)
      continue;
    open_call(w, x);
    put_run(w, x, 0);
    ir_buf_puts(w->out, "  }\n");
  }
  w->window.num = 0;
}

static void put_kernel(writer *w, const cg_kernel *c, const cg_distinct *d) {
  spans reads = {0}, writes = {0};
  kernel_spans(w, c, &reads, &writes);
  note(w, &reads, &writes);
  call x = {.c = c, .d = d, .merged = 1};
  if (c->num_phases == 1) {
    IR_PUSH(w->p->arena, w->window, x);
    return;
  }
  put_window(w);
  put_phases(w, &x);
  w->read.num = w->written.num = 0; // everything before the inner barrier is settled
  note(w, &reads, &writes);
}

static void put_copies(writer *w) {
  put_window(w);
  for (size_t i = 0; i < w->plan->copies.num; i++) {
    const plan_copy *c = &w->plan->copies.at[i];
    if (c->func != w->f)
      continue;
    spans reads = {0}, writes = {0};
    span from = {c->from, c->from + c->bytes}, to = {c->to, c->to + c->bytes};
    IR_PUSH(w->p->arena, reads, from);
    IR_PUSH(w->p->arena, writes, to);
    note(w, &reads, &writes);
    sync_use read = {.bytes = {from.from, from.to}}, write = {.bytes = {to.from, to.to}};
    write.write = true;
    sync_add(w->sync, read);
    sync_add(w->sync, write);
    put_barrier(w);
    ir_buf_printf(w->out, "  copy(arena + %lld, arena + %lld, %lld, tid, threads); // %s\n",
                  (long long)c->to, (long long)c->from, (long long)c->bytes, c->state->name);
  }
}

static void find_workspaces(writer *w) {
  size_t n = w->f->kernels.num;
  w->workspace = IR_NEW_ARRAY(w->p->arena, int64_t, n + 1);
  for (size_t i = 0; i < n; i++)
    w->workspace[i] = -1;
  for (size_t i = 0; i < w->plan->buffers.num; i++) {
    const plan_buffer *b = &w->plan->buffers.at[i];
    if (b->kind == PLAN_WORKSPACE && b->func == w->f)
      w->workspace[b->kernel->id] = b->offset;
  }
}

static void put_function(const cg_program *p, const plan *plan, size_t index, ir_buf *out) {
  writer w = {.p = p, .plan = plan, .out = out, .f = p->module->funcs.at[index]};
  w.sync = sync_new(p->arena);
  find_workspaces(&w);
  ir_buf_printf(out,
                "\nstatic void run_%s(char *arena, int slot, mlrt_team *team, int tid) {\n"
                "  const int threads = mlrt_team_size(team);\n"
                "  char *const batch = arena + slot * %lldll;\n"
                "  (void)batch;\n"
                "  (void)threads;\n",
                w.f->name, (long long)plan->staging_slot_bytes);
  for (size_t i = 0; i < w.f->kernels.num; i++)
    put_kernel(&w, p->kernels[index][i], p->shared[index][i]);
  put_copies(&w);
  ir_buf_puts(out, "}\n");
}

static const char HELPERS[] =
    "\ntypedef void (*task_fn)(int64_t begin, int64_t end, char *const *args);\n"
    "\n// This thread's share of a kernel's tasks.\n"
    "static __attribute__((noinline)) void run(task_fn kernel, int64_t tasks, char *const *args,\n"
    "                                          int tid, int threads) {\n"
    "  const int64_t begin = tasks * tid / threads, end = tasks * (tid + 1) / threads;\n"
    "  if (begin < end)\n"
    "    kernel(begin, end, args);\n"
    "}\n"
    "\n// This thread's share of many calls of a kernel. A row has the offsets of the buffers in "
    "the\n"
    "// arena, then numbers, then tasks; the tasks of all rows are one range.\n"
    "static __attribute__((noinline)) void launch(task_fn kernel, const int64_t *row, int rows,\n"
    "                                             int buffers, int numbers, char *arena, int tid,\n"
    "                                             int threads) {\n"
    "  const int width = buffers + numbers;\n"
    "  int64_t total = 0, at = 0;\n"
    "  for (int r = 0; r < rows; r++)\n"
    "    total += row[r * (width + 1) + width];\n"
    "  const int64_t begin = total * tid / threads, end = total * (tid + 1) / threads;\n"
    "  for (; at < end; row += width + 1) {\n"
    "    const int64_t tasks = row[width], from = begin > at ? begin - at : 0;\n"
    "    const int64_t to = end - at < tasks ? end - at : tasks;\n"
    "    at += tasks;\n"
    "    if (from >= to)\n"
    "      continue;\n"
    "    char *args[width];\n"
    "    for (int i = 0; i < width; i++)\n"
    "      args[i] = i < buffers ? arena + row[i] : (char *)(uintptr_t)row[i];\n"
    "    kernel(from, to, args);\n"
    "  }\n"
    "}\n"
    "\n// Bit T of `teams`: in a team of T threads, some go on with what others have written. (31: "
    "and"
    "\n// in larger ones.)\n"
    "static inline void wait_if(uint32_t teams, mlrt_team *team, int tid, int threads) {\n"
    "  if (teams >> (threads < 31 ? threads : 31) & 1)\n"
    "    mlrt_barrier(team, tid);\n"
    "}\n"
    "\n// This thread's share of a copy.\n"
    "static inline void copy(char *to, const char *from, int64_t bytes, int tid, int threads) {\n"
    "  const int64_t lines = (bytes + 63) / 64;\n"
    "  const int64_t begin = lines * tid / threads * 64;\n"
    "  int64_t end = lines * (tid + 1) / threads * 64;\n"
    "  end = end < bytes ? end : bytes;\n"
    "  if (begin < end)\n"
    "    __builtin_memcpy(to + begin, from + begin, (size_t)(end - begin));\n"
    "}\n";

void cg_emit_functions(const cg_program *p, const plan *plan, ir_buf *out) {
  ir_buf_puts(out, "#include \"mlrt.h\"\n\n");
  for (size_t i = 0; i < p->distinct.num; i++) {
    const cg_distinct *d = p->distinct.at[i];
    for (int j = 0; j < d->uses.at[0]->num_phases; j++)
      ir_buf_printf(out, "void %s_%d(int64_t begin, int64_t end, char *const *args);\n", d->name,
                    j);
    if (d->plain)
      ir_buf_printf(out, "void %s(char *const *args, double *const *taps, int hold);\n", d->plain);
  }
  ir_buf_puts(out, HELPERS);
  for (size_t i = 0; i < p->module->funcs.num; i++)
    put_function(p, plan, i, out);
}
