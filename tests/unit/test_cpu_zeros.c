// test_cpu_zeros.c: generated products of samples full of zeros, of which each row goes through a list of steps of its own
// (cpu_matmul_single.c), or a few steps through a list of rows (cpu_matmul_outer.c), against chains of FMAs in C: every sum
// has the bits of one chain over all of k, in order, whatever is left out of it.
//
// Samples are of numbers, of bytes and of bf16, with few numbers, none or all of them; groups of full ones are there, and full
// ones beside others. Columns end within a tile, and within a vector; some of b are infinite or no numbers, where 0 times b is not 0.
// All kernels go into one C file, compiled once. Each is run with its tasks in order, and again from last to first. Every
// buffer ends at a page that may not be touched.
#include "codegen/program.h"
#include "tests/support_campaign.h"
#include "tests/unit/support_instructions.h"
#include "tests/unit/support_matmul.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_RANDOM = 120, MAX_TESTS = 120 };

typedef struct test {
  mm_problem p;
  mm_plan plan;
  test_output c;
  bool outer;   // samples are steps of k, not rows
  bool spoiled; // some of b are not finite
} test;

// What has been seen, each at least once.
typedef struct coverage {
  int vectors[9], types[3], pieces, one_piece, blocks, tail_cols, whole_cols, in_place, odd_rows,
      one_row, batch, columns, plain, spoiled, groups, together[5], last_steps;
} coverage;

static const test_vector targets[] = {TEST_512, TEST_256, TEST_TINY};
static const struct {
  const char *ctype, *convert;
  int elem_bytes;
} types[] = {{"float", NULL, 4}, {"uint8_t", "u8", 1}, {"uint16_t", "bf16", 2}};

// --- problems ----------------------------------------------------------------------------------------------------
static void emit_finish(const mm_problem *p, void *data, const char *name, ir_buf *out) {
  test_emit_finish(p, &((const test *)data)->c, name, out);
}

// Samples of a, and steps of b, with a gap behind them or without.
static void set_operands(mm_problem *p, int type, bool outer, bool gap) {
  int64_t samples = outer ? p->k : p->m, a_row = (outer ? p->m : p->k) + (gap ? 3 : 0),
          b_row = p->n + (gap ? 5 : 0);
  p->a = (mm_operand){.arg = 0,
                      .ctype = types[type].ctype,
                      .convert = types[type].convert,
                      .elem_bytes = types[type].elem_bytes,
                      .offset = gap ? 7 : 0};
  p->b = (mm_operand){.arg = 1, .ctype = "float", .elem_bytes = 4, .offset = gap ? 2 : 0};
  p->a.batch = mm_simplify(&(mm_axes){.num = 1, .size = {p->batch}, .stride = {samples * a_row}});
  p->a.x = mm_simplify(&(mm_axes){.num = 1, .size = {p->m}, .stride = {outer ? 1 : a_row}});
  p->a.k = mm_simplify(&(mm_axes){.num = 1, .size = {p->k}, .stride = {outer ? a_row : 1}});
  p->b.batch = mm_simplify(&(mm_axes){.num = 1, .size = {p->batch}, .stride = {p->k * b_row}});
  p->b.x = mm_simplify(&(mm_axes){.num = 1, .size = {p->n}, .stride = {1}});
  p->b.k = mm_simplify(&(mm_axes){.num = 1, .size = {p->k}, .stride = {b_row}});
}

static void set_problem(test *t, ir_arena *arena, int i, int64_t m, int64_t n, int64_t k) {
  t->p = (mm_problem){.target = &test_vectors[targets[i % 3]],
                      .arena = arena,
                      .ctype = "float",
                      .elem_bytes = 4,
                      .batch = i % 10 == 4 ? 3 : 1,
                      .m = m,
                      .n = n,
                      .k = k,
                      .plain = i % 3 == 1 || test_draw(2),
                      .zeros = ZEROS_DATA,
                      .workspace_arg = 3,
                      .emit_finish = emit_finish,
                      .data = t};
  t->spoiled = i % 4 == 3;
  set_operands(&t->p, i % 4 ? 0 : 1 + i / 4 % 2, t->outer, i % 4 != 1 && i % 7 == 3);
  test_set_output(&t->p, &t->c, t->p.plain);
}

