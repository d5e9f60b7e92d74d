// main.c: mltc-pack, the packer of the memory plan (passes/plan_pack.c) for intervals from a file.
//
//   mltc-pack FILE.csv [--capacity=N] [--seconds=S] [--steps=N] [-o OUT]
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "passes/pack/csv.h"

enum { EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_TOO_HIGH = 3 };

// About five seconds, if nothing is reached earlier.
enum { DEFAULT_STEPS = 1000000000 };

typedef struct settings {
  const char *input, *output;
  int64_t capacity, steps; // 0: not given
  double seconds;          // 0: not given
} settings;

static void help(void) {
  puts(
      "mltc-pack gives intervals of time their place in memory: none that are live at one time "
      "overlap,\n"
      "and the highest end is as low as it finds. It is the packer of mltc's memory plan.\n"
      "\n"
      "  mltc-pack FILE.csv [options]     FILE has lines id,lower,upper,size: live from lower up "
      "to,\n"
      "                                   not including, upper; their names are in the first line\n"
      "\n"
      "  -o, --output=FILE     where to write id,lower,upper,size,offset (default: standard "
      "output)\n"
      "  --capacity=BYTES      stop when all fits into so many; exit code 3 when that is not "
      "reached\n"
      "  --seconds=S           how long to search, by the clock\n"
      "  --steps=N             how long to search, in steps: the same result every time; about "
      "the\n"
      "                        number of intervals looked at (default without --seconds: "
      "1000000000)\n"
      "  --help, --version\n"
      "\n"
      "On standard error: intervals, bound (most bytes live at one time), height, height / bound, "
      "time.\n"
      "The search ends at the bound, or at the capacity.\n"
      "Exit codes: 0 done, 1 errors in the input, 2 wrong usage, 3 above the capacity, 70 internal "
      "fault.");
}

// --- the command line ----------------------------------------------------------------------------
static int usage(const char *option, const char *value, const char *what) {
  if (value)
    fprintf(stderr, "mltc-pack: --%s=%s: %s\n", option, value, what);
  else
    fprintf(stderr, "mltc-pack: %s\n", what);
  return EXIT_USAGE;
}

// A whole number above 0.
static bool parse_count(const char *text, int64_t *out) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  *out = value;
  return errno == 0 && end != text && *end == '\0' && value > 0;
}

static bool parse_seconds(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  return end != text && *end == '\0' && *out > 0 && *out < 1e9;
}

enum long_option { OPT_CAPACITY = 256, OPT_SECONDS, OPT_STEPS, OPT_HELP, OPT_VERSION };
static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
                                      {"capacity", required_argument, NULL, OPT_CAPACITY},
                                      {"seconds", required_argument, NULL, OPT_SECONDS},
                                      {"steps", required_argument, NULL, OPT_STEPS},
                                      {"help", no_argument, NULL, OPT_HELP},
                                      {"version", no_argument, NULL, OPT_VERSION},
                                      {0}};

// -1: go on; else the exit code.
static int read_option(settings *s, int c) {
  switch (c) {
  case 'o':
    s->output = optarg;
    return -1;
  case OPT_CAPACITY:
    return parse_count(optarg, &s->capacity) ? -1
                                             : usage("capacity", optarg, "not a number of bytes");
  case OPT_SECONDS:
    return parse_seconds(optarg, &s->seconds) ? -1 : usage("seconds", optarg, "not a time");
  case OPT_STEPS:
    return parse_count(optarg, &s->steps) ? -1 : usage("steps", optarg, "not a number of steps");
  case OPT_HELP:
    help();
    return 0;
  case OPT_VERSION:
    puts("mltc-pack " MLTC_VERSION);
    return 0;
  default:
    return EXIT_USAGE; // getopt_long said why
  }
}

static int read_settings(settings *s, int argc, char **argv) {
  for (int c; (c = getopt_long(argc, argv, "o:", longs, NULL)) != -1;) {
    int code = read_option(s, c);
    if (code >= 0)
      return code;
  }
  if (optind + 1 != argc)
    return usage(NULL, NULL, optind == argc ? "no input file" : "more than one input file");
  s->input = argv[optind];
  if (s->output && !strcmp(s->output, "-"))
    s->output = NULL;
  if (s->output && ir_same_file(s->input, s->output))
    return usage("output", s->output, "it would take the place of what is read");
  return -1;
}

// --- packing -------------------------------------------------------------------------------------
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_late(void *deadline) {
  return now() >= *(double *)deadline;
}

static plan_packing pack(const settings *s, pack_file *f, double start) {
  double deadline = start + s->seconds;
  plan_pack_limits limits = {.capacity = s->capacity, .steps = s->steps};
  if (s->seconds > 0) {
    limits.is_late = is_late;
    limits.clock = &deadline;
  }
  if (s->steps == 0)
    limits.steps = s->seconds > 0 ? INT64_MAX : DEFAULT_STEPS;
  return plan_pack_within(f->at, f->num, &limits);
}

static void report(const settings *s, const pack_file *f, const plan_packing *r, double seconds) {
  double ratio = r->bound ? (double)r->height / (double)r->bound : 1;
  fprintf(stderr, "%zu buffers, bound %lld, height %lld, ratio %.4f, %.3f s, %lld steps\n", f->num,
          (long long)r->bound, (long long)r->height, ratio, seconds, (long long)r->steps);
  if (r->proved > r->bound)
    fprintf(stderr, "proved: no packing is lower than %lld\n", (long long)r->proved);
  if (s->capacity && r->height > s->capacity)
    fprintf(stderr, "mltc-pack: %s: %lld bytes above the capacity of %lld%s\n", s->input,
            (long long)(r->height - s->capacity), (long long)s->capacity,
            r->proved > s->capacity ? ", which no packing reaches" : "");
}

static bool write_out(const settings *s, const ir_buf *text) {
  bool ok = s->output ? ir_write_file(s->output, ir_buf_str(text), text->len)
                      : fwrite(ir_buf_str(text), 1, text->len, stdout) == text->len &&
                            fflush(stdout) == 0;
  if (!ok)
    fprintf(stderr, "mltc-pack: cannot write '%s': %s\n", s->output ? s->output : "standard output",
            strerror(errno));
  return ok;
}

static int run(ir_arena *a, const settings *s) {
  double start = now();
  ir_source source = {.path = s->input};
  source.text = ir_read_text(a, s->input, &source.len);
  if (!source.text) {
    fprintf(stderr, "mltc-pack: cannot read '%s': %s\n", s->input, strerror(errno));
    return EXIT_INPUT;
  }
  pack_file f = {0};
  ir_diags *diags = diag_new(a);
  if (!pack_read_csv(a, &source, diags, &f)) {
    diag_print(diags, stderr, isatty(STDERR_FILENO));
    return EXIT_INPUT;
  }
  plan_packing r = pack(s, &f, start);
  size_t overlaps = plan_pack_check(a, f.at, f.num);
  BUG_IF(overlaps, "%zu intervals overlap", overlaps);
  ir_buf text = ir_buf_new(a);
  pack_write_csv(&f, &text);
  if (!write_out(s, &text))
    return EXIT_INPUT;
  report(s, &f, &r, now() - start);
  return s->capacity && r.height > s->capacity ? EXIT_TOO_HIGH : 0;
}

int main(int argc, char **argv) {
  settings s = {0};
  int code = read_settings(&s, argc, argv);
  if (code >= 0)
    return code;
  ir_arena *a = ir_arena_new();
  code = run(a, &s);
  ir_arena_free(a);
  return code;
}
