// plan_print.c: the plan for people: how much, what holds the peak, and every buffer by the
// kernel that makes it.
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "passes/plan_facts.h"
#include "passes/plan_text.h"

enum { PEAK_SHOWN = 12, NAME_WIDTH = 36, OPS_WIDTH = 48 };

// A text of at most `width` characters; the middle of longer ones is left out.
static const char *fit(ir_arena *a, const char *s, int width) {
  int len = (int)strlen(s);
  if (len <= width)
    return s;
  int head = (width - 2) / 2, tail = width - 2 - head;
  return ir_format(a, "%.*s..%s", head, s, s + len - tail);
}

static double percent(int64_t part, int64_t whole) {
  return whole ? 100.0 * (double)part / (double)whole : 0;
}

typedef struct printer {
  ir_arena *a;
  ir_buf *out;
  const plan *p;
  const ir_module *m;
  plan_facts facts;
} printer;

// --- totals --------------------------------------------------------------------------------------
static void print_share(const printer *x, const char *what, int64_t bytes) {
  ir_buf_printf(x->out, "  %-24s %16s %6.1f%%\n", what, ir_grouped(x->a, bytes),
                percent(bytes, x->p->arena_bytes));
}

static void print_roles(const printer *x) {
  for (int r = 0; r < IR_NUM_ROLES; r++) {
    int64_t bytes = 0;
    int num = 0;
    for (size_t i = 0; i < x->p->buffers.num; i++) {
      const plan_buffer *b = &x->p->buffers.at[i];
      if (b->state && (int)b->state->role == r) {
        bytes += plan_align(b->bytes);
        num++;
      }
    }
    if (num)
      print_share(x, ir_format(x->a, "  %s (%d)", ir_role_names[r], num), bytes);
  }
}

static void print_bound(const printer *x, const char *what, int64_t bytes) {
  ir_buf_printf(x->out, "  %-24s %16s   arena / bound = %.4f\n", what, ir_grouped(x->a, bytes),
                plan_ratio((double)x->p->arena_bytes, (double)bytes));
}

static void print_micro_batches(const printer *x) {
  int64_t parts = ir_config_count(x->m, "micro_batches"), batch = ir_config_count(x->m, "batch");
  if (parts && batch)
    ir_buf_printf(x->out,
                  "the batch of %" PRId64 " is run as %" PRId64 " micro-batches of %" PRId64 "\n\n",
                  batch, parts, batch / parts);
}

static void print_totals(const printer *x) {
  const plan *p = x->p;
  ir_buf_printf(x->out, "memory plan of %s: %s bytes\n\n", x->m->name,
                ir_grouped(x->a, p->arena_bytes));
  print_micro_batches(x);
  ir_buf_printf(x->out, "  %-24s %16s   share\n", "what", "bytes");
  print_share(x, "states", p->state_bytes);
  print_roles(x);
  print_share(x, "staging (two batches)", p->staging_bytes);
  print_share(x, "temporaries", p->temp_bytes);
  if (p->host_bytes)
    ir_buf_printf(x->out, "  %-24s %16s   besides, in memory of the host\n", "host",
                  ir_grouped(x->a, p->host_bytes));
  print_bound(x, "lower bound", p->bound_bytes);
  print_bound(x, "bound of any order", x->facts.bound_ws);
}

// What the bytes are for when most of them are live, and how many there are per parameter.
static void print_peak_shares(const printer *x) {
  const plan_facts *facts = &x->facts;
  if (!facts->largest)
    return;
  ir_buf_printf(x->out, "\n  %-24s %16s   share   bytes per parameter (%s)\n",
                ir_format(x->a, "at the peak of %s", facts->largest->name), "bytes",
                ir_grouped(x->a, facts->parameters));
  for (int s = 0; s < PLAN_NUM_SHARES; s++)
    if (facts->shares[s])
      ir_buf_printf(x->out, "  %-24s %16s %6.1f%% %9.2f\n", plan_share_names[s],
                    ir_grouped(x->a, facts->shares[s]),
                    percent(facts->shares[s], x->p->arena_bytes),
                    facts->parameters ? (double)facts->shares[s] / (double)facts->parameters : 0);
  if (x->p->arena_bytes > x->p->bound_bytes)
    print_share(x, "gaps", x->p->arena_bytes - x->p->bound_bytes);
}

// --- functions -----------------------------------------------------------------------------------
static void print_buffer(const printer *x, const plan_buffer *b) {
  const char *note =
      b->reuses < 0 ? "" : ir_format(x->a, "  in place of %s", x->p->buffers.at[b->reuses].name);
  const char *life =
      b->last == INT_MAX ? "whole run" : ir_format(x->a, "%4d..%d", b->first, b->last);
  ir_buf_printf(x->out, "    %-*s %-10s %14s %14s  %s%s\n", NAME_WIDTH,
                fit(x->a, b->name, NAME_WIDTH), plan_kind_names[b->kind],
                ir_grouped(x->a, b->bytes), ir_grouped(x->a, b->offset), life, note);
}

static void print_peak(const printer *x, const ir_func *f, const plan_func_facts *facts) {
  int k = facts->peak;
  if (k < 0 || facts->peak_bytes == 0)
    return;
  plan_list live = plan_live_at(x->a, x->p, f, k);
  ir_buf_printf(x->out, "  peak: kernel %d (%s), %s bytes in %zu buffers\n", k,
                f->kernels.at[k]->name, ir_grouped(x->a, facts->peak_bytes), live.num);
  for (size_t i = 0; i < live.num && i < PEAK_SHOWN; i++)
    print_buffer(x, &x->p->buffers.at[live.at[i]]);
  if (live.num > PEAK_SHOWN)
    ir_buf_printf(x->out, "    ... and %zu smaller ones\n", live.num - PEAK_SHOWN);
}

