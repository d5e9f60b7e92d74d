// verify.c: every rule that a module must obey, checked after each pass. All violations
// are collected; ir_verify prints the functions they are in with each one under its line.
// The rules about kernels are in verify_kernels.c, the list of all rules in docs/ir.md.
#include "ir/builder.h"
#include "ir/internal.h"
#include "ir/verify.h"

#include <math.h>
#include <string.h>

// --- values -------------------------------------------------------------------------------
// Operands are nodes of this function that come earlier. False: types cannot be checked.
static bool check_operands(ir_checker *c, const ir_node *n) {
  bool ok = true;
  for (int i = 0; i < n->num_in; i++) {
    const ir_node *x = n->in[i];
    if (!x || x->id >= c->f->next_id || c->by_id[x->id] != x) {
      ir_fault_add(c, n, "operand %d (%s%s) is not a node of function '%s'", i + 1, x ? "%" : "",
                   x ? x->name : "none", c->f->name);
      ok = false;
    } else if (c->position[x->id] >= c->position[n->id]) {
      ir_fault_add(c, n, "operand %%%s comes after its user %%%s", x->name, n->name);
    }
  }
  return ok;
}

static void check_type(ir_checker *c, const ir_node *n) {
  ir_type few[8], *in = n->num_in <= 8 ? few : IR_NEW_ARRAY(c->faults->arena, ir_type, n->num_in);
  for (int i = 0; i < n->num_in; i++)
    in[i] = n->in[i]->type;
  ir_type type;
  const char *why;
  const ir_type *given = n->op == IR_READ && n->state ? &n->state->type : &n->type;
  if (!ir_infer(c->faults->arena, n->op, n->num_in, in, n->num_attrs, n->attrs, given, &type, &why))
    ir_fault_add(c, n, "%s: %s", ir_ops[n->op].name, why);
  else if (!ir_same_type(&type, &n->type))
    ir_fault_add(c, n, "%s gives %s, the node says %s", ir_ops[n->op].name,
                 ir_type_str(c->faults->arena, &type), ir_type_str(c->faults->arena, &n->type));
}

// Whole, and inside the range of the element type: what is stored is what is written.
static bool holds(ir_dtype t, double v) {
  if (ir_is_float(t))
    return true;
  ir_dtype_kind kind = ir_dtypes[t].kind;
  int bits = kind == IR_KIND_BOOL ? 1 : 8 * ir_dtypes[t].bytes;
  double hi = ldexp(1, kind == IR_KIND_SINT ? bits - 1 : bits), lo = kind == IR_KIND_SINT ? -hi : 0;
  return v == rint(v) && v >= lo && v < hi;
}

static void check_const(ir_checker *c, const ir_node *n) {
  const ir_attr *a = n->op == IR_CONST || n->op == IR_PAD ? ir_find_attr(n, IR_ATTR_VALUE) : NULL;
  if (a && !holds(n->type.dtype, a->as.num))
    ir_fault_add(c, n, "the value %g is no %s", a->as.num, ir_dtypes[n->type.dtype].name);
}

// Names of writes are not part of the text form and need no check.
static void check_name(ir_checker *c, const ir_node *n) {
  if (n->op == IR_WRITE)
    return;
  if (!n->name || !ir_valid_name(n->name)) {
    ir_fault_add(c, n, "'%s' is not a name", n->name ? n->name : "");
    return;
  }
  if (ir_map_get(c->names, n->name))
    ir_fault_add(c, n, "two values are called %%%s", n->name);
  ir_map_put(c->names, n->name, (void *)n);
}

// --- states ---------------------------------------------------------------------------------
static void check_write(ir_checker *c, const ir_node *n) {
  const ir_state *s = n->state;
  if (n->num_in == 1 && n->in[0] && !ir_same_type(&n->in[0]->type, &s->type))
    ir_fault_add(c, n, "state '%s' is %s, the value written is %s", s->name,
                 ir_type_str(c->faults->arena, &s->type),
                 ir_type_str(c->faults->arena, &n->in[0]->type));
  if (s->role == IR_ROLE_FLAG)
    ir_fault_add(c, n, "'%s' is a flag: it cannot be written", s->name);
  if (c->written[s->id])
    ir_fault_add(c, n, "state '%s' is written twice", s->name);
  c->written[s->id] = true;
}

