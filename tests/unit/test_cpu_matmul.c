// test_cpu_matmul.c: generated products against a naive one in double precision, over random
// sizes, layouts, targets and plans.
//
// All kernels go into one C file, compiled once. Each is run with its tasks in order, and again in
// pieces from last to first: the bits must be the same. Every buffer ends at a page that may not be
// touched, so that a read or write beyond it is a crash here and not a surprise elsewhere.
//
// Some problems have bands: operands are 0 outside theirs, and only a band of c is looked at. Each
// has a twin of the same tile that knows of no band and must give the same bits there. So have windows
// of images with a border of zeros; what is known of each border is compared with where the zeros are. And so
// have problems whose a is full of zeros: tiles that go through lists give the bits of those that leave nothing out,
// beside columns of b that are not finite, too.
#include "codegen/cpu_matmul.h"
#include "codegen/program.h"
#include "ir/builder.h"
#include "tests/support_campaign.h"
#include "tests/unit/support_instructions.h"
#include "tests/unit/support_matmul.h"
#include "tests/unit/support_matmul_problems.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// --- problems ----------------------------------------------------------------------------------
enum {
  NUM_RANDOM = 70,
  NUM_BANDED = 48,
  NUM_PANELS = 18,
  NUM_WINDOWS = 48,
  NUM_LISTED = 48,
  MAX_TESTS = 560
};

static int all_windows(test *tests, ir_arena *arena, int *failed) {
  ir_module *m = ir_module_new(arena, "windows");
  ir_builder b = ir_build_at_end(ir_func_new(m, "step"));
  int num = 0, limited = 0;
  for (int i = 0; i < test_share(NUM_WINDOWS); i++)
    num += add_windows(&tests[num], &b, &limited, failed);
  if (limited < test_share(NUM_WINDOWS) / 3) {
    printf("only %d windows look at a border\n", limited);
    ++*failed;
  }
  return num;
}

static int all_problems(test *tests, ir_arena *arena, int *failed) {
  static const int64_t named[][4] = {
      {1, 1, 1, 1},      {1, 1, 1, 9000},    {1, 1, 300, 40},   {1, 300, 1, 40},  {1, 5, 3, 20000},
      {1, 64, 10, 128},  {1, 128, 10, 64},   {1, 40, 65, 128},  {6, 64, 64, 32},  {6, 64, 32, 64},
      {1, 64, 128, 784}, {1, 256, 256, 512}, {1, 33, 47, 2049}, {1, 100, 300, 1}, {2, 90, 70, 3000},
      {1, 900, 7, 600},  {1, 700, 10, 1100}, {1, 1300, 8, 500},
  };
  int num = 0;
  for (size_t i = 0; i < sizeof named / sizeof *named; i++)
    for (int odd = 0; odd < 2; odd++, num++)
      add_problem(&tests[num], arena, named[i][0], named[i][1], named[i][2], named[i][3], odd,
                  "named");
  for (int i = 0; i < test_share(NUM_RANDOM); i++, num++)
    add_problem(&tests[num], arena, test_draw(3) ? 1 : 1 + (int64_t)test_draw(6),
                test_random_size(150), test_random_size(150), test_random_size(150), i % 2,
                "random");
  for (int i = 0; i < test_share(NUM_BANDED); i++) {
    bool heads = i % 4 == 0, longer = i % 16 == 1;
    int64_t m = heads ? 64 : test_random_size(150), n = heads ? 64 : test_random_size(150);
    num += add_banded(&tests[num], arena, heads ? 3 : 1, m, n,
                      longer ? 3000 : test_random_size(150), i % 2);
  }
  for (int i = 0; i < 4; i++, num++)
    add_problem(&tests[num], arena, 1, 75, 70, 9000, i % 2, "long k");
  num += all_windows(&tests[num], arena, failed);
  add_pieces(&tests[num++], arena); // from here on, what is drawn depends on plans
  for (int i = 0; i < NUM_PANELS; i++, num++)
    add_panels(&tests[num], arena, i % 6 ? 1 : 3, i % 3 ? 32 : 16, i % 2);
  for (int i = 0; i < 14; i++)
    add_wide_windows(&tests[num++], arena, i);
  for (int i = 0; i < 2; i++)
    add_long_windows(&tests[num++], arena, i);
  for (int i = 0; i < 6; i++)
    add_walked_b(&tests[num++], arena);
  for (int i = 0; i < 3; i++)
    num += add_walked_band(&tests[num], arena);
  for (int i = 0; i < test_share(NUM_LISTED); i++)
    num += add_listed(&tests[num], arena, i);
  for (int i = 0; i < 40; i++)
    num += add_few_bits(&tests[num], arena, i);
  for (int i = 0; i < 2; i++)
    num += add_long_listed(&tests[num], arena, i);
  num += add_far_listed(&tests[num], arena);
  BUG_IF(num > MAX_TESTS, "%d tests", num);
  return num;
}

