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
// A product stays as it is where k, or a run of it, is odd: a last pair without its second half would be in the way of
// every step. And where lists leave out steps of one, which are more than half of what data like handwritten digits have.
// Bands end in the middle of a pair: its other half is multiplied, too, by a zero that is there.
//
// Denormals count as zeros, in operands and in sums.
#include "codegen/cpu_matmul.h"

#include <string.h>

static bool is_even_axes(const mm_axes *axes) {
  return mm_all_multiples(axes, axes->num, 2);
}

static void halve(mm_axes *axes) {
  for (int i = 0; i < axes->num; i++)
    axes->stride[i] /= 2;
}

// The distance in memory of neighbours along k; 0: they are not all equally far apart, two by two.
static int64_t distance(const mm_operand *o) {
  int last = o->k.num - 1;
  return last >= 0 && o->k.size[last] % 2 == 0 ? o->k.stride[last] : 0;
}

static void pair_up(const mm_problem *p, mm_operand *o) {
  int last = o->k.num - 1;
  int64_t apart = distance(o);
  o->k.size[last] /= 2;
  o->k.stride[last] *= 2;
  if (apart == 1 && o->offset % 2 == 0 && is_even_axes(&o->batch) && is_even_axes(&o->x) &&
      is_even_axes(&o->k)) {
    o->offset /= 2;
    halve(&o->batch);
    halve(&o->x);
    halve(&o->k);
    o->ctype = p->ctype;
    o->elem_bytes = p->elem_bytes;
    o->convert = NULL;
  } else {
    o->apart = apart;
    o->convert = "pair";
  }
  o->k = mm_simplify(&o->k);
}

static bool is_bf16(const mm_operand *o) {
  return o->convert && !strcmp(o->convert, "bf16");
}

int64_t mm_numbers_of_k(const mm_problem *p) {
  return p->pairs ? 2 * p->k : p->k;
}

void mm_consider_pairs(mm_problem *p) {
  bool wanted = p->target->dots_bf16 && is_bf16(&p->a) && is_bf16(&p->b) &&
                !(p->zeros == ZEROS_DATA && mm_may_list(p));
  bool even =
      distance(&p->a) > 0 && distance(&p->b) > 0 && (!p->border.limited || p->border.run % 2 == 0);
  p->pairs = wanted && even;
  if (!p->pairs)
    return;
  pair_up(p, &p->a);
  pair_up(p, &p->b);
  p->k /= 2;
  p->border.run /= 2;
  p->zeros = ZEROS_NONE; // rows of zeros: lists of them save less than half
}
