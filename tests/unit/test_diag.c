// test_diag.c: diagnostics: the human form to the letter, order, the cap, JSON, --explain, and the
// nearest word.
#include "ir/json.h"
#include "support_frontend.h"

#include <stdlib.h>
#include <string.h>

static const char text[] = "let B = 64\n\tx = relu(B)\nlast";
static const ir_source src = {"a.graph", text, sizeof text - 1};

static ir_loc at(uint32_t line, uint32_t col, uint32_t len) {
  return (ir_loc){&src, line, col, len};
}

static void test_human(ir_arena *a) {
  ir_diags *d = diag_new(a);
  ir_diag *late = diag_error(d, at(2, 6, 4), "E0201", "unknown function '%s'", "relu");
  diag_label(late, "not defined");
  diag_note(late, at(1, 5, 1), "in block '%s', used here", "B");
  diag_help(late, "did you mean '%s'?", "selu");
  diag_warning(d, at(1, 1, 3), "E0206", "first");
  const char *want = "a.graph:1:1: warning[E0206]: first\n"
                     "    1 | let B = 64\n"
                     "      | ^~~\n"
                     "a.graph:2:6: error[E0201]: unknown function 'relu'\n"
                     "    2 |         x = relu(B)\n"
                     "      |             ^~~~ not defined\n"
                     "a.graph:1:5: note: in block 'B', used here\n"
                     "    1 | let B = 64\n"
                     "      |     ^\n"
                     "help: did you mean 'selu'?\n";
  const char *got = support_messages(a, d);
  CHECK(strcmp(got, want) == 0, "printed\n%s\nnot\n%s", got, want);
  CHECK(diag_num_errors(d) == 1, "a warning is no error: %zu", diag_num_errors(d));
}

// Places outside the text, or in no file at all, must not be read.
static void test_odd_places(ir_arena *a) {
  ir_diags *d = diag_new(a);
  diag_label(diag_error(d, at(99, 1, 1), "E0004", "no such line"), "label");
  diag_error(d, at(3, 50, 9), "E0004", "beyond the end of the last line");
  diag_error(d, (ir_loc){0}, "E0004", "nowhere");
  const char *got = support_messages(a, d);
  CHECK(strstr(got, "mltc: error[E0004]: nowhere\n"), "%s", got);
  CHECK(strstr(got, "    3 | last\n"), "%s", got);
}

static void test_cap(ir_arena *a) {
  ir_diags *d = diag_new(a);
  for (uint32_t i = 0; i < 60; i++) {
    ir_diag *n = diag_error(d, at(1, i + 1, 1), "E0004", "error %u", i);
    diag_label(n, "label");
    diag_note(n, at(1, 1, 1), "note");
    diag_help(n, "help");
  }
  const char *got = support_messages(a, d);
  CHECK(diag_num_errors(d) == 60, "%zu errors", diag_num_errors(d));
  CHECK(strstr(got, "error 49") && !strstr(got, "error 50"), "50 errors are kept");
  CHECK(strstr(got, "10 more errors not shown\n"), "the others are counted");
}

// Warnings come first: an optimiser's, say, before the error of a file that cannot be embedded.
static void test_warnings_hide_no_error(ir_arena *a) {
  ir_diags *d = diag_new(a);
  for (uint32_t i = 0; i < 51; i++)
    diag_warning(d, at(1, i + 1, 1), "W0502", "warning %u", i);
  diag_help(diag_error(d, at(2, 1, 1), "E0902", "the error"), "its help");
  const char *got = support_messages(a, d);
  CHECK(strstr(got, "the error") && strstr(got, "its help"), "hidden by warnings:\n%s", got);
  CHECK(strstr(got, "1 more warning not shown\n") && !strstr(got, "more error"), "%s", got);
}

static void test_said_once(ir_arena *a) {
  ir_diags *d = diag_new(a);
  for (uint32_t i = 0; i < 51; i++)
    diag_warning(d, at(2, 1, 1), "W0502", "early");
  diag_are_said(d);
  CHECK(!*support_messages(a, d), "again: %s", support_messages(a, d));
  diag_error(d, at(1, 1, 1), "E0902", "late");
  const char *got = support_messages(a, d);
  CHECK(strstr(got, "late") && !strstr(got, "early") && !strstr(got, "more"), "%s", got);
  CHECK(diag_num_errors(d) == 1, "%zu errors", diag_num_errors(d));
}

static const char *text_of(json_object *o, const char *key) {
  json_object *v = NULL;
  return json_object_object_get_ex(o, key, &v) && v ? json_object_get_string(v) : "(none)";
}

