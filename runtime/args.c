// args.c: see args.h.
#include "runtime/args.h"
#include "runtime/data_reader.h"
#include "runtime/dtype.h"
#include "runtime/number_io.h"
#include "runtime/numbers.h"
#include "runtime/suggest.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { SWITCH, TEXT, MAYBE_TEXT, NUMBER } kind;

typedef struct option {
  const char *name;
  kind kind;
  unsigned commands; // bit per mlrt_command
  size_t offset;     // of the field in mlrt_options: bool, const char * or int64_t
  size_t set_offset; // of a bool that is set as well; 0: none
  int64_t low, high; // NUMBER
  const char *arg, *help;
} option;

enum {
  TRAIN = 1 << MLRT_CMD_TRAIN,
  EVAL = 1 << MLRT_CMD_EVAL,
  PREDICT = 1 << MLRT_CMD_PREDICT,
  CHECK = 1 << MLRT_CMD_CHECK,
  INFO = 1 << MLRT_CMD_INFO,
  GPU = 1 << MLRT_NUM_COMMANDS, // of programs for a GPU only
  ALL = TRAIN | EVAL | PREDICT | CHECK | INFO,
  DATA = TRAIN | EVAL | PREDICT,
  RUN = DATA | CHECK,
};

#define FIELD(f) offsetof(mlrt_options, f)
static const option options[] = {
    {"data-dir", TEXT, DATA, FIELD(data_dir), 0, 0, 0, "DIR", "where the data files are"},
    {"threads", NUMBER, ALL, FIELD(threads), 0, 1, MLRT_MAX_THREADS, "N",
     "threads of the team (default: processors)"},
    {"resume", MAYBE_TEXT, DATA, FIELD(resume_file), FIELD(resume), 0, 0, "FILE",
     "go on from a checkpoint (default: the --save file)"},
    {"weights", TEXT, DATA, FIELD(weights), 0, 0, 0, "FILE",
     "begin with the parameters of a safetensors file, by name"},
    {"allow-missing", SWITCH, DATA, FIELD(allow_missing), 0, 0, 0, NULL,
     "trained parameters that --weights lacks keep their initial values"},
    {"save", TEXT, DATA, FIELD(save), 0, 0, 0, "FILE",
     "the checkpoint; that of an earlier run is kept as FILE.old"},
    {"no-save", SWITCH, TRAIN, FIELD(no_save), 0, 0, 0, NULL, "write no checkpoint"},
    {"save-every", NUMBER, TRAIN, FIELD(save_every), 0, 1, INT64_MAX, "N", "steps between saves"},
    {"log-every", NUMBER, TRAIN, FIELD(log_every), 0, 1, INT64_MAX, "N",
     "steps between lines of the log and of --metrics"},
    {"metrics", TEXT, TRAIN | EVAL, FIELD(metrics), 0, 0, 0, "FILE",
     "one JSON object per logged step and evaluation; those of an earlier run are kept as "
     "FILE.old"},
    {"no-times", SWITCH, TRAIN | EVAL, FIELD(no_times), 0, 0, 0, NULL,
     "leave \"time\" out of --metrics, so that files of equal runs are equal"},
    {"profile", TEXT, TRAIN, FIELD(profile), 0, 0, 0, "FILE",
     "where time went, as JSON that chrome://tracing opens"},
    {"seed", NUMBER, TRAIN, FIELD(seed), FIELD(seed_given), INT64_MIN, INT64_MAX, "N",
     "initial values, dropout and the order of samples"},
    {"stop-on-nan", SWITCH, TRAIN, FIELD(stop_on_nan), 0, 0, 0, NULL,
     "stop with exit code 1 when the loss is not finite"},
    {"split", TEXT, EVAL | PREDICT, FIELD(split), 0, 0, 0, "NAME",
     "which data (default: all but train; predict: the one that train evaluates)"},
    {"out", TEXT, PREDICT, FIELD(out), 0, 0, 0, "PREFIX", "writes PREFIX-OUTPUT.npy"},
    {"device", NUMBER, RUN | GPU, FIELD(device), 0, 0, INT32_MAX, "N",
     "which GPU, counted from 0 (default: 0)"},
    {"no-cuda-graph", SWITCH, RUN | GPU, FIELD(no_cuda_graph), 0, 0, 0, NULL,
     "launch kernels one by one (same bits)"},
    {"kernel-times", TEXT, TRAIN, FIELD(kernel_times), 0, 0, 0, "FILE",
     "how long each kernel took, as JSON (small steps get slower)"},
    {"no-huge-pages", SWITCH, ALL, FIELD(no_huge_pages), 0, 0, 0, NULL,
     "use small memory pages only"},
    {"quiet", SWITCH, ALL, FIELD(quiet), 0, 0, 0, NULL, "print errors and results only"},
    {"help", SWITCH, ALL, FIELD(help), 0, 0, 0, NULL, "print this and exit"},
    {"version", SWITCH, ALL, FIELD(version), 0, 0, 0, NULL, "print where this program came from"},
};
enum { NUM_OPTIONS = sizeof options / sizeof options[0] };

