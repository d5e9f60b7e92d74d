// options.c: reads the command line (getopt_long). See options.h.
#include "driver/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "passes/checkpoint.h"

void options_help(FILE *out) {
  fputs(
      "mltc compiles a description of a network, its data and its recipe into a program that "
      "trains.\n"
      "\n"
      "  mltc FILE.graph [-o TRAINER]     compile and link (FILE.ir works too, from any pass)\n"
      "  mltc memory FILE.graph           what a trainer of it would need, in seconds;\n"
      "                                   --gpu=SIZE: whether that fits, --json: for programs\n"
      "  mltc diff A.json B.json          what changed between two plans (--emit=plan.json);\n"
      "                                   --json: for programs; exit codes are those of diff\n"
      "\n"
      "  -o, --output=FILE       what to write (default: the file's name without .graph; what\n"
      "                          --emit prints: standard output, which is also -)\n"
      "  -D NAME=VALUE           set a `let` of the graph\n"
      "  -I DIR                  look for imports there too\n"
      "  -O0 .. -O3              effort of the C compiler (default -O2)\n"
      "  --target=T              cpu (this machine), cpu:x86-64-v3, cpu:x86-64-v4,\n"
      "                          cpu:aarch64 (64-bit ARM),\n"
      "                          cuda (sm_80 and sm_90a), cuda:sm_80,sm_86,sm_89,sm_90a,sm_100\n"
      "  --precision=P           what matmuls multiply: f32, tf32 or bf16 (default: the graph's\n"
      "                          train { precision = P }, or f32); sums are f32 in all of them\n"
      "  --memory-budget=SIZE    bytes that the plan may take in all, such as 64MiB; what does not "
      "fit is\n"
      "                          computed again instead of kept, or mltc says what stands in the "
      "way\n"
      "  --allow=accumulate      where a batch does not fit, it may be run as several "
      "micro-batches\n"
      "                          whose gradients are added\n"
      "  --extra-time=PERCENT    the least memory with steps that are predicted to take at most so "
      "much\n"
      "                          longer, such as 10%\n"
      "  --max-batch             the largest batch that fits the budget; with -o compiled, too\n"
      "  --max=NAME              the same for another `let`\n"
      "  --checkpoint=P          what of the forward pass is kept for the backward pass: none\n"
      "                          (everything is), free (not what takes no time to compute again;\n"
      "                          the default for CPUs), selective (not what is cheap to compute\n"
      "                          again), sqrt, all (only what goes from block to block),\n"
      "                          auto (the least time that meets the budget; the default where\n"
      "                          there is one)\n"
      "  --plan=FILE.json        compile with a plan (--emit=plan.json) that was edited by hand: "
      "what runs\n"
      "                          again, the order, offsets\n"
      "  --emit=KIND             print instead of building: ast, ir (after all passes), kernels,\n"
      "                          plan, plan.json, c, llvm, asm, dot, cuda, ptx,\n"
      "                          resources (registers, occupancy, least time of each kernel),\n"
      "                          report (memory and kernels, a page for browsers)\n"
      "  --cuda-compiler=C       nvrtc (default), or clang: PTX only, needs no CUDA toolkit\n"
      "  --no-cache              compile even what the cache has, and keep nothing there\n"
      "  --print-after=PASS      print the IR after a pass (all: after each) on stderr\n"
      "  --disable-pass=PASS     leave a pass out\n"
      "  --time-passes           a table of times on stderr\n"
      "  --keep=DIR              keep every intermediate file there, numbered\n"
      "  -MD                     write a make rule with the files read to OUT.d\n"
      "  --diagnostics=json      errors as one JSON object per line\n"
      "  --explain CODE          a longer text on an error code, such as E0203\n"
      "  -v                      show the commands that are run\n"
      "  --help, --version\n"
      "\n"
      "Exit codes: 0 done, 1 errors in the input, 2 wrong usage, 3 does not fit the budget,\n"
      "70 internal fault.\n",
      out);
}

