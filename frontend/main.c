// main.c: the driver. The only file that sees every layer; the order of calls below is the
// compiler:
//
//   read -> frontend (or IR text) -> passes -> schedule -> plan -> emit -> compile and link
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "codegen/listing.h"
#include "codegen/program.h"
#include "codegen/report_page.h"
#include "codegen/resources.h"
#include "frontend/cmd_accumulate.h"
#include "frontend/cmd_diff.h"
#include "frontend/cmd_memory.h"
#include "frontend/cmd_solve.h"
#include "frontend/frontend.h"
#include "frontend/options.h"
#include "frontend/plan_edit_file.h"
#include "ir/dot.h"
#include "passes/pass.h"
#include "passes/plan.h"

enum { EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_BUDGET = 3 };

typedef struct driver {
  ir_arena *a;
  options o;
  ir_diags *diags;
  ir_source source;
  const cg_target *target;
  fe_split split;        // of the batch
  fe_files files;        // read besides the one on the command line
  const plan_edit *edit; // --plan; NULL: none
} driver;

// --- messages ------------------------------------------------------------------------------------
static int report(const driver *d) {
  return options_report(&d->o, d->diags) ? EXIT_INPUT : 0;
}

static int usage(const char *why) {
  fprintf(stderr, "mltc: %s\n", why);
  return EXIT_USAGE;
}

static int explain(const char *code) {
  const char *text = diag_explain(code);
  if (!text)
    return usage("there is no such error code; they look like E0203");
  printf("%s\n", text);
  return 0;
}

// --- output --------------------------------------------------------------------------------------
static int put(const driver *d, const char *text, size_t len) {
  bool ok;
  if (d->o.output)
    ok = ir_write_file(d->o.output, text, len);
  else
    ok = fwrite(text, 1, len, stdout) == len && fflush(stdout) == 0;
  if (ok)
    return 0;
  fprintf(stderr, "mltc: cannot write '%s': %s\n", d->o.output ? d->o.output : "standard output",
          strerror(errno));
  return EXIT_INPUT;
}

static int put_buf(const driver *d, const ir_buf *b) {
  return put(d, ir_buf_str(b), b->len);
}

// "dir/mlp.graph" -> "mlp" in the current folder; objects get ".o".
static const char *default_output(const driver *d) {
  const char *base = strrchr(d->o.input, '/');
  base = base ? base + 1 : d->o.input;
  const char *dot = strrchr(base, '.');
  int len = dot && dot != base ? (int)(dot - base) : (int)strlen(base);
  return ir_format(d->a, "%.*s%s", len, base, d->target->triple ? ".o" : dot ? "" : ".out");
}

// --- the front -----------------------------------------------------------------------------------
static bool read_source(driver *d) {
  struct stat st;
  bool folder = stat(d->o.input, &st) == 0 && S_ISDIR(st.st_mode);
  size_t len = 0;
  char *text = folder ? NULL : ir_read_text(d->a, d->o.input, &len);
  if (!text) {
    diag_error(d->diags, (ir_loc){0}, "E0901", "cannot read '%s': %s", d->o.input,
               folder ? "it is a folder" : strerror(errno));
    return false;
  }
  d->source = (ir_source){d->o.input, text, len};
  return true;
}

static ir_module *load_module(driver *d) {
  if (options_is_ir(&d->o))
    return ir_parse(d->a, &d->source, d->diags);
  fe_options fo = {.defines = d->o.defines.at,
                   .num_defines = d->o.defines.num,
                   .include_dirs = d->o.include_dirs.at,
                   .num_include_dirs = d->o.include_dirs.num,
                   .files = &d->files,
                   .split = d->split};
  return fe_compile(d->a, &d->source, &fo, d->diags);
}

static pass_options options_of_passes(const driver *d) {
  return (pass_options){
      .disabled = d->o.disabled.at,
      .num_disabled = d->o.disabled.num,
      .print_after = d->o.print_after.at,
      .num_print_after = d->o.print_after.num,
      .keep_dir = d->o.keep_dir,
      .time_passes = d->o.time_passes,
      .families = cg_families(d->target),
      .log = stderr,
  };
}

static bool wants_memory_passes(const ir_module *m) {
  return ir_find_config(m, "checkpoint") || ir_find_config(m, "memory_budget");
}

static void set_memory(const driver *d, ir_module *m) {
  if (d->o.checkpoint)
    ir_set_config(m, (ir_setting){"checkpoint", IR_SET_STR, 0, d->o.checkpoint});
  if (d->o.memory_budget)
    ir_set_config(m, (ir_setting){"memory_budget", IR_SET_NUM, (double)d->o.memory_budget, NULL});
}

