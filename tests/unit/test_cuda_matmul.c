// test_cuda_matmul.c: generated CUDA products on the emulator against a naive product in double
// precision, over random sizes, layouts, tiles, pieces of k and bands, in f32, f64, tf32,
// bf16 and f16.
//
// All kernels go into one text, compiled once as C++. Each is run with its blocks, threads and
// copies in three orders, every access watched: the bits must be the same. Buffers are as large as
// what is in them, and the emulator knows their ends.
//
// Some problems have bands: operands are 0 outside theirs, and only a band of c is looked at. Each
// has a twin of the same tile that knows of no band and must give the same bits there.
#include "codegen/cuda_matmul.h"
#include "codegen/program.h"
#include "ir/narrow.h"
#include "tests/support_campaign.h"
#include "tests/emulator/emulator.h"
#include "tests/unit/support_kernels.h"
#include "tests/unit/support_matmul.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_RANDOM = 72, NUM_BANDED = 20, MAX_TESTS = 160, NUM_ORDERS = 3 };

typedef struct test {
  cmm_problem p;
  cmm_plan plan;
  test_output c; // where results go
  const char *what;
  bool has_twin; // the test after this one
} test;

static mm_operand random_operand(int arg, const cmm_problem *p, int64_t x, bool odd) {
  mm_operand o = test_random_operand(arg, &p->p, x, odd);
  if (cmm_is_half(p->math))
    o.ctype = "uint16_t", o.elem_bytes = 2;
  return o;
}

static void emit_args(const cmm_problem *p, ir_buf *out) {
  ir_buf_printf(out, "  %s *const out = (%s *)args[2];\n", p->p.ctype, p->p.ctype);
}

// c = 3 + sum / 2, wherever c.batch, c.m and c.n say.
static void emit_finish(const cmm_problem *p, ir_buf *out, int indent) {
  const test *t = p->data;
  ir_arena *a = p->p.arena;
  ir_buf_printf(out,
                "%*sfor (int e = 0; e < VL; e++) {\n"
                "%*s  const int64_t at_n = column + e * %d;\n"
                "%*s  if (at_n < %lld)\n"
                "%*s    k_put(out + %s + %s + %s, (%s)(3 + product[e] / 2));\n"
                "%*s}\n",
                indent, "", indent, "", t->plan.spread ? CMM_SPREAD : 1, indent, "",
                (long long)p->p.n, indent, "", mm_offset(a, &t->c.batch, "batch"),
                mm_offset(a, &t->c.m, "line"), mm_offset(a, &t->c.n, "at_n"), p->p.ctype, indent,
                "");
}

static void set_output(test *t) {
  t->c.batch = test_parts_of(t->p.p.batch, false);
  t->c.m = test_parts_of(t->p.p.m, test_draw(2)), t->c.n = test_parts_of(t->p.p.n, test_draw(2));
  mm_axes *order[] = {&t->c.batch, &t->c.m, &t->c.n};
  test_lay_out(order, 3, false, test_draw(2));
}

typedef enum kind { F32, F64, TF32, BF16, F16 } kind;
static const mm_math maths[] = {MM_F32, MM_F32, MM_TF32, MM_BF16, MM_F16};

static void add_problem(test *t, const cg_target *target, ir_arena *arena, const int64_t *size,
                        bool odd, kind kind) {
  bool wide = kind == F64;
  *t = (test){.what = "problem"};
  t->p = (cmm_problem){.p = {.target = target,
                             .arena = arena,
                             .ctype = wide ? "double" : "float",
                             .elem_bytes = wide ? 8 : 4,
                             .batch = size[0],
                             .m = size[1],
                             .n = size[2],
                             .k = size[3],
                             .workspace_arg = 3},
                       .math = maths[kind],
                       .width = 3,
                       .may_spread = true,
                       .emit_args = emit_args,
                       .emit_finish = emit_finish,
                       .data = t};
  t->p.p.a = random_operand(0, &t->p, size[1], odd);
  t->p.p.b = random_operand(1, &t->p, size[2], odd);
  set_output(t);
}

