// parse.c: reading the text form of a module (docs/ir.md): header, states, data,
// config. Functions are in parse_func.c. After errors it goes on with the next line, so
// that one run shows them all.
#include "ir/parse.h"

#include "ir/builder.h"
#include "ir/internal.h"
#include "ir/settings.h"

#include <string.h>

void parse_suggest(ir_diag *d, const char *word, const char *const *names, size_t num) {
  const char *near = diag_nearest(word, names, num);
  if (near)
    diag_help(d, "did you mean '%s'?", near);
}

// --- header ----------------------------------------------------------------------------------
static bool parse_header(ir_parser *p) {
  ir_scan *s = &p->s;
  int64_t version = 0;
  ir_loc none = {s->src, 1, 1, 1};
  bool line = scan_line(s);
  ir_loc at = line ? scan_here(s) : none;
  static const char magic[] = "mltc-ir";
  size_t n = sizeof magic - 1;
  bool ok = line && (size_t)(s->end - s->at) > n && memcmp(s->at, magic, n) == 0;
  if (!ok) {
    ir_diag *d = diag_error(s->diags, at, "E0101", "this is not an IR file");
    diag_help(d, "an IR file begins with the line 'mltc-ir 1'");
    return false;
  }
  s->at += n;
  at = scan_here(s);
  if (!scan_int(s, &version))
    return false;
  if (version != 1) {
    diag_error(s->diags, at, "E0101", "version %lld of the IR is not known", (long long)version);
    return false;
  }
  return scan_end(s, NULL);
}

static bool parse_module_name(ir_parser *p) {
  ir_scan *s = &p->s;
  bool line = scan_line(s);
  ir_loc at = line ? scan_here(s) : (ir_loc){s->src, s->line, 1, 1};
  const char *from = s->at;
  bool ok = line && s->end - from > 6 && memcmp(from, "module", 6) == 0;
  if (!ok) {
    diag_error(s->diags, at, "E0101", "the second line must be 'module NAME'");
    return false;
  }
  s->at += 6;
  const char *name = scan_name(s, "the module's name");
  if (!name || !scan_end(s, NULL))
    return false;
  p->m->name = name;
  return true;
}

// --- settings ----------------------------------------------------------------------------------
static bool parse_setting_value(ir_parser *p, ir_setting *out) {
  ir_scan *s = &p->s;
  if (scan_peek(s, '"')) {
    out->kind = IR_SET_STR;
    return (out->str = scan_string(s)) != NULL;
  }
  if (scan_peek(s, '$')) {
    out->kind = IR_SET_FLAG;
    return (out->str = scan_sigil_name(s, '$', "a flag such as $lr")) != NULL;
  }
  out->kind = IR_SET_NUM;
  return scan_number(s, &out->num);
}

// KEY = VALUE, beside the settings that are there already: of two with one key, only one would count.
static bool parse_setting(ir_parser *p, const ir_setting *there, size_t num, ir_setting *out) {
  ir_loc at = scan_here(&p->s);
  if (!(out->key = scan_name(&p->s, "a setting's name")) || !scan_expect(&p->s, '=', "'='") ||
      !parse_setting_value(p, out))
    return false;
  for (size_t i = 0; i < num; i++)
    if (strcmp(there[i].key, out->key) == 0) {
      diag_error(p->s.diags, at, "E0107", "setting '%s' is there twice", out->key);
      return false;
    }
  return true;
}

// What reads settings leaves others alone: a misspelt one would change nothing without a word.
static void warn_setting(ir_parser *p, ir_loc at, const char *key) {
  if (ir_find_setting_rule(key))
    return;
  const char *keys[IR_NUM_SETTINGS];
  for (size_t i = 0; i < IR_NUM_SETTINGS; i++)
    keys[i] = ir_setting_rules[i].key;
  ir_diag *d = diag_warning(p->s.diags, at, "W0112", "nothing reads the setting '%s'", key);
  parse_suggest(d, key, keys, IR_NUM_SETTINGS);
}

static bool parse_config(ir_parser *p) {
  ir_setting set = {0};
  scan_at_end(&p->s);
  ir_loc at = scan_here(&p->s);
  if (!parse_setting(p, p->m->config.at, p->m->config.num, &set) || !scan_end(&p->s, NULL))
    return false;
  IR_PUSH(p->m->arena, p->m->config, set);
  warn_setting(p, at, set.key);
  return true;
}

// --- states --------------------------------------------------------------------------------------
static bool parse_role(ir_parser *p, ir_role *out) {
  scan_at_end(&p->s);
  const char *from = p->s.at, *word = scan_name(&p->s, "a role");
  if (!word)
    return false;
  for (int i = 0; i < IR_NUM_ROLES; i++)
    if (strcmp(ir_role_names[i], word) == 0) {
      *out = (ir_role)i;
      return true;
    }
  ir_diag *d = diag_error(p->s.diags, scan_from(&p->s, from), "E0110", "unknown role '%s'", word);
  parse_suggest(d, word, ir_role_names, IR_NUM_ROLES);
  return false;
}