static void print_recomputed(const printer *x, const plan_func_facts *f) {
  if (!f->clones)
    return;
  ir_buf_printf(x->out, "  run again: %d kernels, %s flops, %s bytes; %.4f of the time without\n",
                f->clones, ir_grouped(x->a, f->cloned.flops),
                ir_grouped(x->a, f->cloned.bytes_read + f->cloned.bytes_written),
                plan_ratio(f->time, f->time - f->cloned_time));
}

static void print_sent(const printer *x, const plan_func_facts *f) {
  if (!f->sends)
    return;
  ir_buf_printf(
      x->out,
      "  wait on the host: %d values, %s bytes; for their copies kernels wait %.4f of the time"
      " without\n",
      f->sends, ir_grouped(x->a, f->sent_bytes),
      f->time > 0 ? f->waiting / (f->time - f->cloned_time) : 0);
}

// The states that a kernel computes in place are its outputs too.
static void print_in_place(const printer *x, const ir_func *f, const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    const ir_state *s = plan_state_at(x->p, plan_offset(x->p, f, n));
    if (s)
      ir_buf_printf(x->out, "    %-*s in @%s\n", NAME_WIDTH, n->name, s->name);
  }
}

// What comes behind the ops of a kernel.
static const char *note_of(ir_arena *a, const ir_kernel *k) {
  return k->clone_of ? ir_format(a, ", %s again", k->clone_of->name)
         : k->begin  ? ir_format(a, ", since kernel %d", (int)k->begin->id)
                     : "";
}

static void print_on_host(const printer *x, const ir_kernel *k) {
  for (size_t i = 0; i < x->p->buffers.num; i++)
    if (x->p->buffers.at[i].kind == PLAN_HOST && x->p->buffers.at[i].node == k->anchor)
      print_buffer(x, &x->p->buffers.at[i]);
}

// Buffers of a function by the kernels that make them. They need not begin there: wishes (plan_wishes.c) make lives longer.
typedef struct made {
  int *first; // [kernel] buffer, -1
  int *next;  // [buffer] of the same kernel, -1
} made;

static made find_made(const printer *x, const ir_func *f) {
  made m = {IR_NEW_ARRAY(x->a, int, f->kernels.num + 1),
            IR_NEW_ARRAY(x->a, int, x->p->buffers.num + 1)};
  for (size_t k = 0; k < f->kernels.num; k++)
    m.first[k] = -1;
  for (size_t i = x->p->buffers.num; i-- > 0;) {
    const plan_buffer *b = &x->p->buffers.at[i];
    if (!plan_is_temp_of(b, f))
      continue;
    uint32_t k = b->kernel ? b->kernel->id : b->node->kernel->id;
    m.next[i] = m.first[k];
    m.first[k] = (int)i;
  }
  return m;
}

static void print_kernel(const printer *x, const ir_func *f, const ir_kernel *k, const made *m) {
  cost c = cost_kernel(x->a, k);
  ir_buf_printf(x->out, "  %4d %s: %s, %s flops, %s bytes in, %s out: %s%s\n", (int)k->id, k->name,
                ir_family_names[k->family], ir_grouped(x->a, c.flops),
                ir_grouped(x->a, c.bytes_read), ir_grouped(x->a, c.bytes_written),
                fit(x->a, plan_kernel_ops(x->a, k), OPS_WIDTH), note_of(x->a, k));
  for (int i = m->first[k->id]; i >= 0; i = m->next[i])
    print_buffer(x, &x->p->buffers.at[i]);
  if (k->family == IR_FAMILY_SEND)
    print_on_host(x, k);
  print_in_place(x, f, k);
}

static void print_func(const printer *x, size_t index) {
  const ir_func *f = x->m->funcs.at[index];
  ir_buf_printf(x->out, "\nfunction %s: %zu kernels\n", f->name, f->kernels.num);
  print_peak(x, f, &x->facts.func[index]);
  print_recomputed(x, &x->facts.func[index]);
  print_sent(x, &x->facts.func[index]);
  ir_buf_printf(x->out,
                "  kernels, and the buffers they make (name, kind, bytes, offset, live):\n");
  made m = find_made(x, f);
  for (size_t k = 0; k < f->kernels.num; k++)
    print_kernel(x, f, f->kernels.at[k], &m);
  for (size_t i = 0; i < x->p->copies.num; i++) {
    const plan_copy *c = &x->p->copies.at[i];
    if (c->func == f)
      ir_buf_printf(x->out, "  at the end: copy %s to @%s, %s bytes\n", c->node->name,
                    c->state->name, ir_grouped(x->a, c->bytes));
  }
}

void plan_print(const plan *p, const ir_module *m, ir_buf *out) {
  ir_arena *a = ir_arena_new();
  printer x = {.a = a, .out = out, .p = p, .m = m, .facts = plan_find_facts(a, p, m)};
  print_totals(&x);
  print_peak_shares(&x);
  ir_buf_printf(out, "\nwhole run (name, kind, bytes, offset):\n");
  for (size_t i = 0; i < p->buffers.num; i++)
    if (p->buffers.at[i].last == INT_MAX)
      print_buffer(&x, &p->buffers.at[i]);
  for (size_t i = 0; i < m->funcs.num; i++)
    print_func(&x, i);
  ir_arena_free(a);
}
