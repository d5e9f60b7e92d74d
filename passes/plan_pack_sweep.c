// plan_pack_sweep.c: packs what is live at one time, and goes on from there into both directions of time.
//
//        <- earlier | later ->            What is live at the chosen time lies one above the other, in
//            ____   |___                  an order of its own. Then time runs on: what ends leaves a gap,
//        ___|  d |__|_  |__               what starts goes into one, as in a heap. Time also runs
//       |     b     | |____|  e           backwards from there, where ends and starts change places.
//       |___________|_____________
//       |         a |             |       As many bytes as are live fit without holes at the chosen
//                                         time; near it holes are few. Both directions are independent.
//
// An item costs a look at the gaps of its time, not at all that is placed: large parts take milliseconds.
#include <string.h>

#include "passes/plan_pack_parts.h"

typedef struct gap {
  int64_t begin, end;
} gap;

struct pack_sweep {
  pack_part *p;
  pack_item *seen;            // [item] in the direction of the sweep
  int32_t *starts, *ends;     // items by section, in the order given
  int32_t *start_at, *end_at; // [section] where its items begin in them
  IR_VEC(gap) gaps;           // by offset; the last has no end
  int64_t *offset, *trial;
};

pack_sweep *pack_sweep_new(pack_part *p) {
  pack_sweep *w = IR_NEW(p->arena, pack_sweep);
  w->p = p;
  w->seen = IR_NEW_ARRAY(p->arena, pack_item, p->n);
  w->starts = IR_NEW_ARRAY(p->arena, int32_t, p->n);
  w->ends = IR_NEW_ARRAY(p->arena, int32_t, p->n);
  w->start_at = IR_NEW_ARRAY(p->arena, int32_t, p->sections + 2);
  w->end_at = IR_NEW_ARRAY(p->arena, int32_t, p->sections + 2);
  w->offset = IR_NEW_ARRAY(p->arena, int64_t, p->n);
  w->trial = IR_NEW_ARRAY(p->arena, int64_t, p->n);
  return w;
}

