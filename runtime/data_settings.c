// data_settings.c: the settings of a data entry: numbers, words, ranges, each with a clear
// message when it is not what a format expects.
#include "runtime/data_reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const mlrt_setting *mlrt_setting_find(const mlrt_reading *r, const char *key) {
  for (int i = 0; i < r->spec->num_settings; i++)
    if (strcmp(r->spec->settings[i].key, key) == 0)
      return &r->spec->settings[i];
  return NULL;
}

static bool listed(const char *const *names, const char *name) {
  for (; *names; names++)
    if (strcmp(*names, name) == 0)
      return true;
  return false;
}

static void list_text(const char *const *names, char *buf, size_t size) {
  size_t used = strlen(buf);
  for (; *names && used < size; names++)
    used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "", *names);
}

// `embed` is for the compiler: it put the file into the binary.
static const char *const common_keys[] = {"range_lo", "range_hi", NULL};
static const char *const compiler_keys[] = {"embed", NULL};

bool mlrt_settings_check(const mlrt_reading *r, const char *const *keys) {
  for (int i = 0; i < r->spec->num_settings; i++) {
    const char *key = r->spec->settings[i].key;
    if (listed(keys, key) || listed(common_keys, key) || listed(compiler_keys, key))
      continue;
    char known[200] = "";
    list_text(keys, known, sizeof known);
    list_text(common_keys, known, sizeof known);
    return mlrt_error_set(r->error, "%s has no setting `%s`\nhelp: it takes %s", r->spec->format,
                          key, known);
  }
  return true;
}

// The value as a number: a flag's present value, or a word that spells one ("3").
static bool number_of(const mlrt_reading *r, const mlrt_setting *s, double *out) {
  if (s->kind == MLRT_SET_NUM)
    *out = s->num;
  else if (s->kind == MLRT_SET_FLAG && r->flags)
    *out = r->flags->get(r->flags->data, s->str);
  else if (s->kind == MLRT_SET_STR && s->str[0]) {
    char *end;
    *out = strtod(s->str, &end);
    return *end == '\0';
  } else
    return false;
  return true;
}

// What it is instead of what it must be.
static const char *value_text(const mlrt_reading *r, const mlrt_setting *s, char *buf,
                              size_t size) {
  double v;
  if (s->kind == MLRT_SET_STR || !number_of(r, s, &v))
    snprintf(buf, size, "`%.80s`", s->str);
  else
    snprintf(buf, size, "%.17g", v);
  return buf;
}

bool mlrt_setting_int(const mlrt_reading *r, const char *key, int64_t lo, int64_t hi,
                      int64_t *out) {
  const mlrt_setting *s = mlrt_setting_find(r, key);
  double v;
  char text[100];
  if (!s)
    return true;
  // Doubles hold whole numbers exactly up to 2^53; no setting is larger.
  if (!number_of(r, s, &v) || v != trunc(v) || fabs(v) > 0x1p53 || v < (double)lo || v > (double)hi)
    return mlrt_error_set(r->error, "`%s` must be a whole number from %lld to %lld, not %s", key,
                          (long long)lo, (long long)hi, value_text(r, s, text, sizeof text));
  *out = (int64_t)v;
  return true;
}

bool mlrt_setting_choice(const mlrt_reading *r, const char *key, const char *const *names,
                         int *out) {
  const mlrt_setting *s = mlrt_setting_find(r, key);
  if (!s)
    return true;
  for (int i = 0; s->kind == MLRT_SET_STR && names[i]; i++)
    if (strcmp(names[i], s->str) == 0) {
      *out = i;
      return true;
    }
  char known[200] = "", text[100];
  list_text(names, known, sizeof known);
  return mlrt_error_set(r->error, "`%s` must be one of: %s, not %s", key, known,
                        value_text(r, s, text, sizeof text));
}

bool mlrt_setting_bool(const mlrt_reading *r, const char *key, int *out) {
  static const char *const words[] = {"false", "true", NULL};
  const mlrt_setting *s = mlrt_setting_find(r, key);
  if (!s || s->kind == MLRT_SET_STR)
    return mlrt_setting_choice(r, key, words, out);
  int64_t v = 0;
  if (!mlrt_setting_int(r, key, 0, 1, &v))
    return false;
  *out = (int)v;
  return true;
}

static bool fraction(const mlrt_reading *r, const char *key, double *out) {
  const mlrt_setting *s = mlrt_setting_find(r, key);
  if (!s || (number_of(r, s, out) && *out >= 0 && *out <= 1))
    return true;
  char text[100];
  return mlrt_error_set(r->error, "`%s` must be a fraction from 0 to 1, not %s", key,
                        value_text(r, s, text, sizeof text));
}

bool mlrt_setting_range(const mlrt_reading *r, int64_t n, int64_t *lo, int64_t *hi) {
  double from = 0, to = 1;
  if (!fraction(r, "range_lo", &from) || !fraction(r, "range_hi", &to))
    return false;
  *lo = (int64_t)((double)n * from);
  *hi = to == 1 ? n : (int64_t)((double)n * to);
  if (*lo >= *hi)
    return mlrt_error_set(r->error, "the range %g%%..%g%% of %lld is empty", from * 100, to * 100,
                          (long long)n);
  return true;
}
