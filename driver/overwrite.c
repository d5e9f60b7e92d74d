// overwrite.c: see overwrite.h.
#include "driver/overwrite.h"
#include "driver/output.h"

#include <fnmatch.h>
#include <string.h>

// What it is made from.
static const char *find_input(const draft_subject *s, const draft *t, const char *path) {
  const char *inputs[] = {s->o->input, s->o->plan};
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
    if (inputs[i] && ir_same_file(inputs[i], path))
      return inputs[i];
  for (size_t i = 0; i < t->files.num; i++)
    if (ir_same_file(t->files.at[i], path))
      return t->files.at[i];
  return NULL;
}

// Where a trainer looks, but for --data-dir.
static bool is_data_file(const draft_subject *s, const draft *t, const char *name,
                         const char *path) {
  const char *beside = output_beside_graph(s, t->arena, name);
  return ir_same_file(name, path) || ir_same_file(beside, path) || !fnmatch(name, path, 0) ||
         !fnmatch(beside, path, 0); // patterns, too
}

static const char *find_data(const draft_subject *s, const draft *t, const char *path) {
  for (size_t i = 0; t->module && i < t->module->data.num; i++) {
    const ir_data *d = t->module->data.at[i];
    for (size_t j = 0; j < d->files.num; j++)
      if (is_data_file(s, t, d->files.at[j], path))
        return d->files.at[j];
  }
  return NULL;
}

static const char *why_not(const draft_subject *s, const draft *t, const char *path) {
  const char *input = find_input(s, t, path), *data = input ? NULL : find_data(s, t, path);
  const char *how = s->o->output ? ir_format(t->arena, "--output=%s", s->o->output)
                                 : ir_format(t->arena, "the trainer '%s'", path);
  if (!input && !data)
    return NULL;
  return ir_format(t->arena, "%s would take the place of '%s', which %s%s", how,
                   input ? input : data, input ? "it is made from" : "has the data of the graph",
                   s->o->output ? "" : "; name another one with -o");
}

// "21-fuse.ir", as the passes leave it in --keep=DIR; somebody may have changed it by hand, and compile it now.
static bool is_of_pass(const char *name) {
  size_t len = strlen(name), digits = strspn(name, "0123456789");
  return digits >= 2 && name[digits] == '-' && !strcmp(name + len - 3, ".ir");
}

static const char *find_kept(const draft_subject *s, const draft *t) {
  const char *slash = strrchr(s->o->input, '/'), *name = slash ? slash + 1 : s->o->input;
  if (!s->o->keep_dir || !is_of_pass(name) ||
      !ir_same_file(ir_format(t->arena, "%s/%s", s->o->keep_dir, name), s->o->input))
    return NULL;
  return ir_format(t->arena, "--keep=%s would write over '%s', which it is made from",
                   s->o->keep_dir, s->o->input);
}

const char *overwrite_find(const draft_subject *s, const draft *t) {
  const char *out = output_path(s, t->arena), *kept = find_kept(s, t);
  if (!out || kept)
    return kept;
  const char *rule = s->o->dependencies ? output_rule_path(t->arena, out) : NULL;
  const char *why = why_not(s, t, out);
  return why || !rule ? why : why_not(s, t, rule);
}