// Tiles that the model may choose for larger problems only, and pieces.
static void force_something(test *t) {
  static const int tiles[][4] = {{8, 2, 1, 2}, {8, 2, 2, 4}, {4, 2, 2, 2}, {8, 4, 2, 2},
                                 {4, 4, 4, 2}, {8, 1, 1, 1}, {2, 1, 1, 1}, {1, 2, 2, 1},
                                 {4, 1, 1, 8}, {4, 2, 1, 1}};
  const int *w = tiles[test_draw(t->p.math != MM_F32 || t->p.p.elem_bytes == 8 ? 5 : 10)];
  bool wide = t->p.p.elem_bytes == 8;
  t->p.want_tm = wide ? w[0] / 2 : w[0], t->p.want_tv = wide ? 1 : w[1];
  t->p.want_warps_m = w[2], t->p.want_warps_n = w[3];
  if (test_draw(2))
    t->p.want_pieces = 1 + (int)test_draw(5);
  t->p.want_turned = (int)(t->p.p.k % 5);
}

// More shared memory than a kernel may have of its own; columns enough for rows that are stored whole.
static void force_large(test *t) {
  bool wide = t->p.math == MM_TF32; // of others, elements on their way may take the registers
  t->p.want_tm = 8, t->p.want_tv = wide ? 4 : 2;
  t->p.want_warps_m = 2, t->p.want_warps_n = wide ? 2 : 4;
  t->p.want_bk = cmm_is_half(t->p.math) ? 32 : 16;
  t->p.want_stages = 4;
  t->p.want_pieces = 1;
}

static int add_twins(test *t) {
  mm_problem *p = &t->p.p;
  p->bands = (band_product){test_random_band(p->m, p->k), test_random_band(p->k, p->n),
                            test_random_band(p->m, p->n), true};
  cmm_make_plan(&t->p, &t->plan);
  t->has_twin = true;
  t[1] = t[0];
  t[1].what = "twin";
  t[1].has_twin = false;
  t[1].p.p.bands = (band_product){.limited = false};
  t[1].p.want_tm = t->plan.tm, t[1].p.want_tv = t->plan.tv;
  t[1].p.want_warps_m = t->plan.warps_m, t[1].p.want_warps_n = t->plan.warps_n;
  t[1].p.want_bk = t->plan.bk, t[1].p.want_pieces = (int)t->plan.pieces;
  t[1].p.want_turned = 1 + t->plan.turned[0] + 2 * t->plan.turned[1];
  t[1].p.data = &t[1];
  cmm_make_plan(&t[1].p, &t[1].plan);
  return 2;
}

// Rows of k, of whole vectors of rows and not: each operand as it lies and turned, with k in one piece and in several.
static int add_turned(test *tests, const cg_target *target, ir_arena *arena) {
  static const int64_t sizes[][4] = {{1, 68, 36, 70}, {1, 131, 102, 33}, {1, 32, 65, 96}};
  enum { NUM = 9 };
  for (int i = 0; i < NUM; i++) {
    const int64_t *size = sizes[i % 3];
    test *t = &tests[i];
    add_problem(t, target, arena, size, false, F32);
    t->what = "turned";
    t->p.p.a.batch = t->p.p.b.batch = (mm_axes){0};
    t->p.p.a.x = (mm_axes){1, {size[1]}, {size[3] + i % 2}};
    t->p.p.b.x = (mm_axes){1, {size[2]}, {size[3] + i % 2}};
    t->p.p.a.k = t->p.p.b.k = (mm_axes){1, {size[3]}, {1}};
    t->p.want_turned = 2 + i % 3;
    t->p.want_pieces = 1 + i / 3 % 2;
    cmm_make_plan(&t->p, &t->plan);
  }
  return NUM;
}

