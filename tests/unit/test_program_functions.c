// test_program_functions.c: the generated functions: launches, splits and barriers.
//
// Each program runs as a team of fibers that take turns at barriers only: between two barriers one
// thread does all of its work before the next one begins, in ascending and in descending order. A
// barrier that is missing, or tasks that nobody or two threads take, give other numbers than
// one thread does. Those must also be the oracle's.
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "codegen/program.h"
#include "passes/plan.h"
#include "runtime/claims.h"
#include "tests/unit/support_ir.h"
#include "tests/unit/support_kernels.h"
#include "tests/unit/support_plan.h"

enum { SAMPLES = 14, MAX_THREADS = 8, ALIGN = 64 };
static const size_t STACK_BYTES = 4 << 20;
static const double TOLERANCE = 2e-4; // relative to the largest element of a tensor

// --- a team of fibers -------------------------------------------------------------------------
typedef struct team { // what generated text knows as mlrt_team (TEAM_TEXT)
  int threads;
  void (*yield)(void);
  mlrt_claim claims[MAX_THREADS];
} team;
typedef void (*step_fn)(char *arena, team *t, int tid);

static const char TEAM_TEXT[] =
    "struct mlrt_team { int threads; void (*yield)(void); mlrt_claim claims[8]; };\n"
    "mlrt_claim *mlrt_team_claim(mlrt_team *t, int tid) { return &t->claims[tid]; }\n"
    "int mlrt_team_size(const mlrt_team *t) { return t->threads; }\n"
    "void mlrt_barrier(mlrt_team *t, int tid) { t->yield(); }\n"
    "mlrt_watch *mlrt_team_watch(const mlrt_team *t, int tid) { return 0; }\n"
    "void mlrt_watch_begin(mlrt_watch *w, mlrt_phase_fn fast) {}\n"
    "void mlrt_watch_end(mlrt_watch *w, int calls) {}\n"
    "void test_step(char *arena, mlrt_team *t, int tid) { run_step(arena, 0, t, tid); }\n";

static ucontext_t scheduler, fibers[MAX_THREADS]; // makecontext passes no pointers
static int running;
static bool finished[MAX_THREADS];
static step_fn the_step;
static team the_team;
static char *the_arena;

static void yield(void) {
  swapcontext(&fibers[running], &scheduler);
}

static void fiber_main(void) {
  int tid = running;
  the_step(the_arena, &the_team, tid);
  finished[tid] = true;
}

// Every thread up to its next barrier; the number of those that are at their end.
static int one_turn(int threads, bool descending) {
  int ended = 0;
  for (int i = 0; i < threads; i++) {
    running = descending ? threads - 1 - i : i;
    swapcontext(&scheduler, &fibers[running]);
    ended += finished[running];
  }
  return ended;
}

static void run_team(ir_arena *a, step_fn step, char *arena, int threads, bool descending) {
  the_step = step;
  the_team = (team){.threads = threads, .yield = yield};
  the_arena = arena;
  for (int i = 0; i < threads; i++) {
    getcontext(&fibers[i]);
    fibers[i].uc_stack.ss_sp = ir_alloc(a, STACK_BYTES);
    fibers[i].uc_stack.ss_size = STACK_BYTES;
    fibers[i].uc_link = &scheduler;
    finished[i] = false;
    makecontext(&fibers[i], fiber_main, 0);
  }
  for (int ended = 0; ended == 0;) {
    ended = one_turn(threads, descending);
    CHECK(ended == 0 || ended == threads, "%d of %d threads are at their end", ended, threads);
  }
}

// --- programs ---------------------------------------------------------------------------------
typedef struct sample {
  const char *what;
  ir_module *before, *after; // the passes
  cg_program *program;
  plan *plan;
  const ir_func *step;
  const char *text; // of the functions
} sample;