// --- text ----------------------------------------------------------------------------------------

static void emit_finish(const mm_problem *p, void *data, const char *name, ir_buf *out) {
  test_emit_finish(p, &((const test *)data)->c, name, out);
}

static bool compile(const test *tests, int num, ir_arena *arena, const char *base) {
  ir_buf text = ir_buf_new(arena);
  ir_buf_puts(&text, instructions);
  for (int i = 0; i < num; i++) {
    if (tests[i].far) // a compiler may use more bits than it has to
      ir_buf_puts(&text, "#pragma clang optimize off\n");
    test_emit_matmul(&tests[i].p, &tests[i].plan, i, &text);
    if (tests[i].far)
      ir_buf_puts(&text, "#pragma clang optimize on\n");
  }
  const char *source = ir_format(arena, "%s.c", base);
  if (!ir_write_file(source, ir_buf_str(&text), text.len))
    return false;
  const char *cc = getenv("MLTC_CC") ? getenv("MLTC_CC") : "clang";
  bool wide = false;
  for (int i = 0; i < num; i++)
    wide |= tests[i].p.target->vector_bytes == 64;
  return system(ir_format(arena,
                          "%s -std=gnu11 %s -march=native %s -Wno-psabi -fPIC -shared -Werror "
                          "-Wall -Wno-unused-function -o %s.so %s",
                          cc, cg_effort(TEST_SANITIZED ? 0 : 1),
                          wide ? "-mprefer-vector-width=512" : "", base, source)) == 0;
}

// --- running -------------------------------------------------------------------------------------

static void put_random(const mm_operand *o, char *data, int64_t i) {
  double v = (double)test_draw(1 << 20) / (1 << 19) - 1;
  if (o->elem_bytes < 4)
    data[i * o->elem_bytes] = (char)test_draw(3); // the rest is 0
  else if (o->elem_bytes == 8)
    ((double *)(void *)data)[i] = v;
  else
    ((float *)(void *)data)[i] = (float)v;
}

// What is an operand's, and nothing between its steps.
static void put_far(const mm_operand *o, char *data) {
  for (int64_t k = 0; k < o->k.size[0]; k++)
    for (int64_t x = 0; x < o->x.size[0]; x++)
      put_random(o, data, k * o->k.stride[0] + x);
}

static char *random_operand_data(const mm_operand *o, bool far, size_t *bytes) {
  int64_t count = o->offset + test_extent(&o->batch) + test_extent(&o->x) + test_extent(&o->k) + 1;
  *bytes = (size_t)(count * o->elem_bytes);
  char *data = test_guarded(*bytes);
  if (far)
    put_far(o, data);
  for (int64_t i = 0; !far && i < count; i++)
    put_random(o, data, i);
  return data;
}

static bool has_sign(const mm_operand *a) {
  return !a->convert || !strcmp(a->convert, "bf16");
}

