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
    return (fe_init){FE_INIT_UNIFORM, -bound, bound};
  }
  if (i.kind == FE_INIT_HE)
    return (fe_init){FE_INIT_NORMAL, sqrt(2 / fan_in(t)), 0};
  return i;
}

static ir_node *random_value(fe *c, const ir_state *s, fe_init i, ir_node *step) {
  ir_builder *b = &c->pass->b;
  ir_node *seed = fe_read_named(c, "seed");
  int64_t stream = fe_stream(s->name);
  if (i.kind == FE_INIT_NORMAL) {
    ir_node *n = ir_normal(b, s->type, seed, step, stream);
    return i.a == 1 ? n : ir_binary_const(b, IR_MUL, n, i.a);
  }
  ir_node *n = ir_uniform(b, s->type, seed, step, stream);
  n = ir_binary_const(b, IR_MUL, n, i.b - i.a);
  return i.a == 0 ? n : ir_binary_const(b, IR_ADD, n, i.a);
}

void fe_build_init(fe *c) {
  fe_pass *p = fe_pass_new(c, "init", true);
  ir_node *step = NULL;
  for (size_t k = 0; k < c->params.num; k++) {
    ir_state *s = c->params.at[k].state;
    fe_init i = resolve(c->params.at[k].init, &s->type);
    p->b.loc = s->loc;
    p->b.scope = s->name;
    if (i.kind != FE_INIT_CONSTANT && !step) {
      step = ir_const(&p->b, ir_scalar(IR_I64), 0);
      ir_rename(p->b.func, step, "first_step");
    }
    ir_node *n =
        i.kind == FE_INIT_CONSTANT ? ir_const(&p->b, s->type, i.a) : random_value(c, s, i, step);
    ir_rename(p->b.func, n, ir_format(c->arena, "%s.first", s->name));
    fe_store(c, s, n, s->loc);
  }
  fe_flush_writes(c);
}
