// test_passes_algebra.c: every rule of pass_algebra on a text of its own: before, after.
// Each text also runs through the oracle: the values must not change.
#include "support_passes.h"

#include <string.h>

typedef struct rule_case {
  const char *rule;
  const char *before;
  const char *after; // NULL: the rule must not apply
} rule_case;

#define X     "%x = input : f32[4]\n"
#define XY    X "%y = input : f32[4]\n"
#define XYC   XY "%c = input : bool[4]\n"
#define K     "%k = input : i32[4]\n"
#define Z(v)  "%z = const {value=" v "} : f32[4]\n"
#define KZ(v) "%z = const {value=" v "} : i32[4]\n"
#define D     "%x = input : f64[4]\n"
#define DZ(v) "%z = const {value=" v "} : f64[4]\n"
#define R     "result output r = %r"
#define RX    "result output r = %x"
#define W     "%w = input : f32[4,6]\n"

static const rule_case pointwise_cases[] = {
    {"x + 0", X Z("0.0") "%r = add %x, %z : f32[4]\n" R, X RX},
    {"0 + x", X Z("0.0") "%r = add %z, %x : f32[4]\n" R, X RX},
    {"x + -y", XY "%n = neg %y : f32[4]\n%r = add %x, %n : f32[4]\n" R,
     XY "%r = sub %x, %y : f32[4]\n" R},
    {"-x + y", XY "%n = neg %x : f32[4]\n%r = add %n, %y : f32[4]\n" R,
     XY "%r = sub %y, %x : f32[4]\n" R},
    {"x - 0", X Z("0.0") "%r = sub %x, %z : f32[4]\n" R, X RX},
    {"0 - x", X Z("0.0") "%r = sub %z, %x : f32[4]\n" R, X "%r = neg %x : f32[4]\n" R},
    {"x - -y", XY "%n = neg %y : f32[4]\n%r = sub %x, %n : f32[4]\n" R,
     XY "%r = add %x, %y : f32[4]\n" R},
    {"x - x, integers", K "%r = sub %k, %k : i32[4]\n" R, K "%r = const {value=0.0} : i32[4]\n" R},
    {"x - x, floats: NaN would hide", X "%r = sub %x, %x : f32[4]\n" R, NULL},
    {"--x", X "%n = neg %x : f32[4]\n%r = neg %n : f32[4]\n" R, X RX},
    {"-(x - y)", XY "%n = sub %x, %y : f32[4]\n%r = neg %n : f32[4]\n" R,
     XY "%r = sub %y, %x : f32[4]\n" R},
    {"-(x * c)", X Z("3.0") "%n = mul %x, %z : f32[4]\n%r = neg %n : f32[4]\n" R,
     X "%r.const = const {value=-3.0} : f32[4]\n%r = mul %x, %r.const : f32[4]\n" R},
    {"x * 1", X Z("1.0") "%r = mul %x, %z : f32[4]\n" R, X RX},
    {"1 * x", X Z("1.0") "%r = mul %z, %x : f32[4]\n" R, X RX},
    {"x * -1", X Z("-1.0") "%r = mul %x, %z : f32[4]\n" R, X "%r = neg %x : f32[4]\n" R},
    {"x * 0, integers", K KZ("0.0") "%r = mul %k, %z : i32[4]\n" R,
     K "%r = const {value=0.0} : i32[4]\n" R},
    {"x * 0, floats: NaN would hide", X Z("0.0") "%r = mul %x, %z : f32[4]\n" R, NULL},
    {"(x * c) * d",
     X Z("3.0") "%d = const {value=5.0} : f32[4]\n%n = mul %x, %z : f32[4]\n"
                "%r = mul %d, %n : f32[4]\n" R,
     X "%r.const = const {value=15.0} : f32[4]\n%r = mul %x, %r.const : f32[4]\n" R},
    {"(x * c) * d that overflows",
     X Z("1e30") "%d = const {value=1e20} : f32[4]\n"
                 "%n = mul %x, %z : f32[4]\n%r = mul %n, %d : f32[4]\n" R,
     NULL},
    {"(x * c) * d that overflows, f64",
     D DZ("1e200") "%n = mul %x, %z : f64[4]\n%r = mul %n, %z : f64[4]\n" R, NULL},
    {"(x * c) * d that loses digits, f64",
     D DZ("1e-160") "%n = mul %x, %z : f64[4]\n%r = mul %n, %z : f64[4]\n" R, NULL},
    {"x / c, whose inverse overflows, f64",
     D DZ("4.9406564584124654e-324") "%r = div %x, %z : f64[4]\n" R, NULL},
    {"-x * c", X Z("3.0") "%n = neg %x : f32[4]\n%r = mul %n, %z : f32[4]\n" R,
     X "%r.const = const {value=-3.0} : f32[4]\n%r = mul %x, %r.const : f32[4]\n" R},
    {"-x * -y", XY "%m = neg %x : f32[4]\n%n = neg %y : f32[4]\n%r = mul %m, %n : f32[4]\n" R,
     XY "%r = mul %x, %y : f32[4]\n" R},
    {"x / 1", X Z("1.0") "%r = div %x, %z : f32[4]\n" R, X RX},
    {"x / 1, integers", K KZ("1.0") "%r = div %k, %z : i32[4]\n" R, K "result output r = %k"},
    {"x / 4", X Z("4.0") "%r = div %x, %z : f32[4]\n" R,
     X "%r.const = const {value=0.25} : f32[4]\n%r = mul %x, %r.const : f32[4]\n" R},
    {"x / 3 stays a division", X Z("3.0") "%r = div %x, %z : f32[4]\n" R, NULL},
    {"x / 4, integers, rounds down", K KZ("4.0") "%r = div %k, %z : i32[4]\n" R, NULL},
    {"4 / x", X Z("4.0") "%r = div %z, %x : f32[4]\n" R, NULL},
    {"x ^ 0", X Z("0.0") "%r = pow %x, %z : f32[4]\n" R, X "%r = const {value=1.0} : f32[4]\n" R},
    {"x ^ 1", X Z("1.0") "%r = pow %x, %z : f32[4]\n" R, X RX},
    {"x ^ 2", X Z("2.0") "%r = pow %x, %z : f32[4]\n" R, X "%r = mul %x, %x : f32[4]\n" R},
    {"x ^ 3", X Z("3.0") "%r = pow %x, %z : f32[4]\n" R,
     X "%r.mul = mul %x, %x : f32[4]\n%r = mul %r.mul, %x : f32[4]\n" R},
    {"x ^ -1", X Z("-1.0") "%r = pow %x, %z : f32[4]\n" R,
     X "%r.const = const {value=1.0} : f32[4]\n%r = div %r.const, %x : f32[4]\n" R},
    {"max(x, x)", X "%r = max %x, %x : f32[4]\n" R, X RX},
    {"min(x, x)", X "%r = min %x, %x : f32[4]\n" R, X RX},
    {"| |x| |", X "%n = abs %x : f32[4]\n%r = abs %n : f32[4]\n" R,
     X "%n = abs %x : f32[4]\nresult output r = %n"},
    {"|-x|", X "%n = neg %x : f32[4]\n%r = abs %n : f32[4]\n" R, X "%r = abs %x : f32[4]\n" R},
    {"copy stays", X "%r = copy %x : f32[4]\n" R, NULL},
};

