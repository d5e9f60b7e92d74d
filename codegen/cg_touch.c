// cg_touch.c: which bytes a walk over axes can touch (cg_generator.touches is made of this).
//
// Positions [first, end) of axes 4 x 8 with strides 100, 1:
//   [8, 16)   row 1            100 .. 107    exact
//   [10, 20)  rows 1 and 2     100 .. 207    whole rows: a superset
#include "codegen/codegen.h"

int64_t cg_arg_bytes(const cg_kernel *k, int arg) {
  size_t i = (size_t)arg;
  if (i < k->in.num)
    return dom_bytes(k->in.at[i]);
  i -= k->in.num;
  return i < k->out.num ? ir_bytes(&k->out.at[i]->type) : k->workspace;
}

void cg_walk_add(cg_walk *w, int64_t size, int64_t stride) {
  BUG_IF(w->num == 2 * DOM_MAX_AXES, "a walk over more than %d axes", w->num);
  w->size[w->num] = size;
  w->stride[w->num++] = stride;
}

static void reach(int64_t steps, int64_t stride, int64_t *least, int64_t *most) {
  *(stride < 0 ? least : most) += steps * stride;
}

void cg_walk_reach(const cg_walk *w, int64_t first, int64_t end, int64_t *least, int64_t *most) {
  int64_t inner = 1, last = end - 1;
  for (int i = 0; i < w->num; i++)
    inner *= w->size[i];
  for (int i = 0; i < w->num; i++) {
    inner /= w->size[i];
    int64_t from = first / inner, to = last / inner;
    *least += from * w->stride[i];
    *most += from * w->stride[i];
    reach(to - from, w->stride[i], least, most);
    if (from != to) { // inside, from the first to the last: everything
      for (int j = i + 1; j < w->num; j++)
        reach(w->size[j] - 1, w->stride[j], least, most);
      return;
    }
    first -= from * inner;
    last -= to * inner;
  }
}

bool cg_overlap(cg_bytes a, cg_bytes b) {
  return a.from < b.to && b.from < a.to;
}

bool cg_spans_overlap(const cg_spans *a, const cg_spans *b) {
  for (size_t i = 0; i < a->num; i++)
    for (size_t j = 0; j < b->num; j++)
      if (cg_overlap(a->at[i], b->at[j]))
        return true;
  return false;
}

cg_bytes cg_join(cg_bytes a, cg_bytes b) {
  if (a.from == a.to)
    return b;
  if (b.from == b.to)
    return a;
  return (cg_bytes){a.from < b.from ? a.from : b.from, a.to > b.to ? a.to : b.to};
}
