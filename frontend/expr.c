// expr.c: evaluating expressions: compile-time values are computed, tensors become nodes.
#include "frontend/check.h"

#include <string.h>

static const fe_value *eval_list(fe *c, const ast_expr *e) {
  IR_VEC(const fe_value *) items = {0};
  bool bad = false;
  for (size_t i = 0; i < e->items.num; i++) {
    const ast_expr *item = e->items.at[i];
    const fe_value *v = item->kind == AST_ELLIPSIS
                            ? ir_map_get(c->frame ? c->frame->vars : c->lets, "...")
                            : fe_eval(c, item);
    if (!v)
      v = FE_FAIL(c, item->loc, "E0201", "'...' is not bound by a parameter of this block");
    bad = bad || fe_is_bad(v);
    if (item->kind == AST_ELLIPSIS && v->kind == FE_LIST)
      for (size_t k = 0; k < v->num_items; k++)
        IR_PUSH(c->arena, items, v->items[k]);
    else
      IR_PUSH(c->arena, items, v);
  }
  return bad ? &fe_bad : fe_list(c, items.at, items.num);
}

// --- conditions ----------------------------------------------------------------------------------
bool fe_want_condition(fe *c, const ast_expr *e, bool *out) {
  const fe_value *v = fe_eval(c, e);
  if (v->kind != FE_TENSOR || v->flag)
    return fe_want_bool(c, v, e->loc, "a condition", out);
  ir_diag *d = fe_error(c, e->loc, "E0207", "a condition must be known at compile time");
  diag_label(d, "this is %s", fe_describe(c, v));
  diag_help(d, "where(condition, a, b) chooses element by element");
  return false;
}

static const fe_value *eval_if(fe *c, const ast_expr *e) {
  bool cond;
  if (!fe_want_condition(c, e->b, &cond))
    return &fe_bad;
  return cond ? fe_eval(c, e->a) : e->c ? fe_eval(c, e->c) : &fe_none;
}

// Compile-time `and` and `or` do not look at the right side when the left one decides.
static const fe_value *eval_logic(fe *c, const ast_expr *e) {
  const fe_value *a = fe_eval(c, e->a);
  if (fe_is_bad(a))
    return a;
  if (a->kind == FE_BOOL && (a->i != 0) == (e->op == AST_OP_OR))
    return a;
  const fe_value *b = fe_eval(c, e->b);
  if (fe_is_bad(b) || (a->kind == FE_BOOL && b->kind == FE_BOOL))
    return b;
  if (a->kind == FE_BOOL && b->kind == FE_TENSOR && b->node->type.dtype == IR_BOOL)
    return b; // true and b, false or b
  bool logical[] = {a->kind == FE_BOOL || a->kind == FE_TENSOR,
                    b->kind == FE_BOOL || b->kind == FE_TENSOR};
  if (logical[0] && logical[1])
    return fe_pointwise(c, e->op == AST_OP_AND ? IR_AND : IR_OR, e->op_loc, a, b);
  bool unused;
  const fe_value *wrong = a->kind == FE_BOOL ? b : a;
  const char *what = ir_format(c->arena, "the operand of '%s'", ast_op_text(e->op));
  fe_want_bool(c, wrong, wrong == a ? e->a->loc : e->b->loc, what, &unused);
  return &fe_bad;
}

// --- operators -----------------------------------------------------------------------------------
static const fe_value *eval_unary(fe *c, const ast_expr *e) {
  const fe_value *a = fe_eval(c, e->a);
  if (fe_is_bad(a))
    return a;
  bool is_not = e->op == AST_OP_NOT;
  if (a->kind == FE_TENSOR) {
    ir_node *x = a->node; // of a truth value, as in 0 - x
    x = !is_not && x->type.dtype == IR_BOOL ? fe_emit_cast(c, e->op_loc, x, IR_I32) : x;
    return fe_tensor_named(c, fe_emit_unary(c, e->op_loc, is_not ? IR_NOT : IR_NEG, x),
                           a->dim_names);
  }
  if (is_not) {
    bool b;
    return fe_want_bool(c, a, e->a->loc, "the operand of 'not'", &b) ? fe_bool(c, !b) : &fe_bad;
  }
  double x;
  if (!fe_want_num(c, a, e->a->loc, "the operand of '-'", &x))
    return &fe_bad;
  if (!a->is_int)
    return fe_float(c, -x);
  if (a->i == INT64_MIN)
    return FE_FAIL(c, e->loc, "E0210", "the number does not fit in 64 bits");
  return fe_int(c, -a->i);
}

