// test_passes.c: table_products, quotients, join_products, panels, insert_parts, keep_parts, cse, dce and own_outputs on
// texts, each checked by the oracle.
#include "support_passes.h"

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

static const test_pass_case table_cases[] = {
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

static const test_pass_case quotient_cases[] = {
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

static const test_pass_case join_cases[] = {
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

static const test_pass_case panels_cases[] = {
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

static const test_pass_case cse_cases[] = {
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

static const test_pass_case dce_cases[] = {
    {"unused chain", pass_dce, NULL,
     XY "%a = exp %x : f32[4]\n%b = neg %a : f32[4]\n%r = add %x, %y : f32[4]\n" R,
     XY "%r = add %x, %y : f32[4]\n" R},
    {"writes are uses", pass_dce, "state w : f32[4] role=param",
     XY "%a = exp %x : f32[4]\n%b = neg %y : f32[4]\nwrite @w, %a",
     XY "%a = exp %x : f32[4]\nwrite @w, %a"},
    {"inputs stay", pass_dce, NULL, XY "%r = exp %y : f32[4]\n" R, NULL},
};

// %b is there before %a; %r has 73,984 bytes.
#define PARTS                                                                                      \
  "%x = input : f32[8,15,15,6]\n%y = input : f32[8,15,15,2]\n"                                     \
  "%b = exp %y : f32[8,15,15,2]\n%a = exp %x : f32[8,15,15,6]\n"
#define JOINED   "%c = concat %a, %b {axis=3} : f32[8,15,15,8]\n"
#define ROOM(of) "%r = pad %" of " {lo=[0,1,1,0],hi=[0,1,1,0],value=0.0} : f32[8,17,17,8]\n"

static const test_pass_case parts_cases[] = {
    {"the part that is there first is padded", pass_insert_parts, NULL, PARTS JOINED ROOM("c") R,
     PARTS "%r.pad = pad %b {lo=[0,1,1,6],hi=[0,1,1,0],value=0.0} : f32[8,17,17,8]\n"
           "%r = insert %r.pad, %a {lo=[0,1,1,0]} : f32[8,17,17,8]\n" R},
    {"one after the other, between what is not zero", pass_insert_parts, NULL,
     "%x = input : f32[40,20,20]\n%y = input : f32[40,7,20]\n"
     "%c = concat %x, %y, %x {axis=1} : f32[40,47,20]\n"
     "%r = pad %c {lo=[0,2,0],hi=[0,3,1],value=1.5} : f32[40,52,21]\n" R,
     "%x = input : f32[40,20,20]\n%y = input : f32[40,7,20]\n"
     "%r.pad = pad %x {lo=[0,2,0],hi=[0,30,1],value=1.5} : f32[40,52,21]\n"
     "%r.insert = insert %r.pad, %y {lo=[0,22,0]} : f32[40,52,21]\n"
     "%r = insert %r.insert, %x {lo=[0,29,0]} : f32[40,52,21]\n" R},
    {"as numbers of another type", pass_insert_parts, NULL,
     PARTS JOINED "%h = cast %c : f64[8,15,15,8]\n"
                  "%r = pad %h {lo=[0,1,1,0],hi=[0,1,1,0],value=0.0} : f64[8,17,17,8]\n" R,
     PARTS "%r.cast = cast %b : f64[8,15,15,2]\n"
           "%r.pad = pad %r.cast {lo=[0,1,1,6],hi=[0,1,1,0],value=0.0} : f64[8,17,17,8]\n"
           "%r.cast.2 = cast %a : f64[8,15,15,6]\n"
           "%r = insert %r.pad, %r.cast.2 {lo=[0,1,1,0]} : f64[8,17,17,8]\n" R},
    {"not what others read, too", pass_insert_parts, NULL,
     PARTS JOINED ROOM("c") "%q = neg %c : f32[8,15,15,8]\nresult output q = %q\n" R, NULL},
    {"nor a result", pass_insert_parts, NULL, PARTS JOINED ROOM("c") "result output c = %c\n" R,
     NULL},
    {"nor what is small", pass_insert_parts, NULL,
     XY "%c = concat %x, %y {axis=0} : f32[8]\n"
        "%r = pad %c {lo=[1],hi=[1],value=0.0} : f32[10]\n" R,
     NULL},
};

// A value of 131,072 bytes, of which %p is one half and %q the other.
#define WHOLE                                                                                      \
  "%x = input : f32[1024,32]\n%w = input : f32[16,16]\n%d = exp %x : f32[1024,32]\n"               \
  "%p = slice %d {start=[0,0],stop=[1024,16],step=[1,1]} : f32[1024,16]\n"                         \
  "%q = slice %d {start=[0,16],stop=[1024,32],step=[1,1]} : f32[1024,16]\n"
#define KEPT               "%q.concat = concat %q {axis=0} : f32[1024,16]\n"
#define MULTIPLY(to, from) "%" to " = matmul %" from ", %w {ta=false,tb=false} : f32[1024,16]\n"
#define PRODUCTS(first)                                                                            \
  MULTIPLY("a", first)                                                                             \
  MULTIPLY("b", "a") MULTIPLY("c", "b") MULTIPLY("e", "c") MULTIPLY("f", "e") MULTIPLY("g", "f")
#define LATE(part) "%r = add %h, %" part " : f32[1024,16]\n" R

static const test_pass_case keep_cases[] = {
    {"a half that is read six products after the other", pass_keep_parts, NULL,
     WHOLE PRODUCTS("p") MULTIPLY("h", "g") LATE("q"),
     WHOLE KEPT PRODUCTS("p") MULTIPLY("h", "g") LATE("q.concat")},
    {"not five", pass_keep_parts, NULL,
     WHOLE PRODUCTS("p") "%h = neg %g : f32[1024,16]\n" LATE("q"), NULL},
    {"not what is read early, too", pass_keep_parts, NULL,
     WHOLE "%o = mul %p, %q : f32[1024,16]\n" PRODUCTS("o") MULTIPLY("h", "g") LATE("q"), NULL},
    {"not where the other half is read once more", pass_keep_parts, NULL,
     WHOLE PRODUCTS("p") MULTIPLY("i", "g") "%h = mul %i, %p : f32[1024,16]\n" LATE("q"), NULL},
    {"not where all of it is a result", pass_keep_parts, NULL,
     WHOLE PRODUCTS("p") MULTIPLY("h", "g") "result output d = %d\n" LATE("q"), NULL},
    {"not of an input", pass_keep_parts, NULL,
     "%d = input : f32[1024,32]\n%w = input : f32[16,16]\n"
     "%p = slice %d {start=[0,0],stop=[1024,16],step=[1,1]} : f32[1024,16]\n"
     "%q = slice %d {start=[0,16],stop=[1024,32],step=[1,1]} : f32[1024,16]\n" PRODUCTS("p")
         MULTIPLY("h", "g") LATE("q"),
     NULL},
};

static const test_pass_case own_cases[] = {
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

int main(void) {
  TEST_PASS_CASES(table_cases);
  TEST_PASS_CASES(quotient_cases);
  TEST_PASS_CASES(join_cases);
  TEST_PASS_CASES(panels_cases);
  TEST_PASS_CASES(cse_cases);
  TEST_PASS_CASES(dce_cases);
  TEST_PASS_CASES(parts_cases);
  TEST_PASS_CASES(keep_cases);
  TEST_PASS_CASES(own_cases);
  return test_report("passes");
}