// What an option does with its value: where it is kept is said by the table.
typedef struct command_line command_line;
typedef struct option_entry option_entry;
typedef bool (*option_parser)(command_line *x, const option_entry *e, const char *value);

struct command_line {
  ir_arena *a;
  options *o;
  const char **why;
  bool *given; // of each entry of the table
};

// What an option says something to: for another command it is refused, not ignored.
typedef enum option_use { BOTH, COMPILE, MEMORY } option_use;

struct option_entry {
  const char *name; // NULL: a letter alone
  int letter;       // 0: none
  option_use use;
  option_parser parse;
  size_t at;                // of a field in `options`
  const char *const *words; // that it can be; ends with NULL
};

enum { MOST_PERCENT = 1000 };

// --- values --------------------------------------------------------------------------------------
static bool wrong_value(const command_line *x, const option_entry *e, const char *value) {
  size_t num = 0;
  ir_buf b = ir_buf_new(x->a), all = ir_buf_new(x->a);
  for (; e->words[num]; num++)
    ir_buf_printf(&all, "%s%s", num ? ", " : "", e->words[num]);
  const char *near = diag_nearest(value, e->words, num);
  ir_buf_printf(&b, "--%s=%s: ", e->name, value);
  if (near)
    ir_buf_printf(&b, "did you mean '%s'? ", near);
  ir_buf_printf(&b, "it can be %s", ir_buf_str(&all));
  *x->why = ir_buf_str(&b);
  return false;
}

// Which of its words it is; -1: none.
static int find_word(const option_entry *e, const char *value) {
  for (int i = 0; e->words[i]; i++)
    if (!strcmp(e->words[i], value))
      return i;
  return -1;
}

static void *field(const command_line *x, const option_entry *e) {
  return (char *)x->o + e->at;
}

// False where there is none.
static bool has_text(const command_line *x, const option_entry *e, const char *value) {
  if (*value)
    return true;
  *x->why = e->name ? ir_format(x->a, "'--%s=' needs a value", e->name)
                    : ir_format(x->a, "'-%c' needs a value", e->letter);
  return false;
}

static bool keep_text(command_line *x, const option_entry *e, const char *value) {
  *(const char **)field(x, e) = value;
  return has_text(x, e, value);
}

static bool keep_once(command_line *x, const option_entry *e, const char *value) {
  const char *before = *(const char **)field(x, e);
  if (before && strcmp(before, value) != 0) {
    *x->why =
        ir_format(x->a, "--%s=%s and --%s=%s: one at a time", e->name, before, e->name, value);
    return false;
  }
  return keep_text(x, e, value);
}

static bool keep_flag(command_line *x, const option_entry *e, const char *value) {
  (void)value;
  *(bool *)field(x, e) = true;
  return true;
}

static bool keep_in_list(command_line *x, const option_entry *e, const char *value) {
  option_list *list = field(x, e);
  IR_PUSH(x->a, *list, value);
  return has_text(x, e, value);
}

static bool keep_word(command_line *x, const option_entry *e, const char *value) {
  return find_word(e, value) >= 0 ? keep_text(x, e, value) : wrong_value(x, e, value);
}

static bool keep_bytes(command_line *x, const option_entry *e, const char *value) {
  if (ir_parse_bytes(value, field(x, e)))
    return true;
  *x->why = ir_format(x->a,
                      "--%s=%s: it is a number of bytes above 0 and below 8388608TiB, such as "
                      "64MiB, 1.5GB or 80GiB",
                      e->name, value);
  return false;
}

static bool parse_percent(command_line *x, const option_entry *e, const char *value) {
  size_t digits = strspn(value, "0123456789."); // strtod would take 0x10, 1e1 and inf as well
  char *end = NULL;
  double percent = strtod(value, &end);
  *(double *)field(x, e) = percent / 100;
  if (digits > 0 && end == value + digits && !strcmp(end, "%") && percent <= MOST_PERCENT)
    return true;
  *x->why = ir_format(x->a, "--%s=%s: it is a share of the time, such as 10%% or 2.5%%, up to %d%%",
                      e->name, value, (int)MOST_PERCENT);
  return false;
}

