// diag.c: collects messages for the person who wrote the file, sorts them by place and prints
// them with source line, underline, notes and help, or as JSON for editors.
#include "ir/diag.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/json.h"

enum { MAX_KEPT = 50, TAB_WIDTH = 8, MAX_LINE = 400 };

typedef struct note {
  ir_loc at;
  const char *text;
} note;

struct ir_diag {
  ir_diags *owner;
  bool error;
  ir_loc at;
  const char *code, *message, *label;
  size_t order; // of creation: keeps the sort stable
  IR_VEC(note) notes;
  IR_VEC(const char *) help;
};

typedef enum severity { WARNING, ERROR, NUM_SEVERITIES } severity;

struct ir_diags {
  ir_arena *arena;
  size_t num[NUM_SEVERITIES];
  ir_diag overflow; // swallows what is added to diagnostics beyond the cap
  IR_VEC(ir_diag *) kept;
  size_t said;                          // of `kept`: they are not printed again
  size_t num_said_more[NUM_SEVERITIES]; // "more not shown", likewise
};

static const struct {
  const char *code, *text;
} codes[] = {
#define CODE(code, title, text) {code, code ": " title "\n\n" text},
#include "ir/diag_codes.def"
#undef CODE
};
enum { NUM_CODES = sizeof codes / sizeof codes[0] };

// --- collecting --------------------------------------------------------------------------------
const char *ir_place(ir_arena *a, ir_loc at) {
  return at.file ? ir_format(a, "%s:%u", at.file->path, at.line) : NULL;
}

ir_diags *diag_new(ir_arena *a) {
  ir_diags *d = IR_NEW(a, ir_diags);
  d->arena = a;
  d->overflow.owner = d;
  return d;
}

static const char *format(ir_arena *a, const char *fmt, va_list ap) {
  ir_buf b = ir_buf_new(a);
  ir_buf_vprintf(&b, fmt, ap);
  return ir_buf_str(&b);
}

static bool known_code(const char *code) {
  for (size_t i = 0; i < NUM_CODES; i++)
    if (strcmp(codes[i].code, code) == 0)
      return true;
  return false;
}

// Each severity has its own cap: many warnings must not hide the error behind them.
static ir_diag *start(ir_diags *d, bool error, ir_loc at, const char *code, const char *fmt,
                      va_list ap) {
  BUG_IF(!known_code(code), "diagnostic code %s is not in diag_codes.def", code);
  if (++d->num[error ? ERROR : WARNING] > MAX_KEPT)
    return &d->overflow;
  ir_diag *n = IR_NEW(d->arena, ir_diag);
  n->owner = d;
  n->error = error;
  n->at = at;
  n->code = ir_strdup(d->arena, code);
  n->message = format(d->arena, fmt, ap);
  n->order = d->kept.num;
  IR_PUSH(d->arena, d->kept, n);
  return n;
}

ir_diag *diag_error(ir_diags *d, ir_loc at, const char *code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  ir_diag *n = start(d, true, at, code, fmt, ap);
  va_end(ap);
  return n;
}

ir_diag *diag_warning(ir_diags *d, ir_loc at, const char *code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  ir_diag *n = start(d, false, at, code, fmt, ap);
  va_end(ap);
  return n;
}

static bool dropped(const ir_diag *n) {
  return n == &n->owner->overflow;
}

void diag_label(ir_diag *n, const char *fmt, ...) {
  if (dropped(n))
    return;
  va_list ap;
  va_start(ap, fmt);
  n->label = format(n->owner->arena, fmt, ap);
  va_end(ap);
}

void diag_note(ir_diag *n, ir_loc at, const char *fmt, ...) {
  if (dropped(n))
    return;
  va_list ap;
  va_start(ap, fmt);
  note x = {at, format(n->owner->arena, fmt, ap)};
  va_end(ap);
  IR_PUSH(n->owner->arena, n->notes, x);
}

void diag_help(ir_diag *n, const char *fmt, ...) {
  if (dropped(n))
    return;
  va_list ap;
  va_start(ap, fmt);
  const char *text = format(n->owner->arena, fmt, ap);
  va_end(ap);
  IR_PUSH(n->owner->arena, n->help, text);
}

