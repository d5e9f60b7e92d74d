// test_cuda_rows.c: LOOP kernels over long rows for a GPU: rows that threads keep in registers, and
// rows that are swept again, a maximum and a sum of exponentials in one sweep; on the emulator,
// compared with the oracle; and which of the two the plan takes. `-v [NAME]` prints the CUDA text.
#include "codegen/cuda_loop.h"
#include "codegen/program.h"
#include "tests/unit/support_kernels.h"

#include <string.h>

// %y is the softmax of %x over `axes`.
#define SOFTMAX(axes, all, one)                                                                    \
  "%m = reduce_max %x {axes=[" axes "]} : " one "\n%mb = broadcast %m : " all                      \
  "\n%d = sub %x, %mb : " all "\n%e = exp %d : " all "\n%s = sum %e {axes=[" axes "]} : " one      \
  "\n%sb = broadcast %s : " all "\n%y = div %e, %sb : " all "\n"

static const test_case cases[] = {
    {"softmax, kept", NULL,
     "%x = input : f32[3,8192]\n"
     "kernel k loop {\n" SOFTMAX("1", "f32[3,8192]", "f32[3,1]") "}\nresult output y = %y",
     0},
    {"softmax, kept, a vector less than whole turns", NULL,
     "%x = input : f32[5,60]\n"
     "kernel k loop {\n" SOFTMAX("1", "f32[5,60]", "f32[5,1]") "}\nresult output y = %y",
     0},
    {"softmax, kept by 512 threads", NULL,
     "%x = input : f32[2,16001]\n"
     "kernel k loop {\n" SOFTMAX("1", "f32[2,16001]", "f32[2,1]") "}\nresult output y = %y",
     0},
    {"softmax, online", NULL,
     "%x = input : f32[3,17001]\n"
     "kernel k loop {\n" SOFTMAX("1", "f32[3,17001]", "f32[3,1]") "}\nresult output y = %y",
     0},
    {"softmax of whole vectors, online", NULL,
     "%x = input : f32[2,28000]\n"
     "kernel k loop {\n" SOFTMAX("1", "f32[2,28000]", "f32[2,1]") "}\nresult output y = %y",
     0},
    {"softmax of one row, online", NULL,
     "%x = input : f32[30001]\n"
     "kernel k loop {\n" SOFTMAX("0", "f32[30001]", "f32[1]") "}\nresult output y = %y",
     0},
    {"softmax of a part of one row, online", NULL,
     "%x0 = input : f32[20003]\n"
     "%x = slice %x0 {start=[3], stop=[20000], step=[1]} : f32[19997]\n" SOFTMAX(
         "0", "f32[19997]", "f32[1]") "result output y = %y",
     0},
    {"sum of a part of one row", NULL,
     "%x0 = input : f32[5003]\n"
     "%x = slice %x0 {start=[1], stop=[5000], step=[1]} : f32[4999]\n"
     "%s = sum %x {axes=[0]} : f32[1]\n"
     "%a = argmax %x {axis=0} : i32[1]\n"
     "result output s = %s\n"
     "result output a = %a",
     0},
    {"parts of rows, with an index", NULL,
     "%x0 = input : f32[3,5003]\n"
     "%x = slice %x0 {start=[0,1], stop=[3,5001], step=[1,1]} : f32[3,5000]\n"
     "%seed = const {value=7} : i64[]\n"
     "%step = const {value=3} : i64[]\n"
     "%t = input : f32[9]\n"
     "%j = input : u8[3,5000]\n"
     "%r = uniform %seed, %step {stream=3} : f32[3,5000]\n"
     "%g = gather %t, %j : f32[3,5000]\n"
     "%p = mul %r, %g : f32[3,5000]\n"
     "%y = add %p, %x : f32[3,5000]\n"
     "%s = sum %y {axes=[1]} : f32[3,1]\n"
     "%a = argmax %y {axis=1} : i32[3,1]\n"
     "%b = argmin %x {axis=1} : i32[3,1]\n"
     "result output y = %y\n"
     "result output s = %s\n"
     "result output a = %a\n"
     "result output b = %b",
     0},
    {"softmax of doubles, online", NULL,
     "%x = input : f64[2,9003]\n"
     "kernel k loop {\n" SOFTMAX("1", "f64[2,9003]", "f64[2,1]") "}\nresult output y = %y",
     0},
    {"softmax of columns, kept", NULL,
     "%x = input : f32[250,9]\n"
     "kernel k loop {\n" SOFTMAX("0", "f32[250,9]", "f32[1,9]") "}\nresult output y = %y",
     0},
    {"softmax of columns, online", NULL,
     "%x = input : f32[1000,9]\n"
     "kernel k loop {\n" SOFTMAX("0", "f32[1000,9]", "f32[1,9]") "}\nresult output y = %y",
     0},
    {"softmax over both ends, online", NULL,
     "%x = input : f32[300,3,130]\n"
     "kernel k loop {\n" SOFTMAX("0,2", "f32[300,3,130]", "f32[1,3,1]") "}\nresult output y = %y",
     0},
    {"softmax over both ends of odd length, kept", NULL,
     "%x = input : f32[9,2,1025]\n"
     "kernel k loop {\n" SOFTMAX("0,2", "f32[9,2,1025]", "f32[1,2,1]") "}\nresult output y = %y",
     0},
    {"a scaled softmax, online", NULL,
     "%x0 = input : f32[2,28000]\n"
     "kernel k loop {\n"
     "%c = const {value=30} : f32[2,28000]\n"
     "%x = mul %x0, %c : f32[2,28000]\n" SOFTMAX("1", "f32[2,28000]",
                                                 "f32[2,1]") "}\nresult output y = %y",
     1e-5},
    {"two sums of one maximum, online", NULL,
     "%x = input : f32[2,17000]\n"
     "kernel k loop {\n"
     "%m = reduce_max %x {axes=[1]} : f32[2,1]\n"
     "%mb = broadcast %m : f32[2,17000]\n"
     "%d = sub %x, %mb : f32[2,17000]\n"
     "%e = exp %d : f32[2,17000]\n"
     "%s = sum %e {axes=[1]} : f32[2,1]\n"
     "%e2 = mul %e, %e : f32[2,17000]\n"
     "%s2 = sum %e2 {axes=[1]} : f32[2,1]\n"
     "%d3 = sub %x, %mb : f32[2,17000]\n"
     "%e3 = exp %d3 : f32[2,17000]\n"
     "%s3 = sum %e3 {axes=[1]} : f32[2,1]\n"
     "}\n"
     "result output s = %s\n"
     "result output s2 = %s2\n"
     "result output s3 = %s3\n"
     "result output m = %m",
     0},
    {"a maximum of something else", NULL,
     "%x = input : f32[2,17000]\n"
     "%z = input : f32[2,17000]\n"
     "kernel k loop {\n"
     "%m = reduce_max %z {axes=[1]} : f32[2,1]\n"
     "%mb = broadcast %m : f32[2,17000]\n"
     "%d = sub %x, %mb : f32[2,17000]\n"
     "%e = exp %d : f32[2,17000]\n"
     "%s = sum %e {axes=[1]} : f32[2,1]\n"
     "}\n"
     "result output s = %s",
     0},
    {"infinities and NaN, kept", NULL,
     "%z = input : f32[6,5001]\n"
     "kernel k loop {\n"
     "%r = iota {axis=0} : i32[6,5001]\n"
     "%k = iota {axis=1} : i32[6,5001]\n"
     "%i0 = const {value=0} : i32[6,5001]\n"
     "%i1 = const {value=1} : i32[6,5001]\n"
     "%i2 = const {value=2} : i32[6,5001]\n"
     "%i3 = const {value=3} : i32[6,5001]\n"
     "%i4 = const {value=4} : i32[6,5001]\n"
     "%half = const {value=2500} : i32[6,5001]\n"
     "%last = const {value=5000} : i32[6,5001]\n"
     "%low = const {value=-inf} : f32[6,5001]\n"
     "%high = const {value=inf} : f32[6,5001]\n"
     "%nan = const {value=nan} : f32[6,5001]\n"
     "%r0 = eq %r, %i0 : bool[6,5001]\n"
     "%r1 = eq %r, %i1 : bool[6,5001]\n"
     "%r2 = eq %r, %i2 : bool[6,5001]\n"
     "%r3 = eq %r, %i3 : bool[6,5001]\n"
     "%r4 = eq %r, %i4 : bool[6,5001]\n"
     "%first = lt %k, %half : bool[6,5001]\n"
     "%mid = eq %k, %half : bool[6,5001]\n"
     "%rest = lt %k, %last : bool[6,5001]\n"
     "%c1 = and %r1, %first : bool[6,5001]\n"
     "%c2 = and %r2, %mid : bool[6,5001]\n"
     "%c3 = and %r3, %mid : bool[6,5001]\n"
     "%c4 = and %r4, %rest : bool[6,5001]\n"
     "%x0 = select %r0, %low, %z : f32[6,5001]\n"
     "%x1 = select %c1, %low, %x0 : f32[6,5001]\n"
     "%x2 = select %c2, %high, %x1 : f32[6,5001]\n"
     "%x3 = select %c3, %nan, %x2 : f32[6,5001]\n"
     "%x = select %c4, %low, %x3 : f32[6,5001]\n" SOFTMAX("1", "f32[6,5001]",
                                                          "f32[6,1]") "}\nresult output y = %y",
     0},
    {"infinities and NaN, online", NULL,
     "%z = input : f32[6,17003]\n"
     "kernel k loop {\n"
     "%r = iota {axis=0} : i32[6,17003]\n"
     "%k = iota {axis=1} : i32[6,17003]\n"
     "%i0 = const {value=0} : i32[6,17003]\n"
     "%i1 = const {value=1} : i32[6,17003]\n"
     "%i2 = const {value=2} : i32[6,17003]\n"
     "%i3 = const {value=3} : i32[6,17003]\n"
     "%i4 = const {value=4} : i32[6,17003]\n"
     "%half = const {value=16501} : i32[6,17003]\n"
     "%last = const {value=33002} : i32[6,17003]\n"
     "%low = const {value=-inf} : f32[6,17003]\n"
     "%high = const {value=inf} : f32[6,17003]\n"
     "%nan = const {value=nan} : f32[6,17003]\n"
     "%r0 = eq %r, %i0 : bool[6,17003]\n"
     "%r1 = eq %r, %i1 : bool[6,17003]\n"
     "%r2 = eq %r, %i2 : bool[6,17003]\n"
     "%r3 = eq %r, %i3 : bool[6,17003]\n"
     "%r4 = eq %r, %i4 : bool[6,17003]\n"
     "%first = lt %k, %half : bool[6,17003]\n"
     "%mid = eq %k, %half : bool[6,17003]\n"
     "%rest = lt %k, %last : bool[6,17003]\n"
     "%c1 = and %r1, %first : bool[6,17003]\n"
     "%c2 = and %r2, %mid : bool[6,17003]\n"
     "%c3 = and %r3, %mid : bool[6,17003]\n"
     "%c4 = and %r4, %rest : bool[6,17003]\n"
     "%x0 = select %r0, %low, %z : f32[6,17003]\n"
     "%x1 = select %c1, %low, %x0 : f32[6,17003]\n"
     "%x2 = select %c2, %high, %x1 : f32[6,17003]\n"
     "%x3 = select %c3, %nan, %x2 : f32[6,17003]\n"
     "%x = select %c4, %low, %x3 : f32[6,17003]\n" SOFTMAX("1", "f32[6,17003]",
                                                           "f32[6,1]") "}\nresult output y = %y",
     0},
    {"layernorm, kept", NULL,
     "%x = input : f32[3,9000]\n"
     "%g = input : f32[1,9000]\n"
     "kernel k loop {\n"
     "%s = sum %x {axes=[1]} : f32[3,1]\n"
     "%n = const {value=0.00011111111111111112} : f32[3,1]\n"
     "%mean = mul %s, %n : f32[3,1]\n"
     "%mb = broadcast %mean : f32[3,9000]\n"
     "%d = sub %x, %mb : f32[3,9000]\n"
     "%q = mul %d, %d : f32[3,9000]\n"
     "%v = sum %q {axes=[1]} : f32[3,1]\n"
     "%var = mul %v, %n : f32[3,1]\n"
     "%eps = const {value=1e-5} : f32[3,1]\n"
     "%ve = add %var, %eps : f32[3,1]\n"
     "%r = rsqrt %ve : f32[3,1]\n"
     "%rb = broadcast %r : f32[3,9000]\n"
     "%h = mul %d, %rb : f32[3,9000]\n"
     "%gb = broadcast %g : f32[3,9000]\n"
     "%y = mul %h, %gb : f32[3,9000]\n"
     "}\n"
     "result output y = %y\n"
     "result output mean = %mean\n"
     "result output r = %r",
     1e-5},
    {"layernorm, too long", NULL,
     "%x = input : f32[2,28000]\n"
     "%g = input : f32[1,28000]\n"
     "kernel k loop {\n"
     "%s = sum %x {axes=[1]} : f32[2,1]\n"
     "%n = const {value=3.571428571e-05} : f32[2,1]\n"
     "%mean = mul %s, %n : f32[2,1]\n"
     "%mb = broadcast %mean : f32[2,28000]\n"
     "%d = sub %x, %mb : f32[2,28000]\n"
     "%q = mul %d, %d : f32[2,28000]\n"
     "%v = sum %q {axes=[1]} : f32[2,1]\n"
     "%var = mul %v, %n : f32[2,1]\n"
     "%eps = const {value=1e-5} : f32[2,1]\n"
     "%ve = add %var, %eps : f32[2,1]\n"
     "%r = rsqrt %ve : f32[2,1]\n"
     "%rb = broadcast %r : f32[2,28000]\n"
     "%h = mul %d, %rb : f32[2,28000]\n"
     "%gb = broadcast %g : f32[2,28000]\n"
     "%y = mul %h, %gb : f32[2,28000]\n"
     "}\n"
     "result output y = %y\n"
     "result output mean = %mean\n"
     "result output r = %r",
     1e-5},
    {"layernorm backward, kept", NULL,
     "%dy = input : f32[3,8190]\n"
     "%h = input : f32[3,8190]\n"
     "%r = input : f32[3,1]\n"
     "kernel k loop {\n"
     "%a = sum %dy {axes=[1]} : f32[3,1]\n"
     "%p = mul %dy, %h : f32[3,8190]\n"
     "%b = sum %p {axes=[1]} : f32[3,1]\n"
     "%n = const {value=0.00012208521548040532} : f32[3,1]\n"
     "%an = mul %a, %n : f32[3,1]\n"
     "%bn = mul %b, %n : f32[3,1]\n"
     "%anb = broadcast %an : f32[3,8190]\n"
     "%bnb = broadcast %bn : f32[3,8190]\n"
     "%t = mul %h, %bnb : f32[3,8190]\n"
     "%u = sub %dy, %anb : f32[3,8190]\n"
     "%w = sub %u, %t : f32[3,8190]\n"
     "%rb = broadcast %r : f32[3,8190]\n"
     "%dx = mul %w, %rb : f32[3,8190]\n"
     "}\n"
     "result output dx = %dx",
     1e-5},
    {"cross-entropy with backward, kept", NULL,
     "%x = input : f32[3,8200]\n"
     "%label = input : i32[3,1]\n"
     "kernel k loop {\n"
     "%m = reduce_max %x {axes=[1]} : f32[3,1]\n"
     "%ms = stop %m : f32[3,1]\n"
     "%mb = broadcast %ms : f32[3,8200]\n"
     "%d = sub %x, %mb : f32[3,8200]\n"
     "%e = exp %d : f32[3,8200]\n"
     "%s = sum %e {axes=[1]} : f32[3,1]\n"
     "%ls = log %s : f32[3,1]\n"
     "%k = iota {axis=1} : i32[3,8200]\n"
     "%lb = broadcast %label : i32[3,8200]\n"
     "%hit = eq %k, %lb : bool[3,8200]\n"
     "%zero = const {value=0} : f32[3,8200]\n"
     "%pick = select %hit, %d, %zero : f32[3,8200]\n"
     "%ps = sum %pick {axes=[1]} : f32[3,1]\n"
     "%row = sub %ls, %ps : f32[3,1]\n"
     "%sb = broadcast %s : f32[3,8200]\n"
     "%soft = div %e, %sb : f32[3,8200]\n"
     "%one = cast %hit : f32[3,8200]\n"
     "%g = sub %soft, %one : f32[3,8200]\n"
     "}\n"
     "result output row = %row\n"
     "result output g = %g",
     0},
    {"cross-entropy with backward of GPT-2, online", NULL,
     "%x = input : f32[2,50257]\n"
     "%label = input : i32[2,1]\n"
     "kernel k loop {\n"
     "%m = reduce_max %x {axes=[1]} : f32[2,1]\n"
     "%ms = stop %m : f32[2,1]\n"
     "%mb = broadcast %ms : f32[2,50257]\n"
     "%d = sub %x, %mb : f32[2,50257]\n"
     "%e = exp %d : f32[2,50257]\n"
     "%s = sum %e {axes=[1]} : f32[2,1]\n"
     "%ls = log %s : f32[2,1]\n"
     "%k = iota {axis=1} : i32[2,50257]\n"
     "%lb = broadcast %label : i32[2,50257]\n"
     "%hit = eq %k, %lb : bool[2,50257]\n"
     "%zero = const {value=0} : f32[2,50257]\n"
     "%pick = select %hit, %d, %zero : f32[2,50257]\n"
     "%ps = sum %pick {axes=[1]} : f32[2,1]\n"
     "%row = sub %ls, %ps : f32[2,1]\n"
     "%sb = broadcast %s : f32[2,50257]\n"
     "%soft = div %e, %sb : f32[2,50257]\n"
     "%one = cast %hit : f32[2,50257]\n"
     "%g = sub %soft, %one : f32[2,50257]\n"
     "}\n"
     "result output row = %row\n"
     "result output g = %g",
     0},
};
enum { NUM_CASES = sizeof cases / sizeof *cases };

