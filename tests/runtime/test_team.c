// test_team.c: barriers keep threads together, whatever their number, awake or asleep; spare work
// is done once, and so are tasks that threads take from each other; where others want the processors, too, each barrier does not wait until they have had enough.
#include "runtime/team.h"
#include "runtime/trainer.h"
#include "tests/runtime/support_program.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { ROUNDS = 50 };

typedef struct shared {
  int sums[MLRT_MAX_THREADS]; // each thread writes its own, after the barrier all read all
  int bad[MLRT_MAX_THREADS];
  int rounds;
} shared;

// Without a barrier on both sides of the reads, a fast thread would be seen a round ahead.
static void in_step(char *arena, int slot, mlrt_team *team, int tid) {
  shared *s = (shared *)(void *)arena;
  int n = mlrt_team_size(team);
  for (int round = 1; round <= s->rounds; round++) {
    s->sums[tid] = round * 1000 + slot;
    mlrt_barrier(team, tid);
    for (int i = 0; i < n; i++)
      s->bad[tid] += s->sums[i] != round * 1000 + slot;
    mlrt_barrier(team, tid);
  }
}

static void sleepy(char *arena, int slot, mlrt_team *team, int tid) {
  shared *s = (shared *)(void *)arena;
  if (tid == slot % mlrt_team_size(team))
    usleep(2000); // the others go to sleep in the barrier
  s->sums[tid] = slot;
  mlrt_barrier(team, tid);
  for (int i = 0; i < mlrt_team_size(team); i++)
    s->bad[tid] += s->sums[i] != slot;
}

static void test_size(int threads, int runs) {
  mlrt_team *t = mlrt_team_new(threads);
  CHECK(t && mlrt_team_size(t) == threads, "%d threads", threads);
  shared s = {.rounds = ROUNDS};
  for (int run = 0; run < runs; run++) {
    mlrt_team_run(t, in_step, (char *)&s, run);
    if (run % 8 == 0)
      usleep(500); // workers go to sleep between runs
  }
  for (int run = 0; run < 4; run++)
    mlrt_team_run(t, sleepy, (char *)&s, run);
  mlrt_team_free(t);
  for (int i = 0; i < threads; i++)
    CHECK(s.bad[i] == 0, "%d threads: thread %d saw %d wrong values", threads, i, s.bad[i]);
}

// Each piece of spare work is done once, and before the run returns, whether threads have to wait
// for each other or are all busy.
typedef struct chores {
  atomic_int done[100];
  shared s;
} chores;

static void do_piece(void *data, int64_t number) {
  chores *c = data;
  atomic_fetch_add(&c->done[number], 1);
}

static void busy(char *arena, int slot, mlrt_team *team, int tid) {
  (void)arena, (void)slot, (void)team, (void)tid;
}

static void test_spare(int threads) {
  static const int64_t nums[] = {0, 1, 7, 100};
  mlrt_team *t = mlrt_team_new(threads);
  for (int run = 0; run < 48; run++) {
    chores c = {.s = {.rounds = 3}};
    mlrt_spare spare = {do_piece, &c, nums[run % 4]};
    mlrt_step_fn fn = run % 3 == 0 ? busy : run % 3 == 1 ? in_step : sleepy;
    mlrt_team_run_beside(t, fn, (char *)&c.s, run, &spare);
    for (int64_t i = 0; i < 100; i++)
      CHECK(c.done[i] == (i < spare.num), "%d threads, run %d: piece %d done %d times", threads,
            run, (int)i, c.done[i]);
    if (run % 5 == 0)
      mlrt_team_run(t, in_step, (char *)&c.s, run); // with none
    for (int i = 0; i < threads; i++)
      CHECK(c.s.bad[i] == 0, "%d threads: thread %d saw %d wrong values", threads, i, c.s.bad[i]);
  }
  mlrt_team_free(t);
}

// A piece that takes longer than everything else: the run must not be over before it is.
static void do_slowly(void *data, int64_t number) {
  usleep(30);
  do_piece(data, number);
}

static void test_slow_pieces(int threads) {
  mlrt_team *t = mlrt_team_new(threads);
  chores c = {.s = {.rounds = 0}};
  mlrt_spare spare = {do_slowly, &c, 2};
  for (int run = 1; run <= 1000; run++) {
    mlrt_team_run_beside(t, busy, (char *)&c.s, 0, &spare);
    int first = c.done[0], second = c.done[1];
    CHECK(first == run && second == run, "%d threads, run %d: pieces done %d and %d times", threads,
          run, first, second);
    if (failures)
      break;
    if (run % 4 == 0)
      usleep(200); // some go to sleep and have to be woken for the next run
  }
  mlrt_team_free(t);
}

// --- tasks that are anybody's ------------------------------------------------------------------
enum { MOST_TASKS = 70001, LAUNCHES = 3 }; // more than the claims' words count one by one

typedef struct tasks {
  atomic_int done[LAUNCHES][MOST_TASKS], by_others[LAUNCHES];
  int num, slow; // slow: which thread holds the others up; -1: none
} tasks;

static _Thread_local int this_thread;

