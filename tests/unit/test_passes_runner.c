// test_passes_runner.c: what the runner does around passes: order, rounds, options, errors,
// kept files, and the reproducer that an internal fault leaves.
#include "support_passes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *body = "%x = input : f32[4]\n%a = neg %x : f32[4]\n%b = neg %a : f32[4]\n"
                          "%l = const {value=1.0} : f32[4]\n%r = mul %b, %l : f32[4]\n"
                          "%dead = exp %r : f32[4]\nresult output r = %r";

// --- passes made for these tests -------------------------------------------------------------
static bool nothing(ir_module *m, ir_diags *d) {
  (void)m, (void)d;
  return false;
}

// Removes one dead node per call, so that it takes several rounds.
static bool one_step(ir_module *m, ir_diags *d) {
  (void)d;
  ir_func *f = m->funcs.at[0];
  if (f->nodes.num <= 3)
    return false;
  f->results.at[0].node = f->nodes.at[--f->nodes.num - 1];
  return true;
}

static bool user_error(ir_module *m, ir_diags *d) {
  (void)m;
  diag_error(d, (ir_loc){0}, "E0501", "made up");
  return false;
}

static bool breaks_ir(ir_module *m, ir_diags *d) {
  (void)d;
  ir_func *f = m->funcs.at[0];
  f->nodes.at[f->nodes.num - 1]->type.dims[0] = 0;
  return true;
}

static bool faulty(ir_module *m, ir_diags *d) {
  (void)m, (void)d;
  BUG("made up");
}

// --- helpers ------------------------------------------------------------------------------------
typedef struct trace {
  char text[512];
} trace;

static void note(void *data, const char *pass, ir_module *m) {
  (void)m;
  trace *t = data;
  strncat(t->text, pass, 100);
  strncat(t->text, " ", 2);
}

typedef struct outcome {
  bool ok;
  const char *log, *diags;
  ir_module *module;
  trace trace;
} outcome;

static outcome run(ir_arena *a, const pass_info *list, pass_options o) {
  char *log = NULL, *text = NULL;
  size_t log_len = 0, text_len = 0;
  FILE *log_file = open_memstream(&log, &log_len), *text_file = open_memstream(&text, &text_len);
  outcome out = {.module = test_module(a, NULL, body)};
  ir_diags *d = diag_new(a);
  o.log = log_file;
  o.after = note;
  o.after_data = &out.trace;
  out.ok = pass_run(list, out.module, d, &o);
  diag_print(d, text_file, false);
  fclose(log_file);
  fclose(text_file);
  out.log = ir_strdup(a, log);
  out.diags = ir_strdup(a, text);
  free(log);
  free(text);
  return out;
}

static const pass_info simplifying[] = {
    {"algebra", pass_algebra, .repeat = true},
    {"cse", pass_cse, .repeat = true},
    {"dce", pass_dce, .repeat = true},
    {"own_outputs", pass_own_outputs, .required = true},
    {0},
};

static void expect(bool ok, const char *what, const outcome *o) {
  if (!ok)
    test_fail("%s: ok=%d\ntrace: %s\nlog:\n%s\ndiagnostics:\n%s", what, o->ok, o->trace.text,
              o->log, o->diags);
}

// --- order and rounds ----------------------------------------------------------------------------
static void check_rounds(ir_arena *a) {
  outcome o = run(a, simplifying, (pass_options){0});
  expect(o.ok && strcmp(o.trace.text, "algebra cse dce algebra cse dce own_outputs ") == 0,
         "repeats until nothing changes", &o);
  const pass_info steps[] = {{"nothing", nothing, .repeat = true},
                             {"step", one_step, .repeat = true},
                             {"end", nothing, .required = true},
                             {0}};
  o = run(a, steps, (pass_options){.verify = PASS_VERIFY_NEVER});
  expect(o.ok &&
             strcmp(o.trace.text, "nothing step nothing step nothing step nothing step end ") == 0,
         "one step per round", &o);
}

static void check_pipeline_names(ir_arena *a) {
  ir_buf b = ir_buf_new(a);
  for (const pass_info *p = pass_pipeline; p->name; p++)
    ir_buf_printf(&b, "%s%s%s ", p->name, p->required ? "!" : "", p->repeat ? "*" : "");
  test_same_text(
      "the pipeline", ir_buf_str(&b),
      "table_products autodiff! convolutions! algebra* cse* quotients* dce* "
      "join_products masks join_masks thin_products narrow_sums "
      "split_reductions split_strips split_columns split_concats own_outputs! row_sums precision "
      "attention row_updates "
      "pair_panels panels integer_operands insert_parts keep_parts fuse! "
      "recompute remake order! alike bands ");
}

