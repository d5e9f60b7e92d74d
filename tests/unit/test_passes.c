// test_passes.c: table_products, quotients, join_products, cse, dce, thin_products, narrow_sums, split_reductions,
// split_columns and own_outputs on texts, each checked by the oracle.
#include "support_passes.h"

#include <math.h>
#include <string.h>

typedef struct pass_case {
  const char *what;
  pass_fn pass;
  const char *states;
  const char *before;
  const char *after; // NULL: the pass must say that it changed nothing, and change nothing
} pass_case;

#define IJ    "%i = input : i32[4]\n%j = input : i32[4]\n"
#define XY    "%x = input : f32[4]\n%y = input : f32[4]\n"
#define SEEDS "%s = const {value=1.0} : i64[]\n%t = const {value=2.0} : i64[]\n"
#define R     "result output r = %r"

// Four rows of eight numbers, picked eight times, and two gradients.
#define TABLE(rows) "%t = input : f32[" rows ",8]\n%w = input : f32[8,3]\n%i = input : i32[2,4]\n"
#define PICK        "%x = gather %t, %i : f32[2,4,8]\n%r = reshape %x : f32[8,8]\n"
#define TIMES_W     "%y = matmul %r, %w {ta=false, tb=false} : f32[8,3]\n"
#define INDEX       "%i.reshape = reshape %i : i32[8]\n"
#define SQUARES(y, shape, axes)                                                                    \
  "%q = mul %" y ", %" y " : f32[" shape "]\n%s = sum %q {axes=[" axes "]} : f32[1,1]\n"           \
  "%l = reshape %s : f32[]\n"
#define LOSS(y)        SQUARES(y, "8,3", "0,1")
#define GRAD(of, type) "%d." of " = grad %l, %" of " : " type "\nresult output " of " = %d." of "\n"
#define GRADS          GRAD("t", "f32[4,8]") GRAD("w", "f32[8,3]")

static const pass_case table_cases[] = {
    {"a product of rows", pass_table_products, NULL, TABLE("4") PICK TIMES_W LOSS("y") GRADS,
     TABLE("4") INDEX "%y.table = matmul %t, %w {ta=false, tb=false} : f32[4,3]\n"
                      "%y = gather %y.table, %i.reshape : f32[8,3]\n" LOSS("y") GRADS},
    {"which are arranged, by a weight that is turned", pass_table_products, NULL,
     "%t = input : f32[4,8]\n%w = input : f32[3,8]\n%i = input : i32[3,4]\n"
     "%x = gather %t, %i : f32[3,4,8]\n"
     "%c = slice %x {start=[1,0,0], stop=[3,4,8], step=[1,1,1]} : f32[2,4,8]\n"
     "%p = transpose %c {perm=[1,0,2]} : f32[4,2,8]\n%r = reshape %p : f32[8,8]\n"
     "%y = matmul %r, %w {ta=false, tb=true} : f32[8,3]\n" LOSS("y") GRAD("t", "f32[4,8]")
         GRAD("w", "f32[3,8]"),
     "%t = input : f32[4,8]\n%w = input : f32[3,8]\n%i = input : i32[3,4]\n"
     "%i.slice = slice %i {start=[1,0], stop=[3,4], step=[1,1]} : i32[2,4]\n"
     "%i.transpose = transpose %i.slice {perm=[1,0]} : i32[4,2]\n"
     "%i.reshape = reshape %i.transpose : i32[8]\n"
     "%y.table = matmul %t, %w {ta=false, tb=true} : f32[4,3]\n"
     "%y = gather %y.table, %i.reshape : f32[8,3]\n" LOSS("y") GRAD("t", "f32[4,8]")
         GRAD("w", "f32[3,8]")},
    {"of numbers that are converted and repeated", pass_table_products, NULL,
     "%t = input : f64[4,8]\n%w = input : f32[8,3]\n%i = input : i32[4]\n"
     "%x = gather %t, %i : f64[4,8]\n%c = cast %x : f32[4,8]\n%o = reshape %c : f32[1,4,8]\n"
     "%b = broadcast %o : f32[2,4,8]\n%r = reshape %b : f32[8,8]\n" TIMES_W LOSS("y")
         GRAD("t", "f64[4,8]") GRAD("w", "f32[8,3]"),
     "%t = input : f64[4,8]\n%w = input : f32[8,3]\n%i = input : i32[4]\n"
     "%t.cast = cast %t : f32[4,8]\n%i.reshape = reshape %i : i32[1,4]\n"
     "%i.broadcast = broadcast %i.reshape : i32[2,4]\n%i.reshape.2 = reshape %i.broadcast : "
     "i32[8]\n"
     "%y.table = matmul %t.cast, %w {ta=false, tb=false} : f32[4,3]\n"
     "%y = gather %y.table, %i.reshape.2 : f32[8,3]\n" LOSS("y") GRAD("t", "f64[4,8]")
         GRAD("w", "f32[8,3]")},
    {"with a bias", pass_table_products, NULL,
     TABLE("4") "%b = input : f32[3]\n" PICK TIMES_W
                "%o = reshape %b : f32[1,3]\n%h = broadcast %o : f32[8,3]\n"
                "%z = add %h, %y : f32[8,3]\n" LOSS("z") GRADS GRAD("b", "f32[3]"),
     TABLE("4") "%b = input : f32[3]\n" INDEX
                "%y.table = matmul %t, %w {ta=false, tb=false} : f32[4,3]\n"
                "%o = reshape %b : f32[1,3]\n%z.reshape = reshape %o : f32[3]\n"
                "%z.reshape.2 = reshape %z.reshape : f32[1,3]\n"
                "%z.broadcast = broadcast %z.reshape.2 : f32[4,3]\n"
                "%z.table = add %y.table, %z.broadcast : f32[4,3]\n"
                "%z = gather %z.table, %i.reshape : f32[8,3]\n" LOSS("z")
                    GRADS GRAD("b", "f32[3]")},
    {"with a bias whose gradient in each row is wanted", pass_table_products, NULL,
     TABLE("4") "%b = input : f32[3]\n" PICK TIMES_W
                "%o = reshape %b : f32[1,3]\n%h = broadcast %o : f32[8,3]\n"
                "%z = add %h, %y : f32[8,3]\n" LOSS("z") GRADS GRAD("h", "f32[8,3]"),
     TABLE("4") "%b = input : f32[3]\n" INDEX
                "%y.table = matmul %t, %w {ta=false, tb=false} : f32[4,3]\n"
                "%y = gather %y.table, %i.reshape : f32[8,3]\n"
                "%o = reshape %b : f32[1,3]\n%h = broadcast %o : f32[8,3]\n"
                "%z = add %h, %y : f32[8,3]\n" LOSS("z") GRADS GRAD("h", "f32[8,3]")},
    {"what differs from row to row is added behind it", pass_table_products, NULL,
     TABLE("4") "%b = input : f32[8,3]\n" PICK TIMES_W "%z = add %y, %b : f32[8,3]\n" LOSS("z")
         GRADS,
     TABLE("4") "%b = input : f32[8,3]\n" INDEX
                "%y.table = matmul %t, %w {ta=false, tb=false} : f32[4,3]\n"
                "%y = gather %y.table, %i.reshape : f32[8,3]\n%z = add %y, %b : f32[8,3]\n" LOSS(
                    "z") GRADS},
    {"of rows that something else uses, too", pass_table_products, NULL,
     TABLE("4") PICK TIMES_W LOSS("y") GRADS "result output x = %x\n",
     TABLE("4") "%x = gather %t, %i : f32[2,4,8]\n" INDEX
                "%y.table = matmul %t, %w {ta=false, tb=false} : f32[4,3]\n"
                "%y = gather %y.table, %i.reshape : f32[8,3]\n" LOSS("y") GRADS
     "result output x = %x\n"},
    {"and a product of the product, but for one whose gradient is wanted", pass_table_products,
     NULL,
     "%t = input : f32[4,8]\n%w = input : f32[8,8]\n%i = input : i32[8]\n"
     "%r = gather %t, %i : f32[8,8]\n%a = matmul %r, %w {ta=false, tb=false} : f32[8,8]\n"
     "%b = matmul %a, %w {ta=false, tb=false} : f32[8,8]\n"
     "%y = matmul %b, %w {ta=false, tb=false} : f32[8,8]\n" SQUARES("y", "8,8", "0,1")
         GRAD("t", "f32[4,8]") GRAD("b", "f32[8,8]"),
     "%t = input : f32[4,8]\n%w = input : f32[8,8]\n%i = input : i32[8]\n"
     "%a.table = matmul %t, %w {ta=false, tb=false} : f32[4,8]\n"
     "%b.table = matmul %a.table, %w {ta=false, tb=false} : f32[4,8]\n"
     "%b = gather %b.table, %i : f32[8,8]\n"
     "%y = matmul %b, %w {ta=false, tb=false} : f32[8,8]\n" SQUARES("y", "8,8", "0,1")
         GRAD("t", "f32[4,8]") GRAD("b", "f32[8,8]")},
    {"a row is picked less than twice", pass_table_products, NULL,
     TABLE("5") PICK TIMES_W LOSS("y") GRAD("t", "f32[5,8]"), NULL},
    {"short rows", pass_table_products, NULL,
     "%t = input : f32[4,7]\n%w = input : f32[7,3]\n%i = input : i32[8]\n"
     "%r = gather %t, %i : f32[8,7]\n" TIMES_W LOSS("y") GRAD("t", "f32[4,7]"),
     NULL},
    {"rows that are cut", pass_table_products, NULL,
     "%t = input : f32[4,16]\n%w = input : f32[8,3]\n%i = input : i32[8]\n"
     "%x = gather %t, %i : f32[8,16]\n%r = reshape %x : f32[16,8]\n"
     "%y = matmul %r, %w {ta=false, tb=false} : f32[16,3]\n" SQUARES("y", "16,3", "0,1")
         GRAD("t", "f32[4,16]"),
     NULL},
    {"rows that are turned", pass_table_products, NULL,
     "%t = input : f32[4,8]\n%w = input : f32[8,3]\n%i = input : i32[8]\n"
     "%x = gather %t, %i : f32[8,8]\n%r = transpose %x {perm=[1,0]} : f32[8,8]\n" TIMES_W LOSS("y")
         GRAD("t", "f32[4,8]"),
     NULL},
    {"a product that turns them", pass_table_products, NULL,
     TABLE("4") PICK "%y = matmul %r, %w {ta=true, tb=false} : f32[8,3]\n" LOSS("y") GRADS, NULL},
    {"the rows' own gradient is wanted", pass_table_products, NULL,
     TABLE("4") PICK TIMES_W LOSS("y") GRADS GRAD("x", "f32[2,4,8]"), NULL},
    {"that of a view of them", pass_table_products, NULL,
     TABLE("4") PICK TIMES_W LOSS("y") GRADS GRAD("r", "f32[8,8]"), NULL},
    {"nothing is differentiated any more", pass_table_products, NULL,
     TABLE("4") PICK TIMES_W LOSS("y") "result loss loss = %l\n", NULL},
};