// All but one of t->rare elements of a become 0, or -0 where they have signs.
static void clear_most(const test *t, char *a, size_t bytes) {
  size_t elem = (size_t)t->p.a.elem_bytes;
  bool sign = has_sign(&t->p.a);
  for (size_t i = 0; t->rare && i < bytes / elem; i++, a += elem) {
    bool keep = test_draw(t->rare) == 0;
    if (!keep || t->one_bit)
      memset(a, 0, elem);
    if (!keep && sign && !t->tiny && test_draw(2))
      a[elem - 1] = (char)0x80;
    if (keep && t->one_bit && test_draw(2))
      a[0] = 1;
    else if (keep && t->one_bit)
      a[elem - 1] = (char)(sign ? 0x40 : 0x80);
  }
}

// Some of b are infinite, or no number; or one alone, in a first or last step, which is the first or last to be seen.
static void spoil_some(const test *t, char *const *args, const size_t *bytes) {
  const mm_operand *b = &t->p.b;
  if (!t->infinite || t->p.elem_bytes != 4)
    return;
  float *data = (float *)(void *)args[1];
  for (int i = 0; i < 3 && !t->one_bit; i++)
    data[test_draw(bytes[1] / 4)] = i ? -INFINITY : NAN;
  int64_t step = test_draw(2) ? t->p.k - 1 : 0, column = (int64_t)test_draw((uint64_t)t->p.n);
  data[b->offset + test_at(&b->k, step) + test_at(&b->x, column)] = INFINITY;
}

// Every product is less than any number, and below 0.
static void make_tiny(const test *t, char *const *args, const size_t *bytes) {
  for (int i = 0; t->tiny && i < 2; i++)
    for (size_t j = 0; j < bytes[i] / 4; j++) {
      float *at = (float *)(void *)args[i] + j;
      *at = i ? 1e-30f : -1e-30f;
    }
}

// Tiles that go through lists store no -0.
static int64_t count_minus_zeros(const test *t, const char *c) {
  int64_t num = 0;
  for (int64_t i = 0; t->plan.lists && t->p.plain && i < t->p.batch * t->p.m * t->p.n; i++) {
    double v = test_element(t->p.elem_bytes, c, i);
    num += v == 0 && signbit(v);
  }
  return num;
}

static double element_of(const void *data, const mm_operand *a, const char *buffer, int64_t i) {
  (void)data;
  if (a->elem_bytes != 2)
    return test_element(a->elem_bytes, buffer, i);
  return has_sign(a) ? test_bf16_element(buffer, i) : ((const uint16_t *)(const void *)buffer)[i];
}

// Element [b, m, n] against the sum of products x * y. Sanitizers looking at each took half of the test's time.
static __attribute__((no_sanitize("address", "undefined"))) bool
is_wrong(const test *t, const double *x, const double *y, double got, double *worst) {
  const int64_t num = t->p.k;
  double limit = (t->p.elem_bytes == 8 ? 1e-14 : 1e-6) * (4 + sqrt((double)num));
  double sum = 0, size = 0;
  for (int64_t k = 0; k < num; k++) {
    double product = x[k] * y[k];
    sum += product, size += fabs(product);
  }
  double want = t->p.plain ? sum : 3 + sum / 2;
  double error = isfinite(want) || !t->infinite ? fabs(got - want) / (1 + size) : isfinite(got);
  *worst = error > *worst ? error : *worst;
  return !(error <= limit);
}

// Number of elements that are off by more than rounding.
static int64_t count_wrong(const test *t, char *const *args, double *worst) {
  const mm_problem *p = &t->p;
  int64_t wrong = 0;
  for (int64_t b = 0; b < p->batch; b++) {
    double *x = test_lines(p, &p->a, args[0], b, 0, p->m, element_of, NULL);
    double *y = test_lines(p, &p->b, args[1], b, 0, p->n, element_of, NULL);
    for (int64_t i = 0; i < p->m * p->n; i++) {
      int64_t m = i / p->n, n = i % p->n;
      if (p->bands.limited && test_is_outside(p->bands.c, m, n))
        continue;
      double got = test_element(p->elem_bytes, args[2], test_output_at(&t->c, b, m, n));
      wrong += is_wrong(t, x + m * p->k, y + n * p->k, got, worst);
    }
    free(x);
    free(y);
  }
  return wrong;
}