static int64_t lanes_of(int i) {
  return test_vectors[targets[i % 3]].vector_bytes / 4;
}

// Rows whose sums are more than wait at a time.
static bool has_many_rows(int i) {
  return i % 24 == 7;
}

static void add_outer(test *t, ir_arena *arena, int i) {
  bool many = has_many_rows(i);
  int64_t lanes = lanes_of(i), m = many ? 50000 : 2 + test_random_size(200);
  int64_t n = many         ? 4 * lanes
              : i % 4 == 1 ? lanes * (1 + (int64_t)test_draw(4))
              : i % 8 == 2 ? 1
                           : 1 + (int64_t)test_draw(4 * (uint64_t)lanes);
  int64_t k = many ? 18 : 16 + (int64_t)test_draw(90);
  t->outer = true;
  set_problem(t, arena, i, m, n, k);
  BUG_IF(!mm_suits_outer(&t->p), "problem %d does not suit", i);
  mm_plan_outer(&t->p, &t->plan);
}

static void add_single(test *t, ir_arena *arena, int i) {
  bool many = has_many_rows(i);
  int64_t lanes = lanes_of(i), m = i % 12 == 5 ? 1 : many ? 4100 : test_random_size(90);
  int64_t n = many         ? 8 * lanes
              : i % 4 == 1 ? lanes * (4 + (int64_t)test_draw(8))
                           : 4 * lanes + (int64_t)test_draw(150);
  int64_t k = many ? 40 : i % 5 == 2 ? 16 + (int64_t)test_draw(40) : 60 + (int64_t)test_draw(500);
  set_problem(t, arena, i, m, n, k);
  BUG_IF(!mm_suits_single(&t->p), "problem %d does not suit", i);
  mm_plan_single(&t->p, &t->plan);
}

static void add_problem(test *t, ir_arena *arena, int i) {
  if (i % 2)
    add_outer(t, arena, i / 2);
  else
    add_single(t, arena, i / 2);
}

static void look(const test *t, coverage *c) {
  const mm_plan *g = &t->plan;
  int type = t->p.a.elem_bytes == 4 ? 0 : t->p.a.elem_bytes == 1 ? 1 : 2;
  c->vectors[g->nv]++, c->types[type]++;
  c->pieces += g->k_blocks > 1, c->one_piece += g->k_blocks == 1;
  c->blocks += g->block_rows * g->group_rows < g->row_tiles;
  c->tail_cols += g->tail_cols > 0 && t->p.n > g->nr, c->whole_cols += g->tail_cols == 0;
  c->in_place += t->p.n == g->nr, c->columns += g->by_columns;
  c->odd_rows += g->tail_rows > 0 && t->p.m > 1, c->one_row += t->p.m == 1;
  c->batch += t->p.batch > 1, c->plain += t->p.plain, c->spoiled += t->spoiled;
  c->groups += g->group_rows * g->group_cols > 1;
  c->together[g->together]++, c->last_steps += t->outer && t->p.k % g->together > 0;
}

static bool samples_seen(const coverage *c) {
  return c->types[0] && c->types[1] && c->types[2] && c->blocks && c->whole_cols && c->odd_rows &&
         c->batch && c->plain && c->spoiled && c->groups;
}

static bool singles_seen(const coverage *c) {
  return samples_seen(c) && c->vectors[8] && c->pieces && c->one_piece && c->tail_cols &&
         c->in_place && c->one_row && c->columns;
}

static bool outers_seen(const coverage *c) {
  return samples_seen(c) && c->vectors[1] && c->vectors[2] && c->vectors[3] && c->vectors[4] &&
         c->together[2] && c->together[4] && c->last_steps;
}

