// plan_pack_gaps.c: placed items by offset, and the gaps between those that are live with another.
//
// Items lie in blocks of neighbours. A block knows when any of its items is live, and when all of them
// are, and its largest hole between neighbours. A look for a gap passes over blocks that are never
// live together with the new item, and over those that are live as long as it and have no hole that it
// fits into: saved activations, stacked upon each other, are hundreds of such blocks.
#include <string.h>

#include "passes/plan_pack_parts.h"

enum { BLOCK_MAX = 64 };

typedef struct placed {
  int32_t lower, upper;
  int64_t begin, end;
} placed;

typedef struct block {
  int32_t lower, upper;         // some item is live
  int32_t all_lower, all_upper; // all items are
  int64_t hole, end;            // largest hole between neighbours; highest end
  int num;
  placed at[BLOCK_MAX];
} block;

struct pack_gaps {
  ir_arena *arena;
  IR_VEC(block *) blocks; // by offset; emptied, not freed
  size_t num_blocks;
  int64_t steps;
};

pack_gaps *pack_gaps_new(ir_arena *a) {
  pack_gaps *g = IR_NEW(a, pack_gaps);
  g->arena = a;
  return g;
}

void pack_gaps_clear(pack_gaps *g) {
  g->num_blocks = 0;
}

int64_t pack_gaps_steps(const pack_gaps *g) {
  return g->steps;
}

// --- blocks --------------------------------------------------------------------------------------
static block *new_block(pack_gaps *g, size_t at) {
  if (g->num_blocks == g->blocks.num)
    IR_PUSH(g->arena, g->blocks, IR_NEW(g->arena, block));
  block *fresh = g->blocks.at[g->num_blocks];
  memmove(&g->blocks.at[at + 1], &g->blocks.at[at], sizeof(block *) * (g->num_blocks - at));
  g->blocks.at[at] = fresh;
  g->num_blocks++;
  fresh->num = 0;
  return fresh;
}

static void summarise(block *b) {
  b->lower = b->all_upper = INT32_MAX;
  b->upper = b->all_lower = 0;
  b->hole = 0;
  b->end = b->at[0].begin;
  for (int i = 0; i < b->num; i++) {
    const placed *x = &b->at[i];
    b->lower = x->lower < b->lower ? x->lower : b->lower;
    b->upper = x->upper > b->upper ? x->upper : b->upper;
    b->all_lower = x->lower > b->all_lower ? x->lower : b->all_lower;
    b->all_upper = x->upper < b->all_upper ? x->upper : b->all_upper;
    b->hole = x->begin - b->end > b->hole ? x->begin - b->end : b->hole;
    b->end = x->end > b->end ? x->end : b->end;
  }
}

static void split_block(pack_gaps *g, size_t at) {
  block *high = new_block(g, at + 1), *low = g->blocks.at[at];
  low->num = BLOCK_MAX / 2;
  high->num = BLOCK_MAX - low->num;
  memcpy(high->at, low->at + low->num, sizeof(placed) * (size_t)high->num);
  summarise(low);
  summarise(high);
}

// The last block that starts at or below `begin`; the first when all start above.
static size_t find_block(const pack_gaps *g, int64_t begin) {
  size_t lo = 0, hi = g->num_blocks;
  while (hi - lo > 1) {
    size_t mid = (lo + hi) / 2;
    if (g->blocks.at[mid]->at[0].begin <= begin)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

void pack_gaps_add(pack_gaps *g, const pack_item *item, int64_t offset) {
  placed x = {item->lower, item->upper, offset, offset + item->size};
  if (g->num_blocks == 0)
    new_block(g, 0);
  size_t at = find_block(g, x.begin);
  if (g->blocks.at[at]->num == BLOCK_MAX) {
    split_block(g, at);
    at = find_block(g, x.begin);
  }
  block *b = g->blocks.at[at];
  int i = b->num++;
  for (; i > 0 && b->at[i - 1].begin > x.begin; i--)
    b->at[i] = b->at[i - 1];
  b->at[i] = x;
  summarise(b);
}

// --- gaps ----------------------------------------------------------------------------------------
typedef struct look {
  const pack_item *item;
  pack_fit fit;
  int64_t top;          // end of what is live so far
  int64_t found, slack; // slack < 0: nothing found
} look;

// The gap from l->top to `end`. True when the look is over.
static bool try_gap(look *l, int64_t end) {
  int64_t slack = end - l->top - l->item->size;
  if (slack < 0)
    return false;
  if (l->slack < 0 || slack < l->slack) {
    l->found = l->top;
    l->slack = slack;
  }
  return l->fit == PACK_LOWEST || slack == 0;
}

static void rise(look *l, int64_t end) {
  if (end > l->top)
    l->top = end;
}

// Is there nothing to find but below and above the block?
static bool is_solid(const block *b, const look *l) {
  return b->all_lower <= l->item->lower && b->all_upper >= l->item->upper &&
         b->hole < l->item->size;
}

static bool look_into(const block *b, look *l) {
  for (int i = 0; i < b->num; i++) {
    const placed *x = &b->at[i];
    if (x->lower >= l->item->upper || x->upper <= l->item->lower)
      continue;
    if (try_gap(l, x->begin))
      return true;
    rise(l, x->end);
  }
  return false;
}

int64_t pack_gaps_find(pack_gaps *g, const pack_item *x, pack_fit fit) {
  look l = {.item = x, .fit = fit, .slack = -1};
  g->steps += (int64_t)g->num_blocks / 4 + 1;
  for (size_t i = 0; i < g->num_blocks; i++) {
    const block *b = g->blocks.at[i];
    if (b->lower >= x->upper || b->upper <= x->lower)
      continue;
    if (is_solid(b, &l)) {
      g->steps++;
      if (try_gap(&l, b->at[0].begin))
        return l.found;
      rise(&l, b->end);
      continue;
    }
    g->steps += b->num;
    if (look_into(b, &l))
      return l.found;
  }
  return l.slack >= 0 ? l.found : l.top;
}
