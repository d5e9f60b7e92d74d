// main.c: mltc. The order of calls in `build` is the compiler:
//
//   load -> schedule (passes, kernels) -> arrange (order, what runs again) -> plan -> write
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "driver/budgets.h"
#include "driver/cmd_accumulate.h"
#include "driver/cmd_diff.h"
#include "driver/cmd_memory.h"
#include "driver/cmd_solve.h"
#include "driver/extra_time.h"
#include "passes/checkpoint.h"
#include "driver/output.h"
#include "driver/overwrite.h"
#include "driver/plan_edit_file.h"

typedef struct driver {
  options o;
  ir_source source;
  draft_subject subject; // of `o` and `source`; `made` is the one that is open
  draft made;
  draft first; // if another was made in its place
} driver;

// --- messages ------------------------------------------------------------------------------------
static int report(const driver *d) {
  return options_report(&d->o, d->made.diags) ? EXIT_INPUT : 0;
}

static int usage(const options *o, const char *why) {
  options_say(o, OPTIONS_ERROR, "%s", why);
  return EXIT_USAGE;
}

static int explain(const options *o) {
  const char *text = diag_explain(o->explain);
  if (!text)
    return usage(o, "there is no such error code; they look like E0203");
  printf("%s\n", text);
  return 0;
}

// --- the front -----------------------------------------------------------------------------------
// True: an error says that what --emit=plan.json has printed is no graph.
static bool refuse_plan(driver *d) {
  if (d->source.text[0] != '{' || !strstr(d->source.text, "\"mltc-plan\""))
    return false;
  ir_diag *e =
      diag_error(d->made.diags, (ir_loc){0}, "E0508", "'%s' is a plan, not a graph", d->o.input);
  diag_help(e, "compile its graph with it: mltc FILE.graph --plan=%s", d->o.input);
  return true;
}

static bool read_source(driver *d) {
  struct stat st;
  bool folder = stat(d->o.input, &st) == 0 && S_ISDIR(st.st_mode);
  size_t len = 0;
  char *text = folder ? NULL : ir_read_text(d->made.arena, d->o.input, &len);
  if (!text) {
    diag_error(d->made.diags, (ir_loc){0}, "E0901", "cannot read '%s': %s", d->o.input,
               folder ? "it is a folder" : strerror(errno));
    return false;
  }
  d->source = (ir_source){d->o.input, text, len};
  return !refuse_plan(d);
}

// False, after an error.
static bool read_edit(driver *d) {
  const char *why = NULL;
  if (!d->o.plan)
    return true;
  d->subject.edit = plan_edit_read(d->made.arena, d->o.plan, &why);
  if (!d->subject.edit)
    diag_error(d->made.diags, (ir_loc){0}, "E0508", "%s", why);
  d->subject.remakes_little = d->subject.edit && d->subject.edit->remakes_little;
  return d->subject.edit != NULL;
}

// --- the stages ----------------------------------------------------------------------------------
// False, after an error, when the places of a plan file do not work.
static bool check_plan(const driver *d) {
  const draft *t = &d->made;
  ir_buf wrong = ir_buf_new(t->arena);
  int n = plan_check(t->plan, t->module, &wrong);
  if (n && d->subject.edit) {
    ir_diag *e = diag_error(t->diags, (ir_loc){0}, "E0508", "%s breaks %d rule%s:\n%s", d->o.plan,
                            n, n == 1 ? "" : "s", ir_buf_str(&wrong));
    diag_help(
        e, "buffers without an offset are packed: take all of a function's out after a change of "
           "its kernels");
    return false;
  }
  BUG_IF(n, "the memory plan breaks %d rules:\n%s", n, ir_buf_str(&wrong));
  return true;
}

// Goes on with another draft, into which nobody has looked so far. The first one has what is read: texts, options.
static bool take(driver *d, draft t) {
  ir_buf faults = ir_buf_new(t.arena);
  BUG_IF(ir_verify(t.module, &faults), "memory passes made IR that breaks rules\n%s",
         ir_buf_str(&faults));
  if (d->first.arena)
    draft_free(&d->made);
  else
    d->first = d->made;
  d->made = t;
  return check_plan(d);
}

