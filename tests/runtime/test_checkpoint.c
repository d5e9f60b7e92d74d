// test_checkpoint.c: safetensors headers and checkpoints: what is read back, what is refused, and
// that a refused file changes nothing. Numbers of weights: kept, or converted.
#include "runtime/checkpoint.h"
#include "runtime/number_io.h"
#include "runtime/weights.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/runtime/support_program.h"

static mlrt_program program;
static mlrt_options options;
static char *arena;
static mlrt_device memory; // the same

// --- headers

static bool parses(const char *json, int64_t data_bytes, mlrt_st_header *h, mlrt_error *e) {
  size_t len = strlen(json);
  char *text = malloc(len + 1);
  memcpy(text, json, len);
  return mlrt_st_parse(h, text, len, data_bytes, e);
}

static void accepts(void) {
  mlrt_st_header h;
  mlrt_error e;
  bool fine = parses(" { \"b\" : {\"data_offsets\":[8,20],\"shape\":[3,1],\"dtype\":\"F32\"},\n"
                     "\"__metadata__\":{\"k\":\"v\\u00e9\\ud83d\\ude00\\n\\u001b[2J\\u0000\"},"
                     "\"a\\/x\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
                     "\"e\":{\"dtype\":\"F16\",\"shape\":[0,7],\"data_offsets\":[8,8]}}  ",
                     20, &h, &e);
  CHECK(fine, "%s", e.text);
  if (!fine)
    return;
  const mlrt_st_tensor *b = mlrt_st_find(&h, "b");
  CHECK(b && b->rank == 2 && b->dims[0] == 3 && b->begin == 8 && !strcmp(b->dtype, "F32"), "b");
  CHECK(mlrt_st_find(&h, "a/x") && mlrt_st_find(&h, "e") && !mlrt_st_find(&h, "k"), "names");
  CHECK(!strcmp(mlrt_st_value(&h, "k"), "v\xc3\xa9\xf0\x9f\x98\x80??[2J?"),
        "UTF-8 without control characters: %s", mlrt_st_value(&h, "k"));
  mlrt_st_free(&h);
  CHECK(parses("{}", 0, &h, &e), "an empty file: %s", e.text);
  mlrt_st_free(&h);
}

#define T(offsets) "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" offsets "}"

