// parse_func.c: reading the body of a function: values, writes, kernels, results.
//
//   %y = add %a, %b : f32[64]     a value: defined once, before its users
//   write @w, %y                  an effect
//   kernel NAME FAMILY {          its members up to '}'
//   result KIND NAME = %y
//
// A value whose line has an error is "broken": lines that use it are read, and broken
// in turn, but nothing is said about them.
#include "ir/parse.h"
#include "ir/builder.h"
#include "ir/internal.h"

#include <string.h>

enum {
  MAX_ATTRS = 8,
  SUGGEST_LIMIT = 20
}; // suggestions cost time: not for every error of thousands

// What a value line says, before it becomes a node.
typedef struct node_text {
  ir_loc at; // the value's name
  const char *name;
  ir_op op;
  ir_state *state;
  IR_VEC(ir_node *) in;
  ir_attr attrs[MAX_ATTRS];
  int num_attrs;
  ir_type type;
  ir_loc type_at, loc;
  bool broken; // uses a broken value
} node_text;

// --- operands ---------------------------------------------------------------------------------
// A line further down that defines the name; 0 when there is none in this function.
static uint32_t defined_later(const ir_parser *p, const char *name) {
  const char *text = ir_format(p->s.arena, "%%%s =", name), *end = p->s.end;
  uint32_t line = p->s.line;
  for (const char *at = p->s.at; at < end && *at != '}'; at++) {
    if (*at != '\n')
      continue;
    line++;
    const char *q = at + 1 + strspn(at + 1, " \t");
    if (strncmp(q, text, strlen(text)) == 0)
      return line;
  }
  return 0;
}

static void unknown_value(ir_parser *p, ir_loc at, const char *name) {
  ir_diag *d = diag_error(p->s.diags, at, "E0106", "%%%s is not defined", name);
  if (diag_num_errors(p->s.diags) > SUGGEST_LIMIT)
    return;
  uint32_t line = defined_later(p, name);
  if (line) {
    diag_help(d, "it is defined in line %u; values must be defined before they are used", line);
    return;
  }
  IR_VEC(const char *) names = {0};
  for (size_t i = 0; i < p->f->nodes.num; i++)
    IR_PUSH(p->s.arena, names, p->f->nodes.at[i]->name);
  const char *near = diag_nearest(name, names.at, names.num);
  if (near)
    diag_help(d, "did you mean '%%%s'?", near);
}

// NULL: not a value (reported), or a broken one (*broken set).
static ir_node *parse_value(ir_parser *p, bool *broken) {
  ir_loc at = scan_here(&p->s);
  const char *name = scan_sigil_name(&p->s, '%', "a value such as %x");
  if (!name)
    return NULL;
  ir_node *n = ir_map_get(p->f->names, name);
  if (n)
    return n;
  if (ir_map_get(p->broken, name))
    *broken = true;
  else
    unknown_value(p, at, name);
  return NULL;
}

static ir_state *parse_state_use(ir_parser *p) {
  ir_loc at = scan_here(&p->s);
  const char *name = scan_sigil_name(&p->s, '@', "a state such as @w");
  if (!name)
    return NULL;
  ir_state *state = ir_find_state(p->m, name);
  if (state)
    return state;
  ir_diag *d = diag_error(p->s.diags, at, "E0108", "there is no state '%s'", name);
  IR_VEC(const char *) names = {0};
  for (size_t i = 0; i < p->m->states.num && diag_num_errors(p->s.diags) <= SUGGEST_LIMIT; i++)
    IR_PUSH(p->s.arena, names, p->m->states.at[i]->name);
  parse_suggest(d, name, names.at, names.num);
  return NULL;
}

static bool parse_operands(ir_parser *p, node_text *t) {
  if (t->op == IR_READ || t->op == IR_WRITE) {
    if (!(t->state = parse_state_use(p)))
      return false;
    if (t->op == IR_WRITE && !scan_expect(&p->s, ',', "',' and the value"))
      return false;
  }
  if (!scan_peek(&p->s, '%'))
    return true; // how many there must be is ir_infer's business
  do {
    bool broken = false;
    ir_node *n = parse_value(p, &broken);
    if (!n && !broken)
      return false;
    t->broken = t->broken || broken;
    IR_PUSH(p->s.arena, t->in, n);
  } while (scan_accept(&p->s, ','));
  return true;
}

