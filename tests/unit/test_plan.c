// test_plan.c: plan_build_for places everything where plan_check, which runs the functions on paper,
// finds it; in-place reuse happens where it may and only there; the
// printed forms say the same as the plan. Random networks go through the whole pipeline.
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/random_graph.h"
#include "passes/pass.h"
#include "passes/plan.h"
#include "tests/support_campaign.h"
#include "tests/support_check.h"
#include "tests/unit/support_plan.h"

static plan *checked_plan(ir_arena *a, ir_module *m, const char *what) {
  plan *p = test_plan(m);
  ir_buf faults = ir_buf_new(a);
  CHECK(plan_check(p, m, &faults) == 0, "%s: %s", what, ir_buf_str(&faults));
  CHECK(p->arena_bytes >= p->bound_bytes, "%s: below the bound", what);
  return p;
}

static int64_t offset_of(plan *p, const char *name) {
  return test_find_buffer(p, name)->offset;
}

// --- what shares memory ------------------------------------------------------------------------
static void test_chain(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = test_ordered(a, test_chain_text);
  plan *p = checked_plan(a, m, "chain");
  CHECK(offset_of(p, "b") == offset_of(p, "a"), "b is computed over a, which dies");
  CHECK(offset_of(p, "c") != offset_of(p, "b"), "b is needed after c");
  CHECK(p->temp_bytes == 2 * 64 * 64 * 4, "two buffers do, not %lld bytes",
        (long long)p->temp_bytes);
  CHECK(test_find_buffer(p, "d")->kind == PLAN_RESULT, "d is a result");
  CHECK(p->staging_bytes == 2 * 64 * 64 * 4, "two batches of x");
  CHECK(p->staging_slot_bytes == 64 * 64 * 4, "a slot is one batch");
  ir_arena_free(a);
}

static void test_not_in_place(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = test_ordered(a, "func step {\n%x = input : f32[64,64]\n"
                                 "kernel a loop {\n %a = exp %x : f32[64,64]\n}\n"
                                 "%t = transpose %a {perm=[1,0]} : f32[64,64]\n"
                                 "kernel b loop {\n %b = neg %t : f32[64,64]\n}\n"
                                 "result output b = %b\n}\n");
  plan *p = checked_plan(a, m, "transpose");
  CHECK(offset_of(p, "b") != offset_of(p, "a"), "b reads a transposed: not in place");
  m = test_ordered(a, "func step {\n%x = input : f32[64,64]\n"
                      "kernel a loop {\n %a = exp %x : f32[64,64]\n}\n"
                      "kernel b matmul anchor=%b {\n"
                      " %b = matmul %a, %a {ta=false, tb=false} : f32[64,64]\n}\n"
                      "result output b = %b\n}\n");
  p = checked_plan(a, m, "matmul");
  CHECK(offset_of(p, "b") != offset_of(p, "a"), "a matmul is not in place");
  m = test_ordered(a, "func step {\n%x = input : f32[64,64]\n%i = input : i32[64,64]\n"
                      "kernel a loop {\n %a = exp %x : f32[64,64]\n}\n"
                      "kernel r loop {\n %b = exp %a : f32[64,64]\n}\n"
                      "result output a = %a\nresult output b = %b\n}\n");
  p = checked_plan(a, m, "results");
  CHECK(offset_of(p, "b") != offset_of(p, "a"), "a is a result and stays");
  ir_arena_free(a);
}

static void test_two_outputs_one_input(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m =
      test_ordered(a, "func step {\n%x = input : f32[64]\n"
                      "kernel a loop {\n %a = exp %x : f32[64]\n}\n"
                      "kernel b loop {\n %b = neg %a : f32[64]\n %c = mul %b, %a : f32[64]\n}\n"
                      "result output b = %b\nresult output c = %c\n}\n");
  plan *p = checked_plan(a, m, "two outputs");
  CHECK(offset_of(p, "b") != offset_of(p, "c"), "one input cannot be taken over twice");
  CHECK(offset_of(p, "b") == offset_of(p, "a") || offset_of(p, "c") == offset_of(p, "a"),
        "one of them takes it over");
  ir_arena_free(a);
}

