// gemm.c: how near the CPU matmul generator comes to the machine's peak.
//
//   gemm [--quick] [--cold] [--json=FILE] [--only=TEXT] [--cc=clang] [--keep=DIR] [--tile=RxV]
//       [--seconds=2]
//
// Measures the peak (independent FMAs in registers) in the same run, on one and on two threads,
// then every case: generated, compiled, checked against a double-precision product, and timed
// in turns with the peak. Prints a table (GFLOP/s, share of the peak, both the best of many; in
// brackets the median share of the turns), and JSON with --json. Exit 1 when a result is wrong.
#include "codegen/cpu_matmul.h"
#include "codegen/program.h"
#include "tests/bench/gemm/team.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct gemm_case {
  const char *name;
  int64_t batch, m, n, k;
  bool ta, tb;
  int64_t pitch; // 0: dense; else heads inside rows of this length
} gemm_case;

static const gemm_case cases[] = {
    {"512 NN", 1, 512, 512, 512, false, false, 0},
    {"512 NT", 1, 512, 512, 512, false, true, 0},
    {"512 TN", 1, 512, 512, 512, true, false, 0},
    {"1024 NN", 1, 1024, 1024, 1024, false, false, 0},
    {"1024 NT", 1, 1024, 1024, 1024, false, true, 0},
    {"1024 TN", 1, 1024, 1024, 1024, true, false, 0},
    {"2048 NN", 1, 2048, 2048, 2048, false, false, 0},
    {"2048 NT", 1, 2048, 2048, 2048, false, true, 0},
    {"2048 TN", 1, 2048, 2048, 2048, true, false, 0},
    {"mlp x*w1", 1, 64, 128, 784, false, false, 0},
    {"mlp dw1 TN", 1, 784, 128, 64, true, false, 0},
    {"mlp h*w2", 1, 64, 10, 128, false, false, 0},
    {"mlp dw2 TN", 1, 128, 10, 64, true, false, 0},
    {"mlp dh NT", 1, 64, 128, 10, false, true, 0},
    {"adam x*w1", 1, 128, 512, 784, false, false, 0},
    {"adam dw1 TN", 1, 784, 512, 128, true, false, 0},
    {"adam h*w2", 1, 128, 256, 512, false, false, 0},
    {"adam dw2 TN", 1, 512, 256, 128, true, false, 0},
    {"gpt q*k NT", 48, 64, 64, 32, false, true, 384},
    {"gpt p*v", 48, 64, 32, 64, false, false, 384},
    {"gpt qkv", 1, 768, 384, 128, false, false, 0},
    {"gpt proj", 1, 768, 128, 128, false, false, 0},
    {"gpt fc2", 1, 768, 128, 512, false, false, 0},
    {"gpt logits NT", 1, 768, 65, 128, false, true, 0},
    {"gpt dx NT", 1, 768, 128, 384, false, true, 0},
    {"gpt dfc2 NT", 1, 768, 512, 128, false, true, 0},
    {"gpt dw TN", 1, 128, 512, 768, true, false, 0},
    {"gpt dwqkv TN", 1, 128, 384, 768, true, false, 0},
    {"384 wide fc2", 1, 1024, 384, 1536, false, false, 0},
    {"384 wide dw TN", 1, 384, 1152, 1024, true, false, 0},
    {"lstm z", 1, 32, 1024, 256, false, false, 0},
    {"lstm dh NT", 1, 32, 256, 1024, false, true, 0},
    {"lstm dw TN", 1, 256, 1024, 2048, true, false, 0},
    {"lstm dx TN", 1, 64, 1024, 2048, true, false, 0},
    {"thin dw TN", 1, 1433, 16, 2708, true, false, 0},
    {"gemv m=1", 1, 1, 1024, 1024, false, false, 0},
    {"long k", 1, 16, 16, 100000, true, false, 0},
};
enum { NUM_CASES = sizeof cases / sizeof *cases };

// --- the kernel of a case ------------------------------------------------------------------------

static mm_axes one_axis(int64_t size, int64_t stride) {
  mm_axes axes = {.num = 1, .size = {size}, .stride = {stride}};
  return mm_simplify(&axes);
}