static const ir_state *parse_state_name(ir_parser *p) {
  const char *from = p->s.at, *name = scan_name(&p->s, "a state");
  const ir_state *s = name ? ir_find_state(p->m, name) : NULL;
  if (name && !s)
    diag_error(p->s.diags, scan_from(&p->s, from), "E0108", "there is no state '%s' above", name);
  return s;
}

static const char *const state_attrs[] = {"role", "value", "as"};
enum { ATTR_ROLE, ATTR_VALUE, ATTR_AS, NUM_STATE_ATTRS };

// Which attribute `key`, at `from`, is; -1: none, or one of `had`.
static int state_attr(ir_parser *p, const char *from, const char *key, const bool *had) {
  int i = 0;
  while (i < NUM_STATE_ATTRS && strcmp(key, state_attrs[i]) != 0)
    i++;
  if (i < NUM_STATE_ATTRS && !had[i])
    return i;
  ir_loc at = scan_from(&p->s, from);
  if (i < NUM_STATE_ATTRS)
    diag_error(p->s.diags, at, "E0104", "attribute '%s' is there twice", key);
  else
    parse_suggest(diag_error(p->s.diags, at, "E0104", "a state has no attribute '%s'", key), key,
                  state_attrs, NUM_STATE_ATTRS);
  return -1;
}

// role=buffer value=1 as=w
static bool parse_state_attrs(ir_parser *p, bool *has_role, ir_state *to) {
  bool had[NUM_STATE_ATTRS] = {false};
  while (!scan_at_end(&p->s)) {
    const char *from = p->s.at;
    if (p->s.end - from > 4 && memcmp(from, "loc(", 4) == 0)
      break;
    const char *key = scan_name(&p->s, "role=, value= or as=");
    if (!key || !scan_expect(&p->s, '=', "'='"))
      return false;
    int attr = state_attr(p, from, key, had);
    if (attr < 0)
      return false;
    had[attr] = true;
    bool ok = attr == ATTR_ROLE    ? parse_role(p, &to->role)
              : attr == ATTR_VALUE ? scan_number(&p->s, &to->value)
                                   : (to->as = parse_state_name(p)) != NULL;
    if (!ok)
      return false;
  }
  *has_role = had[ATTR_ROLE];
  return true;
}

static bool parse_state(ir_parser *p) {
  ir_scan *s = &p->s;
  ir_loc at = scan_here(s), loc = {0};
  const char *name = scan_name(s, "the state's name");
  ir_type type;
  bool has_role = false;
  ir_state given = {.role = IR_ROLE_PARAM};
  if (!name || !scan_expect(s, ':', "':' and a type") || !scan_type(s, &type) ||
      !parse_state_attrs(p, &has_role, &given) || !scan_end(s, &loc))
    return false;
  if (!has_role) {
    diag_help(diag_error(s->diags, at, "E0104", "state '%s' needs a role", name),
              "add role=param, role=buffer, role=flag, ...");
    return false;
  }
  if (ir_find_state(p->m, name)) {
    diag_error(s->diags, at, "E0107", "state '%s' is there twice", name);
    return false;
  }
  ir_type checked;
  const char *why;
  if (!ir_infer(s->arena, IR_INPUT, 0, NULL, 0, NULL, &type, &checked, &why)) {
    diag_error(s->diags, at, "E0105", "%s", why);
    return false;
  }
  ir_state *state = ir_state_new(p->m, name, type, given.role, loc);
  state->value = given.value;
  state->as = given.as;
  IR_PUSH(s->arena, p->state_locs, at);
  return true;
}

// --- data ----------------------------------------------------------------------------------------
static bool parse_data_files(ir_parser *p, ir_data *d) {
  if (!scan_expect(&p->s, '(', "'('"))
    return false;
  while (!scan_peek(&p->s, ')')) {
    const char *file;
    if ((d->files.num && !scan_expect(&p->s, ',', "',' or ')'")) || !(file = scan_string(&p->s)))
      return false;
    IR_PUSH(p->m->arena, d->files, file);
  }
  p->s.at++;
  return true;
}

static bool parse_data_settings(ir_parser *p, ir_data *d) {
  if (!scan_accept(&p->s, '{'))
    return true;
  do {
    ir_setting set = {0};
    if (!parse_setting(p, d->settings.at, d->settings.num, &set))
      return false;
    IR_PUSH(p->m->arena, d->settings, set);
  } while (scan_accept(&p->s, ','));
  return scan_expect(&p->s, '}', "',' or '}'");
}

static bool parse_data(ir_parser *p) {
  ir_loc at = scan_here(&p->s);
  ir_data *d = IR_NEW(p->m->arena, ir_data);
  if (!(d->name = scan_name(&p->s, "the data's name")) || !scan_expect(&p->s, '=', "'='") ||
      !(d->format = scan_name(&p->s, "a format such as idx")) || !parse_data_files(p, d) ||
      !parse_data_settings(p, d) || !scan_end(&p->s, &d->loc))
    return false;
  for (size_t i = 0; i < p->m->data.num; i++)
    if (strcmp(p->m->data.at[i]->name, d->name) == 0) {
      diag_error(p->s.diags, at, "E0107", "data '%s' is there twice", d->name);
      return false;
    }
  IR_PUSH(p->m->arena, p->m->data, d);
  return true;
}

