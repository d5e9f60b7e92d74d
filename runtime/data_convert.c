// data_convert.c: stored numbers to the dtype of an input.
//
// Two steps through a small buffer, so that 13 stored types and 11 dtypes need 24 short loops and
// not 132: load as int64 (all integers) or double (a float on either side), then store with a range
// check. Equal types are copied whole.
#include "runtime/data_reader.h"
#include "runtime/number_io.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 256 };

// --- the types ------------------------------------------------------------------------------
typedef struct dtype_info {
  const char *name;
  int bytes;
  mlrt_stored stored; // the stored type with the same bits
  bool is_float;
  int64_t lo, hi; // integers
  double largest; // floats
} dtype_info;

static const dtype_info dtypes[MLRT_NUM_DTYPES] = {
    [MLRT_BOOL] = {"bool", 1, MLRT_ST_U8, false, 0, 1, 0},
    [MLRT_U8] = {"u8", 1, MLRT_ST_U8, false, 0, UINT8_MAX, 0},
    [MLRT_I8] = {"i8", 1, MLRT_ST_I8, false, INT8_MIN, INT8_MAX, 0},
    [MLRT_U16] = {"u16", 2, MLRT_ST_U16, false, 0, UINT16_MAX, 0},
    [MLRT_I32] = {"i32", 4, MLRT_ST_I32, false, INT32_MIN, INT32_MAX, 0},
    [MLRT_U32] = {"u32", 4, MLRT_ST_U32, false, 0, UINT32_MAX, 0},
    [MLRT_I64] = {"i64", 8, MLRT_ST_I64, false, INT64_MIN, INT64_MAX, 0},
    [MLRT_BF16] = {"bf16", 2, MLRT_ST_BF16, true, 0, 0, 0x1.fep127},
    [MLRT_F16] = {"f16", 2, MLRT_ST_F16, true, 0, 0, 65504},
    [MLRT_F32] = {"f32", 4, MLRT_ST_F32, true, 0, 0, (double)FLT_MAX},
    [MLRT_F64] = {"f64", 8, MLRT_ST_F64, true, 0, 0, DBL_MAX},
};

int mlrt_dtype_bytes(mlrt_dtype t) {
  return dtypes[t].bytes;
}

const char *mlrt_dtype_name(mlrt_dtype t) {
  return dtypes[t].name;
}

mlrt_stored mlrt_stored_from_dtype(mlrt_dtype t) {
  return dtypes[t].stored;
}

int mlrt_stored_bytes(mlrt_stored t) {
  static const uint8_t bytes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return bytes[t];
}

static bool stored_is_float(mlrt_stored t) {
  return t >= MLRT_ST_F16;
}

static int64_t limit_of(const mlrt_input *in, int64_t element) {
  return in->limits ? in->limits[element] : in->limit;
}

const char *mlrt_limits_text(const mlrt_input *in, int64_t element, char *buf, size_t size) {
  const dtype_info *t = &dtypes[in->dtype];
  int64_t limit = limit_of(in, element);
  const char *here = in->limits ? " here" : "";
  if (t->is_float)
    snprintf(buf, size, "%s holds numbers up to %.3g", t->name, t->largest);
  else if (limit > 0 && limit <= t->hi && (in->besides < 0 || in->besides >= limit))
    snprintf(buf, size, "the model takes whole numbers from 0 to %lld%s, and %lld",
             (long long)limit - 1, here, (long long)in->besides);
  else if (limit > 0 && limit <= t->hi)
    snprintf(buf, size, "the model takes whole numbers from 0 to %lld%s", (long long)limit - 1,
             here);
  else
    snprintf(buf, size, "%s holds whole numbers from %lld to %lld", t->name, (long long)t->lo,
             (long long)t->hi);
  return buf;
}

// --- loading --------------------------------------------------------------------------------
typedef union chunk {
  int64_t i[CHUNK];
  double f[CHUNK];
} chunk;

