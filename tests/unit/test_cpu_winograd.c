// test_cpu_winograd.c: generated products of 3 x 3 windows by Winograd's algorithm (cpu_matmul_winograd.c), and gradients of
// their filters (cpu_matmul_winograd_weights.c), against sums of products in C.
//
// Operands are small whole numbers, those that are halved multiples of four: every number on the way is one that a float
// has, and results must be equal. Images have odd sizes and a gap behind places, lines and images, channels and columns end
// within a vector, filters lie in any order, backwards, too, and some problems are several, as groups of channels make
// them. All kernels go into one C file, compiled once. Each is run with its tasks in order, and again from last to
// first. Every buffer ends at a page that may not be touched.
#include "codegen/cpu_matmul_patch.h"
#include "codegen/program.h"
#include "tests/support_campaign.h"
#include "tests/unit/support_instructions.h"
#include "tests/unit/support_matmul.h"

#include <stdlib.h>
#include <string.h>

enum { NUM_RANDOM = 120, MAX_TESTS = 120 };

typedef struct test {
  mm_problem p;
  mm_plan plan;
  test_output c;
  bool weights; // the gradient of filters
} test;

// What has been seen, each at least once.
typedef struct coverage {
  int vectors[5], odd_height, odd_width, even, tail_channels, tail_cols, whole_cols, narrow, batch,
      plain, one_image, gaps, groups, columns, last_block, pieces, one_piece, parts, last_part,
      within, images;
} coverage;

// --- problems ----------------------------------------------------------------------------------------------------
typedef struct images {
  int64_t images, height, width, channels; // of the results; channels of each of the groups
  int64_t place, line, image;              // elements
} images;

static void emit_finish(const mm_problem *p, void *data, const char *name, ir_buf *out) {
  test_emit_finish(p, &((const test *)data)->c, name, out);
}

// Of some problems one high image, whose lines of patches make no equal blocks, a small one, with many columns, or wide ones,
// of whose lines a block has a part.
typedef enum shape { SHAPE_ANY, SHAPE_HIGH, SHAPE_SMALL, SHAPE_WIDE } shape;

static images draw_images(const mm_problem *p, bool gap, shape kind) {
  int64_t lanes = p->target->vector_bytes / 4;
  images x = {.images = 1 + (int64_t)test_draw(4),
              .height = 2 + (int64_t)test_draw(9),
              .width = 2 + (int64_t)test_draw(12),
              .channels = test_draw(2) ? lanes * (1 + (int64_t)test_draw(3))
                                       : lanes + (int64_t)test_draw(30)};
  if (kind == SHAPE_WIDE)
    x.images = 2, x.height = 2 + (int64_t)test_draw(3), x.width = 195 + (int64_t)test_draw(150);
  else if (kind != SHAPE_ANY)
    x.images = 1, x.height = kind == SHAPE_HIGH ? 58 : 4, x.width = kind == SHAPE_HIGH ? 12 : 6;
  x.place = x.channels * p->batch + (gap ? 3 : 0);
  x.line = x.place * (x.width + 2) + (gap ? 5 : 0);
  x.image = x.line * (x.height + 2) + (gap ? 7 : 0);
  return x;
}

static mm_axes places_of(const images *x) {
  return mm_simplify(&(mm_axes){
      .num = 3, .size = {x->images, x->height, x->width}, .stride = {x->image, x->line, x->place}});
}

static mm_axes windows_of(const images *x) {
  return mm_simplify(
      &(mm_axes){.num = 3, .size = {3, 3, x->channels}, .stride = {x->line, x->place, 1}});
}

