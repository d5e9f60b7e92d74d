// team.h: a fixed team of threads. The caller is thread 0; the others are started once.
//
// mlrt_team_run gives every thread the same call fn(arena, slot, team, tid) and returns when all
// are through. A step takes some 100 us, so threads spin for about that long before they sleep.
#ifndef RUNTIME_TEAM_H
#define RUNTIME_TEAM_H

#include "runtime/mlrt.h"

// Processors this process may really use: its affinity mask, cut by a container's CPU quota.
int mlrt_online_cores(void);

// NULL when the threads cannot be started; errno says why. 1 <= threads <= MLRT_MAX_THREADS.
mlrt_team *mlrt_team_new(int threads); // also flushes subnormals in the caller
void mlrt_team_free(mlrt_team *t);
// Threads have these watches (mlrt_team_watch), by tid, from their next run on.
void mlrt_team_watched(mlrt_team *t, mlrt_watch *const *watches);
void mlrt_team_run(mlrt_team *t, mlrt_step_fn fn, char *arena, int slot);

// Small pieces of work that have nothing to do with fn: whichever thread waits for others does the
// next one. Their order and their threads are chance, so they must not depend on each other.
typedef struct mlrt_spare {
  void (*piece)(void *data, int64_t number); // a microsecond at most: others may be waiting for it
  void *data;
  int64_t num; // pieces 0 .. num - 1, each done once
} mlrt_spare;

// The same, with work for idle threads (NULL: none). On return all of it is done.
void mlrt_team_run_beside(mlrt_team *t, mlrt_step_fn fn, char *arena, int slot,
                          const mlrt_spare *spare);

#endif
