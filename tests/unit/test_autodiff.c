// test_autodiff.c: every gradient rule, for every operand, against finite differences and against
// dual numbers (forward mode of the oracle), in double precision; and the sweep itself.
#include "support_passes.h"

#include "ir/builder.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- one rule ------------------------------------------------------------------------------
// A text that computes %o from inputs. Gradients are taken for all floating-point inputs, of
// loss = sum(o * random weights).
typedef struct grad_case {
  const char *what;
  const char *text;
  double lo, hi; // range of the inputs
} grad_case;

#define X(s)          "%x = input : f32" s "\n"
#define Y(s)          "%y = input : f32" s "\n"
#define UNARY(op, s)  X(s) "%o = " op " %x : f32" s
#define BINARY(op, s) X(s) Y(s) "%o = " op " %x, %y : f32" s

static const grad_case cases[] = {
    {"copy", UNARY("copy", "[3,2]"), -2, 2},
    {"cast to f64 and back", X("[5]") "%w = cast %x : f64[5]\n%o = mul %w, %w : f64[5]", -2, 2},
    {"tf32 passes gradients on", X("[4]") "%r = tf32 %x : f32[4]\n%o = mul %r, %r : f32[4]", -2, 2},
    {"cast to bf16 and back, through views",
     X("[2,6]") "%n = cast %x : bf16[2,6]\n%t = transpose %n {perm=[1,0]} : bf16[6,2]\n"
                "%s = slice %t {start=[1,0],stop=[5,2],step=[1,1]} : bf16[4,2]\n"
                "%c = concat %s, %t {axis=0} : bf16[10,2]\n%w = cast %c : f32[10,2]\n"
                "%o = mul %w, %w : f32[10,2]",
     -2, 2},
    {"cast to f16 twice used",
     X("[4]") "%n = cast %x : f16[4]\n%a = cast %n : f32[4]\n%b = cast %n : f64[4]\n"
              "%c = cast %b : f32[4]\n%o = mul %a, %c : f32[4]",
     -2, 2},
    {"cast to integer gives nothing",
     X("[5]") "%k = cast %x : i32[5]\n%c = cast %k : f32[5]\n%o = mul %c, %x : f32[5]", 0.2, 0.8},
    {"neg", UNARY("neg", "[4]"), -2, 2},
    {"abs", UNARY("abs", "[2,3]"), -2, 2},
    {"sqrt", UNARY("sqrt", "[4]"), 0.2, 3},
    {"rsqrt", UNARY("rsqrt", "[4]"), 0.2, 3},
    {"exp", UNARY("exp", "[2,2,2]"), -2, 2},
    {"expm1", UNARY("expm1", "[4]"), -2, 2},
    {"log", UNARY("log", "[4]"), 0.2, 3},
    {"log1p", UNARY("log1p", "[4]"), -0.5, 3},
    {"sin", UNARY("sin", "[4]"), -3, 3},
    {"cos", UNARY("cos", "[4]"), -3, 3},
    {"tanh", UNARY("tanh", "[4]"), -3, 3},
    {"sigmoid", UNARY("sigmoid", "[4]"), -20, 5},
    {"erf", UNARY("erf", "[4]"), -2, 2},
    {"floor and sign give nothing",
     X("[4]") "%f = floor %x : f32[4]\n%s = sign %x : f32[4]\n%t = add %f, %s : f32[4]\n"
              "%o = mul %t, %x : f32[4]",
     0.2, 0.8},
    {"scalar", UNARY("exp", "[]"), -2, 2},
    {"add", BINARY("add", "[2,3]"), -2, 2},
    {"sub", BINARY("sub", "[2,3]"), -2, 2},
    {"mul", BINARY("mul", "[2,3]"), -2, 2},
    {"mul with itself", X("[4]") "%o = mul %x, %x : f32[4]", -2, 2},
    {"div", BINARY("div", "[2,3]"), 0.3, 2},
    {"mod", BINARY("mod", "[6]"), 0.3, 2},
    {"pow", BINARY("pow", "[4]"), 0.3, 2},
    {"pow of a negative base", X("[3]") "%k = const {value=3.0} : f32[3]\n%o = pow %x, %k : f32[3]",
     -2, -0.5},
    {"max", BINARY("max", "[6]"), -2, 2},
    {"min", BINARY("min", "[6]"), -2, 2},
    {"select",
     X("[6]") Y("[6]") "%c = gt %x, %y : bool[6]\n%s = mul %x, %y : f32[6]\n"
                       "%o = select %c, %s, %y : f32[6]",
     -2, 2},
    {"sum of all", X("[2,3]") "%o = sum %x {axes=[0,1]} : f32[1,1]", -2, 2},
    {"sum of the middle", X("[2,3,2]") "%o = sum %x {axes=[1]} : f32[2,1,2]", -2, 2},
    {"reduce_max", X("[4,3]") "%o = reduce_max %x {axes=[1]} : f32[4,1]", -2, 2},
    {"reduce_min", X("[4,3,2]") "%o = reduce_min %x {axes=[0,2]} : f32[1,3,1]", -2, 2},
    {"reshape", X("[2,6]") "%o = reshape %x : f32[3,4]", -2, 2},
    {"transpose", X("[2,3,4]") "%o = transpose %x {perm=[2,0,1]} : f32[4,2,3]", -2, 2},
    {"broadcast", X("[1,3,1]") "%o = broadcast %x : f32[2,3,4]", -2, 2},
    {"slice", X("[5,4]") "%o = slice %x {start=[1,0],stop=[4,3],step=[1,1]} : f32[3,3]", -2, 2},
    {"slice with steps",
     X("[7,5,2]") "%o = slice %x {start=[1,0,0],stop=[6,5,2],step=[2,3,1]} : f32[3,2,2]", -2, 2},
    {"slice with a step, last elements unused",
     X("[10]") "%o = slice %x {start=[1],stop=[5],step=[3]} : f32[2]", -2, 2},
    {"slice with a step beyond its end",
     X("[7,3]") "%o = slice %x {start=[2,0],stop=[5,3],step=[7,1]} : f32[1,3]", -2, 2},
    {"slice of rank 8",
     X("[1,2,1,2,1,1,1,3]") "%o = slice %x {start=[0,0,0,0,0,0,0,0],stop=[1,2,1,2,1,1,1,3],"
                            "step=[1,1,1,2,1,1,1,2]} : f32[1,2,1,1,1,1,1,2]",
     -2, 2},
    {"windows that overlap",
     X("[2,7,2]") "%o = windows %x {axes=[1],size=[3],step=[1],dilate=[1]} : f32[2,5,2,3]", -2, 2},
    {"windows side by side, one element left over",
     X("[7,2]") "%o = windows %x {axes=[0],size=[2],step=[2],dilate=[1]} : f32[3,2,2]", -2, 2},
    {"windows with gaps between them",
     X("[9]") "%o = windows %x {axes=[0],size=[2],step=[4],dilate=[1]} : f32[2,2]", -2, 2},
    {"windows at every second place",
     X("[11,2]") "%o = windows %x {axes=[0],size=[5],step=[2],dilate=[1]} : f32[4,2,5]", -2, 2},
    {"dilated windows",
     X("[10]") "%o = windows %x {axes=[0],size=[3],step=[1],dilate=[2]} : f32[6,3]", -2, 2},
    {"dilated windows at every second place",
     X("[12]") "%o = windows %x {axes=[0],size=[3],step=[2],dilate=[3]} : f32[3,3]", -2, 2},
    {"windows of two axes",
     X("[2,6,7,3]") "%o = windows %x {axes=[1,2],size=[3,2],step=[1,3],dilate=[1,2]} "
                    ": f32[2,4,2,3,3,2]",
     -2, 2},
    {"windows of three axes, rank 8",
     X("[1,3,4,3,2]") "%o = windows %x {axes=[1,2,3],size=[2,2,3],step=[1,2,1],dilate=[1,1,1]} "
                      ": f32[1,2,2,1,2,2,2,3]",
     -2, 2},
    {"two windows of one shape, of other steps",
     X("[8]") "%y = input : f32[13]\n%v = windows %x {axes=[0],size=[3],step=[1],dilate=[1]} : "
              "f32[6,3]\n"
              "%u = windows %y {axes=[0],size=[3],step=[2],dilate=[1]} : f32[6,3]\n"
              "%p = mul %v, %u : f32[6,3]\n%o = sum %p {axes=[1]} : f32[6,1]",
     -2, 2},
    {"two windows of one shape and step, of a tensor and a longer one",
     X("[9]") "%y = input : f32[10]\n%v = windows %x {axes=[0],size=[5],step=[3],dilate=[1]} : "
              "f32[2,5]\n"
              "%u = windows %y {axes=[0],size=[5],step=[3],dilate=[1]} : f32[2,5]\n%p = mul %v, %u "
              ": f32[2,5]\n%o = sum %p {axes=[1]} : f32[2,1]",
     -2, 2},
    {"two windows of one shape and step, of a tensor and a shorter one",
     X("[10]") "%y = input : f32[8]\n%v = windows %x {axes=[0],size=[5],step=[3],dilate=[1]} : "
               "f32[2,5]\n"
               "%u = windows %y {axes=[0],size=[5],step=[3],dilate=[1]} : f32[2,5]\n%p = mul %v, "
               "%u : f32[2,5]\n%o = sum %p {axes=[1]} : f32[2,1]",
     -2, 2},
    {"two windows of one shape of two axes, of a tensor that is longer along one and shorter along "
     "the other",
     X("[9,10,2]") "%y = input : f32[10,8,2]\n"
                   "%v = windows %x {axes=[0,1],size=[5,5],step=[3,3],dilate=[1,1]} : "
                   "f32[2,2,2,5,5]\n"
                   "%u = windows %y {axes=[0,1],size=[5,5],step=[3,3],dilate=[1,1]} : "
                   "f32[2,2,2,5,5]\n%p = mul %v, %u : f32[2,2,2,5,5]\n%o = sum %p {axes=[3,4]} : "
                   "f32[2,2,2,1,1]",
     -2, 2},
    {"windows of one element",
     X("[5,3]") "%o = windows %x {axes=[0],size=[1],step=[2],dilate=[1]} : f32[3,3,1]", -2, 2},
    {"conv",
     X("[2,5,6,3]") Y("[3,2,3,4]") "%o = conv %x, %y {step=[1,1],dilate=[1,1]} "
                                   ": f32[2,3,5,4]",
     -2, 2},
    {"conv at every second place",
     X("[2,7,6,2]") Y("[3,3,2,3]") "%o = conv %x, %y {step=[2,2],dilate=[1,1]} : f32[2,3,2,3]", -2,
     2},
    {"conv with a step beyond its kernel",
     X("[1,8,7,2]") Y("[2,1,2,2]") "%o = conv %x, %y {step=[3,2],dilate=[1,1]} : f32[1,3,4,2]", -2,
     2},
    {"conv, dilated",
     X("[2,9,6,2]") Y("[3,2,2,2]") "%o = conv %x, %y {step=[1,1],dilate=[3,2]} : f32[2,3,4,2]", -2,
     2},
    {"conv, dilated, at every second place",
     X("[1,9,8,1]") Y("[2,3,1,2]") "%o = conv %x, %y {step=[2,1],dilate=[3,2]} : f32[1,3,4,2]", -2,
     2},
    {"conv of one element",
     X("[2,3,3,4]") Y("[1,1,4,2]") "%o = conv %x, %y {step=[2,1],dilate=[1,1]} : f32[2,2,3,2]", -2,
     2},
    {"conv along one axis",
     X("[2,11,2]") Y("[4,2,3]") "%o = conv %x, %y {step=[3],dilate=[1]} : f32[2,3,3]", -2, 2},
    {"conv in space",
     X("[1,4,3,5,2]") Y("[2,2,3,2,2]") "%o = conv %x, %y {step=[2,1,1],dilate=[1,1,2]} "
                                       ": f32[1,2,2,1,2]",
     -2, 2},
    {"pad", X("[3,2]") "%o = pad %x {lo=[1,0],hi=[0,2],value=5.0} : f32[4,4]", -2, 2},
    {"concat", X("[2,3]") Y("[2,1]") "%o = concat %x, %y, %x {axis=1} : f32[2,7]", -2, 2},
    {"insert", X("[3,4]") Y("[2,2]") "%o = insert %x, %y {lo=[1,1]} : f32[3,4]", -2, 2},
    {"gather", X("[3,2]") "%k = input : i32[4]\n%o = gather %x, %k : f32[4,2]", 0, 2.9},
    {"gather by a matrix", X("[3]") "%k = input : i32[2,3]\n%o = gather %x, %k : f32[2,3]", 0, 2.9},
    {"gather backwards",
     X("[3,2]") "%n = const {value=2.0} : i32[3]\n%i = iota {axis=0} : i32[3]\n"
                "%k = sub %n, %i : i32[3]\n%o = gather %x, %k : f32[3,2]",
     -2, 2},
    {"gather of the first ones backwards",
     X("[4,2]") "%n = const {value=2.0} : i32[3]\n%i = iota {axis=0} : i32[3]\n"
                "%k = sub %n, %i : i32[3]\n%o = gather %x, %k : f32[3,2]",
     -2, 2},
    {"scatter_add", X("[4,2]") "%k = input : i32[4]\n%o = scatter_add %k, %x : f32[3,2]", 0, 2.9},
    {"scatter_max",
     X("[4,2]") "%k = input : i32[4]\n%m = scatter_max %k, %x : f32[3,2]\n"
                "%o = gather %m, %k : f32[4,2]",
     0, 2.9},
    {"matmul", X("[3,4]") Y("[4,2]") "%o = matmul %x, %y {ta=false,tb=false} : f32[3,2]", -2, 2},
    {"matmul tb", X("[3,4]") Y("[2,4]") "%o = matmul %x, %y {ta=false,tb=true} : f32[3,2]", -2, 2},
    {"matmul ta", X("[4,3]") Y("[4,2]") "%o = matmul %x, %y {ta=true,tb=false} : f32[3,2]", -2, 2},
    {"matmul ta tb", X("[4,3]") Y("[2,4]") "%o = matmul %x, %y {ta=true,tb=true} : f32[3,2]", -2,
     2},
    {"matmul in batches, ta",
     X("[2,4,3]") Y("[2,4,2]") "%o = matmul %x, %y {ta=true,tb=false} : f32[2,3,2]", -2, 2},
    {"matmul in batches, tb",
     X("[2,1,3,4]") Y("[2,1,2,4]") "%o = matmul %x, %y {ta=false,tb=true} : f32[2,1,3,2]", -2, 2},
    {"matmul with itself", X("[3,3]") "%o = matmul %x, %x {ta=false,tb=true} : f32[3,3]", -2, 2},
    {"softmax",
     X("[3,4]") "%m = reduce_max %x {axes=[1]} : f32[3,1]\n%b = broadcast %m : f32[3,4]\n"
                "%d = sub %x, %b : f32[3,4]\n%e = exp %d : f32[3,4]\n"
                "%s = sum %e {axes=[1]} : f32[3,1]\n%t = broadcast %s : f32[3,4]\n"
                "%o = div %e, %t : f32[3,4]",
     -2, 2},
    {"layer norm",
     X("[3,8]") "%k = const {value=8.0} : f32[3,1]\n%e = const {value=0.1} : f32[3,1]\n"
                "%s = sum %x {axes=[1]} : f32[3,1]\n%m = div %s, %k : f32[3,1]\n"
                "%b = broadcast %m : f32[3,8]\n%d = sub %x, %b : f32[3,8]\n"
                "%q = mul %d, %d : f32[3,8]\n%t = sum %q {axes=[1]} : f32[3,1]\n"
                "%v = div %t, %k : f32[3,1]\n%w = add %v, %e : f32[3,1]\n"
                "%r = rsqrt %w : f32[3,1]\n%u = broadcast %r : f32[3,8]\n"
                "%o = mul %d, %u : f32[3,8]",
     -2, 2},
};

