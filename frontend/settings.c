// settings.c: the sections data { } and train { }: every key and value is checked here, at compile
// time, as far as it can be; nothing unknown is passed on.
#include "frontend/check.h"

#include <math.h>
#include <string.h>

// --- tables
typedef enum value_rule {
  RULE_COUNT,  // a whole number of at least 1, or a flag
  RULE_NUMBER, // a number above 0, or a flag
  RULE_SEED,   // a whole number of at least 0, or a flag
  RULE_BOOL,
  RULE_RANGE, // lo%..hi%
  RULE_DELIMITER,
  RULE_WORD,   // one of `words`
  RULE_COLUMN, // one of `words`, or a whole number of at least 0
  RULE_DATA,   // the name of a data set, with `every`
  RULE_EVERY,  // nothing but `every` and a whole number of at least 1, or a flag
} value_rule;

typedef struct key_info {
  const char *name;
  value_rule rule;
  const char *words; // separated by spaces
} key_info;

typedef struct format_info {
  const char *name;
  key_info keys[7];
} format_info;

static const format_info formats[] = {
    {"idx", {{"range", RULE_RANGE, 0}, {"embed", RULE_BOOL, 0}}},
    {"csv",
     {{"range", RULE_RANGE, 0},
      {"label", RULE_COLUMN, "last first none"},
      {"header", RULE_BOOL, 0},
      {"delimiter", RULE_DELIMITER, 0},
      {"embed", RULE_BOOL, 0}}},
    {"npy", {{"range", RULE_RANGE, 0}, {"embed", RULE_BOOL, 0}}},
    {"text",
     {{"range", RULE_RANGE, 0},
      {"vocab", RULE_WORD, "chars bytes"},
      {"window", RULE_COUNT, 0},
      {"stride", RULE_COUNT, 0},
      {"lanes", RULE_COUNT, 0},
      {"embed", RULE_BOOL, 0}}},
    {"tokens",
     {{"range", RULE_RANGE, 0},
      {"dtype", RULE_WORD, "u16 u32"},
      {"header", RULE_BOOL, 0},
      {"window", RULE_COUNT, 0},
      {"stride", RULE_COUNT, 0},
      {"lanes", RULE_COUNT, 0},
      {"embed", RULE_BOOL, 0}}},
};
enum { NUM_FORMATS = sizeof formats / sizeof formats[0], MAX_KEYS = 10 };

#define WIDTHS "f32 tf32 bf16"
static const key_info train_keys[] = {
    {"epochs", RULE_NUMBER, 0}, {"steps", RULE_COUNT, 0},      {"shuffle", RULE_BOOL, 0},
    {"seed", RULE_SEED, 0},     {"eval", RULE_DATA, 0},        {"save", RULE_EVERY, 0},
    {"log", RULE_EVERY, 0},     {"accumulate", RULE_COUNT, 0}, {"precision", RULE_WORD, WIDTHS},
};
enum { NUM_TRAIN_KEYS = sizeof train_keys / sizeof train_keys[0] };

static const key_info *find_key(const key_info *keys, size_t num, const char *name) {
  for (size_t i = 0; i < num && keys[i].name; i++)
    if (strcmp(keys[i].name, name) == 0)
      return &keys[i];
  return NULL;
}

void fe_unknown_setting(fe *c, const char *const *names, size_t num, ast_name name,
                        const char *where) {
  ir_buf all = ir_buf_new(c->arena);
  for (size_t i = 0; i < num; i++)
    ir_buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
  ir_diag *d = fe_error(c, name.loc, "E0301", "unknown setting '%s' of %s", name.text, where);
  const char *near = diag_nearest(name.text, names, num);
  if (near)
    diag_help(d, "did you mean '%s'?", near);
  else
    diag_help(d, "%s takes %s", where, ir_buf_str(&all));
}