static void test_json(ir_arena *a) {
  ir_diags *d = diag_new(a);
  ir_diag *n = diag_error(d, at(2, 6, 4), "E0201", "a \"quoted\" word");
  diag_label(n, "label");
  diag_note(n, at(1, 5, 1), "note");
  diag_help(n, "help");
  diag_error(d, (ir_loc){0}, "E0004", "second");
  char *out = NULL;
  size_t len = 0;
  FILE *f = open_memstream(&out, &len);
  diag_print_json(d, f);
  fclose(f);
  char *second = strchr(out, '\n') ? strchr(out, '\n') + 1 : out;
  json_object *o = json_tokener_parse(strstr(out, "quoted") < second ? out : second);
  CHECK(o != NULL, "each line is JSON: %s", out);
  CHECK(!strcmp(text_of(o, "severity"), "error"), "severity %s", text_of(o, "severity"));
  CHECK(!strcmp(text_of(o, "code"), "E0201"), "code %s", text_of(o, "code"));
  CHECK(!strcmp(text_of(o, "message"), "a \"quoted\" word"), "%s", text_of(o, "message"));
  CHECK(!strcmp(text_of(o, "file"), "a.graph"), "file %s", text_of(o, "file"));
  CHECK(!strcmp(text_of(o, "line"), "2") && !strcmp(text_of(o, "column"), "6"), "place");
  CHECK(!strcmp(text_of(o, "length"), "4"), "length %s", text_of(o, "length"));
  CHECK(!strcmp(text_of(o, "label"), "label"), "label %s", text_of(o, "label"));
  CHECK(strstr(text_of(o, "notes"), "note"), "notes %s", text_of(o, "notes"));
  CHECK(strstr(text_of(o, "help"), "help"), "help %s", text_of(o, "help"));
  json_object_put(o);
  free(out);
}

// Bytes that are no UTF-8: alone, cut off, longer than needed, a half of a pair, beyond the last one.
static void test_json_text(void) {
  static const char *const cases[][2] = {
      {"plain", "plain"},
      {"", ""},
      {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"caf\xe9", "caf\xef\xbf\xbd"},
      {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xc3x", "\xef\xbf\xbdx"},
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"},
      {"\xff\xf8\x88\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    json_object *o = ir_json_text(cases[i][0]);
    CHECK(!strcmp(json_object_get_string(o), cases[i][1]), "case %zu: %s", i,
          json_object_get_string(o));
    json_object_put(o);
  }
  CHECK(ir_json_text(NULL) == NULL, "no text is not null");
}

static void test_words(void) {
  static const char *const names[] = {"epochs", "steps", "shuffle", "seed", "H", "learning_rate"};
  static const struct {
    const char *word, *near; // "": none
  } cases[] = {{"epoch", "epochs"}, {"stpes", "steps"}, {"shufle", "shuffle"},
               {"sede", "seed"},    {"Hh", "H"},        {"lerning_rat", "learning_rate"},
               {"zebra", ""},       {"", ""},           {"x", ""},
               {"optimiser", ""}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *got = diag_nearest(cases[i].word, names, sizeof names / sizeof names[0]);
    CHECK(strcmp(got ? got : "", cases[i].near) == 0, "'%s' is near '%s', not '%s'", cases[i].word,
          got ? got : "", cases[i].near);
  }
  char longest[200];
  memset(longest, 'a', sizeof longest);
  longest[199] = 0;
  CHECK(!diag_nearest(longest, names, 6), "long words are near nothing");
}

static void test_no_code_means_two_things(void) {
  static const char *const codes[] = {
#define CODE(code, title, text) code,
#include "ir/diag_codes.def"
#undef CODE
  };
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    for (size_t j = 0; j < i; j++)
      CHECK(strcmp(codes[i], codes[j]) != 0, "%s is there twice", codes[i]);
}

static void test_explain(void) {
  const char *e = diag_explain("E0203");
  CHECK(e && strstr(e, "shapes do not match") && strstr(e, "x @ w"), "%s", e ? e : "NULL");
  CHECK(!diag_explain("E9999") && !diag_explain(""), "unknown codes have no text");
}

int main(void) {
  ir_arena *a = ir_arena_new();
  test_human(a);
  test_odd_places(a);
  test_cap(a);
  test_warnings_hide_no_error(a);
  test_said_once(a);
  test_json(a);
  test_json_text();
  test_words();
  test_no_code_means_two_things();
  test_explain();
  ir_arena_free(a);
  return support_finish("diag");
}
