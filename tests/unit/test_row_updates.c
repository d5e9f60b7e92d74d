// test_row_updates.c: updates of tables by rows.
//   - the pass: which updates become kernels that touch only named rows, and which stay dense;
//   - kernels for CPUs and, on the emulator, for GPUs, by walking and by sorting, against the
//     oracle, with outputs apart from the tables and over them: indices named twice, out of range,
//     a scalar;
//   - what a step moves and keeps does not grow with the table.
// `-v [NAME]` prints the generated text.
#include "codegen/program.h"
#include "passes/cost.h"
#include "passes/plan.h"
#include "tests/unit/support_kernels.h"
#include "tests/unit/support_plan.h"

#include <string.h>

#define TABLE(type) "state w : " type " role=param\nstate v : " type " role=moment"
#define RATE        "\nstate lr : f32[] role=flag value=0.5"
// w - lr * g
#define SGD(type, ones)                                                                            \
  "%w = read @w : " type "\n%l = read @lr : f32[]\n%k = reshape %l : f32[" ones "]\n"              \
  "%b = broadcast %k : " type "\n%s = mul %b, %g : " type "\n%y = sub %w, %s : " type              \
  "\nwrite @w, %y\n"
// Indices i * times % modulo + plus: some twice, some not.
#define INDEX(dtype, n, times, modulo, plus)                                                       \
  "%c = iota {axis=0} : i64[" n "]\n%t = const {value=" times "} : i64[" n "]\n"                   \
  "%m = const {value=" modulo "} : i64[" n "]\n%o = const {value=" plus "} : i64[" n "]\n"         \
  "%p = mul %c, %t : i64[" n "]\n%q = mod %p, %m : i64[" n "]\n%r = add %q, %o : i64[" n "]\n"     \
  "%i = cast %r : " dtype "[" n "]\n%u = input : "
#define SUM(type) "%g = scatter_add %i, %u : " type "\n"

#define ADAGRAD(type)                                                                              \
  "%w = read @w : " type "\n%v = read @v : " type "\n%q2 = mul %g, %g : " type                     \
  "\n%v2 = add %v, %q2 : " type "\nwrite @v, %v2\n%a = abs %v2 : " type                            \
  "\n%e = const {value=1} : " type "\n%z = add %a, %e : " type "\n%n = sqrt %z : " type            \
  "\n%x = div %g, %n : " type "\n%y = sub %w, %x : " type "\nwrite @w, %y\n"

// A product and the sum of rows %g, and what is computed from that.
#define ADDED(rows, columns)                                                                       \
  "%a = input : f32[" rows ",5]\n%b = input : f32[5," columns                                      \
  "]\n%ab = matmul %a, %b {ta=false, tb=false} : f32[" rows "," columns                            \
  "]\n%d = add %ab, %g : f32[" rows "," columns "]\n%e = tanh %d : f32[" rows "," columns          \
  "]\n%h = mul %e, %d : f32[" rows "," columns "]\nresult output h = %h\n"

