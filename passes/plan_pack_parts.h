// plan_pack_parts.h: what the packer is made of (passes/plan_pack*.c).
//
//   plan_pack.c         intervals -> parts that share no time -> methods, until the goal is reached
//   plan_pack_times.c   times become sections; parts; live bytes
//   plan_pack_order.c   orders in which items are placed
//   plan_pack_gaps.c    placed intervals, and the gaps between them
//   plan_pack_sweep.c   what is live at one time first, then on in both directions of time
//   plan_pack_greedy.c  ten orders, in several ways
//   plan_pack_repair.c  what sticks out of a large part is packed again with its neighbours
//   plan_pack_exact.c   which heights are tried, with which orders: for small parts
//   plan_pack_search.c  is there a packing of this height? depth first
#ifndef PASSES_PLAN_PACK_PARTS_H
#define PASSES_PLAN_PACK_PARTS_H

#include "passes/plan.h"

// A section is a stretch of time in which nothing starts after something ended: whatever is live
// at any time of it is live together. An item is live in sections [lower, upper).
typedef struct pack_item {
  int32_t lower, upper;
  int64_t size;
} pack_item;

// What may still be spent. A step is about one interval looked at.
typedef struct pack_effort {
  int64_t steps, most_steps; // done; allowed
  int64_t next_look;         // at the clock: when so many are done
  const plan_pack_limits *limits;
  bool over;
} pack_effort;

// Items that hang together in time, and the best packing of them that is known.
typedef struct pack_part {
  ir_arena *arena;
  pack_item *item;
  size_t n;
  int32_t sections;
  int64_t unit;    // of bytes: sizes and offsets are multiples of it
  int64_t *live;   // [section] bytes
  int64_t bound;   // no packing is lower: the largest of them, or more when that is proved
  int64_t goal;    // a packing of this height is good enough
  int64_t height;  // of the best; INT64_MAX: none yet
  int64_t *offset; // [item] in the best
  pack_effort *effort;
} pack_part;

// Counts `steps`. True when there is nothing more to spend, from then on always.
bool pack_spend(pack_effort *e, int64_t steps);
// Is the best packing good enough, or all spent?
bool pack_is_done(const pack_part *p);
// Keeps a copy of `offset` when it is lower than the best.
void pack_keep(pack_part *p, const int64_t *offset, int64_t height);

// --- times
typedef struct pack_parts {
  ir_arena *arena;
  pack_part *at;
  size_t num;
  int32_t *part_of; // [interval] index of its part; -1: takes no memory at any time
  int32_t *item_of; // [interval] index in its part
} pack_parts;
pack_parts pack_split(ir_arena *a, const plan_interval *iv, size_t n, pack_effort *e);
// Sets live bytes, the bound and the unit.
void pack_measure(ir_arena *a, pack_part *p);

// --- placed intervals
typedef struct pack_gaps pack_gaps;
pack_gaps *pack_gaps_new(ir_arena *a);
void pack_gaps_clear(pack_gaps *g);
typedef enum pack_fit { PACK_LOWEST, PACK_TIGHTEST } pack_fit;
// Where the item goes: into the lowest gap or the tightest.
int64_t pack_gaps_find(pack_gaps *g, const pack_item *x, pack_fit fit);
void pack_gaps_add(pack_gaps *g, const pack_item *x, int64_t offset);
// Intervals looked at since it was made.
int64_t pack_gaps_steps(const pack_gaps *g);

// --- orders
typedef struct pack_orders pack_orders;
pack_orders *pack_orders_new(ir_arena *a, const pack_part *p);
// By a word of three letters (plan_pack_order.c).
void pack_order(pack_orders *o, const char *word, int32_t *order);
// By one letter, where each item counts for up to `percent` more than it has.
void pack_order_shaken(pack_orders *o, char letter, uint32_t percent, uint64_t *seed,
                       int32_t *order);

// --- sweeps
typedef struct pack_sweep pack_sweep;
pack_sweep *pack_sweep_new(pack_part *p);
// Packs what is live in `section` in the order given, then all else from there; keeps the best.
void pack_sweep_from(pack_sweep *w, int32_t section, const int32_t *order);

// --- methods: each leaves the part with the best that it finds
typedef struct pack_greedy pack_greedy;
pack_greedy *pack_greedy_new(pack_part *p);
void pack_greedy_sweep(pack_greedy *g);
void pack_greedy_place(pack_greedy *g); // item by item
void pack_greedy_round(pack_greedy *g); // sweeps in shaken orders, others each time
typedef struct pack_repair pack_repair;
pack_repair *pack_repair_new(pack_part *p);
void pack_repair_round(pack_repair *r);
typedef struct pack_exact pack_exact;
pack_exact *pack_exact_new(pack_part *p);
void pack_exact_round(pack_exact *x);

// --- depth-first search
typedef struct pack_search pack_search;
typedef enum pack_answer { PACK_YES, PACK_NO, PACK_UNKNOWN } pack_answer;
// Sizes are counted in units of so many bytes, at most PACK_MOST_UNITS in all: 32 bits, twice as many in
// a register. pinned[item]: where it must be, or -1; NULL: all are free.
enum { PACK_MOST_UNITS = 1 << 30 };
pack_search *pack_search_new(ir_arena *a, const pack_part *p, int64_t unit, const int64_t *pinned);
// Looks at `nodes` partial packings at most. `order`: all items, those that go first among equals in front.
pack_answer pack_search_run(pack_search *s, const int32_t *order, int32_t capacity, int64_t nodes);
// Offsets in units, after PACK_YES.
const int32_t *pack_search_offsets(const pack_search *s);

#define PACK_SEED 0x9e3779b97f4a7c15u
// xorshift64*: the same numbers every time.
static inline uint32_t pack_random(uint64_t *seed) {
  *seed ^= *seed >> 12;
  *seed ^= *seed << 25;
  *seed ^= *seed >> 27;
  return (uint32_t)((*seed * 2685821657736338717u) >> 32);
}

#endif
