// dot.c: see dot.h.
#include "ir/dot.h"

static void put_node(const ir_func *f, const ir_node *n, ir_buf *out) {
  const char *shape = n->op == IR_READ || n->op == IR_WRITE ? "cylinder"
                      : n->op == IR_INPUT                   ? "invhouse"
                                                            : "box";
  ir_buf_printf(out, "    \"%s.%s\" [shape=%s label=\"%s\\n%s %s\"];\n", f->name, n->name, shape,
                n->op == IR_WRITE || n->op == IR_READ ? n->state->name : n->name,
                ir_ops[n->op].name, ir_type_str(out->arena, &n->type));
}

static void put_edges(const ir_func *f, const ir_node *n, ir_buf *out) {
  for (int i = 0; i < n->num_in; i++)
    ir_buf_printf(out, "    \"%s.%s\" -> \"%s.%s\";\n", f->name, n->in[i]->name, f->name, n->name);
}

static void put_func(const ir_func *f, ir_buf *out) {
  ir_buf_printf(out, "  subgraph \"cluster_%s\" {\n    label=\"%s\";\n", f->name, f->name);
  for (size_t i = 0; i < f->kernels.num; i++) {
    const ir_kernel *k = f->kernels.at[i];
    ir_buf_printf(out,
                  "    subgraph \"cluster_%s_%zu\" {\n    label=\"%s (%s)\"; style=filled; "
                  "color=\"#e8eef7\";\n",
                  f->name, i, k->name, ir_family_names[k->family]);
    for (size_t j = 0; j < k->nodes.num; j++)
      put_node(f, k->nodes.at[j], out);
    ir_buf_puts(out, "    }\n");
  }
  for (size_t i = 0; i < f->nodes.num; i++)
    if (!f->nodes.at[i]->kernel)
      put_node(f, f->nodes.at[i], out);
  for (size_t i = 0; i < f->nodes.num; i++)
    put_edges(f, f->nodes.at[i], out);
  ir_buf_puts(out, "  }\n");
}

void ir_print_dot(const ir_module *m, ir_buf *out) {
  ir_buf_printf(out, "digraph \"%s\" {\n  node [fontname=\"sans-serif\" fontsize=10];\n", m->name);
  for (size_t i = 0; i < m->funcs.num; i++)
    put_func(m->funcs.at[i], out);
  ir_buf_puts(out, "}\n");
}
