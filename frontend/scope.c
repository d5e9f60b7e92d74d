// scope.c: names: frames of block calls, instance paths, lookup, and errors with their chain of
// uses and "did you mean".
#include "frontend/check.h"

#include <math.h>
#include <string.h>

enum { MAX_CHAIN = 6 };

// --- errors --------------------------------------------------------------------------------------
static bool first_time(fe *c, const char *key) {
  if (ir_map_get(c->reported, key))
    return false;
  ir_map_put(c->reported, key, c->reported);
  return true;
}

static bool first_report(fe *c, ir_loc at, const char *code) {
  return first_time(
      c, ir_format(c->arena, "%p:%u:%u:%s", (const void *)at.file, at.line, at.col, code));
}

static const char *fn_word(const ast_fn *fn) {
  static const char *const words[] = {"block", "model", "optimizer", "schedule", "initializer"};
  return words[fn->kind];
}

// An error in a standard block is shown where the user's file uses it: that is what can be changed.
static const fe_frame *user_place(const fe *c, ir_loc *at) {
  const fe_frame *f = c->frame;
  while (f && f->caller && f->is_std && at->file == f->fn->name.loc.file) {
    *at = f->used;
    f = f->caller;
  }
  return f;
}

static void add_chain(const fe_frame *f, ir_diag *d) {
  for (int shown = 0; f && f->caller && shown < MAX_CHAIN; f = f->caller, shown++)
    diag_note(d, f->used, "in %s '%s', used here", fn_word(f->fn), f->fn->name.text);
}

// `make`: diag_error or diag_warning. `about`: a node, or NULL.
static ir_diag *report(fe *c, ir_diag *(*make)(ir_diags *, ir_loc, const char *, const char *, ...),
                       const ir_node *about, ir_loc at, const char *code, const char *fmt,
                       va_list ap) {
  ir_buf b = ir_buf_new(c->arena);
  ir_buf_vprintf(&b, fmt, ap);
  ir_loc shown = at;
  const fe_frame *f = user_place(c, &shown);
  bool fresh = first_report(c, shown, code);
  if (about)
    fresh =
        first_time(c, ir_format(c->arena, "%p %s", (const void *)about, ir_buf_str(&b))) && fresh;
  ir_diag *d = make(fresh ? c->diags : c->silent, shown, code, "%s", ir_buf_str(&b));
  if (!fresh)
    return d;
  if (f != c->frame)
    diag_note(d, at, "in the standard %s '%s'", fn_word(c->frame->fn), c->frame->fn->name.text);
  add_chain(f, d);
  return d;
}

ir_diag *fe_error(fe *c, ir_loc at, const char *code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  ir_diag *d = report(c, diag_error, NULL, at, code, fmt, ap);
  va_end(ap);
  return d;
}

void fe_say_first(ir_diag *d, const ir_loc *first) {
  if (first && first->file)
    diag_note(d, *first, "the first one is here");
}

ir_diag *fe_error_about(fe *c, const ir_node *n, ir_loc at, const char *code, const char *fmt,
                        ...) {
  va_list ap;
  va_start(ap, fmt);
  ir_diag *d = report(c, diag_error, n, at, code, fmt, ap);
  va_end(ap);
  return d;
}

ir_diag *fe_warn(fe *c, ir_loc at, const char *code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  ir_diag *d = report(c, diag_warning, NULL, at, code, fmt, ap);
  va_end(ap);
  return d;
}

// Help looks at all names, or at a whole body: nobody reads on that far.
static bool is_helped(const fe *c) {
  enum { MOST_HELPED = 100 };
  return diag_num_errors(c->diags) <= MOST_HELPED;
}

void fe_suggest(fe *c, ir_diag *d, const char *word, const ir_map *const *maps, size_t num_maps,
                const char *const *words, size_t num_words) {
  if (!is_helped(c))
    return;
  IR_VEC(const char *) all = {0};
  for (size_t m = 0; m < num_maps; m++)
    for (size_t i = 0; maps[m] && i < ir_map_count(maps[m]); i++)
      IR_PUSH(c->arena, all, ir_map_key(maps[m], i));
  for (size_t i = 0; i < num_words; i++)
    IR_PUSH(c->arena, all, words[i]);
  const char *near = diag_nearest(word, all.at, all.num);
  if (near)
    diag_help(d, "did you mean '%s'?", near);
}

bool fe_tick(fe *c, ir_loc at) {
  if (++c->statements <= FE_MAX_STATEMENTS)
    return true;
  if (c->statements == FE_MAX_STATEMENTS + 1)
    fe_error(c, at, "E0210", "the model expands to more than %d statements", FE_MAX_STATEMENTS);
  return false;
}

