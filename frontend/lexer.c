// lexer.c: characters to tokens. Two places need a look around: `<-` stores only after a name
// that starts a statement (so that `a <-b` compares), and `90%` is a fraction only where no
// operand of a remainder follows.
#include "frontend/lexer.h"

#include "ir/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct lexer {
  ir_arena *arena;
  ir_diags *diags, *silent; // silent: for the rest of a broken line
  const ir_source *src;
  const char *at, *end, *line_start;
  uint32_t line, broken_line; // broken: it lacks a quote
  int open;                   // ( and [
  fe_tokens out;
} lexer;

static const char *const token_texts[TOK_NUM_KINDS] = {[TOK_END] = "end of file",
                                                       [TOK_NEWLINE] = "end of line",
                                                       [TOK_NAME] = "name",
                                                       [TOK_INT] = "number",
                                                       [TOK_FLOAT] = "number",
                                                       [TOK_FRACTION] = "percentage",
                                                       [TOK_STRING] = "text",
#define TOKEN(NAME, text) [TOK_##NAME] = "'" text "'",
                                                       FE_PUNCTUATION(TOKEN) FE_KEYWORDS(TOKEN)
#undef TOKEN
};

const char *fe_token_text(fe_token_kind kind) {
  return token_texts[kind];
}

static ir_loc loc_from(const lexer *x, const char *start) {
  size_t len = (size_t)(x->at - start);
  return (ir_loc){x->src, x->line, (uint32_t)(start - x->line_start) + 1,
                  (uint32_t)(len ? len : 1)};
}

static fe_token *push(lexer *x, fe_token_kind kind, const char *start) {
  fe_token t = {.kind = kind, .loc = loc_from(x, start), .broken = x->line == x->broken_line};
  IR_PUSH(x->arena, x->out.list, t);
  return &x->out.list.at[x->out.list.num - 1];
}

static bool name_start(char c) {
  return isalpha((unsigned char)c) || c == '_';
}

