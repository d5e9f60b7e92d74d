// support_matmul_problems.h: the problems of test_cpu_matmul.c, which includes this file once: random ones, those with
// bands, windows of images, operands that are packed in pieces, walked, or listed.
#ifndef TESTS_SUPPORT_MATMUL_PROBLEMS_H
#define TESTS_SUPPORT_MATMUL_PROBLEMS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/support_matmul.h"

typedef struct test {
  mm_problem p;
  mm_plan plan;
  test_output c; // where results go when they are not plain
  const char *what;
  bool has_twin; // the test after this one
  // Of windows: elements of a line, lines of an image, those of them that are not 0.
  int64_t line, lines, low, high;
  // Of lists: one of so many elements of a is not 0; b has elements that are not finite; products are too small.
  uint64_t rare;
  bool infinite, tiny, one_bit; // of each element of a that is not 0
  bool far;                     // a is larger than 32 bits count
} test;

// --- problems -------------------------------------------------------------------------------
static const cg_target targets[] = {
    {.name = "512",
     .vector_bytes = 64,
     .vector_registers = 32,
     .l1_bytes = 49152,
     .l2_bytes = 2 << 20},
    {.name = "256",
     .vector_bytes = 32,
     .vector_registers = 16,
     .l1_bytes = 32768,
     .l2_bytes = 1 << 18},
    {.name = "128",
     .vector_bytes = 16,
     .vector_registers = 32,
     .l1_bytes = 32768,
     .l2_bytes = 1 << 19},
    {.name = "tiny",
     .vector_bytes = 32,
     .vector_registers = 16,
     .l1_bytes = 16384,
     .l2_bytes = 40000},
};

static void emit_finish(const mm_problem *p, void *data, const char *name, ir_buf *out);

static void add_problem(test *t, ir_arena *arena, int64_t batch, int64_t m, int64_t n, int64_t k,
                        bool odd, const char *what) {
  const cg_target *target = &targets[test_draw(4)];
  bool wide = test_draw(6) == 0;
  t->what = what;
  t->p = (mm_problem){.target = target,
                      .arena = arena,
                      .ctype = wide ? "double" : "float",
                      .elem_bytes = wide ? 8 : 4,
                      .batch = batch,
                      .m = m,
                      .n = n,
                      .k = k,
                      .updates = test_draw(2),
                      .workspace_arg = 3,
                      .emit_finish = emit_finish,
                      .data = t};
  t->p.a = test_random_operand(0, &t->p, m, odd);
  t->p.b = test_random_operand(1, &t->p, n, odd);
  test_set_output(&t->p, &t->c, test_draw(2));
  mm_make_plan(&t->p, &t->plan);
}

// Pieces of a suit few operands, and other ones on each processor: draws until a plan has them.
static void add_pieces(test *t, ir_arena *arena) {
  enum { MOST = 1000 };
  for (int i = 0; i < MOST; i++) {
    add_problem(t, arena, 1, 75, 70, 9000, false, "pieces of a");
    if (t->plan.by_pieces)
      return;
  }
}

// The same operands, of which nothing is known.
static void add_twin(test *t) {
  t->has_twin = true;
  t[1] = t[0];
  t[1].what = "twin";
  t[1].has_twin = false;
  t[1].p.bands = (band_product){.limited = false};
  t[1].p.border = (mm_border){.limited = false};
  t[1].p.zeros = ZEROS_NONE;
  t[1].p.want_mr = t->plan.mr, t[1].p.want_nv = t->plan.nv;
  t[1].p.data = &t[1];
  mm_make_plan(&t[1].p, &t[1].plan);
}

static int add_banded(test *t, ir_arena *arena, int64_t batch, int64_t m, int64_t n, int64_t k,
                      bool odd) {
  add_problem(t, arena, batch, m, n, k, odd, "banded");
  t->p.bands =
      (band_product){test_random_band(m, k), test_random_band(k, n), test_random_band(m, n), true};
  mm_make_plan(&t->p, &t->plan);
  add_twin(t);
  return 2;
}