static sample make_sample(ir_arena *a, const char *what, ir_module *m, const cg_target *t) {
  sample s = {.what = what, .before = ir_clone(m), .after = m};
  ir_diags *d = diag_new(a);
  pass_autodiff(s.before, d);
  pass_run_pipeline(s.after, d, NULL);
  CHECK(diag_num_errors(d) == 0, "%s: a valid module was refused", what);
  s.program = cg_program_new(a, s.after, t);
  cg_share(s.program);
  s.plan = test_plan(s.after);
  s.step = ir_find_func(s.after, "step");
  ir_buf b = ir_buf_new(a);
  cg_emit_functions(s.program, s.plan, &b);
  s.text = ir_buf_str(&b);
  return s;
}

static sample sample_of(ir_arena *a, const char *what, const cg_target *t, const char *text) {
  return make_sample(a, what, support_module(a, text), t);
}

// A file behind its last header of the runtime; those it has from the test.
static const char *text_behind(ir_arena *a, const char *file, const char *header) {
  size_t len = 0;
  const char *include = ir_format(a, "#include \"%s\"", header),
             *text = ir_read_file(a, file, &len), *at = text ? strstr(text, include) : NULL;
  BUG_IF(!at, "no %s with %s", file, include);
  return at + strlen(include);
}

static void put_header(ir_buf *b, const char *file) {
  char path[PATH_MAX];
  CHECK(realpath(file, path) != NULL, "not run in the root of the sources");
  ir_buf_printf(b, "#include \"%s\"\n", path);
}

// What the program calls.
static void put_runtime(ir_buf *b) {
  put_header(b, "runtime/mlrt.h");
  put_header(b, "runtime/claims.h");
  ir_buf_puts(b, text_behind(b->arena, "runtime/claims.c", "runtime/claims.h"));
  ir_buf_puts(b, text_behind(b->arena, "runtime/calls.c", "runtime/mlrt.h"));
}

static step_fn load_step(ir_arena *a, const sample *s, void **lib) {
  static const char INCLUDE[] = "#include \"mlrt.h\"";
  ir_buf b = ir_buf_new(a);
  ir_buf_puts(&b, cg_cpu_prelude(a, s->program->target, true));
  for (size_t i = 0; i < s->program->distinct.num; i++)
    ir_buf_puts(&b, s->program->distinct.at[i]->text);
  const char *rest = strstr(s->text, INCLUDE);
  CHECK(rest != NULL, "no %s", INCLUDE);
  put_runtime(&b);
  ir_buf_printf(&b, "%s%s", rest + strlen(INCLUDE), TEAM_TEXT);
  *lib = test_load(a, ir_buf_str(&b), s->program->target, 0); // as program.c is compiled
  step_fn step = NULL;
  void *symbol = *lib ? dlsym(*lib, "test_step") : NULL;
  memcpy(&step, &symbol, sizeof step);
  return step;
}

// States as `w` has them and inputs as given, everything else NaN patterns.
static char *new_arena(ir_arena *a, const sample *s, const ir_world *w,
                       const ir_tensor_value *inputs) {
  char *arena = ir_alloc(a, (size_t)s->plan->arena_bytes + 2 * ALIGN);
  arena += ALIGN - (uintptr_t)arena % ALIGN;
  memset(arena, 0xFF, (size_t)s->plan->arena_bytes);
  for (size_t i = 0; i < s->plan->buffers.num; i++)
    if (s->plan->buffers.at[i].kind == PLAN_STATE)
      test_put_tensor(arena + s->plan->buffers.at[i].offset,
                      &w->states[s->plan->buffers.at[i].state->id]);
  for (size_t i = 0; i < s->step->nodes.num; i++)
    if (s->step->nodes.at[i]->op == IR_INPUT)
      test_put_tensor(arena + plan_offset(s->plan, s->step, s->step->nodes.at[i]), inputs++);
  return arena;
}

// --- comparison -------------------------------------------------------------------------------
static void compare_bits(const sample *s, const char *one, const char *other, const char *how) {
  const plan *p = s->plan;
  for (size_t i = 0; i < p->buffers.num; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    if (b->kind == PLAN_STATE || (b->kind == PLAN_RESULT && b->func == s->step))
      CHECK(memcmp(one + b->offset, other + b->offset, (size_t)b->bytes) == 0,
            "%s: %s is not what one thread computes with %s", s->what, b->name, how);
  }
}

