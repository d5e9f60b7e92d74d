// test_cpu_loop.c: LOOP, COPY and SCATTER kernels of what networks do, compiled for every
// instruction set of this machine and compared with the oracle. `-v` prints the generated C.
#include "tests/unit/support_loop_cases.h"

#include <string.h>

// Layers that differ in their names only must give one text (the host emits it once).
static const char *text_of_layer(ir_arena *a, int layer) {
  const char *body = ir_format(
      a,
      "%%layer.%d.x = input : f32[8,40]\n%%layer.%d.s = sum %%layer.%d.x {axes=[1]} : f32[8,1]\n"
      "%%layer.%d.b = broadcast %%layer.%d.s : f32[8,40]\n"
      "%%layer.%d.sub.%d = sub %%layer.%d.x, %%layer.%d.b : f32[8,40]\nresult output y = "
      "%%layer.%d.sub.%d",
      layer, layer, layer, layer, layer, layer, layer + 7, layer, layer, layer, layer + 7);
  ir_module *m = test_module(a, NULL, body);
  pass_own_outputs(m, diag_new(a));
  pass_fuse(m, diag_new(a));
  return test_kernels(a, "layer", m, "f", test_targets(), 2e-6, 1);
}

static void check_equal_text(void) {
  ir_arena *a = ir_arena_new();
  test_same_text("kernels of equal layers", text_of_layer(a, 0), text_of_layer(a, 11));
  ir_arena_free(a);
}

// -v [NAME]: print what is generated (for the first target).
int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  const char *only = argc > 2 ? argv[2] : NULL;
  for (const cg_target *t = test_targets(); t->name; t++)
    test_run_cases(loop_cases, NUM_LOOP_CASES, t, only, show && t == test_targets());
  for (const cg_target *t = test_targets(); t->name && !only; t++)
    check_flat_sizes(t);
  check_equal_text();
  return test_report("cpu_loop");
}
