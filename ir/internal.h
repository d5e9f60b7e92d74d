// internal.h: what the files of ir/ share among themselves. Other layers use ir.h,
// builder.h and interp.h.
#ifndef IR_INTERNAL_H
#define IR_INTERNAL_H

#include "ir/ir.h"

// --- names (names.c) -------------------------------------------------------------------
// Gives `n` the name `hint`, or hint.2, hint.3, ... when it is taken. Characters that the text
// form does not allow become '_'.
void ir_name_node(ir_func *f, ir_node *n, const char *hint);
// True when `s` is a name of the text form: letters, digits, '_' and '.', not empty.
bool ir_valid_name(const char *s);
// Forgets the names of nodes that are no longer in the function.
void ir_names_forget(ir_func *f);
// Writes have no name in the text form; theirs is "@" and the state's, which no value can have.
const char *ir_write_name(ir_arena *a, const ir_state *s);

// --- attributes (ir.c) --------------------------------------------------------------------
// Attribute lists are kept in the order of attrs.def, so that equal lists are equal item by item.
void ir_sort_attrs(ir_attr *attrs, int num);

// --- printing (print.c) -------------------------------------------------------------------
// `note` is called after the line of each node (NULL: no notes) and may add lines.
typedef void (*ir_note_fn)(void *data, const ir_node *n, ir_buf *out);
void ir_print_func_notes(const ir_func *f, ir_buf *out, ir_note_fn note, void *data);

// --- checking (verify.c) -------------------------------------------------------------------
typedef struct ir_fault {
  const ir_func *func;   // NULL: the module
  const ir_node *node;   // NULL: not about one node
  const ir_state *state; // NULL: not about one state
  const char *text;
} ir_fault;
typedef struct ir_faults {
  ir_arena *arena;
  IR_VEC(ir_fault) list;
} ir_faults;
void ir_find_faults(const ir_module *m, ir_faults *out);

#endif
