// output.c: see output.h.
#include "driver/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/listing.h"
#include "codegen/report_page.h"
#include "codegen/resources.h"
#include "ir/dot.h"

typedef struct output_missed { // a file that cannot be embedded
  const char *name;
  ir_diag *error;
} output_missed;

typedef struct output {
  const draft_subject *s;
  draft *t;
  IR_VEC(output_missed) missed;
} output;

// --- files and standard output ---------------------------------------------------------------
static int fail(const output *x, const char *why) {
  options_say(x->s->o, OPTIONS_ERROR, "%s", why);
  return EXIT_INPUT;
}

static int cannot_write(const output *x, const char *path) {
  return fail(x, ir_format(x->t->arena, "cannot write '%s': %s", path, strerror(errno)));
}

static int put(const output *x, const char *text, size_t len) {
  bool ok;
  if (x->s->o->output)
    ok = ir_write_file(x->s->o->output, text, len);
  else
    ok = fwrite(text, 1, len, stdout) == len && fflush(stdout) == 0;
  return ok ? 0 : cannot_write(x, x->s->o->output ? x->s->o->output : "standard output");
}

static int put_buf(const output *x, const ir_buf *b) {
  return put(x, ir_buf_str(b), b->len);
}

// "dir/mlp.graph" -> "mlp" in the current folder; objects get ".o".
const char *output_path(const draft_subject *s, ir_arena *a) {
  if (s->o->output || s->o->emit != EMIT_TRAINER)
    return s->o->output;
  const char *base = strrchr(s->o->input, '/');
  base = base ? base + 1 : s->o->input;
  const char *dot = strrchr(base, '.');
  int len = dot && dot != base ? (int)(dot - base) : (int)strlen(base);
  return ir_format(a, "%.*s%s", len, base, s->target->bare ? ".o" : dot ? "" : ".out");
}

const char *output_rule_path(ir_arena *a, const char *out) {
  return ir_format(a, "%s.d", out);
}

// --- data inside the program -------------------------------------------------------------------
// `embed` in a data entry: the file travels in the trainer. Looked for beside the graph file.
static bool is_embedded(const ir_data *d) {
  for (size_t i = 0; i < d->settings.num; i++)
    if (!strcmp(d->settings.at[i].key, "embed") && d->settings.at[i].num != 0)
      return true;
  return false;
}

static bool already_embedded(const cg_program *p, const char *name) {
  for (size_t i = 0; i < p->embedded.num; i++)
    if (!strcmp(p->embedded.at[i].name, name))
      return true;
  return false;
}

const char *output_beside_graph(const draft_subject *s, ir_arena *a, const char *name) {
  const char *graph = s->o->input, *slash = strrchr(graph, '/');
  if (!slash || name[0] == '/')
    return name;
  return ir_format(a, "%.*s/%s", (int)(slash - graph), graph, name);
}

// Several data sets may be parts of one file: its error is one.
static bool already_missed(output *x, ir_loc loc, const char *name) {
  for (size_t i = 0; i < x->missed.num; i++)
    if (!strcmp(x->missed.at[i].name, name)) {
      diag_note(x->missed.at[i].error, loc, "it is also to be embedded here");
      return true;
    }
  return false;
}

static void embed_file(output *x, ir_loc loc, const char *name) {
  const char *path = output_beside_graph(x->s, x->t->arena, name);
  size_t len = 0;
  char *data = ir_read_file(x->t->arena, path, &len);
  if (!data) {
    ir_diag *e =
        diag_error(x->t->diags, loc, "E0902", "cannot embed '%s': %s", path, strerror(errno));
    diag_help(e, "embedded files are looked for beside the graph file");
    output_missed missed = {name, e};
    IR_PUSH(x->t->arena, x->missed, missed);
    return;
  }
  cg_embedded e = {name, (const unsigned char *)data, len};
  IR_PUSH(x->t->arena, x->t->program->embedded, e);
  IR_PUSH(x->t->arena, x->t->files, path);
}

