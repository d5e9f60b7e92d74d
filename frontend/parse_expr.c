// parse_expr.c: expressions, by precedence climbing.
//   a if c else b  <  or  <  and  <  not  <  == != < <= > >=  <  + -  <  * / // % @  <  -a  <  **
//   <  calls, indexing, ^T
#include "frontend/parser.h"

#include <string.h>

static const struct {
  fe_token_kind token;
  ast_op op;
  int level;
} binary_ops[] = {
    {TOK_OR, AST_OP_OR, 1},
    {TOK_AND, AST_OP_AND, 2},
    {TOK_EQ, AST_OP_EQ, 4},
    {TOK_NE, AST_OP_NE, 4},
    {TOK_LT, AST_OP_LT, 4},
    {TOK_LE, AST_OP_LE, 4},
    {TOK_GT, AST_OP_GT, 4},
    {TOK_GE, AST_OP_GE, 4},
    {TOK_PLUS, AST_OP_ADD, 5},
    {TOK_MINUS, AST_OP_SUB, 5},
    {TOK_STAR, AST_OP_MUL, 6},
    {TOK_SLASH, AST_OP_DIV, 6},
    {TOK_FLOORDIV, AST_OP_FLOORDIV, 6},
    {TOK_PERCENT, AST_OP_MOD, 6},
    {TOK_AT, AST_OP_MATMUL, 6},
};
enum { LEVEL_NOT = 3, LEVEL_COMPARE = 4, NUM_BINARY = sizeof binary_ops / sizeof binary_ops[0] };

static ast_expr *parse_postfix(fe_parser *p);
static ast_expr *parse_unary(fe_parser *p);

static int find_binary(fe_token_kind k) {
  for (int i = 0; i < NUM_BINARY; i++)
    if (binary_ops[i].token == k)
      return i;
  return -1;
}

static uint32_t depth_of(const ast_expr *e) {
  return e ? e->depth : 0;
}

// A node over up to three others. Trees are kept shallow enough to walk recursively.
static ast_expr *node(fe_parser *p, ast_expr_kind kind, size_t start, ast_expr *a, ast_expr *b,
                      ast_expr *c) {
  ast_expr *e = IR_NEW(p->arena, ast_expr);
  e->kind = kind;
  e->loc = fe_parse_span(p, start);
  e->a = a, e->b = b, e->c = c;
  uint32_t d = depth_of(a);
  d = depth_of(b) > d ? depth_of(b) : d;
  d = depth_of(c) > d ? depth_of(c) : d;
  e->depth = d + 1;
  if (e->depth > FE_MAX_TREE_DEPTH && !p->failed) {
    p->failed = true;
    ir_diag *n = diag_error(p->diags, e->loc, "E0005", "expression is nested too deeply");
    diag_help(n, "give parts of it names of their own");
    return NULL;
  }
  return e;
}

static void deepen(ast_expr *e, const ast_expr *child) {
  if (child && child->depth >= e->depth)
    e->depth = child->depth + 1;
}

static ast_expr *literal(fe_parser *p, ast_expr_kind kind) {
  size_t start = p->at;
  const fe_token *t = fe_parse_take(p);
  ast_expr *e = node(p, kind, start, NULL, NULL, NULL);
  e->text = t->text;
  e->i = kind == AST_BOOL ? t->kind == TOK_TRUE : t->i;
  e->num = t->num;
  return e;
}

// Elements up to `close`, which is taken. `trailing`: set when a comma stood before it.
static bool parse_items(fe_parser *p, ast_expr *into, fe_token_kind close, bool *trailing,
                        ast_expr *(*element)(fe_parser *)) {
  p->nest++;
  *trailing = false;
  while (fe_parse_peek(p)->kind != close) {
    ast_expr *e = element(p);
    if (!e)
      return false;
    IR_PUSH(p->arena, into->items, e);
    deepen(into, e);
    *trailing = fe_parse_accept(p, TOK_COMMA);
    if (!*trailing)
      break;
  }
  if (fe_parse_peek(p)->kind != close) {
    fe_parse_fail(p, fe_parse_peek(p), "expected ',' or %s, found %s", fe_token_text(close),
                  fe_parse_found(p));
    return false;
  }
  p->nest--;
  fe_parse_take(p);
  return true;
}

static ast_expr *parse_element(fe_parser *p) {
  if (fe_parse_peek(p)->kind == TOK_ELLIPSIS)
    return literal(p, AST_ELLIPSIS);
  return fe_parse_expr(p);
}

