// cuda_calls.c: the calls of a function as text for a GPU: launches, all into one stream, which
// runs them in order. Entry points are named by an enum in front of the functions.
//
//   { // loop_new: wte.new and 15 more                  { // div = cast, div  f32[64,28,28]
//     const struct {                                       char *const args[] = {batch + 0, ...};
//       int64_t num;                                       launch(loop_div_0, 49, args);
//       struct { int64_t end; char *at[6]; } row[16];    }
//     } rows = {16, {
//         {9, {arena + 64, ..., (char *)8320ll}}, // wte.new
//         {73, {arena + 33344, ...}}, // fc.w.new
//     }};
//     launch(loop_new_0_rows, 312, rows);
//   }
// The parameter of a launch has at most 4 KiB: merged launches with more rows are cut.
#include "codegen/program_functions.h"

enum { PARAMETER_BYTES = 4096 };

static size_t width_of(const cg_kernel *c) {
  return c->in.num + c->out.num + (c->workspace > 0) + c->numbers.num;
}

// k_rows of the prelude: a count, then rows of an end and the arguments.
static size_t most_rows(const cg_kernel *c) {
  return (PARAMETER_BYTES - 8) / (8 + 8 * width_of(c));
}

static void open_function(writer *w) {
  ir_buf_printf(w->out,
                "\nstatic %svoid run_%s(mlrt_gpu *gpu, char *arena, int slot) {\n"
                "  char *const batch = arena + slot * %lldll;\n"
                "  (void)batch;\n",
                w->name == w->f->name ? "" : "__attribute__((noinline)) ", w->name,
                (long long)w->plan->staging_slot_bytes);
}

static void before_window(writer *w) {
  (void)w; // the stream's order is all the order that there is
}

static void put_launch(writer *w, const call *x, int phase) {
  ir_buf_printf(w->out, "    launch(%s_%d, %lld, args);\n", x->d->name, phase,
                (long long)x->c->tasks[phase]);
}

static void put_phases(writer *w, call *x) {
  writer_open_call(w, x);
  ir_buf_puts(w->out, "    char *const args[] = {");
  writer_put_arguments(w, x->c);
  ir_buf_puts(w->out, "};\n");
  for (int i = 0; i < x->c->num_phases; i++)
    put_launch(w, x, i);
  ir_buf_puts(w->out, "  }\n");
}

// --- many calls in one launch ----------------------------------------------------------------
static bool in_launch(const call *x, const cg_distinct *d) {
  return x->d == d && x->merged != 1;
}

static void open_rows(writer *w, const cg_kernel *c, size_t rows, size_t num) {
  ir_buf_printf(w->out,
                "    const struct {\n      int64_t num;\n      struct {\n        int64_t end;\n"
                "        char *at[%zu];\n      } row[%zu];\n    } rows = {%zu, {\n",
                width_of(c), rows, num);
}

static void put_merged(writer *w, call *first) {
  cg_distinct *d = first->d;
  const cg_kernel *c = first->c;
  size_t rows = most_rows(c), left = first->merged, in_part = 0;
  int64_t tasks = 0;
  d->rows = d->rows > rows ? d->rows : rows;
  for (size_t i = 0; i < w->window.num; i++) {
    const call *x = &w->window.at[i];
    if (!in_launch(x, d))
      continue;
    if (in_part == 0) {
      ir_buf_printf(w->out, "  { // %s: %s and %zu more = %s\n", d->name, x->c->k->name,
                    (left < rows ? left : rows) - 1, cg_describe_ops(w->p->arena, c->k));
      open_rows(w, c, rows, left < rows ? left : rows);
    }
    tasks += x->c->tasks[0];
    ir_buf_printf(w->out, "        {%lld, {", (long long)tasks);
    writer_put_arguments(w, x->c);
    ir_buf_printf(w->out, "}}, // %s\n", x->c->k->name);
    left--;
    if (++in_part == rows || left == 0) {
      ir_buf_printf(w->out, "    }};\n    launch(%s_0_rows, %lld, rows);\n  }\n", d->name,
                    (long long)tasks);
      in_part = 0;
      tasks = 0;
    }
  }
}

static void put_copy(writer *w, const plan_copy *c) {
  ir_buf_printf(w->out, "  mlrt_gpu_copy(gpu, arena + %lld, arena + %lld, %lld); // %s\n",
                (long long)c->to, (long long)c->from, (long long)c->bytes, c->state->name);
}

const call_text cuda_calls = {open_function, "gpu, arena, slot", before_window, put_phases,
                              put_phases,    put_merged,         put_copy};

// --- the file --------------------------------------------------------------------------------
static void put_entries(const cg_program *p, ir_buf *out) {
  ir_buf_puts(out, "// Entry points, in the order of the table below.\nenum {\n");
  for (size_t i = 0; i < p->distinct.num; i++) {
    const cg_distinct *d = p->distinct.at[i];
    for (int j = 0; j < d->uses.at[0]->num_phases; j++)
      ir_buf_printf(out, "  %s_%d,\n", d->name, j);
    if (d->rows)
      ir_buf_printf(out, "  %s_0_rows,\n", d->name);
  }
  ir_buf_puts(out, "};\n"
                   "#define launch(entry, blocks, parameter) \\\n"
                   "  mlrt_gpu_launch(gpu, entry, blocks, &parameter, sizeof parameter)\n");
}

static void put_plain_versions(const cg_program *p, ir_buf *out) {
  for (size_t i = 0; i < p->distinct.num; i++)
    if (p->distinct.at[i]->plain)
      ir_buf_printf(out, "void %s(char *const *args, double *const *taps, int hold);\n",
                    p->distinct.at[i]->plain);
}

void cuda_emit_functions(const cg_program *p, const plan *plan, ir_buf *out) {
  ir_buf functions = ir_buf_new(p->arena);
  writer_put_functions(p, plan, &cuda_calls, &functions); // sets cg_distinct.rows
  ir_buf_puts(out, "#include \"mlrt.h\"\n\n");
  put_plain_versions(p, out);
  put_entries(p, out);
  ir_buf_puts(out, ir_buf_str(&functions));
}