// loss = sum(o * weights); d.INPUT results for every floating-point input.
static ir_module *with_gradients(ir_arena *a, const char *text) {
  ir_module *m = test_module(a, NULL, text);
  ir_func *f = m->funcs.at[0];
  ir_builder b = ir_build_at_end(f);
  ir_node *o = ir_map_get(f->names, "o");
  size_t num = f->nodes.num;
  ir_node *x = ir_binary(&b, IR_MUL, o, ir_input(&b, "weights", o->type));
  int64_t all[IR_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  ir_node *loss = ir_reshape(&b, ir_reduce(&b, IR_SUM, x, all, o->type.rank), 0, NULL);
  ir_result_add(f, "loss", IR_RESULT_OUTPUT, loss);
  for (size_t i = 0; i < num; i++) {
    ir_node *n = f->nodes.at[i];
    if (n->op == IR_INPUT && ir_is_float(n->type.dtype))
      ir_result_add(f, n->name, IR_RESULT_OUTPUT, ir_grad(&b, loss, n));
  }
  return m;
}

typedef struct experiment {
  const grad_case *c;
  ir_arena *arena;
  const ir_func *f;
  ir_world *world;
  IR_VEC(ir_tensor_value) inputs;
} experiment;

static experiment new_experiment(ir_arena *a, const grad_case *c, const ir_module *m) {
  experiment e = {.c = c, .arena = a, .f = m->funcs.at[0], .world = ir_world_new(a, m)};
  uint64_t seed = ir_hash(c->text, strlen(c->text));
  for (size_t i = 0; i < e.f->nodes.num; i++) {
    ir_type t = e.f->nodes.at[i]->type;
    if (e.f->nodes.at[i]->op != IR_INPUT)
      continue;
    ir_tensor_value v = {t, IR_NEW_ARRAY(a, double, ir_elements(&t))};
    for (int64_t k = 0; k < ir_elements(&t); k++) {
      v.at[k] = test_random(&seed, c->lo, c->hi);
      if (!ir_is_float(t.dtype))
        v.at[k] = floor(v.at[k]);
    }
    IR_PUSH(a, e.inputs, v);
  }
  return e;
}

static double loss_of(const experiment *e) {
  ir_tensor_value *v = ir_interp(e->world, e->f, e->inputs.at);
  return v[e->f->results.at[0].node->id].at[0];
}

static void compare(const experiment *e, const char *how, const char *wrt, int64_t k, double got,
                    double want) {
  if (!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))))
    test_fail("%s: d.%s[%lld] is %.12g, %s gives %.12g", e->c->what, wrt, (long long)k, got, how,
              want);
}

