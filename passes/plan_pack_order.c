// plan_pack_order.c: orders in which items are placed.
//
// An order is a word; its letters say what comes first, then among equals, then among those:
//   T  those live at the times with most live bytes        W  long lives
//   A  large areas: size times life                         Z  large sizes
//   L  early starts                                         U  late ends
// Shaken orders are by one letter, and each item's value is first multiplied by a random number. Only
// multiplications are rounded: every machine has the same orders.
//
// Sorted digit by digit, from the last letter's lowest to the first's highest: equals stay as they were. The
// packer asks for hundreds of orders where the bound is out of reach, and comparing took a third of its time.
#include <string.h>

#include "passes/plan_pack_parts.h"

enum {
  LEVELS = 31,
  DIGIT_BITS = 8,
  DIGIT_VALUES = 1 << DIGIT_BITS,
  NUM_DIGITS = 64 / DIGIT_BITS,
};

typedef struct key {
  uint64_t bits; // of a value that is not negative: such doubles are in the order of their bits
  int32_t at;
} key;

struct pack_orders {
  const pack_part *p;
  int64_t *peak; // [item] most live bytes in its sections
  key *keys, *sorted;
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
  *o = (pack_orders){p, find_peaks(a, p), IR_NEW_ARRAY(a, key, p->n), IR_NEW_ARRAY(a, key, p->n)};
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

static key key_of(double value, int32_t at) {
  key k = {.at = at};
  memcpy(&k.bits, &value, sizeof value);
  return k;
}

static int digit_of(const key *k, int digit) {
  return (int)(k->bits >> digit * DIGIT_BITS & (DIGIT_VALUES - 1));
}

// How many keys have each digit, made where the first key with it goes: the largest digit is in front. False: all have
// the same one.
static bool digits_to_places(int32_t *num, size_t keys) {
  int32_t place = 0;
  for (int v = DIGIT_VALUES - 1; v >= 0; v--) {
    int32_t with = num[v];
    if (with == (int32_t)keys)
      return false;
    num[v] = place;
    place += with;
  }
  return true;
}

// The keys with the largest values in front, equals in the order they had.
static void sort(pack_orders *o) {
  int32_t num[NUM_DIGITS][DIGIT_VALUES] = {0};
  size_t n = o->p->n;
  for (size_t i = 0; i < n; i++)
    for (int d = 0; d < NUM_DIGITS; d++)
      num[d][digit_of(&o->keys[i], d)]++;
  for (int d = 0; d < NUM_DIGITS; d++) {
    if (!digits_to_places(num[d], n))
      continue;
    for (size_t i = 0; i < n; i++)
      o->sorted[num[d][digit_of(&o->keys[i], d)]++] = o->keys[i];
    key *swap = o->keys;
    o->keys = o->sorted, o->sorted = swap;
  }
}

static void put_order(const pack_orders *o, int32_t *order) {
  for (size_t i = 0; i < o->p->n; i++)
    order[i] = o->keys[i].at;
}

void pack_order(pack_orders *o, const char *word, int32_t *order) {
  for (size_t i = 0; i < o->p->n; i++)
    o->keys[i].at = (int32_t)i;
  for (size_t letter = strlen(word); letter-- > 0;) {
    for (size_t i = 0; i < o->p->n; i++) {
      int32_t at = o->keys[i].at;
      o->keys[i] = key_of(value_of(o, word[letter], (size_t)at), at);
    }
    sort(o);
  }
  put_order(o, order);
}

void pack_order_shaken(pack_orders *o, char letter, uint32_t percent, uint64_t *seed,
                       int32_t *order) {
  for (size_t i = 0; i < o->p->n; i++) {
    double factor = 100 + pack_random(seed) % (percent + 1);
    o->keys[i] = key_of(value_of(o, letter, i) * factor, (int32_t)i);
  }
  sort(o);
  put_order(o, order);
}
