// test_ir_random.c: random modules are valid, print and read back to the same text, survive
// cloning and rewriting, and have finite values.
#include "ir/signs.h"
#include "tests/unit/support_ir.h"

#include <math.h>
#include <string.h>

static ir_module *make(ir_arena *a, uint64_t seed) {
  ir_random_options o = {.seed = seed,
                         .num_nodes = 40 + (int)(seed % 5) * 40,
                         .differentiable = seed % 2 != 0,
                         .networks = seed % 4 >= 2};
  return ir_random_module(a, o);
}

static void check_round_trip(ir_arena *a, const ir_module *m, uint64_t seed) {
  const char *text = support_text(a, m), *why;
  ir_module *again = support_parse(a, text, &why);
  if (CHECK(again, "seed %llu: %s", (unsigned long long)seed, why))
    CHECK(strcmp(support_text(a, again), text) == 0, "seed %llu prints differently",
          (unsigned long long)seed);
}

static void check_clone(ir_arena *a, const ir_module *m, uint64_t seed) {
  ir_module *copy = ir_clone(m);
  support_verifies(copy, "clone");
  CHECK(strcmp(support_text(a, copy), support_text(a, m)) == 0, "clone of seed %llu differs",
        (unsigned long long)seed);
  CHECK(copy->states.at[0] != m->states.at[0] && copy->funcs.at[0] != m->funcs.at[0],
        "a clone shares nothing that changes");
}

static void check_same_again(ir_arena *a, const ir_module *m, uint64_t seed) {
  CHECK(strcmp(support_text(a, make(a, seed)), support_text(a, m)) == 0,
        "seed %llu gives two modules", (unsigned long long)seed);
}

// -1e9 stands for "masked" in attention scores.
static bool moderate(double v) {
  return isfinite(v) && (fabs(v) < 1e5 || fabs(v + 1e9) < 1e3);
}

// Rows that no index names are the maximum of nothing, until they are compared with it.
static bool may_be_infinite(const ir_node *n) {
  return n->op == IR_SCATTER_MAX || ir_is_const(n, -INFINITY);
}

static void check_node(const ir_node *n, const ir_tensor_value *v, uint64_t seed) {
  for (int64_t i = 0; v->at && ir_is_float(n->type.dtype) && i < ir_elements(&n->type); i++)
    if (!CHECK(moderate(v->at[i]) || may_be_infinite(n), "seed %llu: %%%s (%s) is %g",
               (unsigned long long)seed, n->name, ir_ops[n->op].name, v->at[i]))
      return;
}

// What is said to be never negative is not.
static int check_signs(ir_arena *a, const ir_func *f, const ir_tensor_value *values,
                       uint64_t seed) {
  const bool *claimed = ir_find_never_negative(a, f);
  int num = 0;
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    const double *v = values[n->id].at;
    num += claimed[n->id];
    for (int64_t j = 0; claimed[n->id] && v && j < ir_elements(&n->type); j++)
      if (!CHECK(!(v[j] < 0), "seed %llu: %%%s (%s) is %g", (unsigned long long)seed, n->name,
                 ir_ops[n->op].name, v[j]))
        break;
  }
  return num;
}

// Without gradients, which only autodiff makes runnable.
static int check_values(ir_arena *a, const ir_module *m, uint64_t seed) {
  const ir_func *f = ir_find_func(m, "step");
  ir_world *w = support_world(a, m);
  ir_tensor_value *values = ir_interp(w, f, ir_random_inputs(a, f, seed));
  for (size_t i = 0; i < f->nodes.num; i++)
    check_node(f->nodes.at[i], &values[f->nodes.at[i]->id], seed);
  return check_signs(a, f, values, seed);
}

// NaN is no number that is above others, and -0 one that others are divided by.
static void check_edges(void) {
  static const char text[] =
      "mltc-ir 1\nmodule t\nfunc step {\n%none = const {value=nan} : f32[2]\n"
      "%zero = const {value=-0.0} : f32[2]\n%low = const {value=-5.0} : f32[2]\n"
      "%one = const {value=1.0} : f32[2]\n%a = abs %none : f32[2]\n%max = max %a, %low : f32[2]\n"
      "%max2 = max %low, %one : f32[2]\n%max3 = max %one, %low : f32[2]\n"
      "%root = rsqrt %zero : f32[2]\n%root2 = sqrt %zero : f32[2]\n%over = div %one, %root2 : "
      "f32[2]\n"
      "%pow = pow %zero, %low : f32[2]\n%sum = add %low, %one : f32[2]\n%root3 = rsqrt %sum : "
      "f32[2]\n"
      "result output max = %max\n}\n";
  ir_arena *a = ir_arena_new();
  ir_module *m = support_module(a, text);
  const ir_func *f = ir_find_func(m, "step");
  int num = check_signs(a, f, ir_interp(support_world(a, m), f, ir_random_inputs(a, f, 1)), 0);
  CHECK(num == 7, "%d claims: of zero, one, a, max2, max3, root2 and root3", num);
  ir_arena_free(a);
}

static void count_ops(const ir_module *m, int *count) {
  for (size_t f = 0; f < m->funcs.num; f++)
    for (size_t i = 0; i < m->funcs.at[f]->nodes.num; i++)
      count[m->funcs.at[f]->nodes.at[i]->op]++;
}

int main(void) {
  int count[IR_NUM_OPS] = {0}, claims = 0;
  check_edges();
  for (uint64_t seed = 0; seed < 120; seed++) {
    ir_arena *a = ir_arena_new();
    ir_module *m = make(a, seed);
    support_verifies(m, ir_format(a, "seed %llu", (unsigned long long)seed));
    check_round_trip(a, m, seed);
    check_clone(a, m, seed);
    check_same_again(a, m, seed);
    if (seed % 2 == 0)
      claims += check_values(a, m, seed);
    count_ops(m, count);
    ir_arena_free(a);
  }
  CHECK(claims > 500, "only %d nodes are known not to be negative", claims);
  for (int op = 0; op < IR_NUM_OPS; op++)
    CHECK(count[op] > 0, "no random module has a '%s'", ir_ops[op].name);
  return support_finish("test_ir_random");
}
