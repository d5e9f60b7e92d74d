// test_bands.c: what pass_bands says is so.
//   - comparisons of index arithmetic: against the oracle, element by element, with bands no wider
//     than they must be;
//   - outside `nonzero` the oracle has zeros, on random graphs, also where other values are
//     infinite;
//   - what lies outside `needed` may be NaN, and no result or state changes;
//   - the products that matter are counted as one by one.
#include "passes/band.h"
#include "support_passes.h"
#include "tests/unit/support_ir.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;
static int draw(int limit) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (int)((state >> 11) % (uint64_t)limit);
}

static int64_t diagonal_of(const ir_type *t, int64_t i) {
  int64_t columns = band_columns(t);
  return i % columns - i / columns % band_rows(t);
}

static bool holds(ir_band b, int64_t diagonal) {
  return b.lower <= diagonal && diagonal <= b.upper;
}

// --- comparisons ---------------------------------------------------------------------------------
static ir_node *random_affine(ir_builder *b, ir_type t, int depth) {
  switch (draw(depth > 2 ? 3 : 7)) {
  case 0:
    return ir_const(b, t, draw(9) - 4);
  case 1:
  case 2:
    return ir_iota(b, t, draw(t.rank));
  case 3:
    return ir_binary(b, IR_ADD, random_affine(b, t, depth + 1), random_affine(b, t, depth + 1));
  case 4:
    return ir_binary(b, IR_SUB, random_affine(b, t, depth + 1), random_affine(b, t, depth + 1));
  case 5:
    return ir_binary_const(b, IR_MUL, random_affine(b, t, depth + 1), draw(5) - 2);
  default:
    return ir_unary(b, IR_NEG, random_affine(b, t, depth + 1));
  }
}

// The same values by way of a view.
static ir_node *through_view(ir_builder *b, ir_type t, ir_node *n) {
  int64_t dims[] = {1, t.dims[0], t.dims[1]}, turned[] = {t.dims[1], t.dims[0]};
  switch (draw(5)) {
  case 0:
    return ir_reshape(b, ir_reshape(b, n, 3, dims), 2, t.dims);
  case 1: {
    ir_node *other = random_affine(b, ir_tensor(t.dtype, 2, turned), 1);
    return ir_binary(b, IR_ADD, n, ir_transpose(b, other, (const int64_t[]){1, 0}));
  }
  case 2: {
    int64_t more[] = {t.dims[0] + 2, 2 * t.dims[1] + 1}, start[] = {2, 1};
    int64_t stop[] = {more[0], more[1]}, step[] = {1, 2};
    ir_node *other = random_affine(b, ir_tensor(t.dtype, 2, more), 1);
    return ir_binary(b, IR_SUB, n, ir_slice(b, other, start, stop, step));
  }
  case 3: {
    int64_t row[] = {1, t.dims[1]};
    ir_node *other = ir_iota(b, ir_tensor(t.dtype, 2, row), draw(2));
    return ir_binary(b, IR_ADD, n, ir_broadcast(b, other, 2, t.dims));
  }
  default:
    return n;
  }
}

static ir_band hull_of(const ir_tensor_value *v, double want) {
  ir_band hull = band_none();
  for (int64_t i = 0; i < ir_elements(&v->type); i++) {
    int64_t d = diagonal_of(&v->type, i);
    if (v->at[i] == want)
      hull = band_join(hull, (ir_band){d, d});
  }
  return hull;
}

// Affine in the diagonal alone: equal along every diagonal.
static bool is_banded(const ir_tensor_value *v) {
  for (int64_t i = band_columns(&v->type) + 1; i < ir_elements(&v->type); i++)
    if (i % band_columns(&v->type) && v->at[i] != v->at[i - band_columns(&v->type) - 1])
      return false;
  return true;
}

static bool same_band(ir_band x, ir_band y) {
  return band_is_empty(x) ? band_is_empty(y) : x.lower == y.lower && x.upper == y.upper;
}