// --- frames --------------------------------------------------------------------------------------
fe_frame *fe_enter(fe *c, const ast_fn *fn, ir_loc used, fe_naming *names, bool is_std) {
  fe_frame *f = IR_NEW(c->arena, fe_frame);
  *f = (fe_frame){.caller = c->frame,
                  .fn = fn,
                  .used = used,
                  .depth = c->frame ? c->frame->depth + 1 : 0,
                  .is_std = is_std,
                  .names = names,
                  .site = names->prefix,
                  .again = c->frame ? c->frame->again : NULL,
                  .copied = c->frame && c->frame->copied,
                  .vars = ir_map_new(c->arena),
                  .dims = ir_map_new(c->arena)};
  c->frame = f;
  if (c->pass)
    c->pass->b.scope = names->prefix;
  return f;
}

void fe_leave(fe *c) {
  c->frame = c->frame->caller;
  if (c->pass)
    c->pass->b.scope = c->frame ? c->frame->names->prefix : NULL;
}

// The place in the main file that a node stands for: that of the innermost use there.
ir_loc fe_node_loc(const fe *c, ir_loc at) {
  for (const fe_frame *f = c->frame; at.file != c->main && f && f->caller; f = f->caller)
    at = f->used;
  return at.file == c->main ? at : (ir_loc){0};
}

// --- instance names ------------------------------------------------------------------------------
fe_naming *fe_naming_new(fe *c, fe_naming *outer, const char *prefix, const char *suffix) {
  fe_naming *n = IR_NEW(c->arena, fe_naming);
  *n = (fe_naming){outer, prefix, suffix, ir_map_new(c->arena), ir_map_new(c->arena), NULL};
  return n;
}

static uintptr_t uses_of(const fe_naming *n, const char *base) {
  uintptr_t uses = 0;
  for (; n; n = n->outer)
    uses += (uintptr_t)ir_map_get(n->counts, base);
  return uses;
}

const char *fe_below(const char *path, const char *name) {
  size_t len = strlen(name);
  if (strncmp(path, name, len) != 0 || (path[len] != '\0' && path[len] != '.'))
    return NULL;
  return path[len] ? path + len + 1 : path + len;
}

bool fe_is_used(const fe *c, const char *base) {
  return uses_of(c->frame->names, base) > 0;
}

const char *fe_path(fe *c, const char *name) {
  const fe_naming *n = c->frame->names;
  return n->prefix ? ir_format(c->arena, "%s.%s%s", n->prefix, name, n->suffix)
                   : ir_format(c->arena, "%s%s", name, n->suffix);
}

static fe_use *find_use(const fe_naming *n, const char *name) {
  fe_use *u = NULL;
  for (; n && !u; n = n->outer)
    u = ir_map_get(n->uses, name);
  return u;
}

// By another use, beside which this one stands. In a use with parameters that are there, what stands around has them, too:
// the iteration of a shared loop before this one.
static const fe_use *is_taken(const fe *c, const char *name) {
  const fe_naming *n = c->frame->names;
  return c->frame->again ? ir_map_get(n->uses, name) : find_use(n, name);
}

// "linear", "linear_2", ...: the next name that is free here.
static const char *next_name(fe *c, const char *base) {
  fe_naming *n = c->frame->names;
  uintptr_t uses = uses_of(n, base) + 1;
  const char *name = uses == 1 ? base : ir_format(c->arena, "%s_%zu", base, (size_t)uses);
  ir_map_put(n->counts, base, (void *)((uintptr_t)ir_map_get(n->counts, base) + 1));
  return uses > 1 && is_taken(c, name) ? next_name(c, base) : name;
}

// Where a call stands: in its block or iteration, wherever the parameters of that lie.
static const char *site_of(fe *c, const ast_expr *call) {
  const char *in = c->frame->site;
  return ir_format(c->arena, "%s%s %p", in ? in : "", c->frame->names->suffix, (const void *)call);
}

// An earlier call that was not there before has counted up to the name of this one.
static void report_taken(fe *c, const ast_expr *call, const char *name, const fe_use *by) {
  ir_diag *d =
      fe_error(c, call->loc, "E0206", "'%s' is this use elsewhere, and an earlier one here", name);
  diag_note(d, by->call->loc, "the earlier one is not used there");
  diag_help(d, "give one of them a name of its own: %s(...) as name", call->text);
}

