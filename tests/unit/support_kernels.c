// support_kernels.c: see support_kernels.h.
#include "tests/unit/support_kernels.h"
#include "codegen/program.h"
#include "ir/narrow.h"
#include "tests/random/random_graph.h"
#include "ir/row_update.h"
#include "passes/plan.h"
#include "tests/emulator/emulator.h"
#include "tests/support_campaign.h"
#include "tests/unit/support_matmul.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GUARD = 64 };

const cg_target *test_targets(void) {
  static cg_target list[4];
  int n = 0;
#if defined(__x86_64__)
  bool dots = __builtin_cpu_supports("avx512bf16");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
    list[n++] = (cg_target){.name = "cpu:x86-64-v4",
                            .march = dots ? "cooperlake" : "x86-64-v4", // v4 and AVX512-BF16
                            .vector_bytes = 64,
                            .vector_registers = 32,
                            .fma = true,
                            .dots_bf16 = dots,
                            .l1_bytes = 32768,
                            .l2_bytes = 1 << 20};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    list[n++] = (cg_target){.name = "cpu:x86-64-v3",
                            .march = "x86-64-v3",
                            .vector_bytes = 32,
                            .vector_registers = 16,
                            .fma = true,
                            .l1_bytes = 32768,
                            .l2_bytes = 1 << 19};
  list[n++] = (cg_target){.name = "cpu:x86-64",
                          .march = "x86-64",
                          .vector_bytes = 16,
                          .vector_registers = 16,
                          .l1_bytes = 32768,
                          .l2_bytes = 1 << 19};
#else
  list[n++] = (cg_target){.name = "cpu:native",
                          .vector_bytes = 16,
                          .vector_registers = 32,
                          .fma = true,
                          .l1_bytes = 32768,
                          .l2_bytes = 1 << 19};
#endif
  list[n] = (cg_target){0};
  return list;
}

int test_level(const cg_target *t) {
  if (strcmp(t->name, test_targets()[0].name) == 0)
    return 2;
  return getenv("MLTC_SLOW") ? 1 : 0;
}

// --- compiling -------------------------------------------------------------------------------
static void *load(ir_arena *a, const char *text, const cg_target *target, const char *flags) {
  char dir[] = "/tmp/mltc-test-XXXXXX";
  if (!mkdtemp(dir)) {
    test_fail("no temporary folder");
    return NULL;
  }
  const char *c = ir_format(a, "%s/k.c", dir), *so = ir_format(a, "%s/k.so", dir);
  ir_write_file(c, text, strlen(text));
  const char *march = target->march ? ir_format(a, "-march=%s", target->march) : "";
  const char *command =
      ir_format(a,
                "clang -std=gnu11 %s %s %s -fno-math-errno -fno-trapping-math -w "
                "-fPIC -shared -o %s %s -lm",
                flags, march, target->vector_bytes == 64 ? "-mprefer-vector-width=512" : "", so, c);
  bool ok = system(command) == 0;
  void *lib = ok ? dlopen(so, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!lib) {
    test_fail("generated code does not compile: see %s (%s)", c, command);
    return NULL;
  }
  unlink(c);
  unlink(so);
  rmdir(dir);
  return lib;
}

void *test_load_optimised(ir_arena *a, const char *text, const cg_target *target) {
  return load(a, text, target, ir_format(a, "%s -ffp-contract=fast", cg_effort(2)));
}

// With sanitizers it is mltc that is looked at, and optimising kernels would take nearly all the time.
// Without optimisation nothing is contracted (codegen/cpu_prelude.h).
void *test_load(ir_arena *a, const char *text, const cg_target *target, int level) {
  if (TEST_SANITIZED)
    level = 0;
  return load(a, text, target,
              ir_format(a, "%s -ffp-contract=%s", cg_effort(level), level ? "fast" : "off"));
}

const char *test_without_unrolling(ir_arena *a, const char *text) {
  static const char hint[] = "#pragma unroll";
  ir_buf out = ir_buf_new(a);
  for (const char *at; (at = strstr(text, hint)); text = at + strcspn(at, "\n"))
    ir_buf_write(&out, text, (size_t)(at - text));
  ir_buf_puts(&out, text);
  return ir_buf_str(&out);
}

