// plain_parts.h: what the files of the plain versions share; nobody else includes it.
//
//   plain.c         the kernel: arrays, loop nests that members share, outputs
//   plain_values.c  the value of a member, op by op
//   plain_index.c   elements of tensors as C expressions
#ifndef CODEGEN_PLAIN_PARTS_H
#define CODEGEN_PLAIN_PARTS_H

#include "codegen/plain.h"

typedef struct plain {
  ir_arena *a;
  const cg_kernel *c;
  const cg_taps *taps;
  bool named; // variables have names of the graph, too
  ir_buf *out;
  ir_map *names;
  const char **var; // by position in the kernel: the array of a member
  size_t nest;      // the first member of the open loop nest
  const char *at;   // its element, as text over the loop variables, is `at`; NULL: no such nest
  ir_buf body;      // what is in it: `out` meanwhile
  ir_buf *around;
} plain;

typedef struct indices {
  const char *at[IR_MAX_RANK]; // C expression per dimension
} indices;

// --- plain_index.c -----------------------------------------------------------------------------
// The loop variables i0, i1, ... of a nest over `rank` dimensions.
indices plain_indices(const plain *p, int rank);
// The element of a row-major tensor.
const char *plain_row_major(const plain *p, const ir_type *t, const indices *x);
// The element of the buffer of `l` for indices of the dimensions that are seen.
const char *plain_through_views(const plain *p, const dom_layout *l, const indices *x);
// What elements of a type are while they are computed with.
const char *plain_type(ir_dtype t);
const char *plain_constant(const plain *p, ir_dtype t, double v);
// The value of a CONST, or the number of the kernel that it is.
const char *plain_constant_node(const plain *p, const ir_node *n);
// Position of a node in the kernel; -1: it comes from outside.
int plain_member(const plain *p, const ir_node *n);
// The array of a member; NULL: it comes from outside.
const char *plain_var(const plain *p, const ir_node *n);
// The element `at` of an argument, whose number is a C expression, of type `t`; `begin`: cg_begin_text, or "".
const char *plain_element_of(const plain *p, ir_dtype t, const char *arg, const char *begin,
                             const char *at);
// The value of tensor `n` at the given indices.
const char *plain_element(const plain *p, const ir_node *n, const indices *x);

// --- plain_values.c ----------------------------------------------------------------------------
// Loops with variables VAR0, VAR1, ... and one brace.
void plain_open_loops(const plain *p, const char *var, const ir_type *t);
// Assigns a member's element, in a nest that is open.
void plain_put_value(const plain *p, const ir_node *n);
// After all members of a row update: outputs are what their states hold, in rows that no index
// names.
void plain_put_kept_rows(const plain *p);
// All of a matmul, a concat or a scatter, with loops of its own.
void plain_put_matmul(const plain *p, const ir_node *n);
void plain_put_scatter(const plain *p, const ir_node *n);
void plain_put_concat(const plain *p, const ir_node *n);

#endif