// Kernels are scheduled before the passes for memory, which count their workspaces.
static bool run_passes(driver *d, ir_module *m) {
  pass_options po = options_of_passes(d);
  set_memory(d, m);
  if (!pass_run_pipeline(m, d->diags, &po) || !(d->edit || wants_memory_passes(m)))
    return !diag_num_errors(d->diags);
  if (!trial_has_generators(d->target, m, d->diags))
    return false;
  cg_program_new(d->a, m, d->target);
  if (d->edit)
    return plan_edit_order(m, d->edit, d->diags);
  return pass_run_memory_pipeline(m, d->diags, &po);
}

// --- data inside the program ---------------------------------------------------------------------
// `embed` in a data entry:
// the file travels in the trainer. Looked for beside the graph file.
static const ir_setting *embed_setting(const ir_data *x) {
  for (size_t i = 0; i < x->settings.num; i++)
    if (!strcmp(x->settings.at[i].key, "embed") && x->settings.at[i].num != 0)
      return &x->settings.at[i];
  return NULL;
}

static bool already_embedded(const cg_program *p, const char *name) {
  for (size_t i = 0; i < p->embedded.num; i++)
    if (!strcmp(p->embedded.at[i].name, name))
      return true;
  return false;
}

static void embed_file(driver *d, cg_program *p, const ir_data *x, const char *name) {
  const char *slash = strrchr(d->o.input, '/');
  const char *path = name;
  if (slash && name[0] != '/')
    path = ir_format(d->a, "%.*s/%s", (int)(slash - d->o.input), d->o.input, name);
  size_t len = 0;
  char *data = ir_read_file(d->a, path, &len);
  if (!data) {
    ir_diag *e =
        diag_error(d->diags, x->loc, "E0902", "cannot embed '%s': %s", path, strerror(errno));
    diag_help(e, "embedded files are looked for beside the graph file");
    return;
  }
  cg_embedded e = {name, (const unsigned char *)data, len};
  IR_PUSH(d->a, p->embedded, e);
  IR_PUSH(d->a, d->files, path);
}

static void embed_data(driver *d, cg_program *p) {
  for (size_t i = 0; i < p->module->data.num; i++) {
    const ir_data *x = p->module->data.at[i];
    for (size_t j = 0; embed_setting(x) && j < x->files.num; j++)
      if (!already_embedded(p, x->files.at[j]))
        embed_file(d, p, x, x->files.at[j]);
  }
}

// --- the back ------------------------------------------------------------------------------------
// False, after an error, when the places of a plan file do not work.
static bool check_plan(const driver *d, const plan *pl, const ir_module *m) {
  ir_buf wrong = ir_buf_new(d->a);
  int n = plan_check(pl, m, &wrong);
  if (n && d->edit) {
    diag_error(d->diags, (ir_loc){0}, "E0508", "%s breaks %d rule%s:\n%s", d->edit->path, n,
               n == 1 ? "" : "s", ir_buf_str(&wrong));
    return false;
  }
  BUG_IF(n, "the memory plan breaks %d rules:\n%s", n, ir_buf_str(&wrong));
  return true;
}

static const char *origin_options(const driver *d) {
  ir_buf b = ir_buf_new(d->a);
  ir_buf_printf(&b, "--target=%s -O%d", d->target->name, d->o.opt_level);
  if (d->o.cuda_compiler)
    ir_buf_printf(&b, " --cuda-compiler=%s", d->o.cuda_compiler);
  for (size_t i = 0; i < d->o.defines.num; i++)
    ir_buf_printf(&b, " -D %s", d->o.defines.at[i]);
  return ir_buf_str(&b);
}

static int emit_sources(const driver *d, const cg_sources *s, cg_source_kind kind) {
  ir_buf b = ir_buf_new(d->a);
  for (size_t i = 0; i < s->num; i++)
    if (s->at[i].kind == kind)
      ir_buf_printf(&b, "// ===== %s\n%s", s->at[i].name, s->at[i].text);
  return put_buf(d, &b);
}

static int emit_compiled(const driver *d, const cg_sources *s, const cg_build *b) {
  const char *why = NULL;
  const char *kind = d->o.emit == EMIT_LLVM ? "llvm" : d->o.emit == EMIT_PTX ? "ptx" : "asm";
  const char *text = cg_disassemble(d->a, s, d->target, b, kind, &why);
  if (text)
    return put(d, text, strlen(text));
  fprintf(stderr, "mltc: %s\n", why);
  return EXIT_INPUT;
}

