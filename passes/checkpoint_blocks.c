// checkpoint_blocks.c: policies that keep what goes from one part of the network to the next.
//
//   kernels of the forward pass   a b c | d e f | g h        |: cuts, where few bytes go on
//   kept                              c       f   g h        what crosses a cut, and the last part
//   made again                    a b     d e                all else, part by part
//
// Where cuts may be is found in the graph: at kernels behind which as few bytes are needed by the rest
// of the forward pass as anywhere near. Between the blocks that `repeat` makes, that is the stream from
// block to block. `all` cuts at each of them. `sqrt` takes about sqrt(L) of L (T. Chen, B. Xu,
// C. Zhang, C. Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016, section 4): parts of
// equal bytes, and the number of parts that leads to the fewest live bytes.
#include "passes/checkpoint.h"

#include <math.h>
#include <string.h>

enum { NEAR = 3 }; // kernels on either side that a cut is compared with

typedef IR_VEC(int) places; // ascending

typedef struct blocks {
  const replay *r;
  ir_arena *arena;
  int *kernel; // kernels that the loss is made from, in order
  int num;
  int64_t *width;   // [place] bytes that go on behind it
  int *crossing;    // [place] values that go on behind it
  int64_t *which;   // [place] the sum of their numbers: the value itself where there is one
  double *made;     // [place] bytes made up to it
  int *last_reader; // [value] place of the last of these kernels that reads it, -1
  int *place;       // [kernel] -1: none of these
  places cuts;      // where a cut may be
} blocks;

static void find_places(blocks *b) {
  const sched *s = b->r->s;
  for (int k = 0; k < s->num_kernels; k++)
    b->place[k] = -1;
  for (int k = 0; k < s->num_kernels; k++)
    if (replay_in_loss(b->r, k)) {
      b->place[k] = b->num;
      b->kernel[b->num++] = k;
    }
  memset(b->last_reader, -1, sizeof(int) * ((size_t)s->num_values + 1));
  for (int p = 0; p < b->num; p++)
    for (int i = 0; i < s->kernels[b->kernel[p]].num_in; i++) {
      int v = s->kernels[b->kernel[p]].in[i].value;
      if (v >= 0)
        b->last_reader[v] = p;
    }
}

// Value v goes on behind the places from .. to - 1.
static void add_crossing(blocks *b, int v, int from, int to) {
  int64_t bytes = b->r->s->values[v].bytes;
  b->width[from] += bytes;
  b->width[to] -= bytes;
  b->crossing[from]++;
  b->crossing[to]--;
  b->which[from] += v;
  b->which[to] -= v;
}

static void find_widths(blocks *b) {
  const sched *s = b->r->s;
  for (int p = 0; p < b->num; p++) {
    const sched_kernel *k = &s->kernels[b->kernel[p]];
    b->made[p] = p ? b->made[p - 1] : 0;
    for (int v = k->first_value; v < k->first_value + k->num_values; v++) {
      b->made[p] += (double)s->values[v].bytes;
      if (b->last_reader[v] > p)
        add_crossing(b, v, p, b->last_reader[v]);
    }
  }
  for (int p = 1; p < b->num; p++) {
    b->width[p] += b->width[p - 1];
    b->crossing[p] += b->crossing[p - 1];
    b->which[p] += b->which[p - 1];
  }
}

static bool may_cut(const blocks *b, int p) {
  for (int q = p - NEAR; q <= p + NEAR; q++)
    if (q >= 0 && q < b->num - 1 && b->width[q] < b->width[p])
      return false;
  return true;
}

static blocks find_blocks(ir_arena *a, const replay *r) {
  blocks b = {.r = r, .arena = a};
  b.kernel = IR_NEW_ARRAY(a, int, r->s->num_kernels + 1);
  b.place = IR_NEW_ARRAY(a, int, r->s->num_kernels + 1);
  b.last_reader = IR_NEW_ARRAY(a, int, r->s->num_values + 1);
  b.width = IR_NEW_ARRAY(a, int64_t, r->s->num_kernels + 1);
  b.crossing = IR_NEW_ARRAY(a, int, r->s->num_kernels + 1);
  b.which = IR_NEW_ARRAY(a, int64_t, r->s->num_kernels + 1);
  b.made = IR_NEW_ARRAY(a, double, r->s->num_kernels + 1);
  find_places(&b);
  find_widths(&b);
  for (int p = 0; p < b.num - 1; p++)
    if (may_cut(&b, p))
      IR_PUSH(a, b.cuts, p);
  return b;
}

