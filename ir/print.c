// print.c: the text form of a module (docs/ir.md). What is printed here, parse.c
// reads back to a module that prints the same.
//
// Kernels are printed in their order, each as one block. The nodes between them
// (leaves, views, writes) come as early as node order and their operands allow.
#include "ir/internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>

// --- small pieces ------------------------------------------------------------------------
static void put_type(ir_buf *b, const ir_type *t) {
  ir_buf_printf(b, "%s[", ir_dtypes[t->dtype].name);
  for (int i = 0; i < t->rank; i++)
    ir_buf_printf(b, "%s%" PRId64, i ? "," : "", t->dims[i]);
  ir_buf_puts(b, "]");
}

static void put_string(ir_buf *b, const char *s) {
  ir_buf_puts(b, "\"");
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\')
      ir_buf_printf(b, "\\%c", c);
    else if (c == '\n')
      ir_buf_puts(b, "\\n");
    else if (c == '\t')
      ir_buf_puts(b, "\\t");
    else if (c < 32 || c == 127)
      ir_buf_printf(b, "\\x%02x", c);
    else
      ir_buf_write(b, s, 1);
  }
  ir_buf_puts(b, "\"");
}

// Settings are mostly counts: 2000, not 2000.0.
static void put_setting_number(ir_buf *b, double v) {
  if (v == rint(v) && fabs(v) < 9e15 && !(v == 0 && signbit(v)))
    ir_buf_printf(b, "%.0f", v);
  else
    ir_buf_double(b, v);
}

static void put_setting_value(ir_buf *b, const ir_setting *s) {
  if (s->kind == IR_SET_NUM)
    put_setting_number(b, s->num);
  else if (s->kind == IR_SET_STR)
    put_string(b, s->str);
  else
    ir_buf_printf(b, "$%s", s->str);
}

const char *ir_setting_text(ir_arena *a, const ir_setting *s) {
  ir_buf b = ir_buf_new(a);
  put_setting_value(&b, s);
  return ir_buf_str(&b);
}

static void put_loc(ir_buf *b, const ir_loc *loc) {
  if (loc->line)
    ir_buf_printf(b, " loc(%u:%u)", loc->line, loc->col);
}

static void put_ints(ir_buf *b, const ir_attr *a) {
  ir_buf_puts(b, "[");
  for (int i = 0; i < a->as.ints.num; i++)
    ir_buf_printf(b, "%s%" PRId64, i ? "," : "", a->as.ints.at[i]);
  ir_buf_puts(b, "]");
}

static void put_attr(ir_buf *b, const ir_attr *a) {
  ir_buf_printf(b, "%s=", ir_attr_infos[a->key].name);
  switch (ir_attr_infos[a->key].kind) {
  case IR_AK_INT:
    ir_buf_printf(b, "%" PRId64, a->as.i);
    break;
  case IR_AK_NUM:
    ir_buf_double(b, a->as.num);
    break;
  case IR_AK_INTS:
    put_ints(b, a);
    break;
  case IR_AK_BOOL:
    ir_buf_puts(b, a->as.i ? "true" : "false");
    break;
  }
}

// --- one node ------------------------------------------------------------------------------
static void put_attrs(ir_buf *b, const ir_node *n) {
  for (int i = 0; i < n->num_attrs; i++) {
    ir_buf_puts(b, i ? ", " : " {");
    put_attr(b, &n->attrs[i]);
  }
  if (n->num_attrs)
    ir_buf_puts(b, "}");
}

static void put_band(ir_buf *b, const char *what, const ir_band *band) {
  if (band && band->lower > band->upper)
    ir_buf_printf(b, "  # %s: nowhere", what);
  else if (band)
    ir_buf_printf(b, "  # %s: column - row in %" PRId64 "..%" PRId64, what, band->lower,
                  band->upper);
}