static int check_comparison(void) {
  static const ir_dtype types[] = {IR_I32, IR_I64, IR_F32};
  static const ir_op ops[] = {IR_EQ, IR_NE, IR_LT, IR_LE, IR_GT, IR_GE};
  ir_arena *a = ir_arena_new();
  ir_module *m = ir_module_new(a, "m");
  ir_func *f = ir_func_new(m, "step");
  ir_builder b = ir_build_at_end(f);
  int64_t dims[] = {2 + draw(8), 2 + draw(8)};
  ir_type t = ir_tensor(types[draw(3)], 2, dims);
  ir_node *x = random_affine(&b, t, 0), *y = through_view(&b, t, random_affine(&b, t, 0));
  ir_node *n = ir_binary(&b, ops[draw(6)], x, y);
  ir_result_add(f, "r", IR_RESULT_OUTPUT, n);
  ir_tensor_value *values = ir_interp(ir_world_new(a, m), f, NULL), *v = &values[n->id];
  band_truth truth = band_of_comparison(n);
  ir_band yes = hull_of(v, 1), no = hull_of(v, 0), all = band_all(&n->type);
  CHECK(same_band(band_join(yes, truth.yes), truth.yes) &&
            same_band(band_join(no, truth.no), truth.no),
        "true in %lld..%lld, false in %lld..%lld:\n%s", (long long)yes.lower, (long long)yes.upper,
        (long long)no.lower, (long long)no.upper, support_text(a, m));
  bool found = !same_band(truth.yes, all) || !same_band(truth.no, all);
  if (found)
    CHECK(same_band(yes, truth.yes) && (same_band(no, truth.no) || is_banded(v)),
          "wider than need be:\n%s", support_text(a, m));
  ir_arena_free(a);
  return found;
}

// --- zeros -------------------------------------------------------------------------------------
static int check_zeros(const ir_func *f, const ir_tensor_value *values, const char *what) {
  int facts = 0;
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    const ir_tensor_value *v = &values[n->id];
    for (int64_t k = 0; n->nonzero && v->at && k < ir_elements(&v->type); k++)
      if (!holds(*n->nonzero, diagonal_of(&v->type, k)) &&
          !CHECK(v->at[k] == 0, "%s: %%%s[%lld] is %g", what, n->name, (long long)k, v->at[k]))
        return facts;
    facts += n->nonzero != NULL;
  }
  return facts;
}

// Every eighth element of every input is infinite or NaN.
static void spoil(const ir_func *f, ir_tensor_value *inputs) {
  int next = 0;
  for (size_t i = 0; i < f->nodes.num; i++) {
    if (f->nodes.at[i]->op != IR_INPUT)
      continue;
    ir_tensor_value *v = &inputs[next++];
    for (int64_t k = 0; ir_is_float(v->type.dtype) && k < ir_elements(&v->type); k += 8)
      v->at[k] = k % 3 ? INFINITY : NAN;
  }
}

static ir_tensor_value *run(ir_arena *a, const ir_module *m, uint64_t seed, bool spoiled) {
  const ir_func *f = ir_find_func(m, "step");
  ir_world *w = support_world(a, m);
  ir_tensor_value *inputs = ir_random_inputs(a, f, seed);
  if (spoiled)
    spoil(f, inputs);
  return ir_interp(w, f, inputs);
}

// --- needs -------------------------------------------------------------------------------------
// 1 within the band, else 0, as the mask of a select
static ir_node *mask_of(ir_builder *b, const ir_type *like, ir_band band) {
  ir_type t = *like;
  t.dtype = IR_I32;
  ir_node *d = ir_binary(b, IR_SUB, ir_iota(b, t, t.rank - 1), ir_iota(b, t, t.rank - 2));
  return ir_binary(b, IR_AND, ir_binary_const(b, IR_GE, d, (double)band.lower),
                   ir_binary_const(b, IR_LE, d, (double)band.upper));
}

static void poison(ir_module *m) {
  ir_rewrite rw = ir_rewrite_begin(ir_find_func(m, "step"));
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i), *r = n;
    if (n->needed)
      r = ir_select(&rw.b, mask_of(&rw.b, &n->type, *n->needed), n,
                    ir_const(&rw.b, n->type, (double)NAN));
    ir_rewrite_done(&rw, i, r);
  }
  ir_rewrite_end(&rw);
}