// --- memory ----------------------------------------------------------------------------------
#define EACH_DTYPE(ROW)                                                                            \
  ROW(BOOL, uint8_t)                                                                               \
  ROW(U8, uint8_t)                                                                                 \
  ROW(I8, int8_t)                                                                                  \
  ROW(U16, uint16_t)                                                                               \
  ROW(I32, int32_t) ROW(U32, uint32_t) ROW(I64, int64_t) ROW(F32, float) ROW(F64, double)

void test_put(char *p, ir_dtype t, int64_t i, double v) {
  if (ir_is_narrow(t))
    ((uint16_t *)(void *)p)[i] = ir_narrow_to_bits(t, v);
#define PUT(NAME, ctype)                                                                           \
  if (t == IR_##NAME)                                                                              \
    ((ctype *)(void *)p)[i] = (ctype)v;
  EACH_DTYPE(PUT)
}

double test_get(const char *p, ir_dtype t, int64_t i) {
  if (ir_is_narrow(t))
    return ir_narrow_of_bits(t, ((const uint16_t *)(const void *)p)[i]);
#define GET(NAME, ctype)                                                                           \
  if (t == IR_##NAME)                                                                              \
    return (double)((const ctype *)(const void *)p)[i];
  EACH_DTYPE(GET)
  return NAN;
}

void test_put_tensor(char *p, const ir_tensor_value *v) {
  for (int64_t i = 0; i < ir_elements(&v->type); i++)
    test_put(p, v->type.dtype, i, v->at[i]);
}

double test_distance(const char *p, const ir_tensor_value *v) {
  double scale = 1e-3, worst = 0;
  for (int64_t i = 0; i < ir_elements(&v->type); i++)
    if (isfinite(v->at[i]))
      scale = fmax(scale, fabs(v->at[i]));
  for (int64_t i = 0; i < ir_elements(&v->type); i++) {
    double x = test_get(p, v->type.dtype, i), y = v->at[i];
    if ((isnan(x) && isnan(y)) || x == y)
      continue;
    double d = fabs(x - y) / scale;
    worst = isnan(d) ? INFINITY : fmax(worst, d);
  }
  return worst;
}

// --- one kernel ------------------------------------------------------------------------------
typedef void (*kernel_fn)(int64_t begin, int64_t end, char *const *args);

typedef struct mapped {
  char *at;
  size_t bytes;
} mapped;
typedef IR_VEC(mapped) mapped_list;

typedef struct kernel_test {
  ir_arena *a;
  mapped_list *buffers; // of this kernel, on a CPU
  const char *what;
  cg_kernel *g;
  kernel_fn fn[CG_MAX_PHASES];
  emu_machine *gpu; // NULL: a CPU
  const emu_entry *entry[CG_MAX_PHASES];
  const ir_tensor_value *values;
  double tolerance;
} kernel_test;

// A buffer of a CPU ends where memory does: kernels can neither write nor read beyond it. One of a GPU, of which the
// emulator watches all reads, ends right before its guard, which nobody may write to.
static char *new_buffer(const kernel_test *t, const ir_type *type) {
  size_t bytes = (size_t)ir_bytes(type);
  char *p;
  if (t->gpu) {
    p = ir_alloc(t->a, bytes + 3 * GUARD);
    p += GUARD - (uintptr_t)p % GUARD;
    memset(p, 0xA5, bytes + GUARD);
  } else {
    p = test_guarded(bytes);
    memset(p, 0xA5, bytes);
    mapped x = {p, bytes};
    IR_PUSH(t->a, *t->buffers, x);
  }
  return p;
}

static void free_buffers(const kernel_test *t) {
  for (size_t i = 0; i < t->buffers->num; i++)
    test_unguard(t->buffers->at[i].at, t->buffers->at[i].bytes);
  t->buffers->num = 0;
}

static bool guard_is_whole(const kernel_test *t, const char *p, const ir_type *type) {
  for (int i = 0; t->gpu && i < GUARD; i++)
    if (p[ir_bytes(type) + i] != (char)0xA5)
      return false;
  return true;
}

static char *oracle_buffer(const kernel_test *t, const ir_tensor_value *v) {
  char *p = new_buffer(t, &v->type);
  test_put_tensor(p, v);
  return p;
}

static size_t num_args(const cg_kernel *g) {
  return g->in.num + g->out.num + (g->workspace > 0) + g->numbers.num;
}

// Blocks and threads in an order of their own for each `split`; every access is watched.
static void run_blocks(const kernel_test *t, char *const *args, int split) {
  const cg_kernel *g = t->g;
  size_t width = num_args(g);
  emu_forget_all(t->gpu);
  if (g->workspace)
    emu_buffer(t->gpu, args[g->in.num + g->out.num], (size_t)g->workspace, true);
  for (size_t i = 0; i < g->in.num + g->out.num; i++) {
    const ir_node *n = i < g->in.num ? g->in.at[i] : g->out.at[i - g->in.num];
    emu_buffer(t->gpu, args[i], (size_t)ir_bytes(&n->type), i >= g->in.num);
  }
  for (int p = 0; p < g->num_phases; p++) {
    emu_options o = {.order = (unsigned)split};
    emu_report r;
    if (!emu_launch(t->gpu, t->entry[p], g->tasks[p], args, width * sizeof *args, &o, &r))
      test_fail("%s: kernel %s: %s", t->what, g->k->name, r.text);
  }
}

// split 0: all tasks in one call; 1: one by one; 2: backwards in threes.
static void run_split(const kernel_test *t, char *const *args, int split) {
  if (t->gpu) {
    run_blocks(t, args, split);
    return;
  }
  for (int p = 0; p < t->g->num_phases; p++) {
    int64_t n = t->g->tasks[p];
    if (split == 0)
      t->fn[p](0, n, args);
    for (int64_t i = 0; split == 1 && i < n; i++)
      t->fn[p](i, i + 1, args);
    for (int64_t i = (n - 1) / 3 * 3; split == 2 && i >= 0; i -= 3)
      t->fn[p](i, i + 3 < n ? i + 3 : n, args);
  }
}

static double largest_finite(const ir_tensor_value *v) {
  double largest = 0;
  for (int64_t i = 0; i < ir_elements(&v->type); i++)
    if (isfinite(v->at[i]) && fabs(v->at[i]) > largest)
      largest = fabs(v->at[i]);
  return largest;
}

// Sums may cancel: what is left is rounding in proportion to the inputs.
static double rounding_of_inputs(const kernel_test *t) {
  double largest = 0;
  for (size_t i = 0; i < t->g->in.num; i++)
    if (ir_is_float(t->g->in.at[i]->type.dtype))
      largest = fmax(largest, largest_finite(&t->values[t->g->in.at[i]->id]));
  return 2e-7 * largest;
}

// Elements that are further apart than `slack`; *first of them.
static int64_t count_beyond(const ir_tensor_value *want, const char *got, double slack,
                            int64_t *first) {
  int64_t num = 0;
  for (int64_t i = ir_elements(&want->type); i-- > 0;) {
    double x = test_get(got, want->type.dtype, i), y = want->at[i];
    if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= slack)
      continue;
    *first = i;
    num++;
  }
  return num;
}

// What is narrowed inside may be off by one in its last digit, where rounding errors lie across
// that step: seldom. One such weight is seen in a whole row.
static void compare_narrowed(const kernel_test *t, const ir_node *n, const char *got,
                             double slack) {
  int64_t first = 0, num = count_beyond(&t->values[n->id], got, slack, &first);
  int64_t row = n->type.rank ? n->type.dims[n->type.rank - 1] : 1;
  if (num > ir_elements(&n->type) / 50 + 2 * row)
    test_fail("%s: %s, kernel %s: %lld of %lld elements of %%%s are off by more than rounding",
              t->what, t->g->target->name, t->g->k->name, (long long)num,
              (long long)ir_elements(&n->type), n->name);
}

static void compare_output(const kernel_test *t, const ir_node *n, const char *got) {
  const ir_tensor_value *want = &t->values[n->id];
  bool product = t->g->k->family == IR_FAMILY_MATMUL;
  double slack = t->tolerance * largest_finite(want) + (product ? 0 : rounding_of_inputs(t));
  int digits = ir_digits_inside(t->g->k, n);
  double step = digits < 53 ? ldexp(largest_finite(want), 1 - digits) : 0;
  int64_t first = 0;
  if (!ir_is_float(n->type.dtype))
    slack = step = 0;
  if (count_beyond(want, got, slack + step, &first))
    test_fail("%s: %s, kernel %s: %%%s[%lld] is %.9g, not %.9g", t->what, t->g->target->name,
              t->g->k->name, n->name, (long long)first, test_get(got, n->type.dtype, first),
              want->at[first]);
  else if (step > 0)
    compare_narrowed(t, n, got, slack);
}

// The workspace and the numbers, after the buffers.
static void put_rest(const kernel_test *t, char **args) {
  const cg_kernel *g = t->g;
  size_t at = g->in.num + g->out.num;
  if (g->workspace) {
    ir_type bytes = {.dtype = IR_U8, .rank = 1, .dims = {g->workspace}};
    args[at++] = new_buffer(t, &bytes);
  }
  for (size_t i = 0; i < g->numbers.num; i++)
    args[at + i] = (char *)(uintptr_t)g->numbers.at[i];
}

// Outputs in the memory of inputs, wherever the planner may put them there: the same bits.
static void run_in_place(kernel_test *t, char *const *first) {
  const cg_kernel *g = t->g;
  size_t in_place = 0;
  char **args = IR_NEW_ARRAY(t->a, char *, num_args(g));
  bool *taken = IR_NEW_ARRAY(t->a, bool, g->in.num);
  for (size_t i = 0; i < g->in.num; i++)
    args[i] = oracle_buffer(t, &t->values[g->in.at[i]->id]);
  for (size_t i = 0; i < g->out.num; i++) {
    char **out = &args[g->in.num + i];
    for (size_t j = 0; j < g->in.num && !*out; j++)
      if (!taken[j] && plan_may_overwrite(t->a, g->k, g->in.at[j], g->out.at[i])) {
        taken[j] = true;
        *out = args[j];
        in_place++;
      }
    if (!*out)
      *out = new_buffer(t, &g->out.at[i]->type);
  }
  if (in_place == 0)
    return;
  put_rest(t, args);
  run_split(t, args,
            t->gpu ? 0
                   : 1); // threads of a GPU that have no unit come last, and see what is written
  for (size_t i = 0; i < g->out.num; i++)
    if (memcmp(first[i], args[g->in.num + i], (size_t)ir_bytes(&g->out.at[i]->type)))
      test_fail("%s: %s, kernel %s: %%%s is wrong when computed in place", t->what, g->target->name,
                g->k->name, g->out.at[i]->name);
}

// --- what tasks touch --------------------------------------------------------------------------
// Programs have no barrier where the bytes that tasks say they touch are apart (codegen/program_sync.h). So
// the tasks of each thread of a team run on copies of all buffers that hold nothing but those bytes; they
// must change nothing else, and the outputs must be the same bits.
enum { NOWHERE = 0xFF }; // NaN, and -1 as an index

typedef struct touch_test {
  const kernel_test *t;
  char *const *args; // whole
  char **copies;
  size_t num; // buffers among the arguments
} touch_test;

static cg_bytes touched_by(const kernel_test *t, int phase, size_t arg, int64_t begin,
                           int64_t end) {
  const cg_generator *of = cg_generator_for(t->g->target, t->g->k->family);
  if (!of->touches)
    return (cg_bytes){0, cg_arg_bytes(t->g, (int)arg)};
  return of->touches(t->g, phase, (int)arg, begin, end);
}

static bool is_nowhere(const char *p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++)
    if (p[i] != (char)NOWHERE)
      return false;
  return true;
}

