// join_products.c: a sum of many products of one shape becomes one product with a longer k.
//
//   before   %p1 = matmul %h0, %d1 {ta=true}      # %h0 : f32[32,256], %d1 : f32[32,1024]
//            %p2 = matmul %h1, %d2 {ta=true}
//            %p3 = matmul %h2, %d3 {ta=true}
//            %s  = add %p3, %p2
//            %dw = add %s, %p1
//            %d  = concat %d1, %d2, %d3 {axis=0}
//   after    %h  = concat %h0, %h1, %h2 {axis=0}
//            %d  = concat %d1, %d2, %d3 {axis=0}
//            %dw = matmul %h, %d {ta=true}        # k: 96 instead of three times 32
//
// The gradient of a weight that an unrolled network uses at every step is such a sum. Each short
// product would read and write all of the weight's gradient, which costs more than its few
// multiplications, and each would be a launch. Operands that lie side by side in a concat that is
// there anyway (states that go on to the next layer, gradients that go down to the layer before)
// are read from it, the others are put side by side.
//
// The other way, a product that goes on with the sums in its output, needs no copies, but still
// reads and writes all of the output for each step. A copy is a few rows; it is made only where
// all copies are smaller than the products that need not be stored (k is short then), which
// also bounds what the plan can grow by.
//
// Needs: sums of pads as concats (algebra). Breaks: nothing; the order of the sum changes.
#include "ir/builder.h"
#include "passes/pass.h"

#include <stdlib.h>

// A concat whose operands lie one after the other in memory, and one of them.
typedef struct holder {
  ir_node *whole;
  int at;
} holder;
typedef IR_VEC(holder) holders;

typedef struct term {
  ir_node *product;
  int at; // in the concat that gives the order
} term;

// Products of one kind: ta, tb and so all shapes but k are equal.
typedef struct group {
  IR_VEC(term) terms;
  holder from[2]; // where the first operands begin, and the second ones; whole NULL: nowhere
  bool pays;
} group;

// What else is added: that operand of that add, which the rewrite keeps up to date.
typedef struct leaf {
  const ir_node *user;
  int operand;
} leaf;

enum { KINDS = 4 };
typedef struct sum {
  ir_node *root;
  group groups[KINDS]; // by ta, tb
  IR_VEC(leaf) rest;
  const ir_node *after; // stands behind this one, which it reads; NULL: where it is
} sum;
typedef IR_VEC(sum *) sum_list;

typedef struct joiner {
  ir_func *f;
  ir_arena *scratch;
  uint32_t *position;   // by node id
  uint32_t *first_user; // by node id: its position; past the end: there is none
  holders *of;          // by node id
  sum **sums;           // by node id of the root
  sum_list found;
} joiner;

static bool is_sum(const ir_node *n) {
  return n->op == IR_ADD && ir_dtypes[n->type.dtype].kind == IR_KIND_FLOAT;
}

static const ir_node *base_of(const ir_node *n) {
  while (n->op == IR_RESHAPE)
    n = n->in[0];
  return n;
}

static bool leads(const ir_type *t, int64_t axis) {
  for (int i = 0; i < axis; i++)
    if (t->dims[i] != 1)
      return false;
  return true;
}

// --- what there is -------------------------------------------------------------------------------
static void note_parts(joiner *j, ir_node *n) {
  if (n->op != IR_CONCAT || !leads(&n->type, ir_attr_int(n, IR_ATTR_AXIS)))
    return;
  for (int k = 0; k < n->num_in; k++) {
    holder h = {n, k};
    IR_PUSH(j->scratch, j->of[base_of(n->in[k])->id], h);
  }
}

static joiner joiner_of(ir_func *f) {
  ir_arena *a = ir_arena_new();
  size_t ids = f->next_id;
  joiner j = {.f = f,
              .scratch = a,
              .first_user = IR_NEW_ARRAY(a, uint32_t, ids),
              .position = IR_NEW_ARRAY(a, uint32_t, ids),
              .of = IR_NEW_ARRAY(a, holders, ids),
              .sums = IR_NEW_ARRAY(a, sum *, ids)};
  pass_count_uses(f);
  for (size_t i = 0; i < ids; i++)
    j.first_user[i] = (uint32_t)f->nodes.num;
  for (size_t i = f->nodes.num; i-- > 0;) {
    ir_node *n = f->nodes.at[i];
    j.position[n->id] = (uint32_t)i;
    for (int k = 0; k < n->num_in; k++)
      j.first_user[n->in[k]->id] = (uint32_t)i;
    note_parts(&j, n);
  }
  return j;
}

// Part of a larger sum, and of nothing else.
static bool is_inner(const joiner *j, const ir_node *n) {
  uint32_t user = j->first_user[n->id];
  return is_sum(n) && n->mark == 1 && user < j->f->nodes.num && is_sum(j->f->nodes.at[user]);
}

