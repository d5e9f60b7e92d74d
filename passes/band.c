// band.c: arithmetic of bands (band.h): joining, meeting, moving through views, limiting the
// products of a matmul.
#include "passes/band.h"

int64_t band_rows(const ir_type *t) {
  return t->rank >= 2 ? t->dims[t->rank - 2] : 1;
}

int64_t band_columns(const ir_type *t) {
  return t->rank >= 1 ? t->dims[t->rank - 1] : 1;
}

ir_band band_all(const ir_type *t) {
  return (ir_band){1 - band_rows(t), band_columns(t) - 1};
}

ir_band band_none(void) {
  return (ir_band){1, 0};
}

bool band_is_empty(ir_band b) {
  return b.lower > b.upper;
}

bool band_is_all(ir_band b, const ir_type *t) {
  ir_band all = band_all(t);
  return b.lower <= all.lower && b.upper >= all.upper;
}

ir_band band_join(ir_band x, ir_band y) {
  if (band_is_empty(x) || band_is_empty(y))
    return band_is_empty(x) ? y : x;
  return (ir_band){x.lower < y.lower ? x.lower : y.lower, x.upper > y.upper ? x.upper : y.upper};
}

ir_band band_meet(ir_band x, ir_band y) {
  ir_band r = {x.lower > y.lower ? x.lower : y.lower, x.upper < y.upper ? x.upper : y.upper};
  return band_is_empty(r) ? band_none() : r;
}

ir_band band_turn(ir_band b) {
  return (ir_band){-b.upper, -b.lower};
}

// --- views ---------------------------------------------------------------------------------------
typedef struct view_move {
  bool lost;     // one diagonal of the operand is several of the view
  bool turned;   // rows become columns
  int64_t shift; // diagonal of the operand - diagonal of the view
} view_move;

static view_move transpose_move(const ir_node *v) {
  int rank;
  const int64_t *perm = ir_attr_ints(v, IR_ATTR_PERM, &rank);
  if (rank < 2)
    return (view_move){0};
  int64_t row = perm[rank - 2], column = perm[rank - 1];
  bool kept = row == rank - 2 && column == rank - 1, turned = row == rank - 1 && column == rank - 2;
  return (view_move){.lost = !kept && !turned, .turned = turned};
}

static view_move slice_move(const ir_node *v) {
  int rank;
  const int64_t *start = ir_attr_ints(v, IR_ATTR_START, &rank);
  const int64_t *step = ir_attr_ints(v, IR_ATTR_STEP, &rank);
  view_move m = {0};
  if (rank >= 1) {
    m.lost = step[rank - 1] != 1;
    m.shift = start[rank - 1];
  }
  if (rank >= 2) {
    m.lost |= step[rank - 2] != 1;
    m.shift -= start[rank - 2];
  }
  return m;
}

static view_move move_of(const ir_node *v) {
  if (v->op == IR_TRANSPOSE)
    return transpose_move(v);
  if (v->op == IR_SLICE)
    return slice_move(v);
  if (v->op == IR_WINDOWS)
    return (view_move){.lost = true};
  // reshape, broadcast: the matrices stay what they are, or anything may have happened
  const ir_type *t = &v->in[0]->type;
  return (view_move){.lost = band_rows(t) != band_rows(&v->type) ||
                             band_columns(t) != band_columns(&v->type)};
}

static ir_band moved(ir_band b, view_move m, int64_t shift, const ir_type *to) {
  if (band_is_empty(b))
    return b;
  if (m.lost)
    return band_all(to);
  if (m.turned)
    b = band_turn(b);
  return band_meet((ir_band){b.lower + shift, b.upper + shift}, band_all(to));
}

ir_band band_through_view(const ir_node *view, ir_band of_operand) {
  view_move m = move_of(view);
  return moved(of_operand, m, -m.shift, &view->type);
}

ir_band band_behind_view(const ir_node *view, ir_band of_view) {
  view_move m = move_of(view);
  return moved(of_view, m, m.shift, &view->in[0]->type);
}

// --- products ------------------------------------------------------------------------------------
static ir_band known(const ir_band *fact, const ir_type *t) {
  return fact ? *fact : band_all(t);
}

band_product band_of_matmul(const ir_node *n) {
  const ir_node *a = n->in[0], *b = n->in[1];
  band_product p = {.a = known(a->nonzero, &a->type),
                    .b = known(b->nonzero, &b->type),
                    .c = known(n->needed, &n->type),
                    .limited = a->nonzero || b->nonzero || n->needed};
  if (ir_attr_bool(n, IR_ATTR_TRANS_A))
    p.a = band_turn(p.a);
  if (ir_attr_bool(n, IR_ATTR_TRANS_B))
    p.b = band_turn(p.b);
  return p;
}

void band_steps(const band_product *b, int64_t m0, int64_t m1, int64_t n0, int64_t n1, int64_t k,
                int64_t *first, int64_t *last) {
  ir_band steps = {0, k - 1};
  steps = band_meet(steps, (ir_band){m0 + b->a.lower, m1 + b->a.upper});
  steps = band_meet(steps, (ir_band){n0 - b->b.upper, n1 - b->b.lower});
  if (n1 - m0 < b->c.lower || n0 - m1 > b->c.upper || band_is_empty(b->a) || band_is_empty(b->b))
    steps = band_none();
  *first = steps.lower;
  *last = steps.upper;
}

static int64_t length(ir_band b) {
  return band_is_empty(b) ? 0 : b.upper - b.lower + 1;
}

// The sum of c - shift, or of `most` where that is less, over all columns c.
static int64_t sum_up_to(ir_band columns, int64_t shift, int64_t most) {
  ir_band less = {columns.lower, columns.upper < most + shift ? columns.upper : most + shift};
  int64_t num = length(less);
  return num * (less.lower + less.upper - 2 * shift) / 2 + (length(columns) - num) * most;
}

// Of one row: column c takes those of its steps from c - b.upper to c - b.lower. They are not looked at one by one,
// nor are the columns: cost_kernel asks often, and rows times columns are billions.
static int64_t count_in_row(ir_band steps, ir_band columns, ir_band b) {
  if (band_is_empty(steps) || band_is_empty(columns) || band_is_empty(b))
    return 0;
  columns = band_meet(columns, (ir_band){steps.lower + b.lower, steps.upper + b.upper});
  if (band_is_empty(columns))
    return 0;
  int64_t lasts = sum_up_to(columns, b.lower, steps.upper);
  int64_t firsts = -sum_up_to(band_turn(columns), -b.upper, -steps.lower);
  return lasts - firsts + length(columns);
}

int64_t band_count_products(const band_product *p, int64_t m, int64_t n, int64_t k) {
  int64_t total = 0;
  for (int64_t row = 0; row < m; row++) {
    ir_band steps = band_meet((ir_band){0, k - 1}, (ir_band){row + p->a.lower, row + p->a.upper});
    ir_band columns = band_meet((ir_band){0, n - 1}, (ir_band){row + p->c.lower, row + p->c.upper});
    total += count_in_row(steps, columns, p->b);
  }
  return total;
}
