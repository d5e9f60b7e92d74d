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
#include <string.h>

#include "passes/fuse.h"
#include "passes/replay.h"

typedef struct applier {
  ir_func *f;
  ir_arena *arena;   // scratch
  uint32_t num_ids;  // before the first clone
  ir_node **current; // [old node id] the version that whoever comes next reads
  ir_node **rebuilt; // [old id of a view] the view of a version
  int *times;        // [kernel] so far
  ir_builder b;
  IR_VEC(ir_kernel *) out;
} applier;

static ir_node *copy_node(applier *x, const ir_node *n, ir_node *const *in) {
  x->b.loc = n->loc;
  ir_node *c = ir_build(&x->b, n->op, n->name, n->num_in, in, n->num_attrs, n->attrs, &n->type);
  c->folded = n->folded;
  c->nonzero = n->nonzero;
  c->needed = n->needed;
  return c;
}

// What stands for `n` now: a member's latest version, or a view of one.
static ir_node *version(applier *x, ir_node *n) {
  if (n->id >= x->num_ids)
    return n;
  if (x->current[n->id])
    return x->current[n->id];
  if (n->kernel || n->num_in == 0)
    return n;
  ir_node **in = IR_NEW_ARRAY(x->arena, ir_node *, n->num_in);
  bool same = true;
  for (int i = 0; i < n->num_in; i++) {
    in[i] = version(x, n->in[i]);
    same &= in[i] == n->in[i];
  }
  if (same)
    return n;
  ir_node *known = x->rebuilt[n->id];
  if (!known || memcmp(known->in, in, sizeof(ir_node *) * (size_t)n->num_in) != 0)
    x->rebuilt[n->id] = known = copy_node(x, n, in);
  return known;
}

static void redirect_operands(applier *x, const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++)
    for (int j = 0; j < k->nodes.at[i]->num_in; j++)
      k->nodes.at[i]->in[j] = version(x, k->nodes.at[i]->in[j]);
}

static void clone_member(applier *x, ir_kernel *into, const ir_node *n) {
  ir_node **in = IR_NEW_ARRAY(x->arena, ir_node *, n->num_in + 1);
  for (int j = 0; j < n->num_in; j++)
    in[j] = version(x, n->in[j]);
  ir_node *c = copy_node(x, n, in);
  c->kernel = into;
  x->current[n->id] = c;
  IR_PUSH(x->f->module->arena, into->nodes, c);
}

static void clone_kernel(applier *x, const ir_kernel *k, int times) {
  ir_arena *keep = x->f->module->arena;
  ir_kernel *c = IR_NEW(keep, ir_kernel);
  *c = (ir_kernel){.family = k->family, .workspace = k->workspace, .clone_of = k};
  c->name = times == 1 ? ir_format(keep, "%s.again", k->name)
                       : ir_format(keep, "%s.again.%d", k->name, times);
  for (size_t i = 0; i < k->nodes.num; i++) // operands first: a member's own ones are of this time
    clone_member(x, c, k->nodes.at[i]);
  c->anchor = x->current[k->anchor->id];
  IR_PUSH(x->arena, x->out, c);
}

void replay_apply(const sched *s, const replay_steps *steps) {
  applier x = {.f = s->f, .arena = ir_arena_new(), .num_ids = s->f->next_id};
  x.b = ir_build_at_end(s->f);
  x.current = IR_NEW_ARRAY(x.arena, ir_node *, x.num_ids + 1);
  x.rebuilt = IR_NEW_ARRAY(x.arena, ir_node *, x.num_ids + 1);
  x.times = IR_NEW_ARRAY(x.arena, int, s->num_kernels + 1);
  for (size_t t = 0; t < steps->num; t++) {
    int k = steps->at[t], times = x.times[k]++;
    if (times > 0) {
      clone_kernel(&x, s->kernels[k].k, times);
    } else {
      redirect_operands(&x, s->kernels[k].k);
      IR_PUSH(x.arena, x.out, s->kernels[k].k);
    }
  }
  s->f->kernels.num = 0;
  for (size_t i = 0; i < x.out.num; i++) {
    x.out.at[i]->id = (uint32_t)i;
    IR_PUSH(s->f->module->arena, s->f->kernels, x.out.at[i]);
  }
  ir_arena_free(x.arena);
  fuse_relist(s->f);
  dom_find_outputs(s->f);
}
