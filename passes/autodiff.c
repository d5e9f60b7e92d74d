// autodiff.c: expands every `grad` node by reverse mode.
//
//   before:  %loss = ...                       after:  %loss = ...
//            %g = grad %loss, %w                       %d.loss = const {value=1.0}
//            %h = grad %loss, %b                       %d.y = ...        # adjoints, last node first
//                                                      %d.w = ...        # stands for %g
//                                                      %d.b = ...        # stands for %h
//
// All `grad` nodes with one loss expand together, in one sweep from the loss back, placed where
// the first of them stood: all that a sweep uses comes before the loss. Only nodes on a path from
// a `wrt` node get adjoints. An adjoint is the sum of its shares in the order of the sweep, so the
// order of additions is fixed. A `wrt` node can be any floating-point node. Since the rules build
// ordinary nodes, the gradient of a gradient works: a later `grad` sees the earlier one expanded.
//
// Needs: nothing. Leaves no `grad` node. Reports E0501 (no gradient rule) and W0502 (what is
// differentiated does not depend on a node: its gradient is zero).
#include "passes/grad.h"
#include "passes/pass.h"

static const grad_rule rules[IR_NUM_OPS] = {
#define OP(NAME, text, arity, cls, attrs, shape, grad, interp, flops, spell) grad_##grad,
#include "ir/ops.def"
#undef OP
};

typedef struct expansion {
  ir_rewrite rw;
  ir_func *func;
  ir_arena *arena;
  ir_diags *diags;
  ir_map *told;        // of warnings: a model has its calls of grad() in each function
  ir_node **value;     // by id of an expanded `grad` node: what stands for it
  uint32_t num_values; // ids below this have an entry in `value`
} expansion;

// Operands of `grad` nodes that the rewrite has not reached may be `grad` nodes expanded by now.
static ir_node *resolve(const expansion *e, ir_node *n) {
  return n->id < e->num_values && e->value[n->id] ? e->value[n->id] : n;
}

static bool same_loss(const expansion *e, const ir_node *n, const ir_node *loss) {
  return n->op == IR_GRAD && resolve(e, n->in[0]) == loss;
}

// --- which nodes matter --------------------------------------------------------------------
// wanted[id]: the node is a `wrt` node of this loss or depends on one, by a differentiable way.
static bool *find_wanted(const expansion *e, const ir_node *loss, size_t num) {
  bool *wanted = IR_NEW_ARRAY(e->arena, bool, e->func->next_id);
  for (size_t i = 0; i < e->rw.num_old; i++)
    if (same_loss(e, e->rw.old[i], loss))
      wanted[resolve(e, e->rw.old[i]->in[1])->id] = true;
  for (size_t i = 0; i < num; i++) {
    const ir_node *n = e->func->nodes.at[i];
    bool flows = ir_is_float(n->type.dtype) && rules[n->op] != grad_zero;
    for (int k = 0; flows && k < n->num_in; k++)
      wanted[n->id] |= wanted[n->in[k]->id];
  }
  return wanted;
}

// The sweep goes on behind the node, so that all missing rules of a function are reported at once.
static void report_missing_rule(expansion *e, grad_ctx *c, ir_node *n) {
  for (int k = 0; k < n->num_in; k++)
    GIVE(k, ir_const(&c->b, n->in[k]->type, 0));
  if (n->mark)
    return;
  n->mark = 1;
  ir_diag *d = diag_error(e->diags, n->loc, "E0501", "'%s' has no gradient, and '%s' needs one",
                          ir_ops[n->op].name, n->name);
  diag_help(d, "a parameter reaches the loss through it; stop(...) cuts the path");
}

// --- the sweep --------------------------------------------------------------------------------
// Names a finished adjoint after its node. One that was passed on (by add, copy, ...) keeps the
// name it has: that of the node nearest to the loss. `mark` of an adjoint: it has its name; of
// a node of the function: it has been reported.
static void name_adjoint(const expansion *e, ir_node *g, const ir_node *of) {
  if (!g->mark)
    ir_rename(e->func, g, ir_format(e->arena, "d.%s", of->name));
  g->mark = 1;
}

static ir_node *seed_adjoint(ir_builder *b, ir_node *loss) {
  b->loc = loss->loc;
  return ir_const(b, loss->type, 1);
}

