// plan_diff.c: see plan_diff.h. Items are the same by name; of equal names in one list the first counts.
//
//   a: h 512, d 512, w 64         d: 512 -> 256, w is gone, z is new; h is elsewhere (others: 1)
//   b: h 512, d 256, z 16
#include "driver/plan_diff.h"

#include <stdlib.h>
#include <string.h>

static ir_map *by_name(ir_arena *a, const plan_items *items) {
  ir_map *m = ir_map_new(a);
  for (size_t i = 0; i < items->num; i++)
    if (!ir_map_get(m, items->at[i].name))
      ir_map_put(m, items->at[i].name, &items->at[i]);
  return m;
}

static uint64_t distance(const plan_change *c) {
  int64_t a = c->a ? c->a->size : 0, b = c->b ? c->b->size : 0;
  return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static const char *name_of(const plan_change *c) {
  return c->a ? c->a->name : c->b->name;
}

static int compare(const void *x, const void *y) {
  const plan_change *a = x, *b = y;
  uint64_t da = distance(a), db = distance(b);
  return da != db ? (da > db ? -1 : 1) : strcmp(name_of(a), name_of(b));
}

static bool same_rest(const plan_item *a, const plan_item *b) {
  return !a->rest || !b->rest || strcmp(a->rest, b->rest) == 0;
}

static void sort(plan_changes *c) {
  if (c->list.num)
    qsort(c->list.at, c->list.num, sizeof *c->list.at, compare);
}

static plan_changes find_changes(ir_arena *arena, const plan_items *a, const plan_items *b) {
  plan_changes out = {0};
  ir_map *in_a = by_name(arena, a), *in_b = by_name(arena, b);
  const plan_item *latest = NULL; // of b, so far
  for (size_t i = 0; i < ir_map_count(in_a); i++) {
    const plan_item *x = ir_map_value(in_a, i), *y = ir_map_get(in_b, x->name);
    if (!y || x->size != y->size)
      IR_PUSH(arena, out.list, ((plan_change){x, y}));
    else
      out.others += !same_rest(x, y);
    out.reordered |= y && latest && y < latest;
    latest = y ? y : latest;
  }
  for (size_t i = 0; i < ir_map_count(in_b); i++) {
    const plan_item *y = ir_map_value(in_b, i);
    if (!ir_map_get(in_a, y->name))
      IR_PUSH(arena, out.list, ((plan_change){NULL, y}));
  }
  sort(&out);
  return out;
}

// Members of an object, whose order says nothing.
static plan_changes find_figures(ir_arena *arena, const plan_items *a, const plan_items *b) {
  plan_changes out = find_changes(arena, a, b);
  out.reordered = false;
  return out;
}

static bool is_same(const plan_changes *c) {
  return c->list.num == 0 && c->others == 0 && !c->reordered;
}

// --- functions -----------------------------------------------------------------------------------
static const plan_file_func *find_func(const plan_file *p, const char *name) {
  for (size_t i = 0; i < p->funcs.num; i++)
    if (strcmp(p->funcs.at[i].name, name) == 0)
      return &p->funcs.at[i];
  return NULL;
}

static void take_func(ir_arena *a, plan_diff *d, const plan_file_func *x, const plan_file_func *y) {
  static const plan_file_func none = {0};
  plan_func_diff f = {.name = x ? x->name : y->name, .in_a = x, .in_b = y};
  x = x ? x : &none;
  y = y ? y : &none;
  f.figures = find_figures(a, &x->figures, &y->figures);
  f.shares = find_figures(a, &x->shares, &y->shares);
  f.kernels = find_changes(a, &x->kernels, &y->kernels);
  f.buffers = find_changes(a, &x->buffers, &y->buffers);
  f.host = find_changes(a, &x->host, &y->host);
  f.copies = find_changes(a, &x->copies, &y->copies);
  if (f.in_a != f.in_b || !is_same(&f.figures) || !is_same(&f.shares) || !is_same(&f.kernels) ||
      !is_same(&f.buffers) || !is_same(&f.host) || !is_same(&f.copies))
    IR_PUSH(a, d->funcs, f);
}

plan_diff plan_diff_find(ir_arena *a, const plan_file *x, const plan_file *y) {
  plan_diff d = {.a = x, .b = y};
  d.figures = find_figures(a, &x->figures, &y->figures);
  d.shares = find_figures(a, &x->shares, &y->shares);
  d.buffers = find_changes(a, &x->buffers, &y->buffers);
  for (size_t i = 0; i < x->funcs.num; i++)
    take_func(a, &d, &x->funcs.at[i], find_func(y, x->funcs.at[i].name));
  for (size_t i = 0; i < y->funcs.num; i++)
    if (!find_func(x, y->funcs.at[i].name))
      take_func(a, &d, NULL, &y->funcs.at[i]);
  d.same = is_same(&d.figures) && is_same(&d.shares) && is_same(&d.buffers) && d.funcs.num == 0 &&
           strcmp(x->model, y->model) == 0;
  return d;
}
