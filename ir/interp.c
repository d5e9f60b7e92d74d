// interp.c: the oracle's driver: state, leaves, effects, one node after the other. The
// rules of the ops are in interp_pointwise.c, interp_shape.c, interp_index.c and
// interp_random.c. See interp.h.
#include "ir/interp_ops.h"

#include <math.h>
#include <string.h>

#include "ir/narrow.h"

static const interp_rule rules[IR_NUM_OPS] = {
#define OP(NAME, text, arity, cls, attrs, shape, grad, interp, flops, spell) interp_##interp,
#include "ir/ops.def"
#undef OP
};

// --- the world ------------------------------------------------------------------------------
static double *new_values(ir_arena *a, const ir_type *t) {
  return IR_NEW_ARRAY(a, double, ir_elements(t));
}

ir_world *ir_world_new(ir_arena *a, const ir_module *m) {
  ir_world *w = IR_NEW(a, ir_world);
  w->arena = a;
  w->module = m;
  w->states = IR_NEW_ARRAY(a, ir_tensor_value, m->states.num + 1);
  for (size_t i = 0; i < m->states.num; i++) {
    const ir_state *s = m->states.at[i];
    w->states[i] = (ir_tensor_value){s->type, new_values(a, &s->type)};
    bool set = s->role == IR_ROLE_FLAG || s->role == IR_ROLE_SEED || s->role == IR_ROLE_COUNTER;
    for (int64_t k = 0; set && k < ir_elements(&s->type); k++)
      w->states[i].at[k] = interp_wrap(s->value, s->type.dtype);
  }
  return w;
}

// --- one run -----------------------------------------------------------------------------------
typedef struct run {
  ir_world *w;
  const ir_func *f;
  const ir_tensor_value *inputs, *input_tangents, *state_tangents;
  ir_tensor_value *values;   // by node id
  ir_tensor_value *tangents; // by node id; NULL without tangents
  int next_input;
} run;

// A zero tangent when none is given.
static void set_tangent(run *r, const ir_node *n, const ir_tensor_value *from) {
  double *d = from ? from->at : NULL;
  r->tangents[n->id] = (ir_tensor_value){n->type, d ? d : new_values(r->w->arena, &n->type)};
}

static void run_input(run *r, const ir_node *n) {
  const ir_tensor_value *v = &r->inputs[r->next_input];
  BUG_IF(!ir_same_type(&v->type, &n->type), "input %%%s is %s, given %s", n->name,
         ir_type_str(r->w->arena, &n->type), ir_type_str(r->w->arena, &v->type));
  r->values[n->id] = *v;
  if (r->tangents)
    set_tangent(r, n, r->input_tangents ? &r->input_tangents[r->next_input] : NULL);
  r->next_input++;
}

// A copy: the state may be written when the function ends, the value must stay.
static void run_read(run *r, const ir_node *n) {
  const ir_tensor_value *state = &r->w->states[n->state->id];
  double *copy = new_values(r->w->arena, &n->type);
  memcpy(copy, state->at, sizeof(double) * (size_t)ir_elements(&n->type));
  r->values[n->id] = (ir_tensor_value){n->type, copy};
  if (r->tangents)
    set_tangent(r, n, r->state_tangents ? &r->state_tangents[n->state->id] : NULL);
}

static void run_op(run *r, const ir_node *n) {
  ir_arena *a = r->w->arena;
  const double **in = IR_NEW_ARRAY(a, const double *, n->num_in + 1);
  const double **din = IR_NEW_ARRAY(a, const double *, n->num_in + 1);
  for (int i = 0; i < n->num_in; i++) {
    in[i] = r->values[n->in[i]->id].at;
    din[i] = r->tangents ? r->tangents[n->in[i]->id].at : NULL;
    BUG_IF(!in[i], "operand %%%s of %%%s has no value", n->in[i]->name, n->name);
  }
  interp_ctx c = {.arena = a, .n = n, .in = in, .out = new_values(a, &n->type)};
  if (r->tangents) {
    c.din = din;
    c.dout = new_values(a, &n->type);
    r->tangents[n->id] = (ir_tensor_value){n->type, c.dout};
  }
  r->values[n->id] = (ir_tensor_value){n->type, c.out};
  rules[n->op](&c);
}

