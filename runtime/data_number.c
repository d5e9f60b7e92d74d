// data_number.c: decimal text to the nearest double.
//
// Numbers of data files are short: up to 2^53 times or over a power of ten up to 22 both sides are
// exact, so one operation rounds correctly (Clinger). The rest goes through strtod, with as many digits as can matter:
// where two doubles meet, the middle has 767 of them (David Gay). A digit behind those only says on which side of it a
// number lies.
#include "runtime/data_reader.h"

#include <stdio.h>
#include <stdlib.h>

enum { EXACT_DIGITS = 18, KEPT_DIGITS = 800 };
#define FAR_EXPONENT INT64_C(100000000000000000) // no file has so many digits to make up for it

typedef struct decimal {
  uint64_t digits;        // the first EXACT_DIGITS significant ones
  int64_t num_digits;     // all of them, without leading zeros
  int64_t exponent;       // of the last digit
  bool negative, rest;    // rest: one behind KEPT_DIGITS is not 0
  char kept[KEPT_DIGITS]; // the first ones
} decimal;

static bool is_digit(uint8_t c) {
  return c >= '0' && c <= '9';
}

static void take_digit(decimal *d, uint8_t c) {
  if (d->num_digits == 0 && c == '0')
    return;
  if (d->num_digits < EXACT_DIGITS)
    d->digits = d->digits * 10 + (uint64_t)(c - '0');
  if (d->num_digits < KEPT_DIGITS)
    d->kept[d->num_digits] = (char)c;
  else
    d->rest = d->rest || c != '0';
  d->num_digits++;
}

// Takes digits from *at; returns how many.
static int64_t take_digits(decimal *d, const uint8_t **at, const uint8_t *end, bool fraction) {
  const uint8_t *start = *at;
  for (; *at < end && is_digit(**at); ++*at) {
    take_digit(d, **at);
    d->exponent -= fraction;
  }
  return *at - start;
}

static bool take_exponent(decimal *d, const uint8_t **at, const uint8_t *end) {
  bool negative = *at < end && **at == '-';
  if (*at < end && (**at == '-' || **at == '+'))
    ++*at;
  int64_t e = 0;
  const uint8_t *start = *at;
  for (; *at < end && is_digit(**at); ++*at)
    e = e < FAR_EXPONENT ? e * 10 + (**at - '0') : e;
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

// Beyond the largest double: infinite.
static double slow(const decimal *d) {
  char text[KEPT_DIGITS + 32];
  int kept = d->num_digits < KEPT_DIGITS ? (int)d->num_digits : KEPT_DIGITS;
  int64_t exponent = d->exponent + (d->num_digits - kept) - d->rest;
  // With at most 801 digits before it, that is infinite or 0 already.
  exponent = exponent > 2000 ? 2000 : exponent < -2000 ? -2000 : exponent;
  snprintf(text, sizeof text, "%.*s%se%lld", kept, d->kept, d->rest ? "1" : "",
           (long long)exponent);
  return strtod(text, NULL);
}

bool mlrt_parse_number(const uint8_t *at, int64_t len, double *out) {
  static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  decimal d;
  d.digits = 0;
  d.num_digits = d.exponent = 0;
  d.negative = d.rest = false; // `kept` is written before it is read
  if (!scan(&d, at, at + len))
    return false;
  double v = (double)d.digits;
  if (d.num_digits > EXACT_DIGITS || d.digits > (uint64_t)1 << 53 || d.exponent < -22 ||
      d.exponent > 22)
    v = d.num_digits ? slow(&d) : 0;
  else
    v = d.exponent < 0 ? v / powers[-d.exponent] : v * powers[d.exponent];
  *out = d.negative ? -v : v;
  return true;
}