// Operands that copies turn, of tiles with fewer rows, or columns, than a round of copies has: a round then brings
// several groups of eight k.
static int add_low_tiles(test *tests, const cg_target *target, ir_arena *arena) {
  static const int64_t size[] = {1, 41, 70, 69};
  for (int i = 0; i < 2; i++) {
    test *t = &tests[i];
    add_problem(t, target, arena, size, false, F32);
    t->what = "low";
    t->p.p.a.batch = t->p.p.b.batch = (mm_axes){0};
    t->p.p.a.x = (mm_axes){1, {size[1]}, {size[3]}};
    t->p.p.b.x = (mm_axes){1, {size[2]}, {size[3]}};
    t->p.p.a.k = t->p.p.b.k = (mm_axes){1, {size[3]}, {1}};
    t->p.want_tm = t->p.want_tv = t->p.want_turned = 1;
    t->p.want_warps_m = i ? 8 : 1, t->p.want_warps_n = i ? 1 : 8;
    cmm_make_plan(&t->p, &t->plan);
    const cmm_side *s = i ? &t->plan.b : &t->plan.a;
    BUG_IF(!s->turned || s->x * 8 >= t->plan.threads, "a tile of %d is not low", s->x);
  }
  return 2;
}

// Rows along k or along x, of whole units of 16 bytes or, `odd`, beginning anywhere; `parts`: in two axes, which lie apart.
static mm_operand rows_of(int arg, int64_t batch, int64_t x, int64_t k, bool along_k, bool parts,
                          bool odd) {
  mm_operand o = {.arg = arg, .ctype = "uint16_t", .elem_bytes = 2};
  int64_t row = odd ? (along_k ? k : x) | 1 : ((along_k ? k : x) + 7) / 8 * 8;
  int64_t rows = along_k ? x : k;
  if (along_k && parts && x % 2 == 0)
    o.x = (mm_axes){2, {2, x / 2}, {row * (x / 2 + 1), row}}, rows += 2;
  else if (parts && x % 2 == 0)
    row += 16, o.x = (mm_axes){2, {2, x / 2}, {row / 2, 1}};
  else
    o.x = (mm_axes){1, {x}, {along_k ? row : 1}};
  o.k = (mm_axes){1, {k}, {along_k ? 1 : row}};
  if (batch > 1)
    o.batch = (mm_axes){1, {batch}, {row * rows}};
  return o;
}

// By four warps together: all layouts and tiles, edges of everything, pieces, operands and results whose rows begin anywhere.
static int add_wgmma(test *tests, const cg_target *target, ir_arena *arena) {
  static const struct {
    int64_t size[4];
    int tm, tv, warps_m, pieces;
    bool a_along, b_along, parts, a_odd, b_odd;
  } cases[] = {
      {{1, 72, 72, 80}, 2, 4, 4, 1, true, true, false, false, false},
      {{1, 136, 264, 200}, 2, 16, 8, 1, true, false, false, false, false},
      {{1, 64, 64, 64}, 2, 4, 4, 1, false, false, false, false, false},
      {{1, 200, 136, 328}, 4, 8, 8, 2, false, false, false, false, false},
      {{2, 136, 72, 136}, 4, 4, 4, 1, false, true, false, false, false},
      {{1, 33, 131, 72}, 2, 8, 4, 1, true, true, false, false, false},
      {{1, 100, 80, 152}, 2, 8, 8, 1, true, true, true, false, false},
      {{1, 70, 48, 400}, 4, 8, 4, 3, true, false, true, false, false},
      {{1, 128, 256, 72}, 2, 16, 4, 1, false, true, false, false, false},
      {{1, 90, 200, 136}, 2, 12, 8, 1, true, false, false, false, false},
      {{1, 64, 192, 64}, 2, 12, 4, 1, true, true, false, false, false},
      {{1, 80, 96, 72}, 2, 4, 4, 1, false, false, true, false, false},
      {{1, 8, 8, 8}, 0, 0, 0, 1, true, false, false, false, false},
      {{1, 130, 200, 131}, 2, 8, 8, 1, true, false, false, true, false},
      {{1, 131, 72, 200}, 2, 8, 8, 1, false, true, false, true, true},
      {{1, 70, 201, 77}, 2, 4, 4, 1, true, false, false, false, true},
      {{1, 64, 129, 150}, 4, 4, 4, 2, false, false, false, true, true},
  };
  int num = test_part((int)(sizeof cases / sizeof *cases)); // seconds, under the sanitizers
  for (int i = 0; i < num; i++) {
    const int64_t *size = cases[i].size;
    test *t = &tests[i];
    add_problem(t, target, arena, size, false, i % 3 == 2 ? F16 : BF16);
    t->what = "wgmma";
    t->p.p.a =
        rows_of(0, size[0], size[1], size[3], cases[i].a_along, cases[i].parts, cases[i].a_odd);
    t->p.p.b =
        rows_of(1, size[0], size[2], size[3], cases[i].b_along, cases[i].parts, cases[i].b_odd);
    t->p.want_tm = cases[i].tm, t->p.want_tv = cases[i].tv, t->p.want_warps_m = cases[i].warps_m;
    t->p.want_pieces = cases[i].pieces;
    t->p.want_stages = i % 2 ? 4 : 3;
    t->p.want_wgmma = 2;
    cmm_make_plan(&t->p, &t->plan);
    BUG_IF(!t->plan.wgmma, "no wgmma");
  }
  return num;
}