static ast_expr *parse_list(fe_parser *p) {
  size_t start = p->at;
  bool trailing;
  fe_parse_take(p);
  ast_expr *e = node(p, AST_LIST, start, NULL, NULL, NULL);
  if (!parse_items(p, e, TOK_RBRACKET, &trailing, parse_element))
    return NULL;
  e->loc = fe_parse_span(p, start);
  return e;
}

// (a) is a; (a, b) and (a,) are tuples.
static ast_expr *parse_parens(fe_parser *p) {
  size_t start = p->at;
  bool trailing;
  const fe_token *open = fe_parse_take(p);
  ast_expr *e = node(p, AST_TUPLE, start, NULL, NULL, NULL);
  if (!parse_items(p, e, TOK_RPAREN, &trailing, fe_parse_expr))
    return NULL;
  if (e->items.num == 0) {
    fe_parse_fail(p, open, "empty parentheses");
    return NULL;
  }
  e->loc = fe_parse_span(p, start);
  return e->items.num == 1 && !trailing ? e->items.at[0] : e;
}

// The '=' of `h += 1`.
static bool is_compound(const fe_parser *p, const fe_token *t) {
  if (t->kind != TOK_ASSIGN || t < p->toks + 2 || t[-2].kind != TOK_NAME)
    return false;
  int row = find_binary(t[-1].kind);
  return row >= 0 && binary_ops[row].level > LEVEL_COMPARE && t[-1].loc.line == t->loc.line &&
         t[-1].loc.col + t[-1].loc.len == t->loc.col;
}

// `h += 1`, `let h = 1` and `// text`: other languages have them.
static void help_habit(fe_parser *p, ir_diag *d, const fe_token *t) {
  if (t->kind == TOK_LET && t[1].kind == TOK_NAME)
    diag_help(d, "a constant stands outside of blocks and models; here write %s = ...", t[1].text);
  else if (t->kind == TOK_AS || t->kind == TOK_IN || t[1].kind == TOK_ASSIGN)
    fe_parse_help_keyword(d, t);
  else if (!fe_parse_help_comment(p, d, t) && is_compound(p, t))
    diag_help(d, "write %s = %s %.*s ...", t[-2].text, t[-2].text, (int)t[-1].loc.len,
              fe_token_text(t[-1].kind) + 1); // behind its quote
}

static ast_expr *parse_primary(fe_parser *p) {
  const fe_token *t = fe_parse_peek(p);
  switch (t->kind) {
  case TOK_INT:
    return literal(p, AST_INT);
  case TOK_FLOAT:
    return literal(p, AST_FLOAT);
  case TOK_FRACTION:
    return literal(p, AST_FRACTION);
  case TOK_STRING:
    return literal(p, AST_STRING);
  case TOK_TRUE:
  case TOK_FALSE:
    return literal(p, AST_BOOL);
  case TOK_NAME:
    return literal(p, AST_NAME);
  case TOK_LBRACKET:
    return parse_list(p);
  case TOK_LPAREN:
    return parse_parens(p);
  default:
    break;
  }
  ir_diag *d = fe_parse_fail(p, t, "expected an expression, found %s", fe_parse_found(p));
  if (d)
    help_habit(p, d, t);
  return NULL;
}

static bool parse_arg(fe_parser *p, ast_expr *call) {
  ast_arg arg = {0};
  const fe_token *t = fe_parse_peek(p);
  if (t->kind == TOK_NAME && t[1].kind == TOK_ASSIGN) {
    arg.name = t->text;
    arg.loc = t->loc;
    fe_parse_take(p);
    fe_parse_take(p);
  }
  arg.value = fe_parse_range_expr(p);
  if (!arg.value)
    return false;
  deepen(call, arg.value);
  IR_PUSH(p->arena, call->args, arg);
  return true;
}

static ast_expr *parse_call(fe_parser *p, ast_expr *callee, size_t start) {
  const fe_token *open = fe_parse_peek(p);
  ast_expr *e = node(p, AST_CALL, start, NULL, NULL, NULL);
  e->text = callee->text;
  e->op_loc = callee->loc;
  fe_parse_take(p);
  p->nest++;
  while (fe_parse_peek(p)->kind != TOK_RPAREN) {
    if (!parse_arg(p, e))
      return NULL;
    if (!fe_parse_accept(p, TOK_COMMA))
      break;
  }
  if (fe_parse_peek(p)->kind != TOK_RPAREN) {
    ir_diag *n =
        fe_parse_fail(p, fe_parse_peek(p), "expected ',' or ')' in the call of '%s', found %s",
                      e->text, fe_parse_found(p));
    if (n && open->loc.line != fe_parse_peek(p)->loc.line)
      diag_note(n, open->loc, "the parenthesis opened here");
    return NULL;
  }
  p->nest--;
  fe_parse_take(p);
  ast_name label;
  if (fe_parse_accept(p, TOK_AS)) {
    if (!fe_parse_name(p, &label, "a name after 'as'"))
      return NULL;
    e->label = label.text;
  } else if (fe_parse_is_word(fe_parse_peek(p), "with")) {
    fe_parse_take(p);
    if (!fe_parse_name(p, &label, "a name after 'with'"))
      return NULL;
    e->again = label.text;
  }
  e->loc = fe_parse_span(p, start);
  return e;
}

