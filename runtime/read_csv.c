// read_csv.c: tables of numbers. A column, or several, can be the label: the second input.
//
// The text is read twice: lines are counted, then the numbers of the wanted rows are stored in the
// dtypes of the inputs, so that a batch is a plain copy later. The text itself is let go.
#include "runtime/data_reader.h"
#include "runtime/number_io.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct text_line {
  const uint8_t *at, *end; // without its end-of-line
  int64_t number;          // from 1
} text_line;

typedef struct csv {
  mlrt_reading *r;
  const mlrt_file *file;
  uint8_t delimiter;
  int columns, columns_line;  // of the first row, and its line number
  int label_first, label_num; // columns [label_first, label_first + label_num)
  text_line header;           // number 0: there is none
  char *row[2];               // where the present row of an input goes
} csv;

// --- lines and columns -----------------------------------------------------------------------
static bool is_space(uint8_t c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// A row of nothing but delimiters has columns, which are empty.
static bool is_blank(const csv *c, const text_line *l) {
  const uint8_t *at = l->at;
  while (at < l->end && is_space(*at) && *at != c->delimiter)
    at++;
  return at == l->end;
}

static text_line before_first(const mlrt_file *f) {
  bool mark = f->len >= 3 && memcmp(f->data, "\xef\xbb\xbf", 3) == 0; // byte order mark
  const uint8_t *start = f->data + (mark ? 3 : 0);
  return (text_line){start, start, 0};
}

// The next line that is not blank.
static bool next_line(const csv *c, text_line *l) {
  const uint8_t *end = c->file->data + c->file->len;
  do {
    l->at = l->number == 0 ? l->at : l->end + 1;
    if (l->at >= end)
      return false;
    const uint8_t *newline = memchr(l->at, '\n', (size_t)(end - l->at));
    l->end = newline ? newline : end;
    l->number++;
  } while (is_blank(c, l));
  return true;
}

// The column that begins at *at: without spaces and quotes around it; *at moves behind its
// delimiter. False after the last.
static bool next_column(const csv *c, const text_line *l, const uint8_t **at, text_line *out) {
  if (*at > l->end)
    return false;
  const uint8_t *stop = memchr(*at, c->delimiter, (size_t)(l->end - *at));
  out->at = *at;
  out->end = stop ? stop : l->end;
  *at = out->end + 1;
  while (out->at < out->end && is_space(*out->at))
    out->at++;
  while (out->end > out->at && is_space(out->end[-1]))
    out->end--;
  if (out->end - out->at >= 2 && *out->at == '"' && out->end[-1] == '"') {
    out->at++;
    out->end--;
  }
  return true;
}

typedef struct line_kind {
  int columns, numbers, words; // words: neither empty nor numbers
} line_kind;

static line_kind look_at_line(const csv *c, const text_line *l) {
  line_kind k = {0};
  text_line column;
  double v;
  for (const uint8_t *at = l->at; next_column(c, l, &at, &column); k.columns++) {
    bool number = mlrt_parse_number(column.at, column.end - column.at, &v);
    k.numbers += number;
    k.words += !number && column.at < column.end;
  }
  return k;
}

// --- settings --------------------------------------------------------------------------------
static bool read_delimiter(csv *c) {
  const mlrt_setting *s = mlrt_setting_find(c->r, "delimiter");
  c->delimiter = ',';
  if (!s)
    return true;
  const char *text = s->kind == MLRT_SET_STR ? s->str : "";
  if (strcmp(text, "tab") == 0 || strcmp(text, "\\t") == 0)
    text = "\t";
  if (strlen(text) != 1 || strchr("\"\n\r+-.0123456789eE", text[0]))
    return mlrt_error_set(c->r->error, "`delimiter` must be one character or \"tab\", not `%s`",
                          text);
  c->delimiter = (uint8_t)text[0];
  return true;
}

enum { MAX_SHOWN = 48 };

// Its beginning, for messages.
static void show(const text_line *text, char shown[MAX_SHOWN]) {
  int64_t len = text->end - text->at;
  int n = len > 40 ? 40 : (int)len;
  for (int i = 0; i < n; i++)
    shown[i] = text->at[i] < 32 || text->at[i] > 126 ? '?' : (char)text->at[i];
  snprintf(shown + n, (size_t)(MAX_SHOWN - n), "%s", len > 40 ? "..." : "");
}

// How many columns of the header have the name, and in *last the last of them; *num: of how many in all.
static int count_name(const csv *c, const char *name, int *last, int *num) {
  int found = 0;
  text_line column;
  *num = 0;
  for (const uint8_t *at = c->header.at; next_column(c, &c->header, &at, &column); ++*num)
    if (strlen(name) == (size_t)(column.end - column.at) &&
        memcmp(name, column.at, strlen(name)) == 0) {
      found++;
      *last = *num;
    }
  return found;
}

static bool find_label(const csv *c, const char *name, int64_t width, int64_t *at) {
  if (c->header.number == 0)
    return mlrt_error_set(c->r->error,
                          "%s: label=\"%s\" is the name of a column, but the file has no header",
                          c->file->name, name);
  char shown[MAX_SHOWN];
  show(&c->header, shown);
  int num, last = -1, found = count_name(c, name, &last, &num);
  if (!found)
    return mlrt_error_set(c->r->error, "%s: line %lld names no column `%s`, the label: `%s`",
                          c->file->name, (long long)c->header.number, name, shown);
  if (found > 1)
    return mlrt_error_set(c->r->error,
                          "%s: line %lld names %d columns `%s`, the label\nhelp: label = N takes "
                          "column N, counted from 0",
                          c->file->name, (long long)c->header.number, found, name);
  if (num != c->columns)
    return mlrt_error_set(c->r->error, "%s: line %lld names %d columns, but line %d has %d",
                          c->file->name, (long long)c->header.number, num, c->columns_line,
                          c->columns);
  *at = last;
  return last + width <= c->columns ||
         mlrt_error_set(c->r->error,
                        "%s: from column `%s` on there are %d, but input `%s` takes %lld",
                        c->file->name, name, c->columns - last, c->r->program->inputs[1].name,
                        (long long)width);
}

// label = last, first, none, a column counted from 0, or its name. Needs the number of columns.
static bool read_label(csv *c) {
  static const char *const words[] = {"last", "first", "none"};
  enum { LAST, FIRST, NONE, NAME, NUMBER };
  const mlrt_program *p = c->r->program;
  const mlrt_setting *s = mlrt_setting_find(c->r, "label");
  int64_t width = p->num_inputs == 2 ? mlrt_input_elements(&p->inputs[1]) : 1;
  int64_t at = 0;
  int kind = s ? NUMBER : p->num_inputs == 2 ? LAST : NONE;
  if (s && s->kind == MLRT_SET_STR)
    for (kind = LAST; kind < NAME && strcmp(words[kind], s->str) != 0;)
      kind++;
  if (width > c->columns)
    width = c->columns;
  if ((kind == NUMBER && !mlrt_setting_int(c->r, "label", 0, c->columns - width, &at)) ||
      (kind == NAME && !find_label(c, s->str, width, &at)))
    return false;
  if (kind == NONE && p->num_inputs == 2)
    return mlrt_error_set(c->r->error, "label=none leaves nothing for input `%s`",
                          p->inputs[1].name);
  c->label_num = kind == NONE ? 0 : (int)width;
  c->label_first = (int)(kind == LAST ? c->columns - width : at);
  return true;
}

// What stands between numbers in a file of another delimiter; `name`: what `delimiter` calls it.
typedef struct separator {
  char at;
  const char *name;
} separator;

static int64_t count_of(const text_line *l, char what) {
  int64_t n = 0;
  for (const uint8_t *at = l->at; at < l->end; at++)
    n += *at == (uint8_t)what;
  return n;
}

// The one that makes as many columns of the line as there should be, or else any that it has; NULL: it has none.
static const separator *find_separator(const csv *c, const text_line *l, int64_t columns) {
  static const separator all[] = {{';', ";"}, {'\t', "tab"}, {'|', "|"}, {',', ","}, {' ', " "}};
  const separator *any = NULL;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    int64_t there = (uint8_t)all[i].at == c->delimiter ? 0 : count_of(l, all[i].at);
    if (there && there + 1 == columns)
      return &all[i];
    if (there && !any && all[i].at != ' ') // which stands behind commas, too
      any = &all[i];
  }
  return any;
}