// What a kernel of each family computes over which of its operands.
static const struct {
  const char *what, *body, *over; // "y over a"; "": nothing
} over_cases[] = {
    {"a softmax over its scores",
     "kernel a loop {\n %a = exp %x : f32[64,64]\n}\n"
     "kernel y loop {\n %m = reduce_max %a {axes=[1]} : f32[64,1]\n"
     " %mb = broadcast %m : f32[64,64]\n %d = sub %a, %mb : f32[64,64]\n %e = exp %d : f32[64,64]\n"
     " %s = sum %e {axes=[1]} : f32[64,1]\n %sb = broadcast %s : f32[64,64]\n"
     " %y = div %e, %sb : f32[64,64]\n}\nresult output y = %y\n",
     "y over a"},
    {"column sums beside an output that is read before",
     "kernel a loop {\n %a = exp %x : f32[64,64]\n}\n"
     "kernel y loop {\n %s = sum %a {axes=[0]} : f32[1,64]\n %sb = broadcast %s : f32[64,64]\n"
     " %y = div %a, %sb : f32[64,64]\n %z = mul %y, %sb : f32[64,64]\n}\n"
     "result output y = %y\nresult output s = %s\nresult output z = %z\n",
     "y over a"},
    {"an output of an earlier sweep than the last one that reads the operand",
     "kernel a loop {\n %a = exp %x : f32[64,64]\n}\n"
     "kernel y loop {\n %s = sum %a {axes=[1]} : f32[64,1]\n %sb = broadcast %s : f32[64,64]\n"
     " %c = sub %a, %sb : f32[64,64]\n %q = mul %c, %c : f32[64,64]\n"
     " %v = sum %q {axes=[1]} : f32[64,1]\n %vb = broadcast %v : f32[64,64]\n"
     " %y = mul %a, %vb : f32[64,64]\n}\nresult output c = %c\nresult output y = %y\n",
     "y over a"},
    {"a product that is added to the stream",
     "kernel a loop {\n %a = exp %x : f32[64,64]\n}\n"
     "kernel y matmul anchor=%p {\n %p = matmul %x, %x {ta=false, tb=false} : f32[64,64]\n"
     " %y = add %p, %a : f32[64,64]\n}\nresult output y = %y\n",
     "y over a"},
    {"a product of what is added, too",
     "kernel a loop {\n %a = exp %x : f32[64,64]\n}\n"
     "kernel y matmul anchor=%p {\n %p = matmul %x, %a {ta=false, tb=false} : f32[64,64]\n"
     " %y = add %p, %a : f32[64,64]\n}\nresult output y = %y\n",
     ""},
    {"gradients that are added up",
     "kernel a loop {\n %a = exp %x : f32[64,64]\n}\nkernel b loop {\n %b = neg %x : "
     "f32[64,64]\n}\n"
     "kernel y loop {\n %y = add %b, %a : f32[64,64]\n}\n"
     "kernel q loop {\n %q = add %y, %b : f32[64,64]\n}\nresult output q = %q\n",
     "y over a, q over y"},
    {"two outputs over two operands: y leaves b to d, which may not lie over a",
     "kernel a loop {\n %a = exp %x : f32[64,64]\n}\nkernel b loop {\n %b = neg %x : "
     "f32[64,64]\n}\n"
     "kernel y loop {\n %s = sum %b {axes=[1]} : f32[64,1]\n %sb = broadcast %s : f32[64,64]\n"
     " %y = mul %a, %sb : f32[64,64]\n %d = mul %b, %a : f32[64,64]\n"
     " %t = sum %d {axes=[1]} : f32[64,1]\n %w = add %t, %s : f32[64,1]\n}\n"
     "result output y = %y\nresult output d = %d\nresult output w = %w\n",
     "y over a, d over b"},
};

static void test_over(void) {
  for (size_t i = 0; i < sizeof over_cases / sizeof *over_cases; i++) {
    ir_arena *a = ir_arena_new();
    ir_module *m = test_ordered(
        a, ir_format(a, "func step {\n%%x = input : f32[64,64]\n%s}\n", over_cases[i].body));
    plan *p = checked_plan(a, m, over_cases[i].what);
    ir_buf over = ir_buf_new(a);
    for (size_t j = 0; j < p->buffers.num; j++) {
      const plan_buffer *b = &p->buffers.at[j];
      if (b->reuses >= 0)
        ir_buf_printf(&over, "%s%s over %s", over.len ? ", " : "", b->name,
                      p->buffers.at[b->reuses].name);
    }
    CHECK(strcmp(ir_buf_str(&over), over_cases[i].over) == 0, "%s: '%s', not '%s'",
          over_cases[i].what, ir_buf_str(&over), over_cases[i].over);
    ir_arena_free(a);
  }
}

static void test_inputs_are_shared(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m =
      test_ordered(a, "func step {\n%x = input : f32[8]\n%y = input : i32[3]\n"
                      "kernel a loop {\n %a = exp %x : f32[8]\n}\n"
                      "kernel b loop {\n %b = neg %y : i32[3]\n}\n"
                      "result output a = %a\nresult output b = %b\n}\n"
                      "func predict {\n%x = input : f32[8]\n"
                      "kernel a loop {\n %a = neg %x : f32[8]\n}\nresult output a = %a\n}\n");
  plan *p = checked_plan(a, m, "inputs");
  const ir_func *step = m->funcs.at[0], *predict = m->funcs.at[1];
  CHECK(plan_offset(p, step, step->nodes.at[0]) == plan_offset(p, predict, predict->nodes.at[0]),
        "x has one place for both functions");
  CHECK(p->staging_slot_bytes == 128, "x and y, aligned: %lld", (long long)p->staging_slot_bytes);
  CHECK(p->temp_bytes == 128, "temporaries of functions overlay: %lld", (long long)p->temp_bytes);
  ir_arena_free(a);
}

