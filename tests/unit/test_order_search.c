// test_order_search.c: how good the orders of pass_order are, and what they cost.
//
// Small random functions: the pass is never worse than the order of the source, and nearly always
// as good as the best of all orders, which are tried one by one. A deep network of 20,000 kernels:
// order, plan and its check take at most 10 seconds.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "passes/order_parts.h"
#include "passes/pass.h"
#include "tests/support_campaign.h"
#include "tests/support_check.h"
#include "tests/unit/support_passes.h"
#include "tests/unit/support_plan.h"

enum { FUNCTIONS = 300, MOST_KERNELS = 8, LAYERS = 4000 };

static ir_module *parse(ir_arena *a, const char *text) {
  ir_module *m = test_parse(a, text);
  pass_fuse(m, diag_new(a));
  return m;
}

// --- random functions ----------------------------------------------------------------------------
typedef struct value {
  const char *name;
  int rows, cols;
} value;

typedef struct random_function {
  ir_arena *a;
  uint64_t seed;
  ir_buf inputs, kernels, ends;
  ir_buf states;
  value made[MOST_KERNELS];
  bool used[MOST_KERNELS];
  int num, num_inputs;
} random_function;

static const char *new_input(random_function *f, int rows, int cols) {
  const char *name = ir_format(f->a, "x%d", f->num_inputs++);
  ir_buf_printf(&f->inputs, "%%%s = input : f32[%d,%d]\n", name, rows, cols);
  return name;
}

static value pick(random_function *f) {
  static const int sizes[] = {16, 64, 96, 256};
  if (f->num == 0 || test_below(&f->seed, 5) == 0) {
    int rows = sizes[test_below(&f->seed, 4)], cols = sizes[test_below(&f->seed, 4)];
    return (value){new_input(f, rows, cols), rows, cols};
  }
  int at = test_below(&f->seed, f->num);
  f->used[at] = true;
  return f->made[at];
}

// A product of two values, the second one transposed where that fits; or of a value and an input.
static value put_matmul(random_function *f, const char *name) {
  value a = pick(f), b = pick(f);
  bool turn = a.cols != b.rows;
  if (turn && a.cols != b.cols) {
    b = (value){NULL, a.cols, 16 << test_below(&f->seed, 4)};
    b.name = new_input(f, b.rows, b.cols);
    turn = false;
  }
  value y = {name, a.rows, turn ? b.rows : b.cols};
  ir_buf_printf(&f->kernels,
                "kernel k.%s matmul anchor=%%%s {\n"
                " %%%s = matmul %%%s, %%%s {ta=false, tb=%s} : f32[%d,%d]\n}\n",
                name, name, name, a.name, b.name, turn ? "true" : "false", y.rows, y.cols);
  return y;
}

static value put_loop(random_function *f, const char *name) {
  value a = pick(f), b = pick(f);
  bool two = a.rows == b.rows && a.cols == b.cols;
  ir_buf_printf(&f->kernels, "kernel k.%s loop {\n %%%s = %s %%%s%s%s : f32[%d,%d]\n}\n", name,
                name, two ? "add" : "exp", a.name, two ? ", %" : "", two ? b.name : "", a.rows,
                a.cols);
  return (value){name, a.rows, a.cols};
}

// w.new = w - y
static value put_update(random_function *f, const char *name) {
  value y = pick(f);
  ir_buf_printf(&f->states, "state w.%s : f32[%d,%d] role=param\n", name, y.rows, y.cols);
  ir_buf_printf(&f->inputs, "%%w.%s = read @w.%s : f32[%d,%d]\n", name, name, y.rows, y.cols);
  ir_buf_printf(&f->kernels, "kernel k.%s loop {\n %%%s = sub %%w.%s, %%%s : f32[%d,%d]\n}\n", name,
                name, name, y.name, y.rows, y.cols);
  ir_buf_printf(&f->ends, "write @w.%s, %%%s\n", name, name);
  return (value){name, y.rows, y.cols};
}

static const char *random_text(ir_arena *a, uint64_t seed) {
  random_function f = {.a = a, .seed = seed * 77 + 5};
  f.inputs = ir_buf_new(a);
  f.kernels = ir_buf_new(a);
  f.ends = ir_buf_new(a);
  f.states = ir_buf_new(a);
  int kernels = 4 + test_below(&f.seed, MOST_KERNELS - 3);
  for (int k = 0; k < kernels; k++) {
    const char *name = ir_format(a, "v%d", k);
    int kind = test_below(&f.seed, 8);
    value v = kind < 4   ? put_matmul(&f, name)
              : kind < 7 ? put_loop(&f, name)
                         : put_update(&f, name);
    f.used[f.num] = kind == 7;
    f.made[f.num++] = v;
  }
  for (int k = 0; k < f.num; k++)
    if (!f.used[k])
      ir_buf_printf(&f.ends, "result output %s = %%%s\n", f.made[k].name, f.made[k].name);
  return ir_format(a, "mltc-ir 1\nmodule t\n\n%s\nfunc step {\n%s%s%s}\n", ir_buf_str(&f.states),
                   ir_buf_str(&f.inputs), ir_buf_str(&f.kernels), ir_buf_str(&f.ends));
}

