// program.c: schedules kernels and puts their text into files.
//
// Files are cut by the amount of text alone, so that the same input gives the same bytes on any
// machine, and so that compilers can work on them in parallel.
#include "codegen/program.h"

#include <string.h>

#include "codegen/cuda_launches.h"
#include "codegen/plain_step.h"

// A CUDA file begins with three times the text before its first kernel.
enum {
  FILE_BYTES = 48 * 1024,
  LARGE_FILE_BYTES = 256 * 1024,
  CUDA_FILE_BYTES = 64 * 1024,
  MAX_FILES = 8
};

// --- scheduling ------------------------------------------------------------------------------
static cg_kernel *schedule_for(const cg_target *t, ir_arena *a, const ir_func *f, ir_kernel *k) {
  cg_kernel *c = IR_NEW(a, cg_kernel);
  c->k = k;
  c->func = f;
  c->target = t;
  c->arena = a;
  if (dom_has_domain(k))
    c->dom = dom_build(a, k);
  dom_io io = dom_kernel_io(a, k);
  for (size_t i = 0; i < io.in.num; i++)
    IR_PUSH(a, c->in, io.in.at[i]);
  for (size_t i = 0; i < io.out.num; i++)
    IR_PUSH(a, c->out, io.out.at[i]);
  c->num_phases = 1;
  c->tasks[0] = 1;
  cg_generator_for(t, k->family)->schedule(c);
  return c;
}

// What one chip of the list makes otherwise than all of them can; NULL: nothing. Workspaces of the two are one place.
static cg_kernel *own_of(const cg_program *p, const cg_kernel *c) {
  if (!p->own || c->k->family != IR_FAMILY_MATMUL || c->products != CG_BY_HALF)
    return NULL;
  cg_kernel *own = schedule_for(p->own, c->arena, c->func, c->k);
  return own->one_chip ? own : NULL;
}

static cg_kernel *schedule(const cg_program *p, ir_arena *a, const ir_func *f, ir_kernel *k) {
  cg_kernel *c = schedule_for(p->target, a, f, k);
  c->own = own_of(p, c);
  k->workspace = c->workspace;
  if (c->own && c->own->workspace > k->workspace)
    k->workspace = c->own->workspace;
  return c;
}

static void schedule_all(cg_program *p) {
  ir_module *m = p->module;
  dom_find_stretches(m);
  cg_find_exact(m);
  for (size_t i = 0; i < m->funcs.num; i++) {
    const ir_func *f = m->funcs.at[i];
    p->kernels[i] = IR_NEW_ARRAY(p->arena, cg_kernel *, f->kernels.num + 1);
    for (size_t j = 0; j < f->kernels.num; j++)
      p->kernels[i][f->kernels.at[j]->id] = schedule(p, p->arena, f, f->kernels.at[j]);
  }
  p->scheduled = true;
}

// What plans need of schedules, and nothing that stays: many programs are planned for each that is emitted, and
// those with few bytes run tens of thousands of kernels again.
static void set_workspaces(cg_program *p) {
  ir_arena *scratch = ir_arena_new();
  dom_find_stretches(p->module);
  for (size_t i = 0; i < p->module->funcs.num; i++) {
    const ir_func *f = p->module->funcs.at[i];
    for (size_t j = 0; j < f->kernels.num; j++) {
      schedule(p, scratch, f, f->kernels.at[j]);
      ir_arena_clear(scratch);
    }
  }
  ir_arena_free(scratch);
  p->scheduled = false;
}

static void schedule_for_plan(cg_program *p) {
  if (p->target->cuda)
    schedule_all(p); // cg_plan looks at kernels, too
  else
    set_workspaces(p);
}

cg_program *cg_program_new(ir_arena *a, ir_module *m, const cg_target *t) {
  cg_program *p = IR_NEW(a, cg_program);
  *p = (cg_program){.arena = a, .module = m, .target = t, .prefix = ""};
  if (t->cuda && t->cuda->own)
    p->own = cg_cuda_with(a, t, *t->cuda->own);
  schedule_for_plan(p);
  return p;
}

static void find_again(cg_program *p, size_t index) {
  size_t n = p->module->funcs.at[index]->kernels.num;
  cg_kernel **was = p->kernels[index];
  p->kernels[index] = IR_NEW_ARRAY(p->arena, cg_kernel *, n + 1);
  for (size_t j = 0; j < n; j++)
    p->kernels[index][was[j]->k->id] = was[j];
}

// Kernels that run again read buffers of their own: which slices are stretches may change with them.
void cg_program_update(cg_program *p) {
  dom_find_stretches(p->module); // passes may have forgotten them
  for (size_t i = 0; i < p->module->funcs.num; i++)
    if (ir_has_clones(p->module->funcs.at[i]) || ir_has_transfers(p->module->funcs.at[i])) {
      schedule_for_plan(p);
      return;
    }
  for (size_t i = 0; p->scheduled && i < p->module->funcs.num; i++)
    find_again(p, i);
}

