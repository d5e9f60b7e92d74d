// numbers.c: see numbers.h.
#include "runtime/numbers.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool mlrt_parse_int(const char *text, int64_t *out) {
  if (!*text || isspace((unsigned char)*text))
    return false;
  const char *digits = text + (*text == '-' || *text == '+');
  int base = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10; // never octal
  char *end;
  errno = 0;
  long long v = strtoll(text, &end, base);
  if (errno || *end || end == text)
    return false;
  *out = v;
  return true;
}

bool mlrt_parse_double(const char *text, double *out) {
  if (!*text || isspace((unsigned char)*text))
    return false;
  char *end;
  double v = strtod(text, &end); // a range error to 0 or a subnormal is a fine value
  if (*end || end == text || !isfinite(v))
    return false;
  *out = v;
  return true;
}
