// support_loop_cases.h: LOOP, COPY and SCATTER kernels of what networks do, for test_cpu_loop.c and
// test_cuda_loop.c: each includes this file once.
#ifndef TESTS_SUPPORT_LOOP_CASES_H
#define TESTS_SUPPORT_LOOP_CASES_H

#include "tests/unit/support_kernels.h"

static const test_case loop_cases[] = {
    {"flat", NULL,
     "%x = input : f32[3,5,7]\n%y = input : f32[3,5,7]\n%a = mul %x, %y : f32[3,5,7]\n"
     "%t = tanh %a : f32[3,5,7]\n%r = sub %t, %x : f32[3,5,7]\nresult output r = %r",
     0},
    {"names that C++, CUDA or a header has taken", NULL,
     "%x = input : f32[9,300]\n%template = tanh %x : f32[9,300]\n"
     "%nullptr = sin %template : f32[9,300]\n%threadIdx = add %nullptr, %x : f32[9,300]\n"
     "%INT32_MAX = mul %threadIdx, %x : f32[9,300]\n%__LINE__ = neg %INT32_MAX : f32[9,300]\n"
     "%NULL = sum %__LINE__ {axes=[1]} : f32[9,1]\nresult output NULL = %NULL\n"
     "result output template = %template",
     0},
    {"large flat", NULL,
     "%x = input : f32[100,1003]\n%c = const {value=0.5} : f32[100,1003]\n"
     "%m = mul %x, %c : f32[100,1003]\n%e = exp %m : f32[100,1003]\nresult output e = %e",
     0},
    {"bias and gelu", NULL,
     "%x = input : f32[12,64,130]\n%b = input : f32[130]\n%b3 = reshape %b : f32[1,1,130]\n"
     "%bb = broadcast %b3 : f32[12,64,130]\n%s = add %x, %bb : f32[12,64,130]\n"
     "%c = const {value=0.70710678118} : f32[12,64,130]\n%u = mul %s, %c : f32[12,64,130]\n"
     "%e = erf %u : f32[12,64,130]\n%one = const {value=1} : f32[12,64,130]\n"
     "%p = add %e, %one : f32[12,64,130]\n%h = const {value=0.5} : f32[12,64,130]\n"
     "%q = mul %s, %h : f32[12,64,130]\n%g = mul %q, %p : f32[12,64,130]\nresult output g = %g",
     0},
    {"constants that f32 cannot hold", NULL,
     "%x = input : f32[3,70]\n%c = const {value=-1e39} : f32[3,70]\n%m = max %x, %c : f32[3,70]\n"
     "%d = const {value=1e39} : f32[3,70]\n%r = min %m, %d : f32[3,70]\nresult output r = %r",
     0},
    // Rows of which a mask has left a band: its edges, what is stored beside it, rows that it leaves nothing of.
    {"a softmax under a window", NULL,
     "%x = input : f32[3,90,200]\n%row = iota {axis=0} : i32[90,200]\n%column = iota {axis=1} : "
     "i32[90,200]\n%c = const {value=20} : i32[90,200]\n%last = sub %row, %c : i32[90,200]\n"
     "%w = const {value=70} : i32[90,200]\n%first = sub %row, %w : i32[90,200]\n"
     "%le = le %column, %last : bool[90,200]\n%gt = gt %column, %first : bool[90,200]\n"
     "%and = and %le, %gt : bool[90,200]\n%r = reshape %and : bool[1,90,200]\n"
     "%see = broadcast %r : bool[3,90,200]\n%far = const {value=-1e30} : f32[3,90,200]\n"
     "%s = select %see, %x, %far : f32[3,90,200]\n%m = reduce_max %s {axes=[2]} : f32[3,90,1]\n"
     "%mb = broadcast %m : f32[3,90,200]\n%d = sub %s, %mb : f32[3,90,200]\n"
     "%e = exp %d : f32[3,90,200]\n%sum = sum %e {axes=[2]} : f32[3,90,1]\n"
     "%sb = broadcast %sum : f32[3,90,200]\n%y = div %e, %sb : f32[3,90,200]\n"
     "result output y = %y\nresult output m = %m",
     0},
    // What the mask has put there is the largest: sums take all of the row.
    {"a softmax whose mask hides little", NULL,
     "%x = input : f32[80,150]\n%row = iota {axis=0} : i32[80,150]\n%column = iota {axis=1} : "
     "i32[80,150]\n%see = le %column, %row : bool[80,150]\n%far = const {value=-0.5} : "
     "f32[80,150]\n"
     "%zero = const {value=0.0} : f32[80,150]\n%s = select %see, %x, %far : f32[80,150]\n"
     "%m = reduce_max %s {axes=[1]} : f32[80,1]\n%mb = broadcast %m : f32[80,150]\n"
     "%d = sub %s, %mb : f32[80,150]\n%e = exp %d : f32[80,150]\n%sum = sum %e {axes=[1]} : "
     "f32[80,1]\n"
     "%sb = broadcast %sum : f32[80,150]\n%q = div %e, %sb : f32[80,150]\n"
     "%y = select %see, %q, %zero : f32[80,150]\nresult output y = %y\nresult output sum = %sum",
     0},
    {"a product of masked values, without a sum", NULL,
     "%x = input : f32[2,130,140]\n%row = iota {axis=1} : i32[2,130,140]\n%column = iota {axis=2} "
     ": "
     "i32[2,130,140]\n%see = ge %column, %row : bool[2,130,140]\n%zero = const {value=0.0} : "
     "f32[2,130,140]\n%e = exp %x : f32[2,130,140]\n%y = select %see, %e, %zero : f32[2,130,140]\n"
     "result output y = %y",
     0},
    // Sums over other axes than those of the kernel's first are kernels of their own, be it over one element.
    {"a sum of one element, and one of all", NULL,
     "%x = input : f32[7,1]\n%z = input : f32[7,1]\n%p = mul %x, %z : f32[7,1]\n"
     "%m = sum %p {axes=[1]} : f32[7,1]\n%q = mul %m, %m : f32[7,1]\n"
     "%s = sum %q {axes=[0,1]} : f32[1,1]\nresult output s = %s",
     0},
    // As split_uneven.c leaves them.
    {"chunks of computed lines and of rows of a table, and lines left over", NULL,
     "%x = input : f32[5,83,7]\n%b = input : f32[7]\n%b3 = reshape %b : f32[1,1,7]\n"
     "%u = slice %x {start=[0,0,0], stop=[5,81,7], step=[1,1,1]} : f32[5,81,7]\n"
     "%v = reshape %u : f32[5,9,9,7]\n%b4 = reshape %b3 : f32[1,1,1,7]\n"
     "%bb = broadcast %b4 : f32[5,9,9,7]\n%s = sub %v, %bb : f32[5,9,9,7]\n"
     "%q = mul %s, %s : f32[5,9,9,7]\n%a = sum %q {axes=[2,3]} : f32[5,9,1,1]\n"
     "%c = sum %a {axes=[1]} : f32[5,1,1,1]\n"
     "%w = slice %x {start=[0,81,0], stop=[5,83,7], step=[1,1,1]} : f32[5,2,7]\n"
     "%z = reshape %w : f32[5,1,2,7]\n%b5 = broadcast %b4 : f32[5,1,2,7]\n"
     "%d = sub %z, %b5 : f32[5,1,2,7]\n%e = mul %d, %d : f32[5,1,2,7]\n"
     "%f = sum %e {axes=[2,3]} : f32[5,1,1,1]\n%r = add %c, %f : f32[5,1,1,1]\n"
     "%i = iota {axis=0} : i32[83]\n%j = slice %i {start=[0], stop=[82], step=[1]} : i32[82]\n"
     "%k = reshape %j : i32[2,41]\n%g = gather %b, %k : f32[2,41]\n%h = exp %g : f32[2,41]\n"
     "%l = reduce_max %h {axes=[1]} : f32[2,1]\n%m = reduce_max %l {axes=[0]} : f32[1,1]\n"
     "%j2 = slice %i {start=[82], stop=[83], step=[1]} : i32[1]\n%k2 = reshape %j2 : i32[1,1]\n"
     "%g2 = gather %b, %k2 : f32[1,1]\n%h2 = exp %g2 : f32[1,1]\n%n = max %m, %h2 : f32[1,1]\n"
     "result output r = %r\nresult output n = %n",
     0},
    // Threads without a row must not read the last one: in place it is being written.
    {"fewer rows than threads", NULL,
     "%x = input : f32[3,2]\n%b = input : f32[3,1]\n%bb = broadcast %b : f32[3,2]\n"
     "%r = add %x, %bb : f32[3,2]\nresult output r = %r",
     0},
    {"transposed load", NULL,
     "%x = input : f32[37,70]\n%y = input : f32[70,37]\n%t = transpose %x {perm=[1,0]} : "
     "f32[70,37]\n"
     "%r = add %t, %y : f32[70,37]\nresult output r = %r",
     0},
    {"transposed in turn", NULL,
     "%x = input : f32[2,37,301]\n%y = input : f32[37]\n%t = transpose %x {perm=[0,2,1]} : "
     "f32[2,301,37]\n"
     "%y3 = reshape %y : f32[1,1,37]\n%yb = broadcast %y3 : f32[2,301,37]\n"
     "%r = add %t, %yb : f32[2,301,37]\nresult output r = %r",
     0},
    {"transposed in turn, wide", NULL,
     "%x = input : f32[301,40]\n%z = input : f32[40,1]\n%t = transpose %x {perm=[1,0]} : "
     "f32[40,301]\n"
     "%e = neg %z : f32[40,1]\n%eb = broadcast %e : f32[40,301]\n%r = mul %t, %eb : f32[40,301]\n"
     "result output r = %r\nresult output e = %e",
     0},
    {"heads", NULL,
     "%x = input : f32[2,9,3,4,8]\n%t = transpose %x {perm=[2,0,3,1,4]} : f32[3,2,4,9,8]\n"
     "%s = slice %t {start=[1,0,0,0,0], stop=[2,2,4,9,8], step=[1,1,1,1,1]} : f32[1,2,4,9,8]\n"
     "%r = neg %s : f32[1,2,4,9,8]\nresult output r = %r",
     0},
    {"softmax", NULL,
     "%x = input : f32[33,130]\n%m = reduce_max %x {axes=[1]} : f32[33,1]\n"
     "%mb = broadcast %m : f32[33,130]\n%d = sub %x, %mb : f32[33,130]\n%e = exp %d : f32[33,130]\n"
     "%s = sum %e {axes=[1]} : f32[33,1]\n%sb = broadcast %s : f32[33,130]\n"
     "%y = div %e, %sb : f32[33,130]\nresult output y = %y",
     0},
    // %c may not lie over %x, which is read again for %y.
    {"an output of a sweep before the last", NULL,
     "%x = input : f32[33,130]\n%s = sum %x {axes=[1]} : f32[33,1]\n"
     "%n = const {value=130} : f32[33,1]\n%m = div %s, %n : f32[33,1]\n"
     "%mb = broadcast %m : f32[33,130]\n%c = sub %x, %mb : f32[33,130]\n"
     "%q = mul %c, %c : f32[33,130]\n%v = sum %q {axes=[1]} : f32[33,1]\n"
     "%vb = broadcast %v : f32[33,130]\n%y = mul %x, %vb : f32[33,130]\n"
     "result output c = %c\nresult output y = %y",
     0},
    {"softmax of ten", NULL,
     "%x = input : f32[64,10]\n%m = reduce_max %x {axes=[1]} : f32[64,1]\n"
     "%mb = broadcast %m : f32[64,10]\n%d = sub %x, %mb : f32[64,10]\n%e = exp %d : f32[64,10]\n"
     "%s = sum %e {axes=[1]} : f32[64,1]\n%sb = broadcast %s : f32[64,10]\n"
     "%y = div %e, %sb : f32[64,10]\nresult output y = %y",
     0},
    {"softmax across columns", NULL,
     "%x = input : f32[21,70]\n%m = reduce_max %x {axes=[0]} : f32[1,70]\n"
     "%mb = broadcast %m : f32[21,70]\n%d = sub %x, %mb : f32[21,70]\n%e = exp %d : f32[21,70]\n"
     "%s = sum %e {axes=[0]} : f32[1,70]\n%sb = broadcast %s : f32[21,70]\n"
     "%y = div %e, %sb : f32[21,70]\nresult output y = %y",
     0},
    {"layernorm", NULL,
     "%x = input : f32[20,128]\n%g = input : f32[1,128]\n%s = sum %x {axes=[1]} : f32[20,1]\n"
     "%n = const {value=0.0078125} : f32[20,1]\n%mean = mul %s, %n : f32[20,1]\n"
     "%mb = broadcast %mean : f32[20,128]\n%d = sub %x, %mb : f32[20,128]\n"
     "%q = mul %d, %d : f32[20,128]\n%v = sum %q {axes=[1]} : f32[20,1]\n"
     "%var = mul %v, %n : f32[20,1]\n%eps = const {value=1e-5} : f32[20,1]\n"
     "%ve = add %var, %eps : f32[20,1]\n%r = rsqrt %ve : f32[20,1]\n%rb = broadcast %r : "
     "f32[20,128]\n"
     "%h = mul %d, %rb : f32[20,128]\n%gb = broadcast %g : f32[20,128]\n%y = mul %h, %gb : "
     "f32[20,128]\n"
     "result output y = %y\nresult output mean = %mean\nresult output r = %r",
     0},
    // The scale sees two of the sums' dimensions as one, and one as two.
    {"norm of groups of columns", NULL,
     "%x = input : f32[5,35,6]\n%g = input : f32[6]\n%r = reshape %x : f32[5,35,2,3]\n"
     "%s = sum %r {axes=[1,3]} : f32[5,1,2,1]\n%n = const {value=0.01} : f32[5,1,2,1]\n"
     "%m = mul %s, %n : f32[5,1,2,1]\n%mb = broadcast %m : f32[5,35,2,3]\n"
     "%c = sub %r, %mb : f32[5,35,2,3]\n%q = mul %c, %c : f32[5,35,2,3]\n"
     "%v = sum %q {axes=[1,3]} : f32[5,1,2,1]\n%d = rsqrt %v : f32[5,1,2,1]\n"
     "%db = broadcast %d : f32[5,35,2,3]\n%h = mul %c, %db : f32[5,35,2,3]\n"
     "%h4 = reshape %h : f32[5,5,7,6]\n%g4 = reshape %g : f32[1,1,1,6]\n"
     "%gb = broadcast %g4 : f32[5,5,7,6]\n%y = mul %h4, %gb : f32[5,5,7,6]\n"
     "result output y = %y\nresult output m = %m",
     0},
    {"columns joined and parted", NULL,
     "%x = input : f32[9,4,10]\n%y = input : f32[9,40]\n%z = input : f32[9,8,5]\n"
     "%e = exp %x : f32[9,4,10]\n%e2 = reshape %e : f32[9,40]\n%a = mul %e2, %y : f32[9,40]\n"
     "%a3 = reshape %a : f32[9,8,5]\n%b = sub %a3, %z : f32[9,8,5]\n"
     "result output b = %b\nresult output e = %e",
     0},
    // Lanes of one vector belong to several sums.
    {"norm of groups of two", NULL,
     "%x = input : f32[5,35,4,2]\n%g = input : f32[1,1,4,2]\n"
     "%s = sum %x {axes=[1,3]} : f32[5,1,4,1]\n%n = const {value=0.01} : f32[5,1,4,1]\n"
     "%m = mul %s, %n : f32[5,1,4,1]\n%mb = broadcast %m : f32[5,35,4,2]\n"
     "%c = sub %x, %mb : f32[5,35,4,2]\n%q = mul %c, %c : f32[5,35,4,2]\n"
     "%v = sum %q {axes=[1,3]} : f32[5,1,4,1]\n%d = rsqrt %v : f32[5,1,4,1]\n"
     "%db = broadcast %d : f32[5,35,4,2]\n%h = mul %c, %db : f32[5,35,4,2]\n"
     "%gb = broadcast %g : f32[5,35,4,2]\n%y = mul %h, %gb : f32[5,35,4,2]\n"
     "result output y = %y\nresult output m = %m\nresult output d = %d",
     0},
    {"norm of groups of four, from memory", NULL,
     "%x = input : f32[5,35,6,4]\n%m = input : f32[5,1,6,1]\n%g = input : f32[24]\n"
     "%mb = broadcast %m : f32[5,35,6,4]\n%c = sub %x, %mb : f32[5,35,6,4]\n"
     "%r = reshape %c : f32[5,5,7,24]\n%g4 = reshape %g : f32[1,1,1,24]\n"
     "%gb = broadcast %g4 : f32[5,5,7,24]\n%y = mul %r, %gb : f32[5,5,7,24]\n"
     "%e = exp %m : f32[5,1,6,1]\nresult output y = %y\nresult output e = %e",
     0},
    {"many maxima of four", NULL,
     "%x = input : f32[6001,4]\n%m = reduce_max %x {axes=[1]} : f32[6001,1]\n"
     "%mb = broadcast %m : f32[6001,4]\n%d = sub %x, %mb : f32[6001,4]\n"
     "%e = exp %d : f32[6001,4]\n%s = sum %e {axes=[1]} : f32[6001,1]\n"
     "%sb = broadcast %s : f32[6001,4]\n%y = div %e, %sb : f32[6001,4]\n"
     "%l = reduce_min %y {axes=[1]} : f32[6001,1]\nresult output y = %y\nresult output m = %m\n"
     "result output l = %l",
     0},
    {"sums of two, of a product with a transposed tensor", NULL,
     "%x = input : f32[64,512]\n%z = input : f32[512,64]\n"
     "%t = transpose %z {perm=[1,0]} : f32[64,512]\n%p = mul %x, %t : f32[64,512]\n"
     "%r = reshape %p : f32[64,256,2]\n%s = sum %r {axes=[2]} : f32[64,256,1]\n"
     "result output s = %s",
     0},
    {"groups of every dtype", NULL,
     "%a = input : u8[37,5,8]\n%i = input : i32[37,5,1]\n%k = input : u8[37,5,1]\n"
     "%f = input : f64[37,5,1]\n%o = input : u32[37,5,1]\n%j = input : i64[37,5,1]\n"
     "%ai = cast %a : i32[37,5,8]\n%ib = broadcast %i : i32[37,5,8]\n"
     "%p = gt %ai, %ib : bool[37,5,8]\n%kb = broadcast %k : u8[37,5,8]\n"
     "%q = add %a, %kb : u8[37,5,8]\n%fb = broadcast %f : f64[37,5,8]\n"
     "%af = cast %a : f64[37,5,8]\n%g = mul %af, %fb : f64[37,5,8]\n"
     "%ob = broadcast %o : u32[37,5,8]\n%au = cast %a : u32[37,5,8]\n"
     "%u = add %au, %ob : u32[37,5,8]\n%jb = broadcast %j : i64[37,5,8]\n"
     "%al = cast %a : i64[37,5,8]\n%t = sub %al, %jb : i64[37,5,8]\n"
     "%s = sum %t {axes=[2]} : i64[37,5,1]\n%v = sum %g {axes=[2]} : f64[37,5,1]\n"
     "%w = sum %q {axes=[2]} : u8[37,5,1]\nresult output p = %p\nresult output q = %q\n"
     "result output g = %g\nresult output u = %u\nresult output s = %s\nresult output v = %v\n"
     "result output w = %w",
     0},
    {"largest of windows of groups", NULL,
     "%x = input : f32[3,8,8,4,2]\n%m = input : f32[3,1,1,4,1]\n"
     "%mb = broadcast %m : f32[3,8,8,4,2]\n%d = mul %x, %mb : f32[3,8,8,4,2]\n"
     "%r = reshape %d : f32[3,8,8,8]\n"
     "%w = windows %r {axes=[1,2], step=[2,2], size=[2,2], dilate=[1,1]} : f32[3,4,4,8,2,2]\n"
     "%y = reduce_max %w {axes=[4,5]} : f32[3,4,4,8,1,1]\nresult output y = %y\n"
     "result output d = %d",
     0},
    {"layernorm backward", NULL,
     "%dy = input : f32[20,130]\n%h = input : f32[20,130]\n%r = input : f32[20,1]\n"
     "%a = sum %dy {axes=[1]} : f32[20,1]\n%p = mul %dy, %h : f32[20,130]\n"
     "%b = sum %p {axes=[1]} : f32[20,1]\n%n = const {value=0.01} : f32[20,1]\n"
     "%an = mul %a, %n : f32[20,1]\n%bn = mul %b, %n : f32[20,1]\n%anb = broadcast %an : "
     "f32[20,130]\n"
     "%bnb = broadcast %bn : f32[20,130]\n%t = mul %h, %bnb : f32[20,130]\n"
     "%u = sub %dy, %anb : f32[20,130]\n%w = sub %u, %t : f32[20,130]\n%rb = broadcast %r : "
     "f32[20,130]\n"
     "%dx = mul %w, %rb : f32[20,130]\nresult output dx = %dx",
     0},
    {"cross-entropy with backward", NULL,
     "%x = input : f32[64,65]\n%label = input : i32[64,1]\n%m = reduce_max %x {axes=[1]} : "
     "f32[64,1]\n"
     "%mb = broadcast %m : f32[64,65]\n%d = sub %x, %mb : f32[64,65]\n%e = exp %d : f32[64,65]\n"
     "%s = sum %e {axes=[1]} : f32[64,1]\n%ls = log %s : f32[64,1]\n%k = iota {axis=1} : "
     "i32[64,65]\n"
     "%lb = broadcast %label : i32[64,65]\n%hit = eq %k, %lb : bool[64,65]\n"
     "%zero = const {value=0} : f32[64,65]\n%pick = select %hit, %d, %zero : f32[64,65]\n"
     "%ps = sum %pick {axes=[1]} : f32[64,1]\n%row = sub %ls, %ps : f32[64,1]\n"
     "%sb = broadcast %s : f32[64,65]\n%soft = div %e, %sb : f32[64,65]\n"
     "%one = cast %hit : f32[64,65]\n%g = sub %soft, %one : f32[64,65]\n"
     "%total = sum %row {axes=[0]} : f32[1,1]\nresult output total = %total\nresult output g = %g",
     0},
    {"column sums", NULL,
     "%x = input : f32[300,130]\n%y = input : f32[300,130]\n%p = mul %x, %y : f32[300,130]\n"
     "%s = sum %p {axes=[0]} : f32[1,130]\n%q = mul %s, %s : f32[1,130]\nresult output q = %q",
     0},
    {"sum of all", NULL,
     "%x = input : f32[7,11,13]\n%p = mul %x, %x : f32[7,11,13]\n"
     "%s = sum %p {axes=[0,1,2]} : f32[1,1,1]\n%r = sqrt %s : f32[1,1,1]\nresult output r = %r",
     0},
    {"sum over the middle", NULL,
     "%x = input : f32[5,6,40]\n%s = sum %x {axes=[1]} : f32[5,1,40]\nresult output s = %s", 0},
    {"sum over both ends", NULL,
     "%x = input : f32[5,6,40]\n%s = sum %x {axes=[0,2]} : f32[1,6,1]\nresult output s = %s", 0},
    {"adamw",
     "state p : f32[50,41] role=param\nstate m : f32[50,41] role=moment\n"
     "state v : f32[50,41] role=moment\nstate lr : f32[] role=flag value=0.01\n"
     "state step : i64[] role=counter value=3",
     "%g = input : f32[50,41]\n%p = read @p : f32[50,41]\n%m = read @m : f32[50,41]\n"
     "%v0 = read @v : f32[50,41]\n%v = abs %v0 : f32[50,41]\n%lr = read @lr : f32[]\n"
     "%step = read @step : i64[]\n%i1 = const {value=1} : i64[]\n%step1 = add %step, %i1 : i64[]\n"
     "%t = cast %step1 : f32[]\n%b1 = const {value=0.9} : f32[]\n%bt = pow %b1, %t : f32[]\n"
     "%f1 = const {value=1} : f32[]\n%corr = sub %f1, %bt : f32[]\n%rate = div %lr, %corr : f32[]\n"
     "%r2 = reshape %rate : f32[1,1]\n%rb = broadcast %r2 : f32[50,41]\n"
     "%c1 = const {value=0.9} : f32[50,41]\n%c2 = const {value=0.1} : f32[50,41]\n"
     "%m1 = mul %m, %c1 : f32[50,41]\n%g1 = mul %g, %c2 : f32[50,41]\n%mn = add %m1, %g1 : "
     "f32[50,41]\n"
     "%gg = mul %g, %g : f32[50,41]\n%v1 = mul %v, %c1 : f32[50,41]\n%g2 = mul %gg, %c2 : "
     "f32[50,41]\n"
     "%vn = add %v1, %g2 : f32[50,41]\n%sq = sqrt %vn : f32[50,41]\n%eps = const {value=1e-8} : "
     "f32[50,41]\n"
     "%den = add %sq, %eps : f32[50,41]\n%u = div %mn, %den : f32[50,41]\n%ur = mul %u, %rb : "
     "f32[50,41]\n"
     "%pn = sub %p, %ur : f32[50,41]\nwrite @p, %pn\nwrite @m, %mn\nwrite @v, %vn\nwrite @step, "
     "%step1",
     0},
    {"dropout",
     "state seed : i64[] role=seed value=12345678901\nstate step : i64[] role=counter value=7",
     "%x = input : f32[40,33]\n%seed = read @seed : i64[]\n%step = read @step : i64[]\n"
     "%r = uniform %seed, %step {stream=3} : f32[40,33]\n%k = const {value=0.3} : f32[40,33]\n"
     "%keep = ge %r, %k : bool[40,33]\n%z = const {value=0} : f32[40,33]\n"
     "%y = select %keep, %x, %z : f32[40,33]\nresult output y = %y\nresult output r = %r",
     0},
    {"normal", "state seed : i64[] role=seed value=5\nstate step : i64[] role=counter value=9",
     "%seed = read @seed : i64[]\n%step = read @step : i64[]\n"
     "%r = normal %seed, %step {stream=1} : f32[333]\nresult output r = %r",
     0},
    {"embedding", NULL,
     "%t = input : f32[4,100]\n%i = input : i32[6,7]\n%p = input : f32[7,100]\n"
     "%g = gather %t, %i : f32[6,7,100]\n%p3 = reshape %p : f32[1,7,100]\n"
     "%pb = broadcast %p3 : f32[6,7,100]\n%y = add %g, %pb : f32[6,7,100]\nresult output y = %y",
     0},
    {"gather of scalars", NULL,
     "%t = input : f32[4]\n%i = input : u8[70]\n%g = gather %t, %i : f32[70]\n"
     "%y = neg %g : f32[70]\nresult output y = %y",
     0},
    {"gather of columns", NULL, // of a part of the table, as they lie
     "%t = input : f32[40,90]\n%p = slice %t {start=[3,7],stop=[36,85],step=[1,2]} : f32[33,39]\n"
     "%c = transpose %p {perm=[1,0]} : f32[39,33]\n%i = input : i32[38]\n"
     "%g = gather %c, %i : f32[38,33]\n%y = neg %g : f32[38,33]\n"
     "%j = input : i32[37]\n%h = gather %c, %j : f32[37,33]\n"
     "%r = transpose %h {perm=[1,0]} : f32[33,37]\n%e = exp %r : f32[33,37]\n"
     "result output y = %y\nresult output e = %e",
     0},
    {"argmax", NULL,
     "%x = input : f32[30,70]\n%a = argmax %x {axis=1} : i32[30,1]\n%l = input : u8[30]\n"
     "%li = cast %l : i32[30]\n%a1 = reshape %a : i32[30]\n%h = eq %a1, %li : bool[30]\n"
     "%f = cast %h : f32[30]\n%s = sum %f {axes=[0]} : f32[1]\nresult output s = %s\nresult output "
     "a = %a",
     0},
    {"argmin of ties", NULL,
     "%x = input : u8[30,70]\n%a = argmin %x {axis=1} : i32[30,1]\n%b = argmax %x {axis=0} : "
     "i32[1,70]\n"
     "result output a = %a\nresult output b = %b",
     0},
    {"small integers", NULL,
     "%x = input : u8[9,19]\n%c = const {value=200} : u8[9,19]\n%y = mul %x, %c : u8[9,19]\n"
     "%z = add %y, %c : u8[9,19]\n%s = sum %z {axes=[1]} : u8[9,1]\n%n = neg %x : u8[9,19]\n"
     "%k = const {value=100} : i8[9,19]\n%xi = cast %x : i8[9,19]\n%m = mul %xi, %k : i8[9,19]\n"
     "result output z = %z\nresult output s = %s\nresult output n = %n\nresult output m = %m",
     0},
    {"integer division", NULL,
     "%x = input : i32[50]\n%y = input : i32[50]\n%c = const {value=2} : i32[50]\n"
     "%a = sub %x, %c : i32[50]\n%b = sub %y, %c : i32[50]\n%d = div %a, %b : i32[50]\n"
     "%m = mod %a, %b : i32[50]\n%al = cast %a : i64[50]\n%bl = cast %b : i64[50]\n"
     "%dl = div %al, %bl : i64[50]\n%ml = mod %al, %bl : i64[50]\nresult output d = %d\n"
     "result output m = %m\nresult output dl = %dl\nresult output ml = %ml",
     0},
    {"casts", NULL,
     "%x = input : f32[50]\n%c = const {value=200} : f32[50]\n%y = mul %x, %c : f32[50]\n"
     "%a = cast %y : u8[50]\n%b = cast %y : i8[50]\n%d = cast %y : i32[50]\n%e = cast %y : "
     "bool[50]\n"
     "%f = cast %y : f64[50]\n%g = cast %f : i64[50]\n%h = cast %e : f32[50]\n%i = cast %y : "
     "u32[50]\n"
     "result output a = %a\nresult output b = %b\nresult output d = %d\nresult output e = %e\n"
     "result output f = %f\nresult output g = %g\nresult output h = %h\nresult output i = %i",
     0},
    {"doubles", NULL,
     "%x = input : f64[9,21]\n%e = exp %x : f64[9,21]\n%s = sum %e {axes=[1]} : f64[9,1]\n"
     "%sb = broadcast %s : f64[9,21]\n%y = div %e, %sb : f64[9,21]\n%z = const {value=0.05} : "
     "f64[9,21]\n"
     "%l = lt %y, %z : bool[9,21]\n%q = select %l, %z, %y : f64[9,21]\nresult output q = %q",
     0},
    {"scalars", "state lr : f32[] role=flag value=0.1\nstate step : i64[] role=counter value=41",
     "%step = read @step : i64[]\n%one = const {value=1} : i64[]\n%n = add %step, %one : i64[]\n"
     "%f = cast %n : f32[]\n%w = const {value=100} : f32[]\n%r = div %f, %w : f32[]\n"
     "%c = cos %r : f32[]\n%lr = read @lr : f32[]\n%y = mul %lr, %c : f32[]\n%b = lt %f, %w : "
     "bool[]\n"
     "%q = select %b, %y, %lr : f32[]\nwrite @step, %n\nresult metric q = %q",
     0},
    {"logsumexp of one", NULL,
     "%x = input : f32[6,1]\n%m = reduce_max %x {axes=[1]} : f32[6,1]\n%d = sub %x, %m : f32[6,1]\n"
     "%e = exp %d : f32[6,1]\n%s = sum %e {axes=[1]} : f32[6,1]\nresult output s = %s",
     0},
    {"pad", NULL,
     "%x = input : f32[4,6,5]\n%y = pad %x {lo=[1,2,0], hi=[0,3,0], value=9} : f32[5,11,5]\n"
     "%z = pad %x {lo=[0,0,2], hi=[0,0,1], value=-1} : f32[4,6,8]\nresult output y = %y\nresult "
     "output z = %z",
     0},
    {"maxima of what is padded with nothing larger", NULL,
     "%x = input : f32[4,9,5]\n%y = pad %x {lo=[0,1,0], hi=[0,1,0], value=-inf} : f32[4,11,5]\n"
     "%w = windows %y {axes=[1], step=[2], size=[3], dilate=[1]} : f32[4,5,5,3]\n"
     "%m = reduce_max %w {axes=[3]} : f32[4,5,5,1]\nresult output m = %m\nresult output y = %y",
     0},
    {"pad a row", NULL,
     "%x = input : f32[30000]\n%y = pad %x {lo=[3], hi=[2], value=1} : f32[30005]\nresult output y "
     "= %y",
     0},
    {"concat", NULL,
     "%x = input : f32[4,6,5]\n%y = input : f32[6,4,5]\n%t = transpose %y {perm=[1,0,2]} : "
     "f32[4,6,5]\n"
     "%z = concat %x, %t, %x {axis=1} : f32[4,18,5]\n%w = concat %x, %t {axis=0} : f32[8,6,5]\n"
     "%v = concat %t, %x {axis=2} : f32[4,6,10]\nresult output z = %z\nresult output w = "
     "%w\nresult output v = %v",
     0},
    {"insert", NULL,
     "%x = input : f32[4,6,5]\n%a = input : f32[6,4,5]\n%b = transpose %a {perm=[1,0,2]} : "
     "f32[4,6,5]\n"
     "%p = slice %b {start=[0,0,0], stop=[2,6,3], step=[1,2,1]} : f32[2,3,3]\n"
     "%u = exp %x : f32[4,6,5]\n%v = insert %u, %p {lo=[1,2,1]} : f32[4,6,5]\n" // in place
     "%w = insert %b, %p {lo=[2,3,2]} : f32[4,6,5]\n%y = insert %x, %x {lo=[0,0,0]} : f32[4,6,5]\n"
     "%q = slice %x {start=[0,0,0], stop=[4,2,5], step=[1,1,1]} : f32[4,2,5]\n"
     "%z = insert %x, %q {lo=[0,4,0]} : f32[4,6,5]\nresult output v = %v\nresult output w = %w\n"
     "result output y = %y\nresult output z = %z",
     0},
    {"insert in a row, and whole vectors", NULL,
     "%x = input : f32[30000]\n%p = input : f32[2000]\n%y = insert %x, %p {lo=[1001]} : "
     "f32[30000]\n"
     "%r = exp %x : f32[30000]\n%z = insert %r, %p {lo=[0]} : f32[30000]\n"
     "%m = input : f32[3,4,24]\n%h = input : f32[2,4,8]\n%e = exp %m : f32[3,4,24]\n"
     "%n = insert %e, %h {lo=[1,0,8]} : f32[3,4,24]\n%o = insert %m, %h {lo=[0,0,16]} : "
     "f32[3,4,24]\n"
     "result output y = %y\nresult output z = %z\nresult output n = %n\nresult output o = %o",
     0},
    {"copies of whole vectors", NULL,
     "%x = input : f32[3,4,24]\n%a = slice %x {start=[0,1,4], stop=[3,4,20], step=[1,2,1]} : "
     "f32[3,2,16]\n%b = slice %x {start=[0,0,2], stop=[3,4,18], step=[1,1,1]} : f32[3,4,16]\n%h = "
     "slice %x {start=[0,0,8], stop=[3,4,24], step=[1,1,1]} : f32[3,4,16]\n"
     "%p = pad %x {lo=[1,1,0], hi=[0,2,0], value=2} : f32[4,7,24]\n"
     "%q = pad %a {lo=[0,1,4], hi=[2,0,8], value=-1} : f32[5,3,28]\n"
     "%r = concat %a, %h, %a {axis=1} : f32[3,8,16]\n%s = concat %b, %a {axis=1} : f32[3,6,16]\n"
     "%u = input : u8[2,3,12]\n%v = concat %u, %u {axis=0} : u8[4,3,12]\n"
     "%d = input : f64[2,3,4]\n%e = pad %d {lo=[0,0,4], hi=[0,1,0], value=0.5} : f64[2,4,8]\n"
     "result output p = %p\nresult output q = %q\nresult output r = %r\nresult output s = %s\n"
     "result output v = %v\nresult output e = %e",
     0},
    {"scatter", NULL,
     "%i = input : i32[12,7]\n%u = input : f32[12,7,100]\n%s = scatter_add %i, %u : f32[5,100]\n"
     "%w = input : f32[12,7]\n%t = scatter_add %i, %w : f32[9]\nresult output s = %s\nresult "
     "output t = %t",
     0},
    {"scatter by rows in turn, in pieces, and by columns", NULL,
     "%i = input : i32[50,7]\n%u = input : f32[7,50,64]\n"
     "%v = transpose %u {perm=[1,0,2]} : f32[50,7,64]\n%s = scatter_add %i, %v : f32[40,64]\n"
     "%j = input : i32[90]\n%w = input : f32[90,200]\n%t = scatter_add %j, %w : f32[5,200]\n"
     "result output s = %s\nresult output t = %t",
     0},
    {"the largest of rows", NULL,
     "%i = input : i32[12,7]\n%u = input : f32[12,7,100]\n%s = scatter_max %i, %u : f32[95,100]\n"
     "%w = input : f32[12,7]\n%t = scatter_max %i, %w : f32[9]\n%v = input : i32[12,7,3]\n"
     "%m = scatter_max %i, %v : i32[9,3]\n%x = input : u8[12,7,70]\n"
     "%n = scatter_max %i, %x : u8[40,70]\n%y = input : f64[12,7,4]\n"
     "%o = scatter_max %i, %y : f64[9,4]\nresult output s = %s\nresult output t = %t\n"
     "result output m = %m\nresult output n = %n\nresult output o = %o",
     1e-30},
    {"scatter of rows that are fetched",
     NULL, // in pieces, by columns, by one task, of a part of a table
     "%x = input : f32[30,100]\n%j = input : i32[50,7]\n%i = input : i32[50,7]\n"
     "%u = gather %x, %j : f32[50,7,100]\n%s = scatter_add %i, %u : f32[90,100]\n"
     "%v = gather %x, %j : f32[50,7,100]\n%t = scatter_add %i, %v : f32[5,100]\n"
     "%y = input : f32[20,9]\n%w = gather %y, %j : f32[50,7,9]\n%o = scatter_max %i, %w : "
     "f32[40,9]\n"
     "%z = input : f32[20]\n%a = gather %z, %j : f32[50,7]\n%p = scatter_add %i, %a : f32[40]\n"
     "%c = input : f32[20,40]\n%d = slice %c {start=[2,3], stop=[20,36], step=[1,1]} : f32[18,33]\n"
     "%k = transpose %j {perm=[1,0]} : i32[7,50]\n%l = transpose %i {perm=[1,0]} : i32[7,50]\n"
     "%e = gather %d, %k : f32[7,50,33]\n%q = scatter_add %l, %e : f32[70,33]\n"
     "%n = input : i64[9,3]\n%f = gather %n, %j : i64[50,7,3]\n%r = scatter_add %i, %f : "
     "i64[31,3]\n"
     "result output s = %s\nresult output t = %t\nresult output o = %o\nresult output p = %p\n"
     "result output q = %q\nresult output r = %r",
     0},
    {"scatter of rows that others read, too, or that are of other indices", NULL,
     "%x = input : f32[30,100]\n%j = input : i32[50]\n%i = input : i32[50]\n"
     "%u = gather %x, %j : f32[50,100]\n%s = scatter_add %i, %u : f32[90,100]\n"
     "%n = exp %u : f32[50,100]\n%y = input : f32[30,8]\n%k = input : i32[20,3]\n"
     "%v = gather %y, %k : f32[20,3,8]\n%h = input : i32[20]\n%t = scatter_add %h, %v : "
     "f32[9,3,8]\n"
     "result output s = %s\nresult output n = %n\nresult output t = %t",
     1e-6},
    {"scatter of rows that views of indices name, through which no strides lead", NULL,
     "%e = input : i32[4,9]\n%f = slice %e {start=[0,2], stop=[4,8], step=[1,1]} : i32[4,6]\n"
     "%j = reshape %f : i32[24]\n%i = input : i32[24]\n%x = input : f32[30,20]\n"
     "%u = gather %x, %j : f32[24,20]\n%s = scatter_add %i, %u : f32[40,20]\n"
     "%a = input : i32[6,5]\n%b = transpose %a {perm=[1,0]} : i32[5,6]\n%c = reshape %b : i32[30]\n"
     "%k = input : i32[30]\n%v = gather %x, %c : f32[30,20]\n%t = scatter_max %k, %v : f32[40,20]\n"
     "%y = transpose %x {perm=[1,0]} : f32[20,30]\n%z = reshape %y : f32[40,15]\n"
     "%w = gather %z, %i : f32[24,15]\n%o = scatter_add %i, %w : f32[40,15]\n"
     "result output s = %s\nresult output t = %t\nresult output o = %o",
     0},
    {"scatter by rows, of indices of all kinds", NULL,
     "%u = input : f32[300,40]\n%i = input : u8[300]\n%s = scatter_add %i, %u : f32[90,40]\n"
     "%j = input : u32[300]\n%t = scatter_add %j, %u : f32[90,40]\n"
     "%k = input : i64[300]\n%o = scatter_add %k, %u : f32[90,40]\n"
     "result output s = %s\nresult output t = %t\nresult output o = %o",
     0},
    {"scatter of a scalar index", NULL,
     "%i = input : u8[]\n%u = input : f32[6]\n%s = scatter_add %i, %u : f32[5,6]\nresult output s "
     "= %s",
     0},
};
enum { NUM_LOOP_CASES = sizeof loop_cases / sizeof *loop_cases };

