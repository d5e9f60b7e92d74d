// test_cpu_amx.c: generated products of bf16 on a matrix unit against a naive one in double precision, over random
// sizes, layouts, bands and pieces of k: in C, as kernels are on any processor, and with the unit's instructions where
// this machine has one.
//
// All kernels go into one C file, compiled once for each. Each is run with its tasks in order, and again in pieces from
// last to first: the bits must be the same. Every buffer ends at a page that may not be touched.
#include "codegen/cpu_matmul_amx.h"
#include "codegen/program.h"
#include "tests/support_campaign.h"
#include "tests/unit/support_matmul.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_RANDOM = 120, MAX_TESTS = 140, LONG_K = 1300, OY = 7, OX = 9, NUM_CHANNELS = 5 };
static const int64_t few_channels[NUM_CHANNELS] = {1, 3, 7, 5, 33};

typedef struct test {
  mm_problem p;
  mm_plan plan;
  test_output c;
} test;

// What has been seen, each at least once.
typedef struct coverage {
  int along[2], across[2]; // of a and b
  int gathered[2][2];      // of a and b, along and across
  int slow;                // but for this: gathered, though all its lines are equally far apart
  int odd_runs[2];         // along and across
  int pairs, parts, pieces, split, bands, plain, half_rows, half_columns, blocks;
} coverage;

static cg_target target; // this machine, as if it had a unit

// --- problems ----------------------------------------------------------------------------------------------------
// One axis, or two, of which tiles do not leave the last, or do.
static mm_axes axes_of(int64_t size) {
  static const int64_t parts[] = {32, 64, 8, 16, 24, 96, 3, 7};
  int64_t inner = parts[test_draw(8)];
  if (size % inner || size == inner || test_draw(2))
    return (mm_axes){.num = 1, .size = {size}};
  return (mm_axes){.num = 2, .size = {size / inner, inner}};
}

static mm_operand random_operand(int arg, const mm_problem *p, int64_t x) {
  mm_operand o = {.arg = arg,
                  .ctype = "uint16_t",
                  .elem_bytes = 2,
                  .convert = "bf16",
                  .offset = (int64_t)test_draw(20),
                  .batch = {.num = 1, .size = {p->batch}},
                  .x = axes_of(x),
                  .k = axes_of(p->k)};
  mm_axes *rows[] = {&o.batch, &o.x, &o.k}, *columns[] = {&o.batch, &o.k, &o.x};
  test_lay_out(test_draw(2) ? rows : columns, 3, true, test_draw(2));
  o.batch = mm_simplify(&o.batch), o.x = mm_simplify(&o.x), o.k = mm_simplify(&o.k);
  return o;
}

// b as pass_pair_panels lays it out: panels of 32 columns, two steps of k side by side.
static mm_operand paired_operand(const mm_problem *p) {
  mm_operand o = {.arg = 1, .ctype = "uint16_t", .elem_bytes = 2, .convert = "bf16"};
  o.batch = mm_simplify(&(mm_axes){.num = 1, .size = {p->batch}, .stride = {p->k * p->n}});
  o.x = mm_simplify(&(mm_axes){.num = 2, .size = {p->n / 32, 32}, .stride = {p->k * 32, 2}});
  o.k = mm_simplify(&(mm_axes){.num = 2, .size = {p->k / 2, 2}, .stride = {64, 1}});
  return o;
}

// Groups of eight lines, with a gap between groups: tiles leave them, so that lines are gathered.
static mm_operand grouped_operand(int arg, const mm_problem *p, int64_t x) {
  mm_operand o = {.arg = arg, .ctype = "uint16_t", .elem_bytes = 2, .convert = "bf16"};
  int64_t line = p->k + 3, group = 8 * line + 16;
  o.batch = mm_simplify(&(mm_axes){.num = 1, .size = {p->batch}, .stride = {x / 8 * group}});
  o.x = (mm_axes){.num = 2, .size = {x / 8, 8}, .stride = {group, line}};
  o.k = (mm_axes){.num = 1, .size = {p->k}, .stride = {1}};
  return o;
}