static void add_leaf(joiner *j, sum *s, leaf l) {
  ir_node *n = l.user->in[l.operand];
  if (n->op != IR_MATMUL || n->mark != 1) {
    IR_PUSH(j->scratch, s->rest, l);
    return;
  }
  int kind = ir_attr_bool(n, IR_ATTR_TRANS_A) * 2 + ir_attr_bool(n, IR_ATTR_TRANS_B);
  term t = {n, 0};
  IR_PUSH(j->scratch, s->groups[kind].terms, t);
}

// Chains are as long as sequences: no recursion.
static sum *collect(joiner *j, ir_node *root) {
  sum *s = IR_NEW(j->scratch, sum);
  s->root = root;
  IR_VEC(const ir_node *) adds = {0};
  IR_PUSH(j->scratch, adds, root);
  while (adds.num > 0) {
    const ir_node *n = adds.at[--adds.num];
    for (int k = 0; k < 2; k++)
      if (is_inner(j, n->in[k]))
        IR_PUSH(j->scratch, adds, n->in[k]);
      else
        add_leaf(j, s, (leaf){n, k});
  }
  return s;
}

// --- operands that lie side by side already ------------------------------------------------------
// The axis of k of operand `side`.
static int k_axis(const ir_node *product, int side) {
  bool turned = ir_attr_bool(product, side ? IR_ATTR_TRANS_B : IR_ATTR_TRANS_A);
  return product->type.rank - ((side == 0) == turned ? 2 : 1);
}

static const holder *held_by(const joiner *j, const ir_node *operand, const ir_node *whole) {
  const holders *h = &j->of[base_of(operand)->id];
  for (size_t i = 0; i < h->num; i++)
    if (h->at[i].whole == whole)
      return &h->at[i];
  return NULL;
}

static bool follow_each_other(const joiner *j, const group *g, int side, const holder *first) {
  for (size_t i = 0; i < g->terms.num; i++) {
    const holder *h = held_by(j, g->terms.at[i].product->in[side], first->whole);
    if (!h || h->at != first->at + (int)i)
      return false;
  }
  return true;
}

// In the order that the terms have, and made before anybody needs their sum.
static void find_whole(const joiner *j, const ir_node *root, group *g, int side) {
  const ir_node *x = g->terms.at[0].product->in[side];
  const holders *h = &j->of[base_of(x)->id];
  if (!leads(&x->type, k_axis(g->terms.at[0].product, side)))
    return;
  for (size_t i = 0; i < h->num && !g->from[side].whole; i++)
    if (j->position[h->at[i].whole->id] < j->first_user[root->id] &&
        follow_each_other(j, g, side, &h->at[i]))
      g->from[side] = h->at[i];
}

// Two products of one operand stand in their own order.
static int by_place(const void *a, const void *b) {
  const term *x = a, *y = b;
  if (x->at == y->at)
    return (x->product->id > y->product->id) - (x->product->id < y->product->id);
  return x->at > y->at ? 1 : -1;
}

// Puts the terms into the order in which a concat has their operands of this side.
static bool order_by(const joiner *j, group *g, int side) {
  const ir_node *first = g->terms.at[0].product->in[side];
  const holders *h = &j->of[base_of(first)->id];
  if (h->num == 0)
    return false;
  for (size_t i = 0; i < g->terms.num; i++) {
    term *t = &g->terms.at[i];
    const holder *at = held_by(j, t->product->in[side], h->at[0].whole);
    if (!at)
      return false;
    t->at = at->at;
  }
  qsort(g->terms.at, g->terms.num, sizeof *g->terms.at, by_place);
  return true;
}

// --- whether it pays -----------------------------------------------------------------------------
static void consider(const joiner *j, const ir_node *root, group *g) {
  if (g->terms.num < 2)
    return;
  if (!order_by(j, g, 1))
    order_by(j, g, 0);
  int64_t copied = 0, kept = ir_elements(&g->terms.at[0].product->type);
  for (int side = 0; side < 2; side++) {
    find_whole(j, root, g, side);
    for (size_t i = 0; i < g->terms.num && !g->from[side].whole; i++)
      copied += ir_elements(&g->terms.at[i].product->in[side]->type);
  }
  g->pays = copied < kept * (int64_t)(g->terms.num - 1);
}

// A sum that reads a concat stands behind it.
static void find_place(const joiner *j, sum *s) {
  uint32_t last = j->position[s->root->id];
  for (int kind = 0; kind < KINDS; kind++)
    for (int side = 0; side < 2 && s->groups[kind].pays; side++) {
      const ir_node *whole = s->groups[kind].from[side].whole;
      if (whole && j->position[whole->id] > last) {
        last = j->position[whole->id];
        s->after = whole;
      }
    }
}

