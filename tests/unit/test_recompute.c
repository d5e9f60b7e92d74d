// test_recompute.c: pass_recompute moves no more bytes than were moved before it, leaves IR that
// verifies whether its moves fit or not, changes no value, and takes time in proportion to depth.
#include "passes/cost.h"
#include "support_frontend.h"
#include "support_passes.h"

#include <string.h>

static int64_t bytes_moved(ir_arena *a, const ir_module *m) {
  int64_t bytes = 0;
  for (size_t i = 0; i < m->funcs.num; i++)
    for (size_t k = 0; k < m->funcs.at[i]->kernels.num; k++) {
      cost c = cost_kernel(a, m->funcs.at[i]->kernels.at[k]);
      bytes += c.bytes_read + c.bytes_written;
    }
  return bytes;
}

static ir_module *optimized(ir_arena *a, const ir_module *m, bool recompute) {
  static const char *const off[] = {"recompute"};
  pass_options o = {.disabled = off, .num_disabled = recompute ? 0 : 1};
  ir_module *copy = ir_clone(m);
  CHECK(pass_run_pipeline(copy, diag_new(a), &o), "the passes report errors");
  return copy;
}

static void check_module(ir_arena *a, const ir_module *m, const char *what) {
  ir_module *with = optimized(a, m, true), *without = optimized(a, m, false);
  support_verifies(with, what);
  int64_t more = bytes_moved(a, with), less = bytes_moved(a, without);
  CHECK(more <= less, "%s: %lld bytes moved, %lld without the pass", what, (long long)more,
        (long long)less);
  const char *where = "";
  test_values x = test_run(a, with, "step", 7), y = test_run(a, without, "step", 7);
  double d = test_difference(&x, &y, &where);
  CHECK(d < 1e-9, "%s: %s differs by %g", what, where, d);
}

static ir_module *residual(ir_arena *a, int layers) {
  return support_graph(a, ir_format(a,
                                    "block layer(x: f[b,d]) -> f[b,d] {\n"
                                    "  return x + linear(tanh(linear(rmsnorm(x), d)), d)\n"
                                    "}\n"
                                    "model m(x: f32[48,32], y: f32[48,32]) {\n"
                                    "  repeat i in %d { x = layer(x) }\n"
                                    "  loss mse(rmsnorm(x), y)\n"
                                    "}\n"
                                    "data { train = npy(\"x.npy\", \"y.npy\") }\n"
                                    "optim { sgd(0.1) }\n"
                                    "train { steps = 1 }\n",
                                    layers));
}

// A stack of layers: no value is the sum of all layers before it.
static void check_depth(int layers) {
  ir_arena *a = ir_arena_new();
  check_module(a, residual(a, layers), ir_format(a, "%d layers", layers));
  ir_arena_free(a);
}

static int64_t bytes_of_depth(int layers) {
  ir_arena *a = ir_arena_new();
  int64_t bytes = bytes_moved(a, optimized(a, residual(a, layers), true));
  ir_arena_free(a);
  return bytes;
}

static void check_random(uint64_t seed) {
  ir_arena *a = ir_arena_new();
  ir_random_options o = {
      .seed = seed, .num_nodes = 60, .differentiable = true, .networks = seed % 2 == 0};
  check_module(a, ir_random_module(a, o), ir_format(a, "random module %d", (int)seed));
  ir_arena_free(a);
}

// VERSIONS values computed from %h, all read by one kernel of LENGTH members: too many to compute
// them all there. What does not fit stays as it was, and nothing of the attempt is left.
static void check_moves_that_fail(void) {
  enum { VERSIONS = 14, LENGTH = 56 };
  ir_arena *a = ir_arena_new();
  ir_buf b = ir_buf_new(a);
  ir_buf_puts(&b, "mltc-ir 1\nmodule m\nstate w : f32[64,64] role=param\nfunc step {\n"
                  "  %x = input : f32[64,64]\n  %w = read @w : f32[64,64]\n"
                  "  %h = matmul %x, %w {ta=false, tb=false} : f32[64,64]\n"
                  "  %z = matmul %h, %w {ta=false, tb=false} : f32[64,64]\n"
                  "  %g.0 = matmul %z, %w {ta=false, tb=true} : f32[64,64]\n");
  for (int i = 0; i < VERSIONS; i++)
    ir_buf_printf(
        &b,
        "  %%c.%d = const {value=%d.5} : f32[64,64]\n"
        "  %%p.%d = mul %%h, %%c.%d : f32[64,64]\n  %%q.%d = abs %%p.%d : f32[64,64]\n"
        "  %%r.%d = add %%q.%d, %%c.%d : f32[64,64]\n  %%s.%d = sqrt %%r.%d : f32[64,64]\n",
        i, i + 2, i, i, i, i, i, i, i, i, i);
  for (int i = 0; i < LENGTH; i++)
    ir_buf_printf(&b, "  %%g.%d = %s %%g.%d, %%s.%d : f32[64,64]\n", i + 1, i % 2 ? "add" : "mul",
                  i, i % VERSIONS);
  ir_buf_printf(&b, "  result output g = %%g.%d\n}\n", LENGTH);
  ir_module *m = support_module(a, ir_buf_str(&b));
  CHECK(pass_run_pipeline(m, diag_new(a), NULL), "the passes report errors");
  support_verifies(m, "moves that do not fit");
  const char *reader = strstr(support_text(a, m), "anchor=%g.0 {");
  CHECK(reader && strstr(reader, " = sqrt "), "nothing was moved");
  CHECK(reader && !strstr(reader, " sqrt %r.0 "), "all was moved");
  ir_arena_free(a);
}

int main(void) {
  check_moves_that_fail();
  check_depth(1);
  check_depth(6);
  check_depth(30);
  int64_t ten = bytes_of_depth(10), twenty = bytes_of_depth(20);
  CHECK(twenty < ten * 21 / 10, "20 layers move %lld bytes, 10 layers %lld", (long long)twenty,
        (long long)ten);
  for (uint64_t seed = 1; seed <= 40; seed++)
    check_random(seed);
  return support_finish("recompute");
}