static void run_share(const touch_test *x, int phase, int64_t begin, int64_t end) {
  const cg_kernel *g = x->t->g;
  for (size_t i = 0; i < x->num; i++) {
    cg_bytes b = touched_by(x->t, phase, i, begin, end);
    memset(x->copies[i], NOWHERE, (size_t)cg_arg_bytes(g, (int)i));
    memcpy(x->copies[i] + b.from, x->args[i] + b.from, (size_t)(b.to - b.from));
  }
  x->t->fn[phase](begin, end, x->copies);
  for (size_t i = 0; i < x->num; i++) {
    cg_bytes b = touched_by(x->t, phase, i, begin, end);
    if (!is_nowhere(x->copies[i], b.from) ||
        !is_nowhere(x->copies[i] + b.to, cg_arg_bytes(g, (int)i) - b.to))
      test_fail("%s: %s, kernel %s, phase %d: tasks %lld to %lld write outside bytes %lld to %lld "
                "of argument %zu",
                x->t->what, g->target->name, g->k->name, phase, (long long)begin, (long long)end,
                (long long)b.from, (long long)b.to, i);
    memcpy(x->args[i] + b.from, x->copies[i] + b.from, (size_t)(b.to - b.from));
  }
}

static char *buffer_of(const kernel_test *t, int64_t bytes) {
  return new_buffer(t, &(ir_type){.dtype = IR_U8, .rank = 1, .dims = {bytes}});
}

