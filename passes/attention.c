// attention.c: scores of attention stay inside kernels.
//
//   before   %s = matmul %q, %k {tb=true}            : f32[12,4,64,64]
//            %m = reduce_max %s {axes=[3]}            : f32[12,4,64,1]
//            %e = exp (sub %s, (broadcast %m))
//            %z = sum %e {axes=[3]}
//            %w = div %e, (broadcast %z)
//            %y = matmul %w, %v                       : f32[12,4,64,32]
//            ...
//            %d.v = matmul %w, %d.y {ta=true}
//   after    kernel y attention {
//              %s, %m, %e, %z, %w, %y                 stores y; m and z, which the backward wants
//            }
//            kernel d.v attention {
//              %s.2, %e.2, %w.2, %d.v                 from q, k, m and z again
//            }
//
// A product in is a matmul with few steps (the head's width) and a large result; from there on,
// everything pointwise and every reduction over the last axis belongs to the site, until products
// out take the scores. Each product out over n gets a kernel of its own, those over m share one;
// each kernel computes its scores again, so that no score is in memory, and row values are computed
// once. A site of which anything else wants a score (the weights are a result, a bias is trained, a
// row reduction that no product out needs, such as the entropy of the weights) is left to the
// ordinary kernels.
//
// When it is worth it. A score in memory is written once and read at least once, and the backward
// needs four of them (s, w, dP, dS): 32 bytes at least, the time of some 400 FLOPs on a GPU,
// against 6 d FLOPs for three more products; with d <= 128 that is about even in the worst case,
// and memory is linear instead of quadratic. It is not worth it where tiles would be empty or SMs
// idle: less than 32 rows or columns, one matrix only (then it is a layer's product with its
// weights, whose kernel has pieces of k), less than 128 rows or columns in all. Without a row
// reduction it is no attention, and an epilogue does as well.
//
// Needs: row_sums, or else softmax's gradient takes one more sweep over the columns; own_outputs.
// Breaks: nothing; fuse gives the other nodes their kernels.
#include "passes/attention.h"

enum { MAX_WIDTH = 128, MIN_SIZE = 32, MIN_BATCH = 2, MIN_LINES = 128 };

// --- sites ---------------------------------------------------------------------------------------
static att_site *site_of(const att_pass *p, const ir_node *n) {
  att_site *s = n->id < p->num_ids ? p->site[n->id] : NULL;
  while (s && s->joined)
    s = s->joined;
  return s;
}

static att_kind kind_of(const att_pass *p, const ir_node *n) {
  return n->id < p->num_ids ? p->kind[n->id] : ATT_NONE;
}

static bool is_score(const att_pass *p, const ir_node *n) {
  att_kind k = kind_of(p, n);
  return k == ATT_IN || k == ATT_SCORE;
}

static bool is_inner(const att_pass *p, const ir_node *n) {
  return is_score(p, n) || kind_of(p, n) == ATT_ROW;
}

static void put(att_pass *p, const ir_node *n, att_kind kind, att_site *s) {
  p->kind[n->id] = kind;
  p->site[n->id] = s;
}

static att_site *join(att_site *a, att_site *b) {
  if (!a || a == b)
    return b;
  a->joined = b;
  b->dead |= a->dead;
  return b;
}

static bool is_worth_it(const ir_type *t, int64_t width) {
  int64_t m = t->dims[t->rank - 2], n = t->dims[t->rank - 1];
  int64_t batch = ir_elements(t) / (m * n), least = m < n ? m : n;
  return width <= MAX_WIDTH && least >= MIN_SIZE && batch >= MIN_BATCH &&
         batch * least >= MIN_LINES;
}

static void see_matmul(att_pass *p, const ir_node *n) {
  const ir_node *a = n->in[0], *b = n->in[1];
  bool inner_b = is_inner(p, dom_base(b));
  if (n->type.dtype != IR_F32 || inner_b)
    return;
  if (is_score(p, a) && n->type.dims[n->type.rank - 1] <= MAX_WIDTH) {
    put(p, n, ATT_OUT, site_of(p, a));
  } else if (!is_inner(p, dom_base(a)) && is_worth_it(&n->type, ir_matmul_steps(n))) {
    att_site *s = IR_NEW(p->arena, att_site);
    s->type = &n->type;
    IR_PUSH(p->arena, p->sites, s);
    put(p, n, ATT_IN, s);
  }
}

static bool is_row_type(const ir_type *row, const ir_type *score) {
  ir_type t = *score;
  t.dims[t.rank - 1] = 1;
  return ir_same_shape(row, &t);
}

