// safetensors_write.c: the header as text; no allocation, so that a save cannot fail for memory.
#include "runtime/safetensors.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct text {
  char *at;
  size_t cap, len; // len counts on when the text does not fit
} text;

static void put(text *t, const char *bytes, size_t n) {
  if (t->len < t->cap)
    memcpy(t->at + t->len, bytes, n < t->cap - t->len ? n : t->cap - t->len);
  t->len += n;
}

__attribute__((format(printf, 2, 3))) static void putf(text *t, const char *fmt, ...) {
  char buf[64]; // numbers and fixed text only
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(buf, sizeof buf, fmt, args);
  va_end(args);
  put(t, buf, (size_t)n);
}

static void put_string(text *t, const char *s) {
  put(t, "\"", 1);
  for (; *s; s++) {
    if (*s == '"' || *s == '\\')
      put(t, "\\", 1);
    if ((unsigned char)*s < 0x20)
      put(t, "?", 1);
    else
      put(t, s, 1);
  }
  put(t, "\"", 1);
}

static void put_metadata(text *t, const mlrt_st_pair *pairs, int num) {
  put_string(t, "__metadata__");
  put(t, ":{", 2);
  for (int i = 0; i < num; i++) {
    if (i)
      put(t, ",", 1);
    put_string(t, pairs[i].key);
    put(t, ":", 1);
    put_string(t, pairs[i].value);
  }
  put(t, "}", 1);
}

static void put_tensor(text *t, const mlrt_st_tensor *x) {
  put(t, ",", 1);
  put_string(t, x->name);
  putf(t, ":{\"dtype\":\"%s\",\"shape\":[", x->dtype);
  for (int i = 0; i < x->rank; i++)
    putf(t, "%s%" PRId64, i ? "," : "", x->dims[i]);
  putf(t, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", x->begin, x->end);
}

size_t mlrt_st_write(char *out, size_t cap, const mlrt_st_tensor *tensors, int num_tensors,
                     const mlrt_st_pair *pairs, int num_pairs) {
  text t = {out, cap, 0};
  put(&t, "\0\0\0\0\0\0\0", 8);
  put(&t, "{", 1);
  put_metadata(&t, pairs, num_pairs);
  for (int i = 0; i < num_tensors; i++)
    put_tensor(&t, &tensors[i]);
  put(&t, "}", 1);
  while (t.len % 8)
    put(&t, " ", 1);
  uint64_t len = t.len - 8;
  if (cap >= 8)
    memcpy(out, &len, 8);
  return t.len;
}