#define SOFTMAX                                                                                    \
  "%e = input : f32[2,4]\n%s = sum %e {axes=[1]} : f32[2,1]\n%sb = broadcast %s : f32[2,4]\n"      \
  "%g = input : f32[2,4]\n%p = div %e, %sb : f32[2,4]\n"

static const pass_case quotient_cases[] = {
    {"a numerator times something divided alike", pass_quotients, NULL,
     SOFTMAX "%a = div %g, %sb : f32[2,4]\n%q = mul %a, %e : f32[2,4]\n"
             "%r = add %p, %q : f32[2,4]\n" R,
     SOFTMAX "%q = mul %g, %p : f32[2,4]\n%r = add %p, %q : f32[2,4]\n" R},
    {"on the other side", pass_quotients, NULL,
     SOFTMAX "%a = div %g, %sb : f32[2,4]\n%q = mul %e, %a : f32[2,4]\n"
             "%r = add %p, %q : f32[2,4]\n" R,
     SOFTMAX "%q = mul %g, %p : f32[2,4]\n%r = add %p, %q : f32[2,4]\n" R},
    {"a term that is not divided", pass_quotients, NULL,
     SOFTMAX "%a = div %g, %sb : f32[2,4]\n%b = add %a, %g : f32[2,4]\n"
             "%q = mul %b, %e : f32[2,4]\n%r = add %p, %q : f32[2,4]\n" R,
     NULL},
    {"divided by something else", pass_quotients, NULL,
     SOFTMAX "%a = div %g, %e : f32[2,4]\n%q = mul %a, %e : f32[2,4]\n"
             "%r = add %p, %q : f32[2,4]\n" R,
     NULL},
    {"a sum over all rows mixes divisors", pass_quotients, NULL,
     SOFTMAX "%a = div %g, %sb : f32[2,4]\n%t = sum %a {axes=[0]} : f32[1,4]\n"
             "%b = broadcast %t : f32[2,4]\n%q = mul %b, %e : f32[2,4]\n"
             "%r = add %p, %q : f32[2,4]\n" R,
     NULL},
    {"no quotient of that numerator", pass_quotients, NULL,
     SOFTMAX "%a = div %g, %sb : f32[2,4]\n%q = mul %a, %g : f32[2,4]\n"
             "%r = add %p, %q : f32[2,4]\n" R,
     NULL},
};

#define STEPS                                                                                      \
  "%h0 = input : f32[2,8]\n%h1 = input : f32[2,8]\n%h2 = input : f32[2,8]\n"                       \
  "%g0 = input : f32[2,16]\n%g1 = input : f32[2,16]\n%g2 = input : f32[2,16]\n"
#define T                " {ta=true, tb=false} : f32[8,16]\n"
#define PRODUCT(n, h, g) "%" n " = matmul %" h ", %" g T