static void check_finite_difference(experiment *e, double *x, const char *wrt, int64_t k,
                                    double got) {
  const double h = 1e-5;
  double at = *x;
  *x = at + h;
  double above = loss_of(e);
  *x = at - h;
  double below = loss_of(e);
  *x = at;
  compare(e, "finite differences", wrt, k, got, (above - below) / (2 * h));
}

static void check_dual(experiment *e, size_t input, const char *wrt, int64_t k, double got) {
  ir_tensor_value *t = IR_NEW_ARRAY(e->arena, ir_tensor_value, e->inputs.num);
  t[input].type = e->inputs.at[input].type;
  t[input].at = IR_NEW_ARRAY(e->arena, double, ir_elements(&t[input].type));
  t[input].at[k] = 1;
  ir_tensor_value *v = ir_interp_tangent(e->world, e->f, e->inputs.at, NULL, t);
  compare(e, "forward mode", wrt, k, got, v[e->f->results.at[0].node->id].at[0]);
}

// Narrowing is a step function, and has the slope of what it narrows by rule.
static bool has_steps(const grad_case *c) {
  return strstr(c->text, "= tf32") || strstr(c->text, "f16[");
}

static void check_input(experiment *e, const ir_tensor_value *values, size_t input, size_t result) {
  const ir_result *r = &e->f->results.at[result];
  const ir_tensor_value *g = &values[r->node->id];
  ir_tensor_value *x = &e->inputs.at[input];
  if (!ir_same_type(&g->type, &x->type))
    test_fail("%s: d.%s has another type", e->c->what, r->name);
  for (int64_t k = 0; k < ir_elements(&x->type); k++) {
    if (!has_steps(e->c))
      check_finite_difference(e, &x->at[k], r->name, k, g->at[k]);
    check_dual(e, input, r->name, k, g->at[k]);
  }
}