static void unknown_key(fe *c, const key_info *keys, size_t num, ir_loc at, const char *name,
                        const char *where) {
  const char *names[MAX_KEYS];
  size_t n = 0;
  for (; n < num && keys[n].name && n < MAX_KEYS; n++)
    names[n] = keys[n].name;
  fe_unknown_setting(c, names, n, (ast_name){name, at}, where);
}

// --- values
typedef struct settings {
  void *list; // an IR_VEC(ir_setting) of a data entry or the module
  void (*push)(fe *c, void *list, ir_setting s);
} settings;

static void push_data(fe *c, void *list, ir_setting s) {
  ir_data *d = list;
  IR_PUSH(c->arena, d->settings, s);
}

static void push_config(fe *c, void *list, ir_setting s) {
  ir_module *m = list;
  IR_PUSH(c->arena, m->config, s);
}

static void put_num(fe *c, settings *to, const char *key, double v) {
  to->push(c, to->list, (ir_setting){key, IR_SET_NUM, v, NULL});
}

static void put_str(fe *c, settings *to, const char *key, const char *text) {
  to->push(c, to->list, (ir_setting){key, IR_SET_STR, 0, text});
}

static bool put_flag(fe *c, settings *to, const char *key, const ast_expr *e) {
  if (e->kind != AST_NAME || !ir_map_get(c->flags, e->text) || ir_map_get(c->lets, e->text))
    return false;
  to->push(c, to->list, (ir_setting){key, IR_SET_FLAG, 0, e->text});
  return true;
}

static bool listed(const char *words, const char *word) {
  size_t len = strlen(word);
  for (const char *at = words; at && len; at = strchr(at, ' ')) {
    at += *at == ' ';
    if (strncmp(at, word, len) == 0 && (at[len] == ' ' || at[len] == '\0'))
      return true;
  }
  return false;
}

// `v`: what it is, where that has been worked out; NULL: where it has not.
static void bad_value(fe *c, ir_loc at, const char *key, const char *wanted, const fe_value *v) {
  ir_diag *d = fe_error(c, at, "E0303", "'%s' must be %s", key, wanted);
  if (v)
    diag_label(d, "this is %s", fe_describe(c, v));
}

// The error, when it is none of the words.
static ir_diag *put_word(fe *c, settings *to, const key_info *k, const ast_expr *e) {
  bool text = e->kind == AST_NAME || e->kind == AST_STRING;
  if (!text || !listed(k->words, e->text))
    return fe_error(c, e->loc, "E0303", "'%s' must be one of: %s%s", k->name, k->words,
                    text ? ir_format(c->arena, ", not '%s'", e->text) : "");
  put_str(c, to, k->name, e->text);
  return NULL;
}

// Counts are those that a trainer takes (runtime/recipe.c).
static bool number_suits(value_rule rule, const fe_value *v) {
  if (rule == RULE_NUMBER)
    return v->num > 0;
  return v->num == floor(v->num) && // 1e3, too
         (rule == RULE_SEED ? v->num >= 0 && v->num < 0x1p53 : v->num >= 1 && v->num <= 1e15);
}

static void put_number(fe *c, settings *to, const key_info *k, const ast_expr *e) {
  if (put_flag(c, to, k->name, e))
    return;
  const fe_value *v = fe_eval(c, e);
  if (fe_is_bad(v))
    return;
  const char *name = k->rule == RULE_EVERY ? "every" : k->name;
  if (v->kind != FE_NUM || !number_suits(k->rule, v))
    bad_value(c, e->loc, name,
              k->rule == RULE_COUNT    ? "a whole number from 1 to 10^15"
              : k->rule == RULE_EVERY  ? "followed by a whole number from 1 to 10^15, or by epoch"
              : k->rule == RULE_NUMBER ? "a number above 0"
                                       : "a whole number from 0 to 2^53 - 1",
              v);
  else
    put_num(c, to, k->name, v->num);
}

