// options.c: reads the command line (getopt_long). See options.h.
#include "frontend/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum long_option {
  OPT_TARGET = 256,
  OPT_EMIT,
  OPT_PRINT_AFTER,
  OPT_DISABLE_PASS,
  OPT_KEEP,
  OPT_TIME_PASSES,
  OPT_EXPLAIN,
  OPT_DIAGNOSTICS,
  OPT_CUDA_COMPILER,
  OPT_NO_CACHE,
  OPT_PRECISION,
  OPT_CHECKPOINT,
  OPT_PLAN,
  OPT_MEMORY_BUDGET,
  OPT_ALLOW,
  OPT_MAX_BATCH,
  OPT_MAX,
  OPT_GPU,
  OPT_JSON,
  OPT_HELP,
  OPT_VERSION,
};

static const struct option longs[] = {
    {"output", required_argument, NULL, 'o'},
    {"target", required_argument, NULL, OPT_TARGET},
    {"emit", required_argument, NULL, OPT_EMIT},
    {"print-after", required_argument, NULL, OPT_PRINT_AFTER},
    {"disable-pass", required_argument, NULL, OPT_DISABLE_PASS},
    {"keep", required_argument, NULL, OPT_KEEP},
    {"time-passes", no_argument, NULL, OPT_TIME_PASSES},
    {"explain", required_argument, NULL, OPT_EXPLAIN},
    {"diagnostics", required_argument, NULL, OPT_DIAGNOSTICS},
    {"cuda-compiler", required_argument, NULL, OPT_CUDA_COMPILER},
    {"no-cache", no_argument, NULL, OPT_NO_CACHE},
    {"precision", required_argument, NULL, OPT_PRECISION},
    {"checkpoint", required_argument, NULL, OPT_CHECKPOINT},
    {"plan", required_argument, NULL, OPT_PLAN},
    {"memory-budget", required_argument, NULL, OPT_MEMORY_BUDGET},
    {"allow", required_argument, NULL, OPT_ALLOW},
    {"max-batch", no_argument, NULL, OPT_MAX_BATCH},
    {"max", required_argument, NULL, OPT_MAX},
    {"gpu", required_argument, NULL, OPT_GPU},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {0},
};

static const char *const emit_names[] = {
    [EMIT_AST] = "ast",
    [EMIT_IR] = "ir",
    [EMIT_KERNELS] = "kernels",
    [EMIT_PLAN] = "plan",
    [EMIT_PLAN_JSON] = "plan.json",
    [EMIT_C] = "c",
    [EMIT_LLVM] = "llvm",
    [EMIT_ASM] = "asm",
    [EMIT_DOT] = "dot",
    [EMIT_CUDA] = "cuda",
    [EMIT_PTX] = "ptx",
    [EMIT_RESOURCES] = "resources",
    [EMIT_REPORT] = "report",
};
enum { NUM_EMITS = sizeof emit_names / sizeof *emit_names };

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
      "  -o, --output=FILE       what to write (default: the file's name without .graph)\n"
      "  -D NAME=VALUE           set a `let` of the graph\n"
      "  -I DIR                  look for imports there too\n"
      "  -O0 .. -O3              effort of the C compiler (default -O2)\n"
      "  --target=T              cpu (this machine), cpu:x86-64-v3, cpu:x86-64-v4,\n"
      "                          cpu:aarch64 (cross-compiles to an object),\n"
      "                          cuda (sm_80 and sm_90a), cuda:sm_80,sm_86,sm_89,sm_90a,sm_100\n"
      "  --precision=P           what matmuls multiply: f32, tf32 or bf16 (default: the graph's\n"
      "                          train { precision = P }, or f32); sums are f32 in all of them\n"
      "  --memory-budget=SIZE    bytes that a run may take in all, such as 64MiB; what does not "
      "fit is\n"
      "                          computed again instead of kept, or mltc says what stands in the "
      "way\n"
      "  --allow=accumulate      where a batch does not fit, it may be run as several "
      "micro-batches\n"
      "                          whose gradients are added\n"
      "  --max-batch             the largest batch that fits the budget; with -o compiled, too\n"
      "  --max=NAME              the same for another `let`\n"
      "  --checkpoint=P          what of the forward pass is kept for the backward pass: none\n"
      "                          (everything is), selective (not what is cheap to compute again),\n"
      "                          sqrt, all (only what goes from block to block), auto (the\n"
      "                          least time that meets the budget; the default where there is "
      "one)\n"
      "  --plan=FILE.json        compile with a plan (--emit=plan.json) that was edited by hand: "
      "what runs\n"
      "                          again, the order, offsets\n"
      "  --emit=KIND             print instead of building: ast, ir (after all passes), kernels,\n"
      "                          plan, plan.json, c, llvm, asm, dot, cuda, ptx,\n"
      "                          resources (registers, occupancy, least time of each kernel),\n"
      "                          report (memory and kernels, a page for browsers)\n"
      "  --cuda-compiler=C       nvrtc (default), or clang: PTX only, needs no CUDA toolkit\n"
      "  --no-cache              compile CUDA kernels even when the cache has them\n"
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