static int check_needs(ir_arena *a, const ir_module *m, const ir_tensor_value *values,
                       uint64_t seed) {
  ir_module *spoiled = ir_clone(m);
  poison(spoiled);
  const ir_func *f = ir_find_func(m, "step"), *g = ir_find_func(spoiled, "step");
  int facts = 0;
  for (size_t i = 0; i < f->nodes.num; i++)
    facts += f->nodes.at[i]->needed != NULL;
  ir_tensor_value *others = facts ? run(a, spoiled, seed, false) : NULL;
  for (size_t i = 0; facts && i < f->results.num; i++) {
    const ir_tensor_value *x = &values[f->results.at[i].node->id];
    const ir_tensor_value *y = &others[g->results.at[i].node->id];
    CHECK(memcmp(x->at, y->at, sizeof *x->at * (size_t)ir_elements(&x->type)) == 0,
          "seed %llu: result '%s' needs more than it says", (unsigned long long)seed,
          f->results.at[i].name);
  }
  return facts;
}

// --- random graphs -----------------------------------------------------------------------------
// All states that step writes become results, too.
static void show_writes(ir_module *m) {
  ir_func *f = ir_find_func(m, "step");
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_WRITE)
      ir_result_add(f, ir_format(m->arena, "write%zu", i), IR_RESULT_OUTPUT, f->nodes.at[i]->in[0]);
}

static void check_graph(uint64_t seed, int *zeros, int *needs) {
  ir_arena *a = ir_arena_new();
  ir_random_options o = {
      .seed = seed, .num_nodes = 40, .differentiable = seed % 2, .networks = true};
  ir_module *m = ir_random_module(a, o);
  ir_diags *d = diag_new(a);
  pass_autodiff(m, d);
  if (seed % 3)
    pass_algebra(m, d);
  show_writes(m);
  pass_bands(m, d);
  const ir_func *f = ir_find_func(m, "step");
  const char *what = ir_format(a, "seed %llu", (unsigned long long)seed);
  ir_tensor_value *values = run(a, m, seed, false);
  *zeros += check_zeros(f, values, what);
  check_zeros(f, run(a, m, seed, true), ir_format(a, "%s, spoiled", what));
  *needs += check_needs(a, m, values, seed);
  ir_arena_free(a);
}

// --- rule by rule --------------------------------------------------------------------------------
// %see: column
// <= row. %m: f32[4,6], 0 above the diagonal. %v: f32[4,6] of which nothing is known.
static const char prelude[] = "%v = input : f32[4,6]\n"
                              "%row = iota {axis=0} : i32[4,6]\n"
                              "%column = iota {axis=1} : i32[4,6]\n"
                              "%see = le %column, %row : bool[4,6]\n"
                              "%zero = const {value=0.0} : f32[4,6]\n"
                              "%m = select %see, %v, %zero : f32[4,6]\n";

typedef struct fact_case {
  const char *body; // defines %x, the fact's node; %r is the result
  ir_band nonzero, needed;
} fact_case;
#define ALL                                                                                        \
  { -3, 5 }
#define CAUSAL                                                                                     \
  { -3, 0 }
#define LATER                                                                                      \
  { 1, 5 }
