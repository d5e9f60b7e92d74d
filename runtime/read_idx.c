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
  int64_t bytes = parse_header(head, len, &a) ? -1 : mlrt_array_bytes(&a), total;
  return bytes < 0 || __builtin_add_overflow(bytes, a.offset, &total) ? INT64_MAX : total;
}

static bool read_file(mlrt_reading *r, int i) {
  if (!mlrt_reading_open(r, i, idx_need))
    return false;
  const mlrt_file *f = &r->set->files[i];
  mlrt_array a = {0};
  const char *wrong = parse_header(f->data, f->len, &a);
  if (wrong)
    return mlrt_error_set(r->error, "%s: %s", f->name, wrong);
  return mlrt_array_to_field(r, i, &a);
}

bool mlrt_read_idx(mlrt_reading *r) {
  static const char *const keys[] = {NULL};
  if (!mlrt_settings_check(r, keys) || !mlrt_files_match_inputs(r))
    return false;
  for (int i = 0; i < r->set->num_fields; i++)
    if (!read_file(r, i))
      return false;
  return mlrt_arrays_finish(r);
}
