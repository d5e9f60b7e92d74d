// runner.c: runs a list of passes, and does for all of them what none should do itself:
// verifying, timing, printing, keeping files, skipping, and reproducers.
//
// Reproducers cost one clone of the module and no printing: passes are deterministic, so when one
// fails, the passes before it run again on the clone, and only then is the text made. Nor does knowing the pass that
// broke a rule cost a look after each: the same passes run again on another clone, and are looked at then.
#include "passes/pass.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char crash_file[] = "mltc-crash.ir";

typedef struct runner {
  const pass_info *list;
  size_t num_passes;
  ir_module *module;
  ir_diags *diags;
  const pass_options *options;
  ir_arena *arena;
  FILE *log;
  ir_module *origin;     // as it was before the first pass
  IR_VEC(size_t) ran;    // passes run so far, by position in `list`; the last may be running
  IR_VEC(double) millis; // time of each
  int files;             // kept so far
  bool grouped;          // there were kernels from the beginning: the text of a later stage
} runner;

// --- names in options ----------------------------------------------------------------------
static const pass_info *find_in(const pass_info *list, const char *name) {
  for (; list && list->name; list++)
    if (strcmp(list->name, name) == 0)
      return list;
  return NULL;
}

static const pass_info *find_pass(const runner *r, const char *name) {
  const pass_info *p = find_in(r->list, name);
  return p ? p : find_in(r->options->others, name);
}

static void report_unknown(const runner *r, const char *flag, const char *name) {
  IR_VEC(const char *) names = {0};
  ir_buf all = ir_buf_new(r->arena);
  const pass_info *lists[] = {r->list, r->options->others};
  for (int l = 0; l < 2; l++)
    for (const pass_info *p = lists[l]; p && p->name; p++) {
      ir_buf_printf(&all, "%s%s", names.num ? ", " : "", p->name);
      IR_PUSH(r->arena, names, p->name);
    }
  const char *near = diag_nearest(name, names.at, names.num);
  ir_diag *d = diag_error(r->diags, (ir_loc){0}, "E0503", "%s: there is no pass '%s'", flag, name);
  if (near)
    diag_help(d, "did you mean '%s'?", near);
  diag_help(d, "passes: %s", ir_buf_str(&all));
}

static void check_names(const runner *r) {
  const pass_options *o = r->options;
  for (size_t i = 0; i < o->num_print_after; i++)
    if (strcmp(o->print_after[i], "all") != 0 && !find_pass(r, o->print_after[i]))
      report_unknown(r, "--print-after", o->print_after[i]);
  for (size_t i = 0; i < o->num_disabled; i++) {
    const pass_info *p = find_pass(r, o->disabled[i]);
    if (!p)
      report_unknown(r, "--disable-pass", o->disabled[i]);
    else if (p->required)
      diag_error(r->diags, (ir_loc){0}, "E0504", "--disable-pass: pass '%s' cannot be skipped",
                 p->name);
  }
}

static bool named(const char *const *names, size_t num, const char *name, const char *wildcard) {
  for (size_t i = 0; i < num; i++)
    if (strcmp(names[i], name) == 0 || (wildcard && strcmp(names[i], wildcard) == 0))
      return true;
  return false;
}

static bool has_kernels(const ir_module *m) {
  for (size_t i = 0; i < m->funcs.num; i++)
    if (m->funcs.at[i]->kernels.num)
      return true;
  return false;
}

// --- reproducers -----------------------------------------------------------------------------
static const char *rerun_command(const runner *r) {
  ir_buf b = ir_buf_new(r->arena);
  ir_buf_printf(&b, "mltc %s --emit=ir%s", crash_file, r->options->rerun ? r->options->rerun : "");
  for (size_t i = 0; i < r->options->num_disabled; i++)
    ir_buf_printf(&b, " --disable-pass=%s", r->options->disabled[i]);
  return ir_buf_str(&b);
}

static void run_again(const runner *r, ir_module *m, size_t i, ir_diags *ignored) {
  r->list[r->ran.at[i]].run(m, ignored);
}

