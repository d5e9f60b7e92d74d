// cuda_matmul.c: the MATMUL family on a GPU: its two functions, and the epilogue.
//
// The epilogue is a few statements inside the loops over a thread's vectors, in terms of
//   batch, line, column   where the vector lies
//   product               4 sums of row `line`: columns column .. column + 3
// as the expression emitter makes them:
//     const int64_t i0 = line, i1 = column;
//     const vf b = k_load_f32(p2_b + i1);
//     const vf y = k_max((product + b), k_f32(0.0f));
//     k_store_f32(p3_y + i0 * 128 + i1, y);
// A vector that may be cut off at the end of a row takes _part forms. Where columns are several
// axes and a vector may lie in two rows of the last one, its elements are finished one by one.
#include "codegen/cuda_matmul.h"

#include "ir/narrow.h"

#include <string.h>

typedef struct cuda_matmul {
  cmm_problem problem;
  cmm_plan plan;
  mm_sides sides;
  const cg_kernel *kernel;
} cuda_matmul;

static void emit_stores(const cuda_matmul *s, cg_expr *e) {
  mm_emit_indices(e, 0, s->sides.mm->num_batch_axes, "batch");
  mm_emit_indices(e, s->sides.first_row, s->sides.num_rows, "line");
  mm_emit_indices(e, s->sides.first_col, s->sides.num_cols, "column");
  cg_emit_stores(e);
}

// A vector may have elements on both sides of an end of the innermost axis of columns.
static bool crosses_axes(const cuda_matmul *s) {
  const mm_scope scope = {.kernel = s->kernel, .sides = &s->sides};
  int64_t run = mm_run_of_columns(&scope);
  return s->sides.num_cols > 1 && run < s->problem.p.n && run % CMM_VL != 0;
}

static void emit_elements(const cuda_matmul *s, cg_expr *e) {
  ir_buf_printf(e->out,
                "%*sconst %s sums = product;\n"
                "%*sconst int64_t column0 = column;\n"
                "%*s#pragma unroll\n"
                "%*sfor (int element = 0; element < VL; element++) {\n"
                "%*s  const int64_t column = column0 + element;\n"
                "%*s  const %s product = %s::splat(sums[element]);\n",
                e->indent, "", s->problem.p.elem_bytes == 8 ? "vd" : "vf", e->indent, "", e->indent,
                "", e->indent, "", e->indent, "", e->indent, "",
                s->problem.p.elem_bytes == 8 ? "vd" : "vf",
                s->problem.p.elem_bytes == 8 ? "vd" : "vf");
  e->indent += 2;
  bool cut = s->problem.p.n % CMM_VL != 0;
  if (cut) {
    ir_buf_printf(e->out, "%*sif (column < %lld) {\n", e->indent, "", (long long)s->problem.p.n);
    e->indent += 2;
  }
  e->vector_axis = -1;
  emit_stores(s, e);
  if (cut)
    ir_buf_printf(e->out, "%*s}\n", e->indent -= 2, "");
  ir_buf_printf(e->out, "%*s}\n", e->indent - 2, "");
}

static void emit_finish(const cmm_problem *p, ir_buf *out, int indent) {
  const cuda_matmul *s = p->data;
  static const char *const taken[] = {
      "a",       "b",       "c",       "i",         "j",       "k",       "m",      "n",
      "p",       "s",       "t",       "u",         "ty",      "tx",      "m0",     "n0",
      "m1",      "n1",      "band",    "band_rows", "warp",    "piece",   "batch",  "tile",
      "line",    "column",  "product", "sums",      "lanes",   "element", "first",  "last",
      "begin",   "stop",    "next",    "slot",      "partial", "vector",  "a_row",  "b_col",
      "a_tiles", "b_tiles", "a_begin", "b_begin",   "a_next",  "b_next",  "a_x",    "a_k",
      "a_at",    "a_to",    "a_from",  "a_left",    "a_read",  "put",     "c_rows", "r",
      "e",       "b_x",     "b_k",     "b_at",      "b_to",    "b_from",  "b_left", "b_read"};
  mm_scope scope = {.kernel = s->kernel, .sides = &s->sides};
  cg_expr e = mm_expr(&scope, out, indent, taken, sizeof taken / sizeof *taken);
  e.multiple = s->plan.spread ? 1 : CMM_VL;
  if (crosses_axes(s)) {
    emit_elements(s, &e);
    return;
  }
  if (s->plan.spread) {
    e.lane_step = CMM_SPREAD;
    e.lanes = "lanes";
    ir_buf_printf(out,
                  "%*sconst int lanes = column + %d < %lld ? VL : (int)(%lld - column) / %d;\n",
                  indent, "", (CMM_VL - 1) * CMM_SPREAD, (long long)p->p.n,
                  (long long)p->p.n + CMM_SPREAD - 1, CMM_SPREAD);
  } else if (p->p.n % CMM_VL != 0) {
    ir_buf_printf(out, "%*sconst int lanes = %lld - column < VL ? (int)(%lld - column) : VL;\n",
                  indent, "", (long long)p->p.n, (long long)p->p.n);
    e.lanes = "lanes";
  }
  emit_stores(s, &e);
}

