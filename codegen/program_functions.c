// program_functions.c: each function of the module as straight-line calls (program_functions.h).
//
// Calls are gathered into windows: a window ends before a call that touches bytes which one of its
// calls has written (or writes bytes that one has read). What is in one window is independent and
// may run in any order: there, calls of one function become one launch over a table of rows.
#include "codegen/program_functions.h"

enum { MOST_CALLS = 512, PART_CALLS = 128 };

static void put_window(writer *w);

// --- hazards ---------------------------------------------------------------------------------
static bool conflicts(const writer *w, const cg_spans *reads, const cg_spans *writes) {
  return cg_spans_overlap(&w->written, reads) || cg_spans_overlap(&w->written, writes) ||
         cg_spans_overlap(&w->read, writes);
}

static void end_window(writer *w, bool boundary) {
  put_window(w);
  w->read.num = w->written.num = 0;
  w->boundary = boundary;
}

static void note(writer *w, const cg_spans *reads, const cg_spans *writes) {
  if (conflicts(w, reads, writes))
    end_window(w, true);
  for (size_t i = 0; i < reads->num; i++)
    IR_PUSH(w->p->arena, w->read, reads->at[i]);
  for (size_t i = 0; i < writes->num; i++)
    IR_PUSH(w->p->arena, w->written, writes->at[i]);
}

cg_bytes writer_span(const writer *w, const ir_node *n) {
  int64_t at = plan_offset(w->plan, w->f, n);
  BUG_IF(at < 0, "%s has no place", n->name);
  return (cg_bytes){at, at + dom_bytes(n)};
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

static void add_span(ir_arena *a, cg_spans *s, int64_t at, int64_t bytes) {
  cg_bytes x = {at, at + bytes};
  if (bytes > 0)
    IR_PUSH(a, *s, x);
}

void cg_kernel_spans(ir_arena *a, const plan *p, const int64_t *workspaces, const cg_kernel *c,
                     cg_spans *reads, cg_spans *writes) {
  for (size_t i = 0; i < c->in.num; i++)
    if (c->in.at[i]->op != IR_INPUT)
      add_span(a, reads, plan_offset(p, c->func, c->in.at[i]), dom_bytes(c->in.at[i]));
  for (size_t i = 0; i < c->out.num; i++)
    add_span(a, writes, plan_offset(p, c->func, c->out.at[i]), dom_bytes(c->out.at[i]));
  add_span(a, writes, workspaces[c->k->id], c->workspace);
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
  cg_spans reads = {0}, writes = {0};
  cg_kernel_spans(w->p->arena, w->plan, w->workspace, c, &reads, &writes);
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
    cg_spans reads = {0}, writes = {0};
    add_span(w->p->arena, &reads, c->from, c->bytes);
    add_span(w->p->arena, &writes, c->to, c->bytes);
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
writer writer_new(const cg_program *p, const plan *plan, size_t func, ir_buf *out) {
  writer w = {.p = p, .plan = plan, .out = out, .f = p->module->funcs.at[func], .func = func};
  w.func_name = cg_function_name(p, func);
  w.workspace = cg_workspaces(p->arena, plan, w.f);
  return w;
}

static const char *part_name(const writer *w, size_t part) {
  return ir_format(w->p->arena, "%s_part_%zu", w->func_name, part);
}

static void put_range(writer *w, const writer_text *t, const char *name, size_t begin, size_t end) {
  w->name = name;
  t->open(w);
  for (size_t i = begin; i < end; i++)
    t->put(w, i);
}

// Compilers take more than twice the time for a C function of twice the calls: unrolled ones are
// cut. What stands in one part and in the next is ordered by the same barriers.
static size_t put_parts(writer *w, size_t num, const writer_text *t) {
  size_t parts = 0;
  for (size_t i = 0; i < num; i += PART_CALLS) {
    put_range(w, t, part_name(w, parts++), i, num - i < PART_CALLS ? num : i + PART_CALLS);
    if (t->settle)
      t->settle(w);
    ir_buf_puts(w->out, "}\n");
  }
  return parts;
}

void writer_put_calls(writer *w, size_t num, const writer_text *t) {
  size_t parts = num > MOST_CALLS ? put_parts(w, num, t) : 0;
  put_range(w, t, w->func_name, 0, parts ? 0 : num);
  for (size_t i = 0; i < parts; i++)
    ir_buf_printf(w->out, "  run_%s(%s);\n", part_name(w, i), t->parameters);
}

static void put_call(writer *w, size_t i) {
  put_kernel(w, w->p->kernels[w->func][i], w->p->shared[w->func][i]);
}

void writer_put_functions(const cg_program *p, const plan *plan, ir_buf *out) {
  static const writer_text text = {"arena, slot, team, tid", calls_open, put_call, put_window};
  for (size_t i = 0; i < p->module->funcs.num; i++) {
    writer w = writer_new(p, plan, i, out);
    w.sync = sync_new(p->arena);
    writer_put_calls(&w, w.f->kernels.num, &text);
    put_copies(&w);
    ir_buf_puts(out, "}\n");
  }
}
