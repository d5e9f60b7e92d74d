// cpu_matmul_pairs.c: products of bf16 on processors that multiply pairs of them.
//
//   before   c[m,n] += a[m,k] * b[k,n]        k < 512, elements bf16, widened to f32 as they are packed
//   after    c[m,n] += a[m,j] . b[j,n]        j < 256, elements of 32 bits: those of k = 2j and 2j + 1
//
// An instruction (VDPBF16PS of AVX512-BF16) adds both products of two pairs to an f32, in the time of one FMA. To all
// that plans and prints a product a pair is an element like an f32, of which there are half as many along k; only the
// line that multiplies knows better (cpu_matmul_tile.c), and what packs: neighbours along k that lie side by side are
// pairs as they lie, and need no copy; others are put together (k_take_pair of the prelude).
//
// The other design, panels of bf16 that tiles widen, would halve bytes but not instructions.
//
// Where k is odd, or each of its runs is (a row of a window of 5 x 5), the last pair of a run has a zero for its second
// half, on both sides. Bands end in the middle of a pair: its other half is multiplied, too, by a zero that is there.
// A product stays as it is where lists leave out steps of one, which are more than half of what data like handwritten
// digits have.
//
// Denormals count as zeros, in operands and in sums.
#include "codegen/cpu_matmul.h"

#include <string.h>

enum { LEAST_RUN = 3 }; // of an odd length: half of the pairs of shorter ones would be empty

static bool is_even(const mm_axes *axes) {
  return mm_all_multiples(axes, axes->num, 2);
}

static void halve(mm_axes *axes) {
  for (int i = 0; i < axes->num; i++)
    axes->stride[i] /= 2;
}

// Of its last part, along which neighbours are equally far apart. 0: there is none, or all of it is one number, again
// and again, which has no other half.
static int64_t run_of(const mm_operand *o) {
  int last = o->k.num - 1;
  return last >= 0 && o->k.stride[last] > 0 ? o->k.size[last] : 0;
}

static bool is_multiple(int64_t x, int64_t of) {
  return of > 0 && x % of == 0;
}

// The numbers along k that are paired among themselves; 2: wherever that is. 0: there are none for both operands.
static int64_t common_run(const mm_operand *a, const mm_operand *b) {
  int64_t of_a = run_of(a), of_b = run_of(b), run = of_a < of_b ? of_a : of_b;
  if (is_multiple(of_a, 2) && is_multiple(of_b, 2) && run > 0)
    return 2;
  bool fits = run >= LEAST_RUN && is_multiple(of_a, run) && is_multiple(of_b, run);
  return fits ? run : 0;
}

// k in runs of this length, even where they follow each other without a gap.
static void split_runs(mm_axes *k, int64_t run) {
  int last = k->num - 1;
  if (k->size[last] == run)
    return;
  k->size[last + 1] = run;
  k->stride[last + 1] = k->stride[last];
  k->size[last] /= run;
  k->stride[last] *= run;
  k->num++;
}

// Pairs as they lie are elements of 32 bits.
static bool lies_in_pairs(const mm_operand *o) {
  return o->apart == 1 && !o->odd && o->offset % 2 == 0 && is_even(&o->batch) && is_even(&o->x) &&
         is_even(&o->k);
}

static void take_in_place(const mm_problem *p, mm_operand *o) {
  o->offset /= 2;
  halve(&o->batch);
  halve(&o->x);
  halve(&o->k);
  o->ctype = p->ctype;
  o->elem_bytes = p->elem_bytes;
  o->convert = NULL;
  o->apart = 0;
  o->k = mm_simplify(&o->k); // of others the last part is where pairs are, be it one
}

static void pair_up(const mm_problem *p, mm_operand *o, int64_t run) {
  if (run > 2)
    split_runs(&o->k, run);
  int last = o->k.num - 1;
  o->apart = o->k.stride[last];
  o->odd = run % 2;
  o->k.size[last] = (o->k.size[last] + 1) / 2;
  o->k.stride[last] *= 2;
  o->convert = "pair";
  if (lies_in_pairs(o))
    take_in_place(p, o);
}

static bool is_bf16(const mm_operand *o) {
  return o->convert && !strcmp(o->convert, "bf16");
}

int64_t mm_numbers_of_k(const mm_problem *p) {
  return p->pairs ? 2 * p->k - p->a.odd : p->k;
}

// Steps of k that are whole runs, in steps of pairs.
static int64_t in_pairs(int64_t steps, int64_t run) {
  return steps / run * ((run + 1) / 2);
}

// Bands count numbers of one run; the lines of a border are whole runs.
static bool may_be_pairs(const mm_problem *p, int64_t run) {
  return run > 0 && p->a.k.num < DOM_MAX_AXES && p->b.k.num < DOM_MAX_AXES &&
         (!p->bands.limited || run == 2 || run == p->k) &&
         (!p->border.limited || is_multiple(p->border.run, run));
}

void mm_consider_pairs(mm_problem *p) {
  int64_t run = common_run(&p->a, &p->b);
  p->pairs = p->target->dots_bf16 && is_bf16(&p->a) && is_bf16(&p->b) &&
             !(p->zeros == ZEROS_DATA && mm_may_list(p)) && may_be_pairs(p, run);
  if (!p->pairs)
    return;
  pair_up(p, &p->a, run);
  pair_up(p, &p->b, run);
  p->k = in_pairs(p->k, run);
  p->border.run = in_pairs(p->border.run, run);
  p->zeros = ZEROS_NONE; // rows of zeros: lists of them save less than half
}
