// verify.h: what the parts of the verifier share. For ir/ only.
#ifndef IR_VERIFY_H
#define IR_VERIFY_H

#include "ir/internal.h"

typedef struct ir_checker {
  ir_faults *faults;
  const ir_module *m;
  const ir_func *f;      // NULL: checking the module
  const ir_state *state; // the state at hand, or NULL
  const ir_node **by_id; // NULL where the function has no node of that id
  size_t *position;      // by id: place in f->nodes
  bool *written;         // by state id
  ir_map *names;
} ir_checker;

void ir_fault_add(ir_checker *c, const ir_node *n, const char *fmt, ...) IR_PRINTF(3, 4);
// The rules about kernels; nothing when the function has none.
void verify_kernels(ir_checker *c);
// Those about the members of an ATTENTION kernel.
void verify_attention(ir_checker *c, const ir_kernel *k);
// Those about row updates, SCATTER kernels of several members.
void verify_row_updates(ir_checker *c);
// Of SEND and FETCH (verify_transfers.c).
void verify_transfers(ir_checker *c);
// What a trainer needs (verify_trainer.c): of the inputs of a function, of a state, of settings.
void verify_inputs(ir_checker *c);
void verify_result_name(ir_checker *c, const ir_result *r);
void verify_checkpointed(ir_checker *c, const ir_state *s);
void verify_settings(ir_checker *c);

#endif
