// quotients.c: uses a quotient that is there already instead of its parts.
//
//   before:  %p  = div %e, %s                        %s: one value per row, broadcast
//            %a  = div %g, %s
//            %t  = mul %a, %p
//            %b  = broadcast (neg (sum %t))
//            %c  = add %a, %b
//            %dx = mul %c, %e                        (g/s + b) e
//   after:   %t  = mul %g, %p
//            %b  = broadcast (neg (sum %t))
//            %c  = add %g, %b
//            %dx = mul %c, %p                        (g + b s) (e/s)
//
// In a product X * e where e / s is known and all terms of X are divided by s, the division moves
// over to e. That is the textbook gradient of softmax, p (g - sum(g p)): what autodiff makes of
// exp(x) / sum(exp(x)) would keep the numerators and the sums of the forward pass alive besides p.
//
// Needs: cse, so that equal quotients are one node. Breaks nothing; rounding of the last bits
// differs.
#include "ir/builder.h"
#include "passes/pass.h"

enum { MAX_DEPTH = 8 };

typedef struct quotients {
  ir_arena *arena;
  ir_builder *b;
  IR_VEC(ir_node *) found; // [node id of a numerator] its first quotient, or NULL
} quotients;

static ir_node *find_quotient(const quotients *q, const ir_node *e) {
  return e->id < q->found.num ? q->found.at[e->id] : NULL;
}

static void remember_quotient(quotients *q, ir_node *p) {
  const ir_node *e = p->in[0];
  while (q->found.num <= e->id)
    IR_PUSH(q->arena, q->found, NULL);
  if (!q->found.at[e->id])
    q->found.at[e->id] = p;
}

static bool is_row_sum(const ir_node *x, const ir_node *s) {
  return x->op == IR_SUM && s->op == IR_BROADCAST && ir_same_type(&x->type, &s->in[0]->type) &&
         ir_same_type(&x->in[0]->type, &s->type);
}

static bool is_row_value(const ir_node *x, const ir_node *s) {
  return x->op == IR_BROADCAST && s->op == IR_BROADCAST &&
         ir_same_type(&x->in[0]->type, &s->in[0]->type) && ir_same_type(&x->type, &s->type);
}

// Whether every term of x is divided by s (or, one value per row, by what s repeats).
static bool is_divided(const ir_node *x, const ir_node *s, int depth) {
  if (depth == 0)
    return false;
  switch (x->op) {
  case IR_DIV:
    return x->in[1] == s;
  case IR_NEG:
    return is_divided(x->in[0], s, depth - 1);
  case IR_ADD:
  case IR_SUB:
    return is_divided(x->in[0], s, depth - 1) && is_divided(x->in[1], s, depth - 1);
  case IR_MUL:
    return is_divided(x->in[0], s, depth - 1) || is_divided(x->in[1], s, depth - 1);
  case IR_BROADCAST:
    x = is_row_value(x, s) ? x->in[0] : NULL;
    while (x && x->op == IR_NEG)
      x = x->in[0];
    return x && is_row_sum(x, s) && is_divided(x->in[0], s, depth - 1);
  default:
    return false;
  }
}

static ir_node *multiplied(quotients *q, ir_node *x, ir_node *s);

static ir_node *rebuilt(quotients *q, ir_node *x, ir_node *s) {
  ir_builder *b = q->b;
  int num;
  switch (x->op) {
  case IR_NEG:
    return ir_unary(b, IR_NEG, multiplied(q, x->in[0], s));
  case IR_ADD:
  case IR_SUB: {
    ir_node *first = multiplied(q, x->in[0], s);
    return ir_binary(b, x->op, first, multiplied(q, x->in[1], s));
  }
  case IR_MUL:
    if (is_divided(x->in[0], s, MAX_DEPTH))
      return ir_binary(b, IR_MUL, multiplied(q, x->in[0], s), x->in[1]);
    return ir_binary(b, IR_MUL, x->in[0], multiplied(q, x->in[1], s));
  case IR_BROADCAST:
    return ir_broadcast(b, multiplied(q, x->in[0], s), x->type.rank, x->type.dims);
  default: { // a sum over rows
    const int64_t *axes = ir_attr_ints(x, IR_ATTR_AXES, &num);
    return ir_reduce(b, IR_SUM, multiplied(q, x->in[0], s), axes, num);
  }
  }
}

// x * s, by leaving the divisions out. Names tell what a value is the factor of.
static ir_node *multiplied(quotients *q, ir_node *x, ir_node *s) {
  if (x->op == IR_DIV)
    return x->in[0];
  ir_node *r = rebuilt(q, x, s);
  ir_rename(q->b->func, r, x->name);
  return r;
}

// x * e with p = e / s known: (x * s) * p. (p * e would become e * p.)
static ir_node *use_quotient(quotients *q, ir_node *n, int side) {
  ir_node *p = find_quotient(q, n->in[1 - side]), *x = n->in[side];
  if (!p || x == p || !ir_same_type(&p->type, &n->type) || !is_divided(x, p->in[1], MAX_DEPTH))
    return NULL;
  return ir_binary(q->b, IR_MUL, multiplied(q, x, p->in[1]), p);
}

static bool rewrite_func(ir_func *f) {
  ir_rewrite rw = ir_rewrite_begin(f);
  quotients q = {.arena = f->module->arena, .b = &rw.b};
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i), *r = NULL;
    if (n->op == IR_DIV && ir_dtypes[n->type.dtype].kind == IR_KIND_FLOAT)
      remember_quotient(&q, n);
    if (n->op == IR_MUL && ir_dtypes[n->type.dtype].kind == IR_KIND_FLOAT) {
      r = use_quotient(&q, n, 0);
      r = r ? r : use_quotient(&q, n, 1);
    }
    ir_rewrite_done(&rw, i, r ? r : n);
  }
  return ir_rewrite_end(&rw);
}

bool pass_quotients(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, rewrite_func);
}
