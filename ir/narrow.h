// narrow.h: numbers of fewer significant bits than f32 has: bf16 (8 bits and f32's exponents), f16
// (11 bits, IEEE's half) and tf32 (11 bits and f32's exponents, in the memory of an f32).
//
// A value is rounded to f32 first, as memory would hold it, and then narrowed: so kernels, which
// see f32, and the interpreter, which sees doubles, agree wherever they agree on the f32.
#ifndef IR_NARROW_H
#define IR_NARROW_H

#include "ir/ir.h"

// BF16, F16: to nearest, ties to even; beyond the range to infinity, below it to subnormals and 0.
// NaN stays NaN. Other types: `v` as it is.
double ir_narrow(ir_dtype t, double v);
// To nearest, ties away from 0 (cvt.rna.tf32.f32); beyond the range to infinity.
double ir_narrow_tf32(double v);

// The 32 bits in memory.
uint32_t ir_bits_of_float(float x);
// The 16 bits in memory, of BF16 and F16.
uint16_t ir_narrow_to_bits(ir_dtype t, double v);
double ir_narrow_of_bits(ir_dtype t, uint16_t bits);

// Significant bits of an element: 8, 11, 24 or 53 of floats; as many as the largest number has, of
// integers.
int ir_digits(ir_dtype t);
// What an f32 node holds by the way it is made: 24; 11 after `tf32`; those of x after `cast x`.
// Looks through views.
int ir_known_digits(const ir_node *n);
// The 16-bit type that all operands of all products of kernel `k` are cast from, those among its
// members included; F32: there is no such.
ir_dtype ir_products_from(const ir_kernel *k);
// The fewest digits to which kernel `k` narrows any value that its member `n` is computed from, n
// itself included; 53: it narrows none. Two ways to compute n may differ by one in the last of
// those digits, where rounding took neighbours apart. What the kernel reads is as narrow as it is.
int ir_digits_inside(const ir_kernel *k, const ir_node *n);

#endif