static void embed_data(output *x) {
  const ir_module *m = x->t->module;
  for (size_t i = 0; i < m->data.num; i++) {
    const ir_data *d = m->data.at[i];
    for (size_t j = 0; is_embedded(d) && j < d->files.num; j++)
      if (!already_embedded(x->t->program, d->files.at[j]) &&
          !already_missed(x, d->loc, d->files.at[j]))
        embed_file(x, d->loc, d->files.at[j]);
  }
}

// --- code ------------------------------------------------------------------------------------
// All that the program is made from beside its graph. (Settings of `train`, as --precision, are in the loop.)
static const char *origin_options(const output *x) {
  ir_buf b = ir_buf_new(x->t->arena);
  ir_buf_printf(&b, "--target=%s -O%d", x->s->target->name, x->s->o->opt_level);
  if (x->s->o->cuda_compiler)
    ir_buf_printf(&b, " --cuda-compiler=%s", x->s->o->cuda_compiler);
  if (x->s->o->plan)
    ir_buf_printf(&b, " --plan=%s", x->s->o->plan);
  for (size_t i = 0; i < x->s->o->disabled.num; i++)
    ir_buf_printf(&b, " --disable-pass=%s", x->s->o->disabled.at[i]);
  for (size_t i = 0; i < x->s->o->defines.num; i++)
    ir_buf_printf(&b, " -D %s", x->s->o->defines.at[i]);
  return ir_buf_str(&b);
}

static int emit_sources(const output *x, const cg_sources *s, cg_source_kind kind) {
  ir_buf b = ir_buf_new(x->t->arena);
  for (size_t i = 0; i < s->num; i++)
    if (s->at[i].kind == kind)
      ir_buf_printf(&b, "// ===== %s\n%s", s->at[i].name, s->at[i].text);
  return put_buf(x, &b);
}

static int emit_compiled(const output *x, const cg_sources *s, const cg_build *b,
                         const char *kind) {
  const char *why = NULL;
  const char *text = cg_disassemble(x->t->arena, s, x->s->target, b, kind, &why);
  return text ? put(x, text, strlen(text)) : fail(x, why);
}

static int emit_resources(const output *x, const cg_sources *s, const cg_build *b) {
  cg_arch_resources r = {0};
  const char *why = NULL;
  ir_buf out = ir_buf_new(x->t->arena);
  if (x->s->target->cuda && !cg_find_resources(x->t->arena, s, x->s->target, b, &r, &why))
    return fail(x, why);
  cg_print_resources(x->t->program, x->t->plan, &r, &out);
  return put_buf(x, &out);
}

static void put_backslashes(ir_buf *b, size_t num) {
  for (size_t i = 0; i < num; i++)
    ir_buf_puts(b, "\\");
}

// A file name as GNU make reads it: what means something to it stands behind a backslash, and each backslash before that, or
// at the end, is two. In a target % would make a rule for all names that fit.
static void put_make_name(ir_buf *b, const char *name, bool target) {
  size_t before = 0; // backslashes
  for (const char *s = name; *s; s++) {
    if (strchr(" #:*?[", *s) || (target && *s == '%'))
      put_backslashes(b, before + 1);
    ir_buf_printf(b, "%s%c", *s == '$' ? "$" : "", *s);
    before = *s == '\\' ? before + 1 : 0;
  }
  put_backslashes(b, before);
}

// Make has no way to write these in a name.
static const char *find_unwritable(const output *x, const char *out) {
  const char *first[] = {out, x->s->o->input};
  size_t num = sizeof first / sizeof *first;
  for (size_t i = 0; i < num + x->t->files.num; i++) {
    const char *name = i < num ? first[i] : x->t->files.at[i - num];
    if (strpbrk(name, "\n\t;=|"))
      return name;
  }
  return NULL;
}

static int write_dependencies(const output *x, const char *out) {
  ir_buf b = ir_buf_new(x->t->arena);
  put_make_name(&b, out, true);
  ir_buf_puts(&b, ": ");
  put_make_name(&b, x->s->o->input, false);
  for (size_t i = 0; i < x->t->files.num; i++) {
    ir_buf_puts(&b, " \\\n  ");
    put_make_name(&b, x->t->files.at[i], false);
  }
  ir_buf_puts(&b, "\n");
  const char *path = output_rule_path(x->t->arena, out);
  return ir_write_file(path, ir_buf_str(&b), b.len) ? 0 : cannot_write(x, path);
}