// The first whose IR breaks a rule: what later ones made of that, or that they failed, is not their fault. Else the
// last, which failed. By position in `ran`.
static size_t find_pass_at_fault(const runner *r, ir_diags *ignored) {
  ir_module *m = ir_clone(r->origin);
  for (size_t i = 0; i + 1 < r->ran.num; i++) {
    ir_buf faults = ir_buf_new(r->arena);
    run_again(r, m, i, ignored);
    if (ir_verify(m, &faults))
      return i;
  }
  return r->ran.num - 1;
}

// Called by BUG(). The passes before the one at fault do now what they did.
static void write_reproducer(void *data) {
  runner *r = data;
  ir_diags *ignored = diag_new(r->arena);
  size_t at = find_pass_at_fault(r, ignored);
  for (size_t i = 0; i < at; i++)
    run_again(r, r->origin, i, ignored);
  const char *name = r->list[r->ran.at[at]].name;
  ir_buf b = ir_buf_new(r->arena);
  ir_buf_printf(&b, "# before pass '%s', which failed; again: %s\n", name, rerun_command(r));
  ir_print(r->origin, &b);
  if (ir_write_file(crash_file, ir_buf_str(&b), b.len))
    fprintf(stderr, "  In pass '%s'. The module before it is in %s; again: %s\n", name, crash_file,
            rerun_command(r));
  else
    fprintf(stderr, "  In pass '%s'. %s cannot be written: %s\n", name, crash_file,
            strerror(errno));
}

// --- after a pass ----------------------------------------------------------------------------
// who: what is at fault if the IR breaks a rule.
static void verify(const runner *r, const char *who) {
  ir_buf faults = ir_buf_new(r->arena);
  int num = ir_verify(r->module, &faults);
  BUG_IF(num, "%s made IR that breaks %d rule%s\n%s", who, num, num == 1 ? "" : "s",
         ir_buf_str(&faults));
}

static void verify_each(const runner *r, const char *pass) {
  char who[64];
  snprintf(who, sizeof who, "pass '%s'", pass);
  verify(r, who);
}

static void keep_file(runner *r, const char *pass, const char *text, size_t len) {
  const char *dir = r->options->keep_dir;
  const char *path = ir_format(r->arena, "%s/%02d-%s.ir", dir, ++r->files, pass);
  if ((mkdir(dir, 0777) != 0 && errno != EEXIST) || !ir_write_file(path, text, len))
    diag_error(r->diags, (ir_loc){0}, "E0505", "cannot write '%s': %s", path, strerror(errno));
}

static void show(runner *r, const char *pass) {
  const pass_options *o = r->options;
  bool print = named(o->print_after, o->num_print_after, pass, "all");
  if (!print && !o->keep_dir)
    return;
  ir_buf text = ir_buf_new(r->arena);
  ir_print(r->module, &text);
  if (print)
    fprintf(r->log, "# after %s\n%s", pass, ir_buf_str(&text));
  if (o->keep_dir)
    keep_file(r, pass, ir_buf_str(&text), text.len);
}

