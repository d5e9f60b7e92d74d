// lexer.h: a graph file as tokens. Newlines are tokens, because they end statements; the
// parser skips them inside ( ) and [ ], so that lists may run over lines.
#ifndef FRONTEND_LEXER_H
#define FRONTEND_LEXER_H

#include "ir/diag.h"

// TOKEN(NAME, text): punctuation and keywords, as written. Longer ones come first.
#define FE_PUNCTUATION(TOKEN)                                                                      \
  TOKEN(ELLIPSIS, "...")                                                                           \
  TOKEN(RANGE, "..")                                                                               \
  TOKEN(POWER, "**")                                                                               \
  TOKEN(FLOORDIV, "//")                                                                            \
  TOKEN(ARROW, "->")                                                                               \
  TOKEN(STORE, "<-")                                                                               \
  TOKEN(EQ, "==")                                                                                  \
  TOKEN(NE, "!=")                                                                                  \
  TOKEN(LE, "<=")                                                                                  \
  TOKEN(GE, ">=")                                                                                  \
  TOKEN(LT, "<")                                                                                   \
  TOKEN(GT, ">")                                                                                   \
  TOKEN(ASSIGN, "=")                                                                               \
  TOKEN(PLUS, "+")                                                                                 \
  TOKEN(MINUS, "-")                                                                                \
  TOKEN(STAR, "*")                                                                                 \
  TOKEN(SLASH, "/")                                                                                \
  TOKEN(PERCENT, "%")                                                                              \
  TOKEN(AT, "@")                                                                                   \
  TOKEN(CARET, "^")                                                                                \
  TOKEN(LPAREN, "(")                                                                               \
  TOKEN(RPAREN, ")")                                                                               \
  TOKEN(LBRACKET, "[")                                                                             \
  TOKEN(RBRACKET, "]")                                                                             \
  TOKEN(LBRACE, "{")                                                                               \
  TOKEN(RBRACE, "}")                                                                               \
  TOKEN(COMMA, ",")                                                                                \
  TOKEN(COLON, ":")                                                                                \
  TOKEN(SEMICOLON, ";")

#define FE_KEYWORDS(TOKEN)                                                                         \
  TOKEN(LET, "let")                                                                                \
  TOKEN(FLAG, "flag")                                                                              \
  TOKEN(BLOCK, "block")                                                                            \
  TOKEN(MODEL, "model")                                                                            \
  TOKEN(IMPORT, "import")                                                                          \
  TOKEN(PARAM, "param")                                                                            \
  TOKEN(REPEAT, "repeat")                                                                          \
  TOKEN(IN, "in")                                                                                  \
  TOKEN(IF, "if")                                                                                  \
  TOKEN(ELSE, "else")                                                                              \
  TOKEN(RETURN, "return")                                                                          \
  TOKEN(AS, "as")                                                                                  \
  TOKEN(NOT, "not")                                                                                \
  TOKEN(AND, "and")                                                                                \
  TOKEN(OR, "or")                                                                                  \
  TOKEN(TRUE, "true")                                                                              \
  TOKEN(FALSE, "false")

typedef enum fe_token_kind {
  TOK_END,
  TOK_NEWLINE,
  TOK_NAME,
  TOK_INT,
  TOK_FLOAT,
  TOK_FRACTION, // 90%: the value is 0.9
  TOK_STRING,
#define TOKEN(NAME, text) TOK_##NAME,
  FE_PUNCTUATION(TOKEN) FE_KEYWORDS(TOKEN)
#undef TOKEN
      TOK_NUM_KINDS
} fe_token_kind;

typedef struct fe_token {
  fe_token_kind kind;
  ir_loc loc;
  const char *text; // NAME, STRING (escapes resolved), numbers as written
  int64_t i;        // INT
  double num;       // INT, FLOAT, FRACTION
  // On a line that lacks a quote: what the parser does not expect there follows from that.
  bool broken;
} fe_token;

typedef struct fe_tokens {
  IR_VEC(fe_token) list; // ends with TOK_END
} fe_tokens;

fe_tokens fe_lex(ir_arena *a, const ir_source *src, ir_diags *d);
// For messages: "'('", "name", "end of line".
const char *fe_token_text(fe_token_kind kind);

#endif
