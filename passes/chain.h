// chain.h: the fastest way to run the backward pass of a chain of stages in a given memory, when stages
// may run forward again.
//
//   stages      0 -> 1 -> 2 -> 3 (loss)         memory for one output beside what is at work
//   operations  F0 keeps its input, F1, F2 keeps its input, F3 keeps all, B3, F2 keeps all, B2,
//               F0 keeps its input, F1 keeps all, B1, F0 keeps all, B0
//
// The exact dynamic programme for heterogeneous chains (O. Beaumont, L. Eyraud-Dubois, J. Herrmann,
// A. Joly, A. Shilova, "Optimal checkpointing for heterogeneous chains: how to train deep neural
// networks with limited memory", 2019; their tool is rotor): the optimum of all schedules in which what
// is kept stays until the backward stage that reads it, and no stage runs again while its output is
// there. It differs in what a stage is: a backward stage may need its input only (then nothing is run
// again right before it), and gradients and what is at work inside a stage are numbers of their own,
// as they are in a fused program.
//
// Memory is counted in slots, and all sizes are rounded up to them: no sequence takes more than it says.
#ifndef PASSES_CHAIN_H
#define PASSES_CHAIN_H

#include "ir/base.h"

typedef struct chain_stage {
  double forward, backward; // seconds
  double again;             // of what of `forward` makes `kept`
  int64_t out;              // bytes of its output
  int64_t kept; // bytes that it makes and its backward reads; 0: that reads its input at most
  int64_t both; // bytes of `out` and `kept` together, which may share some
  // Most bytes live while it runs, beside its input: what it makes and works in.
  int64_t forward_peak, forward_all_peak; // when it makes its output; when it makes `both`
  // While its backward runs: gradients, workspaces, and what is left of `kept`.
  int64_t backward_peak;
  int64_t gradients; // those alive right before that
} chain_stage;

typedef enum chain_op_kind {
  CHAIN_FORWARD,       // makes the output; the input goes
  CHAIN_FORWARD_INPUT, // the input stays for a later run
  CHAIN_FORWARD_ALL,   // makes the output and what the backward reads; the input stays
  CHAIN_BACKWARD,
} chain_op_kind;

typedef struct chain_op {
  chain_op_kind kind;
  int stage;
} chain_op;
typedef IR_VEC(chain_op) chain_ops;

// The optima for each memory of 0 .. slots slots of `unit` bytes, for the bytes beside the input of
// the first stage. O(slots * num^3) time, O(slots * num^2) memory in `a`.
typedef struct chain_table chain_table;
chain_table *chain_solve(ir_arena *a, const chain_stage *stages, int num, int64_t unit, int slots);
// Least seconds, forward pass included; INFINITY: it does not fit.
double chain_seconds(const chain_table *t, int slots);
// The operations that take these seconds; none when it does not fit.
chain_ops chain_sequence(const chain_table *t, ir_arena *a, int slots);

#endif
