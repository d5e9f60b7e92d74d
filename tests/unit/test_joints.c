// test_joints.c: a concat that is the last member of the kernel that makes its parts (passes/fuse.c): how many
// kernels there are, and that every element is where the oracle has it, for each instruction set of this machine
// and for a GPU on the emulator.
#include "codegen/program.h"
#include "passes/pass.h"
#include "tests/unit/support_kernels.h"
#include "tests/unit/support_passes.h"

typedef struct joint_case {
  const char *what, *body;
  size_t kernels;
} joint_case;

#define XY(dims) "%x = input : f32" dims "\n%y = input : f32" dims "\n"
#define R        "result output r = %r\n"
static const joint_case cases[] = {
    {"side by side",
     XY("[20,24]") "%a = exp %x : f32[20,24]\n%b = sub %x, %y : f32[20,24]\n"
                   "%r = concat %a, %b {axis=1} : f32[20,48]\n" R,
     1},
    {"one after the other, one twice, one that is needed elsewhere too",
     XY("[7,5]") "%a = exp %x : f32[7,5]\n%b = sub %x, %y : f32[7,5]\n"
                 "%r = concat %a, %b, %a {axis=0} : f32[21,5]\nresult output b = %b\n" R,
     1},
    {"in the middle, of many tasks",
     XY("[30,40,50]") "%a = mul %x, %y : f32[30,40,50]\n%b = sub %x, %y : f32[30,40,50]\n"
                      "%r = concat %b, %a {axis=1} : f32[30,80,50]\n" R,
     1},
    {"loops that share nothing become one",
     XY("[20,24]") "%t = transpose %y {perm=[1,0]} : f32[24,20]\n%u = input : f32[24,20]\n"
                   "%a = exp %x : f32[20,24]\n%v = transpose %u {perm=[1,0]} : f32[20,24]\n"
                   "%b = copy %v : f32[20,24]\n%r = concat %a, %b {axis=1} : f32[20,48]\n" R,
     1},
    {"of one part",
     "%x = input : f32[65]\n%a = exp %x : f32[65]\n%r = concat %a {axis=0} : f32[65]\n" R, 1},
    {"two of one kernel",
     XY("[20,24]") "%a = exp %x : f32[20,24]\n%b = sub %x, %y : f32[20,24]\n"
                   "%r = concat %a, %b {axis=1} : f32[20,48]\n%q = concat %b, %a {axis=0} : "
                   "f32[40,24]\n"
                   "result output q = %q\n" R,
     1},
    {"numbers, marks, bf16",
     XY("[9,35]") "%a = gt %x, %y : bool[9,35]\n%b = le %x, %y : bool[9,35]\n"
                  "%r = concat %a, %b {axis=1} : bool[9,70]\n%c = cast %x : bf16[9,35]\n"
                  "%d = cast %y : bf16[9,35]\n%q = concat %c, %d {axis=1} : bf16[9,70]\n"
                  "%e = cast %a : i32[9,35]\n%f = cast %b : i32[9,35]\n"
                  "%p = concat %e, %f {axis=0} : i32[18,35]\n"
                  "result output q = %q\nresult output p = %p\n" R,
     2}, // casts of x and y share nothing with the rest
    {"f64",
     "%x = input : f64[9,35]\n%a = neg %x : f64[9,35]\n%b = mul %x, %x : f64[9,35]\n"
     "%r = concat %a, %b {axis=1} : f64[9,70]\n" R,
     1},
    {"of phases of a softmax",
     "%x = input : f32[70,33]\n%m = reduce_max %x {axes=[1]} : f32[70,1]\n"
     "%mb = broadcast %m : f32[70,33]\n%z = sub %x, %mb : f32[70,33]\n%e = exp %z : f32[70,33]\n"
     "%s = sum %e {axes=[1]} : f32[70,1]\n%sb = broadcast %s : f32[70,33]\n"
     "%p = div %e, %sb : f32[70,33]\n%r = concat %p, %e, %z {axis=1} : f32[70,99]\n"
     "%q = concat %s, %m {axis=1} : f32[70,2]\nresult output q = %q\n" R,
     1},
    {"sums of columns",
     XY("[40,70]") "%d = mul %x, %y : f32[40,70]\n%s = sum %x {axes=[0]} : f32[1,70]\n"
                   "%t = sum %d {axes=[0]} : f32[1,70]\n%r = concat %t, %s {axis=0} : "
                   "f32[2,70]\n" R,
     1},
    {"axes that a view splits",
     "%x = input : f32[6,20]\n%g1 = input : f32[1,1,5]\n%v = reshape %x : f32[6,4,5]\n"
     "%gb = broadcast %g1 : f32[6,4,5]\n%a = mul %v, %gb : f32[6,4,5]\n%b = neg %v : f32[6,4,5]\n"
     "%r = concat %a, %b {axis=2} : f32[6,4,10]\n" R,
     1},
    {"behind a product",
     "%x = input : f32[33,20]\n%w = input : f32[20,48]\n%t = input : f32[33,48]\n"
     "%h = matmul %x, %w {ta=false, tb=false} : f32[33,48]\n%a = tanh %h : f32[33,48]\n"
     "%b = mul %a, %t : f32[33,48]\n%r = concat %b, %h, %a {axis=1} : f32[33,144]\n" R,
     1},
    {"behind batches of products, whole rows of them",
     "%x = input : f32[3,33,20]\n%w = input : f32[3,20,21]\n"
     "%h = matmul %x, %w {ta=false, tb=false} : f32[3,33,21]\n%a = neg %h : f32[3,33,21]\n"
     "%r = concat %h, %a {axis=1} : f32[3,66,21]\n" R,
     1},
    {"nothing but a product",
     "%x = input : f32[33,20]\n%w = input : f32[20,48]\n"
     "%h = matmul %x, %w {ta=false, tb=false} : f32[33,48]\n"
     "%r = concat %h, %h {axis=0} : f32[66,48]\n" R,
     1},
    // What stays a copy.
    {"of inputs", XY("[20,24]") "%r = concat %x, %y {axis=1} : f32[20,48]\n" R, 1},
    {"of an input and a member",
     XY("[20,24]") "%a = exp %y : f32[20,24]\n%r = concat %x, %a {axis=1} : f32[20,48]\n" R, 2},
    {"of views",
     XY("[20,24]") "%a = exp %y : f32[20,24]\n%t = transpose %a {perm=[1,0]} : f32[24,20]\n"
                   "%b = exp %x : f32[20,24]\n%u = transpose %b {perm=[1,0]} : f32[24,20]\n"
                   "%r = concat %t, %u {axis=1} : f32[24,40]\n" R,
     3},
    {"of unequal parts",
     "%x = input : f32[20,24]\n%y = input : f32[20,8]\n%a = exp %x : f32[20,24]\n"
     "%b = exp %y : f32[20,8]\n%r = concat %a, %b {axis=1} : f32[20,32]\n" R,
     3},
    {"of two products",
     "%x = input : f32[33,20]\n%w = input : f32[20,48]\n%v = input : f32[20,48]\n"
     "%g = matmul %x, %w {ta=false, tb=false} : f32[33,48]\n"
     "%h = matmul %x, %v {ta=false, tb=false} : f32[33,48]\n"
     "%r = concat %g, %h {axis=1} : f32[33,96]\n" R,
     3},
    // Who reads a joint is another kernel: the whole is there when its last part is.
    {"of joints, which are read",
     XY("[20,24]") "%a = exp %x : f32[20,24]\n%b = sub %x, %y : f32[20,24]\n"
                   "%c = concat %a, %b {axis=1} : f32[20,48]\n%d = concat %c, %c {axis=0} : "
                   "f32[40,48]\n"
                   "%e = neg %c : f32[20,48]\n%s = sum %e {axes=[1]} : f32[20,1]\n"
                   "result output d = %d\nresult output r = %s\n",
     3},
    {"of an early part, whose operands need not wait",
     XY("[20,24]") "%a = sub %x, %y : f32[20,24]\n%s = sum %y {axes=[0]} : f32[1,24]\n"
                   "%sb = broadcast %s : f32[20,24]\n%t = transpose %y {perm=[1,0]} : f32[24,20]\n"
                   "%m = matmul %t, %x {ta=false, tb=false} : f32[24,24]\n%b = input : f32[20,24]\n"
                   "%p = matmul %b, %m {ta=false, tb=false} : f32[20,24]\n"
                   "%r = concat %a, %p {axis=1} : f32[20,48]\nresult output s = %s\n" R,
     5},
    {"of random numbers, by their own element",
     "%g = input : i64[]\n%h = input : i64[]\n"
     "%a = uniform %g, %h {stream=3} : f32[20,24]\n%x = input : f32[20,24]\n"
     "%b = mul %a, %x : f32[20,24]\n%r = concat %b, %a {axis=1} : f32[20,48]\n" R,
     1},
};

static void add_cases(test_suite *s, ir_arena *a, const cg_target *target) {
  pass_options o = {.families = cg_families(target), .processor = !target->cuda};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const joint_case *c = &cases[i];
    ir_module *m = test_module(a, NULL, c->body);
    if (!m || !pass_run_pipeline(m, diag_new(a), &o)) {
      test_fail("%s: no kernels", c->what);
      continue;
    }
    size_t num = ir_find_func(m, "f")->kernels.num;
    if (num != c->kernels)
      test_fail("%s: %s: %zu kernels, not %zu", target->name, c->what, num, c->kernels);
    test_suite_add(s, c->what, m, "f", 2e-6, 7 + i);
  }
}

static void run_on(ir_arena *a, const cg_target *target) {
  test_suite *s = test_suite_new(a, target, ~0u);
  add_cases(s, a, target);
  test_suite_run(s);
}

int main(void) {
  ir_arena *a = ir_arena_new();
  for (const cg_target *t = test_targets(); t->name; t++)
    run_on(a, t);
  run_on(a, cg_target_find(a, "cuda:sm_80"));
  ir_arena_free(a);
  return test_report("joints");
}
