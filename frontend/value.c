// value.c: the values of the language: making, describing and demanding them.
#include "frontend/check.h"

#include <math.h>
#include <stdlib.h>

const fe_value fe_bad = {.kind = FE_BAD}, fe_none = {.kind = FE_NONE};

static fe_value *make(fe *c, fe_kind kind) {
  fe_value *v = IR_NEW(c->arena, fe_value);
  v->kind = kind;
  return v;
}

const fe_value *fe_int(fe *c, int64_t i) {
  fe_value *v = make(c, FE_NUM);
  v->is_int = true;
  v->i = i;
  v->num = (double)i;
  return v;
}

const fe_value *fe_float(fe *c, double num) {
  fe_value *v = make(c, FE_NUM);
  v->num = num;
  return v;
}

static bool is_whole(double num) {
  return fabs(num) < 0x1p53 && num == floor(num);
}

const fe_value *fe_num(fe *c, double num) {
  return is_whole(num) ? fe_int(c, (int64_t)num) : fe_float(c, num);
}

const fe_value *fe_bool(fe *c, bool b) {
  fe_value *v = make(c, FE_BOOL);
  v->i = b;
  return v;
}

const fe_value *fe_str(fe *c, const char *s) {
  fe_value *v = make(c, FE_STR);
  v->str = s;
  return v;
}

const fe_value *fe_list(fe *c, const fe_value *const *items, size_t n) {
  fe_value *v = make(c, FE_LIST);
  v->items = items;
  v->num_items = n;
  return v;
}

// A loop that appends to a list does not copy it each time, and what is copied counts as work.
static fe_room *room_behind(fe *c, ir_loc at, const fe_value *list) {
  if (list->room && list->room->items.num == list->num_items)
    return list->room;
  fe_room *room = IR_NEW(c->arena, fe_room);
  for (size_t i = 0; i < list->num_items && fe_tick(c, at); i++)
    IR_PUSH(c->arena, room->items, list->items[i]);
  return room;
}

const fe_value *fe_join_lists(fe *c, ir_loc at, const fe_value *a, const fe_value *b) {
  fe_room *room = room_behind(c, at, a);
  for (size_t i = 0; i < b->num_items && fe_tick(c, at); i++)
    IR_PUSH(c->arena, room->items, b->items[i]);
  if (room->items.num != a->num_items + b->num_items)
    return &fe_bad; // it was too much
  fe_value *v = make(c, FE_LIST);
  v->items = room->items.at;
  v->num_items = room->items.num;
  v->room = room;
  return v;
}

const fe_value *fe_tensor_named(fe *c, ir_node *n, const char *const *dim_names) {
  if (!n)
    return &fe_bad;
  fe_value *v = make(c, FE_TENSOR);
  v->node = n;
  v->dim_names = dim_names;
  return v;
}

const fe_value *fe_tensor(fe *c, ir_node *n) {
  return fe_tensor_named(c, n, NULL);
}

const fe_value *fe_make_init(fe *c, fe_init_kind kind, double a, double b) {
  fe_value *v = make(c, FE_INIT);
  v->init = (fe_init){.kind = kind, .a = a, .b = b};
  return v;
}

bool fe_is_bad(const fe_value *v) {
  return v->kind == FE_BAD;
}

// --- describing ----------------------------------------------------------------------------------
const char *fe_shape_text(fe *c, const fe_value *v) {
  ir_buf b = ir_buf_new(c->arena);
  const ir_type *t = &v->node->type;
  ir_buf_printf(&b, "%s[", ir_dtypes[t->dtype].name);
  for (int i = 0; i < t->rank; i++) {
    ir_buf_puts(&b, i ? ", " : "");
    if (v->dim_names && v->dim_names[i])
      ir_buf_printf(&b, "%s=", v->dim_names[i]);
    ir_buf_printf(&b, "%lld", (long long)t->dims[i]);
  }
  ir_buf_puts(&b, "]");
  return ir_buf_str(&b);
}

const char *fe_text(fe *c, const fe_value *v) {
  if (v->kind == FE_STR)
    return v->str;
  if (v->kind != FE_NUM)
    return fe_describe(c, v);
  if (v->is_int)
    return ir_format(c->arena, "%lld", (long long)v->i);
  const char *text = ir_format(c->arena, "%g", v->num);
  bool looks_whole = is_whole(strtod(text, NULL)) && !is_whole(v->num); // 3 * 0.1 * 10
  return looks_whole ? ir_format(c->arena, "%.17g", v->num) : text;
}

