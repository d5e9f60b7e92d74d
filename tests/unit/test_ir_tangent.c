// test_ir_tangent.c: forward mode (dual numbers) against central differences, for every op that
// takes floats, and over whole random graphs.
#include "tests/unit/support_ir.h"

#include <math.h>
#include <string.h>

static const double STEP = 1e-5, TOLERANCE = 2e-8;

// Values away from kinks and ties; `positive` for roots and logarithms.
static double value_at(uint64_t *state, bool positive) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  double v = 0.25 + 1.5 * ldexp((double)(*state >> 11), -53);
  return !positive && (*state >> 5 & 1) ? -v : v;
}

static ir_tensor_value random_value(ir_arena *a, ir_type t, uint64_t *state, bool positive) {
  ir_tensor_value v = {t, IR_NEW_ARRAY(a, double, ir_elements(&t))};
  for (int64_t i = 0; i < ir_elements(&t); i++)
    v.at[i] = ir_is_float(t.dtype) ? value_at(state, positive) : (double)(i * 7 % 5);
  return v;
}

static ir_tensor_value moved(ir_arena *a, ir_tensor_value x, ir_tensor_value d, double by) {
  ir_tensor_value y = {x.type, IR_NEW_ARRAY(a, double, ir_elements(&x.type))};
  for (int64_t i = 0; i < ir_elements(&x.type); i++)
    y.at[i] = x.at[i] + (ir_is_float(x.type.dtype) ? by * d.at[i] : 0);
  return y;
}

// The tangent of every result of `f` against (f(x + h d) - f(x - h d)) / 2h.
static void compare(ir_arena *a, const ir_func *f, int num, const ir_tensor_value *x,
                    const ir_tensor_value *d, double tolerance, const char *what) {
  ir_tensor_value *hi = IR_NEW_ARRAY(a, ir_tensor_value, num + 1);
  ir_tensor_value *lo = IR_NEW_ARRAY(a, ir_tensor_value, num + 1);
  for (int i = 0; i < num; i++) {
    hi[i] = moved(a, x[i], d[i], STEP);
    lo[i] = moved(a, x[i], d[i], -STEP);
  }
  ir_tensor_value *up = ir_interp(support_world(a, f->module), f, hi);
  ir_tensor_value *down = ir_interp(support_world(a, f->module), f, lo);
  ir_tensor_value *got = ir_interp_tangent(support_world(a, f->module), f, x, NULL, d);
  for (size_t r = 0; r < f->results.num; r++) {
    const ir_node *n = f->results.at[r].node;
    ir_tensor_value want = up[n->id];
    if (!ir_is_float(n->type.dtype))
      continue;
    for (int64_t i = 0; i < ir_elements(&n->type); i++)
      want.at[i] = (up[n->id].at[i] - down[n->id].at[i]) / (2 * STEP);
    double off = support_distance(&got[n->id], &want);
    CHECK(off < tolerance, "%s: %%%s is off by %g", what, n->name, off);
  }
}

// --- one op at a time --------------------------------------------------------------------------
typedef struct line {
  const char *text; // operands are %x %y f32[3,4], %p f32[3,4] positive, %i i32[3], %b bool[3,4]
  bool zero;        // the tangent must be zero: jumps and ends of gradients
} line;