#define C "%c = input : bool[4]\n"
static const rule_case logic_cases[] = {
    {"c and c", C "%r = and %c, %c : bool[4]\n" R, C "result output r = %c"},
    {"c and true", C "%t = const {value=1.0} : bool[4]\n%r = and %c, %t : bool[4]\n" R,
     C "result output r = %c"},
    {"c and false", C "%t = const {value=0.0} : bool[4]\n%r = and %t, %c : bool[4]\n" R,
     C "%r = const {value=0.0} : bool[4]\n" R},
    {"c or false", C "%t = const {value=0.0} : bool[4]\n%r = or %c, %t : bool[4]\n" R,
     C "result output r = %c"},
    {"c or true", C "%t = const {value=1.0} : bool[4]\n%r = or %c, %t : bool[4]\n" R,
     C "%r = const {value=1.0} : bool[4]\n" R},
    {"not not c", C "%n = not %c : bool[4]\n%r = not %n : bool[4]\n" R, C "result output r = %c"},
    {"not (x == y)", XY "%n = eq %x, %y : bool[4]\n%r = not %n : bool[4]\n" R,
     XY "%r = ne %x, %y : bool[4]\n" R},
    {"not (x < y): NaN", XY "%n = lt %x, %y : bool[4]\n%r = not %n : bool[4]\n" R, NULL},
    {"select(true, x, y)",
     XY "%t = const {value=1.0} : bool[4]\n%r = select %t, %x, %y : f32[4]\n" R, XY RX},
    {"select(false, x, y)",
     XY "%t = const {value=0.0} : bool[4]\n%r = select %t, %x, %y : f32[4]\n" R,
     XY "result output r = %y"},
    {"select(c, x, x)", X C "%r = select %c, %x, %x : f32[4]\n" R, X C RX},
    {"select(not c, x, y)", XYC "%n = not %c : bool[4]\n%r = select %n, %x, %y : f32[4]\n" R,
     XYC "%r = select %c, %y, %x : f32[4]\n" R},
    {"select(c, true, false)",
     C "%t = const {value=1.0} : bool[4]\n%f = const {value=0.0} : bool[4]\n"
       "%r = select %c, %t, %f : bool[4]\n" R,
     C "result output r = %c"},
    {"cast to its own type", X "%r = cast %x : f32[4]\n" R, X RX},
    {"u8 -> f32 -> i32", "%x = input : u8[4]\n%n = cast %x : f32[4]\n%r = cast %n : i32[4]\n" R,
     "%x = input : u8[4]\n%r = cast %x : i32[4]\n" R},
    {"f32 -> f64 -> f32", X "%n = cast %x : f64[4]\n%r = cast %n : f32[4]\n" R, X RX},
    {"i32 -> f32 -> f64 rounds", K "%n = cast %k : f32[4]\n%r = cast %n : f64[4]\n" R, NULL},
    {"u8 -> f32 -> i8 overflows in its own way",
     "%x = input : u8[4]\n%n = cast %x : f32[4]\n%r = cast %n : i8[4]\n" R, NULL},
    {"f32 -> bf16 -> f32 narrows", X "%n = cast %x : bf16[4]\n%r = cast %n : f32[4]\n" R, NULL},
    {"bf16 -> f32 -> bf16",
     "%x = input : bf16[4]\n%n = cast %x : f32[4]\n%r = cast %n : bf16[4]\n" R,
     "%x = input : bf16[4]\n" RX},
    {"f16 -> f32 -> f64", "%x = input : f16[4]\n%n = cast %x : f32[4]\n%r = cast %n : f64[4]\n" R,
     "%x = input : f16[4]\n%r = cast %x : f64[4]\n" R},
    {"bf16 -> f16 -> f32 overflows",
     "%x = input : bf16[4]\n%n = cast %x : f16[4]\n%r = cast %n : f32[4]\n" R, NULL},
    {"f16 -> bf16 -> f32 narrows",
     "%x = input : f16[4]\n%n = cast %x : bf16[4]\n%r = cast %n : f32[4]\n" R, NULL},
    {"u8 -> bf16 -> f32", "%x = input : u8[4]\n%n = cast %x : bf16[4]\n%r = cast %n : f32[4]\n" R,
     "%x = input : u8[4]\n%r = cast %x : f32[4]\n" R},
    {"bf16 of a constant",
     "%z = const {value=1.00390625} : f32[4]\n%n = cast %z : bf16[4]\n%r = cast %n : f32[4]\n" R,
     "%r = const {value=1.0} : f32[4]\n" R},
    {"tf32 of tf32", X "%n = tf32 %x : f32[4]\n%r = tf32 %n : f32[4]\n" R,
     X "%n = tf32 %x : f32[4]\nresult output r = %n"},
    {"tf32 of f16", "%x = input : f16[4]\n%n = cast %x : f32[4]\n%r = tf32 %n : f32[4]\n" R,
     "%x = input : f16[4]\n%n = cast %x : f32[4]\nresult output r = %n"},
    {"tf32 of an f32 stays", X "%r = tf32 %x : f32[4]\n" R, NULL},
    {"f32 -> i32 -> f32 truncates", X "%n = cast %x : i32[4]\n%r = cast %n : f32[4]\n" R, NULL},
};