// --- attributes ----------------------------------------------------------------------------------
static bool parse_bool(ir_parser *p, int64_t *out) {
  scan_at_end(&p->s);
  const char *from = p->s.at, *word = scan_name(&p->s, "true or false");
  if (!word)
    return false;
  *out = strcmp(word, "true") == 0;
  if (*out || strcmp(word, "false") == 0)
    return true;
  diag_error(p->s.diags, scan_from(&p->s, from), "E0104", "expected true or false, found '%s'",
             word);
  return false;
}

static bool parse_attr_value(ir_parser *p, ir_attr *a) {
  switch (ir_attr_infos[a->key].kind) {
  case IR_AK_INT:
    return scan_int(&p->s, &a->as.i);
  case IR_AK_NUM:
    return scan_number(&p->s, &a->as.num);
  case IR_AK_INTS:
    return scan_ints(&p->s, &a->as.ints.at, &a->as.ints.num);
  case IR_AK_BOOL:
    return parse_bool(p, &a->as.i);
  }
  return false;
}

// Attribute names that `op` may have are suggested first, then any.
static void unknown_attr(ir_parser *p, ir_loc at, ir_op op, const char *word) {
  const char *names[IR_NUM_ATTRS];
  size_t num = 0;
  for (int k = 0; k < IR_NUM_ATTRS; k++)
    if (ir_ops[op].attrs >> k & 1)
      names[num++] = ir_attr_infos[k].name;
  ir_diag *d =
      diag_error(p->s.diags, at, "E0104", "'%s' has no attribute '%s'", ir_ops[op].name, word);
  parse_suggest(d, word, names, num);
}

static bool parse_attr(ir_parser *p, node_text *t) {
  scan_at_end(&p->s);
  const char *from = p->s.at, *word = scan_name(&p->s, "an attribute");
  if (!word)
    return false;
  ir_loc at = scan_from(&p->s, from);
  ir_attr a = {0};
  int key = 0;
  while (key < IR_NUM_ATTRS && strcmp(ir_attr_infos[key].name, word) != 0)
    key++;
  if (key == IR_NUM_ATTRS || !(ir_ops[t->op].attrs >> key & 1)) {
    unknown_attr(p, at, t->op, word);
    return false;
  }
  for (int i = 0; i < t->num_attrs; i++)
    if (t->attrs[i].key == (ir_attr_key)key) {
      diag_error(p->s.diags, at, "E0104", "attribute '%s' is there twice", word);
      return false;
    }
  a.key = (ir_attr_key)key;
  if (!scan_expect(&p->s, '=', "'='") || !parse_attr_value(p, &a))
    return false;
  t->attrs[t->num_attrs++] = a; // fits: an op has at most MAX_ATTRS attributes, each once
  return true;
}

static bool parse_attrs(ir_parser *p, node_text *t) {
  if (!scan_accept(&p->s, '{'))
    return true;
  do
    if (!parse_attr(p, t))
      return false;
  while (scan_accept(&p->s, ','));
  return scan_expect(&p->s, '}', "',' or '}'");
}

// --- values --------------------------------------------------------------------------------------
static bool parse_op(ir_parser *p, ir_op *out) {
  scan_at_end(&p->s);
  const char *from = p->s.at, *word = scan_name(&p->s, "an operation");
  if (!word)
    return false;
  if (ir_op_from_name(word, out))
    return true;
  const char *names[IR_NUM_OPS];
  for (int i = 0; i < IR_NUM_OPS; i++)
    names[i] = ir_ops[i].name;
  ir_diag *d =
      diag_error(p->s.diags, scan_from(&p->s, from), "E0103", "unknown operation '%s'", word);
  parse_suggest(d, word, names, IR_NUM_OPS);
  return false;
}