static void check_state_use(ir_checker *c, const ir_node *n) {
  bool wants = n->op == IR_READ || n->op == IR_WRITE;
  const ir_module *m = c->m;
  if (!wants) {
    if (n->state)
      ir_fault_add(c, n, "%s cannot refer to a state", ir_ops[n->op].name);
    return;
  }
  if (!n->state || n->state->id >= m->states.num || m->states.at[n->state->id] != n->state) {
    ir_fault_add(c, n, "%s refers to no state of this module", ir_ops[n->op].name);
    return;
  }
  if (n->op == IR_WRITE)
    check_write(c, n);
}

// --- functions --------------------------------------------------------------------------------
// Positions by id; false when ids are not usable as indices.
static bool index_nodes(ir_checker *c) {
  const ir_func *f = c->f;
  c->by_id = IR_NEW_ARRAY(c->faults->arena, const ir_node *, f->next_id + 1);
  c->position = IR_NEW_ARRAY(c->faults->arena, size_t, f->next_id + 1);
  bool ok = true;
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->id >= f->next_id || c->by_id[n->id]) {
      ir_fault_add(c, NULL, "%%%s has the id %u, which is %s", n->name, n->id,
                   n->id >= f->next_id ? "out of range" : "taken");
      ok = false;
      continue;
    }
    c->by_id[n->id] = n;
    c->position[n->id] = i;
  }
  return ok;
}

static void check_node(ir_checker *c, const ir_node *n) {
  check_name(c, n);
  check_state_use(c, n);
  if (check_operands(c, n) && (n->state || n->op != IR_READ))
    check_type(c, n);
  check_const(c, n);
}

static void check_results(ir_checker *c) {
  ir_map *names = ir_map_new(c->faults->arena);
  const ir_type scalar = ir_scalar(IR_F32);
  for (size_t i = 0; i < c->f->results.num; i++) {
    const ir_result *r = &c->f->results.at[i];
    const ir_node *n = r->node;
    if (!ir_valid_name(r->name))
      ir_fault_add(c, NULL, "result '%s' is not a name", r->name);
    if (ir_map_get(names, r->name))
      ir_fault_add(c, NULL, "two results are called '%s'", r->name);
    ir_map_put(names, r->name, c);
    verify_result_name(c, r);
    if (!n || n->id >= c->f->next_id || c->by_id[n->id] != n)
      ir_fault_add(c, NULL, "result '%s' is not a node of function '%s'", r->name, c->f->name);
    else if (ir_ops[n->op].cls == IR_CLASS_EFFECT)
      ir_fault_add(c, n, "result '%s' is a write, which has no value", r->name);
    else if (r->kind != IR_RESULT_OUTPUT && !ir_same_type(&n->type, &scalar))
      ir_fault_add(c, n, "result '%s' must be f32[], and is %s", r->name,
                   ir_type_str(c->faults->arena, &n->type));
  }
}

// As states, with which they share 64 bits; a gradient makes several values of each.
static void check_value_bytes(ir_checker *c) {
  const int digits = ir_has_op(c->f, IR_GRAD) ? 57 : 61;
  const int64_t most = (int64_t)1 << digits;
  int64_t bytes = 0;
  if (c->faults->list.num)
    return;
  for (size_t i = 0; i < c->f->nodes.num && bytes <= most; i++) {
    const ir_node *n = c->f->nodes.at[i];
    if (ir_is_computed(n) || n->op == IR_INPUT)
      bytes += ir_bytes(&n->type);
  }
  if (bytes > most)
    ir_fault_add(c, NULL, "values of function '%s' take more than 2^%d bytes in all", c->f->name,
                 digits);
}

