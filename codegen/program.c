// program.c: schedules kernels, shares equal ones, and puts the text into files.
//
// Kernels are emitted under a stand-in name first; equal texts are one function. Files are cut by
// the amount of text alone, so that the same input gives the same bytes on any machine, and so that
// compilers can work on them in parallel.
#include "codegen/program.h"

#include <ctype.h>
#include <string.h>

#include "codegen/plain.h"
#include "passes/cost.h"

enum { FILE_BYTES = 24 * 1024, MAX_FILES = 8 };

static const char STAND_IN[] = "KERNEL";

// --- scheduling -----------------------------------------------------------------------------------
static cg_kernel *schedule(cg_program *p, const ir_func *f, ir_kernel *k) {
  cg_kernel *c = IR_NEW(p->arena, cg_kernel);
  c->k = k;
  c->func = f;
  c->target = p->target;
  c->arena = p->arena;
  if (k->family == IR_FAMILY_LOOP || k->family == IR_FAMILY_MATMUL)
    c->dom = dom_build(p->arena, k);
  dom_io io = dom_kernel_io(p->arena, k);
  for (size_t i = 0; i < io.in.num; i++)
    IR_PUSH(p->arena, c->in, io.in.at[i]);
  for (size_t i = 0; i < io.out.num; i++)
    IR_PUSH(p->arena, c->out, io.out.at[i]);
  c->num_phases = 1;
  c->tasks[0] = 1;
  cg_generators[k->family].schedule(c);
  k->workspace = c->workspace;
  return c;
}

cg_program *cg_program_new(ir_arena *a, ir_module *m, const cg_target *t) {
  cg_program *p = IR_NEW(a, cg_program);
  *p = (cg_program){.arena = a, .module = m, .target = t, .prefix = ""};
  BUG_IF(m->funcs.num > 8, "%zu functions", m->funcs.num);
  for (size_t i = 0; i < m->funcs.num; i++) {
    ir_func *f = m->funcs.at[i];
    p->kernels[i] = IR_NEW_ARRAY(a, cg_kernel *, f->kernels.num + 1);
    for (size_t j = 0; j < f->kernels.num; j++)
      p->kernels[i][j] = schedule(p, f, f->kernels.at[j]);
  }
  return p;
}

// --- sharing --------------------------------------------------------------------------------------
static const char *last_word(const char *name) {
  const char *word = name;
  for (const char *s = name; *s; s++)
    if (*s == '.' && isalpha((unsigned char)s[1]))
      word = s + 1;
  return word;
}

static const char *identifier(const cg_program *p, const cg_kernel *c) {
  const char *family = ir_family_names[c->k->family];
  char *name = ir_format(p->arena, "%s%s_%s", p->prefix, family, last_word(c->k->name));
  for (char *s = name; *s; s++)
    if (!isalnum((unsigned char)*s))
      *s = '_';
  return name;
}

static char *replace_all(ir_arena *a, const char *text, const char *from, const char *to) {
  ir_buf b = ir_buf_new(a);
  for (const char *hit; (hit = strstr(text, from)); text = hit + strlen(from)) {
    ir_buf_write(&b, text, (size_t)(hit - text));
    ir_buf_puts(&b, to);
  }
  ir_buf_puts(&b, text);
  return b.text;
}

static cg_distinct *new_distinct(cg_program *p, ir_map *names, const cg_kernel *c,
                                 const char *text) {
  cg_distinct *d = IR_NEW(p->arena, cg_distinct);
  const char *base = identifier(p, c), *name = base;
  for (int i = 2; ir_map_get(names, name); i++)
    name = ir_format(p->arena, "%s_%d", base, i);
  ir_map_put(names, name, d);
  d->name = name;
  d->text = replace_all(p->arena, text, STAND_IN, name);
  IR_PUSH(p->arena, p->distinct, d);
  return d;
}

void cg_share(cg_program *p) {
  ir_map *by_text = ir_map_new(p->arena), *names = ir_map_new(p->arena);
  for (size_t i = 0; i < p->module->funcs.num; i++) {
    size_t num = p->module->funcs.at[i]->kernels.num;
    p->shared[i] = IR_NEW_ARRAY(p->arena, cg_distinct *, num + 1);
    for (size_t j = 0; j < num; j++) {
      const cg_kernel *c = p->kernels[i][j];
      ir_buf b = ir_buf_new(p->arena);
      cg_generators[c->k->family].emit(c, STAND_IN, &b);
      cg_distinct *d = ir_map_get(by_text, ir_buf_str(&b));
      if (!d) {
        d = new_distinct(p, names, c, ir_buf_str(&b));
        ir_map_put(by_text, ir_buf_str(&b), d);
      }
      IR_PUSH(p->arena, d->uses, c);
      cost x = cost_kernel(p->arena, c->k);
      d->flops = x.flops;
      d->bytes = x.bytes_read + x.bytes_written;
      p->shared[i][j] = d;
    }
  }
}

