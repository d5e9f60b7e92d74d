// json.c: see json.h.
#include "runtime/json.h"

#include <string.h>

bool mlrt_json_fail(mlrt_json *j, const char *what) {
  return mlrt_error_set(j->error, "the header is broken at byte %td: %s", j->at - j->begin, what);
}

static void skip_space(mlrt_json *j) {
  while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\t' || *j->at == '\r'))
    j->at++;
}

bool mlrt_json_accept(mlrt_json *j, char c) {
  skip_space(j);
  if (j->at >= j->end || *j->at != c)
    return false;
  j->at++;
  return true;
}

bool mlrt_json_expect(mlrt_json *j, char c) {
  const char what[] = {'e', 'x', 'p', 'e', 'c', 't', 'e', 'd', ' ', '\'', c, '\'', 0};
  return mlrt_json_accept(j, c) || mlrt_json_fail(j, what);
}

bool mlrt_json_finish(mlrt_json *j) {
  skip_space(j);
  return j->at == j->end || mlrt_json_fail(j, "text after the end");
}

bool mlrt_json_int(mlrt_json *j, int64_t *out) {
  skip_space(j);
  const char *first = j->at;
  int64_t v = 0;
  for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++) {
    if (j->at - first >= 18) // 10^18 - 1 is enough for any file and cannot overflow
      return mlrt_json_fail(j, "number too large");
    v = v * 10 + (*j->at - '0');
  }
  if (j->at == first)
    return mlrt_json_fail(j, "expected a whole number");
  if (*first == '0' && j->at - first > 1)
    return mlrt_json_fail(j, "a number begins with 0");
  *out = v;
  return true;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Four hex digits; -1 when they are not there.
static int32_t hex4(mlrt_json *j) {
  if (j->end - j->at < 4)
    return -1;
  int32_t v = 0;
  for (int i = 0; i < 4; i++) {
    int d = hex_digit(j->at[i]);
    if (d < 0)
      return -1;
    v = v * 16 + d;
  }
  j->at += 4;
  return v;
}

// Code point of \uXXXX, with the second half of a surrogate pair; -1: malformed.
static int32_t code_point(mlrt_json *j) {
  int32_t hi = hex4(j);
  if (hi < 0xD800 || hi > 0xDFFF)
    return hi;
  if (hi > 0xDBFF || j->end - j->at < 6 || j->at[0] != '\\' || j->at[1] != 'u')
    return -1;
  j->at += 2;
  int32_t lo = hex4(j);
  return lo < 0xDC00 || lo > 0xDFFF ? -1 : 0x10000 + ((hi - 0xD800) << 10) + (lo - 0xDC00);
}

// UTF-8 is never longer than the escape it comes from.
static char *put_utf8(char *to, int32_t c) {
  if (c < 0x80) {
    *to++ = (char)c;
    return to;
  }
  int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const int lead[] = {0, 0xC0, 0xE0, 0xF0};
  *to++ = (char)(lead[more] | c >> (6 * more));
  while (more--)
    *to++ = (char)(0x80 | (c >> (6 * more) & 0x3F));
  return to;
}

static bool unescape(mlrt_json *j, char **to) {
  static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
  if (j->at >= j->end)
    return mlrt_json_fail(j, "a string does not end");
  char c = *j->at++;
  int32_t code;
  const char *simple = c ? strchr(from, c) : NULL;
  if (simple)
    code = into[simple - from];
  else if (c == 'u')
    code = code_point(j);
  else
    code = -1;
  if (code < 0)
    return mlrt_json_fail(j, "a string with a bad escape");
  // Other tools may have line breaks in a text; nothing that a terminal obeys is printed.
  if (code < 0x20 || code == 0x7F)
    code = '?';
  *to = put_utf8(*to, code);
  return true;
}

bool mlrt_json_string(mlrt_json *j, const char **out) {
  if (!mlrt_json_expect(j, '"'))
    return false;
  char *to = j->at;
  *out = to;
  while (j->at < j->end) {
    char c = *j->at++;
    if (c == '"') {
      *to = 0;
      return true;
    }
    if (c == '\\') {
      if (!unescape(j, &to))
        return false;
    } else if ((unsigned char)c < 0x20 || c == 0x7F)
      return mlrt_json_fail(j, "a string with a control character");
    else
      *to++ = c;
  }
  return mlrt_json_fail(j, "a string does not end");
}
