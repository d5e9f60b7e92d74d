// program_functions.c: each function of the module as straight-line calls (program_functions.h).
//
// Calls are gathered into windows: a window ends before a call that touches bytes which one of its
// calls has written (or writes bytes that one has read). What is in one window is independent and
// may run in any order: there, calls of one function become one launch over a table of rows.
#include "codegen/program_functions.h"

enum { MOST_CALLS = 512 };

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

span writer_span(const writer *w, const ir_node *n) {
  int64_t at = plan_offset(w->plan, w->f, n);
  BUG_IF(at < 0, "%s has no place", n->name);
  return (span){at, at + dom_bytes(n)};
}

// --- arguments -------------------------------------------------------------------------------
static void put_arg(writer *w, const ir_node *n, bool first) {
  const char *base = n->op == IR_INPUT ? "batch" : "arena";
  ir_buf_printf(w->out, "%s%s + %lld", first ? "" : ", ", base,
                (long long)plan_offset(w->plan, w->f, n));
}

void writer_put_arguments(writer *w, const cg_kernel *c) {
  for (size_t i = 0; i < c->in.num; i++)
    put_arg(w, c->in.at[i], i == 0);
  for (size_t i = 0; i < c->out.num; i++)
    put_arg(w, c->out.at[i], i == 0 && c->in.num == 0);
  if (c->workspace)
    ir_buf_printf(w->out, ", arena + %lld", (long long)w->workspace[c->k->id]);
  for (size_t i = 0; i < c->numbers.num; i++)
    ir_buf_printf(w->out, ", (char *)%lldll", (long long)c->numbers.at[i]);
}

void writer_open_call(writer *w, const cg_kernel *c) {
  ir_buf_printf(w->out, "  { // %s = %s\n", c->k->name, cg_describe(w->p->arena, c->k));
}

static void kernel_spans(const writer *w, const cg_kernel *c, spans *reads, spans *writes) {
  ir_arena *a = w->p->arena;
  for (size_t i = 0; i < c->in.num; i++)
    if (c->in.at[i]->op != IR_INPUT) // nothing in a step writes the batch
      IR_PUSH(a, *reads, writer_span(w, c->in.at[i]));
  for (size_t i = 0; i < c->out.num; i++)
    IR_PUSH(a, *writes, writer_span(w, c->out.at[i]));
  if (c->workspace) {
    int64_t at = w->workspace[c->k->id];
    span x = {at, at + c->workspace};
    IR_PUSH(a, *writes, x);
  }
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
  calls_before_window(w);
  for (size_t i = 0; i < w->window.num; i++) {
    call *x = &w->window.at[i];
    if (x->merged > 1)
      calls_merged(w, x);
    if (x->merged == 1)
      calls_one(w, x);
  }
  w->window.num = 0;
}

static void put_kernel(writer *w, const cg_kernel *c, cg_distinct *d) {
  spans reads = {0}, writes = {0};
  kernel_spans(w, c, &reads, &writes);
  note(w, &reads, &writes);
  call x = {.c = c, .d = d, .merged = 1};
  if (c->num_phases == 1) {
    IR_PUSH(w->p->arena, w->window, x);
    return;
  }
  put_window(w);
  calls_phases(w, &x);
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
    calls_copy(w, c);
  }
}

int64_t *cg_workspaces(ir_arena *a, const plan *p, const ir_func *f) {
  int64_t *at = IR_NEW_ARRAY(a, int64_t, f->kernels.num + 1);
  for (size_t i = 0; i < f->kernels.num; i++)
    at[i] = -1;
  for (size_t i = 0; i < p->buffers.num; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    if (b->kind == PLAN_WORKSPACE && b->func == f)
      at[b->kernel->id] = b->offset;
  }
  return at;
}

// --- parts ---------------------------------------------------------------------------------
// Compilers take more than twice the time for a C function of twice the calls: unrolled ones are
// cut. What stands in one part and in the next is ordered by the same barriers.
size_t writer_num_parts(size_t calls) {
  return calls > MOST_CALLS ? (calls - 1) / WRITER_PART_CALLS + 1 : 0;
}

const char *writer_part_name(const writer *w, size_t part) {
  return ir_format(w->p->arena, "%s_part_%zu", w->f->name, part);
}

void writer_call_parts(writer *w, size_t num, const char *parameters) {
  for (size_t i = 0; i < num; i++)
    ir_buf_printf(w->out, "  run_%s(%s);\n", writer_part_name(w, i), parameters);
}

static void next_part(writer *w, size_t part) {
  if (part > 0) {
    put_window(w);
    ir_buf_puts(w->out, "}\n");
  }
  w->name = writer_part_name(w, part);
  calls_open(w);
}

static void call_parts(writer *w, size_t num) {
  ir_buf_puts(w->out, "}\n");
  w->name = w->f->name;
  calls_open(w);
  writer_call_parts(w, num, "arena, slot, team, tid");
}

static void put_function(const cg_program *p, const plan *plan, size_t index, ir_buf *out) {
  writer w = {.p = p, .plan = plan, .out = out, .f = p->module->funcs.at[index]};
  size_t num = w.f->kernels.num, parts = writer_num_parts(num);
  w.sync = sync_new(p->arena);
  w.workspace = cg_workspaces(p->arena, plan, w.f);
  w.name = w.f->name;
  if (!parts)
    calls_open(&w);
  for (size_t i = 0; i < num; i++) {
    if (parts && i % WRITER_PART_CALLS == 0)
      next_part(&w, i / WRITER_PART_CALLS);
    put_kernel(&w, p->kernels[index][i], p->shared[index][i]);
  }
  put_copies(&w);
  if (parts)
    call_parts(&w, parts);
  ir_buf_puts(out, "}\n");
}

void writer_put_functions(const cg_program *p, const plan *plan, ir_buf *out) {
  for (size_t i = 0; i < p->module->funcs.num; i++)
    put_function(p, plan, i, out);
}