// The name says it, as do the sweeps over memory.
static void check_plan(ir_arena *a, const test_case *c, const cg_target *t) {
  const ir_func *f = test_case_module(a, c)->funcs.at[0];
  bool online = strstr(c->what, "online"), kept = strstr(c->what, "kept");
  const cg_kernel *g = test_scheduled(a, f->kernels.at[0], f, t);
  const cuda_loop *p = g->schedule;
  int with_max = 0;
  for (size_t i = 0; i < g->k->nodes.num; i++)
    with_max += p->p.member[i].max != NULL;
  if ((online || kept) && f->kernels.num != 1)
    test_fail("%s: %zu kernels", c->what, f->kernels.num);
  if (kept != (p->turns > 0) || online != (with_max == 1))
    test_fail("%s: keeps %d vectors, takes %d sums with their maximum", c->what, p->turns,
              with_max);
  if (p->turns * p->kept > 32 || p->threads > 512)
    test_fail("%s: %d registers of %d threads", c->what, p->turns * p->kept, p->threads);
  if (online && p->p.phases > 2)
    test_fail("%s: %d sweeps", c->what, p->p.phases);
}

// Softmax of `rows` rows of `columns` floats.
static cuda_loop plan_of(ir_arena *a, int rows, int columns, const cg_target *t) {
  const char *all = ir_format(a, "f32[%d,%d]", rows, columns),
             *one = ir_format(a, "f32[%d,1]", rows);
  test_case c = {"softmax", NULL,
                 ir_format(a,
                           "%%x = input : %s\n%%m = reduce_max %%x {axes=[1]} : %s\n"
                           "%%mb = broadcast %%m : %s\n%%d = sub %%x, %%mb : %s\n"
                           "%%e = exp %%d : %s\n%%s = sum %%e {axes=[1]} : %s\n"
                           "%%sb = broadcast %%s : %s\n%%y = div %%e, %%sb : %s\n"
                           "result output y = %%y",
                           all, one, all, all, all, one, all, all),
                 0};
  const ir_func *f = test_case_module(a, &c)->funcs.at[0];
  const cg_kernel *g = test_scheduled(a, f->kernels.at[0], f, t);
  return *(const cuda_loop *)g->schedule;
}

