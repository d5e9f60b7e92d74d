// test_plan_check.c: plan_check, one case per rule. A sound plan is broken in one place, and the rule
// concerned must say so: others may, too.
#include <stdlib.h>
#include <string.h>

#include "passes/domain.h"
#include "tests/support_check.h"
#include "tests/unit/support_plan.h"

static const char two_outputs[] =
    "func step {\n%x = input : f32[64]\n"
    "kernel b loop {\n %b = neg %x : f32[64]\n %c = mul %b, %x : f32[64]\n}\n"
    "result output b = %b\nresult output c = %c\n}\n";
// Another order of the elements than that of @w: a temporary, and a copy at the end. @v stays.
static const char copied[] =
    "state w : f32[2,2] role=param\nstate v : f32[2,2] role=param\nfunc step {\n"
    "%w = read @w : f32[2,2]\n%t = transpose %w {perm=[1,0]} : f32[2,2]\n"
    "kernel u loop {\n %w.new = neg %t : f32[2,2]\n}\nwrite @w, %w.new\n}\n";

static const char cut[] = "func step {\n%x = input : f32[4,64]\n"
                          "kernel a loop {\n %a = exp %x : f32[4,64]\n}\n"
                          "%s = slice %a {start=[2,0], stop=[3,64], step=[1,1]} : f32[1,64]\n"
                          "kernel b loop {\n %b = neg %s : f32[1,64]\n}\nresult output b = %b\n}\n";

// %a waits in memory of the host while c and d run, and so does %b; both are back for e.
static const char sent[] =
    "func step ordered {\n%x = input : f32[64]\n"
    "kernel a loop {\n %a = exp %x : f32[64]\n}\n"
    "kernel b loop {\n %b = neg %a : f32[64]\n}\n"
    "kernel as send begin=b {\n %as = copy %a : f32[64]\n}\n"
    "kernel c loop {\n %c = exp %b : f32[64]\n}\n"
    "kernel bs send begin=c {\n %bs = copy %b : f32[64]\n}\n"
    "kernel d loop {\n %d = neg %c : f32[64]\n}\n"
    "kernel e loop {\n %e = exp %d : f32[64]\n}\n"
    "kernel af fetch begin=d {\n %af = copy %as : f32[64]\n}\n"
    "kernel bf fetch begin=e {\n %bf = copy %bs : f32[64]\n}\n"
    "kernel f loop {\n %f = add %af, %bf : f32[64]\n %g = mul %f, %e : f32[64]\n}\n"
    "result output g = %g\n}\n";

// %f is on its way into memory of its own while c still reads @w; two states take it.
static const char fetched[] =
    "state w : f32[64] role=param\nstate v : f32[64] role=param\nfunc step ordered {\n"
    "%x = input : f32[64]\n%w = read @w : f32[64]\n"
    "kernel a loop {\n %a = exp %x : f32[64]\n}\n"
    "kernel s send {\n %s = copy %a : f32[64]\n}\n"
    "kernel b loop {\n %b = neg %x : f32[64]\n}\n"
    "kernel c loop {\n %c = add %b, %w : f32[64]\n}\n"
    "kernel f fetch begin=b {\n %f = copy %s : f32[64]\n}\n"
    "write @w, %f\nwrite @v, %f\nresult output c = %c\n}\n";

typedef struct broken {
  plan *p;
  ir_module *m;
} broken;

static plan_buffer *buffer(const broken *x, const char *name) {
  return test_find_buffer(x->p, name);
}

static int64_t *place(const broken *x, const char *name) {
  const ir_func *f = x->m->funcs.at[0];
  for (size_t i = 0; i < f->nodes.num; i++)
    if (strcmp(f->nodes.at[i]->name, name) == 0)
      return &x->p->node_offset[0][f->nodes.at[i]->id];
  printf("no node %s\n", name);
  exit(1);
}

// --- the function on paper -----------------------------------------------------------------------
static void overwritten(broken *x) {
  *place(x, "c") = *place(x, "b");
}
static void out_of_order(broken *x) {
  ir_kernel **k = x->m->funcs.at[0]->kernels.at, *t = k[0];
  k[0] = k[1];
  k[1] = t;
}
static void halfway(broken *x) {
  *place(x, "c") = *place(x, "b") + 64;
}
static void no_place(broken *x) {
  *place(x, "c") = -1;
}
static void outside(broken *x) {
  *place(x, "c") = x->p->arena_bytes;
}
static void onto_input(broken *x) {
  *place(x, "c") = *place(x, "x");
}
static void onto_state(broken *x) {
  *place(x, "w.new") = buffer(x, "v")->offset;
}
static void together(broken *x) {
  *place(x, "c") = *place(x, "b");
}
static void result_lost(broken *x) {
  x->m->funcs.at[0]->results.at[0].node = x->m->funcs.at[0]->kernels.at[1]->nodes.at[0];
}
static void no_workspace(broken *x) {
  buffer(x, "b.workspace")->bytes = 64;
}
static void workspace_over(broken *x) {
  buffer(x, "b.workspace")->offset = *place(x, "a");
}
static void no_copy(broken *x) {
  x->p->copies.num = 0;
}
static void short_copy(broken *x) {
  x->p->copies.at[0].bytes -= 4;
}
static void copy_elsewhere(broken *x) {
  x->p->copies.at[0].to = buffer(x, "v")->offset;
}
static void write_early(broken *x) {
  x->p->copies.at[0].from = *place(x, "w.new") + 64;
}