static int emit_resources(const driver *d, const cg_program *p, const plan *pl, const cg_sources *s,
                          const cg_build *b) {
  cg_arch_resources r = {0};
  const char *why = NULL;
  ir_buf out = ir_buf_new(d->a);
  if (d->target->cuda && !cg_find_resources(d->a, s, d->target, b, &r, &why)) {
    fprintf(stderr, "mltc: %s\n", why);
    return EXIT_INPUT;
  }
  cg_print_resources(p, pl, &r, &out);
  return put_buf(d, &out);
}

// A file name as make reads it.
static void put_make_name(ir_buf *b, const char *name) {
  for (const char *s = name; *s; s++)
    ir_buf_printf(b, "%s%c", *s == ' ' || *s == '#' ? "\\" : *s == '$' ? "$" : "", *s);
}

static int write_dependencies(const driver *d, const char *out) {
  ir_buf b = ir_buf_new(d->a);
  put_make_name(&b, out);
  ir_buf_puts(&b, ": ");
  put_make_name(&b, d->o.input);
  for (size_t i = 0; i < d->files.num; i++) {
    ir_buf_puts(&b, " \\\n  ");
    put_make_name(&b, d->files.at[i]);
  }
  ir_buf_puts(&b, "\n");
  const char *path = ir_format(d->a, "%s.d", out);
  if (ir_write_file(path, ir_buf_str(&b), b.len))
    return 0;
  fprintf(stderr, "mltc: cannot write '%s': %s\n", path, strerror(errno));
  return EXIT_INPUT;
}

static int build_trainer(const driver *d, const cg_sources *s, cg_build *b) {
  const char *why = NULL;
  b->out = d->o.output ? d->o.output : default_output(d);
  if (!cg_compile(d->a, s, d->target, b, &why)) {
    fprintf(stderr, "mltc: %s\n", why);
    return EXIT_INPUT;
  }
  return d->o.dependencies ? write_dependencies(d, b->out) : 0;
}

static bool has_clang_for_cuda(const driver *d) {
  return d->o.cuda_compiler && !strcmp(d->o.cuda_compiler, "clang");
}

static int emit_program(driver *d, cg_program *p, const plan *pl) {
  cg_origin origin = {d->o.input, "mltc " MLTC_VERSION, origin_options(d),
                      ir_hash(d->source.text, d->source.len)};
  embed_data(d, p);
  if (diag_num_errors(d->diags))
    return report(d);
  cg_sources s = cg_program_emit(p, pl, &origin);
  cg_build b = {.keep_dir = d->o.keep_dir,
                .opt_level = d->o.opt_level,
                .verbose = d->o.verbose,
                .cuda_compiler = has_clang_for_cuda(d) ? CG_CUDA_CLANG : CG_NVRTC,
                .no_cache = d->o.no_cache};
  if (d->o.emit == EMIT_C || d->o.emit == EMIT_CUDA)
    return emit_sources(d, &s, d->o.emit == EMIT_C ? CG_SOURCE_C : CG_SOURCE_CUDA);
  if (d->o.emit == EMIT_RESOURCES)
    return emit_resources(d, p, pl, &s, &b);
  if (d->o.emit == EMIT_LLVM || d->o.emit == EMIT_ASM || d->o.emit == EMIT_PTX)
    return emit_compiled(d, &s, &b);
  return build_trainer(d, &s, &b);
}

// Says why, when the plan does not fit the budget.
static bool fits_budget(const driver *d, const plan *pl, const ir_module *m) {
  const ir_setting *budget = ir_find_config(m, "memory_budget");
  if (!budget || (double)pl->arena_bytes <= budget->num)
    return true;
  ir_buf b = ir_buf_new(d->a);
  plan_print_shortfall(pl, m, (int64_t)budget->num, &b);
  fprintf(stderr, "mltc: %s %s", d->o.input, ir_buf_str(&b));
  if (!options_is_ir(&d->o))
    cmd_say_divided(&(trial_subject){&d->o, d->target, &d->source, {0}}, (int64_t)budget->num);
  return false;
}

// The kinds of --emit that show the plan: also of one that does not fit.
static bool print_plan(const driver *d, const cg_program *p, const plan *pl, ir_buf *out) {
  switch (d->o.emit) {
  case EMIT_PLAN:
    plan_print(pl, p->module, out);
    return true;
  case EMIT_PLAN_JSON:
    plan_print_json(pl, p->module, out);
    return true;
  case EMIT_REPORT:
    cg_print_report(p, pl, out);
    return true;
  default:
    return false;
  }
}

