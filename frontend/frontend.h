// frontend.h: from the text of a graph file to the tensor IR of the whole step.
#ifndef FRONTEND_FRONTEND_H
#define FRONTEND_FRONTEND_H

#include "frontend/ast.h"
#include "ir/ir.h"

typedef IR_VEC(const char *) fe_files;

typedef struct fe_options {
  const char *const *defines; // "B=32"
  size_t num_defines;
  const char *const *include_dirs;
  size_t num_include_dirs;
  fe_files *files; // imported files are added here; may be NULL
} fe_options;

// Never NULL; broken statements are reported and left out.
ast_file *fe_parse(ir_arena *a, const ir_source *src, ir_diags *d);
// Canonical source: parses again to the same text.
void ast_print(const ast_file *f, ir_buf *out);
// Functions init, step, eval, predict (and accum); NULL when there were errors.
ir_module *fe_compile(ir_arena *a, const ir_source *src, const fe_options *o, ir_diags *d);

#endif