void cg_program_schedule(cg_program *p) {
  if (!p->scheduled)
    schedule_all(p);
}

plan *cg_plan(const cg_program *p, const plan_edit *e, ir_diags *d) {
  if (!p->target->cuda)
    return plan_build_for(p->module, NULL, e, d);
  plan_wishes w = cuda_wish_lives(p);
  return plan_build_for(p->module, &w, e, d);
}

// --- descriptions ----------------------------------------------------------------------------
const char *cg_describe_ops(ir_arena *a, const ir_kernel *k) {
  ir_buf b = ir_buf_new(a);
  size_t shown = k->nodes.num < 10 ? k->nodes.num : 8;
  for (size_t i = 0; i < shown; i++)
    ir_buf_printf(&b, "%s%s", i ? ", " : "", ir_ops[k->nodes.at[i]->op].name);
  if (shown < k->nodes.num)
    ir_buf_printf(&b, " and %zu more", k->nodes.num - shown);
  ir_buf_printf(&b, "  %s", ir_type_str(a, &k->anchor->type));
  return ir_buf_str(&b);
}

// As it may stand in a comment: a file may have a line break in its name.
static const char *in_line(ir_arena *a, const char *text) {
  char *line = ir_strdup(a, text);
  for (char *s = line; *s; s++)
    if ((unsigned char)*s < 32 || *s == 127)
      *s = '?';
  return line;
}

