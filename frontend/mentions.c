// mentions.c: where a name stands in a file, also in what is not evaluated: branches that constants do not take, blocks
// that nobody uses.
#include "frontend/check.h"

#include <string.h>

static bool in_expr(const ast_expr *e, const char *name) {
  if (!e)
    return false;
  if (e->kind == AST_NAME && strcmp(e->text, name) == 0)
    return true;
  bool found = in_expr(e->a, name) || in_expr(e->b, name) || in_expr(e->c, name);
  for (size_t i = 0; i < e->items.num && !found; i++)
    found = in_expr(e->items.at[i], name);
  for (size_t i = 0; i < e->args.num && !found; i++)
    found = in_expr(e->args.at[i].value, name);
  return found;
}

static bool in_body(const ast_body *body, const char *name) {
  bool found = false;
  for (size_t i = 0; i < body->list.num && !found; i++) {
    const ast_stmt *s = body->list.at[i];
    found = in_expr(s->value, name) || in_body(&s->body, name) || in_body(&s->other, name);
    for (size_t k = 0; k < s->values.num && !found; k++)
      found = in_expr(s->values.at[k], name);
  }
  return found;
}

// A parameter of that name is another thing.
static bool in_fn(const ast_fn *fn, const char *name) {
  bool found = false;
  for (size_t i = 0; i < fn->params.num; i++) {
    if (strcmp(fn->params.at[i].name.text, name) == 0)
      return false;
    found = found || in_expr(fn->params.at[i].value, name);
  }
  return found || in_body(&fn->body, name);
}

static bool in_settings(const ast_item *item, const char *name) {
  bool found = false;
  for (size_t i = 0; i < item->settings.num && !found; i++)
    found = in_expr(item->settings.at[i].value, name) || in_expr(item->settings.at[i].every, name);
  return found;
}

bool fe_mentions(const ast_file *file, const char *name) {
  bool found = false;
  for (size_t i = 0; i < file->items.num && !found; i++) {
    const ast_item *item = file->items.at[i];
    found = in_settings(item, name) || (item->fn && in_fn(item->fn, name));
  }
  return found;
}