// A call has the name that it had first: in evaluation, in another use of its block and in later iterations of a shared
// loop, too, where others before it may be left out. Else it would have the parameters of one of those.
static const char *name_of(fe *c, const ast_expr *call, const char *base) {
  const char *site = site_of(c, call), *known = ir_map_get(c->sites, site);
  const fe_use *by = known ? is_taken(c, known) : NULL;
  if (by && by->call && by->call != call)
    report_taken(c, call, known, by);
  if (!known || by) {
    const char *name = next_name(c, base);
    if (!known)
      ir_map_put(c->sites, site, (void *)(uintptr_t)name);
    return name;
  }
  ir_map *counts = c->frame->names->counts;
  ir_map_put(counts, base, (void *)((uintptr_t)ir_map_get(counts, base) + 1));
  return known;
}

const char *fe_instance(fe *c, const char *base) {
  return fe_path(c, next_name(c, base));
}

fe_use *fe_use_new(fe *c, const ast_fn *fn, const ast_expr *call, const char *base) {
  const char *name = call ? name_of(c, call, base) : next_name(c, base), *in = c->frame->site;
  fe_use *u = IR_NEW(c->arena, fe_use);
  *u = (fe_use){.fn = fn, .call = call, .path = fe_path(c, name)};
  u->site =
      ir_format(c->arena, "%s%s%s%s", in ? in : "", in ? "." : "", name, c->frame->names->suffix);
  ir_map_put(c->frame->names->uses, name, u);
  return u;
}

fe_use *fe_find_use(const fe *c, const char *name) {
  return find_use(c->frame->names, name);
}

// --- lookup --------------------------------------------------------------------------------------
void fe_set(fe *c, const char *name, const fe_value *v) {
  ir_map_put(c->frame->vars, name, (void *)(uintptr_t)v);
}

bool fe_is_reserved(const char *name) {
  static const char *const reserved[] = {"seed", "step", "micro", "training", "pi", "none"};
  for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
    if (strcmp(reserved[i], name) == 0)
      return true;
  return false;
}

bool fe_check_free(fe *c, const ast_name *name) {
  if (!fe_is_reserved(name->text))
    return true;
  fe_error(c, name->loc, "E0206", "'%s' has a meaning of its own and cannot be redefined",
           name->text);
  return false;
}

const fe_value *fe_read(fe *c, ir_state *s) {
  fe_pass *p = c->pass;
  while (p->reads.num <= s->id)
    IR_PUSH(c->arena, p->reads, NULL);
  if (!p->reads.at[s->id])
    p->reads.at[s->id] = ir_read(&p->b, s);
  return fe_tensor(c, p->reads.at[s->id]);
}

const fe_value *fe_present(fe *c, ir_state *s) {
  size_t at = (size_t)(uintptr_t)ir_map_get(c->pass->written, s->name);
  return at ? fe_tensor(c, c->pass->pending.at[at - 1].node) : fe_read(c, s);
}

static const fe_value *read_flag(fe *c, ir_state *s, ir_loc at) {
  if (!c->pass)
    return FE_FAIL(c, at, "E0212", "flag '%s' cannot be used here: it is set when the trainer runs",
                   s->name);
  c->pass->b.loc = fe_node_loc(c, at);
  fe_value *v = IR_NEW(c->arena, fe_value);
  *v = *fe_read(c, s);
  v->flag = s->name;
  return v;
}

static const char *const constants[] = {"training", "pi", "none", "zeros", "ones", "xavier", "he"};

static const fe_value *find_constant(fe *c, const char *name) {
  if (strcmp(name, "training") == 0)
    return c->pass ? fe_bool(c, c->pass->training) : NULL;
  if (strcmp(name, "step") == 0 && c->pass && c->pass->optimizing)
    return fe_tensor(c, c->pass->updates ? c->pass->updates : fe_read_named(c, "step"));
  if (strcmp(name, "pi") == 0)
    return fe_float(c, M_PI);
  if (strcmp(name, "none") == 0)
    return &fe_none;
  if (strcmp(name, "zeros") == 0)
    return fe_make_init(c, FE_INIT_CONSTANT, 0, 0);
  if (strcmp(name, "ones") == 0)
    return fe_make_init(c, FE_INIT_CONSTANT, 1, 0);
  if (strcmp(name, "xavier") == 0)
    return fe_make_init(c, FE_INIT_XAVIER, 0, 0);
  if (strcmp(name, "he") == 0)
    return fe_make_init(c, FE_INIT_HE, 0, 0);
  return NULL;
}

// In a setting that is one number for all parameters, what is known of each of them only (fe_enter_optim).
static bool is_of_a_parameter(const fe *c, const char *name) {
  return c->pass && c->pass->optimizing && c->frame && c->frame->fn == c->model &&
         (!strcmp(name, "rank") || !strcmp(name, "name"));
}