// Filters as they are; or turned around, and seen from the other side, as in the gradient of what windows are of.
static void set_filters(mm_problem *p, const images *x, bool turned) {
  int64_t of_one = 9 * x->channels * p->n;
  p->b.batch = mm_simplify(&(mm_axes){.num = 1, .size = {p->batch}, .stride = {of_one}});
  if (!turned) {
    p->b.x = mm_simplify(&(mm_axes){.num = 1, .size = {p->n}, .stride = {1}});
    p->b.k = mm_simplify(&(mm_axes){.num = 1, .size = {p->k}, .stride = {p->n}});
    return;
  }
  int64_t place = x->channels * p->n;
  p->b.offset = 8 * place;
  p->b.x = mm_simplify(&(mm_axes){.num = 1, .size = {p->n}, .stride = {x->channels}});
  p->b.k = mm_simplify(
      &(mm_axes){.num = 3, .size = {3, 3, x->channels}, .stride = {-3 * place, -place, 1}});
}

// Side by side; or in the middle of images with a border.
static void set_gradients(mm_problem *p, const images *x, bool border) {
  int64_t place = p->n * p->batch, gap = border ? 2 : 0;
  int64_t line = place * (x->width + gap), image = line * (x->height + gap);
  p->b.offset = border ? line + place : 0;
  p->b.batch = mm_simplify(&(mm_axes){.num = 1, .size = {p->batch}, .stride = {p->n}});
  p->b.x = mm_simplify(&(mm_axes){.num = 1, .size = {p->n}, .stride = {1}});
  p->b.k = mm_simplify(&(mm_axes){
      .num = 3, .size = {x->images, x->height, x->width}, .stride = {image, line, place}});
}

static void set_problem(test *t, ir_arena *arena, int i) {
  mm_problem *p = &t->p;
  *p = (mm_problem){.target = &test_vectors[i % 3],
                    .arena = arena,
                    .ctype = "float",
                    .elem_bytes = 4,
                    .batch = i % 7 == 4 ? 3 : 1,
                    .plain = test_draw(2),
                    .want_nv = i % 4 == 2 ? 2 : 0,
                    .workspace_arg = 3,
                    .emit_finish = emit_finish,
                    .data = t};
  int64_t lanes = p->target->vector_bytes / 4;
  shape kind = i % 8 == 5                  ? SHAPE_HIGH
               : i % 8 == 1                ? SHAPE_WIDE
               : i % 8 == 3 && !t->weights ? SHAPE_SMALL
                                           : SHAPE_ANY;
  images x = draw_images(p, i % 5 == 3, kind);
  p->n = kind == SHAPE_SMALL ? 12 * lanes
         : test_draw(2)      ? lanes * (1 + (int64_t)test_draw(5))
                             : lanes + (int64_t)test_draw(50);
  int64_t places = x.images * x.height * x.width;
  p->m = t->weights ? 9 * x.channels : places, p->k = t->weights ? places : 9 * x.channels;
  p->a = (mm_operand){.arg = 0, .ctype = "float", .elem_bytes = 4, .offset = i % 5};
  p->b = (mm_operand){.arg = 1, .ctype = "float", .elem_bytes = 4};
  p->a.batch = mm_simplify(&(mm_axes){.num = 1, .size = {p->batch}, .stride = {x.channels}});
  p->a.x = t->weights ? windows_of(&x) : places_of(&x);
  p->a.k = t->weights ? places_of(&x) : windows_of(&x);
  if (t->weights)
    set_gradients(p, &x, test_draw(2));
  else
    set_filters(p, &x, test_draw(2));
  test_set_output(p, &t->c, p->plain);
}

static double plan_of(test *t) {
  if (t->weights) {
    BUG_IF(!mm_suits_winograd_weights(&t->p), "a gradient does not suit");
    return mm_plan_winograd_weights(&t->p, &t->plan);
  }
  BUG_IF(!mm_suits_winograd(&t->p), "windows do not suit");
  return mm_plan_winograd(&t->p, &t->plan);
}

static void add_problem(test *t, ir_arena *arena, int i) {
  t->weights = i % 2;
  do
    set_problem(t, arena, i / 2);
  while (plan_of(t) < 0); // no block of these has room, or no sums have
}

