// types.c: types and shapes: concrete ones of parameters and inputs, and signatures of blocks,
// whose names of dimensions bind to what a call gives.
#include "frontend/check.h"

#include <ctype.h>
#include <string.h>

bool fe_check_size(fe *c, ir_loc at, const ir_type *t) {
  int64_t elements = 1;
  for (int i = 0; i < t->rank; i++)
    if (__builtin_mul_overflow(elements, t->dims[i], &elements) || elements > FE_MAX_ELEMENTS) {
      ir_diag *d = fe_error(c, at, "E0210", "tensor is too large");
      diag_label(d, "%s has more than 2^40 elements", ir_type_str(c->arena, t));
      return false;
    }
  return true;
}

static const char *const dtype_words[] = {"f",   "i",   "t",   "bool", "u8",  "i8",  "u16",
                                          "i32", "u32", "i64", "bf16", "f16", "f32", "f64"};

// `f` is any float to compute with in a signature and f32 in a declaration; `i` and `t` only stand
// in signatures.
static bool find_dtype(fe *c, const ast_type *t, bool signature, ir_dtype *out) {
  if (ir_dtype_from_name(t->dtype, out))
    return true;
  if (strcmp(t->dtype, "f") == 0) {
    *out = IR_F32;
    return true;
  }
  bool generic = strcmp(t->dtype, "i") == 0 || strcmp(t->dtype, "t") == 0;
  if (generic && signature)
    return true;
  if (generic) {
    ir_diag *d = fe_error(c, t->loc, "E0204", "element type '%s' is not specific here", t->dtype);
    diag_help(d, "write i32, i64, f32, ...");
    return false;
  }
  ir_diag *d = fe_error(c, t->loc, "E0201", "unknown element type '%s'", t->dtype);
  const char *here = fe_word_here(t->dtype);
  if (here)
    diag_help(d, "here it is written %s", here);
  else
    fe_suggest(c, d, t->dtype, NULL, 0, dtype_words, sizeof dtype_words / sizeof dtype_words[0]);
  return false;
}

// --- concrete types ------------------------------------------------------------------------------
static bool push_dim(fe *c, ir_loc at, int64_t *dims, int *rank, int64_t d) {
  if (*rank >= IR_MAX_RANK) {
    fe_error(c, at, "E0203", "more than %d dimensions", IR_MAX_RANK);
    return false;
  }
  dims[(*rank)++] = d;
  return true;
}

static bool check_dim(fe *c, ir_loc at, int64_t d) {
  if (d >= 1)
    return true;
  fe_error(c, at, "E0203", "a dimension must be at least 1, this is %lld", (long long)d);
  return false;
}

static const fe_value *bound_dots(fe *c, ir_loc at) {
  const fe_value *dots = c->frame ? ir_map_get(c->frame->vars, "...") : NULL;
  return dots ? dots : FE_FAIL(c, at, "E0201", "'...' is not bound by a parameter of this block");
}

static bool push_dots(fe *c, ir_loc at, int64_t *dims, int *rank) {
  const fe_value *dots = bound_dots(c, at);
  if (fe_is_bad(dots))
    return false;
  for (size_t i = 0; i < dots->num_items; i++)
    if (!push_dim(c, at, dims, rank, dots->items[i]->i))
      return false;
  return true;
}

static bool eval_dims(fe *c, const ast_type *t, int64_t *dims, int *rank, const char **names) {
  bool ok = true;
  *rank = 0;
  for (size_t i = 0; i < t->dims.num; i++) {
    const ast_expr *e = t->dims.at[i];
    int64_t d = 1;
    if (e->kind == AST_ELLIPSIS) {
      ok = push_dots(c, e->loc, dims, rank) && ok;
      continue;
    }
    ok = fe_want_int(c, fe_eval(c, e), e->loc, "a dimension", &d) && check_dim(c, e->loc, d) && ok;
    if (!push_dim(c, e->loc, dims, rank, d))
      return false;
    names[*rank - 1] = e->kind == AST_NAME ? e->text : NULL;
  }
  return ok;
}

