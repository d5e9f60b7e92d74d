// test_plain_step.c: which calls and taps `check` gets for finite differences.
//
// With a number as argument it prints a random module instead: tests/scripts/gradients.sh compiles
// some and runs their `check`.
#include "codegen/plain_step.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/random/random_graph.h"
#include "tests/support_campaign.h"
#include "tests/unit/support_passes.h"

static ir_module *random_module(ir_arena *a, uint64_t seed) {
  ir_random_options o = {.seed = seed, .num_nodes = 10 + (int)(seed % 4) * 8};
  o.differentiable = true;
  o.networks = seed % 2;
  return ir_random_module(a, o);
}

static cg_program *schedule(ir_arena *a, ir_module *m) {
  if (!pass_run_pipeline(m, diag_new(a), NULL))
    test_fail("passes failed");
  cg_program *p = cg_program_new(a, m, cg_target_find(a, "cpu:x86-64-v3"));
  cg_share(p);
  return p;
}

static size_t count_taps(const cg_plain_step *s, const char *param) {
  size_t n = 0;
  for (size_t i = 0; s && i < s->calls.num; i++)
    for (size_t k = 0; k < s->calls.at[i].taps.num; k++) {
      const cg_tap *t = &s->calls.at[i].taps.at[k];
      n += param ? t->param && !strcmp(t->param->name, param) : !t->param;
    }
  return n;
}

static size_t count_calls(const cg_plain_step *s, bool for_loss) {
  size_t n = 0;
  for (size_t i = 0; s && i < s->calls.num; i++)
    n += for_loss ? s->calls.at[i].for_loss : s->calls.at[i].needed;
  return n;
}

static void expect(const char *what, size_t got, size_t want) {
  if (got != want)
    test_fail("%s: %zu, not %zu", what, got, want);
}

// A gradient inside the kernel of its optimiser, one that is a view, one that is a constant; a
// comparison to hold; an optimiser's kernel and a metric that are not needed.
static const char SMALL[] = "mltc-ir 1\nmodule m\n"
                            "state w : f32[4,8] role=param\n"
                            "state b : f32[8] role=param\n"
                            "state c : f32[8] role=param\n"
                            "state m : f32[4,8] role=moment\n"
                            "func step {\n"
                            "  %x = input : f32[16,4]\n"
                            "  %w = read @w : f32[4,8]\n"
                            "  %b = read @b : f32[8]\n"
                            "  %c = read @c : f32[8]\n"
                            "  %m = read @m : f32[4,8]\n"
                            "  %y = matmul %x, %w {ta=false, tb=false} : f32[16,8]\n"
                            "  %b.row = reshape %b : f32[1,8]\n"
                            "  %b.wide = broadcast %b.row : f32[16,8]\n"
                            "  %z = add %y, %b.wide : f32[16,8]\n"
                            "  %zero = const {value=0.0} : f32[16,8]\n"
                            "  %on = gt %z, %zero : bool[16,8]\n"
                            "  %r = select %on, %z, %zero : f32[16,8]\n"
                            "  %s = sum %r {axes=[0,1]} : f32[1,1]\n"
                            "  %t = reshape %s : f32[]\n"
                            "  %c.sum = sum %c {axes=[0]} : f32[1]\n"
                            "  %c.one = reshape %c.sum : f32[]\n"
                            "  %loss = add %t, %c.one : f32[]\n"
                            "  %d.w = grad %loss, %w : f32[4,8]\n"
                            "  %d.b = grad %loss, %b : f32[8]\n"
                            "  %d.c = grad %loss, %c : f32[8]\n"
                            "  %half = const {value=0.5} : f32[4,8]\n"
                            "  %m.old = mul %half, %m : f32[4,8]\n"
                            "  %m.new = add %m.old, %d.w : f32[4,8]\n"
                            "  %w.new = sub %w, %m.new : f32[4,8]\n"
                            "  %b.new = sub %b, %d.b : f32[8]\n"
                            "  %c.old = mul %c, %c : f32[8]\n"
                            "  %c.new = sub %c.old, %d.c : f32[8]\n"
                            "  %big = reduce_max %x {axes=[0,1]} : f32[1,1]\n"
                            "  %metric = reshape %big : f32[]\n"
                            "  write @w, %w.new\n"
                            "  write @m, %m.new\n"
                            "  write @b, %b.new\n"
                            "  write @c, %c.new\n"
                            "  result loss loss = %loss\n"
                            "  result metric big = %metric\n"
                            "}\n";