// Files do not align their numbers: the bytes of one, in this machine's order.
static uint64_t load_bits(const uint8_t *at, int bytes, bool swap) {
  uint16_t v16;
  uint32_t v32;
  uint64_t v64;
  switch (bytes) {
  case 1:
    return *at;
  case 2:
    memcpy(&v16, at, 2);
    return swap ? __builtin_bswap16(v16) : v16;
  case 4:
    memcpy(&v32, at, 4);
    return swap ? __builtin_bswap32(v32) : v32;
  default:
    memcpy(&v64, at, 8);
    return swap ? __builtin_bswap64(v64) : v64;
  }
}

static double bits_to_double(mlrt_stored t, uint64_t bits) {
  if (t == MLRT_ST_F16 || t == MLRT_ST_BF16) {
    uint16_t low = (uint16_t)bits;
    return mlrt_load((const char *)&low, t == MLRT_ST_F16 ? MLRT_F16 : MLRT_BF16);
  }
  if (t == MLRT_ST_F32) {
    uint32_t low = (uint32_t)bits;
    float v;
    memcpy(&v, &low, 4);
    return (double)v;
  }
  double v;
  memcpy(&v, &bits, 8);
  return v;
}

static int64_t bits_to_int(mlrt_stored t, uint64_t bits) {
  switch (t) {
  case MLRT_ST_I8:
    return (int8_t)bits;
  case MLRT_ST_I16:
    return (int16_t)bits;
  case MLRT_ST_I32:
    return (int32_t)bits;
  default:
    return (int64_t)bits;
  }
}

static double any_to_double(mlrt_stored t, uint64_t bits) {
  if (stored_is_float(t))
    return bits_to_double(t, bits);
  return t == MLRT_ST_U64 ? (double)bits : (double)bits_to_int(t, bits);
}

// One type at a time, so that the loop is a load and a conversion. Same byte order only.
#define LOAD(type, member)                                                                         \
  for (int i = 0; i < n; i++) {                                                                    \
    type v;                                                                                        \
    memcpy(&v, at + (size_t)i * sizeof v, sizeof v);                                               \
    c->member[i] = (__typeof__(c->member[0]))v;                                                    \
  }                                                                                                \
  return

static void load_same_order_ints(mlrt_stored t, const uint8_t *at, int n, chunk *c) {
  switch (t) {
  case MLRT_ST_U8:
  case MLRT_ST_BOOL:
    LOAD(uint8_t, i);
  case MLRT_ST_U16:
    LOAD(uint16_t, i);
  case MLRT_ST_U32:
    LOAD(uint32_t, i);
  case MLRT_ST_I32:
    LOAD(int32_t, i);
  default:
    for (int i = 0, bytes = mlrt_stored_bytes(t); i < n; i++)
      c->i[i] = bits_to_int(t, load_bits(at + i * bytes, bytes, false));
  }
}

static void load_same_order_doubles(mlrt_stored t, const uint8_t *at, int n, chunk *c) {
  switch (t) {
  case MLRT_ST_U8:
  case MLRT_ST_BOOL:
    LOAD(uint8_t, f);
  case MLRT_ST_F32:
    LOAD(float, f);
  case MLRT_ST_F64:
    LOAD(double, f);
  default:
    for (int i = 0, bytes = mlrt_stored_bytes(t); i < n; i++)
      c->f[i] = any_to_double(t, load_bits(at + i * bytes, bytes, false));
  }
}

static void load_doubles(const mlrt_field *f, const uint8_t *at, int n, chunk *c) {
  int bytes = mlrt_stored_bytes(f->stored);
  if (f->table)
    for (int i = 0; i < n; i++)
      c->f[i] = (double)f->table[at[i]];
  else if (f->swap)
    for (int i = 0; i < n; i++)
      c->f[i] = any_to_double(f->stored, load_bits(at + i * bytes, bytes, true));
  else
    load_same_order_doubles(f->stored, at, n, c);
}

static void load_ints(const mlrt_field *f, const uint8_t *at, int n, chunk *c) {
  int bytes = mlrt_stored_bytes(f->stored);
  if (f->table)
    for (int i = 0; i < n; i++)
      c->i[i] = f->table[at[i]];
  else if (f->swap)
    for (int i = 0; i < n; i++)
      c->i[i] = bits_to_int(f->stored, load_bits(at + i * bytes, bytes, true));
  else
    load_same_order_ints(f->stored, at, n, c);
}

