// parser.c: tokens, types, statements and their lists. Expressions are in parse_expr.c, blocks,
// sections and whole files in parse_file.c.
//
// Words such as `loss`, `state`, `data` are only special where they start a statement that could
// not mean anything else, so that they stay usable as names.
#include "frontend/parser.h"

#include <string.h>

// --- tokens --------------------------------------------------------------------------------------
const fe_token *fe_parse_peek(fe_parser *p) {
  while (p->nest && p->toks[p->at].kind == TOK_NEWLINE)
    p->at++;
  return &p->toks[p->at];
}

const fe_token *fe_parse_take(fe_parser *p) {
  const fe_token *t = fe_parse_peek(p);
  if (t->kind != TOK_END)
    p->at++;
  return t;
}

bool fe_parse_accept(fe_parser *p, fe_token_kind kind) {
  if (fe_parse_peek(p)->kind != kind)
    return false;
  fe_parse_take(p);
  return true;
}

// Inside parentheses the next token may be lines away: what is missing is missing at the end of
// the line before.
static const fe_token *line_end_before(const fe_parser *p, const fe_token *at) {
  if (!p->nest || at == p->toks || at[-1].kind != TOK_NEWLINE)
    return at;
  while (at > p->toks && at[-1].kind == TOK_NEWLINE)
    at--;
  return at;
}

const char *fe_parse_found(fe_parser *p) {
  return fe_token_text(line_end_before(p, fe_parse_peek(p))->kind);
}

ir_diag *fe_parse_fail(fe_parser *p, const fe_token *at, const char *fmt, ...) {
  if (p->failed)
    return NULL;
  p->failed = true;
  at = line_end_before(p, at);
  if (at->broken)
    return NULL;
  ir_buf b = ir_buf_new(p->arena);
  va_list ap;
  va_start(ap, fmt);
  ir_buf_vprintf(&b, fmt, ap);
  va_end(ap);
  return diag_error(p->diags, at->loc, "E0004", "%s", ir_buf_str(&b));
}

bool fe_parse_expect(fe_parser *p, fe_token_kind kind, const char *where) {
  if (fe_parse_accept(p, kind))
    return true;
  fe_parse_fail(p, fe_parse_peek(p), "expected %s %s, found %s", fe_token_text(kind), where,
                fe_parse_found(p));
  return false;
}

static bool is_keyword(fe_token_kind kind) {
  switch (kind) {
#define TOKEN(NAME, text) case TOK_##NAME:
    FE_KEYWORDS(TOKEN)
#undef TOKEN
    return true;
  default:
    return false;
  }
}

void fe_parse_help_keyword(ir_diag *d, const fe_token *t) {
  if (is_keyword(t->kind))
    diag_help(d, "%s is a word of the language; nothing can have it for a name",
              fe_token_text(t->kind));
}

bool fe_parse_name(fe_parser *p, ast_name *out, const char *what) {
  const fe_token *t = fe_parse_peek(p);
  if (t->kind != TOK_NAME) {
    ir_diag *d = fe_parse_fail(p, t, "expected %s, found %s", what, fe_parse_found(p));
    if (d)
      fe_parse_help_keyword(d, t);
    return false;
  }
  fe_parse_take(p);
  *out = (ast_name){t->text, t->loc};
  return true;
}

void fe_parse_skip_newlines(fe_parser *p) {
  while (p->toks[p->at].kind == TOK_NEWLINE)
    p->at++;
}

bool fe_parse_enter(fe_parser *p) {
  if (++p->depth <= FE_MAX_NESTING)
    return true;
  if (!p->failed)
    diag_error(p->diags, fe_parse_peek(p)->loc, "E0005", "nested too deeply");
  p->failed = true;
  p->depth--;
  return false;
}

void fe_parse_leave(fe_parser *p) {
  p->depth--;
}

ir_loc fe_parse_span(const fe_parser *p, size_t start) {
  ir_loc loc = p->toks[start].loc;
  size_t last = p->at > start ? p->at - 1 : start;
  while (last > start && (p->toks[last].loc.line != loc.line || p->toks[last].kind == TOK_NEWLINE))
    last--;
  const ir_loc *end = &p->toks[last].loc;
  loc.len = end->col + end->len - loc.col;
  return loc;
}

