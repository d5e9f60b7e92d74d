// test_experts.c: std/experts.graph against the same mixture worked out by other means. A graph is
// compiled twice: with the standard block, and with one of its own in its place that sends all
// tokens through all experts, ranks them by comparing all pairs, and multiplies by zero what was
// not chosen or found no place. Parameters have the same names, so both start alike; results and
// parameters after some steps must agree in double precision, whatever is dropped. Gradients also
// agree with forward mode and finite differences, and the balance loss is what it must be where that is known.
#include "passes/pass.h"
#include "support_frontend.h"
#include "support_passes.h"
#include "support_slopes.h"

#include <math.h>
#include <string.h>

static const char dense[] =
    "block experts(x: f[..., c], n, m, k=2, capacity=1.25, renormalise=k > 1, gated=false,\n"
    "              bias=true) {\n"
    "  param router: f[c, n] = uniform(1 / sqrt(c))\n"
    "  tokens = reshape(x, [-1, c])\n"
    "  t = shape(tokens)[0]\n"
    "  logits = tokens @ router\n"
    "  p = softmax(logits)\n"
    "  a = reshape(p, [t, n, 1])\n"
    "  b = reshape(p, [t, 1, n])\n"
    "  e = iota([t, n, n], axis=1)\n"
    "  f = iota([t, n, n], axis=2)\n"
    "  rank = sum(b > a or (b == a and f < e), axis=2)\n"
    "  gate = where(rank < k, p, 0)\n"
    "  if renormalise { gate = gate / sum(gate, axis=1, keep=true) }\n"
    "  mine = reshape(rank, [t, 1, n])\n"
    "  other = reshape(rank, [1, t, n])\n"
    "  sooner = iota([t, t, n], axis=1) < iota([t, t, n], axis=0)\n"
    "  before = sum(other < mine or (other == mine and sooner), axis=1)\n"
    "  weight = where(before < -floor(-(capacity * k * t / n)), gate, 0)\n"
    "  made = expert_layers(broadcast(tokens, [n, t, c]), m, gated, bias, none) as each\n"
    "  y = sum(reshape(weight^T, [n, t, 1]) * made, axis=0)\n"
    "  balance = n * sum(mean(rank < k, axis=0) / k * mean(p, axis=0))\n"
    "  return reshape(y, shape(x)), balance, mean(log(sum(exp(logits), axis=1)) ** 2)\n"
    "}\n";

static const char model[] = "model m(x: f32[%s]) {\n"
                            "  y, balance, z = experts(x, %s)\n"
                            "  output y = y\n"
                            "  metric balance = balance\n"
                            "  metric z = z\n"
                            "  loss mean(linear(y, 2) ** 2) + 0.3 * balance + 0.1 * z\n"
                            "}\n"
                            "optim { sgd(1) }\n";

typedef struct mixture {
  const char *shape, *options;
} mixture;

static const mixture mixtures[] = {
    {"2,9,4", "4, 5"},                          // capacity 1.25: some are dropped
    {"3,7,4", "5, 3, k=1, capacity=1"},         // 21 tokens, 5 experts
    {"3,7,4", "5, 3, k=1, renormalise=true"},   // the router learns by the other losses only
    {"2,9,3", "3, 4, k=3, capacity=0.6"},       // everyone chooses all experts
    {"2,9,3", "6, 4, k=2, capacity=6"},         // room for all tokens
    {"19,3", "7, 4, k=3, renormalise=false"},   //
    {"2,2,10,3", "2, 3, k=2, capacity=0.05"},   // two places each
    {"2,20,4", "3, 4, gated=true"},             //
    {"2,20,4", "3, 4, gated=true, bias=false"}, //
    {"1,3,4", "8, 2, k=1, capacity=0.5"},       // a part of a place, rounded up
    {"1,1,4", "1, 2, k=1, capacity=1.1"},       //
    {"150,3", "9, 2, k=2, capacity=0.9"},       // 300 choices: sums in three stages
};
enum { MIXTURES = sizeof mixtures / sizeof *mixtures, STEPS = 3 };

static ir_module *compiled(ir_arena *a, const mixture *x, bool own) {
  const char *text = ir_format(a, model, x->shape, x->options);
  ir_module *m = support_graph(a, own ? ir_format(a, "%s%s", dense, text) : text);
  pass_autodiff(m, diag_new(a));
  return m;
}

static ir_tensor_value random_input(ir_arena *a, const ir_func *f, uint64_t seed) {
  return test_random_tensor(a, f->nodes.at[0]->type, &seed);
}