// args: tasks, launch, threads.
static void do_tasks(int64_t begin, int64_t end, char *const *args) {
  tasks *s = (tasks *)(void *)args[0];
  int64_t launch = (int64_t)(uintptr_t)args[1], threads = (int64_t)(uintptr_t)args[2];
  for (int64_t i = begin; i < end; i++) {
    if (this_thread == s->slow && launch == 1)
      usleep(3000);
    atomic_fetch_add(&s->done[launch][i], 1);
    bool own = i >= s->num * this_thread / threads && i < s->num * (this_thread + 1) / threads;
    atomic_fetch_add(&s->by_others[launch], !own);
  }
}

// Side by side, as independent kernels are: a thread may be two launches ahead of another.
static void run_tasks(char *arena, int slot, mlrt_team *team, int tid) {
  (void)slot;
  mlrt_member me = mlrt_member_of(team, tid);
  this_thread = tid;
  for (int launch = 0; launch < LAUNCHES; launch++) {
    char *const args[] = {arena, (char *)(uintptr_t)launch, (char *)(uintptr_t)me.threads};
    mlrt_run_shared(&me, do_tasks, ((tasks *)(void *)arena)->num, 0, args);
  }
}

static void test_tasks(int threads) {
  static const int nums[] = {1, 2, 3, 8, 64, MOST_TASKS};
  static tasks s;
  mlrt_team *t = mlrt_team_new(threads);
  for (int run = 0; run < 120; run++) {
    s = (tasks){.num = nums[run % 6], .slow = run % 30 == 4 ? run / 30 % threads : -1};
    mlrt_team_run(t, run_tasks, (char *)&s, 0);
    for (int launch = 0; launch < LAUNCHES; launch++)
      for (int i = 0; i < s.num + 64 && i < MOST_TASKS; i++)
        CHECK(s.done[launch][i] == (i < s.num), "%d threads, run %d: task %d of %d done %d times",
              threads, run, i, s.num, (int)s.done[launch][i]);
    bool waits = s.slow >= 0 && threads > 1 && threads <= 4; // 64 tasks, 3 ms each if it did them
    CHECK(!waits || s.by_others[1] > 0, "%d threads: nobody helps thread %d", threads, s.slow);
    if (failures)
      break;
  }
  mlrt_team_free(t);
}

// Two processors, or the one there is, for this process and its children.
static void keep_two_processors(void) {
  cpu_set_t all, two;
  int found = 0;
  CPU_ZERO(&two);
  if (sched_getaffinity(0, sizeof all, &all))
    return;
  for (size_t i = 0; i < CPU_SETSIZE && found < 2; i++)
    if (CPU_ISSET(i, &all)) {
      CPU_SET(i, &two);
      found++;
    }
  sched_setaffinity(0, sizeof two, &two);
}

static pid_t start_busy_process(void) {
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(0);
    for (volatile unsigned i = 0;; i++)
      continue;
  }
  return child;
}

static void some_work(char *arena, int slot, mlrt_team *team, int tid) {
  (void)slot;
  const shared *s = (const shared *)(void *)arena;
  for (int round = 0; round < s->rounds; round++) {
    for (volatile int i = 0; i < 10000; i++)
      continue;
    mlrt_barrier(team, tid);
  }
}

// Two busy processes for each processor, which run for milliseconds once they do. A waiter that offers its processor and
// gets it back when they are through takes 2 to 4 ms a barrier, one that sleeps 0.2.
static void test_crowded(void) {
  enum { BUSY = 4, BARRIERS = 2000 };
  keep_two_processors();
  pid_t hogs[BUSY];
  for (int i = 0; i < BUSY; i++)
    hogs[i] = start_busy_process();
  mlrt_team *t = mlrt_team_new(2);
  shared s = {.rounds = BARRIERS};
  usleep(50000); // they are busy now
  double begin = mlrt_seconds();
  mlrt_team_run(t, some_work, (char *)&s, 0);
  double took = (mlrt_seconds() - begin) / BARRIERS;
  CHECK(took < 1.2e-3, "%g ms a barrier beside busy processes", 1e3 * took);
  mlrt_team_free(t);
  for (int i = 0; i < BUSY; i++) {
    kill(hogs[i], SIGKILL);
    waitpid(hogs[i], NULL, 0);
  }
}

int main(void) {
  static const int sizes[] = {1, 2, 3, 4, 7, 8, 9, 17, 65, 256};
  for (int i = 0; i < (int)(sizeof sizes / sizeof sizes[0]); i++)
    test_size(sizes[i], sizes[i] < 10 ? 40 : 2);
  for (int threads = 1; threads <= 9; threads += 1 + (threads > 3) * 2)
    test_spare(threads);
  for (int threads = 1; threads <= 4; threads++)
    test_slow_pieces(threads);
  for (int threads = 1; threads <= 9; threads += 1 + (threads > 3) * 2)
    test_tasks(threads);
  mlrt_team_free(NULL);
  CHECK(mlrt_online_cores() >= 1, "no processors");
  test_crowded(); // last: this process has two processors from now on
  return failures != 0;
}
