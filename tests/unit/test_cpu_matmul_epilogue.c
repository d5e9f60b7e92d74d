// test_cpu_matmul_epilogue.c: MATMUL kernels as fusion makes them (bias, activation, residual,
// optimiser, heads, transposes), for every instruction set of this machine, against the oracle.
// `-v` prints the generated C of the widest one.
#include "tests/unit/support_kernels.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

typedef void (*phase_fn)(int64_t begin, int64_t end, char *const *args);

typedef struct case_text {
  const char *what, *body;
} case_text;

static const case_text cases[] = {
    {"bias and relu", "%x = input : f32[64,70]\n%w = input : f32[70,128]\n%b = input : f32[1,128]\n"
                      "%p = matmul %x, %w {ta=false, tb=false} : f32[64,128]\n"
                      "%bb = broadcast %b : f32[64,128]\n%s = add %p, %bb : f32[64,128]\n"
                      "%z = const {value=0} : f32[64,128]\n%y = max %s, %z : f32[64,128]\n"
                      "result output y = %y"},
    {"bias on ten columns",
     "%x = input : f32[64,128]\n%w = input : f32[128,10]\n%b = input : f32[1,10]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[64,10]\n"
     "%bb = broadcast %b : f32[64,10]\n%y = add %p, %bb : f32[64,10]\n"
     "result output y = %y\nresult output p = %p"},
    {"plain", "%x = input : f32[30,65]\n%w = input : f32[65,70]\n"
              "%y = matmul %x, %w {ta=false, tb=false} : f32[30,70]\nresult output y = %y"},
    {"tied logits",
     "%x = input : f32[3,32,128]\n%w = input : f32[65,128]\n"
     "%f = reshape %x : f32[96,128]\n"
     "%y = matmul %f, %w {ta=false, tb=true} : f32[96,65]\n"
     "%r = reshape %y : f32[3,32,65]\n%t = neg %r : f32[3,32,65]\nresult output t = %t"},
    {"weight update",
     "%x = input : f32[64,100]\n%d = input : f32[64,33]\n%w = input : f32[100,33]\n"
     "%g = matmul %x, %d {ta=true, tb=false} : f32[100,33]\n"
     "%c = const {value=0.1} : f32[100,33]\n%s = mul %g, %c : f32[100,33]\n"
     "%n = sub %w, %s : f32[100,33]\nresult output n = %n"},
    {"q times k",
     "%x = input : f32[2,64,384]\n"
     "%h = reshape %x : f32[2,64,3,4,32]\n%t = transpose %h {perm=[2,0,3,1,4]} : f32[3,2,4,64,32]\n"
     "%q = slice %t {start=[0,0,0,0,0], stop=[1,2,4,64,32], step=[1,1,1,1,1]} : f32[1,2,4,64,32]\n"
     "%k = slice %t {start=[1,0,0,0,0], stop=[2,2,4,64,32], step=[1,1,1,1,1]} : f32[1,2,4,64,32]\n"
     "%s = matmul %q, %k {ta=false, tb=true} : f32[1,2,4,64,64]\n"
     "%c = const {value=0.17} : f32[1,2,4,64,64]\n%y = mul %s, %c : f32[1,2,4,64,64]\n"
     "result output y = %y"},
    {"heads merged",
     "%p = input : f32[2,4,64,64]\n%v = input : f32[2,4,64,32]\n%x = input : f32[2,64,128]\n"
     "%a = matmul %p, %v {ta=false, tb=false} : f32[2,4,64,32]\n"
     "%t = transpose %a {perm=[0,2,1,3]} : f32[2,64,4,32]\n"
     "%m = reshape %t : f32[2,64,128]\n%y = add %m, %x : f32[2,64,128]\nresult output y = %y"},
    {"heads of 24",
     "%x = input : f32[40,50]\n%w = input : f32[50,72]\n%b = input : f32[3,40,24]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[40,72]\n%h = reshape %p : f32[40,3,24]\n"
     "%t = transpose %h {perm=[1,0,2]} : f32[3,40,24]\n%y = add %t, %b : f32[3,40,24]\n"
     "result output y = %y"},
    {"transposed result",
     "%x = input : f32[40,50]\n%w = input : f32[50,70]\n%b = input : f32[70,40]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[40,70]\n"
     "%t = transpose %p {perm=[1,0]} : f32[70,40]\n%y = mul %t, %b : f32[70,40]\n"
     "result output y = %y"},
    {"one column",
     "%x = input : f32[300,70]\n%w = input : f32[70,1]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[300,1]\n%y = abs %p : f32[300,1]\n"
     "result output y = %y"},
    {"one row", "%x = input : f32[1,300]\n%w = input : f32[300,77]\n"
                "%p = matmul %x, %w {ta=false, tb=false} : f32[1,77]\n%y = neg %p : f32[1,77]\n"
                "result output y = %y"},
    {"one number", "%x = input : f32[1,9000]\n%w = input : f32[9000,1]\n"
                   "%p = matmul %x, %w {ta=false, tb=false} : f32[1,1]\n%y = neg %p : f32[1,1]\n"
                   "result output y = %y"},
    {"outer product",
     "%x = input : f32[50,1]\n%w = input : f32[1,45]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[50,45]\n%y = neg %p : f32[50,45]\n"
     "result output y = %y"},
    {"double precision",
     "%x = input : f64[33,50]\n%w = input : f64[37,50]\n%b = input : f64[1,37]\n"
     "%p = matmul %x, %w {ta=false, tb=true} : f64[33,37]\n"
     "%bb = broadcast %b : f64[33,37]\n%y = add %p, %bb : f64[33,37]\n"
     "%f = cast %y : f32[33,37]\nresult output y = %y\nresult output f = %f"},
    {"merged heads as operand",
     "%h = input : f32[2,4,16,8]\n%w = input : f32[32,40]\n"
     "%t = transpose %h {perm=[0,2,1,3]} : f32[2,16,4,8]\n"
     "%f = reshape %t : f32[32,32]\n"
     "%p = matmul %f, %w {ta=false, tb=false} : f32[32,40]\n"
     "%g = matmul %f, %p {ta=true, tb=false} : f32[32,40]\n"
     "%y = neg %g : f32[32,40]\nresult output y = %y\nresult output p = %p"},
};
enum { NUM_CASES = sizeof cases / sizeof *cases };

