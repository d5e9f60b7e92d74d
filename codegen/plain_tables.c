// plain_tables.c: the table of plain calls (mlrt_plain_step).
//
// Each tensor that passes between calls has a buffer of its own: nothing is reused, so what a
// changed parameter does not reach keeps its value from one evaluation to the next.
#include "codegen/plain_step.h"

#include <inttypes.h>

#include "passes/cost.h"

typedef struct tables {
  const cg_program *p;
  const cg_plain_step *s;
  ir_buf *out;
  int *state_buffer, *node_buffer; // by state, by node id; -1: none yet
  ir_buf buffers, args, taps, calls;
  size_t num_buffers, num_args, num_taps, num_calls;
} tables;

static int input_index(const ir_func *f, const ir_node *input) {
  int at = 0;
  for (size_t i = 0; f->nodes.at[i] != input; i++)
    at += f->nodes.at[i]->op == IR_INPUT;
  return at;
}

static int buffer_of(tables *t, const ir_node *n);

static int new_buffer(tables *t, const ir_node *n) {
  const char *from = n->op == IR_READ    ? "MLRT_FROM_STATE"
                     : n->op == IR_INPUT ? "MLRT_FROM_BATCH"
                     : n->stretch_of     ? "MLRT_FROM_BUFFER"
                                         : "MLRT_FROM_CALL";
  int index = n->op == IR_READ    ? (int)n->state->id
              : n->op == IR_INPUT ? input_index(t->s->func, n)
              : n->stretch_of     ? buffer_of(t, n->stretch_of)
                                  : 0;
  int64_t bytes = ir_dtypes[n->type.dtype].bytes;
  ir_buf_printf(&t->buffers, "    {%s, %s, %d, %" PRId64 ", %" PRId64 "},\n", from,
                cg_dtype_constant(n->type.dtype), index, dom_bytes(n) / bytes,
                n->stretch_at / bytes);
  return (int)t->num_buffers++;
}

static int buffer_of(tables *t, const ir_node *n) {
  int *at = n->op == IR_READ ? &t->state_buffer[n->state->id] : &t->node_buffer[n->id];
  if (*at < 0)
    *at = new_buffer(t, n);
  return *at;
}

static void put_arg(tables *t, int64_t v) {
  ir_buf_printf(&t->args, " %" PRId64 ",", v);
  t->num_args++;
}

static void put_tap(tables *t, const cg_tap *x) {
  ir_buf_printf(&t->taps, "    {%" PRId64 ", %d, %s},\n", ir_elements(&x->node->type),
                x->param ? (int)x->param->id : -1, x->guess ? "true" : "false");
  t->num_taps++;
}

static void put_call(tables *t, const cg_plain_call *x) {
  const cg_kernel *c = x->c;
  size_t first_arg = t->num_args, first_tap = t->num_taps;
  ir_buf_puts(&t->args, "   ");
  for (size_t i = 0; i < c->in.num; i++)
    put_arg(t, buffer_of(t, c->in.at[i]));
  for (size_t i = 0; i < c->out.num; i++)
    put_arg(t, buffer_of(t, c->out.at[i]));
  if (c->workspace > 0)
    put_arg(t, 0);
  for (size_t i = 0; i < c->numbers.num; i++)
    put_arg(t, c->numbers.at[i]);
  ir_buf_puts(&t->args, "\n");
  for (size_t i = 0; i < x->taps.num; i++)
    put_tap(t, &x->taps.at[i]);
  int64_t flops = c->k->nodes.num ? cost_kernel(t->p->arena, c->k).flops : 0;
  ir_buf_printf(&t->calls, "    {%s, %zu, %zu, %zu, %zu, %zu, %zu, %s, %" PRId64 "},\n", x->name,
                first_arg, c->in.num, c->out.num, t->num_args - first_arg, first_tap, x->taps.num,
                x->for_loss ? "true" : "false", flops);
  t->num_calls++;
}

static void declare(const tables *t) {
  ir_map *known = ir_map_new(t->p->arena);
  for (size_t i = 0; i < t->s->calls.num; i++) {
    const char *name = t->s->calls.at[i].name;
    if (!name || ir_map_get(known, name))
      continue;
    ir_map_put(known, name, known);
    ir_buf_printf(t->out, "void %s(char *const *args, double *const *taps, int hold);\n", name);
  }
}

// C has no empty arrays: tables end with one row that is not counted.
static void put_table(const tables *t, const char *head, const ir_buf *rows, const char *end) {
  ir_buf_printf(t->out, "\nstatic const %s[] = {\n%s    %s};\n", head, ir_buf_str(rows), end);
}

static int *no_buffers(ir_arena *a, size_t n) {
  int *at = IR_NEW_ARRAY(a, int, n + 1);
  for (size_t i = 0; i < n; i++)
    at[i] = -1;
  return at;
}

void cg_plain_step_table(const cg_program *p, const cg_plain_step *s, ir_buf *out) {
  ir_arena *a = p->arena;
  tables t = {.p = p, .s = s, .out = out};
  t.state_buffer = no_buffers(a, p->module->states.num);
  t.node_buffer = no_buffers(a, s->func->next_id);
  t.buffers = t.args = t.taps = t.calls = ir_buf_new(a);
  for (size_t i = 0; i < s->calls.num; i++)
    if (s->calls.at[i].needed)
      put_call(&t, &s->calls.at[i]);
  ir_buf losses = ir_buf_new(a);
  for (size_t i = 0; i < s->losses.num; i++)
    ir_buf_printf(&losses, "%d, ", buffer_of(&t, s->losses.at[i]));
  declare(&t);
  put_table(&t, "mlrt_plain_buffer plain_buffers", &t.buffers, "{0}");
  put_table(&t, "int64_t plain_args", &t.args, "0");
  put_table(&t, "mlrt_plain_tap plain_taps", &t.taps, "{0}");
  put_table(&t, "mlrt_plain_call plain_calls", &t.calls, "{0}");
  put_table(&t, "int32_t plain_losses", &losses, "0");
  ir_buf_printf(out,
                "\nstatic const mlrt_plain_step plain_step = {\n"
                "    plain_buffers, plain_args, plain_taps, plain_calls, %zu, %zu, %zu, %zu,\n"
                "    plain_losses, %zu};\n",
                t.num_buffers, t.num_args, t.num_taps, t.num_calls, s->losses.num);
}