static void test_small(void) {
  ir_arena *a = ir_arena_new();
  cg_program *p = schedule(a, test_parse(a, SMALL));
  cg_plain_step *s = cg_plain_step_new(p);
  expect("gradients of w", count_taps(s, "w"), 1);
  expect("gradients of b", count_taps(s, "b"), 1);
  expect("gradients of c", count_taps(s, "c"), 1);
  if (count_taps(s, NULL) == 0)
    test_fail("the comparison is not held");
  if (count_calls(s, false) >= s->func->kernels.num + 1)
    test_fail("the metric's kernel is called");
  ir_buf text = ir_buf_new(a);
  cg_plain_emit_all(p, s, &text);
  for (size_t i = 0; i < p->distinct.num; i++)
    if (!p->distinct.at[i]->plain)
      test_fail("kernel %s has no plain version", p->distinct.at[i]->name);
  ir_arena_free(a);
}

// Names are looked for on the way back from the update: an adjoint of a node w.2 has the name that
// a copy of d.w might have, and lies behind d.w.
static void test_name_of_copy(void) {
  static const char text[] = "mltc-ir 1\nmodule m\n"
                             "state w : f32[8] role=param\n"
                             "func step {\n"
                             "  %w = read @w : f32[8]\n"
                             "  %w.2 = mul %w, %w : f32[8]\n"
                             "  %e = exp %w.2 : f32[8]\n"
                             "  %s = sum %e {axes=[0]} : f32[1]\n"
                             "  %loss = reshape %s : f32[]\n"
                             "  %d.w = grad %loss, %w : f32[8]\n"
                             "  %n = sub %w, %d.w : f32[8]\n"
                             "  write @w, %n\n"
                             "  result loss loss = %loss\n"
                             "}\n";
  ir_arena *a = ir_arena_new();
  cg_plain_step *s = cg_plain_step_new(schedule(a, test_parse(a, text)));
  expect("gradients of w", count_taps(s, "w"), 1);
  for (size_t i = 0; s && i < s->calls.num; i++)
    for (size_t k = 0; k < s->calls.at[i].taps.num; k++)
      if (s->calls.at[i].taps.at[k].param && strcmp(s->calls.at[i].taps.at[k].node->name, "d.w"))
        test_fail("%s is taken for the gradient", s->calls.at[i].taps.at[k].node->name);
  ir_arena_free(a);
}

// Two parameters that are added to one tensor have one gradient, and its node one name.
static void test_shared(void) {
  static const char text[] = "mltc-ir 1\nmodule m\n"
                             "state v : f32[8] role=param\n"
                             "state w : f32[8] role=param\n"
                             "func step {\n"
                             "  %v = read @v : f32[8]\n"
                             "  %w = read @w : f32[8]\n"
                             "  %x = add %v, %w : f32[8]\n"
                             "  %e = exp %x : f32[8]\n"
                             "  %q = mul %e, %x : f32[8]\n"
                             "  %s = sum %q {axes=[0]} : f32[1]\n"
                             "  %loss = reshape %s : f32[]\n"
                             "  %d.v = grad %loss, %v : f32[8]\n"
                             "  %d.w = grad %loss, %w : f32[8]\n"
                             "  %v.new = sub %v, %d.v : f32[8]\n"
                             "  %w.new = sub %w, %d.w : f32[8]\n"
                             "  write @v, %v.new\n"
                             "  write @w, %w.new\n"
                             "  result loss loss = %loss\n"
                             "}\n";
  ir_arena *a = ir_arena_new();
  cg_plain_step *s = cg_plain_step_new(schedule(a, test_parse(a, text)));
  size_t guesses = 0;
  expect("gradients of v", count_taps(s, "v"), 1);
  expect("gradients of w", count_taps(s, "w"), 1);
  for (size_t i = 0; s && i < s->calls.num; i++)
    for (size_t k = 0; k < s->calls.at[i].taps.num; k++)
      guesses += s->calls.at[i].taps.at[k].guess;
  expect("guesses", guesses, 1);
  ir_arena_free(a);
}