static void emit_args(const cmm_problem *p, ir_buf *out) {
  cg_emit_args(((const cuda_matmul *)p->data)->kernel, out, 2);
}

// --- how products are made --------------------------------------------------------------------
// The tensor cores wherever they are exact: products of numbers of at most 11 digits. Of the 16-bit
// types each has its own mma; two of different types are not mixed (fold_conversions.c), and both
// in f32 they have few enough digits for tf32.
static mm_math math_of(const cg_kernel *k) {
  const ir_node *n = k->k->anchor, *a = dom_base(n->in[0]), *b = dom_base(n->in[1]);
  if (n->type.dtype != IR_F32)
    return MM_F32;
  if (ir_is_narrow(a->type.dtype) && a->type.dtype == b->type.dtype)
    return a->type.dtype == IR_BF16 ? MM_BF16 : MM_F16;
  bool exact = ir_known_digits(n->in[0]) <= 11 && ir_known_digits(n->in[1]) <= 11;
  return exact ? MM_TF32 : MM_F32;
}

// Copies of 16 bytes want to know where operands begin.
static void plan_once(cg_memo *memo, const cmm_problem *p, cmm_plan *plan) {
  const mm_problem *q = &p->p;
  const char *key = ir_format(q->arena,
                              "%s chip %d math %d touched %d %d %d a %lld b %lld tile %d %d %d %d "
                              "%d %d %d turned %d wgmma %d",
                              mm_key(q), q->target->cuda->wgmma, p->math, p->touched, p->worked,
                              p->may_spread, (long long)q->a.offset, (long long)q->b.offset,
                              p->want_tm, p->want_tv, p->want_warps_m, p->want_warps_n, p->want_bk,
                              p->want_stages, p->want_pieces, p->want_turned, p->want_wgmma);
  if (cg_recall(memo, key, plan, sizeof *plan))
    return;
  cmm_make_plan(p, plan);
  cg_remember(memo, key, plan, sizeof *plan);
}

// A value that all rows or all columns share stays in a cache.
static int touched_by(const cg_kernel *k, const mm_sides *sides) {
  int bytes = 0;
  for (size_t i = 0; i < k->dom->stores.num; i++)
    bytes += ir_dtypes[k->dom->stores.at[i].node->type.dtype].bytes;
  for (size_t i = 0; i < k->dom->loads.num; i++) {
    const dom_load *l = &k->dom->loads.at[i];
    bool rows = false, cols = false;
    for (int j = 0; j < sides->num_rows; j++)
      rows |= l->access.stride[sides->first_row + j] != 0;
    for (int j = 0; j < sides->num_cols; j++)
      cols |= l->access.stride[sides->first_col + j] != 0;
    if (rows && cols && l->user != k->k->anchor && dom_is_in_memory(l))
      bytes += ir_dtypes[l->buffer->type.dtype].bytes;
  }
  return bytes;
}

// Operations behind the product, for a result.
static int worked_by(const cg_kernel *k) {
  int operations = 0;
  for (size_t i = 0; i < k->k->nodes.num; i++) {
    const ir_node *n = k->k->nodes.at[i];
    operations +=
        n != k->k->anchor && ir_ops[n->op].cls == IR_CLASS_POINTWISE ? ir_ops[n->op].flops : 0;
  }
  return operations;
}

// --- the family's two functions -----------------------------------------------------------------
void cuda_matmul_schedule(cg_kernel *k) {
  cuda_matmul *s = IR_NEW(k->arena, cuda_matmul);
  s->kernel = k;
  s->problem = (cmm_problem){.p = mm_describe(k, &s->sides),
                             .math = math_of(k),
                             .width = (int)(k->in.num + k->out.num),
                             .emit_args = emit_args,
                             .emit_finish = emit_finish,
                             .data = s};
  s->problem.touched = touched_by(k, &s->sides);
  s->problem.worked = worked_by(k);
  s->problem.may_spread = !crosses_axes(s) && s->sides.num_cols > 0;
  if (k->target->memo)
    plan_once(k->target->memo, &s->problem, &s->plan);
  else
    cmm_make_plan(&s->problem, &s->plan);
  k->num_phases = s->plan.num_phases;
  for (int i = 0; i < k->num_phases; i++) {
    k->tasks[i] = s->plan.tasks[i] < 1 ? 1 : s->plan.tasks[i];
    k->threads[i] = s->plan.phase_threads[i];
  }
  k->shared[cmm_product_phase(&s->plan)] = cmm_given_shared(&s->problem, &s->plan);
  k->workspace = s->plan.workspace;
  k->products = cmm_is_half(s->problem.math) ? CG_BY_HALF
                : s->problem.math == MM_TF32 ? CG_BY_TF32
                                             : CG_BY_FMA;
  k->in_order = cmm_in_order(&s->problem, &s->plan);
  k->one_chip = s->plan.wgmma;
  k->schedule = s;
  mm_set_begins(k, &s->problem.p);
  s->problem.width += (int)k->numbers.num;
}

void cuda_matmul_emit(const cg_kernel *k, const char *name, ir_buf *out) {
  const cuda_matmul *s = k->schedule;
  cmm_emit(&s->problem, &s->plan, name, out);
}