static const pass_case join_cases[] = {
    {"operands are put side by side, what else is added stays", pass_join_products, NULL,
     STEPS "%b = input : f32[8,16]\n" PRODUCT("p", "h0", "g0") PRODUCT("q", "h1", "g1")
         PRODUCT("v", "h2", "g2") "%s = add %p, %q : f32[8,16]\n%t = add %s, %b : f32[8,16]\n"
                                  "%r = add %t, %v : f32[8,16]\n" R,
     STEPS "%b = input : f32[8,16]\n%r.concat = concat %h2, %h0, %h1 {axis=0} : f32[6,8]\n"
           "%r.concat.2 = concat %g2, %g0, %g1 {axis=0} : f32[6,16]\n" PRODUCT(
               "r.matmul", "r.concat", "r.concat.2") "%r = add %b, %r.matmul : f32[8,16]\n" R},
    {"in the order of a concat, which is read where it is", pass_join_products, NULL,
     STEPS PRODUCT("p", "h0", "g1") PRODUCT(
         "q", "h1",
         "g2") "%r = add %q, %p : f32[8,16]\n"
               "%x0 = reshape %g0 : f32[1,2,16]\n%x1 = reshape %g1 : f32[1,2,16]\n"
               "%x2 = reshape %g2 : f32[1,2,16]\n%c = concat %x0, %x1, %x2 {axis=0} : f32[3,2,16]\n"
               "result output c = %c\n" R,
     STEPS "%x0 = reshape %g0 : f32[1,2,16]\n%x1 = reshape %g1 : f32[1,2,16]\n"
           "%x2 = reshape %g2 : f32[1,2,16]\n%c = concat %x0, %x1, %x2 {axis=0} : f32[3,2,16]\n"
           "%r.concat = concat %h0, %h1 {axis=0} : f32[4,8]\n"
           "%r.slice = slice %c {start=[1,0,0], stop=[3,2,16], step=[1,1,1]} : f32[2,2,16]\n"
           "%r.reshape = reshape %r.slice : f32[4,16]\n" PRODUCT(
               "r", "r.concat", "r.reshape") "result output c = %c\n" R},
    {"a concat that comes after the sum is used is not read", pass_join_products, NULL,
     STEPS PRODUCT("p", "h0", "g0") PRODUCT(
         "q", "h1", "g1") "%s = add %p, %q : f32[8,16]\n"
                          "%r = neg %s : f32[8,16]\n%c = concat %g0, %g1 {axis=0} : f32[4,16]\n"
                          "result output c = %c\n" R,
     STEPS "%s.concat = concat %h0, %h1 {axis=0} : f32[4,8]\n"
           "%s.concat.2 = concat %g0, %g1 {axis=0} : f32[4,16]\n" PRODUCT(
               "s", "s.concat",
               "s.concat.2") "%r = neg %s : f32[8,16]\n"
                             "%c = concat %g0, %g1 {axis=0} : f32[4,16]\nresult output c = %c\n" R},
    {"along the last axis", pass_join_products, NULL,
     "%a = input : f32[16,2]\n%b = input : f32[16,3]\n%c = input : f32[2,16]\n"
     "%d = input : f32[3,16]\n%p = matmul %a, %c {ta=false, tb=false} : f32[16,16]\n"
     "%q = matmul %b, %d {ta=false, tb=false} : f32[16,16]\n%r = add %p, %q : f32[16,16]\n" R,
     "%a = input : f32[16,2]\n%b = input : f32[16,3]\n%c = input : f32[2,16]\n"
     "%d = input : f32[3,16]\n%r.concat = concat %a, %b {axis=1} : f32[16,5]\n"
     "%r.concat.2 = concat %c, %d {axis=0} : f32[5,16]\n"
     "%r = matmul %r.concat, %r.concat.2 {ta=false, tb=false} : f32[16,16]\n" R},
    {"copies that are larger than what is saved", pass_join_products, NULL,
     "%a = input : f32[64,4]\n%b = input : f32[64,8]\n%c = input : f32[64,4]\n%d = input : "
     "f32[64,8]\n"
     "%p = matmul %a, %b {ta=true, tb=false} : f32[4,8]\n"
     "%q = matmul %c, %d {ta=true, tb=false} : f32[4,8]\n%r = add %p, %q : f32[4,8]\n" R,
     NULL},
    {"a product that something else uses, too", pass_join_products, NULL,
     STEPS PRODUCT("p", "h0", "g0") PRODUCT("q", "h1", "g1") "%s = add %p, %q : f32[8,16]\n"
                                                             "%r = mul %s, %p : f32[8,16]\n" R,
     NULL},
};

#define TIMES(n, h, b, tb) "%" n " = matmul %" h ", %" b " {ta=false, tb=" tb "} : f32[2,128]\n"
#define CHAIN(b, tb)                                                                               \
  TIMES("h1", "h0", b, tb)                                                                         \
  TIMES("h2", "h1", b, tb) TIMES("h3", "h2", b, tb) TIMES("r", "h3", b, tb) R
#define PANELS(split, perm)                                                                        \
  "%w.reshape = reshape %w : f32[" split "]\n"                                                     \
  "%w.transpose = transpose %w.reshape {perm=[" perm "]} : f32[4,128,32]\n"                        \
  "%w.panels = copy %w.transpose : f32[4,128,32]\n"                                                \
  "%w.transpose.2 = transpose %w.panels {perm=[" perm "]} : f32[" split "]\n"                      \
  "%w.reshape.2 = reshape %w.transpose.2 : f32[128,128]\n"
#define WEIGHT "%h0 = input : f32[2,128]\n%w = input : f32[128,128]\n"

#define NARROW(x, y, shape)                                                                        \
  "%" y "n = cast %" x " : bf16" shape "\n%" y "w = cast %" y "n : f32" shape "\n"
#define PAIR_PANELS(split, perm, back)                                                             \
  "%wn = cast %w : bf16[128,128]\n" NARROW(                                                        \
      "h0", "a", "[2,128]") "%ww.reshape = reshape %wn : bf16[" split "]\n"                        \
                            "%ww.transpose = transpose %ww.reshape {perm=[" perm                   \
                            "]} : bf16[4,64,32,2]\n"                                               \
                            "%wn.panels = copy %ww.transpose : bf16[4,64,32,2]\n"                  \
                            "%ww.cast = cast %wn.panels : f32[4,64,32,2]\n"                        \
                            "%ww.transpose.2 = transpose %ww.cast {perm=[" back "]} : f32[" split  \
                            "]\n"                                                                  \
                            "%ww.reshape.2 = reshape %ww.transpose.2 : f32[128,128]\n"
#define RESULTS             "result output h1 = %h1\nresult output h2 = %h2\nresult output h3 = %h3\n" R
#define TWICE(m, n, b, tb)  TIMES(m, "aw", b, tb) TIMES(n, "aw", b, tb)
#define NARROW_CHAIN(b, tb) TWICE("h1", "h2", b, tb) TWICE("h3", "r", b, tb) RESULTS
#define NARROW_WEIGHT       WEIGHT NARROW("w", "w", "[128,128]") NARROW("h0", "a", "[2,128]")

static const pass_case panels_cases[] = {
    {"pairs of rows of a narrowed matrix", pass_pair_panels, NULL,
     NARROW_WEIGHT NARROW_CHAIN("ww", "false"),
     WEIGHT PAIR_PANELS("64,2,4,32", "2,0,3,1", "1,3,0,2") NARROW_CHAIN("ww.reshape.2", "false")},
    {"pairs of columns of one that is turned", pass_pair_panels, NULL,
     NARROW_WEIGHT NARROW_CHAIN("ww", "true"),
     WEIGHT PAIR_PANELS("4,32,64,2", "0,2,1,3", "0,2,1,3") NARROW_CHAIN("ww.reshape.2", "true")},
    {"no pairs of what only one side has narrowed", pass_pair_panels, NULL,
     WEIGHT NARROW("w", "w", "[128,128]") CHAIN("ww", "false"), NULL},
    {"panels of pairs are panels", pass_panels, NULL,
     WEIGHT PAIR_PANELS("64,2,4,32", "2,0,3,1", "1,3,0,2") NARROW_CHAIN("ww.reshape.2", "false"),
     NULL},
    {"one copy for four products", pass_panels, NULL, WEIGHT CHAIN("w", "false"),
     WEIGHT PANELS("128,4,32", "1,0,2") CHAIN("w.reshape.2", "false")},
    {"of a matrix that is turned", pass_panels, NULL, WEIGHT CHAIN("w", "true"),
     WEIGHT PANELS("4,32,128", "0,2,1") CHAIN("w.reshape.2", "true")},
    {"three products, and one that reads it turned", pass_panels, NULL,
     WEIGHT TIMES("h1", "h0", "w", "false") TIMES("h2", "h1", "w", "false")
         TIMES("h3", "h2", "w", "false") TIMES("r", "h3", "w", "true") R,
     NULL},
    {"a small matrix", pass_panels, NULL,
     "%h0 = input : f32[2,64]\n%w = input : f32[64,64]\n"
     "%h1 = matmul %h0, %w {ta=false, tb=false} : f32[2,64]\n"
     "%h2 = matmul %h1, %w {ta=false, tb=false} : f32[2,64]\n"
     "%h3 = matmul %h2, %w {ta=false, tb=false} : f32[2,64]\n"
     "%r = matmul %h3, %w {ta=false, tb=false} : f32[2,64]\n" R,
     NULL},
    {"operands that are rounded on the way", pass_panels, NULL,
     WEIGHT "%t = tf32 %w : f32[128,128]\n" CHAIN("t", "false"), NULL},
    {"products of many rows", pass_panels, NULL,
     "%x = input : f32[257,128]\n%w = input : f32[128,128]\n"
     "%a = matmul %x, %w {ta=false, tb=false} : f32[257,128]\n"
     "%b = matmul %a, %w {ta=false, tb=false} : f32[257,128]\n"
     "%c = matmul %b, %w {ta=false, tb=false} : f32[257,128]\n"
     "%r = matmul %c, %w {ta=false, tb=false} : f32[257,128]\n" R,
     NULL},
};