static const test_case cases[] = {
    {"sgd", TABLE("f32[500,16]") RATE,
     INDEX("i32", "60", "7", "45", "0") "f32[60,16]\n" SUM("f32[500,16]") SGD("f32[500,16]", "1,1"),
     0},
    {"many indices", TABLE("f32[5000,16]") RATE,
     INDEX("i32", "3000", "7919", "1201", "0") "f32[3000,16]\n" SUM("f32[5000,16]")
         SGD("f32[5000,16]", "1,1"),
     0},
    {"one row", TABLE("f32[1,8]") RATE,
     INDEX("i32", "40", "1", "3", "-1") "f32[40,8]\n" SUM("f32[1,8]") SGD("f32[1,8]", "1,1"), 0},
    {"rows of one element", TABLE("f32[300]") RATE,
     INDEX("i64", "1100", "48611", "701", "-200") "f32[1100]\n" SUM("f32[300]")
         SGD("f32[300]", "1"),
     0},
    {"odd rows", TABLE("f32[90,7]") RATE,
     INDEX("u8", "50", "11", "130", "0") "f32[50,7]\n" SUM("f32[90,7]") SGD("f32[90,7]", "1,1"), 0},
    {"long odd rows", TABLE("f32[40,1,271]") RATE,
     INDEX("i32", "900", "11", "20", "5") "f32[900,1,271]\n" SUM("f32[40,1,271]")
         SGD("f32[40,1,271]", "1,1,1"),
     0},
    {"one for all", TABLE("f32[64,12]") RATE,
     INDEX("i32", "2000", "1", "1", "7") "f32[2000,12]\n" SUM("f32[64,12]")
         SGD("f32[64,12]", "1,1"),
     1e-5},
    {"doubles", TABLE("f64[70,6]"),
     INDEX("i32", "500", "13", "29", "0") "f64[500,6]\n" SUM(
         "f64[70,6]") "%w = read @w : f64[70,6]\n%y = add %g, %w : f64[70,6]\nwrite @w, %y",
     0},
    {"a scalar index", TABLE("f32[9,20]") RATE,
     "%i = input : i32[]\n%u = input : f32[20]\n" SUM("f32[9,20]") SGD("f32[9,20]", "1,1"), 0},
    {"a bag's sum for each of its rows", TABLE("f32[200,8]") RATE,
     "%i = input : i32[30,4]\n%h = input : f32[30,1,8]\n%u = broadcast %h : f32[30,4,8]\n" SUM(
         "f32[200,8]") SGD("f32[200,8]", "1,1"),
     0},
    {"columns of lists", TABLE("f32[200,8]") RATE,
     "%x = input : i32[30,4,3]\n%d = slice %x {start=[0,0,1], stop=[30,4,2], step=[1,1,1]} : "
     "i32[30,4,1]\n%i = reshape %d : i32[30,4]\n%u = input : f32[30,4,8]\n" SUM("f32[200,8]")
         SGD("f32[200,8]", "1,1"),
     0},
    {"over a product", "",
     INDEX("i32", "60", "7", "45", "0") "f32[60,16]\n" SUM("f32[500,16]") ADDED("500", "16"), 1e-5},
    {"over a product, odd rows", "",
     INDEX("u8", "50", "11", "130", "0") "f32[50,7]\n" SUM("f32[90,7]") ADDED("90", "7"), 1e-5},
    {"adagrad", TABLE("f32[300,20]"),
     INDEX("i32", "1500", "7", "45", "0") "f32[1500,20]\n" SUM("f32[300,20]")
         ADAGRAD("f32[300,20]"),
     1e-5},
};
enum { NUM_CASES = sizeof cases / sizeof *cases };

static ir_module *optimised(ir_arena *a, const char *states, const char *body) {
  ir_module *m = test_module(a, states, body);
  static const pass_info list[] = {{.name = "own_outputs", .run = pass_own_outputs},
                                   {.name = "row_updates", .run = pass_row_updates},
                                   {0}};
  if (!pass_run(list, m, diag_new(a), NULL))
    test_fail("passes report errors");
  return m;
}

static const char *step_after(ir_arena *a, const char *states, const char *body) {
  const char *text = test_print(a, optimised(a, states, body));
  return strstr(text, "func f");
}

// --- what is a row update ------------------------------------------------------------------------
#define GATHERED "%i = input : i32[6]\n%u = input : f32[6,4]\n%g = scatter_add %i, %u : f32[9,4]\n"
#define MOMENTUM                                                                                   \
  "%v = read @v : f32[9,4]\n%c = const {value=0.9} : f32[9,4]\n%d = mul %v, %c : f32[9,4]\n"       \
  "%v2 = add %d, %g : f32[9,4]\nwrite @v, %v2\n%w = read @w : f32[9,4]\n"                          \
  "%y = sub %w, %v2 : f32[9,4]\nwrite @w, %y\n"
#define DECAY                                                                                      \
  "%w = read @w : f32[9,4]\n%c = const {value=0.1} : f32[9,4]\n%d = mul %w, %c : f32[9,4]\n"       \
  "%e = add %g, %d : f32[9,4]\n%y = sub %w, %e : f32[9,4]\nwrite @w, %y\n"
#define NORM                                                                                       \
  SGD("f32[9,4]", "1,1")                                                                           \
  "%q = mul %g, %g : f32[9,4]\n%n = sum %q {axes=[0,1]} : f32[1,1]\nresult output n = %n\n"
#define ELSEWHERE "%w = read @w : f32[9,4]\n%y = add %w, %g : f32[9,4]\nwrite @v, %y\n"
#define SEEN      SGD("f32[9,4]", "1,1") "result output y = %y\n"
#define NOT_ZERO                                                                                   \
  "%w = read @w : f32[9,4]\n%e = exp %g : f32[9,4]\n%y = sub %w, %e : f32[9,4]\nwrite @w, %y\n"
#define TIMES_STATE                                                                                \
  "%w = read @w : f32[9,4]\n%v = read @v : f32[9,4]\n%s = mul %g, %v : f32[9,4]\n"                 \
  "%t = tanh %s : f32[9,4]\n%y = sub %w, %t : f32[9,4]\nwrite @w, %y\n"