// Kernels that take their element count as a number: counts around vectors, steps of vectors and
// tasks, of pointwise code, of a sum that also stores its elements, and of narrow dtypes.
static void check_flat_sizes(const cg_target *t) {
  static const int sizes[] = {2, 15, 16, 17, 65, 321, 4097, 40000};
  ir_arena *a = ir_arena_new();
  ir_buf b = ir_buf_new(a);
  ir_buf_puts(&b, "%seed = read @seed : i64[]\n%step = read @step : i64[]\n");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const char *n = ir_format(a, "%d", sizes[i]);
    ir_buf_printf(&b,
                  "%%x%s = input : f32[%s]\n%%r%s = uniform %%seed, %%step {stream=%s} : f32[%s]\n"
                  "%%p%s = mul %%x%s, %%r%s : f32[%s]\n%%s%s = sum %%p%s {axes=[0]} : f32[1]\n"
                  "result output p%s = %%p%s\nresult output s%s = %%s%s\n",
                  n, n, n, n, n, n, n, n, n, n, n, n, n, n, n);
    ir_buf_printf(&b,
                  "%%y%s = input : u8[%s]\n%%c%s = cast %%y%s : f32[%s]\n"
                  "%%l%s = gt %%x%s, %%c%s : bool[%s]\n%%e%s = exp %%c%s : f32[%s]\n"
                  "result output l%s = %%l%s\nresult output e%s = %%e%s\n",
                  n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n);
  }
  ir_module *m = test_module(a,
                             "state seed : i64[] role=seed value=77\n"
                             "state step : i64[] role=counter value=5",
                             ir_buf_str(&b));
  pass_own_outputs(m, diag_new(a));
  pass_fuse(m, diag_new(a));
  test_kernels(a, "flat sizes", m, "f", t, 2e-6, 3);
  ir_arena_free(a);
}

#endif