static const pass_case cse_cases[] = {
    {"equal nodes", pass_cse, NULL,
     XY "%a = mul %x, %y : f32[4]\n%b = mul %x, %y : f32[4]\n%r = sub %a, %b : f32[4]\n" R,
     XY "%a = mul %x, %y : f32[4]\n%r = sub %a, %a : f32[4]\n" R},
    {"operands of ops that commute", pass_cse, NULL,
     XY "%a = add %x, %y : f32[4]\n%b = add %y, %x : f32[4]\n%r = sub %a, %b : f32[4]\n" R,
     XY "%a = add %x, %y : f32[4]\n%r = sub %a, %a : f32[4]\n" R},
    {"the largest of a NaN and a number is the second of them", pass_cse, NULL,
     XY "%a = max %x, %y : f32[4]\n%b = max %y, %x : f32[4]\n%r = sub %a, %b : f32[4]\n" R, NULL},
    {"integers have no NaN", pass_cse, NULL,
     IJ "%a = min %i, %j : i32[4]\n%b = min %j, %i : i32[4]\n%r = sub %a, %b : i32[4]\n" R,
     IJ "%a = min %i, %j : i32[4]\n%r = sub %a, %a : i32[4]\n" R},
    {"operands of ops that do not", pass_cse, NULL,
     XY "%a = div %x, %y : f32[4]\n%b = div %y, %x : f32[4]\n%r = sub %a, %b : f32[4]\n" R, NULL},
    {"chains", pass_cse, NULL,
     XY "%a = exp %x : f32[4]\n%b = exp %x : f32[4]\n%c = neg %a : f32[4]\n%d = neg %b : f32[4]\n"
        "%r = mul %c, %d : f32[4]\n" R,
     XY "%a = exp %x : f32[4]\n%c = neg %a : f32[4]\n%r = mul %c, %c : f32[4]\n" R},
    {"constants", pass_cse, NULL,
     XY "%a = const {value=0.5} : f32[4]\n%b = const {value=0.5} : f32[4]\n"
        "%c = mul %x, %a : f32[4]\n%r = sub %c, %b : f32[4]\n" R,
     XY "%a = const {value=0.5} : f32[4]\n%c = mul %x, %a : f32[4]\n%r = sub %c, %a : f32[4]\n" R},
    {"0 and -0", pass_cse, NULL,
     XY "%a = const {value=0.0} : f32[4]\n%b = const {value=-0.0} : f32[4]\n"
        "%c = div %x, %a : f32[4]\n%d = div %x, %b : f32[4]\n%r = sub %c, %d : f32[4]\n" R,
     NULL},
    {"constants of other types", pass_cse, NULL,
     "%a = const {value=2.0} : f32[4]\n%b = const {value=2.0} : f32[1]\n"
     "%c = broadcast %b : f32[4]\n%r = sub %a, %c : f32[4]\n" R,
     NULL},
    {"attributes", pass_cse, NULL,
     "%x = input : f32[4,4]\n%a = sum %x {axes=[0]} : f32[1,4]\n%b = sum %x {axes=[1]} : f32[4,1]\n"
     "%c = reshape %b : f32[1,4]\n%r = sub %a, %c : f32[1,4]\n" R,
     NULL},
    {"one random stream", pass_cse, NULL,
     SEEDS "%a = uniform %s, %t {stream=1} : f32[4]\n%b = uniform %s, %t {stream=1} : f32[4]\n"
           "%r = sub %a, %b : f32[4]\n" R,
     SEEDS "%a = uniform %s, %t {stream=1} : f32[4]\n%r = sub %a, %a : f32[4]\n" R},
    {"two random streams", pass_cse, NULL,
     SEEDS "%a = uniform %s, %t {stream=1} : f32[4]\n%b = uniform %s, %t {stream=2} : f32[4]\n"
           "%r = sub %a, %b : f32[4]\n" R,
     NULL},
    {"inputs", pass_cse, NULL, XY "%r = sub %x, %y : f32[4]\n" R, NULL},
    {"reads", pass_cse, "state w : f32[4] role=param\nstate v : f32[4] role=param",
     "%a = read @w : f32[4]\n%b = read @w : f32[4]\n%c = read @v : f32[4]\n"
     "%d = sub %a, %b : f32[4]\n%r = mul %d, %c : f32[4]\n" R,
     "%a = read @w : f32[4]\n%c = read @v : f32[4]\n%d = sub %a, %a : f32[4]\n"
     "%r = mul %d, %c : f32[4]\n" R},
};

static const pass_case dce_cases[] = {
    {"unused chain", pass_dce, NULL,
     XY "%a = exp %x : f32[4]\n%b = neg %a : f32[4]\n%r = add %x, %y : f32[4]\n" R,
     XY "%r = add %x, %y : f32[4]\n" R},
    {"writes are uses", pass_dce, "state w : f32[4] role=param",
     XY "%a = exp %x : f32[4]\n%b = neg %y : f32[4]\nwrite @w, %a",
     XY "%a = exp %x : f32[4]\nwrite @w, %a"},
    {"inputs stay", pass_dce, NULL, XY "%r = exp %y : f32[4]\n" R, NULL},
};

static const pass_case own_cases[] = {
    {"computed once, used once", pass_own_outputs, "state w : f32[4] role=param",
     XY "%a = exp %x : f32[4]\n%r = neg %a : f32[4]\nwrite @w, %a\n" R, NULL},
    {"a leaf", pass_own_outputs, "state w : f32[4] role=param\nstate v : f32[4] role=buffer",
     "%w = read @w : f32[4]\nwrite @v, %w",
     "%w = read @w : f32[4]\n%v.copy = copy %w : f32[4]\n"
     "write @v, %v.copy"},
    {"a view", pass_own_outputs, "state w : f32[2,2] role=param",
     XY "%a = exp %x : f32[4]\n%b = reshape %a : f32[2,2]\nwrite @w, %b",
     XY "%a = exp %x : f32[4]\n%b = reshape %a : f32[2,2]\n%w.copy = copy %b : f32[2,2]\n"
        "write @w, %w.copy"},
    {"written twice", pass_own_outputs, "state w : f32[4] role=param\nstate v : f32[4] role=buffer",
     XY "%a = exp %x : f32[4]\nwrite @w, %a\nwrite @v, %a",
     XY "%a = exp %x : f32[4]\nwrite @w, %a\n%v.copy = copy %a : f32[4]\nwrite @v, %v.copy"},
    {"written and a result", pass_own_outputs, "state w : f32[4] role=param",
     XY "%a = exp %x : f32[4]\nwrite @w, %a\nresult output r = %a",
     XY
     "%a = exp %x : f32[4]\nwrite @w, %a\n%r.copy = copy %a : f32[4]\nresult output r = %r.copy"},
    {"two results", pass_own_outputs, NULL,
     XY "%a = exp %x : f32[4]\nresult output r = %a\nresult output q = %a",
     XY "%a = exp %x : f32[4]\n%q.copy = copy %a : f32[4]\nresult output r = %a\n"
        "result output q = %q.copy"},
    {"an input and a constant as results", pass_own_outputs, NULL,
     XY "%c = const {value=1.0} : f32[]\nresult output r = %x\nresult output q = %c",
     XY "%c = const {value=1.0} : f32[]\n%r.copy = copy %x : f32[4]\n%q.copy = copy %c : f32[]\n"
        "result output r = %r.copy\nresult output q = %q.copy"},
};

