// interp.h: the oracle. Runs any function, at any point of the pipeline, in double
// precision, one node at a time and as slowly as is clear. Every element of every
// dtype is held as a double (integers are exact to 2^53); integer results wrap to
// their dtype, bool is 0 or 1; floats are NOT rounded to f32.
#ifndef IR_INTERP_H
#define IR_INTERP_H

#include "ir/ir.h"

typedef struct ir_tensor_value {
  ir_type type;
  double *at; // ir_elements(&type) values, row-major
} ir_tensor_value;

// State values by state id, kept between calls. New: FLAG/SEED/COUNTER hold state->value, all
// others zeros.
typedef struct ir_world {
  ir_arena *arena;
  const ir_module *module;
  ir_tensor_value *states;
} ir_world;
ir_world *ir_world_new(ir_arena *a, const ir_module *m);

// Runs `f`: `inputs[i]` is the i-th INPUT node in source order. Applies writes to `w` at the end.
// Returns values by node id (at == NULL for nodes that are dead or have no value). GRAD is a BUG.
ir_tensor_value *ir_interp(ir_world *w, const ir_func *f, const ir_tensor_value *inputs);
// Directional derivative by dual numbers (forward mode), for tests of gradients: like ir_interp,
// with tangents of states (by state id) and inputs; NULL array or NULL `at`: zero. Returns
// tangents by node id; leaves the world as it was (no writes).
ir_tensor_value *ir_interp_tangent(ir_world *w, const ir_func *f, const ir_tensor_value *inputs,
                                   const ir_tensor_value *state_tangents,
                                   const ir_tensor_value *input_tangents);

// A one-operand pointwise op (column interp = unary) of a number.
double ir_interp_unary(ir_op op, double x);

// The counter-based generator, bit for bit what kernels use (docs/ir.md, "Random numbers").
void ir_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

#endif