static bool parse_emit(command_line *x, const option_entry *e, const char *value) {
  int found = find_word(e, value);
  x->o->emit = (emit_kind)(found + 1);
  return found >= 0 || wrong_value(x, e, value);
}

static bool parse_level(command_line *x, const option_entry *e, const char *value) {
  (void)e;
  x->o->opt_level = *value - '0';
  if (strlen(value) == 1 && *value >= '0' && *value <= '3')
    return true;
  *x->why = ir_format(x->a, "-O%s: it can be -O0, -O1, -O2 or -O3", value);
  return false;
}

static bool parse_diagnostics(command_line *x, const option_entry *e, const char *value) {
  x->o->json_diagnostics = !strcmp(value, "json");
  return find_word(e, value) >= 0 || wrong_value(x, e, value);
}

static bool parse_precision(command_line *x, const option_entry *e, const char *value) {
  if (strcmp(value, "f16") != 0)
    return keep_word(x, e, value);
  *x->why = "--precision=f16 is not there: gradients in f16 need loss scaling; bf16 has the range "
            "of f32 (casts f16(x) in the graph reach f16 matmuls)";
  return false;
}

// A list with commas of what a compilation may change to meet its budget.
static bool parse_allowed(command_line *x, const option_entry *e, const char *value) {
  for (const char *at = value;; at++) {
    size_t len = strcspn(at, ",");
    const char *word = ir_strndup(x->a, at, len);
    if (find_word(e, word) < 0)
      return wrong_value(x, e, word);
    x->o->allow_accumulate = true;
    at += len;
    if (!*at)
      return true;
  }
}

// --- the table -----------------------------------------------------------------------------------
static const char *const emit_words[] = {
    [EMIT_AST - 1] = "ast",
    [EMIT_IR - 1] = "ir",
    [EMIT_KERNELS - 1] = "kernels",
    [EMIT_PLAN - 1] = "plan",
    [EMIT_PLAN_JSON - 1] = "plan.json",
    [EMIT_C - 1] = "c",
    [EMIT_LLVM - 1] = "llvm",
    [EMIT_ASM - 1] = "asm",
    [EMIT_DOT - 1] = "dot",
    [EMIT_CUDA - 1] = "cuda",
    [EMIT_PTX - 1] = "ptx",
    [EMIT_RESOURCES - 1] = "resources",
    [EMIT_REPORT - 1] = "report",
    NULL,
};
static const char *const diagnostics_words[] = {"json", "text", NULL};
static const char *const compiler_words[] = {"nvrtc", "clang", NULL};
static const char *const precision_words[] = {"f32", "tf32", "bf16", NULL};
static const char *const allow_words[] = {"accumulate", NULL};

#define AT(FIELD) offsetof(options, FIELD)
static const option_entry entries[] = {
    {"output", 'o', COMPILE, keep_text, AT(output), NULL},
    {NULL, 'D', BOTH, keep_in_list, AT(defines), NULL},
    {NULL, 'I', BOTH, keep_in_list, AT(include_dirs), NULL},
    {NULL, 'O', COMPILE, parse_level, AT(opt_level), NULL},
    {NULL, 'v', COMPILE, keep_flag, AT(verbose), NULL},
    {"target", 0, BOTH, keep_text, AT(target), NULL},
    {"emit", 0, COMPILE, parse_emit, AT(emit), emit_words},
    {"print-after", 0, COMPILE, keep_in_list, AT(print_after), NULL},
    {"disable-pass", 0, BOTH, keep_in_list, AT(disabled), NULL},
    {"keep", 0, COMPILE, keep_text, AT(keep_dir), NULL},
    {"time-passes", 0, COMPILE, keep_flag, AT(time_passes), NULL},
    {"explain", 0, BOTH, keep_text, AT(explain), NULL},
    {"diagnostics", 0, BOTH, parse_diagnostics, AT(json_diagnostics), diagnostics_words},
    {"cuda-compiler", 0, COMPILE, keep_word, AT(cuda_compiler), compiler_words},
    {"no-cache", 0, COMPILE, keep_flag, AT(no_cache), NULL},
    {"precision", 0, BOTH, parse_precision, AT(precision), precision_words},
    {"checkpoint", 0, COMPILE, keep_word, AT(checkpoint), checkpoint_names},
    {"plan", 0, COMPILE, keep_text, AT(plan), NULL},
    {"memory-budget", 0, BOTH, keep_bytes, AT(memory_budget), NULL},
    {"extra-time", 0, COMPILE, parse_percent, AT(extra_time), NULL},
    {"allow", 0, COMPILE, parse_allowed, AT(allow_accumulate), allow_words},
    {"max-batch", 0, COMPILE, keep_flag, AT(max_batch), NULL},
    {"max", 0, COMPILE, keep_once, AT(max), NULL},
    {"gpu", 0, MEMORY, keep_bytes, AT(gpu_bytes), NULL},
    {"json", 0, MEMORY, keep_flag, AT(json), NULL},
    {"help", 0, BOTH, keep_flag, AT(help), NULL},
    {"version", 0, BOTH, keep_flag, AT(version), NULL},
};
enum { NUM_ENTRIES = sizeof entries / sizeof *entries, FIRST_LONG = 256 };
#undef AT