static void put_node(ir_buf *b, const ir_node *n, int indent) {
  ir_buf_printf(b, "%*s", indent, "");
  if (n->op != IR_WRITE)
    ir_buf_printf(b, "%%%s = ", n->name);
  ir_buf_puts(b, ir_ops[n->op].name);
  const char *gap = " ";
  if (n->state) {
    ir_buf_printf(b, " @%s", n->state->name);
    gap = ", ";
  }
  for (int i = 0; i < n->num_in; i++) {
    ir_buf_printf(b, "%s%%%s", gap, n->in[i] ? n->in[i]->name : "none");
    gap = ", ";
  }
  put_attrs(b, n);
  if (n->op != IR_WRITE) {
    ir_buf_puts(b, " : ");
    put_type(b, &n->type);
  }
  put_loc(b, &n->loc);
  put_band(b, "not 0", n->nonzero); // facts that passes find again: comments, not syntax
  put_band(b, "needed", n->needed);
  ir_buf_puts(b, "\n");
}

// --- functions ------------------------------------------------------------------------------
typedef struct func_printer {
  const ir_func *f;
  ir_buf *out;
  ir_note_fn note;
  void *data;
  bool *done;                      // by node id
  size_t next;                     // first node that the free list has not seen
  IR_VEC(const ir_node *) waiting; // outside kernels, not yet printed
} func_printer;

static void print_node(func_printer *p, const ir_node *n, int indent) {
  put_node(p->out, n, indent);
  p->done[n->id] = true;
  if (p->note)
    p->note(p->data, n, p->out);
}

static bool ready(const func_printer *p, const ir_node *n) {
  for (int i = 0; i < n->num_in; i++)
    if (!n->in[i] || n->in[i]->id >= p->f->next_id || !p->done[n->in[i]->id])
      return false;
  return true;
}

// Prints the waiting nodes that can be printed, up to and without the node `stop`.
static void print_free(func_printer *p, const ir_node *stop) {
  for (; p->next < p->f->nodes.num && p->f->nodes.at[p->next] != stop; p->next++)
    if (!p->f->nodes.at[p->next]->kernel)
      IR_PUSH(p->out->arena, p->waiting, p->f->nodes.at[p->next]);
  size_t kept = 0;
  for (size_t i = 0; i < p->waiting.num; i++) {
    const ir_node *n = p->waiting.at[i];
    if (p->done[n->id])
      continue; // stood inside a kernel
    if (ready(p, n))
      print_node(p, n, 2);
    else
      p->waiting.at[kept++] = n;
  }
  p->waiting.num = kept;
}

static const ir_node *last_in_order(const ir_kernel *k, const size_t *position) {
  const ir_node *last = k->nodes.at[0];
  for (size_t i = 1; i < k->nodes.num; i++)
    if (position[k->nodes.at[i]->id] > position[last->id])
      last = k->nodes.at[i];
  return last;
}

// Views of one member that another member uses stand between the two.
static void print_inner_operands(func_printer *p, const ir_node *n) {
  for (int i = 0; i < n->num_in; i++) {
    const ir_node *x = n->in[i];
    if (!x || x->kernel || x->id >= p->f->next_id || p->done[x->id])
      continue;
    print_inner_operands(p, x);
    if (ready(p, x))
      print_node(p, x, 4);
  }
}

static void print_kernel(func_printer *p, const ir_kernel *k) {
  ir_buf_printf(p->out, "  kernel %s %s", k->name, ir_family_names[k->family]);
  if (k->anchor && k->anchor != k->nodes.at[k->nodes.num - 1])
    ir_buf_printf(p->out, " anchor=%%%s", k->anchor->name);
  if (k->clone_of)
    ir_buf_printf(p->out, " again=%s", k->clone_of->name);
  if (k->begin)
    ir_buf_printf(p->out, " begin=%s", k->begin->name);
  for (size_t i = 0; i < k->nodes.num; i++)
    if (k->nodes.at[i]->stored)
      ir_buf_printf(p->out, " stores=%%%s", k->nodes.at[i]->name);
  ir_buf_puts(p->out, " {\n");
  for (size_t i = 0; i < k->nodes.num; i++) {
    print_inner_operands(p, k->nodes.at[i]);
    print_node(p, k->nodes.at[i], 4);
  }
  ir_buf_puts(p->out, "  }\n");
}