static void run_apart(const kernel_test *t, char *const *first, int threads) {
  const cg_kernel *g = t->g;
  char **args = IR_NEW_ARRAY(t->a, char *, num_args(g));
  touch_test x = {t, args, IR_NEW_ARRAY(t->a, char *, num_args(g)), num_args(g) - g->numbers.num};
  put_rest(t, args);
  memcpy(x.copies, args, num_args(g) * sizeof *args); // for the numbers
  for (size_t i = 0; i < x.num; i++) {
    x.copies[i] = buffer_of(t, cg_arg_bytes(g, (int)i));
    if (i < g->in.num)
      args[i] = oracle_buffer(t, &t->values[g->in.at[i]->id]);
    else if (i < g->in.num + g->out.num)
      args[i] = buffer_of(t, cg_arg_bytes(g, (int)i));
  }
  for (int p = 0; p < g->num_phases; p++)
    for (int i = 0; i < threads; i++) {
      int64_t begin = g->tasks[p] * i / threads, end = g->tasks[p] * (i + 1) / threads;
      if (begin < end)
        run_share(&x, p, begin, end);
    }
  for (size_t i = 0; i < g->out.num; i++)
    if (memcmp(first[i], args[g->in.num + i], (size_t)ir_bytes(&g->out.at[i]->type)) != 0)
      test_fail("%s: %s, kernel %s: %%%s is wrong where each of %d threads has no more than the "
                "bytes that its tasks touch",
                t->what, g->target->name, g->k->name, g->out.at[i]->name, threads);
}

