// test_plan_facts.c: shares of buffers, the bound of any order, and what clones cost. Random networks
// hold what must be so: shares add up to the bound, and no bound is above it.
#include <stdlib.h>
#include <string.h>

#include "passes/pass.h"
#include "passes/plan_facts.h"
#include "support_frontend.h"
#include "tests/unit/support_plan.h"

static plan_share share_of(ir_arena *a, const ir_module *m, const char *name) {
  const plan *p = test_plan((ir_module *)m);
  const plan_share *of = plan_share_buffers(a, p);
  for (size_t i = 0; i < p->buffers.num; i++)
    if (strcmp(p->buffers.at[i].name, name) == 0)
      return of[i];
  support_check(false, __FILE__, __LINE__, name, "no such buffer");
  return PLAN_NUM_SHARES;
}

static void check_share(ir_arena *a, const ir_module *m, const char *name, plan_share want) {
  plan_share got = share_of(a, m, name);
  CHECK(got == want, "%s: %s, not %s", name,
        got < PLAN_NUM_SHARES ? plan_share_names[got] : "nothing", plan_share_names[want]);
}

// Kernels as written: h is read by the loss and by dw; dw is clipped into dc; d lies between.
static const char step[] =
    "mltc-ir 1\nmodule t\n\n"
    "state w : f32[64,64] role=param\n"
    "state w.m : f32[64,64] role=moment\n"
    "state mean : f32[64,64] role=buffer\n"
    "func step {\n"
    "%x = input : f32[64,64]\n"
    "%w = read @w : f32[64,64]\n"
    "%m = read @w.m : f32[64,64]\n"
    "kernel h matmul {\n %h = matmul %x, %w {ta=false, tb=false} : f32[64,64]\n}\n"
    "kernel e loop {\n %e = exp %h : f32[64,64]\n}\n"
    "kernel loss loop {\n %loss = sum %e {axes=[0,1]} : f32[1,1]\n}\n"
    "%loss1 = reshape %loss : f32[]\n"
    "kernel copied loop {\n %copied = copy %loss1 : f32[]\n}\n"
    "kernel e2 loop again=e {\n %e2 = exp %h : f32[64,64]\n}\n"
    "kernel stat loop {\n %stat = neg %e2 : f32[64,64]\n}\n"
    "kernel d loop {\n %d = neg %h : f32[64,64]\n}\n"
    "kernel dw matmul {\n %dw = matmul %x, %d {ta=true, tb=false} : f32[64,64]\n}\n"
    "kernel dc loop {\n %dc = mul %dw, %dw : f32[64,64]\n}\n"
    "kernel m1 loop {\n %m1 = add %m, %dc : f32[64,64]\n}\n"
    "kernel u matmul {\n %u = matmul %m1, %m1 {ta=false, tb=false} : f32[64,64]\n}\n"
    "kernel w1 loop {\n %w1 = sub %w, %u : f32[64,64]\n}\n"
    "write @w, %w1\n"
    "write @w.m, %m1\n"
    "write @mean, %stat\n"
    "result loss loss = %copied\n}\n";

static ir_module *ordered(ir_arena *a, const char *text) {
  ir_module *m = support_module(a, text);
  ir_diags *d = diag_new(a);
  pass_fuse(m, d); // keeps groups as they are
  pass_order(m, d);
  return m;
}

static void test_shares(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = ordered(a, step);
  check_share(a, m, "w", PLAN_SHARE_PARAMETER);
  check_share(a, m, "w.m", PLAN_SHARE_MOMENT);
  check_share(a, m, "mean", PLAN_SHARE_STATE);
  check_share(a, m, "x[1]", PLAN_SHARE_STAGING);
  check_share(a, m, "h", PLAN_SHARE_ACTIVATION);
  check_share(a, m, "e", PLAN_SHARE_TEMPORARY); // read for statistics, not for gradients
  check_share(a, m, "d", PLAN_SHARE_TEMPORARY);
  check_share(a, m, "dw", PLAN_SHARE_GRADIENT);
  check_share(a, m, "dc", PLAN_SHARE_GRADIENT);
  check_share(a, m, "u", PLAN_SHARE_TEMPORARY); // made of a moment
  check_share(a, m, "copied", PLAN_SHARE_RESULT);
  ir_arena_free(a);
}

// A GAN: gradients of the first loss are ancestors of the second one, by the new parameters.
static void test_two_losses(void) {
  ir_arena *a = ir_arena_new();
  size_t len;
  ir_module *m = support_graph(a, ir_read_text(a, "examples/gan.graph", &len));
  CHECK(pass_run_pipeline(m, diag_new(a), NULL), "the pipeline");
  check_share(a, m, "disc.h", PLAN_SHARE_ACTIVATION);
  check_share(a, m, "gen.h", PLAN_SHARE_ACTIVATION);
  check_share(a, m, "d.disc.linear_2.y.matmul.2", PLAN_SHARE_GRADIENT);
  check_share(a, m, "disc.linear_2.b.mul", PLAN_SHARE_TEMPORARY); // of a moment
  check_share(a, m, "gen.linear_2.b.mul", PLAN_SHARE_TEMPORARY);
  check_share(a, m, "disc.linear.w.adam_step.rate", PLAN_SHARE_TEMPORARY);
  check_share(a, m, "d.point", PLAN_SHARE_TEMPORARY);
  ir_arena_free(a);
}