// a @ b^T is one matmul that reads b transposed; no transpose of its own.
static const fe_value *matmul_operand(fe *c, const ast_expr *e, bool *transposed) {
  *transposed = e->kind == AST_TRANSPOSE;
  const fe_value *v = fe_eval(c, *transposed ? e->a : e);
  if (*transposed && v->kind == FE_TENSOR && v->node->type.rank < 2)
    return fe_swap_last(c, e->loc, v); // reports
  return v;
}

static const fe_value *eval_matmul(fe *c, const ast_expr *e) {
  bool ta, tb;
  const fe_value *a = matmul_operand(c, e->a, &ta);
  const fe_value *b = matmul_operand(c, e->b, &tb);
  if (!fe_want_tensor(c, a, e->a->loc, "the left operand of '@'") ||
      !fe_want_tensor(c, b, e->b->loc, "the right operand of '@'"))
    return &fe_bad;
  return fe_matmul(c, e->op_loc, a, ta, b, tb);
}

static const fe_value *eval_binary(fe *c, const ast_expr *e) {
  if (e->op == AST_OP_AND || e->op == AST_OP_OR)
    return eval_logic(c, e);
  if (e->op == AST_OP_MATMUL)
    return eval_matmul(c, e);
  const fe_value *a = fe_eval(c, e->a), *b = fe_eval(c, e->b);
  if (fe_is_bad(a) || fe_is_bad(b))
    return &fe_bad;
  if (a->kind == FE_TENSOR || b->kind == FE_TENSOR)
    return fe_binary(c, e->op, e->op_loc, a, b);
  return fe_const_binary(c, e, a, b);
}

static const fe_value *eval_transpose(fe *c, const ast_expr *e) {
  const fe_value *a = fe_eval(c, e->a);
  return fe_want_tensor(c, a, e->a->loc, "the operand of '^T'") ? fe_swap_last(c, e->loc, a)
                                                                : &fe_bad;
}

static const fe_value *list_item(fe *c, const ast_expr *e, const fe_value *list) {
  int64_t i;
  if (e->items.num != 1 || e->items.at[0]->kind == AST_SLICE ||
      e->items.at[0]->kind == AST_ELLIPSIS)
    return FE_FAIL(c, e->loc, "E0220", "a list takes one index");
  if (!fe_want_int(c, fe_eval(c, e->items.at[0]), e->items.at[0]->loc, "an index", &i))
    return &fe_bad;
  int64_t n = (int64_t)list->num_items;
  if (i < -n || i >= n)
    return FE_FAIL(c, e->items.at[0]->loc, "E0220", "index %lld of a list of %lld", (long long)i,
                   (long long)n);
  return list->items[i < 0 ? i + n : i];
}

static const fe_value *eval_index(fe *c, const ast_expr *e) {
  const fe_value *of = fe_eval(c, e->a);
  if (of->kind == FE_LIST)
    return list_item(c, e, of);
  return fe_want_tensor(c, of, e->a->loc, "an indexed value") ? fe_index(c, e, of) : &fe_bad;
}

static const fe_value *eval_misplaced(fe *c, const ast_expr *e) {
  const char *what = e->kind == AST_RANGE      ? "a range lo..hi"
                     : e->kind == AST_ELLIPSIS ? "'...'"
                                               : "a slice";
  return FE_FAIL(c, e->loc, "E0202", "%s cannot stand here", what);
}

static const fe_value *eval_one(fe *c, const ast_expr *e) {
  switch (e->kind) {
  case AST_INT:
    return fe_int(c, e->i);
  case AST_FLOAT:
  case AST_FRACTION:
    return fe_float(c, e->num);
  case AST_STRING:
    return fe_str(c, e->text);
  case AST_BOOL:
    return fe_bool(c, e->i != 0);
  case AST_NAME:
    return fe_lookup(c, e->text, e->loc);
  case AST_LIST:
  case AST_TUPLE:
    return eval_list(c, e);
  case AST_UNARY:
    return eval_unary(c, e);
  case AST_BINARY:
    return eval_binary(c, e);
  case AST_TRANSPOSE:
    return eval_transpose(c, e);
  case AST_CALL:
    return fe_call(c, e);
  case AST_INDEX:
    return eval_index(c, e);
  case AST_IF:
    return eval_if(c, e);
  default:
    return eval_misplaced(c, e);
  }
}

const fe_value *fe_eval(fe *c, const ast_expr *e) {
  if (++c->depth > FE_MAX_EVAL_DEPTH) {
    c->depth--;
    return FE_FAIL(c, e->loc, "E0005", "expressions and calls are nested too deeply");
  }
  const fe_value *v = eval_one(c, e);
  c->depth--;
  return v;
}
