// read_npy.c: NumPy's .npy, versions 1 to 3, C order. One file per input.
//
// "\x93NUMPY", version, length of the header, then a Python dictionary such as
//   {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
// padded with spaces, then the numbers.
#include "runtime/data_reader.h"

#include <string.h>

// --- the dictionary --------------------------------------------------------------------------
typedef struct scanner {
  const uint8_t *at, *end;
} scanner;

static void skip_spaces(scanner *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t'))
    s->at++;
}

static bool take(scanner *s, char c) {
  skip_spaces(s);
  if (s->at >= s->end || *s->at != (uint8_t)c)
    return false;
  s->at++;
  return true;
}

// 'text' or "text"; false when it is longer than `size` - 1.
static bool take_string(scanner *s, char *out, size_t size) {
  skip_spaces(s);
  if (s->at >= s->end || (*s->at != '\'' && *s->at != '"'))
    return false;
  uint8_t quote = *s->at++;
  size_t n = 0;
  while (s->at < s->end && *s->at != quote && n + 1 < size)
    out[n++] = (char)*s->at++;
  out[n] = '\0';
  return s->at < s->end && *s->at++ == quote;
}

static bool take_word(scanner *s, const char *word) {
  size_t n = strlen(word);
  skip_spaces(s);
  if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
    return false;
  s->at += n;
  return true;
}

static bool take_int(scanner *s, int64_t *out) {
  int64_t v = 0;
  skip_spaces(s);
  const uint8_t *start = s->at;
  for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
    if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s->at - '0', &v))
      return false;
  *out = v;
  return s->at > start;
}

// (60000, 28, 28), (60000,) or ()
static bool take_shape(scanner *s, mlrt_array *a) {
  a->rank = 0;
  if (!take(s, '('))
    return false;
  while (!take(s, ')')) {
    if (a->rank == MLRT_MAX_RANK || !take_int(s, &a->dims[a->rank++]))
      return false;
    if (!take(s, ','))
      return take(s, ')');
  }
  return true;
}

typedef struct npy_header {
  char descr[16];
  bool fortran, has_descr, has_order, has_shape;
} npy_header;

static bool take_entry(scanner *s, npy_header *h, mlrt_array *a) {
  char key[24];
  if (!take_string(s, key, sizeof key) || !take(s, ':'))
    return false;
  if (strcmp(key, "descr") == 0)
    return h->has_descr = take_string(s, h->descr, sizeof h->descr);
  if (strcmp(key, "fortran_order") == 0) {
    h->fortran = take_word(s, "True");
    return h->has_order = h->fortran || take_word(s, "False");
  }
  return strcmp(key, "shape") == 0 && (h->has_shape = take_shape(s, a));
}

static bool take_dictionary(scanner *s, npy_header *h, mlrt_array *a) {
  if (!take(s, '{'))
    return false;
  while (!take(s, '}')) {
    if (!take_entry(s, h, a))
      return false;
    if (!take(s, ','))
      return take(s, '}') && h->has_descr && h->has_order && h->has_shape;
  }
  return h->has_descr && h->has_order && h->has_shape;
}

// --- the file --------------------------------------------------------------------------------
static bool stored_from_descr(const char *descr, mlrt_array *a) {
  static const struct {
    char descr[3];
    uint8_t stored;
  } types[] = {{"b1", MLRT_ST_BOOL}, {"u1", MLRT_ST_U8},  {"i1", MLRT_ST_I8},  {"u2", MLRT_ST_U16},
               {"i2", MLRT_ST_I16},  {"u4", MLRT_ST_U32}, {"i4", MLRT_ST_I32}, {"u8", MLRT_ST_U64},
               {"i8", MLRT_ST_I64},  {"f2", MLRT_ST_F16}, {"f4", MLRT_ST_F32}, {"f8", MLRT_ST_F64}};
  if (descr[0] == '\0' || !strchr("<>|=", descr[0]))
    return false;
  a->swap = descr[0] == '>' && descr[2] > '1';
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (strcmp(types[i].descr, descr + 1) == 0) {
      a->stored = (mlrt_stored)types[i].stored;
      return true;
    }
  return false;
}

// Where the dictionary lies: [*from, a->offset).
static const char *find_header(const uint8_t *at, int64_t len, int64_t *from, mlrt_array *a) {
  if (len > 4 && memcmp(at, "PK\3\4", 4) == 0)
    return "is an archive (.npz), not a .npy file\nhelp: write its arrays one by one with "
           "numpy.save";
  if (len < 10 || memcmp(at, "\x93NUMPY", 6) != 0)
    return "is not a .npy file";
  if (at[6] < 1 || at[6] > 3)
    return "has an unknown .npy version (1, 2 and 3 are known)";
  if (at[6] > 1 && len < 12)
    return "is cut off inside its header";
  int64_t bytes = at[8] | at[9] << 8;
  *from = 10;
  if (at[6] > 1) {
    bytes |= (int64_t)at[10] << 16 | (int64_t)at[11] << 24;
    *from = 12;
  }
  a->offset = *from + bytes;
  return a->offset > len ? "is cut off inside its header" : NULL;
}

// What is wrong with a header; NULL: nothing, and `a` is filled in.
static const char *parse_header(const uint8_t *at, int64_t len, mlrt_array *a) {
  int64_t from;
  const char *wrong = find_header(at, len, &from, a);
  if (wrong)
    return wrong;
  npy_header h = {0};
  scanner s = {at + from, at + a->offset};
  if (!take_dictionary(&s, &h, a))
    return "has a header that is not {'descr': ..., 'fortran_order': ..., 'shape': (...)} of at "
           "most 8 sizes";
  if (!stored_from_descr(h.descr, a))
    return "holds a type that is not a plain number (bool, u1-u8, i1-i8, f2, f4, f8)\n"
           "help: convert it before numpy.save, as with x.astype(\"f4\")";
  if (a->rank < 1)
    return "holds one number, not an array of samples";
  if (h.fortran && a->rank > 1)
    return "is in Fortran order\nhelp: save it with numpy.ascontiguousarray";
  return NULL;
}

static int64_t npy_need(const uint8_t *head, int64_t len) {
  mlrt_array a = {0};
  return parse_header(head, len, &a) ? INT64_MAX : mlrt_array_end(&a);
}

bool mlrt_read_npy(mlrt_reading *r) {
  return mlrt_read_arrays(r, npy_need, parse_header);
}
