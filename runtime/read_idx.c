// read_idx.c: IDX files (MNIST): 0, 0, type, rank, then rank sizes of four bytes, most significant
// first, then the numbers in the same byte order. One file per input.
#include "runtime/data_reader.h"

static int64_t be32(const uint8_t *at) {
  return (int64_t)at[0] << 24 | (int64_t)at[1] << 16 | (int64_t)at[2] << 8 | (int64_t)at[3];
}

static bool stored_from_code(uint8_t code, mlrt_stored *out) {
  static const struct {
    uint8_t code;
    mlrt_stored stored;
  } types[] = {{0x08, MLRT_ST_U8},  {0x09, MLRT_ST_I8},  {0x0b, MLRT_ST_I16},
               {0x0c, MLRT_ST_I32}, {0x0d, MLRT_ST_F32}, {0x0e, MLRT_ST_F64}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (types[i].code == code) {
      *out = types[i].stored;
      return true;
    }
  return false;
}

// What is wrong with a header; NULL: nothing, and `a` is filled in.
static const char *parse_header(const uint8_t *at, int64_t len, mlrt_array *a) {
  if (len < 4 || at[0] != 0 || at[1] != 0 || !stored_from_code(at[2], &a->stored))
    return "is not an IDX file (it must begin with 0, 0, a type from 8 to 14, a rank)";
  a->rank = at[3];
  a->swap = mlrt_stored_bytes(a->stored) > 1;
  a->offset = 4 + 4 * a->rank;
  if (a->rank < 1 || a->rank > MLRT_MAX_RANK)
    return "has a rank outside 1..8";
  if (len < a->offset)
    return "is cut off inside its header";
  for (int i = 0; i < a->rank; i++)
    a->dims[i] = be32(at + 4 + 4 * i);
  return NULL;
}

static int64_t idx_need(const uint8_t *head, int64_t len) {
  mlrt_array a = {0};
  return parse_header(head, len, &a) ? INT64_MAX : mlrt_array_end(&a);
}

bool mlrt_read_idx(mlrt_reading *r) {
  return mlrt_read_arrays(r, idx_need, parse_header);
}