// The node's type by the op's rule must be the type that the line ends with.
static bool check_type(ir_parser *p, node_text *t) {
  ir_arena *a = p->s.arena;
  int num = (int)t->in.num;
  ir_type *in = IR_NEW_ARRAY(a, ir_type, num + 1), type;
  for (int i = 0; i < num; i++)
    in[i] = t->in.at[i]->type;
  const ir_type *given = t->op == IR_READ ? &t->state->type : t->op == IR_WRITE ? NULL : &t->type;
  const char *why;
  if (!ir_infer(a, t->op, num, in, t->num_attrs, t->attrs, given, &type, &why)) {
    diag_error(p->s.diags, t->at, "E0109", "%s: %s", ir_ops[t->op].name, why);
    return false;
  }
  if (t->op != IR_WRITE && !ir_same_type(&type, &t->type)) {
    diag_error(p->s.diags, t->type_at, "E0109", "%s gives %s, the line says %s", ir_ops[t->op].name,
               ir_type_str(a, &type), ir_type_str(a, &t->type));
    return false;
  }
  t->type = type;
  return true;
}

// Views and leaves between the members of a kernel belong to nobody: whoever uses one computes it.
static bool stands_alone(ir_op op) {
  return ir_ops[op].cls == IR_CLASS_VIEW || ir_ops[op].cls == IR_CLASS_LEAF;
}

static void add_node(ir_parser *p, node_text *t) {
  ir_arena *a = p->m->arena;
  ir_node *n = IR_NEW(a, ir_node);
  *n = (ir_node){.op = t->op,
                 .type = t->type,
                 .id = p->f->next_id++,
                 .name = t->name,
                 .in = t->in.at,
                 .num_in = (int)t->in.num,
                 .num_attrs = t->num_attrs,
                 .state = t->state,
                 .loc = t->loc,
                 .kernel = stands_alone(t->op) ? NULL : p->kernel};
  ir_attr *attrs = IR_NEW_ARRAY(a, ir_attr, t->num_attrs + 1);
  memcpy(attrs, t->attrs, sizeof *attrs * (size_t)t->num_attrs);
  ir_sort_attrs(attrs, t->num_attrs);
  n->attrs = attrs;
  IR_PUSH(a, p->f->nodes, n);
  IR_PUSH(a, p->node_locs, t->at);
  if (n->kernel)
    IR_PUSH(a, p->kernel->nodes, n);
  if (t->op != IR_WRITE)
    ir_map_put(p->f->names, n->name, n);
}

static bool parse_value_text(ir_parser *p, node_text *t) {
  if (!scan_expect(&p->s, '=', "'='") || !parse_op(p, &t->op))
    return false;
  if (t->op == IR_WRITE) {
    diag_error(p->s.diags, t->at, "E0102", "write gives no value: leave out '%%%s ='", t->name);
    return false;
  }
  if (!parse_operands(p, t) || !parse_attrs(p, t) || !scan_expect(&p->s, ':', "':' and a type"))
    return false;
  scan_at_end(&p->s);
  const char *from = p->s.at;
  if (!scan_type(&p->s, &t->type))
    return false;
  t->type_at = scan_from(&p->s, from);
  return scan_end(&p->s, &t->loc);
}

static void parse_value_line(ir_parser *p) {
  node_text t = {.at = scan_here(&p->s)};
  if (!(t.name = scan_sigil_name(&p->s, '%', "a value such as %x")))
    return;
  bool twice = ir_map_get(p->f->names, t.name) != NULL;
  if (twice)
    diag_error(p->s.diags, t.at, "E0107", "%%%s is defined twice", t.name);
  if (twice)
    return;
  if (parse_value_text(p, &t) && !t.broken && check_type(p, &t))
    add_node(p, &t);
  else
    ir_map_put(p->broken, t.name, p->broken);
}

static void parse_write(ir_parser *p) {
  node_text t = {.at = scan_here(&p->s), .op = IR_WRITE};
  p->s.at += strlen("write");
  if (!parse_operands(p, &t) || !scan_end(&p->s, &t.loc) || t.broken || !check_type(p, &t))
    return;
  t.name = ir_write_name(p->m->arena, t.state);
  add_node(p, &t);
}

