// plan_print.c: the plan for people: how much, what holds the peak, and every buffer by the
// kernel that makes it.
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "passes/cost.h"
#include "passes/plan_text.h"

enum { PEAK_SHOWN = 12, NAME_WIDTH = 36, OPS_WIDTH = 48 };

// 1234567 -> "1,234,567"
static const char *grouped(ir_arena *a, int64_t v) {
  char digits[32];
  int n = snprintf(digits, sizeof digits, "%" PRId64, v);
  ir_buf b = ir_buf_new(a);
  for (int i = 0; i < n; i++) {
    if (i > 0 && (n - i) % 3 == 0)
      ir_buf_puts(&b, ",");
    ir_buf_write(&b, &digits[i], 1);
  }
  return ir_buf_str(&b);
}

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

static void print_share(ir_arena *a, ir_buf *out, const plan *p, const char *what, int64_t bytes) {
  ir_buf_printf(out, "  %-24s %16s %6.1f%%\n", what, grouped(a, bytes),
                percent(bytes, p->arena_bytes));
}

static void print_roles(ir_arena *a, ir_buf *out, const plan *p) {
  for (int r = 0; r < IR_NUM_ROLES; r++) {
    int64_t bytes = 0;
    int num = 0;
    for (size_t i = 0; i < p->buffers.num; i++) {
      const plan_buffer *b = &p->buffers.at[i];
      if (b->state && (int)b->state->role == r) {
        bytes += plan_align(b->bytes);
        num++;
      }
    }
    if (num)
      print_share(a, out, p, ir_format(a, "  %s (%d)", ir_role_names[r], num), bytes);
  }
}

static void print_totals(ir_arena *a, ir_buf *out, const plan *p, const ir_module *m) {
  ir_buf_printf(out, "memory plan of %s: %s bytes\n\n", m->name, grouped(a, p->arena_bytes));
  ir_buf_printf(out, "  %-24s %16s   share\n", "what", "bytes");
  print_share(a, out, p, "states", p->state_bytes);
  print_roles(a, out, p);
  print_share(a, out, p, "staging (two batches)", p->staging_bytes);
  print_share(a, out, p, "temporaries", p->temp_bytes);
  ir_buf_printf(out, "  %-24s %16s   arena / bound = %.4f\n", "lower bound",
                grouped(a, p->bound_bytes),
                p->bound_bytes ? (double)p->arena_bytes / (double)p->bound_bytes : 1.0);
}

static void print_buffer(ir_arena *a, ir_buf *out, const plan *p, const plan_buffer *b) {
  const char *note =
      b->reuses < 0 ? "" : ir_format(a, "  in place of %s", p->buffers.at[b->reuses].name);
  const char *life = b->last == INT_MAX ? "whole run" : ir_format(a, "%4d..%d", b->first, b->last);
  ir_buf_printf(out, "    %-*s %-10s %14s %14s  %s%s\n", NAME_WIDTH, fit(a, b->name, NAME_WIDTH),
                plan_kind_names[b->kind], grouped(a, b->bytes), grouped(a, b->offset), life, note);
}

static void print_peak(ir_arena *a, ir_buf *out, const plan *p, const ir_func *f) {
  int64_t bytes;
  int k = plan_peak(a, p, f, &bytes);
  if (k < 0 || bytes == 0)
    return;
  plan_list live = plan_live_at(a, p, f, k);
  ir_buf_printf(out, "  peak: kernel %d (%s), %s bytes in %zu buffers\n", k, f->kernels.at[k]->name,
                grouped(a, bytes), live.num);
  for (size_t i = 0; i < live.num && i < PEAK_SHOWN; i++)
    print_buffer(a, out, p, &p->buffers.at[live.at[i]]);
  if (live.num > PEAK_SHOWN)
    ir_buf_printf(out, "    ... and %zu smaller ones\n", live.num - PEAK_SHOWN);
}

// The states that a kernel computes in place are its outputs too.
static void print_in_place(ir_buf *out, const plan *p, const ir_func *f, const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    const ir_state *s = plan_state_at(p, plan_offset(p, f, n));
    if (s)
      ir_buf_printf(out, "    %-*s in @%s\n", NAME_WIDTH, n->name, s->name);
  }
}

static void print_kernel(ir_arena *a, ir_buf *out, const plan *p, const ir_func *f, size_t *next,
                         const ir_kernel *k) {
  cost c = cost_kernel(a, k);
  ir_buf_printf(out, "  %4d %s: %s, %s flops, %s bytes in, %s out: %s\n", (int)k->id, k->name,
                ir_family_names[k->family], grouped(a, c.flops), grouped(a, c.bytes_read),
                grouped(a, c.bytes_written), fit(a, plan_kernel_ops(a, k), OPS_WIDTH));
  // Buffers of a function are in the order of the kernels that make them.
  for (; *next < p->buffers.num; ++*next) {
    const plan_buffer *b = &p->buffers.at[*next];
    if (!plan_is_temp_of(b, f) || (b->node ? b->node->kernel : b->kernel) != k)
      break;
    print_buffer(a, out, p, b);
  }
  print_in_place(out, p, f, k);
}

static size_t first_buffer(const plan *p, const ir_func *f) {
  size_t i = 0;
  while (i < p->buffers.num && !plan_is_temp_of(&p->buffers.at[i], f))
    i++;
  return i;
}

static void print_func(ir_arena *a, ir_buf *out, const plan *p, const ir_func *f) {
  ir_buf_printf(out, "\nfunction %s: %zu kernels\n", f->name, f->kernels.num);
  print_peak(a, out, p, f);
  ir_buf_printf(out, "  kernels, and the buffers they make (name, kind, bytes, offset, live):\n");
  size_t next = first_buffer(p, f);
  for (size_t k = 0; k < f->kernels.num; k++)
    print_kernel(a, out, p, f, &next, f->kernels.at[k]);
  for (size_t i = 0; i < p->copies.num; i++) {
    const plan_copy *c = &p->copies.at[i];
    if (c->func == f)
      ir_buf_printf(out, "  at the end: copy %s to @%s, %s bytes\n", c->node->name, c->state->name,
                    grouped(a, c->bytes));
  }
}

void plan_print(const plan *p, const ir_module *m, ir_buf *out) {
  ir_arena *a = ir_arena_new();
  print_totals(a, out, p, m);
  ir_buf_printf(out, "\nwhole run (name, kind, bytes, offset):\n");
  for (size_t i = 0; i < p->buffers.num; i++)
    if (p->buffers.at[i].last == INT_MAX)
      print_buffer(a, out, p, &p->buffers.at[i]);
  for (size_t i = 0; i < m->funcs.num; i++)
    print_func(a, out, p, m->funcs.at[i]);
  ir_arena_free(a);
}