// rows x cols in memory; heads: batch item h of 4 lies at column offset h * 32 inside wide rows
static mm_operand operand(int arg, const gemm_case *c, int64_t x, int64_t k, bool x_first,
                          bool heads) {
  int64_t row = c->pitch && heads ? c->pitch : x_first ? k : x;
  mm_operand o = {.arg = arg, .ctype = "float", .elem_bytes = 4};
  o.x = one_axis(x, x_first ? row : 1);
  o.k = one_axis(k, x_first ? 1 : row);
  if (c->batch > 1 && heads)
    o.batch = (mm_axes){.num = 2, .size = {c->batch / 4, 4}, .stride = {64 * c->pitch, 32}};
  else if (c->batch > 1)
    o.batch = one_axis(c->batch, x * k);
  return o;
}

// Plain copies; only edges that are no whole vector come here.
static void emit_finish(const mm_problem *p, void *data, const char *name, ir_buf *out) {
  (void)data;
  ir_buf_printf(
      out,
      "static void %s_finish(char *const *args, const float *tile, int64_t pitch, int64_t "
      "batch,\n    int64_t m, int64_t rows, int64_t n, int64_t cols) {\n"
      "  float *c = (float *)args[2] + batch * %lld;\n"
      "  for (int64_t i = 0; i < rows; i++)\n"
      "    for (int64_t j = 0; j < cols; j++)\n"
      "      c[(m + i) * %lld + n + j] = tile[i * pitch + j];\n"
      "}\n\n",
      name, (long long)(p->m * p->n), (long long)p->n);
}

static bool emit_fetch(const mm_problem *p, void *data, const char *name, int64_t cols,
                       ir_buf *out) {
  (void)data;
  ir_buf_printf(out,
                "static void %s_fetch(char *const *args, int64_t batch, int64_t m, int64_t rows, "
                "int64_t n) {\n"
                "  const float *c = (const float *)args[2] + batch * %lld + n;\n"
                "  for (int64_t i = m; i < m + rows; i++)\n"
                "    for (int64_t j = 0; j < %lld; j += 16)\n"
                "      __builtin_prefetch(c + i * %lld + j, 1);\n"
                "}\n\n",
                name, (long long)(p->m * p->n), (long long)cols, (long long)p->n);
  return true;
}

static mm_problem problem(ir_arena *arena, const cg_target *target, const gemm_case *c) {
  mm_problem p = {.target = target,
                  .arena = arena,
                  .ctype = "float",
                  .elem_bytes = 4,
                  .batch = c->batch,
                  .m = c->m,
                  .n = c->n,
                  .k = c->k,
                  .plain = true,
                  .workspace_arg = 3,
                  .emit_finish = emit_finish,
                  .emit_fetch = emit_fetch};
  bool heads = c->pitch > 0;
  p.a = operand(0, c, c->m, c->k, !c->ta, heads && c->k == 32);
  p.b = operand(1, c, c->n, c->k, c->tb, heads);
  p.c = (mm_operand){.arg = 2,
                     .ctype = "float",
                     .elem_bytes = 4,
                     .batch = one_axis(c->batch, c->m * c->n),
                     .x = one_axis(c->m, c->n)};
  return p;
}

typedef struct kernel {
  void *handle;
  mm_plan plan;
  double compile_s;
  bench_phase_fn phase[CG_MAX_PHASES];
} kernel;

static bool load_phases(kernel *k, const char *path) {
  k->handle = dlopen(path, RTLD_NOW);
  if (!k->handle) {
    fprintf(stderr, "%s\n", dlerror());
    return false;
  }
  for (int i = 0; i < k->plan.num_phases; i++) {
    char name[32];
    snprintf(name, sizeof name, "phase_%d", i);
    bench_phase_fn *table = (bench_phase_fn *)dlsym(k->handle, name);
    if (!table)
      return false;
    k->phase[i] = *table;
  }
  return true;
}

