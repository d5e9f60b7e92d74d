// plan_pack_order.c: orders in which items are placed.
//
// An order is a word; its letters say what comes first, then among equals, then among those:
//   T  those live at the times with most live bytes        W  long lives
//   A  large areas: size times life                         Z  large sizes
//   L  early starts                                         U  late ends
// Shaken orders are by one letter, and each item's value is first multiplied by a random number. Only
// multiplications are rounded: every machine has the same orders.
#include <stdlib.h>

#include "passes/plan_pack_parts.h"

enum { LEVELS = 31 };

typedef struct key {
  double first, second, third; // larger goes first
  int32_t at;
} key;

struct pack_orders {
  const pack_part *p;
  int64_t *peak; // [item] most live bytes in its sections
  key *keys;
};

// Per item the largest of live[lower .. upper): a table of the largest of 1, 2, 4, ... neighbours.
static int64_t *find_peaks(ir_arena *a, const pack_part *p) {
  int64_t *most[LEVELS] = {p->live}, *peak = IR_NEW_ARRAY(a, int64_t, p->n);
  for (int level = 1; (1 << level) <= p->sections; level++) {
    int32_t half = 1 << (level - 1), num = p->sections - 2 * half + 1;
    most[level] = IR_NEW_ARRAY(a, int64_t, num);
    for (int32_t i = 0; i < num; i++) {
      int64_t x = most[level - 1][i], y = most[level - 1][i + half];
      most[level][i] = x > y ? x : y;
    }
  }
  for (size_t i = 0; i < p->n; i++) {
    int32_t lower = p->item[i].lower, upper = p->item[i].upper;
    int level = 31 - __builtin_clz((unsigned)(upper - lower));
    int64_t x = most[level][lower], y = most[level][upper - (1 << level)];
    peak[i] = x > y ? x : y;
  }
  return peak;
}

pack_orders *pack_orders_new(ir_arena *a, const pack_part *p) {
  pack_orders *o = IR_NEW(a, pack_orders);
  *o = (pack_orders){p, find_peaks(a, p), IR_NEW_ARRAY(a, key, p->n)};
  return o;
}

static double value_of(const pack_orders *o, char letter, size_t i) {
  const pack_item *x = &o->p->item[i];
  double length = x->upper - x->lower, size = (double)x->size;
  switch (letter) {
  case 'T':
    return (double)o->peak[i];
  case 'W':
    return length;
  case 'A':
    return length * size;
  case 'Z':
    return size;
  case 'L':
    return o->p->sections - x->lower;
  case 'U':
    return x->upper;
  default:
    BUG("no order by '%c'", letter);
  }
}

static int compare_keys(const void *pa, const void *pb) {
  const key *a = pa, *b = pb;
  if (a->first != b->first)
    return a->first > b->first ? -1 : 1;
  if (a->second != b->second)
    return a->second > b->second ? -1 : 1;
  if (a->third != b->third)
    return a->third > b->third ? -1 : 1;
  return a->at - b->at;
}

static void sort(pack_orders *o, int32_t *order) {
  qsort(o->keys, o->p->n, sizeof *o->keys, compare_keys);
  for (size_t i = 0; i < o->p->n; i++)
    order[i] = o->keys[i].at;
}

void pack_order(pack_orders *o, const char *word, int32_t *order) {
  for (size_t i = 0; i < o->p->n; i++)
    o->keys[i] = (key){value_of(o, word[0], i), value_of(o, word[1], i), value_of(o, word[2], i),
                       (int32_t)i};
  sort(o, order);
}

void pack_order_shaken(pack_orders *o, char letter, uint32_t percent, uint64_t *seed,
                       int32_t *order) {
  for (size_t i = 0; i < o->p->n; i++) {
    double factor = 100 + pack_random(seed) % (percent + 1);
    o->keys[i] = (key){value_of(o, letter, i) * factor, 0, 0, (int32_t)i};
  }
  sort(o, order);
}
