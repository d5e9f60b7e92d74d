// program_functions.h: each function of the module as straight-line calls, for a team of threads.
// program_functions.c decides which calls may run side by side and in which order they stand; their
// text is program_calls.c. (cuda_launches.c and cuda_calls.c are this for a GPU.)
#ifndef CODEGEN_PROGRAM_FUNCTIONS_H
#define CODEGEN_PROGRAM_FUNCTIONS_H

#include "codegen/program.h"
#include "codegen/program_sync.h"
#include "passes/plan_parts.h"

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
  size_t func;           // number of f
  const char *func_name; // cg_function_name of f
  const char *name;      // of the C function at hand: the function's, or a part's
  int64_t *workspace;    // arena offset by kernel id, or -1
  ir_arena *scratch;     // of this function; NULL, as are the next two: nothing asks for windows
  plan_regions *read, *written; // 1: a call of this window does
  cg_bytes bytes;               // all that a call of the function reads or writes
  IR_VEC(call) window;
  bool boundary; // the window begins with a call that touches what others have written
  sync_state *sync;
  bool has_calls; // of this function
  bool together;  // all threads have waited for each other before the calls since the last barrier
  // Of those that are worth it, places in `out` behind "mlrt_run".
  IR_VEC(size_t) shared;
} writer;

// The text (program_calls.c).
void calls_open(writer *w);            // the function, up to its first call
void calls_before_window(writer *w);   // what stands before the calls of a window
void calls_one(writer *w, call *x);    // one call of one phase
void calls_phases(writer *w, call *x); // one call of a kernel of several phases
void calls_merged(writer *w, call *x); // all calls of the window that share x's function
void calls_copy(writer *w, const plan_copy *c);
// What stands next is behind a barrier of all threads, or it is not.
void calls_barrier(writer *w, bool of_all);

// How a target writes a function.
typedef struct writer_text {
  const char *parameters;           // of the C function, as a part of it gets them
  void (*open)(writer *w);          // the C function w->name, up to its first call
  void (*put)(writer *w, size_t i); // call i
  void (*settle)(writer *w);        // calls that are not written yet; NULL: there are none
} writer_text;
writer writer_new(const cg_program *p, const plan *plan, size_t func, ir_buf *out);
// The function from its begin to its last call. Many calls are cut into parts, C functions of their
// own, for the C compiler's sake (program_functions.c).
void writer_put_calls(writer *w, size_t num, const writer_text *t);

// Bytes of a tensor that has a place in the plan.
cg_bytes writer_span(const writer *w, const ir_node *n);
void writer_put_functions(const cg_program *p, const plan *plan, ir_buf *out);
// "  { // name = ops  type  file:line"
void writer_open_call(writer *w, const cg_kernel *c);
// "arena + 64, batch + 0, (char *)128ll": the arguments of a call.
void writer_put_arguments(writer *w, const cg_kernel *c);

#endif
