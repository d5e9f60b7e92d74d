// plan_pack.c: puts intervals of time into memory, one above the other, with few holes.
//
// Several greedy orders (largest first, largest area first, longest first, ...) each place one
// interval after the other in the lowest (or the tightest) gap between those that are already
// there. The search ends as soon as the height is the lower bound, which networks nearly always
// reach. Otherwise the best order is improved: intervals that stick out above the bound are
// moved forward in the order, and it is placed again ("squeaky wheel").
//
// Placed intervals are kept by offset in blocks that know their span of time, so that a scan
// passes over blocks that are never live together with the new one. All limits are counts of
// steps, never a clock: the same input gives the same offsets.
#include <stdlib.h>
#include <string.h>

#include "passes/plan.h"

enum {
  BLOCK_MAX = 128,
  SCAN_LIMIT = 60000000,   // intervals looked at in greedy orders, after the first two
  IMPROVE_LIMIT = 20000000 // the same, in the improvement search
};

typedef struct placed {
  int32_t lower, upper;
  int64_t begin, end;
} placed;

typedef struct block {
  int32_t lower, upper; // of all intervals in it
  int num;
  placed at[BLOCK_MAX];
} block;

typedef struct packer {
  ir_arena *arena;
  plan_interval *iv;
  int32_t *lower, *upper; // ranks of times
  size_t n;
  IR_VEC(block *) blocks; // by offset; emptied, not freed, between orders
  size_t num_blocks;
  int64_t *offset; // of the order that is being placed
  int64_t *best;
  int64_t best_height, bound;
  int64_t scanned;
} packer;

// --- the placed intervals ---------------------------------------------------------------------
static block *new_block(packer *p, size_t at) {
  if (p->num_blocks == p->blocks.num)
    IR_PUSH(p->arena, p->blocks, IR_NEW(p->arena, block));
  block *fresh = p->blocks.at[p->num_blocks];
  memmove(&p->blocks.at[at + 1], &p->blocks.at[at], sizeof(block *) * (p->num_blocks - at));
  p->blocks.at[at] = fresh;
  p->num_blocks++;
  fresh->num = 0;
  fresh->lower = INT32_MAX;
  fresh->upper = 0;
  return fresh;
}

static void widen(block *b, const placed *x) {
  if (x->lower < b->lower)
    b->lower = x->lower;
  if (x->upper > b->upper)
    b->upper = x->upper;
}

static void split_block(packer *p, size_t at) {
  block *high = new_block(p, at + 1), *low = p->blocks.at[at];
  low->num = BLOCK_MAX / 2;
  low->lower = INT32_MAX;
  low->upper = 0;
  high->num = BLOCK_MAX - low->num;
  memcpy(high->at, low->at + low->num, sizeof(placed) * (size_t)high->num);
  for (int i = 0; i < low->num; i++)
    widen(low, &low->at[i]);
  for (int i = 0; i < high->num; i++)
    widen(high, &high->at[i]);
}