static const struct {
  const char *name, *help;
} commands[MLRT_NUM_COMMANDS] = {
    {"train", "train the model (the default)"},
    {"eval", "evaluate a checkpoint on all data but train, or on --split"},
    {"predict", "write a checkpoint's outputs for a data set as .npy files"},
    {"check", "compare kernels with plain references on this machine; same bits, same file"},
    {"info", "print the plan, the parameters, the flags and where this program came from"},
};

// A name on the command line: what stands behind the dashes, up to its end or a '='.
typedef struct word {
  const char *at;
  int len;
} word;

static word word_at(const char *text) {
  return (word){text, (int)strcspn(text, "=")};
}

static bool is(word w, const char *name) {
  return !strncmp(name, w.at, (size_t)w.len) && !name[w.len];
}

static mlrt_flag *find_flag(const mlrt_options *o, word name) {
  for (int i = 0; i < o->num_flags; i++)
    if (is(name, o->flags[i].state->name))
      return &o->flags[i];
  return NULL;
}

mlrt_flag *mlrt_find_flag(const mlrt_options *o, const char *name) {
  return find_flag(o, (word){name, (int)strlen(name)});
}

static bool is_whole(double v) {
  return v == floor(v) && fabs(v) <= 9007199254740992.0;
}

bool mlrt_flag_holds(const mlrt_flag *f, double v) {
  const mlrt_input like = {.dtype = f->state->dtype};
  char stored[sizeof v];
  return (mlrt_is_float(like.dtype) || is_whole(v)) && mlrt_store_number(&like, 0, v, stored);
}

// A number that its type has only 0 for: a rate, say, with which nothing would ever be learnt.
static bool vanishes(const mlrt_input *like, double v) {
  char stored[sizeof v];
  mlrt_store(stored, like->dtype, v);
  return v != 0 && mlrt_is_float(like->dtype) && mlrt_load(stored, like->dtype) == 0;
}

// 2^53 + 1 is read as 2^53, which is one. `v`: what was read of `text`, a whole number.
static bool is_rounded(const char *text, double v) {
  char *end;
  long long exact = strtoll(text, &end, 10);
  return !*end && exact != (long long)v;
}

int mlrt_flag_digits(const mlrt_flag *f) {
  return mlrt_is_float(f->state->dtype) ? 9 : 17;
}

bool mlrt_flag_set(mlrt_flag *f, const char *text, mlrt_error *e) {
  const char *name = f->state->name;
  if (!mlrt_is_float(f->state->dtype) && (!strcmp(text, "true") || !strcmp(text, "false"))) {
    f->value = text[0] == 't';
    return true;
  }
  double v;
  if (!mlrt_parse_double(text, &v))
    return mlrt_error_set(e, "--%s needs a number, not '%s'", name, text);
  if (!mlrt_is_float(f->state->dtype) && (!is_whole(v) || is_rounded(text, v)))
    return mlrt_error_set(e, "--%s needs a whole number%s, not '%s'", name,
                          v == floor(v) ? " up to 2^53" : "", text);
  const mlrt_input like = {.dtype = f->state->dtype};
  char limits[120];
  if (!mlrt_flag_holds(f, v))
    return mlrt_error_set(e, "--%s=%s does not fit: %s", name, text,
                          mlrt_limits_text(&like, 0, limits, sizeof limits));
  if (vanishes(&like, v))
    return mlrt_error_set(e, "--%s=%s is 0 in %s", name, text, mlrt_dtype_name(like.dtype));
  f->value = v;
  return true;
}

static bool collect_flags(mlrt_options *o, const mlrt_program *p) {
  o->flags = calloc((size_t)p->num_states + 1, sizeof *o->flags);
  if (!o->flags)
    return false;
  for (int i = 0; i < p->num_states; i++)
    if (p->states[i].role == MLRT_FLAG)
      o->flags[o->num_flags++] = (mlrt_flag){&p->states[i], p->states[i].value, false};
  return true;
}

static bool name_default_save(mlrt_options *o, const mlrt_program *p) {
  if (asprintf(&o->default_save, "%s.safetensors", p->model) < 0)
    o->default_save = NULL;
  return o->default_save;
}