static const pass_case thin_cases[] = {
    {"one column", pass_thin_products, NULL,
     "%a = input : f32[4,6]\n%b = input : f32[6,1]\n"
     "%r = matmul %a, %b {ta=false, tb=false} : f32[4,1]\n" R,
     "%a = input : f32[4,6]\n%b = input : f32[6,1]\n"
     "%r.reshape = reshape %b : f32[1,6]\n%r.broadcast = broadcast %r.reshape : f32[4,6]\n"
     "%r.mul = mul %a, %r.broadcast : f32[4,6]\n%r = sum %r.mul {axes=[1]} : f32[4,1]\n" R},
    {"one column that lies as a row, of several matrices", pass_thin_products, NULL,
     "%a = input : f32[2,4,6]\n%b = input : f32[2,1,6]\n"
     "%r = matmul %a, %b {ta=false, tb=true} : f32[2,4,1]\n" R,
     "%a = input : f32[2,4,6]\n%b = input : f32[2,1,6]\n"
     "%r.broadcast = broadcast %b : f32[2,4,6]\n%r.mul = mul %a, %r.broadcast : f32[2,4,6]\n"
     "%r = sum %r.mul {axes=[2]} : f32[2,4,1]\n" R},
    {"one row", pass_thin_products, NULL,
     "%a = input : f32[6,1]\n%b = input : f32[4,6]\n"
     "%r = matmul %a, %b {ta=true, tb=true} : f32[1,4]\n" R,
     "%a = input : f32[6,1]\n%b = input : f32[4,6]\n"
     "%r.reshape = reshape %a : f32[1,6]\n%r.broadcast = broadcast %r.reshape : f32[4,6]\n"
     "%r.mul = mul %b, %r.broadcast : f32[4,6]\n%r.sum = sum %r.mul {axes=[1]} : f32[4,1]\n"
     "%r = reshape %r.sum : f32[1,4]\n" R},
    {"a number", pass_thin_products, NULL,
     "%a = input : f32[1,6]\n%b = input : f32[6,1]\n"
     "%r = matmul %a, %b {ta=false, tb=false} : f32[1,1]\n" R,
     "%a = input : f32[1,6]\n%b = input : f32[6,1]\n"
     "%r.reshape = reshape %b : f32[1,6]\n%r.mul = mul %a, %r.reshape : f32[1,6]\n"
     "%r = sum %r.mul {axes=[1]} : f32[1,1]\n" R},
    {"a vector by a number", pass_thin_products, NULL,
     "%a = input : f32[6,1]\n%b = input : f32[1,1]\n"
     "%r = matmul %a, %b {ta=false, tb=true} : f32[6,1]\n" R,
     "%a = input : f32[6,1]\n%b = input : f32[1,1]\n"
     "%r.broadcast = broadcast %b : f32[6,1]\n%r = mul %a, %r.broadcast : f32[6,1]\n" R},
    {"sums over columns, and over one step", pass_thin_products, NULL,
     "%a = input : f32[6,4]\n%b = input : f32[6,1]\n%c = input : f32[1,6]\n"
     "%r = matmul %a, %b {ta=true, tb=false} : f32[4,1]\n"
     "%s = matmul %c, %a {ta=false, tb=false} : f32[1,4]\n"
     "%t = matmul %b, %c {ta=false, tb=false} : f32[6,6]\nresult output s = %s\n"
     "result output t = %t\n" R,
     NULL},
};

static const pass_case narrow_cases[] = {
    {"three columns, 16 rows side by side", pass_narrow_sums, NULL,
     "%x = input : f32[8000,3]\n%y = mul %x, %x : f32[8000,3]\n%r = sum %y {axes=[0]} : "
     "f32[1,3]\n" R,
     "%x = input : f32[8000,3]\n%y = mul %x, %x : f32[8000,3]\n"
     "%r.reshape = reshape %y : f32[500,16,3]\n%r.sum = sum %r.reshape {axes=[0]} : f32[1,16,3]\n"
     "%r.sum.2 = sum %r.sum {axes=[1]} : f32[1,1,3]\n%r = reshape %r.sum.2 : f32[1,3]\n" R},
    {"channels of images", pass_narrow_sums, NULL,
     "%x = input : f32[4,24,32,8]\n%r = reduce_max %x {axes=[0,1,2]} : f32[1,1,1,8]\n" R,
     "%x = input : f32[4,24,32,8]\n%r.reshape = reshape %x : f32[4,24,4,8,8]\n"
     "%r.reduce_max = reduce_max %r.reshape {axes=[0,1,2]} : f32[1,1,1,8,8]\n"
     "%r.reduce_max.2 = reduce_max %r.reduce_max {axes=[3]} : f32[1,1,1,1,8]\n"
     "%r = reshape %r.reduce_max.2 : f32[1,1,1,8]\n" R},
    {"a factor for each row", pass_narrow_sums, NULL,
     "%x = input : f32[8000,3]\n%s = input : f32[8000,1]\n%b = broadcast %s : f32[8000,3]\n"
     "%y = mul %x, %b : f32[8000,3]\n%r = sum %y {axes=[0]} : f32[1,3]\n" R,
     NULL},
    {"more columns, few rows, no number of rows", pass_narrow_sums, NULL,
     "%x = input : f32[8000,9]\n%y = input : f32[512,8]\n%z = input : f32[8009,3]\n"
     "%r = sum %x {axes=[0]} : f32[1,9]\n%s = sum %y {axes=[0]} : f32[1,8]\n"
     "%t = sum %z {axes=[0]} : f32[1,3]\nresult output s = %s\nresult output t = %t\n" R,
     NULL},
};

