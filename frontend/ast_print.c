// ast_print.c: canonical source of a syntax tree (--emit=ast). Parses again to the same text:
// two spaces of indentation, one statement a line, only the parentheses that precedence needs.
#include "frontend/frontend.h"

#include <string.h>

typedef struct printer {
  ir_buf *out;
  int indent;
} printer;

// Precedence of each form, as in parse_expr.c; higher binds tighter.
enum {
  LEVEL_IF = 0,
  LEVEL_OR,
  LEVEL_AND,
  LEVEL_NOT,
  LEVEL_COMPARE,
  LEVEL_ADD,
  LEVEL_MUL,
  LEVEL_NEG,
  LEVEL_POW,
  LEVEL_POSTFIX
};

static const struct {
  const char *text;
  int level;
} ops[AST_NUM_OPS] = {
    [AST_OP_ADD] = {"+", LEVEL_ADD},       [AST_OP_SUB] = {"-", LEVEL_ADD},
    [AST_OP_MUL] = {"*", LEVEL_MUL},       [AST_OP_DIV] = {"/", LEVEL_MUL},
    [AST_OP_FLOORDIV] = {"//", LEVEL_MUL}, [AST_OP_MOD] = {"%", LEVEL_MUL},
    [AST_OP_MATMUL] = {"@", LEVEL_MUL},    [AST_OP_POW] = {"**", LEVEL_POW},
    [AST_OP_EQ] = {"==", LEVEL_COMPARE},   [AST_OP_NE] = {"!=", LEVEL_COMPARE},
    [AST_OP_LT] = {"<", LEVEL_COMPARE},    [AST_OP_LE] = {"<=", LEVEL_COMPARE},
    [AST_OP_GT] = {">", LEVEL_COMPARE},    [AST_OP_GE] = {">=", LEVEL_COMPARE},
    [AST_OP_AND] = {"and", LEVEL_AND},     [AST_OP_OR] = {"or", LEVEL_OR},
    [AST_OP_NEG] = {"-", LEVEL_NEG},       [AST_OP_NOT] = {"not", LEVEL_NOT},
};

const char *ast_op_text(ast_op op) {
  return ops[op].text;
}

static int level_of(const ast_expr *e) {
  if (e->kind == AST_IF || e->kind == AST_RANGE)
    return LEVEL_IF;
  if (e->kind == AST_FRACTION) // 90% - 1 is a remainder
    return LEVEL_OR;
  if (e->kind == AST_UNARY || e->kind == AST_BINARY)
    return ops[e->op].level;
  return LEVEL_POSTFIX;
}

static void print_expr(printer *p, const ast_expr *e, int level);

static void print_items(printer *p, const ast_expr *e) {
  for (size_t i = 0; i < e->items.num; i++) {
    if (i)
      ir_buf_puts(p->out, ", ");
    print_expr(p, e->items.at[i], LEVEL_IF);
  }
}

static void print_call(printer *p, const ast_expr *e) {
  ir_buf_printf(p->out, "%s(", e->text);
  for (size_t i = 0; i < e->args.num; i++) {
    const ast_arg *arg = &e->args.at[i];
    if (i)
      ir_buf_puts(p->out, ", ");
    if (arg->name)
      ir_buf_printf(p->out, "%s=", arg->name);
    print_expr(p, arg->value, LEVEL_IF);
  }
  ir_buf_puts(p->out, ")");
  if (e->label)
    ir_buf_printf(p->out, " as %s", e->label);
  if (e->again)
    ir_buf_printf(p->out, " with %s", e->again);
}

static void print_binary(printer *p, const ast_expr *e) {
  int level = ops[e->op].level;
  // Left operands of equal level need no parentheses, except where nothing chains or ** goes right.
  bool strict = level == LEVEL_COMPARE || level == LEVEL_POW;
  print_expr(p, e->a, level + strict);
  ir_buf_printf(p->out, " %s ", ops[e->op].text);
  print_expr(p, e->b, e->op == AST_OP_POW ? LEVEL_NEG : level + 1);
}

static void print_slice(printer *p, const ast_expr *e) {
  if (e->a)
    print_expr(p, e->a, LEVEL_IF);
  ir_buf_puts(p->out, ":");
  if (e->b)
    print_expr(p, e->b, LEVEL_IF);
  if (e->c) {
    ir_buf_puts(p->out, ":");
    print_expr(p, e->c, LEVEL_IF);
  }
}

static void print_if(printer *p, const ast_expr *e) {
  print_expr(p, e->a, LEVEL_OR);
  ir_buf_puts(p->out, " if ");
  print_expr(p, e->b, LEVEL_OR);
  if (e->c) {
    ir_buf_puts(p->out, " else ");
    print_expr(p, e->c, LEVEL_IF);
  }
}