static bool has_value(const option_entry *e) {
  return e->parse != keep_flag;
}

// The table as getopt_long reads it: names end with {0}, ids are letters or FIRST_LONG and up.
static void fill_getopt(struct option *names, char *letters) {
  *letters++ = ':'; // a missing value is told from an unknown option
  for (int i = 0; i < NUM_ENTRIES; i++) {
    const option_entry *e = &entries[i];
    if (e->name)
      *names++ = (struct option){e->name, has_value(e), NULL, FIRST_LONG + i};
    if (e->letter)
      *letters++ = (char)e->letter;
    if (e->letter && has_value(e))
      *letters++ = ':';
  }
  *names = (struct option){0};
  *letters = 0;
}

static const option_entry *find_entry(int id) {
  for (int i = 0; i < NUM_ENTRIES; i++)
    if (id == FIRST_LONG + i || id == entries[i].letter)
      return &entries[i];
  BUG("option %d", id);
}

// --- the command line ----------------------------------------------------------------------------
static bool unknown_option(const command_line *x, const char *arg, bool missing) {
  if (missing) {
    *x->why = ir_format(x->a, "'%s' needs a value", arg);
    return false;
  }
  const char *names[NUM_ENTRIES];
  size_t num = 0;
  for (int i = 0; i < NUM_ENTRIES; i++)
    if (entries[i].name)
      names[num++] = ir_format(x->a, "--%s", entries[i].name);
  char *word = ir_strdup(x->a, arg);
  word[strcspn(word, "=")] = 0;
  const char *near = diag_nearest(word, names, num);
  *x->why = near ? ir_format(x->a, "unknown option '%s'; did you mean '%s'?", arg, near)
                 : ir_format(x->a, "unknown option '%s'", arg);
  return false;
}

// -MD is one word by tradition: getopt would read it as -M -D.
static int take_dependencies(int argc, char **argv, options *o) {
  int kept = 0;
  for (int i = 0; i < argc; i++)
    if (i > 0 && !strcmp(argv[i], "-MD"))
      o->dependencies = true;
    else
      argv[kept++] = argv[i];
  argv[kept] = NULL;
  return kept;
}

static const char *option_text(ir_arena *a, const option_entry *e) {
  return e->name ? ir_format(a, "--%s", e->name) : ir_format(a, "-%c", e->letter);
}

// Options of another command, and -MD, which is not in the table.
static bool check_command(const command_line *x) {
  bool memory = x->o->command == COMMAND_MEMORY;
  const char *wrong = memory && x->o->dependencies ? "-MD" : NULL;
  for (int i = 0; i < NUM_ENTRIES && !wrong; i++)
    if (x->given[i] && entries[i].use == (memory ? COMPILE : MEMORY))
      wrong = option_text(x->a, &entries[i]);
  if (wrong && memory)
    *x->why =
        ir_format(x->a, "`mltc memory` prints a table, of all policies: it takes no %s", wrong);
  else if (wrong)
    *x->why = ir_format(x->a, "%s belongs to `mltc memory FILE`", wrong);
  return !wrong;
}

