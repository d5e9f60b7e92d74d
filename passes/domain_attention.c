// domain_attention.c: the parts of an ATTENTION kernel and the axes of its scores (domain.h).
//
//   s = matmul q, k      [12,4,64,64]    in[0]       axes 12, 4 | 64 | 64: batch, m, n
//   p = ... s ...                        scores
//   y = matmul p, v      [12,4,64,32]    out[0]      not in the domain: it has an axis of its own
#include "passes/domain.h"

bool dom_is_product_out(const ir_node *n, const ir_kernel *k) {
  return n->op == IR_MATMUL && n->in[0]->kernel == k && k;
}

// Axes from the last one on that make up `size`; -1 when none do.
static int axes_of_size(const domain *d, int *end, int64_t size) {
  int64_t have = 1;
  int num = 0;
  while (*end > 0 && have < size) {
    have *= d->axis[--*end].size;
    num++;
  }
  return have == size ? num : -1;
}

// A vector of four lies within one row of the last of these axes.
static bool hold_vectors(const domain *d, int num, int last) {
  return num == 1 || (num > 1 && d->axis[last].size % 4 == 0);
}

static bool find_axes(dom_attention *x, const ir_type *t) {
  int end = x->dom->num_axes;
  x->m = t->dims[t->rank - 2];
  x->n = t->dims[t->rank - 1];
  x->batch = ir_elements(t) / (x->m * x->n);
  x->num_n_axes = axes_of_size(x->dom, &end, x->n);
  x->num_m_axes = axes_of_size(x->dom, &end, x->m);
  x->num_batch_axes = end;
  int last = x->dom->num_axes - 1;
  return hold_vectors(x->dom, x->num_n_axes, last) &&
         hold_vectors(x->dom, x->num_m_axes, last - x->num_n_axes);
}

static void sort_members(ir_arena *a, dom_attention *x, const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++) {
    ir_node *n = k->nodes.at[i];
    if (n->op != IR_MATMUL) {
      IR_PUSH(a, x->scores.nodes, n);
    } else if (dom_is_product_out(n, k)) {
      IR_PUSH(a, x->out, n);
    } else {
      IR_PUSH(a, x->in, n);
      IR_PUSH(a, x->scores.nodes, n);
    }
  }
  for (size_t i = 0; i < k->outputs.num; i++)
    if (!dom_is_product_out(k->outputs.at[i], k))
      IR_PUSH(a, x->scores.outputs, k->outputs.at[i]);
}

dom_attention *dom_build_attention(ir_arena *a, const ir_kernel *k) {
  dom_attention *x = IR_NEW(a, dom_attention);
  x->scores = (ir_kernel){.name = k->name, .family = k->family, .anchor = k->anchor};
  sort_members(a, x, k);
  BUG_IF(!x->in.num || x->in.num > DOM_MAX_PRODUCTS || !x->out.num || x->out.num > DOM_MAX_PRODUCTS,
         "kernel '%s' is no attention", k->name);
  x->columns = ir_attr_bool(x->out.at[0], IR_ATTR_TRANS_A);
  x->dom = dom_build(a, &x->scores);
  BUG_IF(!find_axes(x, &x->in.at[0]->type), "kernel '%s' has other axes than its scores", k->name);
  return x;
}

bool dom_try_attention(ir_arena *a, ir_node *const *scores, size_t num, const ir_type *type) {
  dom_attention x = {.dom = dom_try(a, scores, num, NULL)};
  return x.dom && find_axes(&x, type);
}
