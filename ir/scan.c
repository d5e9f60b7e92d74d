// scan.c: reading the text form of the IR piece by piece. See scan.h.
#include "ir/scan.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER = 64 }; // characters

ir_scan scan_new(ir_arena *a, const ir_source *src, ir_diags *d) {
  return (ir_scan){.arena = a,
                   .src = src,
                   .diags = d,
                   .at = src->text,
                   .end = src->text + src->len,
                   .line_start = src->text};
}

// --- lines --------------------------------------------------------------------------------
static void skip_spaces(ir_scan *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r'))
    s->at++;
}

bool scan_at_end(ir_scan *s) {
  skip_spaces(s);
  return s->at == s->end || *s->at == '\n' || *s->at == '#';
}

static void skip_rest_of_line(ir_scan *s) {
  const char *newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
  s->at = newline ? newline + 1 : s->end;
}

bool scan_line(ir_scan *s) {
  if (s->again) {
    s->again = false;
    s->at = s->line_start;
    return true;
  }
  for (;;) {
    if (s->line)
      skip_rest_of_line(s);
    if (s->at == s->end)
      return false;
    s->line++;
    s->line_start = s->at;
    if (!scan_at_end(s))
      return true;
  }
}

static bool scan_loc_number(ir_scan *s, uint32_t *out) {
  int64_t v;
  if (!scan_int(s, &v))
    return false;
  if (v < 0 || v > UINT32_MAX)
    return scan_unexpected(s, "a line or column number");
  *out = (uint32_t)v;
  return true;
}

static bool scan_loc(ir_scan *s, ir_loc *loc) {
  s->at += strlen("loc");
  *loc = (ir_loc){.len = 1};
  return scan_expect(s, '(', "'('") && scan_loc_number(s, &loc->line) &&
         scan_expect(s, ':', "':'") && scan_loc_number(s, &loc->col) && scan_expect(s, ')', "')'");
}

bool scan_end(ir_scan *s, ir_loc *loc) {
  skip_spaces(s);
  if (loc && s->end - s->at > 4 && memcmp(s->at, "loc(", 4) == 0 && !scan_loc(s, loc))
    return false;
  return scan_at_end(s) || scan_unexpected(s, "the end of the line");
}

// --- places and errors ----------------------------------------------------------------------
static bool word_char(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '.';
}

ir_loc scan_from(const ir_scan *s, const char *from) {
  uint32_t len = s->at > from ? (uint32_t)(s->at - from) : 1;
  return (ir_loc){s->src, s->line, (uint32_t)(from - s->line_start) + 1, len};
}

ir_loc scan_here(ir_scan *s) {
  skip_spaces(s);
  uint32_t len = 0;
  const char *p = s->at;
  if (p < s->end && strchr("%@$", *p) && *p)
    len++;
  while (p + len < s->end && word_char(p[len]))
    len++;
  return (ir_loc){s->src, s->line, (uint32_t)(p - s->line_start) + 1, len ? len : 1};
}

bool scan_unexpected(ir_scan *s, const char *what) {
  bool at_end = scan_at_end(s);
  ir_loc loc = scan_here(s);
  unsigned char c = at_end ? 0 : (unsigned char)*s->at;
  if (at_end)
    diag_error(s->diags, loc, "E0102", "expected %s, found the end of the line", what);
  else if (c < 32 || c > 126)
    diag_error(s->diags, loc, "E0102", "expected %s, found the byte 0x%02x", what, c);
  else
    diag_error(s->diags, loc, "E0102", "expected %s, found '%.*s'", what,
               (int)(loc.len < 60 ? loc.len : 60), s->at);
  return false;
}

// --- pieces -----------------------------------------------------------------------------------
bool scan_peek(ir_scan *s, char c) {
  skip_spaces(s);
  return s->at < s->end && *s->at == c;
}

bool scan_accept(ir_scan *s, char c) {
  if (!scan_peek(s, c))
    return false;
  s->at++;
  return true;
}

bool scan_expect(ir_scan *s, char c, const char *what) {
  return scan_accept(s, c) || scan_unexpected(s, what);
}

const char *scan_name(ir_scan *s, const char *what) {
  skip_spaces(s);
  const char *from = s->at;
  while (s->at < s->end && word_char(*s->at))
    s->at++;
  if (s->at == from) {
    scan_unexpected(s, what);
    return NULL;
  }
  return ir_strndup(s->arena, from, (size_t)(s->at - from));
}

const char *scan_sigil_name(ir_scan *s, char sigil, const char *what) {
  if (!scan_peek(s, sigil)) {
    scan_unexpected(s, what);
    return NULL;
  }
  s->at++;
  if (s->at == s->end || !word_char(*s->at)) { // no space between the sign and the name
    s->at--;
    scan_unexpected(s, what);
    return NULL;
  }
  return scan_name(s, what);
}

