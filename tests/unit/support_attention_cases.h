// support_attention_cases.h: attention as IR text, over sizes, masks, layouts; with its gradients.
#ifndef TESTS_SUPPORT_ATTENTION_CASES_H
#define TESTS_SUPPORT_ATTENTION_CASES_H

#include "codegen/codegen.h"
#include "tests/unit/support_passes.h"

typedef enum attention_mask {
  NO_MASK,
  CAUSAL,
  WINDOW,
  FROM_ROW_8,
  FROM_MEMORY,
  TO_EDGES
} attention_mask;

typedef struct attention_case {
  const char *what;
  int batch, heads, m, n, d, e;
  attention_mask mask;
  const char *far; // what masked scores become; NULL: -1e30
  int groups;      // heads that share k and v
  bool bias;       // added to scores
  bool dropout;    // on weights
  bool unmasked;   // the weights are not masked again: zeros are no fact
  bool merged;     // q, k and v are parts of one tensor, the result is transposed back
  bool steep;      // large scores
  bool keep_sums;  // row_sums does not run
  bool plain;      // no maximum is taken off
  bool forward;    // no gradients
} attention_case;

enum { NUM_ATTENTION_CASES = 29 };
// Every mask, layout and kind of tail.
extern const attention_case attention_cases[NUM_ATTENTION_CASES];
// One that the seed decides.
const attention_case *attention_random(ir_arena *a, uint64_t seed);
// The body of a function: its outputs are the result and, unless c->forward, the gradients.
const char *attention_text(ir_arena *a, const attention_case *c);
// The pipeline for a target; false, and a failure: it does not compile.
bool attention_compile(ir_module *m, const cg_target *target, const attention_case *c);

#endif