// --- results -------------------------------------------------------------------------------------
static bool parse_result_kind(ir_parser *p, ir_result_kind *out) {
  static const char *const kinds[] = {"loss", "metric", "output"};
  scan_at_end(&p->s);
  const char *from = p->s.at, *word = scan_name(&p->s, "loss, metric or output");
  if (!word)
    return false;
  for (int i = 0; i < 3; i++)
    if (strcmp(kinds[i], word) == 0) {
      *out = (ir_result_kind)i;
      return true;
    }
  ir_diag *d =
      diag_error(p->s.diags, scan_from(&p->s, from), "E0110", "unknown kind of result '%s'", word);
  parse_suggest(d, word, kinds, 3);
  return false;
}

static void parse_result(ir_parser *p) {
  p->s.at += strlen("result");
  ir_result_kind kind;
  bool broken = false;
  const char *name;
  ir_node *n;
  if (!parse_result_kind(p, &kind) || !(name = scan_name(&p->s, "the result's name")) ||
      !scan_expect(&p->s, '=', "'='") || !(n = parse_value(p, &broken)) || !scan_end(&p->s, NULL))
    return;
  ir_result_add(p->f, name, kind, n);
}

// --- kernels -------------------------------------------------------------------------------------
static bool parse_family(ir_parser *p, ir_family *out) {
  scan_at_end(&p->s);
  const char *from = p->s.at, *word = scan_name(&p->s, "a kernel family");
  if (!word)
    return false;
  for (int i = 0; i < IR_NUM_FAMILIES; i++)
    if (strcmp(ir_family_names[i], word) == 0) {
      *out = (ir_family)i;
      return true;
    }
  ir_diag *d =
      diag_error(p->s.diags, scan_from(&p->s, from), "E0110", "unknown kernel family '%s'", word);
  parse_suggest(d, word, ir_family_names, IR_NUM_FAMILIES);
  return false;
}

// Where the note of that name is kept, NULL for none.
static const char **note_called(ir_parser *p, const char *word) {
  if (!strcmp(word, "stores")) {
    IR_PUSH(p->m->arena, p->stores, NULL);
    return &p->stores.at[p->stores.num - 1];
  }
  return !strcmp(word, "anchor")  ? &p->anchor
         : !strcmp(word, "again") ? &p->again
         : !strcmp(word, "begin") ? &p->begin
                                  : NULL;
}

// anchor=%value, again=kernel and begin=kernel, each at most once; stores=%value, as often as there are any.
static bool parse_kernel_notes(ir_parser *p) {
  static const char notes[] = "anchor=%value, again=kernel, begin=kernel, stores=%value or '{'";
  p->anchor = p->again = p->begin = NULL;
  p->stores.num = 0;
  while (!scan_peek(&p->s, '{')) {
    const char *word = scan_name(&p->s, notes);
    if (!word)
      return false;
    const char **note = note_called(p, word);
    if (!note || *note) {
      scan_unexpected(&p->s, notes);
      return false;
    }
    bool kernel = note == &p->again || note == &p->begin;
    if (scan_expect(&p->s, '=', "'='"))
      *note = kernel ? scan_name(&p->s, "the name of an earlier kernel")
                     : scan_sigil_name(&p->s, '%', "a value such as %y");
    if (!*note)
      return false;
  }
  return true;
}

static void parse_kernel_head(ir_parser *p) {
  ir_kernel *k = IR_NEW(p->m->arena, ir_kernel);
  p->kernel_loc = scan_here(&p->s);
  if (p->kernel)
    diag_error(p->s.diags, p->kernel_loc, "E0102",
               "a kernel inside of kernel '%s': is a '}' missing?", p->kernel->name);
  p->s.at += strlen("kernel");
  k->name = "_";
  p->kernel = k;
  k->id = (uint32_t)p->f->kernels.num;
  IR_PUSH(p->m->arena, p->f->kernels, k);
  const char *name = scan_name(&p->s, "the kernel's name");
  if (name)
    k->name = name;
  if (name && parse_family(p, &k->family) && parse_kernel_notes(p) &&
      scan_expect(&p->s, '{', "'{'"))
    scan_end(&p->s, NULL);
}