#define ONE_OF_TWO                                                                                 \
  "%j = input : i32[2,3]\n%x = input : f32[2,3,4]\n%h = scatter_add %j, %x : f32[9,4]\n"           \
  "%sum = add %g, %h : f32[9,4]\nresult output h = %h\n"                                           \
  "%w = read @w : f32[9,4]\n%y = sub %w, %sum : f32[9,4]\nwrite @w, %y\n"

static const struct {
  const char *what, *body;
  bool by_rows;
} forms[] = {
    {"sgd", GATHERED SGD("f32[9,4]", "1,1"), true},
    {"adagrad", GATHERED ADAGRAD("f32[9,4]"), true},
    {"the rest of the gradient of a table", GATHERED ADDED("9", "4"), true},
    {"a rest that is needed itself", GATHERED ADDED("9", "4") "result output ab = %ab\n", false},
    {"a rate for each element", GATHERED TIMES_STATE, true},
    {"momentum", GATHERED MOMENTUM, false},
    {"weight decay", GATHERED DECAY, false},
    {"a gradient whose norm is needed", GATHERED NORM, false},
    {"to another state", GATHERED ELSEWHERE, false},
    {"a result", GATHERED SEEN, false},
    {"not zero where the sum is", GATHERED NOT_ZERO, false},
    {"a sum of which a part is a result", GATHERED ONE_OF_TWO, false},
};

static void check_forms(void) {
  ir_arena *a = ir_arena_new();
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    const char *text = step_after(a, TABLE("f32[9,4]") RATE, forms[i].body);
    if ((strstr(text, "kernel") != NULL) != forms[i].by_rows)
      test_fail("%s: %s row update:\n%s", forms[i].what, forms[i].by_rows ? "no" : "a", text);
  }
  ir_arena_free(a);
}

// Several reads of one table: one list of rows, if it is no longer than the table.
static const char *three_reads(ir_arena *a, int rows) {
  return ir_format(a,
                   "%%i = input : i32[6]\n%%u = input : f32[6,4]\n"
                   "%%j = input : i32[4]\n%%x = input : f32[4,4]\n"
                   "%%k2 = input : i64[2,2]\n%%z = input : f32[2,2,4]\n"
                   "%%g0 = scatter_add %%i, %%u : f32[%d,4]\n"
                   "%%g1 = scatter_add %%j, %%x : f32[%d,4]\n"
                   "%%g2 = scatter_add %%k2, %%z : f32[%d,4]\n"
                   "%%g3 = add %%g0, %%g1 : f32[%d,4]\n%%g = add %%g2, %%g3 : f32[%d,4]\n",
                   rows, rows, rows, rows, rows);
}

static void check_several_reads(void) {
  ir_arena *a = ir_arena_new();
  const char *text = step_after(a, TABLE("f32[14,4]") RATE,
                                ir_format(a, "%s%s", three_reads(a, 14), SGD("f32[14,4]", "1,1")));
  const char *first = strstr(text, "scatter_add");
  if (!first || strstr(first + 1, "scatter_add %") || !strstr(text, "kernel"))
    test_fail("three reads do not become one row update:\n%s", text);
  text = step_after(a, TABLE("f32[13,4]") RATE,
                    ir_format(a, "%s%s", three_reads(a, 13), SGD("f32[13,4]", "1,1")));
  // Two are added to the table of the third; the state is updated by another kernel.
  int sums = 0;
  for (const char *at = text; (at = strstr(at, "= scatter_add %")); at++)
    sums++;
  if (sums != 3 || strstr(text, "kernel y"))
    test_fail("more updates than rows:\n%s", text);
  ir_arena_free(a);
}

static void check_values(const char *what, const char *states, const char *body) {
  ir_arena *a = ir_arena_new();
  const char *where = "";
  test_values x = test_run(a, optimised(a, states, body), "f", 3);
  test_values y = test_run(a, test_module(a, states, body), "f", 3);
  double d = test_difference(&x, &y, &where);
  if (!(d < 1e-12))
    test_fail("%s: %s differs by %g", what, where, d);
  ir_arena_free(a);
}

// --- what it costs -------------------------------------------------------------------------------
typedef struct spent {
  int64_t moved, temporary;
  int copies;
} spent;