static mm_windows windows_seen(const test *t) {
  mm_windows w;
  const mm_operand *a = &t->p.a;
  BUG_IF(!mm_find_windows(t->weights ? &a->k : &a->x, t->weights ? &a->x : &a->k, &w),
         "no windows");
  return w;
}

static void look(const test *t, coverage *c) {
  const mm_plan *g = &t->plan;
  mm_windows w = windows_seen(t);
  c->vectors[g->nv]++;
  c->odd_height += w.height % 2 == 1, c->odd_width += w.width % 2 == 1,
      c->even += w.height % 2 == 0 && w.width % 2 == 0;
  c->tail_channels += w.channels % g->lanes > 0;
  c->tail_cols += t->p.n % g->lanes > 0, c->whole_cols += g->tail_cols == 0;
  c->narrow += g->tail_nv > 0 && g->tail_nv < g->nv && t->p.n > g->nr;
  c->batch += t->p.batch > 1, c->plain += t->p.plain, c->one_image += w.images == 1;
  c->gaps += w.place > w.channels * t->p.batch;
  c->groups += g->group_rows > 1, c->columns += g->group_cols > 1;
  c->last_block += w.images * mm_patch_lines(&w) % g->patch_lines > 0;
  c->parts += g->patch_wide < mm_patches_of_line(&w);
  c->last_part += mm_patches_of_line(&w) % g->patch_wide > 0;
  c->within += g->patch_within, c->images += w.height % 2 == 1 && !g->patch_within && w.images > 1;
  c->pieces += g->k_blocks > 1, c->one_piece += g->k_blocks == 1;
}

static bool both_seen(const coverage *c) {
  return c->vectors[1] && c->vectors[2] && c->odd_height && c->odd_width && c->even &&
         c->tail_channels && c->tail_cols && c->whole_cols && c->narrow && c->batch && c->plain &&
         c->one_image && c->gaps && c->columns && c->last_block && c->parts && c->last_part;
}

// Windows that are others than 3 x 3, step by two or are apart, numbers that are not floats, and few channels.
static bool suits_others(ir_arena *arena) {
  test t = {0}, g = {.weights = true};
  add_problem(&t, arena, 6); // with gaps: each axis has a part of its own
  add_problem(&g, arena, 7);
  mm_problem wide = t.p, step = t.p, apart = t.p, bytes = t.p, few = t.p, columns = g.p;
  int last = step.a.x.num - 1;
  wide.a.k.size[0] = 5;
  step.a.x.stride[last] *= 2;
  apart.a.k.stride[0] *= 2;
  bytes.a.convert = "u8";
  few.a.k.size[few.a.k.num - 1] = 3;
  columns.b.x.stride[0] = 2;
  return mm_suits_winograd(&wide) || mm_suits_winograd(&step) || mm_suits_winograd(&apart) ||
         mm_suits_winograd(&bytes) || mm_suits_winograd(&few) || mm_suits_winograd(&g.p) ||
         mm_suits_winograd_weights(&columns) || mm_suits_winograd_weights(&t.p);
}

// --- data --------------------------------------------------------------------------------------------------------
// Elements [0, offset + first of the last + 1).
static char *whole_numbers(const mm_operand *o, int times, size_t *bytes) {
  int64_t count = o->offset + 1;
  const mm_axes *all[] = {&o->batch, &o->x, &o->k};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < all[i]->num; j++)
      if (all[i]->stride[j] > 0)
        count += (all[i]->size[j] - 1) * all[i]->stride[j];
  *bytes = (size_t)count * 4;
  char *data = test_guarded(*bytes);
  for (int64_t i = 0; i < count; i++) {
    float x = (float)((int)test_draw(9) - 4) * (float)times;
    memcpy(data + 4 * i, &x, 4);
  }
  return data;
}