bool fe_parse_is_word(const fe_token *t, const char *word) {
  return t->kind == TOK_NAME && strcmp(t->text, word) == 0;
}

// Skips to the end of a broken statement: past its line, or before the '}' of its list. Braces that
// open on the way are skipped whole.
void fe_parse_recover(fe_parser *p, size_t start) {
  p->failed = false;
  p->nest = 0;
  // The offending token already starts a new line: go on there.
  if (p->at > start && p->toks[p->at - 1].kind == TOK_NEWLINE)
    return;
  for (int braces = 0; p->toks[p->at].kind != TOK_END; p->at++) {
    fe_token_kind k = p->toks[p->at].kind;
    if (braces == 0 && (k == TOK_NEWLINE || k == TOK_SEMICOLON || k == TOK_RBRACE))
      return;
    braces += (k == TOK_LBRACE) - (k == TOK_RBRACE);
  }
}

bool fe_parse_at_separator(const fe_parser *p) {
  fe_token_kind k = p->toks[p->at].kind;
  return k == TOK_NEWLINE || k == TOK_SEMICOLON || k == TOK_RBRACE || k == TOK_END;
}

// --- types ---------------------------------------------------------------------------------------
static ast_expr *parse_dim(fe_parser *p) {
  const fe_token *t = fe_parse_peek(p);
  if (t->kind != TOK_ELLIPSIS)
    return fe_parse_expr(p);
  ast_expr *e = IR_NEW(p->arena, ast_expr);
  e->kind = AST_ELLIPSIS;
  e->loc = t->loc;
  e->depth = 1;
  fe_parse_take(p);
  return e;
}

static bool parse_dims(fe_parser *p, ast_type *type) {
  if (!fe_parse_expect(p, TOK_LBRACKET, "after the element type"))
    return false;
  p->nest++;
  while (fe_parse_peek(p)->kind != TOK_RBRACKET) {
    ast_expr *e = parse_dim(p);
    if (!e)
      return false;
    IR_PUSH(p->arena, type->dims, e);
    if (!fe_parse_accept(p, TOK_COMMA))
      break;
  }
  bool closed = fe_parse_expect(p, TOK_RBRACKET, "after the dimensions");
  p->nest--;
  return closed;
}

ast_type *fe_parse_type(fe_parser *p) {
  fe_parse_peek(p);
  size_t start = p->at;
  ast_type *type = IR_NEW(p->arena, ast_type);
  ast_name word;
  if (!fe_parse_name(p, &word, "a type such as f32[b,c]"))
    return NULL;
  if (strcmp(word.text, "like") == 0) {
    if (!fe_parse_name(p, &word, "a name after 'like'"))
      return NULL;
    type->like = word.text;
  } else {
    type->dtype = word.text;
    if (!parse_dims(p, type))
      return NULL;
  }
  type->loc = fe_parse_span(p, start);
  return type;
}

// --- statements ----------------------------------------------------------------------------------
static ast_stmt *new_stmt(fe_parser *p, ast_stmt_kind kind) {
  ast_stmt *s = IR_NEW(p->arena, ast_stmt);
  s->kind = kind;
  s->loc = fe_parse_peek(p)->loc;
  return s;
}

static bool parse_value(fe_parser *p, ast_stmt *s) {
  s->value = fe_parse_expr(p);
  return s->value != NULL;
}

static bool push_name(fe_parser *p, ast_stmt *s) {
  ast_name name;
  if (!fe_parse_name(p, &name, "a name"))
    return false;
  IR_PUSH(p->arena, s->names, name);
  return true;
}

// param w: f[n,m] = init; state m: like w = zeros
static ast_stmt *parse_declaration(fe_parser *p, ast_stmt_kind kind) {
  ast_stmt *s = new_stmt(p, kind);
  const fe_token *word = fe_parse_take(p);
  s->word = word->kind == TOK_PARAM ? "param" : word->text;
  if (!push_name(p, s) || !fe_parse_expect(p, TOK_COLON, "and a type after the name"))
    return NULL;
  s->type = fe_parse_type(p);
  if (!s->type || !fe_parse_expect(p, TOK_ASSIGN, "and an initialiser after the type"))
    return NULL;
  return parse_value(p, s) ? s : NULL;
}

