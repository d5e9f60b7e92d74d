// names.c: unique node names inside a function.
//
// Graphs have tens of thousands of nodes and most hints repeat ("add", "mul"), so the
// next free number of each base is remembered: naming is constant time per node.
#include "ir/internal.h"
#include "ir/builder.h"

#include <ctype.h>
#include <string.h>

static bool name_char(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '.';
}

bool ir_valid_name(const char *s) {
  if (!*s)
    return false;
  for (; *s; s++)
    if (!name_char(*s))
      return false;
  return true;
}

static char *clean(ir_arena *a, const char *hint) {
  char *s = ir_strdup(a, *hint ? hint : "_");
  for (char *p = s; *p; p++)
    if (!name_char(*p))
      *p = '_';
  return s;
}

// "relu.12" -> "relu" when the number is one of ours, so that copies of copies do not
// grow to relu.12.2.2; "layer.3" stays as it is when nobody numbered "layer".
static void drop_own_number(const ir_func *f, char *name) {
  char *dot = strrchr(name, '.');
  if (!dot || dot == name || !dot[1] || strspn(dot + 1, "0123456789") != strlen(dot + 1))
    return;
  *dot = 0;
  if (!ir_map_get(f->name_counts, name))
    *dot = '.';
}

static const char *numbered(ir_func *f, char *base) {
  ir_arena *a = f->module->arena;
  drop_own_number(f, base);
  uintptr_t next = (uintptr_t)ir_map_get(f->name_counts, base);
  if (next < 2)
    next = 2;
  char *name = ir_alloc(a, strlen(base) + 24);
  do
    sprintf(name, "%s.%llu", base, (unsigned long long)next++);
  while (ir_map_get(f->names, name));
  ir_map_put(f->name_counts, base, (void *)next);
  return name;
}

void ir_name_node(ir_func *f, ir_node *n, const char *hint) {
  char *name = clean(f->module->arena, hint);
  n->name = ir_map_get(f->names, name) ? numbered(f, name) : name;
  ir_map_put(f->names, n->name, n);
}

void ir_rename(ir_func *f, ir_node *n, const char *hint) {
  if (strcmp(n->name, hint) == 0 || n->op == IR_WRITE)
    return;
  ir_map_put(f->names, n->name, NULL);
  ir_name_node(f, n, hint);
}

static void put_names(ir_func *f) {
  f->names = ir_map_new_lent(f->module->arena, f->nodes.num);
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op != IR_WRITE)
      ir_map_put(f->names, f->nodes.at[i]->name, f->nodes.at[i]);
}

// Most nodes stay, and to put each name again is dear. Names that are free fill the map, though.
void ir_names_forget(ir_func *f) {
  ir_arena *a = f->module->arena;
  if (ir_map_count(f->names) > 2 * f->nodes.num) {
    put_names(f);
    return;
  }
  ir_arena_mark here = ir_arena_here(a);
  bool *stays = IR_NEW_ARRAY(a, bool, f->next_id + 1);
  for (size_t i = 0; i < f->nodes.num; i++)
    stays[f->nodes.at[i]->id] = true;
  for (size_t i = 0; i < ir_map_count(f->names); i++) {
    const ir_node *n = ir_map_value(f->names, i);
    if (n && !stays[n->id])
      ir_map_put_at(f->names, i, NULL);
  }
  ir_arena_back(a, here);
}

const char *ir_write_name(ir_arena *a, const ir_state *s) {
  return ir_format(a, "@%s", s->name);
}