static void check_gradients(const grad_case *c) {
  ir_arena *a = ir_arena_new();
  ir_module *m = with_gradients(a, c->text);
  ir_diags *d = diag_new(a);
  pass_autodiff(m, d);
  ir_buf faults = ir_buf_new(a);
  if (ir_verify(m, &faults))
    test_fail("%s: invalid IR\n%s", c->what, ir_buf_str(&faults));
  if (diag_num_errors(d))
    test_fail("%s: errors reported", c->what);
  experiment e = new_experiment(a, c, m);
  ir_tensor_value *values = ir_interp(e.world, e.f, e.inputs.at);
  size_t result = 1;
  for (size_t i = 0; i + 1 < e.inputs.num; i++) // the last input is the weights
    if (ir_is_float(e.inputs.at[i].type.dtype))
      check_input(&e, values, i, result++);
  if (result != e.f->results.num || result == 1)
    test_fail("%s: %zu gradients were checked", c->what, result - 1);
  ir_arena_free(a);
}

// --- windows of random shapes, with what is mostly made of them ----------------------------------
typedef struct window_shape {
  int rank, num;
  int64_t dims[4], axes[2], size[2], step[2], dilate[2];
} window_shape;

static int64_t draw(uint64_t *seed, int64_t lo, int64_t hi) {
  return lo + (int64_t)floor(test_random(seed, 0, (double)(hi - lo + 1)));
}

