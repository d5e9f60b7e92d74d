// init.c: the function `init`: every parameter, buffer, moment and counter gets its first value.
// Random ones draw from a stream named after the state, so that adding a layer changes no other.
#include "frontend/check.h"

#include <math.h>

static double fan_in(const ir_type *t) {
  double n = 1;
  for (int i = 0; i + 1 < t->rank; i++)
    n *= (double)t->dims[i];
  return n;
}

static double fan_out(const ir_type *t) {
  return t->rank ? (double)t->dims[t->rank - 1] : 1;
}

// xavier: uniform with the variance 2/(in+out); he: normal with the variance 2/in.
static fe_init resolve(fe_init i, const ir_type *t) {
  if (i.kind == FE_INIT_XAVIER) {
    double bound = sqrt(6 / (fan_in(t) + fan_out(t)));
    return (fe_init){.kind = FE_INIT_UNIFORM, .a = -bound, .b = bound};
  }
  if (i.kind == FE_INIT_HE)
    return (fe_init){.kind = FE_INIT_NORMAL, .a = sqrt(2 / fan_in(t))};
  return i;
}

// Random numbers of init are those of a step 0: the counter has no value yet. Made where the first
// ones are drawn.
static ir_node *first_step(fe *c) {
  fe_pass *p = c->pass;
  if (!p->random_step) {
    p->random_step = ir_const(&p->b, ir_scalar(IR_I64), 0);
    ir_rename(p->b.func, p->random_step, "first_step");
  }
  return p->random_step;
}

// Generators draw in f32; what is f64 has the same values, scaled in f64.
static ir_node *random_value(fe *c, const ir_state *s, fe_init i) {
  ir_builder *b = &c->pass->b;
  ir_type drawn = s->type;
  drawn.dtype = IR_F32;
  ir_node *step = first_step(c), *seed = fe_read_named(c, "seed");
  int64_t stream = fe_stream(s->name);
  if (i.kind == FE_INIT_NORMAL) {
    ir_node *n = ir_cast(b, ir_normal(b, drawn, seed, step, stream), s->type.dtype);
    return i.a == 1 ? n : ir_binary_const(b, IR_MUL, n, i.a);
  }
  ir_node *n = ir_cast(b, ir_uniform(b, drawn, seed, step, stream), s->type.dtype);
  n = ir_binary_const(b, IR_MUL, n, i.b - i.a);
  return i.a == 0 ? n : ir_binary_const(b, IR_ADD, n, i.a);
}

static ir_node *first_value(fe *c, const ir_state *s, fe_init i) {
  i = resolve(i, &s->type);
  if (i.kind == FE_INIT_CONSTANT)
    return ir_const(&c->pass->b, s->type, i.a);
  if (i.kind != FE_INIT_WRITTEN)
    return random_value(c, s, i);
  first_step(c);
  return fe_written_value(c, s, i.written);
}

void fe_build_init(fe *c) {
  fe_pass *p = fe_pass_new(c, "init", true);
  p->starting = true;
  for (size_t k = 0; k < c->params.num; k++) {
    ir_state *s = c->params.at[k].state;
    p->b.loc = s->loc;
    p->b.scope = s->name;
    ir_state *as = s->as ? ir_find_state(c->module, s->as->name) : NULL;
    ir_node *n = as ? fe_present(c, as)->node : first_value(c, s, c->params.at[k].init);
    if (!n)
      return;
    if (!as)
      ir_rename(p->b.func, n, ir_format(c->arena, "%s.first", s->name));
    fe_store(c, s, n, s->loc);
  }
  fe_flush_writes(c);
}
