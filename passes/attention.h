// attention.h: the parts of pass_attention (attention.c, attention_kernels.c).
//
// A site is what is computed from the scores of one attention: products in, what is pointwise or a
// row reduction on them, products out; forward and backward.
#ifndef PASSES_ATTENTION_H
#define PASSES_ATTENTION_H

#include "ir/builder.h"
#include "passes/domain.h"
#include "passes/pass.h"

// What a node is to its site.
typedef enum att_kind {
  ATT_NONE,
  ATT_IN,    // product in
  ATT_SCORE, // pointwise, of the type's shape [b..., m, n]
  ATT_ROW,   // [b..., m, 1]: a reduction of scores over n, or pointwise on such
  ATT_OUT,   // product out
} att_kind;

// A kernel to be.
typedef struct att_kernel {
  ir_node_list outs;   // one that sums over n, or all of a site that sum over m
  ir_node_list scores; // members but the products out, operands first
  bool columns;
  ir_kernel *made;
} att_kernel;

typedef struct att_site {
  struct att_site *joined; // now a part of that one
  const ir_type *type;     // of scores
  bool dead;               // something else uses scores
  ir_node_list outs, rows; // products out, reductions over n; in order
} att_site;

typedef struct att_pass {
  ir_func *f;
  ir_arena *arena;
  uint32_t num_ids; // before the first clone
  att_kind *kind;   // by node id
  att_site **site;  // by node id
  uint32_t *position;
  att_kernel **owner; // by node id of a ROW: who computes it for all
  bool *tainted;      // by node id: scratch of planning
  IR_VEC(att_site *) sites;
  IR_VEC(att_kernel *) kernels; // planned, by the position of their last product out
} att_pass;

// Plans the kernels of a site; nothing when one of them cannot be.
void att_plan_kernels(att_pass *p, att_site *s);
// Makes the planned kernels.
void att_make_kernels(att_pass *p);

#endif
