// support_precision_cases.h: small functions whose matmuls multiply narrow operands, run by the
// tests of both targets. Bodies of `f`; `config` is what pass_precision reads.
#ifndef TESTS_SUPPORT_PRECISION_CASES_H
#define TESTS_SUPPORT_PRECISION_CASES_H

#include <string.h>

#include "tests/unit/support_kernels.h"

typedef enum precision_settings {
  TF32_AND_BF16,
  ONLY_BF16,
  BY_HAND, // has conversions of its own, and is tried without the pass
} precision_settings;

typedef struct precision_case {
  const char *what;
  const char *body;
  precision_settings with;
} precision_case;

#define NARROW(x, type, shape)                                                                     \
  "%" x "n = cast %" x " : " type shape "\n%" x "w = cast %" x "n : f32" shape "\n"

static const precision_case precision_cases[] = {
    {"a layer and its gradients, tails everywhere",
     "%x = input : f32[33,41]\n%w = input : f32[41,66]\n%b = input : f32[1,66]\n"
     "%d = input : f32[33,66]\n%p = matmul %x, %w {ta=false, tb=false} : f32[33,66]\n"
     "%bb = broadcast %b : f32[33,66]\n%q = add %p, %bb : f32[33,66]\n%y = tanh %q : "
     "f32[33,66]\n"
     "%dx = matmul %d, %w {ta=false, tb=true} : f32[33,41]\n"
     "%dw = matmul %x, %d {ta=true, tb=false} : f32[41,66]\n"
     "result output y = %y\nresult output dx = %dx\nresult output dw = %dw",
     TF32_AND_BF16},
    {"whole units of 16 bytes",
     "%x = input : f32[64,96]\n%w = input : f32[96,128]\n%d = input : f32[64,128]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[64,128]\n"
     "%dx = matmul %d, %w {ta=false, tb=true} : f32[64,96]\n"
     "%dw = matmul %x, %d {ta=true, tb=false} : f32[96,128]\n"
     "%u = input : f32[96,64]\n%v = input : f32[128,96]\n"
     "%t = matmul %u, %v {ta=true, tb=true} : f32[64,128]\n%s = mul %p, %t : f32[64,128]\n"
     "result output s = %s\nresult output dx = %dx\nresult output dw = %dw",
     TF32_AND_BF16},
    {"heads: views of one product",
     "%x = input : f32[24,20]\n%w = input : f32[20,48]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[24,48]\n%h = reshape %p : f32[2,12,3,2,8]\n"
     "%q5 = slice %h {start=[0,0,0,0,0],stop=[2,12,1,2,8],step=[1,1,1,1,1]} : f32[2,12,1,2,8]\n"
     "%k5 = slice %h {start=[0,0,1,0,0],stop=[2,12,2,2,8],step=[1,1,1,1,1]} : f32[2,12,1,2,8]\n"
     "%q4 = reshape %q5 : f32[2,12,2,8]\n%k4 = reshape %k5 : f32[2,12,2,8]\n"
     "%q = transpose %q4 {perm=[0,2,1,3]} : f32[2,2,12,8]\n"
     "%k = transpose %k4 {perm=[0,2,1,3]} : f32[2,2,12,8]\n"
     "%s = matmul %q, %k {ta=false, tb=true} : f32[2,2,12,12]\n"
     "%c = tanh %s : f32[2,2,12,12]\n%e = exp %c : f32[2,2,12,12]\n%z = sum %e {axes=[3]} : "
     "f32[2,2,12,1]\n"
     "%zb = broadcast %z : f32[2,2,12,12]\n%a = div %e, %zb : f32[2,2,12,12]\n"
     "%y = matmul %a, %k {ta=false, tb=false} : f32[2,2,12,8]\n"
     "%t = transpose %y {perm=[0,2,1,3]} : f32[2,12,2,8]\n%o = reshape %t : f32[24,16]\n"
     "%v = input : f32[16,5]\n%r = matmul %o, %v {ta=false, tb=false} : f32[24,5]\n"
     "result output r = %r",
     TF32_AND_BF16},
    {"pieces of k, few results",
     "%x = input : f32[3000,7]\n%d = input : f32[3000,5]\n"
     "%g = matmul %x, %d {ta=true, tb=false} : f32[7,5]\n%y = neg %g : f32[7,5]\n"
     "%l = input : f32[4,2048]\n%r = input : f32[2048,8]\n"
     "%h = matmul %l, %r {ta=false, tb=false} : f32[4,8]\n"
     "result output y = %y\nresult output h = %h",
     TF32_AND_BF16},
    {"one row, one column, one step",
     "%x = input : f32[1,40]\n%w = input : f32[40,130]\n%c = input : f32[40,1]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[1,130]\n"
     "%q = matmul %w, %c {ta=true, tb=false} : f32[130,1]\n"
     "%o = matmul %c, %x {ta=false, tb=false} : f32[40,40]\n"
     "result output p = %p\nresult output q = %q\nresult output o = %o",
     TF32_AND_BF16},
    {"one operand on both sides, and repeated",
     "%x = input : f32[3,20,30]\n%w = input : f32[1,30,18]\n%wb = broadcast %w : f32[3,30,18]\n"
     "%g = matmul %x, %x {ta=true, tb=false} : f32[3,30,30]\n"
     "%p = matmul %x, %wb {ta=false, tb=false} : f32[3,20,18]\n"
     "result output g = %g\nresult output p = %p",
     TF32_AND_BF16},
    {"a result that is narrow, and used elsewhere",
     "%x = input : f32[20,24]\n%w = input : f32[24,32]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[20,32]\n%n = cast %p : bf16[20,32]\n"
     "%h = cast %n : f32[20,32]\n%e = sin %h : f32[20,32]\n%u = input : f32[32,9]\n"
     "%y = matmul %h, %u {ta=false, tb=false} : f32[20,9]\n%m = tf32 %e : f32[20,32]\n"
     "result output n = %n\nresult output e = %e\nresult output y = %y\nresult output m = %m",
     TF32_AND_BF16},
    {"a weight in panels, both ways round",
     "%ih0 = input : f32[3,128]\n%h0 = sin %ih0 : f32[3,128]\n%w = input : f32[128,160]\n%v = "
     "input : f32[160,128]\n"
     "%a1 = matmul %h0, %w {ta=false, tb=false} : f32[3,160]\n"
     "%h1 = matmul %a1, %w {ta=false, tb=true} : f32[3,128]\n"
     "%a2 = matmul %h1, %w {ta=false, tb=false} : f32[3,160]\n"
     "%h2 = matmul %a2, %w {ta=false, tb=true} : f32[3,128]\n"
     "%t2 = tanh %h2 : f32[3,128]\n"
     "%a3 = matmul %t2, %w {ta=false, tb=false} : f32[3,160]\n"
     "%h3 = matmul %a3, %w {ta=false, tb=true} : f32[3,128]\n"
     "%t3 = tanh %h3 : f32[3,128]\n"
     "%a4 = matmul %t3, %w {ta=false, tb=false} : f32[3,160]\n"
     "%h4 = matmul %a4, %w {ta=false, tb=true} : f32[3,128]\nresult output h4 = %h4",
     ONLY_BF16},
    {"rows of odd length, and a batch that lies apart",
     "%ix = input : f32[12,41]\n%x = sin %ix : f32[12,41]\n%s = slice %x "
     "{start=[0,1],stop=[12,41],step=[1,1]} : f32[12,40]\n"
     "%w = input : f32[40,24]\n%y = matmul %s, %w {ta=false, tb=false} : f32[12,24]\n"
     "%d = input : f32[12,24]\n%g = matmul %s, %d {ta=true, tb=false} : f32[40,24]\n"
     "%u = input : f32[24,41]\n%us = slice %u {start=[0,0],stop=[24,40],step=[1,1]} : f32[24,40]\n"
     "%z = matmul %s, %us {ta=false, tb=true} : f32[12,24]\n"
     "%b = input : f32[3,10,7]\n%c = input : f32[3,10,18]\n"
     "%q = matmul %b, %c {ta=true, tb=false} : f32[3,7,18]\n"
     "%bt = transpose %b {perm=[1,0,2]} : f32[10,3,7]\n%e = input : f32[10,7,3]\n"
     "%r = matmul %e, %bt {ta=false, tb=false} : f32[10,7,7]\n"
     "result output y = %y\nresult output g = %g\nresult output z = %z\nresult output q = %q\n"
     "result output r = %r",
     ONLY_BF16},
    {"windows of a padded image",
     "%i = input : f32[2,7,8,6]\n%x = pad %i {lo=[0,1,1,0],hi=[0,1,1,0],value=0} : f32[2,9,10,6]\n"
     "%k = windows %x {axes=[1,2], step=[1,1], size=[3,3], dilate=[1,1]} : f32[2,7,8,6,3,3]\n"
     "%t = transpose %k {perm=[0,1,2,4,5,3]} : f32[2,7,8,3,3,6]\n%a = reshape %t : f32[112,54]\n"
     "%w = input : f32[54,20]\n%y = matmul %a, %w {ta=false, tb=false} : f32[112,20]\n"
     "%d = input : f32[112,20]\n%g = matmul %a, %d {ta=true, tb=false} : f32[54,20]\n"
     "result output y = %y\nresult output g = %g",
     ONLY_BF16},
    {"windows of odd lines, which touch the next ones",
     "%ix = input : f32[4,9,6]\n%x = sin %ix : f32[4,9,6]\n"
     "%k = windows %x {axes=[1,2], step=[1,1], size=[5,5], dilate=[1,1]} : f32[4,5,2,5,5]\n"
     "%a = reshape %k : f32[40,25]\n%w = input : f32[25,20]\n"
     "%y = matmul %a, %w {ta=false, tb=false} : f32[40,20]\n%d = input : f32[40,20]\n"
     "%g = matmul %a, %d {ta=true, tb=false} : f32[25,20]\n"
     "%is = input : f32[300]\n%s = sin %is : f32[300]\n"
     "%n = windows %s {axes=[0], step=[1], size=[33], dilate=[1]} : f32[268,33]\n"
     "%v = input : f32[33,40]\n%f = matmul %n, %v {ta=false, tb=false} : f32[268,40]\n"
     "result output y = %y\nresult output g = %g\nresult output f = %f",
     ONLY_BF16},
    {"large windows of an odd number of channels, packed by pieces that end within runs",
     "%ix = input : f32[1,19,19,65]\n%x = sin %ix : f32[1,19,19,65]\n"
     "%k = windows %x {axes=[1,2], step=[1,1], size=[7,7], dilate=[1,1]} : f32[1,13,13,65,7,7]\n"
     "%t = transpose %k {perm=[0,1,2,4,5,3]} : f32[1,13,13,7,7,65]\n"
     "%a = reshape %t : f32[169,3185]\n%w = input : f32[3185,33]\n"
     "%y = matmul %a, %w {ta=false, tb=false} : f32[169,33]\nresult output y = %y",
     ONLY_BF16},
    {"an odd number of places in each line, of which gradients take pieces",
     "%ix = input : f32[1,59,59,25]\n%x = sin %ix : f32[1,59,59,25]\n"
     "%k = windows %x {axes=[1,2], step=[1,1], size=[3,3], dilate=[1,1]} : f32[1,57,57,25,3,3]\n"
     "%t = transpose %k {perm=[0,1,2,4,5,3]} : f32[1,57,57,3,3,25]\n"
     "%a = reshape %t : f32[3249,225]\n%d = input : f32[3249,33]\n"
     "%g = matmul %a, %d {ta=true, tb=false} : f32[225,33]\nresult output g = %g",
     ONLY_BF16},
    {"rows of many odd steps, both ways round",
     "%ix = input : f32[300,333]\n%x = sin %ix : f32[300,333]\n%w = input : f32[333,72]\n%d = "
     "input : f32[300,72]\n"
     "%y = matmul %x, %w {ta=false, tb=false} : f32[300,72]\n"
     "%g = matmul %x, %d {ta=true, tb=false} : f32[333,72]\n"
     "%v = input : f32[72,333]\n%z = matmul %x, %v {ta=false, tb=true} : f32[300,72]\n"
     "%ie = input : f32[3,5,65]\n%e = sin %ie : f32[3,5,65]\n%r = input : f32[3,65,31]\n"
     "%q = matmul %e, %r {ta=false, tb=false} : f32[3,5,31]\n"
     "result output y = %y\nresult output g = %g\nresult output z = %z\nresult output q = %q",
     ONLY_BF16},
    {"pairs that are cut out, or lie across: no runs of k",
     "%ix = input : f32[12,32,3]\n%x = sin %ix : f32[12,32,3]\n"
     "%s = slice %x {start=[0,0,0],stop=[12,32,2],step=[1,1,1]} : f32[12,32,2]\n"
     "%a = reshape %s : f32[12,64]\n%w = input : f32[64,40]\n"
     "%y = matmul %a, %w {ta=false, tb=false} : f32[12,40]\n"
     "%iz = input : f32[3,2,21]\n%z = sin %iz : f32[3,2,21]\n"
     "%t = transpose %z {perm=[0,2,1]} : f32[3,21,2]\n%b = reshape %t : f32[3,42]\n"
     "%v = input : f32[42,40]\n%g = matmul %b, %v {ta=false, tb=false} : f32[3,40]\n"
     "%iu = input : f32[300,64,4]\n%u = sin %iu : f32[300,64,4]\n"
     "%c = slice %u {start=[0,0,1],stop=[300,64,3],step=[1,1,1]} : f32[300,64,2]\n"
     "%e = reshape %c : f32[300,128]\n%d = input : f32[300,24]\n"
     "%h = matmul %e, %d {ta=true, tb=false} : f32[128,24]\n"
     "result output y = %y\nresult output g = %g\nresult output h = %h",
     ONLY_BF16},
    {"numbers that are repeated along k",
     "%ix = input : f32[12,1]\n%x = sin %ix : f32[12,1]\n%a = broadcast %x : f32[12,64]\n"
     "%w = input : f32[64,40]\n%y = matmul %a, %w {ta=false, tb=false} : f32[12,40]\n"
     "%iz = input : f32[12,8,1]\n%z = sin %iz : f32[12,8,1]\n%r = broadcast %z : f32[12,8,8]\n"
     "%b = reshape %r : f32[12,64]\n%g = matmul %b, %w {ta=false, tb=false} : f32[12,40]\n"
     "result output y = %y\nresult output g = %g",
     ONLY_BF16},
    {"a band of a matrix, which begins and ends within pairs",
     "%q = input : f32[70,6]\n%k = input : f32[70,6]\n%v = input : f32[70,20]\n"
     "%s = matmul %q, %k {ta=false, tb=true} : f32[70,70]\n"
     "%row = iota {axis=0} : i32[70,70]\n%col = iota {axis=1} : i32[70,70]\n"
     "%back = sub %row, %col : i32[70,70]\n%far = const {value=19} : i32[70,70]\n"
     "%le = le %col, %row : bool[70,70]\n%near = le %back, %far : bool[70,70]\n"
     "%see = and %le, %near : bool[70,70]\n%zero = const {value=0} : f32[70,70]\n"
     "%p = select %see, %s, %zero : f32[70,70]\n%y = matmul %p, %v {ta=false, tb=false} : "
     "f32[70,20]\n"
     "%d = input : f32[70,20]\n%g = matmul %p, %d {ta=true, tb=false} : f32[70,20]\n"
     "result output y = %y\nresult output g = %g",
     ONLY_BF16},
    {"f16, all ways round",
     "%a = input : f32[35,48]\n%b = input : f32[48,40]\n%c = input : f32[40,48]\n"
     "%d = input : f32[48,35]\n" NARROW("a", "f16", "[35,48]") NARROW("b", "f16", "[48,40]")
         NARROW("c", "f16", "[40,48]")
             NARROW("d", "f16",
                    "[48,35]") "%nn = matmul %aw, %bw {ta=false, tb=false} : f32[35,40]\n"
                               "%nt = matmul %aw, %cw {ta=false, tb=true} : f32[35,40]\n"
                               "%tn = matmul %dw, %bw {ta=true, tb=false} : f32[35,40]\n"
                               "%tt = matmul %dw, %cw {ta=true, tb=true} : f32[35,40]\n"
                               "%s = add %nn, %nt : f32[35,40]\n%t = mul %tn, %tt : f32[35,40]\n"
                               "result output s = %s\nresult output t = %t",
     BY_HAND},
    {"types that do not agree",
     "%a = input : f32[18,40]\n%b = input : f32[40,24]\n%c = input : f32[40,24]\n"
     "%d = input : f32[40,24]\n" NARROW("a", "bf16", "[18,40]")
         NARROW("b", "f16", "[40,24]") "%e = tf32 %c : f32[40,24]\n%p = matmul %aw, %bw {ta=false, "
                                       "tb=false} : f32[18,24]\n"
                                       "%q = matmul %aw, %e {ta=false, tb=false} : f32[18,24]\n"
                                       "%r = matmul %aw, %d {ta=false, tb=false} : f32[18,24]\n%s "
                                       "= add %p, %q : f32[18,24]\n"
                                       "%t = add %s, %r : f32[18,24]\nresult output t = %t",
     BY_HAND},
    {"narrow tensors moved about",
     "%x = input : bf16[7,20]\n%y = input : f16[7,20]\n%i = input : i32[9]\n"
     "%p = pad %x {lo=[1,2],hi=[0,3],value=1.5} : bf16[8,25]\n"
     "%c = concat %y, %y {axis=0} : f16[14,20]\n%g = gather %x, %i : bf16[9,20]\n"
     "%t = transpose %y {perm=[1,0]} : f16[20,7]\n%k = copy %t : f16[20,7]\n"
     "%z = const {value=0.1} : bf16[9,20]\n%j = concat %g, %z {axis=1} : bf16[9,40]\n"
     "%f = cast %x : f32[7,20]\n%e = exp %f : f32[7,20]\n%n = cast %e : f16[7,20]\n"
     "%h = cast %i : bf16[9]\n%w = cast %y : f64[7,20]\n%b = cast %x : i32[7,20]\n"
     "result output p = %p\nresult output c = %c\nresult output j = %j\nresult output k = %k\n"
     "result output n = %n\nresult output h = %h\nresult output w = %w\nresult output b = %b",
     BY_HAND},
};

// All kernels of all cases, with both settings of the pass (`only`: of one case). The text.
static const char *run_precision_cases(ir_arena *a, const cg_target *target, const char *only) {
  static const char *const settings[] = {"f32", "tf32", "bf16"};
  test_suite *s = test_suite_new(a, target, ~0u);
  pass_options o = {.processor = true, .pairs = target->dots_bf16};
  for (size_t i = 0; i < sizeof precision_cases / sizeof *precision_cases; i++)
    for (int k = 0; k < 3; k++) {
      const precision_case *c = &precision_cases[i];
      bool wanted = c->with == BY_HAND ? k == 0 : k == 2 || (c->with == TF32_AND_BF16 && k == 1);
      if (!wanted || (only && strcmp(only, c->what) != 0))
        continue;
      ir_module *m = test_module(a, NULL, c->body);
      pass_set_precision(m, settings[k]);
      const char *what = ir_format(a, "%s (%s)", c->what, settings[k]);
      if (!pass_run_pipeline(m, diag_new(a), target->cuda ? NULL : &o) ||
          test_suite_add(s, what, m, m->funcs.at[0]->name, 2e-6, 7) == 0)
        test_fail("%s: no kernels", what);
    }
  return test_suite_run(s);
}

#endif