static int all_problems(test *tests, const cg_target *target, ir_arena *arena) {
  enum { FIRST_LARGE = 14 };
  static const int64_t named[][4] = {
      {1, 1, 1, 1},     {1, 1, 1, 1500},  {1, 1, 130, 40},  {1, 130, 1, 40},   {1, 5, 3, 2000},
      {1, 64, 10, 128}, {1, 40, 65, 128}, {3, 64, 64, 32},  {3, 64, 32, 64},   {1, 64, 128, 400},
      {1, 70, 100, 1},  {2, 90, 70, 500}, {1, 300, 70, 20}, {1, 128, 128, 64}, {1, 40, 131, 40},
      {2, 33, 257, 24}, {1, 70, 290, 33}, {1, 9, 999, 64},
  };
  int num = 0;
  for (size_t i = 0; i < sizeof named / sizeof *named; i++, num++) {
    add_problem(&tests[num], target, arena, named[i], i % 2,
                i % 5 == 4   ? TF32
                : i % 5 == 2 ? BF16
                             : F32);
    if (tests[num].p.math == MM_BF16) // which few small problems choose
      tests[num].p.want_pieces = 2;
    if (i >= FIRST_LARGE)
      force_large(&tests[num]);
    cmm_make_plan(&tests[num].p, &tests[num].plan);
  }
  for (int i = 0; i < test_share(NUM_RANDOM); i++, num++) {
    int64_t size[] = {test_draw(3) ? 1 : 1 + (int64_t)test_draw(4), test_random_size(120),
                      test_random_size(120), test_random_size(120)};
    add_problem(&tests[num], target, arena, size, i % 2,
                i % 3 == 1   ? TF32
                : i % 3 == 2 ? i / 3 % 3 ? BF16 : F16
                : i % 8 == 0 ? F64
                             : F32);
    if (i % 4 != 3)
      force_something(&tests[num]);
    cmm_make_plan(&tests[num].p, &tests[num].plan);
  }
  for (int i = 0; i < test_share(NUM_BANDED); i++) {
    bool heads = i % 4 == 0;
    int64_t size[] = {heads ? 2 : 1, heads ? 64 : test_random_size(120),
                      heads ? 64 : test_random_size(120),
                      i % 4 == 1 ? 100 + (int64_t)test_draw(300) : test_random_size(120)};
    add_problem(&tests[num], target, arena, size, i % 2,
                i % 4 == 2   ? TF32
                : i % 4 == 3 ? BF16
                             : F32);
    if (i % 4 == 1)
      tests[num].p.want_pieces = 3, tests[num].p.want_turned = 1 + i % 3;
    num += add_twins(&tests[num]);
  }
  num += add_turned(&tests[num], target, arena);
  num += add_wgmma(&tests[num], cg_target_find(arena, "cuda:sm_90a"), arena);
  return num + add_low_tiles(&tests[num], target, arena);
}