static void put_bool(fe *c, settings *to, const key_info *k, const ast_expr *e) {
  bool b;
  if (fe_want_bool(c, fe_eval(c, e), e->loc, ir_format(c->arena, "'%s'", k->name), &b))
    put_num(c, to, k->name, b);
}

// What runtime/read_csv.c takes for one.
static void put_delimiter(fe *c, settings *to, const key_info *k, const ast_expr *e) {
  const fe_value *v = fe_eval(c, e);
  bool one =
      v->kind == FE_STR && strlen(v->str) == 1 && !strchr("\"\n\r+-.0123456789eE", v->str[0]);
  if (one || (v->kind == FE_STR && (!strcmp(v->str, "tab") || !strcmp(v->str, "\t"))))
    put_str(c, to, k->name, v->str);
  else if (!fe_is_bad(v))
    bad_value(c, e->loc, k->name, "one character that no number has, such as \";\", or \"tab\"", v);
}

static void put_range(fe *c, settings *to, const ast_expr *e) {
  double lo, hi;
  if (e->kind != AST_RANGE) {
    bad_value(c, e->loc, "range", "like 0%..90%", NULL);
    return;
  }
  if (!fe_want_num(c, fe_eval(c, e->a), e->a->loc, "the start of a range", &lo) ||
      !fe_want_num(c, fe_eval(c, e->b), e->b->loc, "the end of a range", &hi))
    return;
  if (!(lo >= 0 && lo < hi && hi <= 1)) {
    ir_diag *d = fe_error(c, e->loc, "E0303", "a range runs upwards from 0%% to 100%% at most");
    diag_label(d, "from %g%% to %g%%", lo * 100, hi * 100);
    return;
  }
  put_num(c, to, "range_lo", lo);
  put_num(c, to, "range_hi", hi);
}

static bool is_word(fe *c, const ast_expr *e) {
  bool text = e->kind == AST_NAME || e->kind == AST_STRING;
  return text && !ir_map_get(c->lets, e->text) && !ir_map_get(c->flags, e->text);
}

static void put_column(fe *c, settings *to, const key_info *k, const ast_expr *e) {
  if (is_word(c, e) && listed(k->words, e->text)) {
    put_str(c, to, k->name, e->text);
    return;
  }
  bool bare = e->kind == AST_NAME && is_word(c, e);
  const fe_value *v = bare ? &fe_none : fe_eval(c, e);
  if (v->kind == FE_NUM && number_suits(RULE_SEED, v))
    put_num(c, to, k->name, v->num);
  else if (v->kind == FE_STR && *v->str)
    put_str(c, to, k->name, v->str);
  else if (!fe_is_bad(v))
    diag_label(fe_error(c, e->loc, "E0303",
                        "'%s' must be a column, counted from 0 or by its name in quotes, or one "
                        "of: %s",
                        k->name, k->words),
               "this is %s", bare ? e->text : fe_describe(c, v));
}

static void put_value(fe *c, settings *to, const key_info *k, const ast_expr *e) {
  switch (k->rule) {
  case RULE_COUNT:
  case RULE_NUMBER:
  case RULE_SEED:
    put_number(c, to, k, e);
    return;
  case RULE_BOOL:
    put_bool(c, to, k, e);
    return;
  case RULE_RANGE:
    put_range(c, to, e);
    return;
  case RULE_DELIMITER:
    put_delimiter(c, to, k, e);
    return;
  case RULE_COLUMN:
    put_column(c, to, k, e);
    return;
  case RULE_WORD:
    put_word(c, to, k, e);
    return;
  case RULE_DATA:
  case RULE_EVERY:
    return;
  }
}

// --- data
static const format_info *find_format(fe *c, const ast_expr *call) {
  const char *names[NUM_FORMATS];
  for (size_t i = 0; i < NUM_FORMATS; i++) {
    if (strcmp(formats[i].name, call->text) == 0)
      return &formats[i];
    names[i] = formats[i].name;
  }
  ir_diag *d = fe_error(c, call->op_loc, "E0302", "unknown data format '%s'", call->text);
  const char *near = diag_nearest(call->text, names, NUM_FORMATS);
  if (near)
    diag_help(d, "did you mean '%s'?", near);
  else
    diag_help(d, "the formats are idx, csv, npy, text and tokens");
  return NULL;
}