static window_shape random_windows(uint64_t *seed) {
  window_shape s = {.rank = (int)draw(seed, 1, 4)};
  s.num = s.rank > 1 ? (int)draw(seed, 1, 2) : 1;
  for (int i = 0; i < s.rank; i++)
    s.dims[i] = draw(seed, 1, 2);
  for (int a = 0; a < s.num; a++) {
    s.axes[a] = a ? draw(seed, s.axes[0] + 1, s.rank - 1) : draw(seed, 0, s.rank - s.num);
    s.size[a] = draw(seed, 1, s.num > 1 ? 3 : 5);
    s.step[a] = draw(seed, 1, 3);
    s.dilate[a] = draw(seed, 0, 2) ? 1 : 2;
    s.dims[s.axes[a]] = (s.size[a] - 1) * s.dilate[a] + draw(seed, 1, 4);
  }
  return s;
}

static const char *numbers(ir_arena *a, const int64_t *at, int num) {
  ir_buf b = ir_buf_new(a);
  for (int i = 0; i < num; i++)
    ir_buf_printf(&b, "%s%" PRId64, i ? "," : "", at[i]);
  return ir_buf_str(&b);
}

static const char *const of_windows[] = {
    // sums of products: convolutions of each channel
    "%p = mul %v, %k : f32[FULL]\n%o = sum %p {axes=[INSIDE]} : f32[PLACES]",
    // means and maxima
    "%o = sum %v {axes=[INSIDE]} : f32[PLACES]",
    "%o = reduce_max %v {axes=[INSIDE]} : f32[PLACES]",
    // what is no number, or not 0, beside the places and the windows
    "%q = div %v, %k : f32[FULL]\n%e = exp %q : f32[FULL]\n%p = mul %e, %v : f32[FULL]\n"
    "%o = sum %p {axes=[INSIDE]} : f32[PLACES]",
    "%p = mul %v, %k : f32[FULL]\n%o = sum %p {axes=[ALL]} : f32[ONES]",
    "%p = mul %v, %v : f32[FULL]\n%o = sum %p {axes=[ALL]} : f32[ONES]",
    "%l = log %k : f32[FULL]\n%c = gt %v, %k : bool[FULL]\n%q = select %c, %l, %v : f32[FULL]\n"
    "%p = mul %q, %v : f32[FULL]\n%o = sum %p {axes=[INSIDE]} : f32[PLACES]",
    // shares of what a window has
    "%z = sum %v {axes=[INSIDE]} : f32[PLACES]\n%zb = broadcast %z : f32[FULL]\n"
    "%q = div %v, %zb : f32[FULL]\n%p = mul %q, %k : f32[FULL]\n"
    "%o = sum %p {axes=[INSIDE]} : f32[PLACES]",
    "%z = sum %v {axes=[INSIDE]} : f32[PLACES]\n%zb = broadcast %z : f32[FULL]\n"
    "%zk = mul %zb, %k : f32[FULL]\n%r = sqrt %zk : f32[FULL]\n%p = mul %r, %v : f32[FULL]\n"
    "%o = sum %p {axes=[INSIDE]} : f32[PLACES]",
    "%c = const {value=3} : f32[FULL]\n%p = mul %v, %c : f32[FULL]\n"
    "%o = sum %p {axes=[ALL]} : f32[ONES]",
    "%z = sum %v {axes=[INSIDE]} : f32[PLACES]\n%r = sqrt %z : f32[PLACES]\n"
    "%rb = broadcast %r : f32[FULL]\n%q = div %k, %rb : f32[FULL]\n%p = mul %q, %v : f32[FULL]\n"
    "%o = sum %p {axes=[INSIDE]} : f32[PLACES]",
};