static const rule_case fold_cases[] = {
    {"2 * 3", Z("2.0") "%y = const {value=3.0} : f32[4]\n%r = mul %z, %y : f32[4]\n" R,
     "%r = const {value=6.0} : f32[4]\n" R},
    {"7 div -2 rounds down, integers",
     KZ("7.0") "%y = const {value=-2.0} : i32[4]\n%r = div %z, %y : i32[4]\n" R,
     "%r = const {value=-4.0} : i32[4]\n" R},
    {"a product that wraps", KZ("2147483647.0") "%r = mul %z, %z : i32[4]\n" R,
     "%r = const {value=1.0} : i32[4]\n" R},
    {"2 < 3", Z("2.0") "%y = const {value=3.0} : f32[4]\n%r = lt %z, %y : bool[4]\n" R,
     "%r = const {value=1.0} : bool[4]\n" R},
    {"cast of a constant", KZ("7.0") "%r = cast %z : f32[4]\n" R,
     "%r = const {value=7.0} : f32[4]\n" R},
    {"no overflow at compile time",
     Z("1e30") "%y = const {value=1e30} : f32[4]\n%r = mul %z, %y : f32[4]\n" R, NULL},
    {"i64 beyond 2^53 is left to run time",
     "%z = const {value=9007199254740992.0} : i64[]\n%r = add %z, %z : i64[]\n" R, NULL},
    {"sum of a constant", Z("2.0") "%r = sum %z {axes=[0]} : f32[1]\n" R,
     "%r = const {value=8.0} : f32[1]\n" R},
    {"max of a constant", Z("2.0") "%r = reduce_max %z {axes=[0]} : f32[1]\n" R,
     "%r = const {value=2.0} : f32[1]\n" R},
    {"view of a constant", Z("2.0") "%r = reshape %z : f32[2,2]\n" R,
     "%r = const {value=2.0} : f32[2,2]\n" R},
    {"pad with the constant it pads", Z("2.0") "%r = pad %z {lo=[1],hi=[0],value=2.0} : f32[5]\n" R,
     "%r = const {value=2.0} : f32[5]\n" R},
    {"pad with another constant", Z("2.0") "%r = pad %z {lo=[1],hi=[0],value=0.0} : f32[5]\n" R,
     NULL},
    {"concat of one constant", Z("2.0") "%r = concat %z, %z {axis=0} : f32[8]\n" R,
     "%r = const {value=2.0} : f32[8]\n" R},
    {"f(broadcast, broadcast)",
     "%s = input : f32[4,1]\n%t = input : f32[4,1]\n%u = broadcast %s : f32[4,6]\n"
     "%v = broadcast %t : f32[4,6]\n%r = mul %u, %v : f32[4,6]\n" R,
     "%s = input : f32[4,1]\n%t = input : f32[4,1]\n%r.mul = mul %s, %t : f32[4,1]\n"
     "%r = broadcast %r.mul : f32[4,6]\n" R},
    {"f(broadcast, const)",
     "%s = input : f32[4,1]\n%u = broadcast %s : f32[4,6]\n%z = const {value=3.0} : f32[4,6]\n"
     "%r = div %u, %z : f32[4,6]\n" R,
     "%s = input : f32[4,1]\n%r.const = const {value=3.0} : f32[4,1]\n"
     "%r.div = div %s, %r.const : f32[4,1]\n%r = broadcast %r.div : f32[4,6]\n" R},
    {"f(row, column) is no less work",
     "%s = input : f32[4,1]\n%t = input : f32[1,6]\n%u = broadcast %s : f32[4,6]\n"
     "%v = broadcast %t : f32[4,6]\n%r = mul %u, %v : f32[4,6]\n" R,
     NULL},
    {"random numbers differ by element",
     "%s = const {value=1.0} : i64[]\n%t = const {value=2.0} : i64[]\n"
     "%r = uniform %s, %t {stream=3} : f32[4]\n" R,
     NULL},
    {"f of one element of rank 2",
     "%s = input : f32[]\n%t = input : f32[]\n%u = reshape %s : f32[1,1]\n"
     "%v = reshape %t : f32[1,1]\n%r = mul %u, %v : f32[1,1]\n" R,
     "%s = input : f32[]\n%t = input : f32[]\n%r.mul = mul %s, %t : f32[]\n"
     "%r = reshape %r.mul : f32[1,1]\n" R},
};