static const fact_case cases[] = {
    {"%x = neg %m : f32[4,6]\n%r = copy %x : f32[4,6]", CAUSAL, ALL},
    {"%x = exp %m : f32[4,6]\n%r = copy %x : f32[4,6]", ALL, ALL},
    {"%x = add %m, %v : f32[4,6]\n%r = copy %x : f32[4,6]", ALL, ALL},
    {"%x = max %m, %m : f32[4,6]\n%r = copy %x : f32[4,6]", CAUSAL, ALL},
    {"%x = mul %m, %m : f32[4,6]\n%r = copy %x : f32[4,6]", CAUSAL, ALL},
    // 0 * infinity, 0 / 0, and constants that f32 rounds to those
    {"%x = mul %m, %v : f32[4,6]\n%r = copy %x : f32[4,6]", ALL, ALL},
    {"%x = div %m, %v : f32[4,6]\n%r = copy %x : f32[4,6]", ALL, ALL},
    {"%c = const {value=3.0} : f32[4,6]\n%x = mul %c, %m : f32[4,6]\n%r = copy %x : f32[4,6]",
     CAUSAL, ALL},
    {"%c = const {value=1e39} : f32[4,6]\n%x = mul %m, %c : f32[4,6]\n%r = copy %x : f32[4,6]", ALL,
     ALL},
    {"%c = const {value=-8.0} : f32[4,6]\n%x = div %m, %c : f32[4,6]\n%r = copy %x : f32[4,6]",
     CAUSAL, ALL},
    {"%c = const {value=1e-40} : f32[4,6]\n%x = div %m, %c : f32[4,6]\n%r = copy %x : f32[4,6]",
     ALL, ALL},
    {"%b = cast %see : f32[4,6]\n%x = mul %b, %m : f32[4,6]\n%r = copy %x : f32[4,6]", CAUSAL, ALL},
    // masks: where they are false a program's other parts may take for granted, so `check` must
    // know
    {"%x = not %see : bool[4,6]\n%r = select %x, %v, %zero : f32[4,6]", LATER, ALL},
    {"%w = ge %column, %row : bool[4,6]\n%x = and %see, %w : bool[4,6]\n"
     "%r = select %x, %v, %zero : f32[4,6]",
     {0, 0},
     ALL},
    {"%n = not %see : bool[4,6]\n%x = select %n, %v, %zero : f32[4,6]\n%r = copy %x : f32[4,6]",
     LATER, ALL},
    {"%x = select %see, %zero, %v : f32[4,6]\n%r = copy %x : f32[4,6]", LATER, ALL},
    {"%w = ge %column, %row : bool[4,6]\n%d = and %see, %w : bool[4,6]\n"
     "%x = select %d, %v, %zero : f32[4,6]\n%r = copy %x : f32[4,6]",
     {0, 0},
     ALL},
    {"%w = gt %column, %row : bool[4,6]\n%d = or %see, %w : bool[4,6]\n"
     "%x = select %d, %v, %zero : f32[4,6]\n%r = copy %x : f32[4,6]",
     ALL, ALL},
    {"%p = const {value=0.5} : f32[4,6]\n%i = cast %p : i32[4,6]\n%b = cast %i : bool[4,6]\n"
     "%x = select %b, %zero, %v : f32[4,6]\n%r = copy %x : f32[4,6]",
     ALL, ALL},
    // views
    {"%x = transpose %m {perm=[1,0]} : f32[6,4]\n%r = copy %x : f32[6,4]", {0, 3}, {-5, 3}},
    {"%x = slice %m {start=[1,0], stop=[4,6], step=[1,1]} : f32[3,6]\n%r = copy %x : f32[3,6]",
     {-2, 1},
     {-2, 5}},
    {"%x = slice %m {start=[0,0], stop=[4,6], step=[1,2]} : f32[4,3]\n%r = copy %x : f32[4,3]",
     {-3, 2},
     {-3, 2}},
    {"%x = reshape %m : f32[2,2,6]\n%r = copy %x : f32[2,2,6]", {-1, 5}, {-1, 5}},
    {"%l = reshape %m : f32[1,4,6]\n%x = broadcast %l : f32[3,4,6]\n%r = copy %x : f32[3,4,6]",
     CAUSAL, ALL},
    {"%l = reshape %m : f32[1,4,6]\n%k = broadcast %l : f32[3,4,6]\n"
     "%x = sum %k {axes=[0]} : f32[1,4,6]\n%r = copy %x : f32[1,4,6]",
     CAUSAL, ALL},
    // needs
    {"%x = exp %v : f32[4,6]\n%r = select %see, %x, %zero : f32[4,6]", ALL, CAUSAL},
    {"%x = exp %v : f32[4,6]\n%r = select %see, %v, %x : f32[4,6]", ALL, LATER},
    {"%x = exp %v : f32[4,6]\n%y = sqrt %x : f32[4,6]\n%r = select %see, %y, %v : f32[4,6]", ALL,
     CAUSAL},
    {"%x = exp %v : f32[4,6]\n%r = mul %x, %m : f32[4,6]", ALL, ALL},
    {"%x = exp %v : f32[4,6]\n%t = transpose %x {perm=[1,0]} : f32[6,4]\n"
     "%u = transpose %see {perm=[1,0]} : bool[6,4]\n%o = const {value=0.0} : f32[6,4]\n"
     "%r = select %u, %t, %o : f32[6,4]",
     ALL, CAUSAL},
    {"%x = exp %v : f32[4,6]\n%s = select %see, %x, %v : f32[4,6]\n"
     "%r = matmul %s, %x {ta=true, tb=false} : f32[6,6]",
     ALL, ALL},
    {"%x = matmul %v, %v {ta=false, tb=true} : f32[4,4]\n%i = iota {axis=0} : i32[4,4]\n"
     "%j = iota {axis=1} : i32[4,4]\n%e = eq %i, %j : bool[4,4]\n"
     "%o = const {value=0.0} : f32[4,4]\n%r = select %e, %x, %o : f32[4,4]",
     {-3, 3},
     {0, 0}},
};