// Without a result, the loss is what goes to a scalar accumulator; sums of gradients are gradients.
static void test_accumulation(void) {
  static const char text[] = "model mlp(x: f32[32,20], y: i32[32]) {\n  h = relu(linear(x, 64))\n"
                             "  loss cross_entropy(linear(h, 10), y)\n}\n"
                             "data { train = npy(\"x.npy\", \"y.npy\") }\noptim { adamw(1e-3) }\n"
                             "train { steps = 10, accumulate = 4 }\n";
  ir_arena *a = ir_arena_new();
  ir_module *m = support_graph(a, text);
  CHECK(pass_run_pipeline(m, diag_new(a), NULL), "the pipeline");
  plan *p = test_plan(m);
  const plan_share *of = plan_share_buffers(a, p);
  int seen = 0;
  for (size_t i = 0; i < p->buffers.num; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    if (!b->func || strcmp(b->func->name, "accum") != 0)
      continue;
    bool h = strcmp(b->name, "h") == 0, sum = strcmp(b->name, "linear.b.sum") == 0;
    CHECK(!h || of[i] == PLAN_SHARE_ACTIVATION, "h of accum: %s", plan_share_names[of[i]]);
    CHECK(!sum || of[i] == PLAN_SHARE_GRADIENT, "its sum: %s", plan_share_names[of[i]]);
    seen += h + sum;
  }
  CHECK(seen == 2, "%d of h and linear.b.sum have a buffer", seen);
  check_share(a, m, "linear.w.acc", PLAN_SHARE_GRADIENT);
  ir_arena_free(a);
}

static ir_kernel *kernel_named(const ir_module *m, const char *name) {
  const ir_func *f = m->funcs.at[0];
  for (size_t i = 0; i < f->kernels.num; i++)
    if (strcmp(f->kernels.at[i]->name, name) == 0)
      return f->kernels.at[i];
  exit(1);
}

static void test_clones(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = ordered(a, step);
  const ir_kernel *e2 = kernel_named(m, "e2");
  plan_facts x = plan_find_facts(a, test_plan(m), m);
  double again = x.func[0].cloned_time, all = x.func[0].time;
  CHECK(x.func[0].clones == 1 && x.func[0].cloned.flops == 10 * 64 * 64, "exp, once more");
  double alone = cost_seconds(a, e2); // what it makes need not come from memory
  CHECK(again < alone && again > alone / 2, "%g of %g", again, alone);
  CHECK(x.recompute_time == all / (all - again), "%g", x.recompute_time);
  check_share(a, m, "e2", PLAN_SHARE_ACTIVATION);
  kernel_named(m, "e2")->clone_of = NULL;
  x = plan_find_facts(a, test_plan(m), m);
  CHECK(x.recompute_time == 1 && x.func[0].clones == 0, "%g", x.recompute_time);
  check_share(a, m, "e2", PLAN_SHARE_TEMPORARY);
  ir_arena_free(a);
}

// While the widest kernel runs: states, staging, its operand, and its result where it cannot lie over
// that.
static void test_bound_ws(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = ordered(a, step);
  plan *p = test_plan(m);
  int64_t whole = p->state_bytes + p->staging_bytes, tensor = 64 * 64 * 4;
  CHECK(plan_find_facts(a, p, m).bound_ws == whole + tensor + PLAN_ALIGN, "loss: e and itself");
  kernel_named(m, "u")->workspace = 3 * tensor;
  p = test_plan(m);
  CHECK(plan_find_facts(a, p, m).bound_ws == whole + 4 * tensor, "u: itself and its workspace");
  ir_arena_free(a);
}

// IR text may hold states alone.
static void test_no_functions(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_module(a, "mltc-ir 1\nmodule t\n\nstate w : f32[64] role=param\n");
  plan *p = test_plan(m);
  plan_facts x = plan_find_facts(a, p, m);
  CHECK(!x.largest && x.bound_ws == p->state_bytes, "%lld bytes", (long long)x.bound_ws);
  ir_buf out = ir_buf_new(a);
  plan_print(p, m, &out);
  plan_print_json(p, m, &out);
  plan_print_shortfall(p, m, 1, p->arena_bytes, false, &out);
  CHECK(!strstr(ir_buf_str(&out), "at the peak"), "%s", ir_buf_str(&out));
  ir_arena_free(a);
}

static void test_random(uint64_t seed) {
  ir_arena *a = ir_arena_new();
  ir_module *m = ir_random_module(
      a, (ir_random_options){
             .seed = seed, .num_nodes = 30, .differentiable = true, .networks = seed % 2 == 0});
  ir_diags *d = diag_new(a);
  CHECK(pass_run_pipeline(m, d, NULL), "seed %llu", (unsigned long long)seed);
  int64_t least = plan_least_bytes(m);
  if (seed % 3 == 0) {
    ir_set_config(m, (ir_setting){"checkpoint", IR_SET_STR, 0, "all"});
    CHECK(pass_run_memory_pipeline(m, d, NULL), "seed %llu: runs again", (unsigned long long)seed);
  }
  plan *p = test_plan(m);
  plan_facts x = plan_find_facts(a, p, m);
  CHECK(least == x.bound_ws, "seed %llu: %lld bytes without a plan, %lld of it",
        (unsigned long long)seed, (long long)least, (long long)x.bound_ws);
  int64_t sum = 0;
  for (int s = 0; s < PLAN_NUM_SHARES; s++)
    sum += x.shares[s];
  CHECK(sum == p->bound_bytes, "seed %llu: shares of %lld, bound %lld", (unsigned long long)seed,
        (long long)sum, (long long)p->bound_bytes);
  CHECK(x.bound_ws <= p->bound_bytes, "seed %llu: one kernel needs %lld of %lld",
        (unsigned long long)seed, (long long)x.bound_ws, (long long)p->bound_bytes);
  ir_arena_free(a);
}

int main(void) {
  test_shares();
  test_two_losses();
  test_accumulation();
  test_clones();
  test_bound_ws();
  test_no_functions();
  for (uint64_t seed = 1; seed <= 100; seed++)
    test_random(seed);
  return support_finish("plan facts");
}