// Windows of 3 x 3 places of an image, of few channels, or of an odd number: rows, or, for the gradients of weights, steps
// of k. Lines of a block are put together from parts of runs.
static mm_operand windows_operand(const mm_problem *p, int64_t channels, bool turned) {
  mm_operand o = {.arg = 0, .ctype = "uint16_t", .elem_bytes = 2, .convert = "bf16"};
  int64_t line = (OX + 2) * channels, image = (OY + 2) * line;
  mm_axes places = {.num = 2, .size = {OY, OX}, .stride = {line, channels}};
  mm_axes window = {.num = 2, .size = {3, 3 * channels}, .stride = {line, 1}};
  o.batch = mm_simplify(&(mm_axes){.num = 1, .size = {p->batch}, .stride = {image}});
  o.x = turned ? window : places;
  o.k = turned ? places : window;
  return o;
}

static void emit_finish(const mm_problem *p, void *data, const char *name, ir_buf *out);

static int64_t random_size(int i) {
  if (i % 7 == 3) // half a tile, alone or behind a whole one
    return i % 2 ? 16 : 48;
  return i % 3 == 0 ? 32 * (1 + (int64_t)test_draw(6)) : 1 + test_random_size(200);
}

// False: the unit is not made for it.
static bool add_problem(test *t, ir_arena *arena, int i) {
  int64_t k = i % 11 == 1 ? LONG_K + (int64_t)test_draw(40) : random_size(i);
  bool paired = i % 9 == 4, grouped = i % 13 == 6, windows = i % 10 == 7, turned = i % 20 == 7;
  int64_t channels = few_channels[i / 10 % NUM_CHANNELS];
  k = grouped ? 45 : windows ? (turned ? OY * OX : 9 * channels) : k;
  t->p = (mm_problem){.target = &target,
                      .arena = arena,
                      .ctype = "float",
                      .elem_bytes = 4,
                      .batch = i % 5 ? 1 : 3,
                      .m = grouped   ? 40
                           : windows ? (turned ? 9 * channels : OY * OX)
                                     : random_size(i / 2),
                      .n = paired    ? 64
                           : grouped ? 24
                                     : random_size(i / 3),
                      .k = paired ? k / 2 * 2 : k,
                      .workspace_arg = 3,
                      .emit_finish = emit_finish,
                      .data = t};
  mm_problem *p = &t->p;
  if (i % 4 == 2)
    p->bands = (band_product){test_random_band(p->m, p->k), test_random_band(p->k, p->n),
                              test_random_band(p->m, p->n), true};
  p->a = grouped   ? grouped_operand(0, p, p->m)
         : windows ? windows_operand(p, channels, turned)
                   : random_operand(0, p, p->m);
  p->b = paired    ? paired_operand(p)
         : grouped ? grouped_operand(1, p, p->n)
                   : random_operand(1, p, p->n);
  test_set_output(p, &t->c, test_draw(2));
  if (!mm_suits_amx(p))
    return false;
  mm_plan_amx(p, &t->plan);
  return true;
}

static void look(const test *t, coverage *c) {
  const mm_operand *o[] = {&t->p.a, &t->p.b};
  for (int i = 0; i < 2; i++) {
    bool along = o[i]->k.num && o[i]->k.stride[o[i]->k.num - 1] == 1;
    amx_side s;
    (along ? c->along : c->across)[i]++;
    bool flat = o[i]->x.num <= 1 && o[i]->k.num <= 1;
    c->slow += flat && mm_amx_find_side(o[i], &s) && s.pitch == 0;
    c->gathered[i][along] += mm_amx_find_side(o[i], &s) && s.pitch == 0;
    c->odd_runs[along] += mm_amx_find_side(o[i], &s) && s.pitch == 0 && s.run % 2 > 0;
    c->parts += o[i]->x.num > 1 || o[i]->k.num > 1;
  }
  c->pairs += t->p.b.k.num == 2 && t->p.b.k.size[1] == 2;
  c->pieces += mm_amx_sums_wait(&t->plan);
  c->split += t->plan.split_k;
  c->bands += t->p.bands.limited;
  c->plain += t->p.plain;
  c->half_rows += t->plan.tail_rows > 0 && t->plan.tail_rows <= 16;
  c->half_columns += t->plan.tail_cols > 0 && t->plan.tail_cols <= 16;
  c->blocks += t->plan.group_rows * t->plan.group_cols > 1;
}

