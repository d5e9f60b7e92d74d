// plan_pack_search.c: is there a packing of a given height? Depth first, after MiniMalloc (Moffitt,
// ASPLOS 2023), whose ideas these are:
//
// - Items are placed from low offsets to high ones, among equal offsets in a given order, each as low
//   as those below it allow. Every packing can be pushed down until it is one of these.
// - No item goes so high that another would fit below it as a whole: that one would have come first.
// - In each section what is still to be placed must fit between the lowest place for any of it and the
//   capacity. As all that follows is placed no lower than the last item, this ends most branches early.
// - An item that is pinned to an offset is placed there in its turn; nothing before may reach into it.
// - Where no item that is left crosses from one section to the next, both sides are searched apart: a
//   dead end in one is no reason to look for another packing of the other.
#include <stdlib.h>
#include <string.h>

#include "passes/plan_pack_parts.h"

typedef struct change {
  int32_t item, low; // low < 0: the item was placed; else what low[item] was
} change;

// All arrays of items are in the order of the search.
struct pack_search {
  ir_arena *arena;
  int32_t n, sections;
  const pack_item *given;
  const int64_t *pinned; // as given; NULL: none is
  int64_t unit;
  int32_t *lower, *upper, *size;
  bool *is_pinned;
  int32_t *low;   // lowest offset, on top of all that is placed
  int32_t *limit; // [section] capacity without what is to be placed
  int32_t *cross; // [section] items to be placed that are live there and in the next
  int32_t *last_start, *first_end; // [section] of what supports it
  int32_t *ceiling;                // [section] lowest offset of what is pinned and to be placed
  int32_t *offset;                 // as given, not in the order of the search
  const int32_t *order;
  int32_t *by_lower, *by_upper;   // as given: the order of starts, of ends
  int32_t *rank;                  // [as given] in the order of the search
  int32_t *start_rank, *end_rank; // in the order of starts, of ends
  IR_VEC(change) trail;
  int32_t *stack; // lists of items, one above the other
  size_t top, cap;
  int32_t capacity;
  int64_t nodes;
  pack_effort *effort;
};

// What supports sections [from, to): for each the item that starts last, then for each the one that ends first. In the
// stack.
typedef struct supports {
  size_t at;
  int32_t from, to;
} supports;

// Items that are to be placed, of sections [from, to): lists of `num` in the stack.
typedef struct group {
  size_t at, by_lower, by_upper; // in the order of the search, of their starts, of their ends
  int32_t num, from, to;
  int32_t placed; // the last item that was; -1: none was
  supports above; // what it was one of
} group;

typedef struct place {
  int32_t offset, item;
} place;

typedef struct by_time {
  int32_t item, time;
} by_time;

static int compare_times(const void *pa, const void *pb) {
  const by_time *a = pa, *b = pb;
  return a->time != b->time ? (a->time < b->time ? -1 : 1) : a->item - b->item;
}

static int32_t *sort_items(ir_arena *a, const pack_part *p, bool by_end) {
  by_time *sorted = IR_NEW_ARRAY(a, by_time, p->n);
  int32_t *list = IR_NEW_ARRAY(a, int32_t, p->n);
  for (size_t i = 0; i < p->n; i++)
    sorted[i] = (by_time){(int32_t)i, by_end ? p->item[i].upper : p->item[i].lower};
  qsort(sorted, p->n, sizeof *sorted, compare_times);
  for (size_t i = 0; i < p->n; i++)
    list[i] = sorted[i].item;
  return list;
}

