// csv.c: reads and writes packing instances. See csv.h.
#include "passes/pack/csv.h"

#include <string.h>

typedef enum column { ID, LOWER, UPPER, SIZE, OFFSET, NUM_COLUMNS } column;
static const char *const names[NUM_COLUMNS] = {"id", "lower", "upper", "size", "offset"};
enum { MOST_FIELDS = NUM_COLUMNS };

// So that sums of sizes and offsets stay far away from the largest number.
static const int64_t most_bytes = INT64_MAX / 4;

typedef struct field {
  const char *at;
  size_t len;
} field;

typedef struct reader {
  ir_arena *arena;
  const ir_source *source;
  ir_diags *diags;
  const char *line, *end; // of the line, without its end
  uint32_t number;        // of the line, from 1
  column columns[MOST_FIELDS];
  size_t num_columns;
  ir_map *lines; // by id: the field where it was first
  int64_t total; // of sizes
} reader;

// --- places --------------------------------------------------------------------------------------
static ir_loc place_of(const reader *r, field f) {
  return (ir_loc){r->source, r->number, (uint32_t)(f.at - r->line) + 1,
                  f.len ? (uint32_t)f.len : 1};
}

#define FAIL(r, f, ...) diag_error((r)->diags, place_of(r, f), "E0910", __VA_ARGS__)

// --- lines and fields ----------------------------------------------------------------------------
static bool is_blank(const reader *r) {
  for (const char *c = r->line; c < r->end; c++)
    if (*c != ' ' && *c != '\t')
      return false;
  return true;
}

// The next line that is not blank.
static bool next_line(reader *r) {
  const char *stop = r->source->text + r->source->len;
  const char *next = r->line ? r->end : r->source->text;
  do {
    if (r->line) {
      next = memchr(r->end, '\n', (size_t)(stop - r->end));
      next = next ? next + 1 : stop;
    }
    if (next == stop)
      return false;
    r->line = next;
    const char *newline = memchr(next, '\n', (size_t)(stop - next));
    r->end = newline ? newline : stop;
    if (r->end > r->line && r->end[-1] == '\r')
      r->end--;
    r->number++;
  } while (is_blank(r));
  return true;
}

static field trimmed(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t'))
    at++;
  while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
    end--;
  return (field){at, (size_t)(end - at)};
}

// Splits the line; returns how many fields it has, of which the first MOST_FIELDS are in `out`.
static size_t split(const reader *r, field *out) {
  size_t num = 0;
  const char *at = r->line;
  for (;;) {
    const char *comma = memchr(at, ',', (size_t)(r->end - at)), *end = comma ? comma : r->end;
    if (num < MOST_FIELDS)
      out[num] = trimmed(at, end);
    num++;
    if (!comma)
      return num;
    at = comma + 1;
  }
}

static field whole_line(const reader *r) {
  return (field){r->line, (size_t)(r->end - r->line)};
}

// --- the first line ------------------------------------------------------------------------------
static bool read_name(reader *r, field f, bool *seen) {
  const char *text = ir_strndup(r->arena, f.at, f.len);
  for (column c = 0; c < NUM_COLUMNS; c++)
    if (strcmp(text, names[c]) == 0) {
      if (seen[c])
        FAIL(r, f, "there are two columns '%s'", names[c]);
      seen[c] = true;
      r->columns[r->num_columns++] = c;
      return true;
    }
  ir_diag *d = FAIL(r, f, "there is no column '%s'", text);
  const char *near = diag_nearest(text, names, NUM_COLUMNS);
  if (near)
    diag_help(d, "did you mean '%s'?", near);
  return false;
}

static bool read_names(reader *r) {
  field fields[MOST_FIELDS];
  bool seen[NUM_COLUMNS] = {false}, ok = true;
  size_t num = split(r, fields);
  if (num > MOST_FIELDS) {
    FAIL(r, whole_line(r), "there are %zu columns, at most %d", num, (int)MOST_FIELDS);
    return false;
  }
  for (size_t i = 0; i < num && ok; i++)
    ok = read_name(r, fields[i], seen);
  for (column c = ID; ok && c <= SIZE; c++)
    if (!seen[c]) {
      ir_diag *d = FAIL(r, whole_line(r), "there is no column '%s'", names[c]);
      diag_help(d, "the first line names the columns: id,lower,upper,size");
      ok = false;
    }
  return ok && diag_num_errors(r->diags) == 0;
}

