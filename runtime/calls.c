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

// A call of a kernel; or many, of which each has a row of what it is called with, and its tasks are part of one range.
typedef struct work {
  mlrt_phase_fn kernel;
  int64_t tasks;
  int calls;
  char *const *args; // NULL: rows
  const int64_t *row;
  int buffers, numbers;
  char *arena;
} work;

static void do_row(const work *w, const int64_t *row, share tasks) {
  char *args[w->buffers + w->numbers];
  for (int i = 0; i < w->buffers; i++)
    args[i] = w->arena + row[i];
  for (int i = w->buffers; i < w->buffers + w->numbers; i++)
    args[i] = (char *)(uintptr_t)row[i];
  w->kernel(tasks.begin, tasks.end, args);
}

static void do_tasks(const work *w, share some) {
  if (w->args) {
    w->kernel(some.begin, some.end, w->args);
    return;
  }
  const int width = w->buffers + w->numbers + 1;
  int64_t at = 0;
  for (const int64_t *row = w->row; at < some.end; row += width) {
    const int64_t num = row[width - 1];
    share tasks = {some.begin > at ? some.begin - at : 0,
                   some.end - at < num ? some.end - at : num};
    if (tasks.begin < tasks.end)
      do_row(w, row, tasks);
    at += num;
  }
}

static work work_of_rows(mlrt_phase_fn kernel, const int64_t *row, int rows, int buffers,
                         int numbers, char *arena) {
  work w = {kernel, 0, rows, NULL, row, buffers, numbers, arena};
  for (int r = 1; r <= rows; r++)
    w.tasks += row[r * (buffers + numbers + 1) - 1];
  return w;
}

static void do_share(const mlrt_member *me, const work *w, int shift) {
  share mine = share_of(w->tasks, (me->tid + shift) % me->threads, me->threads);
  if (mine.begin < mine.end)
    do_tasks(w, mine);
}

// Its own tasks first, then those of the next threads; `unit` tasks at a time, so that the claims' words can count them.
static void claim_tasks(const mlrt_member *me, const work *w, int shift, int64_t unit,
                        int64_t units) {
  uint32_t launch = ++mlrt_team_claim(me->team, me->tid)->launches;
  for (int i = 0; i < me->threads; i++) {
    int of = (me->tid + i) % me->threads;
    share all = share_of(units, (of + shift) % me->threads, me->threads), some;
    while (some = mlrt_claim_some(mlrt_team_claim(me->team, of), launch, all, i == 0),
           some.begin < some.end) {
      int64_t end = some.end * unit;
      do_tasks(w, (share){some.begin * unit, end < w->tasks ? end : w->tasks});
    }
  }
}

// Claims are for launches of which every thread has some tasks: every word is of such a launch when it is over, and none
// is ever 2^31 launches old.
static void do_shared(const mlrt_member *me, const work *w, int shift) {
  int64_t unit = w->tasks / MLRT_MOST_CLAIMED + 1, units = (w->tasks + unit - 1) / unit;
  if (me->threads == 1 || units < me->threads)
    do_share(me, w, shift);
  else
    claim_tasks(me, w, shift, unit, units);
}

static void run(const mlrt_member *me, const work *w, int shift,
                void (*part)(const mlrt_member *me, const work *w, int shift)) {
  if (me->watch)
    mlrt_watch_begin(me->watch, w->kernel);
  part(me, w, shift);
  if (me->watch)
    mlrt_watch_end(me->watch, w->calls);
}

void mlrt_run(const mlrt_member *me, mlrt_phase_fn kernel, int64_t tasks, int shift,
              char *const *args) {
  run(me, &(work){kernel, tasks, 1, args, NULL, 0, 0, NULL}, shift, do_share);
}

void mlrt_run_shared(const mlrt_member *me, mlrt_phase_fn kernel, int64_t tasks, int shift,
                     char *const *args) {
  run(me, &(work){kernel, tasks, 1, args, NULL, 0, 0, NULL}, shift, do_shared);
}

void mlrt_run_rows(const mlrt_member *me, mlrt_phase_fn kernel, const int64_t *row, int rows,
                   int buffers, int numbers, char *arena) {
  work w = work_of_rows(kernel, row, rows, buffers, numbers, arena);
  run(me, &w, 0, do_share);
}

void mlrt_run_rows_shared(const mlrt_member *me, mlrt_phase_fn kernel, const int64_t *row, int rows,
                          int buffers, int numbers, char *arena) {
  work w = work_of_rows(kernel, row, rows, buffers, numbers, arena);
  run(me, &w, 0, do_shared);
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
