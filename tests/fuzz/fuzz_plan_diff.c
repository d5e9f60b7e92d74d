// fuzz_plan_diff.c: any bytes as a plan.json. Either it is said why it is none, or it is the same as
// itself, and what it differs in from another plan can be printed.
#include "fuzz_compiler.h"

#include <string.h>

#include "driver/plan_diff.h"

static const char other[] =
    "{\"schema\":\"mltc-plan\",\"version\":1,\"model\":\"mlp\",\"totals\":{\"arena\":64},\"bound\":"
    "64,"
    "\"buffers\":[{\"name\":\"w\",\"bytes\":32}],\"functions\":[{\"name\":\"step\",\"peak_bytes\":"
    "1,"
    "\"kernels\":[{\"name\":\"p\",\"flops\":1,\"bytes_read\":2,\"bytes_written\":3}],"
    "\"buffers\":[{\"name\":\"h\",\"bytes\":16}],\"host\":[{\"name\":\"s\",\"bytes\":8}],"
    "\"copies\":[{\"state\":\"w\",\"bytes\":4}]}]}";

static void print(ir_arena *a, const plan_file *x, const plan_file *y) {
  plan_diff d = plan_diff_find(a, x, y);
  ir_buf text = ir_buf_new(a);
  plan_diff_print(&d, &text);
  plan_diff_print_json(&d, &text);
  BUG_IF(x == y && !d.same, "not the same as itself:\n%s", ir_buf_str(&text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ir_arena *a = ir_arena_new();
  const char *why = NULL;
  const plan_file *y =
      plan_file_read(a, PLAN_FILE_COMPARED, "other.json", other, strlen(other), &why);
  BUG_IF(!y, "%s", why);
  const char *text = ir_strndup(a, (const char *)data, size), *why_not = NULL;
  const plan_file *x = plan_file_read(a, PLAN_FILE_COMPARED, "fuzz.json", text, size, &why);
  const plan_file *e = plan_file_read(a, PLAN_FILE_EDITED, "fuzz.json", text, size, &why_not);
  BUG_IF(!x == !why || !e == !why_not, "NULL must mean a reason");
  BUG_IF(x && !e, "what can be compared cannot be compiled with: %s", why_not);
  if (x) {
    print(a, x, x);
    print(a, x, y);
    print(a, y, x);
  }
  ir_arena_free(a);
  return 0;
}
