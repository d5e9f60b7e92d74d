// calls.c: how one thread of a team does its share of what a generated function lists (mlrt.h). A sum has one order:
// tasks are the same whoever does them.
#include "runtime/claims.h"
#include "runtime/mlrt.h"

#include <string.h>

mlrt_member mlrt_member_of(mlrt_team *team, int tid) {
  return (mlrt_member){team, tid, mlrt_team_size(team), mlrt_team_watch(team, tid)};
}

typedef mlrt_share share;

static share share_of(int64_t total, int tid, int threads) {
  return (share){total * tid / threads, total * (tid + 1) / threads};
}

void mlrt_run(const mlrt_member *me, mlrt_phase_fn kernel, int64_t tasks, int shift,
              char *const *args) {
  share mine = share_of(tasks, (me->tid + shift) % me->threads, me->threads);
  if (me->watch)
    mlrt_watch_begin(me->watch, kernel);
  if (mine.begin < mine.end)
    kernel(mine.begin, mine.end, args);
  if (me->watch)
    mlrt_watch_end(me->watch, 1);
}

// Its own tasks first, then those of the next threads. Every thread has some, so that every word is of this launch behind
// it: none is ever 2^31 launches old.
void mlrt_run_shared(const mlrt_member *me, mlrt_phase_fn kernel, int64_t tasks, int shift,
                     char *const *args) {
  if (me->threads == 1 || tasks < me->threads || tasks > MLRT_MOST_CLAIMED) {
    mlrt_run(me, kernel, tasks, shift, args);
    return;
  }
  uint32_t launch = ++mlrt_team_claim(me->team, me->tid)->launches;
  if (me->watch)
    mlrt_watch_begin(me->watch, kernel);
  for (int i = 0; i < me->threads; i++) {
    int of = (me->tid + i) % me->threads;
    share all = share_of(tasks, (of + shift) % me->threads, me->threads), some;
    while (some = mlrt_claim_some(mlrt_team_claim(me->team, of), launch, all, i == 0),
           some.begin < some.end)
      kernel(some.begin, some.end, args);
  }
  if (me->watch)
    mlrt_watch_end(me->watch, 1);
}

static void run_row(mlrt_phase_fn kernel, const int64_t *row, int buffers, int numbers, share tasks,
                    char *arena) {
  char *args[buffers + numbers];
  for (int i = 0; i < buffers; i++)
    args[i] = arena + row[i];
  for (int i = buffers; i < buffers + numbers; i++)
    args[i] = (char *)(uintptr_t)row[i];
  kernel(tasks.begin, tasks.end, args);
}

void mlrt_run_rows(const mlrt_member *me, mlrt_phase_fn kernel, const int64_t *row, int rows,
                   int buffers, int numbers, char *arena) {
  const int width = buffers + numbers + 1;
  int64_t total = 0, at = 0;
  for (int r = 0; r < rows; r++)
    total += row[r * width + width - 1];
  share mine = share_of(total, me->tid, me->threads);
  if (me->watch)
    mlrt_watch_begin(me->watch, kernel);
  for (; at < mine.end; row += width) {
    const int64_t num = row[width - 1];
    share tasks = {mine.begin > at ? mine.begin - at : 0,
                   mine.end - at < num ? mine.end - at : num};
    if (tasks.begin < tasks.end)
      run_row(kernel, row, buffers, numbers, tasks, arena);
    at += num;
  }
  if (me->watch)
    mlrt_watch_end(me->watch, rows);
}

void mlrt_copy(const mlrt_member *me, char *to, const char *from, int64_t bytes) {
  enum { LINE = 64 }; // no two threads write to one
  share lines = share_of((bytes + LINE - 1) / LINE, me->tid, me->threads);
  int64_t begin = lines.begin * LINE, end = lines.end * LINE < bytes ? lines.end * LINE : bytes;
  if (begin < end)
    memcpy(to + begin, from + begin, (size_t)(end - begin));
}

void mlrt_wait(const mlrt_member *me) {
  mlrt_barrier(me->team, me->tid);
}

void mlrt_wait_if(const mlrt_member *me, uint32_t teams) {
  if (teams >> (me->threads < 31 ? me->threads : 31) & 1)
    mlrt_barrier(me->team, me->tid);
}
