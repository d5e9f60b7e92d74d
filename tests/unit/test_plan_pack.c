// test_plan_pack.c: packings never overlap, are the same every time, are as low as possible where that
// is known, and keep to their limits. Public instances are packed when they are there.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "passes/plan.h"
#include "tests/support_campaign.h"
#include "tests/support_check.h"

typedef IR_VEC(plan_interval) intervals;

static uint32_t next(uint32_t *s) { // xorshift
  *s ^= *s << 13;
  *s ^= *s >> 17;
  *s ^= *s << 5;
  return *s;
}

// Unrelated lives of at most `longest`, and sizes.
static intervals random_intervals(ir_arena *a, uint32_t seed, int n, int longest) {
  intervals v = {0};
  for (int i = 0; i < n; i++) {
    int64_t lower = next(&seed) % (uint32_t)(n + 1);
    plan_interval x = {.lower = lower,
                       .upper = lower + 1 + next(&seed) % (uint32_t)longest,
                       .size = 64 * (1 + next(&seed) % 300)};
    IR_PUSH(a, v, x);
  }
  return v;
}

// Slow and obvious: every pair.
static size_t overlaps(const intervals *v) {
  size_t bad = 0;
  for (size_t i = 0; i < v->num; i++)
    for (size_t j = 0; j < i; j++) {
      const plan_interval *x = &v->at[i], *y = &v->at[j];
      bad += x->lower < y->upper && y->lower < x->upper && x->offset < y->offset + y->size &&
             y->offset < x->offset + x->size;
    }
  return bad;
}

// The checker must see what is wrong.
static void test_checker(void) {
  ir_arena *a = ir_arena_new();
  plan_interval apart[] = {{0, 2, 64, 0}, {1, 3, 64, 64}, {2, 4, 64, 0}};
  plan_interval clash[] = {{0, 2, 64, 0}, {1, 3, 64, 32}, {2, 4, 64, 128}};
  CHECK(plan_pack_check(a, apart, 3) == 0, "false alarm");
  CHECK(plan_pack_check(a, clash, 3) == 1, "an overlap goes unseen");
  CHECK(plan_pack_bound(a, apart, 3) == 128, "bound");
  CHECK(plan_pack(apart, 0) == 0, "nothing needs no memory");
  ir_arena_free(a);
}

// --- many small sets -----------------------------------------------------------------------------
static int64_t highest_end(const intervals *v) {
  int64_t height = 0;
  for (size_t i = 0; i < v->num; i++)
    if (v->at[i].offset + v->at[i].size > height)
      height = v->at[i].offset + v->at[i].size;
  return height;
}

static size_t unaligned(const intervals *v) {
  size_t num = 0;
  for (size_t i = 0; i < v->num; i++)
    num += v->at[i].offset < 0 || v->at[i].offset % 64 != 0;
  return num;
}

static plan_packing test_random_set(uint32_t seed, int n, int longest, int64_t steps) {
  ir_arena *a = ir_arena_new();
  intervals v = random_intervals(a, seed, n, longest), w = random_intervals(a, seed, n, longest);
  plan_pack_limits limits = {.steps = steps};
  plan_packing r = plan_pack_within(v.at, v.num, &limits);
  CHECK(overlaps(&v) == 0, "seed %u: %zu pairs overlap", seed, overlaps(&v));
  CHECK(plan_pack_check(a, v.at, v.num) == 0, "seed %u: the checker sees overlaps", seed);
  CHECK(unaligned(&v) == 0, "seed %u: %zu offsets are not multiples of 64", seed, unaligned(&v));
  CHECK(r.height == highest_end(&v), "seed %u: the height is another", seed);
  CHECK(r.bound == plan_pack_bound(a, v.at, v.num), "seed %u: the bound is another", seed);
  CHECK(r.proved >= r.bound && r.height >= r.proved, "seed %u: bounds in disorder", seed);
  plan_pack_within(w.at, w.num, &limits);
  CHECK(memcmp(v.at, w.at, sizeof *v.at * v.num) == 0, "seed %u: two runs differ", seed);
  limits.capacity = r.bound + 33;
  plan_pack_within(w.at, w.num, &limits);
  CHECK(unaligned(&w) == 0, "seed %u: offsets depend on an odd capacity", seed);
  ir_arena_free(a);
  return r;
}

static void test_random(void) {
  for (uint32_t seed = 1; seed <= (uint32_t)test_part(400); seed++)
    test_random_set(seed * 7919, 1 + (int)(seed % 120), 1 + (int)(seed % 53), 300000);
}

