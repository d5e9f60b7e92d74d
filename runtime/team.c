// team.c: threads, their barrier, and how they wait.
//
// The barrier is a tree of counters with at most 8 arrivals each, so that 256 threads do not
// fight over one cache line; up to 8 threads it is a single counter. The last thread to arrive
// advances `phase`, the one word that all others watch. A waiter spins for a while, then sleeps on
// that word (futex). `sleepers` lets the common case skip the system call: a waiter announces
// itself before the kernel compares the word, a releaser changes the word before it looks for
// sleepers, both sequentially consistent, so one of them always sees the other.
//
// Where other processes want the processor, a waiter sleeps almost at once: the scheduler lets a thread that wakes up run
// soon, but one that offers its processor (sched_yield) waits until the others have had their milliseconds, at every
// barrier. Beside one busy process per core, an epoch of MNIST with two threads took ten times as long as with one. So each
// thread offers its processor now and then while it spins; when it comes back late, it is crowded for its next waits.
//
// A waiter first looks for spare work. `left` counts its pieces down; who moves it from n to n - 1
// does piece n - 1. In the last barrier of a run nobody takes a piece: who has arrived there says
// that its pieces are done. So once thread 0 is through, all are, and it may write down the next
// job.
#include "runtime/claims.h"
#include "runtime/team.h"
#include "runtime/trainer.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

enum {
  LINE = 128,          // two cache lines: adjacent-line prefetch shares them
  FAN_IN = 8,          // arrivals per counter
  MAX_COUNTERS = 40,   // 32 + 4 + 1 for 256 threads
  SPINS = 2500,        // pauses before sleeping: 50 to 100 us
  SPINS_CROWDED = 20,  // more threads than processors: the one we wait for needs ours
  BURST = 128,         // pauses between offers of the processor to others
  CROWDED_WAITS = 200, // until a thread tries again
  STACK_BYTES = 1 << 20,
};

#define LATE 20e-6 // seconds: an offer that takes longer was taken

typedef struct counter {
  _Alignas(LINE) atomic_int arrived;
  int expected;
  int parent; // index; -1: the root
} counter;

typedef struct word { // something to wait on
  _Alignas(LINE) atomic_uint value;
  atomic_int sleepers;
} word;

typedef struct member {
  mlrt_claim claim;
  mlrt_team *team;
  pthread_t thread;
  int tid;
  int crowded;   // waits to go in which it does not spin
  long switches; // to other threads, when it was last late
} member;

struct mlrt_team {
  counter counters[MAX_COUNTERS];
  word phase; // barriers passed
  word runs;  // jobs given out
  int size, spins, started;
  mlrt_watch *const *watches; // NULL: none
  mlrt_step_fn fn;            // the job; NULL: go home
  char *arena;
  int slot;
  mlrt_spare spare;
  _Alignas(LINE) atomic_llong left; // pieces of `spare` that nobody has taken
  member members[];
};

static void cpu_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// True: did a piece of spare work.
static bool help(mlrt_team *t) {
  if (atomic_load_explicit(&t->left, memory_order_relaxed) <= 0)
    return false;
  long long left = atomic_fetch_sub_explicit(&t->left, 1, memory_order_acquire);
  if (left <= 0)
    return false;
  t->spare.piece(t->spare.data, left - 1);
  return true;
}

// Costs next to nothing where nobody else wants the processor. Under a hypervisor a thread may be late though nobody
// does here: then it was not switched (sched_yield counts as involuntary).
static bool is_crowded(member *me) {
  double begun = mlrt_seconds();
  sched_yield();
  if (mlrt_seconds() - begun <= LATE)
    return false;
  struct rusage used;
  getrusage(RUSAGE_THREAD, &used);
  bool switched = used.ru_nivcsw != me->switches;
  me->switches = used.ru_nivcsw;
  return switched;
}

// True: the word has changed.
static bool spin(mlrt_team *t, member *me, const word *w, unsigned old, bool helping) {
  int spins = t->spins;
  if (me->crowded > 0) {
    me->crowded--;
    spins = SPINS_CROWDED;
  }
  for (int i = 0; i < spins; i++) {
    do
      if (atomic_load_explicit(&w->value, memory_order_acquire) != old)
        return true;
    while (helping && help(t));
    if (i % BURST < BURST - 1) {
      cpu_pause();
    } else if (is_crowded(me)) {
      me->crowded = CROWDED_WAITS;
      return false;
    }
  }
  return false;
}

