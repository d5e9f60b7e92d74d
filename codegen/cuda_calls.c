// cuda_calls.c: the calls of a function as text for a GPU: launches, all into one stream, which
// runs them in order. Entry points are named by an enum in front of the functions.
//
//   { // joint_new: wte.new and 51 more                 { // div = cast, div  f32[64,28,28]
//     const joint args = {arena, batch, 0, 52};           char *const args[] = {batch + 0, ...};
//     launch(joint_new, 819, args);                       launch(loop_div_0, 49, args);
//   }                                                   }
//
// Copies to and from memory of the host run beside them, each from its begin to where it is waited for:
//
//   mlrt_gpu_send(gpu, 0, 4096, arena + 64, 8192); // relu.sent
//   ...
//   mlrt_gpu_join(gpu, 0); // relu.sent
//
// Of a kernel that one chip has another for (cg_kernel.own), both are there:
//
//   if (mlrt_gpu_is_own(gpu))
//   { ... launch(matmul_y_own_0, 192, args); }
//   else
//   { ... launch(matmul_y_0, 768, args); }
#include "codegen/cuda_launches.h"
#include "codegen/program_functions.h"

// --- launches --------------------------------------------------------------------------------
static void open_function(writer *w) {
  ir_buf_printf(w->out,
                "\nstatic %svoid run_%s(mlrt_gpu *gpu, char *arena, int slot) {\n"
                "  char *const batch = arena + slot * %lldll;\n"
                "  (void)batch;\n",
                w->name == w->func_name ? "" : "__attribute__((noinline)) ", w->name,
                (long long)w->plan->staging_slot_bytes);
}

static void put_phases(writer *w, const cg_kernel *c, const cg_distinct *d) {
  if (c->own) {
    ir_buf_puts(w->out, "  if (mlrt_gpu_is_own(gpu))\n");
    put_phases(w, c->own, w->p->own_shared[w->func][c->k->id]);
    ir_buf_puts(w->out, "  else\n");
  }
  writer_open_call(w, c);
  ir_buf_puts(w->out, "    char *const args[] = {");
  writer_put_arguments(w, c);
  ir_buf_puts(w->out, "};\n");
  for (int i = 0; i < c->num_phases; i++)
    ir_buf_printf(w->out, "    launch(%s_%d, %lld, args);\n", d->name, i, (long long)c->tasks[i]);
  ir_buf_puts(w->out, "  }\n");
}

static void put_joint(writer *w, const cuda_launch *x) {
  ir_buf_printf(w->out,
                "  { // %s: %s and %zu more\n"
                "    const joint args = {arena, batch, %zu, %zu};\n"
                "    launch(%s, %lld, args);\n  }\n",
                x->joint->name, x->calls.at[0]->k->name, x->calls.num - 1, x->first, x->calls.num,
                x->joint->name, (long long)x->blocks);
}

static void put_copies(writer *w) {
  for (size_t i = 0; i < w->plan->copies.num; i++) {
    const plan_copy *c = &w->plan->copies.at[i];
    if (c->func == w->f)
      ir_buf_printf(w->out, "  mlrt_gpu_copy(gpu, arena + %lld, arena + %lld, %lld); // %s\n",
                    (long long)c->to, (long long)c->from, (long long)c->bytes, c->state->name);
  }
}

static void find_launches(cg_program *p, const plan *plan, size_t func) {
  p->launches[func] = cuda_find_launches(p, plan, func);
  for (size_t i = 0; i < p->launches[func].num; i++)
    if (p->launches[func].at[i].calls.num > 1)
      cuda_choose_joint(p, func, &p->launches[func].at[i]);
}

static void put_transfer(writer *w, const cuda_launch *x) {
  const ir_kernel *k = x->transfer;
  const ir_node *from = k->nodes.at[0]->in[0], *to = k->nodes.at[0];
  long long bytes = (long long)ir_bytes(&to->type);
  if (x->done)
    ir_buf_printf(w->out, "  mlrt_gpu_join(gpu, %d); // %s\n", x->number, k->name);
  else if (k->family == IR_FAMILY_SEND)
    ir_buf_printf(w->out, "  mlrt_gpu_send(gpu, %d, %lld, arena + %lld, %lld); // %s\n", x->number,
                  (long long)plan_host_offset(w->plan, w->f, to),
                  (long long)plan_offset(w->plan, w->f, from), bytes, k->name);
  else
    ir_buf_printf(w->out, "  mlrt_gpu_fetch(gpu, %d, arena + %lld, %lld, %lld); // %s\n", x->number,
                  (long long)plan_offset(w->plan, w->f, to),
                  (long long)plan_host_offset(w->plan, w->f, from), bytes, k->name);
}

static void put_one(writer *w, size_t i) {
  cuda_launch *x = &w->p->launches[w->func].at[i];
  if (x->transfer) {
    put_transfer(w, x);
    return;
  }
  if (!x->joint) {
    put_phases(w, x->calls.at[0], x->only);
    return;
  }
  cuda_put_rows(w->p, w->plan, w->workspace, w->func, x);
  put_joint(w, x);
}

static void put_function(const cg_program *p, const plan *plan, size_t func, ir_buf *out) {
  static const writer_text text = {"gpu, arena, slot", open_function, put_one, NULL};
  writer w = writer_new(p, plan, func, out);
  writer_put_calls(&w, p->launches[func].num, &text);
  put_copies(&w);
  ir_buf_puts(out, "}\n");
}

// --- the file --------------------------------------------------------------------------------
static void put_entries(const cg_program *p, ir_buf *out) {
  ir_buf_puts(out, "// Entry points, in the order of the table below.\nenum {\n");
  for (size_t i = 0; i < p->distinct.num; i++) {
    const cg_distinct *d = p->distinct.at[i];
    for (int j = 0; !d->only_in && j < d->uses.at[0]->num_phases; j++)
      ir_buf_printf(out, "  %s_%d,\n", d->name, j);
  }
  for (size_t i = 0; i < p->joints.num; i++)
    ir_buf_printf(out, "  %s,\n", p->joints.at[i]->name);
  ir_buf_puts(out, "};\n"
                   "#define launch(entry, blocks, parameter) \\\n"
                   "  mlrt_gpu_launch(gpu, entry, blocks, &parameter, sizeof parameter)\n");
  if (p->joints.num)
    ir_buf_puts(out,
                "// Many calls: `num` of them, whose rows begin at word `first` of its table.\n"
                "typedef struct joint {\n  char *arena, *batch;\n  int64_t first, num;\n"
                "} joint;\n");
}

static void put_plain_versions(const cg_program *p, ir_buf *out) {
  for (size_t i = 0; i < p->distinct.num; i++)
    if (p->distinct.at[i]->plain)
      ir_buf_printf(out, "void %s(char *const *args, double *const *taps, int hold);\n",
                    p->distinct.at[i]->plain);
}

void cuda_emit_functions(cg_program *p, const plan *plan, ir_buf *out) {
  ir_buf functions = ir_buf_new(p->arena);
  p->launches = IR_NEW_ARRAY(p->arena, cuda_launches, p->module->funcs.num + 1);
  for (size_t i = 0; i < p->module->funcs.num; i++)
    find_launches(p, plan, i); // all, as an entry's functions decide how wide its rows are
  cuda_find_called(p);
  for (size_t i = 0; i < p->module->funcs.num; i++)
    put_function(p, plan, i, &functions);
  ir_buf_puts(out, "#include \"mlrt.h\"\n\n");
  put_plain_versions(p, out);
  put_entries(p, out);
  ir_buf_puts(out, ir_buf_str(&functions));
}
