// test_cuda_launches.c: kernels that share launches on a GPU. Of random modules, every kernel is in
// one launch, none beside or before one that it has to do with, the plan has the bytes that it has
// without the wishes for them; and the launches, run on the emulator, leave the bits that one
// kernel after the other leaves. Then what joins and what does not.
#include "codegen/cuda_launches.h"
#include "passes/plan.h"
#include "tests/emulator/emulator.h"
#include "tests/unit/support_ir.h"
#include "tests/unit/support_kernels.h"
#include "tests/unit/support_plan.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 40, RUN = 6, ORDERS = 3, ALIGN = 64, MAX_UNITS = 8 };

typedef struct sample {
  const char *what;
  ir_module *m;
  cg_program *p;
  plan *plan;
  cg_sources sources;
  size_t step;
} sample;

static sample make_sample(ir_arena *a, const char *what, ir_module *m) {
  static const cg_origin origin = {.path = "m.graph", .compiler = "test", .options = ""};
  sample s = {.what = what, .m = m};
  ir_diags *d = diag_new(a);
  const cg_target *t = cg_target_find(a, "cuda:sm_80");
  pass_options o = {.families = cg_families(t)};
  CHECK(pass_run_pipeline(m, d, &o), "%s: a valid module was refused", what);
  s.p = cg_program_new(a, m, t);
  s.plan = cg_plan(s.p, NULL, NULL);
  cg_share(s.p);
  s.sources = cg_program_emit(s.p, s.plan, &origin);
  while (strcmp(m->funcs.at[s.step]->name, "step"))
    s.step++;
  return s;
}

// --- what a plan and launches must be ---------------------------------------------------------
static void check_plan(ir_arena *a, const sample *s) {
  ir_buf wrong = ir_buf_new(a);
  CHECK(plan_check(s->plan, s->m, &wrong) == 0, "%s: %s", s->what, ir_buf_str(&wrong));
  int64_t plain = test_plan(s->m)->arena_bytes;
  CHECK(s->plan->arena_bytes <= plain, "%s: %lld bytes instead of %lld", s->what,
        (long long)s->plan->arena_bytes, (long long)plain);
}

typedef struct range {
  int64_t from, to;
} range;

static range place(const sample *s, const ir_func *f, const ir_node *n) {
  int64_t at = plan_offset(s->plan, f, n);
  return (range){at, at + ir_bytes(&n->type)};
}

static bool overlap(range a, range b) {
  return a.from < b.to && b.from < a.to;
}

// `b` reads or writes what `a` writes. (Workspaces lie apart from everything while they live.)
static bool follows(const sample *s, const cg_kernel *a, const cg_kernel *b) {
  bool found = false;
  for (size_t i = 0; i < a->out.num; i++) {
    range x = place(s, a->func, a->out.at[i]);
    for (size_t j = 0; j < b->in.num; j++)
      found |= b->in.at[j]->op != IR_INPUT && overlap(x, place(s, b->func, b->in.at[j]));
    for (size_t j = 0; j < b->out.num; j++)
      found |= overlap(x, place(s, b->func, b->out.at[j]));
  }
  return found;
}

static void check_order(ir_arena *a, const sample *s, size_t func) {
  const cuda_launches *l = &s->p->launches[func];
  size_t num = s->m->funcs.at[func]->kernels.num, *launch = IR_NEW_ARRAY(a, size_t, num + 1);
  for (size_t i = 0; i < l->num; i++)
    for (size_t j = 0; j < l->at[i].calls.num; j++) {
      CHECK(launch[l->at[i].calls.at[j]->k->id] == 0, "%s: a kernel in two launches", s->what);
      launch[l->at[i].calls.at[j]->k->id] = i + 1;
    }
  for (size_t i = 0; i < num; i++) {
    CHECK(launch[i] > 0, "%s: a kernel in no launch", s->what);
    for (size_t j = 0; j < i; j++) {
      const cg_kernel *x = s->p->kernels[func][j], *y = s->p->kernels[func][i];
      CHECK(launch[j] < launch[i] || !(follows(s, x, y) || follows(s, y, x)),
            "%s: %s is not launched before %s", s->what, x->k->name, y->k->name);
    }
  }
}