// Rows of real sizes: how many threads share one, what they keep, how often they sweep.
static void check_real_sizes(ir_arena *a, const cg_target *t) {
  static const struct {
    int columns, group, turns, sweeps;
    bool spread;
  } want[] = {{10, 2, 2, 3, false},      {768, 128, 2, 3, false},  {1024, 128, 2, 3, false},
              {4096, 256, 4, 3, false},  {8192, 256, 8, 3, false}, {8191, 256, 8, 3, true},
              {16384, 512, 8, 3, false}, {16385, 512, 0, 2, true}, {50257, 1024, 0, 2, true}};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    cuda_loop p = plan_of(a, 8192, want[i].columns, t);
    if (p.group != want[i].group || p.turns != want[i].turns || p.p.phases != want[i].sweeps ||
        p.spread != want[i].spread)
      test_fail("rows of %d: %d threads, %d turns, %d sweeps%s", want[i].columns, p.group, p.turns,
                p.p.phases, p.spread ? ", spread" : "");
  }
}

int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  const char *only = argc > 2 ? argv[2] : NULL;
  ir_arena *a = ir_arena_new();
  const cg_target *t = cg_target_find(a, "cuda:sm_80");
  for (size_t i = 0; i < NUM_CASES; i++)
    check_plan(a, &cases[i], t);
  check_real_sizes(a, cg_target_find(a, "cuda:sm_80,sm_90a"));
  test_run_cases(cases, NUM_CASES, t, only, show);
  ir_arena_free(a);
  return test_report("cuda_rows");
}
