// test_passes_scale.c: the whole pipeline on networks of 5, 10, 20 and 40 thousand nodes. Time must
// grow with the number of nodes, not with its square; the figures are printed.
#include "support_passes.h"

#include "ir/builder.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { ROWS = 8, WIDTH = 16, SIZES = 4, ROUNDS = 3, MAX_PASSES = 32 };

// The limit for all passes at 20,000 nodes, in seconds of processor time; sanitizers and slow machines get three times
// as much. And how much more time twice the nodes may take, in the mean of all doublings: one of them, which one depends
// on the machine and on what else it does, is that from nodes in a cache to nodes that are not, and takes three times
// as long. With a square in it, twice the nodes come to four times the time.
static const double limit = 3.0, growth = 2.75;
enum { AT_LIMIT = 2 }; // index of that size

// --- the network -----------------------------------------------------------------------------
typedef struct net {
  ir_module *m;
  ir_builder b;
  IR_VEC(ir_node *) params;
} net;

static ir_node *param(net *n, const char *name, int rank, const int64_t *dims) {
  ir_type type = ir_tensor(IR_F32, rank, dims);
  ir_state *s = ir_state_new(n->m, name, type, IR_ROLE_PARAM, (ir_loc){0});
  ir_node *r = ir_read(&n->b, s);
  IR_PUSH(n->m->arena, n->params, r);
  return r;
}

static ir_node *wide(net *n, ir_node *x) {
  return ir_broadcast(&n->b, x, 2, (int64_t[]){ROWS, WIDTH});
}

static ir_node *mean(net *n, ir_node *x) {
  return ir_binary_const(&n->b, IR_DIV, ir_reduce(&n->b, IR_SUM, x, (int64_t[]){1}, 1), WIDTH);
}

static ir_node *layer_norm(net *n, ir_node *x) {
  ir_node *d = ir_binary(&n->b, IR_SUB, x, wide(n, mean(n, x)));
  ir_node *var = mean(n, ir_binary(&n->b, IR_MUL, d, d));
  ir_node *r = ir_unary(&n->b, IR_RSQRT, ir_binary_const(&n->b, IR_ADD, var, 1e-5));
  return ir_binary(&n->b, IR_MUL, d, wide(n, r));
}

static ir_node *gelu(net *n, ir_node *x) {
  ir_node *e = ir_unary(&n->b, IR_ERF, ir_binary_const(&n->b, IR_MUL, x, 0.7071067811865476));
  ir_node *h = ir_binary_const(&n->b, IR_MUL, ir_binary_const(&n->b, IR_ADD, e, 1), 0.5);
  return ir_binary(&n->b, IR_MUL, x, h);
}

// `flip`: f(x) + x instead of x + f(x), as people write both.
static ir_node *layer(net *n, ir_node *x, int i, bool flip) {
  ir_arena *a = n->m->arena;
  n->b.scope = ir_format(a, "layer.%d", i);
  ir_node *w = param(n, ir_format(a, "layer.%d.w", i), 2, (int64_t[]){WIDTH, WIDTH});
  ir_node *bias = param(n, ir_format(a, "layer.%d.b", i), 2, (int64_t[]){1, WIDTH});
  ir_node *y = ir_matmul(&n->b, layer_norm(n, x), w, false, false);
  ir_node *z = gelu(n, ir_binary(&n->b, IR_ADD, y, wide(n, bias)));
  return ir_binary(&n->b, IR_ADD, flip ? z : x, flip ? x : z);
}

static void descend(net *n, ir_node *loss) {
  n->b.scope = "sgd";
  for (size_t i = 0; i < n->params.num; i++) {
    ir_node *p = n->params.at[i], *g = ir_grad(&n->b, loss, p);
    ir_write(&n->b, p->state, ir_binary(&n->b, IR_SUB, p, ir_binary_const(&n->b, IR_MUL, g, 0.1)));
  }
}

static net net_new(ir_arena *a, const char *name) {
  net n = {.m = ir_module_new(a, name)};
  n.b = ir_build_at_end(ir_func_new(n.m, "step"));
  return n;
}

static ir_node *batch(net *n) {
  return ir_input(&n->b, "x", ir_tensor(IR_F32, 2, (int64_t[]){ROWS, WIDTH}));
}

static ir_module *train(net *n, ir_node *y) {
  ir_node *sum = ir_reduce(&n->b, IR_SUM, ir_binary(&n->b, IR_MUL, y, y), (int64_t[]){0, 1}, 2);
  ir_node *loss = ir_reshape(&n->b, sum, 0, NULL);
  descend(n, loss);
  ir_result_add(n->m->funcs.at[0], "loss", IR_RESULT_LOSS, loss);
  return n->m;
}

// About `nodes` nodes before autodiff.
static ir_module *network(ir_arena *a, size_t nodes) {
  net n = net_new(a, "deep");
  ir_node *x = batch(&n);
  const size_t per_layer = 38; // with its update
  for (int i = 0; (size_t)i * per_layer < nodes; i++)
    x = layer(&n, x, i, (size_t)i * per_layer > nodes / 2);
  return train(&n, x);
}