static void wait_change(mlrt_team *t, member *me, word *w, unsigned old, bool helping) {
  if (spin(t, me, w, old, helping))
    return;
  while (atomic_load_explicit(&w->value, memory_order_acquire) == old) {
    atomic_fetch_add(&w->sleepers, 1);
    syscall(SYS_futex, &w->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
    atomic_fetch_sub(&w->sleepers, 1);
  }
}

static void advance(word *w, unsigned old) {
  atomic_store(&w->value, old + 1);
  if (atomic_load(&w->sleepers) > 0)
    syscall(SYS_futex, &w->value, FUTEX_WAKE_PRIVATE, MLRT_MAX_THREADS, NULL, NULL, 0);
}

// True for the thread that completes the root.
static bool arrive(mlrt_team *t, int at) {
  for (; at >= 0; at = t->counters[at].parent) {
    counter *c = &t->counters[at];
    if (atomic_fetch_add_explicit(&c->arrived, 1, memory_order_acq_rel) + 1 < c->expected)
      return false;
    atomic_store_explicit(&c->arrived, 0, memory_order_relaxed);
  }
  return true;
}

int mlrt_team_size(const mlrt_team *t) {
  return t->size;
}

mlrt_claim *mlrt_team_claim(mlrt_team *t, int tid) {
  return &t->members[tid].claim;
}

void mlrt_team_watched(mlrt_team *t, mlrt_watch *const *watches) {
  t->watches = watches;
}

mlrt_watch *mlrt_team_watch(const mlrt_team *t, int tid) {
  return t->watches ? t->watches[tid] : NULL;
}

static void pass_barrier(mlrt_team *t, int tid, bool helping) {
  if (t->size == 1)
    return;
  // No thread can pass the barrier before this one arrives: the phase read here is this one's.
  unsigned phase = atomic_load_explicit(&t->phase.value, memory_order_relaxed);
  if (arrive(t, tid / FAN_IN))
    advance(&t->phase, phase);
  else
    wait_change(t, &t->members[tid], &t->phase, phase, helping);
}

void mlrt_barrier(mlrt_team *t, int tid) {
  pass_barrier(t, tid, true);
}

// Subnormal numbers count as zero in every thread that computes: a masked softmax is full of them,
// and one costs the processor as much as a hundred ordinary operations.
static void flush_subnormals(void) {
#if defined(__SSE2__)
  _mm_setcsr(_mm_getcsr() | 0x8040); // flush to zero, denormals are zero
#elif defined(__aarch64__)
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1u << 24));
#endif
}

// One thread's part of a run: the job, what spare work nobody has had time for, and the barrier
// behind which all of it is done.
static void run_part(mlrt_team *t, int tid, mlrt_step_fn fn, char *arena, int slot) {
  fn(arena, slot, t, tid);
  while (help(t))
    continue;
  pass_barrier(t, tid, false);
}

static void *member_main(void *data) {
  member *m = data;
  flush_subnormals();
  mlrt_team *t = m->team;
  for (unsigned run = 0;; run++) {
    wait_change(t, m, &t->runs, run, false);
    if (!t->fn)
      return NULL;
    run_part(t, m->tid, t->fn, t->arena, t->slot);
  }
}

void mlrt_team_run_beside(mlrt_team *t, mlrt_step_fn fn, char *arena, int slot,
                          const mlrt_spare *spare) {
  t->fn = fn;
  t->arena = arena;
  t->slot = slot;
  if (spare) {
    t->spare = *spare;
    atomic_store_explicit(&t->left, spare->num, memory_order_release);
  }
  if (t->size > 1)
    advance(&t->runs, atomic_load_explicit(&t->runs.value, memory_order_relaxed));
  run_part(t, 0, fn, arena, slot);
}

void mlrt_team_run(mlrt_team *t, mlrt_step_fn fn, char *arena, int slot) {
  mlrt_team_run_beside(t, fn, arena, slot, NULL);
}

// Level by level: `width` arrivals at a level need ceil(width / FAN_IN) counters.
static void build_counters(mlrt_team *t) {
  int first = 0, width = t->size;
  for (;;) {
    int num = (width + FAN_IN - 1) / FAN_IN;
    for (int i = 0; i < num; i++) {
      counter *c = &t->counters[first + i];
      atomic_init(&c->arrived, 0);
      c->expected = i < num - 1 ? FAN_IN : width - i * FAN_IN;
      c->parent = num > 1 ? first + num + i / FAN_IN : -1;
    }
    if (num == 1)
      return;
    first += num;
    width = num;
  }
}

static int start_member(mlrt_team *t, int tid, const pthread_attr_t *attr) {
  member *m = &t->members[tid];
  m->team = t;
  m->tid = tid;
  return pthread_create(&m->thread, attr, member_main, m);
}

mlrt_team *mlrt_team_new(int threads) {
  size_t bytes = sizeof(mlrt_team) + (size_t)threads * sizeof(member);
  mlrt_team *t = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
  if (!t)
    return NULL;
  memset(t, 0, bytes);
  t->size = threads;
  t->started = 1;
  t->spins = threads > mlrt_online_cores() ? SPINS_CROWDED : SPINS;
  build_counters(t);
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  int failed = 0;
  flush_subnormals();
  while (t->started < threads && !(failed = start_member(t, t->started, &attr)))
    t->started++;
  pthread_attr_destroy(&attr);
  if (failed) {
    mlrt_team_free(t);
    errno = failed;
    return NULL;
  }
  return t;
}

void mlrt_team_free(mlrt_team *t) {
  if (!t)
    return;
  t->fn = NULL;
  advance(&t->runs, atomic_load_explicit(&t->runs.value, memory_order_relaxed));
  for (int i = 1; i < t->started; i++)
    pthread_join(t->members[i].thread, NULL);
  free(t);
}

// A cgroup quota "max 100000" or "150000 100000": microseconds per period; 0: no limit.
static int quota_cores(void) {
  FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
  if (!f)
    return 0;
  long long quota = 0, period = 0;
  int got = fscanf(f, "%lld %lld", &quota, &period);
  fclose(f);
  if (got != 2 || quota <= 0 || period <= 0)
    return 0;
  return (int)((quota + period - 1) / period);
}

int mlrt_online_cores(void) {
  cpu_set_t set; // too small where the kernel counts more than 1,024
  bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  int cores = known ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
  int quota = quota_cores();
  if (quota > 0 && quota < cores)
    cores = quota;
  return cores < 1 ? 1 : cores > MLRT_MAX_THREADS ? MLRT_MAX_THREADS : cores;
}