// The characters a number may have, copied; false when there are none or too many.
static bool number_text(ir_scan *s, char text[MAX_NUMBER]) {
  skip_spaces(s);
  size_t n = 0;
  while (s->at + n < s->end && (word_char(s->at[n]) || s->at[n] == '-' || s->at[n] == '+'))
    n++;
  if (n == 0 || n >= MAX_NUMBER)
    return false;
  memcpy(text, s->at, n);
  text[n] = 0;
  return true;
}

bool scan_int(ir_scan *s, int64_t *out) {
  char text[MAX_NUMBER], *stop;
  if (!number_text(s, text))
    return scan_unexpected(s, "a whole number");
  errno = 0;
  *out = strtoll(text, &stop, 10);
  if (*stop || errno)
    return scan_unexpected(s, "a whole number of at most 64 bits");
  s->at += strlen(text);
  return true;
}

bool scan_number(ir_scan *s, double *out) {
  char text[MAX_NUMBER], *stop;
  if (!number_text(s, text))
    return scan_unexpected(s, "a number");
  *out = strtod(text, &stop);
  if (*stop || stop == text)
    return scan_unexpected(s, "a number");
  s->at += strlen(text);
  return true;
}

bool scan_ints(ir_scan *s, const int64_t **out, int *num) {
  IR_VEC(int64_t) list = {0};
  if (!scan_expect(s, '[', "'['"))
    return false;
  while (!scan_peek(s, ']')) {
    int64_t v;
    if ((list.num && !scan_expect(s, ',', "',' or ']'")) || !scan_int(s, &v))
      return false;
    IR_PUSH(s->arena, list, v);
  }
  s->at++;
  *out = list.at;
  *num = (int)list.num;
  return true;
}

static int hex_digit(char c) {
  const char *digits = "0123456789abcdef", *p = c ? strchr(digits, tolower((unsigned char)c)) : 0;
  return p ? (int)(p - digits) : -1;
}

// The character after a backslash; -1 when there is no such escape.
static int escaped(ir_scan *s) {
  static const char from[] = "nt\"\\", to[] = "\n\t\"\\";
  if (s->at == s->end)
    return -1;
  char c = *s->at++;
  if (c == 'x' && s->end - s->at >= 2 && hex_digit(s->at[0]) >= 0 && hex_digit(s->at[1]) >= 0) {
    int v = hex_digit(s->at[0]) * 16 + hex_digit(s->at[1]);
    s->at += 2;
    return v ? v : -1;
  }
  const char *p = c ? strchr(from, c) : NULL;
  return p ? to[p - from] : -1;
}

const char *scan_string(ir_scan *s) {
  ir_buf b = ir_buf_new(s->arena);
  const char *from = s->at;
  if (!scan_expect(s, '"', "a text in double quotes"))
    return NULL;
  while (s->at < s->end && *s->at != '"' && *s->at != '\n' && *s->at != 0) {
    int c = (unsigned char)*s->at++;
    if (c == '\\' && (c = escaped(s)) < 0) {
      diag_error(s->diags, scan_from(s, s->at - 1), "E0102", "unknown escape in a text");
      return NULL;
    }
    ir_buf_write(&b, &(char){(char)c}, 1);
  }
  if (s->at == s->end || *s->at != '"') {
    diag_error(s->diags, scan_from(s, from), "E0102", "text without its closing quote");
    return NULL;
  }
  s->at++;
  return ir_strdup(s->arena, ir_buf_str(&b));
}

// --- types -------------------------------------------------------------------------------------
static bool unknown_dtype(ir_scan *s, const char *from, const char *name) {
  const char *names[IR_NUM_DTYPES];
  for (int i = 0; i < IR_NUM_DTYPES; i++)
    names[i] = ir_dtypes[i].name;
  ir_diag *d = diag_error(s->diags, scan_from(s, from), "E0105", "unknown element type '%s'", name);
  const char *near = diag_nearest(name, names, IR_NUM_DTYPES);
  if (near)
    diag_help(d, "did you mean '%s'?", near);
  return false;
}

bool scan_type(ir_scan *s, ir_type *out) {
  skip_spaces(s);
  const char *from = s->at;
  const char *name = scan_name(s, "a type such as f32[64,10]");
  if (!name)
    return false;
  ir_dtype t;
  if (!ir_dtype_from_name(name, &t))
    return unknown_dtype(s, from, name);
  const int64_t *dims;
  int rank;
  if (!scan_ints(s, &dims, &rank))
    return false;
  if (rank > IR_MAX_RANK) {
    diag_error(s->diags, scan_from(s, from), "E0105", "rank %d is too high: at most %d", rank,
               IR_MAX_RANK);
    return false;
  }
  *out = ir_tensor(t, rank, dims);
  return true;
}
