// team.c: see team.h. Compiled with -march=native: the peak loop must use the widest vectors.
#include "tests/bench/gemm/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_THREADS = 8, MAX_RUNS = 100000 };

typedef struct team {
  const bench_job *job;
  int threads;
  double seconds;
  double *took; // [runs]
  int runs;
  atomic_int arrived, generation;
  atomic_bool stop;
} team;

typedef struct member {
  team *t;
  int id;
} member;

double bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void barrier(team *t) {
  int generation = atomic_load(&t->generation);
  if (atomic_fetch_add(&t->arrived, 1) == t->threads - 1) {
    atomic_store(&t->arrived, 0);
    atomic_fetch_add(&t->generation, 1);
    return;
  }
  while (atomic_load_explicit(&t->generation, memory_order_acquire) == generation)
    ;
}

static void run_phases(team *t, int id, int run) {
  char *const *args = t->job->args + (size_t)(run % t->job->sets * t->job->num_args);
  for (int p = 0; p < t->job->num_phases; p++) {
    int64_t tasks = t->job->tasks[p];
    t->job->phase[p](tasks * id / t->threads, tasks * (id + 1) / t->threads, args);
    barrier(t);
  }
}

// Two spinning threads that start on one CPU may stay there for long.
static void pin(int id) {
  cpu_set_t all, one;
  if (sched_getaffinity(0, sizeof all, &all) != 0)
    return;
  int wanted = id % CPU_COUNT(&all);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &all) && wanted-- == 0) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    }
}

// Member 0 measures and says when to stop; a barrier before each run keeps all together.
static void *serve(void *data) {
  member *m = data;
  team *t = m->t;
  pin(m->id);
  double begin = bench_now();
  for (int run = 0;; run++) {
    barrier(t);
    if (atomic_load(&t->stop))
      return NULL;
    double start = bench_now();
    run_phases(t, m->id, run);
    if (m->id != 0)
      continue;
    double end = bench_now();
    if (run > 0)
      t->took[t->runs++] = end - start;
    if ((run > 2 && end - begin > t->seconds) || t->runs == MAX_RUNS)
      atomic_store(&t->stop, true);
  }
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_time(const bench_job *job, int threads, double seconds, int median) {
  team t = {.job = job, .threads = threads, .seconds = seconds};
  t.took = malloc(sizeof(double) * MAX_RUNS);
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  pthread_t thread[MAX_THREADS];
  member members[MAX_THREADS];
  for (int i = 0; i < threads; i++) {
    members[i] = (member){&t, i};
    if (i > 0)
      pthread_create(&thread[i], NULL, serve, &members[i]);
  }
  serve(&members[0]);
  for (int i = 1; i < threads; i++)
    pthread_join(thread[i], NULL);
  sched_setaffinity(0, sizeof before, &before);
  qsort(t.took, (size_t)t.runs, sizeof(double), compare);
  double result = t.took[median ? t.runs / 2 : 0];
  free(t.took);
  return result;
}

// --- peak ----------------------------------------------------------------------------------------

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
typedef float vec __attribute__((vector_size(VECTOR_BYTES)));
enum { SUMS = 12, STEPS = 20000, LANES = VECTOR_BYTES / 4 };

// One task: STEPS x SUMS fused multiply-adds that do not wait for each other.
static void peak_task(int64_t begin, int64_t end, char *const *args) {
  const float *in = (const float *)args[0];
  float *out = (float *)args[1];
  for (int64_t task = begin; task < end; task++) {
    vec x = {0}, y = {0}, c[SUMS];
    x += in[0], y += in[1];
    for (int i = 0; i < SUMS; i++)
      c[i] = y + (float)i;
    for (int step = 0; step < STEPS; step++)
#pragma GCC unroll 12
      for (int i = 0; i < SUMS; i++)
        c[i] = c[i] * x + y;
    for (int i = 1; i < SUMS; i++)
      c[0] += c[i];
    out[task * 64] = c[0][0] + c[0][LANES - 1];
  }
}

double bench_peak(int threads, double seconds) {
  float in[2] = {0.999f, 0.001f}, out[64 * 8];
  char *args[] = {(char *)in, (char *)out};
  bench_job job = {.num_phases = 1, .phase = {peak_task}, .tasks = {8}, .args = args, .sets = 1};
  double flops = 8.0 * STEPS * SUMS * LANES * 2;
  return flops / bench_time(&job, threads, seconds, 0) * 1e-9;
}