static void run_kernel(kernel_test *t) {
  const cg_kernel *g = t->g;
  size_t num = g->in.num + g->out.num;
  char **args = IR_NEW_ARRAY(t->a, char *, num_args(g));
  char **first = IR_NEW_ARRAY(t->a, char *, num);
  put_rest(t, args);
  for (size_t i = 0; i < g->in.num; i++)
    args[i] = oracle_buffer(t, &t->values[g->in.at[i]->id]);
  for (int split = 0; split < 3; split++) {
    for (size_t i = 0; i < g->out.num; i++)
      args[g->in.num + i] = new_buffer(t, &g->out.at[i]->type);
    run_split(t, args, split);
    for (size_t i = 0; i < g->out.num; i++) {
      const ir_node *n = g->out.at[i];
      char *p = args[g->in.num + i];
      if (!guard_is_whole(t, p, &n->type))
        test_fail("%s: %s, kernel %s: writes beyond %%%s", t->what, g->target->name, g->k->name,
                  n->name);
      if (split == 0) {
        compare_output(t, n, p);
        first[i] = p;
      } else if (memcmp(first[i], p, (size_t)ir_bytes(&n->type))) {
        test_fail("%s: %s, kernel %s: %%%s depends on how tasks are split", t->what,
                  g->target->name, g->k->name, n->name);
      }
    }
  }
  run_in_place(t, first);
  static const int teams[] = {2, 3, 8};
  for (size_t i = 0; !t->gpu && i < sizeof teams / sizeof *teams; i++)
    run_apart(t, first, teams[i]);
  free_buffers(t);
}

// --- a suite ---------------------------------------------------------------------------------
cg_kernel *test_scheduled(ir_arena *a, ir_kernel *k, const ir_func *f, const cg_target *target) {
  cg_kernel *g = IR_NEW(a, cg_kernel);
  *g = (cg_kernel){.k = k, .func = f, .target = target, .arena = a};
  if (dom_has_domain(k))
    g->dom = dom_build(a, k);
  dom_io io = dom_kernel_io(a, k);
  for (size_t i = 0; i < io.in.num; i++)
    IR_PUSH(a, g->in, io.in.at[i]);
  for (size_t i = 0; i < io.out.num; i++)
    IR_PUSH(a, g->out, io.out.at[i]);
  cg_generator_for(target, k->family)->schedule(g);
  return g;
}

