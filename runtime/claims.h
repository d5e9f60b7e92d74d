// claims.h: tasks of a kernel, of which each thread of a team has a share, and which those take that are through first.
//
//   thread 0   tasks 0..3    takes 0 1, then 2, then 3            of the rest, half at a time, from the front
//   thread 1   tasks 4..7    takes 4 5; is kept from going on
//   thread 0                                              7, 6    from the back of what thread 1 has left
//
// Which thread does a task changes no result: a team of any size splits them somehow, and gets the same bits. So a thread
// that another process, or another machine on the same processor, holds up does less.
//
// A share's word has the number of the launch that it is about, and what nobody has taken of it: one compare-and-swap takes
// some. A word of an earlier launch is a share that nobody has begun, whether its thread has come or not. Launches side
// by side (two without a barrier between them) are told apart by this number: a thread goes on to the next one when all
// tasks of the one before are taken, so that no word is needed for two launches at a time.
//
// A candidate considered and left: one counter for all tasks. Threads would find other rows than those that they left in
// their caches, in every kernel.
#ifndef RUNTIME_CLAIMS_H
#define RUNTIME_CLAIMS_H

#include <stdatomic.h>
#include <stdint.h>

enum { MLRT_MOST_CLAIMED = 65535 }; // of a launch, as a word counts them

typedef struct mlrt_claim {
  _Alignas(128) _Atomic uint64_t word; // launch: 32, first task: 16, end: 16
  uint32_t launches; // this thread's own count; the same in all threads between barriers
} mlrt_claim;

typedef struct mlrt_share {
  int64_t begin, end;
} mlrt_share;

// Some tasks of what is left of a thread's share, which were `all` in the beginning; none: there are none. `own`: for
// that thread itself.
mlrt_share mlrt_claim_some(mlrt_claim *c, uint32_t launch, mlrt_share all, int own);

struct mlrt_team; // runtime/team.c
mlrt_claim *mlrt_team_claim(struct mlrt_team *t, int tid);

#endif
