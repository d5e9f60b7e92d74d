// plain.c: the plain version of a kernel, for `./trainer check` (plain_prelude.h).
//
// Each member becomes one array of doubles. Pointwise members of one shape share a loop nest when
// they read each other at the very element that is computed; any other member has its own:
//
//   double *const v0_h = all + 0, *const v1_s = all + 8192;
//   for (int64_t i0 = 0; i0 < 64; i0++)
//     for (int64_t i1 = 0; i1 < 128; i1++) {
//       const int64_t at = i0 * 128 + i1;
//       v0_h[at] = (((const double *)args[0])[at] + ((const double *)args[2])[i1]); // add
//     }
//
// Where none needs more of an element than its number, one loop counts that.
//
// Views are index arithmetic (dom_layout), so a plain version shares nothing with the fast one but
// the layouts. Buffers of both float types hold doubles: plain versions called one after the other
// (plain_step.h) are then double precision from the first to the last.
//
// A tap is a member whose values the caller wants. A gradient is given away: what the optimiser's
// kernel computes and keeps to itself can be compared with finite differences. A value that has no
// gradient by rule (a comparison, floor, stop) is kept by one run and used again by the next, which
// therefore computes the smooth function that gradients are gradients of. Of max, min and abs the
// choice is kept:
//
//   v1_gt[at] = k_hold(taps, hold, 0, at, (v0_y[at] > 0)); // gt
#include "codegen/plain_parts.h"
#include "ir/row_update.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "text_plain_prelude_h.h"

const char *cg_plain_prelude(void) {
  return text_plain_prelude_h;
}

// --- loop nests that pointwise members share -------------------------------------------------
static bool same_dims(const ir_type *x, const ir_type *y) {
  return x->rank == y->rank && memcmp(x->dims, y->dims, sizeof *x->dims * (size_t)x->rank) == 0;
}

// False when operand i may be an element of this nest that is not the present one.
static bool is_settled(const plain *p, const ir_node *n, int i) {
  dom_layout l;
  BUG_IF(!dom_layout_of(n->in[i], &l), "%s has no layout", n->in[i]->name);
  if (plain_member(p, l.buffer) < (int)p->nest)
    return true;
  indices x = plain_indices(p, n->in[i]->type.rank);
  return strcmp(plain_through_views(p, &l, &x), p->at) == 0;
}

static bool joins(const plain *p, const ir_node *n) {
  if (!p->at || ir_ops[n->op].cls != IR_CLASS_POINTWISE ||
      !same_dims(&n->type, &p->c->k->nodes.at[p->nest]->type))
    return false;
  for (int i = 0; i < n->num_in; i++)
    if (!is_settled(p, n, i))
      return false;
  return true;
}

// An index of the loops: i0, i1, ...
static bool names_index(const char *text) {
  for (const char *i = text; (i = strchr(i, 'i')); i++)
    if (isdigit((unsigned char)i[1]) &&
        (i == text || !(isalnum((unsigned char)i[-1]) || i[-1] == '_')))
      return true;
  return false;
}

// Where no member asks for more than the element's number, one loop counts that: compilers are faster.
static void close_nest(plain *p) {
  if (!p->at)
    return;
  const char *body = ir_buf_str(&p->body);
  const ir_type *t = &p->c->k->nodes.at[p->nest]->type;
  p->out = p->around;
  if (t->rank > 1 && !names_index(body)) {
    ir_buf_printf(p->out, "  for (int64_t at = 0; at < %" PRId64 "; at++) {\n", ir_elements(t));
  } else {
    plain_open_loops(p, "i", t);
    ir_buf_printf(p->out, "    const int64_t at = %s;\n", p->at);
  }
  ir_buf_printf(p->out, "%s  }\n", body);
  p->at = NULL;
}

static void open_nest(plain *p, size_t i) {
  const ir_node *n = p->c->k->nodes.at[i];
  indices x = plain_indices(p, n->type.rank);
  p->nest = i;
  p->at = plain_row_major(p, &n->type, &x);
  p->body = ir_buf_new(p->a);
  p->around = p->out;
  p->out = &p->body;
}