static const pass_case split_cases[] = {
    {"all of a matrix", pass_split_reductions, NULL,
     "%x = input : f32[784,128]\n%r = sum %x {axes=[0,1]} : f32[1,1]\n" R,
     "%x = input : f32[784,128]\n%r.reshape = reshape %x : f32[196,4,128]\n"
     "%r.sum = sum %r.reshape {axes=[1,2]} : f32[196,1,1]\n"
     "%r.sum.2 = sum %r.sum {axes=[0]} : f32[1,1,1]\n%r = reshape %r.sum.2 : f32[1,1]\n" R},
    {"a vector", pass_split_reductions, NULL,
     "%x = input : f32[16384]\n%r = reduce_max %x {axes=[0]} : f32[1]\n" R,
     "%x = input : f32[16384]\n%r.reshape = reshape %x : f32[128,128]\n"
     "%r.reduce_max = reduce_max %r.reshape {axes=[1]} : f32[128,1]\n"
     "%r.reduce_max.2 = reduce_max %r.reduce_max {axes=[0]} : f32[1,1]\n"
     "%r = reshape %r.reduce_max.2 : f32[1]\n" R},
    {"between axes", pass_split_reductions, NULL,
     "%x = input : f32[100,7,100]\n%r = sum %x {axes=[0,2]} : f32[1,7,1]\n" R,
     "%x = input : f32[100,7,100]\n%r.sum = sum %x {axes=[2]} : f32[100,7,1]\n"
     "%r = sum %r.sum {axes=[0]} : f32[1,7,1]\n" R},
    {"a long kept axis has tasks enough", pass_split_reductions, NULL,
     "%x = input : f32[9000,65]\n%r = sum %x {axes=[0]} : f32[1,65]\n" R, NULL},
    {"few columns of a large matrix", pass_split_reductions, NULL,
     "%x = input : f32[2048,64]\n%r = sum %x {axes=[0]} : f32[1,64]\n" R,
     "%x = input : f32[2048,64]\n%r.reshape = reshape %x : f32[64,32,64]\n"
     "%r.sum = sum %r.reshape {axes=[1]} : f32[64,1,64]\n"
     "%r.sum.2 = sum %r.sum {axes=[0]} : f32[1,1,64]\n%r = reshape %r.sum.2 : f32[1,64]\n" R},
    {"and of a smaller one", pass_split_reductions, NULL,
     "%x = input : f32[1024,64]\n%r = sum %x {axes=[0]} : f32[1,64]\n" R, NULL},
    {"what is inside windows of what no cache holds", pass_split_reductions, NULL,
     "%x = input : f32[8,34,34,64]\n"
     "%w = windows %x {axes=[1,2], step=[1,1], size=[3,3], dilate=[1,1]} : f32[8,32,32,64,3,3]\n"
     "%r = sum %w {axes=[0,1,2]} : f32[1,1,1,64,3,3]\n" R,
     "%x = input : f32[8,34,34,64]\n"
     "%w = windows %x {axes=[1,2], step=[1,1], size=[3,3], dilate=[1,1]} : f32[8,32,32,64,3,3]\n"
     "%r.sum = sum %w {axes=[1,2]} : f32[8,1,1,64,3,3]\n"
     "%r = sum %r.sum {axes=[0]} : f32[1,1,1,64,3,3]\n" R},
    {"and of what one does", pass_split_reductions, NULL,
     "%x = input : f32[8,10,10,64]\n"
     "%w = windows %x {axes=[1,2], step=[1,1], size=[3,3], dilate=[1,1]} : f32[8,8,8,64,3,3]\n"
     "%r = sum %w {axes=[0,1,2]} : f32[1,1,1,64,3,3]\n" R,
     NULL},
    {"short", pass_split_reductions, NULL,
     "%x = input : f32[8192]\n%r = sum %x {axes=[0]} : f32[1]\n" R, NULL},
    {"of what was repeated and reshaped: 112 chunks, not 140, end between its rows",
     pass_split_reductions, NULL,
     "%x = input : f32[112,1,80,4]\n%b = broadcast %x : f32[112,2,80,4]\n"
     "%s = mul %b, %b : f32[112,2,80,4]\n%y = reshape %s : f32[17920,4]\n"
     "%r = sum %y {axes=[0]} : f32[1,4]\n" R,
     "%x = input : f32[112,1,80,4]\n%b = broadcast %x : f32[112,2,80,4]\n"
     "%s = mul %b, %b : f32[112,2,80,4]\n%y = reshape %s : f32[17920,4]\n"
     "%r.reshape = reshape %y : f32[112,160,4]\n"
     "%r.sum = sum %r.reshape {axes=[1]} : f32[112,1,4]\n"
     "%r.sum.2 = sum %r.sum {axes=[0]} : f32[1,1,4]\n%r = reshape %r.sum.2 : f32[1,4]\n" R},
    {"prime, one left over", pass_split_reductions, NULL,
     "%x = input : f32[8209]\n%r = sum %x {axes=[0]} : f32[1]\n" R,
     "%x = input : f32[8209]\n"
     "%r.slice = slice %x {start=[0], stop=[8208], step=[1]} : f32[8208]\n"
     "%r.reshape = reshape %r.slice : f32[108,76]\n"
     "%r.sum = sum %r.reshape {axes=[1]} : f32[108,1]\n"
     "%r.sum.2 = sum %r.sum {axes=[0]} : f32[1,1]\n"
     "%r.slice.2 = slice %x {start=[8208], stop=[8209], step=[1]} : f32[1]\n"
     "%r.reshape.2 = reshape %r.slice.2 : f32[1,1]\n"
     "%r.add = add %r.sum.2, %r.reshape.2 : f32[1,1]\n"
     "%r = reshape %r.add : f32[1]\n" R},
    {"prime, of what is computed", pass_split_reductions, NULL,
     "%x = input : f32[9001,3]\n%y = input : f32[9001,3]\n%b = input : f32[3]\n"
     "%c = reshape %b : f32[1,3]\n%d = broadcast %c : f32[9001,3]\n%s = sub %x, %y : f32[9001,3]\n"
     "%t = mul %s, %d : f32[9001,3]\n%u = mul %t, %t : f32[9001,3]\n"
     "%r = reduce_max %u {axes=[0,1]} : f32[1,1]\n" R,
     "%x = input : f32[9001,3]\n"
     "%y = input : f32[9001,3]\n"
     "%b = input : f32[3]\n"
     "%c = reshape %b : f32[1,3]\n"
     "%r.slice = slice %x {start=[0,0], stop=[9000,3], step=[1,1]} : f32[9000,3]\n"
     "%r.reshape = reshape %r.slice : f32[180,50,3]\n"
     "%r.slice.2 = slice %y {start=[0,0], stop=[9000,3], step=[1,1]} : f32[9000,3]\n"
     "%r.reshape.2 = reshape %r.slice.2 : f32[180,50,3]\n"
     "%r.sub = sub %r.reshape, %r.reshape.2 : f32[180,50,3]\n"
     "%r.reshape.3 = reshape %c : f32[1,1,3]\n"
     "%r.broadcast = broadcast %r.reshape.3 : f32[180,50,3]\n"
     "%r.mul = mul %r.sub, %r.broadcast : f32[180,50,3]\n"
     "%r.mul.2 = mul %r.mul, %r.mul : f32[180,50,3]\n"
     "%r.reduce_max = reduce_max %r.mul.2 {axes=[1,2]} : f32[180,1,1]\n"
     "%r.reduce_max.2 = reduce_max %r.reduce_max {axes=[0]} : f32[1,1,1]\n"
     "%r.slice.3 = slice %x {start=[9000,0], stop=[9001,3], step=[1,1]} : f32[1,3]\n"
     "%r.reshape.4 = reshape %r.slice.3 : f32[1,1,3]\n"
     "%r.slice.4 = slice %y {start=[9000,0], stop=[9001,3], step=[1,1]} : f32[1,3]\n"
     "%r.reshape.5 = reshape %r.slice.4 : f32[1,1,3]\n"
     "%r.sub.2 = sub %r.reshape.4, %r.reshape.5 : f32[1,1,3]\n"
     "%r.reshape.6 = reshape %c : f32[1,1,3]\n"
     "%r.mul.3 = mul %r.sub.2, %r.reshape.6 : f32[1,1,3]\n"
     "%r.mul.4 = mul %r.mul.3, %r.mul.3 : f32[1,1,3]\n"
     "%r.reduce_max.3 = reduce_max %r.mul.4 {axes=[2]} : f32[1,1,1]\n"
     "%r.max = max %r.reduce_max.2, %r.reduce_max.3 : f32[1,1,1]\n"
     "%r = reshape %r.max : f32[1,1]\n" R},
    {"of few chunks on a GPU", pass_split_columns, NULL,
     "%x = input : f32[4099,300]\n%r = sum %x {axes=[0]} : f32[1,300]\n" R,
     "%x = input : f32[4099,300]\n"
     "%r.slice = slice %x {start=[0,0], stop=[4096,300], step=[1,1]} : f32[4096,300]\n"
     "%r.reshape = reshape %r.slice : f32[16,256,300]\n"
     "%r.sum = sum %r.reshape {axes=[1]} : f32[16,1,300]\n"
     "%r.sum.2 = sum %r.sum {axes=[0]} : f32[1,1,300]\n"
     "%r.slice.2 = slice %x {start=[4096,0], stop=[4099,300], step=[1,1]} : f32[3,300]\n"
     "%r.reshape.2 = reshape %r.slice.2 : f32[1,3,300]\n"
     "%r.sum.3 = sum %r.reshape.2 {axes=[1]} : f32[1,1,300]\n"
     "%r.add = add %r.sum.2, %r.sum.3 : f32[1,1,300]\n"
     "%r = reshape %r.add : f32[1,300]\n" R},
    {"lines of several axes", pass_split_reductions, NULL,
     "%x = input : f32[11,1021,4]\n%r = sum %x {axes=[0,1,2]} : f32[1,1,1]\n" R,
     "%x = input : f32[11,1021,4]\n"
     "%r.reshape = reshape %x : f32[11231,4]\n"
     "%r.slice = slice %r.reshape {start=[0,0], stop=[11229,4], step=[1,1]} : f32[11229,4]\n"
     "%r.reshape.2 = reshape %r.slice : f32[197,57,4]\n"
     "%r.sum = sum %r.reshape.2 {axes=[1,2]} : f32[197,1,1]\n"
     "%r.sum.2 = sum %r.sum {axes=[0]} : f32[1,1,1]\n"
     "%r.reshape.3 = reshape %x : f32[11231,4]\n"
     "%r.slice.2 = slice %r.reshape.3 {start=[11229,0], stop=[11231,4], step=[1,1]} : f32[2,4]\n"
     "%r.reshape.4 = reshape %r.slice.2 : f32[1,2,4]\n"
     "%r.sum.3 = sum %r.reshape.4 {axes=[1,2]} : f32[1,1,1]\n"
     "%r = add %r.sum.2, %r.sum.3 : f32[1,1,1]\n" R},
    {"some left over, behind others", pass_split_columns, NULL,
     "%x = input : f32[9,9001,8]\n%r = reduce_min %x {axes=[1,2]} : f32[9,1,1]\n" R,
     "%x = input : f32[9,9001,8]\n"
     "%r.slice = slice %x {start=[0,0,0], stop=[9,9000,8], step=[1,1,1]} : f32[9,9000,8]\n"
     "%r.reshape = reshape %r.slice : f32[9,120,75,8]\n"
     "%r.reduce_min = reduce_min %r.reshape {axes=[2,3]} : f32[9,120,1,1]\n"
     "%r.reduce_min.2 = reduce_min %r.reduce_min {axes=[1]} : f32[9,1,1,1]\n"
     "%r.slice.2 = slice %x {start=[0,9000,0], stop=[9,9001,8], step=[1,1,1]} : f32[9,1,8]\n"
     "%r.reshape.2 = reshape %r.slice.2 : f32[9,1,1,8]\n"
     "%r.reduce_min.3 = reduce_min %r.reshape.2 {axes=[3]} : f32[9,1,1,1]\n"
     "%r.min = min %r.reduce_min.2, %r.reduce_min.3 : f32[9,1,1,1]\n"
     "%r = reshape %r.min : f32[9,1,1]\n" R},
    {"a first stage of some dozens", pass_split_columns, NULL,
     "%x = input : f32[80,625,120]\n%s = sum %x {axes=[1,2]} : f32[80,1,1]\n"
     "%r = sum %s {axes=[0]} : f32[1,1,1]\n" R,
     "%x = input : f32[80,625,120]\n%s.sum = sum %x {axes=[2]} : f32[80,625,1]\n"
     "%s = sum %s.sum {axes=[1]} : f32[80,1,1]\n%r = sum %s {axes=[0]} : f32[1,1,1]\n" R},
    {"of what a product needs, too", pass_split_columns, NULL,
     "%x = input : f32[4099,300]\n%y = input : f32[4099,8]\n%s = exp %x : f32[4099,300]\n"
     "%t = neg %s : f32[4099,300]\n%r = sum %t {axes=[0]} : f32[1,300]\n"
     "%m = matmul %s, %y {ta=true, tb=false} : f32[300,8]\n"
     "result output m = %m\n" R,
     "%x = input : f32[4099,300]\n"
     "%y = input : f32[4099,8]\n"
     "%s = exp %x : f32[4099,300]\n"
     "%r.slice = slice %s {start=[0,0], stop=[4096,300], step=[1,1]} : f32[4096,300]\n"
     "%r.reshape = reshape %r.slice : f32[16,256,300]\n"
     "%r.neg = neg %r.reshape : f32[16,256,300]\n"
     "%r.sum = sum %r.neg {axes=[1]} : f32[16,1,300]\n"
     "%r.sum.2 = sum %r.sum {axes=[0]} : f32[1,1,300]\n"
     "%r.slice.2 = slice %s {start=[4096,0], stop=[4099,300], step=[1,1]} : f32[3,300]\n"
     "%r.reshape.2 = reshape %r.slice.2 : f32[1,3,300]\n"
     "%r.neg.2 = neg %r.reshape.2 : f32[1,3,300]\n"
     "%r.sum.3 = sum %r.neg.2 {axes=[1]} : f32[1,1,300]\n"
     "%r.add = add %r.sum.2, %r.sum.3 : f32[1,1,300]\n"
     "%r = reshape %r.add : f32[1,300]\n"
     "%m = matmul %s, %y {ta=true, tb=false} : f32[300,8]\n"
     "result output m = %m\n" R},
    {"of what a product computes", pass_split_columns, NULL,
     "%x = input : f32[4099,4]\n%w = input : f32[4,300]\n%y = input : f32[4099,300]\n"
     "%m = matmul %x, %w {ta=false, tb=false} : f32[4099,300]\n%s = add %m, %y : f32[4099,300]\n"
     "%q = exp %s : f32[4099,300]\n%r = sum %s {axes=[0]} : f32[1,300]\n"
     "result output q = %q\n" R,
     "%x = input : f32[4099,4]\n"
     "%w = input : f32[4,300]\n"
     "%y = input : f32[4099,300]\n"
     "%m = matmul %x, %w {ta=false, tb=false} : f32[4099,300]\n"
     "%s = add %m, %y : f32[4099,300]\n"
     "%q = exp %s : f32[4099,300]\n"
     "%r.slice = slice %s {start=[0,0], stop=[4096,300], step=[1,1]} : f32[4096,300]\n"
     "%r.reshape = reshape %r.slice : f32[16,256,300]\n"
     "%r.sum = sum %r.reshape {axes=[1]} : f32[16,1,300]\n"
     "%r.sum.2 = sum %r.sum {axes=[0]} : f32[1,1,300]\n"
     "%r.slice.2 = slice %s {start=[4096,0], stop=[4099,300], step=[1,1]} : f32[3,300]\n"
     "%r.reshape.2 = reshape %r.slice.2 : f32[1,3,300]\n"
     "%r.sum.3 = sum %r.reshape.2 {axes=[1]} : f32[1,1,300]\n"
     "%r.add = add %r.sum.2, %r.sum.3 : f32[1,1,300]\n"
     "%r = reshape %r.add : f32[1,300]\n"
     "result output q = %q\n" R},
    {"long lines, each by itself", pass_split_reductions, NULL,
     "%x = input : f32[8209,70]\n%y = exp %x : f32[8209,70]\n"
     "%r = sum %y {axes=[0,1]} : f32[1,1]\nresult output y = %y\n" R,
     "%x = input : f32[8209,70]\n"
     "%y = exp %x : f32[8209,70]\n"
     "%r.sum = sum %y {axes=[1]} : f32[8209,1]\n"
     "%r.sum.2.slice = slice %r.sum {start=[0,0], stop=[8208,1], step=[1,1]} : f32[8208,1]\n"
     "%r.sum.2.reshape = reshape %r.sum.2.slice : f32[108,76,1]\n"
     "%r.sum.2.sum = sum %r.sum.2.reshape {axes=[1]} : f32[108,1,1]\n"
     "%r.sum.2.sum.2 = sum %r.sum.2.sum {axes=[0]} : f32[1,1,1]\n"
     "%r.sum.2.slice.2 = slice %r.sum {start=[8208,0], stop=[8209,1], step=[1,1]} : f32[1,1]\n"
     "%r.sum.2.reshape.2 = reshape %r.sum.2.slice.2 : f32[1,1,1]\n"
     "%r.sum.2.add = add %r.sum.2.sum.2, %r.sum.2.reshape.2 : f32[1,1,1]\n"
     "%r = reshape %r.sum.2.add : f32[1,1]\n"
     "result output y = %y\n" R},
    {"phases of windows are not cut across", pass_split_reductions, NULL,
     "%x = input : f32[64,31,31,2,2]\n%t = transpose %x {perm=[0,1,3,2,4]} : f32[64,31,2,31,2]\n"
     "%y = reshape %t : f32[64,62,62]\n%z = neg %y : f32[64,62,62]\n"
     "%r = sum %z {axes=[0,1,2]} : f32[1,1,1]\n" R,
     "%x = input : f32[64,31,31,2,2]\n%t = transpose %x {perm=[0,1,3,2,4]} : f32[64,31,2,31,2]\n"
     "%y = reshape %t : f32[64,62,62]\n%z = neg %y : f32[64,62,62]\n"
     "%r.sum = sum %z {axes=[1,2]} : f32[64,1,1]\n"
     "%r = sum %r.sum {axes=[0]} : f32[1,1,1]\n" R},
    {"phases of windows are cut where they meet", pass_split_reductions, NULL,
     "%x = input : f32[16,30,30,2,2]\n%t = transpose %x {perm=[0,1,3,2,4]} : f32[16,30,2,30,2]\n"
     "%y = reshape %t : f32[16,60,60]\n%r = sum %y {axes=[0,1,2]} : f32[1,1,1]\n" R,
     "%x = input : f32[16,30,30,2,2]\n%t = transpose %x {perm=[0,1,3,2,4]} : f32[16,30,2,30,2]\n"
     "%y = reshape %t : f32[16,60,60]\n%r.reshape = reshape %y : f32[16,15,4,60]\n"
     "%r.sum = sum %r.reshape {axes=[2,3]} : f32[16,15,1,1]\n"
     "%r.sum.2 = sum %r.sum {axes=[0,1]} : f32[1,1,1,1]\n%r = reshape %r.sum.2 : f32[1,1,1]\n" R},
    {"axes of windows are not joined", pass_split_reductions, NULL,
     "%x = input : f32[11,1021,6]\n%w = windows %x {axes=[2],size=[3],step=[1],dilate=[1]} : "
     "f32[11,1021,4,3]\n%y = exp %w : f32[11,1021,4,3]\n"
     "%r = sum %y {axes=[0,1,2,3]} : f32[1,1,1,1]\n" R,
     NULL},
    {"what is drawn stays whole", pass_split_columns, NULL,
     "%seed = input : i64[]\n%step = input : i64[]\n%x = input : f32[4099,300]\n"
     "%u = uniform %seed, %step {stream=7} : f32[4099,300]\n%y = mul %u, %x : f32[4099,300]\n"
     "%r = sum %y {axes=[0]} : f32[1,300]\n" R,
     NULL},
    {"others of some dozens", pass_split_columns, NULL,
     "%x = input : f32[80,625,120]\n%r = sum %x {axes=[1,2]} : f32[80,1,1]\n" R, NULL},
    {"rank 8 is cut between axes", pass_split_reductions, NULL,
     "%x = input : f32[1,1,1,1,1,1,128,100]\n"
     "%r = sum %x {axes=[0,1,2,3,4,5,6,7]} : f32[1,1,1,1,1,1,1,1]\n" R,
     "%x = input : f32[1,1,1,1,1,1,128,100]\n"
     "%r.sum = sum %x {axes=[7]} : f32[1,1,1,1,1,1,128,1]\n"
     "%r = sum %r.sum {axes=[0,1,2,3,4,5,6]} : f32[1,1,1,1,1,1,1,1]\n" R},
    {"rank 8 is not cut through an axis", pass_split_reductions, NULL,
     "%x = input : f32[1,1,1,1,1,1,2,16384]\n"
     "%r = sum %x {axes=[7]} : f32[1,1,1,1,1,1,2,1]\n" R,
     NULL},
    {"columns on a GPU, between axes", pass_split_columns, NULL,
     "%x = input : f32[8,512,300]\n%r = sum %x {axes=[0,1]} : f32[1,1,300]\n" R,
     "%x = input : f32[8,512,300]\n%r.sum = sum %x {axes=[1]} : f32[8,1,300]\n"
     "%r = sum %r.sum {axes=[0]} : f32[1,1,300]\n" R},
    {"columns on a GPU, through one", pass_split_columns, NULL,
     "%x = input : f32[4096,300]\n%r = reduce_max %x {axes=[0]} : f32[1,300]\n" R,
     "%x = input : f32[4096,300]\n%r.reshape = reshape %x : f32[16,256,300]\n"
     "%r.reduce_max = reduce_max %r.reshape {axes=[1]} : f32[16,1,300]\n"
     "%r.reduce_max.2 = reduce_max %r.reduce_max {axes=[0]} : f32[1,1,300]\n"
     "%r = reshape %r.reduce_max.2 : f32[1,300]\n" R},
    {"columns that fill a GPU", pass_split_columns, NULL,
     "%x = input : f32[2048,5000]\n%r = sum %x {axes=[0]} : f32[1,5000]\n" R, NULL},
    {"columns of few rows", pass_split_columns, NULL,
     "%x = input : f32[1000,300]\n%r = sum %x {axes=[0]} : f32[1,300]\n" R, NULL},
    {"columns of a small matrix", pass_split_columns, NULL,
     "%x = input : f32[2000,128]\n%r = sum %x {axes=[0]} : f32[1,128]\n" R, NULL},
    {"few rows on a GPU", pass_split_columns, NULL,
     "%x = input : f32[29,1733,100]\n%r = sum %x {axes=[1,2]} : f32[29,1,1]\n" R,
     "%x = input : f32[29,1733,100]\n%r.sum = sum %x {axes=[2]} : f32[29,1733,1]\n"
     "%r = sum %r.sum {axes=[1]} : f32[29,1,1]\n" R},
    {"few short rows", pass_split_columns, NULL,
     "%x = input : f32[29,640,100]\n%r = sum %x {axes=[1,2]} : f32[29,1,1]\n" R, NULL},
    {"rows are no columns", pass_split_columns, NULL,
     "%x = input : f32[300,4096]\n%r = sum %x {axes=[1]} : f32[300,1]\n" R, NULL},
    {"argmax stays", pass_split_reductions, NULL,
     "%x = input : f32[16384]\n%r = argmax %x {axis=0} : i32[1]\n" R, NULL},
};