size_t diag_num_errors(const ir_diags *d) {
  return d->num[ERROR];
}

static size_t num_dropped(const ir_diags *d, severity s) {
  return d->num[s] > MAX_KEPT ? d->num[s] - MAX_KEPT : 0;
}

void diag_are_said(ir_diags *d) {
  d->said = d->kept.num;
  for (int s = 0; s < NUM_SEVERITIES; s++)
    d->num_said_more[s] = num_dropped(d, (severity)s);
}

// --- order ---------------------------------------------------------------------------------------
static int by_place(const void *pa, const void *pb) {
  const ir_diag *a = *(ir_diag *const *)pa, *b = *(ir_diag *const *)pb;
  if (a->at.file == b->at.file) {
    if (a->at.line != b->at.line)
      return a->at.line < b->at.line ? -1 : 1;
    if (a->at.col != b->at.col)
      return a->at.col < b->at.col ? -1 : 1;
  }
  // Different files keep the order of creation only as a whole: compare by path, so that the
  // order is total.
  else {
    const char *pathA = a->at.file ? a->at.file->path : "";
    const char *pathB = b->at.file ? b->at.file->path : "";
    int c = strcmp(pathA, pathB);
    if (c)
      return c;
  }
  return a->order < b->order ? -1 : a->order > b->order;
}

static ir_diag **sorted(const ir_diags *d, size_t *num) {
  *num = d->kept.num - d->said;
  ir_diag **list = IR_NEW_ARRAY(d->arena, ir_diag *, *num + 1);
  if (*num)
    memcpy(list, d->kept.at + d->said, *num * sizeof *list);
  qsort(list, *num, sizeof *list, by_place);
  return list;
}

// "10 more errors not shown"; NULL: all are.
static const char *what_is_dropped(const ir_diags *d, severity s) {
  static const char *const names[NUM_SEVERITIES] = {"warning", "error"};
  size_t more = num_dropped(d, s) - d->num_said_more[s];
  return more ? ir_format(d->arena, "%zu more %s%s not shown", more, names[s], more == 1 ? "" : "s")
              : NULL;
}

// --- the human form ------------------------------------------------------------------------------
typedef struct printer {
  FILE *out;
  bool color;
} printer;

static const char *paint(const printer *p, const char *escape) {
  return p->color ? escape : "";
}
#define RED    "\033[1;31m"
#define YELLOW "\033[1;35m"
#define BLUE   "\033[1;34m"
#define CYAN   "\033[1;36m"
#define BOLD   "\033[1m"
#define PLAIN  "\033[0m"

static void print_place(const printer *p, ir_loc at) {
  fputs(paint(p, BOLD), p->out);
  fputs(at.file ? at.file->path : "mltc", p->out);
  if (at.file && at.line)
    fprintf(p->out, ":%u:%u", at.line, at.col ? at.col : 1);
  fprintf(p->out, ":%s ", paint(p, PLAIN));
}

// The text of line `line`, without its end; NULL when the file has no such line.
static const char *find_line(const ir_source *s, uint32_t line, size_t *len) {
  const char *at = s->text, *end = s->text + s->len;
  for (uint32_t i = 1; i < line; i++) {
    const char *nl = memchr(at, '\n', (size_t)(end - at));
    if (!nl)
      return NULL;
    at = nl + 1;
  }
  const char *nl = memchr(at, '\n', (size_t)(end - at));
  *len = (size_t)((nl ? nl : end) - at);
  if (*len && at[*len - 1] == '\r')
    --*len;
  return at;
}

// Prints one source line with tabs expanded and control bytes shown as '?'.
static void print_text(FILE *out, const char *text, size_t len) {
  size_t column = 0;
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '\t') {
      do
        fputc(' ', out);
      while (++column % TAB_WIDTH);
      continue;
    }
    fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
    column += (c & 0xc0) != 0x80; // continuation bytes of UTF-8 take no column
  }
}

