// test_cuda_matmul_plan.c: what holds for every plan of a CUDA product, whatever the cost model
// says: steps and pieces cover k once, tiles cover c once, shared memory and threads fit the chips,
// reads of shared memory have no bank conflicts; and a few choices that anybody would make.
#include "codegen/cuda_matmul.h"
#include "codegen/program.h"
#include "tests/unit/support_matmul.h"
#include "tests/unit/support_passes.h"

#include <string.h>

enum { NUM_RANDOM = 150 };

static const char *name_of(const cmm_problem *p, const cmm_plan *g) {
  return ir_format(p->p.arena,
                   "%lld x %lld x %lld x %lld (%s, math %d): %d x %d x %d, %d x %d, %lld pieces",
                   (long long)p->p.batch, (long long)p->p.m, (long long)p->p.n, (long long)p->p.k,
                   p->p.ctype, p->math, g->bm, g->bn, g->bk, g->tm, g->tv, (long long)g->pieces);
}

static const mm_math maths[] = {MM_F32, MM_TF32, MM_F32, MM_BF16};
static const int bytes_of[] = {4, 4, 8, 2}; // of an operand's element

static mm_operand operand(int64_t batch, int64_t x, int64_t k, int kind, bool along_x) {
  return (mm_operand){.elem_bytes = bytes_of[kind],
                      .batch = {batch > 1, {batch}, {x * k}},
                      .x = {1, {x}, {along_x ? 1 : k}},
                      .k = {1, {k}, {along_x ? x : 1}}};
}

static cmm_plan plan_of(ir_arena *a, const cg_target *target, const int64_t *size, int layout,
                        int kind, cmm_problem *p) {
  *p = (cmm_problem){.p = {.target = target,
                           .arena = a,
                           .ctype = kind == 2 ? "double" : "float",
                           .elem_bytes = kind == 2 ? 8 : 4,
                           .batch = size[0],
                           .m = size[1],
                           .n = size[2],
                           .k = size[3],
                           .a = operand(size[0], size[1], size[3], kind, layout & 1),
                           .b = operand(size[0], size[2], size[3], kind, layout & 2)},
                     .math = maths[kind],
                     .may_spread = true};
  cmm_plan g;
  cmm_make_plan(p, &g);
  return g;
}

// Covers [0, size) with no tile to spare.
static bool covers(int64_t tiles, int64_t tile, int64_t size) {
  return tiles * tile >= size && (tiles - 1) * tile < size;
}

// What stands in shared memory begins where a place may, and ends before the next begins. (In the emulator
// each array has memory of its own.)
static bool arrays_fit(const cmm_problem *p, const cmm_plan *g) {
  int64_t a = (int64_t)g->a.elems * g->stages * cmm_element_bytes(p);
  int64_t b = (int64_t)g->b.elems * g->stages * cmm_element_bytes(p);
  int64_t rows = g->spread ? 4 * (int64_t)cmm_rows_elems(g) : 0;
  return g->b_shared % 128 == 0 && g->rows_shared % 128 == 0 && a <= g->b_shared &&
         g->b_shared + b <= g->rows_shared && g->rows_shared + rows <= g->shared;
}

static int64_t turned_bytes(const cmm_problem *p, const cmm_plan *g) {
  return ((g->turned[0] ? p->p.m : 0) + (g->turned[1] ? p->p.n : 0)) * p->p.k * p->p.elem_bytes;
}

static void check_shape(const cmm_problem *p, const cmm_plan *g) {
  const cg_cuda *chip = p->p.target->cuda;
  int64_t tiles = p->p.batch * g->row_tiles * g->col_tiles;
  bool ok = covers(g->row_tiles, g->bm, p->p.m) && covers(g->col_tiles, g->bn, p->p.n) &&
            covers(g->k_tiles, g->bk, p->p.k) && covers(g->pieces, g->piece_tiles, g->k_tiles);
  ok &= g->threads == 32 * g->warps_m * g->warps_n && g->bm == 8 * g->tm * g->warps_m &&
        g->bn == 16 * g->tv * g->warps_n;
  ok &= g->shared <= chip->shared_asked_for && g->registers <= chip->registers_per_thread;
  ok &= arrays_fit(p, g) && !(g->spread && g->pieces > 1);
  int first = cmm_product_phase(g);
  ok &= g->tasks[first] == tiles * g->pieces && g->num_phases == first + 1 + (g->pieces > 1);
  int64_t sums = g->pieces == 1 ? 0 : tiles * g->pieces * g->bm * g->bn * p->p.elem_bytes;
  ok &= g->pieces == 1 || g->tasks[first + 1] * g->threads * 4 == tiles * g->bm * g->bn;
  ok &= first ? g->turned_at >= sums && g->workspace >= g->turned_at + turned_bytes(p, g)
              : g->workspace == sums;
  if (!ok)
    test_fail("%s: does not fit together", name_of(p, g));
}

// --- banks ----------------------------------------------------------------------------------
// Shared memory has 8 units of 16 bytes side by side: what threads read at once must be in
// different ones. The threads of a quarter of a warp, or the 8 rows of a matrix, begin at these
// elements.
static bool in_different_units(const int *element, int num, int bytes) {
  int seen = 0, unit = 16 / bytes;
  for (int i = 0; i < num; seen |= 1 << element[i] / unit % 8, i++)
    if (seen >> element[i] / unit % 8 & 1)
      return false;
  return true;
}

