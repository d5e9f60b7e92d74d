// number_io.c: see number_io.h.
#include "runtime/number_io.h"

#include <math.h>
#include <string.h>

// --- bf16 and f16: to nearest, ties to even ------------------------------------------------------
// The bits of an f32 that may be rounded once more: cut off, with the last bit set where something was. To nearest,
// a number just above the middle of two bf16 could become that middle, and go the wrong way.
static uint32_t odd_bits(double x) {
  float near = (float)x;
  uint32_t u;
  memcpy(&u, &near, sizeof u);
  if (isnan(x) || (double)near == x)
    return u;
  return (fabs((double)near) > fabs(x) ? u - 1 : u) | 1;
}

static uint16_t to_bf16(double x) {
  uint32_t u = odd_bits(x);
  return (uint16_t)(isnan(x) ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
}

// In units of the last place; 1024 of them are the implicit bit, and carry into the exponent.
static uint16_t to_f16(double x) {
  unsigned sign = signbit(x) ? 0x8000 : 0;
  double m = fabs(x);
  if (isnan(x))
    return (uint16_t)(sign | 0x7e00);
  if (m >= 65520)
    return (uint16_t)(sign | 0x7c00);
  int exponent = m < 0x1p-14 ? -14 : ilogb(m);
  unsigned units = (unsigned)rint(ldexp(m, 10 - exponent));
  return (uint16_t)(sign | (((unsigned)(exponent + 14) << 10) + units));
}

static double of_bf16(uint16_t bits) {
  uint32_t u = (uint32_t)bits << 16;
  float x;
  memcpy(&x, &u, sizeof x);
  return (double)x;
}

static double of_f16(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double v = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31)
    v = fraction ? NAN : INFINITY;
  return bits & 0x8000 ? -v : v;
}

bool mlrt_is_float(mlrt_dtype t) {
  return t >= MLRT_BF16 && t <= MLRT_F64;
}

void mlrt_store(char *at, mlrt_dtype t, double v) {
#define PUT_AS(ctype, value)                                                                       \
  do {                                                                                             \
    ctype x = value;                                                                               \
    memcpy(at, &x, sizeof x);                                                                      \
  } while (0)
#define PUT(ctype) PUT_AS(ctype, (ctype)v)
  switch (t) {
  case MLRT_BOOL:
  case MLRT_U8:
    PUT(uint8_t);
    break;
  case MLRT_I8:
    PUT(int8_t);
    break;
  case MLRT_U16:
    PUT(uint16_t);
    break;
  case MLRT_I32:
    PUT(int32_t);
    break;
  case MLRT_U32:
    PUT(uint32_t);
    break;
  case MLRT_I64:
    PUT(int64_t);
    break;
  case MLRT_BF16:
    PUT_AS(uint16_t, to_bf16(v));
    break;
  case MLRT_F16:
    PUT_AS(uint16_t, to_f16(v));
    break;
  case MLRT_F32:
    PUT(float);
    break;
  case MLRT_F64:
  case MLRT_NUM_DTYPES:
    PUT(double);
    break;
  }
#undef PUT
#undef PUT_AS
}

double mlrt_load(const char *at, mlrt_dtype t) {
#define GET_AS(ctype, value)                                                                       \
  do {                                                                                             \
    ctype x;                                                                                       \
    memcpy(&x, at, sizeof x);                                                                      \
    return value;                                                                                  \
  } while (0)
#define GET(ctype) GET_AS(ctype, (double)x)
  switch (t) {
  case MLRT_BOOL:
  case MLRT_U8:
    GET(uint8_t);
  case MLRT_I8:
    GET(int8_t);
  case MLRT_U16:
    GET(uint16_t);
  case MLRT_I32:
    GET(int32_t);
  case MLRT_U32:
    GET(uint32_t);
  case MLRT_I64:
    GET(int64_t);
  case MLRT_BF16:
    GET_AS(uint16_t, of_bf16(x));
  case MLRT_F16:
    GET_AS(uint16_t, of_f16(x));
  case MLRT_F32:
    GET(float);
  case MLRT_F64:
  case MLRT_NUM_DTYPES:
    break;
  }
  GET(double);
#undef GET
#undef GET_AS
}