// --- functions -----------------------------------------------------------------------------------
// Between a function's name and its '{'.
static bool parse_ordered(ir_parser *p, bool *out) {
  if (scan_peek(&p->s, '{') || scan_at_end(&p->s))
    return true;
  ir_loc at = scan_here(&p->s);
  const char *word = scan_name(&p->s, "'{'");
  *out = word && !strcmp(word, "ordered");
  if (word && !*out)
    diag_error(p->s.diags, at, "E0102", "expected 'ordered' or '{', found '%s'", word);
  return *out;
}

static bool parse_func(ir_parser *p) {
  ir_loc at = scan_here(&p->s);
  const char *name = scan_name(&p->s, "the function's name");
  bool ordered = false;
  bool ok =
      name && parse_ordered(p, &ordered) && scan_expect(&p->s, '{', "'{'") && scan_end(&p->s, NULL);
  if (name && ir_find_func(p->m, name)) {
    diag_error(p->s.diags, at, "E0107", "function '%s' is there twice", name);
    ok = false;
  }
  // The body is read in any case: its errors are worth knowing, and its lines would
  // otherwise be taken for lines of the module.
  p->f = ir_func_new(p->m, name ? name : "_");
  p->f->ordered = ordered;
  p->broken = ir_map_new(p->s.arena);
  memset(&p->node_locs, 0, sizeof p->node_locs);
  parse_func_body(p, at);
  ir_func_locs locs = {at, p->node_locs.at};
  IR_PUSH(p->s.arena, p->func_locs, locs);
  return ok;
}

static const struct {
  const char *word;
  bool (*parse)(ir_parser *p);
} statements[] = {
    {"state", parse_state}, {"data", parse_data}, {"config", parse_config}, {"func", parse_func}};
enum { NUM_STATEMENTS = sizeof statements / sizeof *statements };

static void parse_statement(ir_parser *p) {
  ir_loc at = scan_here(&p->s);
  const char *word = scan_name(&p->s, "state, data, config or func");
  if (!word)
    return;
  const char *names[NUM_STATEMENTS];
  for (int i = 0; i < NUM_STATEMENTS; i++) {
    names[i] = statements[i].word;
    if (strcmp(word, names[i]) == 0) {
      statements[i].parse(p);
      return;
    }
  }
  ir_diag *d =
      diag_error(p->s.diags, at, "E0102", "expected state, data, config or func, found '%s'", word);
  parse_suggest(d, word, names, NUM_STATEMENTS);
}

// --- what is worth a warning ---------------------------------------------------------------------
static void warn_output(ir_parser *p, size_t func, const ir_result *r, int64_t samples) {
  const ir_type *t = &r->node->type;
  if (r->kind != IR_RESULT_OUTPUT || ir_has_rows(t, samples))
    return;
  ir_diag *d = diag_warning(p->s.diags, p->func_locs.at[func].nodes[r->node->id], "W0221",
                            "output '%s' has no row for each sample", r->name);
  diag_label(d, "this is %s, and a batch has %lld samples", ir_type_str(p->s.arena, t),
             (long long)samples);
}

static void warn_outputs(ir_parser *p) {
  const ir_func *filled = ir_batch_func(p->m);
  int64_t samples = filled ? ir_batch_size(filled) : 0;
  for (size_t i = 0; samples && i < p->m->funcs.num; i++) {
    const ir_func *f = p->m->funcs.at[i];
    for (size_t k = 0; !strcmp(f->name, "predict") && k < f->results.num; k++)
      warn_output(p, i, &f->results.at[k], samples);
  }
}

// --- the whole -----------------------------------------------------------------------------------
static ir_loc fault_loc(const ir_parser *p, const ir_fault *fault) {
  if (fault->state)
    return p->state_locs.at[fault->state->id];
  for (size_t i = 0; fault->func && i < p->m->funcs.num; i++)
    if (p->m->funcs.at[i] == fault->func) {
      const ir_func_locs *locs = &p->func_locs.at[i];
      return fault->node ? locs->nodes[fault->node->id] : locs->head;
    }
  return (ir_loc){p->s.src, 1, 1, 1};
}

static void verify_parsed(ir_parser *p) {
  ir_faults faults = {.arena = p->s.arena};
  ir_find_faults(p->m, &faults);
  for (size_t i = 0; i < faults.list.num; i++)
    diag_error(p->s.diags, fault_loc(p, &faults.list.at[i]), "E0111", "%s", faults.list.at[i].text);
}

ir_module *ir_parse(ir_arena *a, const ir_source *src, ir_diags *d) {
  size_t errors = diag_num_errors(d);
  ir_parser p = {.s = scan_new(a, src, d), .m = ir_module_new(a, "_")};
  if (!parse_header(&p) || !parse_module_name(&p))
    return NULL;
  while (scan_line(&p.s))
    parse_statement(&p);
  if (diag_num_errors(d) == errors)
    verify_parsed(&p);
  if (diag_num_errors(d) == errors)
    warn_outputs(&p);
  return diag_num_errors(d) == errors ? p.m : NULL;
}
