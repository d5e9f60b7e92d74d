// program_calls.c: the calls of a function as text for a team of threads.
//
// All threads of the team run the same text. A kernel's tasks are split statically over the
// threads; the tasks of all rows of a merged launch are split as one range. Of a kernel between two barriers of all
// threads, those that are through take what others have not begun (runtime/claims.h):
//
//   { // loop_new: wte.new and 15 more                { // layer.0.q = matmul, add  f32[768,384]
//     static const int64_t calls[][13] = {              char *const args[] = {arena + 64, ...};
//         {64, ..., 8320, 3}, // wte.new                 mlrt_run(me, matmul_q_0, 8, 0, args);
//         {33344, ..., 65536, 20}, // fc.w.new         }
//     };
//     mlrt_run_rows(me, loop_new_0, &calls[0][0], 16, ...);
//   }
// Between windows stands a barrier, or one for some sizes of team only (program_sync.c):
//
//   mlrt_wait(me);
//   mlrt_wait_if(me, 0xfffffee8u);                    not for 2, 4 and 8 threads
//
// What is called is the runtime's (runtime/calls.c): this text is compiled without optimising (CG_USE_CALLS).
#include "codegen/program_functions.h"
#include "passes/cost.h"

// Tasks of a call may be anybody's where nobody is before the barrier in front of it, nor behind the next one: there are
// no uses then for which it matters who did them.
void calls_barrier(writer *w, bool of_all) {
  for (size_t i = w->shared.num; i-- > 0 && of_all;)
    ir_buf_insert(w->out, w->shared.at[i], "_shared");
  w->shared.num = 0;
  w->together = of_all;
}

// Before the calls whose uses were added.
static void put_barrier(writer *w) {
  uint32_t teams = sync_settle(w->sync, w->boundary);
  w->boundary = false;
  if (w->has_calls)
    calls_barrier(w, teams == SYNC_ALL);
  w->has_calls = true;
  if (teams == SYNC_ALL)
    ir_buf_puts(w->out, "  mlrt_wait(me);\n");
  else if (teams)
    ir_buf_printf(w->out, "  mlrt_wait_if(me, 0x%xu);\n", (unsigned)teams);
}

// --- uses ------------------------------------------------------------------------------------
static void add_use(writer *w, const call *x, int phase, int arg, cg_bytes bytes, bool write) {
  bool known = cg_generator_for(w->p->target, x->c->k->family)->touches && x->merged == 1;
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
      add_use(w, x, phase, (int)i, writer_span(w, c->in.at[i]), false);
  for (size_t i = 0; i < c->out.num; i++)
    add_use(w, x, phase, (int)(c->in.num + i), writer_span(w, c->out.at[i]), true);
  int64_t at = c->workspace ? w->workspace[c->k->id] : 0;
  if (c->workspace)
    add_use(w, x, phase, (int)(c->in.num + c->out.num), (cg_bytes){at, at + c->workspace}, true);
}

// --- calls -----------------------------------------------------------------------------------
void calls_open(writer *w) {
  ir_buf_printf(w->out,
                "\nstatic %svoid run_%s(char *arena, int slot, mlrt_team *team, int tid) {\n"
                "  const mlrt_member self = mlrt_member_of(team, tid), *const me = &self;\n"
                "  char *const batch = arena + slot * %lldll;\n"
                "  (void)batch;\n"
                "  (void)me;\n",
                w->name == w->func_name ? "" : "__attribute__((noinline)) ", w->name,
                (long long)w->plan->staging_slot_bytes);
}

// Others look for tasks when they are through with theirs: what takes some microseconds is worth it.
static const double LEAST_SHARED = 20e-6; // seconds

// "    mlrt_run", to which "_shared" may be added; or "    mlrt_run_rows". `seconds`: what all of it takes.
static void put_run_name(writer *w, const char *name, const cg_kernel *c, int64_t tasks,
                         double seconds) {
  ir_buf_printf(w->out, "    %s", name);
  if (w->together && tasks > 2 && !c->keeps && seconds >= LEAST_SHARED)
    IR_PUSH(w->p->arena, w->shared, w->out->len);
}

static void put_run(writer *w, const call *x, int phase) {
  put_run_name(w, "mlrt_run", x->c, x->c->tasks[phase], cost_seconds(w->p->arena, x->c->k));
  ir_buf_printf(w->out, "(me, %s_%d, %lld, %d, args);\n", x->d->name, phase,
                (long long)x->c->tasks[phase], x->shift);
}

static void open_call(writer *w, const call *x) {
  writer_open_call(w, x->c);
  ir_buf_puts(w->out, "    char *const args[] = {");
  writer_put_arguments(w, x->c);
  ir_buf_puts(w->out, "};\n");
}

// Phases of one kernel depend on each other's tasks anyhow.
void calls_phases(writer *w, call *x) {
  add_uses(w, x, 0);
  put_barrier(w);
  open_call(w, x);
  for (int i = 0; i < x->c->num_phases; i++) {
    if (i > 0) {
      calls_barrier(w, true);
      ir_buf_puts(w->out, "    mlrt_wait(me);\n");
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

void calls_merged(writer *w, call *first) {
  const cg_kernel *c = first->c;
  const cg_distinct *d = first->d;
  size_t buffers = c->in.num + c->out.num + (c->workspace > 0), numbers = c->numbers.num;
  ir_buf_printf(w->out, "  { // %s: %s and %zu more = %s\n", d->name, c->k->name, first->merged - 1,
                cg_describe_ops(w->p->arena, c->k));
  ir_buf_printf(w->out, "    static const int64_t calls[][%zu] = {\n", buffers + numbers + 1);
  int64_t tasks = 0;
  double seconds = 0;
  for (size_t i = 0; i < w->window.num; i++) {
    const call *x = &w->window.at[i];
    if (x->d != d || x->merged == 1)
      continue;
    put_row(w, x->c);
    tasks += x->c->tasks[0];
    seconds += cost_seconds(w->p->arena, x->c->k);
  }
  ir_buf_puts(w->out, "    };\n");
  put_run_name(w, "mlrt_run_rows", c, tasks, seconds);
  ir_buf_printf(w->out, "(me, %s_0, &calls[0][0], %zu, %zu, %zu, arena);\n  }\n", d->name,
                first->merged, buffers, numbers);
}

void calls_before_window(writer *w) {
  for (size_t i = 0; i < w->window.num; i++)
    add_uses(w, &w->window.at[i], 0);
  put_barrier(w);
}

void calls_one(writer *w, call *x) {
  open_call(w, x);
  put_run(w, x, 0);
  ir_buf_puts(w->out, "  }\n");
}

void calls_copy(writer *w, const plan_copy *c) {
  sync_use read = {.bytes = {c->from, c->from + c->bytes}},
           write = {.bytes = {c->to, c->to + c->bytes}, .write = true};
  sync_add(w->sync, read);
  sync_add(w->sync, write);
  put_barrier(w);
  ir_buf_printf(w->out, "  mlrt_copy(me, arena + %lld, arena + %lld, %lld); // %s\n",
                (long long)c->to, (long long)c->from, (long long)c->bytes, c->state->name);
}

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
  writer_put_functions(p, plan, out);
}
