// test_passes_sums.c: thin_products, narrow_sums, split_reductions and split_columns on texts, each checked by the oracle.
#include "support_passes.h"

#define R "result output r = %r"

static const test_pass_case thin_cases[] = {
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

static const test_pass_case narrow_cases[] = {
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

static const test_pass_case split_cases[] = {
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
    {"of what is computed before it is reshaped, likewise", pass_split_reductions, NULL,
     "%x = input : f32[112,2,80,4]\n%s = mul %x, %x : f32[112,2,80,4]\n"
     "%y = reshape %s : f32[17920,4]\n%r = sum %y {axes=[0]} : f32[1,4]\n" R,
     "%x = input : f32[112,2,80,4]\n%s = mul %x, %x : f32[112,2,80,4]\n"
     "%y = reshape %s : f32[17920,4]\n%r.reshape = reshape %y : f32[112,160,4]\n"
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
    {"many columns on a processor", pass_split_strips, NULL,
     "%x = input : f32[1024,65]\n%r = sum %x {axes=[0]} : f32[1,65]\n" R,
     "%x = input : f32[1024,65]\n%r.reshape = reshape %x : f32[32,32,65]\n"
     "%r.sum = sum %r.reshape {axes=[1]} : f32[32,1,65]\n"
     "%r.sum.2 = sum %r.sum {axes=[0]} : f32[1,1,65]\n%r = reshape %r.sum.2 : f32[1,65]\n" R},
    {"shorter ones", pass_split_strips, NULL,
     "%x = input : f32[1,512,200]\n%r = sum %x {axes=[1]} : f32[1,1,200]\n" R, NULL},
    {"that the rows wait for", pass_split_strips, NULL,
     "%x = input : f32[1,512,200]\n%s = sum %x {axes=[1]} : f32[1,1,200]\n"
     "%t = mul %s, %s : f32[1,1,200]\n%b = broadcast %t : f32[1,512,200]\n"
     "%r = sub %x, %b : f32[1,512,200]\n" R,
     "%x = input : f32[1,512,200]\n%s.reshape = reshape %x : f32[1,32,16,200]\n"
     "%s.sum = sum %s.reshape {axes=[2]} : f32[1,32,1,200]\n"
     "%s.sum.2 = sum %s.sum {axes=[1]} : f32[1,1,1,200]\n%s = reshape %s.sum.2 : f32[1,1,200]\n"
     "%t = mul %s, %s : f32[1,1,200]\n%b = broadcast %t : f32[1,512,200]\n"
     "%r = sub %x, %b : f32[1,512,200]\n" R},
    {"that rows of each of several matrices wait for", pass_split_strips, NULL,
     "%x = input : f32[2,512,80]\n%s = sum %x {axes=[1]} : f32[2,1,80]\n"
     "%b = broadcast %s : f32[2,512,80]\n%r = sub %x, %b : f32[2,512,80]\n" R,
     "%x = input : f32[2,512,80]\n%s.reshape = reshape %x : f32[2,32,16,80]\n"
     "%s.sum = sum %s.reshape {axes=[2]} : f32[2,32,1,80]\n"
     "%s.sum.2 = sum %s.sum {axes=[1]} : f32[2,1,1,80]\n%s = reshape %s.sum.2 : f32[2,1,80]\n"
     "%b = broadcast %s : f32[2,512,80]\n%r = sub %x, %b : f32[2,512,80]\n" R},
    {"of as many columns as are one strip", pass_split_strips, NULL,
     "%x = input : f32[2,4096,16]\n%s = sum %x {axes=[1]} : f32[2,1,16]\n"
     "%b = broadcast %s : f32[2,4096,16]\n%r = sub %x, %b : f32[2,4096,16]\n" R,
     NULL},
    {"of what would be dear to compute twice", pass_split_strips, NULL,
     "%x = input : f32[512,200]\n%m = reduce_max %x {axes=[0]} : f32[1,200]\n"
     "%n = broadcast %m : f32[512,200]\n%d = sub %x, %n : f32[512,200]\n"
     "%e = exp %d : f32[512,200]\n%s = sum %e {axes=[0]} : f32[1,200]\n%b = broadcast %s : "
     "f32[512,200]\n"
     "%r = sub %e, %b : f32[512,200]\n" R,
     NULL},
    {"columns of each of several matrices", pass_split_strips, NULL,
     "%x = input : f32[2,1024,65]\n%r = sum %x {axes=[1]} : f32[2,1,65]\n" R, NULL},
    {"columns of what would be stored to be cut", pass_split_strips, NULL,
     "%x = input : f32[2,521,80]\n%s = mul %x, %x : f32[2,521,80]\n"
     "%y = reshape %s : f32[1042,80]\n%r = sum %y {axes=[0]} : f32[1,80]\n" R,
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

int main(void) {
  TEST_PASS_CASES(thin_cases);
  TEST_PASS_CASES(narrow_cases);
  TEST_PASS_CASES(split_cases);
  return test_report("passes_sums");
}
