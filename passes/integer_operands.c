// integer_operands.c: matmuls read integers where they lie, and make f32 of them as they pack them.
//
//   before   %a = cast %words : f32[2708,1433]     after   the same, %a folded: it will be in no kernel,
//            %y = matmul %a, %w                            and is not in memory
//            %g = matmul %a, %d
//
// A batch of bytes is a quarter of its f32, which would be written once and read by each product; both
// products spend most of their time on that where they are narrow (a bag of words times 16 columns).
// Only types whose every value is an f32, so that no bit changes. Only where matmuls are all that uses the
// cast: otherwise its f32 is in memory anyway, ready to be read in place. What is made of numbers alone
// (iota, const) is not in memory and stays.
//
// Needs: panels, attention (their kernels convert nothing of the kind); runs for processors: a GPU copies
// operands to shared memory as they are. Breaks: nothing; `fuse` makes no kernel of what is folded.
#include "passes/domain.h"
#include "passes/pass.h"
#include "passes/users.h"

typedef struct finder {
  ir_func *f;
  ir_arena *arena;
  bool *used_otherwise; // by id
} finder;

static bool may_read(const ir_node *n) {
  return n->op == IR_MATMUL && n->type.dtype == IR_F32 && !n->kernel;
}

static bool is_candidate(const finder *x, ir_node *n) {
  return ir_is_integer_conversion(n) && !n->kernel && !x->used_otherwise[n->id] &&
         !ir_is_generated(ir_below_views(n->in[0]));
}

// One round: false when some matmul cannot walk the integers below.
static bool settle(finder *x) {
  bool settled = true;
  for (size_t i = 0; i < x->f->nodes.num; i++) {
    ir_node *n = x->f->nodes.at[i];
    if (!may_read(n))
      continue;
    ir_node *from[2] = {ir_below_views(n->in[0]), ir_below_views(n->in[1])};
    if ((!from[0]->folded && !from[1]->folded) || dom_can_walk_operands(x->arena, n))
      continue;
    settled = from[0]->folded = from[1]->folded = false;
  }
  return settled;
}

static bool fold_func(ir_func *f) {
  finder x = {.f = f, .arena = ir_arena_new()};
  x.used_otherwise = pass_find_other_uses(x.arena, f, may_read);
  bool any = false;
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    n->mark = 0; // dom_try's
    if (is_candidate(&x, n))
      any = n->folded = true;
  }
  while (any && !settle(&x)) // each round leaves fewer
    ;
  ir_arena_free(x.arena);
  return any;
}

bool pass_integer_operands(ir_module *m, ir_diags *d) {
  (void)d;
  bool changed = false;
  for (size_t i = 0; i < m->funcs.num; i++)
    if (!ir_is_fused(m->funcs.at[i]))
      changed |= fold_func(m->funcs.at[i]);
  return changed;
}