// Which bits there are does not depend on the budget. A pass that makes one long product of many short ones keeps their
// operands for longer, and adds them up in another order; so may kernels that are to compute fewer values again (recompute).
static void suggest_other_kernels(const driver *d, int64_t budget) {
  static const char *const passes[] = {"join_products", "recompute"};
  for (size_t i = 0; i < sizeof passes / sizeof *passes && !d->o.plan; i++)
    if (budgets_fit_without(&d->subject, &d->made, passes[i], budget)) {
      options_say(
          &d->o, OPTIONS_HELP,
          "with --disable-pass=%s it fits: other kernels, sums in another order, other bits",
          passes[i]);
      return;
    }
}

// The draft of other kernels, once more as one into which options look: what is shown last is what is compiled.
static void look_into(driver *d, const budgets_asked *x, draft *t) {
  draft_subject open = d->subject;
  open.open = true;
  draft_free(t);
  *t = draft_new();
  bool ok = draft_load(&open, t, x->define, NULL) && draft_schedule(&open, t) &&
            draft_arrange(&open, t, x->policy, x->budget) && draft_plan(&open, t);
  BUG_IF(!ok, "kernels that were planned have errors");
}

// False, after an error. Where the plan of other kernels with the same bits takes less, it is taken.
static bool look_at_other_kernels(driver *d, int64_t budget) {
  const draft *t = &d->made;
  budgets_asked x = {.budget = budget};
  draft other;
  if (!budgets_other_kernels(&d->subject, &x, t->module, t->plan->arena_bytes, &other))
    return true;
  if (options_look_into_passes(&d->o))
    look_into(d, &x, &other);
  return take(d, other);
}

// Says why, when the plan does not fit the budget. One of other kernels with the same bits may, or one that was made for
// another budget.
static bool fits_budget(driver *d) {
  const draft *t = &d->made;
  int64_t budget = ir_config_count(t->module, "memory_budget");
  if (!budget || t->plan->arena_bytes <= budget)
    return true;
  if (!look_at_other_kernels(d, budget))
    return false;
  if (t->plan->arena_bytes <= budget)
    return true;
  draft instead = {0};
  int64_t works = t->plan->arena_bytes;
  if (!d->subject.edit)
    works = budgets_find(&d->subject, NULL, t, budget, &instead);
  if (instead.arena)
    return take(d, instead);
  ir_buf text = ir_buf_new(t->arena);
  plan_print_shortfall(t->plan, t->module, budget, works, d->o.allow_accumulate, &text);
  options_say(&d->o, OPTIONS_ERROR, "%s %s", d->o.input, ir_buf_str(&text));
  bool may_fit_in_parts = t->plan->state_bytes <= budget; // which have the same states
  if (!options_is_ir(&d->o) && !d->o.allow_accumulate && !d->o.plan && may_fit_in_parts)
    cmd_suggest_division(&d->subject, budget);
  if (!d->o.plan && budgets_fit_with_auto(&d->subject, t, budget))
    options_say(&d->o, OPTIONS_HELP, "with --checkpoint=%s it fits",
                checkpoint_names[CHECKPOINT_AUTO]);
  else
    suggest_other_kernels(d, budget);
  return false;
}

// What does not fit can be looked at all the same.
static int plan_and_write(driver *d, const draft_subject *s) {
  draft *t = &d->made;
  if (!draft_plan(s, t) || !check_plan(d))
    return report(d);
  bool fits = fits_budget(d);
  int status = options_emits_plan(&d->o) ? output_plan(s, t)
               : options_emits_ir(&d->o) ? output_ir(s, t)
               : fits                    ? output_program(s, t)
                                         : 0;
  return status ? status : fits ? 0 : EXIT_BUDGET;
}

static int build(driver *d) {
  draft *t = &d->made;
  draft_subject s = d->subject;
  s.open = true;
  bool ok = draft_load(&s, t, NULL, NULL);
  const char *why = overwrite_find(&s, t); // files that are imported are known now
  if (why)
    return usage(&d->o, why);
  if (!ok || !draft_schedule(&s, t))
    return report(d);
  if (!checkpoint_policy_is_known(t->module, t->diags))
    return report(d);
  int64_t budget = d->o.extra_time >= 0 ? extra_time_find(&s, t) : 0;
  if (budget < 0)
    return IR_EXIT_FAULT;
  // IR text may name another policy; the plan that was found is that of this one.
  const char *policy = budget ? checkpoint_names[CHECKPOINT_AUTO] : NULL;
  if (!draft_arrange(&s, t, policy, budget))
    return report(d);
  report(d); // warnings
  if (options_emits_ir(&d->o) && !ir_config_count(t->module, "memory_budget"))
    return output_ir(&s, t); // no plan decides what it is
  return plan_and_write(d, &s);
}