// `twice`: of the gradient by x of a sum of squares, which is %o then.
static void check_windows(uint64_t seed, bool twice) {
  ir_arena *a = ir_arena_new();
  window_shape s = random_windows(&seed);
  int full = s.rank + s.num;
  int64_t dims[8], places[8], kernel[8], axes[8], ones[8];
  for (int i = 0; i < full; i++) {
    dims[i] = places[i] = i < s.rank ? s.dims[i] : s.size[i - s.rank];
    kernel[i] = i < s.rank ? draw(&seed, 0, 1) ? dims[i] : 1 : dims[i];
    axes[i] = i;
    ones[i] = 1;
  }
  for (int k = 0; k < s.num; k++) {
    dims[s.axes[k]] = (s.dims[s.axes[k]] - (s.size[k] - 1) * s.dilate[k] - 1) / s.step[k] + 1;
    places[s.axes[k]] = dims[s.axes[k]];
    places[s.rank + k] = kernel[s.axes[k]] = 1;
  }
  const char *text =
      ir_format(a,
                "%%x = input : f32[%s]\n%%w = input : f32[%s]\n%%k = broadcast %%w : f32[FULL]\n"
                "%%v = windows %%x {axes=[%s],size=[%s],step=[%s],dilate=[%s]} : f32[FULL]\n%s",
                numbers(a, s.dims, s.rank), numbers(a, kernel, full), numbers(a, s.axes, s.num),
                numbers(a, s.size, s.num), numbers(a, s.step, s.num), numbers(a, s.dilate, s.num),
                of_windows[draw(&seed, 0, sizeof of_windows / sizeof *of_windows - 1)]);
  if (twice)
    text = ir_format(a,
                     "%s\n%%squares = mul %%first, %%first : f32[%s]\n"
                     "%%all = sum %%squares {axes=[ALL]} : f32[ONES]\n"
                     "%%loss = reshape %%all : f32[]\n%%o = grad %%loss, %%x : f32[%s]",
                     ir_replace(a, text, "%o =", "%first ="),
                     strstr(text, "ONES") ? "ONES" : "PLACES", numbers(a, s.dims, s.rank));
  text = ir_replace(a, text, "FULL", numbers(a, dims, full));
  text = ir_replace(a, text, "PLACES", numbers(a, places, full));
  text = ir_replace(a, text, "ONES", numbers(a, ones, full));
  text = ir_replace(a, text, "INSIDE", numbers(a, axes + s.rank, s.num));
  text = ir_replace(a, text, "ALL", numbers(a, axes, full));
  grad_case c = {text, text, twice ? 0.7 : 0.3,
                 twice ? 1.5 : 2}; // differences of steep ones are far off
  check_gradients(&c);
  ir_arena_free(a);
}

// --- the sweep -----------------------------------------------------------------------------
static ir_module *differentiated(ir_arena *a, const char *states, const char *text, ir_diags *d) {
  ir_module *m = test_module(a, states, text);
  pass_autodiff(m, d);
  ir_buf faults = ir_buf_new(a);
  if (diag_num_errors(d) == 0 && ir_verify(m, &faults))
    test_fail("invalid IR\n%s", ir_buf_str(&faults));
  return m;
}