// A warp copies eight k of four rows, 4 bytes each: 32 banks.
static bool turns_without_conflict(const cmm_side *s) {
  uint32_t seen = 0;
  for (int i = 0; s->turned && i < 32; i++)
    seen |= 1u << (i % 8 * s->pitch + i / 8) % 32;
  return !s->turned || seen == UINT32_MAX;
}

static void check_banks(const cmm_problem *p, const cmm_plan *g) {
  const cmm_side *a = &g->a, *b = &g->b;
  int rows[8], even[8], columns[4], groups[8], a_steps[8], b_steps[8];
  int bytes = cmm_element_bytes(p);
  for (int i = 0; i < 8; i++) {
    rows[i] = i * a->pitch;
    even[i] = 2 * i * b->pitch + 2 * i / 8 * b->skew;
    a_steps[i] = i * a->pitch, b_steps[i] = i * b->pitch; // of k, for ldmatrix.trans
    groups[i] = i % 4 * a->pitch + i / 4 * 4;
    columns[i % 4] = i % 4 * 4 * b->pitch + i % 4 * 4 / 8 * b->skew;
  }
  bool ok = true;
  if (a->layout == CMM_XK)
    ok &= in_different_units(rows, 8, bytes);
  else if (g->math == MM_TF32)
    ok &= in_different_units(groups, 8, bytes);
  else if (g->math == MM_BF16)
    ok &= in_different_units(a_steps, 8, bytes);
  if (b->layout == CMM_XK)
    ok &= g->math == MM_F32 ? in_different_units(columns, 4, bytes)
                            : in_different_units(even, 8, bytes);
  else if (g->math == MM_BF16)
    ok &= in_different_units(b_steps, 8, bytes);
  ok &= a->turned || b->turned ? turns_without_conflict(a) && turns_without_conflict(b) : true;
  if (!ok)
    test_fail("%s: bank conflicts", name_of(p, g));
}

// --- choices --------------------------------------------------------------------------------
static void check_choices(ir_arena *a, const cg_target *target) {
  static const int64_t large[] = {1, 4096, 4096, 4096}, deep[] = {1, 64, 64, 100000};
  static const int64_t flat[] = {1, 8192, 8192, 32}, row[] = {1, 1, 4096, 4096};
  static const int64_t wide[] = {1, 8192, 768, 2304};
  cmm_problem p;
  for (int kind = 0; kind < 4; kind += 1 + (kind == 1)) {
    cmm_plan g = plan_of(a, target, large, 0, kind, &p);
    if (g.pieces > 1 || g.bm * g.bn < 64 * 64)
      test_fail("%s: a large product has large tiles, and k in one piece", name_of(&p, &g));
    g = plan_of(a, target, deep, 3, kind, &p);
    if (g.pieces < 8)
      test_fail("%s: one tile with a long k would leave the chip empty", name_of(&p, &g));
    g = plan_of(a, target, flat, 0, kind, &p);
    if (g.pieces > 1)
      test_fail("%s: there are tiles enough", name_of(&p, &g));
    g = plan_of(a, target, row, 0, kind, &p);
    if (g.bm > 16)
      test_fail("%s: most rows of the tile would be for nothing", name_of(&p, &g));
    g = plan_of(a, target, wide, 0, kind, &p);
    if (kind == 0 ? !g.turned[1] : g.turned[0] || g.turned[1])
      test_fail("%s: the small operand along k is turned, of FMAs in f32 only", name_of(&p, &g));
  }
}

// Copies of 16 bytes only where each begins at a multiple.
static void check_units(ir_arena *a, const cg_target *t) {
  for (int kind = 0; kind < 4; kind++)
    for (int odd = 0; odd < 4; odd++) {
      cmm_problem p;
      cmm_plan g = plan_of(a, t, (const int64_t[]){3, 64, 64, 64}, 0, kind, &p);
      p.p.a.offset += odd == 1;
      p.p.a.batch.stride[0] += odd == 2;
      p.p.a.x.stride[0] += odd == 3;
      p.want_turned = 1; // as it lies
      cmm_make_plan(&p, &g);
      if ((g.a.vec == 1) != (odd > 0))
        test_fail("%s: copies of %d elements, odd %d", name_of(&p, &g), g.a.vec, odd);
    }
}

int main(void) {
  ir_arena *a = ir_arena_new();
  static const char *const targets[] = {"cuda:sm_80", "cuda:sm_86", "cuda:sm_90a",
                                        "cuda:sm_80,sm_90a"};
  for (int i = 0; i < NUM_RANDOM; i++) {
    const cg_target *target = cg_target_find(a, targets[test_draw(4)]);
    int64_t size[4] = {test_draw(3) ? 1 : 1 + (int64_t)test_draw(64)};
    for (int j = 1; j < 4; j++)
      size[j] = 1 + (int64_t)test_draw(1u << test_draw(13));
    cmm_problem p;
    cmm_plan g = plan_of(a, target, size, (int)test_draw(4), (int)test_draw(4), &p);
    check_shape(&p, &g);
    if (p.p.elem_bytes == 4)
      check_banks(&p, &g);
  }
  check_choices(a, cg_target_find(a, "cuda:sm_80,sm_90a"));
  check_units(a, cg_target_find(a, "cuda"));
  ir_arena_free(a);
  return test_report("cuda_matmul_plan");
}
