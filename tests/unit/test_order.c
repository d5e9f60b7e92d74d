// test_order.c: pass_order puts readers of a state before the kernel that overwrites it, drops
// that wish where it would close a cycle, and otherwise keeps source order.
#include <stdlib.h>
#include <string.h>

#include "passes/pass.h"
#include "passes/plan.h"
#include "tests/support_check.h"
#include "tests/unit/support_passes.h"
#include "tests/unit/support_plan.h"

// Kernels are given by the text; pass_fuse only finds their outputs.
static ir_module *ordered(ir_arena *a, const char *text, bool *changed) {
  ir_diags *d = diag_new(a);
  ir_module *m = test_parse(a, text);
  pass_fuse(m, d);
  *changed = pass_order(m, d);
  ir_buf faults = ir_buf_new(a);
  CHECK(ir_verify(m, &faults) == 0, "%s", ir_buf_str(&faults));
  return m;
}

static const char *kernel_names(ir_arena *a, const ir_func *f) {
  ir_buf b = ir_buf_new(a);
  for (size_t i = 0; i < f->kernels.num; i++) {
    CHECK(f->kernels.at[i]->id == i, "kernel %s has id %u", f->kernels.at[i]->name,
          f->kernels.at[i]->id);
    ir_buf_printf(&b, "%s%s", i ? " " : "", f->kernels.at[i]->name);
  }
  return ir_buf_str(&b);
}

// "w copied; v in place" for the writes of the first function.
static const char *writes(ir_arena *a, ir_module *m) {
  const plan *p = test_plan(m);
  ir_buf faults = ir_buf_new(a), b = ir_buf_new(a);
  CHECK(plan_check(p, m, &faults) == 0, "%s", ir_buf_str(&faults));
  const ir_func *f = m->funcs.at[0];
  size_t copies = 0;
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->op != IR_WRITE)
      continue;
    bool in_place = plan_is_in_place(p, f, n);
    copies += !in_place;
    ir_buf_printf(&b, "%s%s %s", b.len ? ", " : "", n->state->name,
                  in_place ? "in place" : "copied");
  }
  CHECK(copies == p->copies.num, "%zu copies in the plan, %zu needed", p->copies.num, copies);
  return ir_buf_str(&b);
}

// %d, 64 KB, of which kernel w takes a sum, and for that waits for `half`; the peak is in p.
#define LARGE_SUM                                                                                  \
  "%x = input : f32[256,64]\n%big = input : f32[1024,256]\n%m = read @m : f32[64]\n"               \
  "%w = read @w : f32[64]\nkernel p loop {\n %p = exp %big : f32[1024,256]\n}\n"                   \
  "kernel q loop {\n %q = sum %p {axes=[1]} : f32[1024,1]\n}\n"                                    \
  "kernel d loop {\n %d = mul %x, %x : f32[256,64]\n}\n"                                           \
  "kernel far loop {\n %far = exp %x : f32[256,64]\n}\n"                                           \
  "kernel half loop {\n %half = mul %m, %m : f32[64]\n}\n%h = reshape %half : f32[1,64]\n"         \
  "kernel w loop {\n %s = sum %d {axes=[0]} : f32[1,64]\n %t = mul %s, %h : f32[1,64]\n"           \
  " %ws = reshape %t : f32[64]\n %w.new = sub %w, %ws : f32[64]\n}\nwrite @w, %w.new\n"            \
  "result output q = %q\nresult output far = %far\n"

typedef struct order_case {
  const char *what, *states, *body, *kernels, *writes;
  bool changed;
} order_case;