// From fuse on all passes run on modules that have kernels: else the reproducer of one of them
// would not run it.
static void check_late_passes_are_grouped(void) {
  bool late = false;
  for (const pass_info *p = pass_pipeline; p->name; p++) {
    late = late || strcmp(p->name, "fuse") == 0;
    if (late != p->grouped)
      test_fail("pass '%s' %s on modules with kernels", p->name,
                p->grouped ? "runs" : "does not run");
  }
}

static void check_errors_stop(ir_arena *a) {
  const pass_info list[] = {
      {"bad", user_error, .required = true}, {"later", nothing, .required = true}, {0}};
  outcome o = run(a, list, (pass_options){0});
  expect(!o.ok && strcmp(o.trace.text, "bad ") == 0 && strstr(o.diags, "E0501"), "errors stop", &o);
}

// IR that has kernels already goes on behind the passes that would take them apart.
static void check_grouped(ir_arena *a) {
  ir_module *m = test_module(a, NULL,
                             "%x = input : f32[4]\nkernel k loop {\n%r = exp %x : f32[4]\n"
                             "%dead = neg %r : f32[4]\n}\nresult output r = %r");
  trace t = {""};
  const pass_info list[] = {
      {"dce", pass_dce, .repeat = true}, {"last", nothing, .required = true, .grouped = true}, {0}};
  pass_options o = {.after = note, .after_data = &t};
  if (!pass_run(list, m, diag_new(a), &o) || strcmp(t.text, "last ") != 0)
    test_fail("a module with kernels ran: %s", t.text);
}

// --- options -------------------------------------------------------------------------------------
static void check_disable(ir_arena *a) {
  outcome o =
      run(a, simplifying,
          (pass_options){.disabled = (const char *[]){"algebra", "dce"}, .num_disabled = 2});
  expect(o.ok && strcmp(o.trace.text, "cse cse own_outputs ") == 0, "disabled passes do not run",
         &o);
  o = run(a, simplifying,
          (pass_options){.disabled = (const char *[]){"own_outputs"}, .num_disabled = 1});
  expect(!o.ok && strstr(o.diags, "E0504") && o.trace.text[0] == 0, "required passes stay", &o);
  o = run(a, simplifying,
          (pass_options){.disabled = (const char *[]){"algebr"},
                         .num_disabled = 1,
                         .print_after = (const char *[]){"xyzzy"},
                         .num_print_after = 1});
  expect(!o.ok && strstr(o.diags, "did you mean 'algebra'") && strstr(o.diags, "'xyzzy'") &&
             strstr(o.diags, "E0503"),
         "unknown names, all at once", &o);
}

static int count(const char *text, const char *word) {
  int n = 0;
  for (; (text = strstr(text, word)) != NULL; text += strlen(word))
    n++;
  return n;
}

static void check_print_after(ir_arena *a) {
  outcome o = run(a, simplifying,
                  (pass_options){.print_after = (const char *[]){"algebra"}, .num_print_after = 1});
  expect(count(o.log, "# after algebra\nmltc-ir 1\n") == 1 && !strstr(o.log, "after dce"),
         "print after one pass, not again for rounds without change", &o);
  ir_module *read_back = test_parse(a, o.log); // the heading is a comment
  test_same_text("printed IR reads back", test_print(a, read_back), strstr(o.log, "mltc-ir"));
  o = run(a, simplifying,
          (pass_options){.print_after = (const char *[]){"all"}, .num_print_after = 1});
  expect(count(o.log, "# after ") == 4, "print after all", &o);
}

static void check_times(ir_arena *a) {
  outcome o = run(a, simplifying, (pass_options){.time_passes = true});
  expect(strstr(o.log, "algebra") && strstr(o.log, "own_outputs") && strstr(o.log, "total") &&
             strstr(o.log, " 7 "),
         "the table", &o);
}

