// test_team.c: barriers keep threads together, whatever their number, awake or asleep.
#include "runtime/team.h"
#include "tests/runtime/support_program.h"

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

int main(void) {
  static const int sizes[] = {1, 2, 3, 4, 7, 8, 9, 17, 65, 256};
  for (int i = 0; i < (int)(sizeof sizes / sizeof sizes[0]); i++)
    test_size(sizes[i], sizes[i] < 10 ? 40 : 2);
  mlrt_team_free(NULL);
  CHECK(mlrt_online_cores() >= 1, "no processors");
  return failures != 0;
}
