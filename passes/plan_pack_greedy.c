// plan_pack_greedy.c: ten orders of items, each tried in several ways, until one reaches the goal.
//
// Sweeps (plan_pack_sweep.c) go first: they are quick, and for training steps they nearly always reach
// the bound. Where they and a first turn of other methods do not, each order is placed item by item, into
// the lowest or the tightest gap; that takes a look at all that is placed and live beside each item.
#include "passes/plan_pack_parts.h"

static const char *const words[] = {"ZWL", "UWZ", "TWA", "AZL", "WZL",
                                    "TAW", "LWZ", "UZW", "ZUW", "LZW"};
enum { NUM_WORDS = sizeof words / sizeof *words };

struct pack_greedy {
  pack_part *p;
  pack_orders *orders;
  pack_sweep *sweep;
  pack_gaps *gaps;
  int32_t *order, peak; // the first section with most live bytes
  int64_t *offset;
  int round;
  uint64_t seed;
};

static int32_t find_peak(const pack_part *p) {
  int32_t peak = 0;
  for (int32_t s = 1; s < p->sections; s++)
    if (p->live[s] > p->live[peak])
      peak = s;
  return peak;
}

pack_greedy *pack_greedy_new(pack_part *p) {
  pack_greedy *g = IR_NEW(p->arena, pack_greedy);
  *g = (pack_greedy){.p = p, .peak = find_peak(p), .seed = PACK_SEED};
  g->orders = pack_orders_new(p->arena, p);
  g->sweep = pack_sweep_new(p);
  g->gaps = pack_gaps_new(p->arena);
  g->order = IR_NEW_ARRAY(p->arena, int32_t, p->n);
  g->offset = IR_NEW_ARRAY(p->arena, int64_t, p->n);
  return g;
}

// From the peak, where there are no holes then; from the end, where gradients pile up; from the start.
void pack_greedy_sweep(pack_greedy *g) {
  const int32_t from[] = {g->peak, g->p->sections - 1, 0};
  for (int w = 0; w < NUM_WORDS && !pack_is_done(g->p); w++) {
    pack_order(g->orders, words[w], g->order);
    for (size_t i = 0; i < sizeof from / sizeof *from && !pack_is_done(g->p); i++)
      pack_sweep_from(g->sweep, from[i], g->order);
  }
}

// Gives up above the best height, and when nothing may be spent any more.
static void place_all(pack_greedy *g, pack_fit fit) {
  int64_t height = 0;
  pack_gaps_clear(g->gaps);
  for (size_t i = 0; i < g->p->n; i++) {
    const pack_item *x = &g->p->item[g->order[i]];
    int64_t before = pack_gaps_steps(g->gaps), at = pack_gaps_find(g->gaps, x, fit);
    bool over = pack_spend(g->p->effort, pack_gaps_steps(g->gaps) - before);
    height = at + x->size > height ? at + x->size : height;
    if (over || height >= g->p->height)
      return;
    g->offset[g->order[i]] = at;
    pack_gaps_add(g->gaps, x, at);
  }
  pack_keep(g->p, g->offset, height);
}

void pack_greedy_place(pack_greedy *g) {
  for (int fit = PACK_LOWEST; fit <= PACK_TIGHTEST; fit++)
    for (int w = 0; w < NUM_WORDS && !pack_is_done(g->p); w++) {
      pack_order(g->orders, words[w], g->order);
      place_all(g, (pack_fit)fit);
    }
}

void pack_greedy_round(pack_greedy *g) {
  static const uint32_t percents[] = {5, 20, 80};
  for (int w = 0; w < NUM_WORDS && !pack_is_done(g->p); w++) {
    pack_order_shaken(g->orders, words[w][0], percents[g->round % 3], &g->seed, g->order);
    pack_sweep_from(g->sweep, g->peak, g->order);
  }
  g->round++;
}