// Too many for the exact search at once: stretches are packed again. What was reached when this was
// written, rounded up.
static void test_large(void) {
  static const struct {
    int n, longest;
    double ratio;
  } all[] = {{4000, 40, 1.0}, {6000, 40, 1.0}, {4000, 400, 1.0}};
  for (int i = 0; i < test_part((int)(sizeof all / sizeof *all)); i++) {
    plan_packing r = test_random_set(11, all[i].n, all[i].longest, 120000000);
    double ratio = (double)r.height / (double)r.bound;
    printf("%d buffers, up to %d long: height / bound = %.4f, %lld steps\n", all[i].n,
           all[i].longest, ratio, (long long)r.steps);
    CHECK(ratio <= all[i].ratio, "%d buffers: %.4f", all[i].n, ratio);
  }
}

// --- the optimum of tiny sets --------------------------------------------------------------------
enum { SECTIONS = 9, LIVE = 10 };

// Is there a packing of this height? Tries every offset; a bit of taken[t] is a byte at time t.
static bool fits(const intervals *v, size_t i, int64_t height, uint32_t *taken) {
  if (i == v->num)
    return true;
  const plan_interval *x = &v->at[i];
  for (int64_t offset = 0; offset + x->size <= height; offset++) {
    uint32_t bytes = ((1u << x->size) - 1) << offset, clash = 0;
    for (int64_t t = x->lower; t < x->upper; t++)
      clash |= taken[t] & bytes;
    if (clash)
      continue;
    for (int64_t t = x->lower; t < x->upper; t++)
      taken[t] |= bytes;
    bool ok = fits(v, i + 1, height, taken);
    for (int64_t t = x->lower; t < x->upper; t++)
      taken[t] &= ~bytes;
    if (ok)
      return true;
  }
  return false;
}

// Live bytes are equal at all times: there is no room for holes, and some sets need some.
static intervals tight_intervals(ir_arena *a, uint32_t seed) {
  intervals v = {0};
  uint32_t room[SECTIONS];
  for (int t = 0; t < SECTIONS; t++)
    room[t] = LIVE;
  for (int t = 0; t < SECTIONS;) {
    uint32_t size = 1 + next(&seed) % LIVE * 2 / 3;
    int end = t + 1, last = t + 1 + (int)(next(&seed) % 4);
    size = size > room[t] ? room[t] : size;
    while (end < SECTIONS && end < last && room[end] >= size)
      end++;
    plan_interval x = {.lower = t, .upper = end, .size = size};
    IR_PUSH(a, v, x);
    for (int i = t; i < end; i++)
      room[i] -= size;
    while (t < SECTIONS && room[t] == 0)
      t++;
  }
  return v;
}

static void test_tiny_set(uint32_t seed, int *above_bound) {
  ir_arena *a = ir_arena_new();
  intervals v = tight_intervals(a, seed * 2654435761u);
  plan_packing r = plan_pack_within(v.at, v.num, &(plan_pack_limits){0});
  CHECK(overlaps(&v) == 0, "seed %u: overlap", seed);
  uint32_t taken[SECTIONS] = {0};
  CHECK(r.height == LIVE || !fits(&v, 0, r.height - 1, taken), "seed %u: %lld is too high", seed,
        (long long)r.height);
  CHECK(r.proved == r.height, "seed %u: %lld is the optimum, and proved is %lld", seed,
        (long long)r.height, (long long)r.proved);
  *above_bound += r.height > LIVE;
  ir_arena_free(a);
}

static void test_tiny(void) {
  int above_bound = 0;
  for (uint32_t seed = 1; seed <= 3000; seed++)
    test_tiny_set(seed, &above_bound);
  printf("tiny sets: %d optima above the bound\n", above_bound);
  CHECK(above_bound >= 10, "only %d tiny sets have an optimum above the bound", above_bound);
}

// --- limits --------------------------------------------------------------------------------------
static void test_capacity(void) {
  ir_arena *a = ir_arena_new();
  intervals v = random_intervals(a, 99, 300, 60);
  plan_packing full = plan_pack_within(v.at, v.num, &(plan_pack_limits){0});
  plan_pack_limits roomy = {.capacity = 2 * full.bound};
  plan_packing r = plan_pack_within(v.at, v.num, &roomy);
  CHECK(r.height <= roomy.capacity, "above a large capacity");
  CHECK(r.steps < full.steps, "a capacity that is easy took %lld steps, the bound %lld",
        (long long)r.steps, (long long)full.steps);
  plan_pack_limits tight = {.capacity = 64};
  CHECK(plan_pack_within(v.at, v.num, &tight).height == full.height,
        "a capacity out of reach matters");
  ir_arena_free(a);
}