// --- all orders ----------------------------------------------------------------------------------
typedef struct search {
  sched *s;
  int steps[MOST_KERNELS], num;
  bool placed[MOST_KERNELS];
  int64_t best;
} search;

static int64_t peak_of(sched *s, const int *steps) {
  int64_t live[MOST_KERNELS];
  ir_arena *a = ir_arena_new();
  sched_lives l = sched_find_lives(s, a, steps, (size_t)s->num_kernels);
  int64_t peak = sched_live_bytes(&l, (size_t)s->num_kernels, live);
  ir_arena_free(a);
  return peak;
}

static bool may_run(const search *x, int k) {
  for (int i = 0; i < x->s->kernels[k].num_in; i++) {
    int v = x->s->kernels[k].in[i].value;
    if (v >= 0 && !x->placed[x->s->values[v].kernel])
      return false;
  }
  return !x->placed[k];
}

static void try_all(search *x) {
  if (x->num == x->s->num_kernels) {
    int64_t peak = peak_of(x->s, x->steps);
    x->best = x->best < 0 || peak < x->best ? peak : x->best;
    return;
  }
  for (int k = 0; k < x->s->num_kernels; k++) {
    if (!may_run(x, k))
      continue;
    x->placed[k] = true;
    x->steps[x->num++] = k;
    try_all(x);
    x->num--;
    x->placed[k] = false;
  }
}

static int64_t peak_as_it_is(ir_arena *a, ir_module *m) {
  int steps[MOST_KERNELS];
  for (int k = 0; k < MOST_KERNELS; k++)
    steps[k] = k;
  ir_func *f = m->funcs.at[0];
  for (size_t k = 0; k < f->kernels.num; k++)
    f->kernels.at[k]->id = (uint32_t)k;
  return peak_of(sched_new(a, f), steps);
}

typedef struct tally {
  int best, better, same; // as good as the best of all orders; better than the source; no better
} tally;

static void test_function(uint64_t seed, tally *t) {
  ir_arena *a = ir_arena_new();
  ir_module *m = parse(a, random_text(a, seed));
  int64_t source = peak_as_it_is(a, m);
  search x = {.s = sched_new(a, m->funcs.at[0]), .best = -1};
  try_all(&x);
  pass_order(m, diag_new(a));
  int64_t peak = peak_as_it_is(a, m);
  CHECK(peak <= source, "seed %llu: %lld bytes, %lld in the order of the source",
        (unsigned long long)seed, (long long)peak, (long long)source);
  CHECK(peak >= x.best, "seed %llu: an order that is none", (unsigned long long)seed);
  int64_t least = x.best / 128 > 1024 ? x.best / 128 : 1024; // that the pass calls worthwhile
  t->best += peak <= x.best + least;
  t->better += peak < source;
  t->same += peak == source;
  ir_buf faults = ir_buf_new(a);
  CHECK(ir_verify(m, &faults) == 0, "%s", ir_buf_str(&faults));
  CHECK(plan_check(test_plan(m), m, &faults) == 0, "%s", ir_buf_str(&faults));
  ir_arena_free(a);
}

static void test_functions(void) {
  tally t = {0};
  const int num = test_part(FUNCTIONS);
  for (uint64_t seed = 1; seed <= (uint64_t)num; seed++)
    test_function(seed, &t);
  printf("%d functions of at most %d kernels: %d as good as the best of all orders; %d better than "
         "the source, %d equal\n",
         num, MOST_KERNELS, t.best, t.better, t.same);
  CHECK(t.best * 100 >= num * 98, "only %d of %d are as good as the best order", t.best, num);
  CHECK(t.better * 4 >= num, "only %d functions leave anything to gain", t.better);
}

// --- single kernels ------------------------------------------------------------------------------
// b, which takes 64 times what it is made from, waits while c comes and goes: it moves behind it.
static void test_moves(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = parse(a, "mltc-ir 1\nmodule t\nfunc step {\n%x = input : f32[1,64]\n"
                          "%y = input : f32[64,64]\n"
                          "kernel s loop {\n %s = exp %x : f32[1,64]\n}\n"
                          "kernel b loop {\n %sb = broadcast %s : f32[64,64]\n"
                          " %b = exp %sb : f32[64,64]\n}\n"
                          "kernel c loop {\n %c = exp %y : f32[64,64]\n}\n"
                          "kernel e loop {\n %e = sum %c {axes=[0]} : f32[1,64]\n}\n"
                          "kernel d loop {\n %eb = broadcast %e : f32[64,64]\n"
                          " %d = mul %b, %eb : f32[64,64]\n}\nresult output d = %d\n}\n");
  order_graph *g = order_graph_new(a, sched_new(a, m->funcs.at[0]));
  int *steps = sched_order_as_it_is(g->s, a);
  int64_t large = 64 * 64 * 4, peak = order_peak(g, steps, NULL);
  int64_t moved = order_move_kernels(g, steps, peak);
  CHECK(peak >= 2 * large && moved < 2 * large, "%lld bytes, with kernels moved %lld",
        (long long)peak, (long long)moved);
  CHECK(order_peak(g, steps, NULL) == moved, "the order does not have its peak");
  CHECK(steps[0] != 1 && steps[4] == 4, "kernel b comes before s, or d before its operands");
  order_graph_free(g);
  ir_arena_free(a);
}