// --- running ---------------------------------------------------------------------------------
typedef struct runner {
  const sample *s;
  void *handle[MAX_UNITS];
  int num;
  emu_machine *gpu;
  char *arena;
} runner;

static void launch(const runner *r, const char *name, int64_t blocks, const void *parameter,
                   size_t bytes, unsigned order) {
  const emu_entry *e = NULL;
  for (int i = 0; i < r->num && !e; i++)
    e = emu_find(r->handle[i], name);
  emu_options o = {.order = order};
  emu_report report = {0};
  CHECK(e && emu_launch(r->gpu, e, blocks, parameter, bytes, &o, &report), "%s: %s: %s", r->s->what,
        name, report.text);
}

static void run_kernel(const runner *r, const cg_kernel *c, const cg_distinct *d, unsigned order) {
  char *args[64];
  size_t n = 0;
  const int64_t *workspace = cg_workspaces(r->s->p->arena, r->s->plan, c->func);
  for (size_t i = 0; i < c->in.num; i++)
    args[n++] = r->arena + plan_offset(r->s->plan, c->func, c->in.at[i]);
  for (size_t i = 0; i < c->out.num; i++)
    args[n++] = r->arena + plan_offset(r->s->plan, c->func, c->out.at[i]);
  if (c->workspace)
    args[n++] = r->arena + workspace[c->k->id];
  for (size_t i = 0; i < c->numbers.num; i++)
    args[n++] = (char *)(uintptr_t)c->numbers.at[i];
  for (int i = 0; i < c->num_phases; i++)
    launch(r, ir_format(r->s->p->arena, "%s_%d", d->name, i), c->tasks[i], args, n * sizeof *args,
           order);
}

static void run_launch(const runner *r, const cuda_launch *x, unsigned order) {
  if (!x->joint) {
    run_kernel(r, x->calls.at[0], x->only, order);
    return;
  }
  struct {
    char *arena, *batch;
    int64_t first, num;
  } p = {r->arena, r->arena, (int64_t)x->first, (int64_t)x->calls.num};
  launch(r, x->joint->name, x->blocks, &p, sizeof p, order);
}

static void fill_arena(const runner *r, const ir_world *w, const ir_tensor_value *inputs) {
  const sample *s = r->s;
  const ir_func *f = s->m->funcs.at[s->step];
  memset(r->arena, 0xFF, (size_t)s->plan->arena_bytes);
  for (size_t i = 0; i < s->plan->buffers.num; i++)
    if (s->plan->buffers.at[i].kind == PLAN_STATE)
      test_put_tensor(r->arena + s->plan->buffers.at[i].offset,
                      &w->states[s->plan->buffers.at[i].state->id]);
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_INPUT)
      test_put_tensor(r->arena + plan_offset(s->plan, f, f->nodes.at[i]), inputs++);
}

static void compare(const runner *r, const char *want, unsigned order) {
  const plan *p = r->s->plan;
  for (size_t i = 0; i < p->buffers.num; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    bool stays = b->kind == PLAN_STATE ||
                 (b->kind == PLAN_RESULT && b->func == r->s->m->funcs.at[r->s->step]);
    CHECK(!stays || memcmp(want + b->offset, r->arena + b->offset, (size_t)b->bytes) == 0,
          "%s: %s has other bits, in order %u", r->s->what, b->name, order);
  }
}

static char *new_arena(ir_arena *a, const sample *s) {
  char *at = ir_alloc(a, (size_t)s->plan->arena_bytes + 2 * ALIGN);
  return at + ALIGN - (uintptr_t)at % ALIGN;
}

// What has no entry gets one: the reference is one kernel after the other.
static const char *with_entries(ir_arena *a, const char *text) {
  return test_without_unrolling(a, ir_replace(a, text, "\nK_CALLED(", "\nK_KERNEL("));
}