const char *cg_describe(ir_arena *a, const ir_kernel *k) {
  const char *ops = cg_describe_ops(a, k);
  const char *place = ir_place(a, k->nodes.at[k->nodes.num - 1]->loc);
  return place ? ir_format(a, "%s  %s", ops, in_line(a, place)) : ops;
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

// --- files -----------------------------------------------------------------------------------
static void put_banner(cg_program *p, const cg_distinct *d, ir_buf *out) {
  ir_buf_puts(out, "\n// ");
  for (int i = 0; i < 90; i++)
    ir_buf_puts(out, "-");
  ir_buf_puts(out, "\n");
  for (size_t i = 0; i < d->uses.num && i < 4; i++) {
    const cg_kernel *c = d->uses.at[i];
    ir_buf_printf(out, "// %s: %s = %s\n", c->func->name, c->k->name, cg_describe(p->arena, c->k));
  }
  if (d->uses.num > 4)
    ir_buf_printf(out, "// and %zu more\n", d->uses.num - 4);
}

static void add_file(cg_program *p, cg_sources *out, const char *name, const ir_buf *b) {
  cg_source s = {.name = name, .text = ir_buf_str(b), .len = b->len};
  IR_PUSH(p->arena, *out, s);
}

// An object for another machine carries no plain versions: its C library is not known here.
static void add_plain_file(cg_program *p, cg_sources *out) {
  if (p->target->bare)
    return;
  ir_buf b = ir_buf_new(p->arena);
  ir_buf_puts(&b, cg_plain_prelude());
  p->plain_step = cg_plain_step_new(p);
  cg_plain_emit_all(p, p->plain_step, &b);
  add_file(p, out, "plain.c", &b);
  out->at[out->num - 1].use = CG_USE_CHECK;
}

// Kernels of `init` run once; kernels without axes compute one number.
static bool is_small(const cg_distinct *d) {
  for (size_t i = 0; i < d->uses.num; i++) {
    const cg_kernel *c = d->uses.at[i];
    if (!cg_runs_once(c->func) && !(c->dom && c->dom->num_axes == 0))
      return false;
  }
  return true;
}

static size_t num_files(const cg_program *p, size_t file_bytes) {
  size_t bytes = 0;
  for (size_t i = 0; i < p->distinct.num; i++)
    if (p->target->cuda || !is_small(p->distinct.at[i]))
      bytes += strlen(p->distinct.at[i]->text);
  size_t n = bytes / file_bytes + 1;
  return n > MAX_FILES ? MAX_FILES : n;
}

// The lightest file of those from `first` on takes the next kernel. Banners do not count: a kernel stays in its
// file, and its object in the cache, when more kernels share it.
static size_t lightest(const size_t *bytes, size_t first, size_t n) {
  size_t best = first;
  for (size_t i = first + 1; i < n; i++)
    if (bytes[i] < bytes[best])
      best = i;
  return best;
}

static ir_buf new_file(const cg_program *p, const cg_origin *o, const char *prelude) {
  ir_buf b = ir_buf_new(p->arena);
  ir_buf_printf(&b, "// Kernels of %s. Generated by %s for %s.\n", in_line(p->arena, o->path),
                o->compiler, p->target->name);
  ir_buf_puts(&b, prelude);
  return b;
}

// --- files of CUDA kernels ---------------------------------------------------------------------
// A joint entry is compiled with the functions that it calls, whose bodies it has once more, if they have entries of
// their own. Kernels that compilers are told something else for have files of their own: those whose order ptxas shall
// keep, and those that only one chip has.
typedef enum file_kind { FILE_USUAL, FILE_IN_ORDER, FILE_ONE_CHIP, FILE_KINDS } file_kind;

typedef struct cuda_files {
  cg_program *p;
  ir_buf *files;
  size_t num, *bytes;           // of all that is compiled
  size_t first[FILE_KINDS + 1]; // of each kind, in their order
  int64_t *near;                // bytes of tables in constant memory
} cuda_files;

static file_kind kind_of(const cg_distinct *d) {
  const cg_kernel *c = d->uses.at[0];
  return c->one_chip ? FILE_ONE_CHIP : c->in_order ? FILE_IN_ORDER : FILE_USUAL;
}

// Each kind has files as it has text.
static void count_files(cuda_files *x) {
  const cg_program *p = x->p;
  size_t n = num_files(p, CUDA_FILE_BYTES), of[FILE_KINDS] = {0}, bytes = 0;
  n += n > 1 && n % 2; // compilers run in pairs at least: of three, one runs alone
  for (size_t i = 0; i < p->distinct.num; i++) {
    const cg_distinct *d = p->distinct.at[i];
    of[kind_of(d)] += strlen(d->text);
    bytes += strlen(d->text);
  }
  for (int kind = 0; kind < FILE_KINDS; kind++) {
    size_t share = bytes > 0 ? (of[kind] * n + bytes / 2) / bytes : kind == FILE_USUAL;
    share += of[kind] > 0 && share == 0;
    x->first[kind + 1] = x->first[kind] + share;
  }
  x->num = x->first[FILE_KINDS];
}

static int choose_file(const cuda_files *x, const cg_distinct *d) {
  file_kind kind = kind_of(d);
  return (int)lightest(x->bytes, x->first[kind], x->first[kind + 1]);
}

// Gives a function its file, and with it all that joints put beside it.
static void choose_unit(cuda_files *x, cg_distinct *d, int unit) {
  if (d->unit >= 0)
    return;
  d->unit = unit;
  x->bytes[unit] += strlen(d->text);
  for (size_t i = 0; i < x->p->joints.num; i++) {
    cg_joint *j = x->p->joints.at[i];
    if (!cuda_joint_has(j, d))
      continue;
    j->unit = unit;
    x->bytes[unit] += strlen(d->text);
    for (size_t k = 0; k < j->parts.num; k++)
      choose_unit(x, j->parts.at[k], unit);
  }
}

// Joints may have left some with nothing, which would be compiled all the same, and counted by those who load images.
static void leave_out_empty(cuda_files *x) {
  int *to = IR_NEW_ARRAY(x->p->arena, int, x->num + 1), kept = 0;
  if (x->p->distinct.num == 0)
    return;
  for (size_t kind = 0, i = 0; kind < FILE_KINDS; kind++) {
    size_t end = x->first[kind + 1];
    x->first[kind] = (size_t)kept;
    for (; i < end; i++) {
      to[i] = kept;
      kept += x->bytes[i] > 0;
    }
  }
  for (size_t i = 0; i < x->p->distinct.num; i++)
    x->p->distinct.at[i]->unit = to[x->p->distinct.at[i]->unit];
  for (size_t i = 0; i < x->p->joints.num; i++)
    x->p->joints.at[i]->unit = to[x->p->joints.at[i]->unit];
  x->num = x->first[FILE_KINDS] = (size_t)kept;
}

static void choose_units(cuda_files *x) {
  const cg_program *p = x->p;
  x->bytes = IR_NEW_ARRAY(p->arena, size_t, x->num);
  for (size_t i = 0; i < p->distinct.num; i++)
    p->distinct.at[i]->unit = -1;
  for (size_t i = 0; i < p->distinct.num; i++)
    choose_unit(x, p->distinct.at[i], choose_file(x, p->distinct.at[i]));
  leave_out_empty(x);
}

// Of K_KERNEL_ROOM, too: the launch decides what there is room for.
static void put_called(const cg_distinct *d, ir_buf *out) {
  const char *from = strstr(d->text, "K_KERNEL"), *to = from ? strchr(from, '(') : NULL;
  BUG_IF(!to, "%s has no entry to leave out", d->name);
  ir_buf_write(out, d->text, (size_t)(from - d->text));
  ir_buf_puts(out, "K_CALLED");
  ir_buf_puts(out, to);
}

static void put_joint(cuda_files *x, const cg_joint *j) {
  enum { CONSTANT_BYTES = 48 * 1024 }; // of the 64 KiB that a file has
  int64_t bytes = (int64_t)(j->num_words * sizeof(uint32_t));
  bool near = x->near[j->unit] + bytes <= CONSTANT_BYTES;
  x->near[j->unit] += near ? bytes : 0;
  cuda_emit_joint(x->p, j, near, &x->files[j->unit]);
}

// kernels_0.cu, kernels_1.cu, ...: the units of the program's images.
static void add_cuda_files(cg_program *p, const cg_origin *o, cg_sources *out) {
  cuda_files x = {.p = p};
  count_files(&x);
  choose_units(&x);
  size_t n = x.num;
  x.files = IR_NEW_ARRAY(p->arena, ir_buf, n);
  x.near = IR_NEW_ARRAY(p->arena, int64_t, n);
  for (size_t i = 0; i < n; i++)
    x.files[i] = new_file(p, o, cg_cuda_prelude(p->arena));
  for (size_t i = 0; i < p->distinct.num; i++) {
    cg_distinct *d = p->distinct.at[i];
    put_banner(p, d, &x.files[d->unit]);
    if (d->only_in)
      put_called(d, &x.files[d->unit]);
    else
      ir_buf_puts(&x.files[d->unit], d->text);
  }
  for (size_t i = 0; i < p->joints.num; i++)
    put_joint(&x, p->joints.at[i]);
  for (size_t i = 0; i < n; i++) {
    add_file(p, out, ir_format(p->arena, "kernels_%zu.cu", i), &x.files[i]);
    out->at[out->num - 1].kind = CG_SOURCE_CUDA;
    cg_source *s = &out->at[out->num - 1];
    s->in_order = i >= x.first[FILE_IN_ORDER] && i < x.first[FILE_ONE_CHIP];
    s->one_chip = i >= x.first[FILE_ONE_CHIP];
  }
}

// --- files of C kernels ------------------------------------------------------------------------
typedef struct c_file {
  ir_buf kernels;
  bool doubles;
} c_file;

static bool computes_doubles(const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    if (n->type.dtype == IR_F64 && ir_ops[n->op].cls == IR_CLASS_POINTWISE)
      return true;
  }
  return false;
}