// Every element that a tile of one row, or of a few, leaves out is a zero; and of a row's first and last
// step, some line is not.
static bool border_is_right(const test *t) {
  const mm_problem *p = &t->p;
  int64_t wrong = 0, steps = 0;
  for (int64_t m0 = 0; m0 < p->m; m0++) {
    int64_t alone = 0, end = p->k;
    mm_border_steps(&p->border, m0, m0, &alone, &end);
    steps += alone < end ? end - alone : 0;
    int64_t m1 = m0 + (int64_t)test_draw(4) * (int64_t)test_draw(8), first = 0, stop = p->k;
    m1 = m1 < p->m ? m1 : p->m - 1;
    mm_border_steps(&p->border, m0, m1, &first, &stop);
    for (int64_t m = m0; m <= m1; m++)
      for (int64_t k = 0; k < p->k; k++) {
        int64_t at = p->a.offset + test_at(&p->a.x, m) + test_at(&p->a.k, k);
        bool zero = at / t->line % t->lines < t->low || at / t->line % t->lines >= t->high;
        bool edge = m0 == m1 && first < stop && (k == first || k == stop - 1);
        wrong += (!zero && (k < first || k >= stop)) || (zero && edge);
      }
  }
  if (wrong)
    printf("windows of %lldx%lld: the border is not where the zeros are\n", (long long)p->m,
           (long long)p->k);
  double share = (double)steps / (double)(p->m * p->k);
  if (fabs(mm_border_share(&p->border, p->k, 1) - share) > 1e-9) {
    printf("windows of %lldx%lld: %g of the steps, not %g\n", (long long)p->m, (long long)p->k,
           share, mm_border_share(&p->border, p->k, 1));
    wrong++;
  }
  return wrong == 0;
}

// Windows of wy x wx places of images of `line` elements in a line, some of whose lines are a pad's.
static int add_windows(test *t, ir_builder *b, int *limited, int *failed) {
  ir_arena *arena = b->func->module->arena;
  int64_t wy = 1 + (int64_t)test_draw(5), dy = 1 + (int64_t)test_draw(2),
          sy = 1 + (int64_t)test_draw(2);
  int64_t images = 1 + (int64_t)test_draw(3), data = 1 + (int64_t)test_draw(9);
  int64_t lo = (int64_t)test_draw(6), hi = (int64_t)test_draw(6), begin = (int64_t)test_draw(2);
  int64_t wx = 1 + (int64_t)test_draw(4), ox = 1 + (int64_t)test_draw(13), c = 1 << test_draw(5);
  int64_t width = ox + wx - 1, span = (wy - 1) * dy + 1;
  if (begin + span > lo + data + hi)
    hi += begin + span - (lo + data + hi);
  int64_t h = lo + data + hi, oy = (h - begin - span) / sy + 1, line = width * c;
  add_problem(t, arena, 1, images * oy * ox, test_random_size(100), wy * wx * c, false, "windows");
  t->line = line, t->lines = h, t->low = lo, t->high = lo + data;
  mm_axes x = {.num = 3, .size = {images, oy, ox}, .stride = {h * line, sy * line, c}};
  mm_axes k = {.num = 2, .size = {wy, wx * c}, .stride = {dy * line, 1}};
  t->p.a.offset = begin * line;
  t->p.a.x = mm_simplify(&x), t->p.a.k = mm_simplify(&k), t->p.a.batch = (mm_axes){0};
  ir_node *in = ir_const(b, ir_tensor(IR_F32, 4, (const int64_t[]){images, data, width, c}), 1);
  ir_node *pad = ir_pad(b, in, (const int64_t[]){0, lo, 0, 0}, (const int64_t[]){0, hi, 0, 0}, 0);
  t->p.border = mm_border_of(pad, &t->p.a, t->p.k);
  mm_make_plan(&t->p, &t->plan);
  *limited += t->p.border.limited;
  *failed += t->p.border.limited && !border_is_right(t);
  add_twin(t);
  return 2;
}

// What elements of a may be converted from.
static const struct narrow {
  const char *convert, *ctype;
  int elem_bytes;
} narrow[] = {{"u8", "uint8_t", 1}, {"bf16", "uint16_t", 2}, {"u16", "uint16_t", 2}};

static void set_narrow(test *t, int i) {
  t->p.a.convert = narrow[i].convert;
  t->p.a.ctype = narrow[i].ctype;
  t->p.a.elem_bytes = narrow[i].elem_bytes;
}

// Rows of a lie so far apart, in steps that are further apart. From 2 on, no list is made by whole vectors.
static void spread_a(test *t, int64_t apart) {
  const mm_problem *p = &t->p;
  int64_t step = p->m * apart + (apart > 1);
  t->p.a.offset = 0;
  t->p.a.batch = mm_simplify(&(mm_axes){.num = 1, .size = {p->batch}, .stride = {p->k * step}});
  t->p.a.x = mm_simplify(&(mm_axes){.num = 1, .size = {p->m}, .stride = {apart}});
  t->p.a.k = mm_simplify(&(mm_axes){.num = 1, .size = {p->k}, .stride = {step}});
}

