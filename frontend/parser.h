// parser.h: what the parts of the parser share: statements (parser.c), expressions
// (parse_expr.c), blocks, sections and files (parse_file.c).
//
// Errors: the first one of a statement is reported and sets `failed`; functions then return NULL
// up to the statement level, which skips to the next statement and goes on.
#ifndef FRONTEND_PARSER_H
#define FRONTEND_PARSER_H

#include "frontend/ast.h"
#include "frontend/lexer.h"

enum { FE_MAX_NESTING = 200, FE_MAX_TREE_DEPTH = 300 };

typedef struct fe_parser {
  ir_arena *arena;
  ir_diags *diags;
  const fe_token *toks; // ends with TOK_END
  size_t at;
  int nest;  // open ( and [: newlines are skipped while there are any
  int depth; // of recursion
  bool failed;
  const fe_token *unclosed; // where a '}' was missing last
} fe_parser;

const fe_token *fe_parse_peek(fe_parser *p); // the next token; the end is always there
const fe_token *fe_parse_take(fe_parser *p); // the same, and goes on behind it
// Takes the next token if it is of this kind.
bool fe_parse_accept(fe_parser *p, fe_token_kind kind);
// Reports `expected '(' after 'block'` and the like when the next token is another.
bool fe_parse_expect(fe_parser *p, fe_token_kind kind, const char *where);
// The same for a name, which is a `what` in the message.
bool fe_parse_name(fe_parser *p, ast_name *out, const char *what);
// The first error of a statement; NULL when nothing is reported: it is not the first, or stands on a broken line.
ir_diag *fe_parse_fail(fe_parser *p, const fe_token *at, const char *fmt, ...) IR_PRINTF(3, 4);
// Says how comments begin where a '//' stands on the line of the next token, in what starts with `first`. `d` may be NULL.
bool fe_parse_help_comment(fe_parser *p, ir_diag *d, const fe_token *first);
// Where `t`, which is in the place of a name, is a keyword.
void fe_parse_help_keyword(ir_diag *d, const fe_token *t);
// The next token, for messages.
const char *fe_parse_found(fe_parser *p);
// Takes newlines as long as there are some.
void fe_parse_skip_newlines(fe_parser *p);
// Guards recursion. False (reported) when nesting is too deep; fe_parse_leave undoes it.
bool fe_parse_enter(fe_parser *p);
void fe_parse_leave(fe_parser *p);
// From token `start` to the last one taken, as far as it is on the same line.
ir_loc fe_parse_span(const fe_parser *p, size_t start);

// A name that is this word: words that are keywords in some places only.
bool fe_parse_is_word(const fe_token *t, const char *word);

// Skips to the end of a broken statement that began at token `start`: past its line, or before the
// '}' of its list. Braces that open on the way are skipped whole.
void fe_parse_recover(fe_parser *p, size_t start);
// Where a statement may end: a newline, ';', '}' or the end. Of these the first two are skipped.
bool fe_parse_at_separator(const fe_parser *p);
void fe_parse_skip_separators(fe_parser *p);
// The first word of a line begins what only stands outside of braces, such as `data {`: a '}' is missing above.
bool fe_parse_at_item(const fe_parser *p);
// Takes the '}' that belongs to `open`. False (reported, once for all braces that are open): something else is there.
bool fe_parse_close_brace(fe_parser *p, const fe_token *open);

// NULL, or false: an error, which has been reported. Trees lie in the parser's arena.
ast_type *fe_parse_type(fe_parser *p);
bool fe_parse_body(fe_parser *p, ast_body *body); // { statements }
ast_expr *fe_parse_expr(fe_parser *p);
ast_expr *fe_parse_exprs(fe_parser *p);      // one, or a tuple of those with commas in between
ast_expr *fe_parse_range_expr(fe_parser *p); // also lo..hi

#endif
