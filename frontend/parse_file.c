// parse_file.c: what a file consists of: constants, blocks and models, sections.
#include "frontend/frontend.h"
#include "frontend/parser.h"

// --- blocks and models ---------------------------------------------------------------------------
static bool parse_param(fe_parser *p, ast_fn *fn) {
  ast_param param = {0};
  if (!fe_parse_name(p, &param.name, "a parameter name"))
    return false;
  if (fe_parse_accept(p, TOK_COLON) && !(param.type = fe_parse_type(p)))
    return false;
  if (fe_parse_accept(p, TOK_ASSIGN) && !(param.value = fe_parse_expr(p)))
    return false;
  IR_PUSH(p->arena, fn->params, param);
  return true;
}

static bool parse_params(fe_parser *p, ast_fn *fn) {
  if (!fe_parse_expect(p, TOK_LPAREN, "before the parameters"))
    return false;
  p->nest++;
  while (fe_parse_peek(p)->kind != TOK_RPAREN) {
    if (!parse_param(p, fn))
      return false;
    if (!fe_parse_accept(p, TOK_COMMA))
      break;
  }
  bool closed = fe_parse_expect(p, TOK_RPAREN, "after the parameters");
  p->nest--;
  return closed;
}

static bool parse_results(fe_parser *p, ast_fn *fn) {
  if (!fe_parse_accept(p, TOK_ARROW))
    return true;
  do {
    ast_type *t = fe_parse_type(p);
    if (!t)
      return false;
    IR_PUSH(p->arena, fn->results, t);
  } while (fe_parse_accept(p, TOK_COMMA));
  return true;
}

static bool parse_fn(fe_parser *p, ast_item *item, ast_fn_kind kind) {
  ast_fn *fn = item->fn = IR_NEW(p->arena, ast_fn);
  item->kind = AST_FN;
  fn->kind = kind;
  fe_parse_take(p);
  return fe_parse_name(p, &fn->name, "a name") && parse_params(p, fn) && parse_results(p, fn) &&
         fe_parse_body(p, &fn->body);
}

// --- sections ------------------------------------------------------------------------------------
static bool parse_every(fe_parser *p, ast_setting *s) {
  const fe_token *t = fe_parse_peek(p);
  if (!fe_parse_is_word(t, "every"))
    return true;
  fe_parse_take(p);
  s->has_every = true;
  s->every_loc = fe_parse_peek(p)->loc;
  if (fe_parse_is_word(fe_parse_peek(p), "epoch")) {
    fe_parse_take(p);
    return true;
  }
  return (s->every = fe_parse_expr(p)) != NULL;
}

static bool parse_setting(fe_parser *p, ast_setting *s) {
  const fe_token *t = fe_parse_peek(p);
  if (t->kind == TOK_NAME && (t[1].kind == TOK_ASSIGN || fe_parse_is_word(t + 1, "every"))) {
    s->key = (ast_name){t->text, t->loc};
    fe_parse_take(p);
    if (!fe_parse_accept(p, TOK_ASSIGN))
      return parse_every(p, s);
  }
  fe_parse_skip_newlines(p);
  return (s->value = fe_parse_range_expr(p)) && parse_every(p, s);
}

static void parse_setting_into(fe_parser *p, ast_item *item) {
  size_t start = p->at;
  ast_setting s = {0};
  bool ok = parse_setting(p, &s);
  if (ok && !fe_parse_at_separator(p) && fe_parse_peek(p)->kind != TOK_COMMA) {
    ir_diag *d = fe_parse_fail(p, fe_parse_peek(p), "expected ',' or the end of the line, found %s",
                               fe_parse_found(p));
    fe_parse_help_comment(p, d, &p->toks[start]);
    ok = false;
  }
  if (ok)
    IR_PUSH(p->arena, item->settings, s);
  else
    fe_parse_recover(p, start);
}

static bool parse_section(fe_parser *p, ast_item *item, ast_item_kind kind) {
  item->kind = kind;
  fe_parse_take(p);
  const fe_token *open = fe_parse_peek(p);
  if (kind == AST_OPTIM && open->kind == TOK_NAME) {
    item->of = (ast_name){open->text, open->loc};
    fe_parse_take(p);
    open = fe_parse_peek(p);
  }
  if (!fe_parse_accept(p, TOK_LBRACE)) {
    ir_diag *d =
        fe_parse_fail(p, open, "expected '{' before the settings, found %s", fe_parse_found(p));
    if (d)
      diag_help(d, "%s { ... }", kind == AST_OPTIM ? "optim" : kind == AST_DATA ? "data" : "train");
    return false;
  }
  for (;;) {
    while (fe_parse_accept(p, TOK_COMMA) || fe_parse_accept(p, TOK_NEWLINE) ||
           fe_parse_accept(p, TOK_SEMICOLON))
      ;
    if (p->toks[p->at].kind == TOK_RBRACE || p->toks[p->at].kind == TOK_END || fe_parse_at_item(p))
      return fe_parse_close_brace(p, open);
    size_t before = p->at;
    parse_setting_into(p, item);
    p->depth = 0;
    if (p->at == before)
      p->at++;
  }
}

