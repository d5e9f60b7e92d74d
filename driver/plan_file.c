// plan_file.c: see plan_file.h. Whatever the text is, nothing is taken from it that has not been
// looked at: each field has a kind that it must be of, and a place that messages name.
//
//   b.json: functions[1].kernels[7].flops is missing
#include "driver/plan_file.h"
#include "passes/cost.h"
#include "passes/pass.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

enum { VERSION = 1 };

typedef struct reader {
  ir_arena *a;
  const char *path;
  const char *why; // the first fault; NULL: none yet
  plan_file_use use;
} reader;

static void fail(reader *r, const char *where, const char *what) {
  if (!r->why)
    r->why = ir_format(r->a, "%s: %s %s", r->path, where, what);
}

// --- fields --------------------------------------------------------------------------------------
static const char *inside(const reader *r, const char *where, const char *key) {
  return *where ? ir_format(r->a, "%s.%s", where, key) : key;
}

static const char *article(json_type type) {
  return type == json_type_string   ? "is no text"
         : type == json_type_object ? "is no object"
         : type == json_type_array  ? "is no list"
                                    : "is no whole number";
}

// An order and places say no more.
static bool may_be_missing(const reader *r, const char *key) {
  static const char *const needed[] = {"version", "functions", "kernels", "name"};
  bool may = r->use == PLAN_FILE_EDITED;
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    may = may && strcmp(key, needed[i]) != 0;
  return may;
}

// NULL unless it is there and of this type, after a message if it may not be missing.
static json_object *get(reader *r, json_object *o, const char *where, const char *key,
                        json_type type) {
  json_object *v = NULL;
  bool is_there = json_object_object_get_ex(o, key, &v);
  if (!is_there && !may_be_missing(r, key))
    fail(r, inside(r, where, key), "is missing");
  else if (!is_there)
    return NULL;
  else if (!json_object_is_type(v, type))
    fail(r, inside(r, where, key), article(type));
  return r->why ? NULL : v;
}

static const char *get_text(reader *r, json_object *o, const char *where, const char *key) {
  json_object *v = get(r, o, where, key, json_type_string);
  return v ? ir_strdup(r->a, json_object_get_string(v)) : "";
}

// Not below 0.
static int64_t get_size(reader *r, json_object *o, const char *where, const char *key) {
  json_object *v = get(r, o, where, key, json_type_int);
  int64_t size = v ? json_object_get_int64(v) : 0;
  if (size < 0)
    fail(r, inside(r, where, key), "is below 0");
  return size < 0 ? 0 : size;
}

static void push(const reader *r, plan_items *list, const char *name, int64_t size) {
  plan_item item = {.name = ir_strdup(r->a, name), .size = size};
  IR_PUSH(r->a, *list, item);
}

// All whole numbers of an object, by their names.
static void get_figures(reader *r, json_object *o, const char *where, plan_items *out) {
  json_object_object_foreach(o, key, v) if (json_object_is_type(v, json_type_int))
      push(r, out, key, get_size(r, o, where, key));
}

// An object of figures that may be missing.
static void get_shares(reader *r, json_object *o, const char *where, plan_items *out) {
  json_object *v = NULL;
  if (json_object_object_get_ex(o, "shares", &v) && get(r, o, where, "shares", json_type_object))
    get_figures(r, v, inside(r, where, "shares"), out);
}

// --- lists ---------------------------------------------------------------------------------------
typedef struct place {
  const char *where;
  json_object *list;
  size_t num;
} place;

static place get_list(reader *r, json_object *o, const char *where, const char *key) {
  json_object *list = get(r, o, where, key, json_type_array);
  return (place){inside(r, where, key), list, list ? json_object_array_length(list) : 0};
}

// Element i of a list, which must be an object; its place in *where.
static json_object *element(reader *r, const place *p, size_t i, const char **where) {
  json_object *o = json_object_array_get_idx(p->list, i);
  *where = ir_format(r->a, "%s[%zu]", p->where, i);
  if (!json_object_is_type(o, json_type_object))
    fail(r, *where, "is no object");
  return r->why ? NULL : o;
}

