// again.h: computing members of one kernel again in another one, for passes that store less
// (recompute.c, remake.c).
#ifndef PASSES_AGAIN_H
#define PASSES_AGAIN_H

#include "passes/fuse.h"

// What takes so little of the bytes of a value may wait for it to be made again.
enum { AGAIN_SMALL_SHARE = 64 };

typedef struct again_use {
  ir_node *user;
  int operand;
} again_use;
typedef IR_VEC(again_use) again_uses;
typedef IR_VEC(uint32_t) again_readers;

// A use that takes a clone now, or another member; before: NULL once it was taken back.
typedef struct again_redirected {
  again_use use;
  ir_node *before;
} again_redirected;

// A function whose kernels take in members of others. Arrays are by id, of nodes before the first clone.
typedef struct again {
  ir_func *f;
  ir_arena *arena;        // scratch
  uint32_t num_ids;       // before the first clone
  again_uses *users;      // in other kernels
  again_readers *readers; // the ids of these kernels, ascending
  bool *pinned;           // a write or a result needs it in memory
  int *last_use;          // index of the last kernel that reads it, -1
  IR_VEC(again_redirected) redirected;
} again;

again again_look_at(ir_func *f, ir_arena *scratch);
// Whether a member of `k`, which is another kernel, has used `n`.
bool again_has_read(const again *g, const ir_node *n, const ir_kernel *k);
// The operand of `use` becomes `to`.
void again_redirect(again *g, again_use use, ir_node *to);
// Takes back what was redirected since there were `from` of `redirected`.
void again_take_back(again *g, size_t from);
// Lists nodes and outputs anew. A kernel whose members have left may have no domain, as those told the
// rest their axes: then it gets them back, and gives back what it took in. True: some use is redirected.
bool again_finish(again *g);

// An element of it is made from elements, and always comes out the same.
static inline bool again_is_pointwise(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_POINTWISE && !ir_is_random(n);
}

// Clones of `nodes` (operands first) for kernel `into`. They are members of none yet. In front of the
// kernel's own members, which may take them; or behind: then those that compute the same are used.
typedef struct again_clones {
  again *g;
  ir_kernel *into;
  bool behind;
  ir_node_list from, to; // what stands for what: a clone, or a member of `into`
  ir_node_list fresh;    // clones
  ir_builder b;
} again_clones;

again_clones again_clone_in_front(again *g, const ir_node_list *nodes, ir_kernel *into);
again_clones again_clone_behind(again *g, const ir_node_list *nodes, ir_kernel *into);
// `n` with clones below it: itself when nothing below was cloned.
ir_node *again_with_clones(again_clones *x, ir_node *n);
// Whether the kernel still has a domain with the clones in it.
bool again_fits(const again_clones *x);
// Makes them members of the kernel.
void again_adopt(again_clones *x);

#endif