// --- storing --------------------------------------------------------------------------------
typedef struct int_range {
  int64_t lo, hi;
  int64_t besides; // allowed, too
} int_range;

// The dtype's range, cut by the input's limit.
static int_range range_of(const mlrt_input *in, int64_t element) {
  int_range r = {dtypes[in->dtype].lo, dtypes[in->dtype].hi, dtypes[in->dtype].lo};
  int64_t limit = limit_of(in, element);
  if (limit > 0) {
    r.lo = 0;
    r.hi = limit - 1 < r.hi ? limit - 1 : r.hi;
    r.besides = in->besides;
  }
  return r;
}

static bool is_outside(int_range r, int64_t v) {
  return (v < r.lo || v > r.hi) && v != r.besides;
}

static void store_int(mlrt_dtype t, int64_t v, char *out) {
  // The low bytes of a little-endian number are the number in fewer bytes.
  _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "trainers are little-endian");
  memcpy(out, &v, (size_t)dtypes[t].bytes);
}

bool mlrt_store_number(const mlrt_input *in, int64_t element, double v, char *out) {
  if (dtypes[in->dtype].is_float) {
    // Half a unit in the last place above the largest number is where rounding overflows.
    mlrt_store(out, in->dtype, v);
    return !isfinite(v) || !isinf(mlrt_load(out, in->dtype));
  }
  // 2^63 and above would overflow the conversion; NaN fails both comparisons.
  if (!(v >= -0x1p63 && v < 0x1p63) || v != trunc(v) ||
      is_outside(range_of(in, element), (int64_t)v))
    return false;
  store_int(in->dtype, (int64_t)v, out);
  return true;
}

// --- a sample -------------------------------------------------------------------------------
// In the file that has it: its name, and the number of the sample there.
static const char *place_of(const mlrt_field *f, int64_t *sample) {
  if (!f->num_parts)
    return f->file;
  const mlrt_part *part = mlrt_field_part(f, *sample);
  *sample -= part->first;
  return part->file;
}

static bool refuse(const mlrt_field *f, int64_t sample, int64_t element, const char *value,
                   mlrt_error *e) {
  char limits[120];
  const char *file = place_of(f, &sample);
  return mlrt_error_set(e, "%s: sample %lld, element %lld: %s does not fit input `%s`: %s", file,
                        (long long)sample, (long long)element, value, f->input->name,
                        mlrt_limits_text(f->input, element, limits, sizeof limits));
}

static bool refuse_int(const mlrt_field *f, int64_t sample, int64_t element, int64_t v,
                       mlrt_error *e) {
  char text[32];
  if (f->stored == MLRT_ST_U64)
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
  else
    snprintf(text, sizeof text, "%lld", (long long)v);
  return refuse(f, sample, element, text, e);
}

// What `f` stores of that: U64 is loaded as int64, and those of 2^63 and more are negative.
static int_range stored_range(const mlrt_field *f, int64_t element) {
  int_range r = range_of(f->input, element);
  if (f->stored == MLRT_ST_U64) {
    r.lo = r.lo < 0 ? 0 : r.lo;
    r.besides = r.besides < 0 ? r.lo : r.besides;
  }
  return r;
}

// Index of the first number that is not allowed, of n from element `first` on; n: none.
static int first_outside(const mlrt_field *f, int64_t first, const int64_t *v, int n) {
  int_range r = stored_range(f, first);
  for (int i = 0; i < n; i++) {
    if (f->input->limits)
      r = stored_range(f, first + i);
    if (is_outside(r, v[i]))
      return i;
  }
  return n;
}

