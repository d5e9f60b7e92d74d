// test_cuda_rows_compile.c: LOOP and SCATTER kernels of GPT-2's sizes, compiled by NVRTC for sm_80
// and sm_90a: nothing spills, no thread has local memory, ptxas has nothing to say. `-v` prints
// what each kernel takes. Skipped where there is no NVRTC.
#include "codegen/cuda_resources.h"
#include "codegen/program.h"
#include "tests/unit/support_cuda.h"
#include "tests/unit/support_kernels.h"

#include <string.h>

static const test_case cases[] = {
    {"gpt-2 embedding backward", NULL,
     "%i = input : u16[512,1024]\n%u = input : f32[512,1024,768]\n"
     "%s = scatter_add %i, %u : f32[50257,768]\nresult output s = %s",
     0},
    {"positions backward", NULL,
     "%i = iota {axis=1} : i32[512,1024]\n%u = input : f32[512,1024,768]\n"
     "%s = scatter_add %i, %u : f32[1024,768]\nresult output s = %s",
     0},
    {"odd columns, doubles", NULL,
     "%i = input : i64[70000]\n%u = input : f64[70000,333]\n"
     "%s = scatter_add %i, %u : f64[900,333]\nresult output s = %s",
     0},
    {"many rows of one element", NULL,
     "%i = input : i32[1000000]\n%u = input : f32[1000000]\n"
     "%s = scatter_add %i, %u : f32[16000000]\nresult output s = %s",
     0},
    {"the largest of rows, doubles in odd columns beside them", NULL,
     "%i = input : i32[400000]\n%u = input : f32[400000,64]\n%x = input : f64[400000,33]\n"
     "%s = scatter_max %i, %u : f32[30000,64]\n%t = scatter_max %i, %x : f64[30000,33]\n"
     "result output s = %s\nresult output t = %t",
     0},
    {"a table by rows, few indices",
     "state w : f32[1000000,16] role=param\nstate lr : f32[] role=flag value=0.5",
     "%i = input : i32[128,4]\n%h = input : f32[128,1,16]\n"
     "%u = broadcast %h : f32[128,4,16]\n%g = scatter_add %i, %u : f32[1000000,16]\n"
     "%l = read @lr : f32[]\n%k = reshape %l : f32[1,1]\n"
     "%b = broadcast %k : f32[1000000,16]\n%s = mul %b, %g : f32[1000000,16]\n"
     "%w = read @w : f32[1000000,16]\n%y = sub %w, %s : f32[1000000,16]\nwrite @w, %y",
     0},
    {"a table by rows, many indices, odd columns",
     "state w : f32[1000000,63] role=param\nstate v : f32[1000000,63] role=moment",
     "%i = input : i32[65536]\n%u = input : f32[65536,63]\n"
     "%g = scatter_add %i, %u : f32[1000000,63]\n%q = mul %g, %g : f32[1000000,63]\n"
     "%v = read @v : f32[1000000,63]\n%v2 = add %v, %q : f32[1000000,63]\nwrite @v, %v2\n"
     "%n = sqrt %v2 : f32[1000000,63]\n%x = div %g, %n : f32[1000000,63]\n"
     "%w = read @w : f32[1000000,63]\n%y = sub %w, %x : f32[1000000,63]\nwrite @w, %y",
     0},
    {"bytes", NULL,
     "%i = input : i32[4000,3]\n%u = input : u8[4000,3,5,7]\n"
     "%s = scatter_add %i, %u : u8[300,5,7]\nresult output s = %s",
     0},
    {"softmax of 1024", NULL,
     "%x = input : f32[98304,1024]\n"
     "%m = reduce_max %x {axes=[1]} : f32[98304,1]\n"
     "%mb = broadcast %m : f32[98304,1024]\n"
     "%d = sub %x, %mb : f32[98304,1024]\n"
     "%e = exp %d : f32[98304,1024]\n"
     "%s = sum %e {axes=[1]} : f32[98304,1]\n"
     "%sb = broadcast %s : f32[98304,1024]\n"
     "%y = div %e, %sb : f32[98304,1024]\n"
     "result output y = %y",
     0},
    {"softmax of 8192", NULL,
     "%x = input : f32[4096,8192]\n"
     "%m = reduce_max %x {axes=[1]} : f32[4096,1]\n"
     "%mb = broadcast %m : f32[4096,8192]\n"
     "%d = sub %x, %mb : f32[4096,8192]\n"
     "%e = exp %d : f32[4096,8192]\n"
     "%s = sum %e {axes=[1]} : f32[4096,1]\n"
     "%sb = broadcast %s : f32[4096,8192]\n"
     "%y = div %e, %sb : f32[4096,8192]\n"
     "result output y = %y",
     0},
    {"softmax of 16384", NULL,
     "%x = input : f32[4096,16384]\n"
     "%m = reduce_max %x {axes=[1]} : f32[4096,1]\n"
     "%mb = broadcast %m : f32[4096,16384]\n"
     "%d = sub %x, %mb : f32[4096,16384]\n"
     "%e = exp %d : f32[4096,16384]\n"
     "%s = sum %e {axes=[1]} : f32[4096,1]\n"
     "%sb = broadcast %s : f32[4096,16384]\n"
     "%y = div %e, %sb : f32[4096,16384]\n"
     "result output y = %y",
     0},
    {"softmax of 16380", NULL,
     "%x = input : f32[4096,16380]\n"
     "%m = reduce_max %x {axes=[1]} : f32[4096,1]\n"
     "%mb = broadcast %m : f32[4096,16380]\n"
     "%d = sub %x, %mb : f32[4096,16380]\n"
     "%e = exp %d : f32[4096,16380]\n"
     "%s = sum %e {axes=[1]} : f32[4096,1]\n"
     "%sb = broadcast %s : f32[4096,16380]\n"
     "%y = div %e, %sb : f32[4096,16380]\n"
     "result output y = %y",
     0},
    {"softmax of 16383", NULL,
     "%x = input : f32[4096,16383]\n"
     "%m = reduce_max %x {axes=[1]} : f32[4096,1]\n"
     "%mb = broadcast %m : f32[4096,16383]\n"
     "%d = sub %x, %mb : f32[4096,16383]\n"
     "%e = exp %d : f32[4096,16383]\n"
     "%s = sum %e {axes=[1]} : f32[4096,1]\n"
     "%sb = broadcast %s : f32[4096,16383]\n"
     "%y = div %e, %sb : f32[4096,16383]\n"
     "result output y = %y",
     0},
    {"softmax of doubles", NULL,
     "%x = input : f64[4096,8189]\n"
     "%m = reduce_max %x {axes=[1]} : f64[4096,1]\n"
     "%mb = broadcast %m : f64[4096,8189]\n"
     "%d = sub %x, %mb : f64[4096,8189]\n"
     "%e = exp %d : f64[4096,8189]\n"
     "%s = sum %e {axes=[1]} : f64[4096,1]\n"
     "%sb = broadcast %s : f64[4096,8189]\n"
     "%y = div %e, %sb : f64[4096,8189]\n"
     "result output y = %y",
     0},
    {"softmax of long rows of doubles", NULL,
     "%x = input : f64[4096,50257]\n"
     "%m = reduce_max %x {axes=[1]} : f64[4096,1]\n"
     "%mb = broadcast %m : f64[4096,50257]\n"
     "%d = sub %x, %mb : f64[4096,50257]\n"
     "%e = exp %d : f64[4096,50257]\n"
     "%s = sum %e {axes=[1]} : f64[4096,1]\n"
     "%sb = broadcast %s : f64[4096,50257]\n"
     "%y = div %e, %sb : f64[4096,50257]\n"
     "result output y = %y",
     0},
    {"softmax of 50257", NULL,
     "%x = input : f32[8192,50257]\n"
     "%m = reduce_max %x {axes=[1]} : f32[8192,1]\n"
     "%mb = broadcast %m : f32[8192,50257]\n"
     "%d = sub %x, %mb : f32[8192,50257]\n"
     "%e = exp %d : f32[8192,50257]\n"
     "%s = sum %e {axes=[1]} : f32[8192,1]\n"
     "%sb = broadcast %s : f32[8192,50257]\n"
     "%y = div %e, %sb : f32[8192,50257]\n"
     "result output y = %y",
     0},
    {"softmax of columns", NULL,
     "%x = input : f32[256,4096]\n"
     "%m = reduce_max %x {axes=[0]} : f32[1,4096]\n"
     "%mb = broadcast %m : f32[256,4096]\n"
     "%d = sub %x, %mb : f32[256,4096]\n"
     "%e = exp %d : f32[256,4096]\n"
     "%s = sum %e {axes=[0]} : f32[1,4096]\n"
     "%sb = broadcast %s : f32[256,4096]\n"
     "%y = div %e, %sb : f32[256,4096]\n"
     "result output y = %y",
     0},
    {"layernorm of 768", NULL,
     "%x = input : f32[8192,768]\n"
     "%g = input : f32[1,768]\n"
     "%s = sum %x {axes=[1]} : f32[8192,1]\n"
     "%n = const {value=0.0013020833333333333} : f32[8192,1]\n"
     "%mean = mul %s, %n : f32[8192,1]\n"
     "%mb = broadcast %mean : f32[8192,768]\n"
     "%d = sub %x, %mb : f32[8192,768]\n"
     "%q = mul %d, %d : f32[8192,768]\n"
     "%v = sum %q {axes=[1]} : f32[8192,1]\n"
     "%var = mul %v, %n : f32[8192,1]\n"
     "%eps = const {value=1e-5} : f32[8192,1]\n"
     "%ve = add %var, %eps : f32[8192,1]\n"
     "%r = rsqrt %ve : f32[8192,1]\n"
     "%rb = broadcast %r : f32[8192,768]\n"
     "%h = mul %d, %rb : f32[8192,768]\n"
     "%gb = broadcast %g : f32[8192,768]\n"
     "%y = mul %h, %gb : f32[8192,768]\n"
     "result output y = %y\n"
     "result output mean = %mean\n"
     "result output r = %r",
     0},
    {"layernorm of 50257", NULL,
     "%x = input : f32[8192,50257]\n"
     "%g = input : f32[1,50257]\n"
     "%s = sum %x {axes=[1]} : f32[8192,1]\n"
     "%n = const {value=0.00001989772569} : f32[8192,1]\n"
     "%mean = mul %s, %n : f32[8192,1]\n"
     "%mb = broadcast %mean : f32[8192,50257]\n"
     "%d = sub %x, %mb : f32[8192,50257]\n"
     "%q = mul %d, %d : f32[8192,50257]\n"
     "%v = sum %q {axes=[1]} : f32[8192,1]\n"
     "%var = mul %v, %n : f32[8192,1]\n"
     "%eps = const {value=1e-5} : f32[8192,1]\n"
     "%ve = add %var, %eps : f32[8192,1]\n"
     "%r = rsqrt %ve : f32[8192,1]\n"
     "%rb = broadcast %r : f32[8192,50257]\n"
     "%h = mul %d, %rb : f32[8192,50257]\n"
     "%gb = broadcast %g : f32[8192,50257]\n"
     "%y = mul %h, %gb : f32[8192,50257]\n"
     "result output y = %y\n"
     "result output mean = %mean\n"
     "result output r = %r",
     0},
    {"layernorm of 16384", NULL,
     "%x = input : f32[8192,16384]\n"
     "%g = input : f32[1,16384]\n"
     "%s = sum %x {axes=[1]} : f32[8192,1]\n"
     "%n = const {value=6.103515625e-05} : f32[8192,1]\n"
     "%mean = mul %s, %n : f32[8192,1]\n"
     "%mb = broadcast %mean : f32[8192,16384]\n"
     "%d = sub %x, %mb : f32[8192,16384]\n"
     "%q = mul %d, %d : f32[8192,16384]\n"
     "%v = sum %q {axes=[1]} : f32[8192,1]\n"
     "%var = mul %v, %n : f32[8192,1]\n"
     "%eps = const {value=1e-5} : f32[8192,1]\n"
     "%ve = add %var, %eps : f32[8192,1]\n"
     "%r = rsqrt %ve : f32[8192,1]\n"
     "%rb = broadcast %r : f32[8192,16384]\n"
     "%h = mul %d, %rb : f32[8192,16384]\n"
     "%gb = broadcast %g : f32[8192,16384]\n"
     "%y = mul %h, %gb : f32[8192,16384]\n"
     "result output y = %y\n"
     "result output mean = %mean\n"
     "result output r = %r",
     0},
    {"layernorm of 16381", NULL,
     "%x = input : f32[8192,16381]\n"
     "%g = input : f32[1,16381]\n"
     "%s = sum %x {axes=[1]} : f32[8192,1]\n"
     "%n = const {value=3.052037234854265e-05} : f32[8192,1]\n"
     "%mean = mul %s, %n : f32[8192,1]\n"
     "%mb = broadcast %mean : f32[8192,16381]\n"
     "%d = sub %x, %mb : f32[8192,16381]\n"
     "%q = mul %d, %d : f32[8192,16381]\n"
     "%v = sum %q {axes=[1]} : f32[8192,1]\n"
     "%var = mul %v, %n : f32[8192,1]\n"
     "%eps = const {value=1e-5} : f32[8192,1]\n"
     "%ve = add %var, %eps : f32[8192,1]\n"
     "%r = rsqrt %ve : f32[8192,1]\n"
     "%rb = broadcast %r : f32[8192,16381]\n"
     "%h = mul %d, %rb : f32[8192,16381]\n"
     "%gb = broadcast %g : f32[8192,16381]\n"
     "%y = mul %h, %gb : f32[8192,16381]\n"
     "result output y = %y\n"
     "result output mean = %mean\n"
     "result output r = %r",
     0},
    {"layernorm backward of 768", NULL,
     "%dy = input : f32[8192,768]\n"
     "%h = input : f32[8192,768]\n"
     "%r = input : f32[8192,1]\n"
     "%a = sum %dy {axes=[1]} : f32[8192,1]\n"
     "%p = mul %dy, %h : f32[8192,768]\n"
     "%b = sum %p {axes=[1]} : f32[8192,1]\n"
     "%n = const {value=0.0013020833333333333} : f32[8192,1]\n"
     "%an = mul %a, %n : f32[8192,1]\n"
     "%bn = mul %b, %n : f32[8192,1]\n"
     "%anb = broadcast %an : f32[8192,768]\n"
     "%bnb = broadcast %bn : f32[8192,768]\n"
     "%t = mul %h, %bnb : f32[8192,768]\n"
     "%u = sub %dy, %anb : f32[8192,768]\n"
     "%w = sub %u, %t : f32[8192,768]\n"
     "%rb = broadcast %r : f32[8192,768]\n"
     "%dx = mul %w, %rb : f32[8192,768]\n"
     "result output dx = %dx",
     0},
    {"layernorm backward of 50257", NULL,
     "%dy = input : f32[8192,50257]\n"
     "%h = input : f32[8192,50257]\n"
     "%r = input : f32[8192,1]\n"
     "%a = sum %dy {axes=[1]} : f32[8192,1]\n"
     "%p = mul %dy, %h : f32[8192,50257]\n"
     "%b = sum %p {axes=[1]} : f32[8192,1]\n"
     "%n = const {value=0.00001989772569} : f32[8192,1]\n"
     "%an = mul %a, %n : f32[8192,1]\n"
     "%bn = mul %b, %n : f32[8192,1]\n"
     "%anb = broadcast %an : f32[8192,50257]\n"
     "%bnb = broadcast %bn : f32[8192,50257]\n"
     "%t = mul %h, %bnb : f32[8192,50257]\n"
     "%u = sub %dy, %anb : f32[8192,50257]\n"
     "%w = sub %u, %t : f32[8192,50257]\n"
     "%rb = broadcast %r : f32[8192,50257]\n"
     "%dx = mul %w, %rb : f32[8192,50257]\n"
     "result output dx = %dx",
     0},
    {"layernorm backward of 8191", NULL,
     "%dy = input : f32[8192,8191]\n"
     "%h = input : f32[8192,8191]\n"
     "%r = input : f32[8192,1]\n"
     "%a = sum %dy {axes=[1]} : f32[8192,1]\n"
     "%p = mul %dy, %h : f32[8192,8191]\n"
     "%b = sum %p {axes=[1]} : f32[8192,1]\n"
     "%n = const {value=6.103888176768602e-05} : f32[8192,1]\n"
     "%an = mul %a, %n : f32[8192,1]\n"
     "%bn = mul %b, %n : f32[8192,1]\n"
     "%anb = broadcast %an : f32[8192,8191]\n"
     "%bnb = broadcast %bn : f32[8192,8191]\n"
     "%t = mul %h, %bnb : f32[8192,8191]\n"
     "%u = sub %dy, %anb : f32[8192,8191]\n"
     "%w = sub %u, %t : f32[8192,8191]\n"
     "%rb = broadcast %r : f32[8192,8191]\n"
     "%dx = mul %w, %rb : f32[8192,8191]\n"
     "result output dx = %dx",
     0},
    {"cross-entropy of 50257", NULL,
     "%x = input : f32[8192,50257]\n"
     "%label = input : i32[8192,1]\n"
     "%m = reduce_max %x {axes=[1]} : f32[8192,1]\n"
     "%ms = stop %m : f32[8192,1]\n"
     "%mb = broadcast %ms : f32[8192,50257]\n"
     "%d = sub %x, %mb : f32[8192,50257]\n"
     "%e = exp %d : f32[8192,50257]\n"
     "%s = sum %e {axes=[1]} : f32[8192,1]\n"
     "%ls = log %s : f32[8192,1]\n"
     "%k = iota {axis=1} : i32[8192,50257]\n"
     "%lb = broadcast %label : i32[8192,50257]\n"
     "%hit = eq %k, %lb : bool[8192,50257]\n"
     "%zero = const {value=0} : f32[8192,50257]\n"
     "%pick = select %hit, %d, %zero : f32[8192,50257]\n"
     "%ps = sum %pick {axes=[1]} : f32[8192,1]\n"
     "%row = sub %ls, %ps : f32[8192,1]\n"
     "%sb = broadcast %s : f32[8192,50257]\n"
     "%soft = div %e, %sb : f32[8192,50257]\n"
     "%one = cast %hit : f32[8192,50257]\n"
     "%g = sub %soft, %one : f32[8192,50257]\n"
     "result output row = %row\n"
     "result output g = %g",
     0},
    {"cross-entropy of 16383", NULL,
     "%x = input : f32[8192,16383]\n"
     "%label = input : i32[8192,1]\n"
     "%m = reduce_max %x {axes=[1]} : f32[8192,1]\n"
     "%ms = stop %m : f32[8192,1]\n"
     "%mb = broadcast %ms : f32[8192,16383]\n"
     "%d = sub %x, %mb : f32[8192,16383]\n"
     "%e = exp %d : f32[8192,16383]\n"
     "%s = sum %e {axes=[1]} : f32[8192,1]\n"
     "%ls = log %s : f32[8192,1]\n"
     "%k = iota {axis=1} : i32[8192,16383]\n"
     "%lb = broadcast %label : i32[8192,16383]\n"
     "%hit = eq %k, %lb : bool[8192,16383]\n"
     "%zero = const {value=0} : f32[8192,16383]\n"
     "%pick = select %hit, %d, %zero : f32[8192,16383]\n"
     "%ps = sum %pick {axes=[1]} : f32[8192,1]\n"
     "%row = sub %ls, %ps : f32[8192,1]\n"
     "%sb = broadcast %s : f32[8192,16383]\n"
     "%soft = div %e, %sb : f32[8192,16383]\n"
     "%one = cast %hit : f32[8192,16383]\n"
     "%g = sub %soft, %one : f32[8192,16383]\n"
     "result output row = %row\n"
     "result output g = %g",
     0},
    {"cross-entropy of 16000", NULL,
     "%x = input : f32[8192,16000]\n"
     "%label = input : i32[8192,1]\n"
     "%m = reduce_max %x {axes=[1]} : f32[8192,1]\n"
     "%ms = stop %m : f32[8192,1]\n"
     "%mb = broadcast %ms : f32[8192,16000]\n"
     "%d = sub %x, %mb : f32[8192,16000]\n"
     "%e = exp %d : f32[8192,16000]\n"
     "%s = sum %e {axes=[1]} : f32[8192,1]\n"
     "%ls = log %s : f32[8192,1]\n"
     "%k = iota {axis=1} : i32[8192,16000]\n"
     "%lb = broadcast %label : i32[8192,16000]\n"
     "%hit = eq %k, %lb : bool[8192,16000]\n"
     "%zero = const {value=0} : f32[8192,16000]\n"
     "%pick = select %hit, %d, %zero : f32[8192,16000]\n"
     "%ps = sum %pick {axes=[1]} : f32[8192,1]\n"
     "%row = sub %ls, %ps : f32[8192,1]\n"
     "%sb = broadcast %s : f32[8192,16000]\n"
     "%soft = div %e, %sb : f32[8192,16000]\n"
     "%one = cast %hit : f32[8192,16000]\n"
     "%g = sub %soft, %one : f32[8192,16000]\n"
     "result output row = %row\n"
     "result output g = %g",
     0},
};

static void compile(ir_arena *a, const cg_nvrtc *nvrtc, const char *text, const char *arch,
                    bool verbose) {
  cg_resource_list list = support_cubin(a, nvrtc, text, arch, false, NULL);
  for (size_t i = 0; verbose && i < list.num; i++)
    printf("%-7s %-8s %3d registers, %6lld bytes shared\n", arch, list.at[i].kernel,
           list.at[i].registers, (long long)list.at[i].shared);
}

int main(int argc, char **argv) {
  ir_arena *a = ir_arena_new();
  bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
  const cg_nvrtc *nvrtc = support_nvrtc(a);
  if (!nvrtc)
    return 77;
  const cg_target *target = cg_target_find(a, "cuda:sm_80,sm_90a");
  const char *text = test_cases_text(a, cases, sizeof cases / sizeof *cases, target);
  if (verbose)
    puts(strstr(text, "// ---- "));
  compile(a, nvrtc, text, "sm_80", verbose);
  compile(a, nvrtc, text, "sm_90a", verbose);
  ir_arena_free(a);
  return test_report("cuda_rows_compile");
}
