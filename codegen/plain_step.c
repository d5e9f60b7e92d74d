// plain_step.c: which plain versions together compute the loss, and where its gradients are.
//
// Optimisers are written in the language, and fusion puts their work into the kernels that make the
// gradients: in
//
//   kernel linear.w.new matmul {
//     %d.linear.w = matmul ...
//     %linear.w.mul = mul %lr, %d.linear.w
//     %linear.w.new = sub %linear.w, %linear.w.mul
//   }
//
// the gradient is never stored. So the plain versions of such kernels get a tap (plain.h). What is
// the gradient of a parameter? Going back from what is written to it, the first nodes that autodiff
// named after it: `d.linear.w`, or `d.linear.w.3` where recompute has made a copy. Where there is
// none, another parameter's gradient is a guess: of two biases that are added to one tensor, the
// node has one name. What comes behind gradients, clipping and optimiser, is compared kernel by
// kernel only.
//
// Kernels that neither the loss nor a gradient needs are left out: optimisers, metrics.
#include "codegen/plain_step.h"

#include <string.h>

#include "ir/builder.h"

// --- gradients -------------------------------------------------------------------------------
typedef struct search {
  ir_arena *a, *scratch;
  const ir_func *f;
  ir_map *params;         // name that follows "d." -> state
  const ir_state **named; // by node id: the parameter whose gradient it is by its name, or NULL
  size_t *left;   // by state id: nodes of its name that some walk meets and its own has not met
  uint32_t *seen; // by node id: walk that has been there
  const ir_node **queue; // of the walk at hand; each node once
  cg_plain_step *step;   // gets the taps
} search;

static void name_params(search *s) {
  for (size_t i = 0; i < s->f->nodes.num; i++) {
    const ir_node *n = s->f->nodes.at[i];
    if (n->op == IR_READ && n->state->role == IR_ROLE_PARAM && ir_is_float(n->type.dtype)) {
      ir_map_put(s->params, n->name, n->state);
      ir_map_put(s->params, n->state->name, n->state);
    }
  }
}

// "d.linear.w.3" -> "linear.w"; NULL when the name does not end in a number.
static const char *without_number(const search *s, const char *name) {
  size_t len = ir_before_number(name);
  return name[len] ? ir_strndup(s->scratch, name, len) : NULL;
}

// The same elements in the same order, perhaps in other dimensions: a gradient keeps its name when
// only its shape is dropped.
static bool same_elements(const ir_type *x, const ir_type *y) {
  return x->dtype == y->dtype && ir_elements(x) == ir_elements(y);
}

// The parameter whose gradient `n` is by its name; NULL: none.
static const ir_state *param_of(const search *s, const ir_node *n) {
  if (strncmp(n->name, "d.", 2) != 0)
    return NULL;
  const char *name = n->name + 2, *shorter = without_number(s, name);
  const ir_state *p = ir_map_get(s->params, name);
  if (!p && shorter)
    p = ir_map_get(s->params, shorter);
  return p && same_elements(&p->type, &n->type) ? p : NULL;
}

// A gradient that no kernel computes (a constant, another parameter): a call of its own reads it.
static cg_plain_call *leaf_call(search *s, ir_node *leaf) {
  ir_kernel *k = IR_NEW(s->a, ir_kernel);
  cg_kernel *c = IR_NEW(s->a, cg_kernel);
  k->name = leaf->name;
  k->anchor = leaf;
  *c = (cg_kernel){.k = k, .func = s->f, .arena = s->a};
  if (!ir_is_generated(leaf))
    IR_PUSH(s->a, c->in, leaf);
  cg_plain_call x = {.c = c, .needed = true};
  IR_PUSH(s->a, s->step->calls, x);
  return &s->step->calls.at[s->step->calls.num - 1];
}

static void add_gradient(search *s, const ir_node *n, const ir_state *param, bool guess) {
  dom_layout l;
  if (!dom_layout_of(n, &l))
    return;
  const ir_kernel *k = l.buffer->kernel;
  cg_plain_call *call = k ? &s->step->calls.at[k->id] : leaf_call(s, l.buffer);
  cg_tap tap = {n, param, guess};
  IR_PUSH(s->a, call->taps, tap);
  call->needed = true;
}

static bool is_update(const ir_node *n) {
  return n->op == IR_WRITE && n->state->role == IR_ROLE_PARAM;
}