static void check_func(ir_faults *faults, const ir_module *m, const ir_func *f) {
  ir_checker c = {
      .faults = faults, .m = m, .f = f, .names = ir_map_new_lent(faults->arena, f->nodes.num)};
  c.written = IR_NEW_ARRAY(faults->arena, bool, m->states.num + 1);
  if (!ir_valid_name(f->name))
    ir_fault_add(&c, NULL, "function '%s' is not a name", f->name);
  if (f->module != m)
    ir_fault_add(&c, NULL, "function '%s' belongs to another module", f->name);
  if (!index_nodes(&c))
    return;
  for (size_t i = 0; i < f->nodes.num; i++)
    check_node(&c, f->nodes.at[i]);
  check_value_bytes(&c);
  check_results(&c);
  verify_inputs(&c);
  verify_kernels(&c);
}

// --- modules ------------------------------------------------------------------------------------
static void check_state(ir_checker *c, const ir_state *s, ir_map *names) {
  c->state = s;
  const ir_type counter = ir_scalar(IR_I64);
  ir_type type;
  const char *why;
  if (!ir_valid_name(s->name))
    ir_fault_add(c, NULL, "state '%s' is not a name", s->name);
  if (ir_map_get(names, s->name))
    ir_fault_add(c, NULL, "two states are called '%s'", s->name);
  ir_map_put(names, s->name, (void *)s);
  if (!ir_infer(c->faults->arena, IR_INPUT, 0, NULL, 0, NULL, &s->type, &type, &why))
    ir_fault_add(c, NULL, "state '%s': %s", s->name, why);
  bool counts = s->role == IR_ROLE_COUNTER || s->role == IR_ROLE_SEED;
  if (counts && !ir_same_type(&s->type, &counter))
    ir_fault_add(c, NULL, "state '%s' has the role %s and must be i64[]", s->name,
                 ir_role_names[s->role]);
  if (s->as && (s->as->id >= s->id || !ir_same_type(&s->as->type, &s->type)))
    ir_fault_add(c, NULL, "state '%s' begins as '%s', which is no earlier state of its type",
                 s->name, s->as->name);
  if (s->role == IR_ROLE_FLAG && s->type.rank != 0)
    ir_fault_add(c, NULL, "state '%s' is a flag and must be a scalar", s->name);
  if (!holds(s->type.dtype, s->value))
    ir_fault_add(c, NULL, "the value %g of state '%s' is no %s", s->value, s->name,
                 ir_dtypes[s->type.dtype].name);
  verify_checkpointed(c, s);
  c->state = NULL;
}

static const char *setting_text(const ir_checker *c, const char *key) {
  return ir_setting_text(c->faults->arena, ir_find_config(c->m, key));
}

// What the compiler and the training loop compute with unseen.
static void check_config(ir_checker *c) {
  enum { MOST_PARTS = 1 << 20 };
  if (ir_find_config(c->m, "memory_budget") && !ir_config_count(c->m, "memory_budget"))
    ir_fault_add(c, NULL,
                 "config memory_budget must be a whole number of bytes, above 0, and is %s",
                 setting_text(c, "memory_budget"));
  int64_t parts = ir_config_count(c->m, "micro_batches");
  if (ir_find_config(c->m, "micro_batches") && (parts == 0 || parts > MOST_PARTS))
    ir_fault_add(c, NULL, "config micro_batches must be a whole number from 1 to %d, and is %s",
                 MOST_PARTS, setting_text(c, "micro_batches"));
}

// They are added up in 64 bits, with what else a step needs. Of states whose types are right.
static void check_state_bytes(ir_checker *c) {
  const int64_t most = (int64_t)1 << 61;
  int64_t bytes = 0;
  if (c->faults->list.num)
    return;
  for (size_t i = 0; i < c->m->states.num && bytes <= most; i++)
    bytes += ir_bytes(&c->m->states.at[i]->type);
  if (bytes > most)
    ir_fault_add(c, NULL, "states take more than 2^61 bytes in all");
}

