// keep_parts.c: a part of a value that is read long after the rest of it gets memory of its own.
//
//   before   %d = matmul ..                                   after   %d = matmul ..
//            %p = slice %d {..}                                       %p = slice %d {..}
//            %q = slice %d {..}                                       %q = slice %d {..}
//            .. %p ..                                                 %q.concat = concat %q {axis=0}
//            matmul .. many more .. matmul                            .. %p ..
//            .. %q ..                                                 matmul .. many more .. matmul
//                                                                     .. %q.concat ..
//
// The gradient of a concat that a U-Net's last blocks read: one half of it goes back through all blocks below before the
// other is added to what comes from there. As a view, the second half would keep the first one in memory for all that time,
// which is a quarter of what such a network needs within a small budget. The copy takes a moment; no policy could do this,
// as nothing of it could run again.
//
// A concat of one operand, not a `copy`: that would become a member of the kernel that reads it, which comes too late.
//
// Needs: algebra, which makes one slice of two, and leaves out concats of one, has run. Breaks: nothing.
#include "ir/builder.h"
#include "passes/domain.h"
#include "passes/pass.h"

enum {
  LEAST_BYTES = 65536, // that are set free
  LEAST_SHARE = 2,     // of the whole's bytes: half
  LEAST_PRODUCTS = 6,  // between the last reader of the rest and the first one of the part
};

// Who reads a value, by their places from 1 on; 0: nobody.
typedef struct value {
  const ir_node *slice; // what the last one reads; NULL: all of it
  size_t last, others;  // the last one; the last one of those that do not read the slice
} value;

typedef struct keeper {
  const ir_func *f;
  size_t *first; // [id] of slices: who reads it first

  value *values;    // [id]
  size_t *products; // [place] before it
} keeper;

// The slice through which an operand is seen, as close to what memory holds as can be; NULL: there is none.
static const ir_node *slice_below(const ir_node *n) {
  const ir_node *slice = NULL;
  for (; ir_is_seen_through(n); n = n->in[0])
    slice = n->op == IR_SLICE ? n : slice;
  return slice;
}

static void read_operand(const keeper *x, const ir_node *n, size_t place) {
  value *v = &x->values[dom_base(n)->id];
  const ir_node *slice = slice_below(n);
  if (slice && x->first[slice->id] == 0)
    x->first[slice->id] = place;

  if (slice != v->slice || !slice) // places come in order: all before were of others
    v->others = v->last;
  v->slice = slice;
  v->last = place;
}

static void find_readers(const keeper *x) {
  size_t num = 0;
  for (size_t i = 0; i < x->f->nodes.num; i++) {
    const ir_node *n = x->f->nodes.at[i];
    x->products[i] = num;
    num += ir_ops[n->op].cls == IR_CLASS_CONTRACT;
    for (int k = 0; !ir_is_seen_through(n) && k < n->num_in; k++)
      read_operand(x, n->in[k], i + 1);
  }
  x->products[x->f->nodes.num] = num;
  for (size_t i = 0; i < x->f->results.num; i++)
    read_operand(x, x->f->results.at[i].node, x->f->nodes.num);
}

// Of a slice of a copy that was made here, it is not known who reads the rest.
static bool is_worth_a_copy(const keeper *x, const ir_node *n, uint32_t num_ids) {
  const ir_node *whole = dom_base(n);
  if (n->op != IR_SLICE || whole->id >= num_ids)
    return false;
  const value *v = &x->values[whole->id];
  size_t first = x->first[n->id];
  int64_t all = ir_bytes(&whole->type), part = ir_bytes(&n->type);
  return v->slice == n && v->others > 0 && first > v->others && all - part >= LEAST_BYTES &&
         part <= all / LEAST_SHARE && !ir_is_generated(whole) && whole->op != IR_READ &&
         whole->op != IR_INPUT && x->products[first - 1] >= x->products[v->others] + LEAST_PRODUCTS;
}

static bool keep_func(ir_func *f) {
  ir_arena *a = ir_arena_new();
  keeper x = {.f = f};
  x.first = IR_NEW_ARRAY(a, size_t, f->next_id + 1);
  x.values = IR_NEW_ARRAY(a, value, f->next_id + 1);
  x.products = IR_NEW_ARRAY(a, size_t, f->nodes.num + 1);
  find_readers(&x);
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    bool copied = is_worth_a_copy(&x, n, rw.map_size);
    rw.b.scope = n->name;
    ir_rewrite_done(&rw, i, copied ? ir_concat(&rw.b, 1, &n, 0) : n);
  }
  bool changed = ir_rewrite_end(&rw);
  ir_arena_free(a);
  return changed;
}

bool pass_keep_parts(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, keep_func);
}
