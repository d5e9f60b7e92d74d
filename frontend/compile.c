// compile.c: a whole file: imports, constants and -D, flags, blocks; then the model's functions.
#include "frontend/check.h"

#include <errno.h>
#include <string.h>

#include "text_arrays_graph.h"
#include "text_augment_graph.h"
#include "text_experts_graph.h"
#include "text_graphs_graph.h"
#include "text_images_graph.h"
#include "text_init_graph.h"
#include "text_losses_graph.h"
#include "text_nn_graph.h"
#include "text_optim_graph.h"
#include "text_recommend_graph.h"
#include "text_sequences_graph.h"
#include "text_transformers_graph.h"

static const fe_options no_options = {0};

// --- definitions ---------------------------------------------------------------------------------
static bool is_new(fe *c, const ast_name *name) {
  if (!fe_check_free(c, name))
    return false;
  if (!ir_map_get(c->lets, name->text) && !ir_map_get(c->flags, name->text))
    return ir_map_put(c->places, name->text, (void *)&name->loc), true;
  ir_diag *d = fe_error(c, name->loc, "E0206", "'%s' is already defined", name->text);
  fe_say_first(d, ir_map_get(c->places, name->text));
  return false;
}

static const char *find_define(const fe *c, const char *name, size_t *at) {
  size_t len = strlen(name);
  for (size_t i = c->options->num_defines; i-- > 0;) { // the last one counts
    const char *d = c->options->defines[i];
    if (strncmp(d, name, len) == 0 && d[len] == '=') {
      *at = i;
      return d + len + 1;
    }
  }
  return NULL;
}

// Reads the value of -D as an expression of the language, with the same errors.
static const ast_expr *parse_define(fe *c, const char *name, const char *text) {
  ir_source *src = IR_NEW(c->arena, ir_source);
  src->path = ir_format(c->arena, "-D %s", name);
  src->text = ir_format(c->arena, "let %s = %s", name, text);
  src->len = strlen(src->text);
  size_t before = diag_num_errors(c->diags);
  const ast_file *f = fe_parse(c->arena, src, c->diags);
  if (before != diag_num_errors(c->diags))
    return NULL;
  bool one =
      f->items.num == 1 && f->items.at[0]->kind == AST_LET && f->items.at[0]->bindings.num == 1;
  if (one)
    return f->items.at[0]->bindings.at[0].value;
  fe_error(c, (ir_loc){src, 1, 1, 1}, "E0217", "-D %s needs one value", name);
  return NULL;
}

// 2.0 for what is 2 in the file, as where a size is wanted (fe_want_int); and 1 for what is 0.5 there stays a number with
// a fraction: what a flag takes does not depend on -D.
static const fe_value *as_in_file(fe *c, const fe_value *d, const fe_value *v) {
  if (v->kind != FE_NUM || d->kind != FE_NUM || v->is_int == d->is_int)
    return d;
  return v->is_int ? fe_num(c, d->num) : fe_float(c, d->num);
}

static bool same_kind(const fe_value *a, const fe_value *b) {
  return a->kind == b->kind && (!a->is_int || b->is_int);
}

static const fe_value * override(fe *c, const ast_binding *b, const fe_value *v) {
  size_t at;
  const char *text = find_define(c, b->name.text, &at);
  if (!text)
    return v;
  ir_map_put(c->used_defines, b->name.text, c);
  if (v->kind == FE_STR && *text && *text != '"') // shells take quotes away
    return fe_str(c, text);
  const ast_expr *e = parse_define(c, b->name.text, text);
  const fe_value *d = e ? as_in_file(c, fe_eval(c, e), v) : &fe_bad;
  if (fe_is_bad(d) || fe_is_bad(v) || same_kind(v, d))
    return d;
  ir_diag *n = fe_error(c, e->loc, "E0217", "the value of -D %s is of another kind", b->name.text);
  diag_label(n, "this is %s", fe_describe(c, d));
  diag_note(n, b->name.loc, "in the file it is %s%s", fe_describe(c, v),
            v->is_int ? ", which is whole" : "");
  return &fe_bad;
}

