// fuzz_ir.c: any bytes as IR text. Either there are errors, or the module is sound, prints, reads
// back to the same text, and compiles.
#include "fuzz_compiler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ir_arena *a = ir_arena_new();
  ir_source src = {"fuzz.ir", ir_strndup(a, (const char *)data, size), size};
  ir_diags *d = diag_new(a);
  ir_module *m = ir_parse(a, &src, d);
  BUG_IF((m == NULL) != (diag_num_errors(d) > 0), "NULL must mean errors");
  if (m) {
    fuzz_check_sound(a, m);
    fuzz_compile(a, m, d);
  }
  fuzz_print_diags(d);
  ir_arena_free(a);
  return 0;
}
