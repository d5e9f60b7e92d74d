// replay_apply.c: makes the kernels of a function those of a list of steps (replay.h).
//
//   before   kernel b loop {          steps   a b c loss b d.c d.b
//              %b = exp %a
//            }                        after   kernel b loop { %b = exp %a }          read by c
//            kernel d.c loop {                ...
//              %d = mul %g, %b                kernel b.again loop again=b {
//            }                                  %b.2 = exp %a
//                                             }
//                                             kernel d.c loop { %d = mul %g, %b.2 }
//
// A kernel that runs again is the same nodes on the same operands, and stores the same outputs: it is the
// same function of the program, called a second time, and gives the same bits.
#include "passes/replay.h"
#include "passes/versions.h"

typedef struct applier {
  versions v;
  int *times; // [kernel] so far
  versions_kernels out;
} applier;

static void clone_member(applier *x, ir_kernel *into, const ir_node *n) {
  ir_node **in = IR_NEW_ARRAY(x->v.arena, ir_node *, n->num_in + 1);
  for (int j = 0; j < n->num_in; j++)
    in[j] = versions_of_operand(&x->v, n, j);
  ir_node *c = versions_copy(&x->v, n, in);
  c->kernel = into;
  x->v.current[n->id] = c;
  IR_PUSH(x->v.f->module->arena, into->nodes, c);
}

static void clone_kernel(applier *x, const ir_kernel *k, int times) {
  ir_arena *keep = x->v.f->module->arena;
  ir_kernel *c = IR_NEW(keep, ir_kernel);
  *c = (ir_kernel){.family = k->family, .workspace = k->workspace, .clone_of = k};
  const char *name = times == 1 ? ir_format(keep, "%s.again", k->name)
                                : ir_format(keep, "%s.again.%d", k->name, times);
  c->name = versions_kernel_name(&x->v, name);
  for (size_t i = 0; i < k->nodes.num; i++) // operands first: a member's own ones are of this time
    clone_member(x, c, k->nodes.at[i]);
  c->anchor = x->v.current[k->anchor->id];
  IR_PUSH(x->v.arena, x->out, c);
}

void replay_apply(const sched *s, const replay_steps *steps) {
  ir_arena *scratch = ir_arena_new();
  applier x = {.v = versions_new(s->f, scratch)};
  x.times = IR_NEW_ARRAY(scratch, int, s->num_kernels + 1);
  for (size_t t = 0; t < steps->num; t++) {
    int k = steps->at[t], times = x.times[k]++;
    if (times > 0) {
      clone_kernel(&x, s->kernels[k].k, times);
    } else {
      versions_redirect(&x.v, s->kernels[k].k);
      IR_PUSH(scratch, x.out, s->kernels[k].k);
    }
  }
  versions_finish(&x.v, &x.out);
  ir_arena_free(scratch);
}