static ast_stmt *parse_repeat(fe_parser *p) {
  ast_stmt *s = new_stmt(p, AST_REPEAT);
  fe_parse_take(p);
  const fe_token *t = fe_parse_peek(p);
  if (t->kind == TOK_NAME && t[1].kind == TOK_IN) {
    push_name(p, s);
    fe_parse_take(p);
  }
  if (!parse_value(p, s))
    return NULL;
  s->shared = fe_parse_is_word(fe_parse_peek(p), "shared");
  if (s->shared)
    fe_parse_take(p);
  return fe_parse_body(p, &s->body) ? s : NULL;
}

static ast_stmt *parse_when(fe_parser *p) {
  ast_stmt *s = new_stmt(p, AST_WHEN);
  fe_parse_take(p);
  if (!parse_value(p, s) || !fe_parse_body(p, &s->body))
    return NULL;
  size_t before = p->at;
  fe_parse_skip_newlines(p); // `else` may start the line after the '}'
  if (!fe_parse_accept(p, TOK_ELSE)) {
    p->at = before;
    return s;
  }
  s->has_else = true;
  if (fe_parse_peek(p)->kind != TOK_IF)
    return fe_parse_body(p, &s->other) ? s : NULL;
  ast_stmt *chained = fe_parse_enter(p) ? parse_when(p) : NULL;
  if (!chained)
    return NULL;
  fe_parse_leave(p);
  IR_PUSH(p->arena, s->other.list, chained);
  return s;
}

// metric name = value; output name = value
static ast_stmt *parse_named_result(fe_parser *p, ast_stmt_kind kind) {
  ast_stmt *s = new_stmt(p, kind);
  fe_parse_take(p);
  if (!push_name(p, s))
    return NULL;
  const fe_token *next = fe_parse_peek(p);
  if (next->kind == TOK_LPAREN) {
    const char *word = kind == AST_METRIC ? "metric" : "output", *name = s->names.at[0].text;
    ir_diag *d = fe_parse_fail(p, next, "expected '=' after the name, found %s", fe_parse_found(p));
    if (d)
      diag_help(d, "a result has a name: %s %s = %s(...)", word, name, name);
    return NULL;
  }
  if (!fe_parse_expect(p, TOK_ASSIGN, "after the name"))
    return NULL;
  return parse_value(p, s) ? s : NULL;
}

// return value, ...; error value, ...
static ast_stmt *parse_values(fe_parser *p, ast_stmt_kind kind) {
  ast_stmt *s = new_stmt(p, kind);
  fe_parse_take(p);
  do {
    ast_expr *e = fe_parse_expr(p);
    if (!e)
      return NULL;
    IR_PUSH(p->arena, s->values, e);
  } while (fe_parse_accept(p, TOK_COMMA));
  return s;
}

// a, b = value; a, b = value, value
static ast_stmt *parse_assign(fe_parser *p) {
  ast_stmt *s = new_stmt(p, AST_ASSIGN);
  do {
    if (!push_name(p, s))
      return NULL;
  } while (fe_parse_accept(p, TOK_COMMA));
  if (!fe_parse_expect(p, TOK_ASSIGN, "after the name"))
    return NULL;
  fe_parse_skip_newlines(p);
  s->value = s->names.num > 1 ? fe_parse_exprs(p) : fe_parse_expr(p);
  return s->value ? s : NULL;
}

static ast_stmt *parse_store(fe_parser *p) {
  ast_stmt *s = new_stmt(p, AST_STORE);
  push_name(p, s);
  fe_parse_take(p);
  fe_parse_skip_newlines(p);
  return parse_value(p, s) ? s : NULL;
}