// The operand is a score itself, or a row's value for each of its scores.
static bool fits_score(const att_pass *p, const ir_node *x, const ir_type *type) {
  if (is_score(p, x))
    return ir_same_shape(&x->type, type);
  return x->op == IR_BROADCAST && kind_of(p, x->in[0]) == ATT_ROW &&
         is_row_type(&x->in[0]->type, type);
}

static void see_pointwise(att_pass *p, const ir_node *n) {
  att_site *s = NULL;
  bool score = true, row = true;
  for (int i = 0; i < n->num_in; i++) {
    const ir_node *x = n->in[i], *base = dom_base(x);
    if (!is_inner(p, base))
      continue;
    s = join(s, site_of(p, base));
    score &= fits_score(p, x, &n->type);
    row &= kind_of(p, x) == ATT_ROW;
  }
  if (s && score && ir_same_shape(&n->type, s->type))
    put(p, n, ATT_SCORE, s);
  else if (s && row && is_row_type(&n->type, s->type))
    put(p, n, ATT_ROW, s);
}

static void see(att_pass *p, const ir_node *n) {
  if (n->op == IR_MATMUL) {
    see_matmul(p, n);
  } else if (ir_ops[n->op].cls == IR_CLASS_POINTWISE) {
    see_pointwise(p, n);
  } else if (ir_is_row_reduction(n) && is_score(p, n->in[0])) {
    put(p, n, ATT_ROW, site_of(p, n->in[0]));
  }
}

// --- who else uses scores ------------------------------------------------------------------------
static bool may_use(const att_pass *p, const ir_node *user, int operand) {
  switch (kind_of(p, user)) {
  case ATT_SCORE:
    return true;
  case ATT_ROW:
    return ir_ops[user->op].cls == IR_CLASS_REDUCE;
  case ATT_OUT:
    return operand == 0;
  default:
    return false;
  }
}

static void find_leaks(att_pass *p) {
  for (size_t i = 0; i < p->f->nodes.num; i++) {
    const ir_node *n = p->f->nodes.at[i];
    for (int j = 0; ir_ops[n->op].cls != IR_CLASS_VIEW && j < n->num_in; j++) {
      const ir_node *base = dom_base(n->in[j]);
      if (is_score(p, base) && !may_use(p, n, j))
        site_of(p, base)->dead = true;
    }
  }
  for (size_t i = 0; i < p->f->results.num; i++) {
    const ir_node *base = dom_base(p->f->results.at[i].node);
    if (is_score(p, base))
      site_of(p, base)->dead = true;
  }
}

static void find_outs_and_rows(att_pass *p) {
  for (size_t i = 0; i < p->f->nodes.num; i++) {
    ir_node *n = p->f->nodes.at[i];
    att_site *s = site_of(p, n);
    if (!s)
      continue;
    if (p->kind[n->id] == ATT_OUT)
      IR_PUSH(p->arena, s->outs, n);
    else if (ir_ops[n->op].cls == IR_CLASS_REDUCE)
      IR_PUSH(p->arena, s->rows, n);
  }
}

// --- the pass ------------------------------------------------------------------------------------
static att_pass new_pass(ir_func *f) {
  ir_arena *a = ir_arena_new();
  return (att_pass){.f = f,
                    .arena = a,
                    .num_ids = f->next_id,
                    .kind = IR_NEW_ARRAY(a, att_kind, f->next_id),
                    .site = IR_NEW_ARRAY(a, att_site *, f->next_id),
                    .position = IR_NEW_ARRAY(a, uint32_t, f->next_id),
                    .tainted = IR_NEW_ARRAY(a, bool, f->next_id),
                    .owner = IR_NEW_ARRAY(a, att_kernel *, f->next_id)};
}

static bool attention_func(ir_func *f) {
  if (f->kernels.num)
    return false;
  att_pass p = new_pass(f);
  for (size_t i = 0; i < f->nodes.num; i++) {
    p.position[f->nodes.at[i]->id] = (uint32_t)i;
    f->nodes.at[i]->mark = 0;
    see(&p, f->nodes.at[i]);
  }
  find_leaks(&p);
  find_outs_and_rows(&p);
  for (size_t i = 0; i < p.sites.num; i++) {
    att_site *s = p.sites.at[i];
    if (!s->joined && !s->dead && s->rows.num && s->outs.num)
      att_plan_kernels(&p, s);
  }
  bool found = p.kernels.num > 0;
  if (found)
    att_make_kernels(&p);
  ir_arena_free(p.arena);
  return found;
}

bool pass_attention(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, attention_func);
}
