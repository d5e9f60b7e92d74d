// number_io.c: see number_io.h.
#include "runtime/number_io.h"

#include <string.h>

void mlrt_store(char *at, mlrt_dtype t, double v) {
#define PUT(ctype)                                                                                 \
  do {                                                                                             \
    ctype x = (ctype)v;                                                                            \
    memcpy(at, &x, sizeof x);                                                                      \
  } while (0)
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
  case MLRT_F32:
    PUT(float);
    break;
  case MLRT_F64:
  case MLRT_NUM_DTYPES:
    PUT(double);
    break;
  }
#undef PUT
}

double mlrt_load(const char *at, mlrt_dtype t) {
#define GET(ctype)                                                                                 \
  do {                                                                                             \
    ctype x;                                                                                       \
    memcpy(&x, at, sizeof x);                                                                      \
    return (double)x;                                                                              \
  } while (0)
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
  case MLRT_F32:
    GET(float);
  case MLRT_F64:
  case MLRT_NUM_DTYPES:
    break;
  }
  GET(double);
#undef GET
}
