// diag.h: messages for the person who wrote the file (never for our own
// faults: that is BUG). A diagnostic has a code, a place, labels and help.
//
//   mlp.graph:7:24: error[E0203]: shapes do not match in 'x @ w'
//      7 |   logits = linear(x @ w, 10)
//        |                   ^~~~~ x is [64, 784], w is [780, 128]
//   note: in block 'linear', used here ...
//   help: ...
#ifndef IR_DIAG_H
#define IR_DIAG_H

#include "ir/base.h"

// A place in a source file. file == NULL: no place (command line, whole module).
typedef struct ir_source {
  const char *path; // as given by the user
  const char *text; // NUL-terminated
  size_t len;
} ir_source;

typedef struct ir_loc {
  const ir_source *file;
  uint32_t line, col; // from 1; 0 = unknown
  uint32_t len;       // characters to underline, at least 1
} ir_loc;

// "mlp.graph:7"; NULL when there is no place.
const char *ir_place(ir_arena *a, ir_loc at);

typedef struct ir_diags ir_diags;
typedef struct ir_diag ir_diag;

ir_diags *diag_new(ir_arena *a);
// Starts an error/warning. `code` like "E0203" must be in diag_codes.def. Returned diagnostic
// can be added to until the next one starts. Errors beyond 50 are counted, not kept; so are warnings.
ir_diag *diag_error(ir_diags *d, ir_loc at, const char *code, const char *fmt, ...) IR_PRINTF(4, 5);
ir_diag *diag_warning(ir_diags *d, ir_loc at, const char *code, const char *fmt, ...)
    IR_PRINTF(4, 5);
// Text under the caret of the main place.
void diag_label(ir_diag *d, const char *fmt, ...) IR_PRINTF(2, 3);
// A second place with its own source line ("in block 'linear', used here").
void diag_note(ir_diag *d, ir_loc at, const char *fmt, ...) IR_PRINTF(3, 4);
void diag_help(ir_diag *d, const char *fmt, ...) IR_PRINTF(2, 3);

size_t diag_num_errors(const ir_diags *d);
// What was added so far is printed no more, wherever more is added and printed.
void diag_are_said(ir_diags *d);
// Everything so far, in source order, for people (colour only when `color`).
void diag_print(const ir_diags *d, FILE *out, bool color);
// One JSON object per line: {"severity","code","message","file","line","column","length",
// "label","notes":[...],"help":[...]}.
void diag_print_json(const ir_diags *d, FILE *out);
// The same object for what is said besides diagnostics, without code and place: the first line of `text` is its
// message, further ones, without their indent, are its notes. severity: "error", "note" or "help".
void diag_print_json_text(const char *severity, const char *text, FILE *out);
// The longer text of --explain; NULL when there is no such code.
const char *diag_explain(const char *code);

// Closest of `names` to `word` by edit distance, or NULL when none is near.
const char *diag_nearest(const char *word, const char *const *names, size_t n);

#endif
