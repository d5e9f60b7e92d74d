// program_share.c: kernels of equal text are one function.
//
//   layer.0.ln.g.new   128 elements
//   layer.3.fc.w.new   65536 elements   ->   void loop_new_0(begin, end, args)
//   wte.new            8320 elements
//
// Each kernel is emitted under a stand-in name and with one name for all of its tensors: that text
// says whether two are equal. The first of its kind is emitted again with its own names, to be
// read. Sizes and the places where uses begin in their buffers differ only where the family passes them as numbers
// (codegen.h, cg_begin.c).
#include "codegen/program.h"

#include <ctype.h>
#include <string.h>

#include "passes/cost.h"

static const char STAND_IN[] = "NAMELESS"; // no word of any prelude

// --- one name for all tensors ----------------------------------------------------------------
typedef struct named {
  ir_node *node;
  const char *name;
} named;
typedef IR_VEC(named) names_kept;

static void rename_one(ir_arena *a, names_kept *kept, ir_node *n) {
  named x = {n, n->name};
  IR_PUSH(a, *kept, x);
  n->name = "v";
}

// Members, arguments and leaves: whatever a generator may name a variable after.
static void rename_tensors(ir_arena *a, const cg_kernel *c, names_kept *kept) {
  for (size_t i = 0; i < c->k->nodes.num; i++)
    rename_one(a, kept, c->k->nodes.at[i]);
  for (size_t i = 0; i < c->in.num; i++)
    rename_one(a, kept, c->in.at[i]);
  for (size_t i = 0; i < c->out.num; i++)
    rename_one(a, kept, c->out.at[i]);
  for (size_t i = 0; c->dom && i < c->dom->loads.num; i++)
    rename_one(a, kept, c->dom->loads.at[i].buffer);
}

// Backwards: a node that was renamed twice ends with its first name.
static void restore_names(const names_kept *kept) {
  for (size_t i = kept->num; i-- > 0;)
    kept->at[i].node->name = kept->at[i].name;
}

// The text in `scratch`. What generators take on the way is given back: most kernels have the text of one
// before them, and deep networks have many.
static const char *text_of(const cg_program *p, ir_arena *scratch, const cg_kernel *c) {
  ir_arena_mark here = ir_arena_here(p->arena);
  ir_buf b = ir_buf_new(scratch);
  cg_generator_for(p->target, c->k->family)->emit(c, STAND_IN, &b);
  ir_arena_back(p->arena, here);
  return ir_buf_str(&b);
}

static const char *nameless_text(const cg_program *p, ir_arena *scratch, const cg_kernel *c) {
  names_kept kept = {0};
  rename_tensors(scratch, c, &kept);
  const char *text = text_of(p, scratch, c);
  restore_names(&kept);
  return text;
}

// --- names of functions --------------------------------------------------------------------
static const char *last_word(const char *name) {
  const char *word = name;
  for (const char *s = name; *s; s++)
    if (*s == '.' && isalpha((unsigned char)s[1]))
      word = s + 1;
  return word;
}

const char *cg_identifier(const cg_program *p, const char *family, const ir_kernel *k) {
  char *name = ir_format(p->arena, "%s%s_%s", p->prefix, family, last_word(k->name));
  for (char *s = name; *s; s++)
    if (!isalnum((unsigned char)*s))
      *s = '_';
  return name;
}

const char *cg_function_name(const cg_program *p, size_t func) {
  const ir_func *f = p->module->funcs.at[func];
  if (ir_is_run(f))
    return f->name;
  return ir_replace(p->arena, ir_format(p->arena, "other_%zu_%s", func, f->name), ".", "_");
}

static cg_distinct *new_distinct(cg_program *p, ir_arena *scratch, ir_map *names,
                                 const cg_kernel *c) {
  cg_distinct *d = IR_NEW(p->arena, cg_distinct);
  const char *base = cg_identifier(p, ir_family_names[c->k->family], c->k);
  if (p->own && c->one_chip)
    base = ir_format(p->arena, "%s_own", base);
  d->name = ir_map_new_name(names, p->arena, base, '_');
  d->text = ir_replace(p->arena, text_of(p, scratch, c), STAND_IN, d->name);
  cost x = cost_kernel(scratch, c->k);
  d->flops = x.flops;
  d->bytes = x.bytes_read + x.bytes_written;
  IR_PUSH(p->arena, p->distinct, d);
  return d;
}

// The same bits under every policy: a kernel that runs again calls the function that it called before.
static void check_clones(const cg_program *p, size_t index) {
  const ir_func *f = p->module->funcs.at[index];
  for (size_t i = 0; i < f->kernels.num; i++) {
    const ir_kernel *k = f->kernels.at[i];
    BUG_IF(k->clone_of && p->shared[index][k->id] != p->shared[index][k->clone_of->id],
           "kernel '%s' is another function than '%s', which it runs again", k->name,
           k->clone_of->name);
  }
}

// What is known while kernels are compared.
typedef struct sharer {
  cg_program *p;
  ir_map *by_text, *names; // nameless text -> cg_distinct; names that are taken
  ir_arena *scratch;       // of one kernel
} sharer;

static cg_distinct *distinct_of(sharer *s, const cg_kernel *c) {
  const char *text = nameless_text(s->p, s->scratch, c);
  cg_distinct *d = ir_map_get(s->by_text, text);
  if (!d) {
    d = new_distinct(s->p, s->scratch, s->names, c);
    ir_map_put(s->by_text, text, d);
  }
  ir_arena_clear(s->scratch);
  return d;
}

static cg_distinct *take(sharer *s, const cg_kernel *c) {
  cg_distinct *d = distinct_of(s, c);
  IR_PUSH(s->p->arena, d->uses, c);
  return d;
}

static void share_function(sharer *s, size_t index) {
  cg_program *p = s->p;
  size_t num = p->module->funcs.at[index]->kernels.num;
  p->shared[index] = IR_NEW_ARRAY(p->arena, cg_distinct *, num + 1);
  p->own_shared[index] = IR_NEW_ARRAY(p->arena, cg_distinct *, num + 1);
  for (size_t j = 0; j < num; j++) {
    const cg_kernel *c = p->kernels[index][j];
    if (ir_is_transfer(c->k))
      continue; // no function of the program
    cg_distinct *d = take(s, c);
    if (c->own)
      p->own_shared[index][j] = take(s, c->own);
    p->shared[index][j] = d;
  }
}

void cg_share(cg_program *p) {
  cg_program_schedule(p);
  ir_arena *maps = ir_arena_new(), *scratch = ir_arena_new();
  sharer s = {p, ir_map_new(maps), ir_map_new(maps), scratch};
  for (size_t i = 0; i < p->module->funcs.num; i++) {
    share_function(&s, i);
    check_clones(p, i);
  }
  ir_arena_free(scratch);
  ir_arena_free(maps);
}