static bool name_char(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

// In bytes, of the character that begins there; a byte that begins none is one.
static size_t char_size(const char *at) {
  uint32_t c;
  size_t len = ir_utf8_character(at, &c);
  return len ? len : 1;
}

// A letter or digit that names here cannot have, such as a Greek one: it is reported with the whole name.
static bool is_foreign_letter(const char *at) {
  uint32_t c;
  if (ir_utf8_character(at, &c) < 2)
    return false;
  bool sign = c < 0xc0 ? c != 0xb5 : c == 0xd7 || c == 0xf7; // micro; times, divided by
  return !sign && (c < 0x2000 || (c >= 0x2070 && c < 0x20a0) || (c >= 0x3040 && c < 0xd800));
}

static void newline(lexer *x) {
  const char *start = x->at++;
  push(x, TOK_NEWLINE, start);
  x->line++;
  x->line_start = x->at;
}

static ir_diags *diags_here(const lexer *x) {
  return x->line == x->broken_line ? x->silent : x->diags;
}

// False where it has a letter that it cannot have.
static bool skip_name(lexer *x) {
  bool plain = true;
  for (; name_char(*x->at) || is_foreign_letter(x->at); x->at += char_size(x->at))
    plain = plain && name_char(*x->at);
  return plain;
}

static void lex_name(lexer *x) {
  static const struct {
    const char *text;
    fe_token_kind kind;
  } keywords[] = {
#define TOKEN(NAME, text) {text, TOK_##NAME},
      FE_KEYWORDS(TOKEN)
#undef TOKEN
  };
  const char *start = x->at;
  if (!skip_name(x)) {
    ir_diag *d = diag_error(diags_here(x), loc_from(x, start), "E0001",
                            "a name with a letter that names cannot have");
    diag_help(d, "they consist of a to z, A to Z, 0 to 9 and _");
  }
  size_t len = (size_t)(x->at - start);
  for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
    if (strlen(keywords[i].text) == len && memcmp(keywords[i].text, start, len) == 0) {
      push(x, keywords[i].kind, start);
      return;
    }
  push(x, TOK_NAME, start)->text = ir_strndup(x->arena, start, len);
}

// What can stand on the right of an operator: not `if`, `)` or another operator, but a minus.
static bool operand_begins(const char *p) {
  static const char *const infix[] = {"if", "else", "and", "or"};
  size_t len = 0;
  while (name_char(p[len]))
    len++;
  for (size_t i = 0; i < sizeof infix / sizeof infix[0]; i++)
    if (strlen(infix[i]) == len && memcmp(infix[i], p, len) == 0)
      return false;
  return len > 0 || is_foreign_letter(p) || (*p == '.' && p[1] != '.') ||
         (*p && strchr("([\"-", *p));
}

// After a number: is the '%' at x->at a percent sign? `90%..`, `90%)`, `90% * x` or at a line's end.
static bool percent_sign(const lexer *x) {
  if (*x->at != '%')
    return false;
  const char *p = x->at + 1;
  while (*p == ' ' || *p == '\t')
    p++;
  return !operand_begins(p);
}

static void skip_digits(lexer *x) {
  while (isdigit((unsigned char)*x->at))
    x->at++;
}

// The extent of a number; true when it has a fraction or exponent.
static bool scan_number(lexer *x) {
  bool is_float = false;
  skip_digits(x);
  if (x->at[0] == '.' && x->at[1] != '.') {
    is_float = true;
    x->at++;
    skip_digits(x);
  }
  if (*x->at == 'e' || *x->at == 'E') {
    const char *p = x->at + 1;
    p += *p == '+' || *p == '-';
    if (isdigit((unsigned char)*p)) {
      is_float = true;
      x->at = p;
      skip_digits(x);
    }
  }
  return is_float;
}

static void bad_number(lexer *x, const char *start, const char *why) {
  ir_diag *n = diag_error(diags_here(x), loc_from(x, start), "E0002", "malformed number");
  diag_label(n, "%s", why);
}

// 0, 0.00, 0e9
static bool is_written_zero(const char *text) {
  char c = text[strspn(text, "0.")];
  return c == 0 || c == 'e' || c == 'E';
}

static void lex_number(lexer *x) {
  const char *start = x->at;
  bool is_float = scan_number(x);
  char *text = ir_strndup(x->arena, start, (size_t)(x->at - start));
  if (name_start(*x->at)) {
    while (name_char(*x->at))
      x->at++;
    bad_number(x, start, "a name cannot start with a digit");
  }
  bool fraction = percent_sign(x);
  x->at += fraction;
  fe_token *t = push(x, fraction ? TOK_FRACTION : is_float ? TOK_FLOAT : TOK_INT, start);
  // "1." would run into a following "..": its canonical form has a digit.
  t->text = text[strlen(text) - 1] == '.' ? ir_format(x->arena, "%s0", text) : text;
  t->num = strtod(text, NULL);
  if (t->num > 1e308)
    bad_number(x, start, "too large");
  if (t->num == 0 && !is_written_zero(text))
    bad_number(x, start, "too small: it would be 0");
  if (fraction)
    t->num /= 100;
  if (t->kind != TOK_INT)
    return;
  errno = 0;
  t->i = strtoll(text, NULL, 10);
  if (errno == ERANGE)
    bad_number(x, start, "does not fit in 64 bits");
}

// The character behind a backslash at x->at, which it goes past.
static char escaped(lexer *x) {
  const char *start = x->at - 1;
  char c = *x->at++;
  if (c != 'n' && c != 't' && c != '"' && c != '\\') {
    ir_diag *d = diag_error(diags_here(x), loc_from(x, start), "E0001",
                            "a backslash in a text with nothing that it could stand for");
    diag_help(d, "there are \\n, \\t, \\\" and \\\\, which is the backslash itself");
  }
  return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

// The text was meant to end somewhere on its line, probably before the next ',' or ')'. A guess: whatever stands on the
// line is not reported further.
static void unclosed_string(lexer *x, const char *start) {
  ir_diag *d =
      diag_error(diags_here(x), loc_from(x, start), "E0003", "text without its closing quote");
  diag_label(d, "starts here");
  x->broken_line = x->line;
  bool another = false;
  for (size_t i = x->out.list.num; i-- > 0 && x->out.list.at[i].loc.line == x->line;) {
    x->out.list.at[i].broken = true;
    another = another || x->out.list.at[i].kind == TOK_STRING;
  }
  if (another)
    diag_help(d, "or a text before it on this line lacks its own");
  const char *end = start + strcspn(start, ",)\n");
  x->at = end < x->at ? end : x->at;
}

static void lex_string(lexer *x) {
  const char *start = x->at++;
  ir_buf b = ir_buf_new(x->arena);
  while (x->at < x->end && *x->at != '"' && *x->at != '\n') {
    char c = *x->at++;
    if (c == '\\' && x->at < x->end && *x->at != '\n')
      c = escaped(x);
    if (c)
      ir_buf_write(&b, &c, 1);
  }
  if (x->at < x->end && *x->at == '"')
    x->at++;
  else
    unclosed_string(x, start);
  push(x, TOK_STRING, start)->text = ir_strdup(x->arena, ir_buf_str(&b));
}

// `<-` stores where the last two tokens are the start of a statement and a name, which no line inside of parentheses is.
static bool store_position(const lexer *x) {
  size_t n = x->out.list.num;
  if (x->open > 0 || n == 0 || x->out.list.at[n - 1].kind != TOK_NAME)
    return false;
  fe_token_kind before = n > 1 ? x->out.list.at[n - 2].kind : TOK_NEWLINE;
  return before == TOK_NEWLINE || before == TOK_LBRACE || before == TOK_SEMICOLON ||
         before == TOK_RBRACE;
}

// Braces stand in none: what a missing parenthesis leaves open ends there.
static void count_open(lexer *x, fe_token_kind kind) {
  if (kind == TOK_LPAREN || kind == TOK_LBRACKET)
    x->open++;
  else if ((kind == TOK_RPAREN || kind == TOK_RBRACKET) && x->open > 0)
    x->open--;
  else if (kind == TOK_LBRACE || kind == TOK_RBRACE)
    x->open = 0;
}

static bool lex_punctuation(lexer *x) {
  static const struct {
    const char *text;
    fe_token_kind kind;
  } marks[] = {
#define TOKEN(NAME, text) {text, TOK_##NAME},
      FE_PUNCTUATION(TOKEN)
#undef TOKEN
  };
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    size_t len = strlen(marks[i].text);
    if (strncmp(x->at, marks[i].text, len) != 0)
      continue;
    if (marks[i].kind == TOK_STORE && !store_position(x))
      continue;
    const char *start = x->at;
    x->at += len;
    push(x, marks[i].kind, start);
    count_open(x, marks[i].kind);
    return true;
  }
  return false;
}

// What texts that were set by word processors have in the place of ours.
static const struct {
  const char *there, *what, *here;
} alike[] = {
    {"\u00a0", "a no-break space", "a space"},
    {"\u200b", "a space without width", "nothing"},
    {"\ufeff", "a byte order mark", "nothing"},
    {"\u201c", "a typographic quote", "\""},
    {"\u201d", "a typographic quote", "\""},
    {"\u201e", "a typographic quote", "\""},
    {"\u2018", "a typographic quote", "\""},
    {"\u2019", "a typographic quote", "\""},
    {"\u2013", "a dash", "-"},
    {"\u2014", "a dash", "-"},
    {"\u2212", "a typographic minus", "-"},
    {"\u00d7", "a multiplication sign", "*"},
    {"\u2026", "one character", "..."},
};

static void help_alike(ir_diag *d, const char *at, size_t len) {
  for (size_t i = 0; i < sizeof alike / sizeof alike[0]; i++)
    if (strlen(alike[i].there) == len && strncmp(alike[i].there, at, len) == 0)
      diag_help(d, "it is %s: write %s", alike[i].what, alike[i].here);
}

// What other languages write for it; the parser goes on as if it stood there.
static const struct {
  const char *there, *here;
  fe_token_kind kind;
} operators[] = {
    {"&&", "and", TOK_AND}, {"&", "and", TOK_AND}, {"||", "or", TOK_OR},
    {"|", "or", TOK_OR},    {"!", "not", TOK_NOT},
};

static bool lex_foreign_operator(lexer *x) {
  for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
    size_t len = strlen(operators[i].there);
    if (strncmp(x->at, operators[i].there, len) != 0)
      continue;
    const char *start = x->at;
    x->at += len;
    ir_diag *d = diag_error(diags_here(x), loc_from(x, start), "E0001", "unexpected '%s'",
                            operators[i].there);
    diag_help(d, "here it is written %s", operators[i].here);
    push(x, operators[i].kind, start);
    return true;
  }
  return false;
}