// Without the line of the graph: the same plan can come from another folder.
static const char *text_of(const reader *r, json_object *o) {
  json_object_object_del(o, "source");
  return ir_strdup(r->a, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
}

// -1: there is none. The library makes the largest number of all that are larger.
static int64_t get_offset(reader *r, json_object *buffer, const char *at) {
  if (!json_object_object_get_ex(buffer, "offset", NULL))
    return -1;
  int64_t offset = get_size(r, buffer, at, "offset");
  if (offset == INT64_MAX)
    fail(r, inside(r, at, "offset"), "is too large");
  return offset;
}

static void read_buffers(reader *r, json_object *o, const char *where, const char *key,
                         plan_items *out) {
  place p = get_list(r, o, where, key);
  for (size_t i = 0; i < p.num && !r->why; i++) {
    const char *at;
    json_object *b = element(r, &p, i, &at);
    if (!b)
      return;
    push(r, out, get_text(r, b, at, "name"), get_size(r, b, at, "bytes"));
    out->at[out->num - 1].offset = get_offset(r, b, at);
    out->at[out->num - 1].rest = text_of(r, b);
  }
}

// Sums over the kernels of a function: its first figures.
enum { KERNELS, AGAIN, FLOPS, TRAFFIC, COPIED, NUM_SUMS };

// A list of names; nothing where there is none.
static void read_names(reader *r, json_object *k, const char *at, const char *key,
                       plan_edit_names *out) {
  json_object *list = NULL;
  if (!json_object_object_get_ex(k, key, &list) || !get(r, k, at, key, json_type_array))
    return;
  for (size_t i = 0; i < json_object_array_length(list) && !r->why; i++) {
    json_object *name = json_object_array_get_idx(list, i);
    if (json_object_is_type(name, json_type_string))
      IR_PUSH(r->a, *out, ir_strdup(r->a, json_object_get_string(name)));
    else
      fail(r, ir_format(r->a, "%s.%s[%zu]", at, key, i), "is no text");
  }
}

// A text that may be missing, or null.
static const char *get_text_or_none(reader *r, json_object *k, const char *at, const char *key) {
  json_object *v = NULL;
  return json_object_object_get_ex(k, key, &v) && v ? get_text(r, k, at, key) : NULL;
}

static void read_kernel(reader *r, json_object *k, const char *at, plan_file_func *f) {
  plan_item item = {.name = get_text(r, k, at, "name"), .size = get_size(r, k, at, "flops")};
  int64_t in = get_size(r, k, at, "bytes_read"), out = get_size(r, k, at, "bytes_written");
  item.again = get_text_or_none(r, k, at, "clone_of");
  item.family = get_text_or_none(r, k, at, "family");
  item.begin = get_text_or_none(r, k, at, "begin");
  read_names(r, k, at, "reads", &item.reads);
  read_names(r, k, at, "writes", &item.writes);
  item.rest = text_of(r, k);
  IR_PUSH(r->a, f->kernels, item);
  f->figures.at[KERNELS].size++;
  f->figures.at[AGAIN].size += item.again != NULL;
  f->figures.at[FLOPS].size = cost_plus(f->figures.at[FLOPS].size, item.size);
  f->figures.at[TRAFFIC].size = cost_plus(f->figures.at[TRAFFIC].size, cost_plus(in, out));
}

static void read_copies(reader *r, json_object *o, const char *where, plan_file_func *f) {
  place p = get_list(r, o, where, "copies");
  for (size_t i = 0; i < p.num && !r->why; i++) {
    const char *at;
    json_object *c = element(r, &p, i, &at);
    if (!c)
      return;
    push(r, &f->copies, get_text(r, c, at, "state"), get_size(r, c, at, "bytes"));
    plan_item *copy = &f->copies.at[f->copies.num - 1];
    copy->rest = text_of(r, c);
    f->figures.at[COPIED].size = cost_plus(f->figures.at[COPIED].size, copy->size);
  }
}

static plan_file_func read_func(reader *r, json_object *o, const char *where) {
  plan_file_func f = {.name = get_text(r, o, where, "name")};
  static const char *const sums[NUM_SUMS] = {"kernels", "again", "flops", "traffic", "copied"};
  for (size_t i = 0; i < NUM_SUMS; i++)
    push(r, &f.figures, sums[i], 0);
  get_size(r, o, where, "peak_bytes");
  get_figures(r, o, where, &f.figures);
  get_shares(r, o, where, &f.shares);
  place p = get_list(r, o, where, "kernels");
  for (size_t i = 0; i < p.num && !r->why; i++) {
    const char *at;
    json_object *k = element(r, &p, i, &at);
    if (k)
      read_kernel(r, k, at, &f);
  }
  read_buffers(r, o, where, "buffers", &f.buffers);
  push(r, &f.figures, "buffers", (int64_t)f.buffers.num); // equal names are one in a comparison
  if (json_object_object_get_ex(o, "host", NULL))
    read_buffers(r, o, where, "host", &f.host);
  read_copies(r, o, where, &f);
  return f;
}

// --- the file ------------------------------------------------------------------------------------
static void check_head(reader *r, json_object *o) {
  json_object *schema = NULL;
  bool is_plan = json_object_is_type(o, json_type_object) &&
                 json_object_object_get_ex(o, "schema", &schema) &&
                 json_object_is_type(schema, json_type_string) &&
                 strcmp(json_object_get_string(schema), "mltc-plan") == 0;
  if (!is_plan) {
    r->why =
        ir_format(r->a, "%s: this is no plan: mltc FILE --emit=plan.json writes them", r->path);
    return;
  }
  int64_t version = get_size(r, o, "", "version");
  if (!r->why && version != VERSION)
    r->why = ir_format(r->a, "%s: a plan of version %lld, this mltc reads version %d", r->path,
                       (long long)version, (int)VERSION);
}

static void read_plan(reader *r, json_object *o, plan_file *p) {
  check_head(r, o);
  if (r->why)
    return;
  p->model = get_text(r, o, "", "model");
  p->remake = get_text_or_none(r, o, "", "remake");
  if (p->remake && strcmp(p->remake, PASS_REMAKE_LITTLE) != 0)
    fail(r, "remake", "is not \"" PASS_REMAKE_LITTLE "\"");
  json_object *totals = get(r, o, "", "totals", json_type_object);
  if (totals) {
    get_size(r, totals, "totals", "arena");
    get_figures(r, totals, "totals", &p->figures);
    get_shares(r, totals, "totals", &p->shares);
  }
  get_figures(r, o, "", &p->figures); // bounds
  read_buffers(r, o, "", "buffers", &p->buffers);
  place funcs = get_list(r, o, "", "functions");
  for (size_t i = 0; i < funcs.num && !r->why; i++) {
    const char *at;
    json_object *f = element(r, &funcs, i, &at);
    if (f)
      IR_PUSH(r->a, p->funcs, read_func(r, f, at));
  }
  push(r, &p->figures, "buffers", (int64_t)p->buffers.num);
  push(r, &p->figures, "functions", (int64_t)p->funcs.num);
}

static int line_at(const char *text, size_t end) {
  int line = 1;
  for (size_t i = 0; i < end; i++)
    line += text[i] == '\n';
  return line;
}

static json_object *parse(reader *r, const char *text, size_t len) {
  json_tokener *t = json_tokener_new();
  json_object *o = len > INT32_MAX ? NULL : json_tokener_parse_ex(t, text, (int)len);
  size_t end = json_tokener_get_parse_end(t);
  enum json_tokener_error error = json_tokener_get_error(t);
  const char *what = len > INT32_MAX                              ? "2 GiB or more"
                     : error == json_tokener_continue             ? "ends too early"
                     : error != json_tokener_success              ? json_tokener_error_desc(error)
                     : end + strspn(text + end, " \t\r\n") != len ? "more after the end"
                                                                  : NULL;
  if (what)
    r->why = ir_format(r->a, "%s:%d: no JSON: %s", r->path, line_at(text, end), what);
  json_tokener_free(t);
  return o;
}

const plan_file *plan_file_read(ir_arena *a, plan_file_use use, const char *path, const char *text,
                                size_t len, const char **why) {
  reader r = {.a = a, .path = path, .use = use};
  plan_file *p = IR_NEW(a, plan_file);
  p->path = path;
  json_object *o = parse(&r, text, len);
  if (!r.why)
    read_plan(&r, o, p);
  json_object_put(o);
  *why = r.why;
  return r.why ? NULL : p;
}

const plan_file *plan_file_open(ir_arena *a, plan_file_use use, const char *path,
                                const char **why) {
  size_t len = 0;
  char *text = ir_read_text(a, path, &len);
  if (text)
    return plan_file_read(a, use, path, text, len, why);
  *why = ir_format(a, "cannot read '%s': %s", path, strerror(errno));
  return NULL;
}
