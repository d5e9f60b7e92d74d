// checkpoint_starts.c: choices that keep little, which searches begin with (checkpoint_search.c).
//
// What is cheap for its bytes, and parts of the network: 1, 2, 3, 4, 6, .. of them, of which everything but the
// border is dropped.
#include "passes/checkpoint.h"
#include "passes/cost.h"

enum { CHEAP = 64 }; // FLOPs per byte made: norms, activations, casts, the products of narrow heads

void checkpoint_cheap(const replay *r, checkpoint_streams how, unsigned char *drop) {
  ir_arena *a = ir_arena_new();
  if (how == CHECKPOINT_DROP_STREAMS)
    checkpoint_parts(r, 1, true, CHECKPOINT_ONCE, drop);
  else
    checkpoint_all(r, drop);
  for (int k = 0; k <= r->forward; k++) {
    const sched_kernel *x = &r->s->kernels[k];
    bool cheap = cost_kernel(a, x->k).flops <= CHEAP * sched_bytes_made(r->s, k);
    for (int v = x->first_value; !cheap && v < x->first_value + x->num_values; v++)
      drop[v] = REPLAY_KEEP;
  }
  ir_arena_free(a);
}

checkpoint_starts *checkpoint_list_starts(const replay *r) {
  checkpoint_starts *list = IR_NEW(r->arena, checkpoint_starts);
  for (int how = CHECKPOINT_KEEP_STREAMS; how <= CHECKPOINT_DROP_STREAMS; how++)
    IR_PUSH(r->arena, *list, ((checkpoint_start){.how = (checkpoint_streams)how}));
  int places = checkpoint_num_places(r);
  for (int depth = 0; depth < CHECKPOINT_NUM_DEPTHS; depth++)
    for (int parts = 1; parts <= places; parts += 1 + parts / 2) {
      checkpoint_start x = {.parts = parts, .depth = (checkpoint_depth)depth};
      IR_PUSH(r->arena, *list, x);
    }
  return list;
}

void checkpoint_choose_start(const replay *r, const checkpoint_start *x, unsigned char *drop) {
  if (x->parts)
    checkpoint_parts(r, x->parts, true, x->depth, drop);
  else
    checkpoint_cheap(r, x->how, drop);
}
