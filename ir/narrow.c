// narrow.c: see narrow.h.
#include "ir/narrow.h"

#include <math.h>
#include <string.h>

uint32_t ir_bits_of_float(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static float of_bits(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

double ir_narrow_tf32(double v) {
  float x = (float)v;
  if (!isfinite(x))
    return (double)x;
  return (double)of_bits((ir_bits_of_float(x) + 0x1000u) & 0xffffe000u);
}

static uint16_t to_bf16(float x) {
  uint32_t u = ir_bits_of_float(x);
  if (isnan(x))
    return (uint16_t)(u >> 16 | 0x40);
  return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

// In units of the last place, which rint rounds to even; 1024 of them are the implicit bit, and
// carry into the exponent by themselves.
static uint16_t to_f16(float x) {
  uint32_t sign = ir_bits_of_float(x) >> 16 & 0x8000u;
  double m = fabs((double)x);
  if (isnan(x))
    return (uint16_t)(sign | 0x7e00u | (ir_bits_of_float(x) >> 13 & 0x3ffu));
  if (m >= 65520)
    return (uint16_t)(sign | 0x7c00u);
  int exponent = m < 0x1p-14 ? -14 : ilogb(m);
  uint32_t units = (uint32_t)rint(ldexp(m, 10 - exponent));
  return (uint16_t)(sign | (((uint32_t)(exponent + 14) << 10) + units));
}

static double of_f16(uint16_t h) {
  int exponent = h >> 10 & 31, fraction = h & 1023;
  double m = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31)
    m = fraction ? (double)NAN : (double)INFINITY;
  return h & 0x8000 ? -m : m;
}

uint16_t ir_narrow_to_bits(ir_dtype t, double v) {
  return t == IR_BF16 ? to_bf16((float)v) : to_f16((float)v);
}

double ir_narrow_of_bits(ir_dtype t, uint16_t bits) {
  return t == IR_BF16 ? (double)of_bits((uint32_t)bits << 16) : of_f16(bits);
}

double ir_narrow(ir_dtype t, double v) {
  return ir_is_narrow(t) ? ir_narrow_of_bits(t, ir_narrow_to_bits(t, v)) : v;
}

int ir_digits(ir_dtype t) {
  static const int floats[IR_NUM_DTYPES] = {
      [IR_BF16] = 8, [IR_F16] = 11, [IR_F32] = 24, [IR_F64] = 53};
  const ir_dtype_info *info = &ir_dtypes[t];
  if (info->kind == IR_KIND_FLOAT)
    return floats[t];
  return info->kind == IR_KIND_BOOL ? 1 : info->bytes * 8 - (info->kind == IR_KIND_SINT);
}

int ir_known_digits(const ir_node *n) {
  while (ir_ops[n->op].cls == IR_CLASS_VIEW)
    n = n->in[0];
  if (n->op == IR_TF32)
    return 11;
  int own = ir_digits(n->type.dtype);
  int from = n->op == IR_CAST ? ir_digits(n->in[0]->type.dtype) : own;
  return from < own ? from : own;
}

// The 16-bit type that f32 operand `n` of a matmul is cast from, below its views; F32: none.
static ir_dtype cast_from(const ir_node *n) {
  while (ir_ops[n->op].cls == IR_CLASS_VIEW)
    n = n->in[0];
  return n->op == IR_CAST && ir_is_narrow_conversion(n) ? n->in[0]->type.dtype : IR_F32;
}

ir_dtype ir_products_from(const ir_kernel *k) {
  const ir_node *first = NULL;
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    for (int j = 0; n->op == IR_MATMUL && j < 2; j++) {
      first = first ? first : n->in[j];
      if (cast_from(n->in[j]) != cast_from(first))
        return IR_F32;
    }
  }
  return first ? cast_from(first) : IR_F32;
}

static int least(int x, int y) {
  return x < y ? x : y;
}

static size_t place_in(const ir_kernel *k, const ir_node *n) {
  size_t i = 0;
  while (i < k->nodes.num && k->nodes.at[i] != n)
    i++;
  return i;
}

static bool narrows(const ir_node *n) {
  return n->op == IR_TF32 || (n->op == IR_CAST && ir_is_narrow(n->type.dtype));
}

// Members stand operands first.
int ir_digits_inside(const ir_kernel *k, const ir_node *n) {
  enum { MOST = 53 };
  ir_arena *scratch = ir_arena_new();
  int *digits = IR_NEW_ARRAY(scratch, int, k->nodes.num + 1);
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *x = k->nodes.at[i];
    digits[i] = narrows(x) ? ir_known_digits(x) : MOST;
    for (int j = 0; j < x->num_in; j++) {
      const ir_node *in = x->in[j];
      while (ir_is_seen_through(in))
        in = in->in[0];
      size_t from = place_in(k, in);
      if (from < i)
        digits[i] = least(digits[i], digits[from]);
    }
  }
  size_t at = place_in(k, n);
  int result = at < k->nodes.num ? digits[at] : MOST;
  ir_arena_free(scratch);
  return result;
}