static bool build(ir_arena *arena, const mm_problem *p, const char *cc, const char *dir, int id,
                  kernel *k) {
  ir_buf text = ir_buf_new(arena);
  ir_buf_puts(&text, "#include <stdint.h>\n#include <stddef.h>\n\n");
  mm_make_plan(p, &k->plan);
  mm_emit(p, &k->plan, "mm", &text);
  for (int i = 0; i < k->plan.num_phases; i++)
    ir_buf_printf(&text, "void (*phase_%d)(int64_t, int64_t, char *const *) = mm_%d;\n", i, i);
  const char *base = ir_format(arena, "%s/gemm_%d", dir, id);
  const char *source = ir_format(arena, "%s.c", base);
  if (!ir_write_file(source, ir_buf_str(&text), text.len))
    return false;
  double start = bench_now();
  const char *command =
      ir_format(arena,
                "%s -std=gnu11 %s -march=native -mprefer-vector-width=512 "
                "-ffp-contract=fast -fPIC -shared -Wall -Wno-unused-function -o %s.so %s",
                cc, cg_effort(2), base, source);
  if (system(command) != 0)
    return false;
  k->compile_s = bench_now() - start;
  return load_phases(k, ir_format(arena, "%s.so", base));
}

// --- data and the reference ----------------------------------------------------------------------

static int64_t extent(const mm_axes *axes) {
  int64_t e = 0;
  for (int i = 0; i < axes->num; i++)
    e += (axes->size[i] - 1) * axes->stride[i];
  return e;
}

static float *random_floats(int64_t count, uint64_t seed) {
  size_t page = 2 << 20, bytes = ((size_t)count * 4 + 2 * page - 1) / page * page;
  float *x = aligned_alloc(page, bytes);
  madvise(x, bytes, MADV_HUGEPAGE); // as the trainer's arena is
  uint64_t state = 88172645463325252u + seed * 7919;
  for (int64_t i = 0; i < count; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    x[i] = (float)(state >> 40) / 16777216.0f - 0.5f;
  }
  return x;
}

static int64_t at(const mm_axes *axes, int64_t index) {
  int64_t offset = 0;
  for (int i = axes->num - 1; i >= 0; i--) {
    offset += index % axes->size[i] * axes->stride[i];
    index /= axes->size[i];
  }
  return offset;
}

// Largest error over a sample of elements, relative to sqrt(k).
static double check(const mm_problem *p, const float *a, const float *b, const float *c) {
  double worst = 0;
  int64_t total = p->batch * p->m * p->n, step = total > 4000 ? total / 3989 : 1;
  for (int64_t i = 0; i < total; i += step) {
    int64_t n = i % p->n, m = i / p->n % p->m, batch = i / (p->n * p->m);
    const float *pa = a + at(&p->a.batch, batch) + at(&p->a.x, m);
    const float *pb = b + at(&p->b.batch, batch) + at(&p->b.x, n);
    double sum = 0;
    for (int64_t k = 0; k < p->k; k++)
      sum += (double)pa[at(&p->a.k, k)] * pb[at(&p->b.k, k)];
    double error = fabs(sum - c[i]) / sqrt((double)p->k);
    worst = error > worst ? error : worst;
  }
  return worst;
}

// --- main ----------------------------------------------------------------------------------------

typedef struct options {
  double seconds; // per timing
  const char *json, *only, *cc, *keep;
  int rows, vectors; // --tile
  bool cold;         // operands come from memory far away: run after run works on other copies
} options;

typedef struct measured {
  double gflops[2], typical[2]; // on 1 thread, on 2: the best, and the median share of the peak
  double compile_s, error;
} measured;

enum { NUM_ARGS = 4, COLD_BYTES = 64 << 20, MAX_SETS = 256 };

typedef struct sets {
  int num;
  char *args[MAX_SETS * NUM_ARGS];
} sets;

