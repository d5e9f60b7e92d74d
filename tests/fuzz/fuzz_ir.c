// fuzz_ir.c: any bytes as IR text. Either there are errors, or the module is sound, prints, and
// reads back to the same text.
#include <string.h>

#include "ir/ir.h"

static const char *print(ir_arena *a, const ir_module *m) {
  ir_buf b = ir_buf_new(a);
  ir_print(m, &b);
  return ir_buf_str(&b);
}

static void check_sound(ir_arena *a, const ir_module *m) {
  ir_buf faults = ir_buf_new(a);
  if (ir_verify(m, &faults))
    BUG("a module that was read does not verify: %s", ir_buf_str(&faults));
  const char *text = print(a, m);
  ir_source src = {"again.ir", text, strlen(text)};
  ir_module *again = ir_parse(a, &src, diag_new(a));
  if (!again || strcmp(print(a, again), text) != 0)
    BUG("does not read back:\n%s", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ir_arena *a = ir_arena_new();
  ir_source src = {"fuzz.ir", ir_strndup(a, (const char *)data, size), size};
  ir_diags *d = diag_new(a);
  ir_module *m = ir_parse(a, &src, d);
  BUG_IF((m == NULL) != (diag_num_errors(d) > 0), "NULL must mean errors");
  FILE *sink = fopen("/dev/null", "w");
  if (sink) { // diagnostics point into the text: printing them reads it
    diag_print(d, sink, true);
    diag_print_json(d, sink);
    fclose(sink);
  }
  if (m)
    check_sound(a, m);
  ir_arena_free(a);
  return 0;
}