static void compare_values(const sample *s, const char *arena, const ir_world *w,
                           const ir_tensor_value *values) {
  const ir_func *f0 = ir_find_func(s->before, "step");
  for (size_t i = 0; i < s->step->results.num; i++) {
    const ir_result *r = &s->step->results.at[i];
    double d = test_distance(arena + plan_offset(s->plan, s->step, r->node),
                             &values[f0->results.at[i].node->id]);
    CHECK(d <= TOLERANCE, "%s: %s differs from the oracle by %g", s->what, r->name, d);
  }
  for (size_t i = 0; i < s->plan->buffers.num; i++) {
    const plan_buffer *b = &s->plan->buffers.at[i];
    if (b->kind != PLAN_STATE)
      continue;
    double d = test_distance(arena + b->offset, &w->states[b->state->id]);
    CHECK(d <= TOLERANCE, "%s: %s differs from the oracle by %g", s->what, b->state->name, d);
  }
}

static void test_sample(ir_arena *a, const sample *s, uint64_t seed) {
  const ir_func *f0 = ir_find_func(s->before, "step");
  ir_world *w = support_world(a, s->before);
  ir_tensor_value *inputs = ir_random_inputs(a, f0, seed + 1000);
  void *lib = NULL;
  step_fn step = load_step(a, s, &lib);
  if (!step)
    return;
  char *one = new_arena(a, s, w, inputs);
  run_team(a, step, one, 1, false);
  static const int threads[] = {2, 3, 4, 5, MAX_THREADS};
  for (int i = 0; i < 5; i++) {
    char *arena = new_arena(a, s, w, inputs);
    run_team(a, step, arena, threads[i], i % 2 == 0);
    compare_bits(s, one, arena, ir_format(a, "%d threads", threads[i]));
  }
  ir_tensor_value *values = ir_interp(w, f0, inputs);
  compare_values(s, one, w, values);
  dlclose(lib);
}

static void test_random_module(uint64_t seed, const cg_target *t) {
  ir_arena *a = ir_arena_new();
  ir_random_options o = {.seed = seed,
                         .num_nodes = 10 + (int)(seed % 5) * 10,
                         .differentiable = true,
                         .networks = seed % 2};
  sample s = make_sample(a, ir_format(a, "seed %d", (int)seed), ir_random_module(a, o), t);
  test_sample(a, &s, seed);
  ir_arena_free(a);
}

// --- one launch for all parameters --------------------------------------------------------------
static const int SIZES[] = {7, 16, 100, 1000, 4096, 40000};
enum { NUM_SIZES = sizeof SIZES / sizeof *SIZES };

// init draws each parameter from its own stream, and scales it by a number of its own; step is p = p - 0.1 (p - x) for all of them.
static ir_module *many_parameters(ir_arena *a) {
  ir_buf states = ir_buf_new(a), init = ir_buf_new(a), step = ir_buf_new(a);
  for (int i = 0; i < NUM_SIZES; i++) {
    const char *n = ir_format(a, "layer.%d.w%c", i, 'a' + i);
    int size = SIZES[i];
    ir_buf_printf(&states, "state %s : f32[%d] role=param\n", n, size);
    ir_buf_printf(&init,
                  "%%%s.draw = uniform %%seed, %%none {stream=%d} : f32[%d]\n"
                  "%%%s.scale = const {value=0.%d} : f32[%d]\n"
                  "%%%s.first = mul %%%s.draw, %%%s.scale : f32[%d]\nwrite @%s, %%%s.first\n",
                  n, i + 9, size, n, i + 1, size, n, n, n, size, n, n);
    ir_buf_printf(&step,
                  "%%%s = read @%s : f32[%d]\n%%%s.rate = const {value=0.1} : f32[%d]\n"
                  "%%%s.half = mul %%%s, %%%s : f32[%d]\n%%%s.part = mul %%%s.half, %%%s.rate : "
                  "f32[%d]\n%%%s.new = sub %%%s, %%%s.part : f32[%d]\nwrite @%s, %%%s.new\n",
                  n, n, size, n, size, n, n, n, size, n, n, n, size, n, n, n, size, n, n);
  }
  return support_module(
      a, ir_format(a,
                   "mltc-ir 1\nmodule many\nstate seed : i64[] role=seed value=3\n%s\nfunc init {\n"
                   "%%seed = read @seed : i64[]\n%%none = const {value=0} : i64[]\n%s}\n"
                   "func step {\n%s}\n",
                   ir_buf_str(&states), ir_buf_str(&init), ir_buf_str(&step)));
}