pack_search *pack_search_new(ir_arena *a, const pack_part *p, int64_t unit, const int64_t *pinned) {
  pack_search *s = IR_NEW(a, pack_search);
  *s = (pack_search){.arena = a,
                     .n = (int32_t)p->n,
                     .sections = p->sections,
                     .given = p->item,
                     .pinned = pinned,
                     .unit = unit,
                     .effort = p->effort};
  int32_t **by_item[] = {&s->lower,  &s->upper, &s->size,       &s->low,
                         &s->offset, &s->rank,  &s->start_rank, &s->end_rank};
  int32_t **by_section[] = {&s->limit, &s->last_start, &s->first_end, &s->cross, &s->ceiling};
  for (size_t i = 0; i < sizeof by_item / sizeof *by_item; i++)
    *by_item[i] = IR_NEW_ARRAY(a, int32_t, p->n);
  for (size_t i = 0; i < sizeof by_section / sizeof *by_section; i++)
    *by_section[i] = IR_NEW_ARRAY(a, int32_t, p->sections);
  s->is_pinned = IR_NEW_ARRAY(a, bool, p->n);
  s->by_lower = sort_items(a, p, false);
  s->by_upper = sort_items(a, p, true);
  return s;
}

const int32_t *pack_search_offsets(const pack_search *s) {
  return s->offset;
}

// --- lists of items ------------------------------------------------------------------------------
static int32_t *reserve(pack_search *s, size_t num) {
  if (s->top + num > s->cap) {
    size_t cap = 2 * (s->top + num);
    int32_t *stack = IR_NEW_ARRAY(s->arena, int32_t, cap);
    if (s->top)
      memcpy(stack, s->stack, sizeof *stack * s->top);
    s->stack = stack;
    s->cap = cap;
  }
  return s->stack + s->top;
}

// Copies those of a list of `g` that are live in [from, to) to the stack.
static int32_t copy_live(pack_search *s, size_t at, const group *g, int32_t from, int32_t to) {
  int32_t *out = reserve(s, (size_t)g->num), num = 0;
  const int32_t *in = s->stack + at;
  for (int32_t i = 0; i < g->num; i++) {
    int32_t k = in[i];
    out[num] = k;
    num += s->lower[k] < to && s->upper[k] > from;
  }
  s->top += (size_t)num;
  return num;
}

static group narrow(pack_search *s, const group *g, int32_t from, int32_t to) {
  group r = *g;
  r.from = from;
  r.to = to;
  r.at = s->top;
  r.num = copy_live(s, g->at, g, from, to);
  r.by_lower = s->top;
  copy_live(s, g->by_lower, g, from, to);
  r.by_upper = s->top;
  copy_live(s, g->by_upper, g, from, to);
  return r;
}

// Copies a list of `g` without item k, which is in it, to the stack.
static size_t copy_without(pack_search *s, size_t from, const group *g, int32_t k) {
  size_t at = s->top, before = 0;
  int32_t *out = reserve(s, (size_t)g->num);
  const int32_t *in = s->stack + from;
  while (in[before] != k)
    before++;
  memcpy(out, in, sizeof *out * before);
  memcpy(out + before, in + before + 1, sizeof *out * ((size_t)g->num - before - 1));
  s->top += (size_t)g->num - 1;
  return at;
}

static group without(pack_search *s, const group *g, int32_t k) {
  group r = *g;
  r.at = copy_without(s, g->at, g, k);
  r.by_lower = copy_without(s, g->by_lower, g, k);
  r.by_upper = copy_without(s, g->by_upper, g, k);
  r.num--;
  return r;
}

// --- one item ------------------------------------------------------------------------------------
static void put(pack_search *s, const group *g, int32_t k) {
  int32_t end = s->low[k] + s->size[k], lower = s->lower[k], upper = s->upper[k];
  change placed = {k, -1};
  IR_PUSH(s->arena, s->trail, placed);
  for (int32_t i = lower; i < upper; i++)
    s->limit[i] += s->size[k];
  for (int32_t i = lower; i < upper - 1; i++)
    s->cross[i]--;
  const int32_t *list = s->stack + g->at;
  for (int32_t i = 0; i < g->num; i++) {
    int32_t j = list[i];
    if (s->low[j] >= end || s->lower[j] >= upper || s->upper[j] <= lower || j == k)
      continue;
    change raised = {j, s->low[j]};
    IR_PUSH(s->arena, s->trail, raised);
    s->low[j] = end;
  }
}