static bool like_type(fe *c, const ast_type *t, ir_type *out, const char *const **names) {
  const fe_value *v = fe_lookup(c, t->like, t->loc);
  if (!fe_want_tensor(c, v, t->loc, "the value after 'like'"))
    return false;
  *out = v->node->type;
  *names = v->dim_names;
  return true;
}

bool fe_eval_type(fe *c, const ast_type *t, ir_type *out, const char *const **names) {
  *names = NULL;
  if (t->like)
    return like_type(c, t, out, names);
  ir_dtype dtype = IR_F32;
  const char **list = IR_NEW_ARRAY(c->arena, const char *, IR_MAX_RANK);
  int64_t dims[IR_MAX_RANK];
  int rank;
  if (!find_dtype(c, t, false, &dtype) || !eval_dims(c, t, dims, &rank, list))
    return false;
  *out = ir_tensor(dtype, rank, dims);
  *names = list;
  return fe_check_size(c, t->loc, out);
}

// --- shape lists: [b, -1], [..., m] --------------------------------------------------------------
bool fe_want_shape(fe *c, const fe_value *v, ir_loc at, bool wild, int64_t *dims, int *rank) {
  if (!fe_want_ints(c, v, at, "a shape", IR_MAX_RANK, dims, rank))
    return false;
  int wilds = 0;
  for (int i = 0; i < *rank; i++) {
    if (wild && dims[i] == -1)
      wilds++;
    else if (!check_dim(c, at, dims[i]))
      return false;
  }
  if (wilds <= 1)
    return true;
  fe_error(c, at, "E0203", "only one dimension of a shape can be -1");
  return false;
}

// --- signatures ----------------------------------------------------------------------------------
typedef struct matcher {
  fe *c;
  const ast_type *type;
  const fe_value *value;
  const char *param; // NULL: a result
  ir_loc at;
  const char **names;
} matcher;

static bool dtype_fits(const ast_type *t, ir_dtype want, ir_dtype have) {
  ir_dtype_kind kind = ir_dtypes[have].kind;
  if (strcmp(t->dtype, "t") == 0)
    return true;
  if (strcmp(t->dtype, "f") == 0)
    return kind == IR_KIND_FLOAT && !ir_is_narrow(have);
  if (strcmp(t->dtype, "i") == 0)
    return kind == IR_KIND_SINT || kind == IR_KIND_UINT;
  return want == have;
}

static bool match_dtype(matcher *m) {
  ir_dtype want = IR_F32, have = m->value->node->type.dtype;
  if (!find_dtype(m->c, m->type, true, &want))
    return false;
  if (dtype_fits(m->type, want, have))
    return true;
  const char *word = strcmp(m->type->dtype, "f") == 0   ? "f32 or f64"
                     : strcmp(m->type->dtype, "i") == 0 ? "an integer"
                                                        : ir_dtypes[want].name;
  ir_diag *d = fe_error_about(m->c, m->value->node, m->at, "E0204",
                              "%s%s%s must have element type %s", m->param ? "'" : "the result",
                              m->param ? m->param : "", m->param ? "'" : "", word);
  diag_label(d, "this is %s", fe_shape_text(m->c, m->value));
  if (strcmp(m->type->dtype, "i") == 0)
    diag_help(d, "convert it with i32(...)");
  if (strcmp(m->type->dtype, "f") == 0)
    diag_help(d, ir_is_narrow(have) ? "convert it with f32(...): bf16 and f16 are for storing"
                                    : "convert it with f32(...)");
  return false;
}