// The same of a sum of terms that all read one value.
static ir_module *sum_of_terms(ir_arena *a, size_t nodes) {
  net n = net_new(a, "terms");
  ir_node *x = batch(&n), *y = x;
  const size_t per_term = 9;
  for (int i = 0; (size_t)i * per_term < nodes; i++) {
    ir_node *w = wide(&n, param(&n, ir_format(a, "w.%d", i), 2, (int64_t[]){1, WIDTH}));
    ir_node *term = ir_unary(&n.b, IR_TANH, ir_binary(&n.b, IR_MUL, x, w));
    y = ir_binary(&n.b, IR_ADD, y, term);
  }
  return train(&n, y);
}

// --- timing --------------------------------------------------------------------------------------
typedef struct timing {
  size_t before, after; // nodes
  double seconds, by_pass[MAX_PASSES];
  double last;
} timing;

static double now(void) {
  return (double)clock() / CLOCKS_PER_SEC;
}

static void add_time(void *data, const char *pass, ir_module *m) {
  (void)m;
  timing *t = data;
  for (int i = 0; pass_pipeline[i].name; i++)
    if (strcmp(pass_pipeline[i].name, pass) == 0)
      t->by_pass[i] += now() - t->last;
  t->last = now();
}

typedef ir_module *(*network_fn)(ir_arena *a, size_t nodes);

static timing measure(network_fn make, size_t nodes) {
  ir_arena *a = ir_arena_new();
  ir_module *m = make(a, nodes);
  timing t = {.before = m->funcs.at[0]->nodes.num};
  ir_diags *d = diag_new(a);
  double start = t.last = now();
  pass_options o = {.after = add_time, .after_data = &t};
  if (!pass_run_pipeline(m, d, &o))
    test_fail("the pipeline reports errors at %zu nodes", nodes);
  t.seconds = now() - start;
  t.after = m->funcs.at[0]->nodes.num;
  ir_arena_free(a);
  return t;
}

// The fastest of several of each size, in turn: what else runs on the machine slows some down.
static void measure_all(network_fn make, const size_t *sizes, int num, timing *t) {
  for (int round = 0; round < ROUNDS; round++)
    for (int k = 0; k < num; k++) {
      timing x = measure(make, sizes[k]);
      if (round == 0 || x.seconds < t[k].seconds)
        t[k] = x;
    }
}

static void print_figures(const timing *t) {
  printf("%-20s", "nodes");
  for (int k = 0; k < SIZES; k++)
    printf(" %6zu > %6zu", t[k].before, t[k].after);
  puts("");
  for (int i = 0; pass_pipeline[i].name; i++) {
    printf("%-20s", pass_pipeline[i].name);
    for (int k = 0; k < SIZES; k++)
      printf(" %12.1f ms", t[k].by_pass[i] * 1e3);
    puts("");
  }
  printf("%-20s", "all, with verifier");
  for (int k = 0; k < SIZES; k++)
    printf(" %12.1f ms", t[k].seconds * 1e3);
  puts("");
}

static void check_growth(const char *what, const size_t *sizes, int num, const timing *t) {
  double grown = t[num - 1].seconds / t[0].seconds;
  printf("%s: %zu times the nodes, %.1f times as long\n", what, sizes[num - 1] / sizes[0], grown);
  if (grown > pow(growth, num - 1))
    test_fail("%s: %zu times the nodes take %.1f times as long", what, sizes[num - 1] / sizes[0],
              grown);
}

static double patience(void) {
#if defined(__SANITIZE_ADDRESS__)
  return 3;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return 3;
#else
  return 1;
#endif
#else
  return 1;
#endif
}

// Operands that are one value twice, 64 times one behind the other: what asks each of them anew never ends.
static void check_doublings(void) {
  ir_arena *a = ir_arena_new();
  net n = net_new(a, "doublings");
  pass_set_precision(n.m, "bf16");
  const int64_t one[] = {1, 1}, start[] = {WIDTH / 2, 0}, stop[] = {WIDTH / 2 + WIDTH, WIDTH};
  ir_node *w = param(&n, "w", 2, (int64_t[]){WIDTH, WIDTH}), *x = w;
  for (int i = 0; i < 64; i++)
    x = ir_slice(&n.b, ir_concat(&n.b, 2, (ir_node *[]){x, x}, 0), start, stop, one);
  x = ir_matmul(&n.b, x, ir_unary(&n.b, IR_EXP, w), false, false);
  ir_write(&n.b, ir_find_state(n.m, "w"), x);
  if (!pass_run_pipeline(n.m, diag_new(a), NULL))
    test_fail("doublings have errors");
  ir_arena_free(a);
}

int main(void) {
  static const size_t sizes[SIZES] = {5000, 10000, 20000, 40000};
  timing t[SIZES];
  int passes = 0;
  while (pass_pipeline[passes].name)
    passes++;
  BUG_IF(passes > MAX_PASSES, "%d passes, and room for %d", passes, MAX_PASSES);
  check_doublings();
  measure_all(network, sizes, SIZES, t);
  print_figures(t);
  check_growth("deep", sizes, SIZES, t);
  if (t[AT_LIMIT].seconds > limit * patience())
    test_fail("%zu nodes take %.2f s", sizes[AT_LIMIT], t[AT_LIMIT].seconds);
  measure_all(sum_of_terms, sizes, SIZES - 1, t);
  check_growth("terms", sizes, SIZES - 1, t);
  return test_report("scale");
}
