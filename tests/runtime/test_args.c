// test_args.c: what the command line accepts, refuses and suggests.
#include "runtime/args.h"
#include "runtime/hash.h"
#include "runtime/numbers.h"
#include "tests/runtime/support_program.h"

static mlrt_program program;

typedef struct parsed {
  mlrt_options options;
  mlrt_error error;
  bool fine;
} parsed;

static parsed parse(const char *args) {
  parsed r = {.fine = false};
  char *argv[TOY_MAX_ARGS] = {NULL};
  int argc = 1;
  static char copy[4096]; // options point into it until the next call
  snprintf(copy, sizeof copy, "%s", args);
  for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
    argv[argc++] = word;
  r.fine = mlrt_options_parse(&r.options, &program, argc, argv, &r.error);
  return r;
}

static void accepts(void) {
  parsed r = parse("train --lr=0.5 --threads 3 --save=a.st --resume --seed=-4 --metrics=m --quiet");
  CHECK(r.fine, "%s", r.error.text);
  CHECK(mlrt_find_flag(&r.options, "lr")->value == 0.5, "lr");
  CHECK(mlrt_find_flag(&r.options, "lr")->given, "lr is given");
  CHECK(mlrt_find_flag(&r.options, "steps")->value == 40, "default of a flag");
  CHECK(!mlrt_find_flag(&r.options, "steps")->given, "steps is not given");
  CHECK(!mlrt_find_flag(&r.options, "w"), "a parameter is no flag");
  CHECK(r.options.threads == 3 && r.options.seed == -4 && r.options.seed_given, "numbers");
  CHECK(r.options.resume && !r.options.resume_file, "--resume without a file");
  CHECK(r.options.quiet && !strcmp(r.options.save, "a.st"), "texts");
  mlrt_options_free(&r.options);
  r = parse("eval --resume=x --split test");
  CHECK(r.fine && r.options.command == MLRT_CMD_EVAL && !strcmp(r.options.resume_file, "x"),
        "eval");
  mlrt_options_free(&r.options);
  r = parse("");
  CHECK(r.fine && r.options.command == MLRT_CMD_TRAIN && !r.options.seed_given, "nothing");
  mlrt_options_free(&r.options);
  r = parse("--steps=1e3 --delay=0x10");
  CHECK(r.fine && mlrt_find_flag(&r.options, "steps")->value == 1000, "1e3 is a whole number");
  CHECK(mlrt_find_flag(&r.options, "delay")->value == 16, "hexadecimal");
  mlrt_options_free(&r.options);
}