static int back_end(driver *d, ir_module *m) {
  ir_buf b = ir_buf_new(d->a);
  if (!trial_has_generators(d->target, m, d->diags))
    return report(d);
  cg_program *p = cg_program_new(d->a, m, d->target);
  plan *pl = d->edit ? plan_build_edited(m, d->edit, d->diags) : cg_plan(p);
  if (diag_num_errors(d->diags) || !check_plan(d, pl, m))
    return report(d);
  bool fits = fits_budget(d, pl, m), printed = print_plan(d, p, pl, &b);
  int status = printed ? put_buf(d, &b) : 0;
  if (printed || !fits)
    return status ? status : fits ? 0 : EXIT_BUDGET;
  cg_share(p);
  if (d->o.emit == EMIT_KERNELS) {
    cg_list_kernels(p, &b);
    return put_buf(d, &b);
  }
  return emit_program(d, p, pl);
}

static bool read_edit(driver *d) {
  const char *why = NULL;
  if (d->o.plan && !(d->edit = plan_edit_read(d->a, d->o.plan, &why)))
    diag_error(d->diags, (ir_loc){0}, "E0508", "%s", why);
  return !d->o.plan || d->edit;
}

static int compile(driver *d) {
  ir_buf b = ir_buf_new(d->a);
  if (!read_source(d) || !read_edit(d))
    return report(d);
  const trial_subject subject = {&d->o, d->target, &d->source, {0}};
  if (d->o.command == COMMAND_MEMORY)
    return cmd_memory(&subject);
  if (d->o.allow_accumulate)
    d->split = cmd_divide_batch(d->a, &subject, d->diags);
  if (d->o.max_batch || d->o.max) {
    const char *define = NULL;
    int status = cmd_solve(d->a, &subject, &define);
    if (status || (d->o.emit == EMIT_TRAINER && !d->o.output))
      return status;
    IR_PUSH(d->a, d->o.defines, define);
  }
  if (d->o.emit == EMIT_AST && options_is_ir(&d->o))
    return usage("--emit=ast prints graph files; use --emit=ir for IR");
  if (d->o.emit == EMIT_AST) {
    ast_print(fe_parse(d->a, &d->source, d->diags), &b);
    int status = report(d);
    return status ? status : put_buf(d, &b);
  }
  ir_module *m = load_module(d);
  if (m)
    trial_set_precision(&d->o, m, d->diags);
  if (!m || diag_num_errors(d->diags) || !run_passes(d, m))
    return report(d);
  report(d); // warnings
  if (d->o.emit == EMIT_IR || d->o.emit == EMIT_DOT) {
    (d->o.emit == EMIT_IR ? ir_print : ir_print_dot)(m, &b);
    return put_buf(d, &b);
  }
  return back_end(d, m);
}

// What only a GPU's program has.
static const char *needs_cuda(const options *o) {
  return o->emit == EMIT_CUDA  ? "--emit=cuda"
         : o->emit == EMIT_PTX ? "--emit=ptx"
         : o->cuda_compiler    ? "--cuda-compiler"
         : o->no_cache         ? "--no-cache"
                               : NULL;
}

// Finds the target, or says what is wrong with it.
static const char *check_target(driver *d) {
  d->target = cg_target_find(d->a, d->o.target);
  if (!d->target)
    return ir_format(d->a, "--target=%s: %s", d->o.target, cg_target_why_not(d->a, d->o.target));
  if (needs_cuda(&d->o) && !d->target->cuda)
    return ir_format(d->a, "%s is for GPUs: it needs --target=cuda", needs_cuda(&d->o));
  return NULL;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "diff"))
    return cmd_diff(argc - 1, argv + 1);
  driver d = {.a = ir_arena_new()};
  const char *why = NULL;
  d.diags = diag_new(d.a);
  int status = 0;
  if (!options_parse(d.a, argc, argv, &d.o, &why))
    status = usage(why);
  else if (d.o.help)
    options_help(stdout);
  else if (d.o.version)
    printf("mltc " MLTC_VERSION "\n");
  else if (d.o.explain)
    status = explain(d.o.explain);
  else if ((why = check_target(&d)))
    status = usage(why);
  else
    status = compile(&d);
  ir_arena_free(d.a);
  return status;
}