static ir_dtype half_type(mm_math math) {
  return math == MM_BF16 ? IR_BF16 : IR_F16;
}

// What an operand counts as.
static double operand(const void *data, const mm_operand *o, const char *buffer, int64_t i) {
  const cmm_problem *p = data;
  (void)o;
  if (cmm_is_half(p->math))
    return ir_narrow_of_bits(half_type(p->math), ((const uint16_t *)(const void *)buffer)[i]);
  double v = test_element(p->p.elem_bytes, buffer, i);
  return p->math == MM_TF32 ? ir_narrow_tf32(v) : v;
}

static char *new_buffer(size_t bytes) {
  size_t whole = (bytes + 64 + 63) / 64 * 64; // never empty
  char *p = aligned_alloc(64, whole);
  BUG_IF(!p, "no memory");
  memset(p, 0xff, whole); // NaN
  return p;
}

static char *random_data(const cmm_problem *p, const mm_operand *o, size_t *bytes) {
  int64_t count = o->offset + test_extent(&o->batch) + test_extent(&o->x) + test_extent(&o->k) + 1;
  *bytes = (size_t)(count * o->elem_bytes);
  char *data = new_buffer(*bytes);
  for (int64_t i = 0; i < count; i++) {
    double v = (double)test_draw(1 << 20) / (1 << 19) - 1;
    if (o->elem_bytes == 8)
      ((double *)(void *)data)[i] = v;
    else if (o->elem_bytes == 2)
      ((uint16_t *)(void *)data)[i] = ir_narrow_to_bits(half_type(p->math), v);
    else
      ((float *)(void *)data)[i] = (float)v;
  }
  return data;
}

// --- running --------------------------------------------------------------------------------
static void describe(const test *t) {
  const mm_problem *p = &t->p.p;
  static const char *const maths[] = {"", " (tf32)", " (bf16)", " (f16)"};
  printf(
      "%s%s %s%s %lldx%lldx%lldx%lld: tile %dx%dx%d, thread %dx%d, %d threads, %d stages, layouts "
      "%d %d, copies %d %d, turned %d %d, %lld pieces",
      t->what, t->plan.wgmma ? " by wgmma" : "", p->ctype, maths[t->p.math], (long long)p->batch,
      (long long)p->m, (long long)p->n, (long long)p->k, t->plan.bm, t->plan.bn, t->plan.bk,
      t->plan.tm, t->plan.tv * 4, t->plan.threads, t->plan.stages, t->plan.a.layout,
      t->plan.b.layout, t->plan.a.vec, t->plan.b.vec, t->plan.turned[0] + 2 * t->plan.a.turned,
      t->plan.turned[1] + 2 * t->plan.b.turned, (long long)t->plan.pieces);
}

static bool run(const test *t, emu_machine *m, void *library, int index, char **args,
                const size_t *bytes, unsigned order) {
  emu_forget_all(m);
  memset(args[2], 0xff, bytes[2]), memset(args[3], 0xff, bytes[3]);
  for (int i = 0; i < 4; i++)
    if (bytes[i])
      emu_buffer(m, args[i], bytes[i], i >= 2);
  for (int i = 0; i < t->plan.num_phases; i++) {
    char name[40];
    snprintf(name, sizeof name, "mm%d_%d", index, i);
    emu_report report;
    size_t width = 3 + (t->plan.workspace > 0);
    emu_options options = {.order = order};
    const emu_entry *entry = emu_find(library, name);
    int given = i == cmm_product_phase(&t->plan) ? cmm_given_shared(&t->p, &t->plan) : 0;
    if (entry && (entry->threads != t->plan.phase_threads[i] || entry->shared != given)) {
      describe(t);
      printf(": %s has %d threads and %d bytes, planned %d and %d\n", name, entry->threads,
             entry->shared, t->plan.phase_threads[i], given);
      return false;
    }
    if (entry &&
        emu_launch(m, entry, t->plan.tasks[i], args, width * sizeof *args, &options, &report))
      continue;
    describe(t);
    printf(": %s (order %u): %s\n", name, order, entry ? report.text : "is not there");
    return false;
  }
  return true;
}