static int count(const char *text, const char *what) {
  int n = 0;
  for (const char *s = text; (s = strstr(s, what)); s++)
    n++;
  return n;
}

static const char *step_of(const sample *s) {
  const char *at = strstr(s->text, "static void run_step(");
  BUG_IF(!at, "no step in\n%s", s->text);
  return at;
}

static void test_one_launch(const cg_target *t) {
  ir_arena *a = ir_arena_new();
  sample s = make_sample(a, "many parameters", many_parameters(a), t);
  CHECK(s.program->distinct.num == 2, "%zu functions for one update and one draw",
        s.program->distinct.num);
  const char *step = step_of(&s);
  CHECK(count(step, "    mlrt_run_rows_shared(") == 1, "not one launch:\n%s", step);
  CHECK(count(step, "    mlrt_run(") == 0, "calls beside the launch:\n%s", step);
  CHECK(count(step, "  mlrt_wait(") == 0, "barriers without need:\n%s", step);
  for (int i = 0; i < NUM_SIZES; i++)
    CHECK(count(step, ir_format(a, "// layer.%d.w%c.new\n", i, 'a' + i)) == 1,
          "parameter %d has no row:\n%s", i, step);
  test_sample(a, &s, 1);
  ir_arena_free(a);
}

// Behind the workspace, in the arguments of a product of two phases, stands where the slice begins that it reads.
static void test_workspace_and_begin(const cg_target *t) {
  ir_arena *a = ir_arena_new();
  sample s = sample_of(
      a, "slice", t,
      "mltc-ir 1\nmodule slice\nstate v : f32[128,384] role=param value=0.5\n"
      "func step {\n%all = input : f32[2,768,384]\n%v = read @v : f32[128,384]\n"
      "%second = slice %all {start=[1,0,0], stop=[2,768,384], step=[1,1,1]} : f32[1,768,384]\n"
      "%p = reshape %second : f32[768,384]\n"
      "%y = matmul %p, %v {ta=false, tb=true} : f32[768,128]\nresult output y = %y\n}\n");
  const char *step = step_of(&s);
  CHECK(count(step, "mlrt_run(me, matmul_y_1,") == 1, "not two phases:\n%s", step);
  CHECK(count(step, "(char *)294912ll}") == 1, "the slice's begin is not the last argument:\n%s",
        step);
  test_sample(a, &s, 1);
  ir_arena_free(a);
}

// IR text may have functions of any name, also such as C does not take, or that come out alike.
static void test_names_of_functions(const cg_target *t) {
  static const char BODY[] = "%w = read @w : f32[8]\n%n = mul %w, %w : f32[8]\nwrite @w, %n\n";
  static const char *const names[] = {"my.func", "my_func", "step", "step_part_0", "0"};
  ir_arena *a = ir_arena_new();
  ir_buf text = ir_buf_new(a);
  ir_buf_puts(&text, "mltc-ir 1\nmodule many\nstate w : f32[8] role=param value=0.5\n");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    ir_buf_printf(&text, "func %s {\n%s}\n", names[i], BODY);
  sample s = make_sample(a, "names of functions", support_module(a, ir_buf_str(&text)), t);
  test_sample(a, &s, 1); // compiles them all
  ir_arena_free(a);
}