// The printed column of byte `byte` of the line.
static size_t shown_column(const char *text, size_t len, size_t byte) {
  size_t column = 0;
  for (size_t i = 0; i < byte && i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '\t')
      column = (column / TAB_WIDTH + 1) * TAB_WIDTH;
    else
      column += (c & 0xc0) != 0x80;
  }
  return column;
}

static void print_underline(const printer *p, const char *text, size_t len, ir_loc at,
                            const char *label, const char *color) {
  size_t from = at.col - 1, to = from + (at.len ? at.len : 1);
  if (to > len)
    to = len;
  size_t a = shown_column(text, len, from), b = shown_column(text, len, to);
  fprintf(p->out, "%s      | %s", paint(p, BLUE), paint(p, color));
  for (size_t i = 0; i < a; i++)
    fputc(' ', p->out);
  fputc('^', p->out);
  for (size_t i = a + 1; i < b; i++)
    fputc('~', p->out);
  if (label)
    fprintf(p->out, " %s", label);
  fprintf(p->out, "%s\n", paint(p, PLAIN));
}

// A long line is cut to a window around the place.
static void cut_line(const char **text, size_t *len, ir_loc *at) {
  if (*len <= MAX_LINE)
    return;
  size_t from = at->col > MAX_LINE / 4 ? at->col - MAX_LINE / 4 : 0;
  if (from > *len)
    from = *len;
  *text += from;
  *len = *len - from < MAX_LINE ? *len - from : MAX_LINE;
  at->col -= (uint32_t)from;
}

static void print_source(const printer *p, ir_loc at, const char *label, const char *color) {
  size_t len;
  const char *text = at.file && at.line ? find_line(at.file, at.line, &len) : NULL;
  if (!text) {
    if (label)
      fprintf(p->out, "  %s\n", label);
    return;
  }
  uint32_t line = at.line;
  if (at.col)
    cut_line(&text, &len, &at);
  fprintf(p->out, "%s%5u | %s", paint(p, BLUE), line, paint(p, PLAIN));
  print_text(p->out, text, len);
  fputc('\n', p->out);
  if (at.col)
    print_underline(p, text, len, at, label, color);
}

static void print_one(const printer *p, const ir_diag *n) {
  const char *color = n->error ? RED : YELLOW;
  print_place(p, n->at);
  fprintf(p->out, "%s%s[%s]:%s %s%s%s\n", paint(p, color), n->error ? "error" : "warning", n->code,
          paint(p, PLAIN), paint(p, BOLD), n->message, paint(p, PLAIN));
  print_source(p, n->at, n->label, color);
  for (size_t i = 0; i < n->notes.num; i++) {
    if (n->notes.at[i].at.file)
      print_place(p, n->notes.at[i].at);
    fprintf(p->out, "%snote:%s %s\n", paint(p, CYAN), paint(p, PLAIN), n->notes.at[i].text);
    print_source(p, n->notes.at[i].at, NULL, CYAN);
  }
  for (size_t i = 0; i < n->help.num; i++)
    fprintf(p->out, "%shelp:%s %s\n", paint(p, CYAN), paint(p, PLAIN), n->help.at[i]);
}

void diag_print(const ir_diags *d, FILE *out, bool color) {
  printer p = {out, color};
  size_t num;
  ir_diag **list = sorted(d, &num);
  for (size_t i = 0; i < num; i++)
    print_one(&p, list[i]);
  for (int s = 0; s < NUM_SEVERITIES; s++) {
    const char *more = what_is_dropped(d, (severity)s);
    if (more)
      fprintf(out, "%s\n", more);
  }
}

// --- JSON ----------------------------------------------------------------------------------------
static void add_text(json_object *o, const char *key, const char *text) {
  json_object_object_add(o, key, ir_json_text(text));
}

static void add_place(json_object *o, ir_loc at) {
  add_text(o, "file", at.file ? at.file->path : NULL);
  json_object_object_add(o, "line", json_object_new_int((int32_t)at.line));
  json_object_object_add(o, "column", json_object_new_int((int32_t)at.col));
  json_object_object_add(o, "length", json_object_new_int((int32_t)at.len));
}