static const order_case cases[] = {
    {"a reader of @w goes before the kernel that overwrites it", "state w : f32[4] role=param\n",
     "%x = input : f32[4]\n%w = read @w : f32[4]\n"
     "kernel update loop {\n %w.new = sub %w, %x : f32[4]\n}\n"
     "kernel use loop {\n %y = mul %w, %x : f32[4]\n}\n"
     "write @w, %w.new\nresult output y = %y\n",
     "use update", "w in place", true},
    {"a reader through a view outside kernels counts", "state w : f32[2,2] role=param\n",
     "%x = input : f32[2,2]\n%w = read @w : f32[2,2]\n"
     "%t = transpose %w {perm=[1,0]} : f32[2,2]\n"
     "kernel update loop {\n %w.new = sub %w, %x : f32[2,2]\n}\n"
     "kernel use loop {\n %y = mul %t, %x : f32[2,2]\n}\n"
     "write @w, %w.new\nresult output y = %y\n",
     "use update", "w in place", true},
    {"a reader that needs the new value makes the write a copy", "state w : f32[4] role=param\n",
     "%x = input : f32[4]\n%w = read @w : f32[4]\n"
     "kernel update loop {\n %w.new = sub %w, %x : f32[4]\n}\n"
     "kernel use loop {\n %y = mul %w, %w.new : f32[4]\n}\n"
     "write @w, %w.new\nresult output y = %y\n",
     "update use", "w copied", false},
    {"two states that swap: one goes in place, one through a temporary",
     "state a : f32[4] role=param\nstate b : f32[4] role=param\n",
     "%a = read @a : f32[4]\n%b = read @b : f32[4]\n"
     "kernel ka loop {\n %a.new = neg %b : f32[4]\n}\n"
     "kernel kb loop {\n %b.new = neg %a : f32[4]\n}\n"
     "write @a, %a.new\nwrite @b, %b.new\n",
     NULL, NULL, false},
    {"a kernel that reads the state at other places than it writes",
     "state w : f32[2,2] role=param\n",
     "%w = read @w : f32[2,2]\n%t = transpose %w {perm=[1,0]} : f32[2,2]\n"
     "kernel update loop {\n %w.new = neg %t : f32[2,2]\n}\n"
     "write @w, %w.new\n",
     "update", "w copied", false},
    {"a slice of the state: the same places but shifted", "state w : f32[4] role=param\n",
     "%w = read @w : f32[4]\n%x = input : f32[3]\n"
     "%s = slice %w {start=[1], stop=[4], step=[1]} : f32[3]\n"
     "kernel use loop {\n %y = add %s, %x : f32[3]\n}\n"
     "kernel grow copy anchor=%w.new {\n"
     " %w.new = pad %y {lo=[1], hi=[0], value=0.0} : f32[4]\n}\n"
     "write @w, %w.new\n",
     "use grow", "w in place", false},
    {"a part of a state is put where it belongs", "state w : f32[4] role=param\n",
     "%w = read @w : f32[4]\n%x = input : f32[3]\n"
     "kernel part copy {\n %w.new = insert %w, %x {lo=[1]} : f32[4]\n}\n"
     "write @w, %w.new\n",
     "part", "w in place", false},
    {"unless it comes from elsewhere in the state", "state w : f32[4] role=param\n",
     "%w = read @w : f32[4]\n%x = slice %w {start=[0], stop=[3], step=[1]} : f32[3]\n"
     "kernel part copy {\n %w.new = insert %w, %x {lo=[1]} : f32[4]\n}\n"
     "write @w, %w.new\n",
     "part", "w copied", false},
    {"or the state is seen in another order", "state w : f32[2,2] role=param\n",
     "%w = read @w : f32[2,2]\n%t = transpose %w {perm=[1,0]} : f32[2,2]\n%x = input : f32[1,2]\n"
     "kernel part copy {\n %w.new = insert %t, %x {lo=[1,0]} : f32[2,2]\n}\n"
     "write @w, %w.new\n",
     "part", "w copied", false},
    {"the step counter: read by many, written last",
     "state step : i64[] role=counter\nstate w : f32[4] role=param\n",
     "%s = read @step : i64[]\n%w = read @w : f32[4]\n%one = const {value=1.0} : i64[]\n"
     "kernel count loop {\n %s.new = add %s, %one : i64[]\n}\n"
     "kernel scale loop {\n %f = cast %s : f32[]\n}\n"
     "%f1 = reshape %f : f32[1]\n%fb = broadcast %f1 : f32[4]\n"
     "kernel update loop {\n %w.new = mul %w, %fb : f32[4]\n}\n"
     "write @step, %s.new\nwrite @w, %w.new\n",
     "scale count update", "step in place, w in place", true},
    {"a kernel that only finishes a state ends the life of its gradient at once",
     "state v : f32[4] role=param\nstate w : f32[4] role=param\n",
     "%x = input : f32[4]\n%v = read @v : f32[4]\n%w = read @w : f32[4]\n"
     "kernel dv loop {\n %dv = mul %x, %x : f32[4]\n}\n"
     "kernel dw loop {\n %dw = exp %x : f32[4]\n}\n"
     "kernel v loop {\n %v.new = sub %v, %dv : f32[4]\n}\n"
     "kernel w loop {\n %w.new = sub %w, %dw : f32[4]\n}\n"
     "write @v, %v.new\nwrite @w, %w.new\n",
     "dv v dw w", "v in place, w in place", true},
    {"kernels that set a large value free together run once its others have, after what they wait "
     "for",
     "state m : f32[64] role=moment\nstate v : f32[64] role=param\nstate w : f32[64] role=param\n",
     LARGE_SUM
     "%v = read @v : f32[64]\n"
     "kernel v loop {\n %e = reduce_max %d {axes=[0]} : f32[1,64]\n"
     " %vs = reshape %e : f32[64]\n %v.new = sub %v, %vs : f32[64]\n}\nwrite @v, %v.new\n",
     "p q d half w v far", "w copied, v copied", true},
    {"so does the last one, behind what it waits for",
     "state m : f32[64] role=moment\nstate w : f32[64] role=param\n", LARGE_SUM, "p q d half w far",
     "w copied", true},
    {"nothing to do: source order stands", "state w : f32[4] role=param\n",
     "%x = input : f32[4]\n"
     "kernel b loop {\n %p = exp %x : f32[4]\n}\n"
     "kernel a loop {\n %q = neg %p : f32[4]\n}\n"
     "kernel c loop {\n %r = add %p, %q : f32[4]\n}\n"
     "result output r = %r\n",
     "b a c", "", false},
    {"a matmul operand is read by every tile: its state is not overwritten by the epilogue",
     "state w : f32[4,4] role=param\n",
     "%x = input : f32[4,4]\n%w = read @w : f32[4,4]\n"
     "kernel update matmul anchor=%p {\n"
     " %p = matmul %w, %x {ta=false, tb=false} : f32[4,4]\n %w.new = add %p, %x : f32[4,4]\n}\n"
     "write @w, %w.new\n",
     "update", "w copied", false},
    {"an epilogue operand at the same places is overwritten", "state w : f32[4,4] role=param\n",
     "%x = input : f32[4,4]\n%w = read @w : f32[4,4]\n"
     "kernel update matmul anchor=%p {\n"
     " %p = matmul %x, %x {ta=false, tb=false} : f32[4,4]\n %w.new = sub %w, %p : f32[4,4]\n}\n"
     "write @w, %w.new\n",
     "update", "w in place", false},
    {"a kernel with a reduction has read a row before it stores it",
     "state w : f32[4,4] role=param\n",
     "%w = read @w : f32[4,4]\n"
     "kernel norm loop {\n %s = sum %w {axes=[1]} : f32[4,1]\n"
     " %sb = broadcast %s : f32[4,4]\n %w.new = div %w, %sb : f32[4,4]\n}\n"
     "write @w, %w.new\n",
     "norm", "w in place", false},
    {"unless a later sweep over the row reads it again", "state w : f32[4,4] role=param\n",
     "%w = read @w : f32[4,4]\n"
     "kernel norm loop {\n %s = sum %w {axes=[1]} : f32[4,1]\n"
     " %sb = broadcast %s : f32[4,4]\n %w.new = sub %w, %sb : f32[4,4]\n"
     " %q = mul %w.new, %w.new : f32[4,4]\n %v = sum %q {axes=[1]} : f32[4,1]\n"
     " %vb = broadcast %v : f32[4,4]\n %y = mul %w, %vb : f32[4,4]\n}\n"
     "write @w, %w.new\nresult output y = %y\n",
     "norm", "w copied", false},
};