static void describe(const test *t) {
  const mm_problem *p = &t->p;
  printf("%s %s %lldx%lldx%lldx%lld on %s: tile %dx%d, grid %lldx%lld%s, access %d %d, %lld pieces "
         "of k%s",
         t->what, p->ctype, (long long)p->batch, (long long)p->m, (long long)p->n, (long long)p->k,
         p->target->name, t->plan.mr, t->plan.nv, (long long)t->plan.group_rows,
         (long long)t->plan.group_cols, t->plan.by_columns ? " by columns" : "", t->plan.a,
         t->plan.b, (long long)t->plan.k_blocks, t->plan.split_k ? " (split)" : "");
}

// What a sum of products that are too small leaves may be -0 in the twin, where tiles without lists store it.
static void add_zero(const test *t, char *c) {
  for (int64_t i = 0; t->plan.lists && i < t->p.batch * t->p.m * t->p.n; i++)
    ((float *)(void *)c)[i] += 0.0f;
}

// The twin of `t` on the same operands.
static bool same_as_twin(const test *t, void *library, int index, char *const *args,
                         const char *first) {
  const test *twin = t + 1;
  test_phase_fn phases[CG_MAX_PHASES];
  test_find_phases(&twin->plan, library, index + 1, phases);
  size_t size = (size_t)twin->plan.workspace, c = (size_t)(t->p.batch * t->p.m * t->p.n);
  char *mine[] = {args[0], args[1], test_guarded(c * (size_t)t->p.elem_bytes), test_guarded(size)};
  test_run_phases(&twin->plan, phases, mine, 0);
  add_zero(t, mine[2]);
  int64_t different = test_count_different(&t->p, &t->c, first, mine[2]);
  test_unguard(mine[2], c * (size_t)t->p.elem_bytes), test_unguard(mine[3], size);
  if (different) {
    describe(t);
    printf(": %lld other bits than where nothing is left out\n", (long long)different);
  }
  return different == 0;
}

static void clear_lines(const test *t, char *data, size_t bytes) {
  size_t elem = (size_t)t->p.elem_bytes;
  for (size_t i = 0; t->line && i < bytes / elem; i++) {
    int64_t line = (int64_t)i / t->line % t->lines;
    if (line < t->low || line >= t->high)
      memset(data + i * elem, 0, elem);
  }
}

// Packed panels lie apart, but by no more than a part of what is in them.
static bool is_near(int64_t panel, int64_t elems) {
  return panel <= elems + elems / 16 + 48;
}

static bool lies_near(const test *t) {
  const mm_plan *g = &t->plan;
  int64_t row = g->a_pitch ? g->a_pitch : t->p.k;
  bool near = (g->a != MM_SHARED || is_near(g->a_panel, g->mr * row)) &&
              (g->b != MM_SHARED || is_near(g->b_panel, g->nr * t->p.k));
  if (!near) {
    describe(t);
    printf(": panels of %lld and %lld elements\n", (long long)g->a_panel, (long long)g->b_panel);
  }
  return near;
}