static spent spent_on(int64_t rows, bool adagrad) {
  ir_arena *a = ir_arena_new();
  const char *type = ir_format(a, "f32[%lld,16]", (long long)rows);
  const char *rule =
      adagrad ? "%v = read @v : TYPE\n%q2 = mul %g, %g : TYPE\n%v2 = add %v, %q2 : TYPE\n"
                "write @v, %v2\n%z = sqrt %v2 : TYPE\n%x = div %g, %z : TYPE\n"
              : "%l = read @lr : f32[]\n%k = reshape %l : f32[1,1]\n%b = broadcast %k : TYPE\n"
                "%x = mul %b, %g : TYPE\n";
  ir_buf body = ir_buf_new(a);
  ir_buf_puts(&body, "%i = input : i32[128,4]\n%w = read @w : TYPE\n%j = reshape %i : i32[512]\n"
                     "%r = gather %w, %j : f32[512,16]\n%u = neg %r : f32[512,16]\n"
                     "%g = scatter_add %j, %u : TYPE\n");
  ir_buf_printf(&body, "%s%%y = sub %%w, %%x : TYPE\nwrite @w, %%y\n", rule);
  ir_buf text = ir_buf_new(a);
  for (const char *s = ir_buf_str(&body); *s; s++) {
    bool here = strncmp(s, "TYPE", 4) == 0;
    ir_buf_write(&text, here ? type : s, here ? strlen(type) : 1);
    s += here ? 3 : 0;
  }
  const char *states =
      ir_format(a, "state w : %s role=param\nstate v : %s role=moment%s", type, type, RATE);
  ir_module *m = test_module(a, states, ir_buf_str(&text));
  if (!pass_run_pipeline(m, diag_new(a), NULL))
    test_fail("passes report errors");
  const ir_func *f = m->funcs.at[0];
  spent s = {0};
  for (size_t i = 0; i < f->kernels.num; i++) {
    cost c = cost_kernel(a, f->kernels.at[i]);
    s.moved += c.bytes_read + c.bytes_written;
  }
  const plan *p = test_plan(m);
  ir_buf faults = ir_buf_new(a);
  if (plan_check(p, m, &faults))
    test_fail("%s", ir_buf_str(&faults));
  s.temporary = p->temp_bytes;
  s.copies = (int)p->copies.num;
  ir_arena_free(a);
  return s;
}

static void check_cost(bool adagrad) {
  spent few = spent_on(1000, adagrad), many = spent_on(1000000, adagrad);
  if (few.moved != many.moved || few.temporary != many.temporary || many.copies)
    test_fail("1000 rows: %lld bytes moved, %lld temporary; 1000000 rows: %lld, %lld; %d copies",
              (long long)few.moved, (long long)few.temporary, (long long)many.moved,
              (long long)many.temporary, many.copies);
  if (many.moved > 12 * 512 * 16 * 4)
    test_fail("%lld bytes are moved for 512 rows", (long long)many.moved);
}

// A table that is its own update has to be whole while it is read.
static void check_reads_itself(void) {
  ir_arena *a = ir_arena_new();
  const char *body = "%i = input : i32[9]\n%w = read @w : f32[9,4]\n"
                     "%g = scatter_add %i, %w : f32[9,4]\n%y = sub %w, %g : f32[9,4]\n"
                     "write @w, %y\n";
  ir_module *m = test_module(a, TABLE("f32[9,4]"), body);
  if (!pass_run_pipeline(m, diag_new(a), NULL) || !strstr(test_print(a, m), "anchor=%g"))
    test_fail("no row update:\n%s", test_print(a, m));
  const plan *p = test_plan(m);
  ir_buf faults = ir_buf_new(a);
  if (p->copies.num != 1 || plan_check(p, m, &faults))
    test_fail("%zu copies\n%s", p->copies.num, ir_buf_str(&faults));
  ir_arena_free(a);
}

// One table: rows are added to the product where it lies.
static void check_over_product(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = test_module(a, "", GATHERED ADDED("9", "4"));
  if (!pass_run_pipeline(m, diag_new(a), NULL))
    test_fail("passes report errors");
  const plan *p = test_plan(m);
  ir_buf faults = ir_buf_new(a);
  bool over = false;
  for (size_t i = 0; i < p->buffers.num; i++)
    over |= p->buffers.at[i].reuses >= 0 && !strcmp(p->buffers.at[i].name, "d");
  if (!over || plan_check(p, m, &faults))
    test_fail("the sum is not over the product\n%s", ir_buf_str(&faults));
  ir_arena_free(a);
}

int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  const char *only = argc > 2 ? argv[2] : NULL;
  ir_arena *a = ir_arena_new();
  check_forms();
  check_several_reads();
  check_values("three reads", TABLE("f32[14,4]") RATE,
               ir_format(a, "%s%s", three_reads(a, 14), SGD("f32[14,4]", "1,1")));
  check_cost(false);
  check_cost(true);
  check_reads_itself();
  check_over_product();
  for (const cg_target *t = test_targets(); t->name; t++)
    test_run_cases(cases, NUM_CASES, t, only, show && t == test_targets());
  test_run_cases(cases, NUM_CASES, cg_target_find(a, "cuda:sm_80"), only, show);
  ir_arena_free(a);
  return test_report("row_updates");
}