static void put_member(plain *p, size_t i) {
  const ir_node *n = p->c->k->nodes.at[i];
  if (joins(p, n)) {
    plain_put_value(p, n);
    return;
  }
  close_nest(p);
  if (ir_ops[n->op].cls == IR_CLASS_POINTWISE) {
    open_nest(p, i);
    plain_put_value(p, n);
    return;
  }
  if (n->op == IR_MATMUL) { // variables of its own, where it is not the only one
    bool alone = p->c->k->family == IR_FAMILY_MATMUL;
    ir_buf_puts(p->out, alone ? "" : "  {\n");
    plain_put_matmul(p, n);
    ir_buf_puts(p->out, alone ? "" : "  }\n");
    return;
  }
  if (n->op == IR_CONCAT) {
    plain_put_concat(p, n);
    return;
  }
  if (ir_is_scatter(n)) {
    ir_buf_puts(p->out, "  {\n");
    plain_put_scatter(p, n);
    ir_buf_puts(p->out, "  }\n");
    return;
  }
  plain_open_loops(p, "i", &n->type);
  plain_put_value(p, n);
  ir_buf_puts(p->out, "  }\n");
}

// --- the kernel -------------------------------------------------------------------------------
// A gradient may be a view of a member: the caller gets its elements in their own order.
static void put_gradients(const plain *p) {
  for (size_t i = 0; i < p->taps->num; i++) {
    const ir_node *n = p->taps->at[i].node;
    if (!p->taps->at[i].param)
      continue;
    indices x = plain_indices(p, n->type.rank);
    const char *to = plain_row_major(p, &n->type, &x), *from = plain_element(p, n, &x);
    const ir_node *base = dom_base(n);
    const char *whole = plain_var(p, base);
    ir_buf_puts(p->out, "  if (hold == K_RECORD)\n");
    if (whole && strcmp(from, ir_format(p->a, "%s[%s]", whole, to)) == 0) {
      ir_buf_printf(p->out, "    memcpy(taps[%zu], %s, %" PRId64 " * sizeof(double));\n", i, whole,
                    ir_elements(&n->type));
      continue;
    }
    plain_open_loops(p, "i", &n->type);
    ir_buf_printf(p->out, "    taps[%zu][%s] = %s;\n  }\n", i, to, from);
  }
}

// One block of zeros for the arrays of all members.
static void put_arrays(plain *p) {
  ir_buf list = ir_buf_new(p->a);
  int64_t total = 0;
  for (size_t i = 0; i < p->c->k->nodes.num; i++) {
    const ir_node *n = p->c->k->nodes.at[i];
    p->var[i] = p->named ? ir_format(p->a, "v%zu_%s", i, cg_local_name(p->a, p->names, n))
                         : ir_format(p->a, "v%zu", i);
    const char *type = plain_type(n->type.dtype);
    const char *form = n->type.dtype == IR_I64
                           ? "  %s *const %s = (int64_t *)(void *)(all + %" PRId64 ");\n"
                           : "  %s *const %s = all + %" PRId64 ";\n";
    ir_buf_printf(&list, form, type, p->var[i], total);
    total += ir_elements(&n->type);
  }
  ir_buf_printf(p->out, "  double *const all = k_take(%" PRId64 ");\n%s", total, ir_buf_str(&list));
}

static void put_output(const plain *p, const ir_node *n) {
  ir_buf_printf(p->out, "  k_put_%s(args[%d], %s, %" PRId64 ");\n", ir_dtypes[n->type.dtype].name,
                cg_arg_index(p->c, n), plain_var(p, n), ir_elements(&n->type));
}

void cg_plain_emit(ir_arena *a, const cg_kernel *c, const cg_taps *taps, bool named,
                   const char *name, ir_buf *out) {
  plain p = {.a = a, .c = c, .taps = taps, .named = named, .out = out, .names = ir_map_new(a)};
  p.var = IR_NEW_ARRAY(a, const char *, c->k->nodes.num + 1);
  if (named)
    ir_buf_printf(out, "\n// %s%s%s\n", c->k->name, c->k->nodes.num ? " = " : "",
                  c->k->nodes.num ? cg_describe(a, c->k) : "");
  ir_buf_printf(out, "void %s(char *const *args, double *const *taps, int hold) {\n", name);
  put_arrays(&p);
  for (size_t i = 0; i < c->k->nodes.num; i++)
    put_member(&p, i);
  close_nest(&p);
  if (ir_is_row_update(c->k))
    plain_put_kept_rows(&p);
  for (size_t i = 0; i < c->out.num; i++)
    put_output(&p, c->out.at[i]);
  put_gradients(&p);
  ir_buf_puts(out, "  free(all);\n}\n");
}
