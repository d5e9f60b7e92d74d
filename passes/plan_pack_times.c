// plan_pack_times.c: from times to sections, and from intervals to parts that share no time.
//
//   times     0   3   5   9  12  20 ...       any integers
//   a         [-------)                       before: lower 0, upper 5
//   b             [-------)
//   c                  [------)
//   sections  |   0    | 1   |                after: a [0, 1), b [0, 2), c [1, 2)
//
// A section ends where an interval starts after another ended: in between, all that is live is live
// together at one time. There are no more sections than intervals.
#include "passes/plan_pack_parts.h"
#include "passes/plan_sort.h"

int64_t plan_pack_bound(ir_arena *a, const plan_interval *iv, size_t n) {
  plan_events e = plan_sort_events(a, iv, n);
  int64_t live = 0, most = 0;
  for (size_t i = 0; i < e.num; i++) {
    int64_t size = iv[e.at[i].interval].size;
    live += e.at[i].start ? size : -size;
    if (live > most)
      most = live;
  }
  return most;
}

// The interval becomes the next item of the last part.
static void add_item(pack_parts *s, int32_t interval, int32_t section, int64_t size) {
  pack_part *p = &s->at[s->num - 1];
  s->part_of[interval] = (int32_t)s->num - 1;
  s->item_of[interval] = (int32_t)p->n;
  p->item[p->n++] = (pack_item){.lower = section, .size = size};
}

static void walk(pack_parts *s, const plan_interval *iv, const plan_events *e, pack_item *items) {
  size_t live = 0;
  bool ended = false; // something did since the last start
  for (size_t i = 0; i < e->num; i++) {
    int32_t k = e->at[i].interval;
    if (!e->at[i].start) {
      s->at[s->part_of[k]].item[s->item_of[k]].upper = s->at[s->num - 1].sections;
      ended = true;
      live--;
      continue;
    }
    if (live++ == 0) {
      s->at[s->num++] = (pack_part){.item = items, .sections = 1};
    } else if (ended) {
      s->at[s->num - 1].sections++;
    }
    ended = false;
    add_item(s, k, s->at[s->num - 1].sections - 1, iv[k].size);
    items++;
  }
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

void pack_measure(ir_arena *a, pack_part *p) {
  p->live = IR_NEW_ARRAY(a, int64_t, p->sections + 1);
  p->unit = 0;
  for (size_t i = 0; i < p->n; i++) {
    p->live[p->item[i].lower] += p->item[i].size;
    p->live[p->item[i].upper] -= p->item[i].size;
    p->unit = common_divisor(p->item[i].size, p->unit);
  }
  p->bound = 0;
  for (int32_t s = 0; s < p->sections; s++) {
    p->live[s] += s ? p->live[s - 1] : 0;
    p->bound = p->live[s] > p->bound ? p->live[s] : p->bound;
  }
}

pack_parts pack_split(ir_arena *a, const plan_interval *iv, size_t n, pack_effort *effort) {
  pack_parts s = {.arena = a,
                  .at = IR_NEW_ARRAY(a, pack_part, n + 1),
                  .part_of = IR_NEW_ARRAY(a, int32_t, n + 1),
                  .item_of = IR_NEW_ARRAY(a, int32_t, n + 1)};
  for (size_t i = 0; i < n; i++)
    s.part_of[i] = -1;
  plan_events e = plan_sort_events(a, iv, n);
  walk(&s, iv, &e, IR_NEW_ARRAY(a, pack_item, n + 1));
  for (size_t i = 0; i < s.num; i++) {
    pack_part *p = &s.at[i];
    pack_measure(a, p);
    p->arena = a;
    p->height = INT64_MAX;
    p->offset = IR_NEW_ARRAY(a, int64_t, p->n);
    p->effort = effort;
  }
  return s;
}