static const rule_case reduce_cases[] = {
    {"sum over size 1", "%x = input : f32[4,1]\n%r = sum %x {axes=[1]} : f32[4,1]\n" R,
     "%x = input : f32[4,1]\n" RX},
    {"sum over size 1 and more", "%x = input : f32[4,1]\n%r = sum %x {axes=[0,1]} : f32[1,1]\n" R,
     "%x = input : f32[4,1]\n%r = sum %x {axes=[0]} : f32[1,1]\n" R},
    {"sum of sum", W "%s = sum %w {axes=[1]} : f32[4,1]\n%r = sum %s {axes=[0]} : f32[1,1]\n" R,
     W "%r = sum %w {axes=[0,1]} : f32[1,1]\n" R},
    {"sum of a sum that is needed",
     W "%s = sum %w {axes=[1]} : f32[4,1]\n%r = sum %s {axes=[0]} : f32[1,1]\nresult output s = "
       "%s\n" R,
     NULL},
    {"sum of a sum of what is made of the same rows",
     W "%m = reduce_max %w {axes=[1]} : f32[4,1]\n%l = exp %m : f32[4,1]\n%b = broadcast %l : "
       "f32[4,6]\n"
       "%d = sub %w, %b : f32[4,6]\n%s = sum %d {axes=[1]} : f32[4,1]\n%r = sum %s {axes=[0]} : "
       "f32[1,1]\n" R,
     NULL},
    {"sum of a sum of what a row has been given",
     W "%l = input : f32[4,1]\n%b = broadcast %l : f32[4,6]\n%d = sub %w, %b : f32[4,6]\n"
       "%s = sum %d {axes=[1]} : f32[4,1]\n%r = sum %s {axes=[0]} : f32[1,1]\n" R,
     W "%l = input : f32[4,1]\n%b = broadcast %l : f32[4,6]\n%d = sub %w, %b : f32[4,6]\n"
       "%r = sum %d {axes=[0,1]} : f32[1,1]\n" R},
    {"max of sum",
     W "%s = sum %w {axes=[1]} : f32[4,1]\n%r = reduce_max %s {axes=[0]} : f32[1,1]\n" R, NULL},
    {"sum of broadcast",
     "%x = input : f32[4,1]\n%b = broadcast %x : f32[4,6]\n%r = sum %b {axes=[1]} : f32[4,1]\n" R,
     "%x = input : f32[4,1]\n%r.const = const {value=6.0} : f32[4,1]\n"
     "%r = mul %x, %r.const : f32[4,1]\n" R},
    {"sum of broadcast over other axes too",
     "%x = input : f32[4,1]\n%b = broadcast %x : f32[4,6]\n%r = sum %b {axes=[0,1]} : f32[1,1]\n" R,
     "%x = input : f32[4,1]\n%r.sum = sum %x {axes=[0]} : f32[1,1]\n"
     "%r.const = const {value=6.0} : f32[1,1]\n%r = mul %r.sum, %r.const : f32[1,1]\n" R},
    {"max of broadcast",
     "%x = input : f32[4,1]\n%b = broadcast %x : f32[4,6]\n"
     "%r = reduce_max %b {axes=[1]} : f32[4,1]\n" R,
     "%x = input : f32[4,1]\n" RX},
    {"sum of neg", W "%n = neg %w : f32[4,6]\n%r = sum %n {axes=[0]} : f32[1,6]\n" R,
     W "%r.sum = sum %w {axes=[0]} : f32[1,6]\n%r = neg %r.sum : f32[1,6]\n" R},
    {"sum of products with one factor",
     W "%v = input : f32[1,6]\n%b = broadcast %v : f32[4,6]\n%p = mul %w, %b : f32[4,6]\n"
       "%r = sum %p {axes=[0]} : f32[1,6]\n" R,
     W "%v = input : f32[1,6]\n%r.sum = sum %w {axes=[0]} : f32[1,6]\n"
       "%r = mul %r.sum, %v : f32[1,6]\n" R},
    {"the factor first, and of all rows and columns",
     W "%v = input : f32[1,1]\n%b = broadcast %v : f32[4,6]\n%p = mul %b, %w : f32[4,6]\n"
       "%r = sum %p {axes=[0]} : f32[1,6]\n" R,
     W "%v = input : f32[1,1]\n%r.sum = sum %w {axes=[0]} : f32[1,6]\n"
       "%r.broadcast = broadcast %v : f32[1,6]\n%r = mul %r.sum, %r.broadcast : f32[1,6]\n" R},
    {"sum of products with several factors",
     W "%v = input : f32[1,6]\n%b = broadcast %v : f32[4,6]\n%p = mul %w, %b : f32[4,6]\n"
       "%r = sum %p {axes=[0,1]} : f32[1,1]\n" R,
     NULL},
    {"sum of everything, reshaped",
     W "%f = reshape %w : f32[24]\n%r = sum %f {axes=[0]} : f32[1]\n" R,
     W "%r.sum = sum %w {axes=[0,1]} : f32[1,1]\n%r = reshape %r.sum : f32[1]\n" R},
    {"argmax of one", "%x = input : f32[4,1]\n%r = argmax %x {axis=1} : i32[4,1]\n" R,
     "%x = input : f32[4,1]\n%r = const {value=0.0} : i32[4,1]\n" R},
    {"matmul of transpose",
     W "%v = input : f32[3,6]\n%t = transpose %v {perm=[1,0]} : f32[6,3]\n"
       "%r = matmul %w, %t {ta=false,tb=false} : f32[4,3]\n" R,
     W "%v = input : f32[3,6]\n%r = matmul %w, %v {ta=false,tb=true} : f32[4,3]\n" R},
    {"matmul of two transposes",
     "%a = input : f32[2,5,4]\n%b = input : f32[2,5,3]\n"
     "%s = transpose %a {perm=[0,2,1]} : f32[2,4,5]\n%t = transpose %b {perm=[0,2,1]} : "
     "f32[2,3,5]\n"
     "%r = matmul %s, %t {ta=false,tb=true} : f32[2,4,3]\n" R,
     "%a = input : f32[2,5,4]\n%b = input : f32[2,5,3]\n"
     "%r = matmul %a, %b {ta=true,tb=false} : f32[2,4,3]\n" R},
    {"transpose of matmul",
     W "%v = input : f32[3,6]\n%m = matmul %w, %v {ta=false,tb=true} : f32[4,3]\n"
       "%r = transpose %m {perm=[1,0]} : f32[3,4]\n" R,
     W "%v = input : f32[3,6]\n%r = matmul %v, %w {ta=false,tb=true} : f32[3,4]\n" R},
    {"transpose of a matmul that is used elsewhere",
     W "%v = input : f32[3,6]\n%m = matmul %w, %v {ta=false,tb=true} : f32[4,3]\n"
       "%r = transpose %m {perm=[1,0]} : f32[3,4]\nresult output m = %m\n" R,
     NULL},
    {"matmul of a transpose of batch axes",
     "%a = input : f32[5,2,4]\n%b = input : f32[2,4,3]\n"
     "%s = transpose %a {perm=[1,0,2]} : f32[2,5,4]\n"
     "%r = matmul %s, %b {ta=false,tb=false} : f32[2,5,3]\n" R,
     NULL},
};