typedef struct kernel_test {
  ir_arena *a;
  const char *what;
  cg_kernel g;
  phase_fn fn[CG_MAX_PHASES];
} kernel_test;

static void describe(kernel_test *t, ir_kernel *k, const ir_func *f, const cg_target *target) {
  t->g = (cg_kernel){.k = k, .func = f, .target = target, .arena = t->a, .dom = dom_build(t->a, k)};
  dom_io io = dom_kernel_io(t->a, k);
  for (size_t i = 0; i < io.in.num; i++)
    IR_PUSH(t->a, t->g.in, io.in.at[i]);
  for (size_t i = 0; i < io.out.num; i++)
    IR_PUSH(t->a, t->g.out, io.out.at[i]);
  cpu_matmul_schedule(&t->g);
}

static void put(char *p, ir_dtype t, int64_t i, double v) {
  if (t == IR_F64)
    ((double *)(void *)p)[i] = v;
  else
    ((float *)(void *)p)[i] = (float)v;
}

static double get(const char *p, ir_dtype t, int64_t i) {
  return t == IR_F64 ? ((const double *)(const void *)p)[i]
                     : (double)((const float *)(const void *)p)[i];
}

static void run(const kernel_test *t, char *const *args, int64_t piece) {
  for (int p = 0; p < t->g.num_phases; p++)
    for (int64_t end = t->g.tasks[p]; end > 0; end -= piece)
      t->fn[p](end < piece ? 0 : end - piece, end, args);
}

static void compare(const kernel_test *t, const ir_node *n, const char *got, const double *want) {
  double largest = 0;
  int64_t num = ir_elements(&n->type);
  for (int64_t i = 0; i < num; i++)
    largest = fabs(want[i]) > largest ? fabs(want[i]) : largest;
  for (int64_t i = 0; i < num; i++) {
    double x = get(got, n->type.dtype, i);
    if (fabs(x - want[i]) <= 3e-6 * (largest + 1e-30))
      continue;
    test_fail("%s: %s: %%%s[%lld] is %.9g, not %.9g", t->what, t->g.target->name, n->name,
              (long long)i, x, want[i]);
    return;
  }
}