// Others than samples beside columns of b that lie side by side do not go through such lists.
static bool suits_others(ir_arena *arena) {
  test t = {0}, o = {0};
  add_single(&t, arena, 1);
  add_outer(&o, arena, 1);
  mm_problem across = t.p, turned = t.p, full = t.p, rows = t.p, narrow = t.p;
  across.a.x.stride[0] = 1, across.a.k.stride[0] = across.m;
  turned.b.x.stride[0] = turned.k, turned.b.k.stride[0] = 1;
  full.zeros = ZEROS_NONE, rows.zeros = ZEROS_ROWS;
  narrow.n = 10;
  mm_problem wide = o.p, dense = o.p, columns = o.p;
  wide.n = 4 * wide.target->vector_bytes / 4 + 1;
  dense.zeros = ZEROS_NONE;
  columns.b.x.stride[0] = columns.k, columns.b.k.stride[0] = 1;
  if (mm_suits_outer(&wide) || mm_suits_outer(&dense) || mm_suits_outer(&columns) ||
      mm_suits_outer(&t.p) || mm_suits_single(&o.p))
    return true;
  return mm_suits_single(&across) || mm_suits_single(&turned) || mm_suits_single(&full) ||
         mm_suits_single(&rows) || mm_suits_single(&narrow);
}

// --- data --------------------------------------------------------------------------------------------------------
static float element(const mm_operand *a, const char *buffer, int64_t i) {
  if (a->elem_bytes == 4)
    return (float)test_element(4, buffer, i);
  return a->elem_bytes == 1 ? (float)(uint8_t)buffer[i] : (float)test_bf16_element(buffer, i);
}

static void put(const mm_operand *a, char *buffer, int64_t i, bool zero) {
  float some = (float)((double)test_draw(1 << 20) / (1 << 19) - 1),
        none = test_draw(2) ? 0.0f : -0.0f;
  uint32_t bits;
  some = some == 0 ? 1 : some;
  memcpy(&bits, zero ? &none : &some, sizeof bits);
  if (a->elem_bytes == 4)
    memcpy(buffer + i * 4, &bits, 4);
  else if (a->elem_bytes == 2)
    memcpy(buffer + i * 2, (char *)&bits + 2, 2);
  else
    buffer[i] = (char)(zero ? 0 : 1 + test_draw(255));
}

// The smallest number there is: times less than a half it is 0, or -0.
static void make_tiny(const mm_operand *a, char *buffer, int64_t i) {
  const uint32_t least = 1;
  if (a->elem_bytes == 4 && test_element(4, buffer, i) != 0)
    memcpy(buffer + i * 4, &least, 4);
}

// Sample by sample: mostly zeros; or no zero, in groups or alone; or nothing else.
static char *samples_of(const test *t, size_t *bytes) {
  const mm_operand *a = &t->p.a;
  int64_t count = a->offset + test_extent(&a->batch) + test_extent(&a->x) + test_extent(&a->k) + 1;
  *bytes = (size_t)(count * a->elem_bytes);
  char *data = test_guarded(*bytes);
  memset(data, 0x7f, *bytes); // what lies between samples is nobody's
  int64_t samples = t->outer ? t->p.k : t->p.m, length = t->outer ? t->p.m : t->p.k;
  for (int64_t i = 0; i < t->p.batch * samples; i++) {
    int64_t kind = i / 12 % 5, at = a->offset + test_at(&a->batch, i / samples) +
                                    test_at(t->outer ? &a->k : &a->x, i % samples);
    bool full = kind == 1 || (kind == 2 && i % 2), empty = kind == 3 && (t->outer || i % 2);
    for (int64_t j = 0; j < length; j++) {
      put(a, data, at + j, !full && (empty || test_draw(5)));
      if (t->outer ? j % 7 == 3 : kind == 4) // all that a row has
        make_tiny(a, data, at + j);
    }
  }
  return data;
}

static char *columns_of(const test *t, size_t *bytes) {
  const mm_operand *b = &t->p.b;
  int64_t count = b->offset + test_extent(&b->batch) + test_extent(&b->x) + test_extent(&b->k) + 1;
  *bytes = (size_t)count * 4;
  char *data = test_guarded(*bytes);
  for (int64_t i = 0; i < count; i++)
    put(b, data, i, false);
  const float bad[] = {INFINITY, -INFINITY, NAN};
  for (int i = 0; t->spoiled && i < 3; i++) {
    int64_t k = i == 0 ? t->p.k - 1 : (int64_t)test_draw((uint64_t)t->p.k);
    int64_t n = i == 1 ? t->p.n - 1 : (int64_t)test_draw((uint64_t)t->p.n);
    memcpy(data + 4 * (b->offset + test_at(&b->k, k) + test_at(&b->x, n)), &bad[i], 4);
  }
  return data;
}