static const rule_case view_cases[] = {
    {"reshape of reshape", W "%s = reshape %w : f32[24]\n%r = reshape %s : f32[2,12]\n" R,
     W "%r = reshape %w : f32[2,12]\n" R},
    {"reshape there and back", W "%s = reshape %w : f32[24]\n%r = reshape %s : f32[4,6]\n" R,
     W "result output r = %w"},
    {"reshape of a repeated element",
     "%s = input : f32[1,1]\n%b = broadcast %s : f32[4,6]\n%r = reshape %b : f32[24]\n" R,
     "%s = input : f32[1,1]\n%r.reshape = reshape %s : f32[1]\n%r = broadcast %r.reshape : "
     "f32[24]\n" R},
    {"transpose there and back",
     W "%s = transpose %w {perm=[1,0]} : f32[6,4]\n%r = transpose %s {perm=[1,0]} : f32[4,6]\n" R,
     W "result output r = %w"},
    {"transpose of transpose",
     "%x = input : f32[2,3,4]\n%s = transpose %x {perm=[1,2,0]} : f32[3,4,2]\n"
     "%r = transpose %s {perm=[2,1,0]} : f32[2,4,3]\n" R,
     "%x = input : f32[2,3,4]\n%r = transpose %x {perm=[0,2,1]} : f32[2,4,3]\n" R},
    {"transpose of unit axes",
     "%x = input : f32[4,1,6]\n%r = transpose %x {perm=[1,0,2]} : f32[1,4,6]\n" R,
     "%x = input : f32[4,1,6]\n%r = reshape %x : f32[1,4,6]\n" R},
    {"transpose of broadcast",
     "%x = input : f32[2,3,1]\n%b = broadcast %x : f32[2,3,4]\n"
     "%r = transpose %b {perm=[1,0,2]} : f32[3,2,4]\n" R,
     "%x = input : f32[2,3,1]\n%r.transpose = transpose %x {perm=[1,0,2]} : f32[3,2,1]\n"
     "%r = broadcast %r.transpose : f32[3,2,4]\n" R},
    {"broadcast of broadcast",
     "%x = input : f32[1,1]\n%b = broadcast %x : f32[4,1]\n%r = broadcast %b : f32[4,6]\n" R,
     "%x = input : f32[1,1]\n%r = broadcast %x : f32[4,6]\n" R},
    {"broadcast to its own shape", X "%r = broadcast %x : f32[4]\n" R, X RX},
    {"slice of everything", X "%r = slice %x {start=[0],stop=[4],step=[1]} : f32[4]\n" R, X RX},
    {"slice of slice",
     "%x = input : f32[20]\n%s = slice %x {start=[1],stop=[20],step=[3]} : f32[7]\n"
     "%r = slice %s {start=[1],stop=[6],step=[2]} : f32[3]\n" R,
     "%x = input : f32[20]\n%r = slice %x {start=[4],stop=[17],step=[6]} : f32[3]\n" R},
    {"slice of broadcast",
     "%x = input : f32[4,1]\n%b = broadcast %x : f32[4,6]\n"
     "%r = slice %b {start=[1,2],stop=[3,6],step=[1,2]} : f32[2,2]\n" R,
     "%x = input : f32[4,1]\n%r.slice = slice %x {start=[1,0],stop=[3,1],step=[1,1]} : f32[2,1]\n"
     "%r = broadcast %r.slice : f32[2,2]\n" R},
};

