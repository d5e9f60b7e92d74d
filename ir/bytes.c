// bytes.c: numbers of bytes as people write and read them. See base.h.
#include "ir/base.h"

#include <string.h>

typedef struct size_unit {
  const char *name;
  int64_t bytes;
} size_unit;

static const size_unit units[] = {
    {"", 1},
    {"B", 1},
    {"KB", 1000},
    {"MB", 1000 * 1000},
    {"GB", 1000 * 1000 * 1000},
    {"TB", (int64_t)1000 * 1000 * 1000 * 1000},
    {"KiB", 1 << 10},
    {"MiB", 1 << 20},
    {"GiB", 1 << 30},
    {"TiB", (int64_t)1 << 40},
};

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_word(const char *a, const char *b) {
  while (*a && lower(*a) == lower(*b))
    a++, b++;
  return *a == *b;
}

// 0: there is no such unit.
static int64_t unit_of(const char *name) {
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (same_word(name, units[i].name))
      return units[i].bytes;
  return 0;
}

// The bytes of `num` digits after a point. Rounding down at each digit from the right is rounding
// down once.
static int64_t fraction_bytes(const char *digits, size_t num, int64_t unit) {
  int64_t bytes = 0;
  while (num-- > 0)
    bytes = ((digits[num] - '0') * unit + bytes) / 10;
  return bytes;
}

static bool whole_bytes(const char *digits, size_t num, int64_t unit, int64_t *bytes) {
  int64_t n = 0;
  for (size_t i = 0; i < num; i++)
    if (__builtin_mul_overflow(n, (int64_t)10, &n) ||
        __builtin_add_overflow(n, (int64_t)(digits[i] - '0'), &n))
      return false;
  return !__builtin_mul_overflow(n, unit, bytes);
}

static size_t num_digits(const char *s) {
  size_t n = 0;
  while (is_digit(s[n]))
    n++;
  return n;
}

bool ir_parse_bytes(const char *text, int64_t *bytes) {
  size_t whole = num_digits(text), part = 0;
  const char *digits = text + whole, *unit = digits;
  if (*digits == '.') {
    part = num_digits(++digits);
    unit = digits + part;
    if (!part)
      return false;
  }
  int64_t of_unit = unit_of(unit), most = 0;
  if (!whole || !of_unit || !whole_bytes(text, whole, of_unit, &most))
    return false;
  return !__builtin_add_overflow(most, fraction_bytes(digits, part, of_unit), bytes) && *bytes > 0;
}

const char *ir_bytes_text(ir_arena *a, int64_t bytes, int64_t like) {
  static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int i = 0;
  while (i < 4 && like >= (int64_t)1 << 10 * (i + 1))
    i++;
  return i ? ir_format(a, "%.1f %s", (double)bytes / (double)((int64_t)1 << 10 * i), names[i])
           : ir_format(a, "%lld B", (long long)bytes);
}