static size_t num_keys(const format_info *f) {
  size_t n = 0;
  while (n < sizeof f->keys / sizeof f->keys[0] && f->keys[n].name)
    n++;
  return n;
}

static void put_arg(fe *c, ir_data *d, const format_info *f, const ast_arg *arg, ir_map *seen) {
  settings to = {d, push_data};
  if (!arg->name) {
    const fe_value *v = fe_eval(c, arg->value);
    if (v->kind == FE_STR)
      IR_PUSH(c->arena, d->files, v->str);
    else if (!fe_is_bad(v))
      bad_value(c, arg->value->loc, f->name, "given file names, as texts", v);
    return;
  }
  const key_info *k = find_key(f->keys, num_keys(f), arg->name);
  if (!k)
    unknown_key(c, f->keys, num_keys(f), arg->loc, arg->name, f->name);
  else if (ir_map_get(seen, arg->name))
    fe_error(c, arg->loc, "E0301", "'%s' is given twice", arg->name);
  else
    put_value(c, &to, k, arg->value);
  ir_map_put(seen, arg->name, d);
}

// Formats read one file, or one for each input of the model; those that cut windows out of files, any number of them.
static void check_num_files(fe *c, const ast_expr *call, const char *format, size_t have) {
  bool per_input = strcmp(format, "idx") == 0 || strcmp(format, "npy") == 0;
  size_t wanted = !per_input ? 1 : c->model ? c->model->params.num : have;
  if (have != wanted)
    fe_error(c, call->loc, "E0303", "'%s' takes %zu file%s%s, not %zu", format, wanted,
             wanted == 1 ? "" : "s", per_input ? ", one for each input of the model" : "", have);
}

static void check_files(fe *c, const ast_expr *call, const ir_data *d, const ir_map *seen) {
  bool tokens = strcmp(d->format, "text") == 0 || strcmp(d->format, "tokens") == 0;
  size_t have = 0;
  for (size_t i = 0; i < call->args.num; i++) // also those that are no texts, reported before
    have += !call->args.at[i].name;
  if (have == 0)
    fe_error(c, call->loc, "E0304", "data set '%s' names no file", d->name);
  else if (!tokens)
    check_num_files(c, call, d->format, have);
  if (tokens && !ir_map_get(seen, "window")) {
    ir_diag *e = fe_error(c, call->loc, "E0304", "'%s' needs the length of its pieces", d->format);
    diag_help(e, "add window=64, the number of tokens in a row of the input");
  }
}

static void lower_data_set(fe *c, const ast_setting *s) {
  if (!s->key.text || !s->value || s->value->kind != AST_CALL || s->has_every) {
    ir_diag *d = fe_error(c, s->key.text ? s->key.loc : s->value->loc, "E0303",
                          "expected a data set: name = format(\"file\", ...)");
    diag_help(d, "for example train = csv(\"digits.csv\", label=last)");
    return;
  }
  const ast_expr *call = s->value;
  const format_info *f = find_format(c, call);
  for (size_t i = 0; i < c->module->data.num; i++)
    if (strcmp(c->module->data.at[i]->name, s->key.text) == 0)
      fe_say_first(
          fe_error(c, s->key.loc, "E0206", "data set '%s' is already defined", s->key.text),
          &c->module->data.at[i]->loc);
  if (!f)
    return;
  ir_data *d = IR_NEW(c->arena, ir_data);
  ir_map *seen = ir_map_new(c->arena);
  d->name = s->key.text;
  d->format = f->name;
  d->loc = fe_node_loc(c, s->key.loc);
  for (size_t i = 0; i < call->args.num; i++)
    put_arg(c, d, f, &call->args.at[i], seen);
  check_files(c, call, d, seen);
  IR_PUSH(c->arena, c->module->data, d);
}

