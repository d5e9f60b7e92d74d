// bands.c: which diagonals of each matrix hold anything but zeros, and which are needed.
//
//   %see = le %column, %row : bool[64,64]              # not 0: column - row in -63..0
//   %s = matmul %q, %k {tb=true} : f32[64,64]          # needed: column - row in -63..0
//   %m = select %see, %s, %far : f32[64,64]
//   %p = select %see, %softmax, %zero : f32[64,64]     # not 0: column - row in -63..0
//   %y = matmul %p, %v : f32[64,32]                    # sums k <= row only
//
// Generators leave out what the facts on a matmul and its operands allow (band_of_matmul), and those on what a loop
// over rows reads and makes (codegen/cpu_loop_band.c); the facts are comments in the text, and --disable-pass=bands does without them.
//
// What may be concluded. A value outside `nonzero` is +0 or -0, whatever the inputs are: the zero
// comes from a constant, by way of a select, and through ops that make zero of zero. x * 0 is not
// among them unless x is known to be finite, nor is 0 / x, nor exp(-1e30 - max): a row of scores
// that overflow has another maximum. So attention (frontend/std/nn.graph) writes the zeros of its
// weights with a select of its own, and every conclusion rests on that select.
// A matmul does not multiply by these zeros. Sums of finite numbers come out the same, to the bit
// but for the sign of a zero that has underflowed. Infinities and NaN of the other operand are
// left out with the products: that is what a mask is for, but the interpreter does not do so.
// A value outside `needed` is dropped by a select on the way to every result and state. A matmul
// operand is needed whole: a NaN would not vanish in a product with 0.
//
// Needs: nothing; runs last, since facts do not survive rewriting. Breaks: nothing.
#include "passes/band.h"
#include "passes/pass.h"

#include <float.h>
#include <math.h>

typedef band_truth facts; // yes: where it may be other than 0 (true); no: where it may be 0 (bool)

typedef struct bands {
  facts *of;       // by node id
  ir_band *needed; // by node id
  const ir_node *
      *first; // by node id: what a member of a kernel that runs again repeats; NULL: itself
} bands;

// --- forward: where is it not 0? -----------------------------------------------------------------
typedef facts (*rule)(const bands *s, const ir_node *n);

static ir_band nonzero(const bands *s, const ir_node *n, int operand) {
  return s->of[n->in[operand]->id].yes;
}

static ir_band zero(const bands *s, const ir_node *n, int operand) {
  return s->of[n->in[operand]->id].no;
}

static facts anything(const bands *s, const ir_node *n) {
  (void)s;
  return (facts){band_all(&n->type), band_all(&n->type)};
}

static facts at(const ir_node *n, ir_band b) {
  return (facts){b, band_all(&n->type)};
}

static const ir_node *constant(const ir_node *n) { // below views
  while (ir_ops[n->op].cls == IR_CLASS_VIEW)
    n = n->in[0];
  return n->op == IR_CONST ? n : NULL;
}

static bool is_finite(const ir_node *n) {
  const ir_node *c = constant(n);
  return c ? fabs(ir_attr_num(c, IR_ATTR_VALUE)) <= (double)FLT_MAX
           : n->op == IR_CAST && n->in[0]->type.dtype == IR_BOOL;
}

static facts rule_const(const bands *s, const ir_node *n) {
  facts f = anything(s, n);
  double v = ir_attr_num(n, IR_ATTR_VALUE);
  if (v == 0)
    f.yes = band_none();
  else
    f.no = band_none(); // NaN too: only asked of bool
  return f;
}

// 0 gives 0. What is not 0 may become it, unless it is bool: then it is copied or cast.
static facts rule_same(const bands *s, const ir_node *n) {
  bool exact = n->in[0]->type.dtype == IR_BOOL;
  return (facts){nonzero(s, n, 0), exact ? zero(s, n, 0) : band_all(&n->type)};
}

static facts rule_view(const bands *s, const ir_node *n) {
  return (facts){band_through_view(n, nonzero(s, n, 0)), band_through_view(n, zero(s, n, 0))};
}

// 0 and 0 give 0.
static facts rule_either(const bands *s, const ir_node *n) {
  return at(n, band_join(nonzero(s, n, 0), nonzero(s, n, 1)));
}

static facts rule_mul(const bands *s, const ir_node *n) {
  ir_band x = nonzero(s, n, 0), y = nonzero(s, n, 1), b = band_join(x, y);
  if (is_finite(n->in[1]))
    b = band_meet(b, x);
  if (is_finite(n->in[0]))
    b = band_meet(b, y);
  return at(n, b);
}

static facts rule_div(const bands *s, const ir_node *n) {
  const ir_node *by = constant(n->in[1]);
  double v = by ? fabs(ir_attr_num(by, IR_ATTR_VALUE)) : 0;
  return v >= (double)FLT_MIN ? at(n, nonzero(s, n, 0)) : anything(s, n); // less counts as 0
}

static facts rule_select(const bands *s, const ir_node *n) {
  ir_band x = band_meet(nonzero(s, n, 0), nonzero(s, n, 1));
  ir_band y = band_meet(zero(s, n, 0), nonzero(s, n, 2));
  return at(n, band_join(x, y));
}

static facts rule_and(const bands *s, const ir_node *n) {
  return (facts){band_meet(nonzero(s, n, 0), nonzero(s, n, 1)),
                 band_join(zero(s, n, 0), zero(s, n, 1))};
}

static facts rule_or(const bands *s, const ir_node *n) {
  return (facts){band_join(nonzero(s, n, 0), nonzero(s, n, 1)),
                 band_meet(zero(s, n, 0), zero(s, n, 1))};
}

static facts rule_not(const bands *s, const ir_node *n) {
  return (facts){zero(s, n, 0), nonzero(s, n, 0)};
}

