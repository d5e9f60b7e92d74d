// random_graph.h: valid random modules for tests and fuzzing. The same seed gives the same module.
#ifndef TESTS_RANDOM_GRAPH_H
#define TESTS_RANDOM_GRAPH_H

#include "ir/interp.h"

typedef struct ir_random_options {
  uint64_t seed;
  int num_nodes;       // about so many nodes in the forward part
  bool differentiable; // step has a scalar loss, `grad` nodes for every param and sgd-like writes
  bool penalised; // differentiable, and a gradient of the loss is a part of it: second derivatives
  bool networks;  // biased to what networks do: matmul+bias+activation, norms, softmax, heads
} ir_random_options;
// A module with a few params, inputs (float and integer), function `step` (and `init` that
// writes the params). Values stay in a range where f32 and double agree.
ir_module *ir_random_module(ir_arena *a, ir_random_options o);
// Sensible input values for it (by INPUT order), drawn from `seed`.

ir_tensor_value *ir_random_inputs(ir_arena *a, const ir_func *f, uint64_t seed);

#endif