// Adjoints of all wanted nodes that `loss` depends on, by id.
static ir_node **sweep(expansion *e, ir_node *loss, size_t num) {
  grad_ctx c = {.b = e->rw.b, .wanted = find_wanted(e, loss, num)};
  c.adjoint = IR_NEW_ARRAY(e->arena, ir_node *, e->func->next_id);
  if (c.wanted[loss->id])
    c.adjoint[loss->id] = seed_adjoint(&c.b, loss);
  for (size_t i = num; i-- > 0;) {
    ir_node *n = e->func->nodes.at[i], *g = c.adjoint[n->id];
    if (!g)
      continue;
    name_adjoint(e, g, n);
    c.b.loc = n->loc;
    c.b.scope = ir_format(e->arena, "d.%s", n->name);
    if (rules[n->op] == grad_none)
      report_missing_rule(e, &c, n);
    else
      rules[n->op](&c, n, g);
  }
  return c.adjoint;
}

// --- results ------------------------------------------------------------------------------------
static void warn_of_zero(expansion *e, const ir_node *grad, const ir_node *wrt) {
  const ir_state *s = wrt->state;
  ir_loc at = s ? s->loc : grad->loc;
  const char *id = ir_format(e->arena, "%u:%u %s", at.line, at.col, s ? s->name : wrt->name);
  if (ir_map_get(e->told, id))
    return;
  ir_map_put(e->told, id, e->told);
  ir_diag *d = diag_warning(e->diags, at, "W0502", "%s does not depend on '%s'",
                            s ? "the loss" : "what is differentiated", s ? s->name : wrt->name);
  diag_help(d,
            s ? "its gradient is zero: training leaves it as it is, but for weight decay"
              : "the gradient is zero: none goes through stop(), floor(), sign() and comparisons");
}

static ir_node *zero_gradient(expansion *e, const ir_node *grad, const ir_node *wrt) {
  warn_of_zero(e, grad, wrt);
  ir_builder b = e->rw.b;
  b.loc = grad->loc;
  return ir_const(&b, wrt->type, 0);
}

// What stands for a `grad` node has its name: that is what the rest of the program calls it.
static void hand_over_name(expansion *e, const ir_node *grad, ir_node *g) {
  ir_map_put(e->func->names, grad->name, NULL);
  if (g->mark < 2)
    ir_rename(e->func, g, grad->name);
  g->mark = 2;
}

// Expands all `grad` nodes that share the loss of `first`, which is next in the list.
static void expand_group(expansion *e, const ir_node *first) {
  ir_node *loss = resolve(e, first->in[0]);
  size_t num = e->func->nodes.num;
  uint32_t known = e->func->next_id;
  ir_node **adjoint = sweep(e, loss, num);
  for (size_t i = 0; i < e->rw.num_old; i++) {
    ir_node *n = e->rw.old[i];
    if (!same_loss(e, n, loss))
      continue;
    ir_node *wrt = resolve(e, n->in[1]), *g = wrt->id < known ? adjoint[wrt->id] : NULL;
    e->value[n->id] = g ? g : zero_gradient(e, n, wrt);
    hand_over_name(e, n, e->value[n->id]);
  }
}

static bool expand_func(ir_func *f, ir_diags *d, ir_map *told) {
  if (!ir_has_op(f, IR_GRAD))
    return false;
  ir_arena *a = f->module->arena;
  expansion e = {.func = f, .arena = a, .diags = d, .told = told, .num_values = f->next_id};
  e.value = IR_NEW_ARRAY(a, ir_node *, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++)
    f->nodes.at[i]->mark = 0;
  e.rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < e.rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&e.rw, i);
    bool is_grad = n->op == IR_GRAD;
    if (is_grad && !e.value[n->id])
      expand_group(&e, n);
    ir_rewrite_done(&e.rw, i, is_grad ? e.value[n->id] : n);
  }
  return ir_rewrite_end(&e.rw);
}

bool pass_autodiff(ir_module *m, ir_diags *d) {
  bool changed = false;
  ir_map *told = ir_map_new(m->arena);
  for (size_t i = 0; i < m->funcs.num; i++)
    changed |= expand_func(m->funcs.at[i], d, told);
  return changed;
}