// Gradients of one loss come from one sweep, are named after their nodes, and any node can be
// asked for: here a parameter, an inner node, the loss itself, and one node twice.
static void check_one_sweep(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = differentiated(
      a, NULL,
      "%x = input : f32[]\n%y = sin %x : f32[] loc(3:1)\n%z = mul %y, %y : f32[]\n"
      "%d.x = grad %z, %x : f32[]\n%use = neg %d.x : f32[]\n%d.y = grad %z, %y : f32[]\n"
      "%d.z = grad %z, %z : f32[]\n%again = grad %z, %x : f32[]\n"
      "result output x = %d.x\nresult output use = %use\nresult output y = %d.y\n"
      "result output z = %d.z\nresult output again = %again",
      diag_new(a));
  const char *want =
      "mltc-ir 1\nmodule t\nfunc f {\n"
      "%x = input : f32[]\n%y = sin %x : f32[] loc(3:1)\n"
      "%d.z = const {value=1.0} : f32[]\n%d.z.mul = mul %d.z, %y : f32[]\n"
      "%d.z.mul.2 = mul %d.z, %y : f32[]\n%d.y = add %d.z.mul, %d.z.mul.2 : f32[]\n"
      "%d.y.cos = cos %x : f32[] loc(3:1)\n%d.x = mul %d.y, %d.y.cos : f32[] loc(3:1)\n"
      "%use = neg %d.x : f32[]\n"
      "result output x = %d.x\nresult output use = %use\nresult output y = %d.y\n"
      "result output z = %d.z\nresult output again = %d.x\n}\n";
  test_same_text("one sweep", test_print(a, m), test_print(a, test_parse(a, want)));
  ir_arena_free(a);
}

// Only nodes between a `wrt` node and the loss get adjoints; stop and integers cut paths.
static void check_only_on_path(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = differentiated(
      a, NULL,
      "%x = input : f32[]\n%w = input : f32[]\n%e = exp %x : f32[]\n%s = stop %w : f32[]\n"
      "%p = mul %e, %w : f32[]\n%l = mul %p, %s : f32[]\n"
      "%g = grad %l, %w : f32[]\nresult output g = %g",
      diag_new(a));
  const ir_func *f = m->funcs.at[0];
  int exps = 0, adds = 0;
  for (size_t i = 0; i < f->nodes.num; i++) {
    exps += f->nodes.at[i]->op == IR_EXP;
    adds += f->nodes.at[i]->op == IR_ADD;
  }
  if (exps != 1 || adds != 0 || f->nodes.num != 7)
    test_fail("on the path only: %zu nodes, %d exp, %d add\n%s", f->nodes.num, exps, adds,
              test_print(a, m));
  ir_arena_free(a);
}

// The gradient of a gradient: x^3 -> 3 x^2 -> 6 x, in one pass.
static void check_second_order(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m =
      differentiated(a, "state x : f32[] role=param",
                     "%x = read @x : f32[]\n%q = mul %x, %x : f32[]\n%l = mul %q, %x : f32[]\n"
                     "%g = grad %l, %x : f32[]\n%h = grad %g, %x : f32[]\n"
                     "result output g = %g\nresult output h = %h",
                     diag_new(a));
  ir_world *w = ir_world_new(a, m);
  w->states[0].at[0] = 1.5;
  ir_tensor_value *v = ir_interp(w, m->funcs.at[0], NULL);
  double g = v[m->funcs.at[0]->results.at[0].node->id].at[0];
  double h = v[m->funcs.at[0]->results.at[1].node->id].at[0];
  if (fabs(g - 6.75) > 1e-12 || fabs(h - 9) > 1e-12)
    test_fail("second order: %g (6.75), %g (9)", g, h);
  ir_arena_free(a);
}

typedef struct tie_case {
  const char *what, *text;
  double x, y, dx, dy;
} tie_case;

#define TIE(line)                                                                                  \
  "%x = input : f32[]\n%y = input : f32[]\n" line "%dx = grad %o, %x : f32[]\n"                    \
  "%dy = grad %o, %y : f32[]\nresult output dx = %dx\nresult output dy = %dy"
#define JOIN                                                                                       \
  "%a = reshape %x : f32[1]\n%b = reshape %y : f32[1]\n%j = concat %a, %b {axis=0} : f32[2]\n"

// What the rules promise where a derivative does not exist.
static const tie_case ties[] = {
    {"max, tie: first", TIE("%o = max %x, %y : f32[]\n"), 2, 2, 1, 0},
    {"max, second wins", TIE("%o = max %x, %y : f32[]\n"), 1, 2, 0, 1},
    {"min, tie: first", TIE("%o = min %x, %y : f32[]\n"), 2, 2, 1, 0},
    {"reduce_max, tie: shared",
     TIE(JOIN "%m = reduce_max %j {axes=[0]} : f32[1]\n%o = reshape %m : f32[]\n"), 2, 2, 0.5, 0.5},
    {"reduce_min, no tie",
     TIE(JOIN "%m = reduce_min %j {axes=[0]} : f32[1]\n%o = reshape %m : f32[]\n"), 2, 1, 0, 1},
    {"0 ^ 2", TIE("%o = pow %x, %y : f32[]\n"), 0, 2, 0, 0},
    {"0 ^ 0", TIE("%o = pow %x, %y : f32[]\n"), 0, 0, 0, 0},
    {"(-2) ^ 2", TIE("%o = pow %x, %y : f32[]\n"), -2, 2, -4, 0},
    {"sqrt 0", TIE("%s = sqrt %x : f32[]\n%o = add %s, %y : f32[]\n"), 0, 1, INFINITY, 1},
    {"abs 0", TIE("%s = abs %x : f32[]\n%o = add %s, %y : f32[]\n"), 0, 1, 0, 1},
};