static double sum_of_products(const double *x, const double *y, int64_t num) {
  double sum = 0;
  for (int64_t k = 0; k < num; k++)
    sum += x[k] * y[k];
  return sum;
}

// Number of elements that are off by more than rounding.
static int64_t count_wrong(const test *t, char *const *args, double *worst) {
  const mm_problem *p = &t->p.p;
  double limit = (p->elem_bytes == 8 ? 1e-14 : 1e-6) * (4 + sqrt((double)p->k));
  int64_t wrong = 0;
  for (int64_t b = 0; b < p->batch; b++) {
    double *x = test_lines(p, &p->a, args[0], b, 0, p->m, operand, &t->p);
    double *y = test_lines(p, &p->b, args[1], b, 0, p->n, operand, &t->p);
    for (int64_t i = 0; i < p->m * p->n; i++) {
      int64_t m = i / p->n, n = i % p->n;
      if (p->bands.limited && test_is_outside(p->bands.c, m, n))
        continue;
      double want = 3 + sum_of_products(x + m * p->k, y + n * p->k, p->k) / 2;
      double got = test_element(p->elem_bytes, args[2], test_output_at(&t->c, b, m, n));
      double error = fabs(got - want) / (1 + fabs(want));
      *worst = error > *worst ? error : *worst;
      wrong += !(error <= limit);
    }
    free(x);
    free(y);
  }
  return wrong;
}

static bool check(const test *t, emu_machine *m, void *library, int index) {
  const mm_problem *p = &t->p.p;
  size_t bytes[4];
  char *args[4];
  args[0] = random_data(&t->p, &p->a, &bytes[0]);
  args[1] = random_data(&t->p, &p->b, &bytes[1]);
  bytes[2] = (size_t)(p->batch * p->m * p->n * p->elem_bytes);
  const test *twin = t->has_twin ? t + 1 : t;
  bytes[3] =
      (size_t)(t->plan.workspace > twin->plan.workspace ? t->plan.workspace : twin->plan.workspace);
  args[2] = new_buffer(bytes[2]), args[3] = new_buffer(bytes[3]);
  char *first = new_buffer(bytes[2]);
  test_clear_outside(p, args);
  bool ok = true;
  for (unsigned order = 0; ok && order < NUM_ORDERS; order++) {
    double worst = 0;
    ok = run(t, m, library, index, args, bytes, order);
    int64_t wrong = ok && order == 0 ? count_wrong(t, args, &worst) : 0;
    if (order == 0)
      memcpy(first, args[2], bytes[2]);
    bool same = !ok || memcmp(first, args[2], bytes[2]) == 0;
    if (wrong || !same) {
      describe(t);
      printf(": %lld wrong (worst %g)%s\n", (long long)wrong, worst,
             same ? "" : ", bits depend on the order");
      ok = false;
    }
  }
  if (ok && t->has_twin) {
    ok = run(twin, m, library, index + 1, args, bytes, 0);
    int64_t different = ok ? test_count_different(&t->p.p, &t->c, first, args[2]) : 0;
    if (different) {
      describe(t);
      printf(": %lld other bits than without bands\n", (long long)different);
      ok = false;
    }
  }
  for (int i = 0; i < 4; i++)
    free(args[i]);
  free(first);
  return ok;
}