static void refuses(void) {
  static const struct {
    const char *json;
    int64_t bytes;
    const char *message;
  } cases[] = {
      {"", 0, "expected '{'"},
      {"{", 0, "expected '\"'"},
      {"[]", 0, "expected '{'"},
      {"{} x", 0, "text after the end"},
      {"{\"a\":" T("[0,8]") ",}", 8, "expected '\"'"},
      {"{\"a\":" T("[0,8]") "}", 7, "cut short"},
      {"{\"a\":" T("[0,8]") "}", 9, "1 bytes after the last tensor"},
      {"{\"a\":" T("[0,4]") "}", 4, "needs 8 bytes and has 4"},
      {"{\"a\":" T("[8,0]") "}", 8, "lies at bytes"},
      {"{\"a\":" T("[0,8]") ",\"b\":" T("[4,12]") "}", 12, "overlaps"},
      {"{\"a\":" T("[0,8]") ",\"b\":" T("[12,20]") "}", 20, "after a hole"},
      {"{\"a\":" T("[0,8]") ",\"a\":" T("[8,16]") "}", 16, "'a' comes twice"},
      {"{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "unknown type 'F31'"},
      {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "ends within a byte"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "without dtype, shape or data_offsets"},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 8, "comes twice"},
      {"{\"a\":{\"type\":\"F32\"}}", 8, "unknown key"},
      {"{\"a\":{}}", 8, "expected"},
      {"{\"a\":{\"shape\":[1,1,1,1,1,1,1,1,1]}}", 8, "more than 8"},
      {"{\"a\":{\"shape\":[-1]}}", 8, "whole number"},
      {"{\"a\":{\"shape\":[01]}}", 8, "begins with 0"},
      {"{\"a\":{\"shape\":[1.5]}}", 8, "expected ']'"},
      {"{\"a\":{\"shape\":[9223372036854775808]}}", 8, "too large"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[999999999999999999,9],\"data_offsets\":[0,8]}}", 8,
       "impossible shape"},
      {"{\"__metadata__\":{\"a\":1}}", 0, "expected '\"'"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ comes twice"},
      {"{\"a", 0, "does not end"},
      {"{\"a\\", 0, "does not end"},
      {"{\"a\\x\":", 0, "bad escape"},
      {"{\"\\u12\":", 0, "bad escape"},
      {"{\"\\ud800\":", 0, "bad escape"},
      {"{\"\\ud800\\u0041\":", 0, "bad escape"},
      {"{\"a\tb\":", 0, "control character"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    mlrt_st_header h;
    mlrt_error e = {.text = ""};
    CHECK(!parses(cases[i].json, cases[i].bytes, &h, &e), "accepted: %s", cases[i].json);
    CHECK(strstr(e.text, cases[i].message), "%s: %s", cases[i].json, e.text);
  }
}

// --- weights

// Of each type: no number is other than in the file, be it an integer that no double holds.
static void converts_to_itself(void) {
  static const int64_t integers[] = {INT64_MAX, INT64_MIN, (INT64_C(1) << 53) + 1};
  char from[512], to[512];
  unsigned seed = 3;
  for (int t = 0; t < MLRT_NUM_DTYPES; t++) {
    for (size_t i = 0; i < sizeof from; i++)
      from[i] = (char)((seed = seed * 1103515245u + 12345u) >> 16);
    if (t == MLRT_I64)
      memcpy(from, integers, sizeof integers);
    memset(from + 64, t < MLRT_BF16 ? 0 : 0xff, 16); // a nan
    from[64] = 1;
    int64_t num = (int64_t)sizeof from / mlrt_dtype_bytes((mlrt_dtype)t);
    CHECK(mlrt_weights_convert(to, (mlrt_dtype)t, from, (mlrt_dtype)t, num), "type %d", t);
    CHECK(!memcmp(from, to, sizeof from), "type %d: other bits", t);
  }
}

static void converts_between_types(void) {
  static const struct {
    double v, f32;
    bool fits;
  } cases[] = {{0.1, 0.1f, true},
               {-1e300, -INFINITY, false},
               {3.5e38, INFINITY, false},
               {-INFINITY, -INFINITY, true},
               {1e-300, 0, true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    float narrow;
    double wide;
    bool fits =
        mlrt_weights_convert((char *)&narrow, MLRT_F32, (const char *)&cases[i].v, MLRT_F64, 1);
    CHECK(fits == cases[i].fits && (double)narrow == cases[i].f32, "%g becomes %g", cases[i].v,
          (double)narrow);
    CHECK(mlrt_weights_convert((char *)&wide, MLRT_F64, (const char *)&narrow, MLRT_F32, 1) &&
              wide == cases[i].f32,
          "%g comes back as %g", (double)narrow, wide);
  }
}

static double converted(double v, mlrt_dtype t) {
  char to[sizeof v];
  mlrt_weights_convert(to, t, (const char *)&v, MLRT_F64, 1);
  return mlrt_load(to, t);
}

// Just above the middle of two neighbours, by less than f32 sees: once through f32 it would be that middle, and go to
// the even one below.
static void rounds_once(void) {
  static const struct {
    double v, bf16, f16;
  } cases[] = {{1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7, 1 + 0x1p-8},
               {-1 - 0x1p-8 - 0x1p-40, -1 - 0x1p-7, -1 - 0x1p-8},
               {1 + 0x1.8p-7 - 0x1p-40, 1 + 0x1p-7, 1 + 0x1.8p-7},
               {1 + 0x1p-8, 1, 1 + 0x1p-8},
               {1 + 0x1p-11 + 0x1p-40, 1, 1 + 0x1p-10},
               {1 + 0x1p-11, 1, 1},
               {0x1p-25 + 0x1p-60, 0x1p-25, 0x1p-24},
               {0x1p-134 + 0x1p-160, 0x1p-133, 0},
               {0x1.ffp127, INFINITY, INFINITY},
               {0x1.fefffffffffffp127, 0x1.fep127, INFINITY},
               {1e300, INFINITY, INFINITY},
               {65519.999999, 65536, 65504}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    double bf16 = converted(cases[i].v, MLRT_BF16), f16 = converted(cases[i].v, MLRT_F16);
    CHECK(bf16 == cases[i].bf16, "%a becomes %a in bf16", cases[i].v, bf16);
    CHECK(f16 == cases[i].f16, "%a becomes %a in f16", cases[i].v, f16);
  }
}

// --- checkpoints

static void fill_states(char *to, unsigned seed) {
  for (int i = 0; i < TOY_STATES; i++)
    to[i] = (char)(seed = seed * 1103515245u + 12345u);
}

static mlrt_run_point some_point(void) {
  return (mlrt_run_point){.step = 17,
                          .position = {3, 24},
                          .evaluated = 10,
                          .samples = TOY_TRAIN,
                          .seed = UINT64_MAX - 5,
                          .window_steps = 2,
                          .window = {0.1, NAN, -3e300}};
}

static void save_as(const mlrt_program *p, const char *path) {
  mlrt_saver s;
  mlrt_error e;
  mlrt_run_point at = some_point();
  bool fine = mlrt_saver_open(&s, p, &options, path, &e) && mlrt_saver_save(&s, &memory, &at, &e);
  CHECK(fine, "%s", e.text);
  mlrt_saver_close(&s);
}

static bool same_states(const char *a, const char *b) {
  for (int i = 0; i < program.num_states; i++) {
    const mlrt_tensor *t = &program.states[i];
    if (t->role != MLRT_FLAG && memcmp(a + t->offset, b + t->offset, (size_t)t->bytes))
      return false;
  }
  return true;
}

static void test_round_trip(void) {
  save_as(&program, "c.st");
  mlrt_checkpoint c;
  mlrt_error e;
  if (!mlrt_checkpoint_open(&c, &program, "c.st", &e)) {
    CHECK(false, "%s", e.text);
    return;
  }
  mlrt_run_point p = some_point();
  CHECK(c.at.step == 17 && c.at.position.epoch == 3 && c.at.position.index == 24, "position");
  CHECK(c.at.evaluated == 10 && c.at.samples == TOY_TRAIN && c.at.seed == p.seed, "seed");
  CHECK(c.at.window_steps == 2 && c.at.window[0] == 0.1 && isnan(c.at.window[1]) &&
            c.at.window[2] == -3e300,
        "window");
  CHECK(c.header.data_start % 8 == 0 && !c.other_plan, "alignment");
  double lr = 0;
  CHECK(mlrt_checkpoint_flag(&c, "lr", &lr) && lr == 0.1, "flag %g", lr);
  CHECK(!mlrt_checkpoint_flag(&c, "w", &lr) && !mlrt_st_find(&c.header, "lr"),
        "flags are no state");
  char *other = calloc(1, TOY_ARENA);
  mlrt_device elsewhere = mlrt_device_memory(other);
  CHECK(mlrt_checkpoint_read(&c, &program, &elsewhere, &e) && same_states(arena, other), "states");
  mlrt_checkpoint_close(&c);
  free(other);
  save_as(&program, "c2.st");
  CHECK(same_file("c.st", "c2.st"), "equal states give equal files");
}

static void write_file(const char *path, const char *data, size_t len) {
  FILE *f = fopen(path, "w");
  fwrite(data, 1, len, f);
  fclose(f);
}

static bool opens(const mlrt_program *p, const char *path, mlrt_error *e) {
  mlrt_checkpoint c;
  e->text[0] = 0;
  bool fine = mlrt_checkpoint_open(&c, p, path, e);
  if (fine)
    mlrt_checkpoint_close(&c);
  else
    CHECK(strstr(e->text, path), "the message names no file: %s", e->text);
  return fine;
}

// Any one byte changed and any length cut must be noticed, in the header as in the data.
static void test_damage(void) {
  size_t len, header = 0;
  char *file = slurp("c.st", &len);
  memcpy(&header, file, 8);
  mlrt_error e;
  for (size_t cut = 0; cut < len; cut += cut < header + 64 ? 7 : 997) {
    write_file("x.st", file, cut);
    CHECK(!opens(&program, "x.st", &e), "cut to %zu bytes", cut);
  }
  for (size_t at = 8 + header; at < len; at += 131) {
    file[at] ^= 0x10;
    write_file("x.st", file, len);
    CHECK(!opens(&program, "x.st", &e) && strstr(e.text, "damaged"), "flip at %zu: %s", at, e.text);
    file[at] ^= 0x10;
  }
  for (size_t at = 0; at < 8 + header; at++) {
    file[at] ^= 0x04;
    write_file("x.st", file, len);
    CHECK(!opens(&program, "x.st", &e), "flip at %zu of the header: %.40s", at, file + at);
    file[at] ^= 0x04;
  }
  write_file("x.st", file, len);
  CHECK(opens(&program, "x.st", &e), "unharmed: %s", e.text);
  write_file("x.st", file, len + 1);
  CHECK(!opens(&program, "x.st", &e) && strstr(e.text, "after the last tensor"), "%s", e.text);
  free(file);
  CHECK(!opens(&program, "missing.st", &e) && strstr(e.text, "No such file"), "%s", e.text);
  CHECK(!opens(&program, "/tmp", &e) && strstr(e.text, "not a file"), "%s", e.text);
}

// A program with other states says which, all at once.
static void test_other_model(void) {
  mlrt_tensor states[sizeof toy_states / sizeof toy_states[0]];
  memcpy(states, toy_states, sizeof states);
  mlrt_program p = program;
  p.states = states;
  p.model = "other";
  states[0].name = "v";
  states[1].dtype = MLRT_I32;
  states[8].dims[0] = 100;
  states[8].dims[1] = 50;
  mlrt_error e;
  CHECK(!opens(&p, "c.st", &e), "another model's checkpoint");
  static const char *const words[] = {"model 'other'; the file: model 'toy'",
                                      "missing in the file: v", "unknown to the program: w",
                                      "w.m is F32[5] in the file and I32[5] in the program",
                                      "big is F32[50,100] in the file and F32[100,50]"};
  for (int i = 0; i < 5; i++)
    CHECK(strstr(e.text, words[i]), "lacks '%s': %s", words[i], e.text);
  p = program;
  p.num_states--;
  CHECK(!opens(&p, "c.st", &e) && strstr(e.text, "unknown to the program: big"), "%s", e.text);
  p = program;
  p.plan_hash = 1;
  mlrt_checkpoint c;
  CHECK(mlrt_checkpoint_open(&c, &p, "c.st", &e) && c.other_plan, "another plan is no error");
  mlrt_checkpoint_close(&c);
}

static void test_foreign_file(void) {
  static const char json[] = "{}      ";
  uint64_t len = 8;
  char file[16];
  memcpy(file, &len, 8);
  memcpy(file + 8, json, 8);
  write_file("f.st", file, 16);
  mlrt_error e;
  CHECK(!opens(&program, "f.st", &e) && strstr(e.text, "model 'unknown'"), "%s", e.text);
  mlrt_program none = program;
  none.num_states = 0;
  CHECK(!opens(&none, "f.st", &e) && strstr(e.text, "not a checkpoint of a trainer"), "%s", e.text);
}

// A flag and results whose names differ only at their ends, and are as long as anybody likes.
static void test_long_names(void) {
  static char names[3][301];
  mlrt_tensor states[sizeof toy_states / sizeof toy_states[0]];
  mlrt_result results[3];
  memcpy(states, toy_states, sizeof states);
  memcpy(results, toy_results, sizeof results);
  mlrt_program p = program;
  p.states = states;
  p.funcs[MLRT_STEP].results = results;
  for (int len = 240; len <= 300; len += 10) {
    for (int i = 0; i < 3; i++) {
      memset(names[i], 'n', (size_t)len);
      names[i][len - 1] = (char)('a' + i);
      results[i].name = states[5 + i].name = names[i]; // flags
    }
    mlrt_options with = {.num_flags = 0};
    char *argv[] = {NULL};
    mlrt_error e = {.text = ""};
    mlrt_saver s;
    mlrt_checkpoint c;
    mlrt_run_point at = some_point();
    bool fine = mlrt_options_parse(&with, &p, 1, argv, &e) &&
                mlrt_saver_open(&s, &p, &with, "l.st", &e) &&
                mlrt_saver_save(&s, &memory, &at, &e) && mlrt_checkpoint_open(&c, &p, "l.st", &e);
    CHECK(fine, "%s", e.text);
    if (!fine)
      return;
    double lr = 0, steps = 0;
    CHECK(mlrt_checkpoint_flag(&c, names[0], &lr) && lr == 0.1, "%d bytes: flag %g", len, lr);
    CHECK(mlrt_checkpoint_flag(&c, names[1], &steps) && steps == 40, "%d bytes: %g", len, steps);
    CHECK(c.at.window[0] == 0.1 && isnan(c.at.window[1]) && c.at.window[2] == -3e300,
          "%d bytes: window %g", len, c.at.window[0]);
    mlrt_checkpoint_close(&c);
    mlrt_saver_close(&s);
    mlrt_options_free(&with);
  }
}

// Two runs that save to one path: the second is told so, and the file stays whole.
static void test_two_writers(void) {
  mlrt_saver s;
  mlrt_error e = {.text = ""};
  mlrt_run_point at = some_point();
  CHECK(mlrt_saver_open(&s, &program, &options, "c.st", &e), "%s", e.text);
  int other = open("c.st.tmp", O_WRONLY | O_CREAT, 0666);
  CHECK(other >= 0 && flock(other, LOCK_EX) == 0, "no lock");
  CHECK(!mlrt_saver_save(&s, &memory, &at, &e) && strstr(e.text, "another program"), "%s", e.text);
  CHECK(access("c.st.tmp", F_OK) == 0 && same_file("c.st", "c2.st"), "the other's file is gone");
  mlrt_saver again;
  CHECK(mlrt_saver_open(&again, &program, &options, "c.st", &e), "%s", e.text);
  CHECK(access("c.st.tmp", F_OK) == 0, "a start removes the other's file");
  mlrt_saver_close(&again);
  close(other);
  CHECK(mlrt_saver_save(&s, &memory, &at, &e), "%s", e.text);
  CHECK(access("c.st.tmp", F_OK) != 0 && same_file("c.st", "c2.st"), "not saved afterwards");
  mlrt_saver_close(&s);
}

int main(void) {
  mlrt_embedded embedded[2];
  program = toy_program(embedded);
  arena = toy_arena(&program, &options);
  memory = mlrt_device_memory(arena);
  fill_states(arena, 7);
  char *folder = enter_scratch();
  accepts();
  refuses();
  converts_to_itself();
  converts_between_types();
  rounds_once();
  test_round_trip();
  test_long_names();
  test_two_writers();
  test_damage();
  test_other_model();
  test_foreign_file();
  leave_scratch(folder);
  free(arena);
  mlrt_options_free(&options);
  return failures != 0;
}