// The largest value that fits becomes one more -D.
static int solve_and_build(driver *d) {
  const char *define = NULL;
  int status = cmd_solve(d->made.arena, &d->subject, &define);
  if (status || (d->o.emit == EMIT_TRAINER && !d->o.output))
    return status;
  IR_PUSH(d->made.arena, d->o.defines, define);
  return build(d);
}

static int compile(driver *d) {
  options_say_overridden(&d->o);
  if (!read_source(d) || !read_edit(d))
    return report(d);
  if (d->o.emit == EMIT_AST) {
    draft probe = d->made; // what it imports and its data; its errors are not what was asked for
    probe.diags = diag_new(probe.arena);
    draft_load(&d->subject, &probe, NULL, NULL);
    const char *why = overwrite_find(&d->subject, &probe);
    return why ? usage(&d->o, why) : output_ast(&d->subject, &d->made);
  }
  if (d->o.command == COMMAND_MEMORY)
    return cmd_memory(&d->subject);
  if (d->o.max_batch || d->o.max)
    return solve_and_build(d);
  if (d->o.allow_accumulate)
    d->subject.split = cmd_divide_batch(d->made.arena, &d->subject, d->made.diags);
  return build(d);
}

// --- usage ---------------------------------------------------------------------------------------
// What only a GPU's program has.
static const char *needs_cuda(const options *o) {
  return o->emit == EMIT_CUDA  ? "--emit=cuda"
         : o->emit == EMIT_PTX ? "--emit=ptx"
         : o->cuda_compiler    ? "--cuda-compiler"
                               : NULL;
}

static bool is_object(const char *output) {
  size_t len = output ? strlen(output) : 0;
  return len > 2 && !strcmp(output + len - 2, ".o");
}

// Of another machine: an object is asked for by its name, and all that can be made without a runtime for it.
static const char *choose_object(driver *d, const cg_target **t) {
  const char *output = d->o.emit == EMIT_TRAINER ? d->o.output : NULL;
  if ((*t)->bare && output && !is_object(output))
    return ir_format(d->made.arena,
                     "--target=%s: this mltc has no runtime for that machine (scripts/install-deps "
                     "aarch64, then scripts/build, makes one): it can make an object, -o %s.o",
                     (*t)->name, output);
  if (is_object(output)) {
    cg_target *object = IR_NEW(d->made.arena, cg_target);
    *object = **t;
    object->bare = true;
    *t = object;
  }
  return NULL;
}

// What is wrong with the target; NULL: nothing.
static const char *find_target(driver *d) {
  ir_arena *a = d->made.arena;
  const cg_target *t = cg_target_find(a, d->o.target);
  bool clang = d->o.cuda_compiler && !strcmp(d->o.cuda_compiler, "clang");
  if (t && t->cuda && clang)
    t = cg_cuda_by_clang(a, t);
  if (!t)
    return ir_format(a, "--target=%s: %s", d->o.target, cg_target_why_not(a, d->o.target));
  const char *why = t->triple ? choose_object(d, &t) : NULL;
  d->subject = (draft_subject){.o = &d->o, .target = t, .source = &d->source};
  if (why)
    return why;
  if (needs_cuda(&d->o) && !t->cuda)
    return ir_format(a, "%s is for GPUs: it needs --target=cuda", needs_cuda(&d->o));
  return NULL;
}

// What no other place has written and looked at: the texts of usage, the answer of a search.
static int finish(int status) {
  if (status || (fflush(stdout) == 0 && !ferror(stdout)))
    return status; // what failed has said so
  fputs("mltc: cannot write to standard output\n", stderr);
  return EXIT_INPUT;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "diff"))
    return cmd_diff(argc - 1, argv + 1);
  driver d = {.made = draft_new()};
  const char *why = NULL;
  int status = 0;
  if (!options_parse(d.made.arena, argc, argv, &d.o, &why))
    status = usage(&d.o, why);
  else if (d.o.help)
    options_help(stdout);
  else if (d.o.version)
    printf("mltc " MLTC_VERSION "\n");
  else if (d.o.explain)
    status = explain(&d.o);
  else if ((why = find_target(&d)))
    status = usage(&d.o, why);
  else
    status = compile(&d);
  draft_free(&d.made);
  draft_free(&d.first);
  return finish(status);
}
