// support_emulator.c: see support_emulator.h.
#include "tests/emulator/support_emulator.h"

const char *test_kernel_text(ir_arena *a, const char *file) {
  size_t len = 0;
  const char *text = ir_read_file(a, ir_format(a, "tests/emulator/%s", file), &len);
  BUG_IF(!text, "no %s: tests run in the source folder", file);
  return ir_format(a, "%s%s", cg_cuda_prelude(a), text);
}