// "" where the line does not look like one of another delimiter.
static const char *delimiter_help(const csv *c, const text_line *l, int64_t columns, char *buf,
                                  size_t size) {
  const separator *s = find_separator(c, l, columns);
  buf[0] = '\0';
  if (s)
    snprintf(buf, size,
             "\nhelp: columns are split at `%s`; the line has %lld of \"%s\": add delimiter=\"%s\"",
             c->delimiter == '\t' ? "tab" : (char[2]){(char)c->delimiter, '\0'},
             (long long)count_of(l, s->at), s->name, s->name);
  return buf;
}

static bool check_columns(const csv *c, const text_line *l) {
  const mlrt_program *p = c->r->program;
  int64_t takes[2] = {mlrt_input_elements(&p->inputs[0]), 0};
  if (p->num_inputs == 2)
    takes[1] = mlrt_input_elements(&p->inputs[1]);
  if (takes[0] == c->columns - c->label_num && (p->num_inputs == 1 || takes[1] == c->label_num))
    return true;
  char help[160];
  delimiter_help(c, l, takes[0] + takes[1], help, sizeof help);
  const char *s = c->columns == 1 ? "" : "s";
  if (p->num_inputs == 1)
    return mlrt_error_set(c->r->error, "%s: line %d has %d column%s, of which `%s` takes %lld%s",
                          c->file->name, c->columns_line, c->columns, s, p->inputs[0].name,
                          (long long)takes[0], help);
  return mlrt_error_set(
      c->r->error, "%s: line %d has %d column%s, but inputs `%s` and `%s` take %lld and %lld%s",
      c->file->name, c->columns_line, c->columns, s, p->inputs[0].name, p->inputs[1].name,
      (long long)takes[0], (long long)takes[1], help);
}

