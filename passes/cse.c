// cse.c: one node per value.
//
//   before:  %a = mul %x, %y        after:  %a = mul %x, %y
//            %b = mul %y, %x                %c = add %a, %a
//            %c = add %a, %b
//
// Two nodes are one when op, type, operands (in any order where the op commutes), attributes and
// state are equal. Constants compare by their bits, so 0.0 and -0.0 stay apart, and so do max(x, 0), which makes 0
// of a NaN, and max(0, x). Random numbers with one stream, seed and step are one. Inputs and writes are never merged.
//
// Needs: nothing. Keeps the first of equal nodes.
#include "passes/algebra.h"
#include "passes/pass.h"

typedef struct value_table {
  ir_node **slots; // open addressing
  size_t mask;
} value_table;

static value_table new_table(ir_arena *a, size_t num_nodes) {
  size_t size = 16;
  while (size < num_nodes * 2)
    size *= 2;
  return (value_table){IR_NEW_ARRAY(a, ir_node *, size), size - 1};
}

// --- hashing -----------------------------------------------------------------------------
static uint64_t hash_node(const ir_node *n) {
  uint64_t operands = 0;
  bool commutes = alg_commutes(n);
  for (int i = 0; i < n->num_in; i++)
    operands =
        commutes ? operands + ir_hash_mix(1, n->in[i]->id) : ir_hash_mix(operands, n->in[i]->id);
  return ir_hash_mix(ir_hash_work(n), operands);
}

// --- equality ------------------------------------------------------------------------------
static bool same_operands(const ir_node *x, const ir_node *y) {
  if (x->num_in == 2 && alg_commutes(x) && x->in[0] == y->in[1] && x->in[1] == y->in[0])
    return true;
  for (int i = 0; i < x->num_in; i++)
    if (x->in[i] != y->in[i])
      return false;
  return true;
}

static bool same_value(const ir_node *x, const ir_node *y) {
  return ir_same_work(x, y) && same_operands(x, y);
}

// --- the walk --------------------------------------------------------------------------------
static bool can_merge(const ir_node *n) {
  ir_op_class cls = ir_ops[n->op].cls;
  return n->op != IR_INPUT && cls != IR_CLASS_EFFECT && cls != IR_CLASS_SYMBOLIC;
}

// The first node with the value of `n`: n itself when it is new.
static ir_node *first_equal(value_table *t, ir_node *n) {
  size_t i = hash_node(n) & t->mask;
  for (; t->slots[i]; i = (i + 1) & t->mask)
    if (same_value(t->slots[i], n))
      return t->slots[i];
  t->slots[i] = n;
  return n;
}

static bool merge_func(ir_func *f) {
  value_table t = new_table(f->module->arena, f->nodes.num);
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    ir_rewrite_done(&rw, i, can_merge(n) ? first_equal(&t, n) : n);
  }
  return ir_rewrite_end(&rw);
}

bool pass_cse(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, merge_func);
}