static void run_case(const order_case *c) {
  ir_arena *a = ir_arena_new();
  const char *text =
      ir_format(a, "mltc-ir 1\nmodule t\n\n%s\nfunc step {\n%s}\n", c->states, c->body);
  bool changed;
  ir_module *m = ordered(a, text, &changed);
  const char *names = kernel_names(a, m->funcs.at[0]);
  const char *done = writes(a, m);
  if (c->kernels) {
    CHECK(strcmp(names, c->kernels) == 0, "%s: order is '%s', not '%s'", c->what, names,
          c->kernels);
    CHECK(strcmp(done, c->writes) == 0, "%s: '%s', not '%s'", c->what, done, c->writes);
    CHECK(changed == c->changed, "%s: changed is %d", c->what, changed);
  } else { // a swap: either one
    CHECK(strcmp(done, "a copied, b in place") == 0 || strcmp(done, "a in place, b copied") == 0,
          "%s: '%s'", c->what, done);
  }
  bool again;
  ir_buf before = ir_buf_new(a), after = ir_buf_new(a);
  ir_print(m, &before);
  again = pass_order(m, diag_new(a));
  ir_print(m, &after);
  CHECK(!again && strcmp(ir_buf_str(&before), ir_buf_str(&after)) == 0,
        "%s: ordering twice changes it again", c->what);
  ir_arena_free(a);
}

int main(void) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    run_case(&cases[i]);
  printf("%zu cases, %d failures\n", sizeof cases / sizeof *cases, failures);
  return failures != 0;
}