// What walks from all parameters' writes meet, in one sweep: where a parameter has no more nodes of its name,
// its walk is over. Else each would go through the norm that all gradients are clipped by, and so through as
// many nodes as there are parameters.
static void count_met(search *s) {
  bool *met = IR_NEW_ARRAY(s->scratch, bool, s->f->next_id + 1);
  for (size_t i = s->f->nodes.num; i-- > 0;) { // users first
    const ir_node *n = s->f->nodes.at[i];
    s->named[n->id] = param_of(s, n);
    if (met[n->id] && s->named[n->id])
      s->left[s->named[n->id]->id]++;
    bool goes_on = is_update(n) || (met[n->id] && !s->named[n->id]);
    for (int k = 0; goes_on && k < n->num_in; k++)
      met[n->in[k]->id] = true;
  }
}

static void enqueue(search *s, size_t *num, const ir_node *n, const ir_state *own) {
  if (s->seen[n->id] != own->id + 1)
    s->queue[(*num)++] = n;
  s->seen[n->id] = own->id + 1;
}

// Walks from what is written to a parameter back to gradients, the nearest nodes first: a guess is
// the one of its own update, not of the norm that all gradients are clipped by.
static void find_gradients(search *s, const ir_node *write) {
  const ir_state *own = write->state;
  const ir_node *guess = NULL;
  size_t num = 0, *left = &s->left[own->id];
  bool found = false;
  enqueue(s, &num, write->in[0], own);
  for (size_t at = 0; at < num && (*left > 0 || !(found || guess)); at++) {
    const ir_node *n = s->queue[at];
    const ir_state *param = s->named[n->id];
    if (param == own) {
      add_gradient(s, n, own, false);
      found = true;
      (*left)--;
    } else if (param && !guess && ir_same_type(&n->type, &own->type)) {
      guess = n;
    }
    for (int i = 0; !param && i < n->num_in; i++)
      enqueue(s, &num, n->in[i], own);
  }
  if (guess && !found)
    add_gradient(s, guess, own, true);
}

static void find_all_gradients(ir_arena *a, const ir_func *f, cg_plain_step *step) {
  ir_arena *scratch = ir_arena_new();
  search s = {.a = a, .scratch = scratch, .f = f, .params = ir_map_new(scratch), .step = step};
  s.named = IR_NEW_ARRAY(scratch, const ir_state *, f->next_id + 1);
  s.left = IR_NEW_ARRAY(scratch, size_t, f->module->states.num + 1);
  s.seen = IR_NEW_ARRAY(scratch, uint32_t, f->next_id + 1);
  s.queue = IR_NEW_ARRAY(scratch, const ir_node *, f->next_id + 1);
  name_params(&s);
  count_met(&s);
  for (size_t i = 0; i < f->nodes.num; i++)
    if (is_update(f->nodes.at[i]))
      find_gradients(&s, f->nodes.at[i]);
  ir_arena_free(scratch);
}

// --- what is held ------------------------------------------------------------------------------
static const char *const grad_rule_names[IR_NUM_OPS] = {
#define OP(NAME, text, arity, cls, attrs, shape, grad, interp, flops, spell) #grad,
#include "ir/ops.def"
#undef OP
};

// The rule says that no gradient passes: finite differences must not see it change either. Nor may
// they see another choice than the gradient's.
static bool is_held(const ir_node *n) {
  if (n->num_in == 0 || !ir_is_float(n->in[n->num_in - 1]->type.dtype))
    return false;
  bool to_integer = n->op == IR_CAST && !ir_is_float(n->type.dtype);
  return to_integer || cg_plain_chooses(n) || strcmp(grad_rule_names[n->op], "zero") == 0;
}

static void hold_members(ir_arena *a, cg_plain_call *call) {
  for (size_t i = 0; i < call->c->k->nodes.num; i++) {
    cg_tap tap = {call->c->k->nodes.at[i], NULL, false};
    if (is_held(tap.node))
      IR_PUSH(a, call->taps, tap);
  }
}

// --- what is needed ----------------------------------------------------------------------------
// Calls are in an order in which they can run: one sweep from the last to the first.
static void find_needed(cg_plain_step *s) {
  for (size_t i = 0; i < s->losses.num; i++)
    s->calls.at[s->losses.at[i]->kernel->id].for_loss = true;
  for (size_t i = s->calls.num; i-- > 0;) {
    cg_plain_call *x = &s->calls.at[i];
    x->needed |= x->for_loss;
    for (size_t k = 0; x->needed && k < x->c->in.num; k++) {
      const ir_kernel *made = dom_owner(x->c->in.at[k])->kernel;
      if (made) {
        cg_plain_call *from = &s->calls.at[made->id];
        from->needed = true;
        from->for_loss |= x->for_loss;
      }
    }
  }
}