checkpoint_cuts checkpoint_find_cuts(const replay *r, ir_arena *a) {
  blocks b = find_blocks(a, r);
  checkpoint_cuts out = {0};
  for (size_t i = 0; i < b.cuts.num; i++) {
    int p = b.cuts.at[i];
    checkpoint_cut cut = {b.kernel[p], (int)b.which[p]};
    if (b.crossing[p] == 1)
      IR_PUSH(a, out, cut);
  }
  return out;
}

// The value that place p makes is needed behind place `cut`, too.
static bool crosses(const blocks *b, int p, int v, int cut) {
  return p <= cut && b->last_reader[v] > cut;
}

static unsigned char inside(const blocks *b, int p, int v, int near, checkpoint_depth depth) {
  if (depth == CHECKPOINT_ONCE ||
      (depth == CHECKPOINT_PLACES && near >= 0 && crosses(b, p, v, near)))
    return REPLAY_DROP;
  return REPLAY_DROP_ALWAYS;
}

// Drops all that is made at places 0 .. end - 1, but for what crosses a cut.
static void keep_cuts(const blocks *b, const places *cuts, int end, checkpoint_depth depth,
                      unsigned char *drop) {
  const sched *s = b->r->s;
  memset(drop, 0, sizeof *drop * (size_t)s->num_values);
  size_t next = 0, near = 0; // the first cut, and the first place for one, at or behind p
  for (int p = 0; p < end; p++) {
    const sched_kernel *k = &s->kernels[b->kernel[p]];
    next += next < cuts->num && cuts->at[next] < p;
    near += near < b->cuts.num && b->cuts.at[near] < p;
    int place = near < b->cuts.num ? b->cuts.at[near] : -1;
    for (int v = k->first_value; v < k->first_value + k->num_values; v++)
      if (next == cuts->num || !crosses(b, p, v, cuts->at[next]))
        drop[v] = inside(b, p, v, place, depth);
  }
}

static int end_of(const places *cuts) {
  return cuts->num ? cuts->at[cuts->num - 1] + 1 : 0;
}

void checkpoint_all(const replay *r, unsigned char *drop) {
  ir_arena *a = ir_arena_new();
  blocks b = find_blocks(a, r);
  keep_cuts(&b, &b.cuts, end_of(&b.cuts), CHECKPOINT_ONCE, drop);
  ir_arena_free(a);
}

// The cuts nearest to where `parts` parts of equal bytes would end.
static places choose_cuts(const blocks *b, int parts) {
  places out = {0};
  size_t at = 0;
  double total = b->num ? b->made[b->num - 1] : 0;
  for (int i = 1; i < parts; i++) {
    double want = total * i / parts;
    while (at + 1 < b->cuts.num &&
           fabs(b->made[b->cuts.at[at + 1]] - want) <= fabs(b->made[b->cuts.at[at]] - want))
      at++;
    if (at < b->cuts.num && (out.num == 0 || out.at[out.num - 1] != b->cuts.at[at]))
      IR_PUSH(b->arena, out, b->cuts.at[at]);
  }
  return out;
}

void checkpoint_parts(const replay *r, int parts, bool last, checkpoint_depth depth,
                      unsigned char *drop) {
  ir_arena *a = ir_arena_new();
  blocks b = find_blocks(a, r);
  places cuts = choose_cuts(&b, parts);
  keep_cuts(&b, &cuts, last ? b.num : end_of(&cuts), depth, drop);
  ir_arena_free(a);
}

int checkpoint_num_places(const replay *r) {
  ir_arena *a = ir_arena_new();
  int num = (int)find_blocks(a, r).cuts.num;
  ir_arena_free(a);
  return num;
}

void checkpoint_sqrt(replay *r, unsigned char *drop) {
  int root = (int)lround(sqrt(checkpoint_num_places(r)));
  size_t n = (size_t)r->s->num_values;
  unsigned char *x = IR_NEW_ARRAY(r->arena, unsigned char, n + 1);
  int64_t best = -1;
  for (int parts = root / 2 > 2 ? root / 2 : 2; parts <= 2 * root + 1; parts++) {
    checkpoint_parts(r, parts, false, CHECKPOINT_ONCE, x);
    int64_t bytes = replay_try(r, x).live_bytes;
    if (best >= 0 && bytes >= best)
      continue;
    best = bytes;
    memcpy(drop, x, n * sizeof *x);
  }
}