static void test_workspace(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = test_ordered(a, test_chain_text);
  m->funcs.at[0]->kernels.at[1]->workspace = 1000;
  plan *p = checked_plan(a, m, "workspace");
  const plan_buffer *b = test_find_buffer(p, "b.workspace");
  CHECK(b->bytes == 1000 && b->first == 1 && b->last == 1, "workspace of kernel b");
  ir_arena_free(a);
}

// --- printed forms -------------------------------------------------------------------------------
static int64_t json_int(json_object *o, const char *key) {
  json_object *v;
  CHECK(json_object_object_get_ex(o, key, &v), "no key %s", key);
  return json_object_get_int64(v);
}

static json_object *json_at(json_object *o, const char *key) {
  json_object *v = NULL;
  CHECK(json_object_object_get_ex(o, key, &v) && v, "no key %s", key);
  return v;
}

static void test_json(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = test_ordered(a, test_chain_text);
  plan *p = checked_plan(a, m, "json");
  ir_buf text = ir_buf_new(a), again = ir_buf_new(a);
  plan_print_json(p, m, &text);
  plan_print_json(test_plan(m), m, &again);
  CHECK(strcmp(ir_buf_str(&text), ir_buf_str(&again)) == 0, "two runs differ");
  json_object *o = json_tokener_parse(ir_buf_str(&text));
  CHECK(json_int(o, "version") == 1 && json_int(o, "bound") == p->bound_bytes, "head");
  CHECK(json_int(json_at(o, "totals"), "arena") == p->arena_bytes, "arena");
  json_object *f = json_object_array_get_idx(json_at(o, "functions"), 0);
  json_object *k = json_object_array_get_idx(json_at(f, "kernels"), 0);
  CHECK(json_int(k, "flops") == 10 * 64 * 64, "exp counts 10 per element");
  CHECK(json_int(k, "bytes_read") == 64 * 64 * 4, "bytes read");
  CHECK(json_int(f, "peak_bytes") == 2 * 64 * 64 * 4, "peak %lld",
        (long long)json_int(f, "peak_bytes"));
  CHECK(json_object_array_length(json_at(f, "buffers")) == 4, "a, b, c, d");
  json_object_put(o);
  ir_arena_free(a);
}

static void test_table(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = test_ordered(a, test_chain_text);
  ir_buf text = ir_buf_new(a);
  plan_print(test_plan(m), m, &text);
  static const char *const wanted[] = {"memory plan of t: 65,536 bytes", "arena / bound = 1.0000",
                                       "peak: kernel 2 (c)", "in place of a", "x[1]"};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    CHECK(strstr(ir_buf_str(&text), wanted[i]), "'%s' is not in\n%s", wanted[i], ir_buf_str(&text));
  ir_arena_free(a);
}

// --- random networks -----------------------------------------------------------------------------
// Interval ends
// as the plan reports them, against what kernels really read.
static void test_network(uint64_t seed, int nodes, double *worst) {
  ir_arena *a = ir_arena_new();
  ir_module *m = ir_random_module(a, (ir_random_options){.seed = seed,
                                                         .num_nodes = nodes,
                                                         .differentiable = seed % 3 != 0,
                                                         .networks = seed % 2 == 0});
  pass_options o = {.log = stderr};
  ir_diags *d = diag_new(a);
  CHECK(pass_run_pipeline(m, d, &o), "seed %llu: the pipeline fails", (unsigned long long)seed);
  if (diag_num_errors(d))
    diag_print(d, stdout, false);
  for (size_t i = 0; i < m->funcs.num; i++)
    for (size_t k = 0; k < m->funcs.at[i]->kernels.num; k += 3)
      m->funcs.at[i]->kernels.at[k]->workspace = (int64_t)(100 * (k + 1));
  plan *p = checked_plan(a, m, ir_format(a, "seed %llu", (unsigned long long)seed));
  double ratio = (double)p->arena_bytes / (double)p->bound_bytes;
  if (ratio > *worst)
    *worst = ratio;
  ir_buf one = ir_buf_new(a), two = ir_buf_new(a);
  plan_print_json(p, m, &one);
  plan_print_json(test_plan(m), m, &two);
  CHECK(strcmp(ir_buf_str(&one), ir_buf_str(&two)) == 0, "seed %llu: two plans differ",
        (unsigned long long)seed);
  ir_arena_free(a);
}

int main(void) {
  test_chain();
  test_not_in_place();
  test_two_outputs_one_input();
  test_over();
  test_inputs_are_shared();
  test_workspace();
  test_json();
  test_table();
  double worst = 1;
  for (uint64_t seed = 1; seed <= (uint64_t)test_part(150); seed++)
    test_network(seed, 10 + (int)seed, &worst);
  printf("random networks: worst arena / bound = %.4f; %d failures\n", worst, failures);
  return failures != 0;
}