static void print_kernels(func_printer *p) {
  const ir_func *f = p->f;
  size_t *position = IR_NEW_ARRAY(p->out->arena, size_t, f->next_id + 1);
  for (size_t i = 0; i < f->nodes.num; i++)
    position[f->nodes.at[i]->id] = i;
  size_t reached = 0;
  for (size_t i = 0; i < f->kernels.num; i++) {
    const ir_kernel *k = f->kernels.at[i];
    if (k->nodes.num == 0)
      continue;
    const ir_node *last = last_in_order(k, position);
    if (position[last->id] >= reached) { // else: everything before it has been seen
      reached = position[last->id];
      print_free(p, last);
    } else {
      print_free(p, p->next < f->nodes.num ? f->nodes.at[p->next] : NULL);
    }
    print_kernel(p, k);
  }
}

// What is left: nodes after the last kernel, and in a faulty function everything else.
static void print_rest(func_printer *p) {
  print_free(p, NULL);
  for (size_t i = 0; i < p->f->nodes.num; i++)
    if (!p->done[p->f->nodes.at[i]->id])
      print_node(p, p->f->nodes.at[i], 2);
}

static void print_result(ir_buf *b, const ir_result *r) {
  static const char *const kinds[] = {"loss", "metric", "output"};
  ir_buf_printf(b, "  result %s %s = %%%s\n", kinds[r->kind], r->name, r->node->name);
}

void ir_print_func_notes(const ir_func *f, ir_buf *out, ir_note_fn note, void *data) {
  func_printer p = {.f = f, .out = out, .note = note, .data = data};
  p.done = IR_NEW_ARRAY(out->arena, bool, f->next_id + 1);
  ir_buf_printf(out, "func %s%s {\n", f->name, f->ordered ? " ordered" : "");
  print_kernels(&p);
  print_rest(&p);
  for (size_t i = 0; i < f->results.num; i++)
    print_result(out, &f->results.at[i]);
  ir_buf_puts(out, "}\n");
}

static void print_func(const ir_func *f, ir_buf *out) {
  ir_print_func_notes(f, out, NULL, NULL);
}

// --- modules --------------------------------------------------------------------------------
static void print_state(ir_buf *b, const ir_state *s) {
  ir_buf_printf(b, "state %s : ", s->name);
  put_type(b, &s->type);
  ir_buf_printf(b, " role=%s", ir_role_names[s->role]);
  if (s->role == IR_ROLE_FLAG || s->value != 0) {
    ir_buf_puts(b, " value=");
    ir_buf_double(b, s->value);
  }
  if (s->as)
    ir_buf_printf(b, " as=%s", s->as->name);
  put_loc(b, &s->loc);
  ir_buf_puts(b, "\n");
}

static void print_data(ir_buf *b, const ir_data *d) {
  ir_buf_printf(b, "data %s = %s(", d->name, d->format);
  for (size_t i = 0; i < d->files.num; i++) {
    ir_buf_puts(b, i ? ", " : "");
    put_string(b, d->files.at[i]);
  }
  ir_buf_puts(b, ")");
  for (size_t i = 0; i < d->settings.num; i++) {
    ir_buf_printf(b, "%s%s=", i ? ", " : " {", d->settings.at[i].key);
    put_setting_value(b, &d->settings.at[i]);
  }
  ir_buf_puts(b, d->settings.num ? "}" : "");
  put_loc(b, &d->loc);
  ir_buf_puts(b, "\n");
}

static void print_config(ir_buf *b, const ir_setting *s) {
  ir_buf_printf(b, "config %s = ", s->key);
  put_setting_value(b, s);
  ir_buf_puts(b, "\n");
}

void ir_print(const ir_module *m, ir_buf *out) {
  ir_buf_printf(out, "mltc-ir 1\nmodule %s\n", m->name);
  if (m->states.num + m->data.num + m->config.num)
    ir_buf_puts(out, "\n");
  for (size_t i = 0; i < m->states.num; i++)
    print_state(out, m->states.at[i]);
  for (size_t i = 0; i < m->data.num; i++)
    print_data(out, m->data.at[i]);
  for (size_t i = 0; i < m->config.num; i++)
    print_config(out, &m->config.at[i]);
  for (size_t i = 0; i < m->funcs.num; i++) {
    ir_buf_puts(out, "\n");
    print_func(m->funcs.at[i], out);
  }
}