// `num` updates of three vectors each, as optimisers make them: independent calls of one function.
static ir_module *updates(ir_arena *a, int num) {
  static const char *const names[] = {"w", "m", "v"};
  ir_buf states = ir_buf_new(a), step = ir_buf_new(a);
  for (int i = 0; i < num; i++) {
    for (int k = 0; k < 3; k++) {
      const char *s = ir_format(a, "%s%d", names[k], i);
      ir_buf_printf(&states, "state %s : f32[8] role=param value=0.5\n", s);
      ir_buf_printf(&step, "%%%s = read @%s : f32[8]\n", s, s);
    }
    ir_buf_printf(&step, "%%mn%d = mul %%w%d, %%m%d : f32[8]\nwrite @m%d, %%mn%d\n", i, i, i, i, i);
    ir_buf_printf(&step, "%%vn%d = mul %%mn%d, %%v%d : f32[8]\nwrite @v%d, %%vn%d\n", i, i, i, i,
                  i);
    ir_buf_printf(&step, "%%wn%d = sub %%w%d, %%vn%d : f32[8]\nwrite @w%d, %%wn%d\n", i, i, i, i,
                  i);
  }
  return support_module(a, ir_format(a, "mltc-ir 1\nmodule many\n%sfunc step {\n%s}\n",
                                     ir_buf_str(&states), ir_buf_str(&step)));
}

// Deep networks have thousands of kernels of one text: only the first one's is kept.
static void test_equal_texts_take_no_memory(const cg_target *t) {
  enum { NUM = 300, MOST_BYTES = 200 }; // of a kernel, all lists of them included
  ir_arena *a = ir_arena_new(), *own = ir_arena_new();
  ir_module *m = updates(a, NUM);
  pass_run_pipeline(m, diag_new(a), NULL);
  cg_program *p = cg_program_new(own, m, t);
  cg_program_schedule(p);
  size_t before = ir_arena_bytes(own);
  cg_share(p);
  size_t bytes = ir_arena_bytes(own) - before;
  CHECK(p->distinct.num == 1, "%zu functions for one update", p->distinct.num);
  CHECK(bytes < NUM * MOST_BYTES, "%zu bytes for %d kernels of one text", bytes, NUM);
  ir_arena_free(own);
  ir_arena_free(a);
}

// One window of all calls. Comparing each with all others took a second; now it is some hundredths,
// with room for slow machines.
static void test_many_calls(const cg_target *t) {
  enum { NUM = 8000 };
  ir_arena *a = ir_arena_new();
  ir_module *m = updates(a, NUM);
  pass_run_pipeline(m, diag_new(a), NULL);
  cg_program *p = cg_program_new(a, m, t);
  cg_share(p);
  plan *plan = test_plan(m);
  ir_buf text = ir_buf_new(a);
  clock_t begin = clock();
  cg_emit_functions(p, plan, &text);
  double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
  printf("%d independent calls in %.3f s\n", NUM, seconds);
  CHECK(seconds < 0.3, "%d independent calls take %.1f s", NUM, seconds);
  ir_arena_free(a);
}

// x times its transpose, twice: equal functions, but the second reads what the first has written.
static void test_dependent_calls(const cg_target *t) {
  ir_arena *a = ir_arena_new();
  sample s = sample_of(a, "chain", t,
                       "mltc-ir 1\nmodule chain\nstate w : f32[30,30] role=param "
                       "value=0.5\nfunc step {\n%x = input : f32[30,30]\n"
                       "%w = read @w : f32[30,30]\n%s = add %x, %w : f32[30,30]\n"
                       "%t = transpose %s {perm=[1,0]} : f32[30,30]\n"
                       "%a = mul %s, %t : f32[30,30]\n"
                       "%ta = transpose %a {perm=[1,0]} : f32[30,30]\n"
                       "%b = sub %a, %ta : f32[30,30]\n"
                       "%tb = transpose %b {perm=[1,0]} : f32[30,30]\n"
                       "%c = sub %b, %tb : f32[30,30]\nwrite @w, %c\n"
                       "result output b = %b\n}\n");
  const char *step = step_of(&s);
  size_t n = s.step->kernels.num;
  CHECK(s.program->distinct.num < n, "no two of %zu kernels are one function", n);
  int barriers = count(step, "  mlrt_wait(") + count(step, "  mlrt_wait_if(");
  CHECK(barriers == (int)n - 1, "not %zu barriers:\n%s", n - 1, step);
  CHECK(count(step, "    mlrt_run_rows") == 0, "dependent calls in one launch:\n%s", step);
  test_sample(a, &s, 1);
  ir_arena_free(a);
}