// Where a body gives `name` a value below `at`; NULL: nowhere.
static const ast_name *find_below(const ast_body *body, const char *name, ir_loc at) {
  for (size_t i = 0; i < body->list.num; i++) {
    const ast_stmt *s = body->list.at[i];
    for (size_t j = 0; j < s->names.num; j++)
      if (!strcmp(s->names.at[j].text, name) && s->names.at[j].loc.file == at.file &&
          s->names.at[j].loc.line > at.line)
        return &s->names.at[j];
    const ast_name *inner = find_below(&s->body, name, at);
    inner = inner ? inner : find_below(&s->other, name, at);
    if (inner)
      return inner;
  }
  return NULL;
}

static bool is_after(ir_loc a, ir_loc at) {
  return a.file == at.file && (a.line > at.line || (a.line == at.line && a.col > at.col));
}

// Where the file being taken gives `name` a value below `at`; NULL: nowhere.
static const ast_name *find_constant_below(const fe *c, const char *name, ir_loc at) {
  for (size_t i = 0; c->file && i < c->file->items.num; i++) {
    const ast_item *item = c->file->items.at[i];
    for (size_t k = 0; k < item->bindings.num; k++) {
      const ast_name *n = &item->bindings.at[k].name;
      if (!strcmp(n->text, name) && is_after(n->loc, at))
        return n;
    }
  }
  return NULL;
}

static const fe_value *unknown_name(fe *c, const char *name, ir_loc at) {
  bool is_std;
  if (is_of_a_parameter(c, name)) {
    ir_diag *d = fe_error(c, at, "E0201",
                          "there is no '%s' here: this is one number for all parameters", name);
    diag_help(d, "arguments of the optimiser have it, but for an `lr` with a schedule");
    return &fe_bad;
  }
  if (fe_find_block(c, name, &is_std) || fe_is_builtin(name)) {
    ir_diag *d = fe_error(c, at, "E0202", "'%s' is a function, not a value", name);
    diag_help(d, "call it: %s(...)", name);
    return &fe_bad;
  }
  ir_diag *d = fe_error(c, at, "E0201", "unknown name '%s'", name);
  if (!is_helped(c))
    return &fe_bad;
  const ast_name *below =
      c->frame ? find_below(&c->frame->fn->body, name, at) : find_constant_below(c, name, at);
  if (below) {
    diag_note(d, below->loc, "it has a value from here on: %s",
              c->frame ? "statements run in their order" : "a file is read from its top");
    return &fe_bad;
  }
  const char *here = fe_word_here(name);
  if (here) {
    diag_help(d, "here it is written %s", here);
    return &fe_bad;
  }
  const ir_map *maps[] = {c->frame ? c->frame->vars : NULL, c->lets, c->flags, c->initializers,
                          c->std_initializers};
  fe_suggest(c, d, name, maps, 5, constants, sizeof constants / sizeof constants[0]);
  return &fe_bad;
}

const fe_value *fe_lookup(fe *c, const char *name, ir_loc at) {
  const fe_value *v = fe_member(c, name, at);
  if (!v && c->frame)
    v = ir_map_get(c->frame->vars, name);
  bool sees_file = !c->frame || !c->frame->is_std;
  if (!v && sees_file)
    v = ir_map_get(c->lets, name);
  if (v)
    return v;
  ir_state *flag = sees_file ? ir_map_get(c->flags, name) : NULL;
  if (flag)
    return read_flag(c, flag, at);
  v = find_constant(c, name);
  bool is_std;
  if (!v && fe_find_initializer(c, name, &is_std)) // without arguments
    return fe_call_initializer(
        c, &(ast_expr){.kind = AST_CALL, .text = name, .loc = at, .op_loc = at});
  return v ? v : unknown_name(c, name, at);
}

// What the standard layers use is not what a file declares under the same name.
static const ast_fn *find_fn(const fe *c, const ir_map *of_file, const ir_map *std,
                             const char *name, bool *is_std) {
  bool sees_file = !c->frame || !c->frame->is_std;
  const ast_fn *fn = sees_file ? ir_map_get(of_file, name) : NULL;
  *is_std = !fn;
  return fn ? fn : ir_map_get(std, name);
}

const ast_fn *fe_find_block(fe *c, const char *name, bool *is_std) {
  return find_fn(c, c->fns, c->std_fns, name, is_std);
}

const ast_fn *fe_find_initializer(fe *c, const char *name, bool *is_std) {
  return find_fn(c, c->initializers, c->std_initializers, name, is_std);
}