static bool wrong_value(ir_arena *a, const char **why, const char *flag, const char *value,
                        const char *const *names, size_t num) {
  const char *near = diag_nearest(value, names, num);
  ir_buf b = ir_buf_new(a);
  ir_buf_printf(&b, "%s=%s: ", flag, value);
  if (near)
    ir_buf_printf(&b, "did you mean '%s'? ", near);
  ir_buf_puts(&b, "it can be ");
  for (size_t i = 0; i < num; i++)
    ir_buf_printf(&b, "%s%s", i ? ", " : "", names[i]);
  *why = ir_buf_str(&b);
  return false;
}

static bool parse_emit(ir_arena *a, const char *value, options *o, const char **why) {
  for (int i = 1; i < NUM_EMITS; i++)
    if (!strcmp(emit_names[i], value)) {
      o->emit = (emit_kind)i;
      return true;
    }
  return wrong_value(a, why, "--emit", value, emit_names + 1, NUM_EMITS - 1);
}

static bool parse_level(ir_arena *a, const char *value, options *o, const char **why) {
  if (strlen(value) == 1 && *value >= '0' && *value <= '3') {
    o->opt_level = *value - '0';
    return true;
  }
  *why = ir_format(a, "-O%s: it can be -O0, -O1, -O2 or -O3", value);
  return false;
}

static bool parse_size(ir_arena *a, const char *flag, const char *value, int64_t *bytes,
                       const char **why) {
  if (ir_parse_bytes(value, bytes))
    return true;
  *why = ir_format(a, "%s=%s: it is a number of bytes, such as 64MiB, 1.5GB or 80GiB", flag, value);
  return false;
}

static bool is_one_of(const char *value, const char *const *names, size_t num) {
  for (size_t i = 0; i < num; i++)
    if (!strcmp(value, names[i]))
      return true;
  return false;
}

// A list with commas of what a compilation may change to meet its budget.
static bool parse_allowed(ir_arena *a, const char *value, options *o, const char **why) {
  static const char *const words[] = {"accumulate"};
  for (const char *at = value;; at++) {
    size_t len = strcspn(at, ",");
    const char *word = ir_strndup(a, at, len);
    if (strcmp(word, words[0]) != 0)
      return wrong_value(a, why, "--allow", word, words, 1);
    o->allow_accumulate = true;
    at += len;
    if (!*at)
      return true;
  }
}

static bool parse_one(ir_arena *a, int c, options *o, const char **why) {
  static const char *const diagnostics[] = {"json", "text"},
                           *const compilers[] = {"nvrtc", "clang"},
                           *const precisions[] = {"f32", "tf32", "bf16"},
                           *const policies[] = {"none", "selective", "sqrt", "all", "auto"};
  switch (c) {
  case 'o':
    o->output = optarg;
    return true;
  case 'D':
    IR_PUSH(a, o->defines, optarg);
    return true;
  case 'I':
    IR_PUSH(a, o->include_dirs, optarg);
    return true;
  case 'O':
    return parse_level(a, optarg, o, why);
  case 'v':
    o->verbose = true;
    return true;
  case OPT_TARGET:
    o->target = optarg;
    return true;
  case OPT_EMIT:
    return parse_emit(a, optarg, o, why);
  case OPT_PRINT_AFTER:
    IR_PUSH(a, o->print_after, optarg);
    return true;
  case OPT_DISABLE_PASS:
    IR_PUSH(a, o->disabled, optarg);
    return true;
  case OPT_KEEP:
    o->keep_dir = optarg;
    return true;
  case OPT_TIME_PASSES:
    o->time_passes = true;
    return true;
  case OPT_EXPLAIN:
    o->explain = optarg;
    return true;
  case OPT_DIAGNOSTICS:
    o->json_diagnostics = !strcmp(optarg, "json");
    return o->json_diagnostics || !strcmp(optarg, "text") ||
           wrong_value(a, why, "--diagnostics", optarg, diagnostics, 2);
  case OPT_CUDA_COMPILER:
    o->cuda_compiler = optarg;
    return !strcmp(optarg, "nvrtc") || !strcmp(optarg, "clang") ||
           wrong_value(a, why, "--cuda-compiler", optarg, compilers, 2);
  case OPT_PRECISION:
    o->precision = optarg;
    if (!strcmp(optarg, "f16")) {
      *why = "--precision=f16 is not there: gradients in f16 need loss scaling; bf16 has the range "
             "of f32 (casts f16(x) in the graph reach f16 matmuls)";
      return false;
    }
    return is_one_of(optarg, precisions, 3) ||
           wrong_value(a, why, "--precision", optarg, precisions, 3);
  case OPT_PLAN:
    o->plan = optarg;
    return true;
  case OPT_CHECKPOINT:
    o->checkpoint = optarg;
    return is_one_of(optarg, policies, 5) ||
           wrong_value(a, why, "--checkpoint", optarg, policies, 5);
  case OPT_MEMORY_BUDGET:
    return parse_size(a, "--memory-budget", optarg, &o->memory_budget, why);
  case OPT_ALLOW:
    return parse_allowed(a, optarg, o, why);
  case OPT_MAX_BATCH:
    o->max_batch = true;
    return true;
  case OPT_MAX:
    o->max = optarg;
    return true;
  case OPT_GPU:
    return parse_size(a, "--gpu", optarg, &o->gpu_bytes, why);
  case OPT_JSON:
    o->json = true;
    return true;
  case OPT_NO_CACHE:
    o->no_cache = true;
    return true;
  case OPT_HELP:
    o->help = true;
    return true;
  case OPT_VERSION:
    o->version = true;
    return true;
  default:
    BUG("option %d", c);
  }
}