// Whether the program has this option at all.
static bool is_known(const mlrt_options *o, const option *opt) {
  return o->for_gpu || !(opt->commands & GPU);
}

static const option *find_option(const mlrt_options *o, word name) {
  for (int i = 0; i < NUM_OPTIONS; i++)
    if (is_known(o, &options[i]) && is(name, options[i].name))
      return &options[i];
  return NULL;
}

// Of programs for a GPU, where this is none.
static bool is_elsewhere(word name) {
  for (int i = 0; i < NUM_OPTIONS; i++)
    if (is(name, options[i].name))
      return true;
  return false;
}

static bool unknown(const mlrt_options *o, word name, mlrt_error *e) {
  mlrt_suggestion s = mlrt_suggest_begin_part(name.at, name.len);
  for (int i = 0; i < o->num_flags; i++)
    mlrt_suggest_try(&s, o->flags[i].state->name);
  for (int i = 0; i < NUM_OPTIONS; i++)
    if (is_known(o, &options[i]))
      mlrt_suggest_try(&s, options[i].name);
  if (s.best)
    return mlrt_error_set(e, "unknown option --%.*s; did you mean --%s?", name.len, name.at,
                          s.best);
  if (is_elsewhere(name))
    return mlrt_error_set(e, "unknown option --%.*s; --help lists them", name.len, name.at);
  return mlrt_error_set(
      e,
      "unknown option --%.*s; --help lists them\n"
      "help: options of the program's own are flags of its graph: flag steps = 100, "
      "used there in train { steps = steps }",
      name.len, name.at);
}

// A whole number that 64 bits do not hold is one all the same: its limits are what is of interest.
static bool has_digits_only(const char *text) {
  text += *text == '-' || *text == '+';
  return *text && !text[strspn(text, "0123456789")];
}

static bool store(mlrt_options *o, const option *opt, const char *value, mlrt_error *e) {
  char *field = (char *)o + opt->offset;
  if (opt->set_offset)
    *(bool *)((char *)o + opt->set_offset) = true;
  if (opt->kind == SWITCH)
    *(bool *)field = true;
  else if (opt->kind == NUMBER) {
    int64_t v;
    bool parsed = mlrt_parse_int(value, &v);
    if (!parsed || v < opt->low || v > opt->high) {
      if (opt->high == INT64_MAX && (parsed || !has_digits_only(value)))
        return mlrt_error_set(e, "--%s needs a whole number%s, not '%s'", opt->name,
                              opt->low == 1 ? " above 0" : "", value);
      return mlrt_error_set(e,
                            "--%s needs a whole number from %" PRId64 " to %" PRId64 ", not '%s'",
                            opt->name, opt->low, opt->high, value);
    }
    *(int64_t *)field = v;
  } else if (value && !*value)
    return mlrt_error_set(e, "--%s= needs a value", opt->name);
  else
    *(const char **)field = value;
  return true;
}

typedef struct cursor {
  char **argv;
  int argc, at;
} cursor;

// The value of `--name=value` or of `--name value`.
static const char *take_value(cursor *c, const char *equals) {
  if (equals)
    return equals + 1;
  return c->at + 1 < c->argc ? c->argv[++c->at] : NULL;
}

static bool take_option(mlrt_options *o, cursor *c, mlrt_error *e) {
  const char *text = c->argv[c->at] + 2, *equals = strchr(text, '=');
  word name = word_at(text);
  mlrt_flag *flag = find_flag(o, name);
  const option *opt = find_option(o, name);
  if (!flag && !opt)
    return unknown(o, name, e);
  if (!flag && (opt->kind == SWITCH || opt->kind == MAYBE_TEXT)) {
    if (opt->kind == SWITCH && equals)
      return mlrt_error_set(e, "--%s takes no value", opt->name);
    return store(o, opt, equals ? equals + 1 : NULL, e);
  }
  const char *value = take_value(c, equals);
  if (!value)
    return mlrt_error_set(e, "--%.*s needs a value", name.len, name.at);
  if (!flag)
    return store(o, opt, value, e);
  flag->given = true;
  return mlrt_flag_set(flag, value, e);
}

static bool take_command(mlrt_options *o, const char *text, mlrt_error *e) {
  mlrt_suggestion s = mlrt_suggest_begin(text);
  for (int i = 0; i < MLRT_NUM_COMMANDS; i++) {
    if (!strcmp(text, commands[i].name)) {
      o->command = (mlrt_command)i;
      return true;
    }
    mlrt_suggest_try(&s, commands[i].name);
  }
  if (s.best)
    return mlrt_error_set(e, "unknown command '%s'; did you mean '%s'?", text, s.best);
  return mlrt_error_set(e, "unknown command '%s'; there are train, eval, predict, check, info",
                        text);
}