static bool slice_part(fe_parser *p, ast_expr **out) {
  fe_token_kind k = fe_parse_peek(p)->kind;
  if (k == TOK_COLON || k == TOK_COMMA || k == TOK_RBRACKET)
    return true;
  *out = fe_parse_expr(p);
  return *out != NULL;
}

// One item of an index: an expression, `...`, or lo:hi:step with any part missing.
static ast_expr *parse_index_item(fe_parser *p) {
  if (fe_parse_peek(p)->kind == TOK_ELLIPSIS)
    return literal(p, AST_ELLIPSIS);
  size_t start = p->at;
  ast_expr *part[3] = {NULL, NULL, NULL};
  if (!slice_part(p, &part[0]))
    return NULL;
  if (fe_parse_peek(p)->kind != TOK_COLON) {
    if (!part[0])
      fe_parse_fail(p, fe_parse_peek(p), "expected an index");
    return part[0];
  }
  for (int i = 1; i < 3 && fe_parse_accept(p, TOK_COLON); i++)
    if (!slice_part(p, &part[i]))
      return NULL;
  return node(p, AST_SLICE, start, part[0], part[1], part[2]);
}

static ast_expr *parse_index(fe_parser *p, ast_expr *of, size_t start) {
  bool trailing;
  const fe_token *open = fe_parse_take(p);
  ast_expr *e = node(p, AST_INDEX, start, of, NULL, NULL);
  if (!e || !parse_items(p, e, TOK_RBRACKET, &trailing, parse_index_item))
    return NULL;
  if (e->items.num == 0) {
    fe_parse_fail(p, open, "empty index");
    return NULL;
  }
  e->loc = fe_parse_span(p, start);
  return e;
}

static ast_expr *parse_transpose(fe_parser *p, ast_expr *of, size_t start) {
  const fe_token *caret = fe_parse_take(p);
  const fe_token *t = fe_parse_peek(p);
  if (t->kind != TOK_NAME || strcmp(t->text, "T") != 0) {
    ir_diag *n = fe_parse_fail(p, caret, "'^' is only used in ^T");
    if (n)
      diag_help(n, "a power is written a ** b");
    return NULL;
  }
  fe_parse_take(p);
  return node(p, AST_TRANSPOSE, start, of, NULL, NULL);
}

static ast_expr *parse_postfix(fe_parser *p) {
  fe_parse_peek(p); // skips newlines inside parentheses
  size_t start = p->at;
  ast_expr *e = parse_primary(p);
  while (e && !p->failed) {
    fe_token_kind k = fe_parse_peek(p)->kind;
    if (k == TOK_LPAREN && e->kind == AST_NAME)
      e = parse_call(p, e, start);
    else if (k == TOK_LBRACKET)
      e = parse_index(p, e, start);
    else if (k == TOK_CARET)
      e = parse_transpose(p, e, start);
    else
      break;
  }
  return p->failed ? NULL : e;
}

// a ** b: binds tighter than a minus before it, and to the right.
static ast_expr *parse_power(fe_parser *p) {
  fe_parse_peek(p);
  size_t start = p->at;
  ast_expr *a = parse_postfix(p);
  if (!a || fe_parse_peek(p)->kind != TOK_POWER)
    return a;
  ir_loc op_loc = fe_parse_take(p)->loc;
  fe_parse_skip_newlines(p);
  if (!fe_parse_enter(p))
    return NULL;
  ast_expr *b = parse_unary(p);
  fe_parse_leave(p);
  ast_expr *e = b ? node(p, AST_BINARY, start, a, b, NULL) : NULL;
  if (e)
    e->op = AST_OP_POW, e->op_loc = op_loc;
  return e;
}