// Modules with `init` are networks: their own first states and sensible inputs.
static ir_tensor_value *oracle(ir_arena *a, const ir_module *m, const ir_func *f, uint64_t seed) {
  ir_world *w = ir_world_new(a, m);
  const ir_func *init = ir_find_func(m, "init");
  if (init) {
    ir_interp(w, init, NULL);
    return ir_interp(w, f, ir_random_inputs(a, f, seed));
  }
  test_random_states(w, &seed);
  return ir_interp(w, f, test_random_inputs(a, f, &seed));
}

static void find_entries(kernel_test *t, void *lib, size_t i) {
  for (int p = 0; p < t->g->num_phases; p++) {
    if (t->gpu) {
      t->entry[p] = emu_find(lib, ir_format(t->a, "k%zu_%d", i, p));
      continue;
    }
    void *symbol = dlsym(lib, ir_format(t->a, "run%zu_%d", i, p));
    memcpy(&t->fn[p], &symbol, sizeof symbol);
  }
}

static unsigned test_families(const cg_target *target) {
  return target->cuda ? ~0u : ~(1u << IR_FAMILY_MATMUL);
}

struct test_suite {
  ir_arena *a;
  const cg_target *target;
  unsigned families;
  IR_VEC(kernel_test *) tests;
  ir_buf text;
  size_t prelude; // bytes of the text before the first kernel
};

test_suite *test_suite_new(ir_arena *a, const cg_target *target, unsigned families) {
  test_suite *s = IR_NEW(a, test_suite);
  *s = (test_suite){.a = a, .target = target, .families = families, .text = ir_buf_new(a)};
  ir_buf_puts(&s->text, target->cuda ? cg_cuda_prelude(a) : cg_cpu_prelude(a, target, true));
  s->prelude = s->text.len;
  return s;
}

static void add_kernel(test_suite *s, const kernel_test *from, ir_kernel *k, const ir_func *f) {
  size_t id = s->tests.num;
  kernel_test *t = IR_NEW(s->a, kernel_test);
  *t = *from;
  t->g = test_scheduled(s->a, k, f, s->target);
  ir_buf_printf(&s->text, "// ---- %s\n", t->what);
  cg_generator_for(s->target, k->family)->emit(t->g, ir_format(s->a, "k%zu", id), &s->text);
  for (int p = 0; p < t->g->num_phases && !s->target->cuda; p++)
    ir_buf_printf(&s->text,
                  "void run%zu_%d(int64_t b, int64_t e, char *const *a) { k%zu_%d(b, e, a); }\n\n",
                  id, p, id, p);
  IR_PUSH(s->a, s->tests, t);
}

int test_suite_add(test_suite *s, const char *what, const ir_module *m, const char *func,
                   double tolerance, uint64_t seed) {
  const ir_func *f = ir_find_func(m, func);
  kernel_test t = {
      .a = s->a, .buffers = IR_NEW(s->a, mapped_list), .what = what, .tolerance = tolerance};
  t.values = oracle(s->a, m, f, seed);
  int num = 0;
  for (size_t i = 0; i < f->kernels.num; i++)
    if (s->families >> f->kernels.at[i]->family & 1) {
      add_kernel(s, &t, f->kernels.at[i], f);
      num++;
    }
  return num;
}

// With sanitizers it is mltc that is looked at, which is done when the text is there: of what processors run, one
// instruction set is compiled. The build without sanitizers runs all.
static bool is_run_elsewhere(const cg_target *t) {
  return TEST_SANITIZED && !t->cuda && strcmp(t->name, test_targets()[0].name) != 0;
}

const char *test_suite_run(test_suite *s) {
  bool cuda = s->target->cuda != NULL;
  const char *text = ir_buf_str(&s->text);
  if (is_run_elsewhere(s->target))
    return text + s->prelude;
  void *lib = cuda ? emu_build(test_without_unrolling(s->a, text), NULL)
                   : test_load(s->a, text, s->target, test_level(s->target));
  emu_machine *gpu = cuda ? emu_new() : NULL;
  if (!lib)
    test_fail("kernels for %s do not compile", s->target->name);
  for (size_t i = 0; lib && i < s->tests.num; i++) {
    s->tests.at[i]->gpu = gpu;
    find_entries(s->tests.at[i], lib, i);
    run_kernel(s->tests.at[i]);
  }
  if (lib)
    dlclose(lib);
  if (gpu)
    emu_free(gpu);
  return text + s->prelude;
}