static json_object *notes_json(const ir_diag *n) {
  json_object *list = json_object_new_array();
  for (size_t i = 0; i < n->notes.num; i++) {
    json_object *o = json_object_new_object();
    add_text(o, "message", n->notes.at[i].text);
    add_place(o, n->notes.at[i].at);
    json_object_array_add(list, o);
  }
  return list;
}

static json_object *help_json(const ir_diag *n) {
  json_object *list = json_object_new_array();
  for (size_t i = 0; i < n->help.num; i++)
    json_object_array_add(list, ir_json_text(n->help.at[i]));
  return list;
}

static void print_json(const ir_diag *n, const char *severity, FILE *out) {
  json_object *o = json_object_new_object();
  add_text(o, "severity", severity);
  add_text(o, "code", n->code);
  add_text(o, "message", n->message);
  add_place(o, n->at);
  add_text(o, "label", n->label);
  json_object_object_add(o, "notes", notes_json(n));
  json_object_object_add(o, "help", help_json(n));
  fprintf(
      out, "%s\n",
      json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
  json_object_put(o);
}

void diag_print_json(const ir_diags *d, FILE *out) {
  size_t num;
  ir_diag **list = sorted(d, &num);
  for (size_t i = 0; i < num; i++)
    print_json(list[i], list[i]->error ? "error" : "warning", out);
  for (int s = 0; s < NUM_SEVERITIES; s++) {
    const char *more = what_is_dropped(d, (severity)s);
    if (more)
      diag_print_json_text("note", more, out);
  }
}

void diag_print_json_text(const char *severity, const char *text, FILE *out) {
  ir_arena *a = ir_arena_new();
  ir_diag n = {.owner = diag_new(a)};
  for (const char *line = text; *line;) {
    size_t indent = strspn(line, " "), len = strcspn(line, "\n");
    char *copy = ir_strndup(a, line + indent, len > indent ? len - indent : 0);
    if (!n.message)
      n.message = copy;
    else if (*copy)
      diag_note(&n, (ir_loc){0}, "%s", copy);
    line += len + (line[len] == '\n');
  }
  print_json(&n, severity, out);
  ir_arena_free(a);
}

// --- --explain, did you mean ---------------------------------------------------------------------
const char *diag_explain(const char *code) {
  for (size_t i = 0; i < NUM_CODES; i++)
    if (strcmp(codes[i].code, code) == 0)
      return codes[i].text;
  return NULL;
}

enum { MAX_WORD = 63 };

static size_t min3(size_t a, size_t b, size_t c) {
  size_t m = a < b ? a : b;
  return m < c ? m : c;
}

static bool same_letter(char a, char b) {
  return tolower((unsigned char)a) == tolower((unsigned char)b);
}

// Edits (insert, delete, replace, swap neighbours) from a to b; both at most MAX_WORD long.
static size_t distance(const char *a, size_t na, const char *b, size_t nb) {
  size_t rows[3][MAX_WORD + 1];
  size_t *before = rows[0], *last = rows[1], *now = rows[2];
  for (size_t j = 0; j <= nb; j++)
    last[j] = j;
  for (size_t i = 1; i <= na; i++) {
    now[0] = i;
    for (size_t j = 1; j <= nb; j++) {
      now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + !same_letter(a[i - 1], b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          before[j - 2] + 1 < now[j])
        now[j] = before[j - 2] + 1;
    }
    size_t *oldest = before;
    before = last;
    last = now;
    now = oldest;
  }
  return last[nb];
}

const char *diag_nearest(const char *word, const char *const *names, size_t n) {
  size_t len = strlen(word), best = len < 3 ? 2 : 2 + (len - 1) / 3;
  const char *found = NULL;
  if (!len || len > MAX_WORD)
    return NULL;
  for (size_t i = 0; i < n; i++) {
    size_t other = names[i] ? strlen(names[i]) : 0;
    if (!other || other > MAX_WORD)
      continue;
    size_t d = distance(word, len, names[i], other);
    // A word of which every letter changes is not near.
    if (d < best && d < (len > other ? len : other)) {
      best = d;
      found = names[i];
    }
  }
  return found;
}