static void take_back(pack_search *s, size_t mark) {
  while (s->trail.num > mark) {
    change c = s->trail.at[--s->trail.num];
    if (c.low >= 0) {
      s->low[c.item] = c.low;
      continue;
    }
    for (int32_t i = s->lower[c.item]; i < s->upper[c.item]; i++)
      s->limit[i] -= s->size[c.item];
    for (int32_t i = s->lower[c.item]; i < s->upper[c.item] - 1; i++)
      s->cross[i]++;
  }
}

// --- room ----------------------------------------------------------------------------------------
// How many of a list come before item k, by the ranks that it is sorted by.
static int32_t count_before(const int32_t *list, int32_t num, const int32_t *rank, int32_t k) {
  int32_t low = 0, high = num;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (rank[list[middle]] < rank[k])
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Which starts last of those that support a section, among the first `num` in the order of their starts, none of
// which starts after it. -1: none supports it.
static int32_t find_last_start(const pack_search *s, const int32_t *by_lower, int32_t num,
                               int32_t section) {
  int32_t limit = s->limit[section];
  while (num-- > 0) {
    int32_t k = by_lower[num];
    if ((s->upper[k] > section) & (s->low[k] <= limit))
      return k;
  }
  return -1;
}

// Which ends first, among those in the order of their ends, none of which ends before it. There is one.
static int32_t find_first_end(const pack_search *s, const int32_t *by_upper, int32_t section) {
  int32_t limit = s->limit[section], i = 0;
  while ((s->lower[by_upper[i]] > section) | (s->low[by_upper[i]] > limit))
    i++;
  return by_upper[i];
}

static bool is_low(const pack_search *s, int32_t k, int32_t section) {
  return s->low[k] <= s->limit[section];
}

// Of a section beside the item that was placed last: its limit is what it was, and items have gone up only. What
// supported it still does, or the next does that starts before it, or ends after it.
static bool keep_supports(const pack_search *s, const group *g, int32_t section, int32_t *starts,
                          int32_t *ends) {
  const int32_t *was = s->stack + g->above.at + (section - g->above.from);
  const int32_t *by_lower = s->stack + g->by_lower, *by_upper = s->stack + g->by_upper;
  *starts = was[0];
  *ends = was[g->above.to - g->above.from];
  if (!is_low(s, *starts, section))
    *starts = find_last_start(s, by_lower, count_before(by_lower, g->num, s->start_rank, *starts),
                              section);
  if (*starts >= 0 && !is_low(s, *ends, section))
    *ends =
        find_first_end(s, by_upper + count_before(by_upper, g->num, s->end_rank, *ends), section);
  return *starts >= 0;
}

// Of sections that the item was placed in, or all: in this order.
typedef struct fresh {
  int32_t started, ended;
} fresh;

static bool look_for_supports(const pack_search *s, const group *g, fresh *f, int32_t section,
                              int32_t *starts, int32_t *ends) {
  const int32_t *by_lower = s->stack + g->by_lower, *by_upper = s->stack + g->by_upper;
  while (f->started < g->num && s->lower[by_lower[f->started]] <= section)
    f->started++;
  while (f->ended < g->num && s->upper[by_upper[f->ended]] <= section)
    f->ended++;
  *starts = find_last_start(s, by_lower, f->started, section);
  if (*starts < 0)
    return false;
  *ends = find_first_end(s, by_upper + f->ended, section);
  return true;
}

// What is still to be placed in a section must begin at its limit or below: something live there must
// be that low. Sets `last_start` and `first_end` of those that are. False when a section has none.
static bool find_supports(pack_search *s, const group *g, supports *found) {
  size_t sections = (size_t)(g->to - g->from);
  int32_t *starts = reserve(s, 2 * sections), *ends = starts + sections;
  int32_t lower = g->placed < 0 ? g->from : s->lower[g->placed];
  int32_t upper = g->placed < 0 ? g->to : s->upper[g->placed];
  fresh f = {0, 0};
  *found = (supports){s->top, g->from, g->to};
  s->top += 2 * sections;
  pack_spend(s->effort, 6 * ((int64_t)g->num + g->to - g->from));
  for (int32_t i = g->from; i < g->to; i++, starts++, ends++) {
    s->last_start[i] = INT32_MAX;
    s->first_end[i] = -1;
    if (s->limit[i] == s->capacity)
      continue;
    if (!(i < lower || i >= upper ? keep_supports(s, g, i, starts, ends)
                                  : look_for_supports(s, g, &f, i, starts, ends)))
      return false;
    s->last_start[i] = s->lower[*starts];
    s->first_end[i] = s->upper[*ends];
  }
  return true;
}

static void find_ceilings(pack_search *s, const group *g) {
  const int32_t *list = s->stack + g->at;
  if (!s->pinned)
    return;
  for (int32_t i = g->from; i < g->to; i++)
    s->ceiling[i] = INT32_MAX;
  for (int32_t i = 0; i < g->num; i++) {
    int32_t k = list[i], low = s->low[k], upper = s->upper[k];
    for (int32_t j = s->lower[k]; s->is_pinned[k] && j < upper; j++)
      s->ceiling[j] = s->ceiling[j] < low ? s->ceiling[j] : low;
  }
}

// Nothing that is pinned is reached into by item k, or lies below it when it is pinned itself.
static bool is_below_ceilings(const pack_search *s, int32_t k) {
  if (!s->pinned)
    return true;
  int32_t end = s->low[k] + (s->is_pinned[k] ? 0 : s->size[k]), upper = s->upper[k], over = 0;
  for (int32_t i = s->lower[k]; i < upper; i++)
    over |= end > s->ceiling[i];
  return !over;
}

// Does each section keep a support when item k is placed? It raises all that is live beside it.
static bool leaves_supports(const pack_search *s, const group *g, int32_t k) {
  int32_t end = s->low[k] + s->size[k], lower = s->lower[k], upper = s->upper[k], lost = 0;
  for (int32_t i = g->from; i < lower; i++)
    lost |= (s->first_end[i] > lower) & (end > s->limit[i]);
  for (int32_t i = upper; i < g->to; i++)
    lost |= (s->last_start[i] < upper) & (end > s->limit[i]);
  return !lost;
}

// --- the search ----------------------------------------------------------------------------------
static bool comes_before(place a, place b) {
  return a.offset != b.offset ? a.offset < b.offset : a.item < b.item;
}

// No next item is this high: another would fit below it, or a section would have no room left.
static int32_t too_high(const pack_search *s, const group *g) {
  const int32_t *list = s->stack + g->at;
  int32_t r = INT32_MAX;
  for (int32_t i = 0; i < g->num; i++) {
    int32_t end = s->low[list[i]] + s->size[list[i]];
    r = end < r ? end : r;
  }
  for (int32_t i = g->from; i < g->to; i++)
    r = s->limit[i] < r ? s->limit[i] + 1 : r;
  return r;
}

// What can be next after `last`, best first: a list in the stack, two numbers each.
static int32_t candidates(pack_search *s, const group *g, place last, size_t *at) {
  int32_t num = 0, high = too_high(s, g);
  find_ceilings(s, g);
  place *out = (place *)(void *)reserve(s, 2 * (size_t)g->num);
  const int32_t *list = s->stack + g->at;
  for (int32_t i = 0; i < g->num; i++) {
    place x = {s->low[list[i]], list[i]};
    if (x.offset >= high || comes_before(x, last) || !is_below_ceilings(s, x.item) ||
        !leaves_supports(s, g, x.item))
      continue;
    int32_t j = num++;
    for (; j > 0 && comes_before(x, out[j - 1]); j--)
      out[j] = out[j - 1];
    out[j] = x;
  }
  *at = s->top;
  s->top += 2 * (size_t)num;
  return num;
}

static pack_answer search(pack_search *s, group g, place last);

// Each side of a section that nothing crosses any more, as a search of its own.
static pack_answer search_apart(pack_search *s, const group *g) {
  pack_answer r = PACK_YES;
  for (int32_t from = g->from; r == PACK_YES && from < g->to;) {
    int32_t to = from + 1;
    while (to < g->to && s->cross[to - 1] > 0)
      to++;
    size_t top = s->top;
    group part = narrow(s, g, from, to);
    if (part.num > 0)
      r = search(s, part, (place){0, 0});
    s->top = top;
    from = to;
  }
  return r;
}

static bool is_cut(const pack_search *s, int32_t k) {
  for (int32_t i = s->lower[k]; i < s->upper[k] - 1; i++)
    if (s->cross[i] == 0)
      return true;
  return false;
}

static pack_answer search_with(pack_search *s, const group *g, supports above, place x) {
  size_t mark = s->trail.num, top = s->top;
  put(s, g, x.item);
  s->offset[s->order[x.item]] = x.offset;
  group rest = without(s, g, x.item);
  rest.placed = x.item;
  rest.above = above;
  pack_answer r = is_cut(s, x.item) ? search_apart(s, &rest) : search(s, rest, x);
  s->top = top;
  if (r != PACK_YES)
    take_back(s, mark);
  return r;
}

static pack_answer search(pack_search *s, group g, place last) {
  if (g.num == 0)
    return PACK_YES;
  if (s->nodes-- <= 0 || s->effort->over)
    return PACK_UNKNOWN;
  size_t at, top = s->top;
  supports found;
  if (!find_supports(s, &g, &found)) {
    s->top = top;
    return PACK_NO;
  }
  int32_t num = candidates(s, &g, last, &at);
  pack_answer r = PACK_NO;
  for (int32_t i = 0; i < num && r == PACK_NO; i++)
    r = search_with(s, &g, found, ((place *)(void *)(s->stack + at))[i]);
  s->top = top;
  return r;
}

static void set_out(pack_search *s) {
  for (int32_t i = 0; i < s->sections; i++)
    s->limit[i] = s->capacity;
  memset(s->cross, 0, sizeof *s->cross * (size_t)s->sections);
  s->trail.num = 0;
  s->top = 0;
  for (int32_t i = 0; i < s->n; i++) {
    const pack_item *x = &s->given[s->order[i]];
    s->rank[s->order[i]] = i;
    s->lower[i] = x->lower;
    s->upper[i] = x->upper;
    s->size[i] = (int32_t)ir_ceil_div(x->size, s->unit);
    s->is_pinned[i] = s->pinned && s->pinned[s->order[i]] >= 0;
    s->low[i] = s->is_pinned[i] ? (int32_t)(s->pinned[s->order[i]] / s->unit) : 0;
    for (int32_t j = x->lower; j < x->upper; j++)
      s->limit[j] -= s->size[i];
    for (int32_t j = x->lower; j < x->upper - 1; j++)
      s->cross[j]++;
  }
}

// A list of all items on top of the stack. `given`: their order, of items as given; NULL: that of the search.
static size_t push_all(pack_search *s, const int32_t *given) {
  size_t at = s->top;
  int32_t *list = reserve(s, (size_t)s->n);
  for (int32_t i = 0; i < s->n; i++)
    list[i] = given ? s->rank[given[i]] : i;
  s->top += (size_t)s->n;
  return at;
}

static void rank_all(const pack_search *s, size_t at, int32_t *rank) {
  for (int32_t i = 0; i < s->n; i++)
    rank[s->stack[at + (size_t)i]] = i;
}

pack_answer pack_search_run(pack_search *s, const int32_t *order, int32_t capacity, int64_t nodes) {
  s->order = order;
  s->capacity = capacity;
  s->nodes = nodes;
  set_out(s);
  group all = {.num = s->n, .to = s->sections, .placed = -1};
  all.at = push_all(s, NULL);
  all.by_lower = push_all(s, s->by_lower);
  all.by_upper = push_all(s, s->by_upper);
  rank_all(s, all.by_lower, s->start_rank);
  rank_all(s, all.by_upper, s->end_rank);
  return search(s, all, (place){0, 0});
}
