// optim_settings.c: the sections optim { } and optim NAME { }: their keys are checked here; values
// are evaluated where they are used (optim.c, losses.c).
#include "frontend/check.h"

#include <string.h>

static const char *const keys[] = {"clip", "schedule", "freeze"};
enum { NUM_KEYS = sizeof keys / sizeof keys[0] };

static bool has_own_optim(const fe *c, const char *loss) {
  for (size_t i = 0; i < c->sections.num; i++) {
    const ast_item *item = c->sections.at[i];
    if (item->kind == AST_OPTIM && item->of.text && strcmp(item->of.text, loss) == 0)
      return true;
  }
  return false;
}

static bool same_or_none(const char *a, const char *b) {
  return a && b ? strcmp(a, b) == 0 : a == b;
}

const ast_setting *fe_optim_setting(const fe *c, const char *loss, const char *key) {
  const char *of = loss && has_own_optim(c, loss) ? loss : NULL;
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

void fe_check_optim_keys(fe *c) {
  ir_map *seen = ir_map_new(c->arena);
  for (size_t i = 0; i < c->sections.num; i++)
    if (c->sections.at[i]->kind == AST_OPTIM)
      check_keys(c, c->sections.at[i], seen);
}