// As it is written in a file: a label is one line.
static const char *quoted(fe *c, const char *text) {
  ir_buf b = ir_buf_new(c->arena);
  ast_print_text(text, &b);
  return ir_buf_str(&b);
}

const char *fe_describe(fe *c, const fe_value *v) {
  switch (v->kind) {
  case FE_BAD:
    return "an error";
  case FE_NONE:
    return "nothing";
  case FE_NUM:
    return ir_format(c->arena, "the number %s", fe_text(c, v));
  case FE_BOOL:
    return v->i ? "true" : "false";
  case FE_STR:
    return ir_format(c->arena, "the text %s", quoted(c, v->str));
  case FE_INIT:
    return "an initialiser";
  case FE_LIST:
    return ir_format(c->arena, "a list of %zu", v->num_items);
  case FE_TENSOR:
    return ir_format(c->arena, "a tensor %s", fe_shape_text(c, v));
  }
  return "?";
}

// --- demanding -----------------------------------------------------------------------------------
static bool refuse(fe *c, const fe_value *v, ir_loc at, const char *what, const char *wanted) {
  if (fe_is_bad(v))
    return false;
  if (v->kind != FE_TENSOR) {
    ir_diag *d = fe_error(c, at, "E0202", "%s must be %s", what, wanted);
    diag_label(d, "this is %s", fe_describe(c, v));
  } else if (v->flag) {
    ir_diag *d = fe_error(c, at, "E0212", "%s must be known at compile time, but '%s' is a flag",
                          what, v->flag);
    diag_label(d, "set when the trainer runs");
    diag_help(d, "write `let %s = ...` and set it with `mltc -D %s=...`", v->flag, v->flag);
  } else {
    ir_diag *d = fe_error(c, at, "E0207", "%s must be %s, known at compile time", what, wanted);
    diag_label(d, "this is %s", fe_describe(c, v));
  }
  return false;
}

// 2.5 * 4 is 10.
static bool is_int(const fe_value *v) {
  return v->kind == FE_NUM && (v->is_int || is_whole(v->num));
}

bool fe_want_int(fe *c, const fe_value *v, ir_loc at, const char *what, int64_t *out) {
  if (!is_int(v))
    return refuse(c, v, at, what, "a whole number");
  *out = v->is_int ? v->i : (int64_t)v->num;
  return true;
}

bool fe_want_num(fe *c, const fe_value *v, ir_loc at, const char *what, double *out) {
  if (v->kind != FE_NUM)
    return refuse(c, v, at, what, "a number");
  *out = v->num;
  return true;
}

bool fe_want_bool(fe *c, const fe_value *v, ir_loc at, const char *what, bool *out) {
  if (v->kind != FE_BOOL)
    return refuse(c, v, at, what, "true or false");
  *out = v->i != 0;
  return true;
}

bool fe_want_tensor(fe *c, const fe_value *v, ir_loc at, const char *what) {
  if (v->kind == FE_TENSOR)
    return true;
  if (fe_is_bad(v))
    return false;
  ir_diag *d = fe_error(c, at, "E0202", "%s must be a tensor", what);
  diag_label(d, "this is %s", fe_describe(c, v));
  if (v->kind == FE_LIST)
    diag_help(d, "name its parts: `a, b = ...`; or take one of them: `[0]`");
  if (v->kind == FE_NUM)
    diag_help(d, "constant(value, shape) makes a tensor of a number; its shape may be []");
  return false;
}

bool fe_want_ints(fe *c, const fe_value *v, ir_loc at, const char *what, int max, int64_t *out,
                  int *num) {
  *num = 0;
  if (v->kind != FE_LIST) {
    *num = 1;
    return fe_want_int(c, v, at, what, &out[0]);
  }
  if (v->num_items > (size_t)max) {
    fe_error(c, at, "E0202", "%s has %zu entries; at most %d are possible", what, v->num_items,
             max);
    return false;
  }
  for (size_t i = 0; i < v->num_items; i++) {
    bool named = is_int(v->items[i]) || v->num_items == 1;
    const char *entry = named ? what : ir_format(c->arena, "entry %zu of %s", i + 1, what);
    if (!fe_want_int(c, v->items[i], at, entry, &out[i]))
      return false;
  }
  *num = (int)v->num_items;
  return true;
}