int test_suite_phases(const test_suite *s) {
  int most = 0;
  for (size_t i = 0; i < s->tests.num; i++)
    if (s->tests.at[i]->g->num_phases > most)
      most = s->tests.at[i]->g->num_phases;
  return most;
}

const char *test_kernels(ir_arena *a, const char *what, const ir_module *m, const char *func,
                         const cg_target *target, double tolerance, uint64_t seed) {
  test_suite *s = test_suite_new(a, target, test_families(target));
  test_suite_add(s, what, m, func, tolerance, seed);
  return test_suite_run(s);
}

ir_module *test_case_module(ir_arena *a, const test_case *c) {
  ir_module *m = test_module(a, c->states, c->body);
  static const pass_info list[] = {{.name = "own_outputs", .run = pass_own_outputs},
                                   {.name = "row_updates", .run = pass_row_updates},
                                   {.name = "fuse", .run = pass_fuse, .grouped = true},
                                   {.name = "order", .run = pass_order, .grouped = true},
                                   {.name = "bands", .run = pass_bands, .grouped = true},
                                   {0}};
  if (m->funcs.at[0]->kernels.num) { // the text says what is a kernel
    pass_bands(m, diag_new(a));
    dom_find_outputs(m->funcs.at[0]);
    return m;
  }
  if (pass_run(list, m, diag_new(a), NULL))
    return m;
  test_fail("%s: passes failed", c->what);
  return NULL;
}

void test_run_cases(const test_case *cases, size_t num, const cg_target *t, const char *only,
                    bool show) {
  ir_arena *a = ir_arena_new();
  test_suite *s = test_suite_new(a, t, ~(1u << IR_FAMILY_MATMUL));
  for (size_t i = 0; i < num; i++) {
    const test_case *c = &cases[i];
    ir_module *m = only && strcmp(only, c->what) != 0 ? NULL : test_case_module(a, c);
    if (!m)
      continue;
    if (show)
      printf("// ---- %s, %s\n%s", c->what, t->name, test_print(a, m));
    if (test_suite_add(s, c->what, m, "f", c->tolerance > 0 ? c->tolerance : 2e-6, 1) == 0)
      test_fail("%s: no kernel", c->what);
  }
  const char *text = test_suite_run(s);
  if (show)
    fputs(text, stdout);
  ir_arena_free(a);
}

const char *test_cases_text(ir_arena *a, const test_case *cases, size_t num,
                            const cg_target *target) {
  test_suite *s = test_suite_new(a, target, 0);
  for (size_t i = 0; i < num; i++) {
    kernel_test t = {.a = a, .what = cases[i].what};
    ir_module *m = test_case_module(a, &cases[i]);
    for (size_t j = 0; m && j < m->funcs.at[0]->kernels.num; j++)
      add_kernel(s, &t, m->funcs.at[0]->kernels.at[j], m->funcs.at[0]);
  }
  return ir_buf_str(&s->text);
}

static ir_module *random_kernels(test_suite *s, uint64_t seed) {
  ir_random_options o = {.seed = seed, .num_nodes = 12 + (int)(seed % 5) * 6};
  o.networks = seed % 2;
  o.differentiable = seed % 3 == 1;
  o.penalised = seed % 6 == 4;
  ir_module *m = ir_random_module(s->a, o);
  const char *what = ir_format(s->a, "seed %llu", (unsigned long long)seed);
  pass_options passes = {.families = cg_families(s->target),
                         .processor = !s->target->cuda,
                         .pairs = s->target->dots_bf16};
  if (pass_run_pipeline(m, diag_new(s->a), &passes))
    test_suite_add(s, what, m, "step", 1e-4, seed);
  else
    test_fail("%s: passes failed", what);
  return m;
}

void test_random_graphs(const cg_target *target, uint64_t first, uint64_t last, uint64_t step) {
  ir_arena *a = ir_arena_new();
  test_suite *s = test_suite_new(a, target, test_families(target));
  for (uint64_t seed = first; seed <= last; seed += step)
    random_kernels(s, seed);
  test_suite_run(s);
  ir_arena_free(a);
}

void test_random_graph(uint64_t seed, const cg_target *target) {
  ir_arena *a = ir_arena_new();
  test_suite *s = test_suite_new(a, target, test_families(target));
  const ir_module *m = random_kernels(s, seed);
  const char *text = test_suite_run(s);
  printf("%s\n%s", test_print(a, m), text);
  ir_arena_free(a);
}