// --- the other lines -----------------------------------------------------------------------------
// Decimal digits with an optional minus sign. False when they are not a 64-bit number.
static bool parse_number(field f, int64_t *out) {
  size_t i = f.len > 0 && f.at[0] == '-' ? 1 : 0;
  bool minus = i == 1;
  int64_t value = 0;
  if (i == f.len)
    return false;
  for (; i < f.len; i++) {
    int digit = f.at[i] - '0';
    if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, minus ? -digit : digit, &value))
      return false;
  }
  *out = value;
  return true;
}

static bool read_number(reader *r, column c, field f, int64_t *out) {
  if (parse_number(f, out))
    return true;
  const char *text = ir_strndup(r->arena, f.at, f.len);
  ir_diag *d = FAIL(r, f, "the %s '%s' is not a whole number of 64 bits", names[c], text);
  if (f.len == 0)
    diag_label(d, "nothing is here");
  return false;
}

static bool is_printable(field f) {
  for (size_t i = 0; i < f.len; i++)
    if ((unsigned char)f.at[i] < ' ')
      return false;
  return true;
}

static bool read_id(reader *r, field f, const char **out) {
  *out = ir_strndup(r->arena, f.at, f.len);
  ir_loc *at = IR_NEW(r->arena, ir_loc);
  *at = place_of(r, f);
  if (f.len == 0 || !is_printable(f)) {
    FAIL(r, f, f.len ? "the id has a control character" : "this interval has no id");
    return false;
  }
  const ir_loc *first = ir_map_get(r->lines, *out);
  if (first) {
    diag_note(FAIL(r, f, "a second interval has the id '%s'", *out), *first, "the first is here");
    return false;
  }
  ir_map_put(r->lines, *out, at);
  return true;
}

static bool check_interval(reader *r, const field *fields, const plan_interval *x) {
  field by_column[NUM_COLUMNS] = {{0}};
  for (size_t i = 0; i < r->num_columns; i++)
    by_column[r->columns[i]] = fields[i];
  if (x->upper <= x->lower)
    FAIL(r, by_column[UPPER], "the interval ends at %lld, and begins at %lld only",
         (long long)x->upper, (long long)x->lower);
  else if (x->size < 0)
    FAIL(r, by_column[SIZE], "the size is negative");
  else if (x->size > most_bytes - r->total)
    FAIL(r, by_column[SIZE], "the sizes up to here add up to more than %lld",
         (long long)most_bytes);
  else {
    r->total += x->size;
    return true;
  }
  return false;
}

// One interval; on errors nothing is kept.
static bool read_interval(reader *r, plan_interval *x, const char **id) {
  field fields[MOST_FIELDS];
  size_t num = split(r, fields);
  int64_t ignored, *number[NUM_COLUMNS] = {NULL, &x->lower, &x->upper, &x->size, &ignored};
  bool ok = true;
  *x = (plan_interval){0};
  if (num != r->num_columns) {
    FAIL(r, whole_line(r), "%zu values for %zu columns", num, r->num_columns);
    return false;
  }
  for (size_t i = 0; i < num; i++)
    if (r->columns[i] == ID)
      ok &= read_id(r, fields[i], id);
    else if (r->columns[i] != OFFSET)
      ok &= read_number(r, r->columns[i], fields[i], number[r->columns[i]]);
  return ok && check_interval(r, fields, x);
}

bool pack_read_csv(ir_arena *a, const ir_source *source, ir_diags *d, pack_file *out) {
  reader r = {.arena = a, .source = source, .diags = d, .lines = ir_map_new(a)};
  IR_VEC(plan_interval) intervals = {0};
  IR_VEC(const char *) ids = {0};
  if (!next_line(&r)) {
    ir_loc start = {source, 1, 1, 1};
    diag_help(diag_error(d, start, "E0910", "the file is empty"),
              "the first line names the columns: id,lower,upper,size");
    return false;
  }
  if (!read_names(&r))
    return false;
  while (next_line(&r)) {
    plan_interval x;
    const char *id = NULL;
    if (!read_interval(&r, &x, &id))
      continue;
    IR_PUSH(a, intervals, x);
    IR_PUSH(a, ids, id);
  }
  *out = (pack_file){intervals.at, ids.at, intervals.num};
  return diag_num_errors(d) == 0;
}

void pack_write_csv(const pack_file *f, ir_buf *out) {
  ir_buf_puts(out, "id,lower,upper,size,offset\n");
  for (size_t i = 0; i < f->num; i++) {
    const plan_interval *x = &f->at[i];
    ir_buf_printf(out, "%s,%lld,%lld,%lld,%lld\n", f->id[i], (long long)x->lower,
                  (long long)x->upper, (long long)x->size, (long long)x->offset);
  }
}