// The block after which `begin` does not come: the last that starts at or below it.
static size_t find_block(const packer *p, int64_t begin) {
  size_t lo = 0, hi = p->num_blocks;
  while (hi - lo > 1) {
    size_t mid = (lo + hi) / 2;
    if (p->blocks.at[mid]->at[0].begin <= begin)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

static void insert(packer *p, placed x) {
  if (p->num_blocks == 0)
    new_block(p, 0);
  size_t at = find_block(p, x.begin);
  if (p->blocks.at[at]->num == BLOCK_MAX) {
    split_block(p, at);
    at = find_block(p, x.begin);
  }
  block *b = p->blocks.at[at];
  int i = b->num++;
  for (; i > 0 && b->at[i - 1].begin > x.begin; i--)
    b->at[i] = b->at[i - 1];
  b->at[i] = x;
  widen(b, &x);
}

// --- gaps ----------------------------------------------------------------------------------------
typedef struct gap {
  int64_t size;         // wanted
  bool tightest;        // else: lowest
  int64_t top;          // end of what is live so far
  int64_t found, slack; // slack < 0: nothing found
} gap;

// True when the search is over.
static bool scan_block(const block *b, int32_t lower, int32_t upper, gap *g) {
  for (int i = 0; i < b->num; i++) {
    const placed *x = &b->at[i];
    if (x->lower >= upper || x->upper <= lower)
      continue;
    int64_t slack = x->begin - g->top - g->size;
    if (slack >= 0 && (g->slack < 0 || slack < g->slack)) {
      g->found = g->top;
      g->slack = slack;
      if (!g->tightest || slack == 0)
        return true;
    }
    if (x->end > g->top)
      g->top = x->end;
  }
  return false;
}

static int64_t find_gap(packer *p, size_t k, bool tightest) {
  gap g = {.size = p->iv[k].size, .tightest = tightest, .slack = -1};
  for (size_t i = 0; i < p->num_blocks; i++) {
    const block *b = p->blocks.at[i];
    p->scanned++;
    if (b->lower >= p->upper[k] || b->upper <= p->lower[k])
      continue;
    p->scanned += b->num;
    if (scan_block(b, p->lower[k], p->upper[k], &g))
      break;
  }
  return g.slack >= 0 ? g.found : g.top;
}

// Height of the order; its offsets are in p->offset. Gives up above the best height.
static int64_t place_all(packer *p, const int *order, bool tightest) {
  int64_t height = 0;
  p->num_blocks = 0;
  for (size_t i = 0; i < p->n; i++) {
    size_t k = (size_t)order[i];
    int64_t at = find_gap(p, k, tightest), end = at + p->iv[k].size;
    p->offset[k] = at;
    insert(p, (placed){p->lower[k], p->upper[k], at, end});
    if (end > height)
      height = end;
  }
  return height;
}

static void keep_if_better(packer *p, int64_t height) {
  if (height >= p->best_height)
    return;
  p->best_height = height;
  memcpy(p->best, p->offset, sizeof(int64_t) * p->n);
}

// --- greedy orders -------------------------------------------------------------------------------
typedef struct key {
  double first, second, third; // smaller goes first
  int at;
} key;

static int compare_keys(const void *pa, const void *pb) {
  const key *a = pa, *b = pb;
  if (a->first != b->first)
    return a->first < b->first ? -1 : 1;
  if (a->second != b->second)
    return a->second < b->second ? -1 : 1;
  if (a->third != b->third)
    return a->third < b->third ? -1 : 1;
  return a->at - b->at;
}

typedef enum rule { BY_SIZE, BY_AREA, BY_LENGTH, BY_START, BY_END, BY_SIZE_LATE, NUM_RULES } rule;

static key make_key(const plan_interval *x, rule r, int at) {
  double size = (double)x->size, length = (double)(x->upper - x->lower);
  double start = (double)x->lower, end = (double)x->upper;
  switch (r) {
  case BY_SIZE:
    return (key){-size, -length, start, at};
  case BY_AREA:
    return (key){-size * length, -size, start, at};
  case BY_LENGTH:
    return (key){-length, -size, start, at};
  case BY_START:
    return (key){start, -length, -size, at};
  case BY_END:
    return (key){-end, -length, -size, at};
  case BY_SIZE_LATE:
    return (key){-size, -end, -length, at};
  default:
    BUG("no rule %d", (int)r);
  }
}

static void sort_by(packer *p, rule r, key *keys, int *order) {
  for (size_t i = 0; i < p->n; i++)
    keys[i] = make_key(&p->iv[i], r, (int)i);
  qsort(keys, p->n, sizeof *keys, compare_keys);
  for (size_t i = 0; i < p->n; i++)
    order[i] = keys[i].at;
}

// Leaves the best order in `best_order`.
static void try_orders(packer *p, int *best_order) {
  key *keys = IR_NEW_ARRAY(p->arena, key, p->n);
  int *order = IR_NEW_ARRAY(p->arena, int, p->n);
  for (int tightest = 0; tightest < 2; tightest++)
    for (int r = 0; r < NUM_RULES; r++) {
      bool enough = p->scanned > SCAN_LIMIT && (tightest || r >= 2);
      if (enough || p->best_height == p->bound)
        return;
      sort_by(p, (rule)r, keys, order);
      int64_t height = place_all(p, order, tightest);
      if (height < p->best_height)
        memcpy(best_order, order, sizeof(int) * p->n);
      keep_if_better(p, height);
    }
}

// --- improvement ---------------------------------------------------------------------------------
// xorshift64*: the same numbers every time.
static uint32_t next_random(uint64_t *s) {
  *s ^= *s >> 12;
  *s ^= *s << 25;
  *s ^= *s >> 27;
  return (uint32_t)((*s * 2685821657736338717u) >> 32);
}

// Moves order[from] to position `to` <= from.
static void move_forward(int *order, size_t from, size_t to) {
  int x = order[from];
  memmove(&order[to + 1], &order[to], sizeof(int) * (from - to));
  order[to] = x;
}

// Each interval that ends above `limit` goes forward by a random part of its position.
static void move_tall_forward(const packer *p, int *order, int64_t limit, uint64_t *seed) {
  for (size_t i = 1; i < p->n; i++) {
    size_t k = (size_t)order[i];
    if (p->offset[k] + p->iv[k].size > limit)
      move_forward(order, i, next_random(seed) % (uint32_t)(i + 1));
  }
}

static void improve(packer *p, int *order) {
  int *trial = IR_NEW_ARRAY(p->arena, int, p->n);
  int64_t end = p->scanned + IMPROVE_LIMIT;
  int64_t height = place_all(p, order, false), current = height;
  uint64_t seed = 0x9e3779b97f4a7c15u;
  while (p->scanned < end && p->best_height > p->bound) {
    memcpy(trial, order, sizeof(int) * p->n);
    move_tall_forward(p, trial, p->bound, &seed);
    height = place_all(p, trial, false);
    keep_if_better(p, height);
    if (height <= current + (current - p->bound) / 8) {
      current = height;
      memcpy(order, trial, sizeof(int) * p->n);
    } else {
      place_all(p, order, false);
    }
  }
}

// --- times ---------------------------------------------------------------------------------------
static int compare_times(const void *pa, const void *pb) {
  int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
  return a < b ? -1 : a > b;
}

static int32_t rank_of(const int64_t *times, size_t n, int64_t t) {
  size_t lo = 0, hi = n;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (times[mid] < t)
      lo = mid + 1;
    else
      hi = mid;
  }
  return (int32_t)lo;
}

static void rank_times(packer *p) {
  int64_t *times = IR_NEW_ARRAY(p->arena, int64_t, 2 * p->n);
  for (size_t i = 0; i < p->n; i++) {
    times[2 * i] = p->iv[i].lower;
    times[2 * i + 1] = p->iv[i].upper;
  }
  qsort(times, 2 * p->n, sizeof *times, compare_times);
  size_t num = 0;
  for (size_t i = 0; i < 2 * p->n; i++)
    if (num == 0 || times[num - 1] != times[i])
      times[num++] = times[i];
  for (size_t i = 0; i < p->n; i++) {
    p->lower[i] = rank_of(times, num, p->iv[i].lower);
    p->upper[i] = rank_of(times, num, p->iv[i].upper);
  }
}

typedef struct event {
  int64_t time, bytes;
} event;

// Ends before starts: an interval is not live at `upper`.
static int compare_events(const void *pa, const void *pb) {
  const event *a = pa, *b = pb;
  if (a->time != b->time)
    return a->time < b->time ? -1 : 1;
  return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

int64_t plan_pack_bound(ir_arena *a, const plan_interval *iv, size_t n) {
  event *e = IR_NEW_ARRAY(a, event, 2 * n + 1);
  for (size_t i = 0; i < n; i++) {
    e[2 * i] = (event){iv[i].lower, iv[i].size};
    e[2 * i + 1] = (event){iv[i].upper, -iv[i].size};
  }
  qsort(e, 2 * n, sizeof *e, compare_events);
  int64_t live = 0, most = 0;
  for (size_t i = 0; i < 2 * n; i++) {
    live += e[i].bytes;
    if (live > most)
      most = live;
  }
  return most;
}

int64_t plan_pack(ir_arena *a, plan_interval *iv, size_t n) {
  if (n == 0)
    return 0;
  packer p = {.arena = ir_arena_new(), .iv = iv, .n = n, .best_height = INT64_MAX};
  p.lower = IR_NEW_ARRAY(p.arena, int32_t, n);
  p.upper = IR_NEW_ARRAY(p.arena, int32_t, n);
  p.offset = IR_NEW_ARRAY(p.arena, int64_t, n);
  p.best = IR_NEW_ARRAY(p.arena, int64_t, n);
  int *order = IR_NEW_ARRAY(p.arena, int, n);
  p.bound = plan_pack_bound(a, iv, n);
  rank_times(&p);
  try_orders(&p, order);
  if (p.best_height > p.bound)
    improve(&p, order);
  for (size_t i = 0; i < n; i++)
    iv[i].offset = p.best[i];
  ir_arena_free(p.arena);
  return p.best_height;
}