static void check_tie(const tie_case *c) {
  ir_arena *a = ir_arena_new();
  ir_module *m = differentiated(a, NULL, c->text, diag_new(a));
  ir_tensor_value in[2] = {{ir_scalar(IR_F32), (double[]){c->x}},
                           {ir_scalar(IR_F32), (double[]){c->y}}};
  const ir_func *f = m->funcs.at[0];
  ir_tensor_value *v = ir_interp(ir_world_new(a, m), f, in);
  double dx = v[f->results.at[0].node->id].at[0], dy = v[f->results.at[1].node->id].at[0];
  if (dx != c->dx || dy != c->dy)
    test_fail("%s: gradients %g, %g; not %g, %g", c->what, dx, dy, c->dx, c->dy);
  ir_arena_free(a);
}

// --- diagnostics ---------------------------------------------------------------------------
static const char *diag_text(ir_arena *a, const ir_diags *d) {
  char *text = NULL;
  size_t len = 0;
  FILE *f = open_memstream(&text, &len);
  diag_print(d, f, false);
  fclose(f);
  char *kept = ir_strndup(a, text, len);
  free(text);
  return kept;
}

static int occurrences(const char *text, const char *word) {
  int n = 0;
  while ((text = strstr(text, word)) != NULL) {
    n++;
    text += strlen(word);
  }
  return n;
}

// A parameter without influence: zero, and a warning that names it.
static void check_no_influence(void) {
  ir_arena *a = ir_arena_new();
  ir_diags *d = diag_new(a);
  ir_module *m =
      differentiated(a, "state layer.w : f32[2] role=param",
                     "%w = read @layer.w : f32[2]\n%x = input : f32[]\n%l = exp %x : f32[]\n"
                     "%g = grad %l, %w : f32[2]\nresult output g = %g",
                     d);
  const ir_node *g = m->funcs.at[0]->results.at[0].node;
  if (g->op != IR_CONST || ir_attr_num(g, IR_ATTR_VALUE) != 0)
    test_fail("no influence: the gradient is not zero");
  const char *text = diag_text(a, d);
  if (occurrences(text, "W0502") != 1 || !strstr(text, "layer.w") || diag_num_errors(d))
    test_fail("no influence: the warning is\n%s", text);
  ir_arena_free(a);
}

// No op of the language lacks a rule on purpose, so this breaks the IR: it computes with writes.
// Both are reported, though one hides behind the other, and each once, though two losses need it.
static void check_missing_rules(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = test_module(a, "state s : f32[] role=buffer\nstate t : f32[] role=buffer",
                             "%x = input : f32[]\nresult output x = %x");
  ir_func *f = m->funcs.at[0];
  ir_builder b = ir_build_at_end(f);
  ir_node *s = ir_write(&b, m->states.at[0], f->nodes.at[0]);
  ir_node *t = ir_write(&b, m->states.at[1], s);
  ir_node *loss = ir_unary(&b, IR_EXP, t);
  ir_result_add(f, "g", IR_RESULT_OUTPUT, ir_grad(&b, loss, f->nodes.at[0]));
  ir_node *u = ir_binary(&b, IR_ADD, s, t);
  ir_result_add(f, "h", IR_RESULT_OUTPUT, ir_grad(&b, u, f->nodes.at[0]));
  ir_diags *d = diag_new(a);
  pass_autodiff(m, d);
  if (diag_num_errors(d) != 2 || occurrences(diag_text(a, d), "E0501") != 2)
    test_fail("missing rules: %zu errors\n%s", diag_num_errors(d), diag_text(a, d));
  ir_arena_free(a);
}

// Every op with a rule of its own (column `grad` of ops.def) stands in some case.
static void check_coverage(void) {
  static const char *const rules[IR_NUM_OPS] = {
#define OP(NAME, text, arity, cls, attrs, shape, grad, interp, flops, spell) #grad,
#include "ir/ops.def"
#undef OP
  };
  for (int op = 0; op < IR_NUM_OPS; op++) {
    char use[64];
    snprintf(use, sizeof use, "= %s ", ir_ops[op].name);
    bool seen = !strcmp(rules[op], "zero") || !strcmp(rules[op], "none");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
      seen |= strstr(cases[i].text, use) != NULL;
    if (!seen)
      test_fail("'%s' has a gradient rule and no case here", ir_ops[op].name);
  }
}

int main(void) {
  check_coverage();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    check_gradients(&cases[i]);
  for (size_t i = 0; i < sizeof ties / sizeof ties[0]; i++)
    check_tie(&ties[i]);
  for (uint64_t seed = 1; seed <= 400; seed++)
    check_windows(seed * 7919, false);
  for (uint64_t seed = 401; seed <= 460; seed++)
    check_windows(seed * 7919, true);
  check_one_sweep();
  check_only_on_path();
  check_second_order();
  check_no_influence();
  check_missing_rules();
  return test_report("autodiff");
}