// 'abc', where both quotes stand on one line.
static bool lex_single_quoted(lexer *x) {
  size_t len = *x->at == '\'' ? strcspn(x->at + 1, "'\n") : 0;
  if (len == 0 || x->at[len + 1] != '\'')
    return false;
  const char *start = x->at;
  x->at += len + 2;
  ir_diag *d =
      diag_error(diags_here(x), loc_from(x, start), "E0001", "a text between single quotes");
  diag_help(d, "write \"%.*s\"", (int)len, start + 1);
  push(x, TOK_STRING, start)->text = ir_strndup(x->arena, start + 1, len);
  return true;
}

static void bad_character(lexer *x) {
  const char *start = x->at;
  unsigned char c = (unsigned char)*start;
  x->at += char_size(start);
  ir_loc at = loc_from(x, start);
  if (c < 0x20 || c >= 0x7f) {
    ir_diag *d = diag_error(diags_here(x), at, "E0001", "unexpected character (byte 0x%02x)", c);
    help_alike(d, start, (size_t)(x->at - start));
    return;
  }
  ir_diag *d = diag_error(diags_here(x), at, "E0001", "unexpected character '%c'", c);
  if (c != '.')
    return;
  diag_help(d, "values have no methods: relu(x), shape(x)[0]");
  while (x->at < x->end && name_char(*x->at)) // "shape" of x.shape is no second mistake
    x->at++;
}