static void refuses(void) {
  static const struct {
    const char *args, *message;
  } cases[] = {
      {"--thread=2", "did you mean --threads?"},
      {"--l=2", "did you mean --lr?"},
      {"--lrr=2", "did you mean --lr?"},
      {"--reusme", "did you mean --resume?"},
      {"--zzzzzzzz", "--help lists them"},
      {"tran", "did you mean 'train'?"},
      {"frobnicate", "there are train"},
      {"train eval", "one command too many"},
      {"--threads=0", "from 1 to 256, not '0'"},
      {"--threads=257", "from 1 to 256"},
      {"--threads=2x", "not '2x'"},
      {"--threads", "needs a value"},
      {"--seed=99999999999999999999",
       "from -9223372036854775808 to 9223372036854775807, not '99999999999999999999'"},
      {"--save-every=9223372036854775808", "from 1 to 9223372036854775807"},
      {"--lr=1e-50", "--lr=1e-50 is 0 in f32"},
      {"--lr=-1e-50", "--lr=-1e-50 is 0 in f32"},
      {"--lr=abc", "needs a number"},
      {"--lr=1e39", "--lr=1e39 does not fit"},
      {"--lr=nan", "needs a number"},
      {"--lr=", "needs a number"},
      {"--lr", "needs a value"},
      {"--steps=2.5", "needs a whole number"},
      {"--quiet=1", "takes no value"},
      {"--save=", "needs a value"},
      {"--save=x --no-save", "contradict"},
      {"--weights=x --resume", "--weights begins a new run"},
      {"eval --allow-missing", "is about --weights=FILE"},
      {"check --weights=x", "'check' has no option --weights"},
      {"eval --seed=3", "'eval' has no option --seed"},
      {"--out=x", "'train' has no option --out"},
      {"-x", "begin with two dashes"},
      {"--log-every=0", "above 0"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    parsed r = parse(cases[i].args);
    CHECK(!r.fine, "`%s` is accepted", cases[i].args);
    CHECK(r.fine || strstr(r.error.text, cases[i].message), "`%s`: %s", cases[i].args,
          r.error.text);
    mlrt_options_free(&r.options);
  }
}

// The only flag of a program; its name may have any length.
static void takes_long_names(void) {
  static char name[301], args[1000];
  mlrt_tensor state = {.name = name, .dtype = MLRT_F32, .role = MLRT_FLAG, .value = 1};
  mlrt_program before = program;
  program.states = &state;
  program.num_states = 1;
  for (int len = 60; len <= 300; len += 48) {
    memset(name, 'f', (size_t)len);
    snprintf(args, sizeof args, "--%s=2", name);
    parsed r = parse(args);
    CHECK(r.fine && r.options.flags[0].value == 2, "%d bytes: %s", len, r.error.text);
    mlrt_options_free(&r.options);
    snprintf(args, sizeof args, "--quiet --%s 3", name);
    r = parse(args);
    CHECK(r.fine && r.options.flags[0].value == 3, "%d bytes: %s", len, r.error.text);
    mlrt_options_free(&r.options);
    for (int other = -1; other <= 1; other += 2) { // one byte less, one more
      snprintf(args, sizeof args, "--%.*s%s=2", len + (other < 0 ? -1 : 0), name,
               other > 0 ? "f" : "");
      r = parse(args);
      CHECK(!r.fine && strstr(r.error.text, "; --help lists them"), "%d bytes: %s", len + other,
            r.error.text);
      mlrt_options_free(&r.options);
    }
    snprintf(args, sizeof args, "--%s", name);
    r = parse(args);
    CHECK(!r.fine && strstr(r.error.text, "f needs a value"), "%d bytes: %s", len, r.error.text);
    mlrt_options_free(&r.options);
  }
  program = before;
}

static void keeps_flags_in_their_types(void) {
  static const struct {
    mlrt_dtype type;
    const char *text;
    bool fits;
  } cases[] = {{MLRT_U8, "255", true},   {MLRT_U8, "256", false},   {MLRT_U8, "-1", false},
               {MLRT_I8, "-128", true},  {MLRT_I8, "128", false},   {MLRT_BOOL, "1", true},
               {MLRT_BOOL, "5", false},  {MLRT_BOOL, "true", true}, {MLRT_U16, "65536", false},
               {MLRT_F16, "1e5", false}, {MLRT_BF16, "1e5", true},  {MLRT_F64, "1e300", true},
               {MLRT_I64, "false", true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    mlrt_tensor state = {.name = "k", .dtype = cases[i].type};
    mlrt_flag f = {.state = &state};
    mlrt_error e;
    bool fits = mlrt_flag_set(&f, cases[i].text, &e);
    CHECK(fits == cases[i].fits, "type %d: --k=%s is %s", (int)cases[i].type, cases[i].text,
          fits ? "accepted" : e.text);
    CHECK(fits || strstr(e.text, "does not fit"), "%s", e.text);
  }
}

// A double, in which flags are handed on, has no place for 2^53 + 1.
static void takes_no_flag_that_is_rounded(void) {
  static const struct {
    const char *text;
    bool fits;
  } cases[] = {{"9007199254740992", true},     {"9007199254740993", false},
               {"-9007199254740993", false},   {"9007199254740994", false},
               {"9.007199254740992e15", true}, {"123456789012", true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    mlrt_tensor state = {.name = "k", .dtype = MLRT_I64};
    mlrt_flag f = {.state = &state};
    mlrt_error e;
    bool fits = mlrt_flag_set(&f, cases[i].text, &e);
    CHECK(fits == cases[i].fits, "--k=%s is %s", cases[i].text, fits ? "accepted" : e.text);
    CHECK(fits || strstr(e.text, "up to 2^53"), "%s", e.text);
  }
}

static void prints_help(void) {
  parsed r = parse("--help");
  char *text = NULL;
  size_t len = 0;
  FILE *f = open_memstream(&text, &len);
  mlrt_options_help(&r.options, &program, "trainer", f);
  fclose(f);
  CHECK(r.options.help, "--help");
  CHECK(strstr(text, "--lr=NUMBER") && strstr(text, "default 0.1 (toy.graph:3)"), "%s", text);
  CHECK(strstr(text, "\n  --lr=NUMBER        default 0.1 (toy"), "columns: %s", text);
  CHECK(strstr(text, "--steps=INTEGER") && strstr(text, "--resume[=FILE]"), "%s", text);
  CHECK(mlrt_flag_digits(mlrt_find_flag(&r.options, "steps")) == 17, "2^53 is not printed whole");
  free(text);
  mlrt_options_free(&r.options);
}

static uint64_t hash_in_parts(const char *text, size_t len, size_t part) {
  mlrt_hash h;
  mlrt_hash_begin(&h);
  for (size_t at = 0; at < len; at += part)
    mlrt_hash_add(&h, text + at, len - at < part ? len - at : part);
  return mlrt_hash_end(&h);
}

// Values of the reference implementation.
static void hashes(void) {
  CHECK(hash_in_parts("", 0, 1) == UINT64_C(0xEF46DB3751D8E999), "XXH64 of nothing");
  CHECK(hash_in_parts("abc", 3, 1) == UINT64_C(0x44BC2CF5AD770999), "XXH64 of abc");
  static const char long_text[] = "Nobody inspects the spammish repetition";
  CHECK(hash_in_parts(long_text, sizeof long_text - 1, 100) == UINT64_C(0xFBCEA83C8A378BF1),
        "XXH64 of a text longer than a block");
  for (size_t part = 1; part < 40; part++)
    CHECK(hash_in_parts(long_text, 39, part) == hash_in_parts(long_text, 39, 39), "parts of %zu",
          part);
}

int main(void) {
  mlrt_embedded embedded[2];
  program = toy_program(embedded);
  accepts();
  refuses();
  takes_long_names();
  keeps_flags_in_their_types();
  takes_no_flag_that_is_rounded();
  prints_help();
  hashes();
  return failures != 0;
}
