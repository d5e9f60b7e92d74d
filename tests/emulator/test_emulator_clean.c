// test_emulator_clean.c: kernels without a fault give the right numbers, the same bits in every
// order and in fast launches: barriers, warps, groups of all sizes, asynchronous pipelines, many
// calls in one launch; and shared memory is poisoned before each block.
#include "tests/emulator/support_emulator.h"
#include "tests/unit/support_passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 4096, ORDERS = 10 };

typedef struct memory {
  float before[64], x[FLOATS], between[64], y[FLOATS], after[64];
} memory;
_Alignas(128) static memory all;
static float first[FLOATS];

// Runs in all orders; y of the first is what the others must give, bit by bit.
static void run(emu_machine *m, void *library, const char *name, int64_t blocks, const void *args,
                size_t bytes) {
  const emu_entry *e = emu_find(library, name);
  if (!e)
    test_fail("no kernel %s", name);
  for (unsigned order = 0; e && order <= ORDERS; order++) {
    emu_options o = {.order = order, .fast = order == ORDERS};
    emu_report r;
    memset(all.y, 0, sizeof all.y);
    if (!emu_launch(m, e, blocks, args, bytes, &o, &r))
      test_fail("%s, order %u: %s", name, order, r.text);
    if (order == 0)
      memcpy(first, all.y, sizeof first);
    else if (memcmp(first, all.y, sizeof first))
      test_fail("%s: other bits in order %u", name, order);
  }
}

static void run_plain(emu_machine *m, void *library, const char *name, int64_t blocks) {
  char *args[2] = {(char *)all.x, (char *)all.y};
  run(m, library, name, blocks, args, sizeof args);
}

static void expect(const char *what, int at, double want) {
  if (!(fabs((double)all.y[at] - want) <= 1e-5 * fabs(want)))
    test_fail("%s: y[%d] = %.9g, not %.9g", what, at, (double)all.y[at], want);
}

static void check_memory(emu_machine *m, void *library) {
  run_plain(m, library, "transpose", 1);
  for (int i = 0; i < FLOATS; i++)
    expect("transpose", i, (double)all.x[i % 64 * 64 + i / 64]);
  run_plain(m, library, "in_warp", 8);
  for (int i = 0; i < 512; i++)
    expect("in_warp", i, 16.0 * ((double)all.x[i] + (double)all.x[i ^ 7]));
}

// What nobody has written is a fault, and NaN in launches that do not look for faults.
static void check_poison(emu_machine *m, void *library) {
  char *args[2] = {(char *)all.x, (char *)all.y};
  const emu_options fast = {.fast = true};
  emu_report r;
  if (!emu_launch(m, emu_find(library, "poison"), 7, args, sizeof args, &fast, &r))
    test_fail("poison: %s", r.text);
  for (int i = 0; i < 7 * 32; i++)
    if (!isnan(all.y[i]))
      test_fail("poison: %g at %d", (double)all.y[i], i);
}

static void check_pipeline(emu_machine *m, void *library) {
  run_plain(m, library, "pipeline", 1);
  for (int t = 0; t < 64; t++) {
    double sum = 0;
    for (int i = 0; i < 15 * 4; i++) {
      int at = i / 4 * 256 + (t * 4 + i % 4 + 17) % 256;
      sum += at < 3700 ? (double)all.x[at] : 0;
    }
    expect("pipeline", t, sum);
  }
}

// Element e of group t / G: sums, extremes and where they are, in plain loops.
static void check_group(emu_machine *m, void *library, int size) {
  char name[32];
  snprintf(name, sizeof name, "group_%d", size);
  run_plain(m, library, name, 1);
  for (int t = 0; t < 1024; t++) {
    int from = t / size * size * 4, low = from, high = from;
    double sum = 0;
    for (int i = from; i < from + size * 4; i++) {
      sum += (double)all.x[i];
      low = all.x[i] < all.x[low] ? i : low;
      high = truncf(all.x[i]) > truncf(all.x[high]) ? i : high;
    }
    float most = all.x[from];
    for (int i = from; i < from + size * 4; i++)
      most = fmaxf(most, all.x[i]);
    expect(name, t, sum);
    expect(name, 1024 + t, (double)most);
    expect(name, 2048 + t, low);
    expect(name, 3072 + t, high);
  }
}

