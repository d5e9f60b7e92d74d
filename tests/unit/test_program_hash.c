// test_program_hash.c: two ways to make kernels of one function have one hash where they have the same bits, and two
// where they have not: what decides whether a budget may take other kernels (driver/budgets.c).
#include "codegen/program.h"
#include "passes/pass.h"
#include "tests/unit/support_ir.h"

typedef struct hash_case {
  const char *what, *one, *other; // kernels
  bool same;
} hash_case;

#define SUM_IN_ONE                                                                                 \
  "kernel s loop {\n %p = mul %x, %y : f32[4]\n %s = sub %p, %z : f32[4]\n}\nresult output s = "   \
  "%s\n"
#define SUM_IN_TWO                                                                                 \
  "kernel p loop {\n %p = mul %x, %y : f32[4]\n}\nkernel s loop {\n %s = sub %p, %z : "            \
  "f32[4]\n}\nresult output s = %s\n"

static const hash_case cases[] = {
    {"values element by element in one kernel or in two",
     "kernel s loop {\n %p = exp %x : f32[4]\n %s = sub %p, %z : f32[4]\n}\nresult output s = %s\n",
     "kernel p loop {\n %p = exp %x : f32[4]\n}\nkernel s loop {\n %s = sub %p, %z : f32[4]\n}\n"
     "result output s = %s\n",
     true},
    {"made twice",
     "kernel p loop {\n %p = add %x, %y : f32[4]\n}\nkernel s loop {\n %s = mul %p, %z : "
     "f32[4]\n}\n"
     "kernel r loop {\n %r = exp %p : f32[4]\n}\nresult output s = %s\nresult output r = %r\n",
     "kernel s loop {\n %p = add %x, %y : f32[4]\n %s = mul %p, %z : f32[4]\n}\n"
     "kernel r loop {\n %q = add %x, %y : f32[4]\n %r = exp %q : f32[4]\n}\n"
     "result output s = %s\nresult output r = %r\n",
     true},
    {"a product that is added to something in its own kernel, rounded once", SUM_IN_ONE, SUM_IN_TWO,
     false},
    {"the same behind a sign",
     "kernel s loop {\n %p = mul %x, %y : f32[4]\n %n = neg %p : f32[4]\n %s = add %z, %n : "
     "f32[4]\n"
     "}\nresult output s = %s\n",
     "kernel n loop {\n %p = mul %x, %y : f32[4]\n %n = neg %p : f32[4]\n}\n"
     "kernel s loop {\n %s = add %z, %n : f32[4]\n}\nresult output s = %s\n",
     false},
    {"a product that must be rounded to be stored, too", SUM_IN_ONE,
     SUM_IN_ONE "result output p = %p\n", false},
    {"products that are summed",
     "kernel s loop {\n %p = mul %x, %y : f32[4]\n %s = sum %p {axes=[0]} : f32[1]\n}\n"
     "result output s = %s\n",
     "kernel p loop {\n %p = mul %x, %y : f32[4]\n}\n"
     "kernel s loop {\n %s = sum %p {axes=[0]} : f32[1]\n}\nresult output s = %s\n",
     false},
};

static uint64_t hash_of(ir_arena *a, const char *kernels) {
  ir_module *m = support_step(
      a, ir_format(a, "%%x = input : f32[4]\n%%y = input : f32[4]\n%%z = input : f32[4]\n%s",
                   kernels));
  pass_fuse(m, diag_new(a)); // finds what kernels store
  return cg_program_hash(a, m);
}

int main(void) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ir_arena *a = ir_arena_new();
    bool same = hash_of(a, cases[i].one) == hash_of(a, cases[i].other);
    CHECK(same == cases[i].same, "%s: %s", cases[i].what, same ? "one hash" : "two hashes");
    ir_arena_free(a);
  }
  return support_finish("program_hash");
}
