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

// --- how many products ---------------------------------------------------------------------------
// What is counted of a row is a polynomial of its number, of degree 2, as long as all comparisons on the way go as they
// went: they are of numbers that are linear in the row, so that two rows between which one goes another way differ in it.
// `how` is their outcomes, a bit each.
static bool is_less(int64_t x, int64_t y, uint32_t *how) {
  *how = *how << 1 | (x < y);
  return x < y;
}

static int64_t larger(int64_t x, int64_t y, uint32_t *how) {
  return is_less(x, y, how) ? y : x;
}

static int64_t smaller(int64_t x, int64_t y, uint32_t *how) {
  return is_less(x, y, how) ? x : y;
}

static ir_band meet(ir_band x, ir_band y, uint32_t *how) {
  return (ir_band){larger(x.lower, y.lower, how), smaller(x.upper, y.upper, how)};
}

static int64_t length(ir_band b, uint32_t *how) {
  return is_less(b.upper, b.lower, how) ? 0 : b.upper - b.lower + 1;
}

// The sum of c - shift, or of `most` where that is less, over all columns c.
static int64_t sum_up_to(ir_band columns, int64_t shift, int64_t most, uint32_t *how) {
  ir_band less = {columns.lower, smaller(columns.upper, most + shift, how)};
  int64_t num = length(less, how);
  return num * (less.lower + less.upper - 2 * shift) / 2 + (length(columns, how) - num) * most;
}

// Of one row: column c takes those of its steps from c - b.upper to c - b.lower. They are not looked at one by one,
// nor are the columns: cost_kernel asks often, and rows times columns are billions.
static int64_t count_of(ir_band steps, ir_band columns, ir_band b, uint32_t *how) {
  if (length(steps, how) == 0 || length(columns, how) == 0)
    return 0;
  columns = meet(columns, (ir_band){steps.lower + b.lower, steps.upper + b.upper}, how);
  if (length(columns, how) == 0)
    return 0;
  int64_t lasts = sum_up_to(columns, b.lower, steps.upper, how);
  int64_t firsts = -sum_up_to(band_turn(columns), -b.upper, -steps.lower, how);
  return lasts - firsts + length(columns, how);
}

typedef struct counted {
  const band_product *p;
  int64_t n, k;
} counted;

static int64_t count_in_row(const counted *c, int64_t row, uint32_t *how) {
  const band_product *p = c->p;
  *how = 1;
  ir_band steps = meet((ir_band){0, c->k - 1}, (ir_band){row + p->a.lower, row + p->a.upper}, how);
  ir_band columns =
      meet((ir_band){0, c->n - 1}, (ir_band){row + p->c.lower, row + p->c.upper}, how);
  return count_of(steps, columns, p->b, how);
}

enum { MOST_ROWS = 1 << 20 }; // whose third power 64 bits hold

// Rows [from, to]. Of a polynomial: num f(0) + C(num, 2) f'(0) + C(num, 3) f''(0), by differences.
static int64_t count_in_rows(const counted *c, int64_t from, int64_t to) {
  uint32_t first, last, how;
  int64_t num = to - from + 1, x = count_in_row(c, from, &first), end = count_in_row(c, to, &last);
  if (num <= 2)
    return num == 1 ? x : x + end;
  if (first != last || num > MOST_ROWS)
    return count_in_rows(c, from, from + num / 2 - 1) + count_in_rows(c, from + num / 2, to);
  int64_t y = count_in_row(c, from + 1, &how), z = count_in_row(c, from + 2, &how);
  int64_t pairs = num * (num - 1) / 2;
  return num * x + pairs * (y - x) + (z - 2 * y + x) * (pairs * (num - 2) / 3);
}

int64_t band_count_products(const band_product *p, int64_t m, int64_t n, int64_t k) {
  const counted c = {p, n, k};
  return m == 0 || band_is_empty(p->b) ? 0 : count_in_rows(&c, 0, m - 1);
}