static void check_module(ir_faults *faults, const ir_module *m) {
  ir_checker c = {.faults = faults, .m = m};
  ir_map *states = ir_map_new(faults->arena), *funcs = ir_map_new(faults->arena);
  if (!ir_valid_name(m->name))
    ir_fault_add(&c, NULL, "module '%s' is not a name", m->name);
  for (size_t i = 0; i < m->states.num; i++) {
    if (m->states.at[i]->id != i)
      ir_fault_add(&c, NULL, "state '%s' has the id %u at place %zu", m->states.at[i]->name,
                   m->states.at[i]->id, i);
    check_state(&c, m->states.at[i], states);
  }
  check_state_bytes(&c);
  if (m->funcs.num > IR_MAX_FUNCS)
    ir_fault_add(&c, NULL, "%zu functions; a module has at most %d", m->funcs.num, IR_MAX_FUNCS);
  for (size_t i = 0; i < m->funcs.num; i++) {
    if (ir_map_get(funcs, m->funcs.at[i]->name))
      ir_fault_add(&c, NULL, "two functions are called '%s'", m->funcs.at[i]->name);
    ir_map_put(funcs, m->funcs.at[i]->name, m->funcs.at[i]);
  }
  check_config(&c);
  verify_settings(&c);
}

void ir_find_faults(const ir_module *m, ir_faults *out) {
  check_module(out, m);
  for (size_t i = 0; i < m->funcs.num; i++)
    check_func(out, m, m->funcs.at[i]);
}

void ir_fault_add(ir_checker *c, const ir_node *n, const char *fmt, ...) {
  ir_buf b = ir_buf_new(c->faults->arena);
  va_list ap;
  va_start(ap, fmt);
  ir_buf_vprintf(&b, fmt, ap);
  va_end(ap);
  ir_fault fault = {c->f, n, c->state, ir_buf_str(&b)};
  IR_PUSH(c->faults->arena, c->faults->list, fault);
}

// --- printing -----------------------------------------------------------------------------------
static void print_note(void *data, const ir_node *n, ir_buf *out) {
  const ir_faults *faults = data;
  for (size_t i = 0; i < faults->list.num; i++)
    if (faults->list.at[i].node == n)
      ir_buf_printf(out, "  #^ %s\n", faults->list.at[i].text);
}

static void print_lines(const ir_faults *faults, ir_buf *out) {
  for (size_t i = 0; i < faults->list.num; i++) {
    const ir_fault *x = &faults->list.at[i];
    ir_buf_printf(out, "%s%s%s%s: %s\n", x->func ? "func " : "module", x->func ? x->func->name : "",
                  x->node ? ": %" : "", x->node ? x->node->name : "", x->text);
  }
}

// The printer indexes by id: a function whose ids are faulty cannot be printed.
static bool printable(const ir_func *f) {
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->id >= f->next_id)
      return false;
  for (size_t i = 0; i < f->kernels.num; i++)
    for (size_t k = 0; k < f->kernels.at[i]->nodes.num; k++)
      if (f->kernels.at[i]->nodes.at[k]->id >= f->next_id)
        return false;
  return true;
}

static void print_annotated(const ir_func *f, const ir_faults *faults, ir_buf *out) {
  bool at_node = false;
  for (size_t i = 0; i < faults->list.num; i++)
    at_node = at_node || (faults->list.at[i].func == f && faults->list.at[i].node);
  if (at_node && printable(f))
    ir_print_func_notes(f, out, print_note, (void *)faults);
}

int ir_verify(const ir_module *m, ir_buf *out) {
  ir_arena *scratch = ir_arena_new(); // runs after every pass: must not fill the module's arena
  ir_faults faults = {.arena = scratch};
  ir_find_faults(m, &faults);
  print_lines(&faults, out);
  for (size_t i = 0; i < m->funcs.num && faults.list.num; i++)
    print_annotated(m->funcs.at[i], &faults, out);
  int num = (int)faults.list.num;
  ir_arena_free(scratch);
  return num;
}
