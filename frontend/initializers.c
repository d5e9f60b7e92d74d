// initializers.c: initialisers written in the language.
//
//   initializer twos(dims, v=2) { return constant(v, dims) }
//   param w: f[n,m] = twos(3)
//
// Where a parameter is declared, the arguments are evaluated: they are values of compile time. The
// body is expanded later, in the function `init`, with the parameter's shape as the first value;
// what it draws has streams of the parameter's name, so that adding a layer changes no other.
#include "frontend/check.h"

enum { IMPLICIT = 1 }; // (dims, ...)

static bool is_constant(const fe_value *v) {
  for (size_t i = 0; v->kind == FE_LIST && i < v->num_items; i++)
    if (!is_constant(v->items[i]))
      return false;
  return v->kind != FE_TENSOR;
}

static const fe_value *eval_constant(fe *c, const ast_expr *e) {
  const fe_value *v = fe_eval(c, e);
  if (is_constant(v))
    return v;
  ir_diag *d =
      fe_error(c, e->loc, "E0207", "an argument of an initialiser must be known at compile time");
  diag_label(d, "this is %s", fe_describe(c, v));
  return &fe_bad;
}

const fe_value *fe_call_initializer(fe *c, const ast_expr *call) {
  fe_written_init *w = IR_NEW(c->arena, fe_written_init);
  w->fn = fe_find_initializer(c, call->text, &w->is_std);
  w->used = call->loc;
  size_t num = w->fn->params.num;
  if (num < IMPLICIT)
    return FE_FAIL(c, w->fn->name.loc, "E0205", "an initializer begins with a parameter: dims");
  const ast_arg **args = fe_place_rest(c, call, w->fn, IMPLICIT);
  const fe_value **values = IR_NEW_ARRAY(c->arena, const fe_value *, num);
  bool ok = args != NULL;
  for (size_t i = IMPLICIT; args && i < num; i++) {
    values[i] = args[i] ? eval_constant(c, args[i]->value) : NULL;
    ok = ok && (!values[i] || !fe_is_bad(values[i]));
  }
  w->values = values;
  fe_value *v = IR_NEW(c->arena, fe_value);
  *v = (fe_value){.kind = FE_INIT, .init = {.kind = FE_INIT_WRITTEN, .written = w}};
  return ok ? v : &fe_bad;
}

static const fe_value *dims_of(fe *c, const ir_type *t) {
  const fe_value **dims = IR_NEW_ARRAY(c->arena, const fe_value *, t->rank + 1);
  for (int i = 0; i < t->rank; i++)
    dims[i] = fe_int(c, t->dims[i]);
  return fe_list(c, dims, (size_t)t->rank);
}

ir_node *fe_written_value(fe *c, const ir_state *s, const fe_written_init *i) {
  size_t num = i->fn->params.num;
  const fe_value **values = IR_NEW_ARRAY(c->arena, const fe_value *, num);
  values[0] = dims_of(c, &s->type);
  for (size_t k = IMPLICIT; k < num; k++)
    values[k] = i->values[k];
  // Below a frame of the model: an error in the body is shown with its use there.
  fe_enter(c, c->model, i->used, fe_naming_new(c, NULL, NULL, ""), false);
  const fe_value *v = fe_run_fn(c, i->fn, i->is_std, i->used, s->name, values);
  fe_leave(c);
  if (!fe_want_tensor(c, v, i->fn->name.loc, "the result of an initializer"))
    return NULL;
  ir_node *n = v->node;
  if (s->type.dtype == IR_F64 && n->type.dtype == IR_F32)
    n = ir_cast(&c->pass->b, n, IR_F64);
  if (ir_same_type(&n->type, &s->type))
    return n;
  ir_diag *d = fe_error(c, i->fn->name.loc, "E0203", "'%s' is %s and cannot start with this value",
                        s->name, ir_type_str(c->arena, &s->type));
  diag_label(d, "this gives %s", fe_shape_text(c, v));
  return NULL;
}
