// team.h: timing for the matmul benchmark: a small spinning team, best-of-many timing, and the
// machine's FMA peak.
#ifndef TESTS_BENCH_GEMM_TEAM_H
#define TESTS_BENCH_GEMM_TEAM_H

#include <stdint.h>

typedef void (*bench_phase_fn)(int64_t begin, int64_t end, char *const *args);
enum { BENCH_MAX_PHASES = 16 }; // CG_MAX_PHASES
typedef struct bench_job {
  int num_phases;
  bench_phase_fn phase[BENCH_MAX_PHASES];
  int64_t tasks[BENCH_MAX_PHASES];
  char *const *args; // sets * num_args; run r uses set r % sets
  int sets, num_args;
} bench_job;

double bench_now(void); // seconds
// Seconds of one run of all phases, tasks split statically over `threads`, each on a CPU of its
// own: the least of many runs, or their median.
double bench_time(const bench_job *job, int threads, double seconds, int median);
// GFLOP/s of independent FMAs on registers.
double bench_peak(int threads, double seconds);

#endif