static void find_losses(ir_arena *a, cg_plain_step *s) {
  for (size_t i = 0; i < s->func->results.num; i++) {
    const ir_result *r = &s->func->results.at[i];
    if (r->kind == IR_RESULT_LOSS && r->node->kernel)
      IR_PUSH(a, s->losses, r->node);
  }
}

static size_t index_of_step(const ir_module *m) {
  size_t i = 0;
  while (i < m->funcs.num && strcmp(m->funcs.at[i]->name, "step") != 0)
    i++;
  return i;
}

cg_plain_step *cg_plain_step_new(const cg_program *p) {
  size_t at = index_of_step(p->module);
  const ir_func *f = at < p->module->funcs.num ? p->module->funcs.at[at] : NULL;
  if (!f)
    return NULL;
  cg_plain_step *step = IR_NEW(p->arena, cg_plain_step);
  step->func = f;
  find_losses(p->arena, step);
  if (!step->losses.num)
    return NULL;
  for (size_t i = 0; i < f->kernels.num; i++) {
    cg_plain_call x = {.c = p->kernels[at][i]};
    IR_PUSH(p->arena, step->calls, x);
  }
  find_all_gradients(p->arena, f, step);
  find_needed(step);
  for (size_t i = 0; i < step->calls.num; i++)
    if (step->calls.at[i].for_loss)
      hold_members(p->arena, &step->calls.at[i]);
  return step;
}

// --- functions ---------------------------------------------------------------------------------
typedef struct functions {
  ir_arena *a, *scratch;   // scratch: of one function
  ir_map *by_text, *names; // text without names -> function's name; names that are taken
  ir_buf *out;
} functions;

// Most texts are those of an earlier function: none is kept but in `out` and as a key.
static const char *function_of(functions *fs, const cg_kernel *c, const cg_taps *taps,
                               const char *base) {
  ir_arena_clear(fs->scratch);
  ir_buf text = ir_buf_new(fs->scratch);
  cg_plain_emit(fs->scratch, c, taps, false, "PLAIN", &text);
  const char *name = ir_map_get(fs->by_text, ir_buf_str(&text));
  if (name)
    return name;
  name = ir_map_new_name(fs->names, fs->a, ir_format(fs->a, "%s_plain", base), '_');
  ir_map_put(fs->by_text, ir_buf_str(&text), (void *)(uintptr_t)name);
  cg_plain_emit(fs->scratch, c, taps, true, name, fs->out);
  return name;
}

// The call of kernel `c`, when it is one.
static const cg_plain_call *call_of(const cg_plain_step *s, const cg_kernel *c) {
  if (!s || c->func != s->func || !s->calls.at[c->k->id].needed)
    return NULL;
  return &s->calls.at[c->k->id];
}

static void emit_calls(functions *fs, const cg_program *p, cg_plain_step *s) {
  size_t step = index_of_step(p->module);
  for (size_t i = 0; i < s->calls.num; i++) {
    cg_plain_call *x = &s->calls.at[i];
    const cg_distinct *d = i < s->func->kernels.num ? p->shared[step][i] : NULL;
    const char *base = d                          ? d->name
                       : i < s->func->kernels.num ? "transfer"
                                                  : ir_format(fs->a, "%sgradient", p->prefix);
    if (x->needed)
      x->name = function_of(fs, x->c, &x->taps, base);
  }
}

void cg_plain_emit_all(cg_program *p, cg_plain_step *s, ir_buf *out) {
  static const cg_taps none = {0};
  ir_arena *maps = ir_arena_new(), *scratch = ir_arena_new();
  functions fs = {p->arena, scratch, ir_map_new(maps), ir_map_new(maps), out};
  if (s)
    emit_calls(&fs, p, s);
  for (size_t i = 0; i < p->distinct.num; i++) {
    cg_distinct *d = p->distinct.at[i];
    const cg_plain_call *x = call_of(s, d->uses.at[0]);
    d->plain = x ? x->name : function_of(&fs, d->uses.at[0], &none, d->name);
  }
  ir_arena_free(scratch);
  ir_arena_free(maps);
}
