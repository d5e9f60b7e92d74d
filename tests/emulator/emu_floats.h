// emu_floats.h: small floats: their bits, and what the conversions of the PTX ISA make of a float (C and C++).
#ifndef TESTS_EMU_FLOATS_H
#define TESTS_EMU_FLOATS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define EMU_FLOAT static inline __attribute__((always_inline, unused))

EMU_FLOAT uint32_t emu_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}
EMU_FLOAT float emu_float(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}
// cvt.rna.tf32.f32: to nearest, ties away from zero. Infinities stay.
EMU_FLOAT uint32_t emu_tf32(float x) {
  uint32_t u = emu_bits(x);
  if (x != x)
    return 0x7fffffff;
  return (u & 0x7fffffff) == 0x7f800000 ? u : (u + 0x1000) & 0xffffe000;
}
// cvt.rn.bf16.f32
EMU_FLOAT uint16_t emu_bf16(float x) {
  uint32_t u = emu_bits(x);
  if (x != x)
    return 0x7fff;
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
// cvt.rn.f16.f32: the magnitude in units of its last place, rounded to even by rintf.
EMU_FLOAT uint16_t emu_f16(float x) {
  const uint16_t sign = (uint16_t)(emu_bits(x) >> 16 & 0x8000);
  const float m = fabsf(x);
  if (x != x)
    return 0x7fff;
  if (m >= 65520.0f)
    return (uint16_t)(sign | 0x7c00);
  int exponent = m < 0x1p-14f ? -14 : ilogbf(m);
  // 1024 units for the implicit bit are what carries into the exponent field
  const int units = (int)rintf(ldexpf(m, 10 - exponent));
  return (uint16_t)(sign | (((exponent + 14) << 10) + units));
}
EMU_FLOAT float emu_from_f16(uint16_t x) {
  const int exponent = x >> 10 & 31, fraction = x & 1023;
  float m = exponent == 0 ? ldexpf((float)fraction, -24)
                          : ldexpf((float)(1024 + fraction), exponent - 25);
  if (exponent == 31)
    m = fraction ? emu_float(0x7fc00000) : emu_float(0x7f800000);
  return x & 0x8000 ? -m : m;
}
EMU_FLOAT float emu_from_bf16(uint16_t x) {
  return emu_float((uint32_t)x << 16);
}

#endif
