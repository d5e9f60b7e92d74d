// test_integer_operands.c: products that read integers where they lie (passes/integer_operands.c), for every
// instruction set of this machine, against the oracle: either operand, turned or not, small and in pieces of k,
// with tails of everything; and where the pass must leave the cast alone.
#include <string.h>

#include "passes/pass.h"
#include "tests/unit/support_kernels.h"
#include "tests/unit/support_passes.h"

typedef struct integer_case {
  const char *type;
  int m, n, k;
  bool turned_a, turned_b;
  bool is_b; // the other operand is f32
  bool kept; // a buffer, of whose zeros nothing is expected, and no input
} integer_case;

static const integer_case cases[] = {
    {"u8", 37, 19, 45, false, false, false, false},
    {"i8", 37, 19, 45, true, false, false, false},
    {"u16", 20, 33, 70, false, true, true, false},
    {"bool", 64, 16, 64, true, true, false, false},
    {"bool", 21, 40, 50, false, false, true, false},
    {"i8", 5, 100, 30, false, false, true, false},
    {"u8", 1, 37, 90, false, false, false, false},
    {"u8", 90, 1, 37, true, false, false, false}, // along its rows it is no matmul (thin_products)
    // packed by lists, or by pieces of k: a longer than half of a second cache
    {"u8", 517, 16, 301, false, false, false, false},
    {"u8", 300, 16, 517, true, false, false, false},
    {"u8", 517, 16, 301, false, false, false, true},
    {"u8", 300, 16, 517, true, false, false, true},
    {"bool", 413, 7, 397, false, false, false, false},
    {"i8", 397, 50, 419, true, false, false, false},
    {"u16", 16, 480, 300, false, true, true, false},
    {"u8", 480, 70, 512, false, false, false, false},
};

static ir_module *product(ir_arena *a, const integer_case *c) {
  const char *dims_a =
      c->turned_a ? ir_format(a, "[%d,%d]", c->k, c->m) : ir_format(a, "[%d,%d]", c->m, c->k);
  const char *dims_b =
      c->turned_b ? ir_format(a, "[%d,%d]", c->n, c->k) : ir_format(a, "[%d,%d]", c->k, c->n);
  const char *dims = c->is_b ? dims_b : dims_a;
  const char *state = ir_format(a, "state x : %s%s role=buffer\n", c->type, dims);
  const char *body = ir_format(
      a,
      "%%x = %s : %s%s\n%%f = cast %%x : f32%s\n%%w = input : f32%s\n%%t = input : f32[%d,%d]\n"
      "%%y = matmul %s, %s {ta=%s, tb=%s} : f32[%d,%d]\n%%z = add %%y, %%t : f32[%d,%d]\n"
      "result output z = %%z\n",
      c->kept ? "read @x" : "input", c->type, dims, dims, c->is_b ? dims_a : dims_b, c->m, c->n,
      c->is_b ? "%w" : "%f", c->is_b ? "%f" : "%w", c->turned_a ? "true" : "false",
      c->turned_b ? "true" : "false", c->m, c->n, c->m, c->n);
  return test_module(a, c->kept ? state : NULL, body);
}

static int count_casts(const ir_func *f) {
  int num = 0;
  for (size_t i = 0; i < f->nodes.num; i++)
    num += f->nodes.at[i]->op == IR_CAST && f->nodes.at[i]->kernel;
  return num;
}

static void add_products(test_suite *s, ir_arena *a, const cg_target *target) {
  pass_options o = {.families = cg_families(target), .processor = true};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const integer_case *c = &cases[i];
    const char *what =
        ir_format(a, "%s %s %dx%dx%d%s%s, %s", c->kept ? "kept" : "input", c->type, c->m, c->n,
                  c->k, c->turned_a ? " ta" : "", c->turned_b ? " tb" : "", c->is_b ? "b" : "a");
    ir_module *m = product(a, c);
    if (!pass_run_pipeline(m, diag_new(a), &o) || test_suite_add(s, what, m, "f", 2e-6, 7) == 0)
      test_fail("%s: no kernels", what);
    else if (count_casts(ir_find_func(m, "f")) != 0)
      test_fail("%s: the cast has a kernel", what);
  }
}

#define HEAD "%x = input : u8[24,40]\n%f = cast %x : f32[24,40]\n%w = input : f32[40,8]\n"
static const struct {
  const char *what, *body;
  int casts; // that stay
} sites[] = {
    {"two products",
     HEAD "%y = matmul %f, %w {ta=false, tb=false} : f32[24,8]\n"
          "%z = matmul %f, %y {ta=true, tb=false} : f32[40,8]\nresult output z = %z\n",
     0},
    {"another use",
     HEAD "%y = matmul %f, %w {ta=false, tb=false} : f32[24,8]\n"
          "%e = exp %f : f32[24,40]\nresult output y = %y\nresult output e = %e\n",
     1},
    {"a result",
     HEAD "%y = matmul %f, %w {ta=false, tb=false} : f32[24,8]\n"
          "result output y = %y\nresult output f = %f\n",
     1},
    {"32 bits",
     "%x = input : i32[24,40]\n%f = cast %x : f32[24,40]\n%w = input : f32[40,8]\n"
     "%y = matmul %f, %w {ta=false, tb=false} : f32[24,8]\nresult output y = %y\n",
     1},
    {"through views",
     HEAD "%p = reshape %f : f32[24,5,8]\n%q = transpose %p {perm=[1,0,2]} : f32[5,24,8]\n"
          "%v = input : f32[5,8,9]\n%y = matmul %q, %v {ta=false, tb=false} : f32[5,24,9]\n"
          "result output y = %y\n",
     0},
    {"integers times integers",
     HEAD "%i = input : i8[40,8]\n%g = cast %i : f32[40,8]\n"
          "%y = matmul %f, %g {ta=false, tb=false} : f32[24,8]\n"
          "%u = add %w, %g : f32[40,8]\nresult output y = %y\nresult output u = %u\n",
     2}, // of %g: for the sum, and its f32 for the product
};

static void add_sites(test_suite *s, ir_arena *a, const cg_target *target) {
  pass_options o = {.families = cg_families(target), .processor = true};
  for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
    ir_module *m = test_module(a, NULL, sites[i].body);
    if (!pass_run_pipeline(m, diag_new(a), &o) ||
        test_suite_add(s, sites[i].what, m, "f", 2e-6, 7) == 0)
      test_fail("%s: no kernels", sites[i].what);
    int casts = count_casts(ir_find_func(m, "f"));
    if (casts > sites[i].casts || (casts == 0) != (sites[i].casts == 0))
      test_fail("%s: %d casts have kernels, not %d", sites[i].what, casts, sites[i].casts);
  }
}

int main(int argc, char **argv) {
  (void)argv;
  ir_arena *a = ir_arena_new();
  bool pieces = false, lists = false;
  for (const cg_target *t = test_targets(); t->name; t++) {
    test_suite *s = test_suite_new(a, t, ~0u);
    add_products(s, a, t);
    add_sites(s, a, t);
    const char *text = test_suite_run(s);
    pieces |= strstr(text, "a piece of k at a time") != NULL;
    lists |= strstr(text, "packed by lists") != NULL;
    if (argc > 1 && t == test_targets())
      puts(text);
  }
  if (!pieces || !lists)
    test_fail("the products no longer reach those that are packed by %s",
              pieces ? "lists" : "pieces of k");
  ir_arena_free(a);
  return test_report("integer_operands");
}