static const line lines[] = {
    {"copy %x : f32[3,4]", false},
    {"stop %x : f32[3,4]", true},
    {"cast %x : f64[3,4]", false},
    {"neg %x : f32[3,4]", false},
    {"abs %x : f32[3,4]", false},
    {"sign %x : f32[3,4]", true},
    {"floor %x : f32[3,4]", true},
    {"sqrt %p : f32[3,4]", false},
    {"rsqrt %p : f32[3,4]", false},
    {"exp %x : f32[3,4]", false},
    {"expm1 %x : f32[3,4]", false},
    {"log %p : f32[3,4]", false},
    {"log1p %p : f32[3,4]", false},
    {"sin %x : f32[3,4]", false},
    {"cos %x : f32[3,4]", false},
    {"tanh %x : f32[3,4]", false},
    {"sigmoid %x : f32[3,4]", false},
    {"erf %x : f32[3,4]", false},
    {"add %x, %y : f32[3,4]", false},
    {"sub %x, %y : f32[3,4]", false},
    {"mul %x, %y : f32[3,4]", false},
    {"div %x, %y : f32[3,4]", false},
    {"mod %x, %p : f32[3,4]", false},
    {"pow %p, %y : f32[3,4]", false},
    {"max %x, %y : f32[3,4]", false},
    {"min %x, %y : f32[3,4]", false},
    {"select %b, %x, %y : f32[3,4]", false},
    {"sum %x {axes=[1]} : f32[3,1]", false},
    {"reduce_max %x {axes=[0]} : f32[1,4]", false},
    {"reduce_min %x {axes=[0,1]} : f32[1,1]", false},
    {"reshape %x : f32[2,6]", false},
    {"transpose %x {perm=[1,0]} : f32[4,3]", false},
    {"broadcast %r : f32[3,4]", false},
    {"slice %x {start=[0,1], stop=[3,4], step=[2,2]} : f32[2,2]", false},
    {"windows %x {axes=[1], size=[2], step=[2], dilate=[1]} : f32[3,2,2]", false},
    {"pad %x {lo=[1,0], hi=[0,2], value=3.0} : f32[4,6]", false},
    {"concat %x, %r, %y {axis=0} : f32[7,4]", false},
    {"insert %x, %r {lo=[1,0]} : f32[3,4]", false},
    {"gather %x, %i : f32[3,4]", false},
    {"scatter_add %i, %x : f32[2,4]", false},
    {"scatter_max %i, %x : f32[2,4]", false},
    {"matmul %x, %y {ta=false, tb=true} : f32[3,3]", false},
    {"matmul %x, %y {ta=true, tb=false} : f32[4,4]", false},
    {"conv %v, %k {step=[1], dilate=[1]} : f32[2,2,3]", false},
};

static void check_line(const line *l) {
  ir_arena *a = ir_arena_new();
  ir_func *f = ir_find_func(support_step(a, ir_format(a,
                                                      "%%x = input : f32[3,4]\n"
                                                      "%%y = input : f32[3,4]\n"
                                                      "%%p = input : f32[3,4]\n"
                                                      "%%r = input : f32[1,4]\n"
                                                      "%%i = input : i32[3]\n"
                                                      "%%b = input : bool[3,4]\n"
                                                      "%%v = reshape %%x : f32[2,3,2]\n"
                                                      "%%k = reshape %%y : f32[2,2,3]\n"
                                                      "%%out = %s\n"
                                                      "result output out = %%out",
                                                      l->text)),
                            "step");
  enum { NUM = 6 };
  ir_tensor_value x[NUM], d[NUM];
  uint64_t state = 7;
  for (int i = 0; i < NUM; i++) {
    x[i] = random_value(a, f->nodes.at[i]->type, &state, i == 2);
    d[i] = random_value(a, f->nodes.at[i]->type, &state, false);
    for (int64_t k = 0; i == 5 && k < 12; k++)
      x[i].at[k] = (double)(k % 2);
  }
  if (strncmp(l->text, "stop", 4) != 0) // whose tangent is not its slope: that is its purpose
    compare(a, f, NUM, x, d, TOLERANCE, l->text);
  const ir_node *out = f->results.at[0].node;
  ir_tensor_value t = ir_interp_tangent(ir_world_new(a, f->module), f, x, NULL, d)[out->id];
  double most = 0;
  for (int64_t i = 0; i < ir_elements(&out->type); i++)
    most = fmax(most, fabs(t.at[i]));
  CHECK((most == 0) == l->zero, "%s: the largest tangent is %g", l->text, most);
  ir_arena_free(a);
}