// --- running -----------------------------------------------------------------------------------------------------
static void *compile(const test *tests, int num, ir_arena *arena, const char *base) {
  ir_buf text = ir_buf_new(arena);
  ir_buf_puts(&text, instructions);
  for (int i = 0; i < num; i++)
    test_emit_matmul(&tests[i].p, &tests[i].plan, i, &text);
  return test_library(arena, base, &text,
                      ir_format(arena, "-march=native %s", cg_effort(TEST_SANITIZED ? 0 : 1)));
}

static double number(const void *data, const mm_operand *o, const char *buffer, int64_t i) {
  (void)data, (void)o;
  return test_element(4, buffer, i);
}

static int64_t count_wrong(const void *data, char *const *args) {
  const test *t = data;
  const mm_problem *p = &t->p;
  int64_t wrong = 0;
  for (int64_t b = 0; b < p->batch; b++) {
    double *x = test_lines(p, &p->a, args[0], b, 0, p->m, number, NULL);
    double *y = test_lines(p, &p->b, args[1], b, 0, p->n, number, NULL);
    for (int64_t i = 0; i < p->m * p->n; i++) {
      int64_t m = i / p->n, n = i % p->n;
      double sum = 0;
      for (int64_t k = 0; k < p->k; k++)
        sum += x[m * p->k + k] * y[n * p->k + k];
      double want = p->plain ? sum : 3 + sum / 2;
      wrong += test_element(4, args[2], test_output_at(&t->c, b, m, n)) != want;
    }
    free(x);
    free(y);
  }
  return wrong;
}

static bool check(const test *t, void *library, int index) {
  size_t bytes[4] = {0, 0, (size_t)(t->p.batch * t->p.m * t->p.n * 4), (size_t)t->plan.workspace};
  char *args[4] = {whole_numbers(&t->p.a, 1, &bytes[0]), whole_numbers(&t->p.b, 4, &bytes[1]),
                   test_guarded(bytes[2]), test_guarded(bytes[3])};
  test_wrong wrong = test_run_both(&t->plan, library, index, args, bytes, count_wrong, t);
  bool ok = !wrong.in_order && !wrong.backwards;
  if (!ok)
    printf("problem %d%s, %s, %lldx%lldx%lldx%lld: %lld wrong, %lld in another order\n", index,
           t->weights ? " of weights" : "", t->p.target->name, (long long)t->p.batch,
           (long long)t->p.m, (long long)t->p.n, (long long)t->p.k, (long long)wrong.in_order,
           (long long)wrong.backwards);
  for (int i = 0; i < 4; i++)
    test_unguard(args[i], bytes[i]);
  return ok;
}

int main(void) {
  ir_arena *arena = ir_arena_new();
  test *tests = IR_NEW_ARRAY(arena, test, MAX_TESTS);
  char dir[] = "/tmp/test_cpu_winograd.XXXXXX";
  if (!mkdtemp(dir))
    return 1;
  coverage seen[2];
  memset(seen, 0, sizeof seen);
  int num = test_share(NUM_RANDOM), failed = 0;
  for (int i = 0; i < num; i++) {
    add_problem(&tests[i], arena, i);
    look(&tests[i], &seen[i % 2]);
  }
  void *library = compile(tests, num, arena, ir_format(arena, "%s/kernels", dir));
  if (!library)
    failed++, printf("generated kernels do not compile: %s/kernels.c\n", dir);
  for (int i = 0; library && i < num; i++)
    failed += !check(&tests[i], library, i);
  if (!TEST_SANITIZED &&
      !(both_seen(&seen[0]) && seen[0].groups && seen[0].within && seen[0].images &&
        both_seen(&seen[1]) && seen[1].pieces && seen[1].one_piece)) // a share of them need not
    failed++, printf("something was not tried\n");
  if (suits_others(arena))
    failed++, printf("the algorithm is for floats in 3 x 3 windows\n");
  if (failed == 0 && system(ir_format(arena, "rm -r %s", dir)) != 0)
    failed++;
  printf("cpu_winograd: %d products; %d failed\n", num, failed);
  ir_arena_free(arena);
  return failed != 0;
}