static bool all_seen(const coverage *c) {
  return c->slow == 0 && c->gathered[0][0] && c->gathered[0][1] && c->gathered[1][0] &&
         c->gathered[1][1] && c->along[0] && c->along[1] && c->across[0] && c->across[1] &&
         c->odd_runs[0] && c->odd_runs[1] && c->pairs && c->parts && c->pieces && c->split &&
         c->bands && c->plain && c->half_rows && c->half_columns && c->blocks;
}

// The same product of numbers that are no bf16 in memory.
static bool suits_others(const test *t) {
  mm_problem floats = t->p, bytes = t->p;
  floats.b.convert = NULL, bytes.a.convert = "u8";
  return mm_suits_amx(&floats) || mm_suits_amx(&bytes);
}

// --- text ----------------------------------------------------------------------------------------------------------
static void emit_finish(const mm_problem *p, void *data, const char *name, ir_buf *out) {
  test_emit_finish(p, &((const test *)data)->c, name, out);
}

static void *compile(const test *tests, int num, ir_arena *arena, const char *base,
                     const char *flags) {
  ir_buf text = ir_buf_new(arena);
  ir_buf_puts(&text, cg_cpu_prelude(arena, &target, false));
  for (int i = 0; i < num; i++)
    test_emit_matmul(&tests[i].p, &tests[i].plan, i, &text);
  return test_library(arena, base, &text,
                      ir_format(arena, "%s %s -mprefer-vector-width=512",
                                cg_effort(TEST_SANITIZED ? 0 : 1), flags));
}

// --- running -------------------------------------------------------------------------------------------------------
static char *random_data(const mm_operand *o, size_t *bytes) {
  int64_t count = o->offset + test_extent(&o->batch) + test_extent(&o->x) + test_extent(&o->k) + 1;
  *bytes = (size_t)count * 2;
  char *data = test_guarded(*bytes);
  for (int64_t i = 0; i < count; i++) { // of 2^-7 to 2, or below 0
    uint16_t bits = (uint16_t)(0x3c00 + test_draw(0x400) + (test_draw(2) << 15));
    memcpy(data + i * 2, &bits, sizeof bits);
  }
  return data;
}

static int64_t count_wrong(const test *t, char *const *args) {
  const mm_problem *p = &t->p;
  const int64_t *ka = test_offsets(p->arena, &p->a.k, p->k),
                *kb = test_offsets(p->arena, &p->b.k, p->k);
  double limit = 1e-6 * (4 + sqrt((double)p->k));
  int64_t wrong = 0;
  for (int64_t i = 0; i < p->batch * p->m * p->n; i++) {
    int64_t b = i / (p->m * p->n), m = i / p->n % p->m, n = i % p->n;
    if (p->bands.limited && test_is_outside(p->bands.c, m, n))
      continue;
    int64_t pa = p->a.offset + test_at(&p->a.batch, b) + test_at(&p->a.x, m);
    int64_t pb = p->b.offset + test_at(&p->b.batch, b) + test_at(&p->b.x, n);
    double sum = 0, size = 0;
    for (int64_t k = 0; k < p->k; k++) {
      double product =
          test_bf16_element(args[0], pa + ka[k]) * test_bf16_element(args[1], pb + kb[k]);
      sum += product, size += fabs(product);
    }
    double want = p->plain ? sum : 3 + sum / 2;
    double got = test_element(4, args[2], test_output_at(&t->c, b, m, n));
    wrong += !(fabs(got - want) <= limit * (1 + size));
  }
  return wrong;
}