// --- ops that give no tangents -------------------------------------------------------------------
static void check_states(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_module(a, "mltc-ir 1\nmodule t\nstate w : f32[2] role=param\n"
                                   "func step {\n  %w = read @w : f32[2]\n"
                                   "  %y = mul %w, %w : f32[2]\n  write @w, %y\n"
                                   "  result output y = %y\n}\n");
  ir_world *w = ir_world_new(a, m);
  w->states[0].at[0] = 3;
  w->states[0].at[1] = -1;
  ir_tensor_value d = support_value(a, m->states.at[0]->type, (double[]){1, 10});
  const ir_func *f = m->funcs.at[0];
  ir_tensor_value t = ir_interp_tangent(w, f, NULL, &d, NULL)[f->results.at[0].node->id];
  CHECK(t.at[0] == 6 && t.at[1] == -20, "tangent of a state: %g %g", t.at[0], t.at[1]);
  CHECK(w->states[0].at[0] == 3, "forward mode writes no state");
  ir_arena_free(a);
}

// Keeps only what the loss needs: gradients are autodiff's to expand. `stop` cuts tangents, not
// values, so that differences cannot follow it: made a copy.
static void keep_loss(ir_func *f) {
  size_t kept = 0;
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    if (n->op == IR_STOP)
      n->op = IR_COPY;
    if (n->op != IR_WRITE)
      f->nodes.at[kept++] = n;
  }
  f->nodes.num = kept;
  f->results.at[0] = f->results.at[f->results.num - 1];
  f->results.num = 1;
  ir_drop_dead(f);
}

// The loss along a line through all inputs; returns the size of its slope.
static double check_random(uint64_t seed, bool networks) {
  ir_arena *a = ir_arena_new();
  ir_random_options o = {
      .seed = seed, .num_nodes = 60, .networks = networks, .differentiable = true};
  ir_module *m = ir_random_module(a, o);
  ir_func *f = ir_find_func(m, "step");
  keep_loss(f);
  support_verifies(m, "only the loss");
  ir_tensor_value *x = ir_random_inputs(a, f, seed);
  ir_tensor_value *d = ir_random_inputs(a, f, seed + 1000);
  compare(a, f, 4, x, d, 1e-7, ir_format(a, "seed %llu", (unsigned long long)seed));
  const ir_node *loss = f->results.at[0].node;
  double slope = ir_interp_tangent(support_world(a, m), f, x, NULL, d)[loss->id].at[0];
  ir_arena_free(a);
  return fabs(slope);
}

int main(void) {
  bool seen[IR_NUM_OPS] = {0};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    ir_op op;
    char name[32] = {0};
    sscanf(lines[i].text, "%31s", name);
    if (CHECK(ir_op_from_name(name, &op), "%s", name))
      seen[op] = true;
    check_line(&lines[i]);
  }
  static const ir_op no_tangent[] = {IR_INPUT,  IR_READ, IR_WRITE, IR_CONST, IR_IOTA,   IR_UNIFORM,
                                     IR_NORMAL, IR_NOT,  IR_AND,   IR_OR,    IR_EQ,     IR_NE,
                                     IR_LT,     IR_LE,   IR_GT,    IR_GE,    IR_ARGMAX, IR_ARGMIN,
                                     IR_GRAD,   IR_TF32}; // steps; its slope is 1 all the same
  for (size_t i = 0; i < sizeof no_tangent / sizeof *no_tangent; i++)
    seen[no_tangent[i]] = true;
  for (int op = 0; op < IR_NUM_OPS; op++)
    CHECK(seen[op], "'%s' has no line here", ir_ops[op].name);
  check_states();
  double slopes = 0;
  for (uint64_t seed = 0; seed < 20; seed++)
    slopes += check_random(seed, seed % 2) > 1e-3;
  CHECK(slopes >= 10, "only %g of 20 random losses depend on the inputs", slopes);
  return support_finish("test_ir_tangent");
}