// h = x / sum x in 64 tasks of 12 rows, y = h v in 8 of 96: each thread of 2, 4 or 8 goes on with
// the rows of h that it has computed; one of 3 does not. The sum over rows afterwards needs them
// all.
static void test_rows_stay_apart(const cg_target *t) {
  ir_arena *a = ir_arena_new();
  sample s = sample_of(
      a, "rows", t,
      "mltc-ir 1\nmodule rows\nstate v : f32[64,64] role=param value=0.25\n"
      "func step {\n%x = input : f32[768,64]\n%v = read @v : f32[64,64]\n"
      "%r = sum %x {axes=[1]} : f32[768,1]\n%rb = broadcast %r : f32[768,64]\n"
      "%h = div %x, %rb : f32[768,64]\n"
      "%y = matmul %h, %v {ta=false, tb=false} : f32[768,64]\n"
      "%s = sum %y {axes=[0]} : f32[1,64]\nresult output s = %s\nresult output y = %y\n}\n");
  const char *step = step_of(&s), *first = strstr(step, "mlrt_wait_if(me, ");
  CHECK(s.step->kernels.num == 3, "%zu kernels", s.step->kernels.num);
  CHECK(count(step, "mlrt_wait_if(") == 1, "not one wait for some teams only:\n%s", step);
  CHECK(count(step, "  mlrt_wait(") == 1, "not one barrier:\n%s", step);
  unsigned teams = first ? (unsigned)strtoul(first + strlen("mlrt_wait_if(me, "), NULL, 16) : 0;
  for (int threads = 2; threads <= 8; threads *= 2)
    CHECK(!(teams >> threads & 1), "%d threads wait:\n%s", threads, step);
  CHECK(teams >> 3 & 1, "3 threads do not wait:\n%s", step);
  CHECK(teams >> 31, "large teams do not wait:\n%s", step);
  CHECK(count(step, "mlrt_run_shared(me, matmul_y_") == 0 &&
            count(step, "mlrt_run_shared(me, loop_h_") == 0,
        "rows that threads go on with are anybody's:\n%s", step);
  test_sample(a, &s, 1);
  ir_arena_free(a);
}

// y's columns need all of x, z all of y: who does which tasks is open in both, but not in the small one before.
static void test_shared_tasks(const cg_target *t) {
  ir_arena *a = ir_arena_new();
  sample s = sample_of(a, "shared tasks", t,
                       "mltc-ir 1\nmodule shared\nstate v : f32[40,256] role=param value=0.25\n"
                       "func step {\n%x = input : f32[40,256]\n%v = read @v : f32[40,256]\n"
                       "%u = add %x, %v : f32[40,256]\n"
                       "%y = matmul %u, %x {ta=true, tb=false} : f32[256,256]\n"
                       "%z = matmul %y, %y {ta=true, tb=false} : f32[256,256]\n"
                       "result output z = %z\n}\n");
  const char *step = step_of(&s);
  CHECK(count(step, "mlrt_run_shared(me, matmul_z_") >= 1, "z's tasks are not shared:\n%s", step);
  CHECK(count(step, "mlrt_run_shared(me, matmul_y_") >= 1, "y's tasks are not shared:\n%s", step);
  CHECK(count(step, "mlrt_run(me, loop_u_0,") == 1, "u's tasks are shared:\n%s", step);
  test_sample(a, &s, 1);
  ir_arena_free(a);
}

int main(int argc, char **argv) {
  // By hand: test_program_functions FIRST COUNT
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
  int total = argc > 2 ? atoi(argv[2]) : SAMPLES;
  const cg_target *t = test_targets();
  for (int i = 0; i < total; i++)
    test_random_module(first + (uint64_t)i, t);
  test_rows_stay_apart(t);
  test_shared_tasks(t);
  test_one_launch(t);
  test_equal_texts_take_no_memory(t);
  test_workspace_and_begin(t);
  test_names_of_functions(t);
  test_many_calls(t);
  test_dependent_calls(t);
  return support_finish("test_program_functions");
}
