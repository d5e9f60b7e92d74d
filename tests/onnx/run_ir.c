// run_ir.c: functions of IR with inputs and the outputs that they must give, as tests/onnx/run.py
// has written them down.   run_ir TARGET FOLDER
//
// FOLDER/names lists them, "NAME TOLERANCE" in each line. NAME.ir has a function `predict`;
// NAME.data are its inputs in the order of their lines, then its results, each as it lies in
// memory. A function runs in the interpreter, and through all passes as a program for TARGET:
// "cpu", the best of this machine, or a name of cg_target_find; for a GPU on the emulator. For each
// function a line on standard output:
//
//     NAME ok
//     NAME cpu:x86-64-v3: result y[3] is 0.5, not 0.25
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/pass.h"
#include "tests/unit/support_ir.h"
#include "tests/unit/support_kernels.h"
#include "tests/unit/support_program.h"

enum { BATCH = 64 }; // programs that are compiled at once

// Floats must be within ONNX's own tolerance of each element, and within the test's of the largest.
static const double ELEMENT = 1e-3, FLOOR = 1e-7;

typedef struct onnx_test {
  const char *name;
  const ir_func *before; // the passes; but gradients are written out
  ir_world *world;
  const ir_tensor_value *inputs, *wanted;
  double tolerance;
  const char *wrong; // NULL: nothing yet
} onnx_test;

// --- reading ---------------------------------------------------------------------------------
static const char *file_of(ir_arena *a, const char *folder, const char *name, size_t *len) {
  const char *path = ir_format(a, "%s/%s", folder, name);
  const char *text = ir_read_text(a, path, len);
  BUG_IF(!text, "cannot read %s", path);
  return text;
}

static ir_tensor_value tensor_of(ir_arena *a, ir_type type, const char **at) {
  ir_tensor_value v = {type, IR_NEW_ARRAY(a, double, ir_elements(&type))};
  char *aligned = ir_alloc(a, (size_t)ir_bytes(&type));
  memcpy(aligned, *at, (size_t)ir_bytes(&type));
  for (int64_t i = 0; i < ir_elements(&type); i++)
    v.at[i] = test_get(aligned, type.dtype, i);
  *at += ir_bytes(&type);
  return v;
}

static void read_data(ir_arena *a, onnx_test *t, const char *folder) {
  size_t len;
  const char *data = file_of(a, folder, ir_format(a, "%s.data", t->name), &len), *at = data;
  const ir_func *f = t->before;
  ir_tensor_value *inputs = IR_NEW_ARRAY(a, ir_tensor_value, f->nodes.num), *next = inputs;
  ir_tensor_value *wanted = IR_NEW_ARRAY(a, ir_tensor_value, f->results.num);
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_INPUT)
      *next++ = tensor_of(a, f->nodes.at[i]->type, &at);
  for (size_t i = 0; i < f->results.num; i++)
    wanted[i] = tensor_of(a, f->results.at[i].node->type, &at);
  BUG_IF(at != data + len, "%s.data has another size than its function says", t->name);
  t->inputs = inputs;
  t->wanted = wanted;
}

static test_program compiled(ir_arena *a, const char *name, ir_module *m, const cg_target *target) {
  ir_diags *d = diag_new(a);
  pass_options options = {.families = cg_families(target)};
  pass_run_pipeline(m, d, &options);
  diag_print(d, stderr, false);
  BUG_IF(diag_num_errors(d), "%s: a pass refused it", name);
  return test_program_new(a, name, ir_format(a, "%s_", name), m, "predict", target);
}

// `line` of FOLDER/names; it is cut in two.
static onnx_test read_test(test_program *p, ir_arena *a, const char *folder, char *line,
                           const cg_target *target) {
  const char *name = strsep(&line, " ");
  BUG_IF(!line, "no tolerance for %s", name);
  size_t len;
  ir_module *m = support_module(a, file_of(a, folder, ir_format(a, "%s.ir", name), &len));
  ir_module *before = ir_clone(m);
  pass_autodiff(before, diag_new(a));
  *p = compiled(a, name, m, target);
  onnx_test t = {.name = name, .tolerance = strtod(line, NULL)};
  t.before = ir_find_func(before, "predict");
  t.world = ir_world_new(a, before);
  read_data(a, &t, folder);
  return t;
}