// Gradients are compared, too: those of what the pass has left.
static void check_values(ir_arena *a, const pass_case *c, ir_module *after) {
  ir_module *before = test_module(a, c->states, c->before);
  pass_autodiff(before, diag_new(a));
  pass_autodiff(after, diag_new(a));
  test_values x = test_run(a, before, "f", 11);
  test_values y = test_run(a, after, "f", 11);
  const char *where;
  double diff = test_difference(&x, &y, &where);
  if (diff > 1e-11)
    test_fail("%s: %s differs by %g", c->what, where, diff);
}

static void check_case(const pass_case *c) {
  ir_arena *a = ir_arena_new();
  ir_module *m = test_module(a, c->states, c->before);
  bool changed = c->pass(m, diag_new(a));
  if (changed != (c->after != NULL))
    test_fail("%s: the pass says that it changed %s", c->what, changed ? "something" : "nothing");
  ir_buf faults = ir_buf_new(a);
  if (ir_verify(m, &faults))
    test_fail("%s: invalid IR\n%s", c->what, ir_buf_str(&faults));
  ir_module *want = test_module(a, c->states, c->after ? c->after : c->before);
  test_same_text(c->what, test_print(a, m), test_print(a, want));
  check_values(a, c, m);
  ir_arena_free(a);
}

#define CHECK_ALL(cases)                                                                           \
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases)[0]; i++)                                    \
  check_case(&(cases)[i])

int main(void) {
  CHECK_ALL(table_cases);
  CHECK_ALL(quotient_cases);
  CHECK_ALL(join_cases);
  CHECK_ALL(panels_cases);
  CHECK_ALL(cse_cases);
  CHECK_ALL(dce_cases);
  CHECK_ALL(own_cases);
  CHECK_ALL(thin_cases);
  CHECK_ALL(narrow_cases);
  CHECK_ALL(split_cases);
  return test_report("passes");
}