// An a full of zeros; of narrow elements now and then.
static int add_listed(test *t, ir_arena *arena, int i) {
  bool longer = i % 6 == 1;
  int64_t k = longer ? 500 + (int64_t)test_draw(2500) : 16 + test_random_size(150);
  add_problem(t, arena, i % 5 ? 1 : 3, test_random_size(150), test_random_size(150), k, i % 2,
              "listed");
  t->rare = 2 + test_draw(60), t->infinite = i % 4 == 3;
  t->p.zeros = i % 2 ? ZEROS_DATA : ZEROS_ROWS;
  t->tiny = i % 8 == 6 && t->p.elem_bytes == 4;
  if (i % 8 == 4)
    spread_a(t, 2);
  if (i % 3 == 2 && t->p.elem_bytes == 4 && !t->tiny)
    set_narrow(t, i / 3 % 3);
  if (t->tiny)
    test_set_output(&t->p, &t->c, true);
  mm_make_plan(&t->p, &t->plan);
  add_twin(t);
  return 2;
}

// Each type along k and across, with each way to make lists.
static int add_few_bits(test *t, ir_arena *arena, int i) {
  static const int target[] = {0, 2, 3};
  do
    add_problem(t, arena, 1, 37, i < 24 ? 40 : 130, 150, false, "listed");
  while (t->p.elem_bytes != 4);
  t->p.target = &targets[target[i / 8 % 3]];
  t->rare = 100, t->infinite = i >= 24, t->one_bit = true;
  t->p.zeros = ZEROS_DATA;
  test_set_output(&t->p, &t->c, true);
  spread_a(t, 1);
  if (i / 4 % 2)
    t->p.a.x.stride[0] = t->p.k, t->p.a.k.stride[0] = 1;
  if (i % 4)
    set_narrow(t, i % 4 - 1);
  mm_make_plan(&t->p, &t->plan);
  add_twin(t);
  return 2;
}

// Lists of many tiles and a long k, and what is packed by them, would not fit a task's stack.
static int add_long_listed(test *t, ir_arena *arena, int i) {
  do
    add_problem(t, arena, 1, 830, 3, 3300, false, "listed");
  while (t->p.elem_bytes != 4);
  t->p.target = &targets[i];
  t->rare = 30;
  t->p.zeros = ZEROS_DATA;
  spread_a(t, 1);
  set_narrow(t, i % 3);
  mm_make_plan(&t->p, &t->plan);
  add_twin(t);
  return 2;
}

// Steps so far apart that 32 bits do not hold where the last ones begin.
static int add_far_listed(test *t, ir_arena *arena) {
  do
    add_problem(t, arena, 1, 5, 40, 1500, false, "listed");
  while (t->p.elem_bytes != 4);
  t->far = true;
  t->p.target = &targets[0]; // all of k in one piece
  t->p.zeros = ZEROS_DATA;
  spread_a(t, 1);
  t->p.a.k.stride[0] = (2 << 20) + 64;
  set_narrow(t, 0);
  mm_make_plan(&t->p, &t->plan);
  add_twin(t);
  return 2;
}

// b in panels of `width` columns, as pass_panels lays it out: read in place.
static void add_panels(test *t, ir_arena *arena, int64_t batch, int64_t width, bool odd) {
  int64_t panels = 2 + (int64_t)test_draw(6), k = test_random_size(400), n = panels * width;
  add_problem(t, arena, batch, test_random_size(120), n, k, odd, "panels");
  t->p.b = (mm_operand){.arg = 1, .ctype = t->p.ctype, .elem_bytes = t->p.elem_bytes};
  t->p.b.batch = mm_simplify(&(mm_axes){.num = 1, .size = {batch}, .stride = {k * n}});
  t->p.b.x = mm_simplify(&(mm_axes){.num = 2, .size = {panels, width}, .stride = {k * width, 1}});
  t->p.b.k = mm_simplify(&(mm_axes){.num = 1, .size = {k}, .stride = {width}});
  mm_make_plan(&t->p, &t->plan);
}