// --- comparing -------------------------------------------------------------------------------
static bool is_near(double got, double want, ir_dtype dtype, double slack) {
  if (got == want || (isnan(got) && isnan(want)))
    return true;
  if (!ir_is_float(dtype) && !ir_is_narrow(dtype))
    return false;
  double off = fabs(got - want);
  return off <= FLOOR + ELEMENT * fabs(want) && off <= FLOOR + slack;
}

// In memory, or as the interpreter gives it.
typedef struct computed {
  const char *memory;
  const double *numbers;
} computed;

static void compare(ir_arena *a, onnx_test *t, const char *where, size_t result, computed got) {
  const ir_tensor_value *want = &t->wanted[result];
  int64_t num = ir_elements(&want->type);
  double largest = 0;
  for (int64_t i = 0; i < num; i++)
    if (isfinite(want->at[i]))
      largest = fmax(largest, fabs(want->at[i]));
  for (int64_t i = 0; i < num && !t->wrong; i++) {
    double x = got.memory ? test_get(got.memory, want->type.dtype, i) : got.numbers[i];
    if (!is_near(x, want->at[i], want->type.dtype, t->tolerance * largest))
      t->wrong = ir_format(a, "%s: result %s[%lld] is %.9g, not %.9g", where,
                           t->before->results.at[result].name, (long long)i, x, want->at[i]);
  }
}

static void run_test(ir_arena *a, onnx_test *t, const test_program *p, const test_library *l) {
  const ir_tensor_value *values = ir_interp(t->world, t->before, t->inputs);
  const char *arena = test_program_run(p, l, t->world, t->inputs, TEST_WHOLE);
  for (size_t i = 0; i < t->before->results.num; i++) {
    computed oracle = {.numbers = values[t->before->results.at[i].node->id].at};
    int64_t offset = plan_offset(p->plan, p->func, p->func->results.at[i].node);
    compare(a, t, "interpreter", i, oracle);
    compare(a, t, p->program->target->name, i, (computed){.memory = arena + offset});
  }
  printf("%s %s\n", t->name, t->wrong ? t->wrong : "ok");
}

// --- batches ---------------------------------------------------------------------------------
// Takes the lines of what it runs off the front of *names.
static void run_batch(const cg_target *target, const char *folder, char **names) {
  ir_arena *a = ir_arena_new();
  onnx_test tests[BATCH];
  test_program programs[BATCH];
  size_t num = 0;
  for (char *line; num < BATCH && (line = strsep(names, "\n")) && *line; num++)
    tests[num] = read_test(&programs[num], a, folder, line, target);
  test_library l =
      num ? test_library_new(a, programs, num, getenv("MLTC_SLOW") ? 1 : 0) : (test_library){0};
  for (size_t i = 0; l.lib && i < num; i++)
    run_test(a, &tests[i], &programs[i], &l);
  test_library_free(&l);
  ir_arena_free(a);
}

int main(int argc, char **argv) {
  BUG_IF(argc != 3, "run_ir TARGET FOLDER");
  ir_arena *a = ir_arena_new();
  size_t len;
  char *names = ir_strdup(a, file_of(a, argv[2], "names", &len));
  const cg_target *target =
      strcmp(argv[1], "cpu") == 0 ? &test_targets()[0] : cg_target_find(a, argv[1]);
  BUG_IF(!target, "there is no target %s", argv[1]);
  while (names && *names)
    run_batch(target, argv[2], &names);
  ir_arena_free(a);
  fflush(stdout);
  return test_report("run_ir") ? 1 : 0;
}