// What is about passes and the plan, which a file's own text knows nothing of; or would change what it says.
static bool goes_beyond_ast(const options *o) {
  return o->defines.num || o->precision || o->print_after.num || o->disabled.num ||
         o->time_passes || o->keep_dir || o->checkpoint || o->memory_budget || o->extra_time >= 0 ||
         o->plan;
}

// Options that say something only beside others.
static bool check_together(const options *o, const char **why) {
  bool search = o->max_batch || o->max;
  if (search && !o->memory_budget)
    *why = "--max-batch and --max search for what fits --memory-budget=SIZE, which is not given";
  else if (o->emit == EMIT_AST && options_is_ir(o))
    *why = "--emit=ast prints graph files; use --emit=ir for IR";
  else if (o->emit == EMIT_AST && goes_beyond_ast(o))
    *why =
        "--emit=ast prints the file as it is read: it goes with no option about passes or memory, "
        "nor with -D or --precision";
  else if (o->dependencies && o->emit != EMIT_TRAINER)
    *why = "-MD writes what a program is made from beside it: it goes with no --emit";
  else if (o->defines.num && options_is_ir(o))
    *why = "-D sets a `let` of a graph file: in IR text all sizes are numbers";
  else if (o->extra_time >= 0 &&
           (search || o->memory_budget || o->checkpoint || o->plan || o->allow_accumulate))
    *why = "--extra-time looks for the budget itself, and for what runs again: it goes with no "
           "--memory-budget, --checkpoint, --plan, --allow, --max-batch or --max";
  else if (o->plan && (o->checkpoint || search || o->allow_accumulate))
    *why = "--plan says what runs again, and for which sizes: it goes with no --checkpoint, "
           "--allow, --max-batch or --max";
  else if (o->max_batch && o->max)
    *why = "one search at a time: --max-batch or --max=NAME";
  else if (search && o->allow_accumulate)
    *why = "one search at a time: --max-batch and --max ask what fits undivided, without --allow";
  else if (o->allow_accumulate && !o->memory_budget)
    *why = "--allow=accumulate is about what fits --memory-budget=SIZE, which is not given";
  else if (o->allow_accumulate && options_is_ir(o))
    *why = "--allow=accumulate needs a graph file: in IR text all sizes are numbers";
  return !*why;
}

// `-o -`: texts go to standard output, as they do without -o; a program needs a file.
static bool take_standard_output(options *o, const char **why) {
  if (!o->output || strcmp(o->output, "-") != 0)
    return true;
  o->output = NULL;
  if (o->emit == EMIT_TRAINER)
    *why = "-o -: a program is a file; what --emit prints can go to standard output";
  return !*why;
}

// Takes the options from the front of argv, which getopt_long moves there.
static bool parse_options(command_line *x, int argc, char **argv) {
  struct option names[NUM_ENTRIES + 1];
  char letters[2 * NUM_ENTRIES + 2];
  fill_getopt(names, letters);
  opterr = 0;
  optind = 1;
  for (;;) {
    optopt = 0;
    int c = getopt_long(argc, argv, letters, names, NULL);
    if (c == -1)
      return true;
    if (c == '?' || c == ':') // a letter, or a long option that was just taken
      return unknown_option(
          x, optopt > 0 && optopt < FIRST_LONG ? ir_format(x->a, "-%c", optopt) : argv[optind - 1],
          c == ':');
    const option_entry *e = find_entry(c);
    x->given[e - entries] = true;
    if (!e->parse(x, e, optarg))
      return false;
  }
}

// Wherever it stands: an option in front of it may be wrong.
static bool wants_json(int argc, char **argv) {
  bool wants = false;
  for (int i = 1; i < argc; i++)
    wants |= !strcmp(argv[i], "--diagnostics=json");
  return wants;
}

