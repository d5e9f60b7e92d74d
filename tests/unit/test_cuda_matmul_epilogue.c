// test_cuda_matmul_epilogue.c: MATMUL kernels as fusion makes them (bias, activation, residual,
// optimiser, dropout, heads, masks, transposes), on the emulator, against the oracle. Three orders
// of blocks and threads must give the same bits. `-v [NAME]` prints the CUDA text.
#include "codegen/program.h"
#include "tests/emulator/emulator.h"
#include "tests/unit/support_kernels.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

typedef struct case_text {
  const char *what, *body;
} case_text;

static const case_text cases[] = {
    {"bias and relu", "%x = input : f32[64,72]\n%w = input : f32[72,128]\n%b = input : f32[1,128]\n"
                      "%p = matmul %x, %w {ta=false, tb=false} : f32[64,128]\n"
                      "%bb = broadcast %b : f32[64,128]\n%s = add %p, %bb : f32[64,128]\n"
                      "%z = const {value=0} : f32[64,128]\n%y = max %s, %z : f32[64,128]\n"
                      "result output y = %y"},
    {"bias on ten columns",
     "%x = input : f32[64,128]\n%w = input : f32[128,10]\n%b = input : f32[1,10]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[64,10]\n"
     "%bb = broadcast %b : f32[64,10]\n%y = add %p, %bb : f32[64,10]\n"
     "result output y = %y\nresult output p = %p"},
    {"residual and tanh",
     "%x = input : f32[40,48]\n%w = input : f32[48,65]\n%r = input : f32[40,65]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[40,65]\n%t = tanh %p : f32[40,65]\n"
     "%y = add %t, %r : f32[40,65]\nresult output y = %y"},
    {"tied logits",
     "%x = input : f32[3,32,128]\n%w = input : f32[65,128]\n"
     "%f = reshape %x : f32[96,128]\n"
     "%y = matmul %f, %w {ta=false, tb=true} : f32[96,65]\n"
     "%r = reshape %y : f32[3,32,65]\n%t = neg %r : f32[3,32,65]\nresult output t = %t"},
    {"update of weights and momentum",
     "%x = input : f32[64,100]\n%d = input : f32[64,36]\n%w = input : f32[100,36]\n"
     "%m = input : f32[100,36]\n%g = matmul %x, %d {ta=true, tb=false} : f32[100,36]\n"
     "%c = const {value=0.9} : f32[100,36]\n%mm = mul %m, %c : f32[100,36]\n"
     "%n = add %mm, %g : f32[100,36]\n%l = const {value=0.1} : f32[100,36]\n"
     "%s = mul %n, %l : f32[100,36]\n%u = sub %w, %s : f32[100,36]\n"
     "result output n = %n\nresult output u = %u"},
    {"update in pieces of k",
     "%x = input : f32[900,20]\n%d = input : f32[900,12]\n%w = input : f32[20,12]\n"
     "%g = matmul %x, %d {ta=true, tb=false} : f32[20,12]\n"
     "%c = const {value=0.1} : f32[20,12]\n%s = mul %g, %c : f32[20,12]\n"
     "%n = sub %w, %s : f32[20,12]\nresult output n = %n\nresult output g = %g"},
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
    {"heads of 7",
     "%x = input : f32[40,50]\n%w = input : f32[50,21]\n%b = input : f32[3,40,7]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[40,21]\n%h = reshape %p : f32[40,3,7]\n"
     "%t = transpose %h {perm=[1,0,2]} : f32[3,40,7]\n%y = add %t, %b : f32[3,40,7]\n"
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
    {"one number", "%x = input : f32[1,3000]\n%w = input : f32[3000,1]\n"
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
    {"rows of a table added",
     "%x = input : f32[40,16]\n%w = input : f32[16,24]\n%t = input : f32[9,24]\n"
     "%i = iota {axis=0} : i32[40]\n%k = const {value=5} : i32[40]\n%r = mod %i, %k : i32[40]\n"
     "%g = gather %t, %r : f32[40,24]\n%p = matmul %x, %w {ta=false, tb=false} : f32[40,24]\n"
     "%y = add %p, %g : f32[40,24]\nresult output y = %y"},
    {"dropout",
     "%x = input : f32[33,16]\n%w = input : f32[16,24]\n%seed = const {value=7} : i64[]\n"
     "%step = const {value=3} : i64[]\n%p = matmul %x, %w {ta=false, tb=false} : f32[33,24]\n"
     "%r = uniform %seed, %step {stream=3} : f32[33,24]\n%k = const {value=0.3} : f32[33,24]\n"
     "%m = lt %r, %k : bool[33,24]\n%z = const {value=0} : f32[33,24]\n"
     "%y = select %m, %p, %z : f32[33,24]\nresult output y = %y"},
    {"names that kernels use",
     "%a = input : f32[20,16]\n%b = input : f32[16,24]\n%line = input : f32[20,24]\n"
     "%c = matmul %a, %b {ta=false, tb=false} : f32[20,24]\n"
     "%product = mul %c, %line : f32[20,24]\n%column = abs %product : f32[20,24]\n"
     "%a_tiles = neg %column : f32[20,24]\nresult output y = %a_tiles\nresult output p = %product"},
};
enum { NUM_CASES = sizeof cases / sizeof *cases, NUM_ORDERS = 3 };

typedef struct kernel_test {
  ir_arena *a;
  const char *what;
  cg_kernel g;
  const emu_entry *entry[CG_MAX_PHASES];
} kernel_test;

static void describe(kernel_test *t, ir_kernel *k, const ir_func *f, const cg_target *target) {
  t->g = (cg_kernel){.k = k, .func = f, .target = target, .arena = t->a, .dom = dom_build(t->a, k)};
  dom_io io = dom_kernel_io(t->a, k);
  for (size_t i = 0; i < io.in.num; i++)
    IR_PUSH(t->a, t->g.in, io.in.at[i]);
  for (size_t i = 0; i < io.out.num; i++)
    IR_PUSH(t->a, t->g.out, io.out.at[i]);
  cuda_matmul_schedule(&t->g);
}

static bool run(const kernel_test *t, emu_machine *m, char *const *args, unsigned order) {
  const cg_kernel *g = &t->g;
  size_t num = g->in.num + g->out.num, width = num + (g->workspace > 0);
  emu_forget_all(m);
  for (size_t i = 0; i < num; i++) {
    const ir_node *n = i < g->in.num ? g->in.at[i] : g->out.at[i - g->in.num];
    emu_buffer(m, args[i], (size_t)ir_bytes(&n->type), i >= g->in.num);
  }
  if (g->workspace)
    emu_buffer(m, args[num], (size_t)g->workspace, true);
  for (int p = 0; p < g->num_phases; p++) {
    emu_options o = {.order = order};
    emu_report r;
    if (emu_launch(m, t->entry[p], g->tasks[p], args, width * sizeof *args, &o, &r))
      continue;
    test_fail("%s: kernel %s: %s", t->what, g->k->name, r.text);
    return false;
  }
  return true;
}

static char *new_buffer(ir_arena *a, int64_t bytes) {
  char *p = ir_alloc(a, (size_t)bytes + 64);
  p += 63 - ((uintptr_t)p + 63) % 64;
  memset(p, 0xff, (size_t)bytes);
  return p;
}

static void run_kernel(kernel_test *t, emu_machine *m, const ir_tensor_value *values) {
  const cg_kernel *g = &t->g;
  size_t num_in = g->in.num, num = num_in + g->out.num;
  char **args = IR_NEW_ARRAY(t->a, char *, num + 1), **first = IR_NEW_ARRAY(t->a, char *, num);
  for (size_t i = 0; i < num_in; i++) {
    args[i] = new_buffer(t->a, ir_bytes(&g->in.at[i]->type));
    test_put_tensor(args[i], &values[g->in.at[i]->id]);
  }
  for (unsigned order = 0; order < NUM_ORDERS; order++) {
    for (size_t i = num_in; i < num; i++)
      args[i] = new_buffer(t->a, ir_bytes(&g->out.at[i - num_in]->type));
    args[num] = new_buffer(t->a, g->workspace);
    if (!run(t, m, args, order))
      return;
    for (size_t i = num_in; i < num; i++) {
      const ir_node *n = g->out.at[i - num_in];
      double distance = test_distance(args[i], &values[n->id]);
      if (order == 0 && !(distance <= 3e-6))
        test_fail("%s: %%%s is off by %g", t->what, n->name, distance);
      first[i] = order == 0 ? args[i] : first[i];
      if (memcmp(first[i], args[i], (size_t)ir_bytes(&n->type)))
        test_fail("%s: %%%s depends on the order of blocks and threads", t->what, n->name);
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

typedef struct suite {
  IR_VEC(kernel_test) tests;
  IR_VEC(ir_tensor_value *) values;
} suite;

static void add_case(suite *s, ir_arena *a, const case_text *c, const cg_target *target,
                     ir_buf *text) {
  ir_module *m = fused(a, c);
  const ir_func *f = m->funcs.at[0];
  size_t before = s->tests.num;
  for (size_t i = 0; i < f->kernels.num; i++) {
    if (f->kernels.at[i]->family != IR_FAMILY_MATMUL)
      continue;
    kernel_test t = {.a = a, .what = c->what};
    describe(&t, f->kernels.at[i], f, target);
    ir_buf_printf(text, "// ---- %s\n", t.what);
    cuda_matmul_emit(&t.g, ir_format(a, "k%zu", s->tests.num), text);
    IR_PUSH(a, s->tests, t);
    IR_PUSH(a, s->values, oracle(a, m, f));
  }
  if (s->tests.num == before)
    test_fail("%s: no matmul kernel", c->what);
}

int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  ir_arena *a = ir_arena_new();
  const cg_target *target = cg_target_find(a, "cuda:sm_80,sm_90a");
  ir_buf text = ir_buf_new(a);
  suite s = {0};
  int split = 0;
  ir_buf_puts(&text, cg_cuda_prelude(a));
  size_t prelude = text.len;
  for (size_t c = 0; c < NUM_CASES; c++)
    if (argc < 3 || strcmp(cases[c].what, argv[2]) == 0)
      add_case(&s, a, &cases[c], target, &text);
  if (show)
    fputs(ir_buf_str(&text) + prelude, stdout);
  void *library = emu_build(ir_buf_str(&text), NULL);
  if (!library)
    test_fail("generated kernels do not compile");
  emu_machine *m = emu_new();
  for (size_t i = 0; library && i < s.tests.num; i++) {
    kernel_test *t = &s.tests.at[i];
    for (int p = 0; p < t->g.num_phases; p++)
      t->entry[p] = emu_find(library, ir_format(a, "k%zu_%d", i, p));
    run_kernel(t, m, s.values.at[i]);
    split += t->g.num_phases > 1;
  }
  if (argc == 1 && !split)
    test_fail("no kernel has its k in pieces");
  emu_free(m);
  if (library)
    dlclose(library);
  ir_arena_free(a);
  return test_report("cuda_matmul_epilogue");
}