// over a, b
static bool parse_over(fe_parser *p, ast_stmt *s) {
  const fe_token *word = fe_parse_peek(p);
  if (!fe_parse_is_word(word, "over")) {
    ir_diag *d = fe_parse_fail(p, word, "expected 'over' and what the loss trains, found %s",
                               fe_parse_found(p));
    if (d)
      diag_help(d,
                "loss %s = ... over generator, where there are several; one alone has no name: "
                "loss ...",
                s->names.at[0].text);
    return false;
  }
  do {
    fe_parse_take(p);
    ast_name name;
    if (!fe_parse_name(p, &name, "the name of a block's use or of a parameter"))
      return false;
    IR_PUSH(p->arena, s->over, name);
  } while (fe_parse_peek(p)->kind == TOK_COMMA);
  return true;
}

static bool has_no_over(fe_parser *p) {
  if (!fe_parse_is_word(fe_parse_peek(p), "over"))
    return true;
  ir_diag *d = fe_parse_fail(p, fe_parse_peek(p), "a loss that is 'over' something has a name");
  if (d)
    diag_help(d, "loss name = ... over ...; without both, it trains all parameters");
  return false;
}

// loss value; loss name = value over names
static ast_stmt *parse_loss(fe_parser *p) {
  ast_stmt *s = new_stmt(p, AST_LOSS);
  fe_parse_take(p);
  const fe_token *t = fe_parse_peek(p);
  if (t->kind != TOK_NAME || t[1].kind != TOK_ASSIGN)
    return parse_value(p, s) && has_no_over(p) ? s : NULL;
  push_name(p, s);
  fe_parse_take(p);
  fe_parse_skip_newlines(p);
  return parse_value(p, s) && parse_over(p, s) ? s : NULL;
}

static ast_stmt *parse_bare(fe_parser *p) {
  ast_stmt *s = new_stmt(p, AST_EXPR);
  return parse_value(p, s) ? s : NULL;
}

static ast_stmt *parse_worded(fe_parser *p, const fe_token *t) {
  fe_token_kind next = t[1].kind;
  if (next == TOK_ASSIGN || next == TOK_COMMA)
    return parse_assign(p);
  if (next == TOK_STORE)
    return parse_store(p);
  if (fe_parse_is_word(t, "loss"))
    return parse_loss(p);
  if (next == TOK_STRING && fe_parse_is_word(t, "error"))
    return parse_values(p, AST_ERROR);
  if (next == TOK_NAME && fe_parse_is_word(t, "metric"))
    return parse_named_result(p, AST_METRIC);
  if (next == TOK_NAME && fe_parse_is_word(t, "output"))
    return parse_named_result(p, AST_OUTPUT);
  if (next == TOK_NAME && (fe_parse_is_word(t, "state") || fe_parse_is_word(t, "buffer")))
    return parse_declaration(p, AST_STATE);
  if (next == TOK_NAME && fe_parse_is_word(t, "frozen"))
    return parse_declaration(p, AST_PARAM);
  return parse_bare(p);
}

static ast_stmt *parse_stmt(fe_parser *p) {
  const fe_token *t = fe_parse_peek(p);
  switch (t->kind) {
  case TOK_PARAM:
    return parse_declaration(p, AST_PARAM);
  case TOK_REPEAT:
    return parse_repeat(p);
  case TOK_IF:
    return parse_when(p);
  case TOK_RETURN:
    return parse_values(p, AST_RETURN);
  case TOK_NAME:
    return parse_worded(p, t);
  default:
    return parse_bare(p);
  }
}

// How a statement of Python that begins with this word is written here, or NULL.
static const char *statement_here(const char *word) {
  static const char *const words[][2] = {
      {"for", "repeat i in 3 { ... }"},
      {"while", "repeat i in 3 { ... }: the number is known at compile time"},
      {"def", "block name(x: f[b,n]) -> f[b,n] { ... }, outside of the model"},
      {"class", "block name(x: f[b,n]) -> f[b,n] { ... }, outside of the model"},
  };
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp(words[i][0], word) == 0)
      return words[i][1];
  return NULL;
}

bool fe_parse_help_comment(fe_parser *p, ir_diag *d, const fe_token *first) {
  const fe_token *end = fe_parse_peek(p);
  for (const fe_token *t = first; d && t <= end; t++)
    if (t->kind == TOK_FLOORDIV && t->loc.line == end->loc.line) {
      diag_help(d, "'//' divides; a comment begins with #");
      return true;
    }
  return false;
}