static const ir_kernel *find_kernel(const ir_func *f, const ir_kernel *before, const char *name) {
  for (size_t i = 0; i < f->kernels.num && f->kernels.at[i] != before; i++)
    if (!strcmp(f->kernels.at[i]->name, name))
      return f->kernels.at[i];
  return NULL;
}

// The member of that name: NULL, and an error unless its own line had one.
static ir_node *find_member(ir_parser *p, const ir_kernel *k, const char *what, const char *name) {
  if (ir_map_get(p->broken, name))
    return NULL;
  ir_node *n = ir_map_get(p->f->names, name);
  if (n && n->kernel == k)
    return n;
  diag_error(p->s.diags, p->kernel_loc, "E0106", "%s %%%s is not in kernel '%s'", what, name,
             k->name);
  return NULL;
}

static void close_kernel(ir_parser *p) {
  ir_kernel *k = p->kernel;
  p->kernel = NULL;
  // What runs again, or is sent, does so where it stands.
  p->f->ordered |= p->again != NULL || ir_is_transfer(k);
  if (p->again && !(k->clone_of = find_kernel(p->f, k, p->again)))
    diag_error(p->s.diags, p->kernel_loc, "E0106",
               "kernel '%s' says that it runs '%s' again: there is no such kernel before it",
               k->name, p->again);
  if (p->begin && !(k->begin = find_kernel(p->f, k, p->begin)))
    diag_error(p->s.diags, p->kernel_loc, "E0106",
               "kernel '%s' says that it begins before '%s': there is no such kernel before it",
               k->name, p->begin);
  if (k->nodes.num)
    k->anchor = k->nodes.at[k->nodes.num - 1];
  ir_node *anchor = p->anchor ? find_member(p, k, "the anchor", p->anchor) : NULL;
  if (anchor)
    k->anchor = anchor;
  for (size_t i = 0; i < p->stores.num; i++) {
    const char *name = p->stores.at[i]; // NULL: none was there
    ir_node *n = name ? find_member(p, k, "the stored value", name) : NULL;
    if (n)
      n->stored = true;
  }
}

// --- lines ---------------------------------------------------------------------------------------
static bool starts_with(const ir_scan *s, const char *word) {
  size_t n = strlen(word);
  return (size_t)(s->end - s->at) > n && memcmp(s->at, word, n) == 0 &&
         (s->at[n] == ' ' || s->at[n] == '\t');
}

static void parse_line(ir_parser *p) {
  if (scan_peek(&p->s, '%'))
    parse_value_line(p);
  else if (starts_with(&p->s, "write"))
    parse_write(p);
  else if (starts_with(&p->s, "kernel"))
    parse_kernel_head(p);
  else if (starts_with(&p->s, "result"))
    parse_result(p);
  else
    scan_unexpected(&p->s, "a value, write, kernel, result or '}'");
}

// In a function that is fused, a conversion outside of kernels belongs to the matmuls that use it.
static void fold_conversions(ir_func *f) {
  bool fused = ir_is_fused(f);
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    n->folded = fused && !n->kernel && ir_is_conversion(n);
  }
}

void parse_func_body(ir_parser *p, ir_loc head) {
  p->kernel = NULL;
  while (scan_line(&p->s)) {
    if (starts_with(&p->s, "func") || starts_with(&p->s, "state")) {
      p->s.again = true; // a line of the module: the '}' is missing
      break;
    }
    if (!scan_accept(&p->s, '}')) {
      parse_line(p);
      continue;
    }
    scan_end(&p->s, NULL);
    if (!p->kernel) {
      fold_conversions(p->f);
      return;
    }
    close_kernel(p);
  }
  diag_error(p->s.diags, head, "E0102", "function '%s' has no closing '}'", p->f->name);
}