static void dim_mismatch(matcher *m, const ast_expr *dim, int64_t want, const char *from,
                         int64_t have) {
  fe *c = m->c;
  ir_diag *d;
  if (dim->kind != AST_NAME)
    d = fe_error_about(c, m->value->node, m->at, "E0208",
                       "a dimension of %s must be %lld, not %lld",
                       m->param ? ir_format(c->arena, "'%s'", m->param) : "the result",
                       (long long)want, (long long)have);
  else if (from)
    d = fe_error_about(c, m->value->node, m->at, "E0208",
                       "dimension %s is %lld in '%s' but %lld %s", dim->text, (long long)want, from,
                       (long long)have,
                       m->param ? ir_format(c->arena, "in '%s'", m->param) : "in the result");
  else
    d = fe_error_about(c, m->value->node, m->at, "E0208",
                       "dimension %s is %lld here but must be %lld", dim->text, (long long)have,
                       (long long)want);
  diag_label(d, "this is %s", fe_shape_text(c, m->value));
  diag_note(d, dim->loc, "declared here");
}

// Lower-case names in a signature stand for dimensions of this call; others are constants.
static bool binds(const matcher *m, const ast_expr *e) {
  return m->param && e->kind == AST_NAME && islower((unsigned char)e->text[0]);
}

static void bind_dim(matcher *m, const char *name, int64_t d) {
  fe_value *v = IR_NEW(m->c->arena, fe_value);
  *v = *fe_int(m->c, d);
  v->from = m->param;
  fe_set(m->c, name, v);
  ir_map_put(m->c->frame->dims, name, v);
}

static bool match_dim(matcher *m, const ast_expr *e, int axis) {
  fe *c = m->c;
  int64_t have = m->value->node->type.dims[axis], want;
  // Not from `vars`: the body may have given the name another meaning since.
  const fe_value *bound = e->kind == AST_NAME ? ir_map_get(c->frame->dims, e->text) : NULL;
  if (!bound && m->param && e->kind == AST_NAME)
    bound = ir_map_get(c->frame->vars, e->text);
  if (e->kind == AST_NAME)
    m->names[axis] = e->text;
  if (!bound && binds(m, e)) {
    bind_dim(m, e->text, have);
    return true;
  }
  if (!fe_want_int(c, bound ? bound : fe_eval(c, e), e->loc, "a dimension", &want))
    return false;
  if (want == have)
    return true;
  dim_mismatch(m, e, want, bound ? bound->from : NULL, have);
  return false;
}

static const char *sizes_text(fe *c, const fe_value *list) {
  ir_buf b = ir_buf_new(c->arena);
  for (size_t i = 0; i < list->num_items; i++)
    ir_buf_printf(&b, "%s%lld", i ? ", " : "", (long long)list->items[i]->i);
  return ir_format(c->arena, "[%s]", ir_buf_str(&b));
}

// `...` stands for dimensions [from, from + num): binds them, or compares with what it stands for.
static bool match_dots(matcher *m, ir_loc loc, int from, int num) {
  fe *c = m->c;
  const int64_t *dims = m->value->node->type.dims + from;
  const fe_value *bound = ir_map_get(c->frame->vars, "...");
  const fe_value **items = IR_NEW_ARRAY(c->arena, const fe_value *, num + 1);
  for (int i = 0; i < num; i++)
    items[i] = fe_int(c, dims[i]);
  fe_value *here = IR_NEW(c->arena, fe_value);
  *here = *fe_list(c, items, (size_t)num);
  here->from = m->param;
  if (!bound) {
    fe_set(c, "...", here);
    return true;
  }
  bool same = bound->num_items == (size_t)num;
  for (int i = 0; same && i < num; i++)
    same = bound->items[i]->i == dims[i];
  if (same)
    return true;
  ir_diag *d = fe_error_about(
      c, m->value->node, m->at, "E0208", "dimensions '...' are %s%s but %s %s",
      sizes_text(c, bound), bound->from ? ir_format(c->arena, " in '%s'", bound->from) : " before",
      sizes_text(c, here), m->param ? ir_format(c->arena, "in '%s'", m->param) : "in the result");
  diag_label(d, "this is %s", fe_shape_text(c, m->value));
  diag_note(d, loc, "declared here");
  return false;
}

static void keep_names(matcher *m, int from, int num) {
  for (int i = from; m->value->dim_names && i < from + num; i++)
    m->names[i] = m->value->dim_names[i];
}

