// program_functions.h: each function of the module as straight-line calls. program_functions.c
// decides which calls may run side by side and in which order they stand; the text of a call is the
// target's: program_calls.c for a team of threads, cuda_calls.c for a GPU.
#ifndef CODEGEN_PROGRAM_FUNCTIONS_H
#define CODEGEN_PROGRAM_FUNCTIONS_H

#include "codegen/program.h"
#include "codegen/program_sync.h"

typedef struct span {
  int64_t from, to; // arena bytes [from, to)
} span;
typedef IR_VEC(span) spans;

typedef struct call {
  const cg_kernel *c;
  cg_distinct *d;
  size_t merged; // calls of its launch; 1: a call of its own; 0: a row of an earlier one's launch
  int shift;     // CPU: thread that gets its first task
} call;

typedef struct writer {
  const cg_program *p;
  const plan *plan;
  ir_buf *out;
  const ir_func *f;
  const char *name; // of the C function at hand: the function's, or a part's
  const struct call_text *text;
  int64_t *workspace;  // arena offset by kernel id, or -1
  spans read, written; // in this window
  IR_VEC(call) window;
  bool boundary; // the window begins with a call that touches what others have written
  sync_state *sync;
} writer;

// How a target writes it.
typedef struct call_text {
  void (*open)(writer *w);            // the C function, up to its first call
  const char *parameters;             // of the C function, as a part of it gets them
  void (*window)(writer *w);          // what stands before the calls of a window
  void (*one)(writer *w, call *x);    // one call of one phase
  void (*phases)(writer *w, call *x); // one call of a kernel of several phases
  void (*merged)(writer *w, call *x); // all calls of the window that share x's function
  void (*copy)(writer *w, const plan_copy *c);
} call_text;
extern const call_text cpu_calls, cuda_calls;

// Bytes of a tensor that has a place in the plan.
span writer_span(const writer *w, const ir_node *n);
// The functions' text, in terms of w->text.
void writer_put_functions(const cg_program *p, const plan *plan, const call_text *text,
                          ir_buf *out);
// "  { // name = ops  type  file:line"
void writer_open_call(writer *w, const call *x);
// "arena + 64, batch + 0, (char *)128ll": the arguments of a call.
void writer_put_arguments(writer *w, const cg_kernel *c);

#endif
