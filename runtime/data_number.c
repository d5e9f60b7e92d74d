// data_number.c: decimal text to the nearest double.
//
// Numbers of data files are short: up to 2^53 times or over a power of ten up to 22 both sides are
// exact, so one operation rounds correctly (Clinger). The rest goes through strtod.
#include "runtime/data_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct decimal {
  uint64_t digits; // the first 18 significant ones
  int num_digits;  // all of them, without leading zeros
  int exponent;    // of the last digit
  bool negative;
} decimal;

static bool is_digit(uint8_t c) {
  return c >= '0' && c <= '9';
}

// Takes digits from *at; returns how many.
static int64_t take_digits(decimal *d, const uint8_t **at, const uint8_t *end, bool fraction) {
  const uint8_t *start = *at;
  for (; *at < end && is_digit(**at); ++*at) {
    if (d->num_digits < 18)
      d->digits = d->digits * 10 + (uint64_t)(**at - '0');
    if (d->num_digits > 0 || **at != '0')
      d->num_digits++;
    d->exponent -= fraction;
  }
  return *at - start;
}

static bool take_exponent(decimal *d, const uint8_t **at, const uint8_t *end) {
  bool negative = *at < end && **at == '-';
  if (*at < end && (**at == '-' || **at == '+'))
    ++*at;
  int e = 0;
  const uint8_t *start = *at;
  for (; *at < end && is_digit(**at); ++*at)
    e = e < 100000 ? e * 10 + (**at - '0') : e;
  d->exponent += negative ? -e : e;
  return *at > start;
}

// The grammar: [+-] digits [. digits] [e [+-] digits], at least one digit before e.
static bool scan(decimal *d, const uint8_t *at, const uint8_t *end) {
  if (at < end && (*at == '-' || *at == '+'))
    d->negative = *at++ == '-';
  int64_t seen = take_digits(d, &at, end, false);
  if (at < end && *at == '.') {
    at++;
    seen += take_digits(d, &at, end, true);
  }
  if (seen == 0)
    return false;
  if (at < end && (*at == 'e' || *at == 'E')) {
    at++;
    if (!take_exponent(d, &at, end))
      return false;
  }
  return at == end;
}

static bool slow(const uint8_t *at, int64_t len, double *out) {
  char text[512];
  if (len >= (int64_t)sizeof text)
    return false;
  memcpy(text, at, (size_t)len);
  text[len] = '\0';
  *out = strtod(text, NULL);
  return isfinite(*out);
}

bool mlrt_parse_number(const uint8_t *at, int64_t len, double *out) {
  static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  decimal d = {0};
  if (len > 400 || !scan(&d, at, at + len)) // 400: exponents cannot overflow an int
    return false;
  if (d.num_digits > 18 || d.digits > (uint64_t)1 << 53 || d.exponent < -22 || d.exponent > 22)
    return slow(at, len, out);
  double v = (double)d.digits;
  v = d.exponent < 0 ? v / powers[-d.exponent] : v * powers[d.exponent];
  *out = d.negative ? -v : v;
  return true;
}