static void run_sample(ir_arena *a, const sample *s, uint64_t seed) {
  runner r = {.s = s, .gpu = emu_new(), .arena = new_arena(a, s)};
  ir_world *w = support_world(a, s->m);
  ir_tensor_value *inputs = ir_random_inputs(a, s->m->funcs.at[s->step], seed + 1000);
  for (size_t i = 0; i < s->sources.num; i++)
    if (s->sources.at[i].kind == CG_SOURCE_CUDA)
      r.handle[r.num++] = emu_build(with_entries(a, s->sources.at[i].text), NULL);
  emu_buffer(r.gpu, r.arena, (size_t)s->plan->arena_bytes, true);
  fill_arena(&r, w, inputs);
  for (size_t i = 0; i < s->m->funcs.at[s->step]->kernels.num; i++)
    run_kernel(&r, s->p->kernels[s->step][i], s->p->shared[s->step][i], 0);
  char *want = ir_alloc(a, (size_t)s->plan->arena_bytes);
  memcpy(want, r.arena, (size_t)s->plan->arena_bytes);
  for (unsigned order = 0; order < ORDERS; order++) {
    fill_arena(&r, w, inputs);
    for (size_t i = 0; i < s->p->launches[s->step].num; i++)
      run_launch(&r, &s->p->launches[s->step].at[i], order);
    compare(&r, want, order);
  }
  emu_free(r.gpu);
}

// --- random modules ----------------------------------------------------------------------------
static size_t test_seed(uint64_t seed, bool run) {
  ir_arena *a = ir_arena_new();
  ir_random_options o = {.seed = seed,
                         .num_nodes = 10 + (int)(seed % 5) * 10,
                         .differentiable = true,
                         .networks = seed % 2};
  sample s = make_sample(a, ir_format(a, "seed %d", (int)seed), ir_random_module(a, o));
  check_plan(a, &s);
  for (size_t i = 0; i < s.m->funcs.num; i++)
    check_order(a, &s, i);
  size_t joined = s.m->funcs.at[s.step]->kernels.num - s.p->launches[s.step].num;
  if (run)
    run_sample(a, &s, seed);
  ir_arena_free(a);
  return joined;
}

// --- what joins --------------------------------------------------------------------------------
static sample sample_of(ir_arena *a, const char *what, const char *states, const char *body) {
  return make_sample(
      a, what,
      support_module(a, ir_format(a, "mltc-ir 1\nmodule m\n%s\nfunc step {\n%s}\n", states, body)));
}

static size_t num_launches(const sample *s) {
  return s->p->launches[s->step].num;
}

// Updates with decay, without, and of a gradient in two parts: one launch of three functions.
static void test_updates(void) {
  ir_arena *a = ir_arena_new();
  sample s = sample_of(a, "updates",
                       "state a : f32[70,30] role=param value=0.5\n"
                       "state b : f32[301] role=param value=0.25\n"
                       "state c : f32[5000] role=param value=2",
                       "%x = input : f32[70,30]\n%y = input : f32[301]\n%z = input : f32[5000]\n"
                       "%a = read @a : f32[70,30]\n%b = read @b : f32[301]\n"
                       "%c = read @c : f32[5000]\n"
                       "%h = const {value=0.9} : f32[70,30]\n%d = mul %a, %h : f32[70,30]\n"
                       "%a.new = sub %d, %x : f32[70,30]\nwrite @a, %a.new\n"
                       "%b.new = sub %b, %y : f32[301]\nwrite @b, %b.new\n"
                       "%g = mul %z, %z : f32[5000]\n%g2 = add %g, %z : f32[5000]\n"
                       "%c.new = sub %c, %g2 : f32[5000]\nwrite @c, %c.new\n");
  CHECK(s.m->funcs.at[s.step]->kernels.num == 3, "not 3 kernels");
  CHECK(num_launches(&s) == 1, "%zu launches", num_launches(&s));
  CHECK(s.p->joints.num == 1 && s.p->joints.at[0]->parts.num == 3, "not one entry of 3 functions");
  for (size_t i = 0; i < s.p->distinct.num; i++) {
    const cg_distinct *d = s.p->distinct.at[i];
    CHECK(d->only_in && d->only_in->parts.at[d->part] == d, "%s has an entry of its own", d->name);
  }
  run_sample(a, &s, 1);
  ir_arena_free(a);
}

