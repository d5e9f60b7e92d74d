// program_hash.c: what decides the numbers of a program, as one number.
//
//   the states; each value that is computed, once, by what it is computed from; each kernel that adds up
//
// Not in which order kernels run, where things lie in memory, what waits on the host, nor what is made or runs again: a
// checkpoint is the same bytes under every plan. Nor which kernel computes a value element by element, which has the same
// bits in all, but for a product that is added to something: C compilers make one instruction of the two, which rounds
// once, where both are in one kernel and nothing else there needs the product (-ffp-contract=fast). Sums have other bits
// in another order, which the members of a kernel decide; but not those of a matmul, whose plan knows nothing of its
// epilogue (mm_problem).
#include "codegen/program.h"

#include <stdlib.h>

static size_t place_in(const ir_kernel *k, const ir_node *n) {
  size_t i = 0;
  while (k->nodes.at[i] != n)
    i++;
  return i;
}

// An operand: how it is seen, and which member or leaf it is. Of what another kernel makes, the type: that may
// have been made again, or fetched.
static uint64_t operand_hash(const ir_kernel *k, const ir_node *n) {
  uint64_t h = 0;
  for (; ir_ops[n->op].cls == IR_CLASS_VIEW; n = n->in[0])
    h = ir_hash_mix(h, ir_hash_work(n));
  if (n->kernel == k)
    return ir_hash_mix(h, place_in(k, n));
  if (ir_ops[n->op].cls == IR_CLASS_LEAF)
    return ir_hash_mix(h, ir_hash_work(n));
  for (int i = 0; i < n->type.rank; i++)
    h = ir_hash_mix(h, (uint64_t)n->type.dims[i]);
  return ir_hash_mix(h, n->type.dtype);
}

// What one kernel computes.
static uint64_t kernel_hash(const ir_kernel *k) {
  uint64_t h = k->family;
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    h = ir_hash_mix(h, ir_hash_work(n));
    for (int j = 0; j < n->num_in; j++)
      h = ir_hash_mix(h, operand_hash(k, n->in[j]));
  }
  return h;
}

// [id] how often the kernel of a node needs it: for members, and to store it.
static int *count_needs(ir_arena *a, const ir_func *f) {
  int *needs = IR_NEW_ARRAY(a, int, f->next_id + 1);
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    for (int j = 0; n->kernel && j < n->num_in; j++) {
      const ir_node *in = dom_base(n->in[j]);
      needs[in->id] += in->kernel == n->kernel;
    }
  }
  for (size_t i = 0; i < f->kernels.num; i++)
    for (size_t j = 0; j < f->kernels.at[i]->outputs.num; j++)
      needs[f->kernels.at[i]->outputs.at[j]->id]++;
  return needs;
}

// A sign is part of the instruction; copies are none.
static bool passes_on(const ir_node *n) {
  return n->op == IR_NEG || n->op == IR_COPY || n->op == IR_STOP;
}

// Whether an operand of `n`, which adds, is a product that compilers may take into the addition: what decides that.
static uint64_t product_hash(const int *needs, const ir_node *n, const ir_node *x) {
  bool seen = false, needed_once = true, here = true;
  for (;; x = x->in[0]) {
    seen |= ir_is_seen_through(x);
    x = dom_base(x);
    here = x->kernel == n->kernel;
    needed_once &= needs[x->id] == 1;
    if (!here || !passes_on(x))
      break;
  }
  if (x->op != IR_MUL || !here)
    return 0;
  return 1 + (uint64_t)seen + 2 * (uint64_t)needed_once;
}

static bool adds(const ir_node *n) {
  return (n->op == IR_ADD || n->op == IR_SUB || n->op == IR_SUM) && ir_is_float(n->type.dtype);
}

static uint64_t addition_hash(const int *needs, const ir_node *n, uint64_t value) {
  for (int j = 0; j < n->num_in; j++)
    value = ir_hash_mix(value, product_hash(needs, n, n->in[j]));
  return value;
}

// Of all values that a function computes, each once; of additions, how, besides: copies of the value say nothing of that.
static uint64_t values_hash(ir_arena *a, const ir_func *f) {
  const uint64_t *of = ir_value_hashes(a, f);
  const int *needs = count_needs(a, f);
  uint64_t *all = IR_NEW_ARRAY(a, uint64_t, 2 * f->nodes.num + 1);
  size_t num = 0;
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->kernel)
      all[num++] = of[n->id];
    if (n->kernel && adds(n))
      all[num++] = addition_hash(needs, n, of[n->id]);
  }
  qsort(all, num, sizeof *all, ir_compare_hashes);
  uint64_t sum = 0;
  for (size_t i = 0; i < num; i++)
    sum += i == 0 || all[i] != all[i - 1] ? all[i] : 0;
  return sum;
}

// Its members decide in which order a kernel adds up. A matmul's do not.
static bool decides_sums(const ir_kernel *k) {
  bool computes_elements =
      k->family == IR_FAMILY_LOOP || k->family == IR_FAMILY_MATMUL || k->family == IR_FAMILY_COPY;
  return (!computes_elements || ir_reduces(k)) && !k->clone_of && !ir_is_transfer(k);
}

uint64_t cg_program_hash(ir_arena *a, const ir_module *m) {
  ir_buf b = ir_buf_new(a);
  for (size_t i = 0; i < m->states.num; i++) {
    const ir_state *s = m->states.at[i];
    ir_buf_printf(&b, "%s %s\n", s->name, ir_type_str(a, &s->type));
  }
  uint64_t sum = ir_hash(ir_buf_str(&b), b.len);
  for (size_t i = 0; i < m->funcs.num; i++) {
    const ir_func *f = m->funcs.at[i];
    sum += values_hash(a, f);
    for (size_t j = 0; j < f->kernels.num; j++)
      sum += decides_sums(f->kernels.at[j]) ? kernel_hash(f->kernels.at[j]) : 0;
  }
  return sum;
}
