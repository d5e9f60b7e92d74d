// support_frontend.h: what the tests of the frontend share: compiling a text, and running a
// model on given inputs with the oracle.
#ifndef TESTS_SUPPORT_FRONTEND_H
#define TESTS_SUPPORT_FRONTEND_H

#include "frontend/frontend.h"
#include "support_ir.h"

// NULL when there are errors; *messages then holds them as a person would see them.
ir_module *support_compile(ir_arena *a, const char *text, const char **messages);
// For texts that must be right: prints the messages and exits otherwise. The result verifies.
ir_module *support_graph(ir_arena *a, const char *text);
// A network of equal layers "return ..." on f32[rows,16], of several kinds: for what is kept and made again.
enum { SUPPORT_NUM_LAYERS = 3 };
extern const char *const support_layers[SUPPORT_NUM_LAYERS];
ir_module *support_deep(ir_arena *a, const char *layer, int rows, int layers);
// The same as support_compile with -D definitions.
ir_module *support_compile_with(ir_arena *a, const char *text, const fe_options *o,
                                const char **messages);
const char *support_messages(ir_arena *a, const ir_diags *d);
ir_func *support_func(const ir_module *m, const char *name); // exits when absent
// Runs `f` on inputs counting up from `first` in steps of `by`, over all inputs in order, and
// returns the values of result `name`.
const ir_tensor_value *support_run(ir_arena *a, ir_world *w, const ir_func *f, double first,
                                   double by, const char *result);

#endif
