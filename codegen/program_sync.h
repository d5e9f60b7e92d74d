// program_sync.h: between which calls the threads of a team must wait for each other.
#ifndef CODEGEN_PROGRAM_SYNC_H
#define CODEGEN_PROGRAM_SYNC_H

#include "codegen/codegen.h"

// What a call does to one of its buffers.
typedef struct sync_use {
  cg_bytes bytes; // of the whole buffer, in the arena
  bool write;
  const cg_kernel *call; // NULL: any thread may touch any byte
  int phase, arg;
  int shift; // thread that runs the first share of the tasks
} sync_use;

typedef struct sync_state sync_state;
sync_state *sync_new(ir_arena *a);
// A use by the calls that come next. Those are independent of each other.
void sync_add(sync_state *s, sync_use use);
// Bit T of the result: a team of T threads must wait before those calls; bit 31 stands for larger
// teams, too. `boundary`: one of the calls touches bytes that a call before it wrote, or writes
// bytes that one read (without it, nobody needs to wait but a team that went on without waiting
// before).
enum { SYNC_FIRST = 2 };
#define SYNC_ALL (~0u << SYNC_FIRST)
uint32_t sync_settle(sync_state *s, bool boundary);
// All threads have waited for each other, whatever the team.
void sync_reset(sync_state *s);

#endif