static int find_dots(const ast_type *t) {
  for (size_t i = 0; i < t->dims.num; i++)
    if (t->dims.at[i]->kind == AST_ELLIPSIS)
      return (int)i;
  return -1;
}

static bool match_rank(matcher *m, int dots) {
  int rank = m->value->node->type.rank, given = (int)m->type->dims.num;
  if (dots < 0 ? rank == given : rank >= given - 1)
    return true;
  ir_diag *d = fe_error_about(
      m->c, m->value->node, m->at, "E0203", "%s%s%s must have %s%d dimension%s, this has %d",
      m->param ? "'" : "the result", m->param ? m->param : "", m->param ? "'" : "",
      dots < 0 ? "" : "at least ", dots < 0 ? given : given - 1,
      (dots < 0 ? given : given - 1) == 1 ? "" : "s", rank);
  diag_label(d, "this is %s", fe_shape_text(m->c, m->value));
  diag_note(d, m->type->loc, "declared here");
  return false;
}

// Names first, computed dimensions after: f[2*n, n] binds n wherever it stands alone.
static bool match_dims(matcher *m) {
  int dots = find_dots(m->type), given = (int)m->type->dims.num;
  if (!match_rank(m, dots))
    return false;
  int extra = dots < 0 ? 0 : m->value->node->type.rank - (given - 1);
  bool ok = true;
  for (int round = 0; round < 2; round++)
    for (int i = 0, axis = 0; i < given; i++) {
      const ast_expr *e = m->type->dims.at[i];
      bool simple = e->kind == AST_NAME || e->kind == AST_ELLIPSIS;
      if (i == dots) {
        ok = (round || match_dots(m, e->loc, axis, extra)) && ok;
        keep_names(m, axis, extra);
        axis += extra;
        continue;
      }
      if (simple == (round == 0))
        ok = match_dim(m, e, axis) && ok;
      axis++;
    }
  return ok;
}

// Those that stand alone, so that what is computed from them may stand before: x: f[2 * n], y: f[n]. Mistakes are found
// when all is matched.
void fe_bind_names(fe *c, const ast_type *t, const fe_value *v, const char *param) {
  matcher m = {.c = c, .type = t, .value = v, .param = param};
  int dots = find_dots(t), given = (int)t->dims.num;
  int rank = v->kind == FE_TENSOR ? v->node->type.rank : -1;
  if (t->like || (dots < 0 ? rank != given : rank < given - 1))
    return;
  for (int i = 0; i < given; i++) {
    const ast_expr *e = t->dims.at[i];
    int axis = dots < 0 || i < dots ? i : i + rank - given;
    if (i != dots && binds(&m, e) && !ir_map_get(c->frame->vars, e->text))
      bind_dim(&m, e->text, v->node->type.dims[axis]);
  }
}

static bool match(matcher *m) {
  if (m->type->like) {
    ir_type type;
    const char *const *names;
    if (!like_type(m->c, m->type, &type, &names))
      return false;
    if (ir_same_type(&type, &m->value->node->type))
      return true;
    fe_error(m->c, m->at, "E0203", "must have the type of '%s', %s", m->type->like,
             ir_type_str(m->c->arena, &type));
    return false;
  }
  return match_dtype(m) && match_dims(m);
}

const fe_value *fe_match_param(fe *c, const ast_type *t, const fe_value *v, const char *param,
                               ir_loc at) {
  if (!fe_want_tensor(c, v, at, ir_format(c->arena, "'%s'", param)))
    return &fe_bad;
  const char **names = IR_NEW_ARRAY(c->arena, const char *, IR_MAX_RANK);
  matcher m = {c, t, v, param, at, names};
  return match(&m) ? fe_tensor_named(c, v->node, names) : &fe_bad;
}

bool fe_match_result(fe *c, const ast_type *t, const fe_value *v, ir_loc at) {
  if (!fe_want_tensor(c, v, at, "the result"))
    return false;
  const char **names = IR_NEW_ARRAY(c->arena, const char *, IR_MAX_RANK);
  matcher m = {c, t, v, NULL, at, names};
  return match(&m);
}