// Names as they are written: a set with errors of its own is there all the same.
static void check_training_data(fe *c, const ast_setting *first, const char **names, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(names[i], "train") == 0)
      return;
  if (n == 0)
    return;
  ir_diag *d = fe_error(c, first->key.loc, "E0304", "there is no data set 'train' to train on");
  const char *near = diag_nearest("train", names, n);
  if (near)
    diag_help(d, "is '%s' meant? name it 'train'", near);
  else
    diag_help(d, "name the set to train on 'train'");
}

void fe_lower_data(fe *c) {
  const ast_setting *first = NULL;
  IR_VEC(const char *) names = {0};
  for (size_t i = 0; i < c->sections.num; i++)
    for (size_t k = 0; c->sections.at[i]->kind == AST_DATA && k < c->sections.at[i]->settings.num;
         k++) {
      const ast_setting *s = &c->sections.at[i]->settings.at[k];
      lower_data_set(c, s);
      if (!s->key.text)
        continue;
      first = first ? first : s;
      IR_PUSH(c->arena, names, s->key.text);
    }
  check_training_data(c, first, names.at, names.num);
}

// --- train
static void put_every(fe *c, settings *to, const char *key, const ast_setting *s) {
  if (s->every)
    put_number(c, to, &(key_info){key, RULE_EVERY, 0}, s->every);
  else
    put_num(c, to, key, 0); // every epoch
}

static void check_data_name(fe *c, const ast_expr *e) {
  const char *names[64];
  size_t n = 0;
  for (size_t i = 0; i < c->module->data.num; i++) {
    if (strcmp(c->module->data.at[i]->name, e->text) == 0)
      return;
    if (n < 64)
      names[n++] = c->module->data.at[i]->name;
  }
  ir_diag *d = fe_error(c, e->loc, "E0304", "there is no data set '%s'", e->text);
  const char *near = diag_nearest(e->text, names, n);
  if (near)
    diag_help(d, "did you mean '%s'?", near);
}

static void lower_eval(fe *c, settings *to, const ast_setting *s) {
  if (!s->value || s->value->kind != AST_NAME || !s->has_every) {
    ir_diag *d = fe_error(c, s->key.loc, "E0303", "expected eval = NAME every epoch (or every N)");
    diag_help(d, "NAME is a data set, for example eval = test every epoch");
    return;
  }
  check_data_name(c, s->value);
  put_str(c, to, "eval", s->value->text);
  put_every(c, to, "eval_every", s);
}

static void lower_every(fe *c, settings *to, const ast_setting *s) {
  if (s->value || !s->has_every) {
    fe_error(c, s->key.loc, "E0303", "expected %s every N (or every epoch)", s->key.text);
    return;
  }
  put_every(c, to, strcmp(s->key.text, "save") == 0 ? "save_every" : "log_every", s);
}

static bool is_text(const ast_expr *e, const char *text) {
  return (e->kind == AST_NAME || e->kind == AST_STRING) && strcmp(e->text, text) == 0;
}

// f32 is what a module without the setting has.
static void lower_precision(fe *c, settings *to, const key_info *k, const ast_setting *s) {
  ir_diag *d = is_text(s->value, "f32") ? NULL : put_word(c, to, k, s->value);
  if (d && is_text(s->value, "f16"))
    diag_label(d, "gradients in f16 need loss scaling, which is not there; bf16 needs none");
}

static void lower_accumulate(fe *c, settings *to, const ast_setting *s) {
  const fe_value *v = fe_eval(c, s->value);
  int64_t k;
  if (!fe_want_int(c, v, s->value->loc, "'accumulate'", &k))
    return;
  if (k < 1 || k > FE_MAX_REPEAT) {
    const char *wanted = ir_format(c->arena, "a whole number from 1 to %d", FE_MAX_REPEAT);
    bad_value(c, s->value->loc, "accumulate", wanted, v);
    return;
  }
  c->accumulate = k;
  put_num(c, to, "accumulate", (double)k);
}