static bool check(const test *t, void *library, int index, const char *how) {
  size_t bytes[4] = {0, 0, (size_t)(t->p.batch * t->p.m * t->p.n * 4), (size_t)t->plan.workspace};
  char *args[4] = {random_data(&t->p.a, &bytes[0]), random_data(&t->p.b, &bytes[1]),
                   test_guarded(bytes[2]), test_guarded(bytes[3])};
  test_phase_fn phases[CG_MAX_PHASES];
  test_find_phases(&t->plan, library, index, phases);
  test_clear_outside(&t->p, args);
  test_run_phases(&t->plan, phases, args, 0);
  int64_t wrong = count_wrong(t, args);
  char *first = malloc(bytes[2]);
  memcpy(first, args[2], bytes[2]);
  memset(args[2], 0xff, bytes[2]), memset(args[3], 0xff, bytes[3]);
  test_run_phases(&t->plan, phases, args, 3);
  bool same = memcmp(first, args[2], bytes[2]) == 0;
  if (wrong || !same)
    printf("%s, %lldx%lldx%lldx%lld, problem %d: %lld wrong%s\n", how, (long long)t->p.batch,
           (long long)t->p.m, (long long)t->p.n, (long long)t->p.k, index, (long long)wrong,
           same ? "" : ", bits depend on the split of tasks");
  for (int i = 0; i < 4; i++)
    test_unguard(args[i], bytes[i]);
  free(first);
  return !wrong && same;
}

static int check_all(const test *tests, int num, ir_arena *arena, const char *base,
                     const char *flags, const char *how) {
  void *library = compile(tests, num, arena, base, flags);
  int failed = library ? 0 : 1;
  if (!library)
    printf("%s: generated kernels do not compile: %s.c\n", how, base);
  for (int i = 0; library && i < num; i++)
    failed += !check(&tests[i], library, i, how);
  return failed;
}

// A finish reads rows in full vectors, from any column on: so behind the last row, too, there must be one.
static bool has_room(const test *t) {
  ir_buf text = ir_buf_new(t->p.arena);
  test_emit_matmul(&t->p, &t->plan, 0, &text);
  const char *sums = strstr(ir_buf_str(&text), "  float sums["),
             *room = sums ? strchr(sums, '+') : NULL;
  return room && atoi(room + 1) == t->plan.lanes;
}

int main(void) {
  ir_arena *arena = ir_arena_new();
  test *tests = IR_NEW_ARRAY(arena, test, MAX_TESTS);
  char dir[] = "/tmp/test_cpu_amx.XXXXXX";
  if (!mkdtemp(dir))
    return 1;
  int num = 0;
  coverage seen = {0};
  target = *cg_target_find(arena, "cpu");
  bool unit = target.amx;
  target.amx = true;
  for (int i = 0; i < test_share(NUM_RANDOM); i++)
    if (add_problem(&tests[num], arena, i))
      look(&tests[num++], &seen);
  int failed = check_all(tests, num, arena, ir_format(arena, "%s/in_c", dir),
                         "-march=native -U__AMX_BF16__ -U__AMXBF16__", "in C");
  if (unit)
    failed += check_all(tests, num, arena, ir_format(arena, "%s/unit", dir), "-march=native",
                        "on the unit");
  if (!TEST_SANITIZED && !all_seen(&seen)) { // a sixth of them need not
    printf("something was not tried\n");
    failed++;
  }
  if (!has_room(&tests[0])) {
    printf("no room behind the last row of sums\n");
    failed++;
  }
  if (suits_others(&tests[0])) {
    printf("the unit multiplies bf16 only\n");
    failed++;
  }
  if (failed == 0 && system(ir_format(arena, "rm -r %s", dir)) != 0)
    failed++;
  printf("cpu_amx: %d products, in C%s; %d failed\n", num,
         unit ? " and on the unit" : " (this machine has no unit)", failed);
  ir_arena_free(arena);
  return failed != 0;
}