static bool store_ints(const mlrt_field *f, int64_t sample, int64_t first, int n, const chunk *c,
                       char *out, mlrt_error *e) {
  int bad = first_outside(f, first, c->i, n);
  if (bad < n)
    return refuse_int(f, sample, first + bad, c->i[bad], e);
  int bytes = dtypes[f->input->dtype].bytes;
  if (bytes == 4)
    for (int i = 0; i < n; i++)
      memcpy(out + i * 4, &c->i[i], 4); // see store_int
  else
    for (int i = 0; i < n; i++)
      store_int(f->input->dtype, c->i[i], out + i * bytes);
  return true;
}

// Stores until a number does not fit; returns how many were stored.
static int store_while_fitting(const mlrt_input *in, int64_t first, const double *v, int n,
                               char *out) {
  int i = 0, bytes = dtypes[in->dtype].bytes;
  if (in->dtype == MLRT_F32)
    for (; i < n; i++) {
      float narrow = (float)v[i];
      if (isinf(narrow) && !isinf(v[i]))
        break;
      memcpy(out + i * 4, &narrow, 4);
    }
  else
    while (i < n && mlrt_store_number(in, first + i, v[i], out + i * bytes))
      i++;
  return i;
}

static bool store_doubles(const mlrt_field *f, int64_t sample, int64_t first, int n, const chunk *c,
                          char *out, mlrt_error *e) {
  char text[32];
  int done = store_while_fitting(f->input, first, c->f, n, out);
  if (done == n)
    return true;
  snprintf(text, sizeof text, "%.9g", c->f[done]);
  return refuse(f, sample, first + done, text, e);
}

static bool are_truth_values(const mlrt_field *f, int64_t sample, int64_t first, int n,
                             const uint8_t *at, mlrt_error *e) {
  for (int i = 0; f->stored == MLRT_ST_BOOL && i < n; i++)
    if (at[i] > 1)
      return mlrt_error_set(e, "%s: sample %lld, element %lld: byte %d is no truth value (0 or 1)",
                            f->file, (long long)sample, (long long)(first + i), at[i]);
  return true;
}

// The vocabulary is that of the whole file, so this is another one by now.
static bool bytes_have_ids(const mlrt_field *f, int64_t sample, int64_t first, int n,
                           const uint8_t *at, mlrt_error *e) {
  for (int i = 0; f->table && i < n; i++)
    if (f->table[at[i]] < 0) {
      const char *file = place_of(f, &sample);
      return mlrt_error_set(
          e,
          "%s: sample %lld, element %lld: byte %d, which no place of the file had when "
          "it was read first; it has changed since",
          file, (long long)sample, (long long)(first + i), at[i]);
    }
  return true;
}

static bool copy_chunk(const mlrt_field *f, int64_t sample, int64_t first, int n, const uint8_t *at,
                       char *out, mlrt_error *e) {
  chunk c;
  if (!bytes_have_ids(f, sample, first, n, at, e) || !are_truth_values(f, sample, first, n, at, e))
    return false;
  if (dtypes[f->input->dtype].is_float || stored_is_float(f->stored)) {
    load_doubles(f, at, n, &c);
    return store_doubles(f, sample, first, n, &c, out, e);
  }
  load_ints(f, at, n, &c);
  return store_ints(f, sample, first, n, &c, out, e);
}

// Every stored value is a value of the input: nothing to convert, nothing to check.
static bool same_bits(const mlrt_field *f) {
  return f->stored == dtypes[f->input->dtype].stored && !f->swap && !f->table &&
         f->input->limit <= 0 && f->input->dtype != MLRT_BOOL;
}

bool mlrt_field_copy(const mlrt_field *f, int64_t index, char *out, mlrt_error *e) {
  const uint8_t *at = mlrt_field_at(f, index);
  int in_bytes = mlrt_stored_bytes(f->stored), out_bytes = dtypes[f->input->dtype].bytes;
  if (same_bits(f)) {
    memcpy(out, at, (size_t)(f->elements * in_bytes));
    return true;
  }
  for (int64_t first = 0; first < f->elements; first += CHUNK) {
    int n = (int)(f->elements - first < CHUNK ? f->elements - first : CHUNK);
    if (!copy_chunk(f, index, first, n, at + first * in_bytes, out + first * out_bytes, e))
      return false;
  }
  return true;
}
