// optim_settings.c: the sections optim { } and optim NAME { }: their keys are checked here; values
// are evaluated where they are used (optim.c, losses.c).
#include "frontend/check.h"

#include <string.h>

static const char *const keys[] = {"clip", "schedule", "freeze", "update_every"};
enum { NUM_KEYS = sizeof keys / sizeof keys[0] };

const ast_item *fe_own_optim(const fe *c, const char *loss) {
  for (size_t i = 0; loss && i < c->sections.num; i++) {
    const ast_item *item = c->sections.at[i];
    if (item->kind == AST_OPTIM && item->of.text && strcmp(item->of.text, loss) == 0)
      return item;
  }
  return NULL;
}

static bool same_or_none(const char *a, const char *b) {
  return a && b ? strcmp(a, b) == 0 : a == b;
}

const ast_setting *fe_optim_setting(const fe *c, const char *loss, const char *key) {
  const char *of = fe_own_optim(c, loss) ? loss : NULL;
  for (size_t i = 0; i < c->sections.num; i++) {
    const ast_item *item = c->sections.at[i];
    if (item->kind != AST_OPTIM || !same_or_none(item->of.text, of))
      continue;
    for (size_t k = 0; k < item->settings.num; k++)
      if (same_or_none(item->settings.at[k].key.text, key))
        return &item->settings.at[k];
  }
  return NULL;
}

static bool is_key(const char *name) {
  for (size_t i = 0; i < NUM_KEYS; i++)
    if (strcmp(keys[i], name) == 0)
      return true;
  return false;
}

// Of `optim NAME { }` (of NULL: `optim { }`): once in all of them.
static void check_once(fe *c, const char *of, const ast_setting *s, ir_map *seen) {
  const char *key = s->key.text;
  const char *id = ir_format(c->arena, "%s %s", of ? of : "", key ? key : "");
  if (ir_map_get(seen, id) && key)
    fe_error(c, s->key.loc, "E0301", "'%s' is given twice", key);
  else if (ir_map_get(seen, id))
    fe_error(c, s->value->loc, "E0303", "optim has more than one optimiser");
  ir_map_put(seen, id, c);
}

static void check_keys(fe *c, const ast_item *item, ir_map *seen) {
  const char *of = item->of.text;
  for (size_t k = 0; k < item->settings.num; k++) {
    const ast_setting *s = &item->settings.at[k];
    check_once(c, of, s, seen);
    if (s->key.text && !is_key(s->key.text))
      fe_unknown_setting(c, keys, NUM_KEYS, s->key, "optim");
    else if (of && s->key.text && strcmp(s->key.text, "freeze") == 0)
      fe_error(c, s->key.loc, "E0303", "'freeze' is about all parameters and stands in optim { }");
    if (s->has_every || (s->key.text && !s->value))
      fe_error(c, s->key.text ? s->key.loc : s->every_loc, "E0303", "expected key = value");
  }
}

// Names of the losses that the statements have.
static void find_losses(fe *c, const ast_body *body, ir_map *names) {
  for (size_t i = 0; i < body->list.num; i++) {
    const ast_stmt *s = body->list.at[i];
    if (s->kind == AST_LOSS && s->names.num)
      ir_map_put(names, s->names.at[0].text, c);
    find_losses(c, &s->body, names);
    find_losses(c, &s->other, names);
  }
}

static void check_losses(fe *c) {
  ir_map *names = ir_map_new(c->arena);
  if (c->model)
    find_losses(c, &c->model->body, names);
  for (size_t i = 0; i < c->sections.num; i++) {
    const ast_name *of = &c->sections.at[i]->of;
    if (!of->text || ir_map_get(names, of->text))
      continue;
    ir_diag *d = fe_error(c, of->loc, "E0304", "there is no loss '%s'", of->text);
    fe_suggest(c, d, of->text, (const ir_map *const[]){names}, 1, NULL, 0);
  }
}

void fe_check_optim_keys(fe *c) {
  ir_map *seen = ir_map_new(c->arena);
  check_losses(c);
  for (size_t i = 0; i < c->sections.num; i++)
    if (c->sections.at[i]->kind == AST_OPTIM)
      check_keys(c, c->sections.at[i], seen);
}
