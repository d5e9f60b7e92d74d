// safetensors.c: see safetensors.h. Nothing in a file is believed before it was checked.
#include "runtime/safetensors.h"
#include "runtime/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_HEADER = 100 * 1000 * 1000 }; // as in the reference implementation

// A file may hold types that no program of ours has: their size must be known all the same.
static const struct {
  const char *name;
  int bits;
} dtypes[] = {{"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6},
              {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},     {"F8_E4M3", 8},
              {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
              {"U16", 16},    {"F16", 16},        {"BF16", 16},       {"I32", 32},
              {"U32", 32},    {"F32", 32},        {"C64", 64},        {"I64", 64},
              {"U64", 64},    {"F64", 64}};

const char *mlrt_st_dtype(mlrt_dtype t) {
  static const char *const names[MLRT_NUM_DTYPES] = {"BOOL", "U8",   "I8",  "U16", "I32", "U32",
                                                     "I64",  "BF16", "F16", "F32", "F64"};
  return names[t];
}

bool mlrt_st_dtype_of(const char *name, mlrt_dtype *out) {
  for (int t = 0; t < MLRT_NUM_DTYPES; t++)
    if (!strcmp(mlrt_st_dtype((mlrt_dtype)t), name)) {
      *out = (mlrt_dtype)t;
      return true;
    }
  return false;
}

static int dtype_bits(const char *name) {
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
    if (!strcmp(dtypes[i].name, name))
      return dtypes[i].bits;
  return 0;
}

// Room for one more in a growing array; false when memory is out.
static bool grow(void **array, int num, int *cap, size_t item) {
  if (num < *cap)
    return true;
  int wider = *cap ? *cap * 2 : 32;
  void *p = realloc(*array, (size_t)wider * item);
  if (!p)
    return false;
  *array = p;
  *cap = wider;
  return true;
}

static bool parse_metadata(mlrt_st_header *h, mlrt_json *j) {
  if (!mlrt_json_expect(j, '{'))
    return false;
  if (mlrt_json_accept(j, '}'))
    return true;
  do {
    if (!grow((void **)&h->pairs, h->num_pairs, &h->cap_pairs, sizeof *h->pairs))
      return mlrt_error_memory(j->error, "out of memory");
    mlrt_st_pair pair;
    if (!mlrt_json_string(j, &pair.key) || !mlrt_json_expect(j, ':') ||
        !mlrt_json_string(j, &pair.value))
      return false;
    h->pairs[h->num_pairs++] = pair;
  } while (mlrt_json_accept(j, ','));
  return mlrt_json_expect(j, '}');
}

static bool parse_shape(mlrt_st_tensor *t, mlrt_json *j) {
  if (!mlrt_json_expect(j, '['))
    return false;
  if (mlrt_json_accept(j, ']'))
    return true;
  do {
    if (t->rank == MLRT_MAX_RANK)
      return mlrt_json_fail(j, "a tensor of more than 8 dimensions");
    if (!mlrt_json_int(j, &t->dims[t->rank++]))
      return false;
  } while (mlrt_json_accept(j, ','));
  return mlrt_json_expect(j, ']');
}

enum { HAVE_DTYPE = 1, HAVE_SHAPE = 2, HAVE_OFFSETS = 4, HAVE_ALL = 7 };

// One `"key": value` of a tensor; adds its bit to `have`.
static bool parse_field(mlrt_st_tensor *t, mlrt_json *j, int *have) {
  const char *key;
  if (!mlrt_json_string(j, &key) || !mlrt_json_expect(j, ':'))
    return false;
  int bit = !strcmp(key, "dtype")          ? HAVE_DTYPE
            : !strcmp(key, "shape")        ? HAVE_SHAPE
            : !strcmp(key, "data_offsets") ? HAVE_OFFSETS
                                           : 0;
  if (!bit || *have & bit)
    return mlrt_json_fail(j, bit ? "a key comes twice" : "an unknown key");
  *have |= bit;
  if (bit == HAVE_DTYPE)
    return mlrt_json_string(j, &t->dtype);
  if (bit == HAVE_SHAPE)
    return parse_shape(t, j);
  return mlrt_json_expect(j, '[') && mlrt_json_int(j, &t->begin) && mlrt_json_expect(j, ',') &&
         mlrt_json_int(j, &t->end) && mlrt_json_expect(j, ']');
}

// Size, shape and offsets of one tensor agree.
static bool check_tensor(const mlrt_st_tensor *t, int64_t data_bytes, mlrt_error *e) {
  int64_t bits = dtype_bits(t->dtype);
  if (!bits)
    return mlrt_error_set(e, "tensor '%.100s' has the unknown type '%.20s'", t->name, t->dtype);
  for (int i = 0; i < t->rank; i++)
    if (__builtin_mul_overflow(bits, t->dims[i], &bits))
      return mlrt_error_set(e, "tensor '%.100s' has an impossible shape", t->name);
  if (bits % 8 != 0)
    return mlrt_error_set(e, "tensor '%.100s' ends within a byte", t->name);
  int64_t bytes = bits / 8;
  if (t->begin > t->end || t->end > data_bytes)
    return mlrt_error_set(e,
                          "tensor '%.100s' lies at bytes %" PRId64 " to %" PRId64 " of %" PRId64
                          ": the file is cut short or broken",
                          t->name, t->begin, t->end, data_bytes);
  if (t->end - t->begin != bytes)
    return mlrt_error_set(e, "tensor '%.100s' needs %" PRId64 " bytes and has %" PRId64, t->name,
                          bytes, t->end - t->begin);
  return true;
}

static bool parse_tensor(mlrt_st_header *h, mlrt_json *j, const char *name) {
  if (!grow((void **)&h->tensors, h->num_tensors, &h->cap_tensors, sizeof *h->tensors))
    return mlrt_error_memory(j->error, "out of memory");
  mlrt_st_tensor *t = &h->tensors[h->num_tensors];
  *t = (mlrt_st_tensor){.name = name};
  int have = 0;
  if (!mlrt_json_expect(j, '{'))
    return false;
  do {
    if (!parse_field(t, j, &have))
      return false;
  } while (mlrt_json_accept(j, ','));
  if (!mlrt_json_expect(j, '}'))
    return false;
  if (have != HAVE_ALL)
    return mlrt_json_fail(j, "a tensor without dtype, shape or data_offsets");
  h->num_tensors++;
  return check_tensor(t, h->data_bytes, j->error);
}

static bool parse_header(mlrt_st_header *h, mlrt_json *j) {
  if (!mlrt_json_expect(j, '{'))
    return false;
  if (mlrt_json_accept(j, '}'))
    return mlrt_json_finish(j);
  bool have_metadata = false;
  do {
    const char *name;
    if (!mlrt_json_string(j, &name) || !mlrt_json_expect(j, ':'))
      return false;
    bool metadata = !strcmp(name, "__metadata__");
    if (metadata && have_metadata)
      return mlrt_json_fail(j, "__metadata__ comes twice");
    have_metadata |= metadata;
    if (!(metadata ? parse_metadata(h, j) : parse_tensor(h, j, name)))
      return false;
  } while (mlrt_json_accept(j, ','));
  return mlrt_json_expect(j, '}') && mlrt_json_finish(j);
}

static int by_begin(const void *a, const void *b) {
  const mlrt_st_tensor *x = a, *y = b;
  if (x->begin != y->begin)
    return x->begin < y->begin ? -1 : 1;
  return (x->end > y->end) - (x->end < y->end); // empty tensors before the one that starts there
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const mlrt_st_tensor *)a)->name, ((const mlrt_st_tensor *)b)->name);
}