// Three chains of two kernels: the first of each meet, and the second. With products before them,
// as the step then has memory for all three values in between; without, it has for one.
static void test_chains(const char *before, size_t others, size_t launches) {
  ir_arena *a = ir_arena_new();
  ir_buf body = ir_buf_new(a);
  ir_buf_puts(&body, before);
  for (int i = 1; i <= 3; i++) {
    ir_buf_printf(&body, "%%x%d = input : f32[%d,64]\n", i, 100 * i);
    ir_buf_printf(&body, "%%s%d = sum %%x%d {axes=[1]} : f32[%d,1]\n", i, i, 100 * i);
    ir_buf_printf(&body, "%%e%d = tanh %%s%d : f32[%d,1]\n", i, i, 100 * i);
    ir_buf_printf(&body, "%%t%d = sum %%e%d {axes=[0]} : f32[1,1]\n", i, i);
    ir_buf_printf(&body, "result output t%d = %%t%d\n", i, i);
  }
  sample s = sample_of(a, "chains", "", ir_buf_str(&body));
  CHECK(s.m->funcs.at[s.step]->kernels.num == 6 + others, "%zu kernels",
        s.m->funcs.at[s.step]->kernels.num);
  CHECK(num_launches(&s) == launches + others, "%zu launches", num_launches(&s));
  check_plan(a, &s);
  run_sample(a, &s, 2);
  ir_arena_free(a);
}

// Of kernels that read 20 tensors at a time, a few blocks join others; many, which would take
// registers from all of them, do not.
static void test_registers(int64_t elements, size_t launches) {
  ir_arena *a = ir_arena_new();
  ir_buf b = ir_buf_new(a);
  const char *type = ir_format(a, "f32[%lld]", (long long)elements);
  for (int i = 0; i < 20; i++)
    ir_buf_printf(&b, "%%x%d = input : %s\n", i, type);
  ir_buf_printf(&b, "%%y0 = mul %%x0, %%x1 : %s\n", type);
  for (int i = 2; i < 20; i++)
    ir_buf_printf(&b, "%%y%d = mul %%y%d, %%x%d : %s\n", i - 1, i - 2, i, type);
  ir_buf_printf(&b, "result output all = %%y18\n%%z = input : f32[77]\n%%n = neg %%z : f32[77]\n"
                    "result output few = %%n\n");
  sample s = sample_of(a, "registers", "", ir_buf_str(&b));
  CHECK(num_launches(&s) == launches, "%lld elements: %zu launches, not %zu", (long long)elements,
        num_launches(&s), launches);
  ir_arena_free(a);
}

int main(int argc, char **argv) {
  // By hand: test_cuda_launches FIRST COUNT
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
  int total = argc > 2 ? atoi(argv[2]) : SAMPLES;
  size_t joined = 0;
  for (int i = 0; i < total; i++)
    joined += test_seed(first + (uint64_t)i, argc > 1 || i < RUN);
  CHECK(argc > 1 || joined >= SAMPLES, "%zu of all kernels share launches", joined);
  test_updates();
  test_chains("", 0, 4);
  test_chains("%a = input : f32[64,64]\n%b = matmul %a, %a {ta=false, tb=false} : f32[64,64]\n"
              "%c = matmul %b, %a {ta=false, tb=false} : f32[64,64]\nresult output c = %c\n",
              2, 2);
  test_registers(3000, 1);
  test_registers(1000000, 2);
  return support_finish("test_cuda_launches");
}
