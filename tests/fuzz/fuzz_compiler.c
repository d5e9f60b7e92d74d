// fuzz_compiler.c: see fuzz_compiler.h.
#include "fuzz_compiler.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/program.h"
#include "passes/pass.h"

// What ir/base.c calls in place of _exit here.
void fuzz_exit(int code);
void fuzz_exit(int code) {
  (void)code;
  abort();
}

void fuzz_print_diags(const ir_diags *d) {
  FILE *sink = fopen("/dev/null", "w");
  if (!sink)
    return;
  diag_print(d, sink, true);
  diag_print_json(d, sink);
  fclose(sink);
}

static const char *print(ir_arena *a, const ir_module *m) {
  ir_buf b = ir_buf_new(a);
  ir_print(m, &b);
  return ir_buf_str(&b);
}

void fuzz_check_sound(ir_arena *a, const ir_module *m) {
  ir_buf faults = ir_buf_new(a);
  if (ir_verify(m, &faults))
    BUG("a module without errors does not verify: %s", ir_buf_str(&faults));
  const char *text = print(a, m);
  ir_source *src = IR_NEW(a, ir_source);
  *src = (ir_source){"again.ir", text, strlen(text)};
  ir_module *again = ir_parse(a, src, diag_new(a));
  bool same = again && strcmp(print(a, again), text) == 0;
  if (again && !same) { // comments are not read: what they said is worked out again
    pass_bands(again, diag_new(a));
    same = strcmp(print(a, again), text) == 0;
  }
  if (!same)
    BUG("does not read back:\n%s", text);
}

static bool is_small(const ir_module *m) {
  size_t nodes = 0;
  for (size_t i = 0; i < m->funcs.num; i++) {
    const ir_func *f = m->funcs.at[i];
    nodes += f->nodes.num;
    for (size_t k = 0; k < f->nodes.num; k++)
      if (ir_elements(&f->nodes.at[k]->type) > FUZZ_MAX_ELEMENTS)
        return false;
  }
  return nodes <= FUZZ_MAX_NODES;
}

static void emit(ir_arena *a, ir_module *m) {
  static const cg_origin origin = {.path = "fuzz.graph", .compiler = "fuzz", .options = ""};
  const cg_target *t = cg_target_find(a, "cpu:x86-64-v3");
  if (cg_find_foreign(t, m))
    return;
  cg_program *p = cg_program_new(a, m, t);
  plan *pl = plan_build_for(m, NULL, NULL, NULL);
  ir_buf wrong = ir_buf_new(a);
  if (plan_check(pl, m, &wrong))
    BUG("the plan is wrong: %s", ir_buf_str(&wrong));
  cg_share(p);
  cg_program_emit(p, pl, &origin);
}

void fuzz_compile(ir_arena *a, ir_module *m, ir_diags *d) {
  if (!is_small(m) || !pass_run_pipeline(m, d, NULL))
    return;
  fuzz_check_sound(a, m);
  emit(a, m);
}