bool options_parse(ir_arena *a, int argc, char **argv, options *o, const char **why) {
  *o = (options){.target = "cpu", .opt_level = 2, .extra_time = -1};
  o->json_diagnostics = wants_json(argc, argv);
  bool given[NUM_ENTRIES] = {0};
  command_line x = {a, o, why, given};
  argc = take_dependencies(argc, argv, o);
  if (!parse_options(&x, argc, argv))
    return false;
  if (o->help || o->version)
    return true;
  if (o->explain && argc > optind)
    *why =
        ir_format(a, "--explain is about a code, and reads no file: '%s' was given", argv[optind]);
  if (o->explain)
    return !*why;
  bool alone = argc - optind == 1 && access("memory", F_OK) == 0; // a file of that name
  if (argc > optind && !strcmp(argv[optind], "memory") && !alone) {
    o->command = COMMAND_MEMORY;
    optind++;
  }
  if (argc - optind != 1) {
    *why = argc > optind ? ir_format(a, "one file at a time: '%s' and '%s' were given",
                                     argv[optind], argv[optind + 1])
                         : "no file was given; try mltc --help";
    return false;
  }
  o->input = argv[optind];
  return check_command(&x) && take_standard_output(o, why) && check_together(o, why);
}

bool options_disables(const options *o, const char *pass) {
  for (size_t i = 0; i < o->disabled.num; i++)
    if (strcmp(o->disabled.at[i], pass) == 0)
      return true;
  return false;
}

bool options_is_ir(const options *o) {
  size_t n = strlen(o->input);
  return n >= 3 && !strcmp(o->input + n - 3, ".ir");
}

bool options_emits_plan(const options *o) {
  return o->emit == EMIT_PLAN || o->emit == EMIT_PLAN_JSON || o->emit == EMIT_REPORT;
}

bool options_emits_ir(const options *o) {
  return o->emit == EMIT_IR || o->emit == EMIT_DOT;
}

bool options_look_into_passes(const options *o) {
  return o->print_after.num || o->keep_dir || o->time_passes;
}

size_t options_report(const options *o, ir_diags *d) {
  if (o->json_diagnostics)
    diag_print_json(d, stderr);
  else
    diag_print(d, stderr, isatty(STDERR_FILENO));
  diag_are_said(d);
  return diag_num_errors(d);
}

void options_say(const options *o, options_tone tone, const char *fmt, ...) {
  static const struct {
    const char *severity, *begin;
  } tones[] = {[OPTIONS_ERROR] = {"error", "mltc: "},
               [OPTIONS_NOTE] = {"note", "note: "},
               [OPTIONS_HELP] = {"help", "  "},
               [OPTIONS_ANSWER] = {"note", ""}};
  ir_arena *a = ir_arena_new();
  ir_buf text = ir_buf_new(a);
  va_list ap;
  va_start(ap, fmt);
  ir_buf_vprintf(&text, fmt, ap);
  va_end(ap);
  if (o->json_diagnostics)
    diag_print_json_text(tones[tone].severity, ir_buf_str(&text), stderr);
  else
    fprintf(stderr, "%s%s\n", tones[tone].begin, ir_buf_str(&text));
  ir_arena_free(a);
}

// The value that counts, where it is another one than that of define i: the last one of its name does.
static const char *overriding(const options *o, size_t i) {
  const char *define = o->defines.at[i], *last = define;
  size_t len = strcspn(define, "=");
  for (size_t j = i + 1; j < o->defines.num; j++)
    if (!strncmp(o->defines.at[j], define, len) && o->defines.at[j][len] == '=')
      last = o->defines.at[j];
  return strcmp(last, define) ? last : NULL;
}

void options_say_overridden(const options *o) {
  for (size_t i = 0; i < o->defines.num; i++)
    if (overriding(o, i))
      options_say(o, OPTIONS_NOTE, "-D %s takes the place of -D %s", overriding(o, i),
                  o->defines.at[i]);
}

void options_answer(const options *o, const char *text) {
  if (o->emit != EMIT_TRAINER && !o->output)
    options_say(o, OPTIONS_ANSWER, "%s", text);
  else
    printf("%s\n", text);
}