static void lex_one(lexer *x) {
  char c = *x->at;
  if (c == '\n')
    newline(x);
  else if (c == ' ' || c == '\t' || c == '\r')
    x->at++;
  else if (c == '#')
    while (x->at < x->end && *x->at != '\n')
      x->at++;
  else if (name_start(c) || is_foreign_letter(x->at))
    lex_name(x);
  else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)x->at[1])))
    lex_number(x);
  else if (c == '"')
    lex_string(x);
  else if (!lex_punctuation(x) && !lex_foreign_operator(x) && !lex_single_quoted(x))
    bad_character(x);
}

// Each byte of a program or an archive would be a mistake of its own: the first 0 is the only one.
static void check_text(lexer *x) {
  const char *begin = x->at, *zero = memchr(begin, '\0', (size_t)(x->end - begin));
  if (!zero)
    return;
  for (; x->at < zero; x->at++)
    if (*x->at == '\n') {
      x->line++;
      x->line_start = x->at + 1;
    }
  ir_diag *d = diag_error(x->diags, loc_from(x, zero), "E0001",
                          "this is not a text file: it has bytes of 0");
  if (strncmp(begin, "\xff\xfe", 2) == 0 || strncmp(begin, "\xfe\xff", 2) == 0)
    diag_help(d, "it is text in UTF-16: save it as UTF-8");
  x->at = x->end;
}

fe_tokens fe_lex(ir_arena *a, const ir_source *src, ir_diags *d) {
  lexer x = {.arena = a, .diags = d, .silent = diag_new(a), .src = src, .line = 1};
  x.at = x.line_start = src->text;
  x.end = src->text + src->len;
  check_text(&x);
  while (x.at < x.end)
    lex_one(&x);
  push(&x, TOK_NEWLINE, x.at);
  push(&x, TOK_END, x.at);
  return x.out;
}