// One set of operands, or as many as no cache near a core holds.
static sets make_sets(const options *o, const mm_problem *p, const mm_plan *plan) {
  int64_t floats[NUM_ARGS] = {extent(&p->a.batch) + extent(&p->a.x) + extent(&p->a.k) + 1,
                              extent(&p->b.batch) + extent(&p->b.x) + extent(&p->b.k) + 1,
                              p->batch * p->m * p->n, plan->workspace / 4 + 1};
  int64_t bytes = 4 * (floats[0] + floats[1] + floats[2]);
  sets x = {.num = 1};
  if (o->cold)
    x.num = (int)(COLD_BYTES / bytes < MAX_SETS ? COLD_BYTES / bytes : MAX_SETS) + 1;
  if (x.num > MAX_SETS)
    x.num = MAX_SETS;
  for (int i = 0; i < x.num * NUM_ARGS; i++)
    x.args[i] = i < NUM_ARGS || i % NUM_ARGS != 3
                    ? (char *)random_floats(floats[i % NUM_ARGS], (uint64_t)(i % NUM_ARGS) + 1)
                    : x.args[3];
  return x;
}

static void free_sets(sets *x) {
  for (int i = 0; i < x->num * NUM_ARGS; i++)
    if (i < NUM_ARGS || i % NUM_ARGS != 3)
      free(x->args[i]);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Kernel and peak take turns: whoever else uses the machine slows down both. The best speeds of
// both are what is compared; the median share of the rounds says how it went between them.
static void compare_with_peak(const options *o, const bench_job *job, double flops, int threads,
                              measured *r, double *peak) {
  enum { ROUNDS = 15 };
  double share[ROUNDS], *gflops = &r->gflops[threads - 1];
  for (int i = 0; i < ROUNDS; i++) {
    double p = bench_peak(threads, o->seconds / ROUNDS / 2);
    double g = flops / bench_time(job, threads, o->seconds / ROUNDS, o->cold) * 1e-9;
    share[i] = g / p;
    *gflops = g > *gflops ? g : *gflops;
    *peak = p > *peak ? p : *peak;
  }
  qsort(share, ROUNDS, sizeof *share, compare);
  r->typical[threads - 1] = share[ROUNDS / 2];
}

static bool measure(const options *o, const cg_target *target, const gemm_case *c, int id,
                    measured *r, double peak[2]) {
  ir_arena *arena = ir_arena_new();
  mm_problem p = problem(arena, target, c);
  p.want_mr = o->rows, p.want_nv = o->vectors;
  kernel k = {0};
  if (!build(arena, &p, o->cc, o->keep, id, &k))
    return false;
  sets x = make_sets(o, &p, &k.plan);
  double flops = 2.0 * (double)(c->batch * c->m * c->n) * (double)c->k;
  bench_job job = {
      .num_phases = k.plan.num_phases, .args = x.args, .sets = x.num, .num_args = NUM_ARGS};
  _Static_assert(sizeof job.phase == sizeof k.phase, "BENCH_MAX_PHASES is not CG_MAX_PHASES");
  memcpy(job.phase, k.phase, sizeof k.phase);
  memcpy(job.tasks, k.plan.tasks, sizeof k.plan.tasks);
  for (int threads = 1; threads <= 2; threads++)
    compare_with_peak(o, &job, flops, threads, r, &peak[threads - 1]);
  r->error = check(&p, (float *)x.args[0], (float *)x.args[1], (float *)x.args[2]);
  r->compile_s = k.compile_s;
  free_sets(&x);
  dlclose(k.handle);
  printf("%-14s %2lldx%lldx%lldx%-6lld %2dx%d %c%c grid %2lldx%-2lld", c->name, (long long)c->batch,
         (long long)c->m, (long long)c->n, (long long)c->k, k.plan.mr, k.plan.nv, "DLS"[k.plan.a],
         "DLS"[k.plan.b], (long long)k.plan.group_rows, (long long)k.plan.group_cols);
  ir_arena_free(arena);
  return true;
}

static bool parse(options *o, int argc, char **argv) {
  *o = (options){.seconds = 2, .cc = "clang"};
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--quick"))
      o->seconds = 0.05;
    else if (!strcmp(argv[i], "--cold"))
      o->cold = true;
    else if (!strncmp(argv[i], "--json=", 7))
      o->json = argv[i] + 7;
    else if (!strncmp(argv[i], "--only=", 7))
      o->only = argv[i] + 7;
    else if (!strncmp(argv[i], "--cc=", 5))
      o->cc = argv[i] + 5;
    else if (!strncmp(argv[i], "--keep=", 7))
      o->keep = argv[i] + 7;
    else if (sscanf(argv[i], "--seconds=%lf", &o->seconds) == 1)
      continue;
    else if (sscanf(argv[i], "--tile=%dx%d", &o->rows, &o->vectors) != 2)
      return false;
  }
  return true;
}