static void check_other_groups(emu_machine *m, void *library) {
  run_plain(m, library, "small_groups", 1);
  double sum = 0, all_sum = 0;
  int most = 0;
  for (int i = 0; i < 64; i++)
    sum += (double)all.x[i];
  expect("small_groups", 3, sum);
  run_plain(m, library, "wide_groups", 1);
  for (int i = 0; i < 1024; i++) {
    all_sum += (double)all.x[i];
    most = all.x[i] > all.x[most] ? i : most;
  }
  float least = INFINITY;
  for (int i = 512; i < 1024; i++)
    least = fminf(least, truncf(all.x[i]));
  expect("wide_groups", 255, all_sum);
  expect("wide_groups", 256 + 200, (double)least);
  expect("wide_groups", 512 + 31, most);
  run_plain(m, library, "nan_groups", 1);
  for (int t = 1; t < 128; t++)
    if (memcmp(&all.y[t], &all.y[t / 64 * 64], sizeof(float)))
      test_fail("nan_groups: thread %d has other bits than thread %d", t, t / 64 * 64);
}

// Groups of eight of 16 threads, the even or the odd ones. Thread 19 puts a NaN into the third row of results.
static void check_apart_groups(emu_machine *m, void *library) {
  run_plain(m, library, "apart_groups", 1);
  for (int t = 0; t < 64; t++) {
    double sum = 0, most = -INFINITY;
    for (int i = 0; i < 32; i++) {
      double x = (double)all.x[(t / 16 * 16 + t % 2 + i / 4 * 2) * 4 + i % 4];
      sum += x;
      most = fmax(most, x);
    }
    expect("apart_groups", t, sum);
    expect("apart_groups", 64 + t, fmax(most, 0.5));
    if (t / 16 != 19 / 16 || t % 2 == 0)
      expect("apart_groups", 128 + t, most);
    else if (!isnan(all.y[128 + t]))
      test_fail("apart_groups: thread %d has %g where another one has NaN", t,
                (double)all.y[128 + t]);
  }
}

// Four calls of two kernels: places are 16 floats.
static void check_joint(emu_machine *m, void *library) {
  enum { PLACE = 16 };
  struct {
    char *arena, *batch;
    int64_t first, num;
  } p = {(char *)all.x, (char *)all.y, 1, 4};
  run(m, library, "joint", 10, &p, sizeof p);
  for (int i = 0; i < 40; i++)
    expect("joint, first", i, 2.0 * (double)all.x[i]);
  for (int i = 0; i < 96; i++)
    expect("joint, second", 20 * PLACE + i, (double)all.x[4 * PLACE + (i ^ 1)]);
  for (int i = 0; i < 100; i++)
    expect("joint, third", 40 * PLACE + i, 2.0 * (double)all.x[20 * PLACE + i]);
  for (int i = 0; i < 32; i++)
    expect("joint, fourth", 60 * PLACE + i, (double)all.x[60 * PLACE + (i ^ 1)]);
  for (int i = 40; i < FLOATS; i++)
    if ((i < 20 * PLACE || i >= 20 * PLACE + 96) && (i < 40 * PLACE || i >= 40 * PLACE + 100) &&
        (i < 60 * PLACE || i >= 60 * PLACE + 32))
      expect("joint, elsewhere", i, 0);
}

int main(void) {
  ir_arena *a = ir_arena_new();
  void *library = emu_build(test_kernel_text(a, "clean.cu"), NULL);
  emu_machine *m = emu_new();
  emu_buffer(m, all.x, sizeof all.x, false);
  emu_buffer(m, all.y, sizeof all.y, true);
  uint64_t seed = 7;
  for (int i = 0; i < FLOATS; i++)
    all.x[i] = (float)test_random(&seed, 1, 1000);
  if (library) {
    check_memory(m, library);
    check_poison(m, library);
    check_pipeline(m, library);
    for (int size = 1; size <= 1024; size *= 2)
      if (size != 4 && size != 16 && size != 256)
        check_group(m, library, size);
    check_other_groups(m, library);
    check_apart_groups(m, library);
    check_joint(m, library);
  } else {
    test_fail("kernels do not compile");
  }
  emu_free(m);
  ir_arena_free(a);
  return test_report("emulator_clean");
}