static facts rule_compare(const bands *s, const ir_node *n) {
  (void)s;
  return band_of_comparison(n);
}

// Over whole matrices, element by element.
static bool keeps_matrices(const ir_node *n) {
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  for (int i = 0; i < num; i++)
    if (axes[i] >= n->type.rank - 2)
      return false;
  return true;
}

static facts rule_reduce(const bands *s, const ir_node *n) {
  return keeps_matrices(n) ? at(n, nonzero(s, n, 0)) : anything(s, n);
}

static const rule rules[IR_NUM_OPS] = {
    [IR_CONST] = rule_const,       [IR_ADD] = rule_either,
    [IR_SUB] = rule_either,        [IR_MAX] = rule_either,
    [IR_MIN] = rule_either,        [IR_MUL] = rule_mul,
    [IR_DIV] = rule_div,           [IR_SELECT] = rule_select,
    [IR_AND] = rule_and,           [IR_OR] = rule_or,
    [IR_NOT] = rule_not,           [IR_EQ] = rule_compare,
    [IR_NE] = rule_compare,        [IR_LT] = rule_compare,
    [IR_LE] = rule_compare,        [IR_GT] = rule_compare,
    [IR_GE] = rule_compare,        [IR_SUM] = rule_reduce,
    [IR_REDUCE_MAX] = rule_reduce, [IR_REDUCE_MIN] = rule_reduce,
    [IR_RESHAPE] = rule_view,      [IR_TRANSPOSE] = rule_view,
    [IR_BROADCAST] = rule_view,    [IR_SLICE] = rule_view,
};

static rule rule_of(ir_op op) {
  return rules[op] ? rules[op] : ir_keeps_zero(op) ? rule_same : anything;
}

// --- backward: where is it needed? ---------------------------------------------------------------
static ir_band needed_of(const bands *s, const ir_node *n, int operand) {
  const ir_node *x = n->in[operand];
  ir_band out = n->op == IR_WRITE ? band_all(&n->type) : s->needed[n->id];
  if (n->op == IR_SELECT && operand > 0) {
    facts mask = s->of[n->in[0]->id];
    return band_meet(out, operand == 1 ? mask.yes : mask.no);
  }
  switch (ir_ops[n->op].cls) {
  case IR_CLASS_POINTWISE:
    return ir_same_shape(&n->type, &x->type) ? out : band_all(&x->type);
  case IR_CLASS_VIEW:
    return band_behind_view(n, out);
  case IR_CLASS_REDUCE:
    return rules[n->op] && keeps_matrices(n) ? out : band_all(&x->type);
  default:
    return band_all(&x->type);
  }
}

static void find_needed(const ir_func *f, bands *s) {
  for (size_t i = 0; i < f->results.num; i++) {
    const ir_node *n = f->results.at[i].node;
    s->needed[n->id] = band_all(&n->type);
  }
  for (size_t i = f->nodes.num; i-- > 0;) { // users before their operands
    const ir_node *n = f->nodes.at[i], *first = s->first[n->id];
    if (n->stored)
      s->needed[n->id] = band_all(&n->type);
    if (first) // it does what the first one does, which so must be enough for both
      s->needed[first->id] = band_join(s->needed[first->id], s->needed[n->id]);
    for (int j = 0; j < n->num_in; j++) {
      ir_band *x = &s->needed[n->in[j]->id];
      *x = band_join(*x, needed_of(s, n, j));
    }
  }
}

// --- the pass ------------------------------------------------------------------------------------
// The fact to keep on a node: NULL when there is nothing to say.
static const ir_band *fact(ir_arena *a, const ir_node *n, ir_band b, bool of_masks) {
  bool leaf = ir_ops[n->op].cls == IR_CLASS_LEAF, effect = ir_ops[n->op].cls == IR_CLASS_EFFECT;
  bool fits = ir_is_float(n->type.dtype) || (of_masks && n->type.dtype == IR_BOOL);
  if (leaf || effect || !fits || n->type.rank < 2 || band_is_all(b, &n->type))
    return NULL;
  ir_band *kept = IR_NEW(a, ir_band);
  *kept = b;
  return kept;
}

static bool put_facts(ir_arena *a, ir_node *n, const bands *s) {
  bool had = n->nonzero || n->needed;
  uint32_t id = s->first[n->id] ? s->first[n->id]->id : n->id;
  n->nonzero = fact(a, n, s->of[id].yes, true);
  n->needed = fact(a, n, s->needed[id], false);
  return had || n->nonzero || n->needed;
}

static void find_first_members(const ir_func *f, bands *s) {
  for (size_t i = 0; i < f->kernels.num; i++) {
    const ir_kernel *k = f->kernels.at[i];
    for (size_t j = 0; k->clone_of && j < k->nodes.num; j++)
      s->first[k->nodes.at[j]->id] = k->clone_of->nodes.at[j];
  }
}

static bool find_bands(ir_func *f) {
  ir_arena *scratch = ir_arena_new();
  bands s = {.of = IR_NEW_ARRAY(scratch, facts, f->next_id),
             .needed = IR_NEW_ARRAY(scratch, ir_band, f->next_id),
             .first = IR_NEW_ARRAY(scratch, const ir_node *, f->next_id)};
  find_first_members(f, &s);
  for (uint32_t i = 0; i < f->next_id; i++)
    s.needed[i] = band_none();
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    s.of[n->id] = rule_of(n->op)(&s, n);
  }
  find_needed(f, &s);
  bool found = false;
  for (size_t i = 0; i < f->nodes.num; i++)
    found |= put_facts(f->module->arena, f->nodes.at[i], &s);
  ir_arena_free(scratch);
  return found;
}

bool pass_bands(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, find_bands);
}