// --- descriptions ---------------------------------------------------------------------------------
const char *cg_describe(ir_arena *a, const ir_kernel *k) {
  ir_buf b = ir_buf_new(a);
  size_t shown = k->nodes.num < 10 ? k->nodes.num : 8;
  for (size_t i = 0; i < shown; i++)
    ir_buf_printf(&b, "%s%s", i ? ", " : "", ir_ops[k->nodes.at[i]->op].name);
  if (shown < k->nodes.num)
    ir_buf_printf(&b, " and %zu more", k->nodes.num - shown);
  const ir_node *last = k->nodes.at[k->nodes.num - 1];
  ir_buf_printf(&b, "  %s", ir_type_str(a, &k->anchor->type));
  if (last->loc.file)
    ir_buf_printf(&b, "  %s:%u", last->loc.file->path, last->loc.line);
  return ir_buf_str(&b);
}

void cg_put_string(ir_buf *out, const char *s) {
  ir_buf_puts(out, "\"");
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '\n')
      ir_buf_puts(out, s[1] ? "\\n\"\n    \"" : "\\n");
    else if (c == '"' || c == '\\')
      ir_buf_printf(out, "\\%c", c);
    else if (c < 32 || c > 126 || c == '?') // '?': no trigraphs
      ir_buf_printf(out, "\\%03o", c);
    else
      ir_buf_write(out, s, 1);
  }
  ir_buf_puts(out, "\"");
}

// --- files ----------------------------------------------------------------------------------------
static void put_banner(cg_program *p, const cg_distinct *d, ir_buf *out) {
  ir_buf_puts(out, "\n// ");
  for (int i = 0; i < 90; i++)
    ir_buf_puts(out, "-");
  ir_buf_puts(out, "\n");
  for (size_t i = 0; i < d->uses.num && i < 4; i++) {
    const cg_kernel *c = d->uses.at[i];
    ir_buf_printf(out, "// %s: %s = %s\n", c->func->name, c->k->name,
                  cg_describe(p->arena, c->k));
  }
  if (d->uses.num > 4)
    ir_buf_printf(out, "// and %zu more\n", d->uses.num - 4);
}

static void add_file(cg_program *p, cg_sources *out, const char *name, const ir_buf *b) {
  cg_source s = {.name = name, .text = ir_buf_str(b), .len = b->len};
  IR_PUSH(p->arena, *out, s);
}

// A program for another machine carries no plain versions: its C library is not known here.
static void add_plain_file(cg_program *p, cg_sources *out) {
  if (p->target->triple)
    return;
  ir_buf b = ir_buf_new(p->arena);
  ir_buf_puts(&b, cg_plain_prelude());
  for (size_t i = 0; i < p->distinct.num; i++) {
    cg_distinct *d = p->distinct.at[i];
    d->plain = ir_format(p->arena, "%s_plain", d->name);
    cg_plain_emit(p->arena, d->uses.at[0], d->plain, &b);
  }
  add_file(p, out, "plain.c", &b);
  out->at[out->num - 1].reference = true;
}

static size_t num_files(const cg_program *p) {
  size_t bytes = 0;
  for (size_t i = 0; i < p->distinct.num; i++)
    bytes += strlen(p->distinct.at[i]->text);
  size_t n = bytes / FILE_BYTES + 1;
  return n > MAX_FILES ? MAX_FILES : n;
}

// The lightest file takes the next kernel.
static size_t lightest(const ir_buf *files, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; i++)
    if (files[i].len < files[best].len)
      best = i;
  return best;
}

cg_sources cg_program_emit(cg_program *p, const plan *plan, const cg_origin *o) {
  cg_sources out = {0};
  size_t n = num_files(p);
  ir_buf *files = IR_NEW_ARRAY(p->arena, ir_buf, n);
  const char *prelude = cg_cpu_prelude(p->arena, p->target);
  for (size_t i = 0; i < n; i++) {
    files[i] = ir_buf_new(p->arena);
    ir_buf_printf(&files[i], "// Kernels of %s. Generated by %s for %s.\n", o->path, o->compiler,
                  p->target->name);
    ir_buf_puts(&files[i], prelude);
  }
  for (size_t i = 0; i < p->distinct.num; i++) {
    ir_buf *f = &files[lightest(files, n)];
    put_banner(p, p->distinct.at[i], f);
    ir_buf_puts(f, p->distinct.at[i]->text);
  }
  for (size_t i = 0; i < n; i++)
    add_file(p, &out, ir_format(p->arena, "kernels_%zu.c", i), &files[i]);
  add_plain_file(p, &out);
  ir_buf b = ir_buf_new(p->arena);
  ir_buf_printf(&b, "// %s as a program. Generated by %s for %s.\n", o->path, o->compiler,
                p->target->name);
  cg_emit_functions(p, plan, &b);
  cg_emit_tables(p, plan, o, &b);
  add_file(p, &out, "program.c", &b);
  return out;
}