#define PARTS "%q = input : f32[4,2]\n%k = input : f32[4,2]\n%v = input : f32[4,2]\n"
#define PADS                                                                                       \
  PARTS "%a = pad %q {lo=[0,0],hi=[0,4],value=0.0} : f32[4,6]\n"                                   \
        "%b = pad %k {lo=[0,2],hi=[0,2],value=0.0} : f32[4,6]\n"                                   \
        "%c = pad %v {lo=[0,4],hi=[0,0],value=0.0} : f32[4,6]\n"
#define CORNER_PARTS                                                                               \
  "%x = input : f32[2,2]\n%y = input : f32[2,4]\n%u = input : f32[2,2]\n%v = input : f32[2,4]\n"
#define CORNERS                                                                                    \
  CORNER_PARTS "%a = pad %x {lo=[0,0],hi=[2,4],value=0.0} : f32[4,6]\n"                            \
               "%b = pad %y {lo=[0,2],hi=[2,0],value=0.0} : f32[4,6]\n"                            \
               "%c = pad %u {lo=[2,0],hi=[0,4],value=0.0} : f32[4,6]\n"                            \
               "%d = pad %v {lo=[2,2],hi=[0,0],value=0.0} : f32[4,6]\n"
#define PAD_A  "%q = input : f32[4,2]\n%a = pad %q {lo=[0,0],hi=[0,4],value=0.0} : f32[4,6]\n"
#define JOINED PARTS "%r = concat %q, %k, %v {axis=1} : f32[4,6]\n" R