static int build_trainer(const output *x, const cg_sources *s, cg_build *b) {
  const char *why = NULL;
  b->out = output_path(x->s, x->t->arena);
  const char *unwritable = x->s->o->dependencies ? find_unwritable(x, b->out) : NULL;
  if (unwritable)
    return fail(x, ir_format(x->t->arena,
                             "-MD: make reads no name with a line break, a tab, ';', '=' or '|': "
                             "'%s'",
                             unwritable));
  if (!cg_compile(x->t->arena, s, x->s->target, b, &why))
    return fail(x, why);
  return x->s->o->dependencies ? write_dependencies(x, b->out) : 0;
}

static bool has_clang_for_cuda(const output *x) {
  return x->s->o->cuda_compiler && !strcmp(x->s->o->cuda_compiler, "clang");
}

static int emit_program(output *x) {
  cg_origin origin = {.path = x->s->o->input,
                      .compiler = "mltc " MLTC_VERSION,
                      .options = origin_options(x),
                      .source_hash = ir_hash(x->s->source->text, x->s->source->len),
                      .few_files = x->s->o->opt_level == 0};
  embed_data(x);
  if (diag_num_errors(x->t->diags))
    return options_report(x->s->o, x->t->diags) ? EXIT_INPUT : 0;
  cg_sources s = cg_program_emit(x->t->program, x->t->plan, &origin);
  cg_build b = {.keep_dir = x->s->o->keep_dir,
                .opt_level = x->s->o->opt_level,
                .verbose = x->s->o->verbose,
                .cuda_compiler = has_clang_for_cuda(x) ? CG_CUDA_CLANG : CG_NVRTC,
                .no_cache = x->s->o->no_cache};
  switch (x->s->o->emit) {
  case EMIT_C:
    return emit_sources(x, &s, CG_SOURCE_C);
  case EMIT_CUDA:
    return emit_sources(x, &s, CG_SOURCE_CUDA);
  case EMIT_RESOURCES:
    return emit_resources(x, &s, &b);
  case EMIT_LLVM:
    return emit_compiled(x, &s, &b, "llvm");
  case EMIT_ASM:
    return emit_compiled(x, &s, &b, "asm");
  case EMIT_PTX:
    return emit_compiled(x, &s, &b, "ptx");
  default:
    return build_trainer(x, &s, &b);
  }
}

// --- stages ------------------------------------------------------------------------------------
int output_ast(const draft_subject *s, draft *t) {
  const output x = {.s = s, .t = t};
  const ast_file *file = fe_parse(t->arena, s->source, t->diags);
  if (options_report(s->o, t->diags))
    return EXIT_INPUT;
  ir_buf b = ir_buf_new(t->arena);
  ast_print(file, &b);
  return put_buf(&x, &b);
}

int output_ir(const draft_subject *s, draft *t) {
  const output x = {.s = s, .t = t};
  ir_buf b = ir_buf_new(t->arena);
  (s->o->emit == EMIT_IR ? ir_print : ir_print_dot)(t->module, &b);
  return put_buf(&x, &b);
}

int output_plan(const draft_subject *s, draft *t) {
  const output x = {.s = s, .t = t};
  ir_buf b = ir_buf_new(t->arena);
  if (s->o->emit == EMIT_PLAN)
    plan_print(t->plan, t->module, &b);
  else if (s->o->emit == EMIT_PLAN_JSON)
    plan_print_json(t->plan, t->module, &b);
  else
    cg_print_report(t->program, t->plan, &b);
  return put_buf(&x, &b);
}

int output_program(const draft_subject *s, draft *t) {
  output x = {.s = s, .t = t};
  cg_share(t->program);
  if (s->o->emit != EMIT_KERNELS)
    return emit_program(&x);
  ir_buf b = ir_buf_new(t->arena);
  cg_list_kernels(t->program, &b);
  return put_buf(&x, &b);
}
