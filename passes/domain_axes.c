// domain_axes.c: lists of axes. Where two tensors cut an axis differently the axis is split for
// all.
//
//   member      dims          before        after b (128) is split by 32
//   x           [12,128]      [a] [b]       [a] [b c]        b: 4, c: 32
//   y           [128,12]      [b] [a]       [b c] [a]
#include "passes/domain_parts.h"

#include <string.h>

int dom_new_axis(dom_work *w, int64_t size) {
  if (w->num_axes == DOM_MAX_AXES) {
    w->too_many = true;
    return -1;
  }
  w->size[w->num_axes] = size;
  return w->num_axes++;
}

void dom_push(dom_axes *l, int a) {
  if (a >= 0 && l->num < DOM_MAX_AXES)
    l->at[l->num++] = (uint8_t)a;
}

static void list_split(dom_axes *l, int hi, int lo) {
  for (int i = 0; i < l->num; i++) {
    if (l->at[i] != hi)
      continue;
    memmove(&l->at[i + 2], &l->at[i + 1], (size_t)(l->num - i - 1));
    l->at[i + 1] = (uint8_t)lo;
    l->num++;
    return;
  }
}

static void map_split(dom_map *m, int rank, int hi, int lo) {
  for (int d = 0; m->known && d < rank; d++)
    list_split(&m->dim[d], hi, lo);
}

int dom_split_axis(dom_work *w, int a, int64_t inner) {
  if (w->num_axes == DOM_MAX_AXES) {
    w->too_many = true;
    return -1;
  }
  int lo = dom_new_axis(w, inner);
  w->size[a] /= inner;
  w->reduced[lo] = w->reduced[a];
  for (size_t i = 0; i < w->num; i++) {
    map_split(&w->m[i].out, w->m[i].n->type.rank, a, lo);
    map_split(&w->m[i].in, w->m[i].n->type.rank, a, lo);
  }
  if (w->temp)
    map_split(w->temp, IR_MAX_RANK, a, lo);
  list_split(&w->order, a, lo);
  list_split(&w->reduced_axes, a, lo);
  list_split(&w->k_axes, a, lo);
  return lo;
}

int64_t dom_list_size(const dom_work *w, const dom_axes *l) {
  int64_t total = 1;
  for (int i = 0; i < l->num; i++)
    total *= w->size[l->at[i]];
  return total;
}

bool dom_uses_axis(const dom_map *m, int rank, int axis) {
  for (int d = 0; d < rank; d++)
    for (int i = 0; i < m->dim[d].num; i++)
      if (m->dim[d].at[i] == axis)
        return true;
  return false;
}

static bool same_axes(const dom_axes *a, const dom_axes *b) {
  return a->num == b->num && memcmp(a->at, b->at, a->num) == 0;
}

bool dom_same_map(const dom_map *a, const dom_map *b, int rank) {
  for (int d = 0; d < rank; d++)
    if (!same_axes(&a->dim[d], &b->dim[d]))
      return false;
  return true;
}