// Windows of wy x wy places, of lines of 61, which no good tile divides: rows of a, or, for the gradients of weights,
// steps of k.
static void draw_wide_windows(test *t, ir_arena *arena, int64_t wy, int64_t oy, int64_t c,
                              bool turned) {
  enum { OX = 61 };
  int64_t line = (OX + wy - 1) * c, n = 16 + (int64_t)test_draw(33);
  mm_axes places = {.num = 2, .size = {oy, OX}, .stride = {line, c}};
  mm_axes window = {.num = 2, .size = {wy, wy * c}, .stride = {line, 1}};
  if (turned)
    add_problem(t, arena, 1, wy * wy * c, n, oy * OX, false, "turned windows");
  else
    add_problem(t, arena, 1, oy * OX, n, wy * wy * c, false, "wide windows");
  t->p.a.x = mm_simplify(turned ? &window : &places);
  t->p.a.k = mm_simplify(turned ? &places : &window);
  t->p.a.batch = (mm_axes){0};
  t->p.a.offset = 0;
  mm_make_plan(&t->p, &t->plan);
}

// A task packs some tiles of rows at a time: all of a short k; or a piece of it, of parts of a window's lines, of whole
// lines, or of places; or, of a long k, pieces of its part.
static bool packs_some_rows(const test *t, int64_t wy, int64_t c, bool turned, bool split) {
  int64_t rows = ir_ceil_div(t->plan.row_tiles, t->plan.group_rows);
  bool whole = t->plan.k_block % (wy * c) == 0;
  if (t->plan.split_k || split)
    return split && t->plan.split_k && t->plan.a == MM_PIECES && t->plan.piece < t->plan.k_block;
  if (turned || wy > 3)
    return t->plan.a == MM_PIECES && (turned || whole == (wy > 11));
  return t->plan.a == MM_LOCAL && t->plan.block_rows < rows;
}

// Draws until a plan does so.
static void add_wide_windows(test *t, ir_arena *arena, int i) {
  enum { MOST = 1000, KINDS = 7 };
  static const int64_t of[KINDS][5] = {{3, 61, 64},
                                       {7, 17, 64},
                                       {11, 9, 64},
                                       {23, 14, 5},
                                       {3, 33, 47, true},
                                       {3, 190, 5, true, true},
                                       {11, 2, 64, false, true}};
  const int64_t *w = of[i % KINDS];
  bool turned = w[3], split = w[4];
  for (int tries = 0; tries < MOST; tries++) {
    draw_wide_windows(t, arena, w[0], w[1], w[2], turned);
    if (packs_some_rows(t, w[0], w[2], turned, split))
      return;
  }
  BUG("no plan packs some of its rows of windows of %lld places", (long long)(w[0] * w[0]));
}

// The gradient of the weights of a convolution along time: steps of k are places of two sequences, each longer than a
// piece of k, which are the tasks' or, of many rows, taken one after the other. Tiles go through them in place. Draws
// until a plan does so.
static void add_long_windows(test *t, ir_arena *arena, bool split) {
  enum { MOST = 1000, C = 16, LENGTH = 1700 };
  int64_t size = split ? 5 : 52;
  mm_axes window = {.num = 2, .size = {size, C}, .stride = {2 * C, 1}};
  mm_axes places = {.num = 2, .size = {2, LENGTH}, .stride = {(LENGTH + 2 * (size - 1)) * C, C}};
  for (int tries = 0; tries < MOST; tries++) {
    add_problem(t, arena, 1, size * C, 16, 2 * LENGTH, false, "long windows");
    t->p.a.x = window, t->p.a.k = places;
    t->p.a.batch = (mm_axes){0};
    t->p.a.offset = 0;
    mm_make_plan(&t->p, &t->plan);
    if (t->plan.a == MM_DIRECT && t->plan.split_k == split && mm_cuts_runs(&t->p, &t->plan))
      return;
  }
  BUG("no plan reads %lld places of windows in place", (long long)size);
}

// Few rows, and steps of k so long that a task goes through them from end to end. Draws until a plan does so.
static void add_walked_b(test *t, ir_arena *arena) {
  enum { MOST = 1000 };
  for (int tries = 0; tries < MOST; tries++) {
    add_problem(t, arena, 1, 5 + (int64_t)test_draw(60), 1030 + (int64_t)test_draw(300), 700, false,
                "walked b");
    if (t->plan.walks_b)
      return;
  }
  BUG("no plan walks b");
}

// What a mask has left of columns that lie in rows far apart, as weights of attention do in its gradients: tiles of a few
// columns go through the rows together. Draws until a plan does so.
static int add_walked_band(test *t, ir_arena *arena) {
  enum { MOST = 1000 };
  for (int tries = 0; tries < MOST; tries++) {
    int num = add_banded(t, arena, 1, 256, 40 + (int64_t)test_draw(60), 300, false);
    if (t->plan.walks && t->plan.col_tiles > 1)
      return num;
  }
  BUG("no plan walks what a mask has left");
}

#endif
