// support_epilogue_cases.h: MATMUL kernels as fusion makes them (bias, activation, residual,
// optimiser, dropout, heads, masks, transposes), for test_cpu_matmul_epilogue.c and
// test_cuda_matmul_epilogue.c: each includes this file once.
#ifndef TESTS_SUPPORT_EPILOGUE_CASES_H
#define TESTS_SUPPORT_EPILOGUE_CASES_H

#include "tests/unit/support_kernels.h"

#include <string.h>

typedef struct epilogue_case {
  const char *what, *body; // behind the states that it has
} epilogue_case;

static const epilogue_case epilogue_cases[] = {
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
    // What lies where the first output goes is read for the second one.
    {"an output over an operand of another",
     "%x = input : f32[33,40]\n%w = input : f32[40,72]\n%b = input : f32[33,72]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[33,72]\n%y = neg %p : f32[33,72]\n"
     "%z = mul %p, %b : f32[33,72]\nresult output y = %y\nresult output z = %z"},
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
    {"bias and relu, again",
     "%x = input : f32[64,72]\n%w = input : f32[72,128]\n%b = input : f32[1,128]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[64,128]\n"
     "%bb = broadcast %b : f32[64,128]\n%s = add %p, %bb : f32[64,128]\n"
     "%z = const {value=0} : f32[64,128]\n%y = max %s, %z : f32[64,128]\n"
     "result output y = %y"},
    {"residual and tanh",
     "%x = input : f32[40,48]\n%w = input : f32[48,65]\n%r = input : f32[40,65]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[40,65]\n%t = tanh %p : f32[40,65]\n"
     "%y = add %t, %r : f32[40,65]\nresult output y = %y"},
    {"update of weights and momentum",
     "%x = input : f32[64,100]\n%d = input : f32[64,36]\n%w = input : f32[100,36]\n"
     "%m = input : f32[100,36]\n%g = matmul %x, %d {ta=true, tb=false} : f32[100,36]\n"
     "%c = const {value=0.9} : f32[100,36]\n%mm = mul %m, %c : f32[100,36]\n"
     "%n = add %mm, %g : f32[100,36]\n%l = const {value=0.1} : f32[100,36]\n"
     "%s = mul %n, %l : f32[100,36]\n%u = sub %w, %s : f32[100,36]\n"
     "result output n = %n\nresult output u = %u"},
    // Of a small batch: its columns stay with the threads that read them (codegen/cpu_matmul_cost.c).
    {"update by columns",
     "state w : f32[300,96] role=param\n"
     "%x = input : f32[16,300]\n%d = input : f32[16,96]\n%w = read @w : f32[300,96]\n"
     "%g = matmul %x, %d {ta=true, tb=false} : f32[300,96]\n"
     "%c = const {value=0.1} : f32[300,96]\n%s = mul %g, %c : f32[300,96]\n"
     "%n = sub %w, %s : f32[300,96]\nresult output n = %n"},
    {"update in pieces of k",
     "%x = input : f32[900,20]\n%d = input : f32[900,12]\n%w = input : f32[20,12]\n"
     "%g = matmul %x, %d {ta=true, tb=false} : f32[20,12]\n"
     "%c = const {value=0.1} : f32[20,12]\n%s = mul %g, %c : f32[20,12]\n"
     "%n = sub %w, %s : f32[20,12]\nresult output n = %n\nresult output g = %g"},
    {"heads of 7",
     "%x = input : f32[40,50]\n%w = input : f32[50,21]\n%b = input : f32[3,40,7]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[40,21]\n%h = reshape %p : f32[40,3,7]\n"
     "%t = transpose %h {perm=[1,0,2]} : f32[3,40,7]\n%y = add %t, %b : f32[3,40,7]\n"
     "result output y = %y"},
    {"one number, again",
     "%x = input : f32[1,3000]\n%w = input : f32[3000,1]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[1,1]\n%y = neg %p : f32[1,1]\n"
     "result output y = %y"},
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
    {"rows that begin anywhere",
     "%x = input : f32[130,16]\n%w = input : f32[16,1021]\n%b = input : f32[1,1021]\n"
     "%r = input : f32[130,1021]\n%seed = const {value=7} : i64[]\n%step = const {value=3} : "
     "i64[]\n"
     "%p = matmul %x, %w {ta=false, tb=false} : f32[130,1021]\n%bb = broadcast %b : f32[130,1021]\n"
     "%s = add %p, %bb : f32[130,1021]\n%u = uniform %seed, %step {stream=3} : f32[130,1021]\n"
     "%d = mul %s, %u : f32[130,1021]\n%y = add %d, %r : f32[130,1021]\n"
     "%c = gt %y, %r : bool[130,1021]\nresult output y = %y\nresult output c = %c"},
    {"names that kernels use",
     "%a = input : f32[20,16]\n%b = input : f32[16,24]\n%line = input : f32[20,24]\n"
     "%c = matmul %a, %b {ta=false, tb=false} : f32[20,24]\n"
     "%product = mul %c, %line : f32[20,24]\n%column = abs %product : f32[20,24]\n"
     "%a_tiles = neg %column : f32[20,24]\nresult output y = %a_tiles\nresult output p = "
     "%product"}};

// The matmul kernels of all cases (`only`: of one) for a target; their text. Most phases of any: *phases, unless NULL.
static const char *run_epilogue_cases(ir_arena *a, const cg_target *target, const char *only,
                                      int *phases) {
  test_suite *s = test_suite_new(a, target, 1u << IR_FAMILY_MATMUL);
  for (size_t i = 0; i < sizeof epilogue_cases / sizeof *epilogue_cases; i++) {
    const epilogue_case *c = &epilogue_cases[i];
    const char *body = strchr(c->body, '%');
    const char *states = ir_format(a, "%.*s", (int)(body - c->body), c->body);
    ir_module *m = test_module(a, states, body);
    ir_diags *d = diag_new(a);
    if (only && strcmp(only, c->what) != 0)
      continue;
    pass_own_outputs(m, d);
    pass_fuse(m, d);
    if (test_suite_add(s, c->what, m, m->funcs.at[0]->name, 3e-6, 7) == 0)
      test_fail("%s: no matmul kernel", c->what);
  }
  const char *text = test_suite_run(s);
  if (phases)
    *phases = test_suite_phases(s);
  return text;
}

#endif
