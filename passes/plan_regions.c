// plan_regions.c: who owns each stretch of memory. A segment tree over compressed addresses:
// setting and asking are O(log n).
#include <stdlib.h>

#include "passes/plan_parts.h"

struct plan_regions {
  int64_t *bound; // sorted, unique; leaf i is [bound[i], bound[i + 1])
  size_t num;     // leaves
  int *owner;     // [tree node] owner of the whole subtree, or PLAN_MIXED
};

static int compare_bounds(const void *pa, const void *pb) {
  int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
  return a < b ? -1 : a > b;
}

plan_regions *plan_regions_new(ir_arena *a, int64_t *bounds, size_t n) {
  plan_regions *r = IR_NEW(a, plan_regions);
  if (n > 0) // an empty list may be NULL, which qsort must not get
    qsort(bounds, n, sizeof *bounds, compare_bounds);
  size_t num = 0;
  for (size_t i = 0; i < n; i++)
    if (num == 0 || bounds[num - 1] != bounds[i])
      bounds[num++] = bounds[i];
  r->bound = bounds;
  r->num = num > 1 ? num - 1 : 1;
  r->owner = IR_NEW_ARRAY(a, int, 4 * r->num);
  return r;
}

static size_t leaf_at(const plan_regions *r, int64_t address) {
  size_t lo = 0, hi = r->num;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (r->bound[mid] < address)
      lo = mid + 1;
    else
      hi = mid;
  }
  BUG_IF(r->bound[lo] != address, "address %lld was not announced", (long long)address);
  return lo;
}

static void set(plan_regions *r, size_t t, size_t from, size_t to, size_t lo, size_t hi,
                int owner) {
  if (lo >= to || hi <= from)
    return;
  if (lo <= from && to <= hi) {
    r->owner[t] = owner;
    return;
  }
  if (r->owner[t] != PLAN_MIXED)
    r->owner[2 * t + 1] = r->owner[2 * t + 2] = r->owner[t];
  size_t mid = (from + to) / 2;
  set(r, 2 * t + 1, from, mid, lo, hi, owner);
  set(r, 2 * t + 2, mid, to, lo, hi, owner);
  bool same = r->owner[2 * t + 1] == r->owner[2 * t + 2];
  r->owner[t] = same ? r->owner[2 * t + 1] : PLAN_MIXED;
}

static int get(const plan_regions *r, size_t t, size_t from, size_t to, size_t lo, size_t hi) {
  if ((lo <= from && to <= hi) || r->owner[t] != PLAN_MIXED)
    return r->owner[t];
  size_t mid = (from + to) / 2;
  if (hi <= mid)
    return get(r, 2 * t + 1, from, mid, lo, hi);
  if (lo >= mid)
    return get(r, 2 * t + 2, mid, to, lo, hi);
  int left = get(r, 2 * t + 1, from, mid, lo, hi);
  return left == get(r, 2 * t + 2, mid, to, lo, hi) ? left : PLAN_MIXED;
}

void plan_regions_set(plan_regions *r, int64_t begin, int64_t end, int owner) {
  if (begin < end)
    set(r, 0, 0, r->num, leaf_at(r, begin), leaf_at(r, end), owner);
}

int plan_regions_get(const plan_regions *r, int64_t begin, int64_t end) {
  return begin < end ? get(r, 0, 0, r->num, leaf_at(r, begin), leaf_at(r, end)) : 0;
}