// --- rows ------------------------------------------------------------------------------------
static bool bad_column(const csv *c, const text_line *l, int column, const text_line *text,
                       const char *why) {
  char shown[MAX_SHOWN];
  show(text, shown);
  return mlrt_error_set(c->r->error, "%s: line %lld, column %d: `%s` %s", c->file->name,
                        (long long)l->number, column + 1, shown, why);
}

// Of the sample that the column is in.
static int element_of(const csv *c, int column) {
  if (column < c->label_first)
    return column;
  bool label = column < c->label_first + c->label_num;
  return column - (label ? c->label_first : c->label_num);
}

static bool does_not_fit(const csv *c, const text_line *l, int column, const text_line *text,
                         const mlrt_input *in) {
  char limits[120], why[200];
  snprintf(why, sizeof why, "does not fit input `%.40s`: %s", in->name,
           mlrt_limits_text(in, element_of(c, column), limits, sizeof limits));
  return bad_column(c, l, column, text, why);
}

static bool not_a_number(const csv *c, const text_line *l, int column, const text_line *text) {
  char help[160], why[200];
  delimiter_help(c, text, 0, help, sizeof help);
  snprintf(why, sizeof why, "is not a number%s", help);
  return bad_column(c, l, column, text, why);
}

static bool store_column(csv *c, const text_line *l, int column, const text_line *text) {
  bool label = column >= c->label_first && column < c->label_first + c->label_num;
  if (label && c->r->program->num_inputs == 1)
    return true; // a label that the model does not ask for
  const mlrt_input *in = &c->r->program->inputs[label];
  double v;
  if (!mlrt_parse_number(text->at, text->end - text->at, &v))
    return not_a_number(c, l, column, text);
  if (isinf(v) && mlrt_is_float(in->dtype))
    return does_not_fit(c, l, column, text, in);
  // From 2^53 on a double does not tell neighbouring whole numbers apart: not silently.
  if (!mlrt_is_float(in->dtype) && v == trunc(v) && fabs(v) >= 0x1p53)
    return bad_column(c, l, column, text, "is 2^53 or more: too large for a whole number in a csv");
  if (!mlrt_store_number(in, element_of(c, column), v, c->row[label]))
    return does_not_fit(c, l, column, text, in);
  c->row[label] += mlrt_dtype_bytes(in->dtype);
  return true;
}

static bool parse_row(csv *c, const text_line *l) {
  text_line text;
  int column = 0;
  for (const uint8_t *at = l->at; next_column(c, l, &at, &text); column++)
    if (column < c->columns && !store_column(c, l, column, &text))
      return false;
  return column == c->columns ||
         mlrt_error_set(c->r->error, "%s: line %lld has %d columns, but line %d has %d",
                        c->file->name, (long long)l->number, column, c->columns_line, c->columns);
}

