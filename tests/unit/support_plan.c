// support_plan.c: see support_plan.h.
#include "tests/unit/support_plan.h"

#include <stdlib.h>
#include <string.h>

#include "passes/pass.h"
#include "tests/unit/support_passes.h"

const char test_chain_text[] = "func step {\n"
                               "%x = input : f32[64,64]\n"
                               "kernel a loop {\n %a = exp %x : f32[64,64]\n}\n"
                               "kernel b loop {\n %b = neg %a : f32[64,64]\n}\n"
                               "kernel c loop {\n %c = exp %b : f32[64,64]\n}\n"
                               "kernel d loop {\n %d = add %b, %c : f32[64,64]\n}\n"
                               "result output d = %d\n}\n";

ir_module *test_ordered(ir_arena *a, const char *text) {
  ir_diags *d = diag_new(a);
  ir_module *m = test_parse(a, ir_format(a, "mltc-ir 1\nmodule t\n\n%s", text));
  pass_fuse(m, d);
  pass_order(m, d);
  return m;
}

plan *test_plan(ir_module *m) {
  return plan_build_for(m, NULL, NULL, NULL);
}

plan_buffer *test_find_buffer(plan *p, const char *name) {
  for (size_t i = 0; i < p->buffers.num; i++)
    if (strcmp(p->buffers.at[i].name, name) == 0)
      return &p->buffers.at[i];
  printf("no buffer %s\n", name);
  exit(1);
}
