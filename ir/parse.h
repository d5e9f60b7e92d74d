// parse.h: what the two halves of the IR parser share. For ir/ only.
#ifndef IR_PARSE_H
#define IR_PARSE_H

#include "ir/scan.h"

// Where things stand in the text, for faults that the verifier finds.
typedef struct ir_func_locs {
  ir_loc head;
  const ir_loc *nodes; // by node id
} ir_func_locs;

typedef struct ir_parser {
  ir_scan s;
  ir_module *m;
  IR_VEC(ir_loc) state_locs; // by state id
  IR_VEC(ir_func_locs) func_locs;
  // Of the function at hand:
  ir_func *f;
  ir_kernel *kernel;           // open kernel block, or NULL
  const char *anchor;          // its anchor= name, or NULL
  IR_VEC(const char *) stores; // its stores= names
  const char *again;           // its again= name, or NULL
  const char *begin;           // its begin= name, or NULL
  ir_loc kernel_loc;
  ir_map *broken;           // values whose line had an error: their users say nothing
  IR_VEC(ir_loc) node_locs; // by node id
} ir_parser;

// From the line after `func NAME {` to its `}`. Reports errors and goes on.
void parse_func_body(ir_parser *p, ir_loc head);
// "did you mean", when something is near.
void parse_suggest(ir_diag *d, const char *word, const char *const *names, size_t num);

#endif