// Options are stored before the command may be known: whether they fit is checked last.
static bool check_fit(const mlrt_options *o, cursor c, mlrt_error *e) {
  for (c.at = 1; c.at < c.argc; c.at++) {
    const char *text = c.argv[c.at];
    if (strncmp(text, "--", 2))
      continue;
    word name = word_at(text + 2);
    const option *opt = find_option(o, name);
    if (opt && !find_flag(o, name) && !(opt->commands & (1u << o->command)))
      return mlrt_error_set(e, "'%s' has no option --%s", commands[o->command].name, opt->name);
  }
  return true;
}

static bool check_pairs(const mlrt_options *o, mlrt_error *e) {
  if (o->no_save && o->save)
    return mlrt_error_set(e, "--save and --no-save contradict each other");
  if (o->weights && o->resume)
    return mlrt_error_set(e, "--weights begins a new run and --resume goes on with one");
  if (o->allow_missing && !o->weights)
    return mlrt_error_set(e, "--allow-missing is about --weights=FILE");
  return true;
}

bool mlrt_options_parse(mlrt_options *o, const mlrt_program *p, int argc, char **argv,
                        mlrt_error *e) {
  *o = (mlrt_options){.command = MLRT_CMD_TRAIN, .for_gpu = p->gpu != NULL};
  if (!collect_flags(o, p) || !name_default_save(o, p))
    return mlrt_error_set(e, "out of memory");
  bool have_command = false;
  cursor c = {argv, argc, 1};
  for (; c.at < argc; c.at++) {
    const char *text = argv[c.at];
    if (!strcmp(text, "-h"))
      o->help = true;
    else if (!strncmp(text, "--", 2) && text[2]) {
      if (!take_option(o, &c, e))
        return false;
    } else if (text[0] == '-' && text[1])
      return mlrt_error_set(e, "unknown option %s; options begin with two dashes", text);
    else if (have_command)
      return mlrt_error_set(e, "'%s' is one command too many", text);
    else if (!take_command(o, text, e))
      return false;
    else
      have_command = true;
  }
  return check_pairs(o, e) && check_fit(o, c, e);
}

void mlrt_options_free(mlrt_options *o) {
  free(o->flags);
  free(o->default_save);
  o->flags = NULL;
  o->default_save = NULL;
  o->num_flags = 0;
}

static void help_options(const mlrt_options *o, FILE *out) {
  for (int i = 0; i < NUM_OPTIONS; i++) {
    const option *opt = &options[i];
    if (!is_known(o, opt))
      continue;
    char left[48];
    const char *open = opt->kind == MAYBE_TEXT ? "[=" : opt->arg ? "=" : "";
    snprintf(left, sizeof left, "--%s%s%s%s", opt->name, open, opt->arg ? opt->arg : "",
             opt->kind == MAYBE_TEXT ? "]" : "");
    fprintf(out, "  %-18s %s\n", left, opt->help);
  }
}

void mlrt_options_help(const mlrt_options *o, const mlrt_program *p, const char *self, FILE *out) {
  fprintf(out, "Trains the model '%s' of %s.\n\nUsage: %s [command] [options]\n\nCommands:\n",
          p->model, p->source_path, self);
  for (int i = 0; i < MLRT_NUM_COMMANDS; i++)
    fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
  if (o->num_flags)
    fprintf(out, "\nFlags of the model:\n");
  for (int i = 0; i < o->num_flags; i++) {
    const mlrt_flag *f = &o->flags[i];
    const char *kind = !mlrt_is_float(f->state->dtype) ? "INTEGER" : "NUMBER";
    int used = fprintf(out, "  --%s=%s", f->state->name, kind);
    fprintf(out, "%*s default %.*g (%s)\n", used < 20 ? 20 - used : 0, "", mlrt_flag_digits(f),
            f->state->value, f->state->where ? f->state->where : p->source_path);
  }
  fprintf(out, "\nOptions:\n");
  help_options(o, out);
  fprintf(out,
          "\nExit codes: 0 done, 1 broken or missing data or checkpoint, 2 wrong usage,\n"
          "3 not enough memory, %s70 internal fault, 128+N saved and stopped by signal N.\n",
          o->for_gpu ? "4 no GPU that runs this program,\n"
                     : "4 a processor that cannot run this program,\n");
}