// --- running ---------------------------------------------------------------------------------
static double now_millis(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// NULL: it runs.
static const char *why_skipped(const runner *r, const pass_info *p) {
  if (named(r->options->disabled, r->options->num_disabled, p->name, NULL))
    return "--disable-pass leaves it out";
  if (!p->grouped && r->grouped)
    return "the text has kernels already";
  bool missing = (p->families & ~r->options->families) ||
                 (p->processor && !r->options->processor) || (p->pairs && !r->options->pairs);
  return missing ? "it is for other targets" : NULL;
}

// Who has asked for the IR after a pass by its name gets an answer.
static void say_skipped(const runner *r) {
  const pass_options *o = r->options;
  for (size_t i = 0; i < r->num_passes; i++) {
    const char *why = why_skipped(r, &r->list[i]);
    if (why && named(o->print_after, o->num_print_after, r->list[i].name, NULL))
      fprintf(r->log, "# %s does not run: %s\n", r->list[i].name, why);
  }
}

// Runs pass i once; says whether it changed anything. Later rounds that change nothing are silent.
static bool run_once(runner *r, size_t i, int round) {
  const pass_info *p = &r->list[i];
  if (why_skipped(r, p))
    return false;
  IR_PUSH(r->arena, r->ran, i);
  double start = now_millis();
  bool changed = p->run(r->module, r->diags);
  IR_PUSH(r->arena, r->millis, now_millis() - start);
  if (changed && r->options->verify == PASS_VERIFY_EACH)
    verify_each(r, p->name);
  if (changed || round == 0)
    show(r, p->name);
  if (r->options->after)
    r->options->after(r->options->after_data, p->name, r->module);
  return changed;
}

// Runs [begin, end) in turn until none changes anything.
static void run_rounds(runner *r, size_t begin, size_t end) {
  bool changed = true;
  for (int round = 0; changed && round < PASS_MAX_ROUNDS && !diag_num_errors(r->diags); round++) {
    changed = false;
    for (size_t i = begin; i < end; i++)
      changed |= run_once(r, i, round);
  }
}

static void run_all(runner *r) {
  for (size_t i = 0; i < r->num_passes && !diag_num_errors(r->diags);) {
    size_t end = i;
    while (end < r->num_passes && r->list[end].repeat)
      end++;
    if (end > i) {
      run_rounds(r, i, end);
      i = end;
    } else {
      run_once(r, i++, 0);
    }
  }
}

// --- the table ---------------------------------------------------------------------------------
static void print_times(const runner *r) {
  double total = 0;
  for (size_t k = 0; k < r->ran.num; k++)
    total += r->millis.at[k];
  fprintf(r->log, "%-20s %5s %10s %6s\n", "pass", "runs", "ms", "%");
  for (size_t i = 0; i < r->num_passes; i++) {
    double ms = 0;
    int runs = 0;
    for (size_t k = 0; k < r->ran.num; k++)
      if (r->ran.at[k] == i) {
        ms += r->millis.at[k];
        runs++;
      }
    fprintf(r->log, "%-20s %5d %10.2f %6.1f\n", r->list[i].name, runs, ms,
            total > 0 ? 100 * ms / total : 0);
  }
  fprintf(r->log, "%-20s %5zu %10.2f %6.1f\n", "total", r->ran.num, total, 100.0);
}

bool pass_each_func(ir_module *m, bool (*run)(ir_func *f)) {
  bool changed = false;
  for (size_t i = 0; i < m->funcs.num; i++)
    changed |= run(m->funcs.at[i]);
  return changed;
}

void pass_count_uses(const ir_func *f) {
  for (size_t i = 0; i < f->nodes.num; i++)
    f->nodes.at[i]->mark = 0;
  for (size_t i = 0; i < f->nodes.num; i++)
    for (int k = 0; k < f->nodes.at[i]->num_in; k++)
      f->nodes.at[i]->in[k]->mark++;
  for (size_t i = 0; i < f->results.num; i++)
    f->results.at[i].node->mark++;
}

bool pass_run(const pass_info *list, ir_module *m, ir_diags *d, const pass_options *o) {
  static const pass_options defaults;
  runner r = {.list = list,
              .module = m,
              .diags = d,
              .options = o ? o : &defaults,
              .arena = m->arena,
              .files = o ? o->first_file : 0,
              .grouped = has_kernels(m)};
  while (list[r.num_passes].name)
    r.num_passes++;
  r.log = r.options->log ? r.options->log : stderr;
  check_names(&r);
  if (diag_num_errors(d))
    return false;
  if (!r.options->no_reproducer) {
    r.origin = ir_clone(m);
    ir_set_bug_hook(write_reproducer, &r);
  }
  run_all(&r);
  say_skipped(&r);
  if (r.options->verify == PASS_VERIFY_AT_END && diag_num_errors(d) == 0)
    verify(&r, "passes");
  ir_set_bug_hook(NULL, NULL);
  if (r.options->time_passes)
    print_times(&r);
  return diag_num_errors(d) == 0;
}
