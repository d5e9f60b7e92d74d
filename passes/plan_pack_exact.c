// plan_pack_exact.c: looks for the lowest packing of a small part, height by height.
//
// The search (plan_pack_search.c) nearly always finds a packing at once or not at all: what helps is
// another order, soon. A round tries the lowest height that is possible with several orders, each for
// so many partial packings; later rounds have shaken orders and more patience. Some rounds also try
// heights in between, so that the best is good when the lowest is out of reach. A search that runs to
// its end without a packing proves that the part is higher.
#include "passes/plan_pack_parts.h"

enum { FIRST_NODES = 300 };

struct pack_exact {
  pack_part *p;
  pack_search *search;
  pack_orders *orders;
  int32_t *order;
  int64_t *offset;
  int64_t unit;   // bytes
  bool can_prove; // sizes are whole units
  int round;
  uint64_t seed;
};

pack_exact *pack_exact_new(pack_part *p) {
  pack_exact *x = IR_NEW(p->arena, pack_exact);
  // Heights of too many digits are rounded up: what is found is a packing, but nothing is proved.
  int64_t times = ir_ceil_div(ir_ceil_div(p->height, p->unit), PACK_MOST_UNITS);
  *x = (pack_exact){.p = p, .unit = p->unit * times, .can_prove = times == 1, .seed = PACK_SEED};
  x->search = pack_search_new(p->arena, p, x->unit, NULL);
  x->orders = pack_orders_new(p->arena, p);
  x->order = IR_NEW_ARRAY(p->arena, int32_t, p->n);
  x->offset = IR_NEW_ARRAY(p->arena, int64_t, p->n);
  return x;
}

static void keep_found(pack_exact *x) {
  const int32_t *found = pack_search_offsets(x->search);
  int64_t height = 0;
  for (size_t i = 0; i < x->p->n; i++) {
    x->offset[i] = found[i] * x->unit;
    int64_t end = x->offset[i] + x->p->item[i].size;
    height = end > height ? end : height;
  }
  pack_keep(x->p, x->offset, height);
}

// A round has as many orders as there are words.
static const char *const words[] = {"TWA", "UTW", "LZT", "WAT", "TAW", "ZWL", "AWT", "WTA"};
enum { NUM_WORDS = sizeof words / sizeof *words };

static int64_t nodes_of_round(const pack_exact *x) {
  return FIRST_NODES + 2 * (int64_t)x->p->n * (1 + x->round / 4);
}

// Looks for a packing of a height. A proof that there is none makes the part's bound higher.
static pack_answer try_order(pack_exact *x, int64_t height, int64_t nodes) {
  pack_answer r = pack_search_run(x->search, x->order, (int32_t)(height / x->unit), nodes);
  if (r == PACK_YES)
    keep_found(x);
  if (r == PACK_NO && x->can_prove && x->p->bound <= height)
    x->p->bound = height / x->unit * x->unit + x->unit;
  return r;
}

static pack_answer try_height(pack_exact *x, int64_t height, int orders) {
  static const uint32_t percents[] = {20, 80, 300};
  for (int i = 0; i < orders && !x->p->effort->over; i++) {
    if (x->round == 0)
      pack_order(x->orders, words[i], x->order);
    else
      pack_order_shaken(x->orders, words[i][0], percents[x->round % 3], &x->seed, x->order);
    pack_answer r = try_order(x, height, nodes_of_round(x));
    if (r != PACK_UNKNOWN)
      return r;
  }
  return PACK_UNKNOWN;
}

// Heights between what nothing is known of and the best, by halves.
static void try_between(pack_exact *x, int64_t low) {
  while (x->p->height - low > x->unit && !pack_is_done(x->p)) {
    int64_t middle = low + (x->p->height - low) / 2;
    if (try_height(x, middle, 2) != PACK_YES)
      low = middle;
  }
}

// One order, for as long as all rounds before: proofs need it.
static void try_long(pack_exact *x, int64_t height) {
  pack_order(x->orders, words[0], x->order);
  try_order(x, height, nodes_of_round(x) * NUM_WORDS * x->round);
}

void pack_exact_round(pack_exact *x) {
  pack_part *p = x->p;
  int64_t target = p->goal > p->bound ? p->goal : p->bound;
  pack_answer r = try_height(x, target, NUM_WORDS);
  bool is_doubled = (x->round & (x->round - 1)) == 0;
  if (r == PACK_UNKNOWN && is_doubled) {
    try_between(x, target);
    try_long(x, target);
  }
  x->round++;
}