static void copied_twice(broken *x) { // the second one into @v, which nothing writes
  plan_copy second = x->p->copies.at[0];
  second.state = x->m->states.at[1];
  second.to = buffer(x, "v")->offset;
  IR_PUSH(x->m->arena, x->p->copies, second);
}
static void written_elsewhere(broken *x) { // as if @w were where its new value has been computed
  const ir_func *f = x->m->funcs.at[0];
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_WRITE)
      x->p->node_offset[0][f->nodes.at[i]->id] = *place(x, "w.new");
  x->p->copies.num = 0;
}

// --- inputs, and what is cut out -----------------------------------------------------------------
static void input_elsewhere(broken *x) {
  *place(x, "x") = buffer(x, "x[1]")->offset;
}
static void slots_apart(broken *x) {
  x->p->staging_slot_bytes += 64;
}
static void cut_elsewhere(broken *x) {
  *place(x, "s") = *place(x, "a");
}

// --- transfers -----------------------------------------------------------------------------------
static void fetched_early(broken *x) { // d is computed where the fetch of a is under way
  *place(x, "d") = *place(x, "af");
}
static void left_early(broken *x) { // b is computed over a, which is being sent
  *place(x, "b") = *place(x, "a");
}
static void host_shared(broken *x) {
  buffer(x, "bs")->offset = buffer(x, "as")->offset;
}
static void host_beyond(broken *x) {
  x->p->host_bytes -= 64;
}
static void fetched_into_state(broken *x) {
  *place(x, "af") = 0;
}
static void begins_late(broken *x) { // the plan has made room from d on
  ir_kernel *k = x->m->funcs.at[0]->kernels.at[7];
  k->begin = x->m->funcs.at[0]->kernels.at[1];
}

// --- the buffers as reported ---------------------------------------------------------------------
static void reported_over(broken *x) {
  buffer(x, "c")->offset = buffer(x, "b")->offset;
}
static void short_life(broken *x) {
  buffer(x, "c")->first = 0;
  buffer(x, "c")->offset = buffer(x, "a")->offset;
}
static void unaligned(broken *x) {
  buffer(x, "c")->offset += 4;
}
static void beyond(broken *x) {
  buffer(x, "c")->offset = x->p->arena_bytes;
}
static void wrong_total(broken *x) {
  x->p->arena_bytes += 64;
}

typedef struct change {
  const char *base;
  void (*apply)(broken *x);
  const char *said;
} change;

static const change changes[] = {
    {test_chain_text, overwritten, "kernel d needs %b at "},
    {test_chain_text, out_of_order, "kernel b needs %a at "},
    {test_chain_text, halfway, "kernel c stores %c over its input %b"},
    {test_chain_text, no_place, "kernel d needs %c, which has no place"},
    {test_chain_text, outside, "%c is stored at 65536, outside the temporaries"},
    {test_chain_text, onto_input, "%c is stored at 0, outside the temporaries"},
    {test_chain_text, result_lost, "the result needs %b at "},
    {test_chain_text, no_workspace, "kernel b lacks its workspace"},
    {test_chain_text, workspace_over, "the workspace of kernel b lies over %a"},
    {two_outputs, together, "kernel b stores %c and %b in one place"},
    {copied, onto_state, "@v is overwritten by %w.new"},
    {copied, no_copy, "nothing takes %w.new to @w"},
    {copied, short_copy, "nothing takes %w.new to @w"},
    {copied, copy_elsewhere, "nothing takes %w.new to @w"},
    {copied, write_early, "nothing takes %w.new to @w"},
    {copied, copied_twice, "2 copies for 1 writes"},
    {copied, written_elsewhere, " and its memory at "},
    {test_chain_text, input_elsewhere, "%x is at "},
    {test_chain_text, slots_apart, "%x is at "},
    {cut, cut_elsewhere, "%s is at "},
    {sent, fetched_early, "the place of %af is used while af is under way"},
    {sent, left_early, "as, which is done, needs %a at "},
    {sent, host_shared, "1 buffers overlap with others that are live on the host"},
    {sent, host_beyond, "buffer bs at "},
    {sent, fetched_into_state, "%af is stored at 0, outside the temporaries"},
    {sent, begins_late, "af, which begins, needs %as at "},
    {fetched, short_copy, "nothing takes %f to @w"},
    {test_chain_text, reported_over, "1 buffers overlap with others that are live"},
    {test_chain_text, short_life, "1 buffers overlap with others that are live"},
    {test_chain_text, unaligned, "buffer c at "},
    {test_chain_text, beyond, "buffer c at "},
    {test_chain_text, wrong_total, "the parts of the arena do not add up"},
};

static void check(const change *c) {
  ir_arena *a = ir_arena_new();
  broken x = {.m = test_ordered(a, c->base)};
  if (c->base == test_chain_text)
    x.m->funcs.at[0]->kernels.at[1]->workspace = 1000;
  dom_find_stretches(x.m);
  x.p = test_plan(x.m);
  ir_buf faults = ir_buf_new(a);
  CHECK(plan_check(x.p, x.m, &faults) == 0, "sound: %s", ir_buf_str(&faults));
  c->apply(&x);
  CHECK(plan_check(x.p, x.m, &faults) > 0, "goes unseen: %s", c->said);
  CHECK(strstr(ir_buf_str(&faults), c->said), "no '%s', but: %s", c->said, ir_buf_str(&faults));
  ir_arena_free(a);
}

int main(void) {
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
    check(&changes[i]);
  printf("%zu broken plans; %d failures\n", sizeof changes / sizeof *changes, failures);
  return failures != 0;
}
