// cpu_loop_band.c: rows of a matrix of which a mask has left a band (passes/bands.c): what of them a LOOP
// kernel need not walk.
//
//   masked softmax, row 2 of 8        columns 0..2    columns 3..7: "beside the band"
//     x = select(see, scores, -1e30)    any             -1e30
//     m = reduce_max x                  walked          one more number for the maximum
//     e = exp(x - m)                    any             one number: 0, unless all of the row is below -1e30
//     s = sum e                         walked          nothing, where that number is 0; else all is walked
//     y = select(see, e / s, 0)         stored          0, stored without looking at anything
//
// A value is known beside the band where it is 0 by the facts of pass_bands, or is computed there from one
// number for the whole row. Sums leave zeros out, which gives the same bits: a sum that begins with +0 is never -0.
#include "codegen/cpu_loop.h"
#include "passes/band.h"

// Whether n, with the matrix that this member has, lies along the rows that are cut.
static bool is_matrix(const loop_plan *p, const cg_kernel *k, size_t member, const ir_node *n) {
  const struct dom_matrix *at = &k->dom->matrix[member];
  return n->type.rank >= 2 && at->column == p->vector_axis && at->row == p->band.row_axis &&
         band_columns(&n->type) == p->extent && band_rows(&n->type) == p->band.rows;
}

static bool lies_within(ir_band x, ir_band y) {
  return band_is_empty(x) || (x.lower >= y.lower && x.upper <= y.upper);
}

static bool is_zero_beside(const loop_plan *p, const cg_kernel *k, size_t member,
                           const ir_node *n) {
  return n->nonzero && is_matrix(p, k, member, n) && lies_within(*n->nonzero, p->band.diagonals);
}

loop_beside loop_operand_beside(const loop_plan *p, const cg_kernel *k, const ir_node *n, int i) {
  const dom_load *l = dom_find_load(k->dom, n, i);
  size_t user = (size_t)cpu_member(k, n);
  if (ir_same_shape(&n->in[i]->type, &n->type) && is_zero_beside(p, k, user, n->in[i]))
    return BESIDE_ZERO;
  if (l)
    return l->access.stride[p->vector_axis] == 0 ? BESIDE_SAME : BESIDE_ANY;
  return p->band.beside[cpu_member(k, dom_base(n->in[i]))];
}

static loop_beside member_beside(const loop_plan *p, const cg_kernel *k, size_t i) {
  const ir_node *n = k->k->nodes.at[i];
  if (!cpu_varies(k, n, p->vector_axis))
    return BESIDE_SAME;
  if (is_zero_beside(p, k, i, n))
    return BESIDE_ZERO;
  if (ir_ops[n->op].cls != IR_CLASS_POINTWISE || ir_is_random(n))
    return BESIDE_ANY;
  if (n->op == IR_SELECT && loop_operand_beside(p, k, n, 0) == BESIDE_ZERO)
    return loop_operand_beside(p, k, n, 2);
  for (int j = 0; j < n->num_in; j++)
    if (loop_operand_beside(p, k, n, j) == BESIDE_ANY)
      return BESIDE_ANY;
  return BESIDE_SAME;
}

// --- phases ------------------------------------------------------------------------------------
static bool reduction_fits(const loop_plan *p, const cg_kernel *k, const ir_node *n) {
  bool known = n->op == IR_SUM || n->op == IR_REDUCE_MAX || n->op == IR_REDUCE_MIN;
  return known && loop_operand_beside(p, k, n, 0) != BESIDE_ANY;
}

bool loop_needs_beside(const loop_plan *p, const cg_kernel *k, const dom_store *s) {
  const ir_node *n = s->node;
  return !n->needed || !is_matrix(p, k, (size_t)cpu_member(k, n), n) ||
         !lies_within(*n->needed, p->band.diagonals);
}

static bool store_fits(const loop_plan *p, const cg_kernel *k, const dom_store *s) {
  for (int i = 0; i < k->dom->num_axes; i++)
    if (s->access.stride[i] == 0)
      return false;
  bool known = p->band.beside[cpu_member(k, s->node)] != BESIDE_ANY;
  return s->access.stride[p->vector_axis] == 1 && (known || !loop_needs_beside(p, k, s));
}