// Tensors fill the data without hole or overlap; names are unique. Leaves them sorted by name.
static bool check_layout(mlrt_st_header *h, mlrt_error *e) {
  if (h->num_tensors)
    qsort(h->tensors, (size_t)h->num_tensors, sizeof *h->tensors, by_begin);
  int64_t end = 0;
  for (int i = 0; i < h->num_tensors; i++) {
    const mlrt_st_tensor *t = &h->tensors[i];
    if (t->begin != end)
      return mlrt_error_set(e, "tensor '%.100s' %s", t->name,
                            t->begin < end ? "overlaps another" : "comes after a hole");
    end = t->end;
  }
  if (end != h->data_bytes)
    return mlrt_error_set(e, "%" PRId64 " bytes after the last tensor", h->data_bytes - end);
  if (h->num_tensors)
    qsort(h->tensors, (size_t)h->num_tensors, sizeof *h->tensors, by_name);
  for (int i = 1; i < h->num_tensors; i++)
    if (!by_name(&h->tensors[i - 1], &h->tensors[i]))
      return mlrt_error_set(e, "tensor '%.100s' comes twice", h->tensors[i].name);
  return true;
}

bool mlrt_st_parse(mlrt_st_header *h, char *text, size_t len, int64_t data_bytes, mlrt_error *e) {
  *h = (mlrt_st_header){.text = text, .data_bytes = data_bytes, .data_start = 8 + (int64_t)len};
  text[len] = 0;
  mlrt_json j = {.at = text, .begin = text, .end = text + len, .error = e};
  if (parse_header(h, &j) && check_layout(h, e))
    return true;
  mlrt_st_free(h);
  return false;
}

