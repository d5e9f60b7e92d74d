// row_sums.c: the row sums of softmax's gradient, over values instead of scores.
//
//   before   %y = matmul %w, %v                    after   %y = matmul %w, %v
//            %g = matmul %d.y, %v {tb=true}                %t = mul %d.y, %y
//            %t = mul %g, %w                               %s = sum %t {axes=[3]}
//            %s = sum %t {axes=[3]}
//
// The sum over n of g[m,n] w[m,n], where g[m,n] = sum over e of dy[m,e] v[n,e], is the sum over e
// of dy[m,e] y[m,e] (Dao et al. 2022, appendix B). So the gradient by the scores needs no reduction
// of its own over them. Masks and dropout stand on either factor of t: what counts is that all
// factors of t but g are those of w. A product with the zero of a mask counts as 0 (masks.c).
//
// Needs: equal products are one node (cse); operands as the network has them, not narrowed for
// tensor cores (precision comes after): sums of a product of narrowed weights are not those of the
// weights. Breaks: nothing; rounding of the last bits differs.
#include "ir/builder.h"
#include "passes/domain.h"
#include "passes/pass.h"

enum { MAX_FACTORS = 12 };

// A value as a product: factors, divisors, masks (selects of it or 0; each counts once), by node.
typedef enum factor_kind { FACTOR, DIVISOR, MASK } factor_kind;

typedef struct factor {
  factor_kind kind;
  const ir_node *n;
} factor;

typedef struct product {
  int num;
  bool fits; // there are not too many
  factor at[MAX_FACTORS];
} product;

static void add_factor(product *p, factor_kind kind, const ir_node *n) {
  for (int i = 0; kind == MASK && i < p->num; i++)
    if (p->at[i].kind == MASK && p->at[i].n == n)
      return;
  p->fits &= p->num < MAX_FACTORS;
  if (p->fits)
    p->at[p->num++] = (factor){kind, n};
}

static bool is_zero(const ir_node *n) {
  return ir_is_const(dom_base(n), 0);
}

static void take_apart(product *p, const ir_node *n) {
  if (!p->fits)
    return;
  if (n->op == IR_MUL) {
    take_apart(p, n->in[0]);
    take_apart(p, n->in[1]);
  } else if (n->op == IR_DIV) {
    take_apart(p, n->in[0]);
    add_factor(p, DIVISOR, n->in[1]);
  } else if (n->op == IR_SELECT && is_zero(n->in[2])) {
    take_apart(p, n->in[1]);
    add_factor(p, MASK, n->in[0]);
  } else if (n->op == IR_COPY || n->op == IR_STOP) {
    take_apart(p, n->in[0]);
  } else {
    add_factor(p, FACTOR, n);
  }
}

static product product_of(const ir_node *n) {
  product p = {.fits = true};
  take_apart(&p, n);
  return p;
}

static bool same_factor(const factor *a, const factor *b) {
  if (a->kind != b->kind || a->n == b->n)
    return a->kind == b->kind;
  return a->n->op == IR_CONST && b->n->op == IR_CONST && ir_same_type(&a->n->type, &b->n->type) &&
         ir_attr_num(a->n, IR_ATTR_VALUE) == ir_attr_num(b->n, IR_ATTR_VALUE);
}

// Equal but for factor `but` of x.
static bool same_product(const product *x, int but, const product *y) {
  bool used[MAX_FACTORS] = {false};
  if (!x->fits || !y->fits || x->num != y->num + 1)
    return false;
  for (int i = 0; i < x->num; i++) {
    int j = 0;
    while (i != but && j < y->num && (used[j] || !same_factor(&x->at[i], &y->at[j])))
      j++;
    if (i != but && j == y->num)
      return false;
    if (i != but)
      used[j] = true;
  }
  return true;
}

// --- the sites -----------------------------------------------------------------------------------
typedef struct row_sums {
  ir_arena *arena;
  uint32_t num_ids;
  ir_node_list *outs; // by id of v's base: matmuls (w, v) so far
} row_sums;

static bool is_plain_matmul(const ir_node *n) {
  return n->op == IR_MATMUL && !ir_attr_bool(n, IR_ATTR_TRANS_A);
}

// The y of g = dy v^T: y = w v, with that v.
static ir_node *find_out(const row_sums *s, const ir_node *g, const product *t, int but) {
  if (!is_plain_matmul(g))
    return NULL;
  const ir_node *v = g->in[1], *base = dom_base(v);
  if (base->id >= s->num_ids)
    return NULL;
  for (size_t i = 0; i < s->outs[base->id].num; i++) {
    ir_node *y = s->outs[base->id].at[i];
    product w = product_of(y->in[0]);
    if (y->in[1] == v && ir_attr_bool(y, IR_ATTR_TRANS_B) != ir_attr_bool(g, IR_ATTR_TRANS_B) &&
        ir_same_type(&y->type, &g->in[0]->type) && same_product(t, but, &w))
      return y;
  }
  return NULL;
}

static ir_node *over_values(const row_sums *s, ir_builder *b, const ir_node *sum) {
  int num;
  const int64_t *axes = ir_attr_ints(sum, IR_ATTR_AXES, &num);
  if (num != 1 || axes[0] != sum->type.rank - 1 || sum->in[0]->op != IR_MUL)
    return NULL;
  product t = product_of(sum->in[0]);
  for (int i = 0; i < t.num; i++) {
    const ir_node *g = t.at[i].n;
    ir_node *y = t.at[i].kind == FACTOR ? find_out(s, g, &t, i) : NULL;
    if (y)
      return ir_reduce(b, IR_SUM, ir_binary(b, IR_MUL, g->in[0], y), axes, 1);
  }
  return NULL;
}

static bool rewrite_func(ir_func *f) {
  ir_rewrite rw = ir_rewrite_begin(f);
  row_sums s = {.arena = ir_arena_new(), .num_ids = f->next_id};
  s.outs = IR_NEW_ARRAY(s.arena, ir_node_list, s.num_ids);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i), *r = NULL;
    if (is_plain_matmul(n) && dom_base(n->in[1])->id < s.num_ids)
      IR_PUSH(s.arena, s.outs[dom_base(n->in[1])->id], n);
    if (n->op == IR_SUM)
      r = over_values(&s, &rw.b, n);
    ir_rewrite_done(&rw, i, r ? r : n);
  }
  ir_arena_free(s.arena);
  return ir_rewrite_end(&rw);
}

bool pass_row_sums(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, rewrite_func);
}