static const ir_node *result_of(const ir_func *f, const char *name) {
  for (size_t i = 0; i < f->results.num; i++)
    if (strcmp(f->results.at[i].name, name) == 0)
      return f->results.at[i].node;
  CHECK(false, "no result '%s'", name);
  return f->results.at[0].node;
}

static ir_tensor_value run(ir_arena *a, ir_world *w, const char *func, uint64_t seed,
                           const char *result) {
  const ir_func *f = support_func(w->module, func);
  ir_tensor_value x = random_input(a, f, seed);
  return ir_interp(w, f, &x)[result_of(f, result)->id];
}

// --- against the dense one -----------------------------------------------------------------------
static void compare_states(const ir_world *x, const ir_world *y, const char *what) {
  for (size_t i = 0; i < x->module->states.num; i++) {
    const char *name = x->module->states.at[i]->name;
    const ir_state *other = ir_find_state(y->module, name);
    if (CHECK(other, "%s: no '%s' in the dense one", what, name)) {
      double apart = support_distance(&x->states[i], &y->states[other->id]);
      CHECK(apart < 1e-12, "%s: '%s' is %g apart", what, name, apart);
    }
  }
}

static void compare_results(ir_arena *a, ir_world *x, ir_world *y, const char *what) {
  static const struct {
    const char *func, *result;
  } results[] = {{"eval", "loss"}, {"eval", "balance"}, {"eval", "z"}, {"predict", "y"}};
  for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
    const char *func = results[i].func, *result = results[i].result;
    ir_tensor_value one = run(a, x, func, 77, result), two = run(a, y, func, 77, result);
    double apart = support_distance(&one, &two);
    CHECK(apart < 1e-12, "%s: %s is %g apart", what, result, apart);
  }
}

static void check_dense(const mixture *x) {
  ir_arena *a = ir_arena_new();
  ir_world *sparse = support_world(a, compiled(a, x, false));
  ir_world *all = support_world(a, compiled(a, x, true));
  CHECK(sparse->module->states.num == all->module->states.num, "%s: other states", x->options);
  compare_results(a, sparse, all, x->options);
  for (uint64_t step = 0; step < STEPS; step++) {
    run(a, sparse, "step", step, "loss");
    run(a, all, "step", step, "loss");
  }
  compare_states(sparse, all, x->options);
  compare_results(a, sparse, all, x->options);
  ir_arena_free(a);
}

// --- gradients against forward mode --------------------------------------------------------------
static void check_slopes(const mixture *x) {
  ir_arena *a = ir_arena_new();
  support_check_slopes(a, compiled(a, x, false), 5, x->options);
  ir_arena_free(a);
}

// --- the balance loss ----------------------------------------------------------------------------
// Token i is row i % 4 of the unit matrix, and its logits are row i % 4 of `router`.
static double balance_of(const char *k, bool one_token, const double *router) {
  ir_arena *a = ir_arena_new();
  const char *text = ir_format(a, model, "8,4", ir_format(a, "4, 2, k=%s, renormalise=false", k));
  ir_world *w = support_world(a, support_graph(a, text));
  const ir_func *f = support_func(w->module, "eval");
  memcpy(w->states[ir_find_state(w->module, "experts.router")->id].at, router, 16 * sizeof *router);
  ir_tensor_value x = random_input(a, f, 0);
  for (int i = 0; i < 32; i++)
    x.at[i] = i % 4 == (one_token ? 0 : i / 4 % 4);
  double found = ir_interp(w, f, &x)[result_of(f, "balance")->id].at[0];
  ir_arena_free(a);
  return found;
}

static void check_balance(void) {
  static const double own[] = {9, 0, 0, 0, 0, 9, 0, 0, 0, 0, 9, 0, 0, 0, 0, 9};
  static const double two[] = {9, 8, 0, 0, 0, 9, 8, 0, 0, 0, 9, 8, 8, 0, 0, 9};
  static const double far[] = {99, 0, 0, 0, 0, 99, 0, 0, 0, 0, 99, 0, 0, 0, 0, 99};
  CHECK(fabs(balance_of("1", false, own) - 1) < 1e-12, "equal shares");
  CHECK(fabs(balance_of("2", false, two) - 1) < 1e-12, "equal shares of two choices");
  CHECK(fabs(balance_of("1", true, far) - 4) < 1e-12, "one expert gets all");
  CHECK(fabs(balance_of("2", true, far) - 2) < 1e-12,
        "half of the choices, all of the probability");
}

int main(void) {
  for (int i = 0; i < MIXTURES; i++) {
    check_dense(&mixtures[i]);
    check_slopes(&mixtures[i]);
  }
  check_balance();
  return support_finish("experts");
}