static ast_expr *parse_prefix(fe_parser *p, ast_op op, ast_expr *(*operand)(fe_parser *)) {
  size_t start = p->at;
  ir_loc op_loc = fe_parse_take(p)->loc;
  fe_parse_skip_newlines(p);
  ast_expr *a = operand(p);
  ast_expr *e = a ? node(p, AST_UNARY, start, a, NULL, NULL) : NULL;
  if (e)
    e->op = op, e->op_loc = op_loc;
  return e;
}

// Only what recurses counts as a level: each pair of parentheses is one, in fe_parse_expr.
static ast_expr *parse_unary(fe_parser *p) {
  if (fe_parse_peek(p)->kind != TOK_MINUS)
    return parse_power(p);
  if (!fe_parse_enter(p))
    return NULL;
  ast_expr *e = parse_prefix(p, AST_OP_NEG, parse_unary);
  fe_parse_leave(p);
  return e;
}

static ast_expr *parse_level(fe_parser *p, int level);

static ast_expr *parse_compare(fe_parser *p) {
  return parse_level(p, LEVEL_COMPARE);
}

static ast_expr *parse_not(fe_parser *p) {
  if (fe_parse_peek(p)->kind != TOK_NOT)
    return parse_compare(p);
  if (!fe_parse_enter(p))
    return NULL;
  ast_expr *e = parse_prefix(p, AST_OP_NOT, parse_not);
  fe_parse_leave(p);
  return e;
}

static ast_expr *binary(fe_parser *p, ast_expr *a, int row, size_t start) {
  ir_loc op_loc = fe_parse_take(p)->loc;
  fe_parse_skip_newlines(p);
  ast_expr *b = parse_level(p, binary_ops[row].level + 1);
  ast_expr *e = b ? node(p, AST_BINARY, start, a, b, NULL) : NULL;
  if (e)
    e->op = binary_ops[row].op, e->op_loc = op_loc;
  return e;
}

// Operators of `level` and tighter, to the left.
static ast_expr *parse_level(fe_parser *p, int level) {
  fe_parse_peek(p);
  size_t start = p->at;
  ast_expr *e = level <= LEVEL_NOT ? parse_not(p) : parse_unary(p);
  bool compared = false;
  while (e) {
    int row = find_binary(fe_parse_peek(p)->kind);
    if (row < 0 || binary_ops[row].level < level)
      break;
    if (binary_ops[row].level == LEVEL_COMPARE && compared) {
      ir_diag *n = fe_parse_fail(p, fe_parse_peek(p), "comparisons do not chain");
      if (n)
        diag_help(n, "write a < b and b < c");
      return NULL;
    }
    compared = binary_ops[row].level == LEVEL_COMPARE;
    e = binary(p, e, row, start);
  }
  return e;
}

static ast_expr *parse_if_expr(fe_parser *p) {
  fe_parse_peek(p);
  size_t start = p->at;
  ast_expr *a = parse_level(p, 1);
  if (!a || !fe_parse_accept(p, TOK_IF))
    return a;
  ast_expr *cond = parse_level(p, 1), *b = NULL;
  if (!cond)
    return NULL;
  if (fe_parse_accept(p, TOK_ELSE) && !(b = fe_parse_expr(p)))
    return NULL;
  return node(p, AST_IF, start, a, cond, b);
}

ast_expr *fe_parse_expr(fe_parser *p) {
  if (!fe_parse_enter(p))
    return NULL;
  ast_expr *e = parse_if_expr(p);
  fe_parse_leave(p);
  return p->failed ? NULL : e;
}

ast_expr *fe_parse_range_expr(fe_parser *p) {
  fe_parse_peek(p);
  size_t start = p->at;
  ast_expr *lo = fe_parse_expr(p);
  if (!lo || !fe_parse_accept(p, TOK_RANGE))
    return lo;
  ast_expr *hi = fe_parse_expr(p);
  return hi ? node(p, AST_RANGE, start, lo, hi, NULL) : NULL;
}

ast_expr *fe_parse_exprs(fe_parser *p) {
  size_t start = p->at;
  ast_expr *e = fe_parse_expr(p);
  if (!e || fe_parse_peek(p)->kind != TOK_COMMA)
    return e;
  ast_expr *all = node(p, AST_TUPLE, start, NULL, NULL, NULL);
  IR_PUSH(p->arena, all->items, e);
  deepen(all, e);
  while (fe_parse_accept(p, TOK_COMMA)) {
    e = fe_parse_expr(p);
    if (!e)
      return NULL;
    IR_PUSH(p->arena, all->items, e);
    deepen(all, e);
  }
  all->loc = fe_parse_span(p, start);
  return all;
}
