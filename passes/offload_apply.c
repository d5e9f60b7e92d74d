// offload_apply.c: makes the transfers of a choice kernels of the function (offload.h).
#include "passes/offload.h"
#include "passes/versions.h"

typedef struct applier {
  versions v;
  const sched *s;
  const ir_kernel *const *kernels; // as they were, by step
  ir_node **sent;                  // [move]
  versions_kernels out;
} applier;

// begin: the step that it begins before, of its own place at the latest.
static ir_node *add_transfer(applier *x, ir_family family, const char *what, ir_node *from,
                             const ir_node *value, int begin, int place) {
  ir_arena *keep = x->v.f->module->arena;
  ir_kernel *k = IR_NEW(keep, ir_kernel);
  *k = (ir_kernel){.family = family, .begin = begin < place ? x->kernels[begin] : NULL};
  k->name = versions_kernel_name(&x->v, ir_format(keep, "%s.%s", value->name, what));
  x->v.b.loc = value->loc;
  ir_node *c = ir_build(&x->v.b, IR_COPY, value->name, 1, &from, 0, NULL, &value->type);
  c->nonzero = value->nonzero;
  c->needed = value->needed;
  c->kernel = k;
  k->anchor = c;
  IR_PUSH(keep, k->nodes, c);
  IR_PUSH(x->v.arena, x->out, k);
  return c;
}

static void send(applier *x, const offload_choice *c, size_t i) {
  const offload_move *m = &c->moves.at[i];
  ir_node *value = x->s->values[m->value].node;
  x->sent[i] = add_transfer(x, IR_FAMILY_SEND, "send", value, value, m->made + 1, m->sent);
}

static void fetch(applier *x, const offload_choice *c, size_t i) {
  const offload_move *m = &c->moves.at[i];
  ir_node *value = x->s->values[m->value].node;
  x->v.current[value->id] =
      add_transfer(x, IR_FAMILY_FETCH, "fetch", x->sent[i], value, m->begin, m->needed);
}

// Sends first: what a fetch brings may have the memory that they leave.
static void put_transfers(applier *x, const offload_choice *c, int step) {
  for (size_t i = 0; i < c->moves.num; i++)
    if (c->moves.at[i].sent == step)
      send(x, c, i);
  for (size_t i = 0; i < c->moves.num; i++)
    if (c->moves.at[i].needed == step)
      fetch(x, c, i);
}

void offload_apply(const sched *s, const offload_choice *c) {
  ir_arena *scratch = ir_arena_new();
  ir_func *f = s->f;
  size_t num = f->kernels.num;
  const ir_kernel **kernels = IR_NEW_ARRAY(scratch, const ir_kernel *, num + 1);
  applier x = {.v = versions_new(f, scratch), .s = s, .kernels = kernels};
  x.sent = IR_NEW_ARRAY(scratch, ir_node *, c->moves.num + 1);
  for (size_t i = 0; i < num; i++)
    kernels[i] = f->kernels.at[i];
  for (size_t t = 0; t < num; t++) {
    put_transfers(&x, c, (int)t);
    versions_redirect(&x.v, f->kernels.at[t]);
    IR_PUSH(scratch, x.out, f->kernels.at[t]);
  }
  versions_finish(&x.v, &x.out);
  ir_arena_free(scratch);
}