static cg_target this_machine(void) {
  cg_target t = {.name = "cpu",
                 .march = "native",
                 .vector_bytes = 16,
                 .vector_registers = 16,
                 .fma = true,
                 .l1_bytes = 32768,
                 .l2_bytes = 1048576};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    t.vector_bytes = 64, t.vector_registers = 32;
  else if (__builtin_cpu_supports("avx2"))
    t.vector_bytes = 32;
#elif defined(__aarch64__)
  t.vector_registers = 32;
#endif
  long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  t.l1_bytes = l1 > 0 ? l1 : t.l1_bytes;
  t.l2_bytes = l2 > 0 ? l2 : t.l2_bytes;
  return t;
}

static void print_json(FILE *json, const measured *all, const double peak[2]) {
  const char *comma = "";
  fprintf(json, "{\"cases\": [");
  for (int i = 0; i < NUM_CASES; i++) {
    const gemm_case *c = &cases[i];
    const measured *r = &all[i];
    if (r->gflops[0] == 0)
      continue;
    fprintf(json,
            "%s\n  {\"name\": \"%s\", \"batch\": %lld, \"m\": %lld, \"n\": %lld, \"k\": %lld, "
            "\"gflops\": [%.1f, %.1f], \"of_peak\": [%.3f, %.3f], \"typical\": [%.3f, %.3f], "
            "\"compile_s\": %.3f}",
            comma, c->name, (long long)c->batch, (long long)c->m, (long long)c->n, (long long)c->k,
            r->gflops[0], r->gflops[1], r->gflops[0] / peak[0], r->gflops[1] / peak[1],
            r->typical[0], r->typical[1], r->compile_s);
    comma = ",";
  }
  fprintf(json, "\n], \"peak_gflops\": [%.1f, %.1f]}\n", peak[0], peak[1]);
}

static int run(const options *o, FILE *json) {
  cg_target target = this_machine();
  double peak[2] = {bench_peak(1, o->seconds), bench_peak(2, o->seconds)};
  measured all[NUM_CASES] = {0};
  int wrong = 0;
  for (int i = 0; i < NUM_CASES; i++) {
    if (o->only && !strstr(cases[i].name, o->only))
      continue;
    measured *r = &all[i];
    if (!measure(o, &target, &cases[i], i, r, peak)) {
      printf("%s: could not be built\n", cases[i].name);
      return 1;
    }
    bool bad = !(r->error < 1e-5);
    printf("  %7.1f %3.0f%% (%.0f%%) %7.1f %3.0f%% (%.0f%%)  compile %.2f s%s\n", r->gflops[0],
           100 * r->gflops[0] / peak[0], 100 * r->typical[0], r->gflops[1],
           100 * r->gflops[1] / peak[1], 100 * r->typical[1], r->compile_s, bad ? "   WRONG" : "");
    fflush(stdout);
    wrong += bad;
  }
  printf("peak: %.1f GFLOP/s on 1 thread, %.1f on 2\n", peak[0], peak[1]);
  if (json)
    print_json(json, all, peak);
  return wrong ? 1 : 0;
}

int main(int argc, char **argv) {
  options o;
  if (!parse(&o, argc, argv) || !o.keep) {
    fprintf(stderr, "usage: gemm --keep=DIR [--quick] [--cold] [--json=FILE] [--only=TEXT] "
                    "[--cc=CC] [--tile=RxV]\n");
    return 2;
  }
  FILE *json = o.json ? fopen(o.json, "w") : NULL;
  int status = run(&o, json);
  if (json)
    fclose(json);
  return status;
}
