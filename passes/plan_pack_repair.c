// plan_pack_repair.c: lowers a packing of a large part, stretch of time by stretch of time.
//
//             ___                        An item that sticks out above the goal is packed again, together
//   goal ....|_h_|.......                with those that live within a stretch of time around it. The
//        ____|___|__   __|               exact search does that; what also lives outside of the stretch
//       |_a_|__b____|_|_c|               is pinned to where it is, and what lives all through it and
//       |________________|               touches is one block. Where there is no answer, the stretch is
//              longer and the order another in the next round.
#include <stdlib.h>
#include <string.h>

#include "passes/plan_pack_parts.h"

enum {
  FIRST_FREE = 40,
  MOST_FREE = 400,
  MOST_IN_VAIN = 8, // items that stay, beside those that are lowered
  NODES = 400
}; // each item that is pinned is a node of the search, too

struct pack_repair {
  pack_part *p;
  int round;
  uint64_t seed;
};

// A stretch of time as a part of its own.
typedef struct window {
  ir_arena *arena;
  int32_t from, to;
  size_t most_free;
  pack_part part;
  IR_VEC(pack_item) items;
  IR_VEC(int64_t) pinned;
  IR_VEC(int32_t) origin; // item of the whole; -1: none, or several
} window;

pack_repair *pack_repair_new(pack_part *p) {
  pack_repair *r = IR_NEW(p->arena, pack_repair);
  *r = (pack_repair){.p = p, .seed = PACK_SEED};
  return r;
}

// --- the stretch ---------------------------------------------------------------------------------
// Items are in the order of their starts: the first that starts in `section` or later.
static size_t first_item(const pack_part *p, int32_t section) {
  size_t low = 0, high = p->n;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (p->item[middle].lower < section)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static size_t count_inside(const pack_part *p, int32_t from, int32_t to) {
  size_t num = 0, end = first_item(p, to);
  for (size_t i = first_item(p, from); i < end; i++)
    num += p->item[i].upper <= to;
  return num;
}

// Around item k, as long as no more than so many items live within.
static void choose_stretch(const pack_part *p, window *w, size_t k) {
  const pack_item *x = &p->item[k];
  w->from = x->lower;
  w->to = x->upper;
  for (int32_t more = 1; more < p->sections; more *= 2) {
    int32_t from = x->lower > more ? x->lower - more : 0;
    int32_t to = x->upper < p->sections - more ? x->upper + more : p->sections;
    if (count_inside(p, from, to) > w->most_free)
      return;
    w->from = from;
    w->to = to;
  }
}

static void add(window *w, pack_item x, int64_t pinned, int32_t origin) {
  x.lower = x.lower > w->from ? x.lower - w->from : 0;
  x.upper = (x.upper < w->to ? x.upper : w->to) - w->from;
  IR_PUSH(w->arena, w->items, x);
  IR_PUSH(w->arena, w->pinned, pinned);
  IR_PUSH(w->arena, w->origin, origin);
}

typedef struct block {
  int64_t begin, end;
} block;

static int compare_blocks(const void *pa, const void *pb) {
  const block *a = pa, *b = pb;
  return a->begin < b->begin ? -1 : a->begin > b->begin;
}

// What lives all through the stretch: neighbours become one.
static void add_blocks(window *w, block *at, size_t num) {
  qsort(at, num, sizeof *at, compare_blocks);
  for (size_t i = 0; i < num;) {
    block b = at[i++];
    while (i < num && at[i].begin == b.end)
      b.end = at[i++].end;
    add(w, (pack_item){w->from, w->to, b.end - b.begin}, b.begin, -1);
  }
}

static void fill(const pack_part *p, window *w, size_t k, uint64_t *seed) {
  size_t inside = count_inside(p, w->from, w->to), end = first_item(p, w->to), num = 0;
  block *blocks = IR_NEW_ARRAY(w->arena, block, end);
  for (size_t i = 0; i < end; i++) {
    const pack_item *x = &p->item[i];
    if (x->upper <= w->from)
      continue;
    bool free = x->lower >= w->from && x->upper <= w->to &&
                (i == k || inside <= w->most_free || pack_random(seed) % inside < w->most_free);
    if (!free && x->lower <= w->from && x->upper >= w->to)
      blocks[num++] = (block){p->offset[i], p->offset[i] + x->size};
    else
      add(w, *x, free ? -1 : p->offset[i], (int32_t)i);
  }
  add_blocks(w, blocks, num);
}

// --- packing it again ----------------------------------------------------------------------------
// False: there is no answer, or none was found.
static bool search(pack_repair *r, window *w, int64_t target) {
  static const char letters[] = "TWUAZL";
  pack_part *part = &w->part;
  *part = (pack_part){
      .item = w->items.at, .n = w->items.num, .sections = w->to - w->from, .effort = r->p->effort};
  pack_measure(w->arena, part);
  pack_search *s = pack_search_new(w->arena, part, r->p->unit, w->pinned.at);
  pack_orders *by = pack_orders_new(w->arena, part);
  int32_t *order = IR_NEW_ARRAY(w->arena, int32_t, part->n);
  pack_answer answer = PACK_UNKNOWN;
  for (const char *c = letters; *c && answer == PACK_UNKNOWN; c++) {
    pack_order_shaken(by, *c, r->round ? 100 : 0, &r->seed, order);
    answer = pack_search_run(s, order, (int32_t)(target / r->p->unit), NODES);
  }
  for (size_t i = 0; answer == PACK_YES && i < part->n; i++)
    if (w->pinned.at[i] < 0)
      r->p->offset[w->origin.at[i]] = pack_search_offsets(s)[i] * r->p->unit;
  return answer == PACK_YES;
}

static bool lower_item(pack_repair *r, size_t k, int64_t target, size_t most_free) {
  window w = {.arena = ir_arena_new(), .most_free = most_free};
  choose_stretch(r->p, &w, k);
  fill(r->p, &w, k, &r->seed);
  bool lower = w.items.num <= NODES && search(r, &w, target);
  pack_spend(r->p->effort, (int64_t)r->p->n + 8 * (int64_t)w.items.num);
  ir_arena_free(w.arena);
  return lower;
}

static int64_t height_of(const pack_part *p) {
  int64_t height = 0;
  for (size_t i = 0; i < p->n; i++)
    if (p->offset[i] + p->item[i].size > height)
      height = p->offset[i] + p->item[i].size;
  return height;
}

// Every other round is content with half of the way. Where most items stay, the whole will not be low enough: other
// orders get a turn.
void pack_repair_round(pack_repair *r) {
  pack_part *p = r->p;
  if (p->height / p->unit > PACK_MOST_UNITS || pack_is_done(p))
    return;
  int64_t target = r->round % 2 ? p->goal + (p->height - p->goal) / 2 : p->goal;
  size_t most_free = FIRST_FREE;
  for (int i = 2; i <= r->round && most_free < MOST_FREE; i += 2)
    most_free *= 2;
  int stayed = 0;
  for (size_t k = 0; k < p->n && !p->effort->over && stayed <= MOST_IN_VAIN; k++)
    if (p->offset[k] + p->item[k].size > target)
      stayed += lower_item(r, k, target, most_free) ? -1 : 1;
  p->height = height_of(p);
  r->round++;
}