// --- all ------------------------------------------------------------------------------------
static const char *all_text(test *tests, int num, ir_arena *arena) {
  ir_buf text = ir_buf_new(arena);
  for (int i = 0; i < num; i++)
    cmm_emit(&tests[i].p, &tests[i].plan, ir_format(arena, "mm%d", i), &text);
  return ir_format(arena, "%s\n%s", cg_cuda_prelude(arena),
                   test_without_unrolling(arena, ir_buf_str(&text)));
}

typedef struct coverage {
  int layouts[4][2][2], copies[4][2], split[4], given[4], spread[4], banded_split, wide;
  int turned[2], turned_both, turned_split, turned_on_the_way[2];
} coverage;

static void count(coverage *c, const test *t) {
  c->layouts[t->p.math][t->plan.a.layout][t->plan.b.layout]++;
  c->copies[t->p.math][t->plan.a.vec > 1]++;
  c->split[t->p.math] += t->plan.pieces > 1;
  c->given[t->p.math] += cmm_given_shared(&t->p, &t->plan) > 0;
  c->spread[t->p.math] += t->plan.spread;
  c->banded_split += t->plan.pieces > 1 && t->p.p.bands.limited;
  c->wide += t->p.p.elem_bytes == 8 && t->plan.a.vec == 1;
  const cmm_side *sides[] = {&t->plan.a, &t->plan.b};
  for (int i = 0; i < 2; i++) {
    c->turned[i] += t->plan.turned[i];
    c->turned_on_the_way[i] += sides[i]->turned;
  }
  c->turned_both += t->plan.turned[0] && t->plan.turned[1];
  c->turned_split += (t->plan.turned[0] || t->plan.turned[1]) && t->plan.pieces > 1;
}

// Every way of doing something must have been tried.
static bool is_complete(const coverage *c) {
  bool all = c->banded_split && c->wide && c->turned_both && c->turned_split;
  for (int i = 0; i < 2; i++)
    all &= c->turned[i] && c->turned_on_the_way[i];
  for (int math = 0; math < 4; math++) {
    bool rare = math == MM_F16; // of bf16's text but for one word
    all &= rare || (c->copies[math][0] && c->copies[math][1] && c->split[math] && c->given[math] &&
                    c->spread[math]);
    for (int i = 0; i < 4; i++)
      all &= rare || c->layouts[math][i / 2][i % 2] > 0;
  }
  return all && c->copies[MM_F16][1];
}

int main(void) {
  ir_arena *arena = ir_arena_new();
  test *tests = IR_NEW_ARRAY(arena, test, MAX_TESTS);
  const cg_target *target = cg_target_find(arena, "cuda:sm_80,sm_90a");
  int num = all_problems(tests, target, arena), failed = 0;
  void *library = emu_build(all_text(tests, num, arena), NULL);
  if (!library)
    return 1;
  emu_machine *m = emu_new();
  coverage covered = {0};
  for (int i = 0; i < num; i++) {
    failed += !check(&tests[i], m, library, i);
    count(&covered, &tests[i]);
  }
  bool complete = TEST_SANITIZED || is_complete(&covered); // a sixth of them need not
  if (!complete)
    printf("the problems no longer reach every kind of plan: pieces with bands %d, f64 one by one "
           "%d, turned %d %d, both %d, with pieces %d, on the way %d %d\n",
           covered.banded_split, covered.wide, covered.turned[0], covered.turned[1],
           covered.turned_both, covered.turned_split, covered.turned_on_the_way[0],
           covered.turned_on_the_way[1]);
  for (int math = 0; !complete && math < 4; math++)
    printf("math %d: copies %d %d, pieces %d, shared memory given %d, spread %d\n", math,
           covered.copies[math][0], covered.copies[math][1], covered.split[math],
           covered.given[math], covered.spread[math]);
  printf("%d problems, %d failed\n", num, failed);
  emu_free(m);
  dlclose(library);
  ir_arena_free(arena);
  return failed || !complete;
}
