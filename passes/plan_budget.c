// plan_budget.c: what stands in the way when a plan does not fit its budget.
#include "passes/plan_facts.h"
#include "passes/plan_text.h"

#include <inttypes.h>

enum { SHOWN = 6 }; // values at the peak

static const char *text_of(ir_buf *out, int64_t bytes) {
  return ir_bytes_text(out->arena, bytes, bytes);
}

static const char *place_of(ir_arena *a, const ir_node *n) {
  return n && n->loc.file ? ir_format(a, "  %s:%u", n->loc.file->path, n->loc.line) : "";
}

static void print_whole_run(const plan_facts *x, const plan *p, ir_buf *out) {
  ir_buf_printf(out, "\n  for the whole run: %s", text_of(out, p->state_bytes + p->staging_bytes));
  int64_t parameters = 0, moments = 0;
  for (size_t i = 0; i < p->buffers.num; i++) {
    parameters += x->share[i] == PLAN_SHARE_PARAMETER ? p->buffers.at[i].bytes : 0;
    moments += x->share[i] == PLAN_SHARE_MOMENT ? p->buffers.at[i].bytes : 0;
  }
  ir_buf_printf(out, " (parameters %s, moments %s, batches %s)", text_of(out, parameters),
                text_of(out, moments), text_of(out, p->staging_bytes));
}

static void print_peak(const plan_facts *x, const plan *p, ir_buf *out) {
  const ir_func *f = x->largest;
  if (!f)
    return;
  const ir_kernel *k = f->kernels.at[x->most.peak];
  ir_buf_printf(out, "\n  at the peak, kernel %d of %s: %s%s", x->most.peak, f->name, k->name,
                place_of(out->arena, k->anchor));
  plan_list live = plan_live_at(out->arena, p, f, x->most.peak);
  for (size_t i = 0; i < live.num && i < SHOWN; i++) {
    const plan_buffer *b = &p->buffers.at[live.at[i]];
    ir_buf_printf(out, "\n    %-32s %10s%s", b->name, text_of(out, b->bytes),
                  place_of(out->arena, b->node));
  }
  if (live.num > SHOWN)
    ir_buf_printf(out, "\n    and %zu smaller ones", live.num - SHOWN);
}

void plan_print_shortfall(const plan *p, const ir_module *m, int64_t budget, int64_t works,
                          bool divides, ir_buf *out) {
  plan_facts x = plan_find_facts(out->arena, p, m);
  ir_buf_printf(out, "does not fit %s: its plan takes %s, %" PRId64 " bytes too much",
                text_of(out, budget), text_of(out, p->arena_bytes), p->arena_bytes - budget);
  bool proof = x.bound_ws > budget;
  ir_buf_printf(
      out,
      "\n  proven%s: whatever is computed again, and in whatever order these kernels run, "
      "%s are needed%s",
      divides ? ", for the batch undivided" : "", text_of(out, x.bound_ws),
      proof ? "" : "; that is within the budget, so a better plan may exist");
  print_whole_run(&x, p, out);
  print_peak(&x, p, out);
  if (works)
    ir_buf_printf(out, "\n  this would work%s: --memory-budget=%" PRId64,
                  divides ? ", undivided" : "", works);
}
