// program_functions.c: each function of the module as straight-line calls (program_functions.h).
//
// Calls are gathered into windows: a window ends before a call that touches bytes which one of its
// calls has written (or writes bytes that one has read). What is in one window is independent and
// may run in any order: there, calls of one function become one launch over a table of rows.
#include "codegen/program_functions.h"

enum { MOST_CALLS = 512, PART_CALLS = 128 };

static void put_window(writer *w);

// --- hazards ---------------------------------------------------------------------------------
static bool touched(const plan_regions *r, const cg_spans *s) {
  for (size_t i = 0; i < s->num; i++)
    if (plan_regions_get(r, s->at[i].from, s->at[i].to) != 0)
      return true;
  return false;
}

static bool conflicts(const writer *w, const cg_spans *reads, const cg_spans *writes) {
  return touched(w->written, reads) || touched(w->written, writes) || touched(w->read, writes);
}

static void mark(plan_regions *r, const cg_spans *s) {
  for (size_t i = 0; i < s->num; i++)
    plan_regions_set(r, s->at[i].from, s->at[i].to, 1);
}

static void forget_spans(writer *w) {
  plan_regions_set(w->read, w->bytes.from, w->bytes.to, 0);
  plan_regions_set(w->written, w->bytes.from, w->bytes.to, 0);
}

static void end_window(writer *w, bool boundary) {
  put_window(w);
  forget_spans(w);
  w->boundary = boundary;
}

static void note(writer *w, const cg_spans *reads, const cg_spans *writes) {
  if (conflicts(w, reads, writes))
    end_window(w, true);
  mark(w->read, reads);
  mark(w->written, writes);
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
  add_span(a, writes, workspaces[c->k->id], c->k->workspace);
}

// Rows of a table are offsets in the arena: a batch has another base.
static bool reads_batch(const cg_kernel *c) {
  for (size_t i = 0; i < c->in.num; i++)
    if (c->in.at[i]->op == IR_INPUT)
      return true;
  return false;
}

// Calls of one function become one launch, which stands where its first one is.
static void merge_calls(writer *w) {
  ir_arena_mark here = ir_arena_here(w->scratch);
  ir_map *firsts = ir_map_new(w->scratch); // name of a function -> its first call
  for (size_t i = 0; i < w->window.num; i++) {
    call *x = &w->window.at[i], *first = ir_map_get(firsts, x->d->name);
    x->merged = 1;
    if (reads_batch(x->c))
      continue;
    if (!first) {
      ir_map_put(firsts, x->d->name, x);
    } else {
      first->merged++;
      x->merged = 0;
    }
  }
  ir_arena_back(w->scratch, here);
}

// Which calls become one launch, and where the others start: calls with few tasks leave threads
// idle, the next one of those starts at another thread. (Calls with tasks for all do not: a thread goes on with what it has
// in its caches.)
static void arrange_window(writer *w) {
  enum { FEW = 4 };
  int shift = 0;
  merge_calls(w);
  for (size_t i = 0; i < w->window.num; i++) {
    call *x = &w->window.at[i];
    if (x->merged != 1)
      continue;
    if (x->c->tasks[0] >= FEW)
      continue;
    x->shift = shift;
    shift = (shift + (int)x->c->tasks[0]) % 64;
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
  forget_spans(w); // everything before the inner barrier is settled
  note(w, &reads, &writes);
}

static void copy_spans(ir_arena *a, const plan_copy *c, cg_spans *reads, cg_spans *writes) {
  add_span(a, reads, c->from, c->bytes);
  add_span(a, writes, c->to, c->bytes);
}

static void put_copies(writer *w) {
  put_window(w);
  for (size_t i = 0; i < w->plan->copies.num; i++) {
    const plan_copy *c = &w->plan->copies.at[i];
    if (c->func != w->f)
      continue;
    cg_spans reads = {0}, writes = {0};
    copy_spans(w->p->arena, c, &reads, &writes);
    note(w, &reads, &writes);
    calls_copy(w, c);
  }
}

// Regions know in advance where any span begins and ends.
static plan_regions *new_regions(const writer *w, const cg_spans *s) {
  int64_t *bounds = IR_NEW_ARRAY(w->scratch, int64_t, 2 * s->num + 1);
  for (size_t i = 0; i < s->num; i++) {
    bounds[2 * i] = s->at[i].from;
    bounds[2 * i + 1] = s->at[i].to;
  }
  return plan_regions_new(w->scratch, bounds, 2 * s->num);
}

static void open_windows(writer *w, ir_arena *scratch) {
  cg_spans all = {0};
  w->scratch = scratch;
  for (size_t i = 0; i < w->f->kernels.num; i++)
    cg_kernel_spans(scratch, w->plan, w->workspace, w->p->kernels[w->func][i], &all, &all);
  for (size_t i = 0; i < w->plan->copies.num; i++)
    if (w->plan->copies.at[i].func == w->f)
      copy_spans(scratch, &w->plan->copies.at[i], &all, &all);
  for (size_t i = 0; i < all.num; i++)
    w->bytes = cg_join(w->bytes, all.at[i]);
  w->read = new_regions(w, &all);
  w->written = new_regions(w, &all);
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

// Not optimised, a C function has a place of its own on the stack for the arguments of each call, and compilers take
// more than twice the time for one of twice the calls: unrolled ones are cut. What stands in one part and in the next
// is ordered by the same barriers.
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
    ir_arena *scratch = ir_arena_new();
    open_windows(&w, scratch);
    w.sync = sync_new(p->arena);
    w.together = true;
    writer_put_calls(&w, w.f->kernels.num, &text);
    put_copies(&w);
    calls_barrier(&w, true); // that of the end of a run
    ir_buf_puts(out, "}\n");
    ir_arena_free(scratch);
  }
}