static bool parse_rows(csv *c, text_line first, int64_t lo, int64_t hi) {
  text_line l = first;
  int64_t done = 0;
  for (int64_t row = 0; row < hi; row++) {
    if (row > 0)
      next_line(c, &l); // there are that many: they were counted
    if (row >= lo && !parse_row(c, &l))
      return false;
    mlrt_file_passed(c->file, &done, l.at - c->file->data, true);
  }
  return true;
}

static int64_t count_rows(const csv *c, text_line l) {
  int64_t rows = 1, done = 0;
  for (; next_line(c, &l); rows++)
    mlrt_file_passed(c->file, &done, l.at - c->file->data, false);
  return rows;
}

// --- all of it -------------------------------------------------------------------------------
// Finds the first row: the first line, or the one after a header.
static bool find_first_row(csv *c, text_line *l) {
  int header = -1;
  *l = before_first(c->file);
  if (!mlrt_setting_bool(c->r, "header", &header))
    return false;
  if (!next_line(c, l))
    return mlrt_error_set(c->r->error, "%s: holds no rows", c->file->name);
  line_kind kind = look_at_line(c, l);
  if (header < 0) // a row with one bad number is an error and no header
    header = kind.numbers == 0 && kind.words > 0;
  if (header)
    c->header = *l;
  if (header && !next_line(c, l))
    return mlrt_error_set(c->r->error, "%s: holds a header and no rows", c->file->name);
  c->columns = look_at_line(c, l).columns;
  c->columns_line = (int)l->number;
  return true;
}

// What a row of input i is, once parsed: numbers in the dtype of the input.
static void make_field(csv *c, int i) {
  mlrt_field *f = &c->r->set->fields[i];
  f->elements = mlrt_input_elements(f->input);
  f->stored = mlrt_stored_from_dtype(f->input->dtype);
  f->stride = f->elements * mlrt_stored_bytes(f->stored);
  f->file = c->file->name;
}

// Room for the rows of both inputs, one after the other.
static bool make_room(csv *c, int64_t rows) {
  mlrt_dataset *d = c->r->set;
  int64_t start[3] = {0};
  for (int i = 0; i < d->num_fields; i++) {
    make_field(c, i);
    int64_t bytes;
    if (__builtin_mul_overflow(rows, d->fields[i].stride, &bytes) || bytes > INT64_MAX / 4)
      return mlrt_error_set(c->r->error, "%s: too many rows", c->file->name);
    start[i + 1] = start[i] + (bytes + 63) / 64 * 64;
  }
  d->parsed = mlrt_pages_new(start[d->num_fields]);
  if (!d->parsed)
    return mlrt_error_memory(c->r->error, "%s: no memory for %lld rows (%lld bytes)", c->file->name,
                             (long long)rows, (long long)start[d->num_fields]);
  d->parsed_bytes = mlrt_pages_size(start[d->num_fields]);
  for (int i = 0; i < d->num_fields; i++) {
    d->fields[i].base = d->parsed + start[i];
    c->row[i] = (char *)d->parsed + start[i];
  }
  return true;
}

static bool read_rows(csv *c) {
  text_line first;
  int64_t lo, hi;
  if (!find_first_row(c, &first) || !read_label(c) || !check_columns(c, &first) ||
      !mlrt_setting_range(c->r, count_rows(c, first), &lo, &hi) || !make_room(c, hi - lo))
    return false;
  c->r->set->size = hi - lo;
  return parse_rows(c, first, lo, hi);
}

bool mlrt_read_csv(mlrt_reading *r) {
  static const char *const keys[] = {"header", "label", "delimiter", NULL};
  csv c = {.r = r, .file = &r->set->files[0]};
  if (!mlrt_settings_check(r, keys) || !read_delimiter(&c))
    return false;
  if (r->set->num_files != 1 || r->program->num_inputs > 2)
    return mlrt_error_set(r->error,
                          "csv takes one file for one or two inputs, not %d file%s for %d input%s",
                          r->set->num_files, r->set->num_files == 1 ? "" : "s",
                          r->program->num_inputs, r->program->num_inputs == 1 ? "" : "s");
  if (!mlrt_reading_open_text(r, 0) || !read_rows(&c))
    return false;
  mlrt_file_release(&r->set->files[0]);
  return true;
}
