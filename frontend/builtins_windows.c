// builtins_windows.c: built-in functions for what slides over images and sequences: windows, conv.
#include "frontend/builtins.h"

// `num` numbers, at least 1 each: a list of them, or one for all. Not given: ones.
static bool want_each(fe *c, const builtin_args *a, int arg, const char *what, int num,
                      int64_t *out) {
  int have = 1;
  for (int i = 0; i < num; i++)
    out[i] = 1;
  if (!a->v[arg])
    return true;
  if (!fe_want_ints(c, a->v[arg], a->at[arg], what, IR_MAX_RANK, out, &have))
    return false;
  if (a->v[arg]->kind != FE_LIST)
    for (int i = 1; i < num; i++)
      out[i] = out[0];
  else if (have != num) {
    ir_diag *d = fe_error(c, a->at[arg], "E0203", "%s needs %d number%s, one for each axis", what,
                          num, num == 1 ? "" : "s");
    diag_label(d, "this has %d", have);
    return false;
  }
  for (int i = 0; i < num; i++)
    if (out[i] < 1) {
      fe_error(c, a->at[arg], "E0203", "%s must be at least 1, this is %lld", what,
               (long long)out[i]);
      return false;
    }
  return true;
}

// Axes in ascending order, none twice, from the numbers of argument `arg`.
static bool want_axes(fe *c, const builtin_args *a, int arg, int rank, int64_t *axes, int *num) {
  const fe_value *v = a->v[arg];
  bool list = v->kind == FE_LIST;
  *num = list ? (int)v->num_items : 1;
  if (*num < 1 || *num > rank) {
    fe_error(c, a->at[arg], "E0213", "windows need 1 to %d axes, not %d", rank, *num);
    return false;
  }
  for (int i = 0; i < *num; i++) {
    int axis;
    if (!builtin_axis(c, list ? v->items[i] : v, a->at[arg], rank, &axis))
      return false;
    if (i && axes[i - 1] >= axis) {
      fe_error(c, a->at[arg], "E0213", "the axes of windows must be ascending, each of them once");
      return false;
    }
    axes[i] = axis;
  }
  return true;
}

BUILTIN(windows) {
  int64_t axes[IR_MAX_RANK], size[IR_MAX_RANK], step[IR_MAX_RANK], dilate[IR_MAX_RANK];
  int num;
  if (!fe_want_tensor(c, a->v[0], a->at[0], "the argument of 'windows'"))
    return &fe_bad;
  ir_node *x = a->v[0]->node;
  if (!want_axes(c, a, 2, x->type.rank, axes, &num) || !want_each(c, a, 1, "'size'", num, size) ||
      !want_each(c, a, 3, "'step'", num, step) || !want_each(c, a, 4, "'dilate'", num, dilate))
    return &fe_bad;
  ir_attr attrs[] = {ir_a_ints(c->arena, IR_ATTR_AXES, axes, num),
                     ir_a_ints(c->arena, IR_ATTR_SIZE, size, num),
                     ir_a_ints(c->arena, IR_ATTR_STEP, step, num),
                     ir_a_ints(c->arena, IR_ATTR_DILATE, dilate, num)};
  return fe_tensor(c, fe_emit(c, a->call->loc, IR_WINDOWS, 1, &x, 4, attrs, NULL));
}

BUILTIN(conv) {
  int64_t step[IR_MAX_RANK], dilate[IR_MAX_RANK];
  if (!fe_want_tensor(c, a->v[0], a->at[0], "the input of conv") ||
      !fe_want_tensor(c, a->v[1], a->at[1], "the kernel of conv"))
    return &fe_bad;
  ir_node *in[] = {a->v[0]->node, a->v[1]->node};
  int num = in[0]->type.rank - 2;
  if (num < 1 || in[1]->type.rank != num + 2) {
    ir_diag *d = fe_error(c, a->call->loc, "E0203",
                          "conv needs x[b, n..., c] and kernel[k..., c, m] of equal rank");
    diag_label(d, "these are %s and %s", fe_shape_text(c, a->v[0]), fe_shape_text(c, a->v[1]));
    return &fe_bad;
  }
  if (!want_each(c, a, 2, "'step'", num, step) || !want_each(c, a, 3, "'dilate'", num, dilate))
    return &fe_bad;
  ir_attr attrs[] = {ir_a_ints(c->arena, IR_ATTR_STEP, step, num),
                     ir_a_ints(c->arena, IR_ATTR_DILATE, dilate, num)};
  return fe_tensor(c, fe_emit(c, a->call->loc, IR_CONV, 2, in, 2, attrs, NULL));
}

// A number twice; of a list the two numbers that it has: sizes of images.
BUILTIN(pair) {
  const fe_value *v = a->v[0], **items = IR_NEW_ARRAY(c->arena, const fe_value *, 2);
  if (v->kind == FE_LIST && v->num_items == 2)
    return v;
  if (v->kind != FE_NUM)
    return FE_FAIL(c, a->at[0], "E0202", "this must be a number, or a list of two");
  items[0] = items[1] = v;
  return fe_list(c, items, 2);
}
