// scan.h: reading the text form of the IR piece by piece. For ir/ only.
//
// The text is a sequence of lines. After an error the rest of the line is skipped, so
// each line gives at most one error. Every function that can fail reports the error
// itself and returns false or NULL.
#ifndef IR_SCAN_H
#define IR_SCAN_H

#include "ir/ir.h"

typedef struct ir_scan {
  ir_arena *arena;
  const ir_source *src;
  ir_diags *diags;
  const char *at, *end; // what is left of the text; never read at or beyond `end`
  const char *line_start;
  uint32_t line;
  bool again; // scan_line gives the present line once more
} ir_scan;

ir_scan scan_new(ir_arena *a, const ir_source *src, ir_diags *d);
// Goes to the next line with something on it. False at the end of the text.
bool scan_line(ir_scan *s);
// Skips spaces; true at the end of the line or at a comment.
bool scan_at_end(ir_scan *s);
// Optional ` loc(L:C)`, then the end of the line.
bool scan_end(ir_scan *s, ir_loc *loc);

ir_loc scan_here(ir_scan *s);                         // the word at hand
ir_loc scan_from(const ir_scan *s, const char *from); // from there up to the present place
// "expected WHAT, found ..." at the present place; always false.
bool scan_unexpected(ir_scan *s, const char *what);

bool scan_peek(ir_scan *s, char c);
bool scan_accept(ir_scan *s, char c);
bool scan_expect(ir_scan *s, char c, const char *what);
// A name; NULL with an error that mentions `what`.
const char *scan_name(ir_scan *s, const char *what);
const char *scan_sigil_name(ir_scan *s, char sigil, const char *what); // %name, @name, $name
bool scan_int(ir_scan *s, int64_t *out);
bool scan_number(ir_scan *s, double *out);
bool scan_ints(ir_scan *s, const int64_t **out, int *num); // [1,2,3]
const char *scan_string(ir_scan *s);
bool scan_type(ir_scan *s, ir_type *out);

#endif