static void run_nodes(run *r) {
  ir_arena *a = r->w->arena;
  r->values = IR_NEW_ARRAY(a, ir_tensor_value, r->f->next_id + 1);
  for (size_t i = 0; i < r->f->nodes.num; i++) {
    const ir_node *n = r->f->nodes.at[i];
    if (n->op == IR_INPUT)
      run_input(r, n);
    else if (n->op == IR_READ)
      run_read(r, n);
    else if (n->op != IR_WRITE)
      run_op(r, n);
  }
}

static void apply_writes(run *r) {
  for (size_t i = 0; i < r->f->nodes.num; i++) {
    const ir_node *n = r->f->nodes.at[i];
    if (n->op == IR_WRITE)
      memcpy(r->w->states[n->state->id].at, r->values[n->in[0]->id].at,
             sizeof(double) * (size_t)ir_elements(&n->state->type));
  }
}

ir_tensor_value *ir_interp(ir_world *w, const ir_func *f, const ir_tensor_value *inputs) {
  run r = {.w = w, .f = f, .inputs = inputs};
  run_nodes(&r);
  apply_writes(&r);
  return r.values;
}

ir_tensor_value *ir_interp_tangent(ir_world *w, const ir_func *f, const ir_tensor_value *inputs,
                                   const ir_tensor_value *state_tangents,
                                   const ir_tensor_value *input_tangents) {
  run r = {.w = w,
           .f = f,
           .inputs = inputs,
           .input_tangents = input_tangents,
           .state_tangents = state_tangents};
  r.tangents = IR_NEW_ARRAY(w->arena, ir_tensor_value, f->next_id + 1);
  run_nodes(&r);
  return r.tangents;
}

// --- rules of leaves and effects -----------------------------------------------------------------
// Inputs, reads and writes are the driver's: their columns in ops.def name these two.
void interp_leaf(interp_ctx *c) {
  BUG("%%%s is the driver's", c->n->name);
}

void interp_write(interp_ctx *c) {
  BUG("%%%s is the driver's", c->n->name);
}

void interp_none(interp_ctx *c) {
  BUG("%%%s: '%s' cannot be run, it must be expanded first", c->n->name, ir_ops[c->n->op].name);
}

void interp_const(interp_ctx *c) {
  double v = interp_wrap(ir_attr_num(c->n, IR_ATTR_VALUE), c->n->type.dtype);
  for (int64_t i = 0; i < ir_elements(&c->n->type); i++)
    c->out[i] = v;
}

void interp_iota(interp_ctx *c) {
  int64_t stride[IR_MAX_RANK] = {0};
  stride[ir_attr_int(c->n, IR_ATTR_AXIS)] = 1;
  interp_walk w = interp_walk_new(&c->n->type, 0, stride);
  for (int64_t i = 0; i < ir_elements(&c->n->type); i++, interp_walk_next(&w))
    c->out[i] = interp_wrap((double)w.at, c->n->type.dtype);
}

// --- helpers of the rules ------------------------------------------------------------------------
double interp_wrap(double v, ir_dtype t) {
  const ir_dtype_info *info = &ir_dtypes[t];
  if (info->kind == IR_KIND_FLOAT)
    return ir_narrow(t, v);
  if (info->kind == IR_KIND_BOOL)
    return v != 0;
  if (!isfinite(v))
    return 0;
  double span = ldexp(1, 8 * info->bytes), lo = info->kind == IR_KIND_SINT ? -span / 2 : 0;
  v = trunc(v);
  if (v >= lo && v < lo + span)
    return v; // adding and taking away 2^64 would lose small negative numbers
  v -= floor(v / span) * span;
  return info->kind == IR_KIND_SINT && v >= span / 2 ? v - span : v;
}

interp_walk interp_walk_new(const ir_type *shape, int64_t offset, const int64_t *stride) {
  interp_walk w = {.rank = shape->rank, .at = offset};
  for (int i = 0; i < shape->rank; i++) {
    w.dims[i] = shape->dims[i];
    w.stride[i] = stride[i];
  }
  return w;
}

void interp_walk_next(interp_walk *w) {
  for (int i = w->rank - 1; i >= 0; i--) {
    w->at += w->stride[i];
    if (++w->index[i] < w->dims[i])
      return;
    w->at -= w->stride[i] * w->dims[i];
    w->index[i] = 0;
  }
}