static void run_kernel(kernel_test *t, const ir_tensor_value *values) {
  const cg_kernel *g = &t->g;
  size_t num_in = g->in.num, num = num_in + g->out.num;
  char **args = IR_NEW_ARRAY(t->a, char *, num + 1);
  for (size_t i = 0; i < num; i++) {
    const ir_node *n = i < num_in ? g->in.at[i] : g->out.at[i - num_in];
    args[i] = ir_alloc(t->a, (size_t)ir_bytes(&n->type) + 64);
    for (int64_t j = 0; i < num_in && j < ir_elements(&n->type); j++)
      put(args[i], n->type.dtype, j, values[n->id].at[j]);
  }
  args[num] = ir_alloc(t->a, (size_t)g->workspace + 64);
  static const int64_t pieces[] = {1, 1000000, 3};
  for (int split = 0; split < 3; split++) {
    run(t, args, pieces[split]);
    for (size_t i = num_in; i < num; i++) {
      const ir_node *n = g->out.at[i - num_in];
      size_t bytes = (size_t)ir_bytes(&n->type);
      char *first = ir_alloc(t->a, bytes);
      if (split == 0)
        compare(t, n, args[i], values[n->id].at);
      memcpy(first, args[i], bytes);
      memset(args[i], 0xff, bytes + 64);
      run(t, args, pieces[(split + 1) % 3]);
      if (memcmp(first, args[i], bytes))
        test_fail("%s: %s: %%%s depends on how tasks are split", t->what, g->target->name, n->name);
      for (int j = 0; j < 64; j++)
        if (args[i][bytes + (size_t)j] != (char)0xff) {
          test_fail("%s: %s: writes beyond %%%s", t->what, g->target->name, n->name);
          break;
        }
    }
  }
}

static ir_tensor_value *oracle(ir_arena *a, const ir_module *m, const ir_func *f) {
  uint64_t seed = 7;
  IR_VEC(ir_tensor_value) inputs = {0};
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_INPUT)
      IR_PUSH(a, inputs, test_random_tensor(a, f->nodes.at[i]->type, &seed));
  return ir_interp(ir_world_new(a, m), f, inputs.at);
}

static ir_module *fused(ir_arena *a, const case_text *c) {
  static const pass_info list[] = {{.name = "own_outputs", .run = pass_own_outputs},
                                   {.name = "fuse", .run = pass_fuse}};
  ir_module *m = test_module(a, NULL, c->body);
  ir_diags *d = diag_new(a);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    list[i].run(m, d);
  return m;
}

// All cases for one target: one C file.
static void run_target(const cg_target *target, bool show) {
  ir_arena *a = ir_arena_new();
  ir_buf text = ir_buf_new(a);
  IR_VEC(kernel_test) tests = {0};
  IR_VEC(ir_tensor_value *) values = {0};
  ir_buf_puts(&text, cg_cpu_prelude(a, target));
  size_t prelude = text.len;
  for (size_t c = 0; c < NUM_CASES; c++) {
    ir_module *m = fused(a, &cases[c]);
    const ir_func *f = m->funcs.at[0];
    int found = 0;
    for (size_t i = 0; i < f->kernels.num; i++) {
      if (f->kernels.at[i]->family != IR_FAMILY_MATMUL)
        continue;
      kernel_test t = {.a = a, .what = cases[c].what};
      describe(&t, f->kernels.at[i], f, target);
      ir_buf_printf(&text, "// ---- %s\n", t.what);
      cpu_matmul_emit(&t.g, ir_format(a, "k%zu", tests.num), &text);
      for (int p = 0; p < t.g.num_phases; p++)
        ir_buf_printf(&text, "phase_fn run%zu_%d = k%zu_%d;\n\n", tests.num, p, tests.num, p);
      IR_PUSH(a, tests, t);
      IR_PUSH(a, values, oracle(a, m, f));
      found++;
    }
    if (!found)
      test_fail("%s: no matmul kernel", cases[c].what);
  }
  const char *all = ir_buf_str(&text);
  if (show)
    fputs(all + prelude, stdout);
  void *library = test_load(
      a,
      ir_format(
          a, "#include <stdint.h>\ntypedef void (*phase_fn)(int64_t, int64_t, char *const *);\n%s",
          all),
      target);
  for (size_t i = 0; library && i < tests.num; i++) {
    for (int p = 0; p < tests.at[i].g.num_phases; p++)
      tests.at[i].fn[p] = *(phase_fn *)dlsym(library, ir_format(a, "run%zu_%d", i, p));
    run_kernel(&tests.at[i], values.at[i]);
  }
  if (library)
    dlclose(library);
  ir_arena_free(a);
}

int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  for (const cg_target *t = test_targets(); t->name; t++)
    run_target(t, show && t == test_targets());
  return test_report("cpu_matmul_epilogue");
}