static bool unknown_option(ir_arena *a, const char *arg, bool missing, const char **why) {
  if (missing) {
    *why = ir_format(a, "'%s' needs a value", arg);
    return false;
  }
  const char *names[sizeof longs / sizeof *longs];
  size_t num = 0;
  for (; longs[num].name; num++)
    names[num] = ir_format(a, "--%s", longs[num].name);
  char *word = ir_strdup(a, arg);
  word[strcspn(word, "=")] = 0;
  const char *near = diag_nearest(word, names, num);
  *why = near ? ir_format(a, "unknown option '%s'; did you mean '%s'?", arg, near)
              : ir_format(a, "unknown option '%s'", arg);
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

static const char *join(ir_arena *a, int argc, char **argv) {
  ir_buf b = ir_buf_new(a);
  for (int i = 1; i < argc; i++)
    ir_buf_printf(&b, "%s%s", i > 1 ? " " : "", argv[i]);
  return ir_buf_str(&b);
}

// Options that say something only beside others.
static bool check_together(const options *o, const char **why) {
  bool memory = o->command == COMMAND_MEMORY, search = o->max_batch || o->max;
  if (!memory && (o->gpu_bytes || o->json))
    *why = "--gpu and --json belong to `mltc memory FILE`";
  else if (memory && (o->output || o->emit || search || o->allow_accumulate))
    *why =
        "`mltc memory` prints a table: it takes no --output, --emit, --allow, --max-batch or --max";
  else if (search && !o->memory_budget)
    *why = "--max-batch and --max search for what fits --memory-budget=SIZE, which is not given";
  else if (o->plan && (o->checkpoint || memory || search))
    *why = "--plan says what runs again, and for which sizes: it goes with no --checkpoint, "
           "--max-batch, --max, "
           "nor `mltc memory`";
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

bool options_parse(ir_arena *a, int argc, char **argv, options *o, const char **why) {
  *o = (options){.target = "cpu", .opt_level = 2, .text = join(a, argc, argv)};
  argc = take_dependencies(argc, argv, o);
  opterr = 0;
  optind = 1;
  for (;;) {
    optopt = 0;
    int c = getopt_long(argc, argv, ":o:D:I:O:v", longs, NULL);
    if (c == -1)
      break;
    if (c == '?' || c == ':') // a letter, or a long option that was just taken
      return unknown_option(
          a, optopt > 0 && optopt < OPT_TARGET ? ir_format(a, "-%c", optopt) : argv[optind - 1],
          c == ':', why);
    if (!parse_one(a, c, o, why))
      return false;
  }
  if (o->help || o->version || o->explain)
    return true;
  if (argc - optind == 2 && !strcmp(argv[optind], "memory")) {
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
  return check_together(o, why);
}

bool options_is_ir(const options *o) {
  size_t n = strlen(o->input);
  return n >= 3 && !strcmp(o->input + n - 3, ".ir");
}

size_t options_report(const options *o, const ir_diags *d) {
  if (o->json_diagnostics)
    diag_print_json(d, stderr);
  else
    diag_print(d, stderr, isatty(STDERR_FILENO));
  return diag_num_errors(d);
}