// --- a deep network ------------------------------------------------------------------------------
// y = x + relu(x w), and back: five kernels a layer, updates in a second pass over all of them.
static const char *deep_text(ir_arena *a, int layers) {
  ir_buf states = ir_buf_new(a), body = ir_buf_new(a), ends = ir_buf_new(a);
  ir_buf_puts(&body, "%y0 = input : f32[32,64]\n%zero = const {value=0} : f32[32,64]\n");
  for (int i = 0; i < layers; i++) {
    ir_buf_printf(&states, "state w%d : f32[64,64] role=param\n", i);
    ir_buf_printf(&body,
                  "%%w%d = read @w%d : f32[64,64]\n"
                  "kernel f%d matmul anchor=%%p%d {\n"
                  " %%p%d = matmul %%y%d, %%w%d {ta=false, tb=false} : f32[32,64]\n"
                  " %%r%d = max %%p%d, %%zero : f32[32,64]\n"
                  " %%y%d = add %%y%d, %%r%d : f32[32,64]\n}\n",
                  i, i, i, i, i, i, i, i, i, i + 1, i, i);
  }
  ir_buf_printf(&body, "kernel top loop {\n %%d%d = neg %%y%d : f32[32,64]\n}\n", layers, layers);
  for (int i = layers - 1; i >= 0; i--)
    ir_buf_printf(&body,
                  "kernel g%d loop {\n %%c%d = gt %%r%d, %%zero : bool[32,64]\n"
                  " %%g%d = select %%c%d, %%d%d, %%zero : f32[32,64]\n}\n"
                  "kernel b%d matmul anchor=%%q%d {\n"
                  " %%q%d = matmul %%g%d, %%w%d {ta=false, tb=true} : f32[32,64]\n"
                  " %%d%d = add %%d%d, %%q%d : f32[32,64]\n}\n",
                  i, i, i, i, i, i + 1, i, i, i, i, i, i, i + 1, i);
  for (int i = 0; i < layers; i++) {
    ir_buf_printf(&body,
                  "kernel w%d matmul anchor=%%dw%d {\n"
                  " %%dw%d = matmul %%y%d, %%g%d {ta=true, tb=false} : f32[64,64]\n}\n"
                  "kernel u%d loop {\n %%n%d = sub %%w%d, %%dw%d : f32[64,64]\n}\n",
                  i, i, i, i, i, i, i, i, i);
    ir_buf_printf(&ends, "write @w%d, %%n%d\n", i, i);
  }
  return ir_format(a, "mltc-ir 1\nmodule deep\n\n%s\nfunc step {\n%s%sresult output y = %%d0\n}\n",
                   ir_buf_str(&states), ir_buf_str(&body), ir_buf_str(&ends));
}

static double now(void) {
  return (double)clock() / CLOCKS_PER_SEC;
}

static void test_deep(int layers, double limit) {
  ir_arena *a = ir_arena_new();
  ir_module *m = parse(a, deep_text(a, layers));
  double start = now();
  pass_order(m, diag_new(a));
  double ordered = now();
  plan *p = test_plan(m);
  double planned = now();
  ir_buf faults = ir_buf_new(a);
  CHECK(plan_check(p, m, &faults) == 0, "%s", ir_buf_str(&faults));
  double checked = now();
  printf("%zu kernels: order %.2f s, plan %.2f s, check %.2f s; %lld bytes of temporaries, arena / "
         "bound %.4f\n",
         m->funcs.at[0]->kernels.num, ordered - start, planned - ordered, checked - planned,
         (long long)p->temp_bytes, (double)p->arena_bytes / (double)p->bound_bytes);
  CHECK(checked - start <= limit, "%.1f s, at most %.1f", checked - start, limit);
  // what every layer leaves for the way back (y and r), and a little; no gradient waits
  int64_t layer = 2 * 32 * 64 * 4;
  CHECK(p->temp_bytes <= (layers + 4) * layer + 64 * 64 * 4, "gradients of weights are kept");
  ir_arena_free(a);
}

#if defined(__SANITIZE_ADDRESS__)
enum { PATIENCE = 4 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { PATIENCE = 4 };
#else
enum { PATIENCE = 1 };
#endif
#else
enum { PATIENCE = 1 };
#endif

int main(void) {
  test_functions();
  test_moves();
  test_deep(LAYERS / 8, 10.0 * PATIENCE);
  test_deep(LAYERS, 10.0 * PATIENCE);
  printf("order search: %d failures\n", failures);
  return failures != 0;
}