static void define_let(fe *c, const ast_binding *b) {
  const fe_value *v = fe_eval(c, b->value);
  bool constant = v->kind == FE_NUM || v->kind == FE_BOOL || v->kind == FE_STR || fe_is_bad(v);
  if (!constant) {
    ir_diag *d =
        fe_error(c, b->value->loc, "E0207", "a constant must be a number, truth value or text");
    diag_label(d, "this is %s", fe_describe(c, v));
    v = &fe_bad;
  }
  if (is_new(c, &b->name))
    ir_map_put(c->lets, b->name.text,
               (void *)(uintptr_t)fe_split_value(c, b->name.text, override(c, b, v)));
}

static void define_lets(fe *c, const ast_item *item) {
  for (size_t i = 0; i < item->bindings.num; i++)
    define_let(c, &item->bindings.at[i]);
  if (c->lets == c->file_lets)
    return;
  ir_map *model = fe_use_file_lets(c);
  for (size_t i = 0; i < item->bindings.num; i++)
    define_let(c, &item->bindings.at[i]);
  c->lets = model;
}

// Whole numbers are i64[], others f32[].
static void define_flag(fe *c, const ast_binding *b) {
  const fe_value *v = fe_eval(c, b->value);
  double num;
  if (v->kind == FE_BOOL)
    v = fe_int(c, v->i);
  if (!fe_want_num(c, v, b->value->loc, "the value of a flag", &num) || !is_new(c, &b->name))
    return;
  ir_type type = ir_scalar(v->is_int ? IR_I64 : IR_F32);
  if (!fe_check_fits(c, b->value->loc, v, type.dtype) ||
      !fe_check_setting(c, b->value->loc, ir_format(c->arena, "flag '%s'", b->name.text), v,
                        type.dtype))
    return;
  ir_state *s = ir_state_new(c->module, b->name.text, type, IR_ROLE_FLAG,
                             b->name.loc.file == c->main ? b->name.loc : (ir_loc){0});
  s->value = num;
  ir_map_put(c->flags, b->name.text, s);
}

static void define_flags(fe *c, const ast_item *item) {
  ir_map *model = fe_use_file_lets(c);
  for (size_t i = 0; i < item->bindings.num; i++)
    define_flag(c, &item->bindings.at[i]);
  c->lets = model;
}

static void define_fn(fe *c, const ast_fn *fn, bool is_std) {
  ir_map *own[] = {[AST_BLOCK] = is_std ? c->std_fns : c->fns,
                   [AST_OPTIMIZER] = is_std ? c->std_optimizers : c->optimizers,
                   [AST_SCHEDULE] = is_std ? c->std_schedules : c->schedules,
                   [AST_INITIALIZER] = is_std ? c->std_initializers : c->initializers};
  if (fn->kind == AST_MODEL) {
    if (c->model) {
      ir_diag *d = fe_error(c, fn->name.loc, "E0216", "a file has one model");
      fe_say_first(d, &c->model->name.loc);
    }
    c->model = fn;
    return;
  }
  const ast_fn *other = ir_map_get(own[fn->kind], fn->name.text);
  if (other) {
    ir_diag *d = fe_error(c, fn->name.loc, "E0206", "'%s' is already defined", fn->name.text);
    fe_say_first(d, &other->name.loc);
  }
  ir_map_put(own[fn->kind], fn->name.text, (void *)(uintptr_t)fn);
}

static void check_params(fe *c, const ast_fn *fn) {
  ir_map *seen = ir_map_new(c->arena);
  for (size_t i = 0; i < fn->params.num; i++) {
    const ast_name *n = &fn->params.at[i].name;
    if (ir_map_get(seen, n->text))
      fe_say_first(fe_error(c, n->loc, "E0206", "there is already a parameter '%s'", n->text),
                   ir_map_get(seen, n->text));
    ir_map_put(seen, n->text, (void *)&n->loc);
    const ast_type *t = fn->params.at[i].type;
    int dots = 0;
    for (size_t k = 0; t && k < t->dims.num; k++)
      dots += t->dims.at[k]->kind == AST_ELLIPSIS;
    if (dots > 1)
      fe_error(c, t->loc, "E0203", "only one '...' in a type");
  }
}