// A set whose bound takes more steps than a compile spends, unless somebody needs it to be so low.
static void test_enough(void) {
  ir_arena *a = ir_arena_new();
  intervals v = random_intervals(a, 14 * 7919, 500, 120);
  int64_t bound = plan_pack_bound(a, v.at, v.num), high = plan_pack(v.at, v.num);
  CHECK(high > bound, "the set is too easy: %lld", (long long)high);
  CHECK(plan_pack_for(v.at, v.num, bound - 1) == high, "what cannot be reached is tried for");
  CHECK(plan_pack_for(v.at, v.num, bound) == bound && overlaps(&v) == 0, "the bound is missed");
  ir_arena_free(a);
}

static bool at_once(void *asked) {
  ++*(int *)asked;
  return true;
}

static void test_limits(void) {
  ir_arena *a = ir_arena_new();
  intervals v = random_intervals(a, 5, 3000, 1500);
  plan_pack_limits few = {.steps = 1};
  plan_packing r = plan_pack_within(v.at, v.num, &few);
  CHECK(overlaps(&v) == 0 && r.height >= r.bound, "without steps there is no packing");
  CHECK(r.steps < 3000000, "one step became %lld", (long long)r.steps);
  int asked = 0;
  plan_pack_limits late = {.steps = INT64_MAX, .is_late = at_once, .clock = &asked};
  r = plan_pack_within(v.at, v.num, &late);
  CHECK(asked > 0 && overlaps(&v) == 0 && r.steps < 3000000, "the clock does not end the search");
  ir_arena_free(a);
}

// Sizes of up to 2^60 bytes have no exact heights in the search; nothing may overflow.
static void test_extremes(void) {
  ir_arena *a = ir_arena_new();
  uint32_t s = 3;
  intervals v = {0};
  for (int i = 0; i < 40; i++) {
    int64_t lower = (int64_t)(next(&s) % 9) - 4;
    plan_interval x = {.lower = lower * (INT64_MAX / 8),
                       .upper = (lower + 1 + next(&s) % 3) * (INT64_MAX / 8),
                       .size = ((int64_t)1 << 55) + next(&s) % 1000};
    x.size = i % 7 ? x.size : 0;
    IR_PUSH(a, v, x);
  }
  plan_packing r = plan_pack_within(v.at, v.num, &(plan_pack_limits){.steps = 5000000});
  CHECK(overlaps(&v) == 0, "overlaps of large sizes");
  CHECK(r.height >= r.bound && r.proved == r.bound, "bounds of large sizes");
  ir_arena_free(a);
}

// --- public instances ----------------------------------------------------------------------------
static intervals read_instance(ir_arena *a, char *text) {
  intervals v = {0};
  for (char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
    long long id, lower, upper, size;
    if (sscanf(line + 1, "%lld,%lld,%lld,%lld", &id, &lower, &upper, &size) == 4) {
      plan_interval x = {.lower = lower, .upper = upper, .size = size};
      IR_PUSH(a, v, x);
    }
  }
  return v;
}

static void test_instance(const char *folder, const char *name) {
  ir_arena *a = ir_arena_new();
  size_t len;
  const char *path = ir_format(a, "%s/%s.csv", folder, name);
  char *text = ir_read_file(a, path, &len);
  if (!text) {
    printf("skipped: %s is not there\n", path);
    ir_arena_free(a);
    return;
  }
  intervals v = read_instance(a, text);
  clock_t start = clock();
  plan_packing r = plan_pack_within(v.at, v.num, &(plan_pack_limits){.steps = 1000000000});
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  printf("%-10s %5zu buffers, height / bound = %.4f, %.3f s, %lld steps\n", name, v.num,
         (double)r.height / (double)r.bound, seconds, (long long)r.steps);
  CHECK(v.num > 100 && overlaps(&v) == 0, "%s: overlap", name);
  CHECK(r.height == r.bound, "%s: %lld above the bound", name, (long long)(r.height - r.bound));
  ir_arena_free(a);
}

static void test_instances(void) {
  static const char *const names[] = {"A.1048576", "C.1048576", "E.1048576", "F.1048576",
                                      "G_1",       "H.1048576", "resnet50"};
  const char *shared = getenv("MLTC_SHARED");
  ir_arena *a = ir_arena_new();
  const char *folder = ir_format(a, "%s/bench/dsa", shared ? shared : "../shared");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    test_instance(folder, names[i]);
  ir_arena_free(a);
}

int main(void) {
  test_checker();
  test_random();
  if (!TEST_SANITIZED)
    test_large();
  test_tiny();
  test_capacity();
  test_enough();
  test_limits();
  test_extremes();
  if (!TEST_SANITIZED)
    test_instances();
  printf("%d failures\n", failures);
  return failures != 0;
}