// --- running -----------------------------------------------------------------------------------------------------
static void *compile(const test *tests, int num, ir_arena *arena, const char *base) {
  ir_buf text = ir_buf_new(arena);
  ir_buf_puts(&text, instructions);
  for (int i = 0; i < num; i++)
    test_emit_matmul(&tests[i].p, &tests[i].plan, i, &text);
  return test_library(
      arena, base, &text,
      ir_format(arena, "-march=native %s %s", cg_effort(TEST_SANITIZED ? 0 : 1),
                __builtin_cpu_supports("avx512f") ? "-mprefer-vector-width=512" : ""));
}

static bool same_number(float x, float y) {
  return (isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0;
}

static int64_t count_wrong(const void *data, char *const *args) {
  const test *t = data;
  const mm_problem *p = &t->p;
  int64_t wrong = 0;
  for (int64_t i = 0; i < p->batch * p->m * p->n; i++) {
    int64_t b = i / (p->m * p->n), m = i / p->n % p->m, n = i % p->n;
    int64_t pa = p->a.offset + test_at(&p->a.batch, b) + test_at(&p->a.x, m);
    int64_t pb = p->b.offset + test_at(&p->b.batch, b) + test_at(&p->b.x, n),
            step = test_at(&p->b.k, 1), apart = test_at(&p->a.k, 1);
    float sum = 0;
    for (int64_t k = 0; k < p->k; k++)
      sum = fmaf(element(&p->a, args[0], pa + k * apart),
                 (float)test_element(4, args[1], pb + k * step), sum);
    float want = p->plain ? sum + 0.0f : 3 + sum / 2;
    wrong += !same_number((float)test_element(4, args[2], test_output_at(&t->c, b, m, n)), want);
  }
  return wrong;
}

static bool check(const test *t, void *library, int index) {
  size_t bytes[4] = {0, 0, (size_t)(t->p.batch * t->p.m * t->p.n * 4), (size_t)t->plan.workspace};
  char *args[4] = {samples_of(t, &bytes[0]), columns_of(t, &bytes[1]), test_guarded(bytes[2]),
                   test_guarded(bytes[3])};
  test_wrong wrong = test_run_both(&t->plan, library, index, args, bytes, count_wrong, t);
  bool ok = !wrong.in_order && !wrong.backwards;
  if (!ok)
    printf("problem %d, %s, %lldx%lldx%lldx%lld of %s: %lld wrong, %lld in another order\n", index,
           t->p.target->name, (long long)t->p.batch, (long long)t->p.m, (long long)t->p.n,
           (long long)t->p.k, t->p.a.ctype, (long long)wrong.in_order, (long long)wrong.backwards);
  for (int i = 0; i < 4; i++)
    test_unguard(args[i], bytes[i]);
  return ok;
}

int main(void) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return puts("cpu_zeros: skipped, this machine has no such vectors") == EOF;
  ir_arena *arena = ir_arena_new();
  test *tests = IR_NEW_ARRAY(arena, test, MAX_TESTS);
  char dir[] = "/tmp/test_cpu_zeros.XXXXXX";
  if (!mkdtemp(dir))
    return 1;
  coverage singles = {0}, outers = {0};
  int num = test_share(NUM_RANDOM), failed = 0;
  for (int i = 0; i < num; i++) {
    add_problem(&tests[i], arena, i);
    look(&tests[i], i % 2 ? &outers : &singles);
  }
  void *library = compile(tests, num, arena, ir_format(arena, "%s/kernels", dir));
  if (!library)
    failed++, printf("generated kernels do not compile: %s/kernels.c\n", dir);
  for (int i = 0; library && i < num; i++)
    failed += !check(&tests[i], library, i);
  if (!TEST_SANITIZED &&
      !(singles_seen(&singles) && outers_seen(&outers))) // a share of them need not
    failed++, printf("something was not tried\n");
  if (suits_others(arena))
    failed++, printf("such lists are for samples full of zeros\n");
  if (failed == 0 && system(ir_format(arena, "rm -r %s", dir)) != 0)
    failed++;
  printf("cpu_zeros: %d products; %d failed\n", num, failed);
  ir_arena_free(arena);
  return failed != 0;
}
