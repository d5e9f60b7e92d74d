// copies.c: states like all parameters and states of a block's use: networks that follow another one.
//
//   h = encoder(x) as online
//   state target: like online = online         # states target.linear.w, ...: they begin as online.linear.w, ...
//   goal = encoder(y) with target              # no parameters, no gradient
//   target <- 0.99 * target + 0.01 * online    # for each of them
//
// Two designs were weighed. A statement for it (`target follows online by 0.99`) is one formula, where networks that
// learn by themselves, averages for evaluation and agents have three. So a state may be like a use, as an optimiser's
// is like a parameter, and what `<-` says of a tensor it says of each: where uses of the same block stand on the right,
// it is their tensor of the same name.
#include "frontend/check.h"

#include <string.h>

// What follows "online." in "online.linear.w", which this function of the module has declared; NULL: it is none of it,
// or a moment of the optimiser.
static const char *member_of(const fe *c, const fe_use *u, const ir_state *s) {
  const char *rest = fe_below(s->name, u->path);
  bool own = rest && s->role != IR_ROLE_MOMENT && ir_map_get(c->pass->declared, s->name);
  return own ? rest : NULL;
}

static const char *path_of(const fe *c, const fe_use *u, const char *member) {
  return ir_format(c->arena, "%s.%s", u->path, member);
}

// --- declaring -----------------------------------------------------------------------------------
bool fe_is_copy(const fe *c, const ast_stmt *s) {
  return s->type->like && fe_find_use(c, s->type->like);
}

static bool is_new_name(fe *c, const ast_name *name) {
  if (!fe_is_used(c, name->text))
    return true;
  fe_error(c, name->loc, "E0206", "there is already a use of a block named '%s'", name->text);
  return false;
}

// How the states of a copy begin: as those of `as`, or by `init`.
typedef struct beginning {
  const fe_use *as;
  fe_init init;
  const fe_value *number; // of a constant one
} beginning;

static bool want_beginning(fe *c, const ast_stmt *s, const fe_use *of, beginning *b) {
  *b = (beginning){.as = s->value->kind == AST_NAME ? fe_find_use(c, s->value->text) : NULL};
  if (b->as && b->as->fn == of->fn)
    return true;
  b->as = NULL;
  return fe_want_init(c, s, &b->init, &b->number);
}

// The state that is `member` of b->as; NULL when there is none.
static const ir_state *find_first(fe *c, const ast_stmt *s, const beginning *b,
                                  const char *member) {
  const char *path = path_of(c, b->as, member);
  if (ir_map_get(c->pass->declared, path))
    return ir_find_state(c->module, path);
  fe_error(c, s->value->loc, "E0222", "'%s' has no '%s'", s->value->text, member);
  return NULL;
}

// The state `like` once more, for the use `to`.
static bool copy_state(fe *c, const ast_stmt *s, const fe_use *to, const ir_state *like,
                       const char *member, const beginning *b) {
  const ast_name *name = &s->names.at[0];
  const char *path = path_of(c, to, member);
  const ir_state *as = b->as ? find_first(c, s, b, member) : NULL;
  if (b->as ? !as : !fe_check_init(c, s, &like->type, &b->init, b->number))
    return false;
  if (!fe_declare_once(c, name, path))
    return false;
  ir_state *state = fe_declare_state(c, path, like->type, IR_ROLE_BUFFER, b->init, name->loc);
  if (state && as)
    state->as = as->as ? as->as : as;
  return state;
}

void fe_declare_copy(fe *c, const ast_stmt *s) {
  const ast_name *name = &s->names.at[0];
  const fe_use *of = fe_find_use(c, s->type->like);
  beginning b;
  if (!is_new_name(c, name) || !want_beginning(c, s, of, &b)) {
    fe_set(c, name->text, &fe_bad); // what is stored to it was not looked at
    return;
  }
  fe_use *to = fe_use_new(c, of->fn, NULL, name->text);
  to->site = of->site;
  to->copy = true;
  size_t found = 0, num = c->module->states.num;
  for (size_t i = 0; i < num; i++) {
    const ir_state *like = c->module->states.at[i];
    const char *member = member_of(c, of, like);
    if (!member)
      continue;
    found++;
    if (!copy_state(c, s, to, like, member, &b))
      return; // one error says it for all of them
  }
  if (!found)
    fe_error(c, s->type->loc, "E0222", "'%s' has no parameters or states", s->type->like);
}

// --- storing -------------------------------------------------------------------------------------
const fe_value *fe_member(fe *c, const char *name, ir_loc at) {
  if (!c->member.name || c->member.frame != c->frame)
    return NULL;
  const fe_use *u = fe_find_use(c, name);
  if (!u || u->fn != c->member.fn)
    return NULL;
  const char *path = path_of(c, u, c->member.name);
  if (!ir_map_get(c->pass->declared, path))
    return FE_FAIL(c, at, "E0222", "'%s' has no '%s'", name, c->member.name);
  return fe_present(c, ir_find_state(c->module, path));
}

// Evaluation and prediction are those of the network as a step has left it.
static void store_member(fe *c, const ast_stmt *s, ir_state *state) {
  fe_value to = *fe_present(c, state);
  to.state = state;
  const fe_value *v = fe_eval(c, s->value);
  if (c->pass->writes)
    fe_store_value(c, s, &to, v);
}

bool fe_store_copy(fe *c, const ast_stmt *s) {
  const fe_use *u = fe_find_use(c, s->names.at[0].text);
  if (!u || !u->copy)
    return false;
  for (size_t i = 0; i < c->module->states.num; i++) {
    ir_state *state = c->module->states.at[i];
    c->member.name = member_of(c, u, state);
    c->member.fn = u->fn;
    c->member.frame = c->frame;
    if (c->member.name)
      store_member(c, s, state);
  }
  c->member.name = NULL;
  return true;
}