static void check_keep(ir_arena *a, const char *dir) {
  const char *keep = ir_format(a, "%s/kept", dir);
  outcome o = run(a, simplifying, (pass_options){.keep_dir = keep});
  size_t len;
  const char *last = ir_read_file(a, ir_format(a, "%s/04-own_outputs.ir", keep), &len);
  expect(o.ok && ir_read_file(a, ir_format(a, "%s/01-algebra.ir", keep), &len) && last,
         "kept files", &o);
  if (last)
    test_same_text("the last kept file", last, test_print(a, o.module));
  o = run(a, simplifying, (pass_options){.keep_dir = "/dev/null/x"});
  expect(!o.ok && strstr(o.diags, "E0505"), "a folder that cannot be", &o);
}

// --- reproducers ---------------------------------------------------------------------------------
static const char *fault_of(ir_arena *a, const pass_info *list, pass_verify verify, int *code) {
  int fd[2];
  if (pipe(fd) != 0)
    return "";
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    dup2(fd[1], 2);
    ir_module *m = test_module(a, NULL, body);
    pass_options o = {.disabled = (const char *[]){"cse"},
                      .num_disabled = 1,
                      .verify = verify,
                      .rerun = " --target=some"};
    pass_run(list, m, diag_new(a), &o);
    _exit(0);
  }
  close(fd[1]);
  ir_buf b = ir_buf_new(a);
  char block[1024];
  for (ssize_t n; (n = read(fd[0], block, sizeof block)) > 0;)
    ir_buf_write(&b, block, (size_t)n);
  close(fd[0]);
  int status;
  waitpid(child, &status, 0);
  *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ir_buf_str(&b);
}

// The file holds the IR before the pass at fault, which later reads back.
static void check_reproducer(ir_arena *a, const char *name, pass_fn pass, pass_fn next,
                             pass_verify verify, const char *says) {
  const pass_info list[] = {{"algebra", pass_algebra, .repeat = true},
                            {"cse", pass_cse, .repeat = true},
                            {name, pass, .required = true},
                            {"next", next, .required = true},
                            {0}};
  int code = 0;
  unlink("mltc-crash.ir");
  const char *text = fault_of(a, list, verify, &code);
  size_t len;
  const char *crash = ir_read_file(a, "mltc-crash.ir", &len);
  if (code != 70 || !strstr(text, says) || !strstr(text, name) || !strstr(text, "mltc-crash.ir"))
    test_fail("%s: exit %d\n%s", name, code, text);
  if (!crash || !strstr(crash, name) || !strstr(crash, "--disable-pass=cse") ||
      !strstr(crash, "--emit=ir --target=some")) {
    test_fail("%s: the reproducer is\n%s", name, crash ? crash : "(missing)");
    return;
  }
  test_same_text(name, test_print(a, test_parse(a, crash)),
                 test_print(a, test_module(a, NULL, "%x = input : f32[4]\nresult output r = %x")));
}

int main(void) {
  char dir[] = "/tmp/mltc-runner-XXXXXX";
  if (!mkdtemp(dir) || chdir(dir) != 0) {
    perror(dir);
    return 1;
  }
  ir_arena *a = ir_arena_new();
  check_rounds(a);
  check_pipeline_names(a);
  check_late_passes_are_grouped();
  check_errors_stop(a);
  check_grouped(a);
  check_disable(a);
  check_print_after(a);
  check_times(a);
  check_keep(a, dir);
  check_reproducer(a, "faulty", faulty, nothing, PASS_VERIFY_EACH, "made up");
  check_reproducer(a, "breaks_ir", breaks_ir, nothing, PASS_VERIFY_EACH,
                   "pass 'breaks_ir' made IR");
  check_reproducer(a, "breaks_ir", breaks_ir, nothing, PASS_VERIFY_AT_END, "In pass 'breaks_ir'");
  check_reproducer(a, "breaks_ir", breaks_ir, faulty, PASS_VERIFY_AT_END, "In pass 'breaks_ir'");
  check_reproducer(a, "faulty", faulty, nothing, PASS_VERIFY_AT_END, "In pass 'faulty'");
  ir_arena_free(a);
  int code = test_report("runner");
  if (chdir("/") == 0 && code == 0) {
    const char *rm[] = {"mltc-crash.ir", "kept/01-algebra.ir", "kept/02-cse.ir", "kept/03-dce.ir",
                        "kept/04-own_outputs.ir"};
    for (size_t i = 0; i < sizeof rm / sizeof rm[0]; i++) {
      char path[128];
      snprintf(path, sizeof path, "%s/%s", dir, rm[i]);
      unlink(path);
    }
    char kept[64];
    snprintf(kept, sizeof kept, "%s/kept", dir);
    rmdir(kept);
    rmdir(dir);
  }
  return code;
}
