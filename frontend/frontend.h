// frontend.h: from the text of a graph file to the tensor IR of the whole step.
#ifndef FRONTEND_FRONTEND_H
#define FRONTEND_FRONTEND_H

#include "frontend/ast.h"
#include "ir/ir.h"

typedef IR_VEC(const char *) fe_files;

// A constant whose value is searched for (frontend/vary.c).
typedef struct fe_vary {
  const char *name; // in: of the `let`, NULL: it is the batch; out: its name
  int64_t value;    // out: as it is
  bool divide;      // in: it is to be divided (fe_split), which errors then say
} fe_vary;

// One optimiser step in several parts (docs/memory.md, micro-batches): the model sees `batch` divided
// by `parts`, its gradients are added (train { accumulate }, times `parts`); flags and the sections
// data, optim and train see the constants of the file.
typedef struct fe_split {
  const char *batch; // name of the `let`; NULL: nothing is divided
  int64_t parts;     // a divisor of its value
} fe_split;

typedef struct fe_options {
  const char *const *defines; // "B=32"
  size_t num_defines;
  const char *const *include_dirs;
  size_t num_include_dirs;
  fe_files *files; // imported files are added here; may be NULL
  fe_vary *vary;   // to find; errors where it cannot be; NULL: nothing is asked
  fe_split split;
} fe_options;

// Never NULL; broken statements are reported and left out.
ast_file *fe_parse(ir_arena *a, const ir_source *src, ir_diags *d);
// Canonical source: parses again to the same text.
void ast_print(const ast_file *f, ir_buf *out);
// A text as a file has it, in quotes, on one line.
void ast_print_text(const char *text, ir_buf *out);
// Functions init, step, eval, predict (and accum); NULL when there were errors.
ir_module *fe_compile(ir_arena *a, const ir_source *src, const fe_options *o, ir_diags *d);

#endif