static bool phase_fits(const loop_plan *p, const cg_kernel *k, int phase) {
  for (size_t i = 0; i < k->k->nodes.num; i++)
    if (p->member[i].reduces && p->member[i].depth == phase &&
        !reduction_fits(p, k, k->k->nodes.at[i]))
      return false;
  for (size_t i = 0; i < k->dom->stores.num; i++) {
    const dom_store *s = &k->dom->stores.at[i];
    const loop_member *m = &p->member[cpu_member(k, s->node)];
    bool in_loop =
        p->across ? m->level == LEVEL_INNER && m->depth == phase : m->level == LEVEL_LANES;
    if (in_loop && !store_fits(p, k, s))
      return false;
  }
  return true;
}

// A sum of one number that is not known to be 0.
static bool may_widen(const loop_plan *p, const cg_kernel *k, int phase) {
  for (size_t i = 0; i < k->k->nodes.num; i++) {
    const ir_node *n = k->k->nodes.at[i];
    if (p->member[i].reduces && p->member[i].depth == phase && n->op == IR_SUM &&
        loop_operand_beside(p, k, n, 0) != BESIDE_ZERO)
      return true;
  }
  return false;
}

// What a scratch row has beside the band is not filled in, so no later phase may walk more than did the one that filled
// it.
static bool caches_fit(const loop_plan *p, const cg_kernel *k) {
  int last = -1;
  for (int phase = 0; phase < p->phases; phase++)
    if (!(p->band.phases & ~p->band.widened & 1u << phase))
      last = phase;
  for (size_t i = 0; i < k->k->nodes.num; i++)
    if (p->member[i].cached && p->member[i].depth < last)
      return false;
  return true;
}

static bool find_phases(loop_plan *p, const cg_kernel *k) {
  p->band.beside = IR_NEW_ARRAY(k->arena, unsigned char, k->k->nodes.num);
  for (size_t i = 0; i < k->k->nodes.num; i++)
    p->band.beside[i] = (unsigned char)member_beside(p, k, i);
  for (int phase = 0; phase < p->phases; phase++) {
    bool fits = phase_fits(p, k, phase);
    p->band.phases |= fits ? 1u << phase : 0;
    p->band.widened |= fits && may_widen(p, k, phase) ? 1u << phase : 0;
  }
  return p->band.phases && caches_fit(p, k);
}

// --- which band --------------------------------------------------------------------------------
// The share of the matrix that is walked, in whole steps.
static double share_walked(const loop_plan *p) {
  int64_t step = (int64_t)p->block * p->lanes, walked = 0;
  for (int64_t row = 0; row < p->band.rows; row++) {
    ir_band d = p->band.diagonals, all = {0, p->extent - 1};
    ir_band columns = band_meet(all, (ir_band){row + d.lower, row + d.upper});
    if (!band_is_empty(columns))
      walked += (columns.upper / step - columns.lower / step + 1) * step;
  }
  return (double)walked / ((double)p->band.rows * (double)p->extent);
}

static bool loops_fit(const loop_plan *p, const cg_kernel *k) {
  bool on_cpu = !k->target->cuda && !p->flat && !p->fold && p->vector_axis >= 0;
  bool plain = p->num_red == 0 && p->chunks == 1 && p->phases < 32;
  return on_cpu && plain && (p->across || !p->has_reduce);
}

// The band that the facts on n leave, which has the matrix of this member.
static loop_band band_of(const loop_plan *p, const cg_kernel *k, size_t member, const ir_node *n) {
  const struct dom_matrix *at = &k->dom->matrix[member];
  if (!n->nonzero || at->column != p->vector_axis || at->row < 0 || k->dom->axis[at->row].reduced ||
      k->dom->axis[at->row].size % band_rows(&n->type) != 0)
    return (loop_band){0};
  return (loop_band){.row_axis = at->row, .rows = band_rows(&n->type), .diagonals = *n->nonzero};
}

// Takes this band if less of the matrix is walked than by the best so far.
static void try_band(loop_plan *p, const cg_kernel *k, loop_band band, loop_band *best,
                     double *least) {
  p->band = band;
  double share = band.rows ? share_walked(p) : 1;
  if (share >= *least || !find_phases(p, k))
    return;
  *best = p->band;
  *least = share;
}

void loop_plan_band(loop_plan *p, const cg_kernel *k) {
  const double worthwhile = 0.85; // of the matrix: the rest pays for what is done at each row
  loop_band best = {0};
  double least = worthwhile;
  for (size_t i = 0; loops_fit(p, k) && i < k->k->nodes.num; i++) {
    const ir_node *n = k->k->nodes.at[i];
    try_band(p, k, band_of(p, k, i, n), &best, &least);
    for (int j = 0; j < n->num_in; j++)
      if (ir_same_shape(&n->in[j]->type, &n->type))
        try_band(p, k, band_of(p, k, i, n->in[j]), &best, &least);
  }
  p->band = best;
}