static const rule_case move_cases[] = {
    {"pad by nothing", X "%r = pad %x {lo=[0],hi=[0],value=0.0} : f32[4]\n" R, X RX},
    {"pad of pad",
     X "%p = pad %x {lo=[1],hi=[0],value=0.0} : f32[5]\n"
       "%r = pad %p {lo=[0],hi=[2],value=0.0} : f32[7]\n" R,
     X "%r = pad %x {lo=[1],hi=[2],value=0.0} : f32[7]\n" R},
    {"pad of pad with another value",
     X "%p = pad %x {lo=[1],hi=[0],value=0.0} : f32[5]\n"
       "%r = pad %p {lo=[0],hi=[2],value=1.0} : f32[7]\n" R,
     NULL},
    {"slice of pad, inside",
     X "%p = pad %x {lo=[2],hi=[3],value=0.0} : f32[9]\n"
       "%r = slice %p {start=[3],stop=[6],step=[2]} : f32[2]\n" R,
     X "%r = slice %x {start=[1],stop=[4],step=[2]} : f32[2]\n" R},
    {"slice of pad, all of x",
     X "%p = pad %x {lo=[2],hi=[3],value=0.0} : f32[9]\n"
       "%r = slice %p {start=[2],stop=[6],step=[1]} : f32[4]\n" R,
     X RX},
    {"slice of pad, with padding",
     X "%p = pad %x {lo=[2],hi=[3],value=0.0} : f32[9]\n"
       "%r = slice %p {start=[1],stop=[6],step=[1]} : f32[5]\n" R,
     X "%r = pad %x {lo=[1],hi=[0],value=0.0} : f32[5]\n" R},
    {"slice of pad, a part and some padding",
     X "%p = pad %x {lo=[2],hi=[3],value=1.0} : f32[9]\n"
       "%r = slice %p {start=[4],stop=[8],step=[1]} : f32[4]\n" R,
     X "%r.slice = slice %x {start=[2],stop=[4],step=[1]} : f32[2]\n"
       "%r = pad %r.slice {lo=[0],hi=[2],value=1.0} : f32[4]\n" R},
    {"slice of pad, with padding and steps",
     X "%p = pad %x {lo=[2],hi=[3],value=0.0} : f32[9]\n"
       "%r = slice %p {start=[1],stop=[6],step=[2]} : f32[3]\n" R,
     NULL},
    {"slice of a pad that others read",
     X "%p = pad %x {lo=[2],hi=[3],value=0.0} : f32[9]\n"
       "%r = slice %p {start=[1],stop=[6],step=[1]} : f32[5]\nresult output p = %p\n" R,
     NULL},
    {"concat of one", X "%r = concat %x {axis=0} : f32[4]\n" R, X RX},
    {"concat of concat",
     XY "%j = concat %x, %y {axis=0} : f32[8]\n%r = concat %j, %x {axis=0} : f32[12]\n" R,
     XY "%r = concat %x, %y, %x {axis=0} : f32[12]\n" R},
    {"concat of a concat that others read",
     XY "%j = concat %x, %y {axis=0} : f32[8]\n%k = concat %j, %x {axis=0} : f32[12]\n"
        "%s = slice %k {start=[2],stop=[10],step=[1]} : f32[8]\n"
        "%r = add %j, %s : f32[8]\n" R,
     NULL},
    {"concat of neighbouring slices",
     W "%s = slice %w {start=[0,1],stop=[4,3],step=[1,1]} : f32[4,2]\n"
       "%t = slice %w {start=[0,3],stop=[4,4],step=[1,1]} : f32[4,1]\n"
       "%r = concat %s, %t {axis=1} : f32[4,3]\n" R,
     W "%r = slice %w {start=[0,1],stop=[4,4],step=[1,1]} : f32[4,3]\n" R},
    {"concat of all slices",
     W "%s = slice %w {start=[0,0],stop=[4,3],step=[1,1]} : f32[4,3]\n"
       "%t = slice %w {start=[0,3],stop=[4,6],step=[1,1]} : f32[4,3]\n"
       "%r = concat %s, %t {axis=1} : f32[4,6]\n" R,
     W "result output r = %w"},
    {"concat of slices in another order",
     W "%s = slice %w {start=[0,0],stop=[4,3],step=[1,1]} : f32[4,3]\n"
       "%t = slice %w {start=[0,3],stop=[4,6],step=[1,1]} : f32[4,3]\n"
       "%r = concat %t, %s {axis=1} : f32[4,6]\n" R,
     NULL},
    {"slice of concat at its seams",
     PARTS "%j = concat %q, %k, %v {axis=1} : f32[4,6]\n"
           "%r = slice %j {start=[0,2],stop=[4,4],step=[1,1]} : f32[4,2]\n" R,
     PARTS "result output r = %k"},
    {"slice of concat inside one operand",
     PARTS "%j = concat %q, %k, %v {axis=1} : f32[4,6]\n"
           "%r = slice %j {start=[1,5],stop=[3,6],step=[1,1]} : f32[2,1]\n" R,
     PARTS "%r = slice %v {start=[1,1],stop=[3,2],step=[1,1]} : f32[2,1]\n" R},
    {"slice of concat across a seam",
     PARTS "%j = concat %q, %k, %v {axis=1} : f32[4,6]\n"
           "%r = slice %j {start=[0,1],stop=[4,3],step=[1,1]} : f32[4,2]\n" R,
     NULL},
    {"sum of pads", PADS "%s = add %a, %b : f32[4,6]\n%r = add %s, %c : f32[4,6]\n" R, JOINED},
    {"sum of pads, in any order", PADS "%s = add %c, %a : f32[4,6]\n%r = add %s, %b : f32[4,6]\n" R,
     JOINED},
    {"sum of some pads", PADS "%r = add %b, %c : f32[4,6]\n" R,
     PARTS "%r.concat = concat %k, %v {axis=1} : f32[4,4]\n"
           "%r = pad %r.concat {lo=[0,2],hi=[0,0],value=0.0} : f32[4,6]\n" R},
    {"sum of overlapping pads",
     PAD_A "%p = pad %q {lo=[0,1],hi=[0,3],value=0.0} : f32[4,6]\n%r = add %a, %p : f32[4,6]\n" R,
     NULL},
    {"sum of pads with a gap",
     PAD_A "%p = pad %q {lo=[0,3],hi=[0,1],value=0.0} : f32[4,6]\n%r = add %a, %p : f32[4,6]\n" R,
     NULL},
    {"sum of pads of two axes",
     PAD_A "%u = input : f32[2,6]\n%v = pad %u {lo=[2,0],hi=[0,0],value=0.0} : f32[4,6]\n"
           "%r = add %v, %a : f32[4,6]\n" R,
     NULL},
    {"sum of the pads of four corners",
     CORNERS
     "%s = add %a, %b : f32[4,6]\n%t = add %s, %c : f32[4,6]\n%r = add %t, %d : f32[4,6]\n" R,
     CORNER_PARTS "%s.concat = concat %x, %y {axis=1} : f32[2,6]\n"
                  "%r.concat = concat %u, %v {axis=1} : f32[2,6]\n"
                  "%r = concat %s.concat, %r.concat {axis=0} : f32[4,6]\n" R},
    {"sum of pads at one place of another axis",
     CORNERS "%s = add %c, %a : f32[4,6]\n%t = neg %d : f32[4,6]\n%o = mul %t, %b : f32[4,6]\n"
             "%r = mul %s, %o : f32[4,6]\n" R,
     CORNER_PARTS
     "%b = pad %y {lo=[0,2],hi=[2,0],value=0.0} : f32[4,6]\n"
     "%d = pad %v {lo=[2,2],hi=[0,0],value=0.0} : f32[4,6]\n"
     "%s.concat = concat %x, %u {axis=0} : f32[4,2]\n"
     "%s = pad %s.concat {lo=[0,0],hi=[0,4],value=0.0} : f32[4,6]\n"
     "%t = neg %d : f32[4,6]\n%o = mul %t, %b : f32[4,6]\n%r = mul %s, %o : f32[4,6]\n" R},
    {"pads one by one to what is no pad",
     PADS W
     "%s = add %w, %c : f32[4,6]\n%t = add %b, %s : f32[4,6]\n%r = add %t, %a : f32[4,6]\n" R,
     PARTS W "%t.concat = concat %k, %v {axis=1} : f32[4,4]\n"
             "%r.concat = concat %q, %t.concat {axis=1} : f32[4,6]\n"
             "%r = add %w, %r.concat : f32[4,6]\n" R},
    {"pads to what is no pad, another between them",
     PAD_A W "%p = pad %q {lo=[0,1],hi=[0,3],value=0.0} : f32[4,6]\n"
             "%c = pad %q {lo=[0,2],hi=[0,2],value=0.0} : f32[4,6]\n%s = add %w, %a : f32[4,6]\n"
             "%t = add %s, %p : f32[4,6]\n%r = add %t, %c : f32[4,6]\n" R,
     "%q = input : f32[4,2]\n" W "%p = pad %q {lo=[0,1],hi=[0,3],value=0.0} : f32[4,6]\n"
     "%r.concat = concat %q, %q {axis=1} : f32[4,4]\n"
     "%r.pad = pad %r.concat {lo=[0,0],hi=[0,2],value=0.0} : f32[4,6]\n"
     "%r.add = add %w, %r.pad : f32[4,6]\n%r = add %r.add, %p : f32[4,6]\n" R},
    {"a pad to a sum that others read",
     PAD_A W "%p = pad %q {lo=[0,2],hi=[0,2],value=0.0} : f32[4,6]\n%s = add %w, %a : f32[4,6]\n"
             "%t = add %s, %p : f32[4,6]\n%r = mul %s, %t : f32[4,6]\n" R,
     NULL},
    {"a pad to a sum with one that it overlaps",
     PAD_A W "%s = add %w, %a : f32[4,6]\n%r = add %s, %a : f32[4,6]\n" R, NULL},
    {"sum of pads with ones around",
     PAD_A "%p = pad %q {lo=[0,2],hi=[0,2],value=1.0} : f32[4,6]\n%r = add %a, %p : f32[4,6]\n" R,
     NULL},
};

