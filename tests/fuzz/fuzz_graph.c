// fuzz_graph.c: any bytes as a graph file. What parses prints to a text that parses to the same
// print; what compiles is a sound module and goes through the rest of the compiler.
#include "fuzz_compiler.h"

#include <string.h>

#include "frontend/frontend.h"

static const char *print(ir_arena *a, const ast_file *f) {
  ir_buf b = ir_buf_new(a);
  ast_print(f, &b);
  return ir_buf_str(&b);
}

static void check_ast(ir_arena *a, const ir_source *src) {
  ir_diags *d = diag_new(a);
  const ast_file *f = fe_parse(a, src, d);
  const char *text = print(a, f); // broken statements are left out of it
  if (diag_num_errors(d))
    return;
  ir_source again = {"again.graph", text, strlen(text)};
  const char *second = print(a, fe_parse(a, &again, d));
  if (diag_num_errors(d) || strcmp(text, second) != 0) {
    diag_print(d, stderr, false);
    BUG("does not read back:\n%s\n---\n%s", text, second);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ir_arena *a = ir_arena_new();
  ir_source src = {"fuzz.graph", ir_strndup(a, (const char *)data, size), size};
  check_ast(a, &src);
  ir_diags *d = diag_new(a);
  ir_module *m = fe_compile(a, &src, NULL, d);
  BUG_IF((m == NULL) != (diag_num_errors(d) > 0), "NULL must mean errors");
  if (m) {
    fuzz_check_sound(a, m);
    fuzz_compile(a, m, d);
  }
  fuzz_print_diags(d);
  ir_arena_free(a);
  return 0;
}