static void print_bare(printer *p, const ast_expr *e) {
  switch (e->kind) {
  case AST_INT:
  case AST_FLOAT:
  case AST_NAME:
    ir_buf_puts(p->out, e->text);
    return;
  case AST_FRACTION:
    ir_buf_printf(p->out, "%s%%", e->text);
    return;
  case AST_STRING:
    ast_print_text(e->text, p->out);
    return;
  case AST_BOOL:
    ir_buf_puts(p->out, e->i ? "true" : "false");
    return;
  case AST_ELLIPSIS:
    ir_buf_puts(p->out, "...");
    return;
  case AST_LIST:
    ir_buf_puts(p->out, "[");
    print_items(p, e);
    ir_buf_puts(p->out, "]");
    return;
  case AST_TUPLE:
    ir_buf_puts(p->out, "(");
    print_items(p, e);
    ir_buf_puts(p->out, e->items.num == 1 ? ",)" : ")");
    return;
  case AST_UNARY:
    ir_buf_puts(p->out, e->op == AST_OP_NOT ? "not " : "-");
    print_expr(p, e->a, ops[e->op].level);
    return;
  case AST_BINARY:
    print_binary(p, e);
    return;
  case AST_TRANSPOSE:
    print_expr(p, e->a, LEVEL_POSTFIX);
    ir_buf_puts(p->out, "^T");
    return;
  case AST_CALL:
    print_call(p, e);
    return;
  case AST_INDEX:
    print_expr(p, e->a, LEVEL_POSTFIX);
    ir_buf_puts(p->out, "[");
    print_items(p, e);
    ir_buf_puts(p->out, "]");
    return;
  case AST_SLICE:
    print_slice(p, e);
    return;
  case AST_IF:
    print_if(p, e);
    return;
  case AST_RANGE:
    print_expr(p, e->a, LEVEL_OR);
    ir_buf_puts(p->out, "..");
    print_expr(p, e->b, LEVEL_OR);
    return;
  }
}

static void print_expr(printer *p, const ast_expr *e, int level) {
  bool parens = level_of(e) < level;
  if (parens)
    ir_buf_puts(p->out, "(");
  print_bare(p, e);
  if (parens)
    ir_buf_puts(p->out, ")");
}

static void print_type(printer *p, const ast_type *t) {
  if (t->like) {
    ir_buf_printf(p->out, "like %s", t->like);
    return;
  }
  ir_buf_printf(p->out, "%s[", t->dtype);
  for (size_t i = 0; i < t->dims.num; i++) {
    if (i)
      ir_buf_puts(p->out, ",");
    print_expr(p, t->dims.at[i], LEVEL_IF);
  }
  ir_buf_puts(p->out, "]");
}

// --- statements ----------------------------------------------------------------------------------
static void print_indent(printer *p) {
  for (int i = 0; i < p->indent; i++)
    ir_buf_puts(p->out, "  ");
}

static void print_stmt(printer *p, const ast_stmt *s);

static void print_body(printer *p, const ast_body *body) {
  ir_buf_puts(p->out, " {\n");
  p->indent++;
  for (size_t i = 0; i < body->list.num; i++) {
    print_indent(p);
    print_stmt(p, body->list.at[i]);
    ir_buf_puts(p->out, "\n");
  }
  p->indent--;
  print_indent(p);
  ir_buf_puts(p->out, "}");
}

static void print_when(printer *p, const ast_stmt *s) {
  ir_buf_puts(p->out, "if ");
  print_expr(p, s->value, LEVEL_IF);
  print_body(p, &s->body);
  if (!s->has_else)
    return;
  ir_buf_puts(p->out, " else");
  print_body(p, &s->other);
}

static void print_values(printer *p, const char *word, const ast_stmt *s) {
  for (size_t i = 0; i < s->values.num; i++) {
    ir_buf_puts(p->out, i ? ", " : word);
    print_expr(p, s->values.at[i], LEVEL_IF);
  }
}

static void print_names(printer *p, const ast_stmt *s) {
  for (size_t i = 0; i < s->names.num; i++)
    ir_buf_printf(p->out, "%s%s", i ? ", " : "", s->names.at[i].text);
}

static void print_loss(printer *p, const ast_stmt *s) {
  ir_buf_puts(p->out, "loss ");
  if (s->names.num)
    ir_buf_printf(p->out, "%s = ", s->names.at[0].text);
  print_expr(p, s->value, LEVEL_IF);
  for (size_t i = 0; i < s->over.num; i++)
    ir_buf_printf(p->out, "%s%s", i ? ", " : " over ", s->over.at[i].text);
}