// --- running -------------------------------------------------------------------------------
static ir_module *simplified(ir_arena *a, const char *text) {
  ir_module *m = test_module(a, NULL, text);
  ir_diags *d = diag_new(a);
  pass_algebra(m, d);
  ir_buf faults = ir_buf_new(a);
  if (ir_verify(m, &faults))
    test_fail("invalid IR after algebra\n%s", ir_buf_str(&faults));
  return m;
}

static void check_values(ir_arena *a, const rule_case *c, const ir_module *after) {
  test_values x = test_run(a, test_module(a, NULL, c->before), "f", 7);
  test_values y = test_run(a, after, "f", 7);
  const char *where;
  double diff = test_difference(&x, &y, &where);
  if (diff > 1e-12)
    test_fail("%s: %s differs by %g", c->rule, where, diff);
}

static void check_case(const rule_case *c) {
  ir_arena *a = ir_arena_new();
  const char *want = test_print(a, test_module(a, NULL, c->after ? c->after : c->before));
  ir_module *after = simplified(a, c->before);
  test_same_text(c->rule, test_print(a, after), want);
  check_values(a, c, after);
  ir_arena_free(a);
}

#define CHECK_ALL(cases)                                                                           \
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases)[0]; i++)                                    \
  check_case(&(cases)[i])

int main(void) {
  CHECK_ALL(pointwise_cases);
  CHECK_ALL(logic_cases);
  CHECK_ALL(fold_cases);
  CHECK_ALL(reduce_cases);
  CHECK_ALL(view_cases);
  CHECK_ALL(move_cases);
  return test_report("algebra");
}