// --- files ---------------------------------------------------------------------------------------
static bool parse_bindings(fe_parser *p, ast_item *item, ast_item_kind kind) {
  item->kind = kind;
  fe_parse_take(p);
  do {
    ast_binding b = {0};
    fe_parse_skip_newlines(p); // after a comma
    if (!fe_parse_name(p, &b.name, "a name") || !fe_parse_expect(p, TOK_ASSIGN, "after the name") ||
        !(b.value = fe_parse_expr(p)))
      return false;
    IR_PUSH(p->arena, item->bindings, b);
  } while (fe_parse_accept(p, TOK_COMMA));
  return true;
}

static bool parse_import(fe_parser *p, ast_item *item) {
  item->kind = AST_IMPORT;
  fe_parse_take(p);
  const fe_token *t = fe_parse_peek(p);
  if (!fe_parse_expect(p, TOK_STRING, "with a file name"))
    return false;
  item->path = t->text;
  item->path_loc = t->loc;
  return true;
}

static void unknown_item(fe_parser *p, const fe_token *t) {
  static const char *const words[] = {"let",       "flag",     "block",      "model",
                                      "data",      "optim",    "train",      "import",
                                      "optimizer", "schedule", "initializer"};
  ir_diag *n =
      fe_parse_fail(p, t, "expected let, flag, block, model, data, optim, train or import");
  if (!n || fe_parse_help_comment(p, n, t))
    return;
  const char *near =
      t->kind == TOK_NAME ? diag_nearest(t->text, words, sizeof words / sizeof words[0]) : NULL;
  if (near)
    diag_help(n, "did you mean '%s'?", near);
}

static bool parse_item(fe_parser *p, ast_item *item) {
  const fe_token *t = fe_parse_peek(p);
  if (t->kind == TOK_LET)
    return parse_bindings(p, item, AST_LET);
  if (t->kind == TOK_FLAG)
    return parse_bindings(p, item, AST_FLAG);
  if (t->kind == TOK_IMPORT)
    return parse_import(p, item);
  if (t->kind == TOK_BLOCK || t->kind == TOK_MODEL)
    return parse_fn(p, item, t->kind == TOK_BLOCK ? AST_BLOCK : AST_MODEL);
  if (fe_parse_is_word(t, "optimizer"))
    return parse_fn(p, item, AST_OPTIMIZER);
  if (fe_parse_is_word(t, "schedule"))
    return parse_fn(p, item, AST_SCHEDULE);
  if (fe_parse_is_word(t, "initializer"))
    return parse_fn(p, item, AST_INITIALIZER);
  if (fe_parse_is_word(t, "data"))
    return parse_section(p, item, AST_DATA);
  if (fe_parse_is_word(t, "optim"))
    return parse_section(p, item, AST_OPTIM);
  if (fe_parse_is_word(t, "train"))
    return parse_section(p, item, AST_TRAIN);
  unknown_item(p, t);
  return false;
}

static void parse_item_into(fe_parser *p, ast_file *file) {
  size_t start = p->at;
  ast_item *item = IR_NEW(p->arena, ast_item);
  bool ok = parse_item(p, item);
  if (ok && !fe_parse_at_separator(p)) {
    ir_diag *d =
        fe_parse_fail(p, fe_parse_peek(p), "expected a new line, found %s", fe_parse_found(p));
    fe_parse_help_comment(p, d, &p->toks[start]);
    ok = false;
  }
  if (ok)
    IR_PUSH(p->arena, file->items, item);
  else
    fe_parse_recover(p, start);
  if (p->at == start)
    p->at++;
  p->depth = 0;
}

ast_file *fe_parse(ir_arena *a, const ir_source *src, ir_diags *d) {
  fe_tokens toks = fe_lex(a, src, d);
  fe_parser p = {.arena = a, .diags = d, .toks = toks.list.at};
  ast_file *file = IR_NEW(a, ast_file);
  file->src = src;
  for (fe_parse_skip_separators(&p); p.toks[p.at].kind != TOK_END; fe_parse_skip_separators(&p)) {
    if (p.toks[p.at].kind == TOK_RBRACE && p.at && p.toks[p.at - 1].kind == TOK_RBRACE) {
      p.at++; // left over from a broken statement list
      continue;
    }
    parse_item_into(&p, file);
  }
  return file;
}