static bool check(const test *t, void *library, int index) {
  const mm_problem *p = &t->p;
  test_phase_fn phases[CG_MAX_PHASES];
  test_find_phases(&t->plan, library, index, phases);
  size_t bytes[4];
  char *args[4];
  args[0] = random_operand_data(&p->a, t->far, &bytes[0]);
  args[1] = random_operand_data(&p->b, false, &bytes[1]);
  bytes[2] = (size_t)(p->batch * p->m * p->n * p->elem_bytes);
  bytes[3] = (size_t)t->plan.workspace;
  args[2] = test_guarded(bytes[2]), args[3] = test_guarded(bytes[3]);
  test_clear_outside(p, args);
  clear_lines(t, args[0], bytes[0]);
  make_tiny(t, args, bytes);
  clear_most(t, args[0], bytes[0]);
  spoil_some(t, args, bytes);
  test_run_phases(&t->plan, phases, args, 0);
  double worst = 0;
  int64_t wrong = count_wrong(t, args, &worst) + count_minus_zeros(t, args[2]);
  char *first = malloc(bytes[2]);
  memcpy(first, args[2], bytes[2]);
  memset(args[2], 0xff, bytes[2]), memset(args[3], 0xff, bytes[3]);
  test_run_phases(&t->plan, phases, args, 3);
  bool same = test_count_different(p, &t->c, first, args[2]) == 0;
  if (wrong || !same) {
    describe(t);
    printf(": %lld wrong (worst %g)%s\n", (long long)wrong, worst,
           same ? "" : ", bits depend on the split of tasks");
  }
  if (t->has_twin)
    same &= same_as_twin(t, library, index, args, first);
  for (int i = 0; i < 4; i++)
    test_unguard(args[i], bytes[i]);
  free(first);
  return !wrong && same && lies_near(t);
}

int main(void) {
  ir_arena *arena = ir_arena_new();
  test *tests = IR_NEW_ARRAY(arena, test, MAX_TESTS);
  char dir[] = "/tmp/test_cpu_matmul.XXXXXX";
  if (!mkdtemp(dir))
    return 1;
  const char *base = ir_format(arena, "%s/kernels", dir);
  int failed = 0, num = all_problems(tests, arena, &failed),
      seen[MM_LISTED + 1][MM_SHARED + 1] = {{0}}, split = 0, pieces = 0, banded = 0, many = 0,
      walking = 0, panels = 0, columns = 0, listed = 0, lines = 0, far = 0;
  void *library = compile(tests, num, arena, base)
                      ? dlopen(ir_format(arena, "%s.so", base), RTLD_NOW | RTLD_LOCAL)
                      : NULL;
  if (!library) {
    printf("generated kernels do not compile: %s.c\n", base);
    return 1;
  }
  for (int i = 0; i < num; i++) {
    failed += !check(&tests[i], library, i);
    seen[tests[i].plan.a][tests[i].plan.b]++;
    split += tests[i].plan.split_k;
    many += tests[i].plan.split_k && tests[i].plan.row_tiles * tests[i].plan.col_tiles > 4;
    walking += tests[i].plan.walks;
    columns += tests[i].plan.by_columns;
    pieces += tests[i].plan.k_blocks > 1 && !tests[i].plan.split_k;
    panels += !strcmp(tests[i].what, "panels") && tests[i].plan.b == MM_DIRECT;
    banded += tests[i].plan.k_blocks > 1 && tests[i].p.bands.limited;
    listed += tests[i].plan.lists && tests[i].plan.a == MM_DIRECT;
    lines += tests[i].plan.list_tiles > 1;
    far += tests[i].far && tests[i].plan.a == MM_LISTED && tests[i].plan.k_blocks == 1;
  }
  bool covered = split && many && pieces && banded && walking && columns && listed && lines &&
                 far && panels > NUM_PANELS / 2;
  // every way of reading an operand must have been tried
  for (int a = 0; a <= MM_LISTED; a++)
    covered &= seen[a][MM_DIRECT] + seen[a][MM_LOCAL] + seen[a][MM_SHARED] > 0;
  for (int b = 0; b <= MM_SHARED; b++)
    covered &= seen[MM_DIRECT][b] + seen[MM_LOCAL][b] + seen[MM_SHARED][b] > 0;
  if (!covered)
    printf("the problems no longer reach every kind of plan\n");
  printf("%d problems, %d failed\n", num, failed);
  if (failed || !covered)
    return 1;
  unlink(ir_format(arena, "%s.c", base)), unlink(ir_format(arena, "%s.so", base)), rmdir(dir);
  ir_arena_free(arena);
  return 0;
}