static void put_kernel(cg_program *p, const cg_distinct *d, c_file *f) {
  f->doubles |= computes_doubles(d->uses.at[0]->k);
  put_banner(p, d, &f->kernels);
  ir_buf_puts(&f->kernels, d->text);
}

static void add_kernel_file(cg_program *p, const cg_origin *o, const char *name, const c_file *f,
                            cg_sources *out) {
  ir_buf b = new_file(p, o, cg_cpu_prelude(p->arena, p->target, f->doubles));
  ir_buf_write(&b, ir_buf_str(&f->kernels), f->kernels.len);
  add_file(p, out, name, &b);
}

// kernels_0.c, kernels_1.c, ... and kernels_small.c
static void add_kernel_files(cg_program *p, const cg_origin *o, cg_sources *out) {
  size_t n = num_files(p, o->few_files ? LARGE_FILE_BYTES : FILE_BYTES);
  c_file *files = IR_NEW_ARRAY(p->arena, c_file, n), small = {.kernels = ir_buf_new(p->arena)};
  size_t *bytes = IR_NEW_ARRAY(p->arena, size_t, n);
  for (size_t i = 0; i < n; i++)
    files[i].kernels = ir_buf_new(p->arena);
  for (size_t i = 0; i < p->distinct.num; i++) {
    const cg_distinct *d = p->distinct.at[i];
    size_t at = lightest(bytes, 0, n);
    bytes[at] += is_small(d) ? 0 : strlen(d->text);
    put_kernel(p, d, is_small(d) ? &small : &files[at]);
  }
  for (size_t i = 0; i < n; i++)
    add_kernel_file(p, o, ir_format(p->arena, "kernels_%zu.c", i), &files[i], out);
  add_kernel_file(p, o, "kernels_small.c", &small, out);
  out->at[out->num - 1].use = CG_USE_ONCE;
}

// Functions first: a GPU's say which kernels share a launch.
cg_sources cg_program_emit(cg_program *p, const plan *plan, const cg_origin *o) {
  cg_sources out = {0};
  bool cuda = p->target->cuda != NULL;
  ir_buf b = ir_buf_new(p->arena);
  ir_buf_printf(&b, "// %s as a program. Generated by %s for %s.\n", in_line(p->arena, o->path),
                o->compiler, p->target->name);
  add_plain_file(p, &out);
  if (cuda)
    cuda_emit_functions(p, plan, &b);
  else
    cg_emit_functions(p, plan, &b);
  (cuda ? add_cuda_files : add_kernel_files)(p, o, &out);
  cg_emit_tables(p, plan, o, &b);
  add_file(p, &out, "program.c", &b);
  out.at[out.num - 1].use = CG_USE_CALLS;
  return out;
}