static void lower_train_key(fe *c, settings *to, const key_info *k, const ast_setting *s) {
  if (k->rule == RULE_DATA)
    lower_eval(c, to, s);
  else if (k->rule == RULE_EVERY)
    lower_every(c, to, s);
  else if (s->has_every || !s->value)
    fe_error(c, s->has_every ? s->every_loc : s->key.loc, "E0303", "expected %s = value", k->name);
  else if (strcmp(k->name, "precision") == 0)
    lower_precision(c, to, k, s);
  else if (strcmp(k->name, "accumulate") == 0)
    lower_accumulate(c, to, s);
  else
    put_value(c, to, k, s->value);
}

static void lower_train_setting(fe *c, const ast_setting *s, ir_map *seen) {
  settings to = {c->module, push_config};
  if (!s->key.text) {
    fe_error(c, s->value->loc, "E0303", "expected a setting: key = value");
    return;
  }
  const key_info *k = find_key(train_keys, NUM_TRAIN_KEYS, s->key.text);
  if (!k)
    unknown_key(c, train_keys, NUM_TRAIN_KEYS, s->key.loc, s->key.text, "train");
  else if (ir_map_get(seen, s->key.text))
    fe_error(c, s->key.loc, "E0301", "'%s' is given twice", s->key.text);
  else
    lower_train_key(c, &to, k, s);
  ir_map_put(seen, s->key.text, c);
}

// Precision is a word of its own; a random seed is a state that init and dropout read.
static void set_seed(fe *c) {
  ir_state *seed = ir_find_state(c->module, "seed");
  for (size_t i = 0; i < c->module->config.num; i++) {
    const ir_setting *s = &c->module->config.at[i];
    if (strcmp(s->key, "seed") != 0)
      continue;
    const ir_state *flag = s->kind == IR_SET_FLAG ? ir_map_get(c->flags, s->str) : NULL;
    seed->value = flag ? flag->value : s->num;
    if (seed->value == floor(seed->value))
      continue;
    const ir_loc at = fe_find_setting(c, AST_TRAIN, "seed")->value->loc;
    ir_diag *d = fe_error(c, at, "E0303", "'seed' must be a whole number");
    diag_label(d, "flag '%s' is %g", flag->name, flag->value);
  }
}

const ast_setting *fe_find_setting(const fe *c, ast_item_kind section, const char *key) {
  for (size_t i = 0; i < c->sections.num; i++)
    for (size_t k = 0; c->sections.at[i]->kind == section && k < c->sections.at[i]->settings.num;
         k++) {
      const ast_setting *s = &c->sections.at[i]->settings.at[k];
      if (s->key.text && strcmp(s->key.text, key) == 0)
        return s;
    }
  return NULL;
}

static void check_length(fe *c) {
  const ast_setting *epochs = fe_find_setting(c, AST_TRAIN, "epochs");
  const ast_setting *steps = fe_find_setting(c, AST_TRAIN, "steps");
  if (!epochs || !steps)
    return;
  ir_diag *d = fe_error(c, steps->key.loc, "E0303", "both epochs and steps are given");
  diag_note(d, epochs->key.loc, "epochs is given here");
  diag_help(d, "keep one of them");
}

void fe_lower_train(fe *c) {
  ir_map *seen = ir_map_new(c->arena);
  for (size_t i = 0; i < c->sections.num; i++) {
    const ast_item *item = c->sections.at[i];
    for (size_t k = 0; item->kind == AST_TRAIN && k < item->settings.num; k++)
      lower_train_setting(c, &item->settings.at[k], seen);
  }
  fe_check_optim_keys(c);
  check_length(c);
  set_seed(c);
}