void mlrt_st_free(mlrt_st_header *h) {
  free(h->tensors);
  free(h->pairs);
  free(h->text);
  *h = (mlrt_st_header){0};
}

bool mlrt_st_read_at(int fd, char *to, int64_t len, int64_t at, mlrt_error *e) {
  while (len) {
    ssize_t got = pread(fd, to, (size_t)len, at);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return mlrt_error_set(e, "%s", got ? strerror(errno) : "the file ends too early");
    to += got;
    at += got;
    len -= got;
  }
  return true;
}

bool mlrt_st_read(mlrt_st_header *h, int fd, mlrt_error *e) {
  *h = (mlrt_st_header){0};
  struct stat st;
  if (fstat(fd, &st) < 0)
    return mlrt_error_set(e, "%s", strerror(errno));
  if (!S_ISREG(st.st_mode))
    return mlrt_error_set(e, "not a file");
  uint64_t len;
  if (st.st_size < 10)
    return mlrt_error_set(e, "too short for a safetensors file");
  if (!mlrt_st_read_at(fd, (char *)&len, sizeof len, 0, e))
    return false;
  if (len < 2 || len > MAX_HEADER || (int64_t)len > st.st_size - 8)
    return mlrt_error_set(
        e, "not a safetensors file, or cut short: its header would have %" PRIu64 " bytes", len);
  char *text = malloc(len + 1);
  if (!text)
    return mlrt_error_memory(e, "out of memory");
  if (!mlrt_st_read_at(fd, text, (int64_t)len, 8, e)) {
    free(text);
    return false;
  }
  return mlrt_st_parse(h, text, len, st.st_size - 8 - (int64_t)len, e);
}

const mlrt_st_tensor *mlrt_st_find(const mlrt_st_header *h, const char *name) {
  mlrt_st_tensor key = {.name = name};
  if (!h->num_tensors)
    return NULL;
  return bsearch(&key, h->tensors, (size_t)h->num_tensors, sizeof key, by_name);
}

const char *mlrt_st_value_of(const mlrt_st_header *h, const char *prefix, const char *name) {
  size_t len = strlen(prefix);
  for (int i = 0; i < h->num_pairs; i++) {
    const char *key = h->pairs[i].key;
    if (!strncmp(key, prefix, len) && !strcmp(key + len, name))
      return h->pairs[i].value;
  }
  return NULL;
}

const char *mlrt_st_value(const mlrt_st_header *h, const char *key) {
  return mlrt_st_value_of(h, "", key);
}