// --- files ---------------------------------------------------------------------------------------
static void take_file(fe *c, const ast_file *f, bool is_std);

static const char *beside(fe *c, const char *path, const char *file) {
  const char *slash = strrchr(path, '/');
  if (!slash || file[0] == '/')
    return file;
  return ir_format(c->arena, "%.*s/%s", (int)(slash - path), path, file);
}

static char *read_import(fe *c, const ir_source *from, const char *file, const char **path,
                         size_t *len) {
  *path = beside(c, from->path, file);
  char *text = ir_read_text(c->arena, *path, len);
  for (size_t i = 0; !text && i < c->options->num_include_dirs && file[0] != '/'; i++) {
    *path = ir_format(c->arena, "%s/%s", c->options->include_dirs[i], file);
    text = ir_read_text(c->arena, *path, len);
  }
  return text;
}

static bool contains(const char *const *list, size_t num, const char *path) {
  for (size_t i = 0; i < num; i++)
    if (strcmp(list[i], path) == 0 || ir_same_file(list[i], path))
      return true;
  return false;
}

static void take_import(fe *c, const ast_file *f, const ast_item *item) {
  const char *path;
  size_t len;
  char *text = read_import(c, f->src, item->path, &path, &len);
  if (!text) {
    ir_diag *d =
        fe_error(c, item->path_loc, "E0006", "cannot read '%s': %s", item->path, strerror(errno));
    diag_help(d, "it is looked for beside this file, then in the directories of -I");
    return;
  }
  if (contains(c->importing.at, c->importing.num, path)) {
    fe_error(c, item->path_loc, "E0007", "'%s' imports itself, directly or through others",
             item->path);
    return;
  }
  if (contains(c->imported.at, c->imported.num, path))
    return;
  ir_source *src = IR_NEW(c->arena, ir_source);
  *src = (ir_source){path, text, len};
  IR_PUSH(c->arena, c->imported, path);
  IR_PUSH(c->arena, c->importing, path);
  take_file(c, fe_parse(c->arena, src, c->diags), false);
  c->importing.num--;
}

static void take_item(fe *c, const ast_file *f, const ast_item *item, bool is_std) {
  switch (item->kind) {
  case AST_LET:
    define_lets(c, item);
    return;
  case AST_FLAG:
    define_flags(c, item);
    return;
  case AST_IMPORT:
    take_import(c, f, item);
    return;
  case AST_FN:
    check_params(c, item->fn);
    define_fn(c, item->fn, is_std);
    return;
  case AST_DATA:
  case AST_OPTIM:
  case AST_TRAIN:
    IR_PUSH(c->arena, c->sections, item);
    return;
  }
}

static void take_file(fe *c, const ast_file *f, bool is_std) {
  const ast_file *importing = c->file;
  c->file = f;
  for (size_t i = 0; i < f->items.num; i++)
    take_item(c, f, f->items.at[i], is_std);
  c->file = importing;
}

static void take_std(fe *c, const char *path, const char *text, size_t len) {
  ir_source *src = IR_NEW(c->arena, ir_source);
  *src = (ir_source){path, text, len};
  take_file(c, fe_parse(c->arena, src, c->diags), true);
}