static void check_fact(const char *what, const ir_band *found, ir_band want, const ir_node *n,
                       const char *body) {
  ir_band b = found ? *found : band_all(&n->type);
  CHECK(same_band(b, want), "%s in %lld..%lld, not %lld..%lld:\n%s", what, (long long)b.lower,
        (long long)b.upper, (long long)want.lower, (long long)want.upper, body);
}

static void check_case(const fact_case *c) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_step(a, ir_format(a, "%s%s\nresult output r = %%r\n", prelude, c->body));
  pass_bands(m, diag_new(a));
  const ir_func *f = m->funcs.at[0];
  const ir_node *n = ir_map_get(f->names, "x");
  check_fact("not 0", n->nonzero, c->nonzero, n, c->body);
  check_fact("needed", n->needed, c->needed, n, c->body);
  ir_arena_free(a);
}

// --- products ------------------------------------------------------------------------------------
static ir_band random_band(int64_t rows, int64_t columns) {
  int64_t x = draw((int)(rows + columns)) - rows, y = draw((int)(rows + columns)) - rows;
  if (draw(3) == 0)
    return (ir_band){1 - rows, columns - 1};
  return draw(8) == 0 ? band_none() : (ir_band){x < y ? x : y, x < y ? y : x};
}

static void check_products(void) {
  int64_t m = 1 + draw(9), n = 1 + draw(9), k = 1 + draw(9), count = 0;
  band_product p = {random_band(m, k), random_band(k, n), random_band(m, n), true};
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      int64_t first, last, least = k, most = -1;
      band_steps(&p, i, i, j, j, k, &first, &last);
      for (int64_t s = 0; s < k; s++)
        if (holds(p.a, s - i) && holds(p.b, j - s) && holds(p.c, j - i)) {
          least = s < least ? s : least;
          most = s;
          count++;
        }
      CHECK(most < 0 ? first > last : first == least && last == most,
            "steps %lld..%lld instead of %lld..%lld", (long long)first, (long long)last,
            (long long)least, (long long)most);
    }
  CHECK(band_count_products(&p, m, n, k) == count, "%lld products, not %lld",
        (long long)band_count_products(&p, m, n, k), (long long)count);
}

// In next to no time: to look at each row would take seconds here, at each column of each row minutes.
static void check_many_products(void) {
  const int64_t m = 1 << 20, n = 1 << 20;
  band_product p = {.a = {1 - m, n - 1}, .b = {0, n - 1}, .c = {1 - m, n - 1}, .limited = true};
  CHECK(band_count_products(&p, m, n, n) == m * (n * (n + 1) / 2), "all by an upper triangle");
  p.c.upper = 0; // row r needs the columns up to r, of which c takes c + 1 steps
  CHECK(band_count_products(&p, m, n, n) == m * (m + 1) / 2 * (m + 2) / 3, "a triangle of it");
}

int main(int argc, char **argv) {
  uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 120;
  int found = 0, zeros = 0, needs = 0;
  for (int i = 0; i < 4000; i++)
    found += check_comparison();
  for (int i = 0; i < 2000; i++)
    check_products();
  check_many_products();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check_case(&cases[i]);
  for (uint64_t seed = 0; seed < seeds; seed++)
    check_graph(seed, &zeros, &needs);
  CHECK(found > 400, "only %d comparisons had bands", found);
  CHECK(argc > 1 || (zeros > 100 && needs > 100), "only %d facts about zeros, %d about needs",
        zeros, needs);
  return support_finish("test_bands");
}