// `num` vectors whose gradients are sums, so that no kernel computes them again, and clipped by the norm of all of them, which
// is a chain of sums.
static ir_module *clipped(ir_arena *a, int num) {
  ir_buf b = ir_buf_new(a);
  ir_buf_puts(&b, "mltc-ir 1\nmodule m\n");
  for (int i = 0; i < num; i++)
    ir_buf_printf(&b, "state w%d : f32[8,1] role=param\n", i);
  ir_buf_puts(&b, "func step {\n  %x = input : f32[8,2]\n  %s.0 = const {value=0.0} : f32[1,1]\n");
  for (int i = 0; i < num; i++)
    ir_buf_printf(&b,
                  "  %%w%d = read @w%d : f32[8,1]\n  %%b%d = broadcast %%w%d : f32[8,2]\n"
                  "  %%m%d = mul %%b%d, %%x : f32[8,2]\n  %%t%d = sin %%m%d : f32[8,2]\n"
                  "  %%d.w%d = sum %%t%d {axes=[1]} : f32[8,1]\n"
                  "  %%q%d = mul %%d.w%d, %%d.w%d : f32[8,1]\n"
                  "  %%r%d = sum %%q%d {axes=[0]} : f32[1,1]\n"
                  "  %%s.%d = add %%s.%d, %%r%d : f32[1,1]\n",
                  i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1, i, i);
  ir_buf_printf(&b, "  %%scale = rsqrt %%s.%d : f32[1,1]\n  %%loss = reshape %%scale : f32[]\n",
                num);
  ir_buf_puts(&b, "  %wide = broadcast %scale : f32[8,1]\n");
  for (int i = 0; i < num; i++)
    ir_buf_printf(&b,
                  "  %%g%d = mul %%wide, %%d.w%d : f32[8,1]\n"
                  "  %%n%d = sub %%w%d, %%g%d : f32[8,1]\n  write @w%d, %%n%d\n",
                  i, i, i, i, i, i, i);
  ir_buf_puts(&b, "  result loss loss = %loss\n}\n");
  return test_parse(a, ir_buf_str(&b));
}

// A walk through the norm for each parameter took seconds. Milliseconds, with room for slow machines.
static void test_clipped(void) {
  enum { NUM = 3000 };
  ir_arena *a = ir_arena_new();
  cg_program *p = schedule(a, clipped(a, NUM));
  clock_t begin = clock();
  cg_plain_step *s = cg_plain_step_new(p);
  double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
  printf("gradients of %d parameters in %.3f s\n", NUM, seconds);
  if (seconds > 0.4)
    test_fail("gradients of %d parameters take %.1f s", NUM, seconds);
  size_t taps = 0;
  for (size_t i = 0; s && i < s->calls.num; i++)
    for (size_t k = 0; k < s->calls.at[i].taps.num; k++)
      taps += s->calls.at[i].taps.at[k].param && !s->calls.at[i].taps.at[k].guess;
  expect("gradients", taps, NUM);
  ir_arena_free(a);
}

// Of random graphs nearly every parameter must be found: two that have one gradient share a name.
static void test_random_graphs(void) {
  size_t params = 0, found = 0;
  for (uint64_t seed = 1; seed <= (uint64_t)test_part(200); seed++) {
    ir_arena *a = ir_arena_new();
    ir_module *m = random_module(a, seed);
    cg_plain_step *s = cg_plain_step_new(schedule(a, m));
    for (size_t i = 0; s && i < m->states.num; i++)
      if (m->states.at[i]->role == IR_ROLE_PARAM) {
        params++;
        found += count_taps(s, m->states.at[i]->name) > 0;
      }
    ir_arena_free(a);
  }
  printf("%zu of %zu parameters of random graphs have a gradient of their name\n", found, params);
  if (found * 100 < params * 90)
    test_fail("too few gradients are found");
}

int main(int argc, char **argv) {
  if (argc > 1) {
    ir_arena *a = ir_arena_new();
    printf("%s", test_print(a, random_module(a, strtoull(argv[1], NULL, 10))));
    ir_arena_free(a);
    return 0;
  }
  test_small();
  test_name_of_copy();
  test_shared();
  test_clipped();
  test_random_graphs();
  return test_report("plain_step");
}