static void check_defines(fe *c) {
  for (size_t i = 0; i < c->options->num_defines; i++) {
    const char *d = c->options->defines[i], *eq = strchr(d, '=');
    const char *name = eq ? ir_strndup(c->arena, d, (size_t)(eq - d)) : d;
    if (eq && ir_map_get(c->used_defines, name))
      continue;
    ir_diag *n;
    if (!eq)
      n = fe_error(c, (ir_loc){0}, "E0217", "-D %s has no value: write -D NAME=value", d);
    else
      n = diag_error(c->diags, (ir_loc){0}, "E0217", "-D %s: the file has no constant '%s'", d,
                     name);
    if (eq && ir_map_get(c->flags, name))
      diag_help(n, "'%s' is a flag: ./trainer --%s=...", name, name);
    else if (!ir_map_get(c->lets, name))
      fe_suggest(c, n, name, (const ir_map *const[]){c->lets}, 1, NULL, 0);
  }
}

// --- the whole -----------------------------------------------------------------------------------
static void make_maps(fe *c) {
  ir_map **maps[] = {&c->lets,         &c->flags,
                     &c->fns,          &c->std_fns,
                     &c->optimizers,   &c->std_optimizers,
                     &c->schedules,    &c->std_schedules,
                     &c->initializers, &c->std_initializers,
                     &c->reported,     &c->used_defines,
                     &c->places,       &c->sites,
                     &c->trained};
  for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
    *maps[i] = ir_map_new(c->arena);
  c->file_lets = c->options->split.batch ? ir_map_new(c->arena) : c->lets;
}

static void add_counters(fe *c) {
  fe_init zero = {.kind = FE_INIT_CONSTANT};
  fe_declare_state(c, "step", ir_scalar(IR_I64), IR_ROLE_COUNTER, zero, (ir_loc){0});
  ir_state_new(c->module, "seed", ir_scalar(IR_I64), IR_ROLE_SEED, (ir_loc){0});
}

static void add_micro(fe *c) {
  fe_init zero = {.kind = FE_INIT_CONSTANT};
  if (c->accumulate > 1)
    fe_declare_state(c, "micro", ir_scalar(IR_I64), IR_ROLE_COUNTER, zero, (ir_loc){0});
}

static void lower(fe *c) {
  ir_map *model = fe_use_file_lets(c);
  fe_lower_data(c);
  fe_lower_train(c);
  c->lets = model;
  fe_split_steps(c);
  add_micro(c);
  if (!c->model)
    fe_error(c, (ir_loc){c->main, 1, 1, 1}, "E0216", "the file has no model");
  else
    fe_build_functions(c);
}

// --- flags that nothing reads --------------------------------------------------------------------
static bool is_in(const ir_setting *list, size_t num, const ir_state *flag) {
  for (size_t i = 0; i < num; i++)
    if (list[i].kind == IR_SET_FLAG && strcmp(list[i].str, flag->name) == 0)
      return true;
  return false;
}

static bool is_set_by(const ir_module *m, const ir_state *flag) {
  bool found = is_in(m->config.at, m->config.num, flag);
  for (size_t i = 0; i < m->data.num; i++)
    found = found || is_in(m->data.at[i]->settings.at, m->data.at[i]->settings.num, flag);
  return found;
}

static bool is_read(const ir_module *m, const ir_state *flag) {
  for (size_t i = 0; i < m->funcs.num; i++)
    for (size_t j = 0; j < m->funcs.at[i]->nodes.num; j++)
      if (m->funcs.at[i]->nodes.at[j]->op == IR_READ && m->funcs.at[i]->nodes.at[j]->state == flag)
        return true;
  return false;
}

// Those of imported files may be for other models. What stands where constants have it left out is for other values of them.
static void warn_of_flags(fe *c, const ast_file *file) {
  for (size_t i = 0; i < c->module->states.num; i++) {
    const ir_state *s = c->module->states.at[i];
    if (s->role != IR_ROLE_FLAG || !s->loc.file || is_set_by(c->module, s) ||
        is_read(c->module, s) || fe_mentions(file, s->name))
      continue;
    ir_diag *d = fe_warn(c, s->loc, "W0228", "flag '%s' is used nowhere", s->name);
    diag_help(d, "the trainer takes --%s=..., and nothing changes; in a setting: `%s = %s`",
              s->name, s->name, s->name);
  }
}

