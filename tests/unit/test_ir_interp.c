// test_ir_interp.c: every op of the interpreter against values computed by hand, and the
// random generator against its published vectors.
#include "tests/unit/support_ir.h"

#include <math.h>
#include <string.h>

enum { MAX_IN = 3, MAX_VALUES = 16 };

// One op on given operands. Types are texts; values beyond those given are 0.
typedef struct op_case {
  const char *op; // with attributes: "sum {axes=[1]}"
  const char *type;
  double want[MAX_VALUES];
  struct {
    const char *type;
    double v[MAX_VALUES];
  } in[MAX_IN];
} op_case;

#define F4 "f32[4]"
#define I4 "i32[4]"
#define B4 "bool[4]"
static const op_case cases[] = {
    // leaves
    {"const {value=2.5}", "f32[2]", {2.5, 2.5}, {{0}}},
    {"const {value=7.0}", "i32[]", {7}, {{0}}},
    {"iota {axis=0}", "i32[2,3]", {0, 0, 0, 1, 1, 1}, {{0}}},
    {"iota {axis=1}", "f32[2,3]", {0, 1, 2, 0, 1, 2}, {{0}}},
    // pointwise, one operand
    {"copy", F4, {1, -2, 3, 4}, {{F4, {1, -2, 3, 4}}}},
    {"stop", F4, {1, -2, 3, 4}, {{F4, {1, -2, 3, 4}}}},
    {"neg", F4, {-1, 2, 0, -4}, {{F4, {1, -2, 0, 4}}}},
    {"neg", "u8[2]", {255, 0}, {{"u8[2]", {1, 0}}}},
    {"abs", F4, {1, 2, 0, 4}, {{F4, {1, -2, 0, -4}}}},
    {"sign", F4, {1, -1, 0, -1}, {{F4, {7, -2, 0, -0.5}}}},
    {"floor", F4, {1, -2, 0, -1}, {{F4, {1.5, -1.5, 0.25, -0.25}}}},
    {"sqrt", "f32[2]", {3, 0}, {{"f32[2]", {9, 0}}}},
    {"rsqrt", "f32[2]", {0.5, 2}, {{"f32[2]", {4, 0.25}}}},
    {"exp", "f32[2]", {1, 2.718281828459045}, {{"f32[2]", {0, 1}}}},
    {"expm1", "f32[2]", {1e-10, -1}, {{"f32[2]", {1e-10, -800}}}},
    {"log", "f32[2]", {0, 2}, {{"f32[2]", {1, 7.38905609893065}}}},
    {"log1p", "f32[2]", {0, 1e-10}, {{"f32[2]", {0, 1.00000000005e-10}}}},
    {"sin", "f32[2]", {0, 1}, {{"f32[2]", {0, 1.5707963267948966}}}},
    {"cos", "f32[2]", {1, -1}, {{"f32[2]", {0, 3.141592653589793}}}},
    {"tanh", "f32[2]", {0, 0.7615941559557649}, {{"f32[2]", {0, 1}}}},
    {"sigmoid", "f32[3]", {0.5, 2.061153618190204e-9, 1}, {{"f32[3]", {0, -20, 800}}}},
    {"erf", "f32[2]", {0, 0.8427007929497149}, {{"f32[2]", {0, 1}}}},
    // ties away from 0; 2^-11 above 1 is half a unit
    {"tf32",
     F4,
     {1 + 0x1p-10, -1 - 0x1p-10, 1, INFINITY},
     {{F4, {1 + 0x1p-11, -1 - 0x1p-11, 1 + 0x1.fp-12, 3.402823e38}}}},
    {"not", "bool[2]", {1, 0}, {{"bool[2]", {0, 1}}}},
    // casts: floats truncate and saturate, NaN is 0, integers wrap
    {"cast", I4, {1, -1, 2147483647, 0}, {{F4, {1.75, -1.75, 1e12, NAN}}}},
    {"cast", "u8[4]", {0, 255, 3, 0}, {{F4, {-5, 300, 3.9, -0.5}}}},
    {"cast", "u8[4]", {255, 44, 3, 0}, {{I4, {-1, 300, 3, 256}}}},
    {"cast", "i8[4]", {-1, 44, -128, 127}, {{I4, {-1, 300, 128, 127}}}},
    {"cast", B4, {1, 0, 1, 1}, {{F4, {0.5, 0, -1, INFINITY}}}},
    // ties to even; overflow, subnormals
    {"cast",
     "bf16[4]",
     {1, 1 + 0x1p-6, INFINITY, 0x1p-133},
     {{F4, {1 + 0x1p-8, 1 + 0x3p-8, 3.4e38, 0x1p-133}}}},
    {"cast",
     "f16[4]",
     {1, 65504, -INFINITY, 0x1p-24},
     {{F4, {1 + 0x1p-11, 65519, -65520, 0x1.8p-25}}}},
    {"cast", F4, {1, 0, 1, 0}, {{B4, {1, 0, 1, 0}}}},
    // pointwise, two operands
    {"add", F4, {5, 0, 2, 8}, {{F4, {1, 2, 3, 4}}, {F4, {4, -2, -1, 4}}}},
    {"add", "u8[2]", {1, 255}, {{"u8[2]", {255, 250}}, {"u8[2]", {2, 5}}}},
    {"sub", F4, {-3, 4, 4, 0}, {{F4, {1, 2, 3, 4}}, {F4, {4, -2, -1, 4}}}},
    {"mul", F4, {4, -4, -3, 16}, {{F4, {1, 2, 3, 4}}, {F4, {4, -2, -1, 4}}}},
    {"mul", "i32[1]", {-2147483648.0}, {{"i32[1]", {1073741824}}, {"i32[1]", {2}}}},
    {"mul",
     "i32[2]",
     {1, -1},
     {{"i32[2]", {2147483647, -2147483647.0}}, {"i32[2]", {2147483647, 2147483647}}}},
    {"mul", "u32[1]", {1}, {{"u32[1]", {4294967295.0}}, {"u32[1]", {4294967295.0}}}},
    {"mul",
     "i64[1]",
     {0x1p33 + 1},
     {{"i64[1]", {0x1p32 + 1}}, {"i64[1]", {0x1p32 + 1}}}}, // 2^64 wraps
    {"div", F4, {0.5, -1, INFINITY, 0}, {{F4, {1, 2, 3, 0}}, {F4, {2, -2, 0, 4}}}},
    {"div", I4, {3, -4, -4, 0}, {{I4, {7, -7, 7, 7}}, {I4, {2, 2, -2, 0}}}},
    {"mod", I4, {1, 1, -1, 0}, {{I4, {7, -7, 7, 7}}, {I4, {2, 2, -2, 0}}}},
    {"mod", F4, {0.5, 1.5, -1.5, 0}, {{F4, {2.5, -0.5, 0.5, 4}}, {F4, {2, 2, -2, 2}}}},
    {"pow", F4, {8, 0.25, 1, 3}, {{F4, {2, 2, 5, 9}}, {F4, {3, -2, 0, 0.5}}}},
    {"max", F4, {2, 2, 0, 1}, {{F4, {1, 2, 0, NAN}}, {F4, {2, -2, 0, 1}}}},
    {"min", F4, {1, -2, 0, NAN}, {{F4, {1, 2, 0, 1}}, {F4, {2, -2, 0, NAN}}}},
    {"and", B4, {1, 0, 0, 0}, {{B4, {1, 1, 0, 0}}, {B4, {1, 0, 1, 0}}}},
    {"or", B4, {1, 1, 1, 0}, {{B4, {1, 1, 0, 0}}, {B4, {1, 0, 1, 0}}}},
    {"eq", B4, {1, 0, 0, 0}, {{F4, {1, 2, 3, NAN}}, {F4, {1, 3, 2, NAN}}}},
    {"ne", B4, {0, 1, 1, 1}, {{F4, {1, 2, 3, NAN}}, {F4, {1, 3, 2, NAN}}}},
    {"lt", B4, {0, 1, 0, 0}, {{F4, {1, 2, 3, NAN}}, {F4, {1, 3, 2, 0}}}},
    {"le", B4, {1, 1, 0, 0}, {{F4, {1, 2, 3, NAN}}, {F4, {1, 3, 2, 0}}}},
    {"gt", B4, {0, 0, 1, 0}, {{F4, {1, 2, 3, NAN}}, {F4, {1, 3, 2, 0}}}},
    {"ge", B4, {1, 0, 1, 0}, {{F4, {1, 2, 3, NAN}}, {F4, {1, 3, 2, 0}}}},
    {"select", F4, {1, 6, 3, 8}, {{B4, {1, 0, 1, 0}}, {F4, {1, 2, 3, 4}}, {F4, {5, 6, 7, 8}}}},
    // reductions keep their axes with size 1
    {"sum {axes=[1]}", "f32[2,1]", {6, 15}, {{"f32[2,3]", {1, 2, 3, 4, 5, 6}}}},
    {"sum {axes=[0]}", "f32[1,3]", {5, 7, 9}, {{"f32[2,3]", {1, 2, 3, 4, 5, 6}}}},
    {"sum {axes=[0,1]}", "f32[1,1]", {21}, {{"f32[2,3]", {1, 2, 3, 4, 5, 6}}}},
    {"sum {axes=[0,2]}", "f32[1,2,1]", {14, 22}, {{"f32[2,2,2]", {1, 2, 3, 4, 5, 6, 7, 8}}}},
    {"sum {axes=[0]}", "u8[1]", {4}, {{"u8[2]", {250, 10}}}},
    {"reduce_max {axes=[1]}", "f32[2,1]", {3, -4}, {{"f32[2,3]", {1, 3, 2, -4, -5, -6}}}},
    {"reduce_min {axes=[0]}", "f32[1,3]", {-4, -5, -6}, {{"f32[2,3]", {1, 3, 2, -4, -5, -6}}}},
    {"reduce_max {axes=[0]}", "f32[1]", {2}, {{"f32[3]", {NAN, 1, 2}}}},
    {"reduce_max {axes=[0]}", "f32[1]", {NAN}, {{"f32[3]", {1, 2, NAN}}}},
    {"argmax {axis=1}", "i32[2,1]", {1, 0}, {{"f32[2,3]", {1, 3, 3, -4, -5, -6}}}},
    {"argmax {axis=0}", "i32[1,3]", {0, 0, 0}, {{"f32[2,3]", {1, 3, 3, -4, -5, -6}}}},
    {"argmin {axis=1}", "i32[2,1]", {0, 2}, {{"f32[2,3]", {1, 3, 3, -4, -5, -6}}}},
    // views
    {"reshape", "f32[3,2]", {1, 2, 3, 4, 5, 6}, {{"f32[2,3]", {1, 2, 3, 4, 5, 6}}}},
    {"transpose {perm=[1,0]}", "f32[3,2]", {1, 4, 2, 5, 3, 6}, {{"f32[2,3]", {1, 2, 3, 4, 5, 6}}}},
    {"transpose {perm=[2,0,1]}", "f32[2,2,1]", {1, 3, 2, 4}, {{"f32[2,1,2]", {1, 2, 3, 4}}}},
    {"broadcast", "f32[2,3]", {1, 1, 1, 2, 2, 2}, {{"f32[2,1]", {1, 2}}}},
    {"broadcast", "f32[2,3]", {1, 2, 3, 1, 2, 3}, {{"f32[1,3]", {1, 2, 3}}}},
    {"slice {start=[0,1], stop=[2,3], step=[1,1]}",
     "f32[2,2]",
     {2, 3, 5, 6},
     {{"f32[2,3]", {1, 2, 3, 4, 5, 6}}}},
    {"slice {start=[1], stop=[6], step=[2]}",
     "f32[3]",
     {2, 4, 6},
     {{"f32[6]", {1, 2, 3, 4, 5, 6}}}},
    {"windows {axes=[0], size=[2], step=[1], dilate=[1]}",
     "f32[3,2]",
     {1, 2, 2, 3, 3, 4},
     {{"f32[4]", {1, 2, 3, 4}}}},
    {"windows {axes=[0], size=[2], step=[2], dilate=[3]}",
     "f32[2,1,2]",
     {1, 4, 3, 6},
     {{"f32[7,1]", {1, 2, 3, 4, 5, 6, 7}}}},
    {"windows {axes=[0,1], size=[2,2], step=[1,1], dilate=[1,1]}",
     "f32[1,2,2,2]",
     {1, 2, 4, 5, 2, 3, 5, 6},
     {{"f32[2,3]", {1, 2, 3, 4, 5, 6}}}},
    {"conv {step=[1], dilate=[1]}",
     "f32[1,2,2]",
     {21, 20, 32, 30},
     {{"f32[1,3,1]", {1, 2, 3}}, {"f32[2,1,2]", {1, 0, 10, 10}}}},
    {"conv {step=[2], dilate=[2]}",
     "f32[1,2,1]",
     {1 * 1 + 2 * 10 + 5 * 100 + 6 * 1000, 5 * 1 + 6 * 10 + 9 * 100 + 10 * 1000},
     {{"f32[1,5,2]", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, {"f32[2,2,1]", {1, 10, 100, 1000}}}},
    // pad, concat, insert
    {"insert {lo=[1]}", "f32[4]", {1, 7, 8, 4}, {{"f32[4]", {1, 2, 3, 4}}, {"f32[2]", {7, 8}}}},
    {"insert {lo=[0,1]}",
     "f32[2,3]",
     {1, 7, 3, 4, 8, 6},
     {{"f32[2,3]", {1, 2, 3, 4, 5, 6}}, {"f32[2,1]", {7, 8}}}},

    {"pad {lo=[1], hi=[2], value=9.0}", "f32[5]", {9, 1, 2, 9, 9}, {{"f32[2]", {1, 2}}}},
    {"pad {lo=[0,1], hi=[1,0], value=0.0}", "f32[2,3]", {0, 1, 2, 0, 0, 0}, {{"f32[1,2]", {1, 2}}}},
    {"concat {axis=0}", "f32[3]", {1, 2, 3}, {{"f32[2]", {1, 2}}, {"f32[1]", {3}}}},
    {"concat {axis=1}",
     "f32[2,3]",
     {1, 2, 5, 3, 4, 6},
     {{"f32[2,2]", {1, 2, 3, 4}}, {"f32[2,1]", {5, 6}}}},
    // data-dependent addresses; out of range means the nearest row
    {"gather",
     "f32[4,2]",
     {5, 6, 1, 2, 1, 2, 5, 6},
     {{"f32[3,2]", {1, 2, 3, 4, 5, 6}}, {I4, {2, 0, -7, 99}}}},
    {"gather", "f32[1,2]", {3, 1}, {{"f32[3]", {1, 2, 3}}, {"i64[1,2]", {2, 0}}}},
    {"scatter_add",
     "f32[3,2]",
     {3, 30, 0, 0, 7, 70},
     {{I4, {0, 2, -1, 5}}, {"f32[4,2]", {1, 10, 3, 30, 2, 20, 4, 40}}}},
    {"scatter_add", "f32[2]", {3, 4}, {{"u8[3]", {0, 1, 0}}, {"f32[3]", {1, 4, 2}}}},
    {"scatter_max",
     "f32[3,2]",
     {3, 30, -INFINITY, -INFINITY, 4, 40},
     {{I4, {0, 2, -1, 5}}, {"f32[4,2]", {1, 30, 3, 30, 3, 20, 4, 40}}}},
    {"scatter_max", "u8[2]", {5, 0}, {{"u8[3]", {0, 0, 0}}, {"u8[3]", {1, 5, 2}}}},
    {"scatter_max", "i8[2]", {-128, -7}, {{"u8[1]", {1}}, {"i8[1]", {-7}}}},
    // matmul: [1 2 3; 4 5 6] by [1 0; 2 1; 0 3]
    {"matmul {ta=false, tb=false}",
     "f32[2,2]",
     {5, 11, 14, 23},
     {{"f32[2,3]", {1, 2, 3, 4, 5, 6}}, {"f32[3,2]", {1, 0, 2, 1, 0, 3}}}},
    {"matmul {ta=true, tb=false}",
     "f32[2,2]",
     {5, 11, 14, 23},
     {{"f32[3,2]", {1, 4, 2, 5, 3, 6}}, {"f32[3,2]", {1, 0, 2, 1, 0, 3}}}},
    {"matmul {ta=false, tb=true}",
     "f32[2,2]",
     {5, 11, 14, 23},
     {{"f32[2,3]", {1, 2, 3, 4, 5, 6}}, {"f32[2,3]", {1, 2, 0, 0, 1, 3}}}},
    {"matmul {ta=true, tb=true}",
     "f32[2,2]",
     {5, 11, 14, 23},
     {{"f32[3,2]", {1, 4, 2, 5, 3, 6}}, {"f32[2,3]", {1, 2, 0, 0, 1, 3}}}},
    {"matmul {ta=false, tb=false}",
     "f32[2,1,1]",
     {11, 39},
     {{"f32[2,1,2]", {1, 2, 3, 4}}, {"f32[2,2,1]", {3, 4, 5, 6}}}},
};
enum { NUM_CASES = sizeof cases / sizeof *cases };

static int num_operands(const op_case *c) {
  int n = 0;
  while (n < MAX_IN && c->in[n].type)
    n++;
  return n;
}

static ir_func *case_func(ir_arena *a, const op_case *c) {
  ir_buf b = ir_buf_new(a);
  const char *attrs = strchr(c->op, '{');
  int name = attrs ? (int)(attrs - c->op) : (int)strlen(c->op);
  for (int i = 0; i < num_operands(c); i++)
    ir_buf_printf(&b, "%%x%d = input : %s\n", i, c->in[i].type);
  ir_buf_printf(&b, "%%y = %.*s", name, c->op);
  for (int i = 0; i < num_operands(c); i++)
    ir_buf_printf(&b, "%s%%x%d", i ? ", " : " ", i);
  ir_buf_printf(&b, " %s : %s\nresult output y = %%y", attrs ? attrs : "", c->type);
  return ir_find_func(support_step(a, ir_buf_str(&b)), "step");
}

static void run_case(const op_case *c, bool *seen) {
  ir_arena *a = ir_arena_new();
  ir_func *f = case_func(a, c);
  ir_tensor_value in[MAX_IN];
  for (int i = 0; i < num_operands(c); i++)
    in[i] = support_value(a, f->nodes.at[i]->type, c->in[i].v);
  const ir_node *y = f->results.at[0].node;
  seen[y->op] = true;
  ir_tensor_value got = ir_interp(ir_world_new(a, f->module), f, in)[y->id];
  ir_tensor_value want = support_value(a, y->type, c->want);
  double off = support_distance(&got, &want);
  CHECK(off < 1e-12, "%s : %s is off by %g", c->op, c->type, off);
  ir_arena_free(a);
}

// --- random numbers ---------------------------------------------------------------------------
static void check_philox(void) {
  static const struct {
    uint32_t key[2], counter[4], want[4];
  } vectors[] = {
      // kat_vectors of Random123
      {{0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u}, {~0u, ~0u, ~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0xa4093822, 0x299f31d0},
       {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (int i = 0; i < 3; i++) {
    uint32_t got[4];
    ir_philox(vectors[i].key, vectors[i].counter, got);
    CHECK(memcmp(got, vectors[i].want, sizeof got) == 0, "vector %d: %08x %08x %08x %08x", i,
          got[0], got[1], got[2], got[3]);
  }
}

static ir_tensor_value draw(ir_arena *a, const char *op, int64_t stream, double seed, double step) {
  ir_func *f =
      ir_find_func(support_step(a, ir_format(a,
                                             "%%s = input : i64[]\n%%t = input : i64[]\n"
                                             "%%y = %s %%s, %%t {stream=%lld} : f32[20000]\n"
                                             "result output y = %%y",
                                             op, (long long)stream)),
                   "step");
  ir_tensor_value in[2] = {support_value(a, ir_scalar(IR_I64), &seed),
                           support_value(a, ir_scalar(IR_I64), &step)};
  return ir_interp(ir_world_new(a, f->module), f, in)[f->results.at[0].node->id];
}

static void check_moments(const ir_tensor_value *v, const char *op, double mean, double dev) {
  double n = (double)ir_elements(&v->type), sum = 0, square = 0;
  for (int64_t i = 0; i < ir_elements(&v->type); i++)
    sum += v->at[i];
  for (int64_t i = 0; i < ir_elements(&v->type); i++)
    square += (v->at[i] - sum / n) * (v->at[i] - sum / n);
  CHECK(fabs(sum / n - mean) < 5 * dev / sqrt(n), "%s has the mean %g", op, sum / n);
  CHECK(fabs(sqrt(square / n) / dev - 1) < 0.03, "%s has the deviation %g", op, sqrt(square / n));
}

// The layout of docs/ir.md, taken apart by hand.
static void check_layout(ir_arena *a) {
  double seed = 3 + 4294967296.0 * 5, step = 9;
  ir_tensor_value u = draw(a, "uniform", 7, seed, step), z = draw(a, "normal", 7, seed, step);
  uint32_t w[4];
  ir_philox((uint32_t[]){3, 5}, (uint32_t[]){1, 0, 7, 9}, w); // uniform 4..7, normal 2 and 3
  for (int i = 0; i < 4; i++)
    CHECK(u.at[4 + i] == (w[i] >> 8) / 16777216.0, "uniform element %d", 4 + i);
  for (int i = 0; i < 2; i++) {
    double u1 = ((w[2 * i] >> 8) + 1) / 16777216.0, u2 = (w[2 * i + 1] >> 8) / 16777216.0;
    double want = sqrt(-2 * log(u1)) * cos(6.283185307179586 * u2);
    CHECK(fabs(z.at[2 + i] - want) < 1e-12, "normal element %d", 2 + i);
  }
}

static void check_random(void) {
  ir_arena *a = ir_arena_new();
  ir_tensor_value u = draw(a, "uniform", 1, 42, 0), z = draw(a, "normal", 1, 42, 0);
  check_moments(&u, "uniform", 0.5, sqrt(1 / 12.0));
  check_moments(&z, "normal", 0, 1);
  ir_tensor_value other[] = {draw(a, "uniform", 2, 42, 0), draw(a, "uniform", 1, 43, 0),
                             draw(a, "uniform", 1, 42, 1)};
  for (int i = 0; i < 3; i++)
    CHECK(other[i].at[0] != u.at[0] && other[i].at[5] != u.at[5],
          "stream, seed and step each change the numbers (%d)", i);
  check_layout(a);
  ir_arena_free(a);
}

// --- state --------------------------------------------------------------------------------------
// Reads give what was there when the function began; writes take effect when it ends.
static void check_state(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_module(a, "mltc-ir 1\nmodule t\n"
                                   "state w : f32[] role=param\n"
                                   "state v : f32[] role=buffer\n"
                                   "state lr : f32[] role=flag value=0.5\n"
                                   "state step : i64[] role=counter\n"
                                   "func step {\n"
                                   "  %w = read @w : f32[]\n"
                                   "  %lr = read @lr : f32[]\n"
                                   "  %n = add %w, %lr : f32[]\n"
                                   "  write @w, %n\n"
                                   "  %again = read @w : f32[]\n"
                                   "  write @v, %again\n"
                                   "  result loss loss = %again\n"
                                   "}\n");
  ir_world *w = ir_world_new(a, m);
  const ir_func *f = m->funcs.at[0];
  for (int i = 0; i < 3; i++) {
    double got = ir_interp(w, f, NULL)[f->results.at[0].node->id].at[0];
    CHECK(got == 0.5 * i, "step %d reads %g", i, got);
  }
  CHECK(w->states[0].at[0] == 1.5 && w->states[1].at[0] == 1, "w is %g, v is %g",
        w->states[0].at[0], w->states[1].at[0]);
  ir_arena_free(a);
}

int main(void) {
  bool seen[IR_NUM_OPS] = {0};
  for (int i = 0; i < NUM_CASES; i++)
    run_case(&cases[i], seen);
  check_philox();
  check_random();
  check_state();
  static const ir_op elsewhere[] = {IR_INPUT, IR_READ, IR_WRITE, IR_UNIFORM, IR_NORMAL, IR_GRAD};
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
    seen[elsewhere[i]] = true;
  for (int op = 0; op < IR_NUM_OPS; op++)
    CHECK(seen[op], "'%s' has no case here", ir_ops[op].name);
  return support_finish("test_ir_interp");
}