// --- the heap ------------------------------------------------------------------------------------
static size_t first_gap_at(const pack_sweep *w, int64_t offset) {
  size_t low = 0, high = w->gaps.num;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (w->gaps.at[middle].begin < offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void remove_gap(pack_sweep *w, size_t i) {
  w->gaps.num--;
  memmove(&w->gaps.at[i], &w->gaps.at[i + 1], sizeof(gap) * (w->gaps.num - i));
}

static void insert_gap(pack_sweep *w, size_t i, gap g) {
  IR_PUSH(w->p->arena, w->gaps, g);
  memmove(&w->gaps.at[i + 1], &w->gaps.at[i], sizeof(gap) * (w->gaps.num - 1 - i));
  w->gaps.at[i] = g;
}

static void give_back(pack_sweep *w, int64_t begin, int64_t end) {
  size_t i = first_gap_at(w, begin);
  bool touches_below = i > 0 && w->gaps.at[i - 1].end == begin;
  bool touches_above = w->gaps.at[i].begin == end;
  if (touches_below && touches_above) {
    w->gaps.at[i].begin = w->gaps.at[i - 1].begin;
    remove_gap(w, i - 1);
  } else if (touches_below) {
    w->gaps.at[i - 1].end = end;
  } else if (touches_above) {
    w->gaps.at[i].begin = begin;
  } else {
    insert_gap(w, i, (gap){begin, end});
  }
}

static void take(pack_sweep *w, size_t i, int64_t begin, int64_t end) {
  gap *g = &w->gaps.at[i], above = {end, g->end};
  if (g->begin < begin && end < g->end) {
    g->end = begin;
    insert_gap(w, i + 1, above);
  } else if (g->begin < begin) {
    g->end = begin;
  } else if (end < g->end) {
    g->begin = end;
  } else {
    remove_gap(w, i);
  }
}

static size_t choose_gap(const pack_sweep *w, int64_t size, bool tightest) {
  size_t best = w->gaps.num - 1;
  int64_t slack = INT64_MAX;
  for (size_t i = 0; i + 1 < w->gaps.num; i++) {
    int64_t rest = w->gaps.at[i].end - w->gaps.at[i].begin - size;
    if (rest < 0 || rest >= slack)
      continue;
    best = i;
    slack = rest;
    if (!tightest || slack == 0)
      break;
  }
  return best;
}

// How gaps are filled: the lowest that is large enough, or the tightest; what lives for a time of
// `short_life` at most goes into its upper end, so that what is above is in one piece when it is gone.
typedef struct filling {
  bool tightest;
  int32_t short_life;
} filling;

static int64_t place(pack_sweep *w, const pack_item *x, filling f) {
  bool is_high = x->upper - x->lower <= f.short_life;
  size_t last = w->gaps.num - 1, i = choose_gap(w, x->size, f.tightest || is_high);
  const gap *g = &w->gaps.at[i];
  int64_t top = i < last ? g->end : w->p->goal / w->p->unit * w->p->unit;
  int64_t begin = is_high && top - x->size >= g->begin ? top - x->size : g->begin;
  pack_spend(w->p->effort, (int64_t)(f.tightest || is_high ? last : i) + 8);
  take(w, i, begin, begin + x->size);
  return begin;
}

// --- one direction -------------------------------------------------------------------------------
// Items by the section in which they start or end, in `order` among equals; at[s] is where those of s begin.
static void bucket(const pack_sweep *w, const int32_t *order, bool by_end, int32_t *out,
                   int32_t *at) {
  int32_t sections = w->p->sections;
  memset(at, 0, sizeof *at * (size_t)(sections + 2));
  for (size_t i = 0; i < w->p->n; i++)
    at[(by_end ? w->seen[i].upper : w->seen[i].lower) + 1]++;
  for (int32_t s = 0; s <= sections; s++)
    at[s + 1] += at[s];
  for (size_t i = 0; i < w->p->n; i++) {
    const pack_item *x = &w->seen[order[i]];
    out[at[by_end ? x->upper : x->lower]++] = order[i];
  }
  for (int32_t s = sections + 1; s > 0; s--)
    at[s] = at[s - 1];
  at[0] = 0;
}

// Times as they are, or backwards.
static void look(pack_sweep *w, const int32_t *order, bool backwards) {
  for (size_t i = 0; i < w->p->n; i++) {
    pack_item x = w->p->item[i];
    w->seen[i] =
        backwards ? (pack_item){w->p->sections - x.upper, w->p->sections - x.lower, x.size} : x;
  }
  bucket(w, order, false, w->starts, w->start_at);
  bucket(w, order, true, w->ends, w->end_at);
}

static void free_ended(pack_sweep *w, int32_t section, const int64_t *offset) {
  for (int32_t i = w->end_at[section]; i < w->end_at[section + 1]; i++) {
    int32_t k = w->ends[i];
    give_back(w, offset[k], offset[k] + w->seen[k].size);
  }
}

// Places what starts after section `from`; returns the highest end. Gives up above the best height.
static int64_t run(pack_sweep *w, int32_t from, int64_t stacked, filling f) {
  int64_t height = stacked;
  w->gaps.num = 0;
  insert_gap(w, 0, (gap){stacked, INT64_MAX});
  for (int32_t s = from + 1; s < w->p->sections && height < w->p->height; s++) {
    free_ended(w, s, w->trial);
    for (int32_t i = w->start_at[s]; i < w->start_at[s + 1]; i++) {
      int32_t k = w->starts[i];
      w->trial[k] = place(w, &w->seen[k], f);
      int64_t end = w->trial[k] + w->seen[k].size;
      height = end > height ? end : height;
    }
  }
  return height;
}

// --- both directions -----------------------------------------------------------------------------
static int64_t stack(pack_sweep *w, int32_t at, const int32_t *order) {
  int64_t top = 0;
  for (size_t i = 0; i < w->p->n; i++) {
    const pack_item *x = &w->p->item[order[i]];
    if (x->lower > at || x->upper <= at)
      continue;
    w->offset[order[i]] = w->trial[order[i]] = top;
    top += x->size;
  }
  return top;
}

// Fills gaps in several ways and keeps the offsets of the best.
static int64_t run_best(pack_sweep *w, int32_t from, int64_t stacked) {
  int32_t sections = w->p->sections;
  const filling fillings[] = {{false, 0}, {true, 0}, {false, sections / 64}, {false, sections / 8}};
  int64_t best = INT64_MAX;
  for (size_t f = 0; f < sizeof fillings / sizeof *fillings && (f == 0 || best > w->p->goal); f++) {
    int64_t height = run(w, from, stacked, fillings[f]);
    if (height >= best)
      continue;
    best = height;
    for (size_t i = 0; i < w->p->n; i++)
      if (w->seen[i].lower > from)
        w->offset[i] = w->trial[i];
  }
  return best;
}

void pack_sweep_from(pack_sweep *w, int32_t section, const int32_t *order) {
  int64_t stacked = stack(w, section, order);
  pack_spend(w->p->effort, 16 * (int64_t)w->p->n); // to sort the order, and by sections
  look(w, order, false);
  int64_t later = run_best(w, section, stacked);
  if (later >= w->p->height)
    return;
  look(w, order, true);
  int64_t earlier = run_best(w, w->p->sections - 1 - section, stacked);
  pack_keep(w->p, w->offset, later > earlier ? later : earlier);
}