static void find_sums(joiner *j) {
  for (size_t i = 0; i < j->f->nodes.num; i++) {
    ir_node *n = j->f->nodes.at[i];
    if (!is_sum(n) || is_inner(j, n))
      continue;
    sum *s = collect(j, n);
    bool pays = false;
    for (int kind = 0; kind < KINDS; kind++) {
      consider(j, n, &s->groups[kind]);
      pays |= s->groups[kind].pays;
    }
    if (!pays)
      continue;
    find_place(j, s);
    j->sums[n->id] = s;
    IR_PUSH(j->scratch, j->found, s);
  }
}

// --- rewriting -----------------------------------------------------------------------------------
static void put_behind(joiner *j) {
  ir_func *f = j->f;
  sum_list *waiting = IR_NEW_ARRAY(j->scratch, sum_list, f->next_id); // by node id of `after`
  ir_node **order = IR_NEW_ARRAY(j->scratch, ir_node *, f->nodes.num);
  size_t num = 0;
  for (size_t i = 0; i < j->found.num; i++)
    if (j->found.at[i]->after)
      IR_PUSH(j->scratch, waiting[j->found.at[i]->after->id], j->found.at[i]);
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    if (j->sums[n->id] && j->sums[n->id]->after)
      continue;
    order[num++] = n;
    for (size_t k = 0; k < waiting[n->id].num; k++)
      order[num++] = waiting[n->id].at[k]->root;
  }
  for (size_t i = 0; i < num; i++)
    f->nodes.at[i] = order[i];
}

// The operands of the terms in a concat that has them.
static ir_node *part_of(ir_builder *b, const holder *from, size_t num) {
  const ir_node *whole = from->whole;
  int64_t start[IR_MAX_RANK] = {0}, stop[IR_MAX_RANK], step[IR_MAX_RANK];
  int64_t axis = ir_attr_int(whole, IR_ATTR_AXIS);
  for (int i = 0; i < whole->type.rank; i++) {
    stop[i] = whole->type.dims[i];
    step[i] = 1;
  }
  for (int i = 0; i < from->at; i++)
    start[axis] += whole->in[i]->type.dims[axis];
  stop[axis] = start[axis];
  for (size_t i = 0; i < num; i++)
    stop[axis] += whole->in[from->at + (int)i]->type.dims[axis];
  return ir_slice(b, from->whole, start, stop, step);
}

// The operands of one side, side by side along k.
static ir_node *joined_operand(joiner *j, ir_builder *b, const group *g, int side) {
  const ir_node *first = g->terms.at[0].product;
  int axis = k_axis(first, side);
  size_t num = g->terms.num;
  ir_node **x = IR_NEW_ARRAY(j->scratch, ir_node *, num);
  ir_type type = first->in[side]->type;
  type.dims[axis] = 0;
  for (size_t i = 0; i < num; i++) {
    x[i] = g->terms.at[i].product->in[side];
    type.dims[axis] += x[i]->type.dims[axis];
  }
  if (!g->from[side].whole)
    return ir_concat(b, (int)num, x, axis);
  return ir_reshape(b, part_of(b, &g->from[side], num), type.rank, type.dims);
}

static ir_node *plus(ir_builder *b, ir_node *sum, ir_node *x) {
  return sum ? ir_binary(b, IR_ADD, sum, x) : x;
}

static ir_node *build_sum(joiner *j, ir_builder *b, const sum *s) {
  ir_node *r = NULL;
  b->scope = s->root->name;
  for (size_t i = 0; i < s->rest.num; i++)
    r = plus(b, r, s->rest.at[i].user->in[s->rest.at[i].operand]);
  for (int kind = 0; kind < KINDS; kind++) {
    const group *g = &s->groups[kind];
    for (size_t i = 0; i < g->terms.num && !g->pays; i++)
      r = plus(b, r, g->terms.at[i].product);
    if (!g->pays)
      continue;
    ir_node *x = joined_operand(j, b, g, 0), *y = joined_operand(j, b, g, 1);
    r = plus(b, r, ir_matmul(b, x, y, (kind & 2) != 0, (kind & 1) != 0));
  }
  return r;
}

static bool join(ir_func *f) {
  joiner j = joiner_of(f);
  find_sums(&j);
  if (j.found.num == 0) {
    ir_arena_free(j.scratch);
    return false;
  }
  put_behind(&j);
  uint32_t known = f->next_id;
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    const sum *s = n->id < known ? j.sums[n->id] : NULL;
    ir_rewrite_done(&rw, i, s ? build_sum(&j, &rw.b, s) : n);
  }
  ir_arena_free(j.scratch);
  return ir_rewrite_end(&rw);
}

bool pass_join_products(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, join);
}