// --- inputs that nothing reads -------------------------------------------------------------------
static bool has_in(const ir_node *n, const char *input) {
  for (int i = 0; i < n->num_in; i++)
    if (n->in[i]->op == IR_INPUT && strcmp(n->in[i]->name, input) == 0)
      return true;
  return false;
}

static bool is_input_read(const ir_func *f, const char *input) {
  for (size_t i = 0; i < f->nodes.num; i++)
    if (has_in(f->nodes.at[i], input))
      return true;
  for (size_t i = 0; i < f->results.num; i++) {
    const ir_node *n = f->results.at[i].node;
    if (n->op == IR_INPUT && strcmp(n->name, input) == 0)
      return true;
  }
  return false;
}

static void warn_of_inputs(fe *c) {
  for (size_t i = 0; i < c->model->params.num; i++) {
    const ast_name *name = &c->model->params.at[i].name;
    bool read = false;
    for (size_t k = 0; k < c->module->funcs.num && !read; k++)
      read = is_input_read(c->module->funcs.at[k], name->text);
    if (read)
      continue;
    ir_diag *d =
        fe_warn(c, name->loc, "W0231", "the values of input '%s' are used nowhere", name->text);
    diag_help(d, "without it the data needs no file or column for it");
  }
}

ir_module *fe_compile(ir_arena *a, const ir_source *src, const fe_options *o, ir_diags *d) {
  fe c = {.arena = a,
          .diags = d,
          .silent = diag_new(a),
          .options = o ? o : &no_options,
          .main = src,
          .accumulate = 1};
  size_t before = diag_num_errors(d);
  make_maps(&c);
  take_std(&c, "std/arrays.graph", text_arrays_graph, sizeof text_arrays_graph - 1);
  take_std(&c, "std/nn.graph", text_nn_graph, sizeof text_nn_graph - 1);
  take_std(&c, "std/losses.graph", text_losses_graph, sizeof text_losses_graph - 1);
  take_std(&c, "std/images.graph", text_images_graph, sizeof text_images_graph - 1);
  take_std(&c, "std/sequences.graph", text_sequences_graph, sizeof text_sequences_graph - 1);
  take_std(&c, "std/transformers.graph", text_transformers_graph,
           sizeof text_transformers_graph - 1);
  take_std(&c, "std/graphs.graph", text_graphs_graph, sizeof text_graphs_graph - 1);
  take_std(&c, "std/experts.graph", text_experts_graph, sizeof text_experts_graph - 1);
  take_std(&c, "std/init.graph", text_init_graph, sizeof text_init_graph - 1);
  take_std(&c, "std/augment.graph", text_augment_graph, sizeof text_augment_graph - 1);
  take_std(&c, "std/recommend.graph", text_recommend_graph, sizeof text_recommend_graph - 1);
  take_std(&c, "std/optim.graph", text_optim_graph, sizeof text_optim_graph - 1);
  BUG_IF(diag_num_errors(d) != before, "the standard files have errors");
  ast_file *file = fe_parse(a, src, d);
  c.module = ir_module_new(a, "model");
  add_counters(&c);
  IR_PUSH(a, c.importing, src->path);
  take_file(&c, file, false);
  // After errors here, names would be missing everywhere: only those are reported.
  bool clean = diag_num_errors(d) == before;
  check_defines(&c);
  if (c.model)
    c.module->name = ir_strdup(a, c.model->name.text);
  if (clean)
    lower(&c);
  if (clean && diag_num_errors(d) == before) {
    warn_of_flags(&c, file);
    warn_of_inputs(&c);
    fe_warn_of_freeze(&c);
  }
  if (c.options->vary && diag_num_errors(d) == before)
    fe_find_varied(&c, c.options->vary);
  for (size_t i = 0; c.options->files && i < c.imported.num; i++)
    IR_PUSH(a, *c.options->files, c.imported.at[i]);
  return diag_num_errors(d) == before ? c.module : NULL;
}