// `los cross_entropy(...)`: two words side by side may be a statement word and what it is about.
static void fail_at_end(fe_parser *p, const fe_token *first) {
  static const char *const words[] = {"param", "frozen", "state", "buffer", "repeat",
                                      "if",    "return", "loss",  "metric", "output"};
  ir_diag *d = fe_parse_fail(p, fe_parse_peek(p), "expected the end of the statement, found %s",
                             fe_parse_found(p));
  if (fe_parse_help_comment(p, d, first))
    return;
  bool two_words = first->kind == TOK_NAME && fe_parse_peek(p) == first + 1;
  const char *here = d && two_words ? statement_here(first->text) : NULL;
  if (here) {
    diag_help(d, "here it is written %s", here);
    return;
  }
  const char *near =
      d && two_words ? diag_nearest(first->text, words, sizeof words / sizeof words[0]) : NULL;
  if (near)
    diag_help(d, "did you mean '%s'?", near);
}

// One statement and its end; broken ones are reported and left out.
static void parse_stmt_into(fe_parser *p, ast_body *body) {
  size_t start = p->at;
  ast_stmt *s = parse_stmt(p);
  if (s && !fe_parse_at_separator(p)) {
    fail_at_end(p, &p->toks[start]);
    s = NULL;
  }
  if (s)
    IR_PUSH(p->arena, body->list, s);
  else
    fe_parse_recover(p, start);
}

void fe_parse_skip_separators(fe_parser *p) {
  while (p->toks[p->at].kind == TOK_NEWLINE || p->toks[p->at].kind == TOK_SEMICOLON)
    p->at++;
}

static bool is_section(const fe_token *t) {
  bool named = fe_parse_is_word(t, "optim") && t[1].kind == TOK_NAME; // optim d_loss { }
  return (fe_parse_is_word(t, "data") || fe_parse_is_word(t, "optim") ||
          fe_parse_is_word(t, "train")) &&
         t[named ? 2 : 1].kind == TOK_LBRACE;
}

static bool is_function(const fe_token *t) {
  return (t->kind == TOK_MODEL || t->kind == TOK_BLOCK || fe_parse_is_word(t, "optimizer") ||
          fe_parse_is_word(t, "schedule") || fe_parse_is_word(t, "initializer")) &&
         t[1].kind == TOK_NAME;
}

static const char *item_word(const fe_token *t) {
  return t->kind == TOK_MODEL ? "model" : t->kind == TOK_BLOCK ? "block" : t->text;
}

// Indented ones are inside by intention.
bool fe_parse_at_item(const fe_parser *p) {
  const fe_token *t = &p->toks[p->at];
  return t->loc.col == 1 && (is_section(t) || is_function(t));
}

bool fe_parse_close_brace(fe_parser *p, const fe_token *open) {
  if (fe_parse_accept(p, TOK_RBRACE))
    return true;
  const fe_token *t = fe_parse_peek(p);
  p->failed = p->failed || t == p->unclosed; // said of the innermost brace
  p->unclosed = t;
  const char *item = fe_parse_at_item(p) ? item_word(t) : NULL;
  ir_diag *n = item ? fe_parse_fail(p, t, "expected '}' before '%s'", item)
                    : fe_parse_fail(p, t, "expected '}', found %s", fe_parse_found(p));
  if (n)
    diag_note(n, open->loc, "the brace opened here");
  return false;
}

static bool at_body_end(const fe_parser *p) {
  fe_token_kind k = p->toks[p->at].kind;
  return k == TOK_RBRACE || k == TOK_END || fe_parse_at_item(p);
}

bool fe_parse_body(fe_parser *p, ast_body *body) {
  const fe_token *open = fe_parse_peek(p);
  if (!fe_parse_expect(p, TOK_LBRACE, "before the statements") || !fe_parse_enter(p))
    return false;
  int depth = p->depth;
  for (fe_parse_skip_separators(p); !at_body_end(p); fe_parse_skip_separators(p)) {
    size_t before = p->at;
    parse_stmt_into(p, body);
    p->depth = depth; // a broken statement may have left it higher
    if (p->at == before)
      p->at++; // never stand still
  }
  fe_parse_leave(p);
  return fe_parse_close_brace(p, open);
}