static void print_stmt(printer *p, const ast_stmt *s) {
  switch (s->kind) {
  case AST_PARAM:
  case AST_STATE:
    ir_buf_printf(p->out, "%s %s: ", s->word, s->names.at[0].text);
    print_type(p, s->type);
    ir_buf_puts(p->out, " = ");
    break;
  case AST_ASSIGN:
  case AST_STORE:
    print_names(p, s);
    ir_buf_puts(p->out, s->kind == AST_STORE ? " <- " : " = ");
    break;
  case AST_METRIC:
  case AST_OUTPUT:
    ir_buf_printf(p->out, "%s %s = ", s->kind == AST_METRIC ? "metric" : "output",
                  s->names.at[0].text);
    break;
  case AST_LOSS:
    print_loss(p, s);
    return;
  case AST_REPEAT:
    ir_buf_puts(p->out, "repeat ");
    if (s->names.num)
      ir_buf_printf(p->out, "%s in ", s->names.at[0].text);
    print_expr(p, s->value, LEVEL_IF);
    ir_buf_puts(p->out, s->shared ? " shared" : "");
    print_body(p, &s->body);
    return;
  case AST_WHEN:
    print_when(p, s);
    return;
  case AST_RETURN:
    print_values(p, "return ", s);
    return;
  case AST_ERROR:
    print_values(p, "error ", s);
    return;
  case AST_EXPR:
    break;
  }
  print_expr(p, s->value, LEVEL_IF);
}

// --- items ---------------------------------------------------------------------------------------
static void print_fn(printer *p, const ast_fn *fn) {
  static const char *const words[] = {"block", "model", "optimizer", "schedule", "initializer"};
  ir_buf_printf(p->out, "%s %s(", words[fn->kind], fn->name.text);
  for (size_t i = 0; i < fn->params.num; i++) {
    const ast_param *q = &fn->params.at[i];
    ir_buf_printf(p->out, "%s%s", i ? ", " : "", q->name.text);
    if (q->type) {
      ir_buf_puts(p->out, ": ");
      print_type(p, q->type);
    }
    if (q->value) {
      ir_buf_puts(p->out, q->type ? " = " : "=");
      print_expr(p, q->value, LEVEL_IF);
    }
  }
  ir_buf_puts(p->out, ")");
  for (size_t i = 0; i < fn->results.num; i++) {
    ir_buf_puts(p->out, i ? ", " : " -> ");
    print_type(p, fn->results.at[i]);
  }
  print_body(p, &fn->body);
}

static void print_setting(printer *p, const ast_setting *s) {
  if (s->key.text)
    ir_buf_printf(p->out, "%s%s", s->key.text, s->value ? " = " : "");
  if (s->value)
    print_expr(p, s->value, LEVEL_IF);
  if (!s->has_every)
    return;
  ir_buf_puts(p->out, " every ");
  if (s->every)
    print_expr(p, s->every, LEVEL_IF);
  else
    ir_buf_puts(p->out, "epoch");
}

static void print_section(printer *p, const ast_item *item, const char *word) {
  ir_buf_printf(p->out, "%s%s%s {\n", word, item->of.text ? " " : "",
                item->of.text ? item->of.text : "");
  for (size_t i = 0; i < item->settings.num; i++) {
    ir_buf_puts(p->out, "  ");
    print_setting(p, &item->settings.at[i]);
    ir_buf_puts(p->out, "\n");
  }
  ir_buf_puts(p->out, "}");
}

static void print_bindings(printer *p, const ast_item *item, const char *word) {
  for (size_t i = 0; i < item->bindings.num; i++) {
    ir_buf_printf(p->out, "%s%s = ", i ? ", " : word, item->bindings.at[i].name.text);
    print_expr(p, item->bindings.at[i].value, LEVEL_IF);
  }
}

static void print_item(printer *p, const ast_item *item) {
  switch (item->kind) {
  case AST_LET:
    print_bindings(p, item, "let ");
    return;
  case AST_FLAG:
    print_bindings(p, item, "flag ");
    return;
  case AST_IMPORT:
    ir_buf_puts(p->out, "import ");
    ast_print_text(item->path, p->out);
    return;
  case AST_FN:
    print_fn(p, item->fn);
    return;
  case AST_DATA:
    print_section(p, item, "data");
    return;
  case AST_OPTIM:
    print_section(p, item, "optim");
    return;
  case AST_TRAIN:
    print_section(p, item, "train");
    return;
  }
}

void ast_print_text(const char *text, ir_buf *out) {
  ir_buf_puts(out, "\"");
  for (; *text; text++) {
    if (*text == '\n')
      ir_buf_puts(out, "\\n");
    else if (*text == '\t')
      ir_buf_puts(out, "\\t");
    else
      ir_buf_printf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
  }
  ir_buf_puts(out, "\"");
}

void ast_print(const ast_file *f, ir_buf *out) {
  printer p = {out, 0};
  for (size_t i = 0; i < f->items.num; i++) {
    if (i && f->items.at[i]->kind >= AST_FN)
      ir_buf_puts(out, "\n");
    print_item(&p, f->items.at[i]);
    ir_buf_puts(out, "\n");
  }
}
